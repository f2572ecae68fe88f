"""The switch of translation validation, and what was validated so far.

It stands by itself so that whoever runs plans can ask it at the cost of one attribute; `validation.py` does the work.
`ESHKOL_CHECK=1` turns it on from the start.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from eshkol.runtime import front
from eshkol.support import flags


@dataclass
class Counts:
    """What was compared with the interpreter of the graph."""

    passes: int = 0  # graphs after one pass each
    kernels: int = 0
    plans: int = 0
    kept: int = 0  # plans and gradients that were found again by the structure of a graph
    draws: int = 0  # random values on which a graph was compared
    sensitive: int = 0  # differences no larger than rounding makes them
    left_out: int = 0  # graphs too large to be interpreted, or whose values the interpreter does not take


class CHECKS:
    """Whether graphs are validated now, in all threads."""

    on = flags.is_on("ESHKOL_CHECK")
    draws = 1  # random values that each graph and each kernel is tried on
    counts = Counts()
    reference: Callable[[], Any]  # the machine that is right by definition; set by what knows backends

    @classmethod
    def turn(cls, on: bool) -> None:
        """Turn them on or off; C knows it, too."""
        cls.on = on
        front.give("checks", on)


class check:
    """From here on, or within a `with`, what is compiled is compared with the interpreter of the graph.

    A difference is a `MiscompiledError`, which names the pass and shows the smallest graph. `ek.check(False)` turns it
    off. As a context manager it gives counts of what was compared so far, and sets things back at the end.

    >>> ek.check()
    >>> with ek.check() as counts: train()
    """

    def __init__(self, on: bool = True, *, draws: int | None = None) -> None:
        """`draws`: on how many random values each graph and kernel is tried, besides those at hand."""
        self._before = CHECKS.on, CHECKS.draws
        CHECKS.turn(on)
        if draws is not None:
            CHECKS.draws = draws

    def __enter__(self) -> Counts:
        return CHECKS.counts

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        on, CHECKS.draws = self._before
        CHECKS.turn(on)


CHECKS.turn(CHECKS.on)
