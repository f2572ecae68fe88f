"""Rows of plain arrays: element by element, broadcast, reduced, accumulated, moved, complex, and random numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import special

import eshkol as ek
from bench.every.row import (
    JAX,
    NUMPY,
    OURS,
    TORCH,
    Code,
    Row,
    both,
    everywhere,
    imaginary,
    integers,
    normal,
    positive,
)
from bench.peers import jax as _jax
from bench.peers import torch as _torch

MILLION = 1_000_000


def rows() -> Iterator[Row]:
    for part in (_elementwise, _broadcasting, _reductions, _cumulative, _movement, _complex, _random):
        yield from part()


# --- element by element ---------------------------------------------------------------------------


def _elementwise() -> Iterator[Row]:
    family = "elementwise"

    def one(name: str, n: int, make: Any, code: Code, dtype: str = "f32", **more: Any) -> Row:
        return Row(name, family, dtype, n, (make(n),), everywhere(code, **more))

    def two(name: str, n: int, code: Code, dtype: str = "f32", make: Any = normal) -> Row:
        return Row(name, family, dtype, n, (make(n), make(n)), everywhere(code))

    yield two("x + y, 100", 100, lambda lib, x, y: x + y)
    yield two("x + y, 10⁷", 10**7, lambda lib, x, y: x + y)
    yield two("x + y, f64", MILLION, lambda lib, x, y: x + y, "f64")
    yield two("x·y + x, bf16", MILLION, lambda lib, x, y: x * y + x, "bf16")
    yield two("x / y", MILLION, lambda lib, x, y: x / y, make=positive)
    yield two("where(x < y, x, y)", MILLION, lambda lib, x, y: lib.where(x < y, x, y))
    yield from both(one("tanh, 10⁴", 10_000, normal, lambda lib, x: lib.tanh(x)))
    yield from both(one("exp", MILLION, normal, lambda lib, x: lib.exp(x)))
    yield one("exp, f64", MILLION, normal, lambda lib, x: lib.exp(x), "f64")
    yield one("exp, bf16", MILLION, normal, lambda lib, x: lib.exp(x), "bf16")
    yield one("log, f64", MILLION, positive, lambda lib, x: lib.log(x), "f64")
    yield one("sin", MILLION, normal, lambda lib, x: lib.sin(x))
    yield one("sqrt, 10⁵", 100_000, positive, lambda lib, x: lib.sqrt(x))
    ways = everywhere(lambda lib, x, y: x**y, ())
    yield from both(Row("x ** y", family, "f32", MILLION, (positive(MILLION), positive(MILLION)), ways))
    yield two("atan2, f64", 100_000, _arctan2, "f64")
    yield one("floor", MILLION, normal, lambda lib, x: lib.floor(x))
    n = MILLION
    yield Row("erf", family, "f32", n, (normal(n),), {
        OURS: ek.erf, TORCH: lambda x: _torch().erf(x), NUMPY: special.erf,
        JAX: lambda x: _jax().scipy.special.erf(x),
    })  # fmt: skip
    yield Row("lgamma", family, "f32", n // 10, (positive(n // 10),), {
        OURS: ek.lgamma, TORCH: lambda x: _torch().lgamma(x), NUMPY: special.gammaln,
        JAX: lambda x: _jax().scipy.special.gammaln(x),
    })  # fmt: skip
    for name, ours, theirs in (("gelu", ek.gelu, "gelu"), ("silu", ek.silu, "silu"), ("relu", ek.relu, "relu")):
        yield from both(Row(name, family, "f32", n, (normal(n),), {
            OURS: ours, TORCH: lambda x, f=theirs: getattr(_torch().nn.functional, f)(x),
            JAX: lambda x, f=theirs: _jax().nn.gelu(x, approximate=False) if f == "gelu" else getattr(_jax().nn, f)(x),
        }))  # fmt: skip
    yield Row("gelu, bf16", family, "bf16", n, (normal(n),), {
        OURS: ek.gelu, TORCH: lambda x: _torch().nn.functional.gelu(x),
        JAX: lambda x: _jax().nn.gelu(x, approximate=False),
    })  # fmt: skip
    yield Row("integers: (a·3 + b) mod 7", family, "i64", n, (integers(1000, n), integers(1000, n)),
              everywhere(lambda lib, a, b: (a * 3 + b) % 7))  # fmt: skip
    yield Row("bits: (a & b) ^ (a << 3)", family, "i64", n, (integers(1000, n), integers(1000, n)),
              everywhere(lambda lib, a, b: (a & b) ^ (a << 3)))  # fmt: skip
    yield Row("f32 to f64", family, "f32", n, (normal(n),), {
        OURS: lambda x: x.to(ek.float64), TORCH: lambda x: x.double(), NUMPY: lambda x: x.astype(np.float64),
        JAX: lambda x: x.astype("float64"),
    })  # fmt: skip


def _arctan2(lib: Any, x: Any, y: Any) -> Any:
    return lib.arctan2(x, y)


# --- broadcasting ---------------------------------------------------------------------------------


def _broadcasting() -> Iterator[Row]:
    family = "broadcasting"
    yield from both(Row("matrix + row", family, "f32", MILLION, (normal(1000, 1000), normal(1000)),
                        everywhere(lambda lib, x, y: x + y)))  # fmt: skip
    yield from both(Row("matrix · column", family, "f32", MILLION, (normal(1000, 1000), normal(1000, 1)),
                        everywhere(lambda lib, x, y: x * y)))  # fmt: skip
    yield Row("column - row", family, "f64", MILLION, (normal(1000, 1), normal(1000)),
              everywhere(lambda lib, x, y: x - y))  # fmt: skip
    yield Row("images · channels + channels", family, "f32", 32 * 64 * 28 * 28,
              (normal(32, 64, 28, 28), normal(64, 1, 1), normal(64, 1, 1)),
              everywhere(lambda lib, x, a, b: x * a + b))  # fmt: skip


# --- reductions -----------------------------------------------------------------------------------


def _reductions() -> Iterator[Row]:
    family = "reductions"

    def of(name: str, shape: tuple[int, ...], code: Code, dtype: str = "f32", make: Any = normal, **more: Any) -> Row:
        return Row(name, family, dtype, int(np.prod(shape)), (make(*shape),), everywhere(code), **more)

    square, cube = (1000, 1000), (100, 100, 100)
    yield of("sum of 100", (100,), lambda lib, x: lib.sum(x))
    yield of("sum of 10⁷", (10**7,), lambda lib, x: lib.sum(x))
    yield of("sum, f64", (MILLION,), lambda lib, x: lib.sum(x), "f64")
    yield of("sum, bf16", (MILLION,), lambda lib, x: lib.sum(x), "bf16", positive)
    yield of("sum along axis 0", square, lambda lib, x: lib.sum(x, axis=0))
    # Not of sums themselves: their gradients repeat a number, which PyTorch only says and does not write.
    yield from both(of("sum of squares along axis 0", square, lambda lib, x: lib.sum(x * x, axis=0)))
    yield of("sum along axis 1", square, lambda lib, x: lib.sum(x, axis=1))
    yield of("mean along axis 0 of 10⁶ × 8", (MILLION, 8), lambda lib, x: lib.mean(x, axis=0))
    yield of("mean along axis 1 of 10⁶ × 8", (MILLION, 8), lambda lib, x: lib.mean(x, axis=1))
    yield of("sum along the middle axis", cube, lambda lib, x: lib.sum(x, axis=1))
    yield of("mean along axes 0, 2, 3", (32, 64, 28, 28), lambda lib, x: lib.mean(x, axis=(0, 2, 3)))
    yield of("max along axis 0", square, lambda lib, x: lib.amax(x, axis=0))
    yield from both(of("max along axis 1", square, lambda lib, x: lib.amax(x, axis=1)))
    yield of("argmax of all", (MILLION,), lambda lib, x: lib.argmax(x))
    yield of("argmax along axis 0", square, lambda lib, x: lib.argmax(x, axis=0))
    yield of("argmax along axis 1", square, lambda lib, x: lib.argmax(x, axis=1))
    yield of("prod along axis 1", square, lambda lib, x: lib.prod(x, axis=1), "f64", positive)
    yield of("any, all", (MILLION,), lambda lib, x: (lib.any(x > 9), lib.all(x > -9)))
    yield of("count_nonzero", (MILLION,), lambda lib, x: lib.count_nonzero(x > 0))

    def spread(name: str, shape: tuple[int, ...], axis: int | None) -> Row:
        return Row(name, family, "f32", int(np.prod(shape)), (normal(*shape),), {
            OURS: lambda x: ek.var(x, axis, unbiased=False) if axis is not None else ek.var(x, unbiased=False),
            NUMPY: lambda x: np.var(x, axis), JAX: lambda x: _jax().numpy.var(x, axis),
            TORCH: lambda x: _torch().var(x, dim=axis, unbiased=False),
        })  # fmt: skip

    yield from both(spread("variance along axis 1", square, 1))
    yield spread("variance along axis 0", square, 0)
    yield spread("variance of 10⁷", (10**7,), None)
    yield of("sum(x·y)", (2, MILLION), lambda lib, x: lib.sum(x[0] * x[1]))
    yield of("norm of a vector", (MILLION,), lambda lib, x: lib.sqrt(lib.sum(x * x)))


# --- accumulated ----------------------------------------------------------------------------------


def _cumulative() -> Iterator[Row]:
    family = "cumulative"
    for name, shape, axis in (("cumsum of 10⁶", (MILLION,), 0), ("cumsum along axis 0", (1000, 1000), 0),
                              ("cumsum along axis 1", (1000, 1000), 1)):  # fmt: skip
        yield from both(Row(name, family, "f32", MILLION, (normal(*shape),),
                            everywhere(lambda lib, x, axis=axis: lib.cumsum(x, axis))))  # fmt: skip
    yield Row("cumsum of 10⁶, f64", family, "f64", MILLION, (normal(MILLION),),
              everywhere(lambda lib, x: lib.cumsum(x, 0)))  # fmt: skip
    yield Row("cumprod along axis 1", family, "f64", 100_000, (positive(1000, 100),),
              everywhere(lambda lib, x: lib.cumprod(x, 1)))  # fmt: skip
    yield Row("cummax along axis 1", family, "f32", MILLION, (normal(1000, 1000),), {
        OURS: lambda x: ek.cummax(x, 1)[0], TORCH: lambda x: _torch().cummax(x, 1)[0],
        NUMPY: lambda x: np.maximum.accumulate(x, 1), JAX: lambda x: _jax().lax.cummax(x, 1),
    })  # fmt: skip
    yield Row("diff", family, "f32", MILLION, (normal(MILLION),), everywhere(lambda lib, x: lib.diff(x)))


# --- moved ----------------------------------------------------------------------------------------


def _movement() -> Iterator[Row]:
    family = "movement"

    def copied(name: str, shape: tuple[int, ...], dtype: str = "f32", **ways: Code) -> Row:
        found = {{"ours": OURS, "numpy": NUMPY, "torch": TORCH, "jax": JAX}[who]: way for who, way in ways.items()}
        return Row(name, family, dtype, int(np.prod(shape)), (normal(*shape),), found)

    def transposed(name: str, shape: tuple[int, ...], axes: tuple[int, ...], dtype: str = "f32") -> Row:
        return copied(
            name, shape, dtype, ours=lambda x: x.permute(*axes).contiguous(),
            numpy=lambda x: np.ascontiguousarray(x.transpose(axes)), torch=lambda x: x.permute(axes).contiguous(),
            jax=lambda x: x.transpose(axes),
        )  # fmt: skip

    yield transposed("transpose 1000 × 1000", (1000, 1000), (1, 0))
    yield transposed("transpose 1000 × 1000, f64", (1000, 1000), (1, 0), "f64")
    yield transposed("transpose of heads", (16, 128, 8, 64), (0, 2, 1, 3))
    yield transposed("transpose channels last", (16, 64, 56, 56), (0, 2, 3, 1))
    yield Row("concatenate along axis 0", family, "f32", MILLION, (normal(500, 1000), normal(500, 1000)),
              everywhere(lambda lib, x, y: lib.concatenate((x, y), 0)))  # fmt: skip
    yield Row("concatenate along axis 1", family, "f32", MILLION, (normal(1000, 500), normal(1000, 500)),
              everywhere(lambda lib, x, y: lib.concatenate((x, y), 1)))  # fmt: skip
    yield Row("stack along the last axis", family, "f32", MILLION, (normal(500_000), normal(500_000)),
              everywhere(lambda lib, x, y: lib.stack((x, y), -1)))  # fmt: skip
    yield from both(copied(
        "pad images by 2", (16, 32, 56, 56), ours=lambda x: ek.nn.functional.pad(x, (2, 2, 2, 2)),
        numpy=lambda x: np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2))),
        torch=lambda x: _torch().nn.functional.pad(x, (2, 2, 2, 2)),
        jax=lambda x: _jax().numpy.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2))),
    ))  # fmt: skip
    yield Row("roll along both axes", family, "f32", MILLION, (normal(1000, 1000),),
              everywhere(lambda lib, x: lib.roll(x, (3, 5), (0, 1))))  # fmt: skip
    yield Row("flip both axes", family, "f32", MILLION, (normal(1000, 1000),),
              everywhere(lambda lib, x: lib.flip(x, (0, 1)) + 0))  # fmt: skip
    yield Row("tile 2 × 3", family, "f32", 250_000, (normal(500, 500),),
              everywhere(lambda lib, x: lib.tile(x, (2, 3))))  # fmt: skip
    yield copied("repeat each row 4 times", (1000, 250), ours=lambda x: ek.repeat_interleave(x, 4, 0),
                 numpy=lambda x: np.repeat(x, 4, 0), torch=lambda x: x.repeat_interleave(4, 0),
                 jax=lambda x: _jax().numpy.repeat(x, 4, 0))  # fmt: skip
    yield Row("upper triangle", family, "f32", MILLION, (normal(1000, 1000),), everywhere(lambda lib, x: lib.triu(x)))
    yield Row("every other column + 0", family, "f32", MILLION, (normal(1000, 1000),),
              everywhere(lambda lib, x: x[:, ::2] + 0))  # fmt: skip
    yield copied("im2col 3 × 3", (8, 16, 56, 56), ours=lambda x: ek.unfold(x, 3, padding=1),
                 torch=lambda x: _torch().nn.functional.unfold(x, 3, padding=1))  # fmt: skip
    yield copied("images, twice as large, bilinear", (8, 16, 64, 64),
                 ours=lambda x: ek.interpolate(x, scale_factor=2, mode="bilinear"),
                 torch=lambda x: _torch().nn.functional.interpolate(x, scale_factor=2, mode="bilinear"),
                 jax=lambda x: _jax().image.resize(x, (8, 16, 128, 128), "bilinear"))  # fmt: skip


# --- complex --------------------------------------------------------------------------------------


def _complex() -> Iterator[Row]:
    family, n = "complex", 500_000
    yield Row("complex product", family, "c64", n, (imaginary(n), imaginary(n)), everywhere(lambda lib, x, y: x * y))
    yield Row("complex quotient + x", family, "c64", n, (imaginary(n), imaginary(n)),
              everywhere(lambda lib, x, y: x / y + x))  # fmt: skip
    yield Row("modulus", family, "c64", n, (imaginary(n),), everywhere(lambda lib, x: lib.abs(x)))
    yield Row("complex exp", family, "c64", n, (imaginary(n),), everywhere(lambda lib, x: lib.exp(x)))
    yield Row("complex matrix product", family, "c64", 256 * 256, (imaginary(256, 256), imaginary(256, 256)),
              everywhere(lambda lib, x, y: x @ y))  # fmt: skip


# --- random ---------------------------------------------------------------------------------------


def _moments(found: list[np.ndarray]) -> np.ndarray:
    """Mean and spread, to two digits or so: what random numbers of different libraries have in common."""
    x = found[0].astype(np.float64)
    return np.round(np.array([*x.shape, 10 * x.mean(), 10 * x.std()]), 0)


def _random() -> Iterator[Row]:
    """Every call draws other numbers; keyed libraries are given keys that differ."""
    family = "random"
    generator = np.random.default_rng(7)

    def keyed(draw: Code) -> Code:
        """Of JAX: one compiled function of a key that is split each time, as its users do."""
        state: list[Any] = []

        def call() -> Any:
            if not state:
                state.extend([_jax().random.key(0), _jax().jit(lambda k: (_jax().random.split(k)[0], draw(k)))])
            state[0], found = state[1](state[0])
            return found

        return call

    def draws(name: str, n: int, ours: Code, torch: Code, numpy: Code, jax: Code, dtype: str = "f32") -> Row:
        ways = {OURS: ours, TORCH: torch, NUMPY: numpy, JAX: keyed(jax)}
        return Row(name, family, dtype, n, (), ways, compiles=False, agrees=_moments)

    n = MILLION
    yield draws(
        "uniform",
        n,
        lambda: ek.rand(n),
        lambda: _torch().rand(n),
        lambda: generator.random(n, np.float32),
        lambda k: _jax().random.uniform(k, (n,), "float32"),
    )
    yield draws("normal", n, lambda: ek.randn(n), lambda: _torch().randn(n),
                lambda: generator.standard_normal(n, np.float32),
                lambda k: _jax().random.normal(k, (n,), "float32"))  # fmt: skip
    yield draws("integers below 1000", n, lambda: ek.randint(0, 1000, (n,)), lambda: _torch().randint(0, 1000, (n,)),
                lambda: generator.integers(0, 1000, n), lambda k: _jax().random.randint(k, (n,), 0, 1000))  # fmt: skip
    yield draws("a permutation of 10⁵", 100_000, lambda: ek.randperm(100_000), lambda: _torch().randperm(100_000),
                lambda: generator.permutation(100_000), lambda k: _jax().random.permutation(k, 100_000))  # fmt: skip
    yield Row("dropout", family, "f32", n, (normal(n),), {
        OURS: lambda x: ek.nn.functional.dropout(x, 0.5, True),
        TORCH: lambda x: _torch().nn.functional.dropout(x, 0.5, True),
    }, compiles=False, agrees=_moments)  # fmt: skip
