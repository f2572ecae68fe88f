;; The sieve of Eratosthenes on a vector.
(define (sieve n)
  (let ((prime (make-vector (+ n 1) #t)))
    (let loop ((i 2))
      (if (<= (* i i) n)
          (begin
            (if (vector-ref prime i)
                (do ((j (* i i) (+ j i))) ((> j n)) (vector-set! prime j #f)))
            (loop (+ i 1)))))
    (do ((i 2 (+ i 1)) (count 0 (if (vector-ref prime i) (+ count 1) count))) ((> i n) count))))

(measure (lambda () (do ((i 0 (+ i 1)) (sum 0 (+ sum (sieve 1000000)))) ((= i 30) sum))))
