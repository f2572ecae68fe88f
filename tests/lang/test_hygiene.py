"""Hygiene: what macros introduce neither captures nor is captured. Examples from R7RS and the literature."""

from __future__ import annotations

import random

import pytest
from evaluate import Machine, result
from hypothesis import given
from hypothesis import strategies as st

from batches import of_each
from eshkol.errors import BadSyntax, UnboundName
from eshkol.lang import core
from eshkol.lang.datum import Symbol
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.lang.syntax import Syntax, to_syntax

SWAP = "(define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))"
MY_OR = """(define-syntax my-or (syntax-rules ()
  ((_) #f) ((_ e) e) ((_ e1 e2 ...) (let ((temp e1)) (if temp temp (my-or e2 ...))))))"""

CASES = {
    "swap of tmp": (SWAP + "(let ((tmp 1) (other 2)) (swap! tmp other) (list tmp other))", "(2 1)"),
    "my-or and temp": (MY_OR + "(let ((temp 5)) (my-or #f temp))", "5"),
    "my-or and if (R7RS 4.3.2)": (
        """(letrec-syntax
             ((my-or (syntax-rules ()
                ((my-or) #f) ((my-or e) e)
                ((my-or e1 e2 ...) (let ((temp e1)) (if temp temp (my-or e2 ...)))))))
           (let ((x #f) (y 7) (temp 8) (let odd?) (if even?))
             (my-or x (let temp) (if y) y)))""",
        "7",
    ),
    "given-that (R7RS 4.3.1)": (
        """(let-syntax ((given-that (syntax-rules ()
              ((_ test stmt1 stmt2 ...) (if test (begin stmt1 stmt2 ...))))))
             (let ((if #t)) (given-that if (set! if 'now)) if))""",
        "now",
    ),
    "outer x (R7RS 4.3.1)": (
        "(let ((x 'outer)) (let-syntax ((m (syntax-rules () ((m) x)))) (let ((x 'inner)) (m))))",
        "outer",
    ),
    "if as a variable": ("(define (f if) (list if)) (f 1)", "(1)"),
    "define as a variable": ("(let ((define list) (x 1)) (define x 2))", "(1 2)"),
    "quote as a variable": ("(let ((quote -)) '5)", "-5"),
    "else as a variable": ("(let ((else #f)) (cond (else 1) (#t 2)))", "2"),
    "let-syntax does not see itself": (
        """(define-syntax m (syntax-rules () ((_) 'outer)))
           (let-syntax ((m (syntax-rules () ((_ x) (list 'inner (m)))))) (m 1))""",
        "(inner outer)",
    ),
    "letrec-syntax sees itself": (
        """(letrec-syntax ((ev? (syntax-rules () ((_) #t) ((_ x . r) (od? . r))))
                           (od? (syntax-rules () ((_) #f) ((_ x . r) (ev? . r)))))
             (list (ev? a b c) (ev? a b)))""",
        "(#f #t)",
    ),
    "let-syntax has a body of its own": (
        "(define x 1) (let-syntax ((m (syntax-rules () ((_ n) (define n 2))))) (m x) x) (list x)",
        "(1)",
    ),
    "what a body of letrec-syntax defines is not what its macros mean": (
        "(define y 'outer) (letrec-syntax ((m (syntax-rules () ((_) y)))) (define y 'inner) (list y (m)))",
        "(inner outer)",
    ),
    "local macro over local variable": (
        "(let ((x 1)) (let-syntax ((get (syntax-rules () ((_) x)))) (let ((x 2)) (list x (get)))))",
        "(2 1)",
    ),
    "macro passes its own name on": (
        """(define-syntax my-let1 (syntax-rules () ((_ x v e) (let ((x v)) e))))
           (define-syntax twice (syntax-rules () ((_ e) (my-let1 x 2 (* x e)))))
           (let ((x 21)) (twice x))""",
        "42",
    ),
    "a macro makes a macro over its argument": (
        """(define-syntax def-get (syntax-rules () ((_ name v) (define-syntax name (syntax-rules () ((_) v))))))
           (define y 10) (def-get get-y y) (let ((y 11)) (list y (get-y)))""",
        "(11 10)",
    ),
    "definitions of a macro are its own": (
        """(define-syntax def-hidden (syntax-rules () ((_ get v) (begin (define hidden v) (define (get) hidden)))))
           (define hidden 'mine) (def-hidden a 1) (def-hidden b 2) (list hidden (a) (b))""",
        "(mine 1 2)",
    ),
    "definitions with a name that is passed in": (
        "(define-syntax def (syntax-rules () ((_ n v) (define n v)))) (def x 5) (list x)",
        "(5)",
    ),
    "the same in a body": (
        """(define-syntax def-hidden (syntax-rules () ((_ get v) (begin (define hidden v) (define (get) hidden)))))
           (let () (define hidden 'mine) (def-hidden a 1) (def-hidden b 2) (list hidden (a) (b)))""",
        "(mine 1 2)",
    ),
    "a macro of the same body (use-site scopes)": (
        """(define-syntax identity (syntax-rules () ((_ misc) (lambda (x) (let ((misc 'other)) x)))))
           ((identity x) 1)""",
        "1",
    ),
    "the same in an inner body": (
        """(let () (define-syntax identity (syntax-rules () ((_ misc) (lambda (x) (let ((misc 'other)) x)))))
             ((identity x) 1))""",
        "1",
    ),
    "the same under letrec-syntax": (
        """(letrec-syntax ((identity (syntax-rules () ((_ misc) (lambda (x) (let ((misc 'other)) x))))))
             ((identity x) 1))""",
        "1",
    ),
    "a macro defines what its use names, in its own body": (
        """(let () (define-syntax def (syntax-rules () ((_ n v) (begin (define n v) (define x 'macro)))))
             (def x 1) x)""",
        "1",
    ),
    "a macro refers to what is defined further down": (
        "(define-syntax m (syntax-rules () ((_) (helper 1)))) (define (f) (m)) (define (helper x) (list x)) (f)",
        "(1)",
    ),
    "shadowed macro": (
        "(define-syntax m (syntax-rules () ((_ x) 'macro))) (let ((m (lambda (x) 'procedure))) (m 1))",
        "procedure",
    ),
    "macro by another name": ("(define-syntax my-if if) (my-if #f 1 2)", "2"),
    "parameter and inner definition of one name": ("((lambda (x) (define x 2) x) 1)", "2"),
    "a macro binds several names it made up": (
        """(define-syntax m (syntax-rules () ((_ "go" (t ...) (e) ) (let ((t e) ...) (list t ...)))
                                             ((_ "go" (t ...) (e r ...) ) 0)
                                             ((_ a b) (let ((t a) (u b)) (list t u)))))
           (let ((t 1) (u 2)) (m u t))""",
        "(2 1)",
    ),
    "loop with a name of the use": (
        """(define-syntax while (syntax-rules ()
             ((_ c body ...) (let lp () (when c body ... (lp))))))
           (define (f) (let ((i 0) (lp 10)) (while (< i 5) (set! i (+ i 1)) (set! lp (+ lp 1))) lp)) (f)""",
        "15",
    ),
    "nested quotes of names": ("(define-syntax q (syntax-rules () ((_ x) '(x y)))) (q z)", "(z y)"),
    "unbound names of templates are those of the definition": (
        "(define (g) (m)) (define-syntax m (syntax-rules () ((_) y))) (define y 3) (let ((y 4)) (g))",
        "3",
    ),
    "my-or two (Clinger and Rees)": (
        """(define-syntax push (syntax-rules () ((_ v x) (set! x (cons v x)))))
           (let ((stuff '()) (cons list)) (push 1 stuff) (push 2 stuff) stuff)""",
        "(2 1)",
    ),
    "a literal bound alike on both sides": (
        """(define in 1)
           (define-syntax m (syntax-rules (in) ((_ in) 'yes) ((_ x) 'no)))
           (list (m in) (let ((in 2)) (m in)))""",
        "(yes no)",
    ),
    "a macro that defines a macro that defines": (
        """(define-syntax a (syntax-rules () ((_ n) (define-syntax n (syntax-rules () ((_ k v) (define k v)))))))
           (a b) (b c 5) (list c)""",
        "(5)",
    ),
    "bound-identifier counts for pattern variables": (
        """(define-syntax mk (syntax-rules () ((_ y) (define-syntax inner (syntax-rules () ((_ x) (list x 'y)))))))
           (let () (define-syntax mk2 (syntax-rules () ((_ x e) (let-syntax ((f (syntax-rules () ((_ y) (list x y)))))
              (f e)))))
            (mk2 1 2))""",
        "(1 2)",
    ),
}


