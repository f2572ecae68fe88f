"""The module of a unit that runs once, written so that all units alike have the same text: LLVM compiles it once.

What is typed at a prompt is mostly a call of something known with some constants. In this text functions outside have
numbers instead of names, constants are read from memory, and places are numbers of lines of a file that there is not.
Goes out, beside the text: what the numbers stand for, which the loader fills in (units.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from eshkol.codegen.compiled import name_of, outside
from eshkol.codegen.module import UnitModule
from eshkol.codegen.scopes import written_at
from eshkol.lang import datum
from eshkol.lang.core import Cell
from eshkol.lang.files import file_name
from eshkol.lang.source import Place

_DECLARED = re.compile(r"(declare \S+) @(?:\"[^\"]+\"|[\w.]+)\((.*)\)(.*)")
_IN_MEMORY = (bool, int, float, datum.Char)


@dataclass
class AlikeModule(UnitModule):
    """A module without names, constants and places."""

    is_quick: bool = True
    places: list[tuple[str, int, int]] = field(default_factory=list)  # file, line and column, by the line in the text
    _functions: dict[str, int] = field(default_factory=dict)
    _lines: dict[tuple[str, int, int], int] = field(default_factory=dict)

    def symbol(self, function: str) -> str:
        return outside(self._functions.setdefault(function, len(self._functions)))

    def externals(self) -> list[str]:
        return list(self._functions)

    def keeps(self, constant: Any) -> bool:
        return type(constant) in _IN_MEMORY

    def constant(self, datum: Any) -> int:
        if self.keeps(datum):  # each has a place of its own: (f 1 1) is like (f 1 2)
            self.constants.append(datum)
            return len(self.constants) - 1
        return super().constant(datum)

    def cell_name(self, cell: Cell) -> str:
        found = f"@{name_of(self.cell(cell)[1:])}"
        declaration = f"{found} = external global i8"
        if declaration not in self.globals:
            self.globals.append(declaration)
        return found

    def subprogram(self, name: str, place: Place | None) -> int:
        return super().subprogram("", None)

    def location(self, place: Place | None, subprogram: int) -> int:
        line = 0
        if place is not None:
            place = written_at(place)
            key = (file_name(place.source), *place.source.position(place.start))
            if key not in self._lines:
                self.places.append(key)
            line = self._lines.setdefault(key, len(self.places))
        return self.located(line, 0, subprogram)

    def _declarations(self, outside: set[str]) -> list[str]:
        return [self._numbered(name) for name in self._functions]

    def _numbered(self, name: str) -> str:
        """The declaration of a function, without its name and those of its parameters."""
        found = _DECLARED.fullmatch(self._declaration(name))
        assert found is not None, name
        types = ", ".join(parameter.split()[0] for parameter in found[2].split(", "))
        return f'{found[1]} @"{self.symbol(name)}"({types}){found[3]}'
