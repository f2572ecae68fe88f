"""`eshkol run FILE`, `eshkol expand FILE`, `eshkol -e EXPR`: programs of the language from the command line."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_commands(commands: Any) -> None:
    run = commands.add_parser("run", help="run a program", description="Run a program.")
    run.add_argument("file", metavar="FILE", help="the program, an .esk file")
    run.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS", help="what (command-line) gives behind the file")
    run.set_defaults(run=run_program)
    expand = commands.add_parser(
        "expand",
        help="show a program with its macros expanded",
        description="Show a program as the core forms that are compiled: macros expanded, every variable named apart.",
    )
    expand.add_argument("file", metavar="FILE", help="the program, an .esk file")
    expand.set_defaults(run=expand_program)
    test = commands.add_parser(
        "test",
        help="run programs that hold their own expected output",
        description="Run .esk files that hold their own expected output, and show where they differ.",
    )
    test.add_argument("places", nargs="+", metavar="PLACE", help="a file, or a folder to be searched for .esk files")
    test.add_argument("--update", action="store_true", help="write what the programs do into the files")
    test.set_defaults(run=run_transcripts)


def run_program(options: argparse.Namespace) -> None:
    """Run a file."""
    from eshkol.session import on_session

    sys.exit(on_session(lambda session: session.run_file(Path(options.file)), [options.file, *options.args]))


def expand_program(options: argparse.Namespace) -> None:
    """Print a program in core forms; it does not run, only the procedures of its macros do."""
    from eshkol.lang.files import read_source
    from eshkol.lang.pretty import pretty
    from eshkol.lang.unexpand import unit_data
    from eshkol.session import on_session

    def work(session: Any) -> None:
        module = session.world.program(read_source(Path(options.file)))
        assert module.unit is not None
        for datum in unit_data(module.unit):
            print(pretty(datum))

    sys.exit(on_session(work, [options.file]))


def run_transcripts(options: argparse.Namespace) -> None:
    """Run transcripts, each in a process of its own state."""
    from eshkol.lang.transcripts import run_all
    from eshkol.session import Session, TranscriptSession, on_session

    def work(session: Session) -> int:
        opened: list[Session] = []

        def fresh(path: Path) -> TranscriptSession:
            for other in opened:
                other.close()
            opened[:] = [Session(cache=session.cache)]
            return TranscriptSession(opened[0], path)

        return 1 if run_all([Path(place) for place in options.places], fresh, update=options.update) else 0

    sys.exit(on_session(work, []))


def evaluate(text: str, args: list[str]) -> None:
    """Evaluate the expressions of a text, and print the value of the last."""
    from eshkol.session import on_session

    sys.exit(on_session(lambda session: session.print_value(text), ["-e", *args]))
