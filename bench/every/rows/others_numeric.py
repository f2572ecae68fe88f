"""Rows that were drawn up before anyone had looked how fast they are: order, products, transforms, linear algebra."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from bench.every.row import Code, Make, Row, ascending, both, definite, imaginary, integers, invertible, normal
from bench.every.rows.others import gradient_of, row_of

MILLION = 1_000_000


def rows() -> Iterator[Row]:
    for part in (_order, _products, _einsum, _fourier, _algebra):
        yield from part()


def _order() -> Iterator[Row]:
    family, square = "order", normal(1000, 1000)
    yield row_of(
        "sort of rows of 1000",
        family,
        "f32",
        square,
        lambda L, F, x: L.sort(x, 1)[0],
        lambda np, x: np.sort(x, 1),
        lambda np, x: np.sort(x, 1),
    )
    distinct = lambda rng: rng.permutation(MILLION).reshape(1000, 1000) * 1.0
    yield from both(row_of("sort along axis 0", family, "f32", distinct, lambda L, F, x: L.sort(x, 0)[0], None))
    yield row_of(
        "sort of 10⁵ f64", family, "f64", normal(100_000), lambda L, F, x: L.sort(x)[0], None, lambda np, x: np.sort(x)
    )
    yield row_of(
        "sort of 10⁶ int64",
        family,
        "i64",
        integers(10**9, MILLION),
        lambda L, F, x: L.sort(x)[0],
        None,
        lambda np, x: np.sort(x),
    )
    yield row_of(
        "argsort of 10⁶",
        family,
        "f32",
        lambda rng: rng.permutation(MILLION) * 1.0,
        lambda L, F, x: L.argsort(x),
        None,
        lambda np, x: np.argsort(x),
    )
    yield row_of(
        "sort of 10⁴, descending", family, "f32", normal(10_000), lambda L, F, x: L.sort(x, descending=True)[0]
    )
    yield row_of("top 100 of 10⁶", family, "f32", normal(MILLION), lambda L, F, x: L.topk(x, 100)[0])
    yield row_of("top 5 of 10⁴ rows of 100", family, "f32", normal(10_000, 100), lambda L, F, x: L.topk(x, 5, 1)[0])
    yield row_of("10th smallest of rows", family, "f32", square, lambda L, F, x: L.kthvalue(x, 10, 1)[0])
    yield row_of(
        "quantiles of rows",
        family,
        "f32",
        square,
        lambda L, F, x: L.quantile(x, 0.25, 1),
        lambda np, x: np.quantile(x, 0.25, 1),
    )
    yield row_of("median of 10⁶", family, "f32", normal(MILLION - 1), lambda L, F, x: L.median(x))
    yield row_of(
        "unique floats with counts",
        family,
        "f32",
        lambda rng: rng.integers(0, 1000, 100_000) / 8.0,
        lambda L, F, x: L.unique(x, return_counts=True),
        None,
        lambda np, x: np.unique(x, return_counts=True),
        compiles=False,
    )
    yield row_of(
        "searchsorted of rows",
        family,
        "f32",
        (ascending(100, 1000), normal(100, 1000)),
        lambda L, F, a, x: L.searchsorted(a, x),
    )


def _products() -> Iterator[Row]:
    family = "products"

    def of(
        name: str,
        first: tuple[int, ...],
        second: tuple[int, ...],
        code: Code = lambda L, F, x, y: x @ y,
        dtype: str = "f32",
        make: Any = normal,
    ) -> Row:
        plain = (lambda np, x, y: x @ y) if code.__code__.co_names == () else None
        return row_of(name, family, dtype, (make(*first), make(*second)), code, plain, plain)

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
    yield of(
        "x + A B scaled (addmm)", (256, 512), (512, 256), lambda L, F, x, y: L.addmm(y[:256], x, y, beta=0.5, alpha=2.0)
    )
    yield row_of(
        "Gram matrix of 2000 × 200",
        family,
        "f32",
        normal(2000, 200),
        lambda L, F, x: x.t() @ x,
        lambda np, x: x.T @ x,
        lambda np, x: x.T @ x,
    )
    yield row_of(
        "5th power of 200 × 200",
        family,
        "f32",
        lambda rng: rng.standard_normal((200, 200)) / 15,
        lambda L, F, x: L.linalg.matrix_power(x, 5),
    )
    yield of("complex vector by matrix", (512, 512), (512,), dtype="c64", make=imaginary)
    yield row_of(
        "two layers of 4096, one sample",
        family,
        "f32",
        (normal(1, 1024), normal(4096, 1024), normal(1024, 4096)),
        lambda L, F, x, a, b: F.linear(F.relu(F.linear(x, a)), b),
    )
    yield from both(
        row_of(
            "feed-forward of 512 by 256 and 1024",
            family,
            "f32",
            (normal(512, 256), normal(1024, 256), normal(256, 1024)),
            lambda L, F, x, a, b: F.linear(F.gelu(F.linear(x, a)), b),
        )
    )
    yield row_of("convolution by polynomials", family, "f64", (normal(2000), normal(300)), _polynomials)
    yield row_of("quaternions", "elementwise", "f32", (normal(100_000, 4), normal(100_000, 4)), _quaternions)


def _polynomials(L: Any, F: Any, x: Any, y: Any) -> Any:
    return F.conv1d(x[None, None], L.flip(y, (0,))[None, None], padding=299)


def _quaternions(L: Any, F: Any, p: Any, q: Any) -> Any:
    a, b, c, d = p.unbind(-1)
    e, f, g, h = q.unbind(-1)
    return L.stack(
        [
            a * e - b * f - c * g - d * h,
            a * f + b * e + c * h - d * g,
            a * g - b * h + c * e + d * f,
            a * h + b * g - c * f + d * e,
        ],
        -1,
    )


def _einsum() -> Iterator[Row]:
    def of(text: str, *shapes: tuple[int, ...]) -> Row:
        return row_of(
            f"einsum {text}",
            "einsum",
            "f32",
            tuple(normal(*shape) for shape in shapes),
            lambda L, F, *xs: L.einsum(text, *xs),
            lambda np, *xs: np.einsum(text, *xs),
        )

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
        return row_of(name, family, dtype, make, code, jax, jax)

    yield of("fft of 10007, a prime", imaginary(10_007), lambda L, F, x: L.fft.fft(x), lambda np, x: np.fft.fft(x))
    yield of(
        "inverse fft of 100 rows of 1000",
        imaginary(100, 1000),
        lambda L, F, x: L.fft.ifft(x),
        lambda np, x: np.fft.ifft(x),
    )
    yield of(
        "fft along axis 0",
        imaginary(512, 512),
        lambda L, F, x: L.fft.fft(x, dim=0),
        lambda np, x: np.fft.fft(x, axis=0),
    )
    yield of("fftn of 64³", imaginary(64, 64, 64), lambda L, F, x: L.fft.fftn(x), lambda np, x: np.fft.fftn(x))
    yield of(
        "rfft2 of 16 of 128²",
        normal(16, 128, 128),
        lambda L, F, x: L.fft.rfft2(x),
        lambda np, x: np.fft.rfft2(x),
        "f32",
    )
    yield of(
        "irfft of rows of 1025", imaginary(100, 513), lambda L, F, x: L.fft.irfft(x), lambda np, x: np.fft.irfft(x)
    )
    yield of("rfft of 2¹⁶, f64", normal(65536), lambda L, F, x: L.fft.rfft(x), lambda np, x: np.fft.rfft(x), "f64")
    yield of(
        "convolution by fft of 10⁵",
        normal(100_000),
        lambda L, F, x: L.fft.irfft(L.fft.rfft(x) * L.fft.rfft(x.flip(0)), n=100_000),
        lambda np, x: np.fft.irfft(np.fft.rfft(x) * np.fft.rfft(x[::-1]), n=100_000),
        "f32",
    )
    yield row_of(
        "spectrogram (stft) of 10⁵",
        family,
        "f32",
        (normal(100_000), lambda rng: np.hanning(400)),
        lambda L, F, x, w: L.abs(L.stft(x, 400, hop_length=160, window=w, return_complex=True)),
    )


def _algebra() -> Iterator[Row]:
    family = "linear algebra"

    def of(name: str, make: Make, code: Code, jax: Code | None = None, dtype: str = "f64", **more: Any) -> Row:
        return row_of(name, family, dtype, make, code, jax, **more)

    yield of("cholesky of 1000 of 8 × 8", definite(1000, 8, 8), lambda L, F, a: L.linalg.cholesky(a), dtype="f32")
    yield of(
        "eigenvalues of 200 symmetric 16 × 16", definite(200, 16, 16), lambda L, F, a: L.linalg.eigvalsh(a), dtype="f32"
    )
    yield of("singular values of 200 of 16 × 8", normal(200, 16, 8), lambda L, F, a: L.linalg.svdvals(a), dtype="f32")
    yield of("pseudoinverse 100 × 50", normal(100, 50), lambda L, F, a: L.linalg.pinv(a))
    yield of(
        "matrix exponential 100 × 100",
        lambda rng: rng.standard_normal((100, 100)) / 20,
        lambda L, F, a: L.linalg.matrix_exp(a),
    )
    yield of("solve 500 × 500, f32", invertible(500, 500), lambda L, F, a: L.linalg.solve(a, a[:, :1]), dtype="f32")
    yield of("least squares 1000 × 20", normal(1000, 20), lambda L, F, a: L.linalg.lstsq(a[:, 1:], a[:, :1])[0])
    yield of(
        "log-determinants of 500 of 8 × 8", invertible(500, 8, 8), lambda L, F, a: L.linalg.slogdet(a)[1], dtype="f32"
    )
    yield of("inverse 200 × 200, f32", invertible(200, 200), lambda L, F, a: L.linalg.inv(a), dtype="f32")
    yield gradient_of(of("inverse 100 × 100", invertible(100, 100), lambda L, F, a: L.linalg.inv(a)))
    yield gradient_of(of("log-determinant 100 × 100", invertible(100, 100), lambda L, F, a: L.linalg.slogdet(a)[1]))
    yield of("cholesky 1000 × 1000, f32", definite(1000, 1000), lambda L, F, a: L.linalg.cholesky(a), dtype="f32")
    yield of("eigh 50 × 50", definite(50, 50), lambda L, F, a: L.linalg.eigh(a)[0])
    yield gradient_of(
        of("eigenvalues of symmetric 100 × 100", definite(100, 100), lambda L, F, a: L.linalg.eigvalsh(a))
    )
    yield of(
        "triangular solve of many right sides",
        lambda rng: np.tril(rng.standard_normal((400, 400))) + 20 * np.eye(400),
        lambda L, F, a: L.linalg.solve_triangular(a, a.t().contiguous(), upper=False),
    )
