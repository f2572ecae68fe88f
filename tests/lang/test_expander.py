"""The forms of the expander: what they mean, and what is said when they are wrong."""

from __future__ import annotations

import random
import traceback

import pytest
from evaluate import Machine, Undefined, result
from hypothesis import given
from hypothesis import strategies as st

from batches import of_each
from eshkol.errors import BadSyntax, LanguageError, ReadError, UnboundName, UnfinishedInput
from eshkol.lang import core
from eshkol.lang.core import Unit
from eshkol.lang.datum import List, Symbol, text
from eshkol.lang.pretty import pretty
from eshkol.lang.reader import read
from eshkol.lang.source import Source
from eshkol.lang.syntax import to_datum
from eshkol.lang.unexpand import unit_data


def show_unit(unit: Unit, width: int = 100) -> str:
    return "".join(f"{pretty(form, width)}\n" for form in unit_data(unit))


VALUES = [
    # quotation
    ("'(a b . c)", "(a b . c)"),
    ("`(1 ,(+ 1 1) ,@(list 3 4) 5)", "(1 2 3 4 5)"),
    ("`(1 . ,(+ 1 1))", "(1 . 2)"),
    ("`(1 ,@'(2 3) . 4)", "(1 2 3 . 4)"),
    ("`(,@'(1 2) . ,(list 3))", "(1 2 3)"),
    ("`#(1 ,(+ 1 1) ,@(list 3 4))", "#(1 2 3 4)"),
    ("`(a `(b ,(c ,(+ 1 2))))", "(a (quasiquote (b (unquote (c 3)))))"),
    (
        "`(a `(b ,(foo ,(+ 1 3) d) e) f)",
        "(a (quasiquote (b (unquote (foo 4 d)) e)) f)",
    ),
    (
        "(let ((name1 'x) (name2 'y)) `(a `(b ,,name1 ,',name2 d) e))",
        "(a (quasiquote (b (unquote x) (unquote (quote y)) d)) e)",
    ),
    ("`((1 ,@(list 2)) ,@'())", "((1 2))"),
    ("`x", "x"),
    ("(quasiquote (list (unquote (+ 1 2)) 4))", "(list 3 4)"),
    ("`(1 ,@(list 2 3))", "(1 2 3)"),
    ("(let ((x '(a b))) `(,x ,@x))", "((a b) a b)"),
    ("#(1 2)", "#(1 2)"),
    (":axis", ":axis"),
    ("(list #t #f 1.5 #\\a \"s\" 1/2)", '(#t #f 1.5 #\\a "s" 1/2)'),
    # procedures
    ("((lambda (a b . c) (list a b c)) 1 2 3 4)", "(1 2 (3 4))"),
    ("((lambda x x) 1 2)", "(1 2)"),
    ("(define f (case-lambda ((a) 'one) ((a b) 'two) ((a . r) (list 'many r)))) (list (f 1) (f 1 2) (f 1 2 3))",
     "(one two (many (2 3)))"),
    ("((named-lambda (f x) (if (= x 0) 'done 'more)) 0)", "done"),
    ("(define (f . x) x) (f 1 2)", "(1 2)"),
    ("(define (f a . x) (list a x)) (f 1 2)", "(1 (2))"),
    ("(define [f x] [list x]) (f 1)", "(1)"),
    # binding
    ("(let ((x 1)) (let ((x 2) (y x)) (list x y)))", "(2 1)"),
    ("(let* ((x 1) (x (+ x 1)) (y x)) (list x y))", "(2 2)"),
    ("(let* () 5)", "5"),
    ("(letrec ((e? (lambda (n) (if (= n 0) #t (o? (- n 1))))) (o? (lambda (n) (if (= n 0) #f (e? (- n 1)))))) (e? 9))",
     "#f"),
    ("(letrec* ((a 1) (b (+ a 1))) (list a b))", "(1 2)"),
    ("(let loop ((i 0) (acc '())) (if (= i 3) acc (loop (+ i 1) (cons i acc))))", "(2 1 0)"),
    ("(let loop ((loop 1)) loop)", "1"),
    ("(do ((i 0 (+ i 1)) (s 0 (+ s i))) ((= i 5) s))", "10"),
    ("(let ((v '())) (do ((i 0 (+ i 1)) (k 9)) ((= i 3) v) (set! v (cons (list i k) v))))", "((2 9) (1 9) (0 9))"),
    ("(define (f) (define a 1) (define (g) (* a b)) (define b 2) (g)) (f)", "2"),
    ("(define (f) (define x 1) (set! x (+ x 1)) (define y x) (list x y)) (f)", "(2 2)"),
    ("(let () (begin (define a 1) (define b 2)) (begin) (list a b))", "(1 2)"),
    ("(define-values (a b . c) (values 1 2 3 4)) (list a b c)", "(1 2 (3 4))"),
    ("(let () (define-values all (values 1 2)) (define-values (x) 5) (list all x))", "((1 2) 5)"),
    # conditions
    ("(list (and) (and 1 2) (and #f 2) (or) (or #f 2) (or #f #f))", "(#t 2 #f #f 2 #f)"),
    ("(cond (#f 1) ((+ 1 1)) (else 3))", "2"),
    ("(cond ((list 1 2) => car) (else 3))", "1"),
    ("(cond (#f 1) (else 2 3))", "3"),
    ("(case (* 2 3) ((2 3 5 7) 'prime) ((1 4 6 8 9) 'composite))", "composite"),
    ("(case 'x ((a e i) 'vowel) (else => (lambda (x) (list x))))", "(x)"),
    ("(case \"a\" ((\"a\") 1) (else 2))", "1"),  # the oracle's strings are eqv?
    ("(case 1/2 ((1/2) => (lambda (x) (list x 'half))) (else 2))", "(1/2 half)"),
    ("(case #f (() 1) ((#f) 2))", "2"),
    ("(list (when #t 1 2) (unless #f 1 2))", "(2 2)"),
    # programs
    ("(define x 1) (define x 2) (list x)", "(2)"),
    ("(define x 1) (set! x 5) (list x)", "(5)"),
    ("(begin (define a 1) (define-syntax m (syntax-rules () ((_) a)))) (m)", "1"),
    ('(define (f x) "doc" (list x)) (f 1)', "(1)"),
    ('(define (f) "value") (f)', '"value"'),
    # records
    ("""(define-record-type point (make-point x y) point? (x point-x) (y point-y set-point-y!))
        (define p (make-point 1 2)) (set-point-y! p 5) (list (point? p) (point? 1) (point-x p) (point-y p))""",
     "(#t #f 1 5)"),
    ("(define-record-type <p> make-p #f (x p-x) (y p-y)) (p-y (make-p 1 2))", "2"),
    ("(define-record-type (p) (make-p y) p? x (y p-y)) (list (p-y (make-p 2)))", "(2)"),
    ("(define-record-type p #f p? (x p-x)) (p? 1)", "#f"),
    ("(let () (define-record-type p (mk x) p? (x get)) (get (mk 4)))", "4"),
    # types are accepted
    ("(define (f (x : Float64) (y : (Vector Int64))) : Float64 (list x y)) (f 1 2)", "(1 2)"),
    ("((lambda ((x : T)) x) 3)", "3"),
    ("(: x Int64) (define x 5) (list x)", "(5)"),
    ("(define x : Int64 5) (list x)", "(5)"),
]  # fmt: skip


