"""Programs that run while they are compiled: what is compiled when, and that no one can tell by the answers."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import fuzz
import pytest
from compiled import in_session, outcome, written

from effort import amount
from eshkol.codegen import units
from eshkol.codegen.tiers import LARGE
from eshkol.llvm import cores
from eshkol.llvm.objects import compile_object
from eshkol.llvm.passes import SINGLE_UNIT
from eshkol.llvm.targets import host
from eshkol.runtime.scheme_table import layout
from eshkol.session import Session
from eshkol.support.store import ProgramCache

COMMAND = [sys.executable, "-c", "import sys; from eshkol.cli.command import main; sys.exit(main())"]
HEAD = "(import (scheme base) (scheme write))\n"
FILLER = "\n".join(
    f"(define (filler-{i} x y) (let loop ((i 0) (s x)) (if (< i y) (loop (+ i 1) (+ s (* {i} y))) (list s x y))))"
    for i in range(1 + LARGE // 20)
)  # that make a program large

ROOM = f"(define room (list{' 1' * LARGE}))"  # that makes one large, too, and is compiled at once


@pytest.fixture
def while_running(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have asked for a tier."""
    monkeypatch.delenv("ESHKOL_TIER", raising=False)


def session_of(cache: Path) -> Session:
    return Session(cache=ProgramCache(cache, durable=False))


# ---- what is compiled, and when --------------------------------------------------------------------------------------


def test_a_procedure_is_compiled_when_it_is_first_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_TIER", "quick")
    program = """
    (define (called x) (+ (helper x) 1))
    (define (helper x) (* x x))
    (define (never x) (called (+ x 1)))
    (define (shown x) x)
    (write (list (called 5) (called 6) (procedure? never)))"""

    def work(session: Session) -> None:
        assert written(session, HEAD + program + FILLER) == "(26 37 #t)"
        (unit,) = [unit for unit in session.engine.tiers if "called" in unit.names()]
        assert not {"never", "shown", "filler-3"} & unit.names()
        assert unit.names(best=True) == set()

    in_session(work)


def test_small_programs_are_optimized_at_once(while_running: None) -> None:
    def work(session: Session) -> None:
        begun = len(session.engine.tiers)
        assert written(session, HEAD + "(define (double x) (+ x x)) (write (double 4))") == "8"
        assert len(session.engine.tiers) == begun

    in_session(work)


def test_a_program_that_runs_again_finds_what_was_optimized(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, while_running: None
) -> None:
    program = HEAD + FILLER + "(define key (list 1 2))(write (filler-2 3 4)) (write (eq? filler-2 filler-2))"
    path = tmp_path / "large.scm"
    path.write_text(program)

    def first(session: Session) -> None:
        session.run_file(path)
        (unit,) = [unit for unit in session.engine.tiers if "filler-2" in unit.names()]
        assert "filler-3" not in unit.names()
        procedure = session.engine.cell("program", "filler-2").get()
        place = ctypes.c_uint64.from_address(procedure.bits + layout()["Closure.entry"])
        args = [session.machine.fixnum(3), session.machine.fixnum(4)]
        before, value = place.value, session.machine.written(session.machine.enter(procedure, args))
        session.engine.finish()
        assert {"filler-2", "filler-3"} <= unit.names(best=True)
        assert place.value != before  # the same procedure has other code
        assert session.machine.written(session.machine.enter(procedure, args)) == value == "(35 3 4)"

    def second(session: Session) -> None:
        monkeypatch.setattr(units.Engine, "begin", lambda *_: pytest.fail("it was compiled again"))
        session.run_file(path)

    for run in (first, second):
        with session_of(tmp_path / "cache") as session:
            run(session)


