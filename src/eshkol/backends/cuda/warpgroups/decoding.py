"""Attention of few queries to many keys on Hopper: blocks of a cluster share the keys, and join what they found.

Comes in: a `Decoding`, and a `Tile`. Goes out: the kernel as PTX, and its tensor maps. What it takes is to read keys
and values once: so all queries of heads that share keys are rows of one block, at most 64, and as many blocks as can be
are at work. Each goes along its part of the keys as attention does (`attention.py`), and leaves its sums, the greatest
score and the sum of the powers of each row in shared memory; when all of a cluster have, each reads a share of the
results from all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.attention import Attention, AttentionWriter
from eshkol.backends.cuda.warpgroups.attention import Tile as AttentionTile
from eshkol.backends.cuda.warpgroups.confines import Confines
from eshkol.backends.cuda.warpgroups.maps import LINE_ELEMENTS, Axis, TensorMap
from eshkol.backends.cuda.warpgroups.ptx import GROUP, listed, real
from eshkol.backends.cuda.warpgroups.ring import LINE, NAMES, ROWS
from eshkol.backends.cuda.warpgroups.sight import Looking

LARGEST_CLUSTER = 8
NUMBERS = 8  # bytes of a row's greatest score and of its sum of powers


@dataclass(frozen=True)
class Decoding(Attention):
    """Attention whose batch has no axis for heads that share keys: so many, so far apart in q, and in the mask."""

    members: int
    apart: int
    masked_apart: int
    result: tuple[int, int]  # where the address of the result is, and how many bytes further it begins

    @property
    def rows(self) -> int:
        return self.members * self.queries


@dataclass(frozen=True)
class Tile(AttentionTile):
    """One group with all rows, in each of so many blocks, which share the keys."""

    parts: int

    @property
    def cluster(self) -> int:
        return self.parts

    @property
    def registers(self) -> tuple[int, int] | None:
        return (40, 216) if self.shares else None

    @property
    def shares(self) -> bool:
        """Whether two blocks fit a processor."""
        return self.widest <= 128


SHAPES = {64: (128, 3), 128: (64, 3), 192: (48, 3), 256: (48, 3)}  # widest → keys of a tile, and stages
FEWEST = 256  # keys from which on it is worth while


def tile_for(d: Decoding, processors: int, shapes: Mapping[int, tuple[int, int]] = SHAPES) -> Tile | None:
    """The tile, if there is one for so many rows: in parts until processors have two blocks each, or nearly all one."""
    widest = next((widest for widest in shapes if d.width <= widest), None)
    near = d.sight.causal or d.sight.window or d.sight.dropout or d.sight.spans
    if widest is None or d.rows > ROWS or d.keys < FEWEST or near:
        return None
    keys, stages = shapes[widest]
    parts, heads = 1, math.prod(d.batch)
    while parts < LARGEST_CLUSTER and heads * parts < 2 * processors and 2 * parts <= -(-d.keys // keys):
        if processors * 9 // 10 <= heads * parts <= processors:  # fewer that have more to read are faster
            break
        parts *= 2
    return Tile(widest, 1, keys, stages, parts)


def blocks(d: Decoding, tile: Tile) -> int:
    return math.prod(d.batch) * tile.parts


def maps(d: Decoding, tile: Tile) -> tuple[TensorMap, ...]:
    """The tensor maps of q, whose boxes are all rows of a block, of k and of v."""
    lead = [Axis(extent, step) for extent, step in zip(d.batch, d.q.batch, strict=True) if step][::-1]
    shared = [Axis(d.members, d.apart)] if d.members > 1 else []
    axes = (Axis(d.width, 1), Axis(d.queries, d.q.distance), *shared, *lead)
    box = (LINE_ELEMENTS, d.queries, *(axis.extent for axis in shared), *(1 for _ in lead))
    q = TensorMap(d.q.buffer, d.q.offset, d.ty, axes, box)
    return (q, *(x.map(d.ty, d.width, d.keys, d.batch, tile.keys) for x in (d.k, d.v)))


def decoding_kernel(d: Decoding, tile: Tile, record: int, sums: tuple[int, int]) -> str:
    """The kernel's text, for a record of so many bytes, which ends with the maps."""
    return DecodingWriter(d, tile, record, sums).text()