@of_each("program, value", VALUES)
def test_values(program: str, value: str) -> None:
    assert result(program) == value


ERRORS = [
    ("(lambda (x x) x)", "`x` is bound twice by one list of parameters"),
    ("(lambda (x . x) x)", "`x` is bound twice"),
    ("(let ((x 1) (x 2)) x)", "`x` is bound twice by one let"),
    ("(letrec ((x 1) (x 2)) x)", "`x` is bound twice"),
    ("(do ((x 1) (x 2)) (#t))", "`x` is bound twice by one do"),
    ("(let () (define x 1) (define x 2) x)", "`x` is defined twice in one body"),
    ("(let () (define x 1))", "ends with a definition"),
    ("(lambda (x))", "this form is not like (lambda"),
    ("(let ((x 1)))", "this form is not like (let"),
    ("(let () (begin))", "is empty"),
    ("(if (define x 1) 2 3)", "`define` stands where an expression must"),
    ("(list (define-syntax x y))", "`define-syntax` stands where an expression must"),
    ("(set! nowhere 1)", "set! of `nowhere`, which is not defined"),
    ("(set! car 1)", "`car` belongs to the library (eshkol primitives)"),
    ("(set! if 1)", "`if` is syntax, not a variable"),
    ("(set! 5 1)", "what set! changes must be a name, not 5"),
    ("(cond (else 1) (#t 2))", "else is not the last clause of this cond"),
    ("(case 1 (else 1) ((2) 2))", "else is not the last clause of this case"),
    ("(cond)", "this form is not like (cond"),
    ("(cond 5)", "a clause of cond is"),
    ("(cond (1 =>))", "a clause with => is"),
    ("(case 1 (2 3))", "the data of a clause of case stand in a list, not 2"),
    ("(let (x 1) x)", "a binding is (name value), not x"),
    ("(let ((x)) x)", "a binding is (name value), not (x)"),
    ("(let ((1 2)) x)", "what is bound must be a name, not 1"),
    ("(let x)", "this form is not like (let"),
    ("(define)", "this form is not like (define"),
    ("(define x)", "`x` is defined without a value"),
    ("(define x 1 2)", "the definition of `x` has 2 values"),
    ("(define (f))", "has no body"),
    ("(define 5 1)", "(name parameter ...) belongs here"),
    ("(define (5 x) 1)", "what is defined must be a name"),
    ("(if)", "this form is not like (if test then else)"),
    ("(if 1 2 3 4)", "this form is not like (if test then else)"),
    ("(if . 1)", "this form is not like (if"),
    ("()", "() is no expression"),
    ("(list 1 . 2)", "a call has no dot"),
    ("(else 1)", "`else` does not belong here"),
    ("else", "`else` is syntax, not a variable"),
    ("if", "`if` is syntax, not a variable"),
    (",x", "`unquote` does not belong here"),
    ("`,@x", ",@ stands where there is no list"),
    ("#0=(a . #0#)", "a labelled list is no expression"),
    ("(lambda ((x T)) x)", "a parameter is a name or (name : type), not (x T)"),
    ('(lambda ((x : "T")) x)', "a type is a name"),
    ("(lambda (1) x)", "a parameter is a name"),
    ("(lambda 5 x)", "parameters are names in a list"),
    ("(: x T)", "`x` is given a type, but not defined here"),
    ("(define-record-type p (mk z) p? (x get))", "the constructor takes `z`, which is no field"),
    ("(define-record-type p (mk) p? (x get) (x get2))", "`x` is bound twice by one record type"),
    ("(define-record-type p)", "this form is not like (define-record-type"),
    ("(define-record-type p 5 p?)", "a constructor is"),
    ("(define-values (x x) 1)", "`x` is bound twice by define-values"),
    ("(define-syntax m (syntax-rules () ((_) 1))) m", "`m` is a macro, not a variable"),
    ("(syntax-rules ())", "`syntax-rules` does not belong here"),
    ("(let-syntax ((m 5)) 1)", "no transformer"),
    ("(do ((i 0 1 2)) (#t))", "a variable of do is"),
    ("(do 1 2)", "this form is not like (do"),
    ("(case-lambda (x))", "a clause of case-lambda is"),
]


