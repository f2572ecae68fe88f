"""Every procedure that compiled derivatives know, by itself: the compiled derivative is that of the numeric tower.

Each expression is differentiated by x at several points, compiled, and by the tower in both modes; values, derivatives
and errors must be the same, and whether a derivative is compiled at all is known. In `i` an expression has an exact
integer that is known only later, in `x` a double.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scheme_programs import Checker, close, parsed

from effort import amount
from eshkol.calculus.typed_vectors import PRIMITIVES

POINTS = ("0.3", "0.75", "-0.6", "2.0", "1.0", "0.0")[: amount(6, 4)]
CASES: dict[str, list[str]] = {
    # arithmetic
    "+": ["(+ x)", "(+ (+) x)", "(+ x 2)", "(+ 1/2 x 3 x)", "(* x (+ 1 2 1/3))", "(* x (+ i 2))", "(+ i x)"],
    "-": ["(- x)", "(- 2 x 1/3)", "(- x 1 x 2.5)", "(* x (- 5))", "(* x (- i))", "(* x (- i 2))", "(- 1/3 x)"],
    "*": ["(* x (*))", "(* x 2 x)", "(* 1/3 x)", "(* x (* 2 3/4))", "(* x (* i i))", "(* i x)", "(* x 0)"],
    "/": ["(/ x)", "(/ x 2)", "(/ 1/3 x)", "(* x (/ 1 3))", "(* x (/ 4))", "(/ x (+ i 1))", "(/ x 2 x)", "(/ x i)",
          "(* x (/ 0 2))", "(/ 1 0)"],
    "square": ["(square x)", "(* x (square 3))", "(* x (square 1/2))", "(* x (square i))", "(square (square x))"],
    "abs": ["(abs x)", "(* x (abs -3))", "(* x (abs -1/2))", "(* x (abs (- i 2)))", "(abs (* x x))"],
    "magnitude": ["(magnitude x)", "(* x (magnitude -2))", "(* x (magnitude (- 1 i)))"],
    "max": ["(max x 0.2)", "(max x 1/3)", "(max 2 3 x)", "(* x (max i 2))", "(* x (max 2 i 1))", "(max x)",
            "(max 1/3 x 1/2)", "(* x (max 1 2))", "(max x (* 2 x))"],
    "min": ["(min x 0.2)", "(min x 1/3)", "(min 2 3 x)", "(* x (min i 2))", "(* x (min 2 i 1))", "(min x)",
            "(min 1/3 x 1/2)", "(* x (min 2 1))", "(min x (* 2 x))"],
    "1+": ["(1+ x)", "(* x (1+ i))", "(* x (1+ 1/2))"],
    "-1+": ["(-1+ x)", "(* x (-1+ i))", "(* x (-1+ 1/2))"],
    # comparisons
    **{name: [f"(if ({name} x 0.5) x (* 3 x))", f"(if ({name} 1/3 x) (* 2 x) (sin x))",
              f"(if ({name} 0 x 1) x (* x x))", f"(if ({name} x x) x (* 2 x))", f"(if ({name} i 2) x (* 2 x))",
              f"(if ({name} 1 i 3) x (* 5 x))",
              f"(if ({name} 1 2) x (* 2 x))", f"(if ({name} 2 1) x (* 2 x))", f"(if ({name} 2 2 x) x (* 2 x))",
              f"(if ({name} x 3/10) x (* 7 x))", f"(if ({name} x 9007199254740993) x (* 2 x))",
              f"(if ({name} 3/10 x) x (* 7 x))", f"(if ({name} i x) x (* 2 x))", f"(if ({name} x i) x (* 2 x))",
              f"(if ({name} 1 x 2 i) x (* 2 x))", f"(if ({name} x) x 0)",
              f"(if ({name} (+ i 9007199254740991) 9007199254740993) x (* 2 x))"]  # integers that are no doubles
       for name in ("=", "<", "<=", ">", ">=")},
    **{name: [f"(if ({name} x) 1 (* 2 x))", f"(if ({name} (- i 2)) x (* 2 x))", f"(if ({name} 0) x (* 2 x))",
              f"(if ({name} -1) x (* 2 x))", f"(if ({name} 1/2) x (* 2 x))", f"(if ({name} (* x 0)) x 1)"]
       for name in ("zero?", "positive?", "negative?")},
    # integers
    **{name: [f"(* x ({name} (+ i 7) 3))", f"(* x ({name} (- i 9) 4))", f"(* x ({name} (+ i 5) -3))",
              f"(* x ({name} 7 2))", f"(* x ({name} -7 2))", f"(* x ({name} 7 i))"]
       for name in ("quotient", "truncate-quotient", "remainder", "truncate-remainder", "modulo", "floor-remainder")},
    **{name: [f"(if ({name} i) x (* 2 x))", f"(if ({name} (- i 3)) x (* 2 x))", f"(if ({name} 4) x (* 2 x))",
              f"(if ({name} -3) x (* 2 x))"] for name in ("even?", "odd?")},
    **{name: [f"(* x ({name} i))", f"(* x ({name} 3))", f"(* x ({name} 1/2))", f"({name} x)"]
       for name in ("inexact", "exact->inexact")},
    **{name: [f"(* x ({name} i))", f"(* x ({name} 3))", f"(* x ({name} 2.0))", f"(* x ({name} (floor 2.5)))"]
       for name in ("exact", "inexact->exact")},
    **{name: [f"(* x ({name} x))", f"({name} (* 3 x))", f"(* x ({name} 7/2))", f"(* x ({name} -7/2))",
              f"(* x ({name} 5/2))", f"(* x ({name} i))", f"(* x ({name} 2.5))", f"(* x ({name} -0.7))"]
       for name in ("floor", "ceiling", "truncate", "round")},
    # functions
    **{name: [f"({name} x)", f"({name} (* 0.4 x))", f"(* x ({name} 0))", f"(* x ({name} 1))", f"(* x ({name} 1/2))",
              f"(* x ({name} i))", f"({name} (+ 1 (* x x)))", f"(* x ({name} 2))", f"(* x ({name} 4))"]
       for name in ("sqrt", "exp", "sin", "cos", "tan", "asin", "acos", "sinh", "cosh", "tanh", "asinh", "expm1", "log",
                    "atan")},
    "atan 2": ["(atan x 2)", "(atan 2 x)", "(atan x -0.5)", "(atan -1/2 x)", "(atan x (* x x))", "(* x (atan 1 2))",
               "(atan x i)"],
    "log 2": ["(log x 2)", "(log (+ 1 (* x x)) 3)"],
    "expt": ["(expt x 2)", "(expt x 3)", "(expt x 2.5)", "(expt x x)", "(expt 2 x)", "(* x (expt 2 3))", "(expt x 0)",
             "(expt x -1)", "(* x (expt 2 -2))", "(* x (expt 0 3))", "(expt x 1/2)", "(expt x i)", "(expt 1/2 x)",
             "(* x (expt 2 100))", "(* x (expt i 2))", "(expt 2.0 x)", "(expt x 1)", "(* x (expt 2/3 2))",
             "(* x (expt 2 64))", "(* x (expt 2 65))", "(* x (expt 0 0))", "(expt x 0.0)"],
    # what a value is
    **{name: [f"(if ({name} {given}) x (* 2 x))"
              for given in ("x", "i", "2", "1/2", "'a", "#t", "(list 1)", "(vector x)", "car", "(lambda () 1)", "\"s\"",
                            "'()", "(< x 1)", "2.0")]
       for name in ("number?", "complex?", "real?", "exact-integer?", "exact?", "inexact?", "integer?", "procedure?",
                    "symbol?", "boolean?", "vector?", "string?", "null?", "pair?", "list?", "not")},
    **{name: [f"(if ({name} {given}) x (* 2 x))"
              for given in ("'a 'a", "'a 'b", "1 1", "1 2", "i 2", "2 i", "1 1.0", "0.0 -0.0", "#t #t", "#f '()",
                            "'() '()", "1/2 2/4", "x x", "i i", "\"a\" \"a\"", "1.5 1.5",
                            "1000000000000000000000 1000000000000000000000", "1/2 1/3", "1.5 2.5")]
       for name in ("eq?", "eqv?", "equal?")},
    "%flonum?": ["(typed x 2)", "(typed x i)", "(typed (* x x) 3)", "(+ (typed x 1) (typed 2.0 1))"],
    "%undifferentiated": ["(case i ((0 2) x) ((1) (* 2 x)) (else (* 3 x)))", "(case 'a ((a) x) (else 0))",
                          "(case (floor x) ((0) x) (else (* 2 x)))"],
    # lists
    "cons": ["(car (cons x 1))", "(cdr (cons 1 x))", "(let ((p (cons x i))) (* (car p) (cdr p)))"],
    "list": ["(car (list x))", "(apply + (list x 2 x))", "(length (list x 1))", "(* x (length (list)))"],
    "cons*": ["(apply + (cons* x 1 (list x)))", "(cons* x)", "(cadr (cons* 1 x '()))"],
    "length": ["(* x (length '(1 2 3)))", "(* x (length '()))", "(* x (length (list x x)))"],
    "iota": ["(* x (apply + (iota 4)))", "(* x (apply + (iota 3 2)))", "(* x (apply + (iota 3 1 2)))",
             "(fold + x (iota i))"],
    "reverse": ["(car (reverse (list 1 2 x)))", "(cadr (reverse (list 1 x 3)))", "(* x (length (reverse '())))"],
    "append": ["(apply + (append (list x) (list 2 x)))", "(car (append '() (list x)))",
               "(apply * (append (list x) '(2) '(3)))", "(* x (length (append)))", "(car (append (list x)))"],
    "list-ref": ["(list-ref (list 1 x 3) 1)", "(* x (list-ref '(4 5 6) 2))", "(* x (list-ref '(4 5 6 7) i))",
                 "(list-ref (list x) 1)"],
    "list-tail": ["(car (list-tail (list 1 x 3) 1))", "(* x (length (list-tail '(4 5 6) 2)))",
                  "(* x (length (list-tail (list x x) 0)))", "(list-tail (list x) 2)"],
    "parts": ["(car (list x 2))", "(cadr (list 1 x))", "(caddr (list 1 2 x))", "(cadddr (list 1 2 3 x))",
              "(car (cdr (list 1 x)))", "(car (cddr (list 1 2 x)))", "(car (cdddr (list 1 2 3 x)))",
              "(caar (list (list x 1)))", "(car (cdar (list (list 1 x))))", "(cadar (list (list 1 x)))",
              "(caadr (list 1 (list x)))", "(car (cdadr (list 1 (list 2 x))))", "(caaar (list (list (list x))))",
              "(car (cdaar (list (list (list 1 x)))))", "(car (cddar (list (list 1 2 x))))", "(first (list x 2 3))",
              "(second (list 1 x 3))", "(third (list 1 2 x))", "(car '())", "(cdr x)", "(cadr (list x))"],
    **{f"apply {name}": [f"(apply {name} (list x 2 x))", f"(apply {name} 3 (list x))", f"(apply {name} x '())",
                         f"(* x (apply {name} '(1 2 3)))", f"(apply {name} (iota 3 x))",
                         f"(apply {name} x 2 (list 1.5))"]
       for name in ("+", "*", "max", "min")},
    # vectors
    "vector": ["(vector-ref (vector 1 x) 1)", "(* x (vector-length (vector)))"],
    "make-vector": ["(vector-ref (make-vector 3 x) 2)", "(* x (vector-length (make-vector 3)))",
                    "(let ((v (make-vector 2 0))) (vector-set! v 1 x) (vector-ref v 1))",
                    "(vector-ref (make-vector (+ i 1) x) i)"],
    "vector-length": ["(* x (vector-length (vector 1 2 3)))", "(* x (vector-length #(1 2)))"],
    "vector-ref": ["(* x (vector-ref #(1 2 3 4) i))", "(vector-ref (vector x 2) 0)", "(vector-ref (vector x) 1)",
                   "(vector-ref (vector x) -1)", "(* x (vector-ref #(1.5 2.5 3.5 4.5) i))"],
    "vector-set!": ["(let ((v (vector 1.0 2.0))) (vector-set! v 0 x) (+ (vector-ref v 0) (* x (vector-ref v 1))))",
                    "(let ((v (vector 0.0 0.0 0.0 0.0))) (vector-set! v i x) (vector-ref v i))",
                    "(let ((v (vector x))) (vector-set! v 1 x) x)"],
    "make-vector, filled later": [
        "(let ((v (make-vector 4 #f))) (vector-set! v i x) (vector-ref v i))",
        "(let ((v (make-vector 3 #f))) (vector-set! v 0 x) (if (vector-ref v 1) x (* 2 x)))",
        "(let ((v (make-vector 3))) (vector-set! v 1 (vector x i)) (vector-ref (vector-ref v 1) 0))",
        "(let ((v (make-vector 3 #f))) (vector-set! v 1 (vector x i)) (vector-ref (vector-ref v (modulo i 2)) 0))",
        "(let ((v (make-vector 3 #f))) (vector-set! v 1 (vector x i)) (if (vector-ref v 0) x (* 2 x)))",
        "(let ((v (make-vector 3 '()))) (vector-set! v 1 (list x i)) (apply + (vector-ref v (modulo i 2))))",
        "(let ((v (make-vector 3 #f))) (vector-set! v 1 (list x i)) (apply + (vector-ref v 1)))",
        "(let ((v (make-vector 2 #f))) (vector-set! v 0 x) (if (car (vector->list v 1)) x (* 2 x)))",
        "(let ((v (vector-append (make-vector 2 #f) (vector x)))) (if (vector-ref v 1) x (* 2 (vector-ref v 2))))",
        "(let ((v (make-vector 2 #f))) (vector-set! v 0 i) (vector-set! v 1 2) (apply * x (vector->list v)))",
        "(vector-ref (vector-ref (vector-map (lambda (a) (vector a (* a x))) (vector x i)) 1) 1)",
        "(apply + (vector->list (vector-map * (vector x i 2) (vector x x))))"],
    "vector-fill!": ["(let ((v (vector 1.0 2.0))) (vector-fill! v x) (+ (vector-ref v 0) (vector-ref v 1)))",
                     "(let ((v (make-vector 5 2.0))) (vector-fill! v x 0 i) (apply * (vector->list v)))",
                     "(let ((v (make-vector 5 2.0))) (vector-fill! v x 3) (apply * (vector->list v)))"],
    "vector-copy": ["(let* ((v (vector x 2)) (w (vector-copy v))) (vector-set! w 0 3) (apply * 2 (vector->list v)))",
                    "(apply * (vector->list (vector-copy (make-vector 4 x) i)))",
                    "(apply * (vector->list (vector-copy (vector 1 x 3 x) 1 3)))",
                    "(let ((w (vector-copy #(1.5 2.5)))) (vector-set! w 1 x) (apply * (vector->list w)))",
                    "(* x (vector-length (vector-copy (vector x 2 3) i 3)))",
                    "(vector-ref (vector-copy (vector x) 1) 0)"],
    "subvector": ["(apply * (vector->list (subvector (vector 1 x 3 x) 1 3)))"],
    "vector-append": ["(apply * (vector->list (vector-append (vector x 2) (vector 3 x))))",
                      "(apply * (vector->list (vector-append (make-vector i x) #(1.5 2.5) (vector x i))))",
                      "(* x (vector-length (vector-append (make-vector i 1) (vector) (make-vector 2 3))))"],
    "vector-copy!": ["(let ((v (make-vector 4 1.0))) (vector-copy! v 1 (vector x 2 x)) (apply * (vector->list v)))",
                     "(let ((v (vector 1.0 x 3.0 4.0))) (vector-copy! v 1 v 0 3) (vector-ref v 2))",
                     "(let ((v (vector 1.0 x 3.0 4.0))) (vector-copy! v 0 v 1) (vector-ref v i))",
                     "(let ((v (make-vector 4 1.0))) (vector-copy! v i (vector x 2 x) 2) (apply * (vector->list v)))"],
    "vector->list": ["(apply + (vector->list (vector x 2 x)))", "(* x (length (vector->list #())))",
                     "(apply + (vector->list (make-vector 5 x) 0 i))", "(apply + (vector->list (vector x 2 x 3) 1 3))"],
    "list->vector": ["(vector-ref (list->vector (list 1 x)) 1)", "(* x (vector-length (list->vector '())))"],
    # values that meet, and calls
    "if": ["(vector-ref (if (< x 0.5) (vector x 1.0) (vector x 2.0 3.0)) 0)",
           "(apply + (if (< x 0.5) '() (list x 1.0)))",
           "(apply + (if (< x 0.5) (list x) (list x 1.0 x)))", "((if (< x 0.5) sin cos) x)", "(* x (if (= i 1) 1/2 i))",
           "(let ((p (if (< x 0.5) (cons x 1) (cons 2 x)))) (* (car p) (cdr p)))", "(* x (if (< x 0.5) 1 2.5))",
           "((if (< x 0.5) (lambda (y) (* y 2)) (lambda (y) (* y x))) x)", "(if (if (< x 0.5) #f x) x 1)",
           "(vector-ref (if (< x 0.5) (make-vector 3 x) (vector 1.0 x 3.0)) 1)",
           "(apply + (if (= i 2) (list x i) (list i x 2.0)))",
           "(let ((v (if (< i 2) (vector x) (vector 1.0 x)))) (vector-ref v 0))"],
    "apply": ["(apply (lambda (a . r) (+ a (length r))) x (list 1 2))", "(apply (lambda (a b) (* a b)) (list x 2))",
              "(apply (lambda r (apply + r)) x (list x i))", "(apply (lambda (a . r) (apply * a r)) (iota 3 x))",
              "(apply (lambda (a b . r) (+ a b (apply max x r))) x (map (lambda (k) (* k x)) (iota (+ i 1))))",
              "(apply (lambda (a) a) (list x x))", "(apply atan (list x 2))", "(apply - x (list 1 x))"],
    # derivatives inside
    "derivative": ["(derivative (lambda (y) (* x y y)) x)", "(derivative sin x)",
                   "((derivative (lambda (y) (exp (* x y)))) i)",
                   "(derivative (derivative (lambda (y) (expt (* x y) 3))) x)",
                   "(derivative (lambda (y) (abs (* x y))) x)",
                   "(derivative (lambda (y) (max (* x y) (min y x))) (* 2 x))", "(* x (derivative (lambda (y) 7) x))",
                   "(derivative (lambda (y) (if (and (> y 0) (< y x)) y (* y y x))) (* 2 x))",
                   "(derivative (lambda (y) (let ((z 1.0)) (set! z (* y z)) (* z x y))) x)",
                   "(let ((z 1.0)) (derivative (lambda (y) (set! z (* y z)) (* z x y)) x))",
                   "(derivative (lambda (y) (if (< y 5) y (error \"large\"))) x)",
                   "(derivative (lambda (y) (list y)) x)",
                   "(derivative (lambda (y) (let loop ((k 0) (p y)) (cond ((> p 9) p) ((= k 5) (* x p)) (else"
                   " (loop (+ k 1) (* 1.5 p)))))) (+ 1 (* x x)))", "(derivative (lambda (y) (sqrt (* y y))) (* 0 x))",
                   "(derivative (lambda (y) (* x y)) x :mode 'forward)", "(derivative (lambda (y) (floor (* x y))) x)",
                   "((if (< i 2) (derivative sin) cos) x)", "(if (procedure? (derivative sin)) x 0)",
                   "(derivative (lambda (y) (* y (derivative (lambda (z) (* x y z z)) y))) x)"],
    "gradient": ["(apply + (gradient * x 2.0))",
                 "(vector-ref (gradient (lambda (v) (* x (vector-ref v i))) (make-vector 5 x)) i)",
                 "(apply + (gradient (lambda (l) (apply * l)) (list x 2.0 (* x x))))", "(gradient exp x)",
                 "(apply + (vector->list (gradient (lambda (v) (vector-set! v 0 x) (apply * (vector->list v)))"
                 " (vector x x 2.0))))",
                 "(let ((w (make-vector 3 x))) (apply + (vector->list (gradient (lambda (v) (vector-set! w i 1.0)"
                 " (* (vector-ref v 0) (vector-ref w 1))) (make-vector 2 x)))))",
                 "(let ((g (gradient (lambda (v) (vector-ref v 0)) (vector x 2.0))))"
                 " (vector-set! g (modulo i 2) x) (vector-ref g 0))",
                 "(let ((v (vector x 2.0)))"
                 " (vector-ref (gradient (lambda (w) (* (vector-ref w 0) (vector-ref v 1))) v) 0))",
                 "(apply + (gradient (lambda (l) (fold (lambda (a s) (* a (+ s x))) 1.0 l))"
                 " (map (lambda (k) (* x k)) (iota (+ i 1)))))",
                 "(car (gradient (lambda (a b) (* a (vector-ref b 1))) x (vector x x)))",
                 "(vector-ref (gradient (lambda (v) (* x (vector-ref v 1))) #(1.0 2.0)) 1)",
                 "(car (gradient (lambda (a b) (* a (sqrt b))) x 4))"],
    "value-and-gradient": ["(receive (v g) (value-and-gradient (lambda (y) (* x y y)) x) (* v g))",
                           "(call-with-values (lambda () (value-and-gradient * x 2.0)) (lambda (v g) (apply + v g)))"],
    "keyword?": ["(if (keyword? x) 0 x)", "(if (keyword? :mode) x 0)"],
    # records, text and errors
    "%record": ["(let ((p (point x 2))) (* (point-a p) (point-b p)))", "(if (point? (point x 1)) x 0)",
                "(if (point? x) 0 x)", "(if (point? (other x)) 0 x)", "(point-a (other x))",
                "(let ((p (point 1 x))) (point-b p))"],
    "string-append": ["(if (< x 5) x (error (string-append (number->string i) (symbol->string 'b) (string #\\c))))",
                      "(if (< x 0.5) (error (string-append \"a\" (number->string i))) x)"],
    "error": ["(if (< x 0.5) (error \"too small:\" i) x)", "(if (= i 1) (error \"one\") x)"],
    "raise": ["(if (< x 0.5) (raise 'small) x)", "(if (< x 0.5) (raise i) x)"],
    "raise-continuable": ["(if (< x 0.5) (raise-continuable 'small) x)"],
    "%wrong-type": ["(vector-ref x 0)", "(car x)", "(+ x 'a)"],
}  # fmt: skip
# Names that stand for what other names are compiled to, or that cases above reach under another name.
COVERED = {
    "parts": {"car", "cdr", "cadr", "cddr", "caddr", "cdddr", "cadddr", "caar", "cdar", "cadar", "caadr", "cdadr",
              "caaar", "cdaar", "cddar", "first", "second", "third"},
    "reverse": {"%fresh-reverse"}, "%flonum?": {"%fixnum?"}, "%record": {"%record?", "%record-ref"},
    "vector": {"%vector-ref", "%vector-set!"},  # which are those without a look at the bounds
    "string-append": {"string", "number->string", "symbol->string", "%written", "%spelled"},
}  # fmt: skip
# Expressions whose derivatives are not compiled: errors, exact numbers known only later, questions about types.
LEFT_TO_THE_TOWER = set(Path(__file__).with_name("left_to_the_tower.txt").read_text(encoding="utf-8").splitlines())
PRELUDE = """
(define-record-type point (point a b) point? (a point-a) (b point-b))
(define-record-type other (other a) other? (a other-a))
(define (typed (y : Float64) (k : Integer)) : Float64 (* y (+ y k)))
"""


def body(expression: str) -> str:
    """In a loop also where it has no part in it: derivatives of a few operations alone are not worth compiling."""
    return f"(let loop ((i 0) (t 0)) (if (= i 4) t (loop (+ i 1) (+ t {expression}))))"


def test_every_primitive_has_cases() -> None:
    known = set(CASES) | set().union(*COVERED.values())
    assert set(PRIMITIVES) - known == set()


@pytest.fixture(scope="module")
def checker() -> Iterator[Checker]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ESHKOL_CHECK", "1")
        made = Checker()
        made.evaluate(PRELUDE)
        yield made
        made.close()


@pytest.mark.parametrize("name", CASES)
def test_compiled_derivatives_are_those_of_the_tower(checker: Checker, name: str) -> None:
    for k, expression in enumerate(CASES[name]):
        fast = 0
        checker.evaluate(f"(define (f{k} x) {body(expression)})")
        for point in POINTS:
            value, runs, found, forward, reverse = parsed(checker.evaluate(f"(outcome f{k} (list {point}))"))
            what = f"{expression} at {point}: {value} / compiled {found} / forward {forward} / reverse {reverse}"
            fast += bool(runs)
            if not isinstance(found, list) or not isinstance(value, float):
                assert written(found) == written(forward) == written(reverse), what
                continue
            assert close([found[0]], [value], 1e-13, 1e-15), what
            assert all(close(found[1:], other[1:], 1e-10, 1e-12) for other in (forward, reverse)), what
        assert (fast == 0) == (expression in LEFT_TO_THE_TOWER), f"{expression} was compiled {fast} times"


def written(found: Any) -> Any:
    """Errors as they are; complex numbers, which the checker leaves as text, without their last digits."""
    return [re.sub(r"(\.\d{10})\d*", r"\1", str(x)) for x in found] if isinstance(found, list) else found
