"""The arithmetic of Atlas on NumPy arrays, rounded as the ISA says.

These functions are the meaning of register instructions (see `table/`). They take arrays of one type
(object arrays of Python integers for the wide ones), keep NumPy's warnings quiet, and round once:
F32 transcendentals are computed in F64, FMA is exact before its one rounding, conversions saturate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from eshkol.atlas.isa import Instruction, LaneFault, Values
from eshkol.atlas.operands import ReduceOperation
from eshkol.atlas.rounding import nearest_of_array, nearest_to_integer
from eshkol.atlas.types import Array, Type, wrap
from eshkol.atlas.typing_rule import resolve_types


def evaluate(instruction: Instruction, inputs: list[Array], ty: Type, out: Type | None = None) -> Array:
    """The value a register instruction gives each lane: rounding and wrapping included.

    `ty` is the type of the value operands (the row's T), `out` that of the result, if it is known already. Predicates
    go in and come out as bool arrays.
    """
    with np.errstate(all="ignore"):
        return evaluation(instruction, ty, out)(inputs)


def evaluation(instruction: Instruction, ty: Type, out: Type | None = None) -> Callable[[list[Array]], Array]:
    """The same to be called again and again, where NumPy's warnings are off: to turn them off takes longer than most
    instructions."""
    meaning = instruction.op.meaning
    assert isinstance(meaning, Values)
    fn, raw = meaning.fn, meaning.raw
    widened = ty.is_half and not raw
    compute = Type.F32 if widened else ty
    known = None if out is None or out.is_wide else np.dtype(out.dtype)

    def evaluated(inputs: list[Array]) -> Array:
        if widened:
            inputs = [a.astype(np.float32) if a.dtype == ty.dtype else a for a in inputs]
        result = np.asarray(fn(instruction, compute, *inputs))
        if raw or result.dtype is known or result.dtype.kind == "b":
            return result
        to = out or resolve_types(instruction, [ty] * len(instruction.reads()))[0]
        return wrap(result, to) if to.is_wide else result.astype(to.dtype, copy=False)

    return evaluated


def plain(fn: Callable[..., Array]) -> Values:
    """A meaning that needs neither the instruction nor the type."""
    return Values(lambda i, t, *inputs: fn(*inputs))


def precise(fn: Callable[..., Array]) -> Values:
    """A float function computed in F64 whatever the type, and rounded once."""
    return Values(lambda i, t, *inputs: fn(*(a.astype(np.float64) for a in inputs)))


# --- integers -------------------------------------------------------------------------------------


def divide(i: Instruction, t: Type, a: Array, b: Array) -> Array:
    """Quotient; integers truncate toward zero, and MIN / -1 wraps."""
    if t.is_float:
        return np.divide(a, b)
    zero = b == 0
    if zero.any():
        raise LaneFault(np.asarray(zero, bool), "integer division by zero", "test the divisor first")
    quotient = a // b
    inexact = wrap(quotient * b, t) != a
    toward_zero = inexact & ((a < 0) != (b < 0))
    return np.where(toward_zero, quotient + 1, quotient)


def remainder(i: Instruction, t: Type, a: Array, b: Array) -> Array:
    """What division leaves; it has the dividend's sign."""
    if t.is_float:
        return np.asarray(np.fmod(a, b))
    return np.asarray(a - wrap(divide(i, t, a, b), t) * b)


def shift(t: Type, a: Array, amount: Array, *, left: bool) -> Array:
    """Shift by the amount modulo the width; right shifts of signed types keep the sign."""
    masked = amount & (t.bits - 1)
    return np.asarray(np.left_shift(a, masked) if left else np.right_shift(a, masked))


# --- floats ---------------------------------------------------------------------------------------


def minimum(i: Instruction, t: Type, a: Array, b: Array) -> Array:
    return np.asarray(np.fmin(a, b) if t.is_float else np.where(b < a, b, a))


def maximum(i: Instruction, t: Type, a: Array, b: Array) -> Array:
    return np.asarray(np.fmax(a, b) if t.is_float else np.where(b > a, b, a))


def accumulate(operation: ReduceOperation, t: Type, a: Array, b: Array) -> Array:
    """One step of a reduction; unlike MIN and MAX it does not pass over NaN."""
    if operation in (ReduceOperation.Sum, ReduceOperation.Product):
        return np.asarray(a + b if operation is ReduceOperation.Sum else a * b)
    if t.is_float:
        return np.asarray(np.minimum(a, b) if operation is ReduceOperation.Min else np.maximum(a, b))
    return np.where(b < a, b, a) if operation is ReduceOperation.Min else np.where(b > a, b, a)


def fma(t: Type, a: Array, b: Array, c: Array) -> Array:
    """a·b + c, rounded once; integers wrap."""
    if t is Type.F64:
        return _fma64(a, b, c)
    if t is Type.F32:
        # The product of two F32 is exact in F64; round the sum to odd so that F32 rounds only once.
        exact = _add_to_odd(a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64))
        return exact.astype(np.float32)
    return a * b + c


