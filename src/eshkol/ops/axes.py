"""Axes added, removed, merged, exchanged and repeated: composites of reshape, permute, expand and flip."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import shapes
from eshkol.ops.movement import GROUP, expand, expanded, flip, permute, reshape
from eshkol.ops.row import Draw, Value, composite, sample
from eshkol.ops.shapes import Axes, broadcast

_ANY = ("bool", "int", "float", "complex")


@composite(
    group=GROUP, windows=True, reference=lambda x, axis=None: np.squeeze(x, axis), dtypes=_ANY, scheme=("squeeze",),
    samples=(
        sample((1, 2, 1)), sample((1, 2, 1), axis=-1), sample((1, 2, 1), axis=(0, 2)), sample(()),
        sample((1, 0), axis=0),
    ),
)  # fmt: skip
def squeeze(x: Value, axis: Axes = None) -> Any:
    """x without axes of extent 1: those given (which must have it), or all."""
    gone = shapes.axes(axis, x.ndim) if axis is not None else tuple(k for k, n in enumerate(x.shape) if n == 1)
    for k in gone:
        if x.shape[k] != 1:
            raise ShapeError(f"axis {k} of shape {list(x.shape)} is not of extent 1", hint="leave that axis out")
    return reshape(x, shapes.without(x.shape, gone)) if gone else x


@composite(
    group=GROUP, windows=True, reference=lambda x, axis: np.expand_dims(x, axis), dtypes=_ANY, scheme=("unsqueeze",),
    aliases=("expand_dims",), samples=(sample((2, 3), axis=1), sample((2,), axis=(0, -1)), sample((), axis=0)),
)  # fmt: skip
def unsqueeze(x: Value, axis: int | Sequence[int]) -> Any:
    """x with new axes of extent 1, at these places of the result."""
    count = 1 if isinstance(axis, int) else len(axis)
    new = shapes.axes(axis, x.ndim + count)
    rest = iter(x.shape)
    return reshape(x, tuple(1 if k in new else next(rest) for k in range(x.ndim + count)))


def _flatten(x: Any, start_axis: int = 0, end_axis: int = -1) -> Any:
    if x.ndim == 0:
        return x.reshape(1)
    first, last = start_axis % x.ndim, end_axis % x.ndim
    return x.reshape(*x.shape[:first], shapes.count(x.shape[first : last + 1]), *x.shape[last + 1 :])


@composite(
    group=GROUP, windows=True, reference=_flatten, dtypes=_ANY, scheme=("flatten",), aliases=("ravel",),
    samples=(sample((2, 3, 2)), sample((2, 3, 2), start_axis=1), sample((2, 3, 2), end_axis=1), sample(()),
             sample((0, 2))),
)  # fmt: skip
def flatten(x: Value, start_axis: int = 0, end_axis: int = -1) -> Any:
    """x with a run of axes made one, by default all; a scalar gets an axis."""
    if x.ndim == 0:
        return reshape(x, (1,))
    first, last = shapes.axis(start_axis, x.ndim), shapes.axis(end_axis, x.ndim)
    if last < first:
        raise ShapeError(f"axis {start_axis} stands behind axis {end_axis}")
    return reshape(x, (*x.shape[:first], shapes.count(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def permuted(x: Any, axes: Sequence[int]) -> Any:
    """x with its axes in another order, itself where that is the order they have."""
    return x if list(axes) == list(range(x.ndim)) else permute(x, axes)


def _transpose_reference(x: Any, axis0: Any = None, axis1: Any = None) -> Any:
    return np.transpose(x, axis0) if axis1 is None else np.swapaxes(x, axis0, axis1)


@composite(
    group=GROUP, windows=True, reference=_transpose_reference, dtypes=_ANY, scheme=("transpose", "tensor-transpose"),
    samples=(
        sample((2, 3)), sample((2, 3, 4)), sample((2, 3, 4), axis0=0, axis1=-1), sample((3,)),
        sample((2, 3, 4), axis0=(1, 2, 0)),
    ),
)  # fmt: skip
def transpose(x: Value, axis0: Any = None, axis1: int | None = None) -> Any:
    """Two axes exchanged; with no axes given all in reverse order, with a sequence of axes in that order."""
    if axis0 is None and axis1 is None:
        return permuted(x, range(x.ndim)[::-1])
    if axis1 is not None:
        return swapaxes(x, axis0, axis1)
    if isinstance(axis0, int):
        raise ShapeError("a transpose needs two axes, or an order of all", hint="transpose(x, 0, 1)")
    return permute(x, axis0)


@composite(
    windows=True,
    group=GROUP, reference=lambda x, axis0, axis1: np.swapaxes(x, axis0, axis1), dtypes=_ANY, aliases=("swapdims",),
    samples=(sample((2, 3, 4), axis0=0, axis1=2), sample((2, 3), axis0=-1, axis1=-1)),
)  # fmt: skip
def swapaxes(x: Value, axis0: int, axis1: int) -> Any:
    """Two axes exchanged."""
    one, other = shapes.axis(axis0, x.ndim), shapes.axis(axis1, x.ndim)
    return permuted(x, [other if k == one else one if k == other else k for k in range(x.ndim)])


@composite(
    group=GROUP, windows=True, reference=np.moveaxis, dtypes=_ANY, aliases=("movedim",),
    samples=(
        sample((2, 3, 4), source=0, destination=-1), sample((2, 3, 4), source=(0, 1), destination=(-1, 0)),
    ),
)  # fmt: skip
def moveaxis(x: Value, source: int | Sequence[int], destination: int | Sequence[int]) -> Any:
    """Axes moved to other places; the rest keeps its order."""
    given = [[k] if isinstance(k, int) else list(k) for k in (source, destination)]
    moved, places = ([shapes.axis(k, x.ndim) for k in axes] for axes in given)
    if len(moved) != len(places) or len(set(moved)) < len(moved) or len(set(places)) < len(places):
        raise ShapeError(f"axes {moved} cannot move to {places}", hint="as many places as axes, none of them twice")
    rest = iter(k for k in range(x.ndim) if k not in moved)
    target = dict(zip(places, moved, strict=True))
    return permuted(x, [target[k] if k in target else next(rest) for k in range(x.ndim)])


@composite(
    group=GROUP, windows=True, reference=lambda x, k=1, axes=(0, 1): np.rot90(x, k, axes), dtypes=_ANY,
    samples=(
        sample((2, 3)), sample((2, 3), k=2), sample((2, 3), k=-1), sample((2, 3, 2), axes=(1, 2)), sample((2, 3), k=4),
    ),
)  # fmt: skip
def rot90(x: Value, k: int = 1, axes: Sequence[int] = (0, 1)) -> Any:
    """x turned by k quarters in the plane of two axes, from the first towards the second."""
    one, other = (shapes.axis(axis, x.ndim) for axis in axes)
    if one == other:
        raise ShapeError(f"axes {list(axes)} span no plane")
    if k % 4 == 2:
        return flip(x, (one, other))
    turned = x if k % 4 == 0 else flip(x, other if k % 4 == 1 else one)
    return turned if k % 4 == 0 else swapaxes(turned, one, other)


# --- repetition -----------------------------------------------------------------------------------


def _repetitions(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise ShapeError(f"something is repeated 0 times, once, twice, …, not {n!r} times")
    return n


@composite(
    group=GROUP, reference=np.repeat, dtypes=_ANY, scheme=("repeat",), aliases=("repeat_interleave",),
    samples=(
        sample((2, 3), repeats=2), sample((2, 3), repeats=3, axis=1), sample((2,), repeats=0), sample((), repeats=2),
    ),
)  # fmt: skip
def repeat(x: Value, repeats: int, axis: int | None = None) -> Any:
    """Every element several times in succession along an axis (None: of all elements in a row); see also `tile`."""
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    axis, times = shapes.axis(axis, x.ndim), _repetitions(repeats)
    before, n, behind = x.shape[:axis], x.shape[axis], x.shape[axis + 1 :]
    spread = expand(reshape(x, (*before, n, 1, *behind)), (*before, n, times, *behind))
    return reshape(spread, (*before, n * times, *behind))


@composite(
    group=GROUP, reference=np.tile, dtypes=_ANY,
    samples=(
        sample((2, 3), reps=2), sample((2, 3), reps=(2, 1, 3)), sample((2, 3), reps=(0, 1)), sample((), reps=(2, 2)),
    ),
)  # fmt: skip
def tile(x: Value, reps: int | Sequence[int]) -> Any:
    """x several times along each axis, the last of which `reps` ends with."""
    times = [_repetitions(n) for n in ([reps] if isinstance(reps, int) else reps)]
    rank = max(len(times), x.ndim)
    times, shape = [1] * (rank - len(times)) + times, (1,) * (rank - x.ndim) + x.shape
    spread = [n for pair in zip(times, shape, strict=True) for n in pair]
    thin = [n for extent in shape for n in (1, extent)]
    return reshape(expanded(reshape(x, thin), tuple(spread)), tuple(t * n for t, n in zip(times, shape, strict=True)))


@composite(
    gives="tuple[Tensor, ...]",
    group=GROUP, reference=lambda tensors: np.broadcast_arrays(*tensors), dtypes=_ANY, method=False,
    scheme=("broadcast-tensors",), aliases=("broadcast_arrays",),
    samples=(sample([Draw((2, 1)), Draw((3,)), Draw(())]),),
)  # fmt: skip
def broadcast_tensors(tensors: Sequence[Value]) -> Any:
    """Tensors, each expanded to the shape in which they all meet."""
    shape = broadcast(*(x.shape for x in tensors))
    return tuple(expanded(x, shape) for x in tensors)
