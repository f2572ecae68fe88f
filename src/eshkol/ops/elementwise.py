"""Ops that work element by element and are one Atlas instruction each, or nearly; broadcasting as NumPy's.

What can be said with these is a composite in `functions.py` or `activations.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, TensorError
from eshkol.ops import complex_code, dtypes
from eshkol.ops.complex_code import pulled
from eshkol.ops.dtypes import DType, bool_
from eshkol.ops.row import (
    Aval,
    Choice,
    Draw,
    HasAval,
    Jvp,
    Linear,
    NoDerivative,
    Op,
    Partials,
    Pull,
    Sample,
    Value,
    composite,
    elementwise,
    primitive,
    sample,
)
from eshkol.ops.shapes import of_reals, same

ARITHMETIC, FUNCTIONS, COMPARISON, LOGIC, BITS = "arithmetic", "functions", "comparison", "logic", "bits"
_REAL = ("int", "float")
_NUMBERS = ("int", "float", "complex")
_ANY = ("bool", "int", "float", "complex")


def _numpy(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda a, *arrays: function(*arrays)


def _instruction(name: str) -> Pull:
    return Pull(lambda e, a, i, *reads: e.op(name, *(read(i) for read in reads)))


# --- dtypes ---------------------------------------------------------------------------------------


class Cast(NamedTuple):
    dtype: DType


def _cast_transpose(a: Cast, ct: Any, k: int, x: HasAval) -> Any:
    return cast(ct, x.dtype) if not ct.dtype.is_complex or x.dtype.is_complex else cast(real(ct), x.dtype)


def _infer_cast(a: Cast, x: HasAval) -> Aval:
    if x.dtype.is_complex and not a.dtype.is_complex and not a.dtype.is_bool:
        raise DTypeError(f"a cast to {a.dtype} would lose the imaginary part", hint="take x.real or abs(x)")
    return Aval(x.shape, a.dtype)


def _convert(a: Cast, x: Any) -> Any:
    """As Atlas converts: floats to integers truncate and saturate, NaN becomes 0."""
    if a.dtype.is_integer and x.dtype.kind not in "biu":
        least, most = a.dtype.limits()
        wide = np.trunc(np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf))
        over, under = wide >= float(most), wide <= float(least)
        inside = np.where(over | under, 0, wide).astype(a.dtype.numpy)
        return np.where(over, np.array(most, a.dtype.numpy), np.where(under, np.array(least, a.dtype.numpy), inside))
    with np.errstate(over="ignore"):
        return x.astype(a.dtype.numpy)


def _cast_batch(a: Cast, inputs: Any, batched: Any) -> Any:
    return cast(inputs[0], a.dtype)


@primitive(
    group=ARITHMETIC, infer=_infer_cast, reference=_convert, derivative=Linear(_cast_transpose), batch=_cast_batch,
    dtypes=("bool", "int", "float"), aliases=("astype",), elementwise=True, moves=True, exact="all",
    work=lambda node, of: 0, of_complex=True,
    procedures=("exact", "inexact", "inexact->exact", "exact->inexact"),
    lower=Pull(lambda e, a, i, x: e.convert(x(i), a.dtype)),
    samples=(sample((2, 3), dtype="float32"), sample((2, 3), dtype="int32"), sample((3,), dtype="bool")),
)  # fmt: skip
def cast(x: Value, dtype: Any) -> Cast:
    """x in another dtype: floats round, and to an integer they truncate and saturate (NaN becomes 0)."""
    return Cast(dtypes.of(dtype))


# --- arithmetic -----------------------------------------------------------------------------------


def _binary(name: str, instruction: str, reference: Any, factors: Any, doc: str, **rules: Any) -> Op:
    rules = {"promote": "number", "dtypes": _NUMBERS, "group": ARITHMETIC, "infer": same()} | rules
    rules.setdefault("samples", (sample((2, 3), (2, 3)), sample((2, 1), (3,)), sample((), (2,)), sample((0, 2), (2,))))
    return elementwise(
        name, "x y", doc, reference=_numpy(reference), lower=_instruction(instruction), **rules,
        derivative=factors if isinstance(factors, NoDerivative) else Partials(factors),
    )  # fmt: skip


def _unary(name: str, instruction: str, reference: Any, factor: Any, doc: str, **rules: Any) -> Op:
    low, high = rules.pop("domain", (-2.0, 2.0))
    rules = {"promote": "float", "dtypes": ("int", "float"), "group": FUNCTIONS, "infer": same()} | rules
    rules.setdefault("samples", tuple(sample(Draw(shape, low, high)) for shape in ((2, 3), (), (0, 2))))
    rules.setdefault("lower", _instruction(instruction))
    return elementwise(
        name, "x", doc, reference=_numpy(reference), **rules,
        derivative=factor if isinstance(factor, NoDerivative) else Partials((factor,)),
    )  # fmt: skip


add = _binary(
    "add", "ADD", np.add, (lambda r, x, y: 1, lambda r, x, y: 1), "x + y.", exact="all", commutes=True,
    of_complex=pulled(complex_code.add),
    scheme=("tensor-add", "tensor-add!", "add!", "vector-add"), procedures=("+",),
)  # fmt: skip
sub = _binary(
    "sub", "SUB", np.subtract, (lambda r, x, y: 1, lambda r, x, y: -1), "x - y.", exact="all",
    of_complex=pulled(complex_code.sub),
    scheme=("tensor-sub", "tensor-sub!"), procedures=("-",), aliases=("subtract",),
)  # fmt: skip
mul = _binary(
    "mul", "MUL", np.multiply, (lambda r, x, y: y, lambda r, x, y: x), "x · y.", exact="real", commutes=True,
    of_complex=pulled(complex_code.mul),
    scheme=("tensor-mul", "tensor-mul!", "mul!"), procedures=("*",), aliases=("multiply",),
)  # fmt: skip
div = _binary(
    "div", "DIV", np.true_divide, (lambda r, x, y: 1 / y, lambda r, x, y: -r / y),
    "x / y; integers become floats first.", promote="float", scheme=("tensor-div", "tensor-div!"), procedures=("/",),
    aliases=("divide", "true_divide"), exact="real", of_complex=pulled(complex_code.div),
    samples=(sample((2, 3), Draw((2, 3), 0.5, 2.0)), sample((2, 1), Draw((3,), 0.5, 2.0)), sample((0,), (1,))),
)  # fmt: skip


def _pow_base(r: Any, x: Any, y: Any) -> Any:
    """y·x^(y-1), which is 0 and not 0·∞ where y is 0."""
    return y * power(x, where(equal(y, 0), 1, y - 1))


def _pow_exponent(r: Any, x: Any, y: Any) -> Any:
    """log(x)·x^y, which is 0 where x is 0 and y is not negative."""
    flat = logical_and(equal(x, 0), greater_equal(y, 0)) if not x.dtype.is_complex else equal(x, 0)
    return r * where(flat, 0, log(where(flat, 1, x)))


def _refuse_negative(a: Any, x: Any, y: Any) -> Any:
    """An error where the powers of integers are known, and one is negative; gives those that are not known."""
    known: Any = y.known() if y.dtype.is_integer else 0
    if known is None:
        return y
    if np.any(known < 0):
        raise TensorError(
            f"an integer to the power {known[known < 0].flat[0]} is none",
            hint="cast to a float first: x.astype(ek.float32)",
        )
    return None


FEW_BITS = 6  # of the exponent of an integer: greater ones than 63 are seldom


def _integer_power(e: Any, a: Any, i: Any, x: Any, y: Any) -> Any:
    """Squares, multiplied where the exponent has a bit; a negative one stops the launch.

    Nearly all exponents have few bits. The others are looked at only where an exponent has one of them.
    """
    base, exponent = x(i), y(i)
    zero, one = (e.constant(k, base.dtype) for k in (0, 1))
    if base.dtype.signed:
        fits = e.compare("GE", exponent, zero)
        e.stop_unless(e.select(fits, e.constant(1, dtypes.uint32), e.constant(0, dtypes.uint32)), 0)

    def step(_: Any, state: Any) -> Any:
        found, square, left = state
        chosen = e.compare("NE", e.op("AND", left, one), zero)
        return e.select(chosen, e.op("MUL", found, square), found), e.op("MUL", square, square), e.op("SHR", left, 1)

    few, bits = FEW_BITS, 8 * base.dtype.itemsize - base.dtype.signed
    state = e.loop(min(few, bits), (one, base, exponent), step)
    if few < bits:
        more = e.compare("NE", state[2], zero)
        state = e.loop(e.at_most(e.select(more, e.number(bits - few), e.number(0)), bits - few), state, step)
    return state[0]


def _negative_power(a: Any) -> TensorError:
    return TensorError("an integer to a negative power is none", hint="cast to a float first: x.astype(ek.float32)")


_pow_samples = (
    sample(Draw((2, 3), 0.5, 2.0), Draw((2, 3), 0.0, 3.0)), sample(Draw((2, 1), 0.5, 2.0), Draw((3,), 0.0, 3.0)),
    sample(Draw((), 0.5, 2.0), Draw((2,), 0.0, 2.0)),
)  # fmt: skip
power: Op = elementwise(
    "power", "x y", "x to the power y, element by element; of integers, a negative power is an error.",
    group=ARITHMETIC, promote="number", dtypes=_NUMBERS, infer=same(), reference=_numpy(np.power),
    derivative=Partials((_pow_base, _pow_exponent)), procedures=("expt",), refuses=_refuse_negative,
    lower=Choice(lambda a, x, y: x.dtype.is_integer, Pull(_integer_power), _instruction("POW")), traps=True,
    stops=_negative_power, samples=_pow_samples, of_complex=pulled(complex_code.power),
)  # fmt: skip


@composite(
    name="pow", group=ARITHMETIC, dtypes=_NUMBERS, reference=np.power,
    samples=(*_pow_samples, *(Sample((Draw((2, 3), 0.5, 2.0), n)) for n in (0, 1, 2, 3)), Sample((Draw((3,)), 2))),
)  # fmt: skip
def pow_(x: Value, y: Value | float) -> Any:
    """x to the power y; of integers, a negative power is an error. Small whole numbers for y are products."""
    if type(y) is not int or x.dtype.is_bool or not 1 <= y <= (64 if x.dtype.is_integer else 3):
        return power(x, y)
    half = x if y < 4 else pow_(x, y // 2)  # y above 3 only of integers, whose products are exact in any order
    return x if y == 1 else x * x if y == 2 else x * x * x if y == 3 else half * half * x if y % 2 else half * half


def _extreme(name: str) -> Pull:
    """The greater or lesser operand, and NaN where either is NaN, unlike the instruction."""

    def code(e: Any, a: Any, i: Any, x: Any, y: Any) -> Any:
        one, other = x(i), y(i)
        found = e.op(name, one, other)
        if not one.dtype.is_float:
            return found
        return e.select(e.compare("NE", one, one), one, e.select(e.compare("NE", other, other), other, found))

    return Pull(code)


def _share(r: Any, x: Any, y: Any) -> Any:
    """Which part of the tangent the first operand of an extreme gets: all, none, or half of it where both are equal."""
    return where(equal(x, y), 0.5, cast(equal(r, x), x.dtype))


def _tied(name: str, instruction: str, reference: Any, doc: str, procedure: str) -> Op:
    return elementwise(
        name, "x y", doc, group=ARITHMETIC, promote="common", dtypes=_REAL, infer=same(), reference=_numpy(reference),
        exact="all", commutes=True,
        derivative=Partials((_share, lambda r, x, y: _share(r, y, x))), lower=_extreme(instruction),
        procedures=(procedure,),
        samples=(sample((2, 3), (2, 3)), sample((2, 1), (3,)), sample((), (2,))),
    )  # fmt: skip


maximum = _tied(
    "maximum", "MAX", np.maximum, "The greater of x and y; NaN if either is; equal operands share the tangent.",
    "max",
)  # fmt: skip
minimum = _tied(
    "minimum", "MIN", np.minimum, "The lesser of x and y; NaN if either is; equal operands share the tangent.",
    "min",
)  # fmt: skip


def refuse_zero(a: Any, x: Any, y: Any) -> Any:
    """An error where the divisors of integers are known, and one is 0; gives those that are not known."""
    known: Any = y.known() if y.dtype.is_integer else 1
    if known is None:
        return y
    if not np.all(known):
        raise TensorError(
            "an integer is divided by zero",
            hint="integers have no infinity: cast to a float, or replace zeros with where()",
        )
    return None


def _remainder(e: Any, a: Any, i: Any, x: Any, y: Any) -> Any:
    """The instruction's sign is the dividend's; ours is the divisor's."""
    one, other = x(i), y(i)
    left, zero = e.op("REM", one, other), e.constant(0, one.dtype)
    wrong = e.op("XOR", e.compare("LT", left, zero), e.compare("LT", other, zero))
    wrong = e.op("AND", wrong, e.compare("NE", left, zero))
    found = e.select(wrong, e.op("ADD", left, other), left)
    if not one.dtype.is_float:
        return found
    nothing = e.select(e.compare("LT", other, zero), e.constant(-0.0, one.dtype), zero)
    return e.select(e.compare("EQ", left, zero), nothing, found)


