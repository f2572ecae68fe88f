"""Products for machines of blocks: matrices, and convolutions seen as products of matrices that are nowhere written.

Comes in: a product of matrices, or one of the three products of a convolution. Goes out: a kernel in which each block
has a tile of the result. The block goes along the sums in slabs: it copies a slab of both factors into the memory that
its lanes share, and every lane multiplies what it needs of them into a tile of its own, whose sums it holds in
registers. While one slab is multiplied the next one is on its way, so that two of each lie in shared memory, and one
barrier for each slab is enough. Where tiles are too few to keep the machine at work the sums are cut into parts, which
a second kernel adds up.

Lanes beyond an edge read the last row or column again, and write nothing. Terms beyond the end of the sums are zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.types import Type
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.correlation import FORMS, Form
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.products import dense
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import INDEX, Scalar
from eshkol.schedule.kernels.tiling import Tiling, tiling

VECTOR = 4  # elements that a lane reads at once from shared memory, where they lie side by side
PATCH = (4, 8)  # lanes that run together, down and across: together they need few rows and columns
STRIP = 8  # tiles above each other whose blocks follow each other: they share what they read
PRODUCTS = frozenset({matrix_product, *FORMS})
PART = "part0"  # the memory of partial sums


def is_product(node: Node) -> bool:
    """Whether a node is computed here: its extents are not 0, and fit the registers of indices."""
    if node.op not in PRODUCTS or not all(0 < count(x.shape) < 1 << 31 for x in (*node.inputs, node)):
        return False
    return node.op is matrix_product or _correlation(node).suits


def block_product_kernels(node: Node, target: MachineDescription) -> tuple[Kernel, ...]:
    """The kernels of a product."""
    problem: _Problem = _Matrices(node) if node.op is matrix_product else _correlation(node)
    rows, columns, terms = problem.extents
    cut = tiling(problem.batch, rows, columns, terms, target, _working(node.dtype).size)
    problem.in_slabs_of(cut.tile.depth)
    kernel = _Writer(node, problem, cut).kernel()
    return (kernel,) if cut.parts == 1 else (kernel, _adding(node, problem, cut, target))


def _working(dtype: DType) -> DType:
    """In which dtype products are summed."""
    return dtypes.float32 if dtype.is_float and dtype.bits == 16 else dtype


# --- what is multiplied ---------------------------------------------------------------------------


class _Factor(Protocol):
    """One of the two matrices, wherever its elements come from; rows of the left one and columns of the right one are
    called lines."""

    read: Read
    deep: bool  # whether neighbours in a line lie side by side in memory, and not neighbouring lines

    def line(self, place: Scalar) -> Any:
        """What can be told about a line before its terms are asked for."""

    def element(self, line: Any, slab: Scalar, term: Scalar) -> tuple[Scalar, Scalar | None]:
        """Where a term of a line lies, told by the first term of its slab and how far beyond that it is; and whether it
        lies anywhere: else it is 0."""


class _Result(Protocol):
    """Where elements of the result are written: the sum of what the row and the column say."""

    def row(self, place: Scalar) -> Scalar: ...

    def column(self, place: Scalar) -> Scalar: ...


class _Problem(Protocol):
    batch: int
    extents: tuple[int, int, int]  # rows, columns, and terms of each sum

    def in_slabs_of(self, depth: int) -> None:
        """Say how many terms are taken at a time."""

    def factors(self, e: Emitter, reads: Sequence[Read], which: Scalar) -> tuple[_Factor, _Factor]:
        """The factors of one product of the batch."""

    def result(self, e: Emitter, which: Scalar) -> _Result: ...


@dataclass(frozen=True, slots=True)
class _Strided:
    """A matrix that lies in memory: lines and terms so far apart."""

    read: Read
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
class _Dense:
    """A result that is a matrix in memory."""

    start: Scalar
    width: int

    def row(self, place: Scalar) -> Scalar:
        return self.start + place * self.width

    def column(self, place: Scalar) -> Scalar:
        return place


class _Matrices:
    """A product of matrices, with batches that broadcast."""

    def __init__(self, node: Node) -> None:
        x, y = node.inputs
        self.shape = node.shape[:-2]
        self.batch = count(self.shape)
        self.extents = x.shape[-2], y.shape[-1], x.shape[-1]

    def in_slabs_of(self, depth: int) -> None:
        """That makes no difference here."""

    def factors(self, e: Emitter, reads: Sequence[Read], which: Scalar) -> tuple[_Factor, _Factor]:
        _, columns, terms = self.extents
        places = _digits(e, which, self.shape)
        left, right = (self._start(e, read.shape, places) for read in reads)
        return _Strided(reads[0], left, terms, 1), _Strided(reads[1], right, 1, columns)

    def _start(self, e: Emitter, shape: Shape, places: Sequence[Scalar]) -> Scalar:
        start = e.number(0)
        lead = shape[:-2]
        for axis, place in zip(range(len(lead)), places[len(places) - len(lead) :], strict=True):
            if lead[axis] != 1:
                start = start + place * count(shape[axis + 1 :])
        return start

    def result(self, e: Emitter, which: Scalar) -> _Result:
        rows, columns, _ = self.extents
        return _Dense(which * (rows * columns), columns)


def _digits(e: Emitter, flat: Scalar, extents: Sequence[int]) -> list[Scalar]:
    return [e.digit(flat, count(tuple(extents[k + 1 :])), n) for k, n in enumerate(extents)]


# --- convolutions ---------------------------------------------------------------------------------


def _correlation(node: Node) -> _Correlation:
    x, weight = node.inputs
    return _Correlation(FORMS[node.op](node.attrs, x, weight), x.shape, weight.shape, node.shape)


class _Correlation:
    """A convolution: its rows are the outs, its columns windows of all examples, its terms channels and taps.

    Terms come tap by tap where all terms of a slab then have one tap: what windows see is found once for each slab.
    """

    def __init__(self, form: Form, x: Shape, weight: Shape, result: Shape) -> None:
        self.form = form
        self.space, self.kernel, self.windows = x[3:], weight[3:], result[3:]
        self.steps = {name: dense(shape) for name, shape in (("x", x), ("weight", weight), ("result", result))}
        self.examples, self.batch, self.channels = (x[k] for k in form.x)
        self.outs, self.taps = weight[form.weight[1]], count(self.kernel)
        self.extents = self.outs, self.examples * count(self.windows), self.channels * self.taps
        self.deep = self.taps > count(self.windows)  # as where it gives the derivative of a weight
        self.by_taps = False

    @property
    def suits(self) -> bool:
        """Whether it is much like a product: of few rows or short sums a tile would be mostly empty."""
        return self.outs > 2 and self.extents[2] > 2

    def in_slabs_of(self, depth: int) -> None:
        self.by_taps = not self.deep and self.channels % depth == 0

    def step(self, of: str, part: int) -> int:
        """How far apart, say, the channels of the weight lie."""
        return self.steps[of][getattr(self.form, of)[part]]

    def factors(self, e: Emitter, reads: Sequence[Read], which: Scalar) -> tuple[_Factor, _Factor]:
        return _Taps(self, e, reads[1], which), _Windows(self, e, reads[0], which)

    def result(self, e: Emitter, which: Scalar) -> _Result:
        return _Seen(self, e, which)

    def term(self, e: Emitter, slab: Scalar, term: Scalar) -> tuple[Scalar, Scalar]:
        """The channel and the tap of a term."""
        if self.by_taps:
            return slab % self.channels + term, e.digit(slab, self.channels, self.taps)
        return e.digit(slab + term, self.taps, self.channels), (slab + term) % self.taps


class _Taps:
    """The weight, whose lines are outs."""

    def __init__(self, c: _Correlation, e: Emitter, read: Read, group: Scalar) -> None:
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


class _Windows:
    """What windows see of x: lines are windows of all examples."""

    def __init__(self, c: _Correlation, e: Emitter, read: Read, group: Scalar) -> None:
        self.c, self.e, self.read, self.deep = c, e, read, c.deep
        self.start = group * c.step("x", 1)

    def line(self, place: Scalar) -> tuple[Scalar, list[Scalar]]:
        c = self.c
        example, *windows = _digits(self.e, place, (c.examples, *c.windows))
        begins = [w * stride for w, stride in zip(windows, c.form.geometry.stride, strict=True)]
        return self.start + example * c.step("x", 0), begins

    def element(self, line: tuple[Scalar, list[Scalar]], slab: Scalar, term: Scalar) -> tuple[Scalar, Scalar | None]:
        c, (position, begins) = self.c, line
        channel, tap = c.term(self.e, slab, term)
        valid: Scalar | None = None
        for axis, (begin, place) in enumerate(zip(begins, _digits(self.e, tap, c.kernel), strict=True)):
            seen, inside = self._place(axis, begin + place * c.form.geometry.dilation[axis])
            position = position + seen * count(c.space[axis + 1 :])
            valid = inside if valid is None else self.e.both(valid, inside)
        return position + channel * c.step("x", 2), valid

    def _place(self, axis: int, seen: Scalar) -> tuple[Scalar, Scalar]:
        """The place in x of what is seen, in the extents of x; and whether it is one."""
        e, extent = self.e, self.c.space[axis]
        (before, _), spread = self.c.form.geometry.padding[axis], self.c.form.geometry.input_dilation[axis]
        if before < 0:
            seen, before = seen + -before, 0
        inside = e.both(e.compare("GE", seen, before), e.compare("LT", seen, before + (extent - 1) * spread + 1))
        place = _at_least(e, seen, before) - before
        if spread > 1:
            inside = e.both(inside, e.compare("EQ", place % spread, 0))
        return _at_most(e, place // spread, extent - 1), inside


class _Seen:
    """The result of a convolution."""

    def __init__(self, c: _Correlation, e: Emitter, group: Scalar) -> None:
        self.c, self.e, self.start = c, e, group * c.step("result", 1)

    def row(self, place: Scalar) -> Scalar:
        return self.start + place * self.c.step("result", 2)

    def column(self, place: Scalar) -> Scalar:
        windows = count(self.c.windows)
        example = self.e.digit(place, windows, self.c.examples)
        return example * self.c.step("result", 0) + place % windows


def _at_most(e: Emitter, place: Scalar, last: int) -> Scalar:
    """A place, or the last one if it lies behind that."""
    return place if place.most is not None and place.most <= last else _bounded(e, "MIN", place, last)


def _at_least(e: Emitter, place: Scalar, first: int) -> Scalar:
    return place if place.least >= first else _bounded(e, "MAX", place, first)


def _bounded(e: Emitter, name: str, place: Scalar, bound: int) -> Scalar:
    register = e.fresh(Type.U32)
    e.record(name, register, e.register(place, Type.U32), e.register(e.number(bound), Type.U32))
    assert place.most is not None
    choose = min if name == "MIN" else max
    return Scalar(e, INDEX, register, most=choose(place.most, bound), least=choose(place.least, bound))


# --- slabs ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fetched:
    """An element on its way into shared memory."""

    value: Scalar
    valid: Scalar | None


class _Slab:
    """How the lanes of a block bring a slab of a factor into shared memory, where it lies term by term.

    Each lane has some elements; those of neighbouring lanes lie side by side in memory.
    """

    def __init__(
        self, e: Emitter, factor: _Factor, working: DType, lines: int, depth: int, lanes: int, place: Scalar,
        first: Scalar, extent: int,
    ) -> None:  # fmt: skip
        self.e, self.factor, self.working = e, factor, working
        # Where lanes store terms of one line they lie in different banks of the memory.
        self.width = lines + VECTOR if factor.deep and lines >= VECTOR else lines
        self.depth, self.size = depth, depth * self.width
        self.memory = e.shared(working, 2 * self.size)
        self.pieces = list(_pieces(place, lines, depth, lanes, deep=factor.deep))
        self.lines = {}
        for line, beyond, _, _ in self.pieces:
            if beyond not in self.lines:
                self.lines[beyond] = factor.line(_at_most(e, first + line + beyond, extent - 1))

    def fetch(self, start: Scalar, terms: int, *, whole: bool) -> list[_Fetched]:
        """This lane's elements of the slab that starts with a term; whole: no slab reaches beyond the end."""
        e, found = self.e, []
        aligned = terms % self.depth == 0  # then a slab lies within the sums or beyond them
        within = e.compare("LT", start, terms) if aligned and not whole else None
        slab = _at_most(e, start, terms - self.depth) if aligned else start
        for _, beyond, term, further in self.pieces:
            at, inside = term + further, within
            if not aligned:
                inside = e.compare("LT", start + at, terms)
                slab, at = _at_most(e, start + at, terms - 1), e.number(0)
            position, valid = self.factor.element(self.lines[beyond], slab, at)
            if inside is not None:
                valid = inside if valid is None else e.both(inside, valid)
            found.append(_Fetched(self.factor.read.load(position), valid))
        return found

    def put(self, half: Scalar, fetched: Sequence[_Fetched]) -> None:
        """Store what was fetched into one half of the memory."""
        e = self.e
        for (line, beyond, term, further), element in zip(self.pieces, fetched, strict=True):
            value = e.convert(element.value, self.working)
            if element.valid is not None:
                value = e.select(element.valid, value, 0)
            self.memory.store(half * self.size + term * self.width + line, value, further * self.width + beyond)


