"""A generator of random parallel programs, and of what they mean.

Comes in: a seed. Goes out: an expression of Scheme over procedures that stand for parallel forms (`pmap`, `preduce` …).
Evaluated with the forms themselves and with those of one thread (`PARALLEL`, `SEQUENTIAL`) it has the same value. All
reductions are associative, what is raised is always the same object, and what several bodies change is changed as a
whole: atomically, under a mutex, or in a hash table.
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
(define (nothing) #f)
(define-record-type point (make-point x y) point? (x point-x set-point-x!) (y point-y))
(define (kept n)
  (let ((made (let loop ((i 0) (made '())) (if (< i 80) (loop (+ i 1) (cons (make-point i (vector n i)) made)) made))))
    (for-each (lambda (point) (set-point-x! point (vector n))) made)
    (vector-ref (point-y (car (reverse made))) 0)))
(define (cubed y) (* y y y))
(define (looped y) (let loop ((i 0) (s 0.0)) (if (= i 5) s (loop (+ i 1) (+ s (* i y y))))))
(define (small n) (inexact (modulo n 50)))
(define (sloped n data)
  (exact (round (gradient (lambda (x) (apply + (pmap (lambda (i) (* (small i) x x)) data))) (small n)))))

; What takes a procedure and a list, whatever stands for the forms.
(define (slopes f data)
  (define (at y) (exact (round (+ (derivative cubed y) (gradient looped y)))))
  (join (pmap (lambda (x) (at (small (f x)))) data)))
(define (counted f data)
  (let ((m (make-mutex)) (sum 0))
    (peach (lambda (x) (let ((n (f x))) (with-mutex m (set! sum (+ sum n))))) data)
    sum))
(define (tabled f data)
  (let ((table (make-hash-table)))
    (peach (lambda (x) (hash-table-set! table x (f x))) data)
    (join (hash-table-values table))))
(define (updated f data)
  (let ((table (make-hash-table)) (m (make-mutex)))
    (define (add! key n) (with-mutex m (hash-table-set! table key (+ n (hash-table-ref/default table key 0)))))
    (peach (lambda (x) (add! (modulo x 3) (f x))) data)
    (join (hash-table-values table))))
(define (escaping f data)
  (define (one x)
    (call/cc (lambda (k) (dynamic-wind nothing (lambda () (if (odd? x) (k (f x)) (+ 1 (f x)))) nothing))))
  (join (pmap one data)))
(define (wound f data)
  (let ((in (make-atomic-fxbox 0)) (out (make-atomic-fxbox 0)))
    (define (one x)
      (dynamic-wind (lambda () (atomic-fxbox+/fetch! in 1)) (lambda () (f x)) (lambda () (atomic-fxbox+/fetch! out 1))))
    (caught (lambda () (join (pmap one data))))
    (- (atomic-fxbox-ref in) (atomic-fxbox-ref out))))
(define (swapped f data)
  (let ((found (make-atomic-box '())))
    (define (add! n)
      (let ((old (atomic-box-ref found)))
        (if (not (eq? old (atomic-box-compare-and-swap! found old (cons n old)))) (add! n))))
    (peach (lambda (x) (add! (f x))) data)
    (join (atomic-box-ref found))))
(define (written f data)
  (define (text x) (let ((port (open-output-string))) (write (list x (f x)) port) (get-output-string port)))
  (join (map string-length (pmap text data))))
(define (named f data)
  (let ((symbols (pmap (lambda (x) (string->symbol (string-append "s" (number->string (f x))))) data)))
    (join (map (lambda (symbol) (if (memq symbol symbols) (string-length (symbol->string symbol)) -1000)) symbols))))
(define (chained f data)
  (ptouch (let loop ((rest data) (before (pfuture (lambda () 0))))
            (if (null? rest)
                before
                (loop (cdr rest) (let ((x (car rest))) (pfuture (lambda () (+ (f x) (ptouch before))))))))))
(define (bound f data)
  (join (pmap (lambda (x) (parameterize ((p (+ x (p)))) (ptouch (pfuture (lambda () (+ (p) (f x))))))) data)))
"""
_OF_PROCEDURES = (
    "slopes", "counted", "tabled", "updated", "escaping", "wound", "swapped", "written", "named", "chained", "bound",
    "sent",
)  # fmt: skip
_OF_NUMBERS = ("kept", "cancelled")
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
(define (sent f data) (join (map f data)))
(define (cancelled n) n)
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
(define (sent f data)
  (let ((ch (make-channel 2)))
    (define (send) (for-each (lambda (x) (channel-send! ch (f x))) data))
    (let ((sender (make-future (lambda () (dynamic-wind nothing send (lambda () (channel-close! ch)))))))
      (let loop ((sum 0))
        (let ((n (channel-receive! ch)))
          (if (eof-object? n) (begin (touch sender) sum) (loop (+ sum n))))))))
(define (cancelled n)
  (let ((endless (make-future (lambda () (let loop () (loop))))))
    (slowly n)
    (future-cancel! endless)
    n))
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
        kind = self.random.randrange(22)
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
        if kind == 14:
            return f"(pthread (lambda () {self.number(inner, names)}))"
        if kind == 15:
            return f"({pick(_OF_NUMBERS)} {self.number(inner, names)})"
        if kind == 16:
            return f"(sloped {self.number(inner, names)} {self.list(inner, names)})"
        body = self.number(inner, [*names, name])
        return f"({pick(_OF_PROCEDURES)} (lambda ({name}) {body}) {self.list(inner, names)})"

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
