"""`MetalBackend`: buffers in the memory of a Mac's device, programs as Metal's language that the system compiles.

Comes in: what `text/backend.py` asks a driver for. Goes out: pyobjc's calls, with what they say as our errors. Work
goes to the device in the order of one queue; the host sees all buffers. This has never run: no Mac was at hand.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Array
from eshkol.backends import base
from eshkol.backends.base import Binding
from eshkol.backends.metal import devices
from eshkol.backends.metal.dialect import KERNEL, MetalC
from eshkol.backends.text.backend import Loaded, Refused, TextBackend, size_of_launch
from eshkol.backends.text.writer import TextKernel
from eshkol.errors import AllocationFailed, BackendError, BackendUnavailable

SHARED_MEMORY_GRAIN = 16  # of bytes of shared memory
FAILED = 5  # the status of a command buffer
LOST = (4, 11)  # errors of command buffers after which a device does nothing more: access revoked, device removed
OUT_OF_MEMORY = 8


def arguments(backend: TextBackend[Any], loaded: Loaded, launch: LaunchConfig, given: Mapping[str, Binding],
              first: int) -> tuple[list[Any], list[int]]:  # fmt: skip
    """The buffers and the words that `MetalC.kernel` takes."""
    buffers, words = [backend._status.buffer], []
    for name in loaded.written.asked:
        if name == "classes":
            buffers.append(backend.classes().buffer)
        elif name == "first":
            words.append(first * launch.block_size)
        elif name != "shared":
            words.append(launch.shared_memory if name == "shared_bytes" else size_of_launch(name, launch))
    for binding in given.values():
        if isinstance(binding.value, Immediate):
            words.append(int.from_bytes(binding.value.array().tobytes(), "little"))
        else:
            memory = backend.memory_of(binding)
            buffers.append(memory.buffer)
            words.append(memory.size)
    return buffers, words


class MetalEvent(base.Event):
    """A point in the queue: the host waits for it when it is recorded."""

    def __init__(self, backend: MetalBackend) -> None:
        super().__init__()
        self._backend = backend

    def record(self, stream: base.Stream | None = None) -> None:
        self._backend.synchronize()
        super().record(stream)


class MetalBackend(TextBackend[devices.Device]):
    """One device of a Mac."""

    name: ClassVar[str] = "metal"
    known = devices.KNOWN
    targets: ClassVar[tuple[str, ...]] = ("metal", "expanded")

    def __init__(self, *, memory_limit: int | None = None) -> None:
        self.device = devices.device(self.ordinal)
        import Metal

        self.metal: Any = Metal
        self.queue = self.device.handle.newCommandQueue()
        if self.queue is None:
            raise BackendUnavailable(f"{self.device.name} gives no queue")
        self._last: Any = None  # the command buffer that was committed last
        super().__init__(self.device, MetalC(), memory_limit)

    def synchronize(self) -> None:
        with self.lock:
            last, self._last = self._last, None
            if last is None:
                return
            last.waitUntilCompleted()
            if last.status() == FAILED:
                raise self._failure(last.error())

    def _failure(self, error: Any) -> BackendError:
        """What the device says of work that failed."""
        code = int(error.code()) if error is not None else 0
        said = str(error.localizedDescription()) if error is not None else "no reason"
        if code in LOST:
            return self._lost(said)
        if code == OUT_OF_MEMORY:
            return AllocationFailed(f"{self.device.name} has no memory for a launch ({said})")
        return BackendError(f"Metal says of a launch: {said}")

    def event(self) -> MetalEvent:
        return MetalEvent(self)

    # --- memory -----------------------------------------------------------------------------------

    def _take(self, size: int) -> Any:
        found = self.device.handle.newBufferWithLength_options_(size, self.metal.MTLResourceStorageModeShared)
        if found is None:
            raise AllocationFailed(
                f"{self.device.name} has no memory for {size} bytes", hint="free tensors, or take smaller batches"
            )
        return found

    def _drop(self, buffer: Any) -> None:
        """The last reference gives it back; commands that use it hold one."""

    def _bytes(self, buffer: Any) -> Array:
        """A buffer's bytes, when all that was asked for is done."""
        self.synchronize()
        return np.frombuffer(buffer.contents().as_buffer(buffer.length()), np.uint8)

    def _put(self, buffer: Any, offset: int, raw: Array) -> None:
        self._bytes(buffer)[offset : offset + raw.size] = raw

    def _get(self, buffer: Any, offset: int, into: Array) -> None:
        into[:] = self._bytes(buffer)[offset : offset + into.size]

    def _move(self, target: Any, target_offset: int, source: Any, source_offset: int, size: int) -> None:
        self._bytes(target)[target_offset : target_offset + size] = self._bytes(source)[
            source_offset : source_offset + size
        ]

    # --- kernels ----------------------------------------------------------------------------------

    def compile_to_metal(self, program: Program) -> str:
        """What the system's compiler is given, without checks where there is such a version."""
        return self.source(program)

    def _compile(self, written: TextKernel, name: str) -> Any:
        options = self.metal.MTLCompileOptions.alloc().init()
        options.setFastMathEnabled_(False)
        library, error = self.device.handle.newLibraryWithSource_options_error_(written.text, options, None)
        if library is None:
            raise Refused(str(error))
        state, error = self.device.handle.newComputePipelineStateWithFunction_error_(
            library.newFunctionWithName_(KERNEL), None
        )
        if state is None:
            raise Refused(str(error))
        return state

    def _start(
        self, loaded: Loaded, launch: LaunchConfig, given: Mapping[str, Binding], first: int, blocks: int
    ) -> None:
        most = int(loaded.kernel.maxTotalThreadsPerThreadgroup())
        if launch.block_size > most:
            raise BackendUnavailable(
                f"a block of this kernel has {most} lanes at most on {self.device.name}, not {launch.block_size}"
            )
        buffers, words = arguments(self, loaded, launch, given, first)
        commands = self.queue.commandBuffer()
        encoder = commands.computeCommandEncoder()
        encoder.setComputePipelineState_(loaded.kernel)
        for number, buffer in enumerate(buffers):
            encoder.setBuffer_offset_atIndex_(buffer, 0, number)
        raw = np.array(words, np.uint64).tobytes()
        encoder.setBytes_length_atIndex_(raw, len(raw), len(buffers))
        if "shared" in loaded.written.asked:
            size = max(-(-launch.shared_memory // SHARED_MEMORY_GRAIN) * SHARED_MEMORY_GRAIN, SHARED_MEMORY_GRAIN)
            encoder.setThreadgroupMemoryLength_atIndex_(size, 0)
        sizes = [self.metal.MTLSizeMake(count, 1, 1) for count in (blocks, launch.block_size)]
        encoder.dispatchThreadgroups_threadsPerThreadgroup_(*sizes)
        encoder.endEncoding()
        commands.commit()
        self._last = commands
