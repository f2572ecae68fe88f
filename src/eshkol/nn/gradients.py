"""Clipping, norms of all gradients together, and penalties: pure over structures, and in place on `grad`."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from eshkol.errors import NotANumberError, TensorError
from eshkol.tensors import api as ek
from eshkol.tensors.holding import put
from eshkol.tensors.jit import jit
from eshkol.tensors.pytree import leaves, tree_map
from eshkol.tensors.value import Tensor

SMALL = 1e-6  # beside a norm that is divided by, as PyTorch has it


def _wide(value: Any) -> Any:
    """A tensor whose squares may be summed: of 16 bits in float32; complex as its absolute value."""
    if value.dtype.is_complex:
        return ek.abs(value)
    return ek.cast(value, ek.float32) if value.dtype.size < 4 else value


def global_norm(grads: Any, norm_type: float = 2.0) -> Any:
    """The norm of all tensors of a structure, as if they were one vector; `math.inf`: the greatest size."""
    given = [_wide(ek.asarray(g)) for g in leaves(grads)]
    if not given:
        return ek.asarray(0.0)
    if not norm_type > 0:
        raise TensorError(f"a norm's type is a number above 0, not {norm_type}", span=ek.here())
    if norm_type == math.inf:
        total = ek.abs(given[0]).max()
        for g in given[1:]:
            total = ek.maximum(total, ek.abs(g).max())
        return total
    total = sum((g * g).sum() if norm_type == 2 else (ek.abs(g) ** norm_type).sum() for g in given)
    return ek.sqrt(total) if norm_type == 2 else total ** (1 / norm_type)


def clipped(grads: Any, max_norm: Any, norm_type: float = 2.0) -> Any:
    """The gradients, shortened together where their norm is greater than `max_norm`."""
    return _shortened(grads, max_norm, norm_type)[0]


def _shortened(grads: Any, max_norm: Any, norm_type: float) -> tuple[Any, Any]:
    norm = global_norm(grads, norm_type)
    factor = ek.minimum(max_norm / (norm + SMALL), 1.0)
    return tree_map(lambda g: g * ek.cast(factor, _real(g)), grads), norm


def _real(g: Any) -> Any:
    if g.dtype.is_complex:
        return ek.float32 if g.dtype is ek.complex64 else ek.float64
    return g.dtype


def clipped_by_value(grads: Any, clip_value: Any) -> Any:
    """The gradients, each element put between -clip_value and clip_value."""
    return tree_map(lambda g: ek.maximum(ek.minimum(g, clip_value), -clip_value), grads)


_shorten: dict[float, Any] = {}  # by the type of the norm
_limit = jit(clipped_by_value, floats=True)


def _gradients(parameters: Any, who: str) -> list[Tensor]:
    given = [parameters] if isinstance(parameters, Tensor) else parameters
    if not isinstance(given, Iterable):
        raise TensorError(f"{who} takes parameters, and was given {type(parameters).__name__}", span=ek.here())
    return [p.grad for p in given if p.grad is not None]


def clip_grad_norm_(parameters: Any, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False) -> Any:
    """Shorten the gradients of parameters together, in place, to a norm of at most `max_norm`; gives the norm before.

    With `error_if_nonfinite` a norm that is NaN or infinite is an error, and the gradients stay as they are.
    """
    if not max_norm >= 0:
        raise TensorError(f"clip_grad_norm_: max_norm is at least 0, not {max_norm}", span=ek.here())
    grads = _gradients(parameters, "clip_grad_norm_")
    if not grads:
        return ek.asarray(0.0)
    run = _shorten.get(norm_type)
    if run is None:
        run = _shorten[norm_type] = jit(lambda given, most: _shortened(given, most, norm_type), floats=True)
    values, norm = run([g.detach() for g in grads], float(max_norm))
    if error_if_nonfinite and not math.isfinite(norm.item()):
        raise NotANumberError(
            f"the norm of the gradients is {norm.item()}, so they cannot be clipped", span=ek.here(),
            hint="find where NaN or infinity comes from with ek.set_check_nan(True), or lower the learning rate",
        )  # fmt: skip
    for gradient, value in zip(grads, values, strict=True):
        put(gradient, value)
    return norm


def clip_grad_value_(parameters: Any, clip_value: float) -> None:
    """Put each element of the gradients of parameters between -clip_value and clip_value, in place."""
    if not clip_value >= 0:
        raise TensorError(f"clip_grad_value_: clip_value is at least 0, not {clip_value}", span=ek.here())
    grads = _gradients(parameters, "clip_grad_value_")
    if grads:
        for gradient, value in zip(grads, _limit([g.detach() for g in grads], float(clip_value)), strict=True):
            put(gradient, value)


def _tensors(params: Any) -> list[Any]:
    return leaves(params) if isinstance(params, list | tuple | dict | Tensor) else list(params)


def l1_penalty(params: Any, weight: Any) -> Any:
    """`weight` times the sum of the sizes of all parameters: to be added to a loss."""
    return weight * sum(ek.abs(p).sum() for p in _tensors(params))


def l2_penalty(params: Any, weight: Any) -> Any:
    """`weight` times the sum of the squares of all parameters: to be added to a loss."""
    return weight * sum((ek.abs(p) ** 2 if p.dtype.is_complex else p * p).sum() for p in _tensors(params))
