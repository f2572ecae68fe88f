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
from contextlib import ExitStack
from typing import Any, NamedTuple

from eshkol.atlas.fragments import COLUMNS, LANES, LINE_BYTES, ROWS, SIDE
from eshkol.atlas.machines import AttentionTile, MachineDescription
from eshkol.atlas.operands import Condition
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.types import Type
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.attention import SEEN_ATTENTION, SeenAttention
from eshkol.schedule.kernels.block_factors import at_most, digits
from eshkol.schedule.kernels.code import TRUTH, Virtual
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.fragment_tiles import Four, Powers, RowTile, as_left, constant, multiply, of, zeros
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.matrix_operands import CHUNK, suits
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import INDEX, TYPES, Scalar

USABLE = 252
LARGEST = 1 << 28  # elements of an operand or the result: their chunks are counted in registers of indices
LOWEST = -1e30  # where the greatest score of a row begins


def is_attention(node: Node) -> bool:
    """Whether a node is computed here."""
    return node.op is SEEN_ATTENTION


def attends(a: SeenAttention, dtype: dtypes.DType, target: MachineDescription) -> bool:
    """Whether a machine has a kernel for such attention: rows of whole chunks, of one width, in fragments."""
    if target.matrices is None or TYPES.get(dtype) not in target.matrices.types:
        return False
    width = a.q.shape[-1]
    if not any(width <= tile.widest for tile in target.matrices.attention):
        return False
    views = (a.q, a.k, a.v)
    whole = all(suits(view) and view.strides[-1] == 1 and view.shape[-1] == width for view in views)
    sizes = [count(view.shape) for view in views] + [count(a.shape)]
    return whole and all(0 < size < LARGEST for size in sizes)


def attention_kernel(node: Node, target: MachineDescription) -> Kernel:
    """The kernel of attention, in tiles for heads of its width."""
    assert target.matrices is not None
    width = node.attrs.q.shape[-1]
    return _Writer(node, next(tile for tile in target.matrices.attention if width <= tile.widest)).kernel()


class _Row(NamedTuple):
    """What is known of a row of scores so far: the greatest, and this lane's part of the sum of powers."""

    greatest: Virtual
    total: Virtual


