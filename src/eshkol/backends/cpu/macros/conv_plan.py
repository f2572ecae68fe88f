"""What the kernels of convolutions share: how places meet, what becomes of sums, how a kernel is packed.

A place m of the result meets, by its tap j, place `m · step + first + j · gap` of the source. Forward, that is all. Of
the gradient in the input, the result is the input and the source the gradient: a stride s then parts the input's places
into s classes by their remainder, of which each meets taps of its own, and each class is a convolution without stride
whose places lie `spread` = s apart. A `Part` is such a class along one axis; going forward there is one.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass

from eshkol.atlas.isa import Instruction
from eshkol.atlas.operands import Activation
from eshkol.atlas.table.convolutions import conv_edges, conv_output
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import FIRST_OPERAND
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value

# --- places ---------------------------------------------------------------------------------------

MOST_PARTS = 1024  # of both axes together; beyond, a stride is left to the expansion


@dataclass(frozen=True)
class Part:
    """A class of places of the result along one axis."""

    count: int  # places
    start: int  # the first one, in the result
    first: int  # the place of the source that it meets by its first tap; may lie outside
    taps: int
    first_tap: int  # in the kernel
    before: int  # taps of the parts before


FIELDS = len(Part.__dataclass_fields__)


@dataclass(frozen=True)
class Axis:
    """One axis of a convolution."""

    source: int  # extents
    result: int
    kernel: int
    step: int
    gap: int
    tap_step: int  # between the taps of a part, in the kernel
    spread: int
    parts: tuple[Part, ...]

    @staticmethod
    def forward(extent: int, outputs: int, kernel: int, stride: int, before: int, dilation: int) -> Axis:
        part = Part(outputs, 0, -before, kernel, 0, 0)
        return Axis(extent, outputs, kernel, stride, dilation, 1, 1, (part,))

    @staticmethod
    def backward(extent: int, outputs: int, kernel: int, stride: int, before: int, dilation: int) -> Axis:
        common = math.gcd(stride, dilation)
        tap_step, parts, earlier = stride // common, [], 0
        for start in range(min(stride, extent)):
            rest = (start + before) % stride
            tap = next((t for t in range(min(kernel, tap_step)) if t * dilation % stride == rest), None)
            taps = 0 if tap is None else -(-(kernel - tap) // tap_step)
            first = 0 if tap is None else (start + before - tap * dilation) // stride
            parts.append(Part(-(-(extent - start) // stride), start, first, taps, tap or 0, earlier))
            earlier += taps
        spread = stride if len(parts) > 1 else 1  # of a single place, which lies apart from nothing
        return Axis(outputs, extent, kernel, 1, -(dilation // common), tap_step, spread, tuple(parts))

    @property
    def taps(self) -> int:
        """Of all parts together."""
        return sum(p.taps for p in self.parts)

    @property
    def reach(self) -> int:
        """How far beyond its first place of the source a place reaches, at most."""
        return max((p.taps - 1) * abs(self.gap) for p in self.parts if p.taps) if self.taps else 0


@dataclass(frozen=True)
class Sweep:
    """A convolution as the kernels do it: channels of the source into channels of the result, group by group."""

    ty: Type
    batch: int
    groups: int
    channels: int  # of the source, in a group
    rows: int  # channels of the result, in a group
    down: Axis
    across: Axis
    backward: bool

    @staticmethod
    def of(i: Instruction, backward: bool) -> Sweep | None:
        """The sweep of an instruction; None where a stride makes too many parts."""
        (top, left, _, _), (out_h, out_w), (height, width) = conv_edges(i), conv_output(i), (i.height, i.width)
        plain = (i.kernel_h, i.kernel_w, *i.stride, *conv_edges(i)) == (1, 1, 1, 1, 0, 0, 0, 0)
        if plain:  # a matrix product: one long row
            height, width, out_h, out_w = 1, height * width, 1, out_h * out_w
        if backward and min(i.stride[0], height) + min(i.stride[1], width) > MOST_PARTS:
            return None
        along = Axis.backward if backward else Axis.forward
        axes = (
            along(height, out_h, i.kernel_h, i.stride[0], top, i.dilation[0]),
            along(width, out_w, i.kernel_w, i.stride[1], left, i.dilation[1]),
        )
        ins, outs = i.in_channels // i.groups, i.out_channels // i.groups
        channels, rows = (outs, ins) if backward else (ins, outs)
        return Sweep(i.ty, i.batch, i.groups, channels, rows, *axes, backward)

    @property
    def classes(self) -> int:
        return len(self.down.parts) * len(self.across.parts)

    @property
    def scattered(self) -> bool:
        """Whether a class's places do not fill the result."""
        return self.classes > 1

    @property
    def taps(self) -> int:
        return self.down.taps * self.across.taps

    def words(self) -> dict[str, int]:
        """What kernels know of it, but for the parts."""
        taps = self.down.kernel * self.across.kernel
        found = {"groups": self.groups, "channels": self.channels, "rows": self.rows}
        found |= {"row_step": taps if self.backward else taps * self.channels}  # of the kernel in memory
        found |= {"channel_step": taps * self.rows if self.backward else taps}
        for letter, axis in (("h", self.down), ("w", self.across)):
            found |= {f"source_{letter}": axis.source, f"result_{letter}": axis.result, f"step_{letter}": axis.step}
            found |= {f"gap_{letter}": axis.gap, f"spread_{letter}": axis.spread, f"taps_{letter}": axis.taps}
            found |= {f"kernel_{letter}": axis.kernel, f"tap_step_{letter}": axis.tap_step}
            found |= {f"parts_{letter}": len(axis.parts)}
        return found

    def parts(self) -> tuple[int, ...]:
        """The parts of both axes, as words after all others."""
        return tuple(n for axis in (self.down, self.across) for part in axis.parts for n in astuple(part))


