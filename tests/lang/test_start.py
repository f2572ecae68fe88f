"""Programs from the cache: they start without the expander and LLVM, and never run code of another text."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from eshkol.codegen.units import Engine
from eshkol.errors import EshkolError
from eshkol.lang.deep import mark_deep
from eshkol.lang.source import Source
from eshkol.llvm.linking import CodeMemory
from eshkol.runtime.scheme import Machine
from eshkol.runtime.worker import on_large_stack
from eshkol.session import Session
from eshkol.support.store import ProgramCache

HEAVY = ("llvmlite", "numpy", "rich", "eshkol.lang.world", "eshkol.lang.expander", "eshkol.codegen.emit", "eshkol.ops")
RUN = f"""
import sys
from eshkol.cli.main import main
code = main(sys.argv[1:])
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
sys.exit(code)
"""


class Programs:
    """A folder for programs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def run(self, name: str) -> tuple[str, list[str]]:
        """What a program writes, and what heavy modules it took."""
        done = subprocess.run(
            [sys.executable, "-c", RUN, "run", str(self.folder / name)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        lines = done.stderr.splitlines()
        assert done.returncode == 0, done.stderr
        return done.stdout, eval(lines[-1])


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


def test_a_program_in_the_cache_starts_light_and_another_text_is_another_program(programs: Programs) -> None:
    programs.write("a.esk", "(import (scheme base) (scheme write)) (display (map + '(1 2) '(10 20)))")
    first, heavy = programs.run("a.esk")
    assert first == "(11 22)"
    assert "llvmlite" in heavy
    assert programs.run("a.esk") == ("(11 22)", [])
    programs.write("a.esk", "(import (scheme base) (scheme write)) (display (map * '(1 2) '(10 20)))")
    assert programs.run("a.esk")[0] == "(10 40)"


def test_libraries_and_included_files_of_a_program_are_looked_at_every_time(programs: Programs) -> None:
    library = "(define-library (mine) (export x) (import (scheme base)) (begin (define x {})))"
    programs.write("mine.esk", library.format(1))
    programs.write("part.scm", "(display 10)")
    programs.write("a.esk", '(import (scheme base) (scheme write) (mine)) (display x) (include "part.scm")')
    assert [programs.run("a.esk")[0] for _ in range(2)] == ["110", "110"]
    programs.write("mine.esk", library.format(2))
    programs.write("part.scm", "(display 20)")
    assert programs.run("a.esk")[0] == "220"


def test_whether_a_library_is_there_is_asked_every_time(programs: Programs) -> None:
    program = "(import (scheme base) (scheme write)) (cond-expand ((library (mine)) (display 1)) (else (display 2)))"
    programs.write("a.esk", program)
    assert [programs.run("a.esk")[0] for _ in range(2)] == ["2", "2"]
    programs.write("mine.esk", "(define-library (mine))")
    assert programs.run("a.esk")[0] == "1"


def test_eval_in_a_program_from_the_cache_sees_the_libraries_that_ran(programs: Programs) -> None:
    programs.write(
        "a.esk",
        "(import (scheme base) (scheme write) (scheme eval) (srfi 1))\n"
        "(define p (delete 2 '(1 2 3)))\n"
        "(display (list p (eval '(fold + 0 (iota 4)) (environment '(scheme base) '(srfi 1)))))",
    )
    assert {programs.run("a.esk")[0] for _ in range(3)} == {"((1 3) 6)"}


# ---- the linker ------------------------------------------------------------------------------------------------------


def test_what_is_no_object_is_refused() -> None:
    code = CodeMemory()
    for data in (b"", b"\x7fELF", b"\x7fELF" + bytes(100), b"x" * 4000):
        with pytest.raises(EshkolError, match="not compiled code for this machine"):
            code.load(data, {}, ())
    code.close()


def _object(text: str) -> tuple[bytes, dict[str, int]]:
    """The object of a form, and addresses for all that it refers to."""

    def work() -> tuple[bytes, dict[str, int]]:
        mark_deep()
        with Session() as session:
            (unit,) = session.world.prompt.units(Source("<test>", text))
            compiled = session.engine.compile(unit, 1)
            names = [*compiled.functions, *(f"cell.{number}" for number in range(len(compiled.cells)))]
            return compiled.code, {name: 4096 + 16 * number for number, name in enumerate(names)}

    return on_large_stack(work)


def test_objects_that_are_cut_or_spoilt_do_no_harm() -> None:
    data, outside = _object("(define (f x) (if (pair? x) (list (car x) 'a) (vector-ref x 1)))")
    code = CodeMemory()
    main, constants, nothing = code.load(data, outside, ("main", "constants", "nothing"))
    assert main
    assert constants
    assert not nothing
    with pytest.raises(EshkolError, match="a symbol that is nowhere"):
        code.load(data, dict(list(outside.items())[1:]), ("main",))
    refused = 0
    for size in range(0, len(data), 97):
        try:
            code.load(data[:size], outside, ("main",))
        except EshkolError:
            refused += 1
    assert refused > len(data) // 97 * 0.9
    for place in range(0, len(data), 61):  # whatever comes of it: a place outside its region is never written
        with_fault = bytearray(data)
        with_fault[place] ^= 0xFF
        with suppress(EshkolError):
            code.load(bytes(with_fault), outside, ("main",))
    code.close()


def test_code_beyond_the_first_region_is_loaded_into_another() -> None:
    data, outside = _object('(define (f x) (string-append x "' + "y" * 100_000 + '"))')
    code = CodeMemory()
    places = {code.load(data, outside, ("main",))[0] for _ in range(60)}
    assert len(places) == 60
    code.close()


def test_one_session_ends_and_another_goes_on() -> None:
    def work() -> list[str]:
        mark_deep()
        first, second = Session(), Session()
        found = []
        for session in (first, second):
            session.evaluate("(define (f x) (map (lambda (y) (* y y)) x))")
            found.append(session.shown(session.evaluate("(f '(1 2 3))")))
        first.close()
        found.append(second.shown(second.evaluate("(f '(4 5))")))
        second.close()
        return found

    assert on_large_stack(work) == ["(1 4 9)", "(1 4 9)", "(16 25)"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_does_not_write_over_the_code_of_its_parent() -> None:
    script = """
import os
from eshkol.session import Session
from eshkol.lang.deep import mark_deep
from eshkol.runtime.worker import on_large_stack
def work():
    mark_deep()
    with Session() as session:
        session.evaluate("(define (f x) (+ x 1))")
        child = os.fork()
        if child == 0:
            session.evaluate("(define (g x) (- x 1))")
            ok = session.shown(session.evaluate("(list (f 1) (g 1))")) == "(2 0)"
            os._exit(0 if ok else 1)
        assert os.waitpid(child, 0)[1] == 0
        session.evaluate("(define (h x) (* x 10))")
        print(session.shown(session.evaluate("(list (f 1) (h 2))")))
on_large_stack(work)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "(2 20)\n"


def test_the_entries_are_loaded_once_for_all_machines() -> None:
    cache = ProgramCache()
    machines = [Machine(), Machine()]
    engines = [Engine(machine, cache) for machine in machines]
    for machine, engine in zip(machines, engines, strict=True):
        assert machine.written(machine.call("vector", machine.fixnum(1))) == "#(1)"
        machine.close()
        engine.close()


def evaluated(*texts: str, folder: Path) -> tuple[str, str, bool]:
    """What expressions of the command line write, what is said about them, and whether they took the expander."""
    words = [word for text in texts for word in ("-e", text)]
    done = subprocess.run([sys.executable, "-c", RUN, *words], capture_output=True, text=True, check=False, cwd=folder)
    *said, heavy = done.stderr.splitlines()
    return done.stdout, "\n".join(said), "eshkol.lang.expander" in heavy


@pytest.mark.parametrize(
    "text", ["(map (lambda (x) (* 31 x)) (list 1 2))", "(let loop ((i 7)) (if (> i 31) i (loop (+ i 1))))"]
)
def test_an_expression_that_was_evaluated_before_starts_light(tmp_path: Path, text: str) -> None:
    first = evaluated(text, folder=tmp_path)
    again = evaluated(text, folder=tmp_path)
    assert (first[:2], again[2]) == (again[:2], False)
    assert evaluated(text, "(fold-left + 0 '(1 31))", folder=tmp_path)[0] == first[0] + "32\n", "libraries run once"


@pytest.mark.parametrize(
    "text",
    [
        "(define thirty-one 31)",
        "(begin (write 31) (car '()))",
        '(include "part31.scm")',
        "(cond-expand ((library (mine31)) 1) (else 2))",
        "31 32",
        "(import (scheme base))",
        "(let-syntax ((m (er-macro-transformer (lambda (form rename compare) 31)))) (m))",
        "nothing-of-that-name-31",
    ],
)
def test_an_expression_whose_text_does_not_say_all_is_evaluated_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / "part31.scm").write_text("(display 1)")
    first, again = (evaluated(text, folder=tmp_path) for _ in range(2))
    assert first == again
    assert again[2]
    (tmp_path / "part31.scm").write_text("(display 2)")
    (tmp_path / "mine31.esk").write_text("(define-library (mine31))")
    expected = {'(include "part31.scm")': "2", "(cond-expand ((library (mine31)) 1) (else 2))": "1\n"}
    if text in expected:
        assert evaluated(text, folder=tmp_path)[0] == expected[text]


def test_what_is_evaluated_after_an_expression_from_the_cache_sees_one_world(tmp_path: Path) -> None:
    """The expander comes later, for an error, `eval` or another expression, and knows which libraries have run."""
    text = "(eval '(begin (define z31 (map abs '(-31))) z31) (interaction-environment))"
    for _ in range(2):
        assert evaluated("(vector-map abs #(-1))", text, "(cons 1 z31)", folder=tmp_path)[0] == "#(1)\n(31)\n(1 31)\n"
    for _ in range(2):
        out, said, _ = evaluated("(vector-ref (vector-map abs #(-1)) 31)", folder=tmp_path)
        assert out == ""
        assert "<-e 1>:1:1" in said
