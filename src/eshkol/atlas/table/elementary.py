"""Elementary functions: their rows, and expansions into base instructions that every backend can vectorize.

The expansions are straight-line (SEL instead of branches; only sines and the like of huge angles branch), at most
2 units in the last place from the exact value over the whole range, with the special cases of C. F32 forms use
F32 and 32-bit integers only, F64 forms F64 and 64-bit integers; 16-bit floats are computed in F32.

A row's meaning is the exact value rounded, not the bits of its expansion: both are within the tolerance.

The coefficients are minimax fits of the functions named beside them on the reduced range, made with Remez'
exchange in 240-bit arithmetic and rounded to the type; the weight is the error that the result sees.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from eshkol.atlas import numerics as nx
from eshkol.atlas.isa import CodeBuilder, Group, Instruction
from eshkol.atlas.numerics import precise
from eshkol.atlas.table.elementary_code import (
    FORMATS,
    ElementaryCode,
    ElementaryPlan,
    ElementaryValue,
    fast_two_sum,
    format_of,
    two_product,
    two_sum,
    with_sign,
)
from eshkol.atlas.table.elementary_trig import arctangent, cosine, sine, tangent
from eshkol.atlas.table.rows import BINARY, UNARY, row
from eshkol.atlas.types import FLOATS, Type

INF, NAN = float("inf"), float("nan")
F32, F64 = Type.F32, Type.F64
LOG2_E, LN_2 = 1.4426950408889634, 0.6931471805599453
# ln 2 in two parts; the first has so few bits that its product with any exponent is exact.
LN2 = {F32: (0.693145751953125, 1.428606765330187e-06), F64: (0.693147180559663, 2.8235290563031577e-13)}

# (e^r - 1 - r) / r² for |r| ≤ ln 2 / 2; weight r. Errors 2^-32.0 and 2^-61.7.
EXP = {
    F32: (0.5, 0.16666667, 0.041666355, 0.008333273, 0.00139411, 0.00019914197),
    F64: (
        0.5, 0.16666666666666677, 0.0416666666666667, 0.00833333333332153, 0.0013888888888866772,
        0.00019841269886401825, 2.480158736075703e-05, 2.755724391171565e-06, 2.755724256167814e-07,
        2.510914714473727e-08, 2.092450813450641e-09,
    ),
}  # fmt: skip
# e^r for |r| ≤ ln 2 / 2. Errors 2^-28.2 and 2^-57.8.
QUICK_EXP = {
    F32: (1.0, 1.0, 0.49999994, 0.16666518, 0.041668408, 0.008368922, 0.0013814169),
    F64: (
        1.0, 1.0, 0.5000000000000011, 0.16666666666666405, 0.041666666666526985, 0.008333333333498233,
        0.001388888894458382, 0.00019841269500732217, 2.4801492006449694e-05, 2.7557589464520446e-06,
        2.7630670530170094e-07, 2.499976703584532e-08,
    ),
}  # fmt: skip
# (log(1 + f) - f + f²/2) / f³ for √½ ≤ 1 + f ≤ √2; weight f². Error 2^-30.3.
LOG_F32 = (
    0.3333331, -0.24999985, 0.20002274, -0.16669358, 0.14217691, -0.12381777, 0.11878036, -0.11808009, 0.06925768,
)  # fmt: skip
# (2 atanh(s) / s - 2) / z at z = s², with s = f / (2 + f) of the same range; weight z/2. Error 2^-59.5.
LOG_F64 = (
    0.6666666666666735, 0.3999999999941123, 0.2857142874322503, 0.22222198480423322, 0.18183569484670736,
    0.15313910299270544, 0.14797432748922124,
)  # fmt: skip
# (2 atanh(s) / s - 2 - 2z/3) / z² at z = s² as before; weight z²/2. Errors 2^-36.8 and 2^-73.5.
POW_LOG = {
    F32: (0.40000153, 0.28547087, 0.23419759),
    F64: (
        0.3999999999999998, 0.2857142857144521, 0.2222222221751233, 0.1818181887329344, 0.15384556666681634,
        0.13336325319281575, 0.11674657373617198, 0.11990361177203564,
    ),
}  # fmt: skip
TWO_THIRDS = {F32: (0.6666666865348816, -1.9868215517249155e-08), F64: (0.6666666666666666, 3.700743415417188e-17)}
# ((e^2r - 1) / 2 - r) / r² for |r| ≤ ln 2 / 4; weight r. Error 2^-26.1.
TANH_F32 = (1.0, 0.6666617, 0.33333024, 0.13386738, 0.044629347)
# (tanh(x) / x - 1) / z at z = x², for |x| ≤ 0.625; weight z. Error 2^-61.3.
TANH_F64 = (
    -0.33333333333333315, 0.13333333333329858, -0.05396825396611652, 0.02186948847015817, -0.00886323433356651,
    0.0035921141918095487, -0.0014557270975792502, 0.0005894563756257382, -0.00023702373484861544,
    9.15783404723027e-05, -3.020619369100035e-05, 6.050359587306879e-06,
)  # fmt: skip
# -log(erfc(x)) / x - 1 for 0 ≤ x ≤ 3.9375, where erf is 1; weight x erfc(x) / erf(x). Error 2^-27.9.
ERF_F32 = (
    0.12837917, 0.6366194, 0.10277783, -0.019153066, -0.00016039265, 0.0016670242, -0.0006328352, 0.000117640826,
    -9.256217e-06,
)  # fmt: skip
ERF_END_F32 = 3.9375
# (1 - e^-r - r) / r² for |r| ≤ ln 2 / 2; weight r. Error 2^-31.9.
DECAY_F32 = (-0.5, 0.16666667, -0.041666344, 0.00833327, -0.0013942056, 0.00019915636)
# erf(x) / x - 1 at z = x², for |x| ≤ 0.86. Error 2^-61.8.
ERF_F64 = (
    0.1283791670955126, -0.3761263890318374, 0.11283791670954504, -0.026866170644975883, 0.005223977623433921,
    -0.0008548326870170245, 0.00012055325555943701, -1.4925413055356896e-05, 1.6457038284351597e-06,
    -1.6293686694033065e-07, 1.4148634384990264e-08, -8.731109980321568e-10,
)  # fmt: skip
# erfc(x) e^(x²) as a polynomial in 1/(x + 3) - 0.1875, from 0.86 to 6, where erf is 1; weight e^(-x²). Error 2^-64.0.
ERF_TAIL_F64 = (
    0.22392935763141023, 2.3715697251251604, 11.127869360558085, 41.02269138552367, 113.85751699626981,
    212.25321898855955, 157.91445133690314, -367.95390654635844, -1007.4523192646858, 424.64951256433295,
    4385.035369960793, -4.786784789800011, -24385.298846841615, 32379.632848634395,
)  # fmt: skip
# Where e^x is certainly 0 and certainly infinite, with exponents that two factors 2^k still reach.
EXP_LOW, EXP_HIGH = {F32: -110.0, F64: -760.0}, {F32: 95.0, F64: 720.0}
# Below it e^x is 0, and said to be: processors take a hundred times as long for a product that becomes too small.
EXP_LEAST = {F32: -103.98, F64: -745.14}
EXP2_LOW, EXP2_LEAST, EXP2_HIGH = -127.0, -126.0, 129.0
SIGMOID_HIGH = 40.0  # where the sigmoid has long been 1
EXPM1_HIGH = {F32: 89.0, F64: 709.9}


# --- exponentials ---------------------------------------------------------------------------------


def _power_of_two(k: ElementaryValue, ty: Type) -> ElementaryValue:
    """2^k for an integer k between the exponents of the type."""
    f = FORMATS[ty]
    return ((k + f.bias) << f.mantissa).bits(ty)


def _scaled(y: ElementaryValue, k: ElementaryValue) -> ElementaryValue:
    """y × 2^k for y about 1, rounded once also where the result is subnormal; too large a k gives infinity."""
    half = k >> 1
    return y * _power_of_two(half, y.ty) * _power_of_two(k - half, y.ty)


def _exponential(
    x: ElementaryValue, low: ElementaryValue | None = None
) -> tuple[ElementaryValue, ElementaryValue, ElementaryValue]:
    """(k, r, t) with e^(x + low) = 2^k (1 + r + t): k an integer, |r| ≤ ln 2 / 2, |t| below r²."""
    f, (ln2_high, ln2_low) = format_of(x), LN2[x.ty]
    rounded = x.fma(LOG2_E, f.magic)
    k = rounded - f.magic
    high = k.fma(-ln2_high, x)
    rest = k * -ln2_low if low is None else k.fma(-ln2_low, low)
    r, error = fast_two_sum(high, rest)
    tail = (r * r).fma(r.polynomial(EXP[x.ty]), error)
    return rounded.bits(f.signed) - f.magic_bits, r, tail


def _reduced(x: ElementaryValue, lift: int) -> tuple[ElementaryValue, ElementaryValue]:
    """(k + lift, r) with e^x = 2^k e^r and |r| ≤ ln 2 / 2, the first in the low bits of an integer."""
    f, (ln2_high, ln2_low) = format_of(x), LN2[x.ty]
    magic = f.magic + lift
    rounded = x.fma(LOG2_E, magic)
    k = rounded - magic
    return rounded.bits(f.signed), k.fma(-ln2_low, k.fma(-ln2_high, x))


def _exp(x: ElementaryValue) -> ElementaryValue:
    """2^k y in two steps, of which only the second rounds, where the result is subnormal; too large a k: infinity.

    With k + bias + l and y / 2^l, where l is half the bias, half of the former are the bits of a float, and the other
    half is added to those of the latter: their product needs no correction.
    """
    f = format_of(x)
    spare = f.bias // 2
    low = x.below(EXP_LOW[x.ty]).select(EXP_LOW[x.ty], x)  # NaN stays
    k, r = _reduced(low.min(EXP_HIGH[x.ty]), f.bias + spare)
    y = _exponential_of_rest(r, 2.0**-spare)
    half = (k << (f.mantissa - 1)) & ~((1 << f.mantissa) - 1)  # of k, as the exponent of a float
    rest = (k << f.mantissa) - half
    scale = x.at_least(EXP_LEAST[x.ty]).select(half.bits(x.ty), low - low)  # 0 or NaN
    return (y.bits(f.signed) + rest).bits(x.ty) * scale


def _exponential_of_rest(r: ElementaryValue, scale: float) -> ElementaryValue:
    """scale e^r for |r| ≤ ln 2 / 2: the first step alone, so that its rounding is the only one that counts."""
    first, *others = (c * scale for c in QUICK_EXP[r.ty])
    return r.fma(r.polynomial(others), first)


def _exp2(x: ElementaryValue) -> ElementaryValue:
    """2^k y in the same two steps, with k the nearest integer; there are no subnormal results."""
    f = format_of(x)
    within = x.max(EXP2_LOW).min(EXP2_HIGH)
    rounded = within + f.magic
    r = (within - (rounded - f.magic)) * LN_2
    y = (r * r).fma(r.polynomial(EXP[x.ty]), r) + 1.0
    k = rounded.bits(f.signed)
    half = (k << (f.mantissa - 1)) & ~((1 << f.mantissa) - 1)
    rest = (k << f.mantissa) - half + (f.bias << f.mantissa)
    scale = x.below(EXP2_LEAST).select(0.0, rest.bits(x.ty))
    return x.is_nan().select(x, (y.bits(f.signed) + half).bits(x.ty) * scale)


def _expm1(x: ElementaryValue) -> ElementaryValue:
    """2^k (1 + r + t) - 1, the large parts added exactly; halved so that 2^k cannot overflow before the result."""
    k, r, tail = _exponential(x.max(-60.0).min(EXPM1_HIGH[x.ty]))
    half_scale = _power_of_two(k - 1, x.ty)
    total, error = two_sum(half_scale - 0.5, half_scale * r)
    result = (total + half_scale.fma(tail, error)) * 2.0
    tiny = abs(x).below(2.0 ** -(x.ty.mantissa_bits + 3))
    return x.is_nan().select(x, tiny.select(x, result))


def _sigmoid(x: ElementaryValue) -> ElementaryValue:
    """1 / (1 + s + s r p(r)) with e^-x = s e^r and s = 2^k; what 1 + s loses where s is large is added to the rest.

    All are divided by so large a power of two that no e^-x that matters overflows.
    """
    f = format_of(x)
    lift, one = f.bias // 2 + 1, 2.0 ** (f.bias // 2 + 1 - f.bias)
    k, r = _reduced(-(x.max(EXP_LOW[x.ty]).min(SIGMOID_HIGH)), lift)
    scale = (k << f.mantissa).bits(x.ty)
    whole = scale + one
    lost = one - (whole - scale)  # where s is small, so is it
    below = whole + (scale * r).fma(r.polynomial(QUICK_EXP[x.ty][1:]), lost)
    return x.is_nan().select(x, one / below)


def _tanh(x: ElementaryValue) -> ElementaryValue:
    magnitude = abs(x)
    return with_sign(_tanh_f32(magnitude) if x.ty is F32 else _tanh_f64(magnitude), x)


def _tanh_f32(x: ElementaryValue) -> ElementaryValue:
    """h / (h + 1) with h = (e^2x - 1) / 2 = s (r + r² q(r)) + (s - 1) / 2 and s = 2^k, in one way for all x.

    With m = h or 1, whichever is less, that is m - m² / (h + 1), where the quotient's errors count little. The parts of
    h that are exact are added first.
    """
    f, (ln2_high, ln2_low) = format_of(x), LN2[x.ty]
    bounded = x.above(10.0).select(10.0, x)  # where tanh has long been 1; NaN stays
    rounded = bounded.fma(2.0 * LOG2_E, f.magic)
    k = rounded - f.magic
    r = k.fma(-0.5 * ln2_low, k.fma(-0.5 * ln2_high, bounded))
    scale = ((rounded.bits(f.signed) << f.mantissa) + (f.bias << f.mantissa)).bits(x.ty)  # it ends in the bits of k
    linear = scale * r
    h = (linear * r).fma(r.polynomial(TANH_F32), linear + scale.fma(0.5, -0.5))
    m = h.min(1.0)
    return m - m * m / (h + 1.0)


def _tanh_f64(x: ElementaryValue) -> ElementaryValue:
    """A polynomial near 0, 1 - 2 / (e^2x + 1) farther off: the way of F32 would be 2.2 ulp off in places."""
    square = x * x
    near = (x * square).fma(square.polynomial(TANH_F64), x)
    # Far off a few ulp of the exponential do no harm: no sums in two parts, 2^k by adding to its bits.
    f, (ln2_high, ln2_low) = format_of(x), LN2[x.ty]
    doubled = x.min(22.0) * 2.0
    rounded = doubled.fma(LOG2_E, f.magic)
    k = rounded - f.magic
    r = k.fma(-ln2_low, k.fma(-ln2_high, doubled))
    grown = (r * r).fma(r.polynomial(EXP[x.ty]), r) + 1.0
    grown = (grown.bits(f.signed) + (rounded.bits(f.signed) << f.mantissa)).bits(x.ty)
    far = 1.0 - 2.0 / (grown + 1.0)
    return x.at_least(0.625).select(far, near)  # NaN is not at least anything, and stays NaN in the polynomial


def _erf(x: ElementaryValue) -> ElementaryValue:
    magnitude = abs(x)
    return with_sign(_erf_f32(magnitude) if x.ty is F32 else _erf_f64(magnitude), x)


def _erf_f32(x: ElementaryValue) -> ElementaryValue:
    """1 - e^-a with a = -log(erfc(x)), a polynomial, in one way for all x, and without a division.

    With s = 2^k and r = a + k ln 2 that is s (1 - e^-r) + (1 - s), whose second part is 0 where a is small.
    """
    f = format_of(x)
    bounded = x.above(ERF_END_F32).select(ERF_END_F32, x)  # NaN stays
    a = bounded.fma(bounded.halved_polynomial(bounded * bounded, ERF_F32), bounded)
    rounded = a.fma(-LOG2_E, f.magic)
    r = (rounded - f.magic).fma(LN_2, a)
    scale = ((rounded.bits(f.signed) << f.mantissa) + (f.bias << f.mantissa)).bits(x.ty)  # it ends in the bits of k
    square = r * r
    return scale.fma(square.fma(r.halved_polynomial(square, DECAY_F32), r), 1.0 - scale)


def _erf_f64(x: ElementaryValue) -> ElementaryValue:
    near = x.fma((x * x).polynomial(ERF_F64), x)
    bounded = x.min(6.0)
    k, r = _reduced(-(bounded * bounded), 0)
    y = r.polynomial(QUICK_EXP[x.ty])
    decay = (y.bits(k.ty) + (k << format_of(x).mantissa)).bits(x.ty)
    far = (-decay).fma((1.0 / (bounded + 3.0) - 0.1875).polynomial(ERF_TAIL_F64), 1.0)
    return x.at_least(0.86).select(far, near)


# --- logarithms -----------------------------------------------------------------------------------

ROOT_HALF_BITS = {F32: 0x3F3504F3, F64: 0x3FE6A09E667F3BCD}


def _split(x: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """(k, m) with x = 2^k m and m between √½ and √2, for a normal x above 0; k is a signed integer."""
    f = format_of(x)
    bits = x.bits(f.signed)
    k = (bits - ROOT_HALF_BITS[x.ty]) >> f.mantissa
    return k, (bits - (k << f.mantissa)).bits(f.ty)


def _normal_split(x: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """As `_split`, also for subnormal x; k as a float."""
    f = format_of(x)
    lift = f.mantissa + 2
    subnormal = x.below(2.0 ** (1 - f.bias))
    k, m = _split(subnormal.select(x * 2.0**lift, x))
    return _to_float(k, x.ty) - subnormal.select(x.lift(float(lift)), 0.0), m


def _to_float(k: ElementaryValue, ty: Type) -> ElementaryValue:
    """A small integer as a float, through the low bits of a large one: cheaper than CVT from 64 bits."""
    f = FORMATS[ty]
    return (k + f.magic_bits).bits(ty) - f.magic


def _logarithm(k: ElementaryValue, f: ElementaryValue, extra: ElementaryValue | None = None) -> ElementaryValue:
    """k ln 2 + log(1 + f) + extra."""
    ln2_high, ln2_low = LN2[f.ty]
    rest = k * ln2_low if extra is None else k.fma(ln2_low, extra)
    square = f * f
    if f.ty is F32:
        rest = square.fma(-0.5, (square * f).fma(f.polynomial(LOG_F32), rest))
    else:
        s, half = f / (f + 2.0), square * 0.5
        z = s * s
        rest = s.fma(z.fma(z.polynomial(LOG_F64), half), rest) - half
    return k.fma(ln2_high, f + rest)  # where k is not 0, the sum is no greater than the result: two small errors


def _log(x: ElementaryValue) -> ElementaryValue:
    k, m = _normal_split(x)
    result = _logarithm(k, m - 1.0)
    result = x.below(INF).select(result, x)  # infinity and NaN are their own logarithms
    result = x.equals(0.0).select(-INF, result)
    return x.below(0.0).select(NAN, result)


def _log1p(x: ElementaryValue) -> ElementaryValue:
    """The logarithm of u = 1 + x, with what the rounding of u lost brought back into the reduced argument."""
    f = format_of(x)
    u, lost = two_sum(x.lift(1.0), x)
    k, m = _split(u)
    lost = lost * _power_of_two(-(k.min(f.bias - 1)), x.ty)
    reduced, extra = fast_two_sum(m - 1.0, lost)
    result = _logarithm(_to_float(k, x.ty), reduced, extra)
    result = abs(x).below(2.0 ** -(f.mantissa + 3)).select(x, result)
    result = x.below(INF).select(result, x)
    result = x.equals(-1.0).select(-INF, result)
    return x.below(-1.0).select(NAN, result)


# --- powers ---------------------------------------------------------------------------------------


def _log_in_two(x: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """log x as a sum of two values, good to about 12 bits more than the type; x finite and above 0."""
    ty = x.ty
    (third_high, third_low), (ln2_high, ln2_low) = TWO_THIRDS[ty], LN2[ty]
    k, m = _normal_split(x)
    # s = (m - 1) / (m + 1), and log m = 2 atanh(s) = 2s + 2/3 s³ + s⁵ Q(s²)
    numerator = m - 1.0
    below, below_low = fast_two_sum(m.lift(1.0), m)
    reciprocal = 1.0 / below
    s = numerator * reciprocal
    s_low = (-s).fma(below_low, (-s).fma(below, numerator)) * reciprocal
    z, z_low = two_product(s, s)
    z_low = (s + s).fma(s_low, z_low)
    cube, cube_low = two_product(s, z)
    cube_low = cube_low + s.fma(z_low, s_low * z)
    term, term_low = two_product(cube, x.lift(third_high))
    term_low = term_low + cube.fma(third_low, cube_low * third_high)
    term_low = (cube * z).fma(z.polynomial(POW_LOG[ty]), term_low)
    log_m, log_m_low = fast_two_sum(s + s, term)
    log_m_low = log_m_low + (s_low + s_low + term_low)
    total, rest = fast_two_sum(k * ln2_high, log_m)
    return fast_two_sum(total, rest + k.fma(ln2_low, log_m_low))


def _is_integer(magnitude: ElementaryValue) -> ElementaryValue:
    """1 where a value that is not negative is a whole number (infinity is one), else 0."""
    edge = 2.0**magnitude.ty.mantissa_bits
    whole = magnitude.at_least(edge).select(magnitude, magnitude + edge - edge)
    return whole.equals(magnitude).select(magnitude.lift(1.0), 0.0)


def _pow(x: ElementaryValue, y: ElementaryValue) -> ElementaryValue:
    """e^(y log |x|) with the logarithm in two parts, then the special cases of C in order of precedence."""
    ty, base, power = x.ty, abs(x), abs(y)
    log, log_low = _log_in_two(base)
    high, low = two_product(y, log)
    low = y.fma(log_low, low)
    bounded = high.max(EXP_LOW[ty]).min(EXP_HIGH[ty])
    k, r, tail = _exponential(bounded, bounded.equals(high).select(low, 0.0))
    result = _scaled(r + tail + 1.0, k)
    # A base or a power of 0 or infinity: all or nothing.
    large = base.above(1.0).select(y, -y).above(0.0).select(x.lift(INF), 0.0)
    result = base.equals(0.0).select(large, base.equals(INF).select(large, result))
    result = power.equals(INF).select(base.equals(1.0).select(1.0, large), result)
    # A negative base: NaN for a fraction of a finite number, minus for an odd power.
    whole = _is_integer(power)
    odd = whole - _is_integer(power * 0.5)
    result = with_sign(result, odd.above(0.0).select(x, 0.0))
    broken = x.below(0.0).select(x.above(-INF).select(1.0 - whole, 0.0), 0.0)
    result = broken.above(0.0).select(NAN, result)
    result = x.is_nan().select(x, y.is_nan().select(y, result))
    result = y.equals(0.0).select(1.0, result)
    return x.equals(1.0).select(1.0, result)


# --- rows -----------------------------------------------------------------------------------------


def _expansion(function: Callable[..., ElementaryValue]) -> Callable[[CodeBuilder, Instruction], None]:
    """The expansion that computes a function of the registers read, in F32 for 16-bit floats."""

    @cache
    def planned(count: int, ty: Type) -> ElementaryPlan:
        code = ElementaryCode()
        inputs = [code.given(ty) for _ in range(count)]
        if ty.is_half:
            inputs = [x.to(F32) for x in inputs]
        result = function(*inputs)
        return code.plan(result.to(ty) if ty.is_half else result)

    def expand(b: CodeBuilder, i: Instruction) -> None:
        reads = i.reads()
        planned(len(reads), b.type_of(reads[0])).emit(b, i.dst, reads)

    return expand


T = Group.TRANSCENDENTAL
row("EXP", T, "e to the power src", UNARY, precise(np.exp), FLOATS, expand=_expansion(_exp))
row("EXP2", T, "2 to the power src, and 0 below the least normal number: machines have instructions for that", UNARY,
    precise(nx.normal_power), frozenset({F32}), expand=_expansion(_exp2))  # fmt: skip
row("EXPM1", T, "e^src - 1, accurate near 0", UNARY, precise(np.expm1), FLOATS, expand=_expansion(_expm1))
row("LOG", T, "natural logarithm", UNARY, precise(np.log), FLOATS, expand=_expansion(_log))
row("LOG1P", T, "log(1 + src), accurate near 0", UNARY, precise(np.log1p), FLOATS, expand=_expansion(_log1p))
row("SIN", T, "sine of radians", UNARY, precise(np.sin), FLOATS, expand=_expansion(sine))
row("COS", T, "cosine of radians", UNARY, precise(np.cos), FLOATS, expand=_expansion(cosine))
row("TAN", T, "tangent of radians", UNARY, precise(np.tan), FLOATS, expand=_expansion(tangent))
row("TANH", T, "hyperbolic tangent", UNARY, precise(np.tanh), FLOATS, expand=_expansion(_tanh))
row("SIGMOID", T, "1 / (1 + e^-src), stable for large |src|", UNARY, precise(nx.sigmoid), FLOATS,
    expand=_expansion(_sigmoid))  # fmt: skip
row("ERF", T, "error function", UNARY, precise(nx.erf), FLOATS, expand=_expansion(_erf))
row("POW", T, "lhs to the power rhs", BINARY, precise(np.power), FLOATS, expand=_expansion(_pow))
row("ATAN2", T, "angle of the point (rhs, lhs) in radians", BINARY, precise(np.arctan2), FLOATS,
    expand=_expansion(arctangent))  # fmt: skip
