"""The services of the library against Python's own modules: JSON, CSV, digests, encodings, dates, files, paths, texts.

Each test hands many inputs to one procedure of Scheme, which gives what Python can compare.
"""

from __future__ import annotations

import base64
import binascii
import csv
import datetime
import glob
import hashlib
import io
import json
import math
import os
import posixpath
import random
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from compiled import in_session, outcome
from hypothesis import given
from hypothesis import strategies as st
from native import Native
from scheme_data import SchemeError, Symbol

import eshkol as ek
from effort import examples
from eshkol.runtime import scheme_table
from eshkol.session import Session


@cache
def scheme(text: str, *libraries: str) -> Callable[..., Any]:
    """What an expression gives in an environment of its own: the names of the tests' session stay as they are."""
    sets = " ".join(f"({name})" for name in ("scheme base", *libraries))
    return ek.eval(f"(lambda () (eval '{text} (environment {' '.join(chr(39) + one for one in sets_of(sets))})))")()


def sets_of(text: str) -> list[str]:
    return [part + ")" for part in text.split(")") if part.strip()]


# ---- JSON

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)
AGAIN = "(lambda (text indent ascii) (json->string (string->json text) :indent indent :ascii ascii))"


def same(a: Any, b: Any) -> bool:
    return type(a) is type(b) and (
        a == b
        if not isinstance(a, list | dict)
        else len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
        if isinstance(a, list)
        else list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    )


@examples(600, 60)
@given(VALUES, st.booleans(), st.booleans(), st.sampled_from([None, 0, 1, 3]))
def test_json_means_what_python_means(value: Any, ascii: bool, ours_ascii: bool, indent: int | None) -> None:
    again = scheme(AGAIN, "eshkol json")
    text = json.dumps(value, ensure_ascii=ascii, indent=indent)
    written = again(text, False if indent is None else indent, ours_ascii)
    assert same(json.loads(written), value)
    assert written.isascii() or not ours_ascii


JUDGE = """(lambda (text)
  (call/cc (lambda (leave)
    (with-exception-handler
      (lambda (condition) (leave (if (read-error? condition) #f 'crashed)))
      (lambda () (json->string (string->json text)))))))"""


def strictly(text: str) -> Any:
    """What Python makes of a text without what is not in RFC 8259; ValueError where it is no JSON."""

    def no(word: str) -> Any:
        raise ValueError(word)

    value = json.loads(text, parse_constant=no)
    json.dumps(value, allow_nan=False)  # numbers beyond doubles are infinite
    json.dumps(value, ensure_ascii=False).encode()  # halves of surrogate pairs
    return value


def mutated(chance: random.Random) -> str:
    pieces = [
        *'{}[]:,"\\0123456789-+.eE tfnul/\n\t\x01é',
        "true",
        "null",
        '"a"',
        "\\u00e9",
        "\\ud83d\\ude00",
        "\\ud800",
        "1e5",
    ]
    value = {"a": [1, -2.5, True, None, "xé\n\\"], "b": {"": [[], {}]}, "c": 12345678901234567890, "d": 1e-7}
    text = json.dumps(value, indent=chance.choice([None, 1]))
    for _ in range(chance.choice([0, 1, 1, 2, 5])):
        start = chance.randrange(len(text) + 1)
        stop = min(len(text), start + chance.choice([0, 0, 1, 3]))
        text = text[:start] + chance.choice([*pieces, ""]) + text[stop:]
    return text[: chance.randrange(len(text) + 1)] if chance.random() < 0.1 else text


def test_json_refuses_what_python_refuses() -> None:
    judge, chance, taken = scheme(JUDGE, "eshkol json"), random.Random(1), 0
    texts = [mutated(chance) for _ in range(1500)]
    texts += ["".join(chance.choices('{}[]:,"\\01-.eE tfnu', k=chance.randrange(12))) for _ in range(1500)]
    for text in texts:
        try:
            expected = strictly(text)
        except (ValueError, UnicodeEncodeError):
            assert judge(text) is False, text
        else:
            assert same(json.loads(judge(text)), expected), text
            taken += 1
    assert 200 < taken < 2000


# ---- CSV

FIELDS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6) | st.text('",\r\n a;')
ROWS = st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=5)


@examples(400, 50)
@given(ROWS, st.sampled_from(",;\t"))
def test_csv_is_read_and_written_as_python_does(rows: list[list[str]], separator: str) -> None:
    read = scheme("(lambda (text mark) (string->csv text :separator (string-ref mark 0)))", "eshkol csv")
    write = scheme("(lambda (rows mark) (csv->string rows :separator (string-ref mark 0)))", "eshkol csv")
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter=separator).writerows(rows)
    assert [list(row) for row in read(stream.getvalue(), separator)] == rows
    written = write(rows, separator)
    assert list(csv.reader(io.StringIO(written, newline=""), delimiter=separator)) == rows


