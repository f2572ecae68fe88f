"""The command `eshkol update`: what the dependencies of a project are now is accepted."""

from __future__ import annotations

import argparse

from eshkol.cli.projects import project_here

PROG = "eshkol update"
EPILOG = """\
What a dependency held when it was accepted is written into eshkol.lock. When it has changed, programs of the project do
not run until this command accepts what it is now: look at it first.

examples:
  eshkol update              accept all dependencies as they are; of git, what their revisions are now
  eshkol update geometry     accept one, and those that it needs"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", nargs="*", metavar="NAME", help="a dependency (default: all)")
    parser.set_defaults(run=run_update)


def run_update(options: argparse.Namespace) -> None:
    from eshkol.project.resolving import update

    lines = update(project_here(PROG), options.names)
    print("\n".join(lines) if lines else "all dependencies are what they were")
