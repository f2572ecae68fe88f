"""What a project holds, as one hash: its `eshkol.toml` and all files in its folder `src`.

Comes in: the folder of a project. Goes out: the BLAKE3 of names and contents, as text. Hidden files do not count, since
no import finds them; a link is an error, for what it leads to could change unseen.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from blake3 import blake3

from eshkol.errors import ProjectError
from eshkol.lang.files import shown
from eshkol.project import MANIFEST

ALGORITHM = "blake3"
SOURCE = "src"


def tree_hash(folder: Path) -> str:
    """The hash of what others see of a project."""
    whole = blake3(b"eshkol project 1\n")
    try:
        for name in sorted(_files(folder)):
            data = (folder / name).read_bytes()
            whole.update(f"{len(name.encode('utf-8', 'surrogateescape'))} {len(data)}\n".encode())
            whole.update(name.encode("utf-8", "surrogateescape"))
            whole.update(data)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ProjectError(f"cannot read {shown(Path(error.filename or folder))}: {reason}") from None
    return f"{ALGORITHM}:{whole.hexdigest()}"


def _files(folder: Path) -> Iterator[str]:
    """The names of the files, from the folder of the project, with slashes."""
    yield MANIFEST
    for place, folders, files in os.walk(folder / SOURCE, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in (*folders, *files):
            path = Path(place, name)
            if name.startswith("."):
                continue
            if path.is_symlink():
                raise ProjectError(
                    f"{shown(path)} is a link, and a project that others depend on holds none",
                    hint="put the file itself there",
                )
            if name in files:
                yield path.relative_to(folder).as_posix()


def _raise(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):  # a project need not have sources
        raise error
