"""Core forms as the code generator sees them: four more kinds of expression, which simplify.py makes of the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eshkol.lang import core
from eshkol.lang.core import Call, Global, If, Lambda, Let, Letrec, Node, Seq, Variable


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


@dataclass(slots=True, eq=False)
class Escape(Node):
    """A call of call/cc whose continuation is only called, with one value, and in the same function (escapes.py).

    To call `variable` is to go on with a value where this expression ends. Nothing is captured.
    """

    variable: Variable
    body: Node
    procedure: Global  # call/cc


def children(node: Node) -> Iterator[Node]:
    """The expressions directly inside of one."""
    match node:
        case core.SetLocal(value=value) | core.SetGlobal(value=value) | core.DefineGlobal(value=value):
            yield value
        case If(test=test, then=then, otherwise=otherwise):
            yield from (test, then, otherwise)
        case Seq(items=items):
            yield from items
        case Lambda(clauses=clauses):
            yield from (clause.body for clause in clauses)
        case Let(values=values, body=body) | Letrec(values=values, body=body):
            yield from values
            yield body
        case Fix(lambdas=lambdas, body=body):
            yield from lambdas
            yield body
        case Call(procedure=procedure, args=args):
            yield procedure
            yield from args
        case Prim(args=args):
            yield from args
        case LetValues(value=value, body=body):
            yield from (value, body)
        case Escape(body=body):
            yield body
