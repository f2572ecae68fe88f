"""Attention in fragments: a block has some queries of one head, and goes along the keys, tile by tile.

Comes in: a `seen_attention`. Goes out: its kernel. The queries of a sub-group stay in registers as fragments, and so do
the sums of its results. Tiles of keys and values come through shared memory; while one is multiplied the next is on its
way. Of each row of scores the greatest so far is known, and the sum of the powers: where a tile has a greater one, what
was summed is made smaller ("online softmax"). Scores never leave registers: as they come out of one product they are
the left factor of the other.

Powers are those of two, and are rounded to 16 bits before values are multiplied by them; their sums, by which the
results are divided in the end, are of what they were before. Tiles of keys that come later than all queries of a block
are left out where attention is causal; tiles at an edge, or on the diagonal, are masked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, NamedTuple, Protocol

from eshkol.atlas.fragments import COLUMNS, LANES, LINE_BYTES, ROWS, SIDE
from eshkol.atlas.machines import AttentionTile, MachineDescription
from eshkol.atlas.operands import Condition
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.types import Type
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.array_products import is_whole_attention, paged_attention_kernel, whole_attention_kernel
from eshkol.schedule.kernels.attention import PAGED_ATTENTION, SEEN_ATTENTION, SUMMED_ATTENTION, SeenAttention
from eshkol.schedule.kernels.block_factors import at_most, digits
from eshkol.schedule.kernels.code import TRUTH, Virtual
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.fragment_tiles import Four, RowTile, as_left, constant, multiply, of, zeros
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.matrix_operands import CHUNK, suits
from eshkol.schedule.kernels.products import View
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import INDEX, TYPES, Scalar

USABLE = 252
LARGEST = 1 << 28  # elements of an operand or the result: their chunks are counted in registers of indices
MOST = 1 << 31  # the same, of what is done as a whole
LOWEST = -1e30  # where the greatest score of a row begins


OUTS = ("out0", "out1")  # of what gives the sums too


def is_attention(node: Node) -> bool:
    """Whether a node is computed here."""
    return node.op in (SEEN_ATTENTION, SUMMED_ATTENTION, PAGED_ATTENTION)


def attends(a: SeenAttention, dtype: dtypes.DType, target: MachineDescription) -> bool:
    """Whether a machine has a kernel for such attention: rows of whole chunks, of one width, in fragments.

    Heads may be wider than those of its tiles, see only some keys, and drop weights, where it is done as a whole.
    """
    if target.matrices is None or TYPES.get(dtype) not in target.matrices.types or a.scale <= 0:
        return False
    width = a.q.shape[-1]
    if (a.in_part or a.dropout or not in_tiles(width, target)) and not is_whole_attention(a, target):
        return False
    if width > target.widest_head and not in_tiles(width, target):
        return False
    largest = MOST if is_whole_attention(a, target) else LARGEST
    return all(in_rows(view) and view.shape[-1] == width for view in (a.q, a.k, a.v)) and 0 < _size(a) < largest


def _size(a: SeenAttention) -> int:
    """Elements of the largest operand, or of the result; 0 if one has none."""
    sizes = [count(view.shape) for view in (a.q, a.k, a.v)] + [count(a.shape)]
    return max(sizes) if all(sizes) else 0


def in_fragments(a: SeenAttention, target: MachineDescription) -> bool:
    """Whether attention of such a size, to such keys, could be in fragments, and its gradients too."""
    whole = a.grouped or a.in_part or a.dropout
    return in_tiles(a.q.shape[-1], target) and not whole and _size(a) < LARGEST


def in_tiles(width: int, target: MachineDescription) -> bool:
    """Whether a machine has a tile for heads of so many elements."""
    assert target.matrices is not None
    return any(width <= tile.widest for tile in target.matrices.attention)


def in_rows(view: View) -> bool:
    """Whether rows of matrices are whole chunks, which begin where chunks do."""
    return suits(view) and view.strides[-1] == 1


def attention_kernels(node: Node, target: MachineDescription) -> tuple[Kernel, ...]:
    """The kernel of attention, in tiles for heads of its width, or as a whole."""
    if node.op is PAGED_ATTENTION:
        return (paged_attention_kernel(node),)
    if is_whole_attention(node.attrs, target):
        return (whole_attention_kernel(node),)
    return (_Writer(node, attention_tile(node.attrs, target)).kernel(),)


def attention_tile(a: SeenAttention, target: MachineDescription) -> AttentionTile:
    assert target.matrices is not None
    return next(tile for tile in target.matrices.attention if a.q.shape[-1] <= tile.widest)


class Span(NamedTuple):
    """Tiles that a block goes along: from one on, so many."""

    start: Scalar
    rounds: Scalar
    masked: bool


class Fragments(Protocol):
    """Fragments of lines, one for each step along their elements."""

    def __getitem__(self, step: int, /) -> Four: ...


class AttentionWriter:
    """A kernel in which blocks have some lines (queries, or keys), and go along tiles of the others."""

    keeps = Condition.LT  # how the place of what is seen is to a line's limit

    def __init__(self, node: Node, a: SeenAttention, tile: AttentionTile, lines: int, others: int) -> None:
        self.node, self.tile, self.a, self.lines, self.others = node, tile, a, lines, others
        self.width = a.q.shape[-1]
        self.down, self.across = -(-lines // tile.queries), -(-others // tile.keys)
        self.lanes = count(a.batch) * self.down * tile.lanes
        self.e = e = Emitter((self.lanes,), usable=USABLE)
        self.ty = TYPES[node.inputs[0].dtype]
        self.reads = [Read(e, f"x{k}", x.shape, x.dtype) for k, x in enumerate(node.inputs)]
        self.place, block = e.lane % tile.lanes, e.lane // tile.lanes
        self.which, self.number = e.digit(block, self.down, count(a.batch)), block % self.down
        self.group, self.lane = self.place // LANES, self.place % LANES
        self.memory = 0  # chunks of shared memory

    def settle(self) -> None:
        """What is known once it is known which lines a block has."""
        tile = self.tile
        self.first = self.number * tile.queries
        self.top = self.first + self.group * (tile.fragments * ROWS) + self.lane // 4
        self.scale = self.a.scale * math.log2(math.e)

    def rows_of(self, n: int, view: View, rows: int) -> RowTile:
        """A tile in shared memory, of so many rows of an input."""
        e = self.e
        found = RowTile(e, rows, self.width, self.memory)
        self.memory += found.chunks
        start = e.number(view.offset // CHUNK)
        for at, step in zip(digits(e, self.which, self.a.batch), self.a.steps(view), strict=True):
            start = start + at * (step // CHUNK)
        stride, total = view.strides[-2] // CHUNK, view.shape[-2]
        found.prepare(self.reads[n].name, self.ty, start, stride, total, self.place, self.tile.lanes)
        return found

    def finish(self, name: str, outs: tuple[str, ...], writes: Sequence[Write]) -> Kernel:
        program = shown(self.e.finish(name, self.reads, writes, self.lanes))
        buffers = tuple((read.name, n) for n, read in enumerate(self.reads))
        launch = LaunchConfig.linear(self.lanes, self.tile.lanes, self.memory * LINE_BYTES)
        return Kernel(program, launch, None, outs, buffers, ())

    # --- tiles after one another --------------------------------------------------------------------

    def stage(self, pair: Sequence[RowTile]) -> None:
        """Two tiles come together, of which there is room for two: one is on its way while one is used."""
        self.pair, self.size = pair, sum(tile.chunks for tile in pair)
        self.memory += self.size

    def spans(self) -> list[Span]:
        """The tiles that a block of queries looks at: those that it sees all of, and those that are masked."""
        e, keys = self.e, self.tile.keys
        all_, whole = e.number(self.across), e.number(self.others // keys)
        if self.a.causal:
            each = self.tile.queries // keys
            all_ = at_most(e, self.number * each + each, self.across)
            whole = at_most(e, self.number * each, self.others // keys)
        return [Span(e.number(0), whole, False), Span(whole, self.between(whole, all_), True)]

    def between(self, start: Scalar, end: Scalar) -> Scalar:
        """How many there are from one to another, which is no less."""
        e = self.e
        if start.known is not None and end.known is not None:
            return e.number(end.known - start.known)
        found, bound = e.fresh(Type.U32), e.register(e.number(self.across), Type.U32)
        e.record("SUB", found, e.register(end, Type.U32), e.register(start, Type.U32))
        e.record("MIN", found, found, bound)  # said so that ranges show it
        return Scalar(e, INDEX, found, most=self.across)

    def begin(self, j: Scalar, end: Scalar) -> None:
        """Begin to copy a pair of tiles, if there is one."""
        e = self.e
        valid = e.compare("LT", j, end)
        first = at_most(e, j, self.across - 1) * self.tile.keys
        for tile in self.pair:
            tile.copy(first, j % 2 * self.size, valid)
        e.record("CopyCommit")

    def along(self, spans: Sequence[Span], end: Scalar) -> None:
        """Go along the tiles, of which the first is under way."""
        for span in spans:
            if span.rounds.known == 0:
                continue
            with self.e.counted(span.rounds) as round_:
                j = span.start + round_
                self.e.record("CopyWait", 0)
                self.e.barrier()
                self.begin(j + 1, end)
                self.tile_of(j, j % 2 * self.size, masked=span.masked)

    def tile_of(self, j: Scalar, memory: Scalar, *, masked: bool) -> None:
        """What is done with a pair of tiles that has arrived."""
        raise NotImplementedError

    def limits(self, *, further: int, most: int | None) -> list[list[Virtual]]:
        """For each line of a lane a place, less those before the lane's first column: so far beyond the line's own.

        Without a most, all of them are the end of the others.
        """
        e, found = self.e, []
        before = self._signed((self.lane % 4) * 2)
        for n in range(self.tile.fragments):
            lines = []
            for half in range(2):
                limit = e.number(self.others)
                if most is not None:
                    limit = at_most(e, self.top + (n * ROWS + half * SIDE + further), most)
                lines.append(of(e, "SUB", self._signed(limit), before))
            found.append(lines)
        return found

    def _signed(self, index: Scalar) -> Virtual:
        found = self.e.fresh(Type.I32)
        self.e.record("CVT", Type.U32, Type.I32, found, self.e.register(index, Type.U32))
        return found

    # --- scores ---------------------------------------------------------------------------------------

    def product(self, left: Sequence[Fragments], right: RowTile, aim: Scalar) -> list[list[Four]]:
        """Fragments of lines, one for each step along their elements, times the rows of a tile."""
        e = self.e
        found = [zeros(e, self.tile.keys // COLUMNS) for _ in left]
        for step in range(right.steps):
            for pair in range(self.tile.keys // ROWS):
                other = right.load(aim, pair * ROWS, 2 * step)
                for one, total in zip(left, found, strict=True):
                    multiply(e, self.ty, total[2 * pair :][:2], one[step], other)
        return found

    def add(self, sums: Sequence[list[Four]], left: Sequence[list[Four]], right: RowTile, aim: Scalar) -> None:
        """Add what was made of scores, rounded, times the columns of a tile."""
        e = self.e
        for step in range(self.tile.keys // ROWS):
            factors = [as_left(e, self.ty, total[2 * step :][:2]) for total in left]
            for pair in range(right.steps):
                other = right.load(aim, step * ROWS, 2 * pair, turned=True)
                for one, total in zip(factors, sums, strict=True):
                    multiply(e, self.ty, total[2 * pair :][:2], one, other)

    def mask(self, scores: Sequence[Sequence[Four]], j: Scalar, limits: list[list[Virtual]]) -> None:
        """Let no line see others beyond its limit."""
        e = self.e
        start, nothing = self._signed(j * self.tile.keys), constant(e, -math.inf)
        for total, lines in zip(scores, limits, strict=True):
            for half, limit in enumerate(lines):
                left = of(e, "SUB", limit, start)
                for number, four in enumerate(total):
                    for beyond in range(2):
                        column, score = constant(e, number * COLUMNS + beyond, Type.I32), four[2 * half + beyond]
                        e.record("SETcc", self.keeps, TRUTH, column, left)
                        e.record("SEL", score, TRUTH, score, nothing)

    def among_four(self, name: str, value: Virtual) -> Virtual:
        """The combination of what four neighbouring lanes have, which hold a row together."""
        for mask in (1, 2):
            other = self.e.fresh(value.ty)
            self.e.record("SubGroupXor", value.ty, other, value, mask)
            value = of(self.e, name, value, other)
        return value

    def store(self, write: Write, sums: Sequence[list[Four]], factors: Sequence[Sequence[Virtual]]) -> None:
        """Write the lines of a block, each times a factor."""
        e = self.e
        start = self.which * (self.lines * self.width) + (self.lane % 4) * 2
        for n, line in enumerate(sums):
            for half in range(2):
                row = self.top + (n * ROWS + half * SIDE)
                with self.if_there(row):
                    at = start + at_most(e, row, self.lines - 1) * self.width
                    for number, four in enumerate(line):
                        for beyond in range(2):
                            value = of(e, "MUL", four[2 * half + beyond], factors[n][half])
                            rounded = e.convert(Scalar(e, dtypes.float32, value), write.dtype)
                            write.store(at, rounded, number * COLUMNS + beyond)

    def if_there(self, row: Scalar) -> AbstractContextManager[Any]:
        """Around code for lanes whose line there is."""
        inside = self.e.compare("LT", row, self.lines)
        return ExitStack() if inside.known else self.e.only_if(inside)


class _Row(NamedTuple):
    """What is known of a row of scores so far: the greatest, and this lane's part of the sum of powers."""

    greatest: Virtual
    total: Virtual


