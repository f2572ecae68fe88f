;; Takeuchi's function: calls with three arguments.
(define (tak x y z)
  (if (not (< y x)) z (tak (tak (- x 1) y z) (tak (- y 1) z x) (tak (- z 1) x y))))

(measure (lambda () (do ((i 0 (+ i 1)) (sum 0 (+ sum (tak 24 16 8)))) ((= i 60) sum))))
