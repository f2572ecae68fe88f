"""`CudaBackend`: buffers in the memory of a GPU, programs as PTX that the driver compiles.

Comes in: Atlas programs, launches and host data. Work goes to the device in the order of a stream (`streams.py`), and
the host waits for it where it reads something back, and after launches whose lanes may fail. A failing lane stops; the
launch then raises with the instruction and the lowest lane that failed, as on the CPU. Like the CPU it does not look
for races or unwritten memory. What it has no code for is refused by name.
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.classes import CLASS_MEMORY_BYTES
from eshkol.atlas.machines import MachineDescription, as_wanted
from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.sequence import Call, Runner, SequenceStep
from eshkol.atlas.types import Array, Type
from eshkol.atlas.validate import validate
from eshkol.backends.base import (
    Backend,
    BufferHandle,
    HandleTable,
    PoolHandle,
    TypedBuffer,
    as_bytes,
    bind_params,
    bind_scalar,
    check_size,
    refuse_launch,
)
from eshkol.backends.cuda import devices, modules
from eshkol.backends.cuda import driver as drivers
from eshkol.backends.cuda.events import CudaEvent
from eshkol.backends.cuda.lane import BUFFER_ALIGNMENT
from eshkol.backends.cuda.launching import LaunchRecord
from eshkol.backends.cuda.loaded import Loaded, Memory, Prepared, StatusBlock
from eshkol.backends.cuda.memory import MemoryStatistics, Staging, device_allocator
from eshkol.backends.cuda.pinned import PinnedMemory
from eshkol.backends.cuda.sequence import CudaSequence, no_faults
from eshkol.backends.cuda.streams import CudaStream, Streams
from eshkol.backends.cuda.together import Joint, Member, least_ptx, room_for, tables
from eshkol.backends.cuda.translate import (
    CudaModule,
    cached_ptx,
    in_base_instructions,
    ptx,
    target,
    translate,
)
from eshkol.backends.cuda.tuning import Tuning
from eshkol.backends.cuda.warpgroups.choices import Pick
from eshkol.backends.cuda.warpgroups.instructions import Whole, whole
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.memory import touches_classes
from eshkol.backends.lanes.promises import promises
from eshkol.errors import BackendError, BackendUnavailable, InvalidBuffer, IsaError
from eshkol.llvm import objects
from eshkol.llvm import targets as llvm_targets
from eshkol.llvm.targets import Target
from eshkol.runtime import sequence as native
from eshkol.runtime.launches import STATUS_WORDS, NativeLaunch, NativeLaunches, NativeMap, QueuedDevice
from eshkol.support import flags
from eshkol.support.answers import Answer, Question
from eshkol.support.store import ProgramCache

REMEMBERED = 1024  # programs kept loaded
GRID_LIMIT = (1 << 31) - 1  # blocks of a launch
MOST_SHARED = 8  # the driver's number of the attribute by which it asks
DEVICE_ORDINAL = 9  # the driver's number of the attribute of an address: which device it is of
STATUS_BYTES = 8 * STATUS_WORDS
ASKED = {
    "enter": "cuCtxSetCurrent", "launch": "cuLaunchKernel", "move": "cuMemcpyDtoDAsync_v2",
    "fetch": "cuMemcpyDtoHAsync_v2", "wait": "cuStreamSynchronize", "map": drivers.MAP,
    "map_windows": drivers.MAP_WINDOWS, "record": "cuEventRecord", "await": "cuEventSynchronize",
}  # fmt: skip
"""What native code asks a device for → the driver's function."""


