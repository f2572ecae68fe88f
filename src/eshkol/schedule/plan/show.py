"""Plans as people read them: steps with their places, and where these lie."""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.schedule.plan.arena import Arena, arranged
from eshkol.schedule.plan.steps import Branch, Copy, Launch, Loop, OnHost, Plan, Step, Together, While


def shown_plan(plan: Plan) -> str:
    """The steps of a plan, one a line."""
    arena = arranged(plan)
    lines = [f"--- plan: {len(plan.places)} places, {arena.size} bytes of arena"]
    return "\n".join([*lines, *_lines(plan.steps, plan, arena, "")])


def _lines(steps: Sequence[Step], plan: Plan, arena: Arena, indent: str) -> list[str]:
    found: list[str] = []

    def at(place: int) -> str:
        given = plan.places[place]
        where = f"@{arena.offsets[place]}" if place in arena.offsets else ""
        return f"%{place}{where} {given.dtype}{list(given.shape)}"

    for step in steps:
        match step:
            case Launch():
                writes, reads = (", ".join(map(at, p)) for p in (step.writes, step.reads))
                found.append(f"{indent}{writes} = {step.kernel.program.name}({reads})")
            case Together():
                found.append(f"{indent}together:")
                found += _lines(step.launches, plan, arena, indent + "  ")
            case OnHost():
                writes, reads = (", ".join(map(at, p)) for p in (step.writes, step.reads))
                found.append(f"{indent}{writes} = host {step.node.op.name}({reads})")
            case Copy():
                found.append(f"{indent}{at(step.target)} = {at(step.source)}")
            case Loop():
                found.append(f"{indent}for {step.length} rounds{' backwards' if step.reverse else ''}:")
                found += [f"{indent}  {at(inner)} is an element of {at(outer)}" for inner, outer in step.views]
                found += _lines(step.body, plan, arena, indent + "  ")
                found += [f"{indent}  {at(one)} ↔ {at(other)}" for one, other in step.carries]
            case While():
                found.append(f"{indent}test:")
                found += _lines(step.test, plan, arena, indent + "  ")
                found.append(f"{indent}while {at(step.truth)}:")
                found += _lines(step.body, plan, arena, indent + "  ")
                found += [f"{indent}  {at(one)} ↔ {at(other)}" for one, other in step.carries]
            case Branch():
                found.append(f"{indent}if {at(step.truth)}:")
                found += _lines(step.then, plan, arena, indent + "  ")
                found.append(f"{indent}else:")
                found += _lines(step.otherwise, plan, arena, indent + "  ")
    return found
