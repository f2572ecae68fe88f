"""`WasmBackend`: buffers in a linear memory of 32 bits, programs as WebAssembly that wasmtime runs on one core.

Comes in: Atlas programs. They are what they are on the CPU: loops over lanes that LLVM vectorizes (`cpu/kernels`), here
at 128 bits, and array instructions as functions of their own (`cpu/macros`), which the host calls. The launch record
and what lanes wait with lie in the same memory as buffers. A lane that fails is told as on the CPU; code that leaves
the memory is stopped by the engine, which is a `BackendError`. Either way the process goes on.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, ClassVar

import numpy as np

from eshkol.atlas.expand import is_collective
from eshkol.atlas.flow import located
from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Array, encode
from eshkol.atlas.validate import validate
from eshkol.backends.base import Binding, bind_params
from eshkol.backends.cpu import macros
from eshkol.backends.cpu.collective import Bound, Collective, loaded_phases
from eshkol.backends.cpu.expansion import expansion, only_together
from eshkol.backends.cpu.kernels.loops import ENDED
from eshkol.backends.cpu.kernels.macro import FAULT, NO_FAULT, SCRATCH, Macro, module_text
from eshkol.backends.cpu.kernels.translate import KernelModule, translate
from eshkol.backends.cpu.launch import Compiled, Lanes, diverged, special_of
from eshkol.backends.driven import DrivenBackend
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.memory import touches_classes
from eshkol.backends.lanes.remainders import with_functions
from eshkol.backends.wasm import engine
from eshkol.backends.wasm.blocks import ALIGNMENT
from eshkol.backends.wasm.engine import Device, Engine, Loaded
from eshkol.errors import AllocationFailed, BackendUnavailable, ExecutionFailed
from eshkol.llvm import targets as llvm_targets
from eshkol.llvm import webassembly
from eshkol.llvm.loading import HasAddresses
from eshkol.llvm.passes import for_kernels
from eshkol.support.store import ProgramCache

REMEMBERED = 4096  # compiled programs; their modules stay loaded
KERNEL = "kernel"


class WasmCollective(Collective):
    """An array instruction whose functions work in the engine's memory."""

    def __init__(
        self, program: Program, index: int, macro: Macro, loaded: Sequence[HasAddresses], machine: Engine
    ) -> None:
        super().__init__(program, index, macro, loaded)
        self._machine = machine

    def run(self, launch: Any) -> None:
        bound = Bound(self.new_record())
        self.bind(bound, launch)
        if self.empty:
            return
        machine, record = self._machine, bound.record
        with ExitStack() as stack:
            if self.macro.scratch:
                try:
                    record[SCRATCH] = stack.enter_context(machine.meanwhile(self.macro.scratch))
                except AllocationFailed as error:
                    message = f"{self.instruction.op.name}: {error.message}"
                    raise AllocationFailed(message, span=self.instruction.span) from None
            size = ctypes.sizeof(record)
            place = stack.enter_context(machine.meanwhile(size))
            machine.view[place : place + size] = np.frombuffer(record, np.uint8)
            for function, tasks, _ in self.phase_words:
                if tasks:
                    machine.call(function, place, 0, tasks)
            found = int(machine.words(place, 1)[FAULT]) if self.macro.faults else NO_FAULT
        if found != NO_FAULT:
            raise self.fault(found)


