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
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NATIVE = Path("src", "eshkol", "runtime", "native")  # relative to ROOT, as setuptools wants it
SOURCES = tuple(NATIVE / name for name in ("scheduler.c", "sequence.c"))
HEADERS = tuple(NATIVE / name for name in ("scheduler.h", "pool.h", "deal.h", "deque.h", "event.h", "sequence.h"))
CARRIED = tuple(NATIVE / name for name in ("model.c", "model.h"))  # for what export_native writes; not in the library
LIBRARY = "eshkol.runtime._native"
FLAGS = ("-O2", "-std=c11", "-fPIC", "-pthread", "-Wall", "-Wextra")
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
    """Compile and link the runtime into `output`.

    The file is put in place in one step: a process that has the old library loaded keeps it whole.
    """
    output.parent.mkdir(parents=True, exist_ok=True)
    unfinished = output.with_suffix(f".{os.getpid()}.tmp")
    command = [*compiler(), *FLAGS, "-shared", "-o", str(unfinished), *(str(ROOT / source) for source in SOURCES)]
    print(shlex.join(command), flush=True)
    try:
        subprocess.run(command, check=True)
        unfinished.replace(output)
    except subprocess.CalledProcessError as error:
        raise SystemExit(f"the C compiler failed with status {error.returncode}") from error
    finally:
        unfinished.unlink(missing_ok=True)
