"""How one element comes about where operands are complex: scalar code for the rows of elementwise ops.

Comes in: an emitter and complex scalars, whose parts are `x.re` and `x.im`. Goes out: the result's scalar. Kernels know
real numbers alone, so each function here is said in them, without branches, so that machines compute many elements at
once. What is too large or too small for a square is scaled by a power of two first. Infinities, NaN and the signs of
zeros are as C's Annex G, and so NumPy, has them, but for the sign of what is 0 or infinite beside a NaN.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from eshkol.ops.dtypes import DType, float32
from eshkol.ops.row import Pull


class _Range(NamedTuple):
    """Of a dtype of parts: what may be squared, by which powers of 2 the rest is scaled, and what exponentials hold."""

    large: float
    down: int
    small: float
    up: int
    exponent: float  # the largest number of which the exponential is finite, or a little less
    flat: float  # from where on the hyperbolic tangent is 1


def _range(dtype: DType) -> _Range:
    if dtype is float32:
        return _Range(2.0**62, -66, 2.0**-50, 100, 88.0, 12.0)
    return _Range(2.0**510, -520, 2.0**-450, 600, 709.0, 25.0)


def pulled(code: Any) -> Pull:
    """The lowering of code of one element, `code(e, *scalars)`."""
    return Pull(lambda e, a, i, *reads: code(e, *(read(i) for read in reads)))


class _Size(NamedTuple):
    """The sizes of a number's parts, scaled so that they may be squared, and how they were scaled."""

    re: Any
    im: Any
    most: Any  # of the sizes, as they were; NaN counts for nothing
    larger: Any  # whether it was scaled down
    smaller: Any  # whether it was scaled up

    def chosen(self, e: Any, down: float, up: float, same: float) -> Any:
        """One of three numbers, by how it was scaled."""
        dtype = self.re.dtype
        low, high, middle = (e.constant(v, dtype) for v in (up, down, same))
        return e.select(self.larger, high, e.select(self.smaller, low, middle))


def _sized(e: Any, x: Any) -> _Size:
    of = _range(x.re.dtype)
    re, im = e.op("ABS", x.re), e.op("ABS", x.im)
    most = e.op("MAX", re, im)
    larger, smaller = e.compare("GT", most, of.large), e.compare("LT", most, of.small)
    plain = _Size(re, im, most, larger, smaller)
    scale = plain.chosen(e, 2.0**of.down, 2.0**of.up, 1.0)
    return _Size(re * scale, im * scale, most, larger, smaller)


def _root_of_squares(e: Any, x: Any, y: Any) -> Any:
    return e.op("SQRT", x * x + y * y)


def _is_nan(e: Any, x: Any) -> Any:
    return e.compare("NE", x, x)


# --- arithmetic -----------------------------------------------------------------------------------


def add(e: Any, x: Any, y: Any) -> Any:
    return e.op("ADD", x, y)


def sub(e: Any, x: Any, y: Any) -> Any:
    return e.op("SUB", x, y)


def neg(e: Any, x: Any) -> Any:
    return e.op("NEG", x)


def mul(e: Any, x: Any, y: Any) -> Any:
    return e.op("MUL", x, y)


def div(e: Any, x: Any, y: Any) -> Any:
    """By the greater part of the divisor, so that nothing on the way is larger than the quotient needs (Smith)."""
    re, im = e.op("ABS", y.re), e.op("ABS", y.im)
    by_re = e.compare("GE", re, im)
    greater, lesser = e.select(by_re, y.re, y.im), e.select(by_re, y.im, y.re)
    zero = e.compare("EQ", greater, 0.0)  # where both parts are, or the other is NaN
    ratio = e.op("DIV", lesser, e.select(zero, e.constant(1.0, re.dtype), greater))
    whole = e.op("DIV", 1.0, e.select(zero, re, greater + lesser * ratio))
    near, far = e.select(by_re, x.re, x.im), e.select(by_re, x.im, x.re)
    none = e.constant(0.0, re.dtype)
    more, less = (e.select(zero, none, part * ratio) for part in (far, near))  # of what is infinite, too
    first, second = (near + more) * whole, (far - less) * whole
    return e.pair(first, e.select(by_re, second, e.op("NEG", second)))


