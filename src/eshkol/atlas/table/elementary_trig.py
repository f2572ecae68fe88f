"""Sine, cosine, tangent and the angle of a point, as code over one float type.

Angles are reduced to r_high + r_low within about ±π/4 and a quadrant: by Cody and Waite (π/2 in three parts) up to
2^17 (F32) or 2^20 (F64). What is above goes, in a branch of its own that ends with the result, by Payne and Hanek: the
angle's integer mantissa times the bits of 2/π from where they matter, modulo 4, in integer words of the float's own
width. Sines and cosines of angles below do without the low part: half the instructions, and within 1.5 ulp.

Coefficients: see `elementary.py`.
"""

from __future__ import annotations

from collections.abc import Callable

from eshkol.atlas.operands import Condition
from eshkol.atlas.table.elementary_code import (
    ElementaryValue,
    Format,
    fast_two_sum,
    format_of,
    two_product,
    with_sign,
)
from eshkol.atlas.types import Type

INF, NAN = float("inf"), float("nan")
F32, F64 = Type.F32, Type.F64

# (sin(r) / r - 1) / z at z = r², for |r| ≤ π/4; weight z. Errors 2^-37.6 and 2^-68.8.
SIN = {
    F32: (-0.16666667, 0.008333329, -0.0001983933, 2.7182748e-06),
    F64: (
        -0.16666666666666666, 0.008333333333333323, -0.00019841269841255064, 2.7557319214188703e-06,
        -2.5052104911133037e-08, 1.605836656891367e-10, -7.578694931218473e-13,
    ),
}  # fmt: skip
# (cos(r) - 1 + z/2) / z² at z = r²; weight z². Errors 2^-33.3 and 2^-64.2.
COS = {
    F32: (0.041666646, -0.0013887364, 2.4438117e-05),
    F64: (
        0.0416666666666666, -0.0013888888888874066, 2.480158728944452e-05, -2.75573143409006e-07,
        2.0875721649380815e-09, -1.1359560353888314e-11,
    ),
}  # fmt: skip
# (tan(r) / r - 1) / z at z = r², for |r| ≤ π/4; weight z r / tan(r). Errors 2^-29.5 and 2^-55.6.
TAN = {
    F32: (0.3333335, 0.13332674, 0.054059178, 0.02128451, 0.010832589, 9.082084e-05, 0.0043767984),
    F64: (
        0.3333333333333301, 0.13333333333392597, 0.053968253934708506, 0.021869489453058655, 0.008863221009713167,
        0.0035922747168957033, 0.0014548347234860624, 0.0005947762333311724, 0.00022314938201994678,
        0.00013507648803763977, -2.4503358262837852e-05, 8.784631304176433e-05, -4.406743267658625e-05,
        2.0680848481765403e-05,
    ),
}  # fmt: skip
TAN_GROWTH = 1.5  # 1 + TAN_GROWTH z is 1 + tan²(r), to a tenth
# (atan(q) / q - 1) / z at z = q², for 0 ≤ q ≤ 1; weight z. Errors 2^-28.7 and 2^-60.4.
ATAN = {
    F32: (
        -0.33333302, 0.19998638, -0.14265242, 0.10957556, -0.08419392, 0.058233317, -0.03145441, 0.011063728,
        -0.0018270506,
    ),
    F64: (
        -0.3333333333333329, 0.19999999999991241, -0.142857142850866, 0.11111111088057511, -0.0909090857852678,
        0.07692300113781105, -0.06666587353918328, 0.058817401508672464, -0.052595531482560305, 0.047453819122033954,
        -0.042877453568665264, 0.03824164654618554, -0.03284343224721968, 0.026235499861214307,
        -0.01870899165731528, 0.011400494487370039, -0.005667194795404756, 0.002178108942383184,
        -0.000601743531370504, 0.0001056915850581712, -8.827882582125072e-06,
    ),
}  # fmt: skip
QUARTER_TURN = {F32: (1.5707963705062866, -4.371138828673793e-08), F64: (1.5707963267948966, 6.123233995736766e-17)}
HALF_TURN = {F32: (3.1415927410125732, -8.742277657347586e-08), F64: (3.141592653589793, 1.2246467991473532e-16)}

