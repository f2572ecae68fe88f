"""Data and core forms laid out for people: what `eshkol expand FILE` prints.

A datum that fits on a line stands on it; another is broken after the part that belongs to its first word, the rest
being indented below.
"""

from __future__ import annotations

from eshkol.lang.core import Unit
from eshkol.lang.datum import Datum, List, Symbol, Vector, atom_text, text
from eshkol.lang.deep import run_deep
from eshkol.lang.unexpand import unit_data

WIDTH = 100
MARKS = {"quote": "'", "quasiquote": "`", "unquote": ",", "unquote-splicing": ",@", "syntax": "#'"}
# how many parts behind the word stay on its line; the others are indented by two
HEADS = {
    "define": 1,
    "lambda": 1,
    "let": 1,
    "letrec*": 1,
    "set!": 1,
    "begin": 0,
    "case-lambda": 0,
}  # fmt: skip


def show_unit(unit: Unit, width: int = WIDTH) -> str:
    """The core forms of a unit as Scheme text, each on lines of its own."""
    return "".join(f"{pretty(form, width)}\n" for form in unit_data(unit))


def pretty(datum: Datum, width: int = WIDTH) -> str:
    """A datum as text of this width, as far as its words allow."""
    return run_deep(lambda: "".join(_laid_out(datum, 0, width)))


def _mark(datum: Datum) -> str | None:
    """The ' of (quote x), and its like."""
    if type(datum) is List and len(datum.items) == 2 and datum.tail is None and type(datum.items[0]) is Symbol:
        return MARKS.get(datum.items[0].name)
    return None


def _flat(datum: Datum, room: int) -> str | None:
    """The datum on one line, if it has no more characters than there is room for."""
    out: list[str] = []
    todo: list[Datum] = [datum]  # and pieces of text
    while todo:
        item = todo.pop()
        if type(item) is _Piece:
            made = item.text
        elif (mark := _mark(item)) is not None:
            made = mark
            todo.append(item.items[1])
        elif type(item) in (List, Vector):
            made = "(" if type(item) is List else "#("
            todo.append(_Piece(")"))
            tail = item.tail if type(item) is List else None
            if tail is not None:
                todo += (tail, _Piece(" . "))
            for index in range(len(item.items) - 1, -1, -1):
                todo.append(item.items[index])
                if index:
                    todo.append(_Piece(" "))
        else:
            made = text(item) if not _is_atom(item) else atom_text(item)
        room -= len(made)
        if room < 0:
            return None
        out.append(made)
    return "".join(out)


class _Piece:
    __slots__ = ("text",)

    def __init__(self, piece: str) -> None:
        self.text = piece


def _is_atom(datum: Datum) -> bool:
    return type(datum) in (Symbol, str, int, float, bool)


def _laid_out(datum: Datum, indent: int, width: int) -> list[str]:
    """Pieces of text; the first line begins at column `indent`."""
    flat = _flat(datum, max(width - indent, 20))
    if flat is not None:
        return [flat]
    mark = _mark(datum)
    if mark is not None:
        return [mark, *_laid_out(datum.items[1], indent + len(mark), width)]
    if type(datum) is Vector:
        return ["#(", *_rows(datum.items, None, indent + 2, width, first=True), ")"]
    if type(datum) is not List or not datum.items:
        return [text(datum)]
    word = datum.items[0]
    if type(word) is not Symbol or len(datum.items) == 1:
        return ["(", *_rows(datum.items, datum.tail, indent + 1, width, first=True), ")"]
    head = atom_text(word)
    kept = HEADS.get(word.name)
    if kept is None:  # a call: arguments below one another
        column = indent + len(head) + 2 if len(head) < 12 else indent + 2
        rows = _rows(datum.items[1:], datum.tail, column, width, first=len(head) < 12)
        return ["(", head, " " if len(head) < 12 else "", *rows, ")"]
    out = ["(", head]
    column = indent + len(head) + 2
    for item in datum.items[1 : 1 + kept]:
        out += [" ", *_laid_out(item, column, width)]
    return [*out, *_rows(datum.items[1 + kept :], datum.tail, indent + 2, width, first=False), ")"]


def _rows(items: tuple[Datum, ...], tail: Datum, column: int, width: int, first: bool) -> list[str]:
    """Items below one another; the first of them on the line that has begun, if `first`."""
    out: list[str] = []
    for index, item in enumerate(items):
        if index or not first:
            out.append("\n" + " " * column)
        out += _laid_out(item, column, width)
    if tail is not None:
        out += ["\n" + " " * column, ". ", *_laid_out(tail, column + 2, width)]
    return out
