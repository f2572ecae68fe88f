"""Functions of LAPACK that native code may call, without Python between: their addresses.

SciPy offers the LAPACK that it was built with to compiled code (`scipy.linalg.cython_lapack`), whichever that is. Where
it does not, there is no address, and what needs one is computed by the reference, through Python.
"""

from __future__ import annotations

import ctypes
from functools import cache

SOURCE = "scipy.linalg.cython_lapack"
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}


def address(routine: str, dtype: str) -> int | None:
    """Where a function for a dtype is; LAPACK calls what it knows as symmetric in real numbers Hermitian in others."""
    letter = LETTERS[dtype]
    return _address(letter + (routine.replace("sy", "he", 1) if letter in "cz" else routine))


@cache
def _address(name: str) -> int | None:
    try:
        from scipy.linalg import cython_lapack
    except ImportError:
        return None
    capsule = getattr(cython_lapack, "__pyx_capi__", {}).get(name)
    if capsule is None:
        return None
    signature = _name(capsule)
    # Integers of 4 bytes are what native code passes.
    if signature is None or not signature.startswith(b"void (char *") or b" int *" not in signature:
        return None
    return _pointer(capsule, signature)


def _name(capsule: object) -> bytes | None:
    ask = ctypes.pythonapi.PyCapsule_GetName
    ask.argtypes, ask.restype = [ctypes.py_object], ctypes.c_char_p
    found: bytes | None = ask(capsule)
    return found


def _pointer(capsule: object, name: bytes) -> int | None:
    ask = ctypes.pythonapi.PyCapsule_GetPointer
    ask.argtypes, ask.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
    found: int | None = ask(capsule, name)
    return found
