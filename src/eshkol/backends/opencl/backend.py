"""`OpenClBackend`: buffers in the memory of an OpenCL device, programs as OpenCL C that its driver compiles.

Comes in: Atlas programs, launches and host data. Work goes to the device in the order of one queue, and the host waits
where it reads something back, and after launches whose lanes may fail: such a launch raises with the instruction and
the lowest lane that failed, as on the CPU. Like the CPU it does not look for races or unwritten memory. What it has no
code for is refused by name. `ESHKOL_DUMP=kernel` prints the kernels that the driver is given.
"""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.classes import CLASS_MEMORY_BYTES
from eshkol.atlas.expand import expand
from eshkol.atlas.isa import Control
from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.validate import validate
from eshkol.backends import base
from eshkol.backends.base import (
    Backend,
    Binding,
    BufferHandle,
    HandleTable,
    PoolHandle,
    as_bytes,
    bind_params,
    check_size,
    refuse_launch,
)
from eshkol.backends.lanes.guards import Guard, find_guard
from eshkol.backends.lanes.layout import SITE_BITS
from eshkol.backends.lanes.promises import Promises, promises
from eshkol.backends.lanes.ranges import SHARED_MEMORY
from eshkol.backends.opencl import devices
from eshkol.backends.opencl.dialect import KERNEL, OpenClC
from eshkol.backends.text.scalars import LOWERED
from eshkol.backends.text.writer import TextKernel, write_kernel
from eshkol.errors import AllocationFailed, BackendError, BackendUnavailable, DeviceLost, EshkolError, InvalidBuffer
from eshkol.support import flags

REMEMBERED = 1024  # programs kept loaded
LOG = 2000  # letters of what a driver says of a kernel that it refuses
GRAIN = 8  # of bytes of buffers: atomics of small types touch whole words
NO_FAULT = (1 << 32) - 1
WHOLE_LANES = 8192  # from here on a CPU runs full blocks without the guard, so that it takes their lanes in vectors
MEMORY_ERRORS = ("MEM_OBJECT_ALLOCATION_FAILURE", "OUT_OF_HOST_MEMORY", "OUT_OF_RESOURCES")


@dataclass(frozen=True, slots=True)
class Memory:
    """A block of the device's memory."""

    buffer: Any
    size: int


@dataclass(slots=True, eq=False)
class Loaded:
    """A kernel that the driver has compiled."""

    written: TextKernel
    kernel: Any

    @property
    def sites(self) -> int:
        return len(self.written.layout.sites)


@dataclass(slots=True, eq=False)
class Prepared:
    """A program that is launched: each of its kernels as soon as a launch needs it."""

    program: Program  # as it is translated
    promises: Promises | None
    guard: Guard | None
    waits: bool  # whether lanes meet at barriers
    kernels: dict[tuple[bool, bool], Loaded] = field(default_factory=dict)  # checked, guarded → kernel
    launches: set[LaunchConfig] = field(default_factory=set)  # that were found to suit it


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


