"""Scheme data in Python: what the reader makes, what `quote` keeps, and the text that the runtime reads back.

| Scheme | Python |
|---|---|
| exact integer, boolean, string, bytevector | `int`, `bool`, `str`, `bytes` |
| inexact real | `float` |
| any other number (1/2, 1+2i, #e1.5) | `Number`, its text: the runtime knows numbers, nothing else |
| symbol, keyword, character | `Symbol`, `Keyword`, `Char` |
| list, proper or not | `List`: its items, and its tail if that is not () |
| vector | `Vector` |
| `#0=...` and `#0#` | `Labelled`, `Reference` |
| unspecified, end of file, default, undefined | `UNSPECIFIED`, `EOF`, `DEFAULT`, `UNDEFINED` |

Lists are not chains of pairs, so neither length nor dots cost depth; nested data may be of any depth (nothing here
recurs). Inside `List` and `Vector` there may stand syntax objects as well (`lang/syntax.py`); `text` sees through them.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Final

Datum = Any


class Symbol:
    """A symbol. `Symbol("x") is Symbol("x")`; those that `Symbol.fresh` makes equal nothing but themselves."""

    __slots__ = ("__weakref__", "name")
    _known: Final[dict[str, Symbol]] = {}
    name: str

    def __new__(cls, name: str) -> Symbol:
        known = cls._known.get(name)
        if known is None:
            known = cls._known.setdefault(name, cls.fresh(name))
        return known

    @classmethod
    def fresh(cls, name: str) -> Symbol:
        symbol = object.__new__(cls)
        symbol.name = name
        return symbol

    def __reduce__(self) -> tuple[Any, ...]:
        return (Symbol, (self.name,))

    def __repr__(self) -> str:
        return f"Symbol({self.name!r})"


class Keyword:
    """A keyword, `:axis`; its name has no colon."""

    __slots__ = ("name",)
    _known: Final[dict[str, Keyword]] = {}
    name: str

    def __new__(cls, name: str) -> Keyword:
        known = cls._known.get(name)
        if known is None:
            known = object.__new__(cls)
            known.name = name
            known = cls._known.setdefault(name, known)
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        return (Keyword, (self.name,))

    def __repr__(self) -> str:
        return f"Keyword({self.name!r})"


class _Atom(ABC):
    """Data that are equal when they are of one kind and have the same content."""

    __slots__ = ()

    @abstractmethod
    def _key(self) -> Any:
        """The content."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and bool(self._key() == other._key())

    def __hash__(self) -> int:
        return hash((type(self).__name__, self._key()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._key()!r})"


class Char(_Atom):
    """A character, by its code point."""

    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        self.code = code

    def _key(self) -> int:
        return self.code


class Number(_Atom):
    """A number that Python does not calculate with here; its text as it was read."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def _key(self) -> str:
        return self.text


class Special:
    """One of the values that have no name in R7RS."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"#!{self.name}"

    def __reduce__(self) -> str:
        return _SPECIAL_NAMES[self.name]


UNSPECIFIED: Final = Special("unspecified")
EOF: Final = Special("eof")
DEFAULT: Final = Special("default")
UNDEFINED: Final = Special("undefined")
_SPECIAL_NAMES = {"unspecified": "UNSPECIFIED", "eof": "EOF", "default": "DEFAULT", "undefined": "UNDEFINED"}


class List(_Atom):
    """A list of these items; with a tail, a dotted one. The tail is never itself a bare `List`; () has no items."""

    __slots__ = ("items", "tail")

    def __init__(self, items: Iterable[Datum] = (), tail: Datum = None) -> None:
        self.items: tuple[Datum, ...] = tuple(items)
        self.tail = tail  # None: a proper list

    def _key(self) -> Any:
        return (self.items, self.tail)


def join(items: Iterable[Datum], tail: Datum) -> Datum:
    """The items in front of any tail: `(a b . tail)`."""
    items = tuple(items)
    if type(tail) is List:
        return List(items + tail.items, tail.tail)
    return List(items, tail) if items else tail


class Vector(_Atom):
    __slots__ = ("items",)

    def __init__(self, items: Iterable[Datum] = ()) -> None:
        self.items: tuple[Datum, ...] = tuple(items)

    def _key(self) -> Any:
        return self.items


