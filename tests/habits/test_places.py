"""A mistake is answered alike in a program, with -e, at the prompt and in a notebook; values look alike there."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eshkol.bindings import install
from eshkol.bindings.notebook.cells import run_cell
from eshkol.cli.main import main
from eshkol.errors import EshkolError
from eshkol.session import SessionThread

install()

MISTAKES = (
    "(display (vektor 2))",
    "(zzzyzx 2)",
    "(vref #(1) 0)",
    "(car '())",
    '(+ 1 "2")',
    "(vector-ref (vector 1 2) 2)",
    "(foo",
    "(let (x 1) x)",
    "(5 1)",
    "((lambda (x) x))",
    '(string-append "a" 1)',
    "(hash-table-ref (make-hash-table) 'k)",
    "(set! nope 1)",
)
VALUES = {
    "(tensor (1.0 2.0) (3.0 4.0))": "(2 2) ((1.0 2.0) (3.0 4.0))>",
    "(linear 2 3)": "#<Linear(in_features=2, out_features=3, bias=True)>",
    '(let ((h (make-hash-table))) (hash-table-set! h \'a "b") h)': '#<hash table (a . "b")>',
    "car": "#<procedure car>",
}


@pytest.fixture(scope="module")
def thread() -> Iterator[SessionThread]:
    opened = SessionThread()
    yield opened
    opened.close()


def answers(thread: SessionThread, text: str) -> dict[str, EshkolError]:
    """What is said of a mistake in each place."""
    ways: dict[str, Callable[[], object]] = {
        "program": lambda: thread.call(lambda session: session.run_text(text, "program.esk")),
        "-e": lambda: thread.call(lambda session: session.print_value(text)),
        "prompt": lambda: thread.call(lambda session: [form() for form in session.forms(text, "<input 1>")]),
        "cell": lambda: run_cell(text, "<cell 1>"),
    }
    found = {}
    for place, way in ways.items():
        with pytest.raises(EshkolError) as caught:
            way()
        found[place] = caught.value
    return found


@pytest.mark.parametrize("text", MISTAKES)
def test_a_mistake_has_one_remedy(text: str, thread: SessionThread) -> None:
    found = answers(thread, text)
    assert len({error.hint for error in found.values()}) == 1, {place: error.hint for place, error in found.items()}
    for place, error in found.items():
        assert error.hint, place
        assert error.span is not None, place
        assert error.span.text == text, place


def test_a_name_of_a_library_of_its_own_is_known() -> None:
    with pytest.raises(EshkolError, match=r"\(eshkol compat\)"):
        run_cell("(json-parse 1)", "<cell 1>")


@pytest.mark.parametrize("text", VALUES)
def test_a_value_looks_alike(text: str, thread: SessionThread) -> None:
    written = thread.call(lambda session: session.shown(session.evaluate(text)))
    assert written.endswith(VALUES[text])
    assert run_cell(text, "<cell 2>")["text/plain"] == written
    program = f"(call-with-output-string (lambda (port) (write {text} port)))"
    assert thread.call(lambda session: session.machine.text(session.evaluate(program))) == written


def test_a_table_that_contains_itself_is_shown() -> None:
    text = "(let ((h (make-hash-table)) (l (list 1))) (set-cdr! l l) (hash-table-set! h l h) (list h))"
    assert run_cell(text, "<cell 3>") == {"text/plain": "(#<hash table (#0=(1 . #0#) . #<hash table>)>)"}


# ---- the command line ------------------------------------------------------------------------------------------------


def test_a_file_is_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "hello.esk"
    file.write_text("#!/usr/bin/env eshkol\n(write (cdr (command-line)))\n", encoding="utf-8")
    assert main([str(file), "one", "-e", "two"]) == 0
    assert capfd.readouterr().out == '("one" "-e" "two")'
    assert main([str(tmp_path / "helo.esk")]) == 1
    assert "did you mean" in capfd.readouterr().err


def test_a_program_can_be_a_command(tmp_path: Path) -> None:
    """A first line names the interpreter; the file needs no ending."""
    for name, content in {
        "eshkol": f'#!/bin/sh\nexec {sys.executable} -m eshkol "$@"\n',
        "greet": "#!/usr/bin/env eshkol\n(display (cadr (command-line)))\n",
    }.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
        (tmp_path / name).chmod(stat.S_IRWXU)
    surroundings = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    ran = subprocess.run(["./greet", "you"], cwd=tmp_path, env=surroundings, capture_output=True, text=True)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("you", "", 0)


def test_libraries_of_a_folder(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lib" / "my").mkdir(parents=True)
    (tmp_path / "lib" / "my" / "numbers.esk").write_text(
        "(define-library (my numbers) (import (scheme base)) (export two) (begin (define two 2)))\n", encoding="utf-8"
    )
    program = tmp_path / "program.esk"
    program.write_text("(import (scheme base) (scheme write) (my numbers))\n(display two)\n", encoding="utf-8")
    folder = str(tmp_path / "lib")
    for words in (
        ["-L", folder, str(program)],
        ["run", "-L", folder, str(program)],
        ["-L", folder, "run", str(program)],
    ):
        assert main(words) == 0
        assert capfd.readouterr().out == "2"
    assert main([str(program)]) == 1
    assert "-L FOLDER" in capfd.readouterr().err
    assert main(["-L", str(tmp_path / "none"), str(program)]) == 2
    assert "no folder" in capfd.readouterr().err
