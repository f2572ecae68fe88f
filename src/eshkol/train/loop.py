"""Loops without a run: a step, an epoch, a validation, for those who write the rest themselves.

Comes in: a model, an optimizer, a loss and batches. Steps and evaluations are compiled once and kept with the optimizer
and the model, so that these functions may be called as often as one likes. `fit` (fitting.py) is the whole run.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any

from eshkol.errors import EshkolError, TensorError
from eshkol.nn.module import Module
from eshkol.optim.base import Optimizer
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor
from eshkol.train.applying import Loss
from eshkol.train.batches import Batch, batch_of, batches_of, tensor_of
from eshkol.train.kept import evaluation_for, step_for
from eshkol.train.measures import Measures, Metrics, metrics_of
from eshkol.train.progress import ProgressBar
from eshkol.train.step import Evaluation, Step, StepResult


def checked(who: str, model: Any, optimizer: Any, loss: Any) -> None:
    """Refuse what cannot be trained together."""
    if not callable(model):
        raise TensorError(f"{who}: the model is a {type(model).__name__}, which cannot be called", span=ek.here())
    if not isinstance(optimizer, Optimizer):
        raise TensorError(
            f"{who}: an optimizer is wanted, not {type(optimizer).__name__}", span=ek.here(),
            hint="make one: ek.optim.Adam(model.parameters())",
        )  # fmt: skip
    if not callable(loss):
        raise TensorError(
            f"{who}: the loss is a function of outputs and targets, not {type(loss).__name__}", span=ek.here(),
            hint="ek.mse_loss, ek.cross_entropy, nn.CrossEntropyLoss(), or one of your own",
        )  # fmt: skip
    if isinstance(model, Module):
        own = {id(p) for root in (model, loss) if isinstance(root, Module) for p in root.parameters()}
        if not any(id(p) in own for p in optimizer.tensors):
            raise TensorError(
                f"{who}: the optimizer has no parameter of this {type(model).__name__}: nothing of it would be trained",
                span=ek.here(), hint="make the optimizer with model.parameters() of the same model",
            )  # fmt: skip


class told:  # a class, which puts no frame of contextlib between the user's line and ours
    """Within it errors say where they happened."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, EshkolError):
            error.message = f"{self.where}: {error.message}"
            error.args = (error.message,)
        elif isinstance(error, Exception):
            error.add_note(f"in {self.where}")


def measured(step: Step, batch: Batch, measures: Measures) -> StepResult:
    """Make a step and measure it."""
    result = step(batch.inputs, batch.targets)
    measures.take(result.loss.item(), result.outputs, batch.targets, batch.size)
    return result


def train_step(model: Any, optimizer: Optimizer, loss: Loss, x: Any, y: Any = None, **how: Any) -> Tensor:
    """Train a model on one batch; gives the loss before the update. What follows is for `Step`: `jit=False`, ...

    >>> loss = ek.train.train_step(model, optimizer, ek.mse_loss, x, y)
    """
    checked("train_step", model, optimizer, loss)
    batch = Batch(1, tensor_of(x), tensor_of(y))
    with told("train_step"):
        return step_for(model, loss, optimizer, **how)(batch.inputs, batch.targets).loss


def train_on_batch(model: Any, optimizer: Optimizer, loss: Loss, batch: Any, **how: Any) -> float:
    """Train a model on a batch, a pair (inputs, targets); gives the loss before the update as a number."""
    found = batch_of(batch, "train_on_batch")
    return float(train_step(model, optimizer, loss, found.inputs, found.targets, **how).item())


def train_epoch(
    model: Any,
    optimizer: Optimizer,
    loss: Loss,
    batches: Any,
    *,
    metrics: Metrics = (),
    batch_size: int | None = None,
    shuffle: bool = True,
    quiet: bool = True,
    after: Callable[[StepResult], object] | None = None,
    **how: Any,
) -> dict[str, float]:
    """Train a model on all batches once; gives the mean loss and the metrics, measured while it trained.

    `after` is called with the result of each step. What else is given by name is for `Step`: `clip_norm=1.0`, ...
    """
    who = "train_epoch"
    checked(who, model, optimizer, loss)
    data = batches_of(batches, who, batch_size=batch_size, shuffle=shuffle)
    measures = Measures(metrics_of(metrics, who))
    step = step_for(model, loss, optimizer, **how)
    with ProgressBar(data.count, "training", quiet=quiet) as bar:
        for batch in data.epoch():
            with told(f"{who}: batch {batch.number}"):
                result = measured(step, batch, measures)
            if after is not None:
                after(result)
            bar.update(batch.number, measures)
    return measures.now()


def validate(
    model: Any,
    loss: Loss | None,
    batches: Any,
    metrics: Metrics = (),
    *,
    batch_size: int | None = None,
    jit: bool = True,
) -> dict[str, float]:
    """The mean loss and the metrics of a model over batches, in evaluation mode; nothing of it changes.

    >>> ek.train.validate(model, ek.cross_entropy, [(x, y)], metrics=["accuracy"])
    {'loss': 0.31, 'accuracy': 0.97}
    """
    who = "validate"
    if loss is None and not metrics:
        raise TensorError(f"{who}: without a loss and metrics there is nothing to measure", span=ek.here())
    data = batches_of(batches, who, batch_size=batch_size, shuffle=False)
    measures = Measures(metrics_of(metrics, who))
    evaluation = evaluation_for(model, loss, jit=jit)
    for batch in data.epoch():
        evaluated(evaluation, batch, measures, f"{who}: batch {batch.number}")
    return measures.now()


def evaluated(evaluation: Evaluation, batch: Batch, measures: Measures, where: str) -> None:
    """Evaluate a batch and measure it."""
    with told(where):
        loss, outputs = evaluation(batch.inputs, batch.targets)
        measures.take(None if loss is None else loss.item(), outputs, batch.targets, batch.size)
