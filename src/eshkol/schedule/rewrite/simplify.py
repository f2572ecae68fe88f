"""Graphs made simpler: the same values from fewer and cheaper nodes.

Comes in: the results of a function, as nodes. Goes out: nodes of the same shapes and dtypes and, as `algebra.py` and
`movements.py` say, the same values. It is the first pass over a graph that is to be computed; derivatives have been
taken before, so marks and what only derivatives need fall away. Nodes that have data are leaves.

A graph is walked once, inputs first. Each node is rebuilt of simple inputs and simplified by the rule of its op
(`rules.py`); equal nodes become one, also where operands of a commutative op stand in another order. Where loops or
branches are found, `trim.py` makes them smaller, and the graph is walked again until nothing changes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from eshkol.graph.function import Function
from eshkol.graph.node import Current, Node, make
from eshkol.ops.movement import Permutation, permute
from eshkol.ops.structural import PICK
from eshkol.schedule.rewrite import algebra as algebra
from eshkol.schedule.rewrite import movements as movements  # the rules enter themselves
from eshkol.schedule.rewrite.rounds import PRODUCT
from eshkol.schedule.rewrite.rules import build, made, settled
from eshkol.schedule.rewrite.trim import NESTED, Known, Loops, Results, closed_over
from eshkol.schedule.rewrite.walk import in_order

ROUNDS = 8  # of trimming loops that depend on one another; more would make little difference


def simplify(results: Sequence[Node]) -> list[Node]:
    """The results, of equivalent nodes that cost less."""
    return _graph(results, {})


def simplify_function(function: Function, captured: Sequence[Node]) -> tuple[Function, list[Node]]:
    """A function, simple, and the values of its last parameters, without those that are constants or not needed."""
    return closed_over(function, captured, _graph)


def _graph(results: Sequence[Node], known: Known) -> list[Node]:
    """The results of a graph, its loops trimmed; `known` says what stands for some of its nodes."""
    found, has_loops = _walked(results, known)
    for _ in range(ROUNDS if has_loops else 0):
        order = in_order(found)
        nested = [node for node in order if node.op in NESTED and node.data is None]
        picked = [node for node in order if node.op is PICK and node.data is None and node.inputs[0].op in NESTED]
        before = found
        found, _ = _walked(found, {}, Loops(nested, picked, _graph))
        if found == before:
            break
    return _turned(found)


def _turned(results: list[Node]) -> list[Node]:
    """The results, where the transpose of a product is the product of the transposes, if one of these is there already.

    The derivative of x @ w.T with respect to w is such a transpose. Products read transposed operands as they lie, but
    a transposed result would have to be copied. A product that others read too stays.
    """
    while True:
        order = in_order(results)
        turned = (n for n in order if _transposes(n) and made(n.inputs[0], PRODUCT))
        found = [n for n in turned if any(map(_transposes, n.inputs[0].inputs))]
        users = Counter(x for n in order for x in n.inputs) + Counter(results) if found else Counter()
        known: dict[Node, Node] = {}
        for node in found:
            (product,) = node.inputs
            if users[product] == 1:
                x, y = product.inputs
                known[node] = build(PRODUCT, None, _transposed(y), _transposed(x))
        if not known:
            return results
        results, _ = _walked(results, known)


def _transposes(node: Node) -> bool:
    """Whether a node exchanges the last two axes of another, and nothing else."""
    return made(node, permute) and node.attrs == _exchange(len(node.shape))


def _exchange(ndim: int) -> Permutation:
    return Permutation((*range(ndim - 2), ndim - 1, ndim - 2))


def _transposed(x: Node) -> Node:
    return build(permute, _exchange(len(x.shape)), x)


def _walked(results: Sequence[Node], known: Known, loops: Loops | None = None) -> tuple[list[Node], bool]:
    """The results after one walk, and whether there may be loops or branches in what they depend on."""
    new: dict[Node, Node] = dict(known)
    numbered: dict[tuple[object, ...], Node] = {}
    several: dict[Node, Results] = {}
    has_loops = False
    previous = Current.site
    try:
        for node in in_order(results):
            if node in new:
                continue
            op, inputs = node.op, node.inputs
            if not inputs or node.data is not None:
                new[node] = node
                continue
            Current.site = node.site
            if loops is not None and op in NESTED:
                several[node] = loops.results(node, tuple([new[x] for x in inputs]))
                new[node] = node
                continue
            if op is PICK and inputs[0] in several:
                new[node] = several[inputs[0]][node.attrs.place]
                continue
            simple = node
            for x in inputs:
                if new[x] is not x:
                    simple = make(op, tuple([new[x] for x in inputs]), node.attrs)
                    break
            simple = settled(simple)
            op = simple.op
            if op.commutes:
                simple = numbered.setdefault((op, *sorted(map(id, simple.inputs))), simple)
            elif not op.shared:
                simple = numbered.setdefault((op, simple.attrs, *map(id, simple.inputs)), simple)
                has_loops = has_loops or op in NESTED
            new[node] = simple
    finally:
        Current.site = previous
    return [new[node] for node in results], has_loops