class CudaBackend(Backend):
    """One GPU."""

    name: ClassVar[str] = "cuda"
    targets: ClassVar[tuple[str, ...]] = ("ptx", "llvm", "optimized", "expanded")
    has_addresses: ClassVar[bool] = True
    ordinal: ClassVar[int] = 0

    def __init__(self, *, cache: ProgramCache | None = None, memory_limit: int | None = None) -> None:
        super().__init__()
        self.device = devices.device(self.ordinal)
        self.target = target(self.device.capability)
        self.cache = cache or ProgramCache(durable=False)
        self.tuning = Tuning(self.cache.directory, self.device)
        self._description = replace(self.device.description(), tuned=self.tuning.marks)
        self._driver = drivers.driver()
        number = self._driver.number("cuDeviceGet", self.ordinal)
        self._context = self._driver.handle("cuDevicePrimaryCtxRetain", number)
        self._room = room_for(self._driver.number("cuDriverGetVersion"))  # bytes of parameters of a kernel
        self.lock = threading.RLock()  # whoever has it, has the device alone
        self._buffers: HandleTable[Memory] = HandleTable(self.number, "buffer")
        self._pools: HandleTable[Memory] = HandleTable(self.number, "pool")
        self._prepared: OrderedDict[str, Prepared] = OrderedDict()
        self._enter()
        self.streams = Streams(self._driver, self._enter)
        functions = {
            what: self._driver.address(name)
            for what, name in ASKED.items()
            if name not in drivers.MAPS or self._driver.has_maps
        }
        graphs = self._driver.graphs() if flags.choice("ESHKOL_CUDA_GRAPHS") is not False else None
        self.queue = QueuedDevice(functions, self._context, self.stream, graphs)
        self.memory = device_allocator(self._driver, self._enter, self._description.largest, memory_limit)
        # The methods themselves: a call in between would cost as much as they do.
        self.take, self.give = self.memory.allocate, self.memory.free  # type: ignore[method-assign,assignment]
        self.streams.attach(self.queue, self.memory)
        self._staging = Staging(self._driver, lambda: self.stream)
        self._pinned = PinnedMemory(self._driver, self._enter)
        self._class_memory = 0
        self._status = self.memory.allocate(STATUS_BYTES)
        self._staging.to_device(self._status, no_faults(1).view(np.uint8))

    @classmethod
    def unavailable(cls) -> str | None:
        return llvm_targets.unavailable() or drivers.unavailable()

    @classmethod
    def machines(cls) -> list[dict[str, Any]]:
        return [device.facts() for device in devices.devices()]

    @classmethod
    def numbered(cls, number: int) -> type[Backend]:
        return _numbered(number)

    @property
    def description(self) -> MachineDescription:
        return as_wanted(self._description)

    @property
    def statistics(self) -> MemoryStatistics:
        """What its memory is used for."""
        return self.memory.statistics

    def _enter(self) -> None:
        """Make the device the thread's own: others may have made theirs so in between."""
        self._driver.call("cuCtxSetCurrent", self._context)

    @property
    def stream(self) -> int:
        """The driver's handle of the stream that is used now."""
        return self.streams.handle

    @property
    def copies_at_once(self) -> bool:
        return self.streams.current != 0  # so that it happens on that stream

    def synchronize(self) -> None:
        """Wait until the device has done all that it was asked for, on all streams."""
        self._enter()
        for handle in self.streams.handles:
            self._driver.call("cuStreamSynchronize", handle)
        self.streams.let_go()

    def event(self) -> CudaEvent:
        return CudaEvent(self._driver, self._enter, lambda: self.stream)

    def stream_numbered(self, number: int | None = None) -> CudaStream:
        return CudaStream(self.streams, self.lock, self.streams.current if number is None else number)

    def new_stream(self) -> CudaStream:
        with self.lock:
            return CudaStream(self.streams, self.lock, self.streams.new())

    def when_made(self, address: int) -> None:
        """Let what comes on the stream that is used now be after what lies at an address was made."""
        if self.streams.several:
            with self.lock:
                self.streams.ready(address)

    def release(self) -> None:
        self.memory.release()

    # --- buffers ----------------------------------------------------------------------------------

    def allocate(self, size: int) -> BufferHandle:
        return BufferHandle(self.number, self._buffers.add(self._block(size, "buffer")))

    def buffer_at(self, address: int, ty: Type, count: int) -> TypedBuffer:
        return self.adopt_address(address, ty, count, None)

    def _block(self, size: int, what: str) -> Memory:
        check_size(size, self.description.largest, what)
        address = self.memory.allocate(size)
        if self.streams.several:
            self.streams.fresh(address)
        return Memory(address, size)

    def free(self, handle: BufferHandle) -> None:
        memory = self._buffers.remove(handle)
        if memory.owner is None:
            self.memory.free(memory.address)
        else:
            with suppress(BackendError):  # a device that is gone reads nothing any more
                self.synchronize_all()  # the other library may use it again at once

    def adopt_address(self, address: int, ty: Type, count: int, owner: Any) -> TypedBuffer:
        """A buffer in memory of the device that another library has; `owner` is held as long as the buffer.

        Without one, the memory is ours. Kernels rely on how buffers are aligned: memory of others that begins in
        between is copied.
        """
        if owner is not None and address % BUFFER_ALIGNMENT:
            size = count * ty.size_bytes
            handle = self.allocate(size)
            self._enter()
            self.copy_addresses(self.address(handle), address, size)
            self.synchronize()  # the other library may use it again at once
            return TypedBuffer(self, handle, ty, count)
        if owner is not None and self.streams.several:
            self.streams.note(address)  # it is ready for the stream that is used now
        handle = BufferHandle(self.number, self._buffers.add(Memory(address, count * ty.size_bytes, owner)))
        return TypedBuffer(self, handle, ty, count)

    def device_of(self, address: int) -> int:
        """The number of the device that an address is of."""
        self._enter()
        found = ctypes.c_int()
        self._driver.call("cuPointerGetAttribute", ctypes.byref(found), DEVICE_ORDINAL, address)
        return found.value

    def wait_for(self, stream: int) -> None:
        """Wait until a stream of another library has done what it was asked for."""
        self._enter()
        self._driver.call("cuStreamSynchronize", stream)

    def synchronize_all(self) -> None:
        """Wait for all streams of the device, those of other libraries too; the thread keeps the device that it has."""
        self._driver.call("cuCtxPushCurrent_v2", self._context)
        try:
            self._driver.call("cuCtxSynchronize")
        finally:
            self._driver.call("cuCtxPopCurrent_v2", ctypes.byref(ctypes.c_void_p()))

    def copy_to(self, handle: BufferHandle, data: Any, offset: int = 0) -> None:
        raw = as_bytes(data)
        self.checked_copy(handle, offset, raw.size)
        self._enter()
        start = self._buffers.get(handle).address
        with self._written(start):
            if not self._pinned.copied(start + offset, raw, self.stream):
                self._staging.to_device(start + offset, raw)

    def copy_from(self, handle: BufferHandle, offset: int = 0, size: int | None = None) -> bytes:
        memory = self._buffers.get(handle)
        size = memory.size - offset if size is None else size
        self.checked_copy(handle, offset, size)
        self._enter()
        self.when_made(memory.address)
        return self._staging.from_device(memory.address + offset, size).tobytes()

    @contextmanager
    def _written(self, address: int) -> Iterator[None]:
        """Around what writes to memory: after all that may read it, and known to be there then."""
        several = self.streams.several
        if several:
            self.streams.overwritten(address)
        yield
        if several:
            self.streams.note(address)

    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Array:
        return self._pinned.array(shape, dtype)

    def copy_within(
        self, target: BufferHandle, target_offset: int, source: BufferHandle, source_offset: int, size: int
    ) -> None:
        self.checked_copy(target, target_offset, size)
        self.checked_copy(source, source_offset, size)
        self._enter()
        to, origin = (self._buffers.get(h).address + k for h, k in ((target, target_offset), (source, source_offset)))
        if size:
            self.copy_addresses(to, origin, size)

    def size(self, handle: BufferHandle) -> int:
        return self._buffers.get(handle).size

    def address(self, handle: BufferHandle) -> int:
        return self._buffers.get(handle).address

    def read_at(self, address: int, size: int) -> bytes:
        self._enter()
        self.when_made(address)
        return self._staging.from_device(address, size).tobytes()

    def write_at(self, address: int, data: Any) -> None:
        self._enter()
        with self._written(address):
            self._staging.to_device(address, as_bytes(data))

    def copy_addresses(self, target: int, source: int, size: int) -> None:
        """Copy bytes of the device's memory to another address of it."""
        if self.streams.several:
            self.streams.after_all()
        self._driver.call("cuMemcpyDtoDAsync_v2", target, source, size, self.stream)
        if self.streams.several:
            self.synchronize()  # which of these there are, is not known

    def set_bytes(self, handle: BufferHandle, value: int) -> None:
        """Give every byte of a buffer a value."""
        memory = self._buffers.get(handle)
        self._enter()
        with self._written(memory.address):
            self._driver.call("cuMemsetD8Async", memory.address, value, memory.size, self.stream)

    # --- pools ------------------------------------------------------------------------------------

    def allocate_pool(self, capacity: int) -> PoolHandle:
        memory = self._block(capacity, "pool")
        self._enter()
        if capacity:
            self._driver.call("cuMemsetD8Async", memory.address, 0, capacity, self.stream)
        return PoolHandle(self.number, self._pools.add(memory))

    def free_pool(self, handle: PoolHandle) -> None:
        self.memory.free(self._pools.remove(handle).address)

    def _in_pool(self, handle: PoolHandle, offset: int, size: int) -> int:
        memory = self._pools.get(handle)
        if offset < 0 or size < 0 or offset + size > memory.size:
            raise InvalidBuffer(f"bytes {offset} to {offset + size} are outside a pool of {memory.size} bytes")
        self._enter()
        return memory.address + offset

    def copy_to_pool(self, handle: PoolHandle, offset: int, data: Any) -> None:
        raw = as_bytes(data)
        self._staging.to_device(self._in_pool(handle, offset, raw.size), raw)

    def copy_from_pool(self, handle: PoolHandle, offset: int, size: int) -> bytes:
        return self._staging.from_device(self._in_pool(handle, offset, size), size).tobytes()

    def pool_size(self, handle: PoolHandle) -> int:
        return self._pools.get(handle).size

    # --- compilation ------------------------------------------------------------------------------

    def prepared(self, program: Program) -> Prepared:
        """What is kept of a program."""
        with self.lock:
            found = self._prepared.get(program.digest)
            if found is None:
                at_once = (
                    whole(program, self.device.multiprocessors, self.tuning.pick) if self.device.warpgroups else None
                )
                base = in_base_instructions(program) if at_once is None else program
                has_classes = any(map(touches_classes, base.instructions))
                relied_on = promises(base) if at_once is None else None
                found = Prepared(base, Layout.of(base), relied_on, has_classes, at_once)
                self._prepared[program.digest] = found
                if len(self._prepared) > REMEMBERED:
                    self.synchronize()  # it may still run, and goes unless a sequence has it
                    self._prepared.popitem(last=False)
            else:
                self._prepared.move_to_end(program.digest)
            return found

    def tune(self, answers: Mapping[Question, Answer]) -> Path:
        """Keep what was measured: kernels and plans are made anew, with these answers; where they are kept."""
        with self.turn():
            path = self.tuning.keep(answers)
            self.synchronize()
            self._prepared.clear()
            self._description = replace(self._description, tuned=self.tuning.marks)
            return path

    def at_once(self, program: Program, pick: Pick) -> Whole | None:
        """The kernel that does all of a program, if there is one, with the tile that is picked."""
        return whole(program, self.device.multiprocessors, pick) if self.device.warpgroups else None

    def load_alone(self, program: Program, at_once: Whole) -> Prepared:
        """A program with a kernel that does it all at once, on the device; by any thread."""
        self._enter()
        prepared = Prepared(program, Layout.of(program), None, False, at_once)
        self._loaded(prepared, fast=False)
        return prepared

    @contextmanager
    def using(self, prepared: Prepared) -> Iterator[None]:
        """Within it, launches of a program are those of what was prepared of it."""
        with self.turn():
            digest = prepared.program.digest
            before = self._prepared.pop(digest, None)
            self._prepared[digest] = prepared
            try:
                yield
            finally:
                del self._prepared[digest]
                if before is not None:
                    self._prepared[digest] = before

    def _loaded(self, prepared: Prepared, *, fast: bool) -> Loaded:
        """A program on the device: already there, from the disk cache, or compiled now."""
        found = prepared.fast if fast else prepared.plain
        if found is None:
            if prepared.whole is None:
                module = translate(prepared.program, self.target, prepared.promises if fast else None)
                found = self._compiled(module, self.target, prepared.program.name)
            else:  # to be kept it would have to be linked, and what is linked may not divide registers among warps
                name, text = prepared.program.name, prepared.whole.text.encode()
                handle = self._driver.loaded(modules.named(text, name))  # the driver itself keeps it
                found = self._found(prepared.layout, handle, text, name)
            if fast:
                prepared.fast = found
            else:
                prepared.plain = found
        return found

    def _compiled(self, module: CudaModule, for_target: Target, name: str) -> Loaded:
        text = cached_ptx(self.cache, module, for_target, name)
        return self._found(module.layout, modules.load(self._driver, self.cache, self.device, text, name), text, name)

    def _found(self, layout: Layout, handle: int, text: bytes, name: str) -> Loaded:
        kernel = self._driver.handle("cuModuleGetFunction", handle, modules.entry(name).encode())
        return Loaded(layout, handle, kernel, b"fault" in text, self._driver)  # else LLVM has left it out

    def compile_to_expanded(self, program: Program) -> str:
        """The program in the instructions that are translated."""
        return str(in_base_instructions(program))

    def compile_to_llvm(self, program: Program) -> str:
        """LLVM IR as it is translated."""
        return translate(in_base_instructions(program), self.target).text

    def compile_to_optimized(self, program: Program) -> str:
        """LLVM IR after LLVM's optimizer."""
        return objects.optimized_ir(self.compile_to_llvm(program), self.target)

    def compile_to_ptx(self, program: Program) -> str:
        """What the driver is given, fast where there is such a version."""
        base = in_base_instructions(program)
        return ptx(translate(base, self.target, promises(base)), self.target)

    # --- execution --------------------------------------------------------------------------------

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        prepared = self._fitting(program, launch)
        with self.turn():
            record = self._record(prepared, launch)
            for name, binding in bind_params(self, prepared.program, params).items():
                value = binding.value
                if isinstance(value, Immediate):
                    record.scalar(name, value)
                else:
                    memory = self._pools.get(value) if isinstance(value, PoolHandle) else self._buffers.get(value)
                    record.buffer(name, memory.size, memory.address)
            loaded = self._suitable(prepared, launch, record)
            alone = [self._launch(prepared, loaded, launch, record, self._status)]
            if self.streams.several:
                self.synchronize()  # which buffers it reads and writes, is not known
            code = NativeLaunches(self.queue, [(native.CALL, 0, 0, 0, 0, 0)], alone, 0, 0, 0, 0).run(())
            if code:
                raise self.refusal("launch", code)
            if loaded.can_fail:
                self._raise_fault(prepared.program, loaded.layout)
            if self.streams.several:
                self.synchronize()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """The device is this thread's alone."""
        with self.lock:
            self._enter()
            yield

    def _fitting(self, program: Program, launch: LaunchConfig) -> Prepared:
        """What is kept of a program, once the launch is found to suit it."""
        prepared = self.prepared(program)
        if launch not in prepared.launches:
            validate(prepared.program, launch)
            self._check_launch(prepared.program, launch)
            prepared.launches.add(launch)
        return prepared

    def _suitable(self, prepared: Prepared, launch: LaunchConfig, record: LaunchRecord) -> Loaded:
        """The module for a launch: the fast one where what it relies on holds."""
        return self._loaded(prepared, fast=prepared.is_fast(launch, record.sizes, record.scalars))

    def sequence(self, steps: Sequence[SequenceStep], places: int) -> Runner:
        with self.turn():
            return CudaSequence(self, steps, places)

    def _of_call(self, call: Call) -> tuple[Prepared, LaunchRecord, list[tuple[int, int, int]]]:
        """What is kept of a call's program, its record, and which words of that are addresses of places."""
        prepared = self._fitting(call.program, call.launch)
        record = self._record(prepared, call.launch)
        buffers = []
        for param in prepared.program.params:
            if param.name in call.buffers:
                place, offset, size = call.buffers[param.name]
                assert param.ty is not None
                if param.count is not None and size < param.count * param.ty.size_bytes:
                    raise IsaError(f"the buffer '{param.name}' needs {param.count} × {param.ty}, but has {size} bytes")
                buffers.append((record.buffer(param.name, size), place, offset))
            else:
                record.scalar(param.name, bind_scalar(param, call.numbers[param.name]))
        return prepared, record, buffers

    def ready(self, call: Call, status: int) -> tuple[NativeLaunch, Program, Loaded]:
        """A launch of a sequence but for the addresses of its buffers, with its module and the program it is of."""
        prepared, record, buffers = self._of_call(call)
        loaded = self._suitable(prepared, call.launch, record)
        if prepared.whole is not None and self.tuning.seen is not None:
            self.tuning.seen.append(call)
        return self._launch(prepared, loaded, call.launch, record, status, buffers), prepared.program, loaded

    def together(self, calls: Sequence[Call]) -> list[Joint]:
        """Those of calls that need nothing of each other which are one launch."""
        members = [Member(number, call.launch, *self._of_call(call)) for number, call in enumerate(calls)]
        found = []
        for table in tables(members, self.target, self._room):
            for_target = target(self.device.capability, least_ptx(table.size))
            found.append(Joint(table.numbers, table, self._compiled(table.module(), for_target, table.name)))
        return found

    def status_block(self, count: int) -> StatusBlock:
        """Statuses for so many launches."""
        block = StatusBlock(self._block(STATUS_BYTES * count, "status").address, self.memory)
        self.write_at(block.address, no_faults(count))
        return block

    def refusal(self, asked: str, code: int) -> BackendError:
        """What the driver says to something that native code has asked for."""
        return self._driver.error(code, ASKED[asked])

    def _check_launch(self, program: Program, launch: LaunchConfig) -> None:
        if launch.blocks > GRID_LIMIT:
            raise BackendUnavailable(f"a GPU runs {GRID_LIMIT} blocks at most, not {launch.blocks}")
        refuse_launch(self.name, self.device.name, self.device.shared_bytes, program, launch)

    def _record(self, prepared: Prepared, launch: LaunchConfig) -> LaunchRecord:
        return LaunchRecord(prepared.layout, launch, self._classes() if prepared.has_classes else 0)

    def _classes(self) -> int:
        """The address of the classes' memory, which persists between launches; it is made when one touches it."""
        with self.lock:
            if not self._class_memory:
                memory = self._block(CLASS_MEMORY_BYTES, "class memory")
                self._driver.call("cuMemsetD8Async", memory.address, 0, memory.size, self.stream)
                self._class_memory = memory.address
        return self._class_memory

    def _launch(
        self, prepared: Prepared, loaded: Loaded, launch: LaunchConfig, record: LaunchRecord, status: int,
        buffers: Sequence[tuple[int, int, int]] = (),
    ) -> NativeLaunch:  # fmt: skip
        blocks, lanes, shared = launch.blocks, launch.block_size, launch.shared_memory
        maps: tuple[NativeMap, ...] = ()
        if prepared.whole is not None:
            blocks, lanes, shared = prepared.whole.blocks, prepared.whole.threads, prepared.whole.memory
            maps = record.maps(prepared.whole.maps)
        if shared > loaded.shared:
            self._driver.call("cuFuncSetAttribute", loaded.kernel, MOST_SHARED, shared)
            loaded.shared = shared
        return NativeLaunch(
            loaded.kernel, blocks, lanes, shared, bytes(record.bytes), buffers, status, loaded.can_fail, maps
        )

    def _raise_fault(self, program: Program, layout: Layout) -> None:
        """Wait for a launch; where a lane has failed, say so."""
        code = int(self._staging.from_device(self._status, 8).view(np.uint64)[0])
        if code == words.NO_FAULT:
            return
        self._driver.call("cuMemsetD8Async", self._status, 0xFF, 8, self.stream)
        raise layout.error(program, code)

    @property
    def phase(self) -> int:
        """The phase, which persists between launches."""
        self._enter()
        return int(self._staging.from_device(self._status + 8, 8).view(np.uint64)[0])


@cache
def _numbered(number: int) -> type[CudaBackend]:
    """The backend of a GPU by its number; the first is the one without."""
    if number == 0:
        return CudaBackend
    return type(f"CudaBackend{number}", (CudaBackend,), {"name": f"cuda:{number}", "ordinal": number})
