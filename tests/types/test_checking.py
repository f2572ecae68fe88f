"""The checker on random programs, on the examples, on transcripts, and as a command."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import drawn_programs
import pytest

from eshkol.bindings import install
from eshkol.cli.main import main

ROOT = Path(__file__).parents[2]
install()


def test_random_programs_are_accepted_and_their_ill_typed_edits_are_not() -> None:
    found = drawn_programs.judged(range(120), depth=3)
    assert not found.refused, found.refused[0]
    assert not found.accepted, found.accepted[0]
    assert found.edits > 100


def test_types_do_not_change_what_a_program_writes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    outputs = []
    for typed in (True, False):
        file = tmp_path / "programs.esk"
        file.write_text(drawn_programs.in_one(range(12), typed, depth=2), encoding="utf-8")
        assert main(["run", str(file)]) == 0, capfd.readouterr().err
        outputs.append(capfd.readouterr().out)
    assert outputs[0] == outputs[1]
    assert len(outputs[0].splitlines()) == 12


@pytest.mark.slow
def test_a_thousand_random_programs() -> None:
    assert drawn_programs.main(1000, 5000) == 0


def test_all_examples_are_clean(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(ROOT / "examples")]) == 0, capfd.readouterr().err
    assert "nothing is wrong" in capfd.readouterr().out


TRANSCRIPTS = ("r7rs/06_02_numbers", "r7rs/06_04_lists", "r7rs/06_07_strings", "r7rs/06_08_vectors", "lib/lists")


@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_what_is_refused_without_annotations_fails_when_it_runs(name: str) -> None:
    """Transcripts say which forms raise an error: nothing else may be refused in them."""
    from eshkol.lang.files import read_source
    from eshkol.session import Session, on_session
    from eshkol.session.typing import checked

    file = ROOT / "tests" / "scheme" / f"{name}.esk"
    lines = file.read_text(encoding="utf-8").splitlines()
    errors = []

    def work(session: Session) -> None:
        errors.extend(checked(session, read_source(file)).errors)

    on_session(work, ["transcripts"])
    assert errors
    for error in errors:
        behind = "\n".join(lines[error.span.line - 1 : error.span.line + 3])
        assert ";error>" in behind, str(error)


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    good, bad = tmp_path / "good.esk", tmp_path / "bad.esk"
    good.write_text("(define (f (x : Float64)) : Float64 (* 2.0 x))\n(define (g x) (f x))\n")
    bad.write_text("(define (f (x : Float64)) : Float64 x)\n(f 'a)\n(car 5)\n")
    assert main(["check", "good.esk"]) == 0
    assert "1 file, 3 lines: nothing is wrong" in capfd.readouterr().out
    assert main(["check", "--strict", "good.esk"]) == 1
    assert "g has parts without a type: x, what it gives" in capfd.readouterr().err
    assert main(["check", "bad.esk"]) == 1
    out, err = capfd.readouterr()
    assert "2 errors" in out
    assert err.index("f takes a Float64 as x, but this is a Symbol\n  --> bad.esk:2:4") < err.index("bad.esk:3:6")
    assert main(["check", "--json", "."]) == 1
    found = {report["file"]: report for report in json.loads(capfd.readouterr().out)}
    first = found["bad.esk"]["errors"][0]
    assert (first["line"], first["column"], first["length"]) == (2, 4, 2)
    assert first["notes"][0]["line"] == 1
    assert {"line": 1, "column": 10, "length": 1, "name": "f", "type": "(-> Float64 Float64)"} in found["good.esk"][
        "types"
    ]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"(define (f) 1)\n(f 2)\n"), encoding="utf-8"))
    assert main(["check", "-"]) == 1
    assert "f takes no argument, but is given 1 argument" in capfd.readouterr().err


def test_annotations_are_looked_at_before_a_program_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.esk"
    file.write_text('(display "ran")\n(define (f (x : Float64)) x)\n(f "a")\n')
    assert main(["run", str(file)]) == 1
    out, err = capfd.readouterr()
    assert out == ""
    assert "f takes a Float64 as x, but this is a String" in err
    file.write_text('(display "ran")\n(define (f x) x)\n(f 1 2)\n')  # without annotations it is left to run time
    assert main(["run", str(file)]) == 1
    assert capfd.readouterr().out == "ran"


def test_libraries_tell_importers_their_types(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "typed.esk").write_text(
        "(define-library (typed) (export half) (import (eshkol))\n"
        "  (begin (define (half (x : Float64)) : Float64 (/ x 2.0))))\n"
    )
    file = tmp_path / "a.esk"
    file.write_text("(import (eshkol) (typed))\n(display (half 3.0))\n(define (id x) x)\n(half (id 'a))\n")
    for _ in range(2):  # the second time the library comes from the cache
        assert main(["run", str(file)]) == 1
        out, err = capfd.readouterr()
        assert out == "1.5"
        assert "half takes a Float64" in err
    file.write_text("(import (eshkol) (typed))\n(half 'a)\n")
    assert main(["check", str(file)]) == 1
    assert "half takes a Float64 as argument 1, but this is a Symbol" in capfd.readouterr().err.replace(
        "half takes a Float64,", "half takes a Float64 as argument 1,"
    )


def test_several_values_are_counted_over_all_branches(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.esk"
    given = (
        "(define (f x) (let loop ((i x)) (if (null? i) (values 1 '()) (if (car i) (values 'a i) (loop (cdr i))))))\n"
    )
    file.write_text(given + "(receive (a b) (f '(1)) (list a b))\n")
    assert main(["check", str(file)]) == 0, capfd.readouterr().err
    file.write_text(given + '(receive (a b c) (f \'(1)) (list a b c))\n(receive (a b) (string-length "a") a)\n')
    assert main(["check", str(file)]) == 1
    err = capfd.readouterr().err
    assert "2 values come here, where what takes them has 3 arguments" in err
    assert "1 value comes here, where what takes them has 2 arguments" in err


SHAPES = """\
(define-library (shapes)
  (export make-circle circle? circle-radius set-circle-name! area largest count-all)
  (import (eshkol))
  (begin
    (define-record-type <circle> (make-circle radius name) circle?
      ((radius : Float64) circle-radius) (name circle-name set-circle-name!))
    (define-type Circles (U Null (Pair <circle> Circles)))
    (define-type Size Float64)
    (define (area (c : <circle>)) : Size (* 3.0 (circle-radius c) (circle-radius c)))
    (define (count-all (l : Circles)) : Nat (if (pair? l) (+ 1 (count-all (cdr l))) 0))
    (: largest (-> circle circle circle))
    (define (largest a b) (if (< (area a) (area b)) b a))))
