"""What the kernels of the ladder have in common: tiles of a product, slabs in shared memory, lanes and their sums.

Comes in: the extents of a product C (m × n) = A (m × k) · B (k × n) and a machine. Goes out, through a `Writer`, an
Atlas program and its launch. All sizes are constants of the program. Lanes beyond an edge of C read the last row or
column again, and write nothing; terms beyond the end of the sums are zeros, in both factors, since 0 · ∞ is no 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from eshkol.atlas.machines import MachineDescription, ProductTile
from eshkol.atlas.program import LANES, VECTORS, LaunchConfig, Program
from eshkol.ops import dtypes
from eshkol.schedule.kernels.block_factors import at_most
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import Scalar

F32 = dtypes.float32
VECTOR = 4  # elements that a lane reads or writes at once, at most: 16 bytes
WARP = 32  # lanes of a GPU that run together; a machine that stands in for one has fewer
USABLE = 244  # registers: nothing here is expanded into code that needs more

Sums = list[list[Scalar]]


@dataclass(frozen=True)
class Extents:
    """The extents of a product, and the machine that computes it."""

    m: int
    n: int
    k: int
    machine: MachineDescription

    def fitted(self, tile: ProductTile) -> ProductTile:
        """A tile, or a smaller one where fewer lanes run together than in a warp."""
        if self.machine.subgroup >= WARP:
            return tile
        lane_rows, depth = tile.lane_rows // 2, max(VECTOR, tile.depth // 4)
        return ProductTile(tile.rows // 8, tile.columns // 4, depth, lane_rows, tile.lane_columns)


@dataclass(frozen=True)
class Share:
    """The rows (or columns) of a tile that a lane has: a first one, and how far beyond it the others are."""

    first: Scalar
    beyond: tuple[int, ...]

    @staticmethod
    def together(place: Scalar, each: int) -> Share:
        """Neighbours: the lane at this place has `each` of them, then come those of the next."""
        return Share(place * each, tuple(range(each)))

    @staticmethod
    def apart(place: Scalar, each: int, lanes: int) -> Share:
        """Vectors: first every lane has one, then every lane has another."""
        width = min(VECTOR, each)
        steps = range(0, each // width * lanes * width, lanes * width)
        return Share(place * width, tuple(step + k for step in steps for k in range(width)))


class Writer:
    """The program of a product under construction, for blocks of so many lanes that have a tile of C each."""

    def __init__(self, p: Extents, rows: int, columns: int, lanes: int, *, vectors: bool = False) -> None:
        self.p, self.lanes, self.vectors = p, lanes, vectors
        self.down, self.across = -(-p.m // rows), -(-p.n // columns)
        self.blocks = self.down * self.across
        self.e = e = Emitter((self.blocks * lanes,), usable=USABLE)
        self.a, self.b = Read(e, "a", (p.m, p.k), F32), Read(e, "b", (p.k, p.n), F32)
        self.c = Write(e, "c", (p.m, p.n), F32)
        self.place, self.block = e.lane % lanes, e.lane // lanes

    def finish(self, name: str) -> tuple[Program, LaunchConfig]:
        """The program, and the launch that it is for."""
        lanes = self.blocks * self.lanes
        program = self.e.finish(name, [self.a, self.b], [self.c], lanes)
        told = {LANES: str(self.lanes), **({VECTORS: "1"} if self.vectors else {})}
        return replace(program, metadata=told), LaunchConfig.linear(lanes, self.lanes, self.e.shared_memory)

    def zeros(self, rows: int, columns: int) -> Sums:
        """Registers for the sums of a lane."""
        zero = self.e.constant(0, F32)
        return [[self.e.variable(zero) for _ in range(columns)] for _ in range(rows)]

    def add(self, sums: Sums, xs: Sequence[Scalar], ys: Sequence[Scalar]) -> None:
        """Take the products of a column of A and a row of B into the sums: all of one with all of the other."""
        for line, x in zip(sums, xs, strict=True):
            for total, y in zip(line, ys, strict=True):
                self.e.record("FMA", total.register, x.register, y.register, total.register)

    def store(self, top: Scalar, left: Scalar, rows: Share, columns: Share, sums: Sums) -> None:
        """Write a lane's sums to where they stand in C: side by side in one go where rows of C allow it."""
        e, p = self.e, self.p
        row, column = top + rows.first, left + columns.first
        if reaches(row, rows.beyond) < p.m and reaches(column, columns.beyond) < p.n:
            at = row * p.n + column
            for down, line in zip(rows.beyond, sums, strict=True):
                for across, total in zip(columns.beyond, line, strict=True):
                    self.c.store(at, total, down * p.n + across)
            return
        step = VECTOR if self.vectors and p.n % VECTOR == 0 and len(columns.beyond) % VECTOR == 0 else 1
        pieces = range(0, len(columns.beyond), step)
        places = [column + columns.beyond[k] for k in pieces]
        inside = [e.compare("LT", place, p.n) for place in places]
        starts = [self.within(place, p.n, step) for place in places]
        for down, line in zip(rows.beyond, sums, strict=True):
            with self.only(e.compare("LT", row + down, p.m)):
                begin = at_most(e, row + down, p.m - 1) * p.n
                for k, start, valid in zip(pieces, starts, inside, strict=True):
                    with self.only(valid):
                        at = begin + start
                        for further in range(step):
                            self.c.store(at, line[k + further], further)

    def within(self, place: Scalar, extent: int, step: int) -> Scalar:
        """The place, or the last one before the extent; places are multiples of a step, of which there is a number."""
        return at_most(self.e, place // step, extent // step - 1) * step

    def only(self, truth: Scalar) -> AbstractContextManager[object]:
        return nullcontext() if truth.known else self.e.only_if(truth)


def reaches(first: Scalar, beyond: Sequence[int]) -> int:
    """The last place that a lane can have."""
    assert first.most is not None
    return int(first.most) + max(beyond)


class Slab:
    """A slab of a factor, some lines (rows of A, columns of B) of some terms, and how lanes bring it to shared memory.

    `of_a`: rows of A, whose terms lie side by side; else columns of B, which do so themselves. `by_terms`: in shared
    memory the lines of a term lie side by side, and not the terms of a line. `apart`: elements that are left free
    behind these. `slots`: for how many slabs there is room.
    """

    def __init__(
        self, w: Writer, tile: ProductTile, number: Scalar, *, of_a: bool, by_terms: bool, apart: int = 0,
        slots: int = 1,
    ) -> None:  # fmt: skip
        self.w, self.of_a, self.depth = w, of_a, tile.depth
        self.source, self.lines = (w.a, tile.rows) if of_a else (w.b, tile.columns)
        width = (self.lines if by_terms else tile.depth) + apart
        self.line_step, self.term_step = (1, width) if by_terms else (width, 1)
        self.size = width * (tile.depth if by_terms else self.lines)
        self.memory = w.e.shared(F32, slots * self.size)
        contiguous = w.p.k if of_a else w.p.n
        each = self.lines * self.depth // w.lanes
        self.step = min(VECTOR, each) if w.vectors and contiguous % VECTOR == 0 else 1
        self._share_out(each // self.step)
        self.even = (w.p.m if of_a else w.p.n) % self.lines == 0  # no line is beyond the edge
        self.whole = w.p.k % self.depth == 0  # no term is beyond the end
        self.starts = self._lines(number)

    def _share_out(self, count: int) -> None:
        """Which pieces of `step` elements a lane brings: neighbours bring what lies side by side.

        The first is so far along the axis that does so, counted in such steps, and so far along the other; the others
        are further by constants.
        """
        place, lanes = self.w.place, self.w.lanes
        along = (self.depth if self.of_a else self.lines) // self.step
        if lanes >= along:
            self.quick, self.slow = place % along, place // along
            self.pieces = [(0, k * (lanes // along)) for k in range(count)]
        else:
            self.quick, self.slow = place, place * 0
            self.pieces = [(k % (along // lanes) * lanes, k // (along // lanes)) for k in range(count)]

    def _lines(self, number: Scalar) -> list[tuple[Scalar, int]]:
        """Where the line of each piece begins in A, or which column of B it begins with; and how far beyond that."""
        w, first, step, p = self.w, number * self.lines, self.step, self.w.p
        if self.of_a and self.even:
            start = (first + self.slow) * p.k
            return [(start, slow * p.k) for _, slow in self.pieces]
        if self.of_a:
            return [(at_most(w.e, first + self.slow + slow, p.m - 1) * p.k, 0) for _, slow in self.pieces]
        if self.even:
            start = first + self.quick * step
            return [(start, quick * step) for quick, _ in self.pieces]
        return [(w.within(first + (self.quick + quick) * step, p.n, step), 0) for quick, _ in self.pieces]

    def fetch(self, slab: Scalar) -> list[Scalar]:
        """This lane's elements of the slab with this number along the sums."""
        e, p, step, found = self.w.e, self.w.p, self.step, []
        # Terms are counted in vectors where these lie along them; `far` elements are from one to the next.
        count, far = (step, step) if self.of_a else (1, p.n)
        first = slab * (self.depth // count) + (self.quick if self.of_a else self.slow)
        for pieces, (start, beyond) in zip(self.pieces, self.starts, strict=True):
            more = pieces[0 if self.of_a else 1]
            if self.whole:
                position, beyond, valid = start + first * far, beyond + more * far, None
            else:
                last = p.k // count - 1
                valid = e.compare("LE", first + more, last)
                position = start + at_most(e, first + more, last) * far
            values = [self.source.load(position, beyond + k) for k in range(step)]
            found += values if valid is None else [e.select(valid, value, 0) for value in values]
        return found

    def put(self, values: Sequence[Scalar], slot: Scalar | int = 0) -> None:
        """Store what was fetched."""
        quick, slow = (self.term_step, self.line_step) if self.of_a else (self.line_step, self.term_step)
        at = slot * self.size + self.quick * (self.step * quick) + self.slow * slow
        given = iter(values)
        for further, down in self.pieces:
            for k in range(self.step):
                self.memory.store(at, next(given), (further * self.step + k) * quick + down * slow)

    def at(self, share: Share, slot: Scalar | int = 0) -> Scalar:
        """Where a lane's first line begins."""
        return slot * self.size + share.first * self.line_step

    def load(self, at: Scalar, share: Share, term: int) -> list[Scalar]:
        """A term of each of a lane's lines."""
        return [self.memory.load(at, beyond * self.line_step + term * self.term_step) for beyond in share.beyond]

    def load_into(self, numbers: Sequence[Scalar], at: Scalar, share: Share, term: int) -> None:
        """The same into variables, one after another."""
        for number, beyond in zip(numbers, share.beyond, strict=True):
            value = self.memory.load(at, beyond * self.line_step + term * self.term_step)
            self.w.e.assign(number, value)
