"""`CpuBackend`: buffers in host memory, programs compiled through LLVM and run on all cores.

Comes in: Atlas programs. Extensions without a native lowering are expanded; the rest is translated by
`backends/llvm`, compiled once and cached. A failing lane stops; the launch then raises `ExecutionFailed` with the
instruction and the lowest lane that failed. Unlike the reference it does not look for races or unwritten memory.
"""

from __future__ import annotations

import ctypes
import operator
import struct
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.cache import ProgramCache
from eshkol.atlas.classes import CLASS_MEMORY_BYTES
from eshkol.atlas.expand import expand, is_collective
from eshkol.atlas.flow import located
from eshkol.atlas.isa import Control, Instruction
from eshkol.atlas.operands import Immediate
from eshkol.atlas.pool import Pool
from eshkol.atlas.program import LaunchConfig, Param, ParamKind, Program
from eshkol.atlas.table import ROWS
from eshkol.atlas.types import ALL_TYPES, Array, Type, encode
from eshkol.atlas.validate import validate
from eshkol.backends.base import (
    BufferHandle,
    Capabilities,
    HandleTable,
    HostPoolBackend,
    TypedBuffer,
    as_bytes,
    bind_params,
    check_size,
)
from eshkol.backends.cpu import macros, simd
from eshkol.backends.cpu.collective import ALIGNMENT, FUNCTION_TYPE, Collective
from eshkol.backends.llvm import compile as native
from eshkol.backends.llvm import layout as words
from eshkol.backends.llvm.kernels import ENDED, Module, translate
from eshkol.backends.llvm.layout import Layout
from eshkol.backends.llvm.macro import Macro, module_text
from eshkol.backends.llvm.scalars import LOWERINGS
from eshkol.errors import AllocationFailed, BackendUnavailable, EshkolError, ExecutionFailed
from eshkol.runtime.scheduler import ROUNDS_DIVERGED, ROUNDS_ENDED, ROUNDS_FAILED, default_scheduler

ALLOCATION_LIMIT = 1 << 40
SHARED_LIMIT = 1 << 20  # bytes per block
POOL_MAKERS = frozenset({"PoolAlloc", "PoolFree"})
STEPS_PER_TASK = 1 << 17  # fewer instructions are not worth waking another core for
REMEMBERED = 256  # compiled programs kept loaded
_PACKERS = {
    Type.F32: struct.Struct("<f").pack_into, Type.F64: struct.Struct("<d").pack_into,
    Type.I32: struct.Struct("<i").pack_into, Type.I64: struct.Struct("<q").pack_into,
    Type.U32: struct.Struct("<I").pack_into, Type.U64: struct.Struct("<Q").pack_into,
}  # fmt: skip


@dataclass(frozen=True)
class Lanes:
    """The lanes of a program as native code."""

    module: Module
    loaded: native.Loaded
    address: int  # of the kernel
    call: Callable[[int, int, int], None]  # the kernel, called from Python on this thread alone


@dataclass(frozen=True)
class Compiled:
    """A program ready to run."""

    program: Program  # as it was translated, for the text of errors
    layout: Layout
    lanes: Lanes | None  # None where lanes have nothing to do but what all do together
    together: Mapping[int, Collective]  # instructions that the host runs, in program order


@dataclass(frozen=True)
class Prepared:
    """A program ready for one launch configuration."""

    program: Program  # kept, so that its id stays its own
    compiled: Compiled
    record_type: Any
    template: bytes
    places: Mapping[str, int]
    words: int  # of the record; as many more as there are parameters follow, for scalars
    quick: list[tuple[Param, int, Any]]  # parameter, its place, and how a scalar of its type is packed
    launch: LaunchConfig
    blocks: int
    # Blocks that are not worth splitting over cores, at the start and behind each barrier; negative behind those at
    # which the host has something to do.
    grains: ctypes.Array[ctypes.c_int64]
    direct: Callable[[int, int, int], None] | None  # the kernel, where this thread alone runs all blocks at once


