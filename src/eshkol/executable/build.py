"""An executable, or a C library, of a program: everything compiled, and linked by the C compiler.

Comes in: a world of modules, a program in it, and `Options`. Goes out: a file that is whole, or was never there. What
LLVM and the C compiler made is found in the cache where it was made before.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from eshkol.codegen.compiling import entries_text
from eshkol.codegen.lines import table_of
from eshkol.errors import EshkolError
from eshkol.executable.hints import hint_table
from eshkol.executable.places import Places, places_of
from eshkol.executable.runtime import runtime_object
from eshkol.executable.text import PREFIX, ProgramText, program_text, with_symbols
from eshkol.executable.whole import whole_program
from eshkol.lang.libraries import Module, SourceModule
from eshkol.lang.source import Source
from eshkol.lang.world import World
from eshkol.llvm.elf import renamed
from eshkol.llvm.objects import cached_object
from eshkol.llvm.passes import UNIT, Pipeline
from eshkol.llvm.targets import Target, host, host_triple
from eshkol.support.c_compiler import c_compiler, run_compiler
from eshkol.support.store import ProgramCache

LINK_FLAGS = ("-pthread", "-Wl,--gc-sections", "-Wl,-z,noexecstack")
ENTRIES = """
@esk_python_entry = hidden constant ptr @"entry.%python-procedure"
"""
_BASELINE = {"x86_64": "x86-64", "aarch64": "generic", "arm64": "generic"}


@dataclass(frozen=True)
class Options:
    """How a program is built."""

    static: bool = False  # without any library of the system's
    strip: bool = False  # without symbols and debug information
    native: bool = False  # for processors like this one alone
    flags: tuple[str, ...] = ()  # further ones of the C compiler


@dataclass(frozen=True)
class Built:
    """What a build tells of itself."""

    path: Path
    size: int
    kept: int  # forms at top level
    dropped: int


def build(
    world: World, module: Module, output: Path, cache: ProgramCache, find: Callable[[str], Source | None],
    options: Options = Options(),
) -> Built:  # fmt: skip
    """Write an executable of a program; `find` gives the text of a file that was read."""
    assert isinstance(module, SourceModule)
    compiler = c_compiler("an executable")
    whole = whole_program(world, module)
    text = program_text(whole.unit)
    target = _target(options)
    code = cached_object(cache, {"what": "program"}, text.text, target, "program", UNIT)
    places = places_of(table_of(code), text.scopes, whole.units, find)
    objects = {
        "program.o": renamed(code, PREFIX),
        "data.o": cached_object(cache, {"what": "data"}, _data(text, places, code), target, "data", _PLAIN),
        "entries.o": cached_object(cache, {"what": "entries"}, with_symbols(entries_text()[0].replace("@invoke(", "@esk_compiled_invoke(") + ENTRIES), target, "entries", UNIT),
        "runtime.o": runtime_object(compiler, cache, options.flags),
    }
    flags = [*LINK_FLAGS, *options.flags, *["-static"] * options.static, *["-s"] * options.strip]
    size = _linked([*compiler, *flags], objects, output)
    return Built(output, size, len(whole.unit.forms), whole.dropped)


_PLAIN = Pipeline("data of a program", passes=0, instructions=0)


def _target(options: Options) -> Target:
    """What code is made for: what every processor of this kind has, unless something else is wanted."""
    if options.native:
        return host()
    triple = host_triple()
    return Target(triple, _BASELINE.get(triple.partition("-")[0], ""), "")


def _data(text: ProgramText, places: Places, code: bytes) -> str:
    """The program as the runtime knows it (runtime/native/executable/program.h), as LLVM text."""
    constants = " ".join(text.constants).encode("utf-8", "surrogatepass")
    words = lambda numbers: b"".join(number.to_bytes(4, "little") for number in numbers)
    tables = {"constants": constants + b"\0", "starts": words(places.starts), "places": words(places.places),
              "sites": bytes(places.sites), "strings": bytes(places.strings.data) or b"\0",
              "hints": hint_table()}  # fmt: skip
    lines = [f"@{name} = internal constant [{len(data)} x i8] c\"{_escaped(data)}\", align 8" for name, data in tables.items()]
    offset = table_of(code).symbols["main"]
    fields = [
        f"ptr @{PREFIX}main", f"ptr @{PREFIX}constants", f"i64 {text.values}", f"i64 {len(text.constants)}",
        "ptr @constants", f"i64 {len(constants)}", f"ptr getelementptr (i8, ptr @{PREFIX}main, i64 {-offset})",
        "ptr @starts", "ptr @places", f"i64 {len(places.starts)}", "ptr @sites", "ptr @strings",
        "ptr @hints",
    ]  # fmt: skip
    types = ", ".join(one.split()[0] for one in fields)
    return "\n".join([
        *lines, f"declare hidden void @{PREFIX}main()", f"@{PREFIX}constants = external hidden global i8",
        f"@esk_program = hidden constant {{ {types} }} {{ {', '.join(fields)} }}", "",
    ])  # fmt: skip


def _escaped(data: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)


def _linked(command: Sequence[str], objects: dict[str, bytes], output: Path) -> int:
    """Link objects into a file, which takes its place when it is whole; its size."""
    try:
        work = tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}-")
    except OSError as error:
        raise EshkolError(f"'{output}' cannot be written: {error.strerror}") from None
    with work as folder:
        made = Path(folder)
        try:
            for name, data in objects.items():
                (made / name).write_bytes(data)
            run_compiler([*command, "-o", "whole", *objects, "-lm"], made)
            finished = made / "whole"
            with finished.open("rb") as file:
                os.fsync(file.fileno())
            size = finished.stat().st_size
            finished.replace(output)
        except OSError as error:
            raise EshkolError(f"'{output}' cannot be written: {error.strerror}") from None
    return size
