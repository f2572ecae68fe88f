"""The C runtime of programs that were built ahead of time: one object of many sections, of which a linker keeps few.

Comes in: a compiler. Goes out: the object, from the cache where it was compiled before. Every C file of the language's
runtime is compiled behind a few lines that are written here: for each primitive in it a function with a name of its
own, so that programs refer to those that they call, and the tables of all of them are not needed.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from eshkol.llvm.elf import is_elf, renamed
from eshkol.runtime.scheme_table import primitive_symbols, rows
from eshkol.support.c_compiler import run_compiler
from eshkol.support.store import ProgramCache

NATIVE = Path(__file__).parents[1] / "runtime" / "native"
# What serves Python, the loader of code and the tables of all primitives has no place in an executable.
LEFT_OUT = {"primitives", "python", "python_entries", "to_python", "from_python", "handles", "linking"}
# Frame pointers: errors walk the frames. No fortified library calls: continuations jump where those suspect an attack.
FLAGS = (
    "-O2", "-std=c11", "-fPIC", "-pthread", "-fno-omit-frame-pointer", "-U_FORTIFY_SOURCE", "-ffunction-sections",
    "-fdata-sections", "-fvisibility=hidden", "-Wall", "-Wextra",
)  # fmt: skip
INCLUDES = (f"-I{NATIVE}", *(f"-I{NATIVE / part}" for part in ("scheme", "executable")))
_PARAMETERS = {
    "0": ("Context *context", "context"),
    "1": ("Context *context, Value a", "context, a"),
    "2": ("Context *context, Value a, Value b", "context, a, b"),
    "N": ("Context *context, const Value *args, int64_t count", "context, args, count"),
}


def runtime_object(compiler: Sequence[str], cache: ProgramCache, more: Sequence[str] = ()) -> bytes:
    """The runtime as one relocatable object; `more` are further flags."""
    flags = (*FLAGS, *more)
    texts = _texts()
    headers = b"".join(path.read_bytes() for path in sorted([*NATIVE.glob("*/*.[ch]"), *NATIVE.glob("*.h")]))
    with tempfile.TemporaryDirectory(prefix="eshkol-") as folder:
        version = run_compiler([*compiler, "--version"], Path(folder))
    key: dict[str, str | bytes] = {
        "what": "runtime of executables", "compiler": shlex.join(compiler), "version": version,
        "flags": " ".join(flags), "texts": "\n".join(texts.values()), "source": headers,
    }  # fmt: skip
    return cache.get_or_build(key, lambda: _compiled(compiler, flags, texts), "the runtime of executables")


def _compiled(compiler: Sequence[str], flags: Sequence[str], texts: dict[str, str]) -> bytes:
    with tempfile.TemporaryDirectory(prefix="eshkol-") as folder:
        made = Path(folder)
        for name, text in texts.items():
            (made / f"{name}.c").write_text(text, encoding="utf-8")

        def compile_one(name: str) -> None:
            run_compiler([*compiler, *flags, *INCLUDES, "-c", f"{name}.c", "-o", f"{name}.o"], made)

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            list(pool.map(compile_one, texts))
        run_compiler([*compiler, "-r", "-nostdlib", "-o", "runtime.o", *(f"{name}.o" for name in texts)], made)
        whole = (made / "runtime.o").read_bytes()
        return renamed(whole, "") if is_elf(whole) else whole  # no one outside of a library is to see its names


def _texts() -> dict[str, str]:
    """The C files that are compiled, by name: each includes one of the runtime's."""
    files = {path.stem: path for path in sorted((NATIVE / "scheme").glob("*.c")) if path.stem not in LEFT_OUT}
    files |= {path.stem: path for path in sorted((NATIVE / "executable").glob("*.c"))}
    texts = {name: [f'#include "{path.parent.name}/{path.name}"'] for name, path in files.items()}
    all_rows = rows()
    for name, symbol in primitive_symbols().items():
        row, (file, _, index) = all_rows[name], symbol.rpartition("_")
        if row.is_entry:
            continue
        parameters, arguments = _PARAMETERS[row.convention]
        texts[file].append(
            f"Value esk_primitive_{symbol}({parameters}) {{\n"
            f"    return ((Value (*)({parameters}))esk_{file}_primitives[{index}].function)({arguments});\n}}"
        )
    return {name: "\n".join([*lines, ""]) for name, lines in texts.items()}
