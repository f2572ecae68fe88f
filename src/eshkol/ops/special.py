"""Special functions: the gamma function and its derivatives, erfc, the inverse of erf, the normal distribution.

Their code is scalar instructions, so that they run on every backend: rational approximations (fitted at Chebyshev
nodes to about 1e-16, which is what remains in float64; float32 evaluates the same ones, but for erfc and the normal
distribution) where the function is smooth, asymptotic series for large arguments, reflection for negative ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import TensorError
from eshkol.ops import dtypes
from eshkol.ops.elementwise import exp
from eshkol.ops.row import Draw, Jvp, Op, Partials, Pull, Value, elementwise, primitive, sample
from eshkol.ops.shapes import of_reals

GROUP = "special functions"
GREATEST_ORDER = 30  # of polygamma: the factorial of a greater one overflows float32


def scalar_code(code: Callable[..., Any]) -> Pull:
    """Code of one element, `code(e, *scalars)`, carried out in 32 bits at least."""

    def pull(e: Any, a: Any, i: Any, *reads: Any) -> Any:
        dtype = reads[0].dtype
        working = dtypes.float32 if dtype.is_float and dtype.bits == 16 else dtype
        return e.convert(code(e, *(e.convert(read(i), working) for read in reads)), dtype)

    return Pull(pull)


def polynomial(e: Any, coefficients: Sequence[float], x: Any) -> Any:
    """c0 + c1·x + c2·x² …, by Horner's rule."""
    total: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        total = e.op("FMA", total, x, c)
    return total


def _ratio(e: Any, above: Sequence[float], below: Sequence[float], x: Any) -> Any:
    return e.op("DIV", polynomial(e, above, x), polynomial(e, below, x))


def _scipy(name: str) -> Callable[..., Any]:
    def reference(a: Any, x: Any) -> Any:
        from scipy import special

        return getattr(special, name)(x.astype(np.float64))

    return reference


def _special(name: str, code: Any, reference: Any, factor: Any, doc: str, *draws: Draw) -> Op:
    return elementwise(
        name, "x", doc, group=GROUP, promote="float", dtypes=("int", "float"), infer=of_reals(), reference=reference,
        derivative=Partials((factor,)), lower=scalar_code(code), samples=(*map(sample, draws), sample((0, 2))),
    )  # fmt: skip


# --- the gamma function ---------------------------------------------------------------------------

_SHIFTED = 8  # from here on the asymptotic series are exact enough
# log Γ(2 + y) = y·(y + 1)·P(y)/Q(y) for y from -1 to 1
_LGAMMA_P = (
    0.42278433509846713, 0.7008368464764494, 0.4534311681759602, 0.1440616618410035, 0.023120899159396146,
    0.0017127411557998655, 4.3747323470488364e-05, 8.687833104493497e-08,
)  # fmt: skip
_LGAMMA_Q = (
    1.0, 1.8949475693422115, 1.4441457353981426, 0.5649492892824147, 0.11981895236779515, 0.013315648803952508,
    0.00067836046199337, 1.096123074877193e-05,
)  # fmt: skip
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400, 43867 / 244188)
# ψ(x) = (x - root)·P(x - 1.5)/Q(x - 1.5) for x from 1 to 2; the root in two parts
_ROOT = (1.4616321449683622, 9.549995429965697e-17)
_DIGAMMA_P = (
    0.9510558760318328, 1.0786473286494878, 0.41869245850949033, 0.06552136794893776, 0.0035369185229135415,
    1.9227634434238662e-05, -2.1371909144303333e-07,
)  # fmt: skip
_DIGAMMA_Q = (
    1.0, 1.5795862133768737, 0.8909108601153678, 0.22226135682897646, 0.023995076433558565, 0.000857691360255349,
)  # fmt: skip
_DIGAMMA_TAIL = (
    1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12, -3617 / 8160, 43867 / 14364, -174611 / 6600,
)  # fmt: skip
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510, 43867 / 798, -174611 / 330)


def _reflected(e: Any, x: Any) -> tuple[Any, Any, Any]:
    """Whether x is negative, then 1 - x instead of x, and π times the distance of x from an integer."""
    negative = e.compare("LT", x, 0.0)
    return negative, e.select(negative, 1.0 - x, x), (x - e.op("ROUND", x)) * math.pi


