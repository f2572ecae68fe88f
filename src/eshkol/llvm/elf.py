"""Object files: which names they define and lack, and those of several modules made fit for one library.

Every module calls its function `kernel`, and modules of one macro share helpers. `renamed` gives the functions that an
object defines other names, which only its library sees. Machine code and relocations stay as they are, so what is
linked is what was compiled and perhaps run before. Little-endian ELF of 64 bits, as LLVM writes it for Linux.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from eshkol.errors import BackendError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE, _LOCAL, _WEAK, _HIDDEN, _UNDEFINED = 2, 0, 2, 2, 0
_COMPILER = "__"  # names of functions that LLVM itself may call begin so


class Symbol(NamedTuple):
    """A row of an object's table of symbols, and where that row is."""

    at: int
    text: str
    name: int
    info: int
    section: int
    value: int
    length: int


class Table(NamedTuple):
    """The symbols of an object, and the section with their names."""

    symbols: list[Symbol]
    names: bytes
    section_at: int
    section: tuple[int, ...]


def is_elf(code: bytes) -> bool:
    """Whether it is an object that this module reads."""
    return code[:6] == b"\x7fELF\x02\x01"


def names_of(code: bytes) -> tuple[list[str], list[str]]:
    """The names that others may see: of what an object defines, and of what it lacks."""
    named = [s for s in _table(code).symbols if s.info >> 4 != _LOCAL]
    return [s.text for s in named if s.section != _UNDEFINED], [s.text for s in named if s.section == _UNDEFINED]


def _table(code: bytes) -> Table:
    if not is_elf(code):
        raise BackendError("object files of this system cannot be made into a library: they are not ELF of 64 bits")
    header = _HEADER.unpack_from(code)
    start, size, count = header[6], header[11], header[12]
    sections = [_SECTION.unpack_from(code, start + k * size) for k in range(count)]
    (table,) = (s for s in sections if s[1] == _SYMBOL_TABLE)
    link = table[6]
    texts = sections[link]
    names = code[texts[4] : texts[4] + texts[5]]
    symbols = []
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, info, _, section, value, length = _SYMBOL.unpack_from(code, at)
        text = names[name : names.index(0, name)].decode()
        symbols.append(Symbol(at, text, name, info, section, value, length))
    return Table(symbols, names, start + link * size, texts)


def renamed(code: bytes, prefix: str) -> bytes:
    """The object with a prefix before the names of what it defines.

    Functions that LLVM calls by name keep theirs, but several objects may define them.
    """
    table = _table(code)
    made, names = bytearray(code), bytearray(table.names)
    for symbol in table.symbols:
        name, info = symbol.name, symbol.info
        if info >> 4 == _LOCAL or symbol.section == _UNDEFINED:
            continue
        if symbol.text.startswith(_COMPILER):
            info = _WEAK << 4 | info & 15
        else:
            name = len(names)
            names += f"{prefix}{symbol.text}\0".encode()
        _SYMBOL.pack_into(made, symbol.at, name, info, _HIDDEN, symbol.section, symbol.value, symbol.length)
    section = table.section
    _SECTION.pack_into(made, table.section_at, *section[:4], len(made), len(names), *section[6:])
    return bytes(made + names)
