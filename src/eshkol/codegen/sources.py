"""The text of a procedure's source: its lambda expression, and then the names in it that mean something of their own.

Those are names of primitives that stand for other things where the procedure was written: a program may have a `square`
of its own. Who reads a source as a formula (`diff`) must know.
"""

from __future__ import annotations

from typing import Any

from eshkol.lang import datum
from eshkol.lang.datum import List, Symbol
from eshkol.lang.scopes import Ambiguous, CellBinding, find_binding
from eshkol.lang.syntax import Syntax
from eshkol.runtime.scheme_table import row_places


def source_text(source: Any) -> str | None:
    """`(lambda (x) (square x))`, or `(lambda (x) (square x)) (square)`."""
    if source is None:
        return None
    own = _own_names(source)
    return f"{datum.text(source)} {datum.text(List(tuple(own)))}" if own else datum.text(source)


def _own_names(source: List) -> list[Symbol]:
    primitives, found = row_places(), set()
    todo = [item for item in source.items if isinstance(item, Syntax)]
    while todo:
        item = todo.pop()
        if type(item.content) is Symbol:
            if item.content.name in primitives and item.content not in found and _is_own(item):
                found.add(item.content)
        elif item.items is not None:
            todo += item.items
    return sorted(found, key=lambda symbol: symbol.name)


def _is_own(identifier: Syntax) -> bool:
    try:
        binding = find_binding(identifier.content, identifier.scopes)
    except Ambiguous:
        return True
    if binding is None:
        return False
    meaning = binding[1]
    if not isinstance(meaning, CellBinding):
        return True
    return not (meaning.cell.primitive or meaning.cell.library.startswith(("(eshkol", "(scheme ")))
