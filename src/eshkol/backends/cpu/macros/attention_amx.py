"""Attention of BF16 on Intel's matrix extension: both products are of tiles, their sums in tile registers.

Comes in and goes out what `attention` says; blocks and softmax are its own, too. As scores stand with keys below each
other and queries side by side, keys are the left factor of the first product, in rows as they lie, and weights are the
right factor of the second one: two of them below each other, as 16 bits each, are a unit. A phase before packs keys and
values of every head, zero where tiles reach past the end, in tiles of 16 rows of 64 bytes:

    keys     [piece of 32 of head_dim][padded_len][32 of head_dim]
    values   [block of 32 keys][padded_dim][32 keys]

A weight is the sum of two numbers of 16 bits, which are multiplied one after the other: what is left out is 2⁻¹⁷ of it.
Packing notes which blocks have values that are not finite, of which parts of weights would make NaN: they are
multiplied number by number, and by nothing that a query does not see.
"""

from __future__ import annotations

import math

from eshkol.atlas.isa import Instruction
from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros import gemm_amx
from eshkol.backends.cpu.macros.attention import WIDEST_HEAD, Attend, AttentionPlan, Pack, Part
from eshkol.backends.cpu.macros.gemm_amx import EDGE
from eshkol.backends.cpu.macros.gemm_pack import transposed, woven
from eshkol.backends.cpu.macros.kit import Array, Value
from eshkol.backends.cpu.macros.micro import up
from eshkol.llvm.targets import Target

DEEP = 2 * EDGE  # numbers of BF16 in a row of a tile, and rows or columns that two tiles have
TILE = EDGE * DEEP  # numbers of a tile
ROW_BYTES = str(2 * DEEP)
SIGNLESS, NOT_FINITE = 0x7FFF, 0x7F80  # bits of a BF16, and the least of what is infinite or no number
UPPER = -1 << 16  # of an F32, those of a BF16


def suits(i: Instruction, target: Target) -> bool:
    """Whether an instruction is computed so."""
    return i.ty is Type.BF16 and target.vector_bits == 512 and gemm_amx.available(i.ty, target)


class TilePlan(AttentionPlan):
    """Lengths are padded to two tiles; scratch ends in a number for each block of keys: whether all is finite."""

    def __init__(self, i: Instruction, target: Target) -> None:
        super().__init__(i, target)
        self.block, self.keys = 2 * DEEP, 4 * DEEP
        self.padding = DEEP, DEEP
        self.name = "attention_amx"

    def parts(self) -> tuple[Part, Part]:
        return PackTiles(self), AttendTiles(self)

    @property
    def head_bytes(self) -> int:
        _, _, padded_len, padded_dim, blocks, *_ = self.words
        return 2 * 2 * padded_len * padded_dim + 8 * blocks


class _Tiles(Part):
    """What both phases know."""

    def packed(self, head: Value) -> tuple[Array, Array]:
        """The packed keys and values of a head."""
        size = self.padded_len * self.padded_dim
        keys = self.k.scratch(Type.U16).at(head * (2 * size + 4 * self.blocks))
        return keys, keys.at(size)

    def greatest(self, head: Value) -> Array:
        """Of each block of values, the greatest in magnitude, as bits."""
        _, values = self.packed(head)
        return Array(self.k, values.at(self.padded_len * self.padded_dim).pointer, Type.I64)

    def raw(self, operand: int, head: Value) -> Array:
        """A head of an operand, as bits."""
        return Array(self.k, self.source(operand, head).pointer, Type.U16)