@of_each("program, message", ERRORS)
def test_errors(program: str, message: str) -> None:
    with pytest.raises(BadSyntax) as caught:
        result(program)
    assert message in str(caught.value)
    assert "test.esk:1:" in str(caught.value)


def test_unbound_names() -> None:
    with pytest.raises(UnboundName) as caught:
        result("(define (frobnicate x) x)\n(define (g counter)\n  (frobnicat countr))")
    shown = str(caught.value)
    assert "the name `frobnicat` is not defined" in shown
    assert "did you mean `frobnicate`?" in shown
    assert "test.esk:3:4" in shown
    with pytest.raises(UnboundName, match="did you mean `counter`"):
        result("(define (g counter) (list countr))")
    # at a prompt, somebody may define it later
    machine = Machine("repl")
    machine.run("(define (f) (g 1))")
    with pytest.raises(Undefined):
        machine.run("(f)")
    machine.run("(define (g x) (list x))")
    assert text(machine.run("(f)")) == "(1)"


def test_libraries_define_once() -> None:
    machine = Machine("library")
    with pytest.raises(BadSyntax, match="`x` is defined twice in one library"):
        machine.run("(define x 1) (define x 2)")


def expanded(program: str, kind: str = "program") -> core.Unit:
    machine = Machine(kind)
    return machine.expander.expand_unit(read(Source("test.esk", program)), machine.namespace)


