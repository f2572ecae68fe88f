"""Metrics by hand: values that can be checked on paper, what is taken as input, names, and what is refused."""

from __future__ import annotations

import doctest
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from batches import of_each
from eshkol import metrics as m
from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError, TensorError, TraceError
from eshkol.metrics import functions


@pytest.fixture(autouse=True)
def on_the_reference_backend() -> Iterator[None]:
    with ek.use_backend("reference"):
        yield


# --- values -----------------------------------------------------------------------------------------


def test_counts_by_hand() -> None:
    predictions, targets = [1, 1, 1, 0, 0], [1, 0, 0, 1, 0]
    assert m.accuracy(predictions, targets) == 2 / 5
    assert m.precision(predictions, targets) == 1 / 3
    assert m.recall(predictions, targets) == 1 / 2
    assert m.f1_score(predictions, targets) == pytest.approx(2 / 5)
    assert m.fbeta(predictions, targets, beta=0.0) == 1 / 3
    assert m.fbeta(predictions, targets, beta=math.inf) == 1 / 2
    assert m.confusion_matrix(predictions, targets).tolist() == [[1, 2], [1, 1]]
    assert m.confusion_matrix(predictions, targets).dtype is ek.int64
    assert m.recall(predictions, targets, None).tolist() == [1 / 3, 1 / 2]


def test_chance_by_hand() -> None:
    assert m.cohen_kappa([0, 0, 1, 1], [0, 1, 0, 1]) == 0.0
    assert m.cohen_kappa([0, 1, 2], [0, 1, 2]) == 1.0
    assert math.isnan(m.cohen_kappa([1, 1], [1, 1]))
    assert m.matthews_correlation([0, 1], [1, 0]) == -1.0
    assert m.matthews_correlation([1, 1], [1, 0]) == 0.0


def test_areas_by_hand() -> None:
    assert m.roc_auc([0.0, 1.0], [0, 1]) == 1.0
    assert m.roc_auc([1.0, 0.0], [0, 1]) == 0.0
    assert m.roc_auc([3, 3, 3], [0, 1, 1]) == 0.5  # whole numbers are scores too
    assert m.roc_auc([-np.inf, np.inf, 0.0], [0, 1, 0]) == 1.0
    assert m.average_precision([0.5, 0.5, 0.5, 0.5], [1, 0, 0, 0]) == 0.25
    with pytest.warns(m.UndefinedMetric, match="roc_auc is not defined for all examples: nothing is negative; nan"):
        assert math.isnan(m.roc_auc([0.1, 0.2], [1, 1]))
    with pytest.warns(m.UndefinedMetric, match="average_precision"):
        assert m.average_precision([0.1, 0.2], [0, 0]) == 0.0
    assert m.average_precision([0.1, 0.2], [1, 1]) == 1.0


def test_two_columns_are_one_score() -> None:
    second = np.array([0.1, 0.4, 0.35, 0.8])
    for metric in (m.roc_auc, m.average_precision, m.log_loss):
        assert metric(np.stack([1 - second, second], axis=1), [0, 0, 1, 1]) == metric(second, [0, 0, 1, 1])


def test_logits_are_probabilities_after_softmax() -> None:
    rng = np.random.default_rng(3)
    logits, targets = rng.normal(size=(9, 4)), rng.integers(0, 4, 9)
    targets[:4] = range(4)
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    for metric in (m.roc_auc, m.average_precision, m.log_loss):
        assert metric(logits, targets, from_logits=True) == pytest.approx(metric(shares, targets), rel=1e-12)
    one = np.where(targets % 2 == 1, 2.0, -1.0) * rng.random(9)
    assert m.log_loss(one, targets % 2, from_logits=True) == pytest.approx(
        m.log_loss(1 / (1 + np.exp(-one)), targets % 2)
    )


def test_many_scores_are_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    logits, targets = rng.normal(size=(11, 4)), rng.integers(0, 4, 11)
    wanted = m.perplexity(logits, targets)
    monkeypatch.setattr("eshkol.metrics.probability.AT_ONCE", 12)
    assert m.perplexity(logits, targets) == wanted


