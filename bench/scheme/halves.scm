;; Lists cut into halves by taking every second pair, with a loop and with recursion.
(define (numbers n) (do ((n n (- n 1)) (list '() (cons n list))) ((= n 0) list)))
(define (half-by-loop items)
  (do ((items items (cddr items)) (half '() (cons (car items) half))) ((null? items) half)))
(define (half-by-recursion items)
  (if (null? items) '() (cons (car items) (half-by-recursion (cddr items)))))
(define (repeat n half items)
  (if (= n 1) (half items) (begin (half items) (half items) (half items) (half items) (repeat (- n 1) half items))))

(measure
 (lambda ()
   (let ((items (numbers 200)))
     (list (length (repeat 60000 half-by-loop items)) (car (repeat 60000 half-by-recursion items))))))
