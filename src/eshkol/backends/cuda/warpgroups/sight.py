"""Which keys queries see: code that hides scores, reads masks, and leaves out tiles that nothing sees.

Comes in: a `Sight`, and registers with scores of a tile. Goes out: code that makes those -∞ that are not seen, and adds
what a mask adds. A thread has scores of two rows, 8 apart, and of two neighbouring columns of each 8.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from eshkol.backends.cuda.warpgroups.dropout import Dropout
from eshkol.backends.cuda.warpgroups.ptx import Kernel, listed, real

NOTHING = "0fFF800000"  # -∞
LOG2_E = math.log2(math.e)


@dataclass(frozen=True)
class Mask:
    """Truth values, bytes, or float32 that is added; where it lies, in elements, and what addresses it."""

    at: tuple[int, int]  # the byte of the record that has the buffer's address, and so many bytes further
    added: bool
    batch: tuple[int, ...]  # the distance along each axis of the batch,
    row: int  # and from one query to the next: 0 where one row is that of all

    @property
    def size(self) -> int:
        return 4 if self.added else 1

    @property
    def in_pairs(self) -> bool:
        """Whether two neighbours can be loaded together, if the first is even."""
        return all(step % 2 == 0 for step in (*self.batch, self.row)) and self.at[1] % (2 * self.size) == 0


@dataclass(frozen=True)
class Lengths:
    """How many keys samples have, of 32 bits: where they lie, and how far apart along each axis of the batch."""

    at: tuple[int, int]
    batch: tuple[int, ...]


@dataclass(frozen=True)
class Sight:
    """Of query t: keys up to t where it is causal, fewer than a window (0: none) away, and where a mask lets it see;
    of those some may be dropped, of which all is known but what they weigh."""

    causal: bool
    window: int = 0
    mask: Mask | None = None
    dropout: Dropout | None = None
    lengths: Lengths | None = None
    spans: tuple[int, int] | None = None  # where those of packed sequences lie: all beginnings, then all ends

    @property
    def ahead(self) -> int | None:
        """Keys are seen that are fewer places later than this."""
        return 1 if self.causal else self.window or None

    @property
    def behind(self) -> int | None:
        """Keys are seen that are fewer places earlier than this."""
        return self.window or None

    @property
    def in_part(self) -> bool:
        """Whether there may be queries that see nothing."""
        return self.window > 0 or self.mask is not None or self.confined

    @property
    def confined(self) -> bool:
        """Whether something is known of keys that depends on numbers in memory."""
        return self.lengths is not None or self.spans is not None

    @property
    def added(self) -> bool:
        return self.mask is not None and self.mask.added


def hide(k: Kernel, scores: Sequence[str], half: int, those: str, left: str) -> None:
    """Make scores -∞ for which so many columns are left, less or equal to, or greater than, their own."""
    seen_if = {"le": "gt", "gt": "le"}[those]
    for number in range(half * 2, len(scores), 4):
        for beyond in range(2):
            place = number // 4 * 8 + beyond
            seen = k.op(f"setp.{seen_if}.s32", left, place, kind="pred")
            score = scores[number + beyond]
            k.do("selp.f32", score, score, NOTHING, seen)


class Looking:
    """A mask as a thread reads it: where the matrix of its head begins."""

    def __init__(self, k: Kernel, mask: Mask, places: Sequence[str]) -> None:
        """Places along the axes of the batch; those along which a mask does not change may be missing."""
        self.k, self.mask = k, mask
        start = k.op("cvta.to.global.u64", k.word(mask.at[0]), kind="b64")
        self.start = k.op("add.u64", start, mask.at[1], kind="b64")
        for place, step in zip(places, mask.batch, strict=False):
            if step:
                wide = k.op("cvt.u64.u32", place, kind="b64")
                self.start = k.op("mad.lo.u64", wide, step * mask.size, self.start, kind="b64")

    def _from(self, start: str, place: str, step: int) -> str:
        return self.k.op("mad.wide.u32", place, step * self.mask.size, start, kind="b64")

    # --- rows are queries -------------------------------------------------------------------------------

    def rows(self, queries: Sequence[str]) -> list[str]:
        """Where the rows of two queries begin: one place if one row is that of all."""
        return [self._from(self.start, query, self.mask.row) for query in queries] if self.mask.row else [self.start]

    def load(self, rows: Sequence[str], column: str, columns: int, keys: int, *, edge: bool) -> list[list[str]]:
        """What a thread needs of a mask for its two rows, of keys from a column on: for each row a register of each.

        At an edge, columns may be beyond the last key.
        """
        found = []
        for row in rows:
            at, values = self._from(row, column, 1), list[str]()
            for eight in range(columns // 8):
                values += self._two(at, eight * 8, column, keys, edge=edge)
            found.append(values)
        return found * (2 // len(rows))

    def _two(self, at: str, further: int, column: str, keys: int, *, edge: bool) -> list[str]:
        """Two neighbours: numbers, or what is not 0 where they are seen."""
        k, mask = self.k, self.mask
        in_pairs = mask.in_pairs and (not edge or keys % 2 == 0)
        kind = "f32" if mask.added else "b32"
        two = [k.op(f"mov.{kind}", real(0.0) if mask.added else 0, kind=kind) for _ in range(2)]

        def inside(beyond: int) -> str | None:
            return k.less(k.add(column, further + beyond), keys) if edge else None

        if not in_pairs:
            for beyond, register in enumerate(two):
                place = f"[{at}+{(further + beyond) * mask.size}]"
                k.do("ld.global.f32" if mask.added else "ld.global.u8", register, place, when=inside(beyond))
        elif mask.added:
            k.do("ld.global.v2.f32", listed(two), f"[{at}+{further * mask.size}]", when=inside(0))
        else:
            k.do("ld.global.u16", two[0], f"[{at}+{further}]", when=inside(0))
            k.do("shr.u32", two[1], two[0], 8)
            k.do("and.b32", two[0], two[0], 255)
        return two

    def put(self, scores: Sequence[str], values: Sequence[Sequence[str]], factor: str) -> None:
        """Hide scores by what was loaded, or make powers of two of them, and add it."""
        for number, score in enumerate(scores):
            half, place = number // 2 % 2, number // 4 * 2 + number % 2
            self.one(score, values[half][place], factor)

    def one(self, score: str, value: str, factor: str) -> None:
        k = self.k
        if self.mask.added:
            k.do("fma.rn.f32", score, score, factor, k.op("mul.f32", value, real(LOG2_E), kind="f32"))
        else:
            k.do("selp.f32", score, score, NOTHING, k.op("setp.ne.u32", value, 0, kind="pred"))

    # --- rows are keys ----------------------------------------------------------------------------------

    def turned(self, scores: Sequence[str], rows: Sequence[str], column: str, queries: int, factor: str) -> None:
        """The same where rows are keys that there are, and columns queries."""
        k, mask = self.k, self.mask
        load, kind = ("ld.global.f32", "f32") if mask.added else ("ld.global.u8", "b32")
        starts = [self._from(self.start, row, 1) for row in rows]
        if mask.row == 0:
            values = [k.op(load, f"[{start}]", kind=kind) for start in starts]
            for number, score in enumerate(scores):
                self.one(score, values[number // 2 % 2], factor)
            return
        for eight in range(len(scores) // 4):
            for beyond in range(2):
                query = k.op("min.u32", k.add(column, eight * 8 + beyond), queries - 1)
                for half, start in enumerate(starts):
                    value = k.op(load, f"[{self._from(start, query, mask.row)}]", kind=kind)
                    self.one(scores[4 * eight + 2 * half + beyond], value, factor)
