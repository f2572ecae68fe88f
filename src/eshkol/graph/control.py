"""Control flow as nodes: `scan`, `while_loop` and `cond`, whose bodies are functions of the graph.

Each is a row like any other, with several results. Inputs are, in this order: what the loop carries (or the branches'
operands), what a scan walks through, and what the body captured. Reverse derivatives go through `scan` and `cond`: the
body is linearized, the loop runs with the residuals as further results, and the linear loop is transposed. A
`while_loop` of unknown length has forward derivatives only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DerivativeError
from eshkol.graph import derive
from eshkol.graph.function import Function, batched, close, linearized, repeated, transposed
from eshkol.graph.node import Current, Node, Scope, make, mark, picks, placeholder, span_of
from eshkol.ops.elementwise import where
from eshkol.ops.movement import permute, reshape
from eshkol.ops.row import STRUCTURE, Aval, Jvp, Nested, Op, row


def _unused(a: Any, *arrays: Any) -> Any:
    raise AssertionError("control flow runs through its lowering")


def _reordered(function: Function, order: Sequence[int]) -> Function:
    """The function with its parameters in another order."""
    return replace(function, params=tuple(function.params[k] for k in order))


def _known(tangents: Sequence[Any], inputs: Sequence[Node], varying: Sequence[bool]) -> list[Node]:
    """The tangents of what varies; zeros where it does so only later."""
    pairs = zip(tangents, inputs, varying, strict=True)
    return [derive.zeros(x) if t is None else t for t, x, v in pairs if v]


# --- scan -----------------------------------------------------------------------------------------


class Scan(NamedTuple):
    body: Function  # (carries, elements, captures) → (carries, results)
    carries: int
    elements: int
    length: int
    reverse: bool


def _infer_scan(a: Scan, *inputs: Node) -> tuple[Aval, ...]:
    avals = a.body.avals
    return (*avals[: a.carries], *(Aval((a.length, *v.shape), v.dtype) for v in avals[a.carries :]))


def _run_scan(run: Any, a: Scan, *arrays: Any) -> list[Any]:
    carries, fixed = list(arrays[: a.carries]), arrays[a.carries + a.elements :]
    walked = arrays[a.carries : a.carries + a.elements]
    stacks = [np.empty((a.length, *v.shape), v.dtype.numpy) for v in a.body.avals[a.carries :]]
    for step in range(a.length - 1, -1, -1) if a.reverse else range(a.length):
        results = run(a.body, [*carries, *(np.ascontiguousarray(x[step]).reshape(x.shape[1:]) for x in walked), *fixed])
        carries = results[: a.carries]
        for stack, value in zip(stacks, results[a.carries :], strict=True):
            stack[step] = value
    return [*carries, *stacks]


def scan(
    body: Function,
    carries: Sequence[Node],
    elements: Sequence[Node],
    captures: Sequence[Node],
    length: int,
    reverse: bool = False,
) -> tuple[Node, ...]:
    """The carries after the last step, and the stacked results."""
    attrs = Scan(body, len(carries), len(elements), length, reverse)
    return picks(make(SCAN, (*carries, *elements, *captures), attrs))


def _jvp_scan(a: Scan, result: Any, inputs: Sequence[Node], tangents: Sequence[Any]) -> list[Any]:
    varying = [t is not None for t in tangents]
    while True:  # what is carried varies as soon as anything it is computed from does
        first, second, live = linearized(a.body, varying)
        late = [k for k in range(a.carries) if live[k] and not varying[k]]
        if not late:
            break
        for k in late:
            varying[k] = True
    split = a.carries + a.elements
    residuals = first.results[len(a.body.results) :]
    place = {p: k for k, p in enumerate(first.params)}
    # A residual that is a parameter itself needs no stack: what was walked through is walked again, the rest is fixed.
    walked = [inputs[place[r]] if a.carries <= place.get(r, -1) < split else None for r in residuals]
    fixed = [inputs[place[r]] if place.get(r, -1) >= split else None for r in residuals]
    stacked = [r for r, w, f in zip(residuals, walked, fixed, strict=True) if w is None and f is None]
    wider = replace(first, results=(*a.body.results, *stacked))
    outs = scan(wider, inputs[: a.carries], inputs[a.carries : split], inputs[split:], a.length, a.reverse)
    stacks = iter(outs[len(a.body.results) :])
    streams = [next(stacks) if w is None and f is None else w for w, f in zip(walked, fixed, strict=True)]

    groups = [range(a.carries), range(a.carries, split), range(split, len(inputs))]
    given = [[derive.zeros(inputs[k]) if tangents[k] is None else tangents[k] for k in g if varying[k]] for g in groups]
    sizes = [len(g) for g in given]
    rest = sum(sizes)
    along = [k for k, s in enumerate(streams) if s is not None]
    still = [k for k, f in enumerate(fixed) if f is not None]
    starts = [0, sizes[0], sizes[0] + sizes[1]]
    order = [
        *range(starts[0], starts[1]), *range(starts[1], starts[2]), *(rest + k for k in along),
        *range(starts[2], rest), *(rest + k for k in still),
    ]  # fmt: skip
    linear = _with_carries(_reordered(second, order), live, varying, a.carries)
    walked_again, captured = ([node for node in nodes if node is not None] for nodes in (streams, fixed))
    found = scan(linear, given[0], [*given[1], *walked_again], [*given[2], *captured], a.length, a.reverse)
    feed = iter(found)
    carried = [next(feed) if varying[k] else None for k in range(a.carries)]
    return [*carried, *(next(feed) if alive else None for alive in live[a.carries :])]


def _with_carries(linear: Function, live: Sequence[bool], varying: Sequence[bool], carries: int) -> Function:
    """The linear body with a result for every carry that varies: zeros where the body gives none."""
    feed = iter(linear.results)
    given = [next(feed) if alive else None for alive in live]
    kept = [g for k, g in enumerate(given[:carries]) if varying[k]]
    filled = [derive.zeros(p) if g is None else g for g, p in zip(kept, linear.params, strict=False)]
    return replace(linear, results=(*filled, *(g for g in given[carries:] if g is not None)))


def _transpose_scan(a: Scan, cotangents: Sequence[Any], linear: Sequence[bool], inputs: Sequence[Node]) -> list[Any]:
    """All that a loop over tangents carries is linear, also where it starts with zeros that are no tangents."""
    split = a.carries + a.elements
    walked = [k for k in range(a.carries, split) if linear[k]]
    fixed = [k for k in range(split, len(inputs)) if linear[k]]
    rest = [k for k in range(a.carries, len(inputs)) if not linear[k]]
    along, still = [k for k in rest if k < split], [k for k in rest if k >= split]
    order = [*range(a.carries), *walked, *fixed, *along, *still]
    backward = transposed(_reordered(a.body, order), a.carries + len(walked) + len(fixed))

    avals = a.body.avals
    cts = [derive.zeros(o) if c is None else c for c, o in zip(cotangents, _infer_scan(a), strict=True)]
    scope = Scope("trace", "transposed scan")
    totals = [placeholder(Aval(inputs[k].shape, inputs[k].dtype), scope) for k in fixed]
    params = [placeholder(v, scope) for v in avals]
    others = [placeholder(Aval(p.shape, p.dtype), scope) for p in backward.params[len(avals) :]]
    found = backward(*params, *others)
    into, out = found[: a.carries], found[a.carries : a.carries + len(walked)]
    sums = [total + more for total, more in zip(totals, found[a.carries + len(walked) :], strict=True)]
    body = Function(
        (*params[: a.carries], *totals, *params[a.carries :], *others), (*into, *sums, *out), scope
    )  # fmt: skip
    results = scan(
        body, [*cts[: a.carries], *(derive.zeros(inputs[k]) for k in fixed)],
        [*cts[a.carries :], *(inputs[k] for k in along)], [inputs[k] for k in still], a.length, not a.reverse,
    )  # fmt: skip
    given: list[Any] = [None] * len(inputs)
    places = [*range(a.carries), *fixed, *walked]
    for k, value in zip(places, results, strict=True):
        given[k] = value
    return given


def _batch_scan(a: Scan, inputs: Sequence[Node], is_batched: Sequence[bool]) -> tuple[Node, ...]:
    size = next(x.shape[0] for x, b in zip(inputs, is_batched, strict=True) if b)
    split = a.carries + a.elements
    carries = [x if b else repeated(x, size) for x, b in zip(inputs[: a.carries], is_batched, strict=False)]
    elements = [_swapped(inputs[k]) if is_batched[k] else inputs[k] for k in range(a.carries, split)]
    wide = [True] * a.carries + list(is_batched[a.carries :])
    body, has = batched(a.body, wide, size, force=[True] * a.carries + [False] * (len(a.body.results) - a.carries))
    found = scan(body, carries, elements, inputs[split:], a.length, a.reverse)
    stacks = [
        _swapped(x) if h else repeated(x, size) for x, h in zip(found[a.carries :], has[a.carries :], strict=True)
    ]
    return (*found[: a.carries], *stacks)


def _swapped(x: Node) -> Node:
    """The first two axes exchanged."""
    result = permute(x, (1, 0, *range(2, x.ndim)))
    assert isinstance(result, Node)
    return result


SCAN: Op = row(Op(
    name="scan", doc="A loop over the first axis of its inputs that carries values along.", function=None,
    group=STRUCTURE, shared=False, method=False,
    infer=_infer_scan, reference=_unused, derivative=Jvp(_jvp_scan, _transpose_scan), batch=_batch_scan,
    lower=Nested(_run_scan), work=lambda node, of: node.attrs.length * of(node.attrs.body),
))  # fmt: skip


# --- cond -----------------------------------------------------------------------------------------


class Cond(NamedTuple):
    true: Function
    false: Function


def cond(predicate: Node, true: Function, false: Function, operands: Sequence[Node]) -> tuple[Node, ...]:
    """The results of one of two functions with the same parameters and results."""
    return picks(make(COND, (predicate, *operands), Cond(true, false)))


def _run_cond(run: Any, a: Cond, predicate: Any, *operands: Any) -> list[Any]:
    results: list[Any] = run(a.true if bool(predicate) else a.false, operands)
    return results


def _jvp_cond(a: Cond, result: Any, inputs: Sequence[Node], tangents: Sequence[Any]) -> list[Any]:
    predicate, operands, given = inputs[0], inputs[1:], tangents[1:]
    varying = [t is not None for t in given]
    firsts, seconds, lives = zip(*(linearized(f, varying) for f in a), strict=True)
    live = [any(both) for both in zip(*lives, strict=True)]
    count = len(result)
    residuals = [f.results[count:] for f in firsts]
    own: list[Function] = []
    for which, first in enumerate(firsts):  # each branch gives its own residuals, and zeros for the other's
        mine = [r if k == which else derive.zeros(r) for k, group in enumerate(residuals) for r in group]
        own.append(replace(first, results=(*first.results[:count], *mine)))
    found = cond(predicate, own[0], own[1], operands)[count:]

    tangents_in = [t for t in given if t is not None]
    avals = [Aval(x.shape, x.dtype) for x in (*tangents_in, *found)]
    linear: list[Function] = []
    for which, second in enumerate(seconds):
        scope = Scope("trace", "linear branch")
        params = [placeholder(v, scope) for v in avals]
        start = len(tangents_in) + (0 if which == 0 else len(residuals[0]))
        mine_in = params[start : start + len(residuals[which])]
        feed = iter(second(*params[: len(tangents_in)], *mine_in))
        outs = [next(feed) if alive else derive.zeros(r) for alive, r in zip(lives[which], result, strict=True)]
        linear.append(Function(tuple(params), tuple(o for o, alive in zip(outs, live, strict=True) if alive), scope))
    feed_out = iter(cond(predicate, linear[0], linear[1], [*tangents_in, *found])) if any(live) else iter(())
    return [next(feed_out) if alive else None for alive in live]


def _transpose_cond(a: Cond, cotangents: Sequence[Any], linear: Sequence[bool], inputs: Sequence[Node]) -> list[Any]:
    operands = range(1, len(inputs))
    moving, rest = [k for k in operands if linear[k]], [k for k in operands if not linear[k]]
    order = [k - 1 for k in (*moving, *rest)]
    backward = [transposed(_reordered(f, order), len(moving)) for f in a]
    cts = [derive.zeros(o) if c is None else c for c, o in zip(cotangents, a.true.avals, strict=True)]
    found = cond(inputs[0], backward[0], backward[1], [*cts, *(inputs[k] for k in rest)])
    given: list[Any] = [None] * len(inputs)
    for k, value in zip(moving, found, strict=True):
        given[k] = value
    return given


def _batch_cond(a: Cond, inputs: Sequence[Node], is_batched: Sequence[bool]) -> tuple[Node, ...]:
    size = next(x.shape[0] for x, b in zip(inputs, is_batched, strict=True) if b)
    force = [True] * len(a.true.results)
    true, false = (batched(f, is_batched[1:], size, force=force)[0] for f in a)
    if not is_batched[0]:
        return cond(inputs[0], true, false, inputs[1:])
    pairs = zip(true(*inputs[1:]), false(*inputs[1:]), strict=True)  # each example has its own branch: both are needed
    return tuple(where(_spread(inputs[0], x), x, y) for x, y in pairs)


def _spread(predicate: Node, x: Node) -> Node:
    """A predicate per example, ready to broadcast against a batch."""
    result = reshape(predicate, (predicate.shape[0], *(1,) * (x.ndim - 1)))
    assert isinstance(result, Node)
    return result


COND: Op = row(Op(
    name="branch", doc="The results of one of two functions, by a truth value.", function=None, group=STRUCTURE,
    shared=False, method=False,
    infer=lambda a, *inputs: a.true.avals, reference=_unused, derivative=Jvp(_jvp_cond, _transpose_cond),
    batch=_batch_cond, lower=Nested(_run_cond),
    work=lambda node, of: max(of(node.attrs.true), of(node.attrs.false)),
))  # fmt: skip


# --- while ----------------------------------------------------------------------------------------


class While(NamedTuple):
    test: Function  # (carries, captures of the test) → bool
    body: Function  # (carries, captures of the body) → carries
    carries: int
    tested: int  # captures of the test


def while_loop(
    test: Function, body: Function, carries: Sequence[Node], tested: Sequence[Node], used: Sequence[Node]
) -> tuple[Node, ...]:
    """The carries after the body has run for as long as the test holds."""
    return picks(make(WHILE, (*carries, *tested, *used), While(test, body, len(carries), len(tested))))


def _run_while(run: Any, a: While, *arrays: Any) -> list[Any]:
    carries, tested, used = list(arrays[: a.carries]), arrays[a.carries :][: a.tested], arrays[a.carries + a.tested :]
    while bool(run(a.test, [*carries, *tested])[0]):
        carries = run(a.body, [*carries, *used])
    return carries


def _jvp_while(a: While, result: Any, inputs: Sequence[Node], tangents: Sequence[Any]) -> list[Any]:
    carries, tested, used = inputs[: a.carries], inputs[a.carries :][: a.tested], inputs[a.carries + a.tested :]
    varying = [t is not None for t in (*tangents[: a.carries], *tangents[a.carries + a.tested :])]
    while True:
        body, live = _with_tangents(a.body, varying)
        late = [k for k in range(a.carries) if live[k] and not varying[k]]
        if not late:
            break
        for k in late:
            varying[k] = True
    moving = [k for k in range(a.carries) if varying[k]]
    started = _known(tangents[: a.carries], carries, varying[: a.carries])
    fixed = _known(tangents[a.carries + a.tested :], used, varying[a.carries :])
    test_params = [placeholder(Aval(c.shape, c.dtype), a.test.scope) for c in started]
    test = replace(a.test, params=(*a.test.params[: a.carries], *test_params, *a.test.params[a.carries :]))
    order = [*range(a.carries), *(len(inputs) - a.tested + k for k in range(len(started)))]
    order += [
        *range(a.carries, len(inputs) - a.tested),
        *range(len(inputs) - a.tested + len(started), len(body.params)),
    ]
    kept = replace(
        _reordered(body, order), results=(*body.results[: a.carries], *(body.results[a.carries + k] for k in moving))
    )
    found = while_loop(test, kept, [*carries, *started], tested, [*used, *fixed])
    feed = iter(found[a.carries :])
    return [next(feed) if varying[k] else None for k in range(a.carries)]


def _with_tangents(function: Function, varying: Sequence[bool]) -> tuple[Function, list[bool]]:
    """(params, tangents of those that vary) → (results, a tangent for each)."""
    scope = Scope("grad", "forward")
    inputs = [mark(p, scope) if v else p for p, v in zip(function.params, varying, strict=True)]
    results = function(*inputs)
    tangents = [
        placeholder(Aval(p.shape, p.dtype), function.scope) for p, v in zip(function.params, varying, strict=True) if v
    ]
    out = derive.jvp(
        results, dict(zip([x for x, v in zip(inputs, varying, strict=True) if v], tangents, strict=True)), scope
    )
    filled = [derive.zeros(r) if t is None else t for t, r in zip(out, results, strict=True)]
    scope.open = False
    return Function((*function.params, *tangents), (*results, *filled), function.scope), [t is not None for t in out]


def _transpose_while(a: While, cotangents: Any, linear: Any, inputs: Any) -> Any:
    raise DerivativeError(
        "a while_loop of unknown length has no reverse derivative: the steps back are not known",
        span=span_of(Current.site),
        hint="give it max_iterations=, or use scan or fori_loop; forward derivatives (jvp) work",
    )


def _batch_while(a: While, inputs: Sequence[Node], is_batched: Sequence[bool]) -> tuple[Node, ...]:
    from eshkol.ops import TABLE

    size = next(x.shape[0] for x, b in zip(inputs, is_batched, strict=True) if b)
    carries = [x if b else repeated(x, size) for x, b in zip(inputs[: a.carries], is_batched, strict=False)]
    tested, used = inputs[a.carries :][: a.tested], inputs[a.carries + a.tested :]
    all_carried = [True] * a.carries
    test, _ = batched(a.test, [*all_carried, *is_batched[a.carries :][: a.tested]], size, force=[True])
    body, _ = batched(a.body, [*all_carried, *is_batched[a.carries + a.tested :]], size, force=all_carried)
    # The loop goes on while any example does; those that have ended keep what they have.
    some = replace(test, results=(TABLE["any"](test.results[0]),))
    scope = Scope("trace", "masked body")
    params = [placeholder(Aval(x.shape, x.dtype), scope) for x in (*carries, *tested, *used)]
    olds, tests, useds = params[: a.carries], params[a.carries :][: a.tested], params[a.carries + a.tested :]
    (active,) = test(*olds, *tests)
    news = [where(_spread(active, old), new, old) for new, old in zip(body(*olds, *useds), olds, strict=True)]
    masked, captured = close(params, news, scope)
    assert not captured
    return while_loop(some, masked, carries, tested, [*tested, *used])


WHILE: Op = row(Op(
    name="while_loop", doc="A loop that goes on while a test holds.", function=None, group=STRUCTURE, method=False,
    shared=False,
    infer=lambda a, *inputs: a.body.avals, reference=_unused, derivative=Jvp(_jvp_while, _transpose_while),
    batch=_batch_while, lower=Nested(_run_while),
    work=lambda node, of: of(node.attrs.test) + of(node.attrs.body),  # how often is not known: once
))  # fmt: skip
