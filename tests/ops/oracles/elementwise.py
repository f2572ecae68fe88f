"""Oracles of what works element by element: mpmath in 30 places for functions, Python's own numbers for the rest."""

from __future__ import annotations

import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

from eshkol.ops.row import Draw, sample
from oracles.registry import (
    agree,
    complex_of,
    first,
    floating,
    given,
    meet,
    meeting,
    name_of,
    number,
    oracle,
    real_of,
    truth,
)

PLACES = 30


def scalar(value: Any) -> Any:
    """A Python number as mpmath's."""
    return mpmath.mpc(value) if isinstance(value, complex) else mpmath.mpf(value)


def each(function: Callable[..., Any], *operands: Any) -> np.ndarray:
    """A function of Python numbers, of every element of operands that broadcast: extents count from the last axis."""
    arrays = [np.asarray(x) for x in operands]
    rank = max(x.ndim for x in arrays)
    extents = [[1] * (rank - x.ndim) + list(x.shape) for x in arrays]
    shape = tuple(next((n for n in column if n != 1), 1) for column in zip(*extents, strict=True))
    found = np.empty(shape, object)
    for index in np.ndindex(*shape):
        own = [
            x[tuple(0 if n == 1 else i for i, n in zip(index[rank - x.ndim :], x.shape, strict=True))] for x in arrays
        ]
        found[index] = function(*(value.item() for value in own))
    return found


