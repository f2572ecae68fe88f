"""An independent oracle for register instructions: exact rationals, Python integers and mpmath.

Nothing here uses the table's meanings or NumPy arithmetic. `expected(name, ty, operands)` gives the value that
the ISA's prose asks for, rounded as it says; `TOLERANCE` says where a last-place difference is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

from eshkol.atlas.types import Type, encode

mpmath.mp.prec = 400
_EXPONENTS = {Type.F16: (-14, 15), Type.BF16: (-126, 127), Type.F32: (-126, 127), Type.F64: (-1022, 1023)}
FRACTION_BITS = {Type.F16: 10, Type.BF16: 7, Type.F32: 23, Type.F64: 52}


def round_exact(value: Fraction, ty: Type) -> float:
    """A rational rounded to nearest even in a float type."""
    if value == 0:
        return 0.0
    low, high = _EXPONENTS[ty]
    magnitude = abs(value)
    exponent = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    if Fraction(2) ** exponent > magnitude:
        exponent -= 1
    step = Fraction(2) ** (max(exponent, low) - FRACTION_BITS[ty])
    whole, rest = divmod(magnitude, step)
    if rest * 2 > step or (rest * 2 == step and whole % 2):
        whole += 1
    rounded = whole * step
    limit = Fraction(2) ** (high + 1)
    result = math.inf if rounded >= limit else float(rounded)
    return -result if value < 0 else result


def rounded(value: float | Fraction, ty: Type) -> float:
    """Any result brought to a float type; 16-bit floats go through F32, as the ISA says of arithmetic."""
    if isinstance(value, float) and (math.isnan(value) or math.isinf(value) or value == 0):
        return value
    exact = Fraction(value)
    if ty in (Type.F16, Type.BF16):
        single = round_exact(exact, Type.F32)
        if math.isinf(single) or single == 0:
            return single
        exact = Fraction(single)
    return round_exact(exact, ty)


def wrapped(value: int, ty: Type) -> int:
    value &= (1 << ty.bits) - 1
    return value - (1 << ty.bits) if ty.is_signed and value >> (ty.bits - 1) else value


def _finite(*values: float) -> bool:
    return all(math.isfinite(v) for v in values)


def _ieee(ordinary: Callable[..., float], exact: Callable[..., Fraction]) -> Callable[..., float | Fraction]:
    """Exact where everything is finite and the result is not zero; IEEE double rules for the special cases."""

    def compute(*operands: float) -> float | Fraction:
        if not _finite(*operands):
            return ordinary(*operands)
        result = exact(*map(Fraction, operands))
        return result if result != 0 else ordinary(*operands)

    return compute


def _divide(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b) or (a == 0 and b == 0) or (math.isinf(a) and math.isinf(b)):
        return math.nan
    sign = math.copysign(1, a) * math.copysign(1, b)
    if b == 0 or math.isinf(a):
        return math.copysign(math.inf, sign)
    return math.copysign(0.0, sign)


def _float_div(a: float, b: float) -> float | Fraction:
    return Fraction(a) / Fraction(b) if _finite(a, b) and a != 0 and b != 0 else _divide(a, b)


def _float_rem(a: float, b: float) -> float:
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    return math.fmod(a, b)


def _fma_special(a: float, b: float, c: float) -> float:
    if _finite(a, b, c) and a != 0 and b != 0 and c != 0:
        return 0.0  # an exact cancellation is +0
    product = a * b if not _finite(a, b) or a == 0 or b == 0 else math.copysign(1e-300, a) * math.copysign(1, b)
    return product + c if product == 0 or not _finite(product) else (c if not _finite(c) else product + c)


def _pick(better: Callable[[Any, Any], bool]) -> Callable[[Any, Any], Any]:
    def choose(a: Any, b: Any) -> Any:
        if a != a:
            return b
        if b != b:
            return a
        return a if better(a, b) else b

    return choose


def _trunc_div(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _nearest_even(x: float) -> float:
    if not math.isfinite(x) or x == 0:
        return x
    whole = round(Fraction(x))  # Python rounds halves to even
    return math.copysign(float(abs(whole)), x)


def _toward(pick: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: (
        x if not math.isfinite(x) or x == 0 else math.copysign(float(abs(pick(x))), x if pick(x) == 0 else pick(x))
    )


def _sign(x: Any) -> Any:
    return type(x)(1) if x > 0 else type(x)(-1) if x < 0 else x


# --- transcendentals, to 400 bits -----------------------------------------------------------------


def _mp(function: Callable[..., Any], special: Callable[..., float | None]) -> Callable[..., float | Fraction]:
    def compute(*operands: float) -> float | Fraction:
        known = special(*operands)
        if known is not None:
            return known
        value = function(*(mpmath.mpf(x) for x in operands))
        if value == 0:
            return 0.0
        sign, mantissa, exponent, _ = value._mpf_
        return (-1) ** sign * Fraction(int(mantissa)) * Fraction(2) ** max(min(int(exponent), 5000), -5000)

    return compute


def _through(table: dict[float, float], keep_zero: bool = True) -> Callable[[float], float | None]:
    def special(x: float) -> float | None:
        if math.isnan(x):
            return math.nan
        if x == 0 and keep_zero:
            return x
        return table.get(x)

    return special


INF = math.inf


def _log_special(x: float) -> float | None:
    if math.isnan(x) or x < 0:
        return math.nan
    return -INF if x == 0 else INF if x == INF else None


def _log1p_special(x: float) -> float | None:
    if math.isnan(x) or x < -1:
        return math.nan
    return x if x == 0 else -INF if x == -1 else INF if x == INF else None


def _sqrt_special(x: float) -> float | None:
    if math.isnan(x) or x < 0:
        return math.nan
    return x if x == 0 or x == INF else None


def _pow_special(a: float, b: float) -> float | None:
    if _finite(a, b) and a > 0:
        return 1.0 if b == 0 or a == 1 else None
    if _finite(a, b) and a < 0 and b == int(b) and b != 0:
        return None
    try:
        return math.pow(a, b)
    except ValueError:  # Python refuses what C gives an infinity or NaN for
        if a == 0:
            odd = b == int(b) and int(b) % 2 == 1
            return math.copysign(INF, a) if odd else INF
        return math.nan


def _exp_like(x: Any) -> Any:
    return mpmath.exp(mpmath.mpf(max(min(x, 20000), -20000)))


def _atan2_special(y: float, x: float) -> float | None:
    if not _finite(x, y) or x == 0 or y == 0:
        return math.atan2(y, x)
    return None


FLOAT_RULES: dict[str, Callable[..., Any]] = {
    "ADD": _ieee(lambda a, b: a + b, lambda a, b: a + b),
    "SUB": _ieee(lambda a, b: a - b, lambda a, b: a - b),
    "MUL": _ieee(lambda a, b: a * b, lambda a, b: a * b),
    "DIV": _float_div,
    "REM": _float_rem,
    "FMA": _ieee(_fma_special, lambda a, b, c: a * b + c),
    "FMS": _ieee(lambda a, b, c: _fma_special(a, b, -c), lambda a, b, c: a * b - c),
    "MIN": _pick(lambda a, b: a <= b),
    "MAX": _pick(lambda a, b: a >= b),
    "ABS": lambda a: math.copysign(a, 1.0),
    "NEG": lambda a: math.copysign(a, -math.copysign(1.0, a)),
    "RCP": lambda a: _float_div(1.0, a),
    "CLAMP": lambda x, low, high: _pick(lambda a, b: a <= b)(_pick(lambda a, b: a >= b)(x, low), high),
    "SIGN": _sign,
    "FLOOR": _toward(math.floor),
    "CEIL": _toward(math.ceil),
    "TRUNC": _toward(math.trunc),
    "ROUND": _nearest_even,
    "RELU": lambda x: 0.0 if x < 0 else x,
    "EXP": _mp(_exp_like, _through({0.0: 1.0, INF: INF, -INF: 0.0}, keep_zero=False)),
    "EXP2": _mp(
        lambda x: mpmath.mpf(0) if x < -126 else mpmath.mpf(2) ** min(x, 4000),
        _through({0.0: 1.0, INF: INF, -INF: 0.0}, keep_zero=False),
    ),
    "EXPM1": _mp(lambda x: mpmath.expm1(x) if x < 20000 else mpmath.mpf(2) ** 4000, _through({INF: INF, -INF: -1.0})),
    "LOG": _mp(mpmath.log, _log_special),
    "LOG1P": _mp(lambda x: mpmath.log1p(x), _log1p_special),
    "SQRT": _mp(mpmath.sqrt, _sqrt_special),
    "SIN": _mp(mpmath.sin, _through({INF: math.nan, -INF: math.nan})),
    "COS": _mp(mpmath.cos, _through({0.0: 1.0, INF: math.nan, -INF: math.nan}, keep_zero=False)),
    "TAN": _mp(mpmath.tan, _through({INF: math.nan, -INF: math.nan})),
    "TANH": _mp(mpmath.tanh, _through({INF: 1.0, -INF: -1.0})),
    "SIGMOID": _mp(lambda x: 1 / (1 + _exp_like(-x)), _through({INF: 1.0, -INF: 0.0}, keep_zero=False)),
    "ERF": _mp(mpmath.erf, _through({INF: 1.0, -INF: -1.0})),
    "POW": _mp(
        lambda a, b: (
            mpmath.power(a, b)
            if abs(b) < 1e6 or a == 1
            else mpmath.exp(max(min(b * mpmath.log(abs(a)), 20000), -20000))
        ),
        _pow_special,
    ),
    "ATAN2": _mp(mpmath.atan2, _atan2_special),
}
INTEGER_RULES: dict[str, Callable[..., int]] = {
    "ADD": lambda a, b: a + b,
    "SUB": lambda a, b: a - b,
    "MUL": lambda a, b: a * b,
    "DIV": _trunc_div,
    "REM": lambda a, b: a - b * _trunc_div(a, b),
    "FMA": lambda a, b, c: a * b + c,
    "FMS": lambda a, b, c: a * b - c,
    "MIN": min,
    "MAX": max,
    "ABS": abs,
    "NEG": lambda a: -a,
    "CLAMP": lambda x, low, high: min(max(x, low), high),
    "SIGN": lambda x: (x > 0) - (x < 0),
    "RELU": lambda x: max(x, 0),
    "AND": lambda a, b: a & b,
    "OR": lambda a, b: a | b,
    "XOR": lambda a, b: a ^ b,
    "NOT": lambda a: ~a,
}
# Each step of these rounds to the type, so they are composed of the rules above.
COMPOSED: dict[str, Callable[..., float]] = {
    "RSQRT": lambda ty, x: expected("DIV", ty, (1.0, expected("SQRT", ty, (x,)))),
    "LERP": lambda ty, a, b, t: expected("FMA", ty, (expected("SUB", ty, (b, a)), t, a)),
    "SWISH": lambda ty, x: expected("MUL", ty, (x, expected("SIGMOID", ty, (x,)))),
    "GELU": lambda ty, x: expected("MUL", ty, (
        expected("MUL", ty, (x, 0.5)),
        expected("ADD", ty, (expected("ERF", ty, (expected("MUL", ty, (x, rounded(math.sqrt(0.5), ty))),)), 1.0)),
    )),
}  # fmt: skip
_ONE_PLACE = ("EXP", "EXP2", "EXPM1", "LOG", "LOG1P", "SIN", "COS", "TAN", "TANH", "SIGMOID", "ERF", "POW", "ATAN2")
TOLERANCE = {**dict.fromkeys(_ONE_PLACE, 1), "SWISH": 2, "GELU": 2}
"""Last places by which the reference may differ from the exact value."""


def expected(name: str, ty: Type, operands: tuple[Any, ...]) -> Any:
    """What the instruction must give on these operands of one type."""
    if name in COMPOSED:
        return COMPOSED[name](ty, *operands)
    if ty.is_float:
        return rounded(FLOAT_RULES[name](*operands), ty)
    if name in ("SHL", "SHR"):
        amount = operands[1] % ty.bits
        return wrapped(operands[0] << amount if name == "SHL" else operands[0] >> amount, ty)
    return wrapped(INTEGER_RULES[name](*operands), ty)


def knows(name: str) -> bool:
    return name in FLOAT_RULES or name in INTEGER_RULES or name in COMPOSED or name in ("SHL", "SHR")


# --- values and comparison ------------------------------------------------------------------------


def samples(ty: Type, count: int = 24) -> list[Any]:
    """Corner cases and random values of a type."""
    rng = np.random.default_rng(ty.bits + ty.is_signed)
    if ty.is_integer:
        corners = [0, 1, 2, 3, 7, ty.max_value, ty.max_value - 1, ty.min_value, ty.min_value + 1, ty.bits - 1, 95, 96]
        corners += [-1, -2, -7] if ty.is_signed else []
        extra = [int.from_bytes(rng.bytes(ty.size_bytes), "little") >> int(rng.integers(ty.bits)) for _ in range(count)]
        return list(dict.fromkeys(wrapped(v, ty) for v in corners + extra))
    top = round_exact(Fraction(2) ** _EXPONENTS[ty][1] * (2 - Fraction(2) ** -FRACTION_BITS[ty]), ty)
    tiny = float(Fraction(2) ** (_EXPONENTS[ty][0] - FRACTION_BITS[ty]))
    least = float(Fraction(2) ** _EXPONENTS[ty][0])
    corners_f = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        3.0,
        10.0,
        0.1,
        top,
        -top,
        tiny,
        -tiny,
        least,
        INF,
        -INF,
        math.nan,
    ]
    spread = list(rng.standard_normal(count // 2) * 3) + list(
        rng.standard_normal(count // 2) * 10.0 ** rng.integers(-4, 4, count // 2)
    )
    return [
        round_exact(Fraction(float(v)), ty) if math.isfinite(v) and v != 0 else float(v) for v in corners_f + spread
    ]


def bits(values: Any, ty: Type) -> list[int]:
    """Bit patterns, every NaN as one pattern."""
    array = np.empty(len(values), ty.dtype)
    array[:] = values
    raw = encode(array, ty)
    patterns = [int.from_bytes(row.tobytes(), "little") for row in raw]
    return [-1 if v != v else pattern for v, pattern in zip(values, patterns, strict=True)]


def places_apart(a: float, b: float, ty: Type) -> int:
    """How many representable values lie between two floats of a type."""

    def order(value: float) -> int:
        pattern = bits([value], ty)[0]
        top = 1 << (ty.bits - 1)
        return -(pattern - top) if pattern >= top else pattern

    if a != a or b != b:
        return 0 if a != a and b != b else 1 << 60
    return abs(order(a) - order(b))
