"""Core forms kept beside the code that was made from them, so that a procedure can be compiled in another way later.

Comes in: the simplified forms of a unit and their `Analysis`. Goes out: bytes, and from these again the lambda
expressions by their numbers (`Procedure.number` in native/scheme/value.h), each with the variables that its closures
capture, in order. Places, documentation and sources are left out: whoever uses the forms gives up where something is
wrong, and the code that stands beside them says what.
"""

from __future__ import annotations

import json
import zlib
from typing import Any

from eshkol.codegen.functions import Analysis
from eshkol.codegen.nodes import Escape, Fix, LetValues, Prim
from eshkol.lang import core
from eshkol.lang.core import Call, Cell, Clause, Const, Global, If, Lambda, Let, Local, Node, Seq, Variable
from eshkol.lang.datum import UNSPECIFIED, List, Special, Symbol


class KeptConst(Const):
    """A constant that lies in the unit's memory: its number there, and `datum`, a symbol, or None for other data."""

    __slots__ = ("number",)

    def __init__(self, number: int, datum: Symbol | None) -> None:
        super().__init__(None, datum)
        self.number = number


class Forms:
    """The lambda expressions of a unit."""

    def __init__(self) -> None:
        self.lambdas: dict[int, Lambda] = {}
        self.captured: dict[Lambda, list[Variable]] = {}
        self.bound: dict[Variable, Lambda] = {}  # by Fix


# ---- to bytes --------------------------------------------------------------------------------------------------------


def encode(forms: list[Node], analysis: Analysis, constants: list[Any]) -> bytes:
    """The forms of a unit; nothing where no lambda expression is in them, or one is nested too deeply."""
    if not analysis.functions:
        return b""
    numbers = {id(constant): number for number, constant in enumerate(constants)}
    encoder = _Encoder(analysis, numbers)
    try:
        text = json.dumps([encoder.node(form) for form in forms], separators=(",", ":"))
    except RecursionError:
        return b""
    return zlib.compress(text.encode(), 1)


class _Encoder:
    def __init__(self, analysis: Analysis, constants: dict[int, int]) -> None:
        self.analysis = analysis
        self.constants = constants
        self.numbers: dict[Variable, int] = {}

    def variable(self, variable: Variable | None) -> int | None:
        """Its number, negative where it is assigned."""
        if variable is None:
            return None
        number = self.numbers.setdefault(variable, len(self.numbers) + 1)
        return -number if variable.assigned else number

    def cell(self, cell: Cell) -> list[Any]:
        return [cell.library, cell.name, int(cell.primitive), int(cell.sealed and not cell.assigned)]

    def constant(self, datum: Any) -> list[Any]:
        kind = type(datum)
        if kind in (bool, float) or (kind is int and -(1 << 63) <= datum < 1 << 63):
            return ["c", datum]
        if kind is List and not datum.items:
            return ["n"]
        if kind is Special:
            return ["u"]
        return ["m", self.constants.get(id(datum), -1), datum.name if kind is Symbol else None]

    def node(self, node: Node) -> list[Any]:
        match node:
            case Const(datum=datum):
                return self.constant(datum)
            case Local(variable=variable):
                return ["l", self.variable(variable)]
            case Global(cell=cell):
                return ["g", self.cell(cell)]
            case core.SetLocal(variable=variable, value=value):
                return ["s", self.variable(variable), self.node(value)]
            case core.SetGlobal(cell=cell, value=value):
                return ["S", self.cell(cell), self.node(value)]
            case core.DefineGlobal(cell=cell, value=value):
                return ["D", self.cell(cell), self.node(value)]
            case If(test=test, then=then, otherwise=otherwise):
                return ["i", self.node(test), self.node(then), self.node(otherwise)]
            case Seq(items=items):
                return ["q", *map(self.node, items)]
            case Lambda():
                return self.code(node)
            case Let(variables=variables, values=values, body=body):
                return ["L", list(map(self.variable, variables)), list(map(self.node, values)), self.node(body)]
            case Fix(variables=variables, lambdas=lambdas, body=body):
                return ["F", list(map(self.variable, variables)), list(map(self.node, lambdas)), self.node(body)]
            case Call(procedure=procedure, args=args):
                return ["C", self.node(procedure), *map(self.node, args)]
            case Escape(body=body, procedure=procedure):
                # whoever comes to the call gives up, but procedures that are made in the body may be asked for
                return ["q", ["C", self.node(procedure), ["n"]], self.node(body)]
            case Prim(name=name, args=args):
                return ["P", name, *map(self.node, args)]
            case LetValues(variables=variables, rest=rest, value=value, body=body):
                bound = list(map(self.variable, variables))
                return ["V", bound, self.variable(rest), self.node(value), self.node(body)]
        return ["x"]  # of the expander's own

    def code(self, code: Lambda) -> list[Any]:
        function = self.analysis.functions[code]
        clauses = [
            [list(map(self.variable, clause.params)), self.variable(clause.rest), self.node(clause.body)]
            for clause in code.clauses
        ]
        return ["f", function.number, code.name, list(map(self.variable, function.free)), clauses]


