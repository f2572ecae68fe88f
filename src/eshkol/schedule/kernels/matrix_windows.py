"""Convolutions in fragments: products of matrices that lie nowhere, of 16-bit floats, summed in float32.

Comes in: one of the three products of a convolution (`ops/correlation.py`). Goes out: kernels. Two copy its inputs with
channels last, as many as make whole chunks of 16 bytes. In the third, a product as in `matrix_products.py`, lanes bring
what windows see chunk by chunk from where it lies: a chunk has eight channels of one place. Where a machine does it
faster by an array instruction, that stands in the graph already (`whole_convolutions.py`).

    forward, towards x    rows: outs        columns: examples, windows    terms: taps, channels
    towards the weight    rows: outs        columns: taps, channels       terms: examples, windows

In the second case what is called a window here is a tap, and the other way round, as in `block_factors.py`: of a plain
convolution with the roles of examples and channels exchanged. Both are chunks of channels there, lines of the products.
"""

from __future__ import annotations

from typing import NamedTuple

from eshkol.atlas.fragments import COLUMNS, LINE_BYTES, ROWS, SIDE
from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.correlation import FORMS
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.block_factors import Correlation, Windows, at_most, correlation, digits
from eshkol.schedule.kernels.block_products import adding_kernel
from eshkol.schedule.kernels.channels_last import Last, copying_kernel
from eshkol.schedule.kernels.code import OutOfRegisters, Virtual
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel
from eshkol.schedule.kernels.matrix_operands import CHUNK, copied
from eshkol.schedule.kernels.matrix_products import LARGEST, LEAST, ProductWriter, RowSlab, Slab
from eshkol.schedule.kernels.matrix_tiling import MatrixTiling, matrix_tilings
from eshkol.schedule.kernels.scalars import TYPES, Scalar


def is_matrix_convolution(node: Node, target: MachineDescription) -> bool:
    """Whether a convolution is computed here: with kernels of several taps; of one tap too little is computed for what
    copies take."""
    if not multiplies_chunks(node, target):
        return False
    c = correlation(node)
    return count(c.windows if c.deep else c.kernel) > 1


def multiplies_chunks(node: Node, target: MachineDescription) -> bool:
    """Whether a node is a convolution of 16-bit floats that is not mostly of zeros that fill chunks."""
    unit = target.matrices
    if unit is None or node.op not in FORMS or TYPES.get(node.dtype) not in unit.types:
        return False
    if any(count(x.shape) == 0 for x in (*node.inputs, node)):
        return False
    c = correlation(node)
    full = all(4 * n >= 3 * _chunks(n) * CHUNK for n in _channels(c))
    sizes = (*(last.size for last in copies_of(c)), count(node.shape))
    return full and min(c.extents) >= LEAST and max(sizes) < LARGEST


def _channels(c: Correlation) -> list[int]:
    """How many channels those have that come last."""
    return [c.examples, c.outs] if c.deep else [c.channels]


