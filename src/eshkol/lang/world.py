"""The world of modules: which libraries there are, where they come from, and in which order they run.

Comes in: names of libraries, sources of programs, and a `Compiler` that can run modules. Goes out: `Module`s, each of
which is loaded once and runs once, after those that it needs.

A library is, in this order: one that Python makes ((eshkol primitives), (eshkol syntax-core)), one that stands in the
same file, a file of the standard library, a file beside the importing one, a file in a folder of ESHKOL_PATH.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary, WeakValueDictionary

from eshkol.errors import BadSyntax, LanguageError, UnboundName
from eshkol.lang import program, summaries
from eshkol.lang.contents import Contents, Reading
from eshkol.lang.core import Cell, Global, Node, SetGlobal, Unit
from eshkol.lang.datum import symbol_text
from eshkol.lang.declarations import Declaration, parse_library
from eshkol.lang.deep import run_deep
from eshkol.lang.expander import Expander, core_forms
from eshkol.lang.features import features
from eshkol.lang.files import STANDARD, FileSource, folder_of, locate, looked_at, path_folders, read_source, shown
from eshkol.lang.hashing import digest
from eshkol.lang.imports import ImportSet, Name, brief_name, did_you_mean, spell
from eshkol.lang.keeping import Store, keep, stored_module
from eshkol.lang.libraries import (
    BuiltIn,
    Expanded,
    Link,
    Module,
    SourceModule,
    Written,
    cells_used,
    collect,
    find_exports,
    in_order,
    nodes,
)
from eshkol.lang.meanings import CellBinding, FormExpander, Transformer
from eshkol.lang.namespaces import Frame, Namespace
from eshkol.lang.program import Interaction
from eshkol.lang.report import bad
from eshkol.lang.scopes import Binding
from eshkol.lang.source import Place, Source
from eshkol.lang.surface import surface_forms
from eshkol.lang.syntax import Syntax
from eshkol.runtime.scheme_table import LIBRARY
from eshkol.support import observing
from eshkol.support.interrupts import check

PRIMITIVES: Name = LIBRARY
SYNTAX_CORE: Name = ("eshkol", "syntax-core")
DEFAULT: Name = ("eshkol",)
FOR_SYNTAX = " for syntax"  # the label of what begin-for-syntax defines is its module's with this after it


class Compiler(Protocol):
    """What turns modules into running code: the code generator with the runtime."""

    def prepare(self, modules: Sequence[Module]) -> None:
        """Some modules will be run, in this order."""

    def run(self, module: Module) -> None:
        """Run a module, all that it needs having been run. It has a unit; its code may be cached under its key."""

    def execute(self, unit: Unit) -> None:
        """Run a unit now."""

    def transformer(self, unit: Unit, name: str, place: Place | None) -> Transformer:
        """Run a unit whose only form gives a procedure from syntax to syntax, and make a transformer of that."""


@dataclass(slots=True)
class _Loading:
    label: str
    syntax: Syntax | None


class World:
    """All modules of a process.

    `primitives` gives the names of the runtime's primitives; `version` names the compiler with all that expanded code
    depends on. Without a compiler, procedural macros cannot be defined and nothing runs.
    """

    def __init__(
        self,
        primitives: Callable[[], Iterable[str]],
        compiler: Compiler | None = None,
        *,
        version: str = "",
        store: Store | None = None,
        folders: Sequence[Path] | None = None,
        standard: Path = STANDARD,
        default: Name = DEFAULT,
    ) -> None:
        self.compiler = compiler
        self.store = store
        self.folders = list(path_folders() if folders is None else folders)
        self.standard = standard.resolve()
        self.default_name = default
        self.settle: Callable[[Unit], None] | None = None  # what looks at types of units that have any, and at borders
        self._version = digest(version, *features())
        self._primitive_names = primitives
        self.labels: dict[str, Module] = {}
        self.tables: dict[str, summaries.Tables] = {}  # of libraries, by label
        self.macro_homes: dict[Transformer, tuple[str, int]] = {}
        self.libraries: dict[Name, Module] = {}  # that are files
        self._contents: dict[Path, Contents] = {}
        self._loading: list[_Loading] = []
        self._has_run: set[Module] = set()
        self._loads: dict[Path, int] = {}  # how often files were loaded
        self._numbered = 0  # environments and modules at prompts
        self.readings: WeakKeyDictionary[Namespace, Reading] = WeakKeyDictionary()
        self._for_syntax: WeakKeyDictionary[Namespace, Namespace] = WeakKeyDictionary()
        self.interactions: WeakValueDictionary[Namespace, Interaction] = WeakValueDictionary()
        builtins = ((PRIMITIVES, self._primitives), (SYNTAX_CORE, self._syntax_core))
        self.builtins: dict[Name, Module] = {}
        for name, make in builtins:
            module = BuiltIn(spell(name), digest(self._version, spell(name)), make)
            self.builtins[name] = self.labels[module.label] = module

    # ---- what Python makes -------------------------------------------------------------------------------------------

    @cached_property
    def _cells(self) -> dict[str, Cell]:
        label = spell(PRIMITIVES)
        return {name: Cell(label, name, primitive=True) for name in self._primitive_names()}

    def primitive(self, name: str) -> Cell:
        return self._cells[name]

    def primitive_binding(self, name: str) -> Binding:
        return self.builtins[PRIMITIVES].exports[name]

    def form(self, name: str) -> Binding:
        """A core form."""
        return self.builtins[SYNTAX_CORE].exports[name]

    def _primitives(self) -> Mapping[str, Binding]:
        return {name: CellBinding(cell) for name, cell in self._cells.items()}

    def _syntax_core(self) -> Mapping[str, Binding]:
        return {**core_forms(), **surface_forms(self)}

    # ---- finding modules ---------------------------------------------------------------------------------------------

    @property
    def default(self) -> Module:
        """What a program without imports sees."""
        return self.library(self.default_name)

    def has_library(self, name: Name, contents: Contents | None = None) -> bool:
        if name in self.builtins or name in self.libraries or (contents is not None and name in contents.libraries):
            return True
        return self.library_path(name, contents) is not None

    def library(self, name: Name, contents: Contents | None = None, syntax: Syntax | None = None) -> Module:
        """The library of that name, as seen from a file."""
        if name in self.builtins:
            return self.builtins[name]
        if contents is not None and name in contents.libraries:
            return self.inside(contents, name, syntax)
        known = self.libraries.get(name)
        if known is not None and known.standard:  # those come first, wherever the importer stands
            return known
        found = self._locate(name, contents)
        if not isinstance(found, Path):
            if known is not None:
                return known
            hint = did_you_mean(spell(name), map(spell, self.standard_libraries()), 0.8)
            raise bad(f"there is no library {brief_name(name)}", syntax, hint or looked_at(name, found))
        return self.library_file(name, found, syntax)

    def library_path(self, name: Name, contents: Contents | None) -> Path | None:
        """The file of a library, as seen from another file."""
        found = self._locate(name, contents)
        return found if isinstance(found, Path) else None

    def _locate(self, name: Name, contents: Contents | None) -> Path | list[Path]:
        near = [folder_of(None)] if contents is None else contents.folders
        return locate(name, [*near, *self.folders], self.standard)

    def standard_libraries(self) -> list[Name]:
        """The names of the libraries that come with Eshkol."""
        names = list(self.builtins)
        for path in sorted(self.standard.rglob("*.esk")) if self.standard.is_dir() else ():
            parts = path.relative_to(self.standard).with_suffix("").parts
            names.append(tuple(int(part) if part.isdigit() else part for part in parts))
        return names

    def contents(self, path: Path) -> Contents:
        path = path.resolve()
        known = self._contents.get(path)
        if known is None:
            source = read_source(path)
            known = self._contents[path] = self._text(source)
        return known

    def library_file(self, name: Name, path: Path, syntax: Syntax | None) -> Module:
        known = self.libraries.get(name)
        contents = self.contents(path)
        root = path.parents[len(name) - 1]
        if root not in contents.folders:
            contents.folders.append(root)
        if known is not None:
            if isinstance(known, SourceModule) and known.source is not contents.source:
                raise bad(
                    f"two files are the library {spell(name)}: {known.source.name} and {contents.source.name}",
                    syntax,
                    hint="give one of them another name",
                )
            return known

        def write() -> Written:
            if name not in contents.libraries:
                raise self._other_name(name, contents, syntax)
            return self.write_library(contents, name)

        module = self._open(spell(name), contents, digest(contents.base, "library", spell(name)), write, syntax)
        self.libraries[name] = module
        return module

    def _other_name(self, name: Name, contents: Contents, syntax: Syntax | None) -> LanguageError:
        others = list(contents.libraries)
        file = contents.source.name
        if not others:
            return bad(
                f"{file} should be the library {spell(name)}, but has no define-library",
                syntax,
                hint=f"begin it with (define-library {spell(name)} ...), or (require) it",
            )
        return bad(
            f"{file} should be the library {spell(name)}, but defines {' and '.join(map(spell, others))}",
            syntax,
            notes=((f"{spell(others[0])} is defined here", contents.libraries[others[0]].place),),
        )

    def inside(self, contents: Contents, name: Name, syntax: Syntax | None = None) -> Module:
        """A library that stands in the same file as whoever imports it."""
        source = contents.source
        if isinstance(source, FileSource):
            found = self._locate(name, contents)
            if found == source.path:  # the file's own library
                return self.library_file(name, source.path, syntax)
        version = contents.versions.get(name)
        label = f"{spell(name)} in {contents.title}{f', version {version}' if version else ''}"
        known = self.labels.get(label)
        if isinstance(known, SourceModule) and known.source is source:
            return known
        base = digest(contents.base, "inside", spell(name))
        return self._open(label, contents, base, lambda: self.write_library(contents, name), syntax)

    def open_module(self, name: Name, contents: Contents, declaration: Declaration | None = None) -> Module:
        """What a `module` form in a text declares."""
        label = f"module {spell(name)[1:-1]} in {contents.title}"
        if not contents.keep:  # at a prompt, where it may be written again
            self._numbered += 1
            label += f" {self._numbered}"
        known = self.labels.get(label)
        if isinstance(known, SourceModule) and known.source is contents.source:
            return known

        def write() -> Written:
            return program.write_module(self, contents, declaration or program.find_module(contents, name))

        return self._open(label, contents, digest(contents.base, "module", spell(name)), write, None)

    def file_module(self, path: Path, syntax: Syntax | None = None) -> Module:
        """A file that is required: what it provides, or the library that is all there is in it."""
        contents = self.contents(path)
        label = f'"{path.resolve()}"'
        known = self.labels.get(label)
        if known is not None:
            return known
        base = digest(contents.base, "file")

        def write() -> Written:
            return program.write_program(self, contents, "library")

        if stored_module(self, base, contents, label) is None and contents.libraries and not contents.rest:
            return self.inside(contents, list(contents.libraries)[-1], syntax)
        return self._open(label, contents, base, write, syntax)

    def program(self, source: Source) -> Module:
        """The program that a text is."""
        contents = self._text(source)
        base = digest(contents.base, "program")
        return self._open("program", contents, base, lambda: program.write_program(self, contents, "program"), None)

    def loaded(self, source: FileSource, label: str | None = None) -> SourceModule:
        """A file as a module of its own, apart from those that this file was loaded or required as before."""
        number = self._loads[source.path] = self._loads.get(source.path, 0) + 1
        version = "" if number == 1 else f", load {number}"
        contents = Contents(source, digest(self._version, str(source.path), source.text, "loaded", version))
        contents.version = version
        label, base = label or f"{contents.title} in Python", digest(contents.base, "loaded")
        return self._open(label, contents, base, lambda: program.write_loaded(self, contents), None)

    def interaction(self, label: str = "<repl>", default: bool = True) -> Interaction:
        """A new prompt; the default environment is there unless someone does not want it."""
        interaction = program.Interaction(self, label, Contents(Source(label, ""), "", keep=False))
        self.readings[interaction.namespace] = interaction.reading
        self.interactions[interaction.namespace] = interaction
        if default:
            interaction.add(self.default)
        return interaction

    @cached_property
    def prompt(self) -> Interaction:
        """The environment of the prompt, which `(interaction-environment)` gives."""
        return self.interaction()

    def environment(self, imports: Iterable[ImportSet]) -> Interaction:
        """What `(environment import-set ...)` gives."""
        self._numbered += 1
        interaction = self.interaction(f"<environment {self._numbered}>", default=False)
        interaction.link(imports)
        return interaction

    def _text(self, source: Source) -> Contents:
        path = str(source.path) if isinstance(source, FileSource) else source.name
        return Contents(source, digest(self._version, path, source.text))

    def _open(
        self, label: str, contents: Contents, base: str, write: Callable[[], Written], syntax: Syntax | None
    ) -> SourceModule:
        for number, loading in enumerate(self._loading):
            if loading.label == label:
                raise self._cycle(number, label, syntax)
        self._loading.append(_Loading(label, syntax))
        try:
            stored = stored_module(self, base, contents, label)
            written = None if stored is not None else run_deep(write)
        finally:
            self._loading.pop()
        module = SourceModule(self.expand_module, label, contents.source, base, write, written, stored)
        source = contents.source
        module.keep = contents.keep
        module.standard = isinstance(source, FileSource) and self.standard in source.path.parents
        self.labels[label] = module
        return module

    def _cycle(self, number: int, label: str, syntax: Syntax | None) -> LanguageError:
        chain = [loading.label for loading in self._loading[number:]]
        notes = [
            (f"{before} imports {after.label} here", None if after.syntax is None else after.syntax.place)
            for before, after in zip(chain, self._loading[number + 1 :], strict=False)
        ]
        if len(chain) == 1:
            return bad(f"{label} imports itself", syntax)
        return bad(
            f"libraries import each other in a circle: {' → '.join([*chain, label])}",
            syntax,
            notes=tuple(notes),
            hint="put what both need into a library of its own",
        )

    def reading(self, contents: Contents) -> Reading:
        return Reading(self.has_library, contents)

    # ---- reading -----------------------------------------------------------------------------------------------------

    def write_library(self, contents: Contents, name: Name) -> Written:
        reading = self.reading(contents)
        declaration = parse_library(contents.libraries[name], reading)
        return Written(declaration, self.links(declaration.imports, reading.contents), reading)

    def links(self, imports: Iterable[ImportSet], contents: Contents | None) -> list[Link]:
        return [Link(item, self.imported_module(item, contents)) for item in imports]

    def imported_module(self, imports: ImportSet, contents: Contents | None) -> Module:
        if isinstance(imports.library, str):
            return self.file_module(self.required_path(imports.library, contents, imports.syntax), imports.syntax)
        return self.library(imports.library, contents, imports.syntax)

    def required_path(self, file: str, contents: Contents | None, syntax: Syntax | None) -> Path:
        """The file that `(require "file")` means."""
        looked = []
        for folder in (folder_of(None if contents is None else contents.source), *self.folders):
            for suffix in ("", ".esk"):
                path = (folder / (file + suffix)).resolve()
                if path.is_file():
                    return path
                looked.append(shown(path))
        raise bad(f"there is no file {file}", syntax, "looked for\n  " + "\n  ".join(looked))

    def source(self, name: str) -> Source | None:
        """A file that was read, by its whole path."""
        known = self._contents.get(Path(name))
        return None if known is None else known.source

    # ---- expanding ---------------------------------------------------------------------------------------------------

    def expander(self, namespace: Namespace) -> Expander:
        """An expander for the forms of a namespace."""

        def transformer(node: Node, name: str, place: Place | None) -> Transformer:
            return self._transformer(namespace, node, name, place)

        return _Expander(self, transformer)

    def who_exports(self, name: str) -> str | None:
        """A library of the standard library that exports a name, as it is written; (scheme base) before others."""
        ranks = {("scheme", "base"): 0, self.default_name: 1}
        rank = lambda known: ranks.get(known, 3 if known[0] == "eshkol" else 2)
        for library in sorted(self.standard_libraries(), key=rank):
            try:
                if library not in self.builtins and name in self.library(library).exports:
                    return spell(library)
            except LanguageError:  # one that cannot be expanded has its own error where it is imported
                continue
        return None

    def who_brings(self, name: str) -> str | None:
        """A hint: which import brings a name. Libraries beside (eshkol) are imported with it."""
        library = self.who_exports(name)
        whole = spell(self.default_name)
        if library is None or library == whole or not library.startswith("(eshkol "):
            return library and f"(import {library}) brings it"
        return f"(import {whole} {library}) brings it"

    def _transformer(self, namespace: Namespace, node: Node, name: str, place: Place | None) -> Transformer:
        if self.compiler is None:
            raise bad(f"the macro {symbol_text(name)} is a procedure, which needs the compiler", place)
        self._prepare([node], namespace, f"the macro {symbol_text(name)}", place)
        return self.compiler.transformer(Unit(f"macro {name}", [node]), name, place)

    def _prepare(self, code: Iterable[Node], namespace: Namespace, who: str, place: Place | None) -> None:
        """Before code runs while its program is expanded: whatever it calls must have run."""
        for cell in cells_used(code):
            if cell.library == namespace.name and namespace.kind != "repl":
                name = symbol_text(cell.name)
                raise bad(
                    f"{who} calls {name}, which has no value yet when macros are expanded",
                    place,
                    hint=f"put {name} into a library and import that, or define it inside (begin-for-syntax ...)",
                    notes=((f"{name} is defined here", cell.place),),
                )
            self.ensure_cell(cell)

    def run_for_syntax(
        self, namespace: Namespace, expander: FormExpander, forms: Sequence[Syntax], form: Syntax
    ) -> None:
        """`(begin-for-syntax form ...)`: what it defines has the namespace's scope, and cells of its own."""
        if self.compiler is None:
            raise bad("begin-for-syntax needs the compiler", form)
        inner = self._for_syntax.get(namespace)
        if inner is None:
            inner = self._for_syntax[namespace] = Namespace(namespace.name + FOR_SYNTAX, "repl")
            inner.scope, inner.scopes = namespace.scope, namespace.scopes
            self.readings[inner] = self.readings[namespace]
        unit = expander.expand_unit(forms, inner)
        self._prepare(unit.forms, namespace, "begin-for-syntax", form.place)
        self.compiler.execute(unit)

    def _refuse_for_syntax(self, unit: Unit, cells: Iterable[Cell]) -> None:
        """Code that runs later must not refer to what was there for macros alone; `cells` are those it refers to."""
        if not any(cell.library.endswith(FOR_SYNTAX) for cell in cells):
            return
        for node in nodes(unit.forms):
            if isinstance(node, (Global, SetGlobal)) and node.cell.library.endswith(FOR_SYNTAX):
                name = symbol_text(node.cell.name)
                raise bad(
                    f"{name} is defined for macros, and is not there when the program runs",
                    node.place,
                    notes=((f"{name} is defined here", node.cell.place),),
                )

    def expand_module(self, module: SourceModule, written: Written) -> Expanded:
        with observing.timed(observing.COMPILE, "expand"):
            return self._expand_module(module, written)

    def _expand_module(self, module: SourceModule, written: Written) -> Expanded:
        """The unit of a module, its exports, and a note of it in the store."""
        declaration = written.declaration
        namespace = Namespace(module.label, written.kind, is_alone=written.is_alone)
        self.readings[namespace] = written.reading
        imported = collect(written.links)
        bound = {**({} if written.default is None else written.default.exports), **imported.bindings}
        for name, binding in bound.items():
            namespace.bind(name, binding)
        unit = self.expander(namespace).expand_unit(declaration.body, namespace)
        if self.settle is not None:
            self.settle(unit)
        cells = cells_used(unit.forms)
        self._refuse_for_syntax(unit, cells)
        if not written.shadowing:
            imported.check_kept(namespace)
        exports = find_exports(declaration, namespace, module.label, bound)
        uses = self.modules_used(unit, cells)
        reading = written.reading
        key = digest(
            module.base,
            *(f"{path}\0{text}" for path, text in reading.files.items()),
            *(f"{spell(name)}\0{answer}" for name, answer in reading.asked.items()),
            *(other.key for other in (*module.imports, *uses)),
        )
        expanded = Expanded(unit, namespace, exports, uses, key)
        keep(self, module, written, expanded)
        return expanded

    def modules_used(self, unit: Unit, cells: Iterable[Cell]) -> tuple[Module, ...]:
        """Of the cells that a unit refers to, the modules; without its own and the primitives."""
        own = {cell.library for cell in unit.cells}
        labels = dict.fromkeys(cell.library for cell in cells if not cell.primitive)
        return tuple(self.labels[label] for label in sorted(labels) if label not in own and label in self.labels)

    # ---- running -----------------------------------------------------------------------------------------------------

    def in_order(self, module: Module) -> list[Module]:
        """All modules that must run for this one, each after those that it needs; this one is the last.

        Modules of the standard library have no effects but their definitions: those nothing refers to are left out.
        """
        return [other for other in in_order(module, _needs) if not isinstance(other, BuiltIn)]

    def ensure(self, module: Module) -> None:
        """Run a module, unless it has run; and before it, what it needs."""
        if module in self._has_run:
            return
        waiting = [other for other in self.in_order(module) if other not in self._has_run]
        if self.compiler is None:
            raise BadSyntax(f"{waiting[0].label} cannot run: there is no compiler")
        self.compiler.prepare(waiting)
        for other in waiting:
            if other not in self._has_run:  # what ran before it may have asked for it
                check()
                self.compiler.run(other)
                self._has_run.add(other)

    def try_module(self, module: Module) -> None:
        """Run a module, which counts as run even where it fails: what it has defined by then can be looked at."""
        for other in self.in_order(module):
            if other is not module:
                self.ensure(other)
        assert self.compiler is not None
        self._has_run.add(module)
        self.compiler.run(module)

    def has_run(self, source: Source) -> None:
        """A program has run, and all that it needs, without anybody having asked this world."""
        self._has_run.update(self.in_order(self.program(source)))

    def have_run(self, names: Iterable[Name]) -> None:
        """Libraries have run, without anybody having asked this world."""
        self._has_run.update(self.library(name) for name in names)

    def code_of(self, source: Source, module: Module) -> list[Module] | None:
        """All modules that run for a program, if they depend on its text and the standard library alone."""
        order = self.in_order(module)
        for other in order:
            if not other.standard and not (isinstance(other, SourceModule) and other.source is source and other.closed):
                return None
        return order

    def waiting(self, cell: Cell) -> list[Module]:
        """The modules that would run before the cell has its value."""
        module = self.labels.get(cell.library)
        if module is None or isinstance(module, BuiltIn) or module in self._has_run:
            return []
        return [other for other in self.in_order(module) if other not in self._has_run]

    def ensure_cell(self, cell: Cell) -> None:
        """Run the module that defines a cell, so that the cell has its value."""
        module = self.labels.get(cell.library)
        if module is not None and not isinstance(module, BuiltIn):
            self.ensure(module)

    def tables_of(self, label: str) -> summaries.Tables:
        """The cells and macros of a library, for references from summaries of others."""
        if label not in self.tables:
            _ = self.labels[label].exports
        return self.tables[label]


class _Expander(Expander):
    """An expander that knows where names may come from."""

    def __init__(self, world: World, transformer: Callable[[Node, str, Place | None], Transformer]) -> None:
        super().__init__(world.primitive, transformer)
        self.world = world

    def unbound(self, identifier: Syntax, frame: Frame) -> Cell:
        try:
            return super().unbound(identifier, frame)
        except UnboundName as error:
            error.hint = self.world.who_brings(identifier.name) or error.hint
            raise


def _needs(module: Module) -> list[Module]:
    return list(dict.fromkeys((*(other for other in module.imports if not other.standard), *module.uses)))
