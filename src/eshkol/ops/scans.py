"""Scans along an axis: sums, products and extremes of all elements up to each, and linear recurrences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.indexing import take_along, together
from eshkol.ops.movement import expanded, reshape
from eshkol.ops.padding import pad
from eshkol.ops.reductions import wide_array
from eshkol.ops.row import (
    TABLE,
    Aval,
    Draw,
    HasAval,
    Jvp,
    Linear,
    NoDerivative,
    Op,
    Push,
    Shape,
    Value,
    composite,
    each_read,
    primitive,
    sample,
)

GROUP = "scans"
_ANY = ("bool", "int", "float", "complex")
_REAL = ("bool", "int", "float")


class Scan(NamedTuple):
    """Along which axis, and whether from its end."""

    axis: int
    reverse: bool


def _scan(x: Value, axis: int | None, reverse: bool = False) -> Scan:
    if axis is None:
        if x.ndim != 1:
            raise ShapeError(f"give an axis: shape {list(x.shape)} has {x.ndim}", hint="or flatten the tensor first")
        axis = 0
    return Scan(shapes.axis(axis, x.ndim), bool(reverse))


def _infer_sum(a: Scan, x: HasAval) -> Aval:
    return Aval(x.shape, dtypes.summed(x.dtype))


def _reference(function: Callable[..., Any]) -> Callable[..., Any]:
    def reference(a: Scan, x: Any) -> Any:
        x = wide_array(x)
        x = x.astype(dtypes.summed(dtypes.of(x.dtype)).numpy)
        return np.flip(function(np.flip(x, a.axis), a.axis), a.axis) if a.reverse else function(x, a.axis)

    return reference


def _batch(name: str) -> Callable[..., Any]:
    def batch(a: Scan, inputs: Any, batched: Any) -> Any:
        return inputs[0].apply(TABLE[name], inputs, Scan(a.axis + 1, a.reverse))

    return batch


def _rows(a: Scan, x: HasAval) -> Shape:
    return shapes.without(x.shape, (a.axis,))


def _push(instruction: str, first: float) -> Push:
    """Each row is one running total; of 16-bit floats it is kept in 32 bits. -0.0 adds nothing, not even to -0.0."""

    def code(e: Any, a: Scan, row: Any, write: Any, x: Any) -> Any:
        dtype = dtypes.summed(x.dtype)
        working = dtypes.float32 if dtype.is_float and dtype.bits == 16 else dtype
        extent, places = x.shape[a.axis], list(row)

        def step(j: Any, state: Any) -> Any:
            index = [*places[: a.axis], extent - 1 - j if a.reverse else j, *places[a.axis :]]
            total = e.op(instruction, state[0], e.convert(x(index), working))
            write(index, e.convert(total, dtype))
            return [total]

        e.loop(extent, [e.constant(first, working)], step)

    return Push(_rows, code)


_samples = (
    sample((4,)), sample((2, 3), axis=1), sample((3, 2, 2), axis=0), sample((2, 5), axis=-1, reverse=True),
    sample((0, 2), axis=0), sample((2, 0), axis=0),
)  # fmt: skip


def _transpose_cumsum(a: Scan, ct: Any, k: int, x: HasAval) -> Any:
    return cumsum(ct, a.axis, not a.reverse)


@primitive(
    group=GROUP, infer=_infer_sum, reference=_reference(np.cumsum), derivative=Linear(_transpose_cumsum),
    batch=_batch("cumsum"), lower=_push("ADD", -0.0), of_complex=True, dtypes=_ANY, samples=_samples, work=each_read,
)  # fmt: skip
def cumsum(x: Value, axis: int | None = None, reverse: bool = False) -> Scan:
    """The sum of all elements up to each along an axis (from the end on, if reverse).

    Bools and integers are summed in 64 bits. The axis may be left out if there is only one.
    """
    return _scan(x, axis, reverse)


def _shifted(a: Scan, x: Value, places: int, value: int) -> Any:
    """x moved along the axis of a scan, in its direction, with a number where nothing came from."""
    widths = [(0, 0)] * x.ndim
    widths[a.axis] = (-places, places) if a.reverse else (places, -places)
    return pad(x, tuple(widths), value=value)


# --- linear recurrences ---------------------------------------------------------------------------


def _infer_recurrence(a: Scan, gains: HasAval, x: HasAval) -> Aval:
    if gains.shape != x.shape:
        raise ShapeError(f"gains of shape {list(gains.shape)} are not one for each element of shape {list(x.shape)}")
    return Aval(x.shape, x.dtype)


def _reference_recurrence(a: Scan, gains: Any, x: Any) -> Any:
    _infer_recurrence(a, gains, x)
    gains, x = (np.moveaxis(wide_array(y), a.axis, 0) for y in (gains, x))
    if a.reverse:
        gains, x = gains[::-1], x[::-1]
    result = np.array(x, copy=True)
    for k in range(1, len(x)):
        result[k] += gains[k] * result[k - 1]
    return np.moveaxis(result[::-1] if a.reverse else result, 0, a.axis)


def _push_recurrence(e: Any, a: Scan, row: Any, write: Any, gains: Any, x: Any) -> None:
    """Each row one step after another; of 16-bit floats what is carried on is kept in 32 bits."""
    working = dtypes.float32 if x.dtype.bits == 16 else x.dtype
    extent, places = x.shape[a.axis], list(row)

    def step(j: Any, state: Any) -> Any:
        index = [*places[: a.axis], extent - 1 - j if a.reverse else j, *places[a.axis :]]
        new = e.convert(x(index), working)
        on = e.op("ADD", e.op("MUL", e.convert(gains(index), working), state[0]), new)
        total = e.select(e.compare("EQ", j, 0), new, on)  # not 0 · gain + new: a gain may be infinite
        write(index, e.convert(total, x.dtype))
        return [total]

    e.loop(extent, [e.constant(0, working)], step)


def _jvp_recurrence(a: Scan, r: Any, inputs: Any, tangents: Any) -> Any:
    (gains, _), (change, added) = inputs, tangents
    if change is not None:
        moved = change * _shifted(a, r, 1, 0)
        added = moved if added is None else added + moved
    return recurrence(gains, added, *a)


def _transpose_recurrence(a: Scan, ct: Any, linear: Any, inputs: Any) -> Any:
    back = Scan(a.axis, not a.reverse)
    return None, recurrence(_shifted(back, inputs[0], 1, 0), ct, *back)


def _batch_recurrence(a: Scan, inputs: Any, batched: Any) -> Any:
    return recurrence(*together(inputs, batched), a.axis + 1, a.reverse)


def doubled(a: Scan, gains: Any, x: Any) -> Any:
    """A recurrence as steps over ever longer stretches, each of which is of all elements at once."""
    places = 1
    while places < x.shape[a.axis]:
        x = x + gains * _shifted(a, x, places, 0)
        gains = gains * _shifted(a, gains, places, 0)
        places *= 2
    return x


_recurrences = (
    sample((4,), (4,)), sample((2, 3), (2, 3), axis=1), sample((3, 2, 2), (3, 2, 2), axis=0),
    sample((2, 5), (2, 5), axis=-1, reverse=True), sample((0, 2), (0, 2), axis=0), sample((2, 0), (2, 0), axis=0),
)  # fmt: skip


@primitive(
    group=GROUP, infer=_infer_recurrence, reference=_reference_recurrence, promote="common", method=False,
    derivative=Jvp(_jvp_recurrence, _transpose_recurrence), batch=_batch_recurrence, of_complex=True,
    lower=Push(lambda a, gains, x: _rows(a, x), _push_recurrence), dtypes=("float", "complex"), samples=_recurrences,
    work=each_read,
)  # fmt: skip
def recurrence(gains: Value, x: Value, axis: int | None = None, reverse: bool = False) -> Scan:
    """y of y[k] = gains[k] · y[k - 1] + x[k] along an axis; the first is x's. `linear_recurrence` broadcasts."""
    return _scan(x, axis, reverse)


