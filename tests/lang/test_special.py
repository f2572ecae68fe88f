"""Procedures that take procedures, copied for lambdas and primitives (codegen/special.py), and what `--why` says.

The oracle is the same program where the procedures are changed by set!, to what they are: nothing is copied then.
"""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from compiled import in_session, outcome, written
from evaluate import Machine

from effort import amount
from eshkol.codegen.compiling import explained, table
from eshkol.codegen.functions import Analysis
from eshkol.codegen.simplify import Simplifier
from eshkol.codegen.verify import verify_forms
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.session import Session

BEGIN = "(import (scheme base) (scheme write))\n"
# Each takes a procedure f, a list and perhaps more: handed on, called in several places, or inside of another lambda.
PROCEDURES = {
    "fold": ("(define (fold f seed l) (if (null? l) seed (fold f (f (car l) seed) (cdr l))))", "{n} {l}"),
    "foldr": ("(define (foldr f l seed) (if (null? l) seed (f (car l) (foldr f (cdr l) seed))))", "{l} {n}"),
    "both": (
        "(define (both f l) (let loop ((l l) (sum 0)) (if (null? l) sum"
        " (loop (cdr l) (+ sum (f (car l) 1) (f 2 (car l)))))))",
        "{l}",
    ),
    "collect": (
        "(define (collect f l) (if (null? l) 0"
        " (+ ((lambda (x) (set! x (+ x 1)) (f x 3)) (car l)) (collect f (cdr l)))))",
        "{l}",
    ),
    "until": (
        "(define (until f n l) (cond ((> n 50) n) ((null? l) (f n 1)) (else (until f (f n (car l)) (cdr l)))))",
        "{n} {l}",
    ),
    "pair-up": (
        "(define (pair-up f n l) (let-values (((q r) (floor/ n 3))) (f (f q r) (length l))))",
        "{n} {l}",
    ),
}


