"""Convolutions with what follows them: per-channel sums, products and relu become part of the array instruction.

Comes in: nodes. A chain is a `conv`, the reshape that takes its groups away, then additions, subtractions,
multiplications and divisions by what has one number per channel (a bias, batch normalization by running statistics),
and maybe a relu; nothing else may use what lies between. Goes out: the same value from one `fused_convolution`, with
the chain's numbers folded into a scale and a bias per channel. Sums are then rounded once instead of at every step.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eshkol.graph.node import Current, Node, make
from eshkol.ops import TABLE
from eshkol.ops.correlation import conv, instruction_fits
from eshkol.ops.creation import full
from eshkol.ops.movement import ToShape, expand, reshape
from eshkol.ops.row import Op, Shape
from eshkol.schedule.kernels.fused_convolution import FUSED_CONVOLUTION, Following
from eshkol.schedule.rewrite.walk import in_order, visible, walked

_ADD, _SUB, _MUL, _DIV, _RELU, _NEG = (TABLE[name] for name in ("add", "sub", "mul", "div", "relu", "neg"))
_STEPS = (_ADD, _SUB, _MUL, _DIV)


@dataclass(frozen=True)
class Chain:
    """What is computed together: a convolution, the steps after it, first to last, and whether relu ends them."""

    end: Node
    conv: Node
    steps: tuple[tuple[Op, Node, bool], ...]  # (op, the number per channel, whether it is the left operand)
    relu: bool

    def built(self, new: Mapping[Node, Node]) -> Node:
        """The chain as one node, of inputs that are replaced where `new` says so."""
        previous, Current.site = Current.site, self.end.site
        try:
            x, weight = (new.get(v, v) for v in self.conv.inputs)
            scale, bias = self._folded(new, weight.shape[0] * weight.shape[1])
            extras = tuple(v for v in (scale, bias) if v is not None)
            attrs = Following(self.conv.attrs, scale is not None, bias is not None, self.relu)
            return make(reshape, (make(FUSED_CONVOLUTION, (x, weight, *extras), attrs),), ToShape(self.end.shape))
        finally:
            Current.site = previous

    def _folded(self, new: Mapping[Node, Node], channels: int) -> tuple[Node | None, Node | None]:
        """Scale and bias of all steps; None stands for 1 and for 0."""
        scale: Node | None = None
        bias: Node | None = None
        for op, given, left in self.steps:
            value = _per_channel(new.get(given, given), channels)
            if op in (_MUL, _DIV):
                one = full(value, value.shape, 1) if scale is None else scale
                scale = value if scale is None and op is _MUL else _made(op, one, value)
                bias = None if bias is None else _made(op, bias, value)
            elif op is _ADD:
                bias = value if bias is None else _made(_ADD, bias, value)
            elif not left:
                bias = _made(_NEG, value) if bias is None else _made(_SUB, bias, value)
            else:  # the number less the sum
                scale = full(value, value.shape, -1) if scale is None else _made(_NEG, scale)
                bias = value if bias is None else _made(_SUB, value, bias)
        return scale, bias


def _made(op: Op, *inputs: Node) -> Node:
    return make(op, inputs, None)


def _per_channel(x: Node, channels: int) -> Node:
    """A number, or one per channel among axes of extent 1, as a vector."""
    if x.size == 1:
        single = x if x.shape == () else make(reshape, (x,), ToShape(()))
        return make(expand, (single,), ToShape((channels,)))
    return x if x.shape == (channels,) else make(reshape, (x,), ToShape((channels,)))


def _is_per_channel(x: Node, shape: Shape, axis: int) -> bool:
    """Whether a node that broadcasts to a shape has at most one number per place of an axis."""
    extents = (1,) * (len(shape) - len(x.shape)) + x.shape
    return all(n == 1 or k == axis for k, n in enumerate(extents))


def chain_of(node: Node, users: Mapping[Node, int]) -> Chain | None:
    """The chain that ends with a node; `users` says how many inputs and results a node is."""
    relu, end = node.op is _RELU, node
    at = node.inputs[0] if relu else node
    steps: list[tuple[Op, Node, bool]] = []
    while at.op in _STEPS and at.data is None and (at is end or users.get(at, 0) == 1):
        onward = next((x for x in at.inputs if x.shape == at.shape and _goes_on(x, users)), None)
        if onward is None or at.inputs[0] is at.inputs[1]:
            return None
        left = at.inputs[1] is onward
        if left and at.op is _DIV:
            return None
        steps.append((at.op, at.inputs[0] if left else at.inputs[1], left))
        at = onward
    if not (at.op is reshape and at.data is None) or (at is not end and users.get(at, 0) != 1):
        return None
    found = at.inputs[0]
    if found.op is not conv or found.data is not None or users.get(found, 0) != 1 or not (relu or steps):
        return None
    x, weight = found.inputs
    count = len(found.attrs.stride)
    channels = (weight.shape[0] * weight.shape[1], *found.shape[3:])
    if at.shape[len(at.shape) - count - 1 :] != channels or not instruction_fits(found.attrs, x, weight):
        return None
    axis = len(at.shape) - count - 1
    if not all(_is_per_channel(given, at.shape, axis) for _, given, _ in steps):
        return None
    return Chain(end, found, tuple(reversed(steps)), relu)


def _goes_on(x: Node, users: Mapping[Node, int]) -> bool:
    """Whether a chain may come from an input: it ends in a convolution, and nothing else uses it."""
    while x.data is None and users.get(x, 0) == 1:
        if x.op is reshape:
            return x.inputs[0].op is conv
        if x.op not in _STEPS:
            return False
        x = next((y for y in x.inputs if y.shape == x.shape and y.op in (*_STEPS, reshape)), x.inputs[0])
    return False


def fold_convolutions(results: Sequence[Node]) -> list[Node]:
    """The results, with every chain of a convolution as one node."""
    order = in_order(results)
    if not any(node.op is conv for node in order):
        return list(results)
    users = Counter(x for node in order for x in visible(node))
    users.update(results)
    chains: dict[Node, Chain] = {}
    taken: set[Node] = set()
    for node in reversed(order):  # the last node of a chain is met first
        if node in taken or node.data is not None or not (node.op is _RELU or node.op in _STEPS):
            continue
        chain = chain_of(node, users)
        if chain is not None:
            chains[node] = chain
            at = node.inputs[0] if chain.relu else node
            for _, given, _ in reversed(chain.steps):
                taken.add(at)
                at = at.inputs[0] if at.inputs[1] is given else at.inputs[1]
    return walked(results, order, lambda node, new: chains[node].built(new) if node in chains else None)
