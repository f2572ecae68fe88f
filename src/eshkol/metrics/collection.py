"""Several metrics as one: `MetricCollection`, which `fit` and its like update with every batch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from eshkol.errors import TensorError
from eshkol.metrics.metric import Metric, State
from eshkol.metrics.registry import Wanted, get_metric


class MetricCollection(Mapping[str, Metric]):
    """Several metrics of the same predictions and targets, by name: updated together, computed to a dict.

    >>> ek.metrics.MetricCollection(["accuracy", ek.metrics.F1Score("macro")])
    MetricCollection(accuracy, f1_score)
    """

    def __init__(self, metrics: Mapping[str, Wanted] | Sequence[Wanted]) -> None:
        self._metrics: dict[str, Metric] = {}
        if isinstance(metrics, Mapping):
            self._metrics.update((name, get_metric(metric)) for name, metric in metrics.items())
            return
        for metric in map(get_metric, [metrics] if isinstance(metrics, str) else metrics):
            if metric.name in self._metrics:
                raise TensorError(
                    f"two metrics are called {metric.name}", hint="give a dict, with another name for each of them"
                )
            self._metrics[metric.name] = metric

    def update(self, predictions: Any, targets: Any) -> None:
        """Take in a batch, in every metric; if one refuses it, none has taken it in."""
        before = {name: metric._state for name, metric in self._metrics.items()}
        try:
            for metric in self._metrics.values():
                metric.update(predictions, targets)
        except BaseException:
            for name, state in before.items():
                self._metrics[name]._state = state
            raise

    def compute(self) -> dict[str, Any]:
        """What every metric gives, by its name."""
        return {name: metric.compute() for name, metric in self._metrics.items()}

    def reset(self) -> None:
        """Forget everything that was taken in."""
        for metric in self._metrics.values():
            metric.reset()

    def fresh(self) -> MetricCollection:
        """A collection of the same metrics that has seen nothing."""
        return MetricCollection({name: metric.fresh() for name, metric in self._metrics.items()})

    def merge(self, other: MetricCollection) -> Self:
        """Take in what another collection of the same metrics has seen; gives itself."""
        if set(other) != set(self):
            raise TensorError(f"collections of {', '.join(self)} and of {', '.join(other)} cannot be one")
        for name, metric in self._metrics.items():
            metric.merge(other[name])
        return self

    def state_dict(self) -> State:
        """The states of all metrics, by name."""
        return {name: metric.state_dict() for name, metric in self._metrics.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        if set(state) != set(self._metrics):
            raise TensorError(f"states of {', '.join(self)} are wanted, not of {', '.join(state) or 'nothing'}")
        for name, metric in self._metrics.items():
            metric.load_state_dict(state[name])

    def __getitem__(self, name: str) -> Metric:
        return self._metrics[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._metrics)

    def __len__(self) -> int:
        return len(self._metrics)

    def __repr__(self) -> str:
        return f"MetricCollection({', '.join(self._metrics)})"
