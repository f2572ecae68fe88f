"""When tensors are computed: now because their values are asked for, or at once because they may fail on them."""

from __future__ import annotations

from typing import Any

from eshkol.graph.node import Current
from eshkol.schedule.run import execute
from eshkol.tensors.handle import Handle


def realize(*tensors: Handle) -> None:
    """Compute tensors now, together."""
    for tensor in tensors:
        unknown = next((s for s in tensor._node.scopes if s.open and s.kind == "trace"), None)
        if unknown is not None:
            tensor._leave("computing it")
    execute.compute([t._node for t in tensors])
    for tensor in tensors:
        tensor._settled()


def compute_now(result: Any) -> None:
    """Compute what may fail on its values, so that the error is of the statement that asked for it."""
    Current.urgent = False
    made = result if isinstance(result, tuple | list) else (result,)
    nodes = [node for x in made if (node := getattr(x, "_node", None)) is not None]
    if not any(s.open and s.kind == "trace" for node in nodes for s in node.scopes):
        execute.compute(nodes)
