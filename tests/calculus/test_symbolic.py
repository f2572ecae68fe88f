"""diff and simplify on formulas drawn at random: slopes as differences give them, values kept, nothing left to do."""

from __future__ import annotations

import random
import subprocess
import sys
from typing import Any

import pytest
from formulas import Undefined, drawn, evaluate, parse, show, slope
from mpmath import mp

from effort import amount

PROGRAM = """
(import (eshkol) (eshkol symbolic))
(define (line object) (write object) (newline))
(do ((formula (read) (read))) ((eof-object? formula))
  (line (diff formula 'x))
  (line (diff formula 'x 'y))
  (line (simplify formula))
  (line (simplify (simplify formula)))
  (line (simplify (diff formula 'x))))
"""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Any, ...]]:
    rng = random.Random(7)
    formulas = [drawn(rng, rng.randint(2, 4)) for _ in range(amount(3000, 200))]
    file = tmp_path_factory.mktemp("symbolic") / "formulas.esk"
    file.write_text(PROGRAM, encoding="utf-8")
    command = [sys.executable, "-m", "eshkol", "run", str(file)]
    done = subprocess.run(command, input="\n".join(map(show, formulas)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 5 * len(formulas)
    return [(formula, *lines[5 * k : 5 * k + 5]) for k, formula in enumerate(formulas)]


def points(formula: Any) -> list[dict[str, Any]]:
    rng = random.Random(show(formula))
    found = []
    for _ in range(12):
        at = {"x": mp.mpf(rng.uniform(-2, 3)), "y": mp.mpf(rng.uniform(-2, 3))}
        try:
            evaluate(formula, at)
        except Undefined:
            continue
        found.append(at)
    return found[:3]


def close(a: Any, b: Any) -> bool:
    return bool(abs(a - b) <= 1e-15 * max(1, abs(a), abs(b)))


def tame(*values: Any) -> bool:
    """Whether differences can be trusted."""
    return all(abs(value) < 1e4 for value in values)


def test_derivatives_are_slopes(answers):
    checked = 0
    for formula, first, *_ in answers:
        for at in points(formula):
            try:
                wanted, found = slope(formula, "x", at), evaluate(parse(first), at)
            except Undefined:
                continue
            if tame(wanted, evaluate(formula, at)):
                assert close(found, wanted), (show(formula), first, at)
            checked += 1
    assert checked > len(answers)


def test_mixed_derivatives_are_slopes_of_derivatives(answers):
    for _, first, mixed, *_ in answers:
        for at in points(parse(first)):
            try:
                wanted, found = slope(parse(first), "y", at), evaluate(parse(mixed), at)
            except Undefined:
                continue
            if tame(wanted, evaluate(parse(first), at)):
                assert close(found, wanted), (first, mixed, at)


def test_simplified_formulas_have_the_value_of_the_formula(answers):
    for formula, _, _, simple, *_ in answers:
        for at in points(formula):
            assert close(evaluate(parse(simple), at), evaluate(formula, at)), (show(formula), simple, at)


def test_what_is_simple_stays(answers):
    for formula, first, _, simple, again, derivative in answers:
        assert again == simple, show(formula)
        assert derivative == first, show(formula)
