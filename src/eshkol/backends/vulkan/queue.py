"""A device's queue: what is asked of it, put together in command buffers and done in order.

Comes in: commands. Goes out: that they are done, by `drain`. Each command sees what those before it wrote. Arguments of
launches lie in memory that the device reads, of which each command buffer has a part. A command buffer goes to the
device when it has `MANY` commands, or someone waits.
"""

from __future__ import annotations

import ctypes
from ctypes import byref, c_uint64, c_void_p
from dataclasses import dataclass

import numpy as np

from eshkol.atlas.types import Array
from eshkol.backends.vulkan import api as vk
from eshkol.backends.vulkan.memory import Allocator, host_bytes
from eshkol.errors import BackendUnavailable

FRAMES, MANY = 4, 32
ARGUMENT_BYTES = 64 << 10  # of a command buffer
RESETTABLE = 2  # of a pool: its command buffers are written again
ALL, ALL_DONE = 0x10000, 0x2000  # stages; the latter is behind all others
READ_WRITTEN = 0x8000 | 0x10000
HOST_STAGE, HOST_READ_WRITTEN = 0x4000, 0x2000 | 0x4000
QUERIES, TIMESTAMP = 1024, 2
RESULT_64, RESULT_WAIT = 1, 2
ONCE = 1  # a command buffer is submitted once


@dataclass(slots=True, eq=False)
class Frame:
    """A command buffer, and what it needs until it is done."""

    commands: c_void_p
    fence: int
    arguments: int  # where its part of the arguments begins
    used: int = 0  # bytes of that part
    count: int = 0  # commands
    open: bool = False
    running: bool = False


class Queue:
    """What a device does in order."""

    def __init__(self, api: vk.Api, device: c_void_p, queue: c_void_p, family: int, allocator: Allocator) -> None:
        self.api, self.device, self.queue = api, device, queue
        self.number = 0  # of the command buffers that were submitted
        arguments = allocator.allocation(FRAMES * ARGUMENT_BYTES, mapped=True)
        assert arguments.host is not None
        self._address = arguments.address
        self._arguments: Array = np.ctypeslib.as_array(host_bytes(arguments.host, FRAMES * ARGUMENT_BYTES))
        pool = api.made(
            "vkCreateCommandPool", device, vk.CommandPoolCreateInfo(flags=RESETTABLE, queueFamilyIndex=family)
        )
        buffers = (c_void_p * FRAMES)()
        info = vk.CommandBufferAllocateInfo(commandPool=pool, commandBufferCount=FRAMES)
        api.call("vkAllocateCommandBuffers", device, byref(info), buffers)
        self._frames = [
            Frame(c_void_p(handle), api.made("vkCreateFence", device, vk.FenceCreateInfo()), k * ARGUMENT_BYTES)
            for k, handle in enumerate(buffers)
        ]
        self._current = 0
        self._barrier = vk.MemoryBarrier(
            srcAccessMask=READ_WRITTEN | HOST_READ_WRITTEN, dstAccessMask=READ_WRITTEN | HOST_READ_WRITTEN
        )
        self._begin = vk.CommandBufferBeginInfo(flags=ONCE)
        self._clock = 0  # the pool of queries
        self._free_queries: list[int] = []

    # --- command buffers ------------------------------------------------------------------------------

    def _ready(self, size: int = 0) -> Frame:
        """A command buffer with room for a command and so many bytes of arguments."""
        frame = self._frames[self._current]
        if frame.open and (frame.count >= MANY or frame.used + size > ARGUMENT_BYTES):
            self.submit()
            frame = self._frames[self._current]
        if not frame.open:
            self._wait(frame)
            self.api.call("vkBeginCommandBuffer", frame.commands, byref(self._begin))
            frame.open, frame.count, frame.used = True, 0, 0
        return frame

    def commands(self) -> c_void_p:
        """Where the next command is written: it comes after those before it."""
        frame = self._ready()
        self._order(frame)
        frame.count += 1
        return frame.commands

    def _order(self, frame: Frame) -> None:
        stages = ALL | HOST_STAGE
        self.api.call(
            "vkCmdPipelineBarrier", frame.commands, stages, stages, 0, 1, byref(self._barrier), 0, None, 0, None
        )

    def arguments(self, words: Array) -> int:
        """The address of the arguments of the launch that is written next."""
        frame = self._ready(words.nbytes)
        start = frame.arguments + frame.used
        frame.used += words.nbytes
        self._arguments[start : start + words.nbytes] = words.view(np.uint8)
        return self._address + start

    def submit(self) -> int:
        """Give the device what was written; the number of the last command buffer that it has."""
        frame = self._frames[self._current]
        if frame.open:
            self._order(frame)
            self.api.call("vkEndCommandBuffer", frame.commands)
            handle = c_void_p(frame.commands.value)
            info = vk.SubmitInfo(commandBufferCount=1, pCommandBuffers=ctypes.addressof(handle))
            frame.open = False
            self.api.call("vkQueueSubmit", self.queue, 1, byref(info), frame.fence)
            frame.running = True
            self._current = (self._current + 1) % FRAMES
            self.number += 1
        return self.number

    def _wait(self, frame: Frame) -> None:
        if frame.running:
            fence = c_uint64(frame.fence)
            self.api.call("vkWaitForFences", self.device, 1, byref(fence), 1, vk.WHOLE)
            self.api.call("vkResetFences", self.device, 1, byref(fence))
            frame.running = False

    def drain(self) -> None:
        """Wait until all is done."""
        self.submit()
        for step in range(FRAMES):
            self._wait(self._frames[(self._current + step) % FRAMES])

    @property
    def idle(self) -> bool:
        """Whether it is known that all is done."""
        return not any(frame.open or frame.running for frame in self._frames)

    def done(self, number: int) -> bool:
        """Whether a command buffer is done, by the number that `submit` gave."""
        behind = self.number - number
        if behind >= FRAMES:
            return True
        frame = self._frames[(self._current - 1 - behind) % FRAMES]
        return not frame.running or self.api.ask("vkGetFenceStatus", self.device, frame.fence) != vk.NOT_READY

    # --- time -----------------------------------------------------------------------------------------

    def timestamp(self) -> int:
        """Have the device note when it comes here; the number of the note."""
        if not self._clock:
            info = vk.QueryPoolCreateInfo(queryType=TIMESTAMP, queryCount=QUERIES)
            self._clock = self.api.made("vkCreateQueryPool", self.device, info)
            self._free_queries = list(range(QUERIES))
        if not self._free_queries:
            raise BackendUnavailable(f"there are {QUERIES} events at a time, and no more")
        query = self._free_queries.pop()
        self.timestamp_again(query)
        return query

    def timestamp_again(self, query: int) -> None:
        """Replace a note."""
        commands = self.commands()
        self.api.call("vkCmdResetQueryPool", commands, self._clock, query, 1)
        self.api.call("vkCmdWriteTimestamp", commands, ALL_DONE, self._clock, query)

    def time(self, query: int) -> int:
        """What the device's clock showed then."""
        found = c_uint64()
        self.api.call(
            "vkGetQueryPoolResults", self.device, self._clock, query, 1, 8, byref(found), 8, RESULT_64 | RESULT_WAIT
        )
        return found.value

    def forget(self, query: int) -> None:
        """A note that is needed no more."""
        self._free_queries.append(query)
