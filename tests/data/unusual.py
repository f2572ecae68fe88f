"""Data sets of which something goes wrong, for loaders and their workers. Worker processes import this module."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from eshkol.data import Dataset, IterableDataset, Pass

DEATHS = {
    "exit": lambda: os._exit(7),
    "leave": lambda: sys.exit(5),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),  # as the system does where memory has run out
    "memory": lambda: bytearray(1 << 62),
}


class Numbered(Dataset):
    """Samples (the index as an image, the index), none of which is taken in batches."""

    def __init__(
        self, count: int, broken: tuple[int, ...] = (), fatal: int = -1, slow: float = 0.0, death: str = "exit"
    ) -> None:
        self.count, self.broken, self.fatal, self.slow, self.death = count, broken, fatal, slow, death

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> Any:
        time.sleep(self.slow)
        if index in self.broken:
            raise ValueError(f"no {index} here")
        if index == self.fatal:
            DEATHS[self.death]()
        return np.full((4, 5), index, np.float32), index


class Together(Dataset):
    """A data set of samples (image, label) with a row of an array besides."""

    def __init__(self, data: Dataset, rows: Any) -> None:
        self.data, self.rows = data, rows

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> Any:
        return self.sample(index, Pass())

    def sample(self, index: int, at: Pass) -> Any:
        return (*self.data.sample(index, at), self.rows[index])


class Counting(IterableDataset):
    """The numbers up to a count, and then perhaps an error."""

    def __init__(self, count: int, fails: bool = False) -> None:
        self.count, self.fails = count, fails

    def __iter__(self) -> Iterator[int]:
        yield from range(self.count)
        if self.fails:
            raise OSError("the line was cut")


def noisy(sample: Any, generator: np.random.Generator) -> Any:
    """A sample with noise."""
    image, label = sample
    return image + generator.standard_normal(image.shape).astype(np.float32), label