_divisors = (
    sample((2, 3), Draw((2, 3), 1.0, 3.0)), sample((2, 1), Draw((3,), -3.0, -1.0)), sample((0,), Draw((1,), 1.0, 2.0)),
)  # fmt: skip
remainder = elementwise(
    "remainder", "x y", "What floor division leaves, with the sign of y; integers by zero are an error.",
    group=ARITHMETIC, promote="number", dtypes=_REAL, infer=of_reals(), reference=_numpy(np.remainder),
    derivative=Partials((lambda r, x, y: 1, lambda r, x, y: -floor((x - r) / y + 0.5))), lower=Pull(_remainder),
    samples=_divisors, aliases=("mod",), traps=True, refuses=refuse_zero, procedures=("modulo", "floor-remainder"),
)  # fmt: skip
fmod = _binary(
    "fmod", "REM", np.fmod, (lambda r, x, y: 1, lambda r, x, y: -trunc((x - r) / y + 0.5 * sign(x * y))),
    "What truncating division leaves, with the sign of x.", dtypes=_REAL, infer=of_reals(), samples=_divisors,
    traps=True, refuses=refuse_zero, procedures=("remainder", "truncate-remainder"),
)  # fmt: skip
atan2 = _binary(
    "atan2", "ATAN2", np.arctan2, (lambda r, x, y: y / (x * x + y * y), lambda r, x, y: -x / (x * x + y * y)),
    "The angle of the point (y, x) in radians: atan2(y, x) of other systems, first operand upward.",
    promote="float", dtypes=_REAL, infer=of_reals(), group=FUNCTIONS, aliases=("arctan2",), procedures=("atan",),
    samples=(sample((2, 3), Draw((2, 3), 0.5, 2.0)), sample(Draw((2, 1), 0.5, 2.0), (3,))),
)  # fmt: skip

