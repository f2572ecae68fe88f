"""Ops that put tensors together along an axis and take them apart again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import shapes
from eshkol.ops.movement import GROUP, expand, reshape, slice_
from eshkol.ops.row import Aval, Draw, HasAval, Linear, Pull, Value, composite, primitive, sample

_ANY = ("bool", "int", "float", "complex")


def _draws(*given: tuple[int, ...]) -> list[Draw]:
    return [Draw(shape) for shape in given]


def _rank(tensors: Sequence[Any]) -> int:
    """How many axes tensors have that are to be joined."""
    first = next((x for x in tensors if isinstance(x, Value)), None)
    if first is None:
        raise ShapeError("there is nothing to join", hint="give a sequence of tensors")
    return first.ndim


class Join(NamedTuple):
    axis: int


def _infer_concatenate(a: Join, *inputs: HasAval) -> Aval:
    first = inputs[0].shape
    for x in inputs[1:]:
        if len(x.shape) != len(first) or any(
            n != m for k, (n, m) in enumerate(zip(x.shape, first, strict=True)) if k != a.axis
        ):
            raise ShapeError(
                f"shapes {list(first)} and {list(x.shape)} differ in more than axis {a.axis}",
                hint="all axes but the one along which tensors are joined must agree",
            )
    total = sum(x.shape[a.axis] for x in inputs)
    return Aval((*first[: a.axis], total, *first[a.axis + 1 :]), inputs[0].dtype)


def _pull_concatenate(e: Any, a: Join, i: Any, *reads: Any) -> Any:
    result, start = None, 0
    for read in reads:
        place = i[a.axis] - start if start else i[a.axis]
        start += read.shape[a.axis]
        index = [place if k == a.axis else i[k] for k in range(len(read.shape))]
        if result is None:
            result = e.read_if(e.compare("LT", place, read.shape[a.axis]), read, index, 0)
        else:
            result = e.read_if(e.compare("GE", place, 0), read, index, result)
    return result


def _transpose_concatenate(a: Join, ct: Any, k: int, *inputs: HasAval) -> Any:
    start = sum(x.shape[a.axis] for x in inputs[:k])
    return along(ct, a.axis, start, start + inputs[k].shape[a.axis])


def along(x: Value, axis: int, start: int, stop: int) -> Any:
    """A slice of one axis."""
    return slice_(x, (0,) * axis + (start,), (None,) * axis + (stop,))


def _batch_concatenate(a: Join, inputs: Any, batched: Any) -> Any:
    size = next(x.shape[0] for x, b in zip(inputs, batched, strict=True) if b)
    wide = [x if b else expand(x, (size, *x.shape)) for x, b in zip(inputs, batched, strict=True)]
    return concatenate(wide, a.axis + 1)


@primitive(
    group=GROUP, infer=_infer_concatenate, reference=lambda a, *xs: np.concatenate(xs, a.axis), promote="common",
    derivative=Linear(_transpose_concatenate, joint=True), batch=_batch_concatenate, dtypes=_ANY,
    lower=Pull(_pull_concatenate), aliases=("concat", "cat"), scheme=("concatenate", "concat"), method=False,
    samples=(
        sample(_draws((2, 3), (1, 3), (2, 3))), sample(_draws((2, 3), (2, 1)), axis=-1), sample(_draws((2,))),
        sample(_draws((0, 2), (3, 2))), sample(_draws((2, 0, 2), (2, 0, 1)), axis=2),
    ),
)  # fmt: skip
def concatenate(tensors: Sequence[Value], axis: int = 0) -> Join:
    """Tensors behind one another along an axis that they have."""
    rank = _rank(tensors)
    if rank == 0:
        raise ShapeError("scalars have no axis along which to concatenate", hint="stack makes a new axis")
    return Join(shapes.axis(axis, rank))
