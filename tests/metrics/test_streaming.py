"""Metrics batch by batch: any split of the data, merged or not, saved or not, gives what all of it gives at once."""

from __future__ import annotations

import json
import warnings
from typing import Any

import numpy as np
import pytest
from comparisons import DATA
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from batches import of_each
from effort import examples
from eshkol import metrics as m
from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError, TensorError

# kind of data → metrics that take it
STREAMED: dict[str, list[m.Metric]] = {
    "classes": [
        m.Accuracy(), m.Precision("macro"), m.Recall("weighted", zero_division=1.0), m.F1Score("micro"),
        m.FBeta(2.0, "macro", num_classes=6), m.ConfusionMatrix(), m.ConfusionMatrix(4, "true"), m.CohenKappa(),
        m.MatthewsCorrelation(),
    ],
    "two_classes": [m.Precision(), m.Recall(pos_label=0), m.F1Score(zero_division=float("nan"))],
    "score": [m.Accuracy(threshold=0.3), m.F1Score(), m.ROCAUC(), m.AveragePrecision(), m.LogLoss()],
    "probabilities": [
        m.Accuracy(top_k=2), m.F1Score(None), m.ROCAUC(), m.ROCAUC("weighted", multi_class="ovo"), m.LogLoss(),
        m.AveragePrecision("micro"), m.Perplexity(), m.ConfusionMatrix(labels=["a", "b", "c"]),
    ],
    "labels": [
        m.Accuracy(), m.F1Score("samples"), m.Precision("samples", zero_division=float("nan")), m.Recall("macro"),
        m.F1Score(None), m.ConfusionMatrix(),
    ],
    "label_scores": [m.ROCAUC("samples"), m.AveragePrecision(None), m.Precision("micro", threshold=0.2)],
    "numbers": [m.MeanAbsoluteError(), m.MeanSquaredError(squared=False), m.R2Score()],
    "outputs": [m.MeanAbsoluteError("raw_values"), m.MeanSquaredError(), m.R2Score("variance_weighted")],
}  # fmt: skip
NO_METRICS: Any = {"loss": 3}
CASES = [(kind, metric) for kind, metrics in STREAMED.items() for metric in metrics]


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-10, atol=1e-12)


@examples(1000, 100)
@given(case=st.sampled_from(CASES), seed=st.integers(0, 10**6), size=st.integers(3, 30), data=st.data())
def test_any_split_gives_what_all_gives(case: tuple[str, m.Metric], seed: int, size: int, data: st.DataObject) -> None:
    kind, metric = case
    predictions, targets = DATA[kind](np.random.default_rng(seed), size)
    cuts = sorted(data.draw(st.lists(st.integers(0, size), max_size=5), "cuts"))
    parts = [slice(a, b) for a, b in zip([0, *cuts], [*cuts, size], strict=True)]
    middle = data.draw(st.integers(0, len(parts)), "merged from")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", m.UndefinedMetric)
        metric.reset()
        metric.update(predictions, targets)
        wanted = metric.compute()

        metric.reset()
        for part in parts[:middle]:
            metric.update(predictions[part], targets[part])
        first = metric.state_dict()
        metric.reset()
        for part in parts[middle:]:
            metric.update(predictions[part], targets[part])
        second = metric.state_dict()
        metric.reset()
        metric.load_state_dict(second)
        other = metric.fresh()
        other.load_state_dict(first)
        close(other.merge(metric).compute(), wanted)
    metric.reset()


@of_each("kind, metric", CASES)
def test_states_are_plain(kind: str, metric: m.Metric) -> None:
    metric.reset()
    metric.update(*DATA[kind](np.random.default_rng(1), 6))
    state = metric.state_dict()
    assert all(isinstance(value, int | float | str | np.ndarray) for value in state.values())
    wanted = metric.compute()
    kept = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in state.items()}
    metric.update(*DATA[kind](np.random.default_rng(2), 6))  # what was given out stays as it was
    for key, value in kept.items():
        np.testing.assert_array_equal(state[key], value)
    lists = json.loads(json.dumps({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in state.items()}))
    metric.reset()
    metric.load_state_dict(lists)
    close(metric.compute(), wanted)
    metric.reset()


def test_r2_is_stable_far_from_zero() -> None:
    """Deviations of 1e-3 around 1e9: sums of squares would have lost them."""
    rng = np.random.default_rng(0)
    away = rng.integers(-8, 9, 4000) / 1024.0
    errors = rng.integers(-4, 5, 4000) / 1024.0
    metric = m.R2Score()
    for part in range(0, 4000, 100):
        piece = slice(part, part + 100)
        metric.update(1e9 + away[piece] + errors[piece], 1e9 + away[piece])
    assert metric.compute() == pytest.approx(1 - (errors**2).sum() / ((away - away.mean()) ** 2).sum(), rel=1e-4)


