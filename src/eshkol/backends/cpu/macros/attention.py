"""Attention and FlashAttention as one kernel that never holds the matrix of scores.

Comes in: queries, keys and values, each batch × heads × seq_len × head_dim (or with the heads of each position beside
each other, batch × seq_len × heads × head_dim). Goes out: for each query the values,
weighted by the softmax of its scores. A first phase packs the keys and values of every head into scratch, in the
panels that the inner loop of `micro` reads:

    keys     [panel of `rows` keys][head_dim][rows]
    values   [panel of `columns` of head_dim][seq_len][columns]

A task of the second phase then takes a block of queries through the keys, a block at a time. The scores stand with
queries side by side and keys below each other, so that maxima, sums and exponentials need no step across lanes, and
the weights are already the packed left panel of the product with the values. What was summed before is scaled down
where a block brings a greater maximum.

Rows and columns past the end repeat the last one: computed with, never stored.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from eshkol.atlas.isa import Instruction
from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, compute_type
from eshkol.backends.cpu.macros.micro import Tile, up
from eshkol.llvm.targets import Target

QUERIES, KEYS = 64, 128  # of a block, about: their weights stay in the first cache
WIDEST_HEAD = 256  # what a task keeps on its stack is for this many columns


class AttentionPlan:
    """How an instruction is cut up."""

    def __init__(self, i: Instruction, target: Target) -> None:
        self.i, self.ty, self.target = i, i.ty, target
        self.tile = tile = Tile.of(compute_type(i.ty), target)
        self.block = up(QUERIES, math.lcm(tile.rows, tile.columns, 4 * tile.lanes))  # of queries
        self.keys = up(KEYS, tile.rows)  # of a block; so the diagonal crosses a tile from corner to corner
        self.padding = tile.rows, tile.columns  # what seq_len and head_dim are padded to
        self.name = f"attention_{i.ty}".lower()

    @property
    def words(self) -> tuple[int, ...]:
        i = self.i
        blocks = -(-i.seq_len // self.block)
        line, step = (i.heads * i.head_dim, i.head_dim) if i.interleaved else (i.head_dim, i.seq_len * i.head_dim)
        padded = up(i.seq_len, self.padding[0]), up(i.head_dim, self.padding[1])
        return (i.seq_len, i.head_dim, *padded, blocks, max(i.heads, 1), line, step)

    @property
    def head_bytes(self) -> int:
        """Of scratch, for the packed keys and values of a head."""
        _, head_dim, padded_len, padded_dim, *_ = self.words
        return padded_len * (head_dim + padded_dim) * self.tile.ty.size_bytes

    def parts(self) -> tuple[Part, Part]:
        """What packs, and what attends."""
        return Pack(self), Attend(self)


class Part:
    """What both phases know."""

    def __init__(self, plan: AttentionPlan, name: str) -> None:
        self.plan, self.tile, self.ty = plan, plan.tile, plan.tile.ty
        self.k = k = Kernel(name, plan.target, operands=4)
        self.seq_len, self.head_dim, self.padded_len, self.padded_dim, self.blocks = (k.word(w) for w in range(5))
        self.heads, self.line, self.step = (k.word(w) for w in range(5, 8))  # line: from one position to the next

    def packed(self, head: Value) -> tuple[Array, Array]:
        """The packed keys and values of a head."""
        size = self.padded_len * (self.head_dim + self.padded_dim)
        keys = self.k.scratch(self.ty).at(head * size)
        return keys, keys.at(self.padded_len * self.head_dim)

    def source(self, operand: int, head: Value) -> Array:
        sample = head // self.heads * self.heads * self.seq_len * self.head_dim
        return self.k.operand(operand, self.plan.ty).at(sample + head % self.heads * self.step)


class Pack(Part):
    """Phase one: a task packs a block of one head's keys and values."""

    def __init__(self, plan: AttentionPlan) -> None:
        super().__init__(plan, f"{plan.name}_pack")
        with self.k.tasks() as task:
            self._pack(task // self.blocks, task % self.blocks)

    def _pack(self, head: Value, block: Value) -> None:
        k, tile, start = self.k, self.tile, block * self.plan.block
        keys, values = self.packed(head)
        key, value = self.source(2, head), self.source(3, head)
        stop = k.minimum(start + self.plan.block, self.padded_len)
        with k.loop(start, stop, plain=True) as u:
            origin = k.minimum(u, self.seq_len - 1) * self.line
            lane = u % tile.rows
            target, source = keys.at((u - lane) * self.head_dim + lane), key.at(origin)
            with k.loop(0, self.head_dim) as d:
                target[d * tile.rows] = source[d]
            self._pack_value(values.at(u * tile.columns), value.at(origin))

    def _pack_value(self, target: Array, source: Array) -> None:
        """One row of values, in pieces of a panel each."""
        k, tile = self.k, self.tile
        with k.loop(0, self.padded_dim, tile.columns, plain=True) as d:
            piece = target.at(d * self.padded_len)
            full = d + tile.columns <= self.head_dim
            with k.when(full):
                for lane in range(0, tile.columns, tile.lanes):
                    piece.put(lane, source.vector(d + lane, tile.lanes))
            with k.when(d + tile.columns > self.head_dim), k.loop(0, tile.columns) as c:
                piece[c] = source[k.minimum(d + c, self.head_dim - 1)]


class Attend(Part):
    """Phase two: a task carries a block of one head's queries through all keys."""

    together = 1  # weights below each other that are stored at once

    def __init__(self, plan: AttentionPlan) -> None:
        causal = plan.i.causal
        super().__init__(plan, plan.name + ("_causal" if causal else ""))
        k, block = self.k, plan.block
        self.weights = k.local(self.ty, plan.keys * block)
        self.top, self.total, self.fade = (k.local(self.ty, block) for _ in range(3))
        self._prepare()
        scale = math.log2(math.e) / k.sqrt(self.head_dim.to(self.ty))  # weights are powers of 2
        with k.tasks() as task:
            head = task // self.blocks
            self.first = (self.blocks - 1 - task % self.blocks) * block  # causal: the longest task first
            self._begin(head, scale)
            keys, values = self.packed(head)
            stop = k.minimum(self.first + block, self.seq_len) if causal else self.seq_len
            with k.loop(0, stop, plan.keys, plain=True) as start:
                self._meet(keys, values, start, k.minimum(stop - start, plan.keys))
            self._end(self.source(0, head))
        self._finish()

    def _prepare(self) -> None:
        """Before all tasks."""
        k, tile, block = self.k, self.tile, self.plan.block
        self.queries, self.mixed = (k.local(self.ty, block * up(WIDEST_HEAD, tile.columns)) for _ in range(2))
        self.sums = tile.sums(k)

    def _finish(self) -> None:
        """After all tasks."""

    def _meet(self, keys: Array, values: Array, start: Value, count: Value) -> None:
        """The task's queries meet `count` keys from `start` on."""
        lead = self.first - start
        self._score(keys.at(start * self.head_dim), count, lead)
        self._hide(count, lead)
        self._weigh(count)
        self._mix(values.at(start * self.tile.columns), count, lead)

    def _begin(self, head: Value, scale: Value) -> None:
        """Pack the queries, scaled: [piece of `columns` queries][head_dim][columns]."""
        k, tile, block, query = self.k, self.tile, self.plan.block, self.source(1, head)
        with k.loop(0, block, plain=True) as t:
            source = query.at(k.minimum(self.first + t, self.seq_len - 1) * self.line)
            lane = t % tile.columns
            target = self.queries.at((t - lane) * self.head_dim + lane)
            with k.loop(0, self.head_dim) as d:
                target[d * tile.columns] = source[d] * scale
        self._clear()
        with k.loop(0, self.padded_dim * block) as p:
            self.mixed[p] = k.const(self.ty, 0)

    def _clear(self) -> None:
        """Maxima and sums; the lowest number, not -inf: scores of -inf less it are -inf and weigh nothing."""
        k = self.k
        with k.loop(0, self.plan.block) as t:
            self.top[t] = k.const(self.ty, float(np.finfo(self.ty.dtype).min))
            self.total[t] = k.const(self.ty, 0)

    def _score(self, keys: Array, count: Value, lead: Value) -> None:
        """weights[u, t] = key u · query t."""
        k, tile, block = self.k, self.tile, self.plan.block
        with k.loop(0, count, tile.rows, plain=True) as u, k.loop(0, block, tile.columns, plain=True) as t:

            def product() -> None:
                tile.clear(k, self.sums)
                left, right = keys.at(u * self.head_dim), self.queries.at(t * self.head_dim)
                tile.accumulate(k, self.sums, self.head_dim, left, tile.rows, right, tile.columns)
                for r, c, total in tile.cells(self.sums):
                    self.weights.put((u + r) * block + t + c, total.value)

            if not self.plan.i.causal:
                product()
            else:
                with k.when(u < t + tile.columns + lead):
                    product()

    def _hide(self, count: Value, lead: Value) -> None:
        """-inf for keys that lie ahead of their query."""
        k, block = self.k, self.plan.block
        if self.plan.i.causal:
            ahead = k.maximum(lead + 1, 0)
            with k.loop(ahead, count, plain=True) as u, k.loop(0, k.minimum(u - lead, block)) as t:
                self.weights[u * block + t] = k.const(self.ty, -math.inf)

    def _weigh(self, count: Value) -> None:
        """Scores into weights 2^(score - top), after raising the maxima; what was summed before is to fade."""
        k, lanes, block = self.k, self.tile.lanes, self.plan.block
        with k.loop(0, block, 4 * lanes, plain=True) as t:
            group = [t + c * lanes for c in range(4)]
            before = [self.top.vector(at, lanes) for at in group]
            tops = [k.variable(k.const(self.ty, -math.inf, lanes)) for _ in group]
            with k.loop(0, count, plain=True) as u:
                row = self.weights.at(u * block)
                for at, top in zip(group, tops, strict=True):
                    top.value = _greater(k, row.vector(at, lanes), top.value)
            for top, old in zip(tops, before, strict=True):
                top.value = _greater(k, self._scaled(top.value), old)
            fades = [_power(k, old - top.value) for old, top in zip(before, tops, strict=True)]
            totals = [k.variable(self.total.vector(at, lanes) * fade) for at, fade in zip(group, fades, strict=True)]
            with k.loop(0, count, self.together, plain=True) as u:
                for at, top, total in zip(group, tops, totals, strict=True):
                    rows = [self.weights.at((u + e) * block + at) for e in range(self.together)]
                    weights = [_power(k, self._exponent(row.vector(0, lanes), top.value)) for row in rows]
                    self._store(u, at, weights)
                    for weight in weights:
                        total.value = total.value + weight
            for at, top, fade, total in zip(group, tops, fades, totals, strict=True):
                self.top.put(at, top.value)
                self.fade.put(at, fade)
                self.total.put(at, total.value)

    def _scaled(self, score: Value) -> Value:
        """A score that was read, as a power of 2."""
        return score

    def _exponent(self, score: Value, top: Value) -> Value:
        """The same less the maximum."""
        return score - top

    def _store(self, u: Value, at: Value, weights: list[Value]) -> None:
        """Weights of keys u, u + 1 … in the place of their scores."""
        self.weights.put(u * self.plan.block + at, weights[0])

    def _mix(self, values: Array, count: Value, lead: Value) -> None:
        """mixed[d, t] = mixed · fade + the weighted values of these keys."""
        k, tile, block = self.k, self.tile, self.plan.block
        with k.loop(0, self.padded_dim, tile.columns, plain=True) as d, k.loop(0, block, tile.rows, plain=True) as t:
            mixed, left, right = (
                self.mixed.at(d * block + t * tile.columns),
                self.weights.at(t),
                values.at(d * self.padded_len),
            )
            for r, c, total in tile.cells(self.sums):
                total.value = mixed.vector(r * tile.columns + c, tile.lanes) * self.fade[t + r]
            seen = k.minimum(t + lead + 1, count) if self.plan.i.causal else count
            tile.accumulate(k, self.sums, seen, left, block, right, tile.columns)
            if self.plan.i.causal:
                # Beyond the diagonal only the rows that see the key: a weight of 0 would let an infinite value through.
                with k.when(t + lead >= 0), k.when(t + lead < count):
                    for j in range(1, tile.rows):
                        u = t + lead + j
                        tile.step(k, self.sums, left.at(u * block), right.at(u * tile.columns), first=j)
            for r, c, total in tile.cells(self.sums):
                mixed.put(r * tile.columns + c, total.value)

    def _end(self, output: Array) -> None:
        """Divide by the sums and store."""
        k, tile, block = self.k, self.tile, self.plan.block
        with k.loop(0, k.minimum(self.seq_len - self.first, block), plain=True) as t:
            share = 1.0 / self.total[t]
            target = output.at((self.first + t) * self.line)
            with k.loop(0, self.head_dim, tile.columns, plain=True) as d:
                mixed = self.mixed.at(d * block + t * tile.columns)
                with k.when(d + tile.columns <= self.head_dim):
                    for lane in range(0, tile.columns, tile.lanes):
                        target.put(d + lane, mixed.vector(lane, tile.lanes) * share)
                with k.when(d + tile.columns > self.head_dim), k.loop(0, self.head_dim - d) as c:
                    target[d + c] = mixed[c] * share


def _greater(k: Kernel, a: Value, b: Value) -> Value:
    """The greater of a and b, and b where a is NaN: the weight of such a score is NaN whatever the maximum."""
    return k.where(a > b, a, b)


def _power(k: Kernel, x: Value) -> Value:
    """2^x of a vector for x ≤ 0; 0 where that is below the normal numbers, NaN of NaN.

    x = n + f with n whole: adding 1.5 · 2^mantissa rounds x to n, which then stands in the low bits of the sum.
    """
    ty, mantissa = x.ty, x.ty.mantissa_bits
    shift = 1.5 * 2.0**mantissa
    whole = x + shift
    rest = x - (whole - shift)
    *others, last = _power_series(6 if ty is Type.F32 else 11)
    result = k.const(ty, last, x.lanes)
    for factor in reversed(others):
        result = k.muladd(rest, result, k.const(ty, factor, x.lanes))
    bits = Type.I32 if ty is Type.F32 else Type.I64
    scaled = (result.bits(bits) + (whole.bits(bits) << mantissa)).bits(ty)
    return k.where(x < float(np.finfo(ty.dtype).minexp + 1), k.const(ty, 0, x.lanes), scaled)


@cache
def _power_series(degree: int) -> list[float]:
    """2^x for x from -1/2 to 1/2 as a polynomial, lowest power first."""
    near = np.polynomial.chebyshev.Chebyshev.interpolate(np.exp2, degree, domain=[-0.5, 0.5])
    return [float(c) for c in near.convert(kind=np.polynomial.Polynomial).coef]
