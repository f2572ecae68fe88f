"""Sequences of launches as one native call: see `atlas/sequence.py` for what they say.

Comes in: the steps of a sequence. Every program is compiled; its lanes, or the one array instruction it consists of,
become a call over a record of their own, in which only addresses change from run to run (`SequenceWriter`). Programs
whose lanes wait for the host cannot be part of a sequence. Goes out: `CpuSequence`, which runs.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import numpy as np

from eshkol.atlas import sequence as atlas
from eshkol.atlas.program import GATHERS, LaunchConfig, ParamKind, Program
from eshkol.atlas.sequence import Call, SequenceFailed, SequenceStep
from eshkol.backends.cpu.collective import Collective, Scratch, scratch
from eshkol.backends.cpu.kernels.macro import FAULT, FIRST_OPERAND, NO_FAULT, SCRATCH
from eshkol.backends.cpu.kernels.translate import KernelModule
from eshkol.backends.cpu.launch import STEPS_PER_TASK, Prepared, grain_of, pack_scalar
from eshkol.backends.cpu.together import Work, is_worth_pieces, pieces
from eshkol.backends.lanes import layout as words
from eshkol.backends.steps import step_words
from eshkol.errors import BackendUnavailable, IsaError
from eshkol.runtime import sequence as native
from eshkol.runtime.library import address_of
from eshkol.runtime.scheduler import PreparedCall
from eshkol.support.extents import about

GATHERED = 32  # instructions that an element takes as long as, where it comes from another core's cache


class PreparesLaunches(Protocol):
    """The backend, as far as a sequence needs it."""

    def prepared(self, program: Program, launch: LaunchConfig) -> Prepared:
        """What does not change from launch to launch."""
        ...


class SequenceWriter:
    """Steps as words, and what they call. Sizes among them may be such as are known later (`sized.py`)."""

    _backend: Any

    def __init__(self, backend: PreparesLaunches, steps: Sequence[SequenceStep], places: int) -> None:
        self._backend, self.places = backend, places
        self.about: Any = None  # what the steps are to who made them
        self.counters = 1 + max((getattr(s, "counter", -1) for s in steps), default=-1)
        self.calls: list[native.NativeCall] = []
        # What each call is, for errors; it keeps the code loaded too.
        self.parts: list[Prepared | Collective | atlas.NativeCode] = []
        self.scratch = 0
        self.moves = any(isinstance(s, atlas.Swap | atlas.Point | atlas.BufferView) for s in steps)
        found: list[native.StepWords] = []
        starts: list[int] = []  # of each step of the sequence, among the native ones
        for step in steps:
            starts.append(len(found))
            match step:
                case Call():
                    found += [(native.CALL, number, 0, 0, 0, 0) for number in self._call(step)]
                case atlas.Native():
                    found.append((native.CALL, self._native(step), 0, 0, 0, 0))
                case atlas.Together():
                    found.append((native.TOGETHER, len(starts), step.count, 0, 0, 0))  # its calls are not there yet
                case _:
                    found.append(step_words(step))
        starts.append(len(found))
        # Calls that need nothing of each other: where the step before them stands, and which they are.
        self.together = [
            (k, [w[1] for w in found[starts[w[1]] : starts[w[1] + w[2]]]])
            for k, w in enumerate(found) if w[0] == native.TOGETHER
        ]  # fmt: skip
        for k, _ in self.together:
            found[k] = native.JUMP, found[k][1], 0, 0, 0, 0  # to the calls, where they are not one loop
        targets = {native.NEXT: 4, native.UNLESS: 3, native.JUMP: 1}  # which word says where to go on
        self.steps = [
            w if w[0] not in targets else _with(w, targets[w[0]], starts[w[targets[w[0]]]]) for w in found
        ]  # fmt: skip
        self.origin = [k for k, start in enumerate(starts[:-1]) for _ in range(starts[k + 1] - start)]

    def _call(self, step: Call) -> list[int]:
        """The calls that a launch consists of, by their numbers."""
        if not step.launch.blocks:
            return []
        prepared = self._prepared(step)
        if prepared.compiled.lanes is None:
            return [self._collective(c, step) for c in prepared.compiled.together.values() if not c.empty]
        if prepared.compiled.lanes.module.grid_wide or prepared.phased:
            raise BackendUnavailable(f"'{step.program.name}' waits for its host, so it cannot be part of a sequence")
        return [self._lanes(prepared, step)]

    def _prepared(self, step: Call) -> Prepared:
        found: Prepared = self._backend.prepared(step.program, step.launch)
        return found

    def _lanes(self, prepared: Prepared, step: Call) -> int:
        lanes, layout, launch = prepared.compiled.lanes, prepared.compiled.layout, step.launch
        assert lanes is not None
        record: list[Any] = _words_of(prepared.template)
        record[words.SHARED_BYTES] = launch.shared_memory
        record[words.GRID : words.GRID + 3] = launch.grid
        record[words.BLOCK : words.BLOCK + 3] = launch.block
        bindings, inner = [], []
        for number, param in enumerate(prepared.program.params):
            word = words.FIRST_PARAM + 2 * number
            if param.kind is ParamKind.BUFFER:
                place, offset, size = step.buffers[param.name]
                assert param.ty is not None
                if param.count is not None and size < param.count * param.ty.size_bytes:
                    raise IsaError(f"the buffer '{param.name}' needs {param.count} × {param.ty}, but has {size} bytes")
                bindings.append((word, place, offset))
                record[word + 1] = size
                continue
            record[layout.words + number] = self._scalar(param, step.numbers[param.name])
            inner.append((word, layout.words + number))
            record[word + 1] = 8
        blocks, grain = launch.blocks, launch.blocks
        if not lanes.module.serial:
            steps = _steps(lanes.module, step) * (GATHERED if GATHERS in step.program.metadata else 1)
            grain = grain_of(blocks, max(1, STEPS_PER_TASK // (launch.block_size * steps)))
        return self._add(prepared, native.NativeCall([(lanes.address, blocks, grain)], record, bindings, inner))

    def _scalar(self, param: Any, value: Any) -> Any:
        """A scalar as a word of a record."""
        packed = bytearray(8)
        pack_scalar(packed, 0, param, value)
        return int.from_bytes(packed, "little")

    def _collective(self, part: Collective, step: Call) -> int:
        bindings = []
        for number, operand in enumerate(part.operands):
            place, offset, size = step.buffers[operand.name]
            if operand.size and operand.end > size:
                raise IsaError(f"{part.instruction.op.name} reaches byte {operand.end} of '{operand.name}' of {size}")
            bindings.append((FIRST_OPERAND + number, place, offset + operand.offset))
        if part.macro.scratch:
            if not self.scratch or part.macro.scratch > self.scratch:
                self.scratch = part.macro.scratch
            bindings.append((SCRATCH, self.places, 0))  # one place more than the sequence has
        record: list[Any] = [0] * (FIRST_OPERAND + len(part.operands))
        record[FAULT] = NO_FAULT
        record += map(self._word, part.macro.words)
        return self._add(part, native.NativeCall(part.phase_words, record, bindings))

    def _word(self, value: Any) -> Any:
        """An integer as a word without a sign."""
        return value & NO_FAULT

    def _native(self, step: atlas.Native) -> int:
        code = step.code
        bindings = [(word, *place) for word, place in zip((*code.outs, *code.ins), step.places, strict=True)]
        phases = [(address_of(code.function), code.tasks, code.grain)]
        return self._add(code, native.NativeCall(phases, _words_of(code.record), bindings))

    def _add(self, part: Prepared | Collective | atlas.NativeCode, call: native.NativeCall) -> int:
        self.calls.append(call)
        self.parts.append(part)
        return len(self.calls) - 1


class CpuSequence:
    """A sequence that was written, with its words. Any number of threads may run it: each has a copy meanwhile."""

    def __init__(self, written: SequenceWriter, laid: native.Laid, found: native.Words, scratch: int) -> None:
        self._written, self._laid, self._words, self._scratch = written, laid, found, scratch
        self._places = written.places
        self.regions: list[list[list[native.Stretch]]] = []  # pieces of loops over several calls
        for step, numbers in written.together:
            works = [work for number in numbers if (work := self._work(number)) is not None]
            made = pieces(works) if len(works) == len(numbers) and is_worth_pieces(works) else []
            if len(made) > 1:  # else it is not worth it, and they run as they stand
                start = native.STEP * step
                found[start : start + 3] = native.TOGETHER, len(self.regions), len(numbers)
                self.regions.append(made)
        self.about = written.about
        self._spare: list[native.NativeSequence] = []  # taken and given back atomically

    @classmethod
    def of(cls, written: SequenceWriter) -> CpuSequence:
        """The sequence where all sizes are known."""
        laid = native.Laid(written.steps, written.calls)
        return cls(written, laid, native.as_words(laid.words), written.scratch)

    def _work(self, number: int) -> Work | None:
        """A call as part of a loop over several; None where it is several loops, or shares scratch memory."""
        part, at = self._written.parts[number], self._laid.phases[number]
        count, grain = self._words[at + 1 : at + 3].tolist()
        if isinstance(part, Prepared):
            assert part.compiled.lanes is not None
            start = self._laid.records[number] + words.BLOCK
            x, y, z = self._words[start : start + 3].tolist()
            return Work(number, count, x * y * z * part.compiled.lanes.module.steps[0])
        if isinstance(part, atlas.NativeCode) or part.macro.scratch or len(part.phase_words) > 1:
            return None
        # What an array instruction costs is known as far as it is split: a piece is a task.
        return Work(number, count, STEPS_PER_TASK / (grain if count > grain else 8 * count), grain)

    def run(self, addresses: list[int]) -> None:
        """Run it over places at these addresses, which it may change."""
        try:
            ready = self._spare.pop()
        except IndexError:
            ready = self.made()
        ready.places[: self._places] = addresses
        meanwhile = None
        if self._scratch:
            meanwhile = scratch(self._scratch)
            ready.places[self._places] = meanwhile.address
        status = ready.run()
        del meanwhile  # had to live until now
        if status:
            raise self.failure(ready, status)
        if self._written.moves:
            addresses[:] = ready.places[: self._places]
        self._spare.append(ready)  # one that has failed is not used again

    def made(self) -> native.NativeSequence:
        """The steps, for one thread at a time, with a place more than the sequence has: of its scratch memory."""
        counters = self._written.counters
        about = None if self.about is None else (self.about, self._written.origin)
        return native.NativeSequence(self._laid, self._words, self._places + 1, counters, self.regions, about)

    @property
    def scratch(self) -> Callable[[], Scratch] | None:
        """Memory to work in, where it needs some."""
        return partial(scratch, self._scratch) if self._scratch else None

    @property
    def steps(self) -> list[native.StepWords]:
        """As they are run."""
        found = self._words[: native.STEP * self._laid.step_count].view(np.int64).reshape(-1, native.STEP)
        return [(kind, a, b, c, d, e) for kind, a, b, c, d, e in found.tolist()]

    def shown(self) -> tuple[Any, ...]:
        """All of it, to be compared with another."""
        return self._words.tobytes(), self.regions, self._scratch, self._written.counters, self._places

    def failure(self, ready: native.NativeSequence, status: int) -> SequenceFailed:
        """The error of a run that ended with a status."""
        step = ready.failed
        if status != native.FAULT:
            PreparedCall.refuse(status)
        number = self._written.steps[step][1]
        part, code = self._written.parts[number], ready.fault(number)
        error = part.compiled.fault(code) if isinstance(part, Prepared) else part.fault(code)
        return SequenceFailed(self._written.origin[step], error)


def _steps(module: KernelModule, step: Call) -> int:
    """About how many instructions a lane has; where it is told how long loops are, as many as it has elements."""
    if not module.told:
        return module.steps[0]
    bits = {param.name: param.ty.bits for param in step.program.params if param.ty is not None}
    most = max((8 * about(size) // bits[name] for name, (_, _, size) in step.buffers.items()), default=0)
    return max(module.steps[0], most // about(step.launch.total_threads))


def _words_of(packed: bytes) -> list[int]:
    return [*struct.unpack(f"{len(packed) // 8}Q", packed)]


def _with(words: native.StepWords, place: int, value: int) -> native.StepWords:
    changed = list(words)
    changed[place] = value
    kind, a, b, c, d, e = changed
    return kind, a, b, c, d, e
