"""Which parts of a memory are taken: blocks by their first byte, handed out and taken back.

Comes in: sizes. Goes out: offsets, aligned. Nothing here touches the memory itself; who asks makes it large enough.
"""

from __future__ import annotations

from bisect import bisect_left, insort

ALIGNMENT = 64  # a line of the cache


class Blocks:
    """Free parts between `start` and `end`, of which neighbours are joined; of those that fit, the least is used."""

    def __init__(self, start: int, end: int) -> None:
        self.end = end
        self._free: list[tuple[int, int]] = [(start, end - start)]  # (offset, size), by offset
        self._by_size: list[tuple[int, int]] = [(end - start, start)]
        self._taken: dict[int, int] = {}  # offset → size

    def take(self, size: int) -> int | None:
        """Where a block of so many bytes begins; None where no free part is as large."""
        size = max(ALIGNMENT, -(-size // ALIGNMENT) * ALIGNMENT)
        place = bisect_left(self._by_size, (size, 0))
        if place == len(self._by_size):
            return None
        room, offset = self._by_size[place]
        self._remove(offset, room)
        if room > size:
            self._add(offset + size, room - size)
        self._taken[offset] = size
        return offset

    def drop(self, offset: int) -> None:
        """Take a block back."""
        size = self._taken.pop(offset)
        place = bisect_left(self._free, (offset, 0))
        if place < len(self._free) and self._free[place][0] == offset + size:
            behind = self._free[place]
            self._remove(*behind)
            size += behind[1]
        if place and sum(self._free[place - 1]) == offset:
            before = self._free[place - 1]
            self._remove(*before)
            offset, size = before[0], before[1] + size
        self._add(offset, size)

    @property
    def used_end(self) -> int:
        """The byte behind the last one that is taken, or was handed out before it."""
        if self._free and sum(self._free[-1]) == self.end:
            return self._free[-1][0]
        return self.end

    def _add(self, offset: int, size: int) -> None:
        insort(self._free, (offset, size))
        insort(self._by_size, (size, offset))

    def _remove(self, offset: int, size: int) -> None:
        del self._free[bisect_left(self._free, (offset, size))]
        del self._by_size[bisect_left(self._by_size, (size, offset))]