neg = _unary(
    "neg", "NEG", np.negative, lambda r, x: -1, "-x.", promote="number", dtypes=_NUMBERS, group=ARITHMETIC,
    scheme=("tensor-neg",), procedures=("-",), aliases=("negative",), exact="all",
    of_complex=pulled(complex_code.neg),
)  # fmt: skip


def _infer_absolute(a: Any, x: HasAval) -> Aval:
    return Aval(x.shape, x.dtype.real)


def _jvp_absolute(a: Any, r: Any, inputs: Any, tangents: Any) -> Any:
    (x,), (t,) = inputs, tangents
    if not x.dtype.is_complex:
        return t * sign(x)
    return real(t * conj(x)) / where(equal(r, 0), 1, r)  # 0 at 0


absolute = elementwise(
    "absolute", "x", "|x|; of a complex number its modulus. The derivative at 0 is 0.", group=ARITHMETIC,
    promote="number", dtypes=_NUMBERS, infer=_infer_absolute, reference=_numpy(np.abs), derivative=Jvp(_jvp_absolute),
    exact="real", lower=_instruction("ABS"), of_complex=pulled(complex_code.absolute),
    aliases=("abs",), scheme=("tensor-abs",), procedures=("abs", "magnitude"),
    samples=(sample((2, 3)), sample(()), sample((0,))),
)  # fmt: skip

