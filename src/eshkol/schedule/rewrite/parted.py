"""Complex numbers by their parts, where a machine has no code for them: convolutions and scatters.

Comes in: a node (`matrices.py` finds them). Goes out: the complex number of nodes of real ones. What puts elements into
places treats both parts alike; what is linear in two arrays is four such nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eshkol.graph.node import Node, make
from eshkol.ops.elementwise import complex_, imag, real


def _of_parts(node: Node) -> Any:
    """A scatter, whose updates are put or added: part by part."""
    x, places, updates = node.inputs
    parts = [make(node.op, (part(x), places, part(updates)), node.attrs) for part in (real, imag)]
    return complex_(*parts)


def _bilinear(node: Node) -> Any:
    def each(one: Callable[[Node], Any], other: Callable[[Node], Any]) -> Any:
        return make(node.op, (one(node.inputs[0]), other(node.inputs[1])), node.attrs)

    return complex_(each(real, real) - each(imag, imag), each(real, imag) + each(imag, real))


RULES: dict[str, Callable[[Node], Any]] = {
    "scatter_into": _of_parts, **dict.fromkeys(("conv", "conv_input", "conv_weight"), _bilinear)
}  # fmt: skip
