"""syntax-rules: patterns, templates, ellipses, and what is said when they are wrong."""

from __future__ import annotations

import gc
from contextlib import nullcontext
from typing import Any

import pytest
from evaluate import result

from eshkol.errors import BadSyntax
from eshkol.lang.core import Cell
from eshkol.lang.datum import text
from eshkol.lang.expander import Expander, core_forms
from eshkol.lang.namespaces import Namespace
from eshkol.lang.reader import read
from eshkol.lang.rules import SyntaxRules
from eshkol.lang.source import Source
from eshkol.lang.syntax import Syntax, to_datum

CASES = [
    # (rules, use, value)
    ("((_ a ...) '(a ...))", "(m 1 2 3)", "(1 2 3)"),
    ("((_ a ...) '(a ...))", "(m)", "()"),
    ("((_ (a b) ...) '((b a) ...))", "(m (1 2) (3 4))", "((2 1) (4 3))"),
    ("((_ (a b ...) ...) '((a ...) (b ... ...)))", "(m (1 2 3) (4) (5 6))", "((1 4 5) (2 3 6))"),
    ("((_ (a b ...) ...) '((a (b ...)) ...))", "(m (1 2 3) (4))", "((1 (2 3)) (4 ()))"),
    ("((_ (a b ...) ...) '((a b) ... ...))", "(m (1 2 3) (4 5))", "((1 2) (1 3) (4 5))"),
    ("((_ (a b ...) ...) '(((a b) ...) ...))", "(m (1 2 3) (4 5))", "(((1 2) (1 3)) ((4 5)))"),
    ("((_ (x ...) (y ...) ...) '(((x y) ...) ...))", "(m (a b) (1 2) (3 4))", "(((a 1) (b 2)) ((a 3) (b 4)))"),
    ("((_ a b ... c d) '(a (b ...) c d))", "(m 1 2 3 4 5)", "(1 (2 3) 4 5)"),
    ("((_ a ... b) '((a ...) b))", "(m 1)", "(() 1)"),
    ("((_ a ... b . c) '((a ...) b c))", "(m 1 2 3 . 4)", "((1 2) 3 4)"),
    ("((_ a ... b . c) '((a ...) b c))", "(m 1 2 3)", "((1 2) 3 ())"),
    ("((_ . a) 'a)", "(m 1 2)", "(1 2)"),
    ("((_ a . b) '(b . a))", "(m 1 2 3)", "((2 3) . 1)"),
    ("((_ a . b) '(x y . b))", "(m 1 . 2)", "(x y . 2)"),
    ("((_ #(a b ...)) '(a b ...))", "(m #(1 2 3))", "(1 2 3)"),
    ("((_ a ...) '#(a ... end))", "(m 1 2)", "#(1 2 end)"),
    ("((_ #((a b) ...)) '(a ... b ...))", "(m #((1 2) (3 4)))", "(1 3 2 4)"),
    ("((_ #()) 'empty) ((_ #(a)) 'one)", "(m #(1))", "one"),
    ("((_ 1) 'one) ((_ \"two\") 'two) ((_ #\\3) 'three) ((_ #t) 'true) ((_ 1.5) 'float)", '(m "two")', "two"),
    ("((_ 1) 'one) ((_ 1.0) 'float)", "(m 1.0)", "float"),
    ("((_ _ a _) 'a)", "(m 1 2 3)", "2"),
    ("((_ (a ...) ...) '((a ... end) ...))", "(m (1 2) () (3))", "((1 2 end) (end) (3 end))"),
    ("((_ a ...) '((... ...) a ...))", "(m 1 2)", "(... 1 2)"),
    ("((_ a) '(... (a ...)))", "(m 1)", "(1 ...)"),
    ("((_ () a) 'nothing) ((_ (b . c) a) 'something)", "(m (1) 2)", "something"),
    ("((_ a b ...) '((a b) ...))", "(m 1 2 3)", "((1 2) (1 3))"),
    ("((_ ((a ...) ...) ...) '(a ... ... ...))", "(m ((1 2) (3)) ((4) ()))", "(1 2 3 4)"),
    (
        "((_ (a b ...) ...) '((((x a ...) b) ...) ...))",
        "(m (1 2 3) (4 5))",
        "((((x 1 4) 2) ((x 1 4) 3)) (((x 1 4) 5)))",
    ),
    ("((_ (a ...) (b ...)) '((a ... b) ...))", "(m (1 2) (3 4))", "((1 2 3) (1 2 4))"),
    ("((_ [a b]) '(a . b))", "(m (1 2))", "(1 . 2)"),
]


@pytest.mark.parametrize(("rules", "use", "value"), CASES)
def test_patterns_and_templates(rules: str, use: str, value: str) -> None:
    assert result(f"(define-syntax m (syntax-rules () {rules})) {use}") == value