def test_narrow_dtypes_have_wide_tolerances() -> None:
    shares = ek.softmax(ek.tensor(np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)), axis=1)
    targets = np.arange(40) % 5
    for dtype in (ek.bfloat16, ek.float16):
        narrow = shares.astype(dtype)
        assert m.roc_auc(narrow, targets) == pytest.approx(m.roc_auc(shares, targets), abs=0.02)
        assert m.log_loss(narrow, targets) == pytest.approx(m.log_loss(shares, targets), rel=0.02)


def test_extreme_logits_have_finite_losses() -> None:
    assert m.log_loss([1000.0, -1000.0], [0, 1], from_logits=True) == 1000.0
    assert m.log_loss([[1000.0, 0.0]], [1], from_logits=True) == 1000.0
    assert m.log_loss([1.0], [0]) == pytest.approx(-math.log(np.finfo(np.float64).eps))
    assert m.perplexity([[1000.0, 0.0]], [1]) == math.inf


def test_perplexity_of_a_guess_is_the_number_of_classes() -> None:
    assert m.perplexity(np.zeros((2, 7, 3)), np.zeros((2, 3), int)) == pytest.approx(7)
    logits = np.array([[0.0, 0.0], [9.0, 0.0]])
    assert m.perplexity(logits, [0, -100], ignore_index=-100) == pytest.approx(2)


def test_regression_by_hand() -> None:
    assert m.mean_absolute_error([[1.0, 2.0], [3.0, 4.0]], [[1.0, 0.0], [2.0, 4.0]]) == 0.75
    assert m.mean_squared_error([1, 2, 3], [1, 2, 6]) == 3.0
    assert m.mean_squared_error([1, 2, 3], [1, 2, 6], squared=False) == math.sqrt(3.0)
    assert m.r2_score([2.0, 2.0, 2.0], [1.0, 2.0, 3.0]) == 0.0
    assert m.r2_score([3.0, 2.0, 1.0], [1.0, 2.0, 3.0]) == -3.0
    with pytest.warns(m.UndefinedMetric):
        assert math.isnan(m.r2_score([1.0], [1.0]))
    assert math.isnan(m.r2_score([math.nan, 1.0], [1.0, 1.0]))
    assert m.mean_squared_error(np.ones((2, 3, 4)), np.zeros((2, 3, 4))) == 1.0


# --- what is given ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "made",
    [
        lambda x: x,
        np.array,
        ek.tensor,
        lambda x: ek.tensor(x, dtype=ek.float32) if isinstance(x[0], list) else ek.tensor(x, dtype=ek.int32),
        lambda x: ek.tensor(x, dtype=ek.bfloat16) if isinstance(x[0], list) else np.array(x, np.uint8),
        lambda x: ek.tensor(x, requires_grad=True) if isinstance(x[0], list) else ek.tensor(x).astype(ek.float32),
        lambda x: [ek.tensor(row) for row in x],
    ],
)
def test_tensors_arrays_and_lists(made: Any) -> None:
    scores, targets = [[0.5, 0.25, 0.25], [0.125, 0.75, 0.125], [0.5, 0.25, 0.25]], [0, 1, 2]
    assert m.accuracy(made(scores), made(targets)) == 2 / 3
    assert m.roc_auc(made(scores), made(targets)) == pytest.approx((0.75 + 1.0 + 0.75) / 3)


def test_the_shapes_of_models() -> None:
    ids = np.array([[0, 1], [2, 1]])
    scores = np.moveaxis(np.eye(3)[ids], -1, 1)  # classes on axis 1, as losses have them
    assert m.accuracy(scores, ids) == 1.0
    assert m.accuracy(scores, np.array([[0, 1], [2, 9]]), ignore_index=9) == 1.0
    for predictions in ([0.9, 0.2], [[0.9], [0.2]]):  # one output, with or without its axis
        for targets in ([1, 0], [[1], [0]], [1.0, 0.0], [True, False]):
            assert m.accuracy(predictions, targets) == 1.0
            assert m.f1_score(predictions, targets) == 1.0
    assert m.accuracy(3, 3) == 1.0
    assert m.accuracy([0.0, 2.0], [0, 1], threshold=0.0) == 1.0  # logits; what is at the threshold is below
    assert m.accuracy([[0.5, 0.5]], [0]) == 1.0  # of equals, the first


