"""A text in colours while it is typed: which stretch of it is what, and which parenthesis belongs to which.

Comes in: a text, and what says which names are forms. Goes out: stretches with the names of styles. Nothing here knows
the terminal; editor.py gives styles their colours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from eshkol.lang.reader import OPENERS
from eshkol.runtime.tokens import Token, tokenize

COMMAND, COMMENT, STRING, NUMBER, CONSTANT, KEYWORD, FORM, WRONG = (
    "command", "comment", "string", "number", "constant", "keyword", "form", "wrong",
)  # fmt: skip
_STYLES = {
    "STRING": STRING, "CHAR": STRING, "NUMBER": NUMBER, "TRUE": CONSTANT, "FALSE": CONSTANT, "KEYWORD": KEYWORD,
    "LABEL": KEYWORD, "REFERENCE": KEYWORD, "DATUM_COMMENT": COMMENT,
}  # fmt: skip
_UNFINISHED = {'"': STRING, "#": COMMENT}

Stretch = tuple[int, int, str]  # from, to, style; "" is as it is


def tokens_of(text: str) -> Iterator[Token]:
    """All tokens, also behind what is no datum."""
    at = 0
    while at < len(text):
        found, incomplete = tokenize(text[at:])
        for token in found:
            if token.kind != "EOF":
                yield token._replace(start=at + token.start, end=at + token.end)
        last = found[-1]
        if last.kind != "ERROR" or incomplete:
            return
        at += max(last.end, last.start + 1)


def stretches(text: str, is_form: Callable[[str], bool]) -> list[Stretch]:
    """The stretches of a text that have a style, and those between them: all of it, in order."""
    found: list[Stretch] = []
    at = 0

    def add(end: int, style: str) -> None:
        nonlocal at
        if end > at:
            found.append((at, end, style))
            at = end

    start = len(text) - len(text.lstrip())
    if text[start : start + 1] == ",":  # a command
        add(start, "")
        word = text[start:].split()[0]
        add(start + len(word), COMMAND)
    before = ""
    base = at
    for token in tokens_of(text[base:]):
        first, last = base + token.start, base + token.end
        add(first, COMMENT if text[at:first].strip() else "")
        style = _STYLES.get(token.kind, "")
        if token.kind == "SYMBOL":
            style = FORM if before == "OPEN" and is_form(token.text) else ""
        elif token.kind == "ERROR":
            style = _UNFINISHED.get(text[first : first + 1], WRONG)
            last = len(text) if style != WRONG else last
        add(last, style)
        before = token.kind
    add(len(text), COMMENT if text[at:].strip() else "")
    return found


def partner(text: str, cursor: int) -> tuple[int, int] | None:
    """The parenthesis at the cursor, or before it, and the one that belongs to it."""
    opened: list[Token] = []
    pairs: dict[int, int] = {}
    for token in tokens_of(text):
        if token.kind in OPENERS:
            opened.append(token)
        elif token.kind == "CLOSE" and opened:
            start = opened.pop().end - 1
            pairs[start], pairs[token.start] = token.start, start
    for place in (cursor - 1, cursor):  # what was just typed comes first
        if place in pairs:
            return place, pairs[place]
    return None
