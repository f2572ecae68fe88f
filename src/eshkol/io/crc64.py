"""CRC-64/XZ, the checksum of checkpoints: computed in C, at gigabytes a second, without the interpreter's lock."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np

from eshkol.runtime.library import native


@cache
def _function() -> Any:
    function = native().eshkol_crc64
    function.restype = ctypes.c_uint64
    function.argtypes = [ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
    return function


def crc64(data: Any, before: int = 0) -> int:
    """The checksum of bytes, or of bytes that follow others whose checksum is given.

    `data` is anything with contiguous memory: bytes, an array, a part of a mapped file.

    >>> hex(crc64(b"123456789"))
    '0x995dc9bbdf1939fa'
    """
    view = np.frombuffer(data, np.uint8)  # it keeps the memory where it is while C reads it
    return int(_function()(before, view.ctypes.data, view.size))
