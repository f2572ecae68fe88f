"""Programs of the language from the command line: `eshkol run`, `-e`, `repl`, `expand`, and `eshkol` alone.

Comes in: what the parser found. Goes out: what the program writes, and its exit code. Sessions are imported when one is
needed, so that `eshkol --help` answers at once.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eshkol.bindings import install
from eshkol.cli.projects import enter, project_here
from eshkol.cli.usage import UsageError
from eshkol.project import root_of
from eshkol.support import flags

if TYPE_CHECKING:
    from eshkol.lang.source import Source
    from eshkol.runtime.scheme import Root
    from eshkol.session import Session

install()  # programs find Python by it

STANDARD_INPUT = "-"
PROFILE = "--profile"
PROGRAMS = (".esk", ".scm")  # endings of the names of programs; others are told from commands by a folder before them


def size(text: str) -> int:
    """A number of bytes: 1000000, 512M, 2G."""
    bytes_ = flags.bytes_in(text)
    if not bytes_:
        raise argparse.ArgumentTypeError(f"'{text}' is no size; write 512M, 2G or a number of bytes")
    return bytes_


def heap_limit(options: argparse.Namespace) -> int:
    """What --heap says, or ESHKOL_HEAP; 0 where neither does."""
    wish = flags.text("ESHKOL_HEAP")
    if options.heap or not wish:
        return int(options.heap)
    try:
        return size(wish)
    except argparse.ArgumentTypeError as error:
        raise UsageError(f"ESHKOL_HEAP: {error}") from None


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options of `eshkol` itself; `take_expressions` reads -e, so that arguments may follow it."""
    parser.add_argument(
        "-e",
        dest="expressions",
        action="append",
        metavar="EXPR",
        help="evaluate EXPR and print its value; may be given again, and arguments of the program may follow",
    )
    _add_heap(parser, 0)
    add_folders(parser)


def add_folders(parser: argparse.ArgumentParser) -> None:
    """The option -L, of commands that run programs."""
    parser.add_argument(
        "-L",
        dest="folder",
        action=_LookIn,
        default=argparse.SUPPRESS,
        metavar="FOLDER",
        help="look for libraries in FOLDER, too, before those of ESHKOL_PATH; may be given again",
    )


class _LookIn(argparse.Action):
    """Libraries are looked for in a folder from now on."""

    def __call__(self, parser: Any, namespace: Any, values: Any, option_string: str | None = None) -> None:
        from eshkol.lang.files import ASKED_FOR

        folder = Path(values).expanduser()
        if not folder.is_dir():
            raise UsageError(f"there is no folder '{values}' to look for libraries in")
        ASKED_FOR.append(folder.absolute())


def _add_heap(parser: argparse.ArgumentParser, default: Any = argparse.SUPPRESS) -> None:
    parser.add_argument(
        "--heap",
        type=size,
        default=default,
        metavar="SIZE",
        help="how much memory the values of the program may take: 512M, 2G (default: ESHKOL_HEAP, or three quarters "
        "of the machine's)",
    )


def add_commands(commands: Any) -> None:
    run = commands.add_parser(
        "run",
        help="run a program",
        description="Run a program. It ends with 0, with what it gives to exit, with 1 after an error that it does not "
        "handle, or with 130 after Ctrl-C; a second Ctrl-C within a second ends it at once. Without FILE it is the "
        "program of the project that this folder belongs to.",
    )
    _add_heap(run)
    add_folders(run)
    run.add_argument(
        "--why",
        action="store_true",
        help="before it runs, say on stderr what became of each procedure: what is a loop, what is called by name, "
        "what is allocated, and what stopped better code",
    )
    run.add_argument(
        "--debug",
        action="store_true",
        help="at an error that the program does not handle, open a prompt: ,bt shows the calls, and its definitions "
        "can be looked at",
    )
    run.add_argument(
        PROFILE,
        nargs="?",
        const="",
        metavar="FILE",
        help="say on stderr where the time went, or write it to FILE (after =): .html, .svg, .json (a Chrome trace), "
        ".speedscope.json or .txt",
    )
    run.add_argument("--memory", action="store_true", help="the same of memory: who allocates, and what holds it")
    run.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        help="the program, an .esk file; a folder for its project; - for the standard input (default: project)",
    )
    run.add_argument(
        "args", nargs=argparse.REMAINDER, metavar="ARGS", help="what (command-line) gives behind the file, options too"
    )
    run.set_defaults(run=run_program)
    repl = commands.add_parser(
        "repl",
        help="evaluate what is typed",
        description="Evaluate forms one after the other, and print their values. Errors do not end it; Ctrl-C "
        "interrupts, Ctrl-D leaves, ,help lists the commands. Where the input is no terminal, there is no prompt.",
    )
    _add_heap(repl)
    add_folders(repl)
    repl.set_defaults(run=run_repl)
    expand = commands.add_parser(
        "expand",
        help="show a program with its macros expanded",
        description="Show a program as the core forms that are compiled: macros expanded, every variable named apart.",
    )
    add_folders(expand)
    expand.add_argument("file", metavar="FILE", help="the program, an .esk file; - for the standard input")
    expand.set_defaults(run=expand_program)


