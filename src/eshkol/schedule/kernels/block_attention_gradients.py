"""The gradients of attention in fragments: two kernels, which compute the weights again from the sums of their rows.

Comes in: an `attention_gradients`, for a cotangent c of what attention gives. Goes out: a kernel in which blocks have
queries and go along the keys, for the gradient of q, and one in which they have keys and go along the queries, for
those of k and v. Both find weights w = 2^(score - sum of the row) and what the scores' gradients are of those,

    w · (c · vᵀ - inner)        inner: c · result, of each query

in registers, as attention itself does (`block_attention.py`): rounded to 16 bits they are the left factors of

    gradient of q: of scores · k      of k: of scores, transposed, · q      of v: weights, transposed, · c
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from eshkol.atlas.fragments import COLUMNS, ROWS, SIDE
from eshkol.atlas.machines import AttentionTile, MachineDescription
from eshkol.atlas.operands import Condition
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.schedule.kernels.array_products import is_whole_attention, whole_gradient_kernels
from eshkol.schedule.kernels.attention import ATTENTION_GRADIENTS, AttentionGradients
from eshkol.schedule.kernels.block_attention import (
    AttentionWriter,
    Span,
    attends,
    attention_tile,
    in_fragments,
    in_rows,
)
from eshkol.schedule.kernels.block_factors import at_most
from eshkol.schedule.kernels.code import Virtual
from eshkol.schedule.kernels.fragment_tiles import Four, RowTile, constant, of, zeros
from eshkol.schedule.kernels.kernel import Kernel
from eshkol.schedule.kernels.reads import Write
from eshkol.schedule.kernels.scalars import Scalar

OUTS = ("out0", "out1", "out2")
WIDE = 64  # elements of a head: of wider ones fragments of a block's own lines are loaded again for each tile
FEWEST, MOST = 32, 64  # lines at a time that go with wide heads, and with others


def is_gradients(node: Node) -> bool:
    """Whether a node is computed here."""
    return node.op is ATTENTION_GRADIENTS


def has_gradients(a: AttentionGradients, dtype: dtypes.DType, target: MachineDescription) -> bool:
    """Whether a machine has kernels for the gradients: as of attention, and no axis broadcasts.

    Where attention is done as a whole, heads may be wider, see only some keys, and share keys along the last axis.
    """
    seen = a.attention
    if a.cotangent.shape != seen.shape or not in_rows(a.cotangent) or not attends(seen, dtype, target):
        return False
    if not in_fragments(seen, target) and not is_whole_attention(seen, target, a.cotangent):
        return False
    shared = (*seen.batch[:-1], 1) if seen.grouped else seen.batch
    return seen.q.shape[:-2] == seen.batch and all(view.shape[:-2] == shared for view in (seen.k, seen.v))


def gradient_kernels(node: Node, target: MachineDescription) -> tuple[Kernel, ...]:
    """The two kernels, in tiles for heads of such a width, or as a whole."""
    if is_whole_attention(node.attrs.attention, target, node.attrs.cotangent):
        return whole_gradient_kernels(node, OUTS)
    tile = replace(attention_tile(node.attrs.attention, target), fragments=1)
    wide = node.attrs.attention.q.shape[-1] > WIDE
    tile = replace(tile, keys=min(tile.keys, tile.queries, FEWEST if wide else MOST))
    return _OfQueries(node, tile).kernel(), _OfKeys(node, tile).kernel()


class _Lines:
    """Fragments of a block's own lines: in registers, or loaded where they are needed."""

    def __init__(self, tile: RowTile, aim: Scalar, *, kept: bool) -> None:
        self.tile, self.aim = tile, aim
        self.kept = [tile.load(aim, 0, 2 * step) for step in range(tile.steps)] if kept else None

    def __getitem__(self, step: int) -> Four:
        return self.tile.load(self.aim, 0, 2 * step) if self.kept is None else self.kept[step]


class _Writer(AttentionWriter):
    """What both have in common."""

    def __init__(self, node: Node, tile: AttentionTile, lines: int, others: int) -> None:
        super().__init__(node, node.attrs.attention, tile, lines, others)
        assert node.outs is not None
        self.writes = [Write(self.e, name, out.shape, out.dtype) for name, out in zip(OUTS, node.outs, strict=True)]
        self.views = dict(zip("qkvc", (*self.a[:3], node.attrs.cotangent), strict=True))

    def bring(self, own: str, others: str, start: Scalar, end: Scalar) -> None:
        """Have two inputs brought to shared memory, a block's own lines, and tiles of two others."""
        e, tile = self.e, self.tile
        mine = [self.rows_of("qkvc".index(name), self.views[name], tile.queries) for name in own]
        self.stage([self.rows_of("qkvc".index(name), self.views[name], tile.keys) for name in others])
        for one in mine:
            one.copy(self.first, e.number(0))
        self.begin(start, end)
        e.record("CopyWait", 0)
        e.barrier()
        kept = self.width <= WIDE
        self.own = [
            [_Lines(one, one.aim(self.lane, left=True) + self.group * (ROWS * one.pitch), kept=kept)] for one in mine
        ]
        self.aims = [one.aim(self.lane, left=False) for one in self.pair]
        self.turned = [one.aim(self.lane, left=False, turned=True) for one in self.pair]
        self.factor = constant(e, self.scale)

    def row_number(self, n: int, place: Scalar) -> Scalar:
        """One of the numbers that there are for each query."""
        queries = self.a.q.shape[-2]
        return self.reads[n].load(self.which * queries + at_most(self.e, place, queries - 1))

    def weigh(self, score: Virtual, gradient: Virtual, offset: Virtual, inner: Virtual) -> tuple[Virtual, Virtual]:
        """A weight in place of a score, and the gradient of the score in place of that of the weight."""
        e = self.e
        weight = of(e, "EXP2", of(e, "FMA", score, self.factor, offset))
        e.record("MOV", score, weight)
        e.record("MUL", gradient, weight, of(e, "SUB", gradient, inner))
        return score, gradient

    def register(self, number: Scalar) -> Virtual:
        found = self.e.register(number)
        assert isinstance(found, Virtual)
        return found


