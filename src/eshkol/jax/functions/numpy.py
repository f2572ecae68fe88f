"""Functions of jax.numpy whose arguments are NumPy's where the row of the op table has others.

Comes in: tensors, arrays, numbers, lists. Goes out: tensors.
"""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


def _as(made: Any, dtype: Any) -> Tensor:
    return made if dtype is None else ek.cast(made, dtype)


# --- making ---------------------------------------------------------------------------------------


def array(object: Any, dtype: Any = None, copy: bool = True, ndmin: int = 0) -> Tensor:
    """A tensor of whatever is given."""
    made = ek.tensor(object) if dtype is None else ek.cast(ek.asarray(object), dtype)
    return made.reshape((1,) * (ndmin - made.ndim) + tuple(made.shape)) if made.ndim < ndmin else made


def asarray(a: Any, dtype: Any = None, **how: Any) -> Tensor:
    """A tensor of whatever is given; a tensor itself."""
    return _as(ek.asarray(a), dtype)


def zeros(shape: Any, dtype: Any = None) -> Tensor:
    """Zeros."""
    return ek.zeros(shape, dtype)


def ones(shape: Any, dtype: Any = None) -> Tensor:
    """Ones."""
    return ek.ones(shape, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Tensor:
    """One value everywhere; a tensor of values broadcasts."""
    if isinstance(fill_value, bool | int | float | complex):
        return ek.full(shape, fill_value, dtype)
    return _as(ek.broadcast_to(ek.asarray(fill_value), shape), dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Ones on a diagonal, zeros elsewhere."""
    return ek.eye(N, M, k, dtype)


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Tensor:
    """Numbers at equal distances, to before stop."""
    return ek.arange(start, stop, 1 if step is None else step, dtype)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None
) -> Any:
    """num numbers at equal distances from start to stop."""
    made = ek.linspace(start, stop, num, endpoint, dtype)
    return (made, (stop - start) / (num - endpoint)) if retstep else made


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: float = 10.0, dtype: Any = None
) -> Tensor:
    """Numbers at equal ratios."""
    return ek.logspace(start, stop, num, endpoint, base, dtype)


def geomspace(start: float, stop: float, num: int = 50, endpoint: bool = True, dtype: Any = None) -> Tensor:
    """Numbers at equal ratios from start to stop."""
    return ek.logspace(math.log10(start), math.log10(stop), num, endpoint, 10.0, dtype)


def meshgrid(*xi: Any, indexing: str = "xy", sparse: bool = False) -> list[Any]:
    """Vectors as coordinates of a grid."""
    if sparse:
        raise TensorError("meshgrid takes no sparse=True; axes of extent 1 broadcast: x[:, None]", span=ek.here())
    return list(ek.meshgrid([ek.asarray(x) for x in xi], indexing))


def diagflat(v: Any, k: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""
    return ek.diag(ek.ravel(ek.asarray(v)), k)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector in columns, falling unless said."""
    x = ek.asarray(x)
    powers = ek.arange(x.shape[0] if N is None else N)
    made = ek.unsqueeze(x, -1) ** powers.astype(x.dtype)
    return made if increasing else ek.flip(made, -1)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> Tensor:
    """Ones on and below a diagonal, zeros above."""
    return ek.tri(N, M, k, dtype)


# --- shapes ---------------------------------------------------------------------------------------


def transpose(a: Any, axes: Any = None) -> Tensor:
    """The axes in another order; in reverse without any."""
    x = ek.asarray(a)
    return ek.permute(x, tuple(reversed(range(x.ndim))) if axes is None else tuple(axes))


def reshape(a: Any, shape: Any, order: str = "C") -> Tensor:
    """The elements in the same order, under another shape."""
    if order != "C":
        raise TensorError(
            f"reshape knows the order 'C', not {order!r}", span=ek.here(), hint="transpose before and after"
        )
    return ek.reshape(ek.asarray(a), shape)


def repeat(a: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None) -> Tensor:
    """Every element several times along an axis; of a list, each as often as it says."""
    x = ek.asarray(a)
    if isinstance(repeats, int):
        return ek.repeat(x, repeats, axis)
    x = ek.ravel(x) if axis is None else x
    counts = np.broadcast_to(np.asarray(repeats), (x.shape[axis or 0],))
    return ek.take(x, ek.asarray(np.repeat(np.arange(counts.size), counts)), axis or 0)


def pad(array: Any, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Tensor:
    """Elements before and after along each axis."""
    if mode not in ("constant", "edge", "reflect", "wrap"):
        raise TensorError(f"pad knows constant, edge, reflect and wrap, not {mode!r}", span=ek.here())
    return ek.pad(ek.asarray(array), pad_width, constant_values, mode)


def _sections(x: Any, given: Any, axis: int, even: bool) -> Any:
    extent = x.shape[axis]
    if isinstance(given, int):
        if even and extent % given:
            raise ShapeError(f"{extent} elements are not {given} equal parts", span=ek.here(), hint="use array_split")
        more = extent % given
        return list(ek.split(x, [extent // given + (k < more) for k in range(given)], axis))
    cuts = [0, *(builtins.min(int(c), extent) if c >= 0 else extent + int(c) for c in given), extent]
    return list(ek.split(x, [b - a for a, b in pairwise(cuts)], axis))


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Equal parts along an axis, or parts that end at given places."""
    found: list[Any] = _sections(ek.asarray(ary), indices_or_sections, axis, True)
    return found


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Parts along an axis, of nearly equal extents."""
    found: list[Any] = _sections(ek.asarray(ary), indices_or_sections, axis, False)
    return found


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts along the second axis, of a vector along its only one."""
    x = ek.asarray(ary)
    return split(x, indices_or_sections, 0 if x.ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Parts along the first axis."""
    return split(ary, indices_or_sections, 0)


def _at_least(rank: int, x: Any) -> Tensor:
    x = ek.asarray(x)
    if rank == 3 and x.ndim == 2:
        return ek.unsqueeze(x, -1)
    if rank == 3 and x.ndim == 1:
        return x.reshape((1, -1, 1))
    return x.reshape((1,) * (rank - x.ndim) + tuple(x.shape)) if x.ndim < rank else x


def atleast_1d(*arys: Any) -> Any:
    """One axis at least."""
    return _at_least(1, arys[0]) if len(arys) == 1 else [_at_least(1, x) for x in arys]


def atleast_2d(*arys: Any) -> Any:
    """Two axes at least."""
    return _at_least(2, arys[0]) if len(arys) == 1 else [_at_least(2, x) for x in arys]


def atleast_3d(*arys: Any) -> Any:
    """Three axes at least."""
    return _at_least(3, arys[0]) if len(arys) == 1 else [_at_least(3, x) for x in arys]


def dstack(tup: Sequence[Any]) -> Tensor:
    """Tensors joined along the third axis."""
    return ek.concatenate([_at_least(3, x) for x in tup], 2)


def column_stack(tup: Sequence[Any]) -> Tensor:
    """Vectors as columns of a matrix."""
    return ek.concatenate([ek.asarray(x).reshape((-1, 1)) if ek.asarray(x).ndim < 2 else x for x in tup], 1)


def append(arr: Any, values: Any, axis: int | None = None) -> Tensor:
    """Values after a tensor, along an axis or in a row."""
    parts = [ek.asarray(arr), ek.asarray(values)]
    return ek.concatenate([ek.ravel(x) for x in parts] if axis is None else parts, axis or 0)


def fliplr(m: Any) -> Tensor:
    """Columns in reverse order."""
    return ek.flip(m, 1)


def flipud(m: Any) -> Tensor:
    """Rows in reverse order."""
    return ek.flip(m, 0)


def rollaxis(a: Any, axis: int, start: int = 0) -> Tensor:
    """An axis moved to before another."""
    x = ek.asarray(a)
    axis, start = axis % x.ndim, start + x.ndim if start < 0 else start
    return ek.moveaxis(x, axis, start - 1 if axis < start else start)


# --- reductions -----------------------------------------------------------------------------------


def _reduced(row: str, a: Any, axis: Any, dtype: Any, keepdims: bool, initial: Any, where: Any, nothing: Any) -> Tensor:
    x = ek.asarray(a)
    if where is not None:
        x = ek.where(where, x, nothing)
    made = getattr(ek, row)(_as(x, dtype), axis=axis, keepdims=keepdims)
    return made if initial is None else {"sum": ek.add, "prod": ek.mul, "max": ek.maximum, "min": ek.minimum}[row](
        made, initial)  # fmt: skip


def sum(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Tensor:
    """The sum along axes."""
    return _reduced("sum", a, axis, dtype, keepdims, initial, where, 0)


def prod(
    a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None
) -> Tensor:
    """The product along axes."""
    return _reduced("prod", a, axis, dtype, keepdims, initial, where, 1)


def max(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Tensor:
    """The greatest element along axes."""
    return _reduced("max", a, axis, None, keepdims, initial, where, initial)


def min(a: Any, axis: Any = None, keepdims: bool = False, initial: Any = None, where: Any = None) -> Tensor:
    """The least element along axes."""
    return _reduced("min", a, axis, None, keepdims, initial, where, initial)


def median(a: Any, axis: Any = None, keepdims: bool = False) -> Tensor:
    """The middle element along an axis, or the mean of the middle two."""
    return ek.median(a, axis=axis, keepdims=keepdims)


def mean(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False, where: Any = None) -> Tensor:
    """The mean along axes."""
    x = _as(ek.asarray(a), dtype)
    if where is None:
        return ek.mean(x, axis, keepdims=keepdims)
    counted = ek.broadcast_to(ek.asarray(where), x.shape)
    return sum(x, axis, None, keepdims, None, counted) / ek.count_nonzero(counted, axis, keepdims=keepdims)


def var(a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The variance along axes, divided by n - ddof."""
    return ek.var(_as(ek.asarray(a), dtype), axis, ddof, keepdims)


def std(a: Any, axis: Any = None, dtype: Any = None, ddof: int = 0, keepdims: bool = False) -> Tensor:
    """The standard deviation along axes, of n - ddof."""
    return ek.std(_as(ek.asarray(a), dtype), axis, ddof, keepdims)


def cumsum(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The sum of all elements up to each; without an axis in a row."""
    x = ek.asarray(a)
    return _as(ek.cumsum(ek.ravel(x) if axis is None else x, axis or 0), dtype)


def cumprod(a: Any, axis: int | None = None, dtype: Any = None) -> Tensor:
    """The product of all elements up to each; without an axis in a row."""
    x = ek.asarray(a)
    return _as(ek.cumprod(ek.ravel(x) if axis is None else x, axis or 0), dtype)


# --- order, choice, places ------------------------------------------------------------------------


def sort(a: Any, axis: int | None = -1, *, stable: bool = True, descending: bool = False) -> Tensor:
    """The elements in order along an axis."""
    x = ek.asarray(a)
    return ek.sort(ek.ravel(x) if axis is None else x, -1 if axis is None else axis, descending)[0]


def argsort(a: Any, axis: int | None = -1, *, stable: bool = True, descending: bool = False) -> Tensor:
    """The positions that would put the elements in order."""
    x = ek.asarray(a)
    return ek.argsort(ek.ravel(x) if axis is None else x, -1 if axis is None else axis, descending)


def take(a: Any, indices: Any, axis: int | None = None, mode: str | None = None, **how: Any) -> Tensor:
    """The elements at positions along an axis; without one, of all elements in a row."""
    x, places = ek.asarray(a), ek.asarray(indices)
    extent = x.size if axis is None else x.shape[axis]
    if mode == "clip":
        places = ek.clamp(places, 0, extent - 1)
    elif mode == "wrap":
        places = ek.remainder(places, extent)
    elif mode is not None:
        raise TensorError(f"take knows the modes clip and wrap, not {mode!r}", span=ek.here())
    return ek.take(ek.ravel(x) if axis is None else x, places, axis or 0)


def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """x where the condition holds, else y; with the condition alone, where it holds."""
    return ek.nonzero(condition) if x is None and y is None else ek.where(condition, x, y)


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> Tensor:
    """The first choice whose condition holds, element by element."""
    found: Any = default
    for condition, choice in reversed(list(zip(condlist, choicelist, strict=True))):
        found = ek.where(condition, choice, found)
    return found


def choose(a: Any, choices: Sequence[Any]) -> Tensor:
    """For each element the choice of that number."""
    found, places = ek.asarray(choices[0]), ek.asarray(a)
    for k, choice in enumerate(choices[1:], 1):
        found = ek.where(ek.equal(places, k), choice, found)
    return found


def clip(arr: Any, min: Any = None, max: Any = None) -> Tensor:
    """The elements brought between two bounds."""
    return ek.clamp(ek.asarray(arr), min, max)


def searchsorted(a: Any, v: Any, side: str = "left") -> Tensor:
    """Where values would have to be put in to keep a sorted."""
    return ek.searchsorted(ek.asarray(a), ek.asarray(v), side == "right")


def flatnonzero(a: Any) -> Tensor:
    """The positions of what is not 0, in a row."""
    return ek.nonzero(ek.ravel(ek.asarray(a)))[0]


def tensordot(a: Any, b: Any, axes: Any = 2) -> Tensor:
    """The sum of products over axes."""
    return ek.tensordot(a, b, axes)


def einsum(subscripts: Any, *operands: Any, **how: Any) -> Tensor:
    """The sum of products that the subscripts say, a string in front or labels behind each operand."""
    return ek.einsum(subscripts, *operands)


def round(a: Any, decimals: int = 0) -> Tensor:
    """The nearest number with so many places after the point."""
    return ek.round(a) if decimals == 0 else ek.round(a * 10.0**decimals) / 10.0**decimals


def divmod(x1: Any, x2: Any) -> tuple[Any, Any]:
    """Quotients and remainders."""
    return ek.floor_divide(x1, x2), ek.remainder(x1, x2)


def angle(z: Any, deg: bool = False) -> Tensor:
    """The angle of complex numbers."""
    z = ek.asarray(z)
    made = ek.atan2(ek.imag(z), ek.real(z))
    return ek.rad2deg(made) if deg else made


def array_equal(a1: Any, a2: Any, equal_nan: bool = False) -> Tensor:
    """Whether shapes and all elements are equal."""
    x, y = ek.asarray(a1), ek.asarray(a2)
    if x.shape != y.shape:
        return ek.tensor(False)
    same = ek.equal(x, y)
    return ek.all(ek.logical_or(same, ek.logical_and(ek.isnan(x), ek.isnan(y))) if equal_nan else same)


def astype(x: Any, dtype: Any) -> Tensor:
    """x in another dtype."""
    return ek.cast(ek.asarray(x), dtype)


def shape(a: Any) -> tuple[int, ...]:
    """The extents."""
    found: tuple[int, ...] = tuple(ek.asarray(a).shape)
    return found


def size(a: Any, axis: int | None = None) -> int:
    """How many elements there are, or along an axis."""
    x = ek.asarray(a)
    return int(x.size if axis is None else x.shape[axis])


def ndim(a: Any) -> int:
    """How many axes there are."""
    return int(ek.asarray(a).ndim)


amax, amin = max, min
