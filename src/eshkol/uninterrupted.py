"""Moments in which Ctrl-C waits: values are out of their tensors, and would be lost with whoever holds them.

A compiled step overwrites the memory of parameters; until the new values are put in, neither old nor new ones stand
in the model. Comes in: nothing. Goes out: nothing; a Ctrl-C that came meanwhile is delivered at the end. It stands
beside everything: the thread of Scheme (runtime/worker.py) asks before KeyboardInterrupt is raised in it.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any

_signals: Any = sys.modules.get("_signal", signal)  # the same functions without enums, which would cost 20 times more
_SIGINT = int(signal.SIGINT)
_inside: dict[int, int] = {}  # threads, and how many of these moments each is in


def waits_in(thread: int) -> bool:
    """Whether a thread is in such a moment."""
    return thread in _inside


def on_the_way_out(frame: FrameType | None) -> bool:
    """Whether an `__exit__` is being run: what would be raised in it keeps it from giving the handler back."""
    return frame is not None and frame.f_code.co_name == "__exit__"


class uninterrupted:
    """Within it Ctrl-C waits for the end; a second one does not wait in the main thread.

    Whoever ignores Ctrl-C, or takes it outside of Python, goes on doing so.
    """

    __slots__ = ("_came", "_earlier")

    def __init__(self) -> None:
        self._earlier: Callable[[int, FrameType | None], Any] | None = None
        self._came = False

    def __enter__(self) -> None:
        thread = threading.get_ident()
        _inside[thread] = _inside.get(thread, 0) + 1
        if threading.current_thread() is threading.main_thread():
            found = _signals.getsignal(_SIGINT)
            if callable(found):
                self._earlier = found
                _signals.signal(_SIGINT, self._waits)

    def _waits(self, number: int, frame: FrameType | None) -> None:
        if self._came and not on_the_way_out(frame):
            self._came = False
            raise KeyboardInterrupt
        self._came = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        thread = threading.get_ident()
        left = _inside[thread] - 1
        if left:
            _inside[thread] = left
        else:
            del _inside[thread]
        if self._earlier is None:
            return
        _signals.signal(_SIGINT, self._earlier)
        if self._came:
            self._earlier(_SIGINT, None)
