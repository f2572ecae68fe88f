"""Looks at bounds that are proven needless are left out of the code, and no others are."""

from __future__ import annotations

import re
from pathlib import Path

import drawn_bounds
import pytest

from eshkol.bindings import install
from eshkol.cli.main import main
from eshkol.codegen.primitives import PrimitiveTable
from eshkol.runtime.scheme_table import layout, rows

install()

PROVEN = {
    "a bound that is asked for": "(define (f (v : (Vector Integer n)) (i : {i < n})) : Integer (vector-ref v i))",
    "a length that is asked for": "(define (f (v : (Vector Integer 3))) : Integer (vector-ref v 2))",
    "lengths that are the same": """(define (f (v : (Vector Integer n)) (w : (Vector Integer n)) (i : {i < n})) : Any
        (vector-set! w i 1))""",
    "a test": """(define (f (v : (Vector Integer)) (i : Nat)) : Integer
        (if (< i (vector-length v)) (vector-ref v i) 0))""",
    "a test and its bound": """(define (f (v : (Vector Integer)) (i : Integer)) : Integer
        (if (<= 1 i (vector-length v)) (vector-ref v (- i 1)) 0))""",
    "a loop that counts up": """(define (f (v : (Vector Integer))) : Integer
        (let loop ((i 0) (s 0)) (if (= i (vector-length v)) s
          (if (< i (vector-length v)) (loop (+ i 1) (+ s (vector-ref v i))) s))))""",
    "a loop that counts down": """(define (f (v : (Vector Integer))) : Integer
        (let loop ((i (- (vector-length v) 1)) (s 0)) (if (< i 0) s (loop (- i 1) (+ s (vector-ref v i))))))""",
    "do": """(define (f (v : (Vector Integer))) : Any
        (let ((n (vector-length v))) (do ((i 0 (+ i 2))) ((>= i n)) (vector-set! v i 0))))""",
    "a search by halves": """(define (f (v : (Vector Integer)) (x : Integer)) : Any
        (let loop ((lo 0) (hi (vector-length v)))
          (if (< lo hi)
              (let ((mid (quotient (+ lo hi) 2)))
                (if (< (vector-ref v mid) x) (loop (+ mid 1) hi) (loop lo mid)))
              lo)))""",
    "a remainder": """(define (f (v : (Vector Integer)) (i : Integer)) : Any
        (if (> (vector-length v) 0) (let ((k (modulo i (vector-length v)))) (vector-ref v k)) 0))""",
    "a vector made here": "(define (f (n : Nat)) : Any (let ((v (make-vector (+ n 1) 0))) (vector-ref v n)))",
    "a procedure within": """(define (f (v : (Vector Integer))) : Any
        (define (at (w : (Vector Integer n)) (i : {i < n})) : Integer (vector-ref w i))
        (if (< 2 (vector-length v)) (at v 2) 0))""",
}
UNKNOWN = {
    "an index that may be too great": """(define (f (v : (Vector Integer)) (i : Nat)) : Integer
        (if (<= i (vector-length v)) (vector-ref v i) 0))""",
    "an index that may be negative": """(define (f (v : (Vector Integer)) (i : Integer)) : Integer
        (if (< i (vector-length v)) (vector-ref v i) 0))""",
    "an index that others may change": """(define (f (u : (Vector Nat)) (v : (Vector Integer))) : Integer
        (let ((k (vector-ref u 0))) (if (< k (vector-length v)) (vector-ref v k) 0)))""",
    "a variable that set! changes": """(define (f (v : (Vector Integer)) (i : Nat)) : Integer
        (set! i (+ i 1)) (if (< i (vector-length v)) (begin (set! i (+ i 1)) (vector-ref v i)) 0))""",
    "a loop that is given anything": """(define (f (v : (Vector Integer)) (k : Any)) : Any
        (let loop ((i 0)) (if (< i (vector-length v)) (begin (vector-ref v i) (loop k)) 0)))""",
    "the length of another": """(define (f (v : (Vector Integer n)) (w : (Vector Integer m)) (i : {i < n})) : Any
        (vector-ref w i))""",
    "a loop that is a value": """(define (f (v : (Vector Integer))) : Any
        (let loop ((i 0)) (if (< i (vector-length v)) (begin (vector-ref v i) (map loop '(-1))) 0)))""",
}


