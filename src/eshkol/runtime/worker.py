"""A thread with a large stack, for code that recurs deeply: Scheme, and the expander.

Comes in: functions without parameters, called one after the other with `call`. Goes out: what they return or raise.
Ctrl-C reaches the main thread alone, so whoever waits there passes it on: `call` asks its `interrupt` for that, by
default `raise_in`, which makes the Python code that runs on the thread raise KeyboardInterrupt.

No KeyboardInterrupt comes into the middle of an import: what importlib locks would stay locked, and whoever imports
next would wait for ever. It comes a moment later instead, here (`raise_in`) as on the main thread (`on_interrupt`).
Nor does it come into a finalizer or a weak reference's callback, where Python would print it and forget it, nor into
what `unheard` says of itself: library code that runs for long without coming back to Python, and whose objects must
be given up in order; that raises it at its end. It is raised in the job that it was meant for, or in whoever waits.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

from eshkol.errors import EshkolError
from eshkol.uninterrupted import waits_in

T = TypeVar("T")

STACK_BYTES = 1 << 30  # of address space; only what is used takes memory
HARD_SECONDS = 1.0  # a second Ctrl-C within this time ends the process
WAKING = 0.1  # seconds: Python does not notice a signal that comes when it is just about to wait for a lock
MOMENT = 0.002  # seconds after which it is seen whether an import is over
FINALIZERS_DEEP = 32  # calls inside of one

_starting = threading.Lock()
_unheard: dict[int, _Unheard] = {}  # by threads
set_async_exc = ctypes.pythonapi.PyThreadState_SetAsyncExc
set_async_exc.argtypes, set_async_exc.restype = (ctypes.c_ulong, ctypes.py_object), ctypes.c_int


class _Unheard:
    """A call that KeyboardInterrupt does not come into, and whether one waits for its end."""

    pressed = False


class _Job:
    """A function on its way to the thread and back.

    Python switches threads at calls and at loops alone. So between the end of `work` and `finished` nothing can be
    raised here any more, and between `begun` and the look at `cancelled` nobody can come too late.
    """

    def __init__(self, work: Callable[[], Any]) -> None:
        self.work = work
        self.result: Any = None
        self.failure: BaseException | None = KeyboardInterrupt()  # of one that never came to its end
        self.begun = self.cancelled = self.finished = False
        self.done = threading.Lock()
        self.done.acquire()

    def run(self) -> None:
        try:
            try:
                self.begun = True
                if not self.cancelled:
                    self.result = self.work()
                    self.failure = None
            except BaseException as error:
                self.failure = error
        finally:
            self.finished = True
            self.done.release()


class Worker:
    """The thread. It ends with `close`, or with the process."""

    def __init__(self, stack_bytes: int = STACK_BYTES, name: str = "scheme") -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._last: _Job | None = None
        with _starting:
            before = threading.stack_size(stack_bytes)
            try:
                self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
                self._thread.start()
            finally:
                threading.stack_size(before)

    def _serve(self) -> None:
        while True:
            try:
                job = self._jobs.get()
                if job is None:
                    return
                job.run()
                del job  # what it holds is not held until the next one comes
            except KeyboardInterrupt:  # too late for the job that it was meant for
                pass

    def call(self, work: Callable[[], T], interrupt: Callable[[], bool] | None = None, *, hard: bool = True) -> T:
        """What `work` returns on the thread. With `hard`, Ctrl-C twice within a second ends the process.

        `interrupt` passes Ctrl-C on to the work, and says False where it has ended by then.
        It may raise Python's limit of recursion, which is that of all threads; afterwards it is as it was before, since
        the stacks of other threads are not as large.
        """
        if sys.is_finalizing():  # the thread stands still by then, and whoever waits for it waits for ever
            raise EshkolError("Python is ending: a finalizer cannot call Scheme any more")
        limit = sys.getrecursionlimit()
        job, before = _Job(work), self._last
        try:
            self._wait(job, interrupt or self.raise_in, hard)
        finally:
            sys.setrecursionlimit(limit)
            if before is not None and not before.finished:  # this was called by a finalizer, on its way there
                self._last = before
        failure, job.failure = job.failure, None
        if failure is not None:
            try:
                raise failure
            finally:
                del failure  # with its traceback and this frame it would be a cycle, and what the frames hold lives on
        result: T = job.result
        return result

    def _wait(self, job: _Job, interrupt: Callable[[], bool], hard: bool) -> None:
        last = -HARD_SECONDS
        call: object = None  # that does not hear of the last Ctrl-C until it is over
        while True:
            try:
                if self._last is not job:
                    self._last = job
                    self._jobs.put(job)
                while not job.finished:
                    job.done.acquire(timeout=WAKING)
                    if call is not _unheard.get(self.thread):
                        call = None
                    if hard and call is not None and time.monotonic() - last > HARD_SECONDS:
                        end_process()
                return
            except KeyboardInterrupt:
                if job.finished:
                    raise
            try:
                if hard and time.monotonic() - last < HARD_SECONDS:
                    end_process()
                last = time.monotonic()
                heard = interrupt()
                call = _unheard.get(self.thread)
            except KeyboardInterrupt:  # one more, while the one before is passed on
                if hard:
                    end_process()
            else:
                if not heard:
                    raise KeyboardInterrupt

    def raise_in(self, in_scheme: Callable[[], bool] | None = None) -> bool:
        """Raise KeyboardInterrupt in the Python code of the thread; False where the job has ended.

        `in_scheme` interrupts the thread, if it runs other code than Python's, and says whether it does.
        """
        while True:
            job, must_wait = self._last, not may_raise(self.thread)
            if job is None or job.finished:
                return False
            if not job.begun:
                job.cancelled = True
                return True
            if in_scheme is not None and in_scheme():
                return True
            if (call := _unheard.get(self.thread)) is not None:
                call.pressed = True
                return True
            if not must_wait:
                set_async_exc(self.thread, KeyboardInterrupt)
                return True
            time.sleep(MOMENT)

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


@contextmanager
def unheard() -> Iterator[None]:
    """A call that KeyboardInterrupt cannot end: where Ctrl-C may end the process, it does so after a second of it."""
    thread, call = threading.get_ident(), _Unheard()
    _unheard[thread] = call
    try:
        yield
    finally:
        _unheard.pop(thread, None)
        if call.pressed:
            raise KeyboardInterrupt


def _in_import(frame: FrameType | None) -> bool:
    return frame is not None and frame.f_code.co_filename.startswith("<frozen importlib")


def may_raise(thread: int) -> bool:
    """Whether something may be raised where a thread is: not in an import, nor where it, or more, would be lost."""
    frame = sys._current_frames().get(thread)
    if _in_import(frame) or waits_in(thread):
        return False
    for _ in range(FINALIZERS_DEEP):
        if frame is None:
            break
        if frame.f_code.co_name == "__del__" or frame.f_globals is weakref.__dict__:
            return False
        frame = frame.f_back
    return True


def on_interrupt(number: int, frame: FrameType | None) -> None:
    """What the main thread does about Ctrl-C: KeyboardInterrupt, as Python has it."""
    if _in_import(frame):
        signal.signal(signal.SIGALRM, on_interrupt)
        signal.setitimer(signal.ITIMER_REAL, MOMENT)
    else:
        signal.default_int_handler(signal.SIGINT, frame)


def end_process() -> None:
    """As if nobody had ever cared for Ctrl-C."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGINT)


def on_large_stack(work: Callable[[], T], interrupt: Callable[[], bool] | None = None, **options: Any) -> T:
    """What `work` returns, run on a thread of its own."""
    worker = Worker(**options)
    try:
        return worker.call(work, interrupt)
    finally:
        worker.close()
