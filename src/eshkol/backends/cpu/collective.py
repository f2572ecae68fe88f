"""Macros that all lanes carry out together: run by the host, their tasks spread over all cores."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from eshkol.atlas.flow import located
from eshkol.atlas.isa import Field, Instruction, Kind
from eshkol.atlas.operands import Address, BufferOffset
from eshkol.atlas.program import Program
from eshkol.atlas.validate import extent, memory_operands
from eshkol.backends.cpu.kernels.macro import FAULT, FIRST_OPERAND, NO_FAULT, SCRATCH, Macro, phase_modules
from eshkol.backends.lanes.layout import Layout
from eshkol.errors import AllocationFailed, ExecutionFailed
from eshkol.llvm import objects
from eshkol.llvm.loading import HasAddresses, LoadedObject
from eshkol.llvm.passes import Pipeline
from eshkol.llvm.targets import Target
from eshkol.runtime.scheduler import Phase, PreparedCall
from eshkol.support.keys import cache_key
from eshkol.support.store import ProgramCache

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


def scratch(size: int) -> Scratch:
    """Memory to work in: what this thread used last, if it is large enough and not too large to keep."""
    held: Scratch | None = getattr(_kept, "scratch", None)
    if held is not None and held.size >= size:
        return held
    try:
        made = Scratch(size)
    except (MemoryError, ValueError):
        raise AllocationFailed(f"no memory for the {size} bytes that it works in") from None
    if made.size <= KEPT_SCRATCH:
        _kept.scratch = made
    return made


class Bound:
    """The record of one collective instruction."""

    __slots__ = ("given", "record")

    def __init__(self, record: Any) -> None:
        self.record = record
        self.given: list[int] | None = None  # the words of the launch record that it is bound to


class Held(Bound):
    """Such a record with the call that it belongs to, kept for its next run."""

    __slots__ = ("call", "run")

    def __init__(self, record: Any, phases: list[Phase]) -> None:
        super().__init__(record)
        self.call = PreparedCall(phases, ctypes.addressof(record))
        self.run = self.call.run


_objects: WeakValueDictionary[str, LoadedObject] = WeakValueDictionary()  # by the keys of their objects


def macro_object(name: str, text: str, cache: ProgramCache, target: Target, pipeline: Pipeline) -> bytes:
    """The object of a module with one function of a macro."""
    return objects.cached_object(cache, _parts(name), text, target, name, pipeline)


def macro_key(name: str, text: str, target: Target, pipeline: Pipeline) -> str:
    """The key of that object."""
    return cache_key(objects.key_parts(_parts(name), text, target, pipeline))


def _parts(name: str) -> dict[str, str]:
    return {"backend": "cpu", "macro": name}


def loaded_macro(name: str, text: str, cache: ProgramCache, target: Target, pipeline: Pipeline) -> LoadedObject:
    """A module in memory; those in use are found again, so that instructions of many sizes load it once."""
    key = macro_key(name, text, target, pipeline)
    found = _objects.get(key)
    if found is None:
        code = macro_object(name, text, cache, target, pipeline)
        found = _objects[key] = LoadedObject(code, target)
    return found


def kept_macro(key: str, cache: ProgramCache, target: Target) -> LoadedObject | None:
    """A module in memory by the key of its object; None where that is no longer kept."""
    found = _objects.get(key)
    if found is None:
        code = cache.get(key)
        if code is not None:
            found = _objects[key] = LoadedObject(code, target)
    return found


def loaded_phases(macro: Macro, load: Callable[[str, str], HasAddresses]) -> list[HasAddresses]:
    """The modules of a macro's phases, in memory; `load` is given names and texts."""
    return [load(p.function, text) for p, text in zip(macro.phases, phase_modules(macro), strict=True)]


