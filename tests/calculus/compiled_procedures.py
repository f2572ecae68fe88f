"""Procedures whose compiled derivatives `code_sizes.py` accounts for, by what they show of the compiler.

Goes out: definitions of data and procedures, and points at which each procedure is differentiated, one after another:
what was made for one length meets the next. Most are compiled; those of `NOT_COMPILED` show why not.
"""

from __future__ import annotations

DERIVATIVE, GRADIENT, JACOBIAN, KERNEL = range(4)
CHECKPOINT = 8

# Run as it stands: data of every kind that procedures may find outside of themselves.
DEFINITIONS = """
(define-record-type <shape> (shape width height) shape? (width shape-width) (height shape-height))
(define rows '((1.0 2.0) (3.0 4.0) (5.0 6.5)))
(define ragged '((1.0 2.0) (3.0)))
(define whole-rows '((1 2) (3 4)))
(define table-of-vectors (list (vector 1.0 2.0) (vector 0.5 0.25)))
(define vector-of-lists (vector (list 1.0 2.0) (list 0.5)))
(define matrix (vector (vector 1.0 2.0) (vector 3.0 4.0)))
(define wholes (vector 3 1 2))
(define long-list (iota 20))
(define late-change (append (map inexact (iota 17)) (list 'a)))
(define early-change (list 1.0 2 3.0))
(define mixed (vector 1.5 2 (list 1.0 2.0) 'a #t))
(define long-mixed (make-vector 17 1.0))
(vector-set! long-mixed 0 1)
(define dotted (cons 1.5 2.5))
(define nested '(1 . (2.0 . (#t . (3 . 4.0)))))
(define deep '(1 . (2.0 . (1 . (2.0 . (1 . (2.0 . (1 . (2.0 . (1 . (2.0 . (1 . 2.0))))))))))))
(define square-shape (shape 2.0 3))
(define shape-of-shapes (shape (shape 1.0 2.0) (list 1.0 2.0)))
(define nothing '())
(define no-items (vector))
(define big 1000000000000000000000)
(define negative-third -1/3)
(define yes #t)
(define name 'b)
(define letters "abc")
(define letter #\\c)
(define keyword :mode)
(define unspecified (if #f #f))
(define port (open-input-string "1"))
(define counter 3)
(define (adder n) (lambda (x) (+ x n)))
(define (scaled-by v k) (lambda (x) (* x k (vector-ref v 1) (vector-length v))))
(define (tallied) (let ((n 2) (w 0.5)) (lambda (x . more) (if (pair? more) (set! n (+ n 1)) (* x n w)))))
(define add-third (adder 1/3))
(define add-whole (adder 5))
(define add-real (adder 2.5))
(define scale (scaled-by weights 0.25))
(define tally (tallied))
(define (twice-captured g h) (lambda (x) (+ (g x) (h (* 2 x)))))
(define same-twice (twice-captured add-real add-real))
(define not-same (twice-captured add-real (adder 2.5)))
(define sines (twice-captured sin cos))
(define by-shape (let ((s square-shape)) (lambda (x) (* x (shape-width s) (shape-height s)))))
(define optional (case-lambda ((x) (* x 2)) ((x y) (* x y)) ((x y . more) (apply + x y more))))
"""

