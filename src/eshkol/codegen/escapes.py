"""Calls of call/cc, and continuations that are only left to.

Comes in: a call of call/cc, simplified. Goes out: a call of the primitive that captures; or where its argument is a
lambda that calls the continuation, with one value, and does nothing else with it, so that nobody has it any more when
the lambda has ended:

- an `Escape`, if every such call stands in the code of the function that call/cc is called in: there it is a place to
  jump to. Handlers, winders and parameters are then the same at both places, for what changes them takes procedures,
  and those are functions of their own (simplify.py copies none of that library);
- a call of %call/ec, if functions that are no closures have them. Its continuation has no copies of frames.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.codegen import PRIMITIVES
from eshkol.codegen.functions import Analysis
from eshkol.codegen.nodes import Escape, Prim, children
from eshkol.lang.core import Call, Cell, Clause, Global, Lambda, Local, Node, Variable

CONTROL = "(eshkol control)"
CAPTURING = frozenset({"call/cc", "call-with-current-continuation"})
LEAVING = Cell(CONTROL, "%leave")  # which those refer to, so that it is there
CAPTURED = Cell(PRIMITIVES, "%call/cc", primitive=True)  # what those call, and nothing else
ESCAPING = Cell(PRIMITIVES, "%call/ec", primitive=True)
CHANGING = "%set-"  # what the names of primitives begin with that change handlers, winders and parameters


def escape(node: Call, procedure: Node, args: Sequence[Node]) -> Node | None:
    """What a call of call/cc becomes; None where it is no such call."""
    match procedure, args:
        case Global(cell=cell), [receiver]:
            if cell.library != CONTROL or cell.name not in CAPTURING or cell.assigned:
                return None
            captured = Call(node.place, Global(procedure.place, CAPTURED), [receiver])
            return _left_to(node, procedure, receiver) or captured
    return None


def _left_to(node: Call, procedure: Global, receiver: Node) -> Node | None:
    """What it is if its continuation is one that is only left to."""
    match receiver:
        case Lambda(clauses=[Clause(params=[variable], rest=None, body=body)]) if not variable.assigned:
            calls = _calls(variable, body)
            if calls is None:
                return None
            found = Escape(node.place, variable, body, procedure)
            users = [f for f in Analysis.of([found]).functions.values() if variable in f.used or variable in f.free]
            if not users:
                return found
            if any(f.escapes for f in users):
                return None
            for call in calls:
                call.args = [call.procedure, *call.args]
                call.procedure = Global(call.place, LEAVING)
            return Call(node.place, Global(procedure.place, ESCAPING), [receiver])
    return None


def _calls(variable: Variable, body: Node) -> list[Call] | None:
    """The calls of a continuation, if it is used in no other way.

    It takes one value each time, from code that changes no handlers itself.
    """
    found: list[Call] = []
    stack = [body]
    while stack:
        node = stack.pop()
        match node:
            case Call(procedure=Local(variable=called), args=args) if called is variable:
                if len(args) != 1:
                    return None
                found.append(node)
                stack += args
                continue
            case Local(variable=used) if used is variable:
                return None
            case Prim(name=name) if name.startswith(CHANGING):
                return None
        stack += children(node)
    return found
