"""Buffers of the CPU backend beside a page that nothing may touch: whatever reads or writes past an end crashes.

`ESHKOL_GUARD=end` (or `start`) puts every buffer of a test run directly before (or behind) such a page.
"""

from __future__ import annotations

import ctypes
import mmap

import numpy as np

PROT_NONE = 0


class GuardedBuffer:
    """What `eshkol.backends.cpu.backend.Buffer` is, in memory of its own."""

    side = "end"

    def __init__(self, size: int) -> None:
        page = mmap.PAGESIZE
        whole = -(-max(size, 1) // page) * page + page
        self._memory = mmap.mmap(-1, whole)
        everything = np.frombuffer(self._memory, np.uint8)
        start = everything.ctypes.data
        at_end = self.side == "end"
        guard = start + whole - page if at_end else start
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(ctypes.c_void_p(guard), ctypes.c_size_t(page), PROT_NONE):
            raise OSError(ctypes.get_errno(), "mprotect")
        # The last byte is the last before the guard, or the first the first behind it. Sizes are multiples of elements,
        # so elements are aligned to their size, and that is all kernels may rely on.
        first = whole - page - size if at_end else page
        self.data = everything[first : first + size]
        self.address, self.size = self.data.ctypes.data, size
