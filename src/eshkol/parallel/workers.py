"""Threads that have machines work at the same time, one for each; whoever asked waits for all of them.

Comes in: functions, each for a machine. Goes out: what they give, in the order in which they were given, whatever the
order in which they end; or the first error in that order, which says on which machine it was. Ctrl-C ends the waiting:
what has not begun then is not begun, and what runs ends by itself, with nothing of it used.

Compiled functions are traced on these threads. A trace lets a model's tensors stand for other values, which nobody else
may see: `TRACING` is held meanwhile, and Ctrl-C waits for that.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Sequence
from contextvars import ContextVar, copy_context
from queue import Empty, SimpleQueue
from typing import Any

from eshkol.errors import EshkolError

POLL_SECONDS = 0.2
TRACING = threading.RLock()
Work = tuple[str, Callable[[], Any]]  # where, and what

_call: ContextVar[threading.Event | None] = ContextVar("call", default=None)  # set when it was given up


class GivenUp(Exception):
    """Someone else failed, or nobody waits any more."""


def still_wanted() -> None:
    """Raise GivenUp where nobody waits for what this thread does."""
    call = _call.get()
    if call is not None and call.is_set():
        raise GivenUp


class Workers:
    """A thread for each of some places; they begin when they are first needed, and end with this object."""

    def __init__(self) -> None:
        self._queues: dict[str, SimpleQueue[Callable[[], None] | None]] = {}
        weakref.finalize(self, _end, self._queues)

    def __deepcopy__(self, memo: Any) -> Workers:
        return Workers()

    def _queue(self, name: str) -> SimpleQueue[Callable[[], None] | None]:
        found = self._queues.get(name)
        if found is None:
            found = self._queues[name] = SimpleQueue()
            threading.Thread(target=_loop, args=(found,), daemon=True, name=f"eshkol on {name}").start()
        return found

    def at_once(self, works: Sequence[Work], cancel: Callable[[], None] | None = None) -> list[Any]:
        """What functions give that run at the same time, each on the thread of its place.

        Where they wait for each other, `cancel` lets go those that do, when one of them fails; those that do not wait
        come to their end.
        """
        results: list[Any] = [None] * len(works)
        errors: dict[int, BaseException] = {}
        done: SimpleQueue[int] = SimpleQueue()
        given_up = threading.Event()
        token = _call.set(given_up)
        contexts = [copy_context() for _ in works]
        _call.reset(token)

        def job(k: int, work: Callable[[], Any]) -> None:
            try:
                still_wanted()
                results[k] = work()
            except BaseException as error:
                errors[k] = error
            finally:
                done.put(k)

        try:
            for k, (name, work) in enumerate(works):
                self._queue(name).put(lambda k=k, work=work: contexts[k].run(job, k, work))  # type: ignore[misc]
            for _ in works:
                if _waited(done) in errors and cancel is not None:
                    given_up.set()
                    cancel()
        except BaseException:
            given_up.set()
            if cancel is not None:
                cancel()
            with TRACING:  # a model whose tensors stand for other values must not be seen
                raise
        _raise_first(works, errors)
        return results


def _waited(done: SimpleQueue[int]) -> int:
    """The next number; meanwhile Ctrl-C is seen, whichever thread the system gave it to."""
    while True:
        try:
            return done.get(timeout=POLL_SECONDS)
        except Empty:
            continue


def _raise_first(works: Sequence[Work], errors: dict[int, BaseException]) -> None:
    """Raise the error of the first place that failed by itself, with its name."""
    for k in sorted(errors, key=lambda k: (isinstance(errors[k], GivenUp), k)):
        raise said_where(errors[k], works[k][0])


def said_where(error: BaseException, name: str) -> BaseException:
    """An error that says on which machine it was."""
    if isinstance(error, EshkolError):
        error.message = f"on {name}: {error.message}"
        error.args = (error.message,)
    else:
        error.add_note(f"on {name}")
    return error


def _loop(queue: SimpleQueue[Callable[[], None] | None]) -> None:
    while (job := queue.get()) is not None:
        job()
        del job


def _end(queues: dict[str, SimpleQueue[Callable[[], None] | None]]) -> None:
    for queue in queues.values():
        queue.put(None)