class _Writer(AttentionWriter):
    """Attention itself."""

    def __init__(self, node: Node, tile: AttentionTile) -> None:
        a = node.attrs
        super().__init__(node, a, tile, a.q.shape[-2], a.k.shape[-2])
        if a.causal:  # those with the most keys begin first
            self.number = self.e.number(self.down - 1) - self.number
        self.settle()

    def kernel(self) -> Kernel:
        e, tile, a = self.e, self.tile, self.a
        self.stage([self.rows_of(1, a.k, tile.keys), self.rows_of(2, a.v, tile.keys)])
        k, v = self.pair
        self.memory = self.size  # queries come to where the second pair will: they are in registers before it does
        q = self.rows_of(0, a.q, tile.queries)
        self.memory = max(self.memory, 2 * self.size)
        q.copy(self.first, e.number(0))
        spans = self.spans()
        end = spans[1].start + spans[1].rounds
        self.begin(e.number(0), end)
        self.factors = constant(e, self.scale), constant(e, -self.scale)
        fragments = range(tile.fragments)
        self.rows = [[_Row(constant(e, LOWEST), constant(e, 0.0)) for _ in range(2)] for _ in fragments]
        self.sums = [zeros(e, self.width // COLUMNS) for _ in fragments]
        e.record("CopyWait", 0)
        e.barrier()
        aim = q.aim(self.lane, left=True) + self.group * (tile.fragments * ROWS * q.pitch)
        self.left = [[q.load(aim, n * ROWS, 2 * step) for step in range(q.steps)] for n in fragments]
        self.aims = k.aim(self.lane, left=False), v.aim(self.lane, left=False, turned=True)
        self.edge = self.limits(further=1, most=self.others if a.causal else None)
        self.along(spans, end)
        totals = [[self.among_four("ADD", row.total) for row in rows] for rows in self.rows]
        one = constant(e, 1.0)
        factors = [[of(e, "DIV", one, total) for total in rows] for rows in totals]
        if self.node.outs is None:
            write = Write(e, "out", self.node.shape, self.node.dtype)
            self.store(write, self.sums, factors)
            return self.finish(self.node.op.name, ("out",), [write])
        writes = [Write(e, name, out.shape, out.dtype) for name, out in zip(OUTS, self.node.outs, strict=True)]
        self.store(writes[0], self.sums, factors)
        self._store_sums(writes[1], totals)
        return self.finish(self.node.op.name, OUTS, writes)

    def tile_of(self, j: Scalar, memory: Scalar, *, masked: bool) -> None:
        k, v = self.pair
        scores = self.product(self.left, k, self.aims[0] + memory)
        if masked:
            self.mask(scores, j, self.edge)
        for n, total in enumerate(scores):
            for half in range(2):
                self._soften(total, half, self.sums[n], self.rows[n][half])
        self.add(self.sums, scores, v, self.aims[1] + memory)

    def _soften(self, scores: list[Four], half: int, sums: list[Four], row: _Row) -> None:
        """Powers in place of the scores of a row of each fragment; what was summed before is made smaller."""
        e, (scale, against) = self.e, self.factors
        mine = [four[2 * half + beyond] for four in scores for beyond in range(2)]
        greatest = row.greatest
        for score in mine:
            greatest = of(e, "MAX", greatest, score)
        greatest = self.among_four("MAX", greatest)
        offset = of(e, "MUL", greatest, against)
        smaller = of(e, "EXP2", of(e, "FMA", row.greatest, scale, offset))
        e.record("MUL", row.total, row.total, smaller)
        for score in mine:
            power = of(e, "EXP2", of(e, "FMA", score, scale, offset))
            e.record("ADD", row.total, row.total, power)
            e.record("MOV", score, power)
        for four in sums:
            for beyond in range(2):
                e.record("MUL", four[2 * half + beyond], four[2 * half + beyond], smaller)
        e.record("MOV", row.greatest, greatest)

    def _store_sums(self, write: Write, totals: list[list[Virtual]]) -> None:
        """The logarithms of the sums, to base 2: the first of the four lanes that have a row writes them."""
        e, base = self.e, constant(self.e, math.log2(math.e))
        first = e.compare("EQ", self.lane % 4, 0)
        for n, rows in enumerate(totals):
            for half, total in enumerate(rows):
                row = self.top + (n * ROWS + half * SIDE)
                natural = e.op("LOG", Scalar(e, dtypes.float32, total))
                power = of(e, "MUL", self.rows[n][half].greatest, self.factors[0])
                assert isinstance(natural.register, Virtual)
                value = of(e, "FMA", natural.register, base, power)
                with self.if_there(row), e.only_if(first):
                    at = self.which * self.lines + at_most(e, row, self.lines - 1)
                    write.store(at, Scalar(e, dtypes.float32, value))
