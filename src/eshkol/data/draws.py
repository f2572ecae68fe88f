"""Random numbers that depend on nothing but what they are for: a seed, an epoch, a sample and a draw of it.

Comes in: a seed, and numbers that are folded into it. Goes out: keys (unsigned 64-bit numbers, one for each sample),
and from keys uniform numbers, integers and permutations. There is no state: the numbers of a sample are the same in
whatever order, batch, thread or process it is loaded, and on every machine, as only integers are computed with.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DataError
from eshkol.support.whole import is_whole

_ONE, _ALL = np.uint64(1), (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15  # of the golden ratio: spreads consecutive numbers over all 64 bits
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_HALF = np.uint64(32)
_SHIFTS = tuple(np.uint64(n) for n in (30, 27, 31))


def _mixed(x: Any) -> Any:
    """Each number as another one: a bijection in which every bit depends on every bit (the finalizer of SplitMix64)."""
    x ^= x >> _SHIFTS[0]
    x *= _FIRST
    x ^= x >> _SHIFTS[1]
    x *= _SECOND
    x ^= x >> _SHIFTS[2]
    return x


def seed_of(seed: Any) -> int:
    """A seed that was given, checked."""
    if not is_whole(seed, 0) or (plain := int(seed)) >= 1 << 64:
        raise DataError(f"a seed is an integer from 0 to 2^64 - 1, not {seed!r}")
    return plain


def fold(key: Any, number: Any) -> Any:
    """Keys that are made of keys and numbers, which broadcast."""
    if isinstance(number, int):
        steps: Any = np.uint64((number + 1) * _STEP & _ALL)
    else:
        steps = (np.atleast_1d(number).astype(np.uint64) + _ONE) * np.uint64(_STEP)
    made = _mixed(np.atleast_1d(np.asarray(key, np.uint64)) + steps)  # arrays wrap around; numbers would warn of it
    return made if np.ndim(key) or np.ndim(number) else made[0]


def root(seed: int) -> Any:
    """The key that a seed stands for."""
    return fold(np.uint64(0), seed)


def uniform(keys: Any, draw: Any = 0) -> Any:
    """Numbers from 0 up to 1, float64, one for each key; `draw` counts those that one key gives."""
    return (fold(keys, draw) >> np.uint64(11)) * 2.0**-53


def integers(keys: Any, bound: Any, draw: Any = 0) -> Any:
    """Integers from 0 up to `bound` (below 2^32, for each key or for all)."""
    return (((fold(keys, draw) >> _HALF) * np.asarray(bound, np.uint64)) >> _HALF).astype(np.int64)


def permutation(count: int, key: Any) -> Any:
    """The numbers from 0 up to `count` in an order that the key decides."""
    return np.argsort(
        fold(key, np.arange(count, dtype=np.uint64))
    )  # no two are equal: every way to sort gives the same


@lru_cache(64)
def _base(seed: int, epoch: int, purpose: int) -> Any:
    return fold(fold(root(seed), epoch), purpose)


class Pass(NamedTuple):
    """One pass over the data: what randomness of its samples depends on, beside their indices."""

    seed: int = 0
    epoch: int = 0

    def keys(self, indices: Any, depth: int) -> Any:
        """A key for each sample; `depth` tells apart those who draw for the same sample one after another."""
        return fold(_base(self.seed, self.epoch, 1 + depth), indices)

    def order(self, count: int) -> Any:
        """The order in which a shuffled pass goes through so many samples."""
        return permutation(count, _base(self.seed, self.epoch, 0))