TWO_OVER_PI = 0.6366197723675814
# Angles below 2^17 and 2^20 are counted in quarter turns, of which this is one in three parts. A count times the first
# is exact in F64, where it has 33 bits; in F32 the angle less that product is, rounded once: a multiple of 2^-24.
COUNT_PARTS = {
    F32: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15),
    F64: (1.5707963267341256, 6.077100506506192e-11, 3.5215598651832e-27),
}
COUNT_EXPONENT = {F32: 17, F64: 20}
# The first 1216 binary places of 2/π.
PLACES = 1216
TWO_OVER_PI_BITS = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921cfe1deb1cb129a73e"
    "e88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980fef2f118b5a0a6d1f6d367ecf27cb09b7"
    "4f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d0856033046fc7b6bab",
    16,
)


def _table(f: Format) -> list[int]:
    """Words of 2/π, the first so placed that an angle of exponent COUNT_EXPONENT + n starts n bits further."""
    width, least = f.ty.bits, COUNT_EXPONENT[f.ty]
    count = (f.bias - least) // width + 4
    places = least - f.mantissa - 2 + width * count
    whole = TWO_OVER_PI_BITS >> (PLACES - places)
    return [(whole >> (width * (count - 1 - j))) & ((1 << width) - 1) for j in range(count)]


def _high_product(m: ElementaryValue, word: ElementaryValue) -> ElementaryValue:
    """The upper word of m × word, from products of half words; m is a mantissa, at least 8 bits below its width."""
    half = word.ty.bits // 2
    mask = (1 << half) - 1
    m_high, m_low, w_high, w_low = m >> half, m & mask, word >> half, word & mask
    middle = m_low.fma(w_high, (m_low * w_low) >> half)
    other = m_high.fma(w_low, middle & mask)
    return m_high.fma(w_high, middle >> half) + (other >> half)


def _huge_angle(angle: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue, ElementaryValue]:
    """(quadrant, r_high, r_low) of a finite angle whose exponent is at least COUNT_EXPONENT; else anything."""
    f = format_of(angle)
    width, unsigned = f.ty.bits, f.unsigned
    bits = angle.bits(unsigned)
    m = (bits & ((1 << f.mantissa) - 1)) | (1 << f.mantissa)
    start = (bits >> f.mantissa) - (f.bias + COUNT_EXPONENT[f.ty])
    # Four words from `start` on, by halving steps; then three, shifted so that the first begins at `start`.
    words: list[int | ElementaryValue] = list(_table(f))
    distance = 1 << ((len(words) - 4).bit_length() - 1)
    while distance:
        further = (start & (distance * width)).is_(Condition.NE, 0)
        words = [
            further.select(bits.lift(words[j + distance]), words[j]) if j + distance < len(words) else words[j]
            for j in range(min(distance + 3, len(words)))
        ]
        distance //= 2
    shift = start & (width - 1)
    back = shift ^ (width - 1)
    chosen = [bits.lift(word) for word in words]
    first, second, third = ((chosen[j] << shift) | ((chosen[j + 1] >> 1) >> back) for j in range(3))
    # angle × 2/π mod 4, in units of 2^(2 - 2 width): two words, of which two bits are the quadrant.
    carried = _high_product(m, third)
    low = m * second + carried
    high = m.fma(first, _high_product(m, second)) + low.below(carried).select(bits.lift(1), 0)
    quadrant = (high + (1 << (width - 3))) >> (width - 2)
    high = high - (quadrant << (width - 2))
    negative = high.at_least(1 << (width - 1))
    borrow = low.equals(0).select(bits.lift(0), 1)
    high = negative.select(0 - high - borrow, high)
    low = negative.select(0 - low, low)
    # To floats, in pieces that convert exactly and add up to two parts even where the first ones are 0.
    drop, rest = width - 2 - (f.mantissa + 1), width - (f.mantissa + 1)

    def piece(word: ElementaryValue, unit: int) -> ElementaryValue:
        return word.bits(f.signed).to(f.ty) * 2.0 ** (unit + 2 - width)

    fraction, error = fast_two_sum(piece(high >> drop, drop), piece(high & ((1 << drop) - 1), 0))
    fraction, more = fast_two_sum(fraction, piece(low >> rest, rest - width))
    error = error + more + piece(low & ((1 << rest) - 1), -width)
    turn, turn_low = QUARTER_TURN[f.ty]
    r, r_low = two_product(fraction, fraction.lift(turn))
    r, error = fast_two_sum(r, error.fma(turn, fraction.fma(turn_low, r_low)))
    return quadrant, negative.select(-r, r), negative.select(-error, error)


