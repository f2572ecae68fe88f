"""The documentation is true: derived pages are up to date, links lead somewhere, every flag is explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from eshkol.atlas.docs import PAGES as ATLAS_PAGES
from eshkol.ops.docs import ops_page
from eshkol.support import flags

PAGES = {**ATLAS_PAGES, "ops.md": ops_page, "environment.md": flags.page}
ROOT = Path(__file__).parent.parent
PROSE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("name", PAGES)
def test_derived_page_is_up_to_date(name: str) -> None:
    assert (ROOT / "docs" / name).read_text(encoding="utf-8") == PAGES[name](), "run 'make generate'"


@pytest.mark.parametrize("page", PROSE, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if "://" not in link and not (page.parent / link).exists()]
    assert not missing


def test_every_environment_variable_is_in_the_table() -> None:
    used = set()
    for path in (ROOT / "src").rglob("*.py"):
        used.update(re.findall(r"ESHKOL_[A-Z_]+", path.read_text(encoding="utf-8")))
    for path in (ROOT / "src").rglob("*.c"):
        used.update(re.findall(r'getenv\("(ESHKOL_[A-Z_]+)"\)', path.read_text(encoding="utf-8")))
    assert used == {flag.name for flag in flags.FLAGS}


def test_nobody_else_reads_our_variables() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        if path.name != "flags.py":
            assert not re.search(r"environ\b[^\n]*ESHKOL_", path.read_text(encoding="utf-8")), path


def test_every_make_target_of_the_prose_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set()
    for page in PROSE:
        named.update(re.findall(r"`make ([a-z-]+)`", page.read_text(encoding="utf-8")))
    assert named <= targets
