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
    integers,
    normal,
    positive,
    truths,
    within,
)
from bench.peers import functional as _f
from bench.peers import jax as _jax
from bench.peers import torch as _torch

MILLION = 1_000_000


def rows() -> Iterator[Row]:
    parts = (_elementwise, _mixed, _reductions, _cumulative, _movement, _lookup)
    for part in parts:
        yield from part()


def alike(code: Code, jax: Code | None = None, numpy: Code | None = None) -> dict[str, Code]:
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


def row_of(
    name: str,
    family: str,
    dtype: str,
    makes: Make | tuple[Make, ...],
    code: Code,
    jax: Code | None = None,
    numpy: Code | None = None,
    **more: Any,
) -> Row:
    made = makes if isinstance(makes, tuple) else (makes,)
    size = max(int(np.asarray(make(np.random.default_rng(0))).size) for make in made)
    return Row(name, family, dtype, size, made, alike(code, jax, numpy), **more)


# --- element by element ---------------------------------------------------------------------------


def _elementwise() -> Iterator[Row]:
    n = MILLION

    def one(name: str, code: Code, make: Any = normal, dtype: str = "f32", jax: Code | None = None) -> Row:
        return row_of(name, "elementwise", dtype, make(n), code, jax)

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
    yield row_of(
        "hypot", e, "f32", (normal(n), normal(n)), lambda L, F, x, y: L.hypot(x, y), lambda np, x, y: np.hypot(x, y)
    )
    yield row_of("remainder", e, "f32", (normal(n), positive(n)), lambda L, F, x, y: L.remainder(x, y))
    yield row_of("x ** y, f64", e, "f64", (positive(n), positive(n)), lambda L, F, x, y: x**y, lambda np, x, y: x**y)
    yield row_of("lerp", e, "f32", (normal(n), normal(n), positive(n)), lambda L, F, x, y, w: L.lerp(x, y, w))
    yield row_of("isnan or infinite", e, "f32", normal(n), lambda L, F, x: L.isnan(x) | L.isinf(x))
    yield row_of(
        "truths: a & ~b | c",
        e,
        "i64",
        (truths(n),) * 3,
        lambda L, F, a, b, c: (a & ~b) | c,
        lambda np, a, b, c: (a & ~b) | c,
        lambda np, a, b, c: (a & ~b) | c,
    )
    yield row_of(
        "integers: a // b",
        e,
        "i64",
        (integers(1000, n), lambda rng: rng.integers(1, 50, n)),
        lambda L, F, a, b: a // b,
        lambda np, a, b: a // b,
    )
    yield row_of("f32 to int64", e, "f32", normal(n), lambda L, F, x: (x * 100).to(L.int64))
    yield row_of("f32 to bf16", e, "f32", normal(n), lambda L, F, x: x.to(L.bfloat16))
    yield row_of(
        "x + y, 10⁴",
        e,
        "f32",
        (normal(10_000),) * 2,
        lambda L, F, x, y: x + y,
        lambda np, x, y: x + y,
        lambda np, x, y: x + y,
    )
    yield row_of("Black and Scholes", e, "f32", (positive(n),) * 3, _black_scholes)
    yield row_of("haversine", "distances", "f64", (within(n),) * 4, _haversine)
    yield row_of(
        "outer sums of 1000 and 1000",
        "broadcasting",
        "f32",
        (normal(1000, 1), normal(1, 1000)),
        lambda L, F, x, y: L.exp(-((x - y) ** 2)),
        lambda np, x, y: np.exp(-((x - y) ** 2)),
    )
    yield from both(
        row_of(
            "images · scale + shift, channels last",
            "broadcasting",
            "f32",
            (normal(32, 28, 28, 64), normal(64), normal(64)),
            lambda L, F, x, a, b: x * a + b,
        )
    )
    yield row_of(
        "three axes: x[:, None] · y[None] + z",
        "broadcasting",
        "f32",
        (normal(100, 1, 100), normal(1, 100, 100), normal(100)),
        lambda L, F, x, y, z: x * y + z,
    )


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

    def of(
        name: str, make: Make, code: Code, jax: Code | None = None, numpy: Code | None = None, dtype: str = "f32"
    ) -> Row:
        return row_of(name, family, dtype, make, code, jax, numpy)

    yield of("standard deviations along axis 0", square, lambda L, F, x: L.std(x, 0, correction=1))
    yield of("largest and smallest", square, lambda L, F, x: (x.max(), x.min()), lambda np, x: (x.max(), x.min()))
    yield of("argmin along axis 1", square, lambda L, F, x: L.argmin(x, 1), lambda np, x: np.argmin(x, 1))
    yield of("how many are true", truths(MILLION), lambda L, F, x: x.sum(), None, lambda np, x: x.sum(), "i64")
    yield of("sum of int64", integers(1000, MILLION), lambda L, F, x: x.sum(), None, lambda np, x: x.sum(), "i64")
    yield of(
        "largest of int64 along axis 0",
        integers(1000, 1000, 1000),
        lambda L, F, x: L.amax(x, 0),
        None,
        lambda np, x: x.max(0),
        "i64",
    )
    yield of("mean along axis 1, bf16", square, lambda L, F, x: x.mean(1), dtype="bf16")
    yield of("sum along axis 0, bf16", square, lambda L, F, x: x.sum(0), dtype="bf16")
    yield from both(of("norms of rows", normal(10_000, 100), lambda L, F, x: L.linalg.norm(x, dim=1)))
    yield of("logsumexp along axis 0", square, lambda L, F, x: L.logsumexp(x, 0))
    yield of(
        "sum of the last axis of 3",
        normal(300_000, 3),
        lambda L, F, x: x.sum(1),
        lambda np, x: x.sum(1),
        lambda np, x: x.sum(1),
    )
    yield of("sum of axes 0 and 1", normal(100, 100, 100), lambda L, F, x: x.sum((0, 1)), lambda np, x: x.sum((0, 1)))
    yield of("variance, f64", normal(MILLION), lambda L, F, x: L.var(x, correction=1), dtype="f64")
    yield of("covariance of 20 series of 10⁴", normal(20, 10_000), lambda L, F, x: L.cov(x), lambda np, x: np.cov(x))
    yield from both(of("products of rows of 10", normal(100_000, 10), lambda L, F, x: L.prod(x, 1)))
    yield from both(of("sum along axis 1 of 3 axes", normal(100, 100, 100), lambda L, F, x: x.sum(1)))
    yield of("all of rows", truths(1000, 1000), lambda L, F, x: L.all(x, 1), None, lambda np, x: x.all(1), "i64")


