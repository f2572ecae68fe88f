;; Procedures that never return but hand their result to a closure.
(define (tak x y z k)
  (if (not (< y x))
      (k z)
      (tak (- x 1) y z
           (lambda (a) (tak (- y 1) z x (lambda (b) (tak (- z 1) x y (lambda (c) (tak a b c k)))))))))
(define (sum-tree n k)
  (if (= n 0) (k 1) (sum-tree (- n 1) (lambda (left) (sum-tree (- n 1) (lambda (right) (k (+ left right))))))))

(measure
 (lambda ()
   (do ((i 0 (+ i 1)) (sum 0 (+ sum (tak 18 12 6 (lambda (x) x)) (sum-tree 14 (lambda (x) x))))) ((= i 1500) sum))))
