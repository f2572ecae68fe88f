"""Tensors that are joined, along their rows and few at a time: each is then a loop of its own in a kernel.

A row that consists of parts is computed part after part, and of tensors that are joined along an earlier axis each row
is one's (`kernels/elements.py`); what they are made of is computed along with it. Where rows are too short for that,
tensors are joined along rows of the axis with all that are behind it. Of many parts a kernel would have to ask for each
element whose it is, so they are joined in groups, and those with each other.

Comes in: nodes whose derivatives have been taken. Goes out: the same values. Machines of blocks keep their own ways.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, make
from eshkol.ops.joining import Join, concatenate
from eshkol.ops.movement import ToShape, reshape
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.elements import MOST_PARTS, MOST_STRETCHES, SHORTEST, joins_rows
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
    parts = [x for x in node.inputs if x.shape[axis]]
    if axis < len(node.shape) - 1 and node.shape[-1] >= SHORTEST:
        return _in_groups(parts, axis, MOST_PARTS)
    rows, behind = count(node.shape[:axis]), count(node.shape[axis + 1 :])
    widths = [x.shape[axis] * behind for x in parts]
    if min(widths) < SHORTEST and len(parts) <= MOST_STRETCHES:
        return node  # a loop for each of so few elements would cost more than it saves
    flat = [_shaped(x, (rows, width)) for x, width in zip(parts, widths, strict=True)]
    return _shaped(_in_groups(flat, 1, MOST_STRETCHES), node.shape)


def _in_groups(parts: Sequence[Node], axis: int, most: int) -> Node:
    """Tensors in groups of nearly one size, and these joined."""
    while len(parts) > 1:
        groups = -(-len(parts) // most)
        edges = [k * len(parts) // groups for k in range(groups + 1)]
        parts = [_together(parts[a:b], axis) for a, b in pairwise(edges)]
    return parts[0]


def _together(parts: Sequence[Node], axis: int) -> Node:
    return parts[0] if len(parts) == 1 else make(concatenate, tuple(parts), Join(axis))


def _shaped(x: Node, shape: tuple[int, ...]) -> Node:
    return x if x.shape == shape else make(reshape, (x,), ToShape(shape))
