"""What the imperative style remembers: which values depend on tensors with requires_grad, and whose they are.

A tensor that requires grad is a mark of the scope `TAPE`; `OWNERS` finds the tensor of a mark, without keeping either.
`GradMode` says whether operations are remembered now, in each thread for itself; `Waiting` holds state that changed in
passing (running statistics), which `backward` computes together with the rest. `detached` leaves all of that behind.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from eshkol.graph.node import Node, Scope, buffer, make
from eshkol.ops.structural import STOP
from eshkol.runtime import front

TAPE = Scope("tape", "backward")
OWNERS: weakref.WeakKeyDictionary[Node, weakref.ref[Any]] = weakref.WeakKeyDictionary()  # mark → its tensor


GradMode = front.at_work
"""Whether operations are remembered now (`enabled`)."""


class _Waiting(threading.local):
    """Tensors that were given a value that no one has asked for yet."""

    def __init__(self) -> None:
        self._tensors: dict[int, weakref.ref[Any]] = {}  # by identity: == of tensors gives a tensor

    def __contains__(self, tensor: Any) -> bool:
        found = self._tensors.get(id(tensor))
        return found is not None and found() is tensor

    def add(self, tensor: Any) -> None:
        self._tensors[id(tensor)] = weakref.ref(tensor)

    def taken(self) -> list[Any]:
        """Those that can be computed; from now on they do not wait."""
        living = [t for reference in self._tensors.values() if (t := reference()) is not None]
        self._tensors.clear()
        return [t for t in living if t._node.data is None and not any(s.open for s in t._node.scopes)]


Waiting = _Waiting()


def detached(node: Node) -> Node:
    """The node without derivatives; itself if it has none. What is computed leaves its history behind."""
    if all(s.kind == "trace" for s in node.scopes):
        return node
    return make(STOP, (node,), None) if node.data is None else buffer(node.data, node.dtype, loose=node.device is None)
