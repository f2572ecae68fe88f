"""The work-stealing thread pool of native/scheduler.c, for Python.

`default_scheduler()` is the pool everyone shares, with `ESHKOL_THREADS` threads or one for each usable CPU. The fast
way in is `parallel_for_native`, which is given the address of a C function; `parallel_for` takes a Python callable,
whose pieces run one at a time except where they release the interpreter's lock.
"""

from __future__ import annotations

import atexit
import ctypes
import errno
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from types import TracebackType
from typing import Any, Self

from eshkol.errors import EshkolError
from eshkol.runtime.library import native
from eshkol.support import flags

MAX_WORKERS = 1024  # the same number stands in scheduler.h
ROUNDS_ENDED, ROUNDS_FAILED, ROUNDS_DIVERGED = -1, -2, -3  # the same numbers stand in scheduler.h

# void (*)(void *context, int64_t begin, int64_t end)
Body = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class SchedulerError(EshkolError):
    """The thread pool cannot be made or used as asked."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a pool has done so far; exact while no loop is running."""

    tasks: int  # pieces run, except those of loops small enough to run inline
    steals: int  # stretches of a loop that one thread took from another
    sleeps: int  # times a thread found nothing to do and went to sleep


class _Statistics(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("tasks", "steals", "sleeps")]


class Phase(ctypes.Structure):
    """One of the loops of `parallel_phases_native`: the address of its function, its count and its grain."""

    _fields_ = [(name, ctypes.c_int64) for name in ("function", "count", "grain")]


class _Depth(threading.local):
    depth = 0


_Inside = _Depth()
"""How many bodies of loops this thread is in."""


class _PoolCall(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("pool", "phases", "count", "context")]


class PreparedCall:
    """Loops to be run again and again, as fast as Python calls native code: `run` takes nothing, and gives a status.

    A status other than 0 goes to `refuse`. Nothing checks the addresses. Any number of threads may run it at once.
    """

    __slots__ = ("_kept", "run")

    def __init__(self, phases: list[Phase], context: int) -> None:
        """The functions are given the context. A pool is made only if some loop is to be split."""
        array = (Phase * len(phases))(*phases)
        # The pool is looked up where its scheduler keeps it: closed, it is not there any more.
        pool = default_scheduler().cell if any(p.count > p.grain for p in phases) else None
        found = ctypes.addressof(pool) if pool is not None else 0
        call = _PoolCall(found, ctypes.addressof(array), len(phases), context)
        self._kept = array, pool, call
        # A ready-made argument: ctypes takes longer to convert one than to call.
        self.run: Callable[[], int] = partial(
            _functions().eshkol_parallel_call, ctypes.c_void_p(ctypes.addressof(call))
        )

    @staticmethod
    def refuse(status: int) -> None:
        """Raise what a status means."""
        default_scheduler().refuse(status, 0)


@cache
def _functions() -> ctypes.CDLL:
    """The library with its scheduler functions typed."""
    library, pool = native(), ctypes.c_void_p
    signatures: dict[str, tuple[Any, ...]] = {  # result, then arguments
        "eshkol_scheduler_new": (pool, ctypes.c_int),
        "eshkol_scheduler_free": (None, pool),
        "eshkol_scheduler_workers": (ctypes.c_int, pool),
        "eshkol_scheduler_busy": (ctypes.c_int, pool),
        "eshkol_scheduler_stats": (None, pool, ctypes.POINTER(_Statistics)),
        "eshkol_parallel_for": (
            ctypes.c_int, pool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64,
        ),
        "eshkol_parallel_phases": (ctypes.c_int, pool, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p),
        "eshkol_parallel_call": (ctypes.c_int, ctypes.c_void_p),
        "eshkol_parallel_rounds": (
            ctypes.c_int64, pool, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64,
            ctypes.c_void_p, ctypes.c_int64,
        ),
    }  # fmt: skip
    for name, (result, *arguments) in signatures.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


