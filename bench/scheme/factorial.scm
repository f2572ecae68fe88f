;; Bignums: factorials multiplied, divided, and written in decimal.
(define (factorial n) (if (= n 0) 1 (* n (factorial (- n 1)))))
(define (digits n) (string-length (number->string n)))
(define (fib n) (let loop ((i 0) (a 0) (b 1)) (if (= i n) a (loop (+ i 1) b (+ a b)))))
(define (sum-of-quotients n)
  (let ((f (factorial n)))
    (do ((i 1 (+ i 1)) (sum 0 (+ sum (modulo (quotient f (factorial i)) 1000003)))) ((= i 60) sum))))

(measure
 (lambda ()
   (do ((i 0 (+ i 1)) (sum 0 (+ sum (digits (factorial 1000)) (sum-of-quotients 500) (modulo (fib 10000) 1000003))))
       ((= i 100) sum))))
