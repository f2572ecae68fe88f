"""Pools: streaming storage in constant space, with flat addressing beside it.

Comes in: a capacity, then any amount of bytes. Goes out: the newest `capacity` bytes of them. A pool is one
array of bytes, allocated once and never grown. Backends hold pools for their callers, and the reference
interpreter runs PoolLoad and PoolStore on `Pool.memory`.

Two ways lead to the same bytes:

- *Streaming*: `write` appends at the head and, once the pool is full, overwrites the oldest byte, which the
  tail marks. `read(offset, length)` counts from the tail and sees only what is stored; it consumes nothing.
- *Flat*: `load`, `store` and `memory` count from the start of the array and reach all of it, zeros included
  where nothing was written yet. They never move head or tail, so a `store` inside the stored stretch changes
  what a later `read` returns, and one outside it is overwritten when the stream gets there.

Byte number i of the stream since the start (or the last `clear`) lies at flat offset i mod capacity, however
the stream was cut into writes. A pool has no lock: threads that share one must agree among themselves.
"""

from __future__ import annotations

import operator

import numpy as np
import numpy.typing as npt

from eshkol.errors import AllocationFailed, InvalidBuffer

CAPACITY_LIMIT = 1 << 36  # 64 GiB: more is a mistake in a size computation, not a pool

Bytes = bytes | bytearray | memoryview
Writable = Bytes | npt.NDArray[np.generic]


class Pool:
    """A fixed-capacity circular buffer of bytes.

    >>> pool = Pool(4)
    >>> pool.write(b"abcdef")
    >>> pool.read(0, 4)
    b'cdef'
    """

    __slots__ = ("_capacity", "_head", "_length", "_memory", "_view")

    def __init__(self, capacity: int) -> None:
        self._capacity = _check_capacity(capacity)
        try:
            self._memory = np.zeros(self._capacity, np.uint8)
        except MemoryError:
            raise AllocationFailed(f"no memory for a pool of {self._capacity} bytes") from None
        self._view = self._memory.data  # slices of it cost a third of an array's
        self._head = 0  # where the next byte goes
        self._length = 0  # bytes stored, ending at the head

    def __repr__(self) -> str:
        return f"Pool({self._capacity}, stored={self._length})"

    def __len__(self) -> int:
        """Bytes stored by streaming: at most the capacity."""
        return self._length

    @property
    def capacity(self) -> int:
        return self._capacity

    @property
    def head(self) -> int:
        """The flat offset where the next streamed byte goes."""
        return self._head

    @property
    def tail(self) -> int:
        """The flat offset of the oldest stored byte (equal to the head when empty or full)."""
        return (self._head - self._length) % self._capacity

    @property
    def memory(self) -> npt.NDArray[np.uint8]:
        """All the bytes, in flat order: the array itself, not a copy."""
        return self._memory

    def write(self, data: Writable) -> None:
        """Append bytes, or the bytes of an array in C order; the oldest give way when the pool is full."""
        head, capacity = self._head, self._capacity
        source, count = (data, len(data)) if type(data) is bytes else _flat_bytes(data, capacity)
        end = head + count
        if end < capacity:
            self._view[head:end] = source
            self._head = end
        else:
            self._write_around(source, count)
        length = self._length + count
        self._length = length if length < capacity else capacity

    def _write_around(self, source: Bytes, count: int) -> None:
        """Write up to the end of the array and on from its start."""
        kept = memoryview(source)[-self._capacity :]
        end = (self._head + count) % self._capacity
        start = (end - len(kept)) % self._capacity
        first = min(len(kept), self._capacity - start)
        if first < len(kept) and np.may_share_memory(np.frombuffer(kept, np.uint8), self._memory):
            kept = memoryview(bytes(kept))  # the first half's copy would change the second half's source
        self._view[start : start + first] = kept[:first]
        self._view[: len(kept) - first] = kept[first:]
        self._head = end

    def read(self, offset: int, length: int) -> bytes:
        """Stored bytes from `offset` after the oldest; asking for more than is stored is an error."""
        offset, length = operator.index(offset), operator.index(length)
        if offset < 0 or length < 0 or offset + length > self._length:
            raise InvalidBuffer(
                f"cannot read {length} bytes from offset {offset}: the pool stores {self._length} bytes"
            )
        start = (self._head - self._length + offset) % self._capacity
        end = start + length
        if end <= self._capacity:
            return self._view[start:end].tobytes()
        return b"".join((self._view[start:], self._view[: end - self._capacity]))

    def load(self, offset: int, length: int) -> bytes:
        """Bytes at a flat offset, whatever was streamed."""
        offset, length = operator.index(offset), operator.index(length)
        self._check_flat("load", offset, length)
        return self._view[offset : offset + length].tobytes()

    def store(self, offset: int, data: Writable) -> None:
        """Set bytes at a flat offset, all of them or none; head and tail stay where they are."""
        offset = operator.index(offset)
        source, count = _flat_bytes(data, self._capacity)
        self._check_flat("store", offset, count)
        self._view[offset : offset + count] = source

    def clear(self) -> None:
        """Make the pool as new: nothing stored, all bytes zero."""
        self._memory.fill(0)
        self._head = self._length = 0

    def _check_flat(self, action: str, offset: int, length: int) -> None:
        if offset < 0 or length < 0 or offset + length > self._capacity:
            raise InvalidBuffer(
                f"cannot {action} {length} bytes at offset {offset}: the pool has {self._capacity} bytes"
            )


def _check_capacity(capacity: int) -> int:
    try:
        size = operator.index(capacity)
    except TypeError:
        size = 0
    if isinstance(capacity, bool) or not 0 < size <= CAPACITY_LIMIT:
        raise AllocationFailed(
            f"a pool cannot have a capacity of {capacity!r} bytes",
            hint=f"the capacity is a whole number from 1 to {CAPACITY_LIMIT}",
        )
    return size


def _flat_bytes(data: Writable, limit: int) -> tuple[Bytes, int]:
    """The data as flat bytes (only the last `limit` or so where more must be copied), and its whole size.

    Contiguous memory is used where it lies; an array that jumps about is copied first.
    """
    if isinstance(data, bytes | bytearray):
        return data, len(data)
    array = np.asarray(data if isinstance(data, np.ndarray) else memoryview(data))
    if array.dtype.hasobject:
        raise InvalidBuffer(f"an array of {array.dtype} has no bytes to store", hint="give it a numeric dtype")
    if array.nbytes == 0:
        return b"", 0
    if array.flags.c_contiguous:
        flat = array.reshape(-1)
    else:
        elements = -(-limit // array.itemsize)
        flat = np.asarray(array.flat[max(0, array.size - elements) :])
    return flat.view(np.uint8).data, array.nbytes