def test_r2_of_constant_targets_over_batches() -> None:
    metric = m.R2Score()
    for size in (3, 7, 11):  # the mean of 0.1, 0.1, 0.1 rounds to something else
        metric.update(np.full(size, 0.1), np.full(size, 0.1))
    assert metric.compute() == 1.0
    metric.update([0.2], [0.1])
    assert metric.compute() == 0.0


def test_means_of_losses() -> None:
    loss = m.Mean("loss", higher_is_better=False)
    loss.update(2.0, 3)
    loss.update(ek.tensor(4.0), 1)
    assert loss.compute() == 2.5
    loss.update([1.0, 2.0], [0.0, 4.0])
    assert loss.compute() == (6.0 + 4.0 + 8.0) / 8.0
    assert loss.name == "loss"
    loss.update(float("nan"))
    assert np.isnan(loss.compute())
    with pytest.raises(ShapeError, match=r"values have shape \[2\], weights \[3\]"):
        loss.update([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(TensorError, match="negative"):
        loss.update([1.0], -1.0)


# --- collections ------------------------------------------------------------------------------------


def test_a_collection_is_updated_as_one() -> None:
    together = m.MetricCollection([m.accuracy, m.F1Score("macro"), "macro-recall"])
    other = m.MetricCollection([m.Accuracy(), m.F1Score("macro"), m.get_metric("macro-recall")])
    together.update([0, 1, 2], [0, 1, 1])
    other.update([2, 2], [2, 0])
    together.merge(other)
    assert list(together) == ["accuracy", "f1_score", "macro_recall"]
    assert together.compute() == {
        "accuracy": 0.6,
        "f1_score": pytest.approx(m.f1_score([0, 1, 2, 2, 2], [0, 1, 1, 2, 0], "macro")),
        "macro_recall": pytest.approx(2 / 3),
    }
    again = together.fresh()
    saved = together.state_dict()
    again.load_state_dict(saved)
    assert again.compute() == together.compute()
    together.reset()
    with pytest.raises(TensorError, match="accuracy has seen no examples"):
        together.compute()


def test_a_batch_that_one_refuses_is_in_none() -> None:
    together = m.MetricCollection({"all": m.Accuracy(), "two": m.F1Score()})
    together.update([0, 1], [0, 1])
    with pytest.raises(TensorError, match="two classes"):
        together.update([0, 2], [2, 0])
    assert together.compute() == {"all": 1.0, "two": 1.0}


def test_what_cannot_be_together() -> None:
    with pytest.raises(TensorError, match="two metrics are called accuracy"):
        m.MetricCollection([m.Accuracy(), m.Accuracy(top_k=2)])
    with pytest.raises(DTypeError, match="a metric, or the name of one, is wanted, not 3"):
        m.MetricCollection(NO_METRICS)
    with pytest.raises(DTypeError, match="a Accuracy cannot take in a Recall"):
        m.Accuracy().merge(m.Recall())
    with pytest.raises(TensorError, match="cannot take in"):
        m.F1Score("macro").merge(m.F1Score("micro"))
    with pytest.raises(TensorError, match="cannot be one"):
        m.MetricCollection([m.Accuracy()]).merge(m.MetricCollection([m.Recall()]))
    with pytest.raises(TensorError, match="wants a state with count, right, not nothing"):
        m.Accuracy().load_state_dict({})


def test_batches_that_do_not_go_together() -> None:
    metric: m.Metric = m.F1Score("macro")
    metric.update([[0, 1]], [[1, 1]])
    with pytest.raises(ShapeError, match="f1_score: batches do not go together: earlier ones had labels"):
        metric.update([0, 1], [0, 1])
    metric = m.ConfusionMatrix()
    metric.update([[0.2, 0.8]], [1])
    with pytest.raises(IndexOutOfRange, match="class 4 is out of range: other batches had scores of 2 classes"):
        metric.update([4], [0])
    assert metric.compute().tolist() == [[0, 0], [0, 1]]
    errors = m.MeanSquaredError()
    errors.update([[1.0, 2.0]], [[0.0, 0.0]])
    with pytest.raises(ShapeError, match="earlier batches had 2 outputs for each example, this one has 1"):
        errors.update([1.0], [0.0])


def test_not_a_number_of_zero_division_merges() -> None:
    first, second = (m.Precision("macro", zero_division=float("nan")) for _ in range(2))
    first.update([0, 1], [0, 0])
    assert first.merge(second).compute() == 0.5