def _two_sum(a: Array, b: Array) -> tuple[Array, Array]:
    """a + b as a rounded sum and its exact error."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _add_to_odd(a: Array, b: Array) -> Array:
    """a + b in F64 rounded to odd: a later rounding to fewer bits is then the only one."""
    total, error = _two_sum(a, b)
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    adjust = np.isfinite(total) & (error != 0) & even
    toward = np.where(error > 0, np.inf, -np.inf)
    return np.where(adjust, np.nextafter(total, toward), total)


def _two_product(a: Array, b: Array) -> tuple[Array, Array]:
    """a · b as a rounded product and its exact error (Dekker), for exponents in mid-range."""

    def split(x: Array) -> tuple[Array, Array]:
        scaled = x * 134217729.0
        high = scaled - (scaled - x)
        return high, x - high

    product = a * b
    (ah, al), (bh, bl) = split(a), split(b)
    return product, ((ah * bh - product) + ah * bl + al * bh) + al * bl


def _fma64(a: Array, b: Array, c: Array) -> Array:
    """Boldo and Melquiond's FMA from rounding to odd; exact rationals where exponents are extreme."""
    high, low = _two_product(a, b)
    t_high, t_low = _two_sum(c, low)
    v_high, v_low = _two_sum(high, t_high)
    result = v_high + _add_to_odd(t_low, v_low)
    safe = np.ones(np.shape(result), bool)
    for x in (a, b, c, np.asarray(a * b)):
        magnitude = np.abs(x)
        safe &= ((magnitude > 1e-140) & (magnitude < 1e140)) | (x == 0)
    safe &= np.isfinite(result) & (a * b != 0)
    zero = (a == 0) | (b == 0)  # then the product is exact, and the sum is the one rounding
    result = np.where(zero, a * b + c, result)
    for k in np.flatnonzero(~safe & ~zero):
        result[k] = _exact_fma(float(a[k]), float(b[k]), float(c[k]))
    return result


def _exact_fma(a: float, b: float, c: float) -> float:
    if not math.isfinite(c) and math.isfinite(a) and math.isfinite(b):
        return c  # however large the product is, it is none of the infinities
    if not (math.isfinite(a) and math.isfinite(b)):
        return float(np.float64(a) * np.float64(b) + np.float64(c))
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:  # the sign of an exact zero is that of IEEE addition
        return a * b + c if a == 0 or b == 0 else 0.0 if c != 0 else math.copysign(0.0, a) * math.copysign(1.0, b) + c
    try:
        return float(exact)
    except OverflowError:
        return -math.inf if exact < 0 else math.inf


def sigmoid(x: Array) -> Array:
    """1 / (1 + e^-x) without overflow for large |x|."""
    decay = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, decay) / (1.0 + decay)


erf = np.vectorize(math.erf, otypes=[np.float64])


def sign(i: Instruction, t: Type, x: Array) -> Array:
    """-1, 0 or 1; zeros keep their sign and NaN stays NaN."""
    one = np.ones_like(x)
    return np.where(x > 0, one, np.where(x < 0, -one, x)) if t.is_signed else np.where(x > 0, one, x)


# --- conversion -----------------------------------------------------------------------------------


def convert(values: Array, source: Type, target: Type) -> Array:
    """CVT: floats round to nearest even, float → int truncates, saturates and maps NaN to 0."""
    with np.errstate(all="ignore"):
        if source.is_float and target.is_float:
            return nearest_of_array(values, target)
        if source.is_float:
            return _float_to_int(values.astype(np.float64), target)
        if target.is_integer:
            return wrap(values.astype(object) if target.is_wide else _narrow(values, target), target)
        return _int_to_float(values, source, target)


def normal_power(x: Array) -> Array:
    """EXP2: 2^x, and 0 where F32 has no normal number for it."""
    with np.errstate(over="ignore", under="ignore"):
        return np.where(x < np.finfo(np.float32).minexp, 0.0, np.exp2(x))


def packed(ty: Type, low: Array, high: Array) -> Array:
    """PACK: two F32 rounded to a 16-bit type, in the halves of a U32."""
    words = [convert(x, Type.F32, ty).view(np.uint16).astype(np.uint32) for x in (low, high)]
    return words[0] | words[1] << np.uint32(16)


def same_bits(values: Array, target: Type) -> Array:
    """BITCAST: the bits of values as another type of the same width."""
    return np.ascontiguousarray(values).view(target.dtype)


def _float_to_int(values: Array, target: Type) -> Array:
    whole = np.trunc(np.where(np.isnan(values), 0.0, values))
    if target.is_wide:
        limits = {math.inf: target.max_value, -math.inf: target.min_value}
        exact = [limits[v] if math.isinf(v) else int(v) for v in whole.tolist()]
        result = np.empty(len(exact), object)
        result[:] = [min(max(v, target.min_value), target.max_value) for v in exact]
        return result
    above = whole >= float(target.max_value)  # exact, or the power of two just above it
    below = whole <= float(target.min_value)
    inside = np.where(above | below, 0.0, whole).astype(target.dtype)
    low, high = (np.array(v, target.dtype) for v in (target.min_value, target.max_value))
    return np.where(above, high, np.where(below, low, inside))


def _narrow(values: Array, target: Type) -> Array:
    """Integers of any width, reduced to the bits of a narrow type."""
    if values.dtype != object:
        return values
    modulus = 1 << target.bits
    reduced = [v % modulus for v in values]
    signed = [v - modulus if target.is_signed and v > target.max_value else v for v in reduced]
    return np.array(signed, target.dtype)


def _int_to_float(values: Array, source: Type, target: Type) -> Array:
    if not source.is_wide:
        if target.is_half:  # to a 16-bit float through F32
            values = values.astype(np.float32)
        return values.astype(target.dtype)
    through = Type.F32 if target.is_half else target
    return np.array([nearest_to_integer(v, through) for v in values], through.dtype).astype(target.dtype)