_STEPS = NoDerivative("it is constant between its steps")


def _sign(e: Any, a: Any, i: Any, x: Any) -> Any:
    """The instruction gives zeros as they are; of -0.0 ours is 0.0."""
    found = e.op("SIGN", one := x(i))
    return e.select(e.compare("EQ", one, 0.0), 0.0, found) if one.dtype.is_float else found


sign: Op = _unary(
    "sign", "SIGN", np.sign, _STEPS, "-1, 0 or 1.", promote="number", dtypes=_REAL, procedures=("sign",),
    lower=Pull(_sign), exact="all",
)  # fmt: skip


def _rounding(name: str, instruction: str, reference: Any, doc: str, procedure: str, infer: Any = None) -> Op:
    """A function to whole numbers; integers are that already, and stay integers."""
    return elementwise(
        name, "x", doc, group=FUNCTIONS, promote="number", dtypes=_REAL, infer=infer or of_reals(), derivative=_STEPS,
        procedures=(procedure,), reference=lambda a, x: x if x.dtype.kind in "iu" else reference(x), exact="all",
        lower=Pull(lambda e, a, i, x: s if (s := x(i)).dtype.is_integer else e.op(instruction, s)),
        samples=(sample((2, 3)), sample(()), sample((0, 2))),
    )  # fmt: skip


