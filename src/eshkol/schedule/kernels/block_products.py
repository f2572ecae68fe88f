"""Products for machines of blocks: matrices, and convolutions seen as products of matrices that are nowhere written.

Comes in: a product of matrices, or one of the three products of a convolution. Goes out: a kernel in which each block
has a tile of the result. The block goes along the sums in slabs: it copies a slab of both factors into the memory that
its lanes share, and every lane multiplies what it needs of them into a tile of its own, whose sums it holds in
registers. While one slab is multiplied the next one is on its way, so that two of each lie in shared memory, and one
barrier for each slab is enough. Where tiles are too few to keep the machine at work the sums are cut into parts, which
a second kernel adds up. Where a factor is read again and again, and never side by side, another kernel turns it first.

Lanes beyond an edge read the last row or column again, and write nothing. Terms beyond the end of the sums are zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.correlation import FORMS
from eshkol.ops.dtypes import DType
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.block_factors import Factor, Matrices, Problem, Source, at_most, correlation
from eshkol.schedule.kernels.code import OutOfRegisters
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.tiling import Tiling, tilings

VECTOR = 4  # elements that a lane reads at once from shared memory, where they lie side by side
PATCH = (4, 8)  # lanes that run together, down and across: together they need few rows and columns
STRIP = 8  # tiles above each other whose blocks follow each other: they share what they read
PRODUCTS = frozenset({matrix_product, *FORMS})
PART, TURNED = "part0", "turned0"  # the memory of partial sums, and of a factor in the order of its terms


def is_product(node: Node) -> bool:
    """Whether a node is computed here: its extents are not 0, and fit the registers of indices."""
    if node.op not in PRODUCTS or not all(0 < count(x.shape) < 1 << 31 for x in (*node.inputs, node)):
        return False
    return node.op is matrix_product or correlation(node).suits


def block_product_kernels(node: Node, target: MachineDescription) -> tuple[Kernel, ...]:
    """The kernels of a product: in the best tiles whose code, with what it takes to find elements, fits registers."""
    rows, columns, terms = _problem(node).extents
    full: OutOfRegisters | None = None
    for cut in tilings(_problem(node).batch, rows, columns, terms, target, _working(node.dtype).size):
        try:
            return _kernels(node, cut, target)
        except OutOfRegisters as error:
            full = error
    assert full is not None
    raise full


def _problem(node: Node) -> Problem:
    return Matrices(node) if node.op is matrix_product else correlation(node)


def _kernels(node: Node, cut: Tiling, target: MachineDescription) -> tuple[Kernel, ...]:
    problem = _problem(node)
    problem.settle(cut)
    before = (_turning(node, problem, target),) if problem.turned else ()
    after = (adding_kernel(node, cut.parts, target),) if cut.parts > 1 else ()
    return *before, _Writer(node, problem, cut).kernel(), *after


def _working(dtype: DType) -> DType:
    """In which dtype products are summed."""
    return dtypes.float32 if dtype.is_float and dtype.bits == 16 else dtype


def corner(tile: Scalar, down: int, across: int) -> tuple[Scalar, Scalar]:
    """The row and the column of tiles in which the tile with this number stands."""
    if down % STRIP == 0 and across > 1:
        strip = tile // (STRIP * across)
        return strip * STRIP + tile % STRIP, tile // STRIP % across
    return tile // across, tile % across


# --- slabs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fetched:
    """An element on its way into shared memory."""

    value: Scalar
    valid: Scalar | None


class _Slab:
    """How the lanes of a block bring a slab of a factor into shared memory, where it lies term by term.

    Each lane has some elements; those of neighbouring lanes lie side by side in memory.
    """

    def __init__(
        self, e: Emitter, factor: Factor, working: DType, lines: int, depth: int, lanes: int, place: Scalar,
        first: Scalar, extent: int,
    ) -> None:  # fmt: skip
        self.e, self.factor, self.working = e, factor, working
        # Where lanes store terms of one line they lie in different banks of the memory.
        self.width = lines + VECTOR if factor.deep and lines >= VECTOR else lines
        self.depth, self.size = depth, depth * self.width
        self.memory = e.shared(working, 2 * self.size)
        self.pieces = list(_pieces(place, lines, depth, lanes, deep=factor.deep))
        self.lines: dict[int, Any] = {}
        for line, beyond, _, _ in self.pieces:
            if beyond not in self.lines:
                self.lines[beyond] = factor.line(at_most(e, first + line + beyond, extent - 1))

    def fetch(self, start: Scalar, terms: int, *, whole: bool) -> list[_Fetched]:
        """This lane's elements of the slab that starts with a term; whole: no slab reaches beyond the end."""
        e, found = self.e, []
        aligned = terms % self.depth == 0  # then a slab lies within the sums or beyond them
        within = e.compare("LT", start, terms) if aligned and not whole else None
        slab = at_most(e, start, terms - self.depth) if aligned else start
        for _, beyond, term, further in self.pieces:
            at, inside = term + further, within
            if not aligned:
                inside = e.compare("LT", start + at, terms)
                slab, at = at_most(e, start + at, terms - 1), e.number(0)
            position, valid = self.factor.element(self.lines[beyond], slab, at)
            if inside is not None:
                valid = inside if valid is None else e.both(inside, valid)
            found.append(_Fetched(self.factor.read.load(position), valid))
        return found

    def put(self, half: Scalar, fetched: Sequence[_Fetched]) -> None:
        """Store what was fetched into one half of the memory."""
        e = self.e
        for (line, beyond, term, further), element in zip(self.pieces, fetched, strict=True):
            value = e.convert(element.value, self.working)
            if element.valid is not None:
                value = e.select(element.valid, value, 0)
            self.memory.store(half * self.size + term * self.width + line, value, further * self.width + beyond)