class _OfQueries(_Writer):
    """The gradient of q."""

    def __init__(self, node: Node, tile: AttentionTile) -> None:
        q, k = node.attrs.attention[:2]
        super().__init__(node, tile, q.shape[-2], k.shape[-2])
        if self.a.causal:
            self.number = self.e.number(self.down - 1) - self.number
        self.settle()

    def kernel(self) -> Kernel:
        e = self.e
        spans = self.spans()
        end = spans[1].start + spans[1].rounds
        self.bring("qc", "kv", e.number(0), end)
        self.edge = self.limits(further=1, most=self.others if self.a.causal else None)
        rows = [self.top + half * SIDE for half in range(2)]
        self.offsets = [self.register(e.op("NEG", self.row_number(4, row))) for row in rows]
        self.inner = [self.register(self.row_number(5, row)) for row in rows]
        self.sums = [zeros(e, self.width // COLUMNS)]
        self.along(spans, end)
        factor = constant(e, self.a.scale)
        self.store(self.writes[0], self.sums, [[factor, factor]])
        return self.finish("attention_gradient_q", OUTS, self.writes[:1])

    def tile_of(self, j: Scalar, memory: Scalar, *, masked: bool) -> None:
        k, v = self.pair
        scores = self.product(self.own[0], k, self.aims[0] + memory)
        gradients = self.product(self.own[1], v, self.aims[1] + memory)
        if masked:
            self.mask(scores, j, self.edge)
        for four, other in zip(scores[0], gradients[0], strict=True):
            for n in range(4):
                self.weigh(four[n], other[n], self.offsets[n // 2], self.inner[n // 2])
        self.add(self.sums, gradients, k, self.turned[0] + memory)


class _OfKeys(_Writer):
    """The gradients of k and v."""

    keeps = Condition.GE  # a query sees keys up to its own place

    def __init__(self, node: Node, tile: AttentionTile) -> None:
        q, k = node.attrs.attention[:2]
        super().__init__(node, tile, k.shape[-2], q.shape[-2])
        self.settle()

    def spans(self) -> list[Span]:
        """Tiles of queries: where attention is causal those that see some of the keys, then those that see all."""
        e = self.e
        end = e.number(self.across)
        if not self.a.causal:
            return [Span(e.number(0), end, False)]
        each = self.tile.queries // self.tile.keys
        start, whole = (at_most(e, (self.number + n) * each, self.across) for n in range(2))
        return [Span(start, self.between(start, whole), True), Span(whole, self.between(whole, end), False)]

    def kernel(self) -> Kernel:
        e = self.e
        spans = self.spans()
        self.bring("kv", "qc", spans[0].start, e.number(self.across))
        self.edge = self.limits(further=0, most=self.lines + self.tile.queries)
        self.sums = [[zeros(e, self.width // COLUMNS)] for _ in range(2)]
        self.along(spans, e.number(self.across))
        factor, one = constant(e, self.a.scale), constant(e, 1.0)
        self.store(self.writes[1], self.sums[0], [[factor, factor]])
        self.store(self.writes[2], self.sums[1], [[one, one]])
        return self.finish("attention_gradient_kv", OUTS, self.writes[1:])

    def tile_of(self, j: Scalar, memory: Scalar, *, masked: bool) -> None:
        q, c = self.pair
        numbers = self._numbers(j)
        scores = self.product(self.own[0], q, self.aims[0] + memory)
        gradients = self.product(self.own[1], c, self.aims[1] + memory)
        if masked:
            self.mask(scores, j, self.edge)
        for number, (four, other) in enumerate(zip(scores[0], gradients[0], strict=True)):
            for n in range(4):
                self.weigh(four[n], other[n], *numbers[2 * number + n % 2])
        self.add(self.sums[1], scores, c, self.turned[1] + memory)
        self.add(self.sums[0], gradients, q, self.turned[0] + memory)

    def _numbers(self, j: Scalar) -> Sequence[tuple[Virtual, Virtual]]:
        """What is subtracted from the scores of each column, and from gradients. Weights of no query are 0."""
        e, found = self.e, []
        start = j * self.tile.keys + (self.lane % 4) * 2
        for number in range(self.tile.keys // COLUMNS):
            for beyond in range(2):
                place = start + (number * COLUMNS + beyond)
                offset, inner = e.op("NEG", self.row_number(4, place)), self.row_number(5, place)
                offset = e.select(e.compare("LT", place, self.others), offset, -math.inf)
                found.append((self.register(offset), self.register(inner)))
        return found