def test_procedures_know_their_names_docs_and_sources() -> None:
    unit = expanded(
        """(define (f x) "Doubles." (* 2 x))
           (define g (lambda () 1))
           (let ((h (lambda () 2))) (letrec ((k (lambda () 3))) (list h k)))
           (define p : Int64 5)"""
    )
    f, g, local, _ = unit.forms
    assert isinstance(f, core.DefineGlobal)
    assert isinstance(f.value, core.Lambda)
    assert (f.value.name, f.value.doc, text(f.value.source)) == (
        "f",
        "Doubles.",
        '(lambda (x) "Doubles." (* 2 x))',
    )
    assert g.value.name == "g"  # type: ignore[attr-defined]
    assert local.values[0].name == "h"  # type: ignore[attr-defined]
    assert local.body.values[0].name == "k"  # type: ignore[attr-defined]
    assert [cell.name for cell in unit.cells] == ["f", "g", "p"]
    assert unit.cells[2].annotation is Symbol("Int64")


def test_types_are_kept() -> None:
    unit = expanded("(define (f (x : Float64) y) : (Vector Int64 3) (: z Int64) (define z y) z)")
    clause = unit.forms[0].value.clauses[0]  # type: ignore[attr-defined]
    assert clause.params[0].annotation is Symbol("Float64")
    assert clause.params[1].annotation is None
    assert text(clause.returns) == "(Vector Int64 3)"
    assert clause.body.variables[0].annotation is Symbol("Int64")


def test_assignments_are_seen() -> None:
    unit = expanded("(define a 1) (define b 2) (define (f x y) (set! x 1) (set! b y) x)")
    assert [cell.assigned for cell in unit.cells] == [False, True, False]
    assert [v.assigned for v in unit.forms[2].value.clauses[0].params] == [True, False]  # type: ignore[attr-defined]


def test_places() -> None:
    unit = expanded("(define-syntax m (syntax-rules () ((_ x) (list x 1))))\n(m (car 2))")
    call = unit.forms[0]
    assert isinstance(call, core.Call)
    assert call.place is not None
    assert call.place.span.line == 1
    assert call.place.via is not None
    assert call.place.via.span.line == 2
    argument = call.args[0]
    assert argument.place is not None
    assert (argument.place.via, argument.place.span.line, argument.place.span.column) == (None, 2, 4)


# ---- depth and size --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "program",
    [
        "(" * 100_000 + ")" * 100_000,
        "(list " * 12_000 + ")" * 12_000,
        "(lambda (y) " * 2_000 + "x" + ")" * 2_000,
        "(let ((x 1)) " * 2_000 + "x" + ")" * 2_000,
        "`" * 12_000 + "x",
        "`" + "(" * 12_000 + ",x" + ")" * 12_000,
        "(define-syntax m (syntax-rules () (" + "(" * 12_000 + "x" + ")" * 12_000 + " 1)))",
        "(define-syntax m (syntax-rules () ((_) " + "(" * 12_000 + ")" * 12_000 + "))) (m)",
        "(begin " * 12_000 + "1" + ")" * 12_000,
        "(cond (#t " * 12_000 + "1" + "))" * 12_000,
        "(define " * 12_000 + ")" * 12_000,
        "(lambda ((x : " + "(T " * 12_000 + ")" * 12_000 + ")) x)",
    ],
    ids=range(12),
)
def test_deep_programs_are_refused_or_taken(program: str) -> None:
    try:
        expanded(program)
    except LanguageError as error:
        assert len(str(error)) < 5000  # noqa: PT017


def test_deep_programs_that_are_taken() -> None:
    assert result("(+ 1 " * 3000 + "0" + ")" * 3000) == "3000"
    assert len(result("'" + "(" * 30_000 + ")" * 30_000)) == 60_000
    assert result("(and " * 3000 + "7" + ")" * 3000) == "7"
    many = " ".join(map(str, range(12_000)))
    assert result(f"(list {many})") == f"({many})"
    assert result(f"`(,1 {many} ,2)") == f"(1 {many} 2)"


# ---- the reader ------------------------------------------------------------------------------------------------------

