"""The keys that layers draw with: of the generator that is everybody's, or of one key that a whole call is given.

A compiled step is given one key each time it runs and makes the keys of its layers from it; without that, a layer that
draws would draw the same numbers in every step, and is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from eshkol.errors import TraceError
from eshkol.graph.node import Scope, here
from eshkol.tensors import keys
from eshkol.tensors.functions import FUNCTIONS
from eshkol.tensors.make import adopted
from eshkol.tensors.value import Tensor


@dataclass
class _Drawing:
    key: Tensor
    scopes: tuple[Scope, ...]  # those that trace, when it began
    count: int = 0


# A context variable goes along where a call is done on another thread, as calls of Scheme are.
_drawing: ContextVar[_Drawing | None] = ContextVar("drawing", default=None)


def tracing() -> tuple[Scope, ...]:
    """What traces now, the innermost last."""
    return tuple(s for s in Scope.at_work if s.kind == "trace")


@contextmanager
def drawing_with(key: Tensor) -> Iterator[None]:
    """Within it layers draw with keys that are made of this one, in the order in which they draw."""
    token = _drawing.set(_Drawing(key, tracing()))
    try:
        yield
    finally:
        _drawing.reset(token)


def next_key(who: str) -> Tensor:
    """A key for a layer to draw with, once."""
    inside = tracing()
    drawing = _drawing.get()
    if drawing is not None and inside == drawing.scopes:
        drawing.count += 1
        made = FUNCTIONS["fold_in"](drawing.key, drawing.count)
        assert isinstance(made, Tensor)
        return made
    if inside:
        raise TraceError(
            f"{who} inside {inside[-1].name} would draw the same numbers every time", span=here(),
            hint="call model.eval() first, or give ek.functional_call(model, state, x, rng=key) a key each time",
        )  # fmt: skip
    return adopted(keys.next_key())
