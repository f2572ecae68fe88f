"""Dropout of attention on Hopper: random bits for the weights that a thread has in registers.

Comes in: a `Dropout`, and registers with what a thread has of a tile: of two rows, 8 apart, two neighbouring columns of
each 8. Goes out: code that finds for each whether it is dropped. The bits are those of `support/threefry.py`, a block
of 8 bytes for what a thread has in 16 columns. Where rows are queries that is a block; where they are keys it is one
half of each of two blocks, of which the lane beside it, four away, has the others: each draws one, and they exchange.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eshkol.backends.cuda.warpgroups.ptx import Kernel
from eshkol.support import threefry

WORD = 4  # bytes
APART = 4  # lanes between rows that share blocks
Drop = Callable[[int, str], None]  # what is done with the number of a register, and whether it is kept


@dataclass(frozen=True)
class Dropout:
    """Weights are dropped whose byte is below a number."""

    below: int
    key: tuple[int, int]  # the byte of the record that has the address of the key, and so many bytes further

    @property
    def kept(self) -> float:
        """What the others are multiplied with."""
        return threefry.kept(self.below)


class Dropping:
    """Code that draws: of a thread's rows, of so many queries and keys of a head, along tiles."""

    def __init__(self, k: Kernel, dropout: Dropout, queries: int, keys: int, lane: str) -> None:
        self.k, self.below = k, dropout.below
        self.rows, self.columns = threefry.blocks(queries, keys)
        self.quarter, self.line = k.op("and.b32", lane, 3), k.op("shr.u32", lane, 2)
        start = k.op("cvta.to.global.u64", k.word(dropout.key[0]), kind="b64")
        start = k.op("add.u64", start, dropout.key[1], kind="b64")
        key = tuple(k.op("ld.global.b32", f"[{start}+{WORD * n}]") for n in range(2))
        self.words = threefry.WordArithmetic(
            lambda x, y: k.op("add.u32", x, y),
            lambda x, y: k.op("xor.b32", x, y),
            lambda x, by: k.op("shf.l.wrap.b32", x, x, by),
        )
        self.schedule = threefry.schedule(self.words, (key[0], key[1]))

    def of_queries(self, head: str, row: str, start: str, columns: int, do: Drop) -> None:
        """Where rows are queries, from a thread's first on, and columns keys from a place on."""
        k = self.k
        line = k.op("mad.lo.u32", head, self.rows, k.op("shr.u32", k.op("add.u32", row, self.line), 1))
        across = k.op("add.u32", k.op("shr.u32", start, 2), self.quarter)
        first = k.op("mad.wide.u32", line, self.columns, k.op("cvt.u64.u32", across, kind="b64"), kind="b64")
        for sixteen in range(columns // threefry.SIDE):
            words = self._block(first, sixteen * threefry.COLUMNS)
            for beyond, word in enumerate(words):
                self._each(word, lambda row, column, n=8 * sixteen + beyond: n + 4 * column + 2 * row, do)  # type: ignore[misc]

    def of_keys(self, head: str, row: str, start: str, columns: int, do: Drop) -> None:
        """Where rows are keys, from a thread's first on, and columns queries from a place on."""
        k = self.k
        odd = k.op("and.b32", self.line, 1)
        is_odd = k.op("setp.ne.u32", odd, 0, kind="pred")
        line = k.op("add.u32", k.op("shr.u32", start, 1), k.op("mad.lo.u32", self.quarter, 2, odd))
        line = k.op("mad.lo.u32", head, self.rows, line)
        across = k.op("mad.lo.u32", k.op("shr.u32", row, 4), threefry.COLUMNS, k.op("shr.u32", self.line, 1))
        first = k.op("mad.wide.u32", line, self.columns, k.op("cvt.u64.u32", across, kind="b64"), kind="b64")
        for sixteen in range(columns // threefry.SIDE):
            even_key, odd_key = self._block(first, sixteen * threefry.ROWS * self.columns)
            mine = k.op("selp.b32", odd_key, even_key, is_odd)
            others = k.op("selp.b32", even_key, odd_key, is_odd)
            theirs = k.op("shfl.sync.bfly.b32", others, APART, 31, "0xffffffff")
            words = k.op("selp.b32", theirs, mine, is_odd), k.op("selp.b32", mine, theirs, is_odd)
            for beyond, word in enumerate(words):
                self._each(word, lambda query, key, n=8 * sixteen + beyond: n + 4 * query + 2 * key, do)  # type: ignore[misc]

    def _block(self, first: str, further: int) -> tuple[str, str]:
        k = self.k
        counter = k.op("add.u64", first, further, kind="b64")
        low, high = k.registers(2, "b32")
        k.do("mov.b64", f"{{{low}, {high}}}", counter)
        found: tuple[str, str] = threefry.mixed(self.words, self.schedule, (high, low))
        return found

    def _each(self, word: str, number: Callable[[int, int], int], do: Drop) -> None:
        """The bytes of a word, of a query or the one 8 after it, and of a key or the one 8 after it."""
        k = self.k
        for query in range(2):
            for key in range(2):
                shift = threefry.shift_of(8 * query, 8 * key)
                byte = word if shift == 24 else k.op("and.b32", word, (threefry.BYTES - 1) << shift)
                kept = k.op("setp.ge.u32", byte, self.below << shift, kind="pred")
                do(number(query, key), kept)


def apply(scores: Sequence[str], k: Kernel) -> Drop:
    """Make a register 0 if it is dropped."""
    return lambda number, kept: k.do("selp.f32", scores[number], scores[number], "0f00000000", kept)


def mark(scores: Sequence[str], k: Kernel) -> Drop:
    """Make a register negative if it is dropped: rounded to no less than 0 it is none, and without its sign all."""

    def do(number: int, kept: str) -> None:
        negative = k.op("neg.f32", scores[number], kind="f32")
        k.do("selp.f32", scores[number], scores[number], negative, kept)

    return do
