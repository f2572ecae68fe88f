"""Functions of the graph: what loop bodies, branches and checkpointed parts are.

`trace` runs Python code on placeholders and gives a `Function`: parameters and results, with everything else that the
code used (its captures) turned into further parameters. A function holds no outer values, so it can be evaluated,
differentiated and batched by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from eshkol.graph import derive
from eshkol.graph.batch import batch
from eshkol.graph.node import Node, Scope, mark, placeholder, remade, substitute, topological
from eshkol.ops.elementwise import add, mul, neg, sub
from eshkol.ops.movement import expand, reshape
from eshkol.ops.row import Aval
from eshkol.ops.structural import CONST


@dataclass(frozen=True, eq=False)
class Function:
    """Results computed from parameters alone."""

    params: tuple[Node, ...]  # placeholders of the scope
    results: tuple[Node, ...]
    scope: Scope

    @property
    def avals(self) -> tuple[Aval, ...]:
        """Shapes and dtypes of the results."""
        return tuple(Aval(r.shape, r.dtype) for r in self.results)

    def __call__(self, *inputs: Node) -> list[Node]:
        """The results for other values of the parameters, inlined."""
        return substitute(self.results, dict(zip(self.params, inputs, strict=True)), self.scope)


def trace(code: Callable[..., Sequence[Node]], avals: Sequence[Aval], name: str) -> tuple[Function, list[Node]]:
    """The function of some code, and the outer values it captured: they are its last parameters."""
    scope = Scope("trace", name)
    params = [placeholder(aval, scope) for aval in avals]
    Scope.at_work.append(scope)
    try:
        results = list(code(*params))
    finally:
        Scope.at_work.remove(scope)
        scope.open = False
    return close(params, results, scope)


def close(params: Sequence[Node], results: Sequence[Node], scope: Scope) -> tuple[Function, list[Node]]:
    """The function of a graph over placeholders, its captures lifted into parameters."""
    captured: dict[Node, Node] = {}

    def lifted(node: Node) -> Node:
        if node.op is CONST or scope in node.scopes:
            return node
        if node not in captured:
            captured[node] = placeholder(Aval(node.shape, node.dtype), scope)
        return captured[node]

    changed: dict[Node, Node] = {p: p for p in params}
    for node in topological(results, scope):
        if node not in changed:
            inputs = tuple(changed[x] if x in changed else lifted(x) for x in node.inputs)
            changed[node] = node if inputs == node.inputs else remade(node, inputs)
    final = tuple(changed[r] if r in changed else lifted(r) for r in results)
    return Function((*params, *captured.values()), final, scope), list(captured)


def linearized(function: Function, varying: Sequence[bool]) -> tuple[Function, Function, list[bool]]:
    """A function as two: one that also gives residuals, and one that is linear.

    `varying` says which parameters have tangents. The first function gives the results and then the residuals; the
    second takes the varying parameters' tangents and then the residuals, and gives the tangents of the results that
    the returned list marks.
    """
    scope = Scope("grad", "linearized")
    inputs = [mark(p, scope) if v else p for p, v in zip(function.params, varying, strict=True)]
    results = function(*inputs)
    linear = Scope("trace", "linear")
    tangents = {x: placeholder(Aval(x.shape, x.dtype), linear) for x, v in zip(inputs, varying, strict=True) if v}
    out = derive.jvp(results, tangents, scope)
    live = [t is not None for t in out]
    second, residuals = close(list(tangents.values()), [t for t in out if t is not None], linear)
    second, residuals = _lighter(second, residuals)
    first = Function(function.params, (*results, *residuals), function.scope)
    scope.open = linear.open = False
    return first, second, live


ARITHMETIC = frozenset({add, sub, mul, neg, expand, reshape})
"""What is as soon computed again as written to memory and read from there."""
FEW = 4  # nodes


def _lighter(linear: Function, residuals: Sequence[Node]) -> tuple[Function, list[Node]]:
    """The linear function with fewer residuals, its last parameters: those that are soon made of others it computes."""
    params = dict(zip(residuals, linear.params[len(linear.params) - len(residuals) :], strict=True))
    again: dict[Node, list[Node]] = {}  # what is computed for a residual, inputs first
    for node in reversed(topological(residuals)):
        if node in params and (nodes := _between(node, params.keys() - again.keys())):
            again[node] = nodes
    if not again:
        return linear, list(residuals)
    known = {node: p for node, p in params.items() if node not in again}
    for nodes in reversed(again.values()):
        for node in nodes:
            if node not in known:
                known[node] = remade(node, tuple(known.get(x, x) for x in node.inputs))
    results = substitute(linear.results, {params[node]: known[node] for node in again})
    kept = [node for node in residuals if node not in again]
    own = linear.params[: len(linear.params) - len(residuals)]
    return Function((*own, *(params[node] for node in kept)), tuple(results), linear.scope), kept


def _between(node: Node, given: Collection[Node]) -> list[Node]:
    """The few nodes of arithmetic by which a node is computed of others that are given; none: it is not so simple."""
    found: dict[Node, None] = {}
    stack = [node]
    while stack:
        x = stack.pop()
        if x.op is CONST or (x in given and x is not node) or x in found:
            continue
        if x.op not in ARITHMETIC or x.data is not None or len(found) == FEW:
            return []
        found[x] = None
        stack.extend(x.inputs)
    return [x for x in topological([node]) if x in found]


def transposed(function: Function, linear: int) -> Function:
    """Of a function linear in its first parameters: (cotangents of results, other parameters) → cotangents of those."""
    scope = Scope("trace", "transposed")
    cotangents = [placeholder(aval, scope) for aval in function.avals]
    rest = [placeholder(Aval(p.shape, p.dtype), scope) for p in function.params[linear:]]
    inner = Scope("grad", "linear")
    into = [placeholder(Aval(p.shape, p.dtype), inner) for p in function.params[:linear]]
    found = derive.transpose(function(*into, *rest), into, cotangents, inner)
    results = [derive.zeros(x) if f is None else f for f, x in zip(found, into, strict=True)]
    return Function((*cotangents, *rest), tuple(results), scope)


def batched(
    function: Function, is_batched: Sequence[bool], size: int, force: Sequence[bool] | None = None
) -> tuple[Function, list[bool]]:
    """A function of one example as one of a batch; says which results have the batch (those forced have it always)."""
    scope, outer = Scope("trace", "vmap"), Scope("trace", "batched")
    inner = [
        placeholder(Aval(p.shape, p.dtype), scope if b else outer)
        for p, b in zip(function.params, is_batched, strict=True)
    ]
    wide = {
        x: placeholder(Aval((size, *x.shape), x.dtype), outer) for x, b in zip(inner, is_batched, strict=True) if b
    }  # fmt: skip
    results = function(*inner)
    found = batch(results, wide, scope)
    has = [f is not None or bool(force and force[k]) for k, f in enumerate(found)]
    final = [repeated(r, size) if f is None and h else f or r for f, r, h in zip(found, results, has, strict=True)]
    return Function(tuple(wide.get(x, x) for x in inner), tuple(final), outer), has


def repeated(node: Node, size: int) -> Node:
    """The same value for every example of a batch."""
    result = expand(node, (size, *node.shape))
    assert isinstance(result, Node)
    return result
