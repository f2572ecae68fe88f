"""What `ek.lax` has beside rows of the op table: loops and branches, slices, shapes, products, order.

Comes in: tensors, numbers, functions. Goes out: tensors. Each is a few lines of what stands in `ek`.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from typing import Any

from eshkol.errors import ShapeError, TensorError
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor
from eshkol.tensors.ways import map_over

Code = Callable[..., Any]

# --- loops and branches ---------------------------------------------------------------------------


def scan(
    f: Code, init: Any, xs: Any = None, length: int | None = None, reverse: bool = False, unroll: int | bool = 1
) -> tuple[Any, Any]:
    """A value carried along the first axis of xs; `unroll` says nothing new: loops are native code."""
    found: tuple[Any, Any] = ek.scan(f, init, xs, length, reverse)
    return found


def fori_loop(lower: Any, upper: Any, body_fun: Code, init_val: Any, *, unroll: int | bool | None = None) -> Any:
    """init_val after body_fun(i, value) for i from lower to before upper."""
    return ek.fori_loop(lower, upper, body_fun, init_val)


def while_loop(cond_fun: Code, body_fun: Code, init_val: Any) -> Any:
    """init_val after body_fun has been applied for as long as cond_fun holds; it has forward derivatives only."""
    return ek.while_loop(cond_fun, body_fun, init_val)


def cond(pred: Any, true_fun: Code, false_fun: Code, *operands: Any) -> Any:
    """true_fun of the operands where pred holds, else false_fun."""
    return ek.cond(pred, true_fun, false_fun, *operands)


def map(f: Code, xs: Any, *, batch_size: int | None = None) -> Any:
    """f of each element along the first axis, one after another; `batch_size` says nothing new."""
    return map_over(f, xs)


# --- slices ---------------------------------------------------------------------------------------


def _starts(x: Any, start_indices: Any, sizes: Sequence[int]) -> list[Any]:
    """Where a slice begins along each axis, brought so far inside that it fits, as JAX does."""
    starts = list(start_indices)
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        raise ShapeError(
            f"a slice of shape {list(x.shape)} has {x.ndim} starts and sizes, not {len(starts)} and {len(sizes)}",
            span=ek.here(),
        )
    found = []
    for start, size, extent in zip(starts, sizes, x.shape, strict=True):
        if not 0 <= size <= extent:
            raise ShapeError(f"a slice of {size} does not fit an axis of {extent}", span=ek.here())
        known = isinstance(start, int)
        wrapped = start + extent if known and start < 0 else start
        if not known:
            wrapped = ek.where(ek.asarray(start) < 0, ek.asarray(start) + extent, start)
        found.append(
            builtins.max(0, builtins.min(wrapped, extent - size)) if known else ek.clamp(wrapped, 0, extent - size)
        )
    return found


def _window(x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> tuple[Any, ...]:
    """The index of a window: slices where all starts are known, else positions that broadcast."""
    if builtins.all(isinstance(s, int) for s in starts):
        return tuple(builtins.slice(s, s + n) for s, n in zip(starts, sizes, strict=True))
    index = []
    for k, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        shape = [1] * x.ndim
        shape[k] = size
        index.append((ek.arange(size) + start).reshape(tuple(shape)))
    return tuple(index)


def dynamic_slice(operand: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Tensor:
    """A slice of given sizes that begins where the indices say; one that would reach over an end is moved inside."""
    x = ek.asarray(operand)
    return x[_window(x, _starts(x, start_indices, slice_sizes), slice_sizes)]


def dynamic_update_slice(operand: Any, update: Any, start_indices: Any) -> Tensor:
    """The operand with an update put where the indices say; one that would reach over an end is moved inside."""
    x, new = ek.asarray(operand), ek.asarray(update)
    return x.at[_window(x, _starts(x, start_indices, new.shape), new.shape)].set(new)


def _one_axis(x: Any, axis: int, value: Any, others: Sequence[Any]) -> list[Any]:
    found = list(others)
    found[axis % x.ndim] = value
    return found


def dynamic_slice_in_dim(operand: Any, start_index: Any, slice_size: int, axis: int = 0) -> Tensor:
    """`dynamic_slice` along one axis."""
    x = ek.asarray(operand)
    starts = _one_axis(x, axis, start_index, [0] * x.ndim)
    return dynamic_slice(x, starts, _one_axis(x, axis, slice_size, x.shape))


def dynamic_update_slice_in_dim(operand: Any, update: Any, start_index: Any, axis: int) -> Tensor:
    """`dynamic_update_slice` along one axis."""
    x = ek.asarray(operand)
    return dynamic_update_slice(x, update, _one_axis(x, axis, start_index, [0] * x.ndim))


def dynamic_index_in_dim(operand: Any, index: Any, axis: int = 0, keepdims: bool = True) -> Tensor:
    """The slice at one position along an axis."""
    found = dynamic_slice_in_dim(operand, index, 1, axis)
    return found if keepdims else ek.squeeze(found, axis)


def dynamic_update_index_in_dim(operand: Any, update: Any, index: Any, axis: int) -> Tensor:
    """The operand with another slice at one position along an axis."""
    x, new = ek.asarray(operand), ek.asarray(update)
    return dynamic_update_slice_in_dim(x, ek.unsqueeze(new, axis) if new.ndim < x.ndim else new, index, axis)


def slice(operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Any = None) -> Tensor:
    """The elements from start to before limit, every stride-th, along each axis."""
    steps = strides or [1] * len(start_indices)
    index = tuple(builtins.slice(*some) for some in zip(start_indices, limit_indices, steps, strict=True))
    return ek.asarray(operand)[index]


def slice_in_dim(
    operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Tensor:
    """`slice` along one axis."""
    x = ek.asarray(operand)
    return x[
        tuple(_one_axis(x, axis, builtins.slice(start_index, limit_index, stride), [builtins.slice(None)] * x.ndim))
    ]


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Tensor:
    """The slice at a known position along an axis."""
    x = ek.asarray(operand)
    at = builtins.slice(index, index + 1 or None) if keepdims else index
    return x[tuple(_one_axis(x, axis, at, [builtins.slice(None)] * x.ndim))]


# --- shapes ---------------------------------------------------------------------------------------


def broadcast(operand: Any, sizes: Sequence[int]) -> Tensor:
    """The operand repeated along new axes in front."""
    x = ek.asarray(operand)
    return ek.expand(x, (*sizes, *x.shape))


def broadcast_in_dim(operand: Any, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Tensor:
    """The operand in another shape, its axes at the given places, repeated along the others."""
    x = ek.asarray(operand)
    between = [1] * len(shape)
    for axis, place in enumerate(broadcast_dimensions):
        between[place] = x.shape[axis]
    return ek.expand(ek.reshape(x, tuple(between)), tuple(shape))


def reshape(operand: Any, new_sizes: Sequence[int], dimensions: Any = None) -> Tensor:
    """The elements in the same order, under another shape."""
    x = ek.asarray(operand)
    return ek.reshape(x if dimensions is None else ek.permute(x, tuple(dimensions)), tuple(new_sizes))


def collapse(operand: Any, start_dimension: int, stop_dimension: int | None = None) -> Tensor:
    """A run of axes made one, up to before the last."""
    x = ek.asarray(operand)
    stop = x.ndim if stop_dimension is None else stop_dimension % (x.ndim + 1)
    return ek.flatten(x, start_dimension, stop - 1)


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Tensor:
    """The operand with a value before, after and between its elements: (low, high, interior) for each axis."""
    x = ek.asarray(operand)
    low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    return ek.pad_constant(x, ek.asarray(padding_value).astype(x.dtype), low, high, interior)


def concatenate(operands: Sequence[Any], dimension: int) -> Tensor:
    """Tensors after one another along an axis."""
    return ek.concatenate(list(operands), dimension)


def iota(dtype: Any, size: int) -> Tensor:
    """0, 1, 2 … of a dtype."""
    return ek.iota((size,), 0, dtype)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int) -> Tensor:
    """0, 1, 2 … along an axis, the same along the others."""
    return ek.iota(tuple(shape), dimension, dtype)


# --- choices, products, order ---------------------------------------------------------------------


def clamp(min: Any, x: Any, max: Any) -> Tensor:
    """x brought between min and max."""
    return ek.clamp(x, min, max)


def select(pred: Any, on_true: Any, on_false: Any) -> Tensor:
    """on_true where pred holds, else on_false."""
    return ek.where(pred, on_true, on_false)


def select_n(which: Any, *cases: Any) -> Tensor:
    """For each element the case whose number stands there; truth values choose the second of two."""
    place = ek.asarray(which)
    if place.dtype.is_bool:
        if len(cases) != 2:
            raise TensorError(f"truth values choose one of two cases, not of {len(cases)}", span=ek.here())
        return ek.where(place, cases[1], cases[0])
    found = ek.asarray(cases[0])
    for k, case in enumerate(cases[1:], 1):
        found = ek.where(place >= k, case, found)
    return found


def convert_element_type(operand: Any, new_dtype: Any) -> Tensor:
    """The operand in another dtype."""
    return ek.cast(ek.asarray(operand), new_dtype)


def integer_pow(x: Any, y: int) -> Tensor:
    """x to a whole power."""
    return ek.pow(x, y)


def cbrt(x: Any) -> Tensor:
    """The cube root, of negative numbers too."""
    x = ek.asarray(x)
    return ek.sign(x) * ek.pow(ek.abs(x), 1 / 3)


def dot(lhs: Any, rhs: Any, **how: Any) -> Tensor:
    """The product of vectors and matrices; precision is that of the dtype."""
    return ek.matmul(lhs, rhs)


def dot_general(lhs: Any, rhs: Any, dimension_numbers: Any, **how: Any) -> Tensor:
    """The sum of products over pairs of axes, with pairs of axes that count examples in front."""
    (over_left, over_right), (batch_left, batch_right) = dimension_numbers
    x, y = ek.asarray(lhs), ek.asarray(rhs)
    letters = iter("abcdefghijklmnopqrstuvwxyz")
    left, right = [next(letters) for _ in range(x.ndim)], [next(letters) for _ in range(y.ndim)]
    for a, b in (*zip(over_left, over_right, strict=True), *zip(batch_left, batch_right, strict=True)):
        right[b] = left[a]
    gone, shared = {left[a] for a in over_left}, [left[a] for a in batch_left]
    rest = [c for c in (*left, *right) if c not in gone and c not in shared]
    return ek.einsum(f"{''.join(left)},{''.join(right)}->{''.join((*shared, *rest))}", x, y)


def reduce_max(operand: Any, axes: Sequence[int]) -> Tensor:
    """The greatest element along axes."""
    return ek.max(operand, axis=tuple(axes))


def reduce_min(operand: Any, axes: Sequence[int]) -> Tensor:
    """The least element along axes."""
    return ek.min(operand, axis=tuple(axes))


def reduce_and(x: Any, axes: Sequence[int]) -> Tensor:
    """Whether all elements along axes hold."""
    return ek.all(x, tuple(axes))


def reduce_or(x: Any, axes: Sequence[int]) -> Tensor:
    """Whether an element along axes holds."""
    return ek.any(x, tuple(axes))


def argmax(operand: Any, axis: int, index_dtype: Any = "int64") -> Tensor:
    """Where the greatest element along an axis is."""
    return ek.cast(ek.argmax(operand, axis), index_dtype)


def argmin(operand: Any, axis: int, index_dtype: Any = "int64") -> Tensor:
    """Where the least element along an axis is."""
    return ek.cast(ek.argmin(operand, axis), index_dtype)


def cummax(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The greatest of all elements up to each."""
    return _maybe_flipped(lambda x: ek.cummax(x, axis)[0], operand, axis, reverse)


