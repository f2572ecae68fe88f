"""More of jax.numpy: functions of statistics, polynomials, sets and NaN, each a few lines of others.

Comes in and goes out: as in `numpy.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eshkol.errors import ShapeError
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


def average(a: Any, axis: Any = None, weights: Any = None) -> Tensor:
    """The mean along an axis, in proportion to weights."""
    x = ek.asarray(a)
    if weights is None:
        return ek.mean(x, axis)
    w = ek.asarray(weights)
    if axis is not None and w.ndim == 1 and x.ndim > 1:
        shape = [1] * x.ndim
        shape[axis] = -1
        w = w.reshape(tuple(shape))
    return ek.sum(x * w, axis) / ek.sum(ek.broadcast_to(w, x.shape), axis)


def cov(m: Any, rowvar: bool = True, ddof: int = 1) -> Tensor:
    """The covariances of variables, one in each row."""
    x = ek.asarray(m)
    x = x if rowvar and x.ndim == 2 else x.T if x.ndim == 2 else ek.unsqueeze(x, 0)
    away = x - ek.mean(x, 1, keepdims=True)
    return ek.squeeze(away @ ek.conj(away).T / (x.shape[1] - ddof))


def corrcoef(x: Any, rowvar: bool = True) -> Tensor:
    """Correlations of variables, one in each row."""
    c = cov(x, rowvar)
    if c.ndim == 0:
        return c / c
    deviation = ek.sqrt(ek.diag(c))
    return c / ek.outer(deviation, deviation)


def diff(a: Any, n: int = 1, axis: int = -1) -> Tensor:
    """Each element minus the one before it along an axis, n times."""
    x = ek.asarray(a)
    for _ in range(n):
        count = x.shape[axis]
        x = _part(x, axis, 1, count) - _part(x, axis, 0, count - 1)
    return x


def _part(x: Any, axis: int, start: int, stop: int) -> Tensor:
    index: list[Any] = [slice(None)] * x.ndim
    index[axis] = slice(start, stop)
    return x[tuple(index)]


def ediff1d(ary: Any) -> Tensor:
    """The differences of neighbours, in a row."""
    return diff(ek.ravel(ek.asarray(ary)))


def gradient(f: Any, spacing: float = 1.0, axis: int | None = None) -> Any:
    """Central differences along an axis (or a list, along each), one-sided at the ends."""
    x = ek.asarray(f)
    if axis is None and x.ndim > 1:
        return [gradient(x, spacing, k) for k in range(x.ndim)]
    along, n = axis or 0, x.shape[axis or 0]
    if n < 2:
        raise ShapeError(f"gradient needs two elements along an axis, not {n}", span=ek.here())
    first = _part(x, along, 1, 2) - _part(x, along, 0, 1)
    last = _part(x, along, n - 1, n) - _part(x, along, n - 2, n - 1)
    inner = (_part(x, along, 2, n) - _part(x, along, 0, n - 2)) / 2
    return ek.concatenate([first, inner, last], along) / spacing


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> Tensor:
    """The integral by the trapezoidal rule."""
    y = ek.asarray(y)
    n = y.shape[axis]
    middle = (_part(y, axis, 1, n) + _part(y, axis, 0, n - 1)) / 2
    return ek.sum(middle * (dx if x is None else diff(x, axis=axis if ek.asarray(x).ndim > 1 else -1)), axis)


def percentile(a: Any, q: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The number below which q per cent of the elements lie."""
    share = q / 100 if isinstance(q, int | float) else ek.asarray(q) / 100
    return ek.quantile(a, share, axis, keepdims)


