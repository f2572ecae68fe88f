"""The programs under examples/calculus print what their comments say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eshkol.cli.main import main

FOLDER = Path(__file__).parents[2] / "examples" / "calculus"
NAMES = ("fields", "hamilton", "kalman", "linear", "newton", "predators", "rosenbrock", "series", "xor")


@pytest.mark.parametrize("name", NAMES)
def test_example(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    path = FOLDER / f"{name}.esk"
    wanted = re.findall(r";out> (.*)", path.read_text(encoding="utf-8"))
    assert main(["run", str(path)]) == 0
    shown = capfd.readouterr()
    assert shown.out.splitlines() == wanted, shown.err


def test_all_are_here() -> None:
    assert tuple(sorted(path.stem for path in FOLDER.glob("*.esk"))) == NAMES
