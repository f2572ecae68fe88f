"""Addresses back to places: which function and which line of a program a return address lies in.

Comes in: the object of a unit, whose line table and symbols LLVM wrote (ELF, DWARF 4). Goes out: a `LineTable`. It is
read only when an error is to be shown.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache

REMEMBERED = 64  # objects whose lines are kept


@dataclass(frozen=True, slots=True)
class Site:
    """A place in a program, as the line table knows it."""

    file: str
    line: int
    column: int
    procedures: tuple[str, ...] = ()  # around it, the outermost first; none at top level
    unit: str = ""  # what the code belongs to: a library, a program, a prompt


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    kind: int
    offset: int
    size: int
    link: int
    info: int


class LineTable:
    """The lines of one object, by offset in its code."""

    def __init__(self, code: bytes) -> None:
        self._code = code
        self._sections = _sections(code)
        self.symbols: dict[str, int] = {}
        self._functions: list[tuple[int, int, str]] = []
        self._read_symbols()
        self._rows: list[tuple[int, str, int, int]] = []
        for section in self._sections:
            if section.name == ".debug_line":
                self._read_lines(section)
        self._rows.sort(key=lambda row: row[0])
        self._starts = [row[0] for row in self._rows]

    def find(self, offset: int) -> Site | None:
        """The call that returns to this offset."""
        at = offset - 1
        place = bisect_right(self._functions, (at, 1 << 62, "")) - 1
        if place < 0:
            return None
        start, size, _ = self._functions[place]
        if at >= start + size:
            return None
        row = bisect_right(self._starts, at) - 1
        while row > 0 and self._rows[row][2] == 0 and self._starts[row - 1] >= start:
            row -= 1  # code without a place of its own belongs to what is before it
        if row >= 0 and self._starts[row] < start:
            return None  # a function that no one wrote
        _, file, line, column = self._rows[row] if row >= 0 else (0, "?", 0, 0)
        return Site(file, line, column)

    def function_at(self, offset: int) -> tuple[int, int, str] | None:
        """The function that has the code at an offset: where it begins, its size, its symbol."""
        return next((f for f in self._functions if f[0] <= offset < f[0] + f[1]), None)

    def places(self) -> dict[str, tuple[int, int]]:
        """Where all functions are, and their sizes."""
        return {name: (start, size) for start, size, name in self._functions}

    def ranges(self) -> list[tuple[int, Site | None]]:
        """Where a function, or the code of another line of it, begins, and the line; None where all code ends."""
        found: list[tuple[int, Site | None]] = []
        for start, size, _ in self._functions:
            first, last = (bisect_right(self._starts, place) for place in (start, start + size - 1))
            found += [(place, self.find(place + 1)) for place in sorted({start, *self._starts[first:last]})]
        end = max((start + size for start, size, _ in self._functions), default=0)
        return [*found, (end, None)]

    def _read_symbols(self) -> None:
        text = next(i for i, s in enumerate(self._sections) if s.name == ".text")
        table = next(s for s in self._sections if s.kind == 2)
        names = self._sections[table.link]
        for at in range(table.offset, table.offset + table.size, 24):
            name, info, _, section, value, size = struct.unpack_from("<IBBHQQ", self._code, at)
            if section == text and info & 15 == 2:
                text_name = _string(self._code, names.offset + name)
                self.symbols[text_name] = value
                self._functions.append((value, size, text_name))
        self._functions.sort()

    def _relocations(self, section: _Section) -> dict[int, int]:
        """What stands at places that the linker fills in: offsets in the code."""
        number = self._sections.index(section)
        found = {}
        for other in self._sections:
            if other.kind == 4 and other.info == number:
                symbols = self._sections[other.link]
                for at in range(other.offset, other.offset + other.size, 24):
                    place, info, addend = struct.unpack_from("<QQq", self._code, at)
                    value = struct.unpack_from("<Q", self._code, symbols.offset + 24 * (info >> 32) + 8)[0]
                    found[place] = value + addend
        return found

    def _read_lines(self, section: _Section) -> None:
        relocations = self._relocations(section)
        data = self._code[section.offset : section.offset + section.size]
        at = 0
        while at + 4 <= len(data):
            length = int.from_bytes(data[at : at + 4], "little")
            if int.from_bytes(data[at + 4 : at + 6], "little") == 4:
                _Program(data, at, at + 4 + length, relocations, self._rows).run()
            at += 4 + length


@lru_cache(REMEMBERED)
def table_of(code: bytes) -> LineTable:
    """The lines of an object, which may be that of several units (alike.py)."""
    return LineTable(code)


class _Program:
    """A line number program (DWARF 4, 6.2)."""

    def __init__(
        self, data: bytes, start: int, end: int, relocations: dict[int, int], rows: list[tuple[int, str, int, int]]
    ) -> None:
        self.data, self.end, self.relocations, self.rows = data, end, relocations, rows
        header_length = int.from_bytes(data[start + 6 : start + 10], "little")
        self.at = start + 10 + header_length
        at = start + 10
        self.least = data[at]
        self.line_base = struct.unpack_from("<b", data, at + 3)[0]
        self.line_range, self.opcode_base = data[at + 4], data[at + 5]
        self.lengths = data[at + 6 : at + 5 + self.opcode_base]
        at += 5 + self.opcode_base
        folders = [""]
        while data[at]:
            end_of_name = data.index(0, at)
            folders.append(data[at:end_of_name].decode("utf-8", "replace") + "/")
            at = end_of_name + 1
        at += 1
        self.files = ["?"]
        while data[at]:
            end_of_name = data.index(0, at)
            self.at, at_code = end_of_name + 1, self.at
            folder = self.unsigned()
            self.files.append(folders[folder] + data[at:end_of_name].decode("utf-8", "replace"))
            self.unsigned()
            self.unsigned()
            at, self.at = self.at, at_code

    def unsigned(self) -> int:
        result = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            result |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return result

    def signed(self) -> int:
        start = self.at
        result = self.unsigned()
        bits = 7 * (self.at - start)
        return result - (1 << bits) if result >> (bits - 1) else result

    def run(self) -> None:
        address, file, line, column = 0, 1, 1, 0
        while self.at < self.end:
            opcode = self.data[self.at]
            self.at += 1
            if opcode >= self.opcode_base:
                extra = opcode - self.opcode_base
                address += extra // self.line_range * self.least
                line += self.line_base + extra % self.line_range
                self.emit(address, file, line, column)
            elif opcode == 0:
                length = self.unsigned()
                kind, after = self.data[self.at], self.at + length
                if kind == 1:
                    self.emit(address, file, 0, 0)
                    address, file, line, column = 0, 1, 1, 0
                elif kind == 2:
                    address = self.relocations.get(self.at + 1, 0)
                self.at = after
            elif opcode == 1:
                self.emit(address, file, line, column)
            elif opcode == 2:
                address += self.unsigned() * self.least
            elif opcode == 3:
                line += self.signed()
            elif opcode == 4:
                file = self.unsigned()
            elif opcode == 5:
                column = self.unsigned()
            elif opcode == 8:
                address += (255 - self.opcode_base) // self.line_range * self.least
            elif opcode == 9:
                address += int.from_bytes(self.data[self.at : self.at + 2], "little")
                self.at += 2
            else:
                for _ in range(self.lengths[opcode - 1]):
                    self.unsigned()

    def emit(self, address: int, file: int, line: int, column: int) -> None:
        self.rows.append((address, self.files[file] if file < len(self.files) else "?", line, column))


def _string(code: bytes, at: int) -> str:
    return code[at : code.index(0, at)].decode("utf-8", "replace")


def _sections(code: bytes) -> list[_Section]:
    if code[:4] != b"\x7fELF" or code[4] != 2:
        return []
    offset = struct.unpack_from("<Q", code, 0x28)[0]
    size, count, names = struct.unpack_from("<HHH", code, 0x3A)
    heads = [struct.unpack_from("<IIQQQQIIQQ", code, offset + i * size) for i in range(count)]
    base = heads[names][4]
    return [_Section(_string(code, base + h[0]), h[1], h[4], h[5], h[6], h[7]) for h in heads]
