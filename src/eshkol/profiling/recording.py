"""A profile while it is taken: everything that watches is turned on, and off again.

Comes in: what is to be watched. Goes out: a `Profile`. There is one recording at a time in a process, since there is
one set of tables in C, one signal and one `observing.watcher`.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import CodeType, FrameType
from typing import Any

from eshkol.errors import EshkolError
from eshkol.profiling.findings import Allocation, Callback, Collection, KernelCall, Sample
from eshkol.profiling.frames import Frame, SchemeFrames, Stack, python_frames, python_stack
from eshkol.profiling.kernels import kernels_of
from eshkol.profiling.native import NO_STACK, Found, Watch
from eshkol.profiling.result import Profile
from eshkol.runtime import sequence
from eshkol.runtime.scheme import Machine
from eshkol.support import observing
from eshkol.support.observing import REGION, Span

HERTZ = 200
OURS = "eshkol.bindings.profiles."  # callables that a program has by this very profile
MOST_SPANS = 1 << 18
NO_SAMPLES = "this system has no way to sample threads: procedures and lines are not told"
_STARTING = threading.Lock()
_current: list[Recording] = []  # one or none

_Taken = tuple[tuple[CodeType, int], ...]


def current() -> Recording | None:
    """The profile that is being taken."""
    return _current[-1] if _current else None


class Recording:
    """What is taken down; it is what `observing.watcher` tells."""

    def __init__(self, hertz: int = HERTZ, *, kernels: bool = True, memory: bool = False) -> None:
        if not 1 <= hertz <= 10_000:
            raise EshkolError(f"a profile takes from 1 to 10000 samples a second, not {hertz}")
        self._hertz, self._kernels, self.memory = hertz, kernels, memory
        self.spans: list[Span] = []
        self.lost_spans = 0
        self._sequences: list[Any] = []
        self._python: list[tuple[int, int, _Taken]] = []  # when, processor time, the frames
        self._calls: list[tuple[int, int, int, _Taken]] = []  # begin, end, Scheme's thread, who called
        self._regions: dict[int, list[tuple[str, int]]] = {}
        self._leases: dict[int, tuple[int, Frame | None]] = {}
        self._lent: Counter[Frame | None] = Counter()
        self._alive = self._peak = 0
        self._at_peak: dict[Frame | None, int] = {}
        self._timeline: list[tuple[int, int]] = []
        self._lock = threading.RLock()
        self._lines: dict[tuple[int, ...], Frame | None] = {}
        self._before: Any = None
        self._spent = 0
        self._watch = Watch()

    def again(self) -> Recording:
        """Another of the same kind."""
        return Recording(self._hertz, kernels=self._kernels, memory=self.memory)

    # ---- beginning and ending ------------------------------------------------------------------------------------

    def start(self) -> Recording:
        """Watch from here on."""
        with _STARTING:
            if _current:
                raise EshkolError(
                    "a profile is being taken already", hint="end it first: profile-stop, or leave its block"
                )
            self._watch.begin()
            _current.append(self)
        try:
            self._sequences.extend(sequence.LIVING.values())
            self._listen()
            self._begin(anew=True)
            self.begin, self._processor = time.monotonic_ns(), time.process_time_ns()
            observing.watcher = self
        except BaseException:
            self._watch.stop()
            self._leave()
            raise
        return self

    def _begin(self, *, anew: bool) -> None:
        self._watch.start(1_000_000_000 // self._hertz, kernels=self._kernels, heaps=self.memory, anew=anew)
        self.notes = [] if self._watch.sampling else [NO_SAMPLES]
        for machine in tuple(Machine.living):
            self.runs(machine)
        if self._before is not None:
            self._spent = time.thread_time_ns()
            self._watch.thread(threading.get_native_id(), None)

    def _listen(self) -> None:
        """Python's own frames are taken down by its handler of the signal, which only its main thread has."""
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGPROF, self._tick)

    def _tick(self, number: int, frame: FrameType | None) -> None:
        spent = time.thread_time_ns()
        weight, self._spent = spent - self._spent, spent
        self._python.append((time.monotonic_ns(), weight, python_stack(frame)))

    def _leave(self) -> None:
        observing.watcher = None
        if self in _current:
            _current.remove(self)
        if self._before is not None:
            before, self._before = self._before, None
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGPROF, signal.SIG_IGN)  # what is on its way is dropped
                signal.signal(signal.SIGPROF, before)

    def stop(self) -> Profile:
        """What was found; nothing is watched any more."""
        self._own()
        self._collect()
        end, processor = time.monotonic_ns(), time.process_time_ns() - self._processor
        observing.watcher = None
        found = self._watch.stop()
        self._leave()
        for thread in tuple(self._regions):
            while self._regions[thread]:
                self._close(thread)
        try:
            return self._told(found, end, processor)
        finally:
            self._watch.end()
            self._sequences.clear()

    def so_far(self) -> Profile:
        """What was found until now."""
        self._own()
        found = self._watch.stop()
        try:
            return self._told(found, time.monotonic_ns(), time.process_time_ns() - self._processor)
        finally:
            self._begin(anew=False)

    def _own(self) -> None:
        if current() is not self:
            raise EshkolError("this profile is not being taken", hint="a profile ends once")

    def _collect(self) -> None:
        """So that what is alive at the end is known."""
        thread = threading.get_native_id()
        for machine in tuple(Machine.living) if self.memory else ():
            if machine.context and machine.native_thread == thread:
                machine.call("collect-garbage")
            elif machine.context and machine.elsewhere is not None and machine.native_thread:
                with suppress(EshkolError):  # where Scheme waits for this thread
                    machine.elsewhere(partial(machine.call, "collect-garbage"))

    # ---- what is told meanwhile (support/observing.py) ------------------------------------------------------------

    def took(self, kind: str, name: str, begin: int, size: int = 0) -> None:
        self._span(Span(kind, name, begin, time.monotonic_ns(), threading.get_native_id(), size))

    def _span(self, span: Span) -> None:
        if len(self.spans) < MOST_SPANS:
            self.spans.append(span)
        else:
            self.lost_spans += 1

    def kept(self, sequence: Any) -> None:
        self._sequences.append(sequence)

    def runs(self, machine: Any) -> None:
        if machine.context and machine.native_thread:
            self._watch.thread(machine.native_thread, machine.context)

    def closes(self, machine: Any) -> None:
        self._watch.forget(machine.context)

    @contextmanager
    def calls(self, thread: int) -> Iterator[None]:
        begin, stack = time.monotonic_ns(), python_stack(sys._getframe(2))
        try:
            yield
        finally:
            self._calls.append((begin, time.monotonic_ns(), thread, stack))

    def lent(self, lease: int, size: int) -> None:
        if not self.memory:
            return
        frame = self._line() if size > 0 else None
        with self._lock:
            if size > 0:
                self._leases[lease] = size, frame
            else:
                known = self._leases.pop(lease, None)
                if known is None:  # it was lent before anybody watched
                    return
                frame = known[1]
            self._lent[frame] += size
            self._alive += size
            self._timeline.append((time.monotonic_ns(), self._alive))
            if self._alive > self._peak:
                self._peak, self._at_peak = self._alive, dict(self._lent)

    def _line(self) -> Frame | None:
        """The user's line that is at work on this thread."""
        taken = python_stack(sys._getframe(2))
        thread = threading.get_native_id()
        machine = next((m for m in tuple(Machine.living) if m.native_thread == thread and m.context), None)
        if machine is None:
            return python_frames(taken[:1])[0] if taken else None
        addresses = tuple(machine.left_trace())
        if addresses not in self._lines:
            stack = SchemeFrames([machine]).stack(addresses)
            self._lines[addresses] = next((f for f in reversed(stack) if f.is_own), None)
        return self._lines[addresses]

    # ---- regions that a program names ------------------------------------------------------------------------------

    def open(self, name: str) -> None:
        """A region begins on this thread."""
        self._regions.setdefault(threading.get_native_id(), []).append((name, time.monotonic_ns()))

    def close(self, name: str) -> None:
        """The innermost region of this thread ends, which must be that of the name."""
        opened = self._regions.get(threading.get_native_id())
        if not opened:
            raise EshkolError(f"the region {name!r} was not begun")
        if opened[-1][0] != name:
            raise EshkolError(f"the region {name!r} is not the innermost: {opened[-1][0]!r} was begun in it")
        self._close(threading.get_native_id())

    def _close(self, thread: int) -> None:
        name, begin = self._regions[thread].pop()
        self._span(Span(REGION, name, begin, time.monotonic_ns(), thread))

    # ---- what came of it ---------------------------------------------------------------------------------------------

    def _told(self, found: Found, end: int, processor: int) -> Profile:
        frames = SchemeFrames(tuple(Machine.living))
        stacks = [frames.stack(found.frames(k), int(found.stacks[k]["kind"])) for k in range(len(found.stacks))]
        kernels, numbers = kernels_of(found.kernels, self._sequences, dict(enumerate(stacks)))
        calls = [
            KernelCall(numbers[key], begin, ended, thread)
            for sequence, begin, ended, step, stack, thread, _ in found.calls.tolist()
            if (key := (sequence, step, stack)) in numbers
        ]
        return Profile(
            begin=self.begin, end=end, processor=processor, samples=self._samples(found, stacks), kernels=kernels,
            calls=calls, spans=[*self.spans],
            collections=[Collection(*row[:4]) for row in found.collections.tolist()],
            allocations=[
                Allocation(stacks[k], *map(int, row))
                for k, row in enumerate(found.sites.tolist()) if row[0]
            ],
            heap_peak=found.heap_peak, tensor_peak=self._peak, tensor_timeline=[*self._timeline],
            tensors=sorted(((f, n) for f, n in self._at_peak.items() if n), key=lambda one: -one[1]),
            callbacks=[
                Callback(name, n, total)
                for f, n, total in found.callbacks if not (name := _callable(f)).startswith(OURS)
            ],
            notes=[*self.notes, *self._lost(found)],
        )  # fmt: skip

    def _samples(self, found: Found, stacks: list[Stack]) -> list[Sample]:
        around = sorted(self._calls)
        begins = [call[0] for call in around]
        outer: dict[_Taken, Stack] = {}

        def python(taken: _Taken) -> Stack:
            if taken not in outer:
                outer[taken] = python_frames(taken)
            return outer[taken]

        samples = [Sample(when, weight, python(taken), 0) for when, weight, taken in self._python]
        for when, weight, stack, thread in found.samples.tolist():
            if stack == NO_STACK:
                continue
            frames = stacks[stack]
            at = bisect_right(begins, when) - 1
            if at >= 0 and around[at][1] >= when and around[at][2] == thread:
                frames = (*python(around[at][3]), *frames)
            samples.append(Sample(when, weight, frames, thread))
        return sorted(samples, key=lambda sample: sample.time)

    def _lost(self, found: Found) -> Iterator[str]:
        said = {
            "samples_lost": "samples", "stacks_lost": "samples with stacks for which there was no room",
            "calls_lost": "calls of kernels are in the sums, but not on the timeline",
            "objects_lost": "sampled objects",
        }  # fmt: skip
        for name, count in (*found.lost.items(), ("spans_lost", self.lost_spans)):
            if count:
                yield f"{count} {said.get(name, 'spans')}{'' if name == 'calls_lost' else ' found no room'}"


def _callable(function: Any) -> str:
    """What a callable of Python is called."""
    if function is None:
        return "others"
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    module = getattr(function, "__module__", None)
    return f"{module}.{name}" if isinstance(module, str) else str(name)
