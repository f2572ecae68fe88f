"""Derivatives of derivatives of procedures: compiled ones agree with differentiated numbers, for random programs."""

from __future__ import annotations

import contextlib
import io
import math
from collections import Counter
from collections.abc import Iterator

import pytest
from differentiable_programs import program
from scheme_programs import Checker, close, parsed

from effort import amount

SETTING = """
(define (both thunk)
  (let* ((before (runs)) (fast (message-of (lambda () (map inexact (numbers-in (thunk)))))) (count (- (runs) before)))
    (%fast-derivatives #f)
    (let ((slow (message-of (lambda () (map inexact (numbers-in (thunk)))))))
      (%fast-derivatives #t)
      (list count fast slow))))
(define (scaled r x)
  (cond ((number? x) (* r x))
        ((vector? x) (vector-map (lambda (a) (scaled r a)) x))
        (else (map (lambda (a) (scaled r a)) x))))
(define (dotted x y)
  (cond ((number? x) (* x y))
        ((vector? x) (let loop ((i 0) (s 0.0))
                       (if (= i (vector-length x)) s (loop (+ i 1) (+ s (dotted (vector-ref x i) (vector-ref y i)))))))
        (else (fold (lambda (a b s) (+ s (dotted a b))) 0.0 x y))))
"""
# of a procedure f of one argument, at p
WAYS = {
    "hessian": "(hessian f p)",
    "along": "(directional-derivative f p p)",
    "gradient along": "(directional-derivative (gradient f) p p)",
    "gradient of a gradient": "(gradient (lambda (x) (dotted (gradient f x) x)) p)",
    "in a loop": "(derivative (lambda (r) (let loop ((i 0) (s 0.0)) (if (= i 2) s"
    " (loop (+ i 1) (+ s (dotted p (gradient f (scaled r p)))))))) 0.9)",
    "captured": "(derivative (lambda (r) (let loop ((i 0) (s r)) (if (= i 2) s"
    " (loop (+ i 1) (* s (dotted p (gradient (lambda (x) (* r s (f x))) p))))))) 0.8)",
    "third": "(derivative (lambda (r) (derivative (lambda (q) (dotted p (gradient f (scaled (* q r) p)))) 1.1)) 0.9)",
}


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESHKOL_DUMP", "calculus")
        patch.setenv("ESHKOL_CHECK", "1")
        made = Checker()
        made.evaluate(SETTING)
        yield made
        made.close()


