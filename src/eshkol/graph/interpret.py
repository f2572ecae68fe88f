"""The oracle of graphs: every node computed by its row's NumPy reference, one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from eshkol.graph.node import Node, topological
from eshkol.ops.row import Nested
from eshkol.ops.structural import PLACEHOLDER


def evaluate(outputs: Sequence[Node], given: Mapping[Node, Any] | None = None) -> list[Any]:
    """The arrays of the outputs; `given` has those of placeholders."""
    found: dict[Node, Any] = dict(given or {})
    for node in topological(outputs):
        if node not in found:
            found[node] = node.data if node.data is not None else _compute(node, [found[x] for x in node.inputs])
    return [found[node] for node in outputs]


Node.evaluator = staticmethod(lambda node: evaluate([node])[0])  # until a backend takes over


def _compute(node: Node, arrays: Sequence[Any]) -> Any:
    assert node.op is not PLACEHOLDER, "a placeholder has no value here"
    with np.errstate(all="ignore"):
        if isinstance(node.op.lower, Nested):
            result = node.op.lower.code(run, node.attrs, *arrays)
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
