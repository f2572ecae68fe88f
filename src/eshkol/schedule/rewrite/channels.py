"""Convolutions of 16-bit floats for machines that do them as array instructions: of copies with channels last.

Comes in: nodes whose derivatives have been taken. Goes out: the same values. The copies are nodes: what the forward
convolution has copied the gradient towards its weight reads again, and both gradients read one copy of the cotangent.

A convolution of one tap sees, with a stride, some places alone: it is one without a stride of those. Towards the input
it then gives what they get, with zeros between; whoever adds it to something else need not write these.

One of images of few channels is one of a copy that has more (`kernels/patches.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.atlas.machines import MachineDescription
from eshkol.graph.node import Node, constant, make
from eshkol.ops.correlation import FORMS, Geometry, Towards, conv, conv_input, conv_weight
from eshkol.ops.movement import permute, reshape
from eshkol.ops.shapes import count
from eshkol.ops.slicing import pad_constant, slice_
from eshkol.schedule.kernels.block_factors import correlation
from eshkol.schedule.kernels.channels_last import CHANNELS_LAST, Last
from eshkol.schedule.kernels.matrix_operands import CHUNK
from eshkol.schedule.kernels.matrix_products import LEAST
from eshkol.schedule.kernels.matrix_windows import copies_of, multiplies_chunks
from eshkol.schedule.kernels.patches import PATCHES, Patches
from eshkol.schedule.kernels.scalars import TYPES
from eshkol.schedule.kernels.whole_convolutions import (
    PLANE,
    WHOLE_CONVOLUTION,
    WholeConvolution,
    is_point,
    is_spread,
    is_whole,
)
from eshkol.schedule.rewrite.walk import New, again, in_order, walked

SLAB = 64  # channels that an instruction multiplies at once


def channels_last(results: Sequence[Node], target: MachineDescription) -> list[Node]:
    """The results, of convolutions that a machine's array instructions do."""
    if target.matrices is None or not target.matrices.whole:
        return list(results)
    order = in_order(results)
    if not any(node.op in FORMS for node in order):
        return list(results)

    def instead(node: Node, new: New) -> Node | None:
        if node.op not in FORMS or node.data is not None:
            return None
        found = again(node, new)
        for way in (_without_stride, _of_patches, _whole):
            if (other := way(found, target)) is not None:
                return other
        return None

    return walked(results, order, instead)


def _whole(node: Node, target: MachineDescription) -> Node | None:
    """A convolution as an instruction, if it is one."""
    if not multiplies_chunks(node, target):
        return None
    c = correlation(node)
    spread = is_spread(node.attrs, c, target)
    if not spread and not is_whole(c, target):
        return None
    inputs = node.inputs
    shapes = inputs[0].shape, inputs[1].shape
    if is_point(c):
        return make(WHOLE_CONVOLUTION, inputs, WholeConvolution(node.op.name, node.attrs, *shapes, None))
    lasts = copies_of(c)
    if spread:
        lasts = lasts[0], lasts[1]._replace(around=False)  # the instruction has the kernel as the convolution does
    inputs = tuple(_copy(x, last) for x, last in zip(inputs, lasts, strict=True))
    return make(WHOLE_CONVOLUTION, inputs, WholeConvolution(node.op.name, node.attrs, *shapes, lasts))


def _copy(x: Node, last: Last) -> Node:
    """A copy, the same node for all who ask for it; none where that would be what it is made of."""
    there: Node = reshape(x, (last.outer, last.channels)) if last.is_there else make(CHANNELS_LAST, (x,), last)
    return there


def _without_stride(node: Node, target: MachineDescription) -> Node | None:
    """A convolution of one tap with a stride as one of the places that it sees, if that is an instruction."""
    a, kernel = node.attrs, node.shape[3:] if node.op is conv_weight else node.inputs[1].shape[3:]
    g: Geometry = a.geometry if isinstance(a, Towards) else a
    one = count(kernel) == 1 and {*g.input_dilation} == {1} and not any(n for pair in g.padding for n in pair)
    if not one or {*g.stride} == {1} or 0 in (*node.shape, *node.inputs[0].shape):
        return None
    plain = g._replace(stride=(1,) * len(g.stride))
    if node.op is conv_input:
        ct, weight = node.inputs
        inner = _whole(make(conv_input, (ct, weight), Towards(ct.shape[3:], plain)), target)
        if inner is None:
            return None
        between = [0, 0, 0, *(step - 1 for step in g.stride)]
        behind = [n - (have - 1) * step - 1 for n, have, step in zip(a.extents, ct.shape[3:], g.stride, strict=True)]
        filled: Node = pad_constant(inner, constant(0, node.dtype), [0] * len(between), [0, 0, 0, *behind], between)
        return filled
    x, other = node.inputs
    seen = slice_(x, [0] * x.ndim, list(x.shape), [1, 1, 1, *g.stride])
    return _whole(make(node.op, (seen, other), plain if node.op is conv else Towards(a.extents, plain)), target)


def _of_patches(node: Node, target: MachineDescription) -> Node | None:
    """A convolution of images with few channels, or its gradient towards the weight, of a copy of them."""
    assert target.matrices is not None
    x, other = node.inputs
    a, towards = node.attrs, node.op is conv_weight
    weight = node.shape if towards else other.shape
    g: Geometry = a.geometry if isinstance(a, Towards) else a
    if node.op is conv_input or len(g.stride) != PLANE or TYPES.get(node.dtype) not in target.matrices.types:
        return None
    outs, few, (high, wide) = weight[1], weight[2], weight[3:]
    plain = (
        x.shape[1] == 1 and {*g.dilation, *g.input_dilation} == {1} and all(n >= 0 for pair in g.padding for n in pair)
    )
    if not plain or few >= CHUNK or outs < LEAST or outs % CHUNK or 0 in (*x.shape, *node.shape):
        return None
    windows = other.shape[3:] if towards else node.shape[3:]
    p = Patches(x.shape, (high, wide), windows, g.stride, tuple(before for before, _ in g.padding))
    if high * wide == 1 or p.channels > SLAB:
        return None
    rows, line = p.high * g.stride[0], (g.stride[0], wide, few)
    geometry = Geometry((1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1))
    attrs = Towards((p.high, 1), geometry) if towards else geometry
    if towards:
        last = other
    else:
        zeros = [(0, 0, 0, n, 0) for n in (0, rows - high)]
        filled = pad_constant(other, constant(0, node.dtype), *zeros)
        turned = permute(reshape(filled, (outs, few, p.high, g.stride[0], wide)), (0, 3, 4, 1, 2))
        last = reshape(turned, (1, outs, p.channels, p.high, 1))
    whole = WholeConvolution(node.op.name, attrs, p.shape, last.shape, None)
    c = whole.correlation(node.dtype)
    if not is_whole(c, target) or c.deep != towards:
        return None
    lasts = copies_of(c)
    inputs = make(PATCHES, (x,), p), _copy(last, lasts[1])
    found = make(WHOLE_CONVOLUTION, inputs, whole._replace(copies=lasts))
    if not towards:
        return found
    turned = permute(reshape(found, (outs, *line, p.high)), (0, 3, 4, 1, 2))
    whole_rows = reshape(turned, (1, outs, few, rows, wide))
    cut: Node = slice_(whole_rows, [0] * 5, [1, outs, few, high, wide], [1] * 5)
    return cut
