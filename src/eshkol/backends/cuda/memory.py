"""Memory of a device, and of the host where a device copies from it: a cache of blocks, and the staging of copies.

Comes in: sizes and bytes. Goes out: addresses. Asking the driver for memory takes long and waits for the device, so
blocks that were given back are kept and used again. Everything is done in the order of one stream, so a block may be
given to someone else while kernels that used it are still under way.
"""

from __future__ import annotations

import bisect
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
    """Blocks of memory, kept when they are given back. `take` and `give` ask the driver."""

    def __init__(
        self, take: Callable[[int], int | None], give: Callable[[int], None], limit: int | None = None
    ) -> None:
        self.limit = limit  # bytes that it holds at most, kept ones included
        self._take, self._give = take, give
        self._free: dict[int, list[int]] = {}  # by size
        self._sizes: list[int] = []  # for which there are, or were, kept blocks, sorted
        self._used: dict[int, int] = {}  # address → size
        self._turn = threading.RLock()
        self._in_use = self._most = self._allocations = self._from_driver = 0

    def allocate(self, size: int) -> int:
        """The address of a block of at least so many bytes; of none, 0."""
        if size == 0:
            return 0
        wanted = -(-size // GRAIN) * GRAIN if size <= SMALL else rounded(size)  # a call less, for most
        with self._turn:
            self._allocations += 1
            blocks = self._free.get(wanted)
            if blocks:  # nearly always: what is asked for again and again has the same sizes
                address, found = blocks.pop(), wanted
            else:
                address, found = self._again(wanted) or self._fresh(wanted)
            self._used[address] = found
            self._in_use += found
            if self._in_use > self._most:
                self._most = self._in_use
            return address

    def _again(self, wanted: int) -> tuple[int, int] | None:
        """A kept block that is not much larger."""
        for place in range(bisect.bisect_left(self._sizes, wanted), len(self._sizes)):
            size = self._sizes[place]
            if size * (WASTE - 1) > wanted * WASTE:
                return None
            if blocks := self._free[size]:
                return blocks.pop(), size
        return None

    def _fresh(self, wanted: int) -> tuple[int, int]:
        if self.limit is not None and self._in_use + self._kept + wanted > self.limit:
            self.release()
            if self._in_use + wanted > self.limit:
                raise AllocationFailed(
                    f"{wanted} more bytes are over the limit of {self.limit} on the device: {self._in_use} are used",
                    hint="raise the limit of the backend's memory, or free tensors",
                )
        address = self._take(wanted)
        if address is None and self._kept:
            self.release()
            address = self._take(wanted)
        if address is None:
            raise AllocationFailed(
                f"the device has no {wanted} bytes left: {self._in_use} bytes are used by this process",
                hint="free tensors, take smaller batches, or see what else uses the GPU (nvidia-smi)",
            )
        self._from_driver += 1
        return address, wanted

    def free(self, address: int) -> None:
        """Keep a block for whoever needs one next."""
        if address == 0:
            return
        with self._turn:
            size = self._used.pop(address)
            self._in_use -= size
            blocks = self._free.get(size)
            if blocks is None:
                bisect.insort(self._sizes, size)
                blocks = self._free[size] = []
            blocks.append(address)

    def release(self) -> None:
        """Give all kept blocks back to the driver."""
        with self._turn:
            for blocks in self._free.values():
                for address in blocks:
                    self._give(address)
            self._free.clear()
            self._sizes.clear()

    @property
    def _kept(self) -> int:
        return sum(size * len(blocks) for size, blocks in self._free.items())

    @property
    def statistics(self) -> MemoryStatistics:
        with self._turn:
            return MemoryStatistics(
                self._in_use, self._kept, self._most, self._allocations, self._from_driver, self.limit
            )


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

    def __init__(self, driver: Driver, stream: int) -> None:
        self._driver, self._stream = driver, stream
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
        with self._turn:
            for start in range(0, data.size, STAGED):
                block, piece = self._block(), data[start : start + STAGED]
                block.bytes[: piece.size] = piece
                self._driver.call("cuMemcpyHtoDAsync_v2", address + start, block.address, piece.size, self._stream)
                self._driver.call("cuEventRecord", block.event, self._stream)

    def from_device(self, address: int, size: int) -> Array:
        """Bytes of the device; everything that was asked for before is done then."""
        found = np.empty(size, np.uint8)
        pending: list[tuple[_Block, int, int]] = []
        with self._turn:
            for start in range(0, size, STAGED):
                count = min(STAGED, size - start)
                if len(pending) == 2:
                    self._take_out(found, pending.pop(0))
                block = self._block()
                self._driver.call("cuMemcpyDtoHAsync_v2", block.address, address + start, count, self._stream)
                self._driver.call("cuEventRecord", block.event, self._stream)
                pending.append((block, start, count))
            for one in pending:
                self._take_out(found, one)
        return found

    def _take_out(self, found: Array, pending: tuple[_Block, int, int]) -> None:
        block, start, count = pending
        self._driver.call("cuEventSynchronize", block.event)
        found[start : start + count] = block.bytes[:count]
