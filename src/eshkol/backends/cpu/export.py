"""Sequences as shared libraries of their own: no Python and no compiler is needed to run them.

Comes in: an `ExportedModel`, the steps of a sequence (`atlas/sequence.py`) with constants, inputs and outputs. Goes
out: a library and the C header that says how it is called. The library holds the very objects that the backend would
load, the constants, the tables that `runtime/native/model.h` describes, and the native runtime. A C compiler puts it
together.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from blake3 import blake3

from eshkol.atlas import sequence as atlas
from eshkol.atlas.types import Array
from eshkol.backends.cpu import export_text, simd
from eshkol.backends.cpu.backend import CpuBackend
from eshkol.backends.cpu.collective import Collective, macro_object
from eshkol.backends.cpu.export_text import ExportedModel
from eshkol.backends.cpu.launch import Prepared
from eshkol.backends.cpu.needs import needs
from eshkol.backends.cpu.sequence import CpuSequence, SequenceWriter
from eshkol.backends.cpu.tune import Tuner
from eshkol.backends.lanes import layout as words
from eshkol.errors import BackendError, BackendUnavailable, EshkolError
from eshkol.llvm.elf import renamed
from eshkol.llvm.loading import HasAddresses
from eshkol.llvm.passes import for_kernels

ALIGNMENT = 64
CONSTANTS_LIMIT = 3 << 29  # bytes: code reaches data that is less than 2 GiB away
RUNTIME = Path(__file__).parents[2] / "runtime" / "native"
SOURCES = ("model.c", "sequence.c", "scheduler.c")
FLAGS = ("-O2", "-std=c11", "-fPIC", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra")
LINK_FLAGS = ("-shared", "-pthread", "-Wl,--as-needed", "-Wl,--no-undefined", "-Wl,-z,noexecstack")


class _Linked:
    """A module that is linked later: its functions have numbers instead of addresses."""

    def __init__(self, backend: _Exporter, code: bytes) -> None:
        self._backend, self._prefix = backend, f"eshkol_{blake3(code).hexdigest(12)}_"
        backend.objects[self._prefix] = code

    def address(self, name: str) -> int:
        functions = self._backend.functions
        return functions.setdefault(self._prefix + name, len(functions))


class _Exporter(CpuBackend):
    """The backend, except that code is collected instead of loaded."""

    def __init__(self, level: simd.Level | None) -> None:
        super().__init__(level=level)
        if level is not None:
            self.target = simd.plain_target(level)
            self.tuner = Tuner(self.cache, self.target)
        self.functions: dict[str, int] = {}  # by their names in the library
        self.objects: dict[str, bytes] = {}  # by what their names begin with

    def load_lanes(self, name: str, text: str) -> HasAddresses:
        return _Linked(self, self.lanes_object(name, text))

    def load_macro(self, name: str, text: str) -> HasAddresses:
        return _Linked(self, macro_object(name, text, self.cache, self.target, for_kernels()))


class _ExportedSequence(SequenceWriter):
    """A sequence whose calls name functions by their numbers."""

    def __init__(self, backend: _Exporter, model: ExportedModel) -> None:
        super().__init__(backend, model.steps, model.places)
        self._exporter, self._model = backend, model

    def _lanes(self, prepared: Prepared, step: atlas.Call) -> int:
        lanes = prepared.compiled.lanes
        if lanes is not None and re.search(rf"ptr %args, i64 {words.CLASS_MEMORY}$", lanes.module.text, re.MULTILINE):
            raise BackendUnavailable(f"'{step.program.name}' uses class memory, which a library does not have")
        return super()._lanes(prepared, step)

    def tables(self) -> export_text.Tables:
        messages = {"a kernel found something wrong with its data": 0}
        faults: dict[int, list[int]] = {}
        ready = CpuSequence.of(self)
        for step, (kind, number, *_) in enumerate(self.steps):
            if kind == export_text.CALL:
                told = (self._model.explained(self.origin[step], e) for e in self._errors(self.parts[number]))
                faults[number] = [messages.setdefault(m, len(messages)) for m in told]
        names = list(self._exporter.functions)
        calls = []
        for number, (call, part) in enumerate(zip(self.calls, self.parts, strict=True)):
            record = [*call.record]
            lanes = isinstance(part, Prepared)
            if lanes:
                record[words.CLASS_MEMORY] = 0  # of this process
            mask = (1 << words.SITE_BITS) - 1 if lanes else words.NO_FAULT
            phases = [(names[function], count, grain) for function, count, grain in call.phases]
            calls.append(export_text.CallTable(phases, record, call.bindings, call.inner, faults[number], mask))
        return export_text.Tables(ready.steps, calls, ready.regions, list(messages), self.counters, self.scratch)

    def _errors(self, part: Prepared | Collective | atlas.NativeCode) -> list[EshkolError]:
        """What a call may find wrong, by the number it leaves in its record."""
        if isinstance(part, atlas.NativeCode):
            raise BackendUnavailable(f"{part.function} is code of the runtime's, which a library does not have")
        if isinstance(part, Collective):
            return [part.fault(code) for code in range(len(part.macro.faults))]
        return [part.compiled.fault(site) for site in range(len(part.compiled.layout.sites))]


def write_library(
    model: ExportedModel, library: Path, name: str, level: simd.Level | None, about: Sequence[str]
) -> Path:
    """Write a library whose functions begin with a name, and its header, whose path is returned.

    `level` None compiles for this very machine, else for a plain one of the level. `about` are lines of the header.
    """
    compiler = c_compiler()
    if level is not None and level not in simd.levels():
        raise BackendUnavailable(f"a library for {level.value} cannot be linked here: this is another kind of machine")
    backend = _Exporter(level)
    tables = _ExportedSequence(backend, model).tables()
    required = needs(backend.target)
    header = library.with_name(f"{name}.h")
    try:
        work = tempfile.TemporaryDirectory(dir=library.parent, prefix=f".{name}-")
    except OSError as error:
        raise BackendError(f"the library '{library}' cannot be written: {error.strerror}") from None
    with work as folder:
        made = Path(folder)
        homes = _write_constants(model.constants, made)
        for prefix, code in backend.objects.items():
            (made / f"{prefix}.o").write_bytes(renamed(code, prefix))
        page = export_text.header(name, model.inputs, model.outputs, [n.name for n in required], about)
        (made / f"{name}.h").write_text(page, encoding="utf-8")
        source = export_text.source(name, model, tables, list(backend.functions), homes, required)
        (made / "tables.c").write_text(source, encoding="utf-8")
        version = _run([*compiler, "--version"], made)
        for part in SOURCES:
            (made / part).with_suffix(".o").write_bytes(_runtime_object(compiler, version, part, backend))
        _run([*compiler, *FLAGS, f"-I{RUNTIME}", "-c", "tables.c", "constants.s"], made)
        # Names of objects are given in a file: there may be thousands.
        (made / "objects").write_text("\n".join(sorted(p.name for p in made.glob("*.o"))), encoding="utf-8")
        _run([*compiler, *LINK_FLAGS, f"-Wl,-soname,{library.name}", "-o", "library.so", "@objects", "-lm"], made)
        try:
            (made / f"{name}.h").replace(header)
            (made / "library.so").replace(library)
        except OSError as error:
            raise BackendError(f"the library '{library}' cannot be written: {error.strerror}") from None
    return header


def c_compiler() -> list[str]:
    """The command of the C compiler: $CC, else the first of cc, gcc and clang that is installed."""
    chosen = shlex.split(os.environ.get("CC", ""))
    if chosen:
        if shutil.which(chosen[0]) is None:
            raise BackendUnavailable(f"CC is set to '{shlex.join(chosen)}', but there is no such command")
        return chosen
    found = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if found is None:
        raise BackendUnavailable("a library is put together by a C compiler, and there is none",
                                 hint="install gcc or clang, or name one in CC")  # fmt: skip
    return [found]


def _runtime_object(compiler: Sequence[str], version: str, name: str, backend: CpuBackend) -> bytes:
    """A part of the native runtime, compiled once and then found in the cache."""

    def built() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            _run([*compiler, *FLAGS, "-c", str(RUNTIME / name), "-o", "part.o"], Path(folder))
            return (Path(folder) / "part.o").read_bytes()

    sources = b"".join(p.read_bytes() for p in [RUNTIME / name, *sorted(RUNTIME.glob("*.h"))])
    key = {"runtime": name, "compiler": shlex.join(compiler), "version": version, "flags": " ".join(FLAGS)}
    return backend.cache.get_or_build({**key, "source": sources}, built, name)


def _write_constants(constants: Sequence[tuple[int, Array]], folder: Path) -> list[tuple[int, int]]:
    """The constants as assembler text and a file that it includes; the places with their offsets."""
    homes: list[tuple[int, int]] = []
    with (folder / "constants.bin").open("wb") as file:
        for place, array in constants:
            file.write(bytes(-file.tell() % ALIGNMENT))
            homes.append((place, file.tell()))
            array.tofile(file)
        if file.tell() > CONSTANTS_LIMIT:
            limit = f"{CONSTANTS_LIMIT} bytes"
            raise BackendError(f"{file.tell()} bytes of constants are too many for a library, which takes {limit}",
                               hint="give the largest tensors as inputs")  # fmt: skip
    (folder / "constants.s").write_text(export_text.CONSTANTS, encoding="utf-8")
    return homes


def _run(command: Sequence[str], folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        what = (done.stderr or done.stdout).strip()
        raise BackendError(f"the C compiler failed with status {done.returncode}: {shlex.join(command)}\n{what}")
    return done.stdout
