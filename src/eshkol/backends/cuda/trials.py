"""Launches of kernels that leave something open, measured with each of their choices.

Comes in: a launch, as it was asked of the device (`Tuning.seen`). Goes out: a `Rehearsal` of it on memory made for it,
of random numbers: what it leaves open, kernels of its choices, loaded by any thread, and the device's own time for
each. What a choice computes is compared with what the first does, which is the one that tests compare with others: an
element that is not nearly the same, or that is not written, is a wrong answer. Of long results pieces are compared, and
all of the best one's before it is an answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from eshkol.atlas.isa import Kind
from eshkol.atlas.operands import BufferOffset
from eshkol.atlas.sequence import Call, Runner, SequenceFailed
from eshkol.atlas.types import Array, Type, decode, encode
from eshkol.atlas.validate import memory_operands
from eshkol.backends.base import BufferHandle
from eshkol.backends.cuda.backend import CudaBackend
from eshkol.backends.cuda.loaded import Prepared
from eshkol.backends.cuda.warpgroups.choices import Choices, label
from eshkol.errors import BackendError, DeviceLost, EshkolError
from eshkol.support.answers import Question
from eshkol.support.halving import Found, Sample, WrongAnswer, search

SAMPLE, MOST_REPEATS = 4e-4, 20  # seconds that one reading of the clock should cover, and launches at most
RANDOM = 1_000_003  # different numbers, a prime: no two rows begin with the same
NEARLY = 0.02  # of an element and of all elements' size: how far two orders of sums of 16-bit floats may be apart
PIECES, PIECE, ALIGNED = 128, 1 << 16, 256  # of results that are compared at first, and bytes of each
EXPONENTS = {Type.F32: 0x7F800000, Type.BF16: 0x7F80, Type.F16: 0x7C00}  # bits that are all set in what is no number
UNWRITTEN = 0xFF  # in every byte: of every float type, no number
PATIENCE = 10.0  # seconds after which launches are taken for endless
POLL = 2e-4
WORKERS = 4  # threads that have the driver compile


class Rehearsal:
    """A launch on memory made for it, with one choice or another."""

    def __init__(self, backend: CudaBackend, call: Call, choices: Choices) -> None:
        self.choices = choices
        self._backend, self._prepared = backend, dict[Any, Prepared]()
        operands = memory_operands(call.program.instructions[0])
        written = {a.handle for f, a in operands if f.kind is not Kind.READ and isinstance(a, BufferOffset)}
        types = {param.name: param.ty for param in call.program.params}
        places: dict[tuple[int, int], int] = {}  # where a buffer lay → the number of ours
        self._buffers: list[BufferHandle] = []
        self._written: list[tuple[BufferHandle, Type]] = []
        buffers = {}
        try:
            for name, (place, offset, size) in call.buffers.items():
                ty = types[name]
                assert ty is not None
                if (place, offset) not in places:
                    places[place, offset] = len(self._buffers)
                    self._buffers.append(backend.allocate(size))
                    if name in written:
                        self._written.append((self._buffers[-1], ty))
                    else:
                        backend.copy_to(self._buffers[-1], np.resize(_numbers(ty, len(self._buffers)), size))
                buffers[name] = places[place, offset], 0, size
        except BaseException:
            self.free()
            raise
        self._addresses = [backend.address(handle) for handle in self._buffers]
        self._call = replace(call, buffers=buffers)
        self._expected: list[Array] | None = None  # pieces of what the first computes
        self._repeats: int | None = None  # launches that are timed together, the same for all choices

    @classmethod
    def of(cls, backend: CudaBackend, call: Call) -> Rehearsal | None:
        """That of a launch; None if it leaves nothing open."""
        choices = choices_of(backend, call)
        return None if choices is None else cls(backend, call, choices)

    def free(self) -> None:
        """Give the memory back."""
        self._prepared.clear()
        while self._buffers:
            self._backend.free(self._buffers.pop())

    def load(self, tile: Any) -> None:
        """Write the kernel of a choice, and have the driver compile it."""
        at_once = self._backend.at_once(self._call.program, lambda _: tile)
        if at_once is None:
            raise BackendError("the machine's copies cannot fetch such tiles")
        self._prepared[tile] = self._backend.load_alone(self._call.program, at_once)

    def ready(self, tile: Any) -> Sample:
        """Compare what a choice gives with what the first does; then, what measures it."""
        once = self._run_once(tile)
        found = self._results(whole=False)
        if self._expected is None:
            self._expected = found
        self._compare(tile, self._expected, found)
        if self._repeats is None:
            self._repeats = max(1, min(MOST_REPEATS, round(SAMPLE / max(self._timed(once), 1e-9))))
        repeats, many = self._repeats, self._sequence(tile, self._repeats)
        self._timed(many)  # which finds caches as they will be
        return lambda: self._timed(many) / repeats

    def _sequence(self, tile: Any, count: int) -> Runner:
        with self._backend.using(self._prepared[tile]):
            return self._backend.sequence([self._call] * count, len(self._addresses))

    def _run_once(self, tile: Any) -> Runner:
        """Run a choice where nothing is written yet."""
        once = self._sequence(tile, 1)
        for handle, _ in self._written:
            self._backend.set_bytes(handle, UNWRITTEN)
        self._timed(once)
        return once

    def _timed(self, runner: Runner) -> float:
        """Seconds by the device's clock."""
        start, end = self._backend.event(), self._backend.event()
        start.record()
        try:
            runner.run([*self._addresses])
        except SequenceFailed as failed:
            raise failed.error from None
        end.record()
        patient_until = time.monotonic() + PATIENCE
        while not end.done():
            if time.monotonic() > patient_until:
                raise DeviceLost(f"launches did not end in {PATIENCE:.0f} seconds")
            time.sleep(POLL)
        return start.seconds_until(end)

    def _results(self, *, whole: bool) -> list[Array]:
        """What was written, as bits; else of long results pieces from everywhere, which are read in no time."""
        found = []
        for handle, ty in self._written:
            size, read = self._backend.size(handle), self._backend.copy_from
            apart = 0 if whole else size // PIECES // ALIGNED * ALIGNED
            starts = [*range(0, PIECES * apart, apart), size - PIECE] if apart > PIECE else []
            raw = b"".join(read(handle, start, PIECE) for start in starts) if starts else read(handle)
            found.append(np.frombuffer(raw, f"u{ty.size_bytes}"))
        return found

    def _compare(self, tile: Any, expected: list[Array], found: list[Array]) -> None:
        for wanted, got, (_, ty) in zip(expected, found, self._written, strict=True):
            if (why := _difference(wanted, got, ty)) is not None:
                raise WrongAnswer(f"{self.choices.question} with {label(tile)}: {why}")

    def confirm(self, tile: Any) -> None:
        """Compare all that a choice computes with what the first does."""
        given = []
        for one in (self.choices.first, tile):
            self._run_once(one)
            given.append(self._results(whole=True))
        self._compare(tile, *given)


