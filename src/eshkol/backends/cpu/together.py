"""Several launches as one loop over all their blocks.

Comes in: calls that need nothing of each other, each with its blocks and how much work a block is. Goes out: the pieces
of a loop. A piece is worth a thread's while: a stretch of a large call, or several small calls. So threads meet once
for all of the calls, and calls that are too small to be split keep all threads at work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from eshkol.backends.cpu.launch import STEPS_PER_TASK, worth
from eshkol.runtime.sequence import Stretch


@dataclass(frozen=True, slots=True)
class Work:
    """The indexes of a call's loop, and the instructions that one of them takes."""

    call: int
    count: int
    each: float
    whole: int = 0  # indexes of a stretch, where the loop says how long it must be


def is_worth_pieces(works: Sequence[Work]) -> bool:
    """Whether there may be more than one piece; quickly told of what is small."""
    return _total(works) > STEPS_PER_TASK


def _total(works: Sequence[Work]) -> int:
    return int(sum([w.count * w.each for w in works]))


def pieces(works: Sequence[Work]) -> list[list[Stretch]]:
    """The pieces of one loop over all indexes, each in one of them; one piece where no more are worth it."""
    task = worth(_total(works))
    made: list[list[Stretch]] = [[]]
    filled = 0.0
    for work in works:
        for begin, end in _stretches(work, task):
            size = (end - begin) * work.each
            if made[-1] and filled + size / 2 > task:  # it is nearer to a task without this stretch
                made.append([])
                filled = 0.0
            made[-1].append((work.call, begin, end))
            filled += size
    return made


def _stretches(work: Work, task: int) -> list[tuple[int, int]]:
    if work.whole:
        return [(k, min(k + work.whole, work.count)) for k in range(0, work.count, work.whole)]
    parts = min(work.count, max(1, round(work.count * work.each / task)))
    cuts = [work.count * k // parts for k in range(parts + 1)]
    return list(pairwise(cuts))
