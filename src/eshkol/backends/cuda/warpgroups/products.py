"""The product of matrices of 16-bit floats on Hopper: groups of four warps that multiply from shared memory.

Comes in: a `Product`, how its matrices lie, and a `Tile`. Goes out: the kernel as PTX, and the tensor maps of its
operands. Each block stays on its processor and takes one tile of the result after another. One of its threads has slabs
of both factors copied into a ring of stages, ahead of the groups that multiply them (`ring.py`): each of these has rows
of the tile, whose sums stay in registers. Two blocks of a cluster have tiles below each other, and each brings half of
the slab of the right factor to both. Sums are rounded, put into shared memory, and copied from there while the next
tile is begun; where the machine cannot copy the rows of a result, threads store what they have.

Where there are few tiles, the blocks of a cluster have one tile together, and each sums its share of the terms. What
they have found they put into shared memory, and each adds up some columns of all, beginning with its own.

Tiles are taken in an order in which those that are computed at the same time share rows and columns, which then lie in
the cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.maps import LINE_ELEMENTS, MAP_BYTES, Axis, TensorMap
from eshkol.backends.cuda.warpgroups.ptx import GROUP, WARP, Kernel, listed, real
from eshkol.backends.cuda.warpgroups.ring import LINE, NAMES, REGISTERS, ROWS, TERMS, Ring

DEPTH = LINE_ELEMENTS  # terms of a slab
BLOCK_BYTES = LINE_ELEMENTS * LINE  # 64 lines of a slab
MEETINGS = 2  # barriers at which blocks that share a tile meet: sums are there; sums were read
HELD_ROWS = 16  # of a group's results that a warp has
HELD = 2  # blocks of 64 columns of a group's results that wait to be copied
TOGETHER = 16  # tiles above each other that are taken before those to the right of them


@dataclass(frozen=True)
class Matrices:
    """How the matrices of an operand lie in a buffer: `turned` ones as their transposes. Distances are in elements."""

    buffer: str
    offset: int  # bytes
    distance: int  # of neighbouring rows, as they lie
    turned: bool
    batch: tuple[int, ...]  # along each axis of the batch; 0: the same for all


@dataclass(frozen=True)
class Product:
    """alpha · A · B for each pair of a batch."""

    ty: Type
    m: int
    n: int
    k: int
    batch: tuple[int, ...]
    a: Matrices
    b: Matrices
    c: Matrices
    alpha: float = 1.0


@dataclass(frozen=True)
class Tile:
    """The part of a result that a block computes at a time, by so many groups.

    The blocks of a cluster have tiles below each other, or one tile together, each a share of its terms.
    """

    rows: int
    columns: int
    groups: int
    stages: int
    cluster: int
    shares: bool = False

    @property
    def parts(self) -> int:
        """Into how many the terms are divided."""
        return self.cluster if self.shares else 1

    @property
    def below(self) -> int:
        """Tiles below each other that a cluster has."""
        return 1 if self.shares else self.cluster

    @property
    def threads(self) -> int:
        return (1 + self.groups) * GROUP

    @property
    def slab(self) -> int:
        """Bytes of a stage."""
        return (self.rows + self.columns) * LINE

    @property
    def held(self) -> int:
        """Bytes of results that wait to be copied, or of sums that wait to be added up."""
        return self.rows * self.columns * 4 if self.shares else self.groups * HELD * BLOCK_BYTES

    @property
    def memory(self) -> int:
        """Bytes of shared memory."""
        return self.stages * self.slab + self.held + (2 * self.stages + MEETINGS) * rings.BARRIER_BYTES


def maps(p: Product, tile: Tile) -> tuple[TensorMap, ...]:
    """The tensor maps of A, B and, if the machine can copy its rows, C."""
    share = tile.columns // tile.below
    result = result_map(p)
    factors = (
        _map(p, p.a, p.m, p.k, DEPTH if p.a.turned else lines(p, tile)),
        _map(p, p.b, p.k, p.n, DEPTH if not p.b.turned else share),
    )
    return (*factors, result) if result.suits and not tile.shares else factors


def result_map(p: Product) -> TensorMap:
    """The map of C, in boxes of what a group has of 64 columns."""
    return _map(p, p.c, p.m, p.n, ROWS)


def lines(p: Product, tile: Tile) -> int:
    """Rows of a slab of A that are brought: where there are few, the others are left as they are, and so are sums."""
    return min(tile.rows, -(-p.m // 8) * 8)


def _map(p: Product, x: Matrices, rows: int, columns: int, high: int) -> TensorMap:
    across, down = (rows, columns) if x.turned else (columns, rows)
    batch = [Axis(extent, step) for extent, step in zip(p.batch, x.batch, strict=True) if step]
    axes = (Axis(across, 1), Axis(down, x.distance), *batch[::-1])
    return TensorMap(x.buffer, x.offset, p.ty, axes, (LINE_ELEMENTS, high, *(1 for _ in batch)))


def product_kernel(p: Product, tile: Tile, record: int, result: int) -> str:
    """The kernel's text, for a record of so many bytes, which ends with the maps and has C's address at this byte."""
    return ProductWriter(p, tile, len(maps(p, tile)), record, result).text()


class ProductWriter:
    """The kernel under construction: with so many maps, of A, B and, if there are three, C."""

    def __init__(self, p: Product, tile: Tile, count: int, record: int, result: int) -> None:
        self.p, self.tile = p, tile
        self.k = k = Kernel(tile.threads, tile.cluster, record)
        self.down = -(-p.m // (tile.rows * tile.below))  # tiles of a cluster below each other
        self.across = -(-p.n // tile.columns)
        self.count = self.down * self.across
        for extent in p.batch:
            self.count *= extent
        self.thread = k.special("tid.x")
        self.rank = k.special("cluster_ctarank") if tile.cluster > 1 else k.number(0)
        self.base = k.shared()
        self.maps = [k.address(record - (count - number) * MAP_BYTES) for number in range(count)]
        self.result = result
        self.right = tile.stages * tile.rows * LINE  # where slabs of B lie
        self.staged = tile.stages * tile.slab
        self.ring = Ring(k, k.add(self.base, self.staged + tile.held), tile.stages, tile.groups, tile.below)
        self.meeting = k.add(self.ring.base, self.ring.size)
        self.slabs = -(-p.k // DEPTH)
        self.part = -(-self.slabs // tile.parts)  # slabs of a block

    def text(self) -> str:
        k, tile = self.k, self.tile
        with k.only(k.equal(self.thread, 0)):
            if tile.shares:
                for number in range(MEETINGS):
                    at = f"[{self.meeting}+{number * rings.BARRIER_BYTES}]"
                    k.do("mbarrier.init.shared::cta.b64", at, tile.cluster * tile.groups)
            self.ring.prepare()
        k.together()
        group = k.op("shr.u32", self.thread, GROUP.bit_length() - 1)
        budget = REGISTERS[tile.groups]
        copies, end = k.equal(group, 0), k.label()
        with k.only(copies):
            if budget is not None:
                k.do("setmaxnreg.dec.sync.aligned.u32", budget[0])
            with k.only(k.equal(self.thread, 0)):
                self._copy()
            k.do("bra", end)
        if budget is not None:
            k.do("setmaxnreg.inc.sync.aligned.u32", budget[1])
        self._multiply(k.op("sub.u32", group, 1))
        k.place(end)
        if tile.cluster > 1:
            k.together()  # nobody writes to the memory of a block that has ended
        return k.text()

    def _tiles(self) -> tuple[str, int, str]:
        """From where, to where, and in which steps a cluster takes tiles."""
        k, cluster = self.k, self.tile.cluster
        return k.divided(k.special("ctaid.x"), cluster)[0], self.count, k.divided(k.special("nctaid.x"), cluster)[0]

    def corner(self, tile: str) -> tuple[str, str, list[str]]:
        """The first row and the first column of the block's part of a tile, and the places in the batch."""
        k = self.k
        places: list[str] = []
        which, inner = k.divided(tile, self.down * self.across) if self.p.batch else ("", tile)
        for extent in self.p.batch[:0:-1]:
            which, place = k.divided(which, extent)
            places.insert(0, place)
        if self.p.batch:
            places.insert(0, which)
        high = min(TOGETHER // self.tile.below, self.down)
        band, rest = k.divided(inner, high * self.across)
        first = k.mul(band, high)
        tall = k.op("min.u32", k.op("sub.u32", k.number(self.down), first), high)
        column = k.op("div.u32", rest, tall)
        row = k.add(first, k.op("sub.u32", rest, k.mul(column, tall)))
        if not self.tile.shares:
            row = k.add(k.mul(row, self.tile.cluster), self.rank)
        return k.mul(row, self.tile.rows), k.mul(column, self.tile.columns), places

    def _share(self) -> tuple[str | int, str | int]:
        """From which slab to which a block multiplies."""
        k = self.k
        if not self.tile.shares:
            return 0, self.slabs
        first = k.mul(self.rank, self.part)
        return first, k.op("min.u32", k.add(first, self.part), self.slabs)

    def span_of(self, number: str, first: str | int, last: str | int) -> tuple[str | int, str | int]:
        """The slabs of a tile, of those that a block has: all of them, unless products of a batch have fewer."""
        return first, last

    def _at(self, x: Matrices, across: str, down: str, places: Sequence[str]) -> list[str]:
        """The coordinates of a box."""
        batch = [place for place, step in zip(places, x.batch, strict=True) if step]
        return [across, down, *batch[::-1]]

    # --- the thread that has slabs copied -------------------------------------------------------------

    def _copy(self) -> None:
        k, p, tile = self.k, self.p, self.tile
        place = self.ring.begin(filled=False)
        everyone = k.op("mov.b16", (1 << tile.below) - 1, kind="b16") if tile.below > 1 else None
        first, last = self._share()
        share = tile.columns // tile.below
        with k.counted(*self._tiles()) as number:
            first, last = self.span_of(number, first, last)
            row, column, places = self.corner(number)
            if tile.below > 1:
                column = k.op("mad.lo.u32", self.rank, share, column)
            columns = self.find(column)
            with k.counted(first, last) as slab:
                place.wait(place.free())
                full = place.full()
                brought = tile.rows if p.a.turned else lines(p, tile)
                rings.expect(k, full, (brought + tile.columns) * LINE)
                left = k.op("mad.lo.u32", place.stage, tile.rows * LINE, self.base)
                right = k.op("mad.lo.u32", place.stage, tile.columns * LINE, k.add(self.base, self.right))
                self.bring_left(left, row, slab, places, full)
                if tile.below > 1:
                    right = k.op("mad.lo.u32", self.rank, share * LINE, right)
                self.bring_right(right, columns, slab, places, full, everyone)
                place.advance()

    def find(self, column: str) -> Sequence[str]:
        """What can be told of columns of B from one on before slabs of it are brought."""
        return [column]

    def bring_left(self, target: str, row: str, slab: str, places: Sequence[str], full: str) -> None:
        """Begin to copy a slab of A, whose rows begin at this one."""
        k, p = self.k, self.p
        term = k.mul(slab, DEPTH)
        if not p.a.turned:
            rings.bring(k, target, self.maps[0], self._at(p.a, term, row, places), full)
            return
        for block in range(self.tile.rows // LINE_ELEMENTS):
            at = self._at(p.a, k.add(row, block * LINE_ELEMENTS), term, places)
            rings.bring(k, k.add(target, block * BLOCK_BYTES), self.maps[0], at, full)

    def bring_right(
        self, target: str, columns: Sequence[str], slab: str, places: Sequence[str], full: str, everyone: str | None
    ) -> None:
        """Begin to copy the block's share of a slab of B, of columns that were found, to everyone."""
        k, p = self.k, self.p
        (column,) = columns
        term = k.mul(slab, DEPTH)
        if p.b.turned:
            rings.bring(k, target, self.maps[1], self._at(p.b, term, column, places), full, everyone)
            return
        for block in range(self.tile.columns // self.tile.below // LINE_ELEMENTS):
            at = self._at(p.b, k.add(column, block * LINE_ELEMENTS), term, places)
            rings.bring(k, k.add(target, block * BLOCK_BYTES), self.maps[1], at, full, everyone)

    # --- groups that multiply -------------------------------------------------------------------------

    def _multiply(self, group: str) -> None:
        k, tile = self.k, self.tile
        me = k.op("and.b32", self.thread, GROUP - 1)
        high = tile.rows // (tile.groups * ROWS)
        sums = [k.registers(tile.columns // 2) for _ in range(high)]
        place = self.ring.begin(filled=True)
        before = k.number(0)
        always = k.op("setp.eq.u32", 0, 0, kind="pred")
        first, last = self._share()
        parity = k.number(0)
        with k.counted(*self._tiles()) as number:
            first, last = self.span_of(number, first, last)
            with k.counted(first, last) as slab:
                place.wait(place.full())
                begun = k.op("setp.ne.u32", slab, first, kind="pred")
                self._slab(place.stage, group, sums, begun, always)
                rings.wait(k, 1)
                with k.only(begun):
                    rings.give_back(k, before, tile.below, me)
                k.do("mov.u32", before, place.free())
                place.advance()
            rings.wait(k, 0)
            rings.give_back(k, before, tile.below, me)
            if tile.shares:
                self._add_up(me, sums, parity)
            (self._send if len(self.maps) > 2 else self.store)(number, group, me, sums)
        k.do("cp.async.bulk.wait_group", 0)

    def _slab(self, stage: str, group: str, sums: Sequence[Sequence[str]], begun: str, always: str) -> None:
        """Begin to add the product of a slab."""
        k, p, tile = self.k, self.p, self.tile
        first = k.op("mad.lo.u32", stage, tile.rows * LINE, self.base)
        first = k.op("mad.lo.u32", group, len(sums) * BLOCK_BYTES, first)
        left = [rings.described(k, k.add(first, number * BLOCK_BYTES), BLOCK_BYTES) for number in range(len(sums))]
        second = k.op("mad.lo.u32", stage, tile.columns * LINE, k.add(self.base, self.right))
        right = rings.described(k, second, BLOCK_BYTES)
        rings.fence(k)
        turned = p.a.turned, not p.b.turned
        for step in range(DEPTH // TERMS):
            for a, row in zip(left, sums, strict=True):
                here, there = (
                    k.op("add.u64", x, step * (TERMS * LINE if t else TERMS * 2) >> 4, kind="b64")
                    for x, t in zip((a, right), turned, strict=True)
                )
                rings.multiply(k, NAMES[p.ty], row, here, there, always if step else begun, turned=turned)
        rings.commit(k)

    def _add_up(self, me: str, sums: Sequence[Sequence[str]], parity: str) -> None:
        """Add up the sums of all blocks of the cluster, each block those of its columns, in its first registers."""
        k, tile = self.k, self.tile
        (line,) = sums
        own = k.op("mad.lo.u32", k.op("sub.u32", self.thread, GROUP), 16, k.add(self.base, self.staged))
        pitch = 16 * GROUP * tile.groups  # of four sums of every thread
        there, read = self.meeting, k.add(self.meeting, rings.BARRIER_BYTES)
        rings.wait_for(k, read, k.op("xor.b32", parity, 1), "acquire.cluster.")
        for four in range(len(line) // 4):
            k.do("st.shared.v4.f32", f"[{own}+{four * pitch}]", listed(line[4 * four :][:4]))
        rings.tell(k, there, tile.cluster, me, self.thread)
        rings.wait_for(k, there, parity, "acquire.cluster.")
        kept = line[: len(line) // tile.cluster]
        mine = k.op("mad.lo.u32", self.rank, len(kept) // 4 * pitch, own)
        for turn in range(tile.cluster):  # each block begins with its own, so that no memory is read by all at once
            block = k.op("and.b32", k.add(self.rank, turn), tile.cluster - 1)
            far = k.op("mapa.shared::cluster.u32", mine, block)
            for four in range(len(kept) // 4):
                into = kept[4 * four :][:4]
                found = k.registers(4) if turn else into
                k.do("ld.shared::cluster.v4.f32", listed(found), f"[{far}+{four * pitch}]")
                if turn:
                    for register, more in zip(into, found, strict=True):
                        k.do("add.f32", register, register, more)
        rings.tell(k, read, tile.cluster, me, self.thread)
        k.do("xor.b32", parity, parity, 1)

    def _send(self, number: str, group: str, me: str, sums: Sequence[Sequence[str]]) -> None:
        """Round the sums of a tile and have them copied: 64 columns at a time, by way of shared memory."""
        k, tile = self.k, self.tile
        row, column, places = self.corner(number)
        lane = k.op("and.b32", me, WARP - 1)
        memory = k.add(self.base, self.staged)
        memory = k.op("mad.lo.u32", group, HELD * BLOCK_BYTES, memory)
        own = k.op("mad.lo.u32", k.op("shr.u32", me, 5), HELD_ROWS * LINE, memory)
        into, chunks = self.held_chunks(lane, own)
        first, barrier = k.equal(me, 0), k.add(group, 1)
        at = 0
        boxes = len(sums) * (tile.columns // LINE_ELEMENTS)
        for high, line_sums in enumerate(sums):
            top = k.add(row, k.op("mad.lo.u32", group, len(sums) * ROWS, k.number(high * ROWS)))
            for block in range(tile.columns // LINE_ELEMENTS):
                with k.only(first):
                    self.wait_to_hold(boxes, begins=high == block == 0)
                k.do("bar.sync", barrier, GROUP)
                self.hold(into, chunks, line_sums[block * 32 :][:32], at * BLOCK_BYTES)
                k.lines.append("    fence.proxy.async.shared::cta;")
                k.do("bar.sync", barrier, GROUP)
                with k.only(first):
                    source = k.add(memory, at * BLOCK_BYTES)
                    self.send_box(k.add(column, block * LINE_ELEMENTS), top, places, source)
                    k.lines.append("    cp.async.bulk.commit_group;")
                at = (at + 1) % HELD

    def wait_to_hold(self, boxes: int, *, begins: bool) -> None:
        """Wait until the memory of the next box was copied, of a tile of so many: boxes take turns in what is held.

        A tile begins with the first again. Where the one before ended there, too, that box may be the last one sent.
        """
        self.k.do("cp.async.bulk.wait_group.read", 0 if begins and boxes % HELD else HELD - 1)

    def held_chunks(self, lane: str, memory: str) -> tuple[str, list[str]]:
        """Where a warp's rows lie in shared memory from an address on: a thread's row, and the chunks of 16 bytes there
        that it writes, of each 16 columns; chunks are exchanged by the row's number."""
        k = self.k
        inner = k.op("and.b32", lane, 7)
        line = k.add(k.op("and.b32", lane, 8), inner)
        chunk = k.op("shr.u32", lane, 4)
        chunks = [k.op("xor.b32", k.add(chunk, 2 * pair), inner) for pair in range(LINE_ELEMENTS // 16)]
        return k.op("mad.lo.u32", line, LINE, memory), chunks

    def hold(self, into: str, chunks: Sequence[str], sums: Sequence[str], further: int) -> None:
        """Round the sums of 64 columns and put them there, so many bytes further."""
        k = self.k
        for pair, where in enumerate(chunks):
            packed = [self.rounded(*sums[8 * pair + 2 * n :][:2]) for n in range(4)]
            target = k.add(k.op("mad.lo.u32", where, 16, into), further)
            k.lines.append(f"    stmatrix.sync.aligned.m8n8.x4.shared.b16 [{target}], {listed(packed)};")

    def send_box(self, column: str, top: str, places: Sequence[str], source: str) -> None:
        """Begin to copy a box of results."""
        rings.send(self.k, self.maps[2], self._at(self.p.c, column, top, places), source)

    def store(self, number: str, group: str, me: str, sums: Sequence[Sequence[str]]) -> None:
        """Round the sums of a tile and store those that lie within the result."""
        k, p, tile = self.k, self.p, self.tile
        row, column, places = self.corner(number)
        columns = tile.columns // tile.parts
        if tile.shares:
            column = k.op("mad.lo.u32", self.rank, columns, column)
        start = k.op("cvta.to.global.u64", k.word(self.result), kind="b64")
        start = k.op("add.u64", start, p.c.offset, kind="b64")
        for place, step in zip(places, p.c.batch, strict=True):
            start = k.op("mad.lo.u64", k.op("cvt.u64.u32", place, kind="b64"), 2 * step, start, kind="b64")
        lane = k.op("and.b32", me, WARP - 1)
        row = k.add(row, k.op("mad.lo.u32", group, len(sums) * ROWS, k.mul(k.op("shr.u32", me, 5), 16)))
        row = k.add(row, k.op("shr.u32", lane, 2))
        column = k.op("mad.lo.u32", k.op("and.b32", lane, 3), 2, column)
        for high, line_sums in enumerate(sums):
            for half in range(2):
                line = k.add(row, high * ROWS + 8 * half)
                with k.only(k.less(line, p.m)):
                    target = k.op("mad.wide.u32", line, 2 * p.c.distance, start, kind="b64")
                    target = k.op("mad.wide.u32", column, 2, target, kind="b64")
                    for eight in range(columns // 8):
                        pair = line_sums[4 * eight + 2 * half :][:2]
                        self._store_pair(target, k.add(column, 8 * eight), 16 * eight, pair)

    def _store_pair(self, target: str, column: str, further: int, sums: Sequence[str]) -> None:
        k, p = self.k, self.p
        both, first = self.rounded(*sums), k.less(column, p.n)
        if p.c.distance % 2 == 0 and p.n % 2 == 0:
            k.do("st.global.b32", f"[{target}+{further}]", both, when=first)
            return
        low, high = k.register("b16"), k.register("b16")
        k.do("mov.b32", listed([low, high]), both)
        k.do("st.global.b16", f"[{target}+{further}]", low, when=first)
        k.do("st.global.b16", f"[{target}+{further + 2}]", high, when=k.less(k.add(column, 1), p.n))

    def rounded(self, low: str, high: str) -> str:
        """Two sums in one register."""
        if self.p.alpha != 1.0:
            factor = real(self.p.alpha)
            low, high = (self.k.op("mul.f32", x, factor, kind="f32") for x in (low, high))
        return self.k.op(f"cvt.rn.{NAMES[self.p.ty]}x2.f32", high, low)
