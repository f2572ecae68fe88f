"""Translations kept in the program cache: the module of a program, found again by the program's digest.

To read one takes a fraction of the time in which a program is checked and translated, and whatever was translated is
known to be legal. Kept are programs as schedules write them: lanes in one loop, no memory that they share, nothing that
the host does. The key has a hash of the sources that programs are checked and translated by, so no code ever finds what
other code wrote.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

from blake3 import blake3

import eshkol.atlas
import eshkol.backends.cpu.kernels
import eshkol.backends.lanes
import eshkol.llvm
from eshkol import errors
from eshkol.atlas.program import Program
from eshkol.backends.cpu.kernels.translate import KernelModule
from eshkol.backends.lanes.layout import Layout, Site
from eshkol.llvm.passes import for_kernels
from eshkol.llvm.targets import Target
from eshkol.support.keys import cache_key
from eshkol.support.store import ProgramCache

_FACTS = ("text", "grid_wide", "serial", "steps", "one_loop", "told")


@cache
def _sources() -> str | None:
    """A hash of the code that checks and translates; None where it cannot be read."""
    packages = (eshkol.atlas, eshkol.backends.lanes, eshkol.backends.cpu.kernels, eshkol.llvm)
    folders = [Path(folder) for package in packages for folder in package.__path__]
    files = sorted(file for folder in folders for file in folder.rglob("*.py"))
    found = blake3()
    try:
        for file in files:
            found.update(blake3(file.read_bytes()).digest())
    except OSError:
        return None
    return found.hexdigest() if files else None


def _key(program: Program, target: Target) -> str | None:
    sources = _sources()
    if sources is None:
        return None
    parts = {
        "what": "translation", "program": program.digest, "sources": sources, "triple": target.triple,
        "cpu": target.cpu, "features": target.features, "vector_bits": str(target.vector_bits),
        "pipeline": for_kernels().name,  # elementary functions are called where nothing is optimized
    }  # fmt: skip
    return cache_key(parts)


def kept(store: ProgramCache, program: Program, target: Target) -> KernelModule | None:
    """The module of a program that was translated before."""
    key = _key(program, target)
    payload = None if key is None else store.get(key)
    if payload is None:
        return None
    facts = json.loads(payload)
    sites = [Site(index, message, hint, getattr(errors, kind)) for index, message, hint, kind in facts["sites"]]
    layout = Layout(facts["names"], sites)
    return KernelModule(layout=layout, **{name: facts[name] for name in _FACTS})


def keep(store: ProgramCache, program: Program, target: Target, module: KernelModule) -> None:
    """Keep a module whose lanes are one loop."""
    key = _key(program, target)
    if key is None or not module.one_loop:
        return
    layout = module.layout
    facts = {name: getattr(module, name) for name in _FACTS} | {
        "names": layout.names,
        "sites": [(s.instruction, s.message, s.hint, s.kind.__name__) for s in layout.sites],
    }
    store.put(key, json.dumps(facts).encode())
