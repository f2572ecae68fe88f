"""The lexer and `read`: tokens against tables written from section 7.1.1 of R7RS, data against Python's."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from native import Gaussian, Native
from scheme_data import Char, Pair, SchemeError, Symbol

from batches import of_each
from effort import examples
from eshkol.runtime.scheme import Value
from eshkol.runtime.tokens import Token, tokenize


@pytest.fixture(scope="module")
def scheme() -> Iterator[Native]:
    machine = Native()
    yield machine
    machine.close()


def kinds(text: str) -> list[tuple[str, str]]:
    found, _ = tokenize(text)
    return [(token.kind, token.text) for token in found]


def only(text: str) -> Token:
    """The one token of a text, before its end."""
    found, _ = tokenize(text)
    assert [token.kind for token in found[1:]] == (["EOF"] if found[0].kind != "ERROR" else []), found
    return found[0]


def read_all(scheme: Native, text: str) -> list[Any]:
    port, data = scheme.raw("open-input-string", scheme.value(text)), []
    while not scheme.call("eof-object?", value := scheme.raw("read", port)):
        data.append(scheme.python(value))
    return data


def read(scheme: Native, text: str) -> Any:
    (datum,) = read_all(scheme, text)
    return datum


# ---- tokens

SYMBOLS = """a abc ! $ % & * / < = > ? ^ _ ~ + - ... -> ->x .. .foo .+ +. +.x -. -x +soup+ +i+ +@ @ a.b a@b list->vector
<=? the-word-recursion-has-many-meanings q V17a 1+ -1+ 1x 1.2.3 1/2/3 +inf.0x -nan 1e 1e+ e1 +e1 i a:b : :: ::: ::x
λ été → ∀ x₁ 日本 a#b +inf +infinity 1/ /1 1@ @1 1+2 1i 1/2i 1e5i +1ii ⊕ ℝ x\u0301 +1+1 inf.0 nan.0 1+2i3"""


@of_each("text", SYMBOLS.split())
def test_a_symbol(text: str) -> None:
    assert only(text) == Token("SYMBOL", 0, len(text), text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("||", ""), ("|a b|", "a b"), (r"|a\x41;b|", "aAb"), (r"|\||", "|"), (r"|a\nb|", "a\nb"), (r"|\\|", "\\"),
        ("|:x|", ":x"), ("|1|", "1"), ("|.|", "."), ("|(|", "("), (r"|\t\a\b\r\"|", '\t\a\b\r"'), ("|λ|", "λ"),
        (r"a\x20;b", "a b"), (r"\x31;", "1"), (r"\x2E;", "."), ("|A|", "A"), ("|a\r\nb|", "a\nb"),
        (r"H\x65;llo", "Hello"), (r"|\x3BB;|", "λ"),
    ],
)  # fmt: skip
def test_a_symbol_with_bars_or_escapes(text: str, name: str) -> None:
    assert only(text) == Token("SYMBOL", 0, len(text), name)


NUMBERS = """0 1 -1 +1 007 1. .5 -.5 +.5 1.5 1e3 1.e3 .5e-3 1E3 -1e+3
1/2 -1/2 +1/2 +inf.0 -inf.0 +nan.0 -nan.0 +INF.0 +i -i
1+i 1-i 1+2i 1.5-2.5i 1/2+3/4i +2i -2.5i 1@2 1@-2 -1@+2 +inf.0i 1+inf.0i 1-nan.0i +inf.0@1 1@+inf.0 #x1F #XaB #b101
#o17 #d10 #e1.5 #i1/2 #e#x10 #x#e10 #x-F #xA/B #b-1/10 #x+i #xF+Fi #i+i #e1e3 1/0 #e+inf.0 1e400 #b1+10i #x1@2 #d1.5"""


