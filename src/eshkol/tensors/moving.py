"""Tensors moved from one machine to another.

Comes in: a tensor, or a structure of them, and the name of a device. Goes out: the same values in that machine's
memory, copied at once; gradients flow back to where a value came from. Within a trace (jit, vmap, loops) everything is
on one machine, so there is nothing to be moved.
"""

from __future__ import annotations

from typing import Any

from eshkol.errors import DeviceError, DTypeError
from eshkol.graph.node import here, noted, to_device
from eshkol.ops import TABLE, dtypes
from eshkol.schedule.run import execute
from eshkol.tensors import devices, pytree
from eshkol.tensors.value import Tensor, as_node, operate


@noted
def moved(x: Tensor, device: Any = None, dtype: Any = None) -> Tensor:
    """The tensor on a device, of a dtype; the first may be a dtype too, or a tensor that it is to be like."""
    if isinstance(device, Tensor):
        device, dtype = device.device, device.dtype if dtype is None else dtype
    elif device is not None and dtype is None and (not isinstance(device, str) or device in DTYPES):
        device, dtype = None, device
    if device is not None:
        x = _on(x, device)
    if dtype is None or dtypes.of(dtype) is x.dtype:
        return x
    result = operate(TABLE["cast"], (x, dtypes.of(dtype)), {})
    assert isinstance(result, Tensor)
    return result


DTYPES = frozenset(d.name for d in dtypes.ALL)
"""Names of dtypes, which a device cannot have."""


def _on(x: Tensor, device: str) -> Tensor:
    devices.open_backend(device)  # refuses one that is not there
    node = as_node(x)
    if node.device == device:
        return x
    scope = next((s for s in node.scopes if s.open and s.kind == "trace"), None)
    if scope is not None:
        if device == devices.current_name():
            return x
        raise DeviceError(
            f"a value inside {scope.name} cannot go to {device}: all of it is computed on {devices.current_name()}",
            span=here(), hint="move what it is given before the call",
        )  # fmt: skip
    there = to_device(node, device)
    execute.compute([there])
    return Tensor(there)


def device_put(tree: Any, device: str) -> Any:
    """A structure with its tensors on a device; arrays become tensors there.

    >>> params = ek.device_put(params, "discrete")
    """

    def put(x: Any) -> Any:
        if isinstance(x, Tensor):
            return moved(x, device)
        from eshkol.tensors.jit import is_input
        from eshkol.tensors.make import tensor

        return tensor(x, device=device) if is_input(x) else x

    if not isinstance(device, str):
        raise DTypeError(f"a device is named by a string, not a {type(device).__name__}", span=here())
    return pytree.tree_map(put, tree)
