"""The lines of `torch_lines.py` on models, optimizers, data, files and distributions, in the same form."""

from __future__ import annotations

# ruff: noqa: E501  # a line of a table is one line

SECTIONS: dict[str, str] = {
    "nn": r"""
ek.nn.Linear(3, 2)(x).shape                             ==>  (2, 2)
ek.nn.Linear(3, 2, bias=False).bias is None             ==>  True
ek.nn.Linear(3, 2, device="cpu", dtype=ek.float64).weight.dtype == ek.float64   ==>  True
ek.nn.Linear(in_features=3, out_features=2).weight.shape   ==>  (2, 3)
ek.nn.Conv2d(2, 3, 3, padding=1)(img).shape             ==>  (1, 3, 4, 4)
ek.nn.Conv2d(2, 3, kernel_size=3, padding="same")(img).shape   ==>  (1, 3, 4, 4)
ek.nn.Conv1d(2, 3, 3)(ek.ones(1, 2, 5)).shape           ==>  (1, 3, 3)
ek.nn.ConvTranspose2d(2, 3, 2, stride=2)(img).shape     ==>  (1, 3, 8, 8)
ek.nn.MaxPool2d(2)(img).shape                           ==>  (1, 2, 2, 2)
ek.nn.AvgPool2d(kernel_size=2, stride=2)(img).shape     ==>  (1, 2, 2, 2)
ek.nn.AdaptiveAvgPool2d((1, 1))(img).shape              ==>  (1, 2, 1, 1)
ek.nn.BatchNorm1d(3)(x).shape                           ==>  (2, 3)
ek.nn.BatchNorm2d(2).running_var                        ==>  np.ones(2, 'f4')
ek.nn.LayerNorm(3)(x).shape                             ==>  (2, 3)
ek.nn.GroupNorm(2, 2)(img).shape                        ==>  (1, 2, 4, 4)
ek.nn.Embedding(5, 4)(k).shape                          ==>  (2, 3, 4)
ek.nn.Embedding(num_embeddings=5, embedding_dim=4, padding_idx=0).weight[0].detach()   ==>  np.zeros(4, 'f4')
ek.nn.Embedding.from_pretrained(m)(i)                   ==>  M[I]
ek.nn.Dropout(0.5).eval()(x)                            ==>  X
ek.nn.Dropout(p=0.5, inplace=True).p                    ==>  0.5
ek.nn.Flatten()(img).shape                              ==>  (1, 32)
ek.nn.Identity()(x)                                     ==>  X
ek.nn.ReLU(inplace=True)(x - 3)                         ==>  np.maximum(X - 3, 0)
ek.nn.Softmax(dim=1)(x).sum(1)                          ==>  np.ones(2, 'f4')
ek.nn.LeakyReLU(0.1)(-v)                                ==>  -0.1 * V
ek.nn.Sequential(ek.nn.Linear(3, 4), ek.nn.Tanh(), ek.nn.Linear(4, 1))(x).shape   ==>  (2, 1)
ek.nn.Sequential(OrderedDict([("one", ek.nn.Linear(3, 4)), ("two", ek.nn.ReLU())])).one.weight.shape   ==>  (4, 3)
len(ek.nn.Sequential(ek.nn.ReLU(), ek.nn.ReLU()))       ==>  2
type(ek.nn.Sequential(ek.nn.ReLU(), ek.nn.Tanh())[1]).__name__   ==>  'Tanh'
s = ek.nn.Sequential(ek.nn.Linear(3, 3)); s.append(ek.nn.ReLU()); len(s)   ==>  2
s = ek.nn.Sequential(ek.nn.Linear(3, 3)); s.add_module("act", ek.nn.ReLU()); len(s)   ==>  2
ek.nn.ModuleList([ek.nn.Linear(3, 3) for _ in range(2)])[1](x).shape   ==>  (2, 3)
len(list(ek.nn.ModuleDict({"a": ek.nn.Linear(3, 3)}).parameters()))   ==>  2
ek.nn.ParameterList([ek.nn.Parameter(ek.ones(2))])[0].detach()   ==>  np.ones(2, 'f4')
ek.nn.Parameter(ek.ones(2)).requires_grad               ==>  True
ek.nn.Parameter(ek.ones(2), requires_grad=False).requires_grad   ==>  False
isinstance(ek.nn.Parameter(ek.ones(2)), ek.nn.Parameter)   ==>  True
isinstance(ek.nn.Parameter(ek.ones(2)), ek.Tensor)      ==>  True
ek.nn.LSTM(3, 5, batch_first=True)(x[None])[0].shape    ==>  (1, 2, 5)
ek.nn.LSTM(3, 5, num_layers=2)(x[:, None])[1][0].shape   ==>  (2, 1, 5)
ek.nn.GRU(input_size=3, hidden_size=5)(x[:, None])[1].shape   ==>  (1, 1, 5)
ek.nn.RNN(3, 5, bidirectional=True)(x[:, None])[0].shape   ==>  (2, 1, 10)
ek.nn.LSTMCell(3, 5)(x)[0].shape                        ==>  (2, 5)
ek.nn.MultiheadAttention(4, 2, batch_first=True)(img[0], img[0], img[0])[0].shape   ==>  (2, 4, 4)
ek.nn.TransformerEncoderLayer(d_model=4, nhead=2, batch_first=True)(img[0]).shape   ==>  (2, 4, 4)
ek.nn.TransformerEncoder(ek.nn.TransformerEncoderLayer(4, 2), num_layers=2)(img[0]).shape   ==>  (2, 4, 4)
ek.nn.Upsample(scale_factor=2)(img).shape               ==>  (1, 2, 8, 8)
ek.nn.Unflatten(1, (3, 1))(x).shape                     ==>  (2, 3, 1)
ek.nn.ZeroPad2d(1)(img).shape                           ==>  (1, 2, 6, 6)
ek.nn.Hardswish()(v + 3)                                ==>  V + 3
ek.nn.MSELoss()(x, ek.zeros(2, 3))                      ==>  (X ** 2).mean()
ek.nn.MSELoss(reduction="sum")(x, ek.zeros(2, 3))       ==>  (X ** 2).sum()
ek.nn.CrossEntropyLoss()(logits, labels).shape          ==>  ()
ek.nn.CrossEntropyLoss(weight=ek.ones(3), ignore_index=-100)(logits, labels).shape   ==>  ()
ek.nn.BCEWithLogitsLoss()(v, ek.ones(3))                ==>  np.log1p(np.exp(-V)).mean()
ek.nn.NLLLoss()(ek.log_softmax(logits, 1), labels).shape   ==>  ()
ek.nn.L1Loss()(v, 2 * v)                                ==>  V.mean()
ek.nn.MarginRankingLoss(margin=0.5)(v, v, ek.ones(3))   ==>  np.float32(0.5)
ek.nn.HingeEmbeddingLoss()(v, ek.ones(3))               ==>  V.mean()
ek.nn.PairwiseDistance(p=2)(x, x).shape                 ==>  (2,)
ek.nn.Unfold(2)(img).shape                              ==>  (1, 8, 9)
ek.nn.PixelUnshuffle(2)(img).shape                      ==>  (1, 8, 2, 2)
ek.nn.LazyLinear(4)                                     !~!  features come in
sum(p.numel() for p in model.parameters())              ==>  21
[n for n, p in model.named_parameters()]                ==>  ['0.weight', '0.bias', '2.weight', '2.bias']
len(list(model.children()))                             ==>  3
[n for n, c in model.named_children()]                  ==>  ['0', '1', '2']
len(list(model.modules()))                              ==>  4
[n for n, c in model.named_modules()]                   ==>  ['', '0', '1', '2']
sorted(model.state_dict())                              ==>  ['0.bias', '0.weight', '2.bias', '2.weight']
model.load_state_dict(model.state_dict()); True         ==>  True
str(model.load_state_dict(model.state_dict()))          ==>  '<All keys matched successfully>'
model.load_state_dict({}, strict=False).missing_keys    ==>  ['0.weight', '0.bias', '2.weight', '2.bias']
model.load_state_dict({})                               !!!  0.weight
model.train().training                                  ==>  True
a = model.eval().training; model.train(); a             ==>  False
model.train(False).training                             ==>  False
model.zero_grad() is None                               ==>  True
model.to("cpu") is model                                ==>  True
next(ek.nn.Linear(1, 1).double().parameters()).dtype == ek.float64   ==>  True
next(ek.nn.Linear(1, 1).to(ek.float64).parameters()).dtype == ek.float64   ==>  True
ek.nn.Linear(1, 1).half().weight.dtype == ek.float16    ==>  True
model.apply(lambda module: None) is model               ==>  True
model.requires_grad_(True) is model                     ==>  True
a = ek.nn.Linear(2, 2).requires_grad_(False); any(p.requires_grad for p in a.parameters())   ==>  False
model[0].weight.shape                                   ==>  (4, 3)
model.get_parameter("0.weight").shape                   ==>  (4, 3)
type(model.get_submodule("2")).__name__                 ==>  'Linear'
a = ek.nn.Module(); a.register_buffer("b", ek.ones(2)); list(a.state_dict())   ==>  ['b']
a = ek.nn.Module(); a.register_parameter("p", ek.nn.Parameter(ek.ones(2))); len(list(a.parameters()))   ==>  1
h = model.register_forward_hook(lambda mod, args, out: None); h.remove() is None   ==>  True
copy.deepcopy(model)(x).shape                           ==>  (2, 1)
ek.nn.init.xavier_uniform_(ek.empty(3, 4)).shape        ==>  (3, 4)
ek.nn.init.kaiming_normal_(ek.empty(3, 4), nonlinearity="relu").shape   ==>  (3, 4)
ek.nn.init.kaiming_uniform_(ek.empty(3, 4), a=5 ** 0.5).shape   ==>  (3, 4)
ek.nn.init.zeros_(ek.ones(2))                           ==>  np.zeros(2, 'f4')
ek.nn.init.constant_(ek.ones(2), 3.0)                   ==>  np.full(2, 3, 'f4')
ek.nn.init.normal_(ek.empty(3), mean=0.0, std=0.02).shape   ==>  (3,)
ek.nn.init.uniform_(ek.empty(3), -1, 1).shape           ==>  (3,)
ek.nn.init.orthogonal_(ek.empty(3, 3)).shape            ==>  (3, 3)
ek.nn.init.eye_(ek.empty(3, 3))                         ==>  np.eye(3)
ek.nn.init.trunc_normal_(ek.empty(3), std=0.02).shape   ==>  (3,)
ek.nn.init.ones_(model[1].weight if hasattr(model[1], "weight") else ek.empty(2))   ==>  np.ones(2, 'f4')
ek.nn.init.calculate_gain("relu")                       ==>  2 ** 0.5
float(ek.nn.utils.clip_grad_norm_(model.parameters(), 1.0)) >= 0   ==>  True
ek.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0, norm_type=2.0).shape   ==>  ()
model(x).sum().backward(); ek.nn.utils.clip_grad_value_(model.parameters(), 0.5) is None   ==>  True
ek.nn.utils.parameters_to_vector(model.parameters()).shape   ==>  (21,)
ek.nn.utils.vector_to_parameters(ek.zeros(21), copy.deepcopy(model).parameters()) is None   ==>  True
ek.nn.utils.rnn.pad_sequence([v, v[:2]], batch_first=True)   ==>  np.float32([[1, 2, 3], [1, 2, 0]])
ek.nn.functional.softmax(x, -1).shape                   ==>  (2, 3)
ek.nn.DataParallel(model)                               !~!  DataParallel
""",
    "optim": r"""
opt = ek.optim.SGD(model.parameters(), lr=0.1); opt.param_groups[0]["lr"]   ==>  0.1
opt = ek.optim.SGD(model.parameters(), 0.1); opt.param_groups[0]["lr"]   ==>  0.1
opt = ek.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4, nesterov=True); True   ==>  True
opt = ek.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.99), eps=1e-8, weight_decay=0.0); opt.param_groups[0]["betas"]   ==>  (0.9, 0.99)
opt = ek.optim.Adam(model.parameters(), amsgrad=True); True   ==>  True
opt = ek.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01); len(opt.param_groups[0]["params"])   ==>  4
opt = ek.optim.RMSprop(model.parameters(), lr=0.01, alpha=0.99); True   ==>  True
opt = ek.optim.Adagrad(model.parameters(), lr=0.01); True   ==>  True
opt = ek.optim.SGD([{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 1e-3}], lr=1e-2); [g["lr"] for g in opt.param_groups]   ==>  [1e-2, 1e-3]
w = ek.ones(2, requires_grad=True); opt = ek.optim.SGD([w], lr=0.5); (w ** 2).sum().backward(); opt.step(); w.detach()   ==>  np.zeros(2, 'f4')
w = ek.ones(2, requires_grad=True); opt = ek.optim.SGD([w], lr=0.5); w.sum().backward(); opt.zero_grad(); w.grad is None   ==>  True
opt = ek.optim.SGD(model.parameters(), lr=0.1); opt.zero_grad(set_to_none=True) is None   ==>  True
opt = ek.optim.SGD(model.parameters(), lr=0.1); opt.load_state_dict(opt.state_dict()) is None   ==>  True
opt = ek.optim.Adam(model.parameters()); sorted(opt.state_dict())[:1]   ==>  ['param_groups']
opt = ek.optim.SGD(model.parameters(), lr=0.1); opt.param_groups[0]["lr"] = 0.01; opt.param_groups[0]["lr"]   ==>  0.01
opt = ek.optim.SGD(model[0].parameters(), lr=0.1); opt.add_param_group({"params": model[2].parameters()}); len(opt.param_groups)   ==>  2
opt = ek.optim.SGD(model.parameters(), lr=0.1); opt.defaults["lr"]   ==>  0.1
w = ek.ones(2, requires_grad=True); opt = ek.optim.SGD([w], lr=0.5); float(opt.step(lambda: [opt.zero_grad(), (l := (w ** 2).sum()), l.backward()][1]))   ==>  2.0
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.StepLR(opt, step_size=1, gamma=0.1); opt.step(); s.step(); opt.param_groups[0]["lr"]   ==>  0.1
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.StepLR(opt, 2); s.get_last_lr()   ==>  [1.0]
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=2); s.step(); round(s.get_last_lr()[0], 6)   ==>  0.5
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.ExponentialLR(opt, gamma=0.5); s.step(); s.get_last_lr()   ==>  [0.5]
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.MultiStepLR(opt, milestones=[1], gamma=0.5); s.step(); s.get_last_lr()   ==>  [0.5]
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.LambdaLR(opt, lr_lambda=lambda e: 1 / (e + 1)); s.step(); s.get_last_lr()   ==>  [0.5]
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.ReduceLROnPlateau(opt, mode="min", factor=0.5, patience=0); s.step(1.0); s.step(2.0); opt.param_groups[0]["lr"]   ==>  0.5
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=10); s.get_last_lr()[0] < 1   ==>  True
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.LinearLR(opt, start_factor=0.5, total_iters=2); s.get_last_lr()   ==>  [0.5]
opt = ek.optim.SGD(model.parameters(), lr=1.0); s = ek.optim.lr_scheduler.StepLR(opt, 2); s.load_state_dict(s.state_dict()); True   ==>  True
ek.optim.LBFGS(model.parameters())                      !~!  LBFGS
ek.optim.Adamax(model.parameters())                     !~!  use Adam
ek.optim.lr_scheduler.CyclicLR                          !~!  CyclicLR
""",
    "data": r"""
ds = ek.utils.data.TensorDataset(x, labels); len(ds)    ==>  2
ds = ek.utils.data.TensorDataset(x, labels); ds[1][0]   ==>  X[1]
dl = ek.utils.data.DataLoader(ek.utils.data.TensorDataset(x, labels), batch_size=2); next(iter(dl))[0]   ==>  X
dl = ek.utils.data.DataLoader(ek.utils.data.TensorDataset(x, labels), batch_size=1, shuffle=True); len(dl)   ==>  2
dl = ek.utils.data.DataLoader(ek.utils.data.TensorDataset(x, labels), batch_size=2, num_workers=0, pin_memory=True, drop_last=True); len(dl)   ==>  1
[b.shape for b, in ek.utils.data.DataLoader(ek.utils.data.TensorDataset(x), batch_size=1)]   ==>  [(1, 3), (1, 3)]
a, b = ek.utils.data.random_split(ek.utils.data.TensorDataset(ek.arange(10)), [8, 2]); len(a), len(b)   ==>  (8, 2)
a, b = ek.utils.data.random_split(ek.utils.data.TensorDataset(ek.arange(10)), [0.8, 0.2], generator=ek.Generator().manual_seed(0)); len(b)   ==>  2
ek.utils.data.Subset(ek.utils.data.TensorDataset(v), [2])[0][0].item()   ==>  3.0
len(ek.utils.data.ConcatDataset([ek.utils.data.TensorDataset(v), ek.utils.data.TensorDataset(v)]))   ==>  6
issubclass(ek.utils.data.IterableDataset, object)       ==>  True
len(list(ek.utils.data.DataLoader([1.0, 2.0, 3.0], batch_size=2)))   ==>  2
next(iter(ek.utils.data.DataLoader([(1.0, 0), (2.0, 1)], batch_size=2)))[1]   ==>  np.int64([0, 1])
next(iter(ek.utils.data.DataLoader(ek.utils.data.TensorDataset(x), batch_size=2, collate_fn=len)))   ==>  2
len(list(ek.utils.data.WeightedRandomSampler([0.5, 0.5], 4)))   ==>  4
sorted(ek.utils.data.RandomSampler(ek.utils.data.TensorDataset(v)))   ==>  [0, 1, 2]
list(ek.utils.data.SequentialSampler(ek.utils.data.TensorDataset(v)))   ==>  [0, 1, 2]
sorted(ek.utils.data.SubsetRandomSampler([2, 0]))       ==>  [0, 2]
list(ek.utils.data.BatchSampler(ek.utils.data.SequentialSampler([1, 2, 3]), 2, False))   ==>  [[0, 1], [2]]
ek.utils.data.default_collate([v, v])                   ==>  np.stack([V, V])
ek.utils.data.get_worker_info() is None                 ==>  True
T.Compose([T.ToTensor(), T.Normalize((0.5,), (0.5,))])(np.zeros((4, 4, 1), np.uint8)).shape   +=>  (1, 4, 4)
T.ToTensor()(np.full((2, 2, 1), 255, np.uint8))         +=>  np.ones((1, 2, 2), 'f4')
T.RandomHorizontalFlip(p=1.0)(img[0])                   +=>  IMG[0, :, :, ::-1]
T.CenterCrop(2)(img[0])                                 +=>  IMG[0, :, 1:3, 1:3]
T.RandomCrop(2)(img[0]).shape                           +=>  (2, 2, 2)
T.Lambda(lambda t: t * 2)(v)                            +=>  2 * V
T.Resize((8, 8))(img[0]).shape                          +=>  (2, 8, 8)
T.ColorJitter()                                         !!!  ColorJitter
""",
    "files": r"""
ek.save({"a": x}, tmp + "/a.pt"); ek.load(tmp + "/a.pt")["a"]   ==>  X
ek.save(x, tmp + "/x.pt"); ek.load(tmp + "/x.pt")       ==>  X
ek.save(model.state_dict(), tmp + "/m.pt"); model.load_state_dict(ek.load(tmp + "/m.pt")); True   ==>  True
ek.save(model.state_dict(), tmp + "/m.pth"); sorted(ek.load(tmp + "/m.pth", map_location="cpu"))   ==>  sorted(model.state_dict())
ek.save(model.state_dict(), tmp + "/m.pt"); ek.load(tmp + "/m.pt", weights_only=True)["0.bias"].shape   ==>  (4,)
ek.save({"epoch": 3, "model": model.state_dict(), "loss": 0.5}, tmp + "/c.pt"); ek.load(tmp + "/c.pt")["epoch"]   ==>  3
opt = ek.optim.Adam(model.parameters()); ek.save({"opt": opt.state_dict()}, tmp + "/o.pt"); opt.load_state_dict(ek.load(tmp + "/o.pt")["opt"]) is None   ==>  True
ek.save({"a": x}, tmp + "/a.safetensors"); ek.load(tmp + "/a.safetensors")["a"]   +=>  X
ek.save(x, tmp + "/x.npy"); ek.load(tmp + "/x.npy")     ==>  X
ek.save({"a": x}, tmp + "/x.npz"); ek.load(tmp + "/x.npz")["a"]   ==>  X
ek.save(model, tmp + "/whole.pt")                       !~!  state_dict()
ek.load(tmp + "/none.pt")                               !!!  none.pt
ek.load(tmp + "/m.pt", weights_only=False)              !~!  weights_only
ek.save(x, tmp + "/x.unknown")                          !~!  .safetensors
buffer = io.BytesIO(); ek.save({"a": x}, buffer); buffer.seek(0); ek.load(buffer)["a"]   ==>  X
""",
    "distributions": r"""
D.Normal(0.0, 1.0).log_prob(ek.tensor(0.0))             ==>  np.float32(-0.5 * np.log(2 * np.pi))
D.Normal(ek.zeros(3), ek.ones(3)).sample().shape        ==>  (3,)
D.Normal(0.0, 1.0).sample((4,)).shape                   ==>  (4,)
D.Normal(ek.zeros(3), 1.0).rsample((2,)).shape          ==>  (2, 3)
D.Normal(0.0, 1.0).entropy()                            ==>  np.float32(0.5 + 0.5 * np.log(2 * np.pi))
D.Normal(1.0, 2.0).mean, D.Normal(1.0, 2.0).stddev      ==>  (np.float32(1), np.float32(2))
D.Normal(0.0, 1.0).cdf(ek.tensor(0.0))                  ==>  np.float32(0.5)
D.Normal(loc=0.0, scale=-1.0)                           !!!  scale
D.Uniform(0.0, 2.0).log_prob(ek.tensor(1.0))            ==>  np.float32(-np.log(2))
D.Uniform(0.0, 2.0).mean                                ==>  np.float32(1)
D.Bernoulli(0.25).log_prob(ek.tensor(1.0))              ==>  np.float32(np.log(0.25))
D.Bernoulli(logits=ek.zeros(2)).probs                   ==>  np.full(2, 0.5, 'f4')
D.Bernoulli(0.5).entropy()                              ==>  np.float32(np.log(2))
D.Categorical(logits=logits).sample().shape             ==>  (2,)
D.Categorical(probs=ek.tensor([0.25, 0.75])).log_prob(ek.tensor(1))   ==>  np.float32(np.log(0.75))
D.Categorical(logits=logits).log_prob(labels)           ==>  (LOGITS - np.log(np.exp(LOGITS).sum(1, keepdims=True)))[[0, 1], LABELS]
D.Categorical(ek.ones(4) / 4).entropy()                 ==>  np.float32(np.log(4))
D.Categorical(logits=logits).sample((5,)).shape         ==>  (5, 2)
D.Exponential(2.0).log_prob(ek.tensor(1.0))             ==>  np.float32(np.log(2) - 2)
D.Laplace(0.0, 1.0).log_prob(ek.tensor(1.0))            ==>  np.float32(-1 - np.log(2))
D.Gamma(2.0, 1.0).log_prob(ek.tensor(1.0))              ==>  np.float32(-1)
D.Beta(2.0, 2.0).log_prob(ek.tensor(0.5))               ==>  np.float32(np.log(1.5))
D.Beta(2.0, 2.0).sample((3,)).shape                     ==>  (3,)
D.Dirichlet(ek.ones(3)).sample().sum()                  ==>  np.float32(1)
D.Dirichlet(ek.ones(3)).log_prob(ek.ones(3) / 3)        ==>  np.float32(np.log(2))
D.Poisson(2.0).log_prob(ek.tensor(1.0))                 ==>  np.float32(np.log(2) - 2)
D.Geometric(0.5).log_prob(ek.tensor(1.0))               ==>  np.float32(2 * np.log(0.5))
D.Gumbel(0.0, 1.0).log_prob(ek.tensor(0.0))             ==>  np.float32(-1)
D.LogNormal(0.0, 1.0).log_prob(ek.tensor(1.0))          ==>  np.float32(-0.5 * np.log(2 * np.pi))
D.StudentT(3.0).sample((2,)).shape                      ==>  (2,)
D.MultivariateNormal(ek.zeros(2), ek.eye(2)).log_prob(ek.zeros(2))   ==>  np.float32(-np.log(2 * np.pi))
D.MultivariateNormal(v, covariance_matrix=m).sample((2,)).shape   ==>  (2, 3)
D.Independent(D.Normal(ek.zeros(3), ek.ones(3)), 1).log_prob(ek.zeros(3))   ==>  np.float32(-1.5 * np.log(2 * np.pi))
D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(1.0, 1.0))   ==>  np.float32(0.5)
D.kl_divergence(D.Categorical(logits=logits), D.Categorical(logits=logits))   ==>  np.zeros(2, 'f4')
D.OneHotCategorical(logits=logits).sample().sum(-1)     ==>  np.ones(2, 'f4')
D.VonMises                                              !~!  VonMises
""",
    "the rest": r"""
ek.__version__ != ""                                    ==>  True
ek.pi                                                   ==>  np.pi
ek.inf, ek.e                                            ==>  (np.inf, np.e)
ek.jit(lambda t: t * 2)(v)                              +=>  2 * V
ek.compile(lambda t: t * 2)(v)                          ==>  2 * V
ek.compile(model)(x).shape                              ==>  (2, 1)
ek.jit.script(lambda t: t * 2)(v)                       +=>  2 * V
ek.jit.trace(lambda t: t * 2, v)(v)                     +=>  2 * V
ek.onnx                                                 !~!  onnx
ek.distributed                                          !~!  distributed
ek.sparse_coo_tensor                                    !~!  to_sparse
ek.quantize_per_tensor                                  !~!  quantize_per_tensor
ek.nosuchname                                           !!!  nosuchname
x.nosuchname                                            !!!  nosuchname
x.share_memory_()                                       !~!  share_memory_
ek.ones((2, 3)) + ek.ones(2)                            !!!  axis -1 is 3 and 2
ek.ones(2, 3) @ ek.ones(2, 3)                           !!!  3
ek.nn.Linear(3, 2)(ek.ones(2, 4))                       !!!  4
ek.zeros(2, 3).view(4)                                  !!!  4
x.view(dtype=ek.int32)                                  !~!  view
x.sum(dim=5)                                            !!!  5
x.sum(dims=1, axis=1)                                   !!!  sum
ek.zeros(2.5)                                           !!!  2.5
ek.cat([x, v])                                          !!!  cat
ek.tensor([[1, 2], [3]])                                !!!  row
ek.from_dlpack(x)                                       ==>  X
ek.clone(x)                                             ==>  X
ek.detach(x)                                            ==>  X
ek.view_as_real(ek.complex(v, v)).shape                 ==>  (3, 2)
ek.polar(v, ek.zeros(3)).real                           ==>  V
ek.angle(ek.complex(v, v))                              ==>  np.full(3, np.pi / 4)
ek.bool, ek.int8, ek.uint8                              +=>  (ek.bool_, ek.int8, ek.uint8)
ek.use_deterministic_algorithms(True) is None           ==>  True
ek.autocast(device_type="cpu", dtype=ek.bfloat16).__class__.__name__   ==>  'autocast'
ek.typename(x)                                          +=>  'ek.Tensor'
ek.result_type(x, 1.0) == ek.float32                    ==>  True
ek.can_cast(ek.float32, ek.int32)                       ==>  False
ek.multiprocessing                                      !~!  multiprocessing
""",
}