def _pieces(
    place: Scalar, lines: int, depth: int, lanes: int, *, deep: bool
) -> Iterator[tuple[Scalar, int, Scalar, int]]:
    """A lane's elements of a slab: its line and how far beyond that, its term and how far further."""
    fast, slow = (depth, lines) if deep else (lines, depth)
    zero = place * 0
    for number in range(lines * depth // lanes):
        if lanes >= fast:
            at = place % fast, 0, place // fast, number * (lanes // fast)
        else:
            each = fast // lanes
            at = place, number % each * lanes, zero, number // each
        quick, beyond, rest, further = at
        assert further < slow
        yield (rest, further, quick, beyond) if deep else at


# --- the kernel -----------------------------------------------------------------------------------


class _Writer:
    """The kernel of a product under construction."""

    def __init__(self, node: Node, problem: _Problem, cut: Tiling) -> None:
        self.node, self.problem, self.cut, self.tile = node, problem, cut, cut.tile
        self.rows, self.columns, self.terms = problem.extents
        self.lanes = cut.blocks * self.tile.lanes
        self.working = _working(node.dtype)
        self.e = e = Emitter((self.lanes,))
        self.reads = [Read(e, f"x{k}", x.shape, x.dtype) for k, x in enumerate(node.inputs)]
        if cut.parts == 1:
            self.write = Write(e, "out", node.shape, node.dtype)
        else:
            self.write = Write(e, PART, (cut.parts * count(node.shape),), self.working)

    def kernel(self) -> Kernel:
        e, cut = self.e, self.cut
        place, block = e.lane % self.tile.lanes, e.lane // self.tile.lanes
        part, tile = e.digit(block, cut.down * cut.across * self.problem.batch, cut.parts), block
        which = e.digit(tile, cut.down * cut.across, self.problem.batch)
        top, left = self._corner(tile % (cut.down * cut.across))
        slabs = self._slabs(place, top, left, which)
        rows, columns = self._lanes(place)
        sums = self._sums(slabs, part * (cut.slabs * self.tile.depth), rows, columns)
        self._store(sums, part, which, top, left, rows, columns)
        program = shown(e.finish(self.node.op.name, self.reads, [self.write], self.lanes))
        buffers = tuple((f"x{k}", k) for k in range(2) if f"x{k}" in program.param)
        launch = LaunchConfig.linear(self.lanes, self.tile.lanes, e.shared_memory)
        scratch = () if cut.parts == 1 else ((PART, self.working, cut.parts * count(self.node.shape)),)
        return Kernel(program, launch, None, ("out",), buffers, (), scratch)

    def _corner(self, tile: Scalar) -> tuple[Scalar, Scalar]:
        """The first row and column of a tile."""
        down, across = self.cut.down, self.cut.across
        if down % STRIP == 0 and across > 1:
            strip = tile // (STRIP * across)
            row, column = strip * STRIP + tile % STRIP, tile // STRIP % across
        else:
            row, column = tile // across, tile % across
        return row * self.tile.rows, column * self.tile.columns

    def _slabs(self, place: Scalar, top: Scalar, left: Scalar, which: Scalar) -> list[_Slab]:
        t = self.tile
        found = []
        for factor, lines, first, extent in zip(
            self.problem.factors(self.e, self.reads, which), (t.rows, t.columns), (top, left),
            (self.rows, self.columns), strict=True,
        ):  # fmt: skip
            found.append(_Slab(self.e, factor, self.working, lines, t.depth, t.lanes, place, first, extent))
        return found

    def _lanes(self, place: Scalar) -> tuple[_Share, _Share]:
        """Which rows and columns of its tile a lane has."""
        t, (high, wide) = self.tile, PATCH
        down, across = t.rows // t.lane_rows, t.columns // t.lane_columns
        if down % high or across % wide:
            row, column = place // across, place % across
        else:
            patch, inside = place // (high * wide), place % (high * wide)
            row = patch // (across // wide) * high + inside // wide
            column = patch % (across // wide) * wide + inside % wide
        return _Share(row, t.lane_rows, down), _Share(column, t.lane_columns, across)

    def _sums(self, slabs: list[_Slab], start: Scalar, rows: _Share, columns: _Share) -> list[list[Scalar]]:
        e, depth, rounds = self.e, self.tile.depth, self.cut.slabs
        whole = self.cut.parts * rounds * depth == self.terms
        zero = e.constant(0, self.working)
        sums = [[e.variable(zero) for _ in columns.beyond] for _ in rows.beyond]
        for slab in slabs:
            slab.put(e.number(0), slab.fetch(start, self.terms, whole=whole))
        e.barrier()
        with ExitStack() as stack:
            q = stack.enter_context(e.counted(rounds)) if rounds > 1 else e.number(0)
            ahead: list[list[_Fetched]] = []
            if rounds > 1:
                following = start + _at_most(e, q + 1, rounds - 1) * depth
                ahead = [slab.fetch(following, self.terms, whole=whole) for slab in slabs]
            self._multiply(slabs, q % 2, rows, columns, sums)
            for slab, fetched in zip(slabs, ahead, strict=False):
                slab.put((q + 1) % 2, fetched)
            if rounds > 1:
                e.barrier()
        return sums

    def _multiply(
        self, slabs: list[_Slab], half: Scalar, rows: _Share, columns: _Share, sums: list[list[Scalar]]
    ) -> None:
        """Take a slab into the sums."""
        e, (left, right) = self.e, slabs
        first, second = half * left.size + rows.first, half * right.size + columns.first
        for term in range(self.tile.depth):
            factors = [left.memory.load(first, term * left.width + beyond) for beyond in rows.beyond]
            others = [right.memory.load(second, term * right.width + beyond) for beyond in columns.beyond]
            for line, x in zip(sums, factors, strict=True):
                for total, y in zip(line, others, strict=True):
                    e.record("FMA", total.register, x.register, y.register, total.register)

    def _store(
        self, sums: list[list[Scalar]], part: Scalar, which: Scalar, top: Scalar, left: Scalar, rows: _Share,
        columns: _Share,
    ) -> None:  # fmt: skip
        e, result = self.e, self.problem.result(self.e, which)
        start = part * count(self.node.shape)
        top, left = top + rows.first, left + columns.first
        places = [left + beyond for beyond in columns.beyond]
        inside = [e.compare("LT", place, self.columns) for place in places]
        across = [result.column(_at_most(e, place, self.columns - 1)) for place in places]
        for beyond, line in zip(rows.beyond, sums, strict=True):
            row = top + beyond
            with self._only(e.compare("LT", row, self.rows)):
                down = start + result.row(_at_most(e, row, self.rows - 1))
                for column, valid, total in zip(across, inside, line, strict=True):
                    with self._only(valid):
                        self.write.store(down + column, e.convert(total, self.write.dtype))

    def _only(self, truth: Scalar) -> Any:
        return ExitStack() if truth.known else self.e.only_if(truth)


class _Share:
    """The rows (or columns) of a tile that a lane has: vectors of some, evenly spread over the tile."""

    def __init__(self, place: Scalar, each: int, lanes: int) -> None:
        width = min(VECTOR, each)
        self.first = place * width
        self.beyond = [vector * lanes * width + k for vector in range(each // width) for k in range(width)]


def _adding(node: Node, problem: _Problem, cut: Tiling, target: MachineDescription) -> Kernel:
    """The kernel that adds up parts of the sums."""
    size, working = count(node.shape), _working(node.dtype)
    e = Emitter((size,))
    parts, write = Write(e, PART, (cut.parts * size,), working), Write(e, "out", node.shape, node.dtype)
    total = parts.load(e.lane)
    for part in range(1, cut.parts):
        total = total + parts.load(e.lane + part * size)
    write.store(e.lane, e.convert(total, node.dtype))
    program = shown(e.finish(f"{node.op.name}_sums", (), [parts, write], size))
    scratch = ((PART, working, cut.parts * size),)
    return Kernel(program, LaunchConfig.linear(size, target.block), None, ("out",), (), (), scratch)
