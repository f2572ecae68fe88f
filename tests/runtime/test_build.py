"""Which compiler builds the runtime: `$CC`, one on the PATH, or the `ziglang` wheel, asked for only then."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from build_support import compiler  # noqa: E402

from eshkol.runtime.library import PATH  # noqa: E402


@pytest.fixture
def only(monkeypatch, tmp_path):
    """A PATH on which there are only the commands named."""

    def make(*names: str) -> Path:
        for name in names:
            (tmp_path / name).write_text("#!/bin/sh\nexit 3\n")
            (tmp_path / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))
        return tmp_path

    monkeypatch.delenv("CC", raising=False)
    return make


@pytest.mark.parametrize(
    ("there", "chosen"), [(("cc", "gcc", "clang"), "cc"), (("clang", "gcc"), "gcc"), (("clang",), "clang")]
)
def test_a_compiler_on_the_path_is_used(only, there, chosen):
    folder = only(*there)
    assert compiler.compiler() == [str(folder / chosen)]
    assert compiler.requirements() == []


def test_cc_goes_first_and_may_have_arguments(only, monkeypatch):
    only("gcc", "mycc")
    monkeypatch.setenv("CC", "mycc -m64")
    assert compiler.compiler() == ["mycc", "-m64"]
    assert compiler.requirements() == []


def test_a_cc_that_is_not_there_is_an_error(only, monkeypatch):
    only("gcc")
    monkeypatch.setenv("CC", "nonesuch")
    with pytest.raises(SystemExit, match="nonesuch"):
        compiler.compiler()


def test_without_a_compiler_the_build_asks_for_ziglang(only, monkeypatch):
    only()
    assert compiler.requirements() == [compiler.FALLBACK_REQUIREMENT]
    monkeypatch.setattr(compiler, "find_spec", lambda name: object())
    assert compiler.compiler()[:4] == [sys.executable, "-m", "ziglang", "cc"]
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    with pytest.raises(SystemExit, match="no C compiler"):
        compiler.compiler()


def test_a_failing_compiler_leaves_nothing(only, tmp_path):
    only("cc")
    with pytest.raises(SystemExit, match="status 3"):
        compiler.build(tmp_path / "out" / "_native.so")
    assert list((tmp_path / "out").iterdir()) == []


def test_every_source_is_listed():
    listed = {ROOT / path for path in (*compiler.SOURCES, *compiler.HEADERS, *compiler.CARRIED)}
    assert listed == {path for path in (ROOT / compiler.NATIVE).rglob("*") if path.is_file()}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="ELF is Linux's")
def test_the_library_takes_no_static_memory_of_threads():
    """Of that a process has some hundred bytes for all libraries it loads later: PyTorch's need them."""
    image = PATH.read_bytes()
    assert image[:6] == b"\x7fELF\x02\x01"
    headers, size, count = *struct.unpack_from("<Q", image, 32), *struct.unpack_from("<HH", image, 54)
    segments = [struct.unpack_from("<IIQQQQ", image, headers + k * size) for k in range(count)]
    ((_, _, offset, _, _, length),) = [segment for segment in segments if segment[0] == 2]  # dynamic
    entries = dict(struct.unpack_from("<QQ", image, at) for at in range(offset, offset + length, 16))
    assert 5 in entries  # the names
    assert not entries.get(30, 0) & 0x10  # flags: STATIC_TLS
