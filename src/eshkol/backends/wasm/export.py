"""Sequences as modules of WebAssembly that need nothing: weights, plan and kernels in one file, without an engine here.

Comes in: an `ExportedModel`, as libraries are written from (`cpu/export.py`). Goes out: the bytes of a module that
exports `memory` and `run`, and says in its section `eshkol`, as JSON, where inputs and outputs lie and what the
results of `run` mean. All addresses are known beforehand, so that the records of launches are data, but for what a
loop changes:

    stack | records | constants | inputs | outputs | arena | scratch memory | data of the compiled code

Kernels are optimized one by one, found in the program cache where they were before, and put together as LLVM text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from blake3 import blake3

from eshkol.atlas import sequence as atlas
from eshkol.atlas.machines import CORES, MachineDescription
from eshkol.atlas.program import Program
from eshkol.atlas.types import Array
from eshkol.backends.cpu import macros
from eshkol.backends.cpu.backend import CpuBackend
from eshkol.backends.cpu.collective import Collective
from eshkol.backends.cpu.export import ExportWriter, errors_of
from eshkol.backends.cpu.export_text import ExportedModel, ExportedOperand
from eshkol.backends.cpu.kernels.macro import Macro
from eshkol.backends.cpu.launch import Prepared
from eshkol.backends.lanes import layout as words
from eshkol.backends.wasm import products
from eshkol.backends.wasm.backend import complete
from eshkol.backends.wasm.run_text import RUN, CallFacts, Copy, moving_places, run_text
from eshkol.errors import BackendError, BackendUnavailable
from eshkol.llvm import objects, webassembly
from eshkol.llvm.loading import HasAddresses
from eshkol.llvm.passes import for_kernels
from eshkol.llvm.wasm_alone import Memory, standalone
from eshkol.runtime import sequence as native
from eshkol.support.keys import files_key

ALIGNMENT = 64
STACK = 4 << 20
DATA = 1 << 20  # bytes that compiled code may have as data
CONSTANTS_LIMIT = 1 << 30  # bytes that engines take as one module
LARGEST = (1 << 31) - (1 << 16)  # distances within a memory have a sign
SHARED = 1 << 20
SECTION = "eshkol"
FORMAT = 1
MACHINE = replace(CORES, name="wasm, without an engine", largest=LARGEST, shared_memory=SHARED)


@cache
def _sources() -> str:
    """What names the code by which modules are optimized."""
    return files_key([Path(webassembly.__file__).parent], (".py",))


class _Collected:
    """A module that is put together with others later: its functions have numbers instead of addresses."""

    def __init__(self, backend: WasmExporter, text: str) -> None:
        self._backend, self._text = backend, text

    def address(self, name: str) -> int:
        key = (self._text, name)
        return self._backend.functions.setdefault(key, len(self._backend.functions))


class WasmExporter(CpuBackend):
    """The backend for WebAssembly, except that code is collected."""

    def __init__(self) -> None:
        super().__init__()
        self.target = webassembly.target()
        self.functions: dict[tuple[str, str], int] = {}  # texts and names of functions in them

    @property
    def description(self) -> MachineDescription:
        return MACHINE

    def _lowered(self, program: Program, index: int) -> Macro | None:
        return macros.lower(program.instructions[index], self.target)

    def _kept_together(self, program: Program) -> dict[int, Collective] | None:
        return None  # objects are not what is put together

    def load_lanes(self, name: str, text: str) -> HasAddresses:
        return _Collected(self, text)

    def load_macro(self, name: str, text: str) -> HasAddresses:
        return _Collected(self, text)

    def optimized(self, text: str) -> str:
        """A module after LLVM's optimizer, from the cache or made now."""
        whole = products.by_doubles(complete(text))
        parts = {"backend": "wasm", "form": "optimized text", "pipeline": repr(for_kernels()), "module": whole,
                 "sources": _sources(), **self.target.key}  # fmt: skip

        def build() -> bytes:
            return webassembly.optimized(whole, self.target, for_kernels()).encode()

        return self.cache.get_or_build(parts, build, "wasm").decode()


class _Writer(ExportWriter):
    """A sequence whose calls name functions by their numbers."""

    def _lanes(self, prepared: Prepared, step: atlas.Call) -> int:
        lanes = prepared.compiled.lanes
        if lanes is not None and not lanes.module.one_loop:
            raise BackendUnavailable(f"'{step.program.name}' has lanes that wait for each other, which a module of "
                                     "its own does not have")  # fmt: skip
        return super()._lanes(prepared, step)


