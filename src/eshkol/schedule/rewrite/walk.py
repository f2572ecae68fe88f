"""The walk that passes over graphs share: every node looked at once, after what it is made of, and made again.

Comes in: the nodes of a graph in order, and what a pass puts instead of a node. Goes out: the results, of new nodes
where something has changed, each of the user's line that the old one is of. Values that are there are not looked into.
Bodies of loops and branches are graphs by themselves: `everywhere` makes a pass go over them, too.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.function import Function
from eshkol.graph.node import Current, Node, make, remade, topological

Pass = Callable[[Sequence[Node], MachineDescription], list[Node]]
New = Mapping[Node, Node]  # what nodes have become
Instead = Callable[[Node, New], Node | None]
FUNCTIONS_KEPT = 512  # for each pass


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


# --- bodies of loops and branches -----------------------------------------------------------------

_functions: dict[Hashable, dict[int, tuple[Function, Function]]] = {}  # by id, with the function that has it


def functions_of(node: Node) -> dict[str, Function]:
    """The functions that a loop or branch runs, by the names that they have in its attributes."""
    attrs = node.attrs
    if node.data is not None or not hasattr(attrs, "_fields") or Function not in map(type, attrs):
        return {}
    return {name: f for name, f in zip(attrs._fields, attrs, strict=True) if isinstance(f, Function)}


def everywhere(graph_pass: Pass) -> Pass:
    """A pass over a graph as one over the bodies of its loops and branches, too."""

    def whole(results: Sequence[Node], target: MachineDescription) -> list[Node]:
        found = graph_pass(results, target)
        order = in_order(found)
        if not any(map(functions_of, order)):
            return found
        which = graph_pass, target
        return walked(found, order, lambda node, new: _inside(again(node, new), which, lambda r: whole(r, target)))

    return whole


def _inside(node: Node, which: Hashable, graph_pass: Callable[[Sequence[Node]], Sequence[Node]]) -> Node | None:
    """A loop or branch whose functions went through a pass, which `which` tells from others; None: nothing changed."""
    functions = functions_of(node)
    made = {name: _through(f, which, graph_pass) for name, f in functions.items()}
    if all(made[name] is functions[name] for name in functions):
        return node if functions else None
    return make(node.op, node.inputs, node.attrs._replace(**made))


def _through(function: Function, which: Hashable, graph_pass: Callable[[Sequence[Node]], Sequence[Node]]) -> Function:
    kept = _functions.setdefault(which, {})
    found = kept.get(id(function))
    if found is None:
        results = graph_pass(function.results)
        same = all(a is b for a, b in zip(results, function.results, strict=True))
        made = function if same else Function(function.params, tuple(results), function.scope)
        while len(kept) >= FUNCTIONS_KEPT:
            kept.pop(next(iter(kept)))
        found = kept[id(function)] = function, made
    return found[1]
