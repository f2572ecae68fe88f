"""Gradients of convolutions with strides towards the input, of 16-bit floats on Hopper.

Comes in: a `SpreadGradient`, of a cotangent with channels last. Goes out: the kernel as PTX, and tensor maps. A place
of the input meets only the taps that lie whole strides from where windows begin. So the places that have the same rest,
of height and width, by the strides are a convolution of the cotangent without any stride, with some of the taps: the
products of all rests are a batch, each with its own number of slabs. Where there are no such taps the result is zero,
the product of a slab of zeros, which the machine's copies bring for channels that are not there.

    rows: channels of the input    columns: examples, places of a rest    terms: taps of the rest, outs

Along an axis, of place stride·q + rest, tap first + stride·i meets cotangent q + begin - i:

    first = (rest + before) mod stride        begin = (rest + before) div stride
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from eshkol.backends.cuda.warpgroups import ring as rings
from eshkol.backends.cuda.warpgroups.convolutions import Convolution, Pair, PlanesWriter, begin, seen_map
from eshkol.backends.cuda.warpgroups.maps import LINE_ELEMENTS, Axis, TensorMap
from eshkol.backends.cuda.warpgroups.products import DEPTH, Matrices, Product, Tile, lines


@dataclass(frozen=True)
class SpreadGradient:
    """The gradient of a convolution, whose numbers these are, but for `weight`: channels × kernel × outs.

    Its `result` is the cotangent, examples × windows × outs, and its `input` is what is found.
    """

    forward: Convolution

    @property
    def most(self) -> Pair:
        """Taps of a rest, at most."""
        down, across = (-(-k // s) for k, s in zip(self.forward.kernel, self.forward.stride, strict=True))
        return down, across

    @property
    def places(self) -> Pair:
        """Places of a rest, some of which may lie behind the input."""
        down, across = (-(-n // s) for n, s in zip(self.forward.space, self.forward.stride, strict=True))
        return down, across

    @property
    def seen(self) -> Convolution:
        """The convolution without stride whose windows begin where the first cotangent lies that any tap meets."""
        f = self.forward
        last = [(s - 1 + before) // s for s, before in zip(f.stride, f.before, strict=True)]
        down, across = (far + n for far, n in zip(last, self.most, strict=True))
        before = self.most[0] - 1, self.most[1] - 1
        return Convolution(
            f.ty, f.examples, f.outs, f.channels, f.windows, (down, across), self.places, (1, 1), (1, 1), before,
            f.weight, f.result, f.input,
        )  # fmt: skip

    @property
    def product(self) -> Product:
        """With as many terms as there are on average."""
        c, f = self.seen, self.forward
        rests = prod(f.stride)
        terms = -(-prod(f.kernel) // rests) * c.blocks * DEPTH
        a, b = (Matrices(*x, terms, turned, (0,)) for x, turned in ((f.weight, False), (f.result, True)))
        found = Matrices(*f.input, prod(f.space), False, (0,))
        return Product(f.ty, f.channels, f.examples * prod(self.places), terms, (rests,), a, b, found)


def maps(g: SpreadGradient, tile: Tile) -> tuple[TensorMap, ...]:
    """The tensor maps of the weight and the cotangent."""
    f, taps = g.forward, prod(g.forward.kernel)
    weight = (Axis(f.outs, 1), Axis(taps, f.outs), Axis(f.channels, taps * f.outs))
    box = (LINE_ELEMENTS, 1, lines(g.product, tile))
    return TensorMap(*f.weight, f.ty, weight, box), seen_map(g.seen, (LINE_ELEMENTS, tile.columns))


def spread_kernel(g: SpreadGradient, tile: Tile, record: int, result: int) -> str:
    """The kernel's text, for a record as products have it."""
    return _Writer(g, tile, record, result).text()


