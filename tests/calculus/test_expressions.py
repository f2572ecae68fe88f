"""Expressions that rules are made of: what each call plainly is, how it reads, and how C has it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

import pytest

from eshkol.calculus import header
from eshkol.calculus.expressions import (
    MINUS_ONE,
    ONE,
    ORDER,
    ZERO,
    CallExpression,
    Constant,
    Expression,
    NoExpression,
    VariableExpression,
    call,
    expression,
)
from eshkol.calculus.rules import DerivativeRule, differentiate, rules
from eshkol.ops import TABLE, dtypes

x, y = VariableExpression("x"), VariableExpression("y")
half, two = Constant(Fraction(1, 2)), Constant(Fraction(2))
yes, no = Constant(True), Constant(False)
less, equal = CallExpression("<", (x, y)), CallExpression("=", (x, ZERO))


@pytest.mark.parametrize(
    ("made", "text"),
    [
        # sums, differences, products, quotients
        (call("+", x, ZERO), "x"), (call("+", ZERO, x), "x"), (call("+", x, y), "(+ x y)"),
        (call("+", x, x), "(* 2 x)"),
        (call("+", ONE, half), "3/2"), (call("+", x, ONE), "(+ x 1)"),
        (call("-", x, ZERO), "x"), (call("-", ZERO, x), "(- x)"), (call("-", x, y), "(- x y)"),
        (call("-", ONE, half), "1/2"),
        (call("-", half), "-1/2"), (call("-", call("-", x)), "x"), (call("-", call("-", x, y)), "(- (- x y))"),
        (call("*", x, ZERO), "0"), (call("*", ZERO, x), "0"), (call("*", x, ONE), "x"), (call("*", ONE, x), "x"),
        (call("*", x, MINUS_ONE), "(- x)"), (call("*", MINUS_ONE, y), "(- y)"), (call("*", x, y), "(* x y)"),
        (call("*", two, half), "1"), (call("*", MINUS_ONE, call("-", x)), "x"), (call("*", x, x), "(* x x)"),
        (call("/", x, ONE), "x"), (call("/", x, MINUS_ONE), "(- x)"), (call("/", ZERO, x), "0"),
        (call("/", ONE, x), "(/ 1 x)"), (call("/", ONE, two), "1/2"), (call("/", two, half), "4"),
        (call("/", ONE, ZERO), "(/ 1 0)"), (call("/", x, two), "(/ x 2)"),
        # what is not known before it runs
        (call("+", Constant(0.1), ONE), "(+ 0.1 1)"), (call("sin", ZERO), "(sin 0)"),
        (call("expt", two, two), "(expt 2 2)"),
        # comparisons of numbers, and choices
        *((call(name, a, b), "#t" if compare(a.number, b.number) else "#f")
          for name, compare in {"=": float.__eq__, "<": float.__lt__, "<=": float.__le__, ">": float.__gt__,
                                ">=": float.__ge__}.items()
          for a, b in itertools.product(map(Constant, (0.25, 0.1, -1.5)), repeat=2)),
        (call("<", x, ONE), "(< x 1)"), (call("and", yes, less), "(< x y)"), (call("and", less, yes), "(< x y)"),
        (call("and", no, less), "#f"), (call("and", less, no), "#f"),
        (call("and", less, equal), "(and (< x y) (= x 0))"),
        (call("or", less, equal), "(or (< x y) (= x 0))"), (call("not", less), "(not (< x y))"),
        (call("if", yes, x, y), "x"), (call("if", no, x, y), "y"), (call("if", less, x, x), "x"),
        (call("if", less, x, y), "(if (< x y) x y)"),
        (call("if", less, CallExpression("if", (less, ONE, two)), y), "(if (< x y) 1 y)"),
        (call("if", less, x, CallExpression("if", (less, ONE, two))), "(if (< x y) x 2)"),
        (call("if", less, CallExpression("+", (x, CallExpression("if", (less, ZERO, y)))), y), "(if (< x y) x y)"),
        (call("if", less, CallExpression("if", (equal, x, y)), y), "(if (< x y) (if (= x 0) x y) y)"),
        (call("if", less, CallExpression("if", (less, y, x)), CallExpression("if", (less, x, y))), "y"),
        # numbers
        (expression(0.5), "1/2"), (expression(-3.0), "-3"), (expression(0.1), "0.1"),
        (expression(2.0**60), repr(2.0**60)),
        (expression(2.0**51), str(2**51)), (expression(2.0**52), repr(2.0**52)), (expression(2.0**-20), f"1/{2**20}"),
        (expression(2.0**-21), repr(2.0**-21)), (expression(3), "3"), (expression(True), "#t"),
        (expression(False), "#f"),
        (expression(math.inf), "+inf.0"), (expression(-math.inf), "-inf.0"), (expression(math.nan), "+nan.0"),
        (expression(x), "x"),
    ],
)  # fmt: skip
def test_a_call_is_what_it_plainly_is(made: Expression, text: str) -> None:
    assert made.text() == text


def value(e: Expression, at: dict[str, Fraction]) -> Any:
    """The number or truth of an expression, by arithmetic alone."""
    if isinstance(e, Constant):
        return e.number
    if isinstance(e, VariableExpression):
        return at[e.name]
    assert isinstance(e, CallExpression)
    if e.name == "if":
        return value(e.args[1 if value(e.args[0], at) else 2], at)
    args = [value(arg, at) for arg in e.args]
    match e.name, args:
        case "and", [a, b]:
            return a and b
        case "-", [a]:
            return -a
        case "+", [a, b]:
            return a + b
        case "-", [a, b]:
            return a - b
        case "*", [a, b]:
            return a * b
        case "<", [a, b]:
            return a < b
        case "=", [a, b]:
            return a == b
    raise AssertionError(e)


def test_what_is_plain_has_the_value_of_what_is_not() -> None:
    """Every call of calls of these, twice: as it is made, and with nothing simplified."""
    numbers: list[Expression] = [x, y, ZERO, ONE, MINUS_ONE, two]
    truths: list[Expression] = [less, equal, yes, no]
    for name in ("+", "-", "*"):
        numbers += [CallExpression(name, pair) for pair in ((x, y), (x, x), (ZERO, y))]
    numbers += [CallExpression("if", (test, a, b)) for test in truths for a, b in ((x, y), (ONE, x), (y, y))]
    points = [{"x": Fraction(a), "y": Fraction(b)} for a in (-1, 0, 2) for b in (0, 1, 2)]
    calls = [(name, pair) for name in ("+", "-", "*", "<", "=") for pair in itertools.product(numbers, repeat=2)]
    calls += [("-", (a,)) for a in numbers] + [("and", pair) for pair in itertools.product(truths, repeat=2)]
    choices = [*itertools.product(truths, numbers, numbers)]
    for name, args in [*calls, *(("if", args) for args in choices)]:
        made, plain = call(name, *args), CallExpression(name, tuple(args))
        assert made.dtype.is_bool == plain.dtype.is_bool
        for point in points:
            assert value(made, point) == value(plain, point), plain


def test_expressions_are_compared_by_what_they_say() -> None:
    every = [x, y, ZERO, ONE, Constant(1.0), yes, no, less, equal, call("<", y, x), call("+", x, y), call("-", x)]
    for a, b in itertools.product(every, repeat=2):
        assert (a == b) == (a is b), (a, b)
    assert len(set(every)) == len(every)
    assert x == VariableExpression("x", dtypes.complex128)
    assert hash(x) == hash(VariableExpression("x", dtypes.complex128))
    assert x != "x"


def test_variables_take_on_meanings() -> None:
    body = call("if", less, call("*", x, y), Constant(0.1))
    assert body.substitute({"x": two}).text() == "(if (< 2 y) (* 2 y) 0.1)"
    assert body.substitute({"x": ONE, "y": two}).text() == "2"
    assert body.substitute({"z": two}) == body


def test_ops_are_procedures_forms_or_nothing() -> None:
    assert (x + 1).text() == "(+ x 1)"
    assert TABLE["where"](x < y, x, 2.0).text() == "(if (< x y) x 2)"
    assert TABLE["bitwise_and"](x < y, x > 0).text() == "(and (< x y) (> x 0))"
    assert TABLE["bitwise_or"](x < y, x > 0).text() == "(or (< x y) (> x 0))"
    assert TABLE["bitwise_not"](x < y).text() == "(not (< x y))"
    assert TABLE["not_equal"](x, y).text() == "(not (= x y))"
    assert TABLE["cast"](x < y, dtype=dtypes.float64).text() == "(if (< x y) 1 0)"
    assert TABLE["cast"](x, dtype=dtypes.float64).text() == "x"
    with pytest.raises(NoExpression, match="'erf' is no procedure"):
        TABLE["erf"](x)
    with pytest.raises(NoExpression, match="the value of x is not known"):
        x.concrete()
    with pytest.raises(NoExpression, match="no real number"):
        expression(1j)


@pytest.mark.parametrize(
    ("body", "slope"),
    [
        (x, "1"), (y, "0"), (two, "0"), (call("*", x, y), "y"), (call("*", y, y), "0"), (call("sin", x), "(cos x)"),
        (call("sin", call("*", two, x)), "(* (cos (* 2 x)) 2)"), (call("+", call("exp", x), x), "(+ (exp x) 1)"),
    ],
)  # fmt: skip
def test_derivatives_of_expressions(body: Expression, slope: str) -> None:
    assert differentiate(body, body, "x").text() == slope


def test_what_has_no_rule_is_not_differentiated() -> None:
    with pytest.raises(NoExpression, match="'and' has no rule"):
        differentiate(CallExpression("and", (x, y)), x, "x")


# ---- C ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("e", "values", "doubles"),
    [
        (x, "x", "x"), (two, "esk_fixnum(2)", "2.0"), (half, "rule_ratio(context, 1, 2)", "0.5"),
        (Constant(0.1), "esk_flonum(0.1)", "0.1"),
        (call("+", x, y), "esk_add(context, x, y)", "(x + y)"), (call("-", x), "esk_negate(context, x)", "(-x)"),
        (call("-", x, y), "esk_subtract(context, x, y)", "(x - y)"),
        (call("expt", x, y), "esk_expt(context, x, y)", "pow(x, y)"),
        (call("sin", x), "esk_sin(context, x)", "sin(x)"),
        (call("truncate", x), "esk_truncate(context, x)", "trunc(x)"),
        (call("if", less, x, y), "(esk_less(context, x, y) ? x : y)", "((x < y) ? x : y)"),
        (call("not", equal), "!esk_number_equal(context, x, esk_fixnum(0))", "!(x == 0.0)"),
        (call("and", less, equal), "(esk_less(context, x, y) && esk_number_equal(context, x, esk_fixnum(0)))",
         "((x < y) && (x == 0.0))"),
        (call("or", less, equal), "(esk_less(context, x, y) || esk_number_equal(context, x, esk_fixnum(0)))",
         "((x < y) || (x == 0.0))"),
        *((CallExpression(name, (x, y)), f"esk_{function}(context, x, y)", f"(x {sign} y)")
        for name, function, sign in (
            ("=", "number_equal", "=="), ("<", "less", "<"), ("<=", "less_equal", "<="), (">", "greater", ">"),
            (">=", "greater_equal", ">="))),
    ],
)  # fmt: skip
def test_expressions_in_c(e: Expression, values: str, doubles: str) -> None:
    assert header.on_values(e) == values
    assert header.on_doubles(e) == doubles


def test_every_comparison_is_known_to_c() -> None:
    assert header.CONDITIONS.keys() == ORDER.keys()


def test_parentheses_around_all_are_left_out() -> None:
    for text, bare in (
        ("(a)", "a"),
        ("(a) + (b)", "(a) + (b)"),
        ("((a) + (b))", "(a) + (b)"),
        ("f(a)", "f(a)"),
        ("a", "a"),
    ):
        assert header._bare(text) == bare


@pytest.mark.parametrize("mark", [", ", " ? ", " : ", " && "])
def test_long_lines_are_broken_behind_the_last_mark_that_fits(mark: str) -> None:
    line = "    return " + mark.join(["a" * 50] * 4)
    first, *rest = header._wrapped(line, " " * 7).split("\n")
    assert len(first) <= header.WIDTH
    assert first.count("a") == 100
    assert all(one.startswith(" " * 7) and not one.startswith(" " * 8) for one in rest)
    assert "".join([first, *rest]).replace(" ", "") == line.replace(" ", "")
    assert header._wrapped("short, line", "") == "short, line"


def test_functions_of_a_rule_in_c() -> None:
    """With another factor at complex numbers, with none, and with the same."""
    factor, other = call("*", y, y), call("sin", x)
    same = DerivativeRule("same", ("p",), 2, (factor, ONE), (factor, ONE))
    complex_too = DerivativeRule("both", ("p", "q"), 1, (factor,), (other,))
    real = DerivativeRule("real", ("p", "q"), 2, (factor, ZERO), None)
    first, second = header._functions(same)
    assert first == (
        "static Value rule_same_0(Context *context, Value r, Value x, Value y) {\n    (void)r, (void)x;\n"
        "    return esk_multiply(context, y, y);\n}\n"
    )
    assert second == (
        "static double rule_same_0_double(double r, double x, double y) {\n    (void)r, (void)x;\n"
        "    return y * y;\n}\n"
    )
    assert "    (void)r;\n    if (esk_number_is_complex(x)) return esk_sin(context, x);\n    return" in "".join(
        header._functions(complex_too)
    )
    text = "".join(header._functions(real))
    assert (
        "if (esk_number_is_complex(x) || esk_number_is_complex(y))\n        esk_fail(context, ERROR_ARITHMETIC, "
        in text
    )
    assert '"q", "its derivative at a complex number does not exist", 1, x);' in text
    assert [header.function_name(real, k) for k in range(2)] == ["rule_real_0", "rule_zero"]
    assert header._entry(same).split("\n") == [
        '    {"same", 2, false, {FACTOR_VARIES, FACTOR_ONE},', "     {rule_same_0, rule_one},",
        "     {rule_same_0_double, rule_one_double},", '     {"(* y y)", "1"}, "rule:same"},',
    ]  # fmt: skip


def test_rules_know_whether_they_are_steps() -> None:
    names = {one.name for one in rules() if one.steps}
    assert {"floor", "ceil", "round", "trunc", "sign"} <= names
    assert not DerivativeRule("mixed", ("p",), 2, (ZERO, ONE), None).steps
