"""Arithmetic of Scheme on numbers and tensors together, against NumPy and Python's own numbers."""

from __future__ import annotations

import math
import operator
import random
from collections.abc import Callable
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np
import pytest

import eshkol as ek

Expression = tuple[str, Callable[[dict[str, Any]], Any]]  # as Scheme writes it, and its value for some variables


def _wide(x: Any) -> Any:
    return x if isinstance(x, np.ndarray) else float(x)


def _on(function: Any) -> Callable[[Any], Any]:
    return lambda x: function(_wide(x))


def _quotient(x: Any, y: Any) -> Any:
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return _wide(x) / _wide(y)
    return x / y if isinstance(x, float) or isinstance(y, float) else Fraction(x) / Fraction(y)


def _of_two(exact: Callable[[Any, Any], Any], arrays: Any) -> Callable[[Any, Any], Any]:
    def either(x: Any, y: Any) -> Any:
        plain = not isinstance(x, np.ndarray) and not isinstance(y, np.ndarray)
        return exact(x, y) if plain else arrays(_wide(x), _wide(y))

    return either


MANY: dict[str, Callable[[Any, Any], Any]] = {
    "+": _of_two(operator.add, np.add),
    "-": _of_two(operator.sub, np.subtract),
    "*": _of_two(operator.mul, np.multiply),
    "max": _of_two(max, np.maximum),
    "min": _of_two(min, np.minimum),
}
ONE: dict[str, Callable[[Any], Any]] = {
    "sin": _on(np.sin), "cos": _on(np.cos), "tanh": _on(np.tanh), "atan": _on(np.arctan), "asinh": _on(np.arcsinh),
    "abs": lambda x: abs(x), "square": lambda x: x * x, "-": lambda x: -x, "floor": lambda x: _step(np.floor, x),
    "ceiling": lambda x: _step(np.ceil, x), "round": lambda x: _step(np.round, x), "1+": lambda x: x + 1,
    "truncate": lambda x: _step(np.trunc, x),
}  # fmt: skip


def _step(function: Any, x: Any) -> Any:
    return Fraction(int(function(float(x)))) if isinstance(x, int | Fraction) else function(x)


def _fixed(rng: random.Random) -> Expression:
    number = rng.choice([rng.randint(-3, 3), Fraction(rng.randint(-9, 9), 4), round(rng.uniform(-2, 2), 3)])
    return str(number), lambda _: number


def expression(rng: random.Random, depth: int) -> Expression:
    """An expression over the tensors a, b, c, the float x and constants."""
    if depth == 0 or rng.random() < 0.15:
        if rng.random() < 0.3:
            return _fixed(rng)
        name = rng.choice("abcx")
        return name, lambda at: at[name]
    kind = rng.random()
    if kind < 0.5:
        name = rng.choice(list(MANY))
        args = [expression(rng, depth - 1) for _ in range(rng.randint(2, 3))]
        text = f"({name} {' '.join(text for text, _ in args)})"
        return text, lambda at: reduce(MANY[name], [value(at) for _, value in args])
    text, value = expression(rng, depth - 1)
    if kind < 0.6:
        above, over = expression(rng, depth - 1)
        return f"(/ {above} (+ 2 (square {text})))", lambda at: _quotient(over(at), 2 + value(at) * value(at))
    if kind < 0.7:
        power = rng.choice([2, 3])
        return f"(expt {text} {power})", lambda at: value(at) ** power
    name = rng.choice(list(ONE))
    return f"({name} {text})", lambda at: ONE[name](value(at))


def _point(rng: random.Random) -> dict[str, Any]:
    draw = np.random.default_rng(rng.randrange(1 << 30))
    return {
        "a": draw.uniform(-2, 2, (2, 3)),
        "b": draw.uniform(-2, 2, 3),
        "c": draw.uniform(-2, 2, ()),
        "x": rng.uniform(-2, 2),
    }


def _agrees(found: Any, wanted: Any) -> None:
    if isinstance(found, ek.Tensor):
        assert found.dtype is ek.float64
        assert found.shape == np.shape(wanted)
        with ek.use_backend("reference"):  # which has no kernels to compile
            values = found.numpy()
        np.testing.assert_allclose(values, wanted, rtol=1e-11, atol=1e-11)
    elif isinstance(wanted, int | Fraction):
        assert found == wanted
    else:
        assert math.isclose(found, wanted, rel_tol=1e-11, abs_tol=1e-11)