# ---- and back --------------------------------------------------------------------------------------------------------


def decode(kept: bytes) -> Forms:
    """The lambda expressions of a unit."""
    forms = Forms()
    if kept:
        decoder = _Decoder(forms)
        for form in json.loads(zlib.decompress(kept)):
            decoder.node(form)
    return forms


class _Decoder:
    def __init__(self, forms: Forms) -> None:
        self.forms = forms
        self.variables: dict[int, Variable] = {}

    def variable(self, number: int) -> Variable:
        found = self.variables.get(abs(number))
        if found is None:
            found = self.variables[abs(number)] = Variable(f"v{abs(number)}", assigned=number < 0)
        return found

    def cell(self, row: list[Any]) -> Cell:
        library, name, primitive, constant = row
        return Cell(library, name, primitive=bool(primitive), assigned=not constant)

    def nodes(self, rows: list[Any]) -> list[Node]:
        return [self.node(row) for row in rows]

    def node(self, row: list[Any]) -> Node:
        match row:
            case ["c", datum]:
                return Const(None, datum)
            case ["n"]:
                return Const(None, List())
            case ["m", number, name]:
                return KeptConst(number, None if name is None else Symbol(name))
            case ["l", number]:
                return Local(None, self.variable(number))
            case ["g", cell]:
                return Global(None, self.cell(cell))
            case ["s", number, value]:
                return core.SetLocal(None, self.variable(number), self.node(value))
            case ["S", cell, value]:
                return core.SetGlobal(None, self.cell(cell), self.node(value))
            case ["D", cell, value]:
                return core.DefineGlobal(None, self.cell(cell), self.node(value))
            case ["i", test, then, otherwise]:
                return If(None, self.node(test), self.node(then), self.node(otherwise))
            case ["q", *items]:
                return Seq(None, self.nodes(items))
            case ["f", number, name, free, clauses]:
                made = [
                    Clause(
                        [self.variable(p) for p in params], None if rest is None else self.variable(rest), self.node(b)
                    )
                    for params, rest, b in clauses
                ]
                code = self.forms.lambdas[number] = Lambda(None, made, name)
                self.forms.captured[code] = [self.variable(v) for v in free]
                return code
            case ["L", variables, values, body]:
                return Let(None, [self.variable(v) for v in variables], self.nodes(values), self.node(body))
            case ["F", variables, lambdas, body]:
                codes = [code for code in self.nodes(lambdas) if isinstance(code, Lambda)]
                names = [self.variable(v) for v in variables]
                self.forms.bound.update(zip(names, codes, strict=True))
                return Fix(None, names, codes, self.node(body))
            case ["C", procedure, *args]:
                return Call(None, self.node(procedure), self.nodes(args))
            case ["P", name, *args]:
                return Prim(None, name, self.nodes(args))
            case ["V", variables, rest, value, body]:
                bound = None if rest is None else self.variable(rest)
                return LetValues(None, [self.variable(v) for v in variables], bound, self.node(value), self.node(body))
        return Const(None, UNSPECIFIED)  # "u"; and what is the expander's, which no procedure that runs looks at
