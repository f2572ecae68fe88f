"""Eigenvalues, singular values and exponentials of matrices on a machine of blocks: as the CPU and NumPy have them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm

import eshkol as ek
from batches import checkered
from eshkol.errors import TensorError

RNG = np.random.default_rng(3)
START = RNG.bit_generator.state


@pytest.fixture(autouse=True)
def of_blocks():
    RNG.bit_generator.state = START  # whatever was drawn by tests before
    with ek.device("blocks"):
        yield


def both(code, *given):
    """What code gives here and on the CPU, whose vectors have the same signs."""
    found = code(*map(ek.tensor, given))
    with ek.device("cpu"):
        wanted = code(*map(ek.tensor, given))
    return [tuple(y.numpy() for y in (made if isinstance(made, tuple) else (made,))) for made in (found, wanted)]


def agree(code, *given, off=1e-13):
    for found, wanted in zip(*both(code, *given), strict=True):
        assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=off, atol=off)


def symmetric(*shape):
    x = RNG.standard_normal(shape)
    return x + np.swapaxes(x, -1, -2)


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (2, 4, 4), (9, 9)])
def test_symmetric_matrices(shape):
    x = symmetric(*shape)
    agree(ek.linalg.eigh, x)
    agree(ek.linalg.eigvalsh, x)


def test_symmetric_matrices_at_corners():
    many = np.stack([np.eye(4), np.zeros((4, 4)), np.diag([3.0, -1.0, 3.0, 2.0]), np.ones((4, 4)), symmetric(4, 4)])
    many = np.concatenate([many, many[-1:] * 1e200, many[-1:] * 1e-200])
    values, vectors = (y.numpy() for y in ek.linalg.eigh(ek.tensor(many)))
    size = np.abs(many).max((-2, -1), keepdims=True) + 1e-300
    np.testing.assert_allclose(values / size[..., 0], np.linalg.eigvalsh(many / size), atol=1e-14)
    units = np.broadcast_to(np.eye(4), many.shape)
    np.testing.assert_allclose(np.swapaxes(vectors, -1, -2) @ vectors, units, atol=1e-14)
    np.testing.assert_allclose(many / size @ vectors, vectors * values[..., None, :] / size, atol=1e-14)
    np.testing.assert_array_equal(ek.linalg.eigvalsh(ek.tensor(np.diag([3.0, 0.1, -7.0]))).numpy(), [-7.0, 0.1, 3.0])
    assert [y.shape for y in ek.linalg.eigh(ek.tensor(np.zeros((2, 0, 0))))] == [(2, 0), (2, 0, 0)]


@pytest.mark.parametrize("shape", [(1, 1), (1, 3), (4, 2), (2, 3), (2, 3, 3), (7, 6)])
def test_singular_values(shape):
    x = RNG.standard_normal(shape)
    agree(ek.svd, x)
    agree(ek.linalg.svdvals, x)


@pytest.mark.unchecked("vectors without singular values are arbitrary")
@checkered(shape=[(4, 3), (3, 4), (3, 3)], full=[False, True])
def test_singular_values_of_matrices_without_full_rank(shape, full):
    line = np.outer(RNG.standard_normal(shape[0]), RNG.standard_normal(shape[1]))
    x = np.stack([line, np.zeros(shape), np.eye(*shape), 1e200 * line])
    u, s, vh = (y.numpy() for y in ek.linalg.svd(ek.tensor(x), full_matrices=full))
    size = s.max(-1).clip(1)[:, None, None]
    np.testing.assert_allclose(s / size[..., 0], np.linalg.svdvals(x) / size[..., 0], atol=1e-14)
    for vectors in (u, np.swapaxes(vh, -1, -2)):
        units = np.broadcast_to(np.eye(vectors.shape[-1]), (*vectors.shape[:-2], *vectors.shape[-1:] * 2))
        np.testing.assert_allclose(np.swapaxes(vectors, -1, -2) @ vectors, units, atol=1e-13)
    least = s.shape[-1]
    np.testing.assert_allclose((u[..., :least] * (s[..., None, :] / size)) @ vh[..., :least, :], x / size, atol=1e-13)


def test_small_singular_values_are_as_exact_as_large_ones():
    u, _ = np.linalg.qr(RNG.standard_normal((5, 5)))
    wanted = np.array([1.0, 1e-3, 1e-6, 1e-9, 1e-12])
    found = ek.linalg.svdvals(ek.tensor(u * wanted)).numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_what_is_made_of_them():
    x, b = RNG.standard_normal((2, 4, 3)), RNG.standard_normal((2, 4, 1))
    agree(ek.linalg.pinv, x, off=1e-12)
    agree(ek.lstsq, x, b, off=1e-12)
    agree(ek.linalg.matrix_rank, np.stack([np.ones((3, 3)), np.eye(3)]))
    agree(ek.linalg.cond, x[:, :3], off=1e-11)
    agree(lambda x: ek.linalg.matrix_norm(x, "nuc"), x)
    agree(lambda x: ek.linalg.matrix_norm(x, 2), x)


@pytest.mark.parametrize("scale", [0.0, 0.1, 3.0, 15.0, 60.0])
def test_exponentials(scale):
    x = scale * RNG.standard_normal((2, 3, 3))
    wanted = expm(x)
    found = ek.linalg.matrix_exp(ek.tensor(x)).numpy()
    np.testing.assert_allclose(found, wanted, atol=1e-11 * np.abs(wanted).max())
    if scale < 60:  # whose results float32 does not hold
        single = ek.linalg.matrix_exp(ek.tensor(x.astype(np.float32))).numpy()
        assert single.dtype == np.float32
        np.testing.assert_allclose(single, wanted, atol=1e-3 * max(1e-3, scale / 3) * np.abs(wanted).max())


def test_single_precision():
    x = symmetric(6, 6).astype(np.float32)
    agree(ek.linalg.eigh, x, off=2e-5)
    agree(ek.svd, x[:, :4], off=2e-5)


@pytest.mark.parametrize("name", ["eigh", "eigvalsh", "svd", "svdvals", "pinv"])
def test_nothing_is_made_of_nan(name):
    wrong = ek.jit(lambda x: getattr(ek.linalg, name)(x))
    with pytest.raises(TensorError, match="NaN or infinities"):
        wrong(ek.tensor([[1.0, np.nan], [2.0, 3.0]]))


def test_derivatives_jit_loops_and_many():
    x = symmetric(3, 3)
    agree(ek.grad(lambda x: (ek.linalg.eigh(x)[1] ** 3).sum()), x, off=1e-11)
    agree(ek.grad(lambda x: ek.linalg.svdvals(x).sum()), x, off=1e-12)
    agree(ek.grad(lambda x: ek.linalg.pinv(x).sum()), x, off=1e-9)
    agree(ek.grad(lambda x: ek.linalg.matrix_exp(x).sum()), x * 0.3, off=1e-11)
    agree(ek.jit(ek.vmap(ek.linalg.eigvalsh)), np.stack([x, 2 * x]))
    agree(ek.jit(lambda x: ek.fori_loop(0, 2, lambda k, x: x / ek.linalg.svdvals(x)[0], x)), x)