def compare(checker: Checker, seeds: range, show: bool = False) -> Counter[str]:
    """How many of each way were compiled; every one agrees."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        made = program(seed)
        if made.arguments > 1:
            continue
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            checker.evaluate(made.text)
            for way, text in WAYS.items():
                point = made.points[0]
                asked = f"(let ((f f{seed}) (p {point})) (both (lambda () {text})))"
                runs, fast, slow = parsed(checker.evaluate(asked))
                counts[way] += bool(runs)
                counts["all"] += 1
                if isinstance(slow, list) and not all(math.isfinite(x) and abs(x) < 1e9 for x in slow):
                    continue
                if show and not close(fast, slow, 1e-8, 1e-9):
                    print(seed, way, fast, slow, made.text)
                else:
                    assert close(fast, slow, 1e-8, 1e-9), f"{seed} {way} at {point}: {fast} {slow}\n{made.text}"
        if show:
            counts.update(line.split(": ", 1)[1] for line in said.getvalue().splitlines() if "no compiled" in line)
    return counts


def test_random_programs(checker: Checker) -> None:
    counts = compare(checker, range(1, amount(80, 7)))
    assert all(counts[way] for way in WAYS), counts


CASES = {
    "a Jacobian in pieces": "(jacobian (lambda (v) (vector-map (lambda (a) (* a (vector-ref v 30) (sin a))) v))"
    " (ramp 40))",
    "a Jacobian in pieces, as a list": "(jacobian (lambda (v) (list (vector-ref v 3) (fold + 0.0 (vector->list v))))"
    " (ramp 33))",
    "a Jacobian by several": "(jacobian (lambda (v x) (vector-map (lambda (a) (* a x)) v)) (ramp 20) 3.0)",
    "a Jacobian of a number": "(jacobian (lambda (v) (fold * 1.0 (vector->list v))) (ramp 20))",
    "a Hessian by several numbers": "(hessian (lambda (x y) (let loop ((i 0) (s 0.0)) (if (= i 3) s"
    " (loop (+ i 1) (+ s (* x x y (sin y))))))) 1.5 2.0)",
    "confusion": "(derivative (lambda (x) (let loop ((i 0) (s 0)) (if (= i 4) s (loop (+ i 1)"
    " (+ s (* x (derivative (lambda (y) (+ x y)) x))))))) 1.0)",
    "an early exit": "(derivative (lambda (r) (derivative (lambda (x) (let loop ((i 0) (s x)) (cond ((> s 20) (* r s))"
    " ((= i 9) s) ((< s 0.5) (loop (+ i 1) (* 3 s x))) (else (loop (+ i 1) (* r s s)))))) 1.2)) 1.3)",
    "a vector from outside": "(derivative (lambda (r) (let loop ((k 0) (v constant)) (if (= k 3) (vector-ref v 1)"
    " (loop (+ k 1) (vector-map (lambda (a b) (- a (* r b))) v (gradient"
    " (lambda (w) (apply * (vector->list w))) v)))))) 0.1)",
    "vjp of a number": "(receive (y pull) (vjp (lambda (v) (fold * 1.0 (vector->list v))) (ramp 20))"
    " (list y (pull 2)))",
    "vjp of a vector": "(receive (y pull) (vjp (lambda (v) (vector-map (lambda (a) (* a a)) v)) (ramp 4))"
    " (list y (pull (vector 1 0 2.0 0.5))))",
}


@pytest.mark.parametrize("name", CASES)
def test_cases(checker: Checker, name: str) -> None:
    checker.evaluate("(define (ramp n) (list->vector (map (lambda (i) (+ 0.5 (* 0.125 i))) (iota n))))")
    checker.evaluate("(define constant (vector 1.0 2.0 3.0))")
    runs, fast, slow = parsed(checker.evaluate(f"(both (lambda () {CASES[name]}))"))
    assert runs
    assert close(fast, slow, 1e-12, 1e-14), (fast, slow)


def test_memory_of_inner_derivatives_is_used_again(checker: Checker) -> None:
    """Forward: a loop of derivatives of loops takes no more than one of them."""
    checker.evaluate("""
        (define (power x n) (let loop ((i 0) (p 1.0)) (if (= i n) p (loop (+ i 1) (* p (cos (* x p)))))))
        (define (relaxed r turns)
          (let loop ((k 0) (x 0.5))
            (if (= k turns) x (loop (+ k 1) (- x (* r (derivative (lambda (t) (power t 50)) x)))))))
        (define (used turns) (derivative (lambda (r) (relaxed r turns)) 0.01) (cdr (%fast-statistics)))""")
    few, many = (float(checker.evaluate(f"(used {turns})")) for turns in (2, 2000))
    assert 0 < few == many < 10_000


def test_a_gradient_without_its_point_is_known_by_its_procedure(checker: Checker) -> None:
    """Many gradients of different procedures are one procedure with other captured ones."""
    for k in range(8):
        sum_of_powers = f"(lambda (v) (fold (lambda (a s) (+ s (expt a {k}))) 0.0 (vector->list v)))"
        text = f"(directional-derivative (gradient {sum_of_powers})"
        runs, fast, slow = parsed(checker.evaluate(f"(both (lambda () {text} (vector 1.5 2.0) (vector 1.0 0.5))))"))
        assert runs
        assert close(fast, slow, 1e-12, 1e-14), k


SMOOTH = {  # procedures of a vector with loops, conditions, inner procedures
    "loop": "(lambda (v) (let loop ((i 0) (s 1.0)) (if (= i 3) s"
    " (loop (+ i 1) (+ (* s (sin (vector-ref v i))) (exp (* 0.3 (vector-ref v i))))))))",
    "branches": "(lambda (v) (if (> (vector-ref v 0) 0.0)"
    " (* (vector-ref v 0) (expt (vector-ref v 1) 3) (vector-ref v 2)) (vector-ref v 1)))",
    "mapped": "(lambda (v) (let ((w (vector-map (lambda (a) (* a (cos a))) v)))"
    " (/ (dotted w (vector-append v)) (+ 2.0 (dotted v v)))))",
}
# What a derivative at a deeper level is, and the procedure of one number whose difference it must be.
DIFFERENCES = {
    "hessian": ("(dotted d (hessian-times d))", "(lambda (t) (dotted d (gradient f (moved t))))"),
    "along": ("(dotted d (directional-derivative (gradient f) p d))", "(lambda (t) (dotted d (gradient f (moved t))))"),
    "descent": ("(derivative descent 0.1)", "(lambda (t) (descent (+ 0.1 t)))"),
    "third": (
        "(derivative (lambda (r) (derivative (lambda (q) (dotted d (gradient f (scaled (* q r) p)))) 1.1)) 0.9)",
        "(lambda (t) (derivative (lambda (q) (dotted d (gradient f (scaled (* q (+ 0.9 t)) p)))) 1.1))",
    ),
}


def test_deeper_levels_are_those_of_differences(checker: Checker) -> None:
    """Central differences of the level above, of fourth order: no derivative of that level is asked for."""
    for name, procedure in SMOOTH.items():
        for way, (text, varied) in DIFFERENCES.items():
            found, wanted = parsed(checker.evaluate(f"""
                (let* ((f {procedure}) (p (vector 0.7 1.3 0.4)) (d (vector 1.0 -0.5 0.8)))
                  (define (moved t) (vector-map (lambda (a b) (+ a (* t b))) p d))
                  (define (hessian-times d)
                    (let ((rows (hessian f p))) (vector-map (lambda (row) (dotted row d)) rows)))
                  (define (descent rate)
                    (let loop ((i 0) (x p))
                      (if (= i 4) (f x)
                          (loop (+ i 1) (vector-map (lambda (a b) (- a (* rate b))) x (gradient f x))))))
                  (let* ((g {varied}) (h 1e-3)
                         (difference (/ (- (* 8.0 (- (g h) (g (- h)))) (- (g (* 2.0 h)) (g (* -2.0 h)))) (* 12.0 h))))
                    (list {text} difference)))"""))  # fmt: skip
            assert math.isclose(found, wanted, rel_tol=1e-6, abs_tol=1e-6), (name, way, found, wanted)
            assert abs(wanted) > 1e-3, (name, way, "says little")
