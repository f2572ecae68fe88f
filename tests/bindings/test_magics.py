"""`%load_ext eshkol`: the magic in a shell of IPython."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from eshkol.errors import EshkolError

IPython = pytest.importorskip("IPython")


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config

    config = Config()
    config.HistoryManager.enabled = False
    config.Completer.use_jedi = False
    config.InteractiveShell.colors = "nocolor"
    made = InteractiveShell.instance(config=config)
    made.run_line_magic("load_ext", "eshkol")
    yield made
    made.run_line_magic("unload_ext", "eshkol")
    assert made.find_line_magic("eshkol") is None
    InteractiveShell.clear_instance()


def test_errors_in_cells_of_python_show_no_frame_of_ours(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell("import eshkol as ek\ndef f(a):\n    return a @ ek.ones((3, 3))\nf(ek.ones((2, 2)))")
    shown = capsys.readouterr().out
    assert "return a @ ek.ones((3, 3))" in shown
    assert "hint: the last axis of x" in shown
    assert "eshkol/" not in shown
    assert "_operate" not in shown
    shell.run_cell("1 / 0")
    assert "ZeroDivisionError" in capsys.readouterr().out


def test_a_line_and_a_cell(shell: Any) -> None:
    assert shell.run_cell("%eshkol (+ 1 (* 2 3))").result == 7
    assert shell.run_cell("%%eshkol\n(define (half x) (/ x 2))\n(half 3.0)").result == 1.5
    assert shell.run_cell("value = %eshkol (half 5.0)\nvalue + 1").result == 3.5
    assert shell.run_cell("%%eshkol\n(define nothing 1)").result is None


def test_what_a_cell_writes_is_seen(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_cell('%%eshkol\n(display "written λ")')
    assert capsys.readouterr().out == "written λ"


def test_names_in_and_out(shell: Any) -> None:
    shell.run_cell("data, learning_rate = [1, 2, 3], 0.5")
    cell = "%%eshkol -i data,learning_rate -o scaled_data,scale\n"
    cell += "(define (scale x) (* learning-rate x))\n(define scaled-data (map scale data))"
    result = shell.run_cell(cell)
    assert result.success
    assert shell.user_ns["scaled_data"] == [0.5, 1.0, 1.5]
    assert shell.user_ns["scale"](10) == 5.0
    shell.run_cell("twice = lambda x: 2 * x")
    assert shell.run_cell("%eshkol -i twice (map twice '(1 2))").result == [2, 4]


def test_completion_in_cells_of_eshkol_alone(shell: Any) -> None:
    from IPython.core.completer import provisionalcompleter

    def completed(text: str) -> list[tuple[int, str]]:
        with provisionalcompleter():
            return [(found.start, found.text) for found in shell.Completer.completions(text, len(text))]

    shell.run_cell("%eshkol (define (square-of x) (* x x))")
    assert completed("%%eshkol\n(+ 1 (square-o") == [(15, "square-of")]
    assert completed("%eshkol (square-o") == [(9, "square-of")]
    assert "square-of" not in [text for _, text in completed("square")]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ("%%eshkol -i not_there\n1", "-i not_there: Python has no variable of that name"),
        ("%%eshkol -o not_there\n1", "-o not_there: the session has no 'not_there'"),
        ("%%eshkol -i\n1", "-i is no option, or lacks its names"),
        ("%%eshkol --what x\n1", "--what x is no option"),
    ],
)
def test_wrong_options(shell: Any, cell: str, words: str) -> None:
    error = shell.run_cell(cell).error_in_exec
    assert isinstance(error, EshkolError)
    assert words in str(error)


def test_an_error_is_shown_as_eshkol_tells_it(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    result = shell.run_cell("%%eshkol\n(define (f x)\n  (+ 1 (car x)))\n(f 5)")
    out, err = capsys.readouterr()
    shown = out + err
    assert isinstance(result.error_in_exec, EshkolError)
    assert "expected a pair" in shown
    assert ":3:8" in shown  # as the lines of the cell are numbered, the magic's own being the first
    assert "(+ 1 (car x)))" in shown
    assert "Traceback" not in shown
    assert ".py" not in shown
