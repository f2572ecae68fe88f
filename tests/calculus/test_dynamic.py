"""Differentiated numbers of the runtime: random functions, forward and reverse, against exact and complex-step
derivatives; memory of tapes; random wrong uses under sanitizers."""

from __future__ import annotations

import cmath
import os
import random
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "lang")]

from build_support import compiler  # noqa: E402
from compiled import in_session, written  # noqa: E402

PRIMITIVES = """
(import (eshkol))
(import (only (eshkol primitives) %derivative-level %make-dual %dual-tangent %make-tape %tape-input %tape-backward!
              %tape-adjoint))
(define (forward f x)
  (let* ((level (%derivative-level)) (y (f (%make-dual level x 1)))) (%dual-tangent level y)))
(define (backward f x)
  (let* ((level (%derivative-level)) (tape (%make-tape level)) (input (%tape-input tape x)) (y (f input)))
    (%tape-backward! tape y 1)
    (%tape-adjoint tape input)))
;; expressions as data, so that many cost little to compile
(define operations
  (list (cons '+ +) (cons '- -) (cons '* *) (cons '/ /) (cons 'expt expt) (cons 'sin sin) (cons 'cos cos)
        (cons 'exp exp) (cons 'log log) (cons 'sqrt sqrt) (cons 'tan tan) (cons 'atan atan) (cons 'square square)))
(define (value e x)
  (cond ((eq? e 'x) x)
        ((number? e) e)
        (else (apply (cdr (assq (car e) operations)) (map (lambda (part) (value part x)) (cdr e))))))
(define (try mode e x)
  (guard (e ((error-object? e) (error-object-kind e))) (mode (lambda (x) (value e x)) x)))
(define (both rows)
  (for-each (lambda (row) (write (try forward (car row) (cadr row))) (newline)
                          (write (try backward (car row) (cadr row))) (newline))
            rows))
"""


class Dual:
    """A number with its derivative, of any kind of number: an oracle that shares nothing with the runtime."""

    def __init__(self, value: Fraction, slope: Fraction | int = 0) -> None:
        self.value, self.slope = value, Fraction(slope)

    def __add__(self, other: Dual) -> Dual:
        return Dual(self.value + other.value, self.slope + other.slope)

    def __sub__(self, other: Dual) -> Dual:
        return Dual(self.value - other.value, self.slope - other.slope)

    def __mul__(self, other: Dual) -> Dual:
        return Dual(self.value * other.value, self.slope * other.value + self.value * other.slope)

    def __truediv__(self, other: Dual) -> Dual:
        slope = (self.slope * other.value - self.value * other.slope) / other.value**2
        return Dual(self.value / other.value, slope)

    def __pow__(self, n: int) -> Dual:
        return Dual(self.value**n, n * self.value ** (n - 1) * self.slope if n else 0)


def rational(rng: random.Random, depth: int) -> tuple[str, Callable[[Dual], Dual]]:
    """A random rational function of x, as Scheme text and in Python."""
    if depth == 0 or rng.random() < 0.1:
        if rng.random() < 0.6:
            return "x", lambda x: x
        constant = Fraction(rng.randint(-5, 5), rng.randint(1, 4))
        return str(constant), lambda x: Dual(constant)
    left, a = rational(rng, depth - 1)
    match rng.randint(0, 4):
        case 4:
            n = rng.randint(-2, 3)
            return f"(expt {left} {n})", lambda x: a(x) ** n
        case kind:
            right, b = rational(rng, depth - 1)
            apply: Callable[[Dual, Dual], Dual] = (Dual.__add__, Dual.__sub__, Dual.__mul__, Dual.__truediv__)[kind]
            return f"({'+-*/'[kind]} {left} {right})", lambda x: apply(a(x), b(x))


def answers(rows: list[str]) -> list[tuple[str, str]]:
    """What each row (expression point) has for a derivative, forward and reverse."""
    found: list[str] = []
    in_session(lambda session: found.extend(written(session, f"{PRIMITIVES}(both '({' '.join(rows)}))").split()))
    assert len(found) == 2 * len(rows)
    return list(zip(found[::2], found[1::2], strict=True))


