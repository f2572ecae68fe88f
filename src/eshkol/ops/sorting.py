"""Order: sorting, the greatest k, search in what is sorted, distinct elements.

NaN counts as greater than every number, as NumPy and PyTorch have it: last in ascending order, first in descending.
Equal elements keep the order in which they stand, whichever way is sorted.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.creation import full
from eshkol.ops.elementwise import cast, less_equal, logical_and, maximum, minimum, not_equal, where
from eshkol.ops.indexing import scatter_into, take, take_along
from eshkol.ops.joining import along
from eshkol.ops.movement import expand, reshape
from eshkol.ops.row import NATIVE, Aval, Draw, HasAval, Jvp, NoDerivative, Pull, Value, composite, primitive, sample

GROUP = "order"
_REAL = ("int", "float")


def ordered(dtype: dtypes.DType) -> None:
    """Refuses what has no order."""
    if dtype.is_complex:
        raise DTypeError("complex numbers have no order", hint="sort by x.real or abs(x)")


def before(e: Any, x: Any, y: Any) -> Any:
    """Whether a scalar of a kernel stands before another, in ascending order."""
    less = e.compare("LT", x, y)
    if not x.dtype.is_float:
        return less
    return e.op("OR", less, e.op("AND", e.compare("EQ", x, x), e.compare("NE", y, y)))


def _wide(x: Any) -> Any:
    """In a dtype that NumPy can sort."""
    return x.astype(np.float32) if x.dtype.kind not in "biufc" else x


def distinct(*shape: int) -> Draw:
    """A draw without equal or nearly equal elements."""
    count = int(np.prod(shape))
    return Draw(shape, make=lambda rng: (rng.permutation(count) + rng.uniform(0.1, 0.9, count)).reshape(shape))


# --- sort -----------------------------------------------------------------------------------------


class Sort(NamedTuple):
    axis: int
    descending: bool


def _infer_sort(a: Sort, x: HasAval) -> tuple[Aval, Aval]:
    ordered(x.dtype)
    return Aval(x.shape, x.dtype), Aval(x.shape, dtypes.int64)


def _sort(a: Sort, x: Any) -> Any:
    wide = _wide(x)
    if a.descending:
        back = np.argsort(np.flip(wide, a.axis), axis=a.axis, kind="stable")
        order = x.shape[a.axis] - 1 - np.flip(back, a.axis)
    else:
        order = np.argsort(wide, axis=a.axis, kind="stable")
    return np.take_along_axis(x, order, a.axis), order


def _jvp_sort(a: Sort, results: Any, inputs: Any, tangents: Any) -> Any:
    return take_along(tangents[0], results[1], a.axis), None


def _batch_sort(a: Sort, inputs: Any, batched: Any) -> Any:
    return sort(inputs[0], a.axis + 1, a.descending)


def _sorted_axis(x: Value, axis: int) -> int:
    if x.ndim == 0:
        raise ShapeError("a scalar has no axis to sort along", hint="reshape it to one element")
    return shapes.axis(axis, x.ndim)


@primitive(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, infer=_infer_sort, reference=_sort, derivative=Jvp(_jvp_sort), batch=_batch_sort, lower=NATIVE,
    dtypes=("bool", *_REAL), scheme=("tensor-sort",),
    samples=(
        sample(distinct(2, 4)), sample(distinct(4, 2), axis=0, descending=True), sample((0, 3)),
        sample(distinct(2, 3, 2), axis=1), sample((1,)),
    ),
)  # fmt: skip
def sort(x: Value, axis: int = -1, descending: bool = False, stable: bool = True) -> Sort:
    """The elements in order along an axis, and the positions they come from; NaN counts as the greatest.

    The order of equal elements is kept always, so `stable` says nothing new.
    """
    return Sort(_sorted_axis(x, axis), bool(descending))


def _argsort(x: Any, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    return _sort(Sort(axis % x.ndim, descending), x)[1]


@composite(
    group=GROUP, reference=_argsort, dtypes=("bool", *_REAL),
    samples=(sample((2, 4)), sample((4, 2), axis=0, descending=True), sample((0, 3))),
)  # fmt: skip
def argsort(x: Value, axis: int = -1, descending: bool = False, stable: bool = True) -> Any:
    """The positions along an axis that would put its elements in order; equal ones keep theirs."""
    return sort(x, axis, descending)[1]


def _topk(x: Any, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    values, order = _sort(Sort(axis % x.ndim, largest), x)
    return np.take(values, range(k), axis), np.take(order, range(k), axis)


@composite(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, reference=_topk, dtypes=_REAL, scheme=("tensor-topk",),
    samples=(
        sample(distinct(2, 4), k=2), sample(distinct(4, 2), k=3, axis=0, largest=False), sample(distinct(3), k=0),
        sample(distinct(3), k=3),
    ),
)  # fmt: skip
def topk(x: Value, k: int, axis: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """The k greatest (or least) elements along an axis, in order, and their positions; the first of equal ones.

    They are sorted always, so `sorted` says nothing new.
    """
    axis = _sorted_axis(x, axis)
    if isinstance(k, bool) or not isinstance(k, int) or not 0 <= k <= x.shape[axis]:
        raise ShapeError(f"there are no {k!r} elements along axis {axis} of shape {list(x.shape)}")
    return tuple(along(found, axis, 0, k) for found in sort(x, axis, largest))


def _kthvalue(x: Any, k: int, axis: int = -1, keepdims: bool = False) -> Any:
    found = [np.take(y, [k - 1], axis) for y in _sort(Sort(axis % x.ndim, False), x)]
    return tuple(y if keepdims else np.squeeze(y, axis) for y in found)


@composite(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, reference=_kthvalue, dtypes=_REAL,
    samples=(sample(distinct(2, 4), k=2), sample(distinct(4, 2), k=1, axis=0, keepdims=True)),
)  # fmt: skip
def kthvalue(x: Value, k: int, axis: int = -1, keepdims: bool = False) -> Any:
    """The k-th least element along an axis (k counts from 1), and its position."""
    axis = _sorted_axis(x, axis)
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= x.shape[axis]:
        raise ShapeError(f"there is no element number {k!r} along axis {axis} of shape {list(x.shape)}")
    shape = shapes.without(x.shape, (axis,), keepdims)
    return tuple(reshape(along(found, axis, k - 1, k), shape) for found in sort(x, axis))


def _quantile(x: Any, q: float, axis: int | None = None, keepdims: bool = False) -> Any:
    return np.quantile(x.astype(np.float64), q, axis, keepdims=keepdims).astype(
        dtypes.floating(dtypes.of(x.dtype)).numpy
    )


@composite(
    group=GROUP, reference=_quantile, dtypes=_REAL,
    samples=(
        sample(distinct(2, 4), q=0.3), sample(distinct(4, 2), q=1.0, axis=0), sample(distinct(2, 5), q=0.25, axis=1),
        sample(distinct(2, 3), q=0.8, axis=-1, keepdims=True),
    ),
)  # fmt: skip
def quantile(x: Value, q: float, axis: int | None = None, keepdims: bool = False) -> Any:
    """The number below which a part q of the elements lies, between two of them if need be; NaN if one of them is."""
    if not 0 <= q <= 1:
        raise ShapeError(f"a part lies between 0 and 1, unlike {q}")
    shape = shapes.without(x.shape, shapes.axes(axis, x.ndim), keepdims)
    flat, along_axis = (reshape(x, (x.size,)), 0) if axis is None else (x, shapes.axis(axis, x.ndim))
    n = flat.shape[along_axis]
    if n == 0:
        raise ShapeError(f"there are no elements along axis {axis} of shape {list(x.shape)}")
    values = sort(flat if x.dtype.is_float else cast(flat, dtypes.floating(x.dtype)), along_axis)[0]

    def number(k: int) -> Any:
        return along(values, along_axis, k, k + 1)

    low, part = divmod(q * (n - 1), 1)
    found = number(int(low))
    if part:  # of infinities, not even 0 times the other may be added
        found = found * (1 - part) + number(int(low) + 1) * part
    last = number(n - 1)
    return reshape(where(not_equal(last, last), last, found), shape)


@composite(
    pairs="argsort",
    group=GROUP, reference=lambda x, axis=None, keepdims=False: _quantile(x, 0.5, axis, keepdims), dtypes=_REAL,
    samples=(sample(distinct(2, 4)), sample(distinct(3, 2), axis=0), sample(distinct(2, 4), axis=1, keepdims=True)),
)  # fmt: skip
def median(x: Value, axis: int | None = None, keepdims: bool = False) -> Any:
    """The middle element along an axis, or the mean of the middle two as NumPy has it; NaN if one of them is."""
    return quantile(x, 0.5, axis, keepdims)


# --- distinct elements ----------------------------------------------------------------------------


def _unique(x: Any, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None) -> Any:
    found = np.unique(_wide(x), return_inverse=True, return_counts=True, axis=axis)
    if axis is not None:
        found = (found[0], found[1].reshape(-1), found[2])
    return tuple(y for y, wanted in zip(found, (True, return_inverse, return_counts), strict=True) if wanted)


@composite(
    gives_if={"return_inverse": (True, "tuple[Tensor, ...]"), "return_counts": (True, "tuple[Tensor, ...]")},
    group=GROUP, reference=_unique, dtypes=("bool", *_REAL), concrete=(0,), scheme=("tensor-unique",),
    samples=(
        sample(Draw((6,), 0, 3)), sample((2, 3), return_inverse=True), sample((4,), return_counts=True),
        sample((0,), return_inverse=True, return_counts=True),
        sample(Draw((6, 2), 0, 2), axis=0, return_inverse=True, return_counts=True), sample(Draw((2, 5), 0, 2), axis=1),
    ),
)  # fmt: skip
def unique(x: Value, return_inverse: bool = False, return_counts: bool = False, axis: int | None = None) -> Any:
    """The distinct elements in order; also where each element of x is among them, and how often each occurs.

    With an axis they are the distinct slices along it, by their first elements, then their second and so on. x must be
    known. All NaNs count as one element, but no slice with one is another's like. The tangent is that of the first of
    equal elements.
    """
    ordered(x.dtype)
    x.concrete()
    if axis is not None:
        return _unique_slices(x, shapes.axis(axis, x.ndim), return_inverse, return_counts)
    values, order = sort(reshape(x, (x.size,)))
    known = values.concrete()
    changes = known[1:] != known[:-1]
    if x.dtype.is_float:
        changes &= known[:-1] == known[:-1]  # after NaN comes nothing but NaN
    first = np.flatnonzero(np.concatenate([np.ones(min(x.size, 1), bool), changes]))
    found = [take(values, x.literal(first))]
    if return_inverse:
        inverse = np.empty(x.size, np.int64)
        inverse[order.concrete()] = np.concatenate([np.zeros(min(x.size, 1), np.int64), np.cumsum(changes)])
        found.append(x.literal(inverse.reshape(x.shape)))
    if return_counts:
        found.append(x.literal(np.diff(first, append=x.size)))
    return tuple(found) if len(found) > 1 else found[0]


def _unique_slices(x: Value, axis: int, return_inverse: bool, return_counts: bool) -> Any:
    number = x.shape[axis]
    rows = np.moveaxis(np.asarray(x.concrete()), axis, 0).reshape(number, -1 if number else 0)
    order = np.lexsort(rows.T[::-1]) if rows.shape[1] else np.arange(number)
    changes = np.any(rows[order[1:]] != rows[order[:-1]], axis=1)
    first = np.flatnonzero(np.concatenate([np.ones(min(number, 1), bool), changes]))
    found = [take(x, x.literal(order[first]), axis)]
    if return_inverse:
        inverse = np.empty(number, np.int64)
        inverse[order] = np.concatenate([np.zeros(min(number, 1), np.int64), np.cumsum(changes)])
        found.append(x.literal(inverse))
    if return_counts:
        found.append(x.literal(np.diff(first, append=number)))
    return tuple(found) if len(found) > 1 else found[0]


# --- search ---------------------------------------------------------------------------------------


class SearchSide(NamedTuple):
    right: bool


def _infer_search(a: SearchSide, boundaries: HasAval, values: HasAval) -> Aval:
    ordered(boundaries.dtype)
    rest = boundaries.shape[:-1]
    if not boundaries.shape or values.shape[: len(rest)] != rest:
        raise ShapeError(
            f"values of shape {list(values.shape)} do not begin with the axes {list(rest)} of boundaries "
            f"of shape {list(boundaries.shape)}",
            hint="boundaries are a vector, or one vector for each of the leading axes of the values",
        )
    return Aval(values.shape, dtypes.int64)


def _search(a: SearchSide, boundaries: Any, values: Any) -> Any:
    boundaries, values = _wide(boundaries), _wide(values)
    rest = boundaries.shape[:-1]
    result = np.empty(values.shape, np.int64)
    for place in np.ndindex(rest):
        result[place] = np.searchsorted(boundaries[place], values[place], "right" if a.right else "left")
    return result


def _pull_search(e: Any, a: SearchSide, i: Any, boundaries: Any, values: Any) -> Any:
    """Steps of half the length each: what is found is at least `low`, and rises where the boundary before it is passed.

    How long the steps are is known, so places stay small numbers, and several values are looked for at once.
    """
    batch, extent, value = len(boundaries.shape) - 1, boundaries.shape[-1], values(i)
    places, low = list(i)[:batch], e.number(0)
    for k in reversed(range(extent.bit_length())):
        last = low + ((1 << k) - 1)
        inside = e.compare("LT", last, extent)
        boundary = e.read_if(inside, boundaries, [*places, last], value)
        passed = e.negation(before(e, value, boundary)) if a.right else before(e, boundary, value)
        low = e.at_most(e.select(e.both(inside, passed), last + 1, low), extent)
    return low


def _batch_search(a: SearchSide, inputs: Any, batched: Any) -> Any:
    boundaries, values = inputs
    if batched[0] and not batched[1]:
        values = expand(values, (boundaries.shape[0], *values.shape))
    elif batched[1] and not batched[0] and boundaries.ndim > 1:
        boundaries = expand(boundaries, (values.shape[0], *boundaries.shape))
    return search(boundaries, values, a.right)


_STEPS = NoDerivative("positions do not vary smoothly")


def rising(*shape: int) -> Draw:
    """A draw that is sorted along its last axis."""
    return Draw(shape, make=lambda rng: np.sort(rng.integers(0, 5, shape), axis=-1))


@primitive(
    name="searchsorted", group=GROUP, infer=_infer_search, reference=_search, derivative=_STEPS, batch=_batch_search,
    promote="common", dtypes=_REAL, lower=Pull(_pull_search), scheme=("searchsorted",), method=False,
    samples=(
        sample(rising(5), Draw((2, 3), 0, 5)), sample(rising(4), Draw((3,), 0, 5), side="right"),
        sample(rising(2, 6), Draw((2, 3), 0, 5), right=True), sample(rising(3), Draw((), 0, 5)),
        sample((0,), (2,)), sample(rising(8), Draw((9,), -1, 6)),
    ),
)  # fmt: skip
def search(boundaries: Value, values: Value, right: bool = False, side: str | None = None) -> SearchSide:
    """Where values would have to be put in to keep sorted boundaries sorted: before equal ones, or (right) behind.

    Boundaries are a vector, or one for each of the leading axes of the values. NaN counts as the greatest.
    """
    if side not in (None, "left", "right"):
        raise ShapeError(f"the side is 'left' or 'right', not '{side}'")
    return SearchSide(bool(right) if side is None else side == "right")


def _bucketize(x: Any, boundaries: Any, right: bool = False) -> Any:
    below = boundaries <= x[..., None] if right else boundaries < x[..., None]
    return below.sum(-1)


@composite(
    group=GROUP, reference=_bucketize, dtypes=_REAL, scheme=("bucketize",),
    samples=(
        sample(Draw((2, 3), 0, 5), rising(4)), sample(Draw((2, 3), 0, 5), rising(4), right=True), sample((), rising(2)),
    ),
)  # fmt: skip
def bucketize(x: Value, boundaries: Value, right: bool = False) -> Any:
    """Between which sorted boundaries each element lies: how many are below it (with right: or equal to it)."""
    if boundaries.ndim != 1:
        raise ShapeError(f"boundaries are a vector, not of shape {list(boundaries.shape)}")
    return search(boundaries, x, right)


def _histogram(x: Any, bins: int = 10, range: Any = None) -> Any:
    counts, edges = np.histogram(x.astype(np.float64), bins, range)
    return counts, edges.astype(dtypes.floating(dtypes.of(x.dtype)).numpy)


@composite(
    gives="tuple[Tensor, Tensor]",
    group=GROUP, reference=_histogram, dtypes=_REAL,
    samples=(
        sample((9,), bins=3, range=(-1.0, 1.0)), sample((2, 4), bins=2, range=(-2.0, 2.0)), sample((0,), range=(0, 1)),
    ),
)  # fmt: skip
def histogram(x: Value, bins: int = 10, range: Any = None) -> Any:
    """How many elements lie in each of several bins of one width, and the edges of the bins.

    Edges belong to the bin above them, the last one to the last bin; what is outside the range does not count. Without
    a range it is from the least to the greatest element, which must be known.
    """
    if isinstance(bins, bool) or not isinstance(bins, int) or bins < 1:
        raise ShapeError(f"there must be at least one bin, not {bins!r}")
    low, high = _span(x) if range is None else (float(n) for n in range)
    if not low < high:
        raise ShapeError(f"a range from {low} to {high} is empty")
    values = reshape(x if x.dtype.is_float else cast(x, dtypes.floating(x.dtype)), (x.size,))
    edges = values.literal(np.linspace(low, high, bins + 1).astype(values.dtype.numpy))
    place = minimum(maximum(search(edges, values, True) - 1, 0), bins - 1)
    inside = logical_and(less_equal(low, values), less_equal(values, high))
    return scatter_into(full(x, (bins,), 0, dtypes.int64), place, cast(inside, dtypes.int64), 0, True), edges


def _span(x: Value) -> tuple[float, float]:
    """From the least to the greatest element; one apart if there is nothing between."""
    known = x.concrete().astype(np.float64)
    if not np.all(np.isfinite(known)):
        raise ShapeError("no range holds all elements: some are not finite", hint="give a range")
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    return (low, high) if low < high else (low - 0.5, high + 0.5)
