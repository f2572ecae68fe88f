"""How a row is called, as users read it: its signature with their types, its help with every argument described.

Comes in: a row. Goes out: `signature(op)`, for `inspect.signature` and editors, and `help_text(op)`, for `help`. Types
within this package (values, tuples of attributes) are spelt as what users hold.
"""

from __future__ import annotations

import inspect
import re
from functools import cache

from eshkol.ops.parameters import ALIASES, TYPES, described
from eshkol.ops.row import Op

WIDTH = 100


class Type(str):
    """The text of a type, which signatures show without quotation marks."""

    __slots__ = ()
    __repr__ = str.__str__


def type_of(parameter: inspect.Parameter) -> Type:
    """The type of a parameter in a user's words."""
    text = str(parameter.annotation)
    return _spelt(TYPES.get(parameter.name, text) if text == "Any" else text)


@cache
def _spelt(text: str) -> Type:
    for _ in range(2):  # an alias may be spelt with another
        text = re.sub(r"\b\w+\b", lambda m: ALIASES.get(m[0], m[0]), text)
    return Type(_without_repetition(text))


def _without_repetition(text: str) -> str:
    """`int | None | None` with each member once; brackets hold their own."""
    members, depth, last = [], 0, 0
    for k, letter in enumerate(text):
        depth += (letter in "[(") - (letter in ")]")
        if letter == "|" and not depth:
            members.append(text[last:k].strip())
            last = k + 1
    members.append(text[last:].strip())
    return " | ".join(dict.fromkeys(members))


@cache
def signature(op: Op) -> inspect.Signature:
    """The parameters of a row and what it gives."""
    parameters = [p.replace(annotation=type_of(p)) for p in op.signature.parameters.values()]
    kinds = dict.fromkeys([op.gives, *(kind for _, kind in op.gives_if.values())])
    return inspect.Signature(parameters, return_annotation=Type(_without_repetition(" | ".join(kinds))))


def _indented(text: str) -> str:
    """A line of its own, or several; most fit into one, and all are made whenever tensors are imported."""
    if len(text) <= WIDTH - 4:
        return f"    {text.rstrip()}"
    import textwrap

    return textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="        ")


@cache
def help_text(op: Op, without: str = "") -> str:
    """What a row does, and a line for each argument; `without` leaves one out that is not given."""
    lines = [op.doc]
    names = [name for name in op.signature.parameters if name != without]
    if names:
        lines += ["", "Arguments:"]
    for name in names:
        text = f"{name}: {described(op, name)}"
        lines.append(_indented(text))
    return "\n".join(lines)
