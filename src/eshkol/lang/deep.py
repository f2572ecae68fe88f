"""Room for recursion: the expander recurs on the nesting of a program, which may be deep.

`run_deep` calls a function where the stack is large: on a thread of its own, or here if the caller is already on such
a thread. Threads that others start with a large stack say so with `mark_deep`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from eshkol.runtime.worker import on_large_stack

T = TypeVar("T")

STACK_BYTES = 512 << 20  # of address space; only what is used takes memory
RECURSION = 400_000  # Python calls within one another; what is nested deeper is refused earlier, with a message

_here = threading.local()


def mark_deep() -> None:
    """The thread that calls this has a stack of at least `STACK_BYTES`."""
    _here.deep = True
    if sys.getrecursionlimit() < RECURSION:
        sys.setrecursionlimit(RECURSION)


def run_deep(function: Callable[..., T], *args: Any) -> T:
    """function(*args); Ctrl-C reaches it, and what it raises comes out here."""
    if getattr(_here, "deep", False):
        return function(*args)

    def work() -> T:
        mark_deep()
        return function(*args)

    return on_large_stack(work, stack_bytes=STACK_BYTES, name="eshkol-expander")
