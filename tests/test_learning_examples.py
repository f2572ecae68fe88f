"""The examples of learning, in both languages: each runs, ends well, and says what it should; each has its page."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDER, PAGES = ROOT / "examples", ROOT / "docs" / "examples"
PNG = b"\x89PNG\r\n\x1a\n"


@dataclass(frozen=True)
class Example:
    """An example: how often it repeats, as its first argument has it, and what it must say after that many times."""

    name: str
    count: str
    scheme: str
    python: str
    folder: bool = False  # the second argument says where it puts files


EXAMPLES = {
    e.name: e
    for e in (
        Example("gradient", "", r"\(0\.0 10\.0\)\n4/3\n\(2\.0 4\.0 6\.0\)", r"\[0\.0, 10\.0\]\n\[2\.0, 4\.0, 6\.0\]"),
        Example("line", "200", r"y = 2\.9\d+ x \+ 0\.4\d+", r"y = 2\.98 x \+ 0\.50"),
        Example("xor", "300", r"is 0\n.*is 1\n.*is 1\n.*is 0", r"is 0\n.*is 1\n.*is 1\n.*is 0"),
        Example("spirals", "100", r"\d+ of 400 points", r"(39\d|400) of 400 points"),
        Example("waves", "200", r"loss 0\.000|loss \d\.\d+e-0?5", r"step 200: loss 0\.000"),
        Example("iris", "40", r"(0\.9\d*|1\.0) of the flowers", r"(0\.9\d*|1\.0+) of the flowers"),
        Example("sorting", "400", r"2[0-5]\d of 256", r"(100\.0|9\d\.\d) % of 256"),
        Example("digits", "5", r"3[456]\d of 360 digits", r"3[456]\d of 360 digits", folder=True),
        Example("autoencoder", "20", r"mean square error 0\.0[12]", r"mean square error 0\.0[12]"),
        Example("dream", "6", r"(9|10) of 10 are", r"(9|10) of 10 are"),
        Example("resume", "4", "the same to the last bit", "the same to the last bit", folder=True),
        Example(
            "gpt", "30", r"step 30/30: loss [23]\.\d.*\nCORIOLANUS:", r"loss on text that it has not read: 2\.[5-9]"
        ),
    )
}
IN_MAKE_TEST = {("gradient", "esk"), ("gradient", "py")}  # the others take seconds each


def command(example: Example, language: str, folder: Path) -> list[str]:
    words = [*filter(None, [example.count]), *([str(folder)] if example.folder else [])]
    if example.name == "spirals" and language == "esk":
        words.append(str(folder / "spirals.png"))
    file = str(FOLDER / f"{example.name}.{language}")
    return (
        [sys.executable, "-m", "eshkol", "run", file, *words] if language == "esk" else [sys.executable, file, *words]
    )


def runs() -> list[object]:
    return [
        pytest.param(name, language, marks=[] if (name, language) in IN_MAKE_TEST else pytest.mark.slow)
        for name in EXAMPLES
        for language in ("esk", "py")
    ]


@pytest.mark.parametrize(("name", "language"), runs())
def test_it_runs_and_says_what_it_should(name, language, tmp_path):
    example = EXAMPLES[name]
    done = subprocess.run(
        command(example, language, tmp_path),
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
    if name == "digits":
        from eshkol import io

        assert io.load_checkpoint(tmp_path / "digits.eskpt").epoch == int(example.count)
        if language == "esk":
            assert (tmp_path / "digits.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize("name", EXAMPLES)
def test_it_has_both_languages_and_a_page(name):
    page = (PAGES / f"{name}.md").read_text("utf-8")
    for language in ("esk", "py"):
        file = FOLDER / f"{name}.{language}"
        assert file.exists()
        assert f"../../examples/{file.name}" in page, "the page leads to the program"
    assert f"eshkol run examples/{name}.esk" in page
    assert f"python examples/{name}.py" in page
    assert f"({name}.md)" in (PAGES / "README.md").read_text("utf-8")
