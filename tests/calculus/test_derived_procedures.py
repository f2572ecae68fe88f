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
    counts = compare(checker, range(1, amount(80, 14)))
    assert all(counts[way] for way in WAYS), counts
