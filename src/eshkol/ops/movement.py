"""Ops that move elements without computing, all of them: reshape, permute, expand, flip.

All are linear; the transpose of each is said with the others. Those that leave elements out stand in `slicing.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import ShapeError
from eshkol.ops import shapes
from eshkol.ops.row import Aval, HasAval, Linear, Pull, Shape, Value, primitive, sample
from eshkol.ops.shapes import Axes, broadcast

GROUP = "shape"
_ANY = ("bool", "int", "float", "complex")


class ToShape(NamedTuple):
    shape: Shape


def _infer_reshape(a: ToShape, x: HasAval) -> Aval:
    if shapes.count(a.shape) != shapes.count(x.shape):
        raise ShapeError(
            f"{shapes.count(x.shape)} elements of shape {list(x.shape)} do not fill shape {list(a.shape)}",
            hint="one extent may be -1: it is computed from the others",
        )
    return Aval(a.shape, x.dtype)


def _pull_reshape(e: Any, a: ToShape, i: Any, x: Any) -> Any:
    return x(e.reshaped(i, a.shape, x.shape))


def _transpose_reshape(a: ToShape, ct: Any, k: int, x: HasAval) -> Any:
    return reshape(ct, x.shape)


def _batch_reshape(a: ToShape, inputs: Any, batched: Any) -> Any:
    return reshape(inputs[0], (inputs[0].shape[0], *a.shape))


@primitive(
    group=GROUP, windows=True, infer=_infer_reshape, reference=lambda a, x: np.reshape(x, a.shape), dtypes=_ANY,
    derivative=Linear(_transpose_reshape), batch=_batch_reshape, lower=Pull(_pull_reshape),
    of_complex=True, scheme=("reshape",),
    samples=(
        sample((2, 6), shape=(3, 4)), sample((2, 6), shape=(-1, 2)), sample((), shape=(1, 1)),
        sample((0, 3), shape=(3, 0)),
    ),
)  # fmt: skip
def reshape(x: Value, shape: int | Sequence[int]) -> ToShape:
    """The elements in the same order, under another shape; one extent may be -1."""
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    if wanted.count(-1) > 1:
        raise ShapeError(f"only one extent may be -1, not as in {list(wanted)}")
    if -1 in wanted:
        rest = shapes.count(tuple(n for n in wanted if n != -1))
        if rest == 0 or x.size % rest:
            raise ShapeError(f"{x.size} elements of shape {list(x.shape)} do not fill shape {list(wanted)}")
        wanted = tuple(x.size // rest if n == -1 else n for n in wanted)
    return ToShape(shapes.extents(wanted))


def _infer_expand(a: ToShape, x: HasAval) -> Aval:
    if len(x.shape) > len(a.shape) or broadcast(x.shape, a.shape) != a.shape:
        raise ShapeError(f"shape {list(x.shape)} does not broadcast to {list(a.shape)}")
    return Aval(a.shape, x.dtype)


def _batch_expand(a: ToShape, inputs: Any, batched: Any) -> Any:
    (x,) = inputs
    aligned = reshape(x, (x.shape[0], *(1,) * (len(a.shape) - x.ndim + 1), *x.shape[1:]))
    return expand(aligned, (x.shape[0], *a.shape))


def _transpose_expand(a: ToShape, ct: Any, k: int, x: HasAval) -> Any:
    return ct  # what broadcasts is summed wherever cotangents arrive


@primitive(
    group=GROUP, windows=True, infer=_infer_expand, reference=lambda a, x: np.broadcast_to(x, a.shape), dtypes=_ANY,
    moves=True, derivative=Linear(_transpose_expand), batch=_batch_expand, lower=Pull(lambda e, a, i, x: x(i)),
    of_complex=True,
    aliases=("broadcast_to",), scheme=("expand", "broadcast-to"),
    samples=(
        sample((2, 1), shape=(2, 3)), sample((3,), shape=(2, 3)), sample((), shape=(2,)), sample((1,), shape=(0,)),
    ),
)  # fmt: skip
def expand(x: Value, shape: int | Sequence[int]) -> ToShape:
    """x repeated along axes of extent 1, and along new axes in front, as broadcasting does; -1 keeps an extent."""
    wanted = (shape,) if isinstance(shape, int) else tuple(shape)
    behind = len(wanted) - x.ndim
    kept = tuple(x.shape[k - behind] if n == -1 and k >= behind else n for k, n in enumerate(wanted))
    return ToShape(shapes.extents(kept))


class Permutation(NamedTuple):
    axes: tuple[int, ...]


def _inverse(axes: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(k) for k in np.argsort(axes))


def _transpose_permute(a: Permutation, ct: Any, k: int, x: HasAval) -> Any:
    return permute(ct, _inverse(a.axes))


def _batch_permute(a: Permutation, inputs: Any, batched: Any) -> Any:
    return permute(inputs[0], (0, *(k + 1 for k in a.axes)))


@primitive(
    group=GROUP, windows=True, infer=lambda a, x: Aval(tuple(x.shape[k] for k in a.axes), x.dtype), dtypes=_ANY,
    reference=lambda a, x: np.transpose(x, a.axes), derivative=Linear(_transpose_permute), batch=_batch_permute,
    moves=True,
    lower=Pull(lambda e, a, i, x: x([i[k] for k in _inverse(a.axes)])), of_complex=True,
    samples=(
        sample((2, 3, 4), axes=(2, 0, 1)), sample((2, 3), axes=(1, 0)), sample((0, 3), axes=(1, 0)),
        sample((), axes=()),
    ),
)  # fmt: skip
def permute(x: Value, axes: Sequence[int]) -> Permutation:
    """The axes in another order."""
    found = tuple(shapes.axis(k, x.ndim) for k in ([axes] if isinstance(axes, int) else axes))
    if sorted(found) != list(range(x.ndim)):
        raise ShapeError(f"{list(found)} does not name each of the {x.ndim} axes once")
    return Permutation(found)


class Flip(NamedTuple):
    axes: tuple[int, ...]


def _transpose_flip(a: Flip, ct: Any, k: int, x: HasAval) -> Any:
    return flip(ct, a.axes)


def _batch_flip(a: Flip, inputs: Any, batched: Any) -> Any:
    return flip(inputs[0], tuple(k + 1 for k in a.axes))


@primitive(
    windows=True,
    group=GROUP, infer=lambda a, x: Aval(x.shape, x.dtype), reference=lambda a, x: np.flip(x, a.axes), dtypes=_ANY,
    derivative=Linear(_transpose_flip), batch=_batch_flip, moves=True,
    lower=Pull(lambda e, a, i, x: x([x.shape[k] - 1 - i[k] if k in a.axes else i[k] for k in range(len(x.shape))])),
    of_complex=True,
    samples=(sample((2, 3)), sample((2, 3), axis=1), sample((2, 3, 2), axis=(0, -1)), sample(()), sample((0, 2))),
)  # fmt: skip
def flip(x: Value, axis: Axes = None) -> Flip:
    """The elements in reverse order along axes (all of them by default)."""
    return Flip(shapes.axes(axis, x.ndim))


# --- said with them -------------------------------------------------------------------------------


def reshaped(x: Any, shape: Sequence[int]) -> Any:
    """x under a shape, itself where it has that shape already."""
    return reshape(x, shape) if x.shape != tuple(shape) else x


def expanded(x: Any, shape: Shape) -> Any:
    """x under a shape to which it broadcasts, itself where it has that shape already."""
    return expand(x, shape) if x.shape != shape else x


def align(inputs: Sequence[Any], batched: Sequence[bool]) -> list[Any]:
    """Inputs of an op that broadcasts its leading axes (all, or all but a fixed number), ready for one more in front.

    A batched input gets axes of extent 1 after its first, so that the batch stays in front of the longest input.
    """
    longest = max(len(x.shape) - b for x, b in zip(inputs, batched, strict=True))
    found = []
    for x, is_batched in zip(inputs, batched, strict=True):
        missing = longest - (len(x.shape) - is_batched)
        if is_batched and missing:
            x = reshape(x, (x.shape[0], *(1,) * missing, *x.shape[1:]))
        found.append(x)
    return found
