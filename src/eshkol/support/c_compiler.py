"""The C compiler of this machine, for what is put together while Eshkol is used: exported models, executables.

It is `$CC`, else the first of cc, gcc and clang on the PATH, else the one inside the `ziglang` wheel.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from eshkol.errors import BackendError, BackendUnavailable

NAMES = ("cc", "gcc", "clang")
# zig checks for undefined behaviour by trapping unless told not to
ZIG = (sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=undefined")


def c_compiler(what: str = "a library") -> list[str]:
    """The command of the C compiler, which `what` is put together by."""
    chosen = shlex.split(os.environ.get("CC", ""))
    if chosen:
        if shutil.which(chosen[0]) is None:
            raise BackendUnavailable(f"CC is set to '{shlex.join(chosen)}', but there is no such command")
        return chosen
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is not None:
        return [found]
    if find_spec("ziglang") is None:
        raise BackendUnavailable(f"{what} is put together by a C compiler, and there is none",
                                 hint="install gcc or clang, name one in CC, or 'pip install ziglang'")  # fmt: skip
    return list(ZIG)


def cross_compiler(target: str, what: str) -> list[str]:
    """The command of a C compiler for another machine, by zig's name for it; `$CC` is taken to be one."""
    if os.environ.get("CC"):
        return c_compiler(what)
    if find_spec("ziglang") is None:
        raise BackendUnavailable(f"for {target}, {what} is put together by the compiler in ziglang, which is not here",
                                 hint="pip install 'eshkol[cross]', or name a compiler for it in CC")  # fmt: skip
    return [*ZIG, "-target", target]


def run_compiler(command: Sequence[str], folder: Path) -> str:
    """What a command of the compiler's prints, run in a folder."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        what = (done.stderr or done.stdout).strip()
        raise BackendError(f"the C compiler failed with status {done.returncode}: {shlex.join(command)}\n{what}")
    return done.stdout
