"""The one session of a Python process: whatever Python asks of Scheme is done there, one thing after the other.

Comes in: work to be done with the session. Goes out: what it returns; an uncaught condition as a SchemeError, Ctrl-C as
the KeyboardInterrupt that Python knows, `(exit)` as SystemExit. What Scheme writes goes to `sys.stdout`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from eshkol.errors import Interrupted, LanguageError
from eshkol.runtime.output import through_python
from eshkol.runtime.scheme import SchemeExit, SchemeRaised
from eshkol.session import Session, SessionThread

T = TypeVar("T")

_thread: SessionThread | None = None
_one_at_a_time = threading.RLock()


def in_session(work: Callable[[Session], T]) -> T:
    """What `work` returns on Scheme's thread; to be called from any thread, also from that one."""
    global _thread
    __tracebackhide__ = True  # IPython and pytest show the caller's line, not this
    if _thread is not None and _thread.session is not None and threading.get_ident() == _thread.worker.thread:
        return _told(work, _thread.session)
    with _one_at_a_time:
        if _thread is None:
            through_python()
            _thread = SessionThread()
        try:
            return _thread.call(lambda session: _whole(work, session), hard=False)
        except SchemeExit as leaving:
            raise SystemExit(leaving.code) from None
        except LanguageError as error:
            if os.environ.get("ESHKOL_DEBUG", "0") not in ("", "0"):
                raise
            raise error.with_traceback(None) from error.__cause__  # how the compiler came to it is nobody's business


def _whole(work: Callable[[Session], T], session: Session) -> T:
    """What comes from outside: behind it, everything is written that was to be."""
    session.machine.elsewhere = _elsewhere
    try:
        return _told(work, session)
    finally:
        session.flush()


def _elsewhere(work: Callable[[], T]) -> T:
    """How procedures that Python holds are called from other threads."""
    __tracebackhide__ = True
    return in_session(lambda session: work())


def _told(work: Callable[[Session], T], session: Session) -> T:
    """What it raises is what Python knows: a condition, the exception that caused it, or Ctrl-C."""
    try:
        return work(session)
    except SchemeRaised as raised:
        error = session.machine.python.exception(raised)
        if not isinstance(error, Interrupted):
            raise error from None
        text = str(error)
    except Interrupted as error:
        text = str(error)
    raise KeyboardInterrupt(text)
