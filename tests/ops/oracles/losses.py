"""Oracles of losses: the loss of one element by its formula, in mpmath's numbers where logarithms are near 0."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np

from eshkol.ops.row import Draw, sample
from oracles.elementwise import each
from oracles.registry import every, first, meet, oracle

REDUCTIONS = ("mean", "sum", "none")


def _reduced(loss: Any, reduction: str) -> Any:
    if reduction == "none":
        return loss
    values = [float(loss[i]) for i in np.ndindex(*loss.shape)]
    if reduction == "sum":
        return math.fsum(values)
    count = loss.shape[0] if reduction == "batchmean" else len(values)
    return math.fsum(values) / count if count else math.nan


def _loss(name: str, *, arrays: int = 2, tolerance: float = 8.0, more: Any = (), fixed: Any = ()) -> Any:
    """The oracle of a loss whose formula is of one element of each of its arrays."""

    def enter(formula: Any) -> Any:
        def of_arrays(*args: Any, reduction: str = "mean", **how: Any) -> Any:
            optional = [a for a in args[arrays:] if not isinstance(a, np.ndarray) and a is not None]
            assert not optional, "options are given by name"
            return _reduced(each(lambda *v: float(formula(*v, **how)), *args[:arrays]), reduction)

        oracle(name, dtype=meet, tolerance=tolerance, more=more, fixed=fixed)(of_arrays)
        return formula

    return enter


_PAIR = ((2, 3), (2, 3))


@_loss("mse_loss")
def _mse(x: float, t: float) -> float:
    return x * x - 2 * x * t + t * t


@_loss("l1_loss")
def _l1(x: float, t: float) -> float:
    return max(x - t, t - x)


@_loss("huber_loss", more=[sample(*_PAIR, delta=d, reduction=r) for d in (0.3, 1.0, 4.0) for r in REDUCTIONS])
def _huber(x: float, t: float, delta: float = 1.0) -> float:
    away = abs(x - t)
    return away * away / 2 if away <= delta else delta * away - delta * delta / 2


@_loss("smooth_l1_loss", more=[sample(*_PAIR, beta=b, reduction=r) for b in (0.0, 0.3, 4.0) for r in REDUCTIONS])
def _smooth(x: float, t: float, beta: float = 1.0) -> float:
    return _huber(x, t, beta) / beta if beta else abs(x - t)


def _log(p: float) -> Any:
    """log(0) counts as -100."""
    return max(mpmath.log(p), -100) if p > 0 else -100


def _sigmoid(x: float) -> Any:
    return 1 / (1 + mpmath.exp(-x))


# --- classes ----------------------------------------------------------------------------------------


def _classes(x: Any) -> tuple[int, int]:
    axis = 1 if x.ndim > 1 else 0
    return axis, x.shape[axis]


def _log_softmax(x: Any, axis: int) -> Any:
    moved = np.moveaxis(x, axis, -1)
    found = every(
        moved.shape, lambda i: moved[i] - float(mpmath.log(mpmath.fsum(mpmath.exp(v) for v in moved[i[:-1]].tolist())))
    )
    return np.moveaxis(found.astype(np.float64), -1, axis)


def _of_classes(scores: Any, target: Any, weight: Any, ignore_index: Any, reduction: str, smoothing: float) -> Any:
    axis, count = _classes(scores)
    rows = np.moveaxis(scores, axis, -1)
    shares = np.ones(count) if weight is None else weight
    total: dict[Any, float] = {}
    weighed = 0.0
    for i in np.ndindex(*target.shape):
        label = int(target[i])
        if label == ignore_index:
            total[i] = 0.0
            continue
        weighed += float(shares[label])
        total[i] = -sum(
            ((1 - smoothing) * (k == label) + smoothing / count) * float(shares[k]) * float(rows[i][k])
            for k in range(count)
        )
    if reduction == "mean":
        return math.fsum(total.values()) / weighed if weighed else math.nan
    return math.fsum(total.values()) if reduction == "sum" else every(target.shape, lambda i: total[i])


_LABELS = Draw((4,), kind="int", make=lambda rng: np.array([2, 0, 1, 2]))
_WEIGHED = [
    sample((4, 3), _LABELS, w, ignore_index=g, reduction=r)
    for w in (None, Draw((3,), 0.5, 2.0)) for g in (-100, 2, None) for r in REDUCTIONS
]  # fmt: skip


@oracle("nll_loss", dtype=first, tolerance=8.0, more=_WEIGHED)
def _nll(x: Any, target: Any, weight: Any = None, ignore_index: int | None = -100, reduction: str = "mean") -> Any:
    return _of_classes(x, target, weight, ignore_index, reduction, 0.0)


@oracle("cross_entropy", dtype=first, tolerance=8.0, more=[
    *_WEIGHED,
    *(sample((4, 3), _LABELS, w, ignore_index=0, reduction=r, label_smoothing=0.3)
      for w in (None, Draw((3,), 0.5, 2.0)) for r in REDUCTIONS),
    *(sample((4, 3), Draw((4, 3), 0.0, 1.0), w, reduction=r, label_smoothing=s)
      for w in (None, Draw((3,), 0.5, 2.0)) for r in REDUCTIONS for s in (0.0, 0.3)),
    sample((3,), Draw((3,), 0.0, 1.0)),
])  # fmt: skip
def _cross_entropy(
    x: Any, target: Any, weight: Any = None, ignore_index: int | None = -100, reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    axis, count = _classes(x)
    scores = _log_softmax(x, axis)
    if target.dtype.kind in "iu":
        return _of_classes(scores, target, weight, ignore_index, reduction, label_smoothing)
    rows, wanted = np.moveaxis(scores, axis, -1), np.moveaxis(target, axis, -1)
    shares = np.ones(count) if weight is None else weight
    loss = every(
        rows.shape[:-1],
        lambda i: (
            -sum(
                ((1 - label_smoothing) * wanted[i][k] + label_smoothing / count) * shares[k] * rows[i][k]
                for k in range(count)
            )
        ),
    )
    return _reduced(loss, reduction)


@oracle(
    "categorical_cross_entropy",
    dtype=first,
    tolerance=8.0,
    fixed=("axis",),
    more=[
        sample(Draw((2, 3, 2), 0.1, 0.9), Draw((2, 3, 2), 0.0, 1.0), axis=a, reduction=r)
        for a in (0, 1, -1)
        for r in REDUCTIONS
    ],
)
def _categorical(x: Any, target: Any, axis: int = -1, reduction: str = "mean") -> Any:
    chances, wanted = np.moveaxis(x, axis, -1), np.moveaxis(target, axis, -1)
    loss = every(
        chances.shape[:-1],
        lambda i: -sum(t * float(_log(p)) for p, t in zip(chances[i].tolist(), wanted[i].tolist(), strict=True)),
    )
    return _reduced(loss, reduction)


def _times(loss: Any, weight: Any) -> Any:
    return loss if weight is None else loss.astype(np.float64) * weight


_CHANCES = Draw((2, 3), 0.1, 0.9)
_ENDS = Draw((2, 3), make=lambda rng: [[0.0, 1.0, 0.5], [1.0, 0.0, 0.25]])


@oracle("binary_cross_entropy", dtype=first, tolerance=8.0, more=[
    *(sample(_CHANCES, _CHANCES, w, reduction=r) for w in (None, (2, 3), (3,)) for r in REDUCTIONS),
    sample(_ENDS, _CHANCES, reduction="none"),
])  # fmt: skip
def _binary(x: Any, target: Any, weight: Any = None, reduction: str = "mean") -> Any:
    loss = each(lambda p, t: float(-(t * _log(p) + (1 - t) * _log(1 - mpmath.mpf(p)))), x, target)
    return _reduced(_times(loss, weight), reduction)


@oracle("binary_cross_entropy_with_logits", dtype=meet, tolerance=8.0, more=[
    sample((2, 3), _CHANCES, w, p, reduction=r)
    for w in (None, (2, 3)) for p in (None, Draw((3,), 0.5, 2.0)) for r in REDUCTIONS
])  # fmt: skip
def _logits(x: Any, target: Any, weight: Any = None, pos_weight: Any = None, reduction: str = "mean") -> Any:
    loss = each(
        lambda x, t, p: float(-(p * t * mpmath.log(_sigmoid(x)) + (1 - t) * mpmath.log(_sigmoid(-x)))),
        x, target, 1.0 if pos_weight is None else pos_weight,
    )  # fmt: skip
    return _reduced(_times(loss, weight), reduction)


_YES = Draw((2, 3), make=lambda rng: rng.integers(0, 2, (2, 3)))


@_loss("focal_loss", tolerance=16.0, more=[
    sample((2, 3), _YES, gamma=g, alpha=a, reduction=r)
    for g in (0.0, 0.5, 3.0) for a in (None, 0.25, 0.9) for r in REDUCTIONS
] + [sample(_CHANCES, _YES, gamma=g, alpha=a, logits=False) for g in (0.0, 0.5, 3.0) for a in (None, 0.9)],
    fixed=("logits",))  # fmt: skip
def _focal(x: float, t: float, gamma: float = 2.0, alpha: float | None = 0.25, logits: bool = True) -> Any:
    chances = (_sigmoid(x), _sigmoid(-x)) if logits else (mpmath.mpf(x), 1 - mpmath.mpf(x))
    right = chances[0] if t else chances[1]
    scale = 1 if alpha is None else alpha if t else 1 - alpha
    return -scale * (1 - right) ** gamma * mpmath.log(right)


# --- distributions ----------------------------------------------------------------------------------

_BATCHED = (*REDUCTIONS, "batchmean")


@_loss("kl_div", tolerance=16.0, fixed=("log_target",), more=[
    *(sample((2, 3), _CHANCES, reduction=r) for r in _BATCHED),
    *(sample((2, 3), (2, 3), reduction=r, log_target=True) for r in _BATCHED),
    sample((2, 3), _ENDS, reduction="none"),
])  # fmt: skip
def _kl(x: float, t: float, log_target: bool = False) -> Any:
    if log_target:
        return mpmath.exp(t) * (mpmath.mpf(t) - x)
    return t * (mpmath.log(t) - x) if t else 0


@_loss("kl_div_normal", tolerance=16.0, more=[sample(*_PAIR, reduction=r) for r in _BATCHED])
def _kl_normal(mu: float, logvar: float) -> Any:
    return (mpmath.mpf(mu) ** 2 + mpmath.exp(logvar) - 1 - logvar) / 2


@_loss("poisson_nll_loss", fixed=("log_input",), more=[
    sample(Draw((2, 3), 0.2, 2.0), Draw((2, 3), 0.1, 4.0), log_input=i, full=f, eps=e, reduction="none")
    for i in (True, False) for f in (True, False) for e in (1e-8, 0.1)
])  # fmt: skip
def _poisson(x: float, t: float, log_input: bool = True, full: bool = False, eps: float = 1e-8) -> Any:
    loss = mpmath.exp(x) - t * x if log_input else x - t * mpmath.log(x + eps)
    if full and t > 1:
        loss += t * mpmath.log(t) - t + mpmath.log(2 * mpmath.pi * t) / 2
    return loss


@_loss("gaussian_nll_loss", arrays=3, more=[
    sample((2, 3), (2, 3), Draw((2, 3), 0.01, 2.0), full=f, eps=e, reduction=r)
    for f in (True, False) for e in (1e-6, 0.5) for r in REDUCTIONS
])  # fmt: skip
def _gaussian(x: float, t: float, var: float, full: bool = False, eps: float = 1e-6) -> Any:
    spread = max(var, eps)
    return (mpmath.log(spread) + (x - t) ** 2 / spread + (mpmath.log(2 * mpmath.pi) if full else 0)) / 2


# --- vectors and margins ----------------------------------------------------------------------------

_SIGNS = Draw((3,), make=lambda rng: [1.0, -1.0, -1.0])


@_loss("hinge_loss", more=[sample((3,), _SIGNS, margin=m, reduction=r) for m in (0.0, 0.5, 2.0) for r in REDUCTIONS])
def _hinge(x: float, t: float, margin: float = 1.0) -> float:
    return max(0.0, margin - t * x)


def _cosine(x: list[float], y: list[float], eps: float) -> float:
    lengths = [max(math.hypot(*v), eps) for v in (x, y)]
    return math.fsum(a * b for a, b in zip(x, y, strict=True)) / (lengths[0] * lengths[1])


@oracle("cosine_similarity", dtype=meet, tolerance=8.0, fixed=("axis",), more=[
    sample((2, 3, 2), (2, 3, 2), axis=a) for a in (0, 1, -1)
] + [sample((2, 3), (1, 3), eps=e) for e in (1e-8, 5.0)])  # fmt: skip
def _cosine_similarity(x: Any, y: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    shape = np.broadcast_shapes(x.shape, y.shape)
    one, other = (np.moveaxis(np.broadcast_to(z, shape), axis, -1) for z in (x, y))
    return every(one.shape[:-1], lambda i: _cosine(one[i].tolist(), other[i].tolist(), eps))


@oracle("cosine_embedding_loss", dtype=meet, tolerance=8.0, more=[
    sample((3, 4), (3, 4), _SIGNS, margin=m, reduction=r) for m in (-0.5, 0.0, 0.5) for r in REDUCTIONS
])  # fmt: skip
def _cosine_embedding(x: Any, y: Any, target: Any, margin: float = 0.0, reduction: str = "mean") -> Any:
    cosine = _cosine_similarity(x, y, -1)
    return _reduced(
        every(target.shape, lambda i: 1 - cosine[i] if target[i] > 0 else max(0.0, cosine[i] - margin)), reduction
    )


@oracle("triplet_margin_loss", dtype=meet, tolerance=8.0, more=[
    sample((3, 4), (3, 4), (3, 4), margin=m, p=p, swap=s, reduction=r)
    for m in (0.5, 4.0) for p in (1.0, 2.0, 3.0) for s in (False, True) for r in REDUCTIONS
])  # fmt: skip
def _triplet(
    anchor: Any, positive: Any, negative: Any, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6,
    swap: bool = False, reduction: str = "mean",
) -> Any:  # fmt: skip
    def distance(a: Any, b: Any) -> float:
        return math.fsum(abs(v - w + eps) ** p for v, w in zip(a.tolist(), b.tolist(), strict=True)) ** (1 / p)

    def one(i: tuple[int, ...]) -> float:
        far = distance(anchor[i], negative[i])
        far = min(far, distance(positive[i], negative[i])) if swap else far
        return max(0.0, margin + distance(anchor[i], positive[i]) - far)

    return _reduced(every(anchor.shape[:-1], one), reduction)
