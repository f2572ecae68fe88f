"""`ek.nn.utils`: gradients clipped in place, and all parameters of a model as one vector, as PyTorch has them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eshkol.errors import ShapeError
from eshkol.nn.gradients import clip_grad_norm_, clip_grad_value_, global_norm
from eshkol.nn.utils import rnn
from eshkol.tensors import api as ek
from eshkol.tensors.holding import put
from eshkol.tensors.value import Tensor

__all__ = [
    "clip_grad_norm_", "clip_grad_value_", "get_total_norm", "parameters_to_vector", "rnn", "vector_to_parameters",
]  # fmt: skip


def get_total_norm(tensors: Any, norm_type: float = 2.0) -> Any:
    """The norm of tensors, as if they were one vector."""
    return global_norm(list(tensors), norm_type)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Any:
    """All parameters after one another, as a vector."""
    return ek.concatenate([ek.flatten(p) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Give parameters the numbers of a vector, in order."""
    held = list(parameters)
    if vec.shape != (sum(p.numel() for p in held),):
        raise ShapeError(f"{sum(p.numel() for p in held)} numbers are wanted, and the vector has {list(vec.shape)}")
    start = 0
    for number, p in enumerate(held):
        count = p.numel()
        put(p, ek.reshape(vec[start : start + count], p.shape).detach(), f"parameter {number}")
        start += count