@of_each("name", CASES)
def test_hygiene(name: str) -> None:
    program, value = CASES[name]
    assert result(program) == value


def test_definitions_of_macros_cannot_be_seen() -> None:
    program = "(define-syntax def-hidden (syntax-rules () ((_) (define hidden 1)))) (def-hidden) (list hidden)"
    with pytest.raises(UnboundName):
        result(program)


def test_at_a_prompt() -> None:
    machine = Machine("repl")
    machine.run("(define-syntax def-hidden (syntax-rules () ((_ g) (begin (define hidden 1) (define (g) hidden)))))")
    machine.run("(define (f) (later 1))")
    machine.run("(def-hidden get)")
    machine.run("(define (later x) (list x hidden))")
    machine.run("(define hidden 'mine)")
    assert machine.run("(list (f) (get))").items[1] == 1
    machine.run("(define hidden 'changed)")
    assert machine.run("(f)").items[1] is Symbol("changed")
    machine.run("(define-syntax identity (syntax-rules () ((_ misc) (lambda (x) (let ((misc 'other)) x)))))")
    assert machine.run("((identity x) 7)") == 7
    machine.run("(define if list)")
    assert len(machine.run("(if 1 2 3)").items) == 3


def test_a_name_may_not_change_its_meaning_in_a_body() -> None:
    with pytest.raises(BadSyntax, match="used before with another meaning"):
        result("(let () (when #t 1) (define (when . x) x) (when 1))")
    with pytest.raises(BadSyntax, match="used before with another meaning"):
        result("(let () (define define 1) define)")
    # of another name that only looks the same that is not so
    program = """(define-syntax m (syntax-rules () ((_ e) (begin (define when 1) (list when e)))))
                 (let () (when #t 1) (m 2))"""
    assert result(program) == "(1 2)"