def _lgamma(e: Any, x: Any) -> Any:
    negative, z, angle = _reflected(e, x)
    small = e.compare("LT", z, 1.0)
    w, product = z, e.constant(1.0, x.dtype)
    for _ in range(_SHIFTED - 3):  # from below 8 down to below 3, by Γ(w) = (w - 1)·Γ(w - 1)
        high = e.compare("GT", w, 3.0)
        w = e.select(high, w - 1.0, w)
        product = e.select(high, product * w, product)
    y, next_y = e.select(small, z - 1.0, w - 2.0), e.select(small, z, w - 1.0)
    logarithm = e.op("LOG", e.select(small, z, product))
    near = y * next_y * _ratio(e, _LGAMMA_P, _LGAMMA_Q, y) + e.select(small, e.op("NEG", logarithm), logarithm)
    inverse = e.op("DIV", 1.0, z)
    far = (z - 0.5) * (e.op("LOG", z) - 1.0) + (0.5 * math.log(2 * math.pi) - 0.5)
    far = far + inverse * polynomial(e, _STIRLING, inverse * inverse)
    found = e.select(e.compare("LT", z, float(_SHIFTED)), near, far)
    mirrored = e.op("LOG", e.op("DIV", math.pi, e.op("ABS", e.op("SIN", angle)))) - found
    mirrored = e.select(e.compare("EQ", angle, 0.0), math.inf, mirrored)  # a pole, also where log Γ(1 - x) is infinite
    mirrored = e.select(e.compare("EQ", x, -math.inf), math.inf, mirrored)
    return e.select(negative, mirrored, found)


def _lgamma_reference(a: Any, x: Any) -> Any:
    from scipy import special

    wide = x.astype(np.float64)
    return np.where(wide == -np.inf, np.inf, special.gammaln(wide))


lgamma = _special(
    "lgamma", _lgamma, _lgamma_reference, lambda r, x: digamma(x),
    "log |Γ(x)|; infinite at 0 and the negative integers.",
    Draw((2, 3), 0.25, 4.0), Draw((2,), 8.5, 20.0), Draw((3,), -1.75, -1.25), Draw((), 1.0, 3.0),
)  # fmt: skip


def _digamma(e: Any, x: Any) -> Any:
    negative, z, angle = _reflected(e, x)
    small = e.compare("LT", z, 1.0)
    w, extra = z, e.select(small, e.op("DIV", -1.0, z), 0.0)
    for _ in range(_SHIFTED - 2):  # from below 8 down to below 2, by ψ(w) = ψ(w - 1) + 1/(w - 1)
        high = e.compare("GT", w, 2.0)
        w = e.select(high, w - 1.0, w)
        extra = e.select(high, extra + e.op("DIV", 1.0, w), extra)
    root = float(x.dtype.numpy.type(_ROOT[0]))
    rest = _ROOT[0] - root + _ROOT[1]
    distance = e.select(small, z - (root - 1.0), w - root) - rest
    near = distance * _ratio(e, _DIGAMMA_P, _DIGAMMA_Q, e.select(small, z - 0.5, w - 1.5)) + extra
    inverse = e.op("DIV", 1.0, z)
    square = inverse * inverse
    far = e.op("LOG", z) - inverse * 0.5 - square * polynomial(e, _DIGAMMA_TAIL, square)
    found = e.select(e.compare("LT", z, float(_SHIFTED)), near, far)
    mirrored = found - e.op("DIV", math.pi, e.op("TAN", angle))
    mirrored = e.select(e.compare("EQ", angle, 0.0), math.nan, mirrored)
    return e.select(negative, mirrored, found)


def _trigamma(r: Any, x: Any) -> Any:
    return polygamma(1, x)


digamma: Op = _special(
    "digamma", _digamma, _scipy("digamma"), _trigamma,
    "The derivative of log Γ(x); NaN at the negative integers.",
    Draw((2, 3), 0.25, 4.0), Draw((2,), 8.5, 20.0), Draw((3,), -1.75, -1.25), Draw((), 1.0, 3.0),
)  # fmt: skip


