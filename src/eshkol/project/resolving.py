"""The dependencies of a project, and theirs: where they are, whether they are what was accepted, in which order.

Comes in: a project. Goes out: the folders in which an `import` of one of its files looks for libraries. What is not in
`eshkol.lock` is fetched and accepted; what is there must be as it was, or is an error, until `update` accepts it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from eshkol.errors import ProjectError
from eshkol.lang.files import shown
from eshkol.project import MANIFEST
from eshkol.project.fetching import fetched, forget
from eshkol.project.locking import LOCK, Locked, read_lock, write_lock
from eshkol.project.manifest import Dependency, Project, read
from eshkol.project.trees import tree_hash


@dataclass
class _Walk:
    """What is found on the way through the dependencies of the project `root`."""

    root: Project
    known: Mapping[str, Locked]  # what is accepted
    found: dict[str, Locked] = field(default_factory=dict)
    projects: dict[str, Project] = field(default_factory=dict)
    wanted: dict[str, Dependency] = field(default_factory=dict)

    def visit(self, project: Project, chain: tuple[str, ...], fixed: Path | None) -> None:
        """Go through what a project depends on; `fixed` is the folder that it and its paths may not leave."""
        for dependency in project.dependencies:
            name = dependency.name
            if name in chain:
                ring = " → ".join([*chain[chain.index(name) :], name])
                raise ProjectError(f"dependencies go round in a circle: {ring}", span=dependency.span)
            place, locked, inside = self._place(project, dependency, fixed)
            self._is_one(name, dependency, locked)
            if name in self.found:
                continue
            self.found[name], self.wanted[name] = locked, dependency
            other = self.projects[name] = read(place)
            if other.name != name:
                raise ProjectError(
                    f"the project in {shown(place)} is {other.name}, not {name}",
                    span=dependency.span,
                    hint=f"write {other.name} = ... in [dependencies]",
                )
            self.visit(other, (*chain, name), inside)

    def _is_one(self, name: str, dependency: Dependency, locked: Locked) -> None:
        """Two projects may need the same one, but not two of the same name."""
        other = self.found.get(name)
        if other is not None and (other.tree, other.path, other.git) != (locked.tree, locked.path, locked.git):
            raise ProjectError(
                f"two projects are called {name}: {self.wanted[name]} and {dependency}", span=dependency.span
            )

    def _place(self, project: Project, dependency: Dependency, fixed: Path | None) -> tuple[Path, Locked, Path | None]:
        """Where a dependency is, what it is now, and the folder that its own paths may not leave."""
        if dependency.path is not None:
            place = Path(os.path.normpath(project.folder / dependency.path))
            if fixed is not None and not place.is_relative_to(fixed):
                raise ProjectError(f"{dependency} is outside of the repository that asks for it", span=dependency.span)
            self._check_there(place, dependency)
            if fixed is None:
                return place, Locked(tree_hash(place), path=_relative(place, self.root.folder)), None
            return place, Locked(tree_hash(place), path=f"{project.name}:{dependency.path}"), fixed
        assert dependency.git is not None
        assert dependency.rev is not None
        return self._from_git(dependency, dependency.git, dependency.rev)

    def _from_git(self, dependency: Dependency, git: str, rev: str) -> tuple[Path, Locked, Path | None]:
        old = self.known.get(dependency.name)
        again = old is not None and (old.git, old.rev) == (git, rev)
        wish = old.commit if again and old is not None and old.commit else rev
        commit, place = fetched(git, wish, dependency.span)
        self._check_there(place, dependency)
        tree = tree_hash(place)
        if again and old is not None and tree != old.tree:  # what lies in the cache was changed
            forget(git, commit)
            commit, place = fetched(git, wish, dependency.span)
            tree = tree_hash(place)
        return place, Locked(tree, git=git, rev=rev, commit=commit), place

    def _check_there(self, place: Path, dependency: Dependency) -> None:
        if not (place / MANIFEST).is_file():
            what = f"has no {MANIFEST}" if place.is_dir() else "is not there"
            raise ProjectError(f"the dependency {dependency.name}, {dependency}, {what}", span=dependency.span)


def library_folders(project: Project) -> list[Path]:
    """Where the libraries of a project are found: in its own sources, then in those of what it depends on.

    Raises ProjectError where a dependency is not what was accepted.
    """
    if not project.dependencies:
        return [project.source]
    known = read_lock(project.folder)
    walk = _walk(project, known)
    for name, locked in walk.found.items():
        old = known.get(name)
        if old is not None and old != locked:
            raise _changed(project, walk.wanted[name], old, locked)
    if walk.found.keys() != known.keys():
        write_lock(project.folder, walk.found)
    return _folders(project, walk)


def update(project: Project, names: list[str]) -> list[str]:
    """Accept what the dependencies are now, all or these; lines that say what has changed."""
    known = read_lock(project.folder)
    kept = {name: locked for name, locked in known.items() if names and name not in names}
    walk = _walk(project, kept)
    for name in names:
        if name not in walk.found:
            raise ProjectError(f"{project.name} does not depend on {name}", hint=f"see [dependencies] in {MANIFEST}")
    for name, locked in walk.found.items():
        if name in kept and kept[name] != locked:
            raise _changed(project, walk.wanted[name], kept[name], locked)
    write_lock(project.folder, walk.found)
    return [
        f"{name}: {_told(known.get(name), walk.found.get(name))}"
        for name in sorted(walk.found.keys() | known.keys())
        if known.get(name) != walk.found.get(name)
    ]


def _walk(project: Project, known: Mapping[str, Locked]) -> _Walk:
    walk = _Walk(project, known)
    walk.visit(project, (project.name,), None)
    return walk


def _folders(project: Project, walk: _Walk) -> list[Path]:
    return [project.source, *(walk.projects[name].source for name in walk.found)]


def _changed(project: Project, dependency: Dependency, old: Locked, new: Locked) -> ProjectError:
    where = shown(project.folder / LOCK)
    if (old.path, old.git, old.rev) != (new.path, new.git, new.rev):
        what = f"the dependency {dependency.name} comes from elsewhere than {where} says: it is {dependency} now"
    else:
        what = f"the dependency {dependency.name}, {dependency}, is not what {where} accepts: it has changed"
    return ProjectError(
        what, span=dependency.span, hint=f"look at what is new, and accept it with `eshkol update {dependency.name}`"
    )


def _told(old: Locked | None, new: Locked | None) -> str:
    if new is None:
        return "no longer needed"
    said = f"commit {new.commit[:12]}" if new.commit else f"{new.tree[:19]}…"
    return f"accepted, {said}" if old is None else f"accepted anew, {said}"


def _relative(place: Path, folder: Path) -> str:
    return Path(os.path.relpath(place, folder)).as_posix()
