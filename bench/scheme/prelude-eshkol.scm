;; Before every program that Eshkol runs: `(measure thunk)` prints the value of the thunk and the seconds it took.
(import (scheme base) (scheme complex) (scheme cxr) (scheme inexact) (scheme time) (scheme write) (srfi 69) (only (eshkol) :))

(define (measure thunk)
  (let* ((start (current-jiffy)) (value (thunk)) (end (current-jiffy)))
    (write value)
    (newline)
    (write (inexact (/ (- end start) (jiffies-per-second))))
    (newline)))
