"""Modules of WebAssembly that need nothing from outside: their memory and what lies in it are their own.

Comes in: an object as `wasm_objects.py` takes it, and what is to lie in its memory. Goes out: one module without
imports that exports its memory and the functions asked for. What an object imports (the memory, the stack, the place
of its data) are numbers that a module can say itself. Globals keep their numbers, because imported ones come first
and there are no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eshkol.errors import BackendError
from eshkol.llvm.wasm_objects import (
    CUSTOM,
    DATA,
    END,
    EXPORT,
    FUNCTION,
    GLOBAL,
    HEADER,
    I32_CONST,
    IMPORT,
    MEMORY,
    Reader,
    linked,
    named,
    number,
    sections,
)  # fmt: skip

MEMORIES, GLOBALS = 5, 6  # sections
I32 = 0x7F
HAS_MOST = 1  # flag of limits
STACK, BASE = "__stack_pointer", "__memory_base"
PAGE = 1 << 16


@dataclass(frozen=True)
class Memory:
    """The memory of a module: so many bytes, of which the first are the stack, and what lies where at first."""

    size: int
    stack: int
    base: int  # where an object's own data lies
    segments: Sequence[tuple[int, bytes]]


def signed(value: int) -> bytes:
    """A number as signed LEB128."""
    found = bytearray()
    while not -0x40 <= value < 0x40:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value & 0x7F)
    return bytes(found)


def address(value: int) -> bytes:
    """An expression that is an address."""
    return bytes([I32_CONST]) + signed(value - (1 << 32) if value >> 31 else value) + bytes([END])


def vector(items: Sequence[bytes]) -> bytes:
    return number(len(items)) + b"".join(items)


def standalone(
    code: bytes, exported: Sequence[str], memory: Memory, about: Mapping[str, bytes], most_data: int
) -> bytes:
    """A module of an object: it exports these functions and `memory`; `about` become sections that engines pass over.

    Its own data may take `most_data` bytes, where the memory has room for them.
    """
    of = linked(code, exported)
    if len(of.data) > most_data:
        raise BackendError(f"compiled code has {len(of.data)} bytes of data, more than {most_data}")
    parts: dict[int, bytes] = {}
    for kind, reader in sections(of.module):
        parts[kind] = reader.code[reader.at : reader.end]
    imported, exports = Reader(parts.pop(IMPORT, b"\0")), Reader(parts[EXPORT])
    parts[GLOBALS] = vector([_global(name, memory) for name in _imported_globals(imported)])
    pages = number(-(-memory.size // PAGE))
    parts[MEMORIES] = vector([bytes([HAS_MOST]) + pages + pages])
    count = exports.number()
    functions = exports.code[exports.at :]
    parts[EXPORT] = number(count + 1) + named("memory") + bytes([MEMORY, 0]) + functions
    segments = [*memory.segments, *([(memory.base, of.data)] if of.data else [])]
    parts[DATA] = vector([b"\0" + address(at) + number(len(raw)) + raw for at, raw in segments])
    custom = [(CUSTOM, named(name) + raw) for name, raw in about.items()]
    whole = [*custom, *sorted(parts.items())]
    return HEADER + b"".join(bytes([kind]) + number(len(raw)) + raw for kind, raw in whole)


def _imported_globals(reader: Reader) -> list[str]:
    found = []
    for _ in range(reader.number()):
        reader.name()
        name, kind = reader.name(), reader.byte()
        if kind == MEMORY:
            if reader.byte() & HAS_MOST:
                reader.number()
            reader.number()
        elif kind == GLOBAL:
            reader.at += 2
            found.append(name)
        else:
            what = "a function" if kind == FUNCTION else "a table"
            raise BackendError(f"compiled code needs {name}, {what} that a module of its own does not have")
    return found


def _global(name: str, memory: Memory) -> bytes:
    values = {STACK: (memory.stack, 1), BASE: (memory.base, 0)}
    if name not in values:
        raise BackendError(f"compiled code needs the number {name}, which is not known")
    value, changes = values[name]
    return bytes([I32, changes]) + address(value)