def test_code_that_cannot_be_optimized_is_left_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], while_running: None
) -> None:
    monkeypatch.setenv("ESHKOL_DEBUG", "1")
    monkeypatch.setattr(cores.Apart, "compile", lambda *_: (_ for _ in ()).throw(EOFError("it is gone")))
    with session_of(tmp_path) as session:
        assert written(session, HEAD + FILLER + "(write (filler-1 1 1))") == "(2 1 1)"
        session.engine.finish()
        assert "program is not optimized: EOFError('it is gone')" in capfd.readouterr().err
        procedure = session.engine.cell("program", "filler-4").get()
        found = session.machine.enter(procedure, [session.machine.fixnum(1), session.machine.fixnum(2)])
        assert session.machine.written(found) == "(17 1 2)"


def test_the_end_of_a_session_waits_for_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, while_running: None
) -> None:
    begun: list[Any] = []
    real = cores.Apart.__init__
    monkeypatch.setattr(cores.Apart, "__init__", lambda self: (real(self), begun.append(self))[0])
    with session_of(tmp_path) as session:
        written(session, HEAD + FILLER)
        while not begun or not hasattr(begun[0], "close"):
            pass
        improver = session.engine._improver
        assert improver is not None
    assert begun[0]._process.poll() is not None
    improver.finish()


# ---- the same answers ------------------------------------------------------------------------------------------------