floor: Op = _rounding("floor", "FLOOR", np.floor, "The greatest integer not above x.", "floor")
ceil = _rounding("ceil", "CEIL", np.ceil, "The least integer not below x.", "ceiling")
round_ = _rounding("round", "ROUND", np.round, "The nearest integer, ties to even.", "round", same())
trunc: Op = _rounding("trunc", "TRUNC", np.trunc, "x without its fraction.", "truncate")


# --- functions ------------------------------------------------------------------------------------


def _with_complex(code: Any, **rules: Any) -> dict[str, Any]:
    return {"dtypes": _NUMBERS, "of_complex": pulled(code)} | rules


exp = _unary(
    "exp",
    "EXP",
    np.exp,
    lambda r, x: r,
    "e to the power x.",
    **_with_complex(complex_code.exp, scheme=("tensor-exp",), procedures=("exp",)),
)
expm1 = _unary("expm1", "EXPM1", np.expm1, lambda r, x: r + 1, "e^x - 1, accurate near 0.", procedures=("expm1",))
log = _unary(
    "log", "LOG", np.log, lambda r, x: 1 / x, "Natural logarithm.",
    **_with_complex(complex_code.log, scheme=("tensor-log",), procedures=("log",), domain=(0.25, 4.0)),
)  # fmt: skip
log1p = _unary(
    "log1p", "LOG1P", np.log1p, lambda r, x: 1 / (1 + x), "log(1 + x), accurate near 0.", domain=(-0.5, 3.0),
    procedures=("log1p",),
)  # fmt: skip
sqrt = _unary(
    "sqrt", "SQRT", np.sqrt, lambda r, x: 0.5 / r, "Square root.",
    **_with_complex(complex_code.sqrt, scheme=("tensor-sqrt",), procedures=("sqrt",), domain=(0.25, 4.0), exact="real"),
)  # fmt: skip
rsqrt = _unary("rsqrt", "RSQRT", lambda x: 1 / np.sqrt(x), lambda r, x: -0.5 * r / x, "1 / √x.", domain=(0.25, 4.0))
sin = _unary(
    "sin", "SIN", np.sin, lambda r, x: cos(x), "Sine of radians.",
    **_with_complex(complex_code.sin, procedures=("sin",)),
)  # fmt: skip
cos: Op = _unary(
    "cos", "COS", np.cos, lambda r, x: -sin(x), "Cosine of radians.",
    **_with_complex(complex_code.cos, procedures=("cos",)),
)  # fmt: skip
tan = _unary(
    "tan",
    "TAN",
    np.tan,
    lambda r, x: 1 + r * r,
    "Tangent of radians.",
    **_with_complex(complex_code.tan, domain=(-1.2, 1.2), procedures=("tan",)),
)
tanh = _unary(
    "tanh", "TANH", np.tanh, lambda r, x: 1 - r * r, "Hyperbolic tangent.",
    **_with_complex(complex_code.tanh, procedures=("tanh",)),
)  # fmt: skip
sigmoid = _unary(
    "sigmoid", "SIGMOID", lambda x: np.exp(-np.logaddexp(0, -x.astype(np.float64))), lambda r, x: r * (1 - r),
    "1 / (1 + e^-x), stable for large |x|.", group="activations", scheme=("sigmoid",), infer=of_reals(),
)  # fmt: skip


