"""Rows of what was not looked at while other rows were made fast: kinds of work that PyTorch and NumPy do well."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import eshkol as ek
from bench.every.row import Code, Row, integers, invertible, normal, positive
from bench.every.row import ways as _ways
from bench.peers import functional as _f
from bench.peers import jax as _jax
from bench.peers import torch as _torch

MILLION = 1_000_000
IMAGES = (4, 16, 64, 64)


def rows() -> Iterator[Row]:
    for part in (_arrays, _images, _matrices, _counts):
        yield from part()


def _arrays() -> Iterator[Row]:
    square = normal(1000, 1000)
    yield Row("cumsum along axis 1, bf16", "cumulative", "bf16", 100_000, (normal(1000, 100),), _ways(
        lambda x: ek.cumsum(x, 1), lambda x: x.cumsum(1)))  # fmt: skip
    yield Row("logcumsumexp along axis 1", "cumulative", "f32", MILLION, (square,), _ways(
        lambda x: ek.logcumsumexp(x, 1), lambda x: x.logcumsumexp(1)))  # fmt: skip
    yield Row("nanmean along axis 0", "reductions", "f32", MILLION, (square,), _ways(
        lambda x: ek.nanmean(x, 0), lambda x: x.nanmean(0), lambda x: _jax().numpy.nanmean(x, 0),
        lambda x: np.nanmean(x, 0)))  # fmt: skip
    yield Row("cross products of 10⁵", "elementwise", "f32", 300_000, (normal(100_000, 3),) * 2, _ways(
        lambda x, y: ek.cross(x, y), lambda x, y: _torch().cross(x, y, dim=-1),
        lambda x, y: _jax().numpy.cross(x, y), np.cross))  # fmt: skip
    yield Row("kron of 30 × 30 and 30 × 30", "products", "f32", 810_000, (normal(30, 30),) * 2, _ways(
        lambda x, y: ek.kron(x, y), lambda x, y: _torch().kron(x, y), lambda x, y: _jax().numpy.kron(x, y),
        np.kron))  # fmt: skip
    yield Row("10⁵ rows of 16 by indices", "lookup", "f32", 1_600_000,
              (normal(100_000, 16), integers(100_000, 100_000)), _ways(
        lambda x, i: x[i], lambda x, i: x[i], lambda x, i: x[i], lambda x, i: x[i]))  # fmt: skip


def _images() -> Iterator[Row]:
    size = int(np.prod(IMAGES))
    yield Row("pad images by 2, reflected", "movement", "f32", size, (normal(*IMAGES),), _ways(
        lambda x: ek.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), mode="reflect"),
        lambda x: _f().pad(x, (2, 2, 2, 2), mode="reflect"),
        lambda x: _jax().numpy.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), mode="reflect"),
        lambda x: np.pad(x, ((0, 0), (0, 0), (2, 2), (2, 2)), mode="reflect")))  # fmt: skip
    yield Row("images, twice as large, bicubic", "movement", "f32", size, (normal(*IMAGES),), _ways(
        lambda x: ek.interpolate(x, scale_factor=2, mode="bicubic"),
        lambda x: _f().interpolate(x, scale_factor=2, mode="bicubic")))  # fmt: skip
    yield Row("images at other places", "movement", "f32", size,
              (normal(*IMAGES), lambda rng: rng.random((4, 64, 64, 2)) * 2 - 1), _ways(
        lambda x, at: ek.nn.functional.grid_sample(x, at),
        lambda x, at: _f().grid_sample(x, at, align_corners=False)))  # fmt: skip
    yield Row("bytes to floats, less a mean", "elementwise", "i64", 786_432,
              (lambda rng: rng.integers(0, 255, (3, 512, 512)).astype(np.uint8),), _ways(
        lambda x: x.to(ek.float32) * 0.5 - 3.0, lambda x: x.float() * 0.5 - 3.0,
        lambda x: x.astype("float32") * 0.5 - 3.0, lambda x: x.astype(np.float32) * np.float32(0.5) - np.float32(3.0),
    ))  # fmt: skip


def _matrices() -> Iterator[Row]:
    family = "linear algebra"

    def of(name: str, count: int, side: int, way: Code) -> Row:
        ways = _ways(lambda a: way(ek.linalg, a), lambda a: way(_torch().linalg, a),
                     lambda a: way(_jax().numpy.linalg, a), lambda a: way(np.linalg, a))  # fmt: skip
        return Row(name, family, "f32", count * side * side, (invertible(count, side, side),), ways)

    yield of("determinants of 1000 of 4 × 4", 1000, 4, lambda la, a: la.det(a))
    yield of("inverses of 1000 of 8 × 8", 1000, 8, lambda la, a: la.inv(a))
    yield of("solve 200 of 16 × 16", 200, 16, lambda la, a: la.solve(a, a[:, :, :2]))
    yield Row("distances among 500 points", "distances", "f32", 16_000, (normal(500, 32),), _ways(
        lambda x: ek.nn.functional.pdist(x), lambda x: _f().pdist(x)))  # fmt: skip
    yield Row("product of integers, 200 × 200", "products", "i64", 40_000, (integers(9, 200, 200),) * 2, _ways(
        *[lambda x, y: x @ y] * 4))  # fmt: skip


def _counts() -> Iterator[Row]:
    yield Row("weighted bincount", "lookup", "f32", MILLION, (integers(1000, MILLION), positive(MILLION)), _ways(
        lambda i, w: ek.bincount(i, w, minlength=1000), lambda i, w: _torch().bincount(i, w, minlength=1000),
        None, lambda i, w: np.bincount(i, w, minlength=1000)), compiles=False)  # fmt: skip
    yield Row("which of 10⁵ are in 10³", "lookup", "i64", 100_000,
              (integers(MILLION, 100_000), integers(MILLION, 1000)),
              _ways(lambda x, y: ek.isin(x, y), lambda x, y: _torch().isin(x, y),
                    lambda x, y: _jax().numpy.isin(x, y), np.isin))  # fmt: skip
