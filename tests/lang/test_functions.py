"""What becomes of lambdas (codegen/simplify.py and functions.py), the order of definitions, and proper tail calls."""

from __future__ import annotations

import pytest
from compiled import in_session, outcome, written
from evaluate import Machine

from eshkol.codegen.functions import Analysis, LambdaFunction
from eshkol.codegen.nodes import Fix, LetValues, Prim
from eshkol.codegen.primitives import PrimitiveTable
from eshkol.codegen.simplify import Simplifier, children, strong_components
from eshkol.lang import core
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.runtime.scheme_table import layout, rows
from eshkol.session import Session


def simplified(program: str) -> list[core.Node]:
    machine = Machine()
    unit = machine.expander.expand_unit(read(Source("test.esk", program)), machine.namespace)
    simplifier = Simplifier(PrimitiveTable(rows(), layout()))
    return [simplifier.form(form) for form in unit.forms]


def nodes(forms: list[core.Node]) -> list[core.Node]:
    found, stack = [], list(forms)
    while stack:
        found.append(stack.pop())
        stack.extend(children(found[-1]))
    return found


def kind(function: LambdaFunction) -> str:
    if function.inside:
        return "label"
    if not function.escapes:
        return f"function of {', '.join(sorted(v.name for v in function.free)) or 'nothing more'}"
    return "static closure" if function.is_static else f"closure of {', '.join(sorted(v.name for v in function.free))}"


def kinds(program: str) -> dict[str, str]:
    """What becomes of each lambda, by its name."""
    analysis = Analysis.of(simplified(program))
    return {code.name or "?": kind(function) for code, function in analysis.functions.items()}


# ---- what lambdas become --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("(let loop ((i 0)) (if (< i 10) (loop (+ i 1)) i))", {"loop": "label"}),
        ("(define (f n) (let loop ((i 0)) (if (< i n) (loop (+ i 1)) i)))", {"f": "static closure", "loop": "label"}),
        # two loops, one in the other, where the inner one goes on with the outer
        (
            "(define (f n) (let outer ((i 0)) (if (< i n) (let inner ((j 0)) (if (< j i) (inner (+ j 1))"
            " (outer (+ i 1)))) i)))",
            {"f": "static closure", "outer": "label", "inner": "label"},
        ),
        # one that waits for the other's result
        (
            "(define (f n) (let outer ((i 0)) (if (< i n) (+ 1 (let inner ((j 0)) (if (< j i) (inner (+ j 1)) j)))"
            " i)))",
            {"f": "static closure", "outer": "label", "inner": "label"},
        ),
        # a recursion that is no loop takes its free variables as arguments
        (
            "(define (f n k) (let sum ((i 0)) (if (< i n) (+ k (sum (+ i 1))) 0)))",
            {"f": "static closure", "sum": "function of k, n"},
        ),
        # ways through even and odd are loops of one group
        (
            "(define (f n) (letrec ((e (lambda (i) (if (= i 0) #t (o (- i 1))))) (o (lambda (i) (if (= i 0) #f"
            " (e (- i 1)))))) (e n)))",
            {"f": "static closure", "e": "label", "o": "label"},
        ),
        # a value that is needed makes a closure
        ("(define (adder n) (lambda (x) (+ x n)))", {"adder": "static closure", "?": "closure of n"}),
        ("(define (constant) (lambda (x) (+ x 1)))", {"constant": "static closure", "?": "static closure"}),
        (
            "(define (f l k) (let go ((l l)) (if (null? l) '() (cons (go (cdr l)) go))))",
            {"f": "static closure", "go": "static closure"},
        ),
        # a join point: called twice, both times in the end
        ("(define (f a) (let ((g (lambda (x) (* x a)))) (if a (g 1) (g 2))))", {"f": "static closure", "g": "label"}),
        # the same, not in the end
        (
            "(define (f a) (let ((g (lambda (x) (* x a)))) (+ (g 1) (g 2))))",
            {"f": "static closure", "g": "function of a"},
        ),
        # called once, it is put where it is called
        ("(define (f a) (let ((g (lambda (x) (* x a)))) (+ 1 (g 2))))", {"f": "static closure"}),
        ("((lambda (x . r) (list x r)) 1 2 3)", {}),
        # called with a wrong number of arguments, it stays what it is, for the error to be raised
        ("(define (f) (let ((g (lambda (x) x))) (list (g 1) (g))))", {"f": "static closure", "g": "static closure"}),
        # with several clauses, or a rest, it is no label
        (
            "(define (f n) (letrec ((g (case-lambda ((a) (g a 1)) ((a b) (if (= a 0) b (g (- a 1))))))) (g n)))",
            {"f": "static closure", "g": "function of nothing more"},
        ),
        # a loop inside a closure that escapes
        (
            "(define (f n) (lambda () (let loop ((i n)) (if (= i 0) 0 (loop (- i 1))))))",
            {"f": "static closure", "?": "closure of n", "loop": "label"},
        ),
    ],
)
def test_what_becomes_of_lambdas(program: str, expected: dict[str, str]) -> None:
    assert kinds(program) == expected


