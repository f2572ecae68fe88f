;; Points of the Mandelbrot set: flonum arithmetic in a loop.
(define (escapes cr ci limit)
  (let loop ((zr 0.0) (zi 0.0) (i 0))
    (if (= i limit)
        i
        (let ((rr (* zr zr)) (ii (* zi zi)))
          (if (> (+ rr ii) 4.0) i (loop (+ (- rr ii) cr) (+ (* 2.0 zr zi) ci) (+ i 1)))))))
(define (mandelbrot n limit)
  (let rows ((y 0) (total 0))
    (if (= y n)
        total
        (rows (+ y 1)
              (let columns ((x 0) (total total))
                (if (= x n)
                    total
                    (columns (+ x 1)
                             (+ total (escapes (- (/ (* 3.0 x) n) 2.0) (- (/ (* 2.0 y) n) 1.0) limit)))))))))

(measure (lambda () (mandelbrot 400 256)))
