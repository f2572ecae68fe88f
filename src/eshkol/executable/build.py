"""An executable, or a C library, of a program: everything compiled, and linked by the C compiler.

Comes in: a world of modules, a program in it, and `Options`. Goes out: a file that is whole, or was never there. What
LLVM and the C compiler made is found in the cache where it was made before.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from eshkol.codegen.compiling import entries_text
from eshkol.codegen.lines import table_of
from eshkol.errors import BackendError, EshkolError
from eshkol.executable import library
from eshkol.executable.hints import hint_table
from eshkol.executable.missing import Missing
from eshkol.executable.models import objects_of, symbol
from eshkol.executable.places import Places, places_of
from eshkol.executable.runtime import FLAGS, INCLUDES, runtime_object
from eshkol.executable.targets import Destination, destination
from eshkol.executable.text import PREFIX, ProgramText, program_text, with_symbols
from eshkol.executable.whole import Whole, whole_program
from eshkol.lang.core import Unit
from eshkol.lang.libraries import Module, SourceModule
from eshkol.lang.source import Source
from eshkol.lang.world import World
from eshkol.llvm.elf import is_elf, renamed
from eshkol.llvm.objects import cached_object
from eshkol.llvm.passes import UNIT, Pipeline
from eshkol.support.c_compiler import run_compiler
from eshkol.support.store import ProgramCache

LINK_FLAGS = ("-pthread", "-Wl,--gc-sections", "-Wl,-z,noexecstack")
SHARED_FLAGS = ("-shared", "-Wl,--no-undefined")
ENTRIES_HERE = """
@esk_python_entry = hidden constant ptr @"entry.%python-procedure"
@esk_continuation_entry = hidden constant ptr @"entry.%continuation"
"""
MARK = "made-by-eshkol-build"  # a file in folders that builds put files together in
ABANDONED = 24 * 3600  # seconds after which nobody works in such a folder any more
DATA = Pipeline("data of a program", passes=0, instructions=0)


@dataclass(frozen=True)
class Options:
    """How a program is built."""

    static: bool = False  # without any library of the system's
    strip: bool = False  # without symbols and debug information
    native: bool = False  # for processors like this one alone
    flags: tuple[str, ...] = ()  # further ones of the C compiler
    target: str | None = None  # another kind of machine than this one (targets.py)


@dataclass(frozen=True)
class Built:
    """What a build tells of itself."""

    path: Path
    size: int
    kept: int  # forms at top level
    dropped: int
    missing: Sequence[Missing] = ()  # calls that can only fail


@dataclass(frozen=True)
class Builder:
    """What all builds need: the cache, the texts of files by their names, and how to build."""

    world: World
    cache: ProgramCache
    find: Callable[[str], Source | None]
    evaluate: Callable[[Unit], None]  # runs a unit now: what is compiled ahead needs that
    options: Options = Options()

    def executable(self, module: Module, output: Path) -> Built:
        """Write an executable of a program."""
        assert isinstance(module, SourceModule)
        where = self._destination("an executable")
        whole = whole_program(self.world, module, self.evaluate)
        objects, _ = self._objects(whole, where)
        flags = ["-static"] * self.options.static
        return self._finished(where.compiler, flags, objects, whole, output)

    def library(self, module: Module, output: Path) -> Built:
        """Write a C library of what a file provides, and its header beside it."""
        assert isinstance(module, SourceModule)
        where = self._destination("a library")
        name = library.c_name(output.name.split(".")[0].removeprefix("lib") or "library")
        exports = library.exports_of(module, module.unit.forms)
        whole = whole_program(self.world, module, self.evaluate, [export.cell for export in exports])
        exports = [library.settled(export, whole.cells) for export in exports]
        objects, text = self._objects(whole, where)
        header = library.header(name, exports)
        files = {f"{name}.h": header, "exports.c": library.source(name, exports, text.cells)}
        objects["exports.o"] = _compiled(where.compiler, files, "exports.c")
        built = self._finished(where.compiler, [*SHARED_FLAGS, f"-Wl,-soname,{output.name}"], objects, whole, output)
        _written(output.with_name(f"{name}.h"), header.encode())
        return built

    def _destination(self, what: str) -> Destination:
        options = self.options
        return destination(options.target, native=options.native, static=options.static, what=what)

    def _objects(self, whole: Whole, where: Destination) -> tuple[dict[str, bytes], ProgramText]:
        """The objects that a program consists of, by file."""
        cache, target = self.cache, where.target
        with where.passing():
            text, entries = program_text(whole.unit), with_symbols(entries_text()[0])
        code = cached_object(cache, {"what": "program"}, text.text, target, "program", UNIT)
        if not is_elf(code):
            raise BackendError("executables are made on systems with ELF files, as Linux has them")
        places = places_of(table_of(code), text.scopes, whole.units, self.find)
        data = _data(text, places, table_of(code).symbols["main"], list(map(symbol, range(len(whole.models)))))
        entries = entries.replace("@invoke(", "@esk_compiled_invoke(") + ENTRIES_HERE
        return {
            "program.o": renamed(code, PREFIX),
            "data.o": cached_object(cache, {"what": "data"}, data, target, "data", DATA),
            "entries.o": renamed(cached_object(cache, {"what": "entries"}, entries, target, "entries", UNIT), ""),
            "runtime.o": runtime_object(where.compiler, cache, self.options.flags),
            **self._models(whole, where),
        }, text

    def _models(self, whole: Whole, where: Destination) -> dict[str, bytes]:
        flags = (*INCLUDES, *self.options.flags)
        return objects_of(whole.models, where, self.options.native, flags) if whole.models else {}

    def _finished(
        self, compiler: Sequence[str], flags: Sequence[str], objects: Mapping[str, bytes], whole: Whole, output: Path
    ) -> Built:
        command = [*compiler, *LINK_FLAGS, *flags, *self.options.flags, *["-s"] * self.options.strip]
        with _beside(output) as folder:
            try:
                for name, data in objects.items():
                    (Path(folder) / name).write_bytes(data)
                run_compiler([*command, "-o", "whole", *objects, "-lm"], Path(folder))
                size = _placed(Path(folder) / "whole", output)
            except OSError as error:
                raise EshkolError(f"'{output}' cannot be written: {error.strerror}") from None
        return Built(output, size, len(whole.unit.forms), whole.dropped, whole.missing)


def _data(text: ProgramText, places: Places, main: int, models: Sequence[str]) -> str:
    """The program as the runtime knows it (runtime/native/executable/program.h), as LLVM text.

    `main` is where its symbol lies in the code; `models` are the symbols of what was compiled ahead.
    """
    constants = " ".join(text.constants).encode("utf-8", "surrogatepass")
    tables = {
        "constants": constants + b"\0", "starts": _words(places.starts), "places": _words(places.places),
        "sites": bytes(places.sites), "strings": bytes(places.strings.data), "hints": hint_table(),
    }  # fmt: skip
    lines = [
        f'@{name} = internal constant [{len(data)} x i8] c"{_escaped(data)}", align 8' for name, data in tables.items()
    ]
    fields = [
        f"ptr @{PREFIX}main", f"ptr @{PREFIX}constants", f"i64 {text.values}", f"i64 {len(text.constants)}",
        "ptr @constants", f"i64 {len(constants)}", f"ptr getelementptr (i8, ptr @{PREFIX}main, i64 {-main})",
        "ptr @starts", "ptr @places", f"i64 {len(places.starts)}", "ptr @sites", "ptr @strings", "ptr @hints",
        "ptr @models", f"i64 {len(models)}",
    ]  # fmt: skip
    types = ", ".join(one.split()[0] for one in fields)
    listed = ", ".join(f"ptr @{model}" for model in models)
    return "\n".join([
        *lines, *(f"@{model} = external hidden constant i8" for model in models),
        f"@models = internal constant [{len(models)} x ptr] [{listed}]",
        f"declare hidden void @{PREFIX}main()", f"@{PREFIX}constants = external hidden global i8",
        f"@esk_program = hidden constant {{ {types} }} {{ {', '.join(fields)} }}", "",
    ])  # fmt: skip


def _words(numbers: Sequence[int]) -> bytes:
    return b"".join(number.to_bytes(4, "little") for number in numbers)


def _escaped(data: bytes) -> str:
    return "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in data)


def _compiled(compiler: Sequence[str], files: Mapping[str, str], name: str) -> bytes:
    """The object of a C file, of those that are given."""
    with tempfile.TemporaryDirectory(prefix="eshkol-") as folder:
        for file, text in files.items():
            (Path(folder) / file).write_text(text, encoding="utf-8")
        run_compiler([*compiler, *FLAGS, *INCLUDES, "-I.", "-c", name, "-o", "one.o"], Path(folder))
        return (Path(folder) / "one.o").read_bytes()


# ---- files that are whole or not there -------------------------------------------------------------------------------


def _beside(output: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder to put a file together in, which goes when that is done; those that builds left which were killed go."""
    try:
        for left in output.parent.glob(f".{escape(output.name)}-*"):
            if (left / MARK).is_file() and time.time() - left.stat().st_mtime > ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
        folder = tempfile.TemporaryDirectory(dir=output.parent, prefix=f".{output.name}-")
        (Path(folder.name) / MARK).touch()
        return folder
    except OSError as error:
        raise EshkolError(f"'{output}' cannot be written: {error.strerror}") from None


def _placed(finished: Path, output: Path) -> int:
    """Put a file in its place; its size."""
    with finished.open("rb") as file:
        os.fsync(file.fileno())
    size = finished.stat().st_size
    finished.replace(output)
    return size


def _written(output: Path, data: bytes) -> None:
    with _beside(output) as folder:
        try:
            (Path(folder) / "whole").write_bytes(data)
            _placed(Path(folder) / "whole", output)
        except OSError as error:
            raise EshkolError(f"'{output}' cannot be written: {error.strerror}") from None
