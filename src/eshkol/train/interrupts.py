"""Ctrl-C while a loop trains: the first asks it to end after the step in progress, the second raises at once."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from eshkol.uninterrupted import on_the_way_out


class Interrupts:
    """Within it Ctrl-C is noted (`asked`) instead of raised, if this is the main thread; a second one is raised.

    Whoever ignores Ctrl-C, or takes it outside of Python, goes on doing so.
    """

    def __init__(self) -> None:
        self.asked = False
        self._earlier: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            found = signal.getsignal(signal.SIGINT)
            if found is not None and found is not signal.SIG_IGN:
                signal.signal(signal.SIGINT, self._noted)
                self._earlier = found
        return self

    def _noted(self, number: int, frame: FrameType | None) -> None:
        if self.asked and not on_the_way_out(frame):
            raise KeyboardInterrupt
        self.asked = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._earlier is not None:
            signal.signal(signal.SIGINT, self._earlier)
            self._earlier = None
