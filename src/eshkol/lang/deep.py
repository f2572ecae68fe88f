"""Room for recursion: the expander recurs on the nesting of a program, which may be deep.

`run_deep` calls a function where the stack is large: on a thread of its own, or here if the caller is already on such
a thread. Threads that others start with a large stack say so with `mark_deep`.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")

STACK_BYTES = 512 << 20  # of address space; only what is used takes memory
RECURSION = 400_000  # Python calls within one another; what is nested deeper is refused earlier, with a message

_here = threading.local()
_starting = threading.Lock()


def mark_deep() -> None:
    """The thread that calls this has a stack of at least `STACK_BYTES`."""
    _here.deep = True
    if sys.getrecursionlimit() < RECURSION:
        sys.setrecursionlimit(RECURSION)


def run_deep(function: Callable[..., T], *args: Any) -> T:
    """function(*args); Ctrl-C reaches it, and what it raises comes out here."""
    if getattr(_here, "deep", False):
        return function(*args)
    answer: list[T] = []
    failure: list[BaseException] = []

    def work() -> None:
        mark_deep()
        try:
            answer.append(function(*args))
        except BaseException as error:
            failure.append(error)

    with _starting:
        before = threading.stack_size(STACK_BYTES)
        try:
            thread = threading.Thread(target=work, name="eshkol-expander", daemon=True)
            thread.start()
        finally:
            threading.stack_size(before)
    while True:
        try:
            thread.join()
            break
        except KeyboardInterrupt:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(KeyboardInterrupt)
            )
    if failure:
        raise failure[0]
    return answer[0]