@of_each("text", NUMBERS.split())
def test_a_number(text: str) -> None:
    assert only(text) == Token("NUMBER", 0, len(text), text)


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ('""', ""), ('"abc"', "abc"), (r'"a\"b"', 'a"b'), (r'"\\"', "\\"), (r'"\a\b\t\n\r\|"', "\a\b\t\n\r|"),
        (r'"\x41;\x3bb;\x1F600;"', "Aλ😀"), ('"a\\\n   b"', "ab"), ('"a\\   \n\t b"', "ab"), ('"a\\\r\n  b"', "ab"),
        ('"a\nb"', "a\nb"), ('"a\r\nb"', "a\nb"), ('"a\rb"', "a\nb"), ('"(;|#"', "(;|#"), ('"λ😀"', "λ😀"),
        ('"a\\\n\n b"', "a\n b"), (r'"\x0;"', "\0"), ('"' + "x" * 100_000 + '"', "x" * 100_000),
    ],
)  # fmt: skip
def test_a_string(text: str, content: str) -> None:
    assert only(text) == Token("STRING", 0, len(text), content)


@of_each("text, char", [
        (r"#\a", "a"), (r"#\A", "A"), (r"#\ ", " "), ("#\\\n", "\n"), (r"#\(", "("), (r"#\)", ")"), (r"#\;", ";"),
        (r"#\x", "x"), (r"#\x41", "A"), (r"#\x3bb", "λ"), (r"#\x10FFFF", "\U0010ffff"), (r"#\λ", "λ"), (r"#\1", "1"),
        (r"#\alarm", "\a"), (r"#\backspace", "\b"), (r"#\delete", "\x7f"), (r"#\escape", "\x1b"), (r"#\tab", "\t"),
        (r"#\newline", "\n"), (r"#\null", "\0"), (r"#\return", "\r"), (r"#\space", " "), (r"#\"", '"'), (r"#\\", "\\"),
        (r"#\'", "'"), (r"#\#", "#"), (r"#\|", "|"), (r"#\x0", "\0"), (r"#\😀", "😀"), (r"#\,", ","), (r"#\.", "."),
    ])  # fmt: skip
def test_a_character(text: str, char: str) -> None:
    assert only(text) == Token("CHAR", 0, len(text), char)


@of_each("text, kind, content", [
        ("(", "OPEN", "("), ("[", "OPEN", "["), (")", "CLOSE", ")"), ("]", "CLOSE", "]"), ("#(", "OPEN_VECTOR", ""),
        ("#u8(", "OPEN_BYTES", ""), ("#U8(", "OPEN_BYTES", ""), (".", "DOT", ""), ("'", "QUOTE", ""),
        ("`", "QUASIQUOTE", ""), (",", "UNQUOTE", ""), (",@", "UNQUOTE_SPLICING", ""), ("#'", "SYNTAX", ""),
        ("#`", "QUASISYNTAX", ""), ("#,", "UNSYNTAX", ""), ("#,@", "UNSYNTAX_SPLICING", ""), ("#t", "TRUE", ""),
        ("#true", "TRUE", ""), ("#T", "TRUE", ""), ("#f", "FALSE", ""), ("#false", "FALSE", ""),
        ("#FALSE", "FALSE", ""), (":axis", "KEYWORD", "axis"), (":1", "KEYWORD", "1"), (":a:b", "KEYWORD", "a:b"),
        (":|a b|", "KEYWORD", "a b"), ("#0=", "LABEL", "0"), ("#12=", "LABEL", "12"), ("#0#", "REFERENCE", "0"),
        ("#;", "DATUM_COMMENT", ""),
    ])  # fmt: skip
def test_other_tokens(text: str, kind: str, content: str) -> None:
    assert only(text) == Token(kind, 0, len(text), content)


