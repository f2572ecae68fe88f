"""Kernels for machines of blocks: the lanes of a block go over a row side by side, and combine what they found.

Comes in: a group with reductions, as `rows.py` and `parts.py` take it for cores. Goes out: kernels in which
neighbouring lanes read neighbouring elements. Lanes of a sub-group exchange partial results in registers; those of
sub-groups meet in the memory that a block shares. Long rows of which there are few are taken in parts by several
blocks, and columns by lanes that stand side by side; another kernel combines the parts. How the work is divided depends
on shapes and the description of the machine alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import VECTORS, LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.code import OutOfRegisters
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel
from eshkol.schedule.kernels.rows import Phases, Writer, merge, neutral, operation, rows_kernel, working
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.space import Point, columns

FEWEST = 32  # terms of a part of a column
NEIGHBOURS = 4  # elements that a lane reads as a vector
MOST_HELD = 32  # elements of a row that a lane keeps in registers from one loop over it to the next
MOST_ALONE = 24  # the same, where a sub-group has a row alone: more were slower on an H200


@dataclass(frozen=True, slots=True)
class SharedRow:
    """A lane's place among those that share a row: lane number `place` of `width`, a power of two."""

    place: Scalar
    width: int

    def places(self, held: int) -> list[Scalar]:
        """The places in the row of so many elements that a lane keeps: some neighbours each, which are read at once."""
        near = NEIGHBOURS if held % NEIGHBOURS == 0 else 1
        return [self.place * near + (k // near * near * self.width + k % near) for k in range(held)]

    def rounds(self, e: Emitter, total: int | Scalar) -> Scalar:
        """How many of so many elements, dealt out one by one, are the lane's."""
        if isinstance(total, int):
            if total % self.width == 0:
                return e.number(total // self.width)
            total = e.number(total)
        before = total + (self.width - 1) - self.place  # so that it is never below 0
        return before // self.width

    def elements(self, e: Emitter, total: int, several: int, take: Callable[[Scalar], None]) -> None:
        """Code for each of so many elements that is the lane's: several in a round, and then what is left."""
        whole = total // (several * self.width)
        if whole > 1 and several > 1:
            with e.counted(whole) as round_:
                for k in range(several):
                    at = (round_ * several + k) * self.width + self.place
                    take(e.at_most(at, total - 1))
        else:
            whole = 0
        done = whole * several * self.width
        left = total - done
        if left:
            with e.counted(self.rounds(e, left)) as round_:
                at = round_ * self.width + (self.place + done)
                take(e.at_most(at, total - 1) if left % self.width == 0 else bounded(e, at, total - 1))


def bounded(e: Emitter, at: Scalar, last: int) -> Scalar:
    """A place that is at most `last` anyhow, in a way that machines see, too: they leave checks out then."""
    return e.at_most(e.op("MIN", at, e.number(last)), last)


def width_for(elements: int, target: MachineDescription) -> int:
    """How many lanes share so many elements."""
    return min(target.block, 1 << max(elements - 1, 1).bit_length())


# --- rows -----------------------------------------------------------------------------------------


def block_rows_kernel(group: Any) -> Kernel:
    """Rows that a block computes each; short ones are left to a lane each."""
    phases = Phases(group.nodes, group.outs, group.runs)
    row_length = columns(group.runs)
    if row_length <= group.target.short_row:
        return rows_kernel(group)
    subgroup, width = group.target.subgroup, width_for(row_length, group.target)
    each, left = divmod(row_length, subgroup)
    if 1 < subgroup < width and each <= MOST_ALONE and not left and phases.lanes >= group.target.busy:
        with suppress(OutOfRegisters):
            return _rows(group, phases, subgroup, each)  # a sub-group for each row, whose lanes need not meet
    each, left = divmod(row_length, width)
    if phases.loops > 1 and each <= MOST_HELD and not left:
        with suppress(OutOfRegisters):
            return _rows(group, phases, width, each)
    return _rows(group, phases, width, 0)


def _rows(group: Any, phases: Phases, width: int, held: int) -> Kernel:
    """Rows whose elements so many lanes share; each keeps so many in registers, or reads them again in every loop."""
    w = Writer(group, phases, phases.lanes * width)
    e, hosts = w.e, {} if held else phases.hosts()
    side = SharedRow(e.lane % width, width)
    w.begin(e.lane // width)
    points = [_point(w, e.at_most(place, columns(group.runs) - 1)) for place in side.places(held)]
    for loop in range(phases.loops):
        for node in phases.row:
            if phases.level[node] == loop and node not in w.values.rows:
                w.finished(node)
        _loop(w, loop, side, hosts, points)
        w.note_kept(loop, hosts)
    w.compute_rows()
    with e.only_if(e.compare("EQ", side.place, 0)):
        w.store_rows()
    lanes = group.target.block if width == group.target.subgroup > 1 else width
    near = held > 0 and held % NEIGHBOURS == 0
    made = w.kernel(_launch(w, lanes), fixed=near or not phases.runs[0][1])
    if not near:
        return made
    return replace(made, program=replace(made.program, metadata={**made.program.metadata, VECTORS: "1"}))


def _launch(w: Writer, width: int) -> LaunchConfig:
    """Blocks of so many lanes, for a row or part, or for several rows; a group of too much shared memory is cut."""
    if w.e.shared_memory > w.group.target.shared_memory:
        raise OutOfRegisters(f"a kernel needs {w.e.shared_memory} bytes of shared memory")
    return LaunchConfig.linear(w.lanes, width, w.e.shared_memory)


def _point(w: Writer, at: Scalar) -> Point:
    """The point at a place of the row."""
    return w.point(w.kept, _digits(w.e, at, [n for n, keep in w.phases.runs if not keep]))


def _loop(w: Writer, loop: int, side: SharedRow, hosts: dict[Node, tuple[Node, int]], points: Sequence[Point]) -> None:
    """One loop over the elements of a row, by the lanes of a block side by side.

    Points are those of a lane's elements, if it keeps them: what is known of them in one loop is known in the next.
    """
    e, phases = w.e, w.phases
    mine = [n for n in phases.reductions if phases.level[n] == loop + 1]
    totals = _begun(e, mine)

    def add(point: Point) -> None:
        for node, term in w.terms(point, loop).items():
            e.accumulate(totals[node], operation(node), term)

    def take(point: Point) -> None:
        add(point)
        w.write_full(point, loop, hosts)

    for point in points:
        add(point)
    for start in range(0, len(points), NEIGHBOURS):
        w.write_several(points[start : start + NEIGHBOURS], loop, hosts)
    if not points:
        length = columns(phases.runs)
        side.elements(e, length, w.group.target.several, lambda at: take(_point(w, at)))
    for node, total in _combined(e, totals, side, w.group.target.subgroup).items():
        w.values.rows[node] = e.convert(total, node.dtype)
    if any(first == loop for _, first in hosts.values()):
        e.barrier()  # what one lane has kept, another may pick


def _begun(e: Emitter, reductions: Sequence[Node]) -> dict[Node, Scalar]:
    return {n: e.variable(e.constant(neutral(n), working(n))) for n in reductions}


def _digits(e: Emitter, flat: Scalar, extents: Sequence[int]) -> list[Scalar]:
    return [e.digit(flat, count(tuple(extents[k + 1 :])), n) for k, n in enumerate(extents)]


def _combined(e: Emitter, totals: dict[Node, Scalar], side: SharedRow, subgroup: int) -> dict[Node, Scalar]:
    """Partial results of the lanes that share a row, as one that all of them have.

    Lanes of a sub-group exchange theirs in registers; what each sub-group found meets in shared memory, of which every
    sub-group reads and combines all, so that there is one barrier. Where there are more sub-groups than lanes in one
    (or none), a tree of steps with a barrier after each comes before that.
    """
    if side.width == 1 or not totals:
        return totals
    near = min(subgroup, side.width)
    totals = _exchanged(e, totals, near)
    groups = side.width // near
    if groups == 1:
        return totals
    memory = {node: e.shared(total.dtype, groups) for node, total in totals.items()}
    group = e.at_most(side.place // near, groups - 1)
    with e.only_if(e.compare("EQ", side.place % near, 0)) if near > 1 else nullcontext():
        for node, total in totals.items():
            memory[node].store(group, total)
    e.barrier()
    while groups > near:
        groups //= 2
        with e.only_if(e.compare("LT", side.place, groups)):
            for node, shared in memory.items():
                one, other = shared.load(side.place), shared.load(bounded(e, side.place + groups, 2 * groups - 1))
                shared.store(side.place, merge(e, node, one, other))
        e.barrier()
    return _exchanged(e, {node: shared.load(side.place % groups) for node, shared in memory.items()}, groups)


def _exchanged(e: Emitter, totals: dict[Node, Scalar], width: int) -> dict[Node, Scalar]:
    """Values of so many neighbouring lanes of a sub-group, combined in each of them."""
    step = width // 2
    while step:
        totals = {node: merge(e, node, total, e.other_lane(total, step)) for node, total in totals.items()}
        step //= 2
    return totals


# --- parts ----------------------------------------------------------------------------------------


def block_parts_kernels(group: Any) -> tuple[Kernel, ...]:
    """Reductions of few long rows, or of columns: parts, and what combines them."""
    phases = Phases(group.nodes, group.outs, group.runs)
    in_columns = group.runs[-1][1]
    parts = _divided(phases, group.target, in_columns)
    if parts == 1:
        return ((rows_kernel if in_columns else block_rows_kernel)(group),)
    return (_columns if in_columns else _stretches)(group, phases, parts), _combining(group, phases, parts)


def _divided(phases: Phases, target: MachineDescription, in_columns: bool) -> int:
    """Into how many parts each row is cut."""
    length = columns(phases.runs)
    if in_columns:
        parts = max(1, min(target.busy * target.block // phases.lanes, length // FEWEST))
        around = 1 << parts.bit_length(), 1 << (parts.bit_length() - 1)  # of one size, several reads are under way
        return next((n for n in around if length % n == 0 and length // n >= FEWEST), parts)
    parts = max(1, min(-(-target.busy // phases.lanes), length // target.part_work))
    even = 1 << (parts.bit_length() - 1)
    return even if length % even == 0 else parts  # parts of one size need no look at where they end


def _stretches(group: Any, phases: Phases, parts: int) -> Kernel:
    """A block for each part of a row."""
    target, length = group.target, columns(phases.runs)
    size = -(-length // parts)
    width = width_for(size, target)
    w = Writer(group, phases, parts * phases.lanes * width)
    e = w.e
    block, side = e.lane // width, SharedRow(e.lane % width, width)
    part, row = block // phases.lanes, block % phases.lanes
    w.begin(row)
    totals = _begun(e, phases.reductions)
    if length % size == 0:
        side.elements(e, size, target.several, lambda at: _take(w, totals, [e.at_most(part * size + at, length - 1)]))
    else:
        with e.counted(side.rounds(e, _length_of(e, part, size, length))) as round_:
            _take(w, totals, [bounded(e, part * size + (round_ * width + side.place), length - 1)])
    totals = _combined(e, totals, side, w.group.target.subgroup)
    with e.only_if(e.compare("EQ", side.place, 0)):
        _store_parts(w, totals, parts, part * phases.lanes + row)
    return w.kernel(_launch(w, width), fixed=True)


def _columns(group: Any, phases: Phases, parts: int) -> Kernel:
    """A lane for each part of a column: neighbouring lanes have neighbouring columns."""
    length = columns(phases.runs)
    size = -(-length // parts)
    w = Writer(group, phases, parts * phases.lanes)
    e = w.e
    part, row = e.lane // phases.lanes, e.lane % phases.lanes
    w.begin(row)
    totals = _begun(e, phases.reductions)
    several = group.target.several
    if length % size == 0 and size % several == 0 and size > several:  # several reads are under way at a time
        with e.counted(size // several) as j:
            _take(w, totals, [e.at_most(part * size + (j * several + k), length - 1) for k in range(several)])
    else:
        with e.counted(_length_of(e, part, size, length)) as j:
            at = part * size + j
            _take(w, totals, [e.at_most(at, length - 1) if length % size == 0 else bounded(e, at, length - 1)])
    _store_parts(w, totals, parts, part * phases.lanes + row)
    return w.kernel(LaunchConfig.linear(w.lanes, group.target.block), fixed=True)


def _length_of(e: Emitter, part: Scalar, size: int, length: int) -> int | Scalar:
    """How many elements a part has: the last ones may have fewer, or none."""
    if length % size == 0:
        return size
    start = part * size
    left = e.select(e.compare("LT", start, length), length - start, 0)
    return e.at_most(e.op("MIN", left, e.number(size)), size)


def _take(w: Writer, totals: dict[Node, Scalar], places: Sequence[Scalar]) -> None:
    """Take the elements at some places of the row into the totals, and write what is wanted of them."""
    points = [_point(w, at) for at in places]
    for point in points:
        for node, term in w.terms(point, 0).items():
            w.e.accumulate(totals[node], operation(node), term)
    w.write_several(points, 0, {})


def _store_parts(w: Writer, totals: dict[Node, Scalar], parts: int, position: Scalar) -> None:
    for k, (node, total) in enumerate(totals.items()):
        w.part(f"part{k}", working(node), parts * w.phases.lanes).store(position, total)


def _combining(group: Any, phases: Phases, parts: int) -> Kernel:
    """The kernel that takes the parts of each row together and computes what follows."""
    width = width_for(parts, group.target) if parts > group.target.short_row else 1
    w = Writer(group, phases, phases.lanes * width)
    e = w.e
    side = SharedRow(e.lane % width if width > 1 else e.number(0), width)
    w.begin(e.lane // width if width > 1 else e.lane)
    totals = _begun(e, phases.reductions)

    def take(part: Scalar) -> None:
        for k, (node, total) in enumerate(totals.items()):
            memory = w.part(f"part{k}", working(node), parts * phases.lanes)
            e.accumulate(total, operation(node), memory.load(part * phases.lanes + w.row))

    side.elements(e, parts, 1, take)
    for node, total in _combined(e, totals, side, w.group.target.subgroup).items():
        w.values.rows[node] = e.convert(total, node.dtype)
    w.compute_rows()
    if width == 1:
        w.store_rows()
        return w.kernel(LaunchConfig.linear(w.lanes, group.target.block), fixed=True)
    with e.only_if(e.compare("EQ", side.place, 0)):
        w.store_rows()
    return w.kernel(_launch(w, width), fixed=True)
