"""What rules that simplify stand on: the table they are entered in, and how they look at nodes and build new ones.

A rule is a function of a node whose inputs are simple already; it gives a simpler node of the same value, shape and
dtype, or None. What a rule makes with `build` is simplified at once, so one walk over a graph, inputs first, is enough.
A node that has data is a leaf: `made` does not look beyond it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from eshkol.graph.node import Node, make
from eshkol.ops import TABLE
from eshkol.ops.dtypes import DType, Number
from eshkol.ops.elementwise import Cast, cast
from eshkol.ops.movement import ToShape, expand, reshape
from eshkol.ops.row import Op, Shape
from eshkol.ops.structural import CONST, Constant

Rule: TypeAlias = Callable[[Node], Node | None]
RULES: dict[Op, Rule] = {}  # one for each op that has any
KEPT = 4096  # numbers of constants that are remembered


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Enter a rule for ops of these names."""

    def entered(function: Rule) -> Rule:
        for name in names:
            assert TABLE[name] not in RULES, f"two rules for {name}"
            RULES[TABLE[name]] = function
        return function

    return entered


def build(op: Op, attrs: Any, *inputs: Node) -> Node:
    """The node of an op, or what is simpler; the inputs are simple."""
    return settled(make(op, inputs, attrs))


def settled(node: Node) -> Node:
    """What is simpler than a node whose inputs are simple; the node itself where nothing is."""
    if node.data is not None or not node.inputs:
        return node
    op = node.op
    if 0 in node.shape and not (op is expand and node.inputs[0].op is CONST):
        return filled(0, node)
    found = _thinner(node) if op.elementwise else None
    if found is None:
        function = RULES.get(op)
        if function is not None:
            found = function(node)
    return node if found is None else found


# --- elementwise nodes in general -----------------------------------------------------------------


def _thinner(node: Node) -> Node | None:
    """An elementwise node computed before its inputs are repeated, or once and for all."""
    op, inputs = node.op, node.inputs
    constants = 0
    for x in inputs:
        if x.op is CONST:
            constants += 1
        elif (x.op is expand or (x.op is reshape and x.shape[:1] == (1,))) and x.data is None:
            thin = _thin(node)
            if thin is not None:
                return fitted(build(op, node.attrs, *thin), node.shape)
    if constants == len(inputs) and (op.exact == "all" or (op.exact and not inputs[0].dtype.is_complex)):
        with np.errstate(all="ignore"):
            array = np.asarray(op.reference(node.attrs, *(x.attrs.array for x in inputs)))
        return make(CONST, (), Constant(array.astype(node.dtype.numpy).tobytes(), node.dtype))
    return None


def _thin(node: Node) -> list[Node] | None:
    """The inputs before they are repeated, since the op broadcasts by itself; None if they stay as they are.

    Axes of extent 1 that a reshape puts in front go too, where another input has as many axes as the result.
    """
    found = [x.inputs[0] if x.op is expand and x.data is None else x for x in node.inputs]
    full = sum(len(x.shape) == len(node.shape) for x in found)
    for k, x in enumerate(found):
        if x.op is reshape and x.shape[:1] == (1,) and x.data is None and full - (len(x.shape) == len(node.shape)):
            full -= len(x.shape) == len(node.shape)
            found[k] = without_leading(x)
    return None if all(new is old for new, old in zip(found, node.inputs, strict=True)) else found


def without_leading(x: Node) -> Node:
    """A reshaped node without the axes of extent 1 in front."""
    first = next((k for k, n in enumerate(x.shape) if n != 1), len(x.shape))
    return reshaped(x.inputs[0], x.shape[first:])


# --- looking at nodes -----------------------------------------------------------------------------


def made(x: Node, op: Op) -> bool:
    """Whether a node is still to be computed, by this op."""
    return x.op is op and x.data is None


@lru_cache(maxsize=KEPT)
def item(constant: Constant) -> Any:
    """The number of a constant."""
    return constant.array.item()


def number(x: Node) -> Any:
    """The number that stands everywhere in a node, if it is known; else None."""
    if x.op is expand and x.data is None:
        x = x.inputs[0]
    return item(x.attrs) if x.op is CONST else None


# --- building nodes -------------------------------------------------------------------------------


def held(value: Number, dtype: DType) -> Node:
    """A number as a node."""
    return make(CONST, (), Constant.of(value, dtype))


def filled(value: Number, like: Any) -> Node:
    """A number everywhere, in the shape and dtype of something."""
    return fitted(held(value, like.dtype), like.shape)


def fitted(x: Node, shape: Shape) -> Node:
    """x repeated to a shape; itself where it has it."""
    return x if x.shape == shape else build(expand, ToShape(shape), x)


def reshaped(x: Node, shape: Shape) -> Node:
    """x under a shape; itself where it has it."""
    return x if x.shape == shape else build(reshape, ToShape(shape), x)


def converted(x: Node, dtype: DType) -> Node:
    """x in a dtype; itself where it has it."""
    return x if x.dtype is dtype else build(cast, Cast(dtype), x)


def aligned(x: Node, ndim: int) -> Shape:
    """The extents of a node with ones in front, as broadcasting sees it."""
    return (1,) * (ndim - len(x.shape)) + x.shape
