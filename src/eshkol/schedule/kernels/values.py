"""Elements of the nodes of a group, written into one kernel: the pull code of each reads that of the others.

Comes in: the nodes, and how the kernel reads what is not among them. `Values.at(node, point)` gives the scalar that a
node has at a point (see `space.py`), computed once there. What all elements of a row share is put into `rows` and
`row_reads` before the loops over its elements, and what lies in memory since an earlier loop into `kept`.

The code of a node that moves elements asks for its input at another index than its own; such an input is computed for
that index alone.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any

from eshkol.graph.node import Node
from eshkol.ops.joining import concatenate
from eshkol.ops.movement import expand, reshape
from eshkol.ops.padding import BORDERED
from eshkol.ops.row import Pull, Shape
from eshkol.ops.shapes import count
from eshkol.ops.structural import MARK
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.indices import LazyIndex
from eshkol.schedule.kernels.kernel import lowering
from eshkol.schedule.kernels.reads import Number, Read, Write
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.space import Point, aligned
from eshkol.schedule.kernels.takes import TAKEN, element, own_axes, place_of

SAME = frozenset({reshape, MARK})  # nodes that are their input, under another shape or name
JOINED = frozenset({concatenate, BORDERED})  # nodes whose rows are put together of parts, which lie elsewhere


def straight(node: Node) -> tuple[Node, ...]:
    """The inputs of which a node reads, for each of its elements, the one at the same place (or that broadcasts)."""
    op = node.op
    return node.inputs if op.elementwise or op is expand or not (op.moves or op in JOINED) else ()


class GroupValues:
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
            for one in self._behind(node, point.known, lambda n: () if n in self.kept else self._beside(n)):
                if one in self.kept:
                    found = self.kept[one].load(point.flat)
                elif one.op in SAME:
                    found = self.seen(one.inputs[0], one.inputs[0].shape, point)
                else:
                    found = self._computed(one, point.index(one.shape), point)
                point.known[one] = found
        assert found is not None
        return found

    def _beside(self, node: Node) -> Iterable[Node]:
        """The nodes of the group that the code of a node asks for at the node's own element."""
        size = count(node.shape)
        read = node.inputs if node.op in SAME else straight(node)
        return [x for x in read if x in self.nodes and x not in self.rows and count(x.shape) == size]

    def _behind(self, node: Node, known: Container[Any], through: Callable[[Node], Iterable[Node]]) -> list[Node]:
        """A node and all it needs at its own element that is not known yet, inputs first.

        Computed in this order, the code of no node has to wait for that of another: a chain of nodes may be longer
        than Python's stack is deep.
        """
        order: list[Node] = []
        seen: set[Node] = set()
        stack = [(node, False)]
        while stack:
            one, inputs_done = stack.pop()
            if inputs_done:
                order.append(one)
            elif one not in seen and one not in known:
                seen.add(one)
                stack.append((one, True))
                stack.extend((x, False) for x in reversed(list(through(one))) if x not in seen)
        return order

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
            own = places if isinstance(places, _Own) else _Own(places, node.shape)
            for one in self._behind(node, own.known, self._alike):
                if one.op is MARK:
                    own.known[one] = self.elsewhere(one.inputs[0], own)
                else:
                    own.known[one] = self._computed(one, own, None)
            return own.known[node]
        read = self.reads[node]
        if isinstance(read, Number):
            return read(None)
        return read(places if isinstance(places, LazyIndex) and places is not self.e.here else list(places))

    def _alike(self, node: Node) -> Iterable[Node]:
        """The nodes of the group that the code of a node asks for at the node's own index, whatever that is."""
        read = node.inputs if node.op is MARK else straight(node)
        return [x for x in read if x in self.nodes and x.shape == node.shape]

    def broadcast(self, shape: Shape, index: Sequence[Any]) -> list[Any]:
        """The index of the element that broadcasts from a shape to an index."""
        if all(n == 1 for n in shape):  # there is only one, wherever it is seen from
            return [self.e.number(0)] * len(shape)
        self.e.note_shape()
        last = list(index[len(index) - len(shape) :]) if shape else []
        return [self.e.number(0) if n == 1 else p for n, p in zip(shape, last, strict=True)]

    def settle(self, nodes: Iterable[Node], point: Point, turning: Sequence[bool]) -> None:
        """Read the places at which nodes take rows, before the loops over the runs of a point that are turning."""
        self.places = self.settled(nodes, point, turning)

    def settled(self, nodes: Iterable[Node], point: Point, turning: Sequence[bool]) -> dict[Node, Scalar]:
        """The places at which nodes take rows, for those points to which a loop over such runs comes from a point."""
        found: dict[Node, Scalar] = {}
        for node in nodes:
            axes = aligned(node.shape, point.extents) if node.op is TAKEN else None
            if axes is None or own_axes(node) & _turning(axes, turning):
                continue
            index = point.index(node.shape)
            x, indices = (_Input(self, x, node.shape, index, point) for x in node.inputs)
            found[node] = place_of(self.e, node.attrs, index, x.shape[node.attrs.axis], indices)
        return found

    def _computed(self, node: Node, index: Any, point: Point | None) -> Scalar:
        how = lowering(node)
        assert isinstance(how, Pull)
        inputs = (_Input(self, x, node.shape, index, point) for x in node.inputs)
        found: Scalar
        places = self.places if point is None or point.settled is None else point.settled
        if point is not None and node in places:
            found = element(node.attrs, index, places[node], *inputs)
        else:
            found = how.code(self.e, node.attrs, index, *inputs)
        return found


def _turning(axes: Sequence[Sequence[int]], turning: Sequence[bool]) -> set[int]:
    return {k for mine, turns in zip(axes, turning, strict=True) if turns for k in mine}


def read_key(node: Node, whole: Shape) -> Any:
    """By what a read of a node's element by a reader of a shape is remembered."""
    return node if count(node.shape) in (1, count(whole)) else (node, whole)


class _Own(LazyIndex):
    """The index at which the code of a node is asked for its element, where that is not a point's."""

    def __init__(self, places: Sequence[Any], shape: Shape) -> None:
        super().__init__(shape)
        self.seen = places, shape
        self.known: dict[Node, Scalar] = {}  # of nodes of the shape that the index is of

    def _place(self, k: int) -> Scalar:
        assert self.seen is not None
        found: Scalar = self.seen[0][k]
        return found


class _Input:
    """What the code of one node sees of an input."""

    def __init__(self, values: GroupValues, node: Node, whole: Shape, index: Any, point: Point | None) -> None:
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
        if self.node.shape == self.whole and isinstance(index, _Own):
            return self.values.elsewhere(self.node, index)
        return self.values.elsewhere(self.node, self.values.broadcast(self.node.shape, index))
