"""Tests that may not take longer than so many seconds: a thread watches, and ends them as Ctrl-C would.

Comes in: the limit, on Scheme's thread. Goes out: an interrupt of whatever runs there when its time is over, and
`Limit.passed`, by which whoever meets the interrupt knows it from that of Ctrl-C. Where a program has tests of its own,
those are what is limited: (eshkol testing) counts in a variable when one begins and when it ends, and the thread looks.
"""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from eshkol.runtime.scheme import Root
from eshkol.support.interrupts import ask, is_asked, take

LOOKS = 0.05  # seconds between two looks at the clock, at most


class Limit:
    """A limit for each of some tests, one after the other; None: there is none."""

    def __init__(self, seconds: float | None, running: Root | None = None) -> None:
        self.seconds, self._running = seconds, running
        self.passed = False  # whether a test was ended for taking too long, since the last one began
        self._thread = threading.get_ident()
        self._lock, self._over = threading.Lock(), threading.Event()
        self._watcher: threading.Thread | None = None
        self.begin()

    def begin(self) -> None:
        """A test begins now."""
        with self._lock:
            self.passed = False
            self._began, self._number = time.monotonic(), self._current()

    def told(self) -> tuple[str, str]:
        """What was expected of a test that was ended, and what it did."""
        return f"it ends within {self.seconds:g} s", "it took longer"

    def __enter__(self) -> Self:
        if self.seconds is not None:
            self._watcher = threading.Thread(target=self._watch, args=(self.seconds,), daemon=True)
            self._watcher.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        if self._watcher is not None:
            self._over.set()
            self._watcher.join()
            if self.passed:
                take(self._thread)  # it may have come when all was over

    def _current(self) -> int:
        """What is odd while a test runs."""
        if self._running is None:
            return 1
        count: int = self._running.get().bits
        return count

    def _watch(self, seconds: float) -> None:
        while not self._over.wait(min(LOOKS, seconds / 4)):
            with self._lock:
                now, number = time.monotonic(), self._current()
                if number != self._number:
                    self._number, self._began = number, now
                    self.passed = self.passed and is_asked(self._thread)  # it may not have come there yet
                elif number % 2 and now - self._began >= seconds:
                    self._began, self.passed = now, True  # again after as long: who goes on meets it again
                    ask(self._thread)
