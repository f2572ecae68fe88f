"""Sequences on a GPU: launches over places of the device's memory, one after another on the stream.

Comes in: the steps of a plan (`atlas/sequence.py`). What does not change from run to run is made once. A run fills in
addresses and asks the driver; the host waits only where a branch must see a truth value, and at the end if lanes of
some launch may have failed. Each such launch has a status of its own, so that the first that failed is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol

import numpy as np

from eshkol.atlas.program import Program
from eshkol.atlas.sequence import (
    BufferView,
    Call,
    Copy,
    Jump,
    Next,
    Point,
    SequenceFailed,
    SequenceStep,
    Set,
    Swap,
    Together,
    Unless,
)
from eshkol.backends.cuda.launching import ReadyLaunch
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.layout import Layout
from eshkol.errors import EshkolError

STATUS_WORDS = 2  # of a launch: the fault, the phase


class Loadable(Protocol):
    """A module on the device, which stays there for as long as something holds it."""

    @property
    def layout(self) -> Layout: ...

    @property
    def can_fail(self) -> bool: ...


class Launcher(Protocol):
    """What is asked of a backend here."""

    def turn(self) -> AbstractContextManager[Any]:
        """The device is this thread's alone."""
        ...

    def ready(self, call: Call, status: int) -> tuple[ReadyLaunch, Program, Loadable]: ...
    def launch_error(self, code: int) -> EshkolError: ...
    def status_block(self, count: int) -> Any: ...
    def copy_addresses(self, target: int, source: int, size: int) -> None: ...
    def read_at(self, address: int, size: int) -> bytes: ...
    def write_at(self, address: int, data: Any) -> None: ...


class _Fallible(NamedTuple):
    """A launch whose lanes may fail: its step, its status, and what faults mean."""

    step: int
    slot: int
    program: Program
    layout: Layout


class CudaSequence:
    """Steps that are ready to be run."""

    def __init__(self, backend: Launcher, steps: Sequence[SequenceStep]) -> None:
        self._backend = backend
        self._steps: list[ReadyLaunch | SequenceStep] = list(steps)
        calls = [k for k, step in enumerate(steps) if isinstance(step, Call)]
        self._status = backend.status_block(len(calls))
        self._held: list[Loadable] = []
        self._fallible: list[_Fallible] = []
        for slot, k in enumerate(calls):
            step = steps[k]
            assert isinstance(step, Call)
            self._steps[k], program, loaded = backend.ready(step, self._status.address + 8 * STATUS_WORDS * slot)
            self._held.append(loaded)
            if loaded.can_fail:
                self._fallible.append(_Fallible(k, slot, program, loaded.layout))
        self._counters = [0] * (1 + max((step.counter for step in steps if isinstance(step, Set)), default=-1))

    def run(self, addresses: list[int]) -> None:
        with self._backend.turn():
            self._run(addresses)
            if self._fallible:
                self._look()

    def _run(self, addresses: list[int]) -> None:
        steps, counters, backend = self._steps, self._counters, self._backend
        at, end = 0, len(steps)
        while at < end:
            step = steps[at]
            at += 1
            match step:
                case ReadyLaunch():
                    code = step.run(addresses)
                    if code:
                        raise SequenceFailed(at - 1, backend.launch_error(code))
                case Together():
                    pass  # one after another will do
                case Copy():
                    target, source = (addresses[place] + offset for place, offset in (step.target, step.source))
                    backend.copy_addresses(target, source, step.size)
                case Swap():
                    addresses[step.one], addresses[step.other] = addresses[step.other], addresses[step.one]
                case Point():
                    addresses[step.target] = addresses[step.source] + step.offset
                case BufferView():
                    along = step.offset + counters[step.counter] * step.stride
                    addresses[step.target] = addresses[step.source] + along
                case Set():
                    counters[step.counter] = step.value
                case Next():
                    counters[step.counter] += step.step
                    if counters[step.counter] != step.end:
                        at = step.target
                case Unless():
                    if not backend.read_at(addresses[step.place] + step.offset, 1)[0]:
                        at = step.target
                case Jump():
                    at = step.target

    def _look(self) -> None:
        """Wait for all of it; where lanes have failed, say which launch was the first."""
        size = 8 * STATUS_WORDS * len(self._held)
        found = np.frombuffer(self._backend.read_at(self._status.address, size), np.uint64).reshape(-1, STATUS_WORDS)
        for launch in self._fallible:
            code = int(found[launch.slot, 0])
            if code != words.NO_FAULT:
                self._backend.write_at(self._status.address, no_faults(len(self._held)))
                raise SequenceFailed(launch.step, launch.layout.error(launch.program, code))


def no_faults(count: int) -> Any:
    """The statuses of so many launches before any has run."""
    return np.tile(np.array([words.NO_FAULT, 0], np.uint64), count)
