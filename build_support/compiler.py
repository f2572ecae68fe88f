"""Finds a C compiler and builds the native runtime into one plain shared library.

The compiler is `$CC`, else the first of cc, gcc and clang on the PATH, else the one inside the `ziglang` wheel, which
the build backend asks for only where there is no other. The library is loaded with ctypes and knows nothing of
Python, so no Python headers are needed and one build serves every version.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parents[1]
NATIVE = Path("src", "eshkol", "runtime", "native")  # relative to ROOT, as setuptools wants it
FRONT = NATIVE / "front"  # what operations on tensors pass through: every C file there
LINEAR, FOURIER = NATIVE / "linear", NATIVE / "fourier"  # linear algebra, Fourier transforms: every C file there
ORDER = NATIVE / "order"  # numbers in order: every C file there
SCHEME = NATIVE / "scheme"  # the runtime of the language: every C file there
PROFILING = NATIVE / "profiling"  # what watches programs at work: every C file there


def _all(folder: Path, pattern: str) -> list[Path]:
    return [folder / path.name for path in sorted((ROOT / folder).glob(pattern))]


_UNITS = ("scheduler", "sequence", "launches", "graphs", "crc64", "scratch")  # each a C file with its header
_FOLDERS = (FRONT, LINEAR, FOURIER, ORDER, SCHEME, PROFILING)
SOURCES = (*(NATIVE / f"{name}.c" for name in _UNITS), *(path for folder in _FOLDERS for path in _all(folder, "*.c")))
HEADERS = (
    *(NATIVE / f"{name}.h" for name in (*_UNITS, "pool", "deal", "deque", "event", "registers", "turned")),
    *(path for folder in _FOLDERS for path in _all(folder, "*.h")),
)  # fmt: skip
EXECUTABLE = NATIVE / "executable"  # what only executables of Scheme programs have
# What is compiled into what others write: export_native, and `eshkol build`.
CARRIED = (
    *(NATIVE / name for name in ("model.c", "model.h", "sizes.h")), *_all(EXECUTABLE, "*.c"), *_all(EXECUTABLE, "*.h"),
)  # fmt: skip
LIBRARY = "eshkol.runtime._native"
# Frame pointers: errors walk the frames. No fortified library calls: continuations jump where those suspect an attack.
FLAGS = (
    "-O2", "-std=c11", "-fPIC", "-pthread", "-Wall", "-Wextra", "-fno-omit-frame-pointer", "-U_FORTIFY_SOURCE",
)  # fmt: skip
LIBRARIES = ("-lm",)
FALLBACK_REQUIREMENT = "ziglang>=0.13"


def system_compiler() -> list[str] | None:
    """The command of a C compiler that is installed, or None. A `$CC` that cannot be found is an error, not a wish."""
    chosen = shlex.split(os.environ.get("CC", ""))
    if chosen:
        if shutil.which(chosen[0]) is None:
            raise SystemExit(f"CC is set to '{shlex.join(chosen)}', but there is no such command")
        return chosen
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    return None if found is None else [found]


def requirements() -> list[str]:
    """What the build must install to have a C compiler."""
    return [] if system_compiler() else [FALLBACK_REQUIREMENT]


def compiler() -> list[str]:
    """The command of the C compiler to use."""
    command = system_compiler()
    if command is not None:
        return command
    if find_spec("ziglang") is None:
        raise SystemExit("no C compiler: install gcc or clang, set CC, or 'pip install ziglang'")
    # zig checks for undefined behaviour by trapping unless told not to
    return [sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined"]


def build(output: Path) -> None:
    """Compile and link the runtime into `output`, as many files at a time as there are processors.

    The file is put in place in one step: a process that has the old library loaded keeps it whole.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    command = compiler()
    with TemporaryDirectory(prefix=f"{output.stem}.", dir=output.parent) as folder:
        objects = [Path(folder, f"{number}-{source.stem}.o") for number, source in enumerate(SOURCES)]
        jobs = [
            [*command, *FLAGS, "-c", "-o", str(target), str(ROOT / source)]
            for source, target in zip(SOURCES, objects, strict=True)
        ]
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for status in pool.map(_run, jobs):
                _check(status)
        unfinished = Path(folder, output.name)
        _check(_run([*command, *FLAGS, "-shared", "-o", str(unfinished), *map(str, objects), *LIBRARIES]))
        unfinished.replace(output)


def _run(command: list[str]) -> int:
    print(shlex.join(command), flush=True)
    return subprocess.run(command, check=False).returncode


def _check(status: int) -> None:
    if status:
        raise SystemExit(f"the C compiler failed with status {status}")
