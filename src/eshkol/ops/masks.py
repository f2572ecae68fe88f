"""Where masks hold, and whether positions are in range: what ops ask about arrays that are known.

NumPy answers, on one core, until whoever has threads takes over (`schedule/run/places.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np


def plainly_within(positions: Any, least: int, end: int) -> bool:
    """What `within` says, by NumPy."""
    return bool(positions.min() >= least and positions.max() < end)


class Ways:
    """How questions about large arrays are answered."""

    held: ClassVar[Callable[[Any], Any]] = staticmethod(np.flatnonzero)
    within: ClassVar[Callable[[Any, int, int], bool]] = staticmethod(plainly_within)


def held(mask: Any) -> Any:
    """The flat positions at which an array of bools holds, rising, in an array of int64 that is nobody else's."""
    return Ways.held(mask)


def within(positions: Any, least: int, end: int) -> bool:
    """Whether integers, of which there are some, are all from `least` on and below `end`."""
    return Ways.within(positions, least, end)


def nonzero(x: Any) -> tuple[Any, ...]:
    """The positions of the elements of an array that are not 0, as numpy.nonzero gives them: an array for each axis."""
    left = held(x if x.dtype == bool else x != 0)
    found = []
    for extent in reversed(x.shape[1:]):
        rows = left // max(extent, 1)
        found.append(left - rows * extent)
        left = rows
    return (left, *reversed(found))
