"""The gradients of attention of 16-bit floats on Hopper: two kernels, one of queries and one of keys and values.

Comes in: `Gradients`, how their matrices lie, and a `Tile`. Goes out: the kernel as PTX, and its tensor maps. In one
kernel blocks have queries and go along tiles of keys, for the gradient of q; in the other they have keys and go along
tiles of queries, for those of k and v. Weights w = 2^(score - logarithm of the row's sum) are computed again, in both:
each sum is then added up by one group, in one order, and the same bits come out whenever it is run. Of a tile a group
computes, for a cotangent c of what attention gives,

    w · (c · vᵀ - inner)        inner: c · result, of each query

in registers, with a block's own rows as rows: so that, rounded to 16 bits, these are the left factors of

    gradient of q: of scores · k      of k: of scores · q      of v: weights · c

without a way through shared memory. Products are begun long before they are needed: while weights are made of the
scores their gradients are multiplied, and while the scores' gradients are made the weights are; then the next tile's
scores are begun behind what is still added up. Where heads share keys, a block of keys goes along the queries of all
of them, one head after another; where there are few blocks, those of a cluster share the heads, and add up what they
have from each other's shared memory, always in the same order. Of heads of more than 128 elements a thread has no room
for the gradients of both k and v: one group has those of k, and another, of the same keys, those of v. Beyond the last
query the sums' logarithms are taken for +∞: nothing has weight there. With dropout a weight that is dropped has a
negative sign: it counts in its row, and not towards v.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.confines import Confines
from eshkol.backends.cuda.warpgroups.dropout import Dropping, mark
from eshkol.backends.cuda.warpgroups.heads import HeadTile, HeadWriter, Result, Rows
from eshkol.backends.cuda.warpgroups.maps import TensorMap
from eshkol.backends.cuda.warpgroups.ptx import GROUP, WARP, listed, real
from eshkol.backends.cuda.warpgroups.ring import BARRIER_BYTES, LINE, NAMES, ROWS, Place, Ring
from eshkol.backends.cuda.warpgroups.sight import Looking, Sight, hide

NUMBER = 4  # bytes of a sum, and of an inner product
WARPS = GROUP // WARP
LARGEST_CLUSTER, UNEVEN = 8, 3  # UNEVEN: blocks for each processor where they have unequal work
MEETING = 7  # the barrier at which groups with the same rows wait for each other
Address = tuple[int, int]  # of a buffer: the byte of the record that has it, and so many bytes further


@dataclass(frozen=True)
class Gradients:
    """Those of q, or of k and v, of softmax(scale · q · kᵀ) · v, for a cotangent of it."""

    ty: Type
    queries: int
    keys: int
    width: int
    batch: tuple[int, ...]
    q: Rows
    k: Rows
    v: Rows
    ct: Rows
    outs: tuple[Rows, ...]  # one: of q; two: of k and of v
    scale: float
    sight: Sight
    grouped: bool = False  # whether the gradients of k and v are sums over the last axis of the batch

    @property
    def kept(self) -> float:
        """What weights that are not dropped are multiplied with."""
        return 1.0 if self.sight.dropout is None else self.sight.dropout.kept

    @property
    def apart(self) -> tuple[int, ...]:
        """Axes of the batch along which there is a result for each place."""
        return self.batch[:-1] if self.grouped else self.batch

    @property
    def members(self) -> int:
        """Heads that a block goes along the rows of."""
        return self.batch[-1] if self.grouped else 1

    @property
    def of_keys(self) -> bool:
        return len(self.outs) > 1

    @property
    def lines(self) -> tuple[int, int]:
        """How many there are of those that blocks have, and of those that they go along."""
        return (self.keys, self.queries) if self.of_keys else (self.queries, self.keys)

    @property
    def factors(self) -> tuple[Rows, Rows, Rows, Rows]:
        """Two of a block's own, then two that it goes along."""
        return (self.k, self.v, self.q, self.ct) if self.of_keys else (self.q, self.ct, self.k, self.v)


@dataclass(frozen=True)
class Tile(HeadTile):
    """Groups with 64 rows each, and so many others at a time."""

    others: int
    stages: int
    parted: bool = False  # whether groups have the same rows, and each a result of its own
    split: int = 1  # blocks that share heads of which they have the same keys

    @property
    def cluster(self) -> int:
        return self.split

    @property
    def rows(self) -> int:
        return ROWS if self.parted else super().rows

    @property
    def numbers(self) -> int:
        """Bytes of a stage's sums, and of its inner products."""
        return self.others * NUMBER

    @property
    def memory(self) -> int:
        """Bytes of shared memory: rows, tiles of others, their numbers, and barriers."""
        lines = 2 * (self.rows + self.stages * self.others)
        return lines * self.widest * 2 + self.stages * 2 * self.numbers + (2 * self.stages + 1) * BARRIER_BYTES


