"""What is compared with scikit-learn: kinds of data, and for each of them calls of ours beside calls of theirs.

`store_answers.py` stores their answers for some data in references.json; `test_scikit_learn.py` asks scikit-learn
itself, where it is installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

Pair = tuple[Any, Any]  # predictions, targets
Theirs = Callable[[Any, Any, Any], Any]  # of sklearn.metrics, predictions, targets


# --- data -------------------------------------------------------------------------------------------


def classes(rng: np.random.Generator, size: int) -> Pair:
    """Ids of 4 classes, one of which may never occur, or only among the predictions."""
    present = rng.choice(4, size=rng.integers(1, 5), replace=False)
    return rng.integers(0, 4, size), rng.choice(present, size)


def two_classes(rng: np.random.Generator, size: int) -> Pair:
    """Ids of two classes; now and then all of one."""
    predictions, targets = rng.random((2, size)) < rng.choice([0.0, 0.3, 0.5, 1.0], (2, 1))
    return predictions, targets


def score(rng: np.random.Generator, size: int) -> Pair:
    """One score for each example, with ties, and targets of both classes."""
    targets = rng.integers(0, 2, size)
    targets[:2] = 0, 1
    return np.round(rng.random(size) * 0.6 + 0.4 * targets * rng.random(size), 1), targets


def probabilities(rng: np.random.Generator, size: int) -> Pair:
    """Probabilities of 3 classes, with ties; all of them occur."""
    raw = rng.integers(1, 5, (size, 3)).astype(float)
    targets = rng.integers(0, 3, size)
    targets[:3] = 0, 1, 2
    return raw / raw.sum(axis=1, keepdims=True), targets


def labels(rng: np.random.Generator, size: int) -> Pair:
    """Several labels for each example; some examples have none, some labels never occur."""
    predictions, targets = (rng.random((2, size, 4)) < rng.choice([0.0, 0.3, 0.7], 4)).astype(int)
    predictions[0] = 0
    targets[:2] = 0
    return predictions, targets


def label_scores(rng: np.random.Generator, size: int) -> Pair:
    """Scores of labels, with ties; every label and every example has both."""
    targets = rng.integers(0, 2, (size, 3))
    targets[:, 0] = 1 - targets[:, 1]
    targets[0], targets[1] = (0, 1, 0), (1, 0, 1)
    return np.round(rng.random((size, 3)), 1), targets


def numbers(rng: np.random.Generator, size: int) -> Pair:
    """Numbers far from zero, and close predictions."""
    targets = np.round(rng.normal(1000.0, 3.0, size), 3)
    return targets + np.round(rng.normal(0.0, 1.0, size), 3), targets


def outputs(rng: np.random.Generator, size: int) -> Pair:
    """Three outputs; the second is constant, and now and then predicted exactly."""
    targets = np.round(rng.normal(0.0, 2.0, (size, 3)), 3)
    targets[:, 1] = 2.0
    predictions = targets + np.round(rng.normal(0.0, 1.0, (size, 3)), 3)
    if rng.random() < 0.5:
        predictions[:, 1] = 2.0
    return predictions, targets


DATA: dict[str, Callable[[np.random.Generator, int], Pair]] = {
    made.__name__: made for made in (classes, two_classes, score, probabilities, labels, label_scores, numbers, outputs)
}


# --- calls ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """A call of ours, with its options, and the same of theirs."""

    data: str
    function: str
    options: dict[str, Any]
    theirs: Theirs

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return f"{self.function}-{self.data}" + (f"-{options}" if options else "")


def _plain(name: str, sk: Any, predictions: Any, targets: Any, **options: Any) -> Any:
    return getattr(sk, name)(targets, predictions, **options)


def _above(name: str, sk: Any, predictions: Any, targets: Any, **options: Any) -> Any:
    return getattr(sk, name)(targets, (np.asarray(predictions) > 0.5).astype(int), **options)


def _best(name: str, sk: Any, predictions: Any, targets: Any, **options: Any) -> Any:
    return getattr(sk, name)(targets, np.argmax(predictions, axis=1), **options)


def _comparisons() -> Iterator[Comparison]:
    nan = float("nan")
    average: str | None
    shares = {"precision": "precision_score", "recall": "recall_score", "f1_score": "f1_score", "fbeta": "fbeta_score"}
    for ours, theirs in shares.items():
        beta: dict[str, Any] = {"beta": 2.0} if ours == "fbeta" else {}
        for average in ("micro", "macro", "weighted"):
            for zero in (0.0, 1.0, nan):
                same = {**beta, "average": average, "zero_division": zero}
                yield Comparison("classes", ours, same, partial(_plain, theirs, **same))
                yield Comparison("labels", ours, same, partial(_plain, theirs, **same))
        for zero in (0.0, 1.0, nan):
            same = {**beta, "average": "samples", "zero_division": zero}
            yield Comparison("labels", ours, same, partial(_plain, theirs, **same))
            same = {**beta, "average": None, "zero_division": zero}
            yield Comparison("labels", ours, same, partial(_plain, theirs, **same))
            for average in (None, "macro", "weighted", "micro"):
                same = {**beta, "average": average, "zero_division": zero}
                told = partial(_plain, theirs, **same, labels=range(4))
                yield Comparison("classes", ours, {**same, "num_classes": 4}, told)
            same = {**beta, "zero_division": zero}
            yield Comparison("two_classes", ours, same, partial(_plain, theirs, **same))
            yield Comparison(
                "two_classes", ours, {**same, "pos_label": 0}, partial(_plain, theirs, **same, pos_label=0)
            )
        yield Comparison("score", ours, beta, partial(_above, theirs, **beta))
        macro = {**beta, "average": "macro"}
        yield Comparison("probabilities", ours, macro, partial(_best, theirs, **macro))
        yield Comparison("label_scores", ours, macro, partial(_above, theirs, **macro))

    for ours, theirs in {
        "accuracy": "accuracy_score", "cohen_kappa": "cohen_kappa_score", "matthews_correlation": "matthews_corrcoef",
    }.items():  # fmt: skip
        for data, call in (
            ("classes", _plain), ("two_classes", _plain), ("score", _above), ("probabilities", _best),
        ):  # fmt: skip
            yield Comparison(data, ours, {}, partial(call, theirs))
    for data, call in (("labels", _plain), ("label_scores", _above)):
        yield Comparison(data, "accuracy", {}, partial(call, "accuracy_score"))
        yield Comparison(data, "confusion_matrix", {}, partial(call, "multilabel_confusion_matrix"))
    for normalize in (None, "true", "pred", "all"):
        same = {"normalize": normalize}
        told = partial(_plain, "confusion_matrix", labels=range(4), **same)
        yield Comparison("classes", "confusion_matrix", {**same, "num_classes": 4}, told)
        yield Comparison("probabilities", "confusion_matrix", same, partial(_best, "confusion_matrix", **same))
        yield Comparison("score", "confusion_matrix", same, partial(_above, "confusion_matrix", **same))

    for ours, theirs in {"roc_auc": "roc_auc_score", "average_precision": "average_precision_score"}.items():
        yield Comparison("score", ours, {}, partial(_plain, theirs))
        for average in ("macro", "weighted", "micro", "samples", None):
            same = {"average": average}
            yield Comparison("label_scores", ours, same, partial(_plain, theirs, **same))
            if average != "samples":
                against = {"multi_class": "ovr"} if ours == "roc_auc" else {}
                yield Comparison("probabilities", ours, same, partial(_plain, theirs, **same, **against))
    for average in ("macro", "weighted"):
        same = {"average": average, "multi_class": "ovo"}
        yield Comparison("probabilities", "roc_auc", same, partial(_plain, "roc_auc_score", **same))
    yield Comparison("score", "log_loss", {}, partial(_plain, "log_loss"))
    yield Comparison("probabilities", "log_loss", {}, partial(_plain, "log_loss"))
    yield Comparison("probabilities", "perplexity", {"from_logits": False}, lambda sk, p, t: np.exp(sk.log_loss(t, p)))

    for ours in ("mean_absolute_error", "mean_squared_error", "r2_score"):
        yield Comparison("numbers", ours, {}, partial(_plain, ours))
        for over in ("uniform_average", "raw_values", [0.5, 0.2, 0.3]):
            same = {"multioutput": over}
            yield Comparison("outputs", ours, same, partial(_plain, ours, **same))
    same = {"multioutput": "variance_weighted"}
    yield Comparison("outputs", "r2_score", same, partial(_plain, "r2_score", **same))
    for over in ("uniform_average", "raw_values"):
        same = {"multioutput": over}
        told = partial(_plain, "root_mean_squared_error", **same)
        yield Comparison("outputs", "mean_squared_error", {**same, "squared": False}, told)


COMPARISONS = list(_comparisons())
