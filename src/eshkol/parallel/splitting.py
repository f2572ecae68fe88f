"""A batch cut along its first axis, and what was computed of the parts put together again.

Comes in: structures of tensors and arrays that have a row for each example; a loss. Goes out: parts, how much each
counts in the loss of the whole, and results of all rows. Sums are taken in the order of the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any

import numpy as np

from eshkol.errors import ShapeError, TensorError
from eshkol.nn.losses import Loss
from eshkol.support.whole import is_whole
from eshkol.tensors import api as ek
from eshkol.tensors.value import Tensor

IGNORED = -100  # the target that cross entropy leaves out where no one says which
REDUCTIONS = ("mean", "sum")

Weigh = Callable[[Any, Any], float]


@dataclass(frozen=True)
class Weighing:
    """How the loss of a batch follows from those of its parts: a mean, in which parts count by their weights, or a sum.

    Without a function that says it, a part weighs as many examples as it has; those whose class `ignore_index` leaves
    out of a mean are not counted.
    """

    reduction: str | None = None
    weigh: Weigh | None = None

    def __post_init__(self) -> None:
        if self.reduction is not None and self.reduction not in REDUCTIONS:
            raise TensorError(
                f"the losses of parts make a {' or a '.join(REDUCTIONS)}, not {self.reduction!r}", span=ek.here()
            )

    def fractions(self, loss: Any, parts: Sequence[tuple[Any, Any]], sizes: Sequence[int]) -> list[float]:
        """How much the loss of each part counts."""
        if (self.reduction or getattr(loss, "reduction", "mean")) == "sum":
            return [1.0] * len(parts)
        if len(parts) == 1:
            return [1.0]
        if self.weigh is not None:
            weights = [float(self.weigh(inputs, targets)) for inputs, targets in parts]
        else:
            weights = [_counted(loss, targets, size) for (_, targets), size in zip(parts, sizes, strict=True)]
        whole = sum(weights)
        if not (min(weights) > 0 and whole < float("inf")):
            raise TensorError(
                f"parts of a batch that weigh {weights} make no mean", span=ek.here(),
                hint="each part needs an example that counts: take larger batches, or fewer machines",
            )  # fmt: skip
        return [weight / whole for weight in weights]


def _counted(loss: Any, targets: Any, size: int) -> float:
    """How many examples a mean is of."""
    given = loss.given if isinstance(loss, Loss) else {}
    if "ignore_index" in given and getattr(loss, "weight", None) is not None:
        raise TensorError(
            f"{type(loss).__name__} weighs classes, so its mean over a batch does not follow from how many examples "
            "the parts have", span=ek.here(), hint="say how much a part weighs: weigh=lambda inputs, targets: ...",
        )  # fmt: skip
    if not isinstance(targets, Tensor | np.ndarray) or not _is_integer(targets):
        return float(size)
    knows = "ignore_index" in given or loss in (ek.cross_entropy, ek.nll_loss)
    left_out = int((np.asarray(targets) == given.get("ignore_index", IGNORED)).sum())
    if left_out and not knows:
        raise TensorError(
            f"targets are {IGNORED}, which this loss may leave out of its mean: how much a part of the batch weighs is "
            "not known", span=ek.here(), hint="say it: weigh=lambda inputs, targets: (targets != -100).sum().item()",
        )  # fmt: skip
    return float(np.prod(targets.shape) - left_out)


def _is_integer(x: Any) -> bool:
    return bool(x.dtype.is_integer) if isinstance(x, Tensor) else x.dtype.kind in "iu"


def has_rows(x: Any) -> bool:
    """Whether something has a row for each example."""
    return isinstance(x, Tensor | np.ndarray) and len(x.shape) > 0


def count_rows(batch: Any, who: str) -> int:
    """How many examples a batch has: the length of the first axis, which all its arrays share."""
    lengths = {int(x.shape[0]) for x in ek.tree_leaves(batch) if has_rows(x)}
    if len(lengths) != 1:
        shapes = ", ".join(str(list(x.shape)) for x in ek.tree_leaves(batch) if has_rows(x))
        raise ShapeError(
            f"{who} splits a batch along its first axis, and this one has {f'shapes {shapes}' if shapes else 'none'}",
            span=ek.here(), hint="give all inputs and targets a row for each example",
        )  # fmt: skip
    (found,) = lengths
    if not found:
        raise ShapeError(f"{who} was given a batch of no examples", span=ek.here())
    return found


def sizes_of(rows: int, shares: Sequence[float]) -> list[int]:
    """How many rows each part has, by its share; rows that do not divide go to those that are owed most."""
    whole = sum(shares)
    exact = [rows * share / whole for share in shares]
    found = [int(x) for x in exact]
    owed = sorted(range(len(exact)), key=lambda k: (found[k] - exact[k], k))
    for k in owed[: rows - sum(found)]:
        found[k] += 1
    return found


def checked_shares(shares: Sequence[float] | None, count: int, who: str) -> tuple[float, ...]:
    """A share for each of so many machines: all alike, where none are given."""
    if shares is None:
        return (1.0,) * count
    sound = [s for s in shares if isinstance(s, int | float) and 0 < s < float("inf")]
    if len(sound) != count or len(shares) != count:
        raise TensorError(f"{who}: shares are {count} numbers above 0, not {list(shares)}", span=ek.here())
    return tuple(map(float, sound))


def checked_count(count: Any, who: str) -> int:
    """A number of microbatches."""
    if not is_whole(count, 1):
        raise TensorError(f"{who}: microbatches is a number, 1 or more, not {count!r}", span=ek.here())
    return int(count)


def cut(batch: Any, sizes: Sequence[int]) -> list[Any]:
    """The parts of a batch; what has no rows is given to each."""
    ends = np.cumsum([0, *sizes]).tolist()
    return [ek.tree_map(lambda x, a=a, b=b: x[a:b] if has_rows(x) else x, batch) for a, b in pairwise(ends)]


def summed(values: Sequence[Any]) -> Any:
    """Their sum, from the first to the last."""
    return reduce(add, values)


def joined(results: Sequence[Any], sizes: Sequence[int], who: str) -> Any:
    """The results of parts as those of the whole: rows one after another; numbers without axes as their mean."""
    if len(results) == 1:
        return results[0]
    trees = [ek.tree_leaves(result) for result in results]
    whole = sum(sizes)

    def together(*found: Any) -> Any:
        if not all(isinstance(x, Tensor) for x in found):
            return found[0]
        if all(x.shape[:1] == (size,) for x, size in zip(found, sizes, strict=True)):
            return ek.concatenate(list(found))
        if all(x.shape == () and x.dtype.differentiable for x in found):
            return summed([x * (size / whole) for x, size in zip(found, sizes, strict=True)])
        raise ShapeError(
            f"{who}: parts of {list(sizes)} rows gave results of shapes {', '.join(str(list(x.shape)) for x in found)}",
            span=ek.here(), hint="a model that is split over machines gives a row for each example",
        )  # fmt: skip

    if len({len(tree) for tree in trees}) > 1:
        raise TensorError(f"{who}: the results of parts are put together in different ways", span=ek.here())
    return ek.tree_map(together, results[0], *results[1:])


def averaged(values: Sequence[Sequence[Any]], sizes: Sequence[int]) -> list[Any]:
    """Buffers of the parts as those of the whole: floats as their mean by rows, others as the first part has them."""
    if len(values) == 1:
        return list(values[0])
    whole = sum(sizes)
    return [
        summed([ek.cast(x * (size / whole), x.dtype) for x, size in zip(found, sizes, strict=True)])
        if found[0].dtype.differentiable
        else found[0]
        for found in zip(*values, strict=True)
    ]
