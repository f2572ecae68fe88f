"""Reading and writing elements at positions that are data: take, scatter, and what is said with them.

`take` and the scatters work along one axis. Leading axes that the tensor and the positions share are *batch* axes:
each example of the batch has positions of its own. Positions may be negative, counting from the end; one that is out
of range is an error, never a neighbour's element. All else becomes one of these over flattened axes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DerivativeError, DTypeError, IndexOutOfRange, ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.axes import moveaxis
from eshkol.ops.creation import full, iota
from eshkol.ops.dtypes import DType
from eshkol.ops.elementwise import add, bitwise_or, cast, equal, maximum, minimum, mul, where
from eshkol.ops.masks import within
from eshkol.ops.movement import expand, expanded, permute, reshape
from eshkol.ops.row import (
    Aval,
    Draw,
    HasAval,
    Jvp,
    Linear,
    NoDerivative,
    Op,
    Pull,
    Push,
    Shape,
    Update,
    Value,
    composite,
    primitive,
    sample,
)

GROUP = "indexing"
_ANY = ("bool", "int", "float", "complex")
_POSITIONS = NoDerivative("positions do not vary smoothly")


def positions(indices: HasAval) -> None:
    """Refuses what cannot be a position."""
    if not indices.dtype.is_integer:
        raise DTypeError(f"indices must be integers, not {indices.dtype}", hint="cast them: i.astype(ek.int64)")


def something(x: HasAval, axis: int, indices: HasAval) -> None:
    """Refuses positions along an axis that has none: an op that has nothing to compute would not look at them."""
    if not x.shape[axis] and shapes.count(indices.shape):
        raise IndexOutOfRange(
            f"positions of shape {list(indices.shape)} along axis {axis} of shape {list(x.shape)}, which is empty",
            hint="there are no elements",
        )


def wrapped(indices: Any, extent: int, wrap: bool = True) -> Any:
    """NumPy positions in range, as non-negative integers; an error if one is not."""
    places = np.asarray(indices)
    if places.size and within(places, 0, extent):  # as most are
        return places.astype(np.int64)  # a copy: what was given may be changed later
    wrong = places >= extent
    if places.dtype.kind == "i":
        wrong |= places < (-extent if wrap else 0)
    if np.any(wrong):
        raise IndexOutOfRange(
            f"index {places[wrong].flat[0]} is out of range for an extent of {extent}",
            hint=f"indices are {-extent if wrap else 0} to {extent - 1}" if extent else "there are no elements",
        )
    places = places.astype(np.int64)
    return np.where(places < 0, places + extent, places)


_FEW = 64  # positions that Python compares sooner than NumPy


def _refuse_outside(extent: Callable[..., int], wrap: Callable[[Any], bool] = lambda a: True) -> Callable[..., Any]:
    """An error where positions are known, and one is out of range; gives those that are not known."""

    def refuses(a: Any, *inputs: Any) -> Any:
        indices = inputs[min(1, len(inputs) - 1)]
        if (known := indices.known()) is None:
            return indices
        if known.size:
            most = extent(a, *inputs)
            least = -most if wrap(a) else 0
            few = known.reshape(-1).tolist() if known.size <= _FEW else None
            if not within(known, least, most) if few is None else min(few) < least or max(few) >= most:
                wrapped(known, most, wrap(a))
        return None

    return refuses


def at(*given: int | tuple[int, ...], low: int, high: int) -> Draw:
    """A draw of positions, from `low` to `high` inclusive."""
    shape = given[0] if given and isinstance(given[0], tuple) else tuple(n for n in given if isinstance(n, int))
    return Draw(shape, low, high, "int", lambda rng: rng.integers(low, high + 1, shape))


class Bound(NamedTuple):
    extent: int
    wrap: bool


def _infer_position(a: Bound, indices: HasAval) -> Aval:
    positions(indices)
    return Aval(indices.shape, dtypes.int64)


STRETCH = 1024  # positions that are checked together


class Axis(NamedTuple):
    """An axis along which positions are given: how many, how far apart, and whether some may count from the end."""

    extent: int
    stride: int = 1
    wrap: bool = True


def check_positions(dtype_of: Callable[[Any], DType], axes_of: Callable[[Any], Sequence[Axis]]) -> Push:
    """Positions from 0 on, a stretch of them for each lane, which stops the launch if one was out of range.

    Positions along several axes, each of which has indices of its own, become one. Lanes that stand side by side check
    one each: neighbours read neighbouring positions.
    """
    alone = _checking(dtype_of, axes_of, 1)
    return replace(_checking(dtype_of, axes_of, STRETCH), side_by_side=alone)


def _checking(dtype_of: Callable[[Any], DType], axes_of: Callable[[Any], Sequence[Axis]], stretch: int) -> Push:
    def rows(a: Any, indices: HasAval, *others: HasAval) -> Shape:
        return (max(1, -(-shapes.count(indices.shape) // stretch)),)

    def code(e: Any, a: Any, r: Any, write: Any, *indices: Any) -> None:
        number, axes = shapes.count(indices[0].shape), axes_of(a)
        length = min(number, stretch)
        rounds, last = e.extent(length), e.extent(number - length)
        # The last stretch is as long as the others, and overlaps with the one before it.
        start = e.at_most(e.op("MIN", r[0] * rounds, last), number - length)
        inside = [e.variable(e.constant(1, dtypes.uint32)) for _ in axes]
        with e.counted(rounds) as j:
            here, place = start + j, None
            for axis, given, fine in zip(axes, indices, inside, strict=True):
                found, within_axis = e.located(given.load(here), axis.extent, axis.wrap)
                e.accumulate(fine, "Min", within_axis)
                term = found if axis.stride == 1 else found * axis.stride
                place = term if place is None else place + term
            write.store(here, e.convert(place, dtype_of(a)))
        for axis, fine in zip(axes, inside, strict=True):
            e.stop_unless(fine, axis.extent)

    return Push(rows, code)


def _batch_position(a: Bound, inputs: Any, batched: Any) -> Any:
    return position(inputs[0], *a)


@primitive(
    group=GROUP, infer=_infer_position, reference=lambda a, i: wrapped(i, *a), derivative=_POSITIONS, dtypes=("int",),
    lower=check_positions(lambda a: dtypes.int64, lambda a: (Axis(a.extent, 1, a.wrap),)), batch=_batch_position,
    method=False,
    refuses=_refuse_outside(lambda a, i: a.extent, lambda a: bool(a.wrap)),
    samples=(sample(at(2, 3, low=-4, high=3), extent=4), sample(at(3, low=0, high=2), extent=3, wrap=False)),
)  # fmt: skip
def position(indices: Value, extent: int, wrap: bool = True) -> Bound:
    """Indices as positions from 0 on: negative ones count from the end (unless wrap is False); range is checked."""
    (found,) = shapes.extents(extent)
    return Bound(found, bool(wrap))


# --- take -----------------------------------------------------------------------------------------


class Along(NamedTuple):
    """Along which axis of the tensor, and how many leading axes are batch."""

    axis: int
    batch: int

    def parts(self, shape: Shape) -> tuple[Shape, Shape, int, Shape]:
        """The tensor's shape: batch axes, those before the axis, its extent, those after it."""
        return shape[: self.batch], shape[self.batch : self.axis], shape[self.axis], shape[self.axis + 1 :]

    def taken(self, x: HasAval, indices: HasAval) -> Shape:
        """The shape of what is taken."""
        examples, before, _, behind = self.parts(x.shape)
        if indices.shape[: self.batch] != examples:
            raise ShapeError(
                f"indices of shape {list(indices.shape)} do not begin with the batch axes {list(examples)} "
                f"of shape {list(x.shape)}"
            )
        return (*examples, *before, *indices.shape[self.batch :], *behind)

    def split(self, i: Any, indices: Any) -> tuple[list[Any], list[Any], list[Any], list[Any]]:
        """An index of what is taken, in parts: batch, before, place among the indices, behind."""
        first, second = self.axis, self.axis + len(indices.shape) - self.batch
        places = list(i)
        return places[: self.batch], places[self.batch : first], places[first:second], places[second:]


