"""`OpenClBackend`: buffers in the memory of an OpenCL device, programs as OpenCL C that its driver compiles.

Comes in: what `text/backend.py` asks a driver for. Goes out: pyopencl's calls, with what they say as our errors. Work
goes to the device in the order of one queue.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Array
from eshkol.backends import base
from eshkol.backends.base import Binding
from eshkol.backends.driven import GRAIN
from eshkol.backends.opencl import devices
from eshkol.backends.opencl.dialect import OpenClC
from eshkol.backends.text.backend import Loaded, Prepared, Refused, TextBackend, size_of_launch
from eshkol.backends.text.spaced import KERNEL
from eshkol.backends.text.writer import TextKernel
from eshkol.errors import BackendError

WHOLE_LANES = 8192  # from here on a CPU runs full blocks without the guard, so that it takes their lanes in vectors
MEMORY_ERRORS = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY", "OUT_OF_RESOURCES")


class OpenClEvent(base.Event):
    """A point in the queue, and when the device came there."""

    def __init__(self, backend: OpenClBackend) -> None:
        super().__init__()
        self._backend, self._event = backend, None

    def record(self, stream: base.Stream | None = None) -> None:
        self._event = self._backend.cl.enqueue_marker(self._backend.queue)
        self._backend.queue.flush()

    def done(self) -> bool:
        complete = self._backend.cl.command_execution_status.COMPLETE
        return self._event is None or self._event.command_execution_status == complete

    def wait(self) -> None:
        if self._event is not None:
            self._event.wait()

    def seconds_until(self, later: base.Event) -> float:
        assert isinstance(later, OpenClEvent)
        assert self._event is not None
        assert later._event is not None
        later.wait()
        return float(later._event.profile.end - self._event.profile.end) * 1e-9


class OpenClBackend(TextBackend[devices.Device]):
    """One device of OpenCL."""

    name: ClassVar[str] = "opencl"
    known = devices.KNOWN
    targets: ClassVar[tuple[str, ...]] = ("opencl", "expanded")

    def __init__(self, *, memory_limit: int | None = None) -> None:
        self.device = devices.device(self.ordinal)
        import pyopencl as cl
        from pyopencl.tools import ImmediateAllocator, MemoryPool

        self.cl: Any = cl
        with self._asked("a context"):
            self.context = cl.Context([self.device.handle])
            timed = cl.command_queue_properties.PROFILING_ENABLE
            self.queue = cl.CommandQueue(self.context, self.device.handle, properties=timed)
            self._pool = MemoryPool(ImmediateAllocator(self.queue))
        dialect = OpenClC(
            doubles=self.device.doubles, long_atomics=self.device.long_atomics,
            exact_division=self.device.exact_division, any_order=self.device.is_cpu,
        )  # fmt: skip
        super().__init__(self.device, dialect, memory_limit)

    @contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        try:
            yield
        except self.cl.Error as error:
            said = self.cl.status_code.to_string(error.code) if hasattr(error, "code") else str(error)
            if said in MEMORY_ERRORS or isinstance(error, self.cl.MemoryError):
                raise self._no_memory(what, said) from None
            if said in ("DEVICE_NOT_AVAILABLE", "INVALID_COMMAND_QUEUE", "INVALID_CONTEXT"):
                raise self._lost(f"{said}, asked for {what}") from None
            raise BackendError(f"OpenCL says {said} to {what}: {error}") from None

    def synchronize(self) -> None:
        with self._asked("the end of its queue"):
            self.queue.finish()

    def event(self) -> OpenClEvent:
        return OpenClEvent(self)

    def release(self) -> None:
        self._pool.free_held()

    # --- memory -----------------------------------------------------------------------------------

    def _take(self, size: int) -> Any:
        return self._pool.allocate(size)

    def _drop(self, buffer: Any) -> None:
        buffer.release()

    def _put(self, buffer: Any, offset: int, raw: Array) -> None:
        self.cl.enqueue_copy(self.queue, buffer, raw, dst_offset=offset, is_blocking=True)

    def _get(self, buffer: Any, offset: int, into: Array) -> None:
        self.cl.enqueue_copy(self.queue, into, buffer, src_offset=offset, is_blocking=True)

    def _move(self, target: Any, target_offset: int, source: Any, source_offset: int, size: int) -> None:
        self.cl.enqueue_copy(
            self.queue, target, source, byte_count=size, src_offset=source_offset, dst_offset=target_offset
        )

    # --- kernels ----------------------------------------------------------------------------------

    def compile_to_opencl(self, program: Program) -> str:
        """What the driver is given, without checks where there is such a version."""
        return self.source(program)

    def _compile(self, written: TextKernel, name: str) -> Any:
        options = ["-cl-std=CL1.2"]
        if self.device.rounds_division:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", self.cl.CompilerWarning)  # what a compiler says of what it takes
                program = self.cl.Program(self.context, written.text).build(options=options, cache_dir=False)
            return getattr(program, KERNEL)
        except self.cl.RuntimeError as error:
            raise Refused(str(error)) from None

    def _unguarded(self, prepared: Prepared, launch: LaunchConfig, lanes: int) -> bool:
        """A CPU takes lanes without a guard in vectors.

        Where lanes wait for each other some drivers compile a way out before a barrier wrongly (PoCL 3.1), also if no
        lane takes it.
        """
        many = self.device.is_cpu and lanes >= WHOLE_LANES
        return lanes == launch.total_threads or prepared.waits or many

    def _start(
        self, loaded: Loaded, launch: LaunchConfig, given: Mapping[str, Binding], first: int, blocks: int
    ) -> None:
        arguments: list[Any] = [self._status.buffer]
        for name in loaded.written.asked:
            arguments.append(self._told(name, launch, first))
        for binding in given.values():
            if isinstance(binding.value, Immediate):
                array = binding.value.array()
                arguments.append(array.view(np.uint16)[0] if binding.value.ty.is_half else array[0])
            else:
                memory = self.memory_of(binding)
                arguments += [memory.buffer, np.uint64(memory.size)]
        lanes = launch.block_size
        loaded.kernel.set_args(*arguments)
        self.cl.enqueue_nd_range_kernel(self.queue, loaded.kernel, (blocks * lanes,), (lanes,))

    def _told(self, name: str, launch: LaunchConfig, first: int) -> Any:
        """What a kernel asks of a launch."""
        if name == "first":
            return np.uint64(first * launch.block_size)
        if name == "shared":
            return self.cl.LocalMemory(max(launch.shared_memory, GRAIN))
        if name == "shared_bytes":
            return np.uint32(launch.shared_memory)
        if name == "classes":
            return self.classes().buffer
        return np.uint32(size_of_launch(name, launch))
