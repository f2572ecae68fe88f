"""Objects of WebAssembly, as LLVM writes them, made into modules that an engine loads.

Comes in: one relocatable object that needs nothing but memory. Goes out: a module that exports the functions asked for,
and the bytes of its data. The format is that of the core specification; what objects have besides (symbols and
relocations) is described in WebAssembly's tool conventions.

LLVM writes code that is independent of its place: data is addressed from the global `__memory_base` on, which the host
gives with the memory (`__linear_memory`) and the stack (`__stack_pointer`). All other numbers in an object are those
that hold if it is alone. So nothing has to be moved: data is taken out, for the host to put where it likes, exports are
put in, and what only linkers read is left away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from eshkol.errors import BackendError

HEADER = b"\0asm\x01\0\0\0"
CUSTOM, IMPORT, EXPORT, ELEMENT, CODE, DATA, DATA_COUNT = 0, 2, 7, 9, 10, 11, 12
LINKING, DATA_RELOCATIONS = "linking", "reloc.DATA"
SEGMENT_INFO, SYMBOL_TABLE = 5, 8  # parts of the section "linking"
FUNCTION, TABLE, MEMORY, GLOBAL, TAG = range(5)  # what is imported
DATA_SYMBOL, SECTION_SYMBOL = 1, 3
UNDEFINED, NAMED = 0x10, 0x40  # flags of symbols
I32_CONST, GLOBAL_GET, END = 0x41, 0x23, 0x0B
DATA_ALIGNMENT = 16  # which no segment exceeds
MODULE = "env"


@dataclass(frozen=True)
class WasmCode:
    """A module, and the data that lies where its `__memory_base` is."""

    module: bytes
    data: bytes


class Reader:
    """Numbers and names, one after another."""

    def __init__(self, code: bytes, at: int = 0, end: int | None = None) -> None:
        self.code, self.at, self.end = code, at, len(code) if end is None else end

    def byte(self) -> int:
        self.at += 1
        return self.code[self.at - 1]

    def number(self) -> int:
        """An unsigned LEB128."""
        found = shift = 0
        while True:
            byte = self.byte()
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found

    def signed(self) -> int:
        """A signed LEB128."""
        found = shift = 0
        while True:
            byte = self.byte()
            found |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return found - (1 << shift) if byte & 0x40 else found

    def bytes(self) -> bytes:
        size = self.number()
        self.at += size
        return self.code[self.at - size : self.at]

    def name(self) -> str:
        return self.bytes().decode()

    def more(self) -> bool:
        return self.at < self.end


def number(value: int) -> bytes:
    """A number as unsigned LEB128."""
    found = bytearray()
    while value >= 0x80:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)


def named(text: str) -> bytes:
    raw = text.encode()
    return number(len(raw)) + raw


def sections(code: bytes) -> Iterator[tuple[int, Reader]]:
    """The sections of a module, by their numbers."""
    if code[: len(HEADER)] != HEADER:
        raise BackendError("this is no WebAssembly")
    reader = Reader(code, len(HEADER))
    while reader.more():
        kind, size = reader.byte(), reader.number()
        yield kind, Reader(code, reader.at, reader.at + size)
        reader.at += size


def imports(code: bytes) -> Iterator[tuple[str, int]]:
    """What a module imports: names, and what kind of thing each is."""
    for kind, reader in sections(code):
        for _ in range(reader.number() if kind == IMPORT else 0):
            reader.name()
            name, what = reader.name(), reader.byte()
            if what == FUNCTION:
                reader.number()
            elif what in (TABLE, MEMORY):
                if what == TABLE:
                    reader.byte()
                if reader.byte() & 1:
                    reader.number()
                reader.number()
            elif what == GLOBAL:
                reader.at += 2
            else:
                raise BackendError(f"compiled code imports {name}, of a kind that is not known")
            yield name, what


def lacking(code: bytes) -> list[str]:
    """The functions that an object calls and does not have."""
    return [name for name, kind in imports(code) if kind == FUNCTION]


def linked(code: bytes, exported: Sequence[str]) -> WasmCode:
    """A module of an object, that exports these functions."""
    parts: list[tuple[int, bytes]] = []
    functions: dict[str, int] = {}
    data = b""
    for kind, reader in sections(code):
        content = reader.code[reader.at : reader.end]
        if kind == CUSTOM:
            name = reader.name()
            if name == DATA_RELOCATIONS:
                raise BackendError("compiled code has addresses in its data, which nothing puts there")
            if name == LINKING:
                functions = _functions(reader)
        elif kind == ELEMENT:
            raise BackendError("compiled code calls functions by their addresses")
        elif kind == DATA:
            data = _data(reader)
        elif kind != DATA_COUNT:
            parts.append((kind, content))
    for name in exported:
        if name not in functions:
            raise BackendError(f"compiled code has no function {name}")
    table = number(len(exported)) + b"".join(named(n) + bytes([FUNCTION]) + number(functions[n]) for n in exported)
    parts.append((EXPORT, table))
    parts.sort(key=lambda part: part[0])  # the order that the specification wants, of those that there are
    return WasmCode(HEADER + b"".join(bytes([k]) + number(len(c)) + c for k, c in parts), data)


def _functions(reader: Reader) -> dict[str, int]:
    """The functions that an object defines, by name, from its table of symbols."""
    found: dict[str, int] = {}
    reader.number()  # the version
    while reader.more():
        kind, size = reader.byte(), reader.number()
        end = reader.at + size
        for _ in range(reader.number() if kind == SYMBOL_TABLE else 0):
            what, flags = reader.byte(), reader.number()
            if what == DATA_SYMBOL:
                reader.name()
                if not flags & UNDEFINED:
                    reader.number(), reader.number(), reader.number()
                continue
            index = reader.number()
            if what == SECTION_SYMBOL:
                continue
            name = reader.name() if not flags & UNDEFINED or flags & NAMED else ""
            if what == FUNCTION and not flags & UNDEFINED:
                found[name] = index
        reader.at = end
    return found


def _data(reader: Reader) -> bytes:
    """The segments of data, each where the code expects it."""
    found = bytearray()
    for _ in range(reader.number()):
        if reader.number() != 0 or reader.byte() != I32_CONST:
            raise BackendError("compiled code has data at a place that is not known")
        start = reader.signed()
        if reader.byte() != END:
            raise BackendError("compiled code has data at a place that is computed")
        segment = reader.bytes()
        found.extend(bytes(max(0, start + len(segment) - len(found))))
        found[start : start + len(segment)] = segment
    return bytes(found)
