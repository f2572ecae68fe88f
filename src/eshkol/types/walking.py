"""The forms within core forms.

Comes in: a core form. Goes out: its parts, in the order in which they are written.
"""

from __future__ import annotations

from typing import Any

from eshkol.lang.core import (
    Call,
    DefineGlobal,
    If,
    Lambda,
    Let,
    Letrec,
    Seq,
    SetGlobal,
    SetLocal,
)


def children(node: Any) -> list[Any]:
    """The forms within a form."""
    match node:
        case If(test=test, then=then, otherwise=otherwise):
            return [test, then, otherwise]
        case Seq(items=items):
            return list(items)
        case Lambda(clauses=clauses):
            return [clause.body for clause in clauses]
        case Let(values=values, body=body) | Letrec(values=values, body=body):
            return [*values, body]
        case Call(procedure=procedure, args=args):
            return [procedure, *args]
        case SetLocal(value=value) | SetGlobal(value=value) | DefineGlobal(value=value):
            return [value]
    return []
