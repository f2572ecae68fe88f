;; Calls and fixnum arithmetic.
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))

(measure (lambda () (fib 37)))