def test_labels_are_right_together() -> None:
    assert m.accuracy([[0.9, 0.1], [0.9, 0.9]], [[1, 0], [1, 0]]) == 0.5
    assert m.confusion_matrix([[1, 0], [1, 1]], [[1, 0], [0, 1]]).tolist() == [[[0, 1], [0, 1]], [[1, 0], [0, 1]]]


def test_top_k() -> None:
    scores = [[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.1, 0.5, 0.5, 0.5]]
    targets = [2, 2, 3]
    assert m.accuracy(scores, targets, top_k=1) == 0.0
    assert m.accuracy(scores, targets, top_k=2) == 1 / 3
    assert m.accuracy(scores, targets, top_k=3) == 1.0


def test_classes_that_nobody_has_seen() -> None:
    assert m.recall([0, 3], [0, 3], "macro") == 1.0
    assert m.recall([0, 3], [0, 3], "macro", num_classes=4) == 0.5
    assert m.recall([0, 3], [0, 3], None).tolist() == [1.0, 0.0, 0.0, 1.0]
    assert m.confusion_matrix([0, 1], [0, 1], num_classes=3).shape == (3, 3)


def test_nothing_is_differentiated_in_silence() -> None:
    with pytest.raises(TraceError, match="lose the derivative"):
        ek.grad(lambda x: x.sum() + m.mean_squared_error(x, [1.0, 2.0]))(ek.tensor([1.0, 2.0]))


# --- what is refused --------------------------------------------------------------------------------

