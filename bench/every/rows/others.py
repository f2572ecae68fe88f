"""Rows that were drawn up before anyone had looked at how fast they are: what else people do, family by family.

Most are written once, in PyTorch's words, which Eshkol has too: `L` is the library, `F` its functions of layers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import eshkol as ek
from bench.every.row import (
    JAX,
    NUMPY,
    OURS,
    TORCH,
    Code,
    Make,
    Row,
    ascending,
    both,
    definite,
    imaginary,
    integers,
    invertible,
    normal,
    positive,
    truths,
    within,
)
from bench.peers import functional as _f
from bench.peers import jax as _jax
from bench.peers import torch as _torch

MILLION = 1_000_000
GENERATED = "random numbers differ"


def rows() -> Iterator[Row]:
    parts = (_elementwise, _mixed, _reductions, _cumulative, _movement, _lookup, _order, _products, _einsum, _fourier,
             _algebra, _norms, _convolution, _pooling, _attention, _losses, _distances, _recurrent, _programs)  # fmt: skip
    for part in parts:
        yield from part()


def _alike(code: Code, jax: Code | None = None, numpy: Code | None = None) -> dict[str, Code]:
    """The same words for Eshkol and PyTorch; JAX and NumPy by their modules, where they are asked."""
    found: dict[str, Code] = {
        OURS: lambda *given: code(ek, ek.nn.functional, *given),
        TORCH: lambda *given: code(_torch(), _f(), *given),
    }
    if jax is not None:
        found[JAX] = lambda *given: jax(_jax().numpy, *given)
    if numpy is not None:
        found[NUMPY] = lambda *given: numpy(np, *given)
    return found


def _row(name: str, family: str, dtype: str, makes: Make | tuple[Make, ...], code: Code, jax: Code | None = None,
         numpy: Code | None = None, **more: Any) -> Row:  # fmt: skip
    made = makes if isinstance(makes, tuple) else (makes,)
    size = max(int(np.asarray(make(np.random.default_rng(0))).size) for make in made)
    return Row(name, family, dtype, size, made, _alike(code, jax, numpy), **more)


# --- element by element ---------------------------------------------------------------------------


def _elementwise() -> Iterator[Row]:
    n = MILLION

    def one(name: str, code: Code, make: Any = normal, dtype: str = "f32", jax: Code | None = None) -> Row:
        return _row(name, "elementwise", dtype, make(n), code, jax)

    yield one("log1p", lambda L, F, x: L.log1p(x), positive, jax=lambda np, x: np.log1p(x))
    yield one("rsqrt", lambda L, F, x: L.rsqrt(x), positive)
    yield one("clamp", lambda L, F, x: L.clamp(x, -1.0, 1.0), jax=lambda np, x: np.clip(x, -1.0, 1.0))
    yield one("sign · round", lambda L, F, x: L.sign(x) * L.round(x * 10))
    yield one("polynomial x³ - 2x² + x", lambda L, F, x: x**3 - 2 * x**2 + x, jax=lambda np, x: x**3 - 2 * x**2 + x)
    yield one("x ** 2.5", lambda L, F, x: x**2.5, positive, jax=lambda np, x: x**2.5)
    yield one("asin", lambda L, F, x: L.asin(x), within)
    yield one("atan", lambda L, F, x: L.atan(x), jax=lambda np, x: np.arctan(x))
    yield one("sinh", lambda L, F, x: L.sinh(x), jax=lambda np, x: np.sinh(x))
    yield one("tan", lambda L, F, x: L.tan(x), within)
    yield one("expm1", lambda L, F, x: L.expm1(x))
    yield from both(one("softplus", lambda L, F, x: F.softplus(x)))
    yield from both(one("mish", lambda L, F, x: F.mish(x)))
    yield from both(one("hard swish", lambda L, F, x: F.hardswish(x)))
    yield from both(one("leaky ReLU", lambda L, F, x: F.leaky_relu(x, 0.1)))
    yield from both(one("elu", lambda L, F, x: F.elu(x)))
    yield from both(one("gelu by tanh", lambda L, F, x: F.gelu(x, approximate="tanh")))
    yield one("sigmoid, f64", lambda L, F, x: L.sigmoid(x), dtype="f64")
    yield one("tanh, f64", lambda L, F, x: L.tanh(x), dtype="f64", jax=lambda np, x: np.tanh(x))
    yield one("sin, f64", lambda L, F, x: L.sin(x), dtype="f64", jax=lambda np, x: np.sin(x))
    yield one("erf, f64", lambda L, F, x: L.erf(x), dtype="f64")
    yield one("erfinv", lambda L, F, x: L.erfinv(x), within)
    yield one("silu, bf16", lambda L, F, x: F.silu(x), dtype="bf16")
    yield gradient_of(one("tanh, bf16", lambda L, F, x: L.tanh(x), dtype="bf16"))
    yield one("digamma", lambda L, F, x: L.digamma(x), positive)


def gradient_of(row: Row) -> Row:
    return list(both(row))[1]


def _mixed() -> Iterator[Row]:
    n = MILLION
    e = "elementwise"
    yield _row("hypot", e, "f32", (normal(n), normal(n)), lambda L, F, x, y: L.hypot(x, y),
               lambda np, x, y: np.hypot(x, y))  # fmt: skip
    yield _row("remainder", e, "f32", (normal(n), positive(n)), lambda L, F, x, y: L.remainder(x, y))
    yield _row("x ** y, f64", e, "f64", (positive(n), positive(n)), lambda L, F, x, y: x**y, lambda np, x, y: x**y)
    yield _row("lerp", e, "f32", (normal(n), normal(n), positive(n)), lambda L, F, x, y, w: L.lerp(x, y, w))
    yield _row("isnan or infinite", e, "f32", normal(n), lambda L, F, x: L.isnan(x) | L.isinf(x))
    yield _row("truths: a & ~b | c", e, "i64", (truths(n),) * 3, lambda L, F, a, b, c: (a & ~b) | c,
               lambda np, a, b, c: (a & ~b) | c, lambda np, a, b, c: (a & ~b) | c)  # fmt: skip
    yield _row("integers: a // b", e, "i64", (integers(1000, n), lambda rng: rng.integers(1, 50, n)),
               lambda L, F, a, b: a // b, lambda np, a, b: a // b)  # fmt: skip
    yield _row("f32 to int64", e, "f32", normal(n), lambda L, F, x: (x * 100).to(L.int64))
    yield _row("f32 to bf16", e, "f32", normal(n), lambda L, F, x: x.to(L.bfloat16))
    yield _row("x + y, 10⁴", e, "f32", (normal(10_000),) * 2, lambda L, F, x, y: x + y, lambda np, x, y: x + y,
               lambda np, x, y: x + y)  # fmt: skip
    yield _row("Black and Scholes", e, "f32", (positive(n),) * 3, _black_scholes)
    yield _row("haversine", "distances", "f64", (within(n),) * 4, _haversine)
    yield _row("outer sums of 1000 and 1000", "broadcasting", "f32", (normal(1000, 1), normal(1, 1000)),
               lambda L, F, x, y: L.exp(-(x - y) ** 2), lambda np, x, y: np.exp(-(x - y) ** 2))  # fmt: skip
    yield from both(_row("images · scale + shift, channels last", "broadcasting", "f32",
                         (normal(32, 28, 28, 64), normal(64), normal(64)), lambda L, F, x, a, b: x * a + b))  # fmt: skip
    yield _row("three axes: x[:, None] · y[None] + z", "broadcasting", "f32",
               (normal(100, 1, 100), normal(1, 100, 100), normal(100)), lambda L, F, x, y, z: x * y + z)  # fmt: skip


def _black_scholes(L: Any, F: Any, s: Any, k: Any, t: Any) -> Any:
    root = 0.3 * L.sqrt(t)
    d = (L.log(s / k) + (0.02 + 0.045) * t) / root
    half = 0.70710678
    cdf = lambda x: 0.5 * (1 + L.erf(x * half))
    return s * cdf(d) - k * L.exp(-0.02 * t) * cdf(d - root)


def _haversine(L: Any, F: Any, a: Any, b: Any, c: Any, d: Any) -> Any:
    h = L.sin((c - a) / 2) ** 2 + L.cos(a) * L.cos(c) * L.sin((d - b) / 2) ** 2
    return 12742 * L.asin(L.sqrt(L.clamp(h, 0.0, 1.0)))


# --- reduced and accumulated ----------------------------------------------------------------------


def _reductions() -> Iterator[Row]:
    family, square = "reductions", normal(1000, 1000)

    def of(name: str, make: Make, code: Code, jax: Code | None = None, numpy: Code | None = None,
           dtype: str = "f32") -> Row:  # fmt: skip
        return _row(name, family, dtype, make, code, jax, numpy)

    yield of("standard deviations along axis 0", square, lambda L, F, x: L.std(x, 0))
    yield of("largest and smallest", square, lambda L, F, x: (x.max(), x.min()), lambda np, x: (x.max(), x.min()))
    yield of("argmin along axis 1", square, lambda L, F, x: L.argmin(x, 1), lambda np, x: np.argmin(x, 1))
    yield of("how many are true", truths(MILLION), lambda L, F, x: x.sum(), None, lambda np, x: x.sum(), "i64")
    yield of("sum of int64", integers(1000, MILLION), lambda L, F, x: x.sum(), None, lambda np, x: x.sum(), "i64")
    yield of("largest of int64 along axis 0", integers(1000, 1000, 1000), lambda L, F, x: L.amax(x, 0), None,
             lambda np, x: x.max(0), "i64")  # fmt: skip
    yield of("mean along axis 1, bf16", square, lambda L, F, x: x.mean(1), dtype="bf16")
    yield of("sum along axis 0, bf16", square, lambda L, F, x: x.sum(0), dtype="bf16")
    yield from both(of("norms of rows", normal(10_000, 100), lambda L, F, x: L.linalg.norm(x, dim=1)))
    yield of("logsumexp along axis 0", square, lambda L, F, x: L.logsumexp(x, 0))
    yield of("sum of the last axis of 3", normal(300_000, 3), lambda L, F, x: x.sum(1), lambda np, x: x.sum(1),
             lambda np, x: x.sum(1))  # fmt: skip
    yield of("sum of axes 0 and 1", normal(100, 100, 100), lambda L, F, x: x.sum((0, 1)), lambda np, x: x.sum((0, 1)))
    yield of("variance, f64", normal(MILLION), lambda L, F, x: L.var(x), dtype="f64")
    yield of("covariance of 20 series of 10⁴", normal(20, 10_000), lambda L, F, x: L.cov(x), lambda np, x: np.cov(x))
    yield from both(of("products of rows of 10", normal(100_000, 10), lambda L, F, x: L.prod(x, 1)))
    yield from both(of("sum along axis 1 of 3 axes", normal(100, 100, 100), lambda L, F, x: x.sum(1)))
    yield of("all of rows", truths(1000, 1000), lambda L, F, x: L.all(x, 1), None, lambda np, x: x.all(1), "i64")


def _cumulative() -> Iterator[Row]:
    family, square = "cumulative", normal(1000, 1000)
    yield from both(_row("cumprod along axis 0", family, "f32", lambda rng: 1 + 0.01 * rng.standard_normal((1000, 1000)),
                         lambda L, F, x: L.cumprod(x, 0)))  # fmt: skip
    yield _row("cumsum of int64", family, "i64", integers(9, MILLION), lambda L, F, x: L.cumsum(x, 0), None,
               lambda np, x: np.cumsum(x))  # fmt: skip
    yield _row("cumsum along the middle axis", family, "f32", normal(100, 100, 100), lambda L, F, x: L.cumsum(x, 1))
    yield _row("cummin along axis 0", family, "f32", square, lambda L, F, x: L.cummin(x, 0)[0])
    yield _row("logcumsumexp along axis 0", family, "f32", square, lambda L, F, x: L.logcumsumexp(x, 0))
    yield _row("areas by trapezoids", family, "f32", square, lambda L, F, x: L.trapezoid(x, dx=0.1))


# --- moved and looked up --------------------------------------------------------------------------


def _movement() -> Iterator[Row]:
    family, images = "movement", normal(16, 32, 56, 56)

    def of(name: str, make: Make, code: Code, dtype: str = "f32", numpy: Code | None = None) -> Row:
        return _row(name, family, dtype, make, code, None, numpy)

    yield of("channels first of channels last", normal(16, 56, 56, 32), lambda L, F, x: x.permute(0, 3, 1, 2).contiguous())
    yield of("transposes of 64 of 128 × 128", normal(64, 128, 128), lambda L, F, x: x.transpose(1, 2).contiguous())
    yield of("transpose, bf16", normal(1000, 1000), lambda L, F, x: x.t().contiguous(), "bf16")
    yield of("transpose of bytes", lambda rng: rng.integers(0, 255, (1000, 1000)).astype(np.uint8),
             lambda L, F, x: x.t().contiguous(), "i64")  # fmt: skip
    yield of("every third row", normal(3000, 1000), lambda L, F, x: x[::3] + 0)
    yield of("unfold windows of 25 by 5", normal(100_000), lambda L, F, x: x.unfold(0, 25, 5).contiguous())
    yield from both(of("pixel shuffle by 2", images, lambda L, F, x: F.pixel_shuffle(x, 2)))
    yield of("concatenate 50 of 1000 × 20", normal(50, 1000, 20), lambda L, F, x: L.cat([x[k] for k in range(50)], 1))
    yield of("stack 10 along axis 0", normal(10, 100_000), lambda L, F, x: L.stack([x[9 - k] for k in range(10)]))
    yield of("roll along axis 1", normal(1000, 1000), lambda L, F, x: L.roll(x, 7, 1))
    yield from both(of("halves turned (rotary)", normal(32, 8, 128, 64),
                       lambda L, F, x: L.cat([-x[..., 32:], x[..., :32]], -1)))  # fmt: skip
    yield of("meshgrid", normal(1000), lambda L, F, x: L.stack(L.meshgrid(x, x, indexing="ij")))
    yield of("rot90", normal(1000, 1000), lambda L, F, x: L.rot90(x))
    yield of("repeat interleaved along axis 1", normal(1000, 250), lambda L, F, x: L.repeat_interleave(x, 4, 1))
    yield of("fold of windows 3 × 3", normal(4, 72, 784), lambda L, F, x: F.fold(x, (28, 28), 3, padding=1))
    yield of("split and added", normal(1000, 1000), lambda L, F, x: sum(L.split(x, 250, 1)))
    yield from both(of("images, half as large, area", images, lambda L, F, x: F.interpolate(x, scale_factor=0.5, mode="area")))
    yield from both(of("images, twice as large, nearest", normal(8, 32, 28, 28), lambda L, F, x: F.interpolate(x, scale_factor=2)))
    yield of("sequence padded by a constant", normal(64, 1000), lambda L, F, x: F.pad(x, (5, 5), value=1.0))


def _lookup() -> Iterator[Row]:
    family, square = "lookup", normal(1000, 1000)
    yield _row("columns by indices", family, "f32", (square, integers(1000, 500)), lambda L, F, x, i: L.index_select(x, 1, i))
    yield from both(_row("x[i, j]", family, "f32", (square, integers(1000, 100_000), integers(1000, 100_000)),
                         lambda L, F, x, i, j: x[i, j], lambda np, x, i, j: x[i, j]))  # fmt: skip
    yield _row("gather along axis 0", family, "f32", (square, integers(1000, 1000, 1000)), lambda L, F, x, i: L.gather(x, 0, i))
    yield _row("scatter-add along axis 1", family, "f32", (normal(1000, 100), integers(100, 1000, 1000), square),
               lambda L, F, x, i, y: L.scatter_add(x, 1, i, y))  # fmt: skip
    yield _row("scatter, the largest", family, "f32", (normal(1000), integers(1000, 100_000), normal(100_000)),
               lambda L, F, x, i, y: L.scatter_reduce(x, 0, i, y, "amax"))  # fmt: skip
    yield _row("rows of a mask", family, "f32", (normal(10_000, 100), truths(10_000)), lambda L, F, x, m: x[m],
               None, lambda np, x, m: x[m], compiles=False)  # fmt: skip
    yield _row("sums of bags of 10 rows", family, "f32", (normal(10_000, 64), integers(10_000, 2000, 10)),
               lambda L, F, x, i: F.embedding(i, x).sum(1))  # fmt: skip
    yield _row("buckets of 20 borders", family, "f32", (normal(MILLION), ascending(20)), lambda L, F, x, b: L.bucketize(x, b))
    yield _row("one-hot of 10", family, "i64", integers(10, 10_000), lambda L, F, i: F.one_hot(i, 10))
    yield _row("take along rows", family, "f32", (normal(10_000, 100), integers(100, 10_000, 1)),
               lambda L, F, x, i: L.take_along_dim(x, i, 1))  # fmt: skip
    yield Row("put 10⁵ places", family, "f32", MILLION, (normal(MILLION), _distinct(100_000), normal(100_000)), {
        OURS: lambda x, i, y: x.at[i].set(y), TORCH: lambda x, i, y: x.index_put((i,), y),
        JAX: lambda x, i, y: x.at[i].set(y, unique_indices=True)})  # fmt: skip
    yield _row("means of 100 segments", family, "f32", (normal(100_000), integers(100, 100_000)), lambda L, F, x, i:
               L.zeros(100).index_add(0, i, x) / L.zeros(100).index_add(0, i, L.ones_like(x)))  # fmt: skip


def _distinct(count: int) -> Make:
    return lambda rng: rng.permutation(MILLION)[:count]


# --- order, products, transforms ------------------------------------------------------------------


def _order() -> Iterator[Row]:
    family, square = "order", normal(1000, 1000)
    yield _row("sort of rows of 1000", family, "f32", square, lambda L, F, x: L.sort(x, 1)[0], lambda np, x: np.sort(x, 1),
               lambda np, x: np.sort(x, 1))  # fmt: skip
    yield from both(_row("sort along axis 0", family, "f32", square, lambda L, F, x: L.sort(x, 0)[0], None))
    yield _row("sort of 10⁵ f64", family, "f64", normal(100_000), lambda L, F, x: L.sort(x)[0], None, lambda np, x: np.sort(x))
    yield _row("sort of 10⁶ int64", family, "i64", integers(10**9, MILLION), lambda L, F, x: L.sort(x)[0], None,
               lambda np, x: np.sort(x))  # fmt: skip
    yield _row("argsort of 10⁶", family, "f32", normal(MILLION), lambda L, F, x: L.argsort(x), None, lambda np, x: np.argsort(x))
    yield _row("sort of 10⁴, descending", family, "f32", normal(10_000), lambda L, F, x: L.sort(x, descending=True)[0])
    yield _row("top 100 of 10⁶", family, "f32", normal(MILLION), lambda L, F, x: L.topk(x, 100)[0])
    yield _row("top 5 of 10⁴ rows of 100", family, "f32", normal(10_000, 100), lambda L, F, x: L.topk(x, 5, 1)[0])
    yield _row("10th smallest of rows", family, "f32", square, lambda L, F, x: L.kthvalue(x, 10, 1)[0])
    yield _row("quantiles of rows", family, "f32", square, lambda L, F, x: L.quantile(x, 0.25, 1), lambda np, x: np.quantile(x, 0.25, 1))
    yield _row("median of 10⁶", family, "f32", normal(MILLION), lambda L, F, x: L.median(x))
    yield _row("unique floats with counts", family, "f32", lambda rng: rng.integers(0, 1000, 100_000) / 8.0,
               lambda L, F, x: L.unique(x, return_counts=True), None, lambda np, x: np.unique(x, return_counts=True),
               compiles=False)  # fmt: skip
    yield _row("searchsorted of rows", family, "f32", (ascending(100, 1000), normal(100, 1000)), lambda L, F, a, x: L.searchsorted(a, x))


def _products() -> Iterator[Row]:
    family = "products"

    def of(name: str, first: tuple[int, ...], second: tuple[int, ...], code: Code = lambda L, F, x, y: x @ y,
           dtype: str = "f32", make: Any = normal) -> Row:  # fmt: skip
        plain = (lambda np, x, y: x @ y) if code.__code__.co_names == () else None
        return _row(name, family, dtype, (make(*first), make(*second)), code, plain, plain)

    yield from both(of("product 128 × 128", (128, 128), (128, 128)))
    yield of("product 1000 × 1000", (1000, 1000), (1000, 1000))
    yield of("product 1000 × 1000, f64", (1000, 1000), (1000, 1000), dtype="f64")
    yield of("product 1024 × 1024, bf16", (1024, 1024), (1024, 1024), dtype="bf16")
    yield of("product 333 × 77 by 77 × 215", (333, 77), (77, 215))
    yield of("product 32 × 4096 by 4096 × 1024", (32, 4096), (4096, 1024))
    yield of("one row by 1000 × 1000", (1, 1000), (1000, 1000))
    yield of("10⁵ of 3 × 3", (100_000, 3, 3), (100_000, 3, 3))
    yield of("10⁵ of 4 × 4 by vectors", (100_000, 4, 4), (100_000, 4, 1))
    yield of("batch of 32 by one matrix", (32, 100, 64), (64, 64))
    yield of("16 of 200 × 100 by 100 × 300, f64", (16, 200, 100), (16, 100, 300), dtype="f64")
    yield of("64 of 128 × 64 transposed", (64, 128, 64), (64, 128, 64), lambda L, F, x, y: x @ y.transpose(1, 2))
    yield of("x + A B scaled (addmm)", (256, 512), (512, 256), lambda L, F, x, y: L.addmm(y[:256], x, y, beta=0.5, alpha=2.0))
    yield _row("Gram matrix of 2000 × 200", family, "f32", normal(2000, 200), lambda L, F, x: x.t() @ x, lambda np, x: x.T @ x,
               lambda np, x: x.T @ x)  # fmt: skip
    yield _row("5th power of 200 × 200", family, "f32", lambda rng: rng.standard_normal((200, 200)) / 15,
               lambda L, F, x: L.linalg.matrix_power(x, 5))  # fmt: skip
    yield of("complex vector by matrix", (512, 512), (512,), dtype="c64", make=imaginary)
    yield _row("two layers of 4096, one sample", family, "f32", (normal(1, 1024), normal(4096, 1024), normal(1024, 4096)),
               lambda L, F, x, a, b: F.linear(F.relu(F.linear(x, a)), b))  # fmt: skip
    yield from both(_row("feed-forward of 512 by 256 and 1024", family, "f32",
                         (normal(512, 256), normal(1024, 256), normal(256, 1024)),
                         lambda L, F, x, a, b: F.linear(F.gelu(F.linear(x, a)), b)))  # fmt: skip
    yield _row("convolution by polynomials", family, "f64", (normal(2000), normal(300)), _polynomials)
    yield _row("quaternions", "elementwise", "f32", (normal(100_000, 4), normal(100_000, 4)), _quaternions)


def _polynomials(L: Any, F: Any, x: Any, y: Any) -> Any:
    return F.conv1d(x[None, None], L.flip(y, (0,))[None, None], padding=299)


def _quaternions(L: Any, F: Any, p: Any, q: Any) -> Any:
    a, b, c, d = p.unbind(-1)
    e, f, g, h = q.unbind(-1)
    return L.stack([a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g,
                    a * g - b * h + c * e + d * f, a * h + b * g - c * f + d * e], -1)  # fmt: skip


def _einsum() -> Iterator[Row]:
    def of(text: str, *shapes: tuple[int, ...]) -> Row:
        return _row(f"einsum {text}", "einsum", "f32", tuple(normal(*shape) for shape in shapes),
                    lambda L, F, *xs: L.einsum(text, *xs), lambda np, *xs: np.einsum(text, *xs))  # fmt: skip

    yield from both(of("abc,cd->abd", (64, 100, 64), (64, 128)))
    yield of("bhwc,cd->bhwd", (8, 28, 28, 64), (64, 64))
    yield of("nd,md->nm", (500, 128), (700, 128))
    yield of("ijk,ilk->ijl", (32, 64, 48), (32, 64, 48))
    yield of("i,j,k->ijk", (100,), (100,), (100,))
    yield of("ijkl,kl->ij", (50, 50, 20, 20), (20, 20))
    yield of("bn,bm,nmk->bk", (64, 32), (64, 32), (32, 32, 16))


def _fourier() -> Iterator[Row]:
    family = "Fourier"

    def of(name: str, make: Make, code: Code, jax: Code, dtype: str = "c64") -> Row:
        return _row(name, family, dtype, make, code, jax, jax)

    yield of("fft of 10007, a prime", imaginary(10_007), lambda L, F, x: L.fft.fft(x), lambda np, x: np.fft.fft(x))
    yield of("inverse fft of 100 rows of 1000", imaginary(100, 1000), lambda L, F, x: L.fft.ifft(x), lambda np, x: np.fft.ifft(x))
    yield of("fft along axis 0", imaginary(512, 512), lambda L, F, x: L.fft.fft(x, dim=0), lambda np, x: np.fft.fft(x, axis=0))
    yield of("fftn of 64³", imaginary(64, 64, 64), lambda L, F, x: L.fft.fftn(x), lambda np, x: np.fft.fftn(x))
    yield of("rfft2 of 16 of 128²", normal(16, 128, 128), lambda L, F, x: L.fft.rfft2(x), lambda np, x: np.fft.rfft2(x), "f32")
    yield of("irfft of rows of 1025", imaginary(100, 513), lambda L, F, x: L.fft.irfft(x), lambda np, x: np.fft.irfft(x))
    yield of("rfft of 2¹⁶, f64", normal(65536), lambda L, F, x: L.fft.rfft(x), lambda np, x: np.fft.rfft(x), "f64")
    yield of("convolution by fft of 10⁵", normal(100_000),
             lambda L, F, x: L.fft.irfft(L.fft.rfft(x) * L.fft.rfft(x.flip(0)), n=100_000),
             lambda np, x: np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(x[::-1]), n=100_000), "f32")  # fmt: skip
    yield _row("spectrogram (stft) of 10⁵", family, "f32", (normal(100_000), lambda rng: np.hanning(400)),
               lambda L, F, x, w: L.abs(L.stft(x, 400, hop_length=160, window=w, return_complex=True)))  # fmt: skip


def _algebra() -> Iterator[Row]:
    family = "linear algebra"

    def of(name: str, make: Make, code: Code, jax: Code | None = None, dtype: str = "f64", **more: Any) -> Row:
        return _row(name, family, dtype, make, code, jax, **more)

    yield of("cholesky of 1000 of 8 × 8", definite(1000, 8, 8), lambda L, F, a: L.linalg.cholesky(a), dtype="f32")
    yield of("eigenvalues of 200 symmetric 16 × 16", definite(200, 16, 16), lambda L, F, a: L.linalg.eigvalsh(a), dtype="f32")
    yield of("singular values of 200 of 16 × 8", normal(200, 16, 8), lambda L, F, a: L.linalg.svdvals(a), dtype="f32")
    yield of("pseudoinverse 100 × 50", normal(100, 50), lambda L, F, a: L.linalg.pinv(a))
    yield of("matrix exponential 100 × 100", lambda rng: rng.standard_normal((100, 100)) / 20,
             lambda L, F, a: L.linalg.matrix_exp(a))  # fmt: skip
    yield of("solve 500 × 500, f32", invertible(500, 500), lambda L, F, a: L.linalg.solve(a, a[:, :1]), dtype="f32")
    yield of("least squares 1000 × 20", normal(1000, 20), lambda L, F, a: L.linalg.lstsq(a[:, 1:], a[:, :1])[0])
    yield of("log-determinants of 500 of 8 × 8", invertible(500, 8, 8), lambda L, F, a: L.linalg.slogdet(a)[1], dtype="f32")
    yield of("inverse 200 × 200, f32", invertible(200, 200), lambda L, F, a: L.linalg.inv(a), dtype="f32")
    yield gradient_of(of("inverse 100 × 100", invertible(100, 100), lambda L, F, a: L.linalg.inv(a)))
    yield gradient_of(of("log-determinant 100 × 100", invertible(100, 100), lambda L, F, a: L.linalg.slogdet(a)[1]))
    yield of("cholesky 1000 × 1000, f32", definite(1000, 1000), lambda L, F, a: L.linalg.cholesky(a), dtype="f32")
    yield of("eigh 50 × 50", definite(50, 50), lambda L, F, a: L.linalg.eigh(a)[0])
    yield gradient_of(of("eigenvalues of symmetric 100 × 100", definite(100, 100), lambda L, F, a: L.linalg.eigvalsh(a)))
    yield of("triangular solve of many right sides", lambda rng: np.tril(rng.standard_normal((400, 400))) + 20 * np.eye(400),
             lambda L, F, a: L.linalg.solve_triangular(a, a.t().contiguous(), upper=False))  # fmt: skip


# --- learning -------------------------------------------------------------------------------------


def _norms() -> Iterator[Row]:
    family = "softmax and norms"
    yield _row("softmax, f64", family, "f64", normal(1000, 1000), lambda L, F, x: L.softmax(x, -1))
    yield from both(_row("log softmax of rows of 100", family, "f32", normal(10_000, 100), lambda L, F, x: L.log_softmax(x, -1)))
    yield from both(_row("softmax along channels", family, "f32", normal(8, 21, 64, 64), lambda L, F, x: L.softmax(x, 1)))
    yield from both(_row("instance norm", family, "f32", normal(16, 32, 32, 32), lambda L, F, x: F.instance_norm(x)))
    images = (normal(16, 64, 28, 28), normal(64), positive(64), normal(64), normal(64))
    yield _row("batch norm, not in training", family, "f32", images, lambda L, F, x, m, v, w, b: F.batch_norm(x, m, v, w, b))
    yield gradient_of(_row("RMS norm of rows of 768", family, "f32", (normal(1024, 768), normal(768)),
                           lambda L, F, x, w: F.rms_norm(x, (768,), w, 1e-5)))  # fmt: skip
    yield gradient_of(_row("group norm, 4 groups", family, "f32", (normal(16, 32, 28, 28), normal(32), normal(32)),
                           lambda L, F, x, w, b: F.group_norm(x, 4, w, b)))  # fmt: skip
    yield _row("layer norm, bf16", family, "bf16", (normal(2048, 512), normal(512), normal(512)),
               lambda L, F, x, w, b: F.layer_norm(x, (512,), w, b))  # fmt: skip
    yield _row("layer norm of 10⁴ rows of 32", family, "f32", normal(10_000, 32), lambda L, F, x: F.layer_norm(x, (32,)))
    yield from both(_row("masked softmax", family, "f32", (normal(64, 8, 64, 64), truths(64, 1, 1, 64)),
                         lambda L, F, x, m: L.softmax(x.masked_fill(m, -1e9), -1)))  # fmt: skip
    yield _row("normalize columns", family, "f32", normal(1000, 1000), lambda L, F, x: F.normalize(x, dim=0))


def _convolution() -> Iterator[Row]:
    family = "convolution"

    def of(name: str, image: tuple[int, ...], kernel: tuple[int, ...], dtype: str = "f32", **how: Any) -> Row:
        rank = len(image) - 2
        return _row(name, family, dtype, (normal(*image), normal(*kernel)),
                    lambda L, F, x, k: getattr(F, f"conv{rank}d")(x, k, **how))  # fmt: skip

    yield from both(of("conv2d 5 × 5, 1 to 32 channels", (64, 1, 28, 28), (32, 1, 5, 5)))
    yield from both(of("conv2d 3 × 3, 3 to 64 channels", (16, 3, 64, 64), (64, 3, 3, 3), padding=1))
    yield of("conv2d 5 × 5, 32 to 64 channels", (32, 32, 14, 14), (64, 32, 5, 5), padding=2)
    yield from both(of("depthwise conv2d 7 × 7", (8, 96, 28, 28), (96, 1, 7, 7), padding=3, groups=96))
    yield of("conv2d of 512 channels, 7 × 7, one image", (1, 512, 7, 7), (512, 512, 3, 3), padding=1)
    yield of("conv1d, causal, dilation 8", (16, 32, 1000), (32, 32, 3), dilation=8, padding=16)
    yield gradient_of(of("conv2d 3 × 3, stride 2", (16, 64, 28, 28), (128, 64, 3, 3), stride=2, padding=1))
    yield gradient_of(of("conv2d 1 × 1", (16, 64, 28, 28), (128, 64, 1, 1)))
    yield gradient_of(of("conv2d 3 × 3, bf16", (8, 32, 28, 28), (32, 32, 3, 3), "bf16", padding=1))
    yield of("conv2d 11 × 11 of 3 channels, stride 4", (8, 3, 224, 224), (64, 3, 11, 11), stride=4, padding=2)
    yield of("Sobel's filter", (1, 1, 1024, 1024), (2, 1, 3, 3), padding=1)
    yield of("separable blur, 1 × 9", (3, 1, 512, 512), (1, 1, 1, 9), padding=(0, 4))


def _pooling() -> Iterator[Row]:
    family, images = "pooling", normal(16, 64, 28, 28)
    yield from both(_row("mean pool 3 × 3, stride 1", family, "f32", images, lambda L, F, x: F.avg_pool2d(x, 3, 1, 1)))
    yield from both(_row("global mean pool", family, "f32", images, lambda L, F, x: F.adaptive_avg_pool2d(x, 1)))
    yield from both(_row("adaptive max pool to 4 × 4", family, "f32", images, lambda L, F, x: F.adaptive_max_pool2d(x, 4)))
    yield _row("max pool 3-D", family, "f32", normal(2, 16, 32, 32, 32), lambda L, F, x: F.max_pool3d(x, 2))
    yield gradient_of(_row("max pool of sequences", family, "f32", normal(16, 64, 1000), lambda L, F, x: F.max_pool1d(x, 4)))
    yield _row("max pool 2 × 2, bf16", family, "bf16", images, lambda L, F, x: F.max_pool2d(x, 2))


def _attention() -> Iterator[Row]:
    family = "attention"

    def of(name: str, queries: tuple[int, ...], keys: tuple[int, ...], dtype: str = "f32", **how: Any) -> Row:
        return _row(name, family, dtype, (normal(*queries), normal(*keys), normal(*keys)),
                    lambda L, F, q, k, v: F.scaled_dot_product_attention(q, k, v, **how))  # fmt: skip

    yield of("one query, 1024 keys", (8, 8, 1, 64), (8, 8, 1024, 64))
    yield of("attention of 1024 positions", (1, 8, 1024, 64), (1, 8, 1024, 64))
    yield of("attention of heads of 128", (1, 8, 256, 128), (1, 8, 256, 128))
    yield of("attention across, 64 to 512", (4, 8, 64, 32), (4, 8, 512, 32))
    yield of("attention, bf16", (2, 8, 256, 64), (2, 8, 256, 64), "bf16")
    yield from both(_row("attention with a mask", family, "f32", (*(normal(4, 8, 128, 32),) * 3, truths(128, 128)),
                         lambda L, F, q, k, v, m: F.scaled_dot_product_attention(q, k, v, attn_mask=m | L.eye(128, dtype=L.bool))))  # fmt: skip
    yield from both(_row("attention by its parts", family, "f32", (normal(4, 8, 128, 32),) * 3,
                         lambda L, F, q, k, v: L.softmax(q @ k.transpose(-2, -1) / 32**0.5, -1) @ v))  # fmt: skip


def _losses() -> Iterator[Row]:
    family = "losses"

    def of(name: str, makes: tuple[Make, ...], code: Code) -> Iterator[Row]:
        return both(_row(name, family, "f32", makes, code))

    classes = (normal(1000, 100), integers(100, 1000))
    yield from of("absolute error", (normal(MILLION),) * 2, lambda L, F, x, y: F.l1_loss(x, y))
    yield from of("smooth absolute error", (normal(MILLION),) * 2, lambda L, F, x, y: F.smooth_l1_loss(x, y))
    yield from of("cross entropy, smoothed labels", classes, lambda L, F, x, t: F.cross_entropy(x, t, label_smoothing=0.1))
    yield from of("cross entropy of pictures", (normal(4, 21, 64, 64), integers(21, 4, 64, 64)), lambda L, F, x, t: F.cross_entropy(x, t))
    yield from of("triplets", (normal(1000, 128),) * 3, lambda L, F, a, p, n: F.triplet_margin_loss(a, p, n))
    yield from of("cosine similarity, mean", (normal(10_000, 64),) * 2, lambda L, F, x, y: F.cosine_similarity(x, y).mean())
    yield from of("focal loss", (normal(MILLION), lambda rng: (rng.random(MILLION) < 0.3) * 1.0), _focal)
    yield from of("hinge", (normal(10_000, 10), integers(10, 10_000)), lambda L, F, x, t: F.multi_margin_loss(x, t))
    yield from of("contrast of 256 pairs", (normal(256, 128), normal(256, 128)), lambda L, F, x, y:
                  F.cross_entropy(F.normalize(x) @ F.normalize(y).t() / 0.1, L.arange(256)))  # fmt: skip
    yield _row("connectionist temporal", family, "f32", (normal(100, 16, 20), lambda rng: rng.integers(1, 20, (16, 15))),
               lambda L, F, x, t: F.ctc_loss(L.log_softmax(x, -1), t, L.full((16,), 100, dtype=L.int64), L.full((16,), 15, dtype=L.int64)))  # fmt: skip


def _focal(L: Any, F: Any, x: Any, t: Any) -> Any:
    p = L.sigmoid(x)
    loss = F.binary_cross_entropy_with_logits(x, t, reduction="none")
    near = p * t + (1 - p) * (1 - t)
    return (loss * (1 - near) ** 2).mean()


def _distances() -> Iterator[Row]:
    points = (normal(500, 16), normal(800, 16))
    yield _row("Gaussian kernel of 500 and 800", "distances", "f32", points,
               lambda L, F, x, y: L.exp(-0.1 * L.cdist(x, y) ** 2))  # fmt: skip
    yield _row("cdist, f64", "distances", "f64", points, lambda L, F, x, y: L.cdist(x, y))
    yield _row("5 nearest of 800", "distances", "f32", points, lambda L, F, x, y: L.topk(L.cdist(x, y), 5, largest=False)[0])
    yield _row("largest differences of 300 and 300", "distances", "f32", (normal(300, 16),) * 2,
               lambda L, F, x, y: (x[:, None] - y).abs().amax(-1))  # fmt: skip
    yield from both(_row("pairwise distance of rows", "distances", "f32", (normal(10_000, 64),) * 2,
                         lambda L, F, x, y: F.pairwise_distance(x, y)))  # fmt: skip


def _recurrent() -> Iterator[Row]:
    yield _row("exponential mean over 1000 steps", "recurrent", "f32", normal(1000, 64), _smoothed)


def _smoothed(L: Any, F: Any, x: Any) -> Any:
    if L is ek:
        return ek.scan(lambda s, row: ((s * 0.9 + row * 0.1,) * 2), x[0], x)[1]
    state, found = x[0], []
    for row in x:
        state = state * 0.9 + row * 0.1
        found.append(state)
    return L.stack(found)


# --- whole programs -------------------------------------------------------------------------------


def _programs() -> Iterator[Row]:
    family = "small networks"
    yield _row("heat, 50 steps of 256²", "elementwise", "f32", normal(256, 256), _heat)
    yield _row("game of life, 20 steps", "elementwise", "f32", lambda rng: (rng.random((256, 256)) < 0.4) * 1.0, _life)
    yield _row("k-means, a step", "distances", "f32", (normal(5000, 16), normal(20, 16)), _k_means)
    yield from both(_row("logistic regression, a step", family, "f32", (normal(1000, 50), normal(50), truths(1000)),
                         lambda L, F, x, w, t: F.binary_cross_entropy_with_logits(x @ w, t.to(x.dtype))))  # fmt: skip
    yield _row("power iteration, 20 steps", "products", "f32", (definite(300, 300), normal(300)), _power)
    yield _row("10 bodies, accelerations", "small networks", "f64", normal(10, 3), _bodies)
    yield _row("1000 bodies, accelerations", "distances", "f32", normal(1000, 3), _bodies)
    yield _row("rolling means of 20", "cumulative", "f64", normal(100_000), _rolling)
    yield _row("Kalman filter, a step", family, "f64", (normal(4), definite(4, 4), normal(4, 4), normal(2, 4), normal(2)), _kalman)
    yield _row("Gaussian log densities", "reductions", "f32", (normal(10_000, 32), normal(32), positive(32)),
               lambda L, F, x, m, s: (-0.5 * ((x - m) / s) ** 2 - L.log(s) - 0.9189385).sum(-1))  # fmt: skip
    yield _row("mixture of 8 Gaussians", "softmax and norms", "f32", (normal(10_000, 1, 4), normal(8, 4), positive(8)), lambda L, F, x, m, w:
               L.logsumexp(-0.5 * ((x - m) ** 2).sum(-1) + L.log(w), -1))  # fmt: skip
    yield _row("SwiGLU", "products", "f32", (normal(128, 256), normal(688, 256), normal(688, 256), normal(256, 688)),
               lambda L, F, x, a, b, c: F.linear(F.silu(F.linear(x, a)) * F.linear(x, b), c))  # fmt: skip
    yield _row("rotary embedding", "movement", "f32", (normal(4, 8, 256, 64), normal(256, 64), normal(256, 64)), lambda L, F, x, c, s:
               x * c + L.cat([-x[..., 32:], x[..., :32]], -1) * s)  # fmt: skip
    yield _row("image normalized, channels first", "movement", "i64", lambda rng: rng.integers(0, 255, (8, 224, 224, 3)).astype(np.uint8),
               lambda L, F, x: (x.permute(0, 3, 1, 2).float() / 255 - 0.45) / 0.22)  # fmt: skip


def _heat(L: Any, F: Any, x: Any) -> Any:
    for _ in range(50):
        x = x + 0.1 * (L.roll(x, 1, 0) + L.roll(x, -1, 0) + L.roll(x, 1, 1) + L.roll(x, -1, 1) - 4 * x)
    return x


def _life(L: Any, F: Any, x: Any) -> Any:
    for _ in range(20):
        rows = x + L.roll(x, 1, 0) + L.roll(x, -1, 0)
        near = rows + L.roll(rows, 1, 1) + L.roll(rows, -1, 1) - x
        x = ((near == 3) | ((x > 0) & (near == 2))).to(x.dtype)
    return x


def _k_means(L: Any, F: Any, x: Any, centres: Any) -> Any:
    nearest = L.cdist(x, centres).argmin(1)
    one = F.one_hot(nearest, 20).to(x.dtype)
    return (one.t() @ x) / one.sum(0)[:, None].clamp(min=1.0)


def _power(L: Any, F: Any, a: Any, v: Any) -> Any:
    for _ in range(20):
        v = a @ v
        v = v / L.linalg.norm(v)
    return v @ (a @ v)


def _bodies(L: Any, F: Any, x: Any) -> Any:
    d = x[None] - x[:, None]
    r = (d * d).sum(-1) + 0.01
    return (d * (r**-1.5)[..., None]).sum(1)


def _rolling(L: Any, F: Any, x: Any) -> Any:
    total = L.cumsum(x, 0)
    return (total[20:] - total[:-20]) / 20


def _kalman(L: Any, F: Any, x: Any, p: Any, f: Any, h: Any, z: Any) -> Any:
    x, p = f @ x, f @ p @ f.t() + 0.1 * L.eye(4, dtype=x.dtype)
    s = h @ p @ h.t() + L.eye(2, dtype=x.dtype)
    k = L.linalg.solve(s, h @ p).t()
    return x + k @ (z - h @ x), p - k @ h @ p
