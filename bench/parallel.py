"""Parallel forms: how `parallel-map` scales, for calls that compute, that allocate, and that do next to nothing.

Beside it stand `map` on one thread and Python's `multiprocessing` with as many processes. Threads: 1, 2, 4 … up to the
processors of the machine. Each row is the best of several runs, in turns.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.harness import Result

PROGRAM = """
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (computing n) (fib 20))
(define (allocating n) (length (map (lambda (x) (* 1.5 x)) (iota 2000))))
(define (cheap n) (* n n))
(define (milliseconds mapped f items)
  (let ((start (current-jiffy)))
    (mapped f items)
    (/ (- (current-jiffy) start) 1e6)))
(define (best mapped f items)
  (let loop ((turn 0) (least 1e9))
    (if (= turn 5) least (loop (+ turn 1) (begin (collect-garbage) (min least (milliseconds mapped f items)))))))
(for-each (lambda (f items)
            (write (best map f items)) (display " ")
            (write (best parallel-map f items)) (newline))
          (list computing allocating cheap)
          (list (iota 1000) (iota 1000) (iota 1000000)))
"""
TITLE = "Parallel forms"
KINDS = (("fib of 20", 1000), ("2,000 flonums", 1000), ("a square", 1_000_000))


def _fib(n: int) -> int:
    return n if n < 2 else _fib(n - 1) + _fib(n - 2)


def _computing(_: int) -> int:
    return _fib(20)


def _allocating(_: int) -> int:
    return len([1.5 * x for x in range(2000)])


def _cheap(n: int) -> int:
    return n * n


def _scheme(path: Path, threads: int) -> list[tuple[float, float]]:
    """Seconds of map and of parallel-map, by kind."""
    environment = os.environ | {"ESHKOL_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-m", "eshkol", path], env=environment, capture_output=True, text=True, check=True
    )
    return [(float(line.split()[0]) / 1e3, float(line.split()[1]) / 1e3) for line in done.stdout.splitlines()]


def _processes(count: int) -> list[float]:
    """Seconds of a map over the same by processes of Python's."""
    found = []
    with multiprocessing.get_context("fork").Pool(count) as pool:
        for work, items in ((_computing, range(200)), (_allocating, range(1000)), (_cheap, range(1000000))):
            start = time.perf_counter()
            pool.map(work, items)
            found.append((time.perf_counter() - start) * (5 if work is _computing else 1))  # a fifth of the calls
    return found


def run() -> list[Result]:
    """For each kind of call: one thread's map, then parallel-map and Python's processes by their number."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    results = [Result(kind, calls, "calls", {}) for kind, calls in KINDS]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "parallel.esk"
        path.write_text(PROGRAM, encoding="utf-8")
        for count in (n for n in (1, 2, 4, 8, 16, 32, 64) if n <= processors):
            for result, (one, many), peer in zip(results, _scheme(path, count), _processes(count), strict=True):
                result.seconds.setdefault("map", one)
                result.seconds[f"parallel-map, threads: {count}"] = many
                result.seconds[f"Python's processes: {count}"] = peer
    return results
