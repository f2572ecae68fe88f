;; Elements of two trees compared in step: each walk is a coroutine that is left and entered again at every leaf.
(define (tree from to)
  (if (= from to)
      from
      (let ((middle (quotient (+ from to) 2))) (cons (tree from middle) (tree (+ middle 1) to)))))
(define (list-tree from to) (if (= from to) from (cons from (list-tree (+ from 1) to))))
(define (walker tree)
  (define return #f)
  (define (walk tree)
    (if (pair? tree)
        (begin (walk (car tree)) (walk (cdr tree)))
        (call-with-current-continuation (lambda (rest) (set! resume (lambda () (rest #f))) (return tree)))))
  (define resume (lambda () (walk tree) (return 'end)))
  (lambda () (call-with-current-continuation (lambda (back) (set! return back) (resume)))))
(define (same-leaves? a b)
  (let ((next-a (walker a)) (next-b (walker b)))
    (let loop ((count 0))
      (let ((x (next-a)) (y (next-b)))
        (cond ((not (eqv? x y)) #f) ((eq? x 'end) count) (else (loop (+ count 1))))))))

(measure
 (lambda ()
   (let ((a (tree 1 300)) (b (list-tree 1 300)))
     (do ((i 0 (+ i 1)) (sum 0 (+ sum (same-leaves? a b)))) ((= i 2000) sum)))))
