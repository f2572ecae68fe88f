"""Launches on a device with a queue of its own, for Python: the records of native/launches.h.

`QueuedDevice` says which functions of a driver are called; `NativeLaunches` holds steps and launches as data. `run`
fills in the addresses of the places and makes one call. One object is for one thread at a time.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from eshkol.runtime.library import native
from eshkol.runtime.sequence import CALL, COPY, JUMP, NEXT, SET, UNLESS, Binding, Step, StepWords

# What a device is asked for; the same order stands in launches.h.
ASKED = ("enter", "launch", "move", "fetch", "wait", "map", "map_windows", "record", "await")
GRAPHS = (
    "create", "add_kernel", "add_copy", "instantiate", "set_kernel", "set_copy", "launch", "destroy_ready", "destroy",
)  # what a driver with graphs has; the same order stands in graphs.h  # fmt: skip
LANES_FAILED = -1
STATUS_WORDS = 2  # of a launch: the fault, the phase
MOST_EARLY = 16  # launches and copies that are asked for by themselves, so that the host need not wait for all others
MAP_AXES, MAP_WORDS, MAP_SPACE = 5, 16, 2  # the most that a tensor map has; the same numbers stand in launches.h


@dataclass(frozen=True)
class NativeMap:
    """A tensor map in a kernel's record: its first word, the word with its buffer's address, and what it is made of."""

    word: int
    buffer: int
    offset: int  # bytes from that address on
    kind: int  # the driver's number of a type
    exchanged: bool  # whether chunks of 16 bytes of rows of 128 are exchanged in shared memory
    extents: Sequence[int]
    strides: Sequence[int]  # bytes, of all axes but the first
    box: Sequence[int]
    windows: tuple[Sequence[int], Sequence[int], Sequence[int]] | None = None  # the corners that they begin at; steps


@dataclass(frozen=True)
class NativeLaunch:
    """A kernel with its record, and which words of that are addresses: (word, place, offset)."""

    kernel: int
    blocks: int
    lanes: int  # of a block
    shared: int  # bytes that these have together
    record: bytes
    bindings: Sequence[tuple[int, int, int]]
    status: int  # the address where lanes say what went wrong
    can_fail: bool
    maps: Sequence[NativeMap] = ()


class _Device(ctypes.Structure):
    _fields_ = [*((name, ctypes.c_void_p) for name in (*ASKED, "context", "queue")), ("queues", ctypes.c_int64)]


class _Launch(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "kernel", "blocks", "lanes", "shared", "status", "record", "bindings", "binding_count", "can_fail", "bound",
            "maps", "map_count",
        )
    ]  # fmt: skip


class _Map(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_int64) for name in ("word", "buffer", "offset", "kind", "exchanged", "axes")),
        *((name, ctypes.c_uint64 * count) for name, count in (
            ("extents", MAP_AXES), ("strides", MAP_AXES - 1), ("box", MAP_AXES),
        )),
        ("windows", ctypes.c_int64),
        *((name, ctypes.c_int64 * MAP_SPACE) for name in ("lower", "upper", "steps")),
        ("address", ctypes.c_uint64),
    ]  # fmt: skip

    @classmethod
    def of(cls, one: NativeMap) -> _Map:
        found = cls(one.word, one.buffer, one.offset, one.kind, one.exchanged, len(one.extents))
        for name in ("extents", "strides", "box"):
            for k, value in enumerate(getattr(one, name)):
                getattr(found, name)[k] = value
        if one.windows is not None:
            found.windows = 1
            found.lower[:], found.upper[:], found.steps[:] = one.windows
        return found


class _Graphs(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in GRAPHS]


class _Launches(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in (
            "device", "steps", "step_count", "launches", "launch_count", "places", "kept", "last", "place_count",
            "counters", "statuses", "seen", "failed", "asked", "graphs", "graph", "other", "runs", "tasks",
            "early", "event",
        )
    ]  # fmt: skip


@cache
def _functions() -> tuple[Any, Any]:
    run, end = native().eshkol_launches_run, native().eshkol_launches_end
    run.restype, end.restype = ctypes.c_int, None
    run.argtypes = end.argtypes = [ctypes.c_void_p]
    return run, end


def early_steps(steps: Sequence[StepWords], launches: Sequence[NativeLaunch]) -> int:
    """How many steps there are up to the last launch whose lanes can fail, where these are few and done but once; or 0.

    What follows is asked for at once, and the host waits for these alone.
    """
    fallible = [k for k, words in enumerate(steps) if words[0] == CALL and launches[words[1]].can_fail]
    end = fallible[-1] + 1 if fallible else 0
    ahead = all(
        words[0] != UNLESS and not (words[0] == NEXT and words[4] < end) and not (words[0] == JUMP and words[1] <= k)
        for k, words in enumerate(steps)
    )
    # Nor do they begin a loop that follows: what follows may be gone through again from its first step.
    inner = not any(words[0] == SET or (words[0] == JUMP and words[1] > end) for words in steps[:end])
    tasks = sum(words[0] in (CALL, COPY) for words in steps[:end])
    return end if ahead and inner and tasks <= MOST_EARLY else 0


class QueuedDevice:
    """A device as native code asks it: addresses of its driver's functions by the names in `ASKED` and `GRAPHS`.

    Without the latter, steps are launched one by one however often they are run.
    """

    def __init__(
        self, functions: Mapping[str, int], context: int, queue: int, graphs: Mapping[str, int] | None = None
    ) -> None:
        self._device = _Device(*(functions.get(name, 0) for name in ASKED), context, queue, 0)
        self._graphs = None if graphs is None else _Graphs(*(graphs[name] for name in GRAPHS))
        self.address = ctypes.addressof(self._device)
        self.graphs = 0 if self._graphs is None else ctypes.addressof(self._graphs)

    def use(self, queue: int) -> None:
        """Let what is asked for from now on go to this queue, beside others."""
        self._device.queue, self._device.queues = queue, 1


class NativeLaunches:
    """Steps ready to be run. The statuses of launches lie one after another from `statuses` on, if lanes can fail.

    `seen` is memory of the host, of two words for each launch and at least one. Steps that look at nothing of the
    device's may be run as a graph. With an event of the driver's the host waits for the statuses of early launches
    alone where no others can fail (`early_steps`).
    """

    def __init__(
        self, device: QueuedDevice, steps: Sequence[StepWords], launches: Sequence[NativeLaunch], places: int,
        counters: int, statuses: int, seen: int, event: int = 0,
    ) -> None:  # fmt: skip
        self.places, kept_places, last = ((ctypes.c_uint64 * max(places, 1))() for _ in range(3))
        held = (ctypes.c_int64 * max(counters, 1))()
        kept: list[Any] = [device, held, kept_places, last]
        structures = (_Launch * max(len(launches), 1))()
        for structure, one in zip(structures, launches, strict=False):
            record = (ctypes.c_uint64 * max(len(one.record) // 8, 1)).from_buffer_copy(one.record)
            bindings = (Binding * max(len(one.bindings), 1))(*(Binding(*b) for b in one.bindings))
            structure.kernel, structure.blocks, structure.lanes = one.kernel, one.blocks, one.lanes
            structure.shared, structure.status, structure.can_fail = one.shared, one.status, one.can_fail
            structure.record, structure.bindings = ctypes.addressof(record), ctypes.addressof(bindings)
            bound = (ctypes.c_uint64 * max(len(one.bindings), 1))()
            structure.binding_count, structure.bound = len(one.bindings), ctypes.addressof(bound)
            maps = (_Map * max(len(one.maps), 1))(*map(_Map.of, one.maps))
            structure.maps, structure.map_count = ctypes.addressof(maps), len(one.maps)
            kept += [record, bindings, bound, maps]
        array = (Step * max(len(steps), 1))(*(Step(*s) for s in steps))
        self._launches = _Launches(
            device.address, ctypes.addressof(array), len(steps), ctypes.addressof(structures), len(launches),
            ctypes.addressof(self.places), ctypes.addressof(kept_places), ctypes.addressof(last), places,
            ctypes.addressof(held), statuses, seen, 0, 0,
            0 if any(words[0] == UNLESS for words in steps) else device.graphs, 0, 0, 0, 0,
            early_steps(steps, launches) if event and statuses else 0, event,
        )  # fmt: skip
        self._kept = kept, structures, array
        self.fill = struct.Struct(f"={places}Q").pack_into
        self.address = ctypes.addressof(self._launches)
        (self.call, self._end), self.argument = _functions(), ctypes.c_void_p(self.address)

    def __del__(self, ending: Callable[[], bool] = sys.is_finalizing) -> None:
        if not ending() and self.is_graph:  # when Python ends, the driver takes everything back
            self._end(self.argument)

    @property
    def is_graph(self) -> bool:
        """Whether the driver has a graph of them."""
        return bool(self._launches.graph)

    def run(self, addresses: Sequence[int]) -> int:
        """Run the steps over places at these addresses. 0, LANES_FAILED, or the driver's number; see `failed`.

        Whoever runs them often does these two things by itself.
        """
        self.fill(self.places, 0, *addresses)
        status: int = self.call(self.argument)
        return status

    @property
    def failed(self) -> int:
        """The step at which the last run ended early."""
        return int(self._launches.failed)

    @property
    def asked(self) -> str:
        """What the device was asked for when it said that something is wrong."""
        return ASKED[self._launches.asked]