class Scheduler:
    """A pool of threads. `workers` counts the calling thread, which takes part; None means one for each usable CPU.

    Where the system gives fewer threads, `workers` afterwards says how many there are. Close it, or use it in a `with`
    statement, to end its threads at a known time; otherwise they end with the object. After a fork, the child's
    first use starts them again.
    """

    def __init__(self, workers: int | None = None) -> None:
        self._handle: int | None = None
        if workers is not None and not 1 <= workers <= MAX_WORKERS:
            raise SchedulerError(f"a scheduler has 1 to {MAX_WORKERS} workers, not {workers}")
        self._library = _functions()
        self._loop = self._library.eshkol_parallel_for  # looked up once: these are the fast paths
        self._phases = self._library.eshkol_parallel_phases
        self._handle = self._new(workers or 0)
        self._pools = {self.workers: self._handle}  # by their number of threads; only the one at the cell gets loops
        self.cell = ctypes.c_void_p(self._handle)  # where native code finds the pool

    def _new(self, workers: int) -> int:
        made: int | None = self._library.eshkol_scheduler_new(workers)
        if made is None:
            raise SchedulerError("no memory for a scheduler")
        return made

    def resize(self, workers: int) -> None:
        """Let the loops that begin from now on have so many threads; those that run end on the threads that they have.

        Native code may have read the cell and not begun its loop yet, so the pool before stays, asleep, until this is
        closed; it is taken again when its number comes back.
        """
        self._open()
        found = self._pools.get(workers)
        if found is None:
            found = self._pools[workers] = self._new(workers)
        self._handle = self.cell.value = found

    @property
    def workers(self) -> int:
        """How many threads work on a loop, the calling one included."""
        return int(self._library.eshkol_scheduler_workers(self._open()))

    def statistics(self) -> Statistics:
        raw = _Statistics()
        self._library.eshkol_scheduler_stats(self._open(), ctypes.byref(raw))
        return Statistics(raw.tasks, raw.steals, raw.sleeps)

    def parallel_for_native(self, function: int, context: int | None, count: int, grain: int = 0) -> None:
        """Call the C function at address `function` as function(context, begin, end) over 0 … count-1.

        Pieces begin at multiples of `grain` and are that long, but for the last; grain 0 lets the pool choose. Returns
        when all are done. Nothing checks the addresses, and the interpreter's lock is not held meanwhile.
        """
        status = self._loop(self._handle, function, context, count, grain)
        if status:
            self.refuse(status, count)

    def parallel_phases_native(self, phases: int, count: int, context: int) -> None:
        """Loop after loop as `parallel_for_native` does: `count` of them, `Phase` records at the address `phases`."""
        status = self._phases(self._handle, phases, count, context)
        if status:
            self.refuse(status, 0)

    def parallel_rounds_native(
        self, function: int, context: int, count: int, grains: int, barrier: int, states: int, stride: int
    ) -> int:
        """Loop after loop, from barrier to barrier: see eshkol_parallel_rounds in native/scheduler.h.

        The barrier at which the caller is wanted, or ROUNDS_ENDED, ROUNDS_FAILED or ROUNDS_DIVERGED.
        """
        run = self._library.eshkol_parallel_rounds
        came = int(run(self._handle, function, context, count, grains, barrier, states, stride))
        if came <= -1000:
            self.refuse(-1000 - came, count)
        return came

    def parallel_for(self, body: Callable[[int, int], object], count: int, grain: int = 0) -> None:
        """Call body(begin, end) over 0 … count-1, in pieces as `parallel_for_native` does.

        If bodies raise, pieces not yet begun are left out, and the exception of the earliest piece is raised here, with
        a note for each of the others.
        """
        failures: list[tuple[int, BaseException]] = []  # appending is atomic

        def guarded(_: object, begin: int, end: int) -> None:
            if failures:
                return
            _Inside.depth += 1
            try:
                body(begin, end)
            except BaseException as error:
                failures.append((begin, error))
            finally:
                _Inside.depth -= 1

        callback = Body(guarded)
        address = ctypes.cast(callback, ctypes.c_void_p).value
        assert address is not None
        self.parallel_for_native(address, None, count, grain)
        if failures:
            failures.sort(key=lambda failure: failure[0])
            (_, first), *others = failures
            for begin, error in others:
                first.add_note(f"the piece at {begin} failed too: {type(error).__name__}: {error}")
            try:
                raise first
            finally:
                failures.clear()  # the traceback holds this frame, and would hold itself through it
                del first, others

    def close(self) -> None:
        """End the threads. No loop may be running; closing twice is allowed."""
        if self._handle is None:
            return
        if any(map(self._library.eshkol_scheduler_busy, self._pools.values())):
            raise SchedulerError("the scheduler cannot be closed while a loop runs on it")
        self._handle = self.cell.value = None
        for handle in self._pools.values():
            self._library.eshkol_scheduler_free(handle)
        self._pools.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            _end(self)

    def _open(self) -> int:
        if self._handle is None:
            raise SchedulerError("the scheduler is closed")
        return self._handle

    def refuse(self, status: int, count: int) -> None:
        """Raise what the status of a loop means."""
        self._open()
        if status == errno.ECANCELED:
            raise SchedulerError(
                "this process was forked inside a parallel loop, and cannot finish the loop of its parent",
                hint="leave the child with os._exit() before the body returns, or fork outside of loops",
            )
        if count < 0:
            raise SchedulerError(f"a loop cannot have {count} indexes")
        raise SchedulerError(f"the loop could not be run: {os.strerror(status)}")


def threads_from_environment() -> int | None:
    """The number in `ESHKOL_THREADS`, or None where it is not set or empty."""
    return flags.number("ESHKOL_THREADS", 1, MAX_WORKERS)


@cache
def usable_cpus() -> int:
    """The CPUs this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux has it
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def expected_workers() -> int:
    """How many threads the shared pool has, or will have; asking does not make it."""
    return _Wanted.workers or threads_from_environment() or usable_cpus()


class _Wanted:
    workers: int | None = None  # what `set_default_workers` was told


def set_default_workers(count: int) -> None:
    """Let the shared pool have so many threads: for all that is computed from now on, what is compiled included.

    Whatever another thread computes at the moment ends on the threads that it has.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MAX_WORKERS:
        raise SchedulerError(f"a pool has 1 to {MAX_WORKERS} threads, not {count!r}")
    if _Inside.depth:
        raise SchedulerError(
            f"the number of threads cannot become {count} inside a parallel loop, which has its threads",
            hint="call ek.set_num_threads before the loop, or after it",
        )
    with _default_lock:
        if _default is not None:
            _default.resize(count)
        _Wanted.workers = count


_default: Scheduler | None = None
_default_lock = threading.Lock()


def default_scheduler() -> Scheduler:
    """The pool that is shared by all of the process, made at the first call."""
    global _default
    if (made := _default) is not None:
        return made
    with _default_lock:
        if _default is None:
            _default = Scheduler(_Wanted.workers or threads_from_environment())
            atexit.register(_end, _default)
        return _default


def _end(scheduler: Scheduler) -> None:
    """When the process ends: the threads end before it, but for those of a loop that still runs, which end with it."""
    with suppress(SchedulerError):
        scheduler.close()


def _renew_lock() -> None:
    """In a forked child: the thread that held the lock may not exist any more."""
    global _default_lock
    _default_lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)
