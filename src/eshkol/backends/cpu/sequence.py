"""Sequences of launches as one native call: see `atlas/sequence.py` for what they say.

Comes in: the steps of a sequence. Every program is compiled; its lanes, or the one array instruction it consists of,
become a call over a record of their own, in which only addresses change from run to run. Programs whose lanes wait for
the host cannot be part of a sequence.
"""

from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from eshkol.atlas import sequence as atlas
from eshkol.atlas.program import LaunchConfig, ParamKind, Program
from eshkol.atlas.sequence import Call, SequenceFailed, SequenceStep
from eshkol.backends.cpu.collective import Collective, Scratch, scratch
from eshkol.backends.cpu.kernels.macro import FIRST_OPERAND, SCRATCH
from eshkol.backends.cpu.launch import STEPS_PER_TASK, Prepared, pack_scalar
from eshkol.backends.cpu.together import Work, pieces
from eshkol.backends.lanes.layout import BLOCK, FIRST_PARAM
from eshkol.backends.steps import step_words
from eshkol.errors import BackendUnavailable, IsaError
from eshkol.runtime import sequence as native
from eshkol.runtime.library import address_of
from eshkol.runtime.scheduler import PreparedCall


class PreparesLaunches(Protocol):
    """The backend, as far as a sequence needs it."""

    def prepared(self, program: Program, launch: LaunchConfig) -> Prepared:
        """What does not change from launch to launch."""
        ...