class Labelled(_Atom):
    """`#0=datum`."""

    __slots__ = ("datum", "number")

    def __init__(self, number: int, datum: Datum) -> None:
        self.number = number
        self.datum = datum

    def _key(self) -> Any:
        return (self.number, self.datum)


class Reference(_Atom):
    """`#0#`, the datum with that label."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number

    def _key(self) -> Any:
        return self.number


# ---- text ------------------------------------------------------------------------------------------------------------

_PLAIN = re.compile(  # names that are no number, keyword or dot, of characters that the lexer takes
    r"(?:[^\W0-9]|[!$%&*/<=>?^_~])(?:\w|[!$%&*/:<=>?^_~+\-.@#])*\Z|->(?:\w|[>*+!?-])*\Z|\+\Z|-\Z|\.\.\.\Z|:\Z"
)
_STRING_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\a": "\\a", "\b": "\\b"}
_CHAR_NAMES = {
    0: "null",
    7: "alarm",
    8: "backspace",
    9: "tab",
    10: "newline",
    13: "return",
    27: "escape",
    32: "space",
    127: "delete",
}


def symbol_text(name: str) -> str:
    """A symbol as it is written, in bars where it would not be read back as that symbol otherwise."""
    if _PLAIN.match(name):
        return name
    inside = "".join(
        f"\\{c}" if c in "|\\" else c if c.isprintable() else f"\\x{ord(c):x};"  # what is not seen is spelt out
        for c in name
    )
    return f"|{inside}|"


def string_text(value: str) -> str:
    out = [_STRING_ESCAPES.get(c) or (c if c.isprintable() else f"\\x{ord(c):x};") for c in value]
    return f'"{"".join(out)}"'


def char_text(code: int) -> str:
    name = _CHAR_NAMES.get(code)
    if name is not None:
        return f"#\\{name}"
    return f"#\\{chr(code)}" if 0x21 <= code < 0x7F else f"#\\x{code:x}"


def float_text(value: float) -> str:
    if math.isfinite(value):
        return repr(value)
    return "+nan.0" if math.isnan(value) else "+inf.0" if value > 0 else "-inf.0"


def integer_text(value: int) -> str:
    """Decimal digits; hexadecimal where Python would refuse to write so many of them."""
    if value.bit_length() < 8000:
        return str(value)
    return f"#x{'-' if value < 0 else ''}{abs(value):x}"


def atom_text(datum: Datum) -> str:
    """The text of a datum that has no parts."""
    kind = type(datum)
    if kind is Symbol:
        return symbol_text(datum.name)
    if kind is str:
        return string_text(datum)
    if kind is bool:
        return "#t" if datum else "#f"
    if kind is int:
        return integer_text(datum)
    if kind is float:
        return float_text(datum)
    if kind is Number:
        return str(datum.text)
    if kind is Char:
        return char_text(datum.code)
    if kind is Keyword:
        return f":{datum.name}" if _PLAIN.match(datum.name) else f":{symbol_text(datum.name)}"
    if kind is bytes:
        return f"#u8({' '.join(map(str, datum))})"
    if kind is Reference:
        return f"#{datum.number}#"
    if kind is Special:
        return f"#!{datum.name}"
    raise TypeError(f"no datum of Scheme: {datum!r}")


def text(datum: Datum) -> str:
    """The datum as text that reads back as an equal one."""
    out: list[str] = []
    todo: list[Any] = [datum]  # data to write, and _Raw pieces of text
    while todo:
        item = todo.pop()
        kind = type(item)
        if kind is _Raw:
            out.append(item)
            continue
        content = getattr(item, "content", item)  # of a syntax object
        kind = type(content)
        if kind is List:
            todo.append(_CLOSE)
            if content.tail is not None:
                todo += (content.tail, _DOT)
            _between(todo, content.items)
            out.append("(")
        elif kind is Vector:
            todo.append(_CLOSE)
            _between(todo, content.items)
            out.append("#(")
        elif kind is Labelled:
            out.append(f"#{content.number}=")
            todo.append(content.datum)
        else:
            out.append(atom_text(content))
    return "".join(out)


class _Raw(str):
    __slots__ = ()


_CLOSE, _DOT, _SPACE = _Raw(")"), _Raw(" . "), _Raw(" ")


def _between(todo: list[Any], items: tuple[Datum, ...]) -> None:
    for item in reversed(items):
        todo += (item, _SPACE)
    if items:
        todo.pop()