COMPILED: dict[str, tuple[str, list[str]]] = {  # a name and variables, a body, points
    # ---- lists and vectors as points
    "spread l": ("(apply (lambda (a b c) (* a (+ b (sin c)))) l)", ["(list 1.0 2.5 0.5)", "(list 2.0 1.5 0.25)"]),
    "spread-rest l": ("(apply (lambda (a . rest) (* a (apply + rest))) l)",
                    ["(list 1.0 2.5)", "(list 2.0 1.5 0.25 3.0)"]),
    "folded-list l": ("(let loop ((l l) (s 0)) (if (null? l) s (loop (cdr l) (+ (* s 0.5) (sin (car l))))))",
                    ["(list 1.0 2.5)", "(list 2.0)", "(list 1.0 2.0 3.0 4.0 5.0 6.0 7.0 8.0)"]),
    "changed-vector v": ("(let ((w (make-vector 3))) (vector-set! w 1 (vector-ref v 0)) "
                       "(* (vector-ref w 1) (vector-ref v 1)))", ["(vector 1.5 2.0)", "(vector 1.5 2.0 3.0)"]),
    "listed-vector v": ("(apply + (map (lambda (u) (* u u)) (vector->list v)))",
                      ["(vector 1.5 2.0)", "(vector 1.5 2.0 3.0)"]),
    "mapped-vectors l": ("(vector-ref (vector-map (lambda (u w) (* u w)) (list->vector l) (list->vector "
                         "(reverse l))) 0)",
                       ["(list 1.0 2.5)", "(list 2.0 1.5 0.25)"]),
    "matrix-point l": ("(let loop ((rows l) (s 0)) (if (null? rows) s (loop (cdr rows) (+ s (apply * (car rows))))))",
                     ["(list (list 1.0 2.0) (list 3.0 4.0))", "(list (list 1.5 2.0))"]),
    "vectors-point v": ("(* (vector-ref (vector-ref v 0) 1) (vector-ref (vector-ref v 1) 0))",
                      ["(vector (vector 1.0 2.0) (vector 3.0 4.0))"]),
    "first-of-many v": ("(* 2 (vector-ref v 0) (vector-ref v 6))", ["(vector 1.0 2.0 3.0 4.0 5.0 6.0 7.0)",
                      "(make-vector 17 1.5)"]),
    "sum-of-vector v": ("(let loop ((i 0) (s 0.0)) (if (< i (vector-length v)) "
                      "(loop (+ i 1) (+ s (* (vector-ref v i) (exp s)))) s))",
                      ["(vector 0.5 0.25)", "(vector 0.5 0.25 0.125 1.0 2.0 0.0 0.75)"]),
    "appended l": ("(apply + (append l (list 1 2.0) l (reverse l)))", ["(list 1.0 2.5)", "(list 0.5)"]),
    "consed l": ("(let ((m (cons 2.0 (cons (car l) (cdr l))))) (* (cadr m) (length m) (car (reverse m))))",
               ["(list 1.5 2.0)", "(list 0.5 1.0 2.0)"]),
    "asked-of-list l": ("(if (and (pair? l) (list? l) (not (null? (cdr l)))) (* (car l) (cadr l)) (apply max l))",
                      ["(list 1.5 2.0)", "(list 0.5)"]),
    "applied-max l": ("(+ (apply max l) (apply min 3 l) (apply * 2 l) (apply + 1 0.5 l))",
                    ["(list 1.5 2.0)", "(list 0.5)"]),
    "tail l": ("(* (list-ref l 1) (car (list-tail l 2)))", ["(list 1.0 2.0 3.0)", "(list 1.0 2.5 3.0 4.0)"]),
    "filled v": ("(let ((w (make-vector (vector-length v) 1.0))) (vector-fill! w (vector-ref v 0)) "
               "(vector-set! w 1 2) (* (vector-ref w 0) (vector-ref w 1)))",
                    ["(vector 1.5 2.0)", "(vector 0.5 0.25 1.0)"]),
    "filled-whole x": ("(let ((w (vector 1 2 3))) (vector-fill! w counter) (* x (vector-ref w 2)))", ["1.5"]),
    "filled-then-real x": ("(let ((w (make-vector 3 1))) (vector-set! w 0 x) (vector-fill! w 2) "
                         "(+ x (* x (vector-ref w 0))))", ["1.5"]),
    "vector-of-list l": ("(let ((w (list->vector l))) (vector-set! w 0 2) (* (vector-ref w 0) (vector-ref w 1)))",
                       ["(list 1.5 2.0)", "(list 0.5 1.0 2.0)"]),
    "running x": ("(let ((w (vector 0 0 0))) (let loop ((i 0) (a x)) (if (= i 3) (vector-ref w 2) "
                "(begin (vector-set! w i a) (loop (+ i 1) (* a (vector-ref w i)))))))", ["1.25"]),
    "two-lists l m": ("(apply + (map (lambda (a b) (* a (sin b))) l m))",
                  ["(list 1.0 2.0) (list 0.5 0.25)", "(list 1.0) (list 2.0)"]),
    "number-and-vector l m": ("(* l (vector-ref m 1))", ["1.5 (vector 1.0 2.0)", "1.5 (vector 1.0 2.0 3.0)"]),
    # ---- results that are vectors and lists
    "rotated v": ("(vector (* 2 (vector-ref v 1)) (- (vector-ref v 0)) (* (vector-ref v 0) (vector-ref v 1)))",
                ["(vector 1.5 2.0)"]),
    "listed-result l": ("(list (car l) (* (car l) (cadr l)))", ["(list 1.5 2.0)"]),
    "mapped-result l": ("(map (lambda (u) (* u u)) l)", ["(list 1.5 2.0)", "(list 1.5 2.0 3.0)"]),
    "made-result v": ("(let ((w (make-vector 2 (vector-ref v 0)))) (vector-set! w 1 (sin (vector-ref v 1))) w)",
                    ["(vector 1.5 2.0)"]),
    "nested-result v": ("(vector (list (vector-ref v 0)) (vector (vector-ref v 0) (vector-ref v 1)))",
                    ["(vector 1.5 2.0)"]),
    "slope x": ("(* x x (sin x))", ["1.5"]),
    "many-directions v": ("(vector (vector-ref v 0) (vector-ref v 15))", ["(make-vector 16 1.5)"]),
    # ---- data from outside
    "of-rows x": ("(let loop ((r rows) (s x)) (if (null? r) s (loop (cdr r) (+ (* s (caar r)) (apply max (cdar r))))))",
                ["1.5"]),
    "of-points x": ("(let loop ((r rows) (s x)) (if (null? r) s (loop (cdr r) (* s (+ (sin (* x (caar r))) (cos "
                  "(* s (cadar r))))))))", ["1.5"]),
    "of-ragged x": ("(fold (lambda (r s) (+ s (* x (apply + r)))) 0 ragged)", ["1.5"]),
    "of-whole-rows x": ("(fold (lambda (r s) (+ s (* x (apply + r)))) 0 whole-rows)", ["1.5"]),
    "of-vectors x": ("(fold (lambda (r s) (+ s (* x (vector-ref r 1)))) 0 table-of-vectors)", ["1.5"]),
    "of-lists x": ("(* x (car (vector-ref vector-of-lists 0)) (length (vector-ref vector-of-lists 1)))", ["1.5"]),
    "of-matrix x": ("(let loop ((i 0) (s 0)) (if (= i 2) s (loop (+ i 1) (+ s (* x (vector-ref "
                    "(vector-ref matrix i) i))))))",
                  ["1.5"]),
    "of-wholes x": ("(* x (vector-ref wholes 1) (vector-length wholes) (apply + (vector->list wholes)))", ["1.5"]),
    "of-long-list x": ("(* x (apply + long-list) (length long-list))", ["1.5"]),
    "of-late-change x": ("(* x (car late-change) (cadr late-change))", ["1.5"]),
    "of-early-change x": ("(* x (car early-change) (cadr early-change))", ["1.5"]),
    "of-mixed x": ("(* x (vector-ref mixed 0) (vector-ref mixed 1) (car (vector-ref mixed 2)) "
                 "(if (vector-ref mixed 4) 2 3) (vector-length mixed))", ["1.5"]),
    "of-dotted x": ("(* x (car dotted) (cdr dotted))", ["1.5"]),
    "of-nested x": ("(* x (car nested) (cadr nested) (cdr (cdddr nested)))", ["1.5"]),
    "of-shape x": ("(if (shape? square-shape) (* x (shape-width square-shape) (shape-height square-shape)) x)",
                    ["1.5"]),
    "of-shapes x": ("(let ((s (shape-width shape-of-shapes))) (* x (shape-width s) (cadr "
                    "(shape-height shape-of-shapes))))",
                  ["1.5"]),
    "of-nothing x": ("(if (null? nothing) (+ x (length nothing) (vector-length no-items)) x)", ["1.5"]),
    "of-exact x": ("(+ (* x third) (* x big) (* x negative-third) counter)", ["1.5"]),
    "of-constants x": ("(if (and yes (eq? name 'b) (not (eq? unspecified 1))) "
                       "(if (< x 0) (error letters name letter keyword x) (* x 2)) x)", ["1.5"]),
    "of-globals x": ("(let loop ((i 0) (s rate)) (if (= i steps) s (loop (+ i 1) (+ s (* x rate)))))", ["1.5"]),
    "of-closures x": ("(+ (add-third x) (add-whole x) (add-real x) (scale x))", ["1.5"]),
    "of-box x": ("(* x (tally x))", ["1.5"]),
    "of-same-closures x": ("(* (same-twice x) (not-same x) (sines x))", ["1.5"]),
    "of-captured-record x": ("(+ (by-shape x) (by-shape (* 2 x)))", ["1.5"]),
    "of-clauses x": ("(+ (optional x) (optional x 2) (optional x 2 3 x))", ["1.5"]),
    # ---- control
    "of-two l m": ("(+ (expt l 3) (expt l m) (expt 2 m) (atan m l) (max l m 1) (min l m))", ["2.5 1.5", "0.5 0.75"]),
    "alternating x": ("(let loop ((i 0) (a x) (up #t)) (if (= i 5) a (loop (+ i 1) (if up (* a 1.5) (sin a)) "
                      "(not up))))",
                    ["2.5"]),
    "by-cases x": ("(let loop ((i 0) (a x)) (cond ((= i 6) a) ((> a 2) (loop (+ i 1) (/ a 3))) "
                 "(else (loop (+ i 1) (* a a 1.5)))))", ["1.75"]),
    "assigned x": ("(let ((c 0)) (define (add! u) (set! c (+ c (* u u)))) (add! x) (add! (sin x)) (add! 2) c)",
                    ["1.5"]),
    "assigned-in-loop x": ("(let ((c 1)) (let loop ((i 0)) (if (< i 4) (begin (set! c (* c x)) (loop (+ i 1))))) c)",
                         ["1.5"]),
    "several-values x": ("(let-values (((a b) (values (sin x) (* x 2)))) (if (< a b) (- b a) (* a b)))", ["1.5"]),
    "values-of-branches x": ("(call-with-values (lambda () (if (< x 1) (values x 2) (values 1.0 x))) "
                           "(lambda (a b) (* a b x)))", ["1.5"]),
    "called-in-turns x": ("(define (g n u) (if (= n 0) u (h (- n 1) (* u 1.25)))) "
                        "(define (h n u) (if (= n 0) (sin u) (g (- n 1) (+ u x)))) (g 7 x)", ["0.5"]),
    "filtered x": ("(let ((l (list x (* 2 x) (* 3 x)))) (fold (lambda (u s) (+ s (* u u))) 0 "
                 "(filter (lambda (u) (> u 1.5)) l)))", ["0.75"]),
    "exact-parts x": ("(if (and (> x 1) (or (< x 2) (= x 3))) (* x (quotient 7 2)) "
                    "(* x (remainder 7 4) (exact->inexact 1/3)))", ["1.5"]),
    "until l m": ("(let loop ((i 0) (s l)) (if (>= i m) s (loop (+ i 1) (+ s (* l (square i))))))", ["1.5 4.0"]),
    "several-exits x": ("(let loop ((i 0) (a x)) (cond ((> a 100) (* a 2)) ((= i 9) (sin a)) ((< a 0.01) x) "
                      "(else (loop (+ i 1) (* a a)))))", ["1.25"]),
    "loops-in-loops x": ("(let outer ((i 0) (s 0)) (if (= i 3) s (outer (+ i 1) (let inner ((j i) (p s)) (if (= j 0) "
                       "(+ p (* x i)) (inner (- j 1) (* (+ p 1) x)))))))", ["0.5"]),
    "loop-after-loop x": ("(let ((a (let loop ((i 0) (a x)) (if (= i 3) a (loop (+ i 1) (* a a)))))) "
                        "(let loop ((i 6) (b a)) (if (= i 0) (* a b) (loop (- i 2) (if (odd? i) (sin b) b)))))",
                        ["0.5"]),
    "by-steps x": ("(let loop ((i 10) (a x)) (if (< i 0) a (loop (- i counter) (+ a (* i (exp (* 0.1 a)))))))",
                    ["0.5"]),
    "counted-by-reals x": ("(let loop ((t 0.0) (a x)) (if (>= t 1.0) a (loop (+ t 0.25) (+ a (* 0.25 (sin a))))))",
                         ["0.5"]),
    "doubly-recursive x": ("(define (go n u) (if (< n 2) (* u x) (+ (go (- n 1) u) (go (- n 2) (* u 0.5))))) (go 5 x)",
                         ["0.5"]),
    "recursive-list x": ("(define (build n u) (if (= n 0) '() (cons u (build (- n 1) (* u x))))) (apply + (build 4 x))",
                       ["0.5"]),
    "recursive-with-vector x": ("(define (go n w) (if (= n 0) (vector-ref w 0) (begin (vector-set! w 0 "
                              "(* x (vector-ref w 0))) (* 2 (go (- n 1) w))))) (go 3 (make-vector 1 x))", ["0.5"]),
    "higher-order x": ("((compose (twice squeeze) (lambda (u) (* u x))) (half-of x))", ["0.5"]),
    "passed-along x": ("(define (go g n) (if (= n 0) (g x) (go (lambda (u) (* 2 (g u))) (- n 1)))) (go sin 0)",
                    ["0.5"]),
    "joined-data x": ("(let ((p (if (< x 1) (cons x (list 1.0)) (cons 2.0 (list x 3.0))))) (* (car p) (apply + "
                      "(cdr p))))",
                    ["0.5"]),
    "made-and-taken x": ("(let* ((c (couple x (list x 2))) (d (couple (couple-two c) 3))) "
                       "(* (couple-one c) (cadr (couple-one d)) (couple-two d)))", ["0.5"]),
    "checked x": ("(if (< x 0) (error \"negative\" x) (if (> x 9) (raise 'large) (sqrt x)))", ["0.5"]),
    "rounded x": ("(* x (exact (floor (* 2.0 x))) (round x) (exact (truncate 2.5)))", ["1.5"]),
    "shared-parts x": ("(let ((a (* x x)) (b (sin x))) (+ (* a b) (/ a b) (* (exp a) (exp a)) (* (sin x) (* x x))))",
                     ["0.5"]),
    "steps-and-kinks x": ("(+ (abs x) (* (floor x) x) (max x 0.5) (min x 0.25 0.75) (if (zero? x) x (- x)))", ["0.5"]),
    "wide x": ("(let loop ((i 0) (a x) (b (* 2 x)) (c 1.0) (d (sin x))) (if (= i 4) (+ (* a b) (* c d)) "
             "(loop (+ i 1) b c d (* a (+ d (if (> b c) (* b c) (cos b)))))))", ["0.5"]),
    "array-in-loop x": ("(let ((w (make-vector 5 x))) (let loop ((i 1)) (if (= i 5) (vector-ref w 4) (begin "
                      "(vector-set! w i (* (vector-ref w (- i 1)) (sin (vector-ref w i)))) (loop (+ i 1))))))",
                    ["0.5"]),
    "lists-in-loop x": ("(let loop ((i 0) (l '())) (if (= i 4) (apply * l) (loop (+ i 1) (cons (* x (+ i 1)) l))))",
                      ["0.5"]),
    "list-or-not x": ("(let loop ((i 0) (l '())) (if (= i counter) (if (null? l) x (* x (car l))) "
                    "(loop (+ i 1) (if (odd? i) '() (list (* i x))))))", ["0.5"]),
    "exact-stored-later x": ("(let ((w (make-vector 1 0.5))) (let loop ((i 0) (s x)) (if (= i 3) s (let ((r "
                             "(vector-ref w 0))) "
                             "(vector-set! w 0 1/3) (loop (+ i 1) (if (< r x) (* s r) s))))))", ["0.75"]),
    "exact-later x": ("(let loop ((i 0) (a 0.5)) (if (= i 3) (* a x) (loop (+ i 1) (if (< a x) 1/3 a))))", ["0.75"]),
    "whole-later x": ("(let loop ((i 0) (a 0.5)) (if (= i 3) (* a x) (loop (+ i 1) (if "
                      "(< a x) counter a))))", ["0.75"]),
    "asked-of-procedures x": ("(if (and (procedure? sin) (procedure? half-of) (not (procedure? x))) (* x x) x)",
                            ["1.5"]),
    "large-ratio x": ("(* x (/ big 7))", ["1.5"]),
    "loops-of-two-kinds x": ("(define (repeat n a) (let loop ((i 0) (a a)) (if (= i n) a (loop (+ i 1) (* a a))))) "
                           "(* (repeat 2 x) (repeat 3 2))", ["1.5"]),
    "function-of-two-kinds x": ("(define (go n u) (if (= n 0) u (* 2 (go (- n 1) 1.5)))) (* x (go 2 3))", ["1.5"]),
    "boxed-in-loop x": ("(let ((n 1.0)) (let ((bump (lambda (u) (set! n (* n u)) n))) (let loop ((i 0) (g bump) (a x)) "
                      "(if (= i 3) a (loop (+ i 1) g (g a))))))", ["1.5"]),
    "vector-of-rows x": ("(let ((w (vector (vector x 1.0) (vector 2.0 x)))) (let loop ((i 0) (s 0)) (if (= i 2) s "
                       "(loop (+ i 1) (+ s (* x (vector-ref (vector-ref w i) i)))))))", ["1.5"]),
    "mapped-twice x": ("(map (lambda (k) (map (lambda (j) (* x j k)) long-list)) long-list)", ["1.5"]),
    "long-turns l": (f"(fold (lambda (u s) {'(sin (* s ' * 50} u {'))' * 50}) 1.0 l)", [f"(list {'0.5 ' * 16})"]),
    "applied-values x": ("(call-with-values (lambda () (apply values (list x 2))) (lambda (a b) (* a b)))", ["1.5"]),
    "cleared-by-function x": ("(define (clear n w) (if (= n 0) 0 (begin (vector-set! w 0 0.5) "
                            "(+ 1 (clear (- n 1) w))))) (let* ((w (make-vector 2 x)) (k (clear 2 w))) "
                            "(+ k (* x (vector-ref w 0) (vector-ref w 1))))", ["1.5"]),
    "swapped x": ("(let loop ((i 0) (a x) (b 1.0)) (if (= i 6) (/ a b) (loop (+ i 1) b (+ a b))))", ["0.5"]),
}  # fmt: skip
NOT_COMPILED: dict[str, tuple[str, list[str]]] = {  # a name and variables, a body, points
    "logarithms x": ("(+ (log x 2) (log x 10) (log x 7) (log 5.0 x))", ["2.5", "0.75"]),
    "chosen x": ("(let ((g (if (< x 1) (lambda (u) (* u x)) (lambda (u) (+ u x))))) (g 2))", ["0.5"]),
    "nested-derivative x": ("(* x (derivative (lambda (u) (* u u x)) 2.0))", ["0.5"]),
    "exact-point x": ("(* x x)", ["2", "1/2"]),
    "text-point x": ("(* 2.0 3.0)", ["\"a\"", "'a", "#t", "(shape 1.0 2.0)", "'()", "car"]),
    "mixed-point l": ("(* 2.0 (car l))", ["(list 1.0 2)", "(cons 1.0 2.0)", "(list 1.0 'a)", "(vector 1.0 2)",
                                       "(list (list 1.0) (vector 2.0))", "(vector 1.0 'a)", "(shape 1.0 'a)"]),
    "many-inputs v": ("(vector (vector-ref v 0))", ["(make-vector 17 1.5)"]),
    "no-number x": ("(list x)", ["0.5"]),
    "text-result x": ("\"a\"", ["0.5"]),
    "pair-result x": ("(cons x x)", ["0.5"]),
    "constant-result x": ("(list wholes)", ["0.5"]),
    "truth-result x": ("(< x 1)", ["0.5"]),
    "changes-global x": ("(set! rate x) x", ["0.5"]),
    "changes-outside x": ("(vector-set! weights 0 x) x", ["0.5"]),
    "fills-outside x": ("(vector-fill! weights x) x", ["0.5"]),
    "fills-part x": ("(let ((w (make-vector 3 x))) (vector-fill! w 1.0 1) (vector-ref w 0))", ["0.5"]),
    "part-of-vector x": ("(apply + (vector->list (vector x 1.0) 1))", ["0.5"]),
    "changes-captured x": ("(tally x 1)", ["0.5"]),
    "of-undefined x": ("(* x not-defined-yet)", ["0.5"]),
    "of-port x": ("(if (eq? port x) x (* 2 x))", ["0.5"]),
    "of-long-mixed x": ("(* x (vector-ref long-mixed 0))", ["0.5"]),
    "of-deep x": ("(* x (car deep))", ["0.5"]),
    "mixed-by-number x": ("(* x (vector-ref mixed counter))", ["0.5"]),
    "place-known-later x": ("(* x (list-ref rows counter))", ["0.5"]),
    "real-place x": ("(vector-ref (vector x) 0.0)", ["0.5"]),
    "vector-of-vectors x": ("(vector-length (make-vector 3 (vector x)))", ["0.5"]),
    "vectors-of-lists x": ("(vector-ref (vector-ref (list->vector (map (lambda (k) (list x)) long-list)) 0) 0)",
                    ["0.5"]),
    "calls-number x": ("(x 1)", ["0.5"]),
    "calls-data x": ("((vector-ref mixed 3) x)", ["0.5"]),
    "too-few x": ("((lambda (a b) (* a b)) x)", ["0.5"]),
    "never-returns x": ("(error \"always\")", ["0.5"]),
    "for-ever x": ("(let loop ((a x)) (loop (* a 2)))", ["0.5"]),
    "unknown-procedure x": ("(* x (string-length \"abc\"))", ["0.5"]),
    "text-as-number x": ("(+ x letters)", ["0.5"]),
    "truth-as-number x": ("(+ x (< x 1))", ["0.5"]),
    "truth-or-number x": ("(let ((t (if (< x 1) #t 2))) (if t x 1))", ["0.5"]),
    "list-or-number x": ("(let ((t (if (< x 1) (list x) 2.0))) (if (pair? t) x 1))", ["0.5"]),
    "rest-of-values x": ("(call-with-values (lambda () (values x 2 3)) (lambda (a . r) (* a (car r))))", ["0.5"]),
    "values-for-one x": ("(let ((a (values x 2))) x)", ["0.5"]),
    "too-many-values x": ("(let-values (((a b) (values x 2 3))) a)", ["0.5"]),
    "spread-clauses x": ("(apply optional (map (lambda (k) (* k x)) long-list))", ["0.5"]),
    "spread-too-long x": ("(apply (lambda (a) (* a x)) 1 2 long-list)", ["0.5"]),
    "applied-to-data x": ("(apply + rows)", ["0.5"]),
    "applied-to-number x": ("(apply + x)", ["0.5"]),
    "length-of-number x": ("(* x (length x))", ["0.5"]),
    "reverse-of-number x": ("(* x (length (reverse x)))", ["0.5"]),
    "append-of-number x": ("(apply + (append x (list x)))", ["0.5"]),
    "vector-of-number x": ("(vector-ref (list->vector x) 0)", ["0.5"]),
    "part-of-number x": ("(* x (car counter))", ["0.5"]),
    "part-of-symbol x": ("(* x (car name))", ["0.5"]),
    "field-of-number x": ("(shape-width x)", ["0.5"]),
    "field-of-other x": ("(* x (couple-one square-shape))", ["0.5"]),
    "record-as-number x": ("(+ x square-shape)", ["0.5"]),
    "real-count x": ("(* x (length (iota x)))", ["0.5"]),
    "very-large x": ("(* x (expt 10 400))", ["0.5"]),
    "memory-of-truths x": ("(let ((w (make-vector 2 #f))) (if (vector-ref w 0) x 1))", ["0.5"]),
    "procedure-result x": ("(lambda (u) (* u x))", ["0.5"]),
    "sum-of-symbol x": ("(* x (+ name))", ["0.5"]),
    "applied-values-for-one x": ("(let ((a (apply values (list x 2)))) (* a x))", ["0.5"]),
    "continuation x": ("(call/cc (lambda (k) (k x)))", ["0.5"]),
}  # fmt: skip
# Beyond gradients: Jacobians, directional derivatives, whether it is a kernel, checkpoints.
ASKED: dict[str, tuple[int, ...]] = {
    **dict.fromkeys(("rotated", "listed-result", "mapped-result", "made-result", "nested-result", "many-directions",
                     "many-inputs", "mapped-twice", "pair-result", "constant-result", "truth-result", "text-result"),
                    (JACOBIAN, GRADIENT, KERNEL)),
    "slope": (DERIVATIVE, GRADIENT, KERNEL), "no-number": (GRADIENT, KERNEL), "checked": (GRADIENT, KERNEL),
    **dict.fromkeys(("loops-in-loops", "several-exits", "assigned-in-loop", "array-in-loop", "lists-in-loop", "wide"),
                    (GRADIENT, GRADIENT | CHECKPOINT)),
}  # fmt: skip