@of_each("text, expected", [
        ("a;b\nc", ["a", "c"]), ("; nothing", []), ("a ;b\rc", ["a", "c"]), ("a#|b|#c", None),
        ("a #|b|# c", ["a", "c"]), ("#| #| |# |# a", ["a"]), ("#|||||# a", ["a"]), ("#|#|#|||#|#|# a", ["a"]),
        ("#||# a", ["a"]), ("#!fold-case ABC Straße ΛΣ #!no-fold-case ABC", ["abc", "strasse", "λσ", "ABC"]),
        ("#!FOLD-CASE A", ["a"]), ("#!fold-case |A| a", ["A", "a"]), ("a #!eof b", ["a"]),
        ("#!/usr/bin/env eshkol\na", ["a"]), ("#! /usr/bin/eshkol\na", ["a"]), ("\ufeffa", ["a"]),
        ("a\u00a0b\u3000c\u2028d", ["a", "b", "c", "d"]), ("a\tb\fc\vd\re\n", ["a", "b", "c", "d", "e"]),
        ("a|b|c", ["a", "b", "c"]), ("  ", []), ("", []), ("#!fold-case", []),
    ])  # fmt: skip
def test_what_lies_between_tokens(text: str, expected: list[str] | None) -> None:
    found = kinds(text)
    if expected is None:  # `#` may stand within a symbol, and what follows is then a bar
        assert found[0] == ("SYMBOL", "a#")
        return
    assert found == [("SYMBOL", name) for name in expected] + [("EOF", "")]


def test_fold_case_leaves_characters_and_strings() -> None:
    assert kinds('#!fold-case #\\A "A" :A #T') == [
        ("CHAR", "A"), ("STRING", "A"), ("KEYWORD", "a"), ("TRUE", ""), ("EOF", ""),
    ]  # fmt: skip


@of_each("text, span, words, incomplete", [
        ('x "abc', (2, 3), "string that begins here never ends", True),
        ("x |abc", (2, 3), "symbol that begins here never ends", True),
        ("#| a #| b |#", (0, 1), "comment that begins here never ends", True),
        ('"\\x41', (0, 1), "never ends", True),
        ("#", (0, 1), "ends behind #", True),
        ("#\\", (0, 2), "followed by a character", True),
        ("a #\\foo b", (2, 7), "unknown character name #\\foo", False),
        ("#\\xD800", (0, 7), "no Unicode scalar value", False),
        ("#\\x110000", (0, 9), "no Unicode scalar value", False),
        ('"a\\qb"', (2, 4), "unknown escape", False),
        ('"\\xZZ;"', (1, 3), "hexadecimal", False),
        ('"\\xD800;"', (1, 8), "hexadecimal", False),
        ("#foo", (0, 4), "no datum begins with #foo", False),
        ("#xyz", (0, 4), "not a number: #xyz", False),
        ("#e#e1", (0, 5), "not a number", False),
        ("#!foo", (0, 5), "unknown directive #!foo", False),
        ("#12", (0, 3), "datum label", False),
        ("a “b”", (2, 3), "curly quote", False),
        ("ab\u202ec", (2, 3), "U+202E", False),
        ("a\u200bb", (1, 2), "U+200B", False),
        ("a\0b", (1, 2), "U+0000", False),
        ("a\\b", (1, 2), "backslash", False),
        ("\ufffd", (0, 1), "UTF-8", False),
        ("#<eof>", (0, 1), "no datum begins", False),
        ("#\\" + "y" * 100, (0, 102), "unknown character name #\\" + "y" * 40 + "...", False),
    ])  # fmt: skip
def test_errors_say_what_and_where(text: str, span: tuple[int, int], words: str, incomplete: bool) -> None:
    found, ends_early = tokenize(text)
    error = found[-1]
    assert error.kind == "ERROR"
    assert words in error.text
    assert (error.start, error.end) == span
    assert ends_early == incomplete


def test_a_lone_surrogate_is_one_character() -> None:
    assert [(token.kind, token.start) for token in tokenize('"\ud800\udfff" x')[0]] == [
        ("STRING", 0),
        ("SYMBOL", 5),
        ("EOF", 6),
    ]
    assert tokenize("a \ud800")[0][1].kind == "ERROR"