class PackTiles(_Tiles, Pack):
    """Phase one: a task packs a block of one head's keys and values."""

    def _pack(self, head: Value, block: Value) -> None:
        k, start = self.k, block * self.plan.block
        keys, values = self.packed(head)
        key, value = self.raw(2, head), self.raw(3, head)
        stop = k.minimum(start + self.plan.block, self.padded_len)
        with k.loop(0, self.padded_dim, DEEP, plain=True) as d:
            whole = d + DEEP <= self.head_dim
            with k.loop(start, stop, plain=True) as u:
                source = key.at(k.minimum(u, self.seq_len - 1) * self.line + d)
                target = keys.at(d * self.padded_len + u * DEEP)
                with k.when(whole):
                    target.put(0, source.vector(0, DEEP))
                with k.when(k.negated(whole)):
                    target.put(0, k.const(Type.U16, 0, DEEP))
                    with k.loop(0, self.head_dim - d) as e:
                        target[e] = source[e]
        greatest = k.variable(k.const(Type.U16, 0, EDGE))
        with k.loop(start, stop, DEEP, plain=True) as u, k.loop(0, self.padded_dim, EDGE, plain=True) as d:
            target = values.at(u * self.padded_dim + d * DEEP)
            whole = d + EDGE <= self.head_dim
            with k.when(whole):
                rows = [self._row(value.at(d), u + e) for e in range(DEEP)]
                for row in rows:
                    greatest.value = k.maximum(greatest.value, row & SIGNLESS)
                units = [woven(k, [rows[e], rows[e + 1]]) for e in range(0, DEEP, 2)]
                units = [Value(k, Type.U32, k.op(f"bitcast <{DEEP} x i16> {v} to <{EDGE} x i32>"), EDGE) for v in units]
                for r, row in enumerate(transposed(k, units)):
                    Array(k, target.pointer, Type.U32).put(r * EDGE, row)
            with k.when(k.negated(whole)):
                with k.loop(0, TILE, DEEP, plain=True) as p:
                    target.put(p, k.const(Type.U16, 0, DEEP))
                with (
                    k.loop(0, k.minimum(self.seq_len - u, DEEP), plain=True) as e,
                    k.loop(0, self.head_dim - d, plain=True) as c,
                ):
                    number = value[(u + e) * self.line + d + c]
                    target[c * DEEP + e] = number
                    greatest.value = k.maximum(greatest.value, k.splat(number & SIGNLESS, EDGE))
        self.greatest(head)[block] = k.reduce("max", greatest.value).to(Type.U64)

    def _row(self, values: Array, at: Value) -> Value:
        """Some of the values of a key; zero past the end."""
        k = self.k
        found = values.vector(k.minimum(at, self.seq_len - 1) * self.line, EDGE)
        return k.select(at < self.seq_len, found, k.const(Type.U16, 0, EDGE))


