"""The derivative rules of Scheme's numeric procedures, derived from the op table.

Every row that says which procedures it is (`procedures=`) and gives numbers is a rule: for each argument the factor of
its tangent, an expression over the result `r` and the arguments `x` and `y`. The rows' own rules are run on symbols, so
what the table says of corners (abs at 0, equal operands of max) is what programs get. A rule is for real numbers; where
the table says otherwise of complex ones, `complex_factors` holds that, or None where there is no complex derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from eshkol.calculus.expressions import (
    ONE,
    ZERO,
    CallExpression,
    Expression,
    NoExpression,
    VariableExpression,
    call,
    expression,
)
from eshkol.errors import TensorError
from eshkol.ops import TABLE, dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Aval, Jvp, Linear, NoDerivative, Op, Partials

ARGUMENTS = ("x", "y")
RESULT = "r"


def _truncating_quotient(x: Any, y: Any) -> Any:
    """The quotient of a division without remainder, so that integers stay integers."""
    return TABLE["floor_divide"](x - TABLE["fmod"](x, y), y)


# Procedures that are no row, but an expression of rows.
SAID: tuple[tuple[str, tuple[str, ...], int, Callable[..., Any]], ...] = (
    ("truncating_quotient", ("quotient", "truncate-quotient"), 2, _truncating_quotient),
    ("logarithm_to_base", ("log",), 2, lambda x, y: TABLE["log"](x) / TABLE["log"](y)),
    ("increment", ("1+",), 1, lambda x: x + 1),
    ("decrement", ("-1+",), 1, lambda x: x - 1),
)


@dataclass(frozen=True)
class DerivativeRule:
    """How a procedure is differentiated. Several Scheme names may share a rule, and the arity tells `-` from `-`."""

    name: str  # the row's
    procedures: tuple[str, ...]
    arity: int
    factors: tuple[Expression, ...]
    complex_factors: tuple[Expression, ...] | None

    @cached_property
    def steps(self) -> bool:
        """Whether the derivative is zero wherever it exists."""
        return all(factor == ZERO for factor in self.factors)

    @property
    def arguments(self) -> tuple[str, ...]:
        return ARGUMENTS[: self.arity]


def row_factors(op: Op, result: Expression, inputs: Sequence[Expression]) -> tuple[Expression, ...]:
    """The factors of a primitive row, at a result and inputs."""
    rule, indices = op.derivative, range(len(inputs))
    if isinstance(rule, Partials):
        return tuple(expression(f(result, *inputs)) if f else ZERO for f in rule.factors)
    if isinstance(rule, Linear):
        return tuple(expression(rule.transpose(_Attributes(inputs[0].dtype), ONE, k, *inputs)) for k in indices)
    if isinstance(rule, Jvp):
        tangents = [[ONE if j == k else None for j in indices] for k in indices]
        return tuple(expression(rule.rule(None, result, inputs, t)) for t in tangents)
    if isinstance(rule, NoDerivative) and rule.zero:
        return (ZERO,) * len(inputs)
    raise TensorError(f"the row '{op.name}' has no rule to take factors from")


@dataclass(frozen=True)
class _Attributes:
    """What the linear rows that are procedures (`cast`) may ask of their attributes."""

    dtype: DType


@cache
def primitive(procedure: str, arity: int) -> Op | None:
    """The primitive row that a procedure of so many arguments is."""
    rows = [op for op in TABLE.values() if not op.composite and procedure in op.procedures]
    return next((op for op in rows if len(op.inputs) == arity), None)


def differentiate(body: Expression, result: Expression, variable: str) -> Expression:
    """The derivative of an expression by a variable; `result` stands for the expression itself."""
    if isinstance(body, VariableExpression):
        return ONE if body.name == variable else ZERO
    if not isinstance(body, CallExpression):
        return ZERO
    tangents = [differentiate(arg, arg, variable) for arg in body.args]
    if all(tangent == ZERO for tangent in tangents):
        return ZERO
    op = primitive(body.name, len(body.args))
    if op is None:
        raise NoExpression(f"'{body.name}' has no rule")
    total: Expression = ZERO
    for factor, tangent in zip(row_factors(op, result, body.args), tangents, strict=True):
        total = call("+", total, call("*", factor, tangent))
    return total


def _factors(make: Op | Callable[..., Any], arity: int, dtype: DType) -> tuple[Expression, ...]:
    """The factors of a row, or of a procedure that is said with rows."""
    result, inputs = VariableExpression(RESULT, dtype), [VariableExpression(name, dtype) for name in ARGUMENTS[:arity]]
    if isinstance(make, Op) and not make.composite:
        return row_factors(make, result, inputs)
    body = make(*inputs)
    return tuple(differentiate(body, result, variable.name) for variable in inputs)


def _rule(name: str, procedures: tuple[str, ...], arity: int, make: Op | Callable[..., Any]) -> DerivativeRule:
    real = _factors(make, arity, dtypes.float64)
    try:
        complex_ = _factors(make, arity, dtypes.complex128)
    except NoExpression:
        complex_ = None
    return DerivativeRule(name, procedures, arity, real, complex_)


def _compares(op: Op) -> bool:
    """Whether the row gives truth, not numbers: nothing to differentiate."""
    if op.infer is None:
        return False
    given = Aval((), dtypes.float64)
    return bool(op.infer(_Attributes(given.dtype), *[given] * len(op.inputs)).dtype.is_bool)


def comparisons() -> dict[str, str]:
    """The procedures that compare numbers, and their rows."""
    return {p: op.name for op in TABLE.values() if op.procedures and _compares(op) for p in op.procedures}


@cache
def rules() -> tuple[DerivativeRule, ...]:
    """Every rule, in the order of the table."""
    rows = [op for op in TABLE.values() if op.procedures and not _compares(op)]
    found = [_rule(op.name, op.procedures, len(op.inputs), op) for op in rows]
    found += [_rule(name, procedures, arity, said) for name, procedures, arity, said in SAID]
    return tuple(found)


@cache
def rule(procedure: str, arity: int) -> DerivativeRule | None:
    """The rule of a Scheme procedure for so many arguments. Sums and products of more are taken two by two."""
    return next((r for r in rules() if procedure in r.procedures and r.arity == arity), None)