def _moderate_angle(angle: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue, ElementaryValue]:
    """(quadrant, r_high, r_low) of an angle below 2^COUNT_EXPONENT that is not negative; NaN stays NaN.

    Of a tiny r_high the low part may be a few bits shorter only, which does no harm: there it is just added.
    """
    f, (first, second, third) = format_of(angle), COUNT_PARTS[angle.ty]
    rounded = angle.fma(TWO_OVER_PI, f.magic)
    count = rounded - f.magic
    product, product_low = two_product(count, angle.lift(second))
    r, rest = fast_two_sum(count.fma(-first, angle), -product)  # the first is a multiple of the other's last place
    return rounded.bits(f.unsigned), r, count.fma(-third, rest - product_low)


def _rounded_angle(angle: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """(quadrant, r) of the same angle: r is rounded twice, which a sine of it sees as less than one ulp."""
    f, (first, second, third) = format_of(angle), COUNT_PARTS[angle.ty]
    rounded = angle.fma(TWO_OVER_PI, f.magic)
    count = rounded - f.magic
    return rounded.bits(f.unsigned), count.fma(-third, count.fma(-second, count.fma(-first, angle)))


def _of_angle(
    x: ElementaryValue, finished: Callable[[ElementaryValue, ElementaryValue, ElementaryValue], ElementaryValue],
    quick: Callable[[ElementaryValue, ElementaryValue], ElementaryValue] | None = None,
) -> ElementaryValue:  # fmt: skip
    """A function of an angle from (quadrant, r_high, r_low) of its magnitude; the quadrant in the low two bits.

    Where it is no huge one, and less will do, from (quadrant, r).
    """
    angle, code = abs(x), x.code
    moderate = finished(*_moderate_angle(angle)) if quick is None else quick(*_rounded_angle(angle))
    result = code.variable(moderate)
    with code.when(angle.at_least(2.0 ** COUNT_EXPONENT[x.ty])):
        code.assign(result, _finite_only(x, finished(*_huge_angle(angle))))
    return result


def _sine(r: ElementaryValue, r_low: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """sin(r + r_low) as r and what is to be added."""
    z = r * r
    return r, (r * z).fma(z.polynomial(SIN[r.ty]), r_low * z.fma(-0.5, 1.0))


def _cosine(r: ElementaryValue, r_low: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """cos(r + r_low) as 1 - r²/2 rounded and what is to be added."""
    z = r * r
    half = z * 0.5
    high = 1.0 - half
    rest = (1.0 - high) - half
    return high, rest + (z * z).fma(z.polynomial(COS[r.ty]), -(r * r_low))


def _flip(value: ElementaryValue, bit: ElementaryValue) -> ElementaryValue:
    """The value, negated where bit 1 of a word is set."""
    f = format_of(value)
    return (value.bits(f.unsigned) ^ ((bit & 2) << (f.ty.bits - 2))).bits(f.ty)


def _finite_only(x: ElementaryValue, result: ElementaryValue) -> ElementaryValue:
    return abs(x).below(INF).select(result, NAN)


def _signed_as(value: ElementaryValue, x: ElementaryValue) -> ElementaryValue:
    """The value, negated where x is negative."""
    f = format_of(x)
    return (value.bits(f.unsigned) ^ (x.bits(f.unsigned) & f.sign)).bits(f.ty)


def _quick_pair(r: ElementaryValue) -> tuple[ElementaryValue, ElementaryValue]:
    """sin(r) and cos(r), each rounded a few times: within 1.5 ulp."""
    z = r * r
    sine_ = (r * z).fma(z.polynomial(SIN[r.ty]), r)
    return sine_, z.fma(z.polynomial((-0.5, *COS[r.ty])), 1.0)


def sine(x: ElementaryValue) -> ElementaryValue:
    def quick(quadrant: ElementaryValue, r: ElementaryValue) -> ElementaryValue:
        s, c = _quick_pair(r)
        return _signed_as(_flip((quadrant & 1).equals(0).select(s, c), quadrant), x)

    def finished(quadrant: ElementaryValue, r: ElementaryValue, r_low: ElementaryValue) -> ElementaryValue:
        s, c = _sine(r, r_low), _cosine(r, r_low)
        value = (quadrant & 1).equals(0).select(s[0] + s[1], c[0] + c[1])
        return _signed_as(_flip(value, quadrant), x)

    return _of_angle(x, finished, quick)


def cosine(x: ElementaryValue) -> ElementaryValue:
    def quick(quadrant: ElementaryValue, r: ElementaryValue) -> ElementaryValue:
        s, c = _quick_pair(r)
        return _flip((quadrant & 1).equals(0).select(c, s), quadrant + 1)

    def finished(quadrant: ElementaryValue, r: ElementaryValue, r_low: ElementaryValue) -> ElementaryValue:
        s, c = _sine(r, r_low), _cosine(r, r_low)
        value = (quadrant & 1).equals(0).select(c[0] + c[1], s[0] + s[1])
        return _flip(value, quadrant + 1)

    return _of_angle(x, finished, quick)


def tangent(x: ElementaryValue) -> ElementaryValue:
    """The tangent of what is left, r + r³ p(r²) with what r lost times about 1 + tan²; -1 of it in odd quadrants.

    Rounded once where it is the result, and twice where its reciprocal is: within 1.8 ulp.
    """

    def finished(quadrant: ElementaryValue, r: ElementaryValue, r_low: ElementaryValue) -> ElementaryValue:
        z = r * r
        grown = (r * z).fma(z.polynomial(TAN[x.ty]), r_low * z.fma(TAN_GROWTH, 1.0)) + r
        return _signed_as((quadrant & 1).equals(0).select(grown, -1.0 / grown), x)

    return _of_angle(x, finished)


def arctangent(y: ElementaryValue, x: ElementaryValue) -> ElementaryValue:
    """The angle of (x, y): atan of the lesser over the greater coordinate, set into its octant."""
    f = format_of(x)
    across, up = abs(x), abs(y)
    steep = up.above(across)
    lesser, greater = steep.select(across, up), steep.select(up, across)
    # Both infinite count as equal, both zero as on the axis; NaN passes through the division.
    ratio = lesser.equals(greater).select(greater.equals(0.0).select(greater, 1.0), lesser / greater)
    z = ratio * ratio
    angle = (ratio * z).fma(z.polynomial(ATAN[f.ty]), ratio)
    left = x.bits(f.signed).below(0)
    angle = steep.select(-angle, angle)
    angle = left.select(-angle, angle)
    base, base_low = (
        steep.select(quarter, left.select(x.lift(half), 0.0))
        for quarter, half in zip(QUARTER_TURN[f.ty], HALF_TURN[f.ty], strict=True)
    )
    result = with_sign(base + (angle + base_low), y)
    return x.is_nan().select(x, y.is_nan().select(y, result))
