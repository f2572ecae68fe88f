"""The command `eshkol prepare`: what Eshkol itself compiles is compiled now, and not when it is first used.

Programs of the list below, and those that the command line names, run with an empty cache of their own; what they leave
in it becomes the file that `support/prepared.py` reads. Set-up runs this once (`make run`, `make test`); whoever
installs the package by other means runs it by hand, or does without: then things are compiled at their first use.
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from eshkol.errors import EshkolError
from eshkol.support import flags, prepared

LIMIT = 600  # seconds for a program


class Program(NamedTuple):
    """Something whose code is made ready: what it is for, and how it runs."""

    what: str
    words: tuple[str, ...]  # of Python's command line
    text: str = ""  # what it reads
    tier: str = ""  # ESHKOL_TIER; "full": everything is optimized before it runs, and nothing is left to be done


EVALUATE = ("-m", "eshkol", "-e")
MLP = """
import eshkol as ek, numpy as np
from eshkol import nn, optim
x, y = np.zeros((64, 20), np.float32), np.arange(64) % 10
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 10))
for make in (optim.SGD, optim.Adam):
    step = ek.train.Step(model, ek.cross_entropy, make(model.parameters(), lr=1e-3))
    step(ek.tensor(x), ek.tensor(y)).loss.item()
loss = nn.CrossEntropyLoss()(model(ek.tensor(x)), ek.tensor(y))
loss.backward()
"""
GPT = """
import eshkol as ek, numpy as np
from eshkol import nn, optim
model = nn.GPT(vocabulary=65, context=64, layers=1, heads=4, width=128)
def loss(logits, following):
    return ek.cross_entropy(logits.reshape(-1, 65), following.reshape(-1))
step = ek.train.Step(model, loss, optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1), clip_norm=1.0)
tokens = ek.tensor(np.zeros((16, 64), np.int64))
step(tokens, tokens).loss.item()
"""
TENSORS = """
import eshkol as ek
for dtype in (ek.float32, ek.float64):
    x = ek.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)
    for made in (x + x, x - x, x * x, x / x, -x, x + 1.0, x * 2.0, x ** 2, x.T, x @ x, x.sum(), x.mean(), x.max(),
                 x.exp(), x.log(), x.sqrt(), x.tanh(), x.sigmoid(), x.relu(), x.softmax(-1), x == x, x < 2.0):
        made.numpy()
    w = x.clone().requires_grad_()
    ((w @ x).tanh() ** 2).mean().backward()
    w.grad.numpy()
ek.grad(lambda v: (v * v).sum())(ek.tensor([1.0, 2.0])).numpy()
ek.jit(lambda v: v + 1.0)(ek.tensor([1.0, 2.0])).numpy()
"""
EXECUTABLE = """
from pathlib import Path
from eshkol.cli.main import main
Path("hello.esk").write_text('(display "hello")')
main(["build", "hello.esk"])  # where none can be made (no C compiler, no ELF), `eshkol build` itself says why
"""
RUN = ("-m", "eshkol", "run", "-")
ALL_LIBRARIES = "the libraries"
PROGRAMS = (
    Program("the first executable", ("-c", EXECUTABLE)),
    Program("training of a transformer", ("-c", GPT)),
    Program("the prompt", (*EVALUATE, "(display 1)")),
    Program("the first gradient", (*EVALUATE, "(gradient (lambda (x) (* x x)) 3.0)")),
    Program("the first tensor", (*EVALUATE, "(tensor-sum (tensor 1.0 2.0 3.0))")),
    Program("large programs", RUN, "(import (scheme base))\n(define (f x) (* x 2))\n(f 3)\n", tier="quick"),
    Program("small tensors", ("-c", TENSORS)),
    Program("training of a network", ("-c", MLP)),
)
EPILOG = """\
Eshkol's libraries and common kernels are compiled for this machine, and kept in the environment that Eshkol is
installed in, so that nothing of Eshkol itself is compiled when it is first used. Where Eshkol was set up by its
Makefile, this has been done.

examples:
  eshkol prepare                                      after Eshkol was installed
  eshkol prepare --also 'program.esk 10 folder'       with all that a program of one's own compiles"""
APART = frozenset({("eshkol", "notebook")})  # libraries that need what is not installed with the package


def add_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--into", metavar="FILE", help="where the code is put (default: into this environment)")
    parser.add_argument(
        "--also", metavar="COMMAND", action="append", default=[],
        help="a program, with its arguments, that is run and whose code is kept, too; it may be repeated",
    )  # fmt: skip
    parser.set_defaults(run=run_prepare)