def _linear_recurrence(gains: Any, x: Any, initial: Any = None, axis: int = 0, reverse: bool = False) -> Any:
    shape = np.broadcast_shapes(gains.shape, x.shape)
    gains, x = (np.moveaxis(np.broadcast_to(wide_array(y), shape), axis, 0) for y in (gains, x))
    before = np.zeros(x.shape[1:], x.dtype) if initial is None else initial
    result = np.empty(x.shape, np.result_type(gains, x))
    for k in range(len(x))[:: -1 if reverse else 1]:
        before = result[k] = gains[k] * before + x[k]
    return np.moveaxis(result, 0, axis)


@composite(
    group=GROUP, reference=_linear_recurrence, method=False, dtypes=("float", "complex"),
    samples=(
        *(_recurrences[k] for k in (1, 3)), sample((), (5,)), sample((3, 1), (3, 4), axis=1),
        sample((3, 2), (3, 2), (2,)), sample((3, 2), (3, 2), (2,), reverse=True),
    ),
)  # fmt: skip
def linear_recurrence(
    gains: Value, x: Value, initial: Value | None = None, axis: int = 0, reverse: bool = False
) -> Any:
    """y of y[k] = gains[k] · y[k - 1] + x[k] along an axis (from its end on, if reverse), from `initial` or 0 on.

    Running means (one gain for all), filters of first order, and states of linear networks are such. Gains and x
    broadcast; the derivative takes as long as the recurrence.
    """
    shape = shapes.broadcast(gains.shape, x.shape)
    wide = [y if y.shape == shape else expanded(y, shape) for y in (gains, x)]
    found = recurrence(*wide, axis, reverse)
    if initial is None:
        return found
    along = shapes.axis(axis, len(shape))
    before = reshape(expanded(initial, shapes.without(shape, (along,))), (*shape[:along], 1, *shape[along + 1 :]))
    return found + cumprod(wide[0], along, reverse) * before


