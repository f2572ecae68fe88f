"""Elementwise functions that are said with a few instructions or with other ops.

Inverse and hyperbolic functions are rows with derivatives of their own, as tensors, numbers and symbols all read them;
what follows from other ops is a composite. The conventions at corners are PyTorch's unless a row says otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from eshkol.errors import DTypeError, TensorError
from eshkol.ops import complex_code, dtypes
from eshkol.ops.complex_code import pulled
from eshkol.ops.elementwise import (
    absolute,
    cast,
    equal,
    exp,
    imag,
    log,
    logical_and,
    logical_or,
    not_equal,
    pow_,
    real,
    refuse_zero,
    sin,
    sqrt,
    where,
)
from eshkol.ops.reductions import all_, narrow, wide, wide_array
from eshkol.ops.row import Draw, NoDerivative, Op, Partials, Pull, Value, composite, elementwise, sample
from eshkol.ops.shapes import of_reals, refuse_complex, same
from eshkol.ops.special import polynomial, scalar_code

GROUP, ARITHMETIC, COMPARISON = "functions", "arithmetic", "comparison"
_REAL = ("int", "float")
_NUMBERS = ("int", "float", "complex")
_ANY = ("bool", *_NUMBERS)


def floats(x: Value) -> Any:
    """x as a float or complex number: integers become the default float."""
    return x if x.dtype.differentiable else cast(x, dtypes.floating(x.dtype))


def _numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function as a reference rule of a primitive."""
    return lambda a, *arrays: function(*map(wide_array, arrays))


