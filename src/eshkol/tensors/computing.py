"""When tensors are computed: now because their values are asked for, or at once because they may fail on them; and
when they are not."""

from __future__ import annotations

from typing import Any

import numpy as np

from eshkol.errors import TraceError
from eshkol.graph.node import Current, here, on_host, settle
from eshkol.schedule.run import execute
from eshkol.tensors.handle import Handle


def realize(*tensors: Handle) -> None:
    """Compute tensors now, together."""
    for tensor in tensors:
        if tensor._node.scopes and any(s.open and s.kind == "trace" for s in tensor._node.scopes):
            tensor._leave("computing it")
    execute.compute([t._node for t in tensors])
    for tensor in tensors:
        tensor._settled()


def array_of(tensor: Handle) -> Any:
    """The computed array of a tensor, which is computed now if need be. It is ours: nothing may write to it."""
    node = tensor._node
    if node.data is None:
        if node.scopes:
            realize(tensor)
        else:
            execute.compute([node])
    if node.inputs:
        settle(node)
    data = node.data
    return data if type(data) is np.ndarray else on_host(data)


def leave(tensor: Handle, how: str) -> None:
    """Refuse to give out a number that is not known yet, or would silently lose its derivative."""
    for scope in tensor._node.scopes:
        if scope.open and scope.kind == "trace":
            raise TraceError(
                f"{how} needs a value that is not known inside {scope.name}: {tensor.dtype}{list(tensor.shape)}",
                span=here(), hint="compute with tensor operations; branch with ek.where or ek.cond",
            )  # fmt: skip
        if scope.open and scope.kind == "grad" and tensor.dtype.differentiable:
            raise TraceError(
                f"{how} inside {scope.name} would lose the derivative of a {tensor.dtype}{list(tensor.shape)}",
                span=here(),
                hint="compute with tensor operations, or say ek.stop_gradient(x) first if it is to be constant",
            )  # fmt: skip


def compute_now(result: Any) -> None:
    """Compute what may fail on its values, so that the error is of the statement that asked for it."""
    Current.urgent = False
    made = result if isinstance(result, tuple | list) else (result,)
    nodes = [node for x in made if (node := getattr(x, "_node", None)) is not None]
    if not any(s.open and s.kind == "trace" for node in nodes for s in node.scopes):
        execute.compute(nodes)