OF_KEYS, OF_KEYS_CAUSAL, OF_KEYS_WIDE = Tile(64, 2, 112, 4), Tile(64, 2, 80, 4), Tile(128, 2, 64, 4)
OF_QUERIES, OF_QUERIES_WIDE = Tile(64, 3, 64, 4), Tile(128, 2, 96, 3)


WIDER = {False: Tile(256, 2, 32, 3), True: Tile(256, 2, 48, 3, parted=True)}  # whether they are those of keys
OF_KEYS_MASKED, OF_QUERIES_MASKED = ((Tile(64, 2, 64, 4), wide) for wide in (Tile(128, 2, 48, 4), Tile(128, 2, 64, 4)))


def tile_for(width: int, sight: Sight, *, of_keys: bool) -> Tile | None:
    """The tile for heads of so many elements, if there is one; measured on an H200."""
    if width > OF_KEYS_WIDE.widest:
        return WIDER[of_keys] if width <= WIDER[of_keys].widest else None
    if sight.mask is not None or sight.dropout is not None:
        return next((tile for tile in (OF_KEYS_MASKED if of_keys else OF_QUERIES_MASKED) if width <= tile.widest), None)
    if width <= OF_KEYS.widest:
        return (OF_KEYS_CAUSAL if sight.causal else OF_KEYS) if of_keys else OF_QUERIES
    return OF_KEYS_WIDE if of_keys else OF_QUERIES_WIDE


