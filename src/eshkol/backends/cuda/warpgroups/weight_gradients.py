"""Gradients towards what all examples share, weights of convolutions, of 16-bit floats on Hopper.

Comes in: a `WeightGradient`, of an input and a cotangent with channels last; or a `Summed`, of ones that are matrices
with terms side by side, as those of a convolution of one tap are. Goes out: the kernel as PTX, and tensor maps. It is
that of `products.py`: terms are windows, of which the machine brings 64 at a time, with what one tap of each sees.
Where there are few tiles, parts of the windows are summed each for themselves. Sums are stored as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from eshkol.atlas.types import Type
from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.convolutions import Convolution, begin, beyond, seen_map
from eshkol.backends.cuda.warpgroups.maps import LINE_ELEMENTS, Axis, TensorMap
from eshkol.backends.cuda.warpgroups.products import BLOCK_BYTES, DEPTH, Matrices, Product, ProductWriter, Tile, lines
from eshkol.backends.cuda.warpgroups.ptx import WARP, listed
from eshkol.backends.cuda.warpgroups.ring import ROWS

PAIR_BYTES = 8  # of two sums that are stored at once


@dataclass(frozen=True)
class WeightGradient:
    """Sums over windows of cotangent times what each tap sees: parts × outs × kernel × channels, of float32.

    The convolution's `weight` is what is found, and its `result` the cotangent, examples × windows × outs. A part has
    so many windows, of all examples one after another.
    """

    convolution: Convolution
    each: int
    parts: int

    @property
    def product(self) -> Product:
        """rows: outs    columns: taps, channels    terms: windows"""
        c = self.convolution
        columns = prod(c.kernel) * c.blocks * DEPTH
        a, b, found = (
            Matrices(*x, distance, turned, (0,))
            for x, distance, turned in ((c.result, c.outs, True), (c.input, c.channels, False), (c.weight, 0, False))
        )
        return Product(c.ty, c.outs, columns, self.each, (self.parts,), a, b, found)


@dataclass(frozen=True)
class Summed:
    """The sum of A · Bᵀ over a batch: parts × rows × columns, of float32; A is batch × rows × terms, B likewise.

    Operands are names of buffers, and bytes from which on they lie there. A part has so many slabs, of all products.
    """

    ty: Type
    batch: int
    rows: int
    columns: int
    terms: int
    each: int
    parts: int
    a: tuple[str, int]
    b: tuple[str, int]
    result: tuple[str, int]

    @property
    def product(self) -> Product:
        a, b = (Matrices(*x, self.terms, turned, (0,)) for x, turned in ((self.a, False), (self.b, True)))
        found = Matrices(*self.result, self.columns, False, (0,))
        return Product(self.ty, self.rows, self.columns, self.each * DEPTH, (self.parts,), a, b, found)


def maps(g: WeightGradient) -> tuple[TensorMap, ...]:
    """The tensor maps of the cotangent and the input."""
    c, box = g.convolution, (LINE_ELEMENTS, DEPTH)
    rows = (Axis(c.outs, 1), Axis(c.examples * c.plane, c.outs))
    return TensorMap(*c.result, c.ty, rows, box), seen_map(c, box)


def summed_maps(s: Summed, tile: Tile) -> tuple[TensorMap, ...]:
    """The tensor maps of A and B."""
    sides = ((s.a, s.rows, lines(s.product, tile)), (s.b, s.columns, tile.columns))
    return tuple(
        TensorMap(
            *x, s.ty, (Axis(s.terms, 1), Axis(many, s.terms), Axis(s.batch, many * s.terms)), (LINE_ELEMENTS, high, 1)
        )
        for x, many, high in sides
    )


def gradient_kernel(g: WeightGradient, tile: Tile, record: int, result: int) -> str:
    """The kernel's text, for a record as products have it."""
    return _GradientWriter(g, tile, record, result).text()


def summed_kernel(s: Summed, tile: Tile, record: int, result: int) -> str:
    """Likewise."""
    return _SummedWriter(s, tile, record, result).text()


