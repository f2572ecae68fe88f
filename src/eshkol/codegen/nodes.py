"""Core forms as the code generator sees them: three more kinds of expression, which simplify.py makes of the others."""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.lang.core import Lambda, Node, Variable


@dataclass(slots=True, eq=False)
class Fix(Node):
    """Procedures that may refer to one another, bound to variables that nothing assigns."""

    variables: list[Variable]
    lambdas: list[Lambda]
    body: Node


@dataclass(slots=True, eq=False)
class Prim(Node):
    """A call of a primitive, with a number of arguments that it takes."""

    name: str
    args: list[Node]


@dataclass(slots=True, eq=False)
class LetValues(Node):
    """Binds as many values as `value` returns, which must be that many."""

    variables: list[Variable]
    rest: Variable | None
    value: Node
    body: Node
