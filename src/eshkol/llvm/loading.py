"""Objects in memory: the addresses of what they define, for as long as somebody keeps them.

Comes in: an object that LLVM wrote, and addresses of what it refers to. Goes out: addresses of its symbols. Objects are
loaded by the runtime's linker (runtime/native/scheme/linking.c), which puts code and data side by side: LLVM's own
gives them places that may be too far apart where much of the address space is taken, and then ends the process. LLVM is
not needed for it, but where objects are not ELF.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Protocol

from eshkol.errors import BackendError, EshkolError
from eshkol.llvm import elf
from eshkol.llvm.targets import Target, llvm
from eshkol.runtime.library import native

SMALL_REGION = 1 << 16  # bytes: a page, where pages are largest


@cache
def _library() -> ctypes.CDLL:
    library = native()
    pointer, long, words = ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64)
    library.esk_new_code.restype, library.esk_new_code.argtypes = pointer, (ctypes.c_uint64,)
    library.esk_free_code.restype, library.esk_free_code.argtypes = None, (pointer,)
    text = ctypes.c_char_p
    library.esk_link.restype = text
    library.esk_link.argtypes = (pointer, pointer, text, long, text, words, long, text, words, long)
    return library


class CodeMemory:
    """A place for code of several objects, which stays where it is until all of it is given back."""

    def __init__(self, *, few: bool = False) -> None:
        """With `few`, for little more than one object, which is given back by itself."""
        self._handle: int | None = _library().esk_new_code(SMALL_REGION if few else 0)
        if not self._handle:
            raise MemoryError("no memory for compiled code")

    def load(
        self, code: bytes, outside: Mapping[str, int], wanted: Sequence[str], context: int | None = None
    ) -> list[int]:
        """Load an object that refers to these addresses outside; the addresses of symbols that it defines.

        With a context, the object is a unit that its collector frees, if there is room among them; else it stays here.
        """
        addresses = (ctypes.c_uint64 * max(1, len(outside)))(*outside.values())
        found = (ctypes.c_uint64 * max(1, len(wanted)))()
        error: bytes | None = _library().esk_link(
            self._handle, context, code, len(code), _names(outside), addresses, len(outside), _names(wanted), found,
            len(wanted),
        )  # fmt: skip
        if error is not None:
            raise EshkolError(error.decode())
        return list(found)[: len(wanted)]

    def close(self) -> None:
        """Give the memory back; nothing may run in it any more."""
        if self._handle:
            _library().esk_free_code(self._handle)
            self._handle = None


def _names(names: Mapping[str, int] | Sequence[str]) -> bytes:
    return b"".join(name.encode() + b"\0" for name in names)


# ---- one object by itself --------------------------------------------------------------------------------------------


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
