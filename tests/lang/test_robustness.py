"""No input kills the process: every text ends with a value or an error for people, in bounded time and memory.

Here are the inputs that once did more than that, their relatives, and short runs of the random ones (fuzz.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import fuzz
import pytest

from effort import amount
from eshkol.errors import EshkolError
from eshkol.lang.deep import mark_deep
from eshkol.runtime.scheme import SchemeRaised
from eshkol.runtime.worker import on_large_stack
from eshkol.session import Session
from eshkol.session.report import scheme_error

COMMAND = [sys.executable, "-c", "import sys; from eshkol.cli.main import main; sys.exit(main())"]
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

    return lambda text: on_large_stack(lambda: deep(text))


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


@pytest.mark.parametrize("message", ["42", "'a", "'(1 2)", "(vector)", "(if #f #f)"])
def test_the_message_of_an_error_may_be_anything(evaluate: Evaluate, message: str) -> None:
    shown = evaluate(f"(let ((p (open-output-string))) (display {message} p) (get-output-string p))").strip('"')
    assert evaluate(f"(error {message} 1)") == f"error: {shown} 1"


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


# ---- exhaustion -------------------------------------------------------------------------------------------------

HEAD = """(import (eshkol))
(define (try thunk)
  (call/cc (lambda (k) (with-exception-handler (lambda (e) (k (if (error-object? e) (error-object-kind e) e))) thunk))))
(define-syntax show (syntax-rules () ((_ e ...) (begin (begin (write (try (lambda () e))) (newline)) ...))))
(define (endless n) (+ 1 (endless (+ n 1))))
"""


def test_a_program_goes_on_after_the_stack_is_used_up(tmp_path: Path) -> None:
    program = """(show
      (endless 0)
      (dynamic-wind (lambda () 1) (lambda () (endless 0)) (lambda () 2))
      (map endless '(1 2))
      (sort '(1 2 3) (lambda (a b) (endless a)))
      (apply + 1 (list (endless 0)))
      (call/cc (lambda (k) (endless 0)))
      (let f ((a 1) (b 2) (c 3) (d 4) (e 5) (g 6)) (vector (f b c d e g a)))
      'on)"""
    done = run(tmp_path, HEAD + program)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["stack-overflow"] * 7 + ["on"]


def test_a_program_goes_on_after_memory_is_used_up(tmp_path: Path) -> None:
    program = """(show
      (let loop ((l '())) (loop (cons 1 l)))
      (let loop ((l '())) (loop (cons (make-vector 1000 0) l)))
      (let loop ((s "ab")) (loop (string-append s s)))
      (let loop ((l '())) (loop (cons (call/cc (lambda (k) k)) l)))
      (let ((p (open-output-string))) (let loop () (write-string "hello hello" p) (loop)))
      (let ((h (make-hash-table))) (let loop ((i 0)) (hash-table-set! h i i) (loop (+ i 1))))
      (let loop ((i 0) (l '())) (loop (+ i 1) (cons (string->symbol (number->string i)) l)))
      (expt 7 (expt 10 9))
      (make-vector (expt 2 60) 0)
      (make-string (- (expt 2 62) 1) #\\a)
      (make-bytevector (- (expt 2 63) 1) 0)
      (make-list (expt 10 12) 0)
      (make-list (expt 10 30) 0)
      (iota (expt 10 12))
      (exact-integer? (arithmetic-shift 1 (expt 10 12)))
      (let loop ((l '())) (with-exception-handler (lambda (e) 1) (lambda () (loop (cons 1 l)))))
      (length (iota 1000)))"""
    done = run(tmp_path, HEAD + program, ESHKOL_HEAP="32M")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.split() == ["out-of-memory"] * 15 + ["control", "1000"]


# ---- random input -----------------------------------------------------------------------------------------------


def test_garbage_gives_values_or_errors() -> None:
    assert fuzz.try_garbage(0, amount(3000, 60), run_share=0.05) == []


def test_programs_mean_what_their_twins_mean() -> None:
    assert fuzz.compare(0, amount(60, 6), "twin", small=True) == []


@pytest.mark.slow
def test_programs_mean_the_same_when_the_collector_runs_all_the_time() -> None:
    assert fuzz.compare(1000, amount(40, 12), "stress", small=True) == []


# ---- memory -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say what a process has taken")
def test_what_is_dropped_takes_no_memory(tmp_path: Path) -> None:
    times = amount(10, 1)  # 10 GB in all, or 1
    program = f"""(import (eshkol))
    (define (repeat n thunk) (if (> n 0) (begin (thunk) (repeat (- n 1) thunk))))
    (repeat {620_000 * times} (lambda () (make-vector 100 0)))
    (repeat {100_000 * times} (lambda () (call/cc (lambda (k) k))))
    (let loop ((i 0))
      (if (< i {100_000 * times}) (begin (string->symbol (string-append "s" (number->string i))) (loop (+ i 1)))))
    (let loop ((i 0) (k #f)) (if (< i {100_000 * times}) (loop (+ i 1) (call/cc (lambda (c) (vector c i)))) 'done))
    (repeat {20_000 * times} (lambda () (let ((h (make-hash-table))) (hash-table-set! h h h))))
    (call-with-input-file "/proc/self/status"
      (lambda (p)
        (let next ((line (read-line p)))
          (if (string-prefix? "VmHWM:" line) (display line) (next (read-line p))))))"""
    done = run(tmp_path, program)
    assert done.stderr == ""
    assert int(done.stdout.split()[1]) < 200_000  # kilobytes, most of them of Python
