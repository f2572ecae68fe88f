"""Memory: what Scheme drops is freed, so that loops over tensors and over the border hold it flat.

Each program runs in a process of its own, which tells how much its greatest resident size grew after a first round.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from effort import amount

ROOT = Path(__file__).parents[2]
LARGE = 2_000_000  # float32 elements: 8 MB

MEASURE = """
import json, resource, sys
import eshkol as ek

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024   # MB

found = []
for definitions, first, then in json.loads(sys.argv[1]):
    ek.eval(definitions)
    ek.eval(first)
    before = peak()
    ek.eval(then)
    found.append(peak() - before)
print(json.dumps(found))
"""


def measured(program: str, *arguments: str) -> Any:
    """What a program of Python, run by itself, prints as JSON."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def growth(*programs: tuple[str, str, str]) -> list[float]:
    """By how many megabytes the peak grows: of programs (definitions, first, then), one after another, by `then`."""
    found = measured(MEASURE, json.dumps(programs))
    assert len(found) == len(programs)
    return [float(x) for x in found]


LOOPS = {
    "each result read": f"""
        (define (churn count)
          (let loop ((k 0) (t (ones {LARGE})))
            (if (< k count)
                (let ((next (tensor-add t 1.0)))
                  (if (= (tensor-ref next 7) (+ k 2.0)) (loop (+ k 1) next) (error "wrong" k)))
                t)))""",
    "one chain, read at its end": f"""
        (define (churn count)
          (let loop ((k 0) (t (ones {LARGE})))
            (if (< k count)
                (loop (+ k 1) (tensor-mul (tensor-add t 1.0) 0.5))
                (tensor-ref t 7))))""",
    "made anew each time": f"""
        (define (churn count)
          (do ((k 0 (+ k 1)))
              ((= k count))
            (tensor->number (tensor-sum (make-random-tensor '({LARGE}))))))""",
    "in place": f"""
        (define (churn count)
          (let ((t (zeros {LARGE})))
            (do ((k 0 (+ k 1)))
                ((= k count) (tensor-ref t 7))
              (tensor-add! t 1.0)
              (tensor-ref t 7))))""",
}


@pytest.mark.optimized  # it computes with 8 MB at a time
def test_loops_over_large_tensors_hold_memory_flat() -> None:
    """60 operations on 8 MB each would be half a gigabyte; drawing them takes longer, and 30 are a quarter."""
    rounds = {name: 30 if "random" in text else amount(200, 60) for name, text in LOOPS.items()}
    found = growth(*((text, "(churn 3)", f"(churn {rounds[name]})") for name, text in LOOPS.items()))
    assert max(found) < 100, dict(zip(LOOPS, found, strict=True))


CROSSINGS = """
    (define t (tensor 1.0 2.0 3.0))
    (define (cross count)
      (do ((k 0 (+ k 1)))
          ((= k count))
        (tensor-shape t)))
    (define (make count)
      (do ((k 0 (+ k 1)))
          ((= k count))
        (tensor-neg t)))
"""


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_crossings_leave_memory_flat(count: int) -> None:
    """The first round is long enough for a collection: a small tensor counts as 2 KB, and 64 MB start one."""
    found = growth(*((CROSSINGS, f"({what} 40000)", f"({what} {count - 40_000})") for what in ("cross", "make")))
    assert max(found) < 30, found


CALLS = """
    (define (twice x) (* 2 x))
    (define keep (lambda (f count) (do ((k 0 (+ k 1))) ((= k count)) (f (list k "text" (vector k 1.5))))))
"""

FROM_PYTHON = """
import resource, sys
import eshkol as ek

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

ek.eval(sys.argv[1])
twice, keep, count = ek.eval("twice"), ek.eval("keep"), int(sys.argv[2])

def work(count):
    for k in range(count // 100):            # out of Scheme's thread and back again
        assert twice(k) == 2 * k
    keep(lambda x: [x, ek.eval], count)      # from Scheme to Python, with data both ways

work(10_000)
before = peak()
work(count)
print(peak() - before)
"""


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_calls_of_both_languages_leave_memory_flat(count: int) -> None:
    assert measured(FROM_PYTHON, CALLS, str(count)) < 30
