"""The derivative rules as C: the header that the runtime compiles, `python -m eshkol.calculus.header PATH`.

For every rule and argument there is a function on values, which calls the numeric tower's own operations (so exact,
complex and differentiated numbers work), and one on doubles. The text of each factor stands beside them for `diff`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from eshkol.calculus.expressions import MINUS_ONE, ONE, ZERO, CallExpression, Constant, Expression, VariableExpression
from eshkol.calculus.rules import ARGUMENTS, RESULT, DerivativeRule, comparisons, rules
from eshkol.ops import TABLE

WIDTH = 120
CONTEXT = "context"
# (procedure, arguments) → the C function on values, and what it is on doubles.
FUNCTIONS: dict[tuple[str, int], tuple[str, str]] = {
    ("+", 2): ("esk_add", "({0} + {1})"),
    ("-", 2): ("esk_subtract", "({0} - {1})"),
    ("-", 1): ("esk_negate", "(-{0})"),
    ("*", 2): ("esk_multiply", "({0} * {1})"),
    ("/", 2): ("esk_divide", "({0} / {1})"),
    ("expt", 2): ("esk_expt", "pow({0}, {1})"),
    ("hypot", 2): ("esk_hypot", "hypot({0}, {1})"),
    ("sign", 1): ("rule_sign", "rule_sign_double({0})"),
    ("truncate", 1): ("esk_truncate", "trunc({0})"),
    **{(n, 1): (f"esk_{n}", f"{n}({{0}})") for n in ("sqrt", "exp", "log", "sin", "cos", "sinh", "cosh", "floor")},
}
CONDITIONS: dict[str, tuple[str, str]] = {
    "=": ("esk_number_equal", "=="),
    "<": ("esk_less", "<"),
    "<=": ("esk_less_equal", "<="),
    ">": ("esk_greater", ">"),
    ">=": ("esk_greater_equal", ">="),
}
LOGIC = {"and": "&&", "or": "||"}
KINDS: dict[Expression, str] = {ZERO: "ZERO", ONE: "ONE", MINUS_ONE: "MINUS_ONE"}

HEAD = """\
/* The derivative rules of the numeric procedures: written by `make generate` from the op table, not by hand.
 *
 * A rule has for each argument the factor of its tangent, a function of the result r and the arguments x and y (of a
 * procedure of one argument y is not looked at). Sums, products, extremes of more arguments are taken two by two.
 *
 *   factor_value   on numbers of any kind, by the operations of the numeric tower: exact stays exact, and
 *                  differentiated numbers are numbers like others. It raises where there is no derivative.
 *   factor_double  on doubles, where the result is one too. A NaN says that the other must be asked: it may be complex.
 *   factor_kind    which factors are the constants 0, 1 and -1; a rule of zeros gives plain numbers (floor, round).
 *   factor_text    the factor as Scheme writes it.
 *   function       what the procedure is on tensors: a name that the host knows.
 *
 * The comparisons have no rule; comparison_functions says what they are on tensors.
 */
#ifndef DERIVATIVE_RULES_H
#define DERIVATIVE_RULES_H

#include "numbers.h"

#include <math.h>

/* What the factors call beyond numbers.h; these take differentiated numbers, too. */
{prototypes}
bool esk_number_is_complex(Value); /* whether the number, or the innermost primal of a differentiated one, is complex */

static inline Value rule_sign(Context *context, Value x) {
    if (esk_less(context, x, esk_fixnum(0))) return esk_fixnum(-1);
    if (esk_greater(context, x, esk_fixnum(0))) return esk_fixnum(1);
    return esk_number_equal(context, x, esk_fixnum(0)) ? esk_fixnum(0) : x; /* NaN */
}

static inline double rule_sign_double(double x) { return x < 0 ? -1.0 : x > 0 ? 1.0 : x == 0 ? 0.0 : x; }

static inline Value rule_ratio(Context *context, int64_t numerator, int64_t denominator) {
    return esk_divide(context, esk_fixnum(numerator), esk_fixnum(denominator));
}

enum FactorKind { FACTOR_VARIES, FACTOR_ZERO, FACTOR_ONE, FACTOR_MINUS_ONE };
typedef Value FactorOfValues(Context *, Value r, Value x, Value y);
typedef double FactorOfDoubles(double r, double x, double y);