class Order(NamedTuple):
    n: int


def _power(e: Any, x: Any, n: int) -> Any:
    """x to a whole power, by squaring."""
    found = None
    while n:
        if n & 1:
            found = x if found is None else found * x
        x, n = x * x, n >> 1
    return found


def _zeta(e: Any, n: int, z: Any) -> Any:
    """Σ (z + k)^-(n+1) over k ≥ 0 for z > 0: some terms, the rest by Euler and Maclaurin."""
    s, terms = n + 1, 10 + n
    total = _power(e, e.op("DIV", 1.0, z), s)
    for k in range(1, terms):
        total = total + _power(e, e.op("DIV", 1.0, z + float(k)), s)
    inverse = e.op("DIV", 1.0, z + float(terms))
    rising = [math.prod(range(s, s + 2 * j - 1)) / math.factorial(2 * j) for j in range(1, len(_BERNOULLI) + 1)]
    tail = polynomial(e, [b * r for b, r in zip(_BERNOULLI, rising, strict=True)], inverse * inverse)
    scaled = _power(e, inverse, n)
    return total + scaled * (1 / n) + scaled * inverse * (tail * inverse + 0.5)


def _cotangent_derivative(n: int) -> list[float]:
    """The coefficients of the polynomial in cot x that the n-th derivative of cot x is."""
    found = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        found = -np.polynomial.Polynomial([1.0, 0.0, 1.0]) * found.deriv()
    return [float(c) for c in found.coef]


def _polygamma(e: Any, n: int, x: Any) -> Any:
    if n == 0:
        return _digamma(e, x)
    negative, z, angle = _reflected(e, x)
    sign = 1.0 if n % 2 else -1.0
    found = _zeta(e, n, z) * (sign * math.factorial(n))
    cotangent = e.op("DIV", 1.0, e.op("TAN", angle))
    slope = polynomial(e, _cotangent_derivative(n), cotangent) * math.pi ** (n + 1)
    return e.select(negative, found * -sign - slope, found)


def _pull_polygamma(e: Any, a: Order, i: Any, x: Any) -> Any:
    return scalar_code(lambda e, value: _polygamma(e, a.n, value)).code(e, a, i, x)


def _polygamma_reference(a: Order, x: Any) -> Any:
    from scipy import special

    return special.polygamma(a.n, x.astype(np.float64))


def _jvp_polygamma(a: Order, r: Any, inputs: Any, tangents: Any) -> Any:
    return tangents[0] * polygamma(a.n + 1, inputs[0])


@primitive(
    group=GROUP, promote="float", dtypes=("int", "float"), infer=of_reals(), reference=_polygamma_reference,
    derivative=Jvp(_jvp_polygamma), elementwise=True, lower=Pull(_pull_polygamma), method=False, tolerance=4.0,
    samples=(
        sample(0, Draw((2,), 1.0, 3.0)), sample(1, Draw((2, 3), 1.0, 4.0)), sample(2, Draw((2,), 3.0, 9.0)),
        sample(1, Draw((2,), -1.75, -1.25)), sample(3, Draw((0,), 1.0, 2.0)),
    ),
)  # fmt: skip
def polygamma(n: int, x: Value) -> Order:
    """The n-th derivative of digamma, for n from 0 to 30."""
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= GREATEST_ORDER:
        raise TensorError(f"the order of polygamma is an integer from 0 to {GREATEST_ORDER}, not {n!r}")
    return Order(n)


# --- the error function's kin ---------------------------------------------------------------------

# e^(x²)·erfc(x)·(1 + 2x) = P(t)/Q(t) with t = (x - 3)/(x + 3), for x from 0 to 30
_TWO_OVER_ROOT_PI = 2 / math.sqrt(math.pi)
_ERFC_P = (
    1.2530080582697296, 1.2494700835536432, 1.3112311292856955, 0.9936503138080289, 0.48955492909674725,
    0.27766407258651876, 0.07173186054370878, 0.0292334678856672, 0.0033651918047932043, 0.0008103178114521614,
    2.1254705675437816e-05,
)  # fmt: skip
_ERFC_Q = (
    1.0, 1.1054128347673093, 1.2040710552954887, 0.8618289140116066, 0.5105056894552453, 0.2356941006120878,
    0.08628974135062208, 0.024145377718860044, 0.00490346480440825, 0.0006462486762678712, 4.169294140661979e-05,
)  # fmt: skip


