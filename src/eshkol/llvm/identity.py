"""What names this machine and its LLVM, without asking LLVM: the key of everything that programs start from.

Comes in: the system's description of the processor, and the version that llvmlite says of itself in a file. Goes out: a
hash. A program that is in the cache is found by it before anything heavy is imported.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

from blake3 import blake3

from eshkol.support.processor import architecture

CPU_LIST = Path("/proc/cpuinfo")


@cache
def machine_key() -> str:
    """What names the processor that code is compiled for, and the LLVM that does it, without asking LLVM."""
    spec = find_spec("llvmlite")
    version = Path(spec.origin).with_name("_version.py") if spec is not None and spec.origin else None
    what = [architecture(), "" if version is None or not version.is_file() else version.read_text()]
    try:
        with open(CPU_LIST, encoding="utf-8", errors="replace") as file:
            first = file.read(1 << 14).split("\n\n")[0]
    except OSError:
        import platform

        first = platform.processor()
    lines = first.splitlines()
    what += [line for line in lines if not any(word in line for word in ("MHz", "bogomips", "BogoMIPS"))]
    return blake3("\n".join(what).encode()).hexdigest()