# ---- digests and encodings


def test_digests_are_those_of_hashlib(tmp_path: Path) -> None:
    chance = random.Random(2)
    names = ("eshkol digests", "scheme file")
    digests = scheme("(lambda (data) (list (sha256 data) (sha1 data) (md5 data) (crc32 data)))", *names)
    of_file = scheme(
        "(lambda (path) (list (file-sha256 path) (let* ((port (open-binary-input-file path)) (found (md5 port)))"
        " (close-port port) found)))",
        *names,
    )
    for length in [*range(140), 1000, 4096, 65535, 65536, 65537, 200_001]:
        data = chance.randbytes(length)
        expected = [getattr(hashlib, name)(data).digest() for name in ("sha256", "sha1", "md5")]
        assert [bytes(one) for one in digests(data)] == [*expected, zlib.crc32(data).to_bytes(4, "big")]
        if length > 100:
            (tmp_path / "data").write_bytes(data)
            assert [bytes(one) for one in of_file(str(tmp_path / "data"))] == [expected[0], expected[2]]
    assert bytes(digests("é")[0]) == hashlib.sha256("é".encode()).digest()


@examples(300, 60)
@given(st.binary(max_size=40), st.text("ABab01+/-_= \n*é", max_size=10))
def test_encodings_are_those_of_python(data: bytes, text: str) -> None:
    libraries = ("eshkol encodings",)
    encode = scheme(
        "(lambda (data) (list (base64-encode data) (base64-encode data :url #t) (hex-encode data)))", *libraries
    )
    decode = scheme("(lambda (text) (base64-decode text))", *libraries)
    plain, url, digits = encode(data)
    assert plain == base64.b64encode(data).decode()
    assert url == base64.urlsafe_b64encode(data).decode().rstrip("=")
    assert digits == data.hex()
    assert bytes(decode(plain)) == bytes(decode(url)) == data
    assert bytes(scheme("hex-decode", *libraries)(digits.upper())) == data
    try:
        found = bytes(decode(text))
    except ek.EshkolError:
        return
    clean = "".join(text.split()).replace("-", "+").replace("_", "/").rstrip("=")
    try:
        assert base64.b64decode(clean + "=" * (-len(clean) % 4), validate=True) == found
    except binascii.Error as refused:
        raise AssertionError(text) from refused


def test_random_bytes_are_random() -> None:
    some = scheme("random-bytes", "eshkol digests")
    assert [len(bytes(some(n))) for n in (0, 1, 255, 256, 257, 5000)] == [0, 1, 255, 256, 257, 5000]
    assert bytes(some(32)) != bytes(some(32))
    counts = [bytes(some(100_000)).count(value) for value in range(256)]
    assert 250 < min(counts) <= max(counts) < 550


# ---- dates

MOMENTS = st.datetimes(datetime.datetime(1, 1, 2), datetime.datetime(9999, 12, 30)).map(
    lambda moment: moment.replace(microsecond=0, tzinfo=datetime.UTC)
)
DIRECTIVES = "aAbBdHIjmMpSUVwWyY"


@examples(500, 80)
@given(MOMENTS, st.integers(-14 * 60, 14 * 60))
def test_dates_are_those_of_python(moment: datetime.datetime, minutes: int) -> None:
    show = scheme(
        "(lambda (seconds offset format) (date->string (time-utc->date (make-time time-utc 0 seconds) offset) format))",
        "srfi 19",
    )
    back = scheme(
        '(lambda (text) (let ((date (string->date text "~4"))) (list (time-second (date->time-utc date))'
        " (date-zone-offset date) (date->modified-julian-day date) (time-second (time-tai->time-utc (date->time-tai"
        " date))))))",
        "srfi 19",
    )
    since = int((moment - datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)).total_seconds())
    local = moment.astimezone(datetime.timezone(datetime.timedelta(minutes=minutes)))
    expected = [local.strftime(f"%{c}") for c in DIRECTIVES]
    expected[-1] = expected[-1].zfill(4)
    assert show(since, 60 * minutes, "|".join(f"~{c}" for c in DIRECTIVES)).split("|") == expected
    text = show(since, 60 * minutes, "~4")
    assert datetime.datetime.fromisoformat(text) == moment
    seconds, offset, day, through_tai = back(text)
    assert (seconds, offset, through_tai) == (since, 60 * minutes, since)
    assert math.floor(day) == moment.toordinal() - datetime.date(1858, 11, 17).toordinal()


