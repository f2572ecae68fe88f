"""What a text is laid out from: its lists, atoms and comments, with the line breaks that its author has put there.

Comes in: the tokens of the lexer, and the text, whose comments lie between them. Goes out: a `Form` that holds all of
it. Atoms are strings, as they were written; a prefix such as ' belongs to what it stands before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from eshkol.lang.formatting.rules import WIDTH, Rule, rule_of, rule_of_comment, rule_of_pattern
from eshkol.runtime.tokens import Token

OPENERS = frozenset({"OPEN", "OPEN_VECTOR", "OPEN_BYTES"})
PREFIXES = frozenset({
    "QUOTE", "QUASIQUOTE", "UNQUOTE", "UNQUOTE_SPLICING", "SYNTAX", "QUASISYNTAX", "UNSYNTAX", "UNSYNTAX_SPLICING",
    "LABEL", "DATUM_COMMENT",
})  # fmt: skip
TOO_WIDE = 1 << 30  # the width of what is on one line, but cannot stay there
MOST_FLAT = 100_000  # characters of atoms that are looked at for a line; strings may have many lines
SKIPPED = "#;"  # the prefix of a datum that is a comment

_BETWEEN = re.compile(r";[^\n\r]*|#\||#![^\s()]*")
_BLOCK = re.compile(r"#\||\|#")


class Comment:
    """A comment, or a directive (#!fold-case), which stands among the data as comments do."""

    __slots__ = ("block", "column", "gap", "indent", "text")

    def __init__(self, text: str, block: bool, column: int, gap: int, indent: int) -> None:
        self.text = text
        self.block = block  # something may follow on its line
        self.column = column  # where it stood; how far from what was before it; where its line began
        self.gap, self.indent = gap, indent


class Form:
    """A list, a vector, or what a prefix stands before where comments lie between the two.

    `breaks` says how many line ends stood before each item. `width` is how wide it is on one line, None where it is on
    several; a string in it may have more lines, of which the first counts. `flat` is that line, where it is not wider
    than any may be: lists within lists would take a square of their depth in memory.
    """

    __slots__ = ("breaks", "close", "column", "columns", "flat", "items", "opener", "width")

    def __init__(self, opener: str, column: int) -> None:
        self.opener = opener  # with the prefixes before it
        self.close = ""
        self.column = column  # of its parenthesis
        self.items: list[Item] = []
        self.breaks: list[int] = []
        self.columns: dict[int, int] = {}  # of items that begin a line, by index
        self.flat: str | None = None
        self.width: int | None = None

    def settle(self) -> None:
        """All items are there: is it on one line? Line breaks that no layout keeps are taken away."""
        items, breaks = self.items, self.breaks
        if breaks:
            breaks[0] = 0
            self.columns.pop(0, None)
        if any(breaks):
            if self.is_joined():
                breaks[1] = 0
            for index, (before, item) in enumerate(pairwise(items), 1):
                if before == "." and type(item) is not Comment:
                    breaks[index] = 0
            if any(breaks):
                return
        widths = [len(item) if type(item) is str else width_of(item) for item in items]
        if None in widths:
            return
        self.width = TOO_WIDE
        if sum(widths) <= MOST_FLAT:  # type: ignore[arg-type]
            flats = [item if type(item) is str else flat_of(item) for item in items]
            flat = f"{self.opener}{' '.join(flats)}{self.close}"  # type: ignore[arg-type]
            width = first_width(flat)
            if width <= WIDTH or not items:
                self.flat, self.width = flat, width

    def is_joined(self) -> bool:
        """Whether the first two items are never on different lines."""
        items = self.items
        if len(items) < 2 or not isinstance(items[0], str) or isinstance(items[1], Comment):
            return False
        rule = rule_of(items[0])
        return rule is not None and rule.joins


Item = str | Form | Comment


def flat_of(item: Item) -> str | None:
    """An item as one line, if it is one, and not too wide."""
    if isinstance(item, str):
        return item
    if isinstance(item, Form):
        return item.flat
    return item.text if item.block and "\n" not in item.text else None


def width_of(item: Item) -> int | None:
    """How wide an item is on one line, if it is on one."""
    if isinstance(item, Form):
        return item.width
    flat = flat_of(item)
    return None if flat is None else first_width(flat)


def first_width(text: str) -> int:
    """How wide the first line of a text is."""
    end = text.find("\n")
    return len(text) if end < 0 else end


def is_skipped(item: Item) -> bool:
    """Whether it is no part of the form it stands in: a comment, or a datum behind #;."""
    if isinstance(item, Form):
        return item.opener.startswith(SKIPPED)
    return isinstance(item, Comment) or item.startswith(SKIPPED)


def data_of(form: Form) -> Iterator[Item]:
    return (item for item in form.items if not is_skipped(item))


class Parts:
    """A whole text in parts: `top` holds its items, `rules` the rows that it adds to the table of forms."""

    def __init__(self, text: str, tokens: list[Token]) -> None:
        self.text = text
        self.top = Form("", -1)
        self.rules: dict[str, Rule] = {}
        self.deepest = 0
        self.rest = text[tokens[-1].start :]  # what stands behind #!eof is no part of the program
        self._line = self._indent = 0  # where the line at hand begins, and how far it is indented
        self._take(tokens)

    def _take(self, tokens: list[Token]) -> None:
        text, form, before = self.text, self.top, 0
        stack: list[Form] = []
        prefix: tuple[int, str, int] | None = None  # prefixes that wait for their datum: start, text, breaks
        for kind, start, end, _ in tokens:
            if before == start:
                breaks = 0
            else:
                gap = text[before:start]
                if gap == " ":
                    breaks = 0
                elif gap.isspace():
                    breaks = self._blank(gap, before)
                elif prefix is None:
                    breaks = self._comments(form, before, start)
                else:  # comments between a prefix and its datum: both become items of a form without parentheses
                    held = Form(prefix[1], prefix[0] - self._line)
                    self._add(form, held, prefix[2], prefix[0])
                    stack.append(form)
                    form, prefix = held, None
                    breaks = self._comments(form, before, start)
            before = end
            if kind in PREFIXES:
                written = text[start:end]
                prefix = (
                    (start, written, breaks) if prefix is None else (prefix[0], _beside(prefix[1], written), prefix[2])
                )
                continue
            if kind == "EOF":
                break
            if kind == "CLOSE":
                form.close = text[start:end]
                form.settle()
                _add_rule(form, self.rules)
                form = stack.pop()
            else:
                written, began = text[start:end], start
                if prefix is not None:
                    written = _beside(prefix[1], written)
                    began, breaks, prefix = prefix[0], prefix[2], None
                if kind in OPENERS:
                    held = Form(written, end - 1 - self._line)
                    self._add(form, held, breaks, began)
                    stack.append(form)
                    self.deepest = max(self.deepest, len(stack))
                    form = held
                    continue
                if kind in ("STRING", "SYMBOL") and "\n" in written:
                    self._line, self._indent = start + text[start:end].rfind("\n") + 1, 0
                self._add(form, written, breaks, began)
            while not form.close and stack and form.items and type(form.items[-1]) is not Comment:
                if form.opener[-1] in "([{":  # an open list, which waits for more
                    break
                form.settle()
                form = stack.pop()

    def _add(self, form: Form, item: Item, breaks: int, start: int) -> None:
        if breaks:
            form.columns[len(form.items)] = start - self._line
        form.items.append(item)
        form.breaks.append(breaks)

    def _blank(self, gap: str, before: int) -> int:
        if "\r" in gap:
            gap = gap.replace("\r\n", " \n").replace("\r", "\n")
        breaks = gap.count("\n")
        if breaks:
            self._line = before + gap.rfind("\n") + 1
            self._indent = before + len(gap) - self._line
        return breaks

    def _comments(self, form: Form, before: int, end: int) -> int:
        """Comments from here to there become items; the line ends behind the last."""
        text = self.text
        for start, stop in comments(text, before, end):
            breaks = self._blank(text[before:start], before)
            written, block = text[start:stop], text[start] == "#" and not text.startswith(("#!/", "#! "), start)
            gap = 0 if breaks else start - before
            comment = Comment(written if block else written.rstrip(), block, start - self._line, gap, self._indent)
            self._add(form, comment, breaks, start)
            if not block:
                found = rule_of_comment(written)
                if found is not None:
                    self.rules[found[0]] = found[1]
            elif "\n" in written:
                self._line, self._indent = start + written.rfind("\n") + 1, 0
            before = stop
        return self._blank(text[before:end], before)


def comments(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Where the comments and directives are in what lies between two tokens."""
    if start == 0 and text.startswith(("#!/", "#! ")):  # the first line of a script
        start = min(text.find("\n") % (len(text) + 1), text.find("\r") % (len(text) + 1), len(text))
        yield 0, start
    while (found := _BETWEEN.search(text, start, end)) is not None:
        start = found.end()
        if found.group() == "#|":
            start = _block_end(text, found.start(), end)
        yield found.start(), start


def _block_end(text: str, start: int, end: int) -> int:
    """The end of the block comment that begins here; they nest."""
    depth = 0
    for mark in _BLOCK.finditer(text, start, end):
        depth += 1 if mark.group() == "#|" else -1
        if depth == 0:
            return mark.end()
    return end


def _beside(prefix: str, written: str) -> str:
    """A prefix and what it stands before; of `, @a` the space is needed."""
    return f"{prefix} {written}" if prefix[-1] == "," and written[0] == "@" else prefix + written


def _add_rule(form: Form, rules: dict[str, Rule]) -> None:
    """A macro whose pattern ends in a body is indented as such."""
    if form.items[:1] != ["define-syntax"]:
        return
    name, transformer, *_ = [*list(data_of(form))[1:], "", ""]
    if isinstance(name, str) and isinstance(transformer, Form) and transformer.items[:1] == ["syntax-rules"]:
        clauses = [item for item in data_of(transformer) if isinstance(item, Form)][1:]
        pattern = clauses[0].items[0] if clauses and clauses[0].items else None
        if isinstance(pattern, Form):
            rule = rule_of_pattern([item if isinstance(item, str) else "()" for item in list(data_of(pattern))[1:]])
            if rule is not None and rule_of(name) is None:
                rules[name] = rule
