"""Streams: samples without indices, read as they come; mapped, shuffled through a buffer, dealt out to processes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import islice
from typing import Any

from eshkol.data.dataset import Mapper
from eshkol.data.draws import Pass, fold, integers, permutation
from eshkol.errors import DataError


class IterableDataset(ABC):
    """A stream of samples, without indices: what is read as it comes. It can be walked again for each epoch."""

    @abstractmethod
    def __iter__(self) -> Iterator[Any]:
        """The samples from the first on."""

    def stream(self, at: Pass) -> Iterator[Any]:
        """The samples of one pass over the data."""
        return iter(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, a stream>"

    @property
    def draws(self) -> int:
        """How many times random numbers are drawn for a sample, one after another."""
        return 0

    def map(self, function: Any, *, on: Any = None, random: bool = False) -> MappedStream:
        """The stream with a transform or a function of each sample, or of the part of it that `on` names."""
        return MappedStream(self, function, on=on, random=random)

    def shuffled(self, buffer: int = 1000) -> ShuffledStream:
        """The stream in another order each epoch: each sample is drawn from `buffer` that were read."""
        return ShuffledStream(self, buffer)

    def shard(self, rank: int, world: int) -> ShardedStream:
        """Every world-th sample, beginning with that of the rank."""
        return ShardedStream(self, rank, world)


class MappedStream(IterableDataset):
    """A stream with a transform or a function applied to each sample."""

    def __init__(self, data: IterableDataset, function: Any, *, on: Any = None, random: bool = False) -> None:
        self.data, self._mapper = data, Mapper(function, on, random)

    def __iter__(self) -> Iterator[Any]:
        return self.stream(Pass())

    def stream(self, at: Pass) -> Iterator[Any]:
        below = self.data.draws
        for number, sample in enumerate(self.data.stream(at)):
            yield self._mapper.one(sample, at.keys(number, below) if self._mapper.draws else None)

    @property
    def draws(self) -> int:
        return self.data.draws + int(self._mapper.draws)


class ShuffledStream(IterableDataset):
    """A stream in another order each epoch, as far as a buffer of samples allows."""

    def __init__(self, data: IterableDataset, buffer: int) -> None:
        if buffer < 1:
            raise DataError(f"shuffled(buffer={buffer}): a buffer holds at least one sample")
        self.data, self.buffer = data, buffer

    def __iter__(self) -> Iterator[Any]:
        return self.stream(Pass())

    def stream(self, at: Pass) -> Iterator[Any]:
        key = at.keys(0, self.data.draws)
        held: list[Any] = []
        drawn = 0
        for sample in self.data.stream(at):
            if len(held) < self.buffer:
                held.append(sample)
                continue
            place = int(integers(fold(key, drawn), len(held)))
            drawn += 1
            given, held[place] = held[place], sample
            yield given
        for place in permutation(len(held), fold(key, drawn)):
            yield held[place]

    @property
    def draws(self) -> int:
        return self.data.draws + 1


class ShardedStream(IterableDataset):
    """Every world-th sample of a stream."""

    def __init__(self, data: IterableDataset, rank: int, world: int) -> None:
        if not 0 <= rank < world:
            raise DataError(f"shard({rank}, {world}): the rank is a number from 0 up to the number of processes")
        self.data, self.rank, self.world = data, rank, world

    def __iter__(self) -> Iterator[Any]:
        return self.stream(Pass())

    def stream(self, at: Pass) -> Iterator[Any]:
        return islice(self.data.stream(at), self.rank, None, self.world)

    @property
    def draws(self) -> int:
        return self.data.draws
