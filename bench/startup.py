"""How long a user waits before anything happens: imports, the command line, programs, forms at a prompt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from bench.harness import Result, race
from eshkol.lang.deep import mark_deep
from eshkol.runtime.worker import on_large_stack
from eshkol.session import Session

TITLE = "Start-up"
CASES = {
    "python alone": "pass",
    "import eshkol": "import eshkol",
    "import numpy": "import numpy",
    "import eshkol and make a tensor": "import eshkol; eshkol.tensor([1.0])",
    "import the reference backend": "import eshkol.backends.reference",
    "eshkol --version": "from eshkol.cli.main import main; main(['--version'])",
}
HELLO = '(import (scheme base) (scheme write))\n(display "hello")\n(newline)\n'
LISTS = "(import (scheme base) (scheme write) (srfi 1))\n(display (fold + 0 (map square (iota 10))))\n"
FORMS = {
    "a call": "(+ 1 {})",
    "the same call again": "(+ 1 2)",
    "a definition of a procedure": "(define (f x) (if (< x {}) x (f (- x 1))))",
    "a loop": "(let loop ((i 0) (s '())) (if (< i {}) (loop (+ i 1) (cons i s)) (length s)))",
}


def _start(code: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=False, capture_output=True)


def _run(program: Path, cache: Path, *, cold: bool) -> Callable[[], object]:
    """`eshkol run`, with an empty cache or with that of the run before."""
    environment = {**os.environ, "ESHKOL_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "eshkol", "run", str(program)]

    def run() -> object:
        if cold:
            shutil.rmtree(cache, ignore_errors=True)
        return subprocess.run(command, check=True, capture_output=True, env=environment)

    return run


def _programs(folder: Path) -> list[Result]:
    cases: dict[str, Callable[[], object]] = {}
    for name, text in (("hello", HELLO), ("hello, with lists", LISTS)):
        program = folder / f"{len(cases)}.esk"
        program.write_text(text)
        for kind in ("warm", "cold"):
            cases[f"{name}, {kind}"] = _run(program, folder / f"{program.stem}-{kind}", cold=kind == "cold")
    return [race("eshkol run", cases, work=1, unit="programs", budget=2.0)]


def _prompt() -> list[Result]:
    """Forms at a prompt: each with another number in it, so that none was compiled before."""

    def forms(session: Session) -> dict[str, Callable[[], Any]]:
        def evaluate(text: str, numbers: count[int]) -> Callable[[], Any]:
            return lambda: session.evaluate(text.format(next(numbers)))

        return {name: evaluate(text, count(10)) for name, text in FORMS.items()}

    def run() -> list[Result]:
        mark_deep()
        with Session() as session:
            return [race("at a prompt", forms(session), work=1, unit="forms", budget=2.0)]

    return on_large_stack(run)


def run() -> list[Result]:
    starts = {name: _start(code) for name, code in CASES.items()}
    with tempfile.TemporaryDirectory() as folder:
        programs = _programs(Path(folder))
    return [race("fresh process", starts, work=1, unit="starts", budget=2.0), *programs, *_prompt()]