def along(x: Value, axis: int, batch: int) -> Along:
    """The attributes of take and scatter, checked."""
    if x.ndim == 0:
        raise ShapeError("a scalar has no axis to index")
    found = shapes.axis(axis, x.ndim)
    if isinstance(batch, bool) or not isinstance(batch, int) or not 0 <= batch <= found:
        raise ShapeError(f"there must be 0 to {found} batch axes before axis {found}, not {batch!r}")
    return Along(found, batch)


def _infer_take(a: Along, x: HasAval, indices: HasAval) -> Aval:
    positions(indices)
    return Aval(a.taken(x, indices), x.dtype)


def _flat(a: Along, x: Any, indices: Any) -> tuple[Any, Any, Any]:
    """An array as (batch, before, extent, behind), its positions as (batch, count), and the batch's own numbers."""
    examples, before, extent, behind = a.parts(x.shape)
    size = shapes.count(examples)
    four = x.reshape(size, shapes.count(before), extent, shapes.count(behind))
    places = wrapped(indices, extent).reshape(size, shapes.count(indices.shape[a.batch :]))
    return four, places, np.arange(size)[:, None]


def _take(a: Along, x: Any, indices: Any) -> Any:
    four, places, examples = _flat(a, x, indices)
    return four[examples, :, places].transpose(0, 2, 1, 3).reshape(a.taken(x, indices))


