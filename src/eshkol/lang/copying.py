"""Core forms written twice: the same, with variables of its own for all that it binds.

Comes in: a core form as the expander makes it. Goes out: another that means the same. Every variable of a unit is bound
once (`codegen/verify.py`), so whatever stands in two places needs new ones.
"""

from __future__ import annotations

from eshkol.lang.core import (
    Call,
    Clause,
    DefineGlobal,
    If,
    Lambda,
    Let,
    Letrec,
    Local,
    Node,
    Seq,
    SetGlobal,
    SetLocal,
    Variable,
)

MACHINE = " (machine numbers)"  # what the names of typed procedures end with that are there once more, for such


def copied(code: Lambda) -> Lambda:
    """A procedure once more."""
    return _Copier().procedure(code)


class _Copier:
    def __init__(self) -> None:
        self.variables: dict[Variable, Variable] = {}

    def fresh(self, variable: Variable) -> Variable:
        made = Variable(variable.name, variable.place, variable.assigned, variable.annotation, variable.early)
        self.variables[variable] = made
        return made

    def of(self, node: Node) -> Node:
        place, of = node.place, self.of
        match node:
            case Local(variable=variable):
                return Local(place, self.variables.get(variable, variable))
            case SetLocal(variable=variable, value=value):
                return SetLocal(place, self.variables.get(variable, variable), of(value))
            case SetGlobal(cell=cell, value=value):
                return SetGlobal(place, cell, of(value))
            case DefineGlobal(cell=cell, value=value):
                return DefineGlobal(place, cell, of(value))
            case If(test=test, then=then, otherwise=otherwise):
                return If(place, of(test), of(then), of(otherwise))
            case Seq(items=items):
                return Seq(place, [of(item) for item in items])
            case Lambda():
                return self.procedure(node)
            case Let(variables=variables, values=values, body=body):
                made = [of(value) for value in values]
                return Let(place, [self.fresh(v) for v in variables], made, of(body))
            case Letrec(variables=variables, values=values, body=body):
                names = [self.fresh(v) for v in variables]
                return Letrec(place, names, [of(value) for value in values], of(body))
            case Call(procedure=procedure, args=args):
                return Call(place, of(procedure), [of(arg) for arg in args])
        return node  # it has no parts

    def procedure(self, code: Lambda) -> Lambda:
        clauses = []
        for clause in code.clauses:
            params = [self.fresh(v) for v in clause.params]
            rest = None if clause.rest is None else self.fresh(clause.rest)
            clauses.append(Clause(params, rest, self.of(clause.body), clause.returns, clause.returns_at))
        return Lambda(code.place, clauses, code.name, code.source, code.doc)
