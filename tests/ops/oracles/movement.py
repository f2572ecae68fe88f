"""Oracles of what moves elements and of tensors that are made: each element, from where it comes or what it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from eshkol.ops.row import Draw, sample
from oracles.elementwise import PLACES
from oracles.reductions import _total
from oracles.registry import every, first, given, meet, normal_axes, normal_axis, nth, oracle, summed

# --- under another shape ----------------------------------------------------------------------------


def _flat(x: np.ndarray) -> list[Any]:
    return [x[i].item() for i in np.ndindex(*x.shape)]


def _filled(elements: Sequence[Any], shape: Sequence[int]) -> np.ndarray:
    """Elements in a row under a shape: the index in the row is that of a number whose digits are the indices."""

    def element(index: tuple[int, ...]) -> Any:
        at = 0
        for i, n in zip(index, shape, strict=True):
            at = at * n + i
        return elements[at]

    return every(shape, element)


@oracle("reshape", more=[sample((2, 6), shape=s) for s in ((3, 4), (-1,), (2, -1, 2), 12, (1, 12, 1), -1)])
def _reshape(x: Any, shape: Any) -> Any:
    wanted = [shape] if isinstance(shape, int) else list(shape)
    if -1 in wanted:
        known = math.prod(n for n in wanted if n != -1)
        wanted[wanted.index(-1)] = x.size // known
    return _filled(_flat(x), wanted)


@oracle(
    "expand", more=[sample((2, 1), shape=s) for s in ((2, 3), (4, -1, 3), (-1, -1), (1, 2, 1))] + [sample((), shape=3)]
)
def _expand(x: Any, shape: Any) -> Any:
    wanted = [shape] if isinstance(shape, int) else list(shape)
    new = len(wanted) - x.ndim
    full = [x.shape[k - new] if n == -1 else n for k, n in enumerate(wanted)]
    return every(full, lambda i: x[tuple(0 if n == 1 else j for j, n in zip(i[new:], x.shape, strict=True))])


def _permuted(x: Any, axes: Sequence[int]) -> Any:
    axes = [normal_axis(k, x.ndim) for k in axes]
    return every([x.shape[k] for k in axes], lambda i: x[tuple(i[axes.index(k)] for k in range(x.ndim))])


oracle("permute", more=[sample((2, 3, 4), axes=a) for a in ((2, 0, 1), (-1, 0, -2), (0, 1, 2))])(_permuted)


@oracle("transpose", fixed=("axis1",), more=[sample((2, 3, 4), axis0=a, axis1=b) for a in (0, -1) for b in (1, -2)])
def _transpose(x: Any, axis0: Any = None, axis1: int | None = None) -> Any:
    if axis1 is not None:
        return _swapaxes(x, axis0, axis1)
    return _permuted(x, list(range(x.ndim))[::-1] if axis0 is None else axis0)


@oracle("swapaxes", more=[sample((2, 3, 4), axis0=a, axis1=b) for a in range(-3, 3) for b in (0, -1)])
def _swapaxes(x: Any, axis0: int, axis1: int) -> Any:
    order = list(range(x.ndim))
    one, other = normal_axis(axis0, x.ndim), normal_axis(axis1, x.ndim)
    order[one], order[other] = order[other], order[one]
    return _permuted(x, order)


@oracle("moveaxis", more=[
    *(sample((2, 3, 4), source=a, destination=b) for a in (0, 1, -1) for b in (0, 2, -2)),
    sample((2, 3, 4, 1), source=(0, -1, 1), destination=(2, 0, -1)),
])  # fmt: skip
def _moveaxis(x: Any, source: Any, destination: Any) -> Any:
    order = sorted(
        zip(*([normal_axis(k, x.ndim) for k in ([a] if isinstance(a, int) else a)] for a in (destination, source)),
            strict=True)
    )  # fmt: skip
    left = [k for k in range(x.ndim) if k not in [s for _, s in order]]
    for to, axis in order:
        left.insert(to, axis)
    return _permuted(x, left)


@oracle("flip")
def _flip(x: Any, axis: Any = None) -> Any:
    turned = normal_axes(axis, x.ndim)
    return every(
        x.shape,
        lambda i: x[tuple(n - 1 - j if k in turned else j for k, (j, n) in enumerate(zip(i, x.shape, strict=False)))],
    )


@oracle("rot90", more=[sample((2, 3, 4), k=k, axes=a) for k in range(-5, 6) for a in ((0, 1), (2, 0), (-1, -2))])
def _rot90(x: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    """A quarter: what was at (a, b) is at (n_b - 1 - b, a)."""
    one, other = (normal_axis(a, x.ndim) for a in axes)
    for _ in range(k % 4):
        old, shape = x, list(x.shape)
        shape[one], shape[other] = shape[other], shape[one]

        def element(i: tuple[int, ...], old: Any = old) -> Any:
            at = list(i)
            at[one], at[other] = i[other], old.shape[other] - 1 - i[one]
            return old[tuple(at)]

        x = every(shape, element)
    return x


@oracle("squeeze", fixed=("axis",), more=[
    sample((1, 2, 1, 1), axis=a) for a in (0, -1, (0, 2), (-1, 0), (), None)
])  # fmt: skip
def _squeeze(x: Any, axis: Any = None) -> Any:
    gone = [k for k, n in enumerate(x.shape) if n == 1] if axis is None else normal_axes(axis, x.ndim)
    return _filled(_flat(x), [n for k, n in enumerate(x.shape) if k not in gone])


@oracle("unsqueeze", more=[sample((2, 3), axis=a) for a in (0, 2, -1, -3, (0, 2), (-1, 0), (1, -2))])
def _unsqueeze(x: Any, axis: Any) -> Any:
    new = [axis] if isinstance(axis, int) else list(axis)
    rank = x.ndim + len(new)
    shape = list(x.shape)
    for k in sorted(normal_axis(a, rank) for a in new):
        shape.insert(k, 1)
    return _filled(_flat(x), shape)


@oracle("flatten", more=[
    sample((2, 1, 3, 2), start_axis=a, end_axis=b) for a, b in ((0, 1), (1, -1), (-3, -2), (2, 2), (0, 3))
])  # fmt: skip
def _flatten(x: Any, start_axis: int = 0, end_axis: int = -1) -> Any:
    rank = max(x.ndim, 1)
    start, end = normal_axis(start_axis, rank), normal_axis(end_axis, rank)
    return _filled(_flat(x), [*x.shape[:start], math.prod(x.shape[start : end + 1]), *x.shape[end + 1 :]])


@oracle("slice", more=[
    sample((5, 4), start=(1,), stop=(4,)), sample((5, 4), start=(-3, 1), stop=(None, -1), step=(2, None)),
    sample((5,), start=(-9,), stop=(9,), step=(3,)), sample((5, 2), step=(2, 1)), sample((4,), start=(3,), stop=(1,)),
])  # fmt: skip
def _slice(x: Any, start: Any = None, stop: Any = None, step: Any = None) -> Any:
    def of(numbers: Any, axis: int) -> Any:
        numbers = [numbers] if isinstance(numbers, int) else numbers
        return None if numbers is None or axis >= len(numbers) else numbers[axis]

    kept = [list(range(n))[of(start, k) : of(stop, k) : of(step, k)] for k, n in enumerate(x.shape)]
    return every([len(k) for k in kept], lambda i: x[tuple(k[j] for j, k in zip(i, kept, strict=True))])


# --- around the elements ----------------------------------------------------------------------------


@oracle(
    "pad_constant",
    dtype=meet,
    more=[
        sample((2, 3), (), low=(1, -1), high=(0, 2), interior=(2, 0)),
        sample((3,), (), low=(-2,), high=(1,)),
        sample((2, 2), (), low=(0, 0), high=(0, 0), interior=(1, 1)),
        sample((3,), (), low=(-1,), high=(-1,), interior=(3,)),
    ],
)
def _pad_constant(x: Any, value: Any, low: Any, high: Any, interior: Any = None) -> Any:
    gaps = interior or [0] * x.ndim
    shape = [b + n + max(n - 1, 0) * g + a for b, a, g, n in zip(low, high, gaps, x.shape, strict=True)]

    def element(i: tuple[int, ...]) -> Any:
        at = []
        for j, b, g, n in zip(i, low, gaps, x.shape, strict=True):
            place, rest = divmod(j - b, g + 1)
            if rest or not 0 <= place < n:
                return np.asarray(value).item()
            at.append(place)
        return x[tuple(at)]

    return every(shape, element)


def _reflected(j: int, n: int) -> int:
    while not 0 <= j < n:
        j = -j if j < 0 else 2 * (n - 1) - j
    return j


_BORDER = {
    "reflect": _reflected, "replicate": lambda j, n: min(max(j, 0), n - 1), "circular": lambda j, n: j % n,
}  # fmt: skip
_BORDER |= {"edge": _BORDER["replicate"], "wrap": _BORDER["circular"]}


@oracle("pad", dtype=first, more=[
    *(sample((3, 4), widths=w, mode=m)
      for m in (*_BORDER, "constant") for w in (0, 1, (2, 0), ((0, 1), (2, 1)), ((2, 2), (0, 0)))),
    sample((3,), widths=(-1, 2), value=1), sample((2, 2), widths=((-1, 0), (1, -1)), interior=2),
])  # fmt: skip
def _pad(x: Any, widths: Any, value: Any = 0, mode: str = "constant", interior: Any = 0) -> Any:
    if isinstance(widths, int):
        widths = [(widths, widths)] * x.ndim
    elif len(widths) == 2 and isinstance(widths[0], int):
        widths = [tuple(widths)] * x.ndim
    if mode == "constant":
        gaps = [interior] * x.ndim if isinstance(interior, int) else interior
        return _pad_constant(x, value, [b for b, _ in widths], [a for _, a in widths], gaps)
    shape = [b + n + a for (b, a), n in zip(widths, x.shape, strict=True)]
    return every(
        shape, lambda i: x[tuple(_BORDER[mode](j - b, n) for j, (b, _), n in zip(i, widths, x.shape, strict=True))]
    )


# --- several tensors, several times -----------------------------------------------------------------


@oracle("repeat", more=[sample((2, 1, 3), repeats=2, axis=a) for a in (None, 0, 1, -1)])
def _repeat(x: Any, repeats: int, axis: int | None = None) -> Any:
    if axis is None:
        x, axis = np.array(_flat(x), x.dtype), 0
    axis = normal_axis(axis, x.ndim)
    shape = [n * repeats if k == axis else n for k, n in enumerate(x.shape)]
    return every(shape, lambda i: x[tuple(j // repeats if k == axis else j for k, j in enumerate(i))])


@oracle("tile", more=[sample((2, 3), reps=r) for r in (1, (3,), (2, 2), (1, 2, 1))] + [sample((), reps=3)])
def _tile(x: Any, reps: Any) -> Any:
    times = [reps] if isinstance(reps, int) else list(reps)
    rank = max(len(times), x.ndim)
    times = [1] * (rank - len(times)) + times
    shape = [1] * (rank - x.ndim) + list(x.shape)
    wide = _filled(_flat(x), shape)
    return every(
        [t * n for t, n in zip(times, shape, strict=True)],
        lambda i: wide[tuple(j % n for j, n in zip(i, shape, strict=True))],
    )


@oracle(
    "broadcast_tensors",
    dtype=(nth(0), nth(1), nth(2)),
    more=[sample([Draw((1,)), Draw((2, 1, 3)), Draw((2, 1))]), sample([Draw((2,))])],
)
def _broadcast_tensors(tensors: Any) -> Any:
    rank = max(x.ndim for x in tensors)
    shapes = [[1] * (rank - x.ndim) + list(x.shape) for x in tensors]
    shape = [max(column) if 0 not in column else 0 for column in zip(*shapes, strict=True)]
    return tuple(_expand(x, shape) for x in tensors)


def _joined(tensors: Sequence[Any], axis: int) -> Any:
    axis = normal_axis(axis, tensors[0].ndim)
    origin = [(t, j) for t, x in enumerate(tensors) for j in range(x.shape[axis])]
    shape = [len(origin) if k == axis else n for k, n in enumerate(tensors[0].shape)]

    def element(i: tuple[int, ...]) -> Any:
        which, j = origin[i[axis]]
        return tensors[which][(*i[:axis], j, *i[axis + 1 :])]

    return every(shape, element)


_THREE = [Draw((2, 3)), Draw((2, 3)), Draw((2, 3))]


@oracle("concatenate", fixed=("axis",), more=[sample(_THREE, axis=a) for a in (0, 1, -1, -2)] + [
    sample([Draw((2, 1)), Draw((2, 4))], axis=1), sample([Draw((3,))]),
])  # fmt: skip
def _concatenate(tensors: Any, axis: int = 0) -> Any:
    return _joined(tensors, axis)


@oracle("stack", fixed=("axis",), more=[sample(_THREE, axis=a) for a in (0, 1, 2, -1, -2, -3)])
def _stack(tensors: Any, axis: int = 0) -> Any:
    axis = normal_axis(axis, tensors[0].ndim + 1)
    shape = list(tensors[0].shape)
    shape.insert(axis, len(tensors))
    return every(shape, lambda i: tensors[i[axis]][(*i[:axis], *i[axis + 1 :])])


@oracle("hstack", more=[sample([Draw((2, 1, 2)), Draw((2, 3, 2))]), sample([Draw(()), Draw(())])])
def _hstack(tensors: Any) -> Any:
    tensors = [x if x.ndim else _filled(_flat(x), (1,)) for x in tensors]
    return _joined(tensors, 0 if tensors[0].ndim == 1 else 1)


@oracle("vstack", more=[sample([Draw((2, 2)), Draw((2,))]), sample([Draw((1, 1, 2)), Draw((3, 1, 2))])])
def _vstack(tensors: Any) -> Any:
    return _joined([x if x.ndim > 1 else _filled(_flat(x), (1, x.size)) for x in tensors], 0)


def _runs(x: Any, bounds: Sequence[tuple[int, int]], axis: int) -> tuple[Any, ...]:
    axis = normal_axis(axis, x.ndim)

    def part(start: int, stop: int) -> Any:
        shape = [stop - start if k == axis else n for k, n in enumerate(x.shape)]
        return every(shape, lambda i: x[(*i[:axis], i[axis] + start, *i[axis + 1 :])])

    return tuple(part(a, b) for a, b in bounds)


@oracle("split", dtype=first, fixed=("axis",), more=[
    sample((5, 3), sizes=s, axis=a) for s, a in ((2, 0), (1, 1), ((1, 4), 0), ((0, 5), -2), (7, 0), ((1, 1, 1), -1))
])  # fmt: skip
def _split(x: Any, sizes: Any, axis: int = 0) -> Any:
    extent = x.shape[axis]
    if isinstance(sizes, int):
        return _runs(x, [(k, min(k + sizes, extent)) for k in range(0, extent, sizes)], axis)
    ends = [sum(sizes[: k + 1]) for k in range(len(sizes))]
    return _runs(x, [(e - n, e) for e, n in zip(ends, sizes, strict=True)], axis)


@oracle("chunk", dtype=first, fixed=("axis",), more=[
    sample((7, 2), count=c, axis=a) for c in (1, 2, 3, 5, 9) for a in (0, -2)
])  # fmt: skip
def _chunk(x: Any, count: int, axis: int = 0) -> Any:
    return _split(x, -(-x.shape[axis] // count), axis)


@oracle("unstack", dtype=first)
def _unstack(x: Any, axis: int = 0) -> Any:
    axis = normal_axis(axis, x.ndim)
    shape = [n for k, n in enumerate(x.shape) if k != axis]
    return tuple(every(shape, lambda i, j=j: x[(*i[:axis], j, *i[axis:])]) for j in range(x.shape[axis]))


@oracle("roll", fixed=("axis",), more=[
    *(sample((3, 4), shift=s, axis=a) for s in (1, -2, 9) for a in (None, 0, -1)),
    sample((3, 4), shift=(1, -1), axis=(0, 1)), sample((3, 4), shift=(1, 2), axis=(1, 1)),
])  # fmt: skip
def _roll(x: Any, shift: Any, axis: Any = None) -> Any:
    if axis is None:
        row = _flat(x)
        return _filled([row[(k - shift) % len(row)] for k in range(len(row))], x.shape)
    moves = [0] * x.ndim
    for by, k in zip(
        [shift] if isinstance(shift, int) else shift, [axis] if isinstance(axis, int) else axis, strict=True
    ):
        moves[normal_axis(k, x.ndim)] += by
    return every(x.shape, lambda i: x[tuple((j - m) % n for j, m, n in zip(i, moves, x.shape, strict=True))])


@oracle("meshgrid", dtype=(nth(0), nth(1), nth(2)), more=[
    sample([Draw((2,)), Draw((3,)), Draw((4,))], indexing=i) for i in ("xy", "ij")
] + [sample([Draw((2,))], indexing="xy")])  # fmt: skip
def _meshgrid(tensors: Any, indexing: str = "xy") -> Any:
    places = list(range(len(tensors)))
    if indexing == "xy" and len(places) > 1:
        places[0], places[1] = 1, 0
    shape = [0] * len(places)
    for x, k in zip(tensors, places, strict=True):
        shape[k] = x.shape[0]
    return tuple(every(shape, lambda i, x=x, k=k: x[i[k]]) for x, k in zip(tensors, places, strict=True))


# --- diagonals --------------------------------------------------------------------------------------


@oracle("diagonal", fixed=("axis1", "axis2"), more=[
    sample((2, 3, 4), offset=o, axis1=a, axis2=b) for o in (-1, 0, 2) for a, b in ((0, 1), (1, 0), (-1, 0), (1, 2))
])  # fmt: skip
def _diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    one, other = normal_axis(axis1, x.ndim), normal_axis(axis2, x.ndim)
    kept = [k for k in range(x.ndim) if k not in (one, other)]
    pairs = [(a, a + offset) for a in range(x.shape[one]) if 0 <= a + offset < x.shape[other]]

    def element(i: tuple[int, ...]) -> Any:
        at = [0] * x.ndim
        for k, j in zip(kept, i[:-1], strict=True):
            at[k] = j
        at[one], at[other] = pairs[i[-1]]
        return x[tuple(at)]

    return every([*(x.shape[k] for k in kept), len(pairs)], element)


@oracle(
    "trace",
    dtype=summed,
    fixed=("axis1", "axis2"),
    more=[sample((2, 3, 4), axis1=a, axis2=b) for a, b in ((0, 1), (-1, 1))],
)
def _trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    found = _diagonal(x, offset, axis1, axis2)
    return every(found.shape[:-1], lambda i: _total([np.asarray(v).item() for v in found[i]]))


@oracle("diag_embed", fixed=("axis1", "axis2"), more=[
    sample((2, 3), offset=o, axis1=a, axis2=b) for o in (-1, 0, 2) for a, b in ((0, 1), (-1, -2), (0, -1), (2, 0))
])  # fmt: skip
def _diag_embed(x: Any, offset: int = 0, axis1: int = -2, axis2: int = -1) -> Any:
    rank = x.ndim + 1
    one, other = normal_axis(axis1, rank), normal_axis(axis2, rank)
    size = x.shape[-1] + abs(offset)
    rest = iter(x.shape[:-1])

    def element(i: tuple[int, ...]) -> Any:
        row, column = i[one], i[other]
        if column - row != offset:
            return 0
        return x[(*(j for k, j in enumerate(i) if k not in (one, other)), min(row, column))]

    return every([size if k in (one, other) else next(rest) for k in range(rank)], element)


@oracle("diag")
def _diag(x: Any, k: int = 0) -> Any:
    return _diag_embed(x, k) if x.ndim == 1 else _diagonal(x, k)


oracle("tril")(lambda x, k=0: every(x.shape, lambda i: x[i] if i[-1] - i[-2] <= k else 0))
oracle("triu")(lambda x, k=0: every(x.shape, lambda i: x[i] if i[-1] - i[-2] >= k else 0))


# --- tensors that are made --------------------------------------------------------------------------

_DTYPES = ("float64", "int32", "float16")


def _shape(shape: Any) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


@oracle("iota", dtype=given("int64"), more=[sample(shape=[2, 3], axis=a, dtype=d) for a in (0, 1, -1) for d in _DTYPES])
def _iota(shape: Any, axis: int = 0, dtype: Any = "int64") -> Any:
    return every(_shape(shape), lambda i: i[axis])


def _number_dtype(call: Any) -> str:
    value = call.given["fill_value"]
    return {bool: "bool", int: "int64", float: "float32", complex: "complex64"}[type(value)]


@oracle("full", dtype=given(_number_dtype), more=[
    sample(shape=[2], fill_value=v) for v in (True, 3, 2.5, 1j)
] + [sample(shape=3, fill_value=7, dtype=d) for d in _DTYPES])  # fmt: skip
def _full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    return every(_shape(shape), lambda i: fill_value)


oracle("zeros", dtype=given("float32"))(lambda shape, dtype="float32": every(_shape(shape), lambda i: 0))
oracle("ones", dtype=given("float32"))(lambda shape, dtype="float32": every(_shape(shape), lambda i: 1))
oracle("zeros_like", dtype=given(first))(lambda x, dtype=None: every(x.shape, lambda i: 0))
oracle("ones_like", dtype=given(first))(lambda x, dtype=None: every(x.shape, lambda i: 1))
oracle("full_like", dtype=given(first))(lambda x, fill_value, dtype=None: every(x.shape, lambda i: fill_value))

_CORNERS = [sample(n, m=m, k=k) for n, m in ((3, None), (2, 4), (4, 2)) for k in (-2, 0, 1)]


@oracle("eye", dtype=given("float32"), more=_CORNERS)
def _eye(n: int, m: int | None = None, k: int = 0, dtype: Any = "float32") -> Any:
    return every((n, n if m is None else m), lambda i: int(i[1] - i[0] == k))


@oracle("tri", dtype=given("float32"), more=_CORNERS)
def _tri(n: int, m: int | None = None, k: int = 0, dtype: Any = "float32") -> Any:
    return every((n, n if m is None else m), lambda i: int(i[1] - i[0] <= k))


def _range_dtype(call: Any) -> str:
    return "float32" if any(isinstance(call.given.get(k), float) for k in ("start", "stop", "step")) else "int64"


@oracle("arange", dtype=given(_range_dtype), more=[
    sample(5), sample(2, 9, 3), sample(9, 2, -2), sample(0.0, 1.0, 0.25), sample(3, 3), sample(1, 2.5, 0.5),
    sample(0, 6, dtype="float64"), sample(5, 0),
])  # fmt: skip
def _arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    start, stop = (0, start) if stop is None else (start, stop)
    at, found = Fraction(start), []
    while at < Fraction(stop) if step > 0 else at > Fraction(stop):
        found.append(float(at))
        at += Fraction(step)
    return np.array(found)


def _points(start: Any, stop: Any, num: int, endpoint: bool) -> list[Fraction]:
    gaps = num - 1 if endpoint else num
    return [Fraction(start) + (Fraction(stop) - Fraction(start)) * k / max(gaps, 1) for k in range(num)]


_SPANS = [sample(-1.5, 2, num=n, endpoint=e) for n in (1, 2, 5) for e in (True, False)]


@oracle("linspace", dtype=given("float32"), more=_SPANS)
def _linspace(start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = "float32") -> Any:
    return np.array([float(v) for v in _points(start, stop, num, endpoint)])


@oracle("logspace", dtype=given("float32"), tolerance=4.0, more=[*_SPANS, sample(0, 4, num=5, base=2.0)])
def _logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = "float32"
) -> Any:
    return np.array([float(mpmath.mpf(base) ** mpmath.mpf(float(v))) for v in _points(start, stop, num, endpoint)])


def _window(name: str, *weights: str) -> None:
    """A sum of cosines of multiples of 2πk/(n - 1); of n + 1 points without the last, if periodic."""

    def window(n: int, periodic: bool = True, dtype: Any = "float32") -> Any:
        if n == 1:
            return np.ones(1)
        around = n if periodic else n - 1
        with mpmath.workdps(PLACES):
            return np.array(
                [
                    float(
                        mpmath.fsum(
                            mpmath.mpf(w) * mpmath.cos(2 * mpmath.pi * j * k / around) for j, w in enumerate(weights)
                        )
                    )
                    for k in range(n)
                ]
            )

    oracle(
        f"{name}_window", dtype=given("float32"), more=[sample(n, periodic=p) for n in (1, 3, 6) for p in (True, False)]
    )(window)


_window("hann", "0.5", "-0.5")
_window("hamming", "0.54", "-0.46")
_window("blackman", "0.42", "-0.5", "0.08")