PIECES = [*SYMBOLS.split(), *NUMBERS.split(), '"a\\x41;b"', "|x y|", "(", ")", "#(", "'", ",@", "#\\space", "#t", "#0="]
GAPS = [" ", "\n", " ; comment λ\n", "#| λ #| |# |# ", "\t", "\u00a0"]


@given(st.lists(st.tuples(st.sampled_from(GAPS), st.sampled_from(PIECES))))
def test_spans_are_those_of_the_text(parts: list[tuple[str, str]]) -> None:
    text = "".join(" " + gap + piece for gap, piece in parts) + " "
    found, _ = tokenize(text)
    assert [text[token.start : token.end] for token in found[:-1]] == [piece for _, piece in parts]
    assert found[-1] == Token("EOF", len(text), len(text), "")


@given(st.text("0123456789+-.eEiI/@abfnxd#", max_size=12))
@example("1/0")
@example("#x0.")
@examples(5000, 1000)
def test_the_lexer_and_string_to_number_agree_on_what_a_number_is(scheme: Native, text: str) -> None:
    found, _ = tokenize(text)
    is_token = len(found) == 2 and found[0].kind == "NUMBER"
    is_number = scheme.python(scheme.raw("string->number", scheme.value(text))) is not False
    assert is_number <= is_token  # some have the form of a number, but there is none: 1/0
    if is_token and not is_number:
        assert re.search(r"/0+(?!\d)|[#][eE]", text), text


# ---- data


@of_each("text, datum", [
        ("abc", Symbol("abc")), ("()", []), ("(a b c)", [Symbol("a"), Symbol("b"), Symbol("c")]),
        ("[a]", [Symbol("a")]), ("(a . b)", Pair(Symbol("a"), Symbol("b"))), ("(1 2 . 3)", Pair(1, Pair(2, 3))),
        ("(1 . (2 . (3 . ())))", [1, 2, 3]), ("[1 . 2]", Pair(1, 2)), ("#()", ()), ("#(1 #(2) (3))", (1, (2,), [3])),
        ("#u8(0 255)", b"\0\xff"), ("#u8()", b""), ("'a", [Symbol("quote"), Symbol("a")]),
        ("`a", [Symbol("quasiquote"), Symbol("a")]), (",a", [Symbol("unquote"), Symbol("a")]),
        (",@a", [Symbol("unquote-splicing"), Symbol("a")]), ("#'a", [Symbol("syntax"), Symbol("a")]),
        ("#`a", [Symbol("quasisyntax"), Symbol("a")]), ("#,a", [Symbol("unsyntax"), Symbol("a")]),
        ("#,@a", [Symbol("unsyntax-splicing"), Symbol("a")]),
        ("''a", [Symbol("quote"), [Symbol("quote"), Symbol("a")]]),
        ("(a,b)", [Symbol("a"), [Symbol("unquote"), Symbol("b")]]), ("(1 #;2 3)", [1, 3]), ("(1 #;(a . b))", [1]),
        ("#;#;1 2 3", 3), ("(1 . #;2 3)", Pair(1, 3)), ("(1 . 2 #;3)", Pair(1, 2)), ("(1 #;'a)", [1]),
        ("#u8(1 #;300 2)", b"\1\2"), ("'#;a b", [Symbol("quote"), Symbol("b")]), ("#;a b", Symbol("b")),
        ('"a\\x41;"', "aA"), ("#\\a", Char(97)), ("#t", True), ("#f", False), ("-12", -12),
        ("123456789012345678", 123456789012345678), ("999999999999999999999", 999999999999999999999), ("-0", 0),
        ("1.5", 1.5), ("#xff", 255), ("+i", Gaussian(0, 1)), ("9223372036854775808", 1 << 63),
        ("-9223372036854775808", -(1 << 63)), ("#0=a", Symbol("a")), ("(#0=a #0#)", [Symbol("a")] * 2),
        ("(#0=(1) #0# . #0#)", [[1], [1], 1]), ("(#0=1 #;#1=2 #1#)", [1, 2]), ("#(#5=x #5#)", (Symbol("x"),) * 2),
        ("(#0=(1) #1=#0# #1#)", [[1]] * 3), ("(|a b| |A|)", [Symbol("a b"), Symbol("A")]),
    ])  # fmt: skip
