"""Padding as users have it: with a value, or with what stands at the ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import dtypes
from eshkol.ops.joining import along, concatenate
from eshkol.ops.movement import GROUP
from eshkol.ops.reductions import sum_
from eshkol.ops.row import STRUCTURE, Aval, HasAval, Linear, Op, Pull, Value, composite, row, sample
from eshkol.ops.slicing import listed, pad_constant
from eshkol.ops.structural import number

_ANY = ("bool", "int", "float", "complex")
_BORDERS = {"edge": "replicate", "wrap": "circular"}  # NumPy's names of PyTorch's modes
_NUMPY_BORDERS: dict[str, Any] = {"replicate": "edge", "circular": "wrap"}


def _widths(given: Any, ndim: int) -> list[tuple[int, int]]:
    """Widths per axis, from an integer for all, a pair for all, or a pair for each."""
    if isinstance(given, np.ndarray):
        given = given.tolist()
    if isinstance(given, int):
        return [(given, given)] * ndim
    found = listed(given, "padding")
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


class Border(NamedTuple):
    """For each axis how many elements are put before and behind, and what they are."""

    low: tuple[int, ...]
    high: tuple[int, ...]
    mode: str


def _pull_border(e: Any, a: Border, i: Any, x: Any) -> Any:
    return x([_place(e, a.mode, i[k], low, a.high[k], x.shape[k]) if low or a.high[k] else i[k]
              for k, low in enumerate(a.low)])  # fmt: skip


def _place(e: Any, mode: str, i: Any, low: int, high: int, n: int) -> Any:
    """Where the element comes from that stands at a place along an axis of n elements and their border.

    In which of the three parts it stands is decided where a row is gone over in stretches; then places beside one
    another come from places beside one another.
    """
    before, behind = {
        "reflect": (lambda: low - i, lambda: low + 2 * (n - 1) - i),
        "circular": (lambda: i + (n - low), lambda: i - (n + low)),
        "replicate": (lambda: e.number(0), lambda: e.number(n - 1)),
    }[mode]

    def chosen(condition: Any, then: Callable[[], Any], otherwise: Callable[[], Any]) -> Any:
        if condition.known is None:
            return e.select(condition, then(), otherwise())
        return then() if condition.known else otherwise()

    def on() -> Any:
        return chosen(e.compare("GE", i, low + n), behind, lambda: i - low) if high else i - low

    return e.within(chosen(e.compare("LT", i, low), before, on) if low else on(), n)


def _transpose_border(a: Border, ct: Any, k: int, x: HasAval) -> Any:
    """Each element has what all its copies have: one axis after another."""
    for axis, (low, high) in reversed(list(enumerate(zip(a.low, a.high, strict=True)))):
        if not (low or high):
            continue
        if a.mode != "replicate":
            ct = ct.apply(UNBORDERED, (ct,), Unbordering(axis, low, high, a.mode))
        elif x.shape[axis] == 1:
            ct = sum_(ct, axis, keepdims=True)
        else:
            last = low + x.shape[axis] - 1
            parts = [along(ct, axis, *part) for part in ((0, low + 1), (low + 1, last), (last, last + high + 1))]
            first, behind = (sum_(end, axis, keepdims=True) for end in (parts[0], parts[2]))
            ct = concatenate([first, parts[1], behind], axis)
    return ct


def _batch_border(a: Border, inputs: Any, batched: Any) -> Any:
    return inputs[0].apply(BORDERED, inputs, Border((0, *a.low), (0, *a.high), a.mode))


BORDERED: Op = row(Op(
    name="bordered", doc="x with what stands at its ends once more on both sides: mirrored, repeated, wrapped around.",
    function=None, names=("x",), group=STRUCTURE, method=False,
    infer=lambda a, x: Aval(tuple(n + b + c for n, b, c in zip(x.shape, a.low, a.high, strict=True)), x.dtype),
    reference=lambda a, x: np.pad(x, list(zip(a.low, a.high, strict=True)), _NUMPY_BORDERS.get(a.mode, a.mode)),
    lower=Pull(_pull_border), of_complex=True, derivative=Linear(_transpose_border), batch=_batch_border, dtypes=_ANY,
))  # fmt: skip


class Unbordering(NamedTuple):
    """An axis, how many elements of it stand before and behind those that they are copies of, and in which order."""

    axis: int
    low: int
    high: int
    mode: str

    def extent(self, whole: int) -> int:
        """The extent of the axis without the border."""
        return whole - self.low - self.high

    def ends(self, n: int) -> list[tuple[int, int, int, int]]:
        """For both ends where their elements go: from, to, and the place of the copy, as a number and a factor."""
        low, high = self.low, self.high
        if self.mode == "reflect":
            return [(1, low + 1, low, -1), (n - 1 - high, n - 1, low + 2 * (n - 1), -1)]
        return [(n - low, n, low - n, 1), (0, high, low + n, 1)]


def _unbordered(a: Unbordering, ct: Any) -> Any:
    whole = np.moveaxis(ct, a.axis, 0)
    n = a.extent(len(whole))
    found = whole[a.low : a.low + n].copy()
    for start, stop, place, factor in a.ends(n):
        found[start:stop] += whole[place + factor * np.arange(start, stop)]
    return np.moveaxis(found, 0, a.axis)


def _pull_unbordered(e: Any, a: Unbordering, i: Any, ct: Any) -> Any:
    own, n = i[a.axis], a.extent(ct.shape[a.axis])

    def at(place: Any) -> list[Any]:
        return [place if k == a.axis else i[k] for k in range(len(ct.shape))]

    found = ct(at(own + a.low))
    for start, stop, place, factor in a.ends(n):
        inside = e.both(e.compare("GE", own, start), e.compare("LT", own, stop))
        if inside.known is not False and start < stop:
            copy = e.read_if(inside, ct, at(own + place if factor > 0 else place - own), e.constant(0, ct.dtype))
            found = found + copy
    return found


def _transpose_unbordered(a: Unbordering, ct: Any, k: int, x: HasAval) -> Any:
    low, high = ([width if axis == a.axis else 0 for axis in range(ct.ndim)] for width in (a.low, a.high))
    return ct.apply(BORDERED, (ct,), Border(tuple(low), tuple(high), a.mode))


def _batch_unbordered(a: Unbordering, inputs: Any, batched: Any) -> Any:
    return inputs[0].apply(UNBORDERED, inputs, a._replace(axis=a.axis + 1))


UNBORDERED: Op = row(Op(
    name="unbordered", doc="x without a border along an axis, each element with all its copies added up.",
    function=None, names=("x",), group=STRUCTURE, method=False,
    infer=lambda a, x: Aval((*x.shape[: a.axis], a.extent(x.shape[a.axis]), *x.shape[a.axis + 1 :]), x.dtype),
    reference=_unbordered, lower=Pull(_pull_unbordered), of_complex=True, derivative=Linear(_transpose_unbordered),
    batch=_batch_unbordered, dtypes=("int", "float", "complex"),
))  # fmt: skip


def _bordered(x: Any, pairs: list[tuple[int, int]], mode: str) -> Any:
    for n, (before, after) in zip(x.shape, pairs, strict=True):
        if any(isinstance(width, bool) or not isinstance(width, int) for width in (before, after)):
            raise ShapeError(f"padding is made of integers, not ({before}, {after})")
        most = {"reflect": n - 1, "circular": n, "replicate": before + after}[mode]
        if (before or after) and (before < 0 or after < 0 or max(before, after) > most or n == 0):
            raise ShapeError(
                f"widths ({before}, {after}) do not suit mode '{mode}' and an extent of {n}",
                hint=f"in this mode they are between 0 and {most}" if n and mode != "replicate" else None,
            )
    low, high = tuple(b for b, _ in pairs), tuple(a for _, a in pairs)
    return x.apply(BORDERED, (x,), Border(low, high, mode)) if any(low) or any(high) else x


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
        gaps = (interior,) * x.ndim if isinstance(interior, int) else tuple(listed(interior, "interior padding"))
        filling = value if isinstance(value, Value) else number(x, dtypes.held(value, x.dtype))
        return pad_constant(x, filling, tuple(b for b, _ in pairs), tuple(a for _, a in pairs), gaps)
    if interior not in (0, None):
        raise ShapeError(f"mode '{mode}' has no interior padding")
    return _bordered(x, pairs, mode)
