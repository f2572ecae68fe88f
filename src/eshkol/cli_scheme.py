"""`eshkol run FILE`, `eshkol -e EXPR`: programs of the language from the command line."""

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


def run_program(options: argparse.Namespace) -> None:
    """Run a file."""
    from eshkol.session import on_session

    sys.exit(on_session(lambda session: session.run_file(Path(options.file)), [options.file, *options.args]))


def evaluate(text: str, args: list[str]) -> None:
    """Evaluate the expressions of a text, and print the value of the last."""
    from eshkol.session import on_session

    sys.exit(on_session(lambda session: session.print_value(text), ["-e", *args]))
