"""A machine compared with the interpreters, case after case, in this process or in several.

Comes in: the name of a device, and what is to be compared. Goes out: a `MachineRun`, and each outcome on the way.
Instructions come first, each on all its types. Then the first sample of every row, forward and its gradient, then the
second of every row, and so on. Of several processes each takes every n-th case; one that dies with a case has failed
it, and another goes on with the others.
"""

from __future__ import annotations

import multiprocessing
import platform
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from eshkol.backends import backend_class
from eshkol.backends.base import Backend
from eshkol.conformance.checks import cases_of, forward, gradient, gradient_case
from eshkol.conformance.instructions import instruction, instruction_cases
from eshkol.conformance.outcomes import FAIL, Outcome
from eshkol.conformance.results import KINDS, LONGEST, MachineRun
from eshkol.conformance.samples import rows
from eshkol.errors import EshkolError
from eshkol.ops.row import Op
from eshkol.tensors.devices import open_backend
from eshkol.version import __version__

LOST = "has to be restarted"  # what the error of a device says that answers no more
POLL_SECONDS = 0.2  # between two looks at the clock while other processes work
GRACE_SECONDS = 5.0  # that a process has to end when it is asked to


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be compared."""

    kinds: tuple[str, ...] = KINDS
    only: frozenset[str] = frozenset()  # names of instructions and rows; none for all
    samples: int = 1 << 30  # so many of each row, in any dtype
    seconds: float = float("inf")  # begin nothing after so long

    @property
    def takes_all(self) -> bool:
        return self == Plan()

    def on(self, machine: str) -> Plan:
        """What of it there is on a machine: one that compiles whole graphs runs no instructions."""
        if not backend_class(machine).whole_graphs:
            return self
        return replace(self, kinds=tuple(kind for kind in self.kinds if kind != "instruction"))


@dataclass(frozen=True, slots=True)
class Task:
    """One comparison that is to be made."""

    name: str  # of the case; its first word is the row's name
    kind: str
    run: Callable[[Backend], Outcome]


def tasks(plan: Plan) -> list[Task]:
    """All comparisons, in order."""
    return [*_every(plan.kinds, plan.only, plan.samples)]


def _every(kinds: Sequence[str], only: Set[str], samples: int) -> Iterator[Task]:
    if "instruction" in kinds:
        for one in instruction_cases(only):
            yield Task(one.name, "instruction", lambda backend, one=one: instruction(one, backend))  # type: ignore[misc]
    for op, number in _in_turn([op for op in rows() if not only or op.name in only], samples):
        case = cases_of(op)[number]
        if "forward" in kinds:
            yield Task(case.name, "forward", lambda backend, case=case: forward(case, backend.name))  # type: ignore[misc]
        if number == 0 and "gradient" in kinds and (case := gradient_case(op)) is not None:  # type: ignore[assignment]
            yield Task(case.name, "gradient", lambda backend, case=case: gradient(case, backend.name))  # type: ignore[misc]


def _in_turn(ops: Sequence[Op], samples: int) -> Iterator[tuple[Op, int]]:
    """The first sample of every row, then the second of every row, and so on."""
    counts = {op: min(len(cases_of(op)), samples) for op in ops}
    for number in range(max(counts.values(), default=0)):
        yield from ((op, number) for op in ops if number < counts[op])


def new_run(machine: str, commit: str = "") -> MachineRun:
    """A run of which nothing is done yet: what it is measured on. A machine that is not there is refused."""
    backend = open_backend(machine)
    host = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return MachineRun(
        backend.name, device_text(backend), host, __version__, commit or commit_of_sources(),
        time.strftime("%Y-%m-%d", time.gmtime()),
    )  # fmt: skip


def device_text(backend: Backend) -> str:
    """What a device is called by its driver; of those that only the host's processor does the work of, nothing."""
    kind, _, number = backend.name.partition(":")
    for facts in backend_class(kind).machines():
        if facts.get("number") == int(number or 0):
            words = [facts.get("name"), facts.get("platform"), facts.get("version") or facts.get("driver")]
            return ", ".join(" ".join(str(word).split()) for word in words if word)[:LONGEST]
    return ""