# e^(x²)·erfc(x)·(x + 2) = P((1/(x + 2) - middle)·scale), for x from 0 to 10.1, within 2^-28: float32 divides once
_ERFC_F32 = (
    1.1429461240768433, 0.6528478264808655, 0.20467525720596313, 0.012066623196005821, -0.01238017063587904,
    -0.0012615429004654288, 0.0012058393331244588, 1.129153406509431e-05, -0.00013596905046142638,
    1.3407e-05, 1.1458e-05,
)  # fmt: skip
_ERFC_SCALE, _ERFC_MIDDLE = 4.792079207920792, -1.3960396039603962


def _erfc(e: Any, x: Any) -> Any:
    size = e.op("ABS", x)
    narrow = x.dtype is dtypes.float32
    far = 10.1 if narrow else 30.0  # from where on the result is 0
    size = e.select(e.compare("GT", size, far), far, size)  # NaN stays
    square = size * size
    lost = e.op("FMS", size, size, square)  # what rounding the square lost: matters, as it is exponentiated
    decay = e.op("EXP", e.op("NEG", square))
    decay = e.op("FMS", decay, lost, decay)  # less than 0
    if narrow:
        inverse = e.op("DIV", 1.0, size + 2.0)
        scaled = polynomial(e, _ERFC_F32, e.op("FMA", inverse, _ERFC_SCALE, _ERFC_MIDDLE)) * inverse
    else:
        scaled = _ratio(e, _ERFC_P, _ERFC_Q, e.op("DIV", size - 3.0, size + 3.0))
        scaled = e.op("DIV", scaled, size * 2.0 + 1.0)
    found = decay * scaled
    found = e.select(e.compare("LT", x, 0.0), found + 2.0, e.op("ABS", found))
    if narrow:  # at 0 it is 1 as it is
        return found
    return e.select(e.compare("LT", size, 1e-8), 1.0 - x * _TWO_OVER_ROOT_PI, found)  # exact at 0


erfc = _special(
    "erfc", _erfc, _scipy("erfc"), lambda r, x: -_TWO_OVER_ROOT_PI * exp(-(x * x)),
    "1 - erf(x), accurate for large x.", Draw((2, 3)), Draw((3,), 2.0, 2.5), Draw(()),
)  # fmt: skip


# --- the normal distribution ----------------------------------------------------------------------


class _Bell(NamedTuple):
    """How e^(-s²/2) and Φ(-s) are computed in a dtype.

    e^(-R/2) = 1 + R·P(R) for |R| ≤ ln 2, within 2^-28.2 and 2^-57.8; Φ(-s)·e^(s²/2) = A(s)/B(s) for s from 0 to `far`,
    within 2^-27.3 and 2^-59.9. Powers of two come with `lift` added to their exponents, so that only the last product
    rounds where results are subnormal.
    """

    far: float  # where both are 0
    mantissa: int
    lift: int
    integer: dtypes.DType
    ln2: tuple[float, float]  # twice, in two parts: the first times any exponent is exact
    decay: tuple[float, ...]
    above: tuple[float, ...]
    below: tuple[float, ...]


