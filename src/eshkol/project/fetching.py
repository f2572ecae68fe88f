"""Projects from git: a revision of a repository becomes a folder in the cache.

Comes in: an address and a revision. Goes out: the commit that it is, and a folder with its files. The git command
brings the repository; its files are taken out of git's own archive of the commit, so that nothing of the repository
runs: no hooks, no filters, no submodules. What lies in the cache is found again by address and commit.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from contextlib import suppress
from pathlib import Path, PurePosixPath

from blake3 import blake3

from eshkol.errors import ProjectError, Span
from eshkol.support.store import default_directory

FOLDER = "dependencies"
LIMIT = 600  # seconds for git
MOST_BYTES = 1 << 28  # of the files of a project
COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")

# Whatever a user's git is set to do by itself, it does not do here; what is asked for at a terminal is an error.
_QUIET = {"GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1", "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
_SETTINGS = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "advice.detachedHead=false")


def fetched(git: str, rev: str, span: Span | None) -> tuple[str, Path]:
    """The commit that a revision is, and the folder with its files; a commit that is in the cache is not fetched."""
    base = default_directory() / FOLDER / blake3(git.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    if COMMIT.match(rev) and (base / rev).is_dir():
        return rev, base / rev
    try:
        base.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetching-", dir=base) as name:
            work = Path(name)
            _git(["clone", "--quiet", "--bare", "--", git, str(work / "repository")], git, span)
            inside = ["--git-dir", str(work / "repository")]
            try:
                said = _git(
                    [*inside, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{rev}^{{commit}}"], git, span
                )
            except ProjectError:
                raise ProjectError(
                    f"{git} has no revision {rev}", span=span, hint="name a commit, a tag or a branch"
                ) from None
            commit = said.decode().strip()
            place = base / commit
            if not place.is_dir():
                _unpack(_git([*inside, "archive", "--format=tar", commit], git, span), work / "files", git, span)
                with suppress(FileExistsError, OSError):  # another process was quicker
                    os.rename(work / "files", place)
            return commit, place
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise ProjectError(f"{git} cannot be kept in {base}: {reason}", span=span) from None


def forget(git: str, commit: str) -> None:
    """Take the files of a commit out of the cache, where they are not what they were."""
    base = default_directory() / FOLDER / blake3(git.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    shutil.rmtree(base / commit, ignore_errors=True)


def _git(words: list[str], git: str, span: Span | None) -> bytes:
    try:
        done = subprocess.run(
            ["git", *_SETTINGS, *words], env={**_without_git(), **_QUIET}, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=LIMIT, check=False,
        )  # fmt: skip
    except FileNotFoundError:
        raise ProjectError(f"{git} cannot be fetched: there is no command git", span=span, hint="install git") from None
    except subprocess.TimeoutExpired:
        raise ProjectError(f"{git} cannot be fetched: git took more than {LIMIT} seconds", span=span) from None
    if done.returncode:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        said = lines[-1] if lines else f"git ended with {done.returncode}"
        raise ProjectError(f"{git} cannot be fetched: {said.removeprefix('fatal: ')}", span=span)
    return done.stdout


def _without_git() -> dict[str, str]:
    """The environment without what would point git at another repository, as inside of a hook."""
    return {
        key: value for key, value in os.environ.items() if key not in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE")
    }


def _unpack(archive: bytes, folder: Path, git: str, span: Span | None) -> None:
    """Write the plain files of an archive into a new folder; links and whatever else may be in it stay out."""
    folder.mkdir()
    size = 0
    with tarfile.open(fileobj=io.BytesIO(archive)) as members:
        for member in members:
            parts = PurePosixPath(member.name).parts
            if not member.isfile() or not parts or member.name.startswith("/") or ".." in parts:
                continue
            size += member.size
            if size > MOST_BYTES:
                raise ProjectError(f"{git} holds more than {MOST_BYTES >> 20} MiB of files", span=span)
            file = members.extractfile(member)
            assert file is not None
            path = folder.joinpath(*parts)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(file.read())
