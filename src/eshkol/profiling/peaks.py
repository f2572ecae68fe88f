"""What the machine can do at most: bytes a second from memory and to it, and floating-point operations a second.

Measured once, by kernels of our own (a sum of two arrays that no cache holds, a product of matrices), and kept beside
the cache of programs, for this processor, compiler and number of threads.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from eshkol.io.files import replacing
from eshkol.llvm.identity import machine_key
from eshkol.runtime.scheduler import default_scheduler
from eshkol.support.store import default_directory
from eshkol.tensors.jit import jit
from eshkol.tensors.make import tensor

FILE = "peaks.json"
LARGE = 1 << 24  # floats of an array
SIDE = 1536  # of a matrix
SECONDS = 0.5  # for each of the two
_MOVES = 3 * 4 * LARGE  # two arrays are read, one is written


class Peaks(NamedTuple):
    """The most that was measured."""

    bytes_a_second: float
    operations_a_second: float

    @property
    def ridge(self) -> float:
        """Operations for each byte from which on a kernel is not bound by memory."""
        return self.operations_a_second / self.bytes_a_second

    def attainable(self, intensity: float) -> float:
        """Operations a second that a kernel of so many for each byte could reach."""
        return min(self.operations_a_second, intensity * self.bytes_a_second)

    def share(self, moved: int, operations: int, seconds: float) -> float:
        """How near to its roof a kernel comes: 1 is all that the machine can do. Caches may make it more."""
        least = max(moved / self.bytes_a_second, operations / self.operations_a_second)
        return least / seconds if seconds else 0.0

    def bound(self, moved: int, operations: int) -> str:
        """By what a kernel is bound."""
        return "memory" if operations <= self.ridge * moved else "compute"


@cache
def peaks() -> Peaks:
    """The peaks of this machine, measured now if they never were."""
    path, key = default_directory() / FILE, f"{machine_key()} × {default_scheduler().workers}"
    kept: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        read = json.loads(path.read_text(encoding="utf-8"))
        kept = read if isinstance(read, dict) else {}
    with suppress(TypeError, ValueError, KeyError):
        found = Peaks(*map(float, kept[key]))
        if found.bytes_a_second > 0 and found.operations_a_second > 0:
            return found
    measured = Peaks(_bandwidth(), _operations())
    with suppress(Exception):  # where nothing can be kept, it is measured again
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path, "profile") as file:
            file.write(json.dumps({**kept, key: list(measured)}).encode())
    return measured


def _best(run: Callable[[], Any]) -> float:
    run()
    best, end = float("inf"), time.perf_counter() + SECONDS
    while time.perf_counter() < end:
        begin = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - begin)
    return best


def _bandwidth() -> float:
    x, y = tensor(np.ones(LARGE, np.float32)), tensor(np.ones(LARGE, np.float32))
    added = jit(lambda a, b: a + b)
    return _MOVES / _best(lambda: added(x, y))


def _operations() -> float:
    x = tensor(np.ones((SIDE, SIDE), np.float32))
    product = jit(lambda a, b: a @ b)
    return 2 * SIDE**3 / _best(lambda: product(x, x))
