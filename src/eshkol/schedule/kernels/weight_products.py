"""Gradients towards weights of convolutions as array instructions, with kernels that add parts up.

Comes in: a `WHOLE_CONVOLUTION` (`whole_convolutions.py`) that gives a weight's gradient. Goes out: its kernels. The
first sums parts of the windows, so many that there is something to do for all processors, in float32; the second adds
them up, always in the same order, and puts the sums where they belong.
"""

from __future__ import annotations

from eshkol.atlas.builder import ProgramBuilder
from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.operands import BufferOffset
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.types import Type
from eshkol.graph.node import Node
from eshkol.ops import dtypes
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.block_factors import Correlation, at_most, digits
from eshkol.schedule.kernels.emit import Emitter
from eshkol.schedule.kernels.kernel import ONE_LANE, Kernel, shown
from eshkol.schedule.kernels.reads import Write
from eshkol.schedule.kernels.scalars import TYPES, Scalar

PARTS = "parts"  # memory of sums over parts of all windows
INPUTS = (("x0", 0), ("x1", 1))
MANY, LANES = 1 << 16, 256  # outs and channels, from which on a lane of a block has all their taps
SLAB, FEWEST = 64, 4  # terms of a slab; and slabs of a part, at least
# Rows and columns of a tile, and microseconds that a slab takes for each of its results; those to begin a tile and to
# store it; and those to add up one result of a part, all on an H200.
TILES = ((128, 256, 2.0e-5), (128, 128, 2.15e-5), (64, 256, 2.4e-5), (64, 128, 2.7e-5))
STORED, ADDED = 6.0e-5, 3.0e-6


