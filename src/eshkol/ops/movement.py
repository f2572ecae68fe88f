"""Ops that move elements without computing: reshape, permute, expand, slice, pad, flip.

All are linear; the transpose of each is said with the others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.row import Aval, HasAval, Linear, Pull, Shape, Value, composite, primitive, sample
from eshkol.ops.shapes import Axes, broadcast
from eshkol.ops.structural import CONST, Constant

GROUP = "shape"
_ANY = ("bool", "int", "float", "complex")


class ToShape(NamedTuple):
    shape: Shape


def _infer_reshape(a: ToShape, x: HasAval) -> Aval:
    if shapes.count(a.shape) != shapes.count(x.shape):
        raise ShapeError(
            f"{shapes.count(x.shape)} elements of shape {list(x.shape)} do not fill shape {list(a.shape)}",
            hint="one extent may be -1: it is computed from the others",
        )
    return Aval(a.shape, x.dtype)


def _pull_reshape(e: Any, a: ToShape, i: Any, x: Any) -> Any:
    return x(e.unravel(e.ravel(i, a.shape), x.shape))


def _transpose_reshape(a: ToShape, ct: Any, k: int, x: HasAval) -> Any:
    return reshape(ct, x.shape)


def _batch_reshape(a: ToShape, inputs: Any, batched: Any) -> Any:
    return reshape(inputs[0], (inputs[0].shape[0], *a.shape))


@primitive(
    group=GROUP, windows=True, infer=_infer_reshape, reference=lambda a, x: np.reshape(x, a.shape), dtypes=_ANY,
    derivative=Linear(_transpose_reshape), batch=_batch_reshape, lower=Pull(_pull_reshape), scheme=("reshape",),
    samples=(
        sample((2, 6), shape=(3, 4)), sample((2, 6), shape=(-1, 2)), sample((), shape=(1, 1)),
        sample((0, 3), shape=(3, 0)),
    ),
)  # fmt: skip
def reshape(x: Value, shape: int | Sequence[int]) -> ToShape:
    """The elements in the same order, under another shape; one extent may be -1."""
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    if wanted.count(-1) > 1:
        raise ShapeError(f"only one extent may be -1, not as in {list(wanted)}")
    if -1 in wanted:
        rest = shapes.count(tuple(n for n in wanted if n != -1))
        if rest == 0 or x.size % rest:
            raise ShapeError(f"{x.size} elements of shape {list(x.shape)} do not fill shape {list(wanted)}")
        wanted = tuple(x.size // rest if n == -1 else n for n in wanted)
    return ToShape(shapes.extents(wanted))


def _infer_expand(a: ToShape, x: HasAval) -> Aval:
    if len(x.shape) > len(a.shape) or broadcast(x.shape, a.shape) != a.shape:
        raise ShapeError(f"shape {list(x.shape)} does not broadcast to {list(a.shape)}")
    return Aval(a.shape, x.dtype)


def _batch_expand(a: ToShape, inputs: Any, batched: Any) -> Any:
    (x,) = inputs
    aligned = reshape(x, (x.shape[0], *(1,) * (len(a.shape) - x.ndim + 1), *x.shape[1:]))
    return expand(aligned, (x.shape[0], *a.shape))


def _transpose_expand(a: ToShape, ct: Any, k: int, x: HasAval) -> Any:
    return ct  # what broadcasts is summed wherever cotangents arrive


@primitive(
    group=GROUP, windows=True, infer=_infer_expand, reference=lambda a, x: np.broadcast_to(x, a.shape), dtypes=_ANY,
    moves=True, derivative=Linear(_transpose_expand), batch=_batch_expand, lower=Pull(lambda e, a, i, x: x(i)),
    aliases=("broadcast_to",), scheme=("expand", "broadcast-to"),
    samples=(
        sample((2, 1), shape=(2, 3)), sample((3,), shape=(2, 3)), sample((), shape=(2,)), sample((1,), shape=(0,)),
    ),
)  # fmt: skip
def expand(x: Value, shape: int | Sequence[int]) -> ToShape:
    """x repeated along axes of extent 1, and along new axes in front, as broadcasting does; -1 keeps an extent."""
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    behind = len(wanted) - x.ndim
    kept = tuple(x.shape[k - behind] if n == -1 and k >= behind else n for k, n in enumerate(wanted))
    return ToShape(shapes.extents(kept))


class Permutation(NamedTuple):
    axes: tuple[int, ...]


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(k) for k in np.argsort(axes))


def _transpose_permute(a: Permutation, ct: Any, k: int, x: HasAval) -> Any:
    return permute(ct, _inverse(a.axes))


def _batch_permute(a: Permutation, inputs: Any, batched: Any) -> Any:
    return permute(inputs[0], (0, *(k + 1 for k in a.axes)))


@primitive(
    group=GROUP, windows=True, infer=lambda a, x: Aval(tuple(x.shape[k] for k in a.axes), x.dtype), dtypes=_ANY,
    reference=lambda a, x: np.transpose(x, a.axes), derivative=Linear(_transpose_permute), batch=_batch_permute,
    moves=True,
    lower=Pull(lambda e, a, i, x: x([i[k] for k in _inverse(a.axes)])),
    samples=(
        sample((2, 3, 4), axes=(2, 0, 1)), sample((2, 3), axes=(1, 0)), sample((0, 3), axes=(1, 0)),
        sample((), axes=()),
    ),
)  # fmt: skip
def permute(x: Value, axes: Sequence[int]) -> Permutation:
    """The axes in another order."""
    found = tuple(shapes.axis(k, x.ndim) for k in ([axes] if isinstance(axes, int) else axes))
    if sorted(found) != list(range(x.ndim)):
        raise ShapeError(f"{list(found)} does not name each of the {x.ndim} axes once")
    return Permutation(found)


# --- slice, pad, flip -----------------------------------------------------------------------------


class Slice(NamedTuple):
    """For each axis where it starts, where it stops, and how far the steps are (at least 1)."""

    start: tuple[int, ...]
    stop: tuple[int, ...]
    step: tuple[int, ...]

    @property
    def shape(self) -> Shape:
        return tuple(len(range(*bounds)) for bounds in zip(*self, strict=True))


def _slice(a: Slice, x: Any) -> Any:
    return x[tuple(slice(*bounds) for bounds in zip(*a, strict=True))]


def _transpose_slice(a: Slice, ct: Any, k: int, x: HasAval) -> Any:
    taken = zip(a.start, a.step, a.shape, x.shape, strict=True)
    high = tuple(n - start - ((m - 1) * step + 1 if m else 0) for start, step, m, n in taken)
    return pad_constant(ct, number(ct, 0), a.start, high, tuple(step - 1 for step in a.step))


def _batch_slice(a: Slice, inputs: Any, batched: Any) -> Any:
    return slice_(inputs[0], (0, *a.start), (inputs[0].shape[0], *a.stop), (1, *a.step))


def _listed(given: Any, what: str) -> list[Any]:
    try:
        return list(given)
    except TypeError:
        raise ShapeError(f"{what} is made of integers, not {given!r}") from None


def _per_axis(given: Any, ndim: int, otherwise: Any, what: str) -> list[Any]:
    """One entry per axis: an integer is for the first axis, and what is missing at the end is as by default."""
    found = [] if given is None else [given] if isinstance(given, int) else _listed(given, what)
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
    lower=Pull(lambda e, a, i, x: x([i[k] * a.step[k] + a.start[k] for k in range(len(a.start))])),
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
    bounds = [slice(*b).indices(n) for b, n in zip(zip(starts, stops, steps, strict=True), x.shape, strict=True)]
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
    from eshkol.ops.elementwise import where
    from eshkol.ops.reductions import sum_

    if k == 1:
        return sum_(where(padding(a, x), ct, 0))
    none = (0,) * len(a.low)
    back = pad_constant(ct, number(ct, 0), tuple(-n for n in a.low), tuple(-n for n in a.high), none)
    return slice_(back, none, back.shape, tuple(gap + 1 for gap in a.interior))


def _batch_pad(a: Pad, inputs: Any, batched: Any) -> Any:
    from eshkol.ops.elementwise import where

    x, value = inputs
    if not batched[1]:
        return pad_constant(x, value, *((0, *widths) for widths in a))
    inner = expanded(number(x, 0), x.shape[1:]) if batched[0] else x  # only its shape is looked at
    mask = padding(a, inner)
    filled = _batch_pad(a, (x, number(x, 0)), (True, False)) if batched[0] else pad_constant(x, number(x, 0), *a)
    return where(mask, reshape(value, (value.shape[0], *(1,) * mask.ndim)), filled)


def number(like: Value, number: Any, dtype: Any = None) -> Any:
    """A number as a value; `creation.full` stands on this module."""
    return like.apply(CONST, (), Constant.of(number, dtype or like.dtype))


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    """x under a shape, itself where it has that shape already."""
    return reshape(x, shape) if x.shape != tuple(shape) else x


def expanded(x: Any, shape: Shape) -> Any:
    """x under a shape to which it broadcasts, itself where it has that shape already."""
    return expand(x, shape) if x.shape != shape else x


@primitive(
    group=GROUP, infer=_infer_pad, reference=_pad, derivative=Linear(_transpose_pad, joint=True), batch=_batch_pad,
    promote="common", dtypes=_ANY, lower=Pull(_pull_pad), method=False,
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


class Flip(NamedTuple):
    axes: tuple[int, ...]


def _transpose_flip(a: Flip, ct: Any, k: int, x: HasAval) -> Any:
    return flip(ct, a.axes)


def _batch_flip(a: Flip, inputs: Any, batched: Any) -> Any:
    return flip(inputs[0], tuple(k + 1 for k in a.axes))


@primitive(
    windows=True,
    group=GROUP, infer=lambda a, x: Aval(x.shape, x.dtype), reference=lambda a, x: np.flip(x, a.axes), dtypes=_ANY,
    derivative=Linear(_transpose_flip), batch=_batch_flip, moves=True,
    lower=Pull(lambda e, a, i, x: x([x.shape[k] - 1 - i[k] if k in a.axes else i[k] for k in range(len(x.shape))])),
    samples=(sample((2, 3)), sample((2, 3), axis=1), sample((2, 3, 2), axis=(0, -1)), sample(()), sample((0, 2))),
)  # fmt: skip
def flip(x: Value, axis: Axes = None) -> Flip:
    """The elements in reverse order along axes (all of them by default)."""
    return Flip(shapes.axes(axis, x.ndim))


# --- padding as users have it ---------------------------------------------------------------------

_BORDERS = {"edge": "replicate", "wrap": "circular"}  # NumPy's names of PyTorch's modes
_NUMPY_BORDERS: dict[str, Any] = {"replicate": "edge", "circular": "wrap"}


def _widths(given: Any, ndim: int) -> list[tuple[int, int]]:
    """Widths per axis, from an integer for all, a pair for all, or a pair for each."""
    if isinstance(given, int):
        return [(given, given)] * ndim
    found = _listed(given, "padding")
    if len(found) == 2 and all(isinstance(n, int) for n in found):
        return [(found[0], found[1])] * ndim
    if len(found) != ndim or any(not isinstance(pair, tuple | list) or len(pair) != 2 for pair in found):
        raise ShapeError(
            f"{given} does not give widths for {ndim} axes",
            hint="give ((before, after), ...) for each axis, or one pair",
        )
    return [(before, after) for before, after in found]


def _pad_reference(x: Any, widths: Any, value: Any = 0, mode: Any = "constant", interior: Any = 0) -> Any:
    pairs = _widths(widths, x.ndim)
    if mode != "constant":
        return np.pad(x, pairs, _NUMPY_BORDERS.get(mode, mode))
    if x.ndim == 0:
        return x
    gaps = [interior] * x.ndim if isinstance(interior, int) else interior
    for axis, gap in enumerate(gaps):
        places = np.repeat(np.arange(1, x.shape[axis]), gap)
        x = np.insert(x, places, np.asarray(value).astype(x.dtype), axis=axis)
    x = np.pad(x, [(max(b, 0), max(a, 0)) for b, a in pairs], constant_values=np.asarray(value).astype(x.dtype))
    return x[tuple(slice(max(-b, 0), n + min(a, 0)) for (b, a), n in zip(pairs, x.shape, strict=True))]


def _border(x: Any, axis: int, before: int, after: int, mode: str) -> Any:
    """x with what stands at its ends once more on both sides, mirrored, repeated or wrapped around."""
    n = x.shape[axis]
    most = {"reflect": n - 1, "circular": n, "replicate": before + after}[mode]
    if before < 0 or after < 0 or max(before, after) > most or n == 0:
        raise ShapeError(
            f"widths ({before}, {after}) do not suit mode '{mode}' and an extent of {n}",
            hint=f"in this mode they are between 0 and {most}" if n and mode != "replicate" else None,
        )
    from eshkol.ops.joining import concatenate

    def part(start: int, stop: int) -> Any:
        bounds = ((0,) * axis + (start,), (None,) * axis + (stop,))
        return slice_(x, *bounds)

    def repeated(place: int, times: int) -> Any:
        return expand(part(place, place + 1), (*x.shape[:axis], times, *x.shape[axis + 1 :]))

    parts = {
        "reflect": lambda: (flip(part(1, before + 1), axis), flip(part(n - 1 - after, n - 1), axis)),
        "circular": lambda: (part(n - before, n), part(0, after)),
        "replicate": lambda: (repeated(0, before), repeated(n - 1, after)),
    }[mode]()
    return concatenate([parts[0], x, parts[1]], axis) if before or after else x


@composite(
    group=GROUP, reference=_pad_reference, dtypes=_ANY,
    samples=(
        sample((2, 3), widths=((1, 0), (0, 2))), sample((2, 3), widths=1, value=1), sample((3,), widths=(-1, 2)),
        sample((2, 3), widths=((0, 1), (-1, 0)), interior=(1, 2)), sample((0, 2), widths=1), sample((), widths=()),
        sample((3, 4), widths=((2, 1), (0, 3)), mode="reflect"), sample((3, 2), widths=2, mode="replicate"),
        sample((3, 4), widths=((3, 1), (0, 2)), mode="circular"),
    ),
)  # fmt: skip
def pad(x: Value, widths: Any, value: Any = 0, mode: str = "constant", interior: Any = 0) -> Any:
    """x with elements before and after along each axis: `widths` is ((before, after), …), one pair, or one integer.

    Mode "constant" fills with a value, also between elements (interior), and negative widths cut off; "reflect",
    "replicate" ("edge") and "circular" ("wrap") fill with what stands at the ends.
    """
    pairs = _widths(widths, x.ndim)
    mode = _BORDERS.get(mode, mode)
    if mode not in ("constant", "reflect", "replicate", "circular"):
        raise ShapeError(f"there is no padding mode '{mode}'", hint="modes: constant, reflect, replicate, circular")
    if mode == "constant":
        gaps = (interior,) * x.ndim if isinstance(interior, int) else tuple(_listed(interior, "interior padding"))
        filling = value if isinstance(value, Value) else number(x, held(value, x.dtype))
        return pad_constant(x, filling, tuple(b for b, _ in pairs), tuple(a for _, a in pairs), gaps)
    if interior not in (0, None):
        raise ShapeError(f"mode '{mode}' has no interior padding")
    for axis, (before, after) in enumerate(pairs):
        x = _border(x, axis, before, after, mode)
    return x


def held(number: Any, dtype: dtypes.DType) -> Any:
    """A number that a dtype holds; bools hold 0 and 1."""
    if dtype.is_bool and number in (0, 1):
        return bool(number)
    if not dtype.holds(number):
        raise DTypeError(f"{dtype} cannot hold {number}", hint="cast the tensor first")
    return number