typedef struct {
    const char *name; /* of the row of the op table */
    int arity;
    bool steps; /* every factor is zero */
    enum FactorKind factor_kind[2];
    FactorOfValues *factor_value[2];
    FactorOfDoubles *factor_double[2];
    const char *factor_text[2];
    const char *function;
} DerivativeRule;

typedef struct { const char *procedure; int rule; } DerivativeName;
"""


def on_values(e: Expression) -> str:
    """An expression as C on values; of a condition, as C's truth."""
    match e:
        case VariableExpression():
            return e.name
        case Constant(number=Fraction() as n) if n.denominator == 1:
            return f"esk_fixnum({n})"
        case Constant(number=Fraction() as n):
            return f"rule_ratio(context, {n.numerator}, {n.denominator})"
        case Constant(number=float() as x):
            return f"esk_flonum({x!r})"
        case CallExpression(name="if", args=(condition, x, y)):
            return f"({on_values(condition)} ? {on_values(x)} : {on_values(y)})"
        case CallExpression(name="not", args=(x,)):
            return f"!{on_values(x)}"
        case CallExpression(name="and" | "or" as name, args=(x, y)):
            return f"({on_values(x)} {LOGIC[name]} {on_values(y)})"
        case CallExpression(name=name, args=args):
            function = CONDITIONS[name][0] if name in CONDITIONS else FUNCTIONS[name, len(args)][0]
            return f"{function}({', '.join(['context', *map(on_values, args)])})"
    raise AssertionError(e)


def on_doubles(e: Expression) -> str:
    """An expression as C on doubles."""
    match e:
        case VariableExpression():
            return e.name
        case Constant(number=Fraction() | float() as number):
            return repr(float(number))
        case CallExpression(name="if", args=(condition, x, y)):
            return f"({on_doubles(condition)} ? {on_doubles(x)} : {on_doubles(y)})"
        case CallExpression(name="not", args=(x,)):
            return f"!{on_doubles(x)}"
        case CallExpression(name="and" | "or" as name, args=(x, y)):
            return f"({on_doubles(x)} {LOGIC[name]} {on_doubles(y)})"
        case CallExpression(name=name, args=(x, y)) if name in CONDITIONS:
            return f"({on_doubles(x)} {CONDITIONS[name][1]} {on_doubles(y)})"
        case CallExpression(name=name, args=args):
            return FUNCTIONS[name, len(args)][1].format(*map(on_doubles, args))
    raise AssertionError(e)


def _names(e: Expression | None) -> set[str]:
    """The variables of an expression."""
    if isinstance(e, VariableExpression):
        return {e.name}
    return set().union(*map(_names, e.args)) if isinstance(e, CallExpression) else set()


def _calls(e: Expression) -> set[tuple[str, int]]:
    """The procedures that an expression calls."""
    if not isinstance(e, CallExpression):
        return set()
    return set().union({(e.name, len(e.args))}, *map(_calls, e.args))


def _unused(names: set[str]) -> str:
    unused = [f"(void){name}" for name in (CONTEXT, RESULT, *ARGUMENTS) if name not in names]
    return f"    {', '.join(unused)};\n" if unused else ""


def _bare(text: str) -> str:
    """Without the parentheses around all of it."""
    if not text.startswith("("):
        return text
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[1:-1] if place == len(text) - 1 else text
    return text


def _wrapped(line: str, indent: str) -> str:
    """A statement in lines that are not too long, broken after commas and around operators."""
    lines = []
    while len(line) > WIDTH:
        cut = max(line.rfind(mark, 0, WIDTH - 1) for mark in (", ", " ? ", " : ", " && "))
        lines.append(line[: cut + 1].rstrip())
        line = indent + line[cut + 1 :].lstrip()
    return "\n".join([*lines, line])


def function_name(rule: DerivativeRule, k: int) -> str:
    kind = KINDS.get(rule.factors[k])
    return f"rule_{kind.lower()}" if kind else f"rule_{rule.name}_{k}"


