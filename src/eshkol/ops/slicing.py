"""Ops that take some elements, or put others around them: slice and pad.

Both are linear, and the transpose of each is said with the other; that of a padding sums what the padding itself was
given. `padding.py` has padding as users have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import dtypes
from eshkol.ops.elementwise import where
from eshkol.ops.movement import GROUP, expanded, reshape
from eshkol.ops.reductions import sum_
from eshkol.ops.row import Aval, HasAval, Linear, Pull, Shape, Value, primitive, sample
from eshkol.ops.structural import number
from eshkol.support.extents import bounds_of, length_of

_ANY = ("bool", "int", "float", "complex")


class Slice(NamedTuple):
    """For each axis where it starts, where it stops, and how far the steps are (at least 1)."""

    start: tuple[int, ...]
    stop: tuple[int, ...]
    step: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        return tuple(length_of(*bounds) for bounds in zip(*self, strict=True))


def _slice(a: Slice, x: Any) -> Any:
    return x[tuple(slice(*bounds) for bounds in zip(*a, strict=True))]


def _transpose_slice(a: Slice, ct: Any, k: int, x: HasAval) -> Any:
    taken = zip(a.start, a.step, a.shape, x.shape, strict=True)
    high = tuple(n - start - ((m - 1) * step + 1 if m else 0) for start, step, m, n in taken)
    return pad_constant(ct, number(ct, 0), a.start, high, tuple(step - 1 for step in a.step))


def _batch_slice(a: Slice, inputs: Any, batched: Any) -> Any:
    return slice_(inputs[0], (0, *a.start), (inputs[0].shape[0], *a.stop), (1, *a.step))


def listed(given: Any, what: str) -> list[Any]:
    """What a user gives for several axes, as a list; an error where it is none."""
    try:
        return list(given)
    except TypeError:
        raise ShapeError(f"{what} is made of integers, not {given!r}") from None


def _per_axis(given: Any, ndim: int, otherwise: Any, what: str) -> list[Any]:
    """One entry per axis: an integer is for the first axis, and what is missing at the end is as by default."""
    found = [] if given is None else [given] if isinstance(given, int) else listed(given, what)
    if len(found) > ndim:
        raise ShapeError(f"{what} has {len(found)} entries for {ndim} axes")
    for n in found:
        if n is not None and (isinstance(n, bool) or not isinstance(n, int)):
            raise ShapeError(f"{what} is made of integers, not {n!r}")
    return [otherwise if n is None else n for n in found + [None] * (ndim - len(found))]


@primitive(
    windows=True,
    group=GROUP, infer=lambda a, x: Aval(a.shape, x.dtype), reference=_slice, derivative=Linear(_transpose_slice),
    batch=_batch_slice, dtypes=_ANY, scheme=("tensor-slice",), moves=True,
    lower=Pull(lambda e, a, i, x: x([i[k] * a.step[k] + a.start[k] for k in range(len(a.start))])), of_complex=True,
    samples=(
        sample((4, 5), start=(1, 0), stop=(3, 5)), sample((5, 2), start=0, stop=5, step=2), sample((), start=()),
        sample((4, 7), start=(-3, 1), stop=(None, 6), step=(1, 3)), sample((3, 2), start=(2, 0), stop=(2, 9)),
    ),
)  # fmt: skip
def slice_(x: Value, start: Any = None, stop: Any = None, step: Any = None) -> Slice:
    """The elements from start on and before stop, every step-th, along each axis; clipped as Python's slices are."""
    starts, stops = (_per_axis(given, x.ndim, None, "a slice") for given in (start, stop))
    steps = _per_axis(step, x.ndim, 1, "a step")
    if any(n < 1 for n in steps):
        raise ShapeError(f"steps must be positive, not {steps}", hint="flip the result, or index with x[::-1]")
    bounds = [bounds_of(slice(*b), n) for b, n in zip(zip(starts, stops, steps, strict=True), x.shape, strict=True)]
    return Slice(tuple(b[0] for b in bounds), tuple(max(b[0], b[1]) for b in bounds), tuple(steps))


