;;; A part of (srfi 113): the procedures of bags.

(define (bag comparator . elements)
  "A bag of these elements, which are compared by a comparator."
  (from-list 'bag bag-kind comparator elements))

(define (bag-unfold comparator stop? element next seed)
  "A bag of (element seed) for each seed, where next gives the next one, until stop? is true for it."
  (let ((result (empty 'bag-unfold bag-kind comparator)))
    (let loop ((seed seed))
      (if (stop? seed)
          result
          (begin
            (put! result (element seed) 1)
            (loop (next seed)))))))

(define (bag? object)
  "Whether object is a bag."
  (and (collection? object) (eq? bag-kind (kind object))))

(define (bag-contains? bag element)
  "Whether the bag has the element."
  (check bag? 'bag-contains? 1 bag)
  (hash-table-contains? (table bag) element))

(define (bag-empty? bag)
  "Whether the bag has no elements."
  (check bag? 'bag-empty? 1 bag)
  (hash-table-empty? (table bag)))

(define (bag-disjoint? first second)
  "Whether the bags have no element together."
  (check-two bag? 'bag-disjoint? first second)
  (not (any (lambda (element) (hash-table-contains? (table second) element)) (hash-table-keys (table first)))))

(define (bag-member bag element default)
  "The element of the bag that is the same as element, or default."
  (check bag? 'bag-member 1 bag)
  (member-of bag element default))

(define (bag-element-comparator bag)
  "The comparator of the elements."
  (check bag? 'bag-element-comparator 1 bag)
  (comparator bag))

(define (bag-adjoin bag . elements)
  "A bag with these elements added."
  (check bag? 'bag-adjoin 1 bag)
  (adjoin! (copy bag) elements))

(define (bag-adjoin! bag . elements)
  "The bag, to which these elements are added."
  (check bag? 'bag-adjoin! 1 bag)
  (adjoin! bag elements))

(define (bag-replace bag element)
  "A bag with this element in place of the one that is the same."
  (check bag? 'bag-replace 1 bag)
  (replace! (copy bag) element))

(define (bag-replace! bag element)
  "The bag, in which this element takes the place of the one that is the same."
  (check bag? 'bag-replace! 1 bag)
  (replace! bag element))

(define (bag-delete bag . elements)
  "A bag with one less of each of these elements."
  (check bag? 'bag-delete 1 bag)
  (delete-from! (copy bag) elements))

(define (bag-delete! bag . elements)
  "The bag, from which one of each of these elements is removed."
  (check bag? 'bag-delete! 1 bag)
  (delete-from! bag elements))

(define (bag-delete-all bag elements)
  "A bag with one less of each element of a list."
  (check bag? 'bag-delete-all 1 bag)
  (delete-from! (copy bag) elements))

(define (bag-delete-all! bag elements)
  "The bag, from which one of each element of a list is removed."
  (check bag? 'bag-delete-all! 1 bag)
  (delete-from! bag elements))

(define (bag-search! bag element failure success)
  "Look for an element. If it is there, (success element update remove) is called, otherwise (failure insert ignore); both call one of the procedures they are given: (update new result), (remove result), (insert result), (ignore result). Two values: the bag and the result."
  (check bag? 'bag-search! 1 bag)
  (search! bag element failure success))

(define (bag-size bag)
  "How many elements the bag has, each as often as it is in it."
  (check bag? 'bag-size 1 bag)
  (size bag))

(define (bag-find accept? bag failure)
  "Some element for which accept? is true, or what the thunk failure gives."
  (check bag? 'bag-find 2 bag)
  (let loop ((rest (hash-table-keys (table bag))))
    (cond ((null? rest) (failure))
          ((accept? (car rest)) (car rest))
          (else (loop (cdr rest))))))

(define (bag-count accept? bag)
  "For how many elements accept? is true."
  (check bag? 'bag-count 2 bag)
  (fold-all bag (lambda (element count) (if (accept? element) (+ count 1) count)) 0))

(define (bag-any? accept? bag)
  "Whether accept? is true for any element."
  (check bag? 'bag-any? 2 bag)
  (if (any accept? (hash-table-keys (table bag))) #t #f))

(define (bag-every? accept? bag)
  "Whether accept? is true for all elements."
  (check bag? 'bag-every? 2 bag)
  (if (every accept? (hash-table-keys (table bag))) #t #f))

(define (bag-map comparator f bag)
  "A bag by the comparator of what f gives for the elements."
  (check bag? 'bag-map 3 bag)
  (let ((result (empty 'bag-map bag-kind comparator)))
    (hash-table-walk (table bag) (lambda (element count) (put! result (f element) count)))
    result))

(define (bag-for-each f bag)
  "Call f with each element."
  (check bag? 'bag-for-each 2 bag)
  (fold-all bag (lambda (element result) (f element) result) #t)
  (if #f #f))

(define (bag-fold f initial bag)
  "Go through the elements: (f element result) gives the next result."
  (check bag? 'bag-fold 3 bag)
  (fold-all bag f initial))

(define (bag-filter accept? bag)
  "A bag of the elements for which accept? is true."
  (check bag? 'bag-filter 2 bag)
  (keep! (copy bag) accept?))

(define (bag-filter! accept? bag)
  "The bag, from which the elements for which accept? is false are removed."
  (check bag? 'bag-filter! 2 bag)
  (keep! bag accept?))

(define (bag-remove drop? bag)
  "A bag of the elements for which drop? is false."
  (check bag? 'bag-remove 2 bag)
  (keep! (copy bag) (lambda (element) (not (drop? element)))))

(define (bag-remove! drop? bag)
  "The bag, from which the elements for which drop? is true are removed."
  (check bag? 'bag-remove! 2 bag)
  (keep! bag (lambda (element) (not (drop? element)))))

(define (bag-partition accept? bag)
  "Two values: a bag of the elements for which accept? is true, and one of the others."
  (values (bag-filter accept? bag) (bag-remove accept? bag)))

(define (bag-partition! accept? bag)
  "As bag-partition; the first is the bag itself."
  (let ((others (bag-remove accept? bag)))
    (values (bag-filter! accept? bag) others)))

(define (bag-copy bag)
  "A bag with the same elements."
  (check bag? 'bag-copy 1 bag)
  (copy bag))

(define (bag->list bag)
  "The list of the elements, each as often as it is in the bag."
  (check bag? 'bag->list 1 bag)
  (reverse (fold-all bag cons '())))

(define (list->bag comparator elements)
  "A bag of the elements of a list."
  (from-list 'list->bag bag-kind comparator elements))

(define (list->bag! bag elements)
  "The bag, to which the elements of a list are added."
  (check bag? 'list->bag! 1 bag)
  (adjoin! bag elements))

(define (bag=? first . others)
  "Whether all bags have the same elements."
  (compare bag? 'bag=? first others (lambda (a b) (and (part? a b) (part? b a)))))

(define (bag<? first . others)
  "Whether each bag is a part of the next, but not the same."
  (compare bag? 'bag<? first others (lambda (a b) (and (part? a b) (not (part? b a))))))

(define (bag>? first . others)
  "Whether each bag has the next as a part, but is not the same."
  (compare bag? 'bag>? first others (lambda (a b) (and (part? b a) (not (part? a b))))))

(define (bag<=? first . others)
  "Whether each bag is a part of the next."
  (compare bag? 'bag<=? first others part?))

(define (bag>=? first . others)
  "Whether each bag has the next as a part."
  (compare bag? 'bag>=? first others (lambda (a b) (part? b a))))

(define (bag-union first . others)
  "A bag of each element as often as in the bag that has most of it."
  (combine! bag? 'bag-union (copy-of bag? 'bag-union first) others union-count))

(define (bag-union! first . others)
  "As bag-union; the first bag is changed and given."
  (combine! bag? 'bag-union! first others union-count))

(define (bag-intersection first . others)
  "A bag of each element as often as in the bag that has least of it."
  (combine! bag? 'bag-intersection (copy-of bag? 'bag-intersection first) others intersection-count))

(define (bag-intersection! first . others)
  "As bag-intersection; the first bag is changed and given."
  (combine! bag? 'bag-intersection! first others intersection-count))

(define (bag-difference first . others)
  "A bag of each element as often as the first bag has it, less how often the others have it."
  (combine! bag? 'bag-difference (copy-of bag? 'bag-difference first) others difference-count))

(define (bag-difference! first . others)
  "As bag-difference; the first bag is changed and given."
  (combine! bag? 'bag-difference! first others difference-count))

(define (bag-xor first second)
  "A bag of each element as often as one bag has more of it than the other."
  (combine! bag? 'bag-xor (copy-of bag? 'bag-xor first) (list second) xor-count))

(define (bag-xor! first second)
  "As bag-xor; the first bag is changed and given."
  (combine! bag? 'bag-xor! first (list second) xor-count))

(define (bag-sum first . others)
  "A bag of each element as often as all bags together have it."
  (combine! bag? 'bag-sum (copy-of bag? 'bag-sum first) others sum-count))

(define (bag-sum! first . others)
  "As bag-sum; the first bag is changed and given."
  (combine! bag? 'bag-sum! first others sum-count))

(define (bag-product n bag)
  "A bag with each element n times as often."
  (check bag? 'bag-product 2 bag)
  (bag-product! n (copy bag)))

(define (bag-product! n bag)
  "The bag, in which each element is n times as often."
  (%check-count 'bag-product! 1 n)
  (check bag? 'bag-product! 2 bag)
  (hash-table-walk (table bag) (lambda (element count) (set-count! bag element (* n count))))
  bag)

(define (bag-unique-size bag)
  "How many different elements the bag has."
  (check bag? 'bag-unique-size 1 bag)
  (hash-table-size (table bag)))

(define (bag-element-count bag element)
  "How often the element is in the bag."
  (check bag? 'bag-element-count 1 bag)
  (count-of bag element))

(define (bag-for-each-unique f bag)
  "Call f with each different element and how often it is in the bag."
  (check bag? 'bag-for-each-unique 2 bag)
  (hash-table-walk (table bag) f))

(define (bag-fold-unique f initial bag)
  "Go through the different elements: (f element count result) gives the next result."
  (check bag? 'bag-fold-unique 3 bag)
  (hash-table-fold (table bag) f initial))

(define (bag-increment! bag element count)
  "The bag, to which the element is added count times."
  (check bag? 'bag-increment! 1 bag)
  (%check-count 'bag-increment! 3 count)
  (put! bag element count)
  bag)

(define (bag-decrement! bag element count)
  "The bag, from which the element is removed count times, or as often as it is there."
  (check bag? 'bag-decrement! 1 bag)
  (%check-count 'bag-decrement! 3 count)
  (set-count! bag element (- (count-of bag element) count))
  bag)

(define (bag->set bag)
  "A set of the different elements of the bag."
  (check bag? 'bag->set 1 bag)
  (adjoin! (empty 'bag->set set-kind (comparator bag)) (hash-table-keys (table bag))))

(define (set->bag set)
  "A bag of the elements of the set."
  (check set? 'set->bag 1 set)
  (adjoin! (empty 'set->bag bag-kind (comparator set)) (hash-table-keys (table set))))

(define (set->bag! bag set)
  "The bag, to which the elements of the set are added."
  (check bag? 'set->bag! 1 bag)
  (check set? 'set->bag! 2 set)
  (adjoin! bag (hash-table-keys (table set))))

(define (bag->alist bag)
  "The association list of the different elements and how often they are in the bag."
  (check bag? 'bag->alist 1 bag)
  (hash-table->alist (table bag)))

(define (alist->bag comparator alist)
  "A bag of the elements of an association list, each as often as it says."
  (%check-list 'alist->bag 2 alist)
  (let ((bag (empty 'alist->bag bag-kind comparator)))
    (for-each (lambda (pair) (set-count! bag (car pair) (cdr pair))) alist)
    bag))

;; A comparator of bags by their elements, for bags of bags and the like.
(define bag-comparator
  (make-comparator bag? bag=? #f
                   (lambda (bag)
                     (hash-table-fold (table bag)
                                      (lambda (element count hash)
                                        (+ hash (* count (comparator-hash (comparator bag) element))))
                                      0))))
