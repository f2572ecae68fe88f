"""Losses: how far predictions are from targets.

Every loss takes `reduction`: "mean" of all elements (the default), their "sum", or "none" for each of them. Predictions
and targets must have the same shape: broadcasting one to the other is nearly always a mistake here, so it is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError, TensorError
from eshkol.ops import dtypes, shapes
from eshkol.ops.activations import log_softmax, relu
from eshkol.ops.elementwise import (
    absolute,
    cast,
    equal,
    exp,
    expm1,
    log,
    log1p,
    minimum,
    not_equal,
    pow_,
    sigmoid,
    where,
)
from eshkol.ops.functions import clamp, logaddexp, square, xlogy
from eshkol.ops.indexing import position, take, take_along
from eshkol.ops.movement import expand, reshape
from eshkol.ops.reductions import mean, narrow, norm, sum_, wide
from eshkol.ops.row import Draw, Op, Sample, Value, composite, sample

GROUP = "losses"
REDUCTIONS = ("mean", "sum", "none")


def _reduced(loss: Value, reduction: str) -> Any:
    if reduction not in REDUCTIONS:
        raise TensorError(f"there is no reduction '{reduction}'", hint=f"reductions: {', '.join(REDUCTIONS)}")
    return mean(loss) if reduction == "mean" else sum_(loss) if reduction == "sum" else loss


def _numpy_reduced(loss: Any, reduction: str) -> Any:
    return loss if reduction == "none" else getattr(np, reduction)(loss)


def _alike(x: Value, target: Any) -> None:
    if isinstance(target, Value) and target.shape != x.shape:
        raise ShapeError(
            f"predictions have shape {list(x.shape)}, targets {list(target.shape)}",
            hint="reshape one of them: a loss does not broadcast",
        )


def _chances_wanted(what: str, x: Value, hint: str, spare: float = 0.0) -> None:
    """Refuse numbers that are no probabilities, where they are known already."""

    def refuse(values: Any) -> None:
        least, most = float(np.min(values)), float(np.max(values))
        if least < -spare or most > 1 + spare:
            raise TensorError(f"{what} are probabilities, and these go from {least:g} to {most:g}", hint=hint)

    if x.size and x.dtype.is_float:
        x.examined(refuse)


def _loss(reference: Callable[..., Any], **rules: Any) -> Callable[[Callable[..., Any]], Op]:
    """A composite whose reference gives the loss of each element, in float64."""

    def reduced(*args: Any, reduction: str = "mean", **attrs: Any) -> Any:
        doubles = [x.astype(np.float64) if isinstance(x, np.ndarray) else x for x in args]
        return _numpy_reduced(reference(*doubles, **attrs), reduction)

    return composite(**({"group": GROUP, "reference": reduced, "method": False, "tolerance": 4.0} | rules))


def _samples(*draws: Any, **attrs: Any) -> tuple[Sample, ...]:
    return tuple(sample(*draws, reduction=r, **attrs) for r in REDUCTIONS)


# --- of numbers -----------------------------------------------------------------------------------

_HIGH, _LOW = Draw((2, 3), 0.5, 2.5), Draw((2, 3), -2.0, 0.0)


@_loss(
    lambda x, target: (x - target) ** 2, scheme=("mse", "mse-loss", "nn-mse-loss"),
    samples=(*_samples((2, 3), (2, 3)), sample((), ()), sample((0,), (0,), reduction="sum")),
)  # fmt: skip
def mse_loss(x: Value, target: Value, reduction: str = "mean") -> Any:
    """(x - target)²."""
    _alike(x, target)
    return _reduced(square(x - target), reduction)


@_loss(lambda x, target: np.abs(x - target), scheme=("mae",), samples=_samples(_HIGH, _LOW), aliases=("mae_loss",))
def l1_loss(x: Value, target: Value, reduction: str = "mean") -> Any:
    """|x - target|; the derivative where they are equal is 0."""
    _alike(x, target)
    return _reduced(absolute(x - target), reduction)


def _huber(x: Any, target: Any, delta: float = 1.0) -> Any:
    away = np.abs(x - target)
    return np.where(away <= delta, 0.5 * away**2, delta * (away - 0.5 * delta))


_near = (_samples((2, 3), (2, 3)), _samples(Draw((2, 3), 0.0, 0.4), Draw((2, 3), 0.0, 0.4)))


@_loss(_huber, scheme=("huber-loss",), samples=(*_near[0], *_near[1], *_samples(_HIGH, _LOW, delta=0.25)))
def huber_loss(x: Value, target: Value, delta: float = 1.0, reduction: str = "mean") -> Any:
    """Half the square of the distance up to delta, from there on a straight line of slope delta."""
    _alike(x, target)
    if delta <= 0:
        raise TensorError(f"delta must be positive, not {delta}")
    away = absolute(x - target)
    near = minimum(away, delta)
    return _reduced(near * (away - 0.5 * near), reduction)


def _smooth(x: Any, target: Any, beta: float = 1.0) -> Any:
    return _huber(x, target, beta) / beta if beta else np.abs(x - target)


@_loss(_smooth, scheme=("smooth-l1",), samples=(*_near[1], sample(_HIGH, _LOW, beta=0.25), sample(_HIGH, _LOW, beta=0)))
def smooth_l1_loss(x: Value, target: Value, beta: float = 1.0, reduction: str = "mean") -> Any:
    """The Huber loss with delta = beta, divided by it: of slope 1 far out; with beta = 0, the L1 loss."""
    if beta < 0:
        raise TensorError(f"beta cannot be negative: {beta}")
    if beta == 0:
        return l1_loss(x, target, reduction)
    return huber_loss(x, target, beta, reduction) / beta


# --- of classes -----------------------------------------------------------------------------------


def _class_axis(x: Value) -> int:
    if x.ndim == 0:
        raise ShapeError("predictions need an axis of classes: axis 1, or axis 0 of a single example")
    return min(1, x.ndim - 1)


def _check_classes(x: Value, target: Value, weight: Value | None, axis: int, ignored: int | None) -> None:
    wanted = shapes.without(x.shape, (axis,))
    if not target.dtype.is_integer:
        raise DTypeError(f"class indices are integers, not {target.dtype}", hint="cast them: target.long()")
    if target.shape != wanted:
        raise ShapeError(
            f"predictions of shape {list(x.shape)} have classes on axis {axis}, so class indices have shape "
            f"{list(wanted)}, not {list(target.shape)}",
            hint="class indices are not one-hot: target.argmax(1)" if target.shape == x.shape else None,
        )
    if weight is not None and weight.shape != (x.shape[axis],):
        raise ShapeError(f"the weight has shape {list(weight.shape)}, there are {x.shape[axis]} classes")
    target.examined(partial(_classes_wanted, x.shape[axis], ignored))  # else `position` finds out when it runs


def _classes_wanted(count: int, ignored: int | None, values: Any) -> None:
    """Refuse classes that there are not."""
    if values.size and values.min() >= 0 and values.max() < count:
        return
    outside = values[((values < 0) | (values >= count)) & (values != ignored)]
    if outside.size:
        raise IndexOutOfRange(
            f"a target is class {outside.flat[0]}, and there are {count} classes: 0 to {count - 1}",
            hint="give the model as many outputs as there are classes; classes count from 0",
        )


def _of_classes(
    scores: Value, target: Value, weight: Value | None, ignore_index: int | None, reduction: str, smoothing: float
) -> Any:
    """The negative scores of the targets, weighted; their mean is over the weights of targets that count."""
    axis = _class_axis(scores)
    _check_classes(scores, target, weight, axis, ignore_index)
    some = ignore_index is not None and target.dtype.holds(ignore_index)
    ignored = equal(target, ignore_index) if some else not_equal(target, target)
    place = position(where(ignored, 0, target), scores.shape[axis], wrap=False)
    kept = (*target.shape[:axis], 1, *target.shape[axis:])
    loss = -reshape(take_along(scores, reshape(place, kept), axis), target.shape)
    shares = cast(~ignored, scores.dtype)
    if weight is not None:
        shares = shares * take(wide(weight), place)
    loss = where(ignored, 0, loss * shares)
    if smoothing:
        per_class = (-1, *(1,) * (scores.ndim - axis - 1))
        spread = scores if weight is None else scores * reshape(wide(weight), per_class)
        spread = where(ignored, 0, -mean(spread, axis))
        loss = (1 - smoothing) * loss + smoothing * spread
    return sum_(loss) / sum_(shares) if reduction == "mean" else _reduced(loss, reduction)


def _nll_reference(
    x: Any, target: Any, weight: Any = None, ignore_index: int | None = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    x = np.moveaxis(x.astype(np.float64), min(1, x.ndim - 1), -1)
    weight = np.ones(x.shape[-1]) if weight is None else weight.astype(np.float64)
    loss, shares = np.zeros(target.shape), np.zeros(target.shape)
    for place in np.ndindex(*target.shape):
        label = int(target[place])
        if label != ignore_index:
            wanted = np.eye(x.shape[-1])[label] * (1 - label_smoothing) + label_smoothing / x.shape[-1]
            loss[place], shares[place] = -np.sum(wanted * weight * x[place]), weight[label]
    return loss.sum() / shares.sum() if reduction == "mean" else _numpy_reduced(loss, reduction)


def _labels(*shape: int, ignored: bool = False) -> Draw:
    def make(rng: Any) -> Any:
        found = rng.integers(0, 3, shape)
        if ignored:
            found.flat[0] = -100
        return found

    return Draw(shape, kind="int", make=make)


_class_samples = (
    *_samples((4, 3), _labels(4)), sample((2, 3, 2), _labels(2, 2), Draw((3,), 0.5, 2.0)), sample((3,), _labels()),
    sample((4, 3), _labels(4, ignored=True), Draw((3,), 0.5, 2.0)), sample((0, 3), _labels(0), reduction="sum"),
    sample((4, 3), _labels(4, ignored=True), reduction="none"),
)  # fmt: skip


def _targets(x: Value, target: Any) -> Any:
    """Targets as a value; a number is the class of a vector of predictions."""
    if isinstance(target, Value):
        return target
    if isinstance(target, bool) or not isinstance(target, int | float):
        raise DTypeError(
            f"a target is a tensor of class indices, not {target!r}", hint="make one: ek.tensor([0, 2, 1])"
        )
    return x.literal(np.asarray(target, np.int64 if isinstance(target, int) else x.dtype.numpy))


@composite(group=GROUP, method=False, reference=_nll_reference, samples=_class_samples, tolerance=4.0)
def nll_loss(
    x: Value, target: Value, weight: Value | None = None, ignore_index: int | None = -100, reduction: str = "mean"
) -> Any:
    """The negative log-probability, of those given, of the target class; as cross_entropy without log_softmax."""
    found = _targets(x, target)
    return narrow(_of_classes(wide(x), found, weight, ignore_index, reduction, 0.0), x.dtype)


def _cross_entropy_reference(
    x: Any, target: Any, weight: Any = None, ignore_index: int | None = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    from scipy import special

    axis = min(1, x.ndim - 1)
    scores = special.log_softmax(x.astype(np.float64), axis) if x.size else x
    if target.dtype.kind in "iu":
        return _nll_reference(scores, target, weight, ignore_index, reduction, label_smoothing)
    wanted = target.astype(np.float64) * (1 - label_smoothing) + label_smoothing / max(x.shape[axis], 1)
    shares = 1.0 if weight is None else weight.astype(np.float64).reshape(-1, *(1,) * (x.ndim - axis - 1))
    return _numpy_reduced(-np.sum(wanted * scores * shares, axis), reduction)


@composite(
    group=GROUP, method=False, reference=_cross_entropy_reference, tolerance=4.0,
    scheme=("cross-entropy", "cross-entropy-loss", "nn-cross-entropy"),
    samples=(
        *_class_samples, sample((4, 3), _labels(4), label_smoothing=0.2),
        sample((2, 3, 2), _labels(2, 2, ignored=True), Draw((3,), 0.5, 2.0), label_smoothing=0.1),
        sample((4, 3), Draw((4, 3), 0.0, 1.0)),
        sample((2, 3, 2), Draw((2, 3, 2), 0.0, 1.0), Draw((3,), 0.5, 2.0), label_smoothing=0.1, reduction="none"),
    ),
)  # fmt: skip
def cross_entropy(
    x: Value, target: Value, weight: Value | None = None, ignore_index: int | None = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """The cross entropy of logits x, whose classes are on axis 1 (axis 0 of a vector), with targets.

    Targets are class indices, or probabilities of the shape of x. A weight per class scales losses, of which the mean
    over class indices is the weighted one; those at ignore_index do not count. An index out of range is an error.
    """
    if not 0 <= label_smoothing <= 1:
        raise TensorError(f"label_smoothing is between 0 and 1, not {label_smoothing}")
    axis = _class_axis(x)
    target = _targets(x, target)
    scores = log_softmax(wide(x), axis)
    if not target.dtype.is_float:
        loss = _of_classes(scores, target, weight, ignore_index, reduction, label_smoothing)
        return narrow(loss, x.dtype)
    if target.shape == (*x.shape[:axis], *x.shape[axis + 1 :]):
        raise DTypeError(
            f"targets of shape {list(target.shape)} are class indices, which are integers, not {target.dtype}",
            hint="cast them: target.long(); floats are probabilities, of the shape of the predictions",
        )
    _alike(x, target)
    wanted = wide(target)
    if label_smoothing:
        wanted = wanted * (1 - label_smoothing) + label_smoothing / max(x.shape[axis], 1)
    if weight is not None:
        wanted = wanted * reshape(wide(weight), (-1, *(1,) * (x.ndim - axis - 1)))
    return narrow(_reduced(-sum_(wanted * scores, axis), reduction), x.dtype)


_LEAST_LOG = -100.0  # what counts as the logarithm of 0, so that a loss stays finite
_ROUNDING = 1e-5  # by which a probability may lie outside 0 to 1; farther out it is none, and its logarithm NaN


def _bounded_log(x: Value, of_rest: bool = False) -> Any:
    """log(x), or log(1 - x), not below -100; where it would be, the derivative is 0. Of what is none, NaN."""
    rest = 1 - x if of_rest else x
    none = (rest <= math.exp(_LEAST_LOG)) & (rest >= -_ROUNDING)
    inside = where(none, 0.5, x)
    return where(none, _LEAST_LOG, log1p(-inside) if of_rest else log(inside))


@_loss(
    lambda x, target, axis=-1: -np.sum(target * np.log(x), axis), scheme=("categorical-cross-entropy",),
    samples=(*_samples(Draw((4, 3), 0.1, 0.9), Draw((4, 3), 0.0, 1.0)), sample(Draw((3,), 0.1, 0.9), (3,), axis=0)),
)  # fmt: skip
def categorical_cross_entropy(x: Value, target: Value, axis: int = -1, reduction: str = "mean") -> Any:
    """-Σ target·log(x) along the axis of classes, x being probabilities; log(0) counts as -100, with derivative 0."""
    _alike(x, target)
    return narrow(_reduced(-sum_(target * _bounded_log(wide(x)), axis), reduction), x.dtype)


def _binary(x: Any, target: Any, weight: Any = 1.0) -> Any:
    return -(target * np.log(x) + (1 - target) * np.log1p(-x)) * (1.0 if weight is None else weight)


_chances = Draw((2, 3), 0.1, 0.9)


@_loss(
    _binary, scheme=("binary-cross-entropy",),
    samples=(*_samples(_chances, Draw((2, 3), 0.0, 1.0)), sample(_chances, _chances, (3,))),
)  # fmt: skip
def binary_cross_entropy(x: Value, target: Value, weight: Value | None = None, reduction: str = "mean") -> Any:
    """-(target·log(x) + (1 - target)·log(1 - x)) for probabilities x; log(0) counts as -100, with derivative 0.

    Numbers outside 0 to 1 are an error where they are known already; computed within a graph they give NaN.
    """
    _alike(x, target)
    _chances_wanted("predictions", x, "scores without bounds go to binary_cross_entropy_with_logits", _ROUNDING)
    given = wide(x)
    loss = -(target * _bounded_log(given) + (1 - target) * _bounded_log(given, of_rest=True))
    loss = loss if weight is None else loss * weight
    return narrow(_reduced(loss, reduction), x.dtype)


def _binary_with_logits(x: Any, target: Any, weight: Any = None, pos_weight: Any = 1.0) -> Any:
    weight, pos_weight = (1.0 if z is None else z for z in (weight, pos_weight))
    return (target * pos_weight * np.logaddexp(0, -x) + (1 - target) * np.logaddexp(0, x)) * weight


@_loss(
    _binary_with_logits,
    samples=(
        *_samples((2, 3), Draw((2, 3), 0.0, 1.0)), sample((2, 3), _chances, (3,), Draw((3,), 0.5, 2.0)),
        sample((2, 3), _chances, None, Draw((3,), 0.5, 2.0)),
    ),
)  # fmt: skip
def binary_cross_entropy_with_logits(
    x: Value, target: Value, weight: Value | None = None, pos_weight: Value | None = None, reduction: str = "mean"
) -> Any:
    """binary_cross_entropy of sigmoid(x), without overflow; pos_weight scales the part of positive targets."""
    _alike(x, target)
    return _reduced(_logistic(x, target, weight, pos_weight), reduction)


def _logistic(x: Value, target: Value, weight: Value | None = None, pos_weight: Value | None = None) -> Any:
    scale = 1 if pos_weight is None else (pos_weight - 1) * target + 1
    loss = (1 - target) * x + scale * logaddexp(-x, 0)
    return loss if weight is None else loss * weight


def _focal(x: Any, target: Any, gamma: float = 2.0, alpha: float | None = 0.25, logits: bool = True) -> Any:
    chance = 1 / (1 + np.exp(-x)) if logits else x
    right = chance * target + (1 - chance) * (1 - target)
    scale = 1.0 if alpha is None else alpha * target + (1 - alpha) * (1 - target)
    return scale * (1 - right) ** gamma * _binary(chance, target)


_yes_or_no = Draw((2, 3), make=lambda rng: rng.integers(0, 2, (2, 3)))


@_loss(
    _focal, scheme=("focal-loss",),
    samples=(
        *_samples((2, 3), _yes_or_no), sample((2, 3), _yes_or_no, gamma=1.5, alpha=None),
        sample(_chances, _yes_or_no, gamma=1.5, logits=False),
    ),
)  # fmt: skip
def focal_loss(
    x: Value, target: Value, gamma: float = 2.0, alpha: float | None = 0.25, reduction: str = "mean",
    logits: bool = True,
) -> Any:  # fmt: skip
    """The binary cross entropy times (1 - p)^gamma, p the probability of the right answer.

    x are logits or, with logits=False, probabilities. alpha weighs positive targets and 1 - alpha negative ones, unless
    it is None.
    """
    _alike(x, target)
    if logits:
        wrong, crossed = target * sigmoid(-x) + (1 - target) * sigmoid(x), _logistic(x, target)
    else:
        wrong, crossed = target * (1 - x) + (1 - target) * x, binary_cross_entropy(x, target, None, "none")
    none = equal(wrong, 0)
    loss = where(none, 0, pow_(where(none, 1, wrong), gamma)) * crossed
    if alpha is not None:
        loss = loss * (target * alpha + (1 - target) * (1 - alpha))
    return _reduced(loss, reduction)


# --- of distributions -----------------------------------------------------------------------------


def _kl_reference(x: Any, target: Any, reduction: str = "mean", log_target: bool = False) -> Any:
    x, target = x.astype(np.float64), target.astype(np.float64)
    loss = np.exp(target) * (target - x) if log_target else target * (np.log(target) - x)
    return loss.sum() / x.shape[0] if reduction == "batchmean" else _numpy_reduced(loss, reduction)


@composite(
    group=GROUP, method=False, reference=_kl_reference, scheme=("kl-div-loss",), tolerance=8.0,
    samples=(
        *_samples((2, 3), _chances), sample((2, 3), (2, 3), log_target=True),
        sample((2, 3), _chances, reduction="batchmean"),
    ),
)  # fmt: skip
def kl_div(x: Value, target: Value, reduction: str = "mean", log_target: bool = False) -> Any:
    """target·(log(target) - x) for log-probabilities x; with log_target the targets are logarithms too.

    The mean is over all elements, as everywhere; "batchmean" divides their sum by the extent of axis 0.
    """
    _alike(x, target)
    if not log_target and isinstance(target, Value):
        _chances_wanted("targets", target, "log_target=True takes logarithms; of mean and log-variance: kl_div_normal")
    loss = exp(target) * (target - x) if log_target else xlogy(target, target) - target * x
    return _reduced_by_batch(loss, reduction)


def _reduced_by_batch(loss: Value, reduction: str) -> Any:
    if reduction == "batchmean":
        return sum_(loss) / (loss.shape[0] if loss.ndim else 1)
    return _reduced(loss, reduction)


def _kl_normal(mu: Any, logvar: Any, reduction: str = "mean") -> Any:
    mu, logvar = mu.astype(np.float64), logvar.astype(np.float64)
    loss = (mu**2 + np.exp(logvar) - 1 - logvar) / 2
    return loss.sum() / mu.shape[0] if reduction == "batchmean" else _numpy_reduced(loss, reduction)


@composite(
    group=GROUP, method=False, reference=_kl_normal, scheme=("kl-divergence",), tolerance=8.0,
    samples=(*_samples((2, 3), (2, 3)), sample((2, 3), (2, 3), reduction="batchmean"), sample((), ())),
)  # fmt: skip
def kl_div_normal(mu: Value, logvar: Value, reduction: str = "mean") -> Any:
    """(mu² + e^logvar - 1 - logvar)/2: how far normal distributions are from the standard one, as a VAE's loss has it.

    They are given by means and logarithms of variances. The mean is over all elements, as everywhere; "sum" is the
    divergence itself, and "batchmean" divides it by the extent of axis 0, as the loss of a VAE usually does.
    """
    _alike(mu, logvar)
    return _reduced_by_batch((square(mu) + (expm1(logvar) - logvar)) * 0.5, reduction)


@_loss(
    lambda x, target, log_input=True, full=False, eps=1e-8: (
        (np.exp(x) - target * x if log_input else x - target * np.log(x + eps))
        + full * np.where(target > 1, target * np.log(target) - target + 0.5 * np.log(2 * np.pi * target), 0)
    ),
    samples=(
        *_samples((2, 3), Draw((2, 3), 0.1, 0.9)), sample(_chances, _chances, log_input=False),
        sample((2, 3), Draw((2, 3), 1.5, 4.0), full=True),
    ),
)  # fmt: skip
def poisson_nll_loss(
    x: Value, target: Value, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean"
) -> Any:
    """e^x - target·x, or for a rate x itself x - target·log(x + eps); `full` adds Stirling's log(target!)."""
    _alike(x, target)
    loss = exp(x) - target * x if log_input else x - target * log(x + eps)
    if full:
        many = target > 1
        count = where(many, target, 2)
        stirling = count * log(count) - count + 0.5 * log(2 * math.pi * count)
        loss = loss + where(many, stirling, 0)
    return _reduced(loss, reduction)


