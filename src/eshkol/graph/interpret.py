"""The oracle of graphs: every node computed by its row's NumPy reference, one after another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eshkol.graph.node import Node, host_array, topological
from eshkol.ops.row import Nested
from eshkol.ops.structural import PLACEHOLDER


def evaluate(outputs: Sequence[Node], given: Mapping[Node, Any] | None = None) -> list[Any]:
    """The arrays of the outputs; `given` has those of placeholders."""
    found: dict[Node, Any] = dict(given or {})
    with np.errstate(all="ignore"):  # once for all of them: it takes as long as a small node does
        for node in topological(outputs):
            if node not in found:
                known = node.data is not None
                found[node] = host_array(node) if known else _computed(node, [found[x] for x in node.inputs], run)
    return [found[node] for node in outputs]


def _evaluate(node: Node) -> None:
    node.data = evaluate([node])[0]


Node.evaluator = staticmethod(_evaluate)  # until a backend takes over


Run = Callable[[Any, Sequence[Any]], list[Any]]


def computed(node: Node, arrays: Sequence[Any], inner: Run | None = None) -> Any:
    """What a node is for values of its inputs; `inner` computes the functions that control flow is made of."""
    with np.errstate(all="ignore"):
        return _computed(node, arrays, inner or run)


def _computed(node: Node, arrays: Sequence[Any], inner: Run) -> Any:
    assert node.op is not PLACEHOLDER, "a placeholder has no value here"
    if isinstance(node.op.lower, Nested):
        result = node.op.lower.code(inner, node.attrs, *arrays)
    else:
        result = node.op.reference(node.attrs, *arrays)
    if node.outs is None:
        return fitting(result, node.shape, node.dtype.numpy)
    return tuple(fitting(r, o.shape, o.dtype.numpy) for r, o in zip(result, node.outs, strict=True))


def fitting(array: Any, shape: Any, dtype: Any) -> Any:
    """The array as an op promises it; a reference that gives another shape is wrong."""
    array = np.asarray(array)
    assert array.shape == tuple(shape), f"a reference gave {array.shape}, not {tuple(shape)}"
    return array.astype(dtype, copy=False)


def run(function: Any, arrays: Sequence[Any]) -> list[Any]:
    """The results of a function of the graph (see `function.py`)."""
    return evaluate(function.results, dict(zip(function.params, arrays, strict=True)))
