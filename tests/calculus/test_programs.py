"""Compiled derivatives of Scheme programs agree with differentiated numbers: random programs, and hard ones by hand."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from scheme_programs import Checker, parsed, run

from effort import amount
from eshkol.errors import EshkolError
from eshkol.session import SessionThread

# a name, definitions of f, arguments, whether there must be a compiled derivative
CASES = [
    ("a global vector in a recursion",
     "(define (f x) (define (r k) (if (= k 0) x (* (vector-ref weights 2) (r (- k 1))))) (r 3))", "1.5", True),
    ("globals reach a function through another",
     """(define (f x) (define (p k) (if (= k 0) x (* rate (q (- k 1)))))
          (define (q k) (if (= k 0) rate (+ (vector-ref weights 0) (sin (p (- k 1)))))) (p 5))""", "1.5", True),
    ("a recursion whose result is exact, and large",
     """(define (factorial n) (if (= n 0) 1 (* n (factorial (- n 1)))))
        (define (f x) (let loop ((i 0) (s 0)) (if (= i 26) s (loop (+ i 1) (+ s (* x (factorial i)))))))""",
     "1.0", False),
    ("a recursion that makes a list",
     "(define (made n x) (if (= n 0) '() (cons (* n x) (made (- n 1) (sin x))))) (define (f x) (sum-of (made 9 x)))",
     "0.5", True),
    ("vectors that meet are not copied",
     """(define (f x) (let* ((a (vector x x)) (b (vector x 1.0)) (c (if (> x 0) a b)))
          (vector-set! c 0 (* 5 x)) (vector-set! b 1 x)
          (let loop ((i 0) (s 0)) (if (= i 2) s (loop (+ i 1) (+ s (* (vector-ref a i) (vector-ref b i))))))))""",
     "3.0", True),
    ("so in the other branch",
     """(define (f x) (let* ((a (vector x x)) (b (vector x 1.0)) (c (if (< x 0) a b)))
          (vector-set! c 0 (* 5 x)) (vector-set! b 1 x)
          (let loop ((i 0) (s 0)) (if (= i 2) s (loop (+ i 1) (+ s (* (vector-ref a i) (vector-ref b i))))))))""",
     "3.0", True),
    ("exact has the derivative of its number",
     "(define (f x) (let loop ((i 0) (s 0)) (if (= i 1) s (loop (+ i 1) (* x (exact x))))))", "3.0", False),
    ("an index made of a variable",
     "(define (f x) (let loop ((i 0) (s 0)) (if (= i 1) s (loop 1 (* x (vector-ref weights (exact (floor x))))))))",
     "2.5", True),
    ("a vector full of false",
     """(define (f x) (let ((v (make-vector 3 #f)))
          (let loop ((i 0) (x x)) (if (= i 3) x (loop (+ i 1) (if (vector-ref v i) (* 2 x) (* 3 x)))))))""",
     "3.0", False),
    ("text is not known",
     """(define (f x) (let loop ((i 0) (s 0))
          (if (= i 3) s (loop (+ i 1) (+ s (if (equal? (number->string i) "1") x (* x x)))))))""", "3.0", False),
    ("a comparison with a number between doubles",
     "(define (f x) (let loop ((i 0) (s x)) (if (= i 3) s (loop (+ i 1) (if (< s third) (* s 2) (* s 3))))))",
     "0.3333333333333333", True),
    ("large integers beside a number between them",
     """(define (f x) (let loop ((i 0) (t 0)) (if (= i 4) t
          (loop (+ i 1) (+ t (if (< (+ i 9007199254740993) 18014398509481985/2) x (* 2 x)))))))""", "0.3", True),
    ("integers beside fractions",
     """(define (f x) (let loop ((i -3) (t 0)) (if (= i 3) t (loop (+ i 1) (+ t
          (if (< i 1/3) x (* 2 x)) (if (<= i 1/3) (* 3 x) (* 5 x)) (if (> i 1/3) (* 7 x) (* 11 x))
          (if (>= i 1/3) (* 13 x) (* 17 x)) (if (= i 1/3) (* 19 x) (* 23 x)) (if (< 1/3 i) (* 29 x) (* 31 x))
          (if (<= 1/3 i) (* 37 x) (* 41 x)) (if (> -5/3 i) (* 43 x) (* 47 x)) (if (>= -5/3 i) (* 53 x) (* 59 x))
          (if (< i 100000000000000000000000/3) (* 61 x) (* 67 x)) (if (> i 100000000000000000000000/3) (* 71 x) x)
          (if (> i -100000000000000000000000/3) (* 73 x) x) (if (<= i -100000000000000000000000/3) (* 79 x) x))))))""",
     "0.3", True),
    ("case on an exact number",
     """(define (f x) (let loop ((i 0) (s x))
          (if (= i 4) s (loop (+ i 1) (case (modulo i 3) ((0) (* s 2)) ((1) (sin s)) (else (+ s x)))))))""",
     "0.7", True),
    ("an infinite factor times nothing",
     "(define (f v) (fold + 0 (map (lambda (u) (* u u)) (vector->list v))))", "(vector +inf.0 2.0 1.0)", False),
    ("a NaN among inputs",
     "(define (f v) (mean-of (vector-map square v)))", "(vector 1.0 +nan.0 1.0 1.0 1.0 2.0 3.0 1.0)", False),
    ("an integer that overflows",
     "(define (f x) (let loop ((i 0) (n 1)) (if (= i 70) (* x n) (loop (+ i 1) (* n 2)))))", "1.5", False),
    ("a number that is no record type",
     "(define (f x) (let loop ((i 0)) (if (= i 1) (couple-one (couple x 2)) (loop 1))))", "1.5", True),
    ("a question about exactness",
     """(define (f x) (let loop ((i 0) (s 0))
          (if (= i 3) s (loop (+ i 1) (if (exact? s) (* 2 x) (* 3 s))))))""", "2.0", False),
    ("a character",
     "(define (f x) (let loop ((i 0) (s x)) (if (= i 2) s (loop (+ i 1) (if (char=? #\\a #\\b) s (* s s))))))",
     "2.0", False),
    ("apply with a list of any length",
     "(define (f l) (+ (apply + (map * l l)) (apply max 0 l) (apply * (map sin (cdr l)))))",
     "(list 1.0 2.5)", True),
    ("apply of a procedure with a rest",
     "(define (f l) (apply (lambda (a b . rest) (+ (* a b) (apply + rest))) l))", "(list 1.0 2.5)", True),
    ("iota", "(define (f l) (apply + (map (lambda (u i) (* u i i)) l (iota (length l) 2))))",
     "(list 1.0 2.5)", True),
    ("many variables",
     """(define (f x) (let loop ((a x) (b 1) (c 2.0) (d 0) (e x) (g 1) (h 0) (i 0) (j 1/2) (k 3))
          (if (= i 5) (+ a b c d e g h j k) (loop b c d e g h (* a 0.5) (+ i 1) (+ j 1/4) (- k 1)))))""", "2.0", True),
    ("a huge constant",
     f"(define (f x) (let loop ((i 0) (s x)) (if (= i 1) s (loop 1 (/ s 1{'0' * 400})))))", "2.0", False),
]  # fmt: skip


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESHKOL_CHECK", "1")
        made = Checker()
        yield made
        made.close()


@pytest.mark.parametrize(("text", "point", "compiled"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_cases(checker: Checker, text: str, point: str, compiled: bool) -> None:
    checker.evaluate(text)
    value, runs, found, forward, reverse = parsed(checker.evaluate(f"(outcome f (list {point}))"))
    assert bool(runs) is compiled
    assert repr(found[0]) == repr(value)
    assert [repr(x) for x in found] == [repr(x) for x in forward] or found == pytest.approx(forward, rel=1e-14)
    assert [repr(x) for x in found] == [repr(x) for x in reverse] or found == pytest.approx(reverse, rel=1e-14)


ERRORS = [
    ("an index", "(define (f v) (do ((i 0 (+ i 1)) (s 0 (+ s (vector-ref v i)))) ((> i 3) s)))", "(vector 1.0 2.0)"),
    ("an exact zero", "(define (f x) (do ((i 2 (- i 1)) (s 0 (+ s (/ x i)))) ((< i 0) s)))", "2.0"),
    ("an error", '(define (f x) (do ((i 2 (- i 1))) ((> x i) (error "too small:" i))))', "2.5"),
    ("raise", "(define (f x) (do ((i 2 (- i 1))) ((> x i) (raise 'small))))", "2.5"),
    ("the end of a list", "(define (f l) (let loop ((l l) (s 0)) (loop (cdr l) (+ s (car l)))))", "(list 1.0 2.0)"),
    ("too many arguments", "(define (f x) (let loop ((i 0)) (if (= i 2) (half-of x x) (loop (+ i 1)))))", "1.0"),
    ("the logarithm of an exact zero", "(define (f x) (do ((i 2 (- i 1)) (s x (+ s (log i)))) ((< i 0) s)))", "2.0"),
    (
        "an exact zero that became a double",
        "(define (f x) (do ((i 0 (+ i 1)) (s 0 (+ s (/ x s)))) ((= i 2) s)))",
        "2.0",
    ),
    ("no definition", "(define (f x) (do ((i 0 (+ i 1))) ((= i 2) (if no-such-variable x (* x x)))))", "2.0"),
    ("no number", "(define (f x) (let loop ((i 0)) (if (= i 2) 'small (loop (+ i 1)))))", "1.0"),
]


@pytest.mark.parametrize(("text", "point"), [case[1:] for case in ERRORS], ids=[case[0] for case in ERRORS])
def test_errors_are_those_of_the_program(checker: Checker, text: str, point: str) -> None:
    checker.evaluate(text)
    _, runs, found, forward, reverse = parsed(checker.evaluate(f"(outcome f (list {point}))"))
    assert not runs
    assert isinstance(found, str)
    assert found == forward == reverse


def test_what_changes_is_noticed(checker: Checker) -> None:
    """Procedures and variables that are changed between two derivatives."""
    checker.evaluate("""
        (define factor 2.0)
        (define (inner x) (* factor x))
        (define (f x) (let loop ((i 0) (s 0)) (if (= i 3) s (loop (+ i 1) (+ s (if factor (inner x) 1.0))))))
        (define (slopes) (list (derivative f 2.0) (derivative f 2.0 :mode 'forward)))""")
    assert checker.evaluate("(slopes)") == "(6.0 6.0)"
    for change, wanted in [
        ("(set! factor 3.0)", 9), ("(set! factor 5)", 15), ("(set! factor 1/4)", 0.75), ("(set! factor 1/2)", 1.5),
        ("(define (inner x) (* x x))", 12), ('(set! factor "yes")', 12), ("(set! factor #f)", 0),
    ]:  # fmt: skip
        checker.evaluate(change)
        one, other = parsed(checker.evaluate("(slopes)"))
        assert one == other == wanted, change


def test_effects_happen_as_often_as_without(checker: Checker) -> None:
    checker.evaluate("""
        (define calls 0)
        (define (f x) (set! calls (+ calls 1)) (let loop ((i 0) (s 0)) (if (= i 3) (* s calls) (loop (+ i 1) (+ s x)))))
        (define (slopes) (map (lambda (i) (derivative f 2.0)) '(1 2 3)))""")
    assert checker.evaluate("(list (slopes) calls)") == "((3.0 6.0 9.0) 3)"


def test_large_points_behind_small_ones(checker: Checker) -> None:
    """A program that goes forward through few inputs is not used for many."""
    checker.evaluate("(define (f v) (let loop ((i 0) (s 0)) (if (= i (vector-length v)) s"
                     " (loop (+ i 1) (+ s (square (vector-ref v i)))))))")  # fmt: skip
    assert checker.evaluate("(gradient f (vector 2.0))") == "#(4.0)"
    assert checker.evaluate("(vector-ref (gradient f (make-vector 200000 1.5)) 199999)") == "3.0"


def test_a_mistake_of_ours_is_told_once_and_the_answer_is_right(
    checker: Checker, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only a refusal is silent. Under ESHKOL_CHECK a mistake is an error."""

    def mistaken(*_: object) -> None:
        raise KeyError("broken")

    monkeypatch.setattr("eshkol.calculus.fast.specialized", mistaken)
    checker.evaluate("(define (cube x) (do ((i 0 (+ i 1)) (s 1.0 (* s x))) ((= i 3) s)))")
    with pytest.raises(EshkolError, match="KeyError: 'broken'"):
        checker.evaluate("(derivative cube 2.0)")
    monkeypatch.delenv("ESHKOL_CHECK")
    capfd.readouterr()
    assert checker.evaluate("(derivative cube 2.0)") == "12.0"
    said = capfd.readouterr().err
    assert said.startswith("warning: the derivative of #<procedure cube> is right, but slow: a mistake in Eshkol ")
    assert "\n  KeyError: 'broken' (test_programs.py:" in said
    assert said.endswith("  please report it with the program that you ran (ESHKOL_DEBUG=1 shows the traceback)\n")
    checker.evaluate("(define (square x) (do ((i 0 (+ i 1)) (s 1.0 (* s x))) ((= i 2) s)))")
    assert checker.evaluate("(derivative square 2.0)") == "4.0"
    assert capfd.readouterr().err == ""


def test_random_programs(checker: Checker) -> None:
    report = run(range(1, 1 + amount(400, 12)), checker=checker)
    assert not report.wrong, "\n".join(report.wrong[:5])
    assert report.fast >= 0.75 * report.calls, report.reasons


@pytest.mark.slow
def test_many_random_programs() -> None:
    report = run(range(100_000, 102_000))
    assert not report.wrong, "\n".join(report.wrong[:5])
    assert report.fast >= 0.8 * report.calls, report.reasons


def test_tapes_count_against_the_limit_of_the_heap() -> None:
    """A loop is run again in parts where its tape has no room; a recursion, whose tape cannot be cut, is an error."""
    thread = SessionThread(12 << 20)

    def evaluate(text: str) -> str:
        found: str = thread.call(lambda session: session.shown(session.evaluate(text)))
        return found

    point = "(make-vector 8 0.5)"
    evaluate("(import (only (eshkol primitives) %fast-statistics))")
    evaluate("""(define (around v)
      (let loop ((i 0) (s 0.0)) (if (= i 2300000) s (loop (+ i 1) (sin (+ s (vector-ref v 0)))))))""")
    evaluate("""(define (deep v)
      (let down ((i 0)) (if (= i 750000) 0.0 (+ (sin (* (vector-ref v 0) i)) (down (+ i 1))))))""")
    try:
        s, slope = 0.0, 0.0
        for _ in range(2300000):
            s, slope = math.sin(s + 0.5), math.cos(s + 0.5) * (slope + 1)
        assert parsed(evaluate(f"(list (vector-ref (gradient around {point}) 0))")) == [pytest.approx(slope, rel=1e-12)]
        runs, used = evaluate("(%fast-statistics)").strip("()").split(" . ")
        assert int(runs) > 0
        assert int(used) < 1 << 20  # not the 18 MB of a whole tape
        for options in ("", " :checkpoint #t"):
            with pytest.raises(EshkolError, match="out of memory: bytes wanted, and the heap limit"):
                evaluate(f"(gradient deep {point}{options})")
        assert evaluate("(+ 1 1)") == "2"
    finally:
        thread.close()
