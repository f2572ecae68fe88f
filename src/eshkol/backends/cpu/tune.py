"""The tuner: sizes that kernels leave open (tiles, blocks, unrolling), chosen by measuring on this machine.

A lowering that has a size to choose asks `choice(name, key, candidates, default)`. The answer is the default, unless
the program cache holds one for this machine (CPU, its features, LLVM, threads) and this key. While tuning is on
(`ESHKOL_TUNE=1`, or within `measuring()`), a question about an instruction that the host runs is answered by running
each candidate on memory of the right sizes when the instruction is first compiled; the answer is kept in the cache.
`ESHKOL_TUNE=0` leaves kept answers aside. `ESHKOL_EXPLAIN=1` says what was measured.

The default is always among the candidates, and another must be clearly faster. Nothing here knows what a candidate
means; what is computed differs by the order of sums alone.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np

from eshkol.atlas.program import Program
from eshkol.backends.cpu.collective import ALIGNMENT, Collective, Operand, loaded_macro, loaded_phases
from eshkol.backends.cpu.kernels.macro import FIRST_OPERAND, Macro
from eshkol.llvm.passes import KERNEL
from eshkol.llvm.targets import Target
from eshkol.runtime.scheduler import expected_workers
from eshkol.support import flags
from eshkol.support.keys import cache_key
from eshkol.support.store import ProgramCache

LEAST_WORK = 1 << 18  # multiplications of an instruction that it pays to ask about
BUDGET = 0.3  # seconds of running for one question; compiling the candidates comes on top
GAIN = 0.03  # by which a candidate must be faster than the default
SAMPLE = 2e-4  # seconds that one reading of the clock should cover
FEWEST_SAMPLES, MOST_SAMPLES = 3, 15  # of each candidate, in each of two heats
HOPELESS = 2.0  # times as slow as the default from the start: such a candidate drops out
MOST_BYTES = 256 << 20  # of operands that are made to measure on
FILLER = 0x3C  # in every byte: a small normal number of every float type, and pages of memory of its own

Candidate = tuple[int, ...]
C = TypeVar("C", bound=Candidate)


class Mode(Enum):
    """What is done about questions."""

    DEFAULTS = False
    KEPT = None  # answers of the cache
    MEASURE = True


_mode: ContextVar[Mode | None] = ContextVar("tuning", default=None)


def mode() -> Mode:
    """What holds here: `measuring()`, else what the environment says."""
    if (found := _mode.get()) is not None:
        return found
    return Mode(flags.choice("ESHKOL_TUNE"))


@contextmanager
def measuring() -> Iterator[None]:
    """Within it, what is compiled is tuned."""
    token = _mode.set(Mode.MEASURE)
    try:
        yield
    finally:
        _mode.reset(token)


# --- questions ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """What is to be chosen, for what, and between what."""

    name: str
    key: str
    candidates: tuple[Candidate, ...]
    default: Candidate

    def __str__(self) -> str:
        return f"{self.name} for {self.key}"


Lower = Callable[[], Macro | None]
Answer = Callable[[Question], Candidate | None]


class _Lowering:
    """A lowering under way: the answers that it is given, and the questions that had none."""

    def __init__(self, answer: Answer) -> None:
        self.answer, self.unanswered = answer, list[Question]()

    def ask(self, question: Question) -> Candidate:
        found = self.answer(question)
        if found is None:
            self.unanswered.append(question)
        return question.default if found is None else found


_lowering: ContextVar[_Lowering | None] = ContextVar("lowering", default=None)


def choice(name: str, key: str, candidates: Sequence[C], default: C) -> C:
    """The candidate to use. The key must say all that the choice depends on, but for the machine."""
    asked = _lowering.get()
    if asked is None:
        return default
    every = tuple(dict.fromkeys((default, *candidates)))
    found = asked.ask(Question(name, key, every, default))
    return every[every.index(found)]  # which has the caller's own type of tuple


def under(lower: Lower, answer: Answer) -> tuple[Macro | None, list[Question]]:
    """What a lowering gives under answers to what it asks, and the questions that have none: the default is used."""
    under_way = _Lowering(answer)
    token = _lowering.set(under_way)
    try:
        return lower(), under_way.unanswered
    finally:
        _lowering.reset(token)


# --- answers --------------------------------------------------------------------------------------


class Tuner:
    """The answers of one cache for one target."""

    def __init__(self, cache: ProgramCache, target: Target) -> None:
        self._cache, self._target = cache, target
        self._known: dict[Question, Candidate | None] = {}  # None: the cache had nothing
        self._generation: str | None = None  # as the cache had it
        self._lock = threading.RLock()  # one measures at a time

    def lowered(self, lower: Lower, rehearse: Callable[[], Rehearsal | None]) -> Macro | None:
        """What a lowering gives, with answers to what it asks. Without a rehearsal nothing is measured."""
        wanted = mode()
        if wanted is Mode.DEFAULTS:
            return lower()
        macro, unanswered = under(lower, self._kept)
        if unanswered and wanted is Mode.MEASURE and (rehearsal := rehearse()) is not None:
            while unanswered:  # one by one: a later question may depend on the answer to an earlier one
                with self._lock:
                    if self._kept(unanswered[0]) is None:
                        self._known[unanswered[0]] = self._measured(unanswered[0], lower, rehearsal)
                macro, unanswered = under(lower, self._kept)
        return macro

    def generation(self) -> str:
        """What is different when something was measured since: code that was chosen before is chosen anew then."""
        if self._generation is None:
            found = self._cache.get(self._generation_key)
            self._generation = "" if found is None else found.hex()
        return f"{mode().name} {self._generation}"

    @property
    def _generation_key(self) -> str:
        return cache_key({"tuned": "generation", "machine": self._machine, "threads": str(expected_workers())})

    def _trial(self, tried: Question, candidate: Candidate, question: Question) -> Candidate | None:
        return candidate if question == tried else self._kept(question)

    def _kept(self, question: Question) -> Candidate | None:
        if question not in self._known:
            self._known[question] = decoded(self._cache.get(self._key(question)), question)
        return self._known[question]

    def _key(self, question: Question) -> str:
        return cache_key({
            "tuned": question.name, "for": question.key, "candidates": repr([tuple(c) for c in question.candidates]),
            "machine": self._machine, "threads": str(expected_workers()),
        })  # fmt: skip

    @cached_property
    def _machine(self) -> str:
        return cache_key(self._target.key)

    def _measured(self, question: Question, lower: Lower, rehearsal: Rehearsal) -> Candidate:
        """The fastest candidate, which the cache keeps; the default, unkept, where that would take too long."""
        ways: dict[Macro, Candidate] = {}  # candidates may come to the same; the default is the first
        for candidate in question.candidates:
            macro, _ = under(lower, partial(self._trial, question, candidate))
            assert macro is not None
            ways.setdefault(macro, candidate)
        found = None
        if rehearsal.size <= MOST_BYTES:
            found = fastest([rehearsal.ready(macro) for macro in ways], BUDGET)
        if found is None:
            _explain(f"{question}: too large to measure")
            return question.default
        best, times = found
        candidates = list(ways.values())
        shown = [f"{tuple(c)} {t * 1e6:.1f} µs" for c, t in zip(candidates, times, strict=False)]
        _explain(f"{question}: {tuple(candidates[best])} of {', '.join(shown)}")
        self._cache.put(self._key(question), encoded(question, candidates[best]))
        self._cache.put(self._generation_key, os.urandom(16))
        self._generation = None
        return candidates[best]


def encoded(question: Question, chosen: Candidate) -> bytes:
    """An answer as it is kept."""
    return json.dumps({"question": str(question), "choice": list(chosen)}).encode()


def decoded(payload: bytes | None, question: Question) -> Candidate | None:
    """The answer in a payload; None where there is none, or none that makes sense."""
    if payload is None:
        return None
    try:
        found = json.loads(payload)
        kept, numbers = found["question"], tuple(found["choice"])
    except (ValueError, TypeError, KeyError):  # ValueError: no JSON, no UTF-8
        return None
    return numbers if kept == str(question) and numbers in question.candidates else None


def _explain(line: str) -> None:
    if flags.is_on("ESHKOL_EXPLAIN") and sys.stderr is not None:
        with suppress(OSError, ValueError):  # a closed stderr is no reason to stop
            print(f"eshkol tune: {line}", file=sys.stderr)


# --- measuring ------------------------------------------------------------------------------------


class Rehearsal:
    """An instruction that the host runs, on memory made for it instead of a launch's."""

    def __init__(self, program: Program, index: int, cache: ProgramCache, target: Target) -> None:
        self._program, self._index, self._cache, self._target = program, index, cache, target
        self._operands: list[np.ndarray[Any, Any]] | None = None

    @property
    def size(self) -> int:
        """Bytes of its operands."""
        return sum(_reach(o) for o in self._part(Macro((), ())).operands)

    def _part(self, macro: Macro) -> Collective:
        load = lambda name, text: loaded_macro(name, text, self._cache, self._target, KERNEL)
        return Collective(self._program, self._index, macro, loaded_phases(macro, load))

    def ready(self, macro: Macro) -> Callable[[], None]:
        """A call that carries it out once, as a macro."""
        part = self._part(macro)
        if self._operands is None:
            self._operands = [np.full(_reach(o) + ALIGNMENT, FILLER, np.uint8) for o in part.operands]
        held = part.hold()
        for number, memory in enumerate(self._operands):
            start = memory.ctypes.data
            held.record[FIRST_OPERAND + number] = start + -start % ALIGNMENT

        def run(alive: object = self._operands) -> None:
            part.carry_out(held)

        return run


