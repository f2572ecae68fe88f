"""Ports against Python's io: strings, bytevectors, files, the standard ports of a process, waiting and interrupts."""

from __future__ import annotations

import ctypes
import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from native import Native
from scheme_data import Char, Pair, SchemeError

from effort import examples
from eshkol.runtime.scheme import Value

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def scheme() -> Iterator[Native]:
    machine = Native()
    yield machine
    machine.close()


def is_eof(scheme: Native, value: Any) -> bool:
    return isinstance(value, Value) and scheme.call("eof-object?", value) is True


def answer(scheme: Native, name: str, *args: Any) -> Any:
    """What a procedure gives, with None for the end of input and a str for a character."""
    found = scheme.call(name, *args)
    if isinstance(found, Char):
        return chr(found.code)
    return None if is_eof(scheme, found) else found


def python_line(source: io.StringIO) -> str | None:
    """A line as R7RS sees it: ended by a linefeed, a return, or both."""
    chars: list[str] = []
    while (char := source.read(1)) not in ("", "\n", "\r"):
        chars.append(char)
    if char == "\r":
        here = source.tell()
        if source.read(1) != "\n":
            source.seek(here)
    return "".join(chars) if chars or char else None


# ---- textual input

operations = st.lists(
    st.one_of(st.sampled_from(["read-char", "peek-char", "read-line", "char-ready?"]), st.integers(0, 9)), max_size=30
)
texts = st.one_of(st.text(max_size=30), st.text("aλ\n\r", max_size=20))


def check_input(scheme: Native, port: Value, text: str, steps: list[str | int]) -> None:
    source = io.StringIO(text, newline="")
    for step in steps:
        match step:
            case int():
                expected: Any = source.read(step)
                if step and not expected:
                    expected = None
                assert answer(scheme, "read-string", step, port) == expected
            case "read-char":
                assert answer(scheme, step, port) == (source.read(1) or None)
            case "peek-char":
                here = source.tell()
                assert answer(scheme, step, port) == (source.read(1) or None)
                source.seek(here)
            case "read-line":
                assert answer(scheme, step, port) == python_line(source)
            case _:
                assert answer(scheme, step, port) is True


@given(texts, operations)
@examples(2000, 200)
def test_reading_a_string(scheme: Native, text: str, steps: list[str | int]) -> None:
    check_input(scheme, scheme.raw("open-input-string", scheme.value(text)), text, steps)