def absolute(e: Any, x: Any) -> Any:
    """The modulus: infinite where a part is, even beside NaN."""
    size, of = _sized(e, x), _range(x.re.dtype)
    found = _root_of_squares(e, size.re, size.im) * size.chosen(e, 2.0**-of.down, 2.0**-of.up, 1.0)
    return e.select(e.compare("EQ", size.most, math.inf), e.constant(math.inf, found.dtype), found)


def real(e: Any, x: Any) -> Any:
    return x.re


def imag(e: Any, x: Any) -> Any:
    return x.im


def conj(e: Any, x: Any) -> Any:
    return e.pair(x.re, e.op("NEG", x.im))


# --- exponentials and logarithms ------------------------------------------------------------------


def exp(e: Any, x: Any) -> Any:
    """e^re · (cos im + i · sin im); of a large re in two factors, as the product may be finite."""
    large = e.compare("GT", x.re, _range(x.re.dtype).exponent)
    size = e.op("EXP", e.select(large, x.re * 0.5, x.re))
    again = e.select(large, size, e.constant(1.0, size.dtype))
    turn = e.op("COS", x.im)
    re, im = (size * part * again for part in (turn, e.op("SIN", x.im)))
    im = e.select(e.compare("EQ", x.im, 0.0), x.im, im)
    # In no direction, what is 0 or infinite is so all the same.
    lost = e.both(_is_nan(e, turn), e.compare("EQ", e.op("ABS", x.re), math.inf))
    return e.pair(e.select(lost, size, re), e.select(e.both(lost, e.compare("LT", x.re, 0.0)), size, im))


def log(e: Any, x: Any) -> Any:
    """The logarithm of the modulus, which near 1 is taken of what it differs by, and the angle."""
    size, of = _sized(e, x), _range(x.re.dtype)
    square = size.re * size.re + size.im * size.im
    most, least = size.most, e.op("MIN", size.re, size.im)
    near = e.both(e.compare("LT", most, 1.5), e.compare("GT", square, 0.5))
    near = e.both(near, e.negation(size.smaller))
    above = (most - 1.0) * (most + 1.0) + least * least
    whole = e.select(near, above + 1.0, square)
    lost = e.op("DIV", above - (whole - 1.0), whole)  # what adding 1 has rounded off
    found = e.op("LOG", whole) + e.select(near, lost, e.constant(0.0, lost.dtype))
    found = found * 0.5 + size.chosen(e, -of.down * math.log(2), -of.up * math.log(2), 0.0)
    nan = _is_nan(e, size.re + size.im)
    found = e.select(nan, e.constant(math.nan, found.dtype), found)
    found = e.select(e.compare("EQ", most, math.inf), e.constant(math.inf, found.dtype), found)
    return e.pair(found, e.op("ATAN2", x.im, x.re))


