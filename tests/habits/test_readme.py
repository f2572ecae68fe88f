"""The README's blocks, pasted as they stand: the program of Scheme and that of Python, as files; and its figures."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eshkol.cli.main import main

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
MOST_LINES = 130


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_program_of_scheme(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (program,), (shown,) = blocks("scheme"), blocks("text")
    file = tmp_path / "fall.esk"
    file.write_text(program, encoding="utf-8")
    assert main([str(file)]) == 0
    assert capfd.readouterr().out == shown


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_program_of_python(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks("python")
    exec(compile(program, str(folder / "digits.py"), "exec"), {"__name__": "__main__"})
    said = re.search(r"taken for a \d\n(\d+)% of the digits", capfd.readouterr().out)
    assert said
    assert int(said[1]) >= 93
    assert not list(folder.iterdir())  # it leaves nothing behind


def test_its_commands_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = re.findall(r"^\$ make ([a-z-]+)", "\n".join(blocks("console")), re.MULTILINE)
    assert commands == ["run", "test"]
    for command in commands:
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)
    extras = re.search(r"`pip install '\.\[(\w+)\]'`[^.]*\.", README)
    assert extras
    package = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for extra in (extras[1], *re.findall(r"`(\w+)`", extras[0])):
        assert re.search(rf"^{extra} = \[", package, re.MULTILINE), extra


def test_its_figures_are_those_of_the_page() -> None:
    """Nothing is claimed here that docs/performance.md does not measure."""
    page = (ROOT / "docs" / "performance.md").read_text(encoding="utf-8")
    _, _, fast = README.partition("## How fast it is")
    figures = re.findall(r"\d+\.\d+", fast.partition("## ")[0])
    assert figures
    missing = [figure for figure in figures if not re.search(rf"(?<![\d.]){re.escape(figure)}(?!\d)", page)]
    assert not missing


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= MOST_LINES