@given(texts, operations, st.integers(1, 40_000))
@examples(500, 60)
def test_reading_a_file(scheme: Native, scratch: Path, text: str, steps: list[str | int], before: int) -> None:
    """With so much before it that characters and lines fall on the end of the buffer."""
    padding = "é" * (before // 2) + "x" * (before % 2)
    path = scratch / "text"
    path.write_bytes((padding + text).encode())
    port = scheme.raw("open-input-file", scheme.value(str(path)))
    assert scheme.call("read-string", len(padding), port) == padding
    check_input(scheme, port, text, steps)
    scheme.call("close-port", port)


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ports")


@given(st.lists(st.one_of(st.binary(max_size=6), st.sampled_from(["é", "€", "😀", "a", "\n"]).map(str.encode))))
@examples(2000, 200)
def test_bytes_that_are_not_utf8(scheme: Native, scratch: Path, pieces: list[bytes]) -> None:
    content = b"".join(pieces)
    path = scratch / "bytes"
    path.write_bytes(content)
    expected = content.decode("utf-8", "replace")
    port = scheme.raw("open-input-file", scheme.value(str(path)))
    assert (answer(scheme, "read-string", 1000, port) or "") == expected
    port = scheme.raw("open-input-file", scheme.value(str(path)))
    chars = []
    while (char := answer(scheme, "read-char", port)) is not None:
        chars.append(char)
    assert "".join(chars) == expected
    port = scheme.raw("open-input-file", scheme.value(str(path)))
    source = io.StringIO(expected, newline="")
    while (line := python_line(source)) is not None:
        assert answer(scheme, "read-line", port) == line
    assert answer(scheme, "read-line", port) is None


def test_long_lines_and_large_texts(scheme: Native, scratch: Path) -> None:
    lines = ["é" * 100_000, "", "x" * 65_535, "y" * 65_536, "z"]
    path = scratch / "long"
    path.write_text("\n".join(lines))
    port = scheme.raw("open-input-file", scheme.value(str(path)))
    assert [scheme.call("read-line", port) for _ in lines] == lines
    assert answer(scheme, "read-line", port) is None
    port = scheme.raw("open-input-file", scheme.value(str(path)))
    assert scheme.call("read-string", 1 << 39, port) == "\n".join(lines)
    assert scheme.call("port-line", port) == 5
    assert scheme.call("port-column", port) == 2


# ---- textual output


@given(st.lists(st.one_of(st.text(max_size=10), st.integers(0x20, 0x10FFFF))))
def test_writing_a_string(scheme: Native, pieces: list[str | int]) -> None:
    port, expected = scheme.raw("open-output-string"), ""
    for piece in pieces:
        if isinstance(piece, str):
            scheme.call("write-string", piece, port)
            expected += piece
        elif not 0xD800 <= piece < 0xE000:
            scheme.call("write-char", Char(piece), port)
            expected += chr(piece)
    assert scheme.call("get-output-string", port) == expected == scheme.call("get-output-string", port)


@given(st.text(max_size=12), st.integers(0, 12), st.integers(0, 12))
def test_parts_of_strings(scheme: Native, text: str, start: int, end: int) -> None:
    port = scheme.raw("open-output-string")
    start, end = min(start, end, len(text)), min(max(start, end), len(text))
    scheme.call("write-string", text, port, start)
    scheme.call("write-string", text, port, start, end)
    assert scheme.call("get-output-string", port) == text[start:] + text[start:end]


def test_writing_files(scheme: Native, scratch: Path) -> None:
    path = scratch / "out λ.txt"
    port = scheme.raw("open-output-file", scheme.value(str(path)))
    text = "aλ😀\n" * 30_000
    scheme.call("write-string", text, port)
    scheme.call("newline", port)
    scheme.call("write-char", Char(955), port)
    assert path.stat().st_size < len(text.encode())
    scheme.call("flush-output-port", port)
    assert path.read_text() == text + "\nλ"
    scheme.call("write-string", "end", port)
    scheme.call("close-output-port", port)
    assert path.read_text() == text + "\nλend"
    scheme.call("close-port", port)
    scheme.call("close-port", scheme.raw("open-output-file", scheme.value(str(path))))
    assert path.read_text() == ""


# ---- binary ports


@given(
    st.binary(max_size=40), st.lists(st.one_of(st.sampled_from(["read-u8", "peek-u8", "u8-ready?"]), st.integers(0, 9)))
)
def test_reading_bytes(scheme: Native, content: bytes, steps: list[str | int]) -> None:
    port, source = scheme.raw("open-input-bytevector", scheme.value(content)), io.BytesIO(content)
    for step in steps:
        match step:
            case int():
                expected: Any = source.read(step)
                assert answer(scheme, "read-bytevector", step, port) == (None if step and not expected else expected)
            case "read-u8":
                assert answer(scheme, step, port) == next(iter(source.read(1)), None)
            case "peek-u8":
                assert answer(scheme, step, port) == next(iter(source.getbuffer()[source.tell() :]), None)
            case _:
                assert answer(scheme, step, port) is True


@given(st.binary(max_size=20), st.integers(0, 8), st.integers(0, 8))
def test_reading_into_a_bytevector(scheme: Native, content: bytes, start: int, end: int) -> None:
    start, end = min(start, end), max(start, end)
    port, target = scheme.raw("open-input-bytevector", scheme.value(content)), scheme.value(bytes(8))
    expected, source = bytearray(8), io.BytesIO(content)
    count = source.readinto(memoryview(expected)[start:end])
    assert answer(scheme, "read-bytevector!", target, port, start, end) == (count or (0 if start == end else None))
    assert scheme.python(target) == bytes(expected)


def test_binary_files(scheme: Native, scratch: Path) -> None:
    path, content = scratch / "binary", bytes(range(256)) * 300
    port = scheme.raw("open-binary-output-file", scheme.value(str(path)))
    scheme.call("write-bytevector", content, port)
    scheme.call("write-bytevector", content, port, 5, 10)
    scheme.call("write-u8", 255, port)
    scheme.call("close-port", port)
    whole = content + content[5:10] + b"\xff"
    assert path.read_bytes() == whole
    port = scheme.raw("open-binary-input-file", scheme.value(str(path)))
    assert scheme.call("read-bytevector", 1 << 39, port) == whole
    assert answer(scheme, "read-u8", port) is None
    out = scheme.raw("open-output-bytevector")
    scheme.call("write-bytevector", whole, out)
    assert scheme.call("get-output-bytevector", out) == whole


# ---- what a port is, and errors


def test_predicates(scheme: Native, scratch: Path) -> None:
    (scratch / "p").write_text("x")
    name = scheme.value(str(scratch / "p"))
    names = ["port?", "input-port?", "output-port?", "textual-port?", "binary-port?"]
    for port, expected in (
        (scheme.raw("open-input-string", scheme.value("x")), [True, True, False, True, False]),
        (scheme.raw("open-output-string"), [True, False, True, True, False]),
        (scheme.raw("open-input-bytevector", scheme.value(b"x")), [True, True, False, False, True]),
        (scheme.raw("open-output-bytevector"), [True, False, True, False, True]),
        (scheme.raw("open-input-file", name), [True, True, False, True, False]),
        (scheme.raw("open-binary-input-file", name), [True, True, False, False, True]),
        (scheme.value("x"), [False] * 5),
    ):
        assert [scheme.call(predicate, port) for predicate in names] == expected
    port = scheme.raw("open-input-file", name)
    assert scheme.call("input-port-open?", port) is True
    assert scheme.call("port-name", port) == str(scratch / "p")
    scheme.call("close-input-port", port)
    assert scheme.call("input-port-open?", port) is False


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("read-char", "open-input-string"), ("peek-char", "open-input-string"), ("read-line", "open-input-string"),
        ("char-ready?", "open-input-string"), ("read", "open-input-string"), ("read-u8", "open-input-bytevector"),
        ("peek-u8", "open-input-bytevector"), ("u8-ready?", "open-input-bytevector"), ("newline", "open-output-string"),
        ("flush-output-port", "open-output-string"),
    ],
)  # fmt: skip
def test_closed_ports(scheme: Native, name: str, make: str) -> None:
    given = {"open-input-string": ("abc",), "open-input-bytevector": (b"abc",), "open-output-string": ()}[make]
    port = scheme.raw(make, *map(scheme.value, given))
    scheme.call("close-port", port)
    with pytest.raises(SchemeError, match="closed") as caught:
        scheme.call(name, port)
    assert caught.value.kind == "file-error"
    assert caught.value.who == name