def _chunks(channels: int) -> int:
    return -(-channels // CHUNK)


def copies_of(c: Correlation) -> tuple[Last, Last]:
    """What x and the weight are copied to."""
    x, weight = ([c.step(of, part) for part in range(3)] for of in ("x", "weight"))
    space, around = count(c.space), c.form.around
    if c.deep:
        return (
            Last(c.batch, c.channels, space, c.examples, (x[1], x[2], x[0]), False),
            Last(c.batch, c.channels, c.taps, c.outs, (weight[0], weight[2], weight[1]), around),
        )
    return (
        Last(c.batch, c.examples, space, c.channels, (x[1], x[0], x[2]), False),
        Last(c.batch, c.outs, c.taps, c.channels, (weight[0], weight[1], weight[2]), around),
    )


def matrix_convolution_kernels(node: Node, target: MachineDescription) -> tuple[Kernel, ...]:
    """The kernels of a convolution."""
    c = correlation(node)
    copies = copies_of(c)
    # The weight is the left factor of the product, x the right one.
    before = [copying_kernel(node, k, copied(1 - k), last, target) for k, last in enumerate(copies)]
    plain, windowed = _Plain.of(c, copies[1], node.dtype), _Windowed(c, copies[0], node.dtype)
    full: OutOfRegisters | None = None
    for cut in matrix_tilings(c.batch, c.outs, windowed.lines, plain.terms, target):
        try:
            product = _Writer(node, c, plain, windowed, cut).kernel()
        except OutOfRegisters as error:  # to find what windows see takes some
            full = error
            continue
        return *before, product, *([adding_kernel(node, cut.parts, target)] if cut.parts > 1 else [])
    assert full is not None
    raise full


# --- the factors ----------------------------------------------------------------------------------


class _Plain(NamedTuple):
    """The left factor, a matrix that lies in memory: its rows are outs, or terms with outs side by side."""

    dtype: dtypes.DType
    deep: bool
    rows: int
    stride: int
    chunks: int
    terms: int
    step: int  # from one group to the next
    size: int
    copied: bool = True

    @staticmethod
    def of(c: Correlation, last: Last, dtype: dtypes.DType) -> _Plain:
        if c.deep:
            rows, chunks = last.outer * last.places, last.chunks
            terms = rows
        else:
            rows, chunks = last.outer, last.places * last.chunks
            terms = chunks * CHUNK
        return _Plain(dtype, not c.deep, rows, chunks, chunks, terms, rows * chunks, last.size)


class _Windowed:
    """The right factor: what windows see."""

    copied = True

    def __init__(self, c: Correlation, last: Last, dtype: dtypes.DType) -> None:
        self.c, self.last, self.dtype, self.deep, self.size = c, last, dtype, not c.deep, last.size
        self.wide = last.chunks
        self.step = last.outer * last.places * last.chunks
        windows = count(c.windows)
        self.lines = windows * last.chunks * CHUNK if c.deep else c.examples * windows
        self.terms = c.channels * c.taps if c.deep else c.taps * last.chunks * CHUNK


class _WindowSlab(Slab):
    """How lanes bring what windows see to shared memory."""

    def __init__(
        self, e: Emitter, name: str, layout: _Windowed, start: Scalar, *, lines: int, depth: int, offset: int
    ) -> None:  # fmt: skip
        super().__init__(e, name, layout, start, lines=lines, depth=depth, offset=offset)
        self.layout = layout

    def find(self, tile: Scalar) -> None:
        e, w, c = self.e, self.layout, self.layout.c
        self.seen = Windows(c, e)
        if self.deep:
            self.windows = []
            for piece in range(self.pieces):
                line = at_most(e, tile * self.rows + self.row + piece * self.step, w.lines - 1)
                example, *window = digits(e, line, (c.examples, *c.windows))
                self.windows.append((self.start + example * (w.last.places * w.wide), self.seen.begins(window)))
            return
        chunk = at_most(e, tile * self.pitch + self.chunk, w.lines // CHUNK - 1)
        *window, channels = digits(e, chunk, (*c.windows, w.wide))
        self.windows = [(self.start + channels, self.seen.begins(window))]

    def source(self, piece: int, slab: Scalar, valid: Scalar) -> tuple[Scalar, int, Scalar]:
        e, w, c, inside = self.e, self.layout, self.layout.c, valid
        whole = self.terms % self.depth == 0
        if self.deep:
            chunk = slab * self.pitch + self.chunk
            if not whole:
                inside = e.both(valid, e.compare("LT", chunk, self.terms // CHUNK))
                chunk = at_most(e, chunk, self.terms // CHUNK - 1)
            *tap, channels = digits(e, chunk, (*c.kernel, w.wide))
            start, begins = self.windows[piece]
            start = start + channels
        else:
            term = slab * self.depth + self.row + piece * self.step
            if not whole:
                inside = e.both(valid, e.compare("LT", term, self.terms))
                term = at_most(e, term, self.terms - 1)
            example, *tap = digits(e, term, (c.channels, *c.kernel))
            start, begins = self.windows[0]
            start = start + example * (w.last.places * w.wide)
        place, there = self.seen.place(begins, tap)
        return start + place * w.wide, 0, inside if there is None else e.both(inside, there)


# --- the kernel -----------------------------------------------------------------------------------


class _Writer(ProductWriter):
    """The kernel of such a product under construction."""

    def __init__(self, node: Node, c: Correlation, plain: _Plain, windowed: _Windowed, cut: MatrixTiling) -> None:
        self.c, self.plain, self.windowed = c, plain, windowed
        super().__init__(node, (plain, windowed), cut)

    def extents(self) -> tuple[int, int, int]:
        return self.c.outs, self.windowed.lines, self.c.batch

    def slabs(self, which: Scalar) -> list[Slab]:
        e, tile = self.e, self.tile
        left, right = self.plain, self.windowed
        start = which * left.step, which * right.step
        first = RowSlab(e, self.names[0], left, start[0], lines=tile.rows, depth=tile.depth, offset=0)
        offset = first.chunks * LINE_BYTES
        second = _WindowSlab(e, self.names[1], right, start[1], lines=tile.columns, depth=tile.depth, offset=offset)
        return [first, second]

    def store(self, sums: list[list[list[Virtual]]], part: Scalar, which: Scalar, top: Scalar, left: Scalar) -> None:
        e, c = self.e, self.c
        start = part * count(self.node.shape) + which * c.step("result", 1)
        adjoin = not c.deep and count(c.windows) % 2 == 0  # then both of a pair are there, or neither, side by side
        places = []
        for number in range(len(sums[0])):
            pair = left + number * (COLUMNS // 2)
            places.append([self._column(pair, 2)] if adjoin else [self._column(pair * 2 + n) for n in range(2)])
        for number, line in enumerate(sums):
            for half in range(2):
                row = top + (number * ROWS + half * SIDE)
                with self.only(e.compare("LT", row, self.rows)):
                    down = start + at_most(e, row, self.rows - 1) * c.step("result", 2)
                    for found, four in zip(places, line, strict=True):
                        given = [Scalar(e, dtypes.float32, register) for register in four[2 * half :][:2]]
                        values = [e.convert(value, self.write.dtype) for value in given]
                        for k, (at, inside) in enumerate(found):
                            with self.only(inside):
                                for beyond, value in enumerate(values if adjoin else values[k : k + 1]):
                                    self.write.store(down + at, value, beyond)

    def _column(self, column: Scalar, each: int = 1) -> tuple[Scalar, Scalar]:
        """Where results of a column lie, or of so many together, beyond those of their row; and if there are any."""
        e, c, windows, columns = self.e, self.c, count(self.c.windows), self.columns // each
        inside = e.compare("LT", column, columns)
        column = at_most(e, column, columns - 1)
        if not c.deep:
            example, window = digits(e, column, (c.examples, windows // each))
            return example * c.step("result", 0) + window * each, inside
        window, channel = digits(e, column, (windows, self.windowed.wide * CHUNK))
        inside = e.both(inside, e.compare("LT", channel, c.examples))
        return at_most(e, channel, c.examples - 1) * c.step("result", 0) + window, inside
