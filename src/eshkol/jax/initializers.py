"""`jax.nn.initializers`: functions of a key, a shape and a dtype that give first values of weights.

Comes in: a scale, or which axes are in and out. Goes out: `initializer(key, shape, dtype)`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from eshkol.errors import TensorError
from eshkol.jax.missing import refusing
from eshkol.tensors import api as ek

Initializer = Callable[..., Any]


def zeros(key: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """Zeros, whatever the key."""
    return ek.zeros(tuple(shape), dtype)


def ones(key: Any, shape: Sequence[int], dtype: Any = None) -> Any:
    """Ones, whatever the key."""
    return ek.ones(tuple(shape), dtype)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """One number everywhere."""
    return lambda key, shape, dtype=dtype: ek.full(tuple(shape), value, dtype or ek.get_default_dtype())


def normal(stddev: float = 1e-2, dtype: Any = None) -> Initializer:
    """Normal numbers of mean 0."""
    return lambda key, shape, dtype=dtype: ek.normal(key, tuple(shape), 0.0, stddev, dtype)


def uniform(scale: float = 1e-2, dtype: Any = None) -> Initializer:
    """Uniform numbers from 0 to below a scale."""
    return lambda key, shape, dtype=dtype: ek.uniform(key, tuple(shape), 0.0, scale, dtype)


def truncated_normal(stddev: float = 1e-2, dtype: Any = None, lower: float = -2.0, upper: float = 2.0) -> Initializer:
    """Normal numbers that lie between two bounds, in standard deviations."""
    return lambda key, shape, dtype=dtype: ek.truncated_normal(key, tuple(shape), lower, upper, 0.0, stddev, dtype)


def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """A matrix with orthonormal rows or columns, whichever are fewer."""

    def made(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        if len(shape) < 2:
            raise TensorError(f"orthogonal weights have two axes at least, not {tuple(shape)}", span=ek.here())
        columns = shape[column_axis]
        rows = math.prod(shape) // columns
        q, r = ek.qr(ek.normal(key, (max(rows, columns), min(rows, columns)), dtype=dtype))
        q = q * ek.sign(ek.diagonal(r))
        turned = (q if rows >= columns else q.T) * scale
        place = column_axis % len(shape)
        others = [n for k, n in enumerate(shape) if k != place]
        return ek.moveaxis(turned.reshape((*others, columns)), -1, place)

    return made


def variance_scaling(
    scale: float, mode: str, distribution: str, in_axis: int = -2, out_axis: int = -1, dtype: Any = None
) -> Initializer:
    """Numbers of variance scale/n, n the inputs ("fan_in"), the outputs ("fan_out") or their mean ("fan_avg")."""
    if mode not in ("fan_in", "fan_out", "fan_avg"):
        raise TensorError(f"the mode of variance_scaling is fan_in, fan_out or fan_avg, not {mode!r}")
    if distribution not in ("uniform", "normal", "truncated_normal"):
        raise TensorError(
            f"the distribution of variance_scaling is uniform, normal or truncated_normal, not {distribution!r}"
        )

    def made(key: Any, shape: Sequence[int], dtype: Any = dtype) -> Any:
        field = math.prod(shape) / (shape[in_axis] * shape[out_axis])
        inward, outward = shape[in_axis] * field, shape[out_axis] * field
        count = {"fan_in": inward, "fan_out": outward, "fan_avg": (inward + outward) / 2}[mode]
        deviation = math.sqrt(scale / count)
        if distribution == "uniform":
            bound = math.sqrt(3) * deviation
            return ek.uniform(key, tuple(shape), -bound, bound, dtype)
        if distribution == "normal":
            return ek.normal(key, tuple(shape), 0.0, deviation, dtype)
        cut = deviation / 0.87962566103423978  # the deviation of normal numbers between -2 and 2
        return ek.truncated_normal(key, tuple(shape), -2.0, 2.0, 0.0, cut, dtype)

    return made


def _named(scale: float, mode: str, distribution: str, name: str) -> Initializer:
    def made(in_axis: int = -2, out_axis: int = -1, dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, dtype)

    made.__name__ = made.__qualname__ = name
    made.__doc__ = f"variance_scaling({scale}, {mode!r}, {distribution!r})."
    return made


glorot_uniform = xavier_uniform = _named(1.0, "fan_avg", "uniform", "glorot_uniform")
glorot_normal = xavier_normal = _named(1.0, "fan_avg", "truncated_normal", "glorot_normal")
lecun_uniform = _named(1.0, "fan_in", "uniform", "lecun_uniform")
lecun_normal = _named(1.0, "fan_in", "truncated_normal", "lecun_normal")
he_uniform = kaiming_uniform = _named(2.0, "fan_in", "uniform", "he_uniform")
he_normal = kaiming_normal = _named(2.0, "fan_in", "truncated_normal", "he_normal")

__all__ = [
    "constant", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "kaiming_normal", "kaiming_uniform",
    "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal", "truncated_normal", "uniform",
    "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]  # fmt: skip
__getattr__ = refusing("nn.initializers", __all__)