REFUSED: list[tuple[Any, type[Exception], str]] = [
    (lambda: m.accuracy([1, 2], [1]), ShapeError, r"accuracy: predictions have shape \[2\], targets \[1\]"),
    (lambda: m.accuracy(np.zeros((2, 5, 3)), np.zeros((2, 5), int)), ShapeError, "classes stand on axis 1"),
    (lambda: m.accuracy(np.zeros((2, 5, 3)), np.zeros((2, 5, 3))), ShapeError, r"flatten them"),
    (lambda: m.mean_squared_error(np.zeros((3, 1)), np.zeros(3)), ShapeError, r"\[3, 1\], targets \[3\]"),
    (lambda: m.accuracy([[1, 2], [1]], [1, 2]), ShapeError, "different lengths"),
    (lambda: m.accuracy([0, 5], [0, 1], num_classes=3), IndexOutOfRange, r"class 5 in predictions \(at \[1\]\)"),
    (lambda: m.accuracy(np.zeros((2, 3)), [0, 3]), IndexOutOfRange, r"class 3 in targets .* are 0 to 2"),
    (lambda: m.accuracy([0, -1], [0, 1]), IndexOutOfRange, "classes begin at 0"),
    (lambda: m.accuracy([0.5, 0.2], [0, 2]), IndexOutOfRange, "scores of every class"),
    (lambda: m.f1_score([0], [1 << 40], "macro"), IndexOutOfRange, "give num_classes"),
    (lambda: m.confusion_matrix([0], [9000]), IndexOutOfRange, "a matrix of 9001 classes takes 618 MiB"),
    (lambda: m.accuracy([[0, 2]], [[0, 1]]), IndexOutOfRange, r"are labels, 0 or 1, and 2 stands at \[0, 1\]"),
    (lambda: m.accuracy([0, 1], [0.5, 1.0]), DTypeError, r"whole numbers, and 0.5 stands at \[0\]"),
    (lambda: m.accuracy(["cat"], ["dog"]), DTypeError, "must be numbers"),
    (lambda: m.accuracy([1j], [0]), DTypeError, "complex"),
    (lambda: m.accuracy([math.nan, 0.2], [0, 1]), TensorError, r"a NaN at \[0\]"),
    (lambda: m.accuracy(np.zeros((2, 3)), [0, 1], num_classes=4), ShapeError, "scores of 3 classes"),
    (lambda: m.accuracy([0.1], [0], num_classes=3), ShapeError, "tells two classes apart"),
    (lambda: m.accuracy([], []), TensorError, "accuracy has seen no examples"),
    (lambda: m.R2Score().compute(), TensorError, "r2_score has seen no examples"),
    (lambda: m.accuracy([1], [1], top_k=2), ShapeError, "top_k=2 needs scores"),
    (lambda: m.accuracy([[0.1, 0.9]], [1], top_k=2), TensorError, "always right"),
    (lambda: m.accuracy([1], [1], top_k=0), TensorError, "top_k is 1 or more"),
    (lambda: m.accuracy([1], [1], num_classes=0), TensorError, "num_classes"),
    (lambda: m.f1_score([0], [0], "mean"), TensorError, "there is no average 'mean'.*\n.*'macro'"),
    (lambda: m.f1_score([0, 2], [0, 1]), TensorError, "for two classes, and these are 3 classes"),
    (lambda: m.f1_score([[0, 1]], [[0, 1]]), TensorError, "these are 2 labels"),
    (lambda: m.f1_score([0, 1], [0, 1], "samples"), TensorError, "'samples' is for labels"),
    (lambda: m.recall([0], [0], zero_division=2.0), TensorError, "zero_division is a number from 0 to 1 or NaN"),
    (lambda: m.recall([0], [0], treshold=0.3), TypeError, "treshold"),
    (lambda: m.mean_absolute_error(np.zeros((2, 0)), np.zeros((2, 0))), ShapeError, "have no numbers"),
    (lambda: m.fbeta([0], [0], beta=-1.0), TensorError, "beta is 0 or more"),
    (lambda: m.recall([0], [0], pos_label=2), IndexOutOfRange, "pos_label is 0 or 1"),
    (lambda: m.cohen_kappa([[0, 1]], [[0, 1]]), TensorError, "not for labels"),
    (lambda: m.confusion_matrix([0], [0], normalize="rows"), TensorError, "there is no normalize 'rows'"),
    (lambda: m.confusion_matrix([[0, 1]], [[0, 1]], normalize="true"), TensorError, "normalize is for classes"),
    (lambda: m.roc_auc([[1.0, 2.0, 3.0]], [0]), TensorError, "example 0 sum to 6\n.*from_logits"),
    (lambda: m.roc_auc([[math.inf, 0.0, 0.0]], [0], from_logits=True), TensorError, "an infinity"),
    (lambda: m.roc_auc([0.1], [0], multi_class="all"), TensorError, "there is no multi_class"),
    (lambda: m.roc_auc([0.1], [0], None, multi_class="ovo"), TensorError, "'ovo' is averaged by"),
    (lambda: m.log_loss([1.5], [1]), TensorError, "from 0 to 1"),
    (lambda: m.log_loss([[0.1, 0.9]], [[0, 1]]), TensorError, "one-hot"),
    (lambda: m.r2_score([1.0], [1.0], multioutput="all"), TensorError, "variance_weighted"),
    (lambda: m.mean_absolute_error([[1.0, 2.0]], [[1.0, 2.0]], multioutput=[1.0]), ShapeError, "1 weights .* for 2"),
    (lambda: m.mean_absolute_error([1.0], [1.0], multioutput=[0.0]), TensorError, "not all of them 0"),
    (lambda: m.accuracy([[0, 1]], [[0, 1]], ignore_index=1), TensorError, "ignore_index is for class ids"),
]  # fmt: skip


