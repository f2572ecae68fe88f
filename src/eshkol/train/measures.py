"""What is measured over the batches of an epoch: the mean of the loss, and metrics.

Comes in: losses, and outputs with targets, batch by batch. Goes out: numbers by name, at any time. A metric that gives
a number for each class or output is written down as several: `recall_0`, `recall_1`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.metrics.collection import MetricCollection
from eshkol.metrics.metric import Metric
from eshkol.metrics.registry import DefinedMetric, get_metric
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

LOSS = "loss"
Metrics = str | Metric | type[Metric] | Iterable[Any] | Mapping[str, Any]


def metrics_of(given: Metrics, who: str) -> MetricCollection:
    """Metrics by name: of names, metrics, functions of predictions and targets, several of them, or a dict."""
    if isinstance(given, MetricCollection):
        found = given.fresh()
    elif isinstance(given, Mapping):
        found = MetricCollection({name: _metric(x, name) for name, x in given.items()})
    elif isinstance(given, str | Metric | type) or callable(given):
        found = MetricCollection([_metric(given)])
    else:
        found = MetricCollection([_metric(x) for x in given])
    if LOSS in found:
        raise TensorError(f"{who}: the loss is measured already; a metric needs another name", span=ek.here())
    return found


def _metric(given: Any, name: str | None = None) -> Metric:
    if isinstance(given, str | Metric | type):
        return get_metric(given).fresh()
    if callable(given):
        return DefinedMetric(name or str(getattr(given, "__name__", "metric")), given, None)
    raise DTypeError(
        f"a metric is a name, a metric or a function of predictions and targets, not {type(given).__name__}",
        span=ek.here(),
    )


class Measures(Mapping[str, float]):
    """The loss and the metrics of the batches so far; as a mapping, their values at the time of asking."""

    def __init__(self, metrics: MetricCollection) -> None:
        self.metrics = metrics.fresh()
        self._checked = not len(metrics)
        self.total, self.weight = 0.0, 0

    def take(self, loss: float | None, outputs: Any, targets: Any, size: int) -> None:
        """Take in a batch of `size` examples."""
        if loss is not None:
            self.total += loss * size
            self.weight += size
        if len(self.metrics):
            self.metrics.update(outputs, targets)
        if not self._checked:
            self._check()

    def _check(self) -> None:
        """Refuse, at the first batch, a metric that gives no numbers to write down."""
        self._checked = True
        for name, metric in self.metrics.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of what is not defined for one batch, and may be for all of them
                result = metric.compute()
            if isinstance(result, Tensor) and result.ndim > 1:
                raise ShapeError(
                    f"metric '{name}' gives a table of shape {list(result.shape)}: a history has numbers",
                    hint="compute it after training, with outputs of the model",
                )

    def values(self) -> Any:
        return self.now().values()

    def items(self) -> Any:
        return self.now().items()

    def now(self) -> dict[str, float]:
        """The numbers."""
        found = {LOSS: self.total / self.weight} if self.weight else {}
        for name, result in self.metrics.compute().items():
            if isinstance(result, Tensor):
                found |= {f"{name}_{k}": float(x) for k, x in enumerate(result.numpy())}
            else:
                found[name] = result
        return found

    def __getitem__(self, name: str) -> float:
        return self.now()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.now())

    def __len__(self) -> int:
        return len(self.now())

    def state_dict(self) -> dict[str, Any]:
        """What was taken in so far."""
        return {"total": self.total, "weight": self.weight, "metrics": self.metrics.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        self.metrics.load_state_dict(state["metrics"])
        self.total, self.weight = float(state["total"]), int(state["weight"])
