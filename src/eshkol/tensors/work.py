"""How many floating-point operations values take, counted in the graph before anything is computed.

A product of matrices counts 2·m·n·k, a convolution likewise; other ops one for each element they make or read. Moving
elements, comparing and integers count nothing. A loop of known length counts its body as often as it runs, another
once, and a branch the longer way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from eshkol.graph.function import Function
from eshkol.graph.node import Node, topological
from eshkol.tensors.value import Tensor

# Row → operations of a node of it.
_COUNTS: dict[str, Callable[[Node], int]] = {
    "matrix_product": lambda n: 2 * n.size * n.inputs[0].shape[-1],
    "conv": lambda n: 2 * n.size * math.prod(n.inputs[1].shape[2:]),
    "conv_input": lambda n: 2 * n.inputs[0].size * math.prod(n.inputs[1].shape[2:]),
    "conv_weight": lambda n: 2 * n.inputs[1].size * math.prod(n.shape[2:]),
    "window_argmax": lambda n: n.size * math.prod(n.attrs.kernel),
    "cast": lambda n: 0,
    "where": lambda n: 0,
    **{
        name: lambda n: n.inputs[0].size
        for name in ("sum", "prod", "max", "min", "argmax", "argmin", "cumsum", "cumprod", "logsumexp")
    },
    **{name: lambda n: 4 * n.size for name in ("softmax", "log_softmax")},  # greatest, difference, e^x, share
    "scan": lambda n: n.attrs.length * _of_function(n.attrs.body),
    "while_loop": lambda n: _of_function(n.attrs.test) + _of_function(n.attrs.body),  # how often is not known: once
    "branch": lambda n: max(_of_function(n.attrs.true), _of_function(n.attrs.false)),
}
_ANY = ("argmax", "argmin", "window_argmax", "scan", "while_loop", "branch")  # which may give no floats, of floats


def _of_node(node: Node) -> int:
    count = _COUNTS.get(node.op.name)
    if count is not None:
        return count(node) if node.dtype.differentiable or node.op.name in _ANY else 0
    return node.size if node.op.elementwise and node.dtype.differentiable else 0


def _of_function(function: Function) -> int:
    return sum(_of_node(n) for n in topological(function.results, function.scope))


def operations(results: Iterable[Tensor], inputs: Iterable[Tensor] = ()) -> int:
    """The operations that lead from some tensors to others; nothing is computed."""
    known = {x._node for x in inputs}
    order = topological(
        [r._node for r in results],
        through=lambda n: () if n in known or n.data is not None else n.inputs,
    )
    return sum(_of_node(n) for n in order if n not in known and n.data is None)
