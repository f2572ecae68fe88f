"""Convolutions of 16-bit floats on Hopper: products of the weight with what windows see, a matrix that lies nowhere.

Comes in: a `Convolution`, of an input and a weight with channels last. Goes out: the kernel as PTX, and tensor maps. It
is that of `products.py` but for two things. A slab of the right factor is 64 channels of what one tap of each window
sees: the machine's copies find it in the input, window by window, over rows and examples, with zeros beyond the edges.
And the result has channels first: a column, which is a window, lies in the plane of its example.

    rows: outs    columns: examples, windows    terms: taps, channels
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.maps import LINE_ELEMENTS, Axis, TensorMap, Windows
from eshkol.backends.cuda.warpgroups.products import (
    BLOCK_BYTES,
    DEPTH,
    HELD,
    HELD_ROWS,
    Matrices,
    Product,
    ProductWriter,
    Tile,
    lines,
)
from eshkol.backends.cuda.warpgroups.ptx import WARP, Kernel, listed
from eshkol.backends.cuda.warpgroups.ring import LINE, ROWS, SWIZZLE_ROWS

Pair = tuple[int, int]  # of height and width


@dataclass(frozen=True)
class Convolution:
    """An input of examples × height × width × channels, a weight of outs × kernel × channels, both dense.

    The result is examples × outs × windows. Operands are names of buffers, and bytes from which on they lie there.
    """

    ty: Type
    examples: int
    channels: int
    outs: int
    space: Pair
    kernel: Pair
    windows: Pair
    stride: Pair
    dilation: Pair
    before: Pair  # zeros above and left of the input
    weight: tuple[str, int]
    input: tuple[str, int]
    result: tuple[str, int]

    @property
    def plane(self) -> int:
        """Windows of an example."""
        return prod(self.windows)

    @property
    def blocks(self) -> int:
        """Slabs of one tap."""
        return -(-self.channels // DEPTH)

    @property
    def product(self) -> Product:
        """What it is a product of: with sums of whole slabs, and a result whose columns are not all in one row."""
        terms = prod(self.kernel) * self.blocks * DEPTH
        a, b = (Matrices(*x, terms, turned, ()) for x, turned in ((self.weight, False), (self.input, True)))
        c = Matrices(*self.result, self.plane, False, ())
        return Product(self.ty, self.outs, self.examples * self.plane, terms, (), a, b, c)


def maps(c: Convolution, tile: Tile) -> tuple[TensorMap, ...]:
    """The tensor maps of the weight, the input and, if the machine can copy its rows, the result."""
    taps, box = prod(c.kernel), (LINE_ELEMENTS, 1, lines(c.product, tile))
    weight = (Axis(c.channels, 1), Axis(taps, c.channels), Axis(c.outs, taps * c.channels))
    result = TensorMap(
        *c.result, c.ty, (Axis(c.plane, 1), Axis(c.outs, c.plane), Axis(c.examples, c.outs * c.plane)),
        (LINE_ELEMENTS, ROWS, 1),
    )  # fmt: skip
    factors = (
        TensorMap(*c.weight, c.ty, weight, box),
        seen_map(c, (LINE_ELEMENTS, tile.columns // tile.below)),
    )
    copied = c.plane % LINE_ELEMENTS == 0 and result.suits and not tile.shares  # a box has windows of one example
    return (*factors, result) if copied else factors


def seen_map(c: Convolution, box: tuple[int, int]) -> TensorMap:
    """The map of what a tap of each window sees."""
    (height, width), line = c.space, c.space[1] * c.channels
    axes = (Axis(c.channels, 1), Axis(width, c.channels), Axis(height, line), Axis(c.examples, height * line))
    windows = Windows.of(c.space, c.kernel, c.windows, c.stride, c.dilation, c.before)
    return TensorMap(*c.input, c.ty, axes, box, windows)


def begin(k: Kernel, c: Convolution, window: str) -> list[str]:
    """Where a window begins in the input: across, down, and its example."""
    example, place = k.divided(window, c.plane)
    down, across = k.divided(place, c.windows[1])
    places = zip((across, down), c.stride[::-1], c.before[::-1], strict=True)
    return [*(k.op("mad.lo.s32", at, step, -before) for at, step, before in places), example]


def beyond(k: Kernel, c: Convolution, tap: str) -> list[str]:
    """How far a tap lies from where a window begins, across and down."""
    down, across = k.divided(tap, c.kernel[1])
    places = zip((across, down), c.dilation[::-1], strict=True)
    return [k.op("cvt.u16.u32", k.mul(at, step), kind="b16") for at, step in places]


def convolution_kernel(c: Convolution, tile: Tile, record: int, result: int) -> str:
    """The kernel's text, for a record as products have it."""
    return _Writer(c, tile, record, result).text()


