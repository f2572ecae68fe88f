"""Modules that are kept from one process to the next, so that nothing is expanded twice.

What an earlier process expanded is found in the store under the module's base key: a hash of the compiler's version,
the machine's features, and the name, path and text of the module. What lies there says which files the module included,
which libraries it asked for or imported, and the keys that those had; if all are as they were, it is taken, and nothing
needs to be expanded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from eshkol.errors import BadSyntax, LanguageError
from eshkol.lang import summaries
from eshkol.lang.contents import Contents, Reading
from eshkol.lang.declarations import Declaration
from eshkol.lang.files import FileSource, read_source
from eshkol.lang.hashing import digest
from eshkol.lang.imports import Name, spell
from eshkol.lang.libraries import Expanded, Module, SourceModule, Stored, Written
from eshkol.lang.syntax import Syntax


class Store(Protocol):
    """Where bytes are kept from one process to the next, under names of 64 hexadecimal digits."""

    def get(self, key: str) -> bytes | None: ...

    def put(self, key: str, payload: bytes) -> None: ...


class KeepingWorld(summaries.SummaryWorld, Protocol):
    """What is asked of the world of modules when one is kept, or found again."""

    @property
    def store(self) -> Store | None: ...
    @property
    def builtins(self) -> Mapping[Name, Module]: ...
    @property
    def libraries(self) -> Mapping[Name, Module]: ...
    @property
    def labels(self) -> Mapping[str, Module]: ...
    def has_library(self, name: Name, contents: Contents | None = None) -> bool: ...
    def inside(self, contents: Contents, name: Name, syntax: Syntax | None = None) -> Module: ...
    def open_module(self, name: Name, contents: Contents, declaration: Declaration | None = None) -> Module: ...
    def file_module(self, path: Path, syntax: Syntax | None = None) -> Module: ...
    def library_path(self, name: Name, contents: Contents | None) -> Path | None: ...
    def library_file(self, name: Name, path: Path, syntax: Syntax | None) -> Module: ...


def keep(world: KeepingWorld, module: SourceModule, written: Written, expanded: Expanded) -> None:
    reading = written.reading
    summarized = written.kind == "library" or written.summarized
    if summarized and module.label in world.tables:  # its summary was read, and is as good
        return
    stored = world.store is not None and reading.contents.keep
    manifest = _manifest(world, module, reading, expanded) if stored else {}
    # Nothing looks for interrupts from here on: the tables of the world hold what the summary says.
    summary = summaries.encode(module.label, expanded, world) if summarized else None
    if world.store is not None and stored:
        lines = [json.dumps(manifest, separators=(",", ":")), "" if summary is None else summary]
        world.store.put(module.base, "\n".join(lines).encode())


def _manifest(world: KeepingWorld, module: SourceModule, reading: Reading, expanded: Expanded) -> dict[str, Any]:
    return {
        "key": expanded.key,
        "files": [[str(path), text] for path, text in reading.files.items()],
        "asked": [[list(name), answer] for name, answer in reading.asked.items()],
        "imports": [[_how(world, other, reading.contents), other.key] for other in module.imports],
        "uses": [other.label for other in expanded.uses],
    }


def _how(world: KeepingWorld, module: Module, contents: Contents) -> list[Any]:
    """How to find a module again: ["library", name], ["inside", name], ["module", name] or ["file", path]."""
    for name, other in (*world.builtins.items(), *world.libraries.items()):
        if other is module:
            return ["library", list(name)]
    assert isinstance(module, SourceModule)
    if module.source is contents.source:
        name = module.written_name
        return ["inside" if name in contents.libraries else "module", list(name)]
    assert isinstance(module.source, FileSource)
    return ["file", str(module.source.path)]


def stored_module(world: KeepingWorld, base: str, contents: Contents, label: str) -> Stored | None:
    """What the store has for a base key, if nothing has changed that it depends on."""
    payload = world.store.get(base) if world.store is not None and contents.keep else None
    if payload is None:
        return None
    first, _, second = payload.partition(b"\n")
    try:
        manifest = json.loads(first)
        for path, text in manifest["files"]:
            if digest(read_source(Path(path)).text) != text:
                return None
        for name, answer in manifest["asked"]:
            if world.has_library(tuple(name), contents) != answer:
                return None
        imports = []
        for how, key in manifest["imports"]:
            module = _again(world, how, contents)
            if module.key != key:
                return None
            imports.append(module)
        uses = tuple(world.labels[label] for label in manifest["uses"])
        key, closed = manifest["key"], not manifest["files"] and not manifest["asked"]
    except (LanguageError, KeyError, ValueError, TypeError, OSError):  # something is gone: expand, and say so there
        return None
    return Stored(key, tuple(imports), uses, lambda: summaries.decode(label, second, world), closed)


def _again(world: KeepingWorld, how: Sequence[Any], contents: Contents) -> Module:
    kind, what = how
    if kind == "inside":
        return world.inside(contents, tuple(what))
    if kind == "module":
        return world.open_module(tuple(what), contents)
    if kind == "file":
        return world.file_module(Path(what))
    name = tuple(what)
    if name in world.builtins:
        return world.builtins[name]
    known = world.libraries.get(name)
    if known is not None and known.standard:
        return known
    path = world.library_path(name, contents)
    if path is None:
        raise BadSyntax(f"there is no library {spell(name)}")
    return world.library_file(name, path, None)
