;; Binary trees, built and dropped: the allocator and the collector.
(define (make depth) (if (= depth 0) (cons '() '()) (cons (make (- depth 1)) (make (- depth 1)))))
(define (check tree) (if (null? (car tree)) 1 (+ 1 (check (car tree)) (check (cdr tree)))))
(define (trees most)
  (let ((kept (make most)))
    (let loop ((depth 4) (sum 0))
      (if (> depth most)
          (+ sum (check kept))
          (let ((times (expt 2 (- most depth))))
            (loop (+ depth 4)
                  (do ((i 0 (+ i 1)) (sum sum (+ sum (check (make depth))))) ((= i times) sum))))))))

(measure (lambda () (do ((i 0 (+ i 1)) (sum 0 (+ sum (trees 18)))) ((= i 6) sum))))
