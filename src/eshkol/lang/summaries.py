"""Summaries: what importers must know of a library that was expanded before, as text that lies in the store.

A summary has the library's exports, each as a reference to a cell, a core form or a macro, and the macros that they
need: those of syntax-rules as the syntax that describes them. Identifiers in that syntax keep their sets of scopes,
numbered anew; the bindings that those scopes give them go along. When a summary is read, there are fresh scopes with
just these bindings, so a macro means what it meant, private variables of its library included. Macros are read when
they are first used: most programs use few of those that they import.

A macro that is a procedure is compiled code with data of the expander in it; a library that has one within reach of its
exports gives no summary, and is expanded again when an importer of it must be.

    {"cells": [[name, assigned, annotation], ...],       every cell of the library
     "sources": [path, ...], "sets": [[scope, ...], ...],
     "macros": [[name, syntax, [[name, set, reference], ...]], ...],
     "exports": {name: reference, ...}}

    reference: ["c", name] or ["c", library, name]   a cell, of this or another library; of a primitive, ["p", name]
               ["f", name]                           a core form
               ["m", number] or ["m", library, number]   a macro, by its number in the library's list
    syntax:    [kind, source, start, length, ...], see `_KINDS`
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Protocol

from eshkol.lang.core import Cell
from eshkol.lang.datum import Labelled, List, Symbol, Vector, text
from eshkol.lang.deep import run_deep
from eshkol.lang.files import FileSource, read_source, shown
from eshkol.lang.libraries import Expanded
from eshkol.lang.meanings import CellBinding, FormBinding, FormExpander, MacroBinding, Transformer
from eshkol.lang.reader import read
from eshkol.lang.rules import SyntaxRules
from eshkol.lang.scopes import NO_SCOPES, Binding, Scope, Scopes, add_binding
from eshkol.lang.source import Place, Source
from eshkol.lang.syntax import Syntax, to_datum

_LIST, _DOTTED, _VECTOR, _IDENTIFIER, _ATOM = range(5)  # [..., item ...], [..., tail, item ...], ..., [..., name, set]
_PLAIN = (str, int, bool)  # atoms that JSON keeps as they are


class CannotKeep(Exception):
    """Something of a library cannot be written into a summary."""


@dataclass(slots=True)
class Tables:
    """The cells and macros of a library by name and number, for references from elsewhere."""

    cells: Mapping[str, Cell]
    macros: list[MacroBinding]


class SummaryWorld(Protocol):
    """What summaries refer to in the world of modules, and the tables that they fill in there."""

    macro_homes: dict[Transformer, tuple[str, int]]  # the library of each macro, and its number there
    tables: dict[str, Tables]  # of libraries, by label

    def primitive_binding(self, name: str) -> Binding: ...
    def form(self, name: str) -> Binding: ...
    def tables_of(self, label: str) -> Tables: ...


# ---- writing ---------------------------------------------------------------------------------------------------------


@dataclass
class _SummaryWriter:
    label: str
    homes: dict[Transformer, tuple[str, int]]  # the library of each macro, and its number there
    macros: list[MacroBinding] = field(default_factory=list)
    sources: dict[Source, int] = field(default_factory=dict)
    scopes: dict[Scope, int] = field(default_factory=dict)
    sets: dict[Scopes, int] = field(default_factory=dict)

    def reference(self, binding: Binding) -> list[Any]:
        if isinstance(binding, CellBinding):
            cell = binding.cell
            if cell.primitive:
                return ["p", cell.name]
            return ["c", cell.name] if cell.library == self.label else ["c", cell.library, cell.name]
        if isinstance(binding, FormBinding):
            return ["f", binding.name]
        if isinstance(binding, MacroBinding):
            transformer = binding.transformer
            home = self.homes.get(transformer)
            if home is None:
                home = self.homes[transformer] = (self.label, len(self.macros))
                self.macros.append(binding)
            return ["m", home[1]] if home[0] == self.label else ["m", *home]
        raise CannotKeep(f"a {type(binding).__name__}")

    def macro(self, binding: MacroBinding) -> list[Any]:
        transformer = binding.transformer
        if isinstance(transformer, StoredRules):
            transformer = transformer.rules
        if not isinstance(transformer, SyntaxRules):
            raise CannotKeep(f"the macro {transformer.name}, which is a procedure")
        known: dict[tuple[Symbol, Scopes], Binding] = {}
        encoded = self.syntax(transformer.form, known)
        bindings = [[symbol.name, self.set(scopes), self.reference(found)] for (symbol, scopes), found in known.items()]
        return [transformer.name, encoded, bindings]

    def syntax(self, syntax: Syntax, known: dict[tuple[Symbol, Scopes], Binding]) -> list[Any]:
        content = syntax.content
        kind = type(content)
        where = self.place(syntax.place)
        if kind is Symbol:
            if Symbol(content.name) is not content:
                raise CannotKeep("a symbol that was generated")
            for scope in syntax.scopes:
                for scopes, binding in scope.bindings.get(content, ()):
                    if scopes <= syntax.scopes:
                        known[content, scopes] = binding
            return [_IDENTIFIER, *where, content.name, self.set(syntax.scopes)]
        if kind is List:
            items = [self.syntax(item, known) for item in content.items]
            if content.tail is None:
                return [_LIST, *where, *items]
            return [_DOTTED, *where, self.syntax(content.tail, known), *items]
        if kind is Vector:
            return [_VECTOR, *where, *(self.syntax(item, known) for item in content.items)]
        if kind is Labelled:
            raise CannotKeep("a datum label in a macro")
        if kind in _PLAIN:
            return [_ATOM, *where, content if kind is not str else [content]]
        return [_ATOM, *where, text(content)]

    def place(self, place: Place | None) -> tuple[int, int, int]:
        if place is None or not isinstance(place.source, FileSource):
            return (-1, 0, 0)
        number = self.sources.setdefault(place.source, len(self.sources))
        return (number, place.start, place.end - place.start)

    def set(self, scopes: Scopes) -> int:
        known = self.sets.get(scopes)
        if known is None:
            for scope in sorted(scopes, key=lambda scope: scope.number):
                self.scopes.setdefault(scope, len(self.scopes))
            known = self.sets[scopes] = len(self.sets)
        return known


def encode(label: str, expanded: Expanded, world: SummaryWorld) -> str | None:
    """The summary of a library; None where it has to be expanded again."""
    return run_deep(_encode, label, expanded, world)


def _encode(label: str, expanded: Expanded, world: SummaryWorld) -> str | None:
    writer = _SummaryWriter(label, world.macro_homes)
    world.tables[label] = Tables(expanded.namespace.cells, writer.macros)
    exports = {name: writer.reference(binding) for name, binding in sorted(expanded.exports.items())}
    macros: list[Any] = []
    whole = True
    while len(macros) < len(writer.macros):  # writing one may bring in others
        try:
            macros.append(writer.macro(writer.macros[len(macros)]))
        except (CannotKeep, RecursionError):
            macros.append(None)  # the others are numbered nevertheless: importers refer to them
            whole = False
    if not whole:
        return None
    summary = {
        "cells": [
            [cell.name, cell.assigned, None if cell.annotation is None else text(cell.annotation)]
            for cell in expanded.namespace.cells.values()
        ],
        "sources": [str(source.path) for source in writer.sources if isinstance(source, FileSource)],
        "sets": [[writer.scopes[scope] for scope in scopes] for scopes in writer.sets],
        "macros": macros,
        "exports": exports,
    }
    return json.dumps(summary, separators=(",", ":"), ensure_ascii=False)


# ---- reading ---------------------------------------------------------------------------------------------------------


class LaterSource(FileSource):
    """A file whose text is read only when someone looks at it: for the place of an error."""

    def __init__(self, path: Path) -> None:
        self.name = shown(path)
        self.path = path
        self.included = None

    def __getattr__(self, name: str) -> str:  # of what is not there yet
        if name != "text":
            raise AttributeError(f"{type(self).__name__} has no attribute '{name}'")
        self.text = read_source(self.path).text
        return self.text


class StoredRules:
    """A macro of a summary: its rules are read when it is first used."""

    hygienic = True
    assignments = False

    def __init__(self, name: str, make: Callable[[], SyntaxRules]) -> None:
        self.name = name
        self._make = make

    @cached_property
    def rules(self) -> SyntaxRules:
        return run_deep(self._make)

    @property
    def identifiers(self) -> bool:
        return self.rules.identifiers

    def transform(self, use: Syntax, expander: FormExpander) -> Syntax:
        return self.rules.transform(use, expander)


class _SummaryReader:
    def __init__(self, label: str, summary: Mapping[str, Any], world: SummaryWorld) -> None:
        self.world = world
        self.label = label
        self.macro_rows: list[list[Any]] = summary["macros"]
        self.sources = [LaterSource(Path(path)) for path in summary["sources"]]
        self._rows: list[list[int]] = summary["sets"]
        self._scopes: dict[int, Scope] = {}
        self._sets: dict[int, Scopes] = {}
        self.cells = {
            name: Cell(label, name, None, assigned, annotation=annotation and to_datum(read(Source("", annotation))[0]))
            for name, assigned, annotation in summary["cells"]
        }
        self.macros = [
            MacroBinding(StoredRules(row[0], partial(self.rules, number))) for number, row in enumerate(self.macro_rows)
        ]

    def set(self, number: int) -> Scopes:
        known = self._sets.get(number)
        if known is None:
            for scope in self._rows[number]:
                if scope not in self._scopes:
                    self._scopes[scope] = Scope("library")
            known = self._sets[number] = frozenset(self._scopes[scope] for scope in self._rows[number])
        return known

    def rules(self, number: int) -> SyntaxRules:
        name, encoded, bindings = self.macro_rows[number]
        form = self.syntax(encoded)
        for symbol, scopes, reference in bindings:
            add_binding(Symbol(symbol), self.set(scopes), self.binding(reference))
        return SyntaxRules(form, name, checked=True)

    def binding(self, reference: Iterable[Any]) -> Binding:
        kind, *rest = reference
        if kind == "p":
            return self.world.primitive_binding(rest[0])
        if kind == "f":
            return self.world.form(rest[0])
        if kind == "c":
            cells = self.cells if len(rest) == 1 else self.world.tables_of(rest[0]).cells
            return CellBinding(cells[rest[-1]])
        macros = self.macros if len(rest) == 1 else self.world.tables_of(rest[0]).macros
        number: int = rest[-1]
        return macros[number]

    def syntax(self, encoded: list[Any]) -> Syntax:
        kind, source, start, length, *rest = encoded
        place = None if source < 0 else Place(self.sources[source], start, start + length)
        if kind == _IDENTIFIER:
            return Syntax(Symbol(rest[0]), self.set(rest[1]), place)
        if kind == _LIST:
            return Syntax(List([self.syntax(item) for item in rest]), NO_SCOPES, place)
        if kind == _DOTTED:
            return Syntax(List([self.syntax(item) for item in rest[1:]], self.syntax(rest[0])), NO_SCOPES, place)
        if kind == _VECTOR:
            return Syntax(Vector([self.syntax(item) for item in rest]), NO_SCOPES, place)
        value = rest[0]
        if type(value) is list:
            return Syntax(value[0], NO_SCOPES, place)
        return Syntax(value if type(value) is not str else read(Source("", value))[0].content, NO_SCOPES, place)


def decode(label: str, data: bytes, world: SummaryWorld) -> Mapping[str, Binding] | None:
    """The exports of a library, from its summary; None where it has to be expanded again."""
    if not data:
        return None
    try:
        summary = json.loads(data)
        reader = _SummaryReader(label, summary, world)
        exports = {name: reader.binding(reference) for name, reference in summary["exports"].items()}
    except (ValueError, KeyError, IndexError, TypeError):  # nothing that was written here
        return None
    world.tables[label] = Tables(reader.cells, reader.macros)
    for number, binding in enumerate(reader.macros):
        world.macro_homes[binding.transformer] = (label, number)
    return exports
