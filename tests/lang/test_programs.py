"""Programs in files, as `eshkol run` and `eshkol expand` take them: libraries, includes, arguments, exit codes."""

from __future__ import annotations

from pathlib import Path

import pytest

from eshkol.cli.main import main

LIBRARIES = {
    "sub/shapes.esk": """
        (define-library (sub shapes)
          (export area (rename private-name public-name) with-private)
          (import (scheme base) (sub util))
          (include "deep/body.esk"))""",
    "sub/deep/body.esk": """
        (define (area x) (* 10 (twice x)))
        (define private-name 'renamed)
        (define hidden 'hidden)
        (define-syntax with-private (syntax-rules () ((_ x) (list hidden x))))""",
    "sub/util.esk": """
        (define-library (sub util) (export twice) (import (scheme base)) (begin (define (twice x) (* 2 x))))""",
    "sub/included.esk": "(define included 5)",
    "provided.esk": '(provide f) (require "sub/uses.esk") (define (g x) (* x x)) (define (f x) (g (+ x one)))',
    "sub/uses.esk": '(provide one) (include "included.esk") (define one (- included 4))',
    "loaded.esk": "(define loaded (list 'loaded (+ 1 2)))",
    "ring-a.esk": "(define-library (ring-a) (export a) (import (scheme base) (ring-b)) (begin (define a 1)))",
    "ring-b.esk": "(define-library (ring-b) (export b) (import (scheme base) (ring-a)) (begin (define b 1)))",
}


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    for name, text in LIBRARIES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def call(program: str, *args: str, command: str = "run") -> tuple[int, str, str]:
        (tmp_path / "program.esk").write_text(program)
        code = main([command, str(tmp_path / "program.esk"), *args])
        return (code, *capfd.readouterr())

    return call


def test_libraries_and_files_are_found_beside_what_names_them(run, tmp_path: Path) -> None:
    program = """
        (import (scheme base) (scheme write) (scheme process-context) (sub shapes) (prefix (only (sub util) twice) u:))
        (write (list (area 3) (u:twice 4) public-name (let ((hidden 1)) (with-private hidden)) (cdr (command-line))))
        (include "sub/included.esk")
        (write (list included (let () (include "sub/included.esk") (+ included 1))))"""
    for _ in range(2):  # the second time from the cache
        assert run(program, "one", "-x") == (0, '(60 8 renamed (hidden 1) ("one" "-x"))(5 6)', "")
    # a change in what is included is a change of the library
    (tmp_path / "sub/deep/body.esk").write_text(LIBRARIES["sub/deep/body.esk"].replace("10", "100"))
    assert run(program)[1].startswith("(600 8 ")


def test_require_and_provide_and_modules_and_load(run, tmp_path: Path) -> None:
    assert run('(require "provided.esk") (write (f 3))') == (0, "16", "")
    assert "g" in run('(require "provided.esk") (write (g 3))')[2]
    program = "(module counter (next) (define n 0) (define (next) (set! n (+ n 1)) n)) (write (list (next) (next)))"
    assert run(program) == (0, "(1 2)", "")
    loading = f'(load "{tmp_path}/loaded.esk") (write (eval \'loaded (interaction-environment)))'
    assert run(loading) == (0, "(loaded 3)", "")


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("(import (ring-a)) a", ["circle", "(ring-a) → (ring-b) → (ring-a)", "ring-b.esk:1:"]),
        ("(import (not there))", ["there is no library (not there)", "not/there.esk", "program.esk:1:9"]),
        ('(include "not-there.esk")', ["not-there.esk", "no such file", "program.esk:1:10"]),
        ('(require "not-there.esk")', ["not-there.esk", "program.esk:1:10"]),
        ('(load "not-there.esk")', ["load", "not-there.esk", "no such file"]),
        ("(import (scheme base) (sub shapes)) hidden", ["hidden", "program.esk:1:37"]),
        ("(import (only (sub util) thrice))", ["thrice", "twice"]),
        ("(import (sub util)) (define (twice x) x)", ["twice"]),
        ("(display 1) (car 5)", ["car", "expected a pair", "5", "program.esk:1:13"]),
        ("(define (f x) (+ 1 (vector-ref x 9))) (f #(1))", ["vector-ref", "index from 0 to 0", "got 9", "esk:1:20"]),
        ("(display (add1 5))", ["add1", "program.esk:1:11"]),
        ('(error "it went wrong:" \'(1 2) "s")', ['it went wrong: (1 2) "s"']),
        ("(raise 'boom)", ["boom"]),
    ],
)
def test_what_goes_wrong_is_said_and_the_exit_code_is_1(run, program: str, words: list[str]) -> None:
    code, _, error = run(program)
    assert code == 1
    assert [word for word in words if word not in error] == [], error


@pytest.mark.parametrize(
    ("program", "code", "output"),
    [
        ("", 0, ""),
        ("(exit)", 0, ""),
        ("(exit #t)", 0, ""),
        ("(exit #f)", 1, ""),
        ("(exit 7)", 7, ""),
        ("(display 1) (exit 3) (display 2)", 3, "1"),
        ("(emergency-exit 9)", 9, ""),
        ("(dynamic-wind (lambda () #f) (lambda () (exit 4)) (lambda () (display 'after)))", 4, "after"),
        ("(dynamic-wind (lambda () #f) (lambda () (emergency-exit 4)) (lambda () (display 'after)))", 4, ""),
        ("(with-exception-handler (lambda (e) (exit 5)) (lambda () (car 1)))", 5, ""),
        ("(guard (e (#t (display 'no))) (exit 6))", 6, ""),
    ],
)
def test_exit_codes(run, program: str, code: int, output: str) -> None:
    assert run(program) == (code, output, "")


def test_expand(run) -> None:
    program = """
        (define-syntax swap! (syntax-rules () ((_ a b) (let ((t a)) (set! a b) (set! b t)))))
        (define (f t x) (swap! t x) (cond ((= t 1) => list) (else `(,t ,@x . z))))
        (let loop ((i 0)) (when (< i 3) (display i) (loop (+ i 1))))
        'done"""
    code, shown, error = run(program, command="expand")
    assert (code, error) == (0, "")
    assert (
        shown
        == """\
(define (f t x)
  (let ((t.1 t)) (set! t x) (set! x t.1))
  (let ((t.1 (= t 1))) (if t.1 (list t.1) (cons t (append x 'z)))))
(letrec* ((loop (lambda (i) (if (< i 3) (begin (display i) (loop (+ i 1))))))) (loop 0))
'done
"""
    )
    # what is shown is a program again
    assert run(shown, command="run")[:2] == (0, "012")
    assert run("(define-syntax m (syntax-rules ()))(m)", command="expand")[0] == 1