def sqrt(e: Any, x: Any) -> Any:
    """The root whose real part is not negative; below the negative axis, and on it from there, its lower half."""
    size, of = _sized(e, x), _range(x.re.dtype)
    infinite = e.compare("EQ", size.most, math.inf)
    endless = e.constant(math.inf, size.re.dtype)
    greater = e.op("SQRT", (_root_of_squares(e, size.re, size.im) + size.re) * 0.5)
    greater = e.select(infinite, endless, greater)
    nothing = e.compare("EQ", greater, 0.0)
    lesser = e.op("DIV", size.im, e.select(nothing, e.constant(1.0, greater.dtype), greater + greater))
    lesser = e.select(e.compare("EQ", size.im, math.inf), endless, lesser)
    scale = size.chosen(e, 2.0 ** (-of.down // 2), 2.0 ** (-of.up // 2), 1.0)
    greater, lesser = greater * scale, lesser * scale
    right = e.compare("GE", x.re, 0.0)
    return e.pair(e.select(right, greater, lesser), e.signed(e.select(right, lesser, greater), x.im))


def power(e: Any, x: Any, y: Any) -> Any:
    """e^(y · log x); 1 where y is 0, and of 0 itself 0 for positive real powers, NaN for others."""
    found = exp(e, mul(e, y, log(e, x)))
    lawful = e.both(e.compare("GT", y.re, 0.0), e.compare("EQ", y.im, 0.0))
    of_zero = e.select(lawful, e.constant(0.0, x.dtype), e.constant(complex(math.nan, math.nan), x.dtype))
    found = e.select(e.compare("EQ", x, 0.0), of_zero, found)
    return e.select(e.compare("EQ", y, 0.0), e.constant(1.0, x.dtype), found)


# --- trigonometric and hyperbolic functions -------------------------------------------------------


def _hyperbolic(e: Any, x: Any) -> tuple[Any, Any, Any]:
    """sinh and cosh of a real number, but for a factor that both have, which may be too large beside them."""
    size = e.op("ABS", x)
    large = e.compare("GT", size, _range(x.dtype).exponent - 1.0)
    less = e.op("EXPM1", e.select(large, size * 0.5, size))
    whole = less + 1.0
    below = e.op("DIV", 1.0, whole)
    # Where it is large, the half of e^(|x|/2), which is multiplied by the other half at the end.
    rise = e.select(large, whole * 0.5, (less + less * below) * 0.5)
    level = e.select(large, whole * 0.5, (whole + below) * 0.5)
    return e.signed(rise, x), level, e.select(large, whole, e.constant(1.0, x.dtype))


def _turned(e: Any, turn: Any, size: Any) -> Any:
    """A sine or cosine times what it turns: in no direction, what is 0 or infinite is so all the same."""
    definite = e.op("OR", e.compare("EQ", size, 0.0), e.compare("EQ", e.op("ABS", size), math.inf))
    return e.select(e.both(_is_nan(e, turn), definite), e.constant(1.0, turn.dtype), turn) * size


def sin(e: Any, x: Any) -> Any:
    rise, level, factor = _hyperbolic(e, x.im)
    re, im = e.op("SIN", x.re) * level * factor, _turned(e, e.op("COS", x.re), rise) * factor
    return e.pair(e.select(e.compare("EQ", x.re, 0.0), x.re, re), im)


def cos(e: Any, x: Any) -> Any:
    rise, level, factor = _hyperbolic(e, x.im)
    re, im = _turned(e, e.op("COS", x.re), level) * factor, e.op("SIN", x.re) * rise * factor
    either = e.op("OR", e.compare("EQ", x.re, 0.0), e.compare("EQ", x.im, 0.0))
    none = e.signed(e.constant(0.0, re.dtype), x.re) * e.signed(e.constant(1.0, re.dtype), x.im)
    return e.pair(re, e.op("NEG", e.select(e.both(_is_nan(e, im), either), none, im)))


def _swapped(e: Any, x: Any) -> Any:
    return e.pair(x.im, x.re)


def sinh(e: Any, x: Any) -> Any:
    """-i · sin(i·x): the same of exchanged parts."""
    return _swapped(e, sin(e, _swapped(e, x)))


def cosh(e: Any, x: Any) -> Any:
    """cos(i·x)."""
    return conj(e, cos(e, _swapped(e, x)))


def tanh(e: Any, x: Any) -> Any:
    """By the tangent of the imaginary part, so that nothing is lost where it is near a pole (Kahan)."""
    rise, level, factor = _hyperbolic(e, x.re)
    rise, level = rise * factor, level * factor
    tangent = e.op("TAN", x.im)
    secant = tangent * tangent + 1.0
    whole = secant * rise * rise + 1.0
    flat = e.compare("GT", e.op("ABS", x.re), _range(x.re.dtype).flat)
    one = e.signed(e.constant(1.0, rise.dtype), x.re)
    endless = e.compare("EQ", e.op("ABS", x.re), math.inf)
    known = e.select(endless, one, one + (tangent - tangent))  # NaN where the tangent is
    re = e.select(flat, known, e.op("DIV", secant * level * rise, whole))
    re = e.select(e.compare("EQ", x.re, 0.0), x.re, re)
    im = e.select(endless, e.signed(e.constant(0.0, re.dtype), tangent), e.op("DIV", tangent, whole))
    return e.pair(re, e.select(e.compare("EQ", x.im, 0.0), x.im, im))


def tan(e: Any, x: Any) -> Any:
    """-i · tanh(i·x)."""
    return _swapped(e, tanh(e, _swapped(e, x)))
