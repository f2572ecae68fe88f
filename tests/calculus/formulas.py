"""Formulas as text: read, evaluated at a precision of their own, drawn at random. The oracle of rules and of diff."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce
from typing import Any

from mpmath import mp
from nested import nested

Formula = Any  # a number, a name, a list of formulas

mp.dps = 40


class Undefined(Exception):
    """The formula has no real value here."""


def _real(value: Any) -> Any:
    if isinstance(value, mp.mpc) or not mp.isfinite(value):
        raise Undefined
    return value


def _power(x: Any, y: Any) -> Any:
    if x == 0 and y < 0:
        raise Undefined
    return x**y


def _divide(x: Any, *ys: Any) -> Any:
    if not ys:
        x, ys = mp.mpf(1), (x,)
    if 0 in ys:
        raise Undefined
    return reduce(operator.truediv, ys, x)


def _truncate(x: Any) -> Any:
    return mp.floor(x) if x > 0 else mp.ceil(x)


def _log(x: Any, *base: Any) -> Any:
    if 0 in (x, *base) or 1 in base:
        raise Undefined
    return mp.log(x, *base)


PROCEDURES: Mapping[str, Callable[..., Any]] = {
    "+": lambda *xs: reduce(operator.add, xs, mp.mpf(0)),
    "-": lambda x, *ys: reduce(operator.sub, ys, x) if ys else -x,
    "*": lambda *xs: reduce(operator.mul, xs, mp.mpf(1)),
    "/": _divide,
    "expt": _power,
    "sqrt": mp.sqrt,
    "square": lambda x: x * x,
    "exp": mp.exp,
    "log": _log,
    "sin": mp.sin,
    "cos": mp.cos,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": lambda x, *y: mp.atan2(x, *y) if y else mp.atan(x),
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "tanh": mp.tanh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "log1p": lambda x: _log(1 + x),
    "expm1": mp.expm1,
    "hypot": mp.hypot,
    "abs": abs,
    "magnitude": abs,
    "sign": mp.sign,
    "max": max,
    "min": min,
    "floor": mp.floor,
    "ceiling": mp.ceil,
    "round": mp.nint,
    "truncate": _truncate,
    "modulo": lambda x, y: x - y * mp.floor(x / y),
    "floor-remainder": lambda x, y: x - y * mp.floor(x / y),
    "remainder": lambda x, y: x - y * _truncate(x / y),
    "truncate-remainder": lambda x, y: x - y * _truncate(x / y),
    "quotient": lambda x, y: _truncate(x / y),
    "truncate-quotient": lambda x, y: _truncate(x / y),
    "floor-quotient": lambda x, y: mp.floor(x / y),
    "1+": lambda x: x + 1,
    "-1+": lambda x: x - 1,
    "exact": lambda x: x,
    "inexact": lambda x: x,
    "inexact->exact": lambda x: x,
    "exact->inexact": lambda x: x,
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "not": operator.not_,
}


def parse(text: str) -> Formula:
    """The formula of a text."""
    (formula,) = nested(text.replace("(", " ( ").replace(")", " ) ").split(), _atom)
    return formula


def _atom(token: str) -> Formula:
    try:
        return Fraction(token)
    except ValueError:
        return token


def show(formula: Formula) -> str:
    return f"({' '.join(map(show, formula))})" if isinstance(formula, list) else str(formula)


def evaluate(formula: Formula, at: Mapping[str, Any]) -> Any:
    """The value of a formula; Undefined where it, or a part of it, has none that is real."""
    match formula:
        case Fraction():
            return mp.mpf(formula.numerator) / formula.denominator
        case str():
            return at[formula]
        case ["if", condition, x, y]:
            return evaluate(x if evaluate(condition, at) else y, at)
        case ["and", *parts]:
            return all(evaluate(part, at) for part in parts)
        case ["cond", *clauses]:
            return next(evaluate(x, at) for test, x in clauses if test == "else" or evaluate(test, at))
        case ["let", bindings, body]:
            return evaluate(body, {**at, **{name: evaluate(value, at) for name, value in bindings}})
        case [name, *args]:
            values = [evaluate(arg, at) for arg in args]
            result = PROCEDURES[name](*values)
            return result if isinstance(result, bool) else _real(result)
    raise AssertionError(formula)


def slope(formula: Formula, variable: str, at: Mapping[str, Any]) -> Any:
    """The derivative by differences, at twice the precision."""
    with mp.workdps(60):
        step = mp.mpf(10) ** -15
        values = [evaluate(formula, {**at, variable: at[variable] + k * step}) for k in (-2, -1, 1, 2)]
        return (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)


UNARY = ("sin", "cos", "exp", "log", "sqrt", "tan", "atan", "abs", "asin", "acos", "square", "-", "/")


def drawn(rng: random.Random, depth: int) -> Formula:
    """A formula of x and y, at random."""
    if depth == 0 or rng.random() < 0.12:
        return rng.choice(["x", "x", "y", Fraction(rng.randint(-3, 5)), Fraction(rng.randint(-4, 4), 3)])
    kind = rng.random()
    if kind < 0.35:
        return [rng.choice("+-*"), *(drawn(rng, depth - 1) for _ in range(rng.randint(2, 3)))]
    if kind < 0.45:
        return ["/", drawn(rng, depth - 1), drawn(rng, depth - 1)]
    if kind < 0.60:
        exponents = [Fraction(n) for n in (2, 3, -1, -2)] + [Fraction(1, 2), Fraction(-3, 2), "y", drawn(rng, 1)]
        return ["expt", drawn(rng, depth - 1), rng.choice(exponents)]
    if kind < 0.90:
        return [rng.choice(UNARY), drawn(rng, depth - 1)]
    if kind < 0.94:
        return [rng.choice(("max", "min")), drawn(rng, depth - 1), drawn(rng, depth - 1)]
    if kind < 0.97:
        test = [rng.choice("<>"), drawn(rng, 1), drawn(rng, 1)]
        return ["if", test, drawn(rng, depth - 1), drawn(rng, depth - 1)]
    return ["let", [["x", drawn(rng, depth - 1)]], drawn(rng, depth - 1)]
