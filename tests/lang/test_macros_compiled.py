"""Macros whose transformers are procedures, eval and libraries, on compiled code: what test_transformers interprets."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_transformers import DEFINE_STRUCT

from eshkol.session import on_session

PROGRAM = (
    DEFINE_STRUCT
    + """
(define-struct point (x y))
(write (list (make-point 3 4) (point-x (make-point 3 4))))
(newline)

(define-syntax loop                                 ; break is bound by intention, and only inside
  (lambda (stx)
    (syntax-case stx ()
      ((k body ...)
       (with-syntax ((break (datum->syntax #'k 'break)))
         #'(call/cc (lambda (break) (let again () body ... (again)))))))))
(define break 'outside)
(define n 0)
(write (list (loop (set! n (+ n 1)) (if (= n 10) (break n))) break))
(newline)

(define-syntax my-or2
  (lambda (stx) (syntax-case stx () ((_ a b) #'(let ((t a)) (if t t b))))))
(define t 5)
(write (let ((if list)) (my-or2 #f t)))
(newline)

(define-syntax enumerate
  (lambda (stx)
    (syntax-case stx ()
      ((_ name ...)
       #`(begin #,@(let next ((names #'(name ...)) (i 0))
                     (if (null? names) '() (cons #`(define #,(car names) #,i) (next (cdr names) (+ i 1))))))))))
(enumerate red green blue)
(write (list red green blue))
(newline)

(define-syntax counter (make-variable-transformer
  (lambda (stx)
    (syntax-case stx (set!)
      ((set! _ v) #'(set! n (* 2 v)))
      (id (identifier? #'id) #'n)))))
(set! counter 21)
(write counter)
(newline)

(write (guard (e (#t (error-object? e))) (eval '(if) (environment '(scheme base)))))
(write (eval '(let-syntax ((m (lambda (s) #''expanded))) (m)) (environment '(eshkol))))
(eval '(define hidden 7) (interaction-environment))
(write (eval '(+ hidden 1) (interaction-environment)))
(newline)
"""
)
SHOWN = """(#(point 3 4) 3)
(10 outside)
5
(0 1 2)
42
#texpanded8
"""


def outcome(path: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    code = on_session(lambda session: session.run_file(path), [str(path)])
    return code, capfd.readouterr().out


def test_transformers_run_as_compiled_code(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / "program.esk"
    program.write_text(PROGRAM)
    for _ in range(2):  # the second time nothing is expanded
        assert outcome(program, capfd) == (0, SHOWN)


def test_a_library_with_such_macros(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kit").mkdir()
    (tmp_path / "kit" / "structs.esk").write_text(
        "(define-library (kit structs) (import (eshkol) (kit names)) (export define-pair)"
        """(begin (define-syntax define-pair
             (lambda (stx)
               (syntax-case stx ()
                 ((_ name) (with-syntax ((make (joined #'name "make-" (symbol->string #'name))))
                             #'(define (make a b) (list 'name a b)))))))))"""
    )
    (tmp_path / "kit" / "names.esk").write_text(
        "(define-library (kit names) (import (eshkol)) (export joined) (begin (define (joined context . parts)"
        " (datum->syntax context (string->symbol (apply string-append parts))))))"
    )
    program = tmp_path / "program.esk"
    for number in range(2):
        program.write_text(
            f"(import (scheme base) (scheme write) (kit structs)) (define-pair two) (write (make-two {number} 2))"
        )
        assert outcome(program, capfd) == (0, f"(two {number} 2)")
