"""The prompt at a terminal: typing, completion, hints, commands, stops within calls, and programs that stop."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.document import Document
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from eshkol.lang.indent import column
from eshkol.session import Session, SessionThread
from eshkol.session.completing import completions_at, operator_at
from eshkol.session.describing import kind_of_value, signature
from eshkol.session.prompt.editor import Editor, ends_here
from eshkol.session.prompt.highlighting import partner, stretches
from eshkol.session.prompt.history import KEPT, DiskHistory
from eshkol.session.prompt.printing import Limits, printed

ENTER, NEW_LINE, TAB, UP, END, CTRL_C, CTRL_D, CTRL_R = "\r", "\x1b\r", "\t", "\x1b[A", "\x05", "\x03", "\x04", "\x12"


DEFINED = """
(define (twice x) "Two times x. Always." (* 2 x))
(define-record-type point (make-point x y) point? (x px) (y py))
"""


@pytest.fixture(scope="module")
def thread() -> Iterator[SessionThread]:
    found = SessionThread()
    found.call(lambda session: session.evaluate(DEFINED))
    yield found
    found.close()


# ---- typing ----------------------------------------------------------------------------------------------------------


@contextmanager
def editor(thread: SessionThread, folder: Path) -> Iterator[tuple[Editor, Callable[[str], None]]]:
    with create_pipe_input() as keys:
        made = Editor(thread.call, DiskHistory(folder / "history"), input=keys, output=DummyOutput())
        made._warm.join()
        rescue = threading.Timer(
            30, lambda: keys.send_text(CTRL_C + CTRL_D)
        )  # a test that waits for ever tells nothing
        rescue.start()
        yield made, keys.send_text
        rescue.cancel()


def test_what_keys_make(thread: SessionThread, tmp_path: Path) -> None:
    cases = (
        (f"(+ 1 2){ENTER}", "(+ 1 2)"),
        (f"(define (f x){ENTER}(* x{ENTER}x)){ENTER}", "(define (f x)\n  (* x\n     x))"),
        (f'(list "a{ENTER}b"){ENTER}', '(list "a\nb")'),  # nothing is put into a string
        (f"(abc{CTRL_C}'b{ENTER}", "'b"),
        (f",doc car{ENTER}", ",doc car"),
        (f",time (list{ENTER}1){ENTER}", ",time (list\n       1)"),
        (f"{ENTER}  {ENTER}5{ENTER}", "5"),
        (f"(twi{TAB} 4){ENTER}", "(twice 4)"),
        (f"(vector-length{TAB} v){ENTER}", "(vector-length v)"),
        (f",relo{TAB}{ENTER}", ",reload"),
        (f"1{NEW_LINE}2{ENTER}", "1\n2"),
        (f"(let ((a 1)){ENTER}\x15{TAB}a){ENTER}", "(let ((a 1))\n  a)"),  # Tab at the margin indents
        (f"{CTRL_D}", None),
    )
    with editor(thread, tmp_path) as (made, send):
        for keys, wanted in cases:
            send(keys)
            text = made.read("> ")
            assert (text if text is None else text.strip()) == wanted, keys
    typed = [text.strip() for text in DiskHistory(tmp_path / "history").load_history_strings()]
    assert typed[0] == "(let ((a 1))\n  a)"
    assert typed[-1] == "(+ 1 2)"
    assert "(abc" not in typed
    with editor(thread, tmp_path) as (made, send):  # another session
        threading.Timer(0.3, send, [f"{UP}{ENTER}"]).start()  # by then it has been read
        assert made.read("> ") == "(let ((a 1))\n  a)"
        send(f"{CTRL_R}define{ENTER}{ENTER}")
        assert made.read("> ") == "(define (f x)\n  (* x\n     x))"


def test_history_survives_what_is_not_its_own(tmp_path: Path) -> None:
    file = tmp_path / "deep" / "history"
    assert list(DiskHistory(file).load_history_strings()) == []
    DiskHistory(file).store_string('(a\n"λ")')
    file.write_bytes(file.read_bytes() + b"\xff no JSON\n5\n")
    DiskHistory(file).store_string("b")
    assert list(DiskHistory(file).load_history_strings()) == ["b", '(a\n"λ")']
    assert file.stat().st_mode & 0o77 == 0
    file.write_text("".join(json.dumps(str(i)) + "\n" for i in range(2 * KEPT + 1)))
    assert next(iter(DiskHistory(file).load_history_strings())) == str(2 * KEPT)
    assert file.read_text().count("\n") == KEPT
    (tmp_path / "file").write_text("")
    DiskHistory(tmp_path / "file" / "history").store_string("not there")


def test_enter_runs_what_is_whole_in_its_last_line() -> None:
    assert ends_here(Document("(a\n b)"))
    assert not ends_here(Document("(a\n b)", 2))
    assert not ends_here(Document("(a"))
    assert not ends_here(Document('"a'))
    assert ends_here(Document(")"))  # an error, which is told when it is read
    assert ends_here(Document(",doc car"))
    assert not ends_here(Document(",expand (a"))


INDENTED = """
(define (f x #!optional)
  "doc"
  (let loop ((i 0)
             (acc '()))
    (cond ((= i 3) acc)
          ((odd? i)
           (loop (+ i 1)
                 acc))
          (else
           (when (> i 1)
             (display i))
           (do ((j 0 (+ j 1)))
               ((= j 2))
             (vector-set! v
                          j
                          #(1
                            2)))
           (if (f x)
               '(a b
                 c)
               [list "a \\" ("
                     #\\( ; (
                     #| ( |# 1])))))
(call
 a
 b)
(begin
  a
  b)
(let* ((a
        1))
  a)
(let-values (((a b) (f))
             (c (g)))
  a)
(with-thing x
  y)
((lambda (x)
   x)
 5)
(lambda
    (x)
  x)
""".replace(" #!optional", "").lstrip("\n")


def test_lines_begin_where_people_put_them() -> None:
    """Each line of a text that was written by hand is where the lines before it say."""
    lines = INDENTED.splitlines()
    for number, line in enumerate(lines[1:], 1):
        before = "\n".join(lines[:number])
        assert column(before) == len(line) - len(line.lstrip()), f"{before}\n→ {line}"
    assert column('(f "a') == column("(f #| a") == column("") == column("a))") == 0


@given(st.text(alphabet="()[]'`,@#\\\"|; \nab1λ.", max_size=40))
def test_any_text_has_a_column_colours_and_partners(text: str) -> None:
    assert 0 <= column(text) <= len(text) + 4
    parts = stretches(text, lambda name: name == "a")
    assert "".join(text[start:end] for start, end, _ in parts) == text
    assert all(end == other[0] for (_, end, _), other in pairwise(parts))
    for cursor in range(len(text) + 1):
        found = partner(text, cursor)
        if found is not None:
            assert found[0] in (cursor - 1, cursor)
            assert text[min(found)] in "(["
            assert text[max(found)] in ")]"
            assert found[::-1] == partner(text, found[1] + 1)
        operator_at(text, cursor)


def test_colours_and_partners() -> None:
    text = ',expand (if "(" #\\) 1 ; (\n #t :key fi if)'
    styles = {text[a:b]: style for a, b, style in stretches(text, {"if"}.__contains__) if style}
    assert styles == {
        ",expand": "command", "if": "form", '"("': "string", "#\\)": "string", "1": "number", " ; (\n ": "comment",
        "#t": "constant", ":key": "keyword",
    }  # fmt: skip
    assert partner(text, len(text)) == (len(text) - 1, 8)
    assert partner(text, 8) == (8, len(text) - 1)
    assert partner('"(" a', 1) is None


# ---- what is known of names and values -------------------------------------------------------------------------------


def test_completion(thread: SessionThread, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "nets").mkdir()
    (tmp_path / "nets" / "small.esk").write_text("")
    (tmp_path / "data.csv").write_text("")
    cases: tuple[tuple[str, str, set[str], set[str]], ...] = (
        ("(vector-m", "vector-m", {"vector-map", "vector-map!"}, {"vector-ref"}),
        ("(twi", "twi", {"twice"}, set()),
        ("(define (f abcde) abc", "abc", {"abcde"}, set()),  # what stands in the text itself
        ("(import (esh", "esh", {"eshkol"}, set()),
        ("(import (eshkol p", "p", {"plot", "python"}, {"pair?"}),
        ("(import (only (srfi 1", "1", {"1", "133"}, {"69"}),
        ("(import (prefix (scheme ch", "ch", {"char"}, set()),
        ("(import (ne", "ne", {"nets"}, {"negative?"}),
        ("(import (nets ", "", {"small"}, set()),
        ('(load "da', "da", {"data.csv"}, {"data"}),
        ('(load "nets/s', "s", {"small.esk"}, set()),
        (f'(load "{tmp_path}/', "", {"nets/", "data.csv"}, set()),
        ("(list 'a #| vec", "", set(), {"vector"}),
        ("(", "", set(), {"car"}),
    )
    for text, word, wanted, unwanted in cases:
        start, found = thread.call(lambda session, text=text: completions_at(session, text, len(text)))  # type: ignore[misc]
        names = {one.text for one in found}
        assert (text[start:], wanted - names, unwanted & names) == (word, set(), set()), text
        assert not any(name.startswith("%") for name in names)
    start, found = thread.call(lambda session: completions_at(session, "(guar", 5))
    assert [tuple(one) for one in found if one.text == "guard"] == [("guard", "form")]


def test_hints(thread: SessionThread) -> None:
    cases = {
        "twice": "(twice x)  Two times x.",
        "if": "(if test then [else])  The value of then, unless test is #f; then that of else.",
        "make-point": "(make-point x y)",
        "nowhere": None,
        "point": None,
    }
    assert {name: thread.call(lambda session, n=name: signature(session, n)) for name in cases} == cases  # type: ignore[misc]
    assert (thread.call(lambda session: signature(session, "car")) or "").startswith("(car pair)  The first half")
    assert operator_at("(f (g 1) ", 9) == "f"
    assert operator_at('(f "(g ', 7) == "f"
    assert operator_at("(f '(g ", 7) == ""
    assert operator_at("x ", 2) == ""


KINDS = {
    "1": "an exact integer", "1.5": "a float, 64 bits", "(expt 10 30)": "an exact integer, a large one",
    "1/2": "an exact fraction", "'(1 2)": "a list of 2 elements", "'(1)": "a list of 1 element",
    "'()": "the empty list", "'(1 . a)": "a pair", '"λx"': "a string of 2 characters",
    "'(1 2 . a)": "2 pairs that end in a symbol: no proper list", "#(1)": "a vector of 1 element",
    "(make-hash-table)": "a hash table of 0 entries", "(make-point 1 2)": "a record of type point: x y",
    "twice": "a procedure: (twice x)", "(values 1 'a)": "an exact integer; a symbol", "(if #f #f)": "no value",
    "(let ((x (list 1 2 3))) (set-cdr! (cddr x) x) x)": "a list without an end: it goes round in a circle",
    "(let ((x (list 1 2 3 4))) (set-cdr! (cdddr x) (cddr x)) x)": (
        "a list without an end: it goes round in a circle"
    ),
    "(let ((x (list 1))) (set-cdr! x x) x)": "a list without an end: it goes round in a circle",
}  # fmt: skip


def test_kinds_of_values(thread: SessionThread) -> None:
    found = thread.call(lambda session: {text: kind_of_value(session, session.evaluate(text)) for text in KINDS})
    assert found == KINDS


DATA = st.recursive(
    st.sampled_from(["a", "12", '"x y"', "#\\(", "()", "1.5", "#t", ":key"]),
    lambda inside: st.one_of(
        st.lists(inside, min_size=1, max_size=6).map(lambda items: f"({' '.join(items)})"),
        st.lists(inside, max_size=4).map(lambda items: f"#({' '.join(items)})"),
        st.tuples(inside, inside).map(lambda both: f"({both[0]} . {both[1]})"),
    ),
    max_leaves=25,
)


def test_values_are_laid_out(thread: SessionThread) -> None:
    """What is laid out is what `write` writes, on lines that are not too long."""

    @given(DATA, st.integers(12, 60))
    def each(datum: str, width: int) -> None:
        def work(session: Session) -> None:
            value = session.evaluate(f"'{datum}")
            (written,) = session.written(value)
            lines, cut = printed(session, value, width)
            assert not cut
            assert re.sub(r"\s+", " ", " ".join(lines)) == written
            for line in lines:  # longer only where nothing but one datum and parentheses stands in it
                assert len(line) <= width or not re.search(r"[^\s(#] +[^\s.]", line.replace("x y", "xy")), lines

        thread.call(work)

    each()


def test_large_values_are_cut_short(thread: SessionThread) -> None:
    def work(session: Session) -> None:
        def shown(text: str, **limits: int) -> tuple[str, bool]:
            lines, cut = printed(session, session.evaluate(text), 70, Limits(**limits))
            return "\n".join(lines), cut

        assert shown("(range 10)", items=4) == ("(0 1 2 3 …)", True)
        assert shown("(range 4)", items=4) == ("(0 1 2 3)", False)
        assert shown("(make-vector 1000000 'x)", items=2) == ("#(x x …)", True)
        assert shown("'(1 (2 (3 (4))))", depth=1) == ("(1 (2 …))", True)
        assert shown("(list (range 5) (range 5))", whole=6) == ("((0 1 2 3 …) …)", True)
        assert shown("(make-string 100 #\\a)", letters=8) == ('"aaa…"', True)
        assert shown("(let ((x (list 1 2))) (set-cdr! (cdr x) x) x)") == ("#0=(1 2 . #0#)", False)
        assert shown("(let ((v (vector 1 2))) (vector-set! v 0 (list v)) v)") == ("#0=#((#0#) 2)", False)
        assert shown("(let ((x '(1))) (list x x))") == ("((1) (1))", False)  # the same twice is no circle
        assert shown("(values 1 (values) 2)")[0].splitlines()[0] == "1"
        text, cut = shown("(range 100)")
        assert not cut
        assert max(map(len, text.splitlines())) <= 70

    thread.call(work)


# ---- commands, through a pipe ----------------------------------------------------------------------------------------


def through_a_pipe(*lines: str, arguments: tuple[str, ...] = ("repl",)) -> subprocess.CompletedProcess[str]:
    """What `eshkol` does with lines that it is given."""
    return subprocess.run(
        [sys.executable, "-m", "eshkol", *arguments],
        input="".join(line + "\n" for line in lines),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_commands(tmp_path: Path) -> None:
    file = tmp_path / "file.esk"
    (tmp_path / "beside.esk").write_text("(define (boom) (car from-file))\n")
    file.write_text('(define from-file 1)\n(include "beside.esk")\n')
    ran = through_a_pipe(
        ",bt", "(define (fact n)", "  (if (= n 0) 1 (* n (fact (- n 1)))))", ",trace fact", "(fact 2)", ",trace",
        ",doc fact", ",untrace", "(fact 3)", ",trace square", "(square 5)", ",untrace square", "(square 6)",
        ",type (list 1 2)", ",apropos vector-ma", f",load {file}", "from-file", "(define from-file 2)",
        ",reload", "from-file", "(boom)",
        ",bt", ",expand (define not-defined 1)", "not-defined", ",trace if", ",trace nowhere", ",trace from-file",
        ",untrace fact", ",continue", ",abort", ",load", ",reloat", ",apropos", ",apropos no-such-name", ",help",
        "(define (two) (values 1 2))", ",trace two", "(two)", ",untrace two",
        "(define (fails) (car 'x))", ",trace fails", "(guard (e (#t 'caught)) (fails))", "(fails)", "'end",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    out = ran.stdout
    for part in (
        "; there has been no error\n(fact 2)\n| (fact 1)\n| | (fact 0)\n| | 1\n| 1\n2\n2\n; traced: fact\n",
        "(fact n)\n  at <input 1>:1:1\n6\n",
        "(square 5)\n25\n25\n36\n(List Nat)\n  (vector-map f vector)",
        "file.esk: 2 forms\n1\n",
        "file.esk: 2 forms\n1\nerror: car: expected a pair as argument 1, but got 1\n   0  boom at ",
        "\n        (car from-file)\n   1  the prompt at <input ",
        "values of variables are not kept",
        "(define not-defined 1)\n",
        "  ,disassemble PROC ",
        "(two)\n1 2\n1\n2\n",
        "(fails)\ncaught\n(fails)\nend\n",
    ):
        assert part in out, (part, out)
        out = out[out.index(part) :]
    for part in (
        "this variable has no definition: not-defined", "if is a form", "nowhere has no definition",
        "from-file is no procedure", "fact is not watched", "nothing waits here", "hint: ,load FILE",
        "did you mean ,reload", "no name here contains no-such-name",
    ):  # fmt: skip
        assert part in ran.stderr, (part, ran.stderr)


def test_stops_before_calls() -> None:
    """A prompt within the call: its arguments have names, what is defined lasts, errors do not end it."""
    ran = through_a_pipe(
        "(define n 'global)", "(define (fact n) (if (= n 0) 1 (* n (fact (- n 1)))))", ",break fact",
        "(+ 1000 (fact 2))", "(list 'argument n)", "(define seen n)", "(car n)", "(fact 0)", "'deeper", ",continue",
        ",untrace fact", ",continue", "(list n seen)", ",break fact", "(fact 3)", ",abort", "'back", "n",
        "(guard (e ((symbol? e) 'not-this)) (fact 1))", "(raise 'mine)", ",abort", "(fact 4)", ",quit", "'never",
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stdout.splitlines() if line]
    assert lines == [
        "; before (fact 2)", "; here n = 2", "(argument 2)", "; before (fact 0)", "; here n = 0", "deeper", "1",
        "1002", "(global 2)", "; before (fact 3)", "; here n = 3", "back", "global", "; before (fact 1)",
        "; here n = 1", "; before (fact 4)", "; here n = 4",
    ]  # fmt: skip
    assert ran.stderr.count("error:") == 2
    assert ran.stderr.count("interrupted") == 2


@pytest.mark.skipif(not any(map(shutil.which, ("objdump", "llvm-objdump"))), reason="objdump reads machine code")
def test_machine_code() -> None:
    ran = through_a_pipe(
        "(define (twice x) (* 2 x))", ",disassemble twice", ",disassemble car", ",disassemble 5", ",disassemble"
    )
    out = ran.stdout
    assert re.match(r"; twice~\d+: \d+ bytes\n", out), out
    assert len(out.splitlines()) > 5
    for part in ("car> is no compiled code of Eshkol's", "5 is no procedure", ",disassemble PROCEDURE"):
        assert part in ran.stderr


PROGRAM = """
(import (scheme base) (scheme write))
(define table '((a . 1) (b . 2)))
(define (look-up key) (cdr (assq key table)))
(define unused 42)
(define counter 7)
(set! counter (+ counter 1))
(display "begun")
(display (look-up 'c))
(define later 5)
"""


def test_a_program_that_stops(tmp_path: Path) -> None:
    file = tmp_path / "program.esk"
    file.write_text(PROGRAM)
    ran = through_a_pipe(
        ",bt", "table", "unused", "counter", "(look-up 'a)", "later", "(map car table)", "(define later 6)", "later",
        "(import (scheme process-context))", "(command-line)", arguments=("run", "--debug", str(file), "argument"),
    )  # fmt: skip
    assert ran.returncode == 1
    assert ran.stdout.count("begun") == 1
    wanted = ["begun", "error: cdr: expected a pair", "   0  look-up at ", "        (cdr (assq key table))"]
    for line, start in zip(ran.stdout.splitlines(), wanted, strict=False):
        assert line.startswith(start)
    assert ran.stdout.splitlines()[-7:] == [
        "((a . 1) (b . 2))", "42", "8", "1", "(a b)", "6", f'("{file}" "argument")',
    ]  # fmt: skip
    assert ran.stderr.startswith("error: cdr: expected a pair as argument 1, but got #f\n  --> ")
    assert "; the program has stopped here" in ran.stderr
    assert "no definition: later" in ran.stderr

    def code(text: str, *arguments: str) -> tuple[int, str, str]:
        file.write_text(text)
        ran = through_a_pipe(arguments=("run", "--debug", *(arguments or [str(file)])))
        return ran.returncode, ran.stdout, ran.stderr

    assert code("(display 1)") == (0, "1", "")
    assert code("(exit 3)") == (3, "", "")
    assert code("(display (car")[:2] == (1, "")
    assert "stopped here" not in code("(display (car")[2]
    assert code("", "-")[0] == 2


# ---- at a terminal ---------------------------------------------------------------------------------------------------

MAIN = """
import fcntl, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C of this terminal is for us
signal.signal(signal.SIGINT, signal.default_int_handler)
from eshkol.cli.main import main
sys.exit(main(sys.argv[1:]))
"""
WHERE = b"\x1b[6n"  # asks where the cursor is
CONTROL = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1b[=>]|\r")


class Terminal:
    """`eshkol` at a terminal that can move the cursor; what it writes, without colours and movements."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self.file, other = pty.openpty()
        termios.tcsetwinsize(other, (30, 100))
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN, *arguments],
            stdin=other, stdout=other, stderr=other, start_new_session=True,
            env={
                **os.environ, "TERM": "xterm", "ESHKOL_CACHE_DIR": str(folder),
                "NO_COLOR": "1",
            },
        )  # fmt: skip
        os.close(other)
        self.seen = ""

    def until(self, pattern: str, seconds: float = 60) -> str:
        """What comes up to a pattern."""
        end = time.monotonic() + seconds
        while not (found := re.search(pattern, self.seen)):
            assert time.monotonic() < end, self.seen
            if select.select([self.file], [], [], 0.1)[0]:
                try:
                    data = os.read(self.file, 65536)
                    if WHERE in data:
                        os.write(self.file, b"\x1b[1;1R")
                    self.seen += CONTROL.sub("", data.decode(errors="replace"))
                except OSError as error:  # the other side has gone
                    raise AssertionError(self.seen) from error
        before, self.seen = self.seen[: found.start()], self.seen[found.end() :]
        return before

    def type(self, text: str) -> None:
        os.write(self.file, text.encode())

    def press(self, key: str, pattern: str) -> None:
        """A key, until a pattern comes: one that comes before the form runs belongs to what is typed."""
        for _ in range(10):
            time.sleep(0.5)
            self.type(key)
            try:
                self.until(pattern, 2)
                return
            except AssertionError:
                continue
        raise AssertionError(self.seen)

    def leave(self) -> int:
        for _ in range(20):
            self.type(CTRL_D)
            try:
                return self.process.wait(3)
            except subprocess.TimeoutExpired:
                continue
        raise AssertionError(self.seen)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.file)


@contextmanager
def at_terminal(folder: Path, *arguments: str) -> Iterator[Terminal]:
    terminal = Terminal(folder, *arguments)
    try:
        yield terminal
    finally:
        terminal.close()


def test_a_terminal(tmp_path: Path) -> None:
    """Multi-line, hints, an error with its caret, Ctrl-C in a loop and while typing, reading, history of two runs."""
    folder = Path(os.environ.get("ESHKOL_CACHE_DIR") or tmp_path)  # of compiled libraries
    history = folder / "prompt-history"
    history.unlink(missing_ok=True)
    with at_terminal(folder) as terminal:
        terminal.until("Ctrl-D leaves\n>")
        terminal.type('(define (f abc)\r"What f does. More."\r(* 2 abc))\r')
        terminal.until(r"\n    \(\* 2 abc\)\)")
        terminal.type("(f ")
        terminal.until(r"\(f abc\)  What f does\.")
        terminal.type("21)\r")
        terminal.until("\n42")
        terminal.type("(f 'a)\r")
        terminal.until(r"error: \*: expected a number as argument 2, but got a")
        terminal.until(r"\n +\^~~~")
        terminal.type(",bt\r")
        terminal.until(r" 0  f at <input 1>:3:3")
        terminal.type("(let loop ()\r(loop))\r")
        terminal.until(r"\(loop\)\)\s")
        terminal.press(CTRL_C, "interrupted")
        terminal.type("'awake\r")
        terminal.until("\nawake")
        terminal.type("(list 'not-this")
        terminal.until("not-this")
        terminal.type(CTRL_C)
        terminal.type("(f 50)\r")
        terminal.until("\n100")
        terminal.type("(begin (display 'give) (newline) (flush-output-port) (read-line))\r")
        terminal.until("\ngive\n")
        terminal.type("a line\n")
        terminal.until('"a line"')
        terminal.type(",doc f\r")
        terminal.until("More\\.\n")
        terminal.type("(range 1000)\r")
        terminal.until("…\\)\n; shortened")
        terminal.type("(begin (define last-of-all 'was-kept) 'did-it)\r")
        terminal.until("\ndid-it")
        assert terminal.leave() == 0
    with at_terminal(folder) as terminal:
        terminal.until("Ctrl-D leaves\n>")
        terminal.type(f"{UP}\r")
        terminal.until("was-kept")
        terminal.type("last-of-all\r")
        terminal.until("\nwas-kept")
        os.kill(terminal.process.pid, signal.SIGINT)  # not typed, but sent
        terminal.type("(quotient 1000 3)\r")
        terminal.until("\n333")
        assert terminal.leave() == 0
    history.unlink(missing_ok=True)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is a terminal that shows what it has")
def test_tmux(tmp_path: Path) -> None:
    """A whole conversation on a screen that is looked at."""
    server = ["tmux", "-S", str(tmp_path / "socket")]
    command = f"{sys.executable} -m eshkol"
    names = ("PYTHONPATH", "PATH", "ESHKOL_CACHE_DIR")
    given_ = [f"{name}={os.environ[name]}" for name in names if name in os.environ]
    screen = ("new-session", "-d", "-x", "90", "-y", "30")
    subprocess.run([*server, *screen, "env", *given_, "NO_COLOR=1", "sh", "-c", command], check=True)

    def keys(*words: str) -> None:
        subprocess.run([*server, "send-keys", *words], check=True)

    def until(text: str) -> str:
        for _ in range(300):
            screen = subprocess.run([*server, "capture-pane", "-p"], capture_output=True, text=True, check=True).stdout
            if text in screen:
                return screen
            time.sleep(0.1)
        raise AssertionError(screen)

    try:
        until("leaves\n>")
        keys("(define (area w h)", "Enter", '"Of a rectangle."', "Enter", "(* w h))", "Enter")
        until("\n    (* w h))")
        keys("(are", "Tab", " ")
        until(" (area w h)  Of a rectangle.")
        keys("3 'x)", "Enter")
        until("^~~~")
        keys(",doc area", "Enter")
        until("Of a rectangle.\n  at <input 1>")
        keys("(let loop () (loop))", "Enter")
        time.sleep(1)
        keys("C-c")
        until("interrupted")
        keys("(vector-m", "Tab", "Tab")
        until("vector-map!")
        keys("C-c", ",break area", "Enter", "(area 2 3)", "Enter")
        until("; here w = 2, h = 3\n[1]>")
        keys("(+ w h)", "Enter", ",continue", "Enter")
        assert "\n5\n" in until("\n6\n")
        keys("C-d")
    finally:
        subprocess.run([*server, "kill-server"], check=False)
