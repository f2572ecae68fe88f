"""Characters and strings of the runtime, against Python's str and its Unicode database."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scheme_data import UNSPECIFIED, Char, Scheme, SchemeError

from effort import FULL, examples

sys.path.insert(0, str(Path(__file__).parents[2]))
from build_support import unicode_tables

SAME_UNICODE = f'"{unicodedata.unidata_version}"' in unicode_tables.TARGET.read_text()[:400]
CODES = [code for code in range(0x110000) if not 0xD800 <= code < 0xE000]
LOOKED_AT = CODES if FULL else [*range(0x800), *CODES[0x800::41]]
SPECIAL = "ßŉǰΐΰևẖẗẘẙẚẞὐᾀᾳᾼῂΣσςİıſKÅﬁﬃﬓǅǆȺꭰᏸ𐐀'.\u0301\u00ad\u0345"
texts = st.text(
    st.one_of(st.sampled_from("aAbBzZ09 _" + SPECIAL), st.characters(exclude_categories=["Cs"])), max_size=20
)
few = st.text(st.sampled_from("ab"), max_size=12)


@pytest.fixture(scope="module")
def scheme() -> Iterator[Scheme]:
    machine = Scheme()
    yield machine
    machine.close()


def failure(scheme: Scheme, name: str, *args: object) -> SchemeError:
    with pytest.raises(SchemeError) as caught:
        scheme.call(name, *args)
    return caught.value


# ---- characters


def flags(scheme: Scheme, name: str) -> list[int]:
    tag = scheme.tag["CHAR"]
    raw, value = scheme.raw, type(scheme.value(0))
    return [code for code in LOOKED_AT if raw(name, value(tag, code)).bits]


@pytest.mark.skipif(not SAME_UNICODE, reason="the tables are of another version of Unicode than this Python")
def test_classes_of_characters(scheme: Scheme) -> None:
    extra = unicode_tables.other_alphabetic()
    for name, holds in (
        ("char-upper-case?", str.isupper),
        ("char-lower-case?", str.islower),
        ("char-numeric?", lambda c: unicodedata.category(c) == "Nd"),
        (
            "char-alphabetic?",
            lambda c: unicodedata.category(c) in {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"} or ord(c) in extra,
        ),
        ("char-whitespace?", lambda c: c.isspace() and not 0x1C <= ord(c) <= 0x1F),
    ):
        assert flags(scheme, name) == [code for code in LOOKED_AT if holds(chr(code))], name


def test_alphabetic_beyond_letters(scheme: Scheme) -> None:
    for code, expected in (
        (0x345, True),
        (0x24B6, True),
        (0x2160, True),
        (0x1F130, True),
        (0x301, False),
        (0x41, True),
    ):
        assert scheme.call("char-alphabetic?", Char(code)) is expected


@given(st.characters(exclude_categories=["Cs", "Cn"]))
@examples(2000, 300)
def test_simple_case(scheme: Scheme, character: str) -> None:
    code = Char(ord(character))
    for name, mapped in (
        ("char-upcase", character.upper()),
        ("char-downcase", character.lower()),
        ("char-foldcase", character.casefold()),
    ):
        if len(mapped) == 1:
            assert scheme.call(name, code) == Char(ord(mapped))


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("char-upcase", "ß", "ß"), ("char-foldcase", "ß", "ß"), ("char-foldcase", "ẞ", "ß"), ("char-upcase", "ᾀ", "ᾈ"),
        ("char-downcase", "ᾈ", "ᾀ"), ("char-foldcase", "ᾈ", "ᾀ"), ("char-upcase", "ᾳ", "ᾼ"),
        ("char-downcase", "İ", "i"), ("char-foldcase", "İ", "İ"), ("char-foldcase", "ς", "σ"),
        ("char-upcase", "ŉ", "ŉ"), ("char-foldcase", "K", "k"),
        ("char-upcase", "ÿ", "Ÿ"), ("char-downcase", "Σ", "σ"), ("char-upcase", "ǆ", "Ǆ"), ("char-foldcase", "ꭰ", "Ꭰ"),
    ],
)  # fmt: skip
def test_simple_case_where_the_full_mapping_is_longer(scheme: Scheme, name: str, code: str, expected: str) -> None:
    assert scheme.call(name, Char(ord(code))) == Char(ord(expected))


def test_numbers_of_characters(scheme: Scheme) -> None:
    for code in (0, 65, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF):
        assert scheme.call("integer->char", code) == Char(code)
        assert scheme.call("char->integer", Char(code)) == code
    for wrong in (-1, 0xD800, 0xDFFF, 0x110000, 1 << 40, 1 << 80, 65.0, "A"):
        error = failure(scheme, "integer->char", wrong)
        assert (error.kind, error.who, error.irritants) == ("wrong-type", "integer->char", [wrong])
    assert [scheme.call("digit-value", Char(ord(c))) for c in "07٣०x½⁵"] == [0, 7, 3, 0, False, False, False]


def test_order_of_characters(scheme: Scheme) -> None:
    a, b, capital = Char(97), Char(98), Char(65)
    assert scheme.call("char<?", a, b) is True
    assert scheme.call("char<?", a, b, b) is False
    assert scheme.call("char<=?", a, b, b) is True
    assert scheme.call("char>?", b, a, capital) is True
    assert scheme.call("char>=?", a, a, b) is False
    assert scheme.call("char=?", a) is True
    assert scheme.call("char-ci=?", a, capital, a) is True
    assert scheme.call("char-ci<?", capital, b) is True
    error = failure(scheme, "char<?", b, a, 5)
    assert (error.who, error.irritants) == ("char<?", [5])
    assert "argument 3" in error.message


# ---- strings


@given(texts)
@examples(1000, 200)
def test_full_case(scheme: Scheme, text: str) -> None:
    assert scheme.call("string-upcase", text) == text.upper()
    assert scheme.call("string-downcase", text) == text.lower()
    assert scheme.call("string-foldcase", text) == text.casefold()


@pytest.mark.skipif(not SAME_UNICODE, reason="the tables are of another version of Unicode than this Python")
def test_full_case_of_every_character(scheme: Scheme) -> None:
    text = "\n".join(chr(code) for code in CODES)
    assert scheme.call("string-upcase", text) == text.upper()
    assert scheme.call("string-downcase", text) == text.lower()
    assert scheme.call("string-foldcase", text) == text.casefold()


@pytest.mark.skipif(not SAME_UNICODE, reason="the tables are of another version of Unicode than this Python")
def test_final_sigma_beside_every_character(scheme: Scheme) -> None:
    for pattern in ("A{}Σ ", "1{}Σ ", "AΣ{}A "):
        text = "".join(pattern.format(chr(code)) for code in CODES[:: 1 if FULL else 7])
        assert scheme.call("string-downcase", text) == text.lower()


@given(texts, texts)
@examples(500, 150)
def test_order(scheme: Scheme, a: str, b: str) -> None:
    for ci, key in (("", str), ("-ci", str.casefold)):
        x, y = key(a), key(b)
        assert scheme.call(f"string{ci}=?", a, b) is (x == y)
        assert scheme.call(f"string{ci}<?", a, b) is (x < y)
        assert scheme.call(f"string{ci}>?", a, b) is (x > y)
        assert scheme.call(f"string{ci}<=?", a, b) is (x <= y)
        assert scheme.call(f"string{ci}>=?", a, b) is (x >= y)


@given(texts)
def test_hashes_agree_with_order(scheme: Scheme, text: str) -> None:
    assert scheme.call("string-hash", text) == scheme.call("string-hash", str(text))
    assert scheme.call("string-ci-hash", text) == scheme.call("string-ci-hash", text.casefold())
    assert scheme.call("string-hash", text) == scheme.call("string-hash", text, 1 << 90)
    assert 0 <= scheme.call("string-ci-hash", text, 10) < 10


def test_order_of_several(scheme: Scheme) -> None:
    assert scheme.call("string<?", "a", "b", "c") is True
    assert scheme.call("string<?", "a", "c", "b") is False
    assert scheme.call("string-ci=?", "Straße", "STRASSE", "strasse") is True
    error = failure(scheme, "string<?", "b", "a", Char(97))
    assert "argument 3" in error.message


@given(st.data(), texts)
@examples(500, 150)
def test_parts(scheme: Scheme, data: st.DataObject, text: str) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    part = text[start:end]
    assert scheme.call("substring", text, start, end) == part
    assert scheme.call("string-copy", text, start) == text[start:]
    assert scheme.call("string->list", text, start, end) == [Char(ord(c)) for c in part]
    assert scheme.call("string->vector", text, start, end) == tuple(Char(ord(c)) for c in part)
    assert scheme.call("list->string", [Char(ord(c)) for c in part]) == part
    assert scheme.call("vector->string", tuple(Char(ord(c)) for c in text), start, end) == part
    assert scheme.call("string", *[Char(ord(c)) for c in part]) == part
    assert scheme.call("string->utf8", text, start, end) == part.encode()
    encoded = text.encode()
    assert scheme.call("utf8->string", encoded, len(text[:start].encode())) == text[start:]
    assert scheme.call("string-reverse", text, start, end) == part[::-1]
    assert scheme.call("string-append", part, text, "") == part + text
    assert scheme.call("string-append") == ""
    assert scheme.call("string-length", text) == len(text)
    if start < len(text):
        assert scheme.call("string-ref", text, start) == Char(ord(text[start]))


@given(st.data(), st.text("abc", max_size=8), st.text("xyz", max_size=8))
def test_changing(scheme: Scheme, data: st.DataObject, to: str, source: str) -> None:
    start = data.draw(st.integers(0, len(source)))
    end = data.draw(st.integers(start, len(source)))
    at = data.draw(st.integers(0, len(to)))
    string = scheme.value(to)
    if end - start > len(to) - at:
        assert failure(scheme, "string-copy!", string, at, source, start, end).kind == "range"
        assert scheme.python(string) == to
    else:
        assert scheme.call("string-copy!", string, at, source, start, end) is UNSPECIFIED
        assert scheme.python(string) == to[:at] + source[start:end] + to[at + end - start :]
    filled = scheme.value(source)
    scheme.call("string-fill!", filled, Char(0x1F600), start, end)
    assert scheme.python(filled) == source[:start] + "\U0001f600" * (end - start) + source[end:]
    if source:
        scheme.call("string-set!", filled, len(source) - 1, Char(33))
        assert scheme.python(filled)[-1] == "!"


def test_copying_within_one_string(scheme: Scheme) -> None:
    for at, start, end, expected in ((2, 0, 4, "ababcdgh"), (0, 2, 6, "cdefefgh")):
        string = scheme.value("abcdefgh")
        scheme.call("string-copy!", string, at, string, start, end)
        assert scheme.python(string) == expected


def test_literals_are_not_changed(scheme: Scheme) -> None:
    literal = scheme.literal("abc")
    for call in (
        ("string-set!", literal, 0, Char(120)),
        ("string-fill!", literal, Char(120)),
        ("string-copy!", literal, 0, "x"),
    ):
        error = failure(scheme, *call)
        assert "constant" in error.message
        assert error.irritants == ["abc"]
    assert scheme.python(literal) == "abc"


@given(st.binary(max_size=12))
@examples(1000, 300)
def test_invalid_utf8_is_refused(scheme: Scheme, data: bytes) -> None:
    try:
        expected = data.decode()
    except UnicodeDecodeError as error:
        place = error.start
        found = failure(scheme, "utf8->string", data)
        assert (found.kind, found.irritants) == ("range", [place, data])
    else:
        assert scheme.call("utf8->string", data) == expected


@pytest.mark.parametrize(
    ("call", "kind", "position"),
    [
        (("string-ref", "abc", 3), "range", 2), (("string-ref", "abc", -1), "range", 2),
        (("string-ref", "abc", 1 << 70), "range", 2), (("string-ref", "abc", 1.0), "wrong-type", 2),
        (("string-ref", 5, 0), "wrong-type", 1), (("string-length", [1]), "wrong-type", 1),
        (("substring", "abc", 4), "range", 2), (("substring", "abc", 0, 4), "range", 3),
        (("string-append", "a", Char(97)), "wrong-type", 2), (("make-string", -1), "wrong-type", 1),
        (("make-string", 2, "a"), "wrong-type", 2), (("list->string", [Char(97), 98]), "wrong-type", 1),
        (("string", Char(97), "b"), "wrong-type", 2), (("string-join", ["a", 1], ","), "wrong-type", 1),
        (("string-split", "abc", ""), "wrong-type", 2), (("string-upcase", Char(97)), "wrong-type", 1),
        (("string->utf8", "abc", 2, 9), "range", 3), (("vector->string", (1,)), "wrong-type", 1),
    ],
)  # fmt: skip
def test_errors(scheme: Scheme, call: tuple[object, ...], kind: str, position: int) -> None:
    name, *args = call
    error = failure(scheme, str(name), *args)
    assert (error.kind, error.who, error.irritants) == (kind, name, [args[position - 1]])
    assert f"argument {position}" in error.message


def test_sizes_beyond_memory(scheme: Scheme) -> None:
    for size in (1 << 62, 1 << 70, 1 << 40, (1 << 40) - 1):
        for name in ("make-string", "make-vector", "make-bytevector"):
            assert failure(scheme, name, size).kind == "out-of-memory"


# ---- searching, cutting, joining


@given(few, few)
@examples(1000, 200)
def test_searching(scheme: Scheme, text: str, pattern: str) -> None:
    def found(index: int) -> int | bool:
        return False if index < 0 else index

    assert scheme.call("string-contains", text, pattern) == found(text.find(pattern))
    assert scheme.call("string-contains-right", text, pattern) == found(text.rfind(pattern))
    assert scheme.call("string-search-forward", pattern, text, 0) == found(text.find(pattern))
    backward = text.rfind(pattern)
    assert scheme.call("string-search-backward", pattern, text, len(text)) == found(
        backward if backward < 0 else backward + len(pattern)
    )
    assert scheme.call("string-prefix?", pattern, text) is text.startswith(pattern)
    assert scheme.call("string-suffix?", pattern, text) is text.endswith(pattern)
    assert scheme.call("string-index", text, Char(97)) == found(text.find("a"))
    assert scheme.call("string-index-right", text, Char(97)) == found(text.rfind("a"))
    assert scheme.call("string-null?", text) is (not text)
    if pattern:
        assert scheme.call("string-split", text, pattern) == text.split(pattern)


def test_searching_takes_linear_time(scheme: Scheme) -> None:
    text, pattern = "a" * 200_000, "a" * 50_000 + "b" + "a" * 50_000
    assert scheme.call("string-contains", text, pattern) is False
    assert scheme.call("string-contains-right", text, pattern) is False
    text = "a" * 90_000 + pattern + "a" * 100
    assert scheme.call("string-contains", text, pattern) == 90_000
    assert scheme.call("string-contains-right", "b" + text, pattern) == 90_001


@given(st.lists(texts, max_size=5), texts)
@examples(300, 100)
def test_joining(scheme: Scheme, pieces: list[str], delimiter: str) -> None:
    assert scheme.call("string-join", pieces, delimiter) == delimiter.join(pieces)
    assert scheme.call("string-join", pieces) == " ".join(pieces)
    assert scheme.call("string-join", pieces, Char(44)) == ",".join(pieces)
    assert scheme.call("string-concatenate", pieces) == "".join(pieces)


@given(st.text(" \t\u3000ab", max_size=12), st.integers(0, 15))
def test_cutting(scheme: Scheme, text: str, width: int) -> None:
    assert scheme.call("string-split", text) == text.split()
    assert scheme.call("string-trim", text) == text.strip()
    assert scheme.call("string-trim-left", text) == text.lstrip()
    assert scheme.call("string-trim-right", text) == text.rstrip()
    assert scheme.call("string-trim", text, "a ") == text.strip("a ")
    assert scheme.call("string-trim", text, Char(97)) == text.strip("a")
    assert scheme.call("string-pad-left", text, width) == text.rjust(width)[max(0, len(text) - width) :]
    assert scheme.call("string-pad-right", text, width, Char(46)) == text.ljust(width, ".")[:width]


# ---- the tables


@pytest.mark.skipif(not SAME_UNICODE, reason="the tables are of another version of Unicode than this Python")
@pytest.mark.slow
def test_the_tables_are_what_the_script_writes() -> None:
    assert Path(unicode_tables.TARGET).read_text() == unicode_tables.text()
    assert Path(unicode_tables.CLASSES).read_text() == unicode_tables.classes()


def test_the_list_of_alphabetic_characters_is_in_order() -> None:
    codes = [int(code, 16) for code in re.findall(r"[0-9A-F]+", unicode_tables.OTHER_ALPHABETIC)]
    assert codes == sorted(set(codes))
    assert all(unicodedata.category(chr(code)) in {"Mn", "Mc", "So", "Cn"} for code in codes)
