"""`ek.load`: a file of Eshkol is a module of Python, with definitions of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

import eshkol as ek
from eshkol.errors import EshkolError, SchemeError

MODEL = """\
;;; A model.
;;; It has two lines of comment.
(import (scheme base))
(define-record-type point (make-point x y) point? (x point-x) (y point-y))
(define-syntax twice (syntax-rules () ((_ e) (begin e e))))
(define *rate* 0.5)
(define counter 0)
(define (bump!) "Count on." (twice (set! counter (+ counter 1))) counter)
(define (square-error x y) (* (- x y) (- x y)))
(define (rest . given) given)
(define car 7)
(define (fails x)
  (+ 1 (vector-ref x 3)))
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(text))
        return path

    return make


def test_definitions_are_attributes(write: Write) -> None:
    m = ek.load(write("model.esk", MODEL))
    assert m.square_error(5, 2) == 9
    assert m["square-error"](1.5, 1.0) == 0.25
    assert (m.rate, m["*rate*"], m.car) == (0.5, 0.5, 7)
    assert m.point_x(m.make_point(3, 4)) == 3
    assert m.is_point(3) is False
    assert m.bump_.__doc__ == "Count on."
    assert m.square_error is m.square_error


def test_keyword_arguments_are_keywords(write: Write) -> None:
    m = ek.load(write("model.esk", MODEL))
    found = m.rest(1, axis=0, keep_dims=True)
    assert found == [1, ek.lang.Keyword("axis"), 0, ek.lang.Keyword("keep-dims"), True]
    assert isinstance(found[1], ek.lang.Keyword)


def test_a_variable_that_changes_is_seen_as_it_is_and_belongs_to_its_module_alone(write: Write) -> None:
    path = write("model.esk", MODEL)
    first, second = ek.load(path), ek.load(path)
    assert first.bump_() == 2
    assert (first.counter, second.counter) == (2, 0)
    assert ek.load(write("other.esk", "(define (square-error) 'mine)")).square_error() == "mine"
    assert first.square_error(1, 3) == 4


def test_what_a_module_says_of_itself(write: Write) -> None:
    path = write("model.esk", MODEL)
    m = ek.load(path, "nets.model")
    assert m.__name__ == "nets.model"
    assert m.__doc__ == "A model.\nIt has two lines of comment."
    assert m.__file__ == str(path)
    assert repr(m) == f"<eshkol module 'nets.model' from {str(path)!r}>"
    assert {"square_error", "bump_", "rate", "is_point", "__doc__"} <= set(dir(m))
    assert "twice" not in dir(m)
    assert "square-error" in m
    assert "square_error" not in m
    assert "*rate*" in list(m)


@pytest.mark.parametrize("text", ["(define (f) 1)\n(define (g) (f))", "(define (h) 2)"])
def test_names_that_are_not_there(write: Write, text: str) -> None:
    m = ek.load(write("small.esk", text))
    with pytest.raises(AttributeError, match=r"small\.esk has no 'nothing'"):
        _ = m.nothing
    with pytest.raises(KeyError, match=r"small\.esk has no nothing"):
        m["nothing"]
    assert not hasattr(m, "__wrapped__")
    assert getattr(m, "nothing", 5) == 5


def test_a_macro_has_no_value(write: Write) -> None:
    m = ek.load(write("model.esk", MODEL))
    with pytest.raises(AttributeError, match="twice is a form"):
        m["twice"]


def test_a_definition_cannot_be_set_from_python(write: Write) -> None:
    m = ek.load(write("model.esk", MODEL))
    with pytest.raises(AttributeError, match="defines 'square_error'"):
        m.square_error = 3
    m.something_else = 3
    m.something_else = 4
    assert m.something_else == 4


def test_a_file_that_provides_gives_that(write: Write) -> None:
    m = ek.load(write("p.esk", "(provide f)\n(define (f) (g))\n(define (g) 3)"))
    assert m.f() == 3
    assert not hasattr(m, "g")
    assert ek.eval("(g)", module=m) == 3


def test_a_library_gives_its_exports(write: Write) -> None:
    text = """\
        (define-library (shapes) (export area (rename side-of side)) (import (scheme base))
          (begin (define count 0)
                 (define (side-of x) x)
                 (define (area x) (set! count (+ count 1)) (* count x x))))
        """
    path = write("shapes.esk", text)
    first, second = ek.load(path), ek.load(path)
    assert list(first) == ["area", "side"]
    assert (first.area(2), first.area(2), second.area(2)) == (4, 8, 4)
    assert ek.eval("count", module=first) == 2


def test_a_program_with_libraries_and_files_beside_it(write: Write) -> None:
    write("parts/util.esk", "(provide (all-defined))\n(define (half x) (/ x 2))")
    path = write(
        "parts/main.esk",
        """\
        (define-library (inner) (export n step!) (import (scheme base))
          (begin (define n 0) (define (step!) (set! n (+ n 1)) n)))
        (import (scheme base) (inner))
        (require "util.esk")
        (define (f) (half (step!)))
        """,
    )
    first, second = ek.load(path), ek.load(path)
    assert (first.f(), first.f(), second.f()) == (ek.eval("1/2"), 1, ek.eval("1/2"))


def test_a_changed_file_is_loaded_anew(write: Write) -> None:
    path = write("change.esk", "(define (f) 1)")
    before = ek.load(path)
    write("change.esk", "(define (f) 2)")
    assert (ek.load(path).f(), before.f()) == (2, 1)


def test_texts_inside_a_module(write: Write) -> None:
    m = ek.load(write("model.esk", MODEL))
    assert ek.eval("(twice (bump!)) (list counter car)", module=m) == [4, 7]
    ek.eval("(define (cube-error x) (* x (square-error x 0)))", module=m)
    assert m.cube_error(3) == 27
    assert m.car == 7
    ek.eval("(define car 8) (define (square-error x y) 'other)", module=m)
    assert (m.car, m.square_error(1, 2)) == (8, "other")
    with pytest.raises(EshkolError, match="no definition"):
        ek.eval("(cube-error 1)")


def test_errors_show_the_line_of_the_file(write: Write) -> None:
    m = ek.load(write("model.esk", MODEL))
    with pytest.raises(SchemeError) as caught:
        m.fails(ek.lang.Vector([1]))
    assert "model.esk:13:" in str(caught.value)
    assert "(vector-ref x 3)" in str(caught.value)
    with pytest.raises(SchemeError) as caught:
        ek.load(write("late.esk", "(define x 1)\n(define y (vector-ref #(1) 4))"))
    assert "late.esk:2:" in str(caught.value)
    with pytest.raises(EshkolError, match=r"cannot read .*none.esk: no such file"):
        ek.load("none.esk")
    with pytest.raises(EshkolError) as early:
        ek.load(write("early.esk", "(define x\n  (nowhere 1))"))
    assert "early.esk:2:4" in str(early.value)


def test_the_traceback_has_no_frames_of_the_compiler(write: Write) -> None:
    with pytest.raises(EshkolError) as caught:
        ek.load(write("early.esk", "(define x (nowhere 1))"))
    assert not [entry for entry in caught.traceback if "/lang/" in str(entry.path)]


def test_what_a_file_writes_goes_to_stdout(write: Write, capsys: pytest.CaptureFixture[str]) -> None:
    print("before")
    m = ek.load(write("loud.esk", '(display "é while")(newline)(define (shout) (display "SHOUT"))'))
    m.shout()
    print(" after")
    assert capsys.readouterr().out == "before\né while\nSHOUT after\n"
