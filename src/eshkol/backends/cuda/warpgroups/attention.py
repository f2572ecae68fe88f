"""Attention of 16-bit floats on Hopper: groups of four warps, each with 64 queries, go along the keys tile by tile.

Comes in: an `Attention`, how its matrices lie, and a `Tile`. Goes out: the kernel as PTX, and its tensor maps. A block
has the queries of its groups, of one head. One of its threads has tiles of keys and of values copied into two rings of
stages (`ring.py`). A group multiplies its queries by a tile of keys, makes powers of two of the scores, and multiplies
values by these, which never leave its registers. While values are multiplied by the powers of one tile, the scores of
the next are computed and made into powers; and while one group does that, others have the machine for their products:
they take turns. Of each row the greatest score so far is known, and the sum of the powers: where a tile has a greater
one, what was summed is made smaller ("online softmax").

Tiles are taken from the last to the first, so that those which are masked, at the end of the keys or on the diagonal,
come first. Results go to where the group's queries were, and are copied from there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.maps import LINE_ELEMENTS, MAP_BYTES, Axis, TensorMap
from eshkol.backends.cuda.warpgroups.ptx import GROUP, WARP, Kernel, listed, real
from eshkol.backends.cuda.warpgroups.ring import BARRIER_BYTES, LINE, Place, Ring

ROWS, TERMS = 64, 16  # of what a group multiplies at once
REGISTERS = {1: None, 2: (24, 240), 3: (32, 160)}  # groups → registers of threads that copy, and that multiply
NAMES = {Type.BF16: "bf16", Type.F16: "f16"}
LOWEST = -1e30  # where the greatest score of a row begins
TURN = 8  # the first of the barriers at which groups take turns


@dataclass(frozen=True)
class Rows:
    """How matrices of rows lie in a buffer, in elements: their distance, and that of matrices along each batch axis."""

    buffer: str
    offset: int  # bytes
    distance: int
    batch: tuple[int, ...]  # 0: the same for all


@dataclass(frozen=True)
class Attention:
    """softmax(scale · q · kᵀ) · v, and the logarithm to base 2 of each row's sum of e^(scale · q · kᵀ)."""

    ty: Type
    queries: int
    keys: int
    width: int
    batch: tuple[int, ...]
    q: Rows
    k: Rows
    v: Rows
    out: Rows
    scale: float
    causal: bool


@dataclass(frozen=True)
class Tile:
    """So many groups of 64 queries, and so many keys at a time, of heads of at most so many elements."""

    widest: int
    groups: int
    keys: int
    stages: int

    @property
    def rows(self) -> int:
        return self.groups * ROWS

    @property
    def threads(self) -> int:
        return (1 + self.groups) * GROUP

    @property
    def memory(self) -> int:
        """Bytes of shared memory: queries, keys, values, and barriers."""
        lines = self.rows + 2 * self.stages * self.keys
        return lines * self.widest * 2 + (4 * self.stages + 1) * BARRIER_BYTES


SHORT = 2048  # queries below which few groups share a block where attention is causal: fewer wait for the longest
NARROW, WIDE = Tile(64, 3, 128, 3), Tile(128, 2, 128, 2)
NARROW_AND_SHORT, WIDE_AND_LONG = Tile(64, 2, 128, 3), Tile(128, 2, 160, 2)


def tile_for(width: int, queries: int, *, causal: bool) -> Tile | None:
    """The tile for heads of so many elements, if there is one; measured on an H200."""
    if width <= NARROW.widest:
        return NARROW_AND_SHORT if causal and queries < SHORT else NARROW
    if width <= WIDE.widest:
        return WIDE_AND_LONG if causal and queries >= 2 * SHORT else WIDE
    return None


