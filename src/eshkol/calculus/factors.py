"""The factors of the derivative rules as trees of names and numbers, for code that writes machine code.

Comes in: the name of a procedure and how many arguments it has. Goes out: for each argument the factor of its tangent:
a float, a name ("r", "x", "y"), or a tuple of an operator and its operands.
"""

from __future__ import annotations

from fractions import Fraction
from functools import cache

Tree = float | str | tuple[object, ...]


@cache
def factors(name: str, arity: int) -> tuple[Tree, ...] | None:
    """The factors of a procedure's arguments, or None where the table has no rule."""
    from eshkol.calculus.rules import rule

    found = rule(name, arity)
    return None if found is None else tuple(parsed(factor.text()) for factor in found.factors)


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
