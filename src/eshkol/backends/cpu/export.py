"""Sequences as shared libraries of their own: no Python and no compiler is needed to run them.

Comes in: an `ExportedModel`, the steps of a sequence (`atlas/sequence.py`) with constants, inputs and outputs. Goes
out: a library and the C header that says how it is called. The library holds the very objects that the backend would
load, the constants, the tables that `runtime/native/model.h` describes, and the native runtime. A C compiler puts it
together.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from blake3 import blake3

from eshkol.atlas import sequence as atlas
from eshkol.atlas.machines import MachineDescription
from eshkol.atlas.types import Array
from eshkol.backends.cpu import export_sizes, export_text, simd
from eshkol.backends.cpu.backend import PROGRAMS_ALONE, CpuBackend
from eshkol.backends.cpu.collective import Collective, macro_object
from eshkol.backends.cpu.export_sizes import SizeClass
from eshkol.backends.cpu.export_text import ExportedModel
from eshkol.backends.cpu.launch import Prepared
from eshkol.backends.cpu.needs import needs
from eshkol.backends.cpu.sequence import CpuSequence, SequenceWriter
from eshkol.backends.cpu.sized import SizedSequence
from eshkol.backends.cpu.tune import Tuner
from eshkol.backends.lanes import layout as words
from eshkol.errors import BackendError, BackendUnavailable, EshkolError
from eshkol.llvm.elf import renamed
from eshkol.llvm.loading import HasAddresses
from eshkol.llvm.passes import for_kernels
from eshkol.support.c_compiler import c_compiler, run_compiler
from eshkol.support.extents import Conditions

ALIGNMENT = 64
CONSTANTS_LIMIT = 3 << 29  # bytes: code reaches data that is less than 2 GiB away
RUNTIME = Path(__file__).parents[2] / "runtime" / "native"
SOURCES = ("model.c", "sequence.c", "scheduler.c")
FLAGS = ("-O2", "-std=c11", "-fPIC", "-pthread", "-fvisibility=hidden", "-Wall", "-Wextra")
LINK_FLAGS = ("-shared", "-pthread", "-Wl,--as-needed", "-Wl,--no-undefined", "-Wl,-z,noexecstack")


class _Linked:
    """A module that is linked later: its functions have numbers instead of addresses."""

    def __init__(self, backend: Exporter, code: bytes) -> None:
        self._backend, self._prefix = backend, f"eshkol_{blake3(code).hexdigest(12)}_"
        backend.objects[self._prefix] = code

    def address(self, name: str) -> int:
        functions = self._backend.functions
        return functions.setdefault(self._prefix + name, len(functions))


class Exporter(CpuBackend):
    """The backend, except that code is collected instead of loaded; None: for this very machine.

    A level that this machine lacks is for those who link for other machines.
    """

    def __init__(self, level: simd.Level | None, *, elsewhere: bool = False) -> None:
        if level is not None and level not in simd.levels() and not elsewhere:
            raise BackendUnavailable(
                f"a library for {level.value} cannot be linked here: this is another kind of machine"
            )
        super().__init__(level=level)
        if level is not None:
            self.target = simd.plain_target(level)
            self.tuner = Tuner(self.cache, self.target)
        self.functions: dict[str, int] = {}  # by their names in the library
        self.objects: dict[str, bytes] = {}  # by what their names begin with

    @property
    def description(self) -> MachineDescription:
        return PROGRAMS_ALONE

    def sized_sequence(self, steps: Sequence[atlas.SequenceStep], places: int) -> SizedSequence:
        return _SizedExport(self, steps, places)

    def load_lanes(self, name: str, text: str) -> HasAddresses:
        return _Linked(self, self.lanes_object(name, text))

    def load_macro(self, name: str, text: str) -> HasAddresses:
        return _Linked(self, macro_object(name, text, self.cache, self.target, for_kernels()))

    def load_kept(self, key: str) -> HasAddresses | None:
        code = self.cache.get(key)
        return None if code is None else _Linked(self, code)


class ExportWriter(SequenceWriter):
    """A sequence whose calls name functions by their numbers."""

    def _lanes(self, prepared: Prepared, step: atlas.Call) -> int:
        lanes = prepared.compiled.lanes
        if lanes is not None and re.search(rf"ptr %args, i64 {words.CLASS_MEMORY}$", lanes.module.text, re.MULTILINE):
            raise BackendUnavailable(f"'{step.program.name}' uses class memory, which a library does not have")
        return super()._lanes(prepared, step)


class _SizedExport(ExportWriter, SizedSequence):
    """The same, for all sizes of an axis."""


Messages = dict[str, int]


def _no_messages() -> Messages:
    return {"a kernel found something wrong with its data": 0}


def _call_tables(
    written: SequenceWriter, model: ExportedModel, exporter: Exporter, messages: Messages
) -> list[export_text.CallTable]:
    """The calls of a sequence as data; what they may find wrong is told by messages."""
    faults: dict[int, list[int]] = {}
    for step, (kind, number, *_) in enumerate(written.steps):
        if kind == export_text.CALL:
            told = (model.explained(written.origin[step], e) for e in errors_of(written.parts[number]))
            faults[number] = [messages.setdefault(m, len(messages)) for m in told]
    names = list(exporter.functions)
    calls = []
    for number, (call, part) in enumerate(zip(written.calls, written.parts, strict=True)):
        record = [*call.record]
        lanes = isinstance(part, Prepared)
        if lanes:
            record[words.CLASS_MEMORY] = 0  # of this process
        mask = (1 << words.SITE_BITS) - 1 if lanes else words.NO_FAULT
        phases = [(names[function], count, grain) for function, count, grain in call.phases]
        calls.append(export_text.CallTable(phases, record, call.bindings, call.inner, faults[number], mask))
    return calls


def errors_of(part: Prepared | Collective | atlas.NativeCode) -> list[EshkolError]:
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
    backend = Exporter(level)
    tables, required = _tables(model, backend), needs(backend.target)
    page = export_text.header(name, model.inputs, model.outputs, [n.name for n in required], about)

    def source(homes: Sequence[Homes]) -> str:
        return export_text.source(name, model, tables, list(backend.functions), homes[0], required)

    return _put_together(library, name, backend, page, source, [model.constants])


def _tables(model: ExportedModel, backend: Exporter) -> export_text.Tables:
    """A model as data; the backend has the objects of its kernels."""
    messages = _no_messages()
    written = ExportWriter(backend, model.steps, model.places)
    ready, calls = CpuSequence.of(written), _call_tables(written, model, backend, messages)
    return export_text.Tables(ready.steps, calls, ready.regions, [*messages], written.counters, written.scratch)


def model_objects(
    compiler: Sequence[str],
    models: Sequence[tuple[str, ExportedModel, str]],
    level: simd.Level | None,
    flags: Sequence[str] = (),
) -> dict[str, bytes]:
    """The objects that models consist of, by file, with the native runtime.

    Each has a name, and C text that follows its tables, where the plan is called `plan`. The compiler, with further
    flags, is one for machines of the level, which this one need not be.
    """
    backend = Exporter(level, elsewhere=True)
    with tempfile.TemporaryDirectory(prefix="eshkol-") as folder:
        made = Path(folder)
        for name, model, more in models:
            tables, constants = _tables(model, backend), f"{name}_constants"
            (made / name).mkdir()
            (homes,) = _write_constants([model.constants], made / name, constants)
            required = needs(backend.target)
            plan = export_text.plan_text(model, tables, list(backend.functions), homes, required, constants)
            (made / name / f"{name}.c").write_text(f"#include <model.h>\n\n{plan}\n\n{more}\n", encoding="utf-8")
            (made / name / "constants.s").rename(made / name / f"{name}_constants.s")
            run_compiler(
                [*compiler, *FLAGS, *flags, f"-I{RUNTIME}", "-c", f"{name}.c", f"{name}_constants.s"], made / name
            )
        found = {path.name: path.read_bytes() for path in made.glob("*/*.o")}
        version = run_compiler([*compiler, "--version"], made)
    for part in SOURCES:
        found[f"{Path(part).stem}.o"] = _runtime_object(compiler, version, part, backend, flags)
    return found | {f"{prefix}.o": renamed(code, prefix) for prefix, code in backend.objects.items()}


@dataclass(frozen=True)
class SizedExport:
    """What is compiled for a class of sizes, before its calls are tables; see `SizeClass`."""

    model: ExportedModel
    least: int
    most: int
    written: SequenceWriter | None = None  # None where it is for one size, and yet to be written
    conditions: Conditions | None = None
    place_sizes: Sequence[Any] = ()
    tenancies: Sequence[tuple[int, int | None, bool]] = ()
    starts: Sequence[int] = ()
    before: int = 0
    numbers: Sequence[tuple[int, Any, str]] = ()


def write_sized_library(
    classes: Sequence[SizedExport], library: Path, name: str, backend: Exporter, about: Sequence[str]
) -> Path:
    """The same of what is compiled for classes of sizes, which the first argument of a run tells."""
    messages, found = _no_messages(), []
    for one in classes:
        written = one.written or ExportWriter(backend, one.model.steps, one.model.places)
        calls = _call_tables(written, one.model, backend, messages)
        found.append(SizeClass(
            one.model, written.steps, calls, written.counters, written.scratch, one.least, one.most, one.conditions,
            one.place_sizes, one.tenancies, one.starts, one.before, one.numbers,
        ))  # fmt: skip
    required = needs(backend.target)
    shown = next((c.model for c in found if c.conditions is not None), found[0].model)
    page = export_text.header(name, shown.inputs, shown.outputs, [n.name for n in required], about, sized=True)

    def source(homes: Sequence[Homes]) -> str:
        return export_sizes.source(name, found, [*messages], list(backend.functions), homes, required)

    return _put_together(library, name, backend, page, source, [c.model.constants for c in found])


Homes = list[tuple[int, int]]  # places with their offsets


def _put_together(
    library: Path, name: str, backend: Exporter, page: str, source: Callable[[Sequence[Homes]], str],
    constants: Sequence[Sequence[tuple[int, Array]]],
) -> Path:  # fmt: skip
    """The library and its header, whose path is returned."""
    compiler = c_compiler()
    header = library.with_name(f"{name}.h")
    try:
        work = tempfile.TemporaryDirectory(dir=library.parent, prefix=f".{name}-")
    except OSError as error:
        raise BackendError(f"the library '{library}' cannot be written: {error.strerror}") from None
    with work as folder:
        made = Path(folder)
        homes = _write_constants(constants, made)
        for prefix, code in backend.objects.items():
            (made / f"{prefix}.o").write_bytes(renamed(code, prefix))
        (made / f"{name}.h").write_text(page, encoding="utf-8")
        (made / "tables.c").write_text(source(homes), encoding="utf-8")
        version = run_compiler([*compiler, "--version"], made)
        for part in SOURCES:
            (made / part).with_suffix(".o").write_bytes(_runtime_object(compiler, version, part, backend))
        run_compiler([*compiler, *FLAGS, f"-I{RUNTIME}", "-c", "tables.c", "constants.s"], made)
        # Names of objects are given in a file: there may be thousands.
        (made / "objects").write_text("\n".join(sorted(p.name for p in made.glob("*.o"))), encoding="utf-8")
        linked = [*compiler, *LINK_FLAGS, f"-Wl,-soname,{library.name}", "-o", "library.so", "@objects", "-lm"]
        run_compiler(linked, made)
        try:
            (made / f"{name}.h").replace(header)
            (made / "library.so").replace(library)
        except OSError as error:
            raise BackendError(f"the library '{library}' cannot be written: {error.strerror}") from None
    return header


def _runtime_object(
    compiler: Sequence[str], version: str, name: str, backend: CpuBackend, flags: Sequence[str] = ()
) -> bytes:
    """A part of the native runtime, compiled once and then found in the cache."""
    flags = (*FLAGS, *flags)

    def built() -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            run_compiler([*compiler, *flags, "-c", str(RUNTIME / name), "-o", "part.o"], Path(folder))
            return (Path(folder) / "part.o").read_bytes()

    sources = b"".join(p.read_bytes() for p in [RUNTIME / name, *sorted(RUNTIME.glob("*.h"))])
    key = {"runtime": name, "compiler": shlex.join(compiler), "version": version, "flags": " ".join(flags)}
    return backend.cache.get_or_build({**key, "source": sources}, built, name)


def _write_constants(
    constants: Sequence[Sequence[tuple[int, Array]]], folder: Path, name: str = export_text.CONSTANTS_NAME
) -> list[Homes]:
    """The constants as assembler text and a file that it includes, equal ones once; the places with their offsets."""
    homes: list[Homes] = []
    written: dict[str, int] = {}
    with (folder / "constants.bin").open("wb") as file:
        for some in constants:
            homes.append([])
            for place, array in some:
                digest = blake3(np.ascontiguousarray(array).view(np.uint8).data).hexdigest() if array.size else ""
                if digest not in written:
                    file.write(bytes(-file.tell() % ALIGNMENT))
                    written[digest] = file.tell()
                    array.tofile(file)
                homes[-1].append((place, written[digest]))
        if file.tell() > CONSTANTS_LIMIT:
            limit = f"{CONSTANTS_LIMIT} bytes"
            raise BackendError(f"{file.tell()} bytes of constants are too many for one file, which takes {limit}",
                               hint="give the largest tensors as inputs")  # fmt: skip
    (folder / "constants.s").write_text(export_text.CONSTANTS.format(name=name), encoding="utf-8")
    return homes
