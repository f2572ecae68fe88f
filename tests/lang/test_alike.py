"""Units of prompts that differ in names, constants and places alone are the same to LLVM, and each is itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from compiled import in_session

from eshkol.codegen import compiling
from eshkol.codegen.compiled import CompiledUnit
from eshkol.lang.source import Source
from eshkol.llvm.passes import SINGLE_UNIT
from eshkol.runtime.scheme import SchemeRaised
from eshkol.session import Session
from eshkol.session.report import scheme_error
from eshkol.support.store import ProgramCache


def shown(session: Session, text: str) -> str:
    return session.shown(session.evaluate(text))


def compiled(session: Session, text: str) -> CompiledUnit:
    (unit,) = session.world.prompt.units(Source("<alike>", text))
    return session.engine.compile(unit, session.effort)


ALIKE = [  # groups of forms of one text, with their values
    {"3": "3", "( + 20 20)": "40", "(*\n  6 7)": "42", "#f": "#f", "#\\a": "#\\a", "-0.0": "-0.0"},
    {"(quotient 7 2)": "3", "(* 1.5 2.25)": "3.375", "(cons #t 1)": "(#t . 1)", "(+ -0.0 -0.0)": "-0.0",
     "(quotient -9223372036854775808 1)": "-9223372036854775808", "(cons #\\a #\\x3bb)": "(#\\a . #\\λ)",
     "(- +inf.0 1e-320)": "+inf.0", "(expt 18446744073709551616 1)": "18446744073709551616"},
    {'(string-length "abc")': "3", "(vector-length '#(1 2))": "2", "(car '(a b))": "a", '(string->symbol "x")': "x"},
    {"(first-of 1 2)": "1", "  (second-of 3 4)": "4", "(first-of #\\( #f)": "#\\("},
]  # fmt: skip


@pytest.mark.parametrize("group", ALIKE, ids=range(len(ALIKE)))
def test_forms_that_are_alike_have_one_object_and_their_own_values(group: dict[str, str]) -> None:
    def work(session: Session) -> None:
        session.evaluate("(define (first-of a b) a)\n(define (second-of a b) b)")
        codes = {compiled(session, form).code for form in group}
        assert len(codes) == 1
        assert {form: shown(session, form) for form in group} == group

    in_session(work)


def test_what_cannot_be_told_apart_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    original = compiling.compile_object
    monkeypatch.setattr(compiling, "compile_object", lambda *given: made.append(given) or original(*given))

    def work(_: Session) -> None:
        for start in (0, 20):  # the second time as in another process, which finds it on disk
            monkeypatch.setattr(compiling, "_common", {})
            with Session(cache=ProgramCache(tmp_path, durable=False)) as session:
                for number in range(start, start + 20):
                    assert shown(session, f"{' ' * number}(vector 'a {number})") == f"#(a {number})"

    in_session(work)
    assert len([text for text, _, pipeline in made if pipeline is SINGLE_UNIT]) == 1


def test_only_so_many_objects_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "_common", {})
    monkeypatch.setattr(compiling, "REMEMBERED", 2)

    def work(session: Session) -> None:
        for form in ("(vector 1)", "(vector 1 2)", "(vector 1 2 3)", "(vector 4)"):
            shown(session, form)
        assert len(compiling._common) == 2

    in_session(work)


def complaint(session: Session, text: str, name: str = "<repl>") -> str:
    with pytest.raises(SchemeRaised) as raised:
        session.evaluate(text, name)
    return str(scheme_error(session, raised.value))


def test_errors_have_their_own_names_and_places() -> None:
    def work(session: Session) -> None:
        assert "car: expected a pair" in complaint(session, "(list 1 (car 5))")
        found = complaint(session, "\n  (list 1\n    (cdr 55))", "<other>")
        assert "cdr: expected a pair" in found
        assert "<other>:3:5" in found
        assert "^~~~~~~~" in found
        assert "no definition: foo" in complaint(session, "(foo 1)")
        found = complaint(session, " (bar\n 2)")
        assert "no definition: bar" in found
        assert "<repl>:1:3" in found
        assert "no definition: set-me" in complaint(session, "(set! set-me 1)")
        session.evaluate("(define (fails x) (vector-ref x 9))")
        found = complaint(session, "(list (fails (vector 1 2)))")
        assert "<repl>:1:7" in found, "the call at the prompt is told, too"

    in_session(work)


def test_a_unit_that_was_kept_knows_its_places() -> None:
    def work(session: Session) -> None:
        text = "(vector-ref\n (vector 1) 5)"
        made = compiled(session, text)
        again = CompiledUnit.read(made.payload())
        assert again == made
        assert again.places == [("<alike>", 2, 2), ("<alike>", 1, 1)]
        session._typed["<alike>"] = source = Source("<alike>", text)
        procedure = session.engine.load(again, source=source, collected=True)
        with pytest.raises(SchemeRaised) as raised:
            session.machine.enter_form(procedure)
        assert "<alike>:1:1" in str(scheme_error(session, raised.value))

    in_session(work)
