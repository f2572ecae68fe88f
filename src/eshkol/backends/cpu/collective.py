"""Macros that all lanes carry out together: run by the host, their tasks spread over all cores."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eshkol.atlas.cache import ProgramCache
from eshkol.atlas.flow import located
from eshkol.atlas.isa import Field, Instruction, Kind
from eshkol.atlas.operands import Address, BufferOffset
from eshkol.atlas.program import Program
from eshkol.atlas.validate import extent, memory_operands
from eshkol.backends.llvm import compile as native
from eshkol.backends.llvm.compile import Target
from eshkol.backends.llvm.layout import Layout
from eshkol.backends.llvm.macro import FAULT, FIRST_OPERAND, NO_FAULT, SCRATCH, Macro, module_text
from eshkol.errors import AllocationFailed, ExecutionFailed
from eshkol.runtime import scheduler
from eshkol.runtime.scheduler import default_scheduler

FUNCTION_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
ALIGNMENT = 64
KEPT_SCRATCH = 64 << 20  # bytes that each thread may keep for its next macro


@dataclass(frozen=True)
class Operand:
    """A memory operand of a collective instruction: where it lies in a parameter, and how much of it there is."""

    field: Field
    name: str  # of the parameter
    word: int  # of the launch record that holds the parameter's address
    offset: int  # of the pointer that the functions are given
    size: int  # bytes touched
    end: int  # of the last byte touched, plus 1


class Scratch:
    """Memory that a macro works in, aligned."""

    def __init__(self, size: int) -> None:
        self._memory = np.empty(size + ALIGNMENT, np.uint8)
        start = self._memory.ctypes.data
        self.size, self.address = size, start + -start % ALIGNMENT


_kept = threading.local()


class Collective:
    """One instruction of a program, compiled and ready to be run by the host."""

    def __init__(self, program: Program, index: int, macro: Macro, cache: ProgramCache, target: Target) -> None:
        self.program, self.index, self.macro = program, index, macro
        self.instruction, layout = program.instructions[index], Layout.of(program)
        self.operands = [_operand(self.instruction, f, a, layout) for f, a in memory_operands(self.instruction)]
        self.empty = not any(o.size for o in self.operands if o.field.kind is not Kind.READ)
        self._pairs = [
            (a, b) for a, out in enumerate(self.operands) for b, other in enumerate(self.operands)
            if a != b and out.field.kind is not Kind.READ and out.size and other.size
        ]  # fmt: skip
        parts = {"backend": "cpu", "macro": self.instruction.op.name}
        self._loaded = native.load_cached(cache, parts, module_text(macro), target, self.instruction.op.name)
        phases = [scheduler.Phase(self._loaded.address(p.function), p.tasks, p.grain) for p in macro.phases]
        self._phases = (scheduler.Phase * len(phases))(*phases)
        self._phases_at = ctypes.addressof(self._phases)
        self._alone = None  # a single task, which needs no other thread
        if len(phases) == 1 and macro.phases[0].tasks <= macro.phases[0].grain:
            self._alone = FUNCTION_TYPE(phases[0].function)
        places = [o.word for o in self.operands]
        self._given = slice(min(places, default=0), max(places, default=-2) + 2)  # words of a launch record
        self._latest: tuple[Sequence[int], bytes] | None = None  # what was given last, and the record for it
        words = len(self.operands) + len(macro.words)
        self._record_type = ctypes.c_uint64 * (FIRST_OPERAND + words)
        template = self._record_type()
        template[FAULT] = NO_FAULT
        for number, word in enumerate(macro.words):
            template[FIRST_OPERAND + len(self.operands) + number] = word & NO_FAULT
        self._template = bytes(template)

    def run(self, launch: Sequence[int]) -> None:
        """Carry it out on the parameters of a launch record."""
        given, latest = launch[self._given], self._latest
        if latest is None or latest[0] != given:
            latest = self._latest = given, self._bound(launch)
        if self.empty:
            return
        record = self._record_type.from_buffer_copy(latest[1])
        if self.macro.scratch:
            scratch = self._scratch()
            record[SCRATCH] = scratch.address
        self._run_phases(ctypes.addressof(record))
        if self.macro.faults and record[FAULT] != NO_FAULT:
            raise self._failed(self.macro.faults[record[FAULT]])

    def repeated(self, launch: Sequence[int]) -> Callable[[], None] | None:
        """What runs it again on the parameters of a launch; None where that takes more than to call the code."""
        if self.empty or self.macro.scratch or self.macro.faults:
            return None
        record = self._record_type.from_buffer_copy(self._bound(launch))  # only read, by as many threads as like
        where = ctypes.addressof(record)

        def again(_: object = record) -> None:
            self._run_phases(where)

        return again

    def _run_phases(self, where: int) -> None:
        """Call the functions with the record at an address."""
        if self._alone is not None:
            self._alone(where, 0, self._phases[0].count)
        else:
            default_scheduler().parallel_phases_native(self._phases_at, len(self._phases), where)

    def _bound(self, launch: Sequence[int]) -> bytes:
        """The record for the parameters of a launch, if the operands lie within them and apart from each other."""
        record = self._record_type.from_buffer_copy(self._template)
        starts = []
        for number, operand in enumerate(self.operands):
            address, size = launch[operand.word], launch[operand.word + 1]
            if operand.size and operand.end > size:
                begin = operand.end - operand.size
                raise self._failed(
                    f"address out of range: bytes {begin} to {operand.end} of buffer '{operand.name}' of {size}"
                )
            record[FIRST_OPERAND + number] = address + operand.offset
            starts.append(address + operand.end - operand.size)
        self._check_apart(starts)
        return bytes(record)

    def _scratch(self) -> Scratch:
        """Memory to work in: what this thread used last, if it is large enough and not too large to keep."""
        held: Scratch | None = getattr(_kept, "scratch", None)
        if held is not None and held.size >= self.macro.scratch:
            return held
        try:
            made = Scratch(self.macro.scratch)
        except (MemoryError, ValueError):
            message = f"no memory for the {self.macro.scratch} bytes that {self.instruction.op.name} works in"
            raise AllocationFailed(message, span=self.instruction.span) from None
        if made.size <= KEPT_SCRATCH:
            _kept.scratch = made
        return made

    def _check_apart(self, starts: list[int]) -> None:
        """Outputs may not overlap inputs, except in the very same place where the row allows it."""
        for a, b in self._pairs:
            out, other = self.operands[a], self.operands[b]
            if starts[a] < starts[b] + other.size and starts[b] < starts[a] + out.size:
                same = starts[a] == starts[b] and out.size == other.size
                if not (same and self.instruction.op.in_place):
                    raise self._failed(f"{out.field.name} overlaps {other.field.name} in memory")

    def _failed(self, message: str) -> ExecutionFailed:
        error = located(self.program, self.index, message)
        return ExecutionFailed(f"{error.message} (lane 0)", span=error.span)


def _operand(instruction: Instruction, f: Field, address: Address, layout: Layout) -> Operand:
    assert isinstance(address, BufferOffset)
    start, size = extent(instruction, f)
    name, offset = address.handle, address.offset
    return Operand(f, name, layout.word(name), offset, size, offset + start + size)
