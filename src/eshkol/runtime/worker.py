"""A thread with a large stack, for code that recurs deeply: Scheme, and the expander.

Comes in: functions without parameters, called one after the other with `call`. Goes out: what they return or raise.
Ctrl-C reaches the main thread alone. While that waits here, it asks the thread to end (support/interrupts.py), which
looks at points where everything is whole, and raises KeyboardInterrupt there; what comes when the work has ended by
then is raised in whoever waits.

Only Python code that Scheme called, the user's own, never looks. There KeyboardInterrupt is raised as Python does it
on the main thread, between two instructions; but not in the middle of an import, nor where Python would print and
forget it (finalizers, callbacks of weak references and of the collector), nor in an `uninterrupted` moment: then it
comes a moment later. A call that does not come to its next instruction, as `time.sleep`, is left alone on the thread:
whoever waits for it gets KeyboardInterrupt, and what is asked of the thread next begins when the call has ended.
"""

from __future__ import annotations

import gc
import os
import queue
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from eshkol.errors import EshkolError
from eshkol.runtime.scheme import Machine, SchemeExit, SchemeRaised
from eshkol.support import observing
from eshkol.support.interrupts import MOMENT, ask, check, deferred, in_import, is_asked, scheme_on, take, uninterrupted

T = TypeVar("T")

STACK_BYTES = 1 << 30  # of address space; only what is used takes memory
HARD_SECONDS = 1.0  # a second Ctrl-C within this time ends the process
WAKING = 0.1  # seconds: Python does not notice a signal that comes when it is just about to wait for a lock
FINALIZERS_DEEP = 32  # calls inside of one
LOOKING = 0.01  # seconds between two looks at what other threads of a program want, while nothing else is to be done
PATIENCE = 0.3  # seconds after which a call of Python that does not hear KeyboardInterrupt is not waited for

_starting = threading.Lock()


class _Job:
    """A function on its way to the thread and back."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.failure: BaseException | None = None
        self.errand: _Job | None = None  # what it wants done by whoever waits for it
        self.finished = self.overtaken = False  # the latter: whether Ctrl-C came too late for it
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            check()
            self.result = self.work()
        except BaseException as error:
            self.failure = error
        finally:
            self.overtaken = take(threading.get_ident())
            self.finished = True
            self.done.release()

    def answer(self) -> Any:
        """What it returned or raised."""
        failure, self.failure = self.failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # with its traceback and this frame it would be a cycle, and what the frames hold lives on
        return self.result


class Waiting(deferred):
    """Within it a call waits for a worker, and Ctrl-C is for what that does.

    With `hard`, Ctrl-C twice within a second ends the process, as does one that is not heeded for a second: LLVM may
    take long for a large program, and does not look.
    """

    _last = -HARD_SECONDS  # when it was pressed
    _worker: Worker | None = None
    _job: _Job | None = None
    _raised: tuple[float, Any] | None = (
        None  # when KeyboardInterrupt was last raised in Python code, and where that was
    )

    def __init__(self, *, hard: bool = True) -> None:
        self._hard = hard

    def begin(self, worker: Worker, job: _Job | None) -> None:
        """What is waited for from now on."""
        self._worker, self._job = worker, job

    def heard(self) -> None:
        now = time.monotonic()
        if self._hard and now - self._last < HARD_SECONDS:
            end_process()
        self._last = now
        if self._worker is None or self._job is None or self._job.finished:
            super().heard()
        else:
            ask(self._worker.thread)
            self._raise()

    def _raise(self) -> bool:
        """Raise KeyboardInterrupt in Python code that Scheme called, if it is at work and may be left there."""
        worker = self._worker
        assert worker is not None
        place = worker.place
        if not worker.raise_in_python():
            return False
        self._raised = time.monotonic(), place
        return True

    def _is_deaf(self) -> bool:
        """Whether such code has not come to its next instruction since, and need not be waited for."""
        worker, raised = self._worker, self._raised
        assert worker is not None
        if raised is None or time.monotonic() - raised[0] < PATIENCE or worker.machine is None:
            return False
        return worker.machine.is_python and worker.place == raised[1] and may_raise(worker.thread)

    def pause(self) -> float:
        """Seconds until the next look: long where the thread looks itself, as each takes Python's lock from it."""
        worker = self._worker
        if worker is None or not is_asked(worker.thread):
            return WAKING
        return MOMENT if worker.machine is not None and worker.machine.is_python else WAKING

    def look(self) -> None:
        """While the worker works: raise what it does not look for itself."""
        worker = self._worker
        assert worker is not None
        if self._is_deaf():
            self.failure, self._raised = KeyboardInterrupt(), None
            return
        if not is_asked(worker.thread) or self._raise():
            return
        if (
            self._hard
            and time.monotonic() - self._last > HARD_SECONDS
            and (worker.machine is None or worker.machine.is_host)
        ):
            end_process()


