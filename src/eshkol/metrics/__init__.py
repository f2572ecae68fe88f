"""How good predictions are: metrics as functions, and as objects that are updated batch by batch.

    ek.metrics.accuracy(predictions, targets)

    metric = ek.metrics.F1Score(average="macro")
    for batch, targets in data:
        metric.update(model(batch), targets)
    metric.compute()

It stands on the tensor alone. `inputs` looks at what is given; `classification`, `ranking`, `probability` and
`regression` have the metrics, each a state that batches are joined to (`metric`); `functions` are thin over them;
`registry` finds them by name, `collection` holds several; `drawing` shows confusion matrices.
"""

from __future__ import annotations

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
from eshkol.metrics.collection import MetricCollection
from eshkol.metrics.drawing import draw_confusion, png_confusion
from eshkol.metrics.functions import (
    accuracy,
    average_precision,
    cohen_kappa,
    confusion_matrix,
    f1_score,
    fbeta,
    log_loss,
    matthews_correlation,
    mean_absolute_error,
    mean_squared_error,
    perplexity,
    precision,
    r2_score,
    recall,
    roc_auc,
)
from eshkol.metrics.metric import Mean, Metric, UndefinedMetric
from eshkol.metrics.probability import LogLoss, Perplexity
from eshkol.metrics.ranking import ROCAUC, AveragePrecision
from eshkol.metrics.registry import DefinedMetric, define_metric, get_metric
from eshkol.metrics.regression import MeanAbsoluteError, MeanSquaredError, R2Score

__all__ = [
    "ROCAUC", "Accuracy", "AveragePrecision", "CohenKappa", "ConfusionMatrix", "DefinedMetric", "F1Score", "FBeta",
    "LogLoss", "MatthewsCorrelation", "Mean", "MeanAbsoluteError", "MeanSquaredError", "Metric", "MetricCollection",
    "Perplexity", "Precision", "R2Score", "Recall", "UndefinedMetric", "accuracy", "average_precision", "cohen_kappa",
    "confusion_matrix", "define_metric", "draw_confusion", "f1_score", "fbeta", "get_metric", "log_loss",
    "matthews_correlation", "mean_absolute_error", "mean_squared_error", "perplexity", "png_confusion", "precision",
    "r2_score", "recall", "roc_auc",
]  # fmt: skip
