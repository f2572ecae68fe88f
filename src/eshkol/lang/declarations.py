"""What `define-library` and `module` declare: names, exports, imports and the forms of the body, all files included.

Comes in: the syntax of the form. Goes out: a `Declaration`. Which libraries and features there are, and the texts of
included files, are asked of a `Surroundings`; nothing is expanded here, so declarations are known by their symbols.

    (define-library name declaration ...)
        declaration: (export spec ...)   spec: name or (rename internal external)
                     (import set ...)  (begin form ...)  (include file ...)  (include-ci file ...)
                     (include-library-declarations file ...)  (cond-expand (requirement declaration ...) ...)

    (module name (spec ...) form ...)
        A library in place, in the midst of a program: its body sees the default environment, or what the `(import ...)`
        forms at its beginning ask for, and nothing of the program around it. Its exports are visible in the rest of the
        program, as if the next form were `(import (name))`. With `all-defined` in place of the specs every definition
        is exported. The name is an identifier or a list, as of a library; other files cannot import it.

    (provide spec ...)
        In a file: what `(require "file")` elsewhere takes of it. `(all-defined)` or `(all-defined-out)` as a spec
        stands for all that the file defines. A file that is required is a library: it runs once, whoever requires it.

    (require target ...)
        A string is a file, relative to the one that requires it, whose `provide`d names are imported. `(require name)`
        with an identifier stands for a library: `stdlib` for the whole default environment, `a.b.c` for `(a b c)`, or
        for the file a/b/c.esk, if that is no define-library but provides something. A list is an import set as in
        `import`; `(only "file" name ...)` and so on work too. What requires still has the default environment.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from eshkol.lang.imports import ImportSet, Name, did_you_mean, parse_import_set, parse_name, parse_renaming
from eshkol.lang.report import bad, brief
from eshkol.lang.syntax import Syntax

ALL_DEFINED = frozenset({"all-defined", "all-defined-out"})


class Surroundings(Protocol):
    """What a declaration may ask of the world around it."""

    def features(self) -> Sequence[str]: ...

    def has_library(self, name: Name, syntax: Syntax) -> bool: ...

    def included(self, file: Syntax, form: Syntax, fold_case: bool) -> list[Syntax]:
        """The forms of a file that is named relative to where its name stands."""


@dataclass(frozen=True, slots=True)
class Export:
    internal: str
    external: str
    syntax: Syntax


@dataclass(slots=True)
class Declaration:
    """A library as it is written, before anything is expanded. `all_defined`: exports whatever its body defines."""

    name: Name
    syntax: Syntax
    exports: list[Export] = field(default_factory=list)
    imports: list[ImportSet] = field(default_factory=list)
    body: list[Syntax] = field(default_factory=list)
    all_defined: bool = False


# ---- cond-expand -----------------------------------------------------------------------------------------------------


def holds(requirement: Syntax, around: Surroundings) -> bool:
    """Whether a feature requirement of cond-expand is met."""
    if requirement.is_identifier:
        return requirement.name == "else" or requirement.name in around.features()
    items, head = requirement.items, requirement.head
    if items and head is not None:
        word, rest = head.name, items[1:]
        if word == "and":
            return all(holds(item, around) for item in rest)
        if word == "or":
            return any(holds(item, around) for item in rest)
        if word == "not" and len(rest) == 1:
            return not holds(rest[0], around)
        if word == "library" and len(rest) == 1:
            return around.has_library(parse_name(rest[0]), rest[0])
    raise bad(
        f"no feature requirement: {brief(requirement)}",
        requirement,
        hint="one is a feature, (library name), (and r ...), (or r ...), (not r) or else",
    )


def cond_expand(form: Syntax, around: Surroundings) -> tuple[Syntax, ...]:
    """The forms of the first clause whose requirement is met; none where no clause is."""
    clauses = (form.items or ())[1:]
    for number, clause in enumerate(clauses):
        items = clause.items
        if not items:
            raise bad("a clause of cond-expand is a list: (requirement form ...)", clause)
        if items[0].is_identifier and items[0].name == "else" and number + 1 < len(clauses):
            raise bad("else must be the last clause of cond-expand", clause)
        if holds(items[0], around):
            return items[1:]
    return ()


# ---- define-library --------------------------------------------------------------------------------------------------


def parse_library(form: Syntax, around: Surroundings) -> Declaration:
    """The declaration of a define-library form."""
    items = form.items
    if not items or len(items) < 2:
        raise bad("define-library takes the name of the library and its declarations", form)
    declaration = Declaration(parse_name(items[1]), form)
    _declare(declaration, items[2:], around)
    return declaration


DECLARATIONS = (
    "export",
    "import",
    "begin",
    "include",
    "include-ci",
    "include-library-declarations",
    "cond-expand",
)


def _declare(declaration: Declaration, forms: Iterable[Syntax], around: Surroundings) -> None:
    for form in forms:
        items, head = form.items, form.head
        word = head.name if head is not None and items else ""
        rest = (items or ())[1:]
        if word == "export":
            declaration.exports += parse_exports(rest)
        elif word == "import":
            declaration.imports += [parse_import_set(item) for item in rest]
        elif word == "begin":
            declaration.body += rest
        elif word in ("include", "include-ci"):
            for file in file_names(form):
                declaration.body += around.included(file, form, word == "include-ci")
        elif word == "include-library-declarations":
            for file in file_names(form):
                _declare(declaration, around.included(file, form, False), around)
        elif word == "cond-expand":
            _declare(declaration, cond_expand(form, around), around)
        else:
            raise bad(
                f"no declaration of a library: {brief(form)}",
                form,
                did_you_mean(word, DECLARATIONS) or "definitions and expressions of a library stand inside (begin ...)",
            )


def parse_exports(specs: Iterable[Syntax]) -> list[Export]:
    """Export specs: `name` or `(rename internal external)`."""
    exports = []
    for spec in specs:
        items = spec.items
        if spec.is_identifier:
            exports.append(Export(spec.name, spec.name, spec))
        elif items and len(items) == 3 and all(item.is_identifier for item in items) and items[0].name == "rename":
            exports.append(Export(items[1].name, items[2].name, spec))
        elif items and len(items) > 1 and items[0].is_identifier and items[0].name == "rename" and items[1].items:
            for pair in items[1:]:  # (rename (internal external) ...), as R6RS and many programs have it
                exports.append(Export(*parse_renaming(pair), pair))
        else:
            raise bad(f"an export is a name or (rename internal external), not {brief(spec)}", spec)
    return exports


def file_names(form: Syntax) -> tuple[Syntax, ...]:
    """The strings of an include form."""
    names = (form.items or ())[1:]
    if not names:
        raise bad("include takes the name of at least one file", form)
    for name in names:
        if not isinstance(name.content, str):
            raise bad(f"include takes the names of files as strings, not {brief(name)}", name)
    return names


# ---- module, provide -------------------------------------------------------------------------------------------------


def parse_module(form: Syntax) -> Declaration:
    """The declaration of a module form; its imports stand at the beginning of its body."""
    items = form.items
    if not items or len(items) < 3:
        raise bad("module takes a name, a list of exports and a body: (module name (export ...) form ...)", form)
    name = (items[1].name,) if items[1].is_identifier else parse_name(items[1])
    declaration = Declaration(name, form)
    if items[2].is_identifier and items[2].name in ALL_DEFINED:
        declaration.all_defined = True
    elif items[2].items is None:
        raise bad("the exports of a module are a list of names, or all-defined", items[2])
    else:
        add_provided(declaration, items[2].items)
    body = list(items[3:])
    while body and (head := body[0].head) is not None and head.name == "import":
        declaration.imports += [parse_import_set(item) for item in (body.pop(0).items or ())[1:]]
    declaration.body = body
    return declaration


def add_provided(declaration: Declaration, specs: Iterable[Syntax]) -> None:
    """Specs of `provide` and `module`: those of export, and `(all-defined)`."""
    for spec in specs:
        items = spec.items
        if items and len(items) == 1 and items[0].is_identifier and items[0].name in ALL_DEFINED:
            declaration.all_defined = True
        else:
            declaration.exports += parse_exports([spec])
