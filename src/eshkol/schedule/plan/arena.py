"""Where the places of a plan lie: one block of memory, the arena, in which places that are not needed at the same time
share bytes.

Comes in: a plan. Goes out: an offset for every place that is neither given from outside nor an element of another, and
the bytes of the whole. A place is needed from the first step that touches it to the last one; what a loop's body reads
of outside is needed until the loop ends. Where a kernel needs of an input only what lies where it writes, and nothing
needs the input any more, the output takes its place.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, OnHost, Plan, Step, Together, While, walk

ALIGNMENT = 64


@dataclass(frozen=True)
class Arena:
    """Offsets of places, and the size of all."""

    offsets: dict[int, int]
    size: int


@dataclass
class Span:
    """The steps from the first to the last that touch a place."""

    first: int
    last: int


@dataclass
class Life:
    """When places are needed, by the number of the step."""

    spans: dict[int, Span] = field(default_factory=dict)
    now: int = 0
    launches: dict[int, tuple[Launch, ...]] = field(default_factory=dict)  # by number; several at the same time
    tied: list[tuple[int, int]] = field(default_factory=list)  # places that exchange their memory: as long as the first

    def touch(self, places: Iterable[int]) -> None:
        for place in places:
            span = self.spans.get(place)
            if span is None:
                self.spans[place] = Span(self.now, self.now)
            else:
                span.last = self.now

    def run(self, steps: Sequence[Step]) -> None:
        for step in steps:
            self.now += 1
            match step:
                case Launch():
                    self.launches[self.now] = (step,)
                    self.touch((*step.writes, *step.reads))
                case Together():
                    self.launches[self.now] = step.launches
                    for launch in step.launches:
                        self.touch((*launch.writes, *launch.reads))
                case OnHost():
                    self.touch((*step.writes, *step.reads))
                case Copy():
                    self.touch((step.target, step.source))
                case Loop():
                    outside = [*(outer for _, outer in step.views), *(p for pair in step.carries for p in pair)]
                    self.tied += step.carries
                    self._enclosed((step.body,), outside)
                case While():
                    outside = [step.truth, *(p for pair in step.carries for p in pair)]
                    self.tied += step.carries
                    self._enclosed((step.test, step.body), outside)
                case Branch():
                    written = {p for s in walk((*step.then, *step.otherwise)) for p in _written(s)}
                    self._enclosed((step.then, step.otherwise), [step.truth, *written])

    def takes_over(self, now: int, place: int, source: int) -> bool:
        """Whether what a step writes may lie where one of its inputs does, which nothing needs after it.

        The launch that writes it must need only what lies there, and be the only one at that time that reads it.
        """
        launches = self.launches.get(now, ())
        return any(place in one.writes and source in one.same for one in launches) and (
            len(launches) == 1 or sum(source in one.reads for one in launches) == 1
        )

    def _enclosed(self, bodies: Sequence[Sequence[Step]], outside: Sequence[int]) -> None:
        """Steps that are run again, or perhaps not: what they touch of outside is needed until they are done."""
        begin = self.now
        self.touch(outside)
        for body in bodies:
            self.run(body)
        self.now += 1
        self.touch(outside)
        for span in self.spans.values():
            if span.first <= begin < span.last:
                span.last = max(span.last, self.now)


def _written(step: Step) -> tuple[int, ...]:
    if isinstance(step, Launch | OnHost):
        return step.writes
    return (step.target,) if isinstance(step, Copy) else ()


def lives(plan: Plan) -> dict[int, Span]:
    """When each place that has memory of its own is needed."""
    return lived(plan)[0].spans


def lived(plan: Plan) -> tuple[Life, set[int]]:
    """The life of a plan's places, and those that are elements of others."""
    life = Life()
    life.run(plan.steps)
    for place, following in life.tied:
        spans = life.spans
        spans[following].last = max(spans[following].last, spans[place].last)
        spans[place].first = spans[following].first = min(spans[place].first, spans[following].first)
    views = {inner for step in walk(plan.steps) if isinstance(step, Loop) for inner, _ in step.views}
    for place in views:
        life.spans.pop(place, None)
    return life, views


def arranged(plan: Plan) -> Arena:
    """The arena of a plan."""
    return placed(tenancies(plan), [p.size for p in plan.places])