class DecodingWriter(AttentionWriter):
    count = 3  # maps

    def __init__(self, d: Decoding, tile: Tile, record: int, sums: tuple[int, int]) -> None:
        super().__init__(d, tile, record, sums)
        self.d, self.parts = d, tile.parts
        self.budget = sum(tile.registers) // 2 if tile.registers is not None else None
        self.pitch = tile.widest * 4 + 16  # bytes of a row of sums in shared memory

    def settle(self) -> None:
        k, keys = self.k, self.tile.keys
        which, part = k.divided(k.special("ctaid.x"), self.parts)
        self.locate(which)
        self.first, self.part = k.number(0), part
        tiles: str | int = -(-self.d.keys // keys)
        if self.sight.confined:
            self.confines = Confines(k, self.sight, self.places, self.d.keys, self.thread)
            tiles = k.divided(k.add(self.confines.length, keys - 1), keys)[0]
        begin, end = (k.divided(k.mul(k.add(part, n), tiles), self.parts)[0] for n in range(2))
        self.across, self.last = k.op("sub.u32", end, begin), k.op("sub.u32", end, 1)
        if self.confines is not None:  # who has no tile looks at one, and sees nothing of it
            none = k.equal(self.across, 0)
            self.confines.length = k.op("selp.u32", 0, self.confines.length, none)
            self.across, self.last = k.op("max.u32", self.across, 1), k.op("max.s32", self.last, 0)

    def bring_queries(self) -> None:
        k, d, zero = self.k, self.d, self.k.number(0)
        rings.expect(k, self.ready, self.blocks * d.rows * LINE)
        lead = [place for place, step in zip(self.places, d.q.batch, strict=True) if step][::-1]
        for block in range(self.blocks):
            at = [k.number(block * LINE_ELEMENTS), zero, *([zero] if d.members > 1 else []), *lead]
            rings.bring(k, k.add(self.base, block * self.high * LINE), self.maps[0], at, self.ready)

    def looks(self, looking: Looking) -> list[str]:
        k, d, mask = self.k, self.d, looking.mask
        if mask.row == 0 and d.masked_apart == 0:
            return [looking.start]
        found = []
        for row in self.rows(d.rows):
            member, query = k.divided(row, d.queries)
            start = k.op("mad.wide.u32", member, d.masked_apart * mask.size, looking.start, kind="b64")
            found.append(k.op("mad.wide.u32", query, mask.row * mask.size, start, kind="b64"))
        return found

    # --- what the blocks of a cluster found ---------------------------------------------------------------

    def end(self) -> None:
        k, totals = self.k, self.sums_of_rows()
        area = self.at[0]  # where keys were
        numbers = k.add(area, ROWS * self.pitch)
        k.do("bar.sync", 1, GROUP)  # all warps have multiplied
        quarter = k.op("and.b32", self.lane, 3)
        for half, total in enumerate(totals):
            row = k.add(self.row, 8 * half)
            inside = k.less(row, self.d.rows)
            with k.only(inside):
                at = k.op("mad.lo.u32", row, self.pitch, k.op("mad.lo.u32", quarter, 8, area))
                for number in range(half * 2, len(self.sums), 4):
                    two = self.sums[number : number + 2]
                    k.do("st.shared.v2.f32", f"[{at}+{number // 4 * 32}]", listed(two))
                here = k.op("mad.lo.u32", row, NUMBERS, numbers)
                two = [self.greatest[half], total]
                k.do("st.shared.v2.f32", f"[{here}]", listed(two), when=k.equal(quarter, 0))
        self._meet()
        self._put_together(area, numbers)
        if self.parts > 1:  # nobody leaves whose memory is read
            self._meet()

    def _meet(self) -> None:
        if self.parts > 1:
            self.k.lines += [
                "    barrier.cluster.arrive.release.aligned;", "    barrier.cluster.wait.acquire.aligned;"
            ]  # fmt: skip
        else:
            self.k.do("bar.sync", 1, GROUP)

    def _load(self, addresses: list[str]) -> list[list[str]]:
        """Two numbers of each block of the cluster, from the same place."""
        k, found = self.k, []
        where = "shared::cluster" if self.parts > 1 else "shared"
        for address in addresses:
            two = k.registers(2)
            k.do(f"ld.{where}.v2.f32", listed(two), f"[{address}]")
            found.append(two)
        return found

    def _there(self, address: str) -> list[str]:
        """An address of shared memory, in each block of the cluster."""
        k = self.k
        return [address] if self.parts == 1 else [
            k.op("mapa.shared::cluster.u32", address, part) for part in range(self.parts)
        ]  # fmt: skip

    def _put_together(self, area: str, numbers: str) -> None:
        """Each thread of the cluster has two neighbours of the results at a time."""
        k, d = self.k, self.d
        pairs = d.width // 2
        mine = k.op("mad.lo.u32", self.part, GROUP, self.me)
        areas, stats = self._there(area), self._there(numbers)
        result, sums = (
            k.op("add.u64", k.op("cvta.to.global.u64", k.word(byte), kind="b64"), further, kind="b64")
            for byte, further in (d.result, self.sums_at)
        )
        with k.counted(mine, d.rows * pairs, self.parts * GROUP) as element:
            row, pair = k.divided(element, pairs)
            found = self._load([k.op("mad.lo.u32", row, NUMBERS, at) for at in stats])
            offset = k.op("mad.lo.u32", row, self.pitch, k.mul(pair, 8))
            values = self._load([k.add(at, offset) for at in areas])
            greatest = found[0][0]
            for other, _ in found[1:]:
                greatest = k.op("max.f32", greatest, other, kind="f32")
            total = k.op("mov.f32", real(0.0), kind="f32")
            both = [k.op("mov.f32", real(0.0), kind="f32") for _ in range(2)]
            for (top, part), two in zip(found, values, strict=True):
                less = k.op("mul.f32", k.op("sub.f32", top, greatest, kind="f32"), self.factor, kind="f32")
                power = k.op("ex2.approx.ftz.f32", less, kind="f32")
                total = k.op("fma.rn.f32", part, power, total, kind="f32")
                both = [k.op("fma.rn.f32", x, power, sum_, kind="f32") for x, sum_ in zip(two, both, strict=True)]
            factor = k.op("rcp.rn.f32", total, kind="f32")
            logarithm = k.op("lg2.approx.f32", total, kind="f32")
            told = k.op("fma.rn.f32", greatest, self.factor, logarithm, kind="f32")
            if d.sight.in_part:
                nothing = k.op("setp.eq.f32", total, real(0.0), kind="pred")
                factor = k.op("selp.f32", real(0.0), factor, nothing, kind="f32")
                told = k.op("selp.f32", real(math.inf), told, nothing, kind="f32")
            low, high = (k.op("mul.f32", x, factor, kind="f32") for x in both)
            packed = k.op(f"cvt.rn.{NAMES[self.ty]}x2.f32", high, low)
            line = k.op("mad.lo.u32", self.which, d.rows, row)
            here = k.op("mad.wide.u32", line, d.width * 2, result, kind="b64")
            k.do("st.global.b32", f"[{k.op('mad.wide.u32', pair, 4, here, kind='b64')}]", packed)
            there = k.op("mad.wide.u32", line, 4, sums, kind="b64")
            k.do("st.global.f32", f"[{there}]", told, when=k.equal(pair, 0))