def cummin(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The least of all elements up to each."""
    return _maybe_flipped(lambda x: ek.cummin(x, axis)[0], operand, axis, reverse)


def cumlogsumexp(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """log of the sum of e^x of all elements up to each, without overflow."""
    return ek.associative_scan(ek.logaddexp, operand, reverse, axis)


def _maybe_flipped(function: Code, operand: Any, axis: int, reverse: bool) -> Tensor:
    x = ek.asarray(operand)
    return ek.flip(function(ek.flip(x, axis)), axis) if reverse else function(x)


def cumsum(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The sum of all elements up to each."""
    return ek.cumsum(operand, axis, reverse)


def cumprod(operand: Any, axis: int = 0, reverse: bool = False) -> Tensor:
    """The product of all elements up to each."""
    return ek.cumprod(operand, axis, reverse)


def sort(operand: Any, dimension: int = -1, is_stable: bool = True) -> Tensor:
    """The elements in order along an axis."""
    return ek.sort(operand, dimension)[0]


def sort_key_val(keys: Any, values: Any, dimension: int = -1, is_stable: bool = True) -> Any:
    """The keys in order along an axis, and the values in the order of their keys."""
    found, places = ek.sort(keys, dimension)
    return found, ek.take_along(values, places, dimension)


def top_k(operand: Any, k: int) -> Any:
    """The k greatest along the last axis, and where they are."""
    return ek.topk(operand, k)
