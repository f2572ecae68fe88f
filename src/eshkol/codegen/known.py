"""Procedures of the library that take procedures, as templates (special.py), so that programs have them in place.

Comes in: a call of one of them. Goes out: its template, made from a text that says what the library's own definition
(lib/eshkol/lists.esk) does with one list. Wherever that ends with an error, the text goes through the list again by
the library's procedure, with a procedure that does nothing, so that the error is told by it: `again`. Should the list
be another by then, there is an error nevertheless. The texts are loops without frames, so that a trace does not tell of
procedures that no one wrote. `map` is not among them: as a loop it has to make its list twice, and the library's
recursion took less time.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from eshkol.codegen import PRIMITIVES
from eshkol.codegen.nodes import Fix, Prim
from eshkol.codegen.special import Template
from eshkol.lang.core import Call, Cell, Clause, Const, Global, If, Lambda, Let, Local, Node, Seq, Variable
from eshkol.lang.datum import UNSPECIFIED, List
from eshkol.lang.source import Place

LIBRARY = "(eshkol lists)"
_ITEMS = "(if (vector? list) (vector->list list) list)"
TEXTS = {  # the parameters, of which the first is called, with how many arguments, and the body
    "for-each": (
        ["f", "list"], 1,
        f"""(let loop ((rest {_ITEMS}))
              (if (pair? rest)
                  (begin (f (car rest)) (loop (cdr rest)))
                  (if (null? rest) nothing (begin (again values list) (car rest) nothing))))""",
    ),
    "filter": (
        ["f", "list"], 1,
        """(let loop ((rest list) (result nil))
             (if (pair? rest)
                 (let ((element (car rest))) (loop (cdr rest) (if (f element) (cons element result) result)))
                 (if (null? rest) (reverse result) (begin (again values list) (car rest) result))))""",
    ),
    "remove": (
        ["f", "list"], 1,
        """(let loop ((rest list) (result nil))
             (if (pair? rest)
                 (let ((element (car rest))) (loop (cdr rest) (if (f element) result (cons element result))))
                 (if (null? rest) (reverse result) (begin (again values list) (car rest) result))))""",
    ),
    "fold-left": (
        ["f", "initial", "list"], 2,
        """(let loop ((rest list) (result initial))
             (if (pair? rest)
                 (loop (cdr rest) (f result (car rest)))
                 (if (null? rest) result (begin (again cons initial list) (car rest) result))))""",
    ),
}  # fmt: skip
_TOKEN = re.compile(r"[()]|[^\s()]+")


def known(procedure: Global, count: int) -> Template | None:
    """The template for a call of a procedure with so many arguments."""
    cell = procedure.cell
    if cell.library != LIBRARY or cell.name not in TEXTS or cell.assigned or len(TEXTS[cell.name][0]) != count:
        return None
    names, taken, text = TEXTS[cell.name]
    params = [Variable(name) for name in names]
    body = _Text(procedure).node(_data(cell.name), dict(zip(names, params, strict=True)))
    return Template(Cell(LIBRARY, cell.name), Clause(params, None, body), {0: [taken] * text.count("(f ")})


@cache
def _data(name: str) -> Any:
    """A text as nested lists."""
    stack: list[list[Any]] = [[]]
    for token in _TOKEN.findall(TEXTS[name][2]):
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(token)
    return stack[0][0]


class _Text:
    """Makes core forms of such lists."""

    def __init__(self, procedure: Global) -> None:
        self.procedure = procedure
        self.place: Place | None = procedure.place

    def node(self, data: Any, env: dict[str, Variable]) -> Node:
        place = self.place
        match data:
            case "nil":
                return Const(place, List())
            case "nothing":
                return Const(place, UNSPECIFIED)
            case str():
                return Local(place, env[data]) if data in env else Global(place, Cell(PRIMITIVES, data, primitive=True))
            case ["if", *parts]:
                test, then, otherwise = (self.node(part, env) for part in parts)
                return If(place, test, then, otherwise)
            case ["begin", *parts]:
                return Seq(place, [self.node(part, env) for part in parts])
            case ["let", str(name), bindings, body]:
                first = [name, *(value for _, value in bindings)]
                return self.node(["fix", name, [variable for variable, _ in bindings], body, first], env)
            case ["fix", str(name), parameters, body, within]:
                loop, params = Variable(name), [Variable(parameter) for parameter in parameters]
                inner = {**env, name: loop, **{v.name: v for v in params}}
                code = Lambda(place, [Clause(params, None, self.node(body, inner))], name)
                return Fix(place, [loop], [code], self.node(within, {**env, name: loop}))
            case ["let", bindings, body]:
                variables = [Variable(name) for name, _ in bindings]
                values = [self.node(value, env) for _, value in bindings]
                return Let(place, variables, values, self.node(body, {**env, **{v.name: v for v in variables}}))
            case ["again", *args]:
                return Call(place, Global(place, self.procedure.cell), [self.node(arg, env) for arg in args])
            case [str(name), *args]:
                given = [self.node(arg, env) for arg in args]
                return Call(place, Local(place, env[name]), given) if name in env else Prim(place, name, given)
        raise AssertionError(f"{data} means nothing")
