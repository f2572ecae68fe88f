"""What instructions of Atlas are in StableHLO: functions on arrays of one shape.

Comes in: mnemonics that rows' scalar code names. Where StableHLO says less than Atlas does (of a number and NaN, the
number; shifts by amounts modulo the width; rounding once), the difference is written out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eshkol.ops import dtypes
from eshkol.schedule.whole.arrays import Arrays
from eshkol.schedule.whole.text import Value

Code = Callable[..., Value]
SPLITS = {dtypes.float64: 134217729.0}  # 2^27 + 1: numbers in two halves, whose products are exact


def _plain(name: str) -> Code:
    return lambda t, *xs: t.same(name, *xs)


def _extreme(name: str) -> Code:
    """The number, of a number and NaN."""

    def code(t: Arrays, x: Value, y: Value) -> Value:
        found = t.combined(name, x, y)
        if not x.dtype.is_float:
            return found
        return t.select(t.compare("NE", x, x), y, t.select(t.compare("NE", y, y), x, found))

    return code


def _shift(name: str) -> Code:
    def code(t: Arrays, x: Value, amount: Value) -> Value:
        kind = "shift_left" if name == "SHL" else f"shift_right_{'arithmetic' if x.dtype.signed else 'logical'}"
        return t.same(kind, x, t.same("and", amount, t.filled(x.dtype.bits - 1, amount)))

    return code


def _relu(t: Arrays, x: Value) -> Value:
    zero = t.filled(0, x)
    return t.select(t.compare("LT", x, zero), zero, x)


def _absolute(t: Arrays, x: Value) -> Value:
    return x if not x.dtype.signed or x.dtype.is_bool else t.same("abs", x)


def _sign(t: Arrays, x: Value) -> Value:
    if x.dtype.is_integer and not x.dtype.signed:
        return t.same("minimum", x, t.filled(1, x))
    return t.same("sign", x)


def _add(t: Arrays, x: Value, y: Value) -> Value:
    return t.same("or" if x.dtype.is_bool else "add", x, y)


def _multiply(t: Arrays, x: Value, y: Value) -> Value:
    return t.same("and" if x.dtype.is_bool else "multiply", x, y)


def _fused(sign: int) -> Code:
    """x·y ± z, rounded once: in a wider dtype, or with the errors of product and sum."""

    def code(t: Arrays, x: Value, y: Value, z: Value) -> Value:
        z = t.same("negate", z) if sign < 0 else z
        if x.dtype not in SPLITS:
            wide = dtypes.float64
            a, b, c = (t.converted(v, wide) for v in (x, y, z))
            return t.converted(t.same("add", t.same("multiply", a, b), c), x.dtype)
        product = t.same("multiply", x, y)
        (x1, x2), (y1, y2) = _halves(t, x), _halves(t, y)
        lost = t.same("subtract", t.same("multiply", x1, y1), product)
        for one, other in ((x1, y2), (x2, y1), (x2, y2)):
            lost = t.same("add", lost, t.same("multiply", one, other))
        total = t.same("add", product, z)
        back = t.same("subtract", total, product)
        also = t.same("add", t.same("subtract", product, t.same("subtract", total, back)), t.same("subtract", z, back))
        exact = t.same("add", total, t.same("add", lost, also))
        finite = t.op("is_finite", (exact,), exact.shape, dtypes.bool_)
        return t.select(finite, exact, total)

    return code


def _halves(t: Arrays, x: Value) -> tuple[Value, Value]:
    scaled = t.same("multiply", x, t.filled(SPLITS[x.dtype], x))
    high = t.same("subtract", scaled, t.same("subtract", scaled, x))
    return high, t.same("subtract", x, high)


def _not(t: Arrays, x: Value) -> Value:
    return t.same("not", x)


def _lifted(t: Arrays, name: str, x: Value) -> Value:
    """A function that 16-bit floats are widened for."""
    if x.dtype.bits == 16:
        return t.converted(t.same(name, t.converted(x, dtypes.float32)), x.dtype)
    return t.same(name, x)


def _function(name: str) -> Code:
    return lambda t, x: _lifted(t, name, x)


def _power(t: Arrays, x: Value, y: Value) -> Value:
    if x.dtype.bits == 16:
        wide = t.same("power", t.converted(x, dtypes.float32), t.converted(y, dtypes.float32))
        return t.converted(wide, x.dtype)
    return t.same("power", x, y)


def _truncated(t: Arrays, x: Value) -> Value:
    down, up = t.same("floor", x), t.same("ceil", x)
    return t.select(t.compare("LT", x, t.filled(0, x)), up, down)


def bitcast(t: Arrays, x: Value, dtype: Any) -> Value:
    """The same bits as another dtype of that width."""
    return x if x.dtype is dtype else t.op("bitcast_convert", (x,), x.shape, dtype)


CODE: dict[str, Code] = {
    "MOV": lambda t, x: x,
    "ADD": _add, "SUB": _plain("subtract"), "MUL": _multiply, "DIV": _plain("divide"), "REM": _plain("remainder"),
    "NEG": _plain("negate"), "ABS": _absolute, "SIGN": _sign, "MIN": _extreme("Min"), "MAX": _extreme("Max"),
    "FMA": _fused(1), "FMS": _fused(-1), "RELU": _relu,
    "AND": _plain("and"), "OR": _plain("or"), "XOR": _plain("xor"), "NOT": _not, "SHL": _shift("SHL"),
    "SHR": _shift("SHR"),
    "FLOOR": _plain("floor"), "CEIL": _plain("ceil"), "ROUND": _plain("round_nearest_even"), "TRUNC": _truncated,
    "SQRT": _plain("sqrt"), "RSQRT": lambda t, x: t.same("divide", t.filled(1.0, x), t.same("sqrt", x)),
    "POW": _power, "ATAN2": lambda t, y, x: t.same("atan2", y, x),
    "EXP": _function("exponential"), "EXPM1": _function("exponential_minus_one"), "LOG": _function("log"),
    "LOG1P": _function("log_plus_one"), "TANH": _function("tanh"), "SIGMOID": _function("logistic"),
    "SIN": _function("sine"), "COS": _function("cosine"), "TAN": _function("tan"), "ERF": _function("chlo.erf"),
    "ASIN": _function("chlo.asin"), "ACOS": _function("chlo.acos"), "ATAN": _function("chlo.atan"),
    "SINH": _function("chlo.sinh"), "COSH": _function("chlo.cosh"), "ASINH": _function("chlo.asinh"),
    "ACOSH": _function("chlo.acosh"), "ATANH": _function("chlo.atanh"),
}  # fmt: skip
COMPLEX: dict[str, str] = {
    "asin": "chlo.asin", "acos": "chlo.acos", "atan": "chlo.atan", "asinh": "chlo.asinh", "acosh": "chlo.acosh",
    "atanh": "chlo.atanh",
}  # fmt: skip
"""Rows that say nothing of complex numbers, and are one operation on them."""
