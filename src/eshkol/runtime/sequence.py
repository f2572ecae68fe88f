"""Sequences of native calls, for Python: the records of native/sequence.h.

`Laid` holds steps and calls as the words of one piece of memory. `NativeSequence` is a copy of it that can be run:
`run` fills in the addresses of the places and makes one call. One such object is for one thread at a time: records are
written while it runs.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from eshkol.runtime.library import native
from eshkol.runtime.scheduler import default_scheduler
from eshkol.support import observing

CALL, COPY, SWAP, POINT, VIEW, SET, NEXT, UNLESS, JUMP, TOGETHER = range(10)  # the same order stands in sequence.h
FAULT = -1  # the status of a call that wrote its record's first word
NO_FAULT = (1 << 64) - 1

StepWords = tuple[int, int, int, int, int, int]  # kind, a, b, c, d, e
STEP = 6  # words
Words = NDArray[np.uint64]
Stretch = tuple[int, int, int]  # a call, and from where to where its one loop goes


@dataclass(frozen=True)
class NativeCall:
    """Loops over a record, and which words of it are addresses: (word, place, offset)."""

    phases: Sequence[tuple[int, int, int]]  # address of the function, count, grain
    record: Sequence[int]  # words
    bindings: Sequence[tuple[int, int, int]]
    inner: Sequence[tuple[int, int]] = ()  # (word, other word): the one is the address of the other


class Binding(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("word", "place", "offset")]


class Step(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("kind", "a", "b", "c", "d", "e")]


class _Sequence(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in ("pool", "steps", "step_count", "calls", "places", "counters", "failed", "regions")
    ]


@cache
def _run() -> Any:
    function = native().eshkol_sequence_run
    function.restype, function.argtypes = ctypes.c_int, [ctypes.c_void_p]
    return function


class Laid:
    """Steps and calls as words of one piece of memory, which lie as the structures of sequence.h do.

    Words that are addresses within it (`pointers`) are counted from its beginning, in bytes. Words may be anything that
    becomes an integer later, but for those.
    """

    def __init__(self, steps: Sequence[StepWords], calls: Sequence[NativeCall]) -> None:
        self.words: list[Any] = [*chain.from_iterable(steps)]
        self.step_count, self.calls_at = len(steps), len(self.words)
        self.phases: list[int] = []  # where the first loop of each call stands
        self.records: list[int] = []
        pointers: list[int] = []
        loops: list[int] = []
        self.words += [0] * (5 * len(calls))
        for number, call in enumerate(calls):
            head = self.calls_at + 5 * number
            phases, bindings = (self._put(chain.from_iterable(x)) for x in (call.phases, call.bindings))
            record = self._put(call.record)
            self.words[head : head + 5] = [8 * phases, len(call.phases), 8 * record, 8 * bindings, len(call.bindings)]
            pointers += (head, head + 2, head + 3)
            for word, other in call.inner:
                self.words[record + word] = 8 * (record + other)
                pointers.append(record + word)
            loops += range(phases, phases + 3 * len(call.phases), 3)
            self.phases.append(phases)
            self.records.append(record)
        self.pointers, self._loops = np.array(pointers, np.intp), np.array(loops, np.intp)

    def _put(self, words: Iterable[Any]) -> int:
        start = len(self.words)
        self.words += words
        return start

    def is_split(self, words: Words) -> bool:
        """Whether a loop is long enough for several threads, where the words are these."""
        return bool((words[self._loops + 1] > words[self._loops + 2]).any())


def as_words(values: Sequence[int]) -> Words:
    """Integers, with a sign or without, as words."""
    try:
        return np.array(values, np.int64).view(np.uint64)
    except OverflowError:  # a word that has no sign
        return np.array([x & NO_FAULT for x in values], np.uint64)


LIVING: WeakValueDictionary[int, NativeSequence] = WeakValueDictionary()  # by their addresses


class NativeSequence:
    """Steps ready to be run: as they are laid, with these words. A region is the pieces of one loop, of stretches."""

    def __init__(
        self, laid: Laid, words: Words, places: int, counters: int,
        regions: Sequence[Sequence[Sequence[Stretch]]] = (), about: Any = None,
    ) -> None:  # fmt: skip
        """`about` is what the steps are to who looks at them, a profile say."""
        self.places: Any = (ctypes.c_uint64 * max(places, 1))()
        self._counters = (ctypes.c_int64 * max(counters, 1))()
        self._words, self._records = words.copy(), laid.records
        start: int = self._words.ctypes.data
        self._words[laid.pointers] += np.uint64(start)
        kept: list[array[int]] = []

        def put(words: Iterable[int]) -> int:
            """Words in memory of their own, by their address."""
            kept.append(array("q", words))
            return kept[-1].buffer_info()[0]

        joined: list[int] = []
        for pieces in regions:
            stretches = put(chain.from_iterable(chain.from_iterable(pieces)))
            joined += (stretches, put([0, *accumulate(map(len, pieces))]), len(pieces))
        # The pool is looked up where its scheduler keeps it: closed, it is not there any more.
        pool = default_scheduler().cell if regions or laid.is_split(words) else None
        self._sequence = _Sequence(
            ctypes.addressof(pool) if pool is not None else 0, start, laid.step_count, start + 8 * laid.calls_at,
            ctypes.addressof(self.places), ctypes.addressof(self._counters), 0, put(joined),
        )  # fmt: skip
        self._kept = kept, pool
        self.address = ctypes.addressof(self._sequence)
        self._argument = ctypes.c_void_p(self.address)
        self._call = _run()
        self.about = about
        LIVING[self.address] = self
        if observing.watcher is not None:
            observing.watcher.kept(self)

    def fault(self, call: int) -> int:
        """What a call has left in the first word of its record."""
        return int(self._words[self._records[call]])

    def run(self) -> int:
        """Run the steps over `places`, which they may change. 0, FAULT, or an errno value; see `failed`."""
        status: int = self._call(self._argument)
        return status

    @property
    def failed(self) -> int:
        """The step at which the last run ended early."""
        return int(self._sequence.failed)
