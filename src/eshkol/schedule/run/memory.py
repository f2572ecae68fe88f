"""Memory of the host: arrays for values, how many bytes of them are lent out, and where they begin.

Large memory is kept when it is given back and used again, because fresh pages cost as much as filling them does.
Memory of other machines is in `resident.py`.
"""

from __future__ import annotations

import ctypes
import math
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from eshkol.errors import AllocationFailed
from eshkol.ops.row import Shape
from eshkol.ops.structural import CONST
from eshkol.runtime import front
from eshkol.support import installed, observing
from eshkol.support.references import ALONE

Array = npt.NDArray[Any]

COUNTED = front.COUNTED
LARGE = 1 << 18  # bytes from which on memory is kept
KEPT_BYTES = 1 << 29  # at most, in all
ALIGNMENT = 64


INSTALLED = installed.memory()


class _Keeper:
    """Large blocks of host memory that nothing uses now, by their size."""

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
_AXES, _EXTENTS, _FLAGS = 24, 32, 64  # where they have these, as C reads them, too (native/front)
_NEW_ARRAY = 94  # the place of PyArray_NewFromDescr in the table of NumPy's functions
_words = (ctypes.c_uint64 * ((sys.maxsize >> 4) + 1)).from_address(0)  # all memory: to index it takes no time


def _address_in_head(array: Array) -> int:
    return _words[id(array) + _DATA >> 3]


def _extents_in_head(array: Array) -> Shape:
    axes, first = _words[id(array) + _AXES >> 3] & 0xFFFFFFFF, _words[id(array) + _EXTENTS >> 3] >> 3
    return tuple(_words[first : first + axes])


def _address_by_interface(array: Array) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


def _quickest() -> Callable[[Array], int]:
    """NumPy takes microseconds to tell an address, so it is read where the array has it, if it is there."""
    probes: list[Array] = [np.empty(3), np.empty((2, 5), np.uint8)[1:, 2:], np.empty(0)]
    try:
        found = all(_address_in_head(p) == _address_by_interface(p) for p in probes)
        found = found and all((_words[id(p) + _FLAGS >> 3] & 1) == p.flags.c_contiguous for p in probes)
        found = found and all(_extents_in_head(p) == p.shape for p in probes)
    except (ValueError, OSError):
        found = False
    return _address_in_head if found and sys.implementation.name == "cpython" else _address_by_interface


address_of = _quickest()
"""The address of an array's first element."""


def reads_heads() -> bool:
    """Whether an array has its address where C reads it."""
    return address_of is _address_in_head


def _new_array() -> int:
    """Where NumPy has its function that makes an array, PyArray_NewFromDescr; 0 where that is not known.

    It is in the table that NumPy offers to code in C, at a place that is fixed: extensions rely on it in every version.
    """
    if not reads_heads():
        return 0
    from numpy._core import _multiarray_umath  # type: ignore[attr-defined]  # NumPy's stubs leave the table for C out

    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    table = (ctypes.c_void_p * (_NEW_ARRAY + 1)).from_address(pointer(_multiarray_umath._ARRAY_API, None))
    return table[_NEW_ARRAY] or 0


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
            self.current = now = self.current + size
            if now > self.peak:
                self.peak = now


usage = _Usage()


class _Block(np.ndarray[Any, Any]):
    """Memory as NumPy gave it: of a type of its own, so that NumPy does not take it for what an array lies in."""

    __slots__ = ()


class _Lease(np.ndarray[Any, Any]):
    """The aligned bytes of a block, lent to an array; when that and all its views are gone, the memory is kept.

    An array, as those that lie in one are made four times as fast as from an object that offers an interface.
    """

    __slots__ = ()

    def __del__(
        self, usage: _Usage = usage, keeper: _Keeper = _keeper, large: int = LARGE, ending: Any = sys.is_finalizing,
        observed: Any = observing, kind: Any = _Block,
    ) -> None:  # fmt: skip
        # By its defaults: when Python ends, the names of this module may be gone before the last array is.
        block = self.base
        if block is None or ending() or type(block) is not kind:  # the last: a view of it, which lends nothing
            return
        counted = self.size + ALIGNMENT
        usage.change(-counted)
        if observed.watcher is not None:
            observed.watcher.lent(id(self), -counted)
        if block.size >= large:
            keeper.give(block)


def empty(shape: Shape, dtype: np.dtype[Any]) -> Array:
    """A fresh contiguous array, its elements not set. It is counted, unless it is small."""
    size = math.prod(shape) * dtype.itemsize
    if size < COUNTED:
        return np.empty(shape, dtype)
    if size > INSTALLED:  # some systems give it, and end the process when it is written to
        raise _too_large(size)
    wanted = size + ALIGNMENT
    block = None
    if size >= LARGE:
        step = 1 << wanted.bit_length() - 4  # sizes that are nearly the same share memory: those of batches, say
        wanted = -(-wanted // step) * step
        block = _keeper.take(wanted)
    if block is None:
        try:
            block = _Block(wanted, np.uint8)
        except MemoryError:
            raise _too_large(size) from None
    usage.change(size + ALIGNMENT)
    lease = _Lease(size, np.uint8, block, -address_of(block) % ALIGNMENT)
    if observing.watcher is not None:
        observing.watcher.lent(id(lease), size + ALIGNMENT)
    return np.ndarray(shape, dtype, lease)


def _too_large(size: int) -> AllocationFailed:
    return AllocationFailed(f"no memory for an array of {size} bytes", hint="compute in smaller pieces")


def fresh_array(shape: Shape, dtype: np.dtype[Any]) -> tuple[Callable[..., Array], tuple[Any, ...]]:
    """What makes a fresh array, as a function and its arguments."""
    small = math.prod(shape) * dtype.itemsize < COUNTED
    return (np.empty if small else empty), (shape, dtype)


def counted(array: Array) -> Array:
    """A copy in memory that is counted."""
    made = empty(array.shape, array.dtype)
    made[...] = array
    return made


def kept_bytes() -> int:
    """Memory that nothing uses now and that is kept for what comes."""
    return _keeper.total


def exclusive(holder: Any) -> bool:
    """Whether nothing but `holder.data` refers to a value, nor to the memory it lies in.

    A constant is found again by its number, so its memory is no one's to change, whoever refers to it now.
    """
    if holder.op is CONST:
        return False
    array = holder.data
    if array is None or sys.getrefcount(array) > ALONE:
        return False
    if type(array) is not np.ndarray:  # memory of another machine
        return bool(array.exclusive)
    flags, base = array.flags, array.base
    if not flags.carray:  # contiguous, aligned, writeable
        return False
    if base is None:
        return bool(flags.owndata)
    if type(base) is np.ndarray:  # it is that under another shape
        if sys.getrefcount(base) > ALONE:
            return False
        base = base.base
    return isinstance(base, _Lease) and sys.getrefcount(base) <= ALONE


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


front.give("reshape", np.ndarray.reshape)
front.give("heads", reads_heads())
front.give("exclusive", exclusive)
front.arrays_by(_new_array())
