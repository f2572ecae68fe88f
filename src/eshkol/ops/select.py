"""Python's indexing, as NumPy has it: x[index], and x with other elements at an index.

An index is read in two stages. The *view*: integers, slices, Ellipsis and None, which are a slice, a flip and a
reshape. Then the *selection* in the view: integer arrays, and masks as the positions where they hold, which become
positions in one axis, of which `take` reads and `scatter` writes. Assignment goes the same way back.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError, TensorError
from eshkol.ops import shapes
from eshkol.ops.axes import permuted
from eshkol.ops.dtypes import held as held_in
from eshkol.ops.elementwise import cast, where
from eshkol.ops.indexing import GROUP, position, positions, scatter_into, take, wrapped
from eshkol.ops.masks import held
from eshkol.ops.movement import expanded, flip, reshaped
from eshkol.ops.row import Draw, Sample, Shape, Value, composite, sample
from eshkol.ops.shapes import broadcast
from eshkol.ops.slicing import Pad, pad_constant, padding, slice_
from eshkol.ops.structural import number
from eshkol.support.extents import Extent, bounds_of, index, length_of

_ANY = ("bool", "int", "float", "complex")


class Bounds(NamedTuple):
    """The elements of an axis from one on to before another, every step-th: as a range, of extents too."""

    start: int
    stop: int
    step: int = 1

    @property
    def length(self) -> int:
        return length_of(self.start, self.stop, self.step)

    @property
    def last(self) -> int:
        return self.start + (self.length - 1) * self.step

    @property
    def reversed(self) -> Bounds:
        return Bounds(self.last, self.start - self.step, -self.step)


@dataclass
class _Plan:
    """What an index does to a tensor of a shape."""

    shape: Shape
    bounds: list[Bounds] = field(default_factory=list)  # along each axis of the tensor; steps may be negative
    view: list[int] = field(default_factory=list)  # extents that are left, new ones among them
    chosen: list[tuple[int, Any]] = field(default_factory=list)  # axes of the view, and positions along them
    place: int | None = None  # where in the result the axes of the positions stand; None before there are any
    apart: bool = False  # whether positions are separated by something else, so that their axes come first
    _closed: bool = False

    def slice(self, given: slice) -> None:
        """A slice of the next axis."""
        parts = (given.start, given.stop, given.step)
        start, stop, step = (None if p is None else _integer(p) for p in parts)
        if step == 0:
            raise ShapeError("the step of a slice cannot be 0")
        self._keep(Bounds(*bounds_of(slice(start, stop, step), self._extent())))

    def whole(self) -> None:
        """The next axis as it is."""
        self._keep(Bounds(0, self._extent()))

    def _keep(self, bounds: Bounds) -> None:
        self.bounds.append(bounds)
        self.view.append(bounds.length)
        self.separate()

    def separate(self) -> None:
        """What stands between positions."""
        self._closed = self.place is not None

    def _joint(self) -> None:
        """A position, or a number, which counts as one when it stands beside one."""
        if self.place is None:
            self.place = len(self.view) - len(self.chosen)
        self.apart |= self._closed

    def number(self, given: int) -> None:
        """One element of the next axis."""
        place = self._place(given, self._extent())
        self._joint()
        self.bounds.append(Bounds(place, place + 1))

    @staticmethod
    def _place(given: int, extent: int) -> int:
        if type(extent) is Extent and -extent <= given < extent:
            return given + extent if given < 0 else given
        return int(wrapped(given, extent))

    def array(self, given: Any) -> None:
        """Positions along the next axis."""
        extent = self._extent()
        self._choose(given if isinstance(given, Value) else wrapped(given, extent), (extent,))

    def mask(self, given: Any) -> None:
        """The positions where a mask of the next axes holds, which are one axis of the view."""
        behind = self.shape[len(self.bounds) : len(self.bounds) + given.ndim]
        if given.shape != behind:
            raise IndexOutOfRange(
                f"a mask of shape {list(given.shape)} stands for axes of shape {list(behind)}",
                hint="a mask has the shape of the axes that it selects from",
            )
        self._choose(held(given), behind)

    def _choose(self, positions: Any, extents: Shape) -> None:
        """Positions among all the places of the next axes, in range if they are known."""
        self._joint()
        self.chosen.append((len(self.view), positions))
        self.bounds += (Bounds(0, extent) for extent in extents)
        self.view.append(shapes.count(extents))

    def new(self) -> None:
        """A new axis."""
        self.view.append(1)
        self.separate()

    def truth(self, given: bool) -> None:
        """A bool alone: an axis of one or no element."""
        self._joint()
        self.chosen.append((len(self.view), np.zeros(int(given), np.int64)))
        self.view.append(1)

    def _extent(self) -> int:
        return self.shape[len(self.bounds)]

    # --- the view -----------------------------------------------------------------------------------

    @property
    def is_whole(self) -> bool:
        return all(b.step == 1 and b.start == 0 and b.stop == n for b, n in zip(self.bounds, self.shape, strict=True))

    @property
    def flipped(self) -> tuple[int, ...]:
        return tuple(k for k, b in enumerate(self.bounds) if b.step < 0 and b.length > 1)

    def forward(self) -> list[Bounds]:
        """The bounds with positive steps."""
        return [b.reversed if b.step < 0 else b for b in self.bounds]

    def read(self, x: Any) -> Any:
        """The view of a tensor."""
        if not self.is_whole:
            found = self.forward()
            x = slice_(x, [b.start for b in found], [max(b.stop, b.start) for b in found], [b.step for b in found])
            x = flip(x, self.flipped) if self.flipped else x
        return reshaped(x, self.view)

    def write(self, x: Any, view: Any) -> Any:
        """The tensor with another view."""
        slab = reshaped(view, [b.length for b in self.bounds])
        if self.is_whole:
            return slab
        slab = flip(slab, self.flipped) if self.flipped else slab
        low = tuple(b.start for b in self.forward())
        high = tuple(n - b.last - 1 for b, n in zip(self.forward(), self.shape, strict=True))
        around = Pad(low, high, tuple(b.step - 1 for b in self.forward()))
        return where(padding(around, slab), x, pad_constant(slab, number(x, 0), *around))

    # --- the selection ------------------------------------------------------------------------------

    @property
    def axes(self) -> list[int]:
        """The axes of the view that positions choose from."""
        return [axis for axis, _ in self.chosen]

    @property
    def target(self) -> int:
        """Where the axes of the positions stand in the result."""
        return 0 if self.apart or self.place is None else self.place

    @property
    def order(self) -> list[int]:
        """The axes of the view, with those that positions choose from together at their target."""
        rest = [k for k in range(len(self.view)) if k not in self.axes]
        return [*rest[: self.target], *self.axes, *rest[self.target :]]

    def merged(self, view: Any) -> Any:
        """The view with one axis, at the target, for all that positions choose from."""
        ordered = permuted(view, self.order)
        first, last = self.target, self.target + len(self.chosen)
        extent = shapes.count(ordered.shape[first:last])
        return reshaped(ordered, (*ordered.shape[:first], extent, *ordered.shape[last:]))

    def parted(self, merged: Any) -> Any:
        """The inverse of `merged`."""
        ordered = reshaped(merged, [self.view[k] for k in self.order])
        return permuted(ordered, [self.order.index(k) for k in range(len(self.view))])

    def places(self, like: Value) -> Any:
        """Positions in the merged axis."""
        if len(self.chosen) == 1 and isinstance(self.chosen[0][1], Value):
            return self.chosen[0][1]  # whose range `take` and `scatter` check
        broadcast(*(tuple(given.shape) for _, given in self.chosen))
        known: Any = None
        total, stride = None, 1
        for axis, given in reversed(self.chosen):
            if isinstance(given, Value):
                term = position(given, self.view[axis]) * stride
                total = term if total is None else total + term
            else:
                term = given if stride == 1 else given * stride
                known = term if known is None else known + term
            stride *= self.view[axis]
        if known is None:
            return total
        literal = like.literal(np.asarray(known, np.int64))
        return literal if total is None else total + literal


def _integer(given: Any) -> int:
    """A bound of a slice."""
    if isinstance(given, Value):
        given = given.concrete()
    try:
        return index(given)
    except TypeError:
        raise DTypeError(f"a slice is bounded by integers, not {given!r}") from None


def _item(given: Any) -> Any:
    """An item of an index: None, Ellipsis, a slice, an integer, a NumPy mask, or positions (an array or a Value)."""
    if given is None or given is Ellipsis or isinstance(given, slice | Value):
        if isinstance(given, Value):
            if given.dtype.is_bool:
                return np.asarray(given.concrete())
            positions(given)
        return given
    if isinstance(given, bool | np.bool_):
        return np.asarray(given)
    if isinstance(given, list) and not given:
        return np.zeros(0, np.int64)
    try:
        array = np.asarray(given)
    except ValueError:
        raise ShapeError(f"{given!r} is not an index: its rows have different lengths") from None
    if array.dtype.kind not in "biu":
        raise DTypeError(
            f"an index is made of integers, slices, bools, None and Ellipsis, not of {_described(given, array)}",
            hint="cast it: i.astype(ek.int64)",
        )
    return int(array) if array.ndim == 0 and array.dtype.kind != "b" else array


def _described(given: Any, array: Any) -> str:
    return type(given).__name__ if array.dtype == object else str(array.dtype)


def _consumed(item: Any) -> int:
    """How many axes of the tensor an item is about."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if isinstance(item, np.ndarray) and item.dtype.kind == "b" else 1


