"""The verifier of core forms: what the expander and the simplifier give passes, and what is malformed does not."""

from __future__ import annotations

from typing import Any

import pytest

from eshkol.codegen import compiling
from eshkol.codegen.nodes import Fix, LetValues
from eshkol.codegen.verify import MalformedForms, verify_forms
from eshkol.lang.core import Call, Clause, Const, If, Lambda, Let, Letrec, Local, Seq, SetLocal, Variable
from eshkol.session import Session


def number(value: int = 1) -> Const:
    return Const(None, value)


def procedure(params: list[Variable], body: Any) -> Lambda:
    return Lambda(None, [Clause(params, None, body)])


def test_what_is_well_formed_passes() -> None:
    x, y, z = Variable("x"), Variable("y", assigned=True), Variable("z")
    inner = Seq(None, [SetLocal(None, y, Local(None, x)), Call(None, Local(None, z), [Local(None, y)])])
    verify_forms([procedure([x], Let(None, [y, z], [number(), procedure([], Local(None, x))], inner)), number()])


X, Y = Variable("x"), Variable("y")
MALFORMED = {
    "unbound": [Local(None, X)],
    "after its scope": [Let(None, [X], [number()], number()), Local(None, X)],
    "in its own value": [Let(None, [X], [Local(None, X)], number())],
    "of another clause": [Lambda(None, [Clause([X], None, number()), Clause([Y], None, Local(None, X))])],
    "bound twice": [Let(None, [X], [number()], number()), Let(None, [X], [number()], number())],
    "bound twice at once": [procedure([X, X], number())],
    "too few values": [Letrec(None, [X, Y], [number()], number())],
    "assigned without a mark": [Let(None, [X], [number()], SetLocal(None, X, number()))],
    "fixed and assigned": [Fix(None, [Variable("f", assigned=True)], [procedure([], number())], number())],
    "values in their own producer": [LetValues(None, [X], None, Local(None, X), number())],
    "an empty sequence": [If(None, number(), Seq(None, []), number())],
}


@pytest.mark.parametrize("what", MALFORMED)
def test_what_is_malformed_is_refused(what: str) -> None:
    with pytest.raises(MalformedForms):
        verify_forms(MALFORMED[what])


def test_depth_is_no_matter() -> None:
    form: Any = number()
    for _ in range(100_000):
        form = If(None, number(), form, number())
    verify_forms([form])


def test_programs_are_well_formed_before_and_after_simplification(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def counted(forms: Any) -> None:
        seen.append(len(forms))
        verify_forms(forms)

    monkeypatch.setenv("ESHKOL_CHECK", "1")
    monkeypatch.setattr(compiling, "verify_forms", counted)
    text = """
        (define-record-type point (make-point x y) point? (x px set-px!) (y py))
        (define-syntax swap! (syntax-rules () ((_ a b) (let ((t a)) (set! a b) (set! b t)))))
        (define (f n . rest)
          (let-values (((q r) (floor/ n 3)))
            (let loop ((i 0) (found '()))
              (if (< i n) (loop (+ i 1) (cons (lambda () (+ i q r)) found))
                  (begin (swap! q r) (map (lambda (g) (g)) (append rest found)))))))
        (define g (case-lambda ((a) (f a)) ((a . more) (apply f a more))))
        (guard (e (#t (px (make-point 1 2)))) (raise (g 4)))
    """
    with Session() as session:
        session.evaluate(text)
    assert len(seen) >= 2


def test_the_core_is_printed_when_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setenv("ESHKOL_DUMP", "core")
    with Session() as session:
        session.evaluate("(define (twice x) (when x (* 2 x)))")
    assert capsys.readouterr().err == "--- core: <repl>\n(define (twice x) (if x (* 2 x)))\n"
