"""The types of constants, as the reader gives them.

Comes in: a datum. Goes out: its type; of a list the type of a list that is not empty.
"""

from __future__ import annotations

from typing import Any

from eshkol.lang.datum import EOF, UNSPECIFIED, Char, Keyword, List, Number, Symbol, Vector
from eshkol.types.kinds import (
    ANY,
    BIT,
    EXACT,
    FALSE,
    FLOAT,
    NULL,
    STRING,
    SYMBOL,
    TRUE,
    VOID,
    Type,
    flattened,
    join_all,
    list_of,
    pair_of,
    vector_of,
)

FIXNUM = 1 << 63
NATURAL, NEGATIVE, CHAR, KEYWORD = (Type(BIT[kind]) for kind in ("natural", "negative", "char", "keyword"))


def constant_type(datum: Any) -> Type:
    """The type of a constant."""
    if type(datum) is int and 0 <= datum < FIXNUM:
        return NATURAL
    match datum:
        case True:
            return TRUE
        case False:
            return FALSE
        case int():
            if -FIXNUM <= datum < 0:
                return NEGATIVE
            return Type(BIT["big natural" if datum > 0 else "big negative"])
        case float():
            return FLOAT
        case str():
            return STRING
        case Symbol():
            return SYMBOL
        case Char():
            return CHAR
        case Keyword():
            return KEYWORD
        case bytes():
            return Type(BIT["bytevector"])
        case Number():
            return _number_type(datum.text)
        case Vector():
            return vector_of(join_all(map(constant_type, datum.items)), len(datum.items))
        case List():
            return _list_type(datum)
    if datum is UNSPECIFIED:
        return VOID
    return Type(BIT["eof"]) if datum is EOF else ANY


def _number_type(text: str) -> Type:
    """The type of a number that Python has no like of, by its text."""
    if text.lower().endswith("i") or "@" in text:
        return Type(BIT["complex"])
    return FLOAT if "inf" in text or "nan" in text else EXACT


def _list_type(datum: List) -> Type:
    item = flattened(join_all(map(constant_type, datum.items)))
    if datum.tail is None:
        return pair_of(item, list_of(item)) if datum.items else NULL
    kind = constant_type(datum.tail)
    for one in reversed(datum.items):
        kind = pair_of(constant_type(one), kind)
    return kind