def _reach(operand: Operand) -> int:
    """Bytes from the place that functions are given to the last one they touch."""
    return operand.end - operand.offset


Clock = Callable[[], float]


def fastest(
    runs: Sequence[Callable[[], object]], budget: float, clock: Clock = time.perf_counter
) -> tuple[int, list[float]] | None:
    """Which is fastest, and the median seconds of those that were run; None where the budget is too small.

    The first is the default. In a first heat all take turns for half of the budget. The fastest then runs against the
    default alone: the least of many noisy numbers is less than it should be. Compared are samples of the same turn, as
    a machine that does other work is slow at times.
    """
    runs[0]()  # the first run finds caches cold, and memory that was never touched
    began = clock()
    runs[0]()
    once = max(clock() - began, 1e-9)
    repeats = max(1, round(SAMPLE / once))
    places = int(budget / 2 / (once * repeats * (FEWEST_SAMPLES + 1)))
    if places < 2:
        return None
    samples = _heat(runs[:places], repeats, clock() + budget / 2, clock)
    ratios = [_ratio(s, samples[0]) for s in samples]
    best = min(range(len(ratios)), key=ratios.__getitem__)
    if ratios[best] < 1 - GAIN:
        default, rival = _heat([runs[0], runs[best]], repeats, clock() + budget / 2, clock)
        best = best if _ratio(rival, default) < 1 - GAIN else 0
    else:
        best = 0
    return best, [statistics.median(s) for s in samples]


def _ratio(samples: list[float], default: list[float]) -> float:
    """Seconds in terms of the default's; infinite for one that has dropped out."""
    if len(samples) < FEWEST_SAMPLES:
        return float("inf")
    return statistics.median(own / other for own, other in zip(samples, default, strict=True))


def _heat(runs: Sequence[Callable[[], object]], repeats: int, deadline: float, clock: Clock) -> list[list[float]]:
    """Seconds of single runs, candidate by candidate. They take turns; one that is far behind drops out."""
    samples: list[list[float]] = [[] for _ in runs]
    out: set[int] = set()
    for run in runs:  # caches and memory as they will be
        run()
    for turn in range(1, MOST_SAMPLES + 1):
        for number, run in enumerate(runs):
            if number in out:
                continue
            began = clock()
            for _ in range(repeats):
                run()
            samples[number].append((clock() - began) / repeats)
            if turn == FEWEST_SAMPLES - 1 and min(samples[number]) > HOPELESS * max(samples[0]):
                out.add(number)
        if turn >= FEWEST_SAMPLES and clock() > deadline:
            break
    return samples