def commit_of_sources() -> str:
    """Which commit the sources are of, as git says, with a word about changes; empty where it does not know."""

    def told(*words: str) -> str:
        folder = str(Path(__file__).parent)
        return subprocess.run(
            ["git", "-C", folder, *words], capture_output=True, text=True, timeout=10, check=True
        ).stdout

    try:
        commit = told("rev-parse", "--short=10", "HEAD").strip()
        changed = told("status", "--porcelain", "--untracked-files=no", "--", "..").strip()
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{commit} with changes" if changed else commit


class Comparison:
    """The comparisons of a machine under way; `run` holds what came of them so far, also after Ctrl-C."""

    def __init__(self, run: MachineRun, plan: Plan, todo: Sequence[Task], jobs: int = 1) -> None:
        self.run, self.plan, self.whole = run, plan.on(run.machine), plan.takes_all
        self.todo = [task for task in todo if task.kind in self.plan.kinds]
        self.jobs = max(1, min(jobs, len(self.todo)))
        self.begun = time.monotonic()

    @property
    def over(self) -> bool:
        """Whether the time is."""
        return time.monotonic() - self.begun > self.plan.seconds

    def outcomes(self) -> Iterator[Outcome]:
        """Each outcome when it is there; when all are, the run says whether it is complete."""
        done = 0
        lost = False
        try:
            for outcome in self._here() if self.jobs == 1 else self._elsewhere():
                self.run.add(outcome)
                done += 1
                lost = lost or LOST in outcome.message
                yield outcome
                if lost:
                    break
        finally:
            self.run.seconds = time.monotonic() - self.begun
            self.run.complete = self.whole and done == len(self.todo) and not lost

    def _here(self) -> Iterator[Outcome]:
        backend = open_backend(self.run.machine)
        for task in self.todo:
            if self.over:
                return
            yield task.run(backend)

    def _elsewhere(self) -> Iterator[Outcome]:
        working = dict(self._started(range(first, len(self.todo), self.jobs)) for first in range(self.jobs))
        try:
            while working and not self.over:
                for pipe in wait(list(working), POLL_SECONDS):
                    assert isinstance(pipe, Connection)
                    found = self._received(pipe, working)
                    if found is not None:
                        yield found
        finally:
            for worker in working.values():
                worker.process.terminate()
            for pipe, worker in working.items():
                worker.process.join(GRACE_SECONDS)
                if worker.process.is_alive():
                    worker.process.kill()
                pipe.close()

    def _started(self, places: Sequence[int]) -> tuple[Connection, _Worker]:
        """A process that does the cases in these places."""
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=work, args=(theirs, self.run.machine, self.plan, places), daemon=True)
        process.start()
        theirs.close()
        return ours, _Worker(process, places)

    def _received(self, pipe: Connection, working: dict[Connection, _Worker]) -> Outcome | None:
        """What a process says: which case it begins, or what came of it; one that has ended says nothing any more."""
        worker = working[pipe]
        try:
            said = pipe.recv()
        except (EOFError, OSError):
            del working[pipe]
            pipe.close()
            worker.process.join(GRACE_SECONDS)
            if worker.at is not None:
                rest = worker.places[worker.places.index(worker.at) + 1 :]
                if rest:
                    working.update([self._started(rest)])
                task = self.todo[worker.at]
                return Outcome(task.name, task.kind, FAIL, f"its process ended with {worker.process.exitcode}")
            failure = worker.failure
            if failure is None:
                failure = f"a process ended with {worker.process.exitcode} before its first comparison"
            if failure:
                raise EshkolError(failure) from None
            return None
        if isinstance(said, int):
            worker.at = said
            return None
        if isinstance(said, str):
            worker.failure = said
            return None
        worker.at = None
        assert isinstance(said, Outcome)
        return said


@dataclass(slots=True)
class _Worker:
    """A process with its cases, the one that it is at, and how it ended: with nothing to say, or with an error."""

    process: Any
    places: Sequence[int]
    at: int | None = None
    failure: str | None = None


def work(pipe: Connection, machine: str, plan: Plan, places: Sequence[int]) -> None:
    """What another process does: some of the cases, each told before and afterwards."""
    try:
        backend, todo = open_backend(machine), tasks(plan)
        for k in places:
            pipe.send(k)
            outcome = todo[k].run(backend)
            pipe.send(outcome)
            if LOST in outcome.message:
                break
        pipe.send("")
    except EshkolError as error:
        pipe.send(error.message)
    except (KeyboardInterrupt, BrokenPipeError):  # whoever asked is told by the end of the pipe
        return
