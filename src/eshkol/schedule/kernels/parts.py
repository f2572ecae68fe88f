"""Groups whose reductions are taken in parts: stretches of long rows, or of columns walked row by row (or in tiles).

Comes in: a group whose elements are gone over once (no element depends on a reduction of the group). Goes out: a kernel
that writes partial results into memory, and one that combines them, a lane for each result, and computes what follows.
Which part an element belongs to depends on the shape and the description of the machine, never on what it is doing.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import GATHERS, LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.emit import NOTHING, Emitter
from eshkol.schedule.kernels.kernel import Kernel
from eshkol.schedule.kernels.rows import (
    Phases,
    Writer,
    floats_summed,
    merge,
    nest,
    neutral,
    operation,
    within,
    working,
)
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.space import Pattern, Point
from eshkol.schedule.kernels.tiles import tiles_kernel
from eshkol.support.extents import Extent, about

UNROLLED = 8  # columns of so few elements are computed by a lane each,
MANY = 1 << 17  # but not for a batch that may be another next time, unless so many elements make that worth it
MANY_ROWS = 64  # that may be gone over row by row, where all of them are reduced
AT_ONCE = 4  # rows that are added up before they are added to what is in memory,
SEQUENTIAL = 64  # but not where rows have so many elements and adjoin: memory is read fastest in one go,
COMBINED = 64  # rows whose parts one core takes together: a few lines of the cache of each
MOST_TERMS = 1024  # as long as no more are added one after another


def in_columns(runs: Pattern) -> bool:
    """Whether what is kept lies together: the reduction is over leading axes."""
    return runs[-1][1]


def parts_kernels(group: Any) -> tuple[Kernel, ...]:
    """The kernels of a group whose reductions are taken in parts."""
    phases = Phases(group.nodes, group.outs, group.runs)
    tiles = tiles_kernel(group, phases)
    if tiles is not None:
        return (tiles,)
    reduced = [n for n, keep in group.runs if not keep]
    worth = group.runs[0][1] or phases.whole >= MANY
    if in_columns(group.runs) and count(tuple(reduced)) <= UNROLLED and worth:
        return (_combining(group, phases, None),)
    cut = (_Columns if in_columns(group.runs) else _Stretches)(phases, group.target)
    return cut.kernel(group), _combining(group, phases, cut)


class _Cut(ABC):
    """How the elements of a group are cut into parts along the first reduced run.

    Where that comes first of all runs it may be a batch: then the program is told how it is cut.
    """

    def __init__(self, phases: Phases, runs: Pattern, others: int, target: MachineDescription) -> None:
        self.phases, self.target, self.runs = phases, target, runs
        self.reduced = [n for n, keep in runs if not keep]
        self.first = self.reduced[0]
        self.told = not phases.runs[0][1]
        self.parts = 1 if self.first <= UNROLLED else _divided(self.first, phases.whole, others, target)
        self.length = self.first // self.parts
        self.rest = self.first - self.parts * self.length  # what is left over: one more for each of the first parts

    def number(self, e: Emitter, value: int) -> Scalar:
        """A number that depends on how long the first reduced run is."""
        return e.extent(value) if self.told else e.number(value)

    @abstractmethod
    def kernel(self, group: Any) -> Kernel:
        """The kernel that computes the parts."""

    def more(self, e: Emitter, part: Scalar) -> tuple[Scalar, Scalar]:
        """How many places along the first reduced run, none or one, a part has besides its stretch; and which."""
        behind = part + self.number(e, self.parts * self.length)
        place = e.op("MIN", behind, self.number(e, self.first - 1))  # in range for all parts
        times = e.select(e.compare("LT", part, self.number(e, self.rest)), e.number(1), e.number(0))
        return times, e.at_most(place, self.first - 1)

    @abstractmethod
    def size(self) -> int:
        """Partial results of each reduction."""

    @abstractmethod
    def position(self, e: Emitter, part: Scalar, row: Scalar) -> Scalar:
        """Where the partial result of a row lies."""


def _divided(extent: int, work: int, others: int, target: MachineDescription) -> int:
    """Into how many parts an extent is cut, where others share the work: such that little is left over."""
    if type(extent) is Extent:  # any number of parts is right that is no larger
        extent = about(extent) // 2
    work, others = about(work), about(others)
    wanted = max(1, min(extent, work // target.part_work, -(-target.busy // others)))
    nearby = range(wanted, max(1, wanted // 2) - 1, -1)
    return min(nearby, key=lambda n: (extent % n * target.busy // extent, -n))


class _Stretches(_Cut):
    """Few long rows, in stretches."""

    def __init__(self, phases: Phases, target: MachineDescription) -> None:
        runs = within(phases)
        # A first run that is cut into parts must have enough of them for all cores.
        enough = len(runs) == len(phases.runs) or len(phases.runs) > 1 or runs[0][0] >= MANY_ROWS
        super().__init__(phases, runs if enough else phases.runs, phases.lanes, target)

    def size(self) -> int:
        return self.parts * self.phases.lanes

    def position(self, e: Emitter, part: Scalar, row: Scalar) -> Scalar:
        return part * self.phases.lanes + row

    def kernel(self, group: Any) -> Kernel:
        w = Writer(group, self.phases, self.size(), self.runs)
        e = w.e
        part, row = e.lane // self.phases.lanes, e.lane % self.phases.lanes
        w.begin(row)
        totals = {n: e.variable(e.constant(neutral(n), working(n))) for n in self.phases.reductions}

        def take(places: Sequence[Scalar], totals: dict[Node, Scalar]) -> None:
            point = w.point(w.kept, places)
            for node, term in w.terms(point, 0).items():
                e.accumulate(totals[node], operation(node), term)
            w.write_full([point], 0, {})

        def body(places: Sequence[Scalar], totals: dict[Node, Scalar]) -> None:
            take([start + places[0], *places[1:]], totals)

        blocked = floats_summed(self.phases.reductions)
        start = part * self.number(e, self.length)
        nest(e, [self.length, *self.reduced[1:]], totals, body, blocked=blocked, told=self.told)
        if self.told or self.rest:
            times, place = self.more(e, part)
            with e.counted(times):
                if self.reduced[1:]:
                    rows: Callable[..., None] = lambda places, totals: take([place, *places], totals)
                    nest(e, self.reduced[1:], totals, rows, blocked=blocked, told=False)
                else:
                    take([place], totals)
        for k, (node, total) in enumerate(totals.items()):
            w.part(f"part{k}", working(node), self.size()).store(self.position(e, part, row), total)
        return w.kernel(LaunchConfig.linear(self.size(), 1), fixed=True)


class _Columns(_Cut):
    """Columns, walked row by row in stretches of a row."""

    def __init__(self, phases: Phases, target: MachineDescription) -> None:
        runs = within(phases)
        self.kept = [n for n, keep in runs if keep]
        self.last = self.kept[-1]
        held = not phases.full_outs and about(phases.whole) <= target.cached
        self.width = _width(self.last, bool(phases.full_outs), target.held_stretch if held else target.stretch)
        self.stretches = -(-self.last // self.width)
        self.outer = count(tuple(self.kept[:-1]))
        super().__init__(phases, runs, self.stretches * self.outer, target)
        # Rows of a matrix: nothing depends on how long they are but loops and where the next one begins.
        self.plain = self.told and len(self.runs) == 2 and self.stretches == 1
        adjoin = len(self.runs) == 2 and self.stretches == 1 and SEQUENTIAL <= self.width <= target.stretch
        self.at_once = 1 if adjoin and self.length <= MOST_TERMS else AT_ONCE

    def size(self) -> int:
        return self.parts * self.outer * self.stretches * self.width

    def position(self, e: Emitter, part: Scalar, row: Scalar) -> Scalar:
        if self.stretches * self.width == self.last:
            stride = self.outer * self.last
            return part * (e.extent(stride) if self.plain else stride) + row
        outer, place = e.digit(row, self.last, self.outer), e.digit(row, 1, self.last)
        stretch = place // self.width
        within = e.at_most(place - self._start(e, stretch), self.width - 1)
        return ((part * self.outer + outer) * self.stretches + stretch) * self.width + within

    def _start(self, e: Emitter, stretch: Scalar) -> Scalar:
        """The first column of a stretch; the last stretch overlaps with the one before it, so as to be as wide."""
        start, most = stretch * self.width, self.last - self.width
        if self.stretches * self.width == self.last:
            return start
        return e.at_most(e.select(e.compare("LT", start, most), start, most), most)

    def kernel(self, group: Any) -> Kernel:
        lanes = self.parts * self.outer * self.stretches
        w = Writer(group, self.phases, lanes, self.runs)
        e = w.e
        stretch = e.lane % self.stretches
        outer = e.lane // self.stretches % self.outer
        part = e.lane // (self.stretches * self.outer)
        width = e.extent(self.width) if self.plain else e.number(self.width)
        start, base = self._start(e, stretch), e.lane * width
        around = [e.digit(outer, count(tuple(self.kept[k + 1 : -1])), n) for k, n in enumerate(self.kept[:-1])]
        sums = [w.part(f"part{k}", working(n), self.size()) for k, n in enumerate(self.phases.reductions)]
        with e.counted(width) as c:
            for node, write in zip(self.phases.reductions, sums, strict=True):
                write.store(base + c, neutral(node))

        turning = [*[False] * (len(self.runs) - 1), True]

        def point_at(c: Scalar, places: Sequence[Scalar]) -> Point:
            point = w.point([*around, start + c], places)
            if self.plain:
                point.lies_at(places[0] * width + c)
            return point

        def add(rows: Sequence[Sequence[Scalar]]) -> None:
            """Take some rows, given by their places along the reduced runs, into the sums."""
            settled = [w.values.settled(self.phases.full, point_at(e.number(0), places), turning) for places in rows]
            with e.counted(width) as c:
                points = [point_at(c, places) for places in rows]
                for point, taken in zip(points, settled, strict=True):
                    point.settled = taken
                terms = [w.terms(point, 0) for point in points]
                for node, write in zip(self.phases.reductions, sums, strict=True):
                    total = terms[0][node]
                    for more in terms[1:]:
                        total = merge(e, node, total, more[node])
                    write.store(base + c, merge(e, node, write.load(base + c), total))
                for point in points:
                    w.write_full([point], 0, {})

        # The rows of a part are those along the first reduced run (by `length`) and all that are within it.
        inner, length = self.reduced[1:], self.length
        if self.told and not inner:
            self._walk_told(e, part, add)
        elif inner:
            told = self.number(e, length)
            with e.counted(told) as j:
                self._walk(e, [part * told + j], inner, e.number(0), add)
        else:
            self._walk(e, [], [length], part * length, add)
        if (self.told and inner) or (not self.told and self.rest):
            times, place = self.more(e, part)
            with e.counted(times):
                if inner:
                    self._walk(e, [place], inner, e.number(0), add)
                else:
                    add([[place]])
        return w.kernel(LaunchConfig.linear(lanes, 1), fixed=True)

    def _walk_told(self, e: Emitter, part: Scalar, add: Callable[[Sequence[Sequence[Scalar]]], None]) -> None:
        """Go over the rows of a part of which only the program's parameters say how many there are."""
        start, last = part * e.extent(self.length), e.extent(self.first - 1)
        with e.counted(e.extent(self.length // self.at_once)) as q:
            add([[start + q * self.at_once + k] for k in range(self.at_once)])
        left, behind = (
            e.extent(self.length % self.at_once),
            start + e.extent(self.length // self.at_once * self.at_once),
        )
        times, place = self.more(e, part)
        with e.counted(left + times) as j:
            row = e.select(e.compare("LT", j, left), behind + j, place)
            add([[e.at_most(e.op("MIN", row, last), self.first - 1)]])

    def _walk(
        self,
        e: Emitter,
        outer: Sequence[Scalar],
        extents: Sequence[int],
        offset: Scalar,
        add: Callable[[Sequence[Sequence[Scalar]]], None],
    ) -> None:
        """Go over rows, several at once; places along the last extent begin at an offset."""
        last = extents[-1]
        with ExitStack() as stack:
            places = [*outer, *(stack.enter_context(e.counted(n)) for n in extents[:-1])]
            if last >= self.at_once:
                with e.counted(last // self.at_once) as q:
                    add([[*places, offset + q * self.at_once + k] for k in range(self.at_once)])
            if last % self.at_once:
                with e.counted(last % self.at_once) as j:
                    add([[*places, offset + last // self.at_once * self.at_once + j]])


def _width(extent: int, writes: bool, wanted: int) -> int:
    """How many columns are walked together; where elements are written, no two stretches may overlap."""
    if extent <= 2 * wanted:
        return extent
    exact = next((n for n in range(wanted, wanted // 8, -1) if extent % n == 0), None)
    return exact or (extent if writes else wanted)


def _combining(group: Any, phases: Phases, cut: _Cut | None) -> Kernel:
    """The kernel that takes parts together (or all elements of a row) and computes what follows for each row."""
    w = Writer(group, phases, phases.lanes)
    e = w.e
    w.begin(e.lane)
    totals = {n: e.variable(e.constant(neutral(n), working(n))) for n in phases.reductions}
    if cut is None:
        for places in _all_places([n for n, keep in phases.runs if not keep]):
            point = w.point(w.kept, [e.number(p) for p in places])
            for node, term in w.terms(point, 0).items():
                e.accumulate(totals[node], operation(node), term)
            w.write_full([point], 0, {})
    else:
        with e.counted(cut.number(e, cut.parts)) as part:
            for k, (node, total) in enumerate(totals.items()):
                memory = w.part(f"part{k}", working(node), cut.size())
                e.accumulate(total, operation(node), memory.load(cut.position(e, part, e.lane)))
    for node, total in totals.items():
        w.values.rows[node] = e.convert(total, node.dtype)
    w.finish_rows()
    told = {GATHERS: ""} if cut is not None else NOTHING
    return w.kernel(LaunchConfig.linear(phases.lanes, COMBINED), fixed=True, told=told)


def _all_places(extents: Sequence[int]) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = [()]
    for extent in extents:
        found = [(*places, p) for places in found for p in range(extent)]
    return found