@of_each("call, kind, message", REFUSED)
def test_mistakes_are_told(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        call()


# --- names ------------------------------------------------------------------------------------------


def test_metrics_by_name() -> None:
    assert isinstance(m.get_metric("accuracy"), m.Accuracy)
    assert m.get_metric("f1-score", average="macro").options["average"] == "macro"
    assert m.get_metric("weighted_precision").options["average"] == "weighted"
    assert m.get_metric("Top-5-Accuracy").name == "top_5_accuracy"
    assert m.get_metric("rmse").name == "root_mean_squared_error"
    assert not m.get_metric("mean-absolute-error").higher_is_better
    mine = m.Recall()
    assert m.get_metric(mine) is mine
    assert isinstance(m.get_metric(m.ROCAUC), m.ROCAUC)
    assert isinstance(m.get_metric(m.roc_auc, average="micro"), m.ROCAUC)
    assert m.get_metric(lambda predictions, targets: 1.0).name == "<lambda>"
    no_metric: Any = 3
    mistakes: tuple[tuple[Callable[[], m.Metric], str], ...] = (
        (lambda: m.get_metric("acuracy"), "did you mean 'accuracy'"),
        (lambda: m.get_metric("accuracy", averge=1), "averge"),
        (lambda: m.get_metric(mine, average="macro"), "its options already"),
        (lambda: m.get_metric(no_metric), "or the name of one"),
    )
    for call, message in mistakes:
        with pytest.raises(TensorError, match=message):
            call()


def test_metrics_of_users() -> None:
    seen = []

    def within(predictions: ek.Tensor, targets: ek.Tensor) -> ek.Tensor:
        seen.append(predictions.shape)
        return (abs(predictions - targets) <= 1.0).astype(ek.float64).mean()

    made = m.define_metric("within-one", within)
    made.update([1.0, 5.0], [1.0, 2.0])
    made.update(ek.tensor([3.0, 4.0]), [3.5, 4.0])
    assert made.compute() == 0.75
    assert seen == [(4,)]
    fresh = m.get_metric("within_one")
    with pytest.raises(TensorError, match="within_one has seen no examples"):
        fresh.compute()
    fresh.load_state_dict(made.state_dict())
    assert fresh.compute() == 0.75
    m.define_metric("within-one", lambda predictions, targets: 7, higher_is_better=False)
    again = m.get_metric("within-one")
    again.update([1], [1])
    assert again.compute() == 7.0
    assert again.higher_is_better is False

    m.define_metric("wrong", lambda predictions, targets: "good")
    wrong = m.get_metric("wrong")
    wrong.update([1.0], [1.0])
    with pytest.raises(DTypeError, match="the function of metric 'wrong' gave 'good'; a number is wanted"):
        wrong.compute()
    with pytest.raises(ShapeError, match=r"predictions have shape \[2\], targets \[1\]"):
        wrong.update([1, 2], [1])
    with pytest.raises(
        ShapeError, match=r"predictions of earlier batches had shape \[N, \], those of this one \[N, 2\]"
    ):
        wrong.update([[1, 2]], [1])
    with pytest.raises(TensorError, match="Eshkol's own"):
        m.define_metric("macro-f1-score", within)
    no_function: Any = 3
    with pytest.raises(DTypeError, match="needs a function"):
        m.define_metric("x", no_function)
    with pytest.raises(DTypeError, match="is a string"):
        m.define_metric("", within)


@pytest.mark.parametrize("made", [x for x in vars(m).values() if isinstance(x, type) and issubclass(x, m.Metric)])
def test_unknown_options_are_refused(made: Any) -> None:
    if made not in (m.Metric, m.DefinedMetric):
        assert made().fresh().options == made().options
        with pytest.raises(TypeError, match="wrong_option"):
            made(wrong_option=1)


def test_fractions_are_numbers() -> None:
    metric = m.DefinedMetric("half", lambda predictions, targets: Fraction(1, 2))
    metric.update([1], [1])
    assert metric.compute() == 0.5


def test_every_public_name_says_what_it_gives() -> None:
    for name in m.__all__:
        assert (getattr(m, name).__doc__ or "").strip(), name


def test_examples_of_the_functions() -> None:
    """The lines after >>> in the functions' docstrings give what stands below them."""
    tests = doctest.DocTestFinder().find(functions, globs={"ek": ek})
    runner = doctest.DocTestRunner(verbose=False)
    for test in tests:
        runner.run(test)
    assert runner.tries >= 15
    assert not runner.failures
