"""Elementwise code over inputs that lie differently: broadcast, permuted, cut out, joined.

Comes in: the nodes of a group (or one node) whose code for one element depends on the element's index. Goes out: a
kernel in which a lane computes a row of elements in a loop, so that what follows from the row's index is computed once,
and elements that lie one after another are read and written as vectors. A row is the last axis, or several that all
inputs have or lack together; where tensors are joined or padded along it, it is taken in stretches that each come from
one of them. Where an input lies the other way round (transposed), a lane computes a strip of such rows in tiles, so
that each line of memory that is touched is used whole while it is in the cache.

Short rows are not worth a loop: then a lane computes one element. On machines of blocks neighbouring lanes compute
neighbouring elements; of large tensors each computes a vector of them, which it reads and writes at once, or, where
inputs lie otherwise, several that lie far apart, so that many are under way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from typing import Any

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import VECTORS, LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops.joining import ROLLED, concatenate
from eshkol.ops.movement import expand, permute
from eshkol.ops.padding import BORDERED, UNBORDERED
from eshkol.ops.row import Aval, KernelOp, Op, Pull, Shape, row
from eshkol.ops.shapes import count
from eshkol.ops.slicing import pad_constant
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.code import OutOfRegisters
from eshkol.schedule.kernels.costs import weight
from eshkol.schedule.kernels.emit import NOTHING, Emitter
from eshkol.schedule.kernels.kernel import Kernel, bound, core_block, shown
from eshkol.schedule.kernels.placing import PLACED
from eshkol.schedule.kernels.reads import Number, Read, Write
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.space import Point, spread
from eshkol.schedule.kernels.takes import TAKEN, own_axes
from eshkol.schedule.kernels.values import SAME, GroupValues, straight
from eshkol.support.extents import Extent

SHORTEST = 8  # elements of a row
MOST_STRETCHES = 8  # of a row
MOST_PARTS = 16  # that are joined along an earlier axis: whole rows, of which a lane asks once whose they are
CHEAP = 128  # instructions of an element, of which several are worth having under way in one lane
TURNED_TILE = 64  # elements along both sides of a tile that is turned by a block
WORD = 4  # bytes: columns of a tile that are a word apart lie in banks of their own
READ_FIRST = 8  # inputs that are read for all elements of a lane before anything is computed, at most
TURNED: Op = row(KernelOp(
    name="turned", doc="The last two axes exchanged, in memory of its own.", names=("x",),
    infer=lambda a, x: Aval((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype),
    reference=lambda a, x: x.swapaxes(-1, -2).copy(), lower=Pull(lambda e, a, i, x: x([*i[:-2], i[-1], i[-2]])),
))  # fmt: skip
ROWWISE = frozenset(
    {concatenate, pad_constant, BORDERED, UNBORDERED, PLACED, TURNED}
)  # nodes besides elementwise ones and those that move, by themselves


def suits(node: Node) -> bool:
    """Whether a node by itself is better computed in rows, if its code depends on the shape."""
    return node.outs is None and (node.op.elementwise or node.op.moves or node.op in ROWWISE)


def joins_rows(node: Node, target: MachineDescription) -> bool:
    """Whether a node joins tensors along their rows, each of which is a stretch that is computed by itself.

    So it is with a tensor and its border, unless there is so much of it that what is computed along is better written.
    """
    if node.op is BORDERED:
        (x,) = node.inputs
        return not target.blocks and x.shape[-1] >= SHORTEST and 2 * count(node.shape) <= 3 * count(x.shape)
    if node.op is not concatenate or target.blocks:
        return False
    if node.attrs.axis != len(node.shape) - 1:
        return len(node.inputs) <= MOST_PARTS and node.shape[-1] >= SHORTEST
    return len(node.inputs) <= MOST_STRETCHES and (
        interleaves(node) or all(x.shape[-1] >= SHORTEST for x in node.inputs)
    )


def interleaves(node: Node) -> bool:
    """Whether rows are joined of single elements, as `stack` along the last axis does."""
    joined = node.op is concatenate and node.attrs.axis == len(node.shape) - 1
    return joined and len(node.inputs) <= MOST_STRETCHES and all(x.shape[-1] == 1 for x in node.inputs)


def _joins_early(node: Node) -> bool:
    """Whether a node joins tensors along an axis before the last."""
    return node.op is concatenate and node.attrs.axis != len(node.shape) - 1


def is_wide(target: MachineDescription, elements: int) -> bool:
    """Whether a lane is to compute several of so many elements."""
    return target.blocks and elements >= target.wide and elements % target.several == 0


def elements_kernel(
    name: str, nodes: Sequence[Node], outs: Sequence[Node], names: Sequence[str], inputs: Sequence[Node], shape: Shape,
    target: MachineDescription,
) -> Kernel:  # fmt: skip
    """The kernel that computes nodes of one shape."""
    return _Kernel(name, nodes, outs, names, inputs, shape, target).made()


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a row."""

    start: int
    length: int


