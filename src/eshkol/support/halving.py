"""A measured search: which of many ways is fastest, found in rounds, the better half of each being measured again.

Comes in: candidates, the one first that is taken without measuring; what makes one ready to be measured; and a time
limit. Goes out: the fastest, seconds of all that were measured, and why others were not. The first stays unless another
is clearly faster, in turns with it: the least of many noisy numbers is less than it should be. A candidate that fails
is noted by name and left out; an answer that is wrong is noted apart, so that it can be told loudly.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from eshkol.errors import DeviceLost, EshkolError

FEW = 3  # samples of each candidate in the first round; twice as many in each that follows
FINAL = 15  # of the best and the first, in turns
GAIN = 0.01  # by which another must be faster than the first
HOPELESS = 3.0  # times as slow as the best so far: one sample will do
NEAR = 2  # how many of the best others are looked for near to
FIRST_ROUND, SECOND_ROUND = 0.6, 0.8  # of the time, for candidates and for those near the best

C = TypeVar("C")
Sample = Callable[[], float]  # measures once: seconds


class WrongAnswer(EshkolError):
    """What a candidate computed is not what others do."""


@dataclass
class Found(Generic[C]):
    """What a search gave."""

    first: C
    best: C
    seconds: dict[C, float] = field(default_factory=dict)  # medians
    failed: dict[C, str] = field(default_factory=dict)
    wrong: dict[C, str] = field(default_factory=dict)
    untried: int = 0  # candidates for which there was no time
    stopped: EshkolError | None = None  # the device is gone: nothing more can be measured there

    def refuse(self, candidate: C, why: str) -> None:
        """Note that a candidate is wrong after all: the first is taken instead of it."""
        del self.seconds[candidate]
        self.wrong[candidate] = why
        self.best = self.first

    @property
    def gain(self) -> float:
        return self.seconds[self.first] / self.seconds[self.best]


def search(
    candidates: Sequence[C],
    load: Callable[[C], object],
    ready: Callable[[C], Sample],
    *,
    limit: float,
    near: Callable[[C], Sequence[C]] = lambda candidate: (),
    clock: Callable[[], float] = time.monotonic,
    workers: int = 1,
) -> Found[C]:
    """The fastest of candidates, within so many seconds but for the first, which is measured in any case.

    To load a candidate takes long, and may be done by several threads; `ready` then gives what measures it. When all
    were measured for the first time, those near the best are, too.
    """
    found = _Search(load, ready, clock, workers, candidates[0])
    began = clock()
    found.measure(candidates, began + FIRST_ROUND * limit)
    closer = [other for candidate in found.ordered()[:NEAR] for other in near(candidate)]
    found.measure([c for c in dict.fromkeys(closer) if c not in candidates], began + SECOND_ROUND * limit)
    found.rounds(began + limit)
    return found.result()


class _Search(Generic[C]):
    """A search under way."""

    def __init__(
        self, load: Callable[[C], object], ready: Callable[[C], Sample], clock: Callable[[], float], workers: int,
        first: C,
    ) -> None:  # fmt: skip
        self._load, self._ready, self._clock, self._workers = load, ready, clock, workers
        self._found = Found(first, first)
        self._runs: dict[C, Sample] = {}
        self._samples: dict[C, list[float]] = {}

    def ordered(self) -> list[C]:
        """What was measured, the fastest first."""
        return sorted(self._samples, key=lambda c: statistics.median(self._samples[c]))

    def measure(self, candidates: Sequence[C], end: float) -> None:
        """Measure candidates for the first time, as long as there is time."""
        found = self._found
        with _loading(candidates, self._load, self._workers) as loaded:
            for number, candidate in enumerate(candidates):
                if found.stopped is not None or (self._samples and self._clock() > end):
                    found.untried += len(candidates) - number
                    break
                try:
                    loaded(number)
                    self._begin(candidate)
                except WrongAnswer as error:
                    found.wrong[candidate] = error.message
                except Exception as error:  # it is told, whatever it is, and the others go on
                    found.failed[candidate] = str(error).splitlines()[0] if str(error) else type(error).__name__
                    found.stopped = error if isinstance(error, DeviceLost) else None
                if found.first not in self._samples:  # there is nothing to compare others with
                    why = {**found.failed, **found.wrong}[found.first]
                    raise EshkolError(f"the kernel that is taken without measuring fails: {why}")

    def _begin(self, candidate: C) -> None:
        run = self._ready(candidate)
        taken = [run()]
        if taken[0] < HOPELESS * min((x[0] for x in self._samples.values()), default=float("inf")):
            taken += [run() for _ in range(FEW - 1)]
        self._runs[candidate], self._samples[candidate] = run, taken

    def rounds(self, end: float) -> None:
        """Measure the better half again and again, then the best in turns with the first."""
        runs, samples, first = self._runs, self._samples, self._found.first
        alive, count = self.ordered(), FEW
        if self._found.stopped is not None:
            return
        while len(alive) > 2 and self._clock() < end:
            alive, count = alive[: -(-len(alive) // 2)], 2 * count
            for _ in range(min(count, FINAL)):
                if self._clock() > end:
                    break
                for candidate in alive:
                    samples[candidate].append(runs[candidate]())
            alive.sort(key=lambda c: statistics.median(samples[c]))
        best = alive[0]
        if best == first:
            return
        pairs = [(runs[first](), runs[best]()) for _ in range(FINAL)]
        samples[first], samples[best] = ([pair[k] for pair in pairs] for k in range(2))
        if statistics.median(rival / own for own, rival in pairs) < 1 - GAIN:
            self._found.best = best

    def result(self) -> Found[C]:
        self._found.seconds = {candidate: statistics.median(taken) for candidate, taken in self._samples.items()}
        return self._found


@contextmanager
def _loading(candidates: Sequence[C], load: Callable[[C], object], workers: int) -> Iterator[Callable[[int], object]]:
    """What waits until a candidate is loaded, by its number: so many are at a time, and no further ahead than that."""
    pool = ThreadPoolExecutor(workers)
    futures: list[Future[object]] = []

    def loaded(number: int) -> object:
        while len(futures) < min(number + workers, len(candidates)):
            futures.append(pool.submit(load, candidates[len(futures)]))
        return futures[number].result()

    try:
        yield loaded
    finally:
        for future in futures:
            future.cancel()
        pool.shutdown()
