"""A case as this library computes it: the result, and the gradients of inputs and parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case, as_dtype

import eshkol as ek
from eshkol import nn


def made(case: Case, dtype: str, state: dict[str, Any]) -> Any:
    """The layer, with parameters and buffers as given."""
    given = {k: ek.tensor(as_dtype(v, dtype)) if isinstance(v, np.ndarray) else v for k, v in case.given.items()}
    layer = getattr(nn, case.kind)(*case.args, **given)
    layer.to(dtype)
    layer.load_state_dict({name: as_dtype(value, dtype) for name, value in state.items()})
    return layer.train(case.training)


def computed(case: Case, dtype: str, state: dict[str, Any], inputs: list[Any], cotangent: Any = None) -> dict[str, Any]:
    """By name: result, grad of each input (`input.0`) and parameter (`grad.weight`), and buffers afterwards."""
    layer = made(case, dtype, state)
    given = [ek.tensor(as_dtype(x, dtype)) for x in inputs]
    for x in given:
        if x.dtype.is_float:
            x.requires_grad_()
    for _ in range(case.calls):
        result = layer(*given)
    found: dict[str, Any] = {}
    if result.requires_grad:
        result.backward(as_dtype(np.ones(result.shape) if cotangent is None else cotangent, dtype))
        found |= {f"input.{k}": x.grad.numpy() for k, x in enumerate(given) if x.grad is not None}
        found |= {f"grad.{name}": p.grad.numpy() for name, p in layer.named_parameters() if p.grad is not None}
    found["result"] = result.detach().numpy()  # computed with the gradients
    return found | {f"buffer.{name}": b.numpy() for name, b in layer.named_buffers()}
