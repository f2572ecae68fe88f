"""Graphs computed on a machine: `realize` gives nodes their data.

Comes in: nodes and a backend. All nodes they need and whose data is not there are compiled together (`pipeline.py`) and
run. What was compiled is found again by the structure of the graph, so that a step of a program that is repeated costs
little more than running it. Goes out: one contiguous host array per node, also stored as `node.data`.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from eshkol.errors import TensorError
from eshkol.graph.function import Function
from eshkol.graph.node import Current, Node, Scope, copied, placeholder, settle, span_of
from eshkol.ops.row import Aval, Nested
from eshkol.ops.structural import BUFFER, CONST, MARK, PLACEHOLDER
from eshkol.references import ALONE
from eshkol.schedule.failures import asked_by
from eshkol.schedule.memory import COUNTED, Array, Machine, exclusive
from eshkol.schedule.order import needed, unknown_value
from eshkol.schedule.pipeline import Compiled, verify_all

KEPT = 256  # compiled graphs

_check_nan: ContextVar[bool] = ContextVar("check_nan", default=False)


@contextmanager
def check_nan(on: bool = True) -> Iterator[None]:
    """Within it, an op that gives NaN or infinity from numbers that are neither is an error."""
    token = _check_nan.set(on)
    try:
        yield
    finally:
        _check_nan.reset(token)


def set_check_nan(on: bool) -> None:
    """Turn the check on or off from here on."""
    _check_nan.set(on)


def realize(nodes: Sequence[Node], machine: Machine) -> list[Array]:
    """The arrays of nodes, computed where they are not there; they are the nodes' data from now on.

    What is computed on the way and is used elsewhere, by a tensor or by a graph that is not computed yet, keeps its
    data too: it would be computed again otherwise, and a loop that looks at a value now and then would do all its
    earlier steps again each time.
    """
    missing = [node for node in nodes if node.data is None]
    if missing:
        order, leaves = needed_now(missing)
        wanted = list(dict.fromkeys((*missing, *used_elsewhere(order))))
        compiled, numbers = _found(order, leaves, wanted)
        donated = _left_behind(order, leaves) if machine.shares_host_memory else ()
        arrays = [ready(leaf.data) for leaf in leaves]
        arrays += numbers
        for k in donated:
            leaves[k].data = None
        with asked_by(order):
            found = compiled.run(arrays, machine, checked=_check_nan.get(), donated=donated)
        for node, array in zip(wanted, found, strict=True):
            give(node, array)
    return [node.data for node in nodes]


def give(node: Node, array: Array) -> None:
    """Let a node have its data."""
    node.data = array
    settle(node)
    if node.op is MARK and node.inputs[0].data is None:  # which is the same value without the mark
        node.inputs[0].data = array
        settle(node.inputs[0])


def run(function: Function, arrays: Sequence[Any], machine: Machine) -> list[Array]:
    """The results of a function of the graph; it is compiled once."""
    found = _functions.get(id(function))
    if found is None:
        found = function, Compiled(function.results, function.params)
        _functions[id(function)] = found  # which keeps the function, so that its id stays its own
        if len(_functions) > KEPT:
            _functions.popitem(last=False)
    else:
        _functions.move_to_end(id(function))
    given = [ready(np.asarray(a, p.dtype.numpy)) for a, p in zip(arrays, function.params, strict=True)]
    return found[1].run(given, machine, checked=_check_nan.get())


def run_compiled(
    compiled: Compiled, arrays: Sequence[Array], machine: Machine, donated: Sequence[int] = ()
) -> list[Array]:
    """The results of what was compiled. The results may take the memory of arrays that are donated."""
    return compiled.run(arrays, machine, checked=_check_nan.get(), donated=donated)


_functions: OrderedDict[int, tuple[Function, Compiled]] = OrderedDict()


def ready(array: Array) -> Array:
    """An array as plans take it: contiguous and aligned."""
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def _left_behind(order: Sequence[Node], leaves: list[Node]) -> list[int]:
    """Large leaves that only these nodes refer to, whose memory results may take: what was changed in place.

    What a derivative may still ask for is not given away.
    """
    if not any(leaf.data.nbytes >= COUNTED for leaf in leaves):
        return []
    uses: dict[int, int] = {}
    for node in order:
        for x in node.inputs:
            uses[id(x)] = uses.get(id(x), 0) + (1 if not node.scopes else -len(order))
    found = []
    for k in range(len(leaves)):
        leaf = leaves[k]
        alone = sys.getrefcount(leaf) - ALONE <= uses.get(id(leaf), 0)
        if alone and leaf.data.nbytes >= COUNTED and exclusive(leaf):
            found.append(k)
    return found


def used_elsewhere(order: list[Node]) -> list[Node]:
    """The nodes that something besides their users in this order refers to.

    References say it at no cost to those who make nodes. Were one missed or counted twice, a value would be computed
    again or kept in vain; nothing would be wrong.
    """
    inner: dict[int, int] = {}
    for node in order:
        for x in node.inputs:
            inner[id(x)] = inner.get(id(x), 0) + 1
    return [
        node for node in order if node.outs is None and sys.getrefcount(node) - ALONE > inner.get(id(node), 0)
    ]  # fmt: skip


def needed_now(results: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """The nodes to be computed, inputs first, and the leaves; what is behind a node that has data is not looked at."""
    order: list[Node] = []
    leaves: list[Node] = []
    seen: set[Node] = set()
    stack = [(node, False) for node in reversed(results)]
    while stack:
        node, inputs_done = stack.pop()
        if inputs_done:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            if node.data is not None:
                leaves.append(node)
                continue
            if node.op is CONST and node not in results:
                continue
            if node.op is PLACEHOLDER:
                raise unknown_value()
            if node.op is BUFFER:
                raise TensorError(
                    "a tensor was used whose memory is another's: it had been donated to a function under jit, or "
                    "changed in place by an operation that failed",
                    span=span_of(Current.site), hint="use what the function returned, or do not donate that argument",
                )  # fmt: skip
            stack.append((node, True))
            stack.extend((x, False) for x in reversed(node.inputs) if x not in seen)
    return order, leaves


# --- what was compiled, by structure --------------------------------------------------------------


@dataclass(slots=True)
class _Kept:
    """A graph that was compiled. Constants are part of it until one is seen to change; that one is an input then."""

    compiled: Compiled
    constants: list[Any]  # their values; None for those that are inputs


_kept: OrderedDict[Any, _Kept] = OrderedDict()


def _found(order: list[Node], leaves: list[Node], wanted: list[Node]) -> tuple[Compiled, list[Array]]:
    """The graph compiled, now or earlier, and the constants that are inputs of it."""
    verify_all(order)
    parts, constants, number = structure(order, leaves)
    key = (tuple(parts), tuple([number[node] for node in wanted]))
    kept = _kept.get(key)
    if kept is None:
        varies = [False] * len(constants)
    else:
        _kept.move_to_end(key)
        varies = [k is None for k in kept.constants]
        same = True
        for place, (constant, known) in enumerate(zip(constants, kept.constants, strict=True)):
            if known is not None and known != constant.attrs:
                varies[place], same = True, False
        if not same:
            kept = None
    if kept is None:
        compiled = compile_graph(order, leaves, wanted, [c for c, v in zip(constants, varies, strict=True) if v])
        kept = _Kept(compiled, [None if v else c.attrs for c, v in zip(constants, varies, strict=True)])
        _kept[key] = kept
        if len(_kept) > KEPT:
            _kept.popitem(last=False)
    return kept.compiled, [c.attrs.array for c, v in zip(constants, varies, strict=True) if v]


def structure(order: Sequence[Node], leaves: Sequence[Node]) -> tuple[list[Any], list[Node], dict[Node, int]]:
    """What a graph is but for its data: each op with the numbers of its inputs; its constants; and those numbers."""
    number: dict[Node, int] = {}
    parts: list[Any] = []
    for leaf in leaves:
        number[leaf] = len(number)
        parts.append((leaf.shape, leaf.dtype))
    constants: list[Node] = []
    for node in order:
        part: list[Any] = [node.op, _attributes(node)]
        for x in node.inputs:
            found = number.get(x)
            if found is None:  # a constant
                found = number[x] = len(number)
                constants.append(x)
                part.append(x.dtype)
            part.append(found)
        number[node] = len(number)
        parts.append(tuple(part))
    return parts, constants, number


def _attributes(node: Node) -> Any:
    """The attributes of a node as far as they change what is computed."""
    op = node.op
    if op.shared:
        return node.attrs
    if isinstance(op.lower, Nested):
        # The site too: bodies keep the lines of those who traced them.
        return (node.site, *(_function_structure(a) if isinstance(a, Function) else a for a in node.attrs))
    return getattr(node.attrs, "results", None)  # marks, barriers and the like are told apart by nothing else


_STRUCTURE = "_structure"  # where a function keeps its own


def _function_structure(function: Function) -> Any:
    found = function.__dict__.get(_STRUCTURE)
    if found is None:
        order = needed(function.results, function.params)
        parts, constants, number = structure(order, function.params)
        results = tuple([number.get(r, r.attrs) for r in function.results])
        found = _ByHash((tuple(parts), tuple([c.attrs for c in constants]), results))
        object.__setattr__(function, _STRUCTURE, found)
    return found


class _ByHash:
    """A large tuple that is hashed once."""

    __slots__ = ("hash", "parts")

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts, self.hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self.hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, _ByHash) and self.hash == other.hash and self.parts == other.parts)


def compile_graph(order: list[Node], leaves: list[Node], wanted: list[Node], varying: list[Node]) -> Compiled:
    """The graph as a function of its leaves and of some constants."""
    scope = Scope("trace", "compiled graph")
    scope.open = False
    changed = {x: placeholder(Aval(x.shape, x.dtype), scope) for x in (*leaves, *varying)}
    params = list(changed.values())
    # All anew: what is compiled is kept, and must not hold on to what was computed, nor to the line that asked for it
    # first. Its sites are places in the order; failures find the lines of those who ask now.
    for place, node in enumerate(order):
        changed[node] = copied(node, tuple([changed.get(x, x) for x in node.inputs]), place)
    return Compiled([changed[node] for node in wanted], params)
