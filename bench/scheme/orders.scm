;; Graphs that no renaming of their vertices makes smaller, counted: orders of vertices grow from left to right, and
;; procedures that come as arguments say which are worth going on with.
(define (between from to) (if (< from to) (cons from (between (+ from 1) to)) '()))
(define (fold f seed items) (if (null? items) seed (fold f (f (car items) seed) (cdr items))))
(define (keep wanted? items)
  (cond ((null? items) '())
        ((wanted? (car items)) (cons (car items) (keep wanted? (cdr items))))
        (else (keep wanted? (cdr items)))))
(define (every-one? good? items) (or (null? items) (and (good? (car items)) (every-one? good? (cdr items)))))

;; `grow` makes a state of an element and the state before, or gives #f to `cut`; whole orders go to `done`.
(define (fold-orders items start grow cut done seed)
  (let choose ((left items) (state start) (seed seed))
    (if (null? left)
        (done state seed)
        (fold (lambda (item seed)
                (let ((next (grow item state)))
                  (if next
                      (choose (keep (lambda (other) (not (eqv? other item))) left) next seed)
                      (cut item seed))))
              seed
              left))))

(define (make-graph n bits)
  (let ((rows (make-vector n #f)))
    (fold (lambda (i bits)
            (let ((row (make-vector n #f)))
              (vector-set! rows i row)
              (fold (lambda (j bits) (vector-set! row j (odd? bits)) (quotient bits 2)) bits (between 0 i))))
          bits
          (between 0 n))
    (lambda (i j) (if (< i j) (vector-ref (vector-ref rows j) i) (vector-ref (vector-ref rows i) j)))))

;; Whether some order of the vertices makes the graph smaller: row after row, an edge is more than none.
(define (compare-row edge? order vertex)
  (let ((new (length order)))
    (let walk ((others order) (i (- new 1)))
      (if (null? others)
          'same
          (let ((below (walk (cdr others) (- i 1))))
            (if (not (eq? below 'same))
                below
                (let ((here (edge? new i)) (there (edge? vertex (car others))))
                  (cond ((eq? here there) 'same) (here 'smaller) (else 'larger)))))))))
(define (smallest? n edge?)
  (call-with-current-continuation
   (lambda (return)
     (fold-orders (between 0 n) '()
                  (lambda (vertex order)
                    (case (compare-row edge? order vertex)
                      ((smaller) (return #f))
                      ((larger) #f)
                      (else (cons vertex order))))
                  (lambda (vertex seed) seed)
                  (lambda (order seed) seed)
                  #t))))
(define (degree n edge?)
  (lambda (i) (fold (lambda (j sum) (if (and (not (= i j)) (edge? i j)) (+ sum 1) sum)) 0 (between 0 n))))
(define (count-graphs n most)
  (let loop ((bits 0) (found 0))
    (if (= bits (expt 2 (quotient (* n (- n 1)) 2)))
        found
        (let* ((edge? (make-graph n bits)) (of (degree n edge?)))
          (loop (+ bits 1)
                (if (and (every-one? (lambda (i) (<= (of i) most)) (between 0 n)) (smallest? n edge?)) (+ found 1) found))))))

(measure (lambda () (list (count-graphs 5 4) (count-graphs 6 3) (count-graphs 6 5) (count-graphs 6 4))))
