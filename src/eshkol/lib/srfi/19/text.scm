;;; Dates as text and text as dates, for (srfi 19), which includes this file.

(begin

  ;; ---- dates as text ----------------------------------------------------------------------------------------------

  (define day-names #("Sunday" "Monday" "Tuesday" "Wednesday" "Thursday" "Friday" "Saturday"))
  (define month-names
    #("January" "February" "March" "April" "May" "June" "July" "August" "September" "October" "November" "December"))

  ;; Directives that stand for others, in both directions.
  (define abbreviations
    '((#\c . "~a ~b ~d ~H:~M:~S~z ~Y") (#\D . "~m/~d/~y") (#\x . "~m/~d/~y") (#\X . "~H:~M:~S") (#\T . "~H:~M:~S")
      (#\r . "~I:~M:~S ~p") (#\1 . "~Y-~m-~d") (#\2 . "~H:~M:~S~z") (#\3 . "~H:~M:~S")
      (#\4 . "~Y-~m-~dT~H:~M:~S~z") (#\5 . "~Y-~m-~dT~H:~M:~S")))

  (define (padded number width fill)
    (let* ((digits (number->string (abs number)))
           (text (string-append (make-string (max 0 (- width (string-length digits))) fill) digits)))
      (if (< number 0) (string-append "-" text) text)))

  (define (short name) (substring name 0 3))

  (define (hour-of-12 date) (+ 1 (modulo (- (date-hour date) 1) 12)))

  (define (zone-text offset)
    (if (= offset 0)
        "Z"
        (let ((minutes (quotient (abs offset) 60)))
          (string-append (if (< offset 0) "-" "+") (padded (quotient minutes 60) 2 #\0)
                         (padded (remainder minutes 60) 2 #\0)))))

  (define (fraction-text nanosecond)
    (if (= nanosecond 0)
        ""
        (let loop ((text (padded nanosecond 9 #\0)))
          (let ((end (- (string-length text) 1)))
            (if (char=? (string-ref text end) #\0) (loop (substring text 0 end)) (string-append "." text))))))

  (define (date->string date . format)
    "A date as text, in a format whose directives begin with ~: ~Y-~m-~d ~H:~M:~S~z are year, month, day, hour, minute, second and zone, ~a ~A ~b ~B names of day and month, ~4 is ISO 8601; the others are those of SRFI 19. ~c where none is given."
    (check-date 'date->string date)
    (let ((format (if (pair? format) (car format) "~c")) (port (open-output-string)))
      (if (not (string? format)) (%wrong-type 'date->string 2 format "a string"))
      (write-date date format port)
      (get-output-string port)))

  (define (write-date date format port)
    (let ((end (string-length format)))
      (let loop ((i 0))
        (if (< i end)
            (let ((c (string-ref format i)))
              (cond ((not (char=? c #\~)) (write-char c port) (loop (+ i 1)))
                    ((= (+ i 1) end) (%fail 'error 'date->string "the format ends behind a ~" (list format)))
                    (else
                     (write-directive date (string-ref format (+ i 1)) port)
                     (loop (+ i 2)))))))))

  (define (write-directive date c port)
    (define (is text) (write-string text port))
    (define (two number) (is (padded number 2 #\0)))
    (define (name names index) (vector-ref names index))
    (case c
      ((#\~) (is "~"))
      ((#\n) (is "\n"))
      ((#\t) (is "\t"))
      ((#\a) (is (short (name day-names (date-week-day date)))))
      ((#\A) (is (name day-names (date-week-day date))))
      ((#\b #\h) (is (short (name month-names (- (date-month date) 1)))))
      ((#\B) (is (name month-names (- (date-month date) 1))))
      ((#\d) (two (date-day date)))
      ((#\e) (is (padded (date-day date) 2 #\space)))
      ((#\f) (two (date-second date)) (is (fraction-text (date-nanosecond date))))
      ((#\H) (two (date-hour date)))
      ((#\I) (two (hour-of-12 date)))
      ((#\j) (is (padded (date-year-day date) 3 #\0)))
      ((#\k) (is (padded (date-hour date) 2 #\space)))
      ((#\l) (is (padded (hour-of-12 date) 2 #\space)))
      ((#\m) (two (date-month date)))
      ((#\M) (two (date-minute date)))
      ((#\N) (is (padded (date-nanosecond date) 9 #\0)))
      ((#\p) (is (if (< (date-hour date) 12) "AM" "PM")))
      ((#\s) (is (number->string (utc-second date))))
      ((#\S) (two (date-second date)))
      ((#\U) (two (date-week-number date 0)))
      ((#\V) (two (iso-week date)))
      ((#\w) (is (number->string (date-week-day date))))
      ((#\W) (two (date-week-number date 1)))
      ((#\y) (two (modulo (date-year date) 100)))
      ((#\Y) (is (padded (date-year date) 4 #\0)))
      ((#\z #\Z) (is (zone-text (date-zone-offset date))))
      (else
       (let ((long (assv c abbreviations)))
         (if (not long) (%fail 'error 'date->string "there is no such directive:" (list (string #\~ c))))
         (write-date date (cdr long) port)))))

  ;; ---- text as dates ----------------------------------------------------------------------------------------------

  (define (string->date text template)
    "The date that a text says, which is like the template: ~Y ~m ~d ~H ~M ~S ~N ~y ~z and names of days and months, ~a ~A ~b ~B; directives skip what stands before their digits or letters. The hour is 0 where none is said, and the zone the local one."
    (if (not (string? text)) (%wrong-type 'string->date 1 text "a string"))
    (if (not (string? template)) (%wrong-type 'string->date 2 template "a string"))
    (let ((found (vector 0 0 0 0 #f #f #f #f)) (end (string-length text)))

      (define (fail at message)
        (%fail 'read-error 'string->date (string-append message "; at index " (number->string at) " of") (list text)))

      (define (skip-to wanted? at)
        (cond ((= at end) (fail at "the text ends too early"))
              ((wanted? (string-ref text at)) at)
              (else (skip-to wanted? (+ at 1)))))

      (define (digits at most)
        (let loop ((i at))
          (if (and (< i end) (< (- i at) most) (digit? (string-ref text i))) (loop (+ i 1)) i)))

      (define (number at most place convert)
        (let* ((start (skip-to digit? at)) (stop (digits start most)))
          (vector-set! found place (convert (string->number (substring text start stop)) (- stop start)))
          stop))

      (define (same number length) number)

      (define (name names shortened? at place)
        (let ((start (skip-to char-alphabetic? at)))
          (let loop ((i 0))
            (if (= i (vector-length names)) (fail start "this is no name of a day or a month"))
            (let* ((name (vector-ref names i)) (name (if shortened? (short name) name))
                   (stop (+ start (string-length name))))
              (if (and (<= stop end) (string-ci=? name (substring text start stop)))
                  (begin
                    (if place (vector-set! found place (+ i 1)))
                    stop)
                  (loop (+ i 1)))))))

      (define (zone at)
        (if (= at end) (fail at "the zone is missing"))
        (let ((c (string-ref text at)))
          (cond ((memv c '(#\Z #\z)) (vector-set! found 7 0) (+ at 1))
                ((memv c '(#\+ #\-))
                 (let* ((middle (digits (+ at 1) 2))
                        (start (if (and (< middle end) (char=? (string-ref text middle) #\:)) (+ middle 1) middle))
                        (stop (digits start 2)))
                   (if (not (and (= middle (+ at 3)) (or (= stop (+ start 2)) (and (= stop start) (= start middle)))))
                       (fail at "a zone is Z, +hhmm or +hh:mm"))
                   (let ((offset (+ (* 3600 (string->number (substring text (+ at 1) middle)))
                                    (* 60 (if (= stop start) 0 (string->number (substring text start stop)))))))
                     (vector-set! found 7 (if (char=? c #\-) (- offset) offset))
                     stop)))
                (else (fail at "a zone is Z, +hhmm or +hh:mm")))))

      (define (year-of-2 number length) ; that which is nearest to this year
        (let* ((now (date-year (current-date 0))) (year (+ number (* 100 (quotient now 100)))))
          (cond ((> year (+ now 50)) (- year 100))
                ((<= year (- now 50)) (+ year 100))
                (else year))))

      (define (directive c at)
        (case c
          ((#\Y) (if (and (< at end) (char=? (string-ref text at) #\-))
                     (number at 20 6 (lambda (number length) (- number)))
                     (number at 20 6 same)))
          ((#\y) (number at 2 6 year-of-2))
          ((#\m) (number at 2 5 same))
          ((#\d #\e) (number at 2 4 same))
          ((#\H #\k) (number at 2 3 same))
          ((#\M) (number at 2 2 same))
          ((#\S) (number at 2 1 same))
          ((#\N) (number at 9 0 (lambda (number length) (* number (expt 10 (- 9 length))))))
          ((#\a) (name day-names #t at #f))
          ((#\A) (name day-names #f at #f))
          ((#\b #\h) (name month-names #t at 5))
          ((#\B) (name month-names #f at 5))
          ((#\z) (zone at))
          ((#\~) (literal #\~ at))
          (else
           (let ((long (assv c abbreviations)))
             (if (not long) (%fail 'error 'string->date "a date is not read by this directive:" (list (string #\~ c))))
             (follow (cdr long) at)))))

      (define (literal c at)
        (if (not (and (< at end) (char=? (string-ref text at) c)))
            (fail at (string-append "expected " (string c))))
        (+ at 1))

      (define (follow template at)
        (let ((last (string-length template)))
          (let loop ((i 0) (at at))
            (cond ((= i last) at)
                  ((not (char=? (string-ref template i) #\~)) (loop (+ i 1) (literal (string-ref template i) at)))
                  ((= (+ i 1) last) (%fail 'error 'string->date "the template ends behind a ~" (list template)))
                  (else (loop (+ i 2) (directive (string-ref template (+ i 1)) at)))))))

      (let ((stop (follow template 0)))
        (if (< stop end) (fail stop "there is more text than the template says"))
        (let ((part (lambda (i) (vector-ref found i))))
          (if (not (and (part 4) (part 5) (part 6)))
              (%fail 'error 'string->date "the template must say year, month and day" (list template)))
          (let ((date (make-date (part 0) (part 1) (part 2) (part 3) (part 4) (part 5) (part 6) (or (part 7) 0))))
            (if (part 7)
                date
                (make-date (part 0) (part 1) (part 2) (part 3) (part 4) (part 5) (part 6)
                           (local-offset (- (utc-second date) (local-offset (utc-second date)))))))))))

  (define (digit? c) (and (char>=? c #\0) (char<=? c #\9))))