class _Writer(PlanesWriter):
    def __init__(self, g: SpreadGradient, tile: Tile, record: int, result: int) -> None:
        self.g, self.c, self.plane, self.pairs = g, g.seen, prod(g.forward.space), False
        super().__init__(g.product, tile, len(maps(g, tile)), record, result)

    def _rests(self, places: Sequence[str]) -> list[str]:
        """Down and across; those with most taps come first where the last rest has them, as with odd kernels."""
        k, stride = self.k, self.g.forward.stride
        return list(k.divided(k.op("sub.u32", k.number(prod(stride) - 1), places[0]), stride[1]))

    def _taps(self, rest: str, axis: int) -> tuple[str, str, str]:
        """Of a rest: its first tap, how many there are, and the cotangent that the first one of place 0 meets."""
        k, f = self.k, self.g.forward
        start, first = k.divided(k.add(rest, f.before[axis]), f.stride[axis])
        room = k.op("sub.u32", k.number(f.kernel[axis] + f.stride[axis] - 1), first)
        return first, k.divided(room, f.stride[axis])[0], start

    def span_of(self, number: str, first: str | int, last: str | int) -> tuple[str | int, str | int]:
        k = self.k
        down, across = (self._taps(rest, axis)[1] for axis, rest in enumerate(self._rests(self.corner(number)[2])))
        return 0, k.op("max.u32", k.mul(k.op("mul.lo.u32", down, across), self.c.blocks), 1)

    def _term(self, slab: str, places: Sequence[str]) -> tuple[str, str, list[str]]:
        """The channel that a slab begins with, its tap, and how far that lies from where windows begin."""
        k, g, c = self.k, self.g, self.c
        number, block = k.divided(slab, c.blocks)
        (top, down, high), (left, across, wide) = (self._taps(x, n) for n, x in enumerate(self._rests(places)))
        some = k.op("max.u32", across, 1)
        below = k.op("div.u32", number, some)
        beside = k.op("sub.u32", number, k.op("mul.lo.u32", below, some))
        rows = k.op("mad.lo.u32", below, g.forward.stride[0], top)
        tap = k.op("mad.lo.u32", rows, g.forward.kernel[1], k.op("mad.lo.u32", beside, g.forward.stride[1], left))
        nothing = k.equal(k.op("mul.lo.u32", down, across), 0)
        channel = k.op("selp.u32", k.number(c.blocks * DEPTH), k.mul(block, DEPTH), nothing)
        ahead = zip((wide, high), (beside, below), g.most[::-1], strict=True)
        away = [k.op("sub.u32", k.add(start, most - 1), by) for start, by, most in ahead]
        return channel, tap, [k.op("cvt.u16.u32", x, kind="b16") for x in away]

    def find(self, column: str) -> Sequence[str]:
        return begin(self.k, self.c, column)

    def bring_left(self, target: str, row: str, slab: str, places: Sequence[str], full: str) -> None:
        channel, tap, _ = self._term(slab, places)
        rings.bring(self.k, target, self.maps[0], [channel, tap, row], full)

    def bring_right(
        self, target: str, columns: Sequence[str], slab: str, places: Sequence[str], full: str, everyone: str | None
    ) -> None:
        channel, _, away = self._term(slab, places)
        rings.bring(self.k, target, self.maps[1], [channel, *columns], full, everyone, away)

    def target(self, start: str, column: str, places: Sequence[str]) -> tuple[str, str]:
        """Each element lies where its rest has it."""
        k, f, g = self.k, self.g.forward, self.g
        example, place = k.divided(column, prod(g.places))
        rows, columns = (
            k.op("mad.lo.u32", at, step, rest)
            for at, step, rest in zip(k.divided(place, g.places[1]), f.stride, self._rests(places), strict=True)
        )
        there = k.op("and.pred", k.less(column, self.p.n), k.less(rows, f.space[0]), kind="pred")
        there = k.op("and.pred", there, k.less(columns, f.space[1]), kind="pred")
        target = k.op("mad.wide.u32", example, 2 * f.channels * self.plane, start, kind="b64")
        flat = k.op("mad.lo.u32", rows, f.space[1], columns)
        return k.op("mad.wide.u32", flat, 2, target, kind="b64"), there
