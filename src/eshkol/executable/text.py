"""A whole program as LLVM text: the module of its unit, and the data by which the runtime begins it.

Comes in: a unit of core forms. Goes out: LLVM text whose outside names are functions of the C runtime, and the texts of
its constants, which the runtime's reader makes when the program begins. Global variables and constants lie in one
array, where the collector looks; primitives whose values are used have static procedures here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from eshkol.codegen.compiling import constant_texts, simplify_unit, table
from eshkol.codegen.emit import emit_unit
from eshkol.codegen.functions import Analysis
from eshkol.codegen.inference import Inference
from eshkol.codegen.module import UnitModule
from eshkol.codegen.shared import Shared
from eshkol.codegen.sources import source_text
from eshkol.errors import BadSyntax
from eshkol.lang.core import Cell, Unit
from eshkol.llvm.text import quoted
from eshkol.runtime.scheme_table import primitive_symbols
from eshkol.support.collector import without_collector

PREFIX = "esk_program_"  # of what the object of a program defines
_PRIMITIVE = re.compile(r'@"prim\.((?:[^"\\]|\\.)+)"')
_ESCAPED = re.compile(r"\\([0-9A-Fa-f]{2})")


@dataclass(frozen=True)
class ProgramText:
    """A program as LLVM text, and what belongs to it."""

    text: str
    scopes: str  # which procedure stood where (codegen/scopes.py)
    constants: list[str]
    values: int  # constants and global variables
    cells: dict[Cell, int]  # where those lie that are no primitives, among the values


class ProgramModule(UnitModule):
    """The module of a unit that no one loads: cells and primitives are its own."""

    def __init__(self) -> None:
        super().__init__(table())

    @property
    def variables(self) -> list[Cell]:
        """Cells that have a place among the values, behind the constants."""
        return [cell for cell in self.cells if not cell.primitive]

    def _memory(self) -> list[str]:
        layout, constants = self.table.layout, len(self.constants)
        variables = self.variables
        undefined = f"%value {{ i64 {layout['TAG_SPECIAL']}, i64 {layout['SPECIAL_UNDEFINED']} }}"
        count = max(1, constants + len(variables))
        items = ["%value zeroinitializer"] * (count - len(variables)) + [undefined] * len(variables)
        lines = [f"@constants = global [{count} x %value] [{', '.join(items)}]"]
        for number, cell in enumerate(variables, count - len(variables)):
            lines.append(
                f"{self.cells[cell]} = internal alias %value, "
                f"getelementptr ([{count} x %value], ptr @constants, i64 0, i64 {number})"
            )
        for cell in self.cells:
            if cell.primitive:
                lines += self._primitive(cell)
        return lines

    def _primitive(self, cell: Cell) -> list[str]:
        """The procedure that a primitive is, and the cell that holds it."""
        row, number, closure = self.table.rows[cell.name], len(self.globals), f'@"primitive.{quoted(cell.name)}"'
        function = "null" if row.is_entry else f'@"prim.{quoted(cell.name)}"'
        entry = f'@"entry.{quoted(cell.name if row.is_entry else row.convention)}"'
        name, signature, doc = (self.string(text) for text in (row.name, row.signature, row.doc))
        return [
            f"@row.{number} = internal constant {{ ptr, ptr, i32, i32, ptr, ptr, ptr, ptr, ptr, i32, i32 }} "
            f"{{ ptr {name}, ptr {signature}, i32 {row.min}, i32 {row.max}, ptr {function}, ptr null, ptr {doc}, "
            f"ptr null, ptr null, i32 0, i32 0 }}",
            f"{closure} = internal global {self.closure_value(entry, f'@row.{number}')}",
            f"{self.cells[cell]} = internal constant %value "
            f"{{ i64 {self.table.tags['PROCEDURE']}, i64 ptrtoint (ptr {closure} to i64) }}",
        ]

    def _declaration(self, name: str) -> str:
        if name.startswith("entry."):
            return f'declare void @"{quoted(name)}"()'
        return super()._declaration(name)

    def text(self, name: str) -> str:
        for cell in self.cells:  # before it is asked what is called
            if cell.primitive:
                row = self.table.rows[cell.name]
                self.called.add(f"entry.{cell.name if row.is_entry else row.convention}")
                if not row.is_entry:
                    self.called.add(f"prim.{cell.name}")
        return with_symbols(super().text(name))


def with_symbols(text: str) -> str:
    """LLVM text with primitives by the names that the C runtime of executables has for them."""
    symbols = primitive_symbols()

    def named(found: re.Match[str]) -> str:
        name = _ESCAPED.sub(lambda code: chr(int(code[1], 16)), found[1])
        return f"@esk_primitive_{symbols[name]}"

    return _PRIMITIVE.sub(named, text)


@without_collector()
def program_text(unit: Unit) -> ProgramText:
    """A unit as LLVM text."""
    scopes, module = simplify_unit(unit), ProgramModule()
    analysis = Analysis.of(unit.forms)
    inferred = Inference(unit.forms, analysis, table(), unit.private)
    emit_unit(Shared(module, analysis, unit.cells, source_text, None, inferred), unit.forms, unit.name, False)
    constants, foreign = constant_texts(module.constants)
    if foreign:
        raise BadSyntax(f"{unit.name} has syntax objects as values, which only the compiler can hold")
    text = module.text(unit.name)
    first = max(1, len(constants) + len(module.variables)) - len(module.variables)
    cells = {cell: number for number, cell in enumerate(module.variables, first)}
    return ProgramText(text, scopes, [c or "#f" for c in constants], first + len(cells), cells)