def blocks(g: Gradients, tile: Tile) -> int:
    return math.prod(g.apart) * -(-g.lines[0] // tile.rows) * tile.split


def shared(g: Gradients, tile: Tile, processors: int) -> Tile:
    """The tile, with heads shared by so many blocks of a cluster that processors are busy."""
    wanted = UNEVEN * processors if g.sight.ahead is not None else processors * 9 // 10
    while g.grouped and not tile.parted and tile.split < LARGEST_CLUSTER and g.members % (2 * tile.split) == 0:
        if blocks(g, tile) >= wanted:
            break
        tile = replace(tile, split=2 * tile.split)
    return tile


def maps(g: Gradients, tile: Tile) -> tuple[TensorMap, ...]:
    """The tensor maps of a block's own rows, of the others, and of the results."""
    own, others = g.lines
    given = [(x, own, tile.rows) for x in g.factors[:2]] + [(x, others, tile.others) for x in g.factors[2:]]
    given += [(x, own, ROWS) for x in g.outs]
    return tuple(x.map(g.ty, g.width, lines, g.batch, high) for x, lines, high in given)


def gradients_kernel(
    g: Gradients, tile: Tile, record: int, sums: Address, inner: Address, outs: Sequence[Address] = ()
) -> str:
    """The kernel's text, for a record of so many bytes, which ends with the maps; and where results are."""
    return (_OfKeys if g.of_keys else _OfQueries)(g, tile, record, (sums, inner), outs).text()


class _Writer(HeadWriter):
    """What both kernels have in common."""

    begin: str | int  # the first tile that a block goes along,
    end: str  # and the one behind the last
    rounds: str  # the number behind that of the last round: with one head for all rounds, that of a tile
    fillers: int  # of a stage
    part: str  # the block's place in its cluster

    def __init__(
        self, g: Gradients, tile: Tile, record: int, numbers: Sequence[Address], outs: Sequence[Address]
    ) -> None:
        self.outs_at = outs
        super().__init__(g.ty, g.apart, g.width, g.sight, tile, record, 4 + len(g.outs))
        self.g, self.tile, self.numbers_at = g, tile, numbers
        k = self.k
        self.own, self.size = (lines * tile.widest * 2 for lines in (tile.rows, tile.others))
        tiles = k.add(self.base, 2 * self.own)
        self.at = [tiles, k.add(tiles, tile.stages * self.size)]
        self.numbers = k.add(tiles, 2 * tile.stages * self.size)
        self.ready = k.add(self.numbers, 2 * tile.stages * tile.numbers)  # the block's own rows are there
        barriers = k.add(self.ready, BARRIER_BYTES)
        self.ring = Ring(k, barriers, tile.stages, WARPS * tile.groups, 1, fillers=self.fillers)

    def text(self) -> str:
        k = self.k
        with k.only(k.equal(self.thread, 0)):
            k.do("mbarrier.init.shared::cta.b64", f"[{self.ready}]", 1)
            self.ring.prepare()
        k.together()
        self.span()
        self.divide()
        return k.text()

    @abstractmethod
    def span(self) -> None:
        """Which rows a block has, and which tiles it goes along."""

    def settle(self, begin: str | int, end: str) -> None:
        """From which tile to which a block goes; and how many rounds there are, of all heads."""
        k, self.begin, self.end, self.rounds = self.k, begin, end, end
        if self.g.grouped:
            self.begin = k.op("min.u32", end, begin)
            self.rounds = k.mul(k.op("sub.u32", end, self.begin), self.g.members // self.tile.split)

    @contextmanager
    def along(self) -> Iterator[tuple[str, str]]:
        """The rounds of a block, and the tile of each: those of one head after those of another."""
        k = self.k
        if not self.g.grouped:
            with k.counted(self.begin, self.end) as j:
                yield j, j
            return
        j, member = k.op("mov.u32", self.begin), k.mul(self.part, self.g.members // self.tile.split)
        member = k.op("mov.u32", member)
        with k.counted(0, self.rounds) as round_:
            self.inside = [member]
            yield round_, j
            k.do("add.u32", j, j, 1)
            last = k.equal(j, self.end)
            k.do("selp.u32", j, self.begin, j, last)
            k.do("add.u32", member, member, 1, when=last)
        self.inside = []

    # --- the group that has tiles copied ----------------------------------------------------------------

    def copy(self) -> None:
        k, tile, rows = self.k, self.tile, self.g.factors
        with k.only(k.equal(self.thread, 0)):
            rings.expect(k, self.ready, 2 * self.own)
            for number in range(2):
                into = k.add(self.base, number * self.own)
                self.bring(rows[number], self.maps[number], into, tile.rows, self.first, self.ready)
            place = self.ring.begin(filled=False)
            with self.along() as (_, j):
                place.wait(place.free())
                full, start = place.full(), k.mul(j, tile.others)
                rings.expect(k, full, 2 * self.size)
                for number in range(2):
                    into = k.op("mad.lo.u32", place.stage, self.size, self.at[number])
                    self.bring(rows[2 + number], self.maps[2 + number], into, tile.others, start, full)
                place.advance()

    def address(self, number: int, place: str) -> str:
        """That of a query's sum, or of its inner product."""
        k, (byte, further) = self.k, self.numbers_at[number]
        start = k.op("cvta.to.global.u64", k.word(byte), kind="b64")
        here = k.op("mad.lo.u32", self.head(), self.g.queries, place)
        return k.op("mad.wide.u32", here, NUMBER, k.op("add.u64", start, further, kind="b64"), kind="b64")

    def head(self) -> str:
        """The number of the head whose queries a block is at."""
        return self.k.op("mad.lo.u32", self.which, self.g.members, self.inside[0]) if self.inside else self.which

    # --- groups -----------------------------------------------------------------------------------------

    def work(self) -> None:
        k, numbers = self.k, range(len(self.g.outs))
        if not self.tile.parted:
            self._work(k.op("mad.lo.u32", self.group, ROWS * LINE, self.base), numbers)
            return
        self.row = k.op("sub.u32", self.row, k.mul(self.group, ROWS))
        end = k.label()
        for number in numbers:
            with k.only(k.equal(self.group, number)):
                self._work(self.base, [number])
                k.do("bra", end)
        k.place(end)

    def _work(self, rows: str, made: Sequence[int]) -> None:
        """What a group does that has some of the results."""
        k, g, tile, self.made = self.k, self.g, self.tile, made
        own = [k.add(rows, number * self.own) for number in range(2)]
        self.scores, self.slopes = (k.registers(tile.others // 2) for _ in range(2))
        self.packed = [k.registers(tile.others // 4, "b32") for _ in g.outs]
        self.sums = [k.registers(tile.widest // 2) for _ in g.outs]
        for register in (register for number in made for register in self.sums[number]):
            k.do("mov.f32", register, real(0.0))
        self.scale = real(g.scale * math.log2(math.e))
        self.factor = real(1.0) if g.sight.added else self.scale  # of scores, when something has been added to them
        if self.confines is not None:
            self.confines.settle(self.rows(g.lines[0]))
        dropout = g.sight.dropout
        self.dropping = None if dropout is None else Dropping(k, dropout, g.queries, g.keys, self.lane)
        self.always, never = self.constants()
        self.prepare()
        place = self.ring.begin(filled=True)
        rings.wait_for(k, self.ready, k.number(0))
        self._begin(place, k.op("mov.u32", 0 if g.grouped else self.begin), own[0], never)
        rings.wait(k, 0)
        with self.along() as (round_, j):
            mask = g.sight.mask
            self.looking = None if mask is None else Looking(k, mask, (*self.places, *self.inside))
            self.here = [k.op("mad.lo.u32", place.stage, self.size, at) for at in self.at]
            if 0 in made:
                rings.fence(k)
                self.multiply(self.slopes, own[1], self.here[1], tile.others, self.always, never)
            self.weigh(k.mul(j, tile.others), place.stage)
            free = place.free()
            place.advance()
            self._begin(place, k.add(round_, 1), own[0], never)
            rings.wait(k, 1)
            k.do("mbarrier.arrive.shared::cta.b64", "_", f"[{free}]", when=k.equal(self.lane, 0))
            rings.wait(k, 0)
        if tile.split > 1:
            self._add_up()
            return
        if tile.parted:  # nobody multiplies the rows any more
            k.do("bar.sync", MEETING, tile.groups * GROUP)
        factors = [real(g.scale)] * 2, None if g.kept == 1 else [real(g.kept)] * 2
        down = self.first if tile.parted else None
        results = [Result(self.sums[n], factors[n], own[n], self.maps[4 + n], g.outs[n]) for n in made]
        self.store(results, down)
        k.do("cp.async.bulk.wait_group", 0)

    def _add_up(self) -> None:
        """Leave sums in shared memory, where rows and tiles were, and add up a share of those of all blocks."""
        k, g, tile = self.k, self.g, self.tile
        pitch = tile.widest * NUMBER
        whole = tile.groups * ROWS * pitch  # bytes of a result
        threads = tile.groups * GROUP
        k.do("bar.sync", MEETING, threads)  # nobody multiplies rows and tiles any more
        inner = k.op("sub.u32", self.row, self.first)
        start = k.op("mad.lo.u32", k.op("and.b32", self.lane, 3), 2 * NUMBER, self.base)
        for half in range(2):
            at = k.op("mad.lo.u32", k.add(inner, 8 * half), pitch, start)
            for n, sums in enumerate(self.sums):
                for number in range(half * 2, len(sums), 4):
                    there = f"[{at}+{n * whole + number // 4 * 8 * NUMBER}]"
                    k.do("st.shared.v2.f32", there, listed(sums[number : number + 2]))
        meet = ["    barrier.cluster.arrive.release.aligned;", "    barrier.cluster.wait.acquire.aligned;"]
        k.lines += meet
        starts = [k.op("mapa.shared::cluster.u32", self.base, part) for part in range(tile.split)]
        pairs, mine = tile.widest // 2, k.op("mad.lo.u32", self.group, GROUP, self.me)
        mine = k.op("mad.lo.u32", self.part, threads, mine)
        results = []
        for byte, further in self.outs_at:
            address = k.op("cvta.to.global.u64", k.word(byte), kind="b64")
            results.append(k.op("add.u64", address, further, kind="b64"))
        with k.counted(mine, tile.rows * pairs, tile.split * threads) as element:
            line, pair = k.divided(element, pairs)
            row, place = k.add(self.first, line), k.mul(element, 2 * NUMBER)
            both = k.op("and.pred", k.less(row, g.keys), k.less(pair, g.width // 2), kind="pred")
            with k.only(both):
                here = k.op("mad.lo.u32", self.which, g.keys, row)
                for n, (result, factor) in enumerate(zip(results, (g.scale, g.kept), strict=True)):
                    total = [k.op("mov.f32", real(0.0), kind="f32") for _ in range(2)]
                    for start in starts:
                        two = k.registers(2)
                        k.do("ld.shared::cluster.v2.f32", listed(two), f"[{k.add(start, place)}+{n * whole}]")
                        total = [k.op("add.f32", x, y, kind="f32") for x, y in zip(total, two, strict=True)]
                    low, high = (k.op("mul.f32", x, real(factor), kind="f32") for x in total)
                    packed = k.op(f"cvt.rn.{NAMES[self.ty]}x2.f32", high, low)
                    at = k.op("mad.wide.u32", here, g.width * 2, result, kind="b64")
                    k.do("st.global.b32", f"[{k.op('mad.wide.u32', pair, 4, at, kind='b64')}]", packed)
        k.lines += meet  # nobody leaves whose memory is read

    def _begin(self, place: Place, round_: str, own: str, never: str) -> None:
        """Begin to multiply a tile's scores; behind the last tile they are those of what the stage had."""
        k = self.k
        with k.only(k.less(round_, self.rounds)):
            place.wait(place.full())
        rings.fence(k)
        right = k.op("mad.lo.u32", place.stage, self.size, self.at[0])
        self.multiply(self.scores, own, right, self.tile.others, self.always, never)

    def prepare(self) -> None:
        """What is done before the first tile."""

    @abstractmethod
    def weigh(self, start: str, stage: str) -> None:
        """Make weights of the scores, add what they weigh, and add the scores' gradients times the other rows."""

    def power(self, score: str, offset: str) -> None:
        """A weight in place of a score."""
        self.k.do("fma.rn.f32", score, score, self.factor, offset)
        self.k.do("ex2.approx.ftz.f32", score, score)

    def slope(self, number: int, inner: str) -> None:
        """The gradient of a score in place of that of its weight."""
        k, slope, weight = self.k, self.slopes[number], self.scores[number]
        if self.dropping is not None:
            kept = k.op("setp.gt.f32", weight, real(0.0), kind="pred")
            k.do("mul.f32", slope, slope, k.op("selp.f32", real(self.g.kept), real(0.0), kept, kind="f32"))
            weight = k.op("abs.f32", weight, kind="f32")
        k.do("sub.f32", slope, slope, inner)
        k.do("mul.f32", slope, slope, weight)

    def add_scores(self) -> None:
        """Begin to add the scores' gradients times the first of the others."""
        self.pack(self.packed[0], self.slopes)
        rings.fence(self.k)
        self.add(self.sums[0], self.packed[0], self.here[0], self.tile.others, self.always, self.always)


class _OfQueries(_Writer):
    fillers = 1

    def span(self) -> None:
        g = self.g
        self.find(g.queries, backwards=g.sight.causal)  # those with the most keys begin first
        self.settle(*self.seen(g.keys, self.tile.others))

    def prepare(self) -> None:
        k = self.k
        self.offsets, self.inner = [], []
        for half in range(2):
            row = k.op("min.u32", k.add(self.row, 8 * half), self.g.queries - 1)
            offset, inner = (k.op("ld.global.f32", f"[{self.address(n, row)}]", kind="f32") for n in range(2))
            self.offsets.append(k.op("neg.f32", offset, kind="f32"))
            self.inner.append(inner)

    def weigh(self, start: str, stage: str) -> None:
        g = self.g
        if self.looking is not None:
            edge = g.keys % self.tile.others != 0
            rows = self.looking.rows(self.rows(g.queries))
            seen = self.looking.load(rows, self.column(start), self.tile.others, g.keys, edge=edge)
            self.looking.put(self.scores, seen, self.scale)
        self.mask(self.scores, start, g.keys, self.tile.others)
        for number, score in enumerate(self.scores):
            self.power(score, self.offsets[number // 2 % 2])
        if self.dropping is not None:
            marked = mark(self.scores, self.k)
            self.dropping.of_queries(self.head(), self.row, start, self.tile.others, marked)
        rings.wait(self.k, 0)
        for number in range(len(self.slopes)):
            self.slope(number, self.inner[number // 2 % 2])
        self.add_scores()


class _OfKeys(_Writer):
    fillers = 2  # tiles, and their numbers

    def span(self) -> None:
        k, g, others, split = self.k, self.g, self.tile.others, self.tile.split
        block, self.part = k.divided(k.special("ctaid.x"), split)
        self.find(g.keys, backwards=False, block=block)
        begin: str | int = 0
        end = k.number(-(-g.queries // others))
        if g.sight.ahead is not None:
            least = self.first
            if g.sight.ahead > 1:
                least = k.op("max.s32", k.op("sub.s32", least, g.sight.ahead - 1), 0)
            begin = k.divided(least, others)[0]
        if g.sight.behind is not None:
            most = k.divided(k.add(self.first, self.high + g.sight.behind + others - 2), others)[0]
            end = k.op("min.u32", end, most)
        if g.sight.confined:
            self.confines = Confines(k, g.sight, self.places, g.keys, self.thread)
            begin, end = self.confines.within(begin, end, self.first, self.high, others)
            if g.sight.lengths is not None:  # nobody sees keys that are not there
                beyond = k.op("setp.ge.u32", self.first, self.confines.length, kind="pred")
                end = k.op("selp.u32", 0, end, beyond)
        self.settle(begin, end)

    def copy(self) -> None:
        super().copy()
        with self.k.only(self.k.equal(self.k.op("shr.u32", self.thread, 5), 1)):
            self._copy_numbers()

    def _copy_numbers(self) -> None:
        """Bring sums, with their signs changed, and inner products of each tile: by the threads of a warp."""
        k, tile, place = self.k, self.tile, self.ring.begin(filled=False)
        lane = k.op("and.b32", self.thread, WARP - 1)
        with self.along() as (_, j):
            found = []
            for line in range(0, tile.others, WARP):
                query = k.add(k.op("mad.lo.u32", j, tile.others, lane), line)
                inside = k.less(query, self.g.queries)
                for number, beyond in enumerate((math.inf, 0.0)):
                    value = k.op("mov.f32", real(beyond), kind="f32")
                    k.do("ld.global.f32", value, f"[{self.address(number, query)}]", when=inside)
                    found.append(value if number else k.op("neg.f32", value, kind="f32"))
            place.wait(place.free())
            into = self._numbers(place.stage, lane)
            for n, value in enumerate(found):
                further = n % 2 * tile.numbers + n // 2 * WARP * NUMBER
                short = k.less(lane, tile.others % WARP) if n // 2 * WARP + WARP > tile.others else None
                k.do("st.shared.f32", f"[{into}+{further}]", value, when=short)
            k.do("bar.warp.sync", "0xffffffff")
            k.do("mbarrier.arrive.shared::cta.b64", "_", f"[{place.full()}]", when=k.equal(lane, 0))
            place.advance()

    def _numbers(self, stage: str, column: str) -> str:
        """Where a column's sum is in shared memory; its inner product lies behind all sums of the stage."""
        k = self.k
        return k.op("mad.lo.u32", column, NUMBER, k.op("mad.lo.u32", stage, 2 * self.tile.numbers, self.numbers))

    def weigh(self, start: str, stage: str) -> None:
        k, tile = self.k, self.tile
        pair = k.mul(k.op("and.b32", self.lane, 3), 2)
        self._hide(start, pair)
        at = self._numbers(stage, pair)
        self._each(at, lambda number, offset: self.power(self.scores[number], offset))
        if self.dropping is not None:
            self.dropping.of_keys(self.head(), self.row, start, tile.others, mark(self.scores, k))
        if 1 in self.made:
            self.pack(self.packed[1], self.scores, least=self.dropping is not None)
            rings.fence(k)
            self.add(self.sums[1], self.packed[1], self.here[1], tile.others, self.always, self.always)
        if 0 in self.made:
            rings.wait(k, len(self.made) - 1)
            self._each(k.add(at, tile.numbers), self.slope)
            self.add_scores()

    def _hide(self, start: str, pair: str) -> None:
        """Let no key be seen by queries too far before it, or after it."""
        k, g, tile = self.k, self.g, self.tile
        column = k.add(start, pair)
        if self.looking is not None:
            self.looking.turned(self.scores, self.rows(g.keys), column, g.queries, self.scale)
        if self.confines is not None:
            self.confines.hide(self.scores, start, column, tile.others)
            self.confines.hide_rows(self.scores, self.row, self.first, self.high)
        if g.sight.ahead is not None:
            last = k.add(self.first, ROWS - 1)
            if not tile.parted:
                last = k.op("mad.lo.u32", self.group, ROWS, last)
            with k.only(k.less(start, last)):
                for half in range(2):
                    left = k.op("sub.s32", k.add(self.row, 8 * half), column)
                    hide(k, self.scores, half, "gt", k.op("sub.s32", left, g.sight.ahead - 1))
        if g.sight.behind is not None:
            with k.only(k.less(k.add(self.first, g.sight.behind), k.add(start, tile.others))):
                for half in range(2):
                    left = k.op("sub.s32", k.add(self.row, 8 * half + g.sight.behind), column)
                    hide(k, self.scores, half, "le", left)

    def _each(self, at: str, do: Callable[[int, str], None]) -> None:
        """Do something with each element a thread has, and the number of its column."""
        k = self.k
        for eight in range(self.tile.others // 8):
            two = k.registers(2)
            k.do("ld.shared.v2.f32", listed(two), f"[{at}+{8 * NUMBER * eight}]")
            for n in range(4):
                do(4 * eight + n, two[n % 2])
