"""What legal plans and arenas are, said as checks: run after each pass over plans where checks are on.

Comes in: a plan, and where its places lie. Goes out: nothing, or an error that names the pass. Every value is written
before it is read; nothing writes parameters and constants; launches fill every parameter of their program
with places as large as it says; what loops carry, and elements they walk along, fit. In an arena, places that are
needed at the same time share no byte, unless a launch says that it reads only what lies where it writes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from eshkol.atlas.program import ParamKind
from eshkol.errors import MiscompiledError
from eshkol.ops.row import Aval
from eshkol.schedule.kernels.scalars import STORED
from eshkol.schedule.plan.arena import Arena, Life, lived
from eshkol.schedule.plan.show import shown_plan
from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, OnHost, Place, Plan, Step, Together, While


class MalformedPlan(AssertionError):
    """A plan that no pass should give."""


def verify_plan(plan: Plan, stage: str) -> None:
    """Refuse a plan that reads what nothing wrote, writes what it must not, or binds what does not fit."""
    try:
        _Walk(plan).checked()
    except MalformedPlan as error:
        raise _refusal(plan, stage, error) from error


def _refusal(plan: Plan, stage: str, error: MalformedPlan) -> MiscompiledError:
    return MiscompiledError(
        f"what the pass '{stage}' gives is no plan: {error}", stage=stage, graph=shown_plan(plan),
        hint="this is a defect of Eshkol: please report it with the plan above",
    )  # fmt: skip


class _Walk:
    """A plan's steps in the order in which they run, with the places that have values by then."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.fixed = {*plan.params, *(place for place, _ in plan.constants)}

    def checked(self) -> None:
        known = self._steps(self.plan.steps, set(self.fixed))
        self._known([place for place, _ in self.plan.results], known, "a result")
        for place, aval in self.plan.results:
            given = self.plan.places[place]
            if STORED[given.dtype][0] is not STORED[aval.dtype][0] or given.size != _bytes(aval):
                raise MalformedPlan(f"the result in place {place} is {aval}, its place is {given}")

    def _steps(self, steps: Sequence[Step], known: set[int]) -> set[int]:
        for step in steps:
            self._step(step, known)
        return known

    def _step(self, step: Step, known: set[int]) -> None:
        match step:
            case Launch():
                self._launch(step, known)
            case Together():
                written = [place for launch in step.launches for place in launch.writes]
                if len(written) != len({*written}):
                    raise MalformedPlan(f"launches that are done together write the same place: {sorted(written)}")
                for launch in step.launches:
                    if not {*written}.isdisjoint({*launch.reads} - {*launch.writes}):
                        raise MalformedPlan(f"{launch.kernel.program.name} reads what is written at the same time")
                    self._launch(launch, set(known))
                known.update(written)
            case OnHost():
                self._known(step.reads, known, step.node.op.name)
                self._written(step.writes, known)
            case Copy():
                self._known([step.source], known, "a copy")
                if self.plan.places[step.source].size != self.plan.places[step.target].size:
                    raise MalformedPlan(f"a copy of place {step.source} to {step.target}, which is not as large")
                self._written([step.target], known)
            case Loop():
                inside = self._carried(step.carries, known)
                for inner, outer in step.views:
                    if self.plan.places[inner].size * step.length != self.plan.places[outer].size:
                        raise MalformedPlan(f"place {inner} is no element of {outer}, of which there are {step.length}")
                    inside.add(inner) if outer in known else known.add(outer)
                self._next(step.carries, self._steps(step.body, inside))
            case While():
                inside = self._steps(step.test, self._carried(step.carries, known))
                self._known([step.truth], inside, "a loop's test")
                self._next(step.carries, self._steps(step.body, inside))
            case Branch():
                self._known([step.truth], known, "a branch")
                known |= self._steps(step.then, set(known)) & self._steps(step.otherwise, set(known))

    def _launch(self, launch: Launch, known: set[int]) -> None:
        program = launch.kernel.program
        numbers, buffers = {name for name, _ in launch.numbers}, dict(launch.buffers)
        if {*buffers, *numbers} != {*program.param}:
            raise MalformedPlan(f"{program.name} has parameters {[*program.param]}, given are {[*buffers, *numbers]}")
        for name, place in buffers.items():
            param, given = program.param[name], self.plan.places[place]
            if param.kind is not ParamKind.BUFFER or param.ty is not STORED[given.dtype][0]:
                raise MalformedPlan(f"{program.name} takes {param.ty} as {name}, place {place} is {given.dtype}")
            if param.count is not None and given.size < param.count * param.ty.size_bytes:
                raise MalformedPlan(f"{program.name} takes {param.count} elements as {name}, place {place} is {given}")
        self._known([p for p in launch.reads if p not in launch.writes], known, program.name)
        self._written(launch.writes, known)

    def _carried(self, carries: Iterable[tuple[int, int]], known: set[int]) -> set[int]:
        for place, following in carries:
            self._known([place], known, "what a loop carries")
            if not _alike(self.plan.places[place], self.plan.places[following]):
                raise MalformedPlan(f"a loop carries place {place} on in {following}, which is another kind of value")
        return set(known)

    def _next(self, carries: Iterable[tuple[int, int]], inside: set[int]) -> None:
        self._known([following for _, following in carries], inside, "the next round")

    def _known(self, places: Iterable[int], known: set[int], who: str) -> None:
        missing = [place for place in places if place not in known and self.plan.places[place].size]
        if missing:
            raise MalformedPlan(f"{who} reads places {missing}, which nothing has written")

    def _written(self, places: Iterable[int], known: set[int]) -> None:
        refused = [place for place in places if place in self.fixed]
        if refused:
            raise MalformedPlan(f"places {refused} are parameters or constants, and are written")
        known.update(places)


def _alike(one: Place, other: Place) -> bool:
    """Whether two places hold values of one kind; complex numbers may lie in one as such, in the other as pairs."""
    if one.dtype is other.dtype:
        return one == other
    return STORED[one.dtype][0] is STORED[other.dtype][0] and one.size == other.size


def _bytes(aval: Aval) -> int:
    return math.prod(aval.shape) * aval.dtype.size


def verify_arena(plan: Plan, arena: Arena) -> None:
    """Refuse an arena in which places that are needed at the same time share bytes."""
    try:
        _apart(plan, arena)
    except MalformedPlan as error:
        raise _refusal(plan, "memory", error) from error


def _apart(plan: Plan, arena: Arena) -> None:
    life, _ = lived(plan)
    placed = sorted((offset, place) for place, offset in arena.offsets.items())
    for k, (offset, place) in enumerate(placed):
        end = offset + plan.places[place].size
        if end > arena.size:
            raise MalformedPlan(f"place {place} ends at byte {end} of an arena of {arena.size}")
        for start, other in placed[k + 1 :]:
            if start >= end:
                break
            if _meet(life, place, other):
                raise MalformedPlan(f"places {place} and {other} are needed at the same time, and share bytes")


def _meet(life: Life, one: int, other: int) -> bool:
    """Whether two places are needed at the same time, but for a step that writes one where it last reads the other."""
    first, second = sorted((one, other), key=lambda place: life.spans[place].first)
    begins, ends = life.spans[second].first, life.spans[first].last
    return begins < ends or (begins == ends and not life.takes_over(begins, second, first))
