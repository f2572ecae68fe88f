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
LINE_ELEMENTS = 64  # of 16 bits, of a row of 128 bytes in shared memory
KINDS = {Type.F16: 6, Type.F32: 7, Type.BF16: 9}  # the driver's numbers of types


class Axis(NamedTuple):
    """So many places, so many elements apart."""

    extent: int
    stride: int


@dataclass(frozen=True)
class TensorMap:
    """Boxes of a tensor: the innermost axis, whose elements are neighbours, first."""

    buffer: str
    offset: int  # bytes
    ty: Type
    axes: tuple[Axis, ...]
    box: tuple[int, ...]

    @property
    def suits(self) -> bool:
        """Whether the machine can copy such boxes."""
        size = self.ty.size_bytes
        return (
            self.offset % ALIGNMENT == 0 and 2 <= len(self.axes) <= MOST_AXES and self.axes[0].stride == 1
            and all(0 < axis.extent < LONGEST for axis in self.axes)
            and all(0 < axis.stride * size < FARTHEST and axis.stride * size % ALIGNMENT == 0 for axis in self.axes[1:])
        )  # fmt: skip


def fitting(all_of_them: Sequence[TensorMap]) -> tuple[TensorMap, ...] | None:
    """The maps, if the machine can copy the boxes of each."""
    return tuple(all_of_them) if all(one.suits for one in all_of_them) else None