class Pad(NamedTuple):
    """For each axis: elements put before, behind, and between any two; before and behind may be negative."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    interior: tuple[int, ...]


def _spread(a: Pad, shape: Shape) -> Shape:
    """The extents once elements are put in between."""
    return tuple(n + (n - 1) * gap if n else 0 for n, gap in zip(shape, a.interior, strict=True))


def _infer_pad(a: Pad, x: HasAval, value: HasAval) -> Aval:
    if value.shape != ():
        raise ShapeError(f"the padding must be one number, not of shape {list(value.shape)}")
    shape = tuple(n + low + high for n, low, high in zip(_spread(a, x.shape), a.low, a.high, strict=True))
    if any(n < 0 for n in shape):
        raise ShapeError(
            f"widths {list(zip(a.low, a.high, strict=True))} cut more off shape {list(x.shape)} than it has"
        )
    return Aval(shape, x.dtype)


def _pad(a: Pad, x: Any, value: Any) -> Any:
    result = np.full(_infer_pad(a, x, value).shape, value, x.dtype)
    into, outof = [], []
    for n, extent, low, gap in zip(x.shape, result.shape, a.low, a.interior, strict=True):
        first = max(0, -(low // (gap + 1)))  # the first element that is not cut off, and the one after the last
        last = max(first, min(n, (extent - 1 - low) // (gap + 1) + 1))
        outof.append(slice(first, last))
        into.append(slice(first * (gap + 1) + low, max(0, (last - 1) * (gap + 1) + low + 1), gap + 1))
    if all(s.stop > s.start for s in outof):
        result[tuple(into)] = x[tuple(outof)]
    return result


def _pull_pad(e: Any, a: Pad, i: Any, x: Any, value: Any) -> Any:
    index, valid = [], None
    for k, spread in enumerate(_spread(a, x.shape)):
        if not (a.low[k] or a.high[k] or a.interior[k]):
            index.append(i[k])
            continue
        place = i[k] - a.low[k]
        checks = [e.compare("GE", i[k], a.low[k])] if a.low[k] > 0 else []
        if a.high[k] > 0:
            checks.append(e.compare("LT", i[k], a.low[k] + spread))
        if a.interior[k]:
            checks.append(e.compare("EQ", place % (a.interior[k] + 1), e.constant(0, dtypes.int64)))
        for check in checks:
            valid = check if valid is None else e.both(valid, check)
        index.append(place // (a.interior[k] + 1) if a.interior[k] else place)
    return x(index) if valid is None else e.read_if(valid, x, index, value([]))


def padding(a: Pad, x: Value) -> Any:
    """Whether an element of the padded result is padding."""
    return pad_constant(expanded(number(x, False, dtypes.bool_), x.shape), number(x, True, dtypes.bool_), *a)


def _transpose_pad(a: Pad, ct: Any, k: int, x: Any, value: Any) -> Any:
    if k == 1:
        return sum_(where(padding(a, x), ct, 0))
    none = (0,) * len(a.low)
    back = pad_constant(ct, number(ct, 0), tuple(-n for n in a.low), tuple(-n for n in a.high), none)
    return slice_(back, none, back.shape, tuple(gap + 1 for gap in a.interior))


def _batch_pad(a: Pad, inputs: Any, batched: Any) -> Any:
    x, value = inputs
    if not batched[1]:
        return pad_constant(x, value, *((0, *widths) for widths in a))
    inner = expanded(number(x, 0), x.shape[1:]) if batched[0] else x  # only its shape is looked at
    mask = padding(a, inner)
    filled = _batch_pad(a, (x, number(x, 0)), (True, False)) if batched[0] else pad_constant(x, number(x, 0), *a)
    return where(mask, reshape(value, (value.shape[0], *(1,) * mask.ndim)), filled)


@primitive(
    group=GROUP, infer=_infer_pad, reference=_pad, derivative=Linear(_transpose_pad, joint=True), batch=_batch_pad,
    promote="common", dtypes=_ANY, lower=Pull(_pull_pad), of_complex=True, method=False,
    samples=(
        sample((2, 3), (), low=(1, 0), high=(0, 2)), sample((2, 3), (), low=(-1, 1), high=(0, -2), interior=(0, 1)),
        sample((0, 2), (), low=(1, 1), high=(1, 0), interior=(2, 0)), sample((), (), low=(), high=()),
        sample((4,), (), low=(-3,), high=(3,), interior=(2,)), sample((2,), (), low=(-5,), high=(6,)),
    ),
)  # fmt: skip
def pad_constant(
    x: Value, value: Value, low: Sequence[int], high: Sequence[int], interior: Sequence[int] | None = None
) -> Pad:
    """x with one value before, behind and (interior) between its elements along each axis; negative widths cut off."""
    attrs = Pad(*(tuple(given) for given in (low, high, interior or (0,) * len(low))))
    for widths in attrs:
        if len(widths) != x.ndim or any(isinstance(n, bool) or not isinstance(n, int) for n in widths):
            raise ShapeError(f"{list(widths)} are not integers for each of the {x.ndim} axes of shape {list(x.shape)}")
    if any(gap < 0 for gap in attrs.interior):
        raise ShapeError(f"interior padding cannot be negative: {list(attrs.interior)}", hint="slice with a step")
    return attrs
