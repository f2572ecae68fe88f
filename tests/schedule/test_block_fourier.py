"""Fourier transforms on machines of blocks: against NumPy, along axes, of real numbers, with derivatives, in loops."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import eshkol as ek
from eshkol.atlas.machines import BLOCKS
from eshkol.ops import dtypes
from eshkol.schedule.kernels.block_fourier import GREATEST_RADIX, LONGEST, longest, radices
from eshkol.schedule.rewrite import signals

RNG = np.random.default_rng(11)
SHORT = [*range(1, 71)]
FURTHER = [97, 128, 360, 1000, 1009, 1024, 4096, 8192]


@pytest.fixture(autouse=True)
def of_blocks():
    with ek.device("blocks"):
        yield


def drawn(*shape, dtype=np.complex128):
    return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)


def close(found, wanted, ulps=4.0):
    """Within a few ulp of the largest element, as many more as there are passes."""
    found = found.numpy()
    assert found.shape == wanted.shape
    off = np.abs(found - wanted).max() / np.abs(wanted).max() / np.finfo(found.dtype).eps
    assert off <= ulps * max(1.0, np.log2(max(found.shape, default=1)) / 4), off


@pytest.mark.parametrize("n", [*SHORT, *FURTHER])
def test_every_length_is_as_numpy_has_it(n):
    x = drawn(n)
    close(ek.fft.fft(ek.tensor(x)), np.fft.fft(x))


@pytest.mark.parametrize("n", [6, 64, 97, 4096, 6000])
def test_in_single_precision_and_back(n):
    x = drawn(2, n, dtype=np.complex64)
    there = ek.fft.fft(ek.tensor(x))
    assert there.dtype is ek.complex64
    close(there, np.fft.fft(x.astype(np.complex128)))
    close(ek.fft.ifft(there), x, 8.0)


@pytest.mark.parametrize(
    ("shape", "axis"), [((3, 12, 5), 1), ((34, 3), 0), ((70, 20), 1), ((4096, 3), 0), ((300, 9), 1)]
)
@pytest.mark.parametrize("name", ["fft", "ifft"])
def test_along_axes_and_many(name, shape, axis):
    x = drawn(*shape)
    close(getattr(ek.fft, name)(ek.tensor(x), dim=axis), getattr(np.fft, name)(x, axis=axis))


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
def test_several_axes_and_real_numbers(norm):
    x, real = drawn(3, 8, 10), RNG.standard_normal((3, 8, 10))
    for name in ("fft2", "ifft2", "fftn", "ifftn"):
        close(getattr(ek.fft, name)(ek.tensor(x), norm=norm), getattr(np.fft, name)(x, norm=norm))
    for n in (None, 7, 16):
        close(ek.fft.rfft(ek.tensor(real), n=n, norm=norm), np.fft.rfft(real, n=n, norm=norm))
        close(ek.fft.irfft(ek.tensor(x), n=n, norm=norm), np.fft.irfft(x, n=n, norm=norm))
    whole = ek.tensor(np.arange(6))
    close(ek.fft.fft(whole), np.fft.fft(np.arange(6)).astype(np.complex64))


@pytest.mark.parametrize("n", [210, 512, 1000])
def test_lengths_that_blocks_have_no_room_for_are_made_of_shorter_ones(monkeypatch, n):
    monkeypatch.setattr(signals, "longest", lambda dtype, target: 26)  # so that two kernels are not enough for all
    x = drawn(2, n, 3)
    close(ek.jit(lambda x: ek.fft.fft(x, dim=1))(ek.tensor(x)), np.fft.fft(x, axis=1))


def test_derivatives_batches_jit_and_loops():
    x, weight = drawn(2, 12), drawn(2, 12)
    w = ek.tensor(weight)
    slope = ek.grad(lambda x: (ek.fft.fft(x) * w).real.sum())(ek.tensor(x))
    close(slope, np.conj(np.fft.fft(weight)))
    real = RNG.standard_normal(10)
    slope = ek.grad(lambda x: (abs(ek.fft.rfft(x)) ** 2).sum())(ek.tensor(real))
    half = np.concatenate([np.fft.rfft(real), np.zeros(4)])
    close(slope, 20 * np.fft.ifft(half).real, 16.0)
    close(ek.vmap(ek.fft.fft, in_axes=1)(ek.tensor(x)), np.fft.fft(x.T))
    often = ek.jit(lambda x: ek.fori_loop(0, 3, lambda k, x: ek.fft.ifft(x, norm="ortho"), x))
    wanted = x
    for _ in range(3):
        wanted = np.fft.ifft(wanted, norm="ortho")
    close(often(ek.tensor(x)), wanted)


def test_nothing_is_transformed_of_no_signals():
    assert ek.fft.fft(ek.tensor(np.zeros((0, 6), np.complex64))).shape == (0, 6)


def test_passes_are_of_small_radices_and_make_the_length():
    for n in range(1, 500):
        rest = n
        for p in range(2, GREATEST_RADIX + 1):
            while rest % p == 0:
                rest //= p
        found = radices(n)
        assert (found is None) == (rest > 1)
        if found is not None:
            assert np.prod(found, dtype=int) == n
            assert all(r in (2, 3, 4, 5, 7, 8, 11, 13) for r in found)
    assert longest(dtypes.complex64, BLOCKS) == LONGEST
    roomy = dataclasses.replace(BLOCKS, shared_memory=227 << 10)
    assert longest(dtypes.complex64, roomy) == LONGEST, "registers are the limit then"
