"""Keys of random numbers for those who do not hand keys around: generators, and the one that is everybody's.

A `Generator` counts: its n-th key is `fold_in(root, n)`, computed on the host, so a seed gives the same sequence of
keys on every backend. Keys are NumPy arrays, uint32[2]; what they are drawn with is in `ops/distributions.py`.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from eshkol.errors import TensorError
from eshkol.ops.random import MOST_BLOCKS, host_fold_in, host_split
from eshkol.support.whole import is_whole


def key_of(seed: int) -> Any:
    """The key that a seed stands for: its high and its low 32 bits."""
    if not is_whole(seed, 0) or (plain := int(seed)) >= 1 << 64:
        raise TensorError(f"a seed is an integer from 0 to 2^64 - 1, not {seed!r}")
    return np.array([plain >> 32, plain & 0xFFFFFFFF], np.uint32)


class Generator:
    """A sequence of keys. Any number of threads may take from it; each key is given once."""

    def __init__(self, seed: int = 0) -> None:
        self._lock = threading.Lock()
        self._root, self._count = key_of(seed), 0

    def manual_seed(self, seed: int) -> Generator:
        """Begin again with this seed; gives itself."""
        self.seed(seed)
        return self

    def initial_seed(self) -> int:
        """The seed that its root stands for."""
        high, low = self.state[0]
        return (high << 32) | low

    def __repr__(self) -> str:
        root, count = self.state
        return f"<Generator {root[0]:08x}{root[1]:08x}, {count} keys given>"

    def seed(self, seed: int) -> None:
        """Begin again, as a new generator with this seed."""
        root = key_of(seed)
        with self._lock:
            self._root, self._count = root, 0

    @property
    def root(self) -> Any:
        """What its keys are made of: another object after each `seed`."""
        return self._root

    def next_key(self) -> Any:
        """A key that was not given before."""
        return host_fold_in(*self.next_place())

    def next_place(self) -> tuple[Any, int]:
        """What the next key is made of, for who folds it in elsewhere: the root, and how many keys were given."""
        with self._lock:
            root, count = self._root, self._count
            self._count += 1
        return root, count

    def split(self, count: int = 2) -> list[Generator]:
        """Generators whose keys are independent of this one's and of each other's."""
        if not is_whole(count, 0):
            raise TensorError(f"a generator splits into a number of others, not into {count!r}")
        found = []
        for key in host_split(self.next_key(), count):
            generator = Generator()
            generator._root = key
            found.append(generator)
        return found

    @property
    def state(self) -> tuple[tuple[int, int], int]:
        """The root and how many keys were given, for a checkpoint; may be assigned."""
        with self._lock:
            return (int(self._root[0]), int(self._root[1])), self._count

    @state.setter
    def state(self, state: Any) -> None:
        try:
            (high, low), count = state
            high, low, count = int(high), int(low), int(count)
        except (TypeError, ValueError):
            raise TensorError(f"the state of a generator is ((high, low), count), not {state!r}") from None
        if not (0 <= high < 1 << 32 and 0 <= low < 1 << 32 and 0 <= count < MOST_BLOCKS):
            raise TensorError(f"no generator was ever in the state {state!r}")
        with self._lock:
            self._root, self._count = np.array([high, low], np.uint32), count

    def __getstate__(self) -> Any:
        return self.state

    def __setstate__(self, state: Any) -> None:
        self._lock = threading.Lock()
        self.state = state


def folded(key: Any, number: int) -> Any:
    """A key that is made of another one and a number: independent of those of other numbers."""
    return host_fold_in(key, number)


default = Generator(0)
"""The generator of whoever does not bring one; it begins with seed 0, so that a program repeats itself."""


def seed(number: int) -> None:
    """Let everybody's generator begin again from a seed."""
    default.seed(number)


def next_key() -> Any:
    """The next key of everybody's generator."""
    return default.next_key()
