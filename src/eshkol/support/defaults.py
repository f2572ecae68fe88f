"""What floats are kept in that are given no dtype: float32 in Python, float64 in Scheme, until someone chooses.

Comes in: which language a thread computes for (a session says that its thread is Scheme's), and what users choose.
Goes out: the name of the default. It stands under everything, as a name: sessions know no tensors, data sets need none,
and `ops/dtypes.py` makes a dtype of it. Python code that Scheme calls runs on Scheme's thread, and computes as Scheme
does.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PYTHON, SCHEME = "Python", "Scheme"

FLOATS = {PYTHON: "float32", SCHEME: "float64"}
"""For each language; the one place that says so."""


class _Here(threading.local):
    language: str = PYTHON
    floats: str | None = None  # what holds for a while, on this thread alone


Here = _Here()
"""Of this thread."""


def floats() -> str:
    """The name of the dtype that floats without one are kept in, on this thread."""
    return Here.floats or FLOATS[Here.language]


def set_floats(name: str) -> None:
    """Let it be another from now on: in all of the language, or until the `floats_as` ends that this stands in."""
    if Here.floats is not None:
        Here.floats = name
    else:
        FLOATS[Here.language] = name


def exchange_floats(name: str | None) -> str | None:
    """Let it be another on this thread, None for that of the language; what was there before."""
    before, Here.floats = Here.floats, name
    return before


@contextmanager
def floats_as(name: str) -> Iterator[None]:
    """Within it, it is another on this thread."""
    before = exchange_floats(name)
    try:
        yield
    finally:
        exchange_floats(before)
