"""The examples of learning, in both languages: each runs, ends well, and says what it should; each has its page.

`make test` runs each for a moment inside the tests' own process; `make test-all` also runs each as a user would, a
program that trains until it has learned what it is about.
"""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import eshkol as ek
from eshkol.cli.main import main

ROOT = Path(__file__).parents[1]
FOLDER, PAGES = ROOT / "examples", ROOT / "docs" / "examples"
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Example:
    """An example, and what it must say when it has trained: after `count` times, as its first argument says, both
    languages; and after a `moment`, in which it has not learned much."""

    name: str
    count: str
    scheme: str
    python: str
    moment: str
    begun: str
    folder: bool = False  # the second argument says where it puts files


LOSSES = r"step 1: loss (\d\.\d+)\nstep \d+: loss (\d\.\d+)\n"  # the first, and a later one
SORTED = r"(\(?\d \d.*→.*\d \d.*\n){4}\d+ of 256 new lists are sorted"
EXAMPLES = {
    e.name: e
    for e in (
        Example(
            "gradient", "", r"\(0\.0 10\.0\)\n4/3\n\(2\.0 4\.0 6\.0\)", r"\[0\.0, 10\.0\]\n\[2\.0, 4\.0, 6\.0\]",
            "", r"2\.0,? 4\.0,? 6\.0",
        ),
        Example(
            "line", "200", r"y = 2\.9\d+ x \+ 0\.4\d+", r"y = 2\.98 x \+ 0\.50",
            "40", LOSSES + r"y = [23]\.\d+ x \+ 0\.[45]",
        ),
        Example("xor", "300", *2 * [r"is 0\n.*is 1\n.*is 1\n.*is 0"], "60", r"0 xor 0 is \d\n.*\n.*\n1 xor 1 is \d\n$"),
        Example(
            "spirals", "100", r"\d+ of 400 points", r"(39\d|400) of 400 points", "20", r"(2\d|3\d|40)\d of 400 points",
        ),
        Example("waves", "200", *2 * [r"step 200: loss (0\.000|\d\.\d+e-0?5)"], "20", LOSSES),
        Example("iris", "40", *2 * [r"(2[89]|30) of 30 right"], "10", r"(1[5-9]|2\d|30) of 30 right"),
        Example("sorting", "400", *2 * [r"2[0-5]\d of 256"], "10", r"step 10: loss [12]\.\d+\n" + SORTED),
        Example("digits", "5", *2 * [r"3[456]\d of 360 digits"], "1", r"(2[5-9]|3[0-6])\d of 360 digits", folder=True),
        Example("autoencoder", "20", *2 * [r"mean square error 0\.0[12]"], "2", r"mean square error 0\.0[5-9]"),
        Example("dream", "6", *2 * [r"(9|10) of 10 are"], "2", r"([7-9]|10) of 10 are"),
        Example("resume", "4", *2 * ["the same to the last bit"], "2", "the same to the last bit", folder=True),
        Example(
            "gpt", "30", r"step 30/30: loss [23]\.\d.*\nCORIOLANUS:", r"loss on text that it has not read: 2\.[5-9]",
            "3", r"step 3/3: loss [345]\.\d+\n(loss on text that it has not read: [345]\.\d+\n)?CORIOLANUS:\n",
        ),
    )
}  # fmt: skip
BOTH = pytest.mark.parametrize("language", ["esk", "py"])
EACH = pytest.mark.parametrize("name", EXAMPLES)


def words_of(example: Example, count: str, language: str, folder: Path) -> list[str]:
    words = [*filter(None, [count]), *([str(folder)] if example.folder else [])]
    return [*words, str(folder / "spirals.png")] if (example.name, language) == ("spirals", "esk") else words


# `make test` runs each example in one language, by turns.
MOMENTS = [
    pytest.param(name, language, marks=[] if (k + (language == "py")) % 2 else [pytest.mark.slow])
    for k, name in enumerate(EXAMPLES) for language in ("esk", "py")
]  # fmt: skip


@pytest.mark.parametrize(("name", "language"), MOMENTS)
def test_it_runs_for_a_moment(name, language, tmp_path, monkeypatch, capfd):
    example, file = EXAMPLES[name], str(FOLDER / f"{name}.{language}")
    words = words_of(example, example.moment, language, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    if language == "esk":
        assert main(["run", file, *words]) == 0
    else:
        monkeypatch.setattr(sys, "argv", [file, *words])
        code = 0
        try:
            runpy.run_path(file, run_name="__main__")
        except SystemExit as end:
            code = end.code
        assert not code
    said = capfd.readouterr().out
    found = re.search(example.begun, said)
    assert found, said[-2000:]
    if example.begun.startswith(LOSSES):
        assert float(found[2]) < float(found[1])
    files_are_written(example, example.moment, language, tmp_path)


@pytest.mark.slow
@EACH
@BOTH
def test_it_learns_and_says_what_it_should(name, language, tmp_path):
    example, file = EXAMPLES[name], str(FOLDER / f"{name}.{language}")
    command = [sys.executable, *(["-m", "eshkol", "run"] if language == "esk" else []), file]
    done = subprocess.run(
        [*command, *words_of(example, example.count, language, tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "80"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    wanted = example.scheme if language == "esk" else example.python
    assert re.search(wanted, done.stdout), done.stdout[-2000:]
    assert max(len(line) for line in done.stdout.splitlines() if str(tmp_path) not in line) <= 110
    files_are_written(example, example.count, language, tmp_path)


def files_are_written(example: Example, count: str, language: str, folder: Path) -> None:
    if example.name == "digits":
        assert ek.io.load_checkpoint(folder / "digits.eskpt").epoch == int(count)
    if language == "esk" and example.name in ("digits", "spirals"):
        assert (folder / f"{example.name}.png").read_bytes().startswith(PNG)


@EACH
def test_it_has_both_languages_and_a_page(name):
    page = (PAGES / f"{name}.md").read_text("utf-8")
    for language in ("esk", "py"):
        file = FOLDER / f"{name}.{language}"
        assert file.exists()
        assert f"../../examples/{file.name}" in page, "the page leads to the program"
    assert f"eshkol run examples/{name}.esk" in page
    assert f"python examples/{name}.py" in page
    assert f"({name}.md)" in (PAGES / "README.md").read_text("utf-8")
