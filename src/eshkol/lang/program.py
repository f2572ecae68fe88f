"""Programs, required files and prompts: which of their forms are declarations, and what the others see.

A program is a file with define-library forms, imports and a body; its body is one sealed unit. A program that imports
nothing sees the default environment: R7RS-small whole, and Eshkol's extensions. A definition takes the place of an
imported name in a program and at a prompt; in a library it is an error, except where the name comes from the default
environment (`module`, required files).

At a prompt (`Interaction`) every form is a unit of its own, and runs before the next one is expanded. Its variables are
not sealed: everything may be defined again, and a definition takes the place of an import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from eshkol.lang.contents import Contents, Reading
from eshkol.lang.core import Cell, Unit
from eshkol.lang.declarations import Declaration, add_provided, cond_expand, parse_library, parse_module
from eshkol.lang.deep import run_deep
from eshkol.lang.files import read_source
from eshkol.lang.imports import ImportSet, Name, parse_import_set, spell
from eshkol.lang.libraries import Link, Module, Written, cells_used, collect
from eshkol.lang.meanings import FormBinding, FormExpander
from eshkol.lang.namespaces import Namespace
from eshkol.lang.reader import read
from eshkol.lang.report import bad, brief
from eshkol.lang.source import Source
from eshkol.lang.surface import TOP_LEVEL
from eshkol.lang.syntax import Syntax
from eshkol.support.interrupts import check

STDLIB = "stdlib"  # (require stdlib): the default environment


class ProgramWorld(Protocol):
    """What programs and prompts ask of the world of modules."""

    @property
    def settle(self) -> Callable[[Unit], None] | None: ...
    @property
    def default_name(self) -> Name: ...
    @property
    def default(self) -> Module: ...
    def has_library(self, name: Name, contents: Contents | None = None) -> bool: ...
    def library_path(self, name: Name, contents: Contents | None) -> Path | None: ...
    def contents(self, path: Path) -> Contents: ...
    def reading(self, contents: Contents) -> Reading: ...
    def write_library(self, contents: Contents, name: Name) -> Written: ...
    def links(self, imports: Iterable[ImportSet], contents: Contents | None) -> list[Link]: ...
    def open_module(self, name: Name, contents: Contents, declaration: Declaration | None = None) -> Module: ...
    def expander(self, namespace: Namespace) -> FormExpander: ...
    def modules_used(self, unit: Unit, cells: Iterable[Cell]) -> tuple[Module, ...]: ...
    def ensure(self, module: Module) -> None: ...


# ---- programs and required files -------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Forms:
    """The forms of a program, sorted."""

    declaration: Declaration
    modules: list[Syntax] = field(default_factory=list)
    explicit: bool = False  # whether it imports, and so has no default environment


def write_program(world: ProgramWorld, contents: Contents, kind: str) -> Written:
    """A program ("program") or a required file ("library"), before it is expanded."""
    reading = world.reading(contents)
    forms = _sort(contents.rest, reading, world)
    declaration = forms.declaration
    links = world.links(declaration.imports, contents)
    for form in forms.modules:
        inner = parse_module(form)
        module = world.open_module(inner.name, contents, inner)
        links.append(Link(ImportSet(inner.name, (), form), module))
    default = None if forms.explicit else world.default
    return Written(declaration, links, reading, kind, shadowing=kind == "program", default=default)


def write_loaded(world: ProgramWorld, contents: Contents) -> Written:
    """A file that others look into while it runs: a program gives all its definitions, or what it provides."""
    if contents.libraries and not contents.rest:
        return world.write_library(contents, list(contents.libraries)[-1])
    written = write_program(world, contents, "program")
    written.summarized = True
    if not written.declaration.exports:
        written.declaration.all_defined = True
    return written


def write_module(world: ProgramWorld, contents: Contents, declaration: Declaration) -> Written:
    """A `module` form, before it is expanded."""
    links = world.links(declaration.imports, contents)
    default = None if declaration.imports else world.default
    return Written(declaration, links, world.reading(contents), default=default)


def find_module(contents: Contents, name: Name) -> Declaration:
    """The `module` form of that name in a text."""
    for form in contents.rest:
        if form.head is not None and form.head.name == "module":
            declaration = parse_module(form)
            if declaration.name == name:
                return declaration
    raise bad(f"there is no module {spell(name)} in {contents.title}", None)


def _sort(forms: Iterable[Syntax], reading: Reading, world: ProgramWorld) -> _Forms:
    forms = list(forms)
    sorted_ = _Forms(Declaration((), forms[0] if forms else Syntax(None)))
    declaration = sorted_.declaration
    own = _defined_names(forms)  # a program may have a procedure of its own that is called `require`
    todo = list(reversed(forms))
    while todo:
        form = todo.pop()
        head = form.head
        word = "" if head is None or head.name in own else head.name
        rest = (form.items or ())[1:]
        if word == "import":
            sorted_.explicit = True
            declaration.imports += [parse_import_set(item) for item in rest]
        elif word == "require":
            declaration.imports += [parse_requirement(item, world, reading.contents) for item in rest]
        elif word == "provide":
            add_provided(declaration, rest)
        elif word == "module":
            sorted_.modules.append(form)
        elif word == "cond-expand" and _declares(form):
            todo += reversed(cond_expand(form, reading))
        else:
            declaration.body.append(form)
    return sorted_


def _defined_names(forms: Iterable[Syntax]) -> set[str]:
    """Those of the words for declarations that the forms define as names of their own."""
    names = set()
    for form in forms:
        items, head = form.items, form.head
        if items and len(items) > 1 and head is not None and head.name.startswith("define"):
            target = items[1] if items[1].is_identifier else items[1].head
            if target is not None and target.name in TOP_LEVEL:
                names.add(target.name)
    return names


def _declares(form: Syntax) -> bool:
    """Whether some clause of a cond-expand has a declaration in it."""
    for clause in (form.items or ())[1:]:
        for item in (clause.items or ())[1:]:
            if item.head is not None and item.head.name in (*TOP_LEVEL, "cond-expand"):
                return True
    return False


def parse_requirement(syntax: Syntax, world: ProgramWorld, contents: Contents | None) -> ImportSet:
    """What `require` takes: a string, an identifier, or an import set."""
    if isinstance(syntax.content, str):
        return ImportSet(syntax.content, (), syntax)
    if not syntax.is_identifier:
        return parse_import_set(syntax, files=True)
    if syntax.name == STDLIB:
        return ImportSet(world.default_name, (), syntax)
    parts = syntax.name.split(".")
    name: Name = tuple(int(part) if part.isdigit() else part for part in parts)
    if world.has_library(name, contents):
        path = world.library_path(name, contents)
        if path is not None and name not in world.contents(path).libraries:
            return ImportSet(str(path), (), syntax)
        return ImportSet(name, (), syntax)
    raise bad(
        f"there is nothing to require as {syntax.name}",
        syntax,
        f'{STDLIB} is the whole standard library; a file is required by its name: (require "{"/".join(parts)}.esk")',
    )


# ---- prompts ---------------------------------------------------------------------------------------------------------


class Interaction:
    """An environment in which forms are evaluated one after the other: a prompt, or what `environment` gives."""

    def __init__(self, world: ProgramWorld, label: str, contents: Contents) -> None:
        self.world = world
        self.label = label
        self.contents = contents
        self.namespace = Namespace(label, "repl")
        self.reading = world.reading(contents)

    def add(self, module: Module) -> None:
        """Everything that a module exports."""
        for name, binding in module.exports.items():
            self.namespace.bind(name, binding)

    def link(self, imports: Iterable[ImportSet], contents: Contents | None = None) -> None:
        """An import. The sets of one import must agree; a later one takes the place of earlier ones."""
        links = self.world.links(imports, contents or self.contents)
        imported = collect(links)
        for link in links:
            if not link.module.standard:
                self.world.ensure(link.module)
        for name, binding in imported.bindings.items():
            self.namespace.bind(name, binding)

    def declare(self, form: Syntax) -> None:
        """An import, require, module or define-library at the prompt."""
        head = form.head
        word = "" if head is None else head.name
        rest = (form.items or ())[1:]
        if word == "import":
            self.link([parse_import_set(item) for item in rest])
        elif word == "require":
            self.link([parse_requirement(item, self.world, self.contents) for item in rest])
        elif word == "define-library":
            declaration = parse_library(form, self.reading)
            name = declaration.name
            if name in self.contents.libraries:
                self.contents.versions[name] = self.contents.versions.get(name, 1) + 1
            self.contents.libraries[name] = form
        elif word == "module":
            declaration = parse_module(form)
            module = self.world.open_module(declaration.name, self.contents, declaration)
            self.world.ensure(module)
            self.add(module)
        else:
            raise bad(f"{word} says what a file gives to others; there is no file here: {brief(form)}", form)

    def units(self, source: Source) -> Iterator[Unit]:
        """The units of a text, each to be run before the next is asked for."""
        for form in read(source):
            check()
            unit = self.unit(form)
            if unit is not None:
                yield unit

    def load(self, filename: str) -> Iterator[Unit]:
        """The units of a file, for `load`; a relative name is relative to the current folder."""
        return self.units(read_source(Path.cwd() / filename))

    def unit(self, form: Syntax) -> Unit | None:
        """The unit of one form as it was read; None for a declaration, which is carried out here."""
        return run_deep(self._unit, form)

    def _unit(self, form: Syntax) -> Unit | None:
        head = form.head
        if head is not None and head.name in TOP_LEVEL:
            binding = self.namespace.lookup(head.name)
            if binding is None or (isinstance(binding, FormBinding) and binding.name == head.name):
                self.declare(form)
                return None
        unit = self.world.expander(self.namespace).expand_unit([form], self.namespace)
        if self.world.settle is not None:
            self.world.settle(unit)
        for module in self.world.modules_used(unit, cells_used(unit.forms)):
            self.world.ensure(module)
        return unit
