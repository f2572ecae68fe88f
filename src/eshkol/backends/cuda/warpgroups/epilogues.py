"""Products with what follows them: sums go through the epilogue in registers, and its results are written.

Comes in: a `Product`, a `Tile` and an `Epilogue` (`following.py`). Goes out: the kernel as PTX, and the tensor maps of
its factors and of results of 16 bits, which go to memory by way of shared memory like those of other products; others
are stored by threads. What an epilogue reads of the next columns is fetched before those at hand are computed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import products
from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.following import Elements, Epilogue, Reach, Written
from eshkol.backends.cuda.warpgroups.maps import LINE_ELEMENTS, TensorMap
from eshkol.backends.cuda.warpgroups.products import BLOCK_BYTES, HELD, HELD_ROWS, Product, ProductWriter, Tile
from eshkol.backends.cuda.warpgroups.ptx import GROUP, WARP, listed, real
from eshkol.backends.cuda.warpgroups.ring import LINE, NAMES, ROWS

EIGHT = 8  # columns of which a thread has two, in two rows
Fetched = dict[tuple[int, int, int], list[str]]  # (value, which eight columns, which row) → registers of two elements


def maps(p: Product, tile: Tile, epilogue: Epilogue) -> tuple[TensorMap, ...]:
    """The tensor maps of A, B and the results of 16 bits, if the blocks of a cluster have tiles of their own."""
    factors = products.maps(p, tile)[:2]
    if tile.shares:
        return factors
    results = []
    for out in sent(epilogue):
        c = replace(p.c, buffer=out.name, offset=out.offset)
        results.append(replace(products.result_map(replace(p, c=c)), ty=out.ty))
    return (*factors, *results)


def sent(epilogue: Epilogue) -> list[Written]:
    """The results that the machine's copies can write."""
    return [out for out in epilogue.outs if out.ty in NAMES]


def followed_kernel(p: Product, tile: Tile, epilogue: Epilogue, record: int, words: Mapping[str, int]) -> str:
    """The kernel's text; `words` are the bytes of the record where addresses of buffers lie, and numbers."""
    return FollowedWriter(p, tile, epilogue, record, words).text()


@dataclass
class _Rows:
    """Where a thread's two rows of a tile lie: whether they are within the result, and addresses by buffer and byte."""

    inside: list[str]
    at: dict[tuple[str, int], list[str]]


