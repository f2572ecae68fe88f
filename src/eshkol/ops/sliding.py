"""Windows that slide along an axis: joined of pieces where few make up a window, so that its derivative is, too."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import shapes
from eshkol.ops.axes import moveaxis
from eshkol.ops.creation import full
from eshkol.ops.indexing import GROUP, scatter_into
from eshkol.ops.joining import along, concatenate
from eshkol.ops.movement import reshape
from eshkol.ops.row import Aval, HasAval, Linear, Pull, Value, composite, primitive, sample
from eshkol.ops.slicing import slice_

WIDE_PIECE = 8  # elements of a piece that is worth being copied by itself
MOST_PIECES = 8  # of a window
_ANY = ("bool", "int", "float", "complex")


class Sliding(NamedTuple):
    """Along which axis, how many elements a window has, and how far windows are apart."""

    axis: int
    size: int
    step: int

    def number(self, extent: int) -> int:
        return (extent - self.size) // self.step + 1

    def places(self, extent: int) -> Any:
        return np.arange(self.number(extent))[:, None] * self.step + np.arange(self.size)


def _infer(a: Sliding, x: HasAval) -> Aval:
    return Aval((*x.shape[: a.axis], a.number(x.shape[a.axis]), a.size, *x.shape[a.axis + 1 :]), x.dtype)


def _transpose(a: Sliding, ct: Any, k: int, x: HasAval) -> Any:
    return scatter_into(full(ct, x.shape, 0), ct.literal(a.places(x.shape[a.axis])), ct, a.axis, True)


def _pull(e: Any, a: Sliding, i: Any, x: Any) -> Any:
    return x([*i[: a.axis], i[a.axis] * a.step + i[a.axis + 1], *i[a.axis + 2 :]])


def _batch(a: Sliding, inputs: Any, batched: Any) -> Any:
    return windows_along(inputs[0], a.axis + 1, a.size, a.step)


@primitive(
    group=GROUP, infer=_infer, derivative=Linear(_transpose), dtypes=_ANY, method=False, moves=True, of_complex=True,
    batch=_batch, lower=Pull(_pull),
    reference=lambda a, x: np.take(x, a.places(x.shape[a.axis]), a.axis),
    samples=(sample((5,), axis=0, size=3), sample((2, 7, 2), axis=1, size=3, step=2), sample((4,), axis=0, size=4)),
)  # fmt: skip
def windows_along(x: Value, axis: int, size: int, step: int = 1) -> Sliding:
    """Every run of `size` elements along an axis, `step` apart: two axes, windows and their elements, in its place."""
    axis = shapes.axis(axis, x.ndim)
    if not 1 <= size <= x.shape[axis] or step < 1:
        raise ShapeError(f"no windows of {size}, {step} apart, lie along axis {axis} of shape {list(x.shape)}")
    return Sliding(axis, int(size), int(step))


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
    return moveaxis(windows_along(x, axis, size, step), axis + 1, -1)


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
