"""Metrics of scores by their order: the area under the ROC curve, and average precision.

Both are exact: scores are kept, and sorted when the metric is computed. Classes are taken one against the rest (or
against each other one), labels one by one; averages and what stands for the undefined are scikit-learn's.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from itertools import combinations
from typing import Any, ClassVar

import numpy as np

from eshkol.errors import TensorError
from eshkol.metrics.inputs import Array, GivenInput, given
from eshkol.metrics.metric import KEPT, SAME, SAME_NUMBER, SUM, Metric, State, StateRule, UndefinedMetric, choice
from eshkol.metrics.probability import check_probabilities, softmax
from eshkol.support.warning import warn

AVERAGES = ("macro", "weighted", "micro", "samples", None)
AGAINST = ("ovr", "ovo")


def _steps(positive: Array, scores: Array) -> tuple[Array, Array]:
    """How many positive ones, and how many in all, have at least each of the distinct scores, from the greatest on."""
    order = np.argsort(-scores, kind="stable")
    scores = scores[order]
    ends = np.append(np.flatnonzero(scores[1:] != scores[:-1]), len(scores) - 1)
    return np.cumsum(positive[order])[ends], ends + 1


def area_under_roc(positive: Array, scores: Array) -> float:
    """The chance that a positive example has a greater score than a negative one; equal scores count half."""
    hits, taken = _steps(positive, scores)
    ones, zeros = int(hits[-1]), int(taken[-1] - hits[-1])
    if not ones or not zeros:
        return math.nan
    misses = taken - hits
    widths = np.diff(misses, prepend=0)
    twice = sum((widths * (2 * hits - np.diff(hits, prepend=0))).tolist())  # whole numbers: exact
    return float(twice / (2 * ones * zeros))


def precision_of_order(positive: Array, scores: Array) -> float:
    """The mean of precision over recall; 0 where nothing is positive."""
    hits, taken = _steps(positive, scores)
    if not hits[-1]:
        return 0.0
    return float((np.diff(hits, prepend=0) * (hits / taken)).sum() / hits[-1])


class Ranked(Metric):
    """A quantity of two classes, from scores; of more of them, or of labels, its average."""

    rules: ClassVar[Mapping[str, StateRule]] = {
        "count": SUM, "kind": SAME, "width": SAME_NUMBER, "predictions": KEPT, "targets": KEPT,
    }  # fmt: skip

    def __init__(self, average: str | None = "macro", *, from_logits: bool = False) -> None:
        self.average = choice(self.name, "average", average, AVERAGES)
        self.from_logits = from_logits
        super().__init__(average=average, from_logits=from_logits)

    _needs_both: ClassVar[bool] = True  # or is it defined where everything is positive

    @abstractmethod
    def _of_two(self, positive: Array, scores: Array) -> float:
        """The quantity for two classes."""

    def _probabilities(self, seen: GivenInput) -> Array:
        """Scores whose order can be compared between examples."""
        if seen.kind != "scores":
            return seen.predictions
        if self.from_logits:
            found = softmax(seen.predictions)
            if np.isnan(found).any():
                place = int(np.flatnonzero(np.isnan(found).any(axis=1))[0])
                raise TensorError(f"{self.name}: scores of example {place} have an infinity, and give no probabilities")
            return found
        check_probabilities(self.name, seen.predictions, seen.epsilon)
        return seen.predictions

    def _seen(self, predictions: Any, targets: Any) -> State:
        seen = given(self.name, predictions, targets, scores=True)
        scores = self._probabilities(seen)
        if seen.kind == "scores" and seen.width == 2:
            scores = scores[:, 1]
        kind = "labels" if seen.kind == "labels" else "classes"
        if self.average == "samples" and kind == "classes" and seen.width > 2:
            raise TensorError(f"{self.name}: average='samples' is for labels [N, L], and these are classes")
        return {
            "count": len(scores), "kind": kind, "width": seen.width or 2,
            "predictions": [np.array(scores)], "targets": [np.array(seen.targets)],
        }  # fmt: skip

    def _result(self, state: State) -> Any:
        scores, targets = np.concatenate(state["predictions"]), np.concatenate(state["targets"])
        if state["kind"] == "labels":
            return self._averaged(targets, scores)
        if state["width"] == 2:
            return self._told("all examples", targets == 1, scores)
        return self._of_classes(targets, scores)

    def _of_classes(self, ids: Array, scores: Array) -> Any:
        return self._averaged(ids[:, None] == np.arange(scores.shape[1]), scores)

    def _averaged(self, positive: Array, scores: Array) -> Any:
        if self.average == "micro":
            return self._told("all examples", positive.reshape(-1), scores.reshape(-1))
        rows, what = (positive, "example") if self.average == "samples" else (positive.T, "class")
        ranked = scores if self.average == "samples" else scores.T
        values = np.array([self._told(f"{what} {i}", rows[i], ranked[i]) for i in range(len(rows))])
        if self.average is None:
            return values
        weights = positive.sum(axis=0) if self.average == "weighted" else np.ones(len(values))
        if not weights.any():
            return 0.0
        return np.average(np.where(weights == 0, 0.0, values), weights=weights)

    def _told(self, what: str, positive: Array, scores: Array) -> float:
        """The quantity, with a warning where it is not defined."""
        if not positive.any() or (positive.all() and self._needs_both):
            absent = "negative" if positive.any() else "positive"
            value = self._of_two(positive, scores)
            warn(
                f"{self.name} is not defined for {what}: nothing is {absent}; {value} stands for it",
                UndefinedMetric
            )  # fmt: skip
            return value
        return self._of_two(positive, scores)


class ROCAUC(Ranked):
    """The area under the ROC curve: of two classes from one score each, of more from probabilities, or of labels.

    `multi_class` takes each class against the rest ("ovr") or against each other one ("ovo"). With `from_logits`,
    scores of every class are made probabilities by softmax first.
    """

    name = "roc_auc"

    def __init__(self, average: str | None = "macro", *, multi_class: str = "ovr", from_logits: bool = False) -> None:
        self.multi_class = choice(self.name, "multi_class", multi_class, AGAINST)
        if multi_class == "ovo" and average not in ("macro", "weighted"):
            raise TensorError(f"{self.name}: multi_class='ovo' is averaged by 'macro' or 'weighted', not {average!r}")
        super().__init__(average, from_logits=from_logits)
        self.options = {**self.options, "multi_class": multi_class}

    def _of_two(self, positive: Array, scores: Array) -> float:
        return area_under_roc(positive, scores)

    def _of_classes(self, ids: Array, scores: Array) -> Any:
        if self.multi_class == "ovr":
            return super()._of_classes(ids, scores)
        values, shares = [], []
        for a, b in combinations(np.unique(ids).tolist(), 2):
            either = (ids == a) | (ids == b)
            parts = [self._of_two(ids[either] == one, scores[either, one]) for one in (a, b)]
            values.append(sum(parts) / 2)
            shares.append(either.mean())
        if not values:
            return self._told("all examples", ids == ids, scores[:, 0])
        return np.average(values, weights=shares if self.average == "weighted" else None)


class AveragePrecision(Ranked):
    """The mean of precision over recall, as the threshold goes down: of two classes, of more, or of labels."""

    name = "average_precision"
    _needs_both: ClassVar[bool] = False

    def _of_two(self, positive: Array, scores: Array) -> float:
        return precision_of_order(positive, scores)
