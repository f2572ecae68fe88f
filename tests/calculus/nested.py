"""Texts of parentheses as nested lists, for those tests that read what programs write."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def nested(tokens: Iterable[str], atom: Callable[[str], Any]) -> list[Any]:
    """What tokens say, where "(" and ")" stand around lists and `atom` reads the others."""
    stack: list[list[Any]] = [[]]
    for token in tokens:
        if token == "(":
            stack.append([])
        elif token == ")":
            done = stack.pop()
            stack[-1].append(done)
        else:
            stack[-1].append(atom(token))
    (found,) = stack
    return found
