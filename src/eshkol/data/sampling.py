"""Samplers: in which order the indices of a data set come, for each epoch.

A sampler has `order(epoch)`, an array of indices that depends on nothing else, so that a loader can go on in the middle
of an epoch. Any list of indices, and any object that can be walked, is taken as one too; it must give the same again
when a loader is resumed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from eshkol.data.draws import Pass, fold, root, seed_of, uniform
from eshkol.errors import DataError, IndexOutOfRange, UnknownLength
from eshkol.support.whole import is_whole


class Sampler(ABC):
    """An order of indices for each epoch."""

    @abstractmethod
    def order(self, epoch: int) -> Any:
        """The indices of an epoch, an array of int64."""

    @abstractmethod
    def __len__(self) -> int:
        """How many indices an epoch has."""


class InOrder(Sampler):
    """All samples, from the first to the last."""

    def __init__(self, count: int) -> None:
        self.count = count

    def order(self, epoch: int) -> Any:
        return np.arange(self.count)

    def __len__(self) -> int:
        return self.count


class Shuffled(Sampler):
    """All samples, in another order each epoch."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.seed = count, seed_of(seed)

    def order(self, epoch: int) -> Any:
        return Pass(self.seed, epoch).order(self.count)

    def __len__(self) -> int:
        return self.count


class WeightedSampler(Sampler):
    """Samples drawn with replacement, each with a probability in proportion to its weight."""

    def __init__(self, weights: Any, count: int | None = None, seed: int = 0) -> None:
        plain = np.asarray(weights, np.float64)
        if plain.ndim != 1 or not plain.size or not np.isfinite(plain).all() or plain.min() < 0 or plain.sum() <= 0:
            raise DataError("WeightedSampler takes a weight for each sample, none negative and not all 0")
        self._ends, self.count, self.seed = np.cumsum(plain), len(plain) if count is None else count, seed_of(seed)

    def order(self, epoch: int) -> Any:
        where = uniform(fold(fold(root(self.seed), epoch), np.arange(self.count))) * self._ends[-1]
        return np.minimum(
            np.searchsorted(self._ends, where, "right"), np.flatnonzero(np.diff(self._ends, prepend=0))[-1]
        )

    def __len__(self) -> int:
        return self.count


class DistributedSampler(Sampler):
    """The share of one process among several: all use the same seed, and every sample is in one share.

    Shares are equally long: the first samples come twice where they must, or with `drop_last=True` the last are left
    out.
    """

    def __init__(
        self, data: Any, rank: int, world: int, *, shuffle: bool = True, seed: int = 0, drop_last: bool = False
    ) -> None:
        if not 0 <= rank < world:
            raise DataError(f"DistributedSampler: rank {rank} of {world}: ranks are numbers from 0 to {world - 1}")
        self.total = int(data) if is_whole(data) else len(data)
        if not self.total:
            raise DataError("DistributedSampler: the data set is empty")
        self.rank, self.world, self.shuffle, self.seed = rank, world, shuffle, seed_of(seed)
        self.count = self.total // world if drop_last else -(-self.total // world)

    def order(self, epoch: int) -> Any:
        order = Pass(self.seed, epoch).order(self.total) if self.shuffle else np.arange(self.total)
        return np.resize(order, self.count * self.world)[self.rank :: self.world]

    def __len__(self) -> int:
        return self.count


class GivenOrder(Sampler):
    """The indices that a user's object gives when it is walked."""

    def __init__(self, indices: Any, total: int) -> None:
        if not hasattr(indices, "__iter__") or iter(indices) is indices:
            raise DataError(
                "sampler= takes a Sampler, a list of indices, or an object that can be walked once for each epoch"
            )
        self.indices, self.total = indices, total

    def order(self, epoch: int) -> Any:
        if hasattr(self.indices, "set_epoch"):
            self.indices.set_epoch(epoch)
        found = np.asarray(self.indices if isinstance(self.indices, np.ndarray) else list(self.indices))
        if found.size == 0:
            return np.zeros(0, np.int64)
        if found.ndim != 1 or found.dtype.kind not in "iu":
            raise DataError("a sampler gives indices, which are integers")
        if found.min() < 0 or found.max() >= self.total:
            wrong = found[(found < 0) | (found >= self.total)][0]
            raise IndexOutOfRange(f"the sampler gives index {wrong}, and the data set has {self.total} samples")
        return found.astype(np.int64)

    def __len__(self) -> int:
        try:
            return len(self.indices)
        except TypeError:
            raise UnknownLength(
                "this sampler does not say how many indices it gives", hint="give it a __len__"
            ) from None
