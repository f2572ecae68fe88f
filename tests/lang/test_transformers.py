"""Macros whose transformers are procedures: syntax-case and what goes with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from worlds import Interpreter, MemoryStore

from eshkol.errors import LanguageError
from eshkol.lang.pretty import pretty
from eshkol.lang.source import Source
from eshkol.lang.unexpand import unit_data

CORE = "(import (eshkol syntax-core) (eshkol primitives))\n"


def run(program: str) -> str:
    return Interpreter().program(CORE + program)


def fails(program: str, *parts: str) -> LanguageError:
    with pytest.raises(LanguageError) as caught:
        run(program)
    for part in parts:
        assert part in str(caught.value), str(caught.value)
    return caught.value


# ---- what R6RS says --------------------------------------------------------------------------------------------------


def test_a_transformer_is_a_procedure() -> None:
    program = """
    (define-syntax swap!
      (lambda (stx)
        (syntax-case stx ()
          ((_ a b) #'(let ((tmp a)) (set! a b) (set! b tmp))))))
    (define tmp 1) (define other 2)
    (swap! tmp other)
    (display (list tmp other))
    """
    assert run(program) == "(2 1)"


def test_literals_fenders_and_nested_ellipses() -> None:
    program = """
    (define-syntax kind
      (lambda (stx)
        (syntax-case stx (is)
          ((_ is x) #''literal)
          ((_ x) (identifier? #'x) #''identifier)
          ((_ (a b ...) ...) #'(list (list 'b ... 'a) ...))
          ((_ . rest) #''others))))
    (display (list (kind is 1) (kind x) (kind (1 2 3) (4) (5 6)) (kind 1 2 . 3)))
    """
    assert run(program) == "(literal identifier ((2 3 1) (4) (6 5)) others)"


def test_templates_give_ordinary_lists() -> None:
    program = """
    (define-syntax count-of (lambda (stx) (syntax-case stx () ((_ x ...) (length #'(x ...))))))
    (define-syntax reversed
      (lambda (stx)
        (syntax-case stx ()
          ((_ x ...) #`(list #,@(let loop ((in #'(x ...)) (out '()))
                                  (if (null? in) out (loop (cdr in) (cons (car in) out)))))))))
    (display (list (count-of a b c) (reversed 1 2 3)))
    """
    assert run(program) == "(3 (3 2 1))"


def test_datum_to_syntax_breaks_hygiene_where_wanted() -> None:
    program = """
    (define-syntax aif
      (lambda (stx)
        (syntax-case stx ()
          ((k test then else)
           (with-syntax ((it (datum->syntax #'k 'it)))
             #'(let ((it test)) (if it then else)))))))
    (define it 5)
    (display (list (aif (+ 1 1) (* it 10) 0) it))
    """
    assert run(program) == "(20 5)"


def test_identifiers_are_compared() -> None:
    program = """
    (define-syntax compare
      (lambda (stx)
        (syntax-case stx ()
          ((_ a b) #`(list #,(free-identifier=? #'a #'b) #,(bound-identifier=? #'a #'b))))))
    (define-syntax indirect (syntax-rules () ((_ x) (compare x car))))
    (display (list (compare x x) (compare car cdr) (indirect car) (let ((car 1)) (indirect car))))
    """
    assert run(program) == "((#t #t) (#f #f) (#t #f) (#f #f))"


def test_generated_temporaries_are_new() -> None:
    program = """
    (define-syntax my-letrec
      (lambda (stx)
        (syntax-case stx ()
          ((_ ((var init) ...) body)
           (with-syntax (((temp ...) (generate-temporaries #'(var ...))))
             #'(let ((var #f) ...) (let ((temp init) ...) (set! var temp) ... body)))))))
    (define temporary 1)
    (display (my-letrec ((even (lambda (n) (if (= n 0) #t (odd (- n 1)))))
                         (odd (lambda (n) (if (= n 0) #f (even (- n 1))))))
               (list (even 10) temporary)))
    """
    assert run(program) == "(#t 1)"


def test_identifier_macros_and_assignments() -> None:
    program = """
    (define hidden 1)
    (define-syntax shown (make-variable-transformer
      (lambda (stx)
        (syntax-case stx (set!)
          ((set! _ value) #'(set! hidden (* 10 value)))
          ((_ x ...) #'(list 'called x ...))
          (id (identifier? #'id) #'hidden)))))
    (display (list shown (shown 1 2)))
    (set! shown 5)
    (display shown)
    """
    assert run(program) == "(1 (called 1 2)) 50"


def test_macros_that_write_macros() -> None:
    program = """
    (define-syntax define-constant
      (lambda (stx)
        (syntax-case stx ()
          ((_ name value)
           #'(define-syntax name (lambda (use) (syntax-case use () (x (identifier? #'x) #'value))))))))
    (define-constant seven 7)
    (define (f value) (+ seven value))
    (display (f 1))
    """
    assert run(program) == "8"


def test_syntax_in_quasisyntax() -> None:
    program = """
    (define-syntax table
      (lambda (stx)
        (syntax-case stx ()
          ((_ (k v) ...)
           #`(list #,@(map (lambda (k v) #`(cons '#,k #,v)) #'(k ...) #'(v ...)))))))
    (display (table (a 1) (b (+ 1 1))))
    """
    assert run(program) == "((a . 1) (b . 2))"


def test_syntax_to_datum() -> None:
    program = """
    (define-syntax size (lambda (stx) (length (syntax->datum stx))))
    (define-syntax first-name (lambda (stx) (syntax-case stx () ((_ x) (symbol->string #'x)))))
    (display (list (size 1 2 3) (first-name foo)))
    """
    assert run(program) == '(4 "foo")'


def test_local_macros() -> None:
    program = """
    (define (f x)
      (let-syntax ((twice (lambda (stx) (syntax-case stx () ((_ e) #'(+ e e (* 0 x)))))))
        (let ((x 100)) (twice x))))
    (display (f 3))
    """
    assert run(program) == "200"


# ---- the design document's examples ----------------------------------------------------------------------------------

DEFINE_STRUCT = """
(define-syntax define-struct
  (syntax-case ()
    [(define-struct name (field ...))
     (with-syntax ([(getter ...)
                    (map (lambda (f)
                           (string->symbol
                             (string-append (symbol->string #'name)
                                           "-"
                                           (symbol->string f))))
                         #'(field ...))])
       #'(begin
           (define (make-name field ...) (vector 'name field ...))
           (define (getter obj) (vector-ref obj 1)) ...))]))
"""


def test_define_struct_as_it_is_written_there() -> None:
    program = (
        DEFINE_STRUCT
        + "(define-struct point (x y)) (define p (make-point 3 4)) (display (list (point-x p) (vector-ref p 0)))"
    )
    assert run(program) == "(3 point)"


def test_define_struct_from_a_library(tmp_path: Path) -> None:
    (tmp_path / "structs.esk").write_text(
        f"(define-library (structs) {CORE} (export define-struct) (begin {DEFINE_STRUCT}))"
    )
    (tmp_path / "main.esk").write_text(
        CORE + "(import (structs)) (define-struct cell (v)) (display (cell-v (make-cell 7)))"
    )
    store = MemoryStore()
    for _ in range(2):  # the second time the library is expanded again: its macro is a procedure
        assert Interpreter(store=store).file(tmp_path / "main.esk") == "7"
        (tmp_path / "main.esk").write_text((tmp_path / "main.esk").read_text() + " ")


# ---- errors ----------------------------------------------------------------------------------------------------------


def test_a_bare_symbol_has_no_meaning() -> None:
    error = fails(
        "(define-syntax m (lambda (stx) (list 'car #''(1))))  (m)", "the symbol car", "datum->syntax", "#'car"
    )
    assert error.span is not None
    assert error.span.column == 54
    assert run("(define-syntax m (lambda (stx) (list #'car #''(1))))  (display (m))") == "1"


def test_what_is_no_syntax() -> None:
    fails("(define-syntax m (lambda (stx) car)) (m)", "gives a procedure")
    fails("(define-syntax m 5) (m)", "no transformer")
    fails("(define-syntax m (car '(5))) (m)", "no procedure: 5")


def test_no_clause_takes_the_use() -> None:
    error = fails("(define-syntax m (lambda (stx) (syntax-case stx () ((_ x) #'x))))\n(m 1 2)", "`m` takes (m 1 2)")
    assert error.span is not None
    assert error.span.line == 3


def test_errors_of_the_macro_itself() -> None:
    macro = """(define-syntax m (lambda (stx) (syntax-case stx ()
        ((_ x) (identifier? #'x) #''x)
        ((_ x) (syntax-violation 'm "a name belongs here" stx #'x)))))"""
    error = fails(macro + "(m (+ 1 2))", "m: a name belongs here: (+ 1 2)")
    assert error.span is not None
    assert error.span.text[error.span.column - 1 :].startswith("(+ 1 2)")
    fails("(define-syntax m (lambda (stx) (datum->syntax stx 'x))) (m)", "datum->syntax takes an identifier")
    fails("(define-syntax m (lambda (stx) (free-identifier=? stx stx))) (m)", "compares identifiers; (m) is none")
    fails("(define-syntax m (lambda (stx) (generate-temporaries 5))) (m)", "takes a list")
    fails("(define-syntax m (lambda (s) (syntax-case s () ((_ x) #`(1 #,@#'x))))) (m 5)", "no list: 5")


def test_what_runs_when() -> None:
    fails("(define (f x) x) (define-syntax m (lambda (s) (f s))) (m)", "calls f, which has no value yet", "put f into")
    fails(
        "(define (g x) (let-syntax ((m (lambda (stx) #`(+ #,x)))) (m)))", "`x` has no value while macros are expanded"
    )


def test_definitions_for_syntax() -> None:
    program = """
    (begin-for-syntax
      (define (twice x) (list #'list x x))
      (define count 0))
    (define-for-syntax (next) (set! count (+ count 1)) count)
    (define-syntax m (lambda (s) (syntax-case s () ((_ x) (twice #'x)))))
    (define-syntax numbered (lambda (s) (next)))
    (display (list (m (+ 1 2)) (numbered) (numbered)))
    """
    assert run(program) == "((3 3) 1 2)"
    fails("(define-for-syntax (f) 1) (display (f))", "f is defined for macros, and is not there when the program runs")
    fails("(define x 1) (begin-for-syntax (define y x))", "begin-for-syntax calls x, which has no value yet")
    fails("(define (f) (begin-for-syntax (define y 1)) 2)", "belongs at the top level")


def test_helpers_come_from_libraries(tmp_path: Path) -> None:
    (tmp_path / "help.esk").write_text(
        f"(define-library (help) {CORE} (export twice) (begin (define (twice x) (list #'list x x))))"
    )
    (tmp_path / "main.esk").write_text(
        CORE
        + "(import (help)) (define-syntax m (lambda (s) (syntax-case s () ((_ x) (twice #'x))))) (display (m (+ 1 2)))"
    )
    world = Interpreter()
    assert world.file(tmp_path / "main.esk") == "(3 3)"
    assert world.ran == ["(help)", "program"]  # once, though the macro needed it before the program


def test_at_a_prompt_what_was_defined_before_can_be_called() -> None:
    world = Interpreter()
    prompt = world.world.interaction(default=False)
    world.type_in(prompt, CORE)
    world.type_in(prompt, "(define (twice x) (list #'list x x))")
    world.type_in(prompt, "(define-syntax m (lambda (s) (syntax-case s () ((_ x) (twice #'x)))))")
    assert world.type_in(prompt, "(m 4)") == "(4 4)"


# ---- core forms as text ----------------------------------------------------------------------------------------------


def expanded(program: str, width: int = 100) -> str:
    module = Interpreter().world.program(Source("<test>", CORE + program))
    assert module.unit is not None
    return "\n".join(pretty(datum, width) for datum in unit_data(module.unit))


def test_core_forms_are_shown_as_programs() -> None:
    swap = "(define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))"
    program = swap + "(define tmp 1) (define other 2) (swap! tmp other) (define (f x . y) (let ((x x)) (list x y)))"
    assert expanded(program) == (
        "(define tmp 1)\n(define other 2)\n(let ((tmp.1 tmp)) (set! tmp other) (set! other tmp.1))\n"
        "(define (f x . y) (let ((x.1 x)) (list x.1 y)))"
    )
    again = expanded(expanded(program))
    assert again == expanded(program)  # it is a program, and means the same


def test_long_forms_take_several_lines() -> None:
    program = '(define (f x) (if (= x 1) (list \'one "two" #(3 4)) (let ((y (f (- x 1)))) (+ y y y y y y y y y))))'
    shown = expanded(program, 40)
    assert max(map(len, shown.splitlines())) <= 40
    assert expanded(shown) == expanded(program)
    assert shown.splitlines()[:3] == ["(define (f x)", "  (if (= x 1)", "      (list 'one \"two\" '#(3 4))"]