def _erf(x: Any) -> Any:
    from scipy import special

    return special.erf(x.astype(np.float64))


erf = _unary(
    "erf", "ERF", _erf, lambda r, x: 1.1283791670955126 * exp(-(x * x)), "The error function.", infer=of_reals()
)


# --- comparison, logic, bits ----------------------------------------------------------------------

_ORDER = NoDerivative("a truth value does not vary smoothly")


def _comparison(name: str, condition: str, reference: Any, doc: str, **rules: Any) -> Op:
    rules = {"dtypes": ("bool", "int", "float")} | rules
    return elementwise(
        name, "x y", doc, group=COMPARISON, promote="common", infer=same(bool_), reference=_numpy(reference),
        derivative=_ORDER, lower=Pull(lambda e, a, i, x, y: e.compare(condition, x(i), y(i))), exact="all", **rules,
        samples=(sample((2, 3), (2, 3)), sample((2, 1), (3,)), sample((), (2,)), sample((0,), (1,))),
    )  # fmt: skip


equal = _comparison(
    "equal", "EQ", np.equal, "Whether x = y.", dtypes=_ANY, aliases=("eq",), procedures=("=",), commutes=True,
    of_complex=True,
)  # fmt: skip
not_equal = _comparison(
    "not_equal", "NE", np.not_equal, "Whether x ≠ y.", dtypes=_ANY, aliases=("ne",), commutes=True, of_complex=True
)
less = _comparison("less", "LT", np.less, "Whether x < y.", aliases=("lt",), procedures=("<",))
less_equal = _comparison("less_equal", "LE", np.less_equal, "Whether x ≤ y.", aliases=("le",), procedures=("<=",))
greater = _comparison("greater", "GT", np.greater, "Whether x > y.", aliases=("gt",), procedures=(">",))
greater_equal = _comparison(
    "greater_equal", "GE", np.greater_equal, "Whether x ≥ y.", aliases=("ge",), procedures=(">=",)
)