class _Layout:
    """Addresses handed out one after another, and what lies at some of them."""

    def __init__(self) -> None:
        self.end = STACK
        self.segments: list[tuple[int, bytes]] = []
        self._held: dict[str, int] = {}

    def take(self, size: int) -> int:
        start = self.end
        self.end += -(-max(size, 1) // ALIGNMENT) * ALIGNMENT
        if self.end > LARGEST:
            raise BackendError(f"the module needs more memory than the {LARGEST} bytes that it can address",
                               hint="export it for smaller inputs")  # fmt: skip
        return start

    def put(self, raw: bytes) -> int:
        """Bytes that are there from the beginning; equal ones once."""
        digest = blake3(raw).hexdigest()
        if digest not in self._held:
            self._held[digest] = start = self.take(len(raw))
            if any(raw):
                self.segments.append((start, raw))
        return self._held[digest]


def write_module(model: ExportedModel, name: str, about: Mapping[str, Any]) -> bytes:
    """The module of a model; `about` is more that its description says."""
    backend = WasmExporter()
    written = _Writer(backend, model.steps, model.places)
    layout = _Layout()
    records = [layout.take(8 * len(call.record)) for call in written.calls]
    _check_constants(model.constants)
    places, copies, given = _placed(model, layout, int(written.scratch), moving_places(written.steps))
    names = [f"{SECTION}_{number}" for number in range(len(backend.functions))]
    messages: dict[str, int] = {}
    told: list[int] = []
    facts: list[CallFacts] = []
    origins = {w[1]: written.origin[k] for k, w in enumerate(written.steps) if w[0] == native.CALL}
    for number, (call, part) in enumerate(zip(written.calls, written.parts, strict=True)):
        errors = [] if number not in origins else [model.explained(origins[number], e) for e in errors_of(part)]
        told += [messages.setdefault(text, len(messages)) for text in errors]
        mask = (1 << words.SITE_BITS) - 1 if isinstance(part, Prepared) else words.NO_FAULT
        phases = [(names[function], count) for function, count, _ in call.phases]
        facts.append(CallFacts(phases, records[number], call.bindings, len(errors), mask))
        record = _record(call, records[number], places, isinstance(part, Prepared))
        layout.segments.append((records[number], record))
    base = layout.take(DATA)
    text = run_text(written.steps, facts, places, written.counters, copies)
    code = webassembly.completed(objects.joined(
        [text, *(_renamed(backend.optimized(t), function, names[k]) for (t, function), k in backend.functions.items())]
    ), backend.target)  # fmt: skip
    description = {
        "format": FORMAT, "name": name, **given, "messages": [*messages], "faults": told, "memory": layout.end, **about,
    }  # fmt: skip
    memory = Memory(layout.end, STACK, base, layout.segments)
    return standalone(code, [RUN], memory, {SECTION: json.dumps(description, ensure_ascii=False).encode()}, DATA)


def described(module: bytes) -> dict[str, Any]:
    """What a module says of itself."""
    from eshkol.llvm.wasm_objects import CUSTOM, sections

    for kind, reader in sections(module):
        if kind == CUSTOM and reader.name() == SECTION:
            found: dict[str, Any] = json.loads(reader.code[reader.at : reader.end])
            return found
    raise BackendError(f"the module has no section {SECTION}: it was not exported by Eshkol")


def _renamed(text: str, name: str, wanted: str) -> str:
    """A module whose function has another name; what else it exports may be in other modules, too."""
    found = re.sub(rf"@{re.escape(name)}(?=\()", f"@{wanted}", text)
    return re.sub(r"^define hidden ", "define weak_odr hidden ", found, flags=re.MULTILINE)


def _check_constants(constants: Sequence[tuple[int, Array]]) -> None:
    size = sum(array.nbytes for _, array in constants)
    if size > CONSTANTS_LIMIT:
        raise BackendError(f"{size} bytes of constants are too many for a module, which takes {CONSTANTS_LIMIT}",
                           hint="give the largest tensors as inputs")  # fmt: skip


def _record(call: native.NativeCall, start: int, places: Sequence[int], lanes: bool) -> bytes:
    """The words of a call before a run."""
    record = np.array([word & words.NO_FAULT for word in call.record], np.uint64)
    if lanes:
        record[words.CLASS_MEMORY] = 0  # of this process
    for word, place, offset in call.bindings:
        record[word] = places[place] + offset
    for word, other in call.inner:
        record[word] = start + 8 * other
    return record.tobytes()


def _placed(
    model: ExportedModel, layout: _Layout, scratch: int, moving: frozenset[int]
) -> tuple[list[int], list[Copy], dict[str, Any]]:
    """Where places lie at first, what is copied at the end, and what callers are told."""
    places = [0] * (model.places + 1)
    for place, array in model.constants:
        places[place] = layout.put(np.ascontiguousarray(array).tobytes())
    for operand in model.inputs:
        assert operand.place is not None
        places[operand.place] = layout.take(operand.size)
    for operand in model.outputs:
        if operand.place is not None:
            places[operand.place] = layout.take(operand.size)
    places[0] = arena = layout.take(model.arena)
    for place, offset in model.homes:
        places[place] = arena + offset
    places[model.places] = layout.take(scratch)
    copies, outputs = [], []
    for operand in model.outputs:
        place = operand.source if operand.place is None else operand.place
        at = places[place]
        if place in moving:  # where it lies then, only a run could say
            at = layout.take(operand.size)
            copies.append(Copy(place, at, operand.size))
        outputs.append(_told(operand, at))
    inputs = [_told(operand, places[operand.place or 0]) for operand in model.inputs]
    return places, copies, {"inputs": inputs, "outputs": outputs}


def _told(operand: ExportedOperand, at: int) -> dict[str, Any]:
    return {"name": operand.name, "dtype": operand.dtype, "shape": [*operand.shape], "at": at}
