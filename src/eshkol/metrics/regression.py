"""Metrics of numbers: mean errors, and the share of variance that is told (R²).

Predictions and targets have one shape, [N] or [N, outputs ...]. `multioutput` says what becomes of several outputs:
their plain mean ("uniform_average"), every one of them ("raw_values"), or a mean with weights; for R² also
"variance_weighted".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.metrics.inputs import Array, numbers
from eshkol.metrics.metric import OUTPUTS, SUM, Metric, State, StateRule, UndefinedMetric, choice, outputs_joined
from eshkol.support.warning import warn

OVER_OUTPUTS = ("uniform_average", "raw_values")


class OfNumbers(Metric):
    """Metrics with one value for each output."""

    ways: ClassVar[tuple[str, ...]] = OVER_OUTPUTS

    def __init__(self, multioutput: str | Sequence[float] = "uniform_average") -> None:
        self.multioutput: str | tuple[float, ...]
        if isinstance(multioutput, str):
            self.multioutput = choice(self.name, "multioutput", multioutput, self.ways)
        else:
            self.multioutput = tuple(float(weight) for weight in multioutput)
            if not all(weight >= 0 for weight in self.multioutput) or not sum(self.multioutput) > 0:
                raise TensorError(f"{self.name}: weights of outputs are 0 or more, not all of them 0")
        super().__init__(multioutput=self.multioutput)

    def _over_outputs(self, values: Array, weights: Array | None = None) -> Any:
        """The values of outputs, as `multioutput` wants them."""
        if self.multioutput == "raw_values":
            return values
        if not isinstance(self.multioutput, str):
            if len(self.multioutput) != len(values):
                raise ShapeError(f"{self.name}: {len(self.multioutput)} weights are given for {len(values)} outputs")
            weights = np.array(self.multioutput)
        return np.average(values, weights=weights)


class MeanAbsoluteError(OfNumbers):
    """The mean of absolute differences."""

    name = "mean_absolute_error"
    higher_is_better = False
    rules: ClassVar[Mapping[str, StateRule]] = {"count": SUM, "total": OUTPUTS}

    def _seen(self, predictions: Any, targets: Any) -> State:
        found, wanted = numbers(self.name, predictions, targets)
        return {"count": len(found), "total": np.abs(found - wanted).sum(axis=0)}

    def _result(self, state: State) -> Any:
        return self._over_outputs(state["total"] / state["count"])


class MeanSquaredError(OfNumbers):
    """The mean of squared differences; with `squared=False`, its root, for each output."""

    name = "mean_squared_error"
    higher_is_better = False
    rules: ClassVar[Mapping[str, StateRule]] = {"count": SUM, "total": OUTPUTS}

    def __init__(self, squared: bool = True, multioutput: str | Sequence[float] = "uniform_average") -> None:
        self.squared = squared
        if not squared:
            self.name = "root_mean_squared_error"
        super().__init__(multioutput)
        self.options = {"squared": squared, **self.options}

    def _seen(self, predictions: Any, targets: Any) -> State:
        found, wanted = numbers(self.name, predictions, targets)
        return {"count": len(found), "total": ((found - wanted) ** 2).sum(axis=0)}

    def _result(self, state: State) -> Any:
        means = state["total"] / state["count"]
        return self._over_outputs(means if self.squared else np.sqrt(means))


class R2Score(OfNumbers):
    """1 less the squared errors over those of the mean of targets: 1 where all is right, 0 for the mean.

    Where targets are constant it is 1 if all is right, else 0. Means and squared deviations are joined as Chan, Golub
    and LeVeque do, so targets far from zero do no harm.
    """

    name = "r2_score"
    ways: ClassVar[tuple[str, ...]] = (*OVER_OUTPUTS, "variance_weighted")
    rules: ClassVar[Mapping[str, StateRule]] = {"count": SUM, "errors": OUTPUTS, "mean": OUTPUTS, "spread": OUTPUTS}

    def _seen(self, predictions: Any, targets: Any) -> State:
        found, wanted = numbers(self.name, predictions, targets)
        if not len(wanted):
            return self._fresh()
        mean = wanted[0] + (wanted - wanted[0]).mean(axis=0)  # of equal numbers exactly that number
        return {
            "count": len(found),
            "errors": ((found - wanted) ** 2).sum(axis=0),
            "mean": mean,
            "spread": ((wanted - mean) ** 2).sum(axis=0),
        }

    def _join(self, mine: State, other: State) -> State:
        if not mine["count"]:
            return dict(other)
        errors = outputs_joined(mine["errors"], other["errors"])
        count = mine["count"] + other["count"]
        away = other["mean"] - mine["mean"]
        return {
            "count": count,
            "errors": errors,
            "mean": mine["mean"] + away * (other["count"] / count),
            "spread": mine["spread"] + other["spread"] + away**2 * (mine["count"] * other["count"] / count),
        }

    def _result(self, state: State) -> Any:
        if state["count"] < 2:
            warn(f"{self.name} is not defined for one example; nan stands for it", UndefinedMetric)
            return math.nan
        errors, spread = state["errors"], state["spread"]
        constant = spread == 0
        flat = np.where(errors == 0, 1.0, np.where(np.isfinite(errors), 0.0, math.nan))
        scores = np.where(constant, flat, 1.0 - errors / np.where(constant, 1.0, spread))
        by_variance = self.multioutput == "variance_weighted" and spread.any()
        return self._over_outputs(scores, spread if by_variance else None)
