"""Products of matrices for machines with instructions for fragments: 16-bit floats, summed in float32.

Comes in: a product of matrices. Goes out: a kernel in which each block has a tile of the result, and
each of its sub-groups a tile of that, whose sums stay in registers as fragments (`atlas/fragments.py`). The block goes
along the sums in slabs, of which several lie in shared memory: while one is multiplied the others are on their way, by
copies that go on by themselves. Fragments of the next terms are loaded while the last ones are multiplied.

A slab lies in shared memory as its factor lies in its buffer, line by line or term by term, in chunks of 16 bytes. The
chunks of a row are exchanged among each other, by a number that the row's place says, so that the eight rows that a
fragment is loaded from lie in different banks.

Copies need rows that begin at multiples of 16 bytes; a factor whose rows do not is copied first (`matrix_operands.py`,
where float32 becomes 16-bit floats too, if that is asked for). Lanes beyond an edge read the last row or column again,
and write nothing. Terms beyond the end of the sums are zeros.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from eshkol.atlas.fragments import COLUMNS, LANES, LINE_BYTES, ROWS, SIDE, TERMS
from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.operands import BufferOffset, Immediate, Shared
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.types import Type
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.array_products import is_whole, whole_product_kernel
from eshkol.schedule.kernels.block_factors import Dense, at_most, digits
from eshkol.schedule.kernels.block_products import PART, adding_kernel, corner, needed
from eshkol.schedule.kernels.code import IndexedPlace, Virtual
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.matrix_operands import (
    CHUNK,
    CHUNK_BYTES,
    Laid,
    LaidRows,
    Layout,
    copied,
    copying_kernel,
    read_as,
    rounds,
    suits,
)
from eshkol.schedule.kernels.matrix_tiling import MatrixTiling, matrix_tilings
from eshkol.schedule.kernels.products import SEEN_PRODUCT, Seen, View
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import INDEX, TYPES, Scalar

USABLE = 244  # registers: nothing here is expanded into code that needs more
LARGEST = 1 << 28  # elements of an operand, or the result: copies of them, in pieces, fit registers of indices
MOST_COPIED = 1 << 32  # elements of an operand of an array instruction that is copied for it, without pieces
LEAST = 16  # rows, columns and terms of a product, below which most of a fragment would be empty


def is_matrix_product(node: Node, target: MachineDescription) -> bool:
    """Whether a product is computed here: of matrices as they are, or seen where they lie."""
    if node.op not in (matrix_product, SEEN_PRODUCT) or not multiplies(node, target):
        return False
    seen = _seen(node)
    if seen.alpha != 1.0 or seen.order != tuple(range(len(node.shape))):
        return False
    whole = [view == View.of(x.shape) for view, x in zip((seen.x, seen.y), node.inputs, strict=True)]
    return all(fine or lies for fine, lies in zip(whole, lie_well(node, target, seen), strict=True))


def lie_well(node: Node, target: MachineDescription, seen: Seen) -> list[bool]:
    """Whether factors of a product can be read as they are seen."""
    return [suits(view, _chunk(node, target, view, left=view is seen.x)) for view in (seen.x, seen.y)]


def _chunk(node: Node, target: MachineDescription, view: View, *, left: bool) -> int:
    """Numbers that are read at once of a factor that is seen so.

    They are 16 bytes, but single ones where an exact product turns what lies the other way (`warpgroups`).
    """
    into, _ = read_as(node.dtype, target) or (None, 0)
    laid = view.matrix()
    deep = laid is not None and laid[1] != left
    return 1 if into is None and deep else CHUNK_BYTES // (into or node.dtype).size


def fit_together(node: Node, target: MachineDescription, seen: Seen) -> bool:
    """Whether two factors can be read together: rounded ones of float32 need terms side by side in one of them."""
    left, right = seen.x.matrix(), seen.y.matrix()
    if left is None or right is None:
        return False
    return not rounds(node.dtype, target) or not left[1] or right[1]


def multiplies(node: Node, target: MachineDescription) -> bool:
    """Whether a machine has something better for the dtype of a product than code of lanes, and it is worth it."""
    if target.matrices is None or (read_as(node.dtype, target) is None and not is_whole(node, target)):
        return False
    terms = node.attrs.x.shape[-1] if node.op is SEEN_PRODUCT else node.inputs[0].shape[-1]
    rows, columns = node.shape[-2:]
    if is_whole(node, target):  # few rows take little longer than the right factor needs to come
        lie = zip(node.inputs, lie_well(node, target, _seen(node)), strict=True)
        return min(columns, terms) >= LEAST and all(well or count(x.shape) < MOST_COPIED for x, well in lie)
    return min(rows, columns, terms) >= LEAST and max(count(x.shape) for x in (*node.inputs, node)) < LARGEST


def matrix_product_kernels(node: Node, target: MachineDescription) -> tuple[Kernel, ...]:
    """The kernels of such a product, in the tiles that are estimated to take the least time."""
    layouts, terms = laid_out(node, target)
    before = [copying_kernel(node, k, layout, target) for k, layout in enumerate(layouts) if layout.copied]
    if is_whole(node, target):
        return *before, whole_product_kernel(node, layouts, terms, target)
    rows, columns = node.shape[-2:]
    cut = matrix_tilings(count(node.shape[:-2]), rows, columns, layouts[0].terms, target)[0]
    after = [adding_kernel(node, cut.parts, target)] if cut.parts > 1 else []
    return *before, _MatrixWriter(node, layouts, cut).kernel(), *after


def laid_out(node: Node, target: MachineDescription) -> tuple[list[Layout], int]:
    """How the factors of a product lie, and how many terms its sums have."""
    seen = _seen(node)
    into, split = read_as(node.dtype, target) or (node.dtype, 1)
    axes, layouts = seen.axes(), []
    for k, view in enumerate((seen.x, seen.y)):
        steps, chunk = [axis[k + 1] for axis in axes], _chunk(node, target, view, left=k == 0)
        layouts.append(Layout(view, steps, node.dtype, into, split, left=k == 0, chunk=chunk))
    return layouts, seen.x.shape[-1]


def _seen(node: Node) -> Seen:
    """A product as one of views."""
    if node.op is SEEN_PRODUCT:
        found: Seen = node.attrs
        return found
    x, y = (View.of(operand.shape) for operand in node.inputs)
    return Seen(x, y, 1.0, tuple(range(len(node.shape))))


def _xor(e: Emitter, one: Scalar, other: Scalar | int, most: int) -> Scalar:
    """One index with bits of another turned; neither has more bits than `most`, which is all ones."""
    if isinstance(other, int):
        if other == 0:
            return one
        other = e.number(other)
    if one.known is not None and other.known is not None:
        return e.number(one.known ^ other.known)
    register = e.fresh(Type.U32)
    e.record("XOR", register, e.register(one, Type.U32), e.register(other, Type.U32))
    return Scalar(e, INDEX, register, most=most)


class Slab(ABC):
    """How a slab of a factor lies in shared memory, and how lanes bring it there and load fragments of it."""

    def __init__(
        self, e: Emitter, name: str, layout: Laid, start: Scalar, *, lines: int, depth: int, offset: int
    ) -> None:  # fmt: skip
        self.e, self.name, self.ty, self.start = e, name, TYPES[layout.dtype], start
        self.deep, self.depth, self.offset = layout.deep, depth, offset
        self.rows, self.pitch = (lines, depth // CHUNK) if self.deep else (depth, lines // CHUNK)
        self.chunks = self.rows * self.pitch
        self.terms = layout.terms
        self.spread = min(self.pitch, SIDE)  # chunks of a row that are exchanged among each other

    def _turn(self, row: Scalar) -> Scalar:
        """The number by which the chunks of a row are exchanged."""
        return row // (SIDE // self.spread) % self.spread

    def _at(self, row: Scalar, chunk: Scalar) -> Scalar:
        """Where a chunk of a row lies, in chunks."""
        return row * self.pitch + _xor(self.e, chunk, self._turn(row), self.pitch - 1)

    # --- copies -------------------------------------------------------------------------------------

    def prepare(self, place: Scalar, lanes: int, tile: Scalar) -> None:
        """Find out which chunks a lane copies, of the tile of lines with this number."""
        self.step = lanes // self.pitch  # rows between two chunks that a lane copies
        self.pieces = self.chunks // lanes
        row, chunk = place // self.pitch, place % self.pitch
        self.row, self.chunk = row, chunk
        self.targets: dict[int, Scalar] = {}
        for piece in range(self.pieces):
            beyond = piece * self.step % SIDE
            if beyond not in self.targets:
                self.targets[beyond] = self._at(row + beyond, chunk)
        self.find(tile)

    @abstractmethod
    def find(self, tile: Scalar) -> None:
        """Find out where the lines lie that a lane copies chunks of."""

    def copy(self, pieces: Sequence[int], slab: Scalar, valid: Scalar, memory: Scalar) -> None:
        """Begin to copy pieces of the slab with this number to where the slab at some chunk of the memory lies.

        Zeros arrive where it is not valid.
        """
        e, pitch = self.e, self.pitch
        bytes_: dict[int, Virtual] = {}
        for piece in pieces:
            position, constant, inside = self.source(piece, slab, valid)
            size = bytes_.get(inside.serial)
            if size is None:
                found = e.register(e.select(inside, e.number(LINE_BYTES), e.number(0)), Type.U32)
                assert isinstance(found, Virtual)
                size = bytes_[inside.serial] = found
            further = piece * self.step
            beyond = further % SIDE
            at = (further - beyond) * pitch * LINE_BYTES + self.offset
            target = self._place(Shared(at), memory + self.targets[beyond])
            source = self._place(BufferOffset(self.name, constant * LINE_BYTES), position)
            e.use(self.name)
            e.record("CopyAsync", self.ty, target, source, size)

    @abstractmethod
    def source(self, piece: int, slab: Scalar, valid: Scalar) -> tuple[Scalar, int, Scalar]:
        """Where a chunk of a slab lies, and how far beyond that; and whether there is one."""

    def _place(self, base: Shared | BufferOffset, position: Scalar) -> Any:
        if position.known is not None:
            return type(base)(**{**_fields(base), "offset": base.offset + position.known * LINE_BYTES})
        register = self.e.register(position, Type.U32)
        assert isinstance(register, Virtual)
        return IndexedPlace(base, register, LINE_BYTES)

    # --- fragments ----------------------------------------------------------------------------------

    def aim(self, lane: Scalar, group: Scalar, lines: int, *, left: bool) -> None:
        """Find out where a lane of a sub-group, which has so many lines, finds the rows that it loads."""
        row, halves = lane % SIDE, (lane // SIDE % 2, lane // (2 * SIDE))
        line_half, term_half = halves if left else (halves[1], halves[0])
        e = self.e
        turn = self._turn(row)
        self.count = lines // ROWS
        self.aims: list[Scalar] = []
        if self.deep:
            at = group * lines + line_half * SIDE + row
            chunk = _xor(e, term_half, turn, max(self.spread - 1, 1))
            for step in range(self.depth // TERMS):
                self.aims.append(at * self.pitch + _xor(e, chunk, 2 * step, self.pitch - 1))
        else:
            at = term_half * SIDE + row
            chunk = _xor(e, group * (lines // CHUNK) + line_half, turn, self.pitch - 1)
            for number in range(min(self.count, SIDE // 2)):
                self.aims.append(at * self.pitch + _xor(e, chunk, 2 * number, self.pitch - 1))

    def load(self, into: Sequence[Sequence[Virtual]], memory: Scalar, step: int) -> None:
        """Load the fragments of a step along the terms, each of 16 lines, from a slab at some chunk of the memory."""
        for number, registers in enumerate(into):
            if self.deep:
                aim, beyond = self.aims[step], number * ROWS * self.pitch
            else:
                aim = self.aims[number % len(self.aims)]
                beyond = step * TERMS * self.pitch + number // len(self.aims) * SIDE
            place = self._place(Shared(beyond * LINE_BYTES + self.offset), memory + aim)
            self.e.record("MatrixLoad", *registers, place, not self.deep)


class RowSlab(Slab):
    """A slab of a factor that is rows in memory."""

    def __init__(
        self, e: Emitter, name: str, layout: LaidRows, start: Scalar, *, lines: int, depth: int, offset: int
    ) -> None:  # fmt: skip
        super().__init__(e, name, layout, start, lines=lines, depth=depth, offset=offset)
        self.layout = layout

    def find(self, tile: Scalar) -> None:
        e = self.e
        if self.deep:
            first, last = tile * self.rows + self.row, self.layout.rows - 1
            even = first.most is not None and first.most + (self.pieces - 1) * self.step <= last
            places = [first] if even else [first + n * self.step for n in range(self.pieces)]
            self.lines = [self.start + at_most(e, at, last) * self.layout.stride for at in places]
        else:
            column = at_most(e, tile * self.pitch + self.chunk, self.layout.chunks - 1)
            self.lines = [self.start + column]

    def source(self, piece: int, slab: Scalar, valid: Scalar) -> tuple[Scalar, int, Scalar]:
        e, inside, further = self.e, valid, piece * self.step
        whole = self.terms % self.depth == 0
        if self.deep:
            chunk = slab * self.pitch + self.chunk
            if not whole:
                inside = e.both(valid, e.compare("LT", chunk, self.layout.chunks))
                chunk = at_most(e, chunk, self.layout.chunks - 1)
            line = self.lines[min(piece, len(self.lines) - 1)]
            return line + chunk, further * self.layout.stride if len(self.lines) == 1 else 0, inside
        term, constant = slab * self.depth + self.row, further * self.layout.stride
        if not whole:
            term, constant = term + further, 0
            inside = e.both(valid, e.compare("LT", term, self.terms))
            term = at_most(e, term, self.terms - 1)
        return self.lines[0] + term * self.layout.stride, constant, inside


def _fields(base: Shared | BufferOffset) -> dict[str, Any]:
    return {"handle": base.handle} if isinstance(base, BufferOffset) else {}


# --- the kernel -----------------------------------------------------------------------------------


class ProductWriter(ABC):
    """The kernel of a product under construction."""

    def __init__(self, node: Node, layouts: Sequence[Laid], cut: MatrixTiling) -> None:
        self.node, self.cut, self.tile = node, cut, cut.tile
        self.rows, self.columns, self.batch = self.extents()
        self.lanes = cut.blocks * self.tile.lanes
        self.e = e = Emitter((self.lanes,), usable=USABLE)
        self.ty = TYPES[layouts[0].dtype]
        self.reads: list[Read] = []
        self.scratch: list[Write] = []
        if cut.parts == 1:
            self.write = Write(e, "out", node.shape, node.dtype)
        else:
            self.write = Write(e, PART, (cut.parts * count(node.shape),), dtypes.float32)
            self.scratch.append(self.write)
        self.names: list[str] = []
        for k, (x, layout) in enumerate(zip(node.inputs, layouts, strict=True)):
            if layout.copied:
                self.scratch.append(Write(e, copied(k), (layout.size,), layout.dtype))
            else:
                self.reads.append(Read(e, f"x{k}", x.shape, x.dtype))
            self.names.append(copied(k) if layout.copied else f"x{k}")

    @abstractmethod
    def extents(self) -> tuple[int, int, int]:
        """Rows, columns, and how many products there are."""

    def kernel(self) -> Kernel:
        e, cut, tile = self.e, self.cut, self.tile
        place, block = e.lane % tile.lanes, e.lane // tile.lanes
        part = e.digit(block, cut.down * cut.across * self.batch, cut.parts)
        which = e.digit(block, cut.down * cut.across, self.batch)
        down, across = corner(block % (cut.down * cut.across), cut.down, cut.across)
        group, lane = place // LANES, place % LANES
        wide = tile.columns // tile.group_columns
        groups = group // wide, group % wide
        slabs = self.slabs(which)
        for slab, number in zip(slabs, (down, across), strict=True):
            slab.prepare(place, tile.lanes, number)
        for k, (slab, lines) in enumerate(zip(slabs, (tile.group_rows, tile.group_columns), strict=True)):
            slab.aim(lane, groups[k], lines, left=k == 0)
        sums = self._sums(slabs, part)
        top = down * tile.rows + groups[0] * tile.group_rows + lane // 4
        pair = across * (tile.columns // 2) + groups[1] * (tile.group_columns // 2) + lane % 4
        self.store(sums, part, which, top, pair)
        writes = [self.write, *(memory for memory in self.scratch if memory is not self.write)]
        program = shown(e.finish(self.node.op.name, self.reads, writes, self.lanes))
        buffers = tuple((f"x{k}", k) for k in range(2) if f"x{k}" in program.param)
        launch = LaunchConfig.linear(self.lanes, tile.lanes, tile.memory)
        return Kernel(program, launch, None, ("out",), buffers, (), tuple(needed(memory) for memory in self.scratch))

    @abstractmethod
    def slabs(self, which: Scalar) -> list[Slab]:
        """How the factors of one of the products come to shared memory."""

    def _sums(self, slabs: Sequence[Slab], part: Scalar) -> list[list[list[Virtual]]]:
        e, tile, rounds, held = self.e, self.tile, self.cut.slabs, self.tile.slabs
        steps = tile.depth // TERMS
        size = sum(slab.chunks for slab in slabs)
        zero = Immediate(Type.F32, 0.0)
        sums = [
            [[e.fresh(Type.F32) for _ in range(4)] for _ in range(tile.group_columns // COLUMNS)]
            for _ in range(tile.group_rows // ROWS)
        ]
        for register in (r for line in sums for four in line for r in four):
            e.record("MOV_IMM", register, zero)
        # Two of each: those that are multiplied, and those that are being loaded.
        fragments = [
            [[[e.fresh(Type.U32) for _ in range(4)] for _ in range(slab.count)] for slab in slabs] for _ in range(2)
        ]
        for number in range(held - 1):
            self._begin(slabs, part, e.number(number), e.number(number * size), range(1), 0)
            e.record("CopyCommit")
        e.record("CopyWait", held - 2)
        e.barrier()
        for slab, into in zip(slabs, fragments[0], strict=True):
            slab.load(into, e.number(0), 0)
        with e.counted(rounds) as q:
            here, free, following = (((q + n) % held) * size for n in (0, held - 1, 1))
            for step in range(steps):
                if step < steps - 1:
                    self._begin(slabs, part, q + (held - 1), free, range(steps - 1), step)
                if step == steps - 2:
                    e.record("CopyCommit")
                if step == steps - 1:
                    e.record("CopyWait", held - 2)
                    e.barrier()
                memory, now = (following, 0) if step == steps - 1 else (here, step + 1)
                for slab, into in zip(slabs, fragments[(step + 1) % 2], strict=True):
                    slab.load(into, memory, now)
                self._multiply(sums, *fragments[step % 2])
        return sums

    def _begin(
        self, slabs: Sequence[Slab], part: Scalar, number: Scalar, memory: Scalar, turns: Sequence[int], turn: int
    ) -> None:
        """Begin to copy the slab of a part with this number, or in one of several turns a share of it."""
        e, rounds = self.e, self.cut.slabs
        total = -(-slabs[0].terms // self.tile.depth)
        valid = e.compare("LT", number, rounds)
        slab = part * rounds + at_most(e, number, rounds - 1)
        if self.cut.parts * rounds > total:
            valid = e.both(valid, e.compare("LT", slab, total))
            slab = at_most(e, slab, total - 1)
        for one in slabs:
            one.copy(range(one.pieces)[turn :: len(turns)], slab, valid, memory)

    def _multiply(self, sums: list[list[list[Virtual]]], left: list[list[Virtual]], right: list[list[Virtual]]) -> None:
        for row, a in zip(sums, left, strict=True):
            for number, c in enumerate(row):
                b = right[number // 2][number % 2 * 2 :][:2]
                self.e.record("MatrixMultiply", self.ty, *c, *a, *b, *c)

    @abstractmethod
    def store(self, sums: list[list[list[Virtual]]], part: Scalar, which: Scalar, top: Scalar, left: Scalar) -> None:
        """Write the sums of a lane, whose first row and first pair of columns are told."""

    def only(self, truth: Scalar) -> Any:
        """Around code for lanes for which something holds."""
        return ExitStack() if truth.known else self.e.only_if(truth)


class _MatrixWriter(ProductWriter):
    """The kernel of a product of matrices."""

    def __init__(self, node: Node, layouts: Sequence[Layout], cut: MatrixTiling) -> None:
        super().__init__(node, layouts, cut)
        self.layouts = layouts

    def extents(self) -> tuple[int, int, int]:
        return self.node.shape[-2], self.node.shape[-1], count(self.node.shape[:-2])

    def slabs(self, which: Scalar) -> list[Slab]:
        e, tile = self.e, self.tile
        places = digits(e, which, self.node.shape[:-2])
        found: list[Slab] = []
        for name, layout, lines in zip(self.names, self.layouts, (tile.rows, tile.columns), strict=True):
            offset = sum(slab.chunks for slab in found) * LINE_BYTES
            start = layout.start(e, places)
            found.append(RowSlab(e, name, layout, start, lines=lines, depth=tile.depth, offset=offset))
        return found

    def store(self, sums: list[list[list[Virtual]]], part: Scalar, which: Scalar, top: Scalar, left: Scalar) -> None:
        e = self.e
        result = Dense(which * (self.rows * self.columns), self.columns)
        start = part * count(self.node.shape)
        last = left + (len(sums[0]) - 1) * (COLUMNS // 2)
        whole = self.columns % 2 == 0 and last.most is not None and last.most < self.columns // 2  # no edge is reached
        pairs = [left + number * (COLUMNS // 2) for number in range(1 if whole else len(sums[0]))]
        for number, line in enumerate(sums):
            for half in range(2):
                row = top + (number * ROWS + half * SIDE)
                with self.only(e.compare("LT", row, self.rows)):
                    down = start + result.row(at_most(e, row, self.rows - 1))
                    for k, four in enumerate(line):
                        pair, beyond = (pairs[0], k * COLUMNS) if whole else (pairs[k], 0)
                        self._store_pair(down, pair, beyond, four[2 * half :][:2])

    def _store_pair(self, down: Scalar, pair: Scalar, further: int, sums: Sequence[Virtual]) -> None:
        e = self.e
        values = [e.convert(Scalar(e, dtypes.float32, register), self.write.dtype) for register in sums]
        if self.columns % 2 == 0:  # both lie within the result, or neither, and side by side where machines like it
            with self.only(e.compare("LT", pair, self.columns // 2)):
                first = down + at_most(e, pair, self.columns // 2 - 1) * 2
                for beyond, value in enumerate(values):
                    self.write.store(first, value, further + beyond)
            return
        for beyond, value in enumerate(values):
            at = pair * 2 + beyond
            with self.only(e.compare("LT", at, self.columns)):
                self.write.store(down + at_most(e, at, self.columns - 1), value)
