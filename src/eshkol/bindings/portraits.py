"""Small pictures of tensors, which the prompt shows below their numbers.

Comes in: a value of Scheme. Goes out: lines for a terminal; none of what is no tensor, is too small for a picture to
tell more than its numbers do, or is large enough that to fetch it takes time. A vector is a line of little bars, a
matrix a picture in greys, from its least number (dark) to its greatest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.bindings.guest import to_python
from eshkol.bindings.pictures import coloured, has_colours, plain_row
from eshkol.errors import EshkolError
from eshkol.runtime.scheme import Root
from eshkol.session import Session
from eshkol.tensors.value import Tensor
from eshkol.train.history import sparkline

LEAST, MOST = 8, 1 << 22  # elements along an axis, and in all
WIDTH, HEIGHT = 64, 32  # of a picture, in pixels


def drawn(session: Session, value: Root, width: int) -> list[str]:
    """The picture of a tensor, in lines that are so wide at most."""
    tensor = to_python(session, value)
    if not isinstance(tensor, Tensor) or tensor.ndim not in (1, 2) or not LEAST <= max(tensor.shape) <= MOST:
        return []
    try:
        array = np.asarray(tensor.detach().numpy())
    except EshkolError:  # not known here: it is being traced
        return []
    if array.dtype.kind not in "fiu" or array.size > MOST or 0 in array.shape or not np.isfinite(array).all():
        return []
    return lines_of(array.astype(np.float64), width)


def lines_of(array: Any, width: int) -> list[str]:
    """The picture of numbers, and their range."""
    low, high = float(array.min()), float(array.max())
    told = f"; from {low:.6g} to {high:.6g}"
    if low == high:
        return []
    if array.ndim == 1:
        return [f"{sparkline(array.tolist(), min(WIDTH, max(1, width - len(told) - 2)))}  {told}"]
    if min(array.shape) < LEAST:
        return []
    colours = has_colours()
    across = min(WIDTH, width if colours else width // 2)
    small = _shrunk((array - low) / (high - low), HEIGHT, max(1, across))
    if colours:
        return [*(coloured(small, line) for line in range(0, len(small), 2)), told]
    return [*(plain_row(row) for row in small), told]


def _shrunk(array: Any, height: int, width: int) -> Any:
    """The means of equal shares, so many of them at most along each axis."""
    for axis, most in enumerate((height, width)):
        size = array.shape[axis]
        if size > most:
            starts = [size * part // most for part in range(most)]
            counts = np.diff([*starts, size])
            sums = np.add.reduceat(array, starts, axis=axis)
            array = sums / (counts[:, None] if axis == 0 else counts)
    return array
