"""Reductions of broadcast operands along a short last axis, done along the axis before it; scans, side by side.

The distances of rows, sum((x[:, None] - y) ** 2, -1), reduce rows that are too short to be worth a vector's sum, once
for each pair. With y turned so that its rows lie along the last axis, a vector holds the sums of many pairs, and
nothing is added up across it. Only operands that are broadcast are turned, which are small beside what is reduced;
they are written to memory, so that vectors read them as they lie.

Scans along other axes than the last are done row after row (`kernels/scanning.py`).

Comes in: nodes whose derivatives have been taken. Goes out: the same values. Machines of blocks keep their own ways.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, make, topological
from eshkol.ops.movement import expand, reshape
from eshkol.ops.reductions import Along
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels.elements import TURNED
from eshkol.schedule.kernels.scanning import BESIDE, beside
from eshkol.schedule.rewrite.walk import New, again, in_order, walked

LONGEST = 128  # elements of rows that are turned: a longer one is worth a sum of its own
NARROWEST = 16  # rows that lie side by side then: a vector's
LEAST = 1 << 14  # elements that are reduced, for which turning is worth a kernel more
MOST = 24  # nodes between the operands and the reduction


def _turned(shape: Shape) -> Shape:
    return (*shape[:-2], shape[-1], shape[-2])


def turn_reductions(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with reductions along short last axes done along the axis before."""
    order = in_order(results)
    if target.blocks or not any(_short(node) or node.op in BESIDE for node in order):
        return list(results)

    def turned(node: Node, new: New) -> Node:
        found = again(node, new)
        other = beside(found) if found.op in BESIDE and found.data is None else None
        return other or (_other_way(found) if _short(found) else None) or found

    return walked(results, order, turned)


def _short(node: Node) -> bool:
    """Whether a node reduces a short last axis of many rows, that an elementwise op gives."""
    if node.data is not None or node.op.reduces is None or not node.dtype.is_float:
        return False
    (x,) = node.inputs
    last = len(x.shape) - 1
    return (
        last >= 2 and node.attrs.axes == (last,) and 1 < x.shape[-1] <= LONGEST and x.shape[-2] >= NARROWEST
        and count(x.shape) >= LEAST and _inside(x, x.shape)
    )  # fmt: skip


def _inside(node: Node, shape: Shape) -> bool:
    op = node.op
    return node.data is None and op.elementwise and node.outs is None and node.shape == shape and bool(node.inputs)


def _other_way(node: Node) -> Node | None:
    """The reduction along the axis before the last; None where operands are as large as what is reduced."""
    (x,) = node.inputs
    shape = x.shape
    order = topological([x], through=lambda n: n.inputs if _inside(n, shape) else ())
    if len(order) > MOST:
        return None
    leaves = [n for n in order if not _inside(n, shape)]
    sources = {n: _source(n) for n in leaves}
    if any(s.op is not CONST and count(s.shape) * NARROWEST > count(shape) for s in sources.values()):
        return None
    if any(s.dtype.is_complex or s.outs is not None for s in sources.values()):
        return None
    kinds = {(_along(s, -2), _along(s, -1)) for s in sources.values()}
    if (True, True) not in kinds or (False, True) not in kinds:
        return None  # nothing is broadcast along the rows that lie side by side, or all is
    new = {n: _exchanged(s, len(shape)) for n, s in sources.items()}
    for n in order:
        if n not in new:
            new[n] = make(n.op, tuple(new[i] for i in n.inputs), n.attrs)
    before = len(shape) - 2
    found = make(node.op, (new[x],), Along((before,), False))
    return found if found.shape == node.shape else reshape(found, node.shape)


def _source(node: Node) -> Node:
    """What a node that only repeats its input repeats."""
    while node.op is expand and node.data is None:
        (node,) = node.inputs
    return node


def _along(node: Node, axis: int) -> bool:
    return len(node.shape) >= -axis and node.shape[axis] != 1


def _exchanged(node: Node, ndim: int) -> Node:
    """An operand as it broadcasts to the shape whose last two axes are exchanged."""
    if count(node.shape) == 1:
        return node
    full = (1,) * (ndim - len(node.shape)) + node.shape
    x = node if full == node.shape else reshape(node, full)
    return make(TURNED, (x,), None) if full[-1] != 1 and full[-2] != 1 else reshape(x, _turned(full))