PROCEDURES = {
    (name := head.partition(" ")[0]): (f"(lambda ({head.removeprefix(name).strip()}) {body})", points)
    for head, (body, points) in (COMPILED | NOT_COMPILED).items()
}

# ---- every kind of value where every kind is awaited -----------------------------------------------------------------

# Both are lambda expressions: what is made of x, and what is done with that, d, in a number.
MADE = [
    "x", "steps", "3", "1/2", "2.5", "(list x 2.0)", "'()", "(cons x 1)", "(vector x 2.0)", "(vector)",
    "(iota counter)",
    "(make-vector steps x)", "weights", "rows", "mixed", "'a", "(< x 1)", "sin", "(lambda (u) (* u x))", "(shape x 2)",
    "(values x 2)",
]  # fmt: skip
USED = [
    "(+ x d)", "(/ x d)", "(if (< d x) x 1)", "(if d x 1.0)", "(if (not d) x 1.0)", "(if (zero? d) x 1)", "(d x)",
    "(apply + d)", "(apply max x d)", "(apply (lambda (a . r) (* x a)) d)", "(* x (vector-ref d 0))",
    "(* x (vector-ref d steps))", "(vector-ref (vector x 2.0 x 1.0) d)", "(* x (vector-length d))",
    "(begin (vector-set! d 0 x) (vector-ref d 0))", "(begin (vector-fill! d x) (vector-ref d 0))", "(* x (cadr d))",
    "(* x (length d))", "(* x (car (reverse d)))", "(apply + (append d (list x)))", "(apply + (append (list x) d))",
    "(* x (vector-ref (list->vector d) 0))", "(* x (apply + (vector->list d)))", "(* x (shape-width d))",
    "(vector-ref (make-vector d x) 0)", "(* x (length (iota d)))", "(* x (car (list-tail d 1)))", "(* x (exact d))",
    "(* x (sqrt d))", "(* x (atan d 2))", "(expt d 2)", "(expt x d)", "(* x (quotient d 2))", "(max x d 1)",
    "(* x (min 1 d))", "(* x (floor d))", "(if (even? d) x 1)", "(if (null? d) x 1)", "(if (pair? d) x 1)",
    "(if (list? d) x 1)", "(if (vector? d) x 1)", "(if (shape? d) x 1)", "(if (exact? d) x 1)", "(if (eq? d d) x 1)",
    "(if (eqv? d 2) x 1)", "(if (equal? d '()) x 1)",
    *(f"(let ((e (if (< x 1) d {other}))) (* x {use}))" for other, use in (
        ("2.0", "e"), ("1", "(if e 1 2)"), ("'()", "(length e)"), ("(list x)", "(car e)"),
        ("(vector x 1.0)", "(vector-ref e 0)"), ("rows", "(length e)"), ("#t", "(if e 1 2)"), ("sin", "1"))),
    "(let loop ((i 0) (e d)) (if (= i counter) (* x (if e 1 2)) (loop (+ i 1) 2.0)))",
    "(let loop ((i 0) (e '())) (if (= i counter) (* x (length e)) (loop (+ i 1) (cons d e))))",
    "(let ((e 1)) (set! e d) (* x (if e 2 3)))", "(let ((e d)) (set! e 2.0) (* x e))",
    "(let ((w (make-vector 2 d))) (* x (vector-length w)))",
    "(let ((w (vector 1 d))) (vector-set! w 0 2) (* x (vector-length w)))",
    "(let ((w (make-vector 2 1.0))) (vector-set! w 1 d) (* x (vector-ref w 1)))",
    "(call-with-values (lambda () d) (lambda (a b) (* a b x)))",
    "(define (go n e) (if (= n 0) x (* 2 (go (- n 1) e)))) (go 3 d)",
]  # fmt: skip