def shown(tmp_path: Path, capfd: pytest.CaptureFixture[str], program: str, *command: str) -> str:
    file = tmp_path / "a.esk"
    file.write_text(program)
    assert main([*command, str(file)]) == 0, capfd.readouterr().err
    out, err = capfd.readouterr()
    return out + err


def accesses(kind: str, text: str) -> list[str]:
    """The vectors and indices of accesses, but for those of the loops that look at arguments."""
    return re.findall(rf"\({kind}-(?:ref|set!) (\w+ (?!index\b)\S+)", text)


@pytest.mark.parametrize("name", PROVEN)
def test_proven(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = shown(tmp_path, capfd, PROVEN[name], "expand")
    assert accesses("%vector", text)
    assert not accesses("vector", text)


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = shown(tmp_path, capfd, UNKNOWN[name], "expand")
    assert accesses("vector", text)
    assert not set(accesses("%vector", text)) - {"u 0"}


def test_the_code_of_such_an_access_reads_no_length() -> None:
    table = PrimitiveTable(rows(), layout())
    for name in ("vector-ref", "vector-set!"):
        assert "within" in table.functions[f"inline.{name}"].text
        text = table.functions[f"inline.%{name}"].text
        assert "within" not in text
        assert "length" not in text


def test_why_says_which(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = """\
(define (f (v : (Vector Integer)) (i : Nat)) : Integer
  (if (< i (vector-length v))
      (+ (vector-ref v i)
         (vector-ref v (+ i 1)))
      0))
(display (f (vector 1 2) 0))
"""
    text = shown(tmp_path, capfd, program, "run", "--why")
    assert "looks at no bounds, since they are proven: vector-ref at 3:10" in text
    assert "looks at the bounds of vector-ref at 4:10" in text


SPOILT = """\
(define (get (v : (Vector Integer n)) (i : {i < n})) : Integer (vector-ref v i))
(define (use (u : (Vector Nat)) (v : (Vector Integer 3))) : Integer
  (let ((k (vector-ref u 0))) (if (< k 3) (get v k) 0)))
(define (spoil u x) (vector-set! u 0 x))
(define (tried x)
  (let ((u (vector 1)))
    (spoil u x)
    (guard (e (#t 'refused)) (use u (vector 4 5 6)))))
(define (fits u) (use u (vector 4 5 6)))
(define (later (u : (Vector Nat))) : Integer (spoil u -1000000) (use u (vector 4 5 6)))
(display (list (fits (vector 2)) (tried -1000000) (tried 0.5) (tried "x") (guard (e (#t 'refused)) (later (vector 2)))))
"""


def test_what_others_change_is_looked_at_again(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A vector that was one of naturals may hold anything later: such an index goes through the checks of `get`."""
    assert "(get v k)" in shown(tmp_path, capfd, SPOILT, "expand").replace("\n", " ")
    assert shown(tmp_path, capfd, SPOILT, "run") == "(6 refused refused refused refused)"


def test_derivatives_go_through_such_accesses(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = """\
(define (dot (v : (Vector Float64 n)) (w : (Vector Float64 n))) : Float64
  (let loop ((i 0) (s 0.0))
    (if (< i (vector-length v)) (loop (+ i 1) (+ s (* (vector-ref v i) (vector-ref w i)))) s)))
(display (list (derivative (lambda (x) (dot (vector x 2.0) (vector x x))) 3.0)
               (gradient (lambda (v) (dot v v)) (vector 1.0 2.0))))
"""
    assert shown(tmp_path, capfd, program, "expand").count("(%vector-ref v i)") == 1
    assert (
        shown(tmp_path, capfd, program, "run") == shown(tmp_path, capfd, untyped(program), "run") == "(8.0 #(2.0 4.0))"
    )


def untyped(program: str) -> str:
    return program.replace("(v : (Vector Float64 n)) (w : (Vector Float64 n))) : Float64", "v w)")


def test_random_programs_never_read_out_of_bounds(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    seeds = drawn_bounds.accepted(range(24))
    assert len(seeds) > 10
    typed = shown(tmp_path, capfd, drawn_bounds.in_one(seeds, True), "run")
    assert typed == shown(tmp_path, capfd, drawn_bounds.in_one(seeds, False), "run")
    assert "refused" in typed
    assert shown(tmp_path, capfd, drawn_bounds.in_one(seeds, True), "expand").count("(%vector-") > 10


@pytest.mark.slow
def test_a_thousand_random_programs() -> None:
    assert drawn_bounds.main(1000, 9000) == 0
