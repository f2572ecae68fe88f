"""Where choices come from: a seed, which is quick, or hypothesis, which shrinks what fails."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from hypothesis import strategies as st

T = TypeVar("T")


class Chooser(Protocol):
    """Makes choices."""

    def integer(self, low: int, high: int) -> int:
        """A number from low to high, both included."""

    def pick(self, options: Sequence[T]) -> T:
        """One of several."""


class Seeded:
    """Choices that follow from a number."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.randint(low, high)

    def pick(self, options: Sequence[T]) -> T:
        return options[self._random.randrange(len(options))]


class Drawn:
    """Choices that hypothesis makes."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return int(self._draw(st.integers(low, high)))

    def pick(self, options: Sequence[T]) -> T:
        return options[self.integer(0, len(options) - 1)]


def chance(c: Chooser, percent: int) -> bool:
    """True so often."""
    return c.integer(1, 100) <= percent


def generator(c: Chooser) -> np.random.Generator:
    """Numbers for arrays."""
    return np.random.default_rng(c.integer(0, 2**32 - 1))


def some(c: Chooser, options: Sequence[T], low: int, high: int) -> list[T]:
    """Several of several, possibly the same one more than once."""
    return [c.pick(options) for _ in range(c.integer(low, high))]


def order(c: Chooser, count: int) -> tuple[int, ...]:
    """A permutation."""
    left = list(range(count))
    return tuple(left.pop(c.integer(0, len(left) - 1)) for _ in range(count))
