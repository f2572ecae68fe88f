"""Batches: what a loop over data is given, walked once for each epoch, looked at before a step sees it.

Comes in: an iterable of pairs (inputs, targets) that can be walked again, a function that gives an iterator for each
epoch, or whole arrays (inputs, targets) that are cut into batches and shuffled. Goes out: batches with their numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass
from typing import Any

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.support.whole import is_whole
from eshkol.tensors import api as ek
from eshkol.tensors import keys
from eshkol.tensors.value import Tensor

BATCH_SIZE = 32  # of whole arrays, where no one says it
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Batch:
    """Inputs and targets as tensors; `number` counts from 1 within the epoch."""

    number: int
    inputs: Any
    targets: Any

    @property
    def size(self) -> int:
        """How many examples it has: what its loss weighs in a mean."""
        for leaf in ek.tree_leaves(self.inputs):
            if isinstance(leaf, Tensor) and leaf.shape:
                return int(leaf.shape[0])
        return 1


class Batches(ABC):
    """Data that is walked once for each epoch."""

    who: str  # the function they were given to, for errors

    @property
    @abstractmethod
    def count(self) -> int | None:
        """How many batches an epoch has, if that is known."""

    @abstractmethod
    def _walk(self) -> Iterator[Any]:
        """The pairs of an epoch."""

    def epoch(self, used: int = 0) -> Iterator[Batch]:
        """The batches of an epoch; `used` is how many came before, where the data stands in the middle of one."""
        seen = used
        for seen, pair in enumerate(self._walk(), start=used + 1):
            yield Batch(seen, *_pair(pair, self.who, seen))
        if not seen:
            raise self._nothing()

    def state_dict(self) -> Any:
        """Where the data stands, if it knows that itself, as a data loader does; else None."""
        return None

    def load_state_dict(self, state: Any) -> bool:
        """Let the data stand where a state says; whether it can."""
        return False

    def _nothing(self) -> TensorError:
        return TensorError(f"{self.who}: there are no batches", span=ek.here(), hint="the data is empty")


class Walked(Batches):
    """Batches that someone else makes."""

    def __init__(self, given: Any, who: str) -> None:
        self.given, self.who, self._walks = given, who, 0

    @property
    def count(self) -> int | None:
        try:
            return len(self.given) if isinstance(self.given, Sized) else None
        except TypeError:  # a loader over something whose length no one knows
            return None

    def _walk(self) -> Iterator[Any]:
        self._walks += 1
        made = self.given() if callable(self.given) and not isinstance(self.given, Iterable) else self.given
        if not isinstance(made, Iterable):
            raise TensorError(
                f"{self.who}: the function of batches gave {type(made).__name__} instead of an iterator", span=ek.here()
            )
        return iter(made)

    def state_dict(self) -> Any:
        return self.given.state_dict() if self._knows else None

    def load_state_dict(self, state: Any) -> bool:
        if not self._knows or state is None:
            return False
        self.given.load_state_dict(state)
        return True

    @property
    def _knows(self) -> bool:
        return all(callable(getattr(self.given, name, None)) for name in ("state_dict", "load_state_dict"))

    def _nothing(self) -> TensorError:
        if self._walks > 1 and isinstance(self.given, Iterator):
            return TensorError(
                f"{self.who}: the {type(self.given).__name__} of batches was used up by the first epoch",
                span=ek.here(), hint="give a list, a data loader, or a function that makes an iterator for each epoch",
            )  # fmt: skip
        return super()._nothing()


class Cut(Batches):
    """Whole arrays as batches of one size (the last may be smaller), shuffled anew for each epoch."""

    def __init__(self, inputs: Any, targets: Any, size: int, shuffle: bool, who: str) -> None:
        self.inputs, self.targets, self.size, self.shuffle, self.who = inputs, targets, size, shuffle, who
        arrays = [x for x in ek.tree_leaves((inputs, targets)) if x is not None]
        if any(not x.shape for x in arrays):
            raise ShapeError(f"{who}: whole arrays have an axis of examples, and a number has none", span=ek.here())
        rows = {x.shape[0] for x in arrays}
        if len(rows) > 1:
            shapes = ", ".join(str(list(x.shape)) for x in arrays)
            raise ShapeError(
                f"{who}: inputs and targets have different numbers of examples: their shapes are {shapes}",
                span=ek.here(), hint="the first axis counts the examples",
            )  # fmt: skip
        self.rows = int(rows.pop()) if rows else 0

    @property
    def count(self) -> int:
        return -(-self.rows // self.size)

    def _walk(self) -> Iterator[Any]:
        order = permutation(keys.next_key(), self.rows) if self.shuffle else np.arange(self.rows)
        for start in range(0, self.rows, self.size):
            chosen = order[start : start + self.size]
            yield tuple(ek.tree_map(lambda x, at=chosen: x[at], part) for part in (self.inputs, self.targets))


def permutation(key: Any, count: int) -> Array:
    """The numbers below `count` in an order that the key says; the same on every machine."""
    raw = np.random.Philox(key=int(key[0]) << 32 | int(key[1])).random_raw(count)
    return np.argsort(raw, kind="stable")


def batches_of(data: Any, who: str, *, batch_size: int | None = None, shuffle: bool = True) -> Batches:
    """What a loop walks, of what it was given."""
    if isinstance(data, Batches):
        return data
    if batch_size is not None and not is_whole(batch_size, 1):
        raise TensorError(f"{who}: batch_size is a number of examples, not {batch_size!r}", span=ek.here())
    pair = isinstance(data, tuple) and len(data) == 2
    if pair and (batch_size is not None or isinstance(data[1], Tensor | np.ndarray)):
        inputs, targets = (_array(x) for x in data)
        return Cut(inputs, targets, batch_size or BATCH_SIZE, shuffle, who)
    if batch_size is not None:
        raise TensorError(
            f"{who}: batch_size goes with whole arrays, (inputs, targets), and the data is a {type(data).__name__}",
            span=ek.here(), hint="leave batch_size away: the data is batches already",
        )  # fmt: skip
    if isinstance(data, Tensor | np.ndarray | str | dict) or not (isinstance(data, Iterable) or callable(data)):
        raise TensorError(
            f"{who}: batches are pairs (inputs, targets) to be walked, not a {type(data).__name__}", span=ek.here(),
            hint="give a list of pairs, a data loader, or whole arrays: (x, y)",
        )  # fmt: skip
    return Walked(data, who)


def _array(x: Any) -> Any:
    """Whole arrays on the host, where they are cut; several as a tuple or dict, as a model takes them."""
    if isinstance(x, tuple):
        return tuple(map(_array, x))
    if isinstance(x, dict):
        return {name: _array(value) for name, value in x.items()}
    if x is None:
        return None
    return x if isinstance(x, np.ndarray) else tensor_of(x).detach().numpy()


def tensor_of(x: Any) -> Any:
    """Arrays, numbers and nested lists as tensors: several inputs are a tuple, or a dict by name."""
    if isinstance(x, Tensor) or x is None:
        return x
    if isinstance(x, tuple):
        return tuple(map(tensor_of, x))
    if isinstance(x, dict):
        return {name: tensor_of(value) for name, value in x.items()}
    return ek.asarray(x)


def _pair(batch: Any, who: str, number: int) -> tuple[Any, Any]:
    if not isinstance(batch, tuple | list) or len(batch) != 2:
        said = f"{len(batch)} things" if isinstance(batch, tuple | list) else f"a {type(batch).__name__}"
        raise TensorError(
            f"{who}: batch {number} is {said} instead of a pair (inputs, targets)", span=ek.here(),
            hint="several inputs are a tuple in the pair: ((a, b), targets); where there are no targets, None; "
            "whole data in lists, (x, y), goes with batch_size=",
        )  # fmt: skip
    return tensor_of(batch[0]), tensor_of(batch[1])


def batch_of(batch: Any, who: str) -> Batch:
    """One batch, of a pair."""
    return Batch(1, *_pair(batch, who, 1))
