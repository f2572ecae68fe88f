;;; Comparators of immutable pairs and lists: parts of (srfi 116).

;; A comparator of a type by what one of the same objects, taken apart or turned into something else, says of them.
(define (comparator-by type? part comparator)
  (let ((valid? (comparator-type-test-predicate comparator)) (same? (comparator-equality-predicate comparator))
        (less? (comparator-ordering-predicate comparator)) (hash (comparator-hash-function comparator)))
    (make-comparator (lambda (object) (and (type? object) (valid? (part object))))
                     (lambda (a b) (same? (part a) (part b)))
                     (and (comparator-ordered? comparator) (lambda (a b) (less? (part a) (part b))))
                     (and (comparator-hashable? comparator) (lambda (object) (hash (part object)))))))

(define (make-ipair-comparator first second)
  "A comparator of immutable pairs by those of their icars and icdrs."
  (comparator-by ipair? ipair->pair (make-pair-comparator first second)))

(define (make-ilist-comparator element)
  "A comparator of immutable lists by one of their elements; a list comes after its beginnings."
  (make-list-comparator element proper-ilist? null? icar icdr))

(define (make-improper-ilist-comparator element)
  "A comparator of immutable pairs that end with anything: by one of the elements, and of what is at the end."
  (define (rank object)
    (cond ((null? object) 0) ((ipair? object) 1) (else 2)))
  (let ((same? (comparator-equality-predicate element)) (less? (comparator-ordering-predicate element))
        (hash (comparator-hash-function element)))
    (define (all-same? a b)
      (cond ((not (= (rank a) (rank b))) #f)
            ((null? a) #t)
            ((ipair? a) (and (same? (icar a) (icar b)) (all-same? (icdr a) (icdr b))))
            (else (same? a b))))
    (define (before? a b)
      (cond ((not (= (rank a) (rank b))) (< (rank a) (rank b)))
            ((null? a) #f)
            ((not (ipair? a)) (less? a b))
            ((same? (icar a) (icar b)) (before? (icdr a) (icdr b)))
            (else (less? (icar a) (icar b)))))
    (make-comparator #t all-same?
                     (and (comparator-ordered? element) before?)
                     (and (comparator-hashable? element)
                          (lambda (object)
                            (let loop ((rest object) (mixed 7))
                              (define (with more) (modulo (+ (* 31 mixed) more) 33554393))
                              (cond ((null? rest) mixed)
                                    ((ipair? rest) (loop (icdr rest) (with (hash (icar rest)))))
                                    (else (with (hash rest))))))))))

(define (make-icar-comparator comparator)
  "A comparator of immutable pairs by that of their icars."
  (comparator-by ipair? icar comparator))

(define (make-icdr-comparator comparator)
  "A comparator of immutable pairs by that of their icdrs."
  (comparator-by ipair? icdr comparator))

;; A comparator of immutable pairs of what the default comparator takes.
(define ipair-comparator (make-ipair-comparator (make-default-comparator) (make-default-comparator)))
;; A comparator of immutable lists of what the default comparator takes.
(define ilist-comparator (make-ilist-comparator (make-default-comparator)))
