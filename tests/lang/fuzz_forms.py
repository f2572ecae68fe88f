"""What random programs are made of: their preludes, and the forms that expressions and statements have.

Places such as <integer> stand for expressions of that type; `it` is a variable that those within know, `many` says that
there may be any number. Everything here has one meaning in every Scheme, whatever the order of arguments is; what
another Scheme lacks, its prelude defines.
"""

from __future__ import annotations

COMMON = """
(define big 1000000000000000000000000000000000000)
(define (clip x)
  (cond ((not (number? x)) 0)
        ((not (real? x)) 1)
        ((and (integer? x) (exact? x)) (if (< (- big) x big) x (modulo x big)))
        ((exact? x) (if (< (- big) (numerator x) big) (if (< (denominator x) big) x 1/3) 2/7))
        (else x)))
(define (fail . irritants) (raise (cons 'failed irritants)))
(define (same x) x)
(define (number-test x) (if (number? x) x 0))
(define param (make-parameter 10))
(define converted (make-parameter 5 (lambda (x) (if (and (real? x) (> x 50)) 50 x))))
(define case-lambda-test
  (case-lambda (() 0) ((a) (- a)) ((a b) (- a b)) ((a b c) (- c b a)) ((a b c . r) (clip (apply - a b c r)))))
(define (show x)
  (cond ((procedure? x) 'procedure)
        ((pair? x) (cons (show (car x)) (show (cdr x))))
        ((vector? x) (list 'vector (show (vector->list x))))
        ((bytevector? x) (list 'bytes (let loop ((i (- (bytevector-length x) 1)) (l '()))
                                        (if (< i 0) l (loop (- i 1) (cons (bytevector-u8-ref x i) l))))))
        ((char? x) (list 'char (char->integer x)))
        ((and (number? x) (inexact? x)) (if (< -1e300 x 1e300) (list 'inexact (exact x)) 'odd))
        ((or (number? x) (string? x) (symbol? x) (boolean? x) (null? x)) x)
        (else 'other)))
(define (test number thunk)
  (write number) (display ": ")
  (write (call/cc (lambda (k)
    (with-exception-handler
      (lambda (e) (k (if (and (pair? e) (eq? (car e) 'failed)) (show e) 'error)))
      (lambda () (show (thunk)))))))
  (newline))
"""

PRELUDES = {
    "eshkol": """(import (eshkol))
(define here (environment '(scheme base)))
(define (run-eval x) (eval x here))
"""
    + COMMON,
    "chez": """
(print-radix 10)
(define (run-eval x) (eval x (interaction-environment)))
(define (* . xs)
  (fold-left (lambda (a b) (if (or (flonum? a) (flonum? b)) (#%* (inexact a) (inexact b)) (#%* a b))) 1 xs))
(define (/ a . xs)
  (if (null? xs) (#%/ a)
      (fold-left (lambda (a b) (if (or (flonum? a) (flonum? b)) (#%/ (inexact a) (inexact b)) (#%/ a b))) a xs)))
(define (contagious f) (lambda (a b) (if (or (flonum? a) (flonum? b)) (f (inexact a) (inexact b)) (f a b))))
(define quotient (contagious #%quotient))
(define remainder (contagious #%remainder))
(define modulo (contagious #%modulo))
(define exact-integer? (lambda (x) (and (integer? x) (exact? x))))
(define (floor-quotient a b) (quotient a b) (floor (#%/ a b)))
(define (floor-remainder a b) (modulo a b))
(define (floor/ a b) (values (floor-quotient a b) (modulo a b)))
(define (truncate/ a b) (values (quotient a b) (remainder a b)))
(define truncate-quotient quotient)
(define truncate-remainder remainder)
(define (square x) (* x x))
(define (arithmetic-shift n k) (bitwise-arithmetic-shift n k))
(define (integer-length n) (bitwise-length n))
(define (bit-count n) (bitwise-bit-count n))
(define (vector-append . vs) (list->vector (apply append (map vector->list vs))))
(define (string-map f s) (list->string (map f (string->list s))))
(define (string->vector s) (list->vector (string->list s)))
(define (vector->string v) (list->string (vector->list v)))
(define (bytevector-append . bs) (u8-list->bytevector (apply append (map bytevector->u8-list bs))))
(define (list-set! l k v) (set-car! (list-tail l k) v))
(define (make-hash-table) (make-hashtable equal-hash equal?))
(define (hash-table-set! t k v) (hashtable-set! t k v))
(define (hash-table-ref/default t k d) (hashtable-ref t k d))
(define (hash-table-size t) (hashtable-size t))
(define (hash-table-delete! t k) (hashtable-delete! t k))
(define (hash-table-update!/default t k f d) (hashtable-update! t k f d))
(define (hash-table-keys t) (vector->list (hashtable-keys t)))
(define (read-line p) (get-line p))
(define (write-string s p) (string-length s) (display s p))
(define (list-copy l) (if (pair? l) (cons (car l) (list-copy (cdr l))) l))
(define-syntax delay-force (syntax-rules () ((_ e) (delay (force e)))))
(define error-tag (list 'error))
(define (error message . irritants) (raise (vector error-tag message irritants)))
(define (error? e) (and (vector? e) (= (vector-length e) 3) (eq? (vector-ref e 0) error-tag)))
(define (error-object? e) (or (error? e) (condition? e)))
(define (error-object-message e) (and (error? e) (vector-ref e 1)))
(define (error-object-irritants e) (vector-ref e 2))
(define-syntax define-record-type
  (syntax-rules ()
    ((_ name (make f ...) test (f2 get set) ...)
     (begin (define name (list 'name))
            (define (make f ...) (vector name f ...))
            (define (test x) (and (vector? x) (> (vector-length x) 0) (eq? (vector-ref x 0) name)))
            (record-fields test 1 (get set) ...)))))
(define-syntax record-fields
  (syntax-rules ()
    ((_ test n) (begin))
    ((_ test n (get set) more ...)
     (begin (define (get r) (if (test r) (vector-ref r n) (car 'x)))
            (define (set r v) (if (test r) (vector-set! r n v) (car 'x)))
            (record-fields test (+ n 1) more ...)))))
"""
    + COMMON,
}

