"""The metrics as functions of all predictions and all targets at once: each makes the metric, and asks it.

Arguments come as (predictions, targets): tensors, NumPy arrays or nested lists. What the options mean stands with the
classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eshkol.metrics.classification import (
    Accuracy,
    CohenKappa,
    ConfusionMatrix,
    F1Score,
    FBeta,
    MatthewsCorrelation,
    Precision,
    Recall,
)
from eshkol.metrics.metric import once
from eshkol.metrics.probability import LogLoss, Perplexity
from eshkol.metrics.ranking import ROCAUC, AveragePrecision
from eshkol.metrics.regression import MeanAbsoluteError, MeanSquaredError, R2Score
from eshkol.tensors.value import Tensor


def accuracy(
    predictions: Any,
    targets: Any,
    *,
    threshold: float = 0.5,
    top_k: int = 1,
    num_classes: int | None = None,
    ignore_index: int | None = None,
) -> float:
    """The share of examples that are predicted right.

    >>> ek.metrics.accuracy([0, 2, 1], [0, 1, 1])
    0.6666666666666666
    """
    return float(once(Accuracy(threshold, top_k, num_classes, ignore_index), predictions, targets))


def precision(predictions: Any, targets: Any, average: str | None = "binary", **options: Any) -> Any:
    """Of what was predicted to be of a class, the share that is; options are those of `Precision`.

    >>> ek.metrics.precision([1, 1, 0], [1, 0, 0])
    0.5
    """
    return once(Precision(average, **options), predictions, targets)


def recall(predictions: Any, targets: Any, average: str | None = "binary", **options: Any) -> Any:
    """Of what is of a class, the share that was predicted to be; options are those of `Recall`.

    >>> ek.metrics.recall([1, 1, 0], [1, 0, 0])
    1.0
    """
    return once(Recall(average, **options), predictions, targets)


def f1_score(predictions: Any, targets: Any, average: str | None = "binary", **options: Any) -> Any:
    """The harmonic mean of precision and recall; options are those of `F1Score`.

    >>> ek.metrics.f1_score([0, 1, 2, 2], [0, 1, 1, 2], "macro")
    0.7777777777777777
    """
    return once(F1Score(average, **options), predictions, targets)


def fbeta(predictions: Any, targets: Any, beta: float, average: str | None = "binary", **options: Any) -> Any:
    """The harmonic mean of precision and recall, in which recall counts `beta` times as much.

    >>> ek.metrics.fbeta([1, 1, 0], [1, 0, 0], beta=2.0)
    0.8333333333333334
    """
    return once(FBeta(beta, average, **options), predictions, targets)


def confusion_matrix(
    predictions: Any,
    targets: Any,
    *,
    num_classes: int | None = None,
    normalize: str | None = None,
    threshold: float = 0.5,
    ignore_index: int | None = None,
) -> Tensor:
    """How often examples of a class (row) were predicted to be of another (column), as a tensor.

    >>> ek.metrics.confusion_matrix([0, 1, 1], [0, 0, 1])
    tensor([[1, 1],
            [0, 1]])
    """
    metric = ConfusionMatrix(num_classes, normalize, threshold=threshold, ignore_index=ignore_index)
    result = once(metric, predictions, targets)
    assert isinstance(result, Tensor)
    return result


def cohen_kappa(
    predictions: Any,
    targets: Any,
    *,
    threshold: float = 0.5,
    num_classes: int | None = None,
    ignore_index: int | None = None,
) -> float:
    """Cohen's kappa: accuracy beyond that of chance.

    >>> ek.metrics.cohen_kappa([0, 1, 1, 0], [0, 1, 0, 0])
    0.5
    """
    return float(once(CohenKappa(threshold, num_classes, ignore_index), predictions, targets))


def matthews_correlation(
    predictions: Any,
    targets: Any,
    *,
    threshold: float = 0.5,
    num_classes: int | None = None,
    ignore_index: int | None = None,
) -> float:
    """Matthews' correlation of predictions and targets, from -1 to 1.

    >>> ek.metrics.matthews_correlation([0, 1, 1, 0], [0, 1, 1, 0])
    1.0
    """
    return float(once(MatthewsCorrelation(threshold, num_classes, ignore_index), predictions, targets))


def roc_auc(
    predictions: Any,
    targets: Any,
    average: str | None = "macro",
    *,
    multi_class: str = "ovr",
    from_logits: bool = False,
) -> Any:
    """The area under the ROC curve, of scores.

    >>> ek.metrics.roc_auc([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.75
    """
    return once(ROCAUC(average, multi_class=multi_class, from_logits=from_logits), predictions, targets)


def average_precision(
    predictions: Any, targets: Any, average: str | None = "macro", *, from_logits: bool = False
) -> Any:
    """The mean of precision over recall, of scores.

    >>> ek.metrics.average_precision([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1])
    0.8333333333333333
    """
    return once(AveragePrecision(average, from_logits=from_logits), predictions, targets)


def log_loss(predictions: Any, targets: Any, *, from_logits: bool = False, ignore_index: int | None = None) -> float:
    """The mean of -log of the probability given to what is.

    >>> ek.metrics.log_loss([0.9, 0.1], [1, 0])
    0.10536051565782628
    """
    return float(once(LogLoss(from_logits, ignore_index), predictions, targets))


def perplexity(predictions: Any, targets: Any, *, from_logits: bool = True, ignore_index: int | None = None) -> float:
    """The exponential of the mean log loss, of scores before softmax.

    >>> ek.metrics.perplexity([[0.0, 0.0, 0.0, 0.0]], [2])
    4.0
    """
    return float(once(Perplexity(from_logits, ignore_index), predictions, targets))


def mean_absolute_error(
    predictions: Any, targets: Any, *, multioutput: str | Sequence[float] = "uniform_average"
) -> Any:
    """The mean of absolute differences.

    >>> ek.metrics.mean_absolute_error([1.0, 2.0], [1.0, 4.0])
    1.0
    """
    return once(MeanAbsoluteError(multioutput), predictions, targets)


def mean_squared_error(
    predictions: Any,
    targets: Any,
    *,
    squared: bool = True,
    multioutput: str | Sequence[float] = "uniform_average",
) -> Any:
    """The mean of squared differences; with `squared=False`, its root.

    >>> ek.metrics.mean_squared_error([1.0, 2.0], [1.0, 4.0])
    2.0
    """
    return once(MeanSquaredError(squared, multioutput), predictions, targets)


def r2_score(predictions: Any, targets: Any, *, multioutput: str | Sequence[float] = "uniform_average") -> Any:
    """The share of the targets' variance that predictions tell: 1 less squared errors over those of the mean.

    >>> ek.metrics.r2_score([1.0, 2.0, 3.0], [1.0, 2.0, 4.0])
    0.7857142857142857
    """
    return once(R2Score(multioutput), predictions, targets)
