"""Sums of powers along rows in one loop with the greatest element that they are relative to: online softmax.

Comes in: a group in which Σ exp(x - b) is wanted, b being the greatest x of a row or, where that is infinite, another
number. Goes out: code that goes over the row once. A lane has the greatest of its elements so far, and the sum of the
powers above that, which it scales whenever a greater one comes; lanes are brought to one level at the end. A level
that is infinite counts as 0, so that elements of -∞ add nothing, and the last factor gives what the formula says.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.elementwise import exp, sub, where
from eshkol.ops.movement import expand
from eshkol.ops.reductions import max_, sum_
from eshkol.schedule.kernels.rows import Phases, Writer, merge, neutral, working
from eshkol.schedule.kernels.scalars import Scalar
from eshkol.schedule.kernels.sharing import SharedRow, combined
from eshkol.schedule.kernels.space import Point
from eshkol.schedule.kernels.values import SAME


def online(phases: Phases) -> dict[Node, Node]:
    """Sums of powers of a group, and the greatest elements that they are found with."""
    found: dict[Node, Node] = {}
    for node in phases.reductions:
        most = _most(phases, node) if node.op is sum_ else None
        if most is not None:
            found[node] = most
    return found


def _most(phases: Phases, total: Node) -> Node | None:
    """The greatest elements of which a sum is one of powers above them; None of any other sum."""
    powers = _powers(total)
    if powers is None:
        return None
    x, level = powers
    for most in phases.reductions:
        if most.op is max_ and most.inputs[0] is x and most.attrs.axes == total.attrs.axes:
            fits = level is most or (level.op is where and most in map(_root, level.inputs))
            same = working(most) is working(total) is dtypes.float32
            return most if fits and same and phases.level[total] == phases.level[most] + 1 else None
    return None


def _powers(total: Node) -> tuple[Node, Node] | None:
    """x and b, where a sum is that of exp(x - b)."""
    power = total.inputs[0]
    if power.op is not exp or power.inputs[0].op is not sub:
        return None
    x, level = power.inputs[0].inputs
    return x, _root(level)


def _root(node: Node) -> Node:
    while node.op is expand or node.op in SAME:
        (node,) = node.inputs
    return node


class Running:
    """The greatest of a lane's elements so far, and the sum of powers above it."""

    def __init__(self, w: Writer, total: Node) -> None:
        self.w, self.total, self.most = w, total, w.phases.online[total]
        found = _powers(total)
        assert found is not None
        self.x, self.level = found
        e = w.e
        self.greatest = e.variable(e.constant(neutral(self.most), dtypes.float32))
        self.sum = e.variable(e.constant(0.0, dtypes.float32))

    def take(self, points: Sequence[Point]) -> None:
        """Go on with some elements."""
        e = self.w.e
        values = [e.convert(self.w.values.seen(self.x, self.x.shape, p), dtypes.float32) for p in points]
        greatest = self.greatest
        for value in values:
            greatest = merge(e, self.most, greatest, value)
        above = self._finite(greatest)
        added = self.sum * e.op("EXP", self.greatest - above)
        for value in values:
            added = added + e.op("EXP", value - above)
        e.assign(self.sum, added)
        e.assign(self.greatest, greatest)

    def _finite(self, level: Scalar) -> Scalar:
        e = self.w.e
        inside = e.both(e.compare("LT", level, math.inf), e.compare("GT", level, -math.inf))
        return e.select(inside, level, e.constant(0.0, dtypes.float32))

    def finish(self, side: SharedRow) -> None:
        """Bring all lanes together, and put down what was found of the row."""
        w, e, subgroup = self.w, self.w.e, self.w.group.target.subgroup
        greatest = combined(e, {self.most: self.greatest}, side, subgroup)[self.most]
        above = self._finite(greatest)
        mine = self.sum * e.op("EXP", self.greatest - above)
        total = combined(e, {self.total: mine}, side, subgroup)[self.total]
        w.values.rows[self.most] = e.convert(greatest, self.most.dtype)
        if self.level not in w.values.rows:
            w.finished(self.level)
        level = e.convert(w.values.rows[self.level], dtypes.float32)
        w.values.rows[self.total] = e.convert(total * e.op("EXP", above - level), self.total.dtype)
