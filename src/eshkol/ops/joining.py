"""Ops that put tensors together along an axis and take them apart again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import shapes
from eshkol.ops.axes import broadcast_tensors, unsqueeze
from eshkol.ops.movement import GROUP, expand, reshape
from eshkol.ops.row import (
    STRUCTURE,
    Aval,
    Draw,
    HasAval,
    Linear,
    Op,
    Pull,
    Value,
    composite,
    primitive,
    row,
    sample,
)
from eshkol.ops.slicing import slice_

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
    result, start = 0, 0
    for read in reads:
        end = start + read.shape[a.axis]
        inside = e.compare("LT", i[a.axis], end)
        if start:
            inside = e.both(inside, e.compare("GE", i[a.axis], start))
        place = i[a.axis] - start
        result = e.read_if(inside, read, [place if k == a.axis else i[k] for k in range(len(read.shape))], result)
        start = end
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
    lower=Pull(_pull_concatenate),
    of_complex=True, aliases=("concat", "cat"), scheme=("concatenate", "concat"), method=False,
    samples=(
        sample(_draws((2, 3), (1, 3), (2, 3))), sample(_draws((2, 3), (2, 1)), axis=-1), sample(_draws((2,))),
        sample(_draws((0, 2), (3, 2))), sample(_draws((2, 0, 2), (2, 0, 1)), axis=2),
    ),
)  # fmt: skip
def concatenate(tensors: Sequence[Value], axis: int = 0) -> Join:
    """Tensors after one another along an axis that they have."""
    rank = _rank(tensors)
    if rank == 0:
        raise ShapeError("scalars have no axis along which to concatenate", hint="stack makes a new axis")
    return Join(shapes.axis(axis, rank))


@composite(
    group=GROUP, reference=np.stack, dtypes=_ANY, method=False, scheme=("stack",),
    samples=(
        sample(_draws((2, 3), (2, 3))), sample(_draws((2, 3), (2, 3), (2, 3)), axis=-1), sample(_draws((), ())),
        sample(_draws((0, 2)), axis=1),
    ),
)  # fmt: skip
def stack(tensors: Sequence[Value], axis: int = 0) -> Any:
    """Tensors of one shape side by side along a new axis."""
    place = shapes.axis(axis, _rank(tensors) + 1)
    return concatenate([unsqueeze(x, min(place, x.ndim)) for x in tensors], place)


@composite(
    group=GROUP, reference=np.hstack, dtypes=_ANY, method=False,
    samples=(sample(_draws((2, 3), (2, 1))), sample(_draws((2,), (3,))), sample(_draws((), ()))),
)  # fmt: skip
def hstack(tensors: Sequence[Value]) -> Any:
    """Tensors joined along the second axis, vectors along their only one."""
    found = [x if x.ndim else reshape(x, (1,)) for x in tensors]
    return concatenate(found, min(1, _rank(found) - 1))


@composite(
    group=GROUP, reference=np.vstack, dtypes=_ANY, method=False,
    samples=(sample(_draws((2, 3), (1, 3))), sample(_draws((2,), (2,))), sample(_draws((), ()))),
)  # fmt: skip
def vstack(tensors: Sequence[Value]) -> Any:
    """Tensors joined along the first axis, vectors as rows."""
    return concatenate([x if x.ndim > 1 else reshape(x, (1, x.size)) for x in tensors])


# --- apart ----------------------------------------------------------------------------------------


def _parts(x: Value, sizes: Sequence[int], axis: int) -> tuple[Any, ...]:
    stops = list(accumulate(sizes))
    return tuple(along(x, axis, stop - size, stop) for size, stop in zip(sizes, stops, strict=True))


def _split(x: Any, sizes: Any, axis: int = 0) -> Any:
    if isinstance(sizes, int):
        return np.split(x, range(sizes, x.shape[axis], sizes), axis)
    return np.split(x, np.cumsum(sizes)[:-1], axis)


@composite(
    gives="tuple[Tensor, ...]",
    group=GROUP, windows=True, reference=_split, dtypes=_ANY, scheme=("split",),
    samples=(
        sample((5, 2), sizes=2), sample((2, 5), sizes=(2, 0, 3), axis=1), sample((4,), sizes=4),
        sample((3,), sizes=(3,)),
    ),
)  # fmt: skip
def split(x: Value, sizes: int | Sequence[int], axis: int = 0) -> Any:
    """x in parts along an axis: of given extents, or all of one (the last may be less); `chunk` takes a count."""
    axis = shapes.axis(axis, x.ndim)
    n = x.shape[axis]
    if isinstance(sizes, int):
        if sizes < 1:
            raise ShapeError(f"parts must have a positive extent, not {sizes}")
        return _parts(x, [min(sizes, n - start) for start in range(0, n, sizes)] or [0], axis)
    found = shapes.extents(sizes)
    if sum(found) != n:
        raise ShapeError(
            f"parts {list(found)} make up {sum(found)} of an extent of {n}", hint=f"parts are sizes, and sum to {n}"
        )
    return _parts(x, found, axis)


def _chunk(x: Any, count: int, axis: int = 0) -> Any:
    return _split(x, max(1, -(-x.shape[axis] // count)), axis)


@composite(
    gives="tuple[Tensor, ...]",
    group=GROUP, windows=True, reference=_chunk, dtypes=_ANY,
    samples=(sample((6,), count=3), sample((2, 5), count=3, axis=1), sample((2, 2), count=5)),
)  # fmt: skip
def chunk(x: Value, count: int, axis: int = 0) -> Any:
    """x in at most `count` parts along an axis, all of one extent but for the last, as PyTorch's chunk."""
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise ShapeError(f"there must be at least one chunk, not {count!r}")
    return split(x, max(1, -(-x.shape[shapes.axis(axis, x.ndim)] // count)), axis)


@composite(
    gives="tuple[Tensor, ...]",
    windows=True,
    group=GROUP, reference=lambda x, axis=0: tuple(np.moveaxis(x, axis, 0)), dtypes=_ANY, aliases=("unbind",),
    samples=(sample((2, 3)), sample((2, 3), axis=-1), sample((2,))),
)  # fmt: skip
def unstack(x: Value, axis: int = 0) -> Any:
    """The slices of x along an axis, without it."""
    axis = shapes.axis(axis, x.ndim)
    rest = shapes.without(x.shape, (axis,))
    return tuple(reshape(part, rest) for part in _parts(x, [1] * x.shape[axis], axis))


# --- said with both -------------------------------------------------------------------------------


class Roll(NamedTuple):
    """By how many places along each axis; less than its extent."""

    shifts: tuple[int, ...]


def _pull_rolled(e: Any, a: Roll, i: Any, x: Any) -> Any:
    places = []
    for k, by in enumerate(a.shifts):
        if not by:
            places.append(i[k])
            continue
        extent = x.shape[k]
        around = e.compare("LT", i[k], by)  # decided where a row is gone over in stretches
        moved = i[k] - by if around.known is not None and not around.known else e.digit(i[k] + (extent - by), 1, extent)
        places.append(moved)
    return x(places)


def _back(a: Roll, x: HasAval) -> Roll:
    return Roll(tuple(-by % (n or 1) for by, n in zip(a.shifts, x.shape, strict=True)))


def _batch_rolled(a: Roll, inputs: Any, batched: Any) -> Any:
    return inputs[0].apply(ROLLED, inputs, Roll((0, *a.shifts)))


ROLLED: Op = row(Op(
    name="rolled", doc="x shifted along axes, where what leaves at one end comes in at the other.", function=None,
    names=("x",), group=STRUCTURE, method=False, infer=lambda a, x: Aval(x.shape, x.dtype),
    reference=lambda a, x: np.roll(x, a.shifts, tuple(range(x.ndim))), moves=True, lower=Pull(_pull_rolled),
    of_complex=True,
    derivative=Linear(lambda a, ct, k, x: ct.apply(ROLLED, (ct,), _back(a, x))), batch=_batch_rolled, dtypes=_ANY,
))  # fmt: skip


@composite(
    group=GROUP, reference=np.roll, dtypes=_ANY,
    samples=(
        sample((5,), shift=2), sample((2, 5), shift=-1, axis=1), sample((2, 3), shift=(1, 5), axis=(0, 1)),
        sample((2, 3), shift=4), sample((0, 2), shift=1, axis=0), sample((), shift=1),
    ),
)  # fmt: skip
def roll(x: Value, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Any:
    """x shifted along axes, where what leaves at one end comes in at the other (None: all elements in a row)."""
    if axis is None:
        return reshape(roll(reshape(x, (x.size,)), shift, 0), x.shape)
    places = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(places) if isinstance(shift, int) else list(shift)
    if len(shifts) != len(places):
        raise ShapeError(f"{len(shifts)} shifts for {len(places)} axes")
    found = [0] * x.ndim
    for given, by in zip(places, shifts, strict=True):
        k = shapes.axis(given, x.ndim)
        found[k] = (found[k] + by) % (x.shape[k] or 1)
    return x.apply(ROLLED, (x,), Roll(tuple(found))) if any(found) else x


@composite(
    gives="tuple[Tensor, ...]",
    group=GROUP, reference=lambda tensors, indexing="xy": np.meshgrid(*tensors, indexing=indexing), dtypes=_ANY,
    method=False, samples=(sample(_draws((2,), (3,))), sample(_draws((2,), (3,), (2,)), indexing="ij")),
)  # fmt: skip
def meshgrid(tensors: Sequence[Value], indexing: str = "xy") -> Any:
    """Vectors as coordinates of a grid: one tensor of the grid's shape for each ("xy": the first runs along axis 1)."""
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"indexing is 'xy' or 'ij', not '{indexing}'")
    if any(x.ndim > 1 for x in tensors):
        raise ShapeError(f"a grid is made of vectors, not of shapes {[list(x.shape) for x in tensors]}")
    axes = list(range(len(tensors)))
    if indexing == "xy" and len(axes) > 1:
        axes[:2] = 1, 0
    rank = len(axes)
    thin = [
        reshape(x, [x.size if k == axis else 1 for k in range(rank)]) for axis, x in zip(axes, tensors, strict=True)
    ]
    return broadcast_tensors(thin)
