"""Who watches the program at work: what the house tells it, where that is not told in C.

Comes in: what is done and how long it takes, from wherever it is done (passes of the compiler, copies between machines,
batches of a loader, memory of tensors). Goes out: to `watcher`, which `eshkol.profiling` sets while a profile is taken.
It is None otherwise, and then nothing is done but to look.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

COMPILE, TRANSFER, LOADER, REGION = "compile", "transfer", "loader", "region"  # kinds of spans


class Span(NamedTuple):
    """Something that took time: from when to when, in nanoseconds of the clock that only goes on."""

    kind: str
    name: str
    begin: int
    end: int
    thread: int
    size: int = 0  # bytes, where some were moved


class Watcher(Protocol):
    """What a profile is told."""

    def took(self, kind: str, name: str, begin: int, size: int = 0) -> None:
        """Something that has just ended."""

    def kept(self, sequence: Any) -> None:
        """A sequence was made, which must live until the profile is read."""

    def runs(self, machine: Any) -> None:
        """This thread is about to run the Scheme code of a machine."""

    def closes(self, machine: Any) -> None:
        """A machine of Scheme is about to be given back."""

    def calls(self, thread: int) -> AbstractContextManager[None]:
        """Python waits for what it asked of Scheme's thread."""

    def lent(self, lease: int, size: int) -> None:
        """Memory of so many bytes was lent to a tensor; given back where the size is negative."""


watcher: Watcher | None = None
_nothing: AbstractContextManager[None] = nullcontext()


class _Timed:
    """What is done within takes time that somebody wants to know."""

    __slots__ = ("begin", "kind", "name", "size", "watcher")

    def __init__(self, watcher: Watcher, kind: str, name: str, size: int) -> None:
        self.watcher, self.kind, self.name, self.size = watcher, kind, name, size

    def __enter__(self) -> None:
        self.begin = time.monotonic_ns()

    def __exit__(self, *_: object) -> None:
        self.watcher.took(self.kind, self.name, self.begin, self.size)


def timed(kind: str, name: str, size: int = 0) -> AbstractContextManager[None]:
    """Tells how long the block took, if somebody wants to know."""
    return _nothing if watcher is None else _Timed(watcher, kind, name, size)
