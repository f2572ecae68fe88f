"""`eshkol build`: executables do what `eshkol run` does, without Python; what is wrong is told in the same words."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from batches import of_each
from eshkol.cli.main import main

Run = Callable[..., tuple[int, str, str]]

# Each case is a procedure; the word on the command line says which one runs.
PROGRAM = """
(import (eshkol) (srfi 1))
(define-record-type point (make-point x y) point? (x point-x set-point-x!) (y point-y))
(define counter 0)
(define (next!) (set! counter (+ counter 1)) counter)
(define (deep n) (if (= n 0) 0 (+ 1 (deep (- n 1)))))
(define (generate emit) (for-each emit '(1 2 3)))
(define (tree n) (if (= n 0) '() (cons (tree (- n 1)) (tree (- n 1)))))
(define (leaves t) (if (null? t) 1 (+ (leaves (car t)) (leaves (cdr t)))))
(define-syntax swap! (syntax-rules () ((_ a b) (let ((kept a)) (set! a b) (set! b kept)))))
(define (tell . all) (for-each (lambda (one) (write one) (display " ")) all) (newline))

(define (everything)
  (tell (expt 7 77) (/ 6 4) (sqrt -4) (exact->inexact 1/3) (string->number "1e400") (exact (floor 2.5)))
  (tell (make-point 1 2) (point-x (make-point 3 4)) (point? 5) 'Symbol "te\\nxt ü λ" #\\x #(1 "a" (b . c)) #u8(1 2))
  (tell (let ((a 1) (b 2)) (swap! a b) (list a b)) (next!) (next!) counter)
  (tell (call/cc (lambda (k)
                   (dynamic-wind (lambda () (display "in ")) (lambda () (k 1)) (lambda () (display "out "))))))
  (let ((back #f) (times 0))
    (tell (+ 1 (call/cc (lambda (k) (set! back k) 1))))
    (set! times (+ times 1))
    (if (< times 3) (back times)))
  (tell (guard (e ((symbol? e) (list 'symbol e)) ((error-object? e) (error-object-message e))) (raise 'boom)))
  (tell (guard (e ((string? e) e)) (guard (e2 ((number? e2) e2)) (raise "passed on"))))
  (tell (with-exception-handler (lambda (e) 10) (lambda () (+ 1 (raise-continuable 'c)))))
  (tell (guard (e (#t (error-object-kind e))) (deep 100000000)) (deep 200000))
  (tell (let-values (((q r) (floor/ -7 2))) (list q r)) (receive (a . rest) (values 1 2 3) rest))
  (let ((table (make-hash-table)))
    (for-each (lambda (k) (hash-table-set! table k (* k k))) (iota 50))
    (tell (hash-table-ref table 7) (hash-table-count table) (sort (take (hash-table-keys table) 5) <)))
  (tell (call-with-output-string (lambda (port) (write 'x port) (display 1.5 port)))
        (read (open-input-string "(a . b)")))
  (tell (sort '(3 1 2) <) (fold + 0 '(1 2 3)) (map + '(1 2) '(10 20)) (vector-map - #(1 2)) (string-upcase "straße"))
  (tell (derivative (lambda (x) (* x x x)) 2.0) (gradient (lambda (x y) (* x (sin y))) 1.0 2.0))
  (tell (derivative (lambda (x) (derivative (lambda (y) (* x y y)) 3.0)) 1.0)
        (hessian (lambda (v) (* (vector-ref v 0) (vector-ref v 1))) #(1.0 2.0)))
  (tell (force (delay (+ 1 2))) (parameterize ((current-output-port (current-error-port))) 1) (string->symbol "a b"))
  (tell (leaves (tree 14)) (length (iota 100000)) (apply + (iota 300)))
  (tell (procedure-name deep) (> (current-jiffy) 0) (cdr (command-line)))
  (let ((line (read-line))) (tell line (read-char) (eof-object? (read-line)))))

(define cases
  (list (cons "all" everything)
        (cons "type" (lambda () (tell 1) (+ 1 (car (next!)))))
        (cons "arity" (lambda () (apply deep '(1 2))))
        (cons "range" (lambda () (vector-ref (vector 1 2) (next!)) (vector-ref (vector 1 2) 7)))
        (cons "raise" (lambda () (raise (list 1 "two" 'three))))
        (cons "error" (lambda () (error 'somebody "something is wrong:" 1 "two" #(3))))
        (cons "nested" (lambda () (map (lambda (x) (string-append "a" x)) '("b" 5))))
        (cons "file" (lambda () (open-input-file "no/such/file")))
        (cons "stack" (lambda () (deep 1000000000)))
        (cons "wind" (lambda () (dynamic-wind (lambda () #t) (lambda () (exit 3)) (lambda () (display "left")))))
        (cons "exit" (lambda () (display "no newline") (exit 7)))
        (cons "false" (lambda () (exit #f)))
        (cons "division" (lambda () (quotient 1 0)))
        (cons "loop" (lambda () (display "ready") (newline) (flush-output-port) (let loop () (loop))))
        (cons "wait" (lambda () (display "ready") (newline) (flush-output-port) (read-line)))
        (cons "write" (lambda () (let loop ((i 0)) (tell i) (loop (+ i 1)))))))

(define (run-case name) ((cdr (assoc name cases))) #t)
(run-case (cadr (command-line)))
"""
SAME = ("type", "arity", "range", "raise", "error", "nested", "file", "wind", "exit", "false", "division")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a program and its executable."""
    made = tmp_path_factory.mktemp("built")
    before = Path.cwd()
    os.chdir(made)  # places are told from there
    try:
        Path("p.esk").write_text(PROGRAM, encoding="utf-8")
        assert main(["build", "p.esk", "-o", "p"]) == 0
    finally:
        os.chdir(before)
    return made


@pytest.fixture
def run(folder: Path) -> Run:
    """Runs the executable with nothing in its environment."""

    def call(*words: str, given: str = "a line\nx", **environment: str) -> tuple[int, str, str]:
        done = subprocess.run(
            ["./p", *words], cwd=folder, env=environment, input=given, capture_output=True, text=True, timeout=120
        )
        return done.returncode, done.stdout, done.stderr

    return call


@pytest.fixture
def interpreted(folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the program as `eshkol run` does."""
    monkeypatch.chdir(folder)
    monkeypatch.delenv("ESHKOL_DEBUG", raising=False)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(["run", "p.esk", *words])
        return (code, *capfd.readouterr())

    return call


def test_everything_says_the_same(run: Run, folder: Path) -> None:
    with (folder / "given").open("w+") as given:
        given.write("a line\nx")
        given.seek(0)
        done = subprocess.run(
            [sys.executable, "-m", "eshkol", "run", "p.esk", "all"],
            cwd=folder,
            stdin=given,
            capture_output=True,
            text=True,
            timeout=120,
        )
    assert (done.returncode, done.stderr) == (0, "")
    assert "18683126921672257 " not in done.stdout  # 7^77 is no fixnum
    assert run("all") == (0, done.stdout, "")
    assert run("all", ESHKOL_GC_STRESS="9973")[:2] == (0, done.stdout)


def test_errors_say_the_same(run: Run, interpreted: Run) -> None:
    for case in SAME:
        assert run(case) == interpreted(case), case


def test_a_stack_that_is_used_up_is_an_error_with_its_line(run: Run) -> None:
    code, _, said = run("stack")
    assert code == 1
    assert said.startswith("error: the stack is used up: recursion is too deep\n  --> p.esk:")
    assert "in deep at p.esk:" in said


@of_each("case", ["loop", "wait"])
def test_ctrl_c_interrupts(folder: Path, case: str) -> None:
    process = subprocess.Popen(
        ["./p", case], cwd=folder, env={}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130  # before its input ends
    assert process.communicate()[1].startswith(b"interrupted\n")


def test_no_one_reads_or_the_disk_is_full(folder: Path) -> None:
    process = subprocess.Popen(["./p", "write"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert (process.wait(60), process.stderr.read() if process.stderr else b"") == (141, b"")
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(["./p", "exit"], cwd=folder, stdout=full, stderr=subprocess.PIPE, timeout=60)
    assert done.returncode == 7  # as the program says, whatever becomes of its output


def test_what_is_not_there_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = """(define (try thunk) (guard (e (#t (display (error-object-kind e)) (display ": ")
                (display (error-object-message e)) (newline))) (thunk)))
              (try (lambda () (eval '(+ 1 2) (interaction-environment))))
              (try (lambda () (tensor-add (tensor 1 2) 3)))
              (write (list (tensor? 1) tensor-add))
              (tensor-shape 1)"""
    Path("p.esk").write_text(text)
    assert main(["build", "p.esk"]) == 0
    said = capfd.readouterr().err
    for name, what, place in (
        ("eval", "the compiler", "3:31"),
        ("tensor-add", "Python", "4:31"),
        ("tensor-shape", "Python", "6:15"),
    ):
        told = f"warning: {name} needs {what}, which the executable is built without: this call will fail"
        assert f"{told}\n  --> p.esk:{place}\n" in said
    assert said.count("warning: ") == 5  # interaction-environment and tensor, too
    assert said.endswith("hint: (compile-ahead f example ...) compiles a procedure of tensors into it\n")
    done = subprocess.run(["./p"], capture_output=True, text=True, timeout=60, env={})
    compiler = "system: this needs the compiler, and the program was built without it; run it with `eshkol run`\n"
    python = "system: this needs Python, and the program was built without it; run it with `eshkol run`\n"
    assert done.stdout == f"{compiler}{python}(#f #<procedure tensor-add>)"
    assert done.stderr.startswith("error: tensor-shape: this needs Python, ")
    assert "p.esk:6:15" in done.stderr


def test_hello_is_small_and_reaches_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("hello.esk").write_text('(import (scheme base) (scheme write)) (display "hello") (newline)')
    assert main(["build", "hello.esk", "--strip", "-v"]) == 0
    assert Path("hello").stat().st_size <= 1 << 20
    told = capfd.readouterr()
    assert (told.out[:7], told.err) == ("hello: ", "")
    assert subprocess.run(["./hello"], env={}, capture_output=True, timeout=60).stdout == b"hello\n"
    text = "(define (used) (map car '((1))))\n(define (never-reached) (sort '(1) <))\n(write (used))"
    Path("big.esk").write_text(text)
    assert main(["build", "big.esk", "-v"]) == 0
    assert int(capfd.readouterr().out.split("forms; ")[1].split()[0]) > 50  # of (eshkol lists) and others
    assert b"never-reached" not in Path("big").read_bytes()


def test_what_fails_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.esk").write_text("(display 1)")
    Path("wrong.esk").write_text("(display (not-there 1))")
    Path("p").write_text("what was there before")
    before = sorted(tmp_path.iterdir())

    def fails(*words: str) -> str:
        assert main(["build", *words]) in (1, 2)
        assert sorted(tmp_path.iterdir()) == before
        assert Path("p").read_text() == "what was there before"
        return capfd.readouterr().err

    assert "not-there" in fails("wrong.esk", "-o", "p")
    assert "wrong.esk:1:11" in fails("wrong.esk", "-o", "p")
    assert "no such file" in fails("missing.esk").lower()
    assert "cannot be written" in fails("p.esk", "-o", "no/such/folder/p")
    assert "is a folder" in fails("p.esk", "-o", str(tmp_path))
    with monkeypatch.context() as other:
        other.setenv("CC", "no-such-compiler")
        assert "no-such-compiler" in fails("p.esk")
    with monkeypatch.context() as other:
        writes = Path.write_bytes

        def full(path: Path, data: bytes) -> int:
            if path.name == "data.o":
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return writes(path, data)

        other.setattr(Path, "write_bytes", full)
        assert "'p' cannot be written: No space left on device" in fails("p.esk")


# A build whose linker meets something; the command is the driver's arguments.
DRIVER = """
import os, signal, sys
from pathlib import Path
from eshkol.cli.main import main
from eshkol.executable import build

meets, run_compiler = sys.argv[1], build.run_compiler

def linked(command, folder):
    if "whole" not in command:
        return run_compiler(command, folder)
    if meets == "full":  # no file may be longer than 64 KB from now on
        return run_compiler(["sh", "-c", 'ulimit -f 64; exec "$@"', "sh", *command], folder)
    (folder / "whole").write_bytes(bytes(4096))
    os.kill(os.getpid(), getattr(signal, meets))
    signal.pause()

build.run_compiler = linked
sys.exit(main(["build", "p.esk", "-o", "p"]))
"""


def test_a_kill_or_a_full_disk_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("p.esk").write_text("(display 1)")
    Path("p").write_text("what was there before")

    def build_meets(what: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", DRIVER, what]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert Path("p").read_text() == "what was there before"
        assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".p-")} == {"p", "p.esk"}
        return done

    assert build_meets("SIGKILL").returncode == -signal.SIGKILL
    (left,) = tmp_path.glob(".p-*")
    Path(".p-settings").mkdir()  # somebody else's
    for folder in (left, Path(".p-settings")):
        os.utime(folder, (0, 0))  # long ago: the next build takes its own away
    done = build_meets("full")
    assert done.returncode == 1
    assert "the C compiler failed" in done.stderr
    assert [path.name for path in tmp_path.glob(".p-*")] == [".p-settings"]


LIBRARY = """
(provide area greet count-down! sum divide)
(: area (-> Float64 Float64))
(define (area r) (* 3.5 r r))
(define (greet (name : String)) : String (string-append "hello, " name))
(define (count-down! (n : Int64)) : Int64 (if (= n 0) 0 (+ 1 (count-down! (- n 1)))))
(define (sum . all) (apply + all))
(define (divide (a : Float64) (b : Float64)) : Float64
  (if (= b 0.0) (error "divided by zero:" a) (/ a b)))
"""
CALLER = r"""
#include "shapes.h"
#include <stdio.h>
int main(void) {
    double real = 0;
    printf("%g %s %lld\n", area(2), greet("wörld"), (long long)count_down(1000));
    printf("%d ", shapes_error() == NULL);
    printf("%lld ", (long long)count_down(100000000));
    printf("%.28s\n", shapes_error());
    real = divide(1, 0);
    printf("%d ", real != real);
    printf("%s\n", shapes_error());
    shapes_value *given[] = {shapes_integer(1), shapes_real(2.5), shapes_boolean(false)};
    shapes_value *sum = shapes_call("sum", 2, given);
    printf("%d ", shapes_as_real(sum, &real));
    printf("%g %s\n", real, shapes_text(sum));
    printf("%d ", shapes_call("sum", 3, given) == NULL);
    printf("%s\n", shapes_error());
    printf("%d ", shapes_call("product", 0, NULL) == NULL);
    printf("%s\n", shapes_error());
    printf("%d\n", shapes_as_boolean(given[2]));
    for (int i = 0; i < 3; i++) shapes_release(given[i]);
    shapes_release(sum);
    return 0;
}
"""


def test_a_library_is_called_from_c_and_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from eshkol.support.c_compiler import c_compiler

    monkeypatch.chdir(tmp_path)
    Path("shapes.esk").write_text(LIBRARY)
    Path("caller.c").write_text(CALLER, encoding="utf-8")
    assert main(["build", "shapes.esk", "--shared"]) == 0
    linked = [*c_compiler(), "-Wall", "-Werror", "caller.c", "-o", "caller", "-L.", "-lshapes", "-Wl,-rpath,."]
    subprocess.run(linked, check=True)
    done = subprocess.run(["./caller"], capture_output=True, text=True, timeout=60, env={})
    assert done.stderr == ""
    assert done.stdout == (
        "14 hello, wörld 1000\n"
        "1 0 error: the stack is used up:\n"
        "1 error: divided by zero: 1.0\n"
        "  --> shapes.esk:9:17\n"
        '    9 |   (if (= b 0.0) (error "divided by zero:" a) (/ a b)))\n'
        f"{' ' * 24}^{'~' * 27}\n"
        "1 3.5 3.5\n"
        "1 error: +: expected a number as argument 3, but got #f\n"
        "hint: #f often means that nothing was found: string->number, assoc and member give it\n"
        "1 there is no such procedure in this library\n"
        "0\n"
    )
    caller = """
import ctypes, threading
library = ctypes.CDLL("./libshapes.so")
library.count_down.restype, library.count_down.argtypes = ctypes.c_int64, [ctypes.c_int64]
found = []
def work():
    found.extend(library.count_down(1000 + k) for k in range(50))
threads = [threading.Thread(target=work) for _ in range(4)]
for thread in threads: thread.start()
for thread in threads: thread.join()
assert sorted(found) == sorted(4 * list(range(1000, 1050))), found
"""
    subprocess.run(["python", "-c", caller], check=True, timeout=60)


def test_what_no_library_can_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for text, words in (
        ("(define (f) 1)", "provides nothing"),
        ("(provide car)", "car is not defined"),
        ("(provide f-g f_g) (define (f-g) : Int64 1) (define (f_g) : Int64 2)", "would both be f_g in C"),
    ):
        Path("x.esk").write_text(text)
        assert main(["build", "x.esk", "--shared"]) == 1
        assert words in capfd.readouterr().err
        assert [path.name for path in tmp_path.iterdir()] == ["x.esk"]


def test_a_project_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["new", "orbits"]) == 0
    monkeypatch.chdir(tmp_path / "orbits" / "src")
    assert main(["build"]) == 0
    made = tmp_path / "orbits" / "build" / "orbits"
    assert subprocess.run([made, "Ada"], capture_output=True, text=True, check=True).stdout == "Hello, Ada!\n"
    monkeypatch.chdir(tmp_path)
    assert main(["build"]) == 2
    assert "belongs to no project" in capsys.readouterr().err