def test_too_many_free_variables_make_a_closure() -> None:
    names = [f"v{i}" for i in range(9)]
    program = f"(define (f {' '.join(names)}) (let g ((i 0)) (if (= i 5) (+ {' '.join(names)}) (+ 1 (g (+ i 1))))))"
    assert kinds(program)["g"].startswith("closure of v0")
    assert kinds(program.replace("v8", ""))["g"].startswith("function of v0")


# ---- what is made simpler -------------------------------------------------------------------------------------------


def test_bindings_of_constants_and_variables_go() -> None:
    (form,) = simplified("(lambda (a) (let* ((b a) (c 1) (d b)) (+ d c)))")
    assert isinstance(form, core.Lambda)
    body = form.clauses[0].body
    assert isinstance(body, Prim)
    assert body.name == "+"
    first, second = body.args
    assert isinstance(first, core.Local)
    assert first.variable is form.clauses[0].params[0]
    assert isinstance(second, core.Const)
    assert second.datum == 1


def test_assigned_variables_keep_their_bindings() -> None:
    (form,) = simplified("(lambda (a) (let ((b a)) (set! a 5) b))")
    assert isinstance(form, core.Lambda)
    assert isinstance(form.clauses[0].body, core.Let)


def test_tests_that_are_known_are_made() -> None:
    for program in ("(if #t 'yes (car 5))", "(if (not #f) 'yes (car 5))", "(let ((x 1)) (if x 'yes (car 5)))"):
        assert not [n for n in nodes(simplified(program)) if isinstance(n, core.If | Prim) and program[4] != "("]
    swapped = simplified("(lambda (a b) (if (not (not (not a))) 1 2))")
    (test,) = [n for n in nodes(swapped) if isinstance(n, core.If)]
    assert isinstance(test.test, core.Local)
    assert isinstance(test.then, core.Const)
    assert test.then.datum == 2


def test_what_has_no_effect_is_not_done() -> None:
    assert len(nodes(simplified("(let () 1 car (lambda (x) x) 'last)"))) == 1
    assert len(nodes(simplified("(let () (car 5) 'last)"))) > 1  # an error is an effect


def test_several_values_are_bound_without_a_procedure() -> None:
    (form,) = simplified("(call-with-values (lambda () (values 1 2)) (lambda (a . b) (list a b)))")
    assert isinstance(form, LetValues)
    assert form.rest is not None


def test_recursive_bindings_are_sorted() -> None:
    (form,) = simplified("(letrec* ((f (lambda () (g))) (a 1) (g (lambda () (f))) (b (list a))) (list f g a b))")
    fixes = [n for n in nodes([form]) if isinstance(n, Fix)]
    assert sorted(sorted(v.name for v in fix.variables) for fix in fixes) == [["f", "g"]]
    assert not [n for n in nodes([form]) if isinstance(n, core.Letrec | core.SetLocal)]
    (tangled,) = simplified("(letrec* ((f (lambda () a)) (a (f))) a)")
    (early,) = [n.variable for n in nodes([tangled]) if isinstance(n, core.SetLocal)]
    assert early.early
    assert early.name == "a"


def test_strong_components() -> None:
    assert strong_components([[1], [2], [0], [0]]) == [[0, 1, 2], [3]]
    assert strong_components([[], [0], [1]]) == [[0], [1], [2]]
    assert strong_components([[2], [], [1]]) == [[1], [2], [0]]
    long = [[i + 1] for i in range(50_000)] + [[]]
    assert strong_components(long)[0] == [50_000]


