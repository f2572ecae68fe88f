"""Where values lie while a graph is computed: host arrays, and buffers of the machine that computes.

A `Stored` is memory that one or several values (a tensor and its reshapes) share; it is given back when the last of
them goes. `Machine` is what is asked of a backend. Large host memory is kept when it is given back and used again,
because fresh pages cost as much as filling them does.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from eshkol.atlas.program import LaunchConfig, Program
from eshkol.atlas.sequence import Runner, SequenceStep
from eshkol.atlas.types import Type
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.references import ALONE
from eshkol.schedule.scalars import TYPES

Array = npt.NDArray[Any]

COUNTED = 1 << 16  # bytes from which on memory is counted: to count takes longer than to have less
LARGE = 1 << 18  # bytes from which on memory is kept
KEPT_BYTES = 1 << 29  # at most, in all
ALIGNMENT = 64
SPARES = 8  # small arrays kept of one size
SPARE_SIZES = 64


class Buffer(Protocol):
    """Memory of a machine."""

    def read(self) -> Any: ...
    def free(self) -> None: ...


class Machine(Protocol):
    """What runs programs: a backend."""

    @property
    def shares_host_memory(self) -> bool:
        """Whether a buffer over a host array is that array, so that nothing needs to be copied."""
        ...

    def execute(self, program: Program, launch: LaunchConfig, params: Mapping[str, Any] | None = None) -> None: ...
    def adopt(self, array: Array, ty: Type) -> Buffer: ...
    def allocate_typed(self, ty: Type, count: int) -> Buffer: ...
    def sequence(self, steps: Sequence[SequenceStep], places: int) -> Runner:
        """Steps to be run in one go; asked only of machines that share the host's memory."""
        ...


class _Keeper:
    """Large blocks of host memory that nobody uses now, by their size."""

    def __init__(self) -> None:
        self.blocks: dict[int, list[Array]] = {}
        self.total = 0

    def take(self, size: int) -> Array | None:
        found = self.blocks.get(size)
        if not found:
            return None
        self.total -= size
        return found.pop()

    def give(self, block: Array) -> None:
        if self.total + block.size > KEPT_BYTES:
            self.clear()  # of sizes that are not asked for any more, most likely
        if block.size <= KEPT_BYTES:
            self.blocks.setdefault(block.size, []).append(block)
            self.total += block.size

    def clear(self) -> None:
        self.blocks.clear()
        self.total = 0


_keeper = _Keeper()


_DATA = 2 * ctypes.sizeof(ctypes.c_void_p)  # NumPy's arrays begin with Python's head, and then have the address
_words = (ctypes.c_uint64 * ((sys.maxsize >> 4) + 1)).from_address(0)  # all memory: to index it takes no time


def _address_in_head(array: Array) -> int:
    return _words[id(array) + _DATA >> 3]


