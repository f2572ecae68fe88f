"""The row that compiled graphs have for Fourier transforms: of complex numbers as pairs, by one array instruction.

No user calls it: `rewrite/pairs.py` makes it of `dft`, after derivatives have been taken.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.table.linear import LONGEST_FFT
from eshkol.ops.row import STRUCTURE, Aval, HasAval, Macro, NoDerivative, Op, row
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