Tenancy = tuple[int, int | None, bool]  # a place, the one whose memory it takes over, and whether it ends here


def tenancies(plan: Plan) -> list[Tenancy]:
    """In which order places take memory of the arena and give it back."""
    life, views = lived(plan)
    elsewhere = {*plan.params, *(p for p, _ in plan.constants), *(p for p, _ in plan.results), *views}
    exchanged = {p for pair in life.tied for p in pair}
    starts: dict[int, list[int]] = {}
    ends: dict[int, list[int]] = {}
    for place, span in life.spans.items():
        if place not in elsewhere and plan.places[place].size:
            starts.setdefault(span.first, []).append(place)
            ends.setdefault(span.last, []).append(place)
    found: list[Tenancy] = []
    begun: set[int] = set()
    taken: set[int] = set()  # places whose memory an output has taken over
    for now in sorted({*starts, *ends}):
        dying = [p for p in ends.get(now, ()) if p in begun and p not in exchanged]
        for place in starts.get(now, ()):
            heir = None
            if now in life.launches and place not in exchanged:
                heir = next(
                    (p for p in dying if p not in taken and plan.places[p].size == plan.places[place].size
                     and life.takes_over(now, place, p)), None
                )  # fmt: skip
            begun.add(place)
            found.append((place, heir, False))
            if heir is not None:
                taken.add(heir)
        found += [(place, None, True) for place in ends.get(now, ()) if place not in taken]
    return found


def placed(order: Sequence[Tenancy], sizes: Sequence[int]) -> Arena:
    """Where places lie, by their sizes."""
    free = _Free()
    offsets: dict[int, int] = {}
    for place, heir, ends in order:
        if ends:
            free.give(offsets[place], _rounded(sizes[place]))
        else:
            offsets[place] = free.take(_rounded(sizes[place])) if heir is None else offsets[heir]
    return Arena(offsets, free.size)


def inherited(plan: Plan, donated: Sequence[int]) -> dict[int, int]:
    """The results that can lie in the memory of donated parameters, which nothing needs when they are written."""
    life = Life()
    life.run(plan.steps)
    moving = {p for step in walk(plan.steps) for p in _exchanged(step)}
    taken = {p for p, _ in plan.results}
    left = [p for p in donated if p not in taken and p not in moving]
    found: dict[int, int] = {}
    written = [p for p in plan.given if p in life.spans and p not in moving]
    for place in sorted(written, key=lambda p: life.spans[p].first):
        first = life.spans[place].first
        for param in left:
            last = life.spans[param].last if param in life.spans else 0
            if plan.places[param] != plan.places[place]:
                continue
            if last < first or (last == first and life.takes_over(first, place, param)):
                found[place] = param
                left.remove(param)
                break
    return found


def _exchanged(step: Step) -> tuple[int, ...]:
    return tuple(p for pair in step.carries for p in pair) if isinstance(step, Loop | While) else ()


def _rounded(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


class _Free:
    """The gaps of the arena, in order of their offsets; it grows where none is large enough."""

    def __init__(self) -> None:
        self.gaps: list[tuple[int, int]] = []  # offset, size
        self.size = 0

    def take(self, size: int) -> int:
        """The smallest gap that is large enough."""
        best = -1
        for k, gap in enumerate(self.gaps):
            if gap[1] >= size and (best < 0 or gap[1] < self.gaps[best][1]):
                best = k
        if best < 0:
            if self.gaps and sum(self.gaps[-1]) == self.size:  # the last gap, grown
                offset, have = self.gaps.pop()
                self.size += size - have
                return offset
            self.size += size
            return self.size - size
        offset, have = self.gaps[best]
        if have > size:
            self.gaps[best] = offset + size, have - size
        else:
            del self.gaps[best]
        return offset

    def give(self, offset: int, size: int) -> None:
        """Take a gap back, joined with its neighbours."""
        gaps = self.gaps
        k = bisect.bisect(gaps, (offset, size))
        if k < len(gaps):
            after, more = gaps[k]
            if after == offset + size:
                size += more
                del gaps[k]
        if k:
            before, more = gaps[k - 1]
            if before + more == offset:
                gaps[k - 1] = before, more + size
                return
        gaps.insert(k, (offset, size))
