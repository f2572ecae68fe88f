"""One object in memory by itself: its functions have addresses for as long as someone keeps it.

Comes in: an object, whose symbols say what it defines and what it lacks. Goes out: addresses. What it lacks is looked
for in the libraries of this process, and among LLVM's own. LLVM loads only objects that are not ELF; the others go
through `linking.py`.
"""

from __future__ import annotations

import ctypes
import weakref
from contextlib import suppress
from functools import cache
from typing import Protocol

from eshkol.errors import BackendError
from eshkol.llvm import elf
from eshkol.llvm.linking import CodeMemory
from eshkol.llvm.targets import Target, llvm


class HasAddresses(Protocol):
    """A module that is compiled."""

    def address(self, name: str) -> int:
        """Where one of its functions begins."""
        ...


class LoadedObject:
    """An object in memory by itself; `address` of its functions stays valid as long as this lives."""

    def __init__(self, code: bytes, target: Target) -> None:
        self._memory: CodeMemory | None = None
        self._addresses: dict[str, int] = {}
        if elf.is_elf(code):
            defined, lacking = elf.names_of(code)
            self._memory = CodeMemory(few=True)
            found = self._memory.load(code, {name: _outside(name) for name in lacking}, defined)
            self._addresses = dict(zip(defined, found, strict=True))
            weakref.finalize(self, self._memory.close).atexit = False  # threads may still run in it then
        else:
            binding = llvm()
            self._engine = binding.create_mcjit_compiler(binding.parse_assembly(""), target.machine(3))
            self._engine.add_object_file(binding.ObjectFileRef.from_data(code))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        return self._addresses[name] if self._memory else int(self._engine.get_function_address(name))


@cache
def _outside(name: str) -> int:
    """Where a function is that LLVM calls by its name, in the libraries of this process or among LLVM's own."""
    with suppress(AttributeError):
        return ctypes.cast(getattr(ctypes.CDLL(None), name), ctypes.c_void_p).value or 0
    found = llvm().address_of_symbol(name)
    if not found:
        raise BackendError(f"compiled code needs the function {name}, which is not there")
    return int(found)
