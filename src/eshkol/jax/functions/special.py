"""What `jax.scipy.special` has beside rows of the op table.

Comes in and goes out: tensors.
"""

from __future__ import annotations

import math
from typing import Any

from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor


def logit(x: Any) -> Tensor:
    """log(x / (1 - x))."""
    x = ek.asarray(x)
    return ek.log(x) - ek.log1p(-x)


def gamma(x: Any) -> Tensor:
    """Γ(x)."""
    x = ek.asarray(x)
    turned = ek.remainder(ek.floor(x), 2.0) * 2 - 1  # Γ changes its sign from one negative integer to the next
    return ek.where(x > 0, 1.0, -turned) * ek.exp(ek.lgamma(x))


def gammasgn(x: Any) -> Tensor:
    """The sign of Γ(x)."""
    x = ek.asarray(x)
    return ek.where(x > 0, 1.0, 1.0 - 2.0 * ek.remainder(ek.floor(x), 2.0))


def factorial(n: Any) -> Tensor:
    """n!, as a float."""
    return ek.round(ek.exp(ek.lgamma(ek.asarray(n) + 1.0)))


def betaln(a: Any, b: Any) -> Tensor:
    """log of the beta function."""
    return ek.lgamma(a) + ek.lgamma(b) - ek.lgamma(ek.asarray(a) + b)


def beta(a: Any, b: Any) -> Tensor:
    """The beta function of positive numbers."""
    return ek.exp(betaln(a, b))


def xlog1py(x: Any, y: Any) -> Tensor:
    """x·log(1 + y), which is 0 where x is 0."""
    return ek.where(ek.equal(x, 0.0), 0.0, x * ek.log1p(y))


def entr(x: Any) -> Tensor:
    """-x·log(x); -inf where x is negative."""
    x = ek.asarray(x)
    return ek.where(x < 0, -math.inf, -ek.xlogy(x, ek.where(x < 0, 1.0, x)))


def rel_entr(p: Any, q: Any) -> Tensor:
    """p·log(p/q), 0 where p is 0."""
    return ek.xlogy(p, p) - ek.xlogy(p, q)


def kl_div(p: Any, q: Any) -> Tensor:
    """p·log(p/q) - p + q."""
    return rel_entr(p, q) - p + q


def log_ndtr(x: Any) -> Tensor:
    """log of `ndtr`, accurate far below 0 down to where that is 0."""
    return ek.log(ek.ndtr(x))


def multigammaln(a: Any, d: int) -> Tensor:
    """log of the gamma function of several variables."""
    a = ek.asarray(a)
    parts = ek.lgamma(ek.unsqueeze(a, -1) - ek.arange(d) / 2.0)
    return ek.sum(parts, -1) + d * (d - 1) / 4 * math.log(math.pi)
