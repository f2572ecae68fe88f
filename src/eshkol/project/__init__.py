"""Projects: a folder with an `eshkol.toml`, its sources, its tests, and the projects that it depends on.

`manifest` reads the file and finds the project that a folder belongs to; `trees` says what a project holds, as a hash;
`fetching` brings projects from git; `locking` reads and writes what was accepted; `resolving` puts these together: the
folders where the libraries of a project are found; `making` makes a new one. Nothing here runs a program. What stands
in this file is all that a program outside of projects pays for.
"""

from __future__ import annotations

from pathlib import Path

MANIFEST = "eshkol.toml"


def root_of(folder: Path) -> Path | None:
    """The folder of the project that a folder belongs to, if it belongs to one."""
    folder = folder.absolute()
    return next((place for place in (folder, *folder.parents) if (place / MANIFEST).is_file()), None)
