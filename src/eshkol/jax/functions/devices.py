"""Whole structures of tensors computed, fetched and put on devices, as JAX names that.

Comes in: structures. Goes out: structures of tensors or of NumPy arrays.
"""

from __future__ import annotations

from typing import Any

from eshkol.tensors import api as ek
from eshkol.tensors.pytree import leaves, tree_map


def block_until_ready(x: Any) -> Any:
    """Compute all tensors of a structure now; gives it."""
    for leaf in leaves(x):
        if isinstance(leaf, ek.Tensor):
            leaf.realize()
    return x


def device_get(x: Any) -> Any:
    """A structure with NumPy arrays for its tensors."""
    return tree_map(lambda leaf: leaf.numpy() if isinstance(leaf, ek.Tensor) else leaf, x)


def device_put(x: Any, device: str | None = None) -> Any:
    """A structure with its tensors and arrays on a device; without one, on the default device."""
    if device is None:
        return tree_map(lambda leaf: ek.asarray(leaf), x)
    return ek.device_put(x, device)


def typeof(x: Any) -> Any:
    """The shape and dtype of a tensor."""
    made = ek.asarray(x)
    return ek.ShapeDtypeStruct(made.shape, made.dtype)
