"""`Metric`: a quantity gathered batch by batch.

A metric keeps a state, a dict whose entries are joined by the rules of its class: the state of a batch is joined to
what was seen before in the same way as that of another process, so the order and the size of batches do not matter. A
new metric says what its entries are, the state of one batch, and the result of a state.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.metrics.inputs import Array, array_of
from eshkol.tensors.make import adopted

State = dict[str, Any]


class UndefinedMetric(RuntimeWarning):
    """A metric is not defined for what it has seen, and something stands in its place."""


@dataclass(frozen=True)
class StateRule:
    """An entry of a state: what it begins with, and how two of them join."""

    start: Any
    join: Callable[[Any, Any], Any]


def _grown(mine: Array, other: Array) -> Array:
    """The sum, where what one of them has not counted yet is zero."""
    if not mine.size or not other.size:
        return mine if mine.size else other
    total = np.zeros([max(a, b) for a, b in zip(mine.shape, other.shape, strict=True)], mine.dtype)
    for part in (mine, other):
        total[tuple(slice(n) for n in part.shape)] += part
    return total


def _same(mine: Any, other: Any) -> Any:
    if mine and other and mine != other:
        raise ShapeError(
            f"batches do not go together: earlier ones had {mine}, this one has {other}",
            hint="begin anew with reset(), or use one metric for each kind of data",
        )
    return mine or other


def outputs_joined(mine: Array, other: Array) -> Array:
    """The sum of entries with one number for each output."""
    if mine.size and other.size and mine.shape != other.shape:
        raise ShapeError(f"earlier batches had {mine.size} outputs for each example, this one has {other.size}")
    return other + mine if mine.size and other.size else mine if mine.size else other


SUM = StateRule(0, lambda mine, other: mine + other)
COUNTS = StateRule(np.zeros(0, np.int64), _grown)
OUTPUTS = StateRule(np.zeros(0), outputs_joined)
SAME = StateRule("", _same)
SAME_NUMBER = StateRule(0, _same)
KEPT = StateRule([], lambda mine, other: mine + other)


class Metric(ABC):
    """A quantity of predictions and targets: `update` with batches, `compute` from all of them, `reset`.

    Results are floats; those with a number for each class or output are tensors of float64.
    """

    name: str = "metric"
    higher_is_better: bool | None = True
    rules: ClassVar[Mapping[str, StateRule]] = {}

    def __init__(self, **options: Any) -> None:
        self.options = options
        self._state = self._fresh()

    # --- what a metric says of itself -------------------------------------------------------------

    @abstractmethod
    def _seen(self, predictions: Any, targets: Any) -> State:
        """The state of one batch; "count" is the number of examples."""

    @abstractmethod
    def _result(self, state: State) -> Any:
        """The quantity, from a state that has seen something."""

    def _join(self, mine: State, other: State) -> State:
        """The state of two parts of the data together."""
        return {key: rule.join(mine[key], other[key]) for key, rule in self.rules.items()}

    def _fresh(self) -> State:
        return {key: copy.copy(rule.start) for key, rule in self.rules.items()}

    # --- what everybody does with it --------------------------------------------------------------

    def update(self, predictions: Any, targets: Any) -> None:
        """Take in a batch. One that is refused leaves the metric as it was."""
        self._take(self._seen(predictions, targets))

    def compute(self) -> Any:
        """The quantity over everything that was taken in."""
        if not self._state["count"]:
            raise TensorError(
                f"{self.name} has seen no examples", hint="give it some with update(predictions, targets) first"
            )
        result = self._result(self._state)
        return adopted(np.ascontiguousarray(result)) if np.ndim(result) else float(result)

    def reset(self) -> None:
        """Forget everything that was taken in."""
        self._state = self._fresh()

    def fresh(self) -> Self:
        """A metric like this one that has seen nothing."""
        made = copy.copy(self)
        made.reset()
        return made

    def merge(self, other: Metric) -> Self:
        """Take in what another metric of the same kind has seen; gives itself."""
        if type(other) is not type(self):
            raise DTypeError(f"a {type(self).__name__} cannot take in a {type(other).__name__}")
        if other.options != self.options:
            raise TensorError(f"{self!r} cannot take in {other!r}", hint="make both with the same options")
        self._take(other._state)
        return self

    def state_dict(self) -> State:
        """What was taken in so far, as a dict of numbers, strings and arrays."""
        return {key: _plain(value) for key, value in self._state.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        fresh = self._fresh()
        if set(state) != set(fresh):
            has = ", ".join(sorted(state)) or "nothing"
            raise TensorError(f"{self.name} wants a state with {', '.join(sorted(fresh))}, not {has}")
        self._state = {key: _restored(self.name, key, start, state[key]) for key, start in fresh.items()}

    def _take(self, state: State) -> None:
        if state["count"]:
            try:
                self._state = self._join(self._state, state)
            except ShapeError as error:
                raise ShapeError(f"{self.name}: {error.message}", hint=error.hint) from None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.options.items())})"


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return np.concatenate(value) if value else np.zeros(0)
    return value.copy() if isinstance(value, np.ndarray) else value


def _restored(who: str, key: str, start: Any, value: Any) -> Any:
    if isinstance(start, list):
        array = array_of(who, key, value)
        return [array.copy()] if array.size else []
    if isinstance(start, np.ndarray):
        return array_of(who, key, value).astype(start.dtype)
    if isinstance(start, str):
        if not isinstance(value, str):
            raise DTypeError(f"{who}: {key} of its state cannot be {value!r}")
        return value
    array = array_of(who, key, value)
    if array.size != 1:
        raise ShapeError(f"{who}: {key} of its state is one number, not of shape {list(array.shape)}")
    return array.item()


def once(metric: Metric, predictions: Any, targets: Any) -> Any:
    """What a metric gives for one batch alone."""
    metric.update(predictions, targets)
    return metric.compute()


def choice(who: str, option: str, value: Any, known: Sequence[Any]) -> Any:
    """The value of an option, which must be one of those known."""
    if not any(value is one or (isinstance(value, str) and value == one) for one in known):
        raise TensorError(f"{who}: there is no {option} {value!r}", hint=f"{option}: {', '.join(map(repr, known))}")
    return value


class Mean(Metric):
    """The weighted mean of numbers, such as the losses of batches: `mean.update(loss, batch_size)`."""

    higher_is_better = None
    rules: ClassVar[Mapping[str, StateRule]] = {"count": SUM, "total": SUM, "weight": SUM}

    def __init__(self, name: str = "mean", higher_is_better: bool | None = None) -> None:
        super().__init__()
        self.name, self.higher_is_better = name, higher_is_better

    def update(self, predictions: Any, targets: Any = 1.0) -> None:
        """Take in numbers (first), each with its weight (second): one weight for all, or one for each."""
        super().update(predictions, targets)

    def _seen(self, predictions: Any, targets: Any) -> State:
        values = array_of(self.name, "values", predictions).astype(np.float64)
        weights = array_of(self.name, "weights", targets).astype(np.float64)
        if weights.ndim and weights.shape != values.shape:
            raise ShapeError(f"{self.name}: values have shape {list(values.shape)}, weights {list(weights.shape)}")
        if not (weights >= 0).all():
            raise TensorError(f"{self.name}: weights cannot be negative or NaN")
        weights = np.broadcast_to(weights, values.shape)
        counted = weights > 0  # a NaN of weight zero is not looked at
        total = (values * weights)[counted].sum()
        return {"count": int(counted.sum()), "total": float(total), "weight": float(weights.sum())}

    def _result(self, state: State) -> float:
        return float(state["total"] / state["weight"])
