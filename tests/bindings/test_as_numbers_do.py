"""Scheme's numeric procedures on tensors give what they give for each number, and tensors without axes what numbers do.

Integers are compared with exact numbers as long as 64 bits hold them, doubles with inexact ones to the last bits.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from random_programs.scheme_checks import by_interpreter

UNARY = ("-", "abs", "square", "floor", "ceiling", "truncate", "round", "1+")
SMOOTH = ("exp", "sin", "cos", "tan", "atan", "sinh", "cosh", "tanh", "asinh")
BINARY = ("+", "-", "*", "max", "min")
DIVISIONS = ("quotient", "remainder", "modulo", "floor-quotient", "floor-remainder", "truncate-quotient",
             "truncate-remainder")  # fmt: skip
COMPARISONS = ("=", "<", ">", "<=", ">=")

whole = st.integers(-1000, 1000)
halves = st.integers(-40, 40).map(lambda n: n / 4)
doubles = st.one_of(
    halves, st.floats(-50, 50, allow_nan=False), st.sampled_from([0.0, -0.0, math.nan, math.inf, -math.inf])
)


def written(x: float) -> str:
    if isinstance(x, float) and not math.isfinite(x):
        return "+nan.0" if math.isnan(x) else "+inf.0" if x > 0 else "-inf.0"
    return repr(x)


def both(names: tuple[str, ...], elements: list[Any], others: list[Any]) -> list[Any]:
    """For each procedure: its name, its results on tensors, on tensors without axes, and on numbers."""
    dtype = "float64" if any(isinstance(x, float) for x in (*elements, *others)) else "int64"
    rows = [" ".join(map(written, x)) for x in (elements, *([others] if others else []))]
    wide = " ".join(f"(tensor '({row}) :dtype '{dtype})" for row in rows)
    apart = " ".join(f"(map (lambda (x) (reshape (tensor (list x) :dtype '{dtype}) '())) '({row}))" for row in rows)
    plain = " ".join(f"'({row})" for row in rows)
    calls = " ".join(f"(list '{n} ({n} {wide}) (map {n} {apart}) (map {n} {plain}))" for n in names)
    with by_interpreter():
        found = ek.eval(f"(list {calls})")
        return [(str(name), wide.numpy().tolist(), [_number(x) for x in single], list(numbers))
                for name, wide, single, numbers in found]  # fmt: skip


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, ek.Tensor) else x


def alike(a: Any, b: Any, last_bits: bool) -> bool:
    if isinstance(b, complex):
        return math.isnan(a)  # tensors of real numbers stay real
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or (last_bits and math.isclose(a, b, rel_tol=1e-14, abs_tol=1e-300))


def check(names: tuple[str, ...], elements: list[Any], others: list[Any], last_bits: bool = False) -> None:
    for name, wide, single, numbers in both(names, elements, others):
        for k, (a, b, c) in enumerate(zip(wide, single, numbers, strict=True)):
            given = (elements[k], *others[k : k + 1])
            assert alike(a, c, last_bits), f"({name} {given}): the tensor has {a}, a number is {c}"
            assert alike(b, c, last_bits), f"({name} {given}): a tensor without axes is {b}, a number {c}"


@examples(300, 4)
@given(st.lists(st.tuples(whole, whole), min_size=1, max_size=6))
def test_integers(pairs: list[tuple[int, int]]) -> None:
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    check(UNARY, left, [])
    check((*BINARY, *COMPARISONS), left, right)
    check(DIVISIONS, left, [b or 7 for b in right])
    check(("expt",), [a % 19 - 9 for a in left], [b % 8 for b in right])


@examples(300, 4)
@given(st.lists(st.tuples(doubles, doubles), min_size=1, max_size=6))
def test_doubles(pairs: list[tuple[float, float]]) -> None:
    left, right = [a for a, _ in pairs], [b for _, b in pairs]
    check(UNARY, left, [])
    check((*BINARY, *COMPARISONS), left, right)
    check(("/",), left, right)
    check(SMOOTH, left, [], last_bits=True)


@pytest.mark.parametrize("text", ["(tensor 1 100000000000000000000)", "(+ (tensor 1 2) 100000000000000000000)",
                                  "(tensor 300 :dtype 'int8)", "(tensor 1/2 :dtype 'int32)", "(exact (tensor 1.0 2.0))",
                                  "(tensor-ref (tensor 1 2 3) 3)", "(tensor-ref (tensor 1 2 3) 1.0)",
                                  "(tensor-sum (tensor 1 2) :foo 3)", "(if (= (tensor 1 2) 1) 1 2)",
                                  "(exact (reshape (tensor +nan.0) '()))", "(tensor '(1 2) '(3))"])  # fmt: skip
def test_what_has_no_answer_is_an_error(text: str) -> None:
    with pytest.raises(ek.EshkolError):
        ek.eval(text)
