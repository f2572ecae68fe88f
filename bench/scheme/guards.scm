;; Handlers that nothing is raised to, some that something is, and some that let it pass.
(define (safe-divide a b) (guard (e ((string? e) -1)) (if (= b 0) (raise 'division) (quotient a b))))
(define (checked a b) (guard (e ((symbol? e) 0)) (safe-divide a b)))

(measure
 (lambda ()
   (do ((i 0 (+ i 1)) (sum 0 (+ sum (checked (* i 7) (modulo i 10))))) ((= i 1000000) sum))))
