"""What products for machines of blocks multiply: matrices, or what convolutions see as matrices that lie nowhere.

Comes in: a node that is a product of matrices, or one of the three products of a convolution. Goes out: a `Problem`,
which tells `block_products.py` the extents, where each term of each line of both factors lies, and where results go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from eshkol.atlas.types import Type
from eshkol.graph.node import Node
from eshkol.ops.correlation import FORMS, Form
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.products import dense
from eshkol.schedule.kernels.scalars import INDEX, Scalar
from eshkol.schedule.kernels.tiling import Tiling

TURN = 4  # tiles side by side that read the same weight, from which on it is turned


class Source(Protocol):
    """Memory that elements are read from."""

    @property
    def shape(self) -> Shape: ...

    def load(self, position: Scalar) -> Scalar:
        """The element at a flat position."""


class Factor(Protocol):
    """One of the two matrices, wherever its elements come from; rows of the left one and columns of the right one are
    called lines."""

    @property
    def read(self) -> Source: ...

    @property
    def deep(self) -> bool:
        """Whether neighbours in a line lie side by side in memory, and not neighbouring lines."""

    def line(self, place: Scalar) -> Any:
        """What can be told about a line before its terms are asked for."""

    def element(self, line: Any, slab: Scalar, term: Scalar) -> tuple[Scalar, Scalar | None]:
        """Where a term of a line lies, told by the first term of its slab and how far beyond that it is; and whether it
        lies anywhere: else it is 0."""


class Result(Protocol):
    """Where elements of the result are written: the sum of what the row and the column say."""

    def row(self, place: Scalar) -> Scalar: ...

    def column(self, place: Scalar) -> Scalar: ...


class Problem(Protocol):
    batch: int
    extents: tuple[int, int, int]  # rows, columns, and terms of each sum

    turned: int  # elements of the second input that a kernel of its own puts in the order of terms; 0: it is as it is

    def settle(self, cut: Tiling) -> None:
        """Choose the order of terms for a tiling."""

    def source(self, e: Emitter, read: Source, place: Scalar) -> Scalar:
        """Where the element lies that stands at a place once they are turned."""

    def factors(self, e: Emitter, reads: Sequence[Source], which: Scalar) -> tuple[Factor, Factor]:
        """The factors of one product of the batch."""

    def result(self, e: Emitter, which: Scalar) -> Result: ...


@dataclass(frozen=True, slots=True)
class _Strided:
    """A matrix that lies in memory: lines and terms so far apart."""

    read: Source
    start: Scalar
    lines: int
    terms: int

    @property
    def deep(self) -> bool:
        return self.terms == 1

    def line(self, place: Scalar) -> Scalar:
        return self.start + place * self.lines

    def element(self, line: Scalar, slab: Scalar, term: Scalar) -> tuple[Scalar, None]:
        return line + (slab + term) * self.terms, None


@dataclass(frozen=True, slots=True)
class Dense:
    """A result that is a matrix in memory."""

    start: Scalar
    width: int

    def row(self, place: Scalar) -> Scalar:
        return self.start + place * self.width

    def column(self, place: Scalar) -> Scalar:
        return place


class Matrices:
    """A product of matrices, with batches that broadcast. All is read as it lies."""

    turned = 0

    def __init__(self, node: Node) -> None:
        x, y = node.inputs
        self.shape = node.shape[:-2]
        self.batch = count(self.shape)
        self.extents = x.shape[-2], y.shape[-1], x.shape[-1]

    def settle(self, cut: Tiling) -> None:
        """That makes no difference here."""

    def source(self, e: Emitter, read: Source, place: Scalar) -> Scalar:
        return place

    def factors(self, e: Emitter, reads: Sequence[Source], which: Scalar) -> tuple[Factor, Factor]:
        _, columns, terms = self.extents
        places = digits(e, which, self.shape)
        left, right = (batch_start(e, read.shape, places) for read in reads)
        return _Strided(reads[0], left, terms, 1), _Strided(reads[1], right, 1, columns)

    def result(self, e: Emitter, which: Scalar) -> Result:
        rows, columns, _ = self.extents
        return Dense(which * (rows * columns), columns)


def batch_start(e: Emitter, shape: Shape, places: Sequence[Scalar]) -> Scalar:
    """Where the matrix begins that stands at these places of a batch, to which one of this shape broadcasts."""
    start, lead = e.number(0), shape[:-2]
    for axis, place in zip(range(len(lead)), places[len(places) - len(lead) :], strict=True):
        if lead[axis] != 1:
            start = start + place * count(shape[axis + 1 :])
    return start


def digits(e: Emitter, flat: Scalar, extents: Sequence[int]) -> list[Scalar]:
    """The places that a flat position has along axes."""
    return [e.digit(flat, count(tuple(extents[k + 1 :])), n) for k, n in enumerate(extents)]


# --- convolutions ---------------------------------------------------------------------------------


def correlation(node: Node) -> Correlation:
    """The convolution that a node is."""
    x, weight = node.inputs
    return Correlation(FORMS[node.op](node.attrs, x, weight), x.shape, weight.shape, node.shape)


class Correlation:
    """A convolution: its rows are the outs, its columns windows of all examples, its terms channels and taps.

    Terms come tap by tap where all terms of a slab then have one tap: what windows see is found once for each slab.
    Where many tiles read the weight it is turned first, so that outs lie side by side: taps of one out and channel do,
    and lanes that read one tap of each would fetch all of them each time.
    """

    def __init__(self, form: Form, x: Shape, weight: Shape, result: Shape) -> None:
        self.form = form
        self.space, self.kernel, self.windows = x[3:], weight[3:], result[3:]
        self.steps = {name: dense(shape) for name, shape in (("x", x), ("weight", weight), ("result", result))}
        self.examples, self.batch, self.channels = (x[k] for k in form.x)
        self.outs, self.taps = weight[form.weight[1]], count(self.kernel)
        self.extents = self.outs, self.examples * count(self.windows), self.channels * self.taps
        self.deep = self.taps > count(self.windows)  # as where it gives the derivative of a weight
        self.by_taps, self.depth, self.turned = False, 1, 0

    @property
    def suits(self) -> bool:
        """Whether it is much like a product: of few rows or short sums a tile would be mostly empty."""
        return self.outs > 2 and self.extents[2] > 2

    def settle(self, cut: Tiling) -> None:
        self.depth = cut.tile.depth
        self.by_taps = not self.deep and self.channels % self.depth == 0
        if not self.deep and self.taps > 1 and cut.across >= TURN:
            self.turned = self.batch * self.outs * self.extents[2]

    def source(self, e: Emitter, read: Source, place: Scalar) -> Scalar:
        group, term, out = digits(e, place, (self.batch, self.extents[2], self.outs))
        weight = _Taps(self, e, read, group)
        return weight.element(weight.line(out), term // self.depth * self.depth, term % self.depth)[0]

    def step(self, of: str, part: int) -> int:
        """How far apart, say, the channels of the weight lie."""
        axes: tuple[int, int, int] = getattr(self.form, of)
        return self.steps[of][axes[part]]

    def factors(self, e: Emitter, reads: Sequence[Source], which: Scalar) -> tuple[Factor, Factor]:
        x, weight = reads
        windows = _Windows(self, e, x, which)
        if self.turned:
            return _Strided(weight, which * (self.turned // self.batch), 1, self.outs), windows
        return _Taps(self, e, weight, which), windows

    def result(self, e: Emitter, which: Scalar) -> Result:
        return _Seen(self, e, which)

    def term(self, e: Emitter, slab: Scalar, term: Scalar) -> tuple[Scalar, Scalar]:
        """The channel and the tap of a term."""
        if self.by_taps:
            # Said so that ranges show it to be a channel: that slabs start at multiples of the depth is not seen there.
            first = slab // self.depth % (self.channels // self.depth) * self.depth
            return first + term, e.digit(slab, self.channels, self.taps)
        return e.digit(slab + term, self.taps, self.channels), (slab + term) % self.taps


class _Taps:
    """The weight, whose lines are outs."""

    def __init__(self, c: Correlation, e: Emitter, read: Source, group: Scalar) -> None:
        self.c, self.e, self.read = c, e, read
        self.start = group * c.step("weight", 0)
        self.deep = c.deep or c.step("weight", 2) <= c.step("weight", 1)

    def line(self, place: Scalar) -> Scalar:
        return self.start + place * self.c.step("weight", 1)

    def element(self, line: Scalar, slab: Scalar, term: Scalar) -> tuple[Scalar, None]:
        c = self.c
        if not c.by_taps and not c.form.around and c.step("weight", 2) == c.taps:
            return line + (slab + term), None
        channel, tap = c.term(self.e, slab, term)
        return line + channel * c.step("weight", 2) + (c.taps - 1 - tap if c.form.around else tap), None


class Windows:
    """Where windows see places of x."""

    def __init__(self, c: Correlation, e: Emitter) -> None:
        self.c, self.e = c, e

    def begins(self, window: Sequence[Scalar]) -> list[Scalar]:
        """Where a window begins along each axis."""
        return [w * stride for w, stride in zip(window, self.c.form.geometry.stride, strict=True)]

    def place(self, begins: Sequence[Scalar], tap: Sequence[Scalar]) -> tuple[Scalar, Scalar | None]:
        """The flat place in x that a tap of a window sees; and whether it is one."""
        position, valid, c = self.e.number(0), None, self.c
        for axis, (begin, place) in enumerate(zip(begins, tap, strict=True)):
            seen, inside = self._place(axis, begin + place * c.form.geometry.dilation[axis])
            position = position + seen * count(c.space[axis + 1 :])
            valid = inside if valid is None else self.e.both(valid, inside)
        return position, valid

    def _place(self, axis: int, seen: Scalar) -> tuple[Scalar, Scalar]:
        """The place in x of what is seen, in the extents of x; and whether it is one."""
        e, extent = self.e, self.c.space[axis]
        (before, _), spread = self.c.form.geometry.padding[axis], self.c.form.geometry.input_dilation[axis]
        if before < 0:
            seen, before = seen + -before, 0
        inside = e.both(e.compare("GE", seen, before), e.compare("LT", seen, before + (extent - 1) * spread + 1))
        place = at_least(e, seen, before) - before
        if spread > 1:
            inside = e.both(inside, e.compare("EQ", place % spread, 0))
        return at_most(e, place // spread, extent - 1), inside


class _Windows(Windows):
    """What windows see of x: lines are windows of all examples."""

    def __init__(self, c: Correlation, e: Emitter, read: Source, group: Scalar) -> None:
        super().__init__(c, e)
        self.read, self.deep = read, c.deep
        self.start = group * c.step("x", 1)

    def line(self, place: Scalar) -> tuple[Scalar, list[Scalar]]:
        c = self.c
        example, *windows = digits(self.e, place, (c.examples, *c.windows))
        return self.start + example * c.step("x", 0), self.begins(windows)

    def element(self, line: tuple[Scalar, list[Scalar]], slab: Scalar, term: Scalar) -> tuple[Scalar, Scalar | None]:
        c, (position, begins) = self.c, line
        channel, tap = c.term(self.e, slab, term)
        place, valid = self.place(begins, digits(self.e, tap, c.kernel))
        return position + place + channel * c.step("x", 2), valid


class _Seen:
    """The result of a convolution."""

    def __init__(self, c: Correlation, e: Emitter, group: Scalar) -> None:
        self.c, self.e, self.start = c, e, group * c.step("result", 1)

    def row(self, place: Scalar) -> Scalar:
        return self.start + place * self.c.step("result", 2)

    def column(self, place: Scalar) -> Scalar:
        windows = count(self.c.windows)
        example = self.e.digit(place, windows, self.c.examples)
        return example * self.c.step("result", 0) + place % windows


def at_most(e: Emitter, place: Scalar, last: int) -> Scalar:
    """A place, or the last one if it lies behind that."""
    return place if place.most is not None and place.most <= last else _bounded(e, "MIN", place, last)


def at_least(e: Emitter, place: Scalar, first: int) -> Scalar:
    return place if place.least >= first else _bounded(e, "MAX", place, first)


def _bounded(e: Emitter, name: str, place: Scalar, bound: int) -> Scalar:
    register = e.fresh(Type.U32)
    e.record(name, register, e.register(place, Type.U32), e.register(e.number(bound), Type.U32))
    assert place.most is not None
    choose = min if name == "MIN" else max
    return Scalar(e, INDEX, register, most=choose(place.most, bound), least=choose(place.least, bound))
