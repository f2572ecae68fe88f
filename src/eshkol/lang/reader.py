"""The reader: a text comes in, the syntax objects of its data go out, each with its place.

The lexer is the runtime's (C); here its tokens become lists, with an explicit stack, so that depth does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from eshkol.errors import ReadError, UnfinishedInput
from eshkol.lang.datum import Char, Keyword, Labelled, List, Number, Reference, Symbol, Vector
from eshkol.lang.report import bad
from eshkol.lang.scopes import NO_SCOPES
from eshkol.lang.source import Place, Source
from eshkol.lang.syntax import Syntax, identifier, syntax_join
from eshkol.runtime.tokens import Token, tokenize
from eshkol.support.collector import without_collector
from eshkol.support.interrupts import check

PREFIXES = {
    "QUOTE": "quote",
    "QUASIQUOTE": "quasiquote",
    "UNQUOTE": "unquote",
    "UNQUOTE_SPLICING": "unquote-splicing",
    "SYNTAX": "syntax",
    "QUASISYNTAX": "quasisyntax",
    "UNSYNTAX": "unsyntax",
    "UNSYNTAX_SPLICING": "unsyntax-splicing",
}
OPENERS = {"OPEN": "(", "OPEN_VECTOR": "#(", "OPEN_BYTES": "#u8("}
CLOSERS = {"[": "]", "{": "}"}
BRACES = "{}"  # the first item of what stands in braces, which only types understand: {i < n}
LONGEST_INTEGER = 4000  # digits; Python refuses to read much longer ones, the runtime does not

_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_RADIX_INTEGER = re.compile(
    r"#(?:([xX])([+-]?[0-9a-fA-F]+)|([oO])([+-]?[0-7]+)|([bB])([+-]?[01]+)|([dD])([+-]?[0-9]+))\Z"
)
_REAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?\Z")
_OVER_ZERO = re.compile(r"/0+(?![0-9a-fA-F])")
_RADIX = {"x": 16, "o": 8, "b": 2, "d": 10}


@without_collector()
def read(source: Source) -> list[Syntax]:
    """All data of a text. Raises ReadError; UnfinishedInput where the text ends too early."""
    tokens, incomplete = tokenize(source.text)
    return parse(tokens, source, incomplete)


def number(text: str) -> int | float | Number:
    """The number that a token of that kind stands for."""
    if _INTEGER.match(text) and len(text) <= LONGEST_INTEGER:
        return int(text)
    if _REAL.match(text) and not _INTEGER.match(text):
        return float(text)
    prefixed = _RADIX_INTEGER.match(text)
    if prefixed and len(text) <= LONGEST_INTEGER:
        radix, digits = filter(None, prefixed.groups())
        return int(digits, _RADIX[radix.lower()])
    return Number(text)


class _Open:
    """A datum that has begun: a list, or a prefix such as ' that waits for what it stands before."""

    __slots__ = ("dotted", "items", "label", "listing", "tail", "token")

    def __init__(self, token: Token, label: int = 0) -> None:
        self.token = token
        self.listing = token.kind in OPENERS  # and there is no dot yet: data simply go to the items
        self.items: list[Syntax] = []
        self.dotted: Token | None = None
        self.tail: Syntax | None = None
        self.label = label