def test_custom_ellipsis() -> None:
    assert result("(define-syntax m (syntax-rules ::: () ((_ (a b :::) :::) '((b ::: a) :::)))) (m (1 2 3) (4))") == (
        "((2 3 1) (4))"
    )
    # with another ellipsis, ... is a name like others
    assert result("(define-syntax m (syntax-rules ::: () ((_ a :::) '(... a :::)))) (m 1 2)") == "(... 1 2)"


def test_be_like_begin() -> None:
    program = """
    (define-syntax be-like-begin
      (syntax-rules ()
        ((be-like-begin name)
         (define-syntax name
           (syntax-rules ()
             ((name expr (... ...))
              (begin expr (... ...))))))))
    (be-like-begin sequence)
    (sequence 1 2 3 4)"""
    assert result(program) == "4"


MORE = {
    "an escaped macro in a template": (
        """(define-syntax be-like-begin (syntax-rules ()
             ((_ name) (define-syntax name (... (syntax-rules () ((name expr ...) (begin expr ...))))))))
           (be-like-begin sequence) (sequence 2 3 4 5)""",
        "5",
    ),
    "an inner macro with another ellipsis": (
        """(define-syntax be-like-begin (syntax-rules ()
             ((_ name) (define-syntax name (syntax-rules dots () ((_ expr dots) (begin expr dots)))))))
           (be-like-begin sequence) (sequence 3 4 5 6)""",
        "6",
    ),
    "an inner macro whose ellipsis is passed in": (
        """(let () (define-syntax ell2 (syntax-rules ()
             ((_ name dots) (define-syntax name (syntax-rules dots () ((_ x dots) (list x dots)))))))
             (ell2 m ooo) (m 1 2))""",
        "(1 2)",
    ),
    "escapes": (
        """(define-syntax m (syntax-rules ()
             ((_) '(... ...)) ((_ x) '(... (x ...))) ((_ x y) '(... (... x y)))))
           (list (m) (m 100) (m 100 200))""",
        "(... (100 ...) (... 100 200))",
    ),
    "several underscores": (
        """(define-syntax count (syntax-rules () ((_) 0) ((_ _) 1) ((_ _ _) 2) ((_ . _) 'many)))
           (list (count) (count a) (count a b) (count a b c))""",
        "(0 1 2 many)",
    ),
    "a hidden definition and a macro over it": (
        """(define-syntax jabberwocky (syntax-rules () ((_ hatter)
             (begin (define march-hare 42) (define-syntax hatter (syntax-rules () ((_) march-hare)))))))
           (jabberwocky mad-hatter) (mad-hatter)""",
        "42",
    ),
    "definitions that refer to one another": (
        """(define-syntax ffoo (syntax-rules () ((_ ff) (begin (define (ff x) (gg x)) (define (gg x) (* x x))))))
           (define (gg x) 'wrong) (ffoo ff) (ff 10)""",
        "100",
    ),
    "one name in three roles": (
        """(let ((a 1))
             (letrec-syntax ((foo (syntax-rules () ((_ b) (bar a b))))
                             (bar (syntax-rules () ((_ c d) (cons c (let ((c 3)) (list d c 'c)))))))
               (let ((a 2)) (foo a))))""",
        "(1 2 3 a)",
    ),
    "a macro used in the macro that it makes": (
        """(let ((x 1))
             (let-syntax ((foo (syntax-rules () ((_ y)
                (let-syntax ((bar (syntax-rules () ((_) (let ((x 2)) y))))) (bar))))))
               (foo x)))""",
        "1",
    ),
    "the same with its own variable": (
        """(let ((x 1))
             (let-syntax ((foo (syntax-rules () ((_ y)
                (bar y)))) (bar (syntax-rules () ((_ y) (list y 'outer)))))
               (let ((x 2)) (list x))))""",
        "(2)",
    ),
    "an ellipsis that is a variable": (
        """(let ((... 2))
             (let-syntax ((s (syntax-rules () ((_ x ...) 'bad) ((_ . r) 'ok)))) (s a b c)))""",
        "ok",
    ),
    "else that is imported and passed on": (
        """(define-syntax my-cond (syntax-rules (else) ((_ c ... (else e)) (cond c ... (else e)))))
           (my-cond (#f 1) (else 2))""",
        "2",
    ),
    "literals in the middle": (
        """(define-syntax my-if (syntax-rules (then otherwise)
             ((_ c then a ... otherwise b) (if c (list a ...) (list b)))))
           (list (my-if #t then 1 2 otherwise 3) (my-if #f then otherwise 3))""",
        "((1 2) (3))",
    ),
    "vectors within vectors": (
        """(define-syntax m (syntax-rules () ((_ #(#(a b ...) ...)) '#((a ...) #(b ... ...)))))
           (m #(#(1 2) #(3) #(4 5 6)))""",
        "#((1 3 4) #(2 5 6))",
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_more(name: str) -> None:
    program, value = MORE[name]
    assert result(program) == value


def test_ellipsis_as_literal() -> None:
    program = """
    (define-syntax m (syntax-rules (...) ((_ ... a) 'dots) ((_ a b) 'none)))
    (list (m ... 1) (m 2 1))"""
    assert result(program) == "(dots none)"
    # R7RS 4.3.2: an underscore among the literals is a literal
    program = "(define-syntax m (syntax-rules (_) ((m _) 'under) ((m a) 'other))) (list (m _) (m 5))"
    assert result(program) == "(under other)"


def test_literals_mean_what_they_mean_at_the_definition() -> None:
    program = """
    (define-syntax m (syntax-rules (else =>) ((_ else) 'else) ((_ =>) 'arrow) ((_ x) 'other)))
    (list (m else) (m =>) (m 1) (let ((else 1)) (m else)) (let ((=> 1)) (m =>)))"""
    assert result(program) == "(else arrow other other other)"
    assert result("(let ((=> #f)) (cond (#t => 'ok)))") == "ok"


def test_unbound_literals_match_by_name() -> None:
    program = """
    (define-syntax for (syntax-rules (in) ((_ x in l body) (map (lambda (x) body) l))))
    (for y in '(1 2 3) (* y y))"""
    assert result(program) == "(1 4 9)"


def test_let_as_a_macro() -> None:
    program = """
    (define-syntax my-let
      (syntax-rules ()
        ((_ ((name val) ...) body1 body2 ...) ((lambda (name ...) body1 body2 ...) val ...))
        ((_ tag ((name val) ...) body1 body2 ...)
         ((letrec ((tag (lambda (name ...) body1 body2 ...))) tag) val ...))))
    (list (my-let ((a 1) (b 2)) (+ a b)) (my-let loop ((i 0) (s 0)) (if (< i 5) (loop (+ i 1) (+ s i)) s)))"""
    assert result(program) == "(3 10)"


def test_recursive_macros() -> None:
    program = """
    (define-syntax my-cond
      (syntax-rules (else)
        ((_ (else e ...)) (begin e ...))
        ((_ (c e ...) clause ...) (if c (begin e ...) (my-cond clause ...)))))
    (define-syntax reverse-list
      (syntax-rules () ((_ () (done ...)) '(done ...)) ((_ (a b ...) (done ...)) (reverse-list (b ...) (a done ...)))))
    (list (my-cond (#f 1) ((= 1 1) 2) (else 3)) (reverse-list (1 2 3) ()))"""
    assert result(program) == "(2 (3 2 1))"


def test_letrec_in_the_way_of_r7rs() -> None:
    program = """
    (define-syntax my-letrec
      (syntax-rules ()
        ((_ ((var1 init1) ...) body ...) (my-letrec "generate_temp_names" (var1 ...) () ((var1 init1) ...) body ...))
        ((_ "generate_temp_names" () (temp1 ...) ((var1 init1) ...) body ...)
         (let ((var1 #f) ...) (let ((temp1 init1) ...) (set! var1 temp1) ... body ...)))
        ((_ "generate_temp_names" (x y ...) (temp ...) ((var1 init1) ...) body ...)
         (my-letrec "generate_temp_names" (y ...) (newtemp temp ...) ((var1 init1) ...) body ...))))
    (my-letrec ((ev? (lambda (n) (if (= n 0) #t (od? (- n 1))))) (od? (lambda (n) (if (= n 0) #f (ev? (- n 1))))))
      (list (ev? 10) (ev? 7)))"""
    assert result(program) == "(#t #f)"


ERRORS = [
    ("(define-syntax m (syntax-rules () ((_ a) a))) (m 1 2)", "no rule of the macro `m` takes (m 1 2)"),
    ("(define-syntax m (syntax-rules () ((_ a ...) a))) (m 1 2)", "`a` needs an ellipsis behind it"),
    ("(define-syntax m (syntax-rules () ((_ (a ...) ...) '(a ...))))", "`a` needs 2 ellipses behind it"),
    ("(define-syntax m (syntax-rules () ((_ a) '(a ...))))", "follows no variable"),
    ("(define-syntax m (syntax-rules () ((_ a) '(x ...))))", "follows no variable"),
    ("(define-syntax m (syntax-rules () ((_ a ... b ...) 1)))", "two ellipses"),
    ("(define-syntax m (syntax-rules () ((_ a a) 1)))", "`a` occurs twice"),
    ("(define-syntax m (syntax-rules () ((_ a) 1 2)))", "a rule is (pattern template)"),
    ("(define-syntax m (syntax-rules () (m 1)))", "the pattern of a rule is a list"),
    ("(define-syntax m (syntax-rules (1) ((_) 1)))", "a literal of syntax-rules must be a name"),
    ("(define-syntax m (syntax-rules))", "this form is not like (syntax-rules"),
    ("(define-syntax m (syntax-rules () ((_ (... ...)) 1)))", "an ellipsis follows nothing"),
    ("(define-syntax m (syntax-rules () ((_ (...)) 1)))", "an ellipsis follows nothing"),
    ("(define-syntax m (syntax-rules () ((_ (a ...) (b ...)) '((a b) ...)))) (m (1 2) (3))", "matched 2 and 1 items"),
    ("(define-syntax m (syntax-rules () ((_ (x ...) ((y ...) ...)) '((x (x y) ...) ...))))", "go through it twice"),
    ("(define-syntax m (syntax-rules () ((_) (m)))) (m)", "the expansion of `m` does not end"),
    ("(define-syntax m (syntax-rules () ((_) (begin (m) (m))))) (m)", "the expansion of `m` does not end"),
    ("(define-syntax m (syntax-rules () ((_) (list (m))))) (list (m))", "the expansion of `m` does not end"),
    ("(define-syntax m (syntax-rules () ((_ a ...) (m a ... a ...)))) (list (m 1 2))", "a macro makes a list of more"),
    (
        "(define-syntax a (syntax-rules () ((_) (b)))) (define-syntax b (syntax-rules () ((_) (a)))) (list (a))",
        "does not end",
    ),
    ("(define-syntax m 5)", "no transformer"),
    ('(define-syntax m (syntax-rules () ((_ x) (syntax-error "bad thing:" x)))) (m (a b))', "bad thing: (a b)"),
]


@pytest.mark.parametrize(("program", "message"), ERRORS)
def test_errors(program: str, message: str) -> None:
    with pytest.raises(BadSyntax) as caught:
        result(program)
    assert message in str(caught.value)
    assert "test.esk:" in str(caught.value)


def test_no_match_lists_the_patterns() -> None:
    with pytest.raises(BadSyntax) as caught:
        result("(define-syntax swap! (syntax-rules () ((_ a b) 1) ((_ a b c) 2)))\n(define (f x)\n  (swap! x))")
    shown = str(caught.value)
    assert "(swap! a b)" in shown
    assert "(swap! a b c)" in shown
    assert "test.esk:3:3" in shown


def test_trace_of_macro_uses() -> None:
    program = """(define-syntax inner (syntax-rules () ((_ x) (if))))
(define-syntax outer (syntax-rules () ((_ x) (list (inner x)))))
(outer 1)"""
    with pytest.raises(BadSyntax) as caught:
        result(program)
    shown = str(caught.value)
    assert shown.index("test.esk:1:46") < shown.index("test.esk:2:52") < shown.index("test.esk:3:1")
    assert "in the expansion of `inner` used here" in shown
    assert "in the expansion of `outer` used here" in shown


def test_rules_are_compiled_where_they_are_defined() -> None:
    """A use runs what the definition has made of patterns and templates; it does not look at them again."""
    (form,) = read(Source("rules", "(syntax-rules () ((_ (a b ...) ... . c) '((b ... a) ... c)) ((_ x) (list x 'y)))"))
    rules = SyntaxRules(form, "m")
    for pattern, template in rules._rules or ():
        pattern.syntax = template.syntax = Syntax(None)
    (use,) = read(Source("use", "(m (1 2 3) (4) . 5)"))
    made = rules.transform(use, Expander(lambda name: Cell("(none)", name)))
    assert text(to_datum(made)) == "(quote ((2 3 1) (4) 5))"


def test_many_items_under_nested_ellipses() -> None:
    size = 3000
    items = " ".join(f"((k{i} {i} 7) v{i})" for i in range(size))
    made = result(f"(define-syntax m (syntax-rules () ((_ ((k x ...) v) ...) '(v ... x ... ...)))) (m {items})")
    assert made == f"({' '.join(f'v{i}' for i in range(size))} {' '.join(f'{i} 7' for i in range(size))})"


def test_collector_waits_only_for_the_expansion() -> None:
    seen = []

    class Watching(Expander):
        def use_form(self, *args: Any) -> Any:
            seen.append(gc.isenabled())
            return super().use_form(*args)

    for written, fails in (("(quote x)", False), ("(quote)", True)):
        namespace = Namespace("program")
        namespace.bind("quote", core_forms()["quote"])
        with pytest.raises(BadSyntax) if fails else nullcontext():
            Watching(lambda name: Cell("(none)", name)).expand_unit(read(Source("t", written)), namespace)
        assert gc.isenabled()
    assert seen == [False, False]
