"""Reductions in parts for machines of blocks: few long rows, and columns.

Comes in: a group with reductions, as `parts.py` takes it for cores. Goes out: kernels in which neighbouring lanes read
neighbouring elements. Long rows of which there are few are taken in parts by several blocks, and columns by lanes that
stand side by side; another kernel combines the parts. How the work is divided depends on shapes and the description of
the machine alone. What lanes that have a row together do is in `sharing.py`, rows that a block has whole are in
`block_rows.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import VECTORS, LaunchConfig
from eshkol.graph.node import Node
from eshkol.schedule.kernels.block_rows import block_rows_kernel
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel
from eshkol.schedule.kernels.rows import Phases, Writer, operation, rows_kernel, working
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.sharing import (
    Deal,
    SharedRow,
    begun,
    bounded,
    combined,
    digits,
    launch,
    neighbours,
    point_at,
    vector_of,
    vector_points,
    width_for,
)
from eshkol.schedule.kernels.space import Point, columns

FEWEST = 16  # terms of a part of a column
SECTOR = 8  # neighbouring columns whose parts are taken together: floats that memory gives at once
_ALIGNED = {VECTORS: ""}  # what programs with vectors say; all their buffers have declared sizes


def block_parts_kernels(group: Any) -> tuple[Kernel, ...]:
    """Reductions of few long rows, or of columns: parts, and what combines them."""
    phases = Phases(group.nodes, group.outs, group.runs)
    in_columns = group.runs[-1][1]
    vector = vector_of(group, phases) if in_columns else 1
    parts = _divided(phases, group.target, in_columns, vector)
    if parts == 1:
        return ((rows_kernel if in_columns else block_rows_kernel)(group),)
    if in_columns:
        return _columns(group, phases, parts, vector), _combining(group, phases, parts, SECTOR)
    return _stretches(group, phases, parts), _combining(group, phases, parts, 1)


def _divided(phases: Phases, target: MachineDescription, in_columns: bool, vector: int) -> int:
    """Into how many parts each row is cut, or so many columns together."""
    length = columns(phases.runs)
    if in_columns:
        # Half of the lanes that there are: twice as many parts made sums of two columns together a quarter slower.
        parts = max(1, min(target.busy * target.block * vector // (2 * phases.lanes), length // FEWEST))
        sizes = [1 << parts.bit_length(), 1 << (parts.bit_length() - 1)]
    else:
        parts = max(1, min(-(-target.busy // phases.lanes), length // target.part_work))
        sizes = [1 << (parts.bit_length() - 1)]
    for even in sizes:  # parts of one size need no look at where they end, and several reads are under way
        if length % even == 0 and (not in_columns or length // even >= FEWEST):
            return even
    return -(-length // -(-length // parts))  # none of which is empty


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
    totals = begun(e, phases.reductions)
    vector = vector_of(group, phases)
    if length % size == 0 and vector > 1 and size % vector == 0:
        deal = Deal(size, width, vector)
        for numbers in deal.rounds(e, side.place):
            wholes = [e.at_most(part * (size // vector) + n, length // vector - 1) for n in numbers]
            points = [point for number in wholes for point in vector_points(w, number, vector)]
            _take(w, totals, points)
    elif length % size == 0:
        side.elements(
            e, size, target.several, lambda at: _take(w, totals, [point_at(w, e.at_most(part * size + at, length - 1))])
        )
    else:
        with e.counted(side.rounds(e, _length_of(e, part, size, length))) as round_:
            _take(w, totals, [point_at(w, bounded(e, part * size + (round_ * width + side.place), length - 1))])
    totals = combined(e, totals, side, w.group.target.subgroup)
    with e.only_if(e.compare("EQ", side.place, 0)):
        _store_parts(w, totals, parts, part * phases.lanes + row)
    return w.kernel(launch(w, width), fixed=True, told=_ALIGNED)


def _columns(group: Any, phases: Phases, parts: int, vector: int) -> Kernel:
    """A lane for each part of so many columns: neighbouring lanes have neighbouring columns."""
    length, across = columns(phases.runs), phases.lanes // vector
    size = -(-length // parts)
    w = Writer(group, phases, parts * across)
    e = w.e
    part, number = e.lane // across, e.lane % across
    heads = _begun_beside(w, number, vector)
    totals = [begun(e, phases.reductions) for _ in heads]

    def take(places: Sequence[Scalar]) -> None:
        rows = [_beside(w, heads, at) for at in places]
        for points in rows:
            for head, mine, point in zip(heads, totals, points, strict=True):
                head.put(w)
                for node, term in w.terms(point, 0).items():
                    e.accumulate(mine[node], operation(node), term)
        for points in rows:
            values = []
            for head, point in zip(heads, points, strict=True):
                head.put(w)
                values.append(w.full_values(point, 0, {}))
            w.store_full(points, values)

    several = group.target.several
    if length % size == 0 and size % several == 0 and size > several:  # several reads are under way at a time
        with e.counted(size // several) as j:
            take([e.at_most(part * size + (j * several + k), length - 1) for k in range(several)])
    else:
        with e.counted(_length_of(e, part, size, length)) as j:
            at = part * size + j
            take([e.at_most(at, length - 1) if length % size == 0 else bounded(e, at, length - 1)])
    first = part * phases.lanes + number * vector
    for k, mine in enumerate(totals):
        _store_parts(w, mine, parts, e.beyond(first, k))
    return w.kernel(LaunchConfig.linear(w.lanes, group.target.block), fixed=True, told=_ALIGNED)


class _Head(NamedTuple):
    """What is known of a column before its elements are."""

    kept: list[Scalar]
    row: Scalar
    row_point: Point
    row_reads: dict[Any, Scalar]
    places: dict[Node, Scalar]

    def put(self, w: Writer) -> None:
        """Say that the code to come is about this column."""
        w.kept, w.row, w.row_point = self.kept, self.row, self.row_point
        w.values.row_reads, w.values.places = self.row_reads, self.places


def _begun_beside(w: Writer, number: Scalar, vector: int) -> list[_Head]:
    """Begin with so many neighbouring columns."""
    kept = [n for n, keep in w.phases.runs if keep]
    *outer, last = digits(w.e, number, [*kept[:-1], kept[-1] // vector])
    heads = []
    for row, at in zip(neighbours(w.e, number, vector), neighbours(w.e, last, vector), strict=True):
        point = Point(w.e, (w.phases.lanes,), (row,))
        heads.append(_Head([*outer, at], row, point, {}, {}))
        heads[-1].put(w)
        w.preload(w.kept)
    return heads


def _beside(w: Writer, heads: Sequence[_Head], at: Scalar) -> list[Point]:
    """The points of neighbouring columns at a place along them."""
    places = digits(w.e, at, [n for n, keep in w.phases.runs if not keep])
    points = [w.point(head.kept, places) for head in heads]
    for k, point in enumerate(points[1:], 1):
        point.lies_at(w.e.beyond(points[0].flat, k))
    return points


def _length_of(e: Emitter, part: Scalar, size: int, length: int) -> int | Scalar:
    """How many elements a part has: the last ones may have fewer, or none."""
    if length % size == 0:
        return size
    start = part * size
    left = e.select(e.compare("LT", start, length), length - start, 0)
    return e.at_most(e.op("MIN", left, e.number(size)), size)


def _take(w: Writer, totals: dict[Node, Scalar], points: Sequence[Point]) -> None:
    """Take elements into the totals, and write what is wanted of them."""
    for terms in [w.terms(point, 0) for point in points]:
        for node, term in terms.items():
            w.e.accumulate(totals[node], operation(node), term)
    w.write_full(points, 0, {})


def _store_parts(w: Writer, totals: dict[Node, Scalar], parts: int, position: Scalar) -> None:
    for k, (node, total) in enumerate(totals.items()):
        w.part(f"part{k}", working(node), parts * w.phases.lanes).store(position, total)


def _combining(group: Any, phases: Phases, parts: int, together: int) -> Kernel:
    """The kernel that takes the parts of each row together and computes what follows.

    Lanes that have parts of a row stand side by side, or, where so many rows go together, lanes that have the same part
    of neighbouring rows: parts of columns lie so.
    """
    target = group.target
    if parts <= target.short_row:
        return _combined_alone(group, phases, parts)
    together = min(together, target.subgroup, 1 << (phases.lanes.bit_length() - 1))
    width = width_for(parts * together, target) // together
    blocks = -(-phases.lanes // together)
    w = Writer(group, phases, blocks * together * width)
    e = w.e
    lane, block = e.lane % (together * width), e.lane // (together * width)
    row, place = block * together + lane % together, lane // together
    inside = e.compare("LT", row, phases.lanes) if phases.lanes % together else None
    side = SharedRow(place, width)
    w.begin(row if inside is None else bounded(e, row, phases.lanes - 1))
    totals = begun(e, phases.reductions)
    side.elements(e, parts, 1, lambda part: _take_parts(w, totals, parts, part))
    for node, total in combined(e, totals, side, target.subgroup, together, lane % together).items():
        w.values.rows[node] = e.convert(total, node.dtype)
    w.compute_rows()
    first = e.compare("EQ", place, 0)
    with e.only_if(first if inside is None else e.both(first, inside)):
        w.store_rows()
    return w.kernel(launch(w, together * width), fixed=True)


def _combined_alone(group: Any, phases: Phases, parts: int) -> Kernel:
    """The same by a lane for each row, of few parts."""
    w = Writer(group, phases, phases.lanes)
    e = w.e
    w.begin(e.lane)
    totals = begun(e, phases.reductions)
    with e.counted(parts) as part:
        _take_parts(w, totals, parts, part)
    for node, total in totals.items():
        w.values.rows[node] = e.convert(total, node.dtype)
    w.finish_rows()
    return w.kernel(LaunchConfig.linear(w.lanes, group.target.block), fixed=True)


def _take_parts(w: Writer, totals: dict[Node, Scalar], parts: int, part: Scalar) -> None:
    lanes = w.phases.lanes
    for k, (node, total) in enumerate(totals.items()):
        memory = w.part(f"part{k}", working(node), parts * lanes)
        w.e.accumulate(total, operation(node), memory.load(part * lanes + w.row))