class _Parser:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.stack: list[_Open] = []
        self.data: list[Syntax] = []
        self.known: set[int] = set()  # labels of the datum at hand

    def place(self, start: int, end: int) -> Place:
        return Place(self.source, start, end)

    def error(self, message: str, token: Token, hint: str | None = None, **more: Any) -> Exception:
        return bad(message, self.place(token.start, token.end), hint, **{"kind": ReadError, **more})

    def add(self, syntax: Syntax, end: int) -> None:
        """A datum is whole: it goes to the list, prefix or comment that waits for it."""
        while self.stack:
            top = self.stack[-1]
            if top.listing:
                top.items.append(syntax)
                return
            kind = top.token.kind
            if kind in OPENERS:
                if top.tail is None:
                    top.tail = syntax
                else:
                    raise bad("only one datum may follow a dot in a list", syntax, kind=ReadError)
                return
            self.stack.pop()
            if kind == "DATUM_COMMENT":
                return
            place = self.place(top.token.start, end)
            if kind == "LABEL":
                if type(syntax.content) is Reference and syntax.content.number == top.label:
                    raise bad(f"the label #{top.label}= names nothing but itself", place, kind=ReadError)
                syntax = Syntax(Labelled(top.label, syntax), NO_SCOPES, place)
            else:
                name = identifier(PREFIXES[kind], NO_SCOPES, self.place(top.token.start, top.token.end))
                syntax = Syntax(List((name, syntax)), NO_SCOPES, place)
        self.data.append(syntax)
        self.known = set()

    def close(self, token: Token) -> None:
        while self.stack and self.stack[-1].token.kind not in OPENERS:
            waiting = self.stack[-1].token
            raise self.error(f"nothing follows this {self.written(waiting)}", waiting)
        if not self.stack:
            raise self.error(f"this {token.text} closes nothing", token, "take it away, or open a list before it")
        top = self.stack.pop()
        opener = top.token.text or OPENERS[top.token.kind]
        closer = CLOSERS.get(opener, ")")
        if closer != token.text:
            raise self.error(
                f"{opener} is closed by {token.text}",
                token,
                f"write {closer} here",
                notes=((f"the {opener} is here:", self.place(top.token.start, top.token.end)),),
            )
        place = self.place(top.token.start, token.end)
        if top.dotted is not None and (top.tail is None or top.token.kind != "OPEN" or opener == "{"):
            raise self.error("a dot stands before the last datum of a list", top.dotted)
        if top.token.kind == "OPEN_VECTOR":
            syntax = Syntax(Vector(top.items), NO_SCOPES, place)
        elif top.token.kind == "OPEN_BYTES":
            syntax = Syntax(self.octets(top.items), NO_SCOPES, place)
        elif opener == "{":
            name = identifier(BRACES, NO_SCOPES, self.place(top.token.start, top.token.end))
            syntax = Syntax(List((name, *top.items)), NO_SCOPES, place)
        elif top.tail is not None:
            syntax = syntax_join(top.items, top.tail, place)
        else:
            syntax = Syntax(List(top.items), NO_SCOPES, place)
        self.add(syntax, token.end)

    def octets(self, items: Iterable[Syntax]) -> bytes:
        out = bytearray()
        for item in items:
            if type(item.content) is not int or not 0 <= item.content <= 255:
                raise bad("a bytevector holds exact integers from 0 to 255", item, kind=ReadError)
            out.append(item.content)
        return bytes(out)

    def written(self, token: Token) -> str:
        return self.source.text[token.start : token.end]

    def atom(self, token: Token) -> Any:
        kind = token.kind
        if kind == "SYMBOL":
            return Symbol(token.text)
        if kind == "NUMBER":
            if "/" in token.text and _OVER_ZERO.search(token.text):
                raise self.error("the denominator is zero", token)
            return number(token.text)
        if kind == "STRING":
            return token.text
        if kind == "KEYWORD":
            return Keyword(token.text)
        if kind == "CHAR":
            return Char(ord(token.text))
        if kind == "REFERENCE":
            reference = self.label(token)
            if reference not in self.known:
                raise self.error(f"no datum before this has the label #{reference}=", token)
            return Reference(reference)
        return kind == "TRUE"

    def label(self, token: Token) -> int:
        if len(token.text) > 9:
            raise self.error("the number of a label has at most nine digits", token)
        return int(token.text)

    def finish(self) -> None:
        if not self.stack:
            return
        lists = [entry.token for entry in self.stack if entry.token.kind in OPENERS]
        last = self.stack[-1].token
        if not lists or lists[-1] is not last:
            raise self.error(f"nothing follows this {self.written(last)}", last, kind=UnfinishedInput)
        missing = "".join(CLOSERS.get(token.text, ")") for token in reversed(lists))
        missing = missing if len(missing) < 20 else f"{len(missing)} parentheses"
        hint = f"{missing} missing at the end"
        starts = [item.place.start for entry in self.stack for item in entry.items if item.place is not None]
        starts += [token.start for token in lists[1:]]
        margin = [start for start in starts if self.source.position(start)[1] == 1]
        if margin and self.source.position(lists[0].start)[1] == 1:  # another form begins inside the first
            lines = (self.source.position(start)[0] for start in (lists[0].start, min(margin)))
            hint = "the form that begins in line {} was perhaps to end before line {}".format(*lines)
        raise self.error(f"this {last.text or OPENERS[last.kind]} is never closed", last, hint, kind=UnfinishedInput)


def parse(tokens: Iterable[Token], source: Source, incomplete: bool = False) -> list[Syntax]:
    """The data that the tokens of a text make."""
    parser = _Parser(source)
    stack = parser.stack
    for token in tokens:
        kind = token[0]
        if kind == "SYMBOL" and stack and stack[-1].listing:  # by far the most frequent case
            place = Place(source, token[1], token[2])
            stack[-1].items.append(Syntax(Symbol(token[3]), NO_SCOPES, place))
        elif kind in OPENERS or kind in PREFIXES or kind == "DATUM_COMMENT":
            stack.append(_Open(token))
        elif kind == "CLOSE":
            check()
            parser.close(token)
        elif kind == "DOT":
            top = stack[-1] if stack else None
            if top is None or top.token.kind != "OPEN" or not top.items or top.dotted is not None:
                raise parser.error("a dot stands before the last datum of a list", token)
            top.dotted = token
            top.listing = False
        elif kind == "LABEL":
            label = parser.label(token)
            if label in parser.known:
                raise parser.error(f"a second datum with the label #{label}=", token)
            parser.known.add(label)
            stack.append(_Open(token, label))
        elif kind == "ERROR":
            raise parser.error(token.text, token, kind=UnfinishedInput if incomplete else ReadError)
        elif kind == "EOF":
            parser.finish()
        else:
            place = Place(source, token.start, token.end)
            parser.add(Syntax(parser.atom(token), NO_SCOPES, place), token.end)
    return parser.data