ARGUMENTS = "\n".join(
    f"(define (take-{n} {names} . rest) (list rest {names}))"
    f"(write (take-{n} {' '.join(f'(list {i})' for i in range(n + 3))}))"
    f"(write (apply take-{n} (list {' '.join(f'(list {i})' for i in range(n + 1))})))"
    for n in range(12)
    for names in [" ".join(f"a{i}" for i in range(n))]
)
PROGRAMS = {
    "arguments": ARGUMENTS,
    "identity": """
    (define (f x) x) (define (g) '(a b)) (define (h) (lambda (x) x))
    (write (list (eq? f f) (eqv? (car (list f)) f) (eq? (g) (g)) (eq? (h) (h)) f))""",
    "loops": """
    (define (down n acc) (if (= n 0) acc (down (- n 1) (+ acc n))))
    (define (even n) (if (= n 0) #t (odd (- n 1)))) (define (odd n) (if (= n 0) #f (even (- n 1))))
    (write (list (down 300000 0) (even 300001) (let loop ((i 0)) (if (< i 1000) (loop (+ i 1)) i))))""",
    "closures": """
    (define counter (let ((n 0)) (lambda () (set! n (+ n 1)) n)))
    (define (make k) (let ((l (list k))) (letrec ((f (lambda (n) (if (= n 0) l (f (- n 1)))))) f)))
    (write (list (counter) (counter) ((make 5) 3) (map (lambda (x) ((make x) 2)) '(1 2))))""",
    "continuations": """
    (define kept #f) (define times 0)
    (define (capture x) (call/cc (lambda (k) (set! kept k) x)))
    (write (list 'got (capture 1)))
    (set! times (+ times 1))
    (if (< times 3) (kept times))
    (write (call-with-values (lambda () (values 1 2 3)) list))
    (define (leave) (call/cc (lambda (k) (k 'out))))
    (write (dynamic-wind (lambda () (display "in")) leave (lambda () (display "!"))))""",
    "assigned": "(define (f) 1) (define (g) (f)) (write (g)) (set! f (lambda () 2)) (write (g)) (write (f))",
    "deep": "(define (count l) (if (null? l) 0 (+ 1 (count (cdr l))))) (write (count (make-list 100000 1)))",
    "unbound": "(define (f) later) (define later 1) (write (f)) (define (g) other) (write (g)) (define other 2)",
    "no procedure": "(define x 5)\n(define (f y)\n  (+ 1\n    (x y)))\n(write (f 1))",
    "arity": "(define (f x) x)\n(define (g)\n  (list (f 1 2)))\n(g)",
    "type": "(define (f x)\n  (let ((y (car x)))\n    (+ y 1)))\n(define (g x) (* 2 (f x)))\n(write (g 7))",
    "values": "(define (two) (values 1 2))\n(define (f)\n  (let ((x (two)))\n    x))\n(write (f))",
    "raised": "(define (f x) (if (> x 2) (raise (list 'big x)) (f (+ x 1))))\n(guard (e (#t (write e))) (f 0))\n(f 1)",
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_answer_alike_in_every_tier(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[str, list[str]]] = []

    def work(session: Session) -> None:
        other = f"\n; {os.environ['ESHKOL_TIER']}"  # so that nothing is found in the cache
        begun = len(session.engine.tiers)
        told = outcome(session, HEAD + PROGRAMS[name] + "\n" + ROOM + other, "<program>")
        assert (len(session.engine.tiers) > begun) == (os.environ["ESHKOL_TIER"] != "full")
        # what LLVM puts into its callers is not seen in a trace
        lines = [line for line in (told.error or "").splitlines() if not line.startswith("  in ")]
        found.append((told.output, lines))

    for tier in ("full", "quick", ""):
        monkeypatch.setenv("ESHKOL_TIER", tier)
        in_session(work)
    assert found[0] == found[1] == found[2]
    assert found[0] != ("", [])


def test_arguments_survive_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ESHKOL_TIER", "quick")
    calm: list[str] = []
    in_session(lambda session: calm.append(written(session, HEAD + ARGUMENTS)))
    monkeypatch.setenv("ESHKOL_GC_STRESS", "1")
    in_session(lambda session: calm.append(written(session, HEAD + ARGUMENTS)))
    assert calm[0] == calm[1]
    assert calm[0].startswith("(((0) (1) (2)))(((0)))(((1) (2) (3)) (0))(((1)) (0))")


def test_random_programs_answer_alike_in_every_tier() -> None:
    assert fuzz.compare(500, amount(300, 20), "tier", small=True) == []


# ---- processes -------------------------------------------------------------------------------------------------------


def test_what_is_left_is_optimized_when_the_program_has_ended(tmp_path: Path, while_running: None) -> None:
    path, cache = tmp_path / "program.scm", tmp_path / "cache"
    path.write_text(HEAD + FILLER + "(write (filler-1 1 1))")
    environment = os.environ | {"ESHKOL_CACHE_DIR": str(cache), "ESHKOL_DEBUG": "1"}
    look = "import sys; from eshkol.cli.command import main; main(); print('llvmlite' in sys.modules)"
    for attempt in range(200):  # the first of them leaves a process behind, which is given some time
        done = subprocess.run(
            [sys.executable, "-c", look, "run", str(path)],
            capture_output=True, text=True, env=environment, timeout=100, check=True,
        )  # fmt: skip
        answer, compiled = done.stdout.split("\n")[0].rsplit(")", 1)
        assert answer == "(2 1 1"
        assert done.stderr == ""
        assert compiled == "True" or attempt
        if compiled == "False":
            return
        time.sleep(0.2)
    pytest.fail("it was never optimized")


def test_an_interrupt_ends_a_program_that_is_optimized(tmp_path: Path, while_running: None) -> None:
    path = tmp_path / "program.scm"
    path.write_text(
        HEAD + FILLER + '(display "begun") (newline) (flush-output-port)\n(let loop ((i 0)) (loop (+ i 1)))'
    )
    environment = os.environ | {"ESHKOL_CACHE_DIR": str(tmp_path / "cache")}
    process = subprocess.Popen(
        [*COMMAND, "run", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130


def test_texts_are_compiled_on_all_cores() -> None:
    texts = [f"define i64 @f() {{\n  ret i64 {i}\n}}\n" for i in range(8)]
    assert cores.compile_all(texts, SINGLE_UNIT) == [compile_object(text, host(), SINGLE_UNIT) for text in texts]
    with pytest.raises(Exception, match="native code could not be generated"):
        cores.compile_all([texts[0], "define nonsense", texts[1]], SINGLE_UNIT)


def test_another_process_compiles_the_same() -> None:
    text = "define i64 @f() {\n  ret i64 7\n}\n"
    apart = cores.Apart()
    try:
        assert apart.compile(text, SINGLE_UNIT) == compile_object(text, host(), SINGLE_UNIT)
        with pytest.raises(EOFError):
            apart.compile("define nonsense", SINGLE_UNIT)
    finally:
        apart.close()