def _whole(a: Any, *inputs: HasAval) -> HasAval:
    """The infer rule of bit operations."""
    if not (inputs[0].dtype.is_integer or inputs[0].dtype.is_bool):
        raise DTypeError(f"{inputs[0].dtype} has no bits to work on", hint="cast to an integer dtype, or compare first")
    return same()(a, *inputs)


def _bits(name: str, instruction: str, reference: Any, doc: str, **rules: Any) -> Op:
    rules = {"dtypes": ("bool", "int"), "promote": "common", "lower": _instruction(instruction)} | rules
    rules.setdefault("samples", (sample((2, 3), (2, 3)), sample((2, 1), (3,)), sample((0,), (1,))))
    return elementwise(
        name, "x y", doc, group=BITS, infer=_whole, reference=_numpy(reference), derivative=_ORDER, **rules,
    )  # fmt: skip


_plain = {"exact": "all", "commutes": True}
bitwise_and = _bits("bitwise_and", "AND", np.bitwise_and, "Bits set in both; of bools, whether both hold.", **_plain)
bitwise_or = _bits("bitwise_or", "OR", np.bitwise_or, "Bits set in either; of bools, whether either holds.", **_plain)
bitwise_xor = _bits("bitwise_xor", "XOR", np.bitwise_xor, "Bits set in one of the two.", **_plain)


def _shifting(instruction: str) -> Pull:
    """The instruction takes places modulo the width; ours, as NumPy's, moves all bits out, also for negative places."""

    def code(e: Any, a: Any, i: Any, x: Any, y: Any) -> Any:
        one, places = x(i), y(i)
        width = one.dtype.bits
        moved = e.op(instruction, one, places)
        if places.known is not None and 0 <= places.known < width:
            return moved
        fits = e.compare("LT", places, e.constant(width, places.dtype))
        if places.dtype.signed:
            fits = e.op("AND", fits, e.compare("GE", places, e.constant(0, places.dtype)))
        left = one.dtype.signed and instruction == "SHR"  # signs are what is left
        return e.select(fits, moved, e.op("SHR", one, width - 1) if left else e.constant(0, one.dtype))

    return Pull(code)


_shift = {"dtypes": ("int",), "promote": "number", "samples": (sample((2, 3), Draw((2, 3), 0, 6)),)}
shift_left = _bits(
    "shift_left", "SHL", np.left_shift, "Bits moved up by y places, zeros following.", lower=_shifting("SHL"), **_shift
)
shift_right = _bits(
    "shift_right",
    "SHR",
    np.right_shift,
    "Bits moved down by y places; signs are kept.",
    lower=_shifting("SHR"),
    **_shift,
)
bitwise_not = elementwise(
    "bitwise_not", "x", "Every bit turned over; of bools, whether x does not hold.", group=BITS, dtypes=("bool", "int"),
    infer=_whole, reference=_numpy(np.bitwise_not), derivative=_ORDER, samples=(sample((2, 3)), sample((0,))),
    exact="all", lower=Pull(lambda e, a, i, x: e.negation(x(i)) if (s := x(i)).dtype.is_bool else e.op("NOT", s)),
)  # fmt: skip


def _truth(x: Any) -> Any:
    if not isinstance(x, Value):
        return bool(x)  # a Python number
    return x if x.dtype.is_bool else not_equal(x, 0)


def _logical(name: str, op: Op, reference: Any, doc: str) -> Op:
    def function(x: Value, y: Value) -> Any:
        return op(_truth(x), _truth(y))

    function.__name__, function.__doc__ = name, doc
    samples = (sample((2, 3), (2, 3)), sample((2, 1), (3,)))
    return composite(group=LOGIC, reference=reference, dtypes=_ANY, samples=samples)(function)


logical_and = _logical("logical_and", bitwise_and, np.logical_and, "Whether x and y both hold (are not 0).")
logical_or = _logical("logical_or", bitwise_or, np.logical_or, "Whether x or y holds.")
logical_xor = _logical("logical_xor", bitwise_xor, np.logical_xor, "Whether exactly one of x and y holds.")