def _plan(shape: Shape, index: Any) -> _Plan:
    items = [_item(given) for given in (index if isinstance(index, tuple) else (index,))]
    used = sum(map(_consumed, items))
    if used > len(shape):
        raise IndexOutOfRange(
            f"an index of {used} places into shape {list(shape)}",
            hint=f"it has {len(shape)} axes" if len(shape) != 1 else "it has 1 axis",
        )
    dots = [k for k, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise ShapeError("only one Ellipsis may stand in an index")
    plan = _Plan(shape)
    for item in items if dots else [*items, Ellipsis]:
        if item is Ellipsis:
            plan.separate()
            for _ in range(len(shape) - used):
                plan.whole()
        elif item is None:
            plan.new()
        elif isinstance(item, slice):
            plan.slice(item)
        elif isinstance(item, int):
            plan.number(item)
        elif isinstance(item, Value) or item.dtype.kind != "b":
            plan.array(item)
        elif item.ndim == 0:
            plan.truth(bool(item))
        else:
            plan.mask(item)
    return plan


def _remembered(shape: Shape, index: Any) -> _Plan:
    """The plan of an index; one of integers and slices alone, which programs repeat, is made once."""
    parts = index if type(index) is tuple else (index,)
    key = tuple((p.start, p.stop, p.step) if type(p) is slice else p for p in parts)
    if all(p is None or p is ... or type(p) in (int, tuple) for p in key):
        try:
            return _plan_of(shape, key)
        except TypeError:  # a bound that cannot be compared: the careful way says what is wrong with it
            pass
    return _plan(shape, index)


@lru_cache(maxsize=4096)
def _plan_of(shape: Shape, key: tuple[Any, ...]) -> _Plan:
    return _plan(shape, tuple(slice(*p) if type(p) is tuple else p for p in key))


# --- the rows -------------------------------------------------------------------------------------

_MASK = np.array([[True, False, True], [False, False, True]])
_INDICES: tuple[Any, ...] = (
    1, (0, -1), (slice(None), slice(2, 0, -1)), (..., None, 0), np.array([[0, 1], [1, 1]]), (slice(1), [0, 2, 2]),
    ([0, 1], [2, -1]), _MASK, (None, [True, False]), (0, slice(None, None, 2)), (slice(5, 1), 0), True, (),
)  # fmt: skip


@composite(
    group=GROUP, windows=True, reference=lambda x, index: x[index], dtypes=_ANY, method=False, scheme=("tensor-ref",),
    samples=(
        *(sample((2, 3), index=index) for index in _INDICES),
        sample((2, 3, 2), index=([0], slice(None), [[1], [0]])), sample((2, 3, 2), index=(slice(None), 0, [1, 0])),
        sample((), index=None), sample((0, 2), index=[]),
    ),
)  # fmt: skip
def getitem(x: Value, index: Any) -> Any:
    """x[index] as NumPy has it: integers, slices, Ellipsis, None, masks and arrays of integers in any mixture."""
    plan = _remembered(x.shape, index)
    view = plan.read(x)
    return take(plan.merged(view), plan.places(x), plan.target) if plan.chosen else view


def _assigned(x: Any, index: Any, value: Any) -> Any:
    result = np.array(x, copy=True)
    result[index] = value
    return result


def assigned(x: Any, index: Any, value: Any, add: bool) -> Any:
    """x with a value at an index, or added there."""
    plan = _plan(x.shape, index)
    view = plan.read(x)
    new = fitted(x, value)
    if not plan.chosen:
        new = _broadcast(new, view.shape)
        return x if 0 in view.shape else plan.write(x, view + new if add else expanded(new, view.shape))
    merged, places = plan.merged(view), plan.places(x)
    wanted = (*merged.shape[: plan.target], *places.shape, *merged.shape[plan.target + 1 :])
    new = _broadcast(new, wanted)
    if 0 in view.shape or 0 in wanted:
        return x
    return plan.write(x, plan.parted(scatter_into(merged, places, new, plan.target, add)))


def fitted(x: Value, value: Any) -> Any:
    """A value to be stored in x, in its dtype; one of a higher kind would be cut short and is refused."""
    if not isinstance(value, Value):
        if isinstance(value, bool | int | float | complex):
            return number(x, held_in(value, x.dtype))
        array = np.asarray(value)
        if array.dtype == object:
            raise TensorError(f"a {type(value).__name__} is not a tensor", hint="make one with ek.tensor(...)")
        value = x.literal(array)
    if value.dtype.rank > x.dtype.rank:
        raise DTypeError(f"{x.dtype} cannot hold what is {value.dtype}", hint=f"cast one of them, e.g. to {x.dtype}")
    return value if value.dtype is x.dtype else cast(value, x.dtype)


def _broadcast(value: Any, shape: Shape) -> Any:
    """A value that broadcasts to a shape; leading axes of extent 1 that are too many go."""
    extra = len(value.shape) - len(shape)
    if extra > 0 and all(n == 1 for n in value.shape[:extra]):
        value = reshaped(value, value.shape[extra:])
    behind = shape[len(shape) - len(value.shape) :]
    if len(value.shape) > len(shape) or any(n not in (1, m) for n, m in zip(value.shape, behind, strict=True)):
        raise ShapeError(
            f"a value of shape {list(value.shape)} does not fill the {list(shape)} elements of the index",
            hint="give a value of that shape, one that broadcasts to it, or another index",
        )
    return value


def _at(shape: Shape, index: Any, value: Shape, **attrs: Any) -> Sample:
    return Sample((Draw(shape), index, Draw(value)), attrs)


@composite(
    group=GROUP, reference=_assigned, dtypes=_ANY, method=False, scheme=("tensor-set!",),
    samples=(
        _at((2, 3), 1, (3,)), _at((2, 3), (0, -1), ()), _at((2, 3), (..., slice(2, 0, -1)), (2, 2)),
        _at((2, 3), (slice(None), None), (2, 1, 3)), _at((2, 3), (_MASK,), (1,)), _at((2, 3), ([0, 1], [2, -1]), (2,)),
        _at((2, 3), (slice(None), [0, 2, 2]), (2, 3)), _at((5, 2), slice(1, None, 3), (2, 2)), _at((), (), ()),
        _at((2, 3), (slice(5, 1), 0), ()), _at((2, 3, 2), ([0], slice(None), [[1], [0]]), (2, 1, 3)),
    ),
)  # fmt: skip
def setitem(x: Value, index: Any, value: Value) -> Any:
    """x with a value at an index, as x[index] = value would leave it; x itself stays.

    Where an index names a place several times the last value stays, and only it has a derivative. The value becomes
    of x's dtype; one of a higher kind (a float for integers) is an error.
    """
    return assigned(x, index, value, False)


def _index_put(x: Any, indices: Any, values: Any, accumulate: bool = False) -> Any:
    result = np.array(x, copy=True)
    for place in np.ndindex(np.shape(np.empty(x.shape)[indices])):
        one = tuple(np.indices(x.shape)[k][indices][place] for k in range(x.ndim))
        update = np.broadcast_to(values, np.empty(x.shape)[indices].shape)[place]
        result[one] = result[one] + update if accumulate else update
    return result


@composite(
    group=GROUP, reference=_index_put, dtypes=("int", "float", "complex"),
    samples=(
        _at((2, 3), ([0, 1], [2, -1]), (2,)), _at((2, 3), ([0, 1, 0, 0],), (4, 1), accumulate=True),
        _at((2, 3), (0,), (3,), accumulate=True), _at((2, 3), ([0, 0],), (2, 1)),
    ),
)  # fmt: skip
def index_put(x: Value, indices: Any, values: Value, accumulate: bool = False) -> Any:
    """x with values at x[indices], or with accumulate added there once for each time that a place is named."""
    return assigned(x, tuple(indices), values, bool(accumulate))
