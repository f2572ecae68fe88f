"""Code that was compiled when Eshkol was set up: found and used, and not where anything is not as it must be."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from eshkol.cli import prepare
from eshkol.cli.main import main
from eshkol.errors import EshkolError
from eshkol.support import prepared
from eshkol.support.keys import cache_key
from eshkol.support.prepared import HEADER, ROW, Prepared
from eshkol.support.store import ProgramCache

PARTS = [{"program": f"p{k}", "target": "here"} for k in range(40)]
ENTRIES = {cache_key(parts): f"code of {k}".encode() * k for k, parts in enumerate(PARTS)}
STAMP = bytes(range(32))
posix_only = pytest.mark.skipif(os.name != "posix", reason="about POSIX files")


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    path = tmp_path / "share" / "prepared.eskr"
    prepared.write(path, ENTRIES.items(), STAMP)
    monkeypatch.setenv("ESHKOL_PREPARED", str(path))
    return path


def never() -> bytes:
    raise AssertionError("it is built")


def test_what_is_prepared_is_found_and_not_copied(file, tmp_path):
    cache = ProgramCache(tmp_path / "cache")
    for parts, payload in zip(PARTS, ENTRIES.values(), strict=True):
        assert cache.get_or_build(parts, never) == payload
    stats = cache.stats()
    assert (stats.prepared_hits, stats.disk_entries, stats.misses, stats.hits) == (40, 0, 0, 40)
    assert (Prepared(str(file)).stamp, Prepared(str(file)).count) == (STAMP, 40)


def test_the_users_own_cache_comes_first(file, tmp_path):
    ProgramCache(tmp_path / "cache").put(cache_key(PARTS[3]), b"of the user")
    assert ProgramCache(tmp_path / "cache").get_or_build(PARTS[3], never) == b"of the user"


def test_another_key_is_another_thing(file, tmp_path):
    cache = ProgramCache(tmp_path / "cache")
    assert cache.get_or_build({**PARTS[3], "target": "elsewhere"}, lambda: b"built") == b"built"
    assert (cache.stats().prepared_hits, cache.stats().disk_entries) == (0, 1)


def test_the_same_entries_are_the_same_file(file, tmp_path):
    again = tmp_path / "again"
    prepared.write(again, reversed(ENTRIES.items()), STAMP)
    assert again.read_bytes() == file.read_bytes()


def test_no_byte_can_be_changed_unnoticed(file, tmp_path, monkeypatch, capfd):
    """Whatever is damaged, what is found is what was written, or it is built anew and kept."""
    whole = file.read_bytes()
    for at in range(0, len(whole), 797):
        other = tmp_path / f"damaged{at}"
        other.write_bytes(whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :])
        monkeypatch.setenv("ESHKOL_PREPARED", str(other))
        cache = ProgramCache(tmp_path / f"cache{at}", durable=False)
        for parts, payload in zip(PARTS, ENTRIES.values(), strict=True):
            assert cache.get_or_build(parts, lambda payload=payload: payload) == payload
    body = HEADER.size + len(ENTRIES) * ROW.size
    other = tmp_path / "zeros"
    other.write_bytes(whole[:body] + bytes(len(whole) - body))
    monkeypatch.setenv("ESHKOL_PREPARED", str(other))
    monkeypatch.setenv("ESHKOL_EXPLAIN", "1")
    cache = ProgramCache(tmp_path / "cache")
    assert cache.get_or_build(PARTS[5], lambda: b"anew", label="it") == b"anew"
    assert cache.stats().corrupt == 1
    assert (
        "building 'it': what was prepared of it is corrupt (the payload does not have its hash)"
        in capfd.readouterr()[1]
    )
    assert ProgramCache(tmp_path / "cache").get_or_build(PARTS[5], never) == b"anew"


@pytest.mark.parametrize("length", [0, 10, HEADER.size, HEADER.size + 100, -1])
def test_a_file_cut_short(file, tmp_path, length):
    whole = file.read_bytes()
    file.write_bytes(whole[:length])
    cache = ProgramCache(tmp_path / "cache")
    last = max(ENTRIES)  # its payload is at the end
    assert cache.get(last) is None
    assert cache.stats().prepared_hits == 0


@posix_only
def test_only_places_that_others_cannot_write_to_are_trusted(file, tmp_path):
    def found() -> bool:
        prepared._opened.clear()
        return ProgramCache(tmp_path / "cache").get(cache_key(PARTS[1])) is not None

    assert found()
    file.chmod(0o666)
    assert not found()
    assert prepared.why_not(file) == "everyone may write to it"
    file.chmod(0o644)
    file.parent.chmod(0o777)
    assert not found()
    assert prepared.why_not(file) == "everyone may write to its folder"
    file.parent.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(file, 12345, -1)
        assert not found()
        assert prepared.why_not(file) == "it belongs to another user"
        os.chown(file, 0, -1)
    link = tmp_path / "link"
    link.symlink_to(file)
    assert prepared.why_not(link) == "it is no plain file"
    assert found()


@posix_only
def test_where_nothing_can_be_written(file, tmp_path):
    file.chmod(0o444)
    file.parent.chmod(0o555)
    try:
        assert ProgramCache(tmp_path / "cache").get_or_build(PARTS[1], never) == ENTRIES[cache_key(PARTS[1])]
    finally:
        file.parent.chmod(0o755)


def test_another_file_in_its_place_is_not_mixed_up_with_it(file, tmp_path):
    cache = ProgramCache(tmp_path / "cache")
    assert cache.get(cache_key(PARTS[1])) is not None
    prepared.write(file, [(cache_key(PARTS[2]), b"other")], STAMP)
    assert cache.get(cache_key(PARTS[2])) is None, "the index that is known is of the other"
    file.unlink()
    assert cache.get(cache_key(PARTS[3])) is None


def test_processes_that_write_at_once_leave_a_whole_file(file):
    code = (
        "import sys; from pathlib import Path; from eshkol.support import prepared\n"
        "entries = [(f'{k:064x}', bytes(9999)) for k in range(50)]\n"
        "for _ in range(20): prepared.write(Path(sys.argv[1]), entries, bytes(32))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, str(file)]) for _ in range(2)]
    while any(writer.poll() is None for writer in writers):
        found = Prepared(str(file))
        assert found.read(f"{7:064x}") in (None, bytes(9999))
    assert [writer.returncode for writer in writers] == [0, 0]
    assert Prepared(str(file)).count == 50
    assert [path.name for path in file.parent.iterdir()] == [file.name]
    assert stat.S_IMODE(file.stat().st_mode) == 0o644 or os.name != "posix"


def explained(words: tuple[str, ...], text: str, folder: Path, file: Path) -> subprocess.CompletedProcess[str]:
    """A process with an empty cache that says what it has compiled."""
    environment = {
        **os.environ, "ESHKOL_PREPARED": str(file), "ESHKOL_CACHE_DIR": str(folder / "cache"), "ESHKOL_EXPLAIN": "1",
    }  # fmt: skip
    command = [sys.executable, *words]
    return subprocess.run(command, input=text, env=environment, capture_output=True, text=True, check=True)


def test_prepare(tmp_path, monkeypatch, capfd):
    """The command itself, for little: what a program compiles is in the file, and the next one compiles nothing."""
    text = "(import (scheme write))\n(display 31)\n"
    monkeypatch.setattr(prepare, "PROGRAMS", (prepare.Program("a program", prepare.RUN, text),))
    monkeypatch.setattr(prepare, "libraries", lambda: ["(scheme write)"])
    monkeypatch.setattr(prepare, "compile_modules", lambda: None)
    file = tmp_path / "share" / "prepared.eskr"
    assert main(["prepare", "--into", str(file)]) == 0
    assert "  a program" in capfd.readouterr()[1]
    done = explained(prepare.RUN, text, tmp_path, file)
    assert (done.stdout, done.stderr) == ("31", "")
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv("ESHKOL_PREPARED", str(file))
    assert main(["doctor", "--json"]) == 0
    report = json.loads(capfd.readouterr()[0])["prepared"]
    assert report == {
        "file": str(file), "entries": Prepared(str(file)).count, "bytes": file.stat().st_size, "current": True,
        "problem": None,
    }  # fmt: skip
    broken = prepare.Program("it", prepare.RUN, "(import (nothing))")
    monkeypatch.setattr(prepare, "PROGRAMS", (broken,))
    before = file.read_bytes()
    assert main(["prepare", "--into", str(file)]) == 1
    assert "error: it could not be prepared" in capfd.readouterr()[1]
    assert file.read_bytes() == before


def test_doctor_says_that_nothing_is_prepared(file, monkeypatch, capfd):
    assert main(["doctor"]) == 0
    assert "of other sources or another machine" in " ".join(capfd.readouterr()[0].replace("│", " ").split())
    file.write_bytes(b"rubbish")
    prepared._opened.clear()
    assert prepare.examine()["problem"] == f"{file}: it is cut short"
    monkeypatch.setenv("ESHKOL_PREPARED", "0")
    assert prepare.examine()["problem"] == "ESHKOL_PREPARED says so"


def test_nowhere_to_write(tmp_path, monkeypatch):
    monkeypatch.setenv("ESHKOL_PREPARED", "0")
    with pytest.raises(EshkolError, match="no folder to write to"):
        prepare._writable()


def test_set_up_leaves_nothing_to_compile(tmp_path):
    """After `make .venv/.installed` with these sources: the first derivative compiles nothing of Eshkol's."""
    found = prepare.examine()
    if not found["current"]:
        pytest.skip("nothing is prepared by these sources: `eshkol prepare`")
    words = (*prepare.EVALUATE, "(gradient (lambda (x) (* x x)) 3.0)")
    done = explained(words, "", tmp_path, Path(found["file"]))
    assert (done.stdout, done.stderr) == ("6.0\n", "")
