"""The order in which nodes are computed.

Inputs come first. Among the inputs of a node, the one with the longest way before it is computed first, so that what
can be had quickly is computed right before it is needed, and held no longer than that: in a backward pass, what a
checkpoint computes again comes after the gradients that it is multiplied with. A node that lets go of more memory than
it takes is computed as soon as it can be: the gradient of a weight, when it is the last to need an activation.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import Any

from eshkol.errors import TraceError
from eshkol.graph.node import Node
from eshkol.ops.structural import BUFFER, CONST, PLACEHOLDER

GIVEN = frozenset({CONST, BUFFER})  # what is not computed. In a body a node becomes a leaf when its value is asked for

SHORT = 8  # nodes whose order does not matter


def needed(results: Iterable[Node], known: Collection[Node]) -> list[Node]:
    """The nodes to be computed for results, inputs first; not those that are known, and not constants."""
    results = list(results)
    order = _ordered(results, _depths(results, known))
    return _with_releases(order, results) if len(order) > SHORT else order


def _depths(results: list[Node], known: Collection[Node]) -> dict[Node, int]:
    """How many nodes come before each, on the longest way."""
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
            stack.extend((x, False) for x in node.inputs)
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
            inputs = [x for x in node.inputs if x in depth]
            inputs.sort(key=depth.__getitem__)  # the deepest is taken from the stack first
            stack.extend((x, False) for x in inputs)
    return order


def _with_releases(order: list[Node], results: list[Node]) -> list[Node]:
    """The order, in which nodes that let go of memory come as soon as they can."""
    place = {node: k for k, node in enumerate(order)}
    inputs = {node: [x for x in dict.fromkeys(node.inputs) if x in place] for node in order}
    users: dict[Node, list[Node]] = {node: [] for node in order}
    for node in order:
        for x in inputs[node]:
            users[x].append(node)
    needs = {node: len(found) for node, found in users.items()}  # users that are not computed yet
    for node in results:
        if node in needs:
            needs[node] += 1  # whoever asked for it
    waits = {node: len(found) for node, found in inputs.items()}
    done: set[Node] = set()
    found: list[Node] = []

    def releases(node: Node) -> bool:
        gone = sum(_size(x) for x in inputs[node] if needs[x] == 1)
        return gone > _size(node)

    for first in order:
        stack = [first] if first not in done else []
        while stack:
            node = stack.pop()
            if node in done:
                continue
            done.add(node)
            found.append(node)
            ready: dict[Node, None] = {}
            for u in users[node]:
                waits[u] -= 1
                if not waits[u]:
                    ready[u] = None
            for x in inputs[node]:
                needs[x] -= 1
                if needs[x] == 1:
                    ready.update((u, None) for u in users[x] if u not in done and not waits[u])
            stack += sorted((u for u in ready if releases(u)), key=place.__getitem__, reverse=True)
    return found


def _size(node: Node) -> int:
    """Bytes that a node takes."""
    avals: Iterable[Any] = (node,) if node.outs is None else node.outs
    return sum(math.prod(a.shape) * a.dtype.size for a in avals)


def unknown_value() -> TraceError:
    """What is said where a value is asked for that is not there."""
    return TraceError(
        "a value was asked for that is not known yet: it is an input of a function being transformed",
        hint="keep printing, float(x) and branches on values outside grad, vmap and loop bodies",
    )
