"""Loads the compiled native runtime, once, when it is first needed."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path

from eshkol.errors import EshkolError

PATH = Path(__file__).with_name("_native.so")


class NativeRuntimeMissing(EshkolError):
    """The C part of Eshkol has not been built, or does not load on this machine."""


@cache
def native() -> ctypes.CDLL:
    """The library. Calls through it release the interpreter's lock."""
    hint = "build it with 'make test' or 'pip install -e .'"
    if not PATH.exists():
        raise NativeRuntimeMissing(f"the native runtime is not built: there is no {PATH}", hint=hint)
    try:
        return ctypes.CDLL(str(PATH))
    except OSError as error:
        raise NativeRuntimeMissing(f"the native runtime does not load: {error}", hint=f"re{hint}") from error


@cache
def address_of(function: str) -> int:
    """Where a function of the library is."""
    found = ctypes.cast(getattr(native(), function), ctypes.c_void_p).value
    assert found is not None
    return found