def test_read(scheme: Native, text: str, datum: object) -> None:
    assert read(scheme, text) == datum


def test_read_one_after_the_other(scheme: Native) -> None:
    assert read_all(scheme, "a(b)'c;d\n #|x|# 1\"s\"#t") == [
        Symbol("a"), [Symbol("b")], [Symbol("quote"), Symbol("c")], 1, "s", True,
    ]  # fmt: skip
    assert read_all(scheme, "") == read_all(scheme, " ; nothing\n") == []
    port = scheme.raw("open-input-string", scheme.value("a(b)c d"))
    scheme.raw("read", port)
    assert scheme.call("read-char", port) == Char(ord("("))  # no more is taken than the datum needs
    assert scheme.call("read", port) == Symbol("b")
    scheme.raw("read-char", port)
    assert scheme.call("read-string", 10, port) == "c d"


def test_fold_case_stays_with_the_port(scheme: Native) -> None:
    assert read_all(scheme, "A #!fold-case A B #!no-fold-case C") == list(map(Symbol, "AabC"))


@of_each("text, words", [
        (")", "line 1, column 1: a closing"), ("(a\n  b", "line 1, column 1: a list that begins here never ends"),
        ("\n [a", "line 2, column 2: a list that begins here never ends: ]"), ("(a]", "line 1, column 3"),
        ("[a)", "line 1, column 3"), ("#(a", "a vector that begins"), ("#u8(1", "a bytevector that begins"),
        ("#u8(256)", "0 to 255"), ("#u8(a)", "0 to 255"), ("#u8(1.0)", "0 to 255"), ("#u8(-1)", "0 to 255"),
        ("(. a)", "a dot"), ("(a .)", "between the dot"), ("(a . b c)", "only one datum"), (". a", "a dot"),
        ("#(a . b)", "a dot"), ("(a . . b)", "a dot"), ("'", "where a datum should follow"),
        ("(a ')", "a datum is missing"), ("(a . b", "a list that begins here never ends"), ("#;", "should follow"),
        ("(a #;)", "a datum is missing"), ("#0=", "should follow"), ("#0#", "no datum before this has the label"),
        ("#0=#0#", "stands for itself"), ("#0=#1=#0#", "stands for itself"), ("(#0=a #0=b)", "another datum already"),
        ("(#0=a) #0#", "no datum before"), ("#99999999999999999999=a", "too big"),
        ('"abc', "line 1, column 1: a string that begins here never ends"),
        ("\n\n  #\\foo", "line 3, column 3: unknown character name"), ("1/0", "no such number"), ("{", "braces"),
        ('"a\nb" )', "line 2, column 4"),
    ])  # fmt: skip
def test_read_errors_say_what_and_where(scheme: Native, text: str, words: str) -> None:
    with pytest.raises(SchemeError) as caught:
        read_all(scheme, text)
    assert caught.value.kind == "read-error"
    assert words in caught.value.message


def test_read_errors_in_a_file_name_it(scheme: Native, tmp_path: Any) -> None:
    path = tmp_path / "data.scm"
    path.write_text("(a\n")
    with pytest.raises(SchemeError, match="never ends") as caught:
        scheme.call("read", scheme.raw("open-input-file", scheme.value(str(path))))
    assert caught.value.irritants == [str(path)]


