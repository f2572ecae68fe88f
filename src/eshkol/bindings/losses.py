"""Losses that Scheme makes of losses: weighted-loss and combined-loss.

Comes in: procedures of predictions and targets, or modules of `nn`. Goes out: a procedure of predictions and targets.
"""

from __future__ import annotations

from typing import Any

from eshkol import nn
from eshkol.bindings.forms import wanted as tensor_wanted
from eshkol.bindings.layers import in_words
from eshkol.bindings.rows import data, shown
from eshkol.errors import DTypeError, EshkolError, TensorError
from eshkol.nn.losses import Loss


def weighted_loss(loss: Any, weights: Any) -> Any:
    """The loss in which each example counts by its weight; the mean is over the sum of weights."""
    if not callable(loss):
        raise DTypeError(f"a loss is wanted as argument 1, not {shown(loss)}", hint="(weighted-loss mse weights)")
    fixed = tensor_wanted(weights, 2)
    inner = nn.WeightedLoss(loss if isinstance(loss, Loss) else _EachLoss(loss))

    def weighted(predictions: Any, targets: Any) -> Any:
        try:
            return inner(_input(predictions), _input(targets), fixed)
        except EshkolError as error:
            raise in_words(error) from None

    return weighted


class _EachLoss(Loss):
    """A loss of Scheme, a procedure that takes :reduction."""

    def __init__(self, procedure: Any) -> None:
        nn.Module.__init__(self)
        object.__setattr__(self, "procedure", procedure)

    def per_sample(self, *values: Any) -> Any:
        return self.procedure(*values, reduction="none")

    def forward(self, *values: Any) -> Any:
        return self.procedure(*values)


def combined_loss(*parts: Any) -> Any:
    """The sum of losses, each times its weight: alpha and 1 - alpha of two, or a list of weights after the losses."""
    if len(parts) < 2:
        raise TensorError("losses and their weights are missing; it is called with (loss1 loss2 alpha)")
    *losses, weight = parts
    if isinstance(weight, list):
        shares = [float(w) for w in weight]
    elif len(losses) == 2:
        shares = [float(weight), 1.0 - float(weight)]
    else:
        raise TensorError(
            f"{len(losses)} losses need a list of weights behind them", hint="(combined-loss a b c '(0.5 0.3 0.2))"
        )
    for loss in losses:
        if not callable(loss):
            raise DTypeError(f"a loss is a procedure, not {shown(loss)}")
    if len(shares) != len(losses):
        raise TensorError(f"there are {len(losses)} losses, and {len(shares)} weights")
    return nn.CombinedLoss(losses, shares)


def _input(given: Any) -> Any:
    return data(given) if isinstance(given, list) else given
