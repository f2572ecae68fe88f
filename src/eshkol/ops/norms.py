"""Normalizations: layer, rms, batch, group and instance norms, vectors of length 1, local response.

Statistics are computed in 32 bits at least; the result has the dtype of x.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.elementwise import rsqrt
from eshkol.ops.functions import clamp, square
from eshkol.ops.joining import along
from eshkol.ops.movement import reshape
from eshkol.ops.padding import pad
from eshkol.ops.reductions import TENSORS, mean, narrow, norm, wide
from eshkol.ops.row import Draw, Shape, Value, composite, sample
from eshkol.support.formulas import NUMPY, normalized, of_length_one, standardized

GROUP = "normalization"


def _scaled(x: Any, weight: Value | None, bias: Value | None, shape: Shape) -> Any:
    """x times a weight plus a bias, each reshaped to broadcast."""
    if weight is not None:
        x = x * (weight if weight.shape == shape else reshape(weight, shape))
    return x if bias is None else x + (bias if bias.shape == shape else reshape(bias, shape))


def _check(what: str, given: Value | None, shape: Shape) -> None:
    if given is not None and given.shape != shape:
        raise ShapeError(f"the {what} has shape {list(given.shape)}, where {list(shape)} is normalized")


# --- over the last axes ---------------------------------------------------------------------------


def _last_axes(x: Value, normalized_shape: int | Sequence[int]) -> tuple[int, ...]:
    wanted = shapes.extents(normalized_shape)
    if not wanted or x.shape[x.ndim - len(wanted) :] != wanted or len(wanted) > x.ndim:
        raise ShapeError(
            f"shape {list(x.shape)} does not end with the shape {list(wanted)} to normalize over",
            hint="normalized_shape is that of the last axes",
        )
    return tuple(range(x.ndim - len(wanted), x.ndim))


def _layer_reference(x: Any, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    x, weight, bias = _doubles(x, weight, bias)
    axes = tuple(range(-np.size(normalized_shape), 0))
    return standardized(NUMPY, x, axes, eps) * weight + bias


def _doubles(x: Any, weight: Any, bias: Any) -> tuple[Any, Any, Any]:
    weight, bias = (otherwise if z is None else z.astype(np.float64) for z, otherwise in ((weight, 1.0), (bias, 0.0)))
    return x.astype(np.float64), weight, bias


@composite(
    group=GROUP, reference=_layer_reference, scheme=("layer-norm", "nn-layer-norm"), tolerance=8.0,
    samples=(
        sample((2, 4), 4), sample((2, 4), [4], (4,), (4,)), sample((2, 2, 3), [2, 3], (2, 3), (2, 3), eps=1e-3),
        sample((2, 4), 4, None, (4,)), sample((0, 3), 3),
    ),
)  # fmt: skip
def layer_norm(
    x: Value, normalized_shape: int | Sequence[int], weight: Value | None = None, bias: Value | None = None,
    eps: float = 1e-5,
) -> Any:  # fmt: skip
    """x with mean 0 and variance 1 over its last axes, of a given shape, then times a weight and plus a bias."""
    axes = _last_axes(x, normalized_shape)
    shape = tuple(x.shape[k] for k in axes)
    _check("weight", weight, shape)
    _check("bias", bias, shape)
    return narrow(_scaled(standardized(TENSORS, wide(x), axes, eps), weight, bias, shape), x.dtype)


def _rms_reference(x: Any, normalized_shape: Any, weight: Any = None, eps: float | None = None) -> Any:
    eps = dtypes.of(x.dtype).epsilon if eps is None else eps
    x, weight, _ = _doubles(x, weight, None)
    axes = tuple(range(-np.size(normalized_shape), 0))
    return of_length_one(NUMPY, x, axes, eps) * weight


@composite(
    group=GROUP, reference=_rms_reference, scheme=("rms-norm",), tolerance=4.0,
    samples=(
        sample((2, 4), 4), sample((2, 4), [4], (4,)), sample((2, 2, 3), [2, 3], (2, 3), eps=1e-3), sample((0, 3), 3),
    ),
)  # fmt: skip
def rms_norm(
    x: Value, normalized_shape: int | Sequence[int], weight: Value | None = None, eps: float | None = None
) -> Any:
    """x divided by the root of its mean square over its last axes (eps: that of the dtype), then times a weight."""
    axes = _last_axes(x, normalized_shape)
    shape = tuple(x.shape[k] for k in axes)
    _check("weight", weight, shape)
    eps = dtypes.floating(x.dtype).epsilon if eps is None else eps
    return narrow(_scaled(of_length_one(TENSORS, wide(x), axes, eps), weight, None, shape), x.dtype)


# --- per channel (axis 1) -------------------------------------------------------------------------


def _channels(x: Value, **given: Value | None) -> Shape:
    """The shape in which what is given per channel broadcasts."""
    if x.ndim < 2:
        raise ShapeError(f"shape {list(x.shape)} has no channels", hint="axis 0 is the batch, axis 1 the channels")
    for what, value in given.items():
        if value is not None and value.shape != (x.shape[1],):
            raise ShapeError(
                f"the {what.replace('_', ' ')} has shape {list(value.shape)}, x of shape {list(x.shape)} has "
                f"{x.shape[1]} channels (axis 1)"
            )
    return (x.shape[1], *(1,) * (x.ndim - 2))


def _batch_reference(
    x: Any, running_mean: Any = None, running_var: Any = None, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.1, eps: float = 1e-5, unbiased: bool = True,
) -> Any:  # fmt: skip
    x, weight, bias = _doubles(x, weight, bias)
    axes = (0, *range(2, x.ndim))
    shape = (-1, *(1,) * (x.ndim - 2))
    mean, var = (x.mean(axes), x.var(axes)) if training else _doubles(running_mean, running_var, None)[:2]
    found = normalized(NUMPY, x, mean.reshape(shape), var.reshape(shape), eps)
    found = found * np.reshape(weight, np.shape(weight) and shape) + np.reshape(bias, np.shape(bias) and shape)
    if not training or running_mean is None:
        return found
    keep = 1 - momentum
    return found, keep * running_mean + momentum * mean, keep * running_var + momentum * x.var(axes, ddof=int(unbiased))


_positive = Draw((3,), 0.5, 2.0)


@composite(
    gives_if={"training": (True, "Tensor | tuple[Tensor, Tensor, Tensor]")},
    group=GROUP, reference=_batch_reference, scheme=("batch-norm",), tolerance=8.0,
    samples=(
        sample((4, 3), (3,), _positive), sample((2, 3, 2), (3,), _positive, (3,), (3,), eps=1e-3),
        sample((4, 3), (3,), _positive, (3,), (3,), training=True),
        sample((2, 3, 2, 2), None, None, (3,), training=True),
        sample((4, 3), (3,), _positive, training=True, momentum=0.5),
        sample((4, 3), (3,), _positive, training=True, unbiased=False),
    ),
)  # fmt: skip
def batch_norm(
    x: Value, running_mean: Value | None = None, running_var: Value | None = None, weight: Value | None = None,
    bias: Value | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5, unbiased: bool = True,
) -> Any:  # fmt: skip
    """x normalized per channel (axis 1) by running statistics or, in training, by those of the batch.

    In training, if running statistics are given, the result comes with new ones: (y, mean, var), where momentum is
    the part of the new. The new variance is unbiased or, with unbiased=False, the one that x is divided by.
    """
    given = {"running_mean": running_mean, "running_var": running_var, "weight": weight, "bias": bias}
    shape = _channels(x, **given)
    values = wide(x)
    if not training:
        if running_mean is None or running_var is None:
            raise TensorError("batch_norm needs running_mean and running_var", hint="or training=True")
        centre, spread = (reshape(wide(given), shape) for given in (running_mean, running_var))
        found = normalized(TENSORS, values, centre, spread, eps)
        return narrow(_scaled(found, weight, bias, shape), x.dtype)
    axes = (0, *range(2, x.ndim))
    centre = mean(values, axes)
    away = values - reshape(centre, shape)
    spread = mean(square(away), axes)
    found = narrow(_scaled(away * rsqrt(reshape(spread, shape) + eps), weight, bias, shape), x.dtype)
    if running_mean is None or running_var is None:
        return found
    count = x.size // max(x.shape[1], 1)
    kept = spread * (count / max(count - 1, 1)) if unbiased else spread
    renewed = ((running_mean, centre), (running_var, kept))
    return found, *(narrow(wide(old) * (1 - momentum) + new * momentum, old.dtype) for old, new in renewed)


def _group_reference(x: Any, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    x, weight, bias = _doubles(x, weight, bias)
    rows = x.reshape(x.shape[0], num_groups, -1)
    found = standardized(NUMPY, rows, 2, eps)
    shape = (-1, *(1,) * (x.ndim - 2))
    return found.reshape(x.shape) * np.reshape(weight, np.shape(weight) and shape) + np.reshape(
        bias, np.shape(bias) and shape
    )


@composite(
    group=GROUP, reference=_group_reference, scheme=("group-norm",), tolerance=8.0,
    samples=(
        sample((2, 4, 3), 2, (4,), (4,)), sample((2, 4), 2), sample((2, 6, 2, 2), 3, (6,), (6,), eps=1e-3),
        sample((1, 4), 1, None, (4,)),
    ),
)  # fmt: skip
def group_norm(
    x: Value, num_groups: int, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5
) -> Any:
    """x with mean 0 and variance 1 over each of num_groups groups of its channels (axis 1) and all that follows."""
    shape = _channels(x, weight=weight, bias=bias)
    if num_groups < 1 or x.shape[1] % num_groups:
        raise ShapeError(f"{x.shape[1]} channels of shape {list(x.shape)} do not make {num_groups} groups")
    groups = reshape(wide(x), (x.shape[0], num_groups, x.shape[1] // num_groups, *x.shape[2:]))
    found = reshape(standardized(TENSORS, groups, range(2, groups.ndim), eps), x.shape)
    return narrow(_scaled(found, weight, bias, shape), x.dtype)


@composite(
    group=GROUP, tolerance=8.0, samples=(sample((2, 3, 4)), sample((2, 2, 2, 3), (2,), (2,), eps=1e-3)),
    reference=lambda x, weight=None, bias=None, eps=1e-5: _group_reference(x, x.shape[1], weight, bias, eps),
)  # fmt: skip
def instance_norm(x: Value, weight: Value | None = None, bias: Value | None = None, eps: float = 1e-5) -> Any:
    """x with mean 0 and variance 1 over all that follows each of its channels (axis 1)."""
    if x.ndim < 3:
        raise ShapeError(f"shape {list(x.shape)} has nothing behind its channels to normalize over")
    return group_norm(x, x.shape[1], weight, bias, eps)


# --- others ---------------------------------------------------------------------------------------


def _normalize_reference(x: Any, p: float = 2, axis: int = 1, eps: float = 1e-12) -> Any:
    x = x.astype(np.float64)
    return x / np.maximum(np.linalg.norm(x, p, axis, keepdims=True), eps)


@composite(
    group=GROUP, reference=_normalize_reference, tolerance=2.0,
    samples=(sample((2, 3)), sample((2, 3), p=1, axis=0), sample((4,), p=3, axis=-1), sample((0, 3))),
)  # fmt: skip
def normalize(x: Value, p: float = 2, axis: int = 1, eps: float = 1e-12) -> Any:
    """x divided by its p-norm along an axis, or by eps if that is greater: vectors of length 1."""
    values = wide(x)
    return narrow(values / clamp(norm(values, p, axis, keepdims=True), eps), x.dtype)


def _response_reference(x: Any, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    x = x.astype(np.float64)
    found = np.empty_like(x)
    for c in range(x.shape[1]):
        near = x[:, max(c - size // 2, 0) : c + (size - 1) // 2 + 1]
        found[:, c] = x[:, c] / (k + alpha / size * np.sum(near * near, axis=1)) ** beta
    return found


@composite(
    group=GROUP, reference=_response_reference, tolerance=2.0,
    samples=(sample((2, 4, 2), 3), sample((2, 4), 2, alpha=0.5, beta=0.5, k=2.0)),
)  # fmt: skip
def local_response_norm(x: Value, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Any:
    """x divided by (k + alpha·(mean square of the `size` channels around it, axis 1))^beta."""
    _channels(x)
    if size < 1:
        raise ShapeError(f"{size} channels cannot be around one")
    values = wide(x)
    widths = ((0, 0), (size // 2, (size - 1) // 2), *((0, 0),) * (x.ndim - 2))
    squares = pad(square(values), widths)
    total = along(squares, 1, 0, x.shape[1])
    for start in range(1, size):
        total = total + along(squares, 1, start, start + x.shape[1])
    return narrow(values / (k + total * (alpha / size)) ** beta, x.dtype)
