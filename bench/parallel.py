"""Parallel forms: how they scale over threads, beside C with OpenMP and Python's `multiprocessing`.

`python -m bench parallel` measures, in at most about two minutes, calls that compute, calls that allocate, calls that
allocate and keep, and a million calls that do next to nothing: `map` on one thread and `parallel-map` on 1, 2, 4 …
threads, up to the processors of the machine; then a million futures, and 64 threads however few processors there are.
`--json FILE` writes what was found, `--threads 1,2,4` and `--turns N` say how much is measured. The C compiler is the
one at hand; where it has no OpenMP its rows are absent, and the table says so.

Each number is the best of several turns, in which `map` and `parallel-map` alternate, because a busy machine slows
both. What counts is the ratio: how many times as fast, and that by thread.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench.harness import Result, duration
from eshkol.errors import EshkolError
from eshkol.support.c_compiler import c_compiler

TITLE = "Parallel forms"
OVERSUBSCRIBED = 64


@dataclass(frozen=True)
class Kind:
    """What the calls do: as Scheme, as C, and as Python, which has so many of the calls to do as `share` says."""

    name: str
    calls: int
    scheme: str  # of n
    c: str  # of n, gives a double
    python: Callable[[int], float]
    share: float = 1.0


def _fib(n: int) -> int:
    return n if n < 2 else _fib(n - 1) + _fib(n - 2)


def _computing(_: int) -> int:
    return _fib(20)


def _allocating(n: int) -> int:
    return len([1.5 * (x + n) for x in range(2000)])


def _tree(depth: int) -> tuple[object, object] | None:
    return None if depth == 0 else (_tree(depth - 1), _tree(depth - 1))


def _keeping(_: int) -> int:
    return 0 if _tree(13) is None else 1


def _cheap(n: int) -> int:
    return n * n


KINDS = (
    Kind("computing: fib of 20", 16_000, "(fib 20)", "fib(20)", _computing, share=0.02),
    Kind("allocating: 2,000 flonums", 16_000, "(length (flonums n))", "flonums(n)", _allocating, share=0.1),
    Kind("keeping: a tree of 8,191 pairs", 2_000, "(count (tree 13))", "trees(13)", _keeping, share=0.1),
    Kind("cheap: a square", 1_000_000, "(* n n)", "(double)n * n", _cheap),
)
SCHEME = """
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(define (flonums n) (map (lambda (x) (* 1.5 x)) (iota 2000 n)))
(define (tree depth) (if (= depth 0) '() (cons (tree (- depth 1)) (tree (- depth 1)))))
(define (count tree) (if (null? tree) 0 (+ 1 (count (car tree)) (count (cdr tree)))))
(define (milliseconds thunk)
  (let ((start (current-jiffy)))
    (thunk)
    (/ (- (current-jiffy) start) 1e6)))
(define (statistic name) (cdr (assq name (heap-statistics))))
; The best times of both in turns, and of the collector's part in the best of the second: collections, milliseconds.
(define (race calls f with-map?)
  (define items (iota calls))
  (let loop ((turn 0) (one 1e9) (many 1e9) (collections 0) (paused 0))
    (if (= turn turns)
        (begin (write (list one many collections paused)) (newline))
        (let ((one (if with-map? (begin (collect-garbage) (min one (milliseconds (lambda () (map f items))))) one)))
          (collect-garbage)
          (let* ((before (statistic 'pauses)) (paused-before (statistic 'paused-nanoseconds))
                 (took (milliseconds (lambda () (parallel-map f items)))))
            (if (< took many)
                (loop (+ turn 1) one took (- (statistic 'pauses) before)
                      (/ (- (statistic 'paused-nanoseconds) paused-before) 1e6))
                (loop (+ turn 1) one many collections paused)))))))
(define (sum futures) (let loop ((rest futures) (s 0)) (if (pair? rest) (loop (cdr rest) (+ s (touch (car rest)))) s)))
(define (many-futures n)
  (sum (let loop ((i 0) (made '())) (if (< i n) (loop (+ i 1) (cons (future (* 2 i)) made)) made))))
(define (best-of thunk)
  (let loop ((turn 0) (least 1e9))
    (if (= turn turns) (begin (write (list least)) (newline))
        (begin (collect-garbage) (loop (+ turn 1) (min least (milliseconds thunk)))))))
"""
C = """
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
typedef struct Pair { struct Pair *car, *cdr; double x; } Pair;
static long fib_of(long n) { return n < 2 ? n : fib_of(n - 1) + fib_of(n - 2); }
static double fib(volatile long n) { return (double)fib_of(n); }
static double flonums(long n) {
    Pair *list = NULL;
    long count = 0;
    for (long i = 0; i < 2000; i++) {
        Pair *pair = malloc(sizeof *pair);
        *pair = (Pair){NULL, list, 1.5 * (double)(n + i)};
        list = pair;
    }
    while (list) {
        Pair *next = list->cdr;
        free(list);
        list = next;
        count++;
    }
    return (double)count;
}
static Pair *tree(int depth) {
    if (!depth) return NULL;
    Pair *pair = malloc(sizeof *pair);
    *pair = (Pair){tree(depth - 1), tree(depth - 1), 0};
    return pair;
}
static long counted(Pair *pair) {
    if (!pair) return 0;
    long count = 1 + counted(pair->car) + counted(pair->cdr);
    free(pair);
    return count;
}
static double trees(int depth) { return (double)counted(tree(depth)); }
int main(int argc, char **argv) {
    double best = 1e9;
    double *results = malloc(CALLS * sizeof *results);
    int turns = argc > 1 ? atoi(argv[1]) : 1;
    for (int turn = 0; turn < turns; turn++) {
        double start = omp_get_wtime();
#pragma omp parallel for schedule(guided)
        for (long n = 0; n < CALLS; n++) results[n] = CALL;
        double took = omp_get_wtime() - start;
        if (took < best) best = took;
    }
    printf("%.9f %g\\n", best, results[CALLS - 1]);
}
"""


@dataclass
class Found:
    """Seconds, by who and by the number of threads; None in the place of what is not there."""

    kind: str
    calls: int
    map: float  # the best of all runs
    parallel: dict[int, float] = field(default_factory=dict)  # by threads
    beside: dict[int, float] = field(default_factory=dict)  # `map` in the same runs
    collections: dict[int, int] = field(default_factory=dict)
    paused: dict[int, float] = field(default_factory=dict)  # seconds, of all threads, for the collector
    openmp: dict[int, float] = field(default_factory=dict)
    processes: dict[int, float] = field(default_factory=dict)

    def share(self, threads: int) -> float:
        """How many times as fast as `map` in the same run, by thread."""
        return self.beside[threads] / self.parallel[threads] / threads


# ---- the contestants -------------------------------------------------------------------------------------------------


def _scheme(folder: Path, threads: int, turns: int) -> list[list[float]]:
    """A row of numbers for each kind, and one for the futures."""
    path = folder / "parallel.esk"
    races = [f"(race {kind.calls} (lambda (n) {kind.scheme}) #t)" for kind in KINDS]
    path.write_text(
        "\n".join([f"(define turns {turns})", SCHEME, *races, "(best-of (lambda () (many-futures 1000000)))", ""]),
        encoding="utf-8",
    )
    environment = os.environ | {"ESHKOL_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-m", "eshkol", path], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return [[float(word) for word in line.strip("()").split()] for line in done.stdout.splitlines()]


def _compiled(folder: Path) -> dict[str, Path] | str:
    """The programs in C by kind, or why there are none."""
    made = {}
    for number, kind in enumerate(KINDS):
        source, program = folder / f"kind{number}.c", folder / f"kind{number}"
        source.write_text(C, encoding="utf-8")
        defines = [f"-DCALLS={kind.calls}L", f"-DCALL={kind.c}"]
        try:
            command = [*c_compiler(), "-O2", "-fopenmp", *defines, str(source), "-o", str(program)]
        except EshkolError as error:
            return str(error)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            return f"'{' '.join(command[:1])}' has no OpenMP"
        made[kind.name] = program
    return made


def _openmp(program: Path, threads: int, turns: int) -> float:
    environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
    done = subprocess.run([program, str(turns)], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


def _processes(count: int) -> list[float]:
    """Seconds of a map over the same calls by processes of Python's, which do a share of them."""
    found = []
    with multiprocessing.get_context("fork").Pool(count) as pool:
        pool.map(_cheap, range(count))
        for kind in KINDS:
            items = range(int(kind.calls * kind.share))
            start = time.perf_counter()
            pool.map(kind.python, items)
            found.append((time.perf_counter() - start) / kind.share)
    return found


# ---- the measurement -------------------------------------------------------------------------------------------------


def processors() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass
class Measured:
    """All that one run of this has found."""

    kinds: list[Found]
    futures: dict[int, float] = field(default_factory=dict)  # seconds for a million, by threads
    missing: str = ""  # why there is no row of C with OpenMP


def measure(threads: Sequence[int], turns: int, say: Callable[[str], None] = print) -> Measured:
    """Everything, for these numbers of threads; beyond the processors that there are, Eshkol alone."""
    found = Measured([Found(kind.name, kind.calls, float("inf")) for kind in KINDS])
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = _compiled(folder)
        if isinstance(programs, str):
            found.missing = programs
        for count in threads:
            start = time.perf_counter()
            *rows, (futures,) = _scheme(folder, count, turns)
            found.futures[count] = futures / 1e3
            peers = _processes(count) if count <= processors() else []
            for number, (kind, row) in enumerate(zip(found.kinds, rows, strict=True)):
                one, many, collections, paused = row
                kind.map = min(kind.map, one / 1e3)
                kind.beside[count], kind.parallel[count] = one / 1e3, many / 1e3
                kind.collections[count], kind.paused[count] = int(collections), paused / 1e3
                if count <= processors():
                    kind.processes[count] = peers[number]
                    if isinstance(programs, dict):
                        kind.openmp[count] = _openmp(programs[kind.kind], count, turns)
            say(f"{count} threads: measured in {time.perf_counter() - start:.0f} s")
    return found


def _numbers(most: int) -> list[int]:
    return [n for n in (1, 2, 4, 8, 16, 32, 64) if n <= most]


def run() -> list[Result]:
    """For each kind of call: one thread's map, then the others by their number of threads."""
    found = measure([*_numbers(processors())], 3, lambda _: None)
    return [Result(kind.kind, kind.calls, "calls", dict(_rows(kind))) for kind in found.kinds]


def _rows(kind: Found) -> list[tuple[str, float]]:
    return [
        ("map", kind.map),
        *((f"parallel-map, threads: {count}", seconds) for count, seconds in kind.parallel.items()),
        *((f"C with OpenMP, threads: {count}", seconds) for count, seconds in kind.openmp.items()),
        *((f"Python's processes: {count}", seconds) for count, seconds in kind.processes.items()),
    ]


def table(found: Measured) -> Table:
    """What a person reads."""
    made = Table(title=TITLE, title_justify="left")
    for number, column in enumerate(
        ("calls", "threads", "map", "parallel-map", "faster", "by thread", "collector", "OpenMP", "by thread", "Python")
    ):
        made.add_column(column, justify="left" if number == 0 else "right")
    for kind in found.kinds:
        for count, seconds in kind.parallel.items():
            ours, alone = kind.share(count), kind.openmp.get(1)
            theirs = kind.openmp.get(count)
            made.add_row(
                kind.kind if count == min(kind.parallel) else "", str(count), duration(kind.beside[count]),
                duration(seconds), f"{ours * count:.2f}", f"{ours:.2f}",
                f"{kind.collections[count]}: {duration(kind.paused[count])}" if kind.collections[count] else "",
                duration(theirs) if theirs else "", f"{alone / theirs / count:.2f}" if theirs and alone else "",
                duration(kind.processes[count]) if count in kind.processes else "",
            )  # fmt: skip
    return made


def main(words: Sequence[str]) -> int:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m bench parallel", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was found as JSON")
    parser.add_argument("--threads", help="numbers of threads, with commas between them", metavar="N,N…")
    parser.add_argument("--turns", type=int, default=3, help="how often everything is measured (%(default)s)")
    asked = parser.parse_args(words)
    numbers = [int(n) for n in asked.threads.split(",")] if asked.threads else [*_numbers(processors()), OVERSUBSCRIBED]
    found = measure(sorted(set(numbers)), asked.turns, partial(print, file=sys.stderr, flush=True))
    if asked.json:
        machine = {"machine": platform.machine(), "processors": processors(), "python": platform.python_version()}
        load = os.getloadavg() if hasattr(os, "getloadavg") else ()
        asked.json.write_text(json.dumps({"title": TITLE, **machine, "load": load, **asdict(found)}, indent=1))
    console = Console(width=140)
    console.print(table(found))
    for count, seconds in found.futures.items():
        console.print(f"a million futures, {count} threads: {duration(seconds)}")
    if found.missing:
        console.print(f"no rows of C with OpenMP: {found.missing}")
    return 0
