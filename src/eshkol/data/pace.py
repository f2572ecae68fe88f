"""Whether a loader is helped by a thread that loads ahead: found out by watching, not by guessing.

Comes in: how long each batch was waited for, and when. Goes out: `ahead`. A loader begins without the thread. Where
more than a small share of the time is waiting, the thread is tried, and kept as long as there is clearly less waiting
with it than there was without. On a machine whose CPUs are all busy with something else that may not be so, nor where
nothing is done with the batches; as such things pass, the thread is tried again from time to time. Batches are the same
in either case.
"""

from __future__ import annotations

WINDOW = 32  # batches by which one decides
LITTLE = 0.02  # the share of the time that may be waiting: below it there is nothing to be gained
WORTH = 0.8  # the share with the thread, against that without, from which on it is not worth its while
PATIENCE = 4  # windows after which what did not help is tried again


class Pace:
    """Watches a loader, and says whether a thread is to load ahead."""

    def __init__(self, ahead: bool = False) -> None:
        self.ahead = ahead
        self.patience = 0.0  # seconds of fetching a batch without the thread, when that was seen last
        self._alone = 1.0  # the share of the time that this was
        self._rest = 0  # windows to go before the thread is tried again
        self._count, self._waited, self._elapsed, self._last = 0, 0.0, 0.0, 0.0

    def note(self, waited: float, now: float, first: bool = False) -> None:
        """A batch was there at a time, after so many seconds of waiting. What lies before the first one of an epoch is
        not the loader's."""
        if not first:
            self._waited += waited
            self._elapsed += now - self._last
            self._count += 1
        self._last = now
        if self._count < WINDOW:
            return
        share, mean = self._waited / max(self._elapsed, 1e-9), self._waited / WINDOW
        self._count, self._waited, self._elapsed = 0, 0.0, 0.0
        if self.ahead:
            if share > max(LITTLE, WORTH * self._alone):
                self.ahead, self._rest = False, PATIENCE
        else:
            self.patience, self._alone, self._rest = mean, share, self._rest - 1
            self.ahead = share > LITTLE and self._rest <= 0
