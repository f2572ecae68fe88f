"""Sorts for machines of blocks: every element finds its own place, in rows that are merged two by two.

Comes in: a `sort`. Goes out: kernels with a lane for each element. In the first, elements are ranked within short runs:
a lane counts who stands before its own. Each further one merges neighbouring runs: an element's place is its place in
its own run, and how many of the other run stand before it, which the lane finds by halving. Of equal elements those of
the left run are first, so that their order is kept. Between kernels the rows lie side by side, with the places that
elements came from; the last kernel puts both where they belong.
"""

from __future__ import annotations

from typing import NamedTuple

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.ops.shapes import count
from eshkol.ops.sorting import before, sort
from eshkol.schedule.kernels.block_factors import at_most
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import INDEX, Scalar

OUTS = ("out0", "out1")
PLACE = dtypes.int32  # in which places are kept between kernels
MOST_RANKED = 32  # elements whose places are found by comparing each with all


def is_sort(node: Node) -> bool:
    """Whether a node is computed here: its elements are counted in registers of indices."""
    return node.op is sort and count(node.inputs[0].shape) < 1 << 31


def block_sort_kernels(node: Node, target: MachineDescription) -> Kernel | tuple[Kernel, ...]:
    """The kernels of a sort."""
    rows = _Rows.of(node)
    if rows.size == 0:
        return Kernel(Program(), None, None, OUTS, (), ())
    width = 1 << (min(target.short_row, MOST_RANKED) - 1).bit_length()
    widths = [width]
    while widths[-1] < rows.length:
        widths.append(widths[-1] * 2)
    # A kernel makes runs of each width; all but the last leave them in one pair of buffers, and read the other.
    kernels = [_Ranking(rows, target, 0, last=len(widths) == 1).kernel(width)]
    for turn, half in enumerate(widths[:-1], 1):
        kernels.append(_Merging(rows, target, turn, last=turn == len(widths) - 1).kernel(half))
    return tuple(kernels)


class _Rows(NamedTuple):
    """What is sorted: so many rows of a length, whose elements lie `apart` from each other, in one direction."""

    shape: tuple[int, ...]
    dtype: DType
    length: int
    apart: int
    descending: bool

    @staticmethod
    def of(node: Node) -> _Rows:
        x, (axis, descending) = node.inputs[0], node.attrs
        return _Rows(x.shape, x.dtype, x.shape[axis], count(x.shape[axis + 1 :]), descending)

    @property
    def size(self) -> int:
        return count(self.shape)

    def position(self, row: Scalar, place: Scalar) -> Scalar:
        """Where an element of a row lies in the tensor."""
        return row // self.apart * (self.length * self.apart) + place * self.apart + row % self.apart


class _Step:
    """One of the kernels under construction: a lane for each element, in the order of the rows."""

    name: str

    def __init__(self, rows: _Rows, target: MachineDescription, turn: int, *, last: bool) -> None:
        self.rows, self.target, self.last = rows, target, last
        self.e = e = Emitter((rows.size,))
        self.row, self.place = e.lane // rows.length, e.lane % rows.length
        self.scratch: list[Write] = []
        self.read = Read(e, "x0", rows.shape, rows.dtype)
        if last:
            self.keys, self.places = Write(e, OUTS[0], rows.shape, rows.dtype), Write(e, OUTS[1], rows.shape, INDEX)
        else:
            self.keys, self.places = self.memory(turn)

    def memory(self, turn: int) -> tuple[Write, Write]:
        """The keys and places that a kernel leaves to the next one."""
        made = [Write(self.e, f"{name}{turn % 2}", (self.rows.size,), dtype) for name, dtype in self._kept]
        self.scratch += made
        return made[0], made[1]

    @property
    def _kept(self) -> tuple[tuple[str, DType], tuple[str, DType]]:
        return ("key", self.rows.dtype), ("place", PLACE)

    def first(self, one: Scalar, other: Scalar) -> Scalar:
        """Whether a key belongs before another that is not equal to it."""
        if self.rows.dtype.is_float and self.rows.dtype.bits == 16:
            one, other = (self.e.convert(key, dtypes.float32) for key in (one, other))
        found: Scalar = before(self.e, other, one) if self.rows.descending else before(self.e, one, other)
        return found

    def put(self, place: Scalar, key: Scalar, source: Scalar) -> None:
        """Store a key at its place in the row, and where it came from."""
        e, rows = self.e, self.rows
        place = at_most(e, place, rows.length - 1)
        to = rows.position(self.row, place) if self.last else self.row * rows.length + place
        self.keys.store(to, key)
        self.places.store(to, e.convert(source, self.places.dtype))

    def finished(self) -> Kernel:
        size = self.rows.size
        writes = [*self.scratch, *((self.keys, self.places) if self.last else ())]
        program = shown(self.e.finish(self.name, [self.read], writes, size))
        buffers = (("x0", 0),) if "x0" in program.param else ()
        scratch = tuple((memory.name, memory.dtype, size) for memory in self.scratch)
        return Kernel(program, LaunchConfig.linear(size, self.target.block), None, OUTS, buffers, (), scratch)


class _Ranking(_Step):
    name = "sort_ranks"

    def kernel(self, width: int) -> Kernel:
        """Runs of a width, from the tensor as it is."""
        e, length = self.e, self.rows.length
        start = self.place // width * width
        own = self.read.load(self.rows.position(self.row, self.place))
        rank = e.variable(e.number(0))
        with e.counted(min(width, length)) as j:
            at = start + j
            key = self.read.load(self.rows.position(self.row, at_most(e, at, length - 1)))
            earlier = e.both(e.compare("LT", at, self.place), e.negation(self.first(own, key)))
            counts = e.both(e.compare("LT", at, length), e.op("OR", self.first(key, own), earlier))
            e.assign(rank, rank + e.convert(counts, INDEX))
        self.put(start + e.sure_index(rank, width), own, self.place)
        return self.finished()


class _Merging(_Step):
    name = "sort_merge"

    def __init__(self, rows: _Rows, target: MachineDescription, turn: int, *, last: bool) -> None:
        super().__init__(rows, target, turn, last=last)
        self.from_keys, self.from_places = self.memory(turn + 1)

    def kernel(self, half: int) -> Kernel:
        """Runs of twice a width, of pairs of runs."""
        e, length = self.e, self.rows.length
        start, right = self.place // (2 * half) * (2 * half), self.place // half % 2
        other = start + (1 - right) * half  # where the other run starts, if there is one
        own = self.from_keys.load(e.lane)
        is_right = e.compare("EQ", right, 1)
        passed = e.number(0)
        for step in (*(half >> k for k in range(1, half.bit_length())), 1):
            at = other + (passed + (step - 1))
            key = self.from_keys.load(self.row * length + at_most(e, at, length - 1))
            # Of equal ones those of the left run stand before those of the right.
            counts = e.select(is_right, e.negation(self.first(own, key)), self.first(key, own))
            passed = e.select(e.both(counts, e.compare("LT", at, length)), passed + step, passed)
        source = self.from_places.load(e.lane)
        self.put(start + self.place % half + passed, own, e.convert(source, INDEX))
        return self.finished()
