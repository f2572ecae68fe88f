"""What a library says of its types to those who import it.

Comes in: a unit that was checked, and its checker. Goes out: annotations of its variables that mean something outside:
names that `define-type` gives are written out, and records are named by the library and the variable that has their
type. What makes, asks for, reads and changes records gets annotations, too. Importers read them (`reading.py`).
"""

from __future__ import annotations

from typing import Any

from eshkol.lang.core import Call, Cell, Global, Lambda
from eshkol.lang.datum import List, Symbol
from eshkol.types.checking import RECORD_READER, RECORD_TEST, RECORD_WRITER, Checker, primitive_of
from eshkol.types.reading import PREDICATE_OF, RECORD_OF

ANY, ARROW, REST = Symbol("Any"), Symbol("->"), Symbol("*")
RECORD_MAKER = "%record"


def export(checker: Checker) -> None:
    """Give the variables of a unit annotations for importers."""
    exporting = _Exporting(checker)
    for cell, value in checker.values.items():
        if cell.annotation is not None:
            cell.annotation = exporting.outside(cell.annotation, ())
        elif type(value) is Lambda and len(value.clauses) == 1:
            cell.annotation = exporting.procedure(value)


class _Exporting:
    def __init__(self, checker: Checker) -> None:
        self.types, self.records = checker.unit.types, dict(checker.unit.records)
        self.cells = set(checker.records)
        for name, cell in checker.unit.records.items():
            self.records.setdefault(name.strip("<>"), cell)

    def outside(self, datum: Any, within: tuple[str, ...]) -> Any:
        """An annotation as importers understand it; `within` are the names of types that it stands in."""
        if isinstance(datum, Symbol):
            if datum.name in self.types and datum.name not in within:
                inner = self.outside(self.types[datum.name][0], (*within, datum.name))
                return List((Symbol("Rec"), datum, inner)) if _names(inner, datum.name) else inner
            cell = self.records.get(datum.name)
            return datum if cell is None or datum.name in within else named(cell)
        if isinstance(datum, List):
            return List(tuple(self.outside(item, within) for item in datum.items))
        return datum

    def procedure(self, value: Lambda) -> Any:
        """The annotations of a procedure as one type; None where it has none."""
        clause = value.clauses[0]
        made = self._of_record(value)
        if made is not None:
            return made
        if clause.returns is None and all(p.annotation is None for p in clause.params):
            return None
        params = [ANY if p.annotation is None else self.outside(p.annotation, ()) for p in clause.params]
        rest = [] if clause.rest is None else [ANY, REST]
        return List((ARROW, *params, *rest, ANY if clause.returns is None else self.outside(clause.returns, ())))

    def _of_record(self, value: Lambda) -> Any:
        """The type of what `define-record-type` defines."""
        clause = value.clauses[0]
        body = clause.body
        name = primitive_of(body)
        if value.place is not None or not isinstance(body, Call):
            return None
        at = {RECORD_MAKER: 0, RECORD_READER: 1, RECORD_WRITER: 1, RECORD_TEST: 1}.get(name or "")
        kind = None if at is None or at >= len(body.args) else body.args[at]
        if type(kind) is not Global or kind.cell not in self.cells:
            return None
        record = named(kind.cell)
        types = [ANY if p.annotation is None else self.outside(p.annotation, ()) for p in clause.params]
        if name == RECORD_MAKER:
            return List((ARROW, *types, record))
        if name == RECORD_TEST:
            return List((Symbol(PREDICATE_OF), record))
        if name == RECORD_READER:
            return List((ARROW, record, ANY if clause.returns is None else self.outside(clause.returns, ())))
        return List((ARROW, record, types[1], Symbol("Void")))


def named(cell: Cell) -> List:
    """The records whose type a variable has, as those outside call them."""
    return List((Symbol(RECORD_OF), cell.library, Symbol(cell.name)))


def _names(datum: Any, name: str) -> bool:
    """Whether a name stands in an annotation."""
    if isinstance(datum, Symbol):
        return datum.name == name
    return isinstance(datum, List) and any(_names(item, name) for item in datum.items)
