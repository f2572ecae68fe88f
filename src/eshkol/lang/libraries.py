"""Modules: libraries, programs and required files, from their declarations to units of core forms.

Comes in: a `Declaration` with the modules that it imports. Goes out: a `Module` with its exports (names to bindings)
and its unit. Which modules there are, and where they come from, is the business of `lang/world.py`.

A module is expanded when someone asks for its unit, or for exports that its stored summary (`lang/summaries.py`) does
not give. Its imports are known before: so cycles are found without expanding anything.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from eshkol.errors import BadSyntax, LanguageError
from eshkol.lang.contents import Reading
from eshkol.lang.core import Call, Cell, Const, Global, Local, Node, SetGlobal, SyntaxConst, Unit
from eshkol.lang.datum import symbol_text
from eshkol.lang.declarations import Declaration
from eshkol.lang.deep import run_deep
from eshkol.lang.imports import ImportSet, Name, choose, did_you_mean
from eshkol.lang.meanings import CellBinding, same_binding
from eshkol.lang.namespaces import Namespace
from eshkol.lang.report import bad
from eshkol.lang.scopes import Binding
from eshkol.lang.source import Source


@dataclass(frozen=True, slots=True)
class Link:
    """An import set and the module that it takes its names from."""

    imports: ImportSet
    module: Module

    @property
    def label(self) -> str:
        return self.module.label


class Module(ABC):
    """A library, a program or a required file.

    `label` is what its cells call their library. `imports` are the modules that it imports, in order; `uses` those of
    them (or of theirs) whose variables its code refers to. `key` names all that its code was made from.
    """

    label: str
    imports: tuple[Module, ...] = ()
    keep = False  # whether its code may be found again by another process
    standard = False  # whether it is part of the standard library: then running it has no effects but its definitions

    @property
    @abstractmethod
    def key(self) -> str:
        """What names its code."""

    @property
    @abstractmethod
    def exports(self) -> Mapping[str, Binding]:
        """What it gives to those who import it."""

    @property
    @abstractmethod
    def unit(self) -> Unit | None:
        """Its code; None where there is none (primitives and core forms)."""

    @property
    def uses(self) -> tuple[Module, ...]:
        return ()

    def __repr__(self) -> str:
        return f"<module {self.label}>"


class BuiltIn(Module):
    """A library that Python makes; it has no code of its own."""

    standard = True

    def __init__(self, label: str, key: str, make: Callable[[], Mapping[str, Binding]]) -> None:
        self.label = label
        self._key = key
        self._make = make
        self._exports: Mapping[str, Binding] | None = None

    @property
    def key(self) -> str:
        return self._key

    @property
    def exports(self) -> Mapping[str, Binding]:
        if self._exports is None:
            self._exports = self._make()
        return self._exports

    @property
    def unit(self) -> Unit | None:
        return None


@dataclass(slots=True)
class Written:
    """A module as it is written: its declaration, its imports resolved, and what else was asked on the way."""

    declaration: Declaration
    links: list[Link]
    reading: Reading
    kind: str = "library"  # or "program"
    shadowing: bool = False  # whether a definition may take the place of an imported name
    default: Module | None = None  # whose exports are there unless something else takes their names
    summarized: bool = False  # a program: whether what it exports is kept, as that of a library always is

    @property
    def is_alone(self) -> bool:
        """Whether nobody outside refers to its variables: it is a program that only runs."""
        return self.kind == "program" and not self.summarized and not self.declaration.exports


@dataclass(slots=True)
class Expanded:
    """What expanding a module gives."""

    unit: Unit
    namespace: Namespace
    exports: dict[str, Binding]
    uses: tuple[Module, ...]
    key: str


class SourceModule(Module):
    """A module that is written in Eshkol.

    Made from the store (`stored` is then what an earlier expansion left there) or from what is written (`written`);
    `expand` gives its unit when that is asked for.
    """

    def __init__(
        self,
        expand: Callable[[SourceModule, Written], Expanded],
        label: str,
        source: Source,
        base: str,
        write: Callable[[], Written],
        written: Written | None = None,
        stored: Stored | None = None,
    ) -> None:
        self._expand = expand
        self.label = label
        self.source = source
        self.base = base  # the part of its key that is known before it is read
        self._write = write
        self._written = written
        self._stored = stored
        self._expanded: Expanded | None = None
        self._exports: Mapping[str, Binding] | None = None
        self._expanding = False
        self.imports = stored.imports if stored is not None else _modules(written)

    @property
    def written_name(self) -> Name:
        """The name in its declaration; of a program, none."""
        if self._written is None:
            self._written = self._write()
        return self._written.declaration.name

    @property
    def key(self) -> str:
        return self._stored.key if self._stored is not None else self.expanded.key

    @property
    def unit(self) -> Unit:
        return self.expanded.unit

    @property
    def uses(self) -> tuple[Module, ...]:
        return self._stored.uses if self._stored is not None else self.expanded.uses

    @property
    def closed(self) -> bool:
        """Whether it was made from its own text and the modules that it imports, and nothing else."""
        if self._stored is not None:
            return self._stored.closed
        assert self._written is not None
        return not self._written.reading.files and not self._written.reading.asked

    @property
    def exports(self) -> Mapping[str, Binding]:
        if self._exports is None:
            kept = self._stored is not None and self._expanded is None  # else it has the variables of its expansion
            loaded = self._stored.exports() if kept and self._stored is not None else None
            self._exports = self.expanded.exports if loaded is None else loaded
        return self._exports

    @property
    def expanded(self) -> Expanded:
        if self._expanded is None:
            if self._expanding:  # a library asks for itself while it is expanded: through eval in a transformer
                raise BadSyntax(f"{self.label} is needed while it is being expanded")
            self._expanding = True
            try:
                if self._written is None:
                    self._written = self._write()
                self._expanded = run_deep(self._expand, self, self._written)
            finally:
                self._expanding = False
        return self._expanded


@dataclass(slots=True)
class Stored:
    """A module as an earlier process left it: nothing needs to be read or expanded to run it."""

    key: str
    imports: tuple[Module, ...]
    uses: tuple[Module, ...]
    exports: Callable[[], Mapping[str, Binding] | None]  # None: it must be expanded again
    closed: bool  # whether it included no files, and asked for no libraries but those that it imports


def _modules(written: Written | None) -> tuple[Module, ...]:
    if written is None:
        return ()
    default = () if written.default is None else (written.default,)
    return tuple(dict.fromkeys((*default, *(link.module for link in written.links))))


def in_order(module: Module, below: Callable[[Module], Iterable[Module]]) -> list[Module]:
    """The module and all below it, each after those that it needs. Without recursion: chains may be long."""
    done: dict[Module, None] = {}
    todo: list[tuple[Module, Iterator[Module]]] = [(module, iter(below(module)))]
    open_ = {module}
    while todo:
        current, rest = todo[-1]
        for other in rest:
            if other not in done and other not in open_:
                open_.add(other)
                todo.append((other, iter(below(other))))
                break
        else:
            todo.pop()
            open_.discard(current)
            done[current] = None
    return list(done)


# ---- imports and exports ---------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Imported:
    """Names with what they are bound to, and the link that brought each; two links must agree on a name."""

    bindings: dict[str, Binding] = field(default_factory=dict)
    origins: dict[str, Link] = field(default_factory=dict)

    def add(self, link: Link) -> None:
        for name, binding in choose(link.imports, link.module.exports).items():
            known = self.bindings.get(name)
            if known is not None and not same_binding(known, binding):
                raise self._conflict(name, link)
            self.bindings[name] = binding
            self.origins[name] = link

    def check_kept(self, namespace: Namespace) -> None:
        """In a library: an imported name must not be defined again."""
        for name, binding in self.bindings.items():
            found = namespace.lookup(name)
            if found is not binding:
                link = self.origins[name]
                place = found.cell.place if isinstance(found, CellBinding) else None
                raise bad(
                    f"{symbol_text(name)} is imported from {link.label}, and defined in this library too",
                    place or link.imports.place,
                    hint=f"import it as (except {link.imports.label} {symbol_text(name)})",
                    notes=() if place is None else ((f"{link.label} is imported here", link.imports.place),),
                )

    def _conflict(self, name: str, link: Link) -> LanguageError:
        first = self.origins[name]
        written = symbol_text(name)
        return bad(
            f"{written} is imported twice, with different meanings: from {first.label} and from {link.label}",
            link.imports.place,
            hint=f"leave one out, (except {link.label} {written}), or rename it: (prefix {link.label} my-)",
            notes=((f"{first.label} is imported here", first.imports.place),),
        )


def collect(links: Iterable[Link]) -> Imported:
    """All that these imports bring."""
    imported = Imported()
    for link in links:
        imported.add(link)
    return imported


def find_exports(
    declaration: Declaration, namespace: Namespace, label: str, bound: Mapping[str, Binding]
) -> dict[str, Binding]:
    """What a module exports, once its body is expanded; `bound` are the names that it had before."""
    exports: dict[str, Binding] = {}
    for export in declaration.exports:
        binding = namespace.lookup(export.internal)
        if binding is None:
            written = symbol_text(export.internal)
            raise bad(
                f"{label} exports {written}, which it neither defines nor imports",
                export.syntax,
                did_you_mean(export.internal, namespace.names()),
            )
        known = exports.get(export.external)
        if known is not None and not same_binding(known, binding):
            raise bad(f"{label} exports two things as {symbol_text(export.external)}", export.syntax)
        exports[export.external] = binding
    if declaration.all_defined:
        for name in sorted(namespace.names()):
            binding = namespace.lookup(name)
            if binding is not None and binding is not bound.get(name):
                exports.setdefault(name, binding)
    return exports


# ---- what code refers to ---------------------------------------------------------------------------------------------

_Parts = tuple[tuple[str, bool], ...]  # names of what a node has, and whether that is a list of nodes
_PARTS: dict[type, _Parts] = {}
_LEAVES = frozenset({Const, Global, Local, SyntaxConst})  # which have none
_KINDS = {"Node": False, "list[Node]": True, "list[Lambda]": True, "list[Clause]": True}


def _parts(kind: Any) -> _Parts:
    types = {field.name: str(field.type) for field in fields(kind)}
    unknown = [name for name, text in types.items() if text not in _KINDS and re.search("Node|Lambda|Clause", text)]
    assert not unknown, f"{kind.__name__} has parts that are not looked at: {unknown}"
    found = _PARTS[kind] = tuple((name, _KINDS[text]) for name, text in types.items() if text in _KINDS)
    return found


def nodes(roots: Iterable[Node]) -> list[Any]:
    """Every node of some core forms, and the clauses of procedures: what has parts, before those."""
    found: list[Any] = list(roots)
    for node in found:  # which grows
        kind = type(node)
        if kind is Call:  # by far the most frequent
            found.append(node.procedure)
            found += node.args
        elif kind not in _LEAVES:
            for name, several in _PARTS.get(kind) or _parts(kind):
                if several:
                    found += getattr(node, name)
                else:
                    found.append(getattr(node, name))
    return found


def cells_used(roots: Iterable[Node]) -> dict[Cell, None]:
    """The cells that some core forms refer to or change, in some order without repetition."""
    return {node.cell: None for node in nodes(roots) if type(node) is Global or type(node) is SetGlobal}
