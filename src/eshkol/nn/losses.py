"""Losses as modules: one line each, made of the row of the op table that computes it (rows.py).

A loss is given predictions and targets. Targets of another dtype than it compares with, classes that are not there and
probabilities outside 0 to 1 are refused at once where their values are known; inside `ek.jit` classes are, when it
runs. Weights of classes are buffers. Within `autocast` losses are computed in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError, TensorError
from eshkol.nn.module import Module
from eshkol.nn.precision import raised
from eshkol.nn.rows import RowLayer, layer_of
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

REDUCTIONS = ("mean", "sum", "none")


class Loss(RowLayer):
    """How far predictions are from targets; base of the classes below."""

    inputs: ClassVar[int] = 2
    wide: ClassVar[bool] = True
    target: ClassVar[int] = 1  # which of the inputs the targets are; they are checked
    check: ClassVar[Callable[[Loss, Any, Any], None]]
    reductions: ClassVar[tuple[str, ...]] = REDUCTIONS

    def __init__(self, *args: Any, **given: Any) -> None:
        super().__init__(*args, **given)
        wanted = self.given["reduction"]
        if wanted not in self.reductions:
            raise TensorError(
                f"{type(self).__name__}: there is no reduction {wanted!r}", span=ek.here(),
                hint=f"reductions: {', '.join(self.reductions)}",
            )  # fmt: skip

    @property
    def reduction(self) -> str:
        """How the losses of elements become one: mean, sum or none."""
        return str(self.given["reduction"])

    def _checked(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        name = type(self).__name__
        if len(values) != self.inputs:
            raise TensorError(
                f"{name} takes {self.inputs} tensors, and was given {len(values)}", span=ek.here(),
                hint="predictions first, then targets" if self.inputs == 2 else None,
            )  # fmt: skip
        found = tuple(x if isinstance(x, Tensor) else ek.asarray(x) for x in values)
        if not found[0].dtype.is_float:
            raise DTypeError(
                f"{name}: predictions are floats, not {found[0].dtype}", span=ek.here(),
                hint="predictions come first, then targets",
            )  # fmt: skip
        type(self).check(self, found[0], found[self.target])
        return found

    def forward(self, *values: Any) -> Any:
        return self._computed(*self._checked(values))

    def per_sample(self, *values: Any) -> Any:
        """The losses before they become one."""
        return self._computed(*self._checked(values), reduction="none")


# --- what targets may be ----------------------------------------------------------------------------------------------


def known(x: Tensor) -> Any:
    """The values of a tensor, if they are computed already and the host has them; else None."""
    return x._node.known()


def _fail(loss: Loss, said: str, hint: str | None = None, kind: type[TensorError] = DTypeError) -> None:
    raise kind(f"{type(loss).__name__}: {said}", span=ek.here(), hint=hint)


def _numbers(loss: Loss, x: Any, target: Any) -> None:
    """Floats as the predictions are, of the same shape."""
    if not target.dtype.is_float:
        _fail(
            loss, f"targets are floats as predictions are, not {target.dtype}",
            "target.astype(ek.float32); classes go to nn.CrossEntropyLoss",
        )  # fmt: skip
    _same_shape(loss, x, target)


def _same_shape(loss: Loss, x: Any, target: Any) -> None:
    if target.shape != x.shape:
        _fail(
            loss, f"predictions have shape {list(x.shape)}, targets {list(target.shape)}",
            "reshape one of them: a loss does not broadcast", ShapeError,
        )  # fmt: skip


def _probabilities(loss: Loss, x: Any, target: Any) -> None:
    """Floats from 0 to 1."""
    _numbers(loss, x, target)
    values = known(target)
    if values is not None and values.size and not (np.min(values) >= 0 and np.max(values) <= 1):
        _fail(
            loss, f"targets are from 0 to 1, and some are from {np.min(values):g} to {np.max(values):g}", None,
            TensorError,
        )  # fmt: skip


def _classes(loss: Loss, x: Any, target: Any) -> None:
    """Integers below the extent of the axis of classes: 1, or 0 of a vector."""
    if not target.dtype.is_integer:
        _fail(loss, f"targets are class ids, which are integers, not {target.dtype}", "target.astype(ek.int64)")
    if x.ndim == 0:
        _fail(loss, "predictions need an axis of classes", None, ShapeError)
    axis = min(1, x.ndim - 1)
    wanted = (*x.shape[:axis], *x.shape[axis + 1 :])
    if target.shape != wanted:
        _fail(
            loss, f"predictions of shape {list(x.shape)} have classes on axis {axis}, so class ids have shape "
            f"{list(wanted)}, not {list(target.shape)}",
            "class ids are not one-hot, and have no axis of classes" if target.ndim == x.ndim else None, ShapeError,
        )  # fmt: skip
    values = known(target)
    if values is None:
        return  # the row finds out when it runs
    if values.size and values.min() >= 0 and values.max() < x.shape[axis]:
        return
    counted = values[values != loss.given["ignore_index"]]
    outside = counted[(counted < 0) | (counted >= x.shape[axis])]
    if outside.size:
        _fail(
            loss, f"a target is class {outside.flat[0]}, and there are {x.shape[axis]} classes: 0 to "
            f"{x.shape[axis] - 1}", "give the model as many outputs as there are classes; ids begin with 0",
            IndexOutOfRange,
        )  # fmt: skip


def _classes_or_probabilities(loss: Loss, x: Any, target: Any) -> None:
    """Class ids, or a probability for each class."""
    if not target.dtype.is_float:
        _classes(loss, x, target)
    elif target.shape != x.shape and target.ndim < x.ndim:
        _fail(
            loss, f"targets of shape {list(target.shape)} look like class ids, which are integers, not {target.dtype}",
            "target.astype(ek.int64)",
        )  # fmt: skip
    else:
        _same_shape(loss, x, target)


def _signs(loss: Loss, x: Any, target: Any) -> None:
    """-1 and 1."""
    values = known(target)
    if values is not None and not np.isin(values, (-1, 1)).all():
        _fail(loss, "targets are -1 and 1", "target * 2 - 1 makes them of 0 and 1", TensorError)


def _anything(loss: Loss, x: Any, target: Any) -> None:
    """What the row itself refuses is enough."""


def _loss(name: str, row: str, check: Callable[[Loss, Any, Any], None], **how: Any) -> Any:
    return layer_of(name, row, Loss, check=check, **how)


MSELoss = _loss("MSELoss", "mse_loss", _numbers)
L1Loss = _loss("L1Loss", "l1_loss", _numbers)
HuberLoss = _loss("HuberLoss", "huber_loss", _numbers)
SmoothL1Loss = _loss("SmoothL1Loss", "smooth_l1_loss", _numbers)
BCELoss = _loss("BCELoss", "binary_cross_entropy", _probabilities, tensors=("weight",))
BCEWithLogitsLoss = _loss(
    "BCEWithLogitsLoss", "binary_cross_entropy_with_logits", _probabilities, tensors=("weight", "pos_weight")
)
FocalLoss = _loss("FocalLoss", "focal_loss", _probabilities)
CrossEntropyLoss = _loss("CrossEntropyLoss", "cross_entropy", _classes_or_probabilities, tensors=("weight",))
NLLLoss = _loss("NLLLoss", "nll_loss", _classes, tensors=("weight",))
CategoricalCrossEntropyLoss = _loss("CategoricalCrossEntropyLoss", "categorical_cross_entropy", _probabilities)
KLDivLoss = _loss("KLDivLoss", "kl_div", _numbers, reductions=(*REDUCTIONS, "batchmean"))
PoissonNLLLoss = _loss("PoissonNLLLoss", "poisson_nll_loss", _numbers)
GaussianNLLLoss = _loss("GaussianNLLLoss", "gaussian_nll_loss", _numbers, inputs=3)
HingeLoss = _loss("HingeLoss", "hinge_loss", _signs)
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", "cosine_embedding_loss", _signs, inputs=3, target=2)
TripletMarginLoss = _loss("TripletMarginLoss", "triplet_margin_loss", _anything, inputs=3)


# --- made of others ---------------------------------------------------------------------------------------------------


class WeightedLoss(Module):
    """A loss in which samples (axis 0) count by their weights; the mean is over the sum of the weights.

    >>> nn.WeightedLoss(nn.MSELoss())(predictions, targets, weights)
    """

    def __init__(self, loss: Loss, reduction: str = "mean") -> None:
        super().__init__()
        if not isinstance(loss, Loss):
            raise TensorError(
                f"WeightedLoss takes a loss of nn, not a {type(loss).__name__}", span=ek.here(), hint="nn.MSELoss()"
            )
        if reduction not in REDUCTIONS:
            raise TensorError(
                f"WeightedLoss: there is no reduction {reduction!r}", span=ek.here(),
                hint=f"reductions: {', '.join(REDUCTIONS)}",
            )  # fmt: skip
        self.loss, self.reduction = loss, reduction

    def forward(self, *values: Any) -> Any:
        *compared, given = values
        each = self.loss.per_sample(*compared)
        (weights,) = raised(ek.asarray(given))
        if each.ndim == 0 or weights.shape != each.shape[:1]:
            raise ShapeError(
                f"WeightedLoss: weights have shape {list(weights.shape)}, and the losses of samples "
                f"{list(each.shape)}", span=ek.here(), hint="there is one weight per sample (axis 0)",
            )  # fmt: skip
        by_sample = each if each.ndim == 1 else ek.mean(each, tuple(range(1, each.ndim)))
        counted = by_sample * ek.cast(weights, by_sample.dtype)
        if self.reduction == "none":
            return counted
        total = ek.sum(counted)
        return total / ek.sum(ek.cast(weights, by_sample.dtype)) if self.reduction == "mean" else total

    def extra_repr(self) -> str:
        return f"reduction='{self.reduction}'"


class CombinedLoss(Module):
    """The sum of losses of the same predictions and targets, each times its weight.

    >>> nn.CombinedLoss([(1.0, nn.MSELoss()), (0.1, nn.L1Loss())])(predictions, targets)
    """

    def __init__(self, losses: Mapping[str, Any] | Iterable[Any], weights: Iterable[float] | None = None) -> None:
        super().__init__()
        named = dict(losses) if isinstance(losses, Mapping) else {str(k): x for k, x in enumerate(losses)}
        if weights is None:
            pairs = {name: x if isinstance(x, tuple) else (1.0, x) for name, x in named.items()}
        else:
            pairs = {name: (w, x) for (name, x), w in zip(named.items(), weights, strict=True)}
        if not pairs:
            raise TensorError("CombinedLoss takes one loss at least", span=ek.here())
        self.weights = {name: float(weight) for name, (weight, _) in pairs.items()}
        self.functions: dict[str, Any] = {}  # those that are no modules
        for name, (_, loss) in pairs.items():
            if isinstance(loss, Module):
                self.add_module(name, loss)
            elif callable(loss):
                self.functions[name] = loss
            else:
                raise TensorError(f"CombinedLoss: {name} is no loss but a {type(loss).__name__}", span=ek.here())

    def parts(self, *values: Any) -> dict[str, Any]:
        """Each loss by its name, without its weight."""
        return {name: (self._modules.get(name) or self.functions[name])(*values) for name in self.weights}

    def forward(self, *values: Any) -> Any:
        found = [self.weights[name] * loss for name, loss in self.parts(*values).items()]
        total = found[0]
        for loss in found[1:]:
            total = total + loss
        return total

    def extra_repr(self) -> str:
        return ", ".join(f"{weight:g}·{name}" for name, weight in self.weights.items())
