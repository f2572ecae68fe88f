"""Python's cycle collector, made to wait while much is made that stays.

Programs, graphs and core forms are many small objects of which hardly any is garbage before the work is done; the
collector would walk through all of them again and again while more of them are made.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collector() -> Iterator[None]:
    """The collector waits; also a decorator. What threads do in any order, it is on again in the end."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
