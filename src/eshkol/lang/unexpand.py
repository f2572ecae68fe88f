"""Core forms as Scheme data again, for people: `eshkol expand` and `(expand form)` show them.

Two local variables of one name that are visible in the same place get numbers, so the result means what the core forms
mean. What is written is Scheme, but for `define-record-type` and its kin, which have become calls of %primitives.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import count

from eshkol.lang.core import (
    Call,
    Clause,
    Const,
    DefineGlobal,
    Global,
    If,
    Lambda,
    Let,
    Letrec,
    Local,
    Node,
    Seq,
    SetGlobal,
    SetLocal,
    SyntaxConst,
    Unit,
    Variable,
)
from eshkol.lang.datum import UNSPECIFIED, Datum, List, Special, Symbol, Vector
from eshkol.lang.deep import run_deep
from eshkol.lang.libraries import cells_used
from eshkol.lang.syntax import Syntax, to_datum


def unit_datum(unit: Unit) -> Datum:
    """The forms of a unit; several as a begin."""
    forms = unit_data(unit)
    return forms[0] if len(forms) == 1 else List((Symbol("begin"), *forms))


def unit_data(unit: Unit) -> list[Datum]:
    """The forms of a unit."""
    return run_deep(lambda: [_FormWriter(unit.forms).form(form) for form in unit.forms])


def _form(word: str, *rest: Datum) -> List:
    return List((Symbol(word), *rest))


class _FormWriter:
    def __init__(self, forms: Iterable[Node]) -> None:
        self.names: dict[Variable, Symbol] = {}
        # how many variables around here are written so; those of the top level are everywhere
        self.visible = {cell.name: 1 for cell in cells_used(forms)}

    def bind(self, variables: Iterable[Variable]) -> list[Symbol]:
        made = []
        for variable in variables:
            name = variable.name
            if self.visible.get(name):
                name = next(other for n in count(1) if not self.visible.get(other := f"{variable.name}.{n}"))
            self.visible[name] = self.visible.get(name, 0) + 1
            made.append(Symbol(name))
            self.names[variable] = made[-1]
        return made

    def release(self, symbols: Iterable[Symbol]) -> None:
        for symbol in symbols:
            self.visible[symbol.name] -= 1

    def form(self, node: Node) -> Datum:
        match node:
            case Const(datum=datum):
                return _constant(datum)
            case SyntaxConst(content=content):
                return _form("syntax", to_datum(content if isinstance(content, Syntax) else content.syntax))
            case Local(variable=variable):
                return self.names[variable]
            case Global(cell=cell):
                return Symbol(cell.name)
            case SetLocal(variable=variable, value=value):
                return _form("set!", self.names[variable], self.form(value))
            case SetGlobal(cell=cell, value=value):
                return _form("set!", Symbol(cell.name), self.form(value))
            case DefineGlobal(cell=cell, value=value):
                return self.definition(Symbol(cell.name), value)
            case If(test=test, then=then, otherwise=otherwise):
                parts = [self.form(test), self.form(then)]
                if not (isinstance(otherwise, Const) and otherwise.datum is UNSPECIFIED):
                    parts.append(self.form(otherwise))
                return _form("if", *parts)
            case Seq(items=items):
                return _form("begin", *map(self.form, items))
            case Lambda(clauses=[clause]):
                formals, body = self.clause(clause)
                return _form("lambda", formals, *body)
            case Lambda(clauses=clauses):
                return _form("case-lambda", *(List((formals, *body)) for formals, body in map(self.clause, clauses)))
            case Let(variables=variables, values=values, body=body):
                given = [self.form(value) for value in values]
                names = self.bind(variables)
                return self.binding("let", names, given, body)
            case Letrec(variables=variables, values=values, body=body):
                names = self.bind(variables)
                return self.binding("letrec*", names, [self.form(value) for value in values], body)
            case Call(procedure=procedure, args=args):
                return List([self.form(procedure), *map(self.form, args)])
        raise TypeError(f"no core form: {node!r}")

    def binding(self, word: str, names: list[Symbol], values: list[Datum], body: Node) -> Datum:
        pairs = List(List((name, value)) for name, value in zip(names, values, strict=True))
        made = _form(word, pairs, *self.body(body))
        self.release(names)
        return made

    def definition(self, name: Symbol, value: Node) -> Datum:
        if isinstance(value, Lambda) and len(value.clauses) == 1:
            formals, body = self.clause(value.clauses[0])
            header = List((name, *formals.items), formals.tail) if type(formals) is List else List((name,), formals)
            return _form("define", header, *body)
        return _form("define", name, self.form(value))

    def clause(self, clause: Clause) -> tuple[Datum, list[Datum]]:
        names = self.bind([*clause.params, *(() if clause.rest is None else (clause.rest,))])
        formals: Datum = List(names)
        if clause.rest is not None:
            formals = List(names[:-1], names[-1]) if clause.params else names[-1]
        body = self.body(clause.body)
        self.release(names)
        return formals, body

    def body(self, node: Node) -> list[Datum]:
        return [self.form(item) for item in node.items] if isinstance(node, Seq) else [self.form(node)]


def _constant(datum: Datum) -> Datum:
    if isinstance(datum, (Symbol, List, Vector)) and not (isinstance(datum, Vector) and not datum.items):
        return _form("quote", datum)
    if isinstance(datum, Special):
        return List((Symbol("if"), False, False)) if datum is UNSPECIFIED else datum
    return datum