READ = [
    ("(a . (b c))", "(a b c)"),
    ("(a . (b . c))", "(a b . c)"),
    ("#;(a b) c", "c"),
    ("(a #;b c #;d)", "(a c)"),
    ("(a . b #;c)", "(a . b)"),
    ("#;#;a b c", "c"),
    ("'#;a b", "(quote b)"),
    ("#|a #|b|# |# c", "c"),
    ("#'a #`(b #,c #,@d)", "(syntax a) (quasisyntax (b (unsyntax c) (unsyntax-splicing d)))"),
    ("#u8(1 255 #xff)", "#u8(1 255 255)"),
    ("#0=(a #0#)", "#0=(a #0#)"),
    ("(#0=a #0#)", "(#0=a #0#)"),
    ("#0=a #0=b", "#0=a #0=b"),
    ("|a b| |\\x41;| #!fold-case ABC", "|a b| A abc"),
    ("1 -1 +5 1.5 .5 1e3 #xff #b-101 #e1.5 1/2 1+2i +inf.0 -nan.0",
     "1 -1 5 1.5 0.5 1000.0 255 -5 #e1.5 1/2 1+2i +inf.0 -nan.0"),
    ("[a (b) [c]]", "(a (b) (c))"),
    ("#\\a #\\space #\\x3bb #\\(", "#\\a #\\space #\\x3bb #\\("),
    ('"a\\n\\x41;b"', '"a\\nAb"'),
    ("#!eof a", ""),
    ("", ""),
]  # fmt: skip


@pytest.mark.parametrize(("written", "data"), READ)
def test_reader(written: str, data: str) -> None:
    read_data = [to_datum(syntax) for syntax in read(Source("test.esk", written))]
    assert " ".join(map(text, read_data)) == data
    again = [to_datum(syntax) for syntax in read(Source("again", data))]
    assert list(map(text, again)) == list(map(text, read_data))


READ_ERRORS = [
    ("(a [b)", "[ is closed by )", "the [ is here"),
    ("(a b]", "( is closed by ]", "the ( is here"),
    (")", "this ) closes nothing", "test.esk:1:1"),
    ("(a\n (b c)", "this ( is never closed", "test.esk:1:1"),
    ("(define (f)\n  (g 1)\n\n(define (h) 1)\n", "this ( is never closed", "line 1 was perhaps to end before line 4"),
    ("(a . )", "a dot stands before the last datum", "test.esk:1:4"),
    ("( . a)", "a dot stands before the last datum", "test.esk:1:3"),
    ("(a . b c)", "only one datum may follow a dot", "test.esk:1:8"),
    ("#(a . b)", "a dot stands before", "test.esk:1:5"),
    ("a . b", "a dot stands before", "test.esk:1:3"),
    ("(')", "nothing follows this '", "test.esk:1:2"),
    ("'", "nothing follows this '", "test.esk:1:1"),
    ("(a #;)", "nothing follows this #;", "test.esk:1:4"),
    ("#u8(256)", "from 0 to 255", "test.esk:1:5"),
    ("#u8(a)", "from 0 to 255", "test.esk:1:5"),
    ("#0#", "no datum before this has the label", "test.esk:1:1"),
    ("#0=#0#", "names nothing but itself", "test.esk:1:1"),
    ("(#0=a #0=b)", "a second datum with the label", "test.esk:1:7"),
    ("1/0", "the denominator is zero", "test.esk:1:1"),
    ('"abc', "never ends", "test.esk:1:1"),
    ("#|abc", "never ends", "test.esk:1:1"),
    ("#\\nonsense", "unknown character name", "test.esk:1:1"),
    ("#abc", "no datum begins with", "test.esk:1:1"),
]


@of_each("written, message, more", READ_ERRORS)
def test_reader_errors(written: str, message: str, more: str) -> None:
    with pytest.raises(ReadError) as caught:
        read(Source("test.esk", written))
    assert message in str(caught.value)
    assert more in str(caught.value)


def test_unfinished_input() -> None:
    for written in ("(a", "'(a", '"a', "#|a", "'", "(a #;", "[(a)", "#(", "(a . "):
        with pytest.raises(UnfinishedInput):
            read(Source("test.esk", written))


def test_text_of_symbols_reads_back() -> None:
    names = ["a", "A b", "", "1+", "+", "-", "...", "..", ".", "+a", "-1", "1", ".5", "a|b", "a\\b", ":", ":a", "a:"]
    names += ["::", "#a", "a#1", "λ", "ß", "a\nb", "'", "a'b", "->x", "-", "+i", "-inf.0", "@", "é́", "\u200b", "😀"]
    for name in names:
        (syntax,) = read(Source("test.esk", text(Symbol(name))))
        assert syntax.content is Symbol(name)
    written = text(List([Symbol(name) for name in names]))
    (syntax,) = read(Source("test.esk", written))
    assert [item.name for item in syntax.items or ()] == names


# ---- core forms as text ----------------------------------------------------------------------------------------------


