"""Loops and branches made smaller: what they compute in vain, twice, or in every round alike.

Comes in: a graph with `scan`, `while_loop` and `branch` nodes, and what simplifies a graph. Goes out (`Loops`): what
stands for the results of each of them.

- loops that differ in their results alone become one: the value and the gradient of a scan run it twice, once with
  further results;
- inputs that are constants, masks of counters, repeated, or the same as another go into the body, where rules see them;
- what a loop carries unchanged is not carried; carries and results that feed nothing go, with what computes them;
- what a body computes in every round alike moves out of it, unless it only moves elements, compares counters or is a
  matter of single numbers; a matrix that a product reads transposed moves out, too: small products would copy it in
  every round;
- loops of no or one round and branches on a known truth value are the body itself.

Bodies are brought to one form: their parameters are placeholders that all bodies share, so that equal bodies are made
of the same nodes. What a body is nested in has placeholders of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from eshkol.graph.control import COND, SCAN, WHILE, Cond, Scan, While
from eshkol.graph.custom import BARRIER
from eshkol.graph.function import Function
from eshkol.graph.node import Node, Scope, make, placeholder, substitute, topological
from eshkol.ops import TABLE
from eshkol.ops.creation import iota
from eshkol.ops.movement import expand, flip, permute, reshape
from eshkol.ops.row import Aval, Op
from eshkol.ops.shapes import count
from eshkol.ops.slicing import slice_
from eshkol.ops.structural import CONST, PICK, Pick
from eshkol.schedule.rewrite.rounds import Pairs, computed_behind, fresh, products_before
from eshkol.schedule.rewrite.rules import aligned, filled, fitted, made, number, reshaped

Known: TypeAlias = Mapping[Node, Node]  # what stands for some nodes
Graph: TypeAlias = Callable[[Sequence[Node], Known], list[Node]]  # results of a graph, simplified
Row: TypeAlias = tuple[Node, ...]  # a result of each of the functions of a node
Results: TypeAlias = dict[int, Node]  # what stands for each used result of a node that has several

NESTED: frozenset[Op] = frozenset({SCAN, COND, WHILE})
FUNCTIONS_KEPT, PLACEHOLDERS_KEPT = 512, 4096
_MOVING = frozenset({reshape, expand, permute, slice_, flip, BARRIER})
# What cannot fail, so that it may be computed before a loop that may have no round.
_SAFE = _MOVING | {TABLE[name] for name in ("matrix_product", "sum", "prod", "max", "min", "logsumexp", "softmax")}
_PRODUCT = TABLE["matrix_product"]
_DIVIDING = {TABLE[name] for name in ("remainder", "fmod", "floor_divide", "power")}  # integers may not


# --- bodies in one form ---------------------------------------------------------------------------

_scopes: list[Scope] = []  # one for each depth of nesting, counted from within
_placeholders: dict[tuple[Any, ...], Node] = {}
_functions: dict[tuple[Any, ...], Function] = {}


def _scope(height: int) -> Scope:
    while len(_scopes) <= height:
        _scopes.append(Scope("trace", "the body of a loop"))
        _scopes[-1].open = False
    return _scopes[height]


def _placeholder(height: int, place: int, like: Any) -> Node:
    key = (height, place, like.shape, like.dtype)
    found = _placeholders.get(key)
    if found is None:
        if len(_placeholders) >= PLACEHOLDERS_KEPT:
            _placeholders.clear()
        found = _placeholders[key] = placeholder(Aval(like.shape, like.dtype), _scope(height))
    return found


def _height(results: Iterable[Node]) -> int:
    """How deep loops are nested in a graph."""
    deepest = 0
    for node in topological(results):
        if node.op in NESTED:
            for part in node.attrs:
                if isinstance(part, Function):
                    known = _scopes.index(part.scope) if part.scope in _scopes else _height(part.results)
                    deepest = max(deepest, known + 1)
    return deepest


def _formed(params: Sequence[Node], results: Sequence[Node], height: int) -> Function:
    """The function of a simple graph, with the placeholders that all share."""
    own = tuple(_placeholder(height, k, p) for k, p in enumerate(params))
    final = tuple(substitute(results, {p: q for p, q in zip(params, own, strict=True) if p is not q}))
    key = _key(own, final)
    found = _functions.get(key)
    if found is None:
        if len(_functions) >= FUNCTIONS_KEPT:
            _functions.clear()
        found = _functions[key] = Function(own, final, _scope(height))  # which keeps the nodes, and so their ids
    return found


def _key(params: Sequence[Node], results: Sequence[Node]) -> tuple[Any, ...]:
    return tuple(map(id, params)), tuple(map(id, results))


def _forms(functions: Sequence[tuple[Sequence[Node], Sequence[Node]]], graph: Graph) -> list[Function]:
    """The functions of one node, by parameters and results, simplified and in one form."""
    found = [graph(results, {}) for _, results in functions]
    height = max(map(_height, found))
    return [_formed(params, results, height) for (params, _), results in zip(functions, found, strict=True)]


def _simple(functions: Sequence[Function], graph: Graph) -> list[Function]:
    """The functions of one node, simplified and in one form; those that are in it are simple already."""
    if all(_functions.get(_key(f.params, f.results)) is f for f in functions):
        return list(functions)
    return _forms([(f.params, f.results) for f in functions], graph)


# --- which results are used, and which loops are one ----------------------------------------------


@dataclass(eq=False)
class _Loop:
    """What several nodes of the graph may share: a loop or branch with all results that they have together."""

    attrs: Any
    used: set[int] = field(default_factory=set)
    found: Results | None = None  # for the used results


class Loops:
    """The loops and branches of a simple graph, and what they become."""

    def __init__(self, nested: Sequence[Node], picked: Iterable[Node], graph: Graph) -> None:
        self.graph = graph
        self.same = {(n.op, n.attrs, *map(id, n.inputs)): n for n in nested}
        self.loops: dict[Node, tuple[_Loop, Sequence[int]]] = {}  # for each node its loop, and where its results are
        alike: dict[Any, _Loop] = {}
        for node in nested:
            self.loops[node] = _joined(node, alike, graph)
        for pick in picked:
            loop, places = self.loops[pick.inputs[0]]
            loop.used.add(places[pick.attrs.place])

    def results(self, node: Node, inputs: tuple[Node, ...]) -> Results:
        """What stands for the used results of a node whose inputs have become these."""
        loop, places = self.loops[node]
        if loop.found is None:
            loop.found = _TRIMMED[node.op](self, loop.attrs, inputs, loop.used)
        return {k: loop.found[place] for k, place in enumerate(places) if place in loop.found}

    def made(self, op: Op, attrs: Any, inputs: Sequence[Node]) -> Node:
        """The node of a loop or branch: the one that is there already, if nothing has changed."""
        found = self.same.get((op, attrs, *map(id, inputs)))
        return make(op, tuple(inputs), attrs) if found is None else found


def _joined(node: Node, alike: dict[Any, _Loop], graph: Graph) -> tuple[_Loop, Sequence[int]]:
    """The loop that a node is or becomes part of, and the places of its results there."""
    a, op, inputs = node.attrs, node.op, tuple(map(id, node.inputs))
    own: Sequence[int] = range(len(node.outs or ()))
    if op is SCAN:
        (body,) = _simple([a.body], graph)
        a = a._replace(body=body)
        loop = alike.setdefault((a._replace(body=body.params), body.results[: a.carries], inputs), _Loop(a))
        old = loop.attrs.body
        if old is body:
            return loop, own
        rows, places = _united(
            [*zip(old.results, strict=True)], [*zip(body.results[a.carries :], strict=True)], a.carries
        )
        loop.attrs = a._replace(body=_forms([(body.params, [r for (r,) in rows])], graph)[0])
        return loop, [*range(a.carries), *places]
    if op is COND:
        true, false = _simple(a, graph)
        loop = alike.setdefault((COND, true.params, inputs), _Loop(Cond(true, false)))
        old = loop.attrs
        if old != (true, false):
            before, new = ([*zip(one.results, other.results, strict=True)] for one, other in (old, (true, false)))
            rows, own = _united(before, new, 0)
            loop.attrs = Cond(*_forms([(true.params, [row[k] for row in rows]) for k in range(2)], graph))
        return loop, own
    test, body = _simple([a.test, a.body], graph)
    a = a._replace(test=test, body=body)
    return alike.setdefault((a, inputs), _Loop(a)), own


def _united(old: Sequence[Row], new: Sequence[Row], first: int) -> tuple[list[Row], list[int]]:
    """Results in one list, the new ones after the old unless they are among them from `first` on; and their places."""
    found = list(old)
    at: dict[Row, int] = {}
    for k in range(first, len(old)):
        at.setdefault(old[k], k)
    places = []
    for row in new:
        if row not in at:
            at[row] = len(found)
            found.append(row)
        places.append(at[row])
    return found, places


# --- what bodies take in and give out -------------------------------------------------------------


def _taken_in(pairs: Pairs, into: dict[Node, Node]) -> Pairs:
    """The pairs that are still needed once constants, repetitions and what is there twice are taken in."""
    kept: Pairs = []
    seen: dict[Node, Node] = {}
    for p, x in pairs:
        source = x.inputs[0] if made(x, expand) else x
        if source in seen:
            into[p] = fitted(seen[source], p.shape)
        elif source.op is CONST or made(x, iota) or _compares_counters(x):
            into[p] = x
        else:
            q = p if source is x else fresh(source, p)
            if q is not p:
                into[p] = fitted(q, p.shape)
            seen[source] = q
            kept.append((q, source))
    return kept


def _walked_in(pairs: Pairs, into: dict[Node, Node]) -> tuple[Pairs, Pairs]:
    """The pairs of what a loop walks along: those still needed, and those that are the same in every round."""
    kept: Pairs = []
    still: Pairs = []
    seen: dict[Node, Node] = {}
    for p, x in pairs:
        if x in seen:
            into[p] = seen[x]
            continue
        if made(x, expand) and aligned(source := x.inputs[0], len(x.shape))[0] == 1:
            inner = reshaped(source, source.shape[1:]) if len(source.shape) == len(x.shape) else source
            q = fresh(inner, p)
            into[p] = fitted(q, p.shape)
            still.append((q, inner))
            continue
        seen[x] = p
        kept.append((p, x))
    return kept, still


def _reached(results: Iterable[Node], carried: Mapping[Node, Node]) -> set[Node]:
    """All nodes that results depend on, by way of what is carried too: `carried` has the next value of a parameter."""
    seen: set[Node] = set()
    stack = list(results)
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack.extend(node.inputs)
            if node in carried:
                stack.append(carried[node])
    return seen


def _moved_out(
    results: Sequence[Node], pairs: Pairs, varying: Iterable[Node], graph: Graph, only_safe: bool
) -> list[Node]:
    """The results of a body without what it computes in every round alike, for which pairs are added."""
    varies, heavy, unsafe = set(varying), set(), set()
    edge: dict[Node, None] = {}
    turned: dict[Node, None] = {}  # what is turned for a product
    for node in topological(results):
        inputs = node.inputs
        if node in varies or not inputs:
            continue
        if any(x in varies for x in inputs):
            varies.add(node)
            edge.update((x, None) for x in inputs if x not in varies)
            if node.op is _PRODUCT:
                turned.update((x, None) for x in inputs if x not in varies and x.op is permute)
            continue
        if not _light(node) or any(x in heavy for x in inputs):
            heavy.add(node)
        if not _cannot_fail(node) or any(x in unsafe for x in inputs):
            unsafe.add(node)
    edge.update((r, None) for r in results if r not in varies)
    chosen: dict[Node, None] = {}
    for node in edge:
        while node.op in _MOVING and node in heavy and node not in turned:
            node = node.inputs[0]
        if (node in heavy or node in turned) and node.outs is None and not (only_safe and node in unsafe):
            chosen[node] = None
    if not chosen:
        return list(results)
    beside = pairs[0][0] if pairs else next(iter(varying))
    outside = graph([*chosen], dict(pairs))
    inside = {node: fresh(node, beside) for node in chosen}
    pairs.extend(zip(inside.values(), outside, strict=True))
    return graph(results, inside)


def _light(node: Node) -> bool:
    """Whether a node is as well computed in every round."""
    one = node.op.elementwise and count(node.shape) == 1
    return one or node.op in _MOVING or _compares_counters(node)


def _compares_counters(node: Node) -> bool:
    """Whether a node is a mask that kernels know by its form."""
    mask = node.data is None and node.op.elementwise and node.dtype.is_bool
    return mask and all(made(x, iota) or _constant(x) for x in node.inputs)


def _cannot_fail(node: Node) -> bool:
    return node.op in _SAFE or (node.op.elementwise and (node.dtype.differentiable or node.op not in _DIVIDING))


def _constant(node: Node) -> bool:
    return number(node) is not None


# --- scan -----------------------------------------------------------------------------------------


def _scan(loops: Loops, a: Scan, inputs: tuple[Node, ...], used: set[int]) -> Results:
    if a.length < 2:
        return _short(a, inputs, used, loops.graph)
    graph, results, split = loops.graph, list(a.body.results), a.carries + a.elements
    pairs = [*zip(a.body.params, inputs, strict=True)]
    carried, walked, fixed = dict(enumerate(pairs[: a.carries])), pairs[a.carries : split], pairs[split:]
    found: Results = {}
    while True:
        into: dict[Node, Node] = {}
        walked, still = _walked_in(walked, into)
        if into:
            results = graph(results, into)
            into = {}
        fixed = _taken_in([*fixed, *still], into)
        unmoved = _not_carried(carried, results, into)
        fixed += [carried[k] for k in unmoved if carried[k][0] not in into]
        found.update((k, carried.pop(k)[1]) for k in unmoved)
        into.update(products_before(results, walked, fixed, a.length) if not into else {})
        if not into and not unmoved:
            break
        results = graph(results, into)

    finals = {k: pair for k, pair in carried.items() if k in used}
    stacks = sorted(k for k in used if k >= a.carries)
    behind, operands = computed_behind(finals, stacks, results, walked, fixed, a.length)
    places = range(len(results), len(results) + len(operands))  # of what is stacked for them
    results += operands
    wanted = [*sorted(k for k in used if k not in found and k not in behind), *places]
    following = {p: results[k] for k, (p, _) in carried.items()}
    reached = _reached([results[k] for k in wanted], following)
    live = [k for k, (p, _) in carried.items() if p in reached or k in wanted]
    stacks = [k for k in wanted if k >= a.carries]
    varying = [*(carried[k][0] for k in live), *(p for p, _ in walked)]
    moved = _moved_out([results[k] for k in (*live, *stacks)], fixed, varying, graph, False)

    outer = {p: fitted(x, (a.length, *x.shape)) for p, x in fixed} | dict(walked)
    stacked: dict[Node, list[int]] = {}  # what is written in every round, with the results that it is
    for k, r in zip(stacks, moved[len(live) :], strict=True):
        if r in outer:
            found[k] = outer[r]
        elif _constant(r):
            found[k] = fitted(r.inputs[0] if r.op is expand else r, (a.length, *r.shape))
        else:
            stacked.setdefault(r, []).append(k)
    results = [*moved[: len(live)], *stacked]
    if results:
        reached = _reached(results, {})
        walked, fixed = ([pair for pair in some if pair[0] in reached] for some in (walked, fixed))
        all_pairs = [*(carried[k] for k in live), *walked, *fixed]
        (body,) = _forms([([p for p, _ in all_pairs], results)], graph)
        attrs = Scan(body, len(live), len(walked), a.length, a.reverse)
        node = loops.made(SCAN, attrs, [x for _, x in all_pairs])
        for place, ks in enumerate([*([k] for k in live), *stacked.values()]):
            found.update((k, make(PICK, (node,), Pick(place))) for k in ks)
    stack_of = outer | {x: found[place] for x, place in zip(operands, places, strict=True)}
    found.update((k, compute(stack_of.__getitem__)) for k, compute in behind.items())
    return found


def _short(a: Scan, inputs: tuple[Node, ...], used: set[int], graph: Graph) -> Results:
    """The results of a scan of no round, or of one, which is the body itself."""
    wide = {k: Aval((a.length, *r.shape), r.dtype) for k, r in enumerate(a.body.results)}
    if a.length == 0:
        return {k: inputs[k] if k < a.carries else filled(0, wide[k]) for k in used}
    split = a.carries + a.elements
    walked = zip(a.body.params[a.carries : split], inputs[a.carries : split], strict=True)
    given = (*inputs[: a.carries], *(reshaped(x, p.shape) for p, x in walked), *inputs[split:])
    places = sorted(used)
    values = graph([a.body.results[k] for k in places], dict(zip(a.body.params, given, strict=True)))
    found = zip(places, values, strict=True)
    return {k: r if k < a.carries else reshaped(r, wide[k].shape) for k, r in found}


def _not_carried(carried: dict[int, tuple[Node, Node]], results: Sequence[Node], into: dict[Node, Node]) -> list[int]:
    """The carries that stay what they are: handed on as they came, or a constant from the first round on."""
    found = []
    for k, (p, first) in carried.items():
        if results[k] is first and _constant(first):
            into[p] = first
            found.append(k)
        elif results[k] is p:
            found.append(k)
    return found


# --- while, branch --------------------------------------------------------------------------------


def _while(loops: Loops, a: While, inputs: tuple[Node, ...], used: set[int]) -> Results:
    graph, test, results = loops.graph, a.test.results[0], list(a.body.results)
    split = a.carries + a.tested
    carried = dict(enumerate(zip(a.body.params[: a.carries], inputs[: a.carries], strict=True)))
    tested = [*zip(a.test.params[a.carries :], inputs[a.carries : split], strict=True)]
    fixed = [*zip(a.body.params[a.carries :], inputs[split:], strict=True)]
    found: Results = {}
    while True:
        into: dict[Node, Node] = {}
        into_test: dict[Node, Node] = {}
        tested, fixed = _taken_in(tested, into_test), _taken_in(fixed, into)
        constant: dict[Node, Node] = {}
        unmoved = _not_carried(carried, results, constant)
        still = [carried[k] for k in unmoved if carried[k][0] not in constant]
        tested, fixed = tested + still, fixed + still
        found.update((k, carried.pop(k)[1]) for k in unmoved)
        if not (into or into_test or unmoved):
            break
        (test,), results = graph([test], into_test | constant), graph(results, into | constant)
    if number(test) is False:
        return {k: found[k] if k in found else inputs[k] for k in used}

    following = {p: results[k] for k, (p, _) in carried.items()}
    reached = _reached([test, *(results[k] for k in used if k not in found)], following)
    live = [k for k, (p, _) in carried.items() if p in reached or k in used]
    varying = [carried[k][0] for k in live]
    (test,) = _moved_out([test], tested, varying, graph, True)
    results = _moved_out([results[k] for k in live], fixed, varying, graph, True)
    by_test, by_body = _reached([test], {}), _reached(results, {})
    tested = [pair for pair in tested if pair[0] in by_test]
    fixed = [pair for pair in fixed if pair[0] in by_body]
    given_test, given_body = ([*varying, *(p for p, _ in pairs)] for pairs in (tested, fixed))
    first, body = _forms([(given_test, [test]), (given_body, results)], graph)
    given = [x for _, x in (*(carried[k] for k in live), *tested, *fixed)]
    node = loops.made(WHILE, While(first, body, len(live), len(tested)), given)
    found.update((k, make(PICK, (node,), Pick(place))) for place, k in enumerate(live))
    return found


def _cond(loops: Loops, a: Cond, inputs: tuple[Node, ...], used: set[int]) -> Results:
    graph, truth, places = loops.graph, number(inputs[0]), sorted(used)
    pairs = [*zip(a.true.params, inputs[1:], strict=True)]
    sides = [[f.results[k] for k in places] for f in a]
    if truth is not None or sides[0] == sides[1]:
        return dict(zip(places, graph(sides[0 if truth or truth is None else 1], dict(pairs)), strict=True))
    into: dict[Node, Node] = {}
    pairs = _taken_in(pairs, into)
    if into:
        sides = [graph(side, into) for side in sides]
    outer = dict(pairs)
    found: Results = {}
    rows: dict[tuple[Node, Node], list[int]] = {}
    for k, one, other in zip(places, *sides, strict=True):
        if one is other and (one in outer or _constant(one)):
            found[k] = outer.get(one, one)
        else:
            rows.setdefault((one, other), []).append(k)
    if not rows:
        return found
    reached = _reached([x for row in rows for x in row], {})
    pairs = [pair for pair in pairs if pair[0] in reached]
    results = [[row[k] for row in rows] for k in range(2)]
    branches = Cond(*_forms([([p for p, _ in pairs], side) for side in results], graph))
    node = loops.made(COND, branches, [inputs[0], *(x for _, x in pairs)])
    found.update((k, make(PICK, (node,), Pick(place))) for place, ks in enumerate(rows.values()) for k in ks)
    return found


_TRIMMED: dict[Op, Callable[[Loops, Any, tuple[Node, ...], set[int]], Results]] = {
    SCAN: _scan, COND: _cond, WHILE: _while,
}  # fmt: skip


# --- functions that are no part of a loop ---------------------------------------------------------


def closed_over(function: Function, captured: Sequence[Node], graph: Graph) -> tuple[Function, list[Node]]:
    """The function, simple, its last parameters without those whose values are constants or not needed."""
    own = len(function.params) - len(captured)
    into: dict[Node, Node] = {}
    pairs = _taken_in([*zip(function.params[own:], graph(captured, {}), strict=True)], into)
    results = graph(function.results, into)
    reached = _reached(results, {})
    pairs = [pair for pair in pairs if pair[0] in reached]
    params = (*function.params[:own], *(p for p, _ in pairs))
    return Function(params, tuple(results), function.scope), [x for _, x in pairs]
