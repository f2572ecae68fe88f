"""Where a line begins that goes on with a text: the column that Schemers would put it in.

Comes in: the text before the line, from the start of its form or of its file. Goes out: a column, from 0; and what is
still open at the end of a text, which completion asks for, too. Nothing here looks at bindings: a form is told by the
name that it begins with.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eshkol.lang.formatting.rules import NAMED, defines, rule_of
from eshkol.lang.reader import OPENERS, PREFIXES
from eshkol.runtime.tokens import Token, tokenize

BODY, PARTS = 2, 4  # columns further in than the form: its body, and what stands before the body
FAMILIES = ("let", "with-")  # words that begin like this and have no row of their own have one part before a body
QUOTING = ("QUOTE", "QUASIQUOTE", "SYNTAX", "QUASISYNTAX")


@dataclass(slots=True)
class Opened:
    """A parenthesis that is not closed: its token, where its items begin, and the names among them, by their number."""

    token: Token
    items: list[int] = field(default_factory=list)
    names: dict[int, str] = field(default_factory=dict)
    quoted: bool = False

    @property
    def head(self) -> str | None:
        """The name that it begins with."""
        return self.names.get(0)


@dataclass(slots=True)
class End:
    """How a text ends: what is open, the innermost last; and the kind and start of the token that it breaks off in."""

    opened: list[Opened]
    within: str | None = None  # "string", "comment", "symbol"
    start: int = 0


def end_of(text: str) -> End:
    """How a text ends."""
    stack: list[Opened] = []
    prefixed: Token | None = None  # the first of the prefixes before the next datum
    quoted = False
    tokens, incomplete = tokenize(text)
    for token in tokens:
        kind = token.kind
        if kind in PREFIXES or kind in ("DATUM_COMMENT", "LABEL"):
            prefixed, quoted = prefixed or token, quoted or kind in QUOTING
            continue
        if kind == "CLOSE":
            if stack:
                stack.pop()
        elif kind not in ("EOF", "ERROR") and stack:
            stack[-1].items.append((prefixed or token).start)
            if kind == "SYMBOL" and prefixed is None:
                stack[-1].names[len(stack[-1].items) - 1] = token.text
        if kind in OPENERS:
            stack.append(Opened(token, quoted=quoted or kind != "OPEN" or bool(stack and stack[-1].quoted)))
        prefixed, quoted = None, False
    last = tokens[-1]
    if last.kind != "ERROR" or not incomplete:
        return End(stack)
    within = {'"': "string", "#": "comment", "|": "symbol"}.get(text[last.start : last.start + 1])
    return End(stack, within, last.start)


def column(before: str) -> int:
    """Where the line after `before` begins; 0 inside of a string or a comment, whose text is no one else's business."""
    end = end_of(before)
    if end.within or not end.opened:
        return 0
    form = end.opened[-1]
    first = form.token.end - _line_start(before, form.token.start)  # where its first item would stand
    if not form.items:
        return first
    parts = None if form.quoted else _parts(form)
    if parts is None:
        if form.quoted or form.head is None:
            return _under(before, form, 0) or first
        if len(form.items) == 1 or "\n" in before[form.items[0] : form.items[1]]:
            return _under(before, form, 1) or first  # nothing behind the name to stand under
        return _under(before, form, 1) or form.items[1] - _line_start(before, form.items[1])
    here = form.token.start - _line_start(before, form.token.start)
    if len(form.items) <= parts:  # 1 for the name
        return _under(before, form, 1) or here + PARTS
    return _under(before, form, 1 + parts) or here + BODY


def _parts(form: Opened) -> int | None:
    """How many parts stand before its body; None for a call, and where all stand under the first."""
    name = form.head
    if name is None:
        return None
    rule = NAMED.get(name) if 1 in form.names else None  # (let loop ((i 0)) body)
    rule = rule or rule_of(name)
    if rule is not None:
        return rule.kept
    return 1 if defines(name) or name.startswith(FAMILIES) else None


def _under(before: str, form: Opened, least: int) -> int:
    """The column of the last item from a number on that begins a line; 0 where none does."""
    for start in reversed(form.items[least:]):
        line = _line_start(before, start)
        if not before[line:start].strip():
            return start - line
    return 0


def _line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1