def _cumulative() -> Iterator[Row]:
    family, square = "cumulative", normal(1000, 1000)
    yield from both(
        row_of(
            "cumprod along axis 0",
            family,
            "f32",
            lambda rng: 1 + 0.01 * rng.standard_normal((1000, 1000)),
            lambda L, F, x: L.cumprod(x, 0),
        )
    )
    yield row_of(
        "cumsum of int64",
        family,
        "i64",
        integers(9, MILLION),
        lambda L, F, x: L.cumsum(x, 0),
        None,
        lambda np, x: np.cumsum(x),
    )
    yield row_of("cumsum along the middle axis", family, "f32", normal(100, 100, 100), lambda L, F, x: L.cumsum(x, 1))
    yield row_of("cummin along axis 0", family, "f32", square, lambda L, F, x: L.cummin(x, 0)[0])
    yield row_of("logcumsumexp along axis 0", family, "f32", square, lambda L, F, x: L.logcumsumexp(x, 0))
    yield row_of("areas by trapezoids", family, "f32", square, lambda L, F, x: L.trapezoid(x, dx=0.1))


# --- moved and looked up --------------------------------------------------------------------------


def _movement() -> Iterator[Row]:
    family, images = "movement", normal(16, 32, 56, 56)

    def of(name: str, make: Make, code: Code, dtype: str = "f32", numpy: Code | None = None) -> Row:
        return row_of(name, family, dtype, make, code, None, numpy)

    yield of(
        "channels first of channels last", normal(16, 56, 56, 32), lambda L, F, x: x.permute(0, 3, 1, 2).contiguous()
    )
    yield of("transposes of 64 of 128 × 128", normal(64, 128, 128), lambda L, F, x: x.transpose(1, 2).contiguous())
    yield of("transpose, bf16", normal(1000, 1000), lambda L, F, x: x.t().contiguous(), "bf16")
    yield of(
        "transpose of bytes",
        lambda rng: rng.integers(0, 255, (1000, 1000)).astype(np.uint8),
        lambda L, F, x: x.t().contiguous(),
        "i64",
    )
    yield of("every third row", normal(3000, 1000), lambda L, F, x: x[::3] + 0)
    yield of("unfold windows of 25 by 5", normal(100_000), lambda L, F, x: x.unfold(0, 25, 5).contiguous())
    yield from both(of("pixel shuffle by 2", images, lambda L, F, x: F.pixel_shuffle(x, 2)))
    yield of("concatenate 50 of 1000 × 20", normal(50, 1000, 20), lambda L, F, x: L.cat([x[k] for k in range(50)], 1))
    yield of("stack 10 along axis 0", normal(10, 100_000), lambda L, F, x: L.stack([x[9 - k] for k in range(10)]))
    yield of("roll along axis 1", normal(1000, 1000), lambda L, F, x: L.roll(x, 7, 1))
    yield from both(
        of("halves turned (rotary)", normal(32, 8, 128, 64), lambda L, F, x: L.cat([-x[..., 32:], x[..., :32]], -1))
    )
    yield of("meshgrid", normal(1000), lambda L, F, x: L.stack(L.meshgrid(x, x, indexing="ij")))
    yield of("rot90", normal(1000, 1000), lambda L, F, x: L.rot90(x))
    yield of("repeat interleaved along axis 1", normal(1000, 250), lambda L, F, x: L.repeat_interleave(x, 4, 1))
    yield of("fold of windows 3 × 3", normal(4, 72, 784), lambda L, F, x: F.fold(x, (28, 28), 3, padding=1))
    yield of("split and added", normal(1000, 1000), lambda L, F, x: sum(L.split(x, 250, 1)))
    yield from both(
        of("images, half as large, area", images, lambda L, F, x: F.interpolate(x, scale_factor=0.5, mode="area"))
    )
    yield from both(
        of("images, twice as large, nearest", normal(8, 32, 28, 28), lambda L, F, x: F.interpolate(x, scale_factor=2))
    )
    yield of("sequence padded by a constant", normal(64, 1000), lambda L, F, x: F.pad(x, (5, 5), value=1.0))