class Collective:
    """One instruction of a program, compiled and ready to be run by the host: the modules of its phases are loaded."""

    def __init__(self, program: Program, index: int, macro: Macro, loaded: Sequence[HasAddresses]) -> None:
        self.program, self.index, self.macro = program, index, macro
        self.instruction, layout = program.instructions[index], Layout.of(program)
        self.operands = [_operand(self.instruction, f, a, layout) for f, a in memory_operands(self.instruction)]
        self.empty = not any(o.size for o in self.operands if o.field.kind is not Kind.READ)
        self.plain = not (self.empty or macro.scratch or macro.faults)  # whether to run it is just to call it
        first = min((o.word for o in self.operands), default=0)
        self._given = slice(first, max((o.word for o in self.operands), default=-2) + 2)  # words of a launch record
        self._spans = [(o.word - first, o.offset, o.end, o.size) for o in self.operands]
        self._pairs = [
            (a, b, out.size, other.size)
            for a, out in enumerate(self.operands) for b, other in enumerate(self.operands)
            if a != b and out.field.kind is not Kind.READ and out.size and other.size
        ]  # fmt: skip
        self._loaded = loaded
        self.phase_words = [
            (loaded.address(p.function), p.tasks, p.grain) for loaded, p in zip(self._loaded, macro.phases, strict=True)
        ]
        self.phases = [Phase(*p) for p in self.phase_words]
        words = len(self.operands) + len(macro.words)
        self._record_type = ctypes.c_uint64 * (FIRST_OPERAND + words)
        template = self._record_type()
        template[FAULT] = NO_FAULT
        for number, word in enumerate(macro.words):
            template[FIRST_OPERAND + len(self.operands) + number] = word & NO_FAULT
        self.template = bytes(template)
        self._places = slice(FIRST_OPERAND, FIRST_OPERAND + len(self.operands))
        self._spare: list[Held] = []  # one for each run that was under way at the same time; appending is atomic

    def run(self, launch: Any) -> None:
        """Carry it out on the parameters of a launch record."""
        try:
            held = self._spare.pop()
        except IndexError:
            held = self.hold()
        self.bind(held, launch)
        self.carry_out(held)
        self._spare.append(held)

    def hold(self) -> Held:
        """A record of its own, for a launch that is repeated."""
        return Held(self.new_record(), self.phases)

    def new_record(self) -> Any:
        """A record that is not bound to anything."""
        return self._record_type.from_buffer_copy(self.template)

    def bind(self, held: Bound, launch: Any) -> None:
        """Point a record to the parameters of a launch, if the operands lie within them and apart from each other."""
        given = launch[self._given]
        if held.given == given:
            return
        held.given, places, starts = None, [], []
        for number, (word, offset, end, size) in enumerate(self._spans):
            address = given[word]
            if size and end > given[word + 1]:
                name, have = self.operands[number].name, given[word + 1]
                raise self._failed(f"address out of range: bytes {end - size} to {end} of buffer '{name}' of {have}")
            places.append(address + offset)
            starts.append(address + end - size)
        for a, b, own, other in self._pairs:
            if starts[a] < starts[b] + other and starts[b] < starts[a] + own:
                self._check_same(a, b, starts)
        held.record[self._places] = places
        held.given = given

    def carry_out(self, held: Held) -> None:
        """Run it on what its record is bound to."""
        if self.empty:
            return
        meanwhile = None
        if self.macro.scratch:
            try:
                meanwhile = scratch(self.macro.scratch)
            except AllocationFailed as error:
                message = f"{self.instruction.op.name}: {error.message}"
                raise AllocationFailed(message, span=self.instruction.span) from None
            held.record[SCRATCH] = meanwhile.address
        if status := held.run():
            held.call.refuse(status)
        del meanwhile  # had to live until now
        if self.macro.faults and held.record[FAULT] != NO_FAULT:
            found, held.record[FAULT] = held.record[FAULT], NO_FAULT
            raise self.fault(found)

    def fault(self, code: int) -> ExecutionFailed:
        """What the code that functions have left in a record means."""
        return self._failed(self.macro.faults[code])

    def _check_same(self, a: int, b: int, starts: list[int]) -> None:
        """Outputs may not overlap inputs, except in the very same place where the row allows it."""
        out, other = self.operands[a], self.operands[b]
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
