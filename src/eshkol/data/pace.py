"""Whether a loader is helped by a thread that loads ahead: found out by watching, not by guessing.

Comes in: how long each batch was waited for, and when. Goes out: `ahead`. A loader begins without the thread. Where
more than a small share of the time is waiting, the thread is tried; where then no less of it is, as on a machine whose
CPUs are all busy with something else, it is left alone again, for good. Batches are the same in either case.
"""

from __future__ import annotations

WINDOW = 32  # batches by which one decides
LITTLE = 0.02  # the share of the time that may be waiting: below it there is nothing to be gained


class Pace:
    """Watches a loader, and says whether a thread is to load ahead."""

    def __init__(self, ahead: bool = False) -> None:
        self.ahead = ahead
        self._alone: float | None = None  # the share of waiting without the thread
        self._settled = ahead
        self._count, self._waited, self._began = 0, 0.0, 0.0

    def note(self, waited: float, now: float) -> None:
        """A batch was there at a time, after so many seconds of waiting."""
        if self._settled:
            return
        if not self._count:
            self._waited, self._began = 0.0, now
        else:
            self._waited += waited
        self._count += 1
        if self._count <= WINDOW:
            return
        share = self._waited / max(now - self._began, 1e-9)
        self._count = 0
        if self.ahead:
            self.ahead = share < (self._alone or 0.0)
            self._settled = True
        elif share > LITTLE:
            self.ahead, self._alone = True, share
