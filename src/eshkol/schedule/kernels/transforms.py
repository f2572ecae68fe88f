"""The rows that compiled graphs have for Fourier transforms: of complex numbers as pairs, by one array instruction.

Those of real numbers are transforms of half the length, with something done after them (`halves_split`) or before them
(`halves_joined`). No user calls these rows: `rewrite/pairs.py` makes them of `dft`, after derivatives have been taken.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.table.linear import LONGEST_FFT
from eshkol.graph.node import Node, buffer
from eshkol.ops.dtypes import DType
from eshkol.ops.row import NATIVE, STRUCTURE, Aval, HasAval, Macro, NoDerivative, Op, row
from eshkol.ops.shapes import count


class Fourier(NamedTuple):
    """factor · the sum of x[j] · exp(∓2πi·jk/n) over j along an axis; the last axis holds the parts."""

    axis: int
    inverse: bool
    factor: float


def is_transformed(x: HasAval, axis: int) -> bool:
    """Whether the instruction takes transforms of such complex numbers along an axis."""
    return 1 <= x.shape[axis] <= LONGEST_FFT


def _fourier(a: Fourier, x: Any) -> Any:
    numbers = x[..., 0] + 1j * x[..., 1]
    found = np.fft.ifft(numbers, axis=a.axis, norm="forward") if a.inverse else np.fft.fft(numbers, axis=a.axis)
    return np.stack([found.real, found.imag], axis=-1) * np.asarray(a.factor, x.dtype)


def _macro_fourier(b: Any, a: Fourier, out: Any, x: Any) -> None:
    n = x.shape[a.axis]
    before, after = count(x.shape[: a.axis]), count(x.shape[a.axis + 1 : -1])
    scale = a.factor * n if a.inverse else a.factor  # the instruction's inverse divides by n
    b.fft(out.ty, out.address, x.address, n=n, inverse=a.inverse, batch=before, inner=after, scale=scale)


FOURIER: Op = row(Op(
    name="fourier", doc="factor · the Fourier transforms of pairs along an axis.", function=None, names=("x",),
    group=STRUCTURE, method=False, infer=lambda a, x: Aval(x.shape, x.dtype), reference=_fourier,
    derivative=NoDerivative("derivatives are taken before graphs are compiled", zero=False),
    lower=Macro(_macro_fourier), tolerance=2.0,
))  # fmt: skip


# --- real numbers -----------------------------------------------------------------------------------

TABLES_KEPT = 16


class Halves(NamedTuple):
    """Which way the transform goes, of what factor, and how many complex numbers stand for the real ones."""

    inverse: bool
    factor: float
    half: int


@lru_cache(TABLES_KEPT)
def turns(n: int, dtype: DType) -> Node:
    """e^(-2πi·k/n) for k = 0 … n/2, as pairs."""
    angles = np.arange(n // 2 + 1) * (-2 * np.pi / n)
    return buffer(np.stack([np.cos(angles), np.sin(angles)], axis=-1).astype(dtype.numpy), dtype)


def _numbers(x: Any) -> Any:
    return x[..., 0] + 1j * x[..., 1]


def _pairs(x: Any) -> Any:
    return np.stack([x.real, x.imag], axis=-1)


def _turned(a: Halves, table: Any) -> Any:
    found = _numbers(table)
    return np.conj(found) if a.inverse else found


def _split(a: Halves, x: Any, table: Any) -> Any:
    z = _numbers(x)
    z = np.concatenate([z, z[..., :1]], axis=-1)
    other = np.conj(z[..., ::-1])
    return _pairs(((z + other) - 1j * _turned(a, table) * (z - other)) * (a.factor / 2)).astype(x.dtype)


def _joined(a: Halves, x: Any, table: Any) -> Any:
    g = np.zeros((*x.shape[:-2], a.half + 1), _numbers(x[..., :0, :]).dtype)
    g[..., : x.shape[-2]] = _numbers(x) / 2
    g[..., [0, -1]] = g[..., [0, -1]].real * 2
    other = np.conj(g[..., ::-1])
    found = (g + other) + 1j * _turned(a, table) * (g - other)
    return _pairs(found[..., : a.half] * a.factor).astype(x.dtype)


def _halves(name: str, doc: str, reference: Any, more: int) -> Op:
    return row(Op(
        name=name, doc=doc, function=None, names=("x", "turns"), group=STRUCTURE, method=False,
        infer=lambda a, x, table: Aval((*x.shape[:-2], a.half + more, 2), x.dtype), reference=reference,
        derivative=NoDerivative("derivatives are taken before graphs are compiled", zero=False), lower=NATIVE,
        tolerance=2.0,
    ))  # fmt: skip


SPLIT = _halves(
    "halves_split", "factor · the first half of the transforms of real numbers, by those of pairs of them.", _split, 1
)
JOINED = _halves(
    "halves_joined", "What factor · the real parts of transforms are the transforms of, as pairs.", _joined, 0
)
