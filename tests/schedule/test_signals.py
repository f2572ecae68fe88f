"""Fourier transforms of signals side by side: groups of columns and of rows, what is left over, real numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples

# Every radix of the passes first, last and alone, such as have no code of their own, and Bluestein's way
LENGTHS = [
    *(1, 2, 3, 4, 5, 7, 8, 9, 11, 12, 13, 15, 16, 20, 24, 27, 32, 35, 49, 56, 64, 66, 67, 72, 96, 100, 121, 128, 134),
    *(169, 192),
]
COUNTS = [1, 2, 3, 7, 8, 9, 15, 16, 17, 18, 19, 31, 33, 47, 64, 65]  # of signals: around the lanes of every machine


def numbers(rng, *shape, dtype):
    x = rng.normal(size=shape) + 1j * rng.normal(size=shape) if np.dtype(dtype).kind == "c" else rng.normal(size=shape)
    return x.astype(dtype)


def near(found, wanted, dtype):
    epsilon = np.finfo(dtype).eps
    size = np.linalg.norm(wanted.astype(np.complex128))
    assert found.dtype == dtype
    assert found.shape == wanted.shape
    assert np.linalg.norm(found - wanted) <= 30 * epsilon * size


@examples(120, 40)
@given(
    st.sampled_from(LENGTHS), st.sampled_from(COUNTS), st.integers(1, 3), st.booleans(), st.booleans(),
    st.sampled_from(["backward", "ortho", "forward"]), st.sampled_from([np.complex64, np.complex128]),
)  # fmt: skip
def test_columns_and_rows(n, count, batch, rows, inverse, norm, dtype):
    rng = np.random.default_rng(n * 100 + count)
    x = numbers(rng, *((batch, count, n) if rows else (batch, n, count)), dtype=dtype)
    name, axis = "ifft" if inverse else "fft", 2 if rows else 1
    found = getattr(ek.fft, name)(ek.tensor(x), None, axis, norm).numpy()
    near(found, getattr(np.fft, name)(x, None, axis, norm), dtype)


@examples(120, 40)
@given(
    st.integers(8, 80), st.sampled_from(COUNTS), st.booleans(), st.integers(-5, 5),
    st.sampled_from([np.float32, np.float64]), st.booleans(),
)  # fmt: skip
def test_rows_of_real_numbers(half, count, forward, beyond, dtype, conjugated):
    """There and back, and real parts of transforms the other way round; with zeros behind, or cut off."""
    rng = np.random.default_rng(half * 100 + count)
    n, wide = 2 * half, np.complex64 if dtype is np.float32 else np.complex128
    if forward:
        x = numbers(rng, count, n, dtype=dtype)
        found = ek.jit(lambda v: ek.fft.rfft(v, norm="ortho") * 2)(ek.tensor(x)).numpy()
        near(found, np.fft.rfft(x, norm="ortho") * 2, wide)
        return
    z = numbers(rng, count, half + 1 + beyond, dtype=wide)
    if not conjugated:
        near(ek.fft.irfft(ek.tensor(z), n, norm="forward").numpy(), np.fft.irfft(z, n, norm="forward"), dtype)
        return
    kept = min(z.shape[1], half + 1)
    padded = np.zeros((count, n), wide)
    padded[:, :kept] = z[:, :kept]
    found = ek.jit(lambda v: ek.real(ek.fft.fft(v[:, :kept], n)))(ek.tensor(z)).numpy()
    near(found, np.fft.fft(padded).real, dtype)


def test_strange_numbers_stay_in_their_signals():
    """What one of a group holds does not reach the others."""
    x = np.ones((40, 40), np.complex64)
    for axis in (0, 1):
        wrong = x.copy()
        wrong[(3, 5) if axis == 1 else (5, 3)] = np.nan
        found = np.moveaxis(ek.fft.fft(ek.tensor(wrong), axis=axis).numpy(), axis, 1)
        assert np.isnan(found[3]).all()
        assert np.isfinite(np.delete(found, 3, 0)).all()


@pytest.mark.parametrize("shape", [(64, 1000), (3, 200, 70), (1000, 37)])
def test_threads_share_groups(shape):
    """To the bit what each group is by itself."""
    x = numbers(np.random.default_rng(0), *shape, dtype=np.complex64)
    axis = len(shape) - 2
    whole = ek.fft.fft(ek.tensor(x), axis=axis).numpy()
    alone = np.concatenate([
        ek.fft.fft(ek.tensor(np.ascontiguousarray(x[..., k : k + 16])), axis=axis).numpy()
        for k in range(0, shape[-1], 16)
    ], -1)  # fmt: skip
    if shape[-1] % 16 == 0:
        np.testing.assert_array_equal(whole, alone)
    near(whole, alone, np.complex64)


def test_what_irfft_counts_twice_is_counted_by_the_transform():
    """And another condition is not taken for that one."""
    rng = np.random.default_rng(1)
    z = numbers(rng, 20, 33, dtype=np.complex128)

    def weighted(v, last):
        place = ek.arange(33)
        spectrum = ek.where((place < 1) | (place * 2 >= last), v, v * 2)
        return ek.real(ek.fft.ifft(spectrum, 64))

    for last in (64, 62, 0):
        place = np.arange(33)
        spectrum = np.where((place < 1) | (place * 2 >= last), z, z * 2)
        wanted = np.fft.ifft(spectrum, 64).real
        near(ek.jit(lambda v, last=last: weighted(v, last))(ek.tensor(z)).numpy(), wanted, np.float64)
