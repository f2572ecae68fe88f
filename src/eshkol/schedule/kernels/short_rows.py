"""Groups with reductions along many short rows, side by side: a vector holds elements of as many rows.

Of rows shorter than a vector, or a little longer, most exponentials would be computed one by one. Comes in: a group of
rows of a few elements, some of which are dear. Goes out: one kernel, in which a lane copies a band of rows into memory
of its own, turned, goes along it with all elements of a row in registers, and copies what that gives back.
"""

from __future__ import annotations

from typing import Any

from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops.movement import expand
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.costs import dear, weight
from eshkol.schedule.kernels.kernel import Kernel, core_block
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.rows import Phases, Writer, merge, neutral, working
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.space import Point, spread
from eshkol.schedule.kernels.values import SAME, read_key, straight
from eshkol.support.extents import Extent

LONGEST = 16  # elements of a row
VECTOR = 16  # bytes; rows of whole vectors of these are computed one by one
BAND = 64  # rows that a lane takes at a time
LEAST = 1 << 12  # elements of all rows: of fewer, there is too little for all cores
MOST = 1 << 10  # instructions of a row


def short_rows_kernel(group: Any) -> Kernel | None:
    """The kernel of a group; None where it is none of these."""
    runs = group.runs
    if [keep for _, keep in runs] != [True, False] or any(type(n) is Extent for n, _ in runs):
        return None
    (rows, _), (length, _) = runs
    if not 1 < length < LONGEST or rows * length < LEAST:
        return None
    phases = Phases(group.nodes, group.outs, runs)
    return _Bands(group, phases, rows, length).kernel() if _suits(group, phases, length) else None


def _suits(group: Any, phases: Phases, length: int) -> bool:
    """Whether vectors of rows are worth it, and whatever is read lies as rows, as single numbers or as one row."""
    moving = [n for n in group.nodes if not (n.op.elementwise or n.op.reduces or n.op is expand or n.op in SAME)]
    if moving or any(n.dtype.is_complex or n.outs is not None for n in (*group.nodes, *group.inputs)):
        return False
    dearest = [n for n in phases.full if dear(n)]
    unfilled = [n for n in dearest if length == 2 or length % (VECTOR // max(n.dtype.size, 4))]
    if not unfilled or length * sum(weight(n) for n in group.nodes if n.op.elementwise) > MOST:
        return False
    inside = set(group.nodes)
    return all(_kind(phases, x, node) for node in group.nodes for x in node.inputs if x not in inside)


def _kind(phases: Phases, x: Node, reader: Node) -> str | None:
    """How an input lies to the rows of a reader."""
    runs, shape = phases.runs, reader.shape if reader.op.reduces is None else x.shape
    size = count(shape)
    if count(x.shape) == 1:
        return "number"
    if count(x.shape) == size:
        return "full" if size == phases.whole else "row" if size == phases.lanes else None
    if size != phases.whole or x not in straight(reader):
        return None
    pattern = spread(x.shape, shape)
    return "row" if pattern == runs else "same" if pattern == tuple((n, not keep) for n, keep in runs) else None


class _Bands:
    def __init__(self, group: Any, phases: Phases, rows: int, length: int) -> None:
        self.group, self.phases, self.rows, self.length = group, phases, rows, length
        self.lanes = -(-rows // BAND)
        self.w = Writer(group, phases, self.lanes)
        self.memory: dict[Node, Write] = {}  # of the lane, for what is copied

    def kernel(self) -> Kernel:
        w, e = self.w, self.w.e
        first = e.lane * BAND
        reads = {x: read for x, read in w.values.reads.items() if isinstance(read, Read)}
        copied = [x for x in reads if count(x.shape) in (self.phases.whole, self.phases.lanes)]
        with e.counted(BAND) as r:
            row = e.within(first + r, self.rows)  # where there is none, the last again
            for x in copied:
                for k in range(self._width(x)):
                    self._own(x).store(self._place(x, r, k), reads[x].load(row * self._width(x) + k))
        self._share(copied)
        with e.counted(BAND) as r:
            self._row(copied, first, r)
        here: Any = BAND
        if self.rows % BAND:
            here = e.op("MIN", e.number(BAND), self.rows - first)
        with e.counted(here) as r:
            row = e.within(first + r, self.rows)
            for out in self.group.outs:
                for k in range(self._width(out)):
                    w.store(out, row * self._width(out) + k, self._own(out).load(self._place(out, r, k)))
        block = core_block(self.group.target, BAND * self.length)
        return w.kernel(LaunchConfig.linear(self.lanes, block), fixed=True)

    def _width(self, node: Node) -> int:
        """Elements of a row."""
        return self.length if count(node.shape) == self.phases.whole else 1

    def _own(self, node: Node) -> Write:
        if node not in self.memory:
            name, size = f"part{len(self.memory)}", self.lanes * BAND * self._width(node)
            self.memory[node] = self.w.part(name, node.dtype, size)
        return self.memory[node]

    def _share(self, copied: list[Node]) -> None:
        """Give results the memory of inputs: rounds read all of a row before they write."""
        free = list(copied)
        for out in self.group.outs:
            host = next((x for x in free if x.dtype is out.dtype and self._width(x) == self._width(out)), None)
            if host is not None:
                free.remove(host)
                self.memory[out] = self.memory[host]

    def _place(self, node: Node, r: Scalar, k: int) -> Scalar:
        """Where element k of a row lies among those of the other rows of a lane."""
        return self.w.e.lane * (BAND * self._width(node)) + (r + k * BAND)

    def _row(self, copied: list[Node], first: Scalar, r: Scalar) -> None:
        """All elements of a row, through all loops that rows of a group are computed in."""
        w, e, phases, values = self.w, self.w.e, self.phases, self.w.values
        row = e.at_most(first + r, self.lanes * BAND - 1)
        points = [w.point([row], [e.number(k)]) for k in range(self.length)]
        w.row_point = Point(e, (phases.lanes,), (row,))
        for x in copied:
            found = [self._own(x).load(self._place(x, r, k)) for k in range(self._width(x))]
            if self._width(x) == 1:
                w.row_point.known[x] = found[0]
                values.row_reads.update({read_key(x, node.shape): found[0] for node in phases.full})
            else:
                for point, value in zip(points, found, strict=True):
                    point.known[x] = value
        results: dict[Node, list[Scalar]] = {}
        for loop in range(phases.loops):
            for node in phases.row:
                if phases.level[node] == loop and node not in values.rows:
                    w.finished(node)
            totals = {n: e.constant(neutral(n), working(n)) for n in phases.reductions if phases.level[n] == loop + 1}
            for point in points:
                for node, term in w.terms(point, loop).items():
                    totals[node] = merge(e, node, totals[node], term)
            for node in phases.full_outs:
                if phases.level[node] == loop:
                    results[node] = [values.at(node, point) for point in points]
            values.rows.update({node: e.convert(total, node.dtype) for node, total in totals.items()})
        w.compute_rows()
        results |= {node: [values.rows[node]] for node in self.group.outs if not phases.is_full(node)}
        for node, found in results.items():
            for k, value in enumerate(found):
                self._own(node).store(self._place(node, r, k), value)
