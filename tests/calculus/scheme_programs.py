"""Random differentiable programs of the language: what is asked of each, and a driver.

    python tests/calculus/scheme_programs.py --count 1000 [--seed 1] [--show]

Comes in: a seed. Goes out: for each program what is wrong with it, if anything. A program is some definitions and a
function `f` of a number, several numbers, a vector or a list. Its compiled derivative is compared with those of
differentiated numbers, forward and in reverse, its value with that of an ordinary call; smooth programs also with
central differences, and plain expressions with symbolic derivatives.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from differentiable_programs import MIXED, Program, program
from nested import nested
from program_forms import FORMS

from eshkol.session import SessionThread

PRELUDE = """
(import (only (eshkol primitives) %fast-statistics %fast-derivatives) (only (eshkol symbolic) diff))
(define-record-type <couple> (couple one two) couple? (one couple-one) (two couple-two))
(define rate 0.75)
(define steps 3)
(define third 1/3)
(define weights (vector 0.5 -1.25 2.0 0.125))
(define counts (vector 2 0 3 1))
(define table '((0.5 1.0 -0.5) (1.5 0.25 0.75)))
(define pairs (list (cons 0.5 2) (cons -1.5 1)))
(define (half-of u) (/ u 2))
(define (squeeze u) (/ u (+ 1.0 (abs u))))
(define (power-of u n) (if (= n 0) 1 (* u (power-of u (- n 1)))))
(define (dot us vs) (apply + (map * us vs)))
(define (sum-of us) (fold + 0 us))
(define (mean-of v) (let loop ((i 0) (s 0)) (if (= i (vector-length v)) (/ s i) (loop (+ i 1) (+ s (vector-ref v i))))))
(define (compose g h) (lambda (u) (g (h u))))
(define (twice g) (compose g g))
(define (numbers-in data)
  (cond ((number? data) (list data))
        ((vector? data) (apply append (map numbers-in (vector->list data))))
        (else (apply append (map numbers-in data)))))
(define (message-of thunk) (guard (e ((error-object? e) (error-object-message e)) (#t 'raised)) (thunk)))
(define (symbolic expression x)
  (inexact ((eval `(lambda (x) ,(diff expression 'x)) (interaction-environment)) x)))
(define (runs) (car (%fast-statistics)))
(define (asked f points mode)
  (message-of (lambda ()
    (receive (value slope) (apply value-and-gradient f (append points (if mode (list :mode mode) '())))
      (if (not (or mode (equal? slope (apply gradient f points)))) (error "gradient gives something else"))
      (map inexact (cons value (numbers-in slope)))))))
(define (rows-of f points)
  (message-of (lambda ()
    (map (lambda (row) (map inexact (numbers-in row)))
         (vector->list (jacobian (lambda (p) (let ((y (f p))) (vector y (* 3 y)))) (car points)))))))
(define (outcome f points)
  (let* ((value (message-of (lambda () (inexact (apply f points))))) (before (runs)) (found (asked f points #f)))
    (list value (- (runs) before) found (asked f points 'forward) (asked f points 'reverse))))
"""

# ---- checks ----------------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """What came of many programs."""

    programs: int = 0
    calls: int = 0
    fast: int = 0
    again: int = 0  # gradients with checkpoints
    errors: int = 0  # runs that are errors in every way
    wrong: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)
    forms: Counter[str] = field(default_factory=Counter)


def parsed(text: str) -> Any:
    """Data as the machine writes them: numbers, strings, symbols and lists."""
    return nested(re.findall(r'[()]|"(?:[^"\\]|\\.)*"|[^\s()]+', text), _atom)[0]


def _atom(token: str) -> float | str:
    try:
        return float(token.replace("+nan.0", "nan").replace("inf.0", "inf"))
    except ValueError:
        return token


def close(a: Any, b: Any, relative: float, least: float) -> bool:
    """Whether two lists of numbers are alike, by their largest; what is no list must be the same."""
    if not isinstance(a, list) or not isinstance(b, list):
        return type(a) is type(b) and a == b
    if len(a) != len(b):
        return False
    finite = [abs(x) for x in (*a, *b) if math.isfinite(x)]
    size = max(finite, default=0.0)
    return all(
        (math.isnan(x) and math.isnan(y)) or x == y or abs(x - y) <= relative * size + least
        for x, y in zip(a, b, strict=True)
    )


class Checker:
    """One session for many programs."""

    def __init__(self) -> None:
        self.thread = SessionThread()
        self.report = Report()
        self.evaluate(PRELUDE)

    def evaluate(self, text: str) -> str:
        found: str = self.thread.call(lambda session: session.shown(session.evaluate(text)))
        return found

    def check(self, made: Program) -> None:
        report = self.report
        report.programs += 1
        report.forms.update(made.forms)
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            self.evaluate(made.text)
            for point in made.points:
                self.point(made, point)
        report.reasons.update(re.findall(r"no compiled derivative: (.*)", said.getvalue()))

    def point(self, made: Program, point: str) -> None:
        report, name = self.report, f"f{made.number}"
        report.calls += 1

        def wrong(what: str) -> None:
            report.wrong.append(f"seed {made.number}, at {point}: {what}\n  {made.text}")

        value, fast, found, forward, reverse = parsed(self.evaluate(f"(outcome {name} (list {point}))"))
        report.fast += bool(fast)
        if not isinstance(found, list) or not isinstance(value, float):
            report.errors += 1
            if not found == forward == reverse:
                wrong(f"errors differ: {found} / {forward} / {reverse}")
            return
        # exact numbers beside inexact ones in a list are inexact in compiled code: there, to the last bits
        near = MIXED in made.text and math.isclose(found[0], value, rel_tol=1e-14)
        if not (found[0] == value or near or (math.isnan(value) and math.isnan(found[0]))):
            wrong(f"the value is {value!r}, with the compiled derivative {found[0]!r}")
        for other, way in ((forward, "forward"), (reverse, "reverse")):
            if not close(found[1:], other[1:] if isinstance(other, list) else other, 1e-11, 1e-13):
                wrong(f"compiled {found[1:]}, {way} {other}")
        if made.number % 4 == 0:
            self.other_ways(made, point, found, wrong)
        if made.smooth and all(map(math.isfinite, found)):
            self.differences(made, point, found, wrong)
        if made.expression is not None:
            text = f"(symbolic '{made.expression} {point})"
            symbolic = [float(parsed(f"({self.evaluate(text)})")[0])]
            if not close(found[1:], symbolic, 1e-9, 1e-11):
                wrong(f"compiled {found[1:]}, symbolic {symbolic}")

    def other_ways(self, made: Program, point: str, found: list[float], wrong: Callable[[str], None]) -> None:
        """A Jacobian, and loops that are run again."""
        name, several = f"f{made.number}", made.arguments > 1
        if not several:
            rows = parsed(self.evaluate(f"(rows-of {name} (list {point}))"))
            wanted = [found[1:], [3 * x for x in found[1:]]]
            if not isinstance(rows, list) or not all(
                close(a, b, 1e-10, 1e-12) for a, b in zip(rows, wanted, strict=True)
            ):
                wrong(f"compiled {found[1:]}, Jacobian {rows}")
        text = f"(message-of (lambda () (map inexact (numbers-in (gradient {name} {point} :checkpoint #t)))))"
        again = parsed(self.evaluate(text))
        if isinstance(again, list) and not close(found[1:], again, 1e-10, 1e-12):
            wrong(f"compiled {found[1:]}, with checkpoints {again}")
        self.report.again += isinstance(again, list)

    def differences(self, made: Program, point: str, found: list[float], wrong: Callable[[str], None]) -> None:
        numbers = re.findall(r"-?\d+\.\d+(?:e-?\d+)?", point)
        index = made.number % len(numbers)
        places = [m.span() for m in re.finditer(r"-?\d+\.\d+(?:e-?\d+)?", point)]
        left, right = places[index]
        h = 1e-4
        moved = [f"{point[:left]}{float(numbers[index]) + k * h!r}{point[right:]}" for k in (-2, -1, 1, 2)]
        calls = " ".join(f"(f{made.number} {at})" for at in moved)
        a, b, c, d = parsed(self.evaluate(f"(map inexact (list {calls}))"))
        difference = (8 * (c - b) - (d - a)) / (12 * h)
        if not close([found[1 + index]], [difference], 1e-5, 1e-6):
            wrong(f"compiled {found[1 + index]}, by differences {difference}")

    def close(self) -> None:
        self.thread.close()


def run(seeds: Iterable[int], show: bool = False, checker: Checker | None = None) -> Report:
    """Programs of some seeds, checked."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESHKOL_DUMP", "calculus")
        patch.setenv("ESHKOL_CHECK", "1")
        used = checker or Checker()
        try:
            for seed in seeds:
                made = program(seed)
                if show:
                    print(f"; {seed} at {made.points}\n{made.text}", flush=True)
                used.check(made)
        finally:
            if checker is None:
                used.close()
    return used.report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", action="store_true", help="print each program before it runs")
    options = parser.parse_args()
    report = run(range(options.seed, options.seed + options.count), options.show)
    for text in report.wrong[:20]:
        print(text)
    print(
        f"{report.programs} programs, {report.calls} points: {report.fast} compiled, {report.errors} errors everywhere,"
        f" {report.again} with checkpoints, {len(report.wrong)} wrong"
    )
    print(f"  forms that were never made: {sorted({form.__name__ for form in FORMS} - set(report.forms))}")
    for reason, count in report.reasons.most_common(25):
        print(f"  {count:5} {reason}")
    return bool(report.wrong)


if __name__ == "__main__":
    sys.exit(main())
