"""What kernels did: the rows that C took down, with names, shapes, lines, bytes and operations.

Comes in: rows of (sequence, step), and the sequences, which know the plan that they are made of. Goes out: `Kernel`s;
calls of one kernel on the same shapes from one line are one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from eshkol.profiling.frames import Stack
from eshkol.schedule.plan.steps import Launch, OnHost, Plan, Together, walk
from eshkol.schedule.plan.work import PlanWork, Work

_UNKNOWN = Work("(unknown)", "", "", 0, 0, 0)


@dataclass
class Kernel:
    """A kernel and all its calls."""

    work: Work
    count: int = 0
    total: int = 0  # nanoseconds of all calls
    least: int = 1 << 62
    most: int = 0

    @property
    def rate(self) -> float:
        """Bytes a second that it reads and writes, on average; caches may hold some of them."""
        return self.work.moved * self.count / self.total * 1e9 if self.total else 0.0

    @property
    def speed(self) -> float:
        """Floating-point operations a second."""
        return self.work.operations * self.count / self.total * 1e9 if self.total else 0.0


class _Sequence:
    """The steps of a sequence, as a plan has them."""

    def __init__(self, native: Any, works: dict[int, PlanWork]) -> None:
        about: Any = native.about or ((None, ()), ())
        self._plan: Plan | None = about[0][0]
        self._steps: Any = about[0][1]
        self._origin: Any = about[1]
        self._works = works

    def work(self, step: int) -> Work:
        """What a native step does; of several launches that are one loop, all of them."""
        if self._plan is None or step >= len(self._origin):
            return _UNKNOWN
        first = self._origin[step]
        work = self._works.setdefault(id(self._plan), PlanWork(self._plan))
        found = self._steps[first]
        if found is not None:
            return work.of(found)
        return _joined([work.of(launch) for launch in self._launches(first)])

    def _launches(self, first: int) -> Iterable[Launch | OnHost]:
        """The steps that belong to one of several launches: those behind it, as far as they are launches."""
        assert self._plan is not None
        following = self._steps[first + 1]
        for step in walk(self._plan.steps):
            if isinstance(step, Together) and step.launches[0] is following:
                return step.launches
        return ()


def _joined(works: list[Work]) -> Work:
    if not works:
        return _UNKNOWN
    names = list(dict.fromkeys(work.name for work in works))
    name = f"{len(works)} × {names[0]}" + (f" and {len(names) - 1} others" if len(names) > 1 else "")
    return Work(
        name, f"{works[0].shapes}, …", works[0].file, works[0].line, sum(w.moved for w in works),
        sum(w.operations for w in works),
    )  # fmt: skip


def kernels_of(
    rows: Any, sequences: Iterable[Any], stacks: Mapping[int, Stack]
) -> tuple[list[Kernel], dict[tuple[int, int, int], int]]:
    """The kernels, those that took most first, and which of them is meant by (sequence, step, stack of Scheme)."""
    works: dict[int, PlanWork] = {}
    known = {native.address: native for native in sequences}
    told: dict[int, _Sequence] = {}
    found: dict[Work, Kernel] = {}
    meant: dict[tuple[int, int, int], Work] = {}
    for address, step, stack, count, total, least, most in rows.tolist():
        if address not in told and address in known:
            told[address] = _Sequence(known[address], works)
        work = told[address].work(step) if address in told else _UNKNOWN
        line = next((frame for frame in reversed(stacks.get(stack, ())) if frame.is_own), None)
        if line is not None and not work.file:
            work = replace(work, file=line.file, line=line.line)
        kernel = found.setdefault(work, Kernel(work))
        kernel.count += count
        kernel.total += total
        kernel.least, kernel.most = min(kernel.least, least), max(kernel.most, most)
        meant[address, step, stack] = work
    ordered = sorted(found.values(), key=lambda kernel: -kernel.total)
    places = {kernel.work: k for k, kernel in enumerate(ordered)}
    return ordered, {key: places[work] for key, work in meant.items()}
