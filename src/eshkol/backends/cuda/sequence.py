"""Sequences on a GPU: launches over places of the device's memory, one after another on the stream.

Comes in: the steps of a plan (`atlas/sequence.py`). What does not change from run to run is made once; a run is one
call of native code (`runtime/native/launches.h`), which fills in addresses and asks the driver. The host waits only
where a branch must see a truth value, and if lanes of some launch may have failed: until the last such launch is done,
if that is one of the first, as where indices are checked, else at the end. Each such launch has a status of its own, so
that the first that failed is known.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from eshkol.atlas.program import Program
from eshkol.atlas.sequence import BufferView, Call, Point, SequenceFailed, SequenceStep, Set, Swap, Together, Unless
from eshkol.backends.cuda.streams import Made, Streams
from eshkol.backends.cuda.together import Joint
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.steps import step_words
from eshkol.errors import EshkolError
from eshkol.runtime import sequence as native
from eshkol.runtime.launches import LANES_FAILED, STATUS_WORDS, NativeLaunch, NativeLaunches, QueuedDevice


class Loadable(Protocol):
    """A module on the device, which stays there for as long as something holds it."""

    @property
    def layout(self) -> Layout: ...

    @property
    def can_fail(self) -> bool: ...


class Launcher(Protocol):
    """What is asked of a backend here."""

    lock: threading.RLock
    queue: QueuedDevice
    streams: Streams

    def ready(self, call: Call, status: int) -> tuple[NativeLaunch, Program, Loadable]: ...
    def together(self, calls: Sequence[Call]) -> Sequence[Joint]: ...
    def refusal(self, asked: str, code: int) -> EshkolError: ...
    def status_block(self, count: int) -> Any: ...
    def pinned(self, shape: tuple[int, ...], dtype: Any) -> Any: ...
    def event(self) -> Any: ...
    def write_at(self, address: int, data: Any) -> None: ...


class _Launched(NamedTuple):
    """A launch of a sequence: the program that faults are of, and its module, which must stay loaded."""

    program: Program
    loaded: Loadable


class CudaSequence:
    """Steps that are ready to be run."""

    def __init__(self, backend: Launcher, steps: Sequence[SequenceStep], places: int) -> None:
        self._backend, self.lock, self._places = backend, backend.lock, places
        count = sum(isinstance(step, Call) for step in steps)
        self._status = backend.status_block(count)
        self._last: Made | None = None  # where the last run stands among what streams were asked for
        self._launched: list[_Launched] = []
        launches: list[NativeLaunch] = []
        self._words: list[native.StepWords] = []
        joined: dict[int, Joint | None] = {}  # steps that are launched with others, and the first of each with what
        for k, step in enumerate(steps):
            match step:
                case Call() if joined.get(k, step) is None:
                    self._words.append((native.JUMP, k + 1, 0, 0, 0, 0))
                case Call():
                    status = self._status.address + 8 * STATUS_WORDS * len(launches)
                    joint = joined.get(k)
                    if joint is None:
                        launch, program, loaded = backend.ready(step, status)
                    else:
                        launch, program, loaded = joint.launch(status), step.program, joint.loaded
                    self._words.append((native.CALL, len(launches), 0, 0, 0, 0))
                    self._launched.append(_Launched(program, loaded))
                    launches.append(launch)
                case Together(several):
                    self._words.append((native.JUMP, k + 1, 0, 0, 0, 0))  # the others one after another will do
                    calls = [step for step in steps[k + 1 : k + 1 + several] if isinstance(step, Call)]
                    for joint in backend.together(calls):
                        joined |= {k + 1 + number: None for number in joint.numbers}
                        joined[k + 1 + min(joint.numbers)] = joint
                case _:
                    self._words.append(step_words(step))
        counters = 1 + max((step.counter for step in steps if isinstance(step, Set)), default=-1)
        self.fallible = fallible = any(launch.can_fail for launch in launches)
        looks = fallible or any(isinstance(step, Unless) for step in steps)
        # Where the host reads what the device has; one that never looks needs none.
        self._seen = backend.pinned((STATUS_WORDS * count + 1,), np.uint64) if looks else np.empty(1, np.uint64)
        self._known = backend.event() if fallible else None  # when statuses are
        self._native = NativeLaunches(
            backend.queue, self._words, launches, places, counters, self._status.address if fallible else 0,
            self._seen.ctypes.data, self._known.handle if self._known is not None else 0,
        )  # fmt: skip
        self._moves = any(isinstance(step, Swap | Point | BufferView) for step in steps)

    def run(self, addresses: list[int]) -> None:
        ready = self._native
        with self.lock:
            ready.fill(ready.places, 0, *addresses)  # as `ready.run` does it
            status = ready.call(ready.argument)
            if status:
                raise self.failure(status)
            if self._moves:
                addresses[:] = ready.places[: self._places]

    def ordered(self, inputs: int, inherits: bool, values: Sequence[Any], after: bool | None) -> None:
        """See to what must be waited for, of several streams, before a run with values, of which so many are read."""
        streams = self._backend.streams
        if not after:
            streams.before(values[:inputs], self._last, self._status.address)
        else:
            self._last = streams.after(values[:inputs], values if inherits else values[inputs:])

    @property
    def launches(self) -> int:
        """Where native code finds what it is to run."""
        return self._native.address

    def failure(self, status: int) -> SequenceFailed:
        """What is wrong where a run gave this number."""
        step = self._native.failed
        if status != LANES_FAILED:
            return SequenceFailed(step, self._backend.refusal(self._native.asked, status))
        number = self._words[step][1]
        program, loaded = self._launched[number]
        code = int(self._seen[STATUS_WORDS * number])
        self._backend.write_at(self._status.address, no_faults(len(self._launched)))
        return SequenceFailed(step, loaded.layout.error(program, code))


def no_faults(count: int) -> Any:
    """The statuses of so many launches before any has run."""
    return np.tile(np.array([words.NO_FAULT, 0], np.uint64), count)
