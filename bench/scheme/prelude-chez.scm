;; Before every program that Chez Scheme runs: `(measure thunk)`, and the names of SRFI 69 for its own hash tables.
(import (except (chezscheme) make-hash-table))

(define (measure thunk)
  (let* ((start (current-time 'time-monotonic)) (value (thunk)) (end (current-time 'time-monotonic)) (spent (time-difference end start)))
    (write value)
    (newline)
    (write (+ (time-second spent) (/ (time-nanosecond spent) 1e9)))
    (newline)))
(define-syntax make-hash-table (syntax-rules () ((_) (make-hashtable equal-hash equal?))))
(define-syntax hash-table-set! (syntax-rules () ((_ table key value) (hashtable-set! table key value))))
(define-syntax hash-table-ref/default (syntax-rules () ((_ table key default) (hashtable-ref table key default))))
(define-syntax hash-table-delete! (syntax-rules () ((_ table key) (hashtable-delete! table key))))
(define-syntax hash-table-size (syntax-rules () ((_ table) (hashtable-size table))))
(define-syntax hash-table-update!/default
  (syntax-rules () ((_ table key change default) (hashtable-update! table key change default))))
(define (hash-table-walk table visit)
  (let-values (((keys values) (hashtable-entries table)))
    (vector-for-each visit keys values)))
(define-syntax : (syntax-rules () ((_ . declaration) (begin)))) ; types, which Chez has no use for
