"""Metrics of decisions: which class, or which labels, each example was given, against what it is.

Accuracy counts what is right. Precision, recall and their means, Cohen's kappa and Matthews' correlation need of every
class how often it was predicted, how often it was right and how often it was there: `Counted` gathers that, never a
matrix of all pairs. The confusion matrix is that matrix. Where scikit-learn has a convention, it is ours too: rows of
the matrix are what is, columns what was predicted; averages are over classes that occur, unless `num_classes` is given.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Any, ClassVar, TextIO

import numpy as np

from eshkol.errors import IndexOutOfRange, ShapeError, TensorError
from eshkol.metrics.drawing import draw_confusion, png_confusion
from eshkol.metrics.inputs import Array, Decided, decide, given
from eshkol.metrics.metric import COUNTS, SAME, SAME_NUMBER, SUM, Metric, State, StateRule, choice

AVERAGES = ("binary", "micro", "macro", "weighted", "samples", None)
NORMALIZATIONS = ("true", "pred", "all", None)
MOST_UNTOLD = 4096  # classes of a confusion matrix, where no one says how many there are: 128 MiB


def _within_width(who: str, state: State, classes: int) -> State:
    """The state, if no batch has ids beyond the classes of which another had scores."""
    if state["kind"] == "classes" and state["width"] and classes > state["width"]:
        raise IndexOutOfRange(
            f"{who}: class {classes - 1} is out of range: other batches had scores of {state['width']} classes"
        )
    return state


class Accuracy(Metric):
    """The share of examples whose class is predicted, or is among the `top_k` of greatest score.

    Of labels [N, L], an example is right if all of its labels are.
    """

    name = "accuracy"
    rules: ClassVar[Mapping[str, StateRule]] = {"count": SUM, "right": SUM}

    def __init__(
        self,
        threshold: float = 0.5,
        top_k: int = 1,
        num_classes: int | None = None,
        ignore_index: int | None = None,
    ) -> None:
        if top_k < 1:
            raise TensorError(f"{self.name}: top_k is 1 or more, not {top_k}")
        super().__init__(threshold=threshold, top_k=top_k, num_classes=num_classes, ignore_index=ignore_index)
        self.threshold, self.top_k, self.num_classes, self.ignore_index = threshold, top_k, num_classes, ignore_index

    def _seen(self, predictions: Any, targets: Any) -> State:
        seen = given(self.name, predictions, targets, self.num_classes, self.ignore_index)
        if self.top_k > 1:
            if seen.kind != "scores":
                raise ShapeError(f"{self.name}: top_k={self.top_k} needs scores of every class, [N, C, ...]")
            right = self._among_best(seen.predictions, seen.targets)
        else:
            made = decide(seen, self.threshold)
            right = made.predictions == made.targets
            right = right.all(axis=1) if made.kind == "labels" else right
        return {"count": len(right), "right": int(right.sum())}

    def _among_best(self, scores: Array, ids: Array) -> Array:
        """Whether fewer than `top_k` classes come before the target; of equal scores, the first class does."""
        if self.top_k >= scores.shape[1]:
            raise TensorError(
                f"{self.name}: top_k={self.top_k} of {scores.shape[1]} classes is always right",
                hint="take a smaller one",
            )
        own = np.take_along_axis(scores, ids[:, None], axis=1)
        ties = (scores == own) & (np.arange(scores.shape[1]) < ids[:, None])
        before: Array = ((scores > own) | ties).sum(axis=1)
        return before < self.top_k

    def _result(self, state: State) -> float:
        return float(state["right"] / state["count"])


class Counted(Metric):
    """Metrics of how often each class, or label, was predicted, was there, and both."""

    rules: ClassVar[Mapping[str, StateRule]] = {
        "count": SUM, "kind": SAME, "width": SAME_NUMBER, "hits": COUNTS, "predicted": COUNTS, "actual": COUNTS,
    }  # fmt: skip

    def __init__(self, threshold: float = 0.5, num_classes: int | None = None, ignore_index: int | None = None) -> None:
        super().__init__(threshold=threshold, num_classes=num_classes, ignore_index=ignore_index)
        self.threshold, self.num_classes, self.ignore_index = threshold, num_classes, ignore_index

    def _join(self, mine: State, other: State) -> State:
        joined = super()._join(mine, other)
        return _within_width(self.name, joined, len(joined["hits"]))

    def _decided(self, predictions: Any, targets: Any) -> Decided:
        return decide(given(self.name, predictions, targets, self.num_classes, self.ignore_index), self.threshold)

    def _seen(self, predictions: Any, targets: Any) -> State:
        return self._counted(self._decided(predictions, targets))

    def _counted(self, made: Decided) -> State:
        found, wanted = made.predictions, made.targets
        if made.kind == "labels":
            hits, predicted, actual = (found & wanted).sum(axis=0), found.sum(axis=0), wanted.sum(axis=0)
        else:
            size = made.width or (1 + int(max(found.max(), wanted.max())) if len(found) else 0)
            hits, predicted, actual = (
                np.bincount(ids, minlength=size) for ids in (found[found == wanted], found, wanted)
            )
        return {
            "count": len(found), "kind": made.kind, "width": made.width,
            "hits": hits.astype(np.int64), "predicted": predicted.astype(np.int64), "actual": actual.astype(np.int64),
        }  # fmt: skip


class Averaged(Counted):
    """A share of hits for every class, and its average.

    `average`: "binary" is that of class `pos_label` alone, "macro" the mean over classes, "weighted" by how often they
    are there, "micro" counts all classes together, "samples" is the mean over examples with labels [N, L], None gives
    every class. `zero_division` stands where nothing could be right; NaN leaves it out of averages.
    """

    rules: ClassVar[Mapping[str, StateRule]] = {**Counted.rules, "sample_total": SUM, "sample_count": SUM}

    def __init__(
        self,
        average: str | None = "binary",
        *,
        threshold: float = 0.5,
        num_classes: int | None = None,
        ignore_index: int | None = None,
        zero_division: float = 0.0,
        pos_label: int = 1,
    ) -> None:
        self.average = choice(self.name, "average", average, AVERAGES)
        if not isinstance(zero_division, int | float) or not (math.isnan(zero_division) or 0 <= zero_division <= 1):
            raise TensorError(f"{self.name}: zero_division is a number from 0 to 1 or NaN, not {zero_division!r}")
        self.zero_division = math.nan if math.isnan(zero_division) else float(zero_division)
        self.pos_label = pos_label
        if pos_label not in (0, 1):
            raise IndexOutOfRange(f"{self.name}: pos_label is 0 or 1, not {pos_label}")
        super().__init__(threshold, num_classes, ignore_index)
        self.options = {
            "average": average, **self.options, "zero_division": self.zero_division, "pos_label": pos_label,
        }  # fmt: skip

    @abstractmethod
    def _parts(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        """What is divided by what."""

    def _share(self, hits: Array, predicted: Array, actual: Array) -> Array:
        above, below = self._parts(hits, predicted, actual)
        nothing = below == 0
        return np.where(nothing, self.zero_division, above / np.where(nothing, 1, below))

    def _seen(self, predictions: Any, targets: Any) -> State:
        made = self._decided(predictions, targets)
        state = self._counted(made)
        self._check(made.kind, len(state["hits"]))
        total, number = 0.0, 0
        if self.average == "samples":
            found, wanted = made.predictions, made.targets
            shares = self._share((found & wanted).sum(axis=1), found.sum(axis=1), wanted.sum(axis=1))
            told = ~np.isnan(shares)
            total, number = float(shares[told].sum()), int(told.sum())
        return {**state, "sample_total": total, "sample_count": number}

    def _check(self, kind: str, classes: int) -> None:
        if self.average == "samples" and kind != "labels":
            raise TensorError(
                f"{self.name}: average='samples' is for labels [N, L], and these are classes",
                hint="average: 'micro', 'macro', 'weighted' or None",
            )
        if self.average == "binary" and (kind == "labels" or classes > 2):
            raise TensorError(
                f"{self.name}: average='binary' is for two classes, and these are {classes} "
                f"{'labels' if kind == 'labels' else 'classes'}",
                hint="choose an average: 'micro', 'macro', 'weighted' or None"
                + (" or 'samples'" if kind == "labels" else ""),
            )

    def _result(self, state: State) -> Any:
        if self.average == "samples":
            return state["sample_total"] / state["sample_count"] if state["sample_count"] else math.nan
        counts = np.stack([state["hits"], state["predicted"], state["actual"]])
        if self.average == "micro":
            return self._share(*counts.sum(axis=1))
        if self.average == "binary":
            counts = np.pad(counts, ((0, 0), (0, 2 - counts.shape[1])))
            return self._share(*counts[:, self.pos_label])
        shares = self._share(*counts)
        if self.average is None:
            return shares
        taken = ~np.isnan(shares)
        if state["kind"] == "classes" and self.num_classes is None:
            taken &= (state["predicted"] > 0) | (state["actual"] > 0)
        if not taken.any():
            return math.nan
        weights = state["actual"][taken] if self.average == "weighted" else np.ones(taken.sum())
        return np.average(shares[taken], weights=weights if weights.any() else None)


class Precision(Averaged):
    """Of what was predicted to be of a class, the share that is."""

    name = "precision"

    def _parts(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        return hits, predicted


class Recall(Averaged):
    """Of what is of a class, the share that was predicted to be."""

    name = "recall"

    def _parts(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        return hits, actual


class FBeta(Averaged):
    """The harmonic mean of precision and recall, in which recall counts `beta` times as much."""

    name = "fbeta"

    def __init__(self, beta: float = 1.0, average: str | None = "binary", **options: Any) -> None:
        if not beta >= 0:
            raise TensorError(f"{self.name}: beta is 0 or more, not {beta}")
        self.beta = float(beta)
        super().__init__(average, **options)
        self.options = {"beta": self.beta, **self.options}

    def _parts(self, hits: Array, predicted: Array, actual: Array) -> tuple[Array, Array]:
        if math.isinf(self.beta):
            return hits, actual
        square = self.beta**2
        return (1 + square) * hits, square * actual + predicted


class F1Score(FBeta):
    """The harmonic mean of precision and recall."""

    name = "f1_score"

    def __init__(self, average: str | None = "binary", **options: Any) -> None:
        self.beta = 1.0
        Averaged.__init__(self, average, **options)  # beta is no option here


class Chance(Counted):
    """Agreement of predictions and targets beyond that of chance; for classes, not for labels."""

    def _counted(self, made: Decided) -> State:
        if made.kind == "labels":
            raise TensorError(f"{self.name} is for classes, not for labels", hint="take the columns one by one")
        return super()._counted(made)

    def _sums(self, state: State) -> tuple[int, int, int, int, int]:
        """Examples, hits, and sums of products, exactly: of both, of predictions, of targets."""
        predicted, actual = (state[key].astype(object) for key in ("predicted", "actual"))
        return (
            state["count"], int(state["hits"].sum()),
            sum(predicted * actual), sum(predicted * predicted), sum(actual * actual),
        )  # fmt: skip


class CohenKappa(Chance):
    """Cohen's kappa: accuracy beyond chance, 1 where all is right, 0 for guesses; NaN where there is one class only."""

    name = "cohen_kappa"

    def _result(self, state: State) -> float:
        count, hits, both, _, _ = self._sums(state)
        return (count * hits - both) / (count * count - both) if count * count != both else math.nan


