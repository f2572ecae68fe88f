"""Files of data sets: where they are looked for, how they are opened, and what is said of broken ones.

Nothing is downloaded. A file is looked for under `root=`, or else under the folder that the environment variable
ESHKOL_DATA names; when it is not there, the error says which file to put where. Files may be compressed by gzip.
Readers that meet something broken name the file and the place; with `on_error="skip"` they go on, count what was left
out, and say so in the end (`Skips`).
"""

from __future__ import annotations

import difflib
import gzip
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from eshkol.errors import DataError, EshkolError, MissingData
from eshkol.support import flags
from eshkol.support.warning import warn

ON_ERROR = ("raise", "skip")
MOST_DEFLATED = 1040  # bytes that deflate makes of one at most
LONGEST_LINE = 1 << 26
_CHUNK = 1 << 20


class Damaged(DataError):
    """A compressed file that cannot be read to its end."""


class SkippedData(UserWarning):
    """Something broken was left out, as was asked for."""


def chosen(who: str, name: str, value: Any, among: Iterable[str]) -> str:
    """One of several words, or an error that lists them."""
    words = list(among)
    if value in words:
        return str(value)
    shown = str(value) if isinstance(value, str) else value  # a symbol of Scheme's is text, too
    near = difflib.get_close_matches(str(value), words, 1)
    raise DataError(
        f"{who}: {name} is one of {', '.join(map(repr, words))}, not {shown!r}",
        hint=f"did you mean {near[0]!r}?" if near else None,
    )


def folder(root: Any, what: str) -> Path:
    """Where the files of a data set are looked for."""
    if root is not None:
        return Path(root)
    named = flags.text("ESHKOL_DATA")
    if not named:
        raise MissingData(f"{what}: no folder was given", hint="give root=FOLDER, or set ESHKOL_DATA to the folder")
    return Path(named)


def find(root: Any, what: str, names: Sequence[str], folders: Sequence[str] = ("",), source: str = "") -> Path:
    """The first of these files that is there, as it is or with .gz, in one of the folders below the root."""
    base = folder(root, what)
    for below in folders:
        for name in names:
            for path in (base / below / name, base / below / f"{name}.gz"):
                with told(path):
                    if path.is_file():
                        return path
    raise missing(base, what, names[0], folders, source)


def missing(base: Path, what: str, name: str, folders: Sequence[str] = ("",), source: str = "") -> MissingData:
    """The error that says which file to put where."""
    where = " or ".join(str(base / below) for below in folders)
    hint = f"put the file {name} (or {name}.gz) into {where}" + (f"; it comes from {source}" if source else "")
    return MissingData(f"{what}: {name} is not in {base}; nothing is downloaded", hint=hint)


@contextmanager
def told(path: Any) -> Iterator[None]:
    """Within it, what the system says of a file (no permission, a bad disk) is an error that names it."""
    try:
        yield
    except EshkolError:
        raise
    except OSError as error:
        raise DataError(f"{path}: it cannot be read: {error.strerror or error}") from None


def existing(path: Any, what: str) -> Path:
    """A path that leads to a file."""
    found = Path(path)
    with told(found):
        there = found.is_file()
    if not there:
        raise MissingData(f"{what}: there is no file {found}", hint="nothing is downloaded: put the file there")
    return found


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed by gzip, by what is in it."""
    with told(path), path.open("rb") as file:
        return file.read(2) == b"\x1f\x8b"


@contextmanager
def opened(path: Path) -> Iterator[IO[bytes]]:
    """A file opened to be read, decompressed if it must be. Damage that is met within is an error that names it."""
    opener: Any = gzip.open if is_gzip(path) else open
    with told(path), opener(path, "rb") as file:
        try:
            yield file
        except EOFError:
            raise Damaged(f"{path}: the compressed file ends early, after {_amount(file)}") from None
        except (gzip.BadGzipFile, zlib.error) as error:
            raise Damaged(f"{path}: the compressed file is damaged, after {_amount(file)}: {error}") from None


def _amount(file: Any) -> str:
    return "an unknown number of bytes" if file.closed else f"{file.tell():,} bytes of what is in it"


def most_bytes(path: Path) -> int:
    """More than this cannot be in a file, however it is compressed."""
    size = path.stat().st_size
    return size * MOST_DEFLATED if is_gzip(path) else size


def read_up_to(file: Any, count: int, found: bytearray | None = None) -> bytearray:
    """So many bytes, or all that are left; memory is taken as they come. `found` keeps them if the file is damaged."""
    found = bytearray() if found is None else found
    while len(found) < count and (chunk := file.read1(min(_CHUNK, count - len(found)))):
        found += chunk
    return found


def read_all(path: Path, skips: Skips | None = None) -> bytearray:
    """All that is in a file, decompressed; of a damaged one, where that is left out, what comes before the damage."""
    found = bytearray()
    try:
        with opened(path) as file:
            read_up_to(file, most_bytes(path) + 1, found)
    except Damaged as error:
        if skips is None or not found:
            raise
        skips.leave_out(error)
    return found


def lines(file: IO[Any], path: Path) -> Iterator[Any]:
    """The lines of a file, none longer than memory should hold: what has no lines may be called a table, too."""
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if len(line) == LONGEST_LINE:
            raise DataError(f"{path}, line {number}: the line has more than {LONGEST_LINE:,} characters")
        yield line


class Skips:
    """What to do about broken places of a file: raise, or leave out, count, and say so in the end."""

    def __init__(self, who: str, on_error: str) -> None:
        self.raises = chosen(who, "on_error", on_error, ON_ERROR) == "raise"
        self.found: list[tuple[str, str]] = []  # place and reason

    def met(self, place: str, reason: str, hint: str | None = None) -> None:
        """Something broken was met."""
        if self.raises:
            raise DataError(f"{place}: {reason}", hint=hint or "on_error='skip' leaves broken places out")
        self.found.append((place, reason))

    def leave_out(self, error: DataError) -> None:
        """Something broken was met, of which an error says the place and the reason."""
        place, _, reason = error.message.partition(": ")
        self.met(place, reason, error.hint)

    def tell(self, what: str) -> None:
        """Warn of what was left out, if anything was."""
        if self.found:
            (place, reason), count = self.found[0], len(self.found)
            warn(
                f"{count} {what} left out; the first: {place}: {reason}", SkippedData
            )  # fmt: skip


def optional(module: str, what: str, extra: str) -> Any:
    """A library that not everybody has."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DataError(
            f"{what} needs {module.split('.')[0]}, which is not installed ({error})",
            hint=f"pip install eshkol[{extra}]",
        ) from None
