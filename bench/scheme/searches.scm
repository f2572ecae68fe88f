;; Searches that are left by a continuation as soon as they know, which is used for nothing else.
(define (find-first good? items)
  (call-with-current-continuation
   (lambda (return) (for-each (lambda (item) (if (good? item) (return item))) items) #f)))
(define (product items)
  (call-with-current-continuation
   (lambda (return)
     (let loop ((items items)) (cond ((null? items) 1) ((= (car items) 0) (return 0)) (else (* (car items) (loop (cdr items)))))))))

(measure
 (lambda ()
   (let ((items '(1 2 3 4 5 6 7 8 9 10 0 11)))
     (do ((i 0 (+ i 1)) (sum 0 (+ sum (find-first (lambda (x) (> x (modulo i 10))) items) (product items))))
         ((= i 2000000) sum)))))
