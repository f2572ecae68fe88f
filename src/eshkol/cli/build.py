"""The command `eshkol build`: a program as a native executable, which runs without Python.

Everything heavy is imported by the command that runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eshkol.cli.projects import enter, project_here
from eshkol.cli.usage import UsageError

if TYPE_CHECKING:
    from eshkol.executable.missing import Missing
    from eshkol.session import Session

WARNINGS = 5  # that are shown of calls that can only fail
EPILOG = """\
examples:
  eshkol build hello.esk                    an executable 'hello'
  eshkol build hello.esk -o bin/hello --strip --static
  eshkol build hello.esk --target aarch64-linux
  eshkol build shapes.esk --shared          a C library 'libshapes.so' and its header 'shapes.h'
  docs/executables.md says what is in an executable, and what is not"""


def add_commands(parser: Any) -> None:
    parser.add_argument(
        "file", nargs="?", metavar="FILE",
        help="the program, an .esk file; a folder for its project (default: the project of this folder)",
    )  # fmt: skip
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="the file to write (default: the program's name; of a project, in its folder build/)",
    )
    parser.add_argument("--shared", action="store_true", help="make a C library of what the file provides")
    parser.add_argument("--static", action="store_true", help="without any library of the system's")
    parser.add_argument("--strip", action="store_true", help="without symbols and debug information")
    parser.add_argument("--native", action="store_true", help="for processors like this one alone")
    parser.add_argument(
        "--target", metavar="MACHINE", help="for another kind of machine, such as aarch64-linux (pip install ziglang)"
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="tell what was made of the program")
    parser.set_defaults(run=build_program)


def build_program(options: argparse.Namespace) -> int:
    """Build a file."""
    from eshkol.executable.build import Builder, Options
    from eshkol.lang.files import read_source
    from eshkol.session import on_session

    file, folder = _program(options.file)
    suffix, prefix = (".so", "lib") if options.shared else ("", "")
    output = Path(options.output) if options.output else folder / f"{prefix}{file.stem}{suffix}"
    if output.is_dir():
        raise UsageError(f"'{output}' is a folder; say with -o which file to write", "eshkol build")
    if options.shared and options.static:
        raise UsageError("a library is either --shared or not made at all: --static is for executables", "eshkol build")
    source = read_source(file)
    if options.native and options.target:
        raise UsageError("--native is for processors like this one, --target for others", "eshkol build")
    wanted = Options(static=options.static, strip=options.strip, native=options.native, target=options.target)

    def work(session: Session) -> None:
        find = lambda name: source if name == str(source.path) else session.source(name)
        session.know(source)
        builder = Builder(session.world, session.cache, find, session.evaluate_unit, wanted)
        if options.shared:
            built = builder.library(session.world.file_module(source.path), output)
        else:
            built = builder.executable(session.world.program(source), output)
        _warn(built.missing)
        if options.verbose:
            session.say(f"{built.path}: {built.size:,} bytes, {built.kept} forms; {built.dropped} that nothing reaches")

    return on_session(work, [str(file)])


def _warn(calls: Sequence[Missing]) -> None:
    """Tell of calls that can only fail."""
    from eshkol.executable.missing import PYTHON

    for call in calls[:WARNINGS]:
        print(call, file=sys.stderr)
    if len(calls) > WARNINGS:
        print(f"... and {len(calls) - WARNINGS} more such calls", file=sys.stderr)
    if any(call.what == PYTHON for call in calls):
        print("hint: (compile-ahead f example ...) compiles a procedure of tensors into it", file=sys.stderr)


def _program(file: str | None) -> tuple[Path, Path]:
    """What to build, and where: a file into this folder, the main file of a project into its folder `build`."""
    if file is not None and not Path(file).is_dir():
        enter(Path(file).absolute().parent)
        return Path(file), Path()
    project = project_here("eshkol build", None if file is None else Path(file))
    enter(project.folder)
    made = project.folder / "build"
    made.mkdir(exist_ok=True)
    return project.main, made
