"""Oracles of reductions, scans and what is counted or sorted: Python's own functions, line by line."""

from __future__ import annotations

import bisect
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from eshkol.ops.row import Draw, sample
from oracles.elementwise import PLACES, scalar
from oracles.registry import (
    Call,
    along,
    every,
    first,
    floating,
    given,
    lines,
    oracle,
    place,
    real_of,
    summed,
    truth,
)

# --- reductions -------------------------------------------------------------------------------------

_SHAPES = [(), (1,), (3, 1, 2), (2, 2, 2, 2)]
_MORE = [sample(shape) for shape in _SHAPES]


def _total(line: list[Any]) -> Any:
    if any(isinstance(v, complex) for v in line):
        return complex(math.fsum(v.real for v in line), math.fsum(v.imag for v in line))
    return math.fsum(line) if any(isinstance(v, float) for v in line) else sum(int(v) for v in line)


def _mean_of(line: list[Any]) -> Any:
    return _total(line) / len(line) if line else math.nan


def _spread(line: list[Any], correction: float) -> Any:
    middle = _mean_of(line)
    below = max(len(line) - correction, 0)
    total = math.fsum(abs(v - middle) ** 2 for v in line)
    return total / below if below else (math.nan if not total else math.inf)


def _norm_of(line: list[Any], p: Any) -> float:
    sizes = [abs(v) for v in line]
    if p in (math.inf, -math.inf):
        return (max if p > 0 else min)(sizes, default=0.0)
    if p == 0:
        return float(sum(v != 0 for v in sizes))
    p = 2 if p == "fro" else p
    return math.fsum(v**p for v in sizes) ** (1 / p)


def _logsumexp_of(line: list[Any]) -> Any:
    with mpmath.workdps(PLACES):
        return mpmath.log(mpmath.fsum(mpmath.exp(scalar(v)) for v in line)) if line else -mpmath.inf


def _reduced(name: str, dtype: Any, of_line: Any, more: Any = _MORE) -> None:
    oracle(name, dtype=dtype, more=more)(lambda x, axis=None, keepdims=False: lines(x, axis, keepdims, of_line))


def _extreme(line: list[Any], choose: Any) -> Any:
    return next((v for v in line if v != v), None) if any(v != v for v in line) else choose(line)


_reduced("sum", summed, _total)
_reduced("prod", summed, math.prod)
_reduced("mean", floating, _mean_of)
_reduced("logsumexp", floating, _logsumexp_of)
_reduced("count_nonzero", place, lambda line: sum(v != 0 for v in line))
_reduced("any", truth, lambda line: sum(v != 0 for v in line) >= 1)
_reduced("all", truth, lambda line: len(line) == sum(v != 0 for v in line))
_reduced("max", first, lambda line: _extreme(line, lambda v: sorted(v)[-1]))
_reduced("min", first, lambda line: _extreme(line, lambda v: sorted(v)[0]))

_TIES = [sample(Draw((3, 4), 0, 1, kind="any", make=lambda rng: rng.integers(0, 2, (3, 4))), axis=k) for k in (0, -1)]
_reduced("argmax", place, lambda line: sorted(range(len(line)), key=lambda k: -line[k])[0], [*_MORE, *_TIES])
_reduced("argmin", place, lambda line: sorted(range(len(line)), key=lambda k: line[k])[0], [*_MORE, *_TIES])

_CORRECTED = [sample((2, 3), axis=k, correction=c) for k in (None, 0, -1, (0, 1)) for c in (1, 0.5)]


