"""Units to native code in memory: core forms → LLVM text → object (kept in the cache) → loaded into a machine.

What is kept of a unit says everything that the loader needs: the object, the outside symbols that it refers to, and its
constants as text. Loading fills in the constants (the runtime's own reader makes them) and gives the procedure that
evaluates the unit.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from blake3 import blake3

from eshkol.atlas.cache import ProgramCache
from eshkol.codegen.emit import emit_unit
from eshkol.codegen.functions import Analysis
from eshkol.codegen.lines import LineTable, Site
from eshkol.codegen.module import FUNCTION_ATTRIBUTES, INTRINSICS, RUNTIME, Module
from eshkol.codegen.primitives import Table
from eshkol.codegen.scopes import ENTRY, procedures_at, scopes_of
from eshkol.codegen.shared import Shared
from eshkol.codegen.simplify import Simplifier
from eshkol.lang import datum
from eshkol.lang.core import Unit
from eshkol.runtime.scheme import Machine, Root, Value
from eshkol.runtime.scheme_table import layout, rows


@dataclass(frozen=True)
class Compiled:
    """A unit as native code, not yet loaded."""

    name: str
    code: bytes
    functions: list[str]  # outside functions that it calls
    cells: list[tuple[str, str]]  # global variables that it refers to: library and name
    constants: list[str]  # as text; null for those that are the expander's
    foreign: list[Any]  # constants of the expander: syntax, patterns, templates; such a unit is not kept
    scopes: str  # which procedure stands where (scopes.py)

    def payload(self) -> bytes:
        kept = ("name", "functions", "cells", "constants", "scopes")
        head = {name: getattr(self, name) for name in kept}
        text = json.dumps(head).encode()
        return len(text).to_bytes(8, "little") + text + self.code

    @classmethod
    def read(cls, payload: bytes) -> Compiled:
        size = int.from_bytes(payload[:8], "little")
        head = json.loads(payload[8 : 8 + size])
        cells = [(library, name) for library, name in head["cells"]]
        return cls(head["name"], payload[8 + size :], head["functions"], cells, head["constants"], [], head["scopes"])


def llvm_text(unit: Unit, table: Table, tail: bool = False) -> tuple[str, Module]:
    """The LLVM module of a unit."""
    simplifier = Simplifier(table)
    forms = [simplifier.form(form) for form in unit.forms]
    module = Module(table)
    emit_unit(Shared(module, Analysis.of(forms), unit.cells, _source_text), forms, unit.name, tail)
    return module.text(unit.name.replace("\n", " ")), module


def _source_text(source: Any) -> str | None:
    return None if source is None else datum.text(source)


class Engine:
    """Compiles units and loads them into one machine."""

    def __init__(self, machine: Machine, cache: ProgramCache, wrap: Callable[[Any], Value] | None = None) -> None:
        import llvmlite.binding as binding

        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        self._binding = binding
        self.machine = machine
        self.cache = cache
        self.wrap = wrap  # what makes a value of something of the expander's
        self.table = Table(rows(), layout())
        self._engines: list[Any] = []  # loaded code stays where it is
        self._roots: list[Root] = []
        self._loaded: list[tuple[int, Compiled]] = []  # where main is
        self._tables: dict[bytes, LineTable] = {}
        self._triple = binding.get_process_triple()
        self._cpu = binding.get_host_cpu_name()
        self._features = binding.get_host_cpu_features().flatten()
        self._load_entries()

    @property
    def target_key(self) -> str:
        """What objects are compiled for, and by what."""
        version = ".".join(map(str, self._binding.llvm_version_info))
        return " ".join((self._triple, self._cpu, self._features, version))

    # ---- compiling ----------------------------------------------------------------------------------------------

    def compile(self, unit: Unit, effort: int = 2, tail: bool = False) -> Compiled:
        """A unit as native code; with `tail`, its last form is evaluated in tail position."""
        text, module = llvm_text(unit, self.table, tail)
        constants = [None if _is_foreign(c) else datum.text(c) for c in module.constants]
        foreign = [c for c in module.constants if _is_foreign(c)]
        cells = [(cell.library, cell.name) for cell in module.cells]
        code, scopes = self._object(text, effort), scopes_of(unit.forms)
        return Compiled(unit.name, code, module.externals(), cells, constants, foreign, scopes)  # type: ignore[arg-type]

    def _target(self) -> Any:
        target = self._binding.Target.from_triple(self._triple)
        return target.create_target_machine(cpu=self._cpu, features=self._features, opt=2, reloc="pic")

    def _object(self, text: str, effort: int) -> bytes:
        key = {"what": "unit", "module": text, "effort": str(effort), "target": self.target_key}
        return self.cache.get_or_build(key, lambda: self._emitted(text, effort), "unit")

    def _emitted(self, text: str, effort: int) -> bytes:
        binding = self._binding
        module = binding.parse_assembly(text)
        module.verify()
        machine = self._target()
        module.triple, module.data_layout = self._triple, str(machine.target_data)
        options = binding.create_pipeline_tuning_options(speed_level=effort)
        builder = binding.create_pass_builder(machine, options)
        builder.getModulePassManager().run(module, builder)
        return bytes(machine.emit_object(module))

    # ---- loading ------------------------------------------------------------------------------------------------

    def _engine(self, code: bytes, symbols: Mapping[str, int]) -> Any:
        binding = self._binding
        for name, address in symbols.items():
            binding.add_symbol(name, address)
        engine = binding.create_mcjit_compiler(binding.parse_assembly(""), self._target())
        engine.add_object_file(binding.ObjectFileRef.from_data(code))
        engine.finalize_object()
        self._engines.append(engine)
        return engine

    def _function(self, name: str) -> int:
        if name.startswith("prim."):
            return self.table.rows[name.removeprefix("prim.")].address
        found = ctypes.cast(getattr(self.machine.library, name), ctypes.c_void_p).value
        assert found
        return found

    def load(self, compiled: Compiled) -> Value:
        """The procedure that evaluates a unit."""
        symbols = {name: self._function(name) for name in compiled.functions if not name.startswith("llvm.")}
        for number, (library, name) in enumerate(compiled.cells):
            symbols[f"cell.{number}"] = self.cell(library, name).address
        engine = self._engine(compiled.code, symbols)
        self._fill_constants(compiled, engine.get_global_value_address("constants"))
        main = engine.get_function_address("main")
        self._loaded.append((main, compiled))
        return self.machine.unit_procedure(main, compiled.name)

    def sites(self, addresses: Iterable[int]) -> list[Site]:
        """The calls that return to these addresses, as far as they are in units."""
        found = []
        for address in addresses:
            for main, compiled in self._loaded:
                code = compiled.code
                if abs(address - main) < len(code):
                    if code not in self._tables:
                        self._tables[code] = LineTable(code)
                    table = self._tables[code]
                    site = table.find(address - main + table.symbols["main"])
                    if site is not None and site.file != ENTRY.source.name:
                        names = procedures_at(compiled.scopes, site.file, site.line, site.column)
                        found.append(replace(site, procedures=tuple(names), unit=compiled.name))
        return found

    def cell(self, library: str, name: str) -> Root:
        """The place of a global variable, with its value where that is a primitive."""
        known = (library, name) in self.machine.cells
        root = self.machine.cell(library, name)
        if not known and library == PRIMITIVES:
            root.set(self.machine.primitive(name))
        return root

    def _fill_constants(self, compiled: Compiled, address: int) -> None:
        """Constants are read into a vector, which keeps them alive, and copied to where the code looks for them."""
        if not compiled.constants:
            return
        count = len(compiled.constants)
        keeper = self.machine.constants(" ".join("#f" if c is None else c for c in compiled.constants), count)
        self._roots.append(keeper)
        items = keeper.get().bits + layout()["Vector.items"]
        foreign = iter(compiled.foreign)
        for place, constant in zip((Value * count).from_address(items), compiled.constants, strict=True):
            if constant is None:
                assert self.wrap is not None
                wrapped = self.wrap(next(foreign))
                place.tag, place.bits = wrapped.tag, wrapped.bits
        ctypes.memmove(address, items, 16 * count)

    def _load_entries(self) -> None:
        """The module of entries, once for a process, and the addresses in it that the runtime asks for."""
        library = self.machine.library
        text = self.table.entries()
        outside = [name for name in RUNTIME if f"@{name}(" in text]
        declarations = [f"declare {RUNTIME[n][0]} @{n}({RUNTIME[n][1]}) {RUNTIME[n][2]}" for n in outside]
        weights = '!0 = !{!"branch_weights", i32 2000, i32 1}\n!1 = !{!"branch_weights", i32 1, i32 2000}'
        framed = text.replace(") {\n", f") {FUNCTION_ATTRIBUTES} {{\n")
        whole = "\n".join(["%value = type { i64, i64 }", *declarations, INTRINSICS, framed, weights])
        engine = self._engine(self._object(whole, 2), {name: self._function(name) for name in outside})
        address = engine.get_function_address
        entries = (ctypes.c_void_p * 4).in_dll(library, "esk_primitive_entries")
        for index, convention in enumerate("012N"):
            entries[index] = address(f"entry.{convention}")
        for row in self.table.rows.values():
            if row.is_entry:
                self.machine.set_entry(row.name, address(f"entry.{row.name}"))
        ctypes.c_void_p.in_dll(library, "esk_invoke").value = address("invoke")


PRIMITIVES = "(eshkol primitives)"
_DATA = (
    bool, int, float, str, bytes, datum.Symbol, datum.Keyword, datum.Char, datum.Number, datum.List, datum.Vector,
    datum.Labelled, datum.Reference, datum.Special,
)  # fmt: skip


def _is_foreign(constant: Any) -> bool:
    """Whether a constant belongs to the expander."""
    return not isinstance(constant, _DATA)


@cache
def source_hash() -> str:
    """A hash of the sources that programs are expanded and compiled by: what other sources made is never taken."""
    package = Path(__file__).parents[1]
    found = blake3()
    for folder in ("lang", "codegen", "runtime"):
        for file in sorted((package / folder).rglob("*")):
            if file.suffix in (".py", ".ll", ".c", ".h"):
                found.update(file.read_bytes())
    return found.hexdigest()
