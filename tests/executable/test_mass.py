"""Many programs as executables, and under sanitizers: transcripts of the language, and random ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz_programs import PRELUDES, programs
from transcript_programs import folder_of_transcripts, program_of

from eshkol.codegen.identity import source_key
from eshkol.executable.build import Builder, Options
from eshkol.lang.files import FileSource
from eshkol.lang.world import World
from eshkol.runtime.scheme_table import rows
from eshkol.session import Session, on_session

# What needs the compiler or Python says so in an executable; where these words are written, no more is compared.
MISSING = "and the program was built without it"
LEFT_OUT = {
    "r7rs/05_programs",  # declarations of libraries, which a prompt takes one by one
    "errors/syntax_errors",  # no form of it can be expanded
    "names/syntax",  # macros that use procedures of their own file
    "r7rs/06_13_ports",  # a file that is loaded defines a name
    "names/procedures",  # errors of eval are of another kind
    "lib/ownership",  # a program of such mistakes is refused before it runs
    "lib/srfi-41",  # what they import has names that (eshkol) has, too, which a prompt takes and a program does not
    "lib/srfi-collections",
    "lib/srfi-strings",
}
FOLDERS = ("r7rs", "hygiene", "lib", "errors", "names", "calculus")
TRANSCRIPTS = [
    name
    for path in sorted(folder_of_transcripts().rglob("*.esk"))
    if (name := str(path.relative_to(folder_of_transcripts()).with_suffix(""))).startswith(FOLDERS)
    and name not in LEFT_OUT
]
PLAIN = Options()
SANITIZED = Options(flags=("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"))
UNDER_SANITIZERS = (
    "r7rs/06_02_numbers",
    "r7rs/06_10_control",
    "lib/continuations",
    "lib/ownership",
    "calculus/gradients",
)
# The collector looks for pointers on the stack itself; it reads all of that, and never gives back what is not needed.
SANITIZERS = {"ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0", "ESHKOL_HEAP": "1G"}


def build(path: Path, text: str, options: Options = PLAIN) -> Path:
    """The executable of a program."""
    path.write_text(text, encoding="utf-8")
    made = path.with_suffix("")

    def work(session: Session) -> None:
        source = FileSource(path.name, text, path)
        find = lambda name: source if name == str(path) else session.source(name)
        Builder(session.world, session.cache, find, session.evaluate_unit, options).executable(
            session.world.program(source), made
        )

    on_session(work, [])
    return made


def run(command: list[str | Path], folder: Path, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **environment}, stdin=subprocess.DEVNULL, capture_output=True,
        timeout=300,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stderr.decode("utf-8", "replace")[-2000:]
    return done.returncode, done.stdout.decode("utf-8", "surrogateescape")


def transcript(name: str, folder: Path) -> str:
    """The program of a transcript."""
    path = folder / "checked.esk"
    found: list[str] = []

    def work(session: Session) -> None:
        def check(text: str) -> None:
            world = World(rows, session, version=source_key(), store=session.cache)
            _ = world.program(FileSource(path.name, text, path)).unit  # type: ignore[attr-defined]

        given = (folder_of_transcripts() / f"{name}.esk").read_text(encoding="utf-8")
        found.append(program_of(given, check)[0])

    on_session(work, [])
    return found[0]


def compared(made: Path, **environment: str) -> None:
    """The executable and `eshkol run` write the same, but for what is missing."""
    code, ours = run([made], made.parent, **environment)
    expected_code, theirs = run([sys.executable, "-m", "eshkol", "run", f"{made.name}.esk"], made.parent)
    if MISSING not in ours:
        assert (code, ours) == (expected_code, theirs)
        return
    lines = [(a, b) for a, b in zip(ours.splitlines(), theirs.splitlines(), strict=False) if MISSING not in a]
    assert [a for a, _ in lines] == [b for _, b in lines]


@pytest.mark.slow
@pytest.mark.parametrize("name", TRANSCRIPTS)
def test_transcripts(name: str, tmp_path: Path) -> None:
    compared(build(tmp_path / "p.esk", transcript(name, tmp_path)))


def random_programs(seed: int, count: int) -> str:
    prelude = PRELUDES["eshkol"].replace("(define here (environment '(scheme base)))", "")
    prelude = prelude.replace("(define (run-eval x) (eval x here))", "(define (run-eval x) 0)")
    return prelude + programs(seed, count, own=True)


def in_tier(tier: str, made: Path) -> tuple[int, str]:
    """What `eshkol run` makes of it, with code as it is written or optimized."""
    command = [sys.executable, "-m", "eshkol", "run", f"{made.name}.esk"]
    return run(command, made.parent, ESHKOL_TIER=tier)


def test_a_few_random_programs(tmp_path: Path) -> None:
    made = build(tmp_path / "p.esk", random_programs(1000, 1))
    code, said = run([made], made.parent)
    assert said.count("\n") > 0
    assert in_tier("quick", made) == (code, said)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(0, 160, 20))
def test_random_programs(seed: int, tmp_path: Path) -> None:
    made = build(tmp_path / "p.esk", random_programs(seed, 20))
    compared(made)
    compared(made, ESHKOL_GC_STRESS="49999")
    assert in_tier("quick", made) == in_tier("full", made) == run([made], made.parent)


@pytest.mark.slow
@pytest.mark.parametrize("name", UNDER_SANITIZERS)
def test_under_sanitizers(name: str, tmp_path: Path) -> None:
    made = build(tmp_path / "p.esk", transcript(name, tmp_path), SANITIZED)
    compared(made, **SANITIZERS)


OWNERS = """\
(define (sum (b : Bytevector)) : Nat
  (let loop ((i 0) (s 0)) (if (< i (bytevector-length b)) (loop (+ i 1) (+ s (bytevector-u8-ref b i))) s)))