def weight_gradient_kernels(
    node: Node, c: Correlation, channels: int, outs: int, target: MachineDescription
) -> tuple[Kernel, ...]:
    """The kernels of a gradient towards the weight, of copies with so many channels and outs last.

    In `c` what is a window here is a tap, and the other way round.
    """
    b, ty = ProgramBuilder(node.op.name), TYPES[node.dtype]
    names = PARTS, "x0", "x1"
    for name, kind in zip(names, (Type.F32, ty, ty), strict=True):
        b.buffer(name, kind)
    g, lead = c.form.geometry, 2 - len(c.space)  # axes that are not there
    (height, width), (kernel_h, kernel_w) = ((*[1] * lead, *extents) for extents in (c.space, c.windows))
    (top, left), (below, right) = ((*[0] * lead, *(max(0, n) for n in edge)) for edge in zip(*g.padding, strict=True))
    windows, taps, slabs = c.channels * c.taps, count(c.windows), -(-c.channels * c.taps // SLAB)
    each = SLAB * slabs_of_part(outs, taps * -(-channels // SLAB) * SLAB, slabs, target.processors)
    parts = -(-windows // each)
    b.channels_last_conv2d_grad_weight(
        ty, *map(BufferOffset, names), batch=c.channels, in_channels=channels, out_channels=outs, height=height,
        width=width, kernel_h=kernel_h, kernel_w=kernel_w, stride=(*[1] * lead, *g.dilation),
        padding=(top, left, below, right), dilation=(*[1] * lead, *g.stride), each=each,
    )  # fmt: skip
    return _summed_and_added(node, c, b, (parts, outs, taps, channels), target)


def point_gradient_kernels(node: Node, c: Correlation, target: MachineDescription) -> tuple[Kernel, ...]:
    """The kernels of a gradient towards the weight of a convolution of one tap whose windows are all places."""
    b, ty = ProgramBuilder(node.op.name), TYPES[node.dtype]
    for name, kind in ((PARTS, Type.F32), ("x1", ty), ("x0", ty)):
        b.buffer(name, kind)
    slabs = c.channels * -(-c.taps // SLAB)
    each = slabs_of_part(c.outs, c.examples, slabs, target.processors)
    b.summed_gemm(
        ty, *map(BufferOffset, (PARTS, "x1", "x0")), batch=c.channels, m=c.outs, n=c.examples, k=c.taps, depth=SLAB,
        each=each,
    )  # fmt: skip
    return _summed_and_added(node, c, b, (-(-slabs // each), c.outs, 1, c.examples), target)


def slabs_of_part(rows: int, columns: int, slabs: int, processors: int) -> int:
    """How many slabs each part has, so that all parts and their sum are estimated to take the least time."""

    def estimate(parts: int) -> float:
        adding = parts * rows * columns * ADDED
        return adding + min(
            -(-parts * -(-rows // high) * -(-columns // wide) // processors)
            * high * wide * (-(-slabs // parts) * cost + STORED)
            for high, wide, cost in TILES
        )  # fmt: skip

    return -(-slabs // min(range(1, max(1, min(processors, slabs // FEWEST)) + 1), key=estimate))


def _summed_and_added(
    node: Node, c: Correlation, b: ProgramBuilder, shape: tuple[int, int, int, int], target: MachineDescription
) -> tuple[Kernel, Kernel]:
    """The kernel of a program that sums parts, and the one that adds them up and puts the sums where they belong."""
    _, _, taps, channels = shape
    scratch = ((PARTS, dtypes.float32, count(shape)),)
    summing = Kernel(shown(b.build()), ONE_LANE, None, ("out",), INPUTS, (), scratch)
    if taps > 1 and c.outs * c.examples >= MANY:
        return summing, _turning(node, c, shape)
    lanes = c.outs * taps * c.examples
    e = Emitter((lanes,))
    read, write = Write(e, PARTS, (count(shape),), dtypes.float32), Write(e, "out", node.shape, node.dtype)
    out, tap, channel = digits(e, e.lane, (c.outs, taps, c.examples))
    total = _added(read, (out * taps + tap) * channels + channel, shape)
    write.store(out * c.step("result", 2) + channel * c.step("result", 0) + tap, e.convert(total, node.dtype))
    program = shown(e.finish(f"{node.op.name}_sums", (), [read, write], lanes))
    return summing, Kernel(program, LaunchConfig.linear(lanes, target.block), None, ("out",), (), (), scratch)


def _added(read: Write, at: Scalar, shape: tuple[int, int, int, int]) -> Scalar:
    """The sum of all parts at a place."""
    total = read.load(at)
    for part in range(1, shape[0]):
        total = total + read.load(at + part * count(shape[1:]))
    return total


def _turning(node: Node, c: Correlation, shape: tuple[int, int, int, int]) -> Kernel:
    """The kernel that adds up parts of many weights: lanes side by side read channels, and write taps, of which blocks
    have all of so many outs and channels as they have lanes."""
    _, _, taps, channels = shape
    pairs = c.outs * c.examples
    lanes = -(-pairs // LANES) * LANES
    e = Emitter((lanes,))
    read, write = Write(e, PARTS, (count(shape),), dtypes.float32), Write(e, "out", node.shape, node.dtype)
    memory, lane, block = e.shared(node.dtype, LANES * taps), e.lane % LANES, e.lane // LANES
    out, channel = digits(e, at_most(e, e.lane, pairs - 1), (c.outs, c.examples))
    for tap in range(taps):
        total = _added(read, (out * taps + tap) * channels + channel, shape)
        memory.store(lane * taps, e.convert(total, node.dtype), tap)
    e.barrier()
    for number in range(taps):
        within = lane + number * LANES
        flat = block * (LANES * taps) + within
        with e.only_if(e.compare("LT", flat, pairs * taps)):
            write.store(at_most(e, flat, pairs * taps - 1), memory.load(within))
    program = shown(e.finish(f"{node.op.name}_turned", (), [read, write], lanes))
    scratch = ((PARTS, dtypes.float32, count(shape)),)
    launch = LaunchConfig.linear(lanes, LANES, e.shared_memory)
    return Kernel(program, launch, None, ("out",), (), (), scratch)