def test_rational_functions_have_exact_derivatives() -> None:
    rng = random.Random(7)
    rows, expected = [], []
    for _ in range(200):
        text, function = rational(rng, rng.randint(1, 5))
        point = Fraction(rng.randint(-6, 6), rng.randint(1, 3))
        rows.append(f"({text} {point})")
        try:
            expected.append(str(function(Dual(point, 1)).slope))
        except ZeroDivisionError:
            expected.append("arithmetic")
    for row, found, slope in zip(rows, answers(rows), expected, strict=True):
        assert found == (slope, slope), row
    assert expected.count("arithmetic") < 60


FUNCTIONS: dict[str, Callable[[complex], complex]] = {
    "sin": cmath.sin, "cos": cmath.cos, "exp": cmath.exp, "log": cmath.log, "sqrt": cmath.sqrt, "tan": cmath.tan,
    "atan": cmath.atan, "square": lambda z: z * z, "-": lambda z: -z, "/": lambda z: 1 / z,
}  # fmt: skip


def smooth(rng: random.Random, depth: int) -> tuple[str, Callable[[complex], complex]]:
    """A random holomorphic function, as Scheme text and in Python."""
    if depth == 0:
        return "x", lambda z: z
    inner, f = smooth(rng, depth - 1)
    match rng.randint(0, 5):
        case 0:
            other, g = smooth(rng, depth - 1)
            return f"(+ {inner} {other})", lambda z: f(z) + g(z)
        case 1:
            other, g = smooth(rng, depth - 1)
            return f"(* {inner} {other})", lambda z: f(z) * g(z)
        case 2:
            return f"(expt (+ 1.5 (square {inner})) 0.7)", lambda z: (1.5 + f(z) ** 2) ** 0.7
        case _:
            name = rng.choice(sorted(FUNCTIONS))
            return f"({name} {inner})", lambda z: FUNCTIONS[name](f(z))


def test_smooth_functions_against_complex_steps() -> None:
    rng = random.Random(11)
    rows, expected, step = [], [], 1e-30
    while len(rows) < 150:
        text, function = smooth(rng, rng.randint(1, 4))
        point = rng.uniform(0.2, 2.0)
        try:
            slope, value = function(complex(point, step)).imag / step, function(complex(point, 0.0))
        except (ZeroDivisionError, OverflowError, ValueError):
            continue
        if not value.imag and 1e-6 < abs(slope) < 1e6:  # real, and not too steep to compare
            rows.append(f"({text} {point!r})")
            expected.append(slope)
    for row, found, slope in zip(rows, answers(rows), expected, strict=True):
        forward, reverse = map(float, found)
        assert forward == pytest.approx(slope, rel=1e-9), row
        assert reverse == pytest.approx(forward, rel=1e-12), row  # the same factors in another order


LIMITED = (
    PRIMITIVES
    + """
(import (only (eshkol primitives) %heap-statistic))
(define (chain x n) (if (= n 0) x (chain (+ (* x 0.5) 1.0) (- n 1))))
(define (size n) (guard (e (#t (error-object-kind e))) (backward (lambda (x) (chain x n)) 1.0)))
(write (list (size 10000000) (size 1) (size 10000000) (size 2)))
(do ((k 0 (+ k 1))) ((= k 10)) (collect-garbage)) ; an eighth of the pages that were in use goes back each time
(write (< (%heap-statistic 3) 40000000))
"""
)


def test_a_tape_beyond_the_limit_is_an_error_and_all_goes_on(tmp_path: Path) -> None:
    program = tmp_path / "limited.esk"
    program.write_text(LIMITED)
    command = [sys.executable, "-m", "eshkol", "run", str(program)]
    environment = os.environ | {"ESHKOL_HEAP": "96M"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "(out-of-memory 0.5 out-of-memory 0.25)#t", done.stdout + done.stderr


@pytest.mark.slow
def test_odd_arguments_under_sanitizers(tmp_path: Path) -> None:
    scheme = ROOT / compiler.SCHEME
    sources = [*sorted(scheme.glob("*.c")), Path(__file__).with_name("differential_driver.c")]
    flags = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", f"-I{scheme}")
    program = tmp_path / "driver"
    command = [*compiler.compiler(), *compiler.FLAGS, *flags, "-o", program, *sources, "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "sanitize" in done.stderr:
        pytest.skip("the compiler has no sanitizers")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    for seed in range(1, 9):
        environment = os.environ | {
            "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0",
            "ESHKOL_GC_STRESS": str(seed * 5),
        }
        run = subprocess.run(
            [program, str(seed), "30000"], env=environment, capture_output=True, text=True, check=False
        )
        assert run.returncode == 0, run.stderr