def _pull_take(e: Any, a: Along, i: Any, x: Any, indices: Any) -> Any:
    examples, before, place, behind = a.split(i, indices)
    return x([*examples, *before, e.index(indices([*examples, *place]), x.shape[a.axis]), *behind])


def _transpose_take(a: Along, ct: Any, k: int, x: HasAval, indices: Any) -> Any:
    return scatter_into(full(ct, x.shape, 0), indices, ct, a.axis, True, a.batch)


def _batch_take(a: Along, inputs: Any, batched: Any) -> Any:
    x, indices = inputs
    if not a.batch and not batched[1]:
        return take(x, indices, a.axis + 1)
    if not a.batch and not batched[0]:
        found = take(x, indices, a.axis)  # the examples lie where the axis was
        return permute(found, (a.axis, *(k for k in range(found.ndim) if k != a.axis)))
    return take(*together(inputs, batched), a.axis + 1, a.batch + 1)


def together(inputs: Any, batched: Any) -> list[Any]:
    """The inputs, all with the batch in front."""
    size = next(x.shape[0] for x, b in zip(inputs, batched, strict=True) if b)
    return [x if b else expand(x, (size, *x.shape)) for x, b in zip(inputs, batched, strict=True)]


@primitive(
    group=GROUP, infer=_infer_take, reference=_take, derivative=Linear(_transpose_take, args=(0,)), batch=_batch_take,
    dtypes=_ANY, lower=Pull(_pull_take), of_complex=True, refuses=_refuse_outside(lambda a, x, i: x.shape[a.axis]),
    samples=(
        sample((4, 2), at(3, low=-4, high=3)), sample((2, 4), at(2, 2, low=0, high=3), axis=1),
        sample((4,), at(low=0, high=3)), sample((3, 2), at(0, low=0, high=0)),
        sample((2, 3, 0), at(2, low=0, high=2), axis=1), sample((2, 3), at(2, 2, low=0, high=2), axis=1, batch=1),
        sample((2, 3, 4, 2), at(2, 5, low=-4, high=3), axis=2, batch=1),
    ),
)  # fmt: skip
def take(x: Value, indices: Value, axis: int = 0, batch: int = 0) -> Along:
    """The elements of x at integer positions along an axis, which the axes of the indices replace.

    The first `batch` axes of x and of the indices are the same: each example has its own indices.
    """
    return along(x, axis, batch)


# --- scatter --------------------------------------------------------------------------------------


class Into(NamedTuple):
    along: Along
    add: bool


def _infer_scatter(a: Any, x: HasAval, indices: HasAval, updates: HasAval) -> Aval:
    positions(indices)
    something(x, a.along.axis, indices)
    wanted = a.along.taken(x, indices)
    if len(updates.shape) > len(wanted) or shapes.broadcast(updates.shape, wanted) != wanted:
        raise ShapeError(
            f"updates of shape {list(updates.shape)} do not broadcast to the {list(wanted)} taken elements"
        )
    return Aval(x.shape, x.dtype)


def _scatter(a: Any, x: Any, indices: Any, updates: Any, ufunc: Any) -> Any:
    """NumPy's own unbuffered update, in the order of the indices; halves are added up in float32."""
    wide = np.array(x, np.float32 if dtypes.of(x.dtype).bits == 16 and x.dtype.kind not in "iu" else x.dtype, order="C")
    four, places, examples = _flat(a.along, wide, indices)
    size, before, _, behind = four.shape
    new = np.broadcast_to(updates, a.along.taken(x, indices)).astype(wide.dtype)
    new = new.reshape(size, before, places.shape[1], behind).transpose(0, 2, 1, 3)
    if ufunc is None:
        four[examples, :, places] = new
    else:
        ufunc.at(four, (examples, slice(None), places), new)
    return wide


