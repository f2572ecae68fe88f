;; Points of the plane that z^2 + c leaves in it, with complex numbers.
(define (steps c most)
  (let loop ((z c) (i 0))
    (if (or (= i most) (> (magnitude z) 2.0)) i (loop (+ (* z z) c) (+ i 1)))))
(define (picture width height most)
  (let rows ((y 0) (sum 0))
    (if (= y height)
        sum
        (rows (+ y 1)
              (let columns ((x 0) (sum sum))
                (if (= x width)
                    sum
                    (columns (+ x 1)
                             (+ sum
                                (steps (make-rectangular (- (/ (* 3.0 x) width) 2.0) (- (/ (* 2.0 y) height) 1.0))
                                       most)))))))))

(measure (lambda () (picture 300 200 400)))
