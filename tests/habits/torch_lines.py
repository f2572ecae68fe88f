"""One-line habits of people who come from PyTorch: what they type, and what it must give.

A line is `code  ==>  what it gives, in NumPy and Python`, with one of these marks between the two:

- `==>` it gives the same in PyTorch; `!!!` it is refused, and in PyTorch too, and the text is part of what is said.
- `~=>` PyTorch gives something else; `!~!` it is refused here alone; `+=>` PyTorch has no such thing.

`ek` is Eshkol; the values that lines may use are made in `world.py`: x float[2, 3], v float[3], m a positive definite
float[3, 3], i int[3], k int[2, 3], mask bool[2, 3], img float[1, 2, 4, 4], logits float[2, 3], labels int[2], model; in
capitals (X, V, M, I, K, MASK, IMG, LOGITS, LABELS) the same as NumPy arrays. Several statements are separated by `; `,
and the last one is looked at. The headings are those of PyTorch's documentation.
"""

from __future__ import annotations

# ruff: noqa: E501  # a line of a table is one line
from typing import NamedTuple

SECTIONS: dict[str, str] = {
    "creation": r"""
ek.tensor([1.0, 2.0])                                   ==>  np.float32([1, 2])
ek.tensor([1, 2]).dtype == ek.int64                     ==>  True
ek.tensor([1, 2], dtype=ek.float32)                     ==>  np.float32([1, 2])
ek.tensor(3.5).item()                                   ==>  3.5
ek.tensor([1.0], requires_grad=True).requires_grad      ==>  True
ek.tensor([1.0], device="cpu").device == "cpu"          ~=>  True
ek.as_tensor([1.0, 2.0])                                ==>  np.float32([1, 2])
ek.from_numpy(X)                                        ==>  X
ek.asarray([1, 2])                                      ==>  np.int64([1, 2])
ek.zeros(2, 3)                                          ==>  np.zeros((2, 3), 'f4')
ek.zeros((2, 3))                                        ==>  np.zeros((2, 3), 'f4')
ek.zeros([2, 3])                                        ==>  np.zeros((2, 3), 'f4')
ek.zeros(3)                                             ==>  np.zeros(3, 'f4')
ek.zeros(2, 3, dtype=ek.int64)                          ==>  np.zeros((2, 3), 'i8')
ek.zeros(2, 3, device="cpu")                            ==>  np.zeros((2, 3), 'f4')
ek.zeros(2, requires_grad=True).requires_grad           ==>  True
ek.zeros(size=(2, 3))                                   ==>  np.zeros((2, 3), 'f4')
ek.zeros(x.shape)                                       ==>  np.zeros((2, 3), 'f4')
ek.zeros(x.size())                                      ==>  np.zeros((2, 3), 'f4')
ek.ones(2, 3)                                           ==>  np.ones((2, 3), 'f4')
ek.ones((2, 3), dtype=ek.bool)                          ==>  np.ones((2, 3), bool)
ek.empty(2, 3).shape                                    ==>  (2, 3)
ek.full((2, 3), 7.0)                                    ==>  np.full((2, 3), 7, 'f4')
ek.full((2,), 7).dtype == ek.int64                      ==>  True
ek.full(size=(2,), fill_value=1.5)                      ==>  np.full(2, 1.5, 'f4')
ek.zeros_like(x)                                        ==>  np.zeros_like(X)
ek.ones_like(x, dtype=ek.int32)                         ==>  np.ones((2, 3), 'i4')
ek.full_like(x, 2.0)                                    ==>  np.full_like(X, 2)
ek.empty_like(x).shape                                  ==>  (2, 3)
ek.rand_like(x).shape                                   ==>  (2, 3)
ek.randn_like(x).dtype == ek.float32                    ==>  True
ek.randint_like(k, 0, 5).shape                          ==>  (2, 3)
ek.arange(5)                                            ==>  np.arange(5)
ek.arange(1, 5, 2)                                      ==>  np.arange(1, 5, 2)
ek.arange(0.0, 1.0, 0.25)                               ==>  np.arange(0, 1, 0.25)
ek.arange(start=1, end=4)                               ==>  np.arange(1, 4)
ek.linspace(0, 1, 5)                                    ==>  np.linspace(0, 1, 5)
ek.linspace(0, 1, steps=5)                              ==>  np.linspace(0, 1, 5)
ek.logspace(0, 2, steps=3)                              ==>  np.float32([1, 10, 100])
ek.eye(3)                                               ==>  np.eye(3)
ek.eye(2, 3)                                            ==>  np.eye(2, 3)
ek.complex(v, v)                                        ==>  V + 1j * V
ek.scalar_tensor(2.5)                                   ==>  np.float32(2.5)
ek.Tensor([1, 2])                                       ==>  np.float32([1, 2])
ek.FloatTensor([1, 2])                                  ==>  np.float32([1, 2])
ek.LongTensor([1, 2])                                   ==>  np.int64([1, 2])
ek.Tensor(2, 3).shape                                   ==>  (2, 3)
""",
    "random": r"""
ek.manual_seed(0) is not None                           ==>  True
ek.manual_seed(1); a = ek.rand(3); ek.manual_seed(1); bool((a == ek.rand(3)).all())   ==>  True
ek.rand(2, 3).shape                                     ==>  (2, 3)
ek.rand((2, 3)).shape                                   ==>  (2, 3)
ek.rand(2, device="cpu", dtype=ek.float64).dtype == ek.float64   ==>  True
ek.randn(2, 3).shape                                    ==>  (2, 3)
ek.randn((2, 3)).shape                                  ==>  (2, 3)
ek.randn(2, 3, requires_grad=True).is_leaf              ==>  True
ek.randn(2, generator=ek.Generator().manual_seed(3)).shape   ==>  (2,)
ek.randint(0, 10, (2, 3)).shape                         ==>  (2, 3)
ek.randint(10, (4,)).dtype == ek.int64                  ==>  True
ek.randint(low=0, high=5, size=(2,)).shape              ==>  (2,)
ek.randperm(5).sort()[0]                                ==>  np.arange(5)
ek.normal(0.0, 1.0, (2, 3)).shape                       ==>  (2, 3)
ek.normal(mean=0.0, std=2.0, size=(4,)).shape           ==>  (4,)
ek.normal(ek.zeros(3), ek.ones(3)).shape                ==>  (3,)
ek.bernoulli(ek.ones(3))                                ==>  np.ones(3, 'f4')
ek.multinomial(ek.tensor([0.0, 0.0, 1.0]), 1)           ==>  np.int64([2])
ek.multinomial(ek.tensor([0.5, 0.5]), 4, replacement=True).shape   ==>  (4,)
ek.poisson(ek.ones(3)).shape                            ==>  (3,)
a = ek.empty(3); a.uniform_(2, 3); bool((a >= 2).all())   ==>  True
ek.empty(3, 2).normal_(0, 1).shape                      ==>  (3, 2)
ek.empty(3).bernoulli_(1.0)                             ==>  np.ones(3, 'f4')
ek.zeros(4).random_(0, 1)                               ==>  np.zeros(4, 'f4')
ek.empty(3).exponential_(1.0).shape                     ==>  (3,)
ek.initial_seed() >= 0                                  ==>  True
state = ek.get_rng_state(); a = ek.rand(2); ek.set_rng_state(state); bool((a == ek.rand(2)).all())   ==>  True
""",
    "what a tensor says of itself": r"""
x.shape                                                 ==>  (2, 3)
x.size()                                                ==>  (2, 3)
x.size(0)                                               ==>  2
x.size(-1)                                              ==>  3
x.size(dim=1)                                           ==>  3
x.shape[0]                                              ==>  2
x.dim()                                                 ==>  2
x.ndim                                                  ==>  2
x.ndimension()                                          ==>  2
x.numel()                                               ==>  6
x.nelement()                                            ==>  6
ek.numel(x)                                             ==>  6
len(x)                                                  ==>  2
x.dtype is ek.float32                                   ==>  True
x.element_size()                                        ==>  4
x.nbytes                                                ==>  24
x.device == "cpu"                                       ~=>  True
x.is_floating_point()                                   ==>  True
ek.is_floating_point(k)                                 ==>  False
x.is_complex()                                          ==>  False
ek.is_tensor(x)                                         ==>  True
ek.is_tensor(1.0)                                       ==>  False
isinstance(x, ek.Tensor)                                ==>  True
x.is_contiguous()                                       ==>  True
x.stride()                                              ==>  (3, 1)
x.is_cuda                                               ==>  False
x.is_leaf                                               ==>  True
x.requires_grad                                         ==>  False
x.grad is None                                          ==>  True
x.grad_fn is None                                       ==>  True
x.layout                                                !~!  layout
x.data_ptr()                                            !~!  data_ptr
x.storage()                                             !~!  storage
x[0, 0].item()                                          ==>  1.0
x.tolist()                                              ==>  X.tolist()
x.numpy()                                               ==>  X
x.detach().cpu().numpy()                                ==>  X
x.numpy(force=True)                                     ==>  X
float(x.sum())                                          ==>  21.0
ek.is_nonzero(ek.tensor(1.0))                           ==>  True
ek.finfo(ek.float32).eps                                ==>  float(np.finfo('f4').eps)
ek.iinfo(ek.int32).max                                  ==>  2**31 - 1
ek.float32.is_floating_point                            ==>  True
ek.result_type(x, k) == ek.float32                      ==>  True
ek.promote_types(ek.int32, ek.float32) == ek.float32    ==>  True
""",
    "dtypes and devices": r"""
x.float()                                               ==>  X
x.double().dtype == ek.float64                          ==>  True
x.half().dtype == ek.float16                            ==>  True
x.bfloat16().dtype == ek.bfloat16                       ==>  True
x.long()                                                ==>  X.astype('i8')
x.int().dtype == ek.int32                               ==>  True
x.short().dtype == ek.int16                             ==>  True
x.char().dtype == ek.int8                               ==>  True
x.byte().dtype == ek.uint8                              ==>  True
x.bool()                                                ==>  X.astype(bool)
x.cfloat().dtype == ek.complex64                        ==>  True
x.to(ek.float64).dtype == ek.float64                    ==>  True
x.to("cpu")                                             ==>  X
x.to("cpu", ek.int64)                                   ==>  X.astype('i8')
x.to(device="cpu", dtype=ek.int64)                      ==>  X.astype('i8')
x.to(k).dtype == ek.int64                               ==>  True
x.to("cpu", non_blocking=True)                          ==>  X
x.to(ek.device("cpu"))                                  ==>  X
x.cpu()                                                 ==>  X
x.type(ek.int64)                                        ==>  X.astype('i8')
x.type_as(k).dtype == ek.int64                          ==>  True
x.cuda()                                                !!!  cuda
ek.cuda.is_available()                                  ==>  False
ek.device("cpu").type                                   ==>  'cpu'
ek.device("cuda" if ek.cuda.is_available() else "cpu").type   ==>  'cpu'
ek.get_default_dtype() == ek.float32                    ==>  True
ek.set_default_dtype(ek.float64); a = ek.zeros(2), ek.tensor([1.0]), ek.randn(2), ek.nn.Linear(1, 1).weight; ek.set_default_dtype(ek.float32); [str(t.dtype).split(".")[-1] for t in a]   ==>  ['float64'] * 4
ek.float, ek.double, ek.half, ek.long, ek.int, ek.short   ==>  (ek.float32, ek.float64, ek.float16, ek.int64, ek.int32, ek.int16)
ek.get_default_device() == "cpu"                        ~=>  True
ek.set_default_device("cpu") is None                    ==>  True
isinstance(ek.get_num_threads(), int)                   ==>  True
ek.set_num_threads(ek.get_num_threads()) is None        ==>  True
ek.set_printoptions(precision=4) is None                ==>  True
""",
    "shapes": r"""
x.view(3, 2)                                            ==>  X.reshape(3, 2)
x.view(-1)                                              ==>  X.reshape(-1)
x.view((3, 2))                                          ==>  X.reshape(3, 2)
x.view(x.size(0), -1)                                   ==>  X
x.view_as(x)                                            ==>  X
x.reshape(3, 2)                                         ==>  X.reshape(3, 2)
x.reshape((3, -1))                                      ==>  X.reshape(3, 2)
ek.reshape(x, (3, 2))                                   ==>  X.reshape(3, 2)
x.reshape_as(ek.zeros(3, 2))                            ==>  X.reshape(3, 2)
x.flatten()                                             ==>  X.ravel()
img.flatten(1)                                          ==>  IMG.reshape(1, -1)
ek.flatten(img, start_dim=1)                            ==>  IMG.reshape(1, -1)
ek.flatten(img, 1, 2)                                   ==>  IMG.reshape(1, 8, 4)
x.unflatten(1, (3, 1))                                  ==>  X.reshape(2, 3, 1)
x.ravel()                                               ==>  X.ravel()
x.unsqueeze(0)                                          ==>  X[None]
x.unsqueeze(dim=-1)                                     ==>  X[..., None]
ek.unsqueeze(x, 1)                                      ==>  X[:, None]
img.squeeze()                                           ==>  IMG[0]
img.squeeze(0)                                          ==>  IMG[0]
img.squeeze(1)                                          !~!  leave that axis out
ek.squeeze(img, dim=0)                                  ==>  IMG[0]
x[None, :, None].shape                                  ==>  (1, 2, 1, 3)
x.permute(1, 0)                                         ==>  X.T
x.permute((1, 0))                                       ==>  X.T
ek.permute(x, (1, 0))                                   ==>  X.T
x.transpose(0, 1)                                       ==>  X.T
ek.transpose(x, dim0=0, dim1=1)                         ==>  X.T
x.t()                                                   ==>  X.T
ek.t(x)                                                 ==>  X.T
x.T                                                     ==>  X.T
x.mT                                                    ==>  X.T
x.H                                                     ==>  X.T
x.swapaxes(0, 1)                                        ==>  X.T
x.swapdims(0, 1)                                        ==>  X.T
img.movedim(1, -1)                                      ==>  np.moveaxis(IMG, 1, -1)
ek.moveaxis(img, 0, 1)                                  ==>  np.moveaxis(IMG, 0, 1)
v.expand(2, 3)                                          ==>  np.stack([V, V])
v.expand(2, -1)                                         ==>  np.stack([V, V])
v.expand((2, 3))                                        ==>  np.stack([V, V])
v.expand_as(x)                                          ==>  np.stack([V, V])
ek.broadcast_to(v, (2, 3))                              ==>  np.stack([V, V])
ek.broadcast_tensors(v, x)[0]                           ==>  np.stack([V, V])
ek.broadcast_shapes((3,), (2, 1))                       ==>  (2, 3)
v.repeat(2)                                             ==>  np.tile(V, 2)
v.repeat(2, 1)                                          ==>  np.tile(V, (2, 1))
x.repeat((2, 1))                                        ==>  np.tile(X, (2, 1))
v.repeat_interleave(2)                                  ==>  np.repeat(V, 2)
ek.repeat_interleave(x, 2, dim=1)                       ==>  np.repeat(X, 2, 1)
ek.tile(v, (2,))                                        ==>  np.tile(V, 2)
v.tile(2, 1)                                            ==>  np.tile(V, (2, 1))
ek.cat([x, x])                                          ==>  np.concatenate([X, X])
ek.cat((x, x), dim=1)                                   ==>  np.concatenate([X, X], 1)
ek.cat([x, x], 1)                                       ==>  np.concatenate([X, X], 1)
ek.concat([x, x], dim=-1)                               ==>  np.concatenate([X, X], -1)
ek.stack([v, v])                                        ==>  np.stack([V, V])
ek.stack((v, v), dim=1)                                 ==>  np.stack([V, V], 1)
ek.stack([v, v], 1)                                     ==>  np.stack([V, V], 1)
ek.hstack([v, v])                                       ==>  np.hstack([V, V])
ek.vstack((v, v))                                       ==>  np.vstack([V, V])
ek.dstack([v, v])                                       ==>  np.dstack([V, V])
ek.column_stack([v, v])                                 ==>  np.column_stack([V, V])
x.chunk(3, dim=1)[1]                                    ==>  X[:, 1:2]
ek.chunk(x, 2)[0]                                       ==>  X[:1]
x.split(2, dim=1)[1]                                    ==>  X[:, 2:]
ek.split(x, [1, 2], dim=1)[1]                           ==>  X[:, 1:]
x.split_with_sizes([1, 2], dim=1)[0]                    ==>  X[:, :1]
ek.tensor_split(v, 2)[0]                                ==>  V[:2]
x.unbind(0)[1]                                          ==>  X[1]
ek.unbind(x, dim=1)[2]                                  ==>  X[:, 2]
x.narrow(1, 1, 2)                                       ==>  X[:, 1:3]
x.select(1, 2)                                          ==>  X[:, 2]
v.unfold(0, 2, 1)                                       ==>  np.stack([V[:2], V[1:]])
ek.flip(x, dims=(1,))                                   ==>  X[:, ::-1]
x.flip(0)                                               ==>  X[::-1]
x.flip(0, 1)                                            ==>  X[::-1, ::-1]
ek.fliplr(x)                                            ==>  X[:, ::-1]
ek.flipud(x)                                            ==>  X[::-1]
ek.roll(x, 1, dims=1)                                   ==>  np.roll(X, 1, 1)
x.roll(shifts=1, dims=0)                                ==>  np.roll(X, 1, 0)
ek.rot90(x, 1, (0, 1))                                  ==>  np.rot90(X)
x.contiguous()                                          ==>  X
x.clone()                                               ==>  X
ek.atleast_2d(v)                                        ==>  V[None]
ek.tril(m)                                              ==>  np.tril(M)
m.triu(diagonal=1)                                      ==>  np.triu(M, 1)
ek.tril_indices(2, 2)                                   ==>  np.stack(np.tril_indices(2))
ek.triu_indices(2, 3, offset=1)                         ==>  np.stack(np.triu_indices(2, 1, 3))
ek.diag(v)                                              ==>  np.diag(V)
m.diagonal()                                            ==>  np.diag(M)
ek.diag_embed(v)                                        ==>  np.diag(V)
ek.block_diag(v[None], v[None]).shape                   ==>  (2, 6)
ek.meshgrid(v, v, indexing="ij")[0]                     ==>  np.meshgrid(V, V, indexing='ij')[0]
ek.cartesian_prod(v, v).shape                           ==>  (9, 2)
ek.combinations(v).shape                                ==>  (3, 2)
ek.hsplit(x, 3)[1]                                      ==>  np.hsplit(X, 3)[1]
x.vsplit(2)[0]                                          ==>  X[:1]
ek.diagflat(v)                                          ==>  np.diag(V)
ek.select_scatter(x, ek.zeros(3), 0, 1)                 ==>  X * [[1], [0]]
ek.slice_scatter(x, ek.zeros(2, 2), 1, 0, 2)            ==>  X * [0, 0, 1]
ek.unravel_index(ek.tensor([5]), (2, 3))[1]             ==>  np.int64([2])
x.sum_to_size(1, 3)                                     ==>  X.sum(0, keepdims=True)
""",
    "indexing": r"""
x[0]                                                    ==>  X[0]
x[:, 1]                                                 ==>  X[:, 1]
x[..., -1]                                              ==>  X[..., -1]
x[0, 1:]                                                ==>  X[0, 1:]
x[mask]                                                 ==>  X[MASK]
x[x > 2]                                                ==>  X[X > 2]
v[i]                                                    ==>  V[I]
x[:, [0, 2]]                                            ==>  X[:, [0, 2]]
v[ek.tensor(1)].item()                                  ==>  2.0
x[ek.arange(2), labels]                                 ==>  X[[0, 1], LABELS]
y = x.clone(); y[0] = 0; y                              ==>  X * [[0], [1]]
y = x.clone(); y[:, 1] += 10; y                         ==>  X + [0, 10, 0]
y = x.clone(); y[y > 4] = 0.0; y                        ==>  np.where(X > 4, 0, X)
y = x.clone(); y[0, 0] = 9; x[0, 0].item()              ==>  1.0
y = x.clone(); z = y[0]; z.add_(1)                      !~!  x[0] += 1
ek.gather(x, 1, k)                                      ==>  np.take_along_axis(X, K, 1)
x.gather(dim=1, index=k)                                ==>  np.take_along_axis(X, K, 1)
x.gather(1, labels.unsqueeze(1)).squeeze(1)             ==>  X[[0, 1], LABELS]
ek.zeros(2, 3).scatter(1, labels.unsqueeze(1), 1.0)     ==>  np.eye(3)[LABELS]
ek.zeros(2, 3).scatter_(1, labels.unsqueeze(1), 1.0)    ==>  np.eye(3)[LABELS]
ek.zeros(2, 3).scatter(1, k, x).shape                   ==>  (2, 3)
ek.zeros(2, 3).scatter_add(1, labels[:, None], x[:, :1])   ==>  np.eye(3)[LABELS] * X[:, :1]
ek.zeros(2, 3).scatter_add_(1, labels[:, None], x[:, :1])   ==>  np.eye(3)[LABELS] * X[:, :1]
ek.zeros(3).scatter_reduce(0, i, v, reduce="amax")      ==>  V[np.argsort(I)]
x.index_select(1, i)                                    ==>  X[:, I]
ek.index_select(x, dim=1, index=i)                      ==>  X[:, I]
ek.zeros(3).index_add(0, i, v)                          ==>  V[np.argsort(I)]
ek.zeros(3).index_add_(0, i, v)                         ==>  V[np.argsort(I)]
ek.zeros(3).index_copy(0, i, v)                         ==>  V[np.argsort(I)]
v.index_fill(0, ek.tensor([0]), 9.0)                    ==>  np.float32([9, 2, 3])
y = v.clone(); y.index_fill_(0, ek.tensor([0]), 9.0); y   ==>  np.float32([9, 2, 3])
y = v.clone(); y.index_put_((i,), ek.zeros(3)); y       ==>  np.zeros(3, 'f4')
x.masked_fill(mask, 0.0)                                ==>  np.where(MASK, 0, X)
y = x.clone(); y.masked_fill_(mask, float("-inf")); y   ==>  np.where(MASK, -np.inf, X)
x.masked_select(mask)                                   ==>  X[MASK]
ek.masked_select(x, mask)                               ==>  X[MASK]
x.masked_scatter(mask, ek.arange(6).float()).shape      ==>  (2, 3)
ek.take(v, i)                                           ==>  V[I]
v.take(i)                                               ==>  V[I]
ek.take_along_dim(x, k, dim=1)                          ==>  np.take_along_axis(X, K, 1)
ek.where(mask, x, 0.0)                                  ==>  np.where(MASK, X, 0)
ek.where(x > 2, x, ek.zeros_like(x))                    ==>  np.where(X > 2, X, 0)
x.where(mask, ek.zeros(()))                             ==>  np.where(MASK, X, 0)
ek.where(mask)[0]                                       ==>  np.nonzero(MASK)[0]
ek.nonzero(mask)                                        ~=>  list(np.nonzero(MASK))
mask.nonzero(as_tuple=False)                            ~=>  np.argwhere(MASK)
ek.nonzero(mask, as_tuple=True)[1]                      ==>  np.nonzero(MASK)[1]
ek.argwhere(mask)                                       ==>  np.argwhere(MASK)
""",
    "pointwise": r"""
x + 1                                                   ==>  X + 1
x + v                                                   ==>  X + V
ek.add(x, v)                                            ==>  X + V
ek.add(x, v, alpha=2)                                   ==>  X + 2 * V
x.sub(v, alpha=2)                                       ==>  X - 2 * V
ek.rsub(v, 1.0)                                         ==>  1 - V
ek.add(input=x, other=v)                                ==>  X + V
ek.mul(x, 2)                                            ==>  X * 2
ek.div(x, 2, rounding_mode="floor")                     ==>  X // 2
ek.div(k, 2, rounding_mode="trunc")                     ==>  K // 2
k / 2                                                   ==>  K / 2
x // 2                                                  ==>  X // 2
x % 2                                                   ==>  X % 2
x ** 2                                                  ==>  X ** 2
2 ** x                                                  ==>  2 ** X
ek.pow(x, 2)                                            ==>  X ** 2
x.float_power(2).dtype == ek.float64                    ==>  True
-x                                                      ==>  -X
~mask                                                   ==>  ~MASK
mask & mask                                             ==>  MASK
mask | ~mask                                            ==>  np.ones((2, 3), bool)
k << 1                                                  ==>  K << 1
ek.bitwise_left_shift(k, 1)                             ==>  K << 1
x.abs()                                                 ==>  X
ek.abs(-x)                                              ==>  X
ek.sqrt(x)                                              ==>  np.sqrt(X)
x.rsqrt()                                               ==>  1 / np.sqrt(X)
ek.exp(v)                                               ==>  np.exp(V)
x.log()                                                 ==>  np.log(X)
ek.log2(x)                                              ==>  np.log2(X)
ek.log1p(x)                                             ==>  np.log1p(X)
ek.sin(x) + x.cos() + x.tan()                           ==>  np.sin(X) + np.cos(X) + np.tan(X)
ek.asin(v / 4)                                          ==>  np.arcsin(V / 4)
ek.atan2(v, v)                                          ==>  np.arctan2(V, V)
ek.tanh(x)                                              ==>  np.tanh(X)
x.sigmoid()                                             ==>  1 / (1 + np.exp(-X))
ek.special.expit(v)                                     ==>  1 / (1 + np.exp(-V))
ek.logit(v / 4)                                         ==>  np.log(V / 4 / (1 - V / 4))
ek.relu(x - 3)                                          ==>  np.maximum(X - 3, 0)
ek.clamp(x, 2, 4)                                       ==>  np.clip(X, 2, 4)
x.clamp(min=2)                                          ==>  np.maximum(X, 2)
x.clamp_min(2)                                          ==>  np.maximum(X, 2)
x.clip(2, 4)                                            ==>  np.clip(X, 2, 4)
ek.round(x / 4)                                         ==>  np.round(X / 4)
ek.round(v / 3, decimals=2)                             ==>  np.round(V / 3, 2)
ek.floor(x / 2)                                         ==>  np.floor(X / 2)
x.div(2).ceil()                                         ==>  np.ceil(X / 2)
ek.trunc(x / 2)                                         ==>  np.trunc(X / 2)
ek.fix(x / 2)                                           ==>  np.trunc(X / 2)
ek.frac(x / 2)                                          ==>  X / 2 - np.trunc(X / 2)
ek.sign(x)                                              ==>  np.sign(X)
ek.sgn(x)                                               ==>  np.sign(X)
ek.reciprocal(x)                                        ==>  1 / X
ek.square(x)                                            ==>  X ** 2
ek.neg(x)                                               ==>  -X
ek.fmod(x, 2)                                           ==>  np.fmod(X, 2)
ek.remainder(x, 2)                                      ==>  X % 2
ek.true_divide(k, 2)                                    ==>  K / 2
ek.floor_divide(k, 2)                                   ==>  K // 2
ek.addcmul(v, v, v, value=0.5)                          ==>  V + 0.5 * V * V
ek.addcdiv(v, v, v, value=0.5)                          ==>  V + 0.5
ek.lerp(v, 2 * v, 0.5)                                  ==>  1.5 * V
ek.erf(v)                                               ==>  np.float32([0.8427008, 0.9953223, 0.9999779])
ek.lgamma(v)                                            ==>  np.float32([0, 0, np.log(2)])
ek.nan_to_num(ek.tensor([float("nan"), 1.0]))           ==>  np.float32([0, 1])
ek.hypot(v, v)                                          ==>  np.hypot(V, V)
ek.maximum(v, i)                                        ==>  np.maximum(V, I)
ek.fmax(v, i.float())                                   ==>  np.fmax(V, I)
ek.max(v, i.float())                                    ==>  np.maximum(V, I)
ek.logaddexp(v, v)                                      ==>  np.logaddexp(V, V)
ek.xlogy(v, v)                                          ==>  V * np.log(V)
ek.deg2rad(v)                                           ==>  np.deg2rad(V)
ek.positive(v)                                          ==>  V
ek.heaviside(v - 2, v)                                  ==>  np.heaviside(V - 2, V)
ek.isposinf(v)                                          ==>  np.isposinf(V)
ek.signbit(-v)                                          ==>  np.signbit(-V)
ek.logaddexp2(v, v)                                     ==>  np.logaddexp2(V, V)
ek.ldexp(v, i.float())                                  ==>  V * 2.0 ** I
ek.special.ndtr(ek.zeros(1))                            ==>  np.float32([0.5])
ek.special.entr(v)                                      ==>  -V * np.log(V)
ek.gcd(k, k)                                            !~!  NumPy
""",
    "reductions": r"""
x.sum()                                                 ==>  np.float32(21)
x.sum(0)                                                ==>  X.sum(0)
x.sum(dim=1)                                            ==>  X.sum(1)
x.sum(dim=1, keepdim=True)                              ==>  X.sum(1, keepdims=True)
x.sum(1, True)                                          ==>  X.sum(1, keepdims=True)
x.sum(axis=1, keepdims=True)                            ==>  X.sum(1, keepdims=True)
ek.sum(x, dim=(0, 1))                                   ==>  np.float32(21)
k.sum(dtype=ek.float32)                                 ==>  np.float32(K.sum())
ek.sum(input=x, dim=0)                                  ==>  X.sum(0)
x.mean(-1)                                              ==>  X.mean(-1)
ek.mean(x, dim=(0, 1), keepdim=True)                    ==>  X.mean(keepdims=True)
x.prod(1)                                               ==>  X.prod(1)
x.max()                                                 ==>  np.float32(6)
x.max(1).values                                         ==>  X.max(1)
x.max(dim=1).indices                                    ==>  X.argmax(1)
a, b = x.max(1); b                                      ==>  X.argmax(1)
a, b = ek.max(x, dim=0); a                              ==>  X.max(0)
a, b = x.min(1, keepdim=True); a                        ==>  X.min(1, keepdims=True)
ek.max(x, 1)[0]                                         ==>  X.max(1)
ek.max(x, 1)[1]                                         ==>  X.argmax(1)
x.max(axis=1)                                           ~=>  X.max(1)
x.amax(1)                                               ==>  X.max(1)
ek.amin(x, dim=0)                                       ==>  X.min(0)
x.aminmax()[1]                                          ==>  np.float32(6)
x.argmax()                                              ==>  5
x.argmax(dim=1)                                         ==>  X.argmax(1)
ek.argmin(x, dim=0, keepdim=True)                       ==>  X.argmin(0)[None]
x.std()                                                 ~=>  X.std()
x.std(dim=1)                                            ~=>  X.std(1)
x.var(1, unbiased=False)                                ==>  X.var(1)
x.var(dim=0, correction=0)                              ==>  X.var(0)
x.std(axis=1, correction=0)                             ==>  X.std(1)
ek.std(x, 1, keepdim=True)                              ~=>  X.std(1, keepdims=True)
ek.var_mean(x, dim=1)[1]                                ==>  X.mean(1)
ek.std_mean(x)[0]                                       ~=>  X.std()
v.median()                                              ==>  np.float32(2)
x.median(dim=1).values                                  ==>  np.median(X, 1)
x.median(dim=1).indices                                 ==>  np.int64([1, 1])
x.quantile(0.5)                                         ==>  np.quantile(X, 0.5)
ek.mode(ek.tensor([1, 2, 2])).values                    ==>  2
x.norm()                                                ==>  np.linalg.norm(X)
x.norm(dim=1)                                           ==>  np.linalg.norm(X, axis=1)
x.norm(1)                                               ==>  np.float32(21)
x.norm(p=2, dim=0)                                      ==>  np.linalg.norm(X, axis=0)
ek.norm(v)                                              ==>  np.linalg.norm(V)
ek.logsumexp(x, dim=1)                                  ==>  np.log(np.exp(X).sum(1))
x.cumsum(dim=1)                                         ==>  X.cumsum(1)
ek.cumsum(x, 0)                                         ==>  X.cumsum(0)
x.cumprod(dim=0)                                        ==>  X.cumprod(0)
ek.cummax(x, dim=1).values                              ==>  X
ek.cummax(x, dim=1)[1]                                  ==>  np.int64([[0, 1, 2]] * 2)
ek.logcumsumexp(v, dim=0)                               ==>  np.log(np.exp(V).cumsum())
mask.any()                                              ==>  np.bool_(True)
mask.all(dim=1)                                         ==>  MASK.all(1)
ek.count_nonzero(mask)                                  ==>  MASK.sum()
ek.nansum(ek.tensor([float("nan"), 1.0]))               ==>  np.float32(1)
ek.nanmean(ek.tensor([float("nan"), 1.0]))              ==>  np.float32(1)
ek.diff(v)                                              ==>  np.diff(V)
ek.trapezoid(v)                                         ==>  np.float32(4)
ek.cumulative_trapezoid(v)                              ==>  np.float32([1.5, 4])
ek.pdist(x)                                             ==>  np.float32([27 ** 0.5])
ek.dist(v, 2 * v)                                       ==>  np.linalg.norm(V)
x.sum((0, 1))                                           ==>  np.float32(21)
ek.unique(i)                                            ==>  np.unique(I)
ek.unique(i, return_counts=True)[1]                     ==>  np.ones(3, int)
ek.bincount(i)                                          ==>  np.bincount(I)
ek.histc(v, bins=3, min=0, max=3)                       ==>  np.float32([0, 1, 2])
x.softmax(dim=-1).sum(-1)                               ==>  np.ones(2, 'f4')
x.max(1) + 1                                            !!!  axis=
""",
    "comparison and sorting": r"""
x == x                                                  ==>  np.ones((2, 3), bool)
x.eq(2)                                                 ==>  X == 2
x.ne(2)                                                 ==>  X != 2
x.lt(3)                                                 ==>  X < 3
x.le(3)                                                 ==>  X <= 3
x.gt(3)                                                 ==>  X > 3
x.ge(3)                                                 ==>  X >= 3
ek.eq(x, 2)                                             ==>  X == 2
ek.equal(x, x)                                          ~=>  np.ones((2, 3), bool)
x.equal(v).all()                                        ~=>  np.bool_(False)
ek.allclose(x, x + 1e-9)                                ==>  True
ek.isclose(x, x)                                        ==>  np.ones((2, 3), bool)
ek.isnan(x)                                             ==>  np.zeros((2, 3), bool)
x.isfinite()                                            ==>  np.ones((2, 3), bool)
ek.isin(i, ek.tensor([0, 1]))                           ==>  np.isin(I, [0, 1])
ek.isin(i, ek.arange(1, 99, 2))                         ==>  np.isin(I, np.arange(1, 99, 2))
ek.isin(x, ek.concatenate([x[:1].flatten(), ek.full((40,), np.nan)]))  ==>  np.isin(X, np.append(X[:1].ravel(), np.nan))
ek.logical_and(mask, ~mask)                             ==>  np.zeros((2, 3), bool)
x.logical_not()                                         ==>  np.zeros((2, 3), bool)
x.sort(dim=1, descending=True).values                   ==>  X[:, ::-1]
a, b = ek.sort(v, descending=True); b                   ==>  np.int64([2, 1, 0])
x.argsort(dim=1, descending=True)                       ==>  np.int64([[2, 1, 0]] * 2)
x.topk(2).values                                        ==>  X[:, :0:-1]
a, b = x.topk(2, dim=1); b                              ==>  np.int64([[2, 1]] * 2)
ek.topk(v, k=1, largest=False)[0]                       ==>  np.float32([1])
x.kthvalue(2, dim=1).values                             ==>  X[:, 1]
ek.msort(v)                                             ==>  V
ek.searchsorted(v, ek.tensor([1.5]))                    ==>  np.int64([1])
ek.bucketize(v, ek.tensor([1.5, 2.5]))                  ==>  np.int64([0, 1, 2])
""",
    "linear algebra": r"""
x @ m                                                   ==>  X @ M
ek.matmul(x, m)                                         ==>  X @ M
x.mm(m)                                                 ==>  X @ M
ek.mm(x, m)                                             ==>  X @ M
m.mv(v)                                                 ==>  M @ V
ek.bmm(m[None], m[None])                                ==>  (M @ M)[None]
v.dot(v)                                                ==>  np.float32(14)
ek.dot(v, v)                                            ==>  np.float32(14)
v @ v                                                   ==>  np.float32(14)
ek.outer(v, v)                                          ==>  np.outer(V, V)
v.ger(v)                                                ==>  np.outer(V, V)
ek.inner(v, v)                                          ==>  np.float32(14)
ek.addmm(v, x, m)                                       ==>  V + X @ M
m.addmm(m, m, beta=0.5, alpha=2)                        ==>  0.5 * M + 2 * M @ M
ek.addmv(v, m, v)                                       ==>  V + M @ V
ek.baddbmm(m[None], m[None], m[None])                   ==>  (M + M @ M)[None]
ek.addr(m, v, v)                                        ==>  M + np.outer(V, V)
ek.einsum("ij,jk->ik", x, m)                            ==>  X @ M
ek.tensordot(x, m, dims=1)                              ==>  X @ M
ek.kron(v, v)                                           ==>  np.kron(V, V)
ek.chain_matmul(m, m, m)                                ==>  M @ M @ M
ek.linalg.multi_dot([m, m])                             ==>  M @ M
ek.cdist(x, x)                                          ==>  np.float32([[0, 27 ** 0.5], [27 ** 0.5, 0]])
ek.linalg.norm(x)                                       ==>  np.linalg.norm(X)
ek.linalg.norm(x, dim=1)                                ==>  np.linalg.norm(X, axis=1)
ek.linalg.vector_norm(x)                                ==>  np.linalg.norm(X)
ek.linalg.vector_norm(v, ord=1)                         ==>  np.float32(6)
ek.linalg.matrix_norm(x)                                ==>  np.linalg.norm(X)
ek.linalg.det(m)                                        ==>  np.linalg.det(M)
ek.det(m)                                               ==>  np.linalg.det(M)
ek.logdet(m)                                            ==>  np.log(np.linalg.det(M))
ek.linalg.slogdet(m).logabsdet                          ==>  np.linalg.slogdet(M)[1]
ek.linalg.inv(m)                                        ==>  np.linalg.inv(M)
ek.inverse(m)                                           ==>  np.linalg.inv(M)
m.inverse()                                             ==>  np.linalg.inv(M)
ek.linalg.pinv(x)                                       ==>  np.linalg.pinv(X)
ek.linalg.solve(m, v)                                   ==>  np.linalg.solve(M, V)
ek.linalg.lstsq(m, v[:, None]).solution                 ==>  np.linalg.solve(M, V[:, None])
ek.linalg.cholesky(m)                                   ==>  np.linalg.cholesky(M)
ek.linalg.eigh(m).eigenvalues                           ==>  np.linalg.eigvalsh(M)
ek.linalg.eigvalsh(m)                                   ==>  np.linalg.eigvalsh(M)
ek.linalg.svd(m).S                                      ==>  np.linalg.svd(M)[1]
ek.linalg.svd(x, full_matrices=False)[2].shape          ==>  (2, 3)
ek.linalg.svd(x)[2].shape                               ==>  (3, 3)
ek.linalg.svdvals(x)                                    ==>  np.linalg.svd(X)[1]
q, r = ek.linalg.qr(m); q @ r                           ==>  M
ek.linalg.matrix_rank(m)                                ==>  3
ek.linalg.matrix_power(m, 2)                            ==>  M @ M
ek.linalg.cond(m)                                       ==>  np.linalg.cond(M)
ek.linalg.solve_triangular(ek.tril(m), v[:, None], upper=False)   ==>  np.linalg.solve(np.tril(M), V[:, None])
ek.linalg.cross(v, i.float())                           ==>  np.cross(V, I)
ek.linalg.matrix_exp(ek.zeros(2, 2))                    ==>  np.eye(2)
ek.trace(m)                                             ==>  np.trace(M)
ek.cross(v, i.float(), dim=0)                           ==>  np.cross(V, I)
ek.linalg.eig(m).eigenvalues.real.sort()[0]             ==>  np.linalg.eigvalsh(M)
ek.cov(x)                                               ==>  np.cov(X)
ek.corrcoef(x)                                          ==>  np.corrcoef(X)
ek.vander(v)                                            ==>  np.vander(V)
""",
    "fft": r"""
ek.fft.fft(v)                                           ==>  np.fft.fft(V)
ek.fft(v)                                               +=>  np.fft.fft(V)
ek.fft.rfft(v)                                          ==>  np.fft.rfft(V)
ek.fft.irfft(ek.fft.rfft(v), n=3)                       ==>  V
ek.fft.ifft(ek.fft.fft(v)).real                         ==>  V
ek.fft.fft2(x)                                          ==>  np.fft.fft2(X)
ek.fft.fftn(x)                                          ==>  np.fft.fftn(X)
ek.fft.fftfreq(4)                                       ==>  np.fft.fftfreq(4)
ek.fft.fftshift(v)                                      ==>  np.fft.fftshift(V)
ek.fft.fft(x, dim=0)                                    ==>  np.fft.fft(X, axis=0)
ek.fft.rfft2(x)                                         ==>  np.fft.rfft2(X)
ek.fft.rfftn(x)                                         ==>  np.fft.rfftn(X)
""",
    "in place": r"""
y = x.clone(); y.add_(1); y                             ==>  X + 1
y = x.clone(); y.add_(v, alpha=2); y                    ==>  X + 2 * V
y = x.clone(); y.sub_(1); y                             ==>  X - 1
y = x.clone(); y.mul_(2).div_(4); y                     ==>  X / 2
y = x.clone(); y.pow_(2); y                             ==>  X ** 2
y = x.clone(); y.zero_(); y                             ==>  np.zeros((2, 3), 'f4')
y = x.clone(); y.fill_(7); y                            ==>  np.full((2, 3), 7, 'f4')
y = x.clone(); y.copy_(v); y                            ==>  np.stack([V, V])
y = x.clone(); y.clamp_(2, 4); y                        ==>  np.clip(X, 2, 4)
y = x.clone(); y.clamp_(min=2); y                       ==>  np.maximum(X, 2)
y = x.clone(); y.neg_().abs_(); y                       ==>  X
y = x.clone(); ek.relu_(ek.neg_(y)); y                  ==>  np.zeros((2, 3), 'f4')
y = x.clone(); F.hardtanh_(y); y                        ==>  np.ones((2, 3), 'f4')
y = x.clone(); F.relu(y.neg_(), inplace=True); y        ==>  np.zeros((2, 3), 'f4')
y = x.clone(); y.exp_().log_(); y                       ==>  X
y = x.clone(); y.sqrt_(); y                             ==>  np.sqrt(X)
y = x.clone(); y.relu_(); y                             ==>  X
y = x.clone(); y.sigmoid_(); y                          ==>  1 / (1 + np.exp(-X))
y = x.clone(); y.tanh_(); y                             ==>  np.tanh(X)
y = x.clone(); y.floor_().ceil_().round_(); y           ==>  X
y = x.clone(); y.reciprocal_(); y                       ==>  1 / X
y = v.clone(); y.addcmul_(v, v, value=2); y             ==>  V + 2 * V * V
y = v.clone(); y.addcdiv_(v, v, value=2); y             ==>  V + 2
y = v.clone(); y.lerp_(2 * v, 0.5); y                   ==>  1.5 * V
y = m.clone(); y.addmm_(m, m); y                        ==>  M + M @ M
y = m.clone(); y.tril_(); y                             ==>  np.tril(M)
y = m.clone(); y.fill_diagonal_(0); y                   ==>  M - np.diag(np.diag(M))
y = x.clone(); y.unsqueeze_(0); y.shape                 ==>  (1, 2, 3)
y = x.clone(); y.t_(); y                                ==>  X.T
y = x.clone(); y.cumsum_(1); y                          ==>  X.cumsum(1)
y = x.clone(); y += 1; y                                ==>  X + 1
y = x.clone(); y *= v; y                                ==>  X * V
y = x.clone(); y.eq_(1)                                 ==>  np.float32(X == 1)
y = mask.clone(); y.logical_not_(); y                   ==>  ~MASK
y = k.clone(); y.add_(1.5)                              !!!  int64
y = v.clone(); y.resize_(2)                             !~!  resize_
y = x.clone(); y.detach_(); y.requires_grad             ==>  False
x.new_zeros(2, 2)                                       ==>  np.zeros((2, 2), 'f4')
x.new_ones((2,))                                        ==>  np.ones(2, 'f4')
k.new_full((2,), 7)                                     ==>  np.full(2, 7)
x.new_tensor([1, 2])                                    ==>  np.float32([1, 2])
x.new_empty(2, 2).shape                                 ==>  (2, 2)
""",
    "autograd": r"""
w = ek.ones(3, requires_grad=True); (w * v).sum().backward(); w.grad   ==>  V
w = ek.ones(3).requires_grad_(); (w * v).sum().backward(); w.grad.zero_(); w.grad   ==>  np.zeros(3, 'f4')
w = ek.ones(3, requires_grad=True); (w * v).backward(ek.ones(3)); w.grad   ==>  V
w = ek.ones(3, requires_grad=True); (w * v).backward(gradient=ek.ones(3), retain_graph=True); w.grad   ==>  V
w = ek.ones(3, requires_grad=True); h = w * 2; h.retain_grad(); h.sum().backward(); h.grad   ==>  np.ones(3, 'f4')
w = ek.ones(3, requires_grad=True); ek.autograd.grad((w * v).sum(), w)[0]   ==>  V
w = ek.ones(3, requires_grad=True); ek.autograd.grad((w ** 3).sum(), [w], create_graph=True)[0].requires_grad   ==>  True
w = ek.ones(3, requires_grad=True); g, = ek.autograd.grad((w ** 3).sum(), [w], create_graph=True); g.sum().backward(); w.grad   ==>  np.full(3, 6, 'f4')
w = ek.ones(3, requires_grad=True); u = ek.ones(2, requires_grad=True); ek.autograd.grad(w.sum(), [w, u], allow_unused=True)[1] is None   ==>  True
w = ek.ones(3, requires_grad=True); u = ek.ones(2, requires_grad=True); ek.autograd.grad(w.sum(), [w, u])   !!!  allow_unused
w = ek.ones(3, requires_grad=True); ek.autograd.backward((w * v).sum()); w.grad   ==>  V
w = ek.ones(3, requires_grad=True); (w * 2).detach().requires_grad   ==>  False
w = ek.ones(3, requires_grad=True); w.detach().numpy()   ==>  np.ones(3, 'f4')
w = ek.ones(3, requires_grad=True); w.numpy()           !!!  detach()
w = ek.ones(3, requires_grad=True); w.add_(1)           !!!  no_grad
w = ek.ones(3, requires_grad=True); w.data.mul_(2); w.detach()   ==>  np.full(3, 2, 'f4')
w = ek.ones(3, requires_grad=True); w.data = v; w.detach()   ==>  V
w = ek.ones(3, requires_grad=True); d = w.data; w.data += 1; d   ==>  np.full(3, 2, 'f4')
w = ek.ones(3, requires_grad=True); w.grad = ek.zeros(3); w.grad   ==>  np.zeros(3, 'f4')
w = ek.ones(3, requires_grad=True); (w * 2).is_leaf     ==>  False
w = ek.ones(3, requires_grad=True); (w * 2).grad_fn is not None   ==>  True
ek.is_grad_enabled()                                    ==>  True
with_ = ek.no_grad(); with_.__enter__(); a = ek.is_grad_enabled(); with_.__exit__(None, None, None); a   ==>  False
ek.no_grad()(lambda: ek.is_grad_enabled())()            ==>  False
ek.inference_mode()(lambda: ek.is_grad_enabled())()     ==>  False
ek.enable_grad()(lambda: ek.is_grad_enabled())()        ==>  True
ek.set_grad_enabled(False)(lambda: ek.is_grad_enabled())()   ==>  False
old = ek.set_grad_enabled(False); a = ek.is_grad_enabled(); ek.set_grad_enabled(True); a, ek.is_grad_enabled()   ==>  (False, True)
w = ek.ones(3, requires_grad=True); h = w.register_hook(lambda g: g * 2); (w * v).sum().backward(); w.grad   ==>  2 * V
w = ek.ones(3, requires_grad=True); h = w * 2; h.register_hook(lambda g: g * 3); h.sum().backward(); w.grad   ==>  np.full(3, 6, 'f4')
w = ek.ones(3, requires_grad=True); h = w.register_hook(lambda g: None); (w * v).sum().backward(); h.remove(); w.grad   ==>  V
w = ek.ones(3, requires_grad=True); h = w.register_hook(lambda g: g * 2); h.remove(); (w * v).sum().backward(); w.grad   ==>  V
w = ek.ones(3, requires_grad=True); a = w * 2; a.retain_grad(); b = a * v; b.retain_grad(); b.sum().backward(); a.grad   ==>  V
w = ek.ones(3, requires_grad=True); a = w * 2; a.retain_grad(); b = a * v; b.retain_grad(); b.sum().backward(); b.grad   ==>  np.ones(3, 'f4')
w = ek.ones(3, requires_grad=True); a = w * 2; a.retain_grad(); (a * v).sum().backward(); w.grad   ==>  2 * V
w = ek.ones(3, requires_grad=True); h = w * 2; ek.autograd.grad((h ** 2).sum(), h)[0]   ==>  np.full(3, 4, 'f4')
w = ek.ones(3, requires_grad=True); h = w * 2; [g.tolist() for g in ek.autograd.grad((h ** 2).sum(), [h, w])]   ==>  [[4.0] * 3, [8.0] * 3]
w = ek.ones(3, requires_grad=True); ek.autograd.grad(w * 2, w, grad_outputs=v)[0]   ==>  2 * V
w = ek.ones(3, requires_grad=True); w.sum().backward(); w.sum().backward(); w.grad   ==>  np.full(3, 2, 'f4')
w = ek.ones(3, requires_grad=True); w.data[0] = 5.0; w.detach()   ==>  np.float32([5, 1, 1])
ek.autograd.functional.jacobian(lambda t: t ** 2, v)    ==>  np.diag(2 * V)
ek.autograd.functional.hessian(lambda t: (t ** 3).sum(), v)   ==>  np.diag(6 * V)
ek.func.grad(lambda t: (t ** 2).sum())(v)               ==>  2 * V
ek.func.vmap(lambda t: t.sum())(x)                      ==>  X.sum(1)
ek.vmap(lambda t: t * 2, in_dims=1, out_dims=1)(x)      ==>  2 * X
ek.autograd.gradcheck(lambda t: (t ** 2).sum(), ek.ones(2, dtype=ek.float64, requires_grad=True))   ==>  True
ek.autograd.set_detect_anomaly(False) is not None       ==>  True
ek.utils.checkpoint.checkpoint(lambda t: t * 2, v, use_reentrant=False)   ==>  2 * V
""",
    "nn.functional": r"""
F.relu(x - 3)                                           ==>  np.maximum(X - 3, 0)
F.relu(x - 3, inplace=True)                             ==>  np.maximum(X - 3, 0)
F.softmax(x, dim=1).sum(1)                              ==>  np.ones(2, 'f4')
F.log_softmax(x, dim=-1).exp().sum(-1)                  ==>  np.ones(2, 'f4')
F.gelu(v, approximate="tanh").shape                     ==>  (3,)
F.silu(v)                                               ==>  V / (1 + np.exp(-V))
F.leaky_relu(-v, 0.1)                                   ==>  -0.1 * V
F.leaky_relu(-v, negative_slope=0.2)                    ==>  -0.2 * V
F.elu(v)                                                ==>  V
F.softplus(v)                                           ==>  np.log1p(np.exp(V))
F.hardtanh(x)                                           ==>  np.clip(X, -1, 1)
F.hardswish(v + 3)                                      ==>  V + 3
F.hardsigmoid(v + 3)                                    ==>  np.ones(3, 'f4')
F.logsigmoid(v)                                         ==>  -np.log1p(np.exp(-V))
F.tanhshrink(v)                                         ==>  V - np.tanh(V)
F.softshrink(v, 0.5)                                    ==>  V - 0.5
F.hardshrink(v)                                         ==>  V
F.glu(x[:, :2], dim=1).shape                            ==>  (2, 1)
F.sigmoid(v)                                            ==>  1 / (1 + np.exp(-V))
F.tanh(v)                                               ==>  np.tanh(V)
F.linear(x, m)                                          ==>  X @ M.T
F.linear(x, m, v)                                       ==>  X @ M.T + V
F.dropout(x, p=0.5, training=False)                     ==>  X
F.dropout(x, 0.5).shape                                 ==>  (2, 3)
F.embedding(i, m)                                       ==>  M[I]
F.one_hot(labels, num_classes=3)                        ==>  np.eye(3, dtype=int)[LABELS]
F.mse_loss(x, ek.zeros(2, 3))                           ==>  (X ** 2).mean()
F.mse_loss(x, ek.zeros(2, 3), reduction="sum")          ==>  (X ** 2).sum()
F.l1_loss(x, ek.zeros(2, 3))                            ==>  X.mean()
F.smooth_l1_loss(v, 2 * v).shape                        ==>  ()
F.huber_loss(v, 2 * v, delta=1.0).shape                 ==>  ()
F.cross_entropy(logits, labels)                         ==>  -np.log(np.exp(LOGITS)/np.exp(LOGITS).sum(1, keepdims=True))[[0, 1], LABELS].mean()
F.cross_entropy(logits, labels, label_smoothing=0.1).shape   ==>  ()
F.cross_entropy(logits, labels, reduction="none").shape   ==>  (2,)
F.cross_entropy(logits, labels.float())                 !!!  long()
F.cross_entropy(logits, ek.tensor([0, 5]))              !!!  5
F.cross_entropy(logits, ek.tensor([0, 1, 2]))           !!!  3
F.cross_entropy(logits, [0, 1])                         +=>  F.cross_entropy(ek.tensor(LOGITS), ek.tensor([0, 1])).item()
F.nll_loss(F.log_softmax(logits, 1), labels)            ==>  F.cross_entropy(ek.tensor(LOGITS), ek.tensor(LABELS)).item()
F.nll_loss(logits, labels.float())                      !!!  long()
F.nll_loss(logits, 0)                                   !!!  class indices
F.cross_entropy(logits, 0)                              !!!  class indices
F.binary_cross_entropy(ek.sigmoid(v), ek.ones(3))       ==>  np.log1p(np.exp(-V)).mean()
F.binary_cross_entropy_with_logits(v, ek.ones(3))       ==>  np.log1p(np.exp(-V)).mean()
F.kl_div(F.log_softmax(logits, 1), F.softmax(logits, 1), reduction="batchmean")   ==>  np.float32(0)
F.cosine_similarity(x, x, dim=1)                        ==>  np.ones(2, 'f4')
F.pairwise_distance(x, x + 1).shape                     ==>  (2,)
F.normalize(x, dim=1)                                   ==>  X / np.linalg.norm(X, axis=1, keepdims=True)
F.layer_norm(x, (3,)).shape                             ==>  (2, 3)
F.batch_norm(x, ek.zeros(3), ek.ones(3))                ==>  X / np.sqrt(1 + 1e-5)
F.group_norm(img, 2).shape                              ==>  (1, 2, 4, 4)
F.instance_norm(img).shape                              ==>  (1, 2, 4, 4)
F.pad(x, (1, 2))                                        ==>  np.pad(X, ((0, 0), (1, 2)))
F.pad(x, (1, 1, 0, 2), value=9.0)                       ==>  np.pad(X, ((0, 2), (1, 1)), constant_values=9)
F.pad(img, (1, 1, 1, 1), mode="reflect")                ==>  np.pad(IMG, ((0, 0), (0, 0), (1, 1), (1, 1)), mode='reflect')
F.conv2d(img, ek.ones(3, 2, 3, 3), padding=1).shape     ==>  (1, 3, 4, 4)
F.conv1d(ek.ones(1, 2, 5), ek.ones(4, 2, 3)).shape      ==>  (1, 4, 3)
F.conv_transpose2d(img, ek.ones(2, 3, 2, 2), stride=2).shape   ==>  (1, 3, 8, 8)
F.max_pool2d(img, 2)                                    ==>  IMG.reshape(1, 2, 2, 2, 2, 2).max((3, 5))
F.avg_pool2d(img, kernel_size=2)                        ==>  IMG.reshape(1, 2, 2, 2, 2, 2).mean((3, 5))
F.adaptive_avg_pool2d(img, 1)                           ==>  IMG.mean((2, 3), keepdims=True)
F.adaptive_avg_pool2d(img, (1, 1))                      ==>  IMG.mean((2, 3), keepdims=True)
F.interpolate(img, scale_factor=2, mode="nearest")      ==>  IMG.repeat(2, 2).repeat(2, 3)
F.unfold(img, 2).shape                                  ==>  (1, 8, 9)
F.scaled_dot_product_attention(img, img, img).shape     ==>  (1, 2, 4, 4)
F.scaled_dot_product_attention(img, img, img, is_causal=True).shape   ==>  (1, 2, 4, 4)
F.scaled_dot_product_attention(img, img, img, attn_mask=ek.ones(4, 4, dtype=ek.bool)).shape   ==>  (1, 2, 4, 4)
F.gumbel_softmax(logits, hard=True).sum(-1)             ==>  np.ones(2, 'f4')
F.triplet_margin_loss(x, x, x + 1).shape                ==>  ()
F.cosine_embedding_loss(x, x, ek.ones(2))               ==>  np.float32(0)
F.margin_ranking_loss(v, v, ek.ones(3))                 ==>  np.float32(0)
F.hinge_embedding_loss(v, ek.ones(3))                   ==>  V.mean()
F.pixel_shuffle(ek.ones(1, 4, 2, 2), 2).shape           ==>  (1, 1, 4, 4)
ek.nn.functional.relu(x)                                ==>  X
ek.nn.functional.rrelu(x)                               !~!  leaky_relu
""",
}


class Habit(NamedTuple):
    """A line: what is typed, and what it gives, or what the refusal says."""

    section: str
    code: str
    expected: str
    kind: str  # a mark of MARKS

    @property
    def refused(self) -> bool:
        """Whether Eshkol refuses it."""
        return self.kind in ("!!!", "!~!")

    @property
    def same(self) -> bool:
        """Whether it does what it does in PyTorch."""
        return self.kind in ("==>", "!!!")


MARKS = ("==>", "!!!", "~=>", "!~!", "+=>")


def habits(sections: dict[str, str]) -> list[Habit]:
    """The lines of all sections."""
    found = []
    for section, text in sections.items():
        for line in filter(None, text.splitlines()):
            mark = next(mark for mark in MARKS if f" {mark} " in line)
            code, _, expected = line.partition(f" {mark} ")
            found.append(Habit(section, code.strip(), expected.strip(), mark))
    return found
