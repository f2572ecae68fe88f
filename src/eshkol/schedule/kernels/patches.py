"""Copies of inputs with few channels, for convolutions as array instructions: what rows of windows see as channels.

Comes in: an image of, say, three colours, and a convolution's windows. Goes out: a copy in which the channels of a
place are all that one window sees in as many rows as windows lie apart, so that few zeros fill the slabs of channels
that such instructions multiply. Windows are then one wide, next to each other, and so many times less high.

    copy[n, y, x, (v, u, c)] = image[n, c, y·stride + v, x·stride + u]    v below the stride, u below the width
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.program import LaunchConfig
from eshkol.graph.node import Node
from eshkol.ops.row import HOST, Aval, KernelOp, Op, Shape, row
from eshkol.schedule.kernels.block_factors import at_least, at_most, digits
from eshkol.schedule.kernels.channels_last import Last
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import Kernel, shown
from eshkol.schedule.kernels.matrix_operands import CHUNK
from eshkol.schedule.kernels.reads import Read, Write
from eshkol.schedule.kernels.scalars import Scalar


class Patches(NamedTuple):
    """How windows lie in images of examples × 1 × channels × height × width."""

    image: Shape
    kernel: Shape
    windows: Shape
    stride: Shape
    before: Shape

    @property
    def high(self) -> int:
        """How high windows of the copy are."""
        return -(-self.kernel[0] // self.stride[0])

    @property
    def channels(self) -> int:
        return self.stride[0] * self.kernel[1] * self.image[2]

    @property
    def shape(self) -> Shape:
        """Of the copy, were its channels where an image has them."""
        return self.image[0], 1, self.channels, self.windows[0] + self.high - 1, self.windows[1]

    @property
    def last(self) -> Last:
        """How such a copy lies."""
        examples, _, channels, high, wide = self.shape
        return Last(1, examples, high * wide, channels, (0, channels * high * wide, high * wide), False)


def _patches(a: Patches, x: Any) -> Any:
    examples, _, _, high, wide = a.shape
    colours, height, width = a.image[2:]
    (down, across), (top, left) = a.stride, a.before
    room = np.zeros(
        (examples, colours, high * down + top + height, wide * across + left + width + a.kernel[1]), x.dtype
    )
    room[:, :, top : top + height, left : left + width] = x[:, 0]
    seen = [
        room[:, c, v : v + high * down : down, u : u + wide * across : across]
        for v in range(down) for u in range(a.kernel[1]) for c in range(colours)
    ]  # fmt: skip
    return a.last.copy(np.stack(seen, 1))


PATCHES: Op = row(KernelOp(
    name="patches", doc="A copy of images of few channels, with what rows of windows see as channels, last.",
    names=("x",), infer=lambda a, x: Aval((a.last.size // (a.last.chunks * CHUNK), a.last.chunks * CHUNK), x.dtype),
    reference=_patches, lower=HOST,
))  # fmt: skip


def patches_kernel(node: Node, target: MachineDescription) -> Kernel:
    """The kernel that copies: a lane for each chunk, those of one place side by side."""
    a: Patches = node.attrs
    examples, _, channels, high, wide = a.shape
    lanes = a.last.size // CHUNK
    e = Emitter((lanes,))
    (x,) = node.inputs
    read, write = Read(e, "x0", x.shape, x.dtype), Write(e, "out", (a.last.size,), x.dtype)
    example, y, across, chunk = digits(e, e.lane, (examples, high, wide, a.last.chunks))
    colours, height, width = a.image[2:]
    found = []
    for number in range(CHUNK):
        channel = chunk * CHUNK + number
        v, u, c = digits(e, at_most(e, channel, channels - 1), (a.stride[0], a.kernel[1], colours))
        row_, above = _place(e, y * a.stride[0] + v, a.before[0], height)
        column, beside = _place(e, across * a.stride[1] + u, a.before[1], width)
        inside = e.both(e.both(above, beside), e.compare("LT", channel, channels))
        value = read.load(((example * colours + c) * height + row_) * width + column)
        found.append(e.select(inside, value, 0))
    for number, value in enumerate(found):
        write.store(e.lane * CHUNK, value, number)
    program = shown(e.finish("patches", [read], [write], lanes))
    return Kernel(program, LaunchConfig.linear(lanes, target.block), None, ("out",), (("x0", 0),), ())


def _place(e: Emitter, seen: Scalar, before: int, extent: int) -> tuple[Scalar, Scalar]:
    """The place of an image that is seen, in its extent; and whether it is one."""
    inside = e.both(e.compare("GE", seen, before), e.compare("LT", seen, before + extent))
    return at_most(e, at_least(e, seen, before) - before, extent - 1), inside
