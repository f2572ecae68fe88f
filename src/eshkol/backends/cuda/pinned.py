"""Page-locked memory of the host, as NumPy arrays that a device copies from by itself.

Comes in: shapes and dtypes. Goes out: arrays whose bytes need no staging: a copy to the device is only asked for, and
the host goes on. The memory of an array that no one holds any more is used for another when the copies from it have
been made. Arrays may be dropped by any thread, in the middle of anything: their memory is only noted then, and taken
back when the next array is asked for.
"""

from __future__ import annotations

import bisect
import math
import sys
import threading
from collections import deque
from collections.abc import Callable
from ctypes import byref, c_void_p
from typing import Any

import numpy as np

from eshkol.atlas.types import Array
from eshkol.backends.cuda.driver import OUT_OF_MEMORY, Driver
from eshkol.backends.cuda.memory import BLOCKING_FREE, Allocator

PORTABLE = 1  # of pinned memory: all devices may copy from it


class _Held:
    """The memory of an array, as NumPy is told of it; when the last array over it goes, so does this."""

    def __init__(self, address: int, size: int, dropped: deque[int]) -> None:
        self.__array_interface__ = {"version": 3, "shape": (size,), "typestr": "|u1", "data": (address, False)}
        self._address, self._dropped = address, dropped

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending():
            self._dropped.append(self._address)


class PinnedMemory:
    """Arrays in page-locked memory, and the copies of them that are under way."""

    def __init__(self, driver: Driver, enter: Callable[[], None]) -> None:
        self._driver, self._enter = driver, enter
        self._blocks = Allocator(self._take, self._give)
        self._dropped: deque[int] = deque()
        self._starts: list[int] = []  # of the memory of arrays, sorted
        self._ends: dict[int, int] = {}
        self._copies: dict[int, int] = {}  # start → the event after the last copy
        self._streams: dict[int, int] = {}  # start → the stream of that copy
        self._turn = threading.Lock()

    def array(self, shape: tuple[int, ...], dtype: Any) -> Array:
        """An array with nothing in it yet."""
        kind = np.dtype(dtype)
        size = math.prod(shape) * kind.itemsize
        if size == 0:
            return np.empty(shape, kind)
        with self._turn:
            self._take_back()
            address = self._blocks.allocate(size)
            bisect.insort(self._starts, address)
            self._ends[address] = address + size
        made: Array = np.asarray(_Held(address, size, self._dropped)).view(kind).reshape(shape)
        return made

    def copied(self, target: int, data: Array, stream: int) -> bool:
        """Ask for a copy of bytes that lie here to an address of the device; whether they do."""
        if not self._starts:
            return False
        address = int(data.__array_interface__["data"][0])
        with self._turn:
            place = bisect.bisect_right(self._starts, address) - 1
            if place < 0 or address + data.size > self._ends[self._starts[place]]:
                return False
            start = self._starts[place]
            self._driver.call("cuMemcpyHtoDAsync_v2", target, address, data.size, stream)
            if start not in self._copies:
                self._copies[start] = self._driver.handle("cuEventCreate", BLOCKING_FREE)
            elif self._streams[start] != stream:  # so that the event is after the copies of both
                self._driver.call("cuStreamWaitEvent", stream, self._copies[start], 0)
            self._driver.call("cuEventRecord", self._copies[start], stream)
            self._streams[start] = stream
        return True

    def _take_back(self) -> None:
        """The memory of arrays that are gone, once copies from it have been made."""
        while self._dropped:
            start = self._dropped.popleft()
            if start in self._copies:
                self._enter()
                self._driver.call("cuEventSynchronize", self._copies[start])
            self._starts.remove(start)
            del self._ends[start]
            self._blocks.free(start)

    def _take(self, size: int) -> int | None:
        self._enter()
        place = c_void_p()
        code = self._driver.try_call("cuMemHostAlloc", byref(place), size, PORTABLE)
        if code and code != OUT_OF_MEMORY:
            raise self._driver.error(code, "cuMemHostAlloc")
        return None if code else place.value

    def _give(self, address: int) -> None:
        self._enter()
        self._copies.pop(address, None)
        self._driver.call("cuMemFreeHost", address)
