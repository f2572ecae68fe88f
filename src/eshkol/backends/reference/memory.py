"""Memory as the reference sees it: bytes that know their bounds, what was written, and who raced for them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from eshkol.atlas.isa import LaneFault
from eshkol.atlas.types import Array, Type, decode, encode

Bytes = npt.NDArray[np.uint8]
# Numbers as long as elements, and what they are where every byte is marked as written.
_NUMBERS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_MARKED = {size: number(int.from_bytes(b"\1" * size, "little")) for size, number in _NUMBERS.items()}


class Memory:
    """Bytes with a name. Offsets are relative to a region (base and limit) inside them."""

    def __init__(self, name: str, data: Bytes, *, written: bool, aligned: bool) -> None:
        self.name = name
        self.data = data
        self.aligned = aligned  # accesses must keep natural alignment
        self.written: Array | None = None if written else np.zeros(data.size, bool)

    def copy_in(self, offset: int, raw: Bytes) -> None:
        self.data[offset : offset + raw.size] = raw
        if self.written is not None:
            self.written[offset : offset + raw.size] = True
            if self.written.all():
                self.written = None  # nothing left to look for

    def check(self, offsets: Array, size: int, limit: int, alignment: int) -> None:
        """Refuse accesses of `size` bytes that leave the region or are not aligned."""
        if not offsets.size:
            return
        # Below 0 if one of them is, crooked if one of them is, and no less than the greatest of them.
        together = int(np.bitwise_or.reduce(offsets, axis=None))
        if together < 0 or (together + size > limit and int(np.maximum.reduce(offsets, axis=None)) + size > limit):
            outside = (offsets < 0) | (offsets + size > limit)
            first = int(offsets[outside][0])
            raise LaneFault(
                outside, f"address out of range: bytes {first} to {first + size} of {self.name}, which has {limit}",
                "guard the access, for instance by comparing r255 with the element count",
            )  # fmt: skip
        if self.aligned and together & (alignment - 1):  # alignments are powers of two
            crooked = (offsets & (alignment - 1)) != 0
            first = int(offsets[crooked][0])
            raise LaneFault(crooked, f"byte {first} of {self.name} is not aligned to {alignment} bytes")

    def check_read(self, base: Any, offsets: Array, ty: Type, limit: int) -> None:
        """Refuse to read elements that leave the region, are not aligned, or were not written."""
        self.check(offsets, ty.size_bytes, limit, ty.alignment)
        if self.written is not None:
            places = offsets + base
            if (marks := self._marks(places, base, ty)) is None:
                missing = np.asarray(~self.written[_every_byte(places, ty.size_bytes)].all(axis=1))
            else:
                missing = marks[places // ty.size_bytes] != _MARKED[ty.size_bytes]
            if np.count_nonzero(missing):  # several times as fast as `any`
                first = int(offsets[missing][0])
                raise LaneFault(missing, f"byte {first} of {self.name} is read before anything is written there")

    def load(self, base: Any, offsets: Array, ty: Type, limit: int, lanes: Array) -> Array:
        """One element per offset."""
        size = ty.size_bytes
        self.check_read(base, offsets, ty, limit)
        places = offsets + base if isinstance(base, np.ndarray) or base else offsets
        self.note_read(places, size, lanes)
        if self._whole(places, base, ty):
            return np.asarray(self.data.view(ty.dtype)[places // size])
        return decode(self.data[_every_byte(places, size)], ty)

    def store(self, base: Any, offsets: Array, ty: Type, limit: int, values: Array, lanes: Array) -> None:
        """One element per offset; where offsets coincide the highest lane is last."""
        size = ty.size_bytes
        self.check(offsets, size, limit, ty.alignment)
        places = offsets + base if isinstance(base, np.ndarray) or base else offsets
        self.note_write(places, size, lanes)
        if self._whole(places, base, ty):
            self.data.view(ty.dtype)[places // size] = values
        else:
            self.data[_every_byte(places, size)] = encode(values, ty)
        if self.written is None:
            return
        if (marks := self._marks(places, base, ty)) is None:
            self.written[_every_byte(places, size)] = True
        else:
            marks[places // size] = _MARKED[size]

    def _whole(self, places: Array, base: Any, ty: Type) -> bool:
        """Whether the bytes can be seen as elements of a type, and these places are among them."""
        size = ty.size_bytes
        if ty.is_wide or self.data.size % size:
            return False
        if self.aligned and ty.alignment == size and isinstance(base, int) and base % size == 0:
            return True  # `check` has looked at the offsets
        return not (places % size).any()

    def _marks(self, places: Array, base: Any, ty: Type) -> Array | None:
        """What was written, by element instead of by byte, where these places are elements of a type."""
        number = _NUMBERS.get(ty.size_bytes)
        if self.written is None or number is None or not self._whole(places, base, ty):
            return None
        return np.asarray(self.written.view(number))

    def note_read(self, places: Array, size: int, lanes: Array) -> None:
        """Races are looked for in shared memory only."""

    def note_write(self, places: Array, size: int, lanes: Array) -> None:
        """Races are looked for in shared memory only."""


def _every_byte(places: Array, size: int) -> Array:
    return np.asarray(places[:, None] + np.arange(size))


_MANY = -2  # several lanes


class SharedMemory(Memory):
    """The shared memories of all blocks, one after another, with a record of who touched each byte.

    Between two barriers of its block a byte may be read by many lanes, or used by one: anything else is a
    race, because real machines give no order. Atomics may meet atomics.
    """

    def __init__(self, blocks: int, size: int, block_of_lane: Array) -> None:
        super().__init__("shared memory", np.zeros(blocks * size, np.uint8), written=False, aligned=True)
        self.size = size
        self._block_of_lane = block_of_lane
        self._epoch = np.ones(blocks, np.int64)  # advanced by barriers
        self._writer, self._write_epoch, self._reader, self._read_epoch = (
            np.zeros(blocks * size, np.int64) for _ in range(4)
        )
        self._atomic = np.zeros(blocks * size, bool)  # whether the last write was an atomic
        self._arriving: Array | None = None  # bytes that a copy is under way to, once there was one

    def advance(self, blocks: Array | slice = slice(None)) -> None:
        """A barrier passed in these blocks."""
        self._epoch[blocks] += 1

    def _record(self, places: Array, size: int, lanes: Array) -> tuple[Array, Array, Array]:
        lane = np.repeat(lanes, size)
        return _every_byte(places, size).reshape(-1), lane, self._epoch[self._block_of_lane[lane]]

    def _fail(self, conflict: Array, size: int, other: Array, verb: str) -> None:
        by_access = np.asarray(conflict.reshape(-1, size).any(axis=1))
        if by_access.any():
            first = int(other[conflict][0])
            who = "several lanes" if first == _MANY else f"lane {first}"
            raise LaneFault(
                by_access, f"race on shared memory: {verb} by {who} with no barrier in between",
                "put a BarSync between the accesses",
            )  # fmt: skip

    def begin_arrival(self, places: Array, size: int, lanes: Array) -> None:
        """Copies of lanes begin, which write these places at any time from now on."""
        self.note_write(places, size, lanes)
        if self._arriving is None:
            self._arriving = np.zeros(self.data.size, bool)
        self._arriving[_every_byte(places, size)] = True

    def end_arrival(self, places: Array, size: int) -> None:
        """The copies have come to an end; what they bring is stored now."""
        assert self._arriving is not None
        self._arriving[_every_byte(places, size)] = False

    def check_read(self, base: Any, offsets: Array, ty: Type, limit: int) -> None:
        self.check(offsets, ty.size_bytes, limit, ty.alignment)
        self._check_arrived(_every_byte(offsets + base, ty.size_bytes), ty.size_bytes)
        super().check_read(base, offsets, ty, limit)

    def _check_arrived(self, at: Array, size: int) -> None:
        if self._arriving is None:
            return
        early = np.asarray(self._arriving[at].reshape(-1, size).any(axis=1))
        if early.any():
            raise LaneFault(
                early, "a copy to this place of shared memory is under way",
                "wait for it: CopyWait in the lane that copies, and a BarSync before others use it",
            )  # fmt: skip

    def note_read(self, places: Array, size: int, lanes: Array) -> None:
        at, lane, epoch = self._record(places, size, lanes)
        self._check_arrived(at, size)
        fresh_write = (self._write_epoch[at] == epoch) & (self._writer[at] != lane)
        self._fail(fresh_write, size, self._writer[at], "read here, written")
        shared = (self._read_epoch[at] == epoch) & (self._reader[at] != lane)
        self._reader[at] = np.where(shared, _MANY, lane)
        self._read_epoch[at] = epoch
        self._reader[at[self._reader[at] != lane]] = _MANY  # several lanes of this very access

    def note_write(self, places: Array, size: int, lanes: Array) -> None:
        at, lane, epoch = self._record(places, size, lanes)
        self._check_arrived(at, size)
        self._check_write(at, lane, epoch, size, also=None)
        self._writer[at], self._write_epoch[at], self._atomic[at] = lane, epoch, False
        self._fail(self._writer[at] != lane, size, self._writer[at], "written here, written")

    def note_atomic(self, places: Array, size: int, lanes: Array) -> None:
        at, lane, epoch = self._record(places, size, lanes)
        self._check_write(at, lane, epoch, size, also=self._atomic[at])
        again = self._write_epoch[at] == epoch
        self._writer[at] = np.where(again & (self._writer[at] != lane), _MANY, lane)
        self._atomic[at] = ~again | self._atomic[at]  # a plain write before it by the same lane still counts
        self._write_epoch[at] = epoch
        self._writer[at[self._writer[at] != lane]] = _MANY

    def _check_write(self, at: Array, lane: Array, epoch: Array, size: int, also: Array | None) -> None:
        written = (self._write_epoch[at] == epoch) & (self._writer[at] != lane)
        if also is not None:
            written &= ~also
        self._fail(written, size, self._writer[at], "written here, written")
        was_read = (self._read_epoch[at] == epoch) & (self._reader[at] != lane)
        self._fail(was_read, size, self._reader[at], "written here, read")