def run_prepare(options: argparse.Namespace) -> None:
    """Run the programs, and put in place what they leave behind."""
    began = time.monotonic()
    path = Path(options.into).expanduser().absolute() if options.into else _writable()
    print("compiling Eshkol's libraries and common kernels, once ...", file=sys.stderr, flush=True)
    compile_modules()
    with tempfile.TemporaryDirectory(prefix="eshkol-prepare-") as folder:
        made = collect([*also(options.also), *PROGRAMS], Path(folder))
        size = prepared.write(path, made.items(), stamp())
    reason = prepared.why_not(path)
    if reason is not None:
        raise EshkolError(f"'{path}' was written, but will not be used: {reason}", hint="name another place by --into")
    seconds = time.monotonic() - began
    print(f"prepared {len(made)} entries, {size / (1 << 20):.1f} MiB, in {seconds:.0f} s: {path}", file=sys.stderr)


def _writable() -> Path:
    """The first of the places for the file that can be written."""
    found = prepared.places()
    for path in found:
        there = next(folder for folder in path.parents if folder.exists())
        if os.access(there, os.W_OK | os.X_OK):
            return path
    where = ", ".join(f"'{path.parent}'" for path in found) or "ESHKOL_PREPARED=0"
    raise EshkolError(f"there is no folder to write to: {where}", hint="name a file by --into")


def stamp() -> bytes:
    """What names the sources and the machine that code is compiled by and for, as 32 bytes."""
    from eshkol.codegen.identity import library_key, source_key
    from eshkol.lang.hashing import digest
    from eshkol.llvm.identity import machine_key

    return bytes.fromhex(digest("prepared", source_key(), library_key(), machine_key()))


def examine() -> dict[str, Any]:
    """For `eshkol doctor`: whether something is prepared, and whether it is for these sources and this machine."""
    found = prepared.standing()
    if found is not None:
        facts = {"file": found.path, "entries": found.count, "bytes": found.size}
        return {**facts, "current": found.stamp == stamp(), "problem": None}
    reasons = [f"{path}: {prepared.why_not(path)}" for path in prepared.places() if path.exists()]
    problem = "; ".join(reasons) or (
        "`eshkol prepare` compiles ahead what is else compiled at its first use"
        if prepared.places() else "ESHKOL_PREPARED says so"
    )  # fmt: skip
    return {"file": None, "entries": 0, "bytes": 0, "current": False, "problem": problem}


def compile_modules() -> None:
    """Python's own bytecode of the package, where it can be kept; installers leave that out of editable ones."""
    import compileall

    compileall.compile_dir(prepared.PACKAGE, quiet=2, workers=min(2, os.cpu_count() or 1))


def also(commands: list[str]) -> Iterator[Program]:
    """Programs that the command line names: files in Scheme or Python, with arguments."""
    for command in commands:
        file, *arguments = shlex.split(command)
        way = () if file.endswith(".py") else ("-m", "eshkol", "run")
        yield Program(file, (*way, str(Path(file).absolute()), *arguments), tier="full")


def collect(programs: list[Program], folder: Path) -> dict[str, bytes]:
    """The entries that programs leave in an empty cache; two of them run at a time."""
    from eshkol.support.store import ProgramCache

    cache, files = folder / "cache", folder / "files"
    files.mkdir()
    environment = {
        **flags.without_ours(),
        "ESHKOL_CACHE_DIR": str(cache), "ESHKOL_PREPARED": "0", "ESHKOL_TUNE": "0",
    }  # fmt: skip

    def run(program: Program) -> None:
        done = subprocess.run(
            [sys.executable, *program.words], env={**environment, "ESHKOL_TIER": program.tier}, cwd=files,
            input=program.text, capture_output=True, text=True, errors="replace", timeout=LIMIT, check=False,
        )  # fmt: skip
        if done.returncode:
            said = (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]
            raise EshkolError(f"{program.what} could not be prepared: {said}")
        print(f"  {program.what}", file=sys.stderr, flush=True)

    run(Program(ALL_LIBRARIES, RUN, f"(import {' '.join(f'(only {name})' for name in libraries())})\n"))  # on all cores
    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        list(pool.map(run, programs))
    return dict(ProgramCache(cache).everything())


def libraries() -> list[str]:
    """The libraries that come with Eshkol, as an import names them; not those that few programs import."""
    from eshkol.lang.docs import FURTHER, RED_EDITION
    from eshkol.lang.files import STANDARD, SUFFIXES

    left_out = {*APART, *(tuple(name.split("/")) for name in FURTHER), *(("scheme", name) for name in RED_EDITION)}
    files = sorted(path for path in STANDARD.rglob("*") if path.suffix in SUFFIXES)
    written = [path for path in files if "(define-library " in path.read_text("utf-8")]  # others are parts of these
    names = [path.relative_to(STANDARD).with_suffix("").parts for path in written]
    return [f"({' '.join(name)})" for name in names if name not in left_out]
