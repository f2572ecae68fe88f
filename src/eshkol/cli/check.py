"""The command `eshkol check`: types of programs, before anything runs.

Comes in: files and folders. Goes out: what is wrong in them, each with its line, and 1; or what `--json` says of errors
and types for editors. Programs without annotations are looked at, too: what is certainly wrong in them is said.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eshkol.cli.fmt import programs_in
from eshkol.cli.projects import enter, project_here
from eshkol.lang.files import decoded, read_source, shown
from eshkol.lang.source import Source

if TYPE_CHECKING:
    from eshkol.errors import LanguageError, Span
    from eshkol.session import Session
    from eshkol.session.typing import Report

PROG = "eshkol check"
STANDARD_INPUT = "-"
EPILOG = """\
A program without annotations is refused only where no value could be right: a wrong number of arguments, a string where
a number belongs. docs/types.md teaches the types.

examples:
  eshkol check                     the project that this folder belongs to
  eshkol check hello.esk src       a file, and all files in a folder
  eshkol check --strict src        definitions without types are errors, too
  eshkol check --json hello.esk    errors and types with their places, for editors"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places", nargs="*", metavar="PLACE", help="a file, a folder to be searched, or - (default: project)"
    )
    parser.add_argument("--strict", action="store_true", help="refuse definitions that have parts without a type")
    parser.add_argument("--json", action="store_true", help="print errors and types as JSON, for editors")
    parser.set_defaults(run=run_check)


def run_check(options: argparse.Namespace) -> int:
    """Check what is named."""
    from eshkol.session import on_session

    return on_session(lambda session: _check(session, options), [PROG])


def _check(session: Session, options: argparse.Namespace) -> int:
    from eshkol.session.typing import checked

    start = time.process_time()
    reports: dict[str, Report] = {}
    for source in _sources(options.places):
        reports[source.name] = checked(session, source, options.strict)
    count = sum(len(report.errors) for report in reports.values())
    if options.json:
        print(json.dumps([_as_json(name, report) for name, report in reports.items()], indent=2))
    else:
        for report in reports.values():
            for error in report.errors:
                print(f"error: {error}\n", file=sys.stderr)
        print(_summary(reports, count, time.process_time() - start))
    return 1 if count else 0


def _sources(places: list[str]) -> list[Source]:
    if not places:
        project = project_here(PROG)
        places = [shown(folder) for folder in (project.source, project.tests) if folder.is_dir()]
    if places == [STANDARD_INPUT]:
        data = b"" if sys.stdin is None else sys.stdin.buffer.read()
        return [Source("<stdin>", decoded(data, "<stdin>"))]
    paths = list(programs_in([Path(place) for place in places]))
    if paths:
        enter(paths[0].absolute().parent)
    return [read_source(path) for path in paths]


def _summary(reports: dict[str, Report], count: int, seconds: float) -> str:
    """How much was looked at, and how fast the checker was, of the time that all of it took."""
    lines = sum(report.lines for report in reports.values())
    own = sum(report.seconds for report in reports.values())
    speed = f", {lines / own:,.0f} lines/s" if own > 0.02 else ""
    files = f"{len(reports)} file{'' if len(reports) == 1 else 's'}"
    wrong = "nothing is wrong" if not count else f"{count} error{'' if count == 1 else 's'}"
    return f"{files}, {lines} lines: {wrong} (types {own * 1000:.0f} ms{speed}; with reading {seconds * 1000:.0f} ms)"


def _as_json(name: str, report: Report) -> dict[str, Any]:
    return {
        "file": name,
        "errors": [_error(error) for error in report.errors],
        "types": [{**_where(place.span), "name": what, "type": kind} for place, what, kind in report.types],
    }


def _error(error: LanguageError) -> dict[str, Any]:
    where = {} if error.span is None else _where(error.span)
    notes = [{"message": text, **({} if span is None else _where(span))} for text, span in error.notes]
    return {"message": error.message, **where, "hint": error.hint, "notes": notes}


def _where(span: Span) -> dict[str, Any]:
    return {"line": span.line, "column": span.column, "length": span.length}