class MatthewsCorrelation(Chance):
    """Matthews' correlation of predictions and targets, from -1 to 1; 0 where one of them is constant."""

    name = "matthews_correlation"

    def _result(self, state: State) -> float:
        count, hits, both, found, wanted = self._sums(state)
        below = (count * count - found) * (count * count - wanted)
        return (count * hits - both) / math.sqrt(below) if below else 0.0


class ConfusionMatrix(Metric):
    """How often examples of a class (row) were predicted to be of another (column).

    Of labels [N, L], a matrix [[not there and not predicted, predicted alone], [there alone, both]] for each of them.
    `normalize` divides by the sums of rows ("true"), of columns ("pred") or of all ("all").
    """

    name = "confusion_matrix"
    higher_is_better = None
    rules: ClassVar[Mapping[str, StateRule]] = {"count": SUM, "kind": SAME, "width": SAME_NUMBER, "matrix": COUNTS}

    def __init__(
        self,
        num_classes: int | None = None,
        normalize: str | None = None,
        labels: Sequence[str] | None = None,
        threshold: float = 0.5,
        ignore_index: int | None = None,
    ) -> None:
        self.normalize = choice(self.name, "normalize", normalize, NORMALIZATIONS)
        self.labels = None if labels is None else [str(label) for label in labels]
        if self.labels is not None and num_classes not in (None, len(self.labels)):
            raise ShapeError(f"{self.name}: {len(self.labels)} labels are given for {num_classes} classes")
        self.num_classes = num_classes if self.labels is None else len(self.labels)
        self.threshold, self.ignore_index = threshold, ignore_index
        super().__init__(
            num_classes=self.num_classes, normalize=normalize, labels=self.labels, threshold=threshold,
            ignore_index=ignore_index,
        )  # fmt: skip

    def _seen(self, predictions: Any, targets: Any) -> State:
        made = decide(given(self.name, predictions, targets, self.num_classes, self.ignore_index), self.threshold)
        found, wanted = made.predictions, made.targets
        if made.kind == "labels":
            if self.normalize is not None:
                raise TensorError(f"{self.name}: normalize is for classes, and these are labels {list(found.shape)}")
            pairs = [[(~wanted & ~found), (~wanted & found)], [(wanted & ~found), (wanted & found)]]
            matrix = np.array([[pair.sum(axis=0) for pair in row] for row in pairs], np.int64).transpose(2, 0, 1)
        else:
            size = made.width or (1 + int(max(found.max(), wanted.max())) if len(found) else 0)
            if size > MOST_UNTOLD and self.num_classes is None:
                raise IndexOutOfRange(
                    f"{self.name}: a matrix of {size} classes takes {size * size * 8 >> 20} MiB",
                    hint="give num_classes, if there are so many",
                )
            matrix = np.bincount(wanted * size + found, minlength=size * size).astype(np.int64).reshape(size, size)
        return {"count": len(found), "kind": made.kind, "width": made.width, "matrix": matrix}

    def _join(self, mine: State, other: State) -> State:
        joined = super()._join(mine, other)
        return _within_width(self.name, joined, len(joined["matrix"]))

    def _result(self, state: State) -> Array:
        matrix: Array = state["matrix"]
        if self.normalize is None:
            return matrix.copy()
        axis = {"true": 1, "pred": 0, "all": None}[self.normalize]
        sums = matrix.sum(axis=axis, keepdims=True)
        return matrix / np.where(sums == 0, 1, sums)

    def show(self, file: TextIO | None = None, width: int | None = None) -> None:
        """Draw the matrix in the terminal, or write it to a file as plain text."""
        self.compute()
        draw_confusion(self._state["matrix"], self.labels, file=file, width=width)

    def png(self, path: str | PathLike[str]) -> None:
        """Draw the matrix to a PNG file; needs matplotlib."""
        self.compute()
        png_confusion(self._state["matrix"], path, self.labels)
