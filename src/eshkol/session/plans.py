"""Expressions of the command line that were evaluated before: run again without the expander and LLVM.

What a process evaluates first depends on its text and the standard library alone, if it is one form that defines
nothing, reads no file and asks for no library. Then the cache keeps its code, and which libraries ran for it. Comes in:
a session in which nothing else was evaluated, and the text. Goes out: the value, or None where the text is not known;
then `Recorder` watches how it is evaluated, and keeps what may be kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from eshkol.codegen.compiled import CompiledUnit
from eshkol.codegen.identity import library_key, source_key
from eshkol.codegen.units import Engine
from eshkol.lang.features import features
from eshkol.lang.hashing import digest
from eshkol.lang.source import Source
from eshkol.llvm.identity import machine_key
from eshkol.support import flags

if TYPE_CHECKING:
    from eshkol.lang.core import Unit
    from eshkol.lang.imports import Name
    from eshkol.lang.libraries import Module
    from eshkol.lang.world import World
    from eshkol.runtime.scheme import Machine, Value
    from eshkol.support.store import ProgramCache


class PlanningSession(Protocol):
    """What plans ask of a session."""

    effort: int
    cache: ProgramCache
    machine: Machine
    engine: Engine
    ran: list[Name]  # libraries that ran without the world

    @property
    def world(self) -> World: ...


WATCHED = ("ESHKOL_CHECK", "ESHKOL_DUMP", "ESHKOL_TIER")  # whoever sets these asks how things are compiled


def code_key(module: Module) -> str:
    """What the code of a module is found by."""
    return digest("code", module.key, machine_key())


def _key(session: PlanningSession, source: Source) -> str:
    effort = f"{session.effort} {flags.text('ESHKOL_OPTIMIZE')}"
    names = (source_key(), library_key(), machine_key(), *features())
    return digest("expression", *names, effort, source.name, source.text)


def evaluate(session: PlanningSession, source: Source) -> Value | None:
    """The value of an expression that is known; on a session in which no other kind of text was evaluated."""
    payload = session.cache.get(_key(session, source))
    if payload is None:
        return None
    first, _, unit = payload.partition(b"\n")
    libraries = [(tuple(name), key) for name, key in json.loads(first)]
    libraries = [(name, key) for name, key in libraries if name not in session.ran]
    codes = [session.cache.get(key) for _, key in libraries]
    if None in codes:
        return None
    session.ran.extend(name for name, _ in libraries)
    for code in codes:
        assert code is not None
        session.machine.enter(session.engine.load(CompiledUnit.read(code)))
    compiled = CompiledUnit.read(unit)
    return session.machine.enter_form(session.engine.load(compiled, source=source, collected=True))


class Recorder:
    """What is seen of an expression while it is evaluated in a session in which nothing has happened yet."""

    def __init__(self, session: PlanningSession, source: Source) -> None:
        self._session, self._source = session, source
        self._modules: list[Module] = []
        self._units: list[tuple[Unit, CompiledUnit]] = []
        self.unusual = False  # whether code of the expression ran while it was expanded

    def ran(self, module: Module) -> None:
        self._modules.append(module)

    def compiled(self, unit: Unit, compiled: CompiledUnit) -> None:
        self._units.append((unit, compiled))

    def keep(self) -> None:
        """Keep the expression, now that it has come to its end, if its text says all about it."""
        session, world = self._session, self._session.world
        reading = world.prompt.reading
        if self.unusual or len(self._units) != 1 or reading.files or reading.asked:
            return
        from eshkol.lang.reader import read

        unit, compiled = self._units[0]
        names: dict[Module, Any] = {module: name for name, module in world.libraries.items()}
        known = {module.label for module in world.builtins.values()} | {module.label for module in self._modules}
        if unit.cells or unit.changes or compiled.foreign or len(read(self._source)) != 1:
            return
        if any(not module.standard or module not in names for module in self._modules):
            return
        if any(library not in known for library, _ in compiled.cells):
            return
        libraries = [[list(names[module]), code_key(module)] for module in self._modules]
        head = json.dumps(libraries).encode()
        session.cache.put(_key(session, self._source), head + b"\n" + compiled.payload())


def are_used() -> bool:
    """Whether expressions are taken from the cache, and kept there."""
    return not any(flags.text(name) for name in WATCHED)