class AttendTiles(_Tiles, Attend):
    """Phase two: a task carries a block of one head's queries through all keys."""

    together = 2

    def _prepare(self) -> None:
        k, block, widest = self.k, self.plan.block, up(WIDEST_HEAD, DEEP)
        self.queries = k.local(Type.U32, block * widest // 2)  # [unit of two of head_dim][block]
        self.mixed = k.local(Type.F32, block * widest)  # [head_dim][block]
        self.rest = k.local(Type.U32, self.plan.keys // 2 * block)  # of weights: [unit of two keys][block]
        self.single = k.local(Type.F32, EDGE)
        gemm_amx.configure(k)

    def _finish(self) -> None:
        gemm_amx.release(self.k)

    def _begin(self, head: Value, scale: Value) -> None:
        k, block = self.k, self.plan.block
        self.scale, self.head = scale, head
        query = self.raw(1, head)
        numbers = Array(k, self.queries.pointer, Type.U16)
        with k.loop(0, block, EDGE, plain=True) as t, k.loop(0, self.padded_dim, DEEP, plain=True) as d:
            lines = [query.at(k.minimum(self.first + t + e, self.seq_len - 1) * self.line + d) for e in range(EDGE)]
            target, whole = self.queries.at(d // 2 * block + t), d + DEEP <= self.head_dim
            with k.when(whole):
                units = [Array(k, line.pointer, Type.U32).vector(0, EDGE) for line in lines]
                for r, row in enumerate(transposed(k, units)):
                    target.put(r * block, row)
            with k.when(k.negated(whole)):
                with k.loop(0, EDGE, plain=True) as p:
                    target.put(p * block, k.const(Type.U32, 0, EDGE))
                with k.loop(d, self.head_dim, plain=True) as e:
                    for r, line in enumerate(lines):
                        numbers[(e // 2 * block + t + r) * 2 + e % 2] = line[e - d]
        self._clear()

    def _meet(self, keys: Array, values: Array, start: Value, count: Value) -> None:
        k, block, lead = self.k, self.plan.block, self.first - start
        padded = (count + (DEEP - 1)) // DEEP * DEEP
        self._score(keys.at(start * DEEP), padded, lead)
        with k.loop(count, padded, plain=True) as u, k.loop(0, block) as t:
            self.weights[u * block + t] = k.const(Type.F32, -math.inf)
        self._hide(count, lead)
        self._weigh(padded)
        self._mix_tiles(values.at(start * self.padded_dim), padded, start, lead)

    def _score(self, keys: Array, count: Value, lead: Value) -> None:
        """weights[u, t] = key u · query t."""
        k, block = self.k, self.plan.block
        with k.loop(0, count, DEEP, plain=True) as u, k.loop(0, block, DEEP, plain=True) as t:

            def product() -> None:
                with (
                    gemm_amx.sums(k, self.weights.at(u * block + t), block, "false"),
                    k.loop(0, self.padded_dim, DEEP, plain=True) as d,
                ):
                    left, right = keys.at(d * self.padded_len + u * DEEP), self.queries.at(d // 2 * block + t)
                    gemm_amx.multiply(k, Type.BF16, (left, TILE, ROW_BYTES), (right, EDGE, str(4 * block)))

            if not self.plan.i.causal:
                product()
            else:
                with k.when(u < t + DEEP + lead):
                    product()

    def _scaled(self, score: Value) -> Value:
        return score * self.scale

    def _exponent(self, score: Value, top: Value) -> Value:
        return self.k.muladd(score, self.scale, -top)

    def _store(self, u: Value, at: Value, weights: list[Value]) -> None:
        """Two weights as a unit, in the place of scores that were read, and what is left of them."""
        k, block, bits = self.k, self.plan.block, [w.bits(Type.U32) + 0x8000 for w in weights]
        upper = [b & UPPER for b in bits]
        rest = [(w - b.bits(Type.F32)).bits(Type.U32) for w, b in zip(weights, upper, strict=True)]
        place = u // 2 * block + at
        Array(k, self.weights.pointer, Type.U32).put(place, (bits[0] >> 16) + upper[1])
        self.rest.put(place, (rest[0] >> 16) + (rest[1] & UPPER))

    def _mix_tiles(self, values: Array, count: Value, start: Value, lead: Value) -> None:
        """mixed[d, t] = mixed · fade + the weighted values of these keys."""
        k, block, lanes = self.k, self.plan.block, self.tile.lanes
        later = start > 0
        with k.when(later), k.loop(0, self.padded_dim, plain=True) as d:
            for t in range(0, block, lanes):
                place = d * block + t
                self.mixed.put(place, self.mixed.vector(place, lanes) * self.fade.vector(t, lanes))
        finite = self._finite(start, count)
        weights = Array(k, self.weights.pointer, Type.U32)
        with (
            k.when(finite),
            k.loop(0, self.padded_dim, DEEP, plain=True) as d,
            k.loop(0, block, DEEP, plain=True) as c,
            gemm_amx.sums(k, self.mixed.at(d * block + c), block, later),
            k.loop(0, count, DEEP, plain=True) as u,
        ):
            left, unit = values.at(u * self.padded_dim + d * DEEP), u // 2 * block + c
            gemm_amx.multiply(k, Type.BF16, (left, TILE, ROW_BYTES), (weights.at(unit), EDGE, str(4 * block)))
            gemm_amx.multiply(k, Type.BF16, None, (self.rest.at(unit), EDGE, str(4 * block)))
        with k.when(k.negated(finite)):
            self._mix_singly(values, count, start, lead)

    def _finite(self, start: Value, count: Value) -> str:
        """Whether the values of these keys are finite."""
        k, flags, block = self.k, self.greatest(self.head), self.plan.block
        found = k.variable(k.const(Type.I64, 0))
        with k.loop(start // block, (start + count + (block - 1)) // block, plain=True) as b:
            found.value = k.maximum(found.value, flags[b])
        return found.value < NOT_FINITE

    def _mix_singly(self, values: Array, count: Value, start: Value, lead: Value) -> None:
        """The same, number by number, of what each query sees."""
        k, block = self.k, self.plan.block
        weights, rests = (Array(k, a.pointer, Type.BF16) for a in (self.weights, self.rest))
        numbers = Array(k, values.pointer, Type.BF16)
        with k.loop(0, self.padded_dim, plain=True) as d, k.loop(0, block, plain=True) as t:
            place = d * block + t
            total = k.variable(k.const(Type.F32, 0))
            with k.when(start > 0):
                total.value = self.mixed[place]
            seen = k.minimum(t + lead + 1, count) if self.plan.i.causal else count
            with k.loop(0, seen, plain=True) as u:
                value = numbers[u // DEEP * (DEEP * self.padded_dim) + d * DEEP + u % DEEP]
                at = (u // 2 * block + t) * 2 + u % 2
                total.value = k.muladd(weights[at] + rests[at], value, total.value)
            self.mixed[place] = total.value

    def _end(self, output: Array) -> None:
        """Divide by the sums, turn, and store."""
        k, block, lanes = self.k, self.plan.block, self.tile.lanes
        with k.loop(0, block, lanes, plain=True) as t:
            share = 1.0 / self.total.vector(t, lanes)
            with k.loop(0, self.head_dim, lanes, plain=True) as d:
                lines = [self.mixed.vector((d + e) * block + t, lanes) * share for e in range(lanes)]
                for r, row in enumerate(transposed(k, lines)):
                    target = output.at((self.first + t + r) * self.line)
                    with k.when(self.first + t + r < self.seq_len):
                        whole = d + lanes <= self.head_dim
                        with k.when(whole):
                            target.put(d, row)
                        with k.when(k.negated(whole)):
                            self.single.put(0, row)
                            with k.loop(0, self.head_dim - d, plain=True) as c:
                                target[d + c] = self.single[c]
