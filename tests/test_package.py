"""What is installed with the package: every file of it that is no module of Python is named by a rule of pyproject.

What is installed beside it: extras that our messages name are there.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "eshkol"
MADE = {".py", ".pyc", ".so"}  # modules are found as packages, the library in C is built


def covered() -> set[Path]:
    """The files that the rules take."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    rules = settings["package-data"]["eshkol"]
    return {path for rule in rules for path in PACKAGE.glob(rule) if path.is_file()}


def test_every_file_is_installed():
    there = {path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix not in MADE}
    assert len(there) > 60, "libraries of Scheme, data sets, sources in C"
    assert sorted(str(path.relative_to(PACKAGE)) for path in there - covered()) == []


def test_every_rule_takes_something():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]
    assert [rule for rule in settings["package-data"]["eshkol"] if not any(PACKAGE.glob(rule))] == []


def test_every_extra_that_is_named_is_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = [path.read_text("utf-8") for path in [*PACKAGE.rglob("*.py"), *(ROOT / "docs").glob("*.md")]]
    named = {name for text in texts for found in re.findall(r"eshkol\[([a-z,]+)\]", text) for name in found.split(",")}
    assert "opencl" in named
    assert named <= set(extras)
    assert set(re.findall(r"[a-z]+", extras["machines"][0].partition("[")[2])) <= set(extras)
