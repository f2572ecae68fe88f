"""Continuations that are captured and entered again and again (runtime/native/scheme/continuation.c), and returns from
deep recursions, which are jumps on some processors (codegen/functions.py, `recurs_once`).

The oracle is Python: walks over trees that stop at every leaf are positions among the leaves, so that one kept is a
number; a recursive procedure is the same expression, evaluated there.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from compiled import in_session, outcome, written

from effort import amount
from eshkol.codegen.compiling import table
from eshkol.codegen.functions import Analysis, recurs_once
from eshkol.codegen.simplify import Simplifier
from eshkol.lang.libraries import SourceModule
from eshkol.lang.source import Source
from eshkol.session import Session

WALKERS = """(import (scheme base) (scheme write) (only (eshkol) collect-garbage))
(define (deep n thunk) (if (= n 0) (thunk) (+ 1 (deep (- n 1) thunk))))
;; a walker is #(where-to-go-on where-to-return tree)
(define (walk tree walker)
  (if (pair? tree)
      (+ (walk (car tree) walker) (walk (cdr tree) walker))
      (begin (call/cc (lambda (k) (vector-set! walker 0 k) ((vector-ref walker 1) tree))) 0)))
(define (next walker depth)
  (deep depth
    (lambda ()
      (call/cc (lambda (back)
        (vector-set! walker 1 back)
        (if (vector-ref walker 0)
            ((vector-ref walker 0) 'go)
            (let ((sum (walk (vector-ref walker 2) walker))) ((vector-ref walker 1) (- sum 1)))))))))
(define (again depth times) ; a frame far out that is entered many times
  (let* ((k #f) (n 0) (got (deep depth (lambda () (call/cc (lambda (c) (set! k c) 0))))))
    (set! n (+ n 1))
    (if (< n times) (k n) got)))
(define (inner walker depth) ; a capture around another, which is entered again when the inner one is gone
  (let* ((k #f) (n 0) (got (deep depth (lambda () (+ (call/cc (lambda (c) (set! k c) 1000)) (next walker 3))))))
    (set! n (+ n 1))
    (if (= n 1) (k 2000) got)))
"""


def random_tree(choose: random.Random, size: int, leaves: list[int]) -> str:
    """A tree as a datum; its leaves are added to the list, from left to right."""
    if size == 1:
        leaves.append(choose.randint(0, 99))
        return str(leaves[-1])
    left = choose.choice([1, size - 1, choose.randint(1, size - 1)])
    first = random_tree(choose, left, leaves)
    return f"({first} . {random_tree(choose, size - left, leaves)})"


class Walks:
    """A random schedule for some walkers: a program, and what it writes."""

    def __init__(self, seed: int) -> None:
        choose = random.Random(seed)
        leaves: list[list[int]] = [[] for _ in range(3)]
        trees = [random_tree(choose, choose.randint(1, 40), found) for found in leaves]
        at, kept = [0, 0, 0], [0, 0, 0]
        defined = "".join(f"(define w{i} (vector #f #f '{tree}))(define kept{i} #f)\n" for i, tree in enumerate(trees))
        lines: list[str] = []
        self.expected: list[int] = []

        def next_of(i: int) -> int:
            at[i] += 1
            return leaves[i][at[i] - 1] if at[i] <= len(leaves[i]) else -1

        for _ in range(60):
            i, depth = choose.randrange(3), choose.choice([0, 1, 5, 40, 700])
            if at[i]:  # who has walked to the end goes there again from the last leaf
                at[i] = min(at[i], len(leaves[i]))
            match choose.choice(["next", "next", "next", "next", "keep", "back", "again", "inner", "collect"]):
                case "next":
                    lines.append(f"(show (next w{i} {depth}))")
                    self.expected.append(next_of(i) + depth)
                case "keep":
                    lines.append(f"(set! kept{i} (vector-ref w{i} 0))")
                    kept[i] = at[i]
                case "back":
                    lines.append(f"(vector-set! w{i} 0 kept{i})")
                    at[i] = kept[i]
                case "again":
                    times = choose.randint(1, 6)
                    lines.append(f"(show (again {depth} {times}))")
                    self.expected.append(times - 1 + depth)
                case "inner":
                    lines.append(f"(show (inner w{i} {depth}))")
                    next_of(i)
                    at[i] = min(at[i], len(leaves[i]))
                    self.expected.append(2000 + next_of(i) + 3 + depth)
                case _:
                    lines.append("(collect-garbage)")
        whole = "(define (main)\n" + "\n".join(lines) + ")\n"
        self.text = f"{WALKERS}{defined}(define (show x) (write x) (newline))\n{whole}(main)"


def test_walks_that_are_left_kept_and_entered_again() -> None:
    def work(session: Session) -> None:
        for seed in range(amount(60, 8)):
            walks = Walks(seed)
            assert [int(line) for line in written(session, walks.text).split()] == walks.expected, walks.text

    in_session(work)


def test_under_a_collector_that_never_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every part of a continuation is alive while it is made."""
    monkeypatch.setenv("ESHKOL_GC_CHECK", "1")
    text = f"""{WALKERS}
(define w (vector #f #f '((1 . 2) . (3 . (4 . 5)))))
(define (churn n) (if (> n 0) (begin (make-vector 100 n) (churn (- n 1)))))
(let loop ((i 0) (sum 0))
  (if (= i 4000)
      (write sum)
      (begin (if (= 0 (modulo i 6)) (vector-set! w 0 #f)) (churn 20) (loop (+ i 1) (+ sum (next w (modulo i 7)))))))"""
    values = [1, 2, 3, 4, 5, -1]
    expected = sum(values[i % 6] + i % 7 for i in range(4000))

    def work(session: Session) -> None:
        assert written(session, text) == str(expected)

    in_session(work)


CASES = {
    # several values, and none, by an entry that has to leave nothing or something
    "(call-with-values (lambda () (call/cc (lambda (k) (k 1 2 3)))) list)": "(1 2 3)",
    "(call-with-values (lambda () (call/cc (lambda (k) (k)))) list)": "()",
    "(call-with-values (lambda () (call/cc (lambda (k) (k 1 2 3 4 5 6)))) list)": "(1 2 3 4 5 6)",
    "(call-with-values (lambda () (call/cc (lambda (k) (dynamic-wind list (lambda () (k 1 2)) list)))) list)": "(1 2)",
    "(list (call/cc (lambda (k) (parameterize ((where 'inner)) (k (where))))) (where))": "(inner outer)",
    # they are procedures like others
    "(list (procedure? (call/cc (lambda (k) k))) (apply (call/cc (lambda (k) k)) (list (lambda (x) 5))))": "(#t 5)",
    "(map (lambda (x) (call/cc (lambda (k) (for-each k (list x 9)) 8))) '(1 2))": "(1 2)",
    "(call/cc procedure?)": "#t",
    "(let ((call/cc (lambda (f) (f 3)))) (call/cc (lambda (x) (cons x x))))": "(3 . 3)",
    "((lambda (c) (c (lambda (k) (+ 1 (k 4))))) call/cc)": "4",
    # captured in tail position, again and again, in frames that are shared
    "(let loop ((i 0) (ks '())) (if (= i 50) (length ks) (call/cc (lambda (k) (loop (+ i 1) (cons k ks))))))": "50",
    "(let ((ks '()) (n 0)) (let ((got (+ 1 (let loop ((i 0)) (if (= i 5) i (call/cc (lambda (k) (set! ks (cons k ks))"
    " (loop (+ i 1))))))))) (set! n (+ n 1)) (if (< n 6) ((list-ref ks (- n 1)) (* 10 n)) (list got n))))": "(51 6)",
}  # fmt: skip
BEGIN = """(import (scheme base) (scheme write))
(define where (make-parameter 'outer))
"""


@pytest.mark.parametrize("text", CASES)
def test_cases(text: str) -> None:
    def work(session: Session) -> None:
        assert written(session, f"{BEGIN}(write {text})") == CASES[text]

    in_session(work)


def test_what_is_no_procedure_is_shown_where_it_is() -> None:
    def work(session: Session) -> None:
        found = outcome(session, "(import (scheme base))\n(define (f x)\n  (list (call/cc x)))\n(f 5)").error
        assert found is not None
        assert "5" in found, found
        assert "procedure" in found, found
        assert "(call/cc x)" in found, found

    in_session(work)


# ---- returns -------------------------------------------------------------------------------------------------------


class Recursion:
    """A random procedure that waits for itself once, as Scheme and as Python."""

    def __init__(self, seed: int) -> None:
        choose = random.Random(seed)
        self.base, self.step = choose.randint(-5, 5), choose.randint(1, 3)
        a, b, c = (choose.randint(-4, 9) for _ in range(3))
        call = f"(f (- n {self.step}) (+ x {a}))"
        waiting = choose.choice(["(+ {} n)", "(- x {})", "(let ((y {})) (if (odd? y) (+ y x) (- y n)))", "(max {} n)",
                                 "(car (list {} n))", "(begin (set! notes (+ notes n)) (+ 1 {}))"])  # fmt: skip
        waiting = waiting.format(call)
        other = choose.choice([f"(f (- n {self.step + 1}) {b})", f"(+ x {c})", f"(f (- n {self.step}) (- x 1))"])
        begin = choose.choice(["(<= n 0)", "(< n 1)", "(not (> n 0))"])
        body = choose.choice([
            f"(if {begin} (+ x {self.base}) (if (= 0 (modulo n {choose.randint(2, 5)})) {other} {waiting}))",
            f"(cond ({begin} {self.base}) ((= 0 (modulo (+ n x) {choose.randint(2, 5)})) {waiting}) (else {other}))",
            f"(if {begin} x {waiting})",
            f"(if (> n 0) {waiting} (begin (set! notes (+ notes 1)) {self.base}))",
        ])  # fmt: skip
        self.body = f"(define (f n x) {body})"


RECURSIONS = """(import (scheme base) (scheme write))
(define notes 0)
"""


def test_recursions_that_return_by_jumps_mean_the_same() -> None:
    """The oracle: the same procedure where something assigns it, so that nothing is known of its calls."""

    def work(session: Session) -> None:
        for seed in range(amount(80, 12)):
            body = Recursion(seed).body
            shown = (
                "".join(f"(write (f {n} {n % 7})) (newline)" for n in (0, 1, 2, 3, 14, 17, 40, 333)) + "(write notes)"
            )
            known, plain = f"{RECURSIONS}{body}{shown}", f"{RECURSIONS}{body}(set! f f){shown}"
            assert written(session, known) == written(session, plain), body

    in_session(work)


def test_captures_and_errors_within_deep_returns() -> None:
    text = """(import (scheme base) (scheme write))
(define k #f)
(define (sum n) (if (= n 0) (call/cc (lambda (c) (set! k c) 0)) (+ n (sum (- n 1)))))
(define times 0)
(let ((got (sum 300)))
  (write got) (newline)
  (set! times (+ times 1))
  (if (< times 4) (k times)))
(define (count items) (if (pair? items) (+ 1 (count (cdr items))) (vector-length items)))
(write (guard (e (#t 'caught)) (count '(1 2 3))))
(define (values-of n) (if (= n 0) (values 1 2) (let-values (((a b) (values-of (- n 1)))) (values (+ a 1) (+ b 1)))))
(call-with-values (lambda () (values-of 50)) (lambda (a b) (write (list a b))))
(define (halves x) (if (< x 1.0) x (+ 0.5 (halves (/ x 2.0)))))
(write (halves 1000.0))
(count '(1 2 3))
"""

    def work(session: Session) -> None:
        found = outcome(session, text)
        assert found.output == "45150\n45151\n45152\n45153\ncaught(51 52)5.9765625"
        assert found.error is not None
        assert "vector-length" in found.error
        assert found.error.count("(count (cdr items))") >= 1, found.error

    in_session(work)


WAITS = {
    "(define (f n) (if (= n 0) 0 (+ 1 (f (- n 1)))))": True,
    "(define (f m n) (if (= m 0) n (if (= n 0) (f (- m 1) 1) (f (- m 1) (f m (- n 1))))))": True,
    "(define (f n) (if (odd? n) (* 2 (f (- n 1))) (if (= n 0) 1 (- (f (- n 2))))))": True,
    "(define (f n) (if (< n 2) n (+ (f (- n 1)) (f (- n 2)))))": False,
    "(define (f n) (if (= n 0) 0 (f (- n 1))))": False,
    "(define (f n) (do ((i 0 (+ i 1)) (s 0 (+ s (f i)))) ((= i n) s)))": False,
    "(define (f n) (let ((g (lambda (x) (+ 1 (f x))))) (vector g g n)))": False,
}


def test_which_recursions_wait_once() -> None:
    def found(session: Session, text: str) -> bool:
        module: Any = session.world.program(Source(f"<{text}>", "(import (scheme base))" + text))
        assert isinstance(module, SourceModule)
        simplifier = Simplifier(table())
        forms = [simplifier.form(form) for form in module.unit.forms]
        analysis = Analysis.of(forms)
        function = next(f for f in analysis.functions.values() if f.code.name == "f")
        return recurs_once(analysis, function, function.code.clauses[0].body)

    def work(session: Session) -> None:
        for text, expected in WAITS.items():
            assert found(session, text) is expected, text

    in_session(work)