# ---- numbers in texts


@examples(500, 80)
@given(st.floats(allow_nan=False, allow_infinity=False, min_value=-1e30, max_value=1e30), st.integers(0, 12))
def test_fixed_numbers_are_those_of_python(number: float, digits: int) -> None:
    assert scheme("fixed-text", "eshkol interpolation")(number, digits) == f"{number:.{digits}f}"


# ---- files and paths


@examples(400, 80)
@given(st.lists(st.sampled_from(["a", "b.c", ".x", "..", ".", "", "x.tar.gz", "...", "n."]), min_size=1, max_size=5))
def test_paths_are_those_of_python(parts: list[str]) -> None:
    taken = scheme(
        "(lambda (path) (list (path-normalize path) (path-stem path) (path-extension path) (path-absolute? path)))",
        "eshkol files",
    )
    path = "/".join(parts)
    if path.startswith("//"):  # POSIX lets two slashes mean something else
        path = path[1:].lstrip("/").join(["/", ""])
    name = posixpath.basename(path.rstrip("/")) if path.strip("/") else ""
    stem, extension = posixpath.splitext(name)
    if extension == ".":  # a dot at the end begins no extension
        stem, extension = name, ""
    assert list(taken(path)) == [posixpath.normpath(path), stem, extension, path.startswith("/")]


def test_patterns_find_what_python_finds(tmp_path: Path) -> None:
    chance = random.Random(3)
    names = ["a", "ab", "abc", "b.py", "a.py", ".hidden", "x[1]", "B", "a-b", "z!"]
    for _ in range(60):
        place = tmp_path.joinpath(*chance.choices(names[:6], k=chance.randrange(3)), chance.choice(names))
        place.parent.mkdir(parents=True, exist_ok=True) if not any(p.is_file() for p in place.parents) else None
        if place.parent.is_dir() and not place.exists():
            place.write_text("") if chance.random() < 0.6 else place.mkdir()
    find = scheme("glob", "eshkol files")
    parts = ["*", "?", "a*", "*.py", "[ab]*", "[!a]*", "**", ".*", "a", "ab", "*b*c", "x[[]1]", "[a-z]", "[]", "*[!.]*"]
    for _ in range(400):
        pattern = "/".join(chance.choices(parts, k=chance.choice([1, 2, 2, 3])))
        if pattern.endswith("**"):
            continue  # Python gives the folder itself, too
        expected = sorted(set(glob.glob(f"{tmp_path}/{pattern}", recursive=True)))
        assert list(find(f"{tmp_path}/{pattern}")) == expected, pattern


def test_files_come_and_go(tmp_path: Path) -> None:
    work = scheme(
        """(lambda (root)
          (define (at . parts) (apply path-join root parts))
          (create-directory (at "a" "b") :parents #t)
          (create-directory (at "a" "b") :parents #t)
          (write-file (at "a" "b" "text") "one\\n")
          (append-to-file (at "a" "b" "text") "zwölf")
          (set-file-mode! (at "a" "b" "text") #o640)
          (copy-file (at "a" "b" "text") (at "a" "copy"))
          (create-link "copy" (at "a" "link"))
          (create-link "nowhere" (at "a" "broken"))
          (create-link root (at "a" "loop"))
          (let* ((info (file-info (at "a" "link")))
                 (facts (list (read-file (at "a" "copy")) (symbol->string (file-info-kind info)) (file-info-size info)
                              (file-info-mode info) (file-link? (at "a" "link")) (file-info (at "a" "broken"))
                              (file-link? (at "a" "broken")) (read-link (at "a" "link"))
                              (string=? (real-path (at "a" "loop" "a" "copy")) (real-path (at "a" "copy")))
                              (exact (floor (file-info-modified info)))
                              (reverse (directory-fold (lambda (path all) (cons (path-name path) all)) '() root)))))
            (delete-directory (at "a") :recursive #t)
            (append facts (list (directory-list root)))))""",
        "eshkol files",
    )
    before = int(tmp_path.stat().st_mtime)
    *facts, modified, walked, left = work(str(tmp_path))
    assert facts == ["one\nzwölf", "file", 10, 0o640, True, False, True, "copy", True]
    assert before - 2 <= modified <= before + 600
    assert list(walked) == ["a", "b", "text", "broken", "copy", "link", "loop"]
    assert list(left) == []
    assert tmp_path.is_dir()


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ('(read-file "{root}/none")', "No such file or directory"),
        ('(create-directory "{root}")', "File exists"),
        ('(create-directory "{root}/x/y")', "No such file or directory"),
        ('(directory-list "{root}/none")', "No such file or directory"),
        ('(delete-directory "{root}")', "Directory not empty"),
        ('(copy-file "{root}/file" "{root}/file" :replace #t)', "the same file"),
        ('(copy-file "{root}/file" "{root}/other")', ":replace #t overwrites"),
        ('(copy-file "{root}" "{root}/new")', "files are copied"),
        ('(file-size "{root}/none")', "no such file"),
        ('(file-info "{root}/file/inside\\x0;")', "null"),
        ('(set-environment-variable! "a=b" "c")', "has no ="),
        ('(set-file-mode! "{root}/file" 70000)', "set-file-mode!"),
        ('(directory-list "{root}/odd")', "not UTF-8"),
        ('(create-temporary-file :in "{root}/none")', "No such file or directory"),
        ('(read-link "{root}/file")', "Invalid argument"),
    ],
)
def test_errors_name_the_path_and_the_reason(tmp_path: Path, call: str, says: str) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "other").write_text("y")
    (tmp_path / "odd").mkdir()
    os.close(os.open(os.fsencode(tmp_path / "odd") + b"/\xff", os.O_CREAT | os.O_WRONLY))
    with pytest.raises(ek.EshkolError) as raised:
        scheme(f"(lambda () {call.format(root=tmp_path)})", "eshkol files")()
    assert says in str(raised.value)


