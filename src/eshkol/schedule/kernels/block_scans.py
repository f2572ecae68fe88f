"""Running sums and products, for machines of blocks.

Comes in: `cumsum` and `cumprod` of a large tensor, seen as [before, length, after]. Goes out: a kernel, or two. Along
the last axis a block goes over a row in tiles, of which every lane has a vector: lanes of a sub-group find out in
registers what is before them, sub-groups in the memory that a block shares. Along other axes a lane has neighbouring
columns, and goes down them. Where there are too few rows, or columns, for all of the machine, each is cut into parts;
a kernel before takes the total of each part, of which those in front are what a part begins with.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import NamedTuple

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import VECTORS, LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.scans import cumprod, cumsum
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.reads import BlockMemory, Read, Write
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.sharing import SharedRow, bounded, neighbours, width_for
from eshkol.support.extents import Extent

SCANS = {cumsum: ("ADD", -0.0), cumprod: ("MUL", 1.0)}  # how, and what changes nothing: -0 not even a -0
FEWEST = 32  # elements of a part of a column
UNDER_WAY = 8  # rows of which a lane reads its columns before it goes on


def is_scan(node: Node, target: MachineDescription) -> bool:
    """Whether a node is computed here: one of many elements, whose rows are not short."""
    if node.op not in SCANS or node.dtype.is_complex or any(type(n) is Extent for n in node.shape):
        return False
    return count(node.shape) >= target.wide and node.shape[node.attrs.axis] > target.short_row


class _Scan(NamedTuple):
    """What is scanned, and in which way; the length is cut into parts of a size."""

    before: int
    length: int
    after: int
    reverse: bool
    given: DType
    dtype: DType
    instruction: str
    first: float
    vector: int
    parts: int
    size: int

    @property
    def working(self) -> DType:
        """The dtype in which totals grow."""
        return dtypes.float32 if self.dtype.is_float and self.dtype.bits == 16 else self.dtype


def block_scan_kernels(node: Node, target: MachineDescription) -> tuple[Kernel, ...]:
    """The kernels of a scan."""
    (x,), (axis, reverse) = node.inputs, node.attrs
    before, length, after = count(x.shape[:axis]), x.shape[axis], count(x.shape[axis + 1 :])
    vector = target.vector // max(x.dtype.size, node.dtype.size)
    while vector > 1 and (length if after == 1 else after) % vector:
        vector //= 2
    if after == 1:
        parts = min(-(-target.busy // before), length // target.part_work)
    else:
        parts = min(target.busy * target.block * vector // (before * after), length // FEWEST)
    size = -(-length // max(1, parts))
    size = -(-size // vector) * vector if after == 1 else size
    parts = -(-length // size)
    a = _Scan(before, length, after, reverse, x.dtype, node.dtype, *SCANS[node.op], vector, parts, size)
    made = _Rows if after == 1 else _Columns
    totals = (made(a, target, "totals").totals(),) if parts > 1 else ()
    return *totals, made(a, target, "scan").scan()


class _Writer:
    """A kernel under construction."""

    def __init__(self, a: _Scan, target: MachineDescription, name: str, lanes: int, block: int) -> None:
        self.a, self.target, self.name, self.lanes, self.block = a, target, name, lanes, block
        self.e = e = Emitter((lanes,))
        lines = a.before * a.after
        self.x, self.out = Read(e, "x0", (lines * a.length,), a.given), Write(e, "out", (lines * a.length,), a.dtype)
        self.total = Write(e, "total", (lines * a.parts,), a.working)

    def neutral(self) -> Scalar:
        return self.e.constant(self.a.first if self.a.working.is_float else int(self.a.first), self.a.working)

    def load(self, position: Scalar) -> Scalar:
        return self.e.convert(self.x.load(position), self.a.working)

    def op(self, one: Scalar, other: Scalar) -> Scalar:
        return self.e.op(self.a.instruction, one, other)

    def turned(self, place: Scalar, most: int) -> Scalar:
        """A place from the other end, where the scan comes from there; of so many, or of their number."""
        return most - place if self.a.reverse else place

    def finished(self, writes: Sequence[Write]) -> Kernel:
        a = self.a
        scratch = (("total", a.working, a.before * a.parts * a.after),) if a.parts > 1 else ()
        used = [*writes, *([self.total] if a.parts > 1 and self.total not in writes else [])]
        program = shown(self.e.finish(f"{self.name}_{a.instruction.lower()}", [self.x], used, self.lanes, _ALIGNED))
        launch = LaunchConfig.linear(self.lanes, self.block, self.e.shared_memory)
        return Kernel(program, launch, None, ("out",), (("x0", 0),), (), scratch)


_ALIGNED = {VECTORS: ""}


class _Rows(_Writer):
    """Along the last axis: so many lanes for a part of a row, in tiles."""

    def __init__(self, a: _Scan, target: MachineDescription, name: str) -> None:
        self.width = max(width_for(-(-a.size // a.vector), target), min(target.subgroup, target.block))
        alone = self.width <= target.subgroup
        super().__init__(a, target, name, a.before * a.parts * self.width, target.block if alone else self.width)
        e = self.e
        self.side = SharedRow(e.lane % self.width, self.width)
        self.part, self.row = e.lane // self.width % a.parts, e.lane // (self.width * a.parts)
        groups = self.width // min(target.subgroup, self.width)
        self.memory: BlockMemory = e.shared(a.working, 2 * groups if groups > 1 else 0)  # of this tile and the last one

    @property
    def tiles(self) -> int:
        return -(-self.a.size // (self.width * self.a.vector))

    def elements(self, tile: Scalar) -> tuple[list[Scalar], Scalar | None]:
        """Positions of a lane's elements of a tile, in order, and whether they are there, if not all are."""
        e, a = self.e, self.a
        here = tile * self.width + self.side.place
        number = self.part * (a.size // a.vector) + here
        whole = self.tiles * self.width * a.vector == a.size and a.parts * a.size == a.length
        inside = None if whole else e.compare("LT", here, a.size // a.vector)
        if inside is not None:
            inside = e.both(inside, e.compare("LT", number, a.length // a.vector))
            number = bounded(e, number, a.length // a.vector - 1)
        number = e.at_most(number, a.length // a.vector - 1)
        start = self.row * (a.length // a.vector) + self.turned(number, a.length // a.vector - 1)
        found = neighbours(e, start, a.vector)
        return found[::-1] if a.reverse else found, inside

    def running(self, positions: Sequence[Scalar], inside: Scalar | None) -> list[Scalar]:
        """Of each of a lane's elements, what it and those before it give."""
        found: list[Scalar] = []
        for value in [self.load(position) for position in positions]:
            value = value if inside is None else self.e.select(inside, value, self.neutral())
            found.append(self.op(found[-1], value) if found else value)
        return found

    def totals(self) -> Kernel:
        e = self.e
        total = e.variable(self.neutral())
        with e.counted(self.tiles) as tile:
            e.assign(total, self.op(total, self.running(*self.elements(tile))[-1]))
        found = self._together(total)
        with e.only_if(e.compare("EQ", self.side.place, 0)):
            self.total.store(self.row * self.a.parts + self.part, found)
        return self.finished([self.total])

    def _together(self, total: Scalar) -> Scalar:
        """What lanes have, in order, in each of them."""
        _, found = self._before(total, self.e.number(0))
        return found

    def _before(self, total: Scalar, turn: Scalar) -> tuple[Scalar, Scalar]:
        """What lanes before a lane have, in order, and what all have."""
        e, lane = self.e, self.side.place
        near = min(self.target.subgroup, self.width)
        ahead, step = self.neutral(), 1
        while step < near:  # of twice as many neighbours each time: those of the other half, if that is in front
            other = e.other_lane(total, step)
            behind = e.compare("NE", lane // step % 2, 0)
            ahead = e.select(behind, self.op(other, ahead), ahead)
            total = e.select(behind, self.op(other, total), self.op(total, other))
            step *= 2
        groups = self.width // near
        if groups == 1:
            return ahead, total
        start = turn * groups
        with e.only_if(e.compare("EQ", lane % near, 0)) if near > 1 else nullcontext():
            self.memory.store(start + lane // near, total)
        e.barrier()
        in_front, all_ = e.variable(self.neutral()), e.variable(self.neutral())
        with e.counted(groups) as k:
            value = self.memory.load(start + k)
            e.assign(in_front, e.select(e.compare("LT", k, lane // near), self.op(in_front, value), in_front))
            e.assign(all_, self.op(all_, value))
        return self.op(in_front, ahead), all_

    def scan(self) -> Kernel:
        e, a = self.e, self.a
        carry = e.variable(self.neutral())
        if a.parts > 1:
            with e.counted(e.at_most(self.part, a.parts - 1)) as k:
                e.assign(carry, self.op(carry, self.total.load(self.row * a.parts + k)))
        with e.counted(self.tiles) as tile:
            positions, inside = self.elements(tile)
            found = self.running(positions, inside)
            ahead, all_ = self._before(found[-1], tile % 2)
            first = self.op(carry, ahead)
            results = [e.convert(self.op(first, value), a.dtype) for value in found]
            with e.only_if(inside) if inside is not None else nullcontext():
                for position, result in zip(positions, results, strict=True):
                    self.out.store(position, result)
            e.assign(carry, self.op(carry, all_))
        return self.finished([self.out])


class _Columns(_Writer):
    """Along another axis: a lane for a part of neighbouring columns."""

    def __init__(self, a: _Scan, target: MachineDescription, name: str) -> None:
        across = a.after // a.vector
        super().__init__(a, target, name, a.before * a.parts * across, target.block)
        e = self.e
        self.number, self.part = e.lane % across, e.lane // across % a.parts
        self.row = e.lane // (across * a.parts)

    def rows(self, totals: Sequence[Scalar], write: bool) -> None:
        """Go down the columns of a part, from what they begin with."""
        e, a = self.e, self.a
        if a.parts * a.size == a.length:
            whole, left = divmod(a.size, UNDER_WAY)
            if whole:
                with e.counted(whole) as k:
                    self._step(totals, write, [k * UNDER_WAY + more for more in range(UNDER_WAY)])
            for more in range(left):
                self._step(totals, write, [e.number(whole * UNDER_WAY + more)])
            return
        start = self.part * a.size
        here = e.select(e.compare("LT", start + a.size, a.length), e.number(a.size), a.length - start)
        with e.counted(e.at_most(here, a.size)) as k:
            self._step(totals, write, [k])

    def _step(self, totals: Sequence[Scalar], write: bool, places: Sequence[Scalar]) -> None:
        e, a = self.e, self.a
        positions = []
        for k in places:
            place = bounded(e, self.part * a.size + k, a.length - 1)
            line = self.row * a.length + self.turned(place, a.length - 1)
            positions.append(neighbours(e, line * (a.after // a.vector) + self.number, a.vector))
        values = [[self.load(position) for position in here] for here in positions]
        for here, row in zip(positions, values, strict=True):
            for total, value in zip(totals, row, strict=True):
                e.assign(total, self.op(total, value))
            if write:
                for position, total in zip(here, totals, strict=True):
                    self.out.store(position, e.convert(total, a.dtype))

    def _total_at(self, part: Scalar) -> list[Scalar]:
        a = self.a
        line = self.row * a.parts + part
        return neighbours(self.e, line * (a.after // a.vector) + self.number, a.vector)

    def totals(self) -> Kernel:
        found = [self.e.variable(self.neutral()) for _ in range(self.a.vector)]
        self.rows(found, write=False)
        for position, total in zip(self._total_at(self.part), found, strict=True):
            self.total.store(position, total)
        return self.finished([self.total])

    def scan(self) -> Kernel:
        e, a = self.e, self.a
        found = [e.variable(self.neutral()) for _ in range(a.vector)]
        if a.parts > 1:
            with e.counted(e.at_most(self.part, a.parts - 1)) as k:
                for total, position in zip(found, self._total_at(k), strict=True):
                    e.assign(total, self.op(total, self.total.load(position)))
        self.rows(found, write=True)
        return self.finished([self.out])
