"""Projects: what a new one holds, what eshkol.toml may say, where dependencies come from and when they are refused."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

import pytest

from eshkol.cli import projects as cli_projects
from eshkol.cli.main import main
from eshkol.errors import ProjectError
from eshkol.project import making
from eshkol.project.fetching import FOLDER
from eshkol.project.locking import LOCK, read_lock
from eshkol.project.making import make
from eshkol.project.manifest import find, name_problem, read
from eshkol.project.resolving import library_folders, update
from eshkol.project.trees import tree_hash


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A folder of its own, an empty cache beside it, and a git that nobody has set up."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("ESHKOL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    cli_projects._known.clear()


def project(name: str, dependencies: str = "", library: str = "1") -> Path:
    """A small project: the library (NAME) with a procedure that gives a value."""
    folder = Path(name)
    (folder / "src").mkdir(parents=True, exist_ok=True)
    (folder / "eshkol.toml").write_text(f'[project]\nname = "{name}"\n\n[dependencies]\n{dependencies}\n')
    imports = "".join(f" ({line.split('=')[0].strip()})" for line in dependencies.splitlines())
    (folder / "src" / f"{name}.esk").write_text(
        f"(define-library ({name}) (import (scheme base){imports}) (export {name}-value)\n"
        f"  (begin (define ({name}-value) {library})))\n"
    )
    return folder.absolute()


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def committed(folder: Path) -> str:
    if not (folder / ".git").exists():
        git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "state")
    return git(folder, "rev-parse", "HEAD")


# ---- new projects --------------------------------------------------------------------------------------------------


def test_a_new_project_runs_and_is_tested_and_well_laid_out(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["new", "two-body"]) == 0
    data = tomllib.loads(Path("two-body/eshkol.toml").read_text())
    assert (data["project"]["name"], data["dependencies"]) == ("two-body", {})
    monkeypatch.chdir("two-body/src/two-body")  # from any folder below
    assert capfd.readouterr().out.startswith("made the project two-body in two-body")
    assert main(["run"]) == 0
    assert capfd.readouterr().out == "Hello, world!\n"
    assert main(["run", "../..", "Ada", "--x"]) == 0
    assert capfd.readouterr().out == "Hello, Ada!\nHello, --x!\n"
    assert main(["test"]) == 0
    assert "1 file, 2 tests: 2 passed" in capfd.readouterr().out
    assert main(["fmt", "--check"]) == 0
    assert main(["-e", "(import (two-body greeting))", "-e", '(greeting "x")']) == 0
    assert '"Hello, x!"' in capfd.readouterr().out


@pytest.mark.parametrize(
    "name", ["", "Orbits", "1st", "a b", "a/b", "..", "-x", "x-", "é", "a\n", "eshkol", "srfi", "x" * 101]
)
def test_names_that_no_project_can_have(name: str) -> None:
    assert name_problem(name) is not None
    with pytest.raises(ProjectError, match="cannot be the name"):
        make(name, Path())
    assert not list(Path().iterdir())


def test_nothing_is_made_over_what_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("there").mkdir()
    Path("link").symlink_to("nowhere")
    for name in ("there", "link"):
        with pytest.raises(ProjectError, match="already"):
            make(name, Path())
    with pytest.raises(ProjectError, match="no folder"):
        make("new", Path("nowhere"))
    monkeypatch.setattr(making.os, "rename", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(ProjectError, match=r"no space left on device; nothing was made"):
        make("new", Path())
    assert sorted(path.name for path in Path().iterdir()) == ["link", "there"]


# ---- eshkol.toml ---------------------------------------------------------------------------------------------------

BAD = {
    "": (1, "no table [project]"),
    "[project]\n": (1, "has no `name`"),
    '[project]\nname = "A"\n': (2, "cannot be the name"),
    "[project]\nname = 5\n": (2, "to be a text"),
    '[project]\nname = "a"\nnmae = "b"\n': (3, "no key `nmae`"),
    '[project]\nname = "a"\n[deps]\n': (3, "no table [deps]"),
    '[project]\nname = "a"\nname = "b"\n': (3, "cannot overwrite"),
    '[project]\nname = "a\n': (2, "no TOML"),
    '[project]\nname = "a"\nversion = ': (3, "no TOML"),
    '[project]\nname = "a"\nmain = "../b.esk"\n': (3, "outside"),
    '[project]\nname = "a"\nmain = "/b.esk"\n': (3, "outside"),
    '[project]\nname = "a"\n[dependencies]\na = { path = "x" }\n': (4, "depends on itself"),
    '[project]\nname = "a"\n[dependencies]\nb = "1.0"\n': (4, "comes from"),
    '[project]\nname = "a"\n[dependencies]\nb = { git = "x" }\n': (4, "comes from"),
    '[project]\nname = "a"\n[dependencies]\nb = { path = "x", rev = "y" }\n': (4, "comes from"),
    '[project]\nname = "a"\n[dependencies]\nb = { git = "--upload-pack=x", rev = "y" }\n': (4, "hyphen"),
    '[project]\nname = "a"\n[dependencies]\nB = { path = "x" }\n': (4, "cannot be the name"),
    '[project]\nname = "a"\n[dependencies]\nb = { path = 5 }\n': (4, "texts"),
}


@pytest.mark.parametrize("text", BAD, ids=repr)
def test_mistakes_in_the_file_are_told_with_their_line(text: str) -> None:
    Path("eshkol.toml").write_text(text)
    with pytest.raises(ProjectError) as found:
        read(Path())
    line, part = BAD[text]
    assert found.value.span is not None
    assert (found.value.span.line, part in found.value.message) == (line, True), str(found.value)


def test_the_project_of_a_folder() -> None:
    folder = project("one")
    (folder / "deep" / "er").mkdir(parents=True)
    found = find(folder / "deep" / "er")
    assert found is not None
    assert (found.name, found.version, found.folder) == ("one", "0.0.0", folder)
    assert found.main == folder / "src" / "one.esk"
    found.main.unlink()
    with pytest.raises(ProjectError, match="no program to run"):
        _ = found.main
    assert find(Path()) is None


# ---- dependencies --------------------------------------------------------------------------------------------------


def test_a_dependency_in_a_folder_is_accepted_once_and_then_held_to_it(capfd: pytest.CaptureFixture[str]) -> None:
    area = project("area", library="20")
    project("geometry", 'area = { path = "../area" }', "(+ 1 (area-value))")
    app = project("app", 'geometry = { path = "../geometry" }', "(* 2 (geometry-value))")
    asked = ["-e", "(import (app))", "-e", "(app-value)"]
    os.chdir(app / "src")
    assert main(asked) == 0
    assert capfd.readouterr().out.split() == ["42"]
    assert {name: row.path for name, row in read_lock(app).items()} == {"area": "../area", "geometry": "../geometry"}
    before = (app / LOCK).read_bytes()

    (area / "src" / "area.esk").write_text((area / "src" / "area.esk").read_text().replace("20", "30"))
    cli_projects._known.clear()
    assert main(asked) == 1
    said = capfd.readouterr().err
    assert "the dependency area, the folder ../area, is not what" in said
    assert "eshkol update area" in said
    assert (app / LOCK).read_bytes() == before
    assert main(["update", "area"]) == 0
    assert capfd.readouterr().out.startswith("area: accepted anew")
    cli_projects._known.clear()
    assert main(asked) == 0
    assert capfd.readouterr().out.split() == ["62"]
    assert main(["update", "nothing"]) == 1
    assert "does not depend on nothing" in capfd.readouterr().err


def test_what_changes_the_hash_of_a_project() -> None:
    folder = project("one")
    first = tree_hash(folder)
    (folder / "tests").mkdir()
    (folder / "tests" / "t.esk").write_text("1")
    (folder / "src" / ".hidden").write_text("1")
    assert tree_hash(folder) == first
    seen = {first}
    for change in (
        lambda: (folder / "src" / "b.esk").write_text("x"),
        lambda: (folder / "src" / "b.esk").write_text("y"),
        lambda: (folder / "src" / "b.esk").rename(folder / "src" / "c.esk"),
        lambda: (folder / "eshkol.toml").write_text('[project]\nname = "one"\nversion = "2"\n'),
        lambda: (folder / "src" / "d").write_bytes(b"\xff"),
    ):
        change()
        seen.add(tree_hash(folder))
    assert len(seen) == 6
    (folder / "src" / "link.esk").symlink_to("b.esk")
    with pytest.raises(ProjectError, match="is a link"):
        tree_hash(folder)


def test_circles_wrong_names_and_namesakes_are_refused() -> None:
    a = project("a", 'b = { path = "../b" }')
    project("b", 'c = { path = "../c" }')
    project("c", 'a = { path = "../a" }')
    with pytest.raises(ProjectError, match="circle: a → b → c → a"):
        library_folders(read(a))
    project("c", 'b = { path = "../b" }')
    with pytest.raises(ProjectError, match="circle: b → c → b"):
        library_folders(read(a))
    project("c")
    other = project("other", 'd = { path = "../c" }')
    with pytest.raises(ProjectError, match="is c, not d"):
        library_folders(read(other))
    os.chdir("b")
    project("c", library="5")
    os.chdir("..")
    twice = project("twice", 'b = { path = "../b" }\nc = { path = "../b/c" }')
    with pytest.raises(ProjectError, match="two projects are called c"):
        library_folders(read(twice))
    lost = project("lost", 'gone = { path = "../gone" }')
    with pytest.raises(ProjectError, match="is not there"):
        library_folders(read(lost))
    assert not any((folder / LOCK).exists() for folder in (a, other, twice, lost))


def test_a_dependency_from_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    there = project("geometry", library="7")
    (there / ".git-hook").write_text("")
    first = committed(there)
    git(there, "tag", "v1")
    (there / "src" / "evil.esk").symlink_to("/etc/passwd")
    url = f"file://{there}"
    app = project("app", f'geometry = {{ git = "{url}", rev = "v1" }}')
    folders = library_folders(read(app))
    assert folders[1].is_relative_to(tmp_path / "cache" / FOLDER)
    assert (folders[1] / "geometry.esk").read_text() == (there / "src" / "geometry.esk").read_text()
    assert read_lock(app)["geometry"].commit == first

    # the tag moves: what was accepted stays, until it is accepted anew; links stay out
    (there / "src" / "geometry.esk").write_text(";; new\n")
    second = committed(there)
    git(there, "tag", "-f", "v1")
    assert library_folders(read(app)) == folders
    assert update(read(app), []) == [f"geometry: accepted anew, commit {second[:12]}"]
    (place,) = library_folders(read(app))[1:]
    assert (place / "geometry.esk").read_text() == ";; new\n"
    assert not (place / "evil.esk").exists()

    # without the repository the cache serves; what was changed in the cache is fetched again
    (place / "geometry.esk").write_text(";; changed\n")
    assert library_folders(read(app))[1] == place
    assert (place / "geometry.esk").read_text() == ";; new\n"
    there.rename(tmp_path / "gone")
    assert library_folders(read(app))[1] == place
    (place / "geometry.esk").write_text(";; changed\n")
    with pytest.raises(ProjectError, match="cannot be fetched"):
        library_folders(read(app))

    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ProjectError, match="no command git"):
        library_folders(read(app))


def test_git_says_what_is_wrong() -> None:
    there = project("geometry")
    committed(there)
    app = project("app", f'geometry = {{ git = "file://{there}", rev = "v9" }}')
    with pytest.raises(ProjectError, match="has no revision v9") as found:
        library_folders(read(app))
    assert found.value.span is not None
    app = project("app", f'geometry = {{ git = "file://{there}/nowhere", rev = "v9" }}')
    with pytest.raises(ProjectError, match="cannot be fetched"):
        library_folders(read(app))
    app = project("app", 'geometry = { git = "ext::sh -c touch% ran", rev = "main" }')
    with pytest.raises(ProjectError, match="cannot be fetched"):
        library_folders(read(app))
    assert not Path("ran").exists()
    leaving = project("geometry", 'area = { path = "../area" }')
    project("area")
    committed(leaving)
    app = project("app", f'geometry = {{ git = "file://{there}", rev = "main" }}')
    with pytest.raises(ProjectError, match="outside of the repository"):
        library_folders(read(app))


def test_a_lock_that_was_damaged_or_cannot_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    project("b")
    app = project("a", 'b = { path = "../b" }')
    for text, said in (("[b\n", "no TOML"), ("[b]\n", "does not say"), ("[b]\ntree = 5\n", "does not say")):
        (app / LOCK).write_text(text)
        with pytest.raises(ProjectError, match=said):
            library_folders(read(app))
    (app / LOCK).unlink()
    monkeypatch.setattr("eshkol.project.locking.os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space")))
    with pytest.raises(ProjectError, match="cannot write"):
        library_folders(read(app))
    assert sorted(path.name for path in app.iterdir()) == ["eshkol.toml", "src"]