def choices_of(backend: CudaBackend, call: Call) -> Choices | None:
    """What the kernel of a launch leaves open."""
    asked: list[Choices] = []

    def pick(choices: Choices) -> Any:
        asked.append(choices)
        return choices.first

    return asked[0] if backend.at_once(call.program, pick) is not None and asked else None


def questions(backend: CudaBackend, calls: Sequence[Call]) -> dict[Question, Call]:
    """What launches leave open, each question once."""
    found: dict[Question, Call] = {}
    for call in calls:
        choices = choices_of(backend, call)
        if choices is not None:
            found.setdefault(choices.question, call)
    return found


def measured(
    backend: CudaBackend, call: Call, *, limit: float, most: int, tell: Callable[[Any], None] = lambda tile: None
) -> Found[Any]:
    """The fastest of a launch's choices, among so many of the best estimates, within so many seconds."""
    rehearsal = Rehearsal.of(backend, call)
    if rehearsal is None:
        raise EshkolError(f"'{call.program.name}' leaves nothing open")

    def ready(tile: Any) -> Sample:
        tell(tile)
        return rehearsal.ready(tile)

    choices, lost = rehearsal.choices, False
    try:
        tiles = choices.promising()[:most]
        found = search(tiles, rehearsal.load, ready, limit=limit, near=choices.near, workers=WORKERS)
        lost = found.stopped is not None
        if found.best != found.first and not lost:
            try:
                rehearsal.confirm(found.best)
            except WrongAnswer as error:
                found.refuse(found.best, error.message)
        return found
    except DeviceLost:
        lost = True
        raise
    finally:
        if not lost:  # else the device would be waited for, in vain
            rehearsal.free()


@lru_cache(8)
def _numbers(ty: Type, seed: int) -> Array:
    """Bytes of numbers between -1 and 1."""
    numbers = np.random.default_rng(seed).uniform(-1.0, 1.0, RANDOM).astype(np.float32)
    return encode(numbers, ty).reshape(-1)


def _difference(expected: Array, found: Array, ty: Type) -> str | None:
    """What is wrong with numbers, given as bits; None if they are nearly what they should be."""
    exponent = EXPONENTS[ty]
    missing = int(np.count_nonzero(found & exponent == exponent))
    if missing:
        return f"{missing} of {found.size} elements are no numbers"
    others = np.flatnonzero(expected != found)
    if not others.size:
        return None
    want, got, some = (
        _floats(x, ty) for x in (expected[others], found[others], expected[:: 1 + expected.size // RANDOM])
    )
    bound = NEARLY * (np.abs(want) + np.sqrt(np.mean(some * some)))
    far = int(np.count_nonzero(np.abs(want - got) > bound))
    return f"{far} of {found.size} elements are wrong" if far else None


def _floats(bits: Array, ty: Type) -> Array:
    return decode(np.ascontiguousarray(bits).view(np.uint8).reshape(-1, ty.size_bytes), ty).astype(np.float32)
