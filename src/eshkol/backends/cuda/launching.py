"""The record that a kernel reads: what a launch is, and what its program's parameters are.

Comes in: the layout of a program's record, a launch, scalars, sizes and addresses of buffers. Goes out: the record's
words, in which only addresses of buffers may be left to be filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.atlas.operands import Immediate
from eshkol.atlas.program import LaunchConfig
from eshkol.atlas.types import encode
from eshkol.backends.cuda.lane import SCALAR_BYTES
from eshkol.backends.cuda.warpgroups.maps import TensorMap
from eshkol.backends.lanes import layout as words
from eshkol.backends.lanes.layout import Layout
from eshkol.backends.lanes.ranges import SHARED_MEMORY
from eshkol.errors import BackendUnavailable
from eshkol.runtime.launches import MAP_WORDS, NativeMap

MAP_ALIGNMENT = 64  # bytes, to which kernels find tensor maps aligned


def with_maps(layout: Layout, count: int) -> tuple[int, int]:
    """The byte at which so many tensor maps begin, behind the words of a record, and the bytes of all of it."""
    start = -(-8 * layout.words // MAP_ALIGNMENT) * MAP_ALIGNMENT
    return start, start + count * 8 * MAP_WORDS


class LaunchRecord:
    """The words that a kernel is given (`lanes/layout.py`), with what is known of buffers and scalars."""

    def __init__(self, layout: Layout, launch: LaunchConfig, class_memory: int) -> None:
        self.layout = layout
        self.bytes = bytearray(8 * layout.words)
        self.words = memoryview(self.bytes).cast("Q")
        self.words[words.CLASS_MEMORY] = class_memory
        self.words[words.SHARED_BYTES] = launch.shared_memory
        for k, (blocks, lanes) in enumerate(zip(launch.grid, launch.block, strict=True)):
            self.words[words.GRID + k], self.words[words.BLOCK + k] = blocks, lanes
        self.sizes: dict[str, int] = {SHARED_MEMORY: launch.shared_memory}  # bytes of buffers, and of what blocks share
        self.scalars: dict[str, Any] = {}

    def scalar(self, name: str, value: Immediate) -> None:
        raw = encode(value.array(), value.ty).tobytes()
        if len(raw) > SCALAR_BYTES:
            raise BackendUnavailable(f"the cuda backend has no scalar parameters of type {value.ty}: '{name}'")
        place = 8 * self.layout.word(name)
        self.bytes[place : place + len(raw)] = raw
        self.scalars[name] = value.value

    def buffer(self, name: str, size: int, address: int = 0) -> int:
        """Note a buffer; the word that has its address."""
        place = self.layout.word(name)
        self.words[place], self.words[place + 1] = address, size
        self.sizes[name] = size
        return place

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