(define (filled (n : Nat)) : Nat
  (with-region sizes
    (let ((a (region-alloc n)) (b (region-alloc n)))
      (if (> n 0) (begin (bytevector-u8-set! a (- n 1) 255) (bytevector-u8-set! b 0 1)))
      (+ (sum a) (sum b)))))
(define (nested (n : Nat)) : Nat
  (with-region outer :size-hint 100000
    (let ((a (region-alloc 70000)))
      (+ (sum a) (if (= n 0) 0 (+ (filled n) (nested (- n 1))))))))
(define (left (n : Nat)) : Any
  (call/cc (lambda (out) (with-region r (let ((b (region-alloc n))) (bytevector-u8-set! b 0 1) (out (sum b)))))))
(define (failed (n : Nat)) : Any
  (guard (e (#t 'caught)) (with-region r (let ((b (region-alloc n))) (bytevector-u8-ref b n)))))
(define (owners (n : Nat)) : Any
  (let ((a (owned (vector n))) (s (shared (list n))))
    (let ((b (move a)) (t (shared s)) (w (weak-ref s)))
      (list (vector-ref (borrow b) 0) (car (borrow t)) (shared-count s)))))
(define (closed) : Any (let ((p (owned (open-input-string "text")))) (read-char (borrow p))))
(display (map filled (append (iota 40) '(4095 4096 4097 16383 16384 16385 65536 300000))))
(display (list (nested 40) (map left '(1 5000 100000)) (map failed '(1 5000 100000)) (owners 3) (closed)))
(display (let loop ((i 0) (s 0)) (if (= i 2000) s (loop (+ i 1) (+ s (filled (modulo (* i 37) 20000)))))))
(for-each thread-join!
          (map (lambda (i) (thread-start! (make-thread (lambda () (nested 20) (filled 20000))))) (iota 4)))
(newline)
"""


@pytest.mark.slow
def test_owners_and_regions_under_sanitizers(tmp_path: Path) -> None:
    """Nothing is read that was given back, and nothing is forgotten: what is held at the end can be reached."""
    made = build(tmp_path / "p.esk", OWNERS, SANITIZED)
    compared(made, **SANITIZERS)
    compared(made, **SANITIZERS, ESHKOL_GC_STRESS="4999")
    kept = tmp_path / "kept"  # what lives as long as the process, in memory where no one looks for pointers
    kept.write_text("leak:esk_standard_port\nleak:esk_unit_procedure\n", encoding="utf-8")
    leaks = SANITIZERS["ASAN_OPTIONS"].replace("detect_leaks=0", "detect_leaks=1")
    options = {"ASAN_OPTIONS": leaks, "LSAN_OPTIONS": f"suppressions={kept}:print_suppressions=0"}
    compared(made, **{**SANITIZERS, **options})
