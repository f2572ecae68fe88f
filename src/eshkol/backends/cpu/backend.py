"""`CpuBackend`: buffers in host memory, programs compiled through LLVM and run on all cores.

Comes in: Atlas programs. Extensions without a native lowering are expanded; the rest is translated by `cpu/kernels`,
compiled once by `eshkol/llvm`, and cached. A failing lane stops; the launch then raises `ExecutionFailed` with the
instruction and the lowest lane that failed. Unlike the reference it does not look for races or unwritten memory.
"""

from __future__ import annotations

import ctypes
import struct
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.classes import CLASS_MEMORY_BYTES
from eshkol.atlas.expand import is_collective
from eshkol.atlas.flow import located
from eshkol.atlas.machines import CORES, MachineDescription
from eshkol.atlas.operands import Immediate
from eshkol.atlas.pool import Pool
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.sequence import NativeCode, Runner, SequenceStep
from eshkol.atlas.types import Array, Type, encode
from eshkol.atlas.validate import validate
from eshkol.backends.base import (
    BufferHandle,
    HandleTable,
    HostPoolBackend,
    TypedBuffer,
    as_bytes,
    bind_params,
    check_size,
)
from eshkol.backends.cpu import fourier, linear, macros, order, simd, translations
from eshkol.backends.cpu.collective import ALIGNMENT, Collective, kept_macro, loaded_macro, loaded_phases, macro_key
from eshkol.backends.cpu.expansion import expansion, only_together
from eshkol.backends.cpu.kernels.macro import Macro, module_text, phase_modules
from eshkol.backends.cpu.kernels.translate import KernelModule, translate
from eshkol.backends.cpu.launch import Compiled, Lanes, Placed, Prepared, Slot, diverged, special_of
from eshkol.backends.cpu.sequence import CpuSequence, SequenceWriter
from eshkol.backends.cpu.sized import SizedSequence
from eshkol.backends.cpu.tune import Mode, Rehearsal, Tuner, mode
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.layout import Layout
from eshkol.errors import AllocationFailed, BackendUnavailable, ExecutionFailed
from eshkol.llvm import objects
from eshkol.llvm import targets as llvm_targets
from eshkol.llvm.loading import HasAddresses, LoadedObject
from eshkol.llvm.passes import for_kernels
from eshkol.runtime.scheduler import ROUNDS_DIVERGED, ROUNDS_ENDED, ROUNDS_FAILED, PreparedCall, default_scheduler
from eshkol.support import installed
from eshkol.support.store import ProgramCache

ALLOCATION_LIMIT = 1 << 40
SHARED_LIMIT = 1 << 20  # bytes per block
DESCRIPTION = replace(CORES, name="cpu", largest=ALLOCATION_LIMIT, shared_memory=SHARED_LIMIT, native=True)
PROGRAMS_ALONE = replace(DESCRIPTION, name="cpu, without the runtime", native=False)  # what libraries are written for
REMEMBERED = 256  # compiled programs kept loaded
KEPT_STATES = 1 << 20  # bytes of waiting lanes' states that a record keeps for its next launch


def aligned_bytes(size: int) -> Array:
    """Zeroed memory at a cache line's boundary."""
    whole = np.zeros(size + ALIGNMENT, np.uint8)
    start = -whole.ctypes.data % ALIGNMENT
    return whole[start : start + size]


class Buffer:
    """Memory for a buffer."""

    def __init__(self, size: int) -> None:
        self.data = aligned_bytes(size)


