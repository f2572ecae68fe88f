"""compile-ahead: tensor programs and trained models in executables say what `eshkol run` says, and what NumPy says."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from eshkol.cli.main import main

EXAMPLE = Path(__file__).parents[2] / "examples" / "executables" / "classify.esk"
PROGRAM = """
(define weights (tensor (1.0 -1.0) (0.5 2.0) (-1.5 0.25)))
(define unused (begin (display "evaluated while it is built\\n") (tensor 1.0 2.0)))
(define classify (compile-ahead (lambda (points) (softmax (matmul points weights) -1)) (zeros 2 3)))
;; Processors with more instructions may round otherwise: so many digits are the same in any case.
(define (digits x) (/ (round (* x 1e9)) 1e9))
(write (vector-map digits (classify #(#(1 2 3) #(0.5 0 -0.5))))) (newline)
(define mixed
  (compile-ahead (lambda (x n b) (values (* x n) (tensor-sum x) (tensor-where b x (- unused)) (tensor-argmax x)))
                 (zeros 2) 2 (tensor #t #f)))
(define root (compile-ahead sqrt 2.0))
(define pick (compile-ahead (lambda (i) (tensor-take (tensor 10 20 30) i)) (tensor 0 1)))
(define slope
  (compile-ahead (lambda (v)
                   (gradient (lambda (v)
                               (let ((x (tensor-ref v 0)) (y (tensor-ref v 1)))
                                 (+ (expt (- 1 x) 2) (* 100 (expt (- y (* x x)) 2)))))
                             v))
                 (zeros 2)))
(define curve (compile-ahead (lambda (x) (derivative (lambda (x) (derivative (lambda (y) (* y y (sin y))) x)) x)) 1.0))
(define (try f . arguments)
  (guard (e (#t (write (list (error-object-kind e) (error-object-message e) (error-object-irritants e)))))
    (call-with-values (lambda () (apply f arguments)) (lambda all (write all))))
  (newline))
(try mixed '(1 2) 7 '(#t #f))
(try mixed #u8(3 2) -7 #(#f #f))
(try mixed #(1/3 1e400) 7 '(#t #f))
(try mixed '(1 2) 7.5 '(#t #f))
(try mixed '(1 2) 99999999999999999999 '(#t #f))
(try mixed '((1) (2 3)) 7 '(#t #f))
(try mixed '(1) 7 '(#t #f))
(try mixed '(1 +i) 7 '(#t #f))
(try mixed "12" 7 '(#t #f))
(try mixed '(1 2) 7 '(#t 1))
(try mixed '(1 2) 7)
(write (vector-map digits (slope '(-1.2 1)))) (newline)
(write (digits (curve 1.5))) (newline)
(try root 2)
(try pick '(2 0))
(let loop ((k 0)) (if (< k 1000) (begin (root k) (loop (+ k 1)))))
(root 1 2)
"""


def built(name: str, *words: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run([f"./{name}", *words], env=environment, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def test_tensor_procedures_say_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.esk").write_text(PROGRAM, encoding="utf-8")
    code = main(["run", "p.esk"])
    said = capfd.readouterr()
    assert main(["build", "p.esk"]) == 0
    assert capfd.readouterr().out == "evaluated while it is built\n"
    before, _, rest = said.out.partition("\n")
    assert before == "evaluated while it is built"
    done = built("p")
    assert done[:2] == (code, rest)
    assert said.err.startswith(done[2])  # the frames of procedures that were put in place of their calls are missing
    assert "it was compiled for 1 argument, but was given 2\n  --> p.esk:41:1\n" in done[2]
    assert built("p", ESHKOL_GC_STRESS="97")[1] == rest
    x = np.array([[1, 2, 3], [0.5, 0, -0.5]]) @ np.array([[1, -1], [0.5, 2], [-1.5, 0.25]])
    expected = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    given = [float(number) for number in rest.splitlines()[0][2:-1].split()]
    assert np.allclose(given, expected.ravel(), atol=1e-9)
    lines = rest.splitlines()
    assert lines[1] == "(#(7.0 14.0) 3.0 #(1.0 -2.0) 1)"
    assert lines[-2:] == ["(1.4142135623730951)", "(#(30 10))"]
    assert lines[-4] == "#(-215.6 -88.0)"
    y = 1.5
    assert abs(float(lines[-3]) - (2 - y * y) * np.sin(y) - 4 * y * np.cos(y)) < 1e-9
    assert "expected a vector of 2 numbers as argument 1" in rest


def test_a_trained_model_is_in_the_executable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = EXAMPLE.read_text(encoding="utf-8")
    head = text.partition("(define model ")[0]
    Path("save.esk").write_text(head + '(rng-seed 7) (save-checkpoint (Digits 16) "digits.eskpt")', encoding="utf-8")
    assert main(["run", "save.esk"]) == 0
    pictures = np.random.default_rng(0).integers(0, 17, (3, 8, 8))
    for k, picture in enumerate(pictures):
        Path(f"{k}.pgm").write_text(f"P2\n8 8\n16\n{' '.join(map(str, picture.ravel()))}\n")
    Path("classify.esk").write_text(text, encoding="utf-8")
    files = [f"{k}.pgm" for k in range(len(pictures))]
    assert main(["run", "classify.esk", *files]) == 0
    expected = capfd.readouterr().out
    assert main(["build", "classify.esk", "--strip"]) == 0
    Path("digits.eskpt").unlink()  # its weights are in the executable
    assert built("classify", *files) == (0, expected, "")
    assert len(expected.splitlines()) == len(pictures)
    assert Path("classify").stat().st_size <= 5 << 20
    code, _, said = built("classify", "save.esk")
    assert (code, said.startswith("error: a plain PGM picture")) == (1, True)


def test_what_cannot_be_compiled_ahead_is_told_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for text, words in (
        ("(define (make n) (compile-ahead (lambda (x) (* x n)) (zeros 2)))", "n has no value then|p.esk:1:50"),
        (
            "(define w (tensor 1.0))\n(set! w (tensor 2.0))\n(define f (compile-ahead (lambda (x) (* x w)) 1.0))",
            "w, which it needs, is changed when it runs|p.esk:2:1|p.esk:3:11",
        ),
        (
            "(define m (linear 2 1))\n(define (train) (fit m 1))\n(define h (train))\n(compile-ahead m (zeros 1 2))",
            "needs m, and this uses it before|p.esk:3:1|p.esk:4:1",
        ),
        ("(define fs (map compile-ahead (list sqrt)))", "must be called where it is named|p.esk:1:17"),
        ('(define m (load-checkpoint "no"))\n(compile-ahead (lambda (x) (m x)) 1.0)', "'no'|p.esk:1:11"),
        ("\n (compile-ahead (lambda (x) (solve x x)) (zeros 2 2))", "matrix_solve|without Python|p.esk:2:2"),
        ("(compile-ahead (lambda (x) x) (tensor 1.0 :dtype 'float16))", "argument 1 is float16|p.esk:1:1"),
        ("(compile-ahead (lambda (x) 'a) 1.0)", "gives tensors and numbers, not a|p.esk:1:1"),
        (
            "(define f (compile-ahead sqrt 1.0))\n(define g (compile-ahead (lambda (x) (f x)) 1.0))",
            "f is compiled ahead itself|p.esk:1:12",
        ),
    ):
        Path("p.esk").write_text(text)
        assert main(["build", "p.esk"]) == 1, text
        said = capfd.readouterr().err
        assert all(word in said for word in words.split("|")), (text, said)
        assert "^" in said
        assert not Path("p").exists()
