"""Products of numbers that have no 16 bits, on Hopper's groups of warps: float32 that is rounded (tf32), and int8.

Comes in: a `Product`, and a `Tile`. Goes out: the kernel as PTX, and the tensor maps of its factors, which round what
they copy of float32. It is the kernel of `products.py` but for what follows from the size of numbers: rows of 128 bytes
in shared memory are 32 terms or 128, sums are float32 or int32 and stored as they are, and groups multiply such numbers
only where the terms of a line lie side by side. The left factor may come from registers instead: where its lines of
float32 lie side by side, threads load it from shared memory as they need it. So where the right factor lies so, which
is the usual case, Cᵀ = Bᵀ·Aᵀ is computed (`placed`), and stored as C.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.maps import Axis, TensorMap
from eshkol.backends.cuda.warpgroups.products import BLOCK_BYTES, Matrices, Product, ProductWriter, Tile, lines
from eshkol.backends.cuda.warpgroups.ptx import GROUP, WARP, listed, real
from eshkol.backends.cuda.warpgroups.ring import LINE, ROWS

SIZE = 4  # bytes of a result
STEP_BYTES = 32  # of a line, that a group multiplies at once
TURNED = LINE // SIZE  # lines of a box where these lie side by side, and terms
BOX_BYTES = TURNED * LINE
PAIR = 2


@dataclass(frozen=True)
class Numbers:
    """What the instruction has for numbers of a type: their bytes, and its names for the types; of sums, registers."""

    size: int
    types: str
    sums: str
    signs: str  # what it is told of the signs of factors

    @property
    def depth(self) -> int:
        """Terms of a slab."""
        return LINE // self.size

    @property
    def terms(self) -> int:
        """Those that a group multiplies at once."""
        return STEP_BYTES // self.size


NUMBERS = {
    Type.F32: Numbers(4, "f32.tf32.tf32", "f32", ", 1, 1"), Type.I8: Numbers(1, "s32.s8.s8", "b32", ""),
    Type.U8: Numbers(1, "f32.e4m3.e4m3", "f32", ", 1, 1"),
}  # fmt: skip


def placed(p: Product) -> Product | None:
    """The product as it is computed: itself, or the one of the transposes; None: too many lines lie side by side."""
    if p.b.turned and (p.ty is Type.F32 or not p.a.turned):
        return p
    if p.a.turned or p.ty is not Type.F32:
        return None
    a, b, c = (replace(x, turned=not x.turned) for x in (p.b, p.a, p.c))
    return replace(p, m=p.n, n=p.m, a=a, b=b, c=c)


def maps(p: Product, tile: Tile) -> tuple[TensorMap, ...]:
    """The tensor maps of A and B."""
    depth = NUMBERS[p.ty].depth
    left = (TURNED, TURNED) if p.a.turned else (depth, lines(p, tile))
    return _map(p, p.a, p.m, left), _map(p, p.b, p.n, (depth, tile.columns // tile.below))


def _map(p: Product, x: Matrices, count: int, box: tuple[int, int]) -> TensorMap:
    across, down = (count, p.k) if x is p.a and x.turned else (p.k, count)
    batch = [Axis(extent, step) for extent, step in zip(p.batch, x.batch, strict=True) if step]
    axes = (Axis(across, 1), Axis(down, x.distance), *batch[::-1])
    return TensorMap(x.buffer, x.offset, p.ty, axes, (*box, *(1 for _ in batch)), rounded=p.ty is Type.F32)


def product_kernel(p: Product, tile: Tile, record: int, result: int) -> str:
    """The kernel's text, for a record of so many bytes, which ends with the maps and has C's address at this byte."""
    return OtherWriter(p, tile, 2, record, result).text()


class OtherWriter(ProductWriter):
    """The kernel under construction."""

    def __init__(self, p: Product, tile: Tile, count: int, record: int, result: int) -> None:
        super().__init__(p, tile, count, record, result)
        self.numbers, self.size = NUMBERS[p.ty], SIZE
        self.slabs = -(-p.k // self.numbers.depth)
        self.part = -(-self.slabs // tile.parts)

    # --- copies ---------------------------------------------------------------------------------------

    def bring_left(self, target: str, row: str, slab: str, places: Sequence[str], full: str) -> None:
        k, p = self.k, self.p
        term = k.mul(slab, self.numbers.depth)
        if not p.a.turned:
            rings.bring(k, target, self.maps[0], self._at(p.a, term, row, places), full)
            return
        for box in range(self.tile.rows // TURNED):
            at = self._at(p.a, k.add(row, box * TURNED), term, places)
            rings.bring(k, k.add(target, box * BOX_BYTES), self.maps[0], at, full)

    def bring_right(
        self, target: str, columns: Sequence[str], slab: str, places: Sequence[str], full: str, everyone: str | None
    ) -> None:
        (column,) = columns
        at = self._at(self.p.b, self.k.mul(slab, self.numbers.depth), column, places)
        rings.bring(self.k, target, self.maps[1], at, full, everyone)

    # --- products -------------------------------------------------------------------------------------

    def _multiply(self, group: str) -> None:
        """As in `products.py`; where the left factor comes from registers, slabs take turns with two sets of them."""
        k, tile = self.k, self.tile
        me = k.op("and.b32", self.thread, GROUP - 1)
        high = tile.rows // (tile.groups * ROWS)
        sums = [k.registers(tile.columns // 2, self.numbers.sums) for _ in range(high)]
        sets: list[list[list[str]] | None] = [None]
        if self.p.a.turned:
            sets = [[k.registers(LINE // 8, "b32") for _ in sums] for _ in range(2)]
        place = self.ring.begin(filled=True)
        before = k.number(0)
        always = k.op("setp.eq.u32", 0, 0, kind="pred")
        first, last = self._share()
        parity = k.number(0)
        with k.counted(*self._tiles()) as number:
            slab = k.op("mov.u32", first)
            again, end = k.label(), k.label()
            k.place(again)
            for held in sets:
                k.do("bra", end, when=k.op("setp.ge.u32", slab, last, kind="pred"))
                place.wait(place.full())
                begun = k.op("setp.ne.u32", slab, first, kind="pred")
                if held is not None:
                    self._load(place.stage, group, me, held)
                self._products(place.stage, group, sums, begun, always, held)
                rings.wait(k, 1)
                with k.only(begun):
                    rings.give_back(k, before, tile.below, me)
                k.do("mov.u32", before, place.free())
                place.advance()
                k.do("add.u32", slab, slab, 1)
            k.do("bra", again)
            k.place(end)
            rings.wait(k, 0)
            rings.give_back(k, before, tile.below, me)
            if tile.shares:
                self._add_up(me, sums, parity)
            self.store(number, group, me, sums)

    def _line(self, me: str) -> str:
        """The first of two lines of the 64 of a group that a thread has; the other is the next, or the eighth after it.

        Where threads load the left factor, eight bytes at a time, these are two that lie side by side, such that those
        of 16 threads lie in different banks. Else the machine says which they are.
        """
        k = self.k
        warp, lane = k.divided(me, WARP)
        row = k.op("shr.u32", lane, 2)
        if not self.p.a.turned:
            return k.op("mad.lo.u32", warp, 16, row)
        box, half = k.divided(warp, 2)
        chunk = k.op("mad.lo.u32", half, 2, k.op("shr.u32", row, 2))
        chunk = k.op("mad.lo.u32", k.op("and.b32", row, 2), 2, chunk)
        inside = k.op("mad.lo.u32", chunk, 4, k.mul(k.op("and.b32", row, 1), PAIR))
        return k.op("mad.lo.u32", box, TURNED, inside)

    def _load(self, stage: str, group: str, me: str, held: Sequence[Sequence[str]]) -> None:
        """Load a thread's numbers of a slab of the left factor, whose lines lie side by side."""
        k, tile = self.k, self.tile
        term = k.op("and.b32", me, 3)
        line = self._line(me)
        box, inside = k.divided(line, TURNED)
        chunk, rest = k.divided(inside, 4)
        at = k.op("mad.lo.u32", stage, tile.rows * LINE, self.base)
        at = k.op("mad.lo.u32", group, len(held) * ROWS // TURNED * BOX_BYTES, at)
        at = k.op("mad.lo.u32", box, BOX_BYTES, at)
        at = k.op("mad.lo.u32", term, LINE, at)
        at = k.op("mad.lo.u32", k.op("xor.b32", chunk, term), 16, at)
        at = k.op("mad.lo.u32", rest, SIZE, at)
        other = k.add(k.op("xor.b32", at, 64), 4 * LINE)  # four terms further
        for high, numbers in enumerate(held):
            for step in range(LINE // STEP_BYTES):
                four = numbers[4 * step :][:4]
                beyond = high * ROWS // TURNED * BOX_BYTES + step * self.numbers.terms * LINE
                k.do("ld.shared.v2.b32", listed(four[:2]), f"[{at}+{beyond}]")
                k.do("ld.shared.v2.b32", listed(four[2:]), f"[{other}+{beyond}]")

    def _products(
        self, stage: str, group: str, sums: Sequence[Sequence[str]], begun: str, always: str,
        held: Sequence[Sequence[str]] | None,
    ) -> None:  # fmt: skip
        """Begin to add the product of a slab."""
        k, tile = self.k, self.tile
        left: list[str] = []
        if held is None:
            first = k.op("mad.lo.u32", stage, tile.rows * LINE, self.base)
            first = k.op("mad.lo.u32", group, len(sums) * BLOCK_BYTES, first)
            left = [rings.described(k, k.add(first, high * BLOCK_BYTES), BLOCK_BYTES) for high in range(len(sums))]
        second = k.op("mad.lo.u32", stage, tile.columns * LINE, k.add(self.base, self.right))
        right = rings.described(k, second, BLOCK_BYTES)
        rings.fence(k)
        name = f"wgmma.mma_async.sync.aligned.m64n{tile.columns}k{self.numbers.terms}.{self.numbers.types}"
        for step in range(LINE // STEP_BYTES):
            there = k.op("add.u64", right, step * STEP_BYTES >> 4, kind="b64")
            for high, row in enumerate(sums):
                if held is None:
                    factor = k.op("add.u64", left[high], step * STEP_BYTES >> 4, kind="b64")
                else:
                    factor = listed(held[high][4 * step :][:4])
                told = f"{always if step else begun}{self.numbers.signs}"
                k.lines.append(f"    {name} {listed(row)}, {factor}, {there}, {told};")
        rings.commit(k)

    # --- results --------------------------------------------------------------------------------------

    def store(self, number: str, group: str, me: str, sums: Sequence[Sequence[str]]) -> None:
        """Store the sums of a tile that lie within the result: neighbours in pairs, where that may be."""
        k, p, tile = self.k, self.p, self.tile
        row, column, places = self.corner(number)
        columns = tile.columns // tile.parts
        if tile.shares:
            column = k.op("mad.lo.u32", self.rank, columns, column)
        start = k.op("cvta.to.global.u64", k.word(self.result), kind="b64")
        start = k.op("add.u64", start, p.c.offset, kind="b64")
        for place, step in zip(places, p.c.batch, strict=True):
            start = k.op("mad.lo.u64", k.op("cvt.u64.u32", place, kind="b64"), self.size * step, start, kind="b64")
        row = k.op("mad.lo.u32", group, len(sums) * ROWS, k.add(row, self._line(me)))
        column = k.op("mad.lo.u32", k.op("and.b32", me, 3), PAIR, column)
        apart = 1 if p.a.turned else 8  # of a thread's two rows
        for high, line_sums in enumerate(sums):
            line = k.add(row, high * ROWS)
            if p.c.turned:
                self._store_turned(start, line, column, apart, line_sums[: columns // 2])
                continue
            for half in range(2):
                at = k.add(line, half * apart)
                with k.only(k.less(at, p.m)):
                    target = k.op("mad.wide.u32", at, self.size * p.c.distance, start, kind="b64")
                    target = k.op("mad.wide.u32", column, self.size, target, kind="b64")
                    for eight in range(columns // 8):
                        pair = line_sums[4 * eight + 2 * half :][:2]
                        self._store_two(f"{target}+{8 * self.size * eight}", k.add(column, 8 * eight), p.n, pair)

    def _store_turned(self, start: str, line: str, column: str, apart: int, sums: Sequence[str]) -> None:
        """Rows of the product are columns of the result."""
        k, p = self.k, self.p
        assert apart == 1
        begin = k.op("mad.wide.u32", line, SIZE, start, kind="b64")
        target = k.op("mad.wide.u32", column, SIZE * p.c.distance, begin, kind="b64")
        for eight in range(len(sums) // 4):
            for further in range(2):
                at = 8 * eight + further
                with k.only(k.less(k.add(column, at), p.n)):
                    pair = sums[4 * eight + further :: 2][:2]
                    self._store_two(f"{target}+{at * SIZE * p.c.distance}", line, p.m, pair)

    def _store_two(self, target: str, place: str, extent: int, sums: Sequence[str]) -> None:
        k, p = self.k, self.p
        if p.alpha != 1.0:
            sums = [k.op("mul.f32", x, real(p.alpha), kind="f32") for x in sums]
        first = k.less(place, extent)
        if extent % PAIR == 0 and p.c.distance % PAIR == 0:
            k.do("st.global.v2.b32", f"[{target}]", listed(sums), when=first)
            return
        k.do("st.global.b32", f"[{target}]", sums[0], when=first)
        k.do("st.global.b32", f"[{target}+{SIZE}]", sums[1], when=k.less(k.add(place, 1), extent))