def take_expressions(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The arguments for the parser, and those of the program behind `-e EXPR`, which the parser must not see.

    A file in the place of a command is a program to be run: `eshkol hello.esk`, as a first line of
    `#!/usr/bin/env eshkol` asks for.
    """
    at, found = 0, False
    while at < len(argv) and argv[at] in ("-e", "--heap", "-L"):
        found = found or argv[at] == "-e"
        at += 2
    if found:
        return list(argv[:at]), list(argv[at:])
    program = at < len(argv) and _is_program(argv[at])
    return _profile_alone([*argv[:at], *(["run"] if program else []), *argv[at:]]), []


def _profile_alone(argv: list[str]) -> list[str]:
    """The arguments, where `--profile` before the program has no file: what comes after it is the program."""
    if "run" in argv:
        at = argv.index("run") + 1
        while at < len(argv) and argv[at].startswith("-"):
            if argv[at] == PROFILE:
                argv[at] = f"{PROFILE}="
            at += 2 if argv[at] in ("--heap", "-L") else 1
    return argv


def _is_program(word: str) -> bool:
    """Whether a word in the place of a command names a program."""
    path = Path(word)
    return not word.startswith("-") and (path.suffix in PROGRAMS or (os.sep in word and path.is_file()))


def run_alone(options: argparse.Namespace) -> int:
    """`eshkol` without a command: what -e says, else a prompt, or the program that comes from elsewhere."""
    from eshkol.session import on_session

    if options.expressions:
        enter(Path.cwd())

        def work(session: Session) -> None:
            for number, text in enumerate(options.expressions, 1):
                session.print_value(text, f"<-e {number}>")

        return on_session(work, ["-e", *options.args], heap_limit(options))
    if sys.stdin is not None and sys.stdin.isatty():
        return run_repl(options)
    return run_program(argparse.Namespace(file=STANDARD_INPUT, args=[], heap=options.heap))


def run_repl(options: argparse.Namespace) -> int:
    """Read, evaluate, print."""
    from eshkol.session.repl import Repl

    enter(Path.cwd())
    return Repl(heap_limit(options), portrait).run()


def run_program(options: argparse.Namespace) -> int:
    """Run a file."""
    from eshkol.session import on_session

    file = _program(options.file)
    if getattr(options, "debug", False):
        return _debug(file, options)
    source = _source(file)

    def work(session: Session) -> Any:
        if getattr(options, "why", False):
            _say_why(session, source)
        if getattr(options, "profile", None) is None and not getattr(options, "memory", False):
            return session.run_source(source)
        from eshkol.profiling.command import profiled

        return profiled(lambda: session.run_source(source), options.profile or "", options.memory)

    return on_session(work, [file, *options.args], heap_limit(options))


def _program(file: str | None) -> str:
    """The file of a program: what is named, or the main file of a project."""
    from eshkol.lang.files import shown

    if file is None or (Path(file).is_dir() and root_of(Path(file)) is not None):
        file = shown(project_here("eshkol run", None if file is None else Path(file)).main)
    return file


def _say_why(session: Session, source: Source) -> None:
    """Print what the code generator makes of a program's procedures."""
    from eshkol.codegen.compiling import explained
    from eshkol.types import regions

    module = session.world.program(source)
    assert module.unit is not None
    memory = regions.explained(module.unit)  # before the code generator makes other forms of it
    print(*explained(module.unit), *memory, sep="\n", file=sys.stderr)


def _debug(file: str, options: argparse.Namespace) -> int:
    """Run a file, and open a prompt where it stops."""
    from eshkol.lang.files import read_source
    from eshkol.session.repl import Repl

    if file == STANDARD_INPUT:
        raise UsageError("--debug wants a file: what is typed at its prompt comes from the standard input")
    source = read_source(Path(file))
    return Repl(heap_limit(options), portrait).debug(source, [file, *options.args])


def portrait(session: Session, value: Root, width: int) -> list[str]:
    """A small picture of a tensor, for the prompt; drawing is imported when there is one."""
    tags = session.machine.tags
    if value.get().tag not in (tags["TENSOR"], tags["FOREIGN"]):
        return []
    from eshkol.bindings.portraits import drawn

    return drawn(session, value, width)


def _source(file: str) -> Source:
    from eshkol.lang.files import decoded, read_source
    from eshkol.lang.source import Source

    enter(Path.cwd() if file == STANDARD_INPUT else Path(file).absolute().parent)
    if file != STANDARD_INPUT:
        return read_source(Path(file))
    data = b"" if sys.stdin is None else sys.stdin.buffer.read()
    return Source("<stdin>", decoded(data, "<stdin>"))


def expand_program(options: argparse.Namespace) -> int:
    """Print a program in core forms; it does not run, only the procedures of its macros do."""
    from eshkol.lang.pretty import pretty
    from eshkol.lang.unexpand import unit_data
    from eshkol.session import on_session

    source = _source(options.file)

    def work(session: Session) -> None:
        module = session.world.program(source)
        assert module.unit is not None
        for datum in unit_data(module.unit):
            session.say(pretty(datum))

    return on_session(work, [options.file])