def test_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_TEST_VALUE", "one")
    change = scheme(
        """(lambda ()
          (let ((before (get-environment-variable "ESHKOL_TEST_VALUE")))
            (set-environment-variable! "ESHKOL_TEST_VALUE" "zwölf")
            (let ((after (get-environment-variable "ESHKOL_TEST_VALUE")))
              (set-environment-variable! "ESHKOL_TEST_VALUE" #f)
              (list before after (get-environment-variable "ESHKOL_TEST_VALUE")))))""",
        "eshkol files",
    )
    assert list(change()) == ["one", "zwölf", False]


# ---- contracts


def test_a_broken_contract_stands_at_the_call() -> None:
    program = (
        "(import (eshkol) (eshkol contracts))\n(define/contract (half (x : number?)) : number? (/ x 2))\n"
        "(define (use y)\n  (list 1 (half y)))\n(use 'a)\n"
    )

    def work(session: Session) -> None:
        error = outcome(session, program, "<blame>").error or ""
        assert "the caller broke the contract: x must be number?, but is a" in error
        assert "<blame>:4:" in error

    in_session(work)


# ---- hostile arguments

TABLES = ("%file-", "%directory-", "%create-", "%delete-directory", "%set-", "%read-link", "%real-path", "%append-",
          "%random-bytes", "%local-zone", "%clock-", "%spawn", "%process-", "%communicate", "%sleep", "%tcp-",
          "%port-deadline", "%digest-", "%base64-", "%hex-")  # fmt: skip


def test_primitives_refuse_what_they_cannot_use() -> None:
    """Values of other types, numbers out of range and damaged digests are errors and never a crash."""
    machine, chance = Native(), random.Random(5)
    values: list[Any] = [True, False, -1, 3, 2**40, 2**70, -(2**63), 1.5, b"", b"abc", [], ["a"], Symbol("x")]
    rows = [row for row in scheme_table.rows().values() if row.name.startswith(TABLES)]
    assert len(rows) >= 35
    refused = 0
    for row in rows:
        for _ in range(40):
            arguments = chance.choices(values, k=row.min)
            if row.name == "%sleep" and arguments[0] == 2**40:
                continue
            try:
                machine.call(row.name, *arguments)
            except SchemeError:
                refused += 1
    assert refused > 1000
    size = len(machine.call("%digest-start", 3))
    for _ in range(300):
        damaged = chance.choice([b"\0", b"\1", b"\2", b"\3", b"\xff"]) + b"\0\0\0" + chance.randbytes(size - 4)
        if chance.random() < 0.7:
            damaged = damaged[:36] + bytes([chance.randrange(70), 0, 0, 0]) + damaged[40:]
        state = machine.raw("bytevector-copy", machine.value(damaged))
        try:
            machine.raw("%digest-add!", state, machine.value(b"x" * chance.randrange(200)))
            assert len(machine.python(machine.raw("%digest-end", state))) in (4, 16, 20, 32)
        except SchemeError:
            pass
    machine.close()
