"""Sums over elements less their mean, which are zero: gradients of normalizations in two sums, on machines of blocks.

Comes in: nodes whose derivatives have been taken. Goes out: the same values, but for how sums are rounded. What a
normalization's derivative adds up, away = x - mean(x) and `scale` the same for all that is summed,

    sum(gradient · scale + other · away)  →  sum(gradient) · scale
    sum(gradient · scale · away)          →  sum(gradient · away) · scale

depends on one another as it stands: the first needs `other`, which the second gives, and each is a walk over all
elements. So both are sums of what is there at once, and those for scales and shifts are the same two. One walk finds
them.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, make
from eshkol.ops import TABLE, dtypes
from eshkol.ops.movement import reshape
from eshkol.ops.reductions import Along
from eshkol.ops.shapes import count
from eshkol.schedule.rewrite.patterns import is_number
from eshkol.schedule.rewrite.rules import made
from eshkol.schedule.rewrite.walk import New, in_order, walked

_ADD, _SUB, _MUL, _DIV, _SUM = (TABLE[name] for name in ("add", "sub", "mul", "div", "sum"))
Axes = tuple[int, ...]


def centred_sums(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, with sums as said."""
    order = in_order(results)
    sums = [node for node in order if target.blocks and _is_sum(node)]
    axes = {away: node.attrs.axes for node in sums if (away := _vanishing(node)) is not None}
    if not axes:
        return list(results)
    places = {node: n for n, node in enumerate(order)}

    def instead(node: Node, new: New) -> Node | None:
        if not _is_sum(node):
            return None
        (x,) = node.inputs
        if (away := _vanishing(node)) is not None:
            one, other = x.inputs
            return _without_scales(node, other if _is_multiple(one, away, node.attrs.axes) else one, new, places)
        if any(axes.get(factor) == node.attrs.axes for factor in _factors(x, x.shape)):
            return _without_scales(node, x, new, places)
        return None

    return walked(results, order, instead)


def _is_sum(node: Node) -> bool:
    return made(node, _SUM) and node.dtype in (dtypes.float32, dtypes.float64) and node.attrs.axes != ()


def _vanishing(node: Node) -> Node | None:
    """What is less its mean over the axes of a sum, where one of the two terms that are summed is a multiple of it."""
    (x,) = node.inputs
    if not made(x, _ADD):
        return None
    for term in x.inputs:
        if term.shape == x.shape:
            for factor in _factors(term, x.shape):
                if _is_away(factor, node.attrs.axes) and _is_multiple(term, factor, node.attrs.axes):
                    return factor
    return None


def _factors(x: Node, shape: tuple[int, ...]) -> list[Node]:
    """Of a product of a shape, its factors."""
    if not made(x, _MUL) or x.shape != shape:
        return [x]
    return [factor for one in x.inputs for factor in _factors(one, shape)]


def _is_multiple(term: Node, away: Node, axes: Axes) -> bool:
    """Whether a term is a multiple, the same for all that is summed."""
    rest = _factors(term, away.shape)
    return term.shape == away.shape and rest.count(away) == 1 and all(
        factor is away or _is_same(factor, away.shape, axes) for factor in rest
    )  # fmt: skip


def _is_same(factor: Node, shape: tuple[int, ...], axes: Axes) -> bool:
    """Whether a factor is the same for all that is summed."""
    full = (1,) * (len(shape) - len(factor.shape)) + factor.shape
    return all(full[axis] == 1 for axis in axes)


def _is_away(node: Node, axes: Axes) -> bool:
    """Whether a node is something less its mean over axes."""
    if not made(node, _SUB):
        return False
    x, mean = node.inputs
    while made(mean, reshape):
        (mean,) = mean.inputs
    if x.shape != node.shape or not made(mean, _DIV):
        return False
    total, number = mean.inputs
    summed = made(total, _SUM) and total.inputs[0] is x and total.attrs.axes == axes
    return summed and is_number(number, lambda n: n == count(tuple(x.shape[axis] for axis in axes)))


def _without_scales(node: Node, x: Node, new: New, places: dict[Node, int]) -> Node | None:
    """The sum of x over a node's axes, times those of its factors that are the same for all that is summed."""
    axes, shape = node.attrs.axes, node.inputs[0].shape
    if x.shape != shape:
        return None
    factors = sorted(_factors(x, shape), key=lambda factor: places[factor])
    scales = [factor for factor in factors if _is_same(factor, shape, axes)]
    others = [new[factor] for factor in factors if not _is_same(factor, shape, axes)]
    if not others or count(others[0].shape) != count(shape):
        return None
    product = others[0]
    for other in others[1:]:
        product = make(_MUL, (product, other), None)
    if product.shape != shape:
        return None
    found = make(_SUM, (product,), Along(axes, node.attrs.keepdims))
    for scale in scales:
        full = (1,) * (len(shape) - len(scale.shape)) + scale.shape
        kept = tuple(1 if axis in axes else n for axis, n in enumerate(full))
        if not node.attrs.keepdims:
            kept = tuple(n for axis, n in enumerate(kept) if axis not in axes)
        found = make(_MUL, (found, reshape(new[scale], kept)), None)
    return found if found.shape == node.shape else None
