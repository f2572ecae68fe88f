"""Metrics of probabilities: the log loss, and perplexity, its exponential."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from eshkol.errors import TensorError
from eshkol.metrics.inputs import Array, given
from eshkol.metrics.metric import SUM, Metric, State, StateRule

AT_ONCE = 1 << 20  # scores that are looked at in float64 together: those of a language model are many


def _log_of_sum(scores: Array) -> Array:
    """The logarithm of the sum of exponentials of each row, in float64. A positive infinity gives NaN."""
    greatest = scores.max(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        result: Array = greatest + np.log(np.exp(scores - greatest).sum(axis=1, keepdims=True))
    return result


def log_probabilities(scores: Array, ids: Array) -> Array:
    """Of scores [M, C], the logarithm of the probability that softmax gives to each row's class."""
    logs = np.zeros(len(scores))
    step = max(1, AT_ONCE // scores.shape[1])
    for first in range(0, len(scores), step):
        rows = scores[first : first + step].astype(np.float64)
        own = np.take_along_axis(rows, ids[first : first + step, None], axis=1)
        logs[first : first + step] = (own - _log_of_sum(rows))[:, 0]
    return logs


def softmax(scores: Array) -> Array:
    """Probabilities, of scores [M, C], in float64."""
    if not len(scores):
        return scores
    wide = scores.astype(np.float64)
    with np.errstate(invalid="ignore"):
        result: Array = np.exp(wide - _log_of_sum(wide))
    return result


def check_probabilities(who: str, rows: Array, epsilon: float) -> None:
    """Refuse scores of classes [M, C] that are not probabilities."""
    sums = rows.sum(axis=1, dtype=np.float64)
    bad = ~(np.abs(sums - 1) <= max(1e-5, 4 * epsilon)) | (rows < 0).any(axis=1)
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        raise TensorError(
            f"{who}: scores of classes must be probabilities, and those of example {place} sum to {sums[place]:.6g}"
            + (", some below 0" if (rows[place] < 0).any() else ""),
            hint="give from_logits=True, or ek.softmax(scores, axis=1)",
        )


class LogLoss(Metric):
    """The mean of -log of the probability that was given to what is, in nats.

    Predictions are probabilities of class 1 [N] or of every class [N, C, ...]; with `from_logits`, scores before
    sigmoid or softmax. Probabilities of 0 and 1 are moved inwards by the epsilon of their dtype.
    """

    name = "log_loss"
    higher_is_better = False
    rules: ClassVar[Mapping[str, StateRule]] = {"count": SUM, "total": SUM}

    def __init__(self, from_logits: bool = False, ignore_index: int | None = None) -> None:
        super().__init__(from_logits=from_logits, ignore_index=ignore_index)
        self.from_logits, self.ignore_index = from_logits, ignore_index

    def _seen(self, predictions: Any, targets: Any) -> State:
        seen = given(self.name, predictions, targets, ignore_index=self.ignore_index, scores=True)
        if seen.kind == "labels":
            raise TensorError(
                f"{self.name}: targets are class ids [N], not labels {list(seen.targets.shape)}",
                hint="of one-hot targets, take the class: ek.argmax(targets, axis=1)",
            )
        found, ids = seen.predictions, seen.targets
        if self.from_logits:
            if seen.kind == "scores":
                logs = log_probabilities(found, ids)
            else:
                logs = -np.logaddexp(0.0, np.where(ids == 1, -1.0, 1.0) * found)
        else:
            logs = np.log(self._own(found, ids, seen.epsilon))
        return {"count": len(ids), "total": float(-logs.sum())}

    def _own(self, found: Array, ids: Array, epsilon: float) -> Array:
        """The probability given to the class that is."""
        if found.ndim == 2:
            check_probabilities(self.name, found, epsilon)
            own = np.take_along_axis(found, ids[:, None], axis=1)[:, 0].astype(np.float64)
        else:
            if ((found < 0) | (found > 1)).any():
                raise TensorError(
                    f"{self.name}: probabilities are from 0 to 1, and some of these are not",
                    hint="give from_logits=True, or ek.sigmoid(scores)",
                )
            wide = found.astype(np.float64)
            own = np.where(ids == 1, wide, 1.0 - wide)
        return np.clip(own, epsilon, 1.0 - epsilon)

    def _result(self, state: State) -> float:
        return float(state["total"] / state["count"])


class Perplexity(LogLoss):
    """How many equally likely classes a guess would be between: the exponential of the mean log loss.

    Predictions are scores before softmax, as language models give them, [N, C, ...]; `from_logits=False` is for
    probabilities. Targets that are `ignore_index` (padding) do not count.
    """

    name = "perplexity"

    def __init__(self, from_logits: bool = True, ignore_index: int | None = None) -> None:
        super().__init__(from_logits, ignore_index)

    def _result(self, state: State) -> float:
        try:
            return math.exp(super()._result(state))
        except OverflowError:
            return math.inf
