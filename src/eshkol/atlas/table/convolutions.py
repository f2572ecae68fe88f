"""Extensions that convolve: two-dimensional cross-correlation, its two gradients, and what usually follows it.

Input is batch × in_channels × height × width, the kernel out_channels × in_channels/groups × kernel_h × kernel_w. All
rows share their counts: `stride`, `dilation` (of the kernel's taps) and `padding` are pairs, of height and width; four
numbers of padding are above, left, below, right. Padding is zeros that nothing is multiplied with. One row has input
and kernel with their channels last, as machines bring many of them at once; its output is as that of the others.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eshkol.atlas.isa import Arrays, CodeBuilder, Field, Group, Instruction, Kind
from eshkol.atlas.operands import Activation, Condition, Register
from eshkol.atlas.table import emit
from eshkol.atlas.table.fused import ACTIVATIONS
from eshkol.atlas.table.rows import ROWS, TY, choice, count, read, row, write
from eshkol.atlas.types import FLOATS, Array, Type
from eshkol.errors import IsaError

# --- sizes ----------------------------------------------------------------------------------------


def conv_edges(i: Instruction) -> tuple[int, int, int, int]:
    """Padding above, left, below and right."""
    top, left, *rest = i.padding
    below, right = rest or (top, left)
    return top, left, below, right


def conv_reach(i: Instruction) -> tuple[int, int]:
    """How many rows and columns a kernel reaches over."""
    return (i.kernel_h - 1) * i.dilation[0] + 1, (i.kernel_w - 1) * i.dilation[1] + 1


def conv_output(i: Instruction) -> tuple[int, int]:
    """Height and width of the output."""
    (top, left, below, right), (down, across) = conv_edges(i), conv_reach(i)
    return (
        (i.height + top + below - down) // i.stride[0] + 1,
        (i.width + left + right - across) // i.stride[1] + 1,
    )


def _check(i: Instruction) -> None:
    name = i.op.name
    if len(i.stride) != 2 or len(i.padding) not in (2, 4) or 0 in i.stride:
        raise IsaError(
            f"{name}: stride {i.stride} and padding {i.padding} must be pairs, stride at least 1", span=i.span,
            hint="padding may be four numbers too: above, left, below, right",
        )  # fmt: skip
    if len(i.dilation) != 2 or 0 in i.dilation:
        raise IsaError(f"{name}: dilation {i.dilation} must be a pair of at least 1", span=i.span)
    if i.in_channels % i.groups or i.out_channels % i.groups:
        raise IsaError(
            f"{name}: {i.in_channels} and {i.out_channels} channels do not divide into {i.groups} groups", span=i.span
        )
    (top, left, below, right), (down, across) = conv_edges(i), conv_reach(i)
    height, width = i.height + top + below, i.width + left + right
    if down > height or across > width:
        raise IsaError(
            f"{name}: a {i.kernel_h}×{i.kernel_w} kernel does not fit a padded input of {height}×{width}", span=i.span
        )


def _input(i: Instruction) -> tuple[int, ...]:
    return (i.batch, i.in_channels, i.height, i.width)


def _kernel(i: Instruction) -> tuple[int, ...]:
    return (i.out_channels, i.in_channels // i.groups, i.kernel_h, i.kernel_w)


def _output(i: Instruction) -> tuple[int, ...]:
    return (i.batch, i.out_channels, *conv_output(i))


def _channel(i: Instruction) -> tuple[int, ...]:
    return (i.out_channels,)


def _last(axes: tuple[Any, ...]) -> tuple[Any, ...]:
    """What belongs to axes, of which the second is that of channels, with that last."""
    return (axes[0], *axes[2:], axes[1])


def _outs_last(axes: tuple[Any, ...]) -> tuple[Any, ...]:
    """What belongs to axes of a kernel, of which the first is that of output channels, with that last."""
    return (*axes[1:], axes[0])


def _parts(i: Instruction) -> tuple[int, ...]:
    return (-(-i.batch * math.prod(conv_output(i)) // i.each), *_last(_kernel(i)))


# --- meanings: tap by tap, only where a tap meets the input ---------------------------------------


def _reached(tap: int, extent: int, padding: int, stride: int, outputs: int) -> tuple[slice, slice]:
    """The output places for which a kernel tap meets the input, and the input places it meets, along one axis."""
    first = max(0, -((tap - padding) // stride))
    found = max(0, min(outputs, (extent - 1 + padding - tap) // stride + 1) - first)
    begin = first * stride + tap - padding
    return slice(first, first + found), slice(begin, begin + found * stride, stride)


def _taps(i: Instruction) -> list[tuple[int, int, tuple[slice, slice], tuple[slice, slice]]]:
    """Every tap with the output places and the input places that meet."""
    (out_h, out_w), (top, left, _, _) = conv_output(i), conv_edges(i)
    found = []
    for v in range(i.kernel_h):
        rows, from_rows = _reached(v * i.dilation[0], i.height, top, i.stride[0], out_h)
        for u in range(i.kernel_w):
            cols, from_cols = _reached(u * i.dilation[1], i.width, left, i.stride[1], out_w)
            found.append((v, u, (rows, cols), (from_rows, from_cols)))
    return found


def _grouped(i: Instruction, array: Array, axis: int) -> Array:
    """The axis of channels as groups × channels."""
    shape = array.shape
    return array.reshape(*shape[:axis], i.groups, shape[axis] // i.groups, *shape[axis + 1 :])


def _conv(i: Instruction, x: Array, w: Array) -> tuple[Array]:
    result = np.zeros(_output(i))
    image, kernel, total = _grouped(i, x, 1), _grouped(i, w, 0), _grouped(i, result, 1)
    for v, u, (rows, cols), (from_rows, from_cols) in _taps(i):
        seen = image[..., from_rows, from_cols]
        total[..., rows, cols] += np.einsum("ngchw,goc->ngohw", seen, kernel[..., v, u], optimize=True)
    return (result,)


def _conv_last(i: Instruction, x: Array, w: Array) -> tuple[Array]:
    return _conv(i, np.moveaxis(x, -1, 1), np.moveaxis(w, -1, 1))


def _grad_input(i: Instruction, g: Array, w: Array) -> tuple[Array]:
    result = np.zeros(_input(i))
    gradient, kernel, total = _grouped(i, g, 1), _grouped(i, w, 0), _grouped(i, result, 1)
    for v, u, (rows, cols), (into_rows, into_cols) in _taps(i):
        seen = gradient[..., rows, cols]
        total[..., into_rows, into_cols] += np.einsum("ngohw,goc->ngchw", seen, kernel[..., v, u], optimize=True)
    return (result,)


def _grad_input_last(i: Instruction, g: Array, w: Array) -> tuple[Array]:
    return _grad_input(i, np.moveaxis(g, -1, 1), np.moveaxis(w, -1, 0))


def _grad_weight(i: Instruction, x: Array, g: Array) -> tuple[Array]:
    result = np.zeros(_kernel(i))
    image, gradient, total = _grouped(i, x, 1), _grouped(i, g, 1), _grouped(i, result, 0)
    for v, u, (rows, cols), (from_rows, from_cols) in _taps(i):
        seen = image[..., from_rows, from_cols]
        total[..., v, u] = np.einsum("ngchw,ngohw->goc", seen, gradient[..., rows, cols], optimize=True)
    return (result,)


def _grad_weight_last(i: Instruction, x: Array, g: Array) -> tuple[Array]:
    result, numbers = np.zeros(_parts(i)), np.arange(g[..., :1].size).reshape(*g.shape[:-1], 1) // i.each
    image = np.moveaxis(x, -1, 1)
    for part in range(len(result)):
        (found,) = _grad_weight(i, image, np.moveaxis(np.where(numbers == part, g, 0), -1, 1))
        result[part] = np.moveaxis(found, 1, -1)
    return (result,)


def _fused(i: Instruction, x: Array, w: Array, *others: Array) -> tuple[Array]:
    remaining = list(others)
    (total,) = _conv(i, x, w)
    if i.scale is not None:
        total = total * remaining.pop(0)[:, None, None]
    if i.bias is not None:
        total = total + remaining.pop(0)[:, None, None]
    return (ACTIVATIONS[i.activation](total),)


# --- expansions -----------------------------------------------------------------------------------


class _Axes:
    """Coordinates along height and width as U32; a stride or dilation that is never used is not, as it may be huge."""

    def __init__(self, b: CodeBuilder, i: Instruction) -> None:
        self.b, self.i = b, i
        (top, left, below, right), reach = conv_edges(i), conv_reach(i)
        self.before, self.extents, self.outputs = (top, left), (i.height, i.width), conv_output(i)
        self.taps, self.inside = (i.kernel_h, i.kernel_w), (b.pred(), b.pred())
        padded = (i.height + top + below, i.width + left + right)
        if max(p + r for p, r in zip(padded, reach, strict=True)) >= emit.COUNTABLE:
            raise IsaError(f"{i.op.name}: a padding of {i.padding} is too large for an expansion", span=i.span)

    def source(self, axis: int, place: Register, tap: Register) -> Register:
        """The input coordinate of an output place and a tap, and whether it lies inside: below 0 it wraps beyond."""
        b, i = self.b, self.i
        stride = i.stride[axis] if self.outputs[axis] > 1 else 0
        dilation = i.dilation[axis] if self.taps[axis] > 1 else 0
        at = emit.offset(b, [(place, stride), (tap, dilation)])
        b.sub(at, at, b.constant(Type.U32, self.before[axis]))
        b.setcc(Condition.LT, self.inside[axis], at, b.constant(Type.U32, self.extents[axis]))
        return at

    def window(self, axis: int, place: Register, tap: Register) -> Register:
        """The output place whose tap meets an input coordinate, and whether there is one."""
        b, i, before = self.b, self.i, self.before[axis]
        dilation = i.dilation[axis] if self.taps[axis] > 1 else 0
        at, back, rest, found = (b.reg(Type.U32) for _ in range(4))
        b.add(at, place, b.constant(Type.U32, before))
        b.mul(back, tap, b.constant(Type.U32, dilation))
        b.sub(at, at, back)
        step = b.constant(Type.U32, min(i.stride[axis], emit.COUNTABLE - 1))
        limit, holds = b.constant(Type.U32, self.outputs[axis]), self.inside[axis]
        b.rem(rest, at, step)
        b.div(found, at, step)
        b.setcc(Condition.EQ, holds, rest, b.constant(Type.U32, 0))
        b.sel(found, holds, found, limit)
        # What lies before the first window has wrapped around: no coordinate is as large.
        b.setcc(Condition.LT, holds, at, b.constant(Type.U32, self.extents[axis] + before))
        b.sel(found, holds, found, limit)
        b.setcc(Condition.LT, holds, found, limit)
        return found


def _channel_of(b: CodeBuilder, group: Register, size: int, inner: Register) -> Register:
    return emit.offset(b, [(group, size), (inner, 1)])


def _expand(b: CodeBuilder, i: Instruction) -> None:
    order = _last if i.op.name == "ChannelsLastConv2D" else tuple[Any, ...]
    ty, axes, (out_h, out_w) = i.ty, _Axes(b, i), conv_output(i)
    ins, outs = i.in_channels // i.groups, i.out_channels // i.groups
    emit.touch_ends(b, i)
    with b.loop(i.batch) as s, b.loop(i.groups) as g, b.loop(outs) as k, b.loop(out_h) as y, b.loop(out_w) as x:
        total, o = emit.scalar(b, ty, 0), _channel_of(b, g, outs, k)
        with b.loop(ins) as c, b.loop(i.kernel_h) as v, b.loop(i.kernel_w) as u:
            h, w = axes.source(0, y, v), axes.source(1, x, u)
            with b.when(axes.inside[0]), b.when(axes.inside[1]):
                left = (i.input, emit.flat(b, order(_input(i)), order((s, _channel_of(b, g, ins, c), h, w))), ty)
                right = (i.kernel, emit.flat(b, order(_kernel(i)), order((o, c, v, u))), ty)
                emit.accumulate_product(b, total, left, right, emit.compute_type(ty))
        if i.op.name == "FusedConv2D":
            if i.scale is not None:
                b.mul(total, total, emit.fetch(b, i.scale, o, ty))
            if i.bias is not None:
                b.add(total, total, emit.fetch(b, i.bias, o, ty))
            if i.activation.value:
                b.emit(ROWS[i.activation.value](total, total))
        emit.put(b, i.output, emit.flat(b, _output(i), (s, o, y, x)), ty, total)


def _expand_input(b: CodeBuilder, i: Instruction) -> None:
    last = i.op.name == "ChannelsLastConv2DGradInput"
    order, turned = (_last, _outs_last) if last else (tuple[Any, ...], tuple[Any, ...])
    ty, axes = i.ty, _Axes(b, i)
    ins, outs = i.in_channels // i.groups, i.out_channels // i.groups
    emit.touch_ends(b, i)
    with b.loop(i.batch) as s, b.loop(i.groups) as g, b.loop(ins) as c, b.loop(i.height) as h, b.loop(i.width) as w:
        total = emit.scalar(b, ty, 0)
        with b.loop(outs) as k, b.loop(i.kernel_h) as v, b.loop(i.kernel_w) as u:
            y, x, o = axes.window(0, h, v), axes.window(1, w, u), _channel_of(b, g, outs, k)
            with b.when(axes.inside[0]), b.when(axes.inside[1]):
                left = (i.gradient, emit.flat(b, order(_output(i)), order((s, o, y, x))), ty)
                right = (i.kernel, emit.flat(b, turned(_kernel(i)), turned((o, c, v, u))), ty)
                emit.accumulate_product(b, total, left, right, emit.compute_type(ty))
        place = emit.flat(b, _input(i), (s, _channel_of(b, g, ins, c), h, w))
        emit.put(b, i.output, place, ty, total)


def _expand_weight(b: CodeBuilder, i: Instruction) -> None:
    ty, axes, (out_h, out_w) = i.ty, _Axes(b, i), conv_output(i)
    ins, outs = i.in_channels // i.groups, i.out_channels // i.groups
    emit.touch_ends(b, i)
    with (
        b.loop(i.groups) as g, b.loop(outs) as k, b.loop(ins) as c, b.loop(i.kernel_h) as v, b.loop(i.kernel_w) as u
    ):  # fmt: skip
        total, o = emit.scalar(b, ty, 0), _channel_of(b, g, outs, k)
        with b.loop(i.batch) as s, b.loop(out_h) as y, b.loop(out_w) as x:
            h, w = axes.source(0, y, v), axes.source(1, x, u)
            with b.when(axes.inside[0]), b.when(axes.inside[1]):
                left = (i.input, emit.flat(b, _input(i), (s, _channel_of(b, g, ins, c), h, w)), ty)
                right = (i.gradient, emit.flat(b, _output(i), (s, o, y, x)), ty)
                emit.accumulate_product(b, total, left, right, emit.compute_type(ty))
        emit.put(b, i.output, emit.flat(b, _kernel(i), (o, c, v, u)), ty, total)


def _expand_parts(b: CodeBuilder, i: Instruction) -> None:
    ty, axes, (out_h, out_w) = i.ty, _Axes(b, i), conv_output(i)
    ins, outs, windows = i.in_channels // i.groups, i.out_channels // i.groups, i.batch * out_h * out_w
    emit.touch_ends(b, i)
    with (
        b.loop(_parts(i)[0]) as p, b.loop(i.groups) as g, b.loop(outs) as k, b.loop(i.kernel_h) as v,
        b.loop(i.kernel_w) as u, b.loop(ins) as c,
    ):  # fmt: skip
        total, o = b.constant(emit.compute_type(ty), 0), _channel_of(b, g, outs, k)
        with b.loop(i.each) as n:
            window, there = emit.offset(b, [(p, i.each), (n, 1)]), b.pred()
            b.setcc(Condition.LT, there, window, b.constant(Type.U32, windows))
            with b.when(there):
                s, y, x = (b.reg(Type.U32) for _ in range(3))
                width, height = (b.constant(Type.U32, extent) for extent in (out_w, out_h))
                b.rem(x, window, width)
                b.div(s, window, width)
                b.rem(y, s, height)
                b.div(s, s, height)
                h, w = axes.source(0, y, v), axes.source(1, x, u)
                with b.when(axes.inside[0]), b.when(axes.inside[1]):
                    seen = emit.flat(b, _last(_input(i)), (s, h, w, _channel_of(b, g, ins, c)))
                    right = (i.gradient, emit.flat(b, _last(_output(i)), (s, y, x, o)), ty)
                    emit.accumulate_product(b, total, (i.input, seen, ty), right, emit.compute_type(ty))
        emit.put(b, i.output, emit.flat(b, _parts(i), (p, o, v, u, c)), Type.F32, total, emit.compute_type(ty))


# --- rows -----------------------------------------------------------------------------------------

_COUNTS = (
    count("batch"), count("in_channels", 1), count("out_channels", 1), count("height", 1), count("width", 1),
    count("kernel_h", 1), count("kernel_w", 1),
    Field("stride", Kind.COUNTS, default=(1, 1)), Field("padding", Kind.COUNTS, default=(0, 0)),
    Field("dilation", Kind.COUNTS, default=(1, 1)), count("groups", 1, default=1),
)  # fmt: skip

row("Conv2D", Group.COMPLEX, "cross-correlation, NCHW input and OIHW kernel, zero padding",
    (TY, write("output", _output), read("input", _input), read("kernel", _kernel), *_COUNTS),
    Arrays(_conv), FLOATS, expand=_expand, check=_check, traps=True)  # fmt: skip
row("ChannelsLastConv2D", Group.ADVANCED, "Conv2D of an NHWC input and an OHWI kernel; the output is NCHW",
    (TY, write("output", _output), read("input", lambda i: _last(_input(i))),
     read("kernel", lambda i: _last(_kernel(i))), *_COUNTS),
    Arrays(_conv_last), FLOATS, expand=_expand, check=_check, traps=True, method="channels_last_conv2d")  # fmt: skip
row("Conv2DGradInput", Group.ADVANCED, "the transpose of Conv2D in its input: each gradient times the kernel, added up",
    (TY, write("output", _input), read("gradient", _output), read("kernel", _kernel), *_COUNTS),
    Arrays(_grad_input), FLOATS, expand=_expand_input, check=_check, traps=True,
    method="conv2d_grad_input")  # fmt: skip
row("ChannelsLastConv2DGradInput", Group.ADVANCED,
    "Conv2DGradInput of an NHWC gradient and an IHWO kernel; the output is NCHW",
    (TY, write("output", _input), read("gradient", lambda i: _last(_output(i))),
     read("kernel", lambda i: _outs_last(_kernel(i))), *_COUNTS),
    Arrays(_grad_input_last), FLOATS, expand=_expand_input, check=_check, traps=True,
    method="channels_last_conv2d_grad_input")  # fmt: skip
row("Conv2DGradWeight", Group.ADVANCED, "the transpose of Conv2D in its kernel: sums of input times gradient",
    (TY, write("output", _kernel), read("input", _input), read("gradient", _output), *_COUNTS),
    Arrays(_grad_weight), FLOATS, expand=_expand_weight, check=_check, traps=True,
    method="conv2d_grad_weight")  # fmt: skip
row("ChannelsLastConv2DGradWeight", Group.ADVANCED,
    "Conv2DGradWeight of an NHWC input and gradient, the output OHWI in F32, for each part of so many windows of all "
    "examples",
    (TY, write("output", _parts, Type.F32), read("input", lambda i: _last(_input(i))),
     read("gradient", lambda i: _last(_output(i))), *_COUNTS, count("each", 1)),
    Arrays(_grad_weight_last), FLOATS, expand=_expand_parts, check=_check, traps=True,
    method="channels_last_conv2d_grad_weight")  # fmt: skip
row("FusedConv2D", Group.ADVANCED,
    "activation(Conv2D · scale + bias) with a scale and a bias per output channel, both of which may be left out",
    (TY, choice("activation", Activation), write("output", _output), read("input", _input), read("kernel", _kernel),
     Field("scale", Kind.READ, "ty", None, shape=_channel), Field("bias", Kind.READ, "ty", None, shape=_channel),
     *_COUNTS),
    Arrays(_fused), FLOATS, expand=_expand, check=_check, traps=True, method="fused_conv2d")  # fmt: skip
