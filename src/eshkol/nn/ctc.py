"""Connectionist temporal classification: how likely a sequence of scores says a shorter sequence of labels.

Comes in: log-probabilities for each step, labels, and how long both are. Goes out: -log of the probability of all ways
to say the labels, with blanks between them and each for as many steps as one likes. The recursion over the steps is a
`scan`, so it is compiled as one loop, and differentiated like one.
"""

from __future__ import annotations

from typing import Any

from eshkol.errors import ShapeError, TensorError
from eshkol.tensors import api as ek

NEVER = -1e30  # the logarithm of no probability; infinities less infinities would be NaN


def ctc_loss(
    log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0, reduction: str = "mean",
    zero_infinity: bool = False,
) -> Any:  # fmt: skip
    """-log P(labels), for log-probabilities steps × batch × classes, and labels batch × length or one after another.

    The mean is of losses by the number of their labels. Labels for which there are too few steps have an infinite loss,
    or none with `zero_infinity`.
    """
    if reduction not in ("mean", "sum", "none"):
        raise TensorError(f"there is no reduction '{reduction}'", hint="reductions: mean, sum, none", span=ek.here())
    one = log_probs.ndim == 2
    scores = log_probs[:, None] if one else log_probs
    if scores.ndim != 3:
        raise ShapeError(
            f"log-probabilities are steps × batch × classes, not of shape {list(log_probs.shape)}", span=ek.here()
        )
    batch, classes = scores.shape[1:]
    if not 0 <= blank < classes:
        raise ShapeError(f"the blank {blank} is none of {classes} classes", span=ek.here())
    lengths, sizes = (ek.asarray(n).reshape(-1).to(ek.int64) for n in (input_lengths, target_lengths))
    labels = _side_by_side(ek.asarray(targets).to(ek.int64), sizes, batch)
    working = ek.float32 if scores.dtype.bits == 16 else scores.dtype  # which holds what `NEVER` is
    losses = _losses(scores.to(working), labels, lengths, sizes, blank)
    losses = ek.where(losses > -NEVER / 2, 0.0 if zero_infinity else float("inf"), losses).to(scores.dtype)
    if reduction == "none":
        return losses[0] if one else losses
    if reduction == "sum":
        return losses.sum()
    return (losses / ek.maximum(sizes, 1).to(losses.dtype)).mean()


def _side_by_side(targets: Any, sizes: Any, batch: int) -> Any:
    """The labels as batch × most; behind the last one there may be anything."""
    if sizes.shape != (batch,):
        raise ShapeError(f"{sizes.size} lengths of labels do not fit a batch of {batch}", span=ek.here())
    if targets.ndim == 2 and targets.shape[0] == batch:
        return targets
    if targets.ndim != 1:
        raise ShapeError(
            f"labels of shape {list(targets.shape)} are neither batch × length nor one after another", span=ek.here()
        )
    if batch == 1:
        return targets[None]
    starts = ek.cumsum(sizes, 0) - sizes
    places = starts[:, None] + ek.arange(int(ek.max(sizes).item()))
    return targets[ek.minimum(places, targets.shape[0] - 1)]


def _losses(scores: Any, labels: Any, lengths: Any, sizes: Any, blank: int) -> Any:
    steps, batch, _ = scores.shape
    wide = 2 * labels.shape[1] + 1
    between = ek.full(labels.shape, blank, dtype=ek.int64)
    end = ek.full((batch, 1), blank, dtype=ek.int64)
    said = ek.concatenate([ek.stack([between, labels], -1).reshape(batch, wide - 1), end], 1)
    emitted = ek.take_along_dim(scores, ek.broadcast_to(said[None], (steps, batch, wide)), 2)
    # From the label before the last one without its blank, where that is another label.
    skips = ek.concatenate(
        [ek.zeros((batch, 2), dtype=ek.bool), (said[:, 2:] != blank) & (said[:, 2:] != said[:, :-2])], 1
    )
    never = ek.full((batch, 2), NEVER, dtype=scores.dtype)
    first = ek.where(ek.arange(wide) < 2, emitted[0], NEVER)

    def step(before: Any, given: Any) -> Any:
        row, t = given
        one = ek.concatenate([never[:, :1], before[:, :-1]], 1)
        two = ek.where(skips, ek.concatenate([never, before[:, :-2]], 1), NEVER)
        most = ek.stop_gradient(ek.maximum(ek.maximum(before, one), two))
        terms = ek.exp(before - most) + ek.exp(one - most) + ek.exp(two - most)
        after = ek.maximum(most + ek.log(terms) + row, 2 * NEVER)
        return ek.where((t < lengths)[:, None], after, before), None

    last, _ = ek.scan(step, first, (emitted[1:], ek.arange(1, steps)))
    ends = ek.stack([2 * sizes, ek.maximum(2 * sizes - 1, 0)], 1)
    found = ek.take_along_dim(last, ends, 1)
    found = ek.where(ek.stack([sizes >= 0, sizes > 0], 1), found, NEVER)
    return -ek.logsumexp(found, 1)
