"""Sequences of native calls, for Python: the records of native/sequence.h.

`NativeSequence` holds steps and calls as data; `run` fills in the addresses of the places and makes one call. One
object is for one thread at a time: records are written while it runs.
"""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain
from typing import Any

from eshkol.runtime.library import native
from eshkol.runtime.scheduler import default_scheduler

CALL, COPY, SWAP, POINT, VIEW, SET, NEXT, UNLESS, JUMP, TOGETHER = range(10)  # the same order stands in sequence.h
FAULT = -1  # the status of a call that wrote its record's first word
NO_FAULT = (1 << 64) - 1

StepWords = tuple[int, int, int, int, int, int]  # kind, a, b, c, d, e
Stretch = tuple[int, int, int]  # a call, and from where to where its one loop goes


@dataclass(frozen=True)
class NativeCall:
    """Loops over a record, and which words of it are addresses: (word, place, offset)."""

    phases: Sequence[tuple[int, int, int]]  # address of the function, count, grain
    record: bytes
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


class NativeSequence:
    """Steps ready to be run. A region is the pieces of one loop, each a list of stretches."""

    def __init__(
        self, steps: Sequence[StepWords], calls: Sequence[NativeCall], places: int, counters: int,
        regions: Sequence[Sequence[Sequence[Stretch]]] = (),
    ) -> None:  # fmt: skip
        self.places: Any = (ctypes.c_uint64 * max(places, 1))()
        self._counters = (ctypes.c_int64 * max(counters, 1))()
        self.records: list[array[int]] = []
        kept: list[array[int]] = []
        split = bool(regions)

        def laid(words: Iterable[int]) -> int:
            """Words in memory of their own, by their address: as structures of 64-bit integers lie."""
            kept.append(array("q", words))
            return kept[-1].buffer_info()[0]

        structures: list[int] = []
        for call in calls:
            record = array("Q", call.record)
            start = record.buffer_info()[0]
            for word, other in call.inner:
                record[word] = start + 8 * other
            split = split or any(count > grain for _, count, grain in call.phases)
            phases, bindings = laid(chain.from_iterable(call.phases)), laid(chain.from_iterable(call.bindings))
            structures += (phases, len(call.phases), start, bindings, len(call.bindings))
            self.records.append(record)
        joined: list[int] = []
        for pieces in regions:
            stretches = laid(chain.from_iterable(chain.from_iterable(pieces)))
            joined += (stretches, laid([0, *accumulate(map(len, pieces))]), len(pieces))
        # The pool is looked up where its scheduler keeps it: closed, it is not there any more.
        pool = default_scheduler().cell if split else None
        self._sequence = _Sequence(
            ctypes.addressof(pool) if pool is not None else 0, laid(chain.from_iterable(steps)), len(steps),
            laid(structures), ctypes.addressof(self.places), ctypes.addressof(self._counters), 0, laid(joined),
        )  # fmt: skip
        self._kept = kept, pool
        self.address = ctypes.addressof(self._sequence)
        self._argument = ctypes.c_void_p(self.address)
        self._call = _run()

    def run(self) -> int:
        """Run the steps over `places`, which they may change. 0, FAULT, or an errno value; see `failed`."""
        status: int = self._call(self._argument)
        return status

    @property
    def failed(self) -> int:
        """The step at which the last run ended early."""
        return int(self._sequence.failed)
