"""Rows that a block of lanes computes each, or a sub-group: read once, as vectors, and held while they are gone over.

Comes in: a group with reductions along rows that lie together, as `rows.py` takes it for cores. Goes out: a kernel.
Elements are dealt out to lanes as vectors of neighbours, round by round, so that a lane reads and writes as many bytes
at once as the machine can. What several loops over a row read is read once. A lane holds its elements in registers
where they are few; of longer rows the block has a copy in the memory that its lanes share, in which every lane finds
what it put there itself. Rows too long for that are read again in every loop.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import BLOCK_LIMIT, LANES, VECTORS
from eshkol.graph.node import Node
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.code import OutOfRegisters
from eshkol.schedule.kernels.costs import dear
from eshkol.schedule.kernels.kernel import Kernel
from eshkol.schedule.kernels.online import Running, online
from eshkol.schedule.kernels.rows import Phases, Writer, neutral, operation, rows_kernel, working
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.sharing import (
    Deal,
    SharedRow,
    begun,
    combined,
    launch,
    neighbours,
    point_at,
    vector_of,
    vector_points,
    width_for,
)
from eshkol.schedule.kernels.space import Point, columns
from eshkol.schedule.kernels.values import straight
from eshkol.support.extents import Extent

MOST_HELD = 32  # elements of a row that a lane keeps in registers from one loop over it to the next
MOST_ALONE = 24  # the same, where a sub-group has a row alone: more were slower on an H200
EACH = 8  # elements that a lane has at least, of many rows that are gone over several times
MOST_LANES = 4  # blocks of everyday size that one with a long row in shared memory is as large as


def block_rows_kernel(group: Any) -> Kernel:
    """Rows that a block computes each; short ones are left to a lane each."""
    phases, target = Phases(group.nodes, group.outs, group.runs), group.target
    length = columns(group.runs)
    if length <= target.short_row:
        return rows_kernel(group)
    vector = vector_of(group, phases)
    many = phases.lanes >= target.busy
    if type(length) is not Extent:
        alone = Deal(length, target.subgroup, vector)
        if 1 < target.subgroup < width_for(length, target) and alone.each <= MOST_ALONE and many:
            with suppress(OutOfRegisters):
                return _held(group, phases, alone)  # a sub-group for each row, whose lanes need not meet
        wanted = max(vector, EACH) if many and phases.loops > 1 else vector
        width = max(width_for(-(-length // wanted), target), min(target.subgroup, target.block))
        for lanes in (width, 2 * width) if phases.loops > 1 else ():
            if (deal := Deal(length, lanes, vector)).each <= MOST_HELD and lanes <= BLOCK_LIMIT:
                with suppress(OutOfRegisters):
                    return _held(group, phases, deal)
        phases = Phases(group.nodes, group.outs, group.runs, online(phases))
        if phases.loops > 1:
            with suppress(OutOfRegisters):
                return _in_shared_memory(group, phases, vector)
        if vector > 1 or phases.online:
            return _looped(group, phases, Deal(length, width, vector), {})
    return _reread(group, phases, width_for(length, target))


def _told(w: Writer, deal: Deal) -> dict[str, str]:
    """What the program says of itself: buffers that begin at whole vectors however many rows there are, and lanes."""
    group, target = w.group, w.group.target
    told = {LANES: str(deal.width)} if deal.width > target.block else {}
    if deal.vector > 1:
        names = [(f"x{k}", x) for k, x in enumerate(group.inputs) if x.op is not CONST]
        names += zip(w.names, group.outs, strict=True)
        aligned = [name for name, x in names if _begins_at_vectors(x, deal, w.phases, target)]
        told[VECTORS] = " ".join(aligned)
    return told


def _begins_at_vectors(x: Node, deal: Deal, phases: Phases, target: MachineDescription) -> bool:
    return (deal.length * x.dtype.size) % target.vector == 0 and count(x.shape) in (phases.whole, deal.length)


# --- rows in registers ----------------------------------------------------------------------------


def _held(group: Any, phases: Phases, deal: Deal) -> Kernel:
    """Rows whose elements lanes keep in registers: what is known of one in a loop is known in the next."""
    w = Writer(group, phases, phases.lanes * deal.width)
    e, lane = w.e, w.e.lane % deal.width
    w.begin(e.lane // deal.width)
    rounds: list[tuple[list[Point], Scalar | None]] = [
        (vector_points(w, deal.number(lane, k), deal.vector), None) for k in range(deal.whole)
    ]
    if deal.left:
        there = e.compare("LT", lane, deal.left)
        rounds.append((vector_points(w, deal.last_number(e, lane), deal.vector), there))
    side = SharedRow(lane, deal.width)
    for loop in range(phases.loops):
        _rows_before(w, loop)
        totals = begun(e, _reductions(phases, loop))
        for points, inside in rounds:
            for terms in [w.terms(point, loop) for point in points]:
                for node, term in terms.items():
                    if inside is not None:
                        term = e.select(inside, term, e.constant(neutral(node), working(node)))
                    e.accumulate(totals[node], operation(node), term)
        # All elements are read before anything is written: no machine reads ahead of a write.
        values = [[w.full_values(point, loop, {}) for point in points] for points, _ in rounds]
        for (points, inside), found in zip(rounds, values, strict=True):
            w.store_full(points, found, inside)
        _rows_after(w, totals, side)
    return _finished(w, side, deal)


def _reductions(phases: Phases, loop: int) -> list[Node]:
    """What is reduced in a loop, each by itself."""
    together = {*phases.online, *phases.online.values()}
    return [n for n in phases.reductions if phases.level[n] == loop + 1 and n not in together]


def _rows_before(w: Writer, loop: int) -> None:
    """What a loop needs of its row."""
    for node in w.phases.row:
        if w.phases.level[node] == loop and node not in w.values.rows:
            w.finished(node)


def _rows_after(w: Writer, totals: dict[Node, Scalar], side: SharedRow) -> None:
    """What a loop has found out about its row."""
    for node, total in combined(w.e, totals, side, w.group.target.subgroup).items():
        w.values.rows[node] = w.e.convert(total, node.dtype)


def _finished(w: Writer, side: SharedRow, deal: Deal) -> Kernel:
    target = w.group.target
    w.compute_rows()
    with w.e.only_if(w.e.compare("EQ", side.place, 0)):
        w.store_rows()
    lanes = max(target.block, side.width) if side.width == target.subgroup > 1 else side.width
    return w.kernel(launch(w, lanes), fixed=not w.phases.runs[0][1], told=_told(w, deal))


# --- rows in shared memory, and rows that are read again ------------------------------------------


def _in_shared_memory(group: Any, phases: Phases, vector: int) -> Kernel:
    """Rows of which a block has a copy: a large block, where there is room for no more than one."""
    target, length = group.target, columns(phases.runs)
    kept = _kept(group, phases)
    size = length * sum(x.dtype.size for x in {use.slot for use in kept.values()})
    if not kept or size > target.shared_memory:
        raise OutOfRegisters(f"a row takes {size} bytes of shared memory")
    lanes = MOST_LANES if 2 * size > target.shared_memory else MOST_LANES // 2
    deal = Deal(length, min(lanes * target.block, BLOCK_LIMIT), vector)
    return _looped(group, phases, deal, kept)


@dataclass(frozen=True, slots=True)
class _Use:
    """The first and the last loop that need something, and the input in whose place of shared memory it is between."""

    first: int
    last: int
    slot: Node


def _kept(group: Any, phases: Phases) -> dict[Node, _Use]:
    """Inputs that several loops read; and something dear that several need, if it fits where such an input was."""
    loops = range(phases.loops)
    inputs = [x for x in group.inputs if x.op is not CONST and phases.is_full(x) and not x.dtype.is_complex]

    def used(node: Node, known: Node | None = None, since: int = 0) -> list[int]:
        return [k for k in loops if node in _needed(phases, k, known if k > since else None)]

    found = {x: _Use(uses[0], uses[-1], x) for x in inputs if len(uses := used(x)) > 1}
    for node in phases.full:
        uses = used(node) if dear(node) else []
        if len(uses) < 2:
            continue
        for x in list(found):
            left = used(x, node, uses[0])
            if x.dtype.size == node.dtype.size and left and left[-1] <= uses[0]:
                found[x] = _Use(left[0], left[-1], x)
                found[node] = _Use(uses[0], uses[-1], x)
                return found
    return found


def _needed(phases: Phases, loop: int, known: Node | None) -> set[Node]:
    """What a loop must know of each element: nodes and inputs, but for what is behind one that is known."""
    found: set[Node] = set()
    stack = list(phases.roots(loop))
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            if node in phases.inside and node is not known:
                stack += [x for x in straight(node) if phases.is_full(x)]
    return found


def _looped(group: Any, phases: Phases, deal: Deal, kept: dict[Node, _Use]) -> Kernel:
    """Rows that are gone over in loops; what is kept is found in shared memory, all else is computed again."""
    w = Writer(group, phases, phases.lanes * deal.width)
    e, lane = w.e, w.e.lane % deal.width
    hosts = {} if kept else phases.hosts()
    memory = {x: e.shared(x.dtype, deal.length) for x in dict.fromkeys(use.slot for use in kept.values())}
    side = SharedRow(lane, deal.width)
    w.begin(e.lane // deal.width)
    for loop in range(phases.loops):
        _rows_before(w, loop)
        totals = begun(e, _reductions(phases, loop))
        running = [Running(w, n) for n in phases.online if phases.level[n] == loop + 1]
        for numbers in deal.rounds(e, lane):
            points = [point for number in numbers for point in vector_points(w, number, deal.vector)]
            places = [at for number in numbers for at in neighbours(e, number, deal.vector)]
            for node, use in kept.items():
                if use.first < loop <= use.last:
                    for at, point in zip(places, points, strict=True):
                        point.known[node] = memory[use.slot].load(at)
            for one in running:
                one.take(points)
            for terms in [w.terms(point, loop) for point in points]:
                for node in totals:
                    e.accumulate(totals[node], operation(node), terms[node])
            for node, use in kept.items():
                if use.first == loop < use.last:
                    values = [w.values.seen(node, node.shape, point) for point in points]
                    for at, value in zip(places, values, strict=True):
                        memory[use.slot].store(at, value)
            w.write_full(points, loop, hosts)
        for one in running:
            one.finish(side)
        _rows_after(w, totals, side)
        if any(first == loop for _, first in hosts.values()):
            e.barrier()  # what one lane has kept, another may pick
        w.note_kept(loop, hosts)
    return _finished(w, side, deal)


def _reread(group: Any, phases: Phases, width: int) -> Kernel:
    """Rows of a length that does not divide into vectors, or is a symbol."""
    w = Writer(group, phases, phases.lanes * width)
    e, hosts = w.e, phases.hosts()
    side = SharedRow(e.lane % width, width)
    w.begin(e.lane // width)
    for loop in range(phases.loops):
        _rows_before(w, loop)
        totals = begun(e, _reductions(phases, loop))

        def take(at: Scalar, loop: int = loop, totals: dict[Node, Scalar] = totals) -> None:
            point = point_at(w, at)
            for node, term in w.terms(point, loop).items():
                e.accumulate(totals[node], operation(node), term)
            w.write_full([point], loop, hosts)

        side.elements(e, columns(phases.runs), group.target.several, take)
        _rows_after(w, totals, side)
        if any(first == loop for _, first in hosts.values()):
            e.barrier()  # what one lane has kept, another may pick
        w.note_kept(loop, hosts)
    return _finished(w, side, Deal(1, width, 1))
