;; Symbolic differentiation: pairs, symbols, map.
(define (deriv a)
  (cond ((not (pair? a)) (if (eq? a 'x) 1 0))
        ((eq? (car a) '+) (cons '+ (map deriv (cdr a))))
        ((eq? (car a) '-) (cons '- (map deriv (cdr a))))
        ((eq? (car a) '*) (list '* a (cons '+ (map (lambda (a) (list '/ (deriv a) a)) (cdr a)))))
        ((eq? (car a) '/)
         (list '-
               (list '/ (deriv (cadr a)) (caddr a))
               (list '/ (cadr a) (list '* (caddr a) (caddr a) (deriv (caddr a))))))
        (else (error "no derivative of" a))))
(define (size tree) (if (pair? tree) (+ (size (car tree)) (size (cdr tree))) 1))

(measure
 (lambda ()
   (let ((expression '(+ (* 3 x x) (* a x x) (* b x) 5)))
     (let loop ((i 0) (result '()))
       (if (= i 2000000) (size result) (loop (+ i 1) (deriv expression)))))))
