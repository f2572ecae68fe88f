"""How many floating-point operations a node takes.

Rows that take other work than one operation for each element say how much; moving elements, comparing and integers
count nothing. A loop of known length counts its body as often as it runs, another once, and a branch the longer way.
"""

from __future__ import annotations

from eshkol.graph.function import Function
from eshkol.graph.node import Node, topological
from eshkol.ops.row import Nested


def operations(node: Node) -> int:
    """The floating-point operations of a node."""
    op = node.op
    if op.work is None:
        return node.size if op.elementwise and node.dtype.differentiable else 0
    floats = isinstance(op.lower, Nested) or any(x.dtype.differentiable for x in (node, *node.inputs))
    return op.work(node, _of_function) if floats else 0


def _of_function(function: Function) -> int:
    return sum(operations(n) for n in topological(function.results, function.scope))