def _jvp_cumprod(a: Scan, r: Any, inputs: Any, tangents: Any) -> Any:
    """What is before an element is multiplied by its change, and goes on from there: zeros are no exception."""
    return recurrence(inputs[0], tangents[0] * _shifted(a, r, 1, 1), *a)


# --- products -------------------------------------------------------------------------------------


@primitive(
    group=GROUP, infer=_infer_sum, reference=_reference(np.cumprod), derivative=Jvp(_jvp_cumprod),
    batch=_batch("cumprod"), lower=_push("MUL", 1), of_complex=True, dtypes=_ANY, work=each_read,
    samples=(*_samples, sample(Draw((5,), make=lambda rng: [1.5, 0.0, 2.0, 0.0, 3.0]))),
)  # fmt: skip
def cumprod(x: Value, axis: int | None = None, reverse: bool = False) -> Scan:
    """The product of all elements up to each along an axis; the derivative is right at zeros too."""
    return _scan(x, axis, reverse)


# --- extremes -------------------------------------------------------------------------------------


def _infer_place(a: Scan, x: HasAval) -> Aval:
    if x.dtype.is_complex:
        raise DTypeError(f"{x.dtype} numbers have no order", hint="compare abs(x), x.real or x.imag")
    return Aval(x.shape, dtypes.int64)


def _reference_place(extreme: Any) -> Callable[..., Any]:
    def reference(a: Scan, x: Any) -> Any:
        x = wide_array(x)
        best = extreme.accumulate(x, axis=a.axis)
        new = (x == best) | (x != x)  # the extreme is this element, or NaN
        number = np.arange(x.shape[a.axis]).reshape([-1 if k == a.axis else 1 for k in range(x.ndim)])
        return np.maximum.accumulate(np.where(new, number, 0), axis=a.axis)

    return reference


def _push_place(condition: str) -> Push:
    def code(e: Any, a: Scan, row: Any, write: Any, x: Any) -> Any:
        places = list(row)

        def step(j: Any, state: Any) -> Any:
            index = [*places[: a.axis], j, *places[a.axis :]]
            value = x(index)
            better = e.compare(condition, value, state[0])
            if value.dtype.is_float:
                better = e.op("OR", better, e.compare("NE", value, value))
            state = [e.select(better, value, state[0]), e.select(better, e.convert(j, dtypes.int64), state[1])]
            write(index, state[1])
            return state

        if x.shape[a.axis]:
            first = x([*places[: a.axis], 0, *places[a.axis :]])
            e.loop(x.shape[a.axis], [first, e.constant(0, dtypes.int64)], step)

    return Push(_rows, code)


def _extreme_place(name: str, condition: str, extreme: Any) -> dict[str, Any]:
    return {
        "group": GROUP, "infer": _infer_place, "reference": _reference_place(extreme), "dtypes": _REAL,
        "derivative": NoDerivative("a place does not vary smoothly"), "batch": _batch(name), "method": False,
        "lower": _push_place(condition), "samples": tuple(s for s in _samples if not s.attrs.get("reverse")),
    }  # fmt: skip


@primitive(**_extreme_place("cumargmax", "GE", np.maximum))
def cumargmax(x: Value, axis: int | None = None) -> Scan:
    """Where the greatest of all elements up to each along an axis is: the last of equal ones, or of NaNs."""
    return _scan(x, axis)


@primitive(**_extreme_place("cumargmin", "LE", np.minimum))
def cumargmin(x: Value, axis: int | None = None) -> Scan:
    """Where the least of all elements up to each along an axis is: the last of equal ones, or of NaNs."""
    return _scan(x, axis)


def _reference_extreme(extreme: Any) -> Callable[..., Any]:
    places = _reference_place(extreme)

    def reference(x: Any, axis: int | None = None) -> Any:
        axis = 0 if axis is None else axis
        return extreme.accumulate(wide_array(x), axis=axis), places(Scan(axis % x.ndim, False), x)

    return reference


def _with_places(x: Value, axis: int | None, places: Op) -> Any:
    found = places(x, axis)
    return take_along(x, found, 0 if axis is None else axis), found


@composite(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, reference=_reference_extreme(np.maximum), dtypes=_REAL,
    samples=tuple(s for s in _samples if not s.attrs.get("reverse")),
)  # fmt: skip
def cummax(x: Value, axis: int | None = None) -> Any:
    """The greatest of all elements up to each along an axis, and where it is (the last of equal ones; NaN stays).

    The tangent is that of the element at that place.
    """
    return _with_places(x, axis, cumargmax)


@composite(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, reference=_reference_extreme(np.minimum), dtypes=_REAL,
    samples=tuple(s for s in _samples if not s.attrs.get("reverse")),
)  # fmt: skip
def cummin(x: Value, axis: int | None = None) -> Any:
    """The least of all elements up to each along an axis, and where it is (the last of equal ones; NaN stays).

    The tangent is that of the element at that place.
    """
    return _with_places(x, axis, cumargmin)
