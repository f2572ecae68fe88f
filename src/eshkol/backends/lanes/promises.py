"""What code without checks relies on, for machines whose host decides before a launch whether it holds.

Comes in: a program. Goes out: `Promises`, what is known of its registers (`ranges.py`) and of how many lanes run; or
nothing, where there would be no check less.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eshkol.atlas.program import Program
from eshkol.atlas.validate import validate
from eshkol.backends.lanes.amounts import Number
from eshkol.backends.lanes.guards import Guard, find_guard
from eshkol.backends.lanes.ranges import Ranges, ranges


@dataclass(frozen=True)
class Promises:
    """What the fast module of a program relies on."""

    known: Ranges
    guard: Guard | None

    def hold(self, lanes: int, sizes: Mapping[str, int], scalars: Mapping[str, float]) -> bool:
        """Whether they do for so many lanes, with buffers of these bytes and scalars of these values."""
        if self.guard is not None:
            bound = self.guard.bound
            lanes = min(lanes, bound if isinstance(bound, int) else int(scalars[bound]))
        if lanes > self.known.lanes_below:
            return False
        for limit in self.known.limits:
            most = sizes[limit.most] if isinstance(limit.most, str) else limit.most
            slope, offset = (_value(n, scalars) for n in (limit.end.slope, limit.end.offset))
            if offset + slope * max(0, (lanes - 1) // limit.end.over) > most:
                return False
        return True


def _value(number: Number, scalars: Mapping[str, float]) -> int:
    if isinstance(number, int):
        return number
    total = 0
    for names, factor in number.terms:
        for name in names:
            factor *= int(scalars[name])
        total += factor
    return total


def promises(program: Program) -> Promises | None:
    """What a fast module of a program would rely on; None where it would be no faster."""
    analysis = validate(program)
    guard = find_guard(program, analysis)
    known = ranges(analysis, guard.bound if guard is not None and isinstance(guard.bound, int) else None)
    return Promises(known, guard) if known.trusted else None