class WasmBackend(DrivenBackend[Device]):
    """WebAssembly in an engine of this process."""

    name: ClassVar[str] = "wasm"
    targets: ClassVar[tuple[str, ...]] = ("llvm", "optimized", "assembly", "expanded")

    def __init__(
        self, *, cache: ProgramCache | None = None, memory_limit: int | None = None, fused: bool | None = None,
        expanded: bool = False,
    ) -> None:  # fmt: skip
        """`fused` says whether relaxed products are used; without it, where they are known to be rounded once."""
        super().__init__(engine.device(), memory_limit)
        self.machine = Engine(self.device, self.memory_limit)
        self.target = self.device.target if fused is None else webassembly.target(fused=fused)
        self.cache = cache or ProgramCache(durable=False)
        self.expanded = expanded  # no array instruction has functions of its own
        self.phase = 0
        self._compiled: OrderedDict[str, Compiled] = OrderedDict()
        self._fitting: OrderedDict[tuple[str, LaunchConfig], Compiled] = OrderedDict()

    @classmethod
    def unavailable(cls) -> str | None:
        return llvm_targets.unavailable() or engine.unavailable()

    @classmethod
    def machines(cls) -> list[dict[str, Any]]:
        return [] if cls.unavailable() else [engine.device().facts()]

    # --- memory -----------------------------------------------------------------------------------

    def _take(self, size: int) -> int:
        return self.machine.take(size)

    def _drop(self, buffer: int) -> None:
        self.machine.blocks.drop(buffer)

    def _put(self, buffer: int, offset: int, raw: Array) -> None:
        self.machine.view[buffer + offset : buffer + offset + raw.size] = raw

    def _get(self, buffer: int, offset: int, into: Array) -> None:
        into[:] = self.machine.view[buffer + offset : buffer + offset + into.size]

    def _move(self, target: int, target_offset: int, source: int, source_offset: int, size: int) -> None:
        view, to, origin = self.machine.view, target + target_offset, source + source_offset
        view[to : to + size] = view[origin : origin + size]

    # --- compilation ------------------------------------------------------------------------------

    def _expanded(self, program: Program) -> tuple[Program, dict[int, Macro]]:
        """The program in instructions that are translated, and those among them that are macros, by their place."""

        def lowered(base: Program, index: int) -> Macro | None:
            return macros.lower(base.instructions[index], self.target)

        return expansion(program, self.target, lowered, all_of_it=self.expanded)

    def compiled(self, program: Program) -> Compiled:
        """The program as WebAssembly: loaded before, from the disk cache, or compiled now."""
        with self.lock:
            found = self._compiled.get(program.digest)
            if found is None:
                found = self._compiled[program.digest] = self._compile(program)
                if len(self._compiled) > REMEMBERED:
                    self._compiled.popitem(last=False)
            return found

    def _compile(self, program: Program) -> Compiled:
        base, found = self._expanded(program)
        together = {
            index: WasmCollective(base, index, macro, loaded_phases(macro, self._load), self.machine)
            for index, macro in found.items() if is_collective(base.instructions[index])
        }  # fmt: skip
        if only_together(base, together):
            return Compiled(lambda: base, Layout.of(base), None, together, frozenset())
        module = translate(base, self.target, found)
        loaded = self._load(KERNEL, module.text, program.name)
        lanes = Lanes(module, loaded, loaded.address(KERNEL))
        special = special_of(base) | ({"classes"} if any(map(touches_classes, base.instructions)) else set())
        return Compiled(lambda: base, module.layout, lanes, together, special)

    def _load(self, name: str, text: str, label: str | None = None) -> Loaded:
        """A module with one function, ready to be called."""
        label = label or name
        code = webassembly.cached_code(self.cache, complete(text), self.target, label, (name,), for_kernels())
        return self.machine.load(code, (name,), self.cache, label)

    def _modules(self, program: Program) -> list[str]:
        """The lanes' module, and one for each instruction that the host runs, as LLVM text."""
        base, found = self._expanded(program)
        together = {index: macro for index, macro in found.items() if is_collective(base.instructions[index])}
        lanes = [] if only_together(base, together) else [translate(base, self.target, found).text]
        return [complete(text) for text in [*lanes, *dict.fromkeys(module_text(m) for m in together.values())]]

    def compile_to_llvm(self, program: Program) -> str:
        """LLVM IR as it is translated."""
        return "\n".join(self._modules(program))

    def compile_to_optimized(self, program: Program) -> str:
        """LLVM IR after LLVM's optimizer."""
        return "\n".join(webassembly.optimized(text, self.target) for text in self._modules(program))

    def compile_to_assembly(self, program: Program) -> str:
        """WebAssembly as LLVM's assembler writes it."""
        return "\n".join(webassembly.assembly(text, self.target) for text in self._modules(program))

    def compile_to_expanded(self, program: Program) -> str:
        """The program in the instructions that are translated."""
        return str(self._expanded(program)[0])

    # --- execution --------------------------------------------------------------------------------

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        with self.lock, ExitStack() as stack:
            compiled = self._suitable(program, launch)
            given = bind_params(self, program, params)
            record = self._record(compiled, launch, given, stack)
            if compiled.lanes is None:
                for instruction in compiled.together.values():
                    with self._asked_of(program, launch):
                        instruction.run(record.tolist())
                return
            with self._asked_of(program, launch):
                place = stack.enter_context(self.machine.meanwhile(record.nbytes))
                self._run(compiled, compiled.lanes, launch, record, place, stack)
            self.phase = int(record[words.PHASE])
            if record[words.FAULT] != words.NO_FAULT:
                raise compiled.fault(int(record[words.FAULT]))

    def _asked_of(self, program: Program, launch: LaunchConfig) -> Any:
        return self.machine.asked(f"'{program.name}', a launch of {launch.blocks} blocks of {launch.block_size} lanes")

    def _suitable(self, program: Program, launch: LaunchConfig) -> Compiled:
        """The program compiled, once the launch is found to suit it."""
        key = program.digest, launch
        found = self._fitting.get(key)
        if found is None:
            validate(program, launch)
            if launch.shared_memory > self.device.shared_bytes:
                raise BackendUnavailable(
                    f"a block of {self.device.name} has {self.device.shared_bytes} bytes of shared memory at most, "
                    f"not {launch.shared_memory}"
                )
            found = self._fitting[key] = self.compiled(program)
            if len(self._fitting) > REMEMBERED:
                self._fitting.popitem(last=False)
        return found

    def _record(
        self, compiled: Compiled, launch: LaunchConfig, given: Mapping[str, Binding], stack: ExitStack
    ) -> Array:
        """The words of a launch: see `lanes/layout.py`."""
        layout = compiled.layout
        record = np.zeros(layout.words, np.uint64)
        record[words.FAULT], record[words.PHASE] = words.NO_FAULT, self.phase
        if "classes" in compiled.special:
            record[words.CLASS_MEMORY] = self.classes().buffer
        record[words.SHARED_BYTES] = launch.shared_memory
        record[words.GRID : words.GRID + 3] = [*launch.grid]
        record[words.BLOCK : words.BLOCK + 3] = [*launch.block]
        for name, binding in given.items():
            value, word = binding.value, layout.word(name)
            if isinstance(value, Immediate):
                raw = encode(value.array(), value.ty).reshape(-1)
                place, size = stack.enter_context(self.machine.meanwhile(raw.size)), raw.size
                self.machine.view[place : place + size] = raw
            else:
                memory = self.memory_of(binding)
                place, size = memory.buffer, memory.size
            record[word], record[word + 1] = place, size
        return record

    def _run(
        self, compiled: Compiled, lanes: Lanes, launch: LaunchConfig, record: Array, place: int, stack: ExitStack
    ) -> None:
        """The lanes of a launch, from a barrier that all of them wait at to the next; the record is as they left it."""
        machine, module = self.machine, lanes.module
        pools: dict[str, int] = {}
        stride = _state_bytes(module, launch)
        count = launch.blocks if module.grid_wide else 1
        if not module.one_loop:
            states = stack.enter_context(machine.meanwhile(stride * count))
            machine.view[states : states + stride * count] = 0
            record[words.STATES] = states
        try:
            while True:
                machine.words(place, record.size)[:] = record
                machine.call(lanes.address, place, 0, launch.blocks)
                record[:] = machine.words(place, record.size)
                if not module.grid_wide or record[words.FAULT] != words.NO_FAULT or not launch.blocks:
                    return
                headers = np.ndarray((count,), np.int32, machine.view, offset=states, strides=(stride,)).copy()
                barrier = int(headers[0])
                if (headers != barrier).any():
                    raise diverged(compiled, headers, launch.block_size)
                if barrier == ENDED:
                    return
                self._act(compiled, compiled.layout.barriers[barrier - 1], record, pools)
        finally:
            for pool in pools.values():
                machine.blocks.drop(pool)

    def _act(self, compiled: Compiled, index: int, record: Array, pools: dict[str, int]) -> None:
        """All blocks wait at a barrier of the launch: do what it is about."""
        instruction = compiled.program.instructions[index]
        if index in compiled.together:
            compiled.together[index].run(record.tolist())
        if index in compiled.together or instruction.op.name == "GridSync":
            return
        name, makes = instruction.pool, instruction.op.name == "PoolAlloc"
        word = compiled.layout.word(name)
        if makes is (name in pools):
            state = "already" if makes else "not"
            error = located(compiled.program, index, f"the pool '{name}' is {state} allocated")
            raise ExecutionFailed(error.message, span=error.span)
        if makes:
            size = instruction.size
            start = pools[name] = self.machine.take(size)
            self.machine.view[start : start + size] = 0
            record[word], record[word + 1] = start, size
        else:
            self.machine.blocks.drop(pools.pop(name))
            record[word], record[word + 1] = 0, 0


def _state_bytes(module: KernelModule, launch: LaunchConfig) -> int:
    """Bytes of a block's state: see `cpu/kernels/loops.py`."""
    padded = -(-launch.shared_memory // ALIGNMENT) * ALIGNMENT
    return ALIGNMENT + padded + launch.block_size * module.layout.context_bytes


def complete(text: str) -> str:
    """A module with the functions for remainders of floats, which the machine does not have."""
    body, functions, declared = with_functions(text)
    return "\n\n".join([body, *functions, *(d for d in declared if d not in body)])
