"""Which nodes are computed by one kernel.

Comes in: nodes in the order in which they can be computed, and those whose values must be there at the end. Goes out:
the same order in steps, a step being a node by itself or a `Group`. Elementwise nodes of one shape are computed
together, with what only says where their elements come from (`Op.moves`). A node of a group is written to memory only
if something outside the group needs it; the others live in registers.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

from eshkol.graph.node import Node
from eshkol.ops.row import Pull, Shape
from eshkol.ops.shapes import count
from eshkol.ops.structural import CONST
from eshkol.schedule.lower import Kernel, chosen, lowered

MOST_CODE = 600  # instructions of a kernel: larger ones take long to compile and run out of registers
MOST_INPUTS = 24


@dataclass(frozen=True, slots=True)
class Group:
    """Nodes that one kernel computes, in order, over the elements of one shape."""

    nodes: tuple[Node, ...]
    outs: tuple[Node, ...]  # those written to memory
    inputs: tuple[Node, ...]  # what they read that is not among them
    shape: Shape
    kind: str = "elementwise"  # or "rows", "columns": see fused.py


@dataclass(eq=False, slots=True)
class _Growing:
    """A group while nodes join it, from its last to its first."""

    shape: Shape
    last: int  # the place of its last node in the order: where it is computed
    code: int
    members: list[Node] = field(default_factory=list)
    stored: list[Node] = field(default_factory=list)
    reads: set[Node] = field(default_factory=set)


def steps(order: Sequence[Node], kept: set[Node]) -> list[Node | Group]:
    """The order with nodes that are computed together in groups."""
    if len(order) == 1:
        return list(order)
    place = {node: k for k, node in enumerate(order)}
    users: dict[Node, list[Node]] = {node: [] for node in order}
    for node in order:
        for x in node.inputs:
            if x in users:
                users[x].append(node)
    groups: dict[Node, list[_Growing]] = {}  # to which each node belongs; one that moves may be in several
    for node in reversed(order):
        code = _code(node)
        if code is not None:
            groups[node] = _joined(node, code, users[node], groups, place, node in kept)
    found: list[Node | Group] = []
    for k, node in enumerate(order):
        mine = next((g for g in groups.get(node, ()) if g.last == k and g.members[0] is node), None)
        if mine is not None and len(mine.members) > 1:
            found.append(_finished(mine))
        elif node not in groups or (mine is not None and len(mine.members) == 1):
            found.append(node)
    if os.environ.get("ESHKOL_DUMP") in ("fuse", "all"):
        print("\n".join(map(described, found)), file=sys.stderr)
    return found


def described(step: Node | Group) -> str:
    """A step in one line: what it computes from what."""
    if isinstance(step, Node):
        return f"{step.op.name} {step.dtype}{list(step.shape)}"
    written = ", ".join(f"{n.op.name} {n.dtype}" for n in step.outs)
    return f"together over {list(step.shape)}: {' '.join(n.op.name for n in step.nodes)}; writes {written}"


def _code(node: Node) -> int | None:
    """How many instructions a node takes, if it may be computed with others."""
    op = node.op
    if not (op.elementwise or op.moves) or node.outs is not None or not count(node.shape):
        return None
    if op.traps and node.dtype.is_integer:
        return None
    if type(chosen(op.lower, node.attrs, node.inputs)) is not Pull:
        return None
    kernel = lowered(node)
    return len(kernel.program) if isinstance(kernel, Kernel) and len(kernel.program) <= MOST_CODE else None


def _joined(
    node: Node,
    code: int,
    users: Sequence[Node],
    groups: dict[Node, list[_Growing]],
    place: dict[Node, int],
    kept: bool,
) -> list[_Growing]:
    """The groups that a node belongs to: those of its users, or a new one."""
    inside = list(dict.fromkeys(g for u in users for g in groups.get(u, ())))
    outside = [u for u in users if u not in groups]
    stored = kept or bool(outside)
    if node.op.moves and not stored and inside and all(_fits(g, node, code) for g in inside):
        for g in inside:
            _join(g, node, code, False)
        return inside
    if len(inside) == 1 and _fits(inside[0], node, code):
        (g,) = inside
        # What is stored must lie as the group's elements do; who else reads it must not come before the group.
        alike = node.shape == g.shape if stored else count(node.shape) == count(g.shape)
        if alike and all(place[u] > g.last for u in outside):
            _join(g, node, code, stored)
            return inside
    new = _Growing(node.shape, place[node], 0)
    _join(new, node, code, True)
    return [new]


def _fits(g: _Growing, node: Node, code: int) -> bool:
    reads = (g.reads - {node}) | {x for x in node.inputs if x.op is not CONST}
    return g.code + code <= MOST_CODE and len(reads) + len(g.stored) < MOST_INPUTS


def _join(g: _Growing, node: Node, code: int, stored: bool) -> None:
    g.members.append(node)
    g.code += code
    g.reads.discard(node)
    g.reads.update(x for x in node.inputs if x.op is not CONST)
    if stored:
        g.stored.append(node)


def _finished(g: _Growing) -> Group:
    nodes = tuple(reversed(g.members))
    inside = set(nodes)
    inputs = tuple(dict.fromkeys(x for n in nodes for x in n.inputs if x not in inside))
    return Group(nodes, tuple(reversed(g.stored)), inputs, g.shape)