class FollowedWriter(ProductWriter):
    """The kernel of a product with what follows it."""

    def __init__(self, p: Product, tile: Tile, epilogue: Epilogue, record: int, words: Mapping[str, int]) -> None:
        super().__init__(p, tile, len(maps(p, tile, epilogue)), record, words[p.c.buffer])
        self.epilogue, self.words = epilogue, words
        self.bases: dict[tuple[str, int], str] = {}  # addresses, by buffer and the byte where a matrix begins
        self.sent = sent(epilogue) if len(self.maps) > 2 else []

    def _multiply(self, group: str) -> None:
        k = self.k
        self.elements = Elements(k, self.epilogue, self.words)
        reads = [(v.name, v.offset) for v in self.epilogue.values if v.op == "read"]
        for name, offset in dict.fromkeys((*reads, *((out.name, out.offset) for out in self.epilogue.outs))):
            start = k.op("cvta.to.global.u64", k.word(self.words[name]), kind="b64")
            self.bases[name, offset] = k.op("add.u64", start, offset, kind="b64") if offset else start
        super()._multiply(group)

    # --- where things lie -----------------------------------------------------------------------------------

    def _place(self, row: str, group: str, me: str, high: int, count: int) -> str:
        """The first row of a thread, of the 64 of a group with this number."""
        k = self.k
        row = k.add(row, k.op("mad.lo.u32", group, count * ROWS, k.mul(k.op("shr.u32", me, 5), 16)))
        return k.add(k.add(row, k.op("shr.u32", k.op("and.b32", me, WARP - 1), 2)), high * ROWS)

    def _rows(self, row: str, column: str, places: Sequence[str]) -> _Rows:
        """The addresses of two elements, from one on, in all matrices: 8 rows lie between them."""
        k, p = self.k, self.p
        inside: list[str] = []
        at: dict[tuple[str, int], list[str]] = {}
        matrices = {
            (v.name, v.offset, v.ty) for v in self.epilogue.values if v.op == "read" and v.reach is Reach.ELEMENT
        }
        matrices |= {(out.name, out.offset, out.ty) for out in self.epilogue.outs if out not in self.sent}
        lines = []
        for half in range(2):
            line = k.add(row, EIGHT * half)
            inside.append(k.less(line, p.m))
            lines.append(k.op("min.u32", line, p.m - 1))
        for name, offset, ty in sorted(matrices, key=str):
            start = self.bases[name, offset]
            for place, step in zip(places, p.c.batch, strict=True):
                further = k.op("cvt.u64.u32", place, kind="b64")
                start = k.op("mad.lo.u64", further, ty.size_bytes * step, start, kind="b64")
            ends = []
            for line in lines:
                end = k.op("mad.wide.u32", line, ty.size_bytes * p.c.distance, start, kind="b64")
                ends.append(k.op("mad.wide.u32", column, ty.size_bytes, end, kind="b64"))
            at[name, offset] = ends
        for value in self.epilogue.values:
            if value.op == "read" and value.reach is Reach.COLUMN:
                end = k.op(
                    "mad.wide.u32", column, value.ty.size_bytes, self.bases[value.name, value.offset], kind="b64"
                )
                at[value.name, value.offset] = [end]
        return _Rows(inside, at)

    # --- what is computed -------------------------------------------------------------------------------------

    def _fetched(self, rows: _Rows, column: str, eights: Sequence[int]) -> Fetched:
        """What is read of some columns, on its way."""
        k, p = self.k, self.p
        found: Fetched = {}
        for eight in eights:
            edge = p.n % self.tile.columns != 0
            when = k.less(k.add(column, EIGHT * eight), p.n) if edge else None
            for number, value in enumerate(self.epilogue.values):
                if value.op != "read":
                    continue
                for half, address in enumerate(rows.at[value.name, value.offset]):
                    where = f"[{address}+{EIGHT * eight * value.ty.size_bytes}]"
                    if value.ty is Type.F32:
                        got = k.registers(2)
                        k.do("ld.global.nc.v2.f32", listed(got), where, when=when)
                    else:
                        got = [k.register()]
                        k.do("ld.global.nc.b32", got[0], where, when=when)
                    found[number, eight, half] = got
        return found

    def _results(
        self, sums: Sequence[str], fetched: Fetched, eights: Sequence[int]
    ) -> list[dict[tuple[int, int], list[str]]]:
        """For each matrix that is written, pairs of elements by which eight columns, and which row, they are of."""
        k, values = self.k, self.epilogue.values
        found: list[dict[tuple[int, int], list[str]]] = [{} for _ in self.epilogue.outs]
        for eight in eights:
            reads = {key: self._widened(got, values[key[0]].ty) for key, got in fetched.items() if key[1] == eight}
            shared = [
                self.elements.column(
                    {n: pair[one] for (n, _, _), pair in reads.items() if values[n].reach is Reach.COLUMN}
                )
                for one in range(2)
            ]
            for half in range(2):
                pairs: list[list[str]] = [[] for _ in found]
                for one in range(2):
                    total = sums[4 * eight + 2 * half + one]
                    if self.p.alpha != 1.0:
                        total = k.op("mul.f32", total, real(self.p.alpha), kind="f32")
                    own = {
                        n: pair[one] for (n, _, row), pair in reads.items()
                        if values[n].reach is Reach.ELEMENT and row == half
                    }  # fmt: skip
                    for pair, result in zip(pairs, self.elements.at(shared[one], total, own), strict=True):
                        pair.append(result)
                for out, pair in zip(found, pairs, strict=True):
                    out[eight, half] = pair
        return found

    def _widened(self, got: Sequence[str], ty: Type) -> list[str]:
        """Two elements as they were read, in float32."""
        k = self.k
        if ty is Type.F32:
            return list(got)
        if ty is Type.BF16:
            bits = k.op("shl.b32", got[0], 16), k.op("and.b32", got[0], 0xFFFF0000)
            return [k.op("mov.b32", one, kind="f32") for one in bits]
        halves = k.register("b16"), k.register("b16")
        k.do("mov.b32", listed(halves), got[0])
        return [k.op("cvt.f32.f16", one, kind="f32") for one in halves]

    def _packed(self, pair: Sequence[str], ty: Type) -> str:
        return self.k.op(f"cvt.rn.{NAMES[ty]}x2.f32", pair[1], pair[0])

    # --- how it is written ------------------------------------------------------------------------------------

    def _send(self, number: str, group: str, me: str, sums: Sequence[Sequence[str]]) -> None:
        """Have results copied, 64 columns at a time, by way of shared memory; others are stored."""
        k, tile = self.k, self.tile
        row, column, places = self.corner(number)
        lane = k.op("and.b32", me, WARP - 1)
        memory = k.op("mad.lo.u32", group, HELD * BLOCK_BYTES, k.add(self.base, self.staged))
        warp = k.op("mad.lo.u32", k.op("shr.u32", me, 5), HELD_ROWS * LINE, memory)
        into, chunks = self.held_chunks(lane, warp)
        first, barrier = k.equal(me, 0), k.add(group, 1)
        boxes = len(sums) * (tile.columns // LINE_ELEMENTS) * len(self.sent)
        own = k.op("mad.lo.u32", k.op("and.b32", lane, 3), 2, column)
        eights = LINE_ELEMENTS // EIGHT
        at = 0
        for high, line_sums in enumerate(sums):
            rows = self._rows(self._place(row, group, me, high, len(sums)), own, places)
            top = k.add(row, k.op("mad.lo.u32", group, len(sums) * ROWS, k.number(high * ROWS)))
            blocks = [range(block * eights, (block + 1) * eights) for block in range(tile.columns // LINE_ELEMENTS)]
            ahead = self._fetched(rows, own, blocks[0])
            for block, here in enumerate(blocks):
                fetched = ahead
                if block + 1 < len(blocks):
                    ahead = self._fetched(rows, own, blocks[block + 1])
                results = self._results(line_sums, fetched, here)
                which = 0
                for out, found in zip(self.epilogue.outs, results, strict=True):
                    if out not in self.sent:
                        self._stored(out, found, rows, own)
                        continue
                    packed = {key: self._packed(pair, out.ty) for key, pair in found.items()}
                    with k.only(first):
                        self.wait_to_hold(boxes, begins=high == block == which == 0)
                    k.do("bar.sync", barrier, GROUP)
                    for pair, where in enumerate(chunks):
                        four = [packed[here[2 * pair + n // 2], n % 2] for n in range(4)]
                        target = k.add(k.op("mad.lo.u32", where, 16, into), at * BLOCK_BYTES)
                        k.lines.append(f"    stmatrix.sync.aligned.m8n8.x4.shared.b16 [{target}], {listed(four)};")
                    k.lines.append("    fence.proxy.async.shared::cta;")
                    k.do("bar.sync", barrier, GROUP)
                    with k.only(first):
                        box = self._at(self.p.c, k.add(column, block * LINE_ELEMENTS), top, places)
                        rings.send(k, self.maps[2 + which], box, k.add(memory, at * BLOCK_BYTES))
                        k.lines.append("    cp.async.bulk.commit_group;")
                    at = (at + 1) % HELD
                    which += 1

    def store(self, number: str, group: str, me: str, sums: Sequence[Sequence[str]]) -> None:
        """Store the results that lie within the matrices."""
        k, tile = self.k, self.tile
        row, column, places = self.corner(number)
        columns = tile.columns // tile.parts
        if tile.shares:
            column = k.op("mad.lo.u32", self.rank, columns, column)
        own = k.op("mad.lo.u32", k.op("and.b32", me, 3), 2, column)
        step = LINE_ELEMENTS // EIGHT
        for high, line_sums in enumerate(sums):
            rows = self._rows(self._place(row, group, me, high, len(sums)), own, places)
            for start in range(0, columns // EIGHT, step):
                eights = range(start, min(start + step, columns // EIGHT))
                results = self._results(line_sums, self._fetched(rows, own, eights), eights)
                for out, found in zip(self.epilogue.outs, results, strict=True):
                    self._stored(out, found, rows, own)

    def _stored(self, out: Written, found: Mapping[tuple[int, int], Sequence[str]], rows: _Rows, column: str) -> None:
        """Store pairs of elements, those within the matrix."""
        k, p = self.k, self.p
        for (eight, half), pair in found.items():
            when = rows.inside[half]
            if p.n % self.tile.columns:
                inside = k.less(k.add(column, EIGHT * eight), p.n)
                when = k.op("and.pred", when, inside, kind="pred")
            where = f"[{rows.at[out.name, out.offset][half]}+{EIGHT * eight * out.ty.size_bytes}]"
            if out.ty is Type.F32:
                k.do("st.global.v2.f32", where, listed(pair), when=when)
            else:
                k.do("st.global.b32", where, self._packed(pair, out.ty), when=when)