def pointwise(*names: str, dtype: Any = None, **how: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function of Python numbers as the oracle of elementwise ops."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        oracle(*names, dtype=dtype, **how)(lambda *arrays: each(function, *arrays))
        return function

    return enter


def precise(*names: str, **how: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The same of mpmath's numbers."""

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        def of_numbers(*values: Any) -> Any:
            with mpmath.workdps(PLACES):
                return function(*(scalar(v) for v in values))

        pointwise(*names, **how)(of_numbers)
        return function

    return enter


# --- arithmetic -------------------------------------------------------------------------------------

_BROADCAST = [
    sample((), ()), sample((1,), (3,)), sample((3, 1, 2), (2, 1)), sample((1, 1), (1,)), sample((2, 3), ()),
]  # fmt: skip

pointwise("add", dtype=number)(lambda x, y: int(x) + y if isinstance(x, bool) else x + y)
pointwise("sub", dtype=number)(lambda x, y: x - y)
pointwise("mul", dtype=number)(lambda x, y: x * y)
precise("div", dtype=floating)(operator.truediv)
pointwise("neg", dtype=number)(lambda x: 0 - x if x else -x)
pointwise("absolute", dtype=real_of(number))(
    lambda x: math.hypot(x.real, x.imag) if isinstance(x, complex) else max(x, -x)
)
pointwise("sign", dtype=number)(lambda x: (x > 0) - (x < 0))
pointwise("square", dtype=number)(lambda x: x * x)
precise("reciprocal", dtype=floating)(lambda x: 1 / x)


def _power(x: Any, y: Any) -> Any:
    if isinstance(x, int) and isinstance(y, int):
        return math.prod([x] * y)
    with mpmath.workdps(PLACES):
        return mpmath.exp(scalar(y) * mpmath.log(scalar(x))) if x else scalar(0) ** scalar(y)


def _small_power(x: Any, y: Any) -> Any:
    if isinstance(y, int):
        return math.prod([x] * y)
    return _power(x, y)


pointwise("power", dtype=number)(_power)
pointwise("pow", dtype=number)(_small_power)


def _chosen(better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    return lambda x, y: x if x != x or (y == y and better(x, y)) else y


pointwise("maximum")(_chosen(operator.gt))
pointwise("minimum")(_chosen(operator.lt))
pointwise("remainder", dtype=number)(lambda x, y: x - y * math.floor(_ratio(x, y)))
pointwise("fmod", dtype=number)(lambda x, y: x - y * math.trunc(_ratio(x, y)))
pointwise("floor_divide", dtype=number)(lambda x, y: math.floor(_ratio(x, y)))


def _ratio(x: Any, y: Any) -> Any:
    from fractions import Fraction

    return Fraction(x) / Fraction(y)


@oracle("lerp", dtype=meet)
def _lerp(x: Any, y: Any, weight: Any) -> Any:
    return each(lambda x, y, w: (1 - w) * x + w * y, x, y, weight)


def _within(x: Any, low: Any, high: Any) -> Any:
    if low is not None and x < low:
        x = low
    return high if high is not None and x > high else x


@oracle("clamp", dtype=meet)
def _clamp(x: Any, min: Any = None, max: Any = None) -> Any:
    ends = [-math.inf if min is None else min, math.inf if max is None else max]
    return each(_within, x, *ends)


pointwise("copysign", dtype=first)(lambda x, y: math.copysign(x, y))
pointwise("heaviside")(lambda x, v: x if x != x else 0.0 if x < 0 else 1.0 if x > 0 else v)

for _name, _rounded in (("floor", math.floor), ("ceil", math.ceil), ("round", round), ("trunc", math.trunc)):
    pointwise(_name, dtype=number)(_rounded)


@oracle("cast", dtype=given("float32"), more=[
    sample(Draw((4,), -300.0, 300.0), dtype=d) for d in ("int8", "uint8", "float16", "float64", "int64", "bfloat16")
])  # fmt: skip
def _cast(x: Any, dtype: str) -> Any:
    if dtype == "bool":
        return each(lambda v: v != 0, x)
    if "int" not in dtype:
        return x
    if x.dtype.kind != "f":
        return each(int, x)
    bits, signed = int(dtype.lstrip("uint")), not dtype.startswith("u")
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    return each(lambda v: 0 if v != v else min(max(math.trunc(v), low), high), x)


# --- functions --------------------------------------------------------------------------------------

_OF_MPMATH = [
    "exp",
    "expm1",
    "log",
    "log1p",
    "sqrt",
    "sin",
    "cos",
    "tan",
    "tanh",
    "erf",
    "sinh",
    "cosh",
    "asin",
    "acos",
    "atan",
    "asinh",
    "acosh",
    "atanh",
    "erfc",
    "erfinv",
]
for _name in _OF_MPMATH:
    precise(_name, dtype=floating)(getattr(mpmath, _name))

precise("digamma", dtype=floating)(
    lambda x: mpmath.nan if x < 0 and x == int(x) else mpmath.digamma(x) if x else -mpmath.inf
)
precise("rsqrt", dtype=floating)(lambda x: mpmath.power(x, mpmath.mpf(-1) / 2))
precise("sigmoid", dtype=floating)(lambda x: 1 / (1 + mpmath.exp(-x)))
precise("atan2", dtype=floating)(lambda y, x: mpmath.arg(mpmath.mpc(x, y)) if (x or y) else mpmath.mpf(0))
precise("hypot", dtype=floating)(lambda x, y: mpmath.sqrt(x * x + y * y))
precise("logaddexp", dtype=floating)(lambda x, y: mpmath.log(mpmath.exp(x) + mpmath.exp(y)))
precise("xlogy", dtype=floating)(lambda x, y: x * mpmath.log(y) if x else 0)
precise("log2", dtype=floating)(lambda x: mpmath.log(x) / mpmath.log(2))
precise("log10", dtype=floating)(lambda x: mpmath.log(x) / mpmath.log(10))
precise("exp2", dtype=floating)(lambda x: mpmath.mpf(2) ** x)
precise("deg2rad", dtype=floating)(lambda x: x * mpmath.pi / 180)
precise("rad2deg", dtype=floating)(lambda x: x * 180 / mpmath.pi)
precise("sinc", dtype=floating)(lambda x: mpmath.sin(mpmath.pi * x) / (mpmath.pi * x) if x else 1)
precise("lgamma", dtype=floating, floor=0.5)(
    lambda x: mpmath.log(abs(mpmath.gamma(x))) if x > 0 or x != int(x) else mpmath.inf
)
precise("ndtr", dtype=floating)(mpmath.ncdf)
precise("normal_density", dtype=floating)(mpmath.npdf)
precise("ndtri", dtype=floating)(
    lambda x: (
        mpmath.sign(x - mpmath.mpf(1) / 2) * mpmath.inf
        if x in (0, 1)
        else mpmath.sqrt(2) * mpmath.erfinv(2 * x - 1)
        if 0 < x < 1
        else mpmath.nan
    )
)


@oracle("polygamma", dtype=floating, more=[sample(n, Draw((3,), 0.5, 6.0)) for n in (0, 1, 2, 3, 7)])
def _polygamma(n: int, x: Any) -> Any:
    """(-1)^(n+1) n! Σ 1/(x+k)^(n+1), the Hurwitz zeta function; digamma for n = 0."""

    def one(value: Any) -> Any:
        with mpmath.workdps(PLACES):
            at = mpmath.mpf(value)
            if at <= 0 and at == int(at):
                return mpmath.inf if n % 2 else mpmath.nan
            return mpmath.psi(0, at) if n == 0 else (-1) ** (n + 1) * mpmath.factorial(n) * mpmath.zeta(n + 1, at)

    return each(one, x)


# --- comparison, logic, bits ------------------------------------------------------------------------

for _name, _relation in (
    ("equal", operator.eq), ("not_equal", operator.ne), ("less", operator.lt), ("less_equal", operator.le),
    ("greater", operator.gt), ("greater_equal", operator.ge),
):  # fmt: skip
    pointwise(_name, dtype=truth)(_relation)

pointwise("logical_and", dtype=truth)(lambda x, y: bool(x) and bool(y))
pointwise("logical_or", dtype=truth)(lambda x, y: bool(x) or bool(y))
pointwise("logical_xor", dtype=truth)(lambda x, y: bool(x) != bool(y))
pointwise("logical_not", dtype=truth)(lambda x: not x)

_BITS = 70  # more than any integer has


def _bitwise(rule: Callable[[int, int], int]) -> Callable[[int, int], int]:
    """Bit by bit; the sign is a bit too."""

    def combined(x: int, y: int) -> Any:
        found = sum(rule(x >> k & 1, y >> k & 1) << k for k in range(_BITS))
        return bool(found) if isinstance(x, bool) and isinstance(y, bool) else found - (found >> (_BITS - 1) << _BITS)

    return combined


pointwise("bitwise_and")(_bitwise(min))
pointwise("bitwise_or")(_bitwise(max))
pointwise("bitwise_xor")(_bitwise(lambda a, b: int(a != b)))
pointwise("bitwise_not")(lambda x: not x if isinstance(x, bool) else -1 - x)
pointwise("shift_left", dtype=number)(lambda x, y: x * 2**y)
pointwise("shift_right", dtype=number)(lambda x, y: x // 2**y)


@oracle("where", dtype=lambda call: meeting(call.arrays[1:]))
def _where(condition: Any, x: Any, y: Any) -> Any:
    return each(lambda c, x, y: x if c else y, condition, x, y)


def _parts(test: Callable[[float], bool], joined: Callable[..., bool]) -> Callable[[Any], bool]:
    return lambda x: joined((test(x.real), test(x.imag)))


pointwise("isnan", dtype=truth)(_parts(math.isnan, any))
pointwise("isinf", dtype=truth)(_parts(math.isinf, any))
pointwise("isfinite", dtype=truth)(_parts(math.isfinite, all))


@oracle("nan_to_num", dtype=first, judges=True, fixed=("nan",), more=[
    sample(Draw((4,), kind="float", make=lambda rng: [math.nan, math.inf, -math.inf, 1.5]), **how)
    for how in ({}, {"nan": 2.0}, {"posinf": 3.0}, {"neginf": -3.0, "nan": -1.0})
])  # fmt: skip
def _nan_to_num(
    results: Any, x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> None:
    (found,) = results
    most = _GREATEST[name_of(found.dtype)]
    ends = {math.inf: most if posinf is None else posinf, -math.inf: -most if neginf is None else neginf}
    agree(found, each(lambda v: nan if v != v else ends.get(v, v), x))


_GREATEST = {
    "float16": 65504.0, "bfloat16": (2 - 2.0**-7) * 2.0**127, "float32": (2 - 2.0**-23) * 2.0**127,
    "float64": (2 - 2.0**-52) * 2.0**1023,
}  # fmt: skip


def _is_close(x: float, y: float, rtol: float, atol: float, equal_nan: bool) -> bool:
    if math.isnan(x) or math.isnan(y):
        return equal_nan and math.isnan(x) and math.isnan(y)
    if math.isinf(x) or math.isinf(y):
        return x == y
    return abs(x - y) <= atol + rtol * abs(y)


_NEAR = [
    sample(Draw((5,), kind="float", make=lambda rng: [1.0, 2.0, math.nan, math.inf, -math.inf]),
           Draw((5,), kind="float", make=lambda rng: [1.25, 2.0, math.nan, math.inf, math.inf]), **how)
    for how in ({}, {"rtol": 0.5}, {"atol": 0.5}, {"equal_nan": True})
]  # fmt: skip


@oracle("isclose", dtype=truth, more=_NEAR)
def _isclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return each(lambda x, y: _is_close(x, y, rtol, atol, equal_nan), x, y)


@oracle("allclose", dtype=truth, more=_NEAR)
def _allclose(x: Any, y: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    return all(_isclose(x, y, rtol, atol, equal_nan).ravel().tolist())


# --- complex numbers --------------------------------------------------------------------------------

pointwise("real", dtype=real_of(first))(lambda x: x.real)
pointwise("imag", dtype=real_of(first))(lambda x: x.imag)
pointwise("conj")(lambda x: complex(x.real, -x.imag) if isinstance(x, complex) else x)
pointwise("complex", dtype=complex_of(meet))(lambda x, y: cmath.rect(1, 0) * x + complex(0, y))
