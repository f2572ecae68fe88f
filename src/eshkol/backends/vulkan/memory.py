"""Memory of a device: blocks with their addresses, kept when they are given back.

Comes in: sizes. Goes out: `Block`s. Drivers have few allocations, and take long for each: small blocks are parts of
larger ones, and those that were given back are used again. Where the host sees the device's memory a block has a place
there, too.
"""

from __future__ import annotations

import bisect
import ctypes
from ctypes import byref, c_void_p
from dataclasses import dataclass, field

from eshkol.backends.vulkan import api as vk
from eshkol.errors import BackendUnavailable

GRAIN, CHUNK, LARGE = 256, 16 << 20, 1 << 20  # least and greatest parts of a chunk, and what large blocks are made of
WASTE = 4  # a kept block serves a request of at least 1 - 1/WASTE of its size
SEEN, COHERENT, CACHED, ON_DEVICE = 0x2, 0x4, 0x8, 0x1  # of kinds of memory: what the host and the device do with it
USAGE = 0x1 | 0x2 | 0x20 | 0x20000  # copied from and to, read and written by kernels, by addresses
ADDRESSED = 0x2  # of an allocation


@dataclass(slots=True, eq=False)
class Allocation:
    """What the driver gave: a buffer with memory of its own."""

    buffer: int
    memory: int
    address: int
    host: int | None


@dataclass(slots=True, eq=False)
class Block:
    """A part of an allocation, or all of it."""

    allocation: Allocation
    offset: int
    size: int

    @property
    def buffer(self) -> int:
        return self.allocation.buffer

    @property
    def address(self) -> int:
        return self.allocation.address + self.offset

    @property
    def host(self) -> int | None:
        """Where the host sees it."""
        place = self.allocation.host
        return None if place is None else place + self.offset


@dataclass(slots=True)
class Kept:
    """Blocks that were given back, by their size; sizes in order."""

    blocks: dict[int, list[Block]] = field(default_factory=dict)
    sizes: list[int] = field(default_factory=list)

    def put(self, block: Block) -> None:
        if block.size not in self.blocks:
            self.blocks[block.size] = []
            bisect.insort(self.sizes, block.size)
        self.blocks[block.size].append(block)

    def find(self, size: int) -> Block | None:
        """The least that serves a request."""
        at = bisect.bisect_left(self.sizes, size)
        if at == len(self.sizes) or self.sizes[at] * (WASTE - 1) > size * WASTE:
            return None
        found = self.sizes[at]
        block = self.blocks[found].pop()
        if not self.blocks[found]:
            del self.blocks[found], self.sizes[at]
        return block


class Allocator:
    """Blocks of a device's memory."""

    def __init__(self, api: vk.Api, device: c_void_p, types: list[int], *, mapped: bool | None = None) -> None:
        self.api, self.device, self.types = api, device, types
        both = any(t & (ON_DEVICE | SEEN | COHERENT) == ON_DEVICE | SEEN | COHERENT for t in types)
        self.mapped = both if mapped is None else mapped  # whether the host sees blocks
        self._small, self._large = Kept(), Kept()
        self._chunk: Allocation | None = None
        self._used_of_chunk = 0

    def take(self, size: int) -> Block:
        """A block of at least so many bytes."""
        if size <= LARGE:
            size = max(GRAIN, 1 << (size - 1).bit_length())
            return self._small.find(size) or self._cut(size)
        size = -(-size // LARGE) * LARGE
        return self._large.find(size) or Block(self.allocation(size), 0, size)

    def _cut(self, size: int) -> Block:
        """A part of the newest chunk."""
        if self._chunk is None or self._used_of_chunk + size > CHUNK:
            self._chunk, self._used_of_chunk = self.allocation(CHUNK), 0
        block = Block(self._chunk, self._used_of_chunk, size)
        self._used_of_chunk += size
        return block

    def give(self, block: Block) -> None:
        """Keep a block for whoever needs one next."""
        (self._small if block.size <= LARGE else self._large).put(block)

    def release(self) -> None:
        """Give large blocks back to the driver, which is done with them."""
        for blocks in self._large.blocks.values():
            for block in blocks:
                self.api.call("vkDestroyBuffer", self.device, block.buffer, None)
                self.api.call("vkFreeMemory", self.device, block.allocation.memory, None)
        self._large = Kept()

    def allocation(self, size: int, *, mapped: bool | None = None) -> Allocation:
        """Memory of the driver's: on the device, or where the host sees it."""
        api, mapped = self.api, self.mapped if mapped is None else mapped
        buffer = api.made("vkCreateBuffer", self.device, vk.BufferCreateInfo(size=size, usage=USAGE))
        try:
            needs = vk.MemoryRequirements()
            api.call("vkGetBufferMemoryRequirements", self.device, buffer, byref(needs))
            flags = vk.MemoryAllocateFlagsInfo(flags=ADDRESSED)
            info = vk.MemoryAllocateInfo(
                pNext=vk.pointer(flags), allocationSize=needs.size,
                memoryTypeIndex=self._type(needs.memoryTypeBits, mapped=mapped),
            )  # fmt: skip
            memory = api.made("vkAllocateMemory", self.device, info)
        except vk.Failed:
            api.call("vkDestroyBuffer", self.device, buffer, None)
            raise
        api.call("vkBindBufferMemory", self.device, buffer, memory, 0)
        address = api.ask(
            "vkGetBufferDeviceAddress", self.device, byref(vk.BufferDeviceAddressInfo(buffer=buffer))
        )  # fmt: skip
        host = None
        if mapped:
            place = c_void_p()
            api.call("vkMapMemory", self.device, memory, 0, vk.WHOLE, 0, byref(place))
            host = place.value
        return Allocation(buffer, memory, address, host)

    def _type(self, allowed: int, *, mapped: bool) -> int:
        """The kind of memory, of those that a buffer may have: the one that suits best."""
        least = SEEN | COHERENT if mapped else 0
        better = (CACHED, ON_DEVICE) if mapped else (ON_DEVICE,)
        fit = [k for k, t in enumerate(self.types) if allowed >> k & 1 and t & least == least]
        if not fit:
            raise BackendUnavailable("the device has no memory that kernels and the host can both use")
        return max(fit, key=lambda k: [bool(self.types[k] & flag) for flag in reversed(better)])


def host_bytes(place: int, size: int) -> ctypes.Array[ctypes.c_ubyte]:
    """Bytes of the host's at an address."""
    return (ctypes.c_ubyte * size).from_address(place)
