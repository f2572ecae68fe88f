"""Derivatives inside of a typed program, which are calls of another kind at first, become calls of gradients.

Comes in: the main function, in which the instruction `gradient` calls a function and asks for its derivatives by the
first operands, too. Goes out: the same, with calls of typed functions that compute them (adjoint.py).
"""

from __future__ import annotations

from eshkol.calculus.adjoint import gradient_function
from eshkol.calculus.ir import GRADIENT, TypedFunction


def expand(main: TypedFunction) -> None:
    """Put calls of gradients, as typed functions, in the place of what asks for them; innermost ones first."""
    made: dict[TypedFunction, TypedFunction] = {}
    seen = {main}

    def visit(function: TypedFunction) -> None:
        for item in function.instructions():
            inner = item.function
            if inner is None:
                continue
            if inner not in seen:
                seen.add(inner)
                visit(inner)
            if item.operation == GRADIENT:
                if inner not in made:
                    count = item.literal
                    marks = [k < count for k in range(len(inner.params))] if isinstance(count, int) else []
                    made[inner] = gradient_function(called(inner), marks)
                item.operation, item.literal, item.function = "call", None, made[inner]

    visit(main)


def called(main: TypedFunction) -> list[TypedFunction]:
    """A function and all that it calls."""
    found = [main]
    for function in found:
        for item in function.instructions():
            if item.function is not None and item.function not in found:
                found.append(item.function)
    return found


__all__ = ["GRADIENT", "called", "expand"]
