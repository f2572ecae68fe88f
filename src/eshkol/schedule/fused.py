"""A group of nodes as a kernel: the pull code of each, reading that of the others instead of memory.

`lowered_group` gives the kernels of a group, which are run one after another: one for elementwise groups, two where
partial results are combined. `kernel.outs` has a name for each of `group.outs`, of which a kernel binds those that are
parameters of its program; `Kernel.scratch` names memory that is needed from the first to the last kernel of the group
and is shared among them by name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.atlas.program import LaunchConfig, Program
from eshkol.graph.node import Node
from eshkol.ops.row import Pull, Shape
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.emit import Emitter
from eshkol.schedule.fuse import Group
from eshkol.schedule.lower import Cache, Kernel, chosen, shown
from eshkol.schedule.reads import Number, Read, Write
from eshkol.schedule.scalars import Scalar

_kernels = Cache()
_sizeless = Cache()  # programs that serve all sizes


def lowered_group(group: Group) -> tuple[Kernel, ...]:
    """What computes a group: kernels to be run in order."""
    names = {x: ("x", k) for k, x in enumerate(group.inputs)} | {n: ("n", k) for k, n in enumerate(group.nodes)}
    structure = tuple((n.op, n.attrs, *(names[x] for x in n.inputs)) for n in group.nodes)
    outs = tuple(names[n] for n in group.outs)
    shapes = tuple(None if x.op is CONST else x.shape for x in group.inputs)
    dtypes = tuple((x.op is CONST, x.dtype) for x in group.inputs)
    key = (structure, outs, dtypes, shapes, group.shape)
    found: Kernel | None = _kernels.get(key)
    if found is None:
        kinds = tuple(_kind(s, group.shape) for s in shapes)
        alike = all(n.shape == group.shape for n in group.nodes)
        found = _kernel(group, (structure, outs, dtypes, kinds) if alike else None)
        _kernels.keep(key, found)
    return (found,)


def _kind(shape: Shape | None, whole: Shape) -> Any:
    """How an input lies to the group's elements, as far as code that depends on no extent can tell: as `Read` does."""
    if shape is None:
        return "number"
    if count(shape) == count(whole):
        return "same"
    return "one" if count(shape) == 1 else shape


def _kernel(group: Group, sizeless: Any) -> Kernel:
    lanes = count(group.shape)
    outs = tuple(f"out{k}" for k in range(len(group.outs)))
    program: Program | None = _sizeless.get(sizeless)
    if program is None:
        e = Emitter(group.shape)
        reads = [
            Number(e, f"x{k}", x.dtype) if x.op is CONST else Read(e, f"x{k}", x.shape, x.dtype)
            for k, x in enumerate(group.inputs)
        ]
        writes = [Write(e, name, group.shape, n.dtype) for name, n in zip(outs, group.outs, strict=True)]
        elements = _Elements(e, group, dict(zip(group.inputs, reads, strict=True)))
        # All is computed before anything is written: an output may lie where an input of the same lane was.
        results = [elements.of(n, e.here) for n in group.outs]
        for write, result in zip(writes, results, strict=True):
            write(e.here, result)
        program = shown(e.finish(_name(group), reads, writes))
        if sizeless is not None and not e.needs_shape:
            _sizeless.keep(sizeless, program)
    places = [(f"x{k}", k) for k in range(len(group.inputs)) if f"x{k}" in program.param]
    buffers = tuple((name, k) for name, k in places if group.inputs[k].op is not CONST)
    numbers = tuple((name, k) for name, k in places if group.inputs[k].op is CONST)
    return Kernel(program, LaunchConfig.linear(lanes), lanes, outs, buffers, numbers)


def _name(group: Group) -> str:
    """The ops of a group, as far as a name goes."""
    return "_".join(dict.fromkeys(n.op.name for n in group.nodes))[:100]


class Own(list[Any]):
    """The index at which the code of a node is asked for its element: its own, as `Here` is the lane's."""


class _Elements:
    """Elements of the nodes of a group, each computed once for the lane's own index."""

    def __init__(self, e: Emitter, group: Group, reads: dict[Node, Any]) -> None:
        self.e, self.nodes, self.reads = e, set(group.nodes), reads
        self.known: dict[Node, Scalar] = {}

    def of(self, node: Node, index: Any) -> Scalar:
        """A node's element at its own index."""
        if index is not self.e.here:
            return self._computed(node, Own(index))
        if node not in self.known:
            self.known[node] = self._computed(node, index)
        return self.known[node]

    def _computed(self, node: Node, index: Any) -> Scalar:
        how = chosen(node.op.lower, node.attrs, node.inputs)
        assert isinstance(how, Pull)
        found: Scalar = how.code(self.e, node.attrs, index, *(_Inner(self, x, node.shape) for x in node.inputs))
        return found


class _Inner:
    """What the code of one node sees of an input: another node of the group, or a buffer."""

    def __init__(self, elements: _Elements, node: Node, reader: Shape) -> None:
        self.elements, self.node, self.reader, self.dtype = elements, node, reader, node.dtype

    @property
    def shape(self) -> Shape:
        self.elements.e.note_shape()
        return self.node.shape

    @property
    def size(self) -> int:
        return count(self.shape)

    def __call__(self, index: Any) -> Scalar:
        e, shape = self.elements.e, self.node.shape
        if index is e.here and self.reader == e.here.shape:
            if self.node in self.elements.reads:
                found: Scalar = self.elements.reads[self.node](index)  # which broadcasts
                return found
            if shape == self.reader:
                return self.elements.of(self.node, index)
        places: Sequence[Any] = index
        if index is e.here or isinstance(index, Own):  # the reader's own index, of which the last places are ours
            e.note_shape()
            last = list(index)[len(index) - len(shape) :] if shape else []
            places = [e.number(0) if n == 1 else p for n, p in zip(shape, last, strict=True)]
        if self.node in self.elements.reads:
            return self._read(places)
        return self.elements.of(self.node, places)

    def _read(self, places: Sequence[Any]) -> Scalar:
        read = self.elements.reads[self.node]
        found: Scalar = read(places) if isinstance(read, Read) else read(None)
        return found
