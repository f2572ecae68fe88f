"""What may be typed at a cursor: names in scope, libraries in an import, files in a string.

Comes in: a session, a text with a cursor in it. Goes out: where what is completed begins, and what it may become. The
prompt (prompt/) and the notebook (bindings/notebook) ask the same.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from eshkol.lang.files import STANDARD, SUFFIXES, path_folders
from eshkol.lang.indent import End, Opened, end_of
from eshkol.lang.meanings import CellBinding
from eshkol.runtime.tokens import tokenize
from eshkol.session import Session

DELIMITERS = frozenset("()[]{}\"';`,| \t\r\n")
IMPORTS = ("import", "require")


class Completion(NamedTuple):
    """What may stand there instead, and what that is, in a word."""

    text: str
    kind: str


def completions_at(session: Session, text: str, cursor: int) -> tuple[int, list[Completion]]:
    """Where the text begins that may be completed at the cursor, and by what."""
    before = text[:cursor]
    end = end_of(before)
    if end.within == "string":
        start = end.start + 1
        typed = before[start:]
        return cursor - len(typed.rpartition("/")[2]), _files(typed)
    start, _ = name_at(text, cursor)
    word = before[start:]
    if end.within:
        return cursor, []
    library = _library_before(end, before, start)
    if library is not None:
        return start, [Completion(name, "library") for name in library_parts(session, library, word)]
    named = [Completion(name, kind_of_name(session, name)) for name in completions(session, word)] if word else []
    known = {one.text for one in named}
    typed_names = {t.text for t in tokenize(text)[0] if t.kind == "SYMBOL" and not t.start <= start < t.end}
    here = [Completion(n, "here") for n in sorted(typed_names - known) if word and n.startswith(word)]
    return start, here + named


def completions(session: Session, word: str) -> list[str]:
    """The names at the prompt that begin so; not those that the library keeps to itself."""
    return sorted(name for name in session.visible_names() if name.startswith(word) and not name.startswith("%"))


def kind_of_name(session: Session, name: str) -> str:
    """Whether a name is a form or a variable."""
    return "" if isinstance(session.world.prompt.namespace.lookup(name), CellBinding) else "form"


# ---- libraries -------------------------------------------------------------------------------------------------------


def _library_before(end: End, before: str, start: int) -> list[str] | None:
    """The parts of a library's name that stand before the cursor, if it stands in one."""
    heads = [opened.head for opened in end.opened]
    if len(heads) < 2 or heads[0] not in IMPORTS:
        return None
    inner: Opened = end.opened[-1]
    items = [item for item in inner.items if item < start]
    if items and inner.head in ("only", "except", "prefix", "rename") and len(heads) == 2:
        return None  # the names that it exports
    return [before[item : name_at(before, item)[1]] for item in items]


def library_parts(session: Session, parts: list[str], word: str) -> list[str]:
    """What may be the next part of the name of a library, after some parts."""
    known = [tuple(map(str, name)) for name in session.world.prompt.contents.libraries]
    size = len(parts)
    found = {name[size] for name in known if name[:size] == tuple(parts) and len(name) > size}
    for base in (STANDARD, Path.cwd(), *path_folders()):
        try:
            with os.scandir(base.joinpath(*parts)) as entries:
                for entry in entries:
                    stem, suffix = os.path.splitext(entry.name)
                    if suffix in SUFFIXES or (entry.is_dir() and base == STANDARD):
                        found.add(stem)
                    elif entry.is_dir() and not entry.name.startswith(".") and _has_libraries(entry.path):
                        found.add(entry.name)
        except (OSError, ValueError):
            continue
    return sorted(name for name in found if name.startswith(word))


def _has_libraries(folder: str) -> bool:
    with os.scandir(folder) as entries:
        return any(entry.name.endswith(SUFFIXES) for entry in entries)


# ---- files -----------------------------------------------------------------------------------------------------------


def _files(typed: str) -> list[Completion]:
    """The files that a path may go on to; folders end in /."""
    folder, _, word = typed.rpartition("/")
    try:
        base = Path(folder + "/").expanduser() if folder or typed.startswith("/") else Path.cwd()
        with os.scandir(base) as entries:
            names = [entry.name + "/" * entry.is_dir() for entry in entries if entry.name.startswith(word)]
    except (OSError, ValueError, RuntimeError):
        return []
    return [Completion(name, "file") for name in sorted(names) if word or not name.startswith(".")]


# ---- names in a text -------------------------------------------------------------------------------------------------


def name_at(text: str, cursor: int) -> tuple[int, int]:
    """Where the name begins and ends that the cursor touches; an empty range at the cursor where there is none."""
    start = end = min(cursor, len(text))
    while start > 0 and text[start - 1] not in DELIMITERS:
        start -= 1
    while end < len(text) and text[end] not in DELIMITERS:
        end += 1
    return start, end


def operator_at(text: str, cursor: int) -> str:
    """The first name in the innermost form that is open at the cursor, unless it is a list of data."""
    opened = end_of(text[:cursor]).opened
    if not opened or opened[-1].quoted:
        return ""
    start, end = name_at(text, opened[-1].token.end)
    return text[start:end]
