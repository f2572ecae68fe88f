"""`eshkol.toml`: which project a folder belongs to, and what its file says.

    [project]
    name = "orbits"
    version = "0.1.0"
    main = "src/orbits.esk"          # this is where it is looked for if nothing is said

    [dependencies]
    geometry = { path = "../geometry" }
    algebra = { git = "https://example.org/algebra.git", rev = "v1.2" }

Comes in: a folder. Goes out: a `Project`, or None where no folder above has the file. A mistake in the file is a
`ProjectError` with its line.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, NoReturn

from eshkol.errors import ProjectError, Span
from eshkol.lang.files import decoded, shown
from eshkol.lang.source import Source
from eshkol.project import MANIFEST, root_of

TAKEN = ("eshkol", "scheme", "srfi", "rnrs", "chezscheme")  # libraries of these names are not a project's
NAME = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?\Z")
NAME_HINT = "a name is of small letters, digits and hyphens, and begins with a letter: orbits, two-body"
PROJECT_KEYS = ("name", "version", "main", "description", "authors", "license")
SOURCES = {"path": ("path",), "git": ("git", "rev")}  # kinds of dependencies, and what is said of each

_WHERE = re.compile(r" \(at (?:line (\d+), column (\d+)|end of document)\)\Z")


@dataclass(frozen=True, slots=True)
class Dependency:
    """Another project that a project needs: in a folder, or at a revision of a git repository."""

    name: str
    path: str | None
    git: str | None
    rev: str | None
    span: Span  # where it is asked for

    def __str__(self) -> str:
        return f"the folder {self.path}" if self.path is not None else f"{self.git} at {self.rev}"


@dataclass(frozen=True, slots=True)
class Project:
    """What `eshkol.toml` says; `folder` is where it stands, as an absolute path."""

    name: str
    version: str
    folder: Path
    main_file: str
    dependencies: tuple[Dependency, ...]

    @property
    def manifest(self) -> Path:
        return self.folder / MANIFEST

    @property
    def source(self) -> Path:
        """Where its programs and libraries are."""
        return self.folder / "src"

    @property
    def tests(self) -> Path:
        return self.folder / "tests"

    @property
    def main(self) -> Path:
        """The program that `eshkol run` runs and `eshkol build` builds. Raises ProjectError where there is none."""
        path = self.folder / self.main_file
        if not path.is_file():
            raise ProjectError(
                f"the project {self.name} has no program to run: there is no file {shown(path)}",
                hint=f'write it, or name another by `main = "..."` in {shown(self.manifest)}',
            )
        return path


def find(folder: Path) -> Project | None:
    """The project that a folder belongs to, if it belongs to one."""
    root = root_of(folder)
    return None if root is None else read(root)


def read(folder: Path) -> Project:
    """The project in a folder that has an `eshkol.toml`."""
    path = folder / MANIFEST
    try:
        source = Source(shown(path), decoded(path.read_bytes(), shown(path)))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ProjectError(f"cannot read {shown(path)}: {reason}") from None
    return _Reader(source).project(folder.resolve())


class _Reader:
    """What the text of a manifest says, with the places of its mistakes."""

    def __init__(self, source: Source) -> None:
        self.source = source

    def project(self, folder: Path) -> Project:
        data = toml(self.source)
        for key in data:
            if key not in ("project", "dependencies"):
                self.fail(f"there is no table [{key}] in {MANIFEST}", key, hint="it has [project] and [dependencies]")
        table = data.get("project")
        if not isinstance(table, dict):
            self.fail(
                f"{self.source.name} has no table [project]", "project", hint='begin it with [project] and name = "..."'
            )
        for key in table:
            if key not in PROJECT_KEYS:
                self.fail(f"[project] has no key `{key}`", key, hint=f"it has {', '.join(PROJECT_KEYS)}")
        name = self.text(table, "name")
        problem = name_problem(name)
        if problem:
            self.fail(problem, "name", hint=NAME_HINT)
        main = self.text(table, "main", f"src/{name}.esk")
        if PurePosixPath(main).is_absolute() or ".." in PurePosixPath(main).parts:
            self.fail(
                f'main = "{main}" is outside of the project', "main", hint="name a file below the folder of the project"
            )
        return Project(name, self.text(table, "version", "0.0.0"), folder, main, self.dependencies(data, name))

    def text(self, table: dict[str, Any], key: str, otherwise: str | None = None) -> str:
        value = table.get(key, otherwise)
        if value is None:
            self.fail(f"[project] has no `{key}`", "project", hint=f'write {key} = "..."')
        if not isinstance(value, str) or not value:
            self.fail(f"`{key}` is to be a text, but is {value!r}", key, hint=f'write {key} = "..."')
        return value

    def dependencies(self, data: dict[str, Any], own: str) -> tuple[Dependency, ...]:
        table = data.get("dependencies", {})
        if not isinstance(table, dict):
            self.fail("[dependencies] is to be a table", "dependencies")
        return tuple(self.dependency(name, value, own) for name, value in table.items())

    def dependency(self, name: str, value: Any, own: str) -> Dependency:
        hint = f'write {name} = {{ path = "../{name}" }} or {name} = {{ git = "...", rev = "..." }}'
        if (problem := name_problem(name)) is not None:
            self.fail(problem, name, hint=NAME_HINT)
        if name == own:
            self.fail(f"{name} depends on itself", name, hint="its own libraries need not be named")
        kind = next((kind for kind in SOURCES if isinstance(value, dict) and kind in value), None)
        if kind is None or sorted(value) != sorted(SOURCES[kind]):
            self.fail(f"where the dependency {name} comes from is not said as it must be", name, hint=hint)
        if not all(isinstance(part, str) and part for part in value.values()):
            self.fail(f"what is said of the dependency {name} is to be texts", name, hint=hint)
        if any(part.startswith("-") for part in value.values()):
            self.fail(f"what is said of the dependency {name} begins with a hyphen", name, hint=hint)
        return Dependency(name, value.get("path"), value.get("git"), value.get("rev"), self.span(name))

    def span(self, key: str) -> Span:
        """Where a key stands in the text, or its table; the first line where neither is found."""
        found = re.search(rf"^[ \t]*(?:\[[\w.]*)?\"?({re.escape(key)})\b", self.source.text, re.MULTILINE)
        line, column = self.source.position(found.start(1)) if found else (1, 1)
        return Span(self.source.name, line, column, len(key) if found else 1, self.source.line(line))

    def fail(self, message: str, key: str, *, hint: str | None = None) -> NoReturn:
        raise ProjectError(message, span=self.span(key), hint=hint)


def toml(source: Source) -> dict[str, Any]:
    """What a text in TOML says; a mistake is an error with its place."""
    try:
        return tomllib.loads(source.text)
    except tomllib.TOMLDecodeError as error:
        said = str(error)
        found = _WHERE.search(said)
        lines = source.text.split("\n")
        line, column = (int(found[1]), int(found[2])) if found and found[1] else (len(lines), len(lines[-1]) + 1)
        span = Span(source.name, line, column, 1, source.line(line))
        message = _WHERE.sub("", said)
        raise ProjectError(f"{source.name} is no TOML: {message[:1].lower()}{message[1:]}", span=span) from None


def name_problem(name: str) -> str | None:
    """Why a project cannot have a name; None where it can."""
    if not NAME.match(name) or len(name) > 100:
        return f"'{name}' cannot be the name of a project"
    if name in TAKEN:
        return (
            f"'{name}' cannot be the name of a project: libraries of that name come with Eshkol, or with other Schemes"
        )
    return None
