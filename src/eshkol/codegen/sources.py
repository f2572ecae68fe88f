"""The text of a procedure's source: its lambda expression, and then names in it that mean something of their own.

The first list has names of primitives that stand for other things where the procedure was written: a program may have a
`square` of its own, and who reads a source as a formula (`diff`) must know. The second has all names that the program
around the procedure gives a meaning, local variables among them: without them the source is not the procedure.
"""

from __future__ import annotations

from typing import Any

from eshkol.lang import datum
from eshkol.lang.datum import List, Symbol
from eshkol.lang.scopes import Ambiguous, CellBinding, FormBinding, MacroBinding, find_binding
from eshkol.lang.syntax import Syntax
from eshkol.runtime.scheme_table import row_places

STANDARD = ("(eshkol", "(scheme ", "(srfi ")


def source_text(source: Any) -> str | None:
    """`(lambda (x) (square x))`, `(lambda (x) (square x)) (square) (square)`, `(lambda (x) (* k x)) () (k)`."""
    if source is None:
        return None
    own, outer = _names(source)
    lists = [own, outer] if outer else [own] if own else []
    return " ".join([datum.text(source), *(datum.text(List(tuple(names))) for names in lists)])


def _names(source: List) -> tuple[list[Symbol], list[Symbol]]:
    primitives, outer = row_places(), set()
    todo = [item for item in source.items if isinstance(item, Syntax)]
    while todo:
        item = todo.pop()
        if type(item.content) is Symbol:
            if item.content not in outer and _is_own(item):
                outer.add(item.content)
        elif item.items is not None:
            todo += item.items
    names = sorted(outer, key=lambda symbol: symbol.name)
    return [name for name in names if name.name in primitives], names


def _is_own(identifier: Syntax) -> bool:
    try:
        binding = find_binding(identifier.content, identifier.scopes)
    except Ambiguous:
        return True
    if binding is None:
        return False
    meaning = binding[1]
    if isinstance(meaning, FormBinding | MacroBinding):  # nobody knows whose a macro is: ours, if no primitive's
        return identifier.content.name in row_places()
    if not isinstance(meaning, CellBinding):
        return True
    return not (meaning.cell.primitive or meaning.cell.library.startswith(STANDARD))
