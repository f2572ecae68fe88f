"""Code that `eval` and prompts compile is freed when nothing refers to it any more, and not before.

Most of it runs with a collector that is at work all the time: then the memory of a unit that was freed is overwritten
at once and used again by the next one, and whoever still runs there crashes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from compiled import in_session

from eshkol.errors import SchemeError
from eshkol.runtime.scheme import SchemeRaised
from eshkol.session import Session
from eshkol.session.report import scheme_error

STRESS = "97"  # every so many runs of memory; at each unit that is loaded in any case
ENVIRONMENT = """
(import (scheme eval))
(define env (environment '(scheme base) '(scheme write) '(srfi 69)))
(define (fill n) (if (> n 0) (begin (eval `(lambda (x) (list x ,n "filled" '(a . ,n))) env) (fill (- n 1)))))
(define (again) (collect-garbage) (fill 6) (collect-garbage) (fill 3))
"""


def stressed(monkeypatch: pytest.MonkeyPatch, work: Callable[[Session], None]) -> None:
    monkeypatch.setenv("ESHKOL_GC_STRESS", STRESS)

    def whole(session: Session) -> None:
        session.evaluate(ENVIRONMENT)
        work(session)

    in_session(whole)


def shown(session: Session, text: str, name: str = "<repl>") -> str:
    return session.shown(session.evaluate(text, name))


def units(session: Session) -> int:
    """How many units there are, but for the one that asks."""
    session.evaluate("(collect-garbage)")
    session.evaluate("(if #f #f)")
    return len(session.engine._collected) - 1


def error_of(session: Session, text: str, name: str = "<repl>") -> SchemeError:
    with pytest.raises(SchemeRaised) as raised:
        session.evaluate(text, name)
    return scheme_error(session, raised.value)


# ---- what must stay --------------------------------------------------------------------------------------------------

KEPT = [  # an expression, and its value
    # closures: without and with captured values, in all kinds of places
    ("(let ((f (eval '(lambda (x) (list x 'c \"s\" 1.5 12345678901234567890)) env))) (again) (f 1))",
     "(1 c \"s\" 1.5 12345678901234567890)"),
    ("(let ((f ((eval '(lambda (x) (lambda (y) (list x y '(q r)))) env) 1))) (again) (f 2))", "(1 2 (q r))"),
    ("(let ((t (make-hash-table))) (do ((i 0 (+ i 1))) ((= i 5)) (hash-table-set! t i (eval `(lambda () '(,i)) "
     "env))) (again) (map (lambda (i) ((hash-table-ref t i))) '(0 1 2 3 4)))", "((0) (1) (2) (3) (4))"),
    ("(let ((v (vector (eval '(lambda () 'v) env))) (p (delay (eval '(lambda () 'p) env)))) (force p) (again) "
     "(list ((vector-ref v 0)) ((force p))))", "(v p)"),
    ("(let ((p (make-parameter (eval '(lambda () 'one) env)))) (parameterize ((p (eval '(lambda () 'two) env))) "
     "(again) (let ((two ((p)))) (list two (call/cc (lambda (k) (again) (k ((p)))))))))", "(two two)"),
    # constants of a unit are its own; a closure that was stored in one, too
    ("(let ((f (eval '(let ((box (list 'empty))) (lambda () box)) env))) (set-car! (f) f) (again) (eq? f (car (f))))",
     "#t"),
    # code that runs
    ("(eval '(let ((x (list 1 2 3))) (again) (cons 'alive x)) (interaction-environment))", "(alive 1 2 3)"),
    ("(eval '(let loop ((i 0) (l '())) (if (= i 3) (begin (again) (reverse l)) (cons i (loop (+ i 1) (cons i l))))) "
     "(interaction-environment))", "(0 1 2 0 1 2)"),
    ("(eval '(cons 1 (eval '(cons 2 (eval '(begin (again) (cons 3 '(end))) (interaction-environment))) "
     "(interaction-environment))) (interaction-environment))", "(1 2 3 end)"),
    # continuations that were captured in a unit which nothing else refers to
    ("(let ((k #f) (n 0)) (define (keep! c) (set! k c)) (define r (cons n ((eval '(lambda (keep!) (list 'in (call/cc "
     "(lambda (c) (keep! c) 0)) \"behind\")) env) keep!))) (again) (set! n (+ n 1)) (if (< n 4) (k n) r))",
     "(0 in 3 \"behind\")"),
    ("(let* ((k (eval '(call/cc (lambda (return) (let ((v (call/cc (lambda (k) (return k))))) (list 'got v \"x\")))) "
     "env))) (again) (if (procedure? k) (k 7) k))", "(got 7 \"x\")"),
    # frames that continuations share
    ("(let ((ks '()) (n 0)) (define (note! k) (set! ks (cons k ks))) (define deep (eval '(lambda (note!) (let loop ((i "
     "0)) (if (= i 40) '() (let ((v (call/cc (lambda (k) (if (= 0 (remainder i 10)) (note! k)) i)))) (cons v (loop (+ "
     "i 1))))))) env)) (define all (deep note!)) (set! deep #f) (again) (set! n (+ n 1)) (if (< n 4) ((list-ref ks n) "
     "(* 100 n)) (list n (length all) (apply + all))))", "(4 40 1060)"),
    # handlers, winders
    ("(guard (e (#t (again) (list 'caught (error-object-message e)))) (eval '(cons 1 (error \"oh\" 5)) env))",
     "(caught \"oh\")"),
    ("(let ((log '())) (define (note x) (set! log (cons x log))) (dynamic-wind (eval '(lambda () #t) env) (lambda () "
     "(again) (note 'in)) (let ((f (eval '(lambda (note) (note 'out)) env))) (lambda () (f note)))) (again) log)",
     "(out in)"),
    ("(with-exception-handler (eval '(lambda (c) (list c 'handled)) env) (lambda () (again) (cons 'r "
     "(raise-continuable 'c))))", "(r c handled)"),
    # multiple values, apply, sort by a procedure
    ("(call-with-values (eval '(lambda () (values 1 2 '(3))) env) (eval '(lambda (a b c) (list a b c)) env))",
     "(1 2 (3))"),
    ("(apply (eval '(lambda (a b c d e f . g) (list g f e d c b a)) env) '(1 2 3 4 5 6 7 8))",
     "((7 8) 6 5 4 3 2 1)"),
]  # fmt: skip


def test_what_is_needed_stays(monkeypatch) -> None:
    def work(session: Session) -> None:
        for text, value in KEPT:
            assert shown(session, text) == value, text

    stressed(monkeypatch, work)


def test_definitions_stay_until_they_are_made_anew(monkeypatch) -> None:
    def work(session: Session) -> None:
        before = units(session)
        for number in range(8):
            session.evaluate(
                f"(define (f x) (list x {number} 'f)) (define g (let ((n {number})) (lambda () (list n 'g))))"
            )
            session.evaluate("(define-record-type point (make-point x) point? (x point-x set-point-x!))")
            session.evaluate(f"(define-syntax m (syntax-rules () ((_ a) (list a {number} 'm))))")
            session.evaluate(f"(define-syntax n (lambda (use) (syntax-case use () ((_ a) #'(list a {number} 'n)))))")
            session.evaluate('(eval \'(define h (lambda (x) (vector x "h"))) (interaction-environment))')
            session.evaluate("(again)")
            found = shown(session, "(list (f 1) (g) (point-x (make-point 3)) (m 1) (n 1) (h 2))")
            assert found == f'((1 {number} f) ({number} g) 3 (1 {number} m) (1 {number} n) #(2 "h"))'
        assert units(session) - before <= 12  # f, g, h, what the record defines, the macro that is a procedure
        session.evaluate("(define f 1) (define g 1) (define h 1)")
        assert shown(session, "(list (point-x (make-point 3)) (n 1))") == "(3 (1 7 n))"

    stressed(monkeypatch, work)


def test_errors_know_their_lines_as_long_as_they_live(monkeypatch) -> None:
    """Even if nothing else refers to the code any more, and other code would be where it was."""

    def work(session: Session) -> None:
        session.evaluate("(define (f x)\n  (cons 1 (vector-ref x 5)))", "<first>")
        session.evaluate("(define kept (guard (e (#t e)) (f (vector 1 2))))", "<second>")
        session.evaluate("(define f #f)", "<third>")
        session.evaluate("(again)")
        for number in range(20):
            session.evaluate(f"(define (other-{number % 3} x) (list (vector-ref x 0) {number}))", f"<other {number}>")
        text = str(error_of(session, "(raise kept)", "<last>"))
        assert "--> <first>:2:11" in text
        assert "in f at <first>:2:11" in text
        assert " at <second>:1:" in text
        session.evaluate("(again)", "<expression>")
        session.evaluate("(again)")
        assert session.source("<expression>") is None  # the text goes with the code
        # no error object: the addresses are kept apart
        error = error_of(session, "(let ((x 1))\n  (+ 1 (raise 'odd)))", "<odd>")
        assert "--> <odd>:2:8" in str(error)
        for _ in range(3):
            error = error_of(
                session, "(eval '(let ((x 5)) (again) (cons 1 (car x))) (interaction-environment))", "<deep>"
            )
            assert "--> <deep>:1:1" in str(error)

    stressed(monkeypatch, work)


def test_random_lives(monkeypatch) -> None:
    """Closures and continuations of many units, kept and dropped in an order that has no order."""

    def work(session: Session) -> None:
        session.evaluate("""
(define slots (make-vector 12 #f))
(define seed 12345)
(define (random n) (set! seed (modulo (+ (* seed 1103515245) 12345) 2147483648)) (quotient (* n seed) 2147483648))
(define (make n)
  (case (random 4)
    ((0) (eval `(lambda () (list ,n 'plain)) env))
    ((1) (eval `(let ((l (list ,n))) (lambda () (list (car l) 'caught))) env))
    ((2) ((eval `(lambda (x) (lambda () (list x "inner"))) env) n))
    (else (let ((t (eval `(list (lambda () (list ,n 'first)) (lambda () (list ,n 'second))) env)))
            (if (= 0 (random 2)) (car t) (cadr t))))))
(define (step n wrong)
  (if (= n 0)
      wrong
      (let ((at (random 12)))
        (let ((old (vector-ref slots at)))
          (if (and old (not (= (car old) (car ((cdr old)))))) (set! wrong (+ wrong 1)))
          (vector-set! slots at (if (= 0 (random 3)) #f (cons n (make n))))
          (if (= 0 (random 9)) (collect-garbage))
          (step (- n 1) wrong)))))""")
        assert shown(session, "(step 200 0)") == "0"
        assert units(session) < 40

    stressed(monkeypatch, work)


# ---- what must go ----------------------------------------------------------------------------------------------------


def test_units_that_nobody_needs_are_freed() -> None:
    def work(session: Session) -> None:
        session.evaluate(ENVIRONMENT)
        before = units(session)
        session.evaluate("(fill 60)")
        for number in range(20):
            session.evaluate(
                f"(+ {number} 1) (let loop ((i {number})) (if (> i 0) (loop (- i 1))))", f"<input {number}>"
            )
        assert len(session.engine._collected) > before + 100
        assert units(session) <= before + 1  # one may be found on the stack by chance
        # a unit whose own constants refer to it
        session.evaluate("""
(define (knot n) (if (> n 0) (let ((f (eval `(let ((c '(,n))) (lambda () c)) env))) (set-car! (list f) f)
  ((eval `(lambda (f) (define l (list 'x f)) (lambda () l)) env) f) (knot (- n 1)))))""")
        before = units(session)
        session.evaluate("(knot 20)")
        assert units(session) <= before + 1

    in_session(work)


def test_a_collection_comes_by_itself() -> None:
    """The code counts as memory, although it is not on the heap."""

    def work(session: Session) -> None:
        for number in range(4000):
            session.engine.load(session.engine.compile(unit(session, "(+ 1 x)"), 1), collected=True)
            if number > 100 and len(session.engine._collected) < 100:
                return
        raise AssertionError

    in_session(work)


def unit(session: Session, text: str):
    from eshkol.lang.source import Source

    (found,) = session.world.prompt.units(Source("<test>", text))
    return found


def test_a_process_that_was_forked_has_units_of_its_own() -> None:
    """It shares the code of the other one, must not write there, and must not free it."""

    def work(session: Session) -> None:
        session.evaluate(ENVIRONMENT)
        session.evaluate("(define f (eval '(lambda (x) (list x 'before)) env))")
        child = os.fork()
        if child == 0:
            code = 1
            try:
                session.evaluate(
                    "(define g f) (define f 0) (again) (define g (eval '(lambda (x) (list x 'child)) env)) (again)"
                )
                code = 0 if shown(session, "(g 1)") == "(1 child)" else 2
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
        session.evaluate("(again)")
        assert shown(session, "(f 1)") == "(1 before)"

    in_session(work)


def resident() -> int:
    found = re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found is not None
    return int(found[1]) << 10


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say how much memory is used")
@pytest.mark.parametrize("form", ["(+ 1 ,n)", "(lambda (x) (list x ,n))"])
def test_memory_does_not_grow(form) -> None:
    def work(session: Session) -> None:
        session.evaluate(ENVIRONMENT)
        session.evaluate(f"(define (go n end) (if (< n end) (begin (eval `{form} env) (go (+ n 1) end))))")
        session.evaluate("(go 0 2000)")  # until the first collections
        before = resident()
        session.evaluate("(go 2000 3500)")
        assert resident() - before < 1500 * 1000

    in_session(work)