def _widely(function: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy function as the reference of a composite."""
    return lambda *arrays: function(*map(wide_array, arrays))


# --- inverse and hyperbolic functions -------------------------------------------------------------


def _function(name: str, code: Any, reference: Any, factor: Any, doc: str, **rules: Any) -> Op:
    low, high = rules.pop("domain", (-2.0, 2.0))
    samples = tuple(sample(Draw(shape, low, high)) for shape in ((2, 3), (), (0, 2)))
    return elementwise(
        name, "x", doc, group=GROUP, promote="float", dtypes=_NUMBERS, infer=same(), reference=_numpy(reference),
        derivative=Partials((factor,)), lower=scalar_code(code), samples=samples, **rules,
    )  # fmt: skip


_LARGE = 20.0  # from where on e^-x is lost beside e^x


def _odd(e: Any, x: Any, found: Any) -> Any:
    """What was found of |x|, with the sign of x; zeros keep theirs."""
    found = e.select(e.compare("LT", x, 0.0), e.op("NEG", found), found)
    return e.select(e.compare("EQ", x, 0.0), x, found)


def _sinh(e: Any, x: Any) -> Any:
    size = e.op("ABS", x)
    less = e.op("EXPM1", size)
    half = e.op("EXP", size * 0.5)  # squared last, so that the result may come near the greatest float
    found = e.select(
        e.compare("GT", size, _LARGE), half * 0.5 * half, (less + e.op("DIV", less, less + 1.0)) * 0.5
    )  # fmt: skip
    return _odd(e, x, found)


def _cosh(e: Any, x: Any) -> Any:
    size = e.op("ABS", x)
    whole, half = e.op("EXP", size), e.op("EXP", size * 0.5)
    return e.select(e.compare("GT", size, _LARGE), half * 0.5 * half, (whole + e.op("DIV", 1.0, whole)) * 0.5)


def _beside(e: Any, x: Any) -> Any:
    """√(1 - x²)."""
    return e.op("SQRT", (1.0 - x) * (x + 1.0))


_ASIN = (  # (asin(s) - s)/s³ by powers of s² up to 1/4, for float32: within a twentieth of a place
    0.1666666567325592, 0.07500098645687103, 0.044598035514354706, 0.031116124242544174, 0.017077989876270294,
    0.03380555659532547,
)  # fmt: skip
_QUARTER, _QUARTER_LOW = 1.5707963705062866, -4.371139000186241e-08  # π/2 as two of float32


def _asin_of_half(e: Any, s: Any, z: Any) -> Any:
    """asin(s) up to 1/2, z = s²."""
    return e.op("FMA", s * z, polynomial(e, _ASIN, z), s)


def _asin(e: Any, x: Any) -> Any:
    """Beyond 1/2 by the half angle: π/2 - 2·asin(√((1 - x)/2))."""
    if x.dtype is dtypes.float64:
        return e.op("ATAN2", x, _beside(e, x))
    size = e.op("ABS", x)
    far = e.compare("GT", size, 0.5)
    z = e.select(far, (1.0 - size) * 0.5, size * size)
    found = _asin_of_half(e, e.select(far, e.op("SQRT", z), size), z)
    return _odd(e, x, e.select(far, (_QUARTER - found * 2.0) + _QUARTER_LOW, found))


def _acos(e: Any, x: Any) -> Any:
    if x.dtype is dtypes.float64:
        return e.op("ATAN2", _beside(e, x), x)
    size = e.op("ABS", x)
    far, left = e.compare("GT", size, 0.5), e.compare("LT", x, 0.0)
    z = e.select(far, (1.0 - size) * 0.5, size * size)
    found = _asin_of_half(e, e.select(far, e.op("SQRT", z), x), z)
    near = (_QUARTER - found) + _QUARTER_LOW
    beyond = e.select(left, (2 * _QUARTER - found * 2.0) + 2 * _QUARTER_LOW, found * 2.0)
    return e.select(far, beyond, near)


def _log_of_twice(e: Any, x: Any) -> Any:
    return e.op("LOG", x) + math.log(2)


_FAR = 1e9  # from where on √(x² ± 1) is x in every dtype, and x² not yet infinite


def _asinh(e: Any, x: Any) -> Any:
    size = e.op("ABS", x)
    square = size * size
    near = e.op("LOG1P", size + e.op("DIV", square, e.op("SQRT", square + 1.0) + 1.0))
    return _odd(e, x, e.select(e.compare("GT", size, _FAR), _log_of_twice(e, size), near))


def _acosh(e: Any, x: Any) -> Any:
    above = x - 1.0
    near = e.op("LOG1P", above + e.op("SQRT", above * (x + 1.0)))
    found = e.select(e.compare("GT", x, _FAR), _log_of_twice(e, x), near)
    return e.select(e.compare("LT", x, 1.0), math.nan, found)


def _atanh(e: Any, x: Any) -> Any:
    size = e.op("ABS", x)
    return _odd(e, x, e.op("LOG1P", e.op("DIV", size * 2.0, 1.0 - size)) * 0.5)


def _beyond(x: Any) -> Any:
    """√(1 + x²)."""
    return sqrt(x * x + 1) if x.dtype.is_complex else hypot(x, 1)


sinh: Op = _function(
    "sinh", _sinh, np.sinh, lambda r, x: cosh(x), "Hyperbolic sine, accurate near 0.",
    procedures=("sinh",), of_complex=pulled(complex_code.sinh),
)  # fmt: skip
cosh: Op = _function(
    "cosh", _cosh, np.cosh, lambda r, x: sinh(x), "Hyperbolic cosine.", procedures=("cosh",),
    of_complex=pulled(complex_code.cosh),
)  # fmt: skip
asin = _function(
    "asin", _asin, np.arcsin, lambda r, x: 1 / sqrt((1 - x) * (1 + x)),
    "The angle in radians whose sine is x.", domain=(-0.9, 0.9), aliases=("arcsin",), procedures=("asin",),
)  # fmt: skip
acos = _function(
    "acos", _acos, np.arccos, lambda r, x: -1 / sqrt((1 - x) * (1 + x)),
    "The angle in radians whose cosine is x.", domain=(-0.9, 0.9), aliases=("arccos",), procedures=("acos",),
)  # fmt: skip
atan = _function(
    "atan", lambda e, x: e.op("ATAN2", x, 1.0), np.arctan, lambda r, x: 1 / (1 + x * x),
    "The angle in radians whose tangent is x.", aliases=("arctan",), procedures=("atan",),
)  # fmt: skip
asinh = _function(
    "asinh", _asinh, np.arcsinh, lambda r, x: 1 / _beyond(x), "The number whose sinh is x, accurate near 0.",
    aliases=("arcsinh",), procedures=("asinh",),
)  # fmt: skip
acosh = _function(
    "acosh", _acosh, np.arccosh, lambda r, x: 1 / (sqrt(x - 1) * sqrt(x + 1)),
    "The number, not negative, whose cosh is x.", domain=(1.2, 4.0), aliases=("arccosh",), procedures=("acosh",),
)  # fmt: skip
atanh = _function(
    "atanh", _atanh, np.arctanh, lambda r, x: 1 / ((1 - x) * (1 + x)), "The number whose tanh is x, accurate near 0.",
    domain=(-0.9, 0.9), aliases=("arctanh",), procedures=("atanh",),
)  # fmt: skip


# --- of two operands ------------------------------------------------------------------------------


def _pair(name: str, code: Any, reference: Any, factors: Any, doc: str, **rules: Any) -> Op:
    rules = {"group": GROUP, "promote": "float", "lower": scalar_code(code)} | rules
    rules.setdefault("samples", (sample((2, 3), (2, 3)), sample((2, 1), (3,)), sample((), (2,)), sample((0, 2), (2,))))
    return elementwise(
        name, "x y", doc, dtypes=_REAL, infer=of_reals(), reference=_numpy(reference), **rules,
        derivative=factors if isinstance(factors, NoDerivative) else Partials(factors),
    )  # fmt: skip


def _hypot(e: Any, x: Any, y: Any) -> Any:
    x, y = e.op("ABS", x), e.op("ABS", y)
    more, less = e.op("MAX", x, y), e.op("MIN", x, y)
    ratio = e.op("DIV", less, e.select(e.compare("EQ", more, 0.0), 1.0, more))
    found = more * e.op("SQRT", e.op("FMA", ratio, ratio, 1.0))
    found = e.select(e.compare("NE", x + y, x + y), x + y, found)  # MAX and MIN pass over NaN
    return e.select(e.compare("EQ", more, math.inf), math.inf, found)


def _share(r: Any, x: Any) -> Any:
    return x / where(equal(r, 0), 1, r)


hypot: Op = _pair(
    "hypot", _hypot, np.hypot, (lambda r, x, y: _share(r, x), lambda r, x, y: _share(r, y)),
    "√(x² + y²) without overflow; the derivative at 0 is 0.", procedures=("hypot",),
)  # fmt: skip


def _logaddexp(e: Any, x: Any, y: Any) -> Any:
    apart = e.select(e.compare("EQ", x, y), 0.0, e.op("ABS", x - y))  # equal infinities are not apart
    return e.op("MAX", x, y) + e.op("LOG1P", e.op("EXP", e.op("NEG", apart)))


def _weight(r: Any, x: Any) -> Any:
    return exp(x - where(equal(r, -math.inf), 0, r))


logaddexp = _pair(
    "logaddexp", _logaddexp, np.logaddexp, (lambda r, x, y: _weight(r, x), lambda r, x, y: _weight(r, y)),
    "log(e^x + e^y) without overflow; where both are -inf the derivative is 0.",
)  # fmt: skip


def _xlogy(e: Any, x: Any, y: Any) -> Any:
    nothing = e.op("AND", e.compare("EQ", x, 0.0), e.compare("EQ", y, y))
    return e.select(nothing, 0.0, x * e.op("LOG", y))


def _xlogy_reference(x: Any, y: Any) -> Any:
    from scipy import special

    return special.xlogy(x.astype(np.float64), y.astype(np.float64))


def _xlogy_slope(r: Any, x: Any, y: Any) -> Any:
    flat = logical_and(equal(x, 0), y <= 0)
    return where(flat, 0, log(where(flat, 1, y)))


xlogy = _pair(
    "xlogy", _xlogy, _xlogy_reference, (_xlogy_slope, lambda r, x, y: x / y),
    "x·log(y), which is 0 where x is 0, whatever y is (unless NaN).",
    samples=(sample((2, 3), Draw((2, 3), 0.5, 3.0)), sample((2, 1), Draw((3,), 0.5, 3.0)), sample((0,), (1,))),
)  # fmt: skip


def _floor_divide(e: Any, a: Any, i: Any, x: Any, y: Any) -> Any:
    one, other = x(i), y(i)
    left = e.op("REM", one, other)
    zero = e.constant(0, one.dtype)
    below = e.op("XOR", e.compare("LT", left, zero), e.compare("LT", other, zero))
    below = e.op("AND", below, e.compare("NE", left, zero))
    if not one.dtype.is_float:
        quotient = e.op("DIV", one, other)
        return e.select(below, e.op("SUB", quotient, 1), quotient)
    # As NumPy: the multiple of y that remainder leaves out, so that x == y * (x // y) + x % y.
    quotient = e.op("DIV", e.op("SUB", one, left), other)
    quotient = e.select(below, e.op("SUB", quotient, 1.0), quotient)
    nearest = e.op("FLOOR", quotient)
    away = e.compare("GT", e.op("SUB", quotient, nearest), 0.5)
    nearest = e.select(away, e.op("ADD", nearest, 1.0), nearest)
    exact = e.op("DIV", one, other)
    nearest = e.select(e.compare("EQ", quotient, zero), e.op("MUL", exact, zero), nearest)  # 0, with the sign of x / y
    return e.select(e.compare("EQ", other, zero), exact, nearest)


floor_divide = _pair(
    "floor_divide", None, np.floor_divide, NoDerivative("it is constant between its steps"),
    "The greatest integer not above x / y; integers by zero are an error.", group=ARITHMETIC, promote="number",
    lower=Pull(_floor_divide), procedures=("floor-quotient",), refuses=refuse_zero,
    samples=(
        sample((2, 3), Draw((2, 3), 1.0, 3.0)), sample((2, 1), Draw((3,), -3.0, -1.0)),
        sample((0,), Draw((1,), 1.0, 2.0)),
    ),
)  # fmt: skip


@composite(
    group=ARITHMETIC, reference=_widely(np.copysign),
    samples=(sample((2, 3), (2, 3)), sample((2, 1), (3,)), sample((0,), ())),
)  # fmt: skip
def copysign(x: Value, y: Value) -> Any:
    """|x| with the sign of y, also of -0.0 (NaN counts as positive); the derivative where x is 0 is 0."""
    refuse_complex(x, y)
    x, y = (floats(z) if isinstance(z, Value) else z for z in (x, y))
    if not isinstance(y, Value):
        return -absolute(x) if math.copysign(1, y) < 0 else absolute(x)
    size = absolute(x)
    return where(logical_or(y < 0, logical_and(equal(y, 0), 1 / y < 0)), -size, size)


@composite(
    group=GROUP, reference=_widely(np.heaviside),
    samples=(sample((2, 3), (2, 3)), sample((2, 1), (3,)), sample((0,), ())),
)  # fmt: skip
def heaviside(x: Value, values: Value) -> Any:
    """0 where x is negative, 1 where it is positive, and `values` where it is 0; NaN stays."""
    refuse_complex(x, values)
    x = floats(x)
    step = where(equal(x, x), cast(x > 0, x.dtype), x)
    return where(equal(x, 0), values, step)


def _lerp_reference(x: Any, y: Any, weight: Any) -> Any:
    x, y, weight = (np.asarray(z).astype(np.float64) for z in (x, y, weight))
    return (1 - weight) * x + weight * y


@composite(
    group=ARITHMETIC, reference=_lerp_reference, tolerance=4.0,
    samples=(
        sample((2, 3), (2, 3), Draw((2, 3), 0.0, 1.0)), sample((2, 3), (3,), 0.25), sample((2, 3), (), 0.75),
        sample((0,), (1,), Draw((), 0.0, 1.0)),
    ),
)  # fmt: skip
def lerp(x: Value, y: Value, weight: Value) -> Any:
    """From x (weight 0) to y (weight 1) in a straight line; exact at both ends."""
    way = y - x
    if not isinstance(weight, Value):
        return x + weight * way if weight < 0.5 else y - way * (1 - weight)
    return where(weight < 0.5, x + weight * way, y - way * (1 - weight))


def _clamp_reference(x: Any, min: Any = None, max: Any = None) -> Any:
    return np.clip(x, min, max)


@composite(
    group=ARITHMETIC, reference=_clamp_reference, dtypes=_REAL, aliases=("clip",),
    samples=(
        sample((2, 3), min=0, max=1), sample((2, 3), min=1), sample((2, 3), max=1),
        sample((2, 3), Draw((3,), 0.0, 1.0), Draw((2, 1), 1.0, 2.0)), sample((0, 2), min=0, max=1),
    ),
)  # fmt: skip
def clamp(x: Value, min: Value | None = None, max: Value | None = None) -> Any:
    """x brought between min and max, numbers or tensors, of which one may be left out; NaN stays, and of a bound too.

    The derivative passes to x inside and at the bounds, to a bound outside of it; where min > max, max counts.
    """
    if min is None and max is None:
        raise TensorError("clamp needs min, max or both")
    if min is not None:
        x = where(_or_nan(x < min, min), min, x)
    return x if max is None else where(_or_nan(x > max, max), max, x)


def _or_nan(condition: Any, bound: Any) -> Any:
    """The condition, or that a bound is NaN, which compares with nothing."""
    if isinstance(bound, Value):
        return logical_or(condition, not_equal(bound, bound)) if bound.dtype.is_float else condition
    return logical_or(condition, True) if bound != bound else condition


# --- of one operand -------------------------------------------------------------------------------


def _composite(doc: str, reference: Any, **rules: Any) -> Callable[[Callable[..., Any]], Op]:
    low, high = rules.pop("domain", (-2.0, 2.0))
    rules = {"group": GROUP, "dtypes": _REAL, "reference": _widely(reference)} | rules
    rules.setdefault("samples", tuple(sample(Draw(shape, low, high)) for shape in ((2, 3), (), (0, 2))))

    def made(function: Callable[..., Any]) -> Op:
        function.__doc__ = doc
        return composite(**rules)(function)

    return made


@_composite("x².", np.square, group=ARITHMETIC, dtypes=_NUMBERS, scheme=("tensor-square",), procedures=("square",))
def square(x: Value) -> Any:
    return x * x


@_composite(
    "1 / x; integers become floats first.", lambda x: 1 / x, group=ARITHMETIC, dtypes=_NUMBERS, domain=(1, 3),
    procedures=("/",),
)  # fmt: skip
def reciprocal(x: Value) -> Any:
    return 1 / x


@_composite("Logarithm to the base 2.", np.log2, domain=(0.25, 4.0))
def log2(x: Value) -> Any:
    return log(x) * (1 / math.log(2))


@_composite("Logarithm to the base 10.", np.log10, domain=(0.25, 4.0))
def log10(x: Value) -> Any:
    return log(x) * (1 / math.log(10))


@_composite("2 to the power x.", np.exp2)
def exp2(x: Value) -> Any:
    return pow_(2.0, floats(x))


@_composite("Degrees as radians.", np.deg2rad, aliases=("radians",))
def deg2rad(x: Value) -> Any:
    return floats(x) * (math.pi / 180)


@_composite("Radians as degrees.", np.rad2deg, aliases=("degrees",))
def rad2deg(x: Value) -> Any:
    return floats(x) * (180 / math.pi)


_SINC = tuple((-1) ** k / math.factorial(2 * k + 1) for k in range(9))  # of sin(u)/u, in u²


@_composite(
    "sin(πx) / (πx), and 1 at 0, with its derivatives.", np.sinc, dtypes=("float",),
    samples=(sample((2, 3)), sample(Draw((3,), make=lambda rng: [0.0, 1e-3, 0.2])), sample((0,))),
)  # fmt: skip
def sinc(x: Value) -> Any:
    angle = wide(x) * math.pi
    near = absolute(angle) < 1
    small = where(near, angle, 0)
    power, series = small * small, _SINC[-1]
    for c in reversed(_SINC[:-1]):
        series = series * power + c
    away = where(near, 1, angle)
    return narrow(where(near, series, sin(away) / away), x.dtype)


_SPECIAL = (sample(Draw((6,), make=lambda rng: [1.0, np.nan, np.inf, -np.inf, 0.0, -2.5])), sample((0, 2)))


@_composite("Whether x is NaN.", np.isnan, group=COMPARISON, dtypes=("float", "complex"), samples=_SPECIAL)
def isnan(x: Value) -> Any:
    return not_equal(x, x)


def _parts(x: Value, test: Callable[[Any], Any], join: Op) -> Any:
    return join(test(real(x)), test(imag(x))) if x.dtype.is_complex else test(x)


@_composite("Whether x is infinite.", np.isinf, group=COMPARISON, dtypes=("float", "complex"), samples=_SPECIAL)
def isinf(x: Value) -> Any:
    if not x.dtype.differentiable:
        return not_equal(x, x)
    return _parts(x, lambda y: equal(absolute(y), math.inf), logical_or)


@_composite(
    "Whether x is neither infinite nor NaN.", np.isfinite, group=COMPARISON, dtypes=("float", "complex"),
    samples=_SPECIAL,
)  # fmt: skip
def isfinite(x: Value) -> Any:
    if not x.dtype.differentiable:
        return equal(x, x)
    return _parts(x, lambda y: absolute(y) < math.inf, logical_and)


def _greatest(dtype: dtypes.DType) -> float:
    limits: Any = ml_dtypes.finfo  # NumPy's does not know bfloat16
    return float(limits(dtype.numpy).max)


def _nan_to_num_reference(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    most = _greatest(dtypes.of(x.dtype))
    posinf, neginf = most if posinf is None else posinf, -most if neginf is None else neginf
    return np.nan_to_num(x.astype(np.float64), nan=nan, posinf=posinf, neginf=neginf)


@composite(
    group=GROUP, reference=_nan_to_num_reference, samples=(*_SPECIAL, sample(_SPECIAL[0].args[0], nan=1.5, posinf=9.0)),
)  # fmt: skip
def nan_to_num(x: Value, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Any:
    """x with numbers for NaN and the infinities (by default 0 and the greatest and least finite ones)."""
    if x.dtype.is_complex:
        raise DTypeError(f"nan_to_num is not defined for {x.dtype}", hint="treat x.real and x.imag apart")
    if not x.dtype.is_float:
        return x
    most = _greatest(x.dtype)
    x = where(not_equal(x, x), nan, x)
    x = where(equal(x, math.inf), most if posinf is None else posinf, x)
    return where(equal(x, -math.inf), -most if neginf is None else neginf, x)


def _isclose_reference(x: Any, y: Any, **attrs: Any) -> Any:
    return np.isclose(wide_array(x), wide_array(y), **attrs)


_NEAR = Draw((5,), make=lambda rng: [1.0, np.inf, np.nan, -np.inf, 1000.0])
_NEAR_TOO = Draw((5,), make=lambda rng: [1.0, np.inf, np.nan, np.inf, 1000.5])
_close_samples = (
    sample(_NEAR, _NEAR_TOO), sample(_NEAR, _NEAR_TOO, equal_nan=True), sample(_NEAR, _NEAR_TOO, rtol=0.01),
    sample((2, 3), (3,), atol=1.0), sample((0,), (1,)),
)  # fmt: skip


@composite(group=COMPARISON, reference=_isclose_reference, samples=_close_samples)
def isclose(x: Value, y: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether |x - y| ≤ atol + rtol·|y|; equal infinities are close, NaNs only with equal_nan."""
    x, y = (z if not isinstance(z, Value) or z.dtype.differentiable else cast(z, dtypes.float64) for z in (x, y))
    given = y if isinstance(y, Value) else x * 0 + y
    near = absolute(x - given) <= atol + rtol * absolute(given)
    near = logical_or(equal(x, given), logical_and(isfinite(given), near))
    return logical_or(near, logical_and(isnan(x), isnan(given))) if equal_nan else near


@composite(
    group=COMPARISON, samples=_close_samples,
    reference=lambda x, y, **attrs: np.all(_isclose_reference(x, y, **attrs)),
)  # fmt: skip
def allclose(x: Value, y: Value, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Any:
    """Whether all elements are close, in the sense of isclose."""
    return all_(isclose(x, y, rtol, atol, equal_nan))
