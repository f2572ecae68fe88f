"""Derivatives of procedures that are made again and again around other values, in one session: a driver.

    python tests/calculus/shared_programs.py --count 100 [--seed 1]

Comes in: a seed. Goes out: what is wrong. A *maker* is a procedure that gives a procedure to be differentiated, which
has captured numbers, a list, a vector, a record and other procedures. It is called with values of a pool, now one value
for two parameters, now two that differ in what they have captured alone; between the calls the values of the pool are
changed, global procedures are defined again, numbers become exact or inexact, lists and vectors longer. What was
compiled for one call is there when the next one comes, so whatever the key of a compiled derivative leaves out is seen:
each is compared with differentiated numbers, forward and in reverse, and its value with that of an ordinary call.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from differentiable_programs import Generator, Scope
from program_forms import FORMS as FORMS
from scheme_programs import Checker, close, parsed

ROUNDS = 7  # calls of a maker
POOL = """
(define (scale k) (lambda (u) (* k u)))
(define (shift k) (lambda (u) (+ u k)))
(define (bend k) (lambda (u) (let loop ((i 0) (s u)) (if (= i 2) s (loop (+ i 1) (sin (* k s)))))))
(define (after g h) (lambda (u) (g (h u))))
(define (counted) (let ((n 0.5)) (cons (lambda (u) (* n u)) (lambda (m) (set! n m)))))
(define-record-type <settings> (settings gain bias) settings? (gain gain set-gain!) (bias bias set-bias!))
(define number-1 0.5) (define number-2 2) (define number-3 1/3)
(define vector-1 (vector 0.5 1.5 -0.5)) (define vector-2 (vector 1.0 0.25 0.5 0.75))
(define list-1 (list 0.5 1.5)) (define list-2 (list 1.0 2.0 0.5))
(define fun-1 (scale 0.5)) (define fun-2 (scale 1.5)) (define fun-3 (shift 0.25))
(define counter (counted))
(define (helper u) (* u 0.5))
(define set-1 (settings 0.5 1.0)) (define set-2 (settings 0.25 (list 1.0 2.0)))
"""
NUMBERS = ("0.5", "2", "1/3", "-0.75", "1.25", "3", "-1", "0.1", "1/10")


@dataclass
class Report:
    makers: int = 0
    calls: int = 0
    fast: int = 0
    errors: int = 0
    wrong: list[str] = field(default_factory=list)


class Sharing:
    """Makers, one after the other, in one session."""

    def __init__(self) -> None:
        self.checker = Checker()
        self.checker.evaluate(POOL)
        self.report = Report()
        self.said: list[str] = []

    def evaluate(self, text: str) -> str:
        self.said.append(text)
        return self.checker.evaluate(text)

    def close(self) -> None:
        self.checker.close()

    def check(self, seed: int) -> None:
        chance = random.Random(seed)
        self.said = []
        self.report.makers += 1
        kind = chance.choice(("number", "number", "vector", "list"))
        name = f"maker-{seed}"
        self.evaluate(f"(define ({name} k l w p q s) (lambda (x) {body(chance, kind)}))")
        made = None
        for _ in range(ROUNDS):
            if chance.random() < 0.6:
                self.evaluate(change(chance))
            if made is None or chance.random() < 0.8:
                made = f"({name} {given(chance)})"
                self.evaluate(f"(define f {made})")
            self.compare(seed, point(chance, kind))

    def compare(self, seed: int, at: str) -> None:
        report = self.report
        report.calls += 1
        value, fast, found, forward, reverse = parsed(self.checker.evaluate(f"(outcome f (list {at}))"))
        report.fast += bool(fast)
        if not isinstance(found, list) or not isinstance(value, float):
            report.errors += 1
            good = found == forward == reverse
        else:
            good = close([found[0]], [value], 1e-13, 1e-15) and all(
                isinstance(other, list) and close(found[1:], other[1:], 1e-10, 1e-12) for other in (forward, reverse)
            )
        if not good:
            said = "\n".join(self.said)
            report.wrong.append(f"seed {seed} at {at}: {value} / {found} / {forward} / {reverse}\n{said}")


def body(chance: random.Random, kind: str) -> str:
    """What is differentiated, by `x`."""
    generator = Generator(chance)
    scope = Scope(reals=["k", "k"], lists=["l"], vectors=["w"], functions=["p", "q", "helper", "fun-1"])
    if kind == "number":
        scope = scope.plus(reals=["x", "x", "x"])
    elif kind == "vector":
        scope = scope.plus(vectors=["x", "x"], reals=["(vector-ref x 0)", "(vector-ref x 2)"])
    else:
        scope = scope.plus(lists=["x", "x"], reals=["(car x)"])
    inner = generator.real(scope, 3)
    more = chance.choice(
        (
            "(p {0})", "(+ (p {0}) (* 10 (q {0})))", "(* {0} (gain s))", "((after p q) {0})", "(q (helper {0}))",
            "(* {0} ((car counter) 1.0))", "(let loop ((i 0) (t {0})) (if (= i 2) t (loop (+ i 1) (p (q t)))))",
            "(+ {0} (if (settings? s) (if (number? (bias s)) (* {0} (bias s)) (apply + (bias s))) 0))",
            "(fold (lambda (u t) (+ t (p u))) {0} l)",
            "(let ((m 0)) (for-each (lambda (u) (set! m (+ m (* u {0})))) l) m)",
            "(if (memv number-2 '(2 3)) (* 2 {0}) {0})", "(do ((i 0 (+ i 1)) (t {0} (* t number-1))) ((= i 2) t))",
        )
    )  # fmt: skip
    return more.format("(sin u)").join(("(let ((u " + inner + ")) ", ")"))


def given(chance: random.Random) -> str:
    """Arguments of a maker; the same procedure twice, or two of the same code."""
    funs = ("fun-1", "fun-1", "fun-2", "fun-3", "(scale 0.75)", "(scale number-1)", "(bend 0.5)", "(after fun-1 fun-2)",
            "(after fun-1 fun-1)", "sin", "(car counter)")  # fmt: skip
    p = chance.choice(funs)
    q = p if chance.random() < 0.4 else chance.choice(funs)
    k = chance.choice(("number-1", "number-2", "number-3", chance.choice(NUMBERS)))
    lists, vectors = ("list-1", "list-2", "(list 0.5 2)"), ("vector-1", "vector-2", "(vector 1 2 3)")
    return f"{k} {chance.choice(lists)} {chance.choice(vectors)} {p} {q} {chance.choice(('set-1', 'set-1', 'set-2'))}"


def change(chance: random.Random) -> str:
    """Something that a compiled derivative may have relied on becomes something else."""
    number, which = chance.choice(NUMBERS), chance.choice((1, 2, 3))
    numbers = " ".join(chance.choice(NUMBERS) for _ in range(chance.randint(3, 6)))
    inexact = " ".join(f"{chance.uniform(-1, 1):.3f}" for _ in range(chance.randint(3, 6)))
    return chance.choice(
        (
            f"(set! number-{which} {number})",
            f"(define number-{which} {number})",
            f"(vector-set! vector-1 {chance.randrange(3)} {number})",
            f"(set! vector-{chance.choice((1, 2))} (vector {inexact}))",
            f"(set! list-{chance.choice((1, 2))} (list {chance.choice((numbers, inexact))}))",
            f"(set! fun-{which} ({chance.choice(('scale', 'shift', 'bend'))} {number}))",
            f"(set! fun-{which} fun-{chance.choice((1, 2, 3))})",
            f"(define (helper u) {chance.choice(('(* u 0.5)', '(sin u)', '(+ u rate)', '(fun-2 u)'))})",
            f"((cdr counter) {number})",
            f"(set-gain! set-1 {number})",
            f"(set-bias! set-1 {chance.choice((number, '(list 1.0 0.5)'))})",
            f"(define rate {number})",
            f"(set! set-2 (settings {number} {number}))",
        )
    )


def point(chance: random.Random, kind: str) -> str:
    if kind == "number":
        return chance.choice(("0.5", "1.25", "-0.75", "2.0", "0.3", "1", "1/3", "-2"))
    numbers = " ".join(f"{chance.uniform(-1.5, 1.5):.3f}" for _ in range(chance.choice((3, 3, 4, 7, 9, 20))))
    if chance.random() < 0.15:
        numbers += " 2"  # an exact number among the others
    return f"({'vector' if kind == 'vector' else 'list'} {numbers})"


def run(seeds: Iterable[int]) -> Report:
    """Makers of some seeds, checked."""
    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()):
        patch.setenv("ESHKOL_CHECK", "1")
        sharing = Sharing()
        try:
            for seed in seeds:
                sharing.check(seed)
        finally:
            sharing.close()
    return sharing.report


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    report = run(range(options.seed, options.seed + options.count))
    for text in report.wrong[:8]:
        print(text)
    print(f"{report.makers} makers, {report.calls} calls: {report.fast} compiled, {report.errors} errors everywhere, "
          f"{len(report.wrong)} wrong")  # fmt: skip
    return bool(report.wrong)


if __name__ == "__main__":
    sys.exit(main())
