"""Convolutions of 16-bit floats as array instructions: the rows that graphs have for them, and their kernels.

No user calls them: `rewrite/channels.py` makes them, for machines whose own code does such instructions as a whole
(`backends/cuda/warpgroups`). Most read copies with channels last; those of one tap whose windows are all places are
products of matrices, and read what they are given where it lies.

    forward, towards x    rows: outs        columns: examples, windows    terms: taps, channels
    towards the weight    rows: outs        columns: taps, channels       terms: examples, windows
"""

from __future__ import annotations

from typing import Any, NamedTuple

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.operands import BufferOffset
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.correlation import FORMS, Geometry, Towards, conv, conv_input, conv_weight
from eshkol.ops.row import HOST, Aval, HasAval, KernelOp, Op, Shape, row
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.block_factors import Correlation
from eshkol.schedule.kernels.channels_last import Last
from eshkol.schedule.kernels.kernel import ONE_LANE, Kernel, shown
from eshkol.schedule.kernels.matrix_operands import CHUNK
from eshkol.schedule.kernels.scalars import TYPES
from eshkol.schedule.kernels.weight_products import INPUTS, point_gradient_kernels, weight_gradient_kernels

PLANE, LARGEST_STEP, FARTHEST = 2, 8, 128  # axes, strides, paddings and reaches that the instructions have at most
OPS = {op.name: op for op in (conv, conv_input, conv_weight)}


class WholeConvolution(NamedTuple):
    """One of the three products of a convolution, of inputs of these shapes; and how they were copied, if they were."""

    name: str
    attrs: Any
    x: Shape
    weight: Shape
    copies: tuple[Last, Last] | None

    def result(self, dtype: dtypes.DType) -> Aval:
        infer = OPS[self.name].infer
        assert infer is not None
        found = infer(self.attrs, Aval(self.x, dtype), Aval(self.weight, dtype))
        assert isinstance(found, Aval)
        return found

    def correlation(self, dtype: dtypes.DType) -> Correlation:
        inputs = Aval(self.x, dtype), Aval(self.weight, dtype)
        form = FORMS[OPS[self.name]](self.attrs, *inputs)
        return Correlation(form, self.x, self.weight, self.result(dtype).shape)


def _infer(a: WholeConvolution, x: HasAval, weight: HasAval) -> Aval:
    return a.result(x.dtype)


def _reference(a: WholeConvolution, x: Any, weight: Any) -> Any:
    reference = OPS[a.name].reference
    assert reference is not None
    if a.copies is not None:
        x, weight = (last.back(v, s) for last, v, s in zip(a.copies, (x, weight), (a.x, a.weight), strict=True))
    return reference(a.attrs, x, weight)


WHOLE_CONVOLUTION: Op = row(KernelOp(
    name="whole_convolution", doc="One of the three products of a convolution, as one array instruction.",
    names=("x", "weight"), infer=_infer, reference=_reference, lower=HOST,
))  # fmt: skip


def is_whole(c: Correlation, target: MachineDescription) -> bool:
    """Whether the product is one array instruction, which has numbers for where windows lie."""
    assert target.matrices is not None
    g = c.form.geometry
    if not target.matrices.whole or c.batch != 1 or len(c.space) > PLANE or set(g.input_dilation) != {1}:
        return False
    steps, away, taps = (g.dilation, g.stride, c.windows) if c.deep else (g.stride, g.dilation, c.kernel)
    reaches = (n + d * (k - 1) for n, d, k in zip(steps, away, taps, strict=True))
    # Towards the weight there may be places behind the last window, but not enough for one more.
    least = [1 - step if c.deep else 0 for step in steps]
    edges = all(before >= 0 and after >= n for (before, after), n in zip(g.padding, least, strict=True))
    if not edges or max(*reaches, *(n + 1 for pair in g.padding for n in pair)) > FARTHEST or max(steps) > LARGEST_STEP:
        return False
    dense = c.outs * count(c.windows), count(c.windows)
    return c.deep or (c.step("result", 0), c.step("result", 2)) == dense


def is_spread(a: Any, c: Correlation, target: MachineDescription) -> bool:
    """Whether a gradient towards the input, of a cotangent that a stride spreads, is one array instruction."""
    assert target.matrices is not None
    if not isinstance(a, Towards) or not target.matrices.whole or c.batch != 1 or len(c.space) > PLANE:
        return False
    g = a.geometry
    near = all(0 <= n < FARTHEST for pair in g.padding for n in pair) and max(c.kernel) <= FARTHEST
    return near and {*g.dilation, *g.input_dilation} == {1} and 1 < max(g.stride) <= LARGEST_STEP