def _pieces(
    place: Scalar, lines: int, depth: int, lanes: int, *, deep: bool
) -> Iterator[tuple[Scalar, int, Scalar, int]]:
    """A lane's elements of a slab: its line and how far beyond that, its term and how far further."""
    fast, slow = (depth, lines) if deep else (lines, depth)
    zero = place * 0
    for number in range(lines * depth // lanes):
        if lanes >= fast:
            at = place % fast, 0, place // fast, number * (lanes // fast)
        else:
            each = fast // lanes
            at = place, number % each * lanes, zero, number // each
        quick, beyond, rest, further = at
        assert further < slow
        yield (rest, further, quick, beyond) if deep else at


# --- the kernel -----------------------------------------------------------------------------------


class _Writer:
    """The kernel of a product under construction."""

    def __init__(self, node: Node, problem: Problem, cut: Tiling) -> None:
        self.node, self.problem, self.cut, self.tile = node, problem, cut, cut.tile
        self.rows, self.columns, self.terms = problem.extents
        self.lanes = cut.blocks * self.tile.lanes
        self.working = _working(node.dtype)
        self.e = e = Emitter((self.lanes,))
        self.reads = [Read(e, f"x{k}", x.shape, x.dtype) for k, x in enumerate(node.inputs)]
        self.sources: list[Source] = [*self.reads]
        self.scratch: list[Write] = []
        if cut.parts == 1:
            self.write = Write(e, "out", node.shape, node.dtype)
        else:
            self.write = self._meanwhile(PART, cut.parts * count(node.shape), self.working)
        if problem.turned:
            self.sources[1] = self._meanwhile(TURNED, problem.turned, node.inputs[1].dtype)

    def _meanwhile(self, name: str, size: int, dtype: DType) -> Write:
        self.scratch.append(Write(self.e, name, (size,), dtype))
        return self.scratch[-1]

    def kernel(self) -> Kernel:
        e, cut = self.e, self.cut
        place, block = e.lane % self.tile.lanes, e.lane // self.tile.lanes
        part, tile = e.digit(block, cut.down * cut.across * self.problem.batch, cut.parts), block
        which = e.digit(tile, cut.down * cut.across, self.problem.batch)
        row, column = corner(tile % (cut.down * cut.across), cut.down, cut.across)
        top, left = row * self.tile.rows, column * self.tile.columns
        slabs = self._slabs(place, top, left, which)
        rows, columns = self._lanes(place)
        sums = self._sums(slabs, part * (cut.slabs * self.tile.depth), rows, columns)
        self._store(sums, part, which, top, left, rows, columns)
        writes = [self.write, *(memory for memory in self.scratch if memory is not self.write)]
        program = shown(e.finish(self.node.op.name, self.reads, writes, self.lanes))
        buffers = tuple((f"x{k}", k) for k in range(2) if f"x{k}" in program.param)
        launch = LaunchConfig.linear(self.lanes, self.tile.lanes, e.shared_memory)
        return Kernel(program, launch, None, ("out",), buffers, (), tuple(needed(memory) for memory in self.scratch))

    def _slabs(self, place: Scalar, top: Scalar, left: Scalar, which: Scalar) -> list[_Slab]:
        t = self.tile
        found = []
        for factor, lines, first, extent in zip(
            self.problem.factors(self.e, self.sources, which), (t.rows, t.columns), (top, left),
            (self.rows, self.columns), strict=True,
        ):  # fmt: skip
            found.append(_Slab(self.e, factor, self.working, lines, t.depth, t.lanes, place, first, extent))
        return found

    def _lanes(self, place: Scalar) -> tuple[_Share, _Share]:
        """Which rows and columns of its tile a lane has."""
        t, (high, wide) = self.tile, PATCH
        down, across = t.rows // t.lane_rows, t.columns // t.lane_columns
        if down % high or across % wide:
            row, column = place // across, place % across
        else:
            patch, inside = place // (high * wide), place % (high * wide)
            row = patch // (across // wide) * high + inside // wide
            column = patch % (across // wide) * wide + inside % wide
        return _Share(row, t.lane_rows, down), _Share(column, t.lane_columns, across)

    def _sums(self, slabs: list[_Slab], start: Scalar, rows: _Share, columns: _Share) -> list[list[Scalar]]:
        e, depth, rounds = self.e, self.tile.depth, self.cut.slabs
        whole = self.cut.parts * rounds * depth == self.terms
        zero = e.constant(0, self.working)
        sums = [[e.variable(zero) for _ in columns.beyond] for _ in rows.beyond]
        for slab in slabs:
            slab.put(e.number(0), slab.fetch(start, self.terms, whole=whole))
        e.barrier()
        with ExitStack() as stack:
            q = stack.enter_context(e.counted(rounds)) if rounds > 1 else e.number(0)
            ahead: list[list[_Fetched]] = []
            if rounds > 1:
                following = start + at_most(e, q + 1, rounds - 1) * depth
                ahead = [slab.fetch(following, self.terms, whole=whole) for slab in slabs]
            self._multiply(slabs, q % 2, rows, columns, sums)
            for slab, fetched in zip(slabs, ahead, strict=False):
                slab.put((q + 1) % 2, fetched)
            if rounds > 1:
                e.barrier()
        return sums

    def _multiply(
        self, slabs: list[_Slab], half: Scalar, rows: _Share, columns: _Share, sums: list[list[Scalar]]
    ) -> None:
        """Take a slab into the sums."""
        e, (left, right) = self.e, slabs
        first, second = half * left.size + rows.first, half * right.size + columns.first
        for term in range(self.tile.depth):
            factors = [left.memory.load(first, term * left.width + beyond) for beyond in rows.beyond]
            others = [right.memory.load(second, term * right.width + beyond) for beyond in columns.beyond]
            for line, x in zip(sums, factors, strict=True):
                for total, y in zip(line, others, strict=True):
                    e.record("FMA", total.register, x.register, y.register, total.register)

    def _store(
        self, sums: list[list[Scalar]], part: Scalar, which: Scalar, top: Scalar, left: Scalar, rows: _Share,
        columns: _Share,
    ) -> None:  # fmt: skip
        e, result = self.e, self.problem.result(self.e, which)
        start = part * count(self.node.shape)
        top, left = top + rows.first, left + columns.first
        places = [left + beyond for beyond in columns.beyond]
        inside = [e.compare("LT", place, self.columns) for place in places]
        across = [result.column(at_most(e, place, self.columns - 1)) for place in places]
        for beyond, line in zip(rows.beyond, sums, strict=True):
            row = top + beyond
            with self._only(e.compare("LT", row, self.rows)):
                down = start + result.row(at_most(e, row, self.rows - 1))
                for column, valid, total in zip(across, inside, line, strict=True):
                    with self._only(valid):
                        self.write.store(down + column, e.convert(total, self.write.dtype))

    def _only(self, truth: Scalar) -> Any:
        return ExitStack() if truth.known else self.e.only_if(truth)


class _Share:
    """The rows (or columns) of a tile that a lane has: vectors of some, evenly spread over the tile."""

    def __init__(self, place: Scalar, each: int, lanes: int) -> None:
        width = min(VECTOR, each)
        self.first = place * width
        self.beyond = [vector * lanes * width + k for vector in range(each // width) for k in range(width)]


# --- kernels before and after ---------------------------------------------------------------------


def needed(memory: Write) -> tuple[str, DType, int]:
    """Memory as a kernel says that it needs it."""
    return memory.name, memory.dtype, count(memory.shape)


def _turning(node: Node, problem: Problem, target: MachineDescription) -> Kernel:
    """The kernel that puts a factor in the order of its terms."""
    size, dtype = problem.turned, node.inputs[1].dtype
    e = Emitter((size,))
    read, write = Read(e, "x1", node.inputs[1].shape, dtype), Write(e, TURNED, (size,), dtype)
    write.store(e.lane, read.load(problem.source(e, read, e.lane)))
    program = shown(e.finish(f"{node.op.name}_turned", [read], [write], size))
    launch = LaunchConfig.linear(size, target.block)
    return Kernel(program, launch, None, ("out",), (("x1", 1),), (), (needed(write),))


def adding_kernel(node: Node, cut: int, target: MachineDescription) -> Kernel:
    """The kernel that adds up parts of the sums."""
    size, working = count(node.shape), _working(node.dtype)
    e = Emitter((size,))
    parts, write = Write(e, PART, (cut * size,), working), Write(e, "out", node.shape, node.dtype)
    total = parts.load(e.lane)
    for part in range(1, cut):
        total = total + parts.load(e.lane + part * size)
    write.store(e.lane, e.convert(total, node.dtype))
    program = shown(e.finish(f"{node.op.name}_sums", (), [parts, write], size))
    return Kernel(program, LaunchConfig.linear(size, target.block), None, ("out",), (), (), (needed(parts),))
