"""Do objects that last gain references with every call? Comes in: work and objects. Goes out: those that did, how far.

Code in C counts references by hand; one that is not given back, or once too often, shows as a count that moves with the
number of calls.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence

from eshkol.runtime import front

CALLS, MOST = 200, 60  # what learns or caches may keep a few


def moved(work: Callable[[], object], lasting: Sequence[object]) -> dict[str, int]:
    """How far the counts of references moved during many calls, of those that did by more than a few."""
    for _ in range(30):
        work()
    gc.collect()
    before, known = [sys.getrefcount(thing) for thing in lasting], front.known()[0]
    for _ in range(CALLS):
        work()
    gc.collect()
    after = [sys.getrefcount(thing) for thing in lasting]
    assert front.known()[0] <= known + MOST  # nodes that the front door knows
    return {str(t): b - a for t, a, b in zip(lasting, before, after, strict=True) if abs(b - a) > MOST}
