"""Whose turn it is: threads of Python that call Scheme do so one after the other, on Scheme's own thread.

Comes in: callers, from any thread. Goes out: one of them at a time has the turn; the others wait. A caller for whom
Scheme itself waits (Scheme called Python code, which waits for this thread) would wait for ever: where that can be
seen, it is an error that says so. What belongs to the caller's thread alone goes along to Scheme's: its context
variables, and what `functions.carry` knows of.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from types import FrameType
from typing import Any, TypeVar

from eshkol.errors import EshkolError
from eshkol.runtime import functions
from eshkol.support.interrupts import check

T = TypeVar("T")

LOOKED_AT = 12  # frames, from the innermost
WAKING = 0.1  # seconds between two looks at what Scheme's thread does
_MISSING = object()


class Turns:
    """The turns of callers of one Scheme thread."""

    def __init__(self, thread: int) -> None:
        self._thread = thread
        self._lock = threading.RLock()  # a finalizer may call Scheme on a thread that waits for Scheme

    @contextmanager
    def taken(self) -> Iterator[None]:
        """Wait until it is this thread's turn."""
        while not self._lock.acquire(timeout=WAKING):
            check()
            if (place := _awaited_at(self._thread)) is not None:
                raise EshkolError(
                    f"Scheme waits for this thread, in Python code at {place}, so this thread cannot wait for Scheme",
                    hint="call Scheme from the thread that Scheme called, or let this one finish without it",
                )
        try:
            yield
        finally:
            self._lock.release()


def carried(work: Callable[[], T]) -> Callable[[], T]:
    """The work as another thread does it for this one."""
    context, resumed = copy_context(), functions.carry(work)

    def run() -> T:
        result: T = context.run(resumed)
        return result

    run.__dict__["context"] = context
    return run


def bring_back(run: Callable[[], Any]) -> None:
    """After `run` has run elsewhere: its changes of context variables hold here, too."""
    for variable, value in run.__dict__["context"].items():
        if variable.get(_MISSING) is not value:
            variable.set(value)


def _frames(thread: int) -> Iterator[FrameType]:
    frame = sys._current_frames().get(thread)
    for _ in range(LOOKED_AT):
        if frame is None:
            return
        yield frame
        frame = frame.f_back


def _awaited_at(thread: int) -> str | None:
    """Where in Python code a thread waits for this one, or None: it joins it, or wants the result of its task."""
    mine = threading.current_thread()
    futures = [
        frame.f_locals["self"].future
        for frame in _all_frames(threading.get_ident())
        if frame.f_code.co_name == "run" and hasattr(frame.f_locals.get("self"), "future")
    ]
    found = None
    for frame in _frames(thread):
        if found is not None:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        this = frame.f_locals.get("self")
        wanted = {"join": [mine], "result": futures}.get(frame.f_code.co_name, ())
        if any(this is one for one in wanted):
            found = frame
    return None


def _all_frames(thread: int) -> Iterator[FrameType]:
    frame = sys._current_frames().get(thread)
    while frame is not None:
        yield frame
        frame = frame.f_back
