"""The command `eshkol new`: a project is made, or it is said why not."""

from __future__ import annotations

import argparse
from pathlib import Path

from eshkol.lang.files import shown

EPILOG = """\
The project has eshkol.toml, a program, a library, a test, a README and a .gitignore; docs/projects.md has the rest.

examples:
  eshkol new orbits                  make the folder orbits; in it, `eshkol run`, `eshkol test` and `eshkol fmt` work
  eshkol new orbits --in ~/work      make it in another folder"""


def add_commands(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", help="of the project, and of the folder that is made")
    parser.add_argument("--in", dest="inside", metavar="FOLDER", default=".", help="where it is made (default: here)")
    parser.set_defaults(run=run_new)


def run_new(options: argparse.Namespace) -> None:
    from eshkol.project.making import make

    place = make(options.name, Path(options.inside).expanduser())
    print(f"made the project {options.name} in {shown(place)}: try `cd {shown(place)}` and `eshkol run`")