@oracle("var", dtype=real_of(floating), more=_CORRECTED)
def _var(x: Any, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
    return lines(x, axis, keepdims, lambda line: _spread(line, correction))


@oracle("std", dtype=real_of(floating), more=_CORRECTED)
def _std(x: Any, axis: Any = None, correction: float = 0, keepdims: bool = False) -> Any:
    return lines(x, axis, keepdims, lambda line: math.sqrt(_spread(line, correction)))


@oracle("norm", dtype=real_of(floating), tolerance=2.0, more=[
    sample((2, 3), p=p, axis=k, keepdims=d)
    for p in (1, 2, 3, 0.5, 0, math.inf, -math.inf, -1) for k, d in ((None, False), (1, True), ((0, 1), False))
])  # fmt: skip
def _norm(x: Any, p: Any = 2, axis: Any = None, keepdims: bool = False) -> Any:
    return lines(x, axis, keepdims, lambda line: _norm_of(line, p))


@oracle("sum_to", dtype=summed, more=[
    sample((2, 3), shape=s) for s in [(2, 3), (1, 3), (2, 1), (3,), (1,), ()]
])  # fmt: skip
def _sum_to(x: Any, shape: Any) -> Any:
    sums: dict[Any, list[Any]] = {at: [] for at in np.ndindex(*shape)}
    for at in np.ndindex(*x.shape):
        kept = at[x.ndim - len(shape) :]
        sums[tuple(0 if n == 1 else i for i, n in zip(kept, shape, strict=True))].append(x[at].item())
    return every(shape, lambda i: _total(sums[i]))


# --- scans ------------------------------------------------------------------------------------------

_SCANNED = [sample((3, 1, 2), axis=k) for k in (0, 1, 2, -3)] + [sample((1,)), sample((4,)), sample((2, 3), axis=-1)]


def _prefixes(x: Any, axis: int | None, of_prefix: Any, reverse: bool = False) -> Any:
    if axis is None:
        x, axis = np.array([x[i] for i in np.ndindex(*x.shape)], x.dtype), 0

    def of_line(line: list[Any]) -> list[Any]:
        if reverse:
            return [of_prefix(line[k:]) for k in range(len(line))]
        return [of_prefix(line[: k + 1]) for k in range(len(line))]

    return along(x, axis, of_line)


def _reversible(name: str, of_prefix: Any) -> None:
    oracle(name, dtype=summed, fixed=("axis",), more=_SCANNED)(
        lambda x, axis=None, reverse=False: _prefixes(x, axis, of_prefix, reverse)
    )


_reversible("cumsum", _total)
_reversible("cumprod", math.prod)


_RECURRING = [sample((3, 1, 2), (3, 1, 2), axis=k) for k in (0, 1, 2, -3)] + [sample((1,), (1,))]


def _recurring(gains: Any, x: Any, axis: int, reverse: bool, initial: Any = None) -> Any:
    """Each element as a sum: of all those before it, times the gains in between."""
    shape = np.broadcast_shapes(gains.shape, x.shape)
    axis %= len(shape)
    gains, x = np.broadcast_to(gains, shape), np.broadcast_to(x, shape)
    before = None if initial is None else np.broadcast_to(initial, shape[:axis] + shape[axis + 1 :])

    def element(at: Any) -> Any:
        rest = at[:axis] + at[axis + 1 :]
        places = range(shape[axis] - 1, at[axis] - 1, -1) if reverse else range(at[axis] + 1)
        line = [(*at[:axis], k, *at[axis + 1 :]) for k in places]
        terms = [x[one].item() * math.prod(gains[k].item() for k in line[n + 1 :]) for n, one in enumerate(line)]
        if before is not None:
            terms.append(before[rest].item() * math.prod(gains[k].item() for k in line))
        return _total(terms)

    return every(shape, element)


oracle("recurrence", fixed=("axis",), more=_RECURRING)(
    lambda gains, x, axis=None, reverse=False: _recurring(gains, x, axis or 0, reverse)
)
oracle("linear_recurrence", fixed=("axis",), more=[*_RECURRING, sample((2, 1), (1, 3), axis=1)])(
    lambda gains, x, initial=None, axis=0, reverse=False: _recurring(gains, x, axis, reverse, initial)
)


def _last_of(line: list[Any], choose: Any) -> int:
    return max(k for k, v in enumerate(line) if v == choose(line))


_TIED = [
    sample(Draw((3, 5), make=lambda rng: rng.integers(0, 2, (3, 5))), axis=k) for k in (0, 1, -1)
]  # fmt: skip

for _name, _choose in (("max", max), ("min", min)):
    oracle(f"cumarg{_name}", dtype=place, fixed=("axis",), more=[*_SCANNED, *_TIED])(
        lambda x, axis=None, choose=_choose: _prefixes(x, axis, lambda line: _last_of(line, choose))
    )
    oracle(f"cum{_name}", dtype=(first, place), fixed=("axis",), more=[*_SCANNED, *_TIED])(
        lambda x, axis=None, choose=_choose: (
            _prefixes(x, axis, lambda line: choose(line)),
            _prefixes(x, axis, lambda line: _last_of(line, choose)),
        )
    )


# --- order ------------------------------------------------------------------------------------------


def _order(line: list[Any], descending: bool) -> list[int]:
    """By insertion: each element behind all that it is not before."""
    found: list[int] = []
    for k, value in enumerate(line):
        at = len(found)
        while at and (value > line[found[at - 1]] if descending else value < line[found[at - 1]]):
            at -= 1
        found.insert(at, k)
    return found


def _ordered(line: list[Any], descending: bool) -> list[Any]:
    return [line[k] for k in _order(line, descending)]


_MANY_EQUAL = Draw((3, 7), make=lambda rng: rng.integers(0, 3, (3, 7)))
_EQUAL_ONES = [sample(_MANY_EQUAL, axis=k, descending=d) for k in (0, 1) for d in (False, True)]


@oracle("sort", dtype=(first, place), more=_EQUAL_ONES)
def _sort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return along(x, axis, lambda v: _ordered(v, descending)), along(x, axis, lambda v: _order(v, descending))


@oracle("argsort", dtype=place, more=_EQUAL_ONES)
def _argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return along(x, axis, lambda line: _order(line, descending))


@oracle("topk", dtype=(first, place), fixed=("axis",), more=[
    sample(_MANY_EQUAL, k=k, axis=a, largest=g) for k in (0, 1, 3) for a in (0, -1) for g in (True, False)
])  # fmt: skip
def _topk(x: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    return tuple(
        along(x, axis, lambda line, of=of: of(line, largest)[:k]) for of in (_ordered, _order)
    )  # fmt: skip


@oracle("kthvalue", dtype=(first, place), fixed=("axis",), more=[
    sample(_MANY_EQUAL, k=k, axis=1, keepdims=d) for k in (1, 4, 7) for d in (True, False)
])  # fmt: skip
def _kthvalue(x: Any, k: int, axis: int = -1, keepdims: bool = False) -> Any:
    return tuple(lines(x, axis, keepdims, lambda line, of=of: of(line, False)[k - 1]) for of in (_ordered, _order))


def _between(line: list[Any], q: float) -> Any:
    """The point q of the way through the sorted elements, on the straight line between its neighbours."""
    ranked = [Fraction(v) for v in sorted(line)]
    at = Fraction(q) * (len(ranked) - 1)
    low = math.floor(at)
    high = min(low + 1, len(ranked) - 1)
    return float(ranked[low] + (at - low) * (ranked[high] - ranked[low]))


@oracle("quantile", dtype=floating, more=[
    sample((2, 5), q=q, axis=k, keepdims=d)
    for q in (0.0, 0.1, 0.5, 1.0) for k, d in ((None, False), (0, True), (-1, False))
])  # fmt: skip
def _quantile(x: Any, q: float, axis: int | None = None, keepdims: bool = False) -> Any:
    return lines(x, axis, keepdims, lambda line: _between(line, q))


@oracle("median", dtype=floating)
def _median(x: Any, axis: int | None = None, keepdims: bool = False) -> Any:
    import statistics

    return lines(x, axis, keepdims, statistics.median)


@oracle("unique", dtype=(first, place, place), more=[
    sample(_MANY_EQUAL), sample(()), sample(Draw((7, 1, 2), 0, 2), axis=0), sample((3, 0), axis=0),
    sample((0, 3), axis=0),
])  # fmt: skip
def _unique(x: Any, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None) -> Any:
    if axis is not None:
        slices = [tuple(part.flat) for part in np.moveaxis(x, axis, 0)]
        counted = Counter(slices)
        distinct = sorted(counted)
        found = [np.take(x, [slices.index(one) for one in distinct], axis)]
        inverse = np.array([distinct.index(one) for one in slices], np.int64)
        counts = np.array([counted[one] for one in distinct], np.int64)
        found += [y for y, wanted in ((inverse, return_inverse), (counts, return_counts)) if wanted]
        return found[0] if len(found) == 1 else tuple(found)
    flat = [x[i].item() for i in np.ndindex(*x.shape)]
    counted = Counter(flat)
    distinct = sorted(counted)
    found = [np.array(distinct, x.dtype)]
    if return_inverse:
        found.append(every(x.shape, lambda i: distinct.index(x[i].item())))
    if return_counts:
        found.append(np.array([counted[v] for v in distinct], np.int64))
    return found[0] if len(found) == 1 else tuple(found)


def _place_in(line: list[Any], value: Any, right: bool) -> int:
    return (bisect.bisect_right if right else bisect.bisect_left)(line, value)


_STEPS = Draw((5,), make=lambda rng: [0, 1, 1, 2, 4])
_ASKED = Draw((2, 6), make=lambda rng: [[0, 1, 2, 3, 4, 5], [1, 1, 0, 4, 2, 7]])


@oracle("searchsorted", dtype=place, fixed=("right",), more=[
    *(sample(_STEPS, _ASKED, right=r) for r in (True, False)),
    *(sample(_STEPS, _ASKED, side=s) for s in ("left", "right", None)),
])  # fmt: skip
def _searchsorted(boundaries: Any, values: Any, right: bool = False, side: str | None = None) -> Any:
    behind = right if side is None else side == "right"
    return every(
        values.shape,
        lambda i: _place_in((boundaries[i[:-1]] if boundaries.ndim > 1 else boundaries).tolist(), values[i], behind),
    )


@oracle("bucketize", dtype=place, more=[sample(_ASKED, _STEPS, right=r) for r in (True, False)])
def _bucketize(x: Any, boundaries: Any, right: bool = False) -> Any:
    return every(x.shape, lambda i: sum(b <= x[i] if right else b < x[i] for b in boundaries))


@oracle(
    "histogram",
    dtype=(place, floating),
    more=[
        sample(Draw((12,), make=lambda rng: rng.integers(0, 9, 12)), bins=b, range=r)
        for b in (1, 4)
        for r in ((0, 8), (2, 6))
    ],
)
def _histogram(x: Any, bins: int = 10, range: Any = None) -> Any:
    values = [x[i].item() for i in np.ndindex(*x.shape)]
    low, high = (Fraction(v) for v in (range if range is not None else (min(values), max(values))))
    edges = [low + (high - low) * k / bins for k in np.arange(bins + 1).tolist()]
    counts = [0] * bins
    for value in values:
        if low <= value <= high:
            counts[min(bisect.bisect_right(edges, Fraction(value)) - 1, bins - 1)] += 1
    return np.array(counts), np.array([float(e) for e in edges])


def _weights_dtype(call: Call) -> str:
    return "int64" if len(call.arrays) == 1 else summed(Call(call.arrays[1:], {}))


@oracle("bincount", dtype=_weights_dtype, more=[
    sample(Draw((7,), 0, 3, kind="int"), length=6), sample(Draw((7,), 0, 3, kind="int"), minlength=9),
    sample(Draw((7,), 0, 3, kind="int")), sample(Draw((7,), 0, 3, kind="int"), (7,), minlength=2),
])  # fmt: skip
def _bincount(x: Any, weights: Any = None, minlength: int = 0, length: int | None = None) -> Any:
    count = length if length is not None else max(minlength, max(x.tolist(), default=-1) + 1)
    shares = [1] * len(x) if weights is None else weights.tolist()
    return np.array([_total([w for v, w in zip(x.tolist(), shares, strict=True) if v == k]) for k in np.arange(count)])


@oracle("one_hot", dtype=given("int64"), more=[
    sample(Draw((2, 2), 0, 2, kind="int"), num_classes=4, dtype=d) for d in ("int64", "float32", "bool", "uint8")
] + [sample(Draw((5,), 0, 3, kind="int"))])  # fmt: skip
def _one_hot(indices: Any, num_classes: int | None = None, dtype: Any = "int64") -> Any:
    count = num_classes if num_classes is not None else int(indices.max()) + 1
    return every((*indices.shape, count), lambda i: int(indices[i[:-1]] == i[-1]))
