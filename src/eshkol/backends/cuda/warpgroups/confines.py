"""Attention of samples of several lengths on Hopper, and of sequences that lie one after another.

Comes in: what a `Sight` says of lengths and spans, and which rows a block has. Goes out: code that leaves out tiles
that none of the rows sees, and hides what a row does not see of the others. A sequence's places see each other or not:
so the span of a query is that of the keys which it sees, and that of a key those of the queries which see it.
"""

from __future__ import annotations

from collections.abc import Sequence

from eshkol.backends.cuda.warpgroups.ptx import WARP, Kernel
from eshkol.backends.cuda.warpgroups.sight import NOTHING, Sight, hide

NUMBER = 4  # bytes of a length, and of where a span begins or ends


class Confines:
    """Code of all threads of a block, before they part; then of those that have scores of two rows, 8 apart."""

    def __init__(self, k: Kernel, sight: Sight, places: Sequence[str], keys: int, thread: str) -> None:
        self.k, self.sight, self.count = k, sight, keys
        if sight.lengths is not None:
            start = self._start(sight.lengths.at)
            for place, step in zip(places, sight.lengths.batch, strict=False):
                if step:
                    start = k.op("mad.wide.u32", place, step * NUMBER, start, kind="b64")
            length = k.op("max.s32", k.op("ld.global.s32", f"[{start}]"), 0)
            self.length = k.op("min.s32", length, keys)
        if sight.spans is not None:
            self.spans, self.lane = self._start(sight.spans), k.op("and.b32", thread, WARP - 1)

    def _start(self, at: tuple[int, int]) -> str:
        k = self.k
        start = k.op("cvta.to.global.u64", k.word(at[0]), kind="b64")
        return k.op("add.u64", start, at[1], kind="b64")

    def _span(self, row: str) -> tuple[str, str]:
        """Where that of a row begins, and where it ends."""
        k = self.k
        at = k.op("mad.wide.u32", row, NUMBER, self.spans, kind="b64")
        return k.op("ld.global.s32", f"[{at}]"), k.op("ld.global.s32", f"[{at}+{NUMBER * self.count}]")

    def fewer(self, end: str, high: int) -> str:
        """The tile behind the last that has keys which there are, where others are keys."""
        k = self.k
        if self.sight.lengths is None:
            return end
        return k.op("min.u32", end, k.divided(k.add(self.length, high - 1), high)[0])

    def within(self, begin: str | int, end: str, first: str, rows: int, high: int) -> tuple[str | int, str]:
        """The first of the tiles, so high, that are within spans of so many rows, and the one behind the last."""
        k = self.k
        if self.sight.spans is not None:
            found: list[list[str]] = [[], []]
            for some in range(0, rows, WARP):
                row = k.op("min.u32", k.add(first, some), self.count - 1)
                row = k.op("min.u32", k.add(row, self.lane), self.count - 1)
                for known, number in zip(found, self._span(row), strict=True):
                    known.append(number)
            self.least_begin, self.most_begin = (self._of_all(how, found[0]) for how in ("min", "max"))
            self.least_end, self.most_end = (self._of_all(how, found[1]) for how in ("min", "max"))
            first_seen = k.divided(self.least_begin, high)[0]
            begin = first_seen if begin == 0 else k.op("max.u32", first_seen, begin)
            end = k.op("min.u32", end, k.divided(k.add(self.most_end, high - 1), high)[0])
        return begin, end

    def _of_all(self, how: str, numbers: Sequence[str]) -> str:
        """The least or the greatest of what the lanes of a warp have."""
        k, found = self.k, numbers[0]
        for number in numbers[1:]:
            found = k.op(f"{how}.s32", found, number)
        return k.op(f"redux.sync.{how}.s32", found, "0xffffffff")

    def settle(self, rows: Sequence[str]) -> None:
        """Load the spans of a thread's rows, of those that there are."""
        if self.sight.spans is not None:
            self.own = [self._span(row) for row in rows]

    def hide(self, scores: Sequence[str], start: str, column: str, high: int) -> None:
        """Hide columns, of a tile from a place on, that are not within the spans of rows."""
        if self.sight.spans is None:
            return
        k = self.k
        ends = k.op("setp.gt.s32", k.add(start, high), self.least_end, kind="pred")
        begins = k.op("setp.lt.s32", start, self.most_begin, kind="pred")
        with k.only(k.op("or.pred", ends, begins, kind="pred")):
            for half, (begin, end) in enumerate(self.own):
                hide(k, scores, half, "le", k.op("sub.s32", end, column))
                hide(k, scores, half, "gt", k.op("sub.s32", begin, column))

    def hide_columns(self, scores: Sequence[str], start: str, column: str, high: int) -> None:
        """Hide columns that are beyond the length, where they are keys."""
        if self.sight.lengths is None:
            return
        k = self.k
        with k.only(k.op("setp.gt.s32", k.add(start, high), self.length, kind="pred")):
            for half in range(2):
                hide(k, scores, half, "le", k.op("sub.s32", self.length, column))

    def hide_rows(self, scores: Sequence[str], row: str, first: str, high: int) -> None:
        """Hide rows that are beyond the length, where they are keys."""
        if self.sight.lengths is None:
            return
        k = self.k
        with k.only(k.op("setp.gt.s32", k.add(first, high), self.length, kind="pred")):
            for half in range(2):
                there = k.op("setp.lt.s32", k.add(row, 8 * half), self.length, kind="pred")
                for number in range(half * 2, len(scores), 4):
                    for score in scores[number : number + 2]:
                        k.do("selp.f32", score, score, NOTHING, there)
