"""Fourier transforms of signals side by side: groups of columns and of rows, what is left over, real numbers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.atlas.machines import CORES
from eshkol.graph.node import placeholder, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Aval
from eshkol.schedule.rewrite.pairs import as_pairs

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


@examples(60, 20)
@given(
    st.sampled_from(["fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn"]), st.integers(15, 18), st.integers(1, 20),
    st.integers(2, 40), st.sampled_from([np.complex64, np.complex128]), st.sampled_from([None, "ortho"]),
)  # fmt: skip
def test_rows_and_columns_of_many_matrices(name, batch, height, width, dtype, norm):
    """Both at once, from 16 matrices on; also where what is between them is read by others."""
    rng = np.random.default_rng(height * 100 + width)
    real, wide = np.dtype(dtype).type(0).real.dtype, np.dtype(dtype)
    x = numbers(rng, batch, height, width, dtype=real if name == "rfft2" else dtype)
    if name == "irfft2":
        found = ek.jit(lambda v: ek.fft.irfft(ek.fft.ifft(v, axis=1, norm=norm), 2 * width - 2, norm=norm))(
            ek.tensor(x)
        )
        near(found.numpy(), np.fft.irfft2(x, (height, 2 * width - 2), norm=norm), real)
        return
    if name == "rfft2":
        found = ek.jit(lambda v: ek.fft.fft(ek.fft.rfft(v, norm=norm), axis=1, norm=norm))(ek.tensor(x))
    else:
        found = ek.jit(lambda v: getattr(ek.fft, name)(v, norm=norm))(ek.tensor(x))
    near(found.numpy(), getattr(np.fft, name)(x, norm=norm), wide)

    def both(v):
        between = ek.fft.fft(v)
        return between, ek.fft.fft(between, axis=1)

    one, other = ek.jit(both)(ek.tensor(x.astype(dtype)))
    near(one.numpy(), np.fft.fft(x.astype(dtype)), wide)
    near(other.numpy(), np.fft.fft2(x.astype(dtype)), wide)


def test_matrices_that_a_cache_holds_are_transformed_at_once():
    def ops(function, *shape, dtype=dtypes.complex64):
        outs = [function(placeholder(Aval(shape, dtype), None))]
        return [node.op.name for node in topological(as_pairs(outs, replace(CORES, native=True))) if node.inputs]

    assert ops(TABLE["fft2"], 16, 64, 64).count("signals_of_planes") == 1
    assert ops(TABLE["ifftn"], 32, 32, 32).count("signals_of_planes") == 1
    assert ops(TABLE["ifftn"], 32, 32, 32).count("signals") == 1
    assert ops(TABLE["fft2"], 15, 64, 64).count("signals") == 2  # which more threads share
    assert ops(TABLE["fft2"], 16, 512, 512).count("signals") == 2
    real = ops(lambda v: TABLE["fft"](TABLE["rfft"](v), axis=1), 16, 64, 64, dtype=dtypes.float32)
    assert real.count("signals_of_planes") == 1
    assert "split_signals" not in real