def test_read_cycles(scheme: Native) -> None:
    def first(text: str) -> Value:
        return scheme.raw("read", scheme.raw("open-input-string", scheme.value(text)))

    def same(a: Value, b: Value) -> bool:
        return (a.tag, a.bits) == (b.tag, b.bits)

    ring = first("#0=(a b . #0#)")
    assert same(ring, scheme.raw("cddr", ring))
    vector = first("#0=#(1 #0# (2 #0#))")
    assert same(vector, scheme.raw("vector-ref", vector, scheme.value(1)))
    assert same(vector, scheme.raw("cadr", scheme.raw("vector-ref", vector, scheme.value(2))))
    two = first("(#0=(1 . #1=(2 #0# . #1#)) #1#)")
    zero, one = scheme.raw("car", two), scheme.raw("cadr", two)
    assert same(one, scheme.raw("cdr", zero))
    assert same(zero, scheme.raw("cadr", one))
    assert same(one, scheme.raw("cddr", one))
    quoted = first("#0='#0#")
    assert same(quoted, scheme.raw("cadr", quoted))
    chain = first("#0=(#1=#0# #1#)")
    assert same(chain, scheme.raw("car", chain))
    assert same(chain, scheme.raw("cadr", chain))


@pytest.mark.parametrize(
    ("opening", "inner", "closing"), [("(", "x", ")"), ("#(", "1", ")"), ("'", "x", ""), ("(x . ", "y", ")")]
)
def test_read_deep_data(scheme: Native, opening: str, inner: str, closing: str) -> None:
    depth = 200_000
    text = opening * depth + inner + closing * depth
    value = scheme.raw("read", scheme.raw("open-input-string", scheme.value(text)))
    shown = scheme.call("%text", value, 1)
    plain = {"'": "(quote " * depth + inner + ")" * depth, "(x . ": "(" + "x " * depth + ". y)"}
    assert shown == plain.get(opening, text)


def test_many_labels(scheme: Native) -> None:
    count = 20_000
    text = (
        "(" + " ".join(f"#{i}=({i})" for i in range(count)) + " . (" + " ".join(f"#{i}#" for i in range(count)) + "))"
    )
    assert read(scheme, text) == [[i] for i in range(count)] * 2


@given(st.one_of(st.text(), st.text("()[]{}#\\|\"';,.`@:!x01 \n")))
@examples(3000, 500)
def test_no_text_does_harm(scheme: Native, text: str) -> None:
    found, incomplete = tokenize(text)
    assert found[-1].kind in ("EOF", "ERROR")
    assert found[-1].kind == "ERROR" or not incomplete
    assert all(0 <= token.start <= token.end <= len(text) for token in found)
    kinds_of_error = set()
    try:
        read_all(scheme, text)
    except SchemeError as error:
        kinds_of_error.add(error.kind)
    assert kinds_of_error <= {"read-error"}


def test_constants_cannot_be_changed(scheme: Native) -> None:
    room = 8
    out = (Value * room)()  # no roots: nothing is collected meanwhile
    text = b'"abc" #(1 "x") #u8(1) (a "b") 5'
    long, pointer = ctypes.c_int64, ctypes.c_void_p
    function = scheme.library.esk_read_all
    function.restype, function.argtypes = long, (pointer, ctypes.c_char_p, long, pointer, long, long)
    assert function(scheme.context, text, len(text), out, room, 1) == 5
    for name, args in (
        ("string-set!", (out[0], 0, Char(97))),
        ("vector-set!", (out[1], 0, 1)),
        ("bytevector-u8-set!", (out[2], 0, 1)),
    ):
        with pytest.raises(SchemeError, match="constant"):
            scheme.call(name, *args)
    assert scheme.python(out[3]) == [Symbol("a"), "b"]
    assert scheme.python(out[4]) == 5
    assert function(scheme.context, text, len(text), out, room, 0) == 5
    scheme.call("string-set!", out[0], 0, Char(122))
    assert scheme.python(out[0]) == "zbc"
