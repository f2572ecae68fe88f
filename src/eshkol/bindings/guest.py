"""The one session of a Python process: whatever Python asks of Scheme is done there, one thing after the other.

Comes in: work to be done with the session. Goes out: what it returns; an uncaught condition as a SchemeError, Ctrl-C as
the KeyboardInterrupt that Python knows, `(exit)` as SystemExit. What Scheme writes goes to `sys.stdout`.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TypeVar

from eshkol.errors import LanguageError
from eshkol.runtime.output import through_python
from eshkol.runtime.scheme import SchemeExit
from eshkol.session import Session, SessionThread

T = TypeVar("T")

_thread: SessionThread | None = None
_starting = threading.Lock()


def in_session(work: Callable[[Session], T]) -> T:
    """What `work` returns on Scheme's thread; to be called from any thread, also from that one."""
    global _thread
    with _starting:
        if _thread is None:
            through_python()
            _thread = SessionThread(guest=True)
    nested = threading.get_ident() == _thread.worker.thread

    def whole(session: Session) -> T:
        try:
            return work(session)
        finally:
            session.flush()

    try:
        return _thread.call(work if nested else whole, hard=False)
    except SchemeExit as leaving:
        raise SystemExit(leaving.code) from None
    except LanguageError as error:
        if os.environ.get("ESHKOL_DEBUG", "0") not in ("", "0"):
            raise
        raise error.with_traceback(None) from error.__cause__  # how the compiler came to it is nobody's business
