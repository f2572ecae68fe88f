"""Threefry2x32 with 20 rounds, and which weights of attention it drops: one definition for tensors, programs, kernels.

Comes in: a key of two words of 32 bits, and a counter of two. Goes out: two words. It is written for any arithmetic on
such words: arrays of NumPy, scalars of kernels, registers (Salmon, Moraes, Dror, Shaw: "Parallel random numbers: as
easy as 1, 2, 3", 2011).

With dropout, attention takes a byte of a block for each weight, and drops it if the byte is less than a threshold. A
block of 8 bytes is that of two queries and four keys, chosen such that what a thread holds of a product of matrices is
whole blocks (accumulators have two rows, 8 apart, and pairs of neighbours in every 8 columns), whether rows are queries
or keys: queries t and t + 8, keys u, u + 1, u + 8 and u + 9, of each 16.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

SIDE = 16  # queries, and keys, of which blocks have some
ROWS, COLUMNS = 8, 4  # of blocks in a square of that side
BYTES = 256  # the number of values that a byte has
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_MASK = 0xFFFFFFFF


class WordArithmetic(NamedTuple):
    """Arithmetic on 32-bit words: of NumPy's arrays, or of a kernel's scalars."""

    add: Callable[[Any, Any], Any]
    xor: Callable[[Any, Any], Any]
    rotate: Callable[[Any, int], Any]


ARRAYS = WordArithmetic(np.add, np.bitwise_xor, lambda x, by: (x << by) | (x >> (32 - by)))
NUMBERS = WordArithmetic(lambda x, y: (x + y) & _MASK, operator.xor, lambda x, by: (x << by) & _MASK | x >> (32 - by))


def schedule(words: WordArithmetic, key: tuple[Any, Any]) -> tuple[Any, Any, Any]:
    """What is added in turns: the key, and its parity."""
    return *key, words.xor(words.xor(key[0], key[1]), _PARITY)


def threefry(words: WordArithmetic, key: tuple[Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """The two words of a block."""
    return mixed(words, schedule(words, key), counter)


def mixed(words: WordArithmetic, keys: tuple[Any, Any, Any], counter: tuple[Any, Any]) -> tuple[Any, Any]:
    """The two words of a block, for a schedule that many have in common."""
    add, xor, rotate = words
    x, y = add(counter[0], keys[0]), add(counter[1], keys[1])
    for group in range(5):
        for amount in _ROTATIONS[group % 2]:
            x = add(x, y)
            y = xor(rotate(y, amount), x)
        x = add(x, keys[(group + 1) % 3])
        y = add(add(y, keys[(group + 2) % 3]), group + 1)
    return x, y


# --- which weights are dropped ------------------------------------------------------------------------


def blocks(queries: int, keys: int) -> tuple[int, int]:
    """Rows and columns of the blocks that so many weights take."""
    return -(-queries // SIDE) * ROWS, -(-keys // SIDE) * COLUMNS


def block_of(t: Any, u: Any) -> tuple[Any, Any]:
    """The row and column of the block that has the byte of a query and a key."""
    return t // SIDE * ROWS + t % ROWS, u // SIDE * COLUMNS + u % ROWS // 2


def shift_of(t: Any, u: Any) -> Any:
    """Where the byte is in its word, in bits. The word is the first of the block for even keys, else the second."""
    return t // ROWS % 2 * 16 + u // ROWS % 2 * 8


def threshold(p: float) -> int:
    """The number of values of a byte that are dropped: p to the nearest, but something unless p is 0."""
    return min(max(round(p * BYTES), int(p > 0)), BYTES)


def kept(below: int) -> float:
    """What weights are multiplied with that are not dropped, so that their mean stays what it was."""
    return BYTES / (BYTES - below) if below < BYTES else 1.0


def dropped(key: Any, heads: int, queries: int, keys: int, below: int) -> Any:
    """Whether weights are dropped, of heads × queries × keys, for one key: an array of truth values."""
    rows, columns = blocks(queries, keys)
    counter = np.arange(heads * rows * columns, dtype=np.uint64)
    words = np.asarray(key, np.uint32)
    with np.errstate(over="ignore"):
        high, low = ((counter >> np.uint64(n)).astype(np.uint32) for n in (32, 0))
        found = threefry(ARRAYS, (words[0], words[1]), (high, low))
    return chosen(np.stack(found).reshape(2, heads, rows, columns), queries, keys, below)


def chosen(words: Any, queries: int, keys: int, below: int) -> Any:
    """The same, from the first and the second words of all blocks."""
    t, u = np.arange(queries)[:, None], np.arange(keys)
    row, column = block_of(t, u)
    found = np.where(u % 2 == 0, words[0][..., row, column], words[1][..., row, column])
    return (found >> shift_of(t, u).astype(np.uint32) & np.uint32(BYTES - 1)) < below