def test_wrong_ports(scheme: Native) -> None:
    string, out = scheme.raw("open-input-string", scheme.value("x")), scheme.raw("open-output-string")
    data = scheme.raw("open-input-bytevector", scheme.value(b"x"))
    for name, args, words in (
        ("read-char", (out,), "textual input port"), ("read-char", (data,), "textual input port"),
        ("read-u8", (string,), "binary input port"), ("read-char", (5,), "textual input port"),
        ("write", (1, string), "textual output port"), ("write-u8", (1, out), "binary output port"),
        ("write-u8", (256, scheme.raw("open-output-bytevector")), "byte"),
        ("get-output-string", (string,), "open-output-string"), ("write-char", ("a", out), "character"),
        ("close-output-port", (string,), "output port"), ("read-string", (-1, string), "length"),
        ("read-string", (1.0, string), "length"), ("open-input-file", (5,), "string"),
        ("open-input-string", (5,), "string"),
    ):  # fmt: skip
        with pytest.raises(SchemeError, match=words) as caught:
            scheme.call(name, *args)
        assert caught.value.kind == "wrong-type"
        assert caught.value.who == name


def test_file_errors(scheme: Native, scratch: Path) -> None:
    for name, path, words in (
        ("open-input-file", scratch / "missing", "No such file"),
        ("open-binary-input-file", scratch / "missing", "No such file"),
        ("open-output-file", scratch / "no" / "file", "No such file"),
        ("delete-file", scratch / "missing", "No such file"), ("open-input-file", scratch, "Is a directory"),
        ("open-output-file", scratch, "Is a directory"), ("open-input-file", "a\0b", "null"),
    ):  # fmt: skip
        with pytest.raises(SchemeError, match=words) as caught:
            scheme.call(name, str(path))
        assert caught.value.kind == "file-error"
        assert caught.value.who == name
        assert caught.value.irritants == [str(path)]


