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
from eshkol.backends.cuda.warpgroups.dropout import Dropping, apply
from eshkol.backends.cuda.warpgroups.heads import HeadTile, HeadWriter, Result, Rows
from eshkol.backends.cuda.warpgroups.maps import TensorMap
from eshkol.backends.cuda.warpgroups.ptx import GROUP, real
from eshkol.backends.cuda.warpgroups.ring import BARRIER_BYTES, LINE, ROWS, Place, Ring
from eshkol.backends.cuda.warpgroups.sight import Looking, Sight

LATER = Sight(causal=True)
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
    sight: Sight


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
DROPPED = (NARROW_AND_SHORT, WIDE)  # those of widths for which there are others without dropout
ADDED = (NARROW_AND_SHORT, Tile(128, 2, 80, 3), Tile(192, 2, 64, 3), Tile(256, 2, 48, 3))  # with masks in registers


def tile_for(width: int, queries: int, sight: Sight) -> Tile | None:
    """The tile for heads of so many elements, if there is one; measured on an H200."""
    if sight.added or (sight.mask is not None and width > WIDE.widest):
        return next((tile for tile in ADDED if width <= tile.widest), None)
    if sight.dropout is not None:
        return next((tile for tile in (*DROPPED, *ADDED) if width <= tile.widest), None)
    if width <= NARROW.widest:
        return NARROW_AND_SHORT if sight.causal and queries < SHORT else NARROW
    if width <= WIDE.widest:
        return WIDE_AND_LONG if sight == LATER and queries >= 2 * SHORT else WIDE
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
    return AttentionWriter(a, tile, record, sums).text()


