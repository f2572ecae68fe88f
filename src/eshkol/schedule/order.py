"""The order in which nodes are computed.

Inputs come first. Among the inputs of a node, the one with the longest way behind it is computed first, so that what
can be had quickly is computed right before it is needed, and held no longer than that: in a backward pass, what a
checkpoint computes again comes after the gradients that it is multiplied with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from eshkol.errors import TraceError
from eshkol.graph.node import Node
from eshkol.ops.structural import BUFFER, CONST, PLACEHOLDER

GIVEN = frozenset({CONST, BUFFER})  # what is not computed. In a body a node becomes a leaf when its value is asked for


def needed(results: Iterable[Node], known: Collection[Node]) -> list[Node]:
    """The nodes to be computed for results, inputs first; not those that are known, and not constants."""
    results = list(results)
    return _ordered(results, _depths(results, known))


def _depths(results: list[Node], known: Collection[Node]) -> dict[Node, int]:
    """How many nodes are behind each, on the longest way."""
    depth: dict[Node, int] = dict.fromkeys(known, 0)
    stack: list[tuple[Node, bool]] = [(node, False) for node in results]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            depth[node] = 1 + max([depth.get(x, 0) for x in node.inputs], default=0)
        elif node not in depth and node.op not in GIVEN:
            if node.op is PLACEHOLDER:
                raise unknown_value()
            depth[node] = 0  # until its inputs are known; a graph has no cycles
            stack.append((node, True))
            stack.extend((x, False) for x in node.inputs if x not in depth)
    return {node: d for node, d in depth.items() if d}


def _ordered(results: list[Node], depth: dict[Node, int]) -> list[Node]:
    order: list[Node] = []
    seen: set[Node] = set()
    stack: list[tuple[Node, bool]] = [(node, False) for node in sorted(results, key=lambda n: depth.get(n, 0))]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            order.append(node)
        elif node not in seen and node in depth:
            seen.add(node)
            stack.append((node, True))
            inputs = [x for x in node.inputs if x not in seen and x in depth]
            if len(inputs) > 1:
                inputs.sort(key=depth.__getitem__)  # the deepest is taken from the stack first
            stack.extend((x, False) for x in inputs)
    return order


def unknown_value() -> TraceError:
    """What is said where a value is asked for that is not there."""
    return TraceError(
        "a value was asked for that is not known yet: it is an input of a function being transformed",
        hint="keep printing, float(x) and branches on values outside grad, vmap and loop bodies",
    )
