;; Areas under curves, by halving: flonums from procedure to procedure. What it begins with comes out of a list.
(define (root a x n) (if (= n 0) x (root a (* 0.5 (+ x (/ a x))) (- n 1))))
(define (area a b fa fb n)
  (let* ((m (* 0.5 (+ a b))) (fm (root (+ 1.0 (* m m)) 1.0 4)))
    (if (= n 0)
        (* 0.25 (- b a) (+ fa fm fm fb))
        (+ (area a m fa fm (- n 1)) (area m b fm fb (- n 1))))))
(define (total bounds)
  (if (null? bounds)
      0.0
      (let ((a (car (car bounds))) (b (cdr (car bounds))))
        (+ (area a b (root (+ 1.0 (* a a)) 1.0 4) (root (+ 1.0 (* b b)) 1.0 4) 10) (total (cdr bounds))))))

(measure
 (lambda ()
   (let ((bounds (list (cons 0.0 1.0) (cons 1.0 2.5) (cons -3.0 0.5) (cons 2.0 7.0))))
     (do ((i 0 (+ i 1)) (sum 0.0 (+ sum (total bounds)))) ((= i 300) (exact (round (* 1e6 sum))))))))