def test_files(scheme: Native, scratch: Path) -> None:
    path, other = str(scratch / "f"), str(scratch / "g")
    assert scheme.call("file-exists?", path) is False
    Path(path).write_text("x")
    assert scheme.call("file-exists?", path) is True
    scheme.call("rename-file", path, other)
    assert (scheme.call("file-exists?", path), scheme.call("file-exists?", other)) == (False, True)
    scheme.call("delete-file", other)
    assert not Path(other).exists()


def test_forgotten_files_are_written_and_closed(scratch: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd")) if Path("/proc/self/fd").exists() else 0

    before, path = descriptors(), scratch / "forgotten"
    machine = Native()
    machine.call("write-string", "kept", machine.raw("open-output-file", machine.value(str(path))))
    for _ in range(20):
        machine.raw("open-input-file", machine.value(str(path)))
    machine.close()
    assert path.read_text() == "kept"
    assert descriptors() == before


def test_current_ports(scheme: Native) -> None:
    out, source = scheme.raw("open-output-string"), scheme.raw("open-input-string", scheme.value("abc"))
    scheme.call("%set-current-port!", 1, out)
    scheme.call("%set-current-port!", 0, source)
    try:
        scheme.call("write", "x")
        scheme.call("newline")
        assert scheme.call("get-output-string", out) == '"x"\n'
        assert answer(scheme, "read-char") == "a"
    finally:
        for which in (0, 1):
            scheme.call("%set-current-port!", which, scheme.raw("%standard-port", scheme.value(which)))
    with pytest.raises(SchemeError, match="output port"):
        scheme.call("%set-current-port!", 1, source)


# ---- waiting


def test_waiting_for_input_is_interrupted(scheme: Native, scratch: Path) -> None:
    path = scratch / "fifo"
    os.mkfifo(path)
    writer = os.open(path, os.O_RDWR)
    port = scheme.raw("open-input-file", scheme.value(str(path)))
    assert scheme.call("char-ready?", port) is False
    os.write(writer, "é".encode()[:1])
    assert scheme.call("char-ready?", port) is False
    os.write(writer, "é".encode()[1:] + b"(a b)x")
    assert scheme.call("char-ready?", port) is True
    assert answer(scheme, "read-char", port) == "é"
    scheme.call("read", port)  # takes no more than the datum, and so need not wait
    assert answer(scheme, "read-char", port) == "x"
    scheme.library.esk_interrupt.argtypes = (ctypes.c_void_p,)
    timer = threading.Timer(0.1, scheme.library.esk_interrupt, (scheme.context,))
    timer.start()
    started = time.monotonic()
    with pytest.raises(SchemeError) as caught:
        scheme.call("read-line", port)
    assert caught.value.kind == "interrupt"
    assert time.monotonic() - started < 5
    os.write(writer, b"after\n")
    assert scheme.call("read-line", port) == "after"
    os.close(writer)


def test_waiting_for_a_reader_is_interrupted(scheme: Native, scratch: Path) -> None:
    path = scratch / "full"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    port = scheme.raw("open-output-file", scheme.value(str(path)))
    scheme.library.esk_interrupt.argtypes = (ctypes.c_void_p,)
    timer = threading.Timer(0.1, scheme.library.esk_interrupt, (scheme.context,))
    timer.start()
    with pytest.raises(SchemeError) as caught:
        scheme.call("write-string", "x" * 1_000_000, port)
    assert caught.value.kind == "interrupt"
    received = 0
    while True:  # what the pipe and the port's buffer held goes on its way
        try:
            received += len(os.read(reader, 1 << 16))
            scheme.call("flush-output-port", port)
        except BlockingIOError:
            break
    assert received >= 1 << 16
    os.close(reader)


def test_fresh_line(scheme: Native, scratch: Path) -> None:
    path = scratch / "lines"
    for port in (scheme.raw("open-output-string"), scheme.raw("open-output-file", scheme.value(str(path)))):
        for piece in ("", "a", "", "b\n", "", "c"):
            scheme.call("write-string", piece, port)
            scheme.call("flush-output-port", port)
            scheme.call("fresh-line", port)
        scheme.call("close-port", port)
        found = scheme.call("get-output-string", port) if not path.stat().st_size else path.read_text()
        assert found == "a\nb\nc\n"


# ---- the process

PROGRAM = """
import sys
sys.path[:0] = {paths!r}
from native import Native
from scheme_data import SchemeError
scheme = Native()
{body}
scheme.close()
"""


def run(body: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
    program = PROGRAM.format(paths=[str(HERE), str(HERE.parent)], body=body)
    return subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False, **options)


def test_standard_ports() -> None:
    body = """
assert scheme.call("read-line") == "first"
assert scheme.python(scheme.raw("read"))[0].name == "a"
error = scheme.raw("%standard-port", scheme.value(2))
scheme.call("display", "to λ")
scheme.call("newline")
scheme.call("display", "wrong", error)
assert scheme.call("eof-object?", scheme.raw("read"))
"""
    done = run(body, input=b"first\n(a b) ")
    assert (done.returncode, done.stdout, done.stderr) == (0, "to λ\n".encode(), b"wrong")


def test_a_closed_pipe_is_an_error_and_no_death() -> None:
    body = """
import os
reader, writer = os.pipe()
os.dup2(writer, 1)
os.close(writer)
os.close(reader)
try:
    for _ in range(100):
        scheme.call("write-string", "x" * 1000)
    scheme.call("flush-output-port")
except SchemeError as error:
    sys.stderr.write(error.kind + " " + error.message)
"""
    done = run(body)
    assert (done.returncode, done.stderr) == (0, b"file-error Broken pipe")


# ---- the system


def test_environment_and_time(scheme: Native, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_TEST_λ", "wert ü")
    assert scheme.call("get-environment-variable", "ESHKOL_TEST_λ") == "wert ü"
    assert scheme.call("get-environment-variable", "ESHKOL_TEST_MISSING") is False
    assert Pair("ESHKOL_TEST_λ", "wert ü") in scheme.call("get-environment-variables")
    assert abs(scheme.call("current-second") - time.time()) < 5
    assert abs(scheme.call("current-milliseconds") - time.time() * 1000) < 5000
    first, second = scheme.call("current-jiffy"), scheme.call("current-jiffy")
    assert first <= second
    assert scheme.call("jiffies-per-second") == 1_000_000_000
    assert scheme.call("current-directory") == os.getcwd()


def test_command_line(scheme: Native) -> None:
    words = ["program", "-x", "λ", ""]
    array = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
    scheme.library.esk_set_command_line.argtypes = (ctypes.c_void_p, ctypes.c_int64)
    assert scheme.library.esk_set_command_line(array, len(words)) == 0
    assert scheme.call("command-line") == words
    assert scheme.library.esk_set_command_line(array, 1) == 0
    assert scheme.call("command-line") == words[:1]


@pytest.mark.parametrize(
    ("given", "code"),
    [((), 0), ((True,), 0), ((False,), 1), ((7,), 7), ((256 + 3,), 3), ((-1,), 255), (("x",), 1), ((10**30,), 1)],
)
def test_exit_codes(scheme: Native, given: tuple[object, ...], code: int) -> None:
    for name in ("%exit", "emergency-exit"):
        values, result = [scheme.value(item) for item in given], Value()
        array = (Value * max(1, len(values)))(*values)
        outcome = scheme.library.esk_enter_primitive(
            scheme.context, scheme.rows[name], array, len(values), ctypes.byref(result)
        )
        assert (outcome, scheme.python(result)) == (2, code)
