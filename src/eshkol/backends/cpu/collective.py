"""Macros that all lanes carry out together: run by the host, their tasks spread over all cores."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eshkol.atlas.cache import ProgramCache
from eshkol.atlas.flow import located
from eshkol.atlas.isa import Field, Instruction, Kind, element_type
from eshkol.atlas.operands import Address, BufferOffset
from eshkol.atlas.program import Program
from eshkol.atlas.validate import extent, memory_operands
from eshkol.backends.llvm import compile as native
from eshkol.backends.llvm.compile import Target
from eshkol.backends.llvm.layout import Layout
from eshkol.backends.llvm.macro import FAULT, FIRST_OPERAND, NO_FAULT, SCRATCH, Macro, module_text
from eshkol.errors import AllocationFailed, ExecutionFailed
from eshkol.runtime.scheduler import default_scheduler

FUNCTION_TYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
ALIGNMENT = 64


@dataclass(frozen=True)
class Operand:
    """A memory operand of a collective instruction: where it lies in a parameter, and how much of it there is."""

    field: Field
    name: str  # of the parameter
    word: int  # of the launch record that holds the parameter's address
    offset: int  # of the pointer that the functions are given
    start: int  # of the first byte touched, beyond that
    size: int  # bytes touched
    alignment: int


class Collective:
    """One instruction of a program, compiled and ready to be run by the host."""

    def __init__(self, program: Program, index: int, macro: Macro, cache: ProgramCache, target: Target) -> None:
        self.program, self.index, self.macro = program, index, macro
        self.instruction, layout = program.instructions[index], Layout.of(program)
        self.operands = [_operand(self.instruction, f, a, layout) for f, a in memory_operands(self.instruction)]
        self.empty = not any(o.size for o in self.operands if o.field.kind is not Kind.READ)
        parts = {"backend": "cpu", "macro": self.instruction.op.name}
        self._loaded = native.load_cached(cache, parts, module_text(macro), target, self.instruction.op.name)
        self._steps: list[tuple[int, Callable[..., None], int, int]] = []
        for phase in macro.phases:
            address = self._loaded.address(phase.function)
            self._steps.append((address, FUNCTION_TYPE(address), phase.tasks, phase.grain))
        words = len(self.operands) + len(macro.words)
        self._record_type = ctypes.c_uint64 * (FIRST_OPERAND + words)
        template = self._record_type()
        template[FAULT] = NO_FAULT
        for number, word in enumerate(macro.words):
            template[FIRST_OPERAND + len(self.operands) + number] = word & NO_FAULT
        self._template = bytes(template)

    def run(self, launch: Sequence[int]) -> None:
        """Carry it out on the parameters of a launch record."""
        record = self._record_type.from_buffer_copy(self._template)
        spans = []
        for number, operand in enumerate(self.operands):
            address, size = launch[operand.word], launch[operand.word + 1]
            first = operand.offset + operand.start
            if operand.size and first + operand.size > size:
                raise self._failed(
                    f"address out of range: bytes {first} to {first + operand.size} of buffer '{operand.name}' "
                    f"of {size}")  # fmt: skip
            if operand.offset % operand.alignment:
                raise self._failed(f"the address in buffer '{operand.name}' is not aligned to {operand.alignment}")
            record[FIRST_OPERAND + number] = address + operand.offset
            spans.append((operand, address + first, address + first + operand.size))
        self._check_apart(spans)
        if self.empty:
            return
        scratch = self._scratch()
        if scratch is not None:
            record[SCRATCH] = scratch.ctypes.data + -scratch.ctypes.data % ALIGNMENT
        where = ctypes.addressof(record)
        for address, call, tasks, grain in self._steps:
            if tasks <= grain:
                call(where, 0, tasks)
            else:
                default_scheduler().parallel_for_native(address, where, tasks, grain)
        if record[FAULT] != NO_FAULT:
            raise self._failed(self.macro.faults[record[FAULT]])

    def _scratch(self) -> np.ndarray[tuple[int], np.dtype[np.uint8]] | None:
        if not self.macro.scratch:
            return None
        try:
            return np.empty(self.macro.scratch + ALIGNMENT, np.uint8)
        except (MemoryError, ValueError):
            message = f"no memory for the {self.macro.scratch} bytes that {self.instruction.op.name} works in"
            raise AllocationFailed(message, span=self.instruction.span) from None

    def _check_apart(self, spans: list[tuple[Operand, int, int]]) -> None:
        """Outputs may not overlap inputs, except in the very same place where the row allows it."""
        for out, low, high in spans:
            if out.field.kind is Kind.READ:
                continue
            for other, begin, end in spans:
                if other is out or max(low, begin) >= min(high, end):
                    continue
                if not (self.instruction.op.in_place and (low, high) == (begin, end)):
                    raise self._failed(f"{out.field.name} overlaps {other.field.name} in memory")

    def _failed(self, message: str) -> ExecutionFailed:
        error = located(self.program, self.index, message)
        return ExecutionFailed(f"{error.message} (lane 0)", span=error.span)


def _operand(instruction: Instruction, f: Field, address: Address, layout: Layout) -> Operand:
    assert isinstance(address, BufferOffset)
    start, size = extent(instruction, f)
    name, word = address.handle, layout.word(address.handle)
    return Operand(f, name, word, address.offset, start, size, element_type(instruction, f).alignment)
