"""Looking elements up and putting them back, under the names that PyTorch and NumPy give it.

All are composites of `take`, `scatter` and indexing. Where the two libraries differ in the order of arguments, a row
has the order of the library whose name it bears: `gather(x, axis, index)` but `take_along(x, indices, axis)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.errors import DTypeError, ShapeError
from eshkol.ops import dtypes, masks, shapes
from eshkol.ops.axes import moveaxis, tile
from eshkol.ops.creation import full, iota
from eshkol.ops.elementwise import cast, equal, where
from eshkol.ops.indexing import GROUP, at, position, positions, scatter, scatter_into, take, wrapped
from eshkol.ops.masks import held
from eshkol.ops.movement import expanded, reshape
from eshkol.ops.row import Draw, Sample, Shape, Value, composite, sample
from eshkol.ops.select import assigned, fitted, getitem
from eshkol.ops.slicing import slice_
from eshkol.ops.structural import STOP

_ANY = ("bool", "int", "float", "complex")

# --- one position for each element, as PyTorch has it ---------------------------------------------


def _covering(x: Value, axis: int, index: Value, *others: Value) -> tuple[int, tuple[slice, ...]]:
    """The axis, and the part of x that an index is about: as much of the other axes as the index has."""
    axis = shapes.axis(axis, x.ndim)
    positions(index)
    for other in (index, *others):
        if other.ndim != x.ndim:
            raise ShapeError(f"shapes {list(x.shape)} and {list(other.shape)} differ in how many axes they have")
    if any(n > m for k, (n, m) in enumerate(zip(index.shape, x.shape, strict=True)) if k != axis):
        raise ShapeError(f"an index of shape {list(index.shape)} reaches beyond shape {list(x.shape)} off axis {axis}")
    return axis, tuple(slice(None) if k == axis else slice(n) for k, n in enumerate(index.shape))


def _gather(x: Any, axis: int, index: Any) -> Any:
    result = np.empty(index.shape, x.dtype)
    for place in np.ndindex(index.shape):
        source = list(place)
        source[axis] = index[place]
        result[place] = x[tuple(source)]
    return result


def _sample(x: Shape, axis: int, index: Draw, *src: Any, **attrs: Any) -> Sample:
    return Sample((Draw(x), axis, index, *(Draw(s) for s in src)), attrs)


@composite(
    group=GROUP, reference=_gather, dtypes=_ANY, scheme=("gather", "tensor-gather"),
    samples=(
        _sample((3, 4), 1, at(2, 3, low=0, high=3)), _sample((3, 4), 0, at(5, 4, low=0, high=2)),
        _sample((3,), -1, at(0, low=0, high=0)), _sample((2, 3, 2), 1, at(1, 4, 2, low=-3, high=2)),
    ),
)  # fmt: skip
def gather(x: Value, axis: int, index: Value) -> Any:
    """The elements of x at positions along an axis, one for each element of the index, which may be the smaller one."""
    axis, part = _covering(x, axis, index)
    source, last = moveaxis(getitem(x, part), axis, -1), x.ndim - 1
    return moveaxis(take(source, moveaxis(index, axis, -1), last, last), -1, axis)


_MODES: dict[str, Any] = {
    "set": lambda old, new: new, "add": np.add, "max": np.maximum, "min": np.minimum, "mul": np.multiply,
}  # fmt: skip


def _comparable(x: Value, src: Any) -> None:
    """Refuse integers that x may not hold: cut to its bits, they would be greater or less than they are."""
    if isinstance(src, Value) and src.dtype.is_integer and x.dtype.is_integer:
        (least, most), (low, high) = x.dtype.limits(), src.dtype.limits()
        if low < least or high > most:
            raise DTypeError(f"{x.dtype} does not hold all of {src.dtype}, so the two are not compared",
                             hint=f"cast one of them, e.g. x.astype(ek.{src.dtype})")  # fmt: skip


def _scatter_along(x: Any, axis: int, index: Any, src: Any, mode: str = "set") -> Any:
    result = np.array(x, copy=True)
    for place in np.ndindex(index.shape):
        target = list(place)
        target[axis] = index[place]
        result[tuple(target)] = _MODES[mode](result[tuple(target)], src[place])
    return result


_PLACES = (
    ((3, 4), 1, at(2, 3, low=0, high=3), (2, 3)), ((3, 4), 0, at(3, 4, low=0, high=2), (4, 5)),
    ((3,), -1, at(0, low=0, high=0), (2,)), ((2, 3, 2), 1, at(1, 4, 2, low=-3, high=2), (1, 4, 2)),
)  # fmt: skip


@composite(
    group=GROUP, reference=_scatter_along, dtypes=("int", "float"), aliases=("put_along",),
    scheme=("tensor-scatter!",),
    samples=(*(_sample(*s) for s in _PLACES), _sample(*_PLACES[0], mode="min"), _sample(*_PLACES[1], mode="add")),
)  # fmt: skip
def scatter_along(x: Value, axis: int, index: Value, src: Value, mode: str = "set") -> Any:
    """x with an element of src at the position along an axis that the index has for it; the inverse of `gather`.

    Mode is "set", "add", "max", "min" or "mul", as in `scatter`; src may be larger than the index, or a number.
    """
    axis, part = _covering(x, axis, index)
    if mode in ("max", "min"):
        _comparable(x, src)
    new = fitted(x, src)
    if new.ndim:
        _covering(x, axis, index, new)
        if any(n > m for n, m in zip(index.shape, new.shape, strict=True)):
            raise ShapeError(f"an index of shape {list(index.shape)} wants more than a source of {list(new.shape)}")
        new = moveaxis(slice_(new, (0,) * x.ndim, index.shape) if new.shape != index.shape else new, axis, -1)
    slab, last = getitem(x, part), x.ndim - 1
    changed = scatter(moveaxis(slab, axis, -1), moveaxis(index, axis, -1), new, last, mode, last)
    changed = moveaxis(changed, -1, axis)
    return changed if slab.shape == x.shape else assigned(x, part, changed, False)


@composite(
    group=GROUP, reference=lambda x, axis, index, src: _scatter_along(x, axis, index, src, "add"),
    dtypes=("int", "float", "complex"), samples=tuple(_sample(*s) for s in _PLACES),
)  # fmt: skip
def scatter_add(x: Value, axis: int, index: Value, src: Value) -> Any:
    """x with elements of src added at positions along an axis, as PyTorch's scatter_add; see `scatter_along`."""
    return scatter_along(x, axis, index, src, "add")


