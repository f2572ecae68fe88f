"""Decoding from pages on Hopper: as `decoding.py`, with keys and values where a table says.

Comes in: a `Decoding`, a `Tile`, and `Pages`. Goes out: the kernel as PTX, and its tensor maps. A tile of keys is
brought in boxes that lie within a page each: the thread that has tiles copied reads their pages' numbers from the table
while it waits for room. As many keys count as a sample's length says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.decoding import Decoding, DecodingWriter, Tile
from eshkol.backends.cuda.warpgroups.decoding import maps as maps_of
from eshkol.backends.cuda.warpgroups.maps import LINE_ELEMENTS, Axis, TensorMap
from eshkol.backends.cuda.warpgroups.ring import LINE

NUMBER = 4  # bytes of an entry
SMALLEST = 16  # places of a page: a power of two
SHAPES = {64: (128, 3), 128: (64, 3), 192: (64, 2), 256: (64, 2)}  # widest → keys of a tile, and stages


@dataclass(frozen=True)
class Pages:
    """So many pages of so many places; and the table: where it lies, and how many entries a sample has."""

    count: int
    places: int
    heads: int
    table: tuple[int, int]  # the byte of the record that has its address, and so many bytes further
    most: int


def box(pages: Pages, tile: Tile) -> int:
    """Keys that are brought together: they lie in one page, and in one tile."""
    return min(pages.places, tile.keys)


def maps(d: Decoding, tile: Tile, pages: Pages) -> tuple[TensorMap, ...]:
    """The tensor maps of q, and of pages of k and of v."""
    line = pages.heads * d.width
    axes = (
        Axis(d.width, 1), Axis(pages.places, line), Axis(pages.heads, d.width), Axis(pages.count, pages.places * line),
    )  # fmt: skip
    boxes = (LINE_ELEMENTS, box(pages, tile), 1, 1)
    return (maps_of(d, tile)[0], *(TensorMap(x.buffer, x.offset, d.ty, axes, boxes) for x in (d.k, d.v)))


def paged_kernel(d: Decoding, tile: Tile, pages: Pages, record: int, sums: tuple[int, int]) -> str:
    """The kernel's text, for a record of so many bytes, which ends with the maps."""
    return _Writer(d, tile, pages, record, sums).text()


class _Writer(DecodingWriter):
    def __init__(self, d: Decoding, tile: Tile, pages: Pages, record: int, sums: tuple[int, int]) -> None:
        super().__init__(d, tile, record, sums)
        self.pages, self.box = pages, box(pages, tile)

    def copy(self) -> None:
        k, tile, pages = self.k, self.tile, self.pages
        sample, head = self.places
        with k.only(k.equal(self.thread, 0)):
            self.bring_queries()
            start = k.op("cvta.to.global.u64", k.word(pages.table[0]), kind="b64")
            start = k.op("add.u64", start, pages.table[1], kind="b64")
            row = k.op("mad.wide.u32", sample, pages.most * NUMBER, start, kind="b64")
            keys, values = (ring.begin(filled=False) for ring in self.rings)
            with k.counted(0, self.across) as round_:
                first = k.mul(k.op("sub.u32", self.last, round_), tile.keys)
                there = [self._page_of(row, k.add(first, n)) for n in range(0, tile.keys, self.box)]
                for number, place in enumerate((keys, values)):
                    place.wait(place.free())
                    full = place.full()
                    rings.expect(k, full, self.size)
                    into = k.op("mad.lo.u32", place.stage, self.size, self.at[number])
                    for n, at in enumerate(there):
                        self._bring_box(k.add(into, n * self.box * LINE), self.maps[1 + number], [*at, head], full)
                    place.advance()

    def _page_of(self, row: str, key: str) -> list[str]:
        """The page of a key, and its place in that."""
        k, pages = self.k, self.pages
        number, place = k.divided(key, pages.places)
        number = k.op("min.u32", number, pages.most - 1)  # tiles may be longer than all pages are
        entry = k.op("ld.global.s32", f"[{k.op('mad.wide.u32', number, NUMBER, row, kind='b64')}]")
        entry = k.op("min.s32", k.op("max.s32", entry, 0), pages.count - 1)
        return [entry, place]

    def _bring_box(self, into: str, tensor: str, at: Sequence[str], barrier: str) -> None:
        k = self.k
        page, place, head = at
        for block in range(self.blocks):
            where = [k.number(block * LINE_ELEMENTS), place, head, page]
            rings.bring(k, k.add(into, block * self.tile.keys * LINE), tensor, where, barrier)
