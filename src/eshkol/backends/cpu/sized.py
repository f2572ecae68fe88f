"""Sequences for all sizes of an axis: the same calls, in whose records some words are expressions in the size.

Comes in: the steps of a sequence in which integers are extents (`support/extents.py`). They are prepared as those of
any sequence are, but that records are lists of words. Goes out: `SizedSequence`, of which `at` makes a sequence for a
size in microseconds: words are evaluated, and nothing is compiled. What was decided on the way is among the conditions
of the size.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eshkol.atlas.program import LaunchConfig, ParamKind, Program
from eshkol.atlas.sequence import Call, SequenceStep
from eshkol.atlas.types import Type
from eshkol.atlas.validate import validate
from eshkol.backends.cpu.collective import Collective
from eshkol.backends.cpu.kernels.macro import FAULT, FIRST_OPERAND, NO_FAULT, SCRATCH
from eshkol.backends.cpu.launch import STEPS_PER_TASK, Compiled, Prepared, grain_of, pack_scalar
from eshkol.backends.cpu.sequence import CpuSequence
from eshkol.backends.lanes import layout as words
from eshkol.errors import BackendUnavailable, IsaError
from eshkol.runtime import sequence as native
from eshkol.support.extents import Conditions, Extent, found_in, plain

_WIDTHS = {Type.I32: 32, Type.U32: 32, Type.I64: 64, Type.U64: 64}


class CompilesPrograms(Protocol):
    """The backend, as far as this needs it."""

    class_memory: Any

    def compiled(self, program: Program) -> Compiled: ...

    def compiled_anew(self, program: Program) -> Compiled: ...


@dataclass(frozen=True)
class SizedCall:
    """A call whose phases, words and bindings may hold extents."""

    phases: Sequence[tuple[int, int, int]]
    record: Sequence[int]
    bindings: Sequence[tuple[int, int, int]]
    inner: Sequence[tuple[int, int]] = ()


class SizedSequence(CpuSequence):
    """A sequence for all sizes that meet the conditions, when it has been made."""

    _backend: CompilesPrograms  # type: ignore[assignment]
    _calls: list[Any]

    def __init__(self, backend: CompilesPrograms, steps: Sequence[SequenceStep], places: int) -> None:
        super().__init__(backend, steps, places)  # type: ignore[arg-type]

    def _call(self, step: Call) -> list[native.StepWords]:
        program, launch = step.program, step.launch
        if not launch.blocks:
            return []
        validate(program, launch)
        has_sizes = any(True for i in program.instructions for _ in found_in(i.operands))
        compiled = self._backend.compiled_anew(program) if has_sizes else self._backend.compiled(program)
        if compiled.lanes is None:
            made = [self._collective(c, step) for c in compiled.together.values() if not c.empty]
        elif has_sizes or compiled.lanes.module.grid_wide:
            raise BackendUnavailable(f"'{program.name}' is made for one size, or waits for its host")
        else:
            made = [self._own_lanes(compiled, program, launch, step)]
        return [(native.CALL, number, 0, 0, 0, 0) for number in made]

    def _together(self, at: int, words: Sequence[native.StepWords], starts: Sequence[int]) -> native.StepWords:
        """Said for each size anew: how calls are cut into one loop depends on how much they are."""
        _, first, count, *_ = words[at]
        numbers = tuple([w[1] for w in words[starts[first] : starts[first + count]]])
        return native.TOGETHER, numbers, starts[first], 0, 0, 0  # type: ignore[return-value]

    def _own_lanes(self, compiled: Compiled, program: Program, launch: LaunchConfig, step: Call) -> int:
        lanes, layout = compiled.lanes, compiled.layout
        assert lanes is not None
        names = {i.op.name for i in program.instructions}
        prepared = Prepared.of(program, _at_hint(launch), compiled, self._backend.class_memory)
        if prepared.phased or prepared.makes_pools or layout.barriers:
            raise BackendUnavailable(f"'{program.name}' does more than to compute ({sorted(names)[:3]} …)")
        record: list[Any] = [*struct.unpack(f"<{len(prepared.template) // 8}Q", prepared.template)]
        record[words.SHARED_BYTES] = launch.shared_memory
        record[words.GRID : words.GRID + 3] = [*launch.grid]
        record[words.BLOCK : words.BLOCK + 3] = [*launch.block]
        bindings, inner = [], []
        for number, param in enumerate(program.params):
            word = words.FIRST_PARAM + 2 * number
            if param.kind is ParamKind.BUFFER:
                place, offset, size = step.buffers[param.name]
                assert param.ty is not None
                if param.count is not None and size < param.count * param.ty.size_bytes:
                    raise IsaError(f"the buffer '{param.name}' is too small")
                bindings.append((word, place, offset))
                record[word + 1] = size
                continue
            record[layout.words + number] = _scalar_word(param, step.numbers[param.name])
            inner.append((word, layout.words + number))
            record[word + 1] = 8
        blocks, steps = launch.blocks, lanes.module.steps[0]
        grain = (
            blocks if lanes.module.serial else grain_of(blocks, max(1, STEPS_PER_TASK // (launch.block_size * steps)))
        )
        self._calls.append(SizedCall([(lanes.address, blocks, grain)], record, bindings, inner))
        self._parts.append(prepared)
        return len(self._calls) - 1

    def _collective(self, part: Collective, step: Call) -> int:
        bindings: list[tuple[int, int, int]] = []
        for number, operand in enumerate(part.operands):
            place, offset, size = step.buffers[operand.name]
            if operand.size and operand.end > size:
                raise IsaError(f"{part.instruction.op.name} reaches beyond '{operand.name}'")
            bindings.append((FIRST_OPERAND + number, place, offset + operand.offset))
        if part.macro.scratch:
            if not self._scratch or part.macro.scratch > self._scratch:
                self._scratch = part.macro.scratch
            bindings.append((SCRATCH, self._places, 0))
        record: list[Any] = [0] * (FIRST_OPERAND + len(part.operands))
        record[FAULT] = NO_FAULT
        record += [_word(w, 64) for w in part.macro.words]
        self._calls.append(SizedCall(part.phase_words, record, bindings))
        self._parts.append(part)
        return len(self._calls) - 1

    # --- for a size ---------------------------------------------------------------------------------

    def maker(self, conditions: Conditions) -> Callable[[int, Sequence[int]], CpuSequence]:
        """What makes the sequence for a size that meets the conditions."""
        evaluated = Evaluated(conditions)
        steps = [(w, [(k, evaluated.place(x)) for k, x in enumerate(w) if type(x) is Extent]) for w in self._steps]
        calls = [_Filled(call, evaluated) for call in self._calls]
        scratch = evaluated.place(self._scratch) if type(self._scratch) is Extent else None
        values = evaluated.function()

        def made(size: int, late: Sequence[int]) -> CpuSequence:
            at = values(size, late)
            new = CpuSequence.__new__(CpuSequence)
            new._backend, new._places, new._counters = self._backend, self._places, self._counters  # type: ignore[assignment]
            new._parts, new._moves, new._origin = self._parts, self._moves, self._origin
            new._scratch = self._scratch if scratch is None else at[scratch]
            new._calls, new._regions, new._spare = [call.at(at) for call in calls], [], []
            new._steps = [_changed(w, changes, at) if changes else w for w, changes in steps]
            for k, w in enumerate(new._steps):
                if w[0] == native.TOGETHER:
                    new._steps[k] = new.joined(w[1], w[2])  # type: ignore[arg-type]
            return new

        return made


class Evaluated:
    """Extents that are evaluated together."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions, self.wanted = conditions, list[Any]()
        self._places: dict[int, int] = {}

    def place(self, given: Extent) -> int:
        """The number of its value among all."""
        found = self._places.get(given.place)
        if found is None:
            found = self._places[given.place] = len(self.wanted)
            self.wanted.append(given)
        return found

    def function(self) -> Callable[..., tuple[Any, ...]]:
        return self.conditions.values(self.wanted)


