"""The one session of a Python process: whatever Python asks of Scheme is done there, one thing after the other.

Comes in: work to be done with the session. Goes out: what it returns; an uncaught condition as a SchemeError, Ctrl-C as
the KeyboardInterrupt that Python knows, `(exit)` as SystemExit. What Scheme writes goes to `sys.stdout`. Within such
work, `to_python` and `to_scheme` take values over.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from eshkol.errors import Interrupted, LanguageError
from eshkol.runtime.output import through_python
from eshkol.runtime.scheme import Root
from eshkol.session import Session, SessionThread
from eshkol.support import flags
from eshkol.support.interrupts import deferred

T = TypeVar("T")

_thread: SessionThread | None = None
_starting = threading.Lock()


def _renew_lock() -> None:
    """In a forked child: the thread that held the lock may not exist any more."""
    global _starting
    _starting = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


def in_session(work: Callable[[Session], T]) -> T:
    """What `work` returns on Scheme's thread; to be called from any thread, also from that one."""
    global _thread
    __tracebackhide__ = True  # IPython and pytest show the caller's line, not this
    try:
        with deferred():
            with _starting:
                if _thread is None:
                    through_python()
                    _thread = SessionThread(guest=True)
            return _thread.call(work, hard=False)
    except Interrupted as error:
        text = str(error)
    except LanguageError as error:
        if flags.is_on("ESHKOL_DEBUG"):
            raise
        raise error.with_traceback(None) from error.__cause__  # how the compiler came to it is no one's business
    raise KeyboardInterrupt(text)


def to_python(session: Session, value: Root) -> Any:
    """A value of Scheme as Python has it; on Scheme's thread."""
    return session.machine.python.take(value)


def to_scheme(session: Session, value: Any) -> Root:
    """A value of Python as Scheme has it; on Scheme's thread."""
    return session.machine.python.make(value)
