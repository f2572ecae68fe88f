"""Translations kept in the program cache: what a program was compiled to, found again by the program's digest.

To read one takes a fraction of the time in which a program is checked and translated, and whatever was translated is
known to be legal. Kept are programs as schedules write them: lanes in one loop, no memory that they share, nothing that
the host does: their module. Or array instructions alone, which the host runs: their macros, whose objects are found by
their keys. The keys name the sources that programs are checked and translated by, so no code ever finds what other code
wrote.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from eshkol import errors
from eshkol.atlas.program import Program
from eshkol.backends.cpu.kernels.macro import Macro, Phase
from eshkol.backends.cpu.kernels.translate import KernelModule
from eshkol.backends.lanes.layout import Layout, Site
from eshkol.llvm.passes import Pipeline, for_kernels
from eshkol.llvm.targets import Target
from eshkol.runtime.scheduler import expected_workers
from eshkol.support.keys import cache_key, files_key
from eshkol.support.store import ProgramCache

FOLDERS = ("atlas", "backends/lanes", "backends/cpu", "llvm")  # of the sources that check and translate
_FACTS = ("text", "grid_wide", "serial", "steps", "one_loop", "told")


@cache
def _source_key() -> str:
    """What names the code that checks and translates."""
    package = Path(__file__).parents[2]
    return files_key([Path(folder) for name in FOLDERS for folder, _, _ in os.walk(package / name)], (".py",))


def _key(what: str, program: Program, target: Target, **parts: str) -> str:
    return cache_key({
        "what": what, "program": program.digest, "sources": _source_key(), "triple": target.triple,
        "cpu": target.cpu, "features": target.features, "vector_bits": str(target.vector_bits), **parts,
    })  # fmt: skip


def _translation_key(program: Program, target: Target) -> str:
    pipeline = for_kernels().name  # elementary functions are called where nothing is optimized
    return _key("translation", program, target, pipeline=pipeline)


class Kept(NamedTuple):
    """A module, and the instructions of its program that launches prepare for."""

    module: KernelModule
    special: frozenset[str]


def kept(store: ProgramCache, program: Program, target: Target) -> Kept | None:
    """The module of a program that was translated before."""
    payload = store.get(_translation_key(program, target))
    if payload is None:
        return None
    facts = json.loads(payload)
    sites = [Site(index, message, hint, getattr(errors, kind)) for index, message, hint, kind in facts["sites"]]
    layout = Layout(facts["names"], sites)
    module = KernelModule(layout=layout, **{name: facts[name] for name in _FACTS})
    return Kept(module, frozenset(facts["special"]))


def keep(store: ProgramCache, program: Program, target: Target, module: KernelModule, special: frozenset[str]) -> None:
    """Keep a module whose lanes are one loop."""
    if not module.one_loop:
        return
    layout = module.layout
    facts = {name: getattr(module, name) for name in _FACTS} | {
        "names": layout.names, "special": sorted(special),
        "sites": [(s.instruction, s.message, s.hint, s.kind.__name__) for s in layout.sites],
    }  # fmt: skip
    store.put(_translation_key(program, target), json.dumps(facts).encode())


# --- array instructions alone -----------------------------------------------------------------------


class KeptMacro(NamedTuple):
    """A macro without the text of its functions, and the keys of its phases' objects."""

    macro: Macro
    objects: Sequence[str]


def _together_key(program: Program, target: Target, pipeline: Pipeline, tuning: str) -> str:
    threads = str(expected_workers())  # by which tasks are cut
    return _key("together", program, target, pipeline=repr(pipeline), tuning=tuning, threads=threads)


def kept_together(
    store: ProgramCache, program: Program, target: Target, pipeline: Pipeline, tuning: str
) -> dict[int, KeptMacro] | None:
    """The macros of a program's instructions, by their places, which the host ran before."""
    payload = store.get(_together_key(program, target, pipeline, tuning))
    if payload is None:
        return None
    found = {}
    for index, phases, words, scratch, faults, objects in json.loads(payload):
        macro = Macro((), tuple([Phase(*p) for p in phases]), tuple(words), (), scratch, tuple(faults))
        found[index] = KeptMacro(macro, objects)
    return found


def keep_together(
    store: ProgramCache, program: Program, target: Target, pipeline: Pipeline, tuning: str,
    macros: Mapping[int, KeptMacro],
) -> None:  # fmt: skip
    """Keep what the instructions of a program are, where the host runs all of them."""
    facts: list[Any] = []
    for index, (macro, objects) in macros.items():
        phases = [(p.function, p.tasks, p.grain) for p in macro.phases]
        facts.append((index, phases, macro.words, macro.scratch, macro.faults, [*objects]))
    store.put(_together_key(program, target, pipeline, tuning), json.dumps(facts).encode())