class _Filled:
    """A call, and which of its numbers are evaluated."""

    def __init__(self, call: SizedCall, evaluated: Evaluated) -> None:
        self.inner = call.inner
        self._words = [plain(w) for w in call.record]
        self._changes = [(k, evaluated.place(w)) for k, w in enumerate(call.record) if type(w) is Extent]
        self._pack = struct.Struct(f"<{len(self._words)}Q").pack
        self._fixed = self._pack(*self._words)
        self._phases = _Rows(call.phases, evaluated)
        self._bindings = _Rows(call.bindings, evaluated)

    def at(self, values: Sequence[int]) -> native.NativeCall:
        record = self._fixed
        if self._changes:
            found = self._words.copy()
            for k, place in self._changes:
                found[k] = values[place]
            record = self._pack(*found)
        return native.NativeCall(self._phases.at(values), record, self._bindings.at(values), self.inner)


class _Rows:
    """Short tuples of integers, and which of these are evaluated."""

    def __init__(self, rows: Sequence[tuple[int, ...]], evaluated: Evaluated) -> None:
        self._rows = [tuple([plain(x) for x in row]) for row in rows]
        found = [[(k, evaluated.place(x)) for k, x in enumerate(row) if type(x) is Extent] for row in rows]
        self._changes = [(k, changes) for k, changes in enumerate(found) if changes]

    def at(self, values: Sequence[int]) -> Any:
        if not self._changes:
            return self._rows
        rows = self._rows.copy()
        for k, changes in self._changes:
            rows[k] = _changed(rows[k], changes, values)
        return rows


def _changed(row: Sequence[Any], changes: Sequence[tuple[int, int]], values: Sequence[int]) -> Any:
    found = [*row]
    for k, place in changes:
        found[k] = values[place]
    return tuple(found)


def _at_hint(launch: LaunchConfig) -> LaunchConfig:
    """A launch for the size at hand alone; what of it depends on the size is said again by who asks."""
    grid, block = (tuple(map(plain, extent)) for extent in (launch.grid, launch.block))
    return LaunchConfig(grid, block, plain(launch.shared_memory))


def _scalar_word(param: Any, value: Any) -> Any:
    """A scalar as a word of a record."""
    width = _WIDTHS.get(param.ty)
    if type(value) is not Extent:
        packed = bytearray(8)
        pack_scalar(packed, 0, param, value)
        return int.from_bytes(packed, "little")
    if width is None:
        raise IsaError(f"a size is no scalar of type {param.ty}")
    if not param.ty.min_value <= value <= param.ty.max_value:
        raise IsaError(f"the scalar '{param.name}' does not fit {param.ty}")
    return _word(value, width)


def _word(value: Any, width: int) -> Any:
    """An integer as a word without a sign."""
    if type(value) is Extent and value >= 0:
        return value
    return value & ((1 << width) - 1)