WIDE = 64  # elements of a row that are worth a lane of their own: of less, processors fetch what is between, too


def _stretches(before: int, row: int) -> int:
    """Into how many stretches rows are cut, each of which a lane updates: such that all cores have work."""
    wanted = 1 if before > 1 else row // WIDE
    return next((n for n in range(min(wanted, 16), 1, -1) if row % n == 0), 1)


def _lanes(a: Any, x: HasAval, *others: HasAval) -> Shape:
    """What is after the axis is a row; a lane updates a stretch of the rows that share the places before the axis."""
    before, behind = x.shape[: a.along.axis], x.shape[a.along.axis + 1 :]
    return (*before, _stretches(shapes.count(before), shapes.count(behind)))


def _work(a: Any, x: HasAval, indices: HasAval, updates: HasAval) -> int:
    """The elements that a lane updates."""
    row = shapes.count(x.shape[a.along.axis + 1 :])
    return shapes.count(indices.shape[a.along.batch :]) * row // _lanes(a, x)[-1]


def update_scatter(row_of: Callable[[Any, DType], Op | None], checked: bool = False) -> Update:
    """Each update in turn, by the element code of another row (none: it replaces).

    Positions that were checked before are not looked at again, which is what lets a row be updated in vectors.
    """

    def code(e: Any, a: Any, r: Any, write: Any, x: Any, indices: Any, updates: Any) -> None:
        *before, stretch = r
        axis, batch, extent = a.along.axis, a.along.batch, x.shape[a.along.axis]
        behind, rest, combine = x.shape[axis + 1 :], indices.shape[batch:], row_of(a, x.dtype)
        row = shapes.count(behind)
        width = row // _lanes(a, x)[-1]
        outer, start, number = e.ravel(before, x.shape[:axis]), stretch * width, shapes.count(rest)
        whole = shapes.count(updates.shape) == shapes.count(x.shape[:axis]) * number * row
        flat = whole and not before  # nothing depends on how many updates there are but how often it is done

        def new_at(j: Any, place: Any, column: Any) -> Any:
            if whole:
                return updates.load((outer * number + j) * row + column)
            taken = [*before, *place, *e.unravel(column, behind)]
            own = taken[len(taken) - len(updates.shape) :]
            return updates([0 if n == 1 else k for k, n in zip(own, updates.shape, strict=True)])

        def updated(j: Any, state: Any) -> Any:
            place: Sequence[Any] = () if flat else e.unravel(j, rest)
            given = indices.load(j) if flat else indices([*before[:batch], *place])
            base = (outer * extent + (e.sure_index if checked else e.index)(given, extent)) * row

            def element(c: Any, state: Any) -> Any:
                new, position = new_at(j, place, start + c), base + (start + c)
                if combine is not None:
                    assert isinstance(combine.lower, Pull)
                    operands = write.load(position), new
                    new = combine.lower.code(e, None, None, lambda i: operands[0], lambda i: operands[1])
                write.store(position, new)
                return state

            if width == 1:
                element(e.number(0), state)
            else:
                e.loop(width, [], element)
            return state

        e.loop(e.extent(number) if flat else number, [], updated)

    return Update(_lanes, code, _work)


def row_into(a: Into, dtype: DType) -> Op | None:
    return None if not a.add else bitwise_or if dtype.is_bool else add


def _transpose_scatter(a: Into, ct: Any, k: int, x: HasAval, indices: Any, updates: HasAval) -> Any:
    if k == 0:
        return ct if a.add else scatter_into(ct, indices, full(ct, (), 0), a.along.axis, False, a.along.batch)
    taken = take(ct, indices, *a.along)
    return taken if a.add else where(_lasting(a.along, ct, indices), taken, 0)


def _lasting(a: Along, x: Any, indices: Any) -> Any:
    """Whether an update is the last one of its place, shaped to meet what is taken."""
    examples, before, extent, behind = a.parts(x.shape)
    rest = indices.shape[a.batch :]
    number = reshape(iota.on(x, (shapes.count(rest),)), rest)
    owner = scatter_into(full(x, (*examples, extent), -1, dtypes.int64), indices, number, a.batch, False, a.batch)
    last = equal(take(owner, indices, a.batch, a.batch), number)
    return reshape(last, (*examples, *(1,) * len(before), *rest, *(1,) * len(behind)))


