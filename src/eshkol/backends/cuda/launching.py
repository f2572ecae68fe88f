"""The record that a kernel reads: what a launch is, and what its program's parameters are.

Comes in: the layout of a program's record, a launch, scalars, sizes and addresses of buffers. Goes out: the record's
words, in which only addresses of buffers may be left to be filled in.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.atlas.program import LaunchConfig
from eshkol.backends.cuda.warpgroups.maps import TensorMap
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.threads import Record
from eshkol.runtime.launches import MAP_WORDS, NativeMap

MAP_ALIGNMENT = 64  # bytes, to which kernels find tensor maps aligned


def with_maps(layout: Layout, count: int) -> tuple[int, int]:
    """The byte at which so many tensor maps begin, behind the words of a record, and the bytes of all of it."""
    start = -(-8 * layout.words // MAP_ALIGNMENT) * MAP_ALIGNMENT
    return start, start + count * 8 * MAP_WORDS


class LaunchRecord(Record):
    """The words that a kernel is given, and tensor maps behind them."""

    def __init__(self, layout: Layout, launch: LaunchConfig, class_memory: int) -> None:
        super().__init__(layout, launch, class_memory, "cuda")

    def maps(self, wanted: Sequence[TensorMap]) -> tuple[NativeMap, ...]:
        """Make room for tensor maps; what they are made of."""
        start, size = with_maps(self.layout, len(wanted))
        self.words.release()
        self.bytes.extend(bytes(size - len(self.bytes)))
        return tuple(
            NativeMap(
                start // 8 + k * MAP_WORDS, self.layout.word(one.buffer), one.offset, one.kind, one.exchanged,
                [axis.extent for axis in one.axes], [axis.stride * one.ty.size_bytes for axis in one.axes[1:]], one.box,
                None if one.windows is None else (one.windows.lower, one.windows.upper, one.windows.steps),
            )
            for k, one in enumerate(wanted)
        )  # fmt: skip
