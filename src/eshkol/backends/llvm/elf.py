"""Object files of several modules made fit to be linked into one library: names that are nobody else's.

Every module calls its function `kernel`, and modules of one macro share helpers. `renamed` gives the functions that an
object defines other names, which only its library sees. Machine code and relocations stay as they are, so what is
linked is what was compiled and perhaps run before. Little-endian ELF of 64 bits, as LLVM writes it for Linux.
"""

from __future__ import annotations

import struct

from eshkol.errors import BackendError

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_SYMBOL_TABLE, _LOCAL, _WEAK, _HIDDEN, _UNDEFINED = 2, 0, 2, 2, 0
_COMPILER = "__"  # names of functions that LLVM itself may call begin so


def renamed(code: bytes, prefix: str) -> bytes:
    """The object with a prefix before the names of what it defines.

    Functions that LLVM calls by name keep theirs, but several objects may define them.
    """
    if code[:6] != b"\x7fELF\x02\x01":
        raise BackendError("object files of this system cannot be made into a library: they are not ELF of 64 bits")
    made = bytearray(code)
    header = _HEADER.unpack_from(code)
    start, size, count = header[6], header[11], header[12]
    sections = [_SECTION.unpack_from(code, start + k * size) for k in range(count)]
    (table,) = (s for s in sections if s[1] == _SYMBOL_TABLE)
    link = table[6]
    texts = sections[link]
    names = bytearray(code[texts[4] : texts[4] + texts[5]])
    for at in range(table[4], table[4] + table[5], _SYMBOL.size):
        name, info, _, section, value, length = _SYMBOL.unpack_from(code, at)
        if info >> 4 == _LOCAL or section == _UNDEFINED:
            continue
        text = bytes(names[name : names.index(0, name)]).decode()
        if text.startswith(_COMPILER):
            info = _WEAK << 4 | info & 15
        else:
            name = len(names)
            names += f"{prefix}{text}\0".encode()
        _SYMBOL.pack_into(made, at, name, info, _HIDDEN, section, value, length)
    _SECTION.pack_into(made, start + link * size, *texts[:4], len(made), len(names), *texts[6:])
    return bytes(made + names)