_BELLS = {
    dtypes.float32: _Bell(
        14.5, 23, 32, dtypes.int32, (1.38629150390625, 2.857213530660374e-06),
        (-0.5, 0.12499998333241015, -0.020833148666855948, 0.002604275504933104,
         -0.0002615288208531815, 2.1584639224891855e-05),
        (0.5, 0.438497898504615, 0.18338560184607628, 0.04068397844302834, 0.004123850229091856),
        (1.0, 1.6748807832891568, 1.2031278789527492, 0.4698678670097631, 0.1019859886367173, 0.010336841539797797),
    ),
    dtypes.float64: _Bell(
        38.7, 52, 64, dtypes.int64, (1.386294361119326, 5.6470581126063154e-13),
        (-0.5, 0.12500000000000028, -0.020833333333333006, 0.0026041666666579365, -0.00026041666667181977,
         2.1701388975912218e-05, -1.5500991797447045e-06, 9.688082815019411e-08, -5.382341692289149e-09,
         2.698307668961923e-10, -1.2206917497971348e-11),
        (0.5, 0.827944708597969, 0.6796411794024125, 0.3573704389260499, 0.1320590611736265, 0.035672290774980489,
         0.0071239892926804576, 0.001039911898581806, 0.00010659659432034807, 6.977807290145324e-06,
         2.242528148606579e-07),
        (1.0, 2.4537739779988035, 2.8171107315498923, 2.001544567896159, 0.9801737226363077, 0.3483513875311084,
         0.0919888639997209, 0.018123266780580652, 0.002624163337363005, 0.00026776015574598526, 1.749076904843443e-05,
         5.621184463951878e-07),
    ),
}  # fmt: skip


def _lifted_bell(e: Any, x: Any) -> tuple[Any, Any]:
    """|x| as far as it matters, and e^(-x²/2)·2^lift."""
    bell = _BELLS[x.dtype]
    magic = 1.5 * 2.0**bell.mantissa + bell.lift
    size = e.op("ABS", x)
    size = e.select(e.compare("GT", size, bell.far), bell.far, size)  # NaN stays
    square = size * size
    lost = e.op("FMS", size, size, square)  # what rounding the square lost: matters, as it is exponentiated
    rounded = e.op("FMA", square, -0.5 / math.log(2), magic)  # ends in the bits of the exponent, `lift` added
    exponent = rounded - magic
    rest = e.op("FMA", exponent, bell.ln2[0], square) + e.op("FMA", exponent, bell.ln2[1], lost)
    grown = e.op("FMA", polynomial(e, bell.decay, rest), rest, 1.0)
    power = e.op("SHL", e.bits(rounded, bell.integer), bell.mantissa)
    return size, e.bits(e.op("ADD", e.bits(grown, bell.integer), power), x.dtype)


def _ndtr(e: Any, x: Any) -> Any:
    bell = _BELLS[x.dtype]
    size, lifted = _lifted_bell(e, x)
    ratio = _ratio(e, [c * 2.0**-bell.lift for c in bell.above], bell.below, size)
    return e.select(e.compare("LT", x, 0.0), lifted * ratio, e.op("FMA", e.op("NEG", lifted), ratio, 1.0))


def _normal_density(e: Any, x: Any) -> Any:
    _, lifted = _lifted_bell(e, x)
    found = lifted * (2.0 ** -_BELLS[x.dtype].lift / math.sqrt(2 * math.pi))
    return e.select(e.compare("NE", x, x), x, found)  # of NaN any bits may have come


normal_density = _special(
    "normal_density", _normal_density, lambda a, x: np.exp(-0.5 * x.astype(np.float64) ** 2) / math.sqrt(2 * math.pi),
    lambda r, x: -x * r, "The density of the normal distribution, e^(-x²/2)/√(2π).", Draw((2, 3)), Draw((3,), -9, 9),
    Draw(()),
)  # fmt: skip
ndtr = _special(
    "ndtr", _ndtr, _scipy("ndtr"), lambda r, x: normal_density(x),
    "Φ(x): how much of the normal distribution lies below x, accurate also where it is small.", Draw((2, 3)),
    Draw((3,), -9, 9), Draw(()),
)  # fmt: skip

