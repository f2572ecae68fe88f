"""What metrics are given: predictions and targets as arrays, looked at once, with what is wrong named.

Comes in: tensors, NumPy arrays or nested lists. Goes out: `GivenInput`, which says what the predictions are (class ids,
one score per example, scores of every class, labels of which several may hold), or plain numbers for regression. Every
metric begins here; nothing later looks at shapes or dtypes again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from eshkol.errors import DTypeError, IndexOutOfRange, ShapeError, TensorError
from eshkol.tensors.make import tensor
from eshkol.tensors.value import Tensor, has_tensor

Array = np.ndarray[Any, Any]
Kind = Literal["ids", "score", "scores", "labels"]

MOST_CLASSES = 1 << 24  # where no one says how many there are: a larger id is a mistake, not a class


@dataclass(frozen=True)
class GivenInput:
    """Predictions and targets that fit together.

    `ids`: predictions [M], class ids. `score`: [M] floats, how much each example is of class 1 rather than 0. `scores`:
    [M, C], one for every class. `labels`: [N, L], floats or bools, and targets [N, L] bools; else they are ids [M].
    `width` is the number of classes or labels; 0 where it is not known. `epsilon` is that of the predictions' dtype.
    """

    kind: Kind
    predictions: Array
    targets: Array
    width: int
    epsilon: float = 0.0


@dataclass(frozen=True)
class Decided:
    """Predictions that have been made up: class ids [M] (`classes`), or bools [N, L] (`labels`)."""

    kind: Literal["classes", "labels"]
    predictions: Array
    targets: Array
    width: int


def array_of(who: str, what: str, data: Any) -> Array:
    """The numbers of a tensor, an array or nested lists."""
    array: Array
    if isinstance(data, Tensor):
        array = data.detach().numpy() if data.requires_grad else data.numpy()
    elif has_tensor(data):
        return array_of(who, what, tensor(data))
    else:
        try:
            array = np.asarray(data)
        except ValueError:
            raise ShapeError(f"{who}: {what} are rows of different lengths", hint="pad them to one length") from None
    if array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    if array.dtype.kind not in "biuf":
        raise DTypeError(
            f"{who}: {what} must be numbers, not {'Python objects' if array.dtype == object else array.dtype}",
            hint="give a tensor, a NumPy array or nested lists of real numbers",
        )
    return array


def both(who: str, predictions: Any, targets: Any) -> tuple[Array, Array]:
    """Predictions and targets as arrays of at least one axis."""
    return (
        np.atleast_1d(array_of(who, "predictions", predictions)),
        np.atleast_1d(array_of(who, "targets", targets)),
    )


def numbers(who: str, predictions: Any, targets: Any) -> tuple[Array, Array]:
    """Predictions and targets of a regression: [N, K] in float64."""
    found, wanted = both(who, predictions, targets)
    if found.shape != wanted.shape:
        raise _different(who, found, wanted, "reshape one of them: a metric does not broadcast")
    outputs = int(np.prod(found.shape[1:], dtype=np.int64))
    if not outputs:
        raise ShapeError(f"{who}: predictions and targets of shape {list(found.shape)} have no numbers")
    return (
        found.astype(np.float64, copy=False).reshape(len(found), outputs),
        wanted.astype(np.float64, copy=False).reshape(len(wanted), outputs),
    )


def given(
    who: str,
    predictions: Any,
    targets: Any,
    num_classes: int | None = None,
    ignore_index: int | None = None,
    scores: bool = False,
) -> GivenInput:
    """What predictions and targets of a classification are. With `scores`, integers are scores too, never class ids."""
    return replace(_given(who, predictions, targets, num_classes, ignore_index, scores), epsilon=_epsilon(predictions))


def _epsilon(data: Any) -> float:
    """How far apart the numbers around 1 are, in the dtype of what was given."""
    name = str(getattr(getattr(data, "dtype", None), "name", ""))
    return {"bfloat16": 2.0**-7, "float16": 2.0**-10, "float32": 2.0**-23}.get(name, 2.0**-52)


def _given(
    who: str, predictions: Any, targets: Any, num_classes: int | None, ignore_index: int | None, scores: bool
) -> GivenInput:
    if num_classes is not None and num_classes < 1:
        raise TensorError(f"{who}: num_classes is the number of classes, not {num_classes}")
    found, wanted = both(who, predictions, targets)
    if scores and found.dtype.kind != "f":
        found = found.astype(np.float64)
    if found.shape[1:] == (1,):  # the one output of a model for two classes
        found = found[:, 0]
        wanted = wanted[:, 0] if wanted.shape[1:] == (1,) else wanted
    elif wanted.shape[1:] == (1,) and found.ndim == 1:
        wanted = wanted[:, 0]
    if found.dtype.kind == "f" and np.isnan(found).any():
        place = np.argwhere(np.isnan(found))[0].tolist()
        raise TensorError(f"{who}: predictions have a NaN at {place}", hint="look for it where the model computes them")
    if found.ndim == wanted.ndim + 1:
        return _of_every_class(who, found, wanted, num_classes, ignore_index)
    if found.shape != wanted.shape:
        raise _different(
            who, found, wanted,
            "predictions are class ids or scores [N] with targets [N], scores of every class [N, C, ...] with targets "
            "[N, ...], or labels [N, L] with targets [N, L]",
        )  # fmt: skip
    if found.ndim > 1:
        return _of_labels(who, found, wanted, num_classes, ignore_index)
    found, wanted = _kept(found, wanted, ignore_index)
    if found.dtype.kind == "f" and found.size:
        if num_classes not in (None, 2):
            raise ShapeError(
                f"{who}: one score for each example tells two classes apart, and num_classes is {num_classes}",
                hint="give class ids as integers, or scores of every class, [N, C]",
            )
        ids = _ids(who, "targets", wanted)
        _check_range(who, "targets", ids, 2, "give class ids as integers, or scores of every class, [N, C]")
        return GivenInput("score", found, ids, 2)
    limit = num_classes or MOST_CLASSES
    hint = None if num_classes else "give num_classes, if there are so many"
    pair = []
    for what, array in (("predictions", found), ("targets", wanted)):
        ids = _ids(who, what, array)
        _check_range(who, what, ids, limit, hint)
        pair.append(ids)
    return GivenInput("ids", pair[0], pair[1], num_classes or 0)


def _of_every_class(
    who: str, found: Array, wanted: Array, num_classes: int | None, ignore_index: int | None
) -> GivenInput:  # the losses' convention: classes stand on axis 1
    if (found.shape[0], *found.shape[2:]) != wanted.shape:
        raise _different(who, found, wanted, "classes stand on axis 1 of the predictions: [N, C, ...] with [N, ...]")
    width = found.shape[1]
    if width < 2 or width != (num_classes or width):
        raise ShapeError(
            f"{who}: predictions of shape {list(found.shape)} have scores of {width} classes on axis 1, and there are "
            f"{num_classes or 'at least two'}"
        )
    rows = np.moveaxis(found, 1, -1).reshape(-1, width)
    rows, kept = _kept(rows, wanted.reshape(-1), ignore_index)
    ids = _ids(who, "targets", kept)
    _check_range(who, "targets", ids, width, f"predictions of shape {list(found.shape)} are scores of {width} classes")
    return GivenInput("scores", rows, ids, width)


def _of_labels(who: str, found: Array, wanted: Array, num_classes: int | None, ignore_index: int | None) -> GivenInput:
    if found.ndim > 2:
        raise ShapeError(
            f"{who}: predictions and targets of shape {list(found.shape)} are neither class ids [N] nor labels [N, L]",
            hint="flatten them: predictions.reshape(-1), targets.reshape(-1)",
        )
    if ignore_index is not None:
        raise TensorError(f"{who}: ignore_index is for class ids, and these are labels of shape {list(found.shape)}")
    if num_classes not in (None, found.shape[1]):
        raise ShapeError(f"{who}: predictions have {found.shape[1]} labels, and num_classes is {num_classes}")
    if found.dtype.kind != "f":
        found = _bools(who, "predictions", found)
    return GivenInput("labels", found, _bools(who, "targets", wanted), found.shape[1])


def decide(given: GivenInput, threshold: float) -> Decided:
    """The class of the greatest score, the first of equals; or what is above the threshold."""
    if given.kind == "labels":
        found = given.predictions if given.predictions.dtype == bool else given.predictions > threshold
        return Decided("labels", found, given.targets, given.width)
    if given.kind == "scores":
        found = given.predictions.argmax(axis=1) if len(given.predictions) else np.zeros(0, np.int64)
    elif given.kind == "score":
        found = (given.predictions > threshold).astype(np.int64)
    else:
        found = given.predictions
    return Decided("classes", found, given.targets, given.width)


def _kept(found: Array, wanted: Array, ignore_index: int | None) -> tuple[Array, Array]:
    """Those whose target is not to be ignored."""
    if ignore_index is None:
        return found, wanted
    keep = wanted != ignore_index
    return found[keep], wanted[keep]


def _ids(who: str, what: str, array: Array) -> Array:
    """Class ids in int64. Whole numbers in floats are taken too: some losses want their targets so."""
    if array.dtype.kind == "f":
        bad = ~np.isfinite(array) | (array != np.trunc(array))
        if bad.any():
            place = int(np.flatnonzero(bad)[0])
            raise DTypeError(
                f"{who}: {what} are class ids, which are whole numbers, and {array[place]} stands at [{place}]",
                hint="give integers" if what == "targets" else "give integers, or scores with targets of class ids",
            )
    if array.dtype.kind in "fu" and (array >= 2.0**63).any():
        raise IndexOutOfRange(f"{who}: class {array.max()} in {what} is out of range")
    return array.astype(np.int64, copy=False)


def _bools(who: str, what: str, array: Array) -> Array:
    bad = (array != 0) & (array != 1)
    if bad.any():
        place = np.argwhere(bad)[0]
        raise IndexOutOfRange(
            f"{who}: {what} of shape {list(array.shape)} are labels, 0 or 1, and {array[tuple(place)]} stands at "
            f"{place.tolist()}",
            hint="class ids of sequences are flattened first: predictions.reshape(-1), targets.reshape(-1)",
        )
    return array.astype(bool)


def _check_range(who: str, what: str, ids: Array, limit: int, hint: str | None) -> None:
    bad = (ids < 0) | (ids >= limit)
    if bad.any():
        place = int(np.flatnonzero(bad)[0])
        known = "begin at 0" if limit == MOST_CLASSES and ids[place] < 0 else f"are 0 to {limit - 1}"
        raise IndexOutOfRange(
            f"{who}: class {ids[place]} in {what} (at [{place}]) is out of range: classes {known}",
            hint=hint if ids[place] >= 0 else "give ignore_index, if it marks what is not to be counted",
        )


def _different(who: str, found: Array, wanted: Array, hint: str) -> ShapeError:
    return ShapeError(f"{who}: predictions have shape {list(found.shape)}, targets {list(wanted.shape)}", hint=hint)
