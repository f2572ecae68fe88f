"""Calls of ops that come again, learnt: what such a call makes, as a list of steps that C carries out (`templates.c`).

Comes in: a call that was met before, with its arguments; C has told it from all others by the shapes and dtypes of its
tensors, by which of them are the same, and by everything else that it was given. Goes out: the nodes that the general
way makes of them, in order, each with its op, its attributes, its shape and dtype and the numbers of its inputs; or
None, where that does not say all. The call is carried out on placeholders: of what an op makes of them nothing can
depend on values, nor on what the tensors at hand happen to be computed from.

What may be learnt: ops that two nodes can share, of inputs, constants and arrays that the call itself makes. Values may
be looked at only to refuse them (`Value.examined`, `Op.refuses`), which is done again at every call.
"""

from __future__ import annotations

from typing import Any

from eshkol.graph.node import HOST, Current, Node, Scope, placeholder, topological
from eshkol.ops import TABLE
from eshkol.ops.row import LOOKS, Aval, Op
from eshkol.ops.structural import BUFFER, CONST, PLACEHOLDER, TO
from eshkol.runtime import front
from eshkol.support.defaults import Here, floats, unasked
from eshkol.tensors import windows
from eshkol.tensors.value import Tensor, operated


def learn(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> tuple[Any, ...] | None:
    """What C needs to carry out such a call, or None."""
    site, urgent = Current.site, Current.urgent
    asked = Here.asked
    unasked()
    noted: list[Any] = []
    outer, LOOKS.noted = LOOKS.noted, noted
    scope = Scope("trace", f"a call of {op.name}")
    inputs = _Inputs(scope)
    try:
        Current.site = None
        result = operated(op, inputs.instead_of(args), {name: inputs.instead_of(x) for name, x in given.items()})
        uses_default = Here.asked
    except Exception:  # the general way says it, at every call
        return None
    finally:
        scope.open = False
        Current.site, Current.urgent, Here.asked, LOOKS.noted = site, urgent, asked, outer
    kind = type(result) if type(result) is tuple or type(result) is list else None
    results = [result] if kind is None else [*result]
    if not all(type(x) is Tensor for x in results):
        return None
    nodes = [x._node for x in results]
    steps = _steps(nodes, inputs.made, noted)
    if steps is None:
        return None
    pair = op if op.pairs and nodes[0].shape[:1] == (2,) else None
    return (*steps, kind, _checks(noted, nodes, inputs.made), floats() if uses_default else None,
            _is_window(op, args, given), pair)  # fmt: skip


class _Inputs:
    """Placeholders in the places of tensors and nodes."""

    def __init__(self, scope: Scope) -> None:
        self.made: list[Node] = []
        self._of: dict[int, Node] = {}
        self._scope = scope

    def instead_of(self, given: Any) -> Any:
        if type(given) is Tensor:
            return Tensor(self._node(given._node))
        if type(given) is Node:
            return self._node(given)
        if type(given) is tuple or type(given) is list:
            return type(given)(self.instead_of(x) for x in given)
        return given

    def _node(self, node: Node) -> Node:
        found = self._of.get(id(node))
        if found is None:
            found = self._of[id(node)] = placeholder(Aval(node.shape, node.dtype), self._scope)
            found.device = HOST  # wherever it is
            self.made.append(found)
        return found


def _order(results: list[Node], inputs: list[Node]) -> tuple[list[Node], list[Node], dict[Node, int]]:
    """Constants, nodes to be made, and the numbers of all."""
    every = topological(results)
    constants = [n for n in every if n.op is CONST or n.op is BUFFER]
    inner = [n for n in every if n.op is not CONST and n.op is not BUFFER and n.op is not PLACEHOLDER]
    return constants, inner, {node: k for k, node in enumerate((*inputs, *constants, *inner))}


def _steps(
    results: list[Node], inputs: list[Node], noted: list[Any]
) -> tuple[tuple[Node, ...], tuple[Any, ...], tuple[int, ...]] | None:
    """Constants, steps and the numbers of results; None where they are not all that the call is."""
    constants, inner, number = _order(results, inputs)
    if any(node.op is BUFFER for node in results):
        return None  # each call makes one of its own
    if any(not node.op.shared or node.op is TO or node.op.at_once or node.data is not None for node in inner):
        return None
    for note in noted:
        looked = note[0] if type(note) is tuple else note
        if looked is None or looked not in number or looked.op.at_once:
            return None
    steps = tuple(
        (n.op, n.attrs, n.shape, n.dtype, n.outs, tuple(number[x] for x in n.inputs), n.op.refuses is not None)
        for n in inner
    )
    return tuple(constants), steps, tuple(number[r] for r in results)


def _checks(noted: list[Any], results: list[Node], inputs: list[Node]) -> tuple[tuple[int, Any], ...]:
    """The numbers of values that are examined, each with the function that does it."""
    number = _order(results, inputs)[2]
    return tuple((number[note[0]], note[1]) for note in noted if type(note) is tuple)


def _is_window(op: Op, args: tuple[Any, ...], given: dict[str, Any]) -> bool:
    """Whether `windows.note` would note something of the result."""
    if not op.windows or op.pairs or not args or type(args[0]) is not Tensor:
        return False
    return op is not TABLE["getitem"] or not windows.is_chosen(args[1] if len(args) > 1 else given["index"])


front.give("learn", learn)
front.give("floats", floats)
