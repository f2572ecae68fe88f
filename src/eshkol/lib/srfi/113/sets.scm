;;; A part of (srfi 113): the procedures of sets.

(define (set comparator . elements)
  "A set of these elements, which are compared by a comparator."
  (from-list 'set set-kind comparator elements))

(define (set-unfold comparator stop? element next seed)
  "A set of (element seed) for each seed, where next gives the next one, until stop? is true for it."
  (let ((result (empty 'set-unfold set-kind comparator)))
    (let loop ((seed seed))
      (if (stop? seed)
          result
          (begin
            (put! result (element seed) 1)
            (loop (next seed)))))))

(define (set? object)
  "Whether object is a set."
  (and (collection? object) (eq? set-kind (kind object))))

(define (set-contains? set element)
  "Whether the set has the element."
  (check set? 'set-contains? 1 set)
  (hash-table-contains? (table set) element))

(define (set-empty? set)
  "Whether the set has no elements."
  (check set? 'set-empty? 1 set)
  (hash-table-empty? (table set)))

(define (set-disjoint? first second)
  "Whether the sets have no element together."
  (check-two set? 'set-disjoint? first second)
  (not (any (lambda (element) (hash-table-contains? (table second) element)) (hash-table-keys (table first)))))

(define (set-member set element default)
  "The element of the set that is the same as element, or default."
  (check set? 'set-member 1 set)
  (member-of set element default))

(define (set-element-comparator set)
  "The comparator of the elements."
  (check set? 'set-element-comparator 1 set)
  (comparator set))

(define (set-adjoin set . elements)
  "A set with these elements added."
  (check set? 'set-adjoin 1 set)
  (adjoin! (copy set) elements))

(define (set-adjoin! set . elements)
  "The set, to which these elements are added."
  (check set? 'set-adjoin! 1 set)
  (adjoin! set elements))

(define (set-replace set element)
  "A set with this element in place of the one that is the same."
  (check set? 'set-replace 1 set)
  (replace! (copy set) element))

(define (set-replace! set element)
  "The set, in which this element takes the place of the one that is the same."
  (check set? 'set-replace! 1 set)
  (replace! set element))

(define (set-delete set . elements)
  "A set without these elements."
  (check set? 'set-delete 1 set)
  (delete-from! (copy set) elements))

(define (set-delete! set . elements)
  "The set, from which these elements are removed."
  (check set? 'set-delete! 1 set)
  (delete-from! set elements))

(define (set-delete-all set elements)
  "A set without the elements of a list."
  (check set? 'set-delete-all 1 set)
  (delete-from! (copy set) elements))

(define (set-delete-all! set elements)
  "The set, from which the elements of a list are removed."
  (check set? 'set-delete-all! 1 set)
  (delete-from! set elements))

(define (set-search! set element failure success)
  "Look for an element. If it is there, (success element update remove) is called, otherwise (failure insert ignore); both call one of the procedures they are given: (update new result), (remove result), (insert result), (ignore result). Two values: the set and the result."
  (check set? 'set-search! 1 set)
  (search! set element failure success))

(define (set-size set)
  "How many elements the set has."
  (check set? 'set-size 1 set)
  (size set))

(define (set-find accept? set failure)
  "Some element for which accept? is true, or what the thunk failure gives."
  (check set? 'set-find 2 set)
  (let loop ((rest (hash-table-keys (table set))))
    (cond ((null? rest) (failure))
          ((accept? (car rest)) (car rest))
          (else (loop (cdr rest))))))

(define (set-count accept? set)
  "For how many elements accept? is true."
  (check set? 'set-count 2 set)
  (fold-all set (lambda (element count) (if (accept? element) (+ count 1) count)) 0))

(define (set-any? accept? set)
  "Whether accept? is true for any element."
  (check set? 'set-any? 2 set)
  (if (any accept? (hash-table-keys (table set))) #t #f))

(define (set-every? accept? set)
  "Whether accept? is true for all elements."
  (check set? 'set-every? 2 set)
  (if (every accept? (hash-table-keys (table set))) #t #f))

(define (set-map comparator f set)
  "A set by the comparator of what f gives for the elements."
  (check set? 'set-map 3 set)
  (let ((result (empty 'set-map set-kind comparator)))
    (hash-table-walk (table set) (lambda (element count) (put! result (f element) count)))
    result))

(define (set-for-each f set)
  "Call f with each element."
  (check set? 'set-for-each 2 set)
  (fold-all set (lambda (element result) (f element) result) #t)
  (if #f #f))

(define (set-fold f initial set)
  "Go through the elements: (f element result) gives the next result."
  (check set? 'set-fold 3 set)
  (fold-all set f initial))

(define (set-filter accept? set)
  "A set of the elements for which accept? is true."
  (check set? 'set-filter 2 set)
  (keep! (copy set) accept?))

(define (set-filter! accept? set)
  "The set, from which the elements for which accept? is false are removed."
  (check set? 'set-filter! 2 set)
  (keep! set accept?))

(define (set-remove drop? set)
  "A set of the elements for which drop? is false."
  (check set? 'set-remove 2 set)
  (keep! (copy set) (lambda (element) (not (drop? element)))))

(define (set-remove! drop? set)
  "The set, from which the elements for which drop? is true are removed."
  (check set? 'set-remove! 2 set)
  (keep! set (lambda (element) (not (drop? element)))))

(define (set-partition accept? set)
  "Two values: a set of the elements for which accept? is true, and one of the others."
  (values (set-filter accept? set) (set-remove accept? set)))

(define (set-partition! accept? set)
  "As set-partition; the first is the set itself."
  (let ((others (set-remove accept? set)))
    (values (set-filter! accept? set) others)))

(define (set-copy set)
  "A set with the same elements."
  (check set? 'set-copy 1 set)
  (copy set))

(define (set->list set)
  "The list of the elements."
  (check set? 'set->list 1 set)
  (reverse (fold-all set cons '())))

(define (list->set comparator elements)
  "A set of the elements of a list."
  (from-list 'list->set set-kind comparator elements))

(define (list->set! set elements)
  "The set, to which the elements of a list are added."
  (check set? 'list->set! 1 set)
  (adjoin! set elements))

(define (set=? first . others)
  "Whether all sets have the same elements."
  (compare set? 'set=? first others (lambda (a b) (and (part? a b) (part? b a)))))

(define (set<? first . others)
  "Whether each set is a part of the next, but not the same."
  (compare set? 'set<? first others (lambda (a b) (and (part? a b) (not (part? b a))))))

(define (set>? first . others)
  "Whether each set has the next as a part, but is not the same."
  (compare set? 'set>? first others (lambda (a b) (and (part? b a) (not (part? a b))))))

(define (set<=? first . others)
  "Whether each set is a part of the next."
  (compare set? 'set<=? first others part?))

(define (set>=? first . others)
  "Whether each set has the next as a part."
  (compare set? 'set>=? first others (lambda (a b) (part? b a))))

(define (set-union first . others)
  "A set of the elements that any of the sets has."
  (combine! set? 'set-union (copy-of set? 'set-union first) others union-count))

(define (set-union! first . others)
  "As set-union; the first set is changed and given."
  (combine! set? 'set-union! first others union-count))

(define (set-intersection first . others)
  "A set of the elements that all sets have."
  (combine! set? 'set-intersection (copy-of set? 'set-intersection first) others intersection-count))

(define (set-intersection! first . others)
  "As set-intersection; the first set is changed and given."
  (combine! set? 'set-intersection! first others intersection-count))

(define (set-difference first . others)
  "A set of the elements of the first set that no other has."
  (combine! set? 'set-difference (copy-of set? 'set-difference first) others difference-count))

(define (set-difference! first . others)
  "As set-difference; the first set is changed and given."
  (combine! set? 'set-difference! first others difference-count))

(define (set-xor first second)
  "A set of the elements that one of the sets alone has."
  (combine! set? 'set-xor (copy-of set? 'set-xor first) (list second) xor-count))

(define (set-xor! first second)
  "As set-xor; the first set is changed and given."
  (combine! set? 'set-xor! first (list second) xor-count))

;; A comparator of sets by their elements, for sets of sets and the like.
(define set-comparator
  (make-comparator set? set=? #f
                   (lambda (set)
                     (hash-table-fold (table set)
                                      (lambda (element count hash)
                                        (+ hash (* count (comparator-hash (comparator set) element))))
                                      0))))