def ptp(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The greatest minus the least."""
    return ek.max(a, axis=axis, keepdims=keepdims) - ek.min(a, axis=axis, keepdims=keepdims)


def _without_nan(a: Any, filled: float) -> tuple[Any, Any]:
    x = ek.asarray(a)
    return ek.where(ek.isnan(x), filled, x), ek.logical_not(ek.isnan(x))


def nansum(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The sum of what is not NaN."""
    return ek.sum(_without_nan(a, 0.0)[0], axis, keepdims=keepdims)


def nanprod(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The product of what is not NaN."""
    return ek.prod(_without_nan(a, 1.0)[0], axis, keepdims=keepdims)


def nanmean(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The mean of what is not NaN."""
    x, there = _without_nan(a, 0.0)
    return ek.sum(x, axis, keepdims=keepdims) / ek.count_nonzero(there, axis, keepdims=keepdims)


def nanmax(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The greatest of what is not NaN; NaN if all is."""
    x, there = _without_nan(a, -np.inf)
    return ek.where(ek.any(there, axis, keepdims=keepdims), ek.max(x, axis=axis, keepdims=keepdims), np.nan)


def nanmin(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The least of what is not NaN; NaN if all is."""
    x, there = _without_nan(a, np.inf)
    return ek.where(ek.any(there, axis, keepdims=keepdims), ek.min(x, axis=axis, keepdims=keepdims), np.nan)


def nanvar(a: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The variance of what is not NaN."""
    x, there = _without_nan(a, 0.0)
    away = ek.where(there, x - nanmean(a, axis, True), 0.0)
    return ek.sum(away * away, axis, keepdims=keepdims) / (ek.count_nonzero(there, axis, keepdims=keepdims) - ddof)


def nanstd(a: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The standard deviation of what is not NaN."""
    return ek.sqrt(nanvar(a, axis, ddof, keepdims))


def polyval(p: Any, x: Any) -> Tensor:
    """A polynomial, highest power first, at points."""
    p, x = ek.asarray(p), ek.asarray(x)
    found = ek.zeros_like(x)
    for k in range(p.shape[0]):
        found = found * x + p[k]
    return found


def polyadd(a1: Any, a2: Any) -> Tensor:
    """The sum of two polynomials, highest power first."""
    a, b = ek.asarray(a1), ek.asarray(a2)
    n = max(a.shape[0], b.shape[0])
    return ek.pad(a, ((n - a.shape[0], 0),)) + ek.pad(b, ((n - b.shape[0], 0),))


def polymul(a1: Any, a2: Any) -> Tensor:
    """The product of two polynomials, highest power first."""
    return convolve(a1, a2)


def convolve(a: Any, v: Any, mode: str = "full") -> Tensor:
    """The convolution of two vectors."""
    a, v = ek.asarray(a), ek.asarray(v)
    if v.shape[0] > a.shape[0]:
        a, v = v, a
    n = v.shape[0]
    if mode not in ("full", "same", "valid"):
        raise ShapeError(f"the mode of convolve is full, same or valid, not {mode!r}", span=ek.here())
    before, after = {"full": (n - 1, n - 1), "same": ((n - 1) - (n - 1) // 2, (n - 1) // 2), "valid": (0, 0)}[mode]
    wide = ek.pad(a, ((before, after),))
    return ek.sliding_window(wide, n, 0) @ ek.flip(v, 0)


def correlate(a: Any, v: Any, mode: str = "valid") -> Tensor:
    """The cross-correlation of two vectors."""
    return convolve(a, ek.flip(ek.conj(ek.asarray(v)), 0), mode)


def interp(x: Any, xp: Any, fp: Any) -> Tensor:
    """Straight lines between points (xp, fp), at x; beyond the ends the last value."""
    x, xp, fp = ek.asarray(x), ek.asarray(xp), ek.asarray(fp)
    right = ek.clamp(ek.searchsorted(xp, x, True), 1, xp.shape[0] - 1)
    x0, x1, y0, y1 = xp[right - 1], xp[right], fp[right - 1], fp[right]
    inside = y0 + (x - x0) * (y1 - y0) / (x1 - x0)
    return ek.where(x < xp[0], fp[0], ek.where(x > xp[-1], fp[-1], inside))


def isin(element: Any, test_elements: Any) -> Tensor:
    """Whether each element is among others."""
    return ek.isin(element, test_elements)


def union1d(ar1: Any, ar2: Any) -> Tensor:
    """All distinct elements of two tensors, in order."""
    return ek.unique(ek.concatenate([ek.ravel(ek.asarray(ar1)), ek.ravel(ek.asarray(ar2))]))


def intersect1d(ar1: Any, ar2: Any) -> Tensor:
    """The distinct elements that both have, in order."""
    x = ek.unique(ar1)
    return ek.masked_select(x, isin(x, ar2))


def setdiff1d(ar1: Any, ar2: Any) -> Tensor:
    """The distinct elements that only the first has, in order."""
    x = ek.unique(ar1)
    return ek.masked_select(x, ek.logical_not(isin(x, ar2)))


def triu_indices(n: int, k: int = 0, m: int | None = None) -> Any:
    """The positions on and above a diagonal."""
    return tuple(ek.asarray(x) for x in np.triu_indices(n, k, m))


def tril_indices(n: int, k: int = 0, m: int | None = None) -> Any:
    """The positions on and below a diagonal."""
    return tuple(ek.asarray(x) for x in np.tril_indices(n, k, m))


def diag_indices(n: int, ndim: int = 2) -> Any:
    """The positions of a diagonal."""
    return (ek.arange(n),) * ndim


def unravel_index(indices: Any, shape: Sequence[int]) -> Any:
    """Positions in a row as positions along each axis."""
    rest, found = ek.asarray(indices), []
    for extent in reversed(shape):
        found.append(ek.remainder(rest, extent))
        rest = ek.floor_divide(rest, extent)
    return tuple(reversed(found))


def ravel_multi_index(multi_index: Sequence[Any], dims: Sequence[int]) -> Tensor:
    """Positions along each axis as positions in a row."""
    found: Any = 0
    for places, extent in zip(multi_index, dims, strict=True):
        found = found * extent + ek.asarray(places)
    return found


def float_power(x1: Any, x2: Any) -> Tensor:
    """x1 to the power x2, as floats."""
    return ek.pow(ek.asarray(x1) * 1.0, x2)


def logaddexp2(x1: Any, x2: Any) -> Tensor:
    """log2(2^x1 + 2^x2) without overflow."""
    two = 0.6931471805599453
    return ek.logaddexp(ek.asarray(x1) * two, ek.asarray(x2) * two) / two


def cbrt(x: Any) -> Tensor:
    """The cube root, of negative numbers too."""
    x = ek.asarray(x)
    return ek.sign(x) * ek.pow(ek.abs(x), 1 / 3)


def signbit(x: Any) -> Tensor:
    """Whether the sign is negative, also of -0.0."""
    x = ek.asarray(x)
    return ek.copysign(ek.ones_like(x), x) < 0


def isneginf(x: Any) -> Tensor:
    """Whether x is minus infinity."""
    return ek.logical_and(ek.isinf(x), ek.asarray(x) < 0)


def isposinf(x: Any) -> Tensor:
    """Whether x is infinity."""
    return ek.logical_and(ek.isinf(x), ek.asarray(x) > 0)


def positive(x: Any) -> Tensor:
    """x itself."""
    return ek.asarray(x)


def block(arrays: Any) -> Tensor:
    """A matrix of blocks, given as nested lists."""

    def joined(part: Any, depth: int) -> Any:
        if not isinstance(part, list):
            return ek.asarray(part)
        return ek.concatenate([joined(p, depth - 1) for p in part], -depth)

    def depth(part: Any) -> int:
        return 1 + max(depth(p) for p in part) if isinstance(part, list) else 0

    return joined(arrays, depth(arrays))


def compress(condition: Any, a: Any, axis: int | None = None) -> Tensor:
    """The slices where a vector of truth values holds."""
    x = ek.asarray(a)
    return ek.take(ek.ravel(x) if axis is None else x, ek.nonzero(ek.asarray(condition))[0], axis or 0)


def delete(arr: Any, obj: Any, axis: int | None = None) -> Tensor:
    """The tensor without some positions along an axis."""
    x = ek.asarray(arr)
    x = ek.ravel(x) if axis is None else x
    kept = np.delete(np.arange(x.shape[axis or 0]), np.asarray(obj))
    return ek.take(x, ek.asarray(kept), axis or 0)


def insert(arr: Any, obj: int, values: Any, axis: int | None = None) -> Tensor:
    """The tensor with values put in before a position along an axis."""
    x = ek.asarray(arr)
    x, along = (ek.ravel(x), 0) if axis is None else (x, axis)
    shape = list(x.shape)
    new = ek.asarray(values).astype(x.dtype)
    shape[along] = new.shape[along] if new.ndim == x.ndim else 1
    new = ek.broadcast_to(new, tuple(shape))
    return ek.concatenate([_part(x, along, 0, obj), new, _part(x, along, obj, x.shape[along])], along)
