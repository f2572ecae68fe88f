"""Buffers and pools of machines whose memory is their driver's: what such backends have in common.

Comes in: what a driver does with a block of its memory (`_take`, `_drop`, `_put`, `_get`, `_move`), which a backend
writes in a few lines each. Goes out: handles, limits, checked copies and pools, and errors that say what was asked for.
A launch of a program is the backend's own; where its driver compiles source it is `text/backend.py`.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import numpy as np

from eshkol.atlas.classes import CLASS_MEMORY_BYTES
from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.operands import Immediate
from eshkol.atlas.types import Array
from eshkol.backends.base import (
    Backend,
    Binding,
    BufferHandle,
    HandleTable,
    PoolHandle,
    as_bytes,
    check_size,
)
from eshkol.errors import AllocationFailed, BackendUnavailable, DeviceLost, InvalidBuffer

GRAIN = 8  # of bytes of buffers: atomics of small types touch whole words


class Device(Protocol):
    """What a backend must know of its device."""

    @property
    def name(self) -> str: ...
    @property
    def memory(self) -> int: ...  # bytes that there are
    @property
    def largest(self) -> int: ...  # bytes of a buffer
    @property
    def shared_bytes(self) -> int: ...  # of a block, at most
    @property
    def lanes(self) -> int: ...  # of a block, at most
    def description(self) -> MachineDescription: ...


DeviceT = TypeVar("DeviceT", bound=Device)
BackendT = TypeVar("BackendT", bound=Backend)


@dataclass(frozen=True, slots=True)
class Memory:
    """A block of the device's memory."""

    buffer: Any  # as the driver knows it
    size: int


class Known(Generic[DeviceT]):
    """The devices of a kind by their numbers: as `found` gives them, or the reason why there are none."""

    def __init__(self, kind: str, found: Callable[[], Sequence[DeviceT] | str]) -> None:
        self.kind, self._found = kind, found

    def unavailable(self) -> str | None:
        """Why there is no device; None where there is one."""
        found = self._found()
        return found if isinstance(found, str) else None

    def devices(self) -> tuple[DeviceT, ...]:
        """All devices; none where there is no driver."""
        found = self._found()
        return () if isinstance(found, str) else tuple(found)

    def device(self, number: int) -> DeviceT:
        """A device by its number."""
        found = self._found()
        if isinstance(found, str):
            raise BackendUnavailable(f"the {self.kind} backend is not available: {found}", hint="ESHKOL_DEVICE=cpu")
        if not 0 <= number < len(found):
            known = self.kind if len(found) == 1 else f"{self.kind}:0 to {self.kind}:{len(found) - 1}"
            raise BackendUnavailable(f"there is no device {self.kind}:{number}", hint=f"there is {known}")
        return found[number]


