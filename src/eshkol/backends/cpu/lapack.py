"""Functions of LAPACK that native code may call, without Python between: their addresses.

SciPy offers the LAPACK that it was built with to compiled code (`scipy.linalg.cython_lapack`), whichever that is. Where
it does not, there is no address, and what needs one is computed by the reference, through Python. Where it is OpenBLAS,
as in SciPy's own packages, how many threads it uses can be said, too.
"""

from __future__ import annotations

import ctypes
from functools import cache

SOURCE = "scipy.linalg.cython_lapack"
LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# Functions of their own: what `ctypes.pythonapi` says of its functions is everyone's.
_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", ctypes.pythonapi))
_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


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
    found: int | None = _pointer(capsule, signature)
    return found


@cache
def threads() -> tuple[int, int]:
    """Where the functions are that tell how many threads LAPACK may use, and that set it; zeros where none are."""
    try:
        from scipy.linalg import cython_lapack

        library = ctypes.CDLL(cython_lapack.__file__)  # its names are those of what it is linked with, too
    except (ImportError, OSError):
        return 0, 0
    for name in ("scipy_openblas_{}_num_threads", "openblas_{}_num_threads"):
        found = [getattr(library, name.format(verb), None) for verb in ("get", "set")]
        tells, sets = (0 if f is None else ctypes.cast(f, ctypes.c_void_p).value or 0 for f in found)
        if tells and sets:
            return tells, sets
    return 0, 0