def _functions(rule: DerivativeRule) -> Iterator[str]:
    for k, factor in enumerate(rule.factors):
        if factor in KINDS:
            continue
        special = None if rule.complex_factors is None else rule.complex_factors[k]
        names = _names(factor) | _names(special)
        first = ""
        if special != factor:
            names |= set(rule.arguments)
            test = " || ".join(f"esk_number_is_complex({name})" for name in rule.arguments)
            if special is not None:
                first = f"    if ({test}) return {_bare(on_values(special))};\n"
            else:
                message = "its derivative at a complex number does not exist"
                who = rule.procedures[-1]
                first = f'    if ({test})\n        esk_fail(context, ERROR_ARITHMETIC, "{who}", "{message}", 1, x);\n'
        body = _bare(on_values(factor))
        if CONTEXT in body + first:
            names.add(CONTEXT)
        yield (
            f"static Value {function_name(rule, k)}(Context *context, Value r, Value x, Value y) {{\n"
            f"{_unused(names)}"
            + "\n".join(_wrapped(line, " " * 11) for line in (first + f"    return {body};").split("\n"))
            + "\n}\n"
        )
        body = _bare(on_doubles(factor))
        yield (
            f"static double {function_name(rule, k)}_double(double r, double x, double y) {{\n"
            f"{_unused({CONTEXT} | _names(factor))}" + _wrapped(f"    return {body};", " " * 11) + "\n}\n"
        )


def _constants() -> Iterator[str]:
    for constant, kind in KINDS.items():
        name = f"rule_{kind.lower()}"
        assert isinstance(constant, Constant)
        yield (
            f"static Value {name}(Context *context, Value r, Value x, Value y) {{\n"
            f"{_unused(set())}    return {on_values(constant)};\n}}\n"
        )
        yield (
            f"static double {name}_double(double r, double x, double y) {{\n{_unused({CONTEXT})}"
            f"    return {on_doubles(constant)};\n}}\n"
        )


def _entry(rule: DerivativeRule) -> str:
    indices = range(rule.arity)
    kinds = ", ".join(f"FACTOR_{KINDS.get(factor, 'VARIES')}" for factor in rule.factors)
    values = ", ".join(function_name(rule, k) for k in indices)
    doubles = ", ".join(f"{function_name(rule, k)}_double" for k in indices)
    texts = ", ".join(f'"{factor.text()}"' for factor in rule.factors)
    return (
        f'    {{"{rule.name}", {rule.arity}, {str(rule.steps).lower()}, {{{kinds}}},\n     {{{values}}},\n'
        f"     {{{doubles}}},\n" + _wrapped(f'     {{{texts}}}, "{function(rule)}"}},', " " * 6)
    )


def function(rule: DerivativeRule) -> str:
    """What a rule's procedure is on tensors: a row, or what the rules say with rows."""
    return f"{'op' if rule.name in TABLE else 'rule'}:{rule.name}"


def _prototypes() -> str:
    shared = {"esk_add", "esk_subtract", "esk_negate", "esk_multiply", "esk_divide"}
    every = [e for rule in rules() for e in (*rule.factors, *(rule.complex_factors or ()))]
    found = sorted({(FUNCTIONS[c][0], c[1]) for e in every for c in _calls(e) if c in FUNCTIONS})
    return "\n".join(
        f"Value {name}(Context *{', Value' * arity});"
        for name, arity in found
        if name.startswith("esk_") and name not in shared
    )


def header() -> str:
    """The whole text of the header."""
    identifiers = [f"RULE_{rule.name.upper()}" for rule in rules()]
    names = [(p, i) for rule, i in zip(rules(), identifiers, strict=True) for p in rule.procedures]
    parts = [HEAD.replace("{prototypes}", _prototypes()), *_constants()]
    parts += [text for rule in rules() for text in _functions(rule)]
    parts.append(_wrapped(f"enum {{ {', '.join(identifiers)}, RULE_COUNT }};", " " * 4) + "\n")
    entries = "\n".join(map(_entry, rules()))
    parts.append(f"static const DerivativeRule derivative_rules[RULE_COUNT] = {{\n{entries}\n}};\n")
    rows = "\n".join(f'    {{"{procedure}", {identifier}}},' for procedure, identifier in names)
    parts.append(f"static const DerivativeName derivative_names[] = {{\n{rows}\n    {{0}}}};\n")
    compared = [(f"COMPARISON_{row.upper()}", f'"compare:{row}"') for row in comparisons().values()]
    parts.append(_wrapped(f"enum {{ {', '.join(name for name, _ in compared)} }};", " " * 4) + "\n")
    functions = "\n".join(f"    [{name}] = {text}," for name, text in compared)
    parts.append(f"static const char *const comparison_functions[] = {{\n{functions}\n}};\n")
    return "\n".join([*parts, "#endif\n"])


if __name__ == "__main__":
    written = Path(sys.argv[1])
    if written.read_text(encoding="utf-8") != header():  # what is newer is built again
        written.write_text(header(), encoding="utf-8")
