"""A generator of random parallel programs, and of what they mean.

Comes in: a seed. Goes out: an expression of Scheme over procedures that stand for parallel forms (`pmap`, `preduce` …).
Evaluated with the forms themselves and with those of one thread (`PARALLEL`, `SEQUENTIAL`) it has the same value. All
reductions are associative, what is raised is always the same object, and what several bodies change is an atomic sum.
"""

from __future__ import annotations

import random

_COMMON = """
(define (slowly n) (let loop ((i 0)) (if (< i 300) (loop (+ i 1)) n)))
(define (churn n)
  (length (let loop ((i 0) (made '())) (if (< i 60) (loop (+ i 1) (cons (vector i made n) made)) made))))
(define (caught thunk) (guard (e ((eq? e 'raised) -7)) (thunk)))
(define (join numbers) (apply + numbers))
(define p (make-parameter 3))
"""
SEQUENTIAL = (
    _COMMON
    + """
(define pmap map)
(define (pfilter keep? data) (filter keep? data))
(define (preduce f initial data) (fold-left f initial data))
(define (pfold f initial combine data) (fold-left f initial data))
(define (pscan f initial data)
  (let loop ((rest data) (sum initial) (found '()))
    (if (null? rest) (reverse found) (let ((sum (f sum (car rest)))) (loop (cdr rest) sum (cons sum found))))))
(define (peach f data) (for-each f data))
(define (prange from to f) (let loop ((i from)) (if (< i to) (begin (f i) (loop (+ i 1))))))
(define (pinvoke . thunks) (map (lambda (thunk) (thunk)) thunks))
(define (pfuture thunk) (thunk))
(define (ptouch value) value)
(define (pthread thunk) (thunk))
"""
)
PARALLEL = (
    _COMMON
    + """
(define pmap parallel-map)
(define pfilter parallel-filter)
(define preduce parallel-reduce)
(define pfold parallel-fold)
(define pscan parallel-scan)
(define peach parallel-for-each)
(define (prange from to f) (parallel-for (i from to) (f i)))
(define pinvoke parallel-invoke)
(define pfuture make-future)
(define ptouch touch)
(define (pthread thunk)
  (guard (e ((uncaught-exception? e) (raise (uncaught-exception-reason e))))
    (thread-join! (thread-start! (make-thread thunk)))))
"""
)


class Generator:
    """Makes expressions out of a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = 0

    def program(self) -> str:
        """An expression whose value is a list of integers."""
        return f"(list {' '.join(self.number(4, []) for _ in range(3))} (caught (lambda () (join {self.list(3, [])}))))"

    def number(self, depth: int, names: list[str]) -> str:
        """An expression for an integer, over some variables."""
        pick = self.random.choice
        if depth == 0:
            return pick([*names, str(self.random.randrange(-9, 10)), "(p)"])
        inner, name = depth - 1, self.name()
        kind = self.random.randrange(15)
        if kind < 2:
            return f"({pick('+-')} {self.number(inner, names)} {self.number(inner, names)})"
        if kind == 2:
            return f"(modulo (* {self.number(inner, names)} {self.number(inner, names)}) 1009)"
        if kind == 3:
            return f"({pick(['slowly', 'churn', 'slowly'])} {self.number(inner, names)})"
        if kind == 4:
            return f"(preduce {pick(['+', 'max', 'min'])} 0 {self.list(inner, names)})"
        if kind == 5:
            body = self.number(inner, [*names, name])
            return f"(pfold (lambda (sum {name}) (+ sum {body})) 0 + {self.list(inner, names)})"
        if kind == 6:
            return f"(join {self.list(depth, names)})"
        if kind == 7:
            first, second = self.number(inner, names), self.number(inner, names)
            return f"(let (({name} (pfuture (lambda () {first})))) (+ {second} (ptouch {name})))"
        if kind == 8:
            return f"(join (pinvoke {' '.join(f'(lambda () {self.number(inner, names)})' for _ in range(3))}))"
        if kind == 9:
            body = f"(atomic-fxbox+/fetch! {name} {self.number(inner, [*names, name + 'i'])})"
            each = f"(peach (lambda ({name}i) {body}) {self.list(inner, names)})"
            return f"(let (({name} (make-atomic-fxbox 0))) {each} (atomic-fxbox-ref {name}))"
        if kind == 10:
            count = self.random.randrange(12)
            body = f"(lambda ({name}i) (vector-set! {name} {name}i {self.number(inner, [*names, name + 'i'])}))"
            filled = f"(prange 0 {count} {body}) (join (vector->list {name}))"
            return f"(let (({name} (make-vector {count} 0))) {filled})"
        if kind == 11:
            return f"(parameterize ((p {self.number(inner, names)})) {self.number(inner, names)})"
        if kind == 12:
            raising = f"(if (even? {self.number(inner, names)}) (raise 'raised) {self.number(inner, names)})"
            return f"(caught (lambda () {raising}))"
        if kind == 13:
            body = f"(if (= 3 (modulo {name} 7)) (raise 'raised) {self.number(inner, [*names, name])})"
            return f"(caught (lambda () (join (pmap (lambda ({name}) {body}) {self.list(inner, names)}))))"
        return f"(pthread (lambda () {self.number(inner, names)}))"

    def list(self, depth: int, names: list[str]) -> str:
        """An expression for a list of integers."""
        if depth == 0:
            return f"(iota {self.random.randrange(9)})"
        inner, name = depth - 1, self.name()
        kind = self.random.randrange(6)
        if kind < 2:
            return f"(pmap (lambda ({name}) {self.number(inner, [*names, name])}) {self.list(inner, names)})"
        if kind == 2:
            return f"(pfilter (lambda ({name}) (even? {self.number(inner, [*names, name])})) {self.list(inner, names)})"
        if kind == 3:
            return f"(pscan + {self.number(inner, names)} {self.list(inner, names)})"
        if kind == 4:
            return f"(append {self.list(inner, names)} {self.list(inner, names)})"
        return f"(iota {self.random.randrange(30)})"

    def name(self) -> str:
        self.names += 1
        return f"x{self.names}"


def programs(prelude: str, seeds: range) -> str:
    """A program that writes the value of the expression of each seed on a line of its own."""
    lines = [f"(write (let () {Generator(seed).program()})) (newline)" for seed in seeds]
    imports = "(import (eshkol) (only (eshkol parallel) %share-everything!))"
    return "\n".join([imports, prelude, "(%share-everything! #t)", *lines])
