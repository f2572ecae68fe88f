"""Small launches that need nothing of each other, put together: horizontal fusion, a pass over plans.

Comes in: a plan whose steps run one after another. Goes out: one in which small launches stand in `Together` steps,
whatever their kernels are: the updates of an optimizer, sums over many small tensors. A machine runs such a step as one
loop over the elements of all its launches. So threads meet once instead of once for each launch, and launches too small
to be split keep all threads at work.

A launch joins the earliest such step that it can be moved up to: nothing in between writes what it touches, or reads
what it writes or might lie where it writes (`Launch.same`), so that results still take the memory of what they replace.
Values that are computed earlier are needed longer; so they are few bytes. Array instructions stay by themselves: they
keep all threads at work.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from eshkol.schedule.kernels.kernel import ONE_LANE
from eshkol.schedule.plan.steps import Branch, Launch, Loop, Plan, Step, Together, While, touched
from eshkol.support import flags

WINDOW = 64  # steps that a launch can be moved up over
MOST = 1024  # launches of a step


def together(plan: Plan) -> Plan:
    """The plan, small launches that need nothing of each other put together."""
    outside = {*plan.params, *(place for place, _ in plan.constants), *(place for place, _ in plan.results)}
    found = replace(plan, steps=_Pass(plan, outside).grouped(plan.steps))
    if flags.dumps("together"):
        print("\n".join(["--- together", *_described(found.steps, "")]), file=sys.stderr)
    return found


@dataclass(slots=True)
class _Item:
    """A step, or launches that may become one."""

    reads: set[int]
    writes: set[int]
    step: Step | None = None
    launches: list[Launch] = field(default_factory=list)
    held: int = 0

    def hinders(self, launch: Launch, taken: Sequence[int]) -> bool:
        """Whether a launch that comes after, and might take the memory of some of what it reads, must stay behind."""
        reads, writes = self.reads, self.writes
        if any(p in writes or p in reads for p in launch.writes):
            return True
        return any(p in writes for p in launch.reads) or any(p in reads for p in taken)

    def finished(self) -> Step:
        if self.step is not None:
            return self.step
        return self.launches[0] if len(self.launches) == 1 else Together(tuple(self.launches))


class _Pass:
    def __init__(self, plan: Plan, outside: set[int]) -> None:
        self.places, self.outside, self.target = plan.places, outside, plan.target

    def grouped(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        items: list[_Item] = []
        for step in steps:
            if isinstance(step, Launch) and self._small(step):
                self._put(items, step)
            elif isinstance(step, Launch):
                items.append(_Item(set(step.reads), set(step.writes), step))
            else:
                places = touched(step)
                items.append(_Item(places, places, self._inside(step)))
        return tuple(item.finished() for item in items)

    def _inside(self, step: Step) -> Step:
        match step:
            case Loop():
                return replace(step, body=self.grouped(step.body))
            case While():
                return replace(step, test=self.grouped(step.test), body=self.grouped(step.body))
            case Branch():
                return replace(step, then=self.grouped(step.then), otherwise=self.grouped(step.otherwise))
        return step

    def _small(self, launch: Launch) -> bool:
        if launch.kernel.launch is ONE_LANE and launch.kernel.lanes is None:  # an array instruction
            return False
        return sum(self.places[p].size for p in dict.fromkeys((*launch.reads, *launch.writes))) <= self.target.small

    def _put(self, items: list[_Item], launch: Launch) -> None:
        taken = [p for p in launch.same if math.prod(self.places[p].shape) > 1]  # for one number it is not worth while
        held = sum(self.places[p].size for p in launch.writes if p not in self.outside)
        best: _Item | None = None
        for item in reversed(items[-WINDOW:]):
            if item.hinders(launch, taken):
                break
            if item.step is None and item.held + held <= self.target.held and len(item.launches) < MOST:
                best = item
        if best is None:
            items.append(best := _Item(set(), set()))
        best.launches.append(launch)
        best.reads.update(launch.reads)
        best.writes.update(launch.writes)
        best.held += held


def _described(steps: Sequence[Step], indent: str) -> list[str]:
    """What was put together, a line for each step."""
    lines: list[str] = []
    for step in steps:
        match step:
            case Together():
                names = Counter(launch.kernel.program.name for launch in step.launches)
                lines.append(indent + ", ".join(f"{n} × {name}" for name, n in names.items()))
            case Loop():
                lines += [f"{indent}in a loop:", *_described(step.body, indent + "  ")]
            case While():
                lines += [f"{indent}in a loop:", *_described((*step.test, *step.body), indent + "  ")]
            case Branch():
                lines += [f"{indent}in a branch:", *_described((*step.then, *step.otherwise), indent + "  ")]
    return lines