# ---- procedures as transformers --------------------------------------------------------------------------------------

PROCEDURAL = {
    "or by hand": (
        """(define-syntax (my-or stx)
             (syntax-case stx ()
               ((_) #'#f) ((_ e) #'e) ((_ e r ...) #'(let ((t e)) (if t t (my-or r ...))))))
           (let ((t 5) (if list)) (my-or #f t))""",
        "5",
    ),
    "loop with break by datum->syntax": (
        """(define-syntax loop
             (lambda (stx)
               (syntax-case stx ()
                 ((k e ...)
                  (with-syntax ((break (datum->syntax #'k 'break)))
                    #'(let ((break (lambda (x) (list 'out x)))) e ...))))))
           (list (loop 1 (break 2)) (let ((break 5)) (loop (break 3))))""",
        "((out 2) (out 3))",
    ),
    "fenders": (
        """(define-syntax kind
             (lambda (stx)
               (syntax-case stx ()
                 ((_ x) (identifier? #'x) #''name)
                 ((_ x) (pair? (syntax->datum #'x)) #''list)
                 ((_ x) #''other))))
           (list (kind a) (kind (1 2)) (kind 5))""",
        "(name list other)",
    ),
    "map over a template": (
        """(define-syntax rev
             (lambda (stx)
               (syntax-case stx ()
                 ((_ (a b) ...)
                  (with-syntax (((c ...) (map (lambda (x y) (list y x)) #'(a ...) #'(b ...))))
                    #''(c ...))))))
           (rev (1 2) (3 4))""",
        "((2 1) (4 3))",
    ),
    "quasisyntax": (
        """(define-syntax m
             (lambda (stx)
               (syntax-case stx ()
                 ((_ x y ...)
                  #`(list x #,(+ 1 2) #,@(map (lambda (s) #`(list #,s)) #'(y ...)) '#(#,@#'(y ...)) . #,(list #'x))))))
           (let ((list list)) (m 1 2 3))""",
        "(1 3 (2) (3) #(2 3) 1)",
    ),
    "literals of syntax-case": (
        """(define-syntax m
             (lambda (stx) (syntax-case stx (else) ((_ else) #''else) ((_ x) #''other))))
           (list (m else) (let ((else 1)) (m else)))""",
        "(else other)",
    ),
    "identifier macro": (
        """(define-syntax five (lambda (stx) (syntax-case stx () ((_ x) #'(+ x 5)) (id (identifier? #'id) #'5))))
           (list five (five 2))""",
        "(5 7)",
    ),
    "temporaries": (
        """(define-syntax my-letrec
             (lambda (stx)
               (syntax-case stx ()
                 ((_ ((i v) ...) e ...)
                  (with-syntax (((t ...) (map (lambda (x) (car (cdr (list x #'temp)))) #'(i ...))))
                    #'(let ((i #f) ...) (set! i v) ... (let () e ...)))))))
           (my-letrec ((f (lambda (n) (if (= n 0) 'done (g n)))) (g (lambda (n) (f (- n 1))))) (f 3))""",
        "done",
    ),
    "nested templates with ellipses": (
        """(define-syntax m
             (lambda (stx)
               (syntax-case stx ()
                 ((_ (n v ...) ...) #'(list (list 'n (list v ...)) ...)))))
           (m (a 1 2) (b) (c 3))""",
        "((a (1 2)) (b ()) (c (3)))",
    ),
    "a transformer in a body": (
        """(let ((x 1))
             (define-syntax get (lambda (stx) (syntax-case stx () ((_ e) #'(list x e)))))
             (let ((x 2)) (get x)))""",
        "(1 2)",
    ),
}


