"""Errors of Scheme as Python programs see them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import eshkol as ek
from eshkol.bindings.values import Symbol
from eshkol.errors import SchemeError
from eshkol.session import SessionThread


def caught(text: str, name: str = "<eval>") -> SchemeError:
    with pytest.raises(SchemeError) as found:
        ek.eval(text, name)
    return found.value


def test_an_error_object_tells_its_parts() -> None:
    error = caught('(define (f x)\n  (error "no good:" x \'y 2.5))\n(+ 1 (f (list 1 2)))', "mine")
    assert error.message == "no good: (1 2) y 2.5"
    assert error.irritants == [[1, 2], Symbol("y"), 2.5]
    assert error.kind == "error"
    assert error.who is None
    assert ek.lang.error_object_message(error.condition) == "no good:"
    assert "mine:2:3" in str(error)
    assert "^~~~" in str(error)
    assert "in f at mine:2:3" in str(error)
    assert "mine:3:" in str(error)


def test_an_error_of_a_primitive_tells_who_found_it() -> None:
    error = caught("(vector-ref #(1) 5)")
    assert (error.who, error.kind) == ("vector-ref", "range")
    assert error.irritants == [5]


def test_anything_can_be_raised() -> None:
    error = caught("(raise (list 1 'two))")
    assert error.condition == [1, Symbol("two")]
    assert (error.irritants, error.kind, error.who) == ([], None, None)
    assert str(error).startswith("uncaught exception: (1 two)")


def test_errors_that_come_before_the_program_runs_have_no_condition(tmp_path: Path) -> None:
    with pytest.raises(ek.errors.LanguageError) as found:
        ek.eval("(let ((x)) x)")
    assert not isinstance(found.value, SchemeError)


def test_an_exception_of_python_comes_through_scheme_as_it_is() -> None:
    boom = KeyError("gone")

    def fails(_: object) -> None:
        raise boom

    with pytest.raises(KeyError) as found:
        ek.eval("(lambda (f) (+ 1 (f 2)))", "through")(fails)
    assert found.value is boom
    assert "through:1:" in "".join(boom.__notes__)
    with pytest.raises(KeyError):
        ek.lang["for-each"](fails, [1])
    assert ek.eval("(lambda (f) (guard (e (#t 'handled)) (f 2)))")(fails) == Symbol("handled")


def test_a_condition_comes_through_python_as_it_is() -> None:
    thrower = ek.eval("(lambda () (raise 'mine))")
    through = ek.eval("(lambda (f) (guard (e ((symbol? e) (list 'caught e))) (f)))")
    assert through(lambda: thrower()) == ["caught", "mine"]


def test_scheme_within_python_within_scheme() -> None:
    def outer(n: int) -> object:
        return n if n == 0 else ek.eval(f"(lambda (f) (+ 1 (f {n - 1})))")(outer)

    assert outer(5) == 5
    assert ek.eval('(lambda (f) (f "(error \\"deep\\" 7)"))')(lambda text: _irritants(text)) == [7]


def _irritants(text: str) -> object:
    return caught(text).irritants


def test_leaving_from_within() -> None:
    with pytest.raises(SystemExit) as found:
        ek.eval("(lambda () (exit 4))")()
    assert found.value.code == 4
    assert ek.eval("(+ 1 1)") == 2


@pytest.mark.parametrize("text", ["(exit 5)", "((lambda () (exit 5)))"])
def test_leaving_goes_through_python_that_handles_errors(text: str) -> None:
    def careless() -> object:
        try:
            return ek.eval(text)
        except Exception:
            return "went on"

    with pytest.raises(SystemExit) as found:
        ek.eval("(lambda (f) (f))")(careless)
    assert found.value.code == 5
    leave = ek.eval("(lambda () (exit 6))")
    with pytest.raises(SystemExit) as found:
        ek.eval("(lambda (f) (f))")(lambda: leave())
    assert found.value.code == 6


# --- warnings, and what to do ---------------------------------------------------------------------


def test_a_warning_names_the_line_of_scheme(tmp_path: Path) -> None:
    """Of Eshkol's own and of other packages; not a file of ours."""
    text = (
        "(define (late schedule) (scheduler-step schedule) 1)\n"
        "(define model (linear 2 2))\n"
        "(+ 1 (late (step-lr-scheduler (optimizer-sgd (model-parameters model)) 3)))\n"
    )
    with pytest.warns(UserWarning, match="the first learning rate is skipped") as found:
        ek.eval(text)
    assert (found[0].filename, found[0].lineno) == ("<eval>", 1)
    program = tmp_path / "warns.esk"
    program.write_text(f'{text}(define warnings (py-import "warnings"))\n(py-call warnings \'warn "mine")\n')
    done = subprocess.run(
        [sys.executable, "-m", "eshkol", str(program)], capture_output=True, text=True, timeout=120, check=True
    )
    assert f"{program}:1: UserWarning: the schedule" in done.stderr
    assert f"{program}:5: UserWarning: mine" in done.stderr
    assert "(define (late schedule)" in done.stderr
    assert "eshkol/" not in done.stderr.replace(str(tmp_path), "")


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("(tensor-reshape (tensor 1 2 3) '(2 2))", "3 elements of shape [3] do not fill", "one extent may be -1"),
        ("((linear 3 2) (ones '(2 5)))", "given shape [2, 5]", "axis -1 of what it is given must have extent 3"),
        ("(tensor->number (ones '(2 3)))", "shape [2, 3] has 6 elements", "use tensor-ref"),
        ("(sequential 3)", "part 1 is 3", "(sequential (linear 784 256)"),
    ],
)
def test_remedies_of_tensors_stand_on_the_line_of_hints(text: str, message: str, hint: str) -> None:
    """As those of every other error of Scheme, and in its spelling."""
    thread = SessionThread()
    try:
        with pytest.raises(SchemeError) as found:
            thread.call(lambda session: session.evaluate(text))
    finally:
        thread.close()
    assert message in found.value.message
    assert hint in str(found.value.hint)
    assert hint not in found.value.message


# --- values that cannot be ------------------------------------------------------------------------


def test_a_failed_value_ends_the_program_where_it_was_made(tmp_path):
    """Not as text in the place of a value, with a program that went on and exit code 0."""
    program = tmp_path / "singular.esk"
    program.write_text("(define a (tensor (1.0 2.0) (2.0 4.0)))\n(display (tensor-solve a (tensor 1.0 2.0)))\n")
    done = subprocess.run(
        [sys.executable, "-m", "eshkol", "run", str(program)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 1
    assert done.stdout == ""
    assert "singular" in done.stderr
    assert f"{program}:2:10" in done.stderr
    assert "not known" not in done.stderr