def _batched_scatter(a: Any, inputs: Any, batched: Any) -> tuple[list[Any], Along]:
    """The inputs with the batch in front, and along which axis they meet then."""
    x, indices, updates = inputs
    taken = a.along.taken(*(_example(y, b) for y, b in zip(inputs[:2], batched[:2], strict=True)))
    missing = len(taken) - (updates.ndim - batched[2])
    if batched[2] and missing:
        updates = reshape(updates, (updates.shape[0], *(1,) * missing, *updates.shape[1:]))
    if not a.along.batch and not batched[1]:
        wide = x if batched[0] else expand(x, (updates.shape[0], *x.shape))
        return [wide, indices, updates], Along(a.along.axis + 1, 0)
    if not batched[2]:
        updates = expand(updates, taken)
    return together((x, indices, updates), batched), Along(a.along.axis + 1, a.along.batch + 1)


def _example(x: HasAval, batched: bool) -> Aval:
    return Aval(x.shape[1:] if batched else x.shape, x.dtype)


def _batch_into(a: Into, inputs: Any, batched: Any) -> Any:
    wide, where_to = _batched_scatter(a, inputs, batched)
    return scatter_into(*wide, where_to.axis, a.add, where_to.batch)


_SCATTERED: tuple[Any, ...] = (
    ((4, 2), at(3, low=-4, high=3), (3, 2), {}),
    ((2, 4), at(2, 2, low=0, high=3), (2, 2, 2), {"axis": 1}),
    ((3,), at(low=0, high=2), (), {}),
    ((3, 2), at(0, low=0, high=0), (0, 2), {}),
    ((4, 2), at(5, low=0, high=3), (2,), {}),
    ((2, 3, 4, 2), at(2, 5, low=-4, high=3), (2, 3, 5, 2), {"axis": 2, "batch": 1}),
    ((3, 4), at(3, low=0, high=3), (3, 1), {"axis": 1}),  # as many indices as rows, which share them
)  # a tensor, indices, updates (of which some meet in one place), attributes


_REFUSES = _refuse_outside(lambda a, x, i, updates: x.shape[a.along.axis])


def _scatter_samples(**attrs: Any) -> tuple[Any, ...]:
    return tuple(sample(x, i, updates, **given, **attrs) for x, i, updates, given in _SCATTERED)


@primitive(
    group=GROUP, infer=_infer_scatter, promote="common", promoted=(0, 2), batch=_batch_into, dtypes=_ANY, method=False,
    reference=lambda a, x, i, u: _scatter(a, x, i, u, np.add if a.add else None),
    derivative=Linear(_transpose_scatter, args=(0, 2), joint=True), lower=update_scatter(row_into), refuses=_REFUSES,
    samples=(*_scatter_samples(), *_scatter_samples(add=True)[::3]),
)  # fmt: skip
def scatter_into(x: Value, indices: Value, updates: Value, axis: int = 0, add: bool = False, batch: int = 0) -> Into:
    """x with updates put, or added, at positions along an axis; the inverse of `take`, whose result they are shaped as.

    Of several that are put into one place the last stays, and only it has a derivative.
    """
    return Into(along(x, axis, batch), bool(add))


class Combine(NamedTuple):
    along: Along
    mode: str


_COMBINED = {"max": np.maximum, "min": np.minimum, "mul": np.multiply}


def _jvp_combine(a: Combine, result: Any, inputs: Any, tangents: Any) -> Any:
    """All that equal the extreme share its tangent evenly."""
    if a.mode == "mul":
        raise DerivativeError("scatter with mode 'mul' has no derivative", hint="scatter logarithms with mode 'add'")
    (x, indices, updates), (dx, _, du) = inputs, tangents
    kept = cast(equal(x, result), x.dtype)
    chosen = cast(equal(updates, take(result, indices, *a.along)), x.dtype)

    def added(one: Any, other: Any) -> Any:
        return scatter_into(one, indices, other, a.along.axis, True, a.along.batch)

    none = full(x, (), 0)
    moved = added(full(x, x.shape, 0) if dx is None else dx * kept, none if du is None else du * chosen)
    return moved / added(kept, chosen)


