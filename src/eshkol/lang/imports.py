"""Names of libraries and the algebra of import sets.

An import set names a library and says what to take of its exports: `(only set name ...)`, `(except set name ...)`,
`(prefix set word)`, `(rename set (from to) ...)`, one inside the other. Comes in: syntax of an import set, or the
exports of a library as a mapping from names to whatever they are bound to. Goes out: another such mapping. Nothing here
knows what bindings are, nor where libraries come from; only names and places occur.

A list that begins with only, except, prefix or rename and whose second part is a list is such a set; every other list
of identifiers and whole numbers is the name of a library, so that a library may be called `(only child)`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeVar

from eshkol.lang.datum import Symbol, string_text, symbol_text, text
from eshkol.lang.report import bad
from eshkol.lang.source import Place
from eshkol.lang.syntax import Syntax

T = TypeVar("T")
Name = tuple[str | int, ...]
MODIFIERS = {
    "only": "(only import-set name ...)",
    "except": "(except import-set name ...)",
    "prefix": "(prefix import-set word)",
    "rename": "(rename import-set (from to) ...)",
}


def did_you_mean(name: str, known: Iterable[str], alike: float = 0.7) -> str | None:
    """A hint for a name that is almost one of the known ones."""
    near = get_close_matches(name, [other for other in known if not other.startswith("%")], n=2, cutoff=alike)
    return None if not near else f"did you mean {' or '.join(near)}?"


# ---- names of libraries ----------------------------------------------------------------------------------------------


def spell(name: Name) -> str:
    """The name of a library as it is written."""
    return f"({' '.join(symbol_text(part) if isinstance(part, str) else str(part) for part in name)})"


def brief_name(name: Name) -> str:
    """The same for messages: cut where it is long."""
    return spell(name) if len(name) <= 16 else f"{spell(name[:16])[:-1]} ...)"


def parse_name(syntax: Syntax) -> Name:
    """The name of a library: a list of identifiers and whole numbers."""
    parts: list[str | int] = []
    for item in syntax.items or ():
        content = item.content
        if type(content) is Symbol:
            parts.append(content.name)
        elif type(content) is int and content >= 0:
            parts.append(content)
        else:
            raise bad(f"the name of a library is made of identifiers and whole numbers, not of {text(item)}", item)
    if not parts:
        raise bad(
            "the name of a library is a list such as (scheme base)",
            syntax,
            hint=f"write ({syntax.name})" if syntax.is_identifier else None,
        )
    return tuple(parts)


# ---- import sets -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ImportStep:
    """One modifier: its word, the names that it speaks of (for rename, with the new ones), and where they stand."""

    word: str
    names: tuple[str, ...]
    targets: tuple[str, ...] = ()
    syntax: tuple[Syntax | None, ...] = ()

    def place_of(self, index: int) -> Syntax | None:
        return self.syntax[index] if self.syntax else None


@dataclass(frozen=True, slots=True)
class ImportSet:
    """A library, and what is done to its names, the innermost modifier first. `require` may name a file instead."""

    library: Name | str
    steps: tuple[ImportStep, ...] = ()
    syntax: Syntax | None = None

    @property
    def place(self) -> Place | None:
        return None if self.syntax is None else self.syntax.place

    @property
    def label(self) -> str:
        return string_text(self.library) if isinstance(self.library, str) else spell(self.library)


def parse_import_set(syntax: Syntax, files: bool = False) -> ImportSet:
    """An import set of `import`; with `files`, of `require`, where a string names a file."""
    steps: list[ImportStep] = []
    inner = syntax
    while True:
        items = inner.items
        if not items or len(items) < 2 or not items[0].is_identifier or items[0].name not in MODIFIERS:
            break
        if items[1].items is None and not (files and isinstance(items[1].content, str)):
            break
        steps.append(_parse_step(inner, items[0].name, items[2:]))
        inner = items[1]
    library = inner.content if files and isinstance(inner.content, str) else parse_name(inner)
    return ImportSet(library, tuple(reversed(steps)), syntax)


def _parse_step(syntax: Syntax, word: str, rest: tuple[Syntax, ...]) -> ImportStep:
    if word == "prefix":
        if len(rest) != 1 or not rest[0].is_identifier:
            raise bad(f"prefix takes an import set and one identifier: {MODIFIERS[word]}", syntax)
        return ImportStep(word, (rest[0].name,), (), rest)
    if word != "rename":
        for item in rest:
            if not item.is_identifier:
                raise bad(f"{word} takes names, not {text(item)}: {MODIFIERS[word]}", item)
        return ImportStep(word, tuple(item.name for item in rest), (), rest)
    pairs = [parse_renaming(item) for item in rest]
    return ImportStep(word, tuple(pair[0] for pair in pairs), tuple(pair[1] for pair in pairs), rest)


def parse_renaming(syntax: Syntax) -> tuple[str, str]:
    """`(from to)`."""
    items = syntax.items
    if not items or len(items) != 2 or not all(item.is_identifier for item in items):
        raise bad(f"rename takes pairs of names, (from to), not {text(syntax)}", syntax)
    return items[0].name, items[1].name


def choose(imports: ImportSet, exports: Mapping[str, T]) -> dict[str, T]:
    """What an import set takes of the exports of its library."""
    chosen = dict(exports)
    for step in imports.steps:
        chosen = _apply(step, chosen, imports.label)
    return chosen


def _apply(step: ImportStep, names: dict[str, T], library: str) -> dict[str, T]:
    if step.word == "prefix":
        return {step.names[0] + name: value for name, value in names.items()}
    for index, name in enumerate(step.names):
        if name not in names:
            raise bad(f"{library} exports no {symbol_text(name)}", step.place_of(index), did_you_mean(name, names))
    if step.word == "only":
        return {name: names[name] for name in step.names}
    if step.word == "except":
        left_out = frozenset(step.names)
        return {name: value for name, value in names.items() if name not in left_out}
    left_out = frozenset(step.names)
    renamed = {name: value for name, value in names.items() if name not in left_out}
    for index, (old, new) in enumerate(zip(step.names, step.targets, strict=True)):
        if new in renamed:
            raise bad(
                f"renaming {symbol_text(old)} to {symbol_text(new)} gives that name to two exports of {library}",
                step.place_of(index),
            )
        renamed[new] = names[old]
    return renamed
