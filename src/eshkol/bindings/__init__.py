"""Scheme and Python side by side: `ek.eval` and its kin, and what Scheme programs reach of Python.

This package is light: each module is imported when it is asked for (`evaluate` by `ek.eval`), since most programs of
one language use nothing of the other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from eshkol.errors import EshkolError, LanguageError
from eshkol.runtime import functions


def find_function(name: str) -> Any:
    """The function that Scheme knows by this name."""
    from eshkol.bindings.registry import find

    return find(name)


def kind_of_type(kind: type) -> str | None:
    """Whether objects of a type are tensors, layers, or arrays or scalars of NumPy; none is imported for that."""
    tensors, numpy = sys.modules.get("eshkol.tensors.value"), sys.modules.get("numpy")
    if tensors is not None and issubclass(kind, tensors.Tensor):
        return "TENSOR"
    layers = sys.modules.get("eshkol.nn.module")
    if layers is not None and issubclass(kind, layers.Module):
        return "LAYER"
    return "ADAPT" if numpy is not None and issubclass(kind, (numpy.ndarray, numpy.generic)) else None


def adapt(value: Any) -> Any:
    """What takes the place of an array or a scalar of NumPy."""
    import numpy

    if isinstance(value, numpy.ndarray):
        from eshkol.tensors import NAMES

        return NAMES["from_numpy"](value)
    return value.item()


def worded(error: EshkolError) -> tuple[str, str | None]:
    """Message and hint of an error in Scheme's words; of one that has a place in a program, as they are."""
    if "eshkol.ops" not in sys.modules or isinstance(error, LanguageError) or error.span is not None:
        return error.message, error.hint
    from eshkol.bindings.wording import translated, without_rows

    hint = None if error.hint is None else translated(error.hint)
    return translated(without_rows(error.message)), hint


def shapes() -> Any:
    """What knows the shapes that rows of the op table give, for the checker of types."""
    from eshkol.bindings.shape_types import SHAPES

    return SHAPES


def carry(work: Callable[[], Any]) -> Callable[[], Any]:
    """Work that is done on another thread as here: with the transformations that are at work, the line of the user that
    is, and whether operations on tensors are remembered for `backward`.
    """
    tape = sys.modules.get("eshkol.tensors.tape")
    if tape is None:
        return work
    from eshkol.graph.node import AtWork, Current, Scope

    mode, stacks = tape.GradMode, list(AtWork.stacks)
    mine = mode.enabled, Current.site, [one.stack for one in stacks]

    def become(state: tuple[Any, Any, list[list[Any]]]) -> None:
        mode.enabled, Current.site, found = state
        for one, stack in zip(stacks, found, strict=True):
            one.stack = stack

    def run() -> Any:
        before = mode.enabled, Current.site, [one.stack for one in stacks]
        depths = [len(stack) for stack in mine[2]]
        become(mine)
        try:
            return work()
        finally:
            become(before)
            for stack, depth in zip(mine[2], depths, strict=True):
                for left in stack[depth:]:  # by an error that went past all who could have closed it
                    if isinstance(left, Scope):
                        left.open = False
                del stack[depth:]

    return run


def install() -> None:
    """Tell the runtime what programs find of Python; whoever runs programs calls this."""
    functions.find, functions.kind_of, functions.adapt = find_function, kind_of_type, adapt
    functions.carry, functions.worded, functions.shapes = carry, worded, shapes


install()
