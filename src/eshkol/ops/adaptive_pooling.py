"""Pooling into windows that fill a shape: as many as are wanted along each of the last axes.

Window i of `count` along n elements is from ⌊i·n/count⌋ to ⌈(i+1)·n/count⌉: windows may overlap, and all have elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import shapes
from eshkol.ops.correlation import each
from eshkol.ops.elementwise import where
from eshkol.ops.indexing import take
from eshkol.ops.movement import permute, reshape
from eshkol.ops.pooling import GROUP, REAL, greatest, shuffled, taken, window_argmax
from eshkol.ops.reductions import narrow, sum_, wide, wide_array
from eshkol.ops.row import HasAval, Shape, Value, composite, sample


class Parts(NamedTuple):
    """An axis of some extent parted into windows: the places of each (the last one repeated), which count, how many."""

    places: Any
    counting: Any
    sizes: Any

    @staticmethod
    def of(extent: int, count: int) -> Parts:
        first = np.arange(count) * extent // count
        last = -(-(np.arange(count) + 1) * extent // count)
        places = first[:, None] + np.arange(int(np.max(last - first)))
        return Parts(np.minimum(places, last[:, None] - 1), places < last[:, None], last - first)

    def regular(self) -> tuple[int, int] | None:
        """The size of all windows and how far each begins behind the one before, where these are the same for all."""
        steps = np.diff(self.places[:, 0])
        if not (self.sizes == self.sizes[0]).all() or not (steps == steps[:1]).all():
            return None
        return int(self.sizes[0]), int(steps[0]) if steps.size else 1


def _wanted(x: HasAval, count: int, given: Any) -> Shape:
    """The extents that the last axes shall have; None keeps one."""
    if len(x.shape) < count:
        raise ShapeError(f"shape {list(x.shape)} has no {count} axes to pool over")
    space = x.shape[len(x.shape) - count :]
    if 0 in space:
        raise ShapeError(f"the axes to pool over are empty in shape {list(x.shape)}")
    sizes = list(given) if isinstance(given, Sequence) else [given] * count
    kept = [extent if size is None else size for extent, size in zip(space, sizes, strict=False)]
    return each(kept if len(sizes) == count else sizes, count, "output size")


def adaptive_mean(count: int, x: Any, output_size: Any) -> Any:
    """Means of as many windows along the last axes as are wanted."""
    wanted = _wanted(x, count, output_size)
    found = wide(x)
    for axis, windows_along in enumerate(wanted, x.ndim - count):
        before, extent, behind = found.shape[:axis], found.shape[axis], found.shape[axis + 1 :]
        if extent % windows_along == 0:
            each_size = extent // windows_along
            found = sum_(reshape(found, (*before, windows_along, each_size, *behind)), axis + 1) / each_size
            continue
        parts = Parts.of(extent, windows_along)
        seen = take(found, found.literal(parts.places), axis)
        counting = found.literal(parts.counting.reshape(*parts.counting.shape, *(1,) * len(behind)))
        sizes = parts.sizes.astype(found.dtype.numpy).reshape(-1, *(1,) * len(behind))
        found = sum_(where(counting, seen, 0), axis + 1) / found.literal(sizes)
    return narrow(found, x.dtype)


def _adaptive_loop(count: int, function: Callable[..., Any]) -> Callable[..., Any]:
    """function(x, bounds) gives the results of one window."""

    def reference(x: Any, output_size: Any, **how: Any) -> Any:
        wanted, space = _wanted(x, count, output_size), x.shape[x.ndim - count :]
        found = []
        for window in np.ndindex(*wanted):
            bounds = [(w * n // m, -(-(w + 1) * n // m)) for w, n, m in zip(window, space, wanted, strict=True)]
            found.append(function(wide_array(x), bounds, **how))
        lead = x.shape[: x.ndim - count]
        parts = [np.stack(part, -1).reshape(*lead, *wanted) for part in zip(*found, strict=True)]
        return parts[0] if len(parts) == 1 else tuple(parts)

    return reference


def _mean_of(x: Any, bounds: Any) -> Any:
    taken: Any = (..., *(slice(*b) for b in bounds))
    return (x[taken].astype(np.result_type(x.dtype, np.float32)).mean(axis=tuple(range(-len(bounds), 0))),)


def _max_of(x: Any, bounds: Any, return_indices: bool = False) -> Any:
    lead = x.shape[: x.ndim - len(bounds)]
    space = x.shape[len(lead) :]
    places = [p for p in np.ndindex(*space) if all(f <= n < e for n, (f, e) in zip(p, bounds, strict=True))]
    flat = np.array([np.ravel_multi_index(p, space) for p in places])
    seen = x.reshape(*lead, -1)[..., flat]
    return (seen.max(-1), flat[seen.argmax(-1)]) if return_indices else (seen.max(-1),)


@composite(
    group=GROUP, reference=_adaptive_loop(1, _mean_of), method=False,
    samples=(sample((2, 6), output_size=3), sample((5,), output_size=3), sample((1, 3), output_size=4)),
)  # fmt: skip
def adaptive_avg_pool1d(x: Value, output_size: int | None) -> Any:
    """Means along the last axis of as many windows as are wanted; window i is from ⌊i·n/count⌋ to ⌈(i+1)·n/count⌉."""
    return adaptive_mean(1, x, output_size)


@composite(
    group=GROUP, reference=_adaptive_loop(2, _mean_of), method=False, scheme=("adaptive-avg-pool2d",),
    dtypes=("int", "float"),
    samples=(sample((2, 4, 6), output_size=2), sample((1, 5, 4), output_size=(3, None)), sample((2, 3), output_size=3)),
)  # fmt: skip
def adaptive_avg_pool2d(x: Value, output_size: int | Sequence[int | None] | None) -> Any:
    """Means of as many windows over the last two axes as are wanted; None keeps an extent."""
    return adaptive_mean(2, x, output_size)


@composite(
    group=GROUP, reference=_adaptive_loop(3, _mean_of), method=False,
    samples=(sample((1, 4, 2, 6), output_size=2), sample((3, 2, 5), output_size=(2, None, 3))),
)  # fmt: skip
def adaptive_avg_pool3d(x: Value, output_size: int | Sequence[int | None] | None) -> Any:
    """Means of as many windows over the last three axes as are wanted; None keeps an extent."""
    return adaptive_mean(3, x, output_size)


@composite(
    group=GROUP, reference=lambda x: wide_array(x).mean(axis=(-2, -1), keepdims=True), scheme=("global-avg-pool2d",),
    method=False, dtypes=("float", "complex"), samples=(sample((2, 3, 2)), sample((1, 2, 2, 2))),
)  # fmt: skip
def global_avg_pool2d(x: Value) -> Any:
    """The mean of the last two axes, which stay with extent 1."""
    return adaptive_mean(2, x, 1)


def _adaptive_max(count: int, x: Any, output_size: Any, return_indices: bool) -> Any:
    wanted, space = _wanted(x, count, output_size), x.shape[x.ndim - count :]
    lead, seen = x.ndim - count, x
    parts = [Parts.of(extent, n) for extent, n in zip(space, wanted, strict=True)]
    if None not in (regular := [part.regular() for part in parts]):
        sizes, steps = zip(*(found for found in regular if found is not None), strict=True)
        return greatest(count, x, sizes, return_indices, stride=steps)
    for n, part in enumerate(parts):  # the windows of each axis stand after it
        seen = take(seen, x.literal(part.places), lead + 2 * n)
    order = (*range(lead), *range(lead, seen.ndim, 2), *range(lead + 1, seen.ndim, 2))
    size = shapes.count(tuple(part.places.shape[1] for part in parts))
    seen = reshape(permute(seen, order), (*x.shape[:lead], *wanted, size))
    chosen = reshape(window_argmax(seen, (size,)), (*x.shape[:lead], *wanted))
    at = np.ix_(*(part.places.reshape(-1) for part in parts))
    table = np.ravel_multi_index(np.broadcast_arrays(*at), space).reshape([m for p in parts for m in p.places.shape])
    table = table.transpose(*range(0, 2 * count, 2), *range(1, 2 * count, 2)).reshape(-1)
    first = np.arange(shapes.count(wanted)).reshape(wanted) * size
    indices = take(x.literal(table), chosen + x.literal(first))
    values = taken(x, indices, count)
    return (values, indices) if return_indices else values


@composite(
    gives_if={"return_indices": (True, "tuple[Tensor, Tensor]")},
    group=GROUP, reference=_adaptive_loop(1, _max_of), method=False, dtypes=REAL,
    samples=(sample(shuffled(2, 6), output_size=3), sample(shuffled(5), output_size=3, return_indices=True)),
)  # fmt: skip
def adaptive_max_pool1d(x: Value, output_size: int | None, return_indices: bool = False) -> Any:
    """The greatest elements along the last axis of as many windows as are wanted; see adaptive_avg_pool1d."""
    return _adaptive_max(1, x, output_size, return_indices)


@composite(
    gives_if={"return_indices": (True, "tuple[Tensor, Tensor]")},
    group=GROUP, reference=_adaptive_loop(2, _max_of), method=False, dtypes=REAL,
    samples=(
        sample(shuffled(2, 4, 6), output_size=2), sample(shuffled(5, 4), output_size=(3, None), return_indices=True),
        sample(shuffled(1, 2, 3), output_size=(3, 2)),
    ),
)  # fmt: skip
def adaptive_max_pool2d(x: Value, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> Any:
    """The greatest elements of as many windows over the last two axes as are wanted; indices as of max_pool2d."""
    return _adaptive_max(2, x, output_size, return_indices)


@composite(
    gives_if={"return_indices": (True, "tuple[Tensor, Tensor]")},
    group=GROUP, reference=_adaptive_loop(3, _max_of), method=False, dtypes=REAL,
    samples=(
        sample(shuffled(1, 4, 2, 6), output_size=2),
        sample(shuffled(3, 2, 5), output_size=(2, None, 3), return_indices=True),
    ),
)  # fmt: skip
def adaptive_max_pool3d(x: Value, output_size: int | Sequence[int | None] | None, return_indices: bool = False) -> Any:
    """The greatest elements of as many windows over the last three axes as are wanted; indices as of max_pool3d."""
    return _adaptive_max(3, x, output_size, return_indices)