@pytest.mark.parametrize("name", PROCEDURAL)
def test_syntax_case(name: str) -> None:
    program, value = PROCEDURAL[name]
    assert result(program) == value


def test_errors_of_transformers() -> None:
    with pytest.raises(BadSyntax, match="has no value while macros are expanded"):
        result("(let ((x 1)) (define-syntax m (lambda (stx) x)) (m))")
    with pytest.raises(BadSyntax, match="pattern variable `a` stands outside of a template"):
        result("(define-syntax m (lambda (stx) (syntax-case stx () ((_ a) a)))) (m 1)")
    with pytest.raises(BadSyntax, match="no clause of syntax-case"):
        result("(define-syntax m (lambda (stx) (syntax-case stx () ((_ a) #'a)))) (m)")


# ---- renaming local variables changes nothing ------------------------------------------------------------------------


def shape(unit: core.Unit) -> object:
    """A unit as plain data, in which variables are numbers in the order of their appearance."""
    numbers: dict[int, int] = {}

    def walk(node: object) -> object:
        if isinstance(node, core.Variable):
            return ("variable", numbers.setdefault(id(node), len(numbers)), node.assigned)
        if isinstance(node, core.Cell):
            return ("cell", node.name)
        if isinstance(node, list):
            return [walk(item) for item in node]
        if isinstance(node, core.Const):
            return ("const", node.datum)
        if isinstance(node, core.Lambda):
            return ("lambda", walk(node.clauses))
        if isinstance(node, (core.Node, core.Clause)):
            names = [name for name in type(node).__slots__ if name not in ("place", "name", "source", "doc")]
            return (type(node).__name__, *(walk(getattr(node, name)) for name in names))
        return node

    return [walk(form) for form in unit.forms]


NAMES = ["a", "b", "tmp", "temp", "if", "let", "list", "x", "loop", "define", "else", "quote", "set!", "my-or", "swap!"]