def test_simplifying_twice_changes_nothing() -> None:
    machine = Machine()
    text = "(define (f n) (let loop ((i 0) (k n)) (if (not (< i n)) (call-with-values (lambda () k) list) (loop 1 2))))"
    unit = machine.expander.expand_unit(read(Source("test.esk", text)), machine.namespace)
    table = PrimitiveTable(rows(), layout())
    (once,) = [Simplifier(table).form(form) for form in unit.forms]
    before = [type(n) for n in nodes([once])]
    assert [type(n) for n in nodes([Simplifier(table).form(once)])] == before


# ---- order of definitions -------------------------------------------------------------------------------------------


def test_use_before_definition() -> None:
    def work(session: Session) -> None:
        def stops(program: str, name: str) -> None:
            found = outcome(session, program)
            assert name in str(found.error), (program, found)

        stops("(letrec* ((a b) (b 1)) a)", "b")
        stops("(letrec ((a (lambda () b)) (b (a))) b)", "b")
        stops("(letrec* ((a (car (list b))) (b 1)) a)", "b")
        stops("(define (f) (define x y) (define y 1) x) (f)", "y")
        stops("(define (f) (define x (g)) (define y 1) (define (g) y) x) (f)", "y")
        stops("(define a undefined-later) (define undefined-later 5)", "undefined-later")
        stops("(define (f) later) (f) (define later 1)", "later")
        stops("(letrec ((x (set! x 5))) x) (letrec* ((y (begin (set! z 1) z)) (z 3)) (car z))", "car")
        shown = """
            (write (letrec* ((a 1) (b (+ a 1)) (f (lambda () (list a b c))) (c (+ b 1))) (f)))
            (write (letrec ((a (lambda () b)) (b 2)) (a)))
            (define (g) (define x 1) (define (h) (+ x y)) (define y 2) (h))
            (write (g))
            (define trace '())
            (define (note x) (set! trace (cons x trace)) x)
            (write (letrec* ((a (note 1)) (f (lambda () a)) (b (note 2)) (c (begin (note 3) (f)))) (list a b c)))
            (write (reverse trace))
            (define (k) (define a (call/cc (lambda (k) k))) (define b (list a)) (if (procedure? a) (a 7) b))
            (write (k))"""
        assert written(session, shown) == "(1 2 3)23(1 2 1)(1 2 3)(7)"

    in_session(work)


# ---- tail calls -----------------------------------------------------------------------------------------------------

