"""Proofs that sizes are equal: what they change in types, and that nothing of them is left in the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from eshkol.bindings import install
from eshkol.cli.main import main

install()

ADDED = """\
(define (add (x : (Tensor Float32 n)) (p : (Proof {n = m})) (y : (Tensor Float32 m))) : (Tensor Float32 m)
  (+ (cast-shape x p) y))
(define (flat (x : (Tensor Float32 n 3)) (y : (Tensor Float32 {n = (* 2 m)}))) : (Tensor Float32 (* 2 m) 3)
  (cast-shape x (proof {n = (* 2 m)})))
(define (turned (x : (Tensor Float32 m)) (p : (Proof {n = m})) (y : (Tensor Float32 n))) : (Tensor Float32 n)
  (cast-shape x (proof {m = n})))
(define (looked (x : (Tensor Float32 a)) (y : (Tensor Float32 b))) : (Tensor Float32 b)
  (if (= (tensor-shape x 0) (tensor-shape y 0)) (add x (proof {a = b}) y) y))
(define (named (v : (Vector Integer a)) (w : (Vector Integer b))) : (Vector Integer b)
  (if (= (vector-length v) (vector-length w))
      (let* ((p (proof {a = b})) (q p)) (cast-shape v q))
      w))
"""
USED = """\
(display (looked (tensor 1.0 2.0) (tensor 3.0 4.0)))
(display (looked (tensor 1.0) (tensor 3.0 4.0)))
(display (named (vector 1 2) (vector 3 4)))
(display (named (vector 1 2) (vector 3)))
"""


def text_of(tmp_path: Path, capfd: pytest.CaptureFixture[str], program: str, *command: str) -> tuple[int, str, str]:
    file = tmp_path / "a.esk"
    file.write_text(program)
    code = main([*command, str(file)])
    return (code, *capfd.readouterr())


def test_casts_fit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert text_of(tmp_path, capfd, ADDED, "check")[0] == 0
    without = ADDED.replace("(cast-shape x p)", "x")
    code, _, said = text_of(tmp_path, capfd, without, "check")
    assert code == 1
    assert "(Tensor Float32 n)" in said
    assert text_of(tmp_path, capfd, ADDED + USED, "run") == (0, "(4.0 6.0)(3.0 4.0)#(1 2)#(3)", "")


def test_nothing_is_left_of_them(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The program without its proofs, whose types are left out as far as they need them, is the same program."""
    code, expanded, _ = text_of(tmp_path, capfd, ADDED + USED, "expand")
    assert code == 0
    assert "cast-shape" not in expanded
    assert "proof" not in expanded
    assert "(define (|add (typed)| x y) (+ x y))" in expanded  # the proof is no parameter of it
    assert "(|add (typed)| x y)" in expanded.replace("\n", " ")


def test_untyped_callers_of_procedures_that_want_proofs_are_looked_at(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    program = """\
(define (first-of (v : (Vector Integer n)) (w : (Vector Integer m)) (p : (Proof {n = m})) (i : {i < m})) : Integer
  (vector-ref (cast-shape v p) i))
(define (id x) x)
(display ((id first-of) (vector 7 8) (vector 5 6) 'whatever 1))
(display (guard (e (#t (error-object-message e))) ((id first-of) (vector 7) (vector 5 6) 'whatever 1)))
"""
    code, out, _ = text_of(tmp_path, capfd, program, "run")
    assert code == 0
    assert out.startswith("8")
    assert "first-of asks for {n = m}" in out


def test_proofs_may_be_proven_by_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = """\
(define (two (x : (Tensor Float32 a)) (y : (Tensor Float32 b)) (z : (Tensor Float32 c))
             (p : (Proof {a = b})) (q : (Proof {b = c})))
  : (Tensor Float32 (* 2 c))
  (cast-shape (concatenate (list x x)) (proof {(* 2 a) = (* 2 c)})))
(define (three (x : (Tensor Float32 a)) (y : (Tensor Float32 b)) (p : (Proof {a = b}))) : (Tensor Float32 a)
  (cast-shape y (proof {b = a})))
"""
    code, _, said = text_of(tmp_path, capfd, program, "check")
    assert code == 0, said
    code, _, said = text_of(tmp_path, capfd, program.replace("{b = a}", "{b = c}"), "check")
    assert "{b = c} does not follow from what is known here" in said
    assert "known is a = b" in said


def test_names_of_sizes_are_those_of_their_procedure(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program = """\
(define (outer (x : (Tensor Float32 n)) (y : (Tensor Float32 m)) (p : (Proof {n = m})))
  (lambda ((z : (Tensor Float32 n))) (cast-shape z p)))
"""
    code, _, said = text_of(tmp_path, capfd, program, "check")
    assert code == 1
    assert "cast-shape takes a proof, but this is none" in said
