"""What floats are kept in that are given no dtype: float32 in Python, float64 in Scheme, until someone chooses.

Comes in: what a thread computes for (a session says that its thread is its own), and what users choose. Goes out: the
name of the default. It stands under everything, as a name: sessions know no tensors, data sets need none, and
`ops/dtypes.py` makes a dtype of it. Python has one choice for all of a process, and each session of Scheme its own.
Python code that Scheme calls runs on Scheme's thread, and computes as Scheme does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Defaults:
    """What holds in a language: in Python, or in one session of Scheme."""

    def __init__(self, floats: str) -> None:
        self.floats = floats
        self.line: Callable[[], tuple[str, int] | None] | None = None  # where its program is, while it waits for Python


def of_scheme() -> Defaults:
    """Of a session that begins."""
    return Defaults("float64")


PYTHON = Defaults("float32")
BARE = of_scheme()
"""Of sessions without a thread of their own."""


class _Here(threading.local):
    defaults: Defaults = PYTHON
    floats: str | None = None  # what holds for a while, on this thread alone
    asked = False  # whether anybody wanted to know, since someone else set it to False


Here = _Here()
"""Of this thread."""


class Changes:
    """Who is to be told that floats without a dtype may be kept in another from now on, in some thread."""

    tell: Callable[[], None] = staticmethod(lambda: None)  # set by what remembers it


def computes_for(defaults: Defaults) -> None:
    """Let this thread compute for a language, or a session of it."""
    Here.defaults = defaults
    Changes.tell()


def unasked() -> None:
    """Forget that anybody wanted to know."""
    Here.asked = False
    Changes.tell()  # who remembers it has to ask again


def is_scheme() -> bool:
    """Whether this thread computes for Scheme."""
    return Here.defaults is not PYTHON


def line() -> tuple[str, int] | None:
    """File and line of the program of Scheme that this thread computes for, as far as they are known."""
    return Here.defaults.line() if Here.defaults.line is not None else None


def floats() -> str:
    """The name of the dtype that floats without one are kept in, on this thread."""
    Here.asked = True
    return Here.floats or Here.defaults.floats


def set_floats(name: str) -> None:
    """Let it be another from now on: in the language, or until the `floats_as` ends that this stands in."""
    if Here.floats is not None:
        Here.floats = name
    else:
        Here.defaults.floats = name
    Changes.tell()


def exchange_floats(name: str | None) -> str | None:
    """Let it be another on this thread, None for that of the language; what was there before."""
    before, Here.floats = Here.floats, name
    Changes.tell()
    return before


@contextmanager
def floats_as(name: str) -> Iterator[None]:
    """Within it, it is another on this thread."""
    before = exchange_floats(name)
    try:
        yield
    finally:
        exchange_floats(before)