@composite(group=LOGIC, reference=np.logical_not, dtypes=_ANY, samples=(sample((2, 3)),))
def logical_not(x: Value) -> Any:
    """Whether x does not hold (is 0)."""
    return bitwise_not(_truth(x))


def _infer_where(a: Any, condition: HasAval, x: HasAval, y: HasAval) -> Aval:
    if not condition.dtype.is_bool:
        raise DTypeError(f"the condition is {condition.dtype}, not bool", hint="compare it with something, e.g. c != 0")
    return Aval(same()(a, condition, x, y).shape, x.dtype)


where: Op = elementwise(
    "where", "condition x y", "x where the condition holds, else y.", group=COMPARISON, promote="common",
    promoted=(1, 2), dtypes=_ANY, infer=_infer_where, reference=_numpy(np.where), scheme=("tensor-where",),
    exact="all", work=lambda node, of: 0, of_complex=True,
    derivative=Linear(
        lambda a, ct, k, c, x, y: where(c, ct, 0) if k == 1 else where(c, 0, ct), args=(1, 2), joint=True
    ),
    lower=Pull(lambda e, a, i, c, x, y: e.select(c(i), x(i), y(i))),
    samples=(
        sample(Draw((2, 3), kind="bool"), (2, 3), (2, 3)), sample(Draw((3,), kind="bool"), (2, 1), ()),
        sample(Draw((), kind="bool"), (0, 2), (2,)),
    ),
)  # fmt: skip


# --- complex numbers ------------------------------------------------------------------------------


def _part(name: str, reference: Any, transpose: Any, doc: str, code: Any) -> Op:
    return elementwise(
        name, "x", doc, group="complex numbers", dtypes=("float", "complex"), infer=_infer_absolute,
        reference=_numpy(reference), derivative=Linear(transpose), lower=Pull(lambda e, a, i, x: x(i)), exact="all",
        of_complex=pulled(code),
        samples=(sample(Draw((2, 3), kind="complex")), sample(Draw((), kind="complex"))),
    )  # fmt: skip


def _real_transpose(a: Any, ct: Any, k: int, x: HasAval) -> Any:
    return cast(ct, x.dtype)


def _imag_transpose(a: Any, ct: Any, k: int, x: HasAval) -> Any:
    # With respect to the form Re(a·b), under which transposition needs no conjugates.
    return cast(ct, x.dtype) * -1j if x.dtype.is_complex else ct * 0.0


real = _part("real", np.real, _real_transpose, "The real part.", complex_code.real)
imag = elementwise(
    "imag", "x", "The imaginary part; 0 of a real number.", group="complex numbers", dtypes=("float", "complex"),
    exact="all", infer=_infer_absolute, reference=_numpy(np.imag), derivative=Linear(_imag_transpose),
    lower=Pull(lambda e, a, i, x: e.constant(0, x(i).dtype)), of_complex=pulled(complex_code.imag),
    samples=(sample(Draw((2, 3), kind="complex")), sample(Draw((), kind="complex"))),
)  # fmt: skip
conj: Op = elementwise(
    "conj", "x", "The complex conjugate.", group="complex numbers", dtypes=("float", "complex"), infer=same(),
    reference=_numpy(np.conj), derivative=Linear(lambda a, ct, k, x: conj(ct)), lower=Pull(lambda e, a, i, x: x(i)),
    exact="all", of_complex=pulled(complex_code.conj), samples=(sample(Draw((2, 3), kind="complex")),),
)  # fmt: skip


@composite(
    name="complex", group="complex numbers", reference=lambda re, im: re + 1j * im, method=False,
    samples=(sample((2, 3), (2, 3)), sample((2, 1), (3,))),
)  # fmt: skip
def complex_(re: Value, im: Value) -> Any:
    """The complex number of a real and an imaginary part."""
    return re + im * 1j
