"""The CPU with memory of its own, behind explicit copies: what a graphics card looks like to all that is above it.

Programs run as the CPU backend runs them. Buffers are memory of the backend that nothing else can reach: values come in
by `copy_to` and go out by `copy_from`. It is there so that everything which must hold on a machine with its own memory
can be tested without one.
"""

from __future__ import annotations

from typing import Any, ClassVar

from eshkol.atlas.types import Array, Type
from eshkol.backends.base import Backend, BufferHandle, TypedBuffer
from eshkol.backends.cpu.backend import CpuBackend


class DiscreteBackend(CpuBackend):
    """The CPU's cores over memory that is not the host's."""

    name: ClassVar[str] = "discrete"
    stands_in: ClassVar[bool] = True
    shares_host_memory: ClassVar[bool] = False

    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self._taken: dict[int, BufferHandle] = {}

    def adopt(self, array: Array, ty: Type) -> TypedBuffer:
        return Backend.adopt(self, array, ty)

    def take(self, size: int) -> int:
        handle = self.allocate(max(size, 1))  # of none, too: addresses tell what was taken apart
        address = self.address(handle)
        self._taken[address] = handle
        return address

    def give(self, address: int) -> None:
        self.free(self._taken.pop(address))

    def buffer_at(self, address: int, ty: Type, count: int) -> TypedBuffer:
        return TypedBuffer(self, self._taken.pop(address), ty, count)