@_loss(
    lambda x, target, var, full=False, eps=1e-6: (
        0.5 * (np.log(np.maximum(var, eps)) + (x - target) ** 2 / np.maximum(var, eps))
        + full * 0.5 * math.log(2 * math.pi)
    ),
    samples=(
        *_samples((2, 3), (2, 3), Draw((2, 3), 0.5, 2.0)), sample((2, 3), (2, 3), Draw((2, 1), 0.5, 2.0), full=True),
    ),
)  # fmt: skip
def gaussian_nll_loss(
    x: Value, target: Value, var: Value, full: bool = False, eps: float = 1e-6, reduction: str = "mean"
) -> Any:
    """½·(log(var) + (x - target)²/var), var not below eps; `full` adds ½·log(2π)."""
    _alike(x, target)
    spread = clamp(var, eps)
    loss = 0.5 * (log(spread) + square(x - target) / spread)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


# --- of vectors and margins -----------------------------------------------------------------------

_signs = Draw((3,), make=lambda rng: rng.choice([-1.0, 1.0], 3))


@_loss(
    lambda x, target, margin=1.0: np.maximum(0, margin - target * x),
    samples=(*_samples(Draw((3,), -0.8, 0.8), _signs), sample(Draw((3,), -0.2, 0.2), _signs, margin=0.5)),
)  # fmt: skip
def hinge_loss(x: Value, target: Value, margin: float = 1.0, reduction: str = "mean") -> Any:
    """margin - target·x where that is positive, else 0, for targets -1 and 1."""
    _alike(x, target)
    return _reduced(relu(margin - target * x), reduction)