"""


def test_importers_know_the_records_of_libraries(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "shapes.esk").write_text(SHAPES)
    file = tmp_path / "a.esk"
    file.write_text(
        "(import (eshkol) (shapes))\n(define (twice (c : circle)) : Float64 (* 2.0 (area c)))\n"
        "(define (safe x) (if (circle? x) (area x) 0.0))\n(define c (make-circle 1.0 'c))\n(define (id x) x)\n"
        "(display (list (twice c) (twice (id c)) (safe c) (safe 5) (count-all (list c c))\n"
        "               (circle-radius (largest c (make-circle 2.0 'd)))\n"
        "               (guard (e (#t (error-object-message e))) (twice (id 5)))))\n"
    )
    for _ in range(2):  # the second time the library comes from the cache
        assert main(["run", str(file)]) == 0, capfd.readouterr().err
        assert capfd.readouterr().out.startswith("(6.0 6.0 3.0 0.0 2 2.0 twice takes a circle as c, but is given")
    file.write_text(
        "(import (eshkol) (shapes))\n(define-record-type circle (make-other x) other? (x other-x))\n"
        "(area 5)\n(area (make-other 1))\n(make-circle 'a 'b)\n"
        "(define (f x) (if (circle? x) (string-length x) 0))\n(largest (make-circle 1.0 1) 'other)\n"
    )
    assert main(["check", str(file)]) == 1
    err = capfd.readouterr().err
    for line, said in enumerate(
        (
            "area takes a circle, but this is a Nat", "area takes a circle, but this is a circle",
            "make-circle takes a Float64 as argument 1, but this is a Symbol",
            "string-length takes a String, but this is a circle",
            "largest takes a circle as argument 2, but this is a Symbol",
        ),
        start=3,
    ):  # fmt: skip
        assert said in err
        assert f"a.esk:{line}:" in err