TIMES = 1_000_000
LOOPS = {
    "itself": "(define (f n) (if (= n 0) 'done (f (- n 1)))) (f n)",
    "mutual": "(define (f n) (if (= n 0) 'done (g (- n 1)))) (define (g n) (if (= n 0) 'done (f (- n 1)))) (f n)",
    "unknown": "(define (f g n) (if (= n 0) 'done (g g (- n 1)))) (f f n)",
    "closures": "(define (f k n) (if (= n 0) (k 'done) (f (lambda (x) (k x)) 0))) (let lp ((n n)) (if (= n 0) 'done"
    " ((lambda () (lp (- n 1))))))",
    "apply": "(define (f n) (if (= n 0) 'done (apply f (list (- n 1))))) (f n)",
    "apply of ten": "(define (f n a b c d e g h i j) (if (= n 0) (+ a b c d e g h i j)"
    " (apply f (- n 1) b c d e g h i (list j a)))) (if (= 45 (f n 1 2 3 4 5 6 7 8 9)) 'done 'wrong)",
    "ten arguments": "(define (f n a b c d e g h i j) (if (= n 0) (list a b c d e g h i j)"
    " (f (- n 1) b c d e g h i j a))) (if (equal? '(2 3 4 5 6 7 8 9 1) (f n 1 2 3 4 5 6 7 8 9)) 'done 'wrong)",
    "unknown with ten": "(define (f p n a b c d e g h i j) (if (= n 0) j (p p (- n 1) a b c d e g h i j)))"
    " (f f n 1 2 3 4 5 6 7 8 'done)",
    "rest": "(define (f n . r) (if (= n 0) (car r) (apply f (- n 1) r))) (f n 'done)",
    "cond": "(define (f n) (cond ((= n 0) 'done) ((odd? n) (f (- n 1))) (else (f (- n 1))))) (f n)",
    "cond =>": "(define (f n) (cond ((= n 0) 'done) ((- n 1) => f) (else 0))) (f n)",
    "case": "(define (f n) (case n ((0) 'done) ((1 2 3) (f (- n 1))) (else (f (- n 1))))) (f n)",
    "case =>": "(define (f n) (case n ((0) 'done) (else => (lambda (x) (f (- x 1)))))) (f n)",
    "and": "(define (f n) (and #t (if (= n 0) 'done (and n (f (- n 1)))))) (f n)",
    "or": "(define (f n) (or #f (and (= n 0) 'done) (f (- n 1)))) (f n)",
    "when": "(define (f n) (if (= n 0) 'done (when #t 1 (f (- n 1))))) (f n)",
    "unless": "(define (f n) (if (= n 0) 'done (unless #f 1 (f (- n 1))))) (f n)",
    "do": "(do ((i 0 (+ i 1))) ((= i n) 'done))",
    "result of do": "(define (f n) (do ((i 0 (+ i 1))) ((= i 1) (if (= n 0) 'done (f (- n 1)))))) (f n)",
    "named let": "(let loop ((i n)) (if (= i 0) 'done (loop (- i 1))))",
    "let bodies": "(define (f n) (let ((m n)) (let* ((k m)) (letrec ((j (lambda () k))) (begin (if (= (j) 0) 'done"
    " (f (- k 1)))))))) (f n)",
    "internal definitions": "(define (f n) (define m (- n 1)) (if (= n 0) 'done (f m))) (f n)",
    "case-lambda": "(define f (case-lambda ((n) (f n 1)) ((n k) (if (= n 0) 'done (f (- n k)))) ((a b . c) c))) (f n)",
    "call-with-values": "(define (f n) (call-with-values (lambda () (values n 1)) (lambda (n k) (if (= n 0) 'done"
    " (f (- n k)))))) (f n)",
    "consumer that is a variable": "(define (f n k) (if (= n 0) 'done (call-with-values (lambda () (values (- n k) 1))"
    " f))) (f n 1)",
    "let-values": "(define (f n) (let-values (((q r) (values n 1))) (if (= q 0) 'done (f (- q r))))) (f n)",
    "receiver of call/cc": "(define (f n) (call/cc (lambda (k) (if (= n 0) 'done (f (- n 1)))))) (f n)",
    "throwing": "(define (f n) (if (= n 0) 'done (begin (call/cc (lambda (k) (k 1))) (f (- n 1))))) (f n)",
    "force": "(define (f n) (delay-force (if (= n 0) (delay 'done) (f (- n 1))))) (force (f n))",
    "eval": "(define (f n) (if (= n 0) 'done ((if (odd? n) f f) (- n 1)))) (f n)",
    "loop in closure": "(define (mk) (lambda (n self) (if (= n 0) 'done (self (- n 1) self)))) (let ((s (mk)))"
    " (s n s))",
    "set! procedures": "(define f #f) (set! f (lambda (n) (if (= n 0) 'done (f (- n 1))))) (f n)",
    "handlers": "(define (f n) (if (= n 0) 'done (begin (guard (e (#t e)) (if (= 0 (modulo n 10000)) (raise n) n))"
    " (f (- n 1))))) (f n)",
    "guard clauses": "(define (f n) (guard (e (#t (if (= e 0) 'done (f (- e 1000))))) (raise n))) (f n)",
}


def test_tail_calls_take_no_room() -> None:
    """A million turns in the heap and stack of one call; the stack would not hold the frames of some of them."""

    def work(session: Session) -> None:
        for name, program in LOOPS.items():
            found = outcome(session, f"(define n {TIMES}) (write (let () {program}))")
            assert (found.output, found.error) == ("done", None), name
        assert written(session, "(define (f n) (if (= n 0) 0 (+ 1 (f (- n 1))))) (write (f 1000000))") == "1000000"

    in_session(work)


@pytest.mark.slow
def test_what_is_not_a_tail_call_ends_when_the_stack_does() -> None:
    """The thunks of dynamic-wind are not in tail position: something comes after them."""

    def work(session: Session) -> None:
        for program in (
            "(define (f n) (+ 1 (f n))) (f 1)",
            "(define (f n) (dynamic-wind (lambda () #f) (lambda () (f n)) (lambda () #f))) (f 1)",
        ):
            found = outcome(session, program)
            assert "stack" in str(found.error), (program, found.error)

    in_session(work)