def test_show() -> None:
    unit = expanded(
        """(define-syntax swap! (syntax-rules () ((_ a b) (let ((tmp a)) (set! a b) (set! b tmp)))))
           (define (f tmp y) (swap! tmp y) '(a b))
           (define (long a b)
             (let loop ((i 0)) (if (< i 10) (loop (+ i 1)) (list a b 'some-symbol "some string" a b a b a b))))"""
    )
    assert show_unit(unit, 60) == (
        "(define (f tmp y)\n"
        "  (let ((tmp.1 tmp)) (set! tmp y) (set! y tmp.1))\n"
        "  '(a b))\n"
        "(define (long a b)\n"
        "  (letrec* ((loop (lambda (i)\n"
        "                    (if (< i 10)\n"
        "                        (loop (+ i 1))\n"
        "                        (list a\n"
        "                              b\n"
        "                              'some-symbol\n"
        '                              "some string"\n'
        "                              a\n"
        "                              b\n"
        "                              a\n"
        "                              b\n"
        "                              a\n"
        "                              b)))))\n"
        "    (loop 0)))\n"
    )


@of_each("program", [program for program, _ in VALUES])
def test_what_is_shown_reads_back(program: str) -> None:
    shown = show_unit(expanded(program), 30)
    data = [text(to_datum(syntax)) for syntax in read(Source("shown", shown))]
    assert data == list(map(text, unit_data(expanded(program))))


# ---- any input -------------------------------------------------------------------------------------------------------

PROGRAMS = [program for program, _ in VALUES] + [
    "(define-syntax m (syntax-rules () ((_ (a b ...) ...) '((a (b ...)) ...)))) (m (1 2 3) (4))",
    "(define-syntax m (syntax-rules (x) ((_ x a) 'a) ((_ a . r) (list a 'r)))) (m x 1) (let ((x 1)) (m x 2 3))",
    "(define-syntax (m s) (syntax-case s () ((_ a ...) (with-syntax (((b ...) #'(a ...))) #`(f b ... #,@#'(a ...))))))",
    "(letrec-syntax ((a (syntax-rules () ((_ x . y) (b . y)) ((_) 1))) (b (syntax-rules () ((_ . y) (a . y))))) (a 1))",
    "(let () (define-syntax d (syntax-rules () ((_ n v) (begin (define n v) (define h 1))))) (d x 2) (list x))",
]
DATA = [[to_datum(syntax) for syntax in read(Source("data", program))] for program in PROGRAMS]


def pieces(datum: object) -> list[object]:
    return [datum, *(p for item in datum.items for p in pieces(item))] if type(datum) is List else [datum]


PIECES = [piece for data in DATA for datum in data for piece in pieces(datum)]


def mutated(datum: object, rng: random.Random) -> object:
    """The datum with some parts exchanged, left out, repeated or in another order."""
    chance = rng.random()
    if chance < 0.03:
        return rng.choice(PIECES)
    if type(datum) is not List:
        return datum
    items = [mutated(item, rng) for item in datum.items]
    if chance < 0.06 and items:
        at = rng.randrange(len(items))
        items[at : at + 1] = rng.choice([[], [items[at]] * 2, items])
    return List(items, datum.tail)


@given(st.integers(0, 2**32))
def test_any_program_is_expanded_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    program = "\n".join(text(mutated(datum, rng)) for datum in rng.choice(DATA))
    machine = Machine(rng.choice(["program", "library", "repl"]))
    try:
        unit = machine.expander.expand_unit(read(Source("test.esk", program)), machine.namespace)
    except LanguageError as error:
        assert error.span is not None  # noqa: PT017
        assert str(error)  # noqa: PT017
    except (TypeError, AttributeError, AssertionError, KeyError, IndexError, Undefined) as error:
        # the oracle's primitives, when a transformer calls them with anything
        assert "evaluate.py" in str(traceback.extract_tb(error.__traceback__)[-1])  # noqa: PT017
    else:
        show_unit(unit)


@given(st.text(alphabet="()[]#'`,@.;|\\\"0123ax:- \n{}\u00e9\U0001f600", max_size=30))
def test_any_text_is_read_or_refused(written: str) -> None:
    try:
        data = [to_datum(syntax) for syntax in read(Source("test.esk", written))]
    except ReadError as error:
        assert error.span is not None  # noqa: PT017
    else:
        again = [to_datum(syntax) for syntax in read(Source("again", " ".join(map(text, data))))]
        assert list(map(text, again)) == list(map(text, data))
