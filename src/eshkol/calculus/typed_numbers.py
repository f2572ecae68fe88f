"""The primitives that typed programs know: what each makes of abstract arguments. Here: numbers, truth, types.

Comes in: a primitive's name, its arguments, and the place of the call. Goes out: its abstract result, with the
instructions that compute it written by the specializer. What is not in the table, or is asked something that a typed
program cannot answer, raises `NotFast`. Results are those of the runtime to the last bit; where exactness depends on
numbers that are known only later ((/ i 2), the square root of an integer), the result is inexact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

from eshkol.calculus import ir
from eshkol.calculus.abstract import Abstract, Closure, Fields, Known, Leaf, NotFast, Primitive
from eshkol.calculus.ir import F64, I1, I64, Jump, TypedValue
from eshkol.calculus.specialize import DERIVED, Key, Rule, Specializer
from eshkol.calculus.writer import WriterJoin, as_double, said
from eshkol.lang.datum import Symbol

PRIMITIVES: dict[str, Rule] = {}
LARGEST = 1 << 63
EXACT_IN_DOUBLE = 1 << 53


def primitive(*names: str) -> Callable[[Rule], Rule]:
    def note(rule: Rule) -> Rule:
        for name in names:
            PRIMITIVES[name] = rule
        return rule

    return note


def is_integer(a: Abstract) -> bool:
    return (isinstance(a, Known) and type(a.datum) is int) or (isinstance(a, Leaf) and a.value.type == I64)


def is_exact(a: Abstract) -> bool:
    return is_integer(a) or (isinstance(a, Known) and a.is_exact)


def is_number(a: Abstract) -> bool:
    return (isinstance(a, Known) and a.is_number) or (isinstance(a, Leaf) and a.value.type in (F64, I64))


def exact(number: int | Fraction) -> Known:
    if isinstance(number, Fraction) and number.denominator == 1:
        number = number.numerator
    if isinstance(number, int) and not -LARGEST <= number < LARGEST:
        raise NotFast("an integer of more than 64 bits")
    return Known(number)


# ---- arithmetic ------------------------------------------------------------------------------------------------------

_EXACT: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: Fraction(a) / b,
}  # fmt: skip
_INTEGERS = {"+": "iadd", "-": "isub", "*": "imul"}


def binary(s: Specializer, name: str, a: Abstract, b: Abstract) -> Abstract:
    if isinstance(a, Known) and isinstance(b, Known) and a.is_exact and b.is_exact:
        if name == "/" and b.datum == 0:
            s.fail()
        return exact(_EXACT[name](a.datum, b.datum))
    if is_integer(a) and is_integer(b) and name in _INTEGERS:
        return Leaf(s.op(_INTEGERS[name], [s.i64(a), s.i64(b)], I64))
    if name == "/" and is_exact(b):  # an exact zero divides nothing
        if isinstance(b, Known):
            if b.datum == 0:
                s.fail()
        else:
            s.need(s.op("not", [s.op("icompare", [s.i64(b), s.literal(0, I64)], I1, "eq")], I1))
    return s.math(name, s.f64(a), s.f64(b))


def _arithmetic(name: str, none: int) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        if not args:
            return Known(none)
        if len(args) == 1:
            if name in "+*":
                if not is_number(args[0]):
                    raise NotFast(f"{said(args[0])} where a number must be")
                return args[0]
            if name == "-" and not is_exact(args[0]):
                return s.math("-", s.f64(args[0]))
            return binary(s, name, Known(none), args[0])
        result = args[0]
        for arg in args[1:]:
            result = binary(s, name, result, arg)
        return result

    return rule


for _name, _none in (("+", 0), ("-", 0), ("*", 1), ("/", 1)):
    PRIMITIVES[_name] = _arithmetic(_name, _none)


@primitive("square")
def _square(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    if is_exact(args[0]):
        return binary(s, "*", args[0], args[0])
    return s.math("square", s.f64(args[0]))


@primitive("abs", "magnitude")
def _abs(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    (a,) = args
    if isinstance(a, Known) and a.is_exact:
        return exact(abs(a.datum))
    if is_integer(a):
        negated = binary(s, "-", Known(0), a)
        return choose(s, compare(s, "lt", a, Known(0)), negated, a)
    return s.math("abs", s.f64(a))


def choose(s: Specializer, condition: TypedValue, yes: Abstract, no: Abstract) -> Abstract:
    """One of two values that are both computed."""
    join = WriterJoin(1)
    blocks = s.new_block("yes"), s.new_block("no")
    s.block.end = ir.Branch(condition, Jump(blocks[0], []), Jump(blocks[1], []))
    for block, value in zip(blocks, (yes, no), strict=True):
        s.begin(block)
        s.deliver([value], join)
    return s.met(join)[0]


def _extreme(name: str, comparison: str) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        if not all(map(is_number, args)):
            raise NotFast(f"{name} of what is no number")
        result = args[0]
        inexact = any(not is_exact(a) for a in args)
        for arg in args[1:]:
            if inexact:
                _need_apart(s, result, arg)
                result = s.math(name, s.f64(result), s.f64(arg))
            else:
                result = choose(s, compare(s, comparison, arg, result), arg, result)
        return result

    return rule


def _need_apart(s: Specializer, a: Abstract, b: Abstract) -> None:
    """Where a ratio is one of two, fail if the other is the double next to it: they are not alike, as it would seem."""
    for x, y in ((a, b), (b, a)):
        if isinstance(y, Known) and y.is_exact and Fraction(as_double(y.datum)) != y.datum:
            s.need(s.op("not", [s.op("compare", [s.f64(x), s.literal(as_double(y.datum), F64)], I1, "eq")], I1))


PRIMITIVES["max"], PRIMITIVES["min"] = _extreme("max", "gt"), _extreme("min", "lt")


# ---- comparisons -----------------------------------------------------------------------------------------------------

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def compare(s: Specializer, name: str, a: Abstract, b: Abstract) -> TypedValue:
    if is_integer(a) and is_integer(b):
        return s.op("icompare", [s.i64(a), s.i64(b)], I1, name)
    for x, y, way in ((a, b, name), (b, a, _TURNED[name])):
        if isinstance(y, Known) and y.is_exact and Fraction(as_double(y.datum)) != y.datum:
            return _compare_between(s, way, x, y.datum)
        if is_integer(y) and isinstance(y, Leaf):  # as a double it must be the same number
            for limit, side in ((-EXACT_IN_DOUBLE, "ge"), (EXACT_IN_DOUBLE, "le")):
                s.need(s.op("icompare", [y.value, s.literal(limit, I64)], I1, side))
    return s.op("compare", [s.f64(a), s.f64(b)], I1, name)


_TURNED = {"eq": "eq", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _compare_between(s: Specializer, name: str, a: Abstract, number: int | Fraction) -> TypedValue:
    """A comparison with an exact number that lies between two doubles."""
    if name == "eq":
        return s.literal(False, I1)
    if is_integer(a):  # which need not be a double: it is compared with the integers next to the number
        upwards, bound = name in ("gt", "ge"), math.floor(number) if name in ("le", "gt") else math.ceil(number)
        bound += (name == "gt") - (name == "lt")
        if not -(1 << 63) <= bound < 1 << 63:
            return s.literal((bound < 0) is upwards, I1)
        return s.op("icompare", [s.i64(a), s.literal(bound, I64)], I1, "ge" if upwards else "le")
    near = float(number)
    below = near if near < number else math.nextafter(near, -math.inf)
    wanted, limit = ("le", below) if name in ("lt", "le") else ("ge", math.nextafter(below, math.inf))
    return s.op("compare", [s.f64(a), s.literal(limit, F64)], I1, wanted)


def _comparison(name: str) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        results: list[Abstract] = []
        for a, b in pairwise(args):
            if isinstance(a, Known) and isinstance(b, Known) and a.is_number and b.is_number:
                results.append(Known(_COMPARE[name](a.datum, b.datum)))
            else:
                results.append(Leaf(compare(s, name, a, b)))
        found: Abstract = Known(True)
        for result in reversed(results):
            if isinstance(result, Known):
                found = found if result.datum else result
            elif isinstance(found, Known) and found.datum is True:
                found = result
            else:
                assert isinstance(result, Leaf)
                found = choose(s, result.value, found, Known(False))
        return found

    return rule


def _against_zero(name: str) -> Rule:
    return lambda s, args, key: PRIMITIVES[name](s, [args[0], Known(0)], key)


for _name, _word in (("=", "eq"), ("<", "lt"), ("<=", "le"), (">", "gt"), (">=", "ge")):
    PRIMITIVES[_name] = _comparison(_word)
for _name, _word in (("zero?", "="), ("positive?", ">"), ("negative?", "<")):
    PRIMITIVES[_name] = _against_zero(_word)


# ---- integers --------------------------------------------------------------------------------------------------------

_DIVIDE = {"quotient": "quotient", "truncate-quotient": "quotient", "remainder": "remainder",
           "truncate-remainder": "remainder", "modulo": "modulo", "floor-remainder": "modulo"}  # fmt: skip


def _dividing(operation: str) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        a, b = args
        return Leaf(s.op(operation, [s.i64(a), s.i64(b)], I64))

    return rule


for _name, _word in _DIVIDE.items():
    PRIMITIVES[_name] = _dividing(_word)


def _parity_rule(wanted: int) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        rest = s.op("modulo", [s.i64(args[0]), s.literal(2, I64)], I64)
        return Leaf(s.op("icompare", [rest, s.literal(wanted, I64)], I1, "eq"))

    return rule


PRIMITIVES["even?"], PRIMITIVES["odd?"] = _parity_rule(0), _parity_rule(1)
PRIMITIVES["1+"] = lambda s, args, key: binary(s, "+", args[0], Known(1))
PRIMITIVES["-1+"] = lambda s, args, key: binary(s, "-", args[0], Known(1))


@primitive("inexact", "exact->inexact")
def _inexact(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    return Leaf(s.f64(args[0]))


@primitive("exact", "inexact->exact")
def _exact(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    if is_exact(args[0]):
        return args[0]
    return Leaf(s.op("ftoi", [s.f64(args[0])], I64))


_ROUNDED: dict[str, Callable[[Any], int]] = {
    "floor": math.floor,
    "ceiling": math.ceil,
    "truncate": math.trunc,
    "round": round,
}


def _rounding(name: str) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        (a,) = args
        if isinstance(a, Known) and a.is_exact:
            return Known(_ROUNDED[name](a.datum))
        return a if is_integer(a) else s.math(name, s.f64(a))

    return rule


for _name in ("floor", "ceiling", "truncate", "round"):
    PRIMITIVES[_name] = _rounding(_name)


# ---- functions -------------------------------------------------------------------------------------------------------

_EXACT_RESULTS = {("exp", 0): 1, ("sin", 0): 0, ("cos", 0): 1, ("tan", 0): 0, ("atan", 0): 0, ("asin", 0): 0,
                  ("acos", 1): 0, ("log", 1): 0}  # fmt: skip
# where the result is a real number: the argument lies between these
_DOMAINS = {"sqrt": (0.0, math.inf), "log": (0.0, math.inf), "asin": (-1.0, 1.0), "acos": (-1.0, 1.0)}


def _function(name: str) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        if len(args) != 1:
            raise NotFast(f"{name} of {len(args)} arguments")
        (a,) = args
        if isinstance(a, Known) and a.is_exact:
            known = _EXACT_RESULTS.get((name, a.datum))
            if known is not None:
                return Known(known)
            if name == "sqrt" and a.datum >= 0 and math.isqrt(int(a.datum)) ** 2 == a.datum:
                return Known(math.isqrt(int(a.datum)))
        if name == "log" and is_exact(a):  # an exact zero has none
            s.need(compare(s, "gt", a, Known(0)))
        x = s.f64(a)
        low, high = _DOMAINS.get(name, (-math.inf, math.inf))
        if low > -math.inf:  # and not a NaN; -0.0 is at least 0
            s.need(s.op("compare", [x, s.literal(low, F64)], I1, "ge"))
        if high < math.inf:
            s.need(s.op("compare", [x, s.literal(high, F64)], I1, "le"))
        return s.math(name, x)

    return rule


for _name in ("sqrt", "exp", "sin", "cos", "tan", "asin", "acos", "sinh", "cosh", "tanh", "asinh", "expm1"):
    PRIMITIVES[_name] = _function(_name)


@primitive("log")
def _log(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    return _function("log")(s, args, key)


@primitive("atan")
def _atan(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    if len(args) == 1:
        return _function("atan")(s, args, key)
    if all(is_exact(a) for a in args):
        raise NotFast("atan of exact numbers")
    return s.math("atan", s.f64(args[0]), s.f64(args[1]))


@primitive("expt")
def _expt(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    base, power = args
    if isinstance(power, Known) and power.datum == 0 and power.is_exact:
        return Known(1)
    if isinstance(base, Known) and isinstance(power, Known) and base.is_exact and type(power.datum) is int:
        if abs(power.datum) > 64 or (base.datum == 0 and power.datum < 0):
            raise NotFast("a large power of an exact number")
        return exact(Fraction(base.datum) ** power.datum)
    if is_exact(base) and is_exact(power):
        raise NotFast("a power of exact numbers")
    x, y = s.f64(base), s.f64(power)
    if not (isinstance(power, Known) and type(power.datum) is int):
        if is_integer(power):
            raise NotFast("a power that is an exact number known only later")
        s.need(s.op("compare", [x, s.literal(0.0, F64)], I1, "gt"))
    return s.math("expt", x, y)


@primitive("%undifferentiated")
def _undifferentiated(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    """What `case` looks at."""
    if not is_exact(args[0]) and not isinstance(args[0], Known):
        raise NotFast("a variable without its derivative")
    return args[0]


# ---- what a value is -------------------------------------------------------------------------------------------------


def _is_of(kinds: Callable[[Abstract], bool | None]) -> Rule:
    def rule(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
        found = kinds(args[0])
        if found is None:
            raise NotFast("a question about a type")
        return Known(found)

    return rule


for _name in ("number?", "complex?", "real?"):
    PRIMITIVES[_name] = _is_of(is_number)
# a double may stand for an exact number that met an inexact one
PRIMITIVES["exact-integer?"] = _is_of(lambda a: True if is_integer(a) else None if isinstance(a, Leaf) else False)
PRIMITIVES["exact?"] = _is_of(lambda a: True if is_exact(a) else None)
PRIMITIVES["inexact?"] = _is_of(lambda a: False if is_exact(a) else None)
PRIMITIVES["integer?"] = _is_of(lambda a: True if is_integer(a) else None if is_number(a) else False)
# asked by typed procedures, which are there twice: that for all numbers is as good
PRIMITIVES["%fixnum?"] = PRIMITIVES["%flonum?"] = _is_of(lambda a: False)
PRIMITIVES["procedure?"] = _is_of(
    lambda a: isinstance(a, Closure | Primitive) or (isinstance(a, Fields) and a.kind in DERIVED)
)
PRIMITIVES["keyword?"] = _is_of(  # some constants are opaque
    lambda a: None if isinstance(a, Known) and type(a.datum) is tuple and a.datum[0] == "a constant" else False
)
PRIMITIVES["symbol?"] = _is_of(lambda a: isinstance(a, Known) and isinstance(a.datum, Symbol))
PRIMITIVES["boolean?"] = _is_of(
    lambda a: (isinstance(a, Known) and type(a.datum) is bool) or (isinstance(a, Leaf) and a.value.type == I1)
)
PRIMITIVES["vector?"] = _is_of(
    lambda a: (
        (isinstance(a, Fields) and a.kind == "vector")
        or (isinstance(a, Leaf) and a.value.type.kind in ("array", "vector"))
    )
)
PRIMITIVES["string?"] = _is_of(lambda a: False if not isinstance(a, Known) else None)


@primitive("not")
def _not(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    (a,) = args
    if isinstance(a, Leaf) and a.value.type == I1:
        return Leaf(s.op("not", [a.value], I1))
    return Known(isinstance(a, Known) and a.datum is False)


@primitive("eq?")
def _identical(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    for a in args:  # equal numbers may be two objects, unless they are small integers
        if isinstance(a, Known) and (type(a.datum) in (float, Fraction) or (is_integer(a) and abs(a.datum) >= 1 << 60)):
            raise NotFast("whether two numbers are one object")
    return _same(s, args, key)


@primitive("eqv?", "equal?")
def _same(s: Specializer, args: list[Abstract], key: Key) -> Abstract:
    a, b = args
    if isinstance(a, Known) and isinstance(b, Known):
        if tuple in (type(a.datum), type(b.datum)):  # text and other things that nothing is known of
            raise NotFast("whether two values are the same")
        return Known(type(a.datum) is type(b.datum) and repr(a.datum) == repr(b.datum))  # 0.0 is not -0.0
    if is_integer(a) and is_integer(b):
        return Leaf(compare(s, "eq", a, b))
    raise NotFast("whether two values are the same")
