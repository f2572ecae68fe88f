"""Ctrl-C at random moments of `ek.eval`, `ek.load` and calls: `python pressing.py SEED COUNT FOLDER`.

Comes in: a seed, how often, and a folder for files. Goes out: one line of JSON with how long it took from each press to
the KeyboardInterrupt, in seconds, by what was interrupted ("nothing": it had just ended). Each piece of work is
measured first, without Ctrl-C; then it begins again and again, with other names, and a thread sends SIGINT at some
moment of it: while a text is read, expanded, compiled by LLVM, loaded, while it runs, and when it is about to end. Each
press must become one KeyboardInterrupt; then everything that was defined before must be there, and the same work must
come to its end.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import eshkol as ek

PATIENCE = 20.0  # seconds until a press counts as lost
FIRST = 4  # pieces of work of each kind that are not interrupted
NOTHING = "nothing"

KEPT = """
(define kept 41)
(define-syntax swapped (syntax-rules () ((_ a b) (list b a))))
(define-syntax counted (lambda (use)
  (syntax-case use () ((_ x ...) #`(list #,(length (cdr (syntax->datum use))) x ...)))))
(define-record-type point (make-point x y) point? (x point-x) (y point-y))
(import (only (srfi 1) iota) (kept))
"""
LIBRARY = """(define-library ({name}) (export {name}-double {name}-twice)
  (import (scheme base))
  (begin (define ({name}-double x) (* 2 x))
         (define-syntax {name}-twice (syntax-rules () ((_ e) (list e e))))))
"""
INTACT = (
    "(list kept (swapped 1 2) (counted 1 2 3) (point-y (make-point 3 4)) (kept-double 5) (kept-twice 6) (car '(7)))"
)
WHOLE = [41, [2, 1], [3, 1, 2, 3], 4, 10, [6, 6], 7]

FUNCTION = """(define (f{0} x y)
  (let again ((i 0) (s '()))
    (cond ((>= i NUMBER) (vector s x y {0}))
          ((odd? i) (again (+ i 1) (cons (* x i) s)))
          (else (again (+ i 2) (list s y (string-append "a" (number->string i))))))))
"""
READING = "(define data '(" + '(a b . #(c "d" 1.5)) ' * 2000 + "NUMBER))"
EXPANDING = (
    """(define-syntax grow (syntax-rules () ((_ () x ...) (list x ...)) ((_ (a b ...) x ...) (grow (b ...) a x ...))))
(define grown (grow ("""
    + "1 " * 90
    + "NUMBER)))"
)
TRANSFORMING = """(define-syntax made (lambda (use) (syntax-case use ()
  ((_ n) #`(list #,@(map (lambda (k) #`(+ #,k n)) '(1 2 3 4 5 6 7 8)))))))
(define made-list (list (made NUMBER) (made 1) (made 2) (made 3)))"""
RECORDS = "(define-record-type pair-NUMBER (new-pair a b) pair-kind? (a first-of) (b second-of set-second!))"
SHADOWING = """(define (list-copy x) (list x NUMBER))
(define car (begin (let loop ((i 0)) (if (< i 3000000) (loop (+ i 1))))
                   (lambda (x) (vector-ref (list->vector x) 0))))"""
RUNNING = "(let loop ((i 0) (s '())) (if (< i 4000000) (loop (+ i 1) (if (odd? i) (cons i '()) s)) NUMBER))"
DERIVED = """(define (loss-NUMBER v) (let loop ((i 0) (s 0.0)) (if (= i (vector-length v)) (* s (sin s))
  (loop (+ i 1) (+ s (* (exp (vector-ref v i)) (vector-ref v i)))))))
(gradient loss-NUMBER (make-vector 10 0.25))"""


def text_of(text: str) -> Callable[[int], Any]:
    return lambda number: ek.eval(text.replace("NUMBER", str(number)))


def python_work(number: int) -> int:
    """What Scheme calls: it is interrupted as Python always is."""
    return sum(k % 7 for k in range(60_000 + number))


class Pressing:
    """The pieces of work, and what must hold after each of them."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder, self.chance = folder, chance
        self.work: dict[str, tuple[Callable[[int], Any], Callable[[int], bool]]] = {
            "read": (text_of(READING), lambda n: ek.eval("(list-ref data 2000)") == n),
            "expand": (text_of(EXPANDING), lambda n: ek.eval("(car grown)") == n),
            "transform": (text_of(TRANSFORMING), lambda n: ek.eval("(caar made-list)") == 1 + n),
            "compile": (
                text_of("".join(FUNCTION.format(k) for k in range(4))),
                lambda n: ek.eval(f"(vector-ref (f3 1 {n}) 2)") == n,
            ),
            "record": (text_of(RECORDS), lambda n: ek.eval(f"(second-of (new-pair 0 {n}))") == n),
            "import": (self.imports, lambda n: ek.eval(f"(list (m{n}-double 4) (m{n}-twice 1))") == [8, [1, 1]]),
            "shadow": (text_of(SHADOWING), lambda n: ek.eval("(list-copy 3)") == [3, n]),
            "run": (text_of(RUNNING), lambda n: True),
            "derive": (text_of(DERIVED), lambda n: ek.eval(f"(vector-length (gradient loss-{n} #(1.0 2.0)))") == 2),
            "python": (self.calls, lambda n: True),
            "load": (self.loads, lambda n: True),
        }

    def imports(self, number: int) -> None:
        ek.eval(f"(import (m{number}))")

    def loads(self, number: int) -> None:
        file = self.folder / f"loaded{number}.esk"
        file.write_text("".join(FUNCTION.format(k) for k in range(2)).replace("NUMBER", str(number)))
        assert ek.load(file).f1(1, number)[2] == number

    def calls(self, number: int) -> None:
        ek.eval("(lambda (f n) (+ (f n) 1))")(python_work, number)

    def write_library(self, name: str) -> None:
        (self.folder / f"{name}.esk").write_text(LIBRARY.format(name=name))

    def intact(self) -> None:
        assert ek.eval(INTACT) == WHOLE

    def pressed(self, name: str, number: int, delay: float) -> tuple[str, float]:
        """Interrupt a piece of work after a while; what was interrupted, and how long it went on."""
        what = name
        work, holds = self.work[name]
        sent: list[float] = []
        go = threading.Event()

        def press() -> None:
            go.wait()
            time.sleep(delay)
            sent.append(time.perf_counter())
            os.kill(os.getpid(), signal.SIGINT)

        def lost() -> None:
            print("lost", name, number, delay, flush=True)
            os._exit(1)

        thread, watch = threading.Thread(target=press), threading.Timer(PATIENCE, lost)
        thread.start()
        watch.start()
        try:
            go.set()  # from here on it may come
            work(number)
            what = NOTHING
            while True:  # the work was faster: it comes here
                time.sleep(0.01)
        except KeyboardInterrupt:
            ended = time.perf_counter()
        thread.join()
        watch.cancel()
        self.intact()
        work(number)
        assert holds(number), (name, number)
        self.intact()
        return what, ended - sent[0]


def main(seed: int, count: int, folder: Path) -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever runs the tests may ignore it
    os.chdir(folder)
    pressing = Pressing(folder, random.Random(seed))
    for name in ("kept", *(f"m{number}" for number in range(FIRST + count))):
        pressing.write_library(name)
    ek.eval(KEPT)
    lasts = {}
    for name, (work, holds) in pressing.work.items():
        lasts[name] = float("inf")
        for number in range(FIRST):  # the first time the compiler is not there
            begun = time.perf_counter()
            work(number)
            lasts[name] = min(lasts[name], time.perf_counter() - begun)
            assert holds(number), name
    pressing.intact()
    found: dict[str, list[float]] = {name: [] for name in (*pressing.work, NOTHING)}
    names = list(pressing.work)
    for number in range(FIRST, FIRST + count):
        name = names[number % len(names)]
        delay = pressing.chance.random() * 1.1 * lasts[name]
        what, seconds = pressing.pressed(name, number, delay)
        found[what].append(seconds)
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
