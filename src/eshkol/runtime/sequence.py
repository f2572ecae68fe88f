"""Sequences of native calls, for Python: the records of native/sequence.h.

`NativeSequence` holds steps and calls as data; `run` fills in the addresses of the places and makes one call. One
object is for one thread at a time: records are written while it runs.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from typing import Any

from eshkol.runtime.library import native
from eshkol.runtime.scheduler import Phase, default_scheduler

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


class _Binding(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("word", "place", "offset")]


class _Stretch(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("call", "begin", "end")]


class _Region(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("stretches", "starts", "piece_count")]


class _Step(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("kind", "a", "b", "c", "d", "e")]


class _SequenceCall(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("phases", "phase_count", "record", "bindings", "binding_count")]


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
        self.records: list[Any] = []
        kept: list[Any] = []
        structures = (_SequenceCall * max(len(calls), 1))()
        split = bool(regions)
        for structure, call in zip(structures, calls, strict=False):
            record = (ctypes.c_uint64 * (len(call.record) // 8)).from_buffer_copy(call.record)
            for word, other in call.inner:
                record[word] = ctypes.addressof(record) + 8 * other
            phases = (Phase * max(len(call.phases), 1))(*(Phase(*p) for p in call.phases))
            bindings = (_Binding * max(len(call.bindings), 1))(*(_Binding(*b) for b in call.bindings))
            split = split or any(count > grain for _, count, grain in call.phases)
            structure.phases, structure.phase_count = ctypes.addressof(phases), len(call.phases)
            structure.bindings, structure.binding_count = ctypes.addressof(bindings), len(call.bindings)
            structure.record = ctypes.addressof(record)
            self.records.append(record)
            kept += [phases, bindings]
        joined = (_Region * max(len(regions), 1))()
        for region, pieces in zip(joined, regions, strict=False):
            flat = [_Stretch(*s) for piece in pieces for s in piece]
            stretches = (_Stretch * max(len(flat), 1))(*flat)
            starts = (ctypes.c_int64 * (len(pieces) + 1))(0, *accumulate(map(len, pieces)))
            region.stretches, region.starts = ctypes.addressof(stretches), ctypes.addressof(starts)
            region.piece_count = len(pieces)
            kept += [stretches, starts]
        array = (_Step * max(len(steps), 1))(*(_Step(*s) for s in steps))
        # The pool is looked up where its scheduler keeps it: closed, it is not there any more.
        pool = default_scheduler().cell if split else None
        self._sequence = _Sequence(
            ctypes.addressof(pool) if pool is not None else 0, ctypes.addressof(array), len(steps),
            ctypes.addressof(structures), ctypes.addressof(self.places), ctypes.addressof(self._counters), 0,
            ctypes.addressof(joined),
        )  # fmt: skip
        self._kept = kept, structures, array, pool, joined
        self._argument = ctypes.c_void_p(ctypes.addressof(self._sequence))
        self._call = _run()

    def run(self) -> int:
        """Run the steps over `places`, which they may change. 0, FAULT, or an errno value; see `failed`."""
        status: int = self._call(self._argument)
        return status

    @property
    def failed(self) -> int:
        """The step at which the last run ended early."""
        return int(self._sequence.failed)
