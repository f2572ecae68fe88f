"""The standard library as a whole: what its libraries export, that all is documented, and that its page is true."""

from __future__ import annotations

from pathlib import Path

import pytest

from eshkol.bindings.names import names
from eshkol.lang.docs import APART, FURTHER, IMPLEMENTED, PAGES, RED_EDITION, SRFI, library
from eshkol.lang.expander import core_forms
from eshkol.lang.files import STANDARD
from eshkol.lang.form_docs import FORM_DOCS
from eshkol.lang.surface import TOP_LEVEL
from eshkol.runtime.scheme_table import rows

ROOT = Path(__file__).parent.parent.parent

# how many names appendix A of R7RS lists; (scheme r5rs) has seven words more, which its forms know by binding
COUNTS = {
    "base": 238, "case-lambda": 1, "char": 22, "complex": 6, "cxr": 24, "eval": 2, "file": 10, "inexact": 12, "lazy": 5,
    "load": 1, "process-context": 5, "read": 1, "repl": 1, "time": 3, "write": 4,
}  # fmt: skip


def public(folder: str, name: str) -> set[str]:
    return {word for word in library(STANDARD / folder / f"{name}.esk").exports if not word.startswith("%")}


@pytest.mark.parametrize("name", COUNTS)
def test_standard_libraries_export_what_the_report_lists(name: str) -> None:
    exports = library(STANDARD / "scheme" / f"{name}.esk").exports
    assert len(set(exports)) == len(exports) == COUNTS[name]


def test_programs_without_imports_have_everything() -> None:
    everything = set(library(STANDARD / "eshkol.esk").exports)
    wanted = {name for name in (*rows(), *core_forms()) if not name.startswith("%")}
    wanted |= set().union(*(public("eshkol", name) for name in IMPLEMENTED), *(public("srfi", name) for name in SRFI))
    wanted |= set().union(*(public("scheme", name) for name in (*COUNTS, "r5rs")))
    wanted -= {"current-time", "time?", "time->seconds", "seconds->time"}  # SRFI 18's: SRFI 19 has such names, too
    assert wanted - everything == set(), "to be added to lib/eshkol.esk"


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        *(("eshkol", n) for n in (*IMPLEMENTED, *APART)),
        *(("srfi", n) for n in SRFI),
        *(name.rsplit("/", 1) for name in FURTHER),
    ],
)
def test_everything_exported_is_documented(folder: str, name: str) -> None:
    found = library(STANDARD / folder / f"{name}.esk")
    made = [found.definitions[word] for word in found.exports if word in found.definitions and word[0] != "%"]
    assert [one.name for one in made if not one.doc] == []


@pytest.mark.parametrize("name", RED_EDITION)
def test_names_of_the_red_edition_stand_for_libraries_of_srfis(name: str) -> None:
    meant = library(STANDARD / "srfi" / f"{RED_EDITION[name]}.esk")
    assert set(library(STANDARD / "scheme" / f"{name}.esk").exports) == {w for w in meant.exports if w[0] != "%"}


def test_every_form_is_documented() -> None:
    spliced = {"cond-expand", "include", "include-ci", "begin-for-syntax", "define-for-syntax"}
    hidden = {name for name in core_forms() if name.startswith("%")}
    assert set(FORM_DOCS) == {*core_forms(), *TOP_LEVEL, *spliced} - hidden


def test_every_name_of_the_default_environment_is_documented() -> None:
    """Each has a row of the runtime, a doc string, or a row of the forms."""
    documented = set(FORM_DOCS) | set(rows()) | set(names())  # of rows of the op table
    for folder, name in [*(("eshkol", n) for n in (*IMPLEMENTED, *APART)), *(("srfi", n) for n in SRFI)]:
        documented |= set(library(STANDARD / folder / f"{name}.esk").definitions)
    assert set(library(STANDARD / "eshkol.esk").exports) - documented == set()


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_up_to_date(name: str) -> None:
    written = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert written == PAGES[name](), "run 'python -m eshkol.lang.docs docs'"
