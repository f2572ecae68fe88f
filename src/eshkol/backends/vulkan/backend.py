"""`VulkanBackend`: buffers in the memory of a device of Vulkan, programs as SPIR-V that is made here.

Comes in: what `text/backend.py` asks a driver for. Goes out: commands in the device's queue, and what its driver says
as our errors. Modules of SPIR-V are kept in the program cache.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ctypes import byref, c_uint64
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Array
from eshkol.backends import base
from eshkol.backends.base import Binding
from eshkol.backends.spirv import COMPILER, Options, compile_kernel, shared_bits
from eshkol.backends.spirv.module import Capability, capabilities_of
from eshkol.backends.text.backend import Loaded, Refused, TextBackend, size_of_launch
from eshkol.backends.text.writer import TextKernel
from eshkol.backends.vulkan import api as vk
from eshkol.backends.vulkan import devices
from eshkol.backends.vulkan.dialect import PROBE, SpirvC
from eshkol.backends.vulkan.memory import Allocation, Allocator, Block, host_bytes
from eshkol.backends.vulkan.pipelines import KERNEL_STAGE, PUSHED, Module, Pipelines
from eshkol.backends.vulkan.queue import Queue
from eshkol.errors import BackendError, BackendUnavailable
from eshkol.support.store import ProgramCache

WRITTEN_AT_ONCE = 1 << 14  # bytes that are written in the queue; more are copied when it is empty
STAGED = 4 << 20  # bytes of the memory through which copies go where the host sees no other
ROUNDS, NOTHING, WATCH_BYTES = 65535, (1 << 32) - 1, 256
KERNEL_POINT = 1  # what pipelines of kernels are bound to
MEMORY_ERRORS = ("ERROR_OUT_OF_HOST_MEMORY", "ERROR_OUT_OF_DEVICE_MEMORY", "ERROR_TOO_MANY_OBJECTS")


@dataclass(slots=True)
class Kernel:
    """A loaded module, and the bytes of the words that its blocks share."""

    module: Module
    word: int
    name: str
    number: int


class VulkanEvent(base.Event):
    """A point in the queue, and when the device came there."""

    def __init__(self, backend: VulkanBackend) -> None:
        super().__init__()
        self._backend = backend
        self._query: int | None = None
        self._submitted = 0

    def record(self, stream: base.Stream | None = None) -> None:
        backend = self._backend
        with backend.lock, backend._asked("an event"):
            if self._query is None:
                self._query = backend.queue.timestamp()
                weakref.finalize(self, backend.queue.forget, self._query)
            else:
                backend.queue.timestamp_again(self._query)
            self._submitted = backend.queue.submit()

    def done(self) -> bool:
        with self._backend.lock:
            return self._query is None or self._backend.queue.done(self._submitted)

    def wait(self) -> None:
        if not self.done():
            self._backend.synchronize()

    def seconds_until(self, later: base.Event) -> float:
        assert isinstance(later, VulkanEvent)
        assert self._query is not None
        assert later._query is not None
        backend = self._backend
        if not backend.clock_bits:
            raise BackendUnavailable(f"{backend.device.name} has no clock for events")
        with backend.lock, backend._asked("a time"):
            backend.queue.drain()
            steps = backend.queue.time(later._query) - backend.queue.time(self._query)
        return (steps & (1 << backend.clock_bits) - 1) * backend.device.nanoseconds * 1e-9


class VulkanBackend(TextBackend[devices.Device]):
    """One device of Vulkan."""

    name: ClassVar[str] = "vulkan"
    known = devices.KNOWN
    targets: ClassVar[tuple[str, ...]] = ("vulkan", "expanded")
    dialect: SpirvC

    def __init__(
        self, *, memory_limit: int | None = None, cache: ProgramCache | None = None, mapped: bool | None = None
    ) -> None:
        """`mapped` says whether the host sees the device's memory, which it does where it can."""
        self.device = devices.device(self.ordinal)
        api = vk.api()
        assert api is not None
        self.api = api
        self.cache = cache or ProgramCache(durable=False)
        with self._asked("a device"):
            self.handle, queue, family, self.clock_bits = devices.logical(self.device)
            self.allocator = Allocator(api, self.handle, devices.memory_types(self.device), mapped=mapped)
            self.queue = Queue(api, self.handle, queue, family, self.allocator)
            self.pipelines = Pipelines(api, self.handle)
            self._staging = None if self.allocator.mapped else self.allocator.allocation(STAGED, mapped=True)
            self._watch = self._watching()
        super().__init__(self.device, SpirvC(), memory_limit)
        features = self.device.features
        fuses, self.keeps_denormals = self._probed()
        self.dialect = SpirvC(
            doubles="shaderFloat64" in features, long_atomics="shaderBufferInt64Atomics" in features,
            exact_division=self.device.is_cpu, fuses=fuses, watches=self.device.ends_loops,
        )  # fmt: skip

    @contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        try:
            yield
        except vk.Failed as failure:
            if failure.name in MEMORY_ERRORS:
                raise self._no_memory(what, failure.name) from None
            if failure.name == "ERROR_DEVICE_LOST":
                raise self._lost(f"{failure.name}, asked for {what}") from None
            raise BackendError(f"Vulkan says {failure.name} to {what}: {failure}") from None

    def synchronize(self) -> None:
        with self.lock, self._asked("the end of its queue"):
            self._drain()

    def _drain(self) -> None:
        self.queue.drain()
        self.pipelines.clean()
        number = int(self._seen[1])
        if number != NOTHING:
            self._seen[1] = NOTHING
            raise BackendUnavailable(
                f"{self.device.name} ends loops after {ROUNDS} rounds, and the kernel of '{self._names[number]}' has "
                "more: what it computed is wrong", hint="compute this on another device: ESHKOL_DEVICE=cpu",
            )  # fmt: skip

    def _watching(self) -> Allocation:
        """Memory in which kernels note that a loop of two rounds ended after one."""
        found = self.allocator.allocation(WATCH_BYTES, mapped=True)
        assert found.host is not None
        self._seen: Array = np.ctypeslib.as_array(host_bytes(found.host, 8)).view(np.uint32)
        self._seen[:] = [2, NOTHING]
        self._names: list[str] = []
        return found

    def event(self) -> VulkanEvent:
        return VulkanEvent(self)

    def release(self) -> None:
        with self.lock, self._asked("the end of its queue"):
            self._drain()
            self.allocator.release()

    # --- memory -----------------------------------------------------------------------------------

    def _take(self, size: int) -> Block:
        try:
            return self.allocator.take(size)
        except vk.Failed as failure:
            if failure.name not in MEMORY_ERRORS:
                raise
        self._drain()
        self.allocator.release()
        return self.allocator.take(size)

    def _drop(self, buffer: Block) -> None:
        self.allocator.give(buffer)

    def _put(self, buffer: Block, offset: int, raw: Array) -> None:
        if raw.size <= WRITTEN_AT_ONCE and raw.size % 4 == 0 and offset % 4 == 0 and not self._is_seen_now(buffer):
            self.api.call(
                "vkCmdUpdateBuffer", self.queue.commands(), buffer.buffer, buffer.offset + offset, raw.size,
                raw.ctypes.data,
            )  # fmt: skip
        elif buffer.host is not None:
            self._drain()
            ctypes.memmove(buffer.host + offset, raw.ctypes.data, raw.size)
        else:
            self._staged(buffer, offset, raw, back=False)

    def _is_seen_now(self, buffer: Block) -> bool:
        return buffer.host is not None and self.queue.idle

    def _get(self, buffer: Block, offset: int, into: Array) -> None:
        if buffer.host is not None:
            self._drain()
            ctypes.memmove(into.ctypes.data, buffer.host + offset, into.size)
        else:
            self._staged(buffer, offset, into, back=True)

    def _staged(self, buffer: Block, offset: int, data: Array, *, back: bool) -> None:
        """Copy through memory that the host sees."""
        staging = self._staging
        assert staging is not None
        assert staging.host is not None
        for start in range(0, data.size, STAGED):
            piece = data[start : start + STAGED]
            self._drain()
            if not back:
                ctypes.memmove(staging.host, piece.ctypes.data, piece.size)
            ends = [(staging.buffer, 0), (buffer.buffer, buffer.offset + offset + start)]
            source, target = ends[::-1] if back else ends
            self._copy(source, target, piece.size)
            if back:
                self._drain()
                ctypes.memmove(piece.ctypes.data, staging.host, piece.size)
        self._drain()

    def _copy(self, source: tuple[int, int], target: tuple[int, int], size: int) -> None:
        region = vk.BufferCopy(source[1], target[1], size)
        self.api.call("vkCmdCopyBuffer", self.queue.commands(), source[0], target[0], 1, byref(region))

    def _move(self, target: Block, target_offset: int, source: Block, source_offset: int, size: int) -> None:
        self._copy((source.buffer, source.offset + source_offset), (target.buffer, target.offset + target_offset), size)

    # --- kernels ----------------------------------------------------------------------------------

    def compile_to_vulkan(self, program: Program) -> str:
        """The C that becomes SPIR-V, without checks where there is such a version."""
        return self.source(program)

    def spirv(self, text: str) -> bytes:
        """The module of a kernel's text; it is made once."""
        options = self._options
        parts = {
            "backend": "vulkan", "compiler": str(COMPILER), "text": text,
            "options": repr([sorted(kept) for kept in (
                options.keeps_special, options.keeps_denormals, options.rounds_to_even)]),
        }  # fmt: skip
        return self.cache.get_or_build(parts, lambda: compile_kernel(text, options), "a kernel of SPIR-V")

    @property
    def _options(self) -> Options:
        return self.device.options

    def _compile(self, written: TextKernel, name: str) -> Kernel:
        code = self.spirv(written.text)
        for capability in capabilities_of(code):
            feature = devices.OFFERED.get(capability)
            if feature is not None and feature not in self.device.features:
                raise BackendUnavailable(f"{self.device.name} has no {feature}, which the kernel of '{name}' needs")
        if Capability.Int64Atomics in capabilities_of(code) and "__local ulong *" in written.text:
            feature = "shaderSharedInt64Atomics"
            if feature not in self.device.features:
                raise BackendUnavailable(f"{self.device.name} has no {feature}, which the kernel of '{name}' needs")
        try:
            module = self.pipelines.module(code)
        except vk.Failed as failure:
            raise Refused(str(failure)) from None
        if name not in self._names:
            self._names.append(name)
        return Kernel(module, shared_bits(written.text) // 8, name, self._names.index(name))

    def _pipeline(self, loaded: Loaded, launch: LaunchConfig) -> int:
        kernel: Kernel = loaded.kernel
        try:
            return kernel.module.pipeline(launch.block_size, max(-(-launch.shared_memory // kernel.word), 1))
        except vk.Failed as failure:
            if failure.name in (*MEMORY_ERRORS, "ERROR_DEVICE_LOST"):
                raise
            raise self._refusal(kernel.name, failure) from None

    def _start(
        self, loaded: Loaded, launch: LaunchConfig, given: Mapping[str, Binding], first: int, blocks: int
    ) -> None:
        pipeline = self._pipeline(loaded, launch)
        for start in range(first, first + blocks, self.device.blocks):
            words = self._words(loaded, launch, given, start)
            self._dispatch(pipeline, words, min(self.device.blocks, first + blocks - start))

    def _dispatch(self, pipeline: int, words: Array, blocks: int) -> None:
        address = c_uint64(self.queue.arguments(words))
        commands, call = self.queue.commands(), self.api.call
        call("vkCmdBindPipeline", commands, KERNEL_POINT, pipeline)
        call("vkCmdPushConstants", commands, self.pipelines.layout, KERNEL_STAGE, 0, PUSHED, byref(address))
        call("vkCmdDispatch", commands, blocks, 1, 1)

    def _words(self, loaded: Loaded, launch: LaunchConfig, given: Mapping[str, Binding], first: int) -> Array:
        """The arguments of a launch, eight bytes for each."""
        words = [self._status.buffer.address]
        for name in loaded.written.asked:
            words.append(self._told(name, launch, first))
        for binding in given.values():
            if isinstance(binding.value, Immediate):
                raw = binding.value.array().reshape(1).view(np.uint8).tobytes()
                words.append(int.from_bytes(raw, "little"))
            else:
                memory = self.memory_of(binding)
                words += [memory.buffer.address, memory.size]
        if self.dialect.watches:
            words += [self._watch.address, loaded.kernel.number]
        return np.array(words, np.uint64)

    def _told(self, name: str, launch: LaunchConfig, first: int) -> int:
        """What a kernel asks of a launch."""
        if name == "first":
            return first * launch.block_size
        if name == "shared":
            return 0
        if name == "shared_bytes":
            return launch.shared_memory
        if name == "classes":
            return int(self.classes().buffer.address)
        return size_of_launch(name, launch)

    def _probed(self) -> tuple[bool, bool]:
        """Whether the device rounds products and sums once, and keeps the least numbers: drivers do not tell."""
        with self.lock, self._asked("a trial"):
            place = self._take(16)
            module = self.pipelines.module(self.spirv(PROBE))
            numbers = np.array([1 + 2**-12, -(1 + 2**-11), 2**-126], np.float32)
            words = np.array([place.address, *numbers.view(np.uint32)], np.uint64)
            self._dispatch(module.pipeline(1, 1), words, 1)
            found = np.zeros(4, np.uint32)
            self._get(place, 0, found.view(np.uint8))
            self._drop(place)
        return bool(found.view(np.float32)[0] == 2.0**-24), int(found[1]) == 1 << 22
