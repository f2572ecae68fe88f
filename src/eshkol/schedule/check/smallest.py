"""The smallest graph that shows a mistake, and graphs as text.

Comes in: results over parameters, values on which a way to compute them differs from the interpreter, and a function
that tells whether it still does on another graph. Goes out: as few of the nodes as still differ, over parameters whose
values are what was computed on the way.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from eshkol.graph.function import Function
from eshkol.graph.node import Node, Scope, host_array, placeholder, substitute, topological
from eshkol.ops.row import Aval
from eshkol.ops.structural import BUFFER, CONST, PICK, PLACEHOLDER
from eshkol.schedule.check.agreement import REFUSED, Array, Difference, Differs, Interpretation

SECONDS = 10.0  # for looking; what was found until then is shown
DEEP = 6  # nodes after one another that are tried
SHOWN = 8  # elements of an array
LONG = 60  # nodes of a graph that is shown

LEAVES = frozenset({CONST, BUFFER, PLACEHOLDER})


class Case(NamedTuple):
    """A graph with values of its parameters, on which two ways to compute it differ."""

    results: list[Node]
    params: list[Node]
    arrays: list[Array]
    difference: Difference


def smallest(case: Case, differs: Differs) -> Case:
    """As little of a graph as still differs."""
    end = time.monotonic() + SECONDS
    values = Interpretation()
    values(case.results, dict(zip(case.params, case.arrays, strict=True)))
    known = values.values
    found = _beginning(case, differs, end)
    for wanted in _cuts(found, known):
        smaller = _tried(wanted, found.results, known, differs)
        if smaller is not None:
            found = smaller
            break
        if time.monotonic() > end:
            break
    return _without_more(found, differs, end)


def _beginning(case: Case, differs: Differs, end: float) -> Case:
    """The first node, in the order of computing, that differs by itself; else all."""
    if len(case.results) > 1:
        case = _one_result(case, differs)
    given = set(case.params)
    for node in _inside(case.results, given):
        if node.outs is not None or node in case.results:
            continue
        if time.monotonic() > end:
            break
        needed = [(p, a) for p, a in zip(case.params, case.arrays, strict=True) if p in _leaves([node], given)]
        found = _differs(differs, [node], [p for p, _ in needed], [a for _, a in needed])
        if found is not None:
            return found
    return case


def _one_result(case: Case, differs: Differs) -> Case:
    for node in dict.fromkeys((case.results[case.difference.result], *case.results)):
        found = _differs(differs, [node], case.params, case.arrays)
        if found is not None:
            return found
    return case


def _cuts(case: Case, known: dict[Node, Any]) -> Iterator[list[Node]]:
    """Ever larger parts at the end of a graph: what is taken for given."""
    edge = list(case.results)
    for _ in range(DEEP):
        edge = [x for node in edge for x in _behind(node, known)]
        edge = list(dict.fromkeys(edge))
        if not edge or all(node in case.params for node in edge):
            return
        yield edge


def _behind(node: Node, known: dict[Node, Any]) -> tuple[Node, ...]:
    if node.op in LEAVES or node not in known:
        return (node,)
    if node.op is PICK:
        return node.inputs[0].inputs
    return tuple(y for x in node.inputs for y in ((x,) if x.outs is None else x.inputs))


def _tried(edge: Sequence[Node], results: Sequence[Node], known: dict[Node, Any], differs: Differs) -> Case | None:
    """The graph of results over an edge that is given, if it differs."""
    taken = [x for x in edge if x.op is not CONST and x in known]
    cut, params = over(results, taken)
    return _differs(differs, cut, params, [own(known[x]) for x in taken])


def over(results: Sequence[Node], taken: Sequence[Node]) -> tuple[list[Node], list[Node]]:
    """Results, and the placeholders that stand in them for nodes that are taken as given."""
    scope = Scope("trace", "smallest graph")
    scope.open = False
    new = {x: placeholder(Aval(x.shape, x.dtype), scope) for x in taken}
    return substitute(results, new), list(new.values())


def _without_more(case: Case, differs: Differs, end: float) -> Case:
    """The graph with one node after another taken as given, as long as it differs."""
    going = True
    while going and time.monotonic() < end:
        going = False
        values = Interpretation()
        values(case.results, dict(zip(case.params, case.arrays, strict=True)))
        for node in _inside(case.results, set(case.params)):
            if node.outs is not None or node in case.results:
                continue
            leaves = _leaves(case.results, {*case.params, node})
            found = _tried([*leaves], case.results, values.values, differs)
            if found is not None:
                case, going = found, True
                break
    return case


def _differs(differs: Differs, results: Sequence[Node], params: Sequence[Node], arrays: Sequence[Array]) -> Case | None:
    try:
        found = differs(results, params, arrays)
    except REFUSED:
        return None
    return None if found is None else Case(list(results), list(params), list(arrays), found)


def _inside(results: Iterable[Node], given: set[Node]) -> list[Node]:
    order = topological(results, through=lambda x: () if x in given else x.inputs)
    return [node for node in order if node not in given and node.op not in LEAVES]


def _leaves(results: Iterable[Node], given: set[Node]) -> dict[Node, None]:
    order = topological(results, through=lambda x: () if x in given else x.inputs)
    return dict.fromkeys(node for node in order if node in given)


def own(array: Any) -> Array:
    """A copy as plans take it: contiguous, aligned, and of no other axes."""
    return np.array(array, order="C", copy=True)


# --- as text --------------------------------------------------------------------------------------


def shown(case: Case) -> str:
    """A graph as text: a line for each node, with the values of its parameters."""
    lines = _shown_nodes(case.results, dict(zip(case.params, case.arrays, strict=True)), "  ")
    return "\n".join(lines if case.difference.expected is None else [*lines, f"  {case.difference}"])


def _shown_nodes(results: Sequence[Node], given: dict[Node, Array | None], indent: str) -> list[str]:
    names: dict[Node, str] = {}
    lines: list[str] = []

    def name(node: Node) -> str:
        if node.op is CONST and node not in names:
            return str(node.attrs.array)
        return names[node]

    order = topological(results, through=lambda x: () if x in given else x.inputs)
    for node in order:
        if node.op is CONST and node not in results and node not in given:
            continue
        names[node] = f"%{len(names)}"
        what = "several" if node.outs is not None else f"{node.dtype}{list(node.shape)}"
        if node in given or node.data is not None:
            value = given[node] if node in given else host_array(node)
            lines.append(f"{indent}{names[node]} = input {what}{'' if value is None else f'  {_shown_array(value)}'}")
            continue
        inputs = ", ".join(name(x) for x in node.inputs)
        attributes, bodies = _shown_attributes(node)
        lines.append(f"{indent}{names[node]} = {node.op.name}({inputs}){attributes}  {what}")
        for label, body in bodies:
            lines.append(f"{indent}  {label}:")
            lines += _shown_nodes(body.results, dict.fromkeys(body.params), indent + "    ")
    if len(lines) > LONG:
        lines = [*lines[: LONG // 2], f"{indent}… {len(lines) - LONG} more nodes …", *lines[-LONG // 2 :]]
    return [*lines, f"{indent}gives {', '.join(name(r) for r in results)}"]


def _shown_attributes(node: Node) -> tuple[str, list[tuple[str, Function]]]:
    attrs = node.attrs
    if attrs is None or node.op in LEAVES:
        return "", []
    fields = attrs._asdict().items() if hasattr(attrs, "_asdict") else [("attrs", attrs)]
    bodies = [(key, value) for key, value in fields if isinstance(value, Function)]
    told = [f"{key}={value!r}" for key, value in fields if not isinstance(value, Function)]
    return (f" [{', '.join(told)}]" if told else ""), bodies


def _shown_array(array: Any) -> str:
    flat = np.asarray(array).reshape(-1)
    more = f", … {flat.size - SHOWN} more" if flat.size > SHOWN else ""
    numbers = ", ".join(str(x) for x in flat[:SHOWN].tolist())
    return f"[{numbers}{more}]" if np.ndim(array) else numbers
