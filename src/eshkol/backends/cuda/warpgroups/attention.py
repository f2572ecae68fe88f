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
from eshkol.backends.cuda.warpgroups.heads import HeadTile, HeadWriter, Result, Rows
from eshkol.backends.cuda.warpgroups.maps import TensorMap
from eshkol.backends.cuda.warpgroups.ptx import GROUP, real
from eshkol.backends.cuda.warpgroups.ring import BARRIER_BYTES, LINE, ROWS, Place, Ring

LOWEST = -1e30  # where the greatest score of a row begins
TURN = 8  # the first of the barriers at which groups take turns


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
class Tile(HeadTile):
    """Groups with 64 queries each, and so many keys at a time."""

    keys: int
    stages: int

    @property
    def memory(self) -> int:
        """Bytes of shared memory: queries, keys, values, and barriers."""
        lines = self.rows + 2 * self.stages * self.keys
        return lines * self.widest * 2 + (4 * self.stages + 1) * BARRIER_BYTES


SHORT = 2048  # queries below which few groups share a block where attention is causal: fewer wait for the longest
NARROW, WIDE = Tile(64, 3, 128, 3), Tile(128, 2, 128, 2)
NARROW_AND_SHORT, WIDE_AND_LONG = Tile(64, 2, 128, 3), Tile(128, 2, 160, 2)
WIDER = (Tile(192, 2, 112, 2), Tile(256, 2, 80, 2))


def tile_for(width: int, queries: int, *, causal: bool) -> Tile | None:
    """The tile for heads of so many elements, if there is one; measured on an H200."""
    if width <= NARROW.widest:
        return NARROW_AND_SHORT if causal and queries < SHORT else NARROW
    if width <= WIDE.widest:
        return WIDE_AND_LONG if causal and queries >= 2 * SHORT else WIDE
    return next((tile for tile in WIDER if width <= tile.widest), None)


def blocks(a: Attention, tile: Tile) -> int:
    return math.prod(a.batch) * -(-a.queries // tile.rows)


def maps(a: Attention, tile: Tile) -> tuple[TensorMap, ...]:
    """The tensor maps of q, k, v and the result."""
    given = ((a.q, a.queries, tile.rows), (a.k, a.keys, tile.keys), (a.v, a.keys, tile.keys), (a.out, a.queries, ROWS))
    return tuple(x.map(a.ty, a.width, lines, a.batch, high) for x, lines, high in given)


def attention_kernel(a: Attention, tile: Tile, record: int, sums: tuple[int, int]) -> str:
    """The kernel's text, for a record of so many bytes, which ends with the maps.

    The sums' logarithms go to the address at a byte of the record, plus so many bytes.
    """
    return _Writer(a, tile, record, sums).text()


class _Writer(HeadWriter):
    def __init__(self, a: Attention, tile: Tile, record: int, sums: tuple[int, int]) -> None:
        super().__init__(a.ty, a.batch, a.width, tile, record, 4)
        self.a, self.tile, self.sums_at = a, tile, sums
        k = self.k
        lines = tile.rows * tile.widest * 2
        self.size = tile.keys * tile.widest * 2  # bytes of a tile of keys, or of values
        self.at = [k.add(self.base, lines), k.add(self.base, lines + tile.stages * self.size)]
        barriers = k.add(self.base, lines + 2 * tile.stages * self.size)
        self.rings = [Ring(k, barriers, tile.stages, tile.groups, 1)]
        self.rings.append(Ring(k, k.add(barriers, self.rings[0].size), tile.stages, tile.groups, 1))
        self.ready = k.add(barriers, 2 * self.rings[0].size)  # queries are there

    def text(self) -> str:
        k, a = self.k, self.a
        with k.only(k.equal(self.thread, 0)):
            k.do("mbarrier.init.shared::cta.b64", f"[{self.ready}]", 1)
            for ring in self.rings:
                ring.prepare()
        k.together()
        self.find(a.queries, backwards=a.causal)  # those with the most keys begin first
        self.across = self.seen(a.keys, self.tile.keys, causal=a.causal)
        self.divide()
        return k.text()

    # --- the thread that has tiles copied ---------------------------------------------------------------

    def copy(self) -> None:
        k, a, tile = self.k, self.a, self.tile
        with k.only(k.equal(self.thread, 0)):
            rings.expect(k, self.ready, tile.rows * tile.widest * 2)
            self.bring(a.q, self.maps[0], self.base, tile.rows, self.first, self.ready)
            keys, values = (ring.begin(filled=False) for ring in self.rings)
            with k.counted(0, self.across) as round_:
                start = k.mul(k.op("sub.u32", k.op("sub.u32", self.across, 1), round_), tile.keys)
                for number, (place, rows) in enumerate(((keys, a.k), (values, a.v))):
                    place.wait(place.free())
                    full = place.full()
                    rings.expect(k, full, self.size)
                    into = k.op("mad.lo.u32", place.stage, self.size, self.at[number])
                    self.bring(rows, self.maps[1 + number], into, tile.keys, start, full)
                    place.advance()

    # --- groups -----------------------------------------------------------------------------------------

    def work(self) -> None:
        k, a, tile, group = self.k, self.a, self.tile, self.group
        self.queries = k.op("mad.lo.u32", group, ROWS * LINE, self.base)
        scores, self.sums = k.registers(tile.keys // 2), k.registers(tile.widest // 2)
        powers = k.registers(tile.keys // 4, "b32")
        self.factor = real(a.scale * math.log2(math.e))
        self.greatest = [k.op("mov.f32", real(LOWEST), kind="f32") for _ in range(2)]
        self.totals = [k.op("mov.f32", real(0.0), kind="f32") for _ in range(2)]
        self.always, never = self.constants()
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
        self.pack(powers, scores)
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
            self.pack(powers, scores)
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
        right = self.k.op("mad.lo.u32", keys.stage, self.size, self.at[0])
        self.multiply(scores, self.queries, right, self.tile.keys, self.always, never)

    def _add(self, powers: Sequence[str], values: Place, begun: str) -> None:
        """Begin to add a tile of values times the powers."""
        right = self.k.op("mad.lo.u32", values.stage, self.size, self.at[1])
        self.add(self.sums, powers, right, self.tile.keys, self.always, begun)

    def _soften(self, scores: Sequence[str], tile_number: str) -> list[str]:
        """Powers in place of the scores; the factors by which what was summed before is made smaller."""
        k, a, tile = self.k, self.a, self.tile
        self.mask(scores, k.mul(tile_number, tile.keys), a.keys, tile.keys, causal=a.causal)
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

    def _store(self) -> None:
        """Divide by the sums of powers; results go to where the queries were, and are copied from there."""
        k = self.k
        totals = []
        for total in self.totals:
            for mask in (1, 2):
                other = k.op("shfl.sync.bfly.b32", total, mask, 31, "0xffffffff", kind="f32")
                total = k.op("add.f32", total, other, kind="f32")
            totals.append(total)
        factors = [k.op("rcp.rn.f32", total, kind="f32") for total in totals]
        self.store([Result(self.sums, factors, self.queries, self.maps[3], self.a.out)])
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
