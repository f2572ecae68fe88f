"""What softmax, norms and attention are, written once: for arrays of NumPy and for tensors alike.

Comes in: an `Arithmetic`, which has the functions that are not operators, and values of its kind. Goes out: their
formula. Rows of tensor ops take it as what they are computed as and as what their reference is; rows of Atlas's array
instructions take it as their meaning. Axes that are reduced stay, with extent 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Reduced = Callable[[Any, Any], Any]  # a value and axes


class Arithmetic(NamedTuple):
    """Functions of values of one kind."""

    exp: Callable[[Any], Any]
    log: Callable[[Any], Any]
    rsqrt: Callable[[Any], Any]
    greatest: Reduced
    total: Reduced
    average: Reduced
    finite_or_zero: Callable[[Any], Any]  # infinities as 0


NUMPY = Arithmetic(
    exp=np.exp,
    log=np.log,
    rsqrt=lambda x: 1 / np.sqrt(x),
    greatest=lambda x, axes: np.max(x, axes, keepdims=True, initial=-math.inf),
    total=lambda x, axes: np.sum(x, axes, keepdims=True),
    average=lambda x, axes: np.mean(x, axes, keepdims=True),
    finite_or_zero=lambda x: np.where(np.isinf(x), 0, x),
)


def softmax(m: Arithmetic, x: Any, axes: Any) -> Any:
    """e^x divided by its sum, without overflow."""
    powers = m.exp(x - m.greatest(x, axes))
    # The sum is between 1 and the extent, so its inverse is as good as a division, of which each row has but one.
    return powers * (1 / m.total(powers, axes))


def log_softmax(m: Arithmetic, x: Any, axes: Any) -> Any:
    """The logarithm of softmax, without losing small ones."""
    above = x - m.greatest(x, axes)
    return above - m.log(m.total(m.exp(above), axes))


def log_sum_exp(m: Arithmetic, x: Any, axes: Any) -> Any:
    """The logarithm of the sum of e^x, without overflow; of -inf alone it is -inf."""
    level = m.finite_or_zero(m.greatest(x, axes))
    return m.log(m.total(m.exp(x - level), axes)) + level


def standardized(m: Arithmetic, x: Any, axes: Any, eps: float) -> Any:
    """x with mean 0 and variance 1."""
    return of_length_one(m, x - m.average(x, axes), axes, eps)


def of_length_one(m: Arithmetic, x: Any, axes: Any, eps: float) -> Any:
    """x divided by the root of its mean square."""
    return x * m.rsqrt(m.average(x * x, axes) + eps)


def normalized(m: Arithmetic, x: Any, centre: Any, spread: Any, eps: float) -> Any:
    """x less a mean, divided by the root of a variance."""
    return (x - centre) * m.rsqrt(spread + eps)


def attention(q: Any, k: Any, v: Any, *, causal: bool = False) -> Any:
    """softmax(q·kᵀ/√dim)·v of arrays … × length × dim; causal: position t attends to 0 … t."""
    factor = 1 / math.sqrt(q.shape[-1])
    if not causal:
        return softmax(NUMPY, q @ k.swapaxes(-1, -2) * factor, -1) @ v
    mixed = np.empty_like(q)
    for t in range(q.shape[-2]):  # what comes later is not looked at, so that not even its NaNs are seen
        now, past = np.s_[..., t : t + 1, :], np.s_[..., : t + 1, :]
        mixed[now] = softmax(NUMPY, q[now] @ k[past].swapaxes(-1, -2) * factor, -1) @ v[past]
    return mixed
