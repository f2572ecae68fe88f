"""Long chains of operations are computed in pieces, so that what waits to be computed takes a bounded amount of memory.

Comes in: each node that an operation of the user's gives, if a long way leads to it. What a transformation at work
needs to know the history of is left alone: it would be kept anyway, and its values would be computed twice.
"""

from __future__ import annotations

import threading

from eshkol.graph.node import Node, Site
from eshkol.runtime import front
from eshkol.schedule.run import execute

LONGEST = front.LONGEST


class _Last(threading.local):
    """Where a thread's chain was cut last."""

    site: Site | None = None


_last = _Last()


def shorten(node: Node) -> None:
    """Compute a node to which more than `LONGEST` operations lead.

    Chains are rather cut at the line where one was cut before, so that the rounds of a loop make pieces of the same
    structure, which are compiled once.
    """
    if node.data is not None or any(s.open or s.kept for s in node.scopes):
        return
    if node.site == _last.site or node.depth > 2 * LONGEST:
        _last.site = node.site
        execute.compute([node])
