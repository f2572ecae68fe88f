"""`ek.utils.data`: data sets, samplers and loaders as PyTorch calls them; what they do is in `eshkol.data`.

Comes in: PyTorch's arguments (`num_workers`, `collate_fn`, `generator`). Goes out: objects of `eshkol.data`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from eshkol.data import (
    ArrayDataset,
    ConcatDataset,
    Dataset,
    DistributedSampler,
    InOrder,
    IterableDataset,
    Sampler,
    Shuffled,
    Subset,
    WeightedSampler,
    collate,
)
from eshkol.data import DataLoader as Loader
from eshkol.data import random_split as split
from eshkol.errors import DataError
from eshkol.tensors.keys import Generator, next_key
from eshkol.tensors.make import asarray
from eshkol.tensors.sizes import no_attribute

__all__ = [
    "BatchSampler", "ConcatDataset", "DataLoader", "Dataset", "DistributedSampler", "IterableDataset", "RandomSampler",
    "Sampler", "SequentialSampler", "Subset", "SubsetRandomSampler", "TensorDataset",
    "WeightedRandomSampler", "default_collate", "get_worker_info", "random_split",
]  # fmt: skip


def _seed(generator: Generator | None) -> int:
    high, low = (next_key() if generator is None else generator.next_key()).tolist()
    return int(high << 31 | low >> 1)


class _Walked:
    """A sampler that is walked: each walk is another epoch."""

    _epoch = 0

    def __iter__(self) -> Iterator[int]:
        self._epoch += 1
        return iter(self.order(self._epoch - 1).tolist())  # type: ignore[attr-defined]


class RandomSampler(_Walked, Shuffled):
    """All samples, in another order each time; or so many, drawn with replacement."""

    def __init__(
        self, data_source: Any, replacement: bool = False, num_samples: int | None = None,
        generator: Generator | None = None,
    ) -> None:  # fmt: skip
        super().__init__(len(data_source), _seed(generator))
        self.replacement, self.num_samples = replacement, num_samples or self.count

    def order(self, epoch: int) -> Any:
        if self.replacement:
            return np.random.default_rng([self.seed, epoch]).integers(0, self.count, self.num_samples)
        return super().order(epoch)[: self.num_samples]

    def __len__(self) -> int:
        return self.num_samples


class SequentialSampler(_Walked, InOrder):
    """All samples, from the first to the last."""

    def __init__(self, data_source: Any) -> None:
        super().__init__(len(data_source))


class WeightedRandomSampler(_Walked, WeightedSampler):
    """Samples drawn with replacement, in proportion to weights."""

    def __init__(
        self, weights: Any, num_samples: int, replacement: bool = True, generator: Generator | None = None
    ) -> None:
        if not replacement:
            raise DataError("WeightedRandomSampler draws with replacement", hint="leave out replacement=False")
        super().__init__(weights, num_samples, _seed(generator))


class SubsetRandomSampler(_Walked, Shuffled):
    """Samples of given indices, in another order each time."""

    def __init__(self, indices: Sequence[int], generator: Generator | None = None) -> None:
        super().__init__(len(indices), _seed(generator))
        self.indices = np.asarray(indices, np.int64)

    def order(self, epoch: int) -> Any:
        return self.indices[super().order(epoch)]


class BatchSampler:
    """The indices of a sampler in lists of one size."""

    def __init__(self, sampler: Any, batch_size: int, drop_last: bool) -> None:
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        batch: list[int] = []
        for index in self.sampler:
            batch.append(int(index))
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self) -> int:
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (rest > 0 and not self.drop_last)


class DataLoader(Loader):
    """Batches of a data set, with PyTorch's arguments; `num_workers` threads load ahead.

    `pin_memory` changes nothing where there is no GPU, and `persistent_workers` nothing at all: workers stay.
    A `generator` gives the seed of the shuffling.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = False,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int | None = None,
        collate_fn: Callable[[list[Any]], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        **more: Any,
    ) -> None:
        if batch_sampler is not None:
            sampler, batch_size, drop_last = batch_sampler.sampler, batch_sampler.batch_size, batch_sampler.drop_last
        if worker_init_fn is not None or batch_size is None:
            what = "worker_init_fn" if worker_init_fn is not None else "batch_size=None"
            raise DataError(f"DataLoader: {what} is not there", hint="map samples with data.map(function, random=True)")
        if generator is not None:
            more["seed"] = _seed(generator)
        super().__init__(
            dataset, batch_size, bool(shuffle), sampler=sampler, drop_last=drop_last, collate=collate_fn,
            workers=num_workers, timeout=timeout or None, prefetch=prefetch_factor or 2,
            **{"pin": pin_memory} | more,
        )  # fmt: skip

    @property
    def dataset(self) -> Any:
        """The data set."""
        return self.data

    @property
    def num_workers(self) -> int:
        """How many threads load ahead."""
        return self.workers


class TensorDataset(ArrayDataset):
    """Tensors of equal length, a sample being a tuple with a row of each, also of one tensor alone."""

    def __init__(self, *tensors: Any) -> None:
        super().__init__(*tensors)
        self._single = False

    @property
    def tensors(self) -> tuple[Any, ...]:
        """The arrays that it is made of, as tensors."""
        return tuple(asarray(a) for a in self.arrays)


def random_split(dataset: Any, lengths: Sequence[float], generator: Generator | None = None) -> list[Subset]:
    """Parts of a data set, chosen at random: numbers of samples, or shares that make 1."""
    return split(dataset, lengths, _seed(generator))


def default_collate(batch: Sequence[Any]) -> Any:
    """A batch of samples: numbers and arrays side by side, in the structure of the samples."""
    return collate(list(batch))


def get_worker_info() -> None:
    """None: workers here do not run the code that makes a data set."""


def __getattr__(name: str) -> Any:
    raise no_attribute(name, dict.fromkeys(__all__), "eshkol.utils.data")