def is_point(c: Correlation) -> bool:
    """Whether there is one tap, and windows are all places, of which there are whole chunks, as of all channels."""
    taps, windows = (c.windows, c.kernel) if c.deep else (c.kernel, c.windows)
    channels = c.outs, c.examples if c.deep else c.channels
    lined_up = all(n % CHUNK == 0 for n in (count(windows), *channels))
    return count(taps) == 1 and tuple(windows) == tuple(c.space) and lined_up


def whole_convolution_kernels(node: Node, target: MachineDescription) -> tuple[Kernel, ...]:
    """The kernels of a node: one, or two towards a weight."""
    a: WholeConvolution = node.attrs
    c = a.correlation(node.dtype)
    if a.copies is None:
        return point_gradient_kernels(node, c, target) if c.deep else (_point_kernel(node, c),)
    channels, outs = (last.chunks * CHUNK for last in a.copies)
    if c.deep:
        return weight_gradient_kernels(node, c, channels, outs, target)
    if set(c.form.geometry.input_dilation) != {1}:
        return (_spread_kernel(node, c, channels),)
    return (_kernel(node, c, channels),)


def _spread_kernel(node: Node, c: Correlation, outs: int) -> Kernel:
    """The kernel of a gradient towards the input, of copies with so many outs last."""
    b, ty = ProgramBuilder(node.op.name), TYPES[node.dtype]
    for name in ("out", "x0", "x1"):
        b.buffer(name, ty)
    g: Geometry = node.attrs.attrs.geometry
    lead = PLANE - len(c.space)  # axes that are not there
    (height, width), (kernel_h, kernel_w) = ((*[1] * lead, *extents) for extents in (c.windows, c.kernel))
    (top, below), (left, right) = (*[(0, 0)] * lead, *g.padding)
    b.channels_last_conv2d_grad_input(
        ty, *map(BufferOffset, ("out", "x0", "x1")), batch=c.examples, in_channels=c.outs, out_channels=outs,
        height=height, width=width, kernel_h=kernel_h, kernel_w=kernel_w, stride=(*[1] * lead, *g.stride),
        padding=(top, left, below, right),
    )  # fmt: skip
    return Kernel(shown(b.build()), ONE_LANE, None, ("out",), INPUTS, ())


def _kernel(node: Node, c: Correlation, channels: int) -> Kernel:
    """The kernel of a convolution of copies with so many channels last, over one axis or two."""
    b, ty = ProgramBuilder(node.op.name), TYPES[node.dtype]
    for name in ("out", "x0", "x1"):
        b.buffer(name, ty)
    g, lead = c.form.geometry, PLANE - len(c.space)  # axes that are not there
    (height, width), (kernel_h, kernel_w) = ((*[1] * lead, *extents) for extents in (c.space, c.kernel))
    (top, below), (left, right) = (*[(0, 0)] * lead, *g.padding)
    b.channels_last_conv2d(
        ty, *map(BufferOffset, ("out", "x0", "x1")), batch=c.examples, in_channels=channels, out_channels=c.outs,
        height=height, width=width, kernel_h=kernel_h, kernel_w=kernel_w, stride=(*[1] * lead, *g.stride),
        padding=(top, left, below, right), dilation=(*[1] * lead, *g.dilation),
    )  # fmt: skip
    return Kernel(shown(b.build()), ONE_LANE, None, ("out",), INPUTS, ())


def _point_kernel(node: Node, c: Correlation) -> Kernel:
    """The kernel of a convolution of one tap whose windows are all places: of each example a product as it lies."""
    b, ty = ProgramBuilder(node.op.name), TYPES[node.dtype]
    for name in ("out", "x1", "x0"):
        b.buffer(name, ty)
    turned = c.step("weight", 1) == 1 and c.outs > 1  # outs, not channels, are neighbours
    b.batched_gemm(
        ty, *map(BufferOffset, ("out", "x1", "x0")), batch=c.examples, m=c.outs, n=count(c.windows), k=c.channels,
        transpose_a=turned, a_strides=(0, c.step("weight", 2 if turned else 1)),
    )  # fmt: skip
    return Kernel(shown(b.build()), ONE_LANE, None, ("out",), INPUTS, ())
