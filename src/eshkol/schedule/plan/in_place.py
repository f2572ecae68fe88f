"""Values that are changed where they lie: a pass over plans that leaves out copies.

Comes in: a plan in which a kernel that changes its first input works on a copy of it. Goes out: one without the copies
whose source nothing needs any more. Then both are one place: what computes the source writes it where the result is
wanted. The same goes for what a loop carries from round to round, if the body reads it only before it is changed: it
stays in its place, and a round costs as much as it changes.

Parameters, constants, results and elements of what is scanned are never changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, OnHost, Plan, Step, Together, While, touched, walk

Pairs = tuple[tuple[int, int], ...]


def in_place(plan: Plan) -> Plan:
    """The plan, without copies of what may be changed."""
    if not any(_copies(step) for step in walk(plan.steps)):
        return plan
    return _Pass(plan).plan


def _copies(step: Step) -> bool:
    return isinstance(step, Launch) and step.kernel.copies


class _Pass:
    def __init__(self, plan: Plan) -> None:
        self.fixed = {*plan.params, *(p for p, _ in plan.constants), *(p for p, _ in plan.results)}
        self.uses: Counter[int] = Counter()  # steps that touch a place, those around them too
        for step in walk(plan.steps):
            self.uses.update(touched(step))
            if isinstance(step, Loop | While):
                self.fixed.update(p for pair in step.carries for p in pair)
            if isinstance(step, Loop):
                self.fixed.update(inner for inner, _ in step.views)
        self.same: dict[int, int] = {}  # places, and those that they become
        self.gone: set[int] = set()  # copies, by id
        self._body(plan.steps, ())
        self.plan = replace(plan, steps=self._rewritten(plan.steps))

    # --- which copies can go --------------------------------------------------------------------------

    def _body(self, steps: Sequence[Step], carries: Pairs) -> None:
        """Look at the copies among steps that run one after another, and in their bodies."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for number, step in enumerate(steps):
            for place in touched(step):
                first.setdefault(place, number)
                last[place] = number
        for number, step in reversed(list(enumerate(steps))):  # what one copy gives, the next may have copied
            match step:
                case Loop():
                    self._body(step.body, step.carries)
                case While():
                    self._body(step.test, ())
                    self._body(step.body, step.carries)
                case Branch():
                    self._body(step.then, ())
                    self._body(step.otherwise, ())
            if not isinstance(step, Launch) or not step.kernel.copies:
                continue
            (source,), target = step.reads, self._place(step.writes[0])
            if last[source] != number or first[target] != number:
                continue
            if (source, target) in carries:
                self.same[target] = source
            elif source not in self.fixed and self._only_here(source, steps[first[source] : number + 1]):
                self.same[source] = target
                first[target] = first[source]
            else:
                continue
            self.gone.add(id(step))

    def _only_here(self, place: int, steps: Sequence[Step]) -> bool:
        """Whether no other steps touch a place."""
        return sum(place in touched(step) for step in walk(steps)) == self.uses[place]

    # --- without them ---------------------------------------------------------------------------------

    def _place(self, place: int) -> int:
        while place in self.same:
            place = self.same[place]
        return place

    def _places(self, places: Sequence[int]) -> tuple[int, ...]:
        return tuple(dict.fromkeys(map(self._place, places)))

    def _pairs(self, pairs: Pairs) -> Pairs:
        found = ((self._place(one), self._place(other)) for one, other in pairs)
        return tuple((one, other) for one, other in found if one != other)

    def _rewritten(self, steps: Sequence[Step]) -> tuple[Step, ...]:
        return tuple(self._step(step) for step in steps if id(step) not in self.gone)

    def _step(self, step: Step) -> Step:
        match step:
            case Launch():
                buffers = tuple((name, self._place(place)) for name, place in step.buffers)
                same = self._places(step.same)
                return replace(
                    step, buffers=buffers, writes=self._places(step.writes), reads=self._places(step.reads), same=same
                )
            case Together():
                raise AssertionError("launches are put together behind this pass")
            case OnHost():
                reads, writes = (tuple(map(self._place, places)) for places in (step.reads, step.writes))
                return replace(step, reads=reads, writes=writes)
            case Copy():
                return Copy(self._place(step.target), self._place(step.source))
            case Loop():
                views = tuple((self._place(inner), self._place(outer)) for inner, outer in step.views)
                return replace(step, body=self._rewritten(step.body), carries=self._pairs(step.carries), views=views)
            case While():
                return replace(
                    step, test=self._rewritten(step.test), truth=self._place(step.truth),
                    body=self._rewritten(step.body), carries=self._pairs(step.carries),
                )  # fmt: skip
            case Branch():
                return replace(
                    step, truth=self._place(step.truth), then=self._rewritten(step.then),
                    otherwise=self._rewritten(step.otherwise),
                )  # fmt: skip