# Wichura's algorithm AS 241 for the quantiles of the normal distribution: its centre, its flanks and its tails.
_CENTRE = (
    (3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125, 45921.953931549871457,
     67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
    (1.0, 42.313330701600911252, 687.1870074920579083, 5394.1960214247511077, 21213.794301586595867,
     39307.89580009271061, 28729.085735721942674, 5226.495278852854561),
)  # fmt: skip
_FLANK = (
    (1.42343711074968357734, 4.6303378461565452959, 5.7694972214606914055, 3.64784832476320460504,
     1.27045825245236838258, 0.24178072517745061177, 0.0227238449892691845833, 7.7454501427834140764e-4),
    (1.0, 2.05319162663775882187, 1.6763848301838038494, 0.68976733498510000455, 0.14810397642748007459,
     0.0151986665636164571966, 5.475938084995344946e-4, 1.05075007164441684324e-9),
)  # fmt: skip
_TAIL = (
    (6.6579046435011037772, 5.4637849111641143699, 1.7848265399172913358, 0.29656057182850489123,
     0.026532189526576123093, 0.0012426609473880784386, 2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 0.59983220655588793769, 0.13692988092273580531, 0.0148753612908506148525, 7.868691311456132591e-4,
     1.8463183175100546818e-5, 1.4215117583164458887e-7, 2.04426310338993978564e-15),
)  # fmt: skip

# The same in float32, within 2^-28 and 2^-26.4 (fitted with Remez' exchange): one set for both flanks and tails.
_CENTRE_F32 = (
    (3.3871328603035785, 60.69473678835797, 273.6701103514454, 253.27118741280187),
    (1.0, 20.92445968506311, 121.62347041098098, 186.93285549330178, 31.199908393375297),
)
_SIDE_F32 = (
    (1.4234371266351315, 3.117252593831521, 1.9700317665690178, 0.44579446058011, 0.029295387869463327),
    (1.0, 0.9902122490578361, 0.28245439756382676, 0.020710579300900266),
)


def _quantile(e: Any, half: Any, beyond: Any) -> Any:
    """Below which number 1/2 + half of the normal distribution lies; beyond it, on the nearer side, lies `beyond`."""
    if half.dtype is dtypes.float32:
        return _quantile_f32(e, half, beyond)
    centre = half * _ratio(e, *_CENTRE, 0.180625 - half * half)
    depth = e.op("SQRT", e.op("NEG", e.op("LOG", beyond)))
    side = e.select(e.compare("LE", depth, 5.0), _ratio(e, *_FLANK, depth - 1.6), _ratio(e, *_TAIL, depth - 5.0))
    side = e.select(e.compare("EQ", beyond, 0.0), math.inf, side)
    side = e.select(e.compare("LT", half, 0.0), e.op("NEG", side), side)
    return e.select(e.compare("LE", e.op("ABS", half), 0.425), centre, side)


def _quantile_f32(e: Any, half: Any, beyond: Any) -> Any:
    """The same with one quotient, whose parts are chosen before."""
    square = 0.180625 - half * half
    depth = e.op("SQRT", e.op("NEG", e.op("LOG", beyond))) - 1.6
    central = e.compare("LE", e.op("ABS", half), 0.425)
    side = e.signed(polynomial(e, _SIDE_F32[0], depth), half)
    above = e.select(central, half * polynomial(e, _CENTRE_F32[0], square), side)
    below = e.select(central, polynomial(e, _CENTRE_F32[1], square), polynomial(e, _SIDE_F32[1], depth))
    return e.op("DIV", above, e.select(e.compare("EQ", beyond, 0.0), 1.0, below))  # what is above is infinite there


def _erfinv(e: Any, x: Any) -> Any:
    return _quantile(e, x * 0.5, (1.0 - e.op("ABS", x)) * 0.5) * math.sqrt(0.5)


erfinv = _special(
    "erfinv", _erfinv, _scipy("erfinv"), lambda r, x: 0.5 * math.sqrt(math.pi) * exp(r * r),
    "The number whose erf is x; ±inf at ±1, NaN beyond.",
    Draw((2, 3), -0.8, 0.8), Draw((2,), 0.87, 0.98), Draw((), 0, 0.5),
)  # fmt: skip
ndtri = _special(
    "ndtri", lambda e, p: _quantile(e, p - 0.5, e.op("MIN", p, 1.0 - p)), _scipy("ndtri"),
    lambda r, p: math.sqrt(2 * math.pi) * exp(0.5 * r * r),
    "The number below which x of the normal distribution lies, accurate for small x; ±inf at 0 and 1, NaN beyond.",
    Draw((2, 3), 0.15, 0.85), Draw((2,), 0.06, 0.07), Draw((), 0.93, 0.94),
)  # fmt: skip