class OpenClBackend(Backend):
    """One device of OpenCL."""

    name: ClassVar[str] = "opencl"
    targets: ClassVar[tuple[str, ...]] = ("opencl", "expanded")
    ordinal: ClassVar[int] = 0

    def __init__(self, *, memory_limit: int | None = None) -> None:
        super().__init__()
        self.device = devices.device(self.ordinal)
        import pyopencl as cl
        from pyopencl.tools import ImmediateAllocator, MemoryPool

        self.cl: Any = cl
        self._description = self.device.description()
        self.dialect = OpenClC(
            doubles=self.device.doubles, long_atomics=self.device.long_atomics,
            exact_division=self.device.exact_division, any_order=self.device.is_cpu,
        )  # fmt: skip
        self.memory_limit = self.device.memory if memory_limit is None else memory_limit
        self.used = 0  # bytes of buffers and pools
        self.lock = threading.RLock()
        with self._asked("a context"):
            self.context = cl.Context([self.device.handle])
            timed = cl.command_queue_properties.PROFILING_ENABLE
            self.queue = cl.CommandQueue(self.context, self.device.handle, properties=timed)
            self._pool = MemoryPool(ImmediateAllocator(self.queue))
        self._buffers: HandleTable[Memory] = HandleTable(self.number, "buffer")
        self._pools: HandleTable[Memory] = HandleTable(self.number, "pool")
        self._prepared: OrderedDict[str, Prepared] = OrderedDict()
        self._status = self._block(8, "status")
        self._write(self._status, 0, np.array([NO_FAULT, 0], np.uint32).view(np.uint8))
        self._class_memory: Memory | None = None

    @classmethod
    def unavailable(cls) -> str | None:
        return devices.unavailable()

    @classmethod
    def machines(cls) -> list[dict[str, Any]]:
        return [device.facts() for device in devices.devices()]

    @classmethod
    def numbered(cls, number: int) -> type[Backend]:
        return _numbered(number)

    @property
    def description(self) -> MachineDescription:
        return self._description

    @contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        """Around what the driver is asked for: what it says is one of our errors."""
        try:
            yield
        except self.cl.Error as error:
            said = self.cl.status_code.to_string(error.code) if hasattr(error, "code") else str(error)
            if said in MEMORY_ERRORS or isinstance(error, self.cl.MemoryError):
                raise AllocationFailed(
                    f"{self.device.name} has no memory for {what} ({said})",
                    hint="free tensors, or take smaller batches",
                ) from None
            if said in ("DEVICE_NOT_AVAILABLE", "INVALID_COMMAND_QUEUE", "INVALID_CONTEXT"):
                raise DeviceLost(
                    f"{self.device.name} does not answer ({said}, asked for {what})",
                    hint="values on it are gone: save what the host has, and start the process again",
                ) from None
            raise BackendError(f"OpenCL says {said} to {what}: {error}") from None

    def synchronize(self) -> None:
        with self._asked("the end of its queue"):
            self.queue.finish()

    def event(self) -> OpenClEvent:
        return OpenClEvent(self)

    def release(self) -> None:
        self._pool.free_held()

    # --- buffers ----------------------------------------------------------------------------------

    def _block(self, size: int, what: str) -> Memory:
        check_size(size, self.device.largest, what)
        with self.lock, self._asked(f"a {what} of {size} bytes"):
            if self.used + size > self.memory_limit:
                raise AllocationFailed(
                    f"no memory for a {what} of {size} bytes: {self.used} of {self.memory_limit} are used",
                    hint="free tensors, or take smaller batches",
                )
            buffer = self._pool.allocate(max(-(-size // GRAIN) * GRAIN, GRAIN))
            self.used += size
            return Memory(buffer, size)

    def _give(self, memory: Memory) -> None:
        with self.lock:
            self.used -= memory.size
            memory.buffer.release()

    def _write(self, memory: Memory, offset: int, raw: Any) -> None:
        if raw.size:
            with self._asked("a copy"):
                self.cl.enqueue_copy(self.queue, memory.buffer, raw, dst_offset=offset, is_blocking=True)

    def _read(self, memory: Memory, offset: int, size: int) -> bytes:
        found = np.empty(size, np.uint8)
        if size:
            with self._asked("a copy"):
                self.cl.enqueue_copy(self.queue, found, memory.buffer, src_offset=offset, is_blocking=True)
        return found.tobytes()

    def allocate(self, size: int) -> BufferHandle:
        return BufferHandle(self.number, self._buffers.add(self._block(size, "buffer")))

    def free(self, handle: BufferHandle) -> None:
        self._give(self._buffers.remove(handle))

    def copy_to(self, handle: BufferHandle, data: Any, offset: int = 0) -> None:
        raw = as_bytes(data)
        self.checked_copy(handle, offset, raw.size)
        self._write(self._buffers.get(handle), offset, raw)

    def copy_from(self, handle: BufferHandle, offset: int = 0, size: int | None = None) -> bytes:
        memory = self._buffers.get(handle)
        size = memory.size - offset if size is None else size
        self.checked_copy(handle, offset, size)
        return self._read(memory, offset, size)

    def copy_within(
        self, target: BufferHandle, target_offset: int, source: BufferHandle, source_offset: int, size: int
    ) -> None:
        self.checked_copy(target, target_offset, size)
        self.checked_copy(source, source_offset, size)
        to, origin = self._buffers.get(target), self._buffers.get(source)
        if not size:
            return
        if to is origin and abs(target_offset - source_offset) < size:  # which OpenCL does not copy
            self._write(to, target_offset, np.frombuffer(self._read(origin, source_offset, size), np.uint8))
            return
        with self._asked("a copy"):
            self.cl.enqueue_copy(
                self.queue, to.buffer, origin.buffer, byte_count=size, src_offset=source_offset,
                dst_offset=target_offset,
            )  # fmt: skip

    def size(self, handle: BufferHandle) -> int:
        return self._buffers.get(handle).size

    # --- pools ------------------------------------------------------------------------------------

    def allocate_pool(self, capacity: int) -> PoolHandle:
        memory = self._block(capacity, "pool")
        self._write(memory, 0, np.zeros(capacity, np.uint8))
        return PoolHandle(self.number, self._pools.add(memory))

    def free_pool(self, handle: PoolHandle) -> None:
        self._give(self._pools.remove(handle))

    def _in_pool(self, handle: PoolHandle, offset: int, size: int) -> Memory:
        memory = self._pools.get(handle)
        if offset < 0 or size < 0 or offset + size > memory.size:
            raise InvalidBuffer(f"bytes {offset} to {offset + size} are outside a pool of {memory.size} bytes")
        return memory

    def copy_to_pool(self, handle: PoolHandle, offset: int, data: Any) -> None:
        raw = as_bytes(data)
        self._write(self._in_pool(handle, offset, raw.size), offset, raw)

    def copy_from_pool(self, handle: PoolHandle, offset: int, size: int) -> bytes:
        return self._read(self._in_pool(handle, offset, size), offset, size)

    def pool_size(self, handle: PoolHandle) -> int:
        return self._pools.get(handle).size

    # --- compilation ------------------------------------------------------------------------------

    def prepared(self, program: Program) -> Prepared:
        """What is kept of a program."""
        found = self._prepared.get(program.digest)
        if found is None:
            found = self._prepared[program.digest] = _prepared(program)
            if len(self._prepared) > REMEMBERED:
                self._prepared.popitem(last=False)
        else:
            self._prepared.move_to_end(program.digest)
        return found

    def _loaded(self, prepared: Prepared, *, checked: bool, guarded: bool) -> Loaded:
        """A kernel of a program: one that checks accesses, or none; one for all lanes, or those that pass the guard."""
        found = prepared.kernels.get((checked, guarded))
        if found is None:
            written = self._written(prepared, checked=checked, guarded=guarded)
            found = Loaded(written, self._built(written, prepared.program.name))
            prepared.kernels[checked, guarded] = found
        return found

    def _written(self, prepared: Prepared, *, checked: bool, guarded: bool) -> TextKernel:
        known = None if checked or prepared.promises is None else prepared.promises.known
        never = None if guarded or prepared.guard is None else prepared.guard.branch
        return write_kernel(prepared.program, self.dialect, known, never)

    def _built(self, written: TextKernel, name: str) -> Any:
        if flags.dumps("kernel"):
            print(f"--- kernel {name}\n{written.text}", file=sys.stderr)
        options = ["-cl-std=CL1.2"]
        if self.device.rounds_division:
            options.append("-cl-fp32-correctly-rounded-divide-sqrt")
        try:
            program = self.cl.Program(self.context, written.text).build(options=options, cache_dir=False)
            return getattr(program, KERNEL)
        except self.cl.RuntimeError as error:
            said = " ".join(str(error).split())[:LOG]
            raise BackendError(
                f"the driver of {self.device.name} refuses the kernel of '{name}': {said}",
                hint="ESHKOL_DUMP=kernel prints its source: please report it with the message above",
            ) from None

    def compile_to_opencl(self, program: Program) -> str:
        """What the driver is given, without checks where there is such a version."""
        return self._written(_prepared(program), checked=False, guarded=True).text

    def compile_to_expanded(self, program: Program) -> str:
        """The program in the instructions that are translated."""
        return str(in_base_instructions(program))

    # --- execution --------------------------------------------------------------------------------

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        with self.lock:
            prepared = self.prepared(program)
            if launch not in prepared.launches:
                validate(prepared.program, launch)
                self._check_launch(prepared.program, launch)
                prepared.launches.add(launch)
            given = bind_params(self, prepared.program, params)
            relied_on = prepared.promises
            holds = relied_on is not None and relied_on.hold(launch.total_threads, *self._amounts(launch, given))
            lanes, whole = self._lanes(prepared, launch, given), 0
            if prepared.guard is not None and self._unguarded(prepared, launch, lanes):
                whole = lanes // launch.block_size
                self._launch(prepared, launch, given, 0, whole, checked=not holds, guarded=False)
            needed = -(-lanes // launch.block_size)
            self._launch(prepared, launch, given, whole, needed - whole, checked=not holds, guarded=True)

    def _unguarded(self, prepared: Prepared, launch: LaunchConfig, lanes: int) -> bool:
        """Whether full blocks are run without the guard, of which so many lanes pass it.

        A CPU takes their lanes in vectors then. Where lanes wait for each other some drivers compile a way out before
        a barrier wrongly (PoCL 3.1), also if no lane takes it.
        """
        many = self.device.is_cpu and lanes >= WHOLE_LANES
        return lanes == launch.total_threads or prepared.waits or many

    def _amounts(self, launch: LaunchConfig, given: Mapping[str, Binding]) -> tuple[dict[str, int], dict[str, Any]]:
        """The bytes of buffers and of shared memory, and the scalars."""
        sizes = {SHARED_MEMORY: launch.shared_memory}
        scalars: dict[str, Any] = {}
        for name, binding in given.items():
            if isinstance(binding.value, Immediate):
                scalars[name] = binding.value.value
            else:
                sizes[name] = self._memory(binding).size
        return sizes, scalars

    def _lanes(self, prepared: Prepared, launch: LaunchConfig, given: Mapping[str, Binding]) -> int:
        """How many lanes pass the guard."""
        if prepared.guard is None:
            return launch.total_threads
        bound = prepared.guard.bound
        if not isinstance(bound, int):
            value = given[bound].value
            assert isinstance(value, Immediate)
            bound = int(value.value)
        return min(bound, launch.total_threads)

    def _check_launch(self, program: Program, launch: LaunchConfig) -> None:
        if launch.block_size > self.device.lanes:
            raise BackendUnavailable(
                f"a block of {self.device.name} has {self.device.lanes} lanes at most, not {launch.block_size}"
            )
        refuse_launch(self.name, self.device.name, self.device.shared_bytes, program, launch)

    def _memory(self, binding: Binding) -> Memory:
        value = binding.value
        assert not isinstance(value, Immediate)
        return self._pools.get(value) if isinstance(value, PoolHandle) else self._buffers.get(value)

    def _launch(
        self, prepared: Prepared, launch: LaunchConfig, given: Mapping[str, Binding], first: int, blocks: int, *,
        checked: bool, guarded: bool,
    ) -> None:  # fmt: skip
        """So many blocks from one on."""
        if blocks < 1:
            return
        loaded = self._loaded(prepared, checked=checked, guarded=guarded)
        if loaded.sites and launch.total_threads * loaded.sites >= NO_FAULT:
            raise BackendUnavailable(
                f"the opencl backend checks accesses of {NO_FAULT // loaded.sites} lanes of this program at most, "
                f"not of {launch.total_threads}"
            )
        arguments: list[Any] = [self._status.buffer]
        for name in loaded.written.asked:
            arguments.append(self._told(name, launch, first))
        for binding in given.values():
            if isinstance(binding.value, Immediate):
                array = binding.value.array()
                arguments.append(array.view(np.uint16)[0] if binding.value.ty.is_half else array[0])
            else:
                memory = self._memory(binding)
                arguments += [memory.buffer, np.uint64(memory.size)]
        lanes = launch.block_size
        with self._asked(f"a launch of {blocks} blocks of {lanes} lanes"):
            loaded.kernel.set_args(*arguments)
            self.cl.enqueue_nd_range_kernel(self.queue, loaded.kernel, (blocks * lanes,), (lanes,))
        if loaded.sites:
            self._raise_fault(prepared.program, loaded)

    def _told(self, name: str, launch: LaunchConfig, first: int) -> Any:
        """What a kernel asks of a launch."""
        if name == "first":
            return np.uint64(first * launch.block_size)
        if name == "shared":
            return self.cl.LocalMemory(max(launch.shared_memory, GRAIN))
        if name == "shared_bytes":
            return np.uint32(launch.shared_memory)
        if name == "classes":
            return self._classes().buffer
        which, axis = name.split("_")
        return np.uint32((launch.block if which == "block" else launch.grid)["xyz".index(axis)])

    def _classes(self) -> Memory:
        """The classes' memory, which persists between launches; it is made when one touches it."""
        if self._class_memory is None:
            self._class_memory = self._block(CLASS_MEMORY_BYTES, "class memory")
            self._write(self._class_memory, 0, np.zeros(CLASS_MEMORY_BYTES, np.uint8))
        return self._class_memory

    def _raise_fault(self, program: Program, loaded: Loaded) -> None:
        """Wait for a launch; where a lane has failed, say so."""
        code = int(np.frombuffer(self._read(self._status, 0, 4), np.uint32)[0])
        if code == NO_FAULT:
            return
        self._write(self._status, 0, np.array([NO_FAULT], np.uint32).view(np.uint8))
        lane, site = divmod(code, loaded.sites)
        error: EshkolError = loaded.written.layout.error(program, lane << SITE_BITS | site)
        raise error

    @property
    def phase(self) -> int:
        """The phase, which persists between launches."""
        return int(np.frombuffer(self._read(self._status, 4, 4), np.uint32)[0])


def _prepared(program: Program) -> Prepared:
    inner = in_base_instructions(program)
    waits = any(i.op.control is Control.WAIT for i in inner.instructions)
    return Prepared(inner, promises(inner), find_guard(inner, validate(inner)), waits)


def in_base_instructions(program: Program) -> Program:
    """The program with every instruction expanded that has no text of its own."""
    return expand(program, lambda i: i.op.name not in LOWERED)


@cache
def _numbered(number: int) -> type[OpenClBackend]:
    """The backend of a device by its number; the first is the one without."""
    if number == 0:
        return OpenClBackend
    return type(f"OpenClBackend{number}", (OpenClBackend,), {"name": f"opencl:{number}", "ordinal": number})
