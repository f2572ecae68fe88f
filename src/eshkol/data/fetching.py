"""How a batch comes to be, in whatever thread or process: samples of indices, or the next of a stream, collated.

Comes in: a `Task`, which says which batch of which pass. Goes out: `Fetched`, the batch as a structure of arrays with
what had to be left out, or a `Failure`, which names the sample. A `BatchSource` is what a worker has, and is pickled.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np

from eshkol.data.dataset import sample_of, taken
from eshkol.data.draws import Pass
from eshkol.data.streams import IterableDataset
from eshkol.data.structure import collate
from eshkol.errors import DataError, EshkolError
from eshkol.support import defaults


@dataclass(frozen=True)
class Task:
    """One batch to be fetched."""

    turn: int  # which walk over the loader it belongs to: what is left of an earlier one is not delivered
    number: int  # of the batch in its epoch
    at: Pass
    indices: Any = None  # None: the next of a stream
    count: int = 0  # of samples, where it is a stream


@dataclass
class Fetched:
    """A batch, and what was left out of it: index and reason."""

    batch: Any
    size: int
    skipped: list[tuple[int, str]] = field(default_factory=list)
    last: bool = False  # the stream ended


@dataclass
class Failure:
    """Why there is no batch."""

    message: str
    hint: str | None = None
    trace: str = ""
    cause: BaseException | None = None  # where it happened in this process
    dead: bool = False  # the worker is no more

    def error(self) -> DataError:
        """The error to be raised."""
        found = DataError(self.message, hint=self.hint)
        if self.cause is None and self.trace:
            found.add_note(f"In the worker:\n{self.trace}")
        return found


class _Broken(Exception):
    """A sample that could not be loaded."""

    def __init__(self, index: int, cause: Exception) -> None:
        super().__init__(index, cause)
        self.index, self.cause = index, cause


def _told(error: BaseException) -> str:
    return error.message if isinstance(error, EshkolError) else f"{type(error).__name__}: {error}"


class BatchSource:
    """A data set with how batches are made of it."""

    def __init__(self, data: Any, join: Callable[[Any], Any] | None, skips: bool) -> None:
        self.data, self.join, self.skips = data, join, skips
        self.floats = defaults.floats()  # of whoever reads the batches, in whatever thread or process they are made
        self._turn, self._stream = -1, iter(())  # the stream that is being read

    def __getstate__(self) -> Any:
        return {**self.__dict__, "_turn": -1, "_stream": None}

    def fetch(self, task: Task) -> Fetched | Failure:
        """The batch of a task. Errors of samples come back as failures, so that no worker ends by them."""
        try:
            with defaults.floats_as(self.floats):
                return self._streamed(task) if isinstance(self.data, IterableDataset) else self._indexed(task)
        except _Broken as broken:
            cause: Exception = broken.cause
            message = f"sample {broken.index} cannot be loaded: {_told(cause)}"
        except Exception as error:
            cause, message = error, f"batch {task.number} cannot be put together: {_told(error)}"
        trace = "".join(traceback.format_exception(cause))
        return Failure(message, getattr(cause, "hint", None), trace, cause)

    def _indexed(self, task: Task) -> Fetched:
        refused: Exception | None = None
        if self.join is None:
            try:
                batch = taken(self.data, task.indices, task.at)
            except Exception as error:
                batch, refused = None, error  # one by one: then it is known which sample it was
            if batch is not None:
                return Fetched(batch, len(task.indices))
        samples, kept, skipped = [], [], []
        for index in task.indices.tolist():
            try:
                samples.append(sample_of(self.data, index, task.at))
                kept.append(index)
            except Exception as error:
                if not self.skips:
                    raise _Broken(index, error) from error
                skipped.append((index, _told(error)))
        if refused is not None and not skipped:
            raise refused  # each sample is whole: what is wrong is the batch, and one made in another way would hide it
        if refused is not None and kept:
            return Fetched(taken(self.data, np.array(kept), task.at), len(kept), skipped)
        return Fetched(self._joined(samples), len(samples), skipped)

    def _streamed(self, task: Task) -> Fetched:
        if task.turn != self._turn:
            self._turn, self._stream = task.turn, _numbered(self.data.stream(task.at))
            for _ in islice(self._stream, task.number * task.count):
                pass  # an epoch that is resumed: what was delivered before is read again
        samples = list(islice(self._stream, task.count))
        return Fetched(self._joined(samples), len(samples), last=len(samples) < task.count)

    def _joined(self, samples: list[Any]) -> Any:
        return (self.join or collate)(samples) if samples else None


def _numbered(samples: Iterator[Any]) -> Iterator[Any]:
    """The stream, whose errors say which sample it was."""
    number = 0
    while True:
        try:
            sample = next(samples)
        except StopIteration:
            return
        except Exception as error:
            raise _Broken(number, error) from error
        yield sample
        number += 1
