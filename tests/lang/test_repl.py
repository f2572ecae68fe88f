"""The prompt: values, errors after which it goes on, commands, and Ctrl-C and Ctrl-D on a terminal."""

from __future__ import annotations

import io
import os
import pty
import select
import subprocess
import sys
import time

import pytest

from eshkol.cli.main import main


@pytest.fixture
def typed(capfd, monkeypatch, tmp_path):
    """Gives lines to `eshkol repl` through a pipe; exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*lines: str | bytes) -> tuple[int, str, str]:
        data = b"".join((line if isinstance(line, bytes) else line.encode()) + b"\n" for line in lines)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        code = main(["repl"])
        return code, *capfd.readouterr()

    return run


def test_values_are_written(typed):
    code, out, err = typed(
        "(+ 1 2)", "(define x 5)", '"a\\nb"', "(values 1 #\\b 'c)", "(values)", "(if #f #f)", "x (* x 2) ; both", "",
        "(list 1", "  '(2", ") ; not yet", "3)", '"two', 'lines"', "#| a comment", "over lines |# 'after",
        '(display "said")', "'next", "(exit 3)", "'never",
    )  # fmt: skip
    assert err == ""
    assert out.splitlines() == [
        "3", '"a\\nb"', "1", "#\\b", "c", "5", "10", "(1 (2) 3)", '"two\\nlines"', "after", "said", "next",
    ]  # fmt: skip
    assert code == 3


def test_errors_are_told_and_the_session_goes_on(typed):
    code, out, err = typed(
        "(define (f x)", "  (* 2 x))", "(define (g x) (+ 1 (f x)))", "(g 'a)", ")", "1 (f 1 2) 'not-this", "nowhere",
        "(let ((x)) x)", "(raise 'odd)", "(f 4)", b"(string->symbol \"\xff\")", "(define f", "'again",
    )  # fmt: skip
    assert (code, out.splitlines()[:2]) == (0, ["1", "8"])
    wanted = (
        "*: expected a number as argument 2, but got a\n  --> <input 1>:2:3\n", "  in f at <input 1>:2:3\n",
        "  in g at <input 2>:1:20\n", "  in the prompt at <input 3>:1:1\n", "error: this ) closes nothing",
        "error: f: (f x) takes 1 argument, but was given 2\n  --> <input 5>:1:3\n", "<input 6>:1:1", "<input 7>:1:7",
        "error: uncaught exception: odd\n  --> <input 8>:1:1", "error: this ( is never closed",
    )  # fmt: skip
    at = 0
    for part in wanted:
        assert part in err[at:], err
        at = err.index(part, at) + len(part)


def test_a_continuation_of_one_line_is_entered_at_the_next(typed):
    """Any number of times, also deep ones, with what dynamic-wind and guard have around them, after other lines."""
    wound = """(dynamic-wind (lambda () (display "in ")) (lambda () (call/cc (lambda (c) (set! k c) 'first)))
                             (lambda () (display "out ")))"""
    code, out, err = typed(
        "(define k #f)", "(+ 1 (call/cc (lambda (c) (set! k c) 1)))", "(k 10)", "(list 'not-this (k 20))", "(nowhere)",
        "(map (lambda (x) (call/cc (lambda (c) (if (= x 2) (set! k c)) x))) '(1 2 3))", "(k 20)", "(+ (k 30) 1)",
        "(define (deep n) (if (= n 0) (call/cc (lambda (c) (set! k c) 0)) (+ 1 (deep (- n 1)))))", "(deep 10000)",
        "(k 5)", "(begin (make-vector 100000 0) (k 6))", wound, "(k 'second)",
        "(guard (e (#t (list 'caught e))) (raise (call/cc (lambda (c) (set! k c) 'once))))", "(k 'again)", "'end",
    )  # fmt: skip
    assert code == 0
    assert err.count("error:") == 1
    assert out.splitlines() == [
        "2", "11", "21", "(1 2 3)", "(1 20 3)", "(1 30 3)", "10000", "10005", "10006",
        "in out ", "first", "in out ", "second", "(caught once)", "(caught again)", "end",
    ]  # fmt: skip


def test_commands(typed):
    code, out, err = typed(
        "(define (twice x)", '  "Two times x."', "  (* 2 x))", ",doc twice", ",doc car", ",doc map", ",doc guard",
        ",doc if", ",doc", ",doc nowhere", "(define five 5)", ",doc five", ",expand (let loop ((i 0))",
        "  (unless (> i 3) (loop (+ i 1))))", ",time (twice 4)", ",nothing", ",help", "(twice", ",quit",
    )  # fmt: skip
    assert code == 0
    lines = out.splitlines()
    assert lines[:5] == [
        "(twice x)",
        "Two times x.",
        "  at <input 1>:1:1",
        "(car pair)",
        "The first half of pair; of a list, its first element.",
    ]
    assert lines[5].startswith("(map f list)")
    assert lines[7].strip().startswith("at ")
    assert lines[7].split(":")[0].endswith("lists.esk")
    assert any(line.startswith("(guard (variable clause ...") for line in lines)
    assert "5" in lines
    assert any(line.startswith("(letrec* ((loop (lambda (i) (if (> i 3)") for line in lines)
    at = lines.index("8")
    assert lines[at + 1].startswith("; ")
    assert lines[at + 1].endswith("to compile")
    assert ",doc NAME" in out.split("to compile")[1]
    for part in ("nothing has no definition", "nowhere has no definition", "no command ,nothing"):
        assert part in err


MAIN = """
import fcntl, signal, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)  # Ctrl-C of this terminal is for us
signal.signal(signal.SIGINT, signal.default_int_handler)
from eshkol.cli.main import main
sys.exit(main([]))
"""


class Terminal:
    """`eshkol` at a terminal."""

    def __init__(self) -> None:
        self.file, other = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", MAIN],
            stdin=other,
            stdout=other,
            stderr=other,
            start_new_session=True,
            env={**os.environ, "TERM": "dumb"},
        )
        os.close(other)
        self.seen = ""

    def until(self, text: str, seconds: float = 60) -> str:
        """What comes up to a text."""
        end = time.monotonic() + seconds
        while text not in self.seen:
            assert time.monotonic() < end, self.seen
            if select.select([self.file], [], [], 0.1)[0]:
                try:
                    self.seen += os.read(self.file, 4096).decode().replace("\r", "")
                except OSError:  # the other side has gone
                    assert text in self.seen, self.seen
        before, _, self.seen = self.seen.partition(text)
        return before

    def type(self, text: str) -> None:
        os.write(self.file, text.encode())

    def press(self, key: str, text: str) -> None:
        """A key, until a text comes: one that is pressed while the prompt is being set up may be lost."""
        for _ in range(12):
            self.type(key)
            try:
                self.until(text, 5)
                return
            except AssertionError:
                continue
        raise AssertionError(self.seen)


def test_a_terminal():
    terminal = Terminal()
    try:
        assert ",help" in terminal.until("> ")
        terminal.type("(display 12)\n")
        assert terminal.until("\n> ").endswith("\n12")
        terminal.type("(let loop ()\n(loop))\n")
        terminal.until("(loop))\n")
        time.sleep(0.3)
        terminal.type("\x03")
        assert "interrupted" in terminal.until("\n> ")
        terminal.type("(+ 1")
        terminal.until("(+ 1")
        terminal.press("\x03", "\n> ")
        terminal.type("(car 5)\n")
        terminal.until("error: car")
        terminal.until("\n> ")
        terminal.type("(begin (display 'give) (newline) (flush-output-port) (read-line))\n")
        terminal.until("\ngive\n")
        terminal.type("a line\n")
        assert '"a line"' in terminal.until("\n> ")
        terminal.type("\x04")
        assert terminal.process.wait(60) == 0
    finally:
        terminal.process.kill()
        terminal.process.wait()
        os.close(terminal.file)
