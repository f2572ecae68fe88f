"""Scheme data on lines of limited width, indented as people indent programs; for `eshkol expand`."""

from __future__ import annotations

from eshkol.lang.datum import Datum, List, Symbol, Vector, text
from eshkol.lang.deep import run_deep

WIDTH = 100
_QUOTES = {"quote": "'", "quasiquote": "`", "unquote": ",", "unquote-splicing": ",@"}
# Forms whose first parts stay on the line of the name, and how many; the rest is their body.
_BODIES = {"lambda": 1, "define": 1, "let": 1, "letrec*": 1, "case-lambda": 0, "begin": 0, "set!": 1, "if": 1}


def pretty(datum: Datum, width: int = WIDTH) -> str:
    """The datum as text; lines are longer than the width only where a single atom is."""
    return run_deep(_pretty, datum, 0, width, 0)


def _pretty(datum: Datum, column: int, width: int, closing: int) -> str:
    """The text of a datum that begins at a column, with so many parentheses closed after it."""
    if type(datum) not in (List, Vector):
        return text(datum)
    flat = _flat(datum, width - column - closing)
    if flat is not None or not datum.items:
        return flat or text(datum)
    if type(datum) is Vector:
        return "#" + _lines(list(datum.items), None, column + 1, 1, width, closing)
    quote = _quoted(datum)
    if quote is not None:
        return quote + _pretty(datum.items[1], column + len(quote), width, closing)
    head = datum.items[0]
    if type(head) is not Symbol:
        return _lines(list(datum.items), datum.tail, column, 1, width, closing)
    name = text(head)
    kept = _BODIES.get(head.name)
    if kept is None:  # a call: arguments stand under the first one
        indent = len(name) + 2
        rest = _column([*datum.items[1:]], datum.tail, column + indent, width, closing + 1)
        return f"({name} {rest})"
    out = f"({name}"
    for item in datum.items[1 : 1 + kept]:
        out += " " + _pretty(item, column + len(out.rpartition("\n")[2]) + 1, width, 0)
    body = datum.items[1 + kept :]
    if not body:
        return out + ")"
    indent = 4 if head.name == "if" else 2
    return f"{out}\n{' ' * (column + indent)}{_column(list(body), datum.tail, column + indent, width, closing + 1)})"


def _lines(items: list[Datum], tail: Datum, column: int, indent: int, width: int, closing: int) -> str:
    return f"({_column(items, tail, column + indent, width, closing + 1)})"


def _column(items: list[Datum], tail: Datum, column: int, width: int, closing: int) -> str:
    """The items one under the other."""
    last = len(items) - 1
    shown = [_pretty(item, column, width, closing if i == last and tail is None else 0) for i, item in enumerate(items)]
    if tail is not None:
        shown.append(". " + _pretty(tail, column + 2, width, closing))
    return f"\n{' ' * column}".join(shown)


def _quoted(datum: List) -> str | None:
    if len(datum.items) == 2 and datum.tail is None and type(datum.items[0]) is Symbol:
        return _QUOTES.get(datum.items[0].name)
    return None


def _flat(datum: Datum, room: int) -> str | None:
    """The datum on one line, if there is room for it."""
    out: list[str] = []
    todo: list[Datum] = [datum]  # what is to be written next, the last first; pieces of text are _Text
    while todo:
        item = todo.pop()
        if type(item) is _Text:
            piece: str = item
        elif type(item) is List and item.items and (quote := _quoted(item)) is not None:
            piece = quote
            todo.append(item.items[1])
        elif (type(item) is List and item.items) or type(item) is Vector:
            piece = "(" if type(item) is List else "#("
            todo.append(_Text(")"))
            if type(item) is List and item.tail is not None:
                todo += (item.tail, _Text(" . "))
            for index in range(min(len(item.items), room) - 1, -1, -1):
                todo += (item.items[index], _Text(" ")) if index else (item.items[index],)
            if len(item.items) > room:
                return None
        else:
            piece = text(item)
        out.append(piece)
        room -= len(piece)
        if room < 0:
            return None
    return "".join(out)


class _Text(str):
    __slots__ = ()
