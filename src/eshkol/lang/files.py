"""Where the files of libraries and included files are, and their texts.

`(foo bar)` is looked for as foo/bar.esk, foo/bar.sld and foo/bar.scm: first in the standard library, then beside the
file that imports it, then, if that is a library, in the folder where that one was found (so that (foo bar) finds its
sister (foo baz)), then in the folders that the environment variable ESHKOL_PATH lists.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from eshkol.errors import BadSyntax
from eshkol.lang.source import Source
from eshkol.support import flags

if TYPE_CHECKING:
    from eshkol.lang.imports import Name

STANDARD = Path(__file__).resolve().parent.parent / "lib"
SUFFIXES = (".esk", ".sld", ".scm")


class FileSource(Source):
    """The text of a file. `included` is the source whose include form asked for it, if one did."""

    def __init__(self, name: str, text: str, path: Path = Path(), included: Source | None = None) -> None:
        super().__init__(name, text)
        self.path, self.included = path, included


def file_name(source: Source | None) -> str:
    """What compiled code calls a source by, wherever it is run: the whole path of a file."""
    if isinstance(source, FileSource):
        return str(source.path)
    return "?" if source is None else source.name


ASKED_FOR: list[Path] = []  # folders of libraries that the command line names


def path_folders() -> list[Path]:
    """The folders that the command line names, then those of ESHKOL_PATH."""
    return ASKED_FOR + [Path(entry).expanduser() for entry in flags.text("ESHKOL_PATH").split(os.pathsep) if entry]


def folder_of(source: Source | None) -> Path:
    """The folder that names in a source are relative to: that of the file, or the current one for other texts."""
    return source.path.parent if isinstance(source, FileSource) else Path.cwd()


def locate(name: Name, folders: Sequence[Path], standard: Path = STANDARD) -> Path | list[Path]:
    """The file of a library, or all the places where it might have been."""
    looked: list[Path] = []
    parts = [str(part) for part in name]
    if len(parts) > 64 or any(
        part in (".", "..", "") or "/" in part or "\0" in part or os.sep in part for part in parts
    ):
        return looked
    for base in dict.fromkeys((standard, *folders)):
        stem = base.joinpath(*parts)
        for suffix in SUFFIXES:
            file = stem.parent / (stem.name + suffix)
            if _is_file(file):
                return file.resolve()
            if base != standard:
                looked.append(file)
    return looked


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # a name that is too long, a folder that may not be looked into
        return False


def _files_like(path: Path) -> str:
    """What may be meant by a file that there is not."""
    from difflib import get_close_matches

    with suppress(OSError):
        near = get_close_matches(path.name, [file.name for file in path.absolute().parent.iterdir()], 1)
        if near:
            return f"did you mean {shown(path.with_name(near[0]))}?"
    return "a path begins in the folder where the program was started"


def read_source(path: Path, included: Source | None = None) -> FileSource:
    """The text of a file; an error that a person understands where there is none."""
    try:
        data = path.resolve().read_bytes()
    except (OSError, ValueError, RuntimeError) as error:
        raise BadSyntax(
            f"cannot read {shown(path)}: {(getattr(error, 'strerror', None) or str(error)).lower()}",
            hint=_files_like(path) if isinstance(error, FileNotFoundError) else None,
        ) from None
    return FileSource(shown(path), decoded(data, shown(path)), path.resolve(), included)


def decoded(data: bytes, name: str) -> str:
    """The text that the bytes of a file are."""
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadSyntax(
            f"{name} is not UTF-8: line {line} has the byte {data[error.start]:#04x}, which cannot stand there",
            hint="save the file as UTF-8",
        ) from None


def shown(path: Path) -> str:
    """A path as short as it can be told: relative to the current folder where it is inside it."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def looked_at(name: Name, looked: Sequence[Path]) -> str:
    """A hint with the places where a library was looked for."""
    from eshkol.lang.imports import brief_name

    if not looked:
        return f"{brief_name(name)} is not in the standard library, and is no name of a file"
    places = "\n  ".join(shown(path) for path in looked)
    return f"looked in the standard library and for\n  {places}\n  (-L FOLDER and ESHKOL_PATH name further folders)"