class CpuBackend(HostPoolBackend):
    """Native code on the host's cores."""

    name: ClassVar[str] = "cpu"
    targets: ClassVar[tuple[str, ...]] = ("llvm", "optimized", "assembly", "expanded")
    shares_host_memory: ClassVar[bool] = True
    has_addresses: ClassVar[bool] = True

    def __init__(
        self, *, level: simd.Level | None = None, cache: ProgramCache | None = None, expanded: bool = False
    ) -> None:
        """At a level that this machine lacks it only emits code; `expanded` runs no array instruction natively."""
        super().__init__()
        self.expanded = expanded
        self.level = level or simd.chosen_level()
        self.target = simd.target(self.level)
        self.cache = cache or ProgramCache(durable=False)  # what is cut short is found out by its hash, and built again
        self.tuner = Tuner(self.cache, self.target)
        self.class_memory = aligned_bytes(CLASS_MEMORY_BYTES)
        self.phase = 0
        self._buffers: HandleTable[Placed] = HandleTable(self.number, "buffer")
        self._compiled: OrderedDict[str, Compiled] = OrderedDict()
        self._prepared: OrderedDict[tuple[int, LaunchConfig], Prepared] = OrderedDict()
        self._by_id: dict[tuple[int, int], Prepared] = {}  # the same by their configurations' ids, which is faster
        self._turn = threading.RLock()  # guards what is kept; one thread at a time compiles

    @classmethod
    def unavailable(cls) -> str | None:
        return llvm_targets.unavailable()

    @property
    def description(self) -> MachineDescription:
        return DESCRIPTION

    @property
    def store(self) -> ProgramCache | None:
        return self.cache

    # --- buffers ----------------------------------------------------------------------------------

    def allocate(self, size: int) -> BufferHandle:
        check_size(size, min(ALLOCATION_LIMIT, installed.memory()), "buffer")
        try:
            buffer = Placed(Buffer(size).data)
        except MemoryError:
            raise AllocationFailed(f"no memory for a buffer of {size} bytes") from None
        return BufferHandle(self.number, self._buffers.add(buffer))

    def adopt(self, array: Array, ty: Type) -> TypedBuffer:
        buffer = Placed(array.reshape(-1).view(np.uint8))  # which keeps the array alive
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

    def address(self, handle: BufferHandle) -> int:
        return self._buffers.get(handle).address

    def read_at(self, address: int, size: int) -> bytes:
        return ctypes.string_at(address, size)

    def write_at(self, address: int, data: Any) -> None:
        raw = as_bytes(data)
        ctypes.memmove(address, raw.ctypes.data, raw.size)

    # --- compilation ------------------------------------------------------------------------------

    def _expanded(self, program: Program) -> tuple[Program, dict[int, Macro]]:
        """The program in instructions that are translated, and those among them that are macros, by their place."""
        return expansion(program, self.target, self._lowered, all_of_it=self.expanded)

    def _lowered(self, program: Program, index: int) -> Macro | None:
        """An instruction as a macro: where the host runs it, with the sizes that were measured to be fast."""
        instruction = program.instructions[index]
        lower = partial(macros.lower, instruction, self.target)
        if not is_collective(instruction):
            return lower()

        def rehearse() -> Rehearsal | None:
            runs_here = self.level in simd.levels()
            return Rehearsal(program, index, self.cache, self.target) if runs_here else None

        return self.tuner.lowered(lower, rehearse)

    def compiled(self, program: Program) -> Compiled:
        """The program as native code: from memory, from the disk cache, or compiled now."""
        with self._turn:
            return self._compiled_before(program) or self._remember(program, self._compile(program))

    def compiled_anew(self, program: Program) -> Compiled:
        """The program as native code, not looked up and not kept: sizes in it are expressions, not numbers."""
        with self._turn:
            return self._compile(program)

    def sized_sequence(self, steps: Sequence[SequenceStep], places: int) -> SizedSequence:
        """Launches as `sequence` takes them, in which integers may be extents."""
        return SizedSequence(self, steps, places)

    def _compiled_before(self, program: Program) -> Compiled | None:
        """The program as native code, if it was compiled here or its translation was kept."""
        found = self._compiled.get(program.digest)
        if found is not None:
            self._compiled.move_to_end(program.digest)
            return found
        kept = None if self.expanded else translations.kept(self.cache, program, self.target)
        if kept is None:
            together = self._kept_together(program)
            if together is None:
                return None
            return self._remember(program, Compiled(lambda: program, Layout.of(program), None, together, frozenset()))
        module, expanded = kept.module, lambda: self._expanded(program)[0]
        return self._remember(
            program, Compiled(expanded, module.layout, self._loaded(program, module), {}, kept.special)
        )

    def _kept_together(self, program: Program) -> dict[int, Collective] | None:
        """The instructions of a program that the host runs, where these are all of it and were compiled before."""
        if self.expanded or mode() is Mode.MEASURE:
            return None
        kept = translations.kept_together(self.cache, program, self.target, for_kernels(), self.tuner.generation())
        found: dict[int, Collective] = {}
        for index, (macro, keys) in ({} if kept is None else kept).items():
            loaded = [self.load_kept(key) for key in keys]
            if None in loaded:  # evicted
                return None
            found[index] = Collective(program, index, macro, [x for x in loaded if x is not None])
        return found or None

    def _remember(self, program: Program, compiled: Compiled) -> Compiled:
        self._compiled[program.digest] = compiled
        if len(self._compiled) > REMEMBERED:
            self._compiled.popitem(last=False)
        return compiled

    def _compile(self, program: Program) -> Compiled:
        base, found_macros = self._expanded(program)
        together = {
            index: Collective(base, index, macro, loaded_phases(macro, self.load_macro))
            for index, macro in found_macros.items() if is_collective(base.instructions[index])
        }  # fmt: skip
        if only_together(base, together):
            if base is program and not self.expanded and mode() is not Mode.MEASURE:
                self._keep_together(program, {k: part.macro for k, part in together.items()})
            return Compiled(lambda: base, Layout.of(base), None, together, frozenset())
        module, special = translate(base, self.target, found_macros), special_of(base)
        if not found_macros and not self.expanded:
            translations.keep(self.cache, program, self.target, module, special)
        return Compiled(lambda: base, module.layout, self._loaded(program, module), together, special)

    def _keep_together(self, program: Program, macros: Mapping[int, Macro]) -> None:
        validate(program)  # so that what is found is known to be legal: buffers are in any launch what they are
        pipeline = for_kernels()
        kept = {}
        for index, macro in macros.items():
            phases = zip(macro.phases, phase_modules(macro), strict=True)
            keys = [macro_key(p.function, text, self.target, pipeline) for p, text in phases]
            kept[index] = translations.KeptMacro(macro, keys)
        translations.keep_together(self.cache, program, self.target, pipeline, self.tuner.generation(), kept)

    def _loaded(self, program: Program, module: KernelModule) -> Lanes:
        loaded = self.load_lanes(program.name, module.text)
        return Lanes(module, loaded, loaded.address("kernel"))

    def load_lanes(self, name: str, text: str) -> HasAddresses:
        """The module of a program's lanes, ready to be called."""
        self._check_level()
        return LoadedObject(self.lanes_object(name, text), self.target)

    def lanes_object(self, name: str, text: str) -> bytes:
        """The object of the module of a program's lanes."""
        return objects.cached_object(self.cache, {"backend": "cpu"}, text, self.target, name, for_kernels())

    def load_macro(self, name: str, text: str) -> HasAddresses:
        """A module with one function of a macro, ready to be called."""
        self._check_level()
        return loaded_macro(name, text, self.cache, self.target, for_kernels())

    def load_kept(self, key: str) -> HasAddresses | None:
        """Such a module by the key of its object, ready to be called; None where the object is not there."""
        self._check_level()
        return kept_macro(key, self.cache, self.target)

    def _check_level(self) -> None:
        if self.level not in simd.levels():
            raise BackendUnavailable(f"this machine has no {self.level.value}; it can only be emitted")

    def compile_to_llvm(self, program: Program) -> str:
        """LLVM IR as it is translated."""
        return "\n".join(self._modules(program))

    def _modules(self, program: Program) -> list[str]:
        """The lanes' module, and one for each instruction that the host runs."""
        base, found = self._expanded(program)
        together = {index: macro for index, macro in found.items() if is_collective(base.instructions[index])}
        lanes = [] if only_together(base, together) else [translate(base, self.target, found).text]
        return [*lanes, *dict.fromkeys(module_text(macro) for macro in together.values())]

    def compile_to_optimized(self, program: Program) -> str:
        """LLVM IR after LLVM's optimizer."""
        return "\n".join(objects.optimized_ir(text, self.target) for text in self._modules(program))

    def compile_to_assembly(self, program: Program) -> str:
        """The machine's assembler."""
        return "\n".join(objects.assembly(text, self.target) for text in self._modules(program))

    def compile_to_expanded(self, program: Program) -> str:
        """The program in the instructions that are translated."""
        return str(self._expanded(program)[0])

    # --- execution --------------------------------------------------------------------------------

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        prepared = self._by_id.get((id(program), id(launch))) or self.prepared(program, launch)
        given, alive = {} if params is None else params, None
        try:
            slot = prepared.spare.pop()
        except IndexError:
            slot = prepared.new_slot()
        try:
            bound = slot.removals == self._buffers.removals and given == slot.given
        except Exception:  # what cannot be compared is no buffer
            bound = False
        if not bound:
            alive = self._bind(prepared, slot, given)
        record = slot.record
        if prepared.phased:
            record[words.PHASE] = self.phase
        if slot.run is None:
            self._run(prepared, slot)
        elif status := slot.run():
            PreparedCall.refuse(status)
        del alive  # what the record points to had to outlive the launch
        if prepared.phased:
            self.phase = record[words.PHASE]
        if record[words.FAULT] != words.NO_FAULT:
            raise prepared.compiled.fault(record[words.FAULT])
        if not prepared.makes_pools:  # a record that a launch has failed on, or left pools in, is not used again
            prepared.spare.append(slot)

    def sequence(self, steps: Sequence[SequenceStep], places: int) -> Runner:
        """Launches and what is between them as one native call, over so many places of memory."""
        return CpuSequence.of(SequenceWriter(self, steps, places))

    def native(self, op: str, attrs: Any, inputs: Sequence[Any], outs: Sequence[Any]) -> NativeCode | None:
        make = linear.CODES.get(op) or order.CODES.get(op) or fourier.CODES.get(op)
        return None if make is None else make(attrs, inputs, outs)

    def prepared(self, program: Program, launch: LaunchConfig) -> Prepared:
        """What does not change from launch to launch: checks, code, and the record but for its parameters."""
        with self._turn:
            return self._prepared_now(program, launch)

    def _prepared_now(self, program: Program, launch: LaunchConfig) -> Prepared:
        key = (id(program), launch)
        found = self._prepared.get(key)
        if found is not None:
            return found
        compiled = self._compiled_before(program)
        if compiled is None or (compiled.lanes is not None and not compiled.lanes.module.one_loop):
            validate(program, launch)  # what is one loop, or the host's alone, and was compiled is legal in any launch
        if launch.shared_memory > SHARED_LIMIT:
            raise AllocationFailed(f"{launch.shared_memory} bytes of shared memory are over {SHARED_LIMIT} per block")
        found = Prepared.of(program, launch, compiled or self.compiled(program), self.class_memory)
        self._prepared[key] = self._by_id[id(program), id(launch)] = found
        if len(self._prepared) > REMEMBERED:
            _, oldest = self._prepared.popitem(last=False)
            self._by_id.pop((id(oldest.program), id(oldest.launch)), None)
        return found

    def _bind(self, prepared: Prepared, slot: Slot, params: Mapping[str, Any]) -> list[Any] | None:
        """Put addresses and sizes of the parameters into the record; whatever does not fit is an error.

        Returns what must live until the launch is over.
        """
        slot.given, alive, removals = None, None, self._buffers.removals
        bound = self._bound_quickly(prepared, slot, params)
        if bound is None:
            alive, bound = self._bound(prepared.program, params)
        slot.view[:] = b"".join(bound)
        if slot.held is not None and prepared.only is not None:
            prepared.only.bind(slot.held, slot.record)
        if alive is None and not prepared.has_scalars:
            slot.given, slot.removals = dict(params), removals
        return alive

    def _bound(self, program: Program, params: Mapping[str, Any]) -> tuple[list[Any], list[bytes]]:
        """What must live until the launch is over, and the words of every parameter."""
        alive: list[Any] = []
        bound: list[bytes] = []
        for binding in bind_params(self, program, params).values():
            value = binding.value
            if isinstance(value, BufferHandle):
                bound.append(self._buffers.get(value).words)
                continue
            if isinstance(value, Immediate):
                memory = encode(value.array(), value.ty).reshape(-1)
            else:
                memory = self._pools.get(value).memory
            alive.append(memory)
            bound.append(Placed(memory).words)
        return alive, bound

    def _bound_quickly(self, prepared: Prepared, slot: Slot, params: Mapping[str, Any]) -> list[bytes] | None:
        """The ordinary case, which launches repeat: typed buffers of this backend, and floats and small integers.

        Scalars are put into the words after the record. Anything else is left to the careful way, errors too.
        """
        if len(params) != len(prepared.quick):
            return None
        bound: list[bytes] = []
        get, find, mine = params.get, self._buffers.find, self.number
        for number, (name, param, pack, place) in enumerate(prepared.quick):
            value = get(name)
            if pack is None:
                if type(value) is not TypedBuffer or value.ty is not param.ty:
                    return None
                handle = value.handle
                buffer = find(handle.number)
                if buffer is None or handle.backend != mine:
                    return None
                if param.count is not None and value.count < param.count:
                    return None
                bound.append(buffer.words)
                continue
            if type(value) is not float and type(value) is not int:
                return None
            try:
                pack(slot.record, place, value)
            except (struct.error, OverflowError):
                return None
            bound.append(slot.scalars[number])
        return bound

    def _run(self, prepared: Prepared, slot: Slot) -> None:
        """What takes more than one call: the host's instructions, and lanes that wait for the whole launch."""
        compiled, launch, lanes, record = prepared.compiled, prepared.launch, prepared.compiled.lanes, slot.record
        if lanes is None:
            if slot.held is not None and prepared.only is not None:
                prepared.only.carry_out(slot.held)
                return
            for instruction in compiled.together.values():
                instruction.run(record)
            return
        padded = -(-launch.shared_memory // 64) * 64
        stride = 64 + padded + launch.block_size * compiled.layout.context_bytes
        states = slot.states
        if states is None:
            try:
                states = Placed(aligned_bytes(stride * launch.blocks))
            except MemoryError:
                raise AllocationFailed(f"no memory for the state of {launch.total_threads} waiting lanes") from None
            record[words.STATES] = states.address
            slot.states = states if stride * launch.blocks <= KEPT_STATES else None
        else:
            states.data.fill(0)
        first = states.address
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
                headers = np.ndarray((launch.blocks,), np.int32, states.data, strides=(stride,))
                raise diverged(compiled, headers, launch.block_size)
            self._act(compiled, barrier, record, pools)

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
