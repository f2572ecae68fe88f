"""Windows that slide along an axis: copied in pieces where few make up a window, else looked up."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import shapes
from eshkol.ops.axes import moveaxis
from eshkol.ops.indexing import GROUP, take
from eshkol.ops.joining import along, concatenate
from eshkol.ops.movement import reshape
from eshkol.ops.row import Value, composite, sample
from eshkol.ops.slicing import slice_

WIDE_PIECE = 8  # elements of a piece that is worth being copied by itself
MOST_PIECES = 8  # of a window
_ANY = ("bool", "int", "float", "complex")


def _sliding_window(x: Any, size: int, axis: int = -1, step: int = 1) -> Any:
    found = np.lib.stride_tricks.sliding_window_view(x, size, axis)
    return np.take(found, range(0, found.shape[axis % x.ndim], step), axis % x.ndim)


@composite(
    group=GROUP, windows=True, reference=_sliding_window, dtypes=_ANY,
    samples=(
        sample((5,), size=3), sample((2, 6, 2), size=2, axis=1, step=2), sample((4,), size=4),
        sample((45, 2), size=16, axis=0, step=8),
    ),
)  # fmt: skip
def sliding_window(x: Value, size: int, axis: int = -1, step: int = 1) -> Any:
    """Every run of `size` elements along an axis, `step` apart, as a new last axis (PyTorch's Tensor.unfold)."""
    axis = shapes.axis(axis, x.ndim)
    if not 1 <= size <= x.shape[axis] or step < 1:
        raise ShapeError(f"no windows of {size}, {step} apart, lie along axis {axis} of shape {list(x.shape)}")
    piece = math.gcd(size, step)
    if piece >= WIDE_PIECE and size // piece <= MOST_PIECES:
        return moveaxis(_windows_of_pieces(x, size, axis, step, piece), axis + 1, -1)
    starts = np.arange(0, x.shape[axis] - size + 1, step)
    windows = take(x, x.literal(starts[:, None] + np.arange(size)), axis)
    return moveaxis(windows, axis + 1, -1)


def _windows_of_pieces(x: Value, size: int, axis: int, step: int, piece: int) -> Any:
    """Windows joined of few pieces, at whose ends all of them begin and end: so they are copied, not looked up."""
    before, extent, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    number, apart = (extent - size) // step + 1, step // piece
    pieces = reshape(along(x, axis, 0, extent // piece * piece), (*before, extent // piece, piece, *behind))
    none = (0,) * axis
    parts = [
        slice_(pieces, (*none, k), (*before, k + (number - 1) * apart + 1), (*(1 for _ in before), apart))
        for k in range(size // piece)
    ]
    return concatenate(parts, axis + 1)
