"""Compiled derivatives that are there already, when other values come: nothing that they rely on is left unseen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scheme_programs import Checker
from shared_programs import run

from effort import amount

SEED = 20


def test_makers_are_called_around_other_values() -> None:
    report = run(range(SEED, SEED + amount(1500, 8)))
    assert not report.wrong, "\n\n".join(report.wrong[:3])
    assert report.fast > report.calls / 8


# What is defined first; then what is differentiated one after the other, each with what must come out.
CASES = {
    "one closure in two places, then two of the same code": (
        """(define (make k) (lambda (x) (* k x x)))
           (define (both p q) (lambda (x) (+ (p x) (* 10. (q x)))))
           (define one (make 2.))""",
        [("(derivative (both one one) 3.)", 132.0), ("(derivative (both (make 2.) (make 5.)) 3.)", 312.0),
         ("(derivative (both (make 5.) (make 2.)) 3.)", 150.0), ("(derivative (both one one) 3.)", 132.0)],
    ),
    "one closure in two places of a list": (
        """(define (make k) (lambda (x) (* k x)))
           (define (folded fs) (lambda (x) (let loop ((i 0) (s x)) (if (= i 2) s
              (loop (+ i 1) ((car fs) ((cadr fs) s)))))))
           (define one (make 2.))""",
        [("(derivative (folded (list one one)) 1.)", 16.0),
         ("(derivative (folded (list (make 2.) (make 3.))) 1.)", 36.0)],
    ),
    "one closure captured by another, and beside it": (
        """(define (make k) (lambda (x) (* k x)))
           (define (over f) (lambda (x) (f (f x))))
           (define (beside f g) (lambda (x) (let loop ((i 0) (s x)) (if (= i 1) s (loop 1 (+ (f s) (g s)))))))
           (define one (make 3.))""",
        [("(derivative (beside one (over one)) 1.)", 12.0),
         ("(derivative (beside (make 3.) (over (make 2.))) 1.)", 7.0)],
    ),
    "a global procedure that is defined again": (
        "(define (g x) (* x x)) (define (f x) (let loop ((i 0) (s x)) (if (= i 2) s (loop (+ i 1) (g s)))))",
        [("(derivative f 2.)", 32.0), ("(begin (set! g (lambda (x) (* 3 x))) (derivative f 2.))", 9.0),
         ("(begin (set! g (lambda (x) (* 5 x))) (derivative f 2.))", 25.0)],
    ),
    "a number of another type": (
        "(define k 2.) (define (f x) (let loop ((i 0) (s x)) (if (= i 2) s (loop (+ i 1) (* s k)))))",
        [("(derivative f 1.)", 4.0), ("(begin (set! k 3) (derivative f 1.))", 9.0),
         ("(begin (set! k 1/2) (derivative f 1.))", 0.25), ("(begin (set! k 1/4) (derivative f 1.))", 0.0625)],
    ),
    "a captured variable that is set": (
        """(define pair (let ((n 2.)) (cons (lambda (x) (let loop ((i 0) (s x)) (if (= i 2) s (loop (+ i 1) (* s n)))))
                                            (lambda (m) (set! n m)))))""",
        [("(derivative (car pair) 1.)", 4.0), ("(begin ((cdr pair) 5.) (derivative (car pair) 1.))", 25.0),
         ("(begin ((cdr pair) 3) (derivative (car pair) 1.))", 9.0)],
    ),
    "a record whose fields change": (
        """(define-record-type <pt> (pt a b) pt? (a pa set-pa!) (b pb)) (define q (pt 1. 2.))
           (define (f x) (let loop ((i 0) (s x)) (if (= i 2) (* s (pa q)) (loop (+ i 1) (* s (pb q))))))""",
        [("(derivative f 1.)", 4.0), ("(begin (set-pa! q 10.) (derivative f 1.))", 40.0),
         ("(begin (set! q (pt 5. 6)) (derivative f 1.))", 180.0)],
    ),
    "another number of arguments": (
        """(define f (case-lambda
             ((x) (let loop ((i 0) (s x)) (if (= i 2) s (loop (+ i 1) (* s s)))))
             ((x y) (let loop ((i 0) (s x)) (if (= i 2) s (loop (+ i 1) (* s y)))))))
           (define (g x . more) (let loop ((l more) (s x)) (if (null? l) s (loop (cdr l) (* s (car l))))))""",
        [("(gradient f 2.)", 32.0), ("(cadr (gradient f 2. 3.))", 12.0), ("(gradient f 3.)", 108.0),
         ("(gradient g 2.)", 1.0), ("(caddr (gradient g 2. 3. 4.))", 6.0), ("(car (gradient g 2. 3.))", 3.0)],
    ),
    "points of parts": (
        """(define (f l) (let loop ((p l) (s 0)) (if (null? p) s (loop (cdr p) (+ s (* (caar p) (cdar p)))))))
           (define (g l y)
             (let loop ((i 0) (s (car l))) (if (= i 2) s (loop (+ i 1) (* y s (vector-ref (cadr l) i))))))""",
        [("(cdr (cadr (gradient f (list (cons 1. 2.) (cons 3. 4.)))))", 3.0),
         ("(caar (gradient g (list 1. (vector 2. 3.)) 4.))", 96.0),
         ("(cadr (gradient g (list 1. (vector 2. 3.)) 4.))", 48.0)],
    ),
    "lists and vectors of other lengths": (
        "(define (f l) (let loop ((l l) (s 0)) (if (null? l) s (loop (cdr l) (+ (* s s) (car l))))))",
        [("(car (gradient f (list 1. 2. 3.)))", 12.0), ("(car (gradient f (list 1. 2.)))", 2.0),
         ("(car (gradient f (list 1. 2)))", 2.0), ("(car (gradient f (list 1.)))", 1.0)],
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESHKOL_CHECK", "1")
        made = Checker()
        yield made
        made.close()


@pytest.mark.parametrize("name", CASES)
def test_what_was_compiled_before_is_not_used_for_what_is_not_alike(checker: Checker, name: str) -> None:
    definitions, calls = CASES[name]
    checker.evaluate(definitions)
    for text, wanted in calls:
        assert float(checker.evaluate(text)) == pytest.approx(wanted, rel=1e-14), text


# Where Scheme computes with ratios and a typed program would with doubles: what is decided by them.
RATIOS = [
    ("floor of a sum of tenths",
     "(let loop ((i 0) (s 0)) (if (= i 10) (* x (floor s)) (loop (+ i 1) (+ s 1/10))))", 1.0),
    ("a sum that is 1", "(let loop ((i 0) (s 0)) (if (= i 10) (if (= s 1) (* x x) x) (loop (+ i 1) (+ s 1/10))))", 4.0),
    ("a sum of ratios beside a number",
     "(let loop ((i 0) (s 0)) (if (= i 10) (if (>= (+ s x) 3.) (* x x) x) (loop (+ i 1) (+ s 1/10))))", 4.0),
    ("tenths in a variable that is set",
     "(let ((t 0)) (let loop ((i 0)) (if (= i 10) (if (= t 1) (* 7 x) x) (begin (set! t (+ t 1/10)) (loop (+ i 1))))))",
     7.0),
    ("tenths in a vector",
     """(let ((w (make-vector 10 1/10))) (vector-set! w 0 1/10)
          (let loop ((i 0) (s 0)) (if (= i 10) (if (= s 1) (* 7 x) x) (loop (+ i 1) (+ s (vector-ref w i))))))""", 7.0),
    ("integers divided",
     "(let loop ((i 0) (s 0)) (if (= i 10) (* s x) (loop (+ i 1) (+ s (if (= (* 49 (/ i 49)) i) 1 0)))))",
     10.0),
    ("only added up", "(let loop ((i 0) (s 0)) (if (= i 10) (* x s) (loop (+ i 1) (+ s 1/10))))", 1.0),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), [case[1:] for case in RATIOS], ids=[case[0] for case in RATIOS])
def test_nothing_is_decided_by_the_last_bits_of_a_ratio(checker: Checker, text: str, wanted: float) -> None:
    checker.evaluate(f"(define (f x) {text})")
    assert float(checker.evaluate("(derivative f 2.)")) == pytest.approx(wanted, rel=1e-14)


def test_a_number_next_to_a_ratio_is_no_tie(checker: Checker) -> None:
    checker.evaluate("(define (f x) (let loop ((i 0) (s 0.)) (if (= i 10) s (loop (+ i 1) (+ s (max x 1/3))))))")
    near, forward = (checker.evaluate(f"(gradient f 0.3333333333333333{mode})") for mode in ("", " :mode 'forward"))
    assert near == forward
    assert float(checker.evaluate("(derivative f 1.)")) == 10.0
