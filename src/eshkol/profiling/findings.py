"""What was found: the data of a profile, and sums of it.

Comes in: what a recording has taken down. Goes out: `Findings`, with sums by procedure, line and kernel. Tables, pages
and traces are made of it by the modules beside this one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from eshkol.profiling.frames import Frame, Stack
from eshkol.profiling.kernels import Kernel
from eshkol.profiling.peaks import Peaks, peaks
from eshkol.support.observing import COMPILE, LOADER, REGION, TRANSFER, Span


class Sample(NamedTuple):
    """Where a thread was, and the processor time since the sample before."""

    time: int
    weight: int
    stack: Stack
    thread: int


class KernelCall(NamedTuple):
    """One call of a kernel, by its number among the kernels."""

    kernel: int
    begin: int
    end: int
    thread: int


class Collection(NamedTuple):
    """A collection of Scheme's heap, with the sampled bytes alive before and after; or a moment between two."""

    begin: int
    end: int
    before: int
    after: int


class Allocation(NamedTuple):
    """What a line has taken of Scheme's heap: in all, alive at the end, and where most was alive."""

    stack: Stack
    handed_out: int
    live: int
    at_peak: int


class Callback(NamedTuple):
    """A callable of Python that Scheme called."""

    name: str
    calls: int
    total: int  # nanoseconds


class Share(NamedTuple):
    """Something that took processor time: itself, and with all that it called; parts of all that was sampled."""

    name: str
    itself: float
    total: float


class Stage(NamedTuple):
    """What one kind of spans took: by itself, without what others took meanwhile; the bytes, where some were moved."""

    name: str
    times: int
    seconds: float
    size: int


@dataclass
class Findings:
    """What was found."""

    begin: int
    end: int
    processor: int
    samples: list[Sample] = field(repr=False)
    kernels: list[Kernel] = field(repr=False)
    calls: list[KernelCall] = field(repr=False)
    spans: list[Span] = field(repr=False)
    collections: list[Collection] = field(repr=False)
    allocations: list[Allocation] = field(repr=False)
    heap_peak: int
    tensor_peak: int
    tensor_timeline: list[tuple[int, int]] = field(repr=False)
    tensors: list[tuple[Frame | None, int]] = field(repr=False)  # what held the peak, by lines
    callbacks: list[Callback] = field(repr=False)
    notes: list[str] = field(repr=False)

    # ---- sums ------------------------------------------------------------------------------------------------------

    @property
    def seconds(self) -> float:
        """How long it was taken."""
        return (self.end - self.begin) * 1e-9

    @cached_property
    def sampled(self) -> int:
        """The processor time that samples stand for, in nanoseconds."""
        return sum(sample.weight for sample in self.samples)

    @cached_property
    def stacks(self) -> dict[Stack, int]:
        """Processor time by stack, in nanoseconds."""
        found: Counter[Stack] = Counter()
        for sample in self.samples:
            found[sample.stack] += sample.weight
        return dict(found)

    def procedures(self) -> list[Share]:
        """Procedures and functions, those that took most themselves first."""
        return self._shares(
            lambda frame: ["/".join(frame.path[: k + 1]) for k in range(len(frame.path))] or [frame.name]
        )

    def lines(self) -> list[Share]:
        """Lines of programs."""
        return self._shares(lambda frame: [frame.where] if frame.file else [])

    def share(self, name: str) -> float:
        """The part of all samples in which a procedure, function or line is at work, itself or in what it called."""
        found = next((s for s in (*self.procedures(), *self.lines()) if s.name == name), None)
        return 0.0 if found is None else found.total

    def _shares(self, names: Callable[[Frame], list[str]]) -> list[Share]:
        itself: Counter[str] = Counter()
        total: Counter[str] = Counter()
        for stack, weight in self.stacks.items():
            for name in {name for frame in stack for name in names(frame)}:
                total[name] += weight
            for name in names(stack[-1])[-1:] if stack else ():
                itself[name] += weight
        whole = self.sampled or 1
        ordered = sorted(total, key=lambda name: (-itself[name], -total[name], name))
        return [Share(name, itself[name] / whole, total[name] / whole) for name in ordered]

    def stages(self, kind: str = COMPILE) -> list[Stage]:
        """What spans of a kind took: the stages of the compiler, transfers, waiting for loaders, regions."""
        found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
        for span, own in without_inner([s for s in self.spans if s.kind == kind]):
            row = found[span.name]
            row[0] += 1
            row[1] += span.end - span.begin if kind == REGION else own
            row[2] += span.size
        stages = [Stage(name, n, t * 1e-9, size) for name, (n, t, size) in found.items()]
        return sorted(stages, key=lambda stage: -stage.seconds)

    @property
    def waited(self) -> float:
        """Seconds of waiting for batches of loaders."""
        return sum(stage.seconds for stage in self.stages(LOADER))

    @property
    def compiled(self) -> float:
        """Seconds of compiling."""
        return sum(stage.seconds for stage in self.stages(COMPILE))

    @property
    def transferred(self) -> int:
        """Bytes that were copied between machines."""
        return sum(stage.size for stage in self.stages(TRANSFER))

    @property
    def pauses(self) -> list[float]:
        """Seconds of each collection of Scheme's heap."""
        return [(c.end - c.begin) * 1e-9 for c in self.collections if c.end > c.begin]

    def allocated(self, *, at: str = "at_peak") -> list[tuple[str, int]]:
        """Bytes of Scheme's heap by line: `at_peak`, `live` at the end, or all that was `handed_out`."""
        found: Counter[str] = Counter()
        for one in self.allocations:
            own = next((frame for frame in reversed(one.stack) if frame.is_own), None)
            found["(elsewhere)" if own is None else f"{own.name} {own.where}"] += getattr(one, at)
        return [(name, size) for name, size in found.most_common() if size]

    @cached_property
    def peaks(self) -> Peaks:
        """What the machine can do at most: measured now, if it never was, or what a kernel here did at its best."""
        measured = peaks()
        done = [kernel.work.operations / kernel.least * 1e9 for kernel in self.kernels if kernel.least]
        return measured._replace(operations_a_second=max([measured.operations_a_second, *done]))


def without_inner(spans: list[Span]) -> list[tuple[Span, int]]:
    """Spans, each with what it took without those that ran within it on its thread."""
    found: list[tuple[Span, int]] = []
    opened: dict[int, list[tuple[Span, list[int]]]] = defaultdict(list)
    for span in sorted(spans, key=lambda s: (s.begin, -s.end)):
        around = opened[span.thread]
        while around and around[-1][0].end <= span.begin:
            _close(around, found)
        if around:
            around[-1][1][0] += span.end - span.begin
        around.append((span, [0]))
    for around in opened.values():
        while around:
            _close(around, found)
    return found


def _close(around: list[tuple[Span, list[int]]], found: list[tuple[Span, int]]) -> None:
    span, (inner,) = around.pop()
    found.append((span, span.end - span.begin - inner))
