"""How much code compiled derivatives are: counted for many programs, and kept in `code_sizes.txt`.

    PYTHONPATH=src:tests .venv/bin/python tests/calculus/code_sizes.py     # writes it anew, if a change is meant

What varies, what is kept on the tape, which blocks are merged and which calls inlined changes no derivative, but how
fast it is. Comes in: typed programs written by hand, random ones, and what Scheme procedures become. Goes out: a line
for each, with the blocks, instructions, loads, stores and calls of the program, of its tangents, of its gradient and of
that with checkpoints. Nothing is compiled by LLVM, and machines do not differ.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))

from differentiable_programs import program as scheme_program
from programs_fast import PROGRAMS
from random_fast import program as random_program
from scheme_programs import Checker
from typed_programs import parse

from eshkol.calculus import forward, ir, native
from eshkol.calculus.abstract import NotFast
from eshkol.calculus.reverse import gradient

KEPT = Path(__file__).parent / "code_sizes.txt"
RANDOM = range(12)
SCHEME = range(1, 25)
LANES = 3
FURTHER = [  # definitions of f, and points one after another
    ("(define (f l) (apply (lambda (a b c) (* a (+ b (sin c)))) l))", ["(list 1.0 2.5 0.5)", "(list 2.0 1.5 0.25)"]),
    ("(define (f l) (apply (lambda (a . rest) (* a (apply + rest))) l))",
     ["(list 1.0 2.5)", "(list 2.0 1.5 0.25 3.0)"]),
    ("(define (f l) (let loop ((l l) (s 0)) (if (null? l) s (loop (cdr l) (+ (* s 0.5) (sin (car l)))))))",
     ["(list 1.0 2.5)", "(list 2.0)", "(list 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0)"]),
    ("""(define (f v) (let ((w (make-vector 3)))
          (vector-set! w 1 (vector-ref v 0)) (* (vector-ref w 1) (vector-ref v 1))))""",
     ["(vector 1.5 2.0)", "(vector 1.5 2.0 3.0)"]),
    ("(define (f v) (apply + (map (lambda (u) (* u u)) (vector->list v))))",
     ["(vector 1.5 2.0)", "(vector 1.5 2.0 3.0)"]),
    ("(define (f l) (vector-ref (vector-map (lambda (u w) (* u w)) (list->vector l) (list->vector (reverse l))) 0))",
     ["(list 1.0 2.5)", "(list 2.0 1.5 0.25)"]),
    ("(define (f x) (+ (log x 2) (log x 10) (log x 7) (log 5.0 x)))", ["2.5", "0.75"]),
    ("(define (f x y) (+ (expt x 3) (expt x y) (expt 2 y) (atan y x) (max x y 1) (min x y)))", ["2.5 1.5", "0.5 0.75"]),
    ("(define (f x) (let loop ((i 0) (a x) (up #t)) (if (= i 5) a (loop (+ i 1) (if up (* a 1.5) (sin a)) (not up)))))",
     ["2.5", "-0.5"]),
    ("""(define (f x) (let loop ((i 0) (a x))
          (cond ((= i 6) a) ((> a 2) (loop (+ i 1) (/ a 3))) (else (loop (+ i 1) (* a a 1.5))))))""",
     ["1.75", "0.5"]),
    ("(define (f x) (let ((c 0)) (define (add! u) (set! c (+ c (* u u)))) (add! x) (add! (sin x)) (add! 2) c))",
     ["1.5", "0.25"]),
    ("(define (f x) (let-values (((a b) (values (sin x) (* x 2)))) (if (< a b) (- b a) (* a b))))", ["1.5", "-0.25"]),
    ("(define (f m) (let loop ((rows m) (s 0)) (if (null? rows) s (loop (cdr rows) (+ s (apply * (car rows)))))))",
     ["(list (list 1.0 2.0) (list 3.0 4.0))", "(list (list 1.5 2.0))"]),
    ("""(define (f x) (define (g n u) (if (= n 0) u (h (- n 1) (* u 1.25))))
          (define (h n u) (if (= n 0) (sin u) (g (- n 1) (+ u x)))) (g 7 x))""",
     ["0.5", "1.5"]),
    ("""(define (f x) (let ((l (list x (* 2 x) (* 3 x))))
          (fold (lambda (u s) (+ s (* u u))) 0 (filter (lambda (u) (> u 1.5)) l))))""",
     ["0.75", "2.0"]),
    ("""(define (f x) (if (and (> x 1) (or (< x 2) (= x 3)))
          (* x (quotient 7 2)) (* x (remainder 7 4) (exact->inexact 1/3))))""",
     ["1.5", "3.0", "0.5"]),
    ("(define (f x n) (let loop ((i 0) (s x)) (if (>= i n) s (loop (+ i 1) (+ s (* x (square i)))))))",
     ["1.5 4", "0.5 7"]),
]  # fmt: skip


def counted(text: str) -> str:
    """Blocks, instructions, loads, stores and calls of LLVM text."""
    lines = [line.strip() for line in text.splitlines() if line.startswith("  ")]
    blocks = len(re.findall(r"^[\w.]+:", text, re.MULTILINE))
    words = [len(re.findall(rf"\b{word}\b", "\n".join(lines))) for word in ("load", "store", "call")]
    return " ".join(map(str, [blocks, len(lines), *words]))


def sizes(program: ir.TypedProgram) -> str:
    """What is written for a program."""
    blocks = [block for function in program.functions for block in function.blocks]
    counts = [len(program.functions), len(blocks), sum(len(b.body) for b in blocks), sum(len(b.params) for b in blocks)]
    modules = [lambda: forward.primal(program), lambda: forward.tangents(program, LANES)]
    modules += [lambda: gradient(program), lambda: gradient(program, True)]
    found = []
    for made in modules:
        try:
            found.append(counted(made().text()))
        except NotFast:
            found.append("-")
    return " | ".join([" ".join(map(str, counts)), *found])


class Noticed(NotFast):
    """A program was seen: that suffices."""


def of_scheme(checker: Checker, text: str, calls: list[str]) -> Iterator[str]:
    """The sizes of what some calls have compiled."""
    seen: list[ir.TypedProgram] = []

    def load(what: str, program: ir.TypedProgram, *rest: Any) -> int:
        ir.verify(program)
        seen.append(program)
        raise Noticed("its size was wanted")

    with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(io.StringIO()):
        patch.setattr(native, "_load", load)
        checker.evaluate(text)
        for call in calls:
            checker.evaluate(f"(message-of (lambda () {call}))")
    yield from dict.fromkeys(map(sizes, seen))


def lines() -> Iterator[str]:
    """What is kept."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward, "WIDTH", 4)
        for name, (text, _) in PROGRAMS.items():
            yield f"{name}: {sizes(parse(text))}"
        for seed in RANDOM:
            yield f"random {seed}: {sizes(random_program(seed)[0])}"
        checker = Checker()
        try:
            for seed in SCHEME:
                made = scheme_program(seed)
                calls = [f"(gradient f{seed} {made.points[0]})", f"(gradient f{seed} {made.points[-1]} :checkpoint #t)"]
                for number, found in enumerate(of_scheme(checker, made.text, calls)):
                    yield f"scheme {seed}.{number}: {found}"
            for k, (text, points) in enumerate(FURTHER):
                calls = [f"({way} f {point})" for point in points for way in ("gradient", "value-and-gradient")]
                for number, found in enumerate(of_scheme(checker, text, calls)):
                    yield f"further {k}.{number}: {found}"
        finally:
            checker.close()


if __name__ == "__main__":
    KEPT.write_text("".join(f"{line}\n" for line in lines()))
