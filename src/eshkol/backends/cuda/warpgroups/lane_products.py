"""The product of float32 matrices on Hopper: exact multiplications, by threads that have a tile of the result each.

Comes in: a `Product`, how its matrices lie, and a `LaneTile`. Goes out: the kernel as PTX, and the tensor maps of those
factors that the machine copies. No unit multiplies matrices of float32 to their last bits, so threads do: what counts
is that nearly every instruction is a multiplication, and that none waits for its operands. Slabs of both factors lie in
a ring of stages in shared memory (`ring.py`), term by term, and a thread loads the lines of the next term, 16 bytes at
a time, while it multiplies those of this one.

A factor whose lines lie side by side is brought as it is by the machine, on the word of one thread. One of which the
terms of a line do is turned on its way: each thread has single numbers copied, without waiting for them, eight terms of
four lines for a warp, so that these lie in different banks; the lines of a term are followed by a gap for the purpose.

A processor reads two registers for a multiplication at a time, one of an even and one of an odd number; the third
operand must be one of the last multiplication. So sums must be where the assembler wants them, and not side by side as
they are stored: they are multiplied by a number that it does not know, and so go through other registers.

Where tiles are few, several threads have the same results, and each sums a part of the terms of every slab.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.maps import MAP_BYTES, Axis, TensorMap
from eshkol.backends.cuda.warpgroups.products import Matrices, Product
from eshkol.backends.cuda.warpgroups.ptx import WARP, Kernel, listed, real
from eshkol.backends.cuda.warpgroups.ring import Ring

SIZE = 4  # bytes of a number
VECTOR = 4  # numbers that are loaded at once
DEPTH = 32  # terms of a slab
SECTOR = 8  # terms of a line that neighbouring threads copy
TOGETHER = 8  # tiles above each other that are taken before those to the right of them
FARTHEST = 1 << 22  # bytes that an instruction adds to an address by itself
FACTOR_BYTES = 16  # of the number that results are multiplied by, and what keeps the rest in its place


@dataclass(frozen=True)
class LaneTile:
    """The part of a result that a block computes, and that of a thread; terms are shared by some threads.

    Of the 32 threads of a warp so many stand below each other (`high`). So many terms are code without a loop; so many
    blocks are on a processor at a time.
    """

    rows: int
    columns: int
    lane_rows: int
    lane_columns: int
    parts: int
    stages: int
    resident: int
    high: int = 4
    terms: int = 8

    @property
    def lanes(self) -> int:
        """Threads that have different results."""
        return self.rows // self.lane_rows * (self.columns // self.lane_columns)

    @property
    def threads(self) -> int:
        return self.lanes * self.parts

    @property
    def slab(self) -> int:
        """Bytes of a stage, with gaps."""
        return DEPTH * (self.rows + self.columns + 2 * VECTOR) * SIZE

    @property
    def held(self) -> int:
        """Bytes of sums that wait to be added up."""
        return (self.parts - 1) * self.rows * self.columns * SIZE

    @property
    def memory(self) -> int:
        """Bytes of shared memory."""
        return self.stages * self.slab + self.held + FACTOR_BYTES + 2 * self.stages * rings.BARRIER_BYTES

    @property
    def registers(self) -> int:
        return min(255, (1 << 16) // (self.threads * self.resident) // 8 * 8)


def maps(p: Product, tile: LaneTile) -> tuple[TensorMap, ...]:
    """The tensor maps of those factors that the machine copies."""
    found = []
    for x, count, lines in ((p.a, p.m, tile.rows), (p.b, p.n, tile.columns)):
        if _is_deep(p, x):
            continue
        batch = [Axis(extent, step) for extent, step in zip(p.batch, x.batch, strict=True) if step]
        axes = (Axis(count, 1), Axis(p.k, x.distance), *batch[::-1])
        box = (lines, DEPTH, *(1 for _ in batch))
        found.append(TensorMap(x.buffer, x.offset, p.ty, axes, box, exchanged=False))
    return tuple(found)


def _is_deep(p: Product, x: Matrices) -> bool:
    """Whether the terms of a line of a factor lie side by side."""
    return x.turned == (x is p.b)


class _Factor:
    """A slab of a factor, how it is brought, and what a thread loads of it: the lines of a term, in turns.

    A tile has so many lines of it, and a thread some; so many threads of a warp have different ones.
    """

    def __init__(self, k: Kernel, x: Matrices, lines: int, each: int, across: int, tensor: str | None) -> None:
        self.k, self.x, self.lines, self.each, self.across, self.tensor = k, x, lines, each, across, tensor
        self.pitch = lines + (VECTOR if tensor is None else 0)
        self.size = DEPTH * self.pitch * SIZE
        self.sets = [[k.registers(VECTOR) for _ in range(each // VECTOR)] for _ in range(2)]
        self.source = self.target = self.line = self.term = ""  # of what a thread copies
        self.beyond = [v * across * VECTOR + n for v in range(each // VECTOR) for n in range(VECTOR)]

    def turn(self, thread: str, base: str, source: str) -> None:
        """Find out which numbers a thread copies, of a matrix that begins there, and where they lie in a slab."""
        k = self.k
        self.source = source
        self.line, self.term = k.divided(thread, SECTOR)
        self.target = k.op("mad.lo.u32", k.op("mad.lo.u32", self.term, self.pitch, self.line), SIZE, base)

    def number(self, term: int, line: int) -> str:
        """The register of a number."""
        return self.sets[term % 2][line // VECTOR][line % VECTOR]

    def load(self, at: str, term: int) -> None:
        """The lines of a term, so many beyond a place."""
        start = term * self.pitch * SIZE
        for vector, target in enumerate(self.sets[term % 2]):
            self.k.do("ld.shared.v4.f32", listed(target), f"[{at}+{start + vector * self.across * VECTOR * SIZE}]")


def product_kernel(p: Product, tile: LaneTile, record: int, words: tuple[int, int, int]) -> str:
    """The kernel's text, for a record of so many bytes, which ends with the maps; addresses of A, B, C are at words."""
    return _Writer(p, tile, record, words).text()


