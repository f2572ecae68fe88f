"""The derivative rules: derived from the op table, right on numbers, and as the C header has them."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from formulas import Undefined, evaluate, parse, slope
from mpmath import mp

from eshkol.calculus.expressions import CallExpression, Expression, VariableExpression, call, expression
from eshkol.calculus.header import header
from eshkol.calculus.rules import DerivativeRule, comparisons, rule, rules
from eshkol.ops import TABLE
from eshkol.ops.row import NoDerivative, Partials

HEADER = Path(__file__).parents[2] / "src/eshkol/runtime/native/scheme/derivative_rules.h"


def test_the_header_is_what_the_table_gives():
    assert HEADER.read_text("utf-8") == header(), "run `make generate`"


@pytest.mark.parametrize("one", rules(), ids=lambda one: one.name)
def test_factors_are_slopes(one: DerivativeRule):
    rng = random.Random(one.name)
    for procedure in one.procedures:
        formula = [procedure, *one.arguments]
        checked = 0
        for _ in range(400):
            low, high = rng.choice([(-3, 3), (0, 4), (-1, 1), (1, 4)])
            at: dict[str, Any] = {name: mp.mpf(rng.uniform(low, high)) for name in one.arguments}
            try:
                at["r"] = evaluate(formula, at)
                wanted = [slope(formula, name, at) for name in one.arguments]
            except Undefined:
                continue
            for factor, right in zip(one.factors, wanted, strict=True):
                found = evaluate(parse(factor.text()), at)
                assert abs(found - right) <= 1e-20 * max(1, abs(right)), (procedure, factor, at)
            checked += 1
            if checked == 20:
                break
        assert checked == 20


def known(procedure: str, arity: int) -> DerivativeRule:
    found = rule(procedure, arity)
    assert found is not None
    return found


def at(procedure: str, arity: int, k: int, **values: float) -> Any:
    return evaluate(
        parse(known(procedure, arity).factors[k].text()), {name: mp.mpf(value) for name, value in values.items()}
    )


def test_corners_are_the_table_s():
    assert at("abs", 1, 0, r=0, x=0) == 0
    assert at("max", 2, 0, r=2, x=2, y=2) == at("min", 2, 1, r=2, x=2, y=2) == 0.5
    assert at("expt", 2, 0, r=1, x=0, y=0) == 0
    assert at("expt", 2, 0, r=0, x=0, y=1) == 1
    assert at("expt", 2, 1, r=0, x=0, y=2) == 0


def test_every_factor_is_a_number_of_the_result_and_the_arguments():
    def names(e: Expression) -> set[str]:
        return (
            set().union(*map(names, e.args))
            if isinstance(e, CallExpression)
            else {e.text()}
            if e.text().isalpha()
            else set()
        )

    for one in rules():
        assert len(one.factors) == one.arity
        for factor in (*one.factors, *(one.complex_factors or ())):
            assert not factor.dtype.is_bool
            assert names(factor) <= {"r", *one.arguments}


def test_a_procedure_has_one_rule_for_each_number_of_arguments():
    found = [(procedure, one.arity) for one in rules() for procedure in one.procedures]
    assert len(found) == len(set(found))


def test_steps_and_lines_are_known():
    for name in ("floor", "ceiling", "round", "truncate", "sign"):
        assert known(name, 1).steps
    for name in ("+", "-", "*", "exact"):
        assert not known(name, 1 if name == "exact" else 2).steps


def test_rows_of_procedures_have_rules_that_numbers_can_read():
    for op in TABLE.values():
        if op.name in comparisons().values():
            assert rule(op.procedures[0], 2) is None
        elif op.procedures and isinstance(op.derivative, Partials | NoDerivative):
            assert rule(op.procedures[0], len(op.inputs)) is not None


def test_the_complex_derivative_of_an_absolute_value_does_not_exist():
    assert known("magnitude", 1).complex_factors is None


def test_expressions_say_what_is_plain():
    x = VariableExpression("x")
    assert (x * 1).text() == (1 * x).text() == (x / 1).text() == (x - 0).text() == "x"
    assert (x * 0).text() == "0"
    assert call("-", -x).text() == "x"
    assert (0 - x).text() == "(- x)"
    assert (x + x).text() == "(* 2 x)"
    assert (0.5 * x).text() == "(* 1/2 x)"
    assert expression(Fraction(1, 3)).text() == "1/3"
    assert expression(0.1).text() == "0.1"
