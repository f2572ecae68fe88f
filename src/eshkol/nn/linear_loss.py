"""The cross entropy of a linear layer's outputs, whose logits are never all there: for large vocabularies.

Comes in: hidden states, the weight of the layer that gives logits, and classes. Goes out: the loss, as
`cross_entropy(linear(input, weight, bias), target)` gives it. Rows are taken in chunks, one after another. Where the
loss is one number, gradients are computed along with it, while a chunk's logits are there, so that these are computed
once; where it is a number for each row, a chunk's logits are computed again when the gradients are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.tensors import api as ek
from eshkol.tensors.custom import custom_vjp

LOGITS = 1 << 26  # elements of a chunk's logits: enough rows for products at full speed
REDUCTIONS = ("mean", "sum", "none")


def linear_cross_entropy(
    input: Any, linear_weight: Any, target: Any, *, linear_bias: Any = None, weight: Any = None,
    reduction: str = "mean", ignore_index: int | None = -100, label_smoothing: float = 0.0,
) -> Any:  # fmt: skip
    """The cross entropy of input @ linear_weight.T + linear_bias with classes, without keeping all of these logits.

    input is [..., features], linear_weight [classes, features], target [...] of integers. The other arguments are those
    of `cross_entropy`. Memory for logits is that of a chunk of rows, however many rows there are.
    """
    _check(input, linear_weight, target, linear_bias, reduction)
    classes, features = linear_weight.shape
    rows = target.size
    x, y = input.reshape(rows, features), target.reshape(rows)
    given = [x, linear_weight, *(t for t in (linear_bias, weight) if t is not None)]

    def loss(reduction: str, x: Any, matrix: Any, *others: Any, y: Any) -> Any:
        bias = others[0] if linear_bias is not None else None
        scales = others[-1] if weight is not None else None
        logits = ek.linear(x, matrix, bias)
        wide = ek.cast(logits, "float32") if logits.dtype.bits == 16 else logits
        return ek.cross_entropy(wide, y, scales, ignore_index, reduction, label_smoothing)

    at_once = max(1, LOGITS // classes)
    pieces = [slice(k, min(k + at_once, rows)) for k in range(0, rows, at_once)]
    dtype = ek.promote_types(input.dtype, linear_weight.dtype)
    if len(pieces) <= 1:
        return ek.cast(loss(reduction, *given, y=y), dtype)
    if reduction == "none":
        return ek.cast(_of_rows(lambda *t, y: loss("none", *t, y=y), given, y, pieces).reshape(target.shape), dtype)
    if weight is None:
        total = _at_once(lambda *t, y: loss("sum", *t, y=y), given, y, pieces)
    else:  # with respect to which there are derivatives, too
        total = _of_rows(lambda *t, y: loss("none", *t, y=y), given, y, pieces).sum()
    if reduction == "mean":
        counted = ek.ones_like(y, dtype="bool") if ignore_index is None else y != ignore_index
        shares = ek.cast(counted, total.dtype)
        if weight is not None:
            shares = shares * ek.cast(ek.take(weight, ek.where(counted, y, 0)), total.dtype)
        total = total / shares.sum()
    return ek.cast(total, dtype)


def _check(x: Any, matrix: Any, target: Any, bias: Any, reduction: str) -> None:
    if matrix.ndim != 2 or x.ndim < 1 or x.shape[-1] != matrix.shape[1]:
        raise ShapeError(
            f"linear_cross_entropy takes [..., features] and [classes, features], not {list(x.shape)} and "
            f"{list(matrix.shape)}", span=ek.here(),
        )  # fmt: skip
    if target.dtype.is_float:
        raise DTypeError(
            "the targets of linear_cross_entropy are classes", span=ek.here(),
            hint="probabilities are as large as the logits: use cross_entropy(linear(x, weight), target)",
        )  # fmt: skip
    if target.shape != x.shape[:-1]:
        raise ShapeError(f"inputs {list(x.shape)} have a class for each row, not {list(target.shape)}", span=ek.here())
    if bias is not None and bias.shape != matrix.shape[:1]:
        raise ShapeError(f"{matrix.shape[0]} classes have a bias each, not {list(bias.shape)}", span=ek.here())
    if reduction not in REDUCTIONS:
        raise TensorError(
            f"there is no reduction '{reduction}'", hint="reductions: " + ", ".join(REDUCTIONS), span=ek.here()
        )


def _at_once(loss: Callable[..., Any], given: Sequence[Any], y: Any, pieces: Sequence[slice]) -> Any:
    """A sum of losses over pieces of the rows, whose derivatives are computed with it where they are wanted."""

    def value(x: Any, *others: Any) -> Any:
        total = loss(x[pieces[0]], *others, y=y[pieces[0]])
        for piece in pieces[1:]:
            total = total + loss(x[piece], *others, y=y[piece])
        return total

    def forward(x: Any, *others: Any) -> Any:
        both = ek.value_and_grad(loss, tuple(range(1 + len(others))))
        total: Any = None
        slopes: list[Any] = []
        sums: list[Any] = []
        for piece in pieces:
            found, (slope, *more) = both(x[piece], *others, y=y[piece])
            total = found if total is None else total + found
            slopes.append(slope)
            sums = _added(sums, more)
        return total, (ek.concatenate(slopes), *sums)

    def backward(residuals: Any, slope: Any) -> Any:
        return tuple(ek.cast(slope * r, t.dtype) for r, t in zip(residuals, given, strict=True))

    found = custom_vjp(value)
    found.defvjp(forward, backward)
    return found(*given)


def _added(sums: Sequence[Any], more: Sequence[Any]) -> list[Any]:
    """Gradients of another piece added to those so far, in float32 at least."""
    wide = [ek.cast(g, "float32") if g.dtype.bits == 16 else g for g in more]
    return [one + other for one, other in zip(sums, wide, strict=True)] if sums else wide


def _of_rows(loss: Callable[..., Any], given: Sequence[Any], y: Any, pieces: Sequence[slice]) -> Any:
    """Losses of all rows, piece by piece; what they are computed of is kept, and nothing else."""

    def value(x: Any, *others: Any) -> Any:
        return ek.concatenate([loss(x[piece], *others, y=y[piece]) for piece in pieces])

    def forward(*inputs: Any) -> Any:
        return value(*inputs), inputs

    def backward(residuals: Any, slope: Any) -> Any:
        x, *others = residuals
        slopes: list[Any] = []
        sums: list[Any] = []
        for piece in pieces:
            _, pull = ek.vjp(lambda *t, piece=piece: loss(*t, y=y[piece]), x[piece], *others)
            found, *more = pull(slope[piece])
            slopes.append(found)
            sums = _added(sums, more)
        return ek.concatenate(slopes), *(ek.cast(g, t.dtype) for g, t in zip(sums, others, strict=True))

    found = custom_vjp(value)
    found.defvjp(forward, backward)
    return found(*given)