class Programs:
    """Random expressions that use them, one in the other."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def number(self, names: list[str], depth: int) -> str:
        choose = self.random.random()
        if depth <= 0 or choose < 0.25:
            return self.random.choice([*names, str(self.random.randint(-5, 9))])
        if choose < 0.5:
            operator = self.random.choice(["+", "-", "max", "min"])
            return f"({operator} {self.number(names, depth - 1)} {self.number(names, depth - 1)})"
        name = self.random.choice(list(PROCEDURES))
        items = " ".join(self.number(names, 0) for _ in range(self.random.randint(0, 4)))
        others = PROCEDURES[name][1].format(n=self.number(names, depth - 1), l=f"(list {items})")
        return f"({name} {self.procedure(names, depth - 1)} {others})"

    def procedure(self, names: list[str], depth: int) -> str:
        choose = self.random.random()
        if choose < 0.2:
            return self.random.choice(["+", "-", "max", "list-length-of"])
        first, second = f"a{len(names)}", f"b{len(names)}"
        body = self.number([*names, first, second], depth)
        change = f"(set! {first} (+ {first} 1)) " if choose > 0.85 else ""
        return f"(lambda ({first} {second}) {change}(note {first}) {body})"


def program(seed: int) -> tuple[str, str]:
    """A program, and the same where nothing is copied."""
    made = Programs(seed)
    head = BEGIN + "(define notes 0)\n(define (note x) (set! notes (modulo (+ (* notes 31) x) 1000003)))\n"
    head += "(define (list-length-of a b) (length (list a b)))\n"
    head += "\n".join(text for text, _ in PROCEDURES.values()) + "\n"
    body = "\n".join(f"(write {made.number([], 3)}) (newline)" for _ in range(4)) + "\n(write notes)"
    return head + body, head + body + "\n" + "".join(f"(set! {name} {name})" for name in PROCEDURES)


def simplified(text: str) -> list[str]:
    """The names of procedures that are closures or functions of their own."""
    machine = Machine()
    unit = machine.expander.expand_unit(read(Source("test.esk", text)), machine.namespace)
    simplifier = Simplifier(table())
    forms = [simplifier.form(form) for form in unit.forms]
    verify_forms(forms)
    return [f.code.name or "lambda" for f in Analysis.of(forms).functions.values() if not f.inside]


FOLD = PROCEDURES["fold"][0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{FOLD} (define (sum l) (fold (lambda (x s) (+ x s)) 0 l))", ["fold", "sum"]),
        (f"{FOLD} (define (sum l) (fold + 0 l))", ["fold", "sum"]),
        (f"{FOLD} (define (sum l) (+ 1 (fold (lambda (x s) (+ x s)) 0 l)))", ["fold", "sum"]),
        (f"{FOLD} (define (sum f l) (fold f 0 l))", ["fold", "sum"]),
        # not: another number of arguments, a procedure that is changed, one whose value is needed in itself
        (f"{FOLD} (define (sum l) (fold (lambda (x) x) 0 l))", ["fold", "sum", "lambda"]),
        (f"{FOLD} (define (sum l) (fold (lambda (x s) s) 0 l)) (set! fold fold)", ["fold", "sum", "lambda"]),
        ("(define (keep f) (cons f (f 1))) (define (use) (keep (lambda (x) x)))", ["keep", "use", "lambda"]),
        ("(define (turn f g) (if (f) (turn g f) 1)) (define (use) (turn (lambda () 1) (lambda () 2)))",
         ["turn", "use", "lambda", "lambda"]),
    ],
)  # fmt: skip
def test_what_is_copied(text: str, expected: list[str]) -> None:
    assert sorted(simplified(text)) == sorted(expected)


def test_random_programs_mean_the_same() -> None:
    def work(session: Session) -> None:
        for seed in range(amount(40, 3)):
            copied, plain = program(seed)
            found, oracle = outcome(session, copied), outcome(session, plain)
            assert (found.output, found.error) == (oracle.output, oracle.error), copied
            assert found.error is None, found.error

    in_session(work)


SPECIAL_CASES = f"""{BEGIN}
{FOLD}
(define (each f l) (if (pair? l) (begin (f (car l)) (each f (cdr l)))))
(define (map-with f l) (if (null? l) '() (cons (f (car l)) (map-with f (cdr l)))))
(write (call/cc (lambda (return) (each (lambda (x) (if (> x 2) (return x))) '(1 2 3 4)) 'none)))
(define resume #f)
(define count 0)
(let ((made (map-with (lambda (x) (call/cc (lambda (k) (if (= x 2) (set! resume k)) x))) '(1 2 3))))
  (write made)
  (set! count (+ count 1))
  (if (< count 3) (resume (* 10 count))))
(define makers (map-with (lambda (x) (lambda () (set! x (+ x 1)) x)) '(1 5)))
(write (list ((car makers)) ((car makers)) ((cadr makers))))
(write (fold (lambda (i sum) (+ sum 1)) 0 (vector->list (make-vector 300000 1))))
(define (depth n) (fold (lambda (x s) (if (= n 0) s (+ s (depth (- n 1))))) 1 '(1 2)))
(write (depth 6))
(each (lambda (x) (dynamic-wind (lambda () (display "<")) (lambda () (write x)) (lambda () (display ">")))) '(a b))
"""


def test_control_inside_of_copies() -> None:
    def work(session: Session) -> None:
        expected = "3(1 2 3)(1 10 3)(1 20 3)(2 3 6)300000127<a><b>"
        assert written(session, SPECIAL_CASES) == expected
        failing = (
            f"{BEGIN}{FOLD}\n(define (sum l)\n  (+ 1 (fold (lambda (x s)\n    (+ s (car x))) 0 l)))\n(sum '((1) 2))"
        )
        error = outcome(session, failing).error
        plain = outcome(session, failing.replace("\n(sum ", "\n(set! fold fold)\n(sum ")).error
        assert error is not None
        assert plain is not None
        assert "(+ s (car x))" in error
        assert error.splitlines()[0] == plain.splitlines()[0]

    in_session(work)


WHY = """(define (count-up n) (let loop ((i 0)) (if (< i n) (loop (+ i 1)) i)))
(define (adder n) (lambda (x) (+ x n)))
(define (twice f x) (set! x (f x)) (f x))
(define (halves l) (if (null? l) '() (cons (car l) (halves (cdr (cdr l))))))
(define (upper s) (list->vector s))
(define sums (twice (adder 1) (count-up 5)))
"""


def test_why_says_what_the_generator_does() -> None:
    machine = Machine()
    lines = explained(machine.expander.expand_unit(read(Source("test.esk", WHY)), machine.namespace))
    text = "\n".join(lines)
    assert "loop at 1:22 is a loop: its variables are registers, a call a jump" in text
    assert "  allocates 40 bytes for the closure at 2:19, which has n" in lines
    assert "lambda at 2:19: a closure, for its value is needed; called by name in 0 places" in lines
    assert "  calls of what is known at run time only: f at 3:29, f at 3:36" in lines
    assert "  allocates 24 bytes each for x, because set! changes it" in lines
    assert "  allocates 24 bytes for each of 1 pair" in lines
    assert any(line.startswith("  calls of the runtime: list->vector") for line in lines)


def test_what_why_calls_free_of_allocation_is(tmp_path: Path) -> None:
    """The bytes that the heap hands out are those that it names."""
    text = f"""(import (scheme base) (scheme write) (only (eshkol primitives) %heap-statistic))
{WHY}
(define (bytes thunk) (let ((before (%heap-statistic 1))) (thunk) (- (%heap-statistic 1) before)))
(set! bytes bytes)
(write (list (bytes (lambda () (count-up 1000))) (bytes (lambda () (adder 1))) (bytes (lambda () (halves '(1 2 3 4))))))
"""
    file = tmp_path / "why.esk"
    file.write_text(text)
    command = [sys.executable, "-m", "eshkol", "run", "--why", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "(0 40 48)"
    assert "count-up at 2:1: a function with one closure, made in advance" in done.stderr
