"""The factors of the derivative rules as trees of names and numbers, for code that writes machine code.

Comes in: the name of a procedure and how many arguments it has. Goes out: for each argument the factor of its tangent:
a float, a name ("r", "x", "y"), or a tuple of an operator and its operands. They are read from the runtime, which was
made with the rules: the op table itself takes long to load.
"""

from __future__ import annotations

import ctypes
from fractions import Fraction
from functools import cache

from eshkol.runtime.library import native

Tree = float | str | tuple[object, ...]


@cache
def factors(name: str, arity: int) -> tuple[Tree, ...] | None:
    """The factors of a procedure's arguments, or None where the table has no rule."""
    ask = native().esk_factor_text
    ask.restype, ask.argtypes = ctypes.c_char_p, (ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
    texts = [ask(name.encode(), arity, k) for k in range(arity)]
    return None if None in texts else tuple(parsed(text.decode()) for text in texts)


def parsed(text: str) -> Tree:
    """A tree from the written form of an expression."""
    words = text.replace("(", " ( ").replace(")", " ) ").split()
    stack: list[list[object]] = [[]]
    for word in words:
        if word == "(":
            stack.append([])
        elif word == ")":
            inner = tuple(stack.pop())
            stack[-1].append(inner)
        else:
            stack[-1].append(word if len(stack[-1]) == 0 and len(stack) > 1 else _atom(word))
    (found,) = stack[0]
    return found  # type: ignore[return-value]


def _atom(word: str) -> float | str:
    special = {"+inf.0": float("inf"), "-inf.0": float("-inf"), "+nan.0": float("nan"), "#t": 1.0, "#f": 0.0}
    if word in special:
        return special[word]
    try:
        return float(Fraction(word))
    except ValueError:
        return word


def variables(tree: Tree) -> set[str]:
    """Which of r, x and y a factor looks at."""
    if isinstance(tree, str):
        return {tree}
    if isinstance(tree, tuple):
        return set[str]().union(*(variables(part) for part in tree[1:]))  # type: ignore[arg-type]
    return set()
