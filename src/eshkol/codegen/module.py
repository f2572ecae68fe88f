"""The LLVM module of a unit, or of a part of one: functions, constants, cells, descriptors of procedures, debug places.

The emitter writes functions into it; `text` is the whole. Nothing in the text depends on where things lie in memory:
cells and primitives are outside symbols, named in `externals`, and constants are filled in by the loader, so the object
made of it can be kept on disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from eshkol.codegen.passing import registers
from eshkol.codegen.primitives import CHAR_ORDERS, PrimitiveTable
from eshkol.codegen.scopes import written_at
from eshkol.lang.core import Cell, Lambda
from eshkol.lang.files import file_name
from eshkol.lang.source import Place, Source
from eshkol.llvm.text import quoted

WORDS_2 = "ptr, i64, i64, i64, i64"
RUNTIME = {  # functions of the runtime that compiled code calls: result, parameters, attributes
    "esk_refill": ("ptr", "ptr, i64", "cold"),
    "esk_allocate": ("ptr", "ptr, i64, i32", ""),
    "esk_poll": ("void", "ptr", "cold"),
    "esk_make_ready": ("void", "ptr, ptr, i64", "cold"),
    "esk_wrong_arity": ("void", "ptr, ptr, i64", "cold noreturn"),
    "esk_unforeseen": ("void", "ptr, ptr", "cold noreturn"),
    "esk_not_procedure": ("void", "ptr, i64, i64", "cold noreturn"),
    "esk_unbound": ("void", "ptr, ptr", "cold noreturn"),
    "esk_used_early": ("void", "ptr, ptr", "cold noreturn"),
    "esk_wrong_values": ("void", "ptr, i64, i64, i64", "cold noreturn"),
    "esk_rest": ("%value", "ptr, i64, i64, ptr", ""),
    "esk_spread": ("i64", "ptr, ptr, i64, ptr", ""),
    "esk_spread_values": ("i64", "ptr, i64, i64, ptr", ""),
    "esk_python_called": ("%value", "ptr, ptr, ptr, i64", ""),
    "esk_call_cc": ("tailcc %value", "$context, ptr", ""),
    "esk_continue": ("void", "ptr, ptr, i64, i64", ""),
    "esk_less": ("i64", WORDS_2, "cold"),
    "esk_less_equal": ("i64", WORDS_2, "cold"),
    "esk_greater": ("i64", WORDS_2, "cold"),
    "esk_greater_equal": ("i64", WORDS_2, "cold"),
    "esk_number_equal": ("i64", WORDS_2, "cold"),
    **{function: ("i64", WORDS_2, "cold") for _, function in CHAR_ORDERS.values()},
    "esk_negate": ("%value", "ptr, i64, i64", "cold"),
    "esk_decides": ("i64", "ptr, i64, i64", ""),
    **{f"esk_{name}": ("%value", WORDS_2, "cold") for name in (
        "add", "subtract", "multiply", "divide", "quotient", "remainder", "modulo", "compared_equal", "compared_less",
        "compared_less_equal", "compared_greater", "compared_greater_equal")},
}  # fmt: skip

_BY_CONVENTION = {"0": "ptr", "1": "ptr, i64, i64", "2": WORDS_2, "N": "ptr, ptr, i64"}
INTRINSICS = """\
declare ptr @llvm.frameaddress.p0(i32)
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"""
# LLVM would turn the last call of a C function into a jump and forget to take our arguments off the stack
# and would put functions that it thinks are seldom run elsewhere, where lines.py does not look for them.
# Processors fetch code by 32 bytes: where a small procedure begins in them made 5 % of its time.
FUNCTION_ATTRIBUTES = '"frame-pointer"="all" "disable-tail-calls"="true" nounwind section ".text" align 32'


CLOSURES, PIECES = "closures", "pieces"  # of a unit in parts: its static closures, and the entries of its pieces

_ATTRIBUTES = re.compile(r"( alwaysinline| noinline cold(?: noreturn)?) \{$", re.MULTILINE)
_UNUSUAL = re.compile(r"[^A-Za-z0-9!$%&*/:<=>?^_~+.@-]")


def declared(name: str) -> str:
    """A function of the runtime, as LLVM is told of it."""
    result, parameters, attributes = RUNTIME[name]
    parameters = parameters.replace("$context", registers().context.removesuffix(" %ctx"))
    return f"declare {result} @{name}({parameters}) {attributes}".rstrip()


@dataclass
class UnitModule:
    """A module while it is written.

    One of a part (parts.py) refers to constants and static closures that stand in another object, and if it is written
    quickly, to inline functions there, too.
    """

    table: PrimitiveTable
    is_part: bool = False
    is_quick: bool = False
    functions: list[str] = field(default_factory=list)
    called: set[str] = field(default_factory=set)  # inline and outside functions
    constants: list[Any] = field(default_factory=list)
    cells: dict[Cell, str] = field(default_factory=dict)
    globals: list[str] = field(default_factory=list)
    metadata: list[str] = field(default_factory=list)
    _constant_numbers: dict[int, int] = field(default_factory=dict)
    _same_cells: dict[tuple[str, str], Cell] = field(default_factory=dict)
    _strings: dict[str, str] = field(default_factory=dict)
    _files: dict[Source | None, int] = field(default_factory=dict)
    _locations: dict[tuple[int, int, int], int] = field(default_factory=dict)
    _scopes: dict[tuple[int, int], int] = field(default_factory=dict)  # of a subprogram and a file
    _names: dict[str, int] = field(default_factory=dict)

    def unique(self, name: str) -> str:
        """A symbol for something of this name: short, and of characters that are spelled as they are."""
        name = _UNUSUAL.sub("_", name[:60])
        number = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}~{number}"

    def constant(self, datum: Any) -> int:
        """The number of a constant. The same object is the same constant."""
        found = self._constant_numbers.get(id(datum))
        if found is None:
            found = self._constant_numbers[id(datum)] = len(self.constants)
            self.constants.append(datum)
        return found

    def string(self, text: str) -> str:
        """The symbol of a C string."""
        found = self._strings.get(text)
        if found is None:
            found = self._strings[text] = f"@string.{len(self._strings)}"
            size = len(text.encode("utf-8", "surrogatepass")) + 1
            self.globals.append(f'{found} = private unnamed_addr constant [{size} x i8] c"{quoted(text)}\\00"')
        return found

    def symbol(self, function: str) -> str:
        """The symbol of an outside or inline function that is called."""
        return function

    def keeps(self, constant: Any) -> bool:
        """Whether a constant that could be written into the code is read from memory."""
        return False

    def cell(self, cell: Cell) -> str:
        cell = self._same_cells.setdefault((cell.library, cell.name), cell)  # the simplifier makes its own
        found = self.cells.get(cell)
        if found is None:
            found = self.cells[cell] = f"@cell.{len(self.cells)}"
        return found

    def cell_name(self, cell: Cell) -> str:
        """The symbol of a C string that is the name of a cell."""
        return self.string(cell.name)

    def procedure(self, code: Lambda, source: str | None, number: int, plain: bool) -> str:
        """The symbol of a procedure's descriptor."""
        symbol = f"@procedure.{len(self.globals)}"
        least = min((len(clause.params) for clause in code.clauses), default=0)
        most = -1 if any(c.rest for c in code.clauses) else max((len(c.params) for c in code.clauses), default=0)
        signature = _signature(code, code.name or "lambda")
        texts = {"name": code.name or None, "signature": signature, "source": source, "doc": code.doc,
                 "place": _where(code.place)}  # fmt: skip
        pointers = {key: "ptr null" if text is None else f"ptr {self.string(text)}" for key, text in texts.items()}
        self.globals.append(
            f"{symbol} = internal constant {{ ptr, ptr, i32, i32, ptr, ptr, ptr, ptr, ptr, i32, i32 }} "
            f"{{ {pointers['name']}, "
            f"{pointers['signature']}, i32 {least}, i32 {most}, ptr null, {pointers['source']}, {pointers['doc']}, "
            f"{pointers['place']}, ptr @constants, i32 {number}, i32 {int(plain)} }}"
        )
        return symbol

    def static_closure(self, entry: str, procedure: str) -> str:
        symbol = f"@closure.{len(self.globals)}"
        self.globals.append(f"{symbol} = internal global {self.closure_value(entry, procedure)}")
        return symbol

    def closure_value(self, entry: str, procedure: str) -> str:
        """A closure that captures nothing, as LLVM writes it, with its type."""
        head = self.table.layout["TAG_PROCEDURE"]
        return f"{{ i64, ptr, ptr }} {{ i64 {head}, ptr {entry}, ptr {procedure} }}"

    # ---- debug places -------------------------------------------------------------------------------------------

    def _meta(self, text: str) -> int:
        self.metadata.append(text)
        return len(self.metadata) + 9  # the first ten are named below

    def _file(self, source: Source | None) -> int:
        found = self._files.get(source)
        if found is None:
            name = quoted(file_name(source))
            found = self._files[source] = self._meta(f'!DIFile(filename: "{name}", directory: "")')
        return found

    def subprogram(self, name: str, place: Place | None) -> int:
        line = place.source.position(place.start)[0] if place is not None else 0
        file = self._file(place.source if place is not None else None)
        number = self._meta(
            f'distinct !DISubprogram(name: "{quoted(name)}", scope: !{file}, file: !{file}, line: {line}, type: !3, '
            f"scopeLine: {line}, spFlags: DISPFlagDefinition, unit: !2)"
        )
        self._scopes[number, file] = number
        return number

    def _scope(self, subprogram: int, file: int) -> int:
        """The code of a function that was written in this file."""
        found = self._scopes.get((subprogram, file))
        if found is None:
            found = self._scopes[subprogram, file] = self._meta(
                f"!DILexicalBlockFile(scope: !{subprogram}, file: !{file}, discriminator: 0)"
            )
        return found

    def location(self, place: Place | None, subprogram: int) -> int:
        line = column = 0
        scope = subprogram
        if place is not None:
            place = written_at(place)
            line, column = place.source.position(place.start)
            scope = self._scope(subprogram, self._file(place.source))
        return self.located(line, min(column, 65535), scope)

    def located(self, line: int, column: int, scope: int) -> int:
        """A line and a column of what a scope was written in."""
        key = (line, column, scope)
        found = self._locations.get(key)
        if found is None:
            found = self._locations[key] = self._meta(f"!DILocation(line: {line}, column: {column}, scope: !{scope})")
        return found

    # ---- the whole ----------------------------------------------------------------------------------------------

    def externals(self) -> list[str]:
        """Outside functions that the module calls."""
        return sorted(self._carried()[1])

    def _carried(self) -> tuple[list[str], set[str]]:
        return ([], self.called) if self.is_quick else self.table.carried(self.called)

    def _declarations(self, outside: set[str]) -> list[str]:
        return [self._declaration(name) for name in sorted(outside) if not name.startswith("llvm.")]

    def _declaration(self, name: str) -> str:
        if name in RUNTIME:
            return declared(name)
        if name in self.table.functions:
            return self.table.declared(name)
        row = self.table.rows[name.removeprefix("prim.")]
        return f'declare %value @"{quoted(name)}"({_BY_CONVENTION[row.convention]})'

    def _memory(self) -> list[str]:
        """Where constants and global variables lie."""
        cells = [f"{symbol} = external global %value" for symbol in self.cells.values()]
        if self.is_part:
            return [*(f"@{name} = external global i8" for name in ("constants", CLOSURES, PIECES)), *cells]
        return [f"@constants = global [{max(1, len(self.constants))} x %value] zeroinitializer", *cells]

    def text(self, name: str) -> str:
        """The module as LLVM text."""
        texts, outside = self._carried()
        # code that runs once calls them, and then they have frames, which errors walk
        texts = [_ATTRIBUTES.sub(rf"\1 {FUNCTION_ATTRIBUTES} {{", text, count=1) for text in texts]
        declarations = self._declarations(outside)
        file = self._file(None)
        metadata = [
            "!llvm.dbg.cu = !{!2}",
            "!llvm.module.flags = !{!6, !7}",
            '!0 = !{!"branch_weights", i32 2000, i32 1}',
            '!1 = !{!"branch_weights", i32 1, i32 2000}',
            f"!2 = distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, emissionKind: LineTablesOnly)",
            "!3 = !DISubroutineType(types: !4)",
            "!4 = !{null}",
            '!6 = !{i32 2, !"Debug Info Version", i32 3}',
            '!7 = !{i32 2, !"Dwarf Version", i32 4}',
            *(f"!{number} = {text}" for number, text in enumerate(self.metadata, 10)),
        ]
        parts: Iterable[Iterable[str]] = (
            [f"; {name}", "%value = type { i64, i64 }"], self._memory(), self.globals, declarations,
            [INTRINSICS], texts, self.functions, metadata,
        )  # fmt: skip
        return "\n".join(line for part in parts for line in part) + "\n"


def _signature(code: Lambda, name: str) -> str:
    def one(clause: Any) -> str:
        words = [name, *(v.name for v in clause.params)]
        return f"({' '.join(words)}{f' . {clause.rest.name}' if clause.rest else ''})"

    return " or ".join(one(clause) for clause in code.clauses)


def _where(place: Place | None) -> str | None:
    if place is None:
        return None
    line, column = place.source.position(place.start)
    return f"{file_name(place.source)}:{line}:{column}"