class DrivenBackend(Backend, Generic[DeviceT]):
    """One device with memory of its own, behind a driver."""

    def __init__(self, device: DeviceT, memory_limit: int | None = None) -> None:
        super().__init__()
        self.device = device
        self._description = device.description()
        self.memory_limit = device.memory if memory_limit is None else memory_limit
        self.used = 0  # bytes of buffers and pools
        self.lock = threading.RLock()
        self._buffers: HandleTable[Memory] = HandleTable(self.number, "buffer")
        self._pools: HandleTable[Memory] = HandleTable(self.number, "pool")
        self._class_memory: Memory | None = None

    @property
    def description(self) -> MachineDescription:
        return self._description

    # --- what the driver does ---------------------------------------------------------------------

    @abstractmethod
    def _take(self, size: int) -> Any:
        """A block of so many bytes, a multiple of `GRAIN`."""

    @abstractmethod
    def _drop(self, buffer: Any) -> None:
        """Give a block back."""

    @abstractmethod
    def _put(self, buffer: Any, offset: int, raw: Array) -> None:
        """Copy bytes of the host, of which there are some, into a block."""

    @abstractmethod
    def _get(self, buffer: Any, offset: int, into: Array) -> None:
        """Copy bytes of a block into an array of the host, which is not empty; what was asked for before is done."""

    @abstractmethod
    def _move(self, target: Any, target_offset: int, source: Any, source_offset: int, size: int) -> None:
        """Copy bytes from block to block; they do not overlap."""

    @contextmanager
    def _asked(self, what: str) -> Iterator[None]:
        """Around what the driver is asked for: what it says becomes one of our errors."""
        yield

    def _no_memory(self, what: str, said: str) -> AllocationFailed:
        """The error of a driver that has no memory for something."""
        return AllocationFailed(
            f"{self.device.name} has no memory for {what} ({said})", hint="free tensors, or take smaller batches"
        )

    def _lost(self, said: str) -> DeviceLost:
        """The error of a device that does not answer."""
        return DeviceLost(
            f"{self.device.name} does not answer ({said})",
            hint="values on it are gone: save what the host has, and start the process again",
        )

    # --- buffers ----------------------------------------------------------------------------------

    def _block(self, size: int, what: str) -> Memory:
        check_size(size, self.device.largest, what)
        with self.lock, self._asked(f"a {what} of {size} bytes"):
            if self.used + size > self.memory_limit:
                raise AllocationFailed(
                    f"no memory for a {what} of {size} bytes: {self.used} of {self.memory_limit} are used",
                    hint="free tensors, or take smaller batches",
                )
            buffer = self._take(max(-(-size // GRAIN) * GRAIN, GRAIN))
            self.used += size
            return Memory(buffer, size)

    def _give(self, memory: Memory) -> None:
        with self.lock:
            self.used -= memory.size
            self._drop(memory.buffer)

    def _write(self, memory: Memory, offset: int, raw: Array) -> None:
        if raw.size:
            with self.lock, self._asked("a copy"):
                self._put(memory.buffer, offset, raw)

    def _read(self, memory: Memory, offset: int, size: int) -> bytes:
        found = np.empty(size, np.uint8)
        if size:
            with self.lock, self._asked("a copy"):
                self._get(memory.buffer, offset, found)
        return found.tobytes()

    def allocate(self, size: int) -> BufferHandle:
        return BufferHandle(self.number, self._buffers.add(self._block(size, "buffer")))

    def free(self, handle: BufferHandle) -> None:
        self._give(self._buffers.remove(handle))

    def copy_to(self, handle: BufferHandle, data: Any, offset: int = 0) -> None:
        raw = as_bytes(data)
        self.checked_copy(handle, offset, raw.size)
        self._write(self._buffers.get(handle), offset, raw)

    def copy_from(self, handle: BufferHandle, offset: int = 0, size: int | None = None) -> bytes:
        memory = self._buffers.get(handle)
        size = memory.size - offset if size is None else size
        self.checked_copy(handle, offset, size)
        return self._read(memory, offset, size)

    def copy_within(
        self, target: BufferHandle, target_offset: int, source: BufferHandle, source_offset: int, size: int
    ) -> None:
        self.checked_copy(target, target_offset, size)
        self.checked_copy(source, source_offset, size)
        to, origin = self._buffers.get(target), self._buffers.get(source)
        if not size:
            return
        if to is origin and abs(target_offset - source_offset) < size:  # drivers copy no bytes onto each other
            self._write(to, target_offset, np.frombuffer(self._read(origin, source_offset, size), np.uint8))
            return
        with self.lock, self._asked("a copy"):
            self._move(to.buffer, target_offset, origin.buffer, source_offset, size)

    def size(self, handle: BufferHandle) -> int:
        return self._buffers.get(handle).size

    def memory_of(self, binding: Binding) -> Memory:
        """The block that a launch was given for a buffer or a pool."""
        value = binding.value
        assert not isinstance(value, Immediate)
        return self._pools.get(value) if isinstance(value, PoolHandle) else self._buffers.get(value)

    def classes(self) -> Memory:
        """The classes' memory, which persists between launches; it is made when one touches it."""
        if self._class_memory is None:
            self._class_memory = self._block(CLASS_MEMORY_BYTES, "class memory")
            self._write(self._class_memory, 0, np.zeros(CLASS_MEMORY_BYTES, np.uint8))
        return self._class_memory

    # --- pools ------------------------------------------------------------------------------------

    def allocate_pool(self, capacity: int) -> PoolHandle:
        memory = self._block(capacity, "pool")
        self._write(memory, 0, np.zeros(capacity, np.uint8))
        return PoolHandle(self.number, self._pools.add(memory))

    def free_pool(self, handle: PoolHandle) -> None:
        self._give(self._pools.remove(handle))

    def _in_pool(self, handle: PoolHandle, offset: int, size: int) -> Memory:
        memory = self._pools.get(handle)
        if offset < 0 or size < 0 or offset + size > memory.size:
            raise InvalidBuffer(f"bytes {offset} to {offset + size} are outside a pool of {memory.size} bytes")
        return memory

    def copy_to_pool(self, handle: PoolHandle, offset: int, data: Any) -> None:
        raw = as_bytes(data)
        self._write(self._in_pool(handle, offset, raw.size), offset, raw)

    def copy_from_pool(self, handle: PoolHandle, offset: int, size: int) -> bytes:
        return self._read(self._in_pool(handle, offset, size), offset, size)

    def pool_size(self, handle: PoolHandle) -> int:
        return self._pools.get(handle).size


class NumberedBackend(DrivenBackend[DeviceT]):
    """One of the devices of a kind that are known."""

    known: ClassVar[Known[Any]]
    ordinal: ClassVar[int] = 0  # the number of its device

    @classmethod
    def unavailable(cls) -> str | None:
        return cls.known.unavailable()

    @classmethod
    def machines(cls) -> list[dict[str, Any]]:
        return [device.facts() for device in cls.known.devices()]

    @classmethod
    def numbered(cls, number: int) -> type[Backend]:
        return _of_number(cls, number)


@cache
def _of_number(cls: type[BackendT], number: int) -> type[BackendT]:
    """The backend of a device by its number; the first is the one without."""
    if number == 0:
        return cls
    named = {"name": f"{cls.name}:{number}", "ordinal": number}
    return type(f"{cls.__name__}{number}", (cls,), named)
