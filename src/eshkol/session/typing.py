"""Types in a session: units that have annotations are checked before they are compiled, and others when someone asks.

Comes in: units as the expander leaves them, files, expressions. Goes out: errors (`checked`, for `eshkol check`); for
units that are to run, checks at the borders of typed code (`settle`); the types of what is typed at a prompt
(`type_of`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol

from eshkol.errors import BadType, LanguageError
from eshkol.lang.bodies import take_back
from eshkol.lang.core import Cell, DefineGlobal, Lambda, Unit
from eshkol.lang.deep import run_deep
from eshkol.lang.files import FileSource
from eshkol.lang.meanings import CellBinding
from eshkol.lang.reader import read
from eshkol.lang.report import bad
from eshkol.lang.source import Place, Source
from eshkol.runtime import functions
from eshkol.types.borders import Borders
from eshkol.types.checking import Checker
from eshkol.types.kinds import ANY, Type, shown
from eshkol.types.owning import Owning
from eshkol.types.regions import Regions
from eshkol.types.scopes import Scopes

if TYPE_CHECKING:
    from eshkol.lang.world import World


class HasWorld(Protocol):
    """A session, as far as types are concerned."""

    @property
    def world(self) -> World: ...


def settle(session: HasWorld, unit: Unit) -> None:
    """Refuse what contradicts an annotation, and put checks where values come from code without types."""
    checker = _looked_at(unit, to_run=True)
    for error in checker.errors:
        if id(error) in checker.declared_errors:
            raise error
    world = session.world
    of_owners = partial(_library_cell, world, "owners")
    if checker.owning:
        run_deep(_own, checker, world.primitive, of_owners)
    fail = _library_cell(world, "control", "%fail")
    run_deep(Borders(unit, checker, world.primitive, fail, of_owners).place)


def _own(checker: Checker, primitive: Callable[[str], Cell], of_owners: Callable[[str], Cell]) -> None:
    """Refuse what is wrong with owners, and have them end with their scopes, and memory with its region."""
    owning, regions = Owning(checker), Regions(checker)
    owning.check()
    regions.check()
    for error in (*owning.errors, *regions.errors):
        raise error
    regions.contain(primitive)
    Scopes(checker, of_owners).place()


def _looked_at(unit: Unit, to_run: bool = False) -> Checker:
    checker = Checker(unit, functions.shapes, to_run)
    run_deep(checker.check)
    return checker


def _library_cell(world: World, library: str, name: str) -> Cell:
    """A procedure of a part of the library."""
    binding = world.library(("eshkol", library)).exports[name]
    assert isinstance(binding, CellBinding)
    return binding.cell


# ---- files -----------------------------------------------------------------------------------------------------------


@dataclass
class Report:
    """What came of checking one file."""

    errors: list[LanguageError] = field(default_factory=list)
    types: list[tuple[Place, str, str]] = field(default_factory=list)  # places of names, names, and their types
    lines: int = 0
    seconds: float = 0.0  # of the checker alone


def checked(session: HasWorld, source: Source, strict: bool = False) -> Report:
    """Check a file: its program, and the libraries that are written in it. Nothing of it runs, but for its macros."""
    report = Report(lines=source.text.count("\n") + 1)
    world = session.world
    units: list[Unit] = []
    before, world.settle = world.settle, units.append
    try:
        if isinstance(source, FileSource):
            _ = world.loaded(source).expanded
        else:
            module = world.program(source)
            assert module.unit is not None
    except LanguageError as error:
        report.errors.append(error)
    finally:
        world.settle = before
    for unit in units:
        # What the file has itself comes last; its only form may be that of a library's macro.
        if unit is not units[-1] and not any(
            f.place is not None and f.place.source.name == source.name for f in unit.forms
        ):
            continue  # a library elsewhere, which was not in the cache
        start = time.process_time()
        checker = _looked_at(unit)
        report.seconds += time.process_time() - start
        report.errors += checker.errors
        if checker.owning:
            report.errors += run_deep(_wrongly_owned, checker)
        report.types += _types(checker)
        if strict:
            report.errors += _untyped(checker)
    report.errors.sort(key=lambda error: (error.span.line, error.span.column) if error.span else (0, 0))
    return report


def _wrongly_owned(checker: Checker) -> list[LanguageError]:
    owning, regions = Owning(checker), Regions(checker)
    owning.check()
    regions.check()
    return owning.errors + regions.errors


def _types(checker: Checker) -> Iterator[tuple[Place, str, str]]:
    """The types of all variables that have a place."""
    for cell in checker.values:
        if cell.place is not None and "#" not in cell.name:
            yield cell.place, cell.name, shown(checker.cell_type(cell))
    for variable, kind in checker.kinds.items():
        if variable.place is not None and variable.place.via is None:
            yield variable.place, variable.name, shown(kind)


def _untyped(checker: Checker) -> Iterator[LanguageError]:
    """What --strict refuses: definitions of which a part has no type."""
    for form in checker.unit.forms:
        if type(form) is not DefineGlobal or form.cell.annotation is not None or form.cell.place is None:
            continue
        cell, value = form.cell, form.value
        if type(value) is Lambda and value.place is not None:
            missing = [p.name for c in value.clauses for p in (*c.params, c.rest) if p and p.annotation is None]
            if all(c.returns is None for c in value.clauses):
                missing.append("what it gives")
            if missing:
                yield _lacks(cell, ", ".join(missing))
        elif type(value) is not Lambda and checker.cell_type(cell) is ANY:
            yield _lacks(cell, "its value")


def _lacks(cell: Cell, what: str) -> LanguageError:
    hint = f"(: {cell.name} type) says it, or (name : type) for a parameter and : type behind the header"
    return bad(f"{cell.name} has parts without a type: {what}", cell.place, hint, kind=BadType)


# ---- prompts ---------------------------------------------------------------------------------------------------------


def type_of(session: HasWorld, text: str, name: str) -> str | None:
    """The type of the last form of a text, as far as it is known without running it."""
    found: Type | None = None
    world = session.world
    for form in read(Source(name, text)):
        before, world.settle = world.settle, None
        try:
            unit = world.prompt.unit(form)
        finally:
            world.settle = before
        if unit is None:
            continue
        take_back(unit.changes)  # nothing is defined by being looked at
        checker = Checker(unit, functions.shapes)
        found = run_deep(checker.synth, unit.forms[-1])
        if checker.errors:
            raise checker.errors[0]
    return None if found is None else shown(found)
