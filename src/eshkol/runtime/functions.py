"""What Scheme finds of Python, as hooks: the runtime knows no tensors, so whoever does says what is to be known here.

`eshkol.bindings` sets these when it is imported, which everything that runs programs does. Nothing is looked up, and
nothing imported, before a program asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eshkol.errors import EshkolError


def _find_nothing(name: str) -> Any:
    raise EshkolError(f"Python has no function registered as '{name}'", hint="import eshkol.bindings")


def _kind_of_nothing(_: type) -> str | None:
    return None


def _as_it_is(value: Any) -> Any:
    return value


def _as_said(error: EshkolError) -> tuple[str, str | None]:
    return error.message, error.hint


find: Callable[[str], Any] = _find_nothing  # the function that is registered under a name
kind_of: Callable[[type], str | None] = _kind_of_nothing  # a name in PYTHON_KINDS (python.h), for types known elsewhere
shapes: Callable[[], Any] | None = None  # gives what knows the shapes of tensors (bindings/shape_types.py)
adapt: Callable[[Any], Any] = _as_it_is  # what takes the place of an object of kind ADAPT
worded: Callable[[EshkolError], tuple[str, str | None]] = _as_said  # message and hint of an error, in Scheme's words
# work that another thread does for this one: what is known of this thread alone goes along
carry: Callable[[Callable[[], Any]], Callable[[], Any]] = _as_it_is
