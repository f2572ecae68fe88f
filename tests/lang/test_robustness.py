"""No input kills the process: every text ends with a value or an error for people, in bounded time and memory.

Here are the inputs that once did more than that, their relatives, and short runs of the random ones (fuzz.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from eshkol.errors import EshkolError
from eshkol.lang.deep import mark_deep
from eshkol.report import scheme_error
from eshkol.runtime.scheme import SchemeRaised
from eshkol.runtime.worker import on_large_stack
from eshkol.session import Session

COMMAND = [sys.executable, "-c", "import sys; from eshkol.cli import main; sys.exit(main())"]
Evaluate = Callable[[str], str]


def run(tmp_path: Path, program: str | bytes, **environment: str) -> subprocess.CompletedProcess[str]:
    """A program in a process of its own."""
    path = tmp_path / "program.esk"
    path.write_bytes(program if isinstance(program, bytes) else program.encode())
    return subprocess.run(
        [*COMMAND, "run", str(path)],
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        stdin=subprocess.DEVNULL,
        timeout=120,
        env=os.environ | environment,
    )


def outcome(session: Session, text: str) -> str:
    """The value of a text as it is written, or the message of its error."""
    try:
        return session.shown(session.evaluate(text))
    except SchemeRaised as raised:
        return f"error: {scheme_error(session, raised).message}"
    except EshkolError as error:
        return f"error: {error.message}"


@pytest.fixture(scope="module")
def session() -> Iterator[Session]:
    with Session() as session:
        yield session


@pytest.fixture
def evaluate(session: Session) -> Evaluate:
    def deep(text: str) -> str:
        mark_deep()
        return outcome(session, text)

    return lambda text: on_large_stack(lambda: deep(text), session.machine.interrupt)


# ---- the expander -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "(let-syntax ((m (syntax-rules () ((_) (m))))) (m))",
        "(letrec-syntax ((m (syntax-rules () ((_) (m))))) (m))",
        "(letrec-syntax ((m (syntax-rules () ((_ x) (m (x)))))) (m 1))",
        "(letrec-syntax ((m (syntax-rules () ((_ a ...) (m a ... a ...))))) (m 1))",
    ],
)
def test_a_macro_without_end_is_an_error(evaluate: Evaluate, program: str) -> None:
    assert evaluate(program).startswith("error: ")


def test_a_macro_that_doubles_again_and_again_is_an_error(evaluate: Evaluate) -> None:
    uses = " ".join(map(str, range(40)))
    program = "(letrec-syntax ((m (syntax-rules () ((_) 1) ((_ x y ...) (+ (m y ...) (m y ...)))))) (m %s))"
    assert "does not end" in evaluate(program % uses)


# ---- the compiler -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tîble", '|a"\\\\b|', "|\\x0;\\n|", "|~0|", "x" * 100_000, "λ" * 300])
def test_procedures_may_have_any_name(evaluate: Evaluate, name: str) -> None:
    assert evaluate(f"(letrec (({name} (lambda (x) (if x ({name} #f) 1)))) ({name} 1))") == "1"


# ---- exceptions -------------------------------------------------------------------------------------------------


def test_handlers_that_return_are_told_of_once(evaluate: Evaluate) -> None:
    program = """
    (define (nest n) (if (= n 0) (car 5) (+ 1 (with-exception-handler (lambda (e) 1) (lambda () (nest (- n 1)))))))
    (guard (e (#t (map error-object-kind (cons e (error-object-irritants e))))) (nest 200000))"""
    assert evaluate(program) == "(control wrong-type)"


# ---- deep and cyclic data ---------------------------------------------------------------------------------------


def test_deep_data_goes_to_the_expander_and_back(evaluate: Evaluate) -> None:
    thin = (
        "(let loop ((i 0) (d '(#(1 #()) . 2))) (if (= i 15000) d (loop (+ i 1) (if (odd? i) (list '+ d) (vector d)))))"
    )
    assert evaluate(f"(define deep {thin}) (equal? deep (eval (list 'quote deep)))") == "#t"
    assert evaluate("(equal? deep (syntax->datum (datum->syntax #'here deep)))") == "#t"
    assert evaluate("(eval (let loop ((i 0) (d 1)) (if (= i 15000) d (loop (+ i 1) (list '+ d)))))") == (
        "error: eval: the program is nested more than 10000 levels deep"
    )


@pytest.mark.parametrize(
    "data",
    ["5", "'(1 . 2)", "'()", "(vector)", "(vector '() (vector) 1.5 #\\a \"s\" 'x)", "'((1 2 . 3) #(4 (5)) . #(6))"],
)
def test_data_goes_to_the_expander_and_back(evaluate: Evaluate, data: str) -> None:
    assert evaluate(f"(equal? {data} (eval (list 'quote {data})))") == "#t"
    assert evaluate(f"(equal? {data} (syntax->datum (datum->syntax #'here {data})))") == "#t"


@pytest.mark.parametrize("tail", ["x", "(cdr x)"])
def test_cyclic_programs_are_errors(evaluate: Evaluate, tail: str) -> None:
    assert (
        evaluate(f"(define x (list '+ 1 2)) (set-cdr! (cddr x) {tail}) (eval x)")
        == "error: eval: syntax cannot be cyclic"
    )
    assert evaluate("(let ((v (vector 1))) (vector-set! v 0 v) (eval v))") == "error: eval: syntax cannot be cyclic"
