"""Oracles of activations: their formulas, of mpmath's numbers."""

from __future__ import annotations

from typing import Any

import mpmath
import numpy as np

from eshkol.ops.row import sample
from oracles.elementwise import PLACES, each, precise, scalar
from oracles.registry import along, every, meet, normal_axis, number, oracle


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


def _of_numbers(function: Any, *operands: Any) -> np.ndarray:
    def one(*values: Any) -> Any:
        with mpmath.workdps(PLACES):
            return function(*(scalar(v) for v in values))

    return each(one, *operands)


precise("relu", dtype=number)(lambda x: (x + abs(x)) / 2)
precise("relu6")(lambda x: (abs(x) - abs(x - 6) + 6) / 2)
precise("hard_sigmoid")(lambda x: 0 if x <= -3 else 1 if x >= 3 else (x + 3) / 6)
precise("hard_swish")(lambda x: 0 if x <= -3 else x if x >= 3 else x * (x + 3) / 6)
precise("silu")(lambda x: x * _sigmoid(x))
precise("log_sigmoid")(lambda x: mpmath.log(_sigmoid(x)))
precise("mish")(lambda x: x * mpmath.tanh(mpmath.log(1 + mpmath.exp(x))))
precise("softsign")(lambda x: x / (1 + abs(x)))
precise("tanh_shrink")(lambda x: x - mpmath.tanh(x))


def _selu_constants() -> tuple[Any, Any]:
    """The scale and slope for which a standard normal variable keeps mean 0 and variance 1, from Klambauer et al."""
    e = mpmath.e
    half = mpmath.mpf(1) / 2
    erfc1, erfc2 = mpmath.erfc(1 / mpmath.sqrt(2)), mpmath.erfc(mpmath.sqrt(2))
    alpha = -mpmath.sqrt(2 / mpmath.pi) / (erfc1 * mpmath.exp(half) - 1)
    scale = (1 - erfc1 * mpmath.sqrt(e)) * mpmath.sqrt(2 * mpmath.pi)
    spread = 2 * erfc2 * e**2 + mpmath.pi * erfc1**2 * e - 2 * (2 + mpmath.pi) * erfc1 * mpmath.sqrt(e) + mpmath.pi + 2
    return scale / mpmath.sqrt(spread), alpha


@precise("selu")
def _selu(x: Any) -> Any:
    scale, alpha = _selu_constants()
    return scale * (x if x > 0 else alpha * mpmath.expm1(x))


@oracle("leaky_relu", more=[sample((4,), negative_slope=s) for s in (0.0, 0.3, 1.0)])
def _leaky_relu(x: Any, negative_slope: float = 0.01) -> Any:
    return each(lambda v: max(v, 0.0) + negative_slope * min(v, 0.0), x)


@oracle("prelu", fixed=("shapes",))
def _prelu(x: Any, weight: Any) -> Any:
    def element(i: tuple[int, ...]) -> Any:
        slope = weight.ravel()[i[1] if weight.size > 1 else 0]
        return x[i] if x[i] > 0 else x[i] * slope

    return every(x.shape, element)


@oracle("elu", more=[sample((4,), alpha=a) for a in (0.5, 2.0)])
def _elu(x: Any, alpha: float = 1.0) -> Any:
    return _of_numbers(lambda v: v if v > 0 else alpha * (mpmath.exp(v) - 1), x)


@oracle("celu", more=[sample((4,), alpha=a) for a in (0.5, 2.0)])
def _celu(x: Any, alpha: float = 1.0) -> Any:
    return _of_numbers(lambda v: max(v, 0) + min(0, alpha * (mpmath.exp(v / alpha) - 1)), x)


@oracle("hard_tanh", more=[sample((4,), min_val=-0.5, max_val=1.5)])
def _hard_tanh(x: Any, min_val: float = -1.0, max_val: float = 1.0) -> Any:
    return each(lambda v: sorted((min_val, v, max_val))[1], x)


@oracle("threshold", more=[sample((6,), threshold=t, value=v) for t in (-0.5, 0.5) for v in (-1.0, 3.0)])
def _threshold(x: Any, threshold: float, value: float) -> Any:
    return each(lambda v: v if v > threshold else value, x)


@oracle("soft_shrink", more=[sample((6,), lambd=v) for v in (0.0, 1.0)])
def _soft_shrink(x: Any, lambd: float = 0.5) -> Any:
    return each(lambda v: max(v - lambd, 0.0) + min(v + lambd, 0.0), x)


@oracle("hard_shrink", more=[sample((6,), lambd=v) for v in (0.0, 1.0)])
def _hard_shrink(x: Any, lambd: float = 0.5) -> Any:
    return each(lambda v: v if abs(v) > lambd else 0.0, x)


@oracle("gelu", more=[sample((6,), approximate=a) for a in ("none", "tanh")])
def _gelu(x: Any, approximate: str = "none") -> Any:
    if approximate == "tanh":
        return _of_numbers(
            lambda v: v * _sigmoid(2 * mpmath.sqrt(2 / mpmath.pi) * (v + mpmath.mpf("0.044715") * v**3)), x
        )
    return _of_numbers(lambda v: v * mpmath.ncdf(v), x)


@oracle("softplus", more=[sample((6,), beta=b, threshold=t) for b in (0.5, 3.0) for t in (None, 1.0, 20.0)])
def _softplus(x: Any, beta: float = 1.0, threshold: float | None = None) -> Any:
    def one(v: Any) -> Any:
        if threshold is not None and beta * v > threshold:
            return v
        return mpmath.log(1 + mpmath.exp(beta * v)) / beta

    return _of_numbers(one, x)


@oracle("glu", fixed=("axis", "shapes"), more=[sample((2, 4, 6), axis=k) for k in (0, 1, 2, -2)])
def _glu(x: Any, axis: int = -1) -> Any:
    axis = normal_axis(axis, x.ndim)
    half = x.shape[axis] // 2

    def element(i: tuple[int, ...]) -> Any:
        gate = x[(*i[:axis], i[axis] + half, *i[axis + 1 :])]
        return float(x[i] * _sigmoid(scalar(gate.item())))

    return every((*x.shape[:axis], half, *x.shape[axis + 1 :]), element)


def _shares(line: list[float]) -> list[Any]:
    with mpmath.workdps(PLACES):
        powers = [mpmath.exp(scalar(v)) for v in line]
        return [p / sum(powers) for p in powers]


_ONE_LINE = [sample((1,)), sample((2, 1, 3), axis=1)]


@oracle("softmax", dtype=meet, fixed=("shapes",), more=_ONE_LINE)
def _softmax(x: Any, axis: int = -1) -> Any:
    return along(x, axis, _shares)


@oracle("softmin", dtype=meet, fixed=("shapes",))
def _softmin(x: Any, axis: int = -1) -> Any:
    return _softmax(-x, axis)


@oracle("log_softmax", dtype=meet, fixed=("shapes",), more=_ONE_LINE)
def _log_softmax(x: Any, axis: int = -1) -> Any:
    return along(x, axis, lambda line: [mpmath.log(p) for p in _shares(line)])
