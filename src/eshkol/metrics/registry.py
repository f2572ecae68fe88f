"""Metrics by name: those of this package, and those that users define.

`fit(metrics=["accuracy", "macro-f1-score"])` looks here. Names are written with - or _, as Scheme and Python have it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from numbers import Real
from types import ModuleType
from typing import Any, ClassVar

import numpy as np

from eshkol.errors import DTypeError, EshkolError, ShapeError, TensorError
from eshkol.metrics import classification, probability, ranking, regression
from eshkol.metrics.classification import AVERAGES, Accuracy, Averaged, F1Score
from eshkol.metrics.inputs import both
from eshkol.metrics.metric import KEPT, SUM, Mean, Metric, State, StateRule
from eshkol.metrics.ranking import ROCAUC, Ranked
from eshkol.metrics.regression import MeanAbsoluteError, MeanSquaredError, R2Score
from eshkol.tensors import api as ek
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor

MODULES = (classification, probability, ranking, regression)  # where the metrics stand


def _named_in(module: ModuleType) -> dict[str, type[Metric]]:
    """The metrics of a module that have a name of their own; the others are bases."""
    classes = [x for x in vars(module).values() if isinstance(x, type) and issubclass(x, Metric)]
    return {found.name: found for found in classes if "name" in vars(found) and found is not Metric}


BUILT_IN: Mapping[str, Callable[..., Metric]] = {
    **{name: made for module in MODULES for name, made in _named_in(module).items()},
    "mean": Mean,
    "f1": F1Score,
    "auc": ROCAUC,
    "r2": R2Score,
    "mae": MeanAbsoluteError,
    "mse": MeanSquaredError,
    "rmse": lambda **options: MeanSquaredError(squared=False, **options),
    "root_mean_squared_error": lambda **options: MeanSquaredError(squared=False, **options),
}
FUNCTIONS = "eshkol.metrics.functions"  # the module whose functions stand for the metrics of their names
Wanted = str | Metric | type[Metric] | Callable[[Tensor, Tensor], Any]
_defined: dict[str, tuple[Callable[[Tensor, Tensor], Any], bool | None]] = {}


class DefinedMetric(Metric):
    """A metric of a user's function of all predictions and all targets, which are kept until it is computed."""

    rules: ClassVar[Mapping[str, StateRule]] = {"count": SUM, "predictions": KEPT, "targets": KEPT}

    def __init__(
        self, name: str, compute_fn: Callable[[Tensor, Tensor], Any], higher_is_better: bool | None = True
    ) -> None:
        super().__init__(name=name, compute_fn=compute_fn)
        self.name, self.compute_fn, self.higher_is_better = name, compute_fn, higher_is_better

    def _seen(self, predictions: Any, targets: Any) -> State:
        found, wanted = both(self.name, predictions, targets)
        if len(found) != len(wanted):
            raise ShapeError(
                f"{self.name}: predictions have shape {list(found.shape)}, targets {list(wanted.shape)}",
                hint="the first axis of both counts the examples",
            )
        return {"count": len(found), "predictions": [np.array(found)], "targets": [np.array(wanted)]}

    def _join(self, mine: State, other: State) -> State:
        for key in ("predictions", "targets"):
            shapes = [part[key][0].shape[1:] for part in (mine, other) if part[key]]
            if len(set(shapes)) > 1:
                raise ShapeError(
                    f"{key} of earlier batches had shape [N, {', '.join(map(str, shapes[0]))}], those of this one "
                    f"[N, {', '.join(map(str, shapes[1]))}]"
                )
        return super()._join(mine, other)

    def _result(self, state: State) -> Any:
        result = self.compute_fn(*(adopted(np.concatenate(state[key])) for key in ("predictions", "targets")))
        if isinstance(result, Tensor):
            result = result.detach().numpy()
        array = np.asarray(float(result) if isinstance(result, Real) else result)
        if array.dtype.kind not in "biuf":
            raise DTypeError(f"the function of metric '{self.name}' gave {result!r}; a number is wanted")
        return array.astype(np.float64)


def define_metric(
    name: str, compute_fn: Callable[[Tensor, Tensor], Any], *, higher_is_better: bool | None = True
) -> Metric:
    """Make a metric of `compute_fn(predictions, targets)`, which gives a number, and let `get_metric` know its name.

    It is given tensors of all batches together. A metric of the same name that was defined before is forgotten.

    >>> ek.metrics.define_metric("bias", lambda predictions, targets: (predictions - targets).mean())
    DefinedMetric(name='bias', ...)
    """
    key = _key(name)
    if not callable(compute_fn):
        raise DTypeError(f"metric '{name}' needs a function of predictions and targets, not {compute_fn!r}")
    if _found(key) is not None and key not in _defined:
        raise TensorError(f"'{name}' is a metric of Eshkol's own", hint="choose another name")
    _defined[key] = (compute_fn, higher_is_better)
    return get_metric(name)


def get_metric(metric: Wanted, **options: Any) -> Metric:
    """A metric by its name, new and empty: "accuracy", "macro-f1-score", "top-5-accuracy", or one that was defined.

    A metric is itself; a function of predictions and targets is a metric called as the function.

    >>> ek.metrics.get_metric("f1-score", average="macro")
    F1Score(average='macro', ...)
    """
    if isinstance(metric, Metric):
        if options:
            raise TensorError(f"{metric!r} has its options already", hint="make a new one with them")
        return metric
    if isinstance(metric, type) and issubclass(metric, Metric):
        return metric(**options)
    if not isinstance(metric, str):
        if not callable(metric):
            raise DTypeError(f"a metric, or the name of one, is wanted, not {metric!r}")
        name = str(getattr(metric, "__name__", "metric"))
        if getattr(metric, "__module__", "") == FUNCTIONS:
            return get_metric(name, **options)
        if options:
            raise TensorError(f"metric '{name}' takes no options, and {', '.join(options)} is given")
        return DefinedMetric(name, metric)
    key = _key(metric)
    if key in _defined:
        if options:
            raise TensorError(f"metric '{metric}' takes no options, and {', '.join(options)} is given")
        compute_fn, higher = _defined[key]
        return DefinedMetric(metric, compute_fn, higher)
    made = _found(key)
    if made is None:
        known = [*BUILT_IN, *_defined]
        near = difflib.get_close_matches(key, known, 1)
        raise TensorError(
            f"there is no metric '{metric}'",
            span=ek.here(),
            hint=f"did you mean '{near[0]}'?" if near else f"metrics: {', '.join(sorted(known))}; or define_metric",
        )
    maker, given = made
    try:
        result = maker(**{**given, **options})
    except EshkolError:
        raise
    except TypeError as error:
        raise TensorError(f"metric '{metric}': {error}") from None
    if given:
        result.name = key
    return result


def _key(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise DTypeError(f"the name of a metric is a string, not {name!r}")
    return name.strip().lower().replace("-", "_").replace(" ", "_")


def _found(key: str) -> tuple[Callable[..., Metric], dict[str, Any]] | None:
    """What makes the metric of a name, and the options that the name tells."""
    if key in BUILT_IN:
        return BUILT_IN[key], {}
    if ranks := re.fullmatch(r"top_?(\d+)_accuracy", key):
        return Accuracy, {"top_k": int(ranks[1])}
    average, _, rest = key.partition("_")
    made = BUILT_IN.get(rest)
    if average in AVERAGES and isinstance(made, type) and issubclass(made, Averaged | Ranked):
        return made, {"average": average}
    return None
