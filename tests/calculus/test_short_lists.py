"""Programs that know how long short lists are: they agree with differentiated numbers, also when lists change."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scheme_programs import Checker, parsed

SETTING = """
(import (eshkol) (only (eshkol primitives) %fast-derivatives %fast-statistics))
(define (dot u v) (fold + 0.0 (map * u v)))
(define (both f x)                    ; whether compiled code ran, and both gradients
  (let* ((before (car (%fast-statistics))) (found (gradient f x)) (after (car (%fast-statistics))))
    (%fast-derivatives #f)
    (let ((dynamic (gradient f x)))
      (%fast-derivatives #t)
      (list (if (> after before) 1 0) found dynamic))))
(define rows (map (lambda (i) (map (lambda (j) (sin (+ (* 3.0 i) j))) (iota 4))) (iota 40)))
(define labels (map (lambda (i) (if (even? i) 1.0 -1.0)) (iota 40)))
(define (loss w)
  (/ (fold + 0.0 (map (lambda (row label) (log (+ 1.0 (exp (- (* label (dot w row))))))) rows labels)) 40))
(define (twice l) (append l l))
"""
# definitions, a point, and whether a compiled derivative must have run
CASES = {
    "a matrix of lists": ("", "loss", "(list 0.1 -0.2 0.3 0.4)", True),
    "again": ("", "loss", "(list 0.2 0.2 -0.3 0.4)", True),
    "fewer weights than there are in a row": ("", "loss", "(list 0.1 -0.2 0.3)", True),
    "more weights than there are in a row": ("", "loss", "(list 0.1 -0.2 0.3 0.4 0.5)", True),
    "a shorter row somewhere": ("(set-cdr! (list-ref rows 30) '())", "loss", "(list 0.1 -0.2 0.3 0.4)", True),
    "an exact number in a row": ("(set-car! (list-ref rows 20) 2)", "loss", "(list 0.1 -0.2 0.3 0.4)", False),
    "a constant list": ("(define (f w) (dot w '(1.0 2.0 3.0)))", "f", "(list 1.0 2.0 3.0)", True),
    "one that is too short": ("(define (f w) (dot (map exp w) '(1.0 2.0)))", "f", "(list 1.0 2.0 3.0)", True),
    "branches by turns": (
        "(define (f w) (let loop ((l w) (k 1.0)) (cond ((null? l) k) ((> (car l) 2) (loop (cdr l) (* k (car l))))"
        " (else (+ k (loop (cdr l) (sin (car l))))))))", "f", "(list 1.0 2.5 3.0 0.5 0.1 7.0 2.0 1.0)", True,
    ),
    "so many branches that turns are a loop": (
        "(define (f w) (let loop ((l w) (k 1.0)) (cond ((null? l) k) ((> (car l) 2) (loop (cdr l) (* k (car l))))"
        " (else (+ k (loop (cdr l) (sin (car l))))))))",
        "f", "(map (lambda (i) (* 0.3 i)) (iota 14))", True,
    ),
    "a list that does not become shorter": (
        "(define (f w) (let loop ((i 0) (l w) (s 0.0)) (if (= i 5) s (loop (+ i 1) l (+ s (car l) (sin (cadr l)))))))",
        "f", "(list 1.0 2.0 3.0)", True,
    ),
    "lists of other lengths": ("(define (f w) (dot (twice w) (reverse (twice w))))", "f", "(list 1.0 2.0)", True),
    "then of three": ("", "f", "(list 1.0 2.0 3.0)", True),
    "then of twenty": ("", "f", "(map (lambda (i) (* 0.1 i)) (iota 20))", True),
    "length and list?": (
        "(define (f w) (if (list? rows) (* (length (car rows)) (length w) (apply + w)) 0.0))", "f",
        "(list 1.0 2.0 3.0)", True,
    ),
    "list-ref": (
        "(define (f w) (fold (lambda (row s) (+ s (* (list-ref row 2) (list-ref w 1)))) 0.0 (list-tail rows 35)))",
        "f", "(list 1.0 2.0 3.0)", True,
    ),
    "apply": ("(define (f w) (apply (lambda (a b . c) (* a b (apply max c))) w))", "f", "(list 1.0 2.0 3.0)", True),
    "a list in a vector": (
        "(define data (vector (list 1.0 2.0) (list 3.0 4.0))) (define (f w) (let loop ((i 0) (s 0.0))"
        " (if (= i 2) s (loop (+ i 1) (+ s (dot w (vector-ref data i)))))))", "f", "(list 1.0 2.0)", True,
    ),
    "vectors in a list": (
        "(define data (list (vector 1.0 2.0) (vector 3.0 4.0))) (define (f w) (fold + 0.0 (map (lambda (v x)"
        " (* x (vector-ref v 1))) data w)))", "f", "(list 1.0 2.0)", True,
    ),
}  # fmt: skip


@pytest.fixture
def checker() -> Iterator[Checker]:
    made = Checker()
    made.evaluate(SETTING)
    yield made
    made.close()


def test_agreement(checker: Checker) -> None:
    """One case after another in one session: each finds what those before it have changed."""
    for what, (text, name, point, compiled) in CASES.items():
        if text:
            checker.evaluate(text)
        for _ in range(2):
            ran, found, dynamic = parsed(checker.evaluate(f"(both {name} {point})"))
            assert found == pytest.approx(dynamic, rel=1e-12, abs=1e-14), what
        assert bool(ran) is compiled, what


def test_lists_of_many_lengths_share_one_program(checker: Checker) -> None:
    """The first is for the length of the day, the second for any; where all are forgotten, it begins anew."""
    checker.evaluate("(define (f w) (dot w (map sin w)))")
    points = [f"(list {' '.join(f'{k}.5' for k in range(1, n))})" for n in range(3, 9)]

    def made() -> int:
        found = checker.thread.call(lambda session: len(session.fast._kept))
        assert isinstance(found, int)
        return found

    for point in points:
        ran, found, dynamic = parsed(checker.evaluate(f"(both f {point})"))
        assert ran
        assert found == pytest.approx(dynamic, rel=1e-12)
    assert made() == 2
    checker.thread.call(lambda session: session.fast._forget_all())
    checker.evaluate(f"(both f {points[0]})")
    assert made() == 1
    assert checker.thread.call(lambda session: len(session.fast._sized)) == 1
    checker.evaluate(f"(both f {points[1]})")
    assert made() == 2


def test_a_list_without_end(checker: Checker) -> None:
    checker.evaluate("(define (f w) (if (list? ring) 0.0 (* (car w) (car ring))))")
    checker.evaluate("(define ring (list 1.0 2.0 3.0)) (set-cdr! (cddr ring) ring)")
    _, found, dynamic = parsed(checker.evaluate("(both f (list 2.0 5.0))"))
    assert found == dynamic == [1.0, 0.0]
