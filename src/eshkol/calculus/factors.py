"""The factors of the derivative rules as trees of names and numbers, for code that writes machine code.

Comes in: the name of a procedure and how many arguments it has. Goes out: for each argument the factor of its tangent:
a float, a name ("r", "x", "y"), or an operator with its operands. They are read from the runtime, which was made with
the rules: the op table itself takes long to load.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from eshkol.runtime.library import native


@dataclass(frozen=True)
class Apply:
    """An operator and its operands: a procedure of numbers, a comparison, or `if and or not`."""

    operator: str
    operands: tuple[Tree, ...]


Tree = float | str | Apply


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
    tree, rest = _first(words)
    assert not rest, text
    return tree


def _first(words: list[str]) -> tuple[Tree, list[str]]:
    """The first expression of some words, and the words after it."""
    word, *rest = words
    if word != "(":
        return _atom(word), rest
    operator, *rest = rest
    operands: list[Tree] = []
    while rest[0] != ")":
        operand, rest = _first(rest)
        operands.append(operand)
    return Apply(operator, tuple(operands)), rest[1:]


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
    if isinstance(tree, Apply):
        return set[str]().union(*map(variables, tree.operands))
    return set()
