"""Which machines programs are built for: this one, or another that is named, by the compiler in `ziglang`.

Comes in: a name as users write it (aarch64-linux, x86_64-linux-musl). Goes out: a `Destination`, which has LLVM's
target and the C compiler; what cannot be built for is refused, and it is said why.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from eshkol.codegen import passing
from eshkol.codegen.compiling import table
from eshkol.errors import BackendUnavailable
from eshkol.llvm.targets import Target, host, host_triple
from eshkol.support.c_compiler import c_compiler, cross_compiler

# What every processor of a kind has, by LLVM's name for it: an executable may be run elsewhere.
BASELINE = {"x86_64": "x86-64", "aarch64": "generic"}
ALIASES = {"amd64": "x86_64", "x64": "x86_64", "arm64": "aarch64"}
VENDORS = {"unknown", "pc", "none"}
LIBRARIES = ("gnu", "musl")
REFUSED = {
    "windows": "the runtime stands on POSIX: signals, mmap and threads as Linux has them",
    "macos": "its object files are Mach-O, and the tables by which errors name lines are read from ELF",
    "wasi": "continuations need a stack that can be copied",
    "freestanding": "the runtime needs a system's files, memory and threads",
}
SYSTEMS = {"darwin": "macos", "apple": "macos", "mingw32": "windows", "win32": "windows", "wasm": "wasi"}
HINT = "aarch64-linux, x86_64-linux, or one of them with -gnu or -musl behind it"


@dataclass(frozen=True)
class Destination:
    """Where a program will run."""

    target: Target
    compiler: list[str]

    @contextmanager
    def passing(self) -> Iterator[None]:
        """Code that is written meanwhile passes arguments as this kind of processor does."""
        with passing.written_for(self.target.triple.partition("-")[0]) as otherwise:
            if otherwise:
                table.cache_clear()  # it has the texts of calls
            try:
                yield
            finally:
                if otherwise:
                    table.cache_clear()


def destination(name: str | None, *, native: bool, static: bool, what: str) -> Destination:
    """Where a program will run; None: on this kind of machine, and with `native` on processors like this one alone."""
    if name is None:
        triple = host_triple()
        kind = triple.partition("-")[0]
        target = host() if native else Target(triple, BASELINE.get(ALIASES.get(kind, kind), ""), "")
        return Destination(target, c_compiler(what))
    kind, library = _parsed(name)
    here = host_triple().partition("-")[0]
    is_here = ALIASES.get(here, here) == kind
    if is_here and not library and "linux" in host_triple():
        return destination(None, native=False, static=static, what=what)
    library = library or ("musl" if static else "gnu")
    target = Target(f"{kind}-unknown-linux-{library}", BASELINE[kind], "")
    return Destination(target, cross_compiler(f"{kind}-linux-{library}", what))


def _parsed(name: str) -> tuple[str, str]:
    """The kind of processor and the C library, "" where none is named."""
    kind, *rest = name.lower().split("-")
    kind = ALIASES.get(kind, kind)
    for word in (kind, *rest):
        for system, why in REFUSED.items():
            begun = next((SYSTEMS[s] for s in SYSTEMS if word.startswith(s)), word)
            if begun.startswith(system):
                raise BackendUnavailable(f"no executables are made for {name}: {why}", hint=HINT)
    if kind not in BASELINE:
        raise BackendUnavailable(
            f"no executables are made for {name}: continuations and calls are written for x86-64 and AArch64", hint=HINT
        )
    words = [word for word in rest if word not in VENDORS]
    if words[:1] != ["linux"] or len(words) > 2 or (len(words) == 2 and words[1] not in LIBRARIES):
        raise BackendUnavailable(f"'{name}' is no machine that executables are made for", hint=HINT)
    return kind, words[1] if len(words) == 2 else ""
