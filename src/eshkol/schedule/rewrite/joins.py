"""Tensors that are joined, along their rows and few at a time: each is then a loop of its own in a kernel.

A row that consists of parts is computed part after part (`kernels/elements.py`), and what the parts are made of along
with it. Tensors that are joined along an earlier axis are rows, too, of that axis with all that are behind it. Of many
parts a kernel would have to ask for each element whose it is, so they are joined in groups, and those with each other.

Comes in: nodes whose derivatives have been taken. Goes out: the same values. Machines of blocks keep their own ways.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, make
from eshkol.ops.joining import Join, concatenate
from eshkol.ops.movement import ToShape, reshape
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.elements import MOST_STRETCHES, SHORTEST, joins_rows
from eshkol.schedule.rewrite.walk import New, again, in_order, walked


def join_rows(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with tensors joined along rows, few at a time."""
    order = in_order(results)
    if target.blocks or not any(_joins(node) for node in order):
        return list(results)

    def joined(node: Node, new: New) -> Node:
        found = again(node, new)
        return _along_rows(found) if _joins(found) and not joins_rows(found, target) else found

    return walked(results, order, joined)


def _joins(node: Node) -> bool:
    return node.op is concatenate and node.data is None and count(node.shape) > 0


def _along_rows(node: Node) -> Node:
    axis = node.attrs.axis
    rows, behind = count(node.shape[:axis]), count(node.shape[axis + 1 :])
    parts = [x for x in node.inputs if x.shape[axis]]
    widths = [x.shape[axis] * behind for x in parts]
    if min(widths) < SHORTEST and len(parts) <= MOST_STRETCHES:
        return node  # a loop for each of so few elements would cost more than it saves
    flat = [_shaped(x, (rows, width)) for x, width in zip(parts, widths, strict=True)]
    return _shaped(_in_groups(flat), node.shape)


def _in_groups(parts: Sequence[Node]) -> Node:
    """Parts of rows in groups of nearly one size, and these joined."""
    while len(parts) > 1:
        groups = -(-len(parts) // MOST_STRETCHES)
        edges = [k * len(parts) // groups for k in range(groups + 1)]
        parts = [_together(parts[a:b]) for a, b in itertools.pairwise(edges)]
    return parts[0]


def _together(parts: Sequence[Node]) -> Node:
    return parts[0] if len(parts) == 1 else make(concatenate, tuple(parts), Join(1))


def _shaped(x: Node, shape: tuple[int, ...]) -> Node:
    return x if x.shape == shape else make(reshape, (x,), ToShape(shape))
