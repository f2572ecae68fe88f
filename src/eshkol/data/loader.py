"""`DataLoader`: batches of a data set, epoch after epoch.

    for x, y in ek.data.DataLoader(data, batch_size=64, shuffle=True, seed=0):
        ...

Comes in: a data set, a list of samples, a tuple of arrays, or a stream. Goes out: batches as structures of tensors, in
an order that the seed and the epoch decide. `state_dict` says where it stands, to a batch, and another loader goes on
from there bit for bit, with or without workers.
"""

from __future__ import annotations

import os
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eshkol.data.dataset import ArrayDataset, comes_whole, draws_of, known_length
from eshkol.data.draws import Pass, seed_of
from eshkol.data.fetching import BatchSource, Failure, Fetched, Task
from eshkol.data.files import ON_ERROR, SkippedData, chosen
from eshkol.data.sampling import GivenOrder, InOrder, Sampler, Shuffled
from eshkol.data.streams import IterableDataset
from eshkol.data.structure import as_tensors, pinned, told_count
from eshkol.data.workers import KINDS, Pool
from eshkol.errors import DataError, UnknownLength
from eshkol.support import observing
from eshkol.support.warning import warn
from eshkol.support.whole import is_whole

CPUS = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
STATE = 1  # the version of what `state_dict` gives


