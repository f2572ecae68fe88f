"""`XlaBackend`: a device of PJRT that is given whole graphs, and values that stay in its memory.

Comes in: arrays of the host, programs of StableHLO. Goes out: what `schedule/run/whole.py` asks for: memory, and
programs compiled and run. It runs no programs of Atlas, and says so. Arrays of PJRT never change: to copy into a buffer
makes another array, and what is donated to a program is gone when it has run.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from eshkol.atlas.machines import BLOCKS, MachineDescription
from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.types import Array, Type
from eshkol.backends.base import Backend, BufferHandle, HandleTable, HostPoolBackend, TypedBuffer, as_bytes, check_size
from eshkol.backends.xla import client
from eshkol.errors import BackendUnavailable, InvalidBuffer
from eshkol.support import flags

DESCRIPTION = replace(BLOCKS, name="xla", arrays=False, host_helps=False)
ELEMENTS = {Type.BF16: np.dtype(ml_dtypes.bfloat16)}  # where PJRT's dtype is not that of the type's arrays


class Memory:
    """A flat array of PJRT's, of elements of a type."""

    __slots__ = ("_client", "array", "count", "ty")

    def __init__(self, on: client.Client, array: Any, ty: Type, count: int) -> None:
        self._client, self.array, self.ty, self.count = on, array, ty, count

    @property
    def handle(self) -> Memory:
        return self

    @property
    def gone(self) -> bool:
        """Whether a program has taken it."""
        return bool(self.array.is_deleted())

    def read(self) -> Array:
        if self.gone:
            raise InvalidBuffer("the memory was given to a program, which has used it for something else")
        return self._client.read(self.array).view(self.ty.dtype)

    def wait(self) -> None:
        """Wait until it is computed."""
        self._client.wait([self.array])

    def free(self) -> None:
        """It goes with the last that refers to it."""


class Compiled:
    """A program that is ready to be run."""

    def __init__(self, on: client.Client, text: str, outs: Sequence[tuple[Type, int]]) -> None:
        self._client, self._outs = on, outs
        if flags.dumps("kernel"):
            print(text, file=sys.stderr)
        self._executable = on.compile(text)

    def run(self, memory: Sequence[Memory]) -> list[Memory]:
        for one in memory:
            if one.gone:
                raise InvalidBuffer("a program was given memory that another has used for something else")
        found = self._client.run(self._executable, [one.array for one in memory])
        return [Memory(self._client, array, *out) for array, out in zip(found, self._outs, strict=True)]


class XlaBackend(HostPoolBackend):
    """A device of PJRT: the host's processor, or by number one that a plugin brings."""

    name: ClassVar[str] = "xla"
    whole_graphs: ClassVar[bool] = True
    ordinal: ClassVar[int] = 0

    def __init__(self) -> None:
        super().__init__()
        self.client = client.Client(self.ordinal)
        self._buffers: HandleTable[list[Memory]] = HandleTable(self.number, "buffer")

    @classmethod
    def unavailable(cls) -> str | None:
        return client.unavailable()

    @classmethod
    def machines(cls) -> list[dict[str, Any]]:
        return [] if cls.unavailable() is not None else client.devices()

    @classmethod
    def numbered(cls, number: int) -> type[Backend]:
        return _numbered(number)

    @property
    def description(self) -> MachineDescription:
        return DESCRIPTION

    def graph_program(self, text: str, outs: Sequence[tuple[Type, int]]) -> Compiled:
        """A program of StableHLO, compiled; what its results are is told."""
        return Compiled(self.client, text, outs)

    def adopt(self, array: Array, ty: Type) -> Memory:  # type: ignore[override]
        return self._put(array.reshape(-1), ty)

    def allocate_typed(self, ty: Type, count: int) -> Memory:  # type: ignore[override]
        check_size(count * ty.size_bytes, DESCRIPTION.largest, "buffer")
        return self._put(np.zeros(count, ty.dtype), ty)

    def _put(self, array: Array, ty: Type) -> Memory:
        flat = np.ascontiguousarray(array).view(ELEMENTS.get(ty, ty.dtype))
        return Memory(self.client, self.client.put(flat), ty, flat.size)

    def statistics(self) -> dict[str, int]:
        """What the device says of its memory; nothing where it says nothing, as PJRT's CPU does."""
        return self.client.statistics()

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None:
        raise BackendUnavailable(
            "the xla backend compiles whole graphs, and runs no programs of Atlas",
            hint="run it on another machine, or say it with tensors",
        )

    # --- buffers of bytes -------------------------------------------------------------------------

    def allocate(self, size: int) -> BufferHandle:
        check_size(size, DESCRIPTION.largest, "buffer")
        return BufferHandle(self.number, self._buffers.add([self._put(np.zeros(size, np.uint8), Type.U8)]))

    def free(self, handle: BufferHandle) -> None:
        self._buffers.remove(handle)

    def size(self, handle: BufferHandle) -> int:
        return self._buffers.get(handle)[0].count

    def copy_to(self, handle: BufferHandle, data: Any, offset: int = 0) -> None:
        given = as_bytes(data)
        self.checked_copy(handle, offset, given.size)
        place = self._buffers.get(handle)
        whole = place[0].read()
        whole[offset : offset + given.size] = given
        place[0] = self._put(whole, Type.U8)

    def copy_from(self, handle: BufferHandle, offset: int = 0, size: int | None = None) -> bytes:
        size = self.size(handle) - offset if size is None else size
        self.checked_copy(handle, offset, size)
        return self._buffers.get(handle)[0].read()[offset : offset + size].tobytes()

    def array(self, values: Any, ty: Type | None = None) -> TypedBuffer:
        found = np.asarray(values)
        ty = ty or Type.of_dtype(found.dtype)
        buffer = TypedBuffer(self, self.allocate(found.size * ty.size_bytes), ty, found.size)
        buffer.write(found)
        return buffer


@cache
def _numbered(number: int) -> type[XlaBackend]:
    """The backend of a device by its number; the first is the one without."""
    return XlaBackend if number == 0 else type(f"XlaBackend{number}", (XlaBackend,), {
        "name": f"xla:{number}", "ordinal": number,
    })  # fmt: skip
