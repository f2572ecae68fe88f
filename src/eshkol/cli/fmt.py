"""The command `eshkol fmt`: programs are laid out, or it is said which are not.

Comes in: files and folders. Goes out: the files, each replaced whole or left as it was; or with --check their names and
1, with --diff what would change. A file that cannot be read as Scheme is an error, and the others are laid out all the
same.
"""

from __future__ import annotations

import argparse
import difflib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from eshkol.cli.projects import project_here
from eshkol.cli.usage import UsageError
from eshkol.errors import EshkolError
from eshkol.lang.files import SUFFIXES, decoded, read_source, shown
from eshkol.lang.source import Source

if TYPE_CHECKING:
    from collections.abc import Sequence

PROG = "eshkol fmt"
STANDARD_INPUT = "-"
EPILOG = """\
Only white space changes: the command reads what it has written, and compares. Line breaks stay where they are, and are
added where a line is longer than 120 characters; docs/fmt.md has the rules.

examples:
  eshkol fmt                       the project that this folder belongs to
  eshkol fmt hello.esk src         a file, and all files in a folder
  eshkol fmt --check src           1 if a file would change, and which
  eshkol fmt --diff hello.esk      how it would change
  eshkol fmt - < hello.esk         from standard input to standard output"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "places",
        nargs="*",
        metavar="PLACE",
        help="a file, a folder to be searched for programs, or - (default: project)",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a file would change")
    parser.add_argument("--diff", action="store_true", help="write nothing; show what would change")
    parser.set_defaults(run=run_fmt)


def run_fmt(options: argparse.Namespace) -> int:
    """Lay out what is named."""
    places = options.places or _project_places()
    if STANDARD_INPUT in places:
        if len(places) > 1:
            raise UsageError("- stands alone: what comes from standard input goes to standard output", PROG)
        return _stream(options)
    changed = same = failed = 0
    for path in programs_in([Path(place) for place in places]):
        try:
            differs = _file(path, options)
        except EshkolError as error:
            print(f"error: {error}", file=sys.stderr)
            failed += 1
        else:
            changed, same = changed + differs, same + (not differs)
    if not options.diff:
        verb = "would change" if options.check else "laid out"
        count = changed + same + failed
        parts = [f"{changed} {verb}", f"{same} as they should be"] + ([f"{failed} with errors"] if failed else [])
        print(f"{count} file{'s' * (count != 1)}: {', '.join(parts)}")
    return 1 if failed or (options.check and changed) else 0


def _stream(options: argparse.Namespace) -> int:
    """Standard input to standard output; nothing is written where there is an error."""
    data = b"" if sys.stdin is None else sys.stdin.buffer.read()
    source = Source("<stdin>", decoded(data, "<stdin>"))
    text = _formatted(source)
    if options.diff:
        _show_diff(source, text)
    elif not options.check:
        sys.stdout.write(text)
    return int(options.check and text != source.text)


def _file(path: Path, options: argparse.Namespace) -> bool:
    """Lay out a file; whether that changes it."""
    source = read_source(path)
    text = _formatted(source)
    if text == source.text:
        return False
    if options.diff:
        _show_diff(source, text)
    elif options.check:
        print(f"would change: {source.name}")
    else:
        replace(path, text)
        print(f"laid out: {source.name}")
    return True


def _formatted(source: Source) -> str:
    from eshkol.lang.formatting.formatted import formatted

    return formatted(source)


def _show_diff(source: Source, text: str) -> None:
    before, after = source.text.splitlines(keepends=True), text.splitlines(keepends=True)
    for line in difflib.unified_diff(before, after, source.name, f"{source.name} (laid out)"):
        print(line.rstrip("\r\n"))


def replace(path: Path, text: str, who: str = PROG) -> None:
    """Put a text in the place of a file, all of it or nothing; it keeps its permissions."""
    from eshkol.io.files import replacing, write_all

    mode = path.stat().st_mode
    with replacing(path, who) as file:
        os.fchmod(file.fileno(), mode & 0o7777)
        write_all(file, text.encode("utf-8"))


def programs_in(places: Sequence[Path]) -> Iterator[Path]:
    """Programs among the places: files as they are, folders searched for them, but for what is hidden."""
    for place in places:
        if not place.is_dir():
            yield place
            continue
        for folder, folders, files in os.walk(place):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in sorted(files):
                if name.endswith(SUFFIXES) and not name.startswith("."):
                    yield Path(folder, name)


def _project_places() -> list[str]:
    project = project_here(PROG)
    return [shown(folder) for folder in (project.source, project.tests) if folder.is_dir()]
