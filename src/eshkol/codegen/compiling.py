"""Core forms → LLVM text → object: everything about units that LLVM and the code generator are needed for.

It is imported when something has to be compiled; a program whose code is in the cache runs without it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any

from eshkol.codegen.alike import AlikeModule
from eshkol.codegen.compiled import CompiledUnit
from eshkol.codegen.emit import emit_unit
from eshkol.codegen.functions import Analysis
from eshkol.codegen.identity import source_key
from eshkol.codegen.inference import Inference
from eshkol.codegen.keeping import encode
from eshkol.codegen.module import FUNCTION_ATTRIBUTES, INTRINSICS, RUNTIME, UnitModule, declared
from eshkol.codegen.primitives import PrimitiveTable
from eshkol.codegen.scopes import scopes_of
from eshkol.codegen.shared import Shared
from eshkol.codegen.simplify import Simplifier
from eshkol.codegen.sources import note_names, source_text
from eshkol.codegen.verify import verify_forms
from eshkol.codegen.why import report
from eshkol.lang import core, datum
from eshkol.lang.core import Lambda, Node, Unit
from eshkol.lang.hashing import digest
from eshkol.lang.libraries import nodes
from eshkol.lang.pretty import pretty
from eshkol.lang.unexpand import unit_data
from eshkol.llvm import cores
from eshkol.llvm.identity import machine_key
from eshkol.llvm.objects import cached_object, compile_object
from eshkol.llvm.passes import PROMPT_UNIT, SINGLE_UNIT, UNIT, is_plain
from eshkol.llvm.targets import host
from eshkol.runtime.scheme_table import layout, rows
from eshkol.support import flags, observing
from eshkol.support.collector import without_collector
from eshkol.support.interrupts import check
from eshkol.support.store import ProgramCache

ONCE, QUICK, FULL = 0, 1, 2  # efforts: for code that runs at most once; for prompts; for programs and libraries
_PIPELINES = {ONCE: SINGLE_UNIT, QUICK: PROMPT_UNIT, FULL: UNIT}
REMEMBERED = 1024  # objects of prompts that are kept in memory, of each kind, of a few kilobytes


@cache
def table() -> PrimitiveTable:
    """Primitives and inline functions."""
    return PrimitiveTable(rows(), layout())


def llvm_text(
    unit: Unit, forms: list[Node], tail: bool = False, *, quick: bool = False, alike: bool = False
) -> tuple[str, UnitModule, Analysis]:
    """The LLVM module of a unit, whose forms were simplified; with `alike`, one that others of its kind have, too."""
    with observing.timed(observing.COMPILE, "code"):
        return _llvm_text(unit, forms, tail, quick, alike)


def _llvm_text(unit: Unit, forms: list[Node], tail: bool, quick: bool, alike: bool) -> tuple[str, UnitModule, Analysis]:
    module = AlikeModule(table()) if alike else UnitModule(table(), is_quick=quick)
    analysis = Analysis.of(forms)
    inferred = None if quick else Inference(forms, analysis, table(), unit.private)
    emit_unit(Shared(module, analysis, unit.cells, source_text, None, inferred), forms, unit.name, tail)
    return module.text("" if alike else unit.name.replace("\n", " ")), module, analysis


@without_collector()
def compile_unit(unit: Unit, effort: int, tail: bool, cache: ProgramCache) -> CompiledUnit:
    """A unit as native code; with `tail`, its last form is evaluated in tail position."""
    return compile_simplified(unit, simplify_unit(unit), effort, tail, cache)


def compile_simplified(unit: Unit, scopes: str, effort: int, tail: bool, cache: ProgramCache) -> CompiledUnit:
    """The same for a unit whose forms were simplified."""
    forms = unit.forms
    alike = effort == QUICK and not any(isinstance(node, Lambda) for node in nodes(forms))
    if alike or (effort == QUICK and is_plain()):
        effort = ONCE  # nothing in it can be called again: loops are procedures, too
    text, module, analysis = llvm_text(unit, forms, tail, quick=effort == ONCE, alike=alike)
    check()
    code = _alike(text, cache) if alike else _object(text, effort, cache)  # LLVM does not look who interrupts
    check()
    kept = encode(forms, analysis, module.constants)
    cells, (constants, foreign) = cell_names(module), constant_texts(module.constants)
    made = CompiledUnit(unit.name, code, functions_of(module), cells, constants, foreign, scopes, kept)
    return made._replace(places=module.places) if isinstance(module, AlikeModule) else made


def begin_unit(unit: Unit, cache: ProgramCache) -> Callable[[], CompiledUnit]:
    """Have a unit compiled on another core, with all optimizations; what waits for it."""
    scopes, forms = simplify_unit(unit), unit.forms
    text, module, analysis = llvm_text(unit, forms)
    job = cores.begin_work(lambda: _object(text, FULL, cache))
    kept = encode(forms, analysis, module.constants)
    cells, (constants, foreign) = cell_names(module), constant_texts(module.constants)

    def finish() -> CompiledUnit:
        return CompiledUnit(unit.name, job.code(), functions_of(module), cells, constants, foreign, scopes, kept)

    return finish


def simplify_unit(unit: Unit) -> str:
    """Simplify the forms of a unit; which procedure stood where.

    That is done in place, each of them whole or not at all: an interrupted library is compiled again.
    """
    with observing.timed(observing.COMPILE, "core forms"):
        return _simplify_unit(unit)


def _simplify_unit(unit: Unit) -> str:
    simplifier, forms = Simplifier(table()), unit.forms
    procedures = [node for node in nodes(forms) if type(node) is Lambda]
    note_names(procedures)
    checked = flags.is_on("ESHKOL_CHECK")
    if flags.dumps("core"):
        print(f"--- core: {unit.name}", *map(pretty, unit_data(unit)), sep="\n", file=sys.stderr)
    if checked:
        verify_forms(forms)
    scopes = scopes_of(procedures)
    for number, form in enumerate(forms):
        check()
        forms[number] = simplifier.form(form)
    if unit.typed:
        _shorten(unit)
    if checked:
        verify_forms(forms)
    return scopes


def _shorten(unit: Unit) -> None:
    """Let calls whose arguments are known to be machine numbers go where such are taken without their tags."""
    inferred = Inference(unit.forms, Analysis.of(unit.forms), table(), unit.private)
    for call, cell in inferred.shorter.items():
        call.procedure = core.Global(call.procedure.place, cell)


def explained(unit: Unit) -> list[str]:
    """What becomes of each procedure of a unit, which is simplified."""
    simplify_unit(unit)
    analysis = Analysis.of(unit.forms)
    return report(unit.forms, analysis, table(), Inference(unit.forms, analysis, table(), unit.private))


def functions_of(module: UnitModule) -> list[str]:
    """Outside functions that a module calls."""
    return [name for name in module.externals() if not name.startswith("llvm.")]


def cell_names(module: UnitModule) -> list[tuple[str, str]]:
    """Cells that it refers to."""
    return [(cell.library, cell.name) for cell in module.cells]


def constant_texts(constants: list[Any]) -> tuple[list[str | None], list[Any]]:
    """Constants as text, and those of the expander."""
    foreign = [c for c in constants if _is_foreign(c)]
    return [None if _is_foreign(c) else datum.text(c) for c in constants], foreign


def compile_entries(cache: ProgramCache) -> CompiledUnit:
    """The module of entries: how the runtime calls compiled code, and compiled code calls primitives."""
    text, outside = entries_text()
    return CompiledUnit("entries", _object(text, FULL, cache), outside, [], [], [], "", b"")


def entries_text() -> tuple[str, list[str]]:
    """The module of entries as LLVM text, and the functions outside that it calls."""
    text = table().entries()
    outside = [name for name in RUNTIME if f"@{name}(" in text]
    declarations = [declared(name) for name in outside]
    weights = '!0 = !{!"branch_weights", i32 2000, i32 1}\n!1 = !{!"branch_weights", i32 1, i32 2000}'
    framed = text.replace(") {\n", f") {FUNCTION_ATTRIBUTES} {{\n")
    return "\n".join(["%value = type { i64, i64 }", *declarations, INTRINSICS, framed, weights]), outside


def compile_inlines(cache: ProgramCache) -> CompiledUnit:
    """The module of inline functions, for code that calls them instead of carrying them (parts.py)."""
    module = UnitModule(table())
    module.called = set(table().functions)
    text = module.text("inline functions").replace("define internal ", "define ")
    names = " ".join(module.called)  # which stand where those of procedures do in other units
    return CompiledUnit("inlines", _object(text, FULL, cache), functions_of(module), [], [], [], names, b"")


# ---- constants -------------------------------------------------------------------------------------------------------

_DATA = (
    bool, int, float, str, bytes, datum.Symbol, datum.Keyword, datum.Char, datum.Number, datum.List, datum.Vector,
    datum.Labelled, datum.Reference, datum.Special,
)  # fmt: skip


def _is_foreign(constant: Any) -> bool:
    """Whether a constant belongs to the expander."""
    return not isinstance(constant, _DATA)


# ---- objects ---------------------------------------------------------------------------------------------------------


def _object(text: str, effort: int, cache: ProgramCache) -> bytes:
    if effort != FULL:
        return _again(text, effort)
    return cached_object(cache, {"what": "unit"}, text, host(), "unit", _PIPELINES[FULL])


_common: dict[str, bytes] = {}  # objects of texts that many units have


def _alike(text: str, cache: ProgramCache) -> bytes:
    """The object of such a text; it is kept, so that other processes may do without LLVM."""
    found = _common.get(text)
    if found is None:
        key = digest("alike", source_key(), machine_key(), text)
        found = cache.get(key)
        if found is None:
            found = compile_object(text, host(), _PIPELINES[ONCE])
            cache.put(key, found)
        if len(_common) >= REMEMBERED:
            del _common[next(iter(_common))]
        _common[text] = found
    return found


@lru_cache(REMEMBERED)
def _again(text: str, effort: int) -> bytes:
    """What is evaluated in a loop is compiled once."""
    return compile_object(text, host(), _PIPELINES[effort])
