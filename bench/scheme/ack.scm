;; Ackermann's function: recursion that is deep.
(define (ack m n)
  (cond ((= m 0) (+ n 1))
        ((= n 0) (ack (- m 1) 1))
        (else (ack (- m 1) (ack m (- n 1))))))

(measure (lambda () (do ((i 0 (+ i 1)) (sum 0 (+ sum (ack 3 9)))) ((= i 20) sum))))
