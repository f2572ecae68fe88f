"""Where our time goes in a workload: `python -m bench.profile softmax gpt` times every kernel of its plan by itself.

Kernels are launched one by one, each value in memory of its own, so their sum is more than a call of the whole plan
takes; the table gives both, each the best of some rounds. The rate is of what a kernel reads and writes, whatever a
cache may hold of it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np
from rich.console import Console
from rich.table import Table

from bench import harness, peers
from bench.workloads import WORKLOADS
from bench.workloads.contest import OURS, Contestant, Workload
from eshkol.schedule.pipeline import Compiled
from eshkol.schedule.plan.steps import Branch, Launch, Loop, OnHost, Plan, Step, While
from eshkol.schedule.run import stepwise

ROUNDS = 5
SHOWN = 16  # kernels of a workload


class _Timed:
    """A machine whose launches are timed."""

    def __init__(self, machine: Any) -> None:
        self._machine = machine
        self.seconds: dict[int, list[float]] = {}  # by program

    def __getattr__(self, name: str) -> Any:
        return getattr(self._machine, name)

    def execute(self, program: Any, launch: Any, params: Any) -> None:
        start = time.perf_counter()
        self._machine.execute(program, launch, params)
        self.seconds.setdefault(id(program), []).append(time.perf_counter() - start)


@dataclass(frozen=True)
class _Line:
    name: str
    calls: int
    seconds: float  # of all calls together
    moved: int  # bytes of a call
    shapes: str


def _launches(steps: Sequence[Step]) -> Iterator[Launch | OnHost]:
    for step in steps:
        match step:
            case Launch() | OnHost():
                yield step
            case Loop():
                yield from _launches(step.body)
            case While():
                yield from _launches((*step.test, *step.body))
            case Branch():
                yield from _launches((*step.then, *step.otherwise))


def _described(plan: Plan, step: Launch) -> tuple[int, str]:
    """Bytes that are read and written, and the shapes."""
    groups = [[plan.places[p] for p in places] for places in (step.writes, step.reads)]
    text = " ← ".join(", ".join("×".join(map(str, p.shape)) or "1" for p in places) for places in groups)
    return sum(p.size for places in groups for p in places), text


def _captured(contestant: Contestant) -> tuple[Compiled, list[Any], Any]:
    """What a call compiles and runs: the largest, where there are several."""
    found: list[tuple[Compiled, list[Any], Any]] = []
    plain = Compiled.run

    def run(self: Compiled, arrays: Any, machine: Any, **given: Any) -> Any:
        found.append((self, list(arrays), machine))
        return plain(self, arrays, machine, **given)

    with patch.object(Compiled, "run", run):  # the first call: those that are like it go another way
        contestant.check()
        contestant.call()
    return max(found, key=lambda one: len(one[0].plan(one[2].description).steps))


def profile(workload: Workload) -> None:
    """Print the table of a workload."""
    contestant = workload.make(np.random.default_rng(0))[OURS]
    compiled, arrays, machine = _captured(contestant)
    times = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        contestant.call()
        times.append(time.perf_counter() - start)
    plan, timed = compiled.plan(machine.description), _Timed(machine)
    stepwise.run(plan, arrays, machine)
    for _ in range(ROUNDS):
        stepwise.run(plan, arrays, timed)  # type: ignore[arg-type]
    lines: dict[int, _Line] = {}
    hosted = 0
    for step in _launches(plan.steps):
        if isinstance(step, OnHost):
            hosted += 1
            continue
        taken = np.reshape(timed.seconds.get(id(step.kernel.program), []), (ROUNDS, -1))
        moved, shapes = _described(plan, step)
        best = float(taken.sum(1).min())
        lines[id(step.kernel.program)] = _Line(step.kernel.program.name, taken.shape[1], best, moved, shapes)
    total = sum(line.seconds for line in lines.values())
    calls = f"{harness.duration(min(times))} a call, {len(lines)} kernels by themselves {harness.duration(total)}"
    host = f", {hosted} steps of the host" if hosted else ""
    table = Table(title=f"{workload.name}: {calls}{host}", title_justify="left")
    for column in ("kernel", "calls", "together", "share", "B/s", "writes ← reads"):
        table.add_column(column, justify="left" if column[0] in "kw" else "right", overflow="fold")
    for line in sorted(lines.values(), key=lambda line: -line.seconds)[:SHOWN]:
        rate = harness.short(line.moved * line.calls / line.seconds) if line.seconds else ""
        share = f"{line.seconds / total:.0%}"
        table.add_row(line.name, str(line.calls), harness.duration(line.seconds), share, rate, line.shapes)
    Console(width=150).print(table)


def main(words: Sequence[str]) -> int:
    with patch.object(peers, "torch", lambda: None), patch.object(peers, "jax", lambda: None):
        for workload in WORKLOADS:
            if not words or any(w.lower() in workload.name.lower() for w in words):
                profile(workload)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
