"""Metrics against scikit-learn: its stored answers always, itself on random data where it is installed."""

from __future__ import annotations

import importlib
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from comparisons import COMPARISONS, DATA, Comparison

from batches import of_each
from effort import amount
from eshkol import metrics as m

STORED = json.loads(Path(__file__).with_name("references.json").read_text("utf-8"))


def ours(one: Comparison, predictions: Any, targets: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", m.UndefinedMetric)
        return np.asarray(getattr(m, one.function)(predictions, targets, **one.options))


@of_each("one", COMPARISONS)
def test_stored_answers(one: Comparison) -> None:
    for pair, wanted in zip(STORED["inputs"][one.data], STORED["answers"][str(one)], strict=True):
        np.testing.assert_allclose(ours(one, *pair), wanted, rtol=1e-12, atol=1e-14)


def test_all_that_is_stored_is_compared() -> None:
    assert set(STORED["answers"]) == {str(one) for one in COMPARISONS}
    assert len({str(one) for one in COMPARISONS}) == len(COMPARISONS)


@pytest.mark.parametrize("function", sorted({one.function for one in COMPARISONS}))
def test_scikit_learn_itself(function: str) -> None:
    pytest.importorskip("sklearn")
    theirs = importlib.import_module("sklearn.metrics")
    for one in COMPARISONS:
        for seed in range(amount(100, 5) if one.function == function else 0):
            rng = np.random.default_rng([seed, 9])
            predictions, targets = DATA[one.data](rng, int(rng.integers(4, 40)))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = one.theirs(theirs, predictions, targets)
            np.testing.assert_allclose(
                ours(one, predictions, targets), wanted, rtol=1e-11, atol=1e-13, err_msg=f"{one}, seed {seed}"
            )


def test_top_k_of_scikit_learn() -> None:
    """Where no scores are equal; of equals, theirs takes the last class and ours the first, as argmax does."""
    pytest.importorskip("sklearn")
    theirs = importlib.import_module("sklearn.metrics")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores, targets = rng.random((30, 6)), rng.integers(0, 6, 30)
        for k in (1, 2, 5):
            wanted = theirs.top_k_accuracy_score(targets, scores, k=k, labels=range(6))
            assert m.accuracy(scores, targets, top_k=k) == wanted


def test_absent_classes_of_probabilities() -> None:
    """A class that never occurs has no ROC curve: NaN, as theirs; weighted, it does not matter."""
    scores = np.array([[0.5, 0.3, 0.2], [0.2, 0.6, 0.2], [0.6, 0.3, 0.1], [0.3, 0.3, 0.4]])
    targets = np.array([0, 1, 1, 0])
    with pytest.warns(m.UndefinedMetric, match="class 2: nothing is positive"):
        assert math.isnan(m.roc_auc(scores, targets))
    with pytest.warns(m.UndefinedMetric):
        weighted = m.roc_auc(scores, targets, "weighted")
    assert weighted == 0.625  # of class 0 a half, of class 1 three quarters: 3 of 4 pairs, two of them ties
    assert m.roc_auc(scores, targets, multi_class="ovo") == 0.625


def test_absent_classes_of_scikit_learn() -> None:
    pytest.importorskip("sklearn")
    theirs = importlib.import_module("sklearn.metrics")
    for seed in range(20):
        rng = np.random.default_rng(seed)
        scores = rng.dirichlet(np.ones(5), 12)
        targets = rng.choice(rng.choice(5, rng.integers(2, 5), replace=False), 12)
        told: list[dict[str, Any]] = [
            {"average": "weighted"}, {"multi_class": "ovo"}, {"multi_class": "ovo", "average": "weighted"},
        ]  # fmt: skip
        for options in told:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                wanted = theirs.roc_auc_score(targets, scores, labels=range(5), **{"multi_class": "ovr", **options})
                found = m.roc_auc(scores, targets, **options)
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