def _address_by_interface(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _quickest() -> Callable[[Array], int]:
    """NumPy takes microseconds to tell an address, so it is read where the array has it, if it is there."""
    probes: list[Array] = [np.empty(3), np.empty((2, 5), np.uint8)[1:, 2:], np.empty(0)]
    try:
        found = all(_address_in_head(p) == _address_by_interface(p) for p in probes)
    except (ValueError, OSError):
        found = False
    return _address_in_head if found and sys.implementation.name == "cpython" else _address_by_interface


address_of = _quickest()
"""The address of an array's first element."""


def addresses_of(arrays: Sequence[Array]) -> list[int]:
    """The addresses of the first elements of arrays."""
    if address_of is not _address_in_head:
        return [*map(address_of, arrays)]
    words, data = _words, _DATA
    return [words[id(array) + data >> 3] for array in arrays]


class _Usage:
    """How many bytes of memory are lent out, and the most that ever were."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # a lease may end while one is made
        self.current = self.peak = 0

    def change(self, size: int) -> None:
        with self.lock:
            self.current += size
            self.peak = max(self.peak, self.current)


usage = _Usage()


class _Lease:
    """Memory lent to an array; when the array and all its views are gone, so is this, and the memory is kept."""

    __slots__ = ("__array_interface__", "block")

    def __init__(self, block: Array, size: int) -> None:
        address = address_of(block)
        self.block = block
        self.__array_interface__ = {
            "shape": (size,), "typestr": "|u1", "version": 3, "data": (address + -address % ALIGNMENT, False),
        }  # fmt: skip
        usage.change(block.size)

    def __del__(self) -> None:
        usage.change(-self.block.size)
        if self.block.size >= LARGE:
            _keeper.give(self.block)


def empty(shape: Shape, dtype: np.dtype[Any]) -> Array:
    """A fresh contiguous array, its elements not set. It is counted, unless it is small."""
    size = math.prod(shape) * dtype.itemsize
    if size < COUNTED:
        return np.empty(shape, dtype)
    wanted = size + ALIGNMENT
    block = _keeper.take(wanted) if size >= LARGE else None
    if block is None:
        block = np.empty(wanted, np.uint8)
    return np.asarray(_Lease(block, size)).view(dtype).reshape(shape)


def counted(array: Array) -> Array:
    """A copy in memory that is counted."""
    made = empty(array.shape, array.dtype)
    made[...] = array
    return made


def kept_bytes() -> int:
    """Memory that nobody uses now and that is kept for what comes."""
    return _keeper.total


def exclusive(holder: Any) -> bool:
    """Whether nobody but `holder.data` refers to an array, nor to the memory it lies in."""
    array = holder.data
    if sys.getrefcount(array) > ALONE:
        return False
    flags, base = array.flags, array.base
    if not flags.carray:  # contiguous, aligned, writeable
        return False
    if base is None:
        return bool(flags.owndata)
    return isinstance(getattr(base, "base", None), _Lease) and sys.getrefcount(base) <= ALONE


class Stored:
    """Memory of a value: a host array, a buffer of the machine, or both.

    Memory that was made here and never shown to anyone is used again for another value, buffer and all.
    """

    __slots__ = ("array", "buffer", "machine", "own", "size", "ty")

    def __init__(
        self, machine: Machine, ty: Type | None, size: int, array: Array | None, buffer: Buffer | None
    ) -> None:
        self.machine, self.ty, self.size, self.array, self.buffer = machine, ty, size, array, buffer
        self.own = False

    def __del__(self) -> None:
        if self.buffer is None:
            return
        if self.own and len(spare := _spare(self.machine, self.ty, self.size)) < SPARES:
            spare.append((self.array, self.buffer))
        else:
            self.buffer.free()


def _spare(machine: Machine, ty: Type | None, size: int) -> list[tuple[Any, Any]]:
    """Arrays of this many elements that nobody uses now, with their buffers."""
    of_machine = _spares.setdefault(machine, {})
    key = ty, size
    if key not in of_machine:
        if len(of_machine) >= SPARE_SIZES:
            for spare in of_machine.pop(next(iter(of_machine))):
                spare[1].free()
        of_machine[key] = []
    return of_machine[key]


_spares: WeakKeyDictionary[Machine, dict[Any, list[tuple[Any, Any]]]] = WeakKeyDictionary()


class Computed:
    """A value that is there, as memory under a shape."""

    __slots__ = ("dtype", "shape", "stored")

    def __init__(self, stored: Stored, shape: Shape, dtype: DType) -> None:
        self.stored, self.shape, self.dtype = stored, shape, dtype

    @staticmethod
    def of(array: Any, dtype: DType, machine: Machine) -> Computed:
        """The value of a host array."""
        return Computed(Stored(machine, TYPES.get(dtype), array.size, array, None), array.shape, dtype)

    @staticmethod
    def fresh(shape: Shape, dtype: DType, machine: Machine) -> Computed:
        """Memory for a value that the machine is going to compute."""
        ty, size = TYPES[dtype], math.prod(shape)
        if not machine.shares_host_memory:
            return Computed(Stored(machine, ty, size, None, machine.allocate_typed(ty, size)), shape, dtype)
        if size * ty.size_bytes >= LARGE:
            return Computed(Stored(machine, ty, size, empty(shape, dtype.numpy), None), shape, dtype)
        spare = _spare(machine, ty, size)
        array, buffer = spare.pop() if spare else (np.empty(size, ty.dtype), None)
        stored = Stored(machine, ty, size, array, buffer)
        stored.own = True
        return Computed(stored, shape, dtype)

    def reshaped(self, shape: Shape) -> Computed:
        """The same memory under another shape."""
        stored = self.stored
        if stored.array is not None and not stored.array.flags.c_contiguous:
            stored.array = np.ascontiguousarray(stored.array)
        return Computed(stored, shape, self.dtype)

    def buffer(self) -> Buffer:
        """The value in the machine's memory."""
        stored = self.stored
        if stored.buffer is None:
            array, ty = stored.array, stored.ty
            assert array is not None
            assert ty is not None
            flags = array.flags
            if not (flags.c_contiguous and flags.aligned):
                array = stored.array = np.array(array, order="C")
            stored.buffer = stored.machine.adopt(array.view(np.uint8) if array.dtype == np.bool_ else array, ty)
        return stored.buffer

    def host(self) -> Array:
        """The value as a contiguous host array, which is the caller's from now on."""
        stored = self.stored
        stored.own = False
        if stored.array is None:
            assert stored.buffer is not None
            stored.array = stored.buffer.read()
        array = stored.array
        if array.dtype != self.dtype.numpy:
            array = array.view(self.dtype.numpy)  # bools are computed as bytes
        if array.shape != self.shape:
            array = array.reshape(self.shape)
        return array if array.flags.c_contiguous else np.array(array, order="C")


class _At:
    """Memory at an address, for NumPy."""

    __slots__ = ("__array_interface__",)

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "version": 3, "data": (address, False)}


def at_address(address: int, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """The array that lies at an address. Nothing keeps that memory: the array must not outlive it."""
    size = math.prod(shape) * dtype.itemsize
    if not size:
        return np.empty(shape, dtype)
    return np.asarray(_At(address, size)).view(dtype).reshape(shape)
