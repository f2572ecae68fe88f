"""Numeric procedures in compiled derivatives: their values as Python's, their derivatives against differences."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import pytest
from fast_runs import Runner
from typed_programs import parse

from eshkol.calculus import native
from eshkol.calculus.factors import factors, parsed
from eshkol.calculus.rules import rules

ORDINARY = ("sin", "cos", "tan", "exp", "atan", "sinh", "cosh", "tanh", "asinh", "expm1", "abs", "square", "-", "/",
            "floor", "ceiling", "round", "truncate", "1+", "-1+")  # fmt: skip
POINTS = {
    **dict.fromkeys(ORDINARY, (-1.1, 0.3)),
    **dict.fromkeys(("asin", "acos", "atanh"), (-0.7, 0.3)),
    **dict.fromkeys(("log", "sqrt", "log1p"), (0.2, 2.5)),
    "acosh": (1.25, 3.0),
}
PAIRS = {
    **dict.fromkeys(("+", "-", "*", "/", "atan", "max", "min", "hypot"), ((0.5, -2.0), (3.0, 1.5))),
    "expt": ((1.5, 2.5), (0.3, -2.0)),
    "log": ((2.5, 3.0), (0.3, 1.5)),
}
OUTSIDE = {"sqrt": -1.0, "log": -1.0, "asin": 1.5, "acos": -1.5, "atanh": 1.5, "acosh": 0.5, "log1p": -2.0}
PYTHON: dict[str, Callable[..., float]] = {
    "+": lambda x, y: x + y, "-": lambda x, y=None: -x if y is None else x - y, "*": lambda x, y: x * y,
    "/": lambda x, y=None: 1 / x if y is None else x / y, "square": lambda x: x * x, "abs": abs, "max": max,
    "min": min, "expt": math.pow, "round": lambda x: float(round(x)), "floor": lambda x: float(math.floor(x)),
    "ceiling": lambda x: float(math.ceil(x)), "truncate": lambda x: float(math.trunc(x)), "1+": lambda x: x + 1,
    "-1+": lambda x: x - 1, "log": lambda x, b=None: math.log(x) if b is None else math.log(x) / math.log(b),
    "atan": lambda y, x=None: math.atan(y) if x is None else math.atan2(y, x),
}  # fmt: skip


def _program(name: str, arity: int) -> str:
    params = ", ".join(f"%x{k}: f64 varies" for k in range(arity))
    args = ", ".join(f"%x{k}" for k in range(arity))
    return f"function main -> f64\nb0({params}):\n  %r: f64 = math {name} {args}\n  return %r"


def _both(runner: Runner, name: str, args: tuple[float, ...]) -> list[tuple[int, tuple[float, ...] | None]]:
    """Forward and reverse."""
    program = parse(_program(name, len(args)))
    made = [native.compile_forward(program, len(args), runner.code), native.compile_gradient(program, runner.code)]
    return [runner.run(runner.described(each, program), [runner.value(x) for x in args]) for each in made]


def _swapped(function: Callable[[float, float], float], y: float, x: float) -> float:
    return function(x, y)


def _difference(function: Callable[[float], float], x: float) -> float:
    """A central difference of sixth order."""
    h = 4e-3 * max(0.1, abs(x))
    d = [function(x + k * h) - function(x - k * h) for k in (1, 2, 3)]
    return (45 * d[0] - 9 * d[1] + d[2]) / (60 * h)


@pytest.mark.parametrize("name", POINTS)
def test_functions(runner: Runner, name: str) -> None:
    function = PYTHON.get(name) or getattr(math, name)
    for x in POINTS[name]:
        (status, forward), (_, reverse) = _both(runner, name, (x,))
        assert status == native.OK
        assert forward is not None
        assert forward == reverse
        assert forward[0] == function(x)
        assert forward[1] == pytest.approx(_difference(function, x), rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("name", PAIRS)
def test_functions_of_two(runner: Runner, name: str) -> None:
    function = PYTHON.get(name) or getattr(math, name)
    for x, y in PAIRS[name]:
        (status, forward), (_, reverse) = _both(runner, name, (x, y))
        assert status == native.OK
        assert forward is not None
        assert forward == reverse
        assert forward[0] == function(x, y)
        assert forward[1] == pytest.approx(_difference(partial(_swapped, function, y), x), rel=1e-8)
        assert forward[2] == pytest.approx(_difference(partial(function, x), y), rel=1e-8)


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_no_real_number_is_left_to_the_dynamic_path(runner: Runner, name: str) -> None:
    assert [status for status, _ in _both(runner, name, (OUTSIDE[name],))] == [native.FAILED] * 2


def test_powers_of_negative_numbers(runner: Runner) -> None:
    """The derivative by the exponent would be complex; by the base it is real where the exponent is whole."""
    assert [status for status, _ in _both(runner, "expt", (-1.5, 3.0))] == [native.FAILED] * 2
    text = _program("expt", 2).replace("%x1: f64 varies", "%x1: f64")
    program = parse(text)
    code = runner.described(native.compile_gradient(program, runner.code), program)
    assert runner.run(code, runner.values("-1.5 3.", 2)) == (native.OK, (-3.375, 6.75))
    assert runner.run(code, runner.values("-1.5 2.5", 2))[0] == native.FAILED


def test_corners(runner: Runner) -> None:
    assert _both(runner, "abs", (0.0,)) == [(native.OK, (0.0, 0.0))] * 2
    assert _both(runner, "max", (2.0, 2.0)) == [(native.OK, (2.0, 0.5, 0.5))] * 2
    assert _both(runner, "sqrt", (0.0,)) == [(native.OK, (0.0, math.inf))] * 2
    assert _both(runner, "expt", (0.0, 2.0)) == [(native.OK, (0.0, 0.0, 0.0))] * 2


def test_factors_are_those_of_the_table() -> None:
    for rule in rules():
        for name in rule.procedures:
            assert factors(name, rule.arity) == tuple(parsed(f.text()) for f in rule.factors)
    assert factors("car", 1) is None