def random_expression(rng: random.Random, depth: int, scope: list[int]) -> object:
    """An expression over variables by number: ("v", n); forms of the language are symbols of their own."""
    kinds = ["v", "v", "number", "call", "if", "let", "lambda", "or", "swap", "named", "while", "cond"]
    kind = rng.choice(kinds) if depth else rng.choice(["v", "number"])
    if kind == "v" and scope:
        return ("v", rng.choice(scope))
    sub = lambda more=(): random_expression(rng, depth - 1, [*scope, *more])
    fresh = lambda: rng.randrange(10**9)
    if kind == "call":
        return ["LIST", sub(), sub()]
    if kind == "if":
        return ["IF", sub(), sub(), sub()]
    if kind == "or":
        return ["MY-OR", sub(), sub(), sub()]
    if kind == "cond":
        return ["COND", [sub(), sub()], ["ELSE", sub()]]
    if kind == "let":
        one, two = fresh(), fresh()
        return ["LET", [[("v", one), sub()], [("v", two), sub()]], ["BEGIN-DEFS", sub((one, two)), sub((one, two))]]
    if kind == "lambda":
        one = fresh()
        return ["LAMBDA", [("v", one)], sub((one,))]
    if kind == "named":
        loop, one = fresh(), fresh()
        return ["LET", ("v", loop), [[("v", one), sub()]], sub((loop, one))]
    if kind == "while":
        one = fresh()
        return ["TWICE", ("v", one), sub((one,))]
    if kind == "swap" and len(scope) > 1:
        return ["SWAP!", ("v", rng.choice(scope)), ("v", rng.choice(scope))]
    return rng.randrange(10)


PRELUDE = f"""{SWAP} {MY_OR}
(define-syntax twice (syntax-rules () ((_ v e) (let ((x 1) (tmp 2)) (lambda (v) (list x tmp e))))))
(define-syntax LIST (syntax-rules () ((_ . r) (list . r)))) (define-syntax IF (syntax-rules () ((_ . r) (if . r))))
(define-syntax MY-OR (syntax-rules () ((_ . r) (my-or . r)))) (define-syntax LET (syntax-rules () ((_ . r) (let . r))))
(define-syntax LAMBDA (syntax-rules () ((_ . r) (lambda . r))))
(define-syntax TWICE (syntax-rules () ((_ . r) (twice . r))))
(define-syntax SWAP! (syntax-rules () ((_ . r) (swap! . r)))) (define-syntax ELSE else)
(define-syntax COND (syntax-rules () ((_ . r) (cond . r))))
(define-syntax BEGIN-DEFS (syntax-rules () ((_ a b) (let () (define tmp a) (define (f x) (if tmp x b)) (f tmp)))))
"""
UNIQUE = Machine()  # not run: only for its bindings
FORMS = read(Source("prelude", PRELUDE))


def expanded(expression: object, names: dict[int, str]) -> object:
    def syntax(part: object) -> Syntax:
        if isinstance(part, tuple):
            return to_syntax(None, Symbol(names[part[1]]))
        if isinstance(part, list):
            from eshkol.lang.datum import List

            return to_syntax(None, List([syntax(item) for item in part]))
        return to_syntax(None, Symbol(part) if isinstance(part, str) else part)

    machine = Machine()
    return shape(machine.expander.expand_unit([*FORMS, syntax(expression)], machine.namespace))


def variables_of(expression: object) -> set[int]:
    if isinstance(expression, tuple):
        return {expression[1]}
    return set().union(*map(variables_of, expression)) if isinstance(expression, list) else set()


@given(st.integers(0, 2**32))
def test_names_of_local_variables_do_not_matter(seed: int) -> None:
    """Variables may be called `if`, `let` or `tmp`: as forms are spelt by other names, the core is the same.

    A variable may even have the name of another one, if no expression in its scope means that other one.
    """
    rng = random.Random(seed)
    expression = random_expression(rng, 5, [])
    numbers = sorted(variables_of(expression))
    plain = expanded(expression, {number: f"v{number}" for number in numbers})
    pool = [*NAMES, *(f"w{index}" for index in range(len(numbers)))]
    rng.shuffle(pool)
    renamed = expanded(expression, dict(zip(numbers, pool, strict=False)))
    assert plain == renamed