class _Writer:
    """The kernel under construction."""

    def __init__(self, node: Node, tile: AttentionTile) -> None:
        self.node, self.tile, self.a = node, tile, node.attrs
        self.queries, self.keys, self.width = self.a.q.shape[-2], self.a.k.shape[-2], self.a.q.shape[-1]
        self.down = -(-self.queries // tile.queries)
        self.lanes = count(self.a.batch) * self.down * tile.lanes
        self.e = e = Emitter((self.lanes,), usable=USABLE)
        self.ty = TYPES[node.dtype]
        self.reads = [Read(e, f"x{k}", x.shape, x.dtype) for k, x in enumerate(node.inputs)]
        self.write = Write(e, "out", node.shape, node.dtype)

    def kernel(self) -> Kernel:
        e, tile = self.e, self.tile
        place, block = e.lane % tile.lanes, e.lane // tile.lanes
        which, number = e.digit(block, self.down, count(self.a.batch)), block % self.down
        if self.a.causal:  # those with the most keys begin first
            number = e.number(self.down - 1) - number
        group, lane = place // LANES, place % LANES
        q, k, v = self._tiles(which, place)
        self.stage = k.chunks + v.chunks
        first = number * tile.queries
        q.copy(first, e.number(0))
        rounds, whole = self._rounds(number)
        self._begin(k, v, e.number(0), rounds)
        e.record("CopyCommit")
        self.powers, self.shift = Powers(e), constant(e, 16, Type.U32)
        self.scale = constant(e, self.a.scale * math.log2(math.e)), constant(e, -self.a.scale * math.log2(math.e))
        fragments = range(tile.fragments)
        rows = [[_Row(constant(e, LOWEST), constant(e, 0.0)) for _ in range(2)] for _ in fragments]
        sums = [zeros(e, self.width // COLUMNS) for _ in fragments]
        e.record("CopyWait", 0)
        e.barrier()
        aim = q.aim(lane, left=True) + group * (tile.fragments * ROWS * q.pitch)
        left = [[q.load(aim, n * ROWS, 2 * step) for step in range(q.steps)] for n in fragments]
        aims = k.aim(lane, left=False), v.aim(lane, left=False, turned=True)
        top = first + group * (tile.fragments * ROWS) + lane // 4
        self._edge = self._limits(top, lane)
        with self._loop(whole) as j:
            self._round(k, v, aims, left, sums, rows, j, rounds, masked=False)
        rest = self._difference(rounds, whole)
        with self._loop(rest) as j:
            self._round(k, v, aims, left, sums, rows, whole + j, rounds, masked=True)
        self._store(sums, rows, which, top, lane)
        program = shown(e.finish(self.node.op.name, self.reads, [self.write], self.lanes))
        buffers = tuple((f"x{n}", n) for n in range(3) if f"x{n}" in program.param)
        memory = (q.chunks + 2 * self.stage) * LINE_BYTES
        return Kernel(program, LaunchConfig.linear(self.lanes, tile.lanes, memory), None, ("out",), buffers, ())

    def _tiles(self, which: Scalar, place: Scalar) -> list[RowTile]:
        e, found = self.e, list[RowTile]()
        places = digits(e, which, self.a.batch)
        for n, view in enumerate((self.a.q, self.a.k, self.a.v)):
            rows = self.tile.queries if n == 0 else self.tile.keys
            one = RowTile(e, rows, self.width, sum(tile.chunks for tile in found))
            start = e.number(view.offset // CHUNK)
            for at, step in zip(places, self.a.steps(view), strict=True):
                start = start + at * (step // CHUNK)
            name = self.reads[n].name
            one.prepare(name, self.ty, start, view.strides[-2] // CHUNK, view.shape[-2], place, self.tile.lanes)
            found.append(one)
        return found

    def _rounds(self, number: Scalar) -> tuple[Scalar, Scalar]:
        """Tiles of keys that a block looks at, and how many of them it attends to all of."""
        e, keys = self.e, self.tile.keys
        all_, whole = -(-self.keys // keys), self.keys // keys
        if not self.a.causal:
            return e.number(all_), e.number(whole)
        each = self.tile.queries // keys
        return at_most(e, number * each + each, all_), at_most(e, number * each, whole)

    def _difference(self, rounds: Scalar, whole: Scalar) -> Scalar:
        """Tiles that are masked."""
        e = self.e
        if rounds.known is not None and whole.known is not None:
            return e.number(rounds.known - whole.known)
        most = self.tile.queries // self.tile.keys + 1
        found, bound = e.fresh(Type.U32), e.register(e.number(most), Type.U32)
        e.record("SUB", found, e.register(rounds, Type.U32), e.register(whole, Type.U32))
        e.record("MIN", found, found, bound)
        return Scalar(e, INDEX, found, most=most)

    def _loop(self, rounds: Scalar) -> Any:
        return _Never(self.e) if rounds.known == 0 else self.e.counted(rounds)

    def _begin(self, k: RowTile, v: RowTile, j: Scalar, rounds: Scalar) -> None:
        """Begin to copy a tile of keys and values, if there is one."""
        e = self.e
        valid = e.compare("LT", j, rounds)
        first = at_most(e, j, -(-self.keys // self.tile.keys) - 1) * self.tile.keys
        memory = j % 2 * self.stage
        for one in (k, v):
            one.copy(first, memory, valid)

    def _limits(self, top: Scalar, lane: Scalar) -> list[list[Virtual]]:
        """How many keys each row attends to, less those that stand before the lane's first column."""
        e, found = self.e, []
        before = e.register((lane % 4) * 2, Type.U32)
        for n in range(self.tile.fragments):
            lines = []
            for half in range(2):
                limit = e.number(self.keys)
                if self.a.causal:
                    limit = at_most(e, top + (n * ROWS + half * SIDE + 1), self.keys)
                signed = [e.fresh(Type.I32) for _ in range(2)]
                for register, given in zip(signed, (e.register(limit, Type.U32), before), strict=True):
                    e.record("CVT", Type.U32, Type.I32, register, given)
                lines.append(of(e, "SUB", *signed))
            found.append(lines)
        return found

    # --- a tile of keys -------------------------------------------------------------------------------

    def _round(
        self, k: RowTile, v: RowTile, aims: Sequence[Scalar], left: list[list[Four]], sums: list[list[Four]],
        rows: list[list[_Row]], j: Scalar, rounds: Scalar, *, masked: bool,
    ) -> None:  # fmt: skip
        e = self.e
        e.record("CopyWait", 0)
        e.barrier()
        self._begin(k, v, j + 1, rounds)
        e.record("CopyCommit")
        memory = j % 2 * self.stage
        at = [aim + memory for aim in aims]
        scores = [zeros(e, self.tile.keys // COLUMNS) for _ in left]
        for step in range(k.steps):
            for pair in range(self.tile.keys // ROWS):
                right = k.load(at[0], pair * ROWS, 2 * step)
                for one, total in zip(left, scores, strict=True):
                    multiply(e, self.ty, total[2 * pair :][:2], one[step], right)
        if masked:
            self._mask(scores, j)
        for n, total in enumerate(scores):
            for half in range(2):
                rows[n][half] = self._soften(total, half, sums[n], rows[n][half])
        for step in range(self.tile.keys // ROWS):
            powers = [as_left(e, self.ty, *total[2 * step :][:2], self.shift) for total in scores]
            for pair in range(v.steps):
                right = v.load(at[1], step * ROWS, 2 * pair, turned=True)
                for one, total in zip(powers, sums, strict=True):
                    multiply(e, self.ty, total[2 * pair :][:2], one, right)

    def _mask(self, scores: list[list[Four]], j: Scalar) -> None:
        """Let no row see keys beyond its limit."""
        e = self.e
        start, nothing = e.fresh(Type.I32), constant(e, -math.inf)
        e.record("CVT", Type.U32, Type.I32, start, e.register(j * self.tile.keys, Type.U32))
        for total, limits in zip(scores, self._edge, strict=True):
            for half, limit in enumerate(limits):
                left = of(e, "SUB", limit, start)
                for number, four in enumerate(total):
                    for beyond in range(2):
                        column, score = constant(e, number * COLUMNS + beyond, Type.I32), four[2 * half + beyond]
                        e.record("SETcc", Condition.LT, TRUTH, column, left)
                        e.record("SEL", score, TRUTH, score, nothing)

    def _soften(self, scores: list[Four], half: int, sums: list[Four], row: _Row) -> _Row:
        """Powers in place of the scores of a row of each fragment; what was summed before is made smaller."""
        e, (scale, against) = self.e, self.scale
        mine = [four[2 * half + beyond] for four in scores for beyond in range(2)]
        greatest = row.greatest
        for score in mine:
            greatest = of(e, "MAX", greatest, score)
        greatest = self._among_four("MAX", greatest)
        offset = of(e, "MUL", greatest, against)
        smaller = self.powers(of(e, "FMA", row.greatest, scale, offset))
        e.record("MUL", row.total, row.total, smaller)
        for score in mine:
            power = self.powers(of(e, "FMA", score, scale, offset))
            e.record("ADD", row.total, row.total, power)
            e.record("MOV", score, power)
        for four in sums:
            for beyond in range(2):
                e.record("MUL", four[2 * half + beyond], four[2 * half + beyond], smaller)
        e.record("MOV", row.greatest, greatest)
        return row

    def _among_four(self, name: str, value: Virtual) -> Virtual:
        """The combination of what four neighbouring lanes have, which hold a row together."""
        for mask in (1, 2):
            other = self.e.fresh(value.ty)
            self.e.record("SubGroupXor", value.ty, other, value, mask)
            value = of(self.e, name, value, other)
        return value

    # --- results --------------------------------------------------------------------------------------

    def _store(self, sums: list[list[Four]], rows: list[list[_Row]], which: Scalar, top: Scalar, lane: Scalar) -> None:
        e, one = self.e, constant(self.e, 1.0)
        start = which * (self.queries * self.width) + (lane % 4) * 2
        for n, line in enumerate(sums):
            for half in range(2):
                factor = of(e, "DIV", one, self._among_four("ADD", rows[n][half].total))
                row = top + (n * ROWS + half * SIDE)
                inside = e.compare("LT", row, self.queries)
                with ExitStack() if inside.known else e.only_if(inside):
                    at = start + at_most(e, row, self.queries - 1) * self.width
                    for number, four in enumerate(line):
                        for beyond in range(2):
                            value = Scalar(e, dtypes.float32, of(e, "MUL", four[2 * half + beyond], factor))
                            self.write.store(at, e.convert(value, self.write.dtype), number * COLUMNS + beyond)


class _Never:
    """Around code that is not written: a loop of no rounds."""

    def __init__(self, e: Emitter) -> None:
        self.trial = e.trial()
        self.counter = e.number(0)

    def __enter__(self) -> Scalar:
        self.trial.__enter__()
        return self.counter

    def __exit__(self, *error: Any) -> None:
        self.trial.__exit__(None, None, None)
