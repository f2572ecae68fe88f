"""The walk that passes over graphs share: every node looked at once, after what it is made of, and made again.

Comes in: the nodes of a graph in order, and what a pass puts instead of a node. Goes out: the results, of new nodes
where something has changed, each of the user's line that the old one is of. Values that are there are not looked into.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from eshkol.graph.node import Current, Node, remade, topological

New = Mapping[Node, Node]  # what nodes have become
Instead = Callable[[Node, New], Node | None]


def visible(node: Node) -> tuple[Node, ...]:
    """What a node is computed from, if it still has to be."""
    return node.inputs if node.data is None else ()


def in_order(results: Sequence[Node]) -> list[Node]:
    """The nodes that results are computed from, and they themselves, each after its inputs."""
    return topological(results, through=visible)


def again(node: Node, new: New) -> Node:
    """A node over what its inputs have become; itself where they are the same."""
    inputs = tuple([new[x] for x in visible(node)])
    return node if inputs == visible(node) else remade(node, inputs)


def walked(results: Sequence[Node], order: Sequence[Node], instead: Instead) -> list[Node]:
    """The results, where `instead(node, new)` says what a node becomes; None: it is made again of its inputs."""
    new: dict[Node, Node] = {}
    previous = Current.site
    try:
        for node in order:
            Current.site = node.site
            new[node] = instead(node, new) or again(node, new)
    finally:
        Current.site = previous
    return [new[node] for node in results]
