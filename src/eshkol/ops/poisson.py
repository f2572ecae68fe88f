"""Draws of counts from the Poisson distribution, a function of a key and of a rate, as in `distributions.py`.

A count is the quantile of one random number. For rates below 12 it is found by adding up probabilities. For others it
comes of Temme's uniform expansion of the incomplete gamma function, turned around (M. B. Giles, "Algorithm 955:
approximation of the inverse Poisson cumulative distribution function", 2016): the chance of at most so many differs by
less than 4·10⁻⁶ from the exact one, and by less than 10⁻⁷ for rates above 250. Both are computed in float64, whatever
the dtype, so a key gives the same counts in every dtype that holds them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.errors import DTypeError
from eshkol.ops import dtypes, shapes
from eshkol.ops.creation import full
from eshkol.ops.distributions import RULES, frame, real, sides
from eshkol.ops.dtypes import float64, int64
from eshkol.ops.elementwise import absolute, cast, floor, less, log, log1p, maximum, minimum, sqrt, where
from eshkol.ops.movement import expand
from eshkol.ops.random import KEY
from eshkol.ops.row import Aval, Draw, HasAval, NoDerivative, Op, Pull, Value, composite, row, sample
from eshkol.ops.special import ndtri

SMALL = 12.0  # rates below are those whose probabilities are added up
TERMS = 56  # how many are; what is left is below 10^-16 for all of these rates
STEPS = 3  # of Newton's; each squares what is left, which is below 1 % at first
LARGEST = 1e15  # counts of greater rates are no exact float64


def _infer_quantile(a: None, u: HasAval, rate: HasAval) -> Aval:
    if not u.dtype is rate.dtype is float64:
        raise DTypeError(f"quantiles are of float64, not of {u.dtype} and {rate.dtype}")
    return Aval(shapes.broadcast(u.shape, rate.shape), int64)


def _quantile(a: None, u: Any, rate: Any) -> Any:
    term = np.exp(-rate)
    total, count = term, np.zeros(np.broadcast(u, rate).shape, np.int64)
    for k in range(1, TERMS):
        count = count + (u >= total)
        term = term * (rate * (1 / k))
        total = total + term
    return count


def _pull_quantile(e: Any, a: None, i: Any, u: Any, rate: Any) -> Any:
    chance, mean = u(i), rate(i)
    one, count = (e.constant(x, mean.dtype) for x in (1.0, 0.0))
    total = term = e.op("EXP", e.op("NEG", mean))
    for k in range(1, TERMS):  # one after the other, not in a loop: 1/k is a constant, and lanes go together
        count = e.select(e.compare("GE", chance, total), count + one, count)
        term = term * (mean * (1 / k))
        total = total + term
    return e.convert(count, int64)


_COUNT: Op = row(Op(
    name="poisson_quantile", doc="The least k whose chance, with that of all before it, is above u; rates below 12.",
    function=None, group="structure", method=False, elementwise=True, names=("u", "rate"),
    infer=_infer_quantile, reference=_quantile, lower=Pull(_pull_quantile),
    derivative=NoDerivative("a count does not vary smoothly"),
))  # fmt: skip


def _far(w: Any, rate: Any) -> Any:
    """The quantile for rates from 12 on of the chance whose normal quantile is w.

    It is x = rate·r + c, less a small share and rounded down, where r solves f(r) = w/√rate for
    f(r) = ±√(2·(1 - r + r·log r)), by Newton's steps from a cubic, and c is log(f(r)·√r/(r - 1))/log r. Near r = 1 both
    are quotients of small numbers, and their series stand for them.
    """
    s = maximum(w / sqrt(rate), -1.4)  # below, r would be negative; all that is less is 0
    near = less(absolute(s), 1e-4)
    d = s * (1 + s * (1 / 6 - s * (1 / 72)))  # r - 1
    t = where(near, 0.5, s)
    e = where(near, 0.5, maximum(d, -0.999))
    for _ in range(STEPS):
        e = maximum(e - (_f(e) - t) * _f(e) / log1p(e), -0.999)
    c = log(_f(e) / e) / log1p(e) + 0.5
    x = rate + rate * where(near, d, e) + where(near, 1 / 3 - d * (1 / 36), c)
    return floor(maximum(x - 0.0218 / (x + 0.065 * rate), 0))


def _f(d: Any) -> Any:
    found = sqrt(2 * maximum((1 + d) * log1p(d) - d, 0))
    return where(less(d, 0), -found, found)


@composite(
    **RULES,
    samples=(
        sample(KEY, rate=3.5, shape=(2, 3)), sample(KEY, Draw((2, 3), 0.3, 5)), sample(KEY, rate=40, shape=(3,)),
        sample(KEY, Draw((3,), 5, 15), shape=(2, 3), dtype="float32"), sample(KEY, rate=1.0, shape=0),
    ),
)  # fmt: skip
def poisson(key: Value, rate: Value | float, shape: Any = None, dtype: Any = "int64") -> Any:
    """Draws from the Poisson distribution: how often an event happens that happens so often on average, up to 10^15."""
    real(rate, "rate", 0, LARGEST)
    found, kind = frame(key, shape, None, rate)[0], dtypes.of(dtype)
    if not (kind.is_integer or kind.is_float):
        raise DTypeError(f"counts are integers or floats, not {kind}")
    known = rate.known() if isinstance(rate, Value) else np.asarray(rate)
    mean = cast(rate, float64) if isinstance(rate, Value) else full(key, (), float(rate), float64)
    below, distance = sides(key, found, float64)
    few = many = None
    if known is None or np.any(np.asarray(known) < SMALL):
        chance = where(below, distance, 1 - distance)
        few = key.apply(_COUNT, (chance, expand(minimum(mean, SMALL), found)), None)
    if known is None or np.any(np.asarray(known) >= SMALL):
        w = ndtri(distance)
        many = cast(_far(where(below, w, -w), maximum(mean, SMALL)), int64)
    if few is None or many is None:
        return cast(few if many is None else many, kind)
    return cast(where(less(mean, SMALL), few, many), kind)