class _SumsWriter(ProductWriter):
    """A product of which sums are stored."""

    line: int  # elements of a row of the result

    def place(self, column: str) -> tuple[str, str]:
        """Where a column lies in a row of the result, and whether it does; that behind an even one does with it."""
        raise NotImplementedError

    def store(self, number: str, group: str, me: str, sums: Sequence[Sequence[str]]) -> None:
        """Store the sums of a tile that lie within the result."""
        k, p, line = self.k, self.p, self.line
        row, column, places = self.corner(number)
        lane = k.op("and.b32", me, WARP - 1)
        row = k.add(row, k.op("mad.lo.u32", group, len(sums) * ROWS, k.mul(k.op("shr.u32", me, 5), 16)))
        row = k.add(row, k.op("shr.u32", lane, 2))
        start = k.op("cvta.to.global.u64", k.word(self.result), kind="b64")
        start = k.op("add.u64", start, p.c.offset, kind="b64")
        start = k.op("mad.wide.u32", places[0], 4 * p.m * line, start, kind="b64")
        start = k.op("mad.wide.u32", row, 4 * line, start, kind="b64")
        column = k.op("mad.lo.u32", k.op("and.b32", lane, 3), 2, column)
        further = [high * ROWS + 8 * half for high in range(len(sums)) for half in range(2)]
        inside = [k.less(k.add(row, lower), p.m) for lower in further]
        for eight in range(self.tile.columns // 8):
            at, there = self.place(k.add(column, 8 * eight))
            target = k.op("mad.wide.u32", at, 4, start, kind="b64")
            pairs = [some[4 * eight + 2 * half :][:2] for some in sums for half in range(2)]
            for lower, valid, pair in zip(further, inside, pairs, strict=True):
                when = k.op("and.pred", there, valid, kind="pred")
                k.do("st.global.v2.f32", f"[{target}+{4 * lower * line}]", listed(pair), when=when)


class _GradientWriter(_SumsWriter):
    def __init__(self, g: WeightGradient, tile: Tile, record: int, result: int) -> None:
        self.g, self.c = g, g.convolution
        self.line = prod(self.c.kernel) * self.c.channels
        super().__init__(g.product, tile, len(maps(g)), record, result)

    def _window(self, slab: str, places: Sequence[str]) -> str:
        """The first window of a slab of a part."""
        return self.k.op("mad.lo.u32", places[0], self.g.each, self.k.mul(slab, DEPTH))

    def _term(self, column: str) -> tuple[str, str]:
        """The tap of a column, no further than the last, and its channel."""
        k, c = self.k, self.c
        tap, channel = k.divided(column, c.blocks * DEPTH)
        return k.op("min.u32", tap, prod(c.kernel) - 1), channel

    def find(self, column: str) -> Sequence[str]:
        """Of each 64 columns the channel that they begin with, and how far their tap lies across and down."""
        k, found = self.k, []
        for block in range(self.tile.columns // LINE_ELEMENTS):
            tap, channel = self._term(k.add(column, block * LINE_ELEMENTS))
            found += [channel, *beyond(k, self.c, tap)]
        return found

    def bring_left(self, target: str, row: str, slab: str, places: Sequence[str], full: str) -> None:
        k, window = self.k, self._window(slab, places)
        for block in range(self.tile.rows // LINE_ELEMENTS):
            at = [k.add(row, block * LINE_ELEMENTS), window]
            rings.bring(k, k.add(target, block * BLOCK_BYTES), self.maps[0], at, full)

    def bring_right(
        self, target: str, columns: Sequence[str], slab: str, places: Sequence[str], full: str, everyone: str | None
    ) -> None:
        k = self.k
        begins = begin(k, self.c, self._window(slab, places))
        for block in range(self.tile.columns // LINE_ELEMENTS):
            channel, *tap = columns[3 * block :][:3]
            there = k.add(target, block * BLOCK_BYTES)
            rings.bring(k, there, self.maps[1], [channel, *begins], full, everyone, tap)

    def place(self, column: str) -> tuple[str, str]:
        k, c = self.k, self.c
        tap, channel = self._term(column)
        there = k.op("and.pred", k.less(column, self.p.n), k.less(channel, c.channels), kind="pred")
        return k.op("mad.lo.u32", tap, c.channels, channel), there


class _SummedWriter(_SumsWriter):
    def __init__(self, s: Summed, tile: Tile, record: int, result: int) -> None:
        self.s, self.line = s, s.columns
        super().__init__(s.product, tile, len(summed_maps(s, tile)), record, result)

    def _terms(self, slab: str, places: Sequence[str]) -> tuple[str, str]:
        """The first term of a slab of a part, and its product."""
        k, s = self.k, self.s
        which, piece = k.divided(k.op("mad.lo.u32", places[0], s.each, slab), -(-s.terms // DEPTH))
        return k.mul(piece, DEPTH), which

    def bring_left(self, target: str, row: str, slab: str, places: Sequence[str], full: str) -> None:
        term, which = self._terms(slab, places)
        rings.bring(self.k, target, self.maps[0], [term, row, which], full)

    def bring_right(
        self, target: str, columns: Sequence[str], slab: str, places: Sequence[str], full: str, everyone: str | None
    ) -> None:
        term, which = self._terms(slab, places)
        rings.bring(self.k, target, self.maps[1], [term, columns[0], which], full, everyone)

    def place(self, column: str) -> tuple[str, str]:
        return column, self.k.less(column, self.p.n)
