"""What a plan takes of memory: for each step what it writes, what is held meanwhile, and where the most is held.

Comes in: a plan. Goes out: a `MemoryReport`, which prints as a table.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from eshkol.graph.node import Site, span_of
from eshkol.schedule.plan.arena import arranged, lives
from eshkol.schedule.plan.steps import Copy, Launch, Loop, OnHost, Plan, Step, Together, While, walk

SHOWN = 12


@dataclass(frozen=True)
class StepMemory:
    """One step: what it computes, the bytes it writes, and the bytes of all values that are needed while it runs."""

    name: str
    line: str  # of the user's program
    written: int
    live: int


@dataclass(frozen=True)
class MemoryReport:
    """The memory of a compiled function, in bytes."""

    inputs: int
    results: int
    arena: int  # what lies between, in one block
    steps: tuple[StepMemory, ...]

    @property
    def peak(self) -> int:
        """What a run needs in all."""
        return self.inputs + self.results + self.arena

    @property
    def by_op(self) -> dict[str, int]:
        """The bytes that each kind of step writes, the most first."""
        found: Counter[str] = Counter()
        for step in self.steps:
            found[step.name] += step.written
        return dict(found.most_common())

    def __str__(self) -> str:
        lines = [
            f"{_bytes(self.peak)} in all: inputs {_bytes(self.inputs)}, results {_bytes(self.results)}, "
            f"in between {_bytes(self.arena)} (of {_bytes(sum(s.written for s in self.steps))} written)",
            f"{'written':>10} {'held':>10}  step",
        ]
        largest = sorted(self.steps, key=lambda s: -s.written)[:SHOWN]
        lines += [f"{_bytes(s.written):>10} {_bytes(s.live):>10}  {s.name}  {s.line}".rstrip() for s in largest]
        if len(self.steps) > SHOWN:
            lines.append(f"{'':>22} and {len(self.steps) - SHOWN} smaller steps")
        return "\n".join(lines)


def reported(plan: Plan) -> MemoryReport:
    """What a plan takes of memory."""
    spans = lives(plan)
    given = {*plan.params, *(p for p, _ in plan.constants)}
    results = {p for p, _ in plan.results} - given
    changes: Counter[int] = Counter()
    for place, span in spans.items():
        if place not in given and place not in results:
            changes[span.first] += plan.places[place].size
            changes[span.last + 1] -= plan.places[place].size
    steps: list[StepMemory] = []
    live = 0
    numbered: dict[int, list[Launch | OnHost]] = {}
    for number, step in _numbered(plan):
        numbered.setdefault(number, []).append(step)
    for now in range(max([*numbered, *changes], default=0) + 1):
        live += changes[now]
        for step in numbered.get(now, ()):
            written = sum(plan.places[p].size for p in step.writes)
            name = step.kernel.program.name if isinstance(step, Launch) else f"host {step.node.op.name}"
            steps.append(StepMemory(name, _line(step.node.site), written, live))
    inputs = sum(plan.places[p].size for p in given)
    return MemoryReport(inputs, sum(plan.places[p].size for p in results), arranged(plan).size, tuple(steps))


def _numbered(plan: Plan) -> list[tuple[int, Launch | OnHost]]:
    """Launches and what the host computes, with the numbers by which spans go; those of one time have one number."""
    found: list[tuple[int, Launch | OnHost]] = []
    now = 0

    def visit(steps: tuple[Step, ...]) -> None:
        nonlocal now
        for step in steps:
            now += 1
            if isinstance(step, Launch | OnHost):
                found.append((now, step))
            elif isinstance(step, Together):
                found.extend((now, launch) for launch in step.launches)
            elif not isinstance(step, Copy):
                for body in (step.body,) if isinstance(step, Loop) else _bodies(step):
                    visit(body)
                now += 1

    visit(plan.steps)
    assert len(found) == sum(isinstance(s, Launch | OnHost) for s in walk(plan.steps))
    return found


def _bodies(step: Step) -> tuple[tuple[Step, ...], ...]:
    if isinstance(step, While):
        return step.test, step.body
    assert not isinstance(step, Launch | Together | OnHost | Copy | Loop)
    return step.then, step.otherwise


def _line(site: Site | int | None) -> str:
    span = None if isinstance(site, int) else span_of(site)
    return "" if span is None else f"{span.file.rsplit('/', 1)[-1]}:{span.line}"


def _bytes(count: int) -> str:
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count} B"
