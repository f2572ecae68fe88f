"""Tensor maps: how the machine's own copies find boxes of a tensor in memory.

Comes in: how matrices lie in a buffer. Goes out: a `TensorMap`, from which native code has the driver make the 128
bytes that a kernel is given, as soon as the buffer's address is known (`runtime/native/launches.h`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from eshkol.atlas.types import Type

MAP_BYTES = 128
ALIGNMENT = 16  # bytes, to which a tensor begins, and multiples of which its strides are
MOST_AXES = 5
LONGEST = 1 << 32  # elements of an axis
FARTHEST = 1 << 40  # bytes of a stride
CORNER, LARGEST_STEP = 128, 8  # how far corners of windows lie from a tensor's, at most; and windows from each other
LINE_ELEMENTS = 64  # of 16 bits, of a row of 128 bytes in shared memory
KINDS = {Type.I8: 0, Type.U8: 0, Type.F16: 6, Type.F32: 7, Type.BF16: 9}  # the driver's numbers of types
TF32 = 11  # that of float32 which is rounded on the way to 11 bits and an exponent


class Axis(NamedTuple):
    """So many places, so many elements apart."""

    extent: int
    stride: int


class Windows(NamedTuple):
    """Where windows of two spatial axes begin, the inner one first: from a corner to a corner, in steps.

    The corners are those of the places at which windows begin, against the first and the last place of the tensor.
    """

    lower: tuple[int, int]
    upper: tuple[int, int]
    steps: tuple[int, int]
    reach: tuple[int, int]  # from where one begins to its last tap

    @staticmethod
    def of(
        space: Sequence[int], kernel: Sequence[int], windows: Sequence[int], stride: Sequence[int],
        dilation: Sequence[int], before: Sequence[int],
    ) -> Windows:  # fmt: skip
        """Those of a convolution, from its numbers for height and width."""
        across = range(1, -1, -1)
        lower = [-before[k] for k in across]
        last = [stride[k] * (windows[k] - 1) - before[k] for k in across]
        upper = [end - (space[k] - 1) for end, k in zip(last, across, strict=True)]
        steps, reach = [stride[k] for k in across], [dilation[k] * (kernel[k] - 1) for k in across]
        return Windows(*((x[0], x[1]) for x in (lower, upper, steps, reach)))

    @property
    def suits(self) -> bool:
        """Whether the machine has numbers for them."""
        return (
            all(-CORNER <= n < CORNER for n in (*self.lower, *self.upper))
            and max(self.steps) <= LARGEST_STEP
            and max(self.reach) < 2 * CORNER
        )


@dataclass(frozen=True)
class TensorMap:
    """Boxes of a tensor: the innermost axis, whose elements are neighbours, first.

    With windows, a box is so many elements of the innermost axis for so many windows, of all examples, an axis behind
    the spatial ones.
    """

    buffer: str
    offset: int  # bytes
    ty: Type
    axes: tuple[Axis, ...]
    box: tuple[int, ...]
    windows: Windows | None = None
    exchanged: bool = True  # whether chunks of 16 bytes of rows of 128 are exchanged in shared memory
    rounded: bool = False  # whether numbers of float32 are rounded to tf32

    @property
    def kind(self) -> int:
        """The driver's number of its type."""
        return TF32 if self.rounded else KINDS[self.ty]

    @property
    def suits(self) -> bool:
        """Whether the machine can copy such boxes."""
        size = self.ty.size_bytes
        return (
            self.offset % ALIGNMENT == 0 and 2 <= len(self.axes) <= MOST_AXES and self.axes[0].stride == 1
            and (self.windows is None or self.windows.suits)
            and all(0 < axis.extent < LONGEST for axis in self.axes)
            and all(0 < axis.stride * size < FARTHEST and axis.stride * size % ALIGNMENT == 0 for axis in self.axes[1:])
        )  # fmt: skip


def fitting(all_of_them: Sequence[TensorMap]) -> tuple[TensorMap, ...] | None:
    """The maps, if the machine can copy the boxes of each."""
    return tuple(all_of_them) if all(one.suits for one in all_of_them) else None
