"""`ek.parallel_map`: the parallel map of the language for Python, over the same threads.

Comes in: a function and iterables. Goes out: the list of what it gives. A procedure of Scheme is called by several
threads at once; a function of Python's by one after the other, as Python has it on Scheme's thread alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from eshkol.bindings.evaluate import evaluate


@cache
def _procedure() -> Any:
    return evaluate("(eval 'parallel-map (environment '(eshkol parallel)))")


def parallel_map(function: Callable[..., Any], iterable: Iterable[Any], *more: Iterable[Any]) -> list[Any]:
    """The list of what the function gives for each element, or for one element of each, up to the end of the shortest.

    Procedures of Scheme (`ek.eval`, `import` of a .esk file) run on all processors at once; the first exception ends
    the others, and is raised. Functions of Python's run one after the other.
    """
    __tracebackhide__ = True
    found: list[Any] = _procedure()(function, *map(list, (iterable, *more)))
    return found
