"""Diagonals and triangles of matrices: reading them, placing them, cutting them out."""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import shapes
from eshkol.ops.axes import moveaxis
from eshkol.ops.creation import iota
from eshkol.ops.elementwise import where
from eshkol.ops.movement import GROUP, reshape
from eshkol.ops.padding import pad
from eshkol.ops.reductions import sum_
from eshkol.ops.row import Op, Value, composite, sample
from eshkol.ops.slicing import slice_

_ANY = ("bool", "int", "float", "complex")


def _plane(axis1: int, axis2: int, ndim: int) -> tuple[int, int]:
    one, other = shapes.axis(axis1, ndim), shapes.axis(axis2, ndim)
    if one == other:
        raise ShapeError(f"axes {axis1} and {axis2} are one axis, not the two of a matrix")
    return one, other


@composite(
    group=GROUP, windows=True, reference=np.diagonal, dtypes=_ANY,
    samples=(
        sample((3, 4)), sample((3, 4), offset=1), sample((4, 3), offset=-2), sample((2, 3, 4), axis1=-1, axis2=1),
        sample((2, 2), offset=5), sample((0, 2)),
    ),
)  # fmt: skip
def diagonal(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal of the matrices in two axes, as the last axis of the result; offset > 0 is above the main one."""
    one, other = _plane(axis1, axis2, x.ndim)
    x = moveaxis(x, (one, other), (-2, -1))
    rows, columns = x.shape[-2:]
    extent = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    if not extent:
        return reshape(slice_(x, None, (None,) * (x.ndim - 2) + (0,)), (*x.shape[:-2], 0))
    first = offset if offset >= 0 else -offset * columns
    rest = (0,) * (x.ndim - 2)
    flat = reshape(x, (*x.shape[:-2], rows * columns))
    stop = first + (extent - 1) * (columns + 1) + 1
    return slice_(flat, (*rest, first), (*x.shape[:-2], stop), (*(1,) * len(rest), columns + 1))


def _diag_embed(x: Any, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    n = x.shape[-1] + abs(offset)
    result = np.zeros((*x.shape[:-1], n, n), x.dtype)
    for k in range(x.shape[-1]):
        result[..., k - min(offset, 0), k + max(offset, 0)] = x[..., k]
    return np.moveaxis(result, (-2, -1), (axis1, axis2))


@composite(
    group=GROUP, reference=_diag_embed, dtypes=_ANY,
    samples=(sample((3,)), sample((2, 3), offset=1), sample((2,), offset=-2), sample((2, 2), axis1=0), sample((0,))),
)  # fmt: skip
def diag_embed(x: Value, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    """Matrices of zeros with the last axis of x on a diagonal, in two axes of the result."""
    if x.ndim == 0:
        raise ShapeError("a scalar is no diagonal")
    one, other = _plane(axis1, axis2, x.ndim + 1)
    extent = x.shape[-1]
    n = extent + abs(offset)
    first = max(offset, 0) - min(offset, 0) * n
    last = n * n - first - ((extent - 1) * (n + 1) + 1 if extent else 0)
    rest = x.ndim - 1
    flat = pad(x, [*[(0, 0)] * rest, (first, last)], interior=[*[0] * rest, n])
    return moveaxis(reshape(flat, (*x.shape[:-1], n, n)), (-2, -1), (one, other))


@composite(
    group=GROUP, reference=lambda x, k=0: np.diag(x, k), dtypes=_ANY,
    samples=(sample((3,)), sample((3,), k=1), sample((3, 4), k=-1), sample((3, 2))),
)  # fmt: skip
def diag(x: Value, k: int = 0) -> Any:
    """The k-th diagonal of a matrix, or a matrix of zeros with a vector on it."""
    if x.ndim not in (1, 2):
        raise ShapeError(
            f"diag takes a vector or a matrix, not shape {list(x.shape)}", hint="see diagonal and diag_embed"
        )
    return diag_embed(x, k) if x.ndim == 1 else diagonal(x, k)


@composite(
    group=GROUP, reference=np.trace, dtypes=_ANY,
    samples=(sample((3, 3)), sample((2, 4), offset=1), sample((2, 3, 3), axis1=1, axis2=2), sample((2, 2), offset=3)),
)  # fmt: skip
def trace(x: Value, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The sum of a diagonal of the matrices in two axes."""
    return sum_(diagonal(x, offset, axis1, axis2), -1)


def _triangle(name: str, reference: Any, lower: bool, doc: str) -> Op:
    def function(x: Value, k: int = 0) -> Any:
        if x.ndim < 2:
            raise ShapeError(f"shape {list(x.shape)} has no matrices", hint="the last two axes are those of a matrix")
        row, column = (iota.on(x, x.shape[-2:], axis) for axis in (0, 1))
        return where(column <= row + k if lower else column >= row + k, x, _zero(x))

    function.__name__, function.__doc__ = name, doc
    samples = (sample((3, 3)), sample((3, 4), k=1), sample((2, 4, 3), k=-2), sample((0, 2)))
    return composite(group=GROUP, reference=reference, dtypes=_ANY, samples=samples)(function)


def _zero(x: Value) -> Any:
    return False if x.dtype.is_bool else 0


tril = _triangle("tril", np.tril, True, "The elements of matrices on and below the k-th diagonal, zeros above it.")
triu = _triangle("triu", np.triu, False, "The elements of matrices on and above the k-th diagonal, zeros below it.")