KINDS = ["integer", "number", "boolean", "list", "vector", "string", "char", "bytevector"]

# What expressions of a type look like, with others in the places; and what has an effect, on TARGET or in WORK.
FORMS = {
    "integer": [
        *(["(+ <integer> <integer>)", "(- <integer> <integer>)", "(- <integer>)"] * 3),
        "(+ <integer> <integer> <integer> <integer>)",
        "(* <integer> <integer>)",
        "(* <integer> <integer>)",
        "(quotient <integer> 7)",
        "(quotient <integer> (+ 1 (abs <integer>)))",
        "(remainder <integer> -3)",
        "(modulo <integer> 18446744073709551617)",
        "(modulo <integer> (- -1 (abs <integer>)))",
        "(floor-quotient <integer> -10)",
        "(call-with-values (lambda () (floor/ <integer> -7)) (lambda (q r) (- q r)))",
        "(call-with-values (lambda () (truncate/ <integer> 12345678901234567890)) (lambda (q r) (- q r)))",
        "(call-with-values (lambda () (exact-integer-sqrt (abs <integer>))) (lambda (s r) (- s r)))",
        "(arithmetic-shift (clip <integer>) (- (modulo <integer> 150) 75))",
        "(bitwise-and <integer> <integer>)",
        "(bitwise-ior <integer> <integer>)",
        "(bitwise-xor <integer> <integer>)",
        "(bitwise-not <integer>)",
        "(integer-length <integer>)",
        "(bit-count (abs <integer>))",
        "(expt (modulo <integer> 100) (modulo <integer> 20))",
        "(expt -2 (modulo <integer> 130))",
        "(lcm <integer> (+ 1 (modulo <integer> 100)))",
        "(numerator (exact <number>))",
        "(denominator (exact <number>))",
        "(exact (floor <number>))",
        "(exact (round <number>))",
        "(square <integer>)",
        "(abs <integer>)",
        "(max <integer> <integer>)",
        "(min <integer> <integer> <integer>)",
        "(length <list>)",
        "(vector-length <vector>)",
        "(string-length <string>)",
        "(bytevector-length <bytevector>)",
        "(char->integer <char>)",
        "(gcd <integer> <integer>)",
        "(apply + <list>)",
        "(apply max <integer> <list>)",
        "(apply - <integer> <integer> <list>)",
        "(fold-left (lambda (acc it) (clip (- <integer it> acc))) 0 <list>)",
        "(let ((l <list>)) (if (pair? l) (car l) 0))",
        "(let ((v <vector>)) (if (> (vector-length v) 1) (vector-ref v 1) 0))",
        "(let ((b <bytevector>)) (if (> (bytevector-length b) 1) (bytevector-u8-ref b 1) 0))",
        "(string->number (number->string <integer> 16) 16)",
        "(call-with-values (lambda () (values <integer> <integer>)) (lambda (a b) (- a b)))",
        "(let*-values (((a b) (values <integer> <integer>)) ((c . d) (values (+ a 1) b))) (apply - c d))",
        "(let () (define-values (a b . c) (values <integer> <integer> <integer many>)) (- a b (length c)))",
        "(call/cc (lambda (k) (+ 1 (if <boolean> (k <integer>) <integer>))))",
        "(guard (e (#t (if (integer? e) e -1))) (if <boolean> (raise <integer>) <integer>))",
        "(guard (e ((and (integer? e) (odd? e)) e) ((assv e '((2 . 3) (4 . 5))) => cdr) (else 7)) (raise <integer>))",
        "(let ((it <integer>)) (set! it (clip (+ it <integer it>))) it)",
        "((lambda (it) (clip (* it <integer it>))) <integer>)",
        "(let loop ((n (modulo <integer> 40)) (acc <integer>)) (if (= n 0) acc (loop (- n 1) (clip (- (* acc 3) n)))))",
        "(force (delay <integer>))",
        "(parameterize ((param <integer>)) (clip (+ (param) <integer>)))",
        "(letrec ((ev? (lambda (n) (if (= n 0) 1 (od? (- n 1))))) (od? (lambda (n) (if (= n 0) 0 (ev? (- n 1))))))"
        " (ev? (modulo <integer> 33)))",
        "(case-lambda-test <integer many>)",
    ],
    "number": [
        "(+ <number> <number>)",
        "(- <number> <number>)",
        "(- <number>)",
        "(* <number> <number>)",
        "(/ <number> 7)",
        "(/ <number> -3/2)",
        "(/ <number> (+ 1 (abs <number>)))",
        "(/ <integer> (+ 1 (abs <integer>)))",
        "(* 0.5 <number>)",
        "(+ <integer> 0.25)",
        "(- <number> <integer> <number>)",
        "(floor <number>)",
        "(ceiling <number>)",
        "(round <number>)",
        "(truncate <number>)",
        "(abs <number>)",
        "(square <number>)",
        "(max <number> <number>)",
        "(min <number> <number>)",
        "(exact->inexact <integer>)",
        "(exact->inexact <number>)",
        "(exact <number>)",
        "(sqrt (exact->inexact (abs <number>)))",
        "(sqrt (square (exact <number>)))",
        "(expt (+ 1 (abs (exact <number>))) -3)",
        "(string->number (number->string <number>))",
        "(numerator <number>)",
        "(denominator <number>)",
        "(quotient (round <number>) 3)",
        "(modulo (floor <number>) 17)",
    ],
    "boolean": [
        "(< <number> <number>)",
        "(> <integer> <integer> <integer>)",
        "(<= <number> <integer>)",
        "(>= <number> <number> <number>)",
        "(= <integer> <integer>)",
        "(= <number> <number>)",
        "(not <boolean>)",
        "(and <boolean> <boolean>)",
        "(or <boolean> <boolean>)",
        "(zero? <integer>)",
        "(even? <integer>)",
        "(odd? <integer>)",
        "(negative? <number>)",
        "(positive? <number>)",
        "(integer? <number>)",
        "(exact? <number>)",
        "(pair? <list>)",
        "(equal? <list> <list>)",
        "(equal? <vector> <vector>)",
        "(equal? <bytevector> <bytevector>)",
        "(eqv? <integer> <integer>)",
        "(eqv? (exact <number>) (exact <number>))",
        "(string<? <string> <string>)",
        "(string=? <string> <string>)",
        "(char<? <char> <char>)",
        "(vector? <list>)",
        "(memv <integer> '())",
        "(if (memv <integer> <list>) #t #f)",
        '(let ((found (assoc <string> (quote (("a" . 1) ("hello" . 2)))))) (and found (= (cdr found) 2)))',
    ],
    "list": [
        "(cons <integer> <list>)",
        "(list <integer many>)",
        "(append <list> <list>)",
        "(append <list> <list> <list>)",
        "(reverse <list>)",
        "(map (lambda (it) <integer it>) <list>)",
        "(let ((l <list>)) (map (lambda (a b c) (- a b c)) l (reverse l) l))",
        "(filter (lambda (it) <boolean it>) <list>)",
        "(fold-right (lambda (it acc) (cons <integer it> acc)) '() <list>)",
        "(let ((l <list>)) (if (pair? l) (cdr l) l))",
        "(list-tail (cons <integer> <list>) 1)",
        "(list-sort < <list>)",
        "(iota (modulo <integer> 8))",
        "(vector->list <vector>)",
        "(map char->integer (string->list <string>))",
        "(let ((l (list <integer> <integer> <integer>))) (set-car! (cdr l) <integer>) (list-set! l 0 <integer>) l)",
        "((lambda (a . r) (cons a r)) <integer> <integer many>)",
        "((lambda (a b c d e f g . r) (cons* g f e d c b a r)) 1 2 <integer> 4 5 <integer> 7 <integer many>)",
        "`(1 ,<integer> ,@<list>)",
        "`(,@<list> ,(+ 1 <integer>) . ,<list>)",
        "(vector->list `#(1 ,<integer> ,@<list>))",
        "(call-with-values (lambda () (values <integer many>)) list)",
        "(call-with-values (lambda () (apply values <list>)) (case-lambda ((a) (list a a)) ((a b) (list b a)) (r r)))",
        "(call/cc (lambda (k) (for-each (lambda (it) (if (> it 5) (k (list it)))) <list>) '(0)))",
        "(do ((l <list> (cdr l)) (out '() (cons (clip (+ 1 (car l))) out))) ((null? l) out))",
        "(list-copy <list>)",
        "loop",
        "loop",
    ],
    "vector": [
        "(vector <integer many>)",
        "(list->vector <list>)",
        "(vector-map (lambda (it) <integer it>) <vector>)",
        "(vector-append <vector> <vector>)",
        "(make-vector 3 <integer>)",
        "(vector-copy <vector>)",
        "(let ((v (make-vector 5 <integer>))) (vector-fill! v <integer>) (vector-set! v (modulo <integer> 5) 1) v)",
        "(let ((v (vector <integer> <integer> <integer>))) (let loop ((i 0)) (if (< i 3) (begin (vector-set! v i"
        " (clip (+ i (vector-ref v (- 2 i))))) (loop (+ i 1))) v)))",
    ],
    "string": [
        "(string-append <string> <string>)",
        "(string-append <string> <string> <string>)",
        "(number->string <integer>)",
        "(number->string <integer> 2)",
        "(let ((p (open-output-string))) (write (show <list>) p) (display (show <string>) p) (get-output-string p))",
        '(let ((p (open-input-string (string-append "x y" <string>)))) (read-char p) (peek-char p) (read-line p))',
        "(symbol->string (string->symbol <string>))",
        "(string-map char-upcase <string>)",
        "(string-downcase <string>)",
        "(string <char> <char>)",
        "(make-string 3 <char>)",
        "(string-copy <string>)",
        '(substring (string-append "abc" <string>) 1 (+ 2 (modulo <integer> 2)))',
        "(list->string (reverse (string->list <string>)))",
        "(utf8->string (string->utf8 <string>))",
        "(let ((s (make-string 4 #\\a))) (string-set! s (modulo <integer> 4) <char>) (string-append s <string>))",
        "(vector->string (vector-map char-downcase (string->vector <string>)))",
    ],
    "char": [
        "(char-upcase <char>)",
        "(integer->char (+ 97 (modulo <integer> 26)))",
        '(string-ref (string-append <string> "k") 0)',
    ],
    "bytevector": [
        "(bytevector (modulo <integer> 256) (modulo <integer> 256))",
        "(make-bytevector 3 (modulo <integer> 256))",
        "(bytevector-append <bytevector> <bytevector>)",
        "(bytevector-copy <bytevector>)",
        "(string->utf8 <string>)",
        "(let ((b (bytevector-copy <bytevector>))) (if (> (bytevector-length b) 0) (bytevector-u8-set! b 0 7)) b)",
    ],
    "statement": [
        "(set! TARGET (clip <integer>))",
        "(for-each (lambda (it) (set! TARGET (clip (+ TARGET it <integer it>)))) <list>)",
        "(note! <list>)",
        "(note! <number>)",
        "(dynamic-wind (lambda () (note! <integer>)) (lambda () WORK 1) (lambda () (note! <integer>)))",
        "(note! (guard (e ((string? e) 1) (#t (list 'caught (show e)))) WORK (if <boolean> (raise <integer>) 1)))",
        "(note! (guard (e ((string? e) <string>)) (guard (e ((vector? e) 1)) WORK (raise <string>))))",
        "(note! (call/cc (lambda (k) WORK (if <boolean> (k <integer>)) WORK <integer>)))",
        "(let ((again #f) (times 0)) (note! (call/cc (lambda (k) (set! again k) <integer>)))"
        " WORK (set! times (+ times 1)) (if (< times 3) (again times)))",
        "(hash-table-set! table <integer> <integer>)",
        "(hash-table-set! table <string> <integer>)",
        "(hash-table-update!/default table (modulo <integer> 5) (lambda (it) (clip (+ it <integer>))) 0)",
        "(hash-table-delete! table (modulo <integer> 5))",
        "(note! (hash-table-ref/default table <list> 0))",
        "(note! (list-sort < (filter number? (hash-table-keys table))))",
        "(note! (with-exception-handler (lambda (e) (if (integer? e) (clip (+ e <integer>)) 0))"
        " (lambda () (clip (+ 1 (raise-continuable <integer>))))))",
        "(let-values (((a b . c) (values <integer> <integer> <integer many>))) (note! (list b a c)))",
        "(when <boolean> WORK (note! 'w))",
        "(let ((v (vector 1 2 TARGET))) (vector-set! v 1 <integer>) (note! v))",
        "TOPIC",
        "TOPIC",
        "TOPIC",
        "TOPIC",
    ],
    # Each about one part of the language; more than what an expression or a statement is made of.
    "topic": [
        # continuations that are entered again
        "(let () (define return #f) (define resume (lambda () (for-each (lambda (it) (call/cc (lambda (next)"
        " (set! resume (lambda () (next #f))) (return <integer it>)))) <list>) (return 'done)))"
        " (define (next!) (call/cc (lambda (r) (set! return r) (resume))))"
        " (let* ((a (next!)) (b (next!)) (c (next!))) (note! (list a b c))))",
        "(let ((k #f) (n 0)) (let ((r (map (lambda (it) (call/cc (lambda (c) (if (= it 2) (set! k c)) it))) '(1 2 3))))"
        " (note! r) (set! n (+ n 1)) (if (< n 3) (k <integer>))))",
        "(let ((k #f) (n 0)) (dynamic-wind (lambda () (note! 'in)) (lambda () (call/cc (lambda (c) (set! k c)))"
        " WORK (note! <integer>)) (lambda () (note! 'out))) (set! n (+ n 1)) (if (< n 3) (k 1)))",
        "(let ((path '()) (c #f)) (let ((add (lambda (s) (set! path (cons s path))))) (dynamic-wind (lambda () (add"
        " 'connect)) (lambda () (add (call/cc (lambda (c0) (set! c c0) 'talk1)))) (lambda () (add 'disconnect)))"
        " (if (< (length path) 4) (c 'talk2) (note! (reverse path)))))",
        "(let ((n 0)) (let ((v (call/cc (lambda (k) (vector k <integer>))))) (set! n (+ n 1))"
        " (if (and (vector? v) (< n 4)) ((vector-ref v 0) (if (= n 3) n v)) (note! (list n (if (vector? v) 0 v))))))",
        "(note! (call/cc (lambda (out) (dynamic-wind (lambda () (note! 1)) (lambda () (call/cc (lambda (in)"
        " (dynamic-wind (lambda () (note! 2)) (lambda () (if <boolean> (out <integer>) (in 5))) (lambda () (note!"
        " 3))))) <integer>) (lambda () (note! 4))))))",
        "(let loop ((i 0)) (if (< i 50) (begin (call/cc (lambda (k) (if (odd? i) (k 1)) (set! TARGET (clip (+ TARGET"
        " i))))) (loop (+ i 1)))))",
        # conditions
        "(note! (guard (e ((integer? e) (list 'outer e))) (guard (e ((string? e) 1)) (dynamic-wind (lambda () (note!"
        " 'in)) (lambda () WORK (raise <integer>)) (lambda () (note! 'out))))))",
        "(note! (guard (e (#t (list 'second (show e)))) (with-exception-handler (lambda (e) (raise (list 'again e)))"
        " (lambda () WORK (raise <integer>)))))",
        "(note! (with-exception-handler (lambda (e) 100) (lambda () (with-exception-handler (lambda (e) (clip (+ 1"
        " (raise-continuable e)))) (lambda () (clip (+ <integer> (raise-continuable <integer>))))))))",
        '(note! (guard (e ((not (equal? (error-object-message e) "bad")) 0) (else (error-object-irritants e)))'
        ' (error "bad" <integer> <list>)))',
        "(note! (guard (e ((pair? e) 1) ((error-object? e) 'error)) (vector-ref (vector 1 2) (+ 2 (abs <integer>)))))",
        "(note! (guard (e (#t 'error)) (if <boolean> (car <integer>) (<integer> 1))))",
        "(note! (guard (e (#t 'arity)) ((lambda (a b) (list a b)) <integer many>)))",
        "(note! (guard (e ((begin (note! 'testing) #f) 1) (else (list 'else (show e)))) WORK"
        " (raise (list <integer>))))",
        "(let ((log '())) (note! (call/cc (lambda (k) (with-exception-handler (lambda (e) (set! log (cons e log)) (k"
        " log)) (lambda () (dynamic-wind (lambda () (set! log (cons 'i log))) (lambda () (raise <integer>)) (lambda ()"
        " (set! log (cons 'o log))))))))) (note! log))",
        "(let loop ((i 0)) (if (< i 20) (begin (guard (e ((integer? e) (set! TARGET (clip (+ TARGET e))))) (if (odd? i)"
        " (raise i))) (loop (+ i 1)))))",
        # closures, and variables that are assigned to
        "(let ((counters (map (lambda (it) (let ((n it)) (lambda (d) (set! n (clip (+ n d <integer it>))) n)))"
        " <list>))) (for-each (lambda (c) (note! (c 1))) counters)"
        " (for-each (lambda (c) (note! (c <integer>))) counters))",
        "(let ((fs (let loop ((i 0) (acc '())) (if (= i 4) acc (loop (+ i 1) (cons (lambda () (set! i (+ i 10)) i)"
        " acc)))))) (for-each (lambda (f) (f) (note! (f))) fs))",
        "(let ((fs (do ((i 0 (+ i 1)) (acc '() (cons (lambda () (clip (* i <integer>))) acc))) ((= i 3) acc))))"
        " (for-each (lambda (f) (note! (f))) fs))",
        "(let ((a <integer>) (b <integer>)) (define (swap!) (let ((t a)) (set! a b) (set! b t))) (define (both) (list a"
        " b)) (swap!) (note! (both)) (set! a (clip (+ a 1))) (swap!) (note! (both)))",
        "(let () (define a <integer>) (define (get) a) (define (put! x) (set! a (clip x))) (define b (get)) (put! (+ b"
        " <integer>)) (note! (list a b (get))))",
        "(letrec* ((a <integer>) (f (lambda (n) (if (= n 0) (g a) (f (- n 1))))) (g (lambda (x) (set! a (clip (+ x 1)))"
        " a))) (let* ((x (f 3)) (y (f 2))) (note! (list x y a))))",
        "(let () (define (make) (define n 0) (define (inc!) (set! n (+ n 1)) n) (define (get) n) (values inc! get))"
        " (call-with-values make (lambda (inc! get) (inc!) (inc!) (note! (get)))))",
        # many arguments, and calls in tail position
        "(note! (apply + (iota (modulo <integer> 700))))",
        "(note! (apply (lambda (a b . r) (list a b (length r))) <integer> (iota (+ 1 (modulo <integer> 300)))))",
        "(note! (let loop ((n 2000) (a <integer>) (b <integer>) (c <integer>) (d 1) (e 2) (f 3) (g 4) (h 5)) (if (= n"
        " 0) (list a b c d e f g h) (loop (- n 1) b c d e f g h (clip (- a n))))))",
        "(note! (let loop ((n 500) (l <list>)) (define (again . r) (apply loop r)) (if (= n 0) l (again (- n 1) (if"
        " (pair? l) (append (cdr l) (list (clip (+ n (car l))))) l)))))",
        "(letrec ((f (lambda (n . r) (if (= n 0) r (apply g (- n 1) n r)))) (g (lambda (n a . r) (if (= n 0) (cons a r)"
        " (f (- n 1) a (length r)))))) (note! (f (modulo <integer> 30) <integer many>)))",
        "(letrec ((f (case-lambda ((n) (f n 1)) ((n a) (f n a 2)) ((n a . r) (if (= n 0) (cons a r) (apply f (- n 1)"
        " (clip (+ a n)) r)))))) (note! (f 40)) (note! (f 7 <integer> <integer many>)))",
        "(note! (let deep ((n 3000)) (if (= n 0) <integer> (clip (- n (deep (- n 1)))))))",
        "(note! ((lambda (a b c d e f g h i j k l m n) (list n m l k j i h g f e d c b a)) 1 2 3 <integer> 5 6 7 8"
        " <integer> 10 11 12 13 <integer>))",
        # parameters and promises
        "(note! (parameterize ((param <integer>)) (call/cc (lambda (k) (parameterize ((param (clip (+ 1 (param)))))"
        " (if <boolean> (k (param))) WORK (list (param)))))))",
        "(begin (parameterize ((param 1) (converted <integer>)) (note! (list (param) (converted)))) (note! (list"
        " (param) (converted))))",
        "(let* ((n 0) (p (delay (begin (set! n (+ n 1)) <integer>)))) (let* ((a (force p)) (b (force p)))"
        " (note! (list a b n))))",
        "(let ((x 5)) (define p (delay (begin (set! x (+ x 1)) (if (> x 8) x (force p))))) (note! (force p))"
        " (set! x 20) (note! (force p)))",
        "(let () (define (from n) (delay (cons n (from (+ n 1))))) (define (take s n) (if (= n 0) '() (let ((c (force"
        " s))) (cons (car c) (take (cdr c) (- n 1)))))) (note! (take (from (clip <integer>)) 4)))",
        "(note! (let loop ((n 50) (p (delay <integer>))) (if (= n 0) (force p) (loop (- n 1) (delay-force p)))))",
        # macros
        "(let-syntax ((m (syntax-rules () ((_ a) (let ((t 1)) (+ a t)))))) (let ((t <integer>)) (note! (m t))))",
        "(let-syntax ((swap! (syntax-rules () ((_ a b) (let ((t a)) (set! a b) (set! b t)))))) (let ((t <integer>) (u"
        " <integer>)) (swap! t u) (note! (list t u))))",
        "(let () (define-syntax adder (syntax-rules () ((_ name k) (define-syntax name (syntax-rules () ((_ x) (+ x"
        " k))))))) (adder add3 3) (adder add-it <integer>) (note! (list (add3 1) (add-it <integer>))))",
        "(letrec-syntax ((my-or (syntax-rules () ((_) #f) ((_ a) a) ((_ a b ...) (let ((t a)) (if t t (my-or b"
        " ...))))))) (let ((t <integer>)) (note! (my-or #f <boolean> t))))",
        "(let-syntax ((pairs (syntax-rules () ((_ (a b ...) ...) (list (list b ... a) ...))))) (note! (pairs (1"
        " <integer>) (2) (<integer> 3 4))))",
        "(let-syntax ((for (syntax-rules (in) ((_ x in l body ...) (for-each (lambda (x) body ...) l))))) (for it in"
        " <list> (note! <integer it>) (set! TARGET (clip (+ TARGET it)))))",
        "(let () (define-syntax while (syntax-rules () ((_ c body ...) (let loop () (when c body ... (loop))))))"
        " (define i 0) (while (< i 4) (set! i (+ i 1)) (note! (clip (* i <integer>)))))",
        "(let () (define-syntax define-both (syntax-rules () ((_ (a b) v) (begin (define a v) (define (b) (set! a (clip"
        " (+ a 1))) a))))) (define-both (x next) <integer>) (let* ((p (next)) (q (next))) (note! (list x p q))))",
        "(let-syntax ((rev (syntax-rules () ((_ a ... z) (list z a ...))))) (note! (rev 1 <integer> <integer>)))",
        # data
        "(let* ((t (make-thing <integer> <list>)) (u (make-thing t 1))) (set-thing-a! t <integer>) (note! (list"
        " (thing? t) (thing? <list>) (thing-a (thing-a u)) (thing-b t))))",
        "(note! (guard (e (#t 'wrong)) (thing-a <integer>)))",
        '(let ((p (open-input-string "12 (a . b) #t 1.5 -1/2")))'
        " (let* ((a (read p)) (b (read p)) (c (read p))"
        " (d (read p)) (e (read p)) (f (read p))) (note! (list a b c d e (eof-object? f)))))",
        "(let ((p (open-input-string <string>))) (let loop ((n 0) (c (read-char p))) (if (eof-object? c) (note! n)"
        " (loop (clip (+ (* n 7) (char->integer c))) (read-char p)))))",
        "(let ((p (open-output-string))) (write-char <char> p) (write-string <string> p) (newline p)"
        " (write (show <string>) p) (note! (get-output-string p)))",
        "(let ((s (string-copy <string>)) (n 0)) (string-for-each (lambda (c) (set! n (clip (+ (* 3 n) (char->integer"
        " c))))) s) (note! n))",
        "(vector-for-each (lambda (it) (set! TARGET (clip (+ TARGET <integer it>)))) <vector>)",
        "(note! (list <char> <bytevector> <string> <vector>))",
        "(note! `(1 `(2 ,(3 ,<integer>)) ,@<list> #(a ,<integer>)))",
        "(note! (let loop ((i 0) (l '())) (if (= i 300) (length l) (loop (+ i 1) (cons (make-vector 3 i) l)))))",
        "(note! (assq 'b `((a . 1) (b . ,<integer>))))",
        # code that is made while the program runs
        "(note! (run-eval `(let ((x ,<integer>) (f (lambda (a . r) (- a (length r))))) (+ x (f x x 1)))))",
        "(note! ((run-eval '(lambda (x . r) (list r x))) <integer many> 1))",
        # numbers
        "(let ((x <integer>) (y (+ 1 (abs <integer>)))) (note! (list (quotient x y) (remainder x y) (modulo x y)"
        " (= x (+ (* y (quotient x y)) (remainder x y))))))",
        "(let ((x <number>)) (note! (list (floor x) (round x) (exact x) (exact->inexact x) (integer? x) (* x x))))",
        "(note! (let fact ((n (modulo <integer> 30))) (if (= n 0) 1 (* n (fact (- n 1))))))",
        "(note! (let loop ((i 0) (x (clip <integer>))) (if (= i 70) x (loop (+ i 1) (if (odd? i) (quotient x 2)"
        " (clip (+ x x 1)))))))",
        "(note! (let loop ((i 0) (x 4611686018427387900)) (if (= i 8) x (loop (+ i 1) (+ x 1)))))",
        "(note! (map (lambda (it) (list (* it it) (- it) (abs it) (+ it it) (- it 1))) (list 4611686018427387903"
        " -4611686018427387904 9223372036854775807 -9223372036854775808 2305843009213693952 3037000500 <integer>)))",
        "(note! (let loop ((i 0) (x (exact->inexact <number>))) (if (= i 20) x (loop (+ i 1) (/ (+ x 1.5) 1.25)))))",
        "(note! (let loop ((i 0) (a 0.0) (b 1.0)) (if (< i 30) (loop (+ i 1) b (+ a (* b 0.5))) (list a b))))",
    ],
    # What other Schemes do not have: for comparisons of Eshkol with itself.
    "own": [
        "(note! (guard (e (#t 'lost)) (derivative (lambda (it) (+ (* it it) <number> (* it <integer>))) <number>)))",
        "(note! (guard (e (#t 'lost)) (derivative (lambda (it) (* it <integer it>)) <number>)))",
        "(note! (guard (e (#t 'lost)) (derivative (lambda (it) (if (> it <integer>) (* it it it) (/ it 3)))"
        " <number>)))",
        "(note! (guard (e (#t 'lost)) ((derivative (derivative (lambda (it) (* (sin it) (exp (/ it 50)))))) 0.75)))",
        "(note! (guard (e (#t 'lost)) (derivative (lambda (x) (* x (derivative (lambda (it) (* x <integer it>)) 2)))"
        " <number>)))",
        "(note! (guard (e (#t 'lost)) (gradient (lambda (a b c) (+ (* a b) (/ c (+ 1 (* b b))) (sqrt (abs a))))"
        " (exact->inexact <number>) 1.5 <integer>)))",
        "(note! (guard (e (#t 'lost)) (gradient (lambda (v) (vector-ref (vector-map (lambda (it) (* it it <integer>))"
        " v) 1)) (vector 1.5 <number> 3))))",
        "(note! (guard (e (#t 'lost)) (gradient (lambda (l) (let loop ((l l) (s 1)) (if (null? l) s (loop (cdr l) (* s"
        " (+ 2 (car l))))))) <list>)))",
        "(note! (guard (e (#t 'lost)) (derivative (lambda (x) (let loop ((i 0) (s x)) (if (= i 40) s (loop (+ i 1)"
        " (+ (* s 0.5) (cos x)))))) (exact->inexact <number>))))",
        "(note! (guard (e (#t 'lost)) (derivative (lambda (x) (let ((s 0)) (for-each (lambda (it) (set! s (+ s (* x"
        " it)))) <list>) (* s x))) <number>)))",
        "(note! (guard (e (#t 'lost)) (derivative (lambda (x) (call/cc (lambda (k) (dynamic-wind (lambda () (note! 'd))"
        " (lambda () (if <boolean> (k (* 3 x))) (* x x)) (lambda () (note! 'e)))))) <number>)))",
        "(note! (guard (e ((number? e) (list 'raised (* 2 e)))) (derivative (lambda (x) (if <boolean> (raise <integer>)"
        " (expt x 3))) <number>)))",
        "(note! (guard (e (#t 'lost)) (derivative-n (lambda (x) (/ x (+ 1 (* x x)))) (modulo <integer> 5) 1/2)))",
        "(note! (guard (e (#t 'lost)) (hessian (lambda (a b) (* a a b <integer>)) <integer> 0.5)))",
    ],
}
