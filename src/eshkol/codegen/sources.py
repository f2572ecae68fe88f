"""The text of a procedure's source: its lambda expression, and then names in it that mean something of their own.

The first list has names of primitives that stand for other things where the procedure was written: a program may have a
`square` of its own, and who reads a source as a formula (`diff`) must know. The second has all names that the program
around the procedure gives a meaning, local variables and macros among them: without them the source is not the
procedure. Names that the procedure binds itself, or only quotes, are in neither.

`note_names` looks at the procedures of a unit before they are simplified: every variable of the program is still there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from eshkol.lang import datum
from eshkol.lang.core import Clause, Global, Lambda, Let, Letrec, Local, SetGlobal, SetLocal, Variable
from eshkol.lang.datum import List, Symbol
from eshkol.lang.libraries import nodes
from eshkol.lang.meanings import CellBinding, FormBinding, MacroBinding
from eshkol.lang.scopes import Ambiguous, find_binding
from eshkol.lang.syntax import Syntax
from eshkol.runtime.scheme_table import row_places

STANDARD = ("(eshkol", "(scheme ", "(srfi ")


@dataclass(frozen=True, slots=True)
class Written:
    """A lambda expression, and the names in it that it has from the program around it."""

    expression: List
    outer: tuple[Symbol, ...]


def note_names(procedures: Iterable[Lambda]) -> None:
    """Beside the source of each, write down which names it has from outside."""
    for node in procedures:
        if type(node.source) is List:
            node.source = Written(node.source, tuple(_outer_names(node, node.source)))


def source_text(source: Any) -> str | None:
    """`(lambda (x) (square x))`, `(lambda (x) (square x)) (square) (square)`, `(lambda (x) (* k x)) () (k)`."""
    if source is None:
        return None
    if type(source) is not Written:
        return datum.text(source)
    primitives = row_places()
    own = [name for name in source.outer if name.name in primitives]
    lists = [own, source.outer] if source.outer else []
    return " ".join([datum.text(source.expression), *(datum.text(List(tuple(names))) for names in lists)])


def _outer_names(code: Lambda, source: List) -> list[Symbol]:
    variables: set[Symbol] = set()
    macros: set[Symbol] = set()
    todo = [item for item in source.items if isinstance(item, Syntax)]
    while todo:
        item = todo.pop()
        if type(item.content) is Symbol:
            if item.content not in variables and item.content not in macros:
                kind = _own_kind(item)
                if kind is not None:
                    (macros if kind == "macro" else variables).add(item.content)
        elif item.items is not None:
            todo += item.items
    if variables:
        used = _names_used_from_outside(code)
        variables = {name for name in variables if name.name in used}
    return sorted(variables | macros, key=lambda symbol: symbol.name)


def _own_kind(identifier: Syntax) -> str | None:
    """Whether the program gives a name its meaning, seen from outside of the lambda expression, and as what."""
    try:
        binding = find_binding(identifier.content, identifier.scopes)
    except Ambiguous:
        return "variable"
    if binding is None:
        return None
    meaning = binding[1]
    if isinstance(meaning, FormBinding):
        return None
    if isinstance(meaning, MacroBinding):  # of one that was stored no one knows whose it is: ours, if no primitive's
        own = meaning.frame is not None and not meaning.frame.namespace.name.startswith(STANDARD)
        return "macro" if own or identifier.content.name in row_places() else None
    if not isinstance(meaning, CellBinding):
        return "variable"
    return None if meaning.cell.primitive or meaning.cell.library.startswith(STANDARD) else "variable"


def _names_used_from_outside(code: Lambda) -> set[str]:
    """The names of variables that a procedure refers to and does not bind."""
    used: set[Variable] = set()
    bound: set[Variable] = set()
    found: set[str] = set()
    for node in nodes([code]):
        match node:
            case Local(variable=variable) | SetLocal(variable=variable):
                used.add(variable)
            case Global(cell=cell) | SetGlobal(cell=cell):
                found.add(cell.name)
            case Let(variables=variables) | Letrec(variables=variables):
                bound.update(variables)
            case Clause(params=params, rest=rest):
                bound.update(params)
                if rest is not None:
                    bound.add(rest)
    return found | {variable.name for variable in used - bound}