class AttentionWriter(HeadWriter):
    count = 4  # maps
    budget: int | None = None  # registers that threads begin with
    across: str  # how many tiles a block goes along,
    last: str  # and the one with which it begins

    def __init__(self, a: Attention, tile: Tile, record: int, sums: tuple[int, int]) -> None:
        super().__init__(a.ty, a.batch, a.width, a.sight, tile, record, self.count)
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
        k = self.k
        with k.only(k.equal(self.thread, 0)):
            k.do("mbarrier.init.shared::cta.b64", f"[{self.ready}]", 1)
            for ring in self.rings:
                ring.prepare()
        k.together()
        self.settle()
        self.divide()
        return k.text(self.budget)

    def settle(self) -> None:
        """Which queries a block has, and which tiles of keys it goes along."""
        k, a = self.k, self.a
        self.find(a.queries, backwards=a.sight.causal)  # those with the most keys begin first
        begin, end = self.seen(a.keys, self.tile.keys)
        self.across = end
        if a.sight.confined:
            end = k.op("max.u32", end, 1)
            self.across = end
        if a.sight.behind is not None or a.sight.confined:  # queries that see nothing look at the last tile
            begin = k.op("min.u32", begin, k.op("sub.u32", end, 1))
            self.across = k.op("sub.u32", end, begin)
        self.last = k.op("sub.u32", end, 1)

    # --- the thread that has tiles copied ---------------------------------------------------------------

    def copy(self) -> None:
        k, a, tile = self.k, self.a, self.tile
        with k.only(k.equal(self.thread, 0)):
            self.bring_queries()
            keys, values = (ring.begin(filled=False) for ring in self.rings)
            with k.counted(0, self.across) as round_:
                start = k.mul(k.op("sub.u32", self.last, round_), tile.keys)
                for number, (place, rows) in enumerate(((keys, a.k), (values, a.v))):
                    place.wait(place.free())
                    full = place.full()
                    rings.expect(k, full, self.size)
                    into = k.op("mad.lo.u32", place.stage, self.size, self.at[number])
                    self.bring(rows, self.maps[1 + number], into, tile.keys, start, full)
                    place.advance()

    def bring_queries(self) -> None:
        tile = self.tile
        rings.expect(self.k, self.ready, tile.rows * tile.widest * 2)
        self.bring(self.a.q, self.maps[0], self.base, tile.rows, self.first, self.ready)

    # --- groups -----------------------------------------------------------------------------------------

    def work(self) -> None:
        k, a, tile, group = self.k, self.a, self.tile, self.group
        self.queries = k.op("mad.lo.u32", group, ROWS * LINE, self.base)
        scores, self.sums = k.registers(tile.keys // 2), k.registers(tile.widest // 2)
        powers = k.registers(tile.keys // 4, "b32")
        self.scale = real(a.scale * math.log2(math.e))
        self.factor = real(1.0) if a.sight.added else self.scale  # of scores, when something has been added to them
        self.looking = None if a.sight.mask is None else Looking(k, a.sight.mask, self.places)
        if self.confines is not None:
            self.confines.settle(self.rows(a.queries))
        dropout = a.sight.dropout
        self.dropping = None if dropout is None else Dropping(k, dropout, a.queries, a.keys, self.lane)
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
        self._soften(scores, self.last, self._look(self.last))
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
            tile_number = k.op("sub.u32", self.last, round_)
            seen = self._look(tile_number)
            rings.wait(k, 1)
            rings.give_back(k, keys.free(), 1, self.me)
            keys.advance()
            smaller = self._soften(scores, tile_number, seen)
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
        self.end()

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

    def _look(self, tile_number: str) -> list[list[str]]:
        """Load what a mask says of a tile, while that is multiplied."""
        k, a, tile = self.k, self.a, self.tile
        if self.looking is None:
            return []
        column = self.column(k.mul(tile_number, tile.keys))
        return self.looking.load(self.looks(self.looking), column, tile.keys, a.keys, edge=a.keys % tile.keys != 0)

    def looks(self, looking: Looking) -> list[str]:
        """Where the mask's rows of a thread's queries begin."""
        return looking.rows(self.rows(self.a.queries))

    def _soften(self, scores: Sequence[str], tile_number: str, seen: Sequence[Sequence[str]]) -> list[str]:
        """Powers in place of the scores; the factors by which what was summed before is made smaller."""
        k, a, tile = self.k, self.a, self.tile
        if self.looking is not None:
            self.looking.put(scores, seen, self.scale)
        self.mask(scores, k.mul(tile_number, tile.keys), a.keys, tile.keys)
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
        if self.dropping is not None:
            start = k.mul(tile_number, tile.keys)
            self.dropping.of_queries(self.which, self.row, start, tile.keys, apply(scores, k))
        return factors

    def sums_of_rows(self) -> list[str]:
        """The sums of the powers of a thread's two rows: four threads have a part of each."""
        k, totals = self.k, []
        for total in self.totals:
            for mask in (1, 2):
                other = k.op("shfl.sync.bfly.b32", total, mask, 31, "0xffffffff", kind="f32")
                total = k.op("add.f32", total, other, kind="f32")
            totals.append(total)
        return totals

    def end(self) -> None:
        """Divide by the sums of powers; results go to where the queries were, and are copied from there."""
        k, totals = self.k, self.sums_of_rows()
        factors = [k.op("rcp.rn.f32", total, kind="f32") for total in totals]
        if self.a.sight.dropout is not None:
            factors = [k.op("mul.f32", x, real(self.a.sight.dropout.kept), kind="f32") for x in factors]
        if self.a.sight.in_part:
            nothing = [k.op("setp.eq.f32", total, real(0.0), kind="pred") for total in totals]
            factors = [k.op("selp.f32", real(0.0), x, no, kind="f32") for x, no in zip(factors, nothing, strict=True)]
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
            if a.sight.in_part:
                nothing = k.op("setp.eq.f32", total, real(0.0), kind="pred")
                value = k.op("selp.f32", real(math.inf), value, nothing, kind="f32")
            inside = k.less(k.add(self.row, 8 * half), a.queries)
            both = k.op("and.pred", first, inside, kind="pred")
            k.do("st.global.f32", f"[{start}+{32 * half}]", value, when=both)
