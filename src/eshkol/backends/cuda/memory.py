"""Memory of a device, and of the host where a device copies from it: a cache of blocks, and the staging of copies.

Comes in: sizes and bytes. Goes out: addresses. Asking the driver for memory takes long and waits for the device, so
blocks that were given back are kept and used again. What is done on a stream is done in order, so a block may be
given to someone else on that stream while kernels that used it are still under way.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from ctypes import byref, c_ulonglong, c_void_p
from dataclasses import dataclass

import numpy as np

from eshkol.atlas.types import Array
from eshkol.backends.base import check_size
from eshkol.backends.cuda.driver import OUT_OF_MEMORY, Driver
from eshkol.errors import AllocationFailed
from eshkol.runtime import front

SMALL, LARGE = 1 << 20, 2 << 20  # up to `SMALL` sizes are multiples of 512 bytes, above of `LARGE`
GRAIN = 512
WASTE = 4  # a kept block serves a request of at least 1 - 1/WASTE of its size
STAGED = 4 << 20  # bytes of a staging block
BLOCKING_FREE = 0x2  # of an event: it measures no time


@dataclass(frozen=True, slots=True)
class MemoryStatistics:
    """What an allocator has done, in bytes and calls."""

    used: int  # by buffers
    kept: int  # given back, and not to the driver
    most: int  # used at any one time
    allocations: int
    from_driver: int  # of these, how many the driver was asked for
    limit: int | None


def rounded(size: int) -> int:
    """The size of the block that serves a request."""
    grain = GRAIN if size <= SMALL else LARGE
    return -(-size // grain) * grain


class Allocator:
    """Blocks of memory, kept when they are given back (`native/front/blocks.c`). `take` and `give` ask the driver."""

    def __init__(
        self, take: Callable[[int], int | None], give: Callable[[int], None], limit: int | None = None
    ) -> None:
        self.limit = limit  # bytes that it holds at most, kept ones included
        self._take, self._give = take, give
        self._turn = threading.RLock()  # of asking the driver
        self._from_driver = 0
        self._blocks = front.blocks(self._fresh, GRAIN, SMALL, LARGE, WASTE)
        # The methods themselves: a call in between would cost as much as they do.
        self.allocate: Callable[[int], int] = self._blocks.take  # the address of a block of so many bytes; of none, 0
        self.free: Callable[[int], None] = self._blocks.give  # keep a block for whoever needs one next
        self.use: Callable[[int], None] = self._blocks.use  # take blocks from a pool from now on: each has its own
        self.pool_of: Callable[[int], int] = self._blocks.pool_of  # of a block that is used; -1 of other memory

    def _fresh(self, wanted: int) -> int:
        """A block of the driver's."""
        with self._turn:
            used, kept, *_ = self._blocks.counts()
            if self.limit is not None and used + kept + wanted > self.limit:
                self.release()
                if used + wanted > self.limit:
                    raise AllocationFailed(
                        f"{wanted} more bytes are over the limit of {self.limit} on the device: {used} are used",
                        hint="raise the limit of the backend's memory, or free tensors",
                    )
            address = self._take(wanted)
            if address is None and self._blocks.counts()[1]:
                self.release()
                address = self._take(wanted)
            if address is None:
                raise AllocationFailed(
                    f"the device has no {wanted} bytes left: {used} bytes are used by this process",
                    hint="free tensors, take smaller batches, or see what else uses the GPU (nvidia-smi)",
                )
            self._from_driver += 1
            return address

    def release(self) -> None:
        """Give all kept blocks back to the driver."""
        with self._turn:
            for address in self._blocks.release():
                self._give(address)

    @property
    def statistics(self) -> MemoryStatistics:
        used, kept, most, allocations = self._blocks.counts()
        return MemoryStatistics(used, kept, most, allocations, self._from_driver, self.limit)


def device_allocator(driver: Driver, enter: Callable[[], None], largest: int, limit: int | None = None) -> Allocator:
    """The allocator of a device's memory, of `largest` bytes; `enter` makes the device the thread's own."""

    def take(size: int) -> int | None:
        check_size(size, largest, "buffer")
        enter()
        found = c_ulonglong()
        code = driver.try_call("cuMemAlloc_v2", byref(found), size)
        if code == OUT_OF_MEMORY:
            return None
        if code:
            raise driver.error(code, "cuMemAlloc_v2")
        return found.value

    def give(address: int) -> None:
        enter()
        driver.call("cuMemFree_v2", address)

    return Allocator(take, give, limit)


class _Block:
    """Pinned memory of the host, and the event after which it may be used again."""

    def __init__(self, driver: Driver) -> None:
        place = c_void_p()
        driver.call("cuMemHostAlloc", byref(place), STAGED, 0)
        self.address = place.value or 0
        self.bytes: Array = np.ctypeslib.as_array((ctypes.c_ubyte * STAGED).from_address(self.address))
        self.event = driver.handle("cuEventCreate", BLOCKING_FREE)


class Staging:
    """Copies between the host and the device through two pinned blocks, so that filling one overlaps copying the other.

    A copy to the device returns when the host's bytes have been read, not when they have arrived.
    """

    def __init__(self, driver: Driver, stream: Callable[[], int]) -> None:
        self._driver, self._current = driver, stream
        self._blocks: list[_Block] = []
        self._next = 0
        self._turn = threading.RLock()

    def _block(self) -> _Block:
        """A block that nothing is copied from or to any more."""
        if len(self._blocks) < 2:
            self._blocks.append(_Block(self._driver))
            return self._blocks[-1]
        block = self._blocks[self._next]
        self._next = 1 - self._next
        self._driver.call("cuEventSynchronize", block.event)
        return block

    def to_device(self, address: int, data: Array) -> None:
        """Copy bytes of the host."""
        stream = self._current()
        with self._turn:
            for start in range(0, data.size, STAGED):
                block, piece = self._block(), data[start : start + STAGED]
                block.bytes[: piece.size] = piece
                self._driver.call("cuMemcpyHtoDAsync_v2", address + start, block.address, piece.size, stream)
                self._driver.call("cuEventRecord", block.event, stream)

    def from_device(self, address: int, size: int) -> Array:
        """Bytes of the device; everything that was asked for before is done then."""
        found = np.empty(size, np.uint8)
        pending: list[tuple[_Block, int, int]] = []
        stream = self._current()
        with self._turn:
            for start in range(0, size, STAGED):
                count = min(STAGED, size - start)
                if len(pending) == 2:
                    self._take_out(found, pending.pop(0))
                block = self._block()
                self._driver.call("cuMemcpyDtoHAsync_v2", block.address, address + start, count, stream)
                self._driver.call("cuEventRecord", block.event, stream)
                pending.append((block, start, count))
            for one in pending:
                self._take_out(found, one)
        return found

    def _take_out(self, found: Array, pending: tuple[_Block, int, int]) -> None:
        block, start, count = pending
        self._driver.call("cuEventSynchronize", block.event)
        found[start : start + count] = block.bytes[:count]
