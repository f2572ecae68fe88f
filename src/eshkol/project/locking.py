"""`eshkol.lock`: what the dependencies of a project were when they were accepted.

Comes in: the folder of a project, or what is to be written. Goes out: for each dependency, direct or not, where it came
from and the hash of what it held; of git also the commit.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path

from eshkol.errors import ProjectError
from eshkol.lang.files import decoded, shown
from eshkol.lang.source import Source
from eshkol.project.manifest import toml

LOCK = "eshkol.lock"
HEADER = "# What the dependencies were when they were accepted; `eshkol update` writes this file, nobody else need.\n"
UPDATE = "`eshkol update` writes it anew"


@dataclass(frozen=True, slots=True)
class Locked:
    """A dependency as it was accepted. `path` is from the folder of the project that locks it."""

    tree: str
    path: str | None = None
    git: str | None = None
    rev: str | None = None
    commit: str | None = None


def read_lock(folder: Path) -> dict[str, Locked]:
    """What is accepted; nothing where there is no file yet."""
    path = folder / LOCK
    try:
        source = Source(shown(path), decoded(path.read_bytes(), shown(path)))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ProjectError(f"cannot read {shown(path)}: {(error.strerror or str(error)).lower()}") from None
    known = {field.name for field in fields(Locked)}
    found: dict[str, Locked] = {}
    for name, row in toml(source).items():
        good = isinstance(row, dict) and row.keys() <= known and "tree" in row
        if not good or not all(isinstance(part, str) for part in row.values()):
            raise ProjectError(f"{source.name} does not say of {name} what it must", hint=UPDATE)
        found[name] = Locked(**row)
    return found


def write_lock(folder: Path, locked: Mapping[str, Locked]) -> None:
    """Put the file in place, all of it or nothing; a project without dependencies has none."""
    path = folder / LOCK
    if not locked:
        path.unlink(missing_ok=True)
        return
    parts = [HEADER]
    for name in sorted(locked):
        rows = [(field.name, getattr(locked[name], field.name)) for field in fields(Locked)]
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in rows if value is not None)
        parts.append(f"[{name}]\n{lines}")
    put(path, "\n".join(parts))


def put(path: Path, text: str) -> None:
    """Write a small file in one step."""
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
        temporary = ""
    except OSError as error:
        raise ProjectError(f"cannot write {shown(path)}: {(error.strerror or str(error)).lower()}") from None
    finally:
        if temporary:
            with suppress(OSError):
                os.unlink(temporary)
