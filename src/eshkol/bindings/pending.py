"""Tensors of Scheme that wait to be computed, so that a clock can have them computed first.

Comes in: what operations give, as they give it. Goes out: whoever reads the time between two statements measures what
they compute, and not what they leave for later. Only the last tensors are remembered, and weakly: a clock computes what
a program has just asked for, and nothing that it has let go of. This module imports no tensors: a program that reads
the time and has none does not wait for them.
"""

from __future__ import annotations

from collections import deque
from typing import Any
from weakref import ref

REMEMBERED = 64  # results of operations

_last: deque[ref[Any]] = deque(maxlen=REMEMBERED)


def noted(result: Any) -> Any:
    """The result of an operation, remembered while it waits."""
    node = getattr(result, "_node", None)
    if node is not None and node.data is None:
        _last.append(ref(result))
    return result


def settle() -> None:
    """Compute what waits, as far as it is known; errors are those of the statements that made it."""
    if not _last:
        return
    waiting = [tensor for found in _last if (tensor := found()) is not None and tensor._node.data is None]
    _last.clear()
    if waiting:
        from eshkol.tensors.computing import realize

        realize(*(tensor for tensor in waiting if not _is_of_a_trace(tensor._node)))


def _is_of_a_trace(node: Any) -> bool:
    """Whether a value is, or was, one of a transformation at work: no one knows it."""
    return any(scope.open or scope.kind == "trace" for scope in node.scopes)
