"""Elements of the nodes of a group, written into one kernel: the pull code of each reads that of the others.

Comes in: the nodes, and how the kernel reads what is not among them. `Values.at(node, point)` gives the scalar that a
node has at a point (see `space.py`), computed once there. What all elements of a row share is put into `rows` and
`row_reads` before the loops over its elements, and what lies in memory since an earlier loop into `kept`.

The code of a node that moves elements asks for its input at another index than its own; such an input is computed for
that index alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from eshkol.graph.node import Node
from eshkol.ops.movement import expand, reshape
from eshkol.ops.row import Pull, Shape
from eshkol.ops.shapes import count
from eshkol.ops.structural import MARK
from eshkol.schedule.emit import Emitter
from eshkol.schedule.lower import chosen
from eshkol.schedule.reads import Number, Read, Write
from eshkol.schedule.scalars import Scalar
from eshkol.schedule.space import Point, aligned
from eshkol.schedule.takes import TAKEN, element, own_axes, place_of

SAME = frozenset({reshape, MARK})  # nodes that are their input, under another shape or name


def straight(node: Node) -> tuple[Node, ...]:
    """The inputs of which a node reads, for each of its elements, the one at the same place (or that broadcasts)."""
    op = node.op
    return node.inputs if op.elementwise or op is expand or not op.moves else ()


class Values:
    """What a kernel knows of the nodes of a group."""

    def __init__(self, e: Emitter, nodes: Iterable[Node], reads: dict[Node, Read | Number]) -> None:
        self.e, self.nodes, self.reads = e, set(nodes), reads
        self.rows: dict[Node, Scalar] = {}
        self.row_reads: dict[Any, Scalar] = {}
        self.kept: dict[Node, Write] = {}
        self.places: dict[Node, Scalar] = {}  # of what is taken: the place along the axis that all of a row have

    def at(self, node: Node, point: Point) -> Scalar:
        """A node's element at a point."""
        found = self.rows.get(node, point.known.get(node))
        if found is None:
            if node in self.kept:
                found = self.kept[node].load(point.flat)
            elif node.op in SAME:
                found = self.seen(node.inputs[0], node.inputs[0].shape, point)
            else:
                found = self._computed(node, point.index(node.shape), point)
            point.known[node] = found
        return found

    def seen(self, node: Node, whole: Shape, point: Point) -> Scalar:
        """What a reader that has the shape `whole` sees of a node, or of an input, at a point."""
        if node in self.rows:
            return self.rows[node]
        if node in self.nodes:
            if count(node.shape) == count(whole):
                return self.at(node, point)
            if node.size == 1:  # a number that is computed along: the same wherever it is seen from
                return self.elsewhere(node, [self.e.number(0)] * len(node.shape))
            return self.elsewhere(node, self.broadcast(node.shape, point.index(whole)))
        read = self.reads[node]
        if isinstance(read, Number):
            return read(None)
        key = read_key(node, whole)
        found = self.row_reads.get(key, point.known.get(key))
        if found is None:
            found = point.known[key] = read.load(point.position(node.shape, whole))
        return found

    def elsewhere(self, node: Node, places: Sequence[Any]) -> Scalar:
        """A node's element, or that of an input, at any index."""
        if node in self.nodes:
            if node.op is MARK:
                return self.elsewhere(node.inputs[0], places)
            return self._computed(node, _Own(places), None)
        read = self.reads[node]
        return read(None) if isinstance(read, Number) else read(list(places))

    def broadcast(self, shape: Shape, index: Sequence[Any]) -> list[Any]:
        """The index of the element that broadcasts from a shape to an index."""
        if all(n == 1 for n in shape):  # there is only one, wherever it is seen from
            return [self.e.number(0)] * len(shape)
        self.e.note_shape()
        last = list(index[len(index) - len(shape) :]) if shape else []
        return [self.e.number(0) if n == 1 else p for n, p in zip(shape, last, strict=True)]

    def settle(self, nodes: Iterable[Node], point: Point, turning: Sequence[bool]) -> None:
        """Read the places at which nodes take rows, before the loops over the runs of a point that are turning."""
        for node in nodes:
            axes = aligned(node.shape, point.extents) if node.op is TAKEN else None
            if axes is None or own_axes(node) & _turning(axes, turning):
                self.places.pop(node, None)
                continue
            index = point.index(node.shape)
            x, indices = (_Input(self, x, node.shape, index, point) for x in node.inputs)
            self.places[node] = place_of(self.e, node.attrs, index, x.shape[node.attrs.axis], indices)

    def _computed(self, node: Node, index: Any, point: Point | None) -> Scalar:
        how = chosen(node.op.lower, node.attrs, node.inputs)
        assert isinstance(how, Pull)
        inputs = (_Input(self, x, node.shape, index, point) for x in node.inputs)
        found: Scalar
        if point is not None and node in self.places:
            found = element(node.attrs, index, self.places[node], *inputs)
        else:
            found = how.code(self.e, node.attrs, index, *inputs)
        return found


def _turning(axes: Sequence[Sequence[int]], turning: Sequence[bool]) -> set[int]:
    return {k for mine, turns in zip(axes, turning, strict=True) if turns for k in mine}


def read_key(node: Node, whole: Shape) -> Any:
    """By what a read of a node's element by a reader of a shape is remembered."""
    return node if count(node.shape) in (1, count(whole)) else (node, whole)


class _Own(list[Any]):
    """The index at which the code of a node is asked for its element, where that is not a point's."""


class _Input:
    """What the code of one node sees of an input."""

    def __init__(self, values: Values, node: Node, whole: Shape, index: Any, point: Point | None) -> None:
        self.values, self.node, self.whole, self.index, self.point = values, node, whole, index, point
        self.dtype = node.dtype

    @property
    def shape(self) -> Shape:
        self.values.e.note_shape()
        return self.node.shape

    @property
    def size(self) -> int:
        return count(self.shape)

    def __call__(self, index: Any) -> Scalar:
        if index is not self.index:
            return self.values.elsewhere(self.node, index)
        if self.point is not None:
            return self.values.seen(self.node, self.whole, self.point)
        return self.values.elsewhere(self.node, self.values.broadcast(self.node.shape, index))
