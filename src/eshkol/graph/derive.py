"""Derivatives as graph transformations: linearize, then transpose.

`jvp` walks from the inputs to the outputs and gives each node a tangent, by its row's rule; what it builds is linear in
the tangents. `transpose` walks such a linear graph backwards. `vjp` is the one after the other. Nothing here knows an
op by name: the rows say all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from eshkol.errors import DerivativeError
from eshkol.graph.node import Current, Node, Scope, constant, picks, placeholder, span_of, topological
from eshkol.ops.elementwise import cast, mul
from eshkol.ops.movement import expand
from eshkol.ops.reductions import sum_to
from eshkol.ops.row import Aval, Jvp, Linear, NoDerivative, Partials
from eshkol.ops.structural import PICK

Tangent: TypeAlias = Node | None  # None: zero
Tangents: TypeAlias = Tangent | tuple[Tangent, ...]  # several for an op with several results


def zeros(aval: Any) -> Node:
    """Zeros of a shape and dtype."""
    zero = constant(0, aval.dtype)
    if not aval.shape:
        return zero
    result = expand(zero, aval.shape)
    assert isinstance(result, Node)
    return result


def jvp(outputs: Sequence[Node], tangents: Mapping[Node, Tangent], scope: Scope) -> list[Tangent]:
    """The tangents of the outputs, given those of the inputs; all that varies depends on the scope."""
    found: dict[Node, Tangents] = dict(tangents)
    for node in topological(outputs, scope, _open_inputs):
        if node not in found:
            found[node] = _tangent(node, found)
    return [_single(found.get(node)) for node in outputs]


def _open_inputs(node: Node) -> tuple[Node, ...]:
    """The inputs that derivatives flow through."""
    return node.inputs if node.op.blocked is None else node.inputs[node.op.blocked(node.attrs) :]


def _single(tangent: Tangents) -> Tangent:
    assert not isinstance(tangent, tuple)
    return tangent


def _tangent(node: Node, found: Mapping[Node, Tangents]) -> Tangents:
    if node.op is PICK:
        several = found.get(node.inputs[0])
        return several[node.attrs.place] if isinstance(several, tuple) else None
    inputs = [_single(found.get(x)) for x in node.inputs]
    if all(t is None for t in inputs):
        return None
    previous, Current.site = Current.site, node.site
    try:
        return _apply_rule(node, inputs)
    finally:
        Current.site = previous


def _apply_rule(node: Node, tangents: list[Tangent]) -> Tangents:
    rule = node.op.derivative
    if node.outs is None and not node.dtype.differentiable:
        return None
    if isinstance(rule, Partials):
        return _from_partials(node, rule, tangents)
    if isinstance(rule, Linear):
        return _from_linear(node, rule, tangents)
    if isinstance(rule, Jvp):
        result = node if node.outs is None else picks(node)
        given: Any = rule.rule(node.attrs, result, node.inputs, tangents)
        if node.outs is None or given is None:
            tangent: Tangent = given
            return tangent
        assert len(given) == len(node.outs), f"the rule of {node.op.name} gives a tangent for each result"
        return tuple(given)
    assert isinstance(rule, NoDerivative), f"{node.op.name} has no derivative rule"
    if rule.zero:
        return None
    raise DerivativeError(f"{node.op.name} has no derivative: {rule.why}", span=span_of(node.site))


def _from_partials(node: Node, rule: Partials, tangents: list[Tangent]) -> Tangent:
    total: Tangent = None
    for factor, tangent in zip(rule.factors, tangents, strict=True):
        if tangent is None or factor is None:
            continue
        partial = factor(node, *node.inputs)
        term = _scaled(tangent, partial)
        total = term if total is None else total + term
    return None if total is None else _fitted(total, node)


def _scaled(tangent: Node, partial: Any) -> Node:
    if isinstance(partial, int | float) and partial == 1:
        return tangent
    result = -tangent if isinstance(partial, int | float) and partial == -1 else mul(tangent, partial)
    assert isinstance(result, Node)
    return result


def _fitted(tangent: Node, node: Node) -> Node:
    """A tangent broadcast to the shape of what it belongs to."""
    if tangent.shape == node.shape:
        return tangent
    result = expand(tangent, node.shape)
    assert isinstance(result, Node)
    return result


def _from_linear(node: Node, rule: Linear, tangents: list[Tangent]) -> Tangents:
    args = range(len(tangents)) if rule.args is None else rule.args
    live = [k for k in args if tangents[k] is not None]
    if not live:
        return None
    if rule.joint:
        inputs = [
            x if k not in args else t if (t := tangents[k]) is not None else zeros(x) for k, x in enumerate(node.inputs)
        ]
        result: Tangents = node.apply(node.op, inputs, node.attrs)
        return result
    total: Tangent = None
    for k in live:
        term = node.apply(node.op, [tangents[k] if j == k else x for j, x in enumerate(node.inputs)], node.attrs)
        total = term if total is None else total + term
    return total


# --- transposition --------------------------------------------------------------------------------


def transpose(
    outputs: Sequence[Tangent], inputs: Sequence[Node], cotangents: Sequence[Tangent], scope: Scope
) -> list[Tangent]:
    """Of a graph that is linear in its inputs: the cotangents of the inputs, given those of the outputs."""
    received: dict[Node, Any] = {}
    for output, cotangent in zip(outputs, cotangents, strict=True):
        if output is not None and cotangent is not None:
            _receive(received, output, cotangent)
    wanted = set(inputs)
    for node in reversed(topological([o for o in outputs if o is not None], scope)):
        if node not in wanted and node in received:
            previous, Current.site = Current.site, node.site
            try:
                _send(node, received.pop(node), received, scope)
            finally:
                Current.site = previous
    return [received.get(node) for node in inputs]


def _receive(received: dict[Node, Any], node: Node, cotangent: Node, index: int | None = None) -> None:
    if index is None:
        cotangent = unbroadcast(cotangent, node)
        earlier = received.get(node)
        received[node] = cotangent if earlier is None else earlier + cotangent
        return
    assert node.outs is not None
    several = received.setdefault(node, [None] * len(node.outs))
    cotangent = unbroadcast(cotangent, node.outs[index])
    several[index] = cotangent if several[index] is None else several[index] + cotangent


def unbroadcast(cotangent: Node, aval: Any) -> Node:
    """Brought to the shape and dtype of what it is the cotangent of."""
    if cotangent.shape != aval.shape:
        cotangent = sum_to(cotangent, aval.shape)
    if cotangent.dtype is not aval.dtype:
        cotangent = cast(cotangent, aval.dtype)
    return cotangent


def _send(node: Node, cotangent: Any, received: dict[Node, Any], scope: Scope) -> None:
    if node.op is PICK:
        _receive(received, node.inputs[0], cotangent, node.attrs.place)
        return
    rule = node.op.derivative
    if isinstance(rule, Partials):  # a scaled sum, as jvp builds it: linear where the factors do not vary
        for k, factor in enumerate(rule.factors):
            if factor is not None and scope in node.inputs[k].scopes:
                partial = factor(node, *node.inputs)
                if isinstance(partial, Node) and scope in partial.scopes:
                    raise _not_linear(node)
                _receive(received, node.inputs[k], _scaled(cotangent, partial))
        return
    if isinstance(rule, Jvp) and rule.transpose is not None:
        linear = [scope in x.scopes for x in node.inputs]
        for x, given in zip(node.inputs, rule.transpose(node.attrs, cotangent, linear, node.inputs), strict=True):
            if given is not None:
                _receive(received, x, given)
        return
    if not isinstance(rule, Linear):
        raise _not_linear(node)
    for k in range(len(node.inputs)) if rule.args is None else rule.args:
        if scope in node.inputs[k].scopes:
            given = rule.transpose(node.attrs, cotangent, k, *node.inputs)
            if given is not None:
                _receive(received, node.inputs[k], given)


def _not_linear(node: Node) -> DerivativeError:
    return DerivativeError(
        f"a rule uses {node.op.name} on a tangent, in which it is not linear", span=span_of(node.site)
    )


# --- both -----------------------------------------------------------------------------------------


Pullback: TypeAlias = Callable[[Sequence[Tangent]], list[Tangent]]


def vjp(outputs: Sequence[Node], inputs: Sequence[Node], scope: Scope) -> Pullback:
    """Cotangents of the outputs → cotangents of the inputs."""
    linear = Scope("grad", "linear")
    into = [placeholder(Aval(x.shape, x.dtype), linear) for x in inputs]
    out = jvp(outputs, dict(zip(inputs, into, strict=True)), scope)
    return lambda cotangents: transpose(out, into, cotangents, linear)
