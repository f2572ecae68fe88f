"""What the imperative style remembers: which values depend on tensors with requires_grad, and whose they are.

A tensor that requires grad is a mark of the scope `TAPE`; `OWNERS` finds the tensor of a mark, without keeping either.
`GradMode` says whether operations are remembered now, in each thread for itself.
"""

from __future__ import annotations

import threading
import weakref
from typing import Any

from eshkol.graph.node import Node, Scope

TAPE = Scope("tape", "backward")
OWNERS: weakref.WeakKeyDictionary[Node, weakref.ref[Any]] = weakref.WeakKeyDictionary()  # mark → its tensor


class _GradMode(threading.local):
    enabled = True


GradMode = _GradMode()
