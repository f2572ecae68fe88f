"""What came of tests as a file in the form of JUnit, which services that run tests read."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

if TYPE_CHECKING:
    from eshkol.session.testing import Failure, FileReport, Test

_UNFIT = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # characters that XML cannot hold
_ELEMENTS = {"failed": "failure", "error": "error", "skipped": "skipped"}


def document(reports: Sequence[FileReport], seconds: float) -> bytes:
    """The file: a suite for each file of tests, a case for each test."""
    everything = [test for report in reports for test in report.tests]
    root = ElementTree.Element("testsuites", {"name": "eshkol test", **_counts(everything, seconds)})
    for report in reports:
        suite = ElementTree.SubElement(
            root, "testsuite", {"name": _fit(report.name), **_counts(report.tests, report.seconds)}
        )
        for test in report.tests:
            _case(suite, report, test)
        if report.output:
            ElementTree.SubElement(suite, "system-out").text = _fit(report.output)
    ElementTree.indent(root)
    return bytes(ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)) + b"\n"


def _counts(tests: Sequence[Test], seconds: float) -> dict[str, str]:
    def count(outcome: str) -> str:
        return str(sum(test.outcome == outcome for test in tests))

    return {
        "tests": str(len(tests)), "failures": count("failed"), "errors": count("error"), "skipped": count("skipped"),
        "time": f"{seconds:.6f}",
    }  # fmt: skip


def _case(suite: ElementTree.Element, report: FileReport, test: Test) -> None:
    folder = Path(report.name).with_suffix("")
    line = next((failure.place.rpartition(":")[2] for failure in test.failures if failure.place), "")
    where = {"line": line} if line.isdigit() else {}
    facts = {
        "name": _fit(test.name), "classname": _fit(".".join(folder.parts)).lstrip("./"), "file": _fit(report.name),
        "time": f"{test.seconds:.6f}", **where,
    }  # fmt: skip
    case = ElementTree.SubElement(suite, "testcase", facts)
    kind = _ELEMENTS.get(test.outcome)
    if kind is not None and not test.failures:
        ElementTree.SubElement(case, kind)
    for failure in test.failures:
        message = _first_line(failure.actual) if test.outcome == "error" else f"expected {failure.expected}"
        ElementTree.SubElement(case, kind or "failure", message=_fit(message)).text = _fit(told(failure))


def told(failure: Failure) -> str:
    """A failure as lines: the place and the expression, what was expected, what came out."""
    lines = [f"{failure.place}: {failure.expression}".removesuffix(": ")] if failure.place or failure.expression else []
    return "\n".join([*lines, *_labelled("expected:", failure.expected), *_labelled("actual:  ", failure.actual)])


def _labelled(label: str, text: str) -> list[str]:
    first, *others = text.split("\n")
    return [f"  {label} {first}", *(" " * (len(label) + 3) + line for line in others)]


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _fit(text: str) -> str:
    return _UNFIT.sub("\ufffd", text)
