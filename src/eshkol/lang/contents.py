"""Texts of modules: the libraries and forms in a file, the files that they include, and a record of what was asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

from eshkol.errors import BadSyntax
from eshkol.lang.features import features
from eshkol.lang.files import FileSource, folder_of, read_source, shown
from eshkol.lang.hashing import digest
from eshkol.lang.imports import Name, parse_name, spell
from eshkol.lang.reader import parse, read
from eshkol.lang.report import bad
from eshkol.lang.source import Source
from eshkol.lang.syntax import Syntax
from eshkol.runtime.tokens import tokenize


class Contents:
    """A file (or another text), read when someone needs it: the libraries in it, and the forms beside them."""

    def __init__(self, source: Source, base: str, keep: bool = True) -> None:
        self.source = source
        self.base = base  # a hash of all that is known before it is read
        self.folders = [folder_of(source)]  # where it looks for libraries first
        self.keep = keep  # whether its modules may be kept in the store
        self.version = ""  # what tells it from another reading of the same file
        self.versions: dict[Name, int] = {}  # of libraries that were defined again, at a prompt

    @property
    def title(self) -> str:
        name = str(self.source.path) if isinstance(self.source, FileSource) else self.source.name
        return name + self.version

    @cached_property
    def forms(self) -> list[Syntax]:
        return read(self.source)

    @cached_property
    def libraries(self) -> dict[Name, Syntax]:
        found: dict[Name, Syntax] = {}
        for form in self.forms:
            if form.head is not None and form.head.name == "define-library":
                items = form.items
                if not items or len(items) < 2:
                    raise bad("define-library takes the name of the library and its declarations", form)
                name = parse_name(items[1])
                if name in found:
                    raise bad(
                        f"{spell(name)} is defined twice in this file",
                        form,
                        notes=(("the first time here", found[name].place),),
                    )
                found[name] = form
        return found

    @cached_property
    def rest(self) -> list[Syntax]:
        libraries = {id(form) for form in self.libraries.values()}
        return [form for form in self.forms if id(form) not in libraries]


class Reading:
    """What one module asks of the world while it is read and expanded, and a record of the answers.

    `has_library(name, contents)` says whether there is a library, as seen from a file.
    """

    def __init__(self, has_library: Callable[[Name, Contents], bool], contents: Contents) -> None:
        self._has_library = has_library
        self.contents = contents
        self.files: dict[Path, str] = {}
        self.asked: dict[Name, bool] = {}

    def features(self) -> Sequence[str]:
        return features()

    def has_library(self, name: Name, syntax: Syntax) -> bool:
        self.asked[name] = self._has_library(name, self.contents)
        return self.asked[name]

    def included(self, file: Syntax, form: Syntax, fold_case: bool) -> list[Syntax]:
        place = file.place
        source = self.contents.source if place is None else place.source
        path = folder_of(source) / file.content.replace("\0", "\N{REPLACEMENT CHARACTER}")
        chain: Source | None = source
        while isinstance(chain, FileSource):
            if chain.path == path.resolve():
                raise bad(f"{shown(path)} includes itself", file)
            chain = chain.included
        try:
            included = read_source(path, source)
        except BadSyntax as error:
            raise bad(error.message, file, error.hint) from None
        self.files[included.path] = digest(included.text)
        head = form.head
        scopes = head.scopes if head is not None else frozenset()
        return [item.changed(scopes, frozenset()) for item in _read(included, fold_case)]


FOLD_CASE = "#!fold-case\n"


def _read(source: Source, fold_case: bool) -> list[Syntax]:
    if not fold_case:
        return read(source)
    tokens, incomplete = tokenize(FOLD_CASE + source.text)
    size = len(FOLD_CASE)
    return parse(
        [token._replace(start=token.start - size, end=token.end - size) for token in tokens], source, incomplete
    )