@dataclass(frozen=True, slots=True)
class Bound:
    """The record of a launch that is repeated, where its parameters are all buffers."""

    prepared: Prepared
    values: list[Any]  # buffers, in the order of the parameters
    removals: int  # of buffers, up to then
    record: bytes
    again: Callable[[], None] | None  # what is left to do then, where that is one instruction of all lanes


class Buffer:
    """Memory of a buffer; its address is asked for once, because NumPy takes long to tell it."""

    __slots__ = ("address", "data", "size")

    def __init__(self, size: int) -> None:
        self.data = aligned_bytes(size)
        self.address, self.size = self.data.ctypes.data, size


class AdoptedBuffer(Buffer):
    """A buffer over memory that is there already; it keeps that alive."""

    __slots__ = ()

    def __init__(self, data: Array) -> None:
        self.data = data
        self.address, self.size = data.__array_interface__["data"][0], data.size


def _only_together(program: Program, together: Collection[int]) -> bool:
    """Whether lanes have nothing to do but, one after another, what all lanes do together."""
    last = len(program) - 1
    return bool(together) and program.start == 0 and all(
        index in together or (index == last and i.op.control is Control.EXIT)
        for index, i in enumerate(program.instructions)
    )  # fmt: skip


def aligned_bytes(size: int) -> Array:
    """Zeroed memory at a cache line's boundary."""
    whole = np.zeros(size + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]


