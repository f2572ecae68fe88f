"""Fourier transforms for machines of blocks, as kernels of signals that a block has room for (`block_fourier`).

Comes in: complex numbers, and along which axis they are transformed. Goes out: nodes. A length with small factors alone
that fits is one kernel. A longer one, n = a·b, is two: transforms of length a of elements that lie b apart, turned, and
transforms of length b; of what is longer still, the second is made in the same way. Other lengths are convolutions
with a chirp (Bluestein's way) of lengths with small factors. What does not change is computed in float64 here.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, buffer, make
from eshkol.ops.dtypes import DType
from eshkol.ops.joining import along
from eshkol.ops.movement import permute, reshape
from eshkol.ops.padding import pad
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.block_fourier import (
    BLOCK_FOURIER,
    SIDE_BY_SIDE,
    BlockFourier,
    fourier_table,
    longest,
    radices,
)
from eshkol.schedule.kernels.transforms import chirp_of

CHIRPS_KEPT = 8
LONGEST = 1 << 30  # whose turns are counted in registers of indices


def block_transformed(x: Node, axis: int, inverse: bool, dtype: DType, target: MachineDescription) -> Any:
    """The transforms of real or complex numbers along an axis, in a complex dtype, without any factor."""
    n, after = x.shape[axis], count(x.shape[axis + 1 :])
    if radices(n) is None:
        return _by_chirps(x, axis, inverse, dtype, target)
    before = count(x.shape[:axis])
    return reshape(_signals(x, before, n, after, inverse, dtype, target), x.shape)


def _signals(x: Node, before: int, n: int, after: int, inverse: bool, dtype: DType, target: MachineDescription) -> Any:
    """The transforms of [before, n, after]."""
    if n <= longest(dtype, target):
        return _kernel(x, BlockFourier(inverse, 1.0, before, 1, n, after, 0, 1, radices(n) or (), x.shape), dtype)
    first = _divided(n, longest(dtype, target) // SIDE_BY_SIDE)
    second = n // first
    shape = (before, first, second * after)
    attrs = BlockFourier(inverse, 1.0, before, 1, first, second * after, n, after, radices(first) or (), shape)
    turned = _kernel(x, attrs, dtype)
    if second <= longest(dtype, target):
        shape = (before, second, first * after)
        how = radices(second) or ()
        return _kernel(turned, BlockFourier(inverse, 1.0, before, first, second, after, 0, 1, how, shape), dtype)
    found = _signals(turned, before * first, second, after, inverse, dtype, target)
    return permute(reshape(found, (before, first, second, after)), (0, 2, 1, 3))


def _divided(n: int, most: int) -> int:
    """The divisor of a length that is nearest to its root among those that are not too large."""
    found = [d for d in range(1, min(most, n) + 1) if n % d == 0]
    fine = [d for d in found if n // d <= most] or [found[-1]]
    return max(d for d in fine if d * d <= n)  # divisors come in pairs, of which the smaller one is nearer


def _kernel(x: Node, a: BlockFourier, dtype: DType) -> Any:
    return make(BLOCK_FOURIER, (x, fourier_table(a.radices, a.whole, dtype)), a)


# --- lengths with large factors -------------------------------------------------------------------


def _length_for(n: int) -> int:
    """The least length of a convolution of n elements that is a power of two, or three times one."""
    least = 2 * n - 1
    power = 1 << (least - 1).bit_length()
    return 3 * power // 4 if 3 * power // 4 >= least else power


@lru_cache(CHIRPS_KEPT)
def _chirps(n: int, inverse: bool, dtype: DType) -> tuple[Node, Node]:
    """What numbers are multiplied by before and after, and the spectrum of what they are convolved with."""
    length = _length_for(n)
    chirp, ends = chirp_of(n, length)
    spectrum = np.fft.fft(ends) / length
    if inverse:
        chirp, spectrum = np.conj(chirp), np.fft.fft(np.conj(ends)) / length
    return buffer(chirp.astype(dtype.numpy), dtype), buffer(spectrum.astype(dtype.numpy), dtype)


def _by_chirps(x: Any, axis: int, inverse: bool, dtype: DType, target: MachineDescription) -> Any:
    n, length = x.shape[axis], _length_for(x.shape[axis])
    behind = (1,) * (x.ndim - 1 - axis)
    chirp, spectrum = (reshape(y, (y.shape[0], *behind)) for y in _chirps(n, inverse, dtype))
    wide = pad(x * chirp, [(0, length - n if k == axis else 0) for k in range(x.ndim)])
    found = block_transformed(wide, axis, False, dtype, target)
    back = block_transformed(found * spectrum, axis, True, dtype, target)
    return along(back, axis, 0, n) * chirp