@composite(
    group=GROUP, reference=lambda x, axis, index, src: _scatter_along(x, axis, index, src, "max"),
    dtypes=("int", "float"), samples=tuple(_sample(*s) for s in _PLACES),
)  # fmt: skip
def scatter_max(x: Value, axis: int, index: Value, src: Value) -> Any:
    """The greatest of x and the elements of src at positions along an axis; equal ones share the tangent."""
    return scatter_along(x, axis, index, src, "max")


# --- positions along an axis ----------------------------------------------------------------------


@composite(
    group=GROUP, reference=lambda x, axis, index: np.take(x, index, axis), dtypes=_ANY, scheme=("index-select",),
    samples=(_sample((3, 4), 1, at(5, low=0, high=3)), _sample((3,), 0, at(0, low=0, high=0))),
)  # fmt: skip
def index_select(x: Value, axis: int, index: Value) -> Any:
    """The slices of x at the positions of a vector along an axis."""
    if index.ndim > 1:
        raise ShapeError(f"index_select takes a vector, not shape {list(index.shape)}", hint="use take")
    return take(x, reshape(index, (index.size,)), axis)


def _index_add(x: Any, axis: int, index: Any, source: Any, alpha: Any = 1) -> Any:
    result = np.moveaxis(np.array(x, copy=True), axis, 0)
    for k, place in enumerate(index):
        result[place] += (alpha * np.moveaxis(source, axis, 0)[k]).astype(x.dtype)
    return np.moveaxis(result, 0, axis)