class CpuSequence:
    """A sequence of this backend. Any number of threads may run it: each has its own records meanwhile."""

    def __init__(self, backend: PreparesLaunches, steps: Sequence[SequenceStep], places: int) -> None:
        self._backend, self._places = backend, places
        self._counters = 1 + max((getattr(s, "counter", -1) for s in steps), default=-1)
        self._calls: list[native.NativeCall] = []
        # What each call is, for errors; it keeps the code loaded too.
        self._parts: list[Prepared | Collective | atlas.NativeCode] = []
        self._scratch = 0
        self._moves = any(isinstance(s, atlas.Swap | atlas.Point | atlas.BufferView) for s in steps)
        self._regions: list[list[list[native.Stretch]]] = []  # pieces of loops over several calls
        words: list[native.StepWords] = []
        starts: list[int] = []  # of each step of the sequence, among the native ones
        for step in steps:
            starts.append(len(words))
            match step:
                case Call():
                    words += self._call(step)
                case atlas.Native():
                    words.append((native.CALL, self._native(step), 0, 0, 0, 0))
                case atlas.Together():
                    words.append((native.TOGETHER, len(starts), step.count, 0, 0, 0))  # its calls are not there yet
                case _:
                    words.append(step_words(step))
        starts.append(len(words))
        words = [self._together(k, words, starts) if w[0] == native.TOGETHER else w for k, w in enumerate(words)]
        targets = {native.NEXT: 4, native.UNLESS: 3, native.JUMP: 1}  # which word says where to go on
        self._steps = [
            w if w[0] not in targets else _with(w, targets[w[0]], starts[w[targets[w[0]]]]) for w in words
        ]  # fmt: skip
        self._origin = [k for k, start in enumerate(starts[:-1]) for _ in range(starts[k + 1] - start)]
        self._spare: list[native.NativeSequence] = []  # taken and given back atomically

    def _call(self, step: Call) -> list[native.StepWords]:
        prepared = self._backend.prepared(step.program, step.launch)
        if not prepared.blocks:
            return []
        if prepared.compiled.lanes is None:
            made = [self._collective(c, step) for c in prepared.compiled.together.values() if not c.empty]
        elif prepared.compiled.lanes.module.grid_wide or prepared.phased:
            raise BackendUnavailable(f"'{step.program.name}' waits for its host, so it cannot be part of a sequence")
        else:
            made = [self._lanes(prepared, step)]
        return [(native.CALL, number, 0, 0, 0, 0) for number in made]

    def _together(self, at: int, words: Sequence[native.StepWords], starts: Sequence[int]) -> native.StepWords:
        """The step before calls that need nothing of each other: they are one loop, or run as they stand."""
        _, first, count, *_ = words[at]
        return self.joined([w[1] for w in words[starts[first] : starts[first + count]]], first)

    def joined(self, numbers: Sequence[int], first: int) -> native.StepWords:
        """Calls that need nothing of each other as one loop; where it is not worth it, to the first of them."""
        works = [self._work(number) for number in numbers]
        found = pieces([w for w in works if w is not None]) if all(works) else []
        if len(found) < 2:
            return native.JUMP, first, 0, 0, 0, 0  # to the calls
        self._regions.append(found)
        return native.TOGETHER, len(self._regions) - 1, len(numbers), 0, 0, 0

    def _work(self, number: int) -> Work | None:
        """A call as part of a loop over several; None where it is several loops, or shares scratch memory."""
        part, ((_, count, grain), *more) = self._parts[number], self._calls[number].phases
        if isinstance(part, Prepared):
            assert part.compiled.lanes is not None
            block = math.prod(struct.unpack_from("<3Q", self._calls[number].record, 8 * BLOCK))
            return Work(number, count, block * part.compiled.lanes.module.steps[0])
        if more or isinstance(part, atlas.NativeCode) or part.macro.scratch:
            return None
        # What an array instruction costs is known as far as it is split: a piece is a task.
        return Work(number, count, STEPS_PER_TASK / (grain if count > grain else 8 * count), grain)

    def _lanes(self, prepared: Prepared, step: Call) -> int:
        lanes, layout = prepared.compiled.lanes, prepared.compiled.layout
        assert lanes is not None
        record = (ctypes.c_uint64 * (len(prepared.template) // 8)).from_buffer_copy(prepared.template)
        bindings, inner = [], []
        for number, param in enumerate(prepared.program.params):
            word = FIRST_PARAM + 2 * number
            if param.kind is ParamKind.BUFFER:
                place, offset, size = step.buffers[param.name]
                assert param.ty is not None
                if param.count is not None and size < param.count * param.ty.size_bytes:
                    raise IsaError(f"the buffer '{param.name}' needs {param.count} × {param.ty}, but has {size} bytes")
                bindings.append((word, place, offset))
                record[word + 1] = size
            else:
                pack_scalar(record, 8 * (layout.words + number), param, step.numbers[param.name])
                inner.append((word, layout.words + number))
                record[word + 1] = 8
        phases = [(lanes.address, prepared.blocks, prepared.grains[0])]
        self._calls.append(native.NativeCall(phases, bytes(record), bindings, inner))
        self._parts.append(prepared)
        return len(self._calls) - 1

    def _collective(self, part: Collective, step: Call) -> int:
        bindings = []
        for number, operand in enumerate(part.operands):
            place, offset, size = step.buffers[operand.name]
            if operand.size and operand.end > size:
                raise IsaError(f"{part.instruction.op.name} reaches byte {operand.end} of '{operand.name}' of {size}")
            bindings.append((FIRST_OPERAND + number, place, offset + operand.offset))
        if part.macro.scratch:
            self._scratch = max(self._scratch, part.macro.scratch)
            bindings.append((SCRATCH, self._places, 0))  # one place more than the sequence has
        phases = [(p.function, p.count, p.grain) for p in part.phases]
        self._calls.append(native.NativeCall(phases, part.template, bindings))
        self._parts.append(part)
        return len(self._calls) - 1

    def _native(self, step: atlas.Native) -> int:
        code = step.code
        bindings = [(word, *place) for word, place in zip((*code.outs, *code.ins), step.places, strict=True)]
        function = address_of(code.function)
        self._calls.append(native.NativeCall([(function, code.tasks, code.grain)], code.record, bindings))
        self._parts.append(code)
        return len(self._calls) - 1

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
        if self._moves:
            addresses[:] = ready.places[: self._places]
        self._spare.append(ready)  # one that has failed is not used again

    def made(self) -> native.NativeSequence:
        """The steps, for one thread at a time, with a place more than the sequence has: of its scratch memory."""
        return native.NativeSequence(self._steps, self._calls, self._places + 1, self._counters, self._regions)

    @property
    def scratch(self) -> Callable[[], Scratch] | None:
        """Memory to work in, where it needs some."""
        return partial(scratch, self._scratch) if self._scratch else None

    def failure(self, ready: native.NativeSequence, status: int) -> SequenceFailed:
        """The error of a run that ended with a status."""
        step = ready.failed
        if status != native.FAULT:
            PreparedCall.refuse(status)
        number = self._steps[step][1]
        part, code = self._parts[number], ready.records[number][0]
        error = part.compiled.fault(code) if isinstance(part, Prepared) else part.fault(code)
        return SequenceFailed(self._origin[step], error)


def _with(words: native.StepWords, place: int, value: int) -> native.StepWords:
    changed = list(words)
    changed[place] = value
    kind, a, b, c, d, e = changed
    return kind, a, b, c, d, e
