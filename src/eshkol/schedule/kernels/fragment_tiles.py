"""Tiles of whole rows in shared memory, and what attention does with fragments.

Comes in: views of matrices whose rows are short (a head of attention). Goes out: code that brings some of their rows to
shared memory by copies that go on by themselves, and that loads fragments (`atlas/fragments.py`) from there.

Rows lie an odd number of chunks of 16 bytes apart, so that the eight rows that a part of a fragment is loaded from lie
in different banks. What a row has beyond its end, and rows beyond the last, are zeros.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.atlas.fragments import LINE_BYTES, SIDE
from eshkol.atlas.operands import BufferOffset, Immediate, Shared
from eshkol.atlas.types import Type
from eshkol.ops import dtypes
from eshkol.schedule.kernels.block_factors import at_most
from eshkol.schedule.kernels.code import IndexedPlace, Virtual
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.matrix_operands import CHUNK
from eshkol.schedule.kernels.scalars import Scalar

Four = list[Virtual]  # the registers of a fragment, or of sums


class RowTile:
    """So many rows in shared memory, of one head each time."""

    def __init__(self, e: Emitter, rows: int, width: int, offset: int) -> None:
        """For rows of so many elements, a multiple of 8, at a place in shared memory, in chunks."""
        self.e, self.rows, self.offset = e, rows, offset
        self.width = width // CHUNK  # chunks that there are
        self.held = max(2, 1 << (self.width - 1).bit_length())  # that lanes bring, of which the last are zeros
        self.pitch = self.held + 1
        self.chunks = rows * self.pitch

    @property
    def steps(self) -> int:
        """Steps along the elements of a row, of 16 each."""
        return -(-self.width // 2)

    def prepare(self, name: str, ty: Type, start: Scalar, stride: int, total: int, place: Scalar, lanes: int) -> None:
        """Find out which chunks a lane brings, of a matrix of so many rows that begins at a chunk of a buffer."""
        self.name, self.ty, self.start, self.stride, self.total = name, ty, start, stride, total
        self.row, self.chunk = place // self.held, place % self.held
        self.step = lanes // self.held
        assert self.rows % self.step == 0
        self.target = self.row * self.pitch + self.chunk

    def copy(self, first: Scalar, memory: Scalar, valid: Scalar | None = None) -> None:
        """Begin to copy the rows from one on to where the tile lies from a chunk of the memory on."""
        e = self.e
        truth = e.constant(True, dtypes.bool_) if valid is None else valid
        if self.width < self.held:
            truth = e.both(truth, e.compare("LT", self.chunk, self.width))
        column = at_most(e, self.chunk, self.width - 1)
        target = memory + self.target
        for piece in range(self.rows // self.step):
            row = first + self.row + piece * self.step
            inside = e.both(truth, e.compare("LT", row, self.total))
            position = self.start + at_most(e, row, self.total - 1) * self.stride + column
            size = e.register(e.select(inside, e.number(LINE_BYTES), e.number(0)), Type.U32)
            at = (piece * self.step * self.pitch + self.offset) * LINE_BYTES
            e.use(self.name)
            into, source = shared_place(e, at, target), _place(e, BufferOffset(self.name), position)
            e.record("CopyAsync", self.ty, into, source, size)

    def aim(self, lane: Scalar, *, left: bool, turned: bool = False) -> Scalar:
        """Where a lane finds the row that it loads, of the first fragment; turned: rows are terms, not lines."""
        halves = lane // SIDE % 2, lane // (2 * SIDE)
        line_half, term_half = halves if left else (halves[1], halves[0])
        down, across = (term_half, line_half) if turned else (line_half, term_half)
        return (lane % SIDE + down * SIDE) * self.pitch + across

    def load(self, aim: Scalar, row: int, chunk: int, *, turned: bool = False) -> Four:
        """The fragment of 16 rows and 16 columns that begins at a row and a chunk of it."""
        into = [self.e.fresh(Type.U32) for _ in range(4)]
        at = (row * self.pitch + chunk + self.offset) * LINE_BYTES
        self.e.record("MatrixLoad", *into, shared_place(self.e, at, aim), turned)
        return into


def shared_place(e: Emitter, offset: int, position: Scalar) -> Any:
    return _place(e, Shared(offset), position)


def _place(e: Emitter, base: Shared | BufferOffset, position: Scalar) -> Any:
    """So many chunks from a place in memory on."""
    register = e.register(position, Type.U32)
    assert isinstance(register, Virtual)
    return IndexedPlace(base, register, LINE_BYTES)


def zeros(e: Emitter, count: int) -> list[Four]:
    """Sums of so many fragments, to begin with."""
    found = [[e.fresh(Type.F32) for _ in range(4)] for _ in range(count)]
    for four in found:
        for register in four:
            e.record("MOV_IMM", register, Immediate(Type.F32, 0.0))
    return found


def multiply(e: Emitter, ty: Type, sums: Sequence[Four], left: Four, right: Four) -> None:
    """Add the product of a fragment with one of 16 lines, as far as there are sums for those: 8 lines each."""
    for half, c in enumerate(sums):
        e.record("MatrixMultiply", ty, *c, *left, *right[2 * half :][:2], *c)


def constant(e: Emitter, value: float, ty: Type = Type.F32) -> Virtual:
    register = e.fresh(ty)
    e.record("MOV_IMM", register, Immediate(ty, value))
    return register


def of(e: Emitter, name: str, *operands: Virtual) -> Virtual:
    """What an instruction gives, in the type of its first operand."""
    register = e.fresh(operands[0].ty)
    e.record(name, register, *operands)
    return register


def pair(e: Emitter, ty: Type, low: Virtual, high: Virtual) -> Virtual:
    """Two numbers rounded to 16 bits, in one register."""
    found = e.fresh(Type.U32)
    e.record("PACK", ty, found, low, high)
    return found


def as_left(e: Emitter, ty: Type, sums: Sequence[Four]) -> Four:
    """Sums of 16 × 16, rounded to 16 bits, as the left factor of another product."""
    return [pair(e, ty, four[2 * half], four[2 * half + 1]) for four in sums for half in range(2)]
