"""Continuations that are only left to (codegen/escapes.py), and procedures over lists in place of calls (known.py).

The oracle is the same program where call/cc and the others are variables that something assigns, of which nothing is
known.
"""

from __future__ import annotations

import random

import pytest
from compiled import in_session, outcome, written

from effort import amount
from eshkol.codegen.compiling import table
from eshkol.codegen.nodes import Escape
from eshkol.codegen.simplify import Simplifier
from eshkol.codegen.verify import verify_forms
from eshkol.lang.core import Global
from eshkol.lang.libraries import SourceModule, nodes
from eshkol.lang.source import Source
from eshkol.session import Session

BEGIN = """(import (scheme base) (scheme write) (only (srfi 1) filter remove) (only (eshkol lists) fold-left))
(define notes 0)
(define (note x) (set! notes (modulo (+ (* notes 31) x) 1000003)) x)
(define p (make-parameter 1))
(define (twice x) (note (* 2 x)))
"""
UNKNOWN = ("call/cc", "map", "for-each", "filter", "remove", "fold-left")


class Programs:
    """Random expressions that leave others by continuations, out of loops, recursions, lambdas and dynamic extents."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def fresh(self, letter: str) -> str:
        self.names += 1
        return f"{letter}{self.names}"

    def simple(self, variables: list[str]) -> str:
        return self.random.choice([*variables, str(self.random.randint(-5, 9)), "(p)"])

    def number(self, variables: list[str], exits: list[str], depth: int) -> str:
        chosen = self.random.random()
        if depth <= 0 or chosen < 0.1:
            return self.simple(variables)
        inner = lambda more=(), leave=(): self.number([*variables, *more], [*exits, *leave], depth - 1)
        if exits and chosen < 0.25:
            k = self.random.choice(exits)
            return f"(if (< {inner()} {self.simple(variables)}) ({k} {inner()}) {inner()})"
        items = " ".join(self.simple(variables) for _ in range(self.random.randint(0, 4)))
        x, y, k = self.fresh("x"), self.fresh("y"), self.fresh("k")
        kinds = [
            lambda: f"(call/cc (lambda ({k}) {inner(leave=(k,))}))",
            lambda: f"(call/cc (lambda ({k}) (note {inner(leave=(k,))}) ({k} {inner()}) (note 5)))",
            lambda: f"(let ((go #f)) (call/cc (lambda ({k}) (set! go {k}) {inner(leave=(k,))})))",
            lambda: f"(let loop (({x} 0) ({y} {inner()})) (if (< {x} 3) (loop (+ {x} 1) {inner((x, y))}) {y}))",
            lambda: f"(let walk (({x} 0)) (if (< {x} 3) (+ {inner((x,))} (walk (+ {x} 1))) {inner()}))",
            lambda: f"(apply + (map (lambda ({x}) {inner((x,))}) (list {items})))",
            lambda: f"(apply max 0 (map twice (list {items})))",
            lambda: f"(begin (for-each (lambda ({x}) (note {inner((x,))})) (list {items})) {inner()})",
            lambda: f"(apply + (vector->list (map (lambda ({x}) {inner((x,))}) (vector {items}))))",
            lambda: f"(length (filter (lambda ({x}) (< {x} {inner((x,))})) (list {items})))",
            lambda: f"(length (remove (lambda ({x}) (< {x} {inner((x,))})) (list {items})))",
            lambda: f"(fold-left (lambda ({x} {y}) {inner((x, y))}) {inner()} (list {items}))",
            lambda: f"(dynamic-wind (lambda () (note 1)) (lambda () {inner()}) (lambda () (note 2)))",
            lambda: f"(parameterize ((p {inner()})) {inner()})",
            lambda: f"(guard (e ((number? e) (note (+ e {inner()})))) (if (< {inner()} 2) (raise 3) {inner()}))",
            lambda: f"(let (({x} {inner()})) {inner((x,))})",
            lambda: f"(if (call/cc (lambda ({k}) ({k} (< {inner()} {inner()})))) {inner()} {inner()})",
            lambda: f"(+ {inner()} (* 2 {inner()}))",
        ]
        return self.random.choice(kinds)()


def program(seed: int) -> tuple[str, str]:
    """A program, and the same where nothing is known of what it calls."""
    made = Programs(seed)
    body = "\n".join(f"(define (f{i} x) {made.number(['x'], [], 4)})\n(write (f{i} {i})) (newline)" for i in range(3))
    body += "\n(write notes)"
    plain = body
    for name in UNKNOWN:
        plain = plain.replace(f"({name} ", f"(my-{name} ")
    defined = "".join(f"(define my-{name} {name})\n(set! my-{name} {name})\n" for name in UNKNOWN)
    return BEGIN + body, BEGIN + defined + plain


def test_random_programs_mean_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_CHECK", "1")  # core forms are verified

    def work(session: Session) -> None:
        for seed in range(amount(40, 3)):
            known, plain = program(seed)
            found, oracle = outcome(session, known), outcome(session, plain)
            assert (found.output, found.error) == (oracle.output, oracle.error), known
            assert found.error is None, found.error

    in_session(work)


def kinds(session: Session, text: str) -> list[str]:
    """What became of the calls of call/cc in a text."""
    module = session.world.program(Source(f"<{text}>", "(import (scheme base))" + text))
    assert isinstance(module, SourceModule)
    simplifier = Simplifier(table())
    forms = [simplifier.form(form) for form in module.unit.forms]
    verify_forms(forms)
    found = []
    for node in nodes(forms):
        if isinstance(node, Escape):
            found.append("jump")
        elif isinstance(node, Global) and node.cell.name in ("%call/cc", "%call/ec"):
            found.append(node.cell.name)
    return found


KINDS = {
    "(define (f x) (call/cc (lambda (k) (if x (k 1) 2))))": "jump",
    "(define (f l) (call/cc (lambda (k) (let o ((l l)) (if (pair? l) (o (cdr l)) (k 1))) 2)))": "jump",
    "(define (f l) (call/cc (lambda (k) (for-each (lambda (x) (if x (k x))) l) 2)))": "jump",
    "(define (f l) (call/cc (lambda (k) (let w ((l l)) (if (pair? l) (+ 1 (w (cdr l))) (k 1))))))": "%call/ec",
    # not: its value is needed, it is in a closure, it takes other than one value, it is changed
    "(define (f x) (call/cc (lambda (k) (cons k 1))))": "%call/cc",
    "(define (f x) (call/cc (lambda (k) (lambda () (k 1)))))": "%call/cc",
    "(define (f x) (call/cc (lambda (k) (k 1 2))))": "%call/cc",
    "(define (f x) (call/cc (lambda (k) (set! k x) (k 1))))": "%call/cc",
}


def test_what_is_only_left_to() -> None:
    def work(session: Session) -> None:
        for text, expected in KINDS.items():
            assert kinds(session, text) == [expected], text

    in_session(work)


CASES = f"""{BEGIN}
(define (count n) (call/cc (lambda (k) (if (= n 0) (k 'done) (count (- n 1))))))
(write (count 300000)) ; a call in tail position is one, inside of call/cc as well
(define (sum l) (call/cc (lambda (k) (let walk ((l l))
  (cond ((null? l) 0) ((< (car l) 0) (k 'none)) (else (+ (car l) (walk (cdr l)))))))))
(write (list (sum '(1 2 3)) (sum '(1 -2 3))))
(define saved #f) (define times 0)
(define (both l) ; a continuation that is entered again, inside of one that is only left to
  (call/cc (lambda (out)
    (let walk ((l l))
      (if (null? l) 0
          (let ((x (call/cc (lambda (k) (if (= (car l) 2) (set! saved k)) (car l)))))
            (if (> x 100) (out 'left))
            (+ x (walk (cdr l)))))))))
(let ((found (both '(1 2 3))))
  (write found)
  (set! times (+ times 1))
  (if (< times 5) (saved (* 30 times))))
(define (port-of x) (call/cc (lambda (k) (let walk ((n x))
  (parameterize ((p n)) (if (= n 3) (k (p)) (+ 1 (walk (+ n 1)))))))))
(write (list (port-of 0) (p)))
(define (winds l) (call/cc (lambda (k) (let walk ((l l))
  (dynamic-wind (lambda () (display "<"))
                (lambda () (if (null? l) (k 'end) (+ 1 (walk (cdr l)))))
                (lambda () (display ">")))))))
(write (winds '(1 2)))
(call-with-values (lambda () (call/cc (lambda (k) (if (p) (k (values 1 2))) 3))) (lambda several (write several)))
(write (call/cc (lambda (k) (let walk ((i 0)) (if (= i 100000) (k i) (+ 1 (walk (+ i 1))))))))
(write (map (lambda (x) (* x x)) '(1 2 . 3)))
"""


def test_cases() -> None:
    expected = "done(6 none)6346494left(3 1)<<<>>>end(1 2)100000"

    def work(session: Session) -> None:
        found = outcome(session, CASES)
        assert found.error is not None
        assert "map: expected a list as argument 2, but got (1 2 . 3)" in found.error
        assert found.output == expected

    in_session(work)


def test_long_lists_need_no_stack() -> None:
    text = f"{BEGIN}(write (length (map (lambda (x) (+ x 1)) (vector->list (make-vector 300000 1)))))"

    def work(session: Session) -> None:
        assert written(session, text) == "300000"

    in_session(work)


def test_a_list_that_is_changed_while_its_end_is_wrong() -> None:
    """The library would find nothing wrong with what the list is by now."""
    text = f"""{BEGIN}(define items (cons 1 (cons 2 3)))
(write (filter (lambda (x) (if (= x 2) (set-cdr! items '())) #t) items))"""

    def work(session: Session) -> None:
        found = outcome(session, text)
        assert found.error is not None
        assert "expected a pair as argument 1, but got 3" in found.error
        assert found.output == ""

    in_session(work)
