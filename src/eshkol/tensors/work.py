"""How many floating-point operations values take, counted in the graph before anything is computed.

A product of matrices counts 2·m·n·k, a convolution likewise; other ops one for each element they make or read. Moving
elements, comparing and integers count nothing; rows that take other work say how much. A loop of known length counts
its body as often as it runs, another once, and a branch the longer way.
"""

from __future__ import annotations

from collections.abc import Iterable

from eshkol.graph.function import Function
from eshkol.graph.node import Node, topological
from eshkol.ops.row import Nested
from eshkol.tensors.value import Tensor


def _of_node(node: Node) -> int:
    op = node.op
    if op.work is None:
        return node.size if op.elementwise and node.dtype.differentiable else 0
    floats = isinstance(op.lower, Nested) or any(x.dtype.differentiable for x in (node, *node.inputs))
    return op.work(node, _of_function) if floats else 0


def _of_function(function: Function) -> int:
    return sum(_of_node(n) for n in topological(function.results, function.scope))


def operations(results: Iterable[Tensor], inputs: Iterable[Tensor] = ()) -> int:
    """The operations that lead from some tensors to others; nothing is computed."""
    known = {x._node for x in inputs}
    order = topological(
        [r._node for r in results],
        through=lambda n: () if n in known or n.data is not None else n.inputs,
    )
    return sum(_of_node(n) for n in order if n not in known and n.data is None)
