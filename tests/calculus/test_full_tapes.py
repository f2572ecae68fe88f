"""A tape that is full: the gradient is computed again with checkpoints, by itself, and it is the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from scheme_programs import Checker, parsed

TURNS = 20_000
LIMIT = 200_000  # bytes; each turn of the loop leaves at least a number on the tape
SETTING = f"""
(import (eshkol) (only (eshkol primitives) %fast-limit %fast-statistics))
(define point (vector 0.3 0.7 0.1 0.2 0.4 0.5 0.6 0.8)) ; so many numbers are differentiated in reverse
(define (walk v)
  (let loop ((i 0) (a (vector-ref v 0)) (b (vector-ref v 7)))
    (if (= i {TURNS})
        (* a b)
        (loop (+ i 1)
              (+ a (* 1e-4 (sin (* a b (vector-ref v 1)))))
              (- b (* 1e-4 (cos (+ a (vector-ref v 2)))))))))
(define (gradient-within limit f)     ; the runs that came to their end, the bytes of the last, and the gradient
  (let ((before (car (%fast-statistics))))
    (%fast-limit limit)
    (let ((found (gradient f point)))
      (%fast-limit 0)
      (list (- (car (%fast-statistics)) before) (cdr (%fast-statistics)) (vector->list found)))))
"""


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    made = Checker()
    made.evaluate(SETTING)
    yield made
    made.close()


def test_a_full_tape_is_replaced_by_checkpoints(checker: Checker) -> None:
    runs, used, whole = parsed(checker.evaluate("(gradient-within 0 walk)"))
    assert runs == 1
    assert used > LIMIT  # so that the next one cannot be recorded whole
    for _ in range(2):  # when the program with checkpoints is made, and when it is there
        runs, used, found = parsed(checker.evaluate(f"(gradient-within {LIMIT} walk)"))
        assert runs == 1
        assert used <= LIMIT
        assert found == whole
    dynamic = parsed(checker.evaluate("(vector->list (gradient walk point :mode 'reverse))"))
    assert found == pytest.approx(dynamic, rel=1e-11)
    runs, used, found = parsed(checker.evaluate("(gradient-within 0 walk)"))
    assert runs == 1
    assert used > LIMIT
    assert found == whole


def test_where_checkpoints_do_not_help_numbers_are_differentiated(checker: Checker) -> None:
    checker.evaluate("(define (folded v) (fold (lambda (x s) (+ x (sin s))) 0.0 (vector->list v)))")
    runs, _, whole = parsed(checker.evaluate("(gradient-within 0 folded)"))
    assert runs == 1
    runs, _, found = parsed(checker.evaluate("(gradient-within 1 folded)"))
    assert runs == 0
    assert found == pytest.approx(whole, rel=1e-12)