def _batch_combine(a: Combine, inputs: Any, batched: Any) -> Any:
    wide, where_to = _batched_scatter(a, inputs, batched)
    return scatter_combine(*wide, where_to.axis, a.mode, where_to.batch)


@primitive(
    group=GROUP, infer=_infer_scatter, promote="common", promoted=(0, 2), batch=_batch_combine, dtypes=("int", "float"),
    reference=lambda a, x, i, u: _scatter(a, x, i, u, _COMBINED[a.mode]), derivative=Jvp(_jvp_combine),
    lower=update_scatter(lambda a, dtype: {"max": maximum, "min": minimum, "mul": mul}[a.mode]),
    samples=(*_scatter_samples(mode="max"), *_scatter_samples(mode="min")[:1]), method=False, refuses=_REFUSES,
)  # fmt: skip
def scatter_combine(
    x: Value, indices: Value, updates: Value, axis: int = 0, mode: str = "max", batch: int = 0
) -> Combine:
    """x with updates combined into positions along an axis: mode "max", "min" or "mul" (which has no derivative).

    All elements that equal an extreme share its tangent.
    """
    if mode not in _COMBINED:
        raise ShapeError(f"there is no mode '{mode}'", hint="modes: max, min, mul")
    return Combine(along(x, axis, batch), mode)


def _scatter_reference(x: Any, indices: Any, updates: Any, axis: int = 0, mode: str = "set", batch: int = 0) -> Any:
    """One update after another."""
    result, axis = np.array(x, copy=True), axis % x.ndim
    examples = x.shape[:batch]
    new = np.broadcast_to(updates, (*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]))
    for example in np.ndindex(*examples):
        for place in np.ndindex(*indices.shape[batch:]):
            target = (*example, *(slice(None),) * (axis - batch), int(indices[(*example, *place)]))
            update = new[(*example, *(slice(None),) * (axis - batch), *place)]
            if mode == "set":
                result[target] = update
            else:
                result[target] = (_COMBINED | {"add": np.add})[mode](result[target], update)
    return result


@composite(
    group=GROUP, reference=_scatter_reference, dtypes=("int", "float"), scheme=("scatter",),
    samples=(*_scatter_samples(mode="set"), *_scatter_samples(mode="max")[:2], *_scatter_samples(mode="min")[:2],
             *_scatter_samples(mode="add")[:2]),
)  # fmt: skip
def scatter(x: Value, indices: Value, updates: Value, axis: int = 0, mode: str = "set", batch: int = 0) -> Any:
    """x with updates at positions along an axis: mode "set", "add", "max", "min" or "mul"; the inverse of `take`.

    Updates apply in order: of several that are set in one place the last stays, and only it has a derivative.
    """
    if mode in ("set", "add"):
        return scatter_into(x, indices, updates, axis, mode == "add", batch)
    return scatter_combine(x, indices, updates, axis, mode, batch)


# --- along an axis, element by element ------------------------------------------------------------


def _same_rank(x: Value, *others: Value) -> None:
    for other in others:
        if other.ndim != x.ndim:
            raise ShapeError(
                f"shape {list(other.shape)} has not as many axes as shape {list(x.shape)}",
                hint="reshape or unsqueeze it",
            )


@composite(
    group=GROUP, reference=lambda x, indices, axis=-1: np.take_along_axis(x, indices, axis), dtypes=_ANY,
    aliases=("take_along_axis", "take_along_dim"),
    samples=(
        sample((2, 4), at(2, 3, low=-4, high=3)), sample((4, 2), at(3, 2, low=0, high=3), axis=0),
        sample((2, 4, 3), at(1, 2, 3, low=0, high=3), axis=1), sample((3,), at(0, low=0, high=0)),
    ),
)  # fmt: skip
def take_along(x: Value, indices: Value, axis: int | None = -1) -> Any:
    """The elements of x at positions along an axis, one for each element of the indices; the other axes broadcast."""
    if axis is None:
        return take(reshape(x, -1), reshape(indices, -1))
    _same_rank(x, indices)
    axis = shapes.axis(axis, x.ndim)
    rest = shapes.broadcast(shapes.without(x.shape, (axis,)), shapes.without(indices.shape, (axis,)))
    source, places = moveaxis(x, axis, -1), moveaxis(indices, axis, -1)
    source, places = (expanded(y, (*rest, y.shape[-1])) for y in (source, places))
    return moveaxis(take(source, places, x.ndim - 1, x.ndim - 1), -1, axis)
