"""Rows of numerical work: products, einsum, lookup, masks, order, Fourier transforms, linear algebra, distances."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy

import eshkol as ek
from bench.every.row import (
    TORCH,
    Code,
    Make,
    Row,
    ascending,
    both,
    definite,
    everywhere,
    imaginary,
    integers,
    invertible,
    normal,
    positive,
    truths,
)
from bench.every.row import ways as _ways
from bench.peers import jax as _jax
from bench.peers import torch as _torch

MILLION = 1_000_000


def rows() -> Iterator[Row]:
    for part in (_products, _einsum, _lookup, _masks, _order, _fourier, _linear_algebra, _distances):
        yield from part()


# --- products -------------------------------------------------------------------------------------


def _products() -> Iterator[Row]:
    family = "products"

    def of(name: str, x: tuple[int, ...], y: tuple[int, ...], dtype: str = "f32") -> Row:
        return Row(name, family, dtype, int(max(np.prod(x), np.prod(y))), (normal(*x), normal(*y)),
                   everywhere(lambda lib, a, b: a @ b))  # fmt: skip

    yield of("product 10 × 10", (10, 10), (10, 10))
    yield from both(of("product 64 × 64", (64, 64), (64, 64)))
    yield from both(of("product 512 × 512", (512, 512), (512, 512)))
    yield of("product 512 × 512, f64", (512, 512), (512, 512), "f64")
    yield of("product 512 × 512, bf16", (512, 512), (512, 512), "bf16")
    yield of("product of tall and small", (100_000, 32), (32, 16))
    yield of("product of wide and tall", (32, 100_000), (100_000, 32))
    yield of("batched product 512 of 16 × 16", (512, 16, 16), (512, 16, 16))
    yield of("batched product 64 of 64 × 64", (64, 64, 64), (64, 64, 64))
    yield from both(of("matrix times vector", (2000, 2000), (2000,)))
    yield of("vector times matrix", (2000,), (2000, 2000))
    yield of("matrix times vector, f64", (1000, 1000), (1000,), "f64")
    yield of("dot product", (MILLION,), (MILLION,))
    yield Row("outer product", family, "f32", MILLION, (normal(1000), normal(1000)),
              everywhere(lambda lib, a, b: lib.outer(a, b)))  # fmt: skip
    yield Row("diag(a) @ b", family, "f32", 512 * 512, (normal(512), normal(512, 512)),
              everywhere(lambda lib, a, b: lib.diag(a) @ b))  # fmt: skip
    yield Row("a @ b @ c, vector last", family, "f32", 512 * 512, (normal(512, 512), normal(512, 512), normal(512)),
              everywhere(lambda lib, a, b, c: a @ b @ c))  # fmt: skip
    yield Row("trace(a @ b)", family, "f32", 512 * 512, (normal(512, 512), normal(512, 512)),
              everywhere(lambda lib, a, b: lib.trace(a @ b)))  # fmt: skip
    yield Row("linear with bias", family, "f32", 256 * 784, (normal(256, 784), normal(256, 784), normal(256)),
              everywhere(lambda lib, x, w, b: x @ w.T + b))  # fmt: skip


def _einsum() -> Iterator[Row]:
    family = "einsum"

    def of(name: str, how: str, *shapes: tuple[int, ...]) -> Row:
        return Row(name, family, "f32", max(int(np.prod(s)) for s in shapes), tuple(normal(*s) for s in shapes),
                   everywhere(lambda lib, *given: lib.einsum(how, *given)))  # fmt: skip

    yield from both(of("einsum bhqd,bhkd->bhqk", "bhqd,bhkd->bhqk", (4, 8, 128, 64), (4, 8, 128, 64)))
    yield of("einsum ij,ij->i", "ij,ij->i", (1000, 1000), (1000, 1000))
    yield of("einsum bi,ijk,bk->bj", "bi,ijk,bk->bj", (128, 32), (32, 32, 32), (128, 32))
    yield of("einsum of a chain", "ij,jk,kl->il", (200, 10), (10, 200), (200, 200))
    yield of("einsum bij,bj->bi", "bij,bj->bi", (64, 128, 128), (64, 128))


# --- lookup and masks -----------------------------------------------------------------------------


def _lookup() -> Iterator[Row]:
    family = "lookup"
    n = 100_000
    yield from both(
        Row(
            "embedding 10⁴ × 64, 8192 rows",
            family,
            "f32",
            640_000,
            (normal(10_000, 64), integers(10_000, 8192)),
            everywhere(lambda lib, w, i: w[i]),
        )
    )
    yield from both(
        Row(
            "gather along axis 1",
            family,
            "f32",
            MILLION,
            (normal(1000, 1000), integers(1000, 1000, 100)),
            _ways(
                lambda x, i: ek.gather(x, 1, i),
                lambda x, i: _torch().gather(x, 1, i),
                lambda x, i: _jax().numpy.take_along_axis(x, i, 1),
                lambda x, i: np.take_along_axis(x, i, 1),
            ),
        )
    )
    yield Row("take of single elements", family, "f32", MILLION, (normal(MILLION), integers(MILLION, n)),
              everywhere(lambda lib, x, i: x[i]))  # fmt: skip
    yield Row("scatter-add of 10⁵ into 10³", family, "f32", n, (normal(1000), integers(1000, n), normal(n)), _ways(
        lambda x, i, s: ek.scatter_add(x, 0, i, s), lambda x, i, s: x.scatter_add(0, i, s),
        lambda x, i, s: x.at[i].add(s), lambda x, i, s: x + np.bincount(i, s, 1000).astype(np.float32)))  # fmt: skip
    yield from both(Row("index-add of rows of 64", family, "f32", 640_000,
                        (normal(1000, 64), integers(1000, 10_000), normal(10_000, 64)), _ways(
        lambda x, i, s: ek.index_add(x, 0, i, s), lambda x, i, s: x.index_add(0, i, s),
        lambda x, i, s: x.at[i].add(s))))  # fmt: skip
    yield Row("bincount", family, "i64", MILLION, (integers(1000, MILLION),), _ways(
        lambda x: ek.bincount(x, length=1000), lambda x: _torch().bincount(x, minlength=1000),
        lambda x: _jax().numpy.bincount(x, length=1000), lambda x: np.bincount(x, minlength=1000)))  # fmt: skip
    yield Row("histogram of 100 bins", family, "f32", MILLION, (positive(MILLION),), _ways(
        lambda x: ek.histogram(x, 100, (0.0, 2.0))[0], lambda x: _torch().histc(x, 100, 0.0, 2.0),
        lambda x: _jax().numpy.histogram(x, 100, (0.0, 2.0))[0], lambda x: np.histogram(x, 100, (0.0, 2.0))[0]),
        agrees=lambda found: np.round(found[0].astype(np.float64) / 1000))  # fmt: skip
    yield Row("one-hot of 1000", family, "i64", 1000 * 1000, (integers(1000, 1000),), _ways(
        lambda i: ek.one_hot(i, 1000), lambda i: _torch().nn.functional.one_hot(i, 1000),
        lambda i: _jax().nn.one_hot(i, 1000, dtype="int64")))  # fmt: skip
    yield Row("one element of 100", family, "f32", 100, (normal(100),), everywhere(lambda lib, x: x[7] + 0))


def _masks() -> Iterator[Row]:
    family = "masks"
    n = MILLION
    yield Row("masked select", family, "f32", n, (normal(n), truths(n)), everywhere(lambda lib, x, m: x[m]),
              compiles=False)  # fmt: skip
    yield Row("nonzero", family, "i64", n, (truths(n),), _ways(
        lambda m: ek.nonzero(m), lambda m: m.nonzero()[:, 0], lambda m: _jax().numpy.nonzero(m)[0],
        lambda m: np.nonzero(m)[0]), compiles=False, agrees=lambda found: found[0].ravel())  # fmt: skip
    yield from both(
        Row(
            "masked fill",
            family,
            "f32",
            n,
            (normal(n), truths(n)),
            _ways(
                lambda x, m: ek.masked_fill(x, m, 0.5),
                lambda x, m: x.masked_fill(m, 0.5),
                lambda x, m: _jax().numpy.where(m, 0.5, x).astype("float32"),
                lambda x, m: np.where(m, np.float32(0.5), x),
            ),
        )
    )
    yield Row("set a block of a matrix", family, "f32", n, (normal(1000, 1000), normal(100, 100)), _ways(
        lambda x, y: x.at[200:300, 400:500].set(y), lambda x, y: _with_block(x.clone(), y),
        lambda x, y: x.at[200:300, 400:500].set(y), lambda x, y: _with_block(x.copy(), y)))  # fmt: skip


def _with_block(x: Any, y: Any) -> Any:
    x[200:300, 400:500] = y
    return x


# --- order ----------------------------------------------------------------------------------------


def _order() -> Iterator[Row]:
    family = "order"

    def of(name: str, make: Make, size: int, dtype: str = "f32", **more: Any) -> Any:
        return lambda *ways: Row(name, family, dtype, size, (make,), _ways(*ways), **more)

    yield of("sort of 100", normal(100), 100)(
        lambda x: ek.sort(x)[0], lambda x: _torch().sort(x)[0], lambda x: _jax().numpy.sort(x), np.sort)  # fmt: skip
    yield of("sort of 10⁶", normal(MILLION), MILLION)(
        lambda x: ek.sort(x)[0], lambda x: _torch().sort(x)[0], lambda x: _jax().numpy.sort(x), np.sort)  # fmt: skip
    yield of("argsort of rows of 100", normal(1000, 100), 100_000)(
        lambda x: ek.argsort(x), lambda x: _torch().argsort(x), lambda x: _jax().numpy.argsort(x),
        lambda x: np.argsort(x, -1))  # fmt: skip
    yield of("top 10 of rows of 1000", normal(1000, 1000), MILLION)(
        lambda x: ek.topk(x, 10)[0], lambda x: _torch().topk(x, 10)[0], lambda x: _jax().lax.top_k(x, 10)[0]
    )
    yield of("median of rows of 1001", normal(100, 1001), 100_100)(
        lambda x: ek.median(x, 1).values, lambda x: _torch().median(x, 1)[0], lambda x: _jax().numpy.median(x, 1),
        lambda x: np.median(x, 1))  # fmt: skip
    yield of("quantile 0.9 of 10⁶", normal(MILLION), MILLION)(
        lambda x: ek.quantile(x, 0.9), lambda x: _torch().quantile(x, 0.9), lambda x: _jax().numpy.quantile(x, 0.9),
        lambda x: np.quantile(x, 0.9))  # fmt: skip
    yield of("unique of 10⁵", integers(1000, 100_000), 100_000, "i64", compiles=False)(
        lambda x: ek.unique(x), lambda x: _torch().unique(x), lambda x: _jax().numpy.unique(x), np.unique)  # fmt: skip
    yield Row("searchsorted of 10⁵ in 10⁴", family, "f32", 100_000, (ascending(10_000), normal(100_000)), _ways(
        lambda b, x: ek.searchsorted(b, x), lambda b, x: _torch().searchsorted(b, x),
        lambda b, x: _jax().numpy.searchsorted(b, x), np.searchsorted))  # fmt: skip


# --- Fourier --------------------------------------------------------------------------------------


def _fourier() -> Iterator[Row]:
    family = "Fourier"
    n = 65536
    yield Row(
        "fft of 65536",
        family,
        "c64",
        n,
        (imaginary(n),),
        _ways(lambda x: ek.fft(x), lambda x: _torch().fft.fft(x), lambda x: _jax().numpy.fft.fft(x), scipy.fft.fft),
    )
    yield Row(
        "fft of 1000 rows of 1000",
        family,
        "c64",
        MILLION,
        (imaginary(1000, 1000),),
        _ways(lambda x: ek.fft(x), lambda x: _torch().fft.fft(x), lambda x: _jax().numpy.fft.fft(x), scipy.fft.fft),
    )
    yield from both(Row("rfft of rows of 4096", family, "f32", 256 * 4096, (normal(256, 4096),), _ways(
        lambda x: ek.abs(ek.rfft(x)), lambda x: _torch().abs(_torch().fft.rfft(x)),
        lambda x: _jax().numpy.abs(_jax().numpy.fft.rfft(x)), lambda x: np.abs(scipy.fft.rfft(x)))))  # fmt: skip
    yield Row(
        "fft2 of 512 × 512",
        family,
        "c64",
        512 * 512,
        (imaginary(512, 512),),
        _ways(lambda x: ek.fft2(x), lambda x: _torch().fft.fft2(x), lambda x: _jax().numpy.fft.fft2(x), scipy.fft.fft2),
    )
    yield Row(
        "fft of 100",
        family,
        "c64",
        100,
        (imaginary(100),),
        _ways(lambda x: ek.fft(x), lambda x: _torch().fft.fft(x), lambda x: _jax().numpy.fft.fft(x), scipy.fft.fft),
    )


# --- linear algebra -------------------------------------------------------------------------------


def _linear_algebra() -> Iterator[Row]:
    family = "linear algebra"

    def of(name: str, make: Make, size: int, way: Code, dtype: str = "f64", **more: Any) -> Row:
        return Row(name, family, dtype, size, (make,), _linalg(way), **more)

    side = 300
    yield from both(Row("solve 300 × 300", family, "f64", side * side, (invertible(side, side), normal(side, 10)),
                        _linalg(lambda la, a, b: la.solve(a, b))))  # fmt: skip
    yield of("solve 1000 of 4 × 4", invertible(1000, 4, 4), 16_000, lambda la, a: la.solve(a, a[:, :, :1]), "f32")
    yield from both(of("cholesky 300 × 300", definite(side, side), side * side, lambda la, a: la.cholesky(a)))
    yield of("inverse 300 × 300", invertible(side, side), side * side, lambda la, a: la.inv(a))
    yield of("determinant 300 × 300, scaled", invertible(side, side), side * side, lambda la, a: la.det(a / 40))
    yield of("log-determinant 300 × 300, f32", definite(side, side), side * side, lambda la, a: la.slogdet(a)[1], "f32")
    magnitudes = lambda found: np.abs(found[0])
    yield of("QR 500 × 100", normal(500, 100), 50_000, lambda la, a: la.qr(a)[1], agrees=magnitudes)
    yield of("singular values 200 × 200", normal(200, 200), 40_000, lambda la, a: la.svd(a)[1], agrees=lambda f: f[0])
    yield of("eigh 200 × 200", definite(200, 200), 40_000, lambda la, a: la.eigh(a)[0], agrees=lambda f: f[0])
    yield of("eigvals 100 × 100", normal(100, 100), 10_000, lambda la, a: la.eigvals(a), "f32",
             agrees=lambda f: np.sort(np.abs(f[0])))  # fmt: skip
    yield Row("triangular solve 300 × 300", family, "f64", side * side,
              (lambda rng: np.tril(invertible(side, side)(rng)), normal(side, 10)), _ways(
        lambda a, b: ek.linalg.solve_triangular(a, b, upper=False),
        lambda a, b: _torch().linalg.solve_triangular(a, b, upper=False),
        lambda a, b: _jax().scipy.linalg.solve_triangular(a, b, lower=True),
        lambda a, b: scipy.linalg.solve_triangular(a, b, lower=True)))  # fmt: skip


def _linalg(way: Code) -> dict[str, Code]:
    """A function of the module `linalg` of each library."""
    return _ways(
        lambda *given: way(ek.linalg, *given), lambda *given: way(_torch().linalg, *given),
        lambda *given: way(_jax().numpy.linalg, *given), lambda *given: way(np.linalg, *given),
    )  # fmt: skip


# --- distances ------------------------------------------------------------------------------------


def _distances() -> Iterator[Row]:
    family = "distances"
    shapes = (normal(1000, 32), normal(1000, 32))

    def root(lib: Any, x: Any, y: Any) -> Any:
        return lib.sqrt(_squares(lib, x, y) + 1e-6)

    from scipy.spatial.distance import cdist

    yield from both(Row("cdist 1000 × 1000 of 32", family, "f32", MILLION, shapes, _ways(
        lambda x, y: ek.cdist(x, y), lambda x, y: _torch().cdist(x, y), lambda x, y: root(_jax().numpy, x, y),
        lambda x, y: cdist(x, y).astype(np.float32))))  # fmt: skip
    yield Row("cdist by absolute differences", family, "f32", MILLION, shapes, _ways(
        lambda x, y: ek.cdist(x, y, 1.0), lambda x, y: _torch().cdist(x, y, 1.0),
        lambda x, y: _jax().numpy.sum(_jax().numpy.abs(x[:, None] - y[None]), -1),
        lambda x, y: cdist(x, y, "cityblock").astype(np.float32)))  # fmt: skip
    yield Row("sum of (x[:, None] - y) ** 2", family, "f32", MILLION, shapes, everywhere(_squares))
    yield Row("nearest of 256 centres", family, "f32", 20_000 * 32, (normal(20_000, 32), normal(256, 32)), {
        **everywhere(lambda lib, x, y: lib.argmin(_squares(lib, x, y), axis=1), (TORCH,)),
        TORCH: lambda x, y: _torch().cdist(x, y).argmin(1),
    })  # fmt: skip
    yield Row("cosine similarity", family, "f32", 100_000 * 64, (normal(100_000, 64), normal(100_000, 64)), _ways(
        lambda x, y: ek.cosine_similarity(x, y), lambda x, y: _torch().nn.functional.cosine_similarity(x, y),
        lambda x, y: _cosine(_jax().numpy, x, y), lambda x, y: _cosine(np, x, y)))  # fmt: skip


def _squares(lib: Any, x: Any, y: Any) -> Any:
    return lib.sum((x[:, None] - y[None]) ** 2, axis=-1)


def _cosine(lib: Any, x: Any, y: Any) -> Any:
    inner = lambda a, b: lib.sum(a * b, axis=1)
    return inner(x, y) / lib.sqrt(inner(x, x) * inner(y, y))
