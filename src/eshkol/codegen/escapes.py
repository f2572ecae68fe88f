"""Continuations that are only left to, by a jump.

Comes in: a call of call/cc with a lambda, simplified. Goes out: an `Escape`, where the continuation is called, with one
value, and nothing else is done with it, and where every such call stands in the code of the function that call/cc is
called in: there it is a place to go on to. Handlers, winders and parameters are then the same at both places, for what
changes them takes procedures, and those are functions of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.codegen.functions import Analysis
from eshkol.codegen.nodes import Escape, Prim, children
from eshkol.lang.core import Call, Clause, Global, Lambda, Local, Node, Variable

CAPTURING = frozenset({"call/cc", "call-with-current-continuation"})  # of the library of control
CHANGING = "%set-"  # what the names of primitives begin with that change handlers, winders and parameters


def escape(node: Call, procedure: Node, args: Sequence[Node]) -> Node | None:
    """What a call is if its continuation is one that is only left to."""
    match procedure, args:
        case Global(cell=cell), [Lambda(clauses=[Clause(params=[variable], rest=None, body=body)])]:
            if cell.library != "(eshkol control)" or cell.name not in CAPTURING or cell.assigned or variable.assigned:
                return None
            if not _is_only_called(variable, body):
                return None
            found = Escape(node.place, variable, body, procedure)
            analysis = Analysis.of([found])
            return None if any(variable in f.used for f in analysis.functions.values()) else found
    return None


def _is_only_called(variable: Variable, body: Node) -> bool:
    """Whether a continuation is only called, with one value, by an expression that changes no handlers itself."""
    stack = [body]
    while stack:
        node = stack.pop()
        match node:
            case Call(procedure=Local(variable=called), args=args) if called is variable:
                if len(args) != 1:
                    return False
                stack += args
                continue
            case Local(variable=used) if used is variable:
                return False
            case Prim(name=name) if name.startswith(CHANGING):
                return False
        stack += children(node)
    return True
