"""One-line habits of people who come from JAX: an expression in JAX's spelling, and what it gives, by NumPy.

Comes in: nothing. Goes out: `HABITS` (expression, expected), `REFUSED` (expression, what the message must name), and
the names that both sides know. `jax`, `jnp`, `lax`, `random`, `nn` are ours in `test_jax.py`, and JAX's own in
`tests/peers/test_jax.py`, which runs the same text.
"""

from __future__ import annotations

import functools
import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import scipy.special as sps

SECTIONS = {
    "derivatives": """
jax.grad(f)(x) | 2 * nx
jax.grad(lambda a, b: (a * b).sum(), argnums=1)(x, x) | nx
jax.grad(lambda a, b: (a * b).sum(), argnums=(0, 1))(x, 2 * x) | (2 * nx, nx)
jax.grad(lambda p: p['w'].sum() * p['b'])({'w': x, 'b': jnp.array(3.0)}) | {'b': 6.0, 'w': [3.0, 3.0, 3.0]}
jax.grad(lambda a: (f(a), a * 2), has_aux=True)(x) | (2 * nx, 2 * nx)
jax.value_and_grad(f)(x) | (14.0, 2 * nx)
jax.value_and_grad(lambda a, b: f(a) + f(b), argnums=(0, 1))(x, x) | (28.0, (2 * nx, 2 * nx))
jax.value_and_grad(lambda a: (f(a), a), has_aux=True)(x) | ((14.0, nx), 2 * nx)
jax.grad(jax.grad(lambda t: t**3))(jnp.array(2.0)) | 12.0
jax.jacfwd(jnp.sin)(x) | np.diag(np.cos(nx))
jax.jacrev(jnp.sin)(x) | np.diag(np.cos(nx))
jax.jacfwd(lambda a, b: a * b, argnums=(0, 1))(x, 2 * x) | (np.diag(2 * nx), np.diag(nx))
jax.jacrev(lambda a: {'y': a * a})(x) | {'y': np.diag(2 * nx)}
jax.jacfwd(lambda a: (a * a, f(a)), has_aux=True)(x) | (np.diag(2 * nx), 14.0)
jax.hessian(lambda a: (a**3).sum())(x) | np.diag(6 * nx)
jax.vjp(jnp.sin, x)[0] | np.sin(nx)
jax.vjp(jnp.sin, x)[1](jnp.ones(3)) | (np.cos(nx),)
jax.vjp(lambda a: (a * a, 7.0), x, has_aux=True)[2] | 7.0
jax.jvp(jnp.sin, (x,), (jnp.ones(3),)) | (np.sin(nx), np.cos(nx))
jax.jvp(lambda a: (a * a, f(a)), (x,), (x,), has_aux=True) | (nx * nx, 2 * nx * nx, 14.0)
jax.linearize(jnp.sin, x)[1](jnp.ones(3)) | np.cos(nx)
jax.grad(lambda a: (lax.stop_gradient(a) * a).sum())(x) | nx
jax.grad(jax.checkpoint(f))(x) | 2 * nx
jax.grad(jax.remat(f))(x) | 2 * nx
jax.grad(with_own_jvp)(jnp.array(3.0)) | 30.0
jax.grad(with_own_vjp)(jnp.array(3.0)) | 100.0
jax.grad(lambda t: applied(jnp.sin, t))(jnp.array(1.0)) | 5.0
jax.grad(lambda t: jnp.where(t > 0, t * t, 0.0))(jnp.array(3.0)) | 6.0
""",
    "vmap and jit": """
jax.vmap(f)(M) | (nM**2).sum(1)
jax.vmap(jnp.dot, in_axes=(0, None))(M, x) | nM @ nx
jax.vmap(jnp.dot, in_axes=(None, 1))(x, M.T) | nM @ nx
jax.vmap(lambda a: a * 2, in_axes=1, out_axes=1)(M) | 2 * nM
jax.vmap(lambda a: a * 2, in_axes=1)(M) | 2 * nM.T
jax.vmap(lambda p: p['a'] + p['b'], in_axes=({'a': 0, 'b': None},))({'a': x, 'b': jnp.array(1.0)}) | nx + 1
jax.vmap(lambda p: (p, p.sum()))(M) | (nM, nM.sum(1))
jax.vmap(jax.vmap(lambda a, b: a * b, (None, 0)), (0, None))(x, x) | np.outer(nx, nx)
jax.vmap(jax.grad(f))(M) | 2 * nM
jax.vmap(lambda k: random.normal(k, (4,)))(random.split(key, 3)).shape | (3, 4)
jax.jit(f)(x) | 14.0
jax.jit(lambda a, n: a * n, static_argnums=1)(x, 3) | 3 * nx
jax.jit(lambda a, n: a * n, static_argnames='n')(x, n=3) | 3 * nx
jax.jit(lambda a, how: a + 1 if how == 'more' else a, static_argnames=('how',))(x, how='more') | nx + 1
jax.jit(lambda a: a + 1, donate_argnums=0)(jnp.zeros(2)) | [1.0, 1.0]
functools.partial(jax.jit, static_argnums=(1,))(lambda a, n: a**n)(x, 2) | nx**2
jax.jit(jax.grad(f))(x) | 2 * nx
jax.grad(jax.jit(f))(x) | 2 * nx
jax.jit(jax.vmap(f))(M) | (nM**2).sum(1)
jax.eval_shape(jnp.dot, jax.ShapeDtypeStruct((2, 3), jnp.float32), x).shape | (2,)
jax.eval_shape(lambda a: {'y': a[None]}, x)['y'].shape | (1, 3)
jax.ShapeDtypeStruct((2, 3), jnp.float32).shape | (2, 3)
jax.block_until_ready(f(x)) | 14.0
f(x).block_until_ready() | 14.0
jax.device_get({'a': x}) | {'a': nx}
jax.device_put(np.ones(3)) | np.ones(3)
isinstance(x, jax.Array) | True
""",
    "loops and branches": """
lax.scan(lambda c, a: (c + a, c * a), jnp.array(0.0), x) | (6.0, [0.0, 2.0, 9.0])
lax.scan(lambda c, _: (c * 2, None), jnp.array(1.0), None, length=5)[0] | 32.0
lax.scan(lambda c, a: (c + a, c), jnp.array(0.0), x, reverse=True)[1] | [5.0, 3.0, 0.0]
lax.scan(lambda c, p: (c + p['u'] * p['v'], None), jnp.array(0.0), {'u': x, 'v': x})[0] | 14.0
lax.fori_loop(0, 5, lambda i, c: c + i, jnp.array(0)) | 10
lax.while_loop(lambda c: c < 100, lambda c: c * 3, jnp.array(1)) | 243
lax.cond(x.sum() > 0, lambda a: a * 2, lambda a: a, x) | 2 * nx
lax.cond(False, lambda a: a * 2, lambda a: -a, x) | -nx
lax.switch(1, [jnp.sin, jnp.cos, jnp.tan], x) | np.cos(nx)
lax.switch(jnp.array(9), [jnp.sin, jnp.cos, jnp.tan], x) | np.tan(nx)
lax.map(lambda a: a * a, x) | nx**2
lax.associative_scan(jnp.add, x) | np.cumsum(nx)
lax.associative_scan(jnp.maximum, M, axis=1) | np.maximum.accumulate(nM, 1)
lax.associative_scan(jnp.add, x, reverse=True) | np.cumsum(nx[::-1])[::-1]
lax.associative_scan(lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1]), (x, x))[1] | [1.0, 4.0, 15.0]
jax.grad(lambda t: lax.fori_loop(0, 3, lambda i, c: c * t, jnp.array(1.0)))(jnp.array(2.0)) | 12.0
""",
    "lax": """
lax.add(x, 1.0) | nx + 1
lax.mul(x, x) | nx * nx
lax.max(x, 2.0) | np.maximum(nx, 2)
lax.min(x, 2.0) | np.minimum(nx, 2)
lax.select(x > 1, x, -x) | np.where(nx > 1, nx, -nx)
lax.select_n(x > 1, -x, x) | np.where(nx > 1, nx, -nx)
lax.clamp(1.5, x, 2.5) | np.clip(nx, 1.5, 2.5)
lax.dynamic_slice(M, (0, 1), (2, 2)) | nM[:, 1:]
lax.dynamic_slice(M, (jnp.array(1), jnp.array(5)), (1, 2)) | nM[1:, 1:]
lax.dynamic_slice_in_dim(x, 1, 2) | nx[1:]
lax.dynamic_index_in_dim(M, jnp.array(1), keepdims=False) | nM[1]
lax.dynamic_update_slice(x, jnp.array([9.0]), (1,)) | [1.0, 9.0, 3.0]
lax.dynamic_update_slice(x, jnp.array([8.0, 9.0]), (jnp.array(2),)) | [1.0, 8.0, 9.0]
lax.dynamic_update_slice_in_dim(M, jnp.zeros((2, 1)), 0, axis=1) | nM * [0, 1, 1]
lax.dynamic_update_index_in_dim(M, jnp.zeros(3), 0, axis=0) | nM * [[0], [1]]
lax.slice(M, (0, 1), (2, 3)) | nM[:, 1:]
lax.slice_in_dim(x, 0, 3, stride=2) | nx[::2]
lax.index_in_dim(M, 1, keepdims=False) | nM[1]
lax.pad(x, 0.0, [(1, 2, 1)]) | [0.0, 1.0, 0.0, 2.0, 0.0, 3.0, 0.0, 0.0]
lax.rev(x, (0,)) | nx[::-1]
lax.transpose(M, (1, 0)) | nM.T
lax.reshape(M, (3, 2)) | nM.reshape(3, 2)
lax.concatenate([x, x], 0) | np.concatenate([nx, nx])
lax.broadcast(x, (2,)) | np.stack([nx, nx])
lax.broadcast_in_dim(x, (3, 2), (0,)) | np.stack([nx, nx], 1)
lax.expand_dims(x, (0,)) | nx[None]
lax.collapse(M, 0, 2) | nM.ravel()
lax.iota(jnp.int32, 3) | [0, 1, 2]
lax.broadcasted_iota(jnp.int32, (2, 3), 1) | [[0, 1, 2], [0, 1, 2]]
lax.convert_element_type(x, jnp.int32) | [1, 2, 3]
lax.top_k(x, 2) | ([3.0, 2.0], [2, 1])
lax.sort(-x) | -nx[::-1]
lax.sort_key_val(-x, x) | (-nx[::-1], nx[::-1])
lax.cumsum(x) | np.cumsum(nx)
lax.cumprod(x, reverse=True) | [6.0, 6.0, 3.0]
lax.cummax(-x) | -np.ones(3)
lax.cumlogsumexp(x) | np.logaddexp.accumulate(nx)
lax.argmax(M, 1, jnp.int32) | [2, 2]
lax.reduce_sum(M, (0,)) | nM.sum(0)
lax.reduce_max(M, (1,)) | nM.max(1)
lax.dot(A, A) | nA @ nA
lax.dot_general(M, M, (((1,), (1,)), ((), ()))) | nM @ nM.T
lax.dot_general(jnp.stack([A, A]), jnp.stack([A, A]), (((2,), (1,)), ((0,), (0,)))) | np.stack([nA @ nA] * 2)
lax.rsqrt(x) | nx**-0.5
lax.logistic(x) | 1 / (1 + np.exp(-nx))
lax.erf_inv(x / 4) | sps.erfinv(nx / 4)
lax.integer_pow(x, 3) | nx**3
lax.rem(-x, 2.0) | np.fmod(-nx, 2)
lax.conv(image, kernel, (1, 1), 'VALID').shape | (1, 3, 3, 3)
lax.conv_general_dilated(image, kernel, (1, 1), 'SAME').shape | (1, 3, 5, 5)
lax.conv_general_dilated(image, kernel, (2, 2), [(1, 1), (1, 1)])[0, 0, 0, 0] | 124.0
lax.conv_general_dilated(last, back, (1, 1), 'SAME', dimension_numbers=('NHWC', 'HWIO', 'NHWC'))[0, 1, 1, 0] | 333.0
lax.conv_general_dilated(image, kernel, (1, 1), 'VALID', rhs_dilation=(2, 2)).shape | (1, 3, 1, 1)
""",
    "trees": """
jax.tree.map(lambda a: a * 2, {'a': x, 'b': [x]}) | {'a': 2 * nx, 'b': [2 * nx]}
jax.tree.map(lambda a, b: a + b, (x, x), (x, x)) | (2 * nx, 2 * nx)
jax.tree.map(lambda a, b: len(b), (1, 2), ((3, 4), (5,))) | (2, 1)
jax.tree.leaves({'b': 1, 'a': (2, None, [3])}) | [2, 3, 1]
jax.tree.leaves([(1, 2), 3], is_leaf=lambda a: isinstance(a, tuple)) | [(1, 2), 3]
jax.tree.flatten((1, [2, 3]))[0] | [1, 2, 3]
jax.tree.unflatten(jax.tree.structure((0, [0, 0])), [1, 2, 3]) | (1, [2, 3])
jax.tree.structure((1, [2])) == jax.tree.structure((3, [4])) | True
jax.tree.reduce(lambda a, b: a + b, {'a': 1, 'b': (2, 3)}) | 6
jax.tree.all((True, [True, False])) | False
jax.tree.transpose(jax.tree.structure([0, 0]), jax.tree.structure({'a': 0}), [{'a': 1}, {'a': 2}]) | {'a': [1, 2]}
jax.tree.structure((1, [2, 3])).num_leaves | 3
[jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path({'a': [1]})] | ["['a'][0]"]
jax.tree_util.tree_map(lambda a: a + 1, [1, 2]) | [2, 3]
jax.tree_util.tree_map_with_path(lambda p, a: a * len(p), {'a': 1, 'b': [2]}) | {'a': 1, 'b': [4]}
jax.tree_util.tree_leaves(jax.tree_util.Partial(max, 1, 2)) | [1, 2]
""",
    "indexed updates": """
x.at[0].set(9.0) | [9.0, 2.0, 3.0]
x.at[1:].add(1.0) | [1.0, 3.0, 4.0]
x.at[jnp.array([0, 0])].add(1.0) | [3.0, 2.0, 3.0]
x.at[jnp.array([0, 0])].multiply(2.0) | [4.0, 2.0, 3.0]
x.at[-1].min(0.5) | [1.0, 2.0, 0.5]
x.at[jnp.array([0, 0])].max(jnp.array([5.0, 4.0])) | [5.0, 2.0, 3.0]
x.at[x > 1].set(0.0) | [1.0, 0.0, 0.0]
x.at[1].get() | 2.0
x.at[0].divide(2.0) | [0.5, 2.0, 3.0]
x.at[0].power(2.0) | nx
x.at[1].apply(jnp.negative) | [1.0, -2.0, 3.0]
M.at[:, 1].set(0.0) | nM * [1, 0, 1]
M.at[1, 2].add(10.0) | nM + [[0, 0, 0], [0, 0, 10]]
M.at[jnp.array([0, 1]), jnp.array([2, 0])].set(jnp.array([7.0, 8.0])) | [[0.0, 1.0, 7.0], [8.0, 4.0, 5.0]]
jax.grad(lambda t: (x.at[1].set(t) ** 2).sum())(jnp.array(5.0)) | 10.0
""",
    "random numbers": """
random.PRNGKey(0).shape | (2,)
random.split(random.PRNGKey(0)).shape | (2, 2)
random.split(key, 5).shape[0] | 5
random.normal(key, (3,)).shape | (3,)
random.normal(key).shape | ()
random.normal(key, (2,), jnp.float16).dtype == jnp.float16 | True
random.normal(random.fold_in(key, 1), (2,)).shape | (2,)
bool((random.normal(key, (3,)) == random.normal(key, (3,))).all()) | True
bool((random.normal(key, (3,)) == random.normal(random.fold_in(key, 1), (3,))).any()) | False
random.uniform(key, (4,), minval=2.0, maxval=3.0).min() >= 2.0 | True
random.uniform(key, (4,), jnp.float32, -1.0, 0.0).max() <= 0.0 | True
random.randint(key, (5,), 0, 10).shape | (5,)
bool((random.randint(key, (50,), 3, 5) < 5).all()) | True
random.bernoulli(key, 0.5, (4,)).dtype == jnp.bool_ | True
random.bernoulli(key, p=1.0, shape=(2,)) | [True, True]
random.categorical(key, jnp.log(jnp.array([[0.0, 1.0], [1.0, 0.0]]))) | [1, 0]
sorted(random.permutation(key, 5).tolist()) | [0, 1, 2, 3, 4]
jnp.sort(random.permutation(key, x)) | nx
random.choice(key, 5, (3,)).shape | (3,)
jnp.sort(random.choice(key, x, (3,), replace=False)) | nx
random.choice(key, x, (2,), p=jnp.array([0.0, 1.0, 0.0])) | [2.0, 2.0]
random.truncated_normal(key, -1.0, 1.0, (4,)).max() <= 1.0 | True
random.gamma(key, 2.0, (3,)).shape | (3,)
random.beta(key, 2.0, 3.0, (3,)).shape | (3,)
random.dirichlet(key, jnp.ones(3)).sum() | 1.0
random.exponential(key, (3,)).min() > 0 | True
random.gumbel(key, (3,)).shape | (3,)
random.laplace(key, (3,)).shape | (3,)
random.cauchy(key, (3,)).shape | (3,)
random.logistic(key, (3,)).shape | (3,)
random.rademacher(key, (3,)).shape | (3,)
random.t(key, 3.0, (2,)).shape | (2,)
random.multivariate_normal(key, jnp.zeros(2), jnp.eye(2), (3,)).shape | (3, 2)
random.bits(key, (2,)).dtype == jnp.uint32 | True
jnp.round(random.orthogonal(key, 2) @ random.orthogonal(key, 2).T, 3) | np.eye(2)
""",
    "jax.numpy": """
jnp.array([[1, 2], [3, 4]]).shape | (2, 2)
jnp.zeros((2, 3)) | np.zeros((2, 3))
jnp.ones(3, dtype=jnp.int32) | np.ones(3)
jnp.full((2,), 7.0) | [7.0, 7.0]
jnp.arange(2, 8, 3) | [2, 5]
jnp.linspace(0.0, 1.0, 5) | np.linspace(0, 1, 5)
jnp.eye(2) | np.eye(2)
jnp.where(x > 1, x, 0.0) | np.where(nx > 1, nx, 0)
jnp.einsum('ij,j->i', M, x) | nM @ nx
jnp.vstack([x, x]) | np.vstack([nx, nx])
jnp.hstack([x, x]) | np.hstack([nx, nx])
jnp.stack([x, x], axis=1) | np.stack([nx, nx], 1)
jnp.concatenate([x, x]) | np.concatenate([nx, nx])
jnp.take_along_axis(M, jnp.array([[2], [0]]), axis=1) | [[2.0], [3.0]]
jnp.take(x, jnp.array([2, 0])) | [3.0, 1.0]
jnp.sum(M, axis=0, keepdims=True) | nM.sum(0, keepdims=True)
jnp.mean(M, axis=1) | nM.mean(1)
jnp.var(M, ddof=1) | nM.var(ddof=1)
jnp.std(M, axis=0) | nM.std(0)
jnp.max(M, axis=1) | nM.max(1)
jnp.argmax(M) | 5
jnp.sort(-x) | np.sort(-nx)
jnp.argsort(-x) | [2, 1, 0]
jnp.cumsum(M) | np.cumsum(nM)
jnp.clip(x, 1.5, 2.5) | np.clip(nx, 1.5, 2.5)
jnp.split(jnp.arange(6), 3)[1] | [2, 3]
jnp.split(x, [1])[1] | nx[1:]
jnp.transpose(M) | nM.T
jnp.reshape(M, (3, 2)) | nM.reshape(3, 2)
jnp.expand_dims(x, 0) | nx[None]
x[:, jnp.newaxis].shape | (3, 1)
jnp.repeat(x, 2) | np.repeat(nx, 2)
jnp.tile(x, (2, 1)) | np.tile(nx, (2, 1))
jnp.pad(x, (1, 2)) | np.pad(nx, (1, 2))
jnp.flip(x) | nx[::-1]
jnp.roll(x, 1) | np.roll(nx, 1)
jnp.outer(x, x) | np.outer(nx, nx)
jnp.dot(A, A) | nA @ nA
jnp.matmul(M, x) | nM @ nx
jnp.tensordot(A, A, axes=1) | nA @ nA
jnp.linalg.norm(x) | np.linalg.norm(nx)
jnp.linalg.inv(A) | np.linalg.inv(nA)
jnp.linalg.solve(A, jnp.array([1.0, 2.0])) | np.linalg.solve(nA, [1.0, 2.0])
jnp.linalg.det(A) | np.linalg.det(nA)
jnp.linalg.eigvalsh(A) | np.linalg.eigvalsh(nA)
jnp.linalg.cholesky(A) | np.linalg.cholesky(nA)
jnp.linalg.svd(A, compute_uv=False) | np.linalg.svd(nA, compute_uv=False)
jnp.abs(jnp.fft.fft(x)) | np.abs(np.fft.fft(nx))
jnp.diff(x) | np.diff(nx)
jnp.interp(jnp.array([1.5, 9.0]), x, x * 2) | [3.0, 6.0]
jnp.isnan(x / 0.0 - x / 0.0) | [True, True, True]
jnp.nan_to_num(jnp.array([1.0, jnp.nan])) | [1.0, 0.0]
jnp.allclose(x, x + 1e-9) | True
jnp.array_equal(x, x) | True
jnp.logaddexp(x, x) | np.logaddexp(nx, nx)
jnp.percentile(x, 50) | 2.0
jnp.median(x) | 2.0
jnp.average(x, weights=x) | np.average(nx, weights=nx)
jnp.cov(M) | np.cov(nM)
jnp.meshgrid(x, x)[0] | np.meshgrid(nx, nx)[0]
jnp.unique(jnp.array([3, 1, 3])) | [1, 3]
jnp.searchsorted(x, 2.5) | 2
jnp.bincount(jnp.array([0, 2, 2])) | [1, 0, 2]
jnp.convolve(x, jnp.array([1.0, 1.0])) | np.convolve(nx, [1, 1])
jnp.polyval(jnp.array([1.0, 0.0, 2.0]), x) | nx**2 + 2
jnp.triu(jnp.ones((2, 2))) | np.triu(np.ones((2, 2)))
jnp.select([x < 2, x < 3], [x, 10 * x], 0.0) | [1.0, 20.0, 0.0]
jnp.nonzero(jnp.array([0, 1, 1]))[0] | [1, 2]
jnp.nanmean(jnp.array([1.0, jnp.nan, 3.0])) | 2.0
jnp.trapezoid(x) | np.trapezoid(nx)
jnp.atleast_2d(x).shape | (1, 3)
jnp.unravel_index(5, (2, 3)) | (1, 2)
jnp.isin(x, jnp.array([2.0])) | [False, True, False]
jnp.array(3, jnp.float32) * 1.0 | 3.0
x.astype(jnp.int32) | [1, 2, 3]
(x.T @ x).item() | 14.0
""",
    "nn, scipy, ops": """
nn.relu(-x) | np.zeros(3)
nn.gelu(x) | 0.5 * nx * (1 + np.tanh(np.sqrt(2 / np.pi) * (nx + 0.044715 * nx**3)))
nn.gelu(x, approximate=False) | nx * sps.ndtr(nx)
nn.silu(x) | nx / (1 + np.exp(-nx))
nn.softplus(x) | np.log1p(np.exp(nx))
nn.leaky_relu(-x) | -0.01 * nx
nn.softmax(M, axis=0) | sps.softmax(nM, 0)
nn.log_softmax(x) | sps.log_softmax(nx)
nn.softmax(x, where=jnp.array([True, True, False])) | [1 / (1 + np.e), np.e / (1 + np.e), 0.0]
nn.logsumexp(M, axis=1) | sps.logsumexp(nM, 1)
nn.one_hot(jnp.array([0, 2]), 3) | [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
nn.one_hot(jnp.array([3]), 3) | [[0.0, 0.0, 0.0]]
nn.dot_product_attention(*(x.reshape(3, 1, 1),) * 3, local_window_size=0) | nx.reshape(3, 1, 1)
nn.standardize(x, epsilon=0.0) | (nx - 2) / nx.std()
nn.initializers.zeros(key, (2,), jnp.float32) | [0.0, 0.0]
nn.initializers.glorot_uniform()(key, (3, 4)).shape | (3, 4)
nn.initializers.he_normal()(key, (3, 2)).shape | (3, 2)
jnp.round(nn.initializers.orthogonal()(key, (3, 3)) @ nn.initializers.orthogonal()(key, (3, 3)).T, 3) | np.eye(3)
jax.ops.segment_sum(x, jnp.array([0, 1, 0]), num_segments=3) | [4.0, 2.0, 0.0]
jax.ops.segment_max(x, jnp.array([0, 1, 0])) | [3.0, 2.0]
jax.scipy.special.expit(x) | sps.expit(nx)
jax.scipy.special.logit(x / 4) | sps.logit(nx / 4)
jax.scipy.special.gammaln(x) | sps.gammaln(nx)
jax.scipy.special.xlogy(x, x) | sps.xlogy(nx, nx)
jax.scipy.special.ndtr(x) | sps.ndtr(nx)
jax.scipy.special.logsumexp(x) | sps.logsumexp(nx)
jax.scipy.special.entr(x) | sps.entr(nx)
jax.scipy.special.betaln(x, x) | sps.betaln(nx, nx)
jax.scipy.linalg.solve_triangular(A, jnp.ones(2), lower=True) | [0.5, 1 / 6]
jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(A), jnp.ones(2)) | np.linalg.solve(nA, np.ones(2))
jax.scipy.stats.norm.logpdf(x) | -nx**2 / 2 - 0.5 * np.log(2 * np.pi)
""",
}
HABITS = [
    (section, *(part.strip() for part in line.rsplit(" | ", 1)))
    for section, text in SECTIONS.items() for line in text.strip().splitlines()
]  # fmt: skip