class DataLoader:
    """Batches of a data set; each walk over it is an epoch.

    `shuffle` orders samples anew each epoch, by `seed` (without one, by `ek.seed`); `drop_last` leaves out a last batch
    that is not full; `sampler` gives the indices itself; `collate` makes a batch of a list of samples. `workers`
    threads or processes load ahead, `prefetch` batches each; unless it is said, one thread does where batches come
    whole from arrays by code of this library alone. A batch that takes over `timeout` seconds is an error.
    `on_error="skip"` leaves samples out that cannot be loaded, and says so after the epoch. With `numpy=True` batches
    are NumPy arrays. With `pin=True` they lie in page-locked memory, from which a GPU copies by itself; without one it
    changes nothing.
    """

    def __init__(
        self,
        data: Any,
        batch_size: int = 1,
        shuffle: bool = False,
        *,
        seed: int | None = None,
        drop_last: bool = False,
        sampler: Any = None,
        collate: Callable[[list[Any]], Any] | None = None,
        workers: int | None = None,
        worker: str = "thread",
        prefetch: int = 2,
        pin: bool = False,
        on_error: str = "raise",
        timeout: float | None = None,
        numpy: bool = False,
    ) -> None:
        self.data = ArrayDataset(*data) if isinstance(data, tuple) else data
        streamed = isinstance(self.data, IterableDataset)
        count = 0 if workers is None else workers
        for name, value, least in (("batch_size", batch_size, 1), ("workers", count, 0), ("prefetch", prefetch, 1)):
            if not is_whole(value, least):
                raise DataError(f"DataLoader: {name} is an integer from {least} on, not {value!r}")
        chosen("DataLoader", "worker", worker, KINDS)
        chosen("DataLoader", "on_error", on_error, ON_ERROR)
        if not streamed and not (hasattr(self.data, "__len__") and hasattr(self.data, "__getitem__")):
            raise DataError(
                f"DataLoader: a {type(data).__name__} is no data set",
                hint="it needs __len__ and __getitem__, or derives from ek.data.IterableDataset",
            )
        if streamed and (shuffle or sampler is not None):
            raise DataError("DataLoader: a stream has no indices to shuffle", hint="data.shuffled(buffer=1000)")
        if streamed and count > 1:
            raise DataError(f"DataLoader: a stream is read by one worker, not by {count}", hint="workers=1")
        if shuffle and sampler is not None:
            raise DataError("DataLoader: the sampler decides about the order", hint="leave out shuffle")
        self.batch_size, self.drop_last, self.prefetch = batch_size, drop_last, prefetch
        self._asked_for = workers is not None  # else a walk of one batch starts no thread
        if workers is None and worker == "thread" and collate is None and CPUS > 1 and comes_whole(self.data):
            count = 1
        self.workers = count
        self.seed = seed_of(seed) if seed is not None else _drawn_seed() if shuffle or draws_of(self.data) else 0
        self.epoch = 0  # of the walk that is under way, or comes next
        self.position = 0  # batches of it that were given
        self.skipped: list[tuple[int, str]] = []  # samples left out since the loader was made: index and reason
        self.waited = 0.0  # seconds that were spent in waiting for batches
        self._shuffle, self._worker, self._timeout, self._numpy, self._pin = shuffle, worker, timeout, numpy, pin
        self._sampler = sampler
        self._source = BatchSource(self.data, collate, on_error == "skip")
        self._pool: Pool | None = None
        self._closing: Any = None  # ends the workers when the loader is dropped, and when Python ends
        self._turn = 0  # walks that were begun without workers
        self._begun = False  # a walk was begun in this epoch
        self._walk: weakref.ref[Walk] | None = None

    @property
    def sampler(self) -> Sampler:
        """What decides about the order of samples."""
        if isinstance(self._sampler, Sampler):
            return self._sampler
        count = len(self.data)
        if self._sampler is not None:
            return GivenOrder(self._sampler, count)
        return Shuffled(count, self.seed) if self._shuffle else InOrder(count)

    def __len__(self) -> int:
        """How many batches an epoch has."""
        if isinstance(self.data, IterableDataset):
            raise UnknownLength("how many batches a stream has is known when it ends")
        return self._batches(len(self.sampler))

    def __repr__(self) -> str:
        """`<DataLoader of 23 batches of 64, shuffled>`; no code of users is run to find out how many."""
        known = known_length(self.data if self._sampler is None else self._sampler)
        many = "batches" if known is None else told_count(self._batches(known), "batch", "batches")
        order = ", shuffled" if self._shuffle else "" if self._sampler is None else ", by a sampler"
        return f"<DataLoader of {many} of {self.batch_size}{order}>"

    def _batches(self, samples: int) -> int:
        full, rest = divmod(samples, self.batch_size)
        return full + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        if self._begun:  # left in the middle: the next walk is another epoch
            self.epoch, self.position = self.epoch + 1, 0
        self._begun = True
        walk = Walk(self)
        self._walk = weakref.ref(walk)
        return walk

    def _finish(self, walk: Walk) -> None:
        """An epoch is over."""
        if self._current(walk):
            self.epoch, self.position, self._begun = self.epoch + 1, 0, False

    def _current(self, walk: Walk) -> bool:
        return self._walk is not None and self._walk() is walk

    def set_epoch(self, epoch: int) -> None:
        """Let the next walk be that of this epoch, from its beginning."""
        self.load_state_dict({**self.state_dict(), "epoch": epoch, "position": 0})

    def state_dict(self) -> dict[str, int]:
        """Where the loader stands: the batches that were given, not those that workers have ready."""
        samples = -1 if isinstance(self.data, IterableDataset) else len(self.data)
        return {
            "version": STATE, "seed": self.seed, "epoch": self.epoch, "position": self.position,
            "batch_size": self.batch_size, "shuffle": self._shuffle, "samples": samples,
        }  # fmt: skip

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another loader of the same data stood; the next walk is the rest of its epoch."""
        mine = self.state_dict()
        if set(state) != set(mine) or state["version"] != STATE:
            raise DataError(f"this is no state of a DataLoader of this version: {dict(state)!r:.200}")
        for name in ("batch_size", "shuffle", "samples"):
            if state[name] != mine[name]:
                raise DataError(
                    f"the state is that of a loader with {name} {state[name]}, and this one has {mine[name]}",
                    hint="an epoch can be resumed with the same data in the same batches and order only",
                )
        epoch, position = int(state["epoch"]), int(state["position"])
        if epoch < 0 or position < 0 or (mine["samples"] >= 0 and position > len(self)):
            raise DataError(f"no loader of this data was ever at batch {position} of epoch {epoch}")
        self.seed, self.epoch, self.position = seed_of(state["seed"]), epoch, position
        self._begun, self._walk = False, None

    def close(self) -> None:
        """End the workers; a later walk starts new ones."""
        if self._pool is not None:
            self._closing()
            self._pool = None

    def __enter__(self) -> DataLoader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _begin_turn(self) -> int:
        self._turn += 1
        return self._turn

    def _workers(self, batches: int) -> Pool | None:
        """The workers, for a walk of so many batches (-1: no one knows)."""
        if not self.workers or (not self._asked_for and batches <= 1):
            return None
        if self._pool is None or not self._pool.here:
            self._pool = Pool(self._worker, self.workers, self._source)
            self._closing = weakref.finalize(self, self._pool.close)
        return self._pool

    def _delivered(self, found: Fetched) -> Any:
        batch = pinned(found.batch) if self._pin else found.batch
        return batch if self._numpy else as_tensors(batch)


class Walk(Iterator[Any]):
    """One epoch of a loader."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader, self._at = loader, Pass(loader.seed, loader.epoch)
        streamed = isinstance(loader.data, IterableDataset)
        self._order = None if streamed else loader.sampler.order(loader.epoch)
        self._end = -1 if self._order is None else loader._batches(len(self._order))
        self._next = self._asked = loader.position
        self._skipped: list[tuple[int, str]] = []
        self._over = False
        self._pool = loader._workers(-1 if streamed else self._end - self._next)
        self._turn = None if self._pool is None else self._pool.begin(alone=streamed)
        self._number = loader._begin_turn() if self._turn is None else self._turn.number

    def _task(self, number: int) -> Task:
        size = self._loader.batch_size
        if self._order is None:
            return Task(self._number, number, self._at, None, size)
        return Task(self._number, number, self._at, self._order[number * size : (number + 1) * size])

    def _fetched(self) -> Fetched | Failure:
        loader = self._loader
        ended = self._turn is not None and self._turn.over is not None and not loader._asked_for
        if self._pool is None or self._turn is None or not self._pool.here or ended:
            return loader._source.fetch(self._task(self._next))
        ahead = self._next + 1 + loader.workers * loader.prefetch  # beside the one that is wanted now
        while self._asked < (ahead if self._end < 0 else min(ahead, self._end)):
            self._pool.ask(self._turn, self._task(self._asked))
            self._asked += 1
        return self._turn.answer(self._next, loader._timeout)

    def __next__(self) -> Any:
        loader = self._loader
        while not self._over and self._next != self._end:
            began = time.perf_counter()
            with observing.timed(observing.LOADER, "batch"):
                found = self._fetched()
            loader.waited += time.perf_counter() - began
            if isinstance(found, Failure):
                self._over = True
                if found.dead:
                    loader.close()  # the next walk starts new workers
                raise found.error() from found.cause
            self._next += 1
            if loader._current(self):
                loader.position = self._next
            self._skipped += found.skipped
            loader.skipped += found.skipped
            self._over = found.last
            if found.size and not (found.last and loader.drop_last):
                return loader._delivered(found)
        self._finish()
        raise StopIteration

    def _finish(self) -> None:
        self._over, self._next, self._turn = True, self._end, None
        self._loader._finish(self)
        if self._skipped:
            (index, reason), count = self._skipped[0], len(self._skipped)
            self._skipped = []
            warn(
                f"{count} sample{'s' * (count > 1)} of epoch {self._at.epoch} could not be loaded and "
                f"{'were' if count > 1 else 'was'} left out; the first: sample {index}: {reason}",
                SkippedData
            )  # fmt: skip


def _drawn_seed() -> int:
    """A seed from everybody's generator, so that `ek.seed` decides."""
    from eshkol.tensors import keys

    high, low = keys.next_key().tolist()
    return int(high) << 32 | int(low)
