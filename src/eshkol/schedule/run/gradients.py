"""Gradients of graphs that come again: the way back is derived and compiled once for the structure of the way there.

A training loop that is not compiled as a whole builds the same graph in every step. To derive its gradients node by
node takes longer than to build it, and what comes of it is the same each time: the program for the value, the gradients
and whatever else is held of the graph is found by the structure of the value's graph, and run on what is there now.

Comes in: a value, the marks whose gradients are wanted, their scope, and a machine. Goes out: the gradients as arrays,
with the data of the nodes that were computed on the way; or None where a graph does not tell its derivative by its
structure alone, and is to be derived itself: rules of users, other transformations at work, numbers that change.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from eshkol.graph import derive
from eshkol.graph.function import Function
from eshkol.graph.node import Node, Scope, constant, on_host
from eshkol.ops.elementwise import conj
from eshkol.ops.row import Nested
from eshkol.ops.structural import MARK, TO
from eshkol.runtime import front
from eshkol.schedule.cache import COMPILER
from eshkol.schedule.check.switch import CHECKS
from eshkol.schedule.order import needed
from eshkol.schedule.pipeline import Compiled, verify_all
from eshkol.schedule.run import execute
from eshkol.schedule.run.failures import asked_by
from eshkol.support.collector import without_collector

KEPT = 256  # programs


@dataclass(slots=True)
class _Way:
    """A program from nodes of a value's graph, which have data, to results."""

    compiled: Compiled
    constants: list[Any]  # of the value's graph; they are part of the program
    inputs: list[int]  # the numbers of the nodes it takes
    lines: list[int]  # places of nodes of the value's graph, for each place of the program: whose line it is of


_ways: OrderedDict[Any, _Way | None] = OrderedDict()


def gradients(value: Node, marks: Sequence[Node], scope: Scope, also: Sequence[Node] = ()) -> list[Any] | None:
    """The gradients of a real number by marks. The number gets its data, and so do nodes that are `also` wanted."""
    with COMPILER:
        return _gradients(value, marks, scope, also)


def _gradients(value: Node, marks: Sequence[Node], scope: Scope, also: Sequence[Node]) -> list[Any] | None:
    found = front.gradient_structure([value, *also], scope, [*marks])
    if found is None:
        return None
    order, _, kept, constants, nodes, key = found
    fresh: _Way | None = None
    if key in _ways:
        _ways.move_to_end(key)
        way = _ways[key]
        if CHECKS.on and way is not None and _comes_again(way):
            fresh = _derived(value, marks, scope, kept, order, constants, nodes)
    else:
        way = _ways[key] = _derived(value, marks, scope, kept, order, constants, nodes)
        if len(_ways) > KEPT:
            _ways.popitem(last=False)
    if way is None or way.constants != [c.attrs for c in constants]:
        return None
    if any(node.device != value.device and node.device is not None for node in also):
        return None  # what is wanted besides is on another machine
    machine, values = execute.values_of([nodes[k] for k in way.inputs])
    with asked_by(_Lines(order, way.lines)):
        results = execute.run_compiled(way.compiled, values, machine)
        if fresh is not None:
            _compare(fresh, nodes, results)
    for node, found_value in zip(kept, results, strict=False):
        execute.give(node, found_value)
    return results[len(kept) :]


def _comes_again(way: _Way) -> bool:
    from eshkol.schedule.check import validation

    return validation.comes_again(way.compiled)


def _compare(fresh: _Way, nodes: Sequence[Node], results: Sequence[Any]) -> None:
    """Refuse results of a program that was kept which are not those of one that was derived anew."""
    from eshkol.schedule.check import validation

    given, compiled = [on_host(nodes[k].data) for k in fresh.inputs], fresh.compiled
    found = [*map(on_host, results)]
    validation.kept("gradients kept by structure", compiled.results, found, compiled.params, given)


def _derived(
    value: Node, marks: Sequence[Node], scope: Scope, kept: list[Node], order: list[Node], constants: list[Node],
    nodes: list[Node],
) -> _Way | None:  # fmt: skip
    """The program, or None if it needs values that are no part of the value's graph."""
    number = {node: k for k, node in enumerate(nodes)}
    with without_collector():
        found = derive.vjp([value], marks, scope)([constant(1, value.dtype)])
        if all(g is None for g in found):
            return None  # whoever asked has something to say about that
        slopes = [derive.zeros(m) if g is None else g for m, g in zip(marks, found, strict=True)]
        results = [*kept, *[conj(g) if m.dtype.is_complex else g for m, g in zip(marks, slopes, strict=True)]]
        steps, inputs, *_ = front.structure(results, False)
        verify_all(steps)
        if any(x not in number for x in inputs):
            return None
        compiled = execute.compile_graph(steps, inputs, results, [])
    sites = {node.site: place for place, node in enumerate(order)}
    lines = [sites.get(node.site, 0) for node in steps]
    return _Way(compiled, [c.attrs for c in constants], [number[x] for x in inputs], lines)


def _told_by_structure(node: Node, scope: Scope) -> bool:
    """Whether a node's op and attributes say what its derivative is: not if a user's rule does, where a value crosses
    between machines, or where another transformation is at work."""
    if node.op is TO and node.inputs[0].device is not None:
        return False
    return all(s is scope or not s.open for s in node.scopes) and _without_rules(node)


def _without_rules(node: Node) -> bool:
    """Whether no rule of a user is in a node."""
    op = node.op
    if op.shared or op is MARK:
        return True
    if not isinstance(op.lower, Nested):
        return False
    bodies = [a for a in node.attrs if isinstance(a, Function)]
    return all(_without_rules(x) for body in bodies for x in needed(body.results, body.params))


front.give("told_by_structure", _told_by_structure)


class _Lines(Sequence[Node]):
    """The nodes of a value's graph in the places of a program, for the lines of the user that they are of."""

    def __init__(self, order: list[Node], lines: list[int]) -> None:
        self._order, self._lines = order, lines

    def __len__(self) -> int:
        return len(self._lines)

    def __getitem__(self, place: Any) -> Any:
        return self._order[self._lines[place]]