def blocks(a: Attention, tile: Tile) -> int:
    return math.prod(a.batch) * -(-a.queries // tile.rows)


def maps(a: Attention, tile: Tile) -> tuple[TensorMap, ...]:
    """The tensor maps of q, k, v and the result."""
    given = ((a.q, a.queries, tile.rows), (a.k, a.keys, tile.keys), (a.v, a.keys, tile.keys), (a.out, a.queries, ROWS))
    found = []
    for x, lines, high in given:
        batch = [Axis(extent, step) for extent, step in zip(a.batch, x.batch, strict=True) if step]
        axes = (Axis(a.width, 1), Axis(lines, x.distance), *batch[::-1])
        found.append(TensorMap(x.buffer, x.offset, a.ty, axes, (LINE_ELEMENTS, high, *(1 for _ in batch))))
    return tuple(found)


def attention_kernel(a: Attention, tile: Tile, record: int, sums: tuple[int, int]) -> str:
    """The kernel's text, for a record of so many bytes, which ends with the maps.

    The sums' logarithms go to the address at a byte of the record, plus so many bytes.
    """
    return _Writer(a, tile, record, sums).text()


class _Writer:
    def __init__(self, a: Attention, tile: Tile, record: int, sums: tuple[int, int]) -> None:
        self.a, self.tile, self.sums_at = a, tile, sums
        self.k = k = Kernel(tile.threads, 1, record)
        self.thread, self.base = k.special("tid.x"), k.shared()
        self.maps = [k.address(record - (4 - number) * MAP_BYTES) for number in range(4)]
        self.blocks = tile.widest // LINE_ELEMENTS  # of 64 elements of a row
        lines = tile.rows * tile.widest * 2
        self.size = tile.keys * tile.widest * 2  # bytes of a tile of keys, or of values
        self.at = [k.add(self.base, lines), k.add(self.base, lines + tile.stages * self.size)]
        barriers = k.add(self.base, lines + 2 * tile.stages * self.size)
        self.rings = [Ring(k, barriers, tile.stages, tile.groups, 1)]
        self.rings.append(Ring(k, k.add(barriers, self.rings[0].size), tile.stages, tile.groups, 1))
        self.ready = k.add(barriers, 2 * self.rings[0].size)  # queries are there
        self.down = -(-a.queries // tile.rows)

    def text(self) -> str:
        k, tile = self.k, self.tile
        with k.only(k.equal(self.thread, 0)):
            k.do("mbarrier.init.shared::cta.b64", f"[{self.ready}]", 1)
            for ring in self.rings:
                ring.prepare()
        k.together()
        self._find()
        group = k.op("shr.u32", self.thread, GROUP.bit_length() - 1)
        budget, end = REGISTERS[tile.groups], k.label()
        with k.only(k.equal(group, 0)):
            if budget is not None:
                k.do("setmaxnreg.dec.sync.aligned.u32", budget[0])
            with k.only(k.equal(self.thread, 0)):
                self._copy()
            k.do("bra", end)
        if budget is not None:
            k.do("setmaxnreg.inc.sync.aligned.u32", budget[1])
        self._attend(k.op("sub.u32", group, 1))
        k.place(end)
        return k.text()

    def _find(self) -> None:
        """Which queries a block has, and how many tiles of keys they see."""
        k, a, tile = self.k, self.a, self.tile
        which, number = k.divided(k.special("ctaid.x"), self.down)
        if a.causal:  # those with the most keys begin first
            number = k.op("sub.u32", k.number(self.down - 1), number)
        self.which, self.places = which, []
        for extent in a.batch[:0:-1]:
            which, place = k.divided(which, extent)
            self.places.insert(0, place)
        if a.batch:
            self.places.insert(0, which)
        self.first = k.mul(number, tile.rows)
        self.across = k.number(-(-a.keys // tile.keys))
        if a.causal:
            seen = k.divided(k.add(self.first, tile.rows + tile.keys - 1), tile.keys)[0]
            self.across = k.op("min.u32", self.across, seen)

    def _at(self, x: Rows, across: int, down: str) -> list[str]:
        batch = [place for place, step in zip(self.places, x.batch, strict=True) if step]
        return [self.k.number(across), down, *batch[::-1]]

    # --- the thread that has tiles copied ---------------------------------------------------------------

    def _copy(self) -> None:
        k, a, tile = self.k, self.a, self.tile
        rings.expect(k, self.ready, tile.rows * tile.widest * 2)
        for block in range(self.blocks):
            at = self._at(a.q, block * LINE_ELEMENTS, self.first)
            rings.bring(k, k.add(self.base, block * tile.rows * LINE), self.maps[0], at, self.ready)
        keys, values = (ring.begin(filled=False) for ring in self.rings)
        with k.counted(0, self.across) as round_:
            start = k.mul(k.op("sub.u32", k.op("sub.u32", self.across, 1), round_), tile.keys)
            for number, (place, rows) in enumerate(((keys, a.k), (values, a.v))):
                place.wait(place.free())
                full = place.full()
                rings.expect(k, full, self.size)
                into = k.op("mad.lo.u32", place.stage, self.size, self.at[number])
                for block in range(self.blocks):
                    at = self._at(rows, block * LINE_ELEMENTS, start)
                    rings.bring(k, k.add(into, block * tile.keys * LINE), self.maps[1 + number], at, full)
                place.advance()

    # --- groups -----------------------------------------------------------------------------------------

    def _attend(self, group: str) -> None:
        k, a, tile = self.k, self.a, self.tile
        self.group, self.me = group, k.op("and.b32", self.thread, GROUP - 1)
        self.lane = k.op("and.b32", self.me, WARP - 1)
        line = k.op("mad.lo.u32", k.op("shr.u32", self.me, 5), 16, k.op("shr.u32", self.lane, 2))
        self.row = k.add(k.add(self.first, k.mul(group, ROWS)), line)
        self.queries = k.op("mad.lo.u32", group, ROWS * LINE, self.base)
        scores, self.sums = k.registers(tile.keys // 2), k.registers(tile.widest // 2)
        powers = k.registers(tile.keys // 4, "b32")
        self.factor = real(a.scale * math.log2(math.e))
        self.greatest = [k.op("mov.f32", real(LOWEST), kind="f32") for _ in range(2)]
        self.totals = [k.op("mov.f32", real(0.0), kind="f32") for _ in range(2)]
        self.always = k.op("setp.eq.u32", 0, 0, kind="pred")
        never = k.op("setp.ne.u32", 0, 0, kind="pred")
        keys, values = (ring.begin(filled=True) for ring in self.rings)
        rings.wait_for(k, self.ready, k.number(0))
        if tile.groups > 1:  # the first group begins
            with k.only(k.equal(group, tile.groups - 1)):
                k.do("bar.arrive", TURN, 2 * GROUP)
        keys.wait(keys.full())
        rings.fence(k)
        self._scores(scores, keys, never)
        rings.wait(k, 0)
        rings.give_back(k, keys.free(), 1, self.me)
        keys.advance()
        self._soften(scores, k.op("sub.u32", self.across, 1))
        self._pack(powers, scores)
        begun = k.op("setp.ne.u32", 0, 0, kind="pred")
        with k.counted(1, self.across) as round_:
            keys.wait(keys.full())
            self._take_turn()
            rings.fence(k)
            self._scores(scores, keys, never)
            values.wait(values.full())
            self._add(powers, values, begun)
            self._end_turn()
            rings.wait(k, 1)
            rings.give_back(k, keys.free(), 1, self.me)
            keys.advance()
            smaller = self._soften(scores, k.op("sub.u32", k.op("sub.u32", self.across, 1), round_))
            rings.wait(k, 0)
            rings.give_back(k, values.free(), 1, self.me)
            values.advance()
            for number, register in enumerate(self.sums):
                k.do("mul.f32", register, register, smaller[number // 2 % 2])
            self._pack(powers, scores)
            k.do("setp.eq.u32", begun, 0, 0)
        values.wait(values.full())
        rings.fence(k)
        self._add(powers, values, begun)
        rings.wait(k, 0)
        self._store()

    def _take_turn(self) -> None:
        """Wait until it is this group's turn to multiply."""
        if self.tile.groups > 1:
            self.k.do("bar.sync", self.k.add(self.group, TURN), 2 * GROUP)

    def _end_turn(self) -> None:
        """Let the next group have its turn."""
        k, groups = self.k, self.tile.groups
        if groups > 1:
            following = k.add(self.group, 1)
            following = k.op("selp.u32", 0, following, k.equal(following, groups))
            k.do("bar.arrive", k.add(following, TURN), 2 * GROUP)

    def _scores(self, scores: Sequence[str], keys: Place, never: str) -> None:
        """Begin to multiply the queries by a tile of keys."""
        k, tile = self.k, self.tile
        left = rings.described(k, self.queries, LINE)
        right = rings.described(k, k.op("mad.lo.u32", keys.stage, self.size, self.at[0]), LINE)
        for step in range(tile.widest // TERMS):
            block, inner = divmod(step * TERMS, LINE_ELEMENTS)
            here, there = (
                k.op("add.u64", x, (block * lines * LINE + inner * 2) >> 4, kind="b64")
                for x, lines in ((left, tile.rows), (right, tile.keys))
            )
            rings.multiply(
                k, NAMES[self.a.ty], scores, here, there, self.always if step else never, turned=(False, False)
            )
        rings.commit(k)

    def _add(self, powers: Sequence[str], values: Place, begun: str) -> None:
        """Begin to add a tile of values times the powers."""
        k, tile = self.k, self.tile
        right = rings.described(k, k.op("mad.lo.u32", values.stage, self.size, self.at[1]), tile.keys * LINE)
        for step in range(tile.keys // TERMS):
            there = k.op("add.u64", right, step * TERMS * LINE >> 4, kind="b64")
            left = powers[4 * step :][:4]
            rings.multiply(
                k, NAMES[self.a.ty], self.sums, left, there, self.always if step else begun, turned=(False, True)
            )
        rings.commit(k)

    def _soften(self, scores: Sequence[str], tile_number: str) -> list[str]:
        """Powers in place of the scores; the factors by which what was summed before is made smaller."""
        k = self.k
        self._mask(scores, tile_number)
        factors = []
        for half in range(2):
            mine = [x for number, x in enumerate(scores) if number // 2 % 2 == half]
            greatest = self.greatest[half]
            for score in mine:
                greatest = k.op("max.f32", greatest, score, kind="f32")
            for mask in (1, 2):
                other = k.op("shfl.sync.bfly.b32", greatest, mask, 31, "0xffffffff", kind="f32")
                greatest = k.op("max.f32", greatest, other, kind="f32")
            offset = k.op("mul.f32", greatest, self.factor, kind="f32")
            offset = k.op("neg.f32", offset, kind="f32")
            # As a difference: of a row that has seen nothing yet it is 0, where a product would be rounded.
            before = k.op("sub.f32", self.greatest[half], greatest, kind="f32")
            before = k.op("mul.f32", before, self.factor, kind="f32")
            smaller = k.op("ex2.approx.ftz.f32", before, kind="f32")
            total = k.op("mul.f32", self.totals[half], smaller, kind="f32")
            for score in mine:
                k.do("fma.rn.f32", score, score, self.factor, offset)
                k.do("ex2.approx.ftz.f32", score, score)
                total = k.op("add.f32", total, score, kind="f32")
            k.do("mov.f32", self.totals[half], total)
            k.do("mov.f32", self.greatest[half], greatest)
            factors.append(smaller)
        return factors

    def _mask(self, scores: Sequence[str], tile_number: str) -> None:
        """Let no query see keys beyond the last, or those after it where attention is causal."""
        k, a, tile = self.k, self.a, self.tile
        if not a.causal and a.keys % tile.keys == 0:
            return
        start = k.mul(tile_number, tile.keys)
        end = k.add(start, tile.keys)
        least = k.op("min.u32", k.add(self.first, 1), a.keys) if a.causal else k.number(a.keys)
        with k.only(k.op("setp.gt.u32", end, least, kind="pred")):
            column = k.op("mad.lo.u32", k.op("and.b32", self.lane, 3), 2, start)
            for half in range(2):
                limit = k.number(a.keys)
                if a.causal:
                    limit = k.op("min.u32", limit, k.add(self.row, 8 * half + 1))
                left = k.op("sub.s32", limit, column)
                for number in range(half * 2, len(scores), 4):
                    for beyond in range(2):
                        place = number // 4 * 8 + beyond
                        seen = k.op("setp.gt.s32", left, place, kind="pred")
                        score = scores[number + beyond]
                        k.do("selp.f32", score, score, "0fFF800000", seen)

    def _pack(self, powers: Sequence[str], scores: Sequence[str]) -> None:
        for number, register in enumerate(powers):
            low, high = scores[2 * number :][:2]
            self.k.do(f"cvt.rn.{NAMES[self.a.ty]}x2.f32", register, high, low)

    def _store(self) -> None:
        """Divide by the sums of powers; results go to where the queries were, and are copied from there."""
        k, a, tile = self.k, self.a, self.tile
        totals = []
        for total in self.totals:
            for mask in (1, 2):
                other = k.op("shfl.sync.bfly.b32", total, mask, 31, "0xffffffff", kind="f32")
                total = k.op("add.f32", total, other, kind="f32")
            totals.append(total)
        factors = [k.op("rcp.rn.f32", total, kind="f32") for total in totals]
        inner = k.op("and.b32", self.lane, 7)
        line = k.op("mad.lo.u32", k.op("shr.u32", self.me, 5), 16, k.add(k.op("and.b32", self.lane, 8), inner))
        chunk = k.op("shr.u32", self.lane, 4)
        into = k.op("mad.lo.u32", line, LINE, self.queries)
        first, barrier = k.equal(self.me, 0), k.add(self.group, 1)
        k.do("bar.sync", barrier, GROUP)  # all warps of the group have multiplied their queries
        for block in range(self.blocks):
            for pair in range(LINE_ELEMENTS // 16):
                eight = self.sums[block * 32 + pair * 8 :][:8]
                scaled = [k.op("mul.f32", x, factors[n // 2 % 2], kind="f32") for n, x in enumerate(eight)]
                packed = [
                    k.op(f"cvt.rn.{NAMES[a.ty]}x2.f32", scaled[2 * n + 1], scaled[2 * n]) for n in range(4)
                ]  # fmt: skip
                where = k.op("xor.b32", k.add(chunk, 2 * pair), inner)
                target = k.add(k.op("mad.lo.u32", where, 16, into), block * tile.rows * LINE)
                k.lines.append(f"    stmatrix.sync.aligned.m8n8.x4.shared.b16 [{target}], {listed(packed)};")
        k.lines.append("    fence.proxy.async.shared::cta;")
        k.do("bar.sync", barrier, GROUP)
        with k.only(first):
            down = k.add(self.first, k.mul(self.group, ROWS))
            for block in range(self.blocks):
                at = self._at(a.out, block * LINE_ELEMENTS, down)
                rings.send(k, self.maps[3], at, k.add(self.queries, block * tile.rows * LINE))
            k.lines.append("    cp.async.bulk.commit_group;")
        self._store_sums(totals)
        k.do("cp.async.bulk.wait_group", 0)

    def _store_sums(self, totals: Sequence[str]) -> None:
        """The logarithms to base 2: the first of the four threads that have a row writes them."""
        k, a = self.k, self.a
        start = k.op("cvta.to.global.u64", k.word(self.sums_at[0]), kind="b64")
        start = k.op("add.u64", start, self.sums_at[1], kind="b64")
        here = k.op("mad.lo.u32", self.which, a.queries, self.row)
        start = k.op("mad.wide.u32", here, 4, start, kind="b64")
        first = k.equal(k.op("and.b32", self.lane, 3), 0)
        for half, total in enumerate(totals):
            logarithm = k.op("lg2.approx.f32", total, kind="f32")
            value = k.op("fma.rn.f32", self.greatest[half], self.factor, logarithm, kind="f32")
            inside = k.less(k.add(self.row, 8 * half), a.queries)
            both = k.op("and.pred", first, inside, kind="pred")
            k.do("st.global.f32", f"[{start}+{32 * half}]", value, when=both)
