"""What commands ask about the project that they work in: where its libraries are, and whether there is one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from eshkol.cli.usage import UsageError
from eshkol.lang.files import ASKED_FOR, shown
from eshkol.project import root_of

if TYPE_CHECKING:
    from eshkol.project.manifest import Project

_known: dict[Path, list[Path]] = {}  # folders of libraries, by the folder of the project


def enter(folder: Path) -> None:
    """Have libraries looked for where the project that a folder belongs to has them, if it belongs to one."""
    root = root_of(folder)
    if root is None:
        return
    if root not in _known:
        from eshkol.project.manifest import read
        from eshkol.project.resolving import library_folders

        _known[root] = library_folders(read(root))
    ASKED_FOR.extend(place for place in _known[root] if place not in ASKED_FOR)


def project_here(prog: str, folder: Path | None = None) -> Project:
    """The project that a folder belongs to, by default the current one; where there is none, a command needs names."""
    from eshkol.project.manifest import find

    project = find(folder or Path.cwd())
    if project is None:
        where = "this folder" if folder is None else f"'{shown(folder)}'"
        raise UsageError(f"name a file or a folder: {where} belongs to no project (`eshkol new` makes one)", prog)
    return project