def _lookup() -> Iterator[Row]:
    family, square = "lookup", normal(1000, 1000)
    yield row_of(
        "columns by indices", family, "f32", (square, integers(1000, 500)), lambda L, F, x, i: L.index_select(x, 1, i)
    )
    yield from both(
        row_of(
            "x[i, j]",
            family,
            "f32",
            (square, integers(1000, 100_000), integers(1000, 100_000)),
            lambda L, F, x, i, j: x[i, j],
            lambda np, x, i, j: x[i, j],
        )
    )
    yield row_of(
        "gather along axis 0", family, "f32", (square, integers(1000, 1000, 1000)), lambda L, F, x, i: L.gather(x, 0, i)
    )
    yield row_of(
        "scatter-add along axis 1",
        family,
        "f32",
        (normal(1000, 100), integers(100, 1000, 1000), square),
        lambda L, F, x, i, y: L.scatter_add(x, 1, i, y),
    )
    yield row_of(
        "scatter, the largest",
        family,
        "f32",
        (normal(1000), integers(1000, 100_000), normal(100_000)),
        lambda L, F, x, i, y: L.scatter_reduce(x, 0, i, y, "amax"),
    )
    yield row_of(
        "rows of a mask",
        family,
        "f32",
        (normal(10_000, 100), truths(10_000)),
        lambda L, F, x, m: x[m],
        None,
        lambda np, x, m: x[m],
        compiles=False,
    )
    yield row_of(
        "sums of bags of 10 rows",
        family,
        "f32",
        (normal(10_000, 64), integers(10_000, 2000, 10)),
        lambda L, F, x, i: F.embedding(i, x).sum(1),
    )
    yield row_of(
        "buckets of 20 borders", family, "f32", (normal(MILLION), ascending(20)), lambda L, F, x, b: L.bucketize(x, b)
    )
    yield row_of("one-hot of 10", family, "i64", integers(10, 10_000), lambda L, F, i: F.one_hot(i, 10))
    yield row_of(
        "take along rows",
        family,
        "f32",
        (normal(10_000, 100), integers(100, 10_000, 1)),
        lambda L, F, x, i: L.take_along_dim(x, i, 1),
    )
    yield Row(
        "put 10⁵ places",
        family,
        "f32",
        MILLION,
        (normal(MILLION), _distinct(100_000), normal(100_000)),
        {
            OURS: lambda x, i, y: x.at[i].set(y),
            TORCH: lambda x, i, y: x.index_put((i,), y),
            JAX: lambda x, i, y: x.at[i].set(y, unique_indices=True),
        },
    )
    yield row_of(
        "means of 100 segments",
        family,
        "f32",
        (normal(100_000), integers(100, 100_000)),
        lambda L, F, x, i: L.zeros(100).index_add(0, i, x) / L.zeros(100).index_add(0, i, L.ones_like(x)),
    )


def _distinct(count: int) -> Make:
    return lambda rng: rng.permutation(MILLION)[:count]