@composite(
    group=GROUP, reference=_index_add, dtypes=("int", "float", "complex"),
    samples=(
        _sample((3, 2), 0, at(4, low=0, high=2), (4, 2)), _sample((2, 3), -1, at(2, low=-3, high=2), (2, 2), alpha=3),
    ),
)  # fmt: skip
def index_add(x: Value, axis: int, index: Value, source: Value, alpha: Any = 1) -> Any:
    """x with slices of a source, times alpha, added at the positions of a vector along an axis."""
    return scatter_into(x, index, source if alpha == 1 else source * alpha, axis, True)


@composite(
    group=GROUP, reference=lambda x, indices, values: _put(x, indices, values), dtypes=_ANY,
    samples=(
        sample((2, 3), at(2, low=-6, high=5), (2,)), sample((2, 3), at(2, 2, low=0, high=5), (2,)),
        sample((3,), at(low=0, high=2), (4,)), sample((2,), at(0, low=0, high=0), (1,)),
    ),
)  # fmt: skip
def put(x: Value, indices: Value, values: Value) -> Any:
    """x with values at positions among all its elements in a row; values are repeated if there are too few."""
    flat, new = reshape(x, (x.size,)), fitted(x, values)
    count = indices.size
    if new.size == 0 and count:
        raise ShapeError("there are no values to put")
    new = (
        tile(reshape(new, (new.size,)), -(-count // max(new.size, 1)))
        if new.size < count
        else reshape(new, (new.size,))
    )
    new = slice_(new, 0, count) if new.size > count else new
    return reshape(scatter_into(flat, reshape(indices, (count,)), new), x.shape)


def _put(x: Any, indices: Any, values: Any) -> Any:
    result = np.array(x, copy=True)
    np.put(result, indices, values)
    return result


# --- masks ----------------------------------------------------------------------------------------


@composite(
    group=GROUP, reference=lambda x, mask, value: np.where(mask, value, x), dtypes=_ANY,
    samples=(
        sample((2, 3), Draw((2, 3), kind="bool"), ()), sample((2, 3), Draw((3,), kind="bool"), ()),
        sample((), Draw((), kind="bool"), ()), sample((0, 2), Draw((2,), kind="bool"), ()),
    ),
)  # fmt: skip
def masked_fill(x: Value, mask: Value, value: Value) -> Any:
    """x with one value wherever the mask holds, which broadcasts to x."""
    if len(mask.shape) > x.ndim or shapes.broadcast(mask.shape, x.shape) != x.shape:
        raise ShapeError(f"a mask of shape {list(mask.shape)} does not broadcast to shape {list(x.shape)}")
    filling = fitted(x, value)
    if filling.shape != ():
        raise ShapeError(f"one value fills, not shape {list(filling.shape)}", hint="use where for many")
    return where(mask, filling, x)


@composite(
    group=GROUP, reference=lambda x, mask: np.broadcast_arrays(x, mask)[0][np.broadcast_arrays(x, mask)[1]],
    dtypes=_ANY, concrete=(1,), scheme=("masked-select",),
    samples=(
        sample((2, 3), Draw((2, 3), kind="bool")), sample((2, 1), Draw((3,), kind="bool")),
        sample((), Draw((), kind="bool")), sample((0, 2), Draw((2,), kind="bool")),
    ),
)  # fmt: skip
def masked_select(x: Value, mask: Value) -> Any:
    """The elements of x where the mask holds, in a row; the two broadcast. The mask must be known."""
    if not mask.dtype.is_bool:
        raise DTypeError(f"a mask is of bools, not {mask.dtype}", hint="compare it with something, e.g. m != 0")
    shape = shapes.broadcast(x.shape, mask.shape)
    found = held(np.broadcast_to(mask.concrete(), shape))
    return take(reshape(expanded(x, shape), (shapes.count(shape),)), x.literal(found))


@composite(
    gives="tuple[Tensor, ...]",
    group=GROUP, reference=np.nonzero, dtypes=_ANY, concrete=(0,),
    samples=(sample((2, 3)), sample((4,)), sample((0, 2))),
)  # fmt: skip
def nonzero(x: Value) -> Any:
    """The positions of the elements that are not 0: one vector of int64 per axis. x must be known."""
    if x.ndim == 0:
        raise ShapeError("a scalar has no positions", hint="compare it with 0")
    return tuple(x.literal(found) for found in masks.nonzero(x.concrete()))


@composite(
    group=GROUP, reference=np.argwhere, dtypes=_ANY, concrete=(0,), samples=(sample((2, 3)), sample(()), sample((0, 2)))
)
def argwhere(x: Value) -> Any:
    """The positions of the elements that are not 0, one row of int64 each. x must be known."""
    known = x.concrete()
    return x.literal(np.stack(masks.nonzero(known), 1) if known.ndim else np.argwhere(known).astype(np.int64))


# --- classes --------------------------------------------------------------------------------------


def _classes(indices: Value, count: int | None, least: int = 0) -> int:
    """How many classes there are: as given, or as many as the indices, then known, show."""
    if count is None:
        positions(indices)
        return max(least, int(np.max(indices.concrete(), initial=-1)) + 1)
    return shapes.extents(count)[0]


def _one_hot(indices: Any, num_classes: int | None = None, dtype: Any = "int64") -> Any:
    count = int(indices.max(initial=-1)) + 1 if num_classes is None else num_classes
    return np.eye(count, dtype=dtypes.of(dtype).numpy)[indices]


@composite(
    group=GROUP, reference=_one_hot, dtypes=("int",), scheme=("one-hot", "tensor-one-hot"),
    samples=(
        sample(at(2, 3, low=0, high=4), num_classes=5), sample(at(low=0, high=2), num_classes=3, dtype="float32"),
        sample(at(0, low=0, high=0), num_classes=2),
    ),
)  # fmt: skip
def one_hot(indices: Value, num_classes: int | None = None, dtype: Any = "int64") -> Any:
    """For each class label a vector with 1 at its place and 0 elsewhere, as the last axis.

    Without a number of classes the labels must be known; one that is negative or too great is an error.
    """
    count = _classes(indices, num_classes)
    label = reshape(position(indices, count, wrap=False), (*indices.shape, 1))
    return cast(equal(label, iota.on(indices, (count,))), dtypes.of(dtype))


@composite(
    group=GROUP, reference=lambda weight, indices, padding_idx=None: weight[indices], scheme=("embedding",),
    samples=(
        sample((4, 3), at(2, 2, low=0, high=3)), sample((4, 2), at(low=0, high=3)),
        sample((3, 2), at(0, low=0, high=0)),
    ),
)  # fmt: skip
def embedding(weight: Value, indices: Value, padding_idx: int | None = None) -> Any:
    """The rows of a weight at indices; the row padding_idx is treated as a constant: it has no derivative."""
    if weight.ndim != 2:
        raise ShapeError(f"an embedding is a matrix of one row per class, not shape {list(weight.shape)}")
    if padding_idx is not None:
        padding = int(wrapped(padding_idx, weight.shape[0]))
        row = reshape(iota.on(weight, (weight.shape[0],)), (weight.shape[0], 1))
        weight = where(equal(row, padding), STOP(weight), weight)
    return take(weight, indices)


def _bincount(x: Any, weights: Any = None, minlength: int = 0, length: int | None = None) -> Any:
    found = np.bincount(x.astype(np.int64), None if weights is None else weights.astype(np.float64), minlength)
    return found if length is None else np.pad(found, (0, length - found.size))


@composite(
    group=GROUP, reference=_bincount,
    samples=(
        sample(at(6, low=0, high=3), length=5), sample(at(6, low=0, high=3), (6,), length=5),
        sample(at(0, low=0, high=0), length=2),
    ),
)  # fmt: skip
def bincount(x: Value, weights: Value | None = None, minlength: int = 0, length: int | None = None) -> Any:
    """How often each integer from 0 on occurs in a vector, or the sum of the weights where it does.

    The result has `length` elements; without it x must be known, and there are at least `minlength`.
    """
    if x.ndim != 1 or (weights is not None and weights.shape != x.shape):
        shown = list(x.shape) if weights is None else f"{list(x.shape)} with weights of {list(weights.shape)}"
        raise ShapeError(f"bincount takes a vector (and weights like it), not shape {shown}")
    count = _classes(x, length, minlength)
    what = full(x, (), 1, dtypes.int64) if weights is None else weights
    return scatter_into(full(x, (count,), 0, what.dtype), position(x, count, wrap=False), what, 0, True)
