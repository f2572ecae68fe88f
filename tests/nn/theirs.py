"""A case as PyTorch computes it, with its own initial parameters; for those who have it."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases import Case, as_dtype, drawn


def computed(case: Case, dtype: str = "float64") -> tuple[dict[str, Any], list[Any], Any, dict[str, Any]]:
    """The state, the inputs, the cotangent of the result, and by name what `ours.computed` gives."""
    import torch

    kind = getattr(torch, dtype)
    rng = np.random.default_rng(1 + sum(case.name.encode()))
    torch.manual_seed(sum(case.name.encode()))
    given = {k: torch.tensor(v, dtype=kind) if isinstance(v, np.ndarray) else v for k, v in case.given.items()}
    layer = getattr(torch.nn, case.kind)(*case.args, **given).to(kind).train(case.training)
    for name, tensor in (*layer.named_parameters(), *layer.named_buffers()):
        if tensor.dtype.is_floating_point and case.kind not in ("CrossEntropyLoss", "NLLLoss", "BCELoss"):
            low = 0.5 if "var" in name or "pos_weight" in name else -1.0
            values = torch.tensor(rng.uniform(low, 1.0, tuple(tensor.shape)), dtype=kind)
            tensor.data.copy_(values)
    if getattr(layer, "padding_idx", None) is not None:
        layer.weight.data[layer.padding_idx] = 0
    state = {name: value.detach().numpy().copy() for name, value in layer.state_dict().items()}
    inputs = drawn(case)
    tensors = [torch.tensor(as_dtype(x, dtype)) for x in inputs]
    for x in tensors:
        if x.dtype.is_floating_point:
            x.requires_grad_()
    for _ in range(case.calls):
        result = layer(*tensors)
    cotangent = rng.uniform(-1.0, 1.0, tuple(result.shape))
    found = {"result": result.detach().numpy()}
    if result.requires_grad:
        result.backward(torch.tensor(as_dtype(cotangent, dtype)))
        found |= {f"input.{k}": x.grad.numpy() for k, x in enumerate(tensors) if x.grad is not None}
        found |= {f"grad.{name}": p.grad.numpy() for name, p in layer.named_parameters() if p.grad is not None}
    found |= {f"buffer.{name}": b.numpy() for name, b in layer.named_buffers()}
    return state, inputs, cotangent, found