class Worker:
    """The thread. It ends with `close`, or with the process."""

    def __init__(self, stack_bytes: int = STACK_BYTES, name: str = "scheme") -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._last: _Job | None = None  # the innermost, where one waits for an errand
        with _starting:
            before = threading.stack_size(stack_bytes)
            try:
                self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._thread.start()
            finally:
                threading.stack_size(before)

    def _serve(self, until: _Job | None = None) -> None:
        while (job := self._next_job()) is not until and job is not None:
            job.run()
            del job  # what it holds is not held until the next one comes

    def _next_job(self) -> _Job | None:
        """What is asked for next. Meanwhile other threads of a program may collect, and ask for what is done here."""
        machine = self.machine
        if machine is None or not machine.rest():
            return self._jobs.get()
        try:
            while True:
                try:
                    return self._jobs.get(timeout=LOOKING)
                except queue.Empty:
                    if machine.is_asked:
                        self._attend(machine)
        finally:
            machine.wake()

    def _attend(self, machine: Machine) -> None:
        """Do what other threads ask for; what goes wrong is theirs."""
        machine.wake()
        try:
            machine.attend()
        except (SchemeRaised, SchemeExit, KeyboardInterrupt):  # whoever asked hears of it, or nobody is there to hear
            pass
        finally:
            machine.rest()

    def outside(self, work: Callable[[], T]) -> T:
        """On the thread: what `work` returns, done by whoever waits for what the thread does, on theirs.

        Whatever that calls here is done meanwhile, inside of what waits: a prompt within a program stands on this.
        """
        job = self._last
        assert job is not None
        errand = _Job(work)
        job.done.release()
        job.errand = errand  # in this order: whoever sees it can take what was released
        self._serve(until=errand)
        result: T = errand.answer()
        if errand.overtaken:
            raise KeyboardInterrupt
        return result

    def call(self, work: Callable[[], T], waiting: Waiting | None = None) -> T:
        """What `work` returns on the thread; `waiting`, if someone has begun to wait before.

        It may raise Python's limit of recursion, which is that of all threads; afterwards it is as it was before, since
        the stacks of other threads are not as large.
        """
        if sys.is_finalizing():  # the thread stands still by then, and whoever waits for it waits for ever
            raise EshkolError("Python is ending: a finalizer cannot call Scheme any more")
        if waiting is None:
            with Waiting() as waiting:
                return self.call(work, waiting)
        limit, outer = sys.getrecursionlimit(), self._last
        job = self._last = _Job(work)
        waiting.begin(self, job)
        try:
            if observing.watcher is None:
                self._jobs.put(job)
                self._wait(job, waiting)
            else:
                with observing.watcher.calls(self._thread.native_id or 0):
                    self._jobs.put(job)
                    self._wait(job, waiting)
        finally:
            waiting.begin(self, None)
            sys.setrecursionlimit(limit)
            if outer is not None and outer.errand is not None:  # which this was called from
                self._last = outer
        if take(self.thread) or job.overtaken:
            job.failure = KeyboardInterrupt()
        result: T = job.answer()
        return result

    def _wait(self, job: _Job, waiting: Waiting) -> None:
        while True:
            job.done.acquire(timeout=waiting.pause())
            if job.finished:
                return
            if job.errand is not None:
                job.done.acquire(blocking=False)
                errand = job.errand
                errand.run()
                job.errand = None
                self._jobs.put(errand)
                continue
            waiting.look()
            if waiting.failure is not None:  # a handler of the user's does not want to wait any more
                failure, waiting.failure = waiting.failure, None
                raise failure

    def raise_in_python(self) -> bool:
        """Where the thread is asked to end, and Python code runs that Scheme called: raise KeyboardInterrupt in it."""
        machine = self.machine
        return (
            machine is not None
            and machine.is_python
            and may_raise(self.thread)
            and machine.raise_in_python(self.thread)
        )

    @property
    def place(self) -> Any:
        """Where the thread's Python code is: another, if it has gone on meanwhile."""
        frame = sys._current_frames().get(self.thread)
        return None if frame is None else (id(frame), frame.f_lasti)

    @property
    def machine(self) -> Machine | None:
        """What runs Scheme code on the thread, if anything does."""
        scheme = scheme_on(self.thread)
        return scheme if isinstance(scheme, Machine) else None

    @property
    def thread(self) -> int:
        """What Python calls the thread by."""
        return self._thread.ident or 0

    @property
    def is_busy(self) -> bool:
        """Whether it still does what it was last asked for."""
        return self._last is not None and not self._last.finished

    def close(self) -> None:
        self._jobs.put(None)


def may_raise(thread: int) -> bool:
    """Whether something may be raised where a thread is: not in an import, nor where it, or more, would be lost."""
    frame = sys._current_frames().get(thread)
    if in_import(frame) or uninterrupted.holds(thread):
        return False
    collector = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    for _ in range(FINALIZERS_DEEP):
        if frame is None:
            break
        code = frame.f_code
        if code.co_name == "__del__" or frame.f_globals is weakref.__dict__ or code in collector:
            return False
        frame = frame.f_back
    return True


def end_process() -> None:
    """As if no one had ever cared for Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def on_large_stack(work: Callable[[], T], **options: Any) -> T:
    """What `work` returns, run on a thread of its own."""
    with Waiting() as waiting:
        worker = Worker(**options)
        try:
            return worker.call(work, waiting)
        finally:
            worker.close()
