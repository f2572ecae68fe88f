"""Real disks: one that is full, a folder that may not be written to, and pages of a large file that nobody reads."""

from __future__ import annotations

import ctypes
import os
import resource
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import CheckpointError

NOBODY = 65534
CLONE_NEWNS, CLONE_NEWUSER, MS_REC, MS_PRIVATE = 0x20000, 0x10000000, 0x4000, 0x40000
LARGE = {"a": np.arange(400_000.0)}  # 3 MB
C = ctypes.CDLL(None, use_errno=True)


def in_child(work: Callable[[], str]) -> str:
    """What a function gives in a process of its own, whose rights and limits it may change."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(out)
            try:
                said = work()
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            os.write(into, said.encode()[:60_000])
        finally:
            os._exit(0)
    os.close(into)
    with os.fdopen(out, "rb") as pipe:
        found = pipe.read().decode()
    os.waitpid(child, 0)
    return found


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that others may enter, with a checkpoint in it."""
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    ek.io.save_tensors(path / "a.eskpt", {"a": np.ones(3)})
    yield path
    path.chmod(0o755)
    shutil.rmtree(path)


def assert_nothing_lost(folder: Path) -> None:
    assert [path.name for path in folder.iterdir()] == ["a.eskpt"]
    assert ek.io.load_tensors(folder / "a.eskpt")["a"].tolist() == [1, 1, 1]


def saved(path: Path) -> str:
    try:
        ek.io.save_tensors(path, LARGE)
    except CheckpointError as error:
        return str(error)
    return "saved"


def test_a_file_that_may_not_grow(folder: Path) -> None:
    def work() -> str:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
        return saved(folder / "a.eskpt")

    said = in_child(work)
    assert "cannot write" in said
    assert "file too large; the earlier file is as it was" in said
    assert "hint: free some space" in said
    assert_nothing_lost(folder)


def test_a_disk_that_is_full(folder: Path) -> None:
    small = folder.with_name(folder.name + "-small")
    small.mkdir()

    def work() -> str:
        """A disk of 1 MB in a name space of its own: what was written, what remains of it."""
        if C.unshare(CLONE_NEWNS) and C.unshare(CLONE_NEWNS | CLONE_NEWUSER):
            return "not allowed"
        C.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
        if C.mount(b"tmpfs", str(small).encode(), b"tmpfs", 0, b"size=1m"):
            return "not allowed"
        ek.io.save_tensors(small / "a.eskpt", {"a": np.ones(3)})
        said = [saved(small / "a.eskpt"), saved(small / "b.eskpt")]
        assert_nothing_lost(small)
        return "\n".join(said)

    try:
        said = in_child(work)
    finally:
        small.rmdir()
    if said == "not allowed":
        pytest.skip("this process may not mount a disk")
    assert said.count("no space left on device") == 2, said
    assert said.count("the earlier file is as it was") == 1
    assert said.count("hint: free some space") == 2


def test_a_folder_that_may_not_be_written_to(folder: Path) -> None:
    folder.chmod(0o555)

    def work() -> str:
        if os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        return saved(folder / "a.eskpt") + saved(folder / "new.eskpt")

    said = in_child(work)
    assert said.count("permission denied") == 2, said
    assert said.count("hint: give a path in a folder that is there and writable") == 2
    assert_nothing_lost(folder)


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    """Root may put a file in the place of /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(CheckpointError, match="it is no file, and would be replaced by one"):
        ek.io.save_tensors(tmp_path / "pipe", LARGE)
    assert (tmp_path / "pipe").is_fifo()
    assert len(list(tmp_path.iterdir())) == 1


# --- what is read -----------------------------------------------------------------------------------------------------


def mapped_bytes(path: Path) -> int:
    """How many bytes of a mapped file belong to this process now."""
    found = 0
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ", 1)[0]:
            inside = line.endswith(str(path))
        elif inside and line.startswith("Rss:"):
            found += 1024 * int(line.split()[1])
    return found


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="this system does not tell")
def test_a_mapped_file_is_in_memory_as_far_as_it_was_read(tmp_path: Path) -> None:
    path, part = tmp_path / "large.eskpt", 1 << 20
    ek.io.save_tensors(path, {f"layer.{k}": np.full(part, k, np.uint8) for k in range(64)})
    with ek.io.load_checkpoint(path, mmap=True) as file:
        ahead = 1 << 18  # what the system maps around a page that is read
        assert mapped_bytes(path) <= 2 * ahead
        tensor = file["layer.40"]
        assert tensor.numpy()[-1] == 40
        assert part <= mapped_bytes(path) <= part + 4 * ahead
        file.load("layer.1*")  # eleven of them
        assert mapped_bytes(path) <= 12 * part + 16 * ahead
