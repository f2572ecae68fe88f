"""Occurrence typing: what a test says of the variables in it, where it holds and where it does not.

Comes in: the test of an `if`, as a core form; what predicates say. Goes out: for either branch, variables with what
they are known to be or not to be. Variables that some `set!` changes are left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from eshkol.lang.core import Call, Cell, Const, Global, If, Let, Local, Node, Variable
from eshkol.types.kinds import FALSE, NEVER, Type, join
from eshkol.types.standard import PREDICATES, is_standard


class Fact(NamedTuple):
    """A variable is of a type, or is not."""

    variable: Variable
    kind: Type
    holds: bool


Facts = tuple[Fact, ...]
Test = tuple[Facts, Facts]  # where it holds, where it does not
_NOTHING: Test = ((), ())


def facts_of(test: Node, record_of: Callable[[Cell], Type | None], depth: int = 0) -> Test:
    """What is known of variables in either branch; `record_of` knows the predicates of records."""
    if depth > 12:
        return _NOTHING
    if type(test) is Local:
        if test.variable.assigned:
            return _NOTHING
        return (Fact(test.variable, FALSE, False),), (Fact(test.variable, FALSE, True),)
    if type(test) is Call and type(test.procedure) is Global:
        return _called(test, test.procedure.cell, record_of, depth)
    if type(test) is If:
        return _both(test, record_of, depth)
    if type(test) is Let and len(test.variables) == 1:
        return _either(test, record_of, depth)
    return _NOTHING


def _called(test: Call, cell: Cell, record_of: Callable[[Cell], Type | None], depth: int) -> Test:
    if len(test.args) != 1:
        return _NOTHING
    arg = test.args[0]
    if cell.name == "not" and is_standard(cell):
        holds, fails = facts_of(arg, record_of, depth + 1)
        return fails, holds
    if type(arg) is not Local or arg.variable.assigned:
        return _NOTHING
    if is_standard(cell):
        found = PREDICATES.get(cell.name)
    else:
        record = record_of(cell)
        found = None if record is None else (record, record)
    if found is None:
        return _NOTHING
    fails = () if found[1] == NEVER else (Fact(arg.variable, found[1], False),)
    return (Fact(arg.variable, found[0], True),), fails


def _is(node: Node, constant: bool) -> bool:
    return type(node) is Const and node.datum is constant


def _both(test: If, record_of: Callable[[Cell], Type | None], depth: int) -> Test:
    """`and`, and tests that are turned around."""
    first, second = facts_of(test.test, record_of, depth + 1)
    if _is(test.otherwise, False):
        if _is(test.then, True):
            return first, second
        then = facts_of(test.then, record_of, depth + 1)[0]
        return first + then, ()
    if _is(test.then, False):
        if _is(test.otherwise, True):
            return second, first
        return second + facts_of(test.otherwise, record_of, depth + 1)[0], ()
    if _is(test.then, True):  # `or` of tests
        return _of_one_variable(first, test.otherwise, record_of, second, depth)
    return _NOTHING


def _either(test: Let, record_of: Callable[[Cell], Type | None], depth: int) -> Test:
    """`or`, as its macro writes it: (let ((t a)) (if t t b))."""
    body, variable = test.body, test.variables[0]
    if not (type(body) is If and type(body.test) is Local and body.test.variable is variable):
        return _NOTHING
    if not (type(body.then) is Local and body.then.variable is variable):
        return _NOTHING
    holds, fails = facts_of(test.values[0], record_of, depth + 1)
    return _of_one_variable(holds, body.otherwise, record_of, fails, depth)


def _of_one_variable(
    holds: Facts, other: Node, record_of: Callable[[Cell], Type | None], fails: Facts, depth: int
) -> Test:
    """Either of two tests: where both speak of one variable, it is of one type or the other."""
    also, neither = facts_of(other, record_of, depth + 1)
    together: Facts = ()
    if len(holds) == len(also) == 1 and holds[0].holds and also[0].holds and holds[0].variable is also[0].variable:
        together = (Fact(holds[0].variable, join(holds[0].kind, also[0].kind), True),)
    return together, fails + neither