class _Kernel:
    def __init__(
        self, name: str, nodes: Sequence[Node], outs: Sequence[Node], names: Sequence[str], inputs: Sequence[Node],
        shape: Shape, target: MachineDescription,
    ) -> None:  # fmt: skip
        self.target = target
        self.name, self.nodes, self.outs, self.names, self.inputs, self.shape = name, nodes, outs, names, inputs, shape
        self.row = _row_length(nodes, shape)

    def made(self) -> Kernel:
        turned = _turned_axis(self.nodes, self.shape)
        if turned is not None and min(self.shape[turned], self.shape[-1]) >= SHORTEST:
            if not self.target.blocks:
                return self._strips(turned)
            if count(self.shape) >= self.target.wide:
                with suppress(OutOfRegisters):
                    return self._turned_tiles(turned)
        if is_wide(self.target, count(self.shape)):
            if (number := self._vector()) > 1:
                with suppress(OutOfRegisters):
                    return self._vectors(number)
            if sum(map(weight, self.nodes)) <= CHEAP:
                with suppress(OutOfRegisters):
                    return self._several(self.target.several)
            return self._each()
        if self.target.blocks or (
            self.row < SHORTEST and not any(interleaves(node) and node.shape == self.shape for node in self.nodes)
        ):
            return self._each()
        joined = next((n for n in self.nodes if n.shape == self.shape and _joins_early(n)), None)
        return self._rows() if joined is None else self._rows_of_parts(joined)

    # --- ways to go over the elements -----------------------------------------------------------------

    def _each(self) -> Kernel:
        """One lane for each element."""
        lanes = count(self.shape)
        self._begin(lanes)
        self._element(Point(self.e, (lanes,), (self.e.lane,)))
        return self._finished(lanes, self.target.block)

    def _several(self, number: int) -> Kernel:
        """One lane for several elements, as far apart as there are lanes."""
        elements = count(self.shape)
        lanes = elements // number
        self._begin(lanes)
        points = [Point(self.e, (elements,), (self.e.lane + k * lanes,)) for k in range(number)]
        if len(self.inputs) <= READ_FIRST:  # what branches, as sines do, would keep later reads waiting
            for point in points:
                self._read(point)
        # All is computed before anything is written: an output may lie where an input was.
        results = [[self.values.at(n, point) for n in self.outs] for point in points]
        for point, found in zip(points, results, strict=True):
            for write, result in zip(self.writes, found, strict=True):
                write.store(point.flat, result)
        return self._finished(lanes, self.target.block)

    def _vector(self) -> int:
        """How many neighbours a lane computes: as many as are read at once, if they are so wherever they are read."""
        whole = count(self.shape)
        if not all(_keeps_neighbours(node) for node in self.nodes):
            return 1
        full = [x for x in (*self.inputs, *self.outs) if x.op is not CONST and count(x.shape) == whole]
        number = self.target.vector // max(x.dtype.size for x in full)
        code = sum(map(weight, self.nodes))
        while number > 1 and (whole % number or self.row % number or number * code > CHEAP * self.target.several):
            number //= 2
        return number

    def _vectors(self, number: int) -> Kernel:
        """One lane for so many neighbours."""
        whole, row = count(self.shape), self.row
        lanes = whole // number
        self._begin(lanes)
        e, flat = self.e, self.e.lane * number
        points = []
        for k in range(number):
            if row == whole:
                point = Point(e, (whole,), (e.beyond(flat, k),))
            else:
                across = row // number
                place = e.beyond(e.lane % across * number, k)
                point = Point(e, (whole // row, row), (e.lane // across, place))
                point.lies_at(e.beyond(flat, k))
            points.append(point)
        for point in points:
            self._read(point)
        # All is computed before anything is written: an output may lie where an input was.
        results = [[self.values.at(n, point) for point in points] for n in self.outs]
        for write, found in zip(self.writes, results, strict=True):
            for point, result in zip(points, found, strict=True):
                write.store(point.flat, result)
        names = [(read.name, x) for read, x in zip(self.reads, self.inputs, strict=True) if x.op is not CONST]
        names += zip(self.names, self.outs, strict=True)
        aligned = [name for name, x in names if count(x.shape) * x.dtype.size % self.target.vector == 0]
        return self._finished(lanes, self.target.block, {VECTORS: " ".join(aligned)})

    def _rows(self) -> Kernel:
        """One lane for each row; few long rows are split, so that every core has work."""
        rows, row = count(self.shape) // self.row, self.row
        stretches = _stretches(self.nodes, self.shape, row)
        piece = self.target.piece
        if rows >= self.target.busy or row <= piece:
            self._begin(rows)
            for stretch in stretches:
                self._run(rows, self.e.lane, self.e.number(stretch.start), stretch.length)
            return self._finished(rows, core_block(self.target, row))
        pieces = [divmod(stretch.length, piece) for stretch in stretches]
        numbers = [whole + bool(rest) for whole, rest in pieces]
        parts = sum(numbers)
        self._begin(rows * parts)
        e = self.e
        place = e.lane // parts if rows > 1 else e.number(0)
        # The remainder is taken of one row too if it has stretches: where LLVM sees that the part is the lane and less
        # than so much, it computes addresses in other bits, and no longer sees that neighbours lie side by side.
        part = e.lane % parts if rows > 1 or len(stretches) > 1 else e.lane
        first = 0
        for stretch, number, (whole, rest) in zip(stretches, numbers, pieces, strict=True):

            def code(start: Scalar, length: int, stretch: Stretch = stretch) -> None:
                self._run(rows, place, start + stretch.start, length)

            mine = e.both(e.compare("GE", part, first), e.compare("LT", part, first + number))
            with nullcontext() if len(stretches) == 1 else e.only_if(mine):
                self._whole_or_rest(e.within(part - first, number), whole, piece, rest, code)
            first += number
        return self._finished(rows * parts, 1)

    def _rows_of_parts(self, joined: Node) -> Kernel:
        """One lane for each row, or for a piece of one, of tensors that are joined along an axis before the last."""
        axis, shape = joined.attrs.axis, self.shape
        extents = count(shape[:axis]), shape[axis], count(shape[axis + 1 : -1]), shape[-1]
        rows, last, piece = count(shape[:-1]), shape[-1], self.target.piece
        pieces = -(-last // piece) if rows < self.target.busy else 1
        length = -(-last // pieces)
        self._begin(rows * pieces)
        e = self.e
        row, start = e.lane // pieces, e.at_most(e.op("MIN", e.lane % pieces * length, e.number(last - length)), last)
        outer, place, between = (e.digit(row, count(extents[k + 1 : -1]), extents[k]) for k in range(3))
        first = 0
        for part in joined.inputs:
            height = part.shape[axis]
            mine = e.both(e.compare("GE", place, first), e.compare("LT", place, first + height))
            with nullcontext() if height == shape[axis] else e.only_if(mine):
                places = outer, e.within(place - first, height) + first, between
                self.values.settle(self.nodes, Point(e, extents, (*places, start)), (False, False, False, True))
                with e.counted(length) as j:
                    self._element(Point(e, extents, (*places, start + j)))
            first += height
        return self._finished(rows * pieces, 1 if pieces > 1 else core_block(self.target, last))

    def _run(self, rows: int, place: Scalar, start: Scalar, length: int) -> None:
        """Elements one after another, of one row."""
        self.values.settle(self.nodes, Point(self.e, (rows, self.row), (place, start)), (False, True))
        with self.e.counted(length) as j:
            self._element(Point(self.e, (rows, self.row), (place, start + j)))

    def _whole_or_rest(
        self, number: Scalar, whole: int, size: int, rest: int, code: Callable[[Scalar, int], None]
    ) -> None:
        """The code of a part, given where it starts and its size: of one of the whole ones, or of what is left."""
        e = self.e
        if not rest:
            code(number * size, size)
        elif not whole:
            code(e.number(0), rest)
        else:  # a loop of one round or none says which of them it is
            is_whole = e.convert(e.compare("LT", number, whole), number.dtype)
            with e.counted(is_whole):
                code(e.within(number, whole) * size, size)
            with e.counted(1 - is_whole):
                code(e.number(whole * size), rest)

    def _strips(self, axis: int) -> Kernel:
        """Strips of rows along the axis that an input has last, one for each lane; each in tiles."""
        shape, last = self.shape, self.shape[-1]
        height = shape[axis]
        outer, between = count(shape[:axis]), count(shape[axis + 1 : -1])
        height_of_strip, tile = self.target.strip, self.target.tile
        strips = -(-height // height_of_strip)
        tiles, rest = divmod(last, tile)
        parts = self._parts_of_strips(outer * between * strips, tiles)
        each = -(-tiles // parts)
        lanes = outer * between * strips * parts
        self._begin(lanes)
        e = self.e
        part, strip = e.lane % parts, e.lane // parts % strips
        other = e.lane // (parts * strips)
        places = other // between, other % between
        extents = (outer, height, between, last)

        top = strip * height_of_strip
        rows: int | Scalar = (
            min(height, height_of_strip)
            if height % height_of_strip == 0 or strips == 1
            else e.op("MIN", e.number(height_of_strip), height - top)
        )

        def element(i: Scalar, place: Scalar) -> None:
            row = e.within(top + i, height)  # as it is, but a machine need not look further to see that
            self._element(Point(e, extents, (places[0], row, places[1], place)))

        if tiles:
            here = each if parts * each == tiles else e.op("MIN", e.number(each), tiles - part * each)
            with e.counted(here) as t, e.counted(rows) as i:
                start = e.within(part * each + t, tiles) * tile
                with e.counted(tile) as j:
                    element(i, start + j)
        if rest:
            is_last = 1 if parts == 1 else e.convert(e.compare("EQ", part, parts - 1), part.dtype)
            with e.counted(is_last), e.counted(rows) as i, e.counted(rest) as j:
                element(i, j + tiles * tile)
        return self._finished(lanes, 1)

    def _turned_tiles(self, axis: int) -> Kernel:
        """Square tiles, one for each block: what lies the other way round is turned in the memory that lanes share.

        First lanes that stand side by side have neighbours along the axis that such an input has last, then along the
        last one.
        """
        shape, last, block = self.shape, self.shape[-1], self.target.block
        height, between = shape[axis], count(shape[axis + 1 : -1])
        side = min(TURNED_TILE, block)
        down, across = -(-height // side), -(-last // side)
        lanes = count(shape[:axis]) * between * down * across * block
        self._begin(lanes)
        e = self.e
        turned = [n for n in self.nodes if _turned_axis([n], shape) == axis]
        memory = {n: e.shared(n.dtype, side * (side + max(1, WORD // n.dtype.size))) for n in turned}
        tile, lane = e.lane // block, e.lane % block
        top, left = tile // across % down * side, tile % across * side
        other = tile // (across * down)
        near, steps = lane % side, [lane // side + k * (block // side) for k in range(side * side // block)]

        def point(row: Scalar, column: Scalar) -> Point:
            places = (_bounded(e, top + row, height), other % between, _bounded(e, left + column, last))
            return Point(e, (count(shape[:axis]), height, between, last), (other // between, *places))

        def place(n: Node, row: Scalar, column: Scalar) -> Scalar:
            return e.at_most(column * (side + max(1, WORD // n.dtype.size)) + row, side * (side + WORD) - 1)

        for n in turned:
            for column, value in [(column, self.values.at(n, point(near, column))) for column in steps]:
                memory[n].store(place(n, near, column), value)
        e.barrier()
        points = [point(step, near) for step in steps]
        for step, here in zip(steps, points, strict=True):
            here.known.update({n: memory[n].load(place(n, step, near)) for n in turned})
        results = [[self.values.at(n, here) for n in self.outs] for here in points]
        for step, here, found in zip(steps, points, results, strict=True):
            inside = [e.compare("LT", top + step, height)] if height % side else []
            inside += [e.compare("LT", left + near, last)] if last % side else []
            with e.only_if(reduce(e.both, inside)) if inside else nullcontext():
                for write, result in zip(self.writes, found, strict=True):
                    write.store(here.flat, result)
        if e.shared_memory > self.target.shared_memory:
            raise OutOfRegisters(f"a kernel needs {e.shared_memory} bytes of shared memory")
        return self._finished(lanes, block)

    def _parts_of_strips(self, strips: int, tiles: int) -> int:
        """Into how many parts strips are cut, so that all of a machine has work: none of which may be left without."""
        if tiles == 0 or type(strips) is Extent or type(tiles) is Extent:
            return 1
        worth = count(self.shape) // (strips * self.target.part_work)
        wanted = max(1, min(tiles, -(-self.target.busy // strips), worth))
        return -(-tiles // -(-tiles // wanted))

    # --- code -----------------------------------------------------------------------------------------

    def _begin(self, lanes: int) -> None:
        self.e = e = Emitter((lanes,))
        self.reads = [
            Number(e, f"x{k}", x.dtype) if x.op is CONST else Read(e, f"x{k}", x.shape, x.dtype)
            for k, x in enumerate(self.inputs)
        ]
        self.writes = [Write(e, name, n.shape, n.dtype) for name, n in zip(self.names, self.outs, strict=True)]
        self.values = GroupValues(e, self.nodes, dict(zip(self.inputs, self.reads, strict=True)))

    def _read(self, point: Point) -> None:
        """Read the elements of inputs at a point."""
        for node in self.nodes:
            if count(node.shape) == count(self.shape):
                for x in straight(node):
                    if x not in self.values.nodes and count(x.shape) == count(node.shape):
                        self.values.seen(x, node.shape, point)

    def _element(self, point: Point) -> None:
        # All is computed before anything is written: an output may lie where an input was.
        results = [self.values.at(n, point) for n in self.outs]
        for write, result in zip(self.writes, results, strict=True):
            write.store(point.flat, result)

    def _finished(self, lanes: int, block: int, told: Mapping[str, str] = NOTHING) -> Kernel:
        program = shown(self.e.finish(self.name, self.reads, self.writes, told=told))
        buffers, numbers = bound(program, self.inputs)
        launch = LaunchConfig.linear(lanes, block, self.e.shared_memory)
        extents = tuple(self.e.extents.items())
        return Kernel(program, launch, lanes, tuple(self.names), buffers, numbers, extents=extents)


def _bounded(e: Emitter, place: Scalar, extent: int) -> Scalar:
    """A place of a tile; beyond the end, the last there is."""
    if place.most is not None and place.most < extent:
        return place
    return e.at_most(e.op("MIN", place, e.number(extent - 1)), extent - 1)


def _keeps_neighbours(node: Node) -> bool:
    """Whether neighbours along the last axis are computed from neighbours, or from one number."""
    last = len(node.shape) - 1
    if node.op is permute:
        return last >= 0 and node.attrs.axes[last] == last
    if node.op is TAKEN:
        return last not in own_axes(node)
    return bool(node.op.elementwise) or node.op is expand or node.op in SAME


def _row_length(nodes: Sequence[Node], shape: Shape) -> int:
    """How many last elements all inputs have, or lack, together."""
    length = count(shape)
    inside = set(nodes)
    for node in nodes:
        if count(node.shape) != count(shape):
            continue
        plain = straight(node)
        for x in node.inputs:
            if x.op is CONST or (count(x.shape) in (1, count(shape)) and x in plain):
                continue
            if x in plain and x not in inside:
                runs = spread(x.shape, node.shape)
                length = min(length, runs[-1][0] if runs else 1)
            elif node.shape:
                length = min(length, node.shape[-1])
        if node.op in ROWWISE or not node.inputs:
            length = min(length, node.shape[-1] if node.shape else 1)
    return length if count(shape) % max(length, 1) == 0 else (shape[-1] if shape else 1)


def _stretches(nodes: Sequence[Node], shape: Shape, row: int) -> list[Stretch]:
    """The parts of a row that come from one of the tensors joined along it, from one end of it, or from none."""
    edges = {0, row}
    for node in nodes:
        in_stretches = node.op in ROWWISE or node.op is ROLLED
        if not in_stretches or not node.shape or node.shape[-1] != row or count(node.shape) != count(shape):
            continue
        last = len(node.shape) - 1
        if node.op is concatenate and node.attrs.axis == last:
            edge = 0
            for x in node.inputs:
                edge += x.shape[-1]
                edges.add(edge)
        elif node.op is ROLLED:
            edges.add(node.attrs.shifts[last])
        elif node.op in (pad_constant, PLACED, BORDERED):
            edges |= {min(max(e, 0), row) for e in (node.attrs.low[last], row - node.attrs.high[last])}
        elif node.op is UNBORDERED and node.attrs.axis == last:
            edges |= {edge for start, stop, *_ in node.attrs.ends(row) if start < stop for edge in (start, stop)}
    found = sorted(edges)
    if len(found) > MOST_STRETCHES + 1:
        return [Stretch(0, row)]
    return [Stretch(start, end - start) for start, end in pairwise(found)]


def _turned_axis(nodes: Sequence[Node], shape: Shape) -> int | None:
    """The axis that a permuted input has last, where that is not the last axis."""
    for node in nodes:
        if node.op in (permute, TURNED) and node.shape == shape:
            x: Any = node.inputs[0]
            last = len(shape) - 1
            axes = list(node.attrs.axes) if node.op is permute else [*range(last - 1), last, last - 1]
            order = [k for k in axes if x.shape[k] != 1]  # axes of one element lie anywhere
            if order and max(order) != order[-1]:
                return axes.index(max(order))
    return None
