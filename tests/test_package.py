"""What is installed with the package: every file of it that is no module of Python is named by a rule of pyproject."""

from __future__ import annotations

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