REFUSED = [  # what is not here, and the word that the message must have
    ("jax.make_jaxpr(f)(x)", "make_jaxpr"),
    ("jax.pmap(f)", "pmap"),
    ("jax.config.update('jax_enable_x64', True)", "config"),
    ("lax.psum(x, 'i')", "psum"),
    ("lax.gather(x, x, None, (1,))", "gather"),
    ("lax.reduce_window(image, 0.0, lax.add, (1, 1, 2, 2), (1, 1, 2, 2), 'VALID')", "reduce_window"),
    ("x.at[7].set(1.0, mode='drop')", "mode"),
    ("jax.scipy.special.betainc(1.0, 1.0, x)", "betainc"),
    ("jax.jit(lambda a: a, static_argnums=0)(x)", "static"),
    ("jax.checkpoint(f, policy=print)", "policy"),
    ("jax.pure_callback(f, x)", "pure_callback"),
    ("jax.jacfwd(f, holomorphic=True)", "holomorphic"),
    ("jnp.vectorize(f)", "vectorize"),
]


def names(jax: Any) -> dict[str, Any]:
    """What the expressions know: a JAX, ours or theirs, its parts, a few values, and NumPy for what is expected."""
    jnp = jax.numpy
    nx, nA, nM = np.array([1.0, 2.0, 3.0]), np.array([[2.0, 1.0], [1.0, 3.0]]), np.arange(6.0).reshape(2, 3)
    own_jvp = jax.custom_jvp(lambda t: t * t)
    own_jvp.defjvp(lambda primals, tangents: (primals[0] ** 2, tangents[0] * primals[0] * 10))
    own_vjp = jax.custom_vjp(lambda t: t * t)
    own_vjp.defvjp(lambda t: (t * t, t), lambda t, ct: (ct * 100,))
    applied = functools.partial(jax.custom_jvp, nondiff_argnums=(0,))(lambda function, t: function(t))
    applied.defjvp(lambda function, primals, tangents: (function(primals[0]), tangents[0] * 5))
    made = SimpleNamespace(
        jax=jax, jnp=jnp, lax=jax.lax, random=jax.random, nn=jax.nn, np=np, sps=sps, math=math, functools=functools,
        nx=nx, nA=nA, nM=nM, x=jnp.array(nx, jnp.float32), A=jnp.array(nA, jnp.float32), M=jnp.array(nM, jnp.float32),
        key=jax.random.PRNGKey(0), f=lambda a: jnp.sum(a**2), with_own_jvp=own_jvp, with_own_vjp=own_vjp,
        applied=applied, image=jnp.array(np.arange(50.0).reshape(1, 2, 5, 5), jnp.float32),
        kernel=jnp.ones((3, 2, 3, 3)), last=jnp.array(np.arange(50.0).reshape(1, 2, 5, 5).transpose(0, 2, 3, 1)),
        back=jnp.ones((3, 3, 2, 3)),
    )  # fmt: skip
    return vars(made)


def plain(value: Any) -> Any:
    """A structure with arrays for whatever holds numbers."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, tuple | list) and not _numbers(value):
        return type(value)(map(plain, value)) if type(value) in (tuple, list) else tuple(map(plain, value))
    return value if isinstance(value, str) else np.asarray(value)


def _numbers(value: Any) -> bool:
    """Whether it is nested lists of numbers, which stand for an array."""
    if isinstance(value, list):
        return bool(value) and all(isinstance(v, int | float | bool) or _numbers(v) for v in value)
    return False


def same(found: Any, expected: Any) -> None:
    """Assert that two structures hold the same numbers."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys()
        for k in expected:
            same(found[k], expected[k])
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            same(a, b)
    elif isinstance(expected, str):
        assert found == expected
    else:
        assert np.shape(found) == np.shape(expected), (np.shape(found), np.shape(expected))
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-6)
