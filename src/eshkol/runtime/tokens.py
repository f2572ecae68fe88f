"""The tokens of a text, from the lexer in C (native/scheme/lexer.c): one lexical grammar for programs and `read`."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from eshkol.runtime.library import native

KINDS = (  # in the order of ESK_TOKENS in lexer.h
    "EOF", "ERROR", "OPEN", "CLOSE", "OPEN_VECTOR", "OPEN_BYTES", "DOT", "QUOTE", "QUASIQUOTE", "UNQUOTE",
    "UNQUOTE_SPLICING", "SYNTAX", "QUASISYNTAX", "UNSYNTAX", "UNSYNTAX_SPLICING", "SYMBOL", "STRING", "CHAR", "NUMBER",
    "TRUE", "FALSE", "KEYWORD", "LABEL", "REFERENCE", "DATUM_COMMENT",
)  # fmt: skip


class Token(NamedTuple):
    """What it is, the characters it was read from, and its content (a name, a string without its escapes)."""

    kind: str
    start: int
    end: int
    text: str


class _Tokens(ctypes.Structure):
    _fields_ = (
        ("tokens", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("text", ctypes.c_void_p),
        ("text_bytes", ctypes.c_int64),
        ("incomplete", ctypes.c_int64),
    )


@cache
def _library() -> ctypes.CDLL:
    library = native()
    library.esk_tokenize.argtypes = (ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(_Tokens))
    library.esk_tokenize.restype = ctypes.c_int64
    library.esk_free_tokens.argtypes = (ctypes.POINTER(_Tokens),)
    library.esk_free_tokens.restype = None
    return library


def tokenize(text: str) -> tuple[list[Token], bool]:
    """All tokens, the last of them EOF or ERROR; and whether the text ends within one (more text may mend it)."""
    encoded = text.encode("utf-8", "surrogatepass")
    library, out = _library(), _Tokens()
    try:
        if library.esk_tokenize(encoded, len(encoded), ctypes.byref(out)) != 0:
            raise MemoryError("a text of this size cannot be read")
        rows = ctypes.string_at(out.tokens, out.count * 20) if out.count else b""
        content = ctypes.string_at(out.text, out.text_bytes) if out.text_bytes else b""
        return list(_unpack(rows, content)), bool(out.incomplete)
    finally:
        library.esk_free_tokens(ctypes.byref(out))


def _unpack(rows: bytes, content: bytes) -> Iterator[Token]:
    make = tuple.__new__  # three times as quick as Token(...)
    for kind, start, end, at, length in struct.iter_unpack("=5I", rows):
        text = content[at : at + length].decode("utf-8", "replace") if length else ""
        yield make(Token, (KINDS[kind], start, end, text))
