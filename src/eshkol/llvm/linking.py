"""Memory for compiled code: objects are linked into it, and stay where they are until all of it is given back.

Comes in: an object that LLVM wrote, and addresses of what it refers to. Goes out: addresses of its symbols. The linker
is the runtime's own (runtime/native/scheme/linking.c), which puts code and data side by side: LLVM's gives them places
that may be too far apart where much of the address space is taken, and then ends the process. Nothing here needs LLVM;
programs from the cache start with this module alone.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping, Sequence
from functools import cache
from threading import RLock

from eshkol.errors import EshkolError
from eshkol.runtime.library import native

SMALL_REGION = 1 << 16  # bytes: a page, where pages are largest

# Code is loaded by the thread that runs it, and by one that makes better code of it (codegen/tiers.py). A process that
# is forked meanwhile would never get the lock.
LOADING = RLock()
os.register_at_fork(before=LOADING.acquire, after_in_parent=LOADING.release, after_in_child=LOADING.release)


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