class CpuBackend(HostPoolBackend):
    """Native code on the host's cores."""

    name: ClassVar[str] = "cpu"
    targets: ClassVar[tuple[str, ...]] = ("llvm", "optimized", "assembly", "expanded")
    shares_host_memory: ClassVar[bool] = True

    def __init__(
        self, *, level: simd.Level | None = None, cache: ProgramCache | None = None, expanded: bool = False
    ) -> None:
        """At a level that this machine lacks it only emits code; `expanded` runs no array instruction natively."""
        super().__init__()
        self.expanded = expanded
        self.level = level or simd.chosen_level()
        self.target = simd.target(self.level)
        self.cache = cache or ProgramCache()
        self.class_memory = aligned_bytes(CLASS_MEMORY_BYTES)
        self.phase = 0
        self._buffers: HandleTable[Buffer] = HandleTable(self.number, "buffer")
        self._compiled: OrderedDict[str, Compiled] = OrderedDict()
        self._prepared: OrderedDict[tuple[int, LaunchConfig], Prepared] = OrderedDict()
        self._latest: Prepared | None = None  # programs are mostly launched again and again
        self._noted: tuple[Prepared, list[Any]] | None = None  # the latest launch that was bound, and its parameters
        self._bound: Bound | None = None

    @classmethod
    def unavailable(cls) -> str | None:
        try:
            native.llvm()
        except ImportError:
            return "llvmlite is not installed (pip install llvmlite)"
        except OSError as error:
            return f"llvmlite does not load: {error}"
        return None

    @property
    def capabilities(self) -> Capabilities:
        extensions = frozenset(n for n in (*LOWERINGS, *macros.LOWERINGS) if n in ROWS and ROWS[n].is_extension)
        return Capabilities(ALL_TYPES, ALLOCATION_LIMIT, SHARED_LIMIT, 1, True, True, extensions)

    # --- buffers ----------------------------------------------------------------------------------

    def allocate(self, size: int) -> BufferHandle:
        check_size(size, ALLOCATION_LIMIT, "buffer")
        try:
            buffer = Buffer(size)
        except MemoryError:
            raise AllocationFailed(f"no memory for a buffer of {size} bytes") from None
        return BufferHandle(self.number, self._buffers.add(buffer))

    def adopt(self, array: Array, ty: Type) -> TypedBuffer:
        buffer = AdoptedBuffer(array.reshape(-1).view(np.uint8))
        return TypedBuffer(self, BufferHandle(self.number, self._buffers.add(buffer)), ty, array.size)

    def free(self, handle: BufferHandle) -> None:
        self._buffers.remove(handle)

    def copy_to(self, handle: BufferHandle, data: Any, offset: int = 0) -> None:
        raw = as_bytes(data)
        self.checked_copy(handle, offset, raw.size)
        self._buffers.get(handle).data[offset : offset + raw.size] = raw

    def copy_from(self, handle: BufferHandle, offset: int = 0, size: int | None = None) -> bytes:
        memory = self._buffers.get(handle).data
        size = memory.size - offset if size is None else size
        self.checked_copy(handle, offset, size)
        return memory[offset : offset + size].tobytes()

    def size(self, handle: BufferHandle) -> int:
        return self._buffers.get(handle).data.size

    # --- compilation ------------------------------------------------------------------------------

    def _expanded(self, program: Program) -> tuple[Program, dict[int, Macro]]:
        """The program in instructions that are translated, and those among them that are macros, by their place."""

        def wanted(i: Instruction) -> bool:
            return i.op.name not in LOWERINGS and (self.expanded or macros.lower(i, self.target) is None)

        base = expand(program, wanted)
        left = [(k, i) for k, i in enumerate(base.instructions) if i.op.is_extension and i.op.name not in LOWERINGS]
        found = {index: macros.lower(i, self.target) for index, i in left}
        return base, {index: macro for index, macro in found.items() if macro is not None}

    def compiled(self, program: Program) -> Compiled:
        """The program as native code: from memory, from the disk cache, or compiled now."""
        if self.level not in simd.levels():
            raise BackendUnavailable(f"this machine has no {self.level.value}; it can only be emitted")
        found = self._compiled.get(program.digest)
        if found is not None:
            self._compiled.move_to_end(program.digest)
            return found
        base, found_macros = self._expanded(program)
        together = {
            index: Collective(base, index, macro, self.cache, self.target)
            for index, macro in found_macros.items() if is_collective(base.instructions[index])
        }  # fmt: skip
        lanes = None
        if not _only_together(base, together):
            module = translate(base, self.target, found_macros)
            loaded = native.load_cached(self.cache, {"backend": self.name}, module.text, self.target, program.name)
            address = loaded.address("kernel")
            lanes = Lanes(module, loaded, address, FUNCTION_TYPE(address))
        result = Compiled(base, lanes.module.layout if lanes else Layout.of(base), lanes, together)
        self._compiled[program.digest] = result
        if len(self._compiled) > REMEMBERED:
            self._compiled.popitem(last=False)
        return result

    def compile_to_llvm(self, program: Program) -> str:
        """LLVM IR as it is translated."""
        return "\n".join(self._modules(program))

    def _modules(self, program: Program) -> list[str]:
        """The lanes' module, and one for each instruction that the host runs."""
        base, found = self._expanded(program)
        together = {index: macro for index, macro in found.items() if is_collective(base.instructions[index])}
        lanes = [] if _only_together(base, together) else [translate(base, self.target, found).text]
        return [*lanes, *dict.fromkeys(module_text(macro) for macro in together.values())]

    def compile_to_optimized(self, program: Program) -> str:
        """LLVM IR after LLVM's optimizer."""
        return "\n".join(native.optimized_ir(text, self.target) for text in self._modules(program))

    def compile_to_assembly(self, program: Program) -> str:
        """The machine's assembler."""
        return "\n".join(native.assembly(text, self.target) for text in self._modules(program))

    def compile_to_expanded(self, program: Program) -> str:
        """The program in the instructions that are translated."""
        return str(self._expanded(program)[0])

    # --- execution --------------------------------------------------------------------------------

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        prepared = self._latest
        if prepared is None or prepared.program is not program or prepared.launch is not launch:
            prepared = self._latest = self._prepare(program, launch)
        given, bound = params or {}, self._bound
        alive: list[Any] = []
        if (
            bound is not None
            and bound.prepared is prepared
            and bound.removals == self._buffers.removals
            and len(given) == len(bound.values)
            and all(map(operator.is_, bound.values, map(given.get, prepared.places)))
        ):
            if bound.again is not None:
                bound.again()
                return
            record = prepared.record_type.from_buffer_copy(bound.record)
        else:
            record = prepared.record_type.from_buffer_copy(prepared.template)
            removals = self._buffers.removals
            alive = self._bind(prepared, record, given)
            self._note(prepared, given, record, removals)
        record[words.PHASE] = self.phase
        if prepared.direct is not None:
            prepared.direct(ctypes.addressof(record), 0, prepared.blocks)
        else:
            self._run(prepared, record)
        del alive  # what the record points to had to outlive the launch
        self.phase = record[words.PHASE]
        if record[words.FAULT] != words.NO_FAULT:
            raise self._fault(prepared.compiled, record[words.FAULT])

    def _note(self, prepared: Prepared, given: Mapping[str, Any], record: Any, removals: int) -> None:
        """If this launch repeats the one before, keep its record for the next."""
        before, values = self._noted, [*map(given.get, prepared.places)]
        self._noted = prepared, values
        if before is None or before[0] is not prepared or not all(map(operator.is_, before[1], values)):
            return
        if all(type(value) is TypedBuffer for value in values):
            compiled, again = prepared.compiled, None
            if compiled.lanes is None and len(compiled.together) == 1:
                (only,) = compiled.together.values()
                again = only.repeated(record)
            self._bound = Bound(prepared, values, removals, bytes(record), again)

    def _prepare(self, program: Program, launch: LaunchConfig) -> Prepared:
        """What does not change from launch to launch: checks, code, and the record but for its parameters."""
        key = (id(program), launch)
        found = self._prepared.get(key)
        if found is not None:
            return found
        validate(program, launch)
        if launch.shared_memory > SHARED_LIMIT:
            raise AllocationFailed(f"{launch.shared_memory} bytes of shared memory are over {SHARED_LIMIT} per block")
        compiled = self.compiled(program)
        size = compiled.layout.words
        record_type = ctypes.c_uint64 * (size + len(program.params))
        template = record_type()
        template[words.FAULT] = words.NO_FAULT
        template[words.CLASS_MEMORY] = self.class_memory.ctypes.data
        template[words.SHARED_BYTES] = launch.shared_memory
        template[words.GRID : words.GRID + 3] = [*launch.grid]
        template[words.BLOCK : words.BLOCK + 3] = [*launch.block]
        places = {p.name: compiled.layout.word(p.name) for p in program.params}
        quick = [
            (p, places[p.name], _PACKERS.get(p.ty) if p.ty and p.kind is ParamKind.SCALAR else None)
            for p in program.params
        ]
        lanes, blocks = compiled.lanes, launch.blocks
        steps = lanes.module.steps if lanes is not None else ()
        grains = [max(1, STEPS_PER_TASK // (launch.block_size * n)) for n in steps]
        direct = None
        if lanes is not None:
            grains = [blocks] * len(grains) if lanes.module.serial else grains
            if blocks <= grains[0] and not lanes.module.grid_wide:
                direct = lanes.call
        for barrier, index in enumerate(compiled.layout.barriers, 1):
            host_acts = index in compiled.together or compiled.program.instructions[index].op.name in POOL_MAKERS
            grains[barrier] *= -1 if host_acts else 1
        found = Prepared(
            program,
            compiled,
            record_type,
            bytes(template),
            places,
            size,
            quick,
            launch,
            blocks,
            (ctypes.c_int64 * len(grains))(*grains),
            direct,
        )
        self._prepared[key] = found
        if len(self._prepared) > REMEMBERED:
            self._prepared.popitem(last=False)
        return found

    def _bind(self, prepared: Prepared, record: Any, params: Mapping[str, Any]) -> list[Any]:
        """Put addresses and sizes of the parameters into the record; whatever does not fit is an error."""
        if self._bind_quickly(prepared, record, params):
            return []
        alive: list[Any] = []
        for name, binding in bind_params(self, prepared.program, params).items():
            place, value = prepared.places[name], binding.value
            if isinstance(value, BufferHandle):
                buffer = self._buffers.get(value)
                record[place], record[place + 1] = buffer.address, buffer.size
                continue
            if isinstance(value, Immediate):
                memory = encode(value.array(), value.ty).reshape(-1)
            else:
                memory = self._pools.get(value).memory
            alive.append(memory)
            record[place], record[place + 1] = memory.ctypes.data, memory.size
        return alive

    def _bind_quickly(self, prepared: Prepared, record: Any, params: Mapping[str, Any]) -> bool:
        """The ordinary case, which launches repeat: typed buffers of this backend, and floats and small integers.

        Scalars are put into the words after the record. Anything else is left to the careful way, errors too.
        """
        if len(params) != len(prepared.quick):
            return False
        spare = prepared.words
        for param, place, pack in prepared.quick:
            value = params.get(param.name)
            if type(value) is TypedBuffer:
                if value.ty is not param.ty or value.handle.backend != self.number:
                    return False
                buffer = self._buffers.find(value.handle.number)
                if buffer is None or (param.count is not None and value.count < param.count):
                    return False
                record[place], record[place + 1] = buffer.address, buffer.size
            elif pack is not None and (type(value) is float or type(value) is int):
                try:
                    pack(record, 8 * spare, value)
                except (struct.error, OverflowError):
                    return False
                record[place], record[place + 1] = ctypes.addressof(record) + 8 * spare, 8
                spare += 1
            else:
                return False
        return True

    def _run(self, prepared: Prepared, record: Any) -> None:
        compiled, launch, lanes = prepared.compiled, prepared.launch, prepared.compiled.lanes
        if lanes is None:
            for instruction in compiled.together.values():
                instruction.run(record)
            return
        if not lanes.module.grid_wide:
            where = ctypes.addressof(record)
            default_scheduler().parallel_for_native(lanes.address, where, prepared.blocks, prepared.grains[0])
            return
        padded = -(-launch.shared_memory // 64) * 64
        stride = 64 + padded + launch.block_size * compiled.layout.context_bytes
        try:
            states = aligned_bytes(stride * launch.blocks)
        except MemoryError:
            raise AllocationFailed(f"no memory for the state of {launch.total_threads} waiting lanes") from None
        first = record[words.STATES] = states.ctypes.data
        where, grains = ctypes.addressof(record), ctypes.addressof(prepared.grains)
        pools: dict[str, Pool] = {}
        barrier = 0
        while True:
            barrier = default_scheduler().parallel_rounds_native(
                lanes.address, where, prepared.blocks, grains, barrier, first, stride
            )
            if barrier in (ROUNDS_ENDED, ROUNDS_FAILED):
                return
            if barrier == ROUNDS_DIVERGED:
                headers = np.ndarray((launch.blocks,), np.int32, states, strides=(stride,))
                raise self._diverged(compiled, headers, launch.block_size)
            self._act(compiled, barrier, record, pools)

    def _diverged(self, compiled: Compiled, headers: Array, block_size: int) -> ExecutionFailed:
        """Blocks wait at different barriers: the earliest is named, and the first lane of those there."""
        earliest = int(headers[headers != ENDED].min())
        lane = int(np.argmax(headers == earliest)) * block_size
        message = f"divergent barrier: not every lane of the launch has come here (lane {lane})"
        error = located(compiled.program, compiled.layout.barriers[earliest - 1], message)
        return ExecutionFailed(error.message, span=error.span, hint="move the barrier out of the branch")

    def _act(self, compiled: Compiled, barrier: int, record: Any, pools: dict[str, Pool]) -> None:
        """All blocks wait at a barrier of the launch: do what it is about."""
        index = compiled.layout.barriers[barrier - 1]
        instruction = compiled.program.instructions[index]
        if index in compiled.together:
            compiled.together[index].run(record)
            return
        name = instruction.pool
        place = compiled.layout.word(name)
        makes = instruction.op.name == "PoolAlloc"
        if makes is (name in pools):
            state = "already" if makes else "not"
            error = located(compiled.program, index, f"the pool '{name}' is {state} allocated")
            raise ExecutionFailed(error.message, span=error.span)
        if makes:
            pools[name] = Pool(instruction.size)
            record[place], record[place + 1] = pools[name].memory.ctypes.data, instruction.size
        else:
            del pools[name]
            record[place], record[place + 1] = 0, 0

    def _fault(self, compiled: Compiled, code: int) -> EshkolError:
        site = compiled.layout.sites[code & ((1 << words.SITE_BITS) - 1)]
        error = located(compiled.program, site.instruction, site.message)
        lane = code >> words.SITE_BITS
        return site.kind(f"{error.message} (lane {lane})", span=error.span, hint=site.hint)
