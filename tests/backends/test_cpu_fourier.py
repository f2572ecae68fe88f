"""Fourier transforms of rows side by side: by the kernels of every kind of processor that this one can run."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest

from batches import checkered
from eshkol.backends.cpu import fourier
from eshkol.llvm.targets import host_features
from eshkol.runtime.library import native

FEATURES = {"avx2": ("avx2", "fma"), "avx512": ("avx512f",)}
KINDS = ("plain", *(kind for kind, wanted in FEATURES.items() if {*wanted} <= {*host_features()}))
RADICES = {1: (), 2: (2,), 3: (3,), 4: (4,), 5: (5,), 7: (7,), 8: (8,), 15: (5, 3), 16: (8, 2), 17: (17,), 35: (7, 5),
           64: (8, 8), 90: (5, 3, 3, 2)}  # fmt: skip


class Kernels(ctypes.Structure):
    _fields_ = (("run", ctypes.c_void_p * 2),)


def table_of(n, radices, dtype):
    """As fourier.h says: for each pass what a radix of no code of its own needs, then the turns of its numbers."""
    parts, m = [], n
    for radix in radices:
        m //= radix
        if radix > 8:
            half = np.arange(1, radix // 2 + 1)
            angle = 2 * np.pi * np.outer(half, half) / radix
            parts += [np.cos(angle).ravel(), np.sin(angle).ravel()]
        for k in range(1, radix):
            turn = np.exp(-2j * np.pi * np.arange(m) * k / (m * radix))
            parts += [turn.real, turn.imag]
    return np.concatenate([*parts, [0.0]]).astype(dtype)


@checkered(kind=KINDS, dtype=[np.float32, np.float64], n=[*RADICES], signals=[1, 15, 16, 17, 40], inverse=[False, True])
def test_rows_by_every_kind_of_processor(kind, dtype, n, signals, inverse):
    rng = np.random.default_rng(n + signals)
    x = rng.standard_normal((signals, n, 2)).astype(dtype)
    out, table = np.full((signals + 1, n, 2), 7, dtype), table_of(n, RADICES[n], dtype)
    how = SimpleNamespace(radices=RADICES[n], length=n, together=True, inverse=inverse)
    like = SimpleNamespace(name=np.dtype(dtype).name)
    factor = 1 / n if inverse else 0.5
    record = fourier._Transforms(fourier.PLAIN, how, factor, n, n, 1, signals, like).packed()
    words = (ctypes.c_uint64 * (len(record) // 8)).from_buffer_copy(record)
    words[2:5] = [out.ctypes.data, x.ctypes.data, table.ctypes.data]
    group = 64 // np.dtype(dtype).itemsize
    pitch = (n + 1) * group + 16 * 8
    work = np.empty(4 * pitch + 64, dtype)
    kernels = Kernels.in_dll(native(), f"eshkol_fourier_{kind}")
    run = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64])
    begin = work.ctypes.data + -work.ctypes.data % 64
    run(kernels.run[int(dtype is np.float64)])(
        ctypes.addressof(words), 0, -(-signals // group), begin, pitch // 16 * 16
    )
    given = x[..., 0] + 1j * x[..., 1].astype(np.complex128)
    wanted = (np.fft.ifft(given) * n if inverse else np.fft.fft(given)) * factor
    np.testing.assert_allclose(out[:-1, :, 0] + 1j * out[:-1, :, 1], wanted, atol=30 * n**0.5 * np.finfo(dtype).eps)
    assert (out[-1] == 7).all()


@pytest.mark.parametrize("kind", KINDS)
def test_kernels_are_there(kind):
    assert all(Kernels.in_dll(native(), f"eshkol_fourier_{kind}").run)
