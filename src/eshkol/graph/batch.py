"""vmap as a graph transformation: a graph of one example becomes a graph of a batch.

Every node that depends on the batched inputs gets one more axis, always in front; rows say how. Elementwise rows need
no rule of their own: broadcasting does it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from eshkol.errors import TraceError
from eshkol.graph.node import Current, Node, Scope, span_of, topological
from eshkol.ops.movement import align
from eshkol.ops.structural import PICK


def batch(outputs: Sequence[Node], inputs: Mapping[Node, Node], scope: Scope) -> list[Node | None]:
    """The outputs with a batch in front, or None for those that do not depend on the scope.

    `inputs` maps placeholders of the scope to batched values.
    """
    found: dict[Node, Any] = dict(inputs)
    for node in topological(outputs, scope):
        if node not in found:
            previous, Current.site = Current.site, node.site
            try:
                found[node] = _batched(node, found)
            finally:
                Current.site = previous
    return [found.get(node) for node in outputs]


def _batched(node: Node, found: Mapping[Node, Any]) -> Any:
    if node.op is PICK:
        return found[node.inputs[0]][node.attrs.place]
    inputs = [found.get(x, x) for x in node.inputs]
    batched = [x in found for x in node.inputs]
    if node.op.elementwise:
        return node.apply(node.op, align(inputs, batched), node.attrs)
    if node.op.batch is None:
        raise TraceError(f"{node.op.name} cannot be used inside vmap", span=span_of(node.site))
    return node.op.batch(node.attrs, inputs, batched)