class Words:
    """The words of a call by name, each loaded once, and the parts after them."""

    def __init__(self, k: Kernel, names: list[str]) -> None:
        self.k, self.count = k, len(names)
        self.loaded = {name: k.word(number) for number, name in enumerate(names)}

    def __getattr__(self, name: str) -> Value:
        return self.loaded[name]

    def parts_of(self, number: Value) -> tuple[PartValues, PartValues]:
        """The parts that a class consists of."""
        table = Array(self.k, "%record", Type.I64).at(FIRST_OPERAND + self.k.operands + self.count)
        down, across = number // self.parts_w, number % self.parts_w
        return PartValues(table.at(down * FIELDS)), PartValues(table.at((self.parts_h + across) * FIELDS))


class PartValues:
    """A part at run time."""

    def __init__(self, at: Array) -> None:
        self.count, self.start, self.first, self.taps, self.first_tap, self.before = (at[n] for n in range(FIELDS))


# --- what becomes of sums -------------------------------------------------------------------------


@dataclass(frozen=True)
class Finish:
    """What becomes of sums: a scale and a bias per channel, which are operands 3 and on, and an activation."""

    activation: Activation = Activation.Identity
    scale: bool = False
    bias: bool = False

    @staticmethod
    def of(i: Instruction) -> Finish:
        return Finish(i.activation, i.scale is not None, i.bias is not None)

    @property
    def operands(self) -> int:
        return 3 + self.scale + self.bias

    @property
    def name(self) -> str:
        extras = [n for n, there in (("scale", self.scale), ("bias", self.bias)) if there]
        return "_".join(["", str(self.activation), *extras]).lower() if self != Finish() else ""

    def scaled(self, k: Kernel, ty: Type, channel: Value, value: Value) -> Value:
        """Values of a channel, scaled and shifted, and cut at 0 where that is the activation."""
        if self.scale:
            value = value * k.splat(k.operand(3, ty)[channel], value.lanes)
        if self.bias:
            value = value + k.splat(k.operand(3 + self.scale, ty)[channel], value.lanes)
        if self.activation is Activation.Relu:  # NaN stays NaN
            value = k.where(value < 0, k.const(value.ty, 0, value.lanes), value)
        return value

    @property
    def function(self) -> str:
        """The row of an activation that is computed on single values; none where `scaled` does it."""
        return "" if self.activation is Activation.Relu else str(self.activation.value)


# --- the kernel, packed ---------------------------------------------------------------------------


def packed_at(w: Words, down: PartValues, across: PartValues, panels: Value | int) -> Value:
    """Where the packed kernel of a class begins, in steps of a panel; what comes before are whole classes."""
    taps = down.before * w.taps_w + down.taps * across.before
    return taps * w.channels * w.groups * panels


def pack_panel(k: Kernel, w: Words, ty: Type, packed: Array, task: Value, panels: Value, rows: int) -> None:
    """One panel of a class and group of the kernel, [step][rows]; tasks count panels, then groups, then classes."""
    panel, rest = task % panels, task // panels
    group, (down, across) = rest % w.groups, w.parts_of(rest // w.groups)
    steps = down.taps * across.taps * w.channels
    target = packed.at((packed_at(w, down, across, panels) + (group * panels + panel) * steps) * rows)
    source = k.operand(2, ty).at(group * w.rows * w.channels * w.kernel_h * w.kernel_w)
    with (
        k.loop(0, w.channels, plain=True) as c,
        k.loop(0, down.taps, plain=True) as v,
        k.loop(0, across.taps, plain=True) as u,
    ):
        tap = (down.first_tap + v * w.tap_step_h) * w.kernel_w + across.first_tap + u * w.tap_step_w
        into = ((v * across.taps + u) * w.channels + c) * rows
        for r in range(rows):
            row = k.minimum(panel * rows + r, w.rows - 1)
            target[into + r] = source[row * w.row_step + c * w.channel_step + tap]
