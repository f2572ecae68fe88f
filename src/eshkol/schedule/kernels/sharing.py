"""Lanes of a block that have a row of elements together: which elements are whose, and what all of them found.

Comes in: the code of a kernel for machines of blocks (`block_rows.py`, `blocks.py`). Goes out: places of elements, such
that neighbouring lanes read neighbouring ones, and partial results combined: lanes of a sub-group exchange theirs in
registers, those of sub-groups meet in the memory that a block shares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.code import OutOfRegisters
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.rows import Phases, Writer, merge, neutral, working
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.space import Point
from eshkol.support.extents import Extent

AT_ONCE = 4  # vectors of a lane that are under way at a time
WORD = 4  # bytes of an element, where nothing says how large they are


@dataclass(frozen=True, slots=True)
class SharedRow:
    """A lane's place among those that share a row: lane number `place` of `width`, a power of two."""

    place: Scalar
    width: int

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


@dataclass(frozen=True, slots=True)
class Deal:
    """How elements are dealt out as vectors: in each round every lane of `width` has one of `vector` neighbours.

    The vectors are whole: `vector` divides the length.
    """

    length: int
    width: int
    vector: int

    @property
    def whole(self) -> int:
        """Rounds in which all lanes have a vector."""
        return self.length // (self.width * self.vector)

    @property
    def left(self) -> int:
        """Lanes that have one in one more round."""
        return self.length // self.vector - self.whole * self.width

    @property
    def each(self) -> int:
        """Elements of a lane, at most."""
        return (self.whole + bool(self.left)) * self.vector

    def number(self, lane: Scalar, round_: int | Scalar) -> Scalar:
        """The number of a lane's vector in one of the whole rounds."""
        return lane.e.at_most(lane + round_ * self.width, self.length // self.vector - 1)

    def last_number(self, e: Emitter, lane: Scalar) -> Scalar:
        """The same in the last round; lanes that have none see that of the last one that has."""
        return bounded(e, lane, self.left - 1) + self.whole * self.width

    def rounds(self, e: Emitter, lane: Scalar) -> Iterator[list[Scalar]]:
        """Numbers of a lane's vectors that are under way at the same time, within loops over all of them."""
        several = self.whole // AT_ONCE
        if several:
            with e.counted(several) as k:
                yield [self.number(lane, k * AT_ONCE + more) for more in range(AT_ONCE)]
        for round_ in range(several * AT_ONCE, self.whole):
            yield [self.number(lane, round_)]
        if self.left:
            with e.only_if(e.compare("LT", lane, self.left)):
                yield [self.last_number(e, lane)]


def neighbours(e: Emitter, number: Scalar, vector: int) -> list[Scalar]:
    """The places of the elements of a vector."""
    return [e.beyond(number * vector, k) for k in range(vector)]


def vector_of(group: Any, phases: Phases) -> int:
    """How many elements that lie together are read and written at once: along the last of a group's runs."""
    length, whole = phases.runs[-1][0], phases.whole
    if type(length) is Extent:
        return 1
    full = [x for x in (*group.inputs, *group.outs) if x.op is not CONST and count(x.shape) == whole]
    wanted: int = group.target.vector // max((x.dtype.size for x in full), default=WORD)
    while wanted > 1 and length % wanted:
        wanted //= 2
    return max(1, wanted)


def vector_points(w: Writer, number: Scalar, vector: int) -> list[Point]:
    """The points of the elements of a vector of a row, whose last elements lie together."""
    e = w.e
    extents = [n for n, keep in w.phases.runs if not keep]
    *places, last = digits(e, number, [*extents[:-1], extents[-1] // vector])
    points = [w.point(w.kept, [*places, at]) for at in neighbours(e, last, vector)]
    for k, point in enumerate(points[1:], 1):
        point.lies_at(e.beyond(points[0].flat, k))
    return points


def bounded(e: Emitter, at: Scalar, last: int) -> Scalar:
    """A place that is at most `last` anyhow, in a way that machines see, too: they leave checks out then."""
    return e.at_most(e.op("MIN", at, e.number(last)), last)


def width_for(elements: int, target: MachineDescription) -> int:
    """How many lanes share so many elements."""
    return min(target.block, 1 << max(elements - 1, 1).bit_length())


def launch(w: Writer, width: int) -> LaunchConfig:
    """Blocks of so many lanes, for a row or part, or for several rows; a group of too much shared memory is cut."""
    if w.e.shared_memory > w.group.target.shared_memory:
        raise OutOfRegisters(f"a kernel needs {w.e.shared_memory} bytes of shared memory")
    return LaunchConfig.linear(w.lanes, width, w.e.shared_memory)


def point_at(w: Writer, at: Scalar) -> Point:
    """The point at a place of the row."""
    return w.point(w.kept, digits(w.e, at, [n for n, keep in w.phases.runs if not keep]))


def begun(e: Emitter, reductions: Sequence[Node]) -> dict[Node, Scalar]:
    return {n: e.variable(e.constant(neutral(n), working(n))) for n in reductions}


def digits(e: Emitter, flat: Scalar, extents: Sequence[int]) -> list[Scalar]:
    """The places along extents of what has a number among all."""
    return [e.digit(flat, count(tuple(extents[k + 1 :])), n) for k, n in enumerate(extents)]


def combined(
    e: Emitter, totals: dict[Node, Scalar], side: SharedRow, subgroup: int, together: int = 1, row: Scalar | None = None
) -> dict[Node, Scalar]:
    """Partial results of the lanes that share a row, as one that all of them have.

    Lanes of a sub-group exchange theirs in registers; what each sub-group found meets in shared memory, of which every
    sub-group reads and combines all, so that there is one barrier. Where there are more sub-groups than lanes in one
    (or none), a tree of steps with a barrier after each comes before that. Where so many rows stand together, a lane
    of each side by side, `row` is which of them a lane has; the first lane of each has the result.
    """
    if side.width == 1 or not totals:
        return totals
    near = min(subgroup // together, side.width)
    totals = _exchanged(e, totals, near, together)
    groups = side.width // near
    if groups == 1:
        return totals
    memory = {node: e.shared(total.dtype, groups * together) for node, total in totals.items()}

    def at(group: Scalar) -> Scalar:
        return group if row is None else group * together + row

    with e.only_if(e.compare("EQ", side.place % near, 0)) if near > 1 else nullcontext():
        for node, total in totals.items():
            memory[node].store(at(e.at_most(side.place // near, groups - 1)), total)
    e.barrier()
    while groups > (near if row is None else 1):
        groups //= 2
        with e.only_if(e.compare("LT", side.place, groups)):
            here = side.place % groups  # as it is; but machines see that it is in range
            for node, shared in memory.items():
                one, other = shared.load(at(here)), shared.load(at(here + groups))
                shared.store(at(here), merge(e, node, one, other))
        e.barrier()
    found = {node: shared.load(at(side.place % groups)) for node, shared in memory.items()}
    return _exchanged(e, found, groups, 1)


def _exchanged(e: Emitter, totals: dict[Node, Scalar], width: int, apart: int) -> dict[Node, Scalar]:
    """Values of so many lanes of a sub-group that stand so far apart, combined in each of them."""
    step = width // 2
    while step:
        totals = {node: merge(e, node, total, e.other_lane(total, step * apart)) for node, total in totals.items()}
        step //= 2
    return totals