class PlanesWriter(ProductWriter):
    """A product whose columns are places of planes: a row has a plane for each example."""

    plane: int  # elements from one row to the next
    pairs: bool  # whether columns 2n and 2n + 1 are neighbours in memory, both there or neither

    def target(self, start: str, column: str, places: Sequence[str]) -> tuple[str, str]:
        """The address of a column's element, of the row that starts at an address; and whether there is one."""
        raise NotImplementedError

    def store(self, number: str, group: str, me: str, sums: Sequence[Sequence[str]]) -> None:
        """Round the sums of a tile and store those that lie within the result.

        Each warp puts its 16 rows of 64 columns into shared memory, and then stores row by row, so that its threads
        have neighbouring columns.
        """
        k, p, tile = self.k, self.p, self.tile
        row, column, places = self.corner(number)
        lane, warp = k.op("and.b32", me, WARP - 1), k.op("shr.u32", me, 5)
        start = k.op("cvta.to.global.u64", k.word(self.result), kind="b64")
        start = k.op("add.u64", start, p.c.offset, kind="b64")
        row = k.add(row, k.op("mad.lo.u32", group, len(sums) * ROWS, k.mul(warp, HELD_ROWS)))
        memory = k.op("mad.lo.u32", group, HELD * BLOCK_BYTES, k.add(self.base, self.staged))
        memory = k.op("mad.lo.u32", warp, HELD_ROWS * LINE, memory)
        into, chunks = self.held_chunks(lane, memory)
        # Where a thread finds its element, or two, of a row: chunks are exchanged by the row's number.
        each = 2 if self.pairs else 1
        found = []
        for part in range(2 // each):
            mine = k.add(k.op("shr.u32", lane, 2 if self.pairs else 3), 4 * part)
            within = k.op("mad.lo.u32", k.op("and.b32", lane, 8 // each - 1), 2 * each, memory)
            found.append([k.op("mad.lo.u32", k.op("xor.b32", mine, n), 16, within) for n in range(SWIZZLE_ROWS)])
        own = k.op("mad.lo.u32", lane, each, column)
        k.lines.append("    bar.warp.sync 0xffffffff;")
        at = 0
        for high, line_sums in enumerate(sums):
            top = k.add(row, high * ROWS)
            begin = k.op("mad.wide.u32", top, 2 * self.plane, start, kind="b64")
            inside = [k.less(k.add(top, lower), p.m) for lower in range(1 if p.m % HELD_ROWS == 0 else HELD_ROWS)]
            for block in range(tile.columns // LINE_ELEMENTS):
                self.hold(into, chunks, line_sums[block * 32 :][:32], at * BLOCK_BYTES)
                k.lines.append("    bar.warp.sync 0xffffffff;")
                for part, positions in enumerate(found):
                    there = k.add(own, block * LINE_ELEMENTS + part * WARP)
                    target, valid = self.target(begin, there, places)
                    when = [k.op("and.pred", valid, one, kind="pred") for one in inside]
                    kind = "b32" if self.pairs else "b16"
                    values = []
                    for lower in range(HELD_ROWS):
                        where = f"[{positions[lower % SWIZZLE_ROWS]}+{lower * LINE + at * BLOCK_BYTES}]"
                        values.append(k.op(f"ld.shared.{kind}", where, kind=kind))
                    for lower, value in enumerate(values):
                        where = f"[{target}+{2 * lower * self.plane}]"
                        k.do(f"st.global.{kind}", where, value, when=when[lower % len(when)])
                at = (at + 1) % HELD


class _Writer(PlanesWriter):
    def __init__(self, c: Convolution, tile: Tile, record: int, result: int) -> None:
        self.c, self.plane, self.pairs = c, c.plane, c.plane % 2 == 0
        super().__init__(c.product, tile, len(maps(c, tile)), record, result)

    # --- the thread that has slabs copied -------------------------------------------------------------

    def find(self, column: str) -> Sequence[str]:
        return begin(self.k, self.c, column)

    def bring_left(self, target: str, row: str, slab: str, places: Sequence[str], full: str) -> None:
        tap, channel = self._term(slab)
        rings.bring(self.k, target, self.maps[0], [channel, tap, row], full)

    def bring_right(
        self, target: str, columns: Sequence[str], slab: str, places: Sequence[str], full: str, everyone: str | None
    ) -> None:
        tap, channel = self._term(slab)
        away = beyond(self.k, self.c, tap)
        rings.bring(self.k, target, self.maps[1], [channel, *columns], full, everyone, away)

    def _term(self, slab: str) -> tuple[str, str]:
        """The tap of a slab, and its first channel."""
        tap, block = self.k.divided(slab, self.c.blocks)
        return tap, self.k.mul(block, DEPTH)

    # --- results --------------------------------------------------------------------------------------

    def send_box(self, column: str, top: str, places: Sequence[str], source: str) -> None:
        example, place = self.k.divided(column, self.c.plane)
        rings.send(self.k, self.maps[2], [place, top, example], source)

    def target(self, start: str, column: str, places: Sequence[str]) -> tuple[str, str]:
        k, c = self.k, self.c
        example, place = k.divided(column, c.plane)
        target = k.op("mad.wide.u32", example, 2 * c.outs * c.plane, start, kind="b64")
        return k.op("mad.wide.u32", place, 2, target, kind="b64"), k.less(column, self.p.n)

    def store(self, number: str, group: str, me: str, sums: Sequence[Sequence[str]]) -> None:
        if not self.tile.shares:
            super().store(number, group, me, sums)
            return
        k, p, c, tile = self.k, self.p, self.c, self.tile
        row, column, _ = self.corner(number)
        columns = tile.columns // tile.parts
        column = k.op("mad.lo.u32", self.rank, columns, column)
        start = k.op("cvta.to.global.u64", k.word(self.result), kind="b64")
        start = k.op("add.u64", start, c.result[1], kind="b64")
        lane = k.op("and.b32", me, WARP - 1)
        row = k.add(row, k.op("mad.lo.u32", group, len(sums) * ROWS, k.mul(k.op("shr.u32", me, 5), 16)))
        row = k.add(row, k.op("shr.u32", lane, 2))
        start = k.op("mad.wide.u32", row, 2 * c.plane, start, kind="b64")
        column = k.op("mad.lo.u32", k.op("and.b32", lane, 3), 2, column)
        further = [high * ROWS + 8 * half for high in range(len(sums)) for half in range(2)]
        inside = [k.less(k.add(row, lower), p.m) for lower in further]
        each = 2 if self.pairs else 1  # how many are stored at once
        for eight in range(columns // 8):
            pairs = [line[4 * eight + 2 * half :][:2] for line in sums for half in range(2)]
            packed = [self.rounded(*pair) for pair in pairs]
            for odd in range(2 // each):
                target, there = self.target(start, k.add(column, 8 * eight + odd), ())
                for lower, valid, both in zip(further, inside, packed, strict=True):
                    when = k.op("and.pred", there, valid, kind="pred")
                    where = f"[{target}+{2 * lower * c.plane}]"
                    if each == 2:
                        k.do("st.global.b32", where, both, when=when)
                    else:
                        halves = [k.register("b16"), k.register("b16")]
                        k.do("mov.b32", listed(halves), both)
                        k.do("st.global.b16", where, halves[odd], when=when)