def _cosine(x: Any, y: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    x, y = (z.astype(np.float64) for z in (x, y))
    lengths = [np.maximum(np.sqrt(np.sum(z * z, axis)), eps) for z in (x, y)]
    return np.sum(x * y, axis) / (lengths[0] * lengths[1])


@composite(
    group=GROUP, method=False, reference=_cosine, tolerance=4.0,
    samples=(sample((2, 3), (2, 3)), sample((2, 3), (3,), axis=-1), sample((3, 2), (3, 2), axis=0)),
)  # fmt: skip
def cosine_similarity(x: Value, y: Value, axis: int = 1, eps: float = 1e-8) -> Any:
    """The cosine of the angle between vectors along an axis; lengths below eps count as eps."""
    shape = shapes.broadcast(x.shape, y.shape)
    one, other = (expand(wide(z), shape) for z in (x, y))
    lengths = clamp(norm(one, axis=axis), eps) * clamp(norm(other, axis=axis), eps)
    return narrow(sum_(one * other, axis) / lengths, dtypes.promote(x.dtype, y.dtype))


@_loss(
    lambda x, y, target, margin=0.0: np.where(
        target > 0, 1 - _cosine(x, y, -1), np.maximum(0, _cosine(x, y, -1) - margin)
    ),
    samples=(*_samples((3, 4), (3, 4), _signs), sample((3, 4), (3, 4), _signs, margin=-0.9)),
)  # fmt: skip
def cosine_embedding_loss(x: Value, y: Value, target: Value, margin: float = 0.0, reduction: str = "mean") -> Any:
    """1 - cosine where the target is 1, and what the cosine is above the margin where it is -1 (last axis)."""
    cosine = cosine_similarity(x, y, axis=-1)
    _alike(cosine, target)
    return _reduced(where(target > 0, 1 - cosine, relu(cosine - margin)), reduction)


def _triplet(
    x: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False
) -> Any:
    def distance(a: Any, b: Any) -> Any:
        return np.linalg.norm(a - b + eps, p, -1)

    far = np.minimum(distance(x, negative), distance(positive, negative) if swap else np.inf)
    return np.maximum(0, margin + distance(x, positive) - far)


@_loss(
    _triplet,
    samples=(
        *_samples((3, 4), (3, 4), (3, 4), margin=5.0), sample((3, 4), (3, 4), (3, 4), margin=6.0, p=3.0, swap=True),
    ),
)  # fmt: skip
def triplet_margin_loss(
    anchor: Value, positive: Value, negative: Value, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    """margin + |anchor - positive| - |anchor - negative| where positive, else 0; p-norms along the last axis.

    With swap the negative's distance is from the positive, if that is nearer. eps is added to differences.
    """
    _alike(anchor, positive)
    _alike(anchor, negative)
    near = norm(anchor - positive + eps, p, -1)
    far = norm(anchor - negative + eps, p, -1)
    far = minimum(far, norm(positive - negative + eps, p, -1)) if swap else far
    return _reduced(relu(near - far + margin), reduction)