def test_random_expressions() -> None:
    rng = random.Random(8)
    pieces = [expression(rng, 3) for _ in range(60)]
    procedures = ek.eval(f"(list {' '.join(f'(lambda (a b c x) {text})' for text, _ in pieces)})")
    for (text, value), procedure in zip(pieces, procedures, strict=True):
        at = _point(rng)
        with np.errstate(all="ignore"):
            wanted = value(at)
        found = procedure(at["a"], at["b"], ek.tensor(at["c"], dtype=ek.float64), at["x"])
        try:
            _agrees(found, wanted)
        except AssertionError as error:
            raise AssertionError(text) from error


@pytest.mark.parametrize(
    ("name", "function"),
    [("=", np.equal), ("<", np.less), ("<=", np.less_equal), (">", np.greater), (">=", np.greater_equal)],
)
def test_comparisons(name: str, function: Any) -> None:
    draw = np.random.default_rng(1)
    x, y, z = (draw.integers(-2, 3, (4, 5)) for _ in range(3))
    two, three, mixed = ek.eval(
        f"(list (lambda (x y) ({name} x y)) (lambda (x y z) ({name} x y z)) (lambda (x) ({name} 1 x 1/2)))"
    )
    np.testing.assert_array_equal(two(x, y).numpy(), function(x, y))
    np.testing.assert_array_equal(three(x, y, z).numpy(), function(x, y) & function(y, z))
    np.testing.assert_array_equal(mixed(x).numpy(), function(1, x) & function(x, 0.5))
    assert two(ek.tensor(1.0), 2) is bool(function(1, 2))


UNARY = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin,
    "acos": np.arccos, "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh,
    "atanh": np.arctanh, "expm1": np.expm1, "log1p": np.log1p, "abs": np.abs, "magnitude": np.abs, "sign": np.sign,
    "square": np.square, "floor": np.floor, "ceiling": np.ceil, "round": np.round, "truncate": np.trunc,
    "-": np.negative, "/": np.reciprocal,
}  # fmt: skip
BINARY = {
    "expt": np.power, "atan": np.arctan2, "hypot": np.hypot, "max": np.maximum, "min": np.minimum,
    "modulo": np.mod, "remainder": np.fmod, "floor-quotient": np.floor_divide, "quotient": lambda x, y: np.trunc(x / y),
    "floor-remainder": np.mod, "truncate-remainder": np.fmod, "log": lambda x, y: np.log(x) / np.log(y),
}  # fmt: skip


def test_every_procedure() -> None:
    x, y = np.linspace(0.1, 0.9, 7), np.linspace(1.3, 2.6, 7)
    one = ek.eval(f"(lambda (x y) (list {' '.join(f'({n} x)' for n in UNARY)} (acosh y)))")(x, y)
    two = ek.eval(f"(lambda (x y) (list {' '.join(f'({n} x y)' for n in BINARY)}))")(x, y)
    wanted = [*(f(x) for f in UNARY.values()), np.arccosh(y), *(f(x, y) for f in BINARY.values())]
    with ek.use_backend("reference"):
        for name, found, right in zip([*UNARY, "acosh", *BINARY], [*one, *two], wanted, strict=True):
            np.testing.assert_allclose(found.numpy(), right, rtol=1e-12, err_msg=name)


def test_a_trace_cannot_know() -> None:
    compared = ek.eval("(lambda (x) (if (< x 0.0) (- x) x))")
    with pytest.raises(ek.errors.TraceError, match="tensor-less"):
        ek.jit(compared)(ek.tensor(1.0))
    shown = ek.eval("(lambda (x) (write x) (newline) (display (list x)) (newline) (* 2.0 x))")
    assert ek.jit(shown)(ek.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_traced_tensors_are_shown_as_such(capfd: pytest.CaptureFixture[str]) -> None:
    test_a_trace_cannot_know()
    assert capfd.readouterr().out.splitlines()[:2] == ["#<tensor float32 (2) traced>", "(#<tensor float32 (2) traced>)"]


def test_numbers_keep_their_derivatives() -> None:
    """In a gradient, inexact leaves a tensor what it is; a number would lose its derivative."""
    assert ek.grad(ek.eval("(lambda (x) (* (inexact x) x))"))(ek.tensor(3.0)).item() == 6.0
    with pytest.raises(ek.errors.TraceError):
        ek.grad(ek.eval("(lambda (x) (* (exact x) x))"))(ek.tensor(3.0))