class _Writer:
    """The kernel under construction."""

    def __init__(self, p: Product, tile: LaneTile, record: int, words: tuple[int, int, int]) -> None:
        self.p, self.tile, self.words = p, tile, words
        self.k = k = Kernel(tile.threads, 1, record)
        self.down, self.across = -(-p.m // tile.rows), -(-p.n // tile.columns)
        self.slabs = -(-p.k // DEPTH)
        self.thread = k.special("tid.x")
        self.base = k.shared()
        sizes = (p.a, tile.rows, tile.lane_rows, tile.high), (p.b, tile.columns, tile.lane_columns, WARP // tile.high)
        count = len(maps(p, tile))
        tensors = iter([k.address(record - (count - number) * MAP_BYTES) for number in range(count)])
        self.factors = [_Factor(k, *size, None if _is_deep(p, size[0]) else next(tensors)) for size in sizes]
        self.starts = [0, tile.stages * self.factors[0].size]  # where slabs lie
        self.staged = tile.stages * tile.slab
        self.alpha = self.staged + tile.held
        fillers = min(count, 1) + (tile.threads if count < 2 else 0)
        barriers = k.add(self.base, self.alpha + FACTOR_BYTES)
        self.ring = Ring(k, barriers, tile.stages, tile.threads // WARP, 1, fillers=fillers)

    def text(self) -> str:
        k, tile = self.k, self.tile
        first = k.equal(self.thread, 0)
        with k.only(first):
            self.ring.prepare()
            k.do("st.shared.f32", f"[{self.base}+{self.alpha}]", real(self.p.alpha))
        k.do("bar.sync", 0)
        self.row, self.column, self.places = self._corner(k.special("ctaid.x"))
        self._stand()
        for f, word in zip(self.factors, self.words, strict=False):
            if f.tensor is None:
                f.turn(self.thread, self.base, self._begin(f.x, word))
        to = self.ring.begin(filled=False)
        self.ahead = k.number(0)
        with k.counted(0, min(tile.stages, self.slabs)):
            self._fill(to, first)
        sums = self._multiply(to, first)
        self._finish(sums)
        return k.text(registers=tile.registers)

    def _corner(self, tile: str) -> tuple[str, str, list[str]]:
        """The first row and the first column of a tile, and the places in the batch."""
        k = self.k
        places: list[str] = []
        which, inner = k.divided(tile, self.down * self.across) if self.p.batch else ("", tile)
        for extent in self.p.batch[:0:-1]:
            which, place = k.divided(which, extent)
            places.insert(0, place)
        if self.p.batch:
            places.insert(0, which)
        high = min(TOGETHER, self.down)
        band, rest = k.divided(inner, high * self.across)
        first = k.mul(band, high)
        tall = k.op("min.u32", k.op("sub.u32", k.number(self.down), first), high)
        column = k.op("div.u32", rest, tall)
        row = k.add(first, k.op("sub.u32", rest, k.mul(column, tall)))
        return k.mul(row, self.tile.rows), k.mul(column, self.tile.columns), places

    def _begin(self, x: Matrices, word: int) -> str:
        """Where the block's matrix of an operand begins."""
        k = self.k
        start = k.op("cvta.to.global.u64", k.word(word), kind="b64")
        start = k.op("add.u64", start, x.offset, kind="b64") if x.offset else start
        for place, step in zip(self.places, x.batch, strict=True):
            if step:
                start = k.op("mad.lo.u64", k.op("cvt.u64.u32", place, kind="b64"), SIZE * step, start, kind="b64")
        return start

    # --- copies ---------------------------------------------------------------------------------------

    def _fill(self, to: rings.Place, first: str) -> None:
        """Have the next slab brought when its stage is free."""
        k = self.k
        copied = [f for f in self.factors if f.tensor is not None]

        def by_machine() -> None:
            full = to.full()
            rings.expect(k, full, sum(f.size for f in copied))
            term = k.mul(self.ahead, DEPTH)
            for f, start, line in zip(self.factors, self.starts, (self.row, self.column), strict=True):
                if f.tensor is not None:
                    target = k.op("mad.lo.u32", to.stage, f.size, k.add(self.base, start))
                    batch = [place for place, step in zip(self.places, f.x.batch, strict=True) if step]
                    rings.bring(k, target, f.tensor, [line, term, *batch[::-1]], full)

        if len(copied) == len(self.factors):
            with k.only(first):
                to.wait(to.free())
                by_machine()
        else:
            to.wait(to.free())
            if copied:
                with k.only(first):
                    by_machine()
            for number, f in enumerate(self.factors):
                if f.tensor is None:
                    self._copy(f, number, to)
            k.do("cp.async.mbarrier.arrive.noinc.shared::cta.b64", f"[{to.full()}]")
        to.advance()
        k.do("add.u32", self.ahead, self.ahead, 1)

    def _copy(self, f: _Factor, number: int, to: rings.Place) -> None:
        """Begin to copy a thread's numbers of a slab: of eight terms after eight, some lines each."""
        k, p = self.k, self.p
        extent, corner = (p.m, self.row) if number == 0 else (p.n, self.column)
        step = self.tile.threads // SECTOR  # lines of all threads
        target = k.add(k.op("mad.lo.u32", to.stage, f.size, f.target), self.starts[number])
        term = k.op("mad.lo.u32", self.ahead, DEPTH, f.term)
        begin = k.op("mad.wide.u32", term, SIZE, f.source, kind="b64")
        line = k.add(corner, f.line)
        within = [
            k.op("selp.u32", SIZE, 0, k.less(k.add(term, eight), p.k)) if p.k % DEPTH else str(SIZE)
            for eight in range(0, DEPTH, SECTOR)
        ]
        start = ""
        for turn in range(f.lines // step):
            far = turn * step * SIZE * f.x.distance
            if turn == 0 or extent % f.lines or far >= FARTHEST:
                here = k.add(line, turn * step)
                here = k.op("min.u32", here, extent - 1) if extent % f.lines else here
                start = k.op("mad.wide.u32", here, SIZE * f.x.distance, begin, kind="b64")
                far = 0
            for eight, size in zip(range(0, DEPTH, SECTOR), within, strict=True):
                inside = (eight * f.pitch + turn * step) * SIZE
                source = f"[{start}+{far + eight * SIZE}]"
                more = (size,) if p.k % DEPTH else ()
                k.do("cp.async.ca.shared.global", f"[{target}+{inside}]", source, SIZE, *more)

    # --- products -------------------------------------------------------------------------------------

    def _stand(self) -> None:
        """Where a thread stands: which lines of both factors are its own, and where they lie in the first stage."""
        k, tile = self.k, self.tile
        self.part, self.place = k.divided(self.thread, tile.lanes)
        warp, self.lane = k.divided(self.place, WARP)
        pair, odd = k.divided(self.lane, 2)
        upper, column = k.divided(pair, WARP // tile.high)
        inside = k.add(k.mul(upper, 2), odd), column
        wide = WARP // tile.high * tile.lane_columns
        down, across = k.divided(warp, tile.columns // wide)
        tops = k.mul(down, tile.high * tile.lane_rows), k.mul(across, wide)
        self.mine = [k.op("mad.lo.u32", within, VECTOR, top) for within, top in zip(inside, tops, strict=True)]
        term = k.mul(self.part, DEPTH // tile.parts)
        self.origins = [
            k.add(k.op("mad.lo.u32", k.op("mad.lo.u32", term, f.pitch, line), SIZE, self.base), start)
            for f, line, start in zip(self.factors, self.mine, self.starts, strict=True)
        ]

    def _multiply(self, to: rings.Place, first: str) -> list[list[str]]:
        """The sums of a thread."""
        k, tile = self.k, self.tile
        sums = [k.registers(tile.lane_columns) for _ in range(tile.lane_rows)]
        for line in sums:
            for total in line:
                k.do("mov.f32", total, real(0.0))
        here = self.ring.begin(filled=True)
        at = [k.op("mov.u32", origin) for origin in self.origins]
        leads = k.equal(self.lane, 0)
        here.wait(here.full())
        for factor, place in zip(self.factors, at, strict=True):
            factor.load(place, 0)
        with k.counted(0, self.slabs) as slab:
            bodies = DEPTH // tile.parts // tile.terms
            if bodies > 1:
                with k.counted(0, bodies - 1):

                    def onward() -> list[str]:
                        return [
                            k.add(place, tile.terms * f.pitch * SIZE) for f, place in zip(self.factors, at, strict=True)
                        ]

                    self._terms(at, onward, sums)
            free = here.free()
            here.advance()

            def go_on() -> list[str]:
                with k.unless(k.equal(slab, self.slabs - 1)):
                    here.wait(here.full())
                return [
                    k.op("mad.lo.u32", here.stage, f.size, origin)
                    for f, origin in zip(self.factors, self.origins, strict=True)
                ]

            self._terms(at, go_on, sums)
            k.do("bar.warp.sync", "0xffffffff")
            k.do("mbarrier.arrive.shared::cta.b64", "_", f"[{free}]", when=leads)
            # The stage that was given back before this one is filled again: nobody is waited for who is not far behind.
            fills = k.op("setp.ne.u32", slab, 0, kind="pred")
            k.do("and.pred", fills, fills, k.less(self.ahead, self.slabs))
            with k.only(fills):
                self._fill(to, first)
        return sums

    def _terms(self, at: Sequence[str], further: Callable[[], Sequence[str]], sums: Sequence[Sequence[str]]) -> None:
        """Multiply some terms from places on, load the first of what lies further, and go there."""
        k, terms, (left, right) = self.k, self.tile.terms, self.factors
        for term in range(terms):
            last = term == terms - 1
            places = further() if last else at
            for factor, place in zip(self.factors, places, strict=True):
                factor.load(place, 0 if last else term + 1)
            for row, line in enumerate(sums):
                x, columns = left.number(term, row), range(len(line))
                for column in columns if row % 2 == 0 else reversed(columns):  # of two that follow, one is the same
                    k.do("fma.rn.f32", line[column], x, right.number(term, column), line[column])
            if last:
                for place, new in zip(at, places, strict=True):
                    k.do("mov.u32", place, new)

    # --- results --------------------------------------------------------------------------------------

    def _finish(self, sums: Sequence[Sequence[str]]) -> None:
        k, tile = self.k, self.tile
        alpha = k.op("ld.shared.f32", f"[{self.base}+{self.alpha}]", kind="f32")
        sums = [[k.op("mul.f32", total, alpha, kind="f32") for total in line] for line in sums]
        if tile.parts == 1:
            self._store(sums)
            return
        mine = k.op("mad.lo.u32", self.place, VECTOR * SIZE, k.add(self.base, self.staged))
        flat = [total for line in sums for total in line]
        quads = [flat[n : n + VECTOR] for n in range(0, len(flat), VECTOR)]
        lead, all_of_them = k.equal(self.part, 0), tile.rows * tile.columns * SIZE
        with k.unless(lead):
            start = k.op("mad.lo.u32", k.op("sub.u32", self.part, 1), all_of_them, mine)
            for n, quad in enumerate(quads):
                k.do("st.shared.v4.f32", f"[{start}+{n * tile.lanes * VECTOR * SIZE}]", listed(quad))
        k.do("bar.sync", 0)
        with k.only(lead):
            for other in range(tile.parts - 1):
                for n, quad in enumerate(quads):
                    found = k.registers(VECTOR)
                    at = other * all_of_them + n * tile.lanes * VECTOR * SIZE
                    k.do("ld.shared.v4.f32", listed(found), f"[{mine}+{at}]")
                    for total, more in zip(quad, found, strict=True):
                        k.do("add.f32", total, total, more)
            self._store(sums)

    def _store(self, sums: Sequence[Sequence[str]]) -> None:
        """Store a thread's results that lie within C."""
        k, p = self.k, self.p
        row, column = (k.add(a, b) for a, b in zip((self.row, self.column), self.mine, strict=True))
        start = k.op("mad.wide.u32", column, SIZE, self._begin(p.c, self.words[2]), kind="b64")
        across = self.factors[1].beyond
        width = VECTOR if p.n % VECTOR == 0 and p.c.distance % VECTOR == 0 else 1
        inside = [k.less(k.add(column, across[n]), p.n) for n in range(0, len(across), width)]
        for down, line in zip(self.factors[0].beyond, sums, strict=True):
            at = k.add(row, down)
            with k.only(k.less(at, p.m)):
                target = k.op("mad.wide.u32", at, SIZE * p.c.distance, start, kind="b64")
                for place, valid in zip(range(0, len(line), width), inside, strict=True):
                    totals = line[place : place + width]
                    kind, given = ("v4.f32", listed(totals)) if width > 1 else ("f32", totals[0])
                    k.do(f"st.global.{kind}", f"[{target}+{across[place] * SIZE}]", given, when=valid)
