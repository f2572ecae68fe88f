"""The `eshkol` command: `main` takes the arguments and returns the exit code.

Comes in: the command line. Goes out: what a command prints, and 0; or one clear line on stderr and 2 for
arguments that make no sense; or the message of an `EshkolError` on stderr and 1. A traceback is shown only with
ESHKOL_DEBUG=1. This module stands on top of everything and holds the parser, the exit codes and `doctor`;
`scheme.py` holds those that run programs, the modules that `MODULES` names the others; `values.py` reads their values,
`projects.py` knows the project that they work in. Everything heavy is imported by the command that needs it, so that
`eshkol --version` answers at once.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

from eshkol.cli import scheme as cli_scheme
from eshkol.cli.usage import UsageError
from eshkol.errors import BROKEN_PIPE, EshkolError, Interrupted
from eshkol.lang.files import ASKED_FOR
from eshkol.support import flags
from eshkol.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from rich.table import Table

OK, FAILED, MISUSED, INTERRUPTED = 0, 1, 2, 130  # the last: 128 + the signal's number

DESCRIPTION = "Eshkol: write a numerical program once, differentiate it, and run it fast anywhere."
EXAMPLES = """\
examples:
  eshkol                                         a prompt; where the input is no terminal, run the program there
  eshkol hello.esk one two                       run a program, here with two arguments; also after `run`
  eshkol -L FOLDER hello.esk                     the same, with libraries from a folder
  eshkol -e '(define x 20)' -e '(+ x 1)'         evaluate, and print values
  eshkol new orbits                              make a project; run, test and fmt work in it without names
  eshkol test tests                              run tests, and show what failed
  eshkol fmt hello.esk                           lay a program out
  eshkol check hello.esk                         look at its types, and at what is certainly wrong
  eshkol ckpt ls run.eskpt                       what is in a checkpoint; also diff and verify
  eshkol jupyter install                         tell Jupyter of the Eshkol kernel
  eshkol doctor                                  what this machine offers: backends, LLVM, cache
  eshkol conformance opencl --seconds 60         every instruction and row there: pass, refused or fail
  eshkol prepare                                 compile Eshkol's own libraries now, not at their first use
  eshkol tune                                    measure kernels of a GPU, and keep what is fastest there
  eshkol atlas check saxpy.atlas                 is the program legal? what does it use?
  eshkol atlas run saxpy.atlas --lanes 8 --param n=8 --param a=2 \\
               --param x=arange:8 --param y=ones:8
  eshkol atlas opt saxpy.atlas --stats           the program after the optimizer
  eshkol atlas asm saxpy.atlas -o saxpy.json     assembler text to JSON
  eshkol atlas dis kernel.json                   a JSON program or kernel to assembler text
  eshkol atlas emit kernel.json --target expanded

environment:
  ESHKOL_CACHE_DIR     folder of the compiled programs
  ESHKOL_CACHE_BYTES   how large it may grow; 0 keeps the cache off the disk
  ESHKOL_DEBUG=1       show the Python traceback of an error
  ESHKOL_HEAP          how much memory the values of a program may take: 512M, 2G
  ESHKOL_PATH          folders where libraries are looked for
  ESHKOL_SIMD          vector instructions of native code: none, sse4.2, avx2, avx512, neon
  ESHKOL_THREADS       threads that native code runs on
  ESHKOL_TUNE=1        measure the sizes of kernels, and keep the best

exit codes: 0 done, 1 the program failed or is not legal, 2 the arguments make no sense, 130 Ctrl-C,
141 nobody reads the output any more; a program may give another to (exit)"""


class Parser(argparse.ArgumentParser):
    """A parser that reports a fault in one line."""

    def __init__(self, **options: Any) -> None:
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see '{self.prog} --help')", self.prog)

    def _print_message(self, message: str, file: Any = None) -> None:
        print(message, end="", file=file)  # argparse's own swallows the errors of writing


# Commands in modules of their own: the module, what they do, what is said after that, whether they have commands.
MODULES = {
    "build": ("build", "make a native executable of a program, which runs without Python", "", False),
    "atlas": ("atlas", "run, check, translate and optimize Atlas programs", "", True),
    "conformance": ("conformance", "compare machines with the interpreters, and say what came out", "", False),
    "ckpt": ("checkpoints", "list, compare and verify checkpoints", " (.eskpt)", True),
    "new": ("new", "make a project: a folder with eshkol.toml, a program, a library and a test", "", False),
    "update": ("update", "accept what the dependencies of a project are now", "", False),
    "fmt": ("fmt", "lay out programs, or say which are not", "", False),
    "check": ("check", "check the types of programs, before anything runs", "", False),
    "test": ("testing", "run files of tests, and programs that hold their own expected output", "", False),
    "export": ("export", "write a model as a page for browsers", "", True),
    "jupyter": ("jupyter", "Eshkol in notebooks: install and run the Jupyter kernel", "", True),
    "prepare": ("prepare", "compile what Eshkol itself needs now, not when it is first used", "", False),
    "tune": ("tune", "measure kernels of a GPU with each of their choices, and keep the fastest", "", False),
}


def build_parser(words: Sequence[str] | None = None) -> Parser:
    """The command line; what is in modules of their own only where one of these words names it, or none are given."""
    parser = Parser(prog="eshkol", description=DESCRIPTION, epilog=EXAMPLES)
    parser.add_argument("--version", action="version", version=f"eshkol {__version__}")
    parser.set_defaults(run=cli_scheme.run_alone, args=[])
    cli_scheme.add_options(parser)
    commands = _commands(parser)
    cli_scheme.add_commands(commands)
    doctor = commands.add_parser(
        "doctor",
        help="show what this machine offers: versions, CPU, backends, cache",
        description="Show what this machine offers: versions, CPU, every backend and why it is missing, the cache.",
    )
    doctor.add_argument("--json", action="store_true", help="print JSON, for programs")
    doctor.set_defaults(run=_doctor)
    for name, (file, does, more, has_commands) in MODULES.items():
        group = commands.add_parser(name, help=does, description=f"{does[0].upper()}{does[1:]}{more}.")
        if words is None or name in words:
            module = import_module(f"eshkol.cli.{file}")
            group.epilog = module.EPILOG
            if has_commands:
                group.set_defaults(run=_show_help(group))
            module.add_commands(_commands(group) if has_commands else group)
    return parser


def _commands(parser: Parser) -> Any:
    """The commands of a command; without `prog`, argparse makes a text of help to find it out."""
    return parser.add_subparsers(title="commands", metavar="COMMAND", parser_class=Parser, prog=parser.prog)


def _show_help(parser: Parser) -> Any:
    def show(options: argparse.Namespace) -> None:
        parser.print_help()

    return show


# --- the way in and out ---------------------------------------------------------------------------


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line (by default that of the process); the exit code."""
    _tolerate_any_text()
    ASKED_FOR.clear()
    try:
        try:
            ours, theirs = cli_scheme.take_expressions(sys.argv[1:] if argv is None else argv)
            options = build_parser(ours).parse_args(ours)
            code: int | None = options.run(argparse.Namespace(**{**vars(options), "args": theirs or options.args}))
            if code:
                return code
        except SystemExit as leaving:  # of --help and --version; and rich's, where no one reads on
            if leaving.code:
                return BROKEN_PIPE
        if sys.stdout is not None:
            sys.stdout.flush()  # so that a reader who has gone, or a full disk, is noticed here
        return OK
    except UsageError as error:
        _debug()
        return _report(f"{error.prog}: {' '.join(error.message.split())}", MISUSED)
    except Interrupted as error:
        _debug()
        return _report(str(error), INTERRUPTED)
    except EshkolError as error:
        _debug()
        return _report(f"error: {error}", FAILED)
    except KeyboardInterrupt:
        _debug()
        return _report("interrupted", INTERRUPTED)
    except BrokenPipeError:
        _drop_stdout()
        return BROKEN_PIPE
    except OSError as error:
        _debug()
        _drop_stdout()
        where = f": '{error.filename}'" if error.filename else ""
        return _report(f"error: {error.strerror or error}{where}", FAILED)
    except MemoryError as error:
        _debug()
        return _report(f"error: not enough memory{f': {error}' if str(error) else ''}", FAILED)
    except Exception as error:
        _debug()
        if isinstance(error.__cause__, KeyboardInterrupt):  # it came while Python made a class
            return _report("interrupted", INTERRUPTED)
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        lines = what.splitlines()
        return _report(f"internal error: {lines[0]} (ESHKOL_DEBUG=1 shows the traceback)", FAILED)


def _report(text: str, code: int) -> int:
    with suppress(OSError, ValueError, AttributeError):  # a stderr that is closed, or None, cannot be told anything
        print(text, file=sys.stderr)
    return code


def _debug() -> None:
    """The traceback of the error at hand, for who asks for it."""
    if flags.is_on("ESHKOL_DEBUG"):
        import traceback

        traceback.print_exc()


def _drop_stdout() -> None:
    """Nothing reads stdout any more; Python must not complain about that when it flushes at exit."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _tolerate_any_text() -> None:
    """What a stream cannot show ('→' in ASCII, in UTF-8 a file name that is none) is '?', and does not stop it."""
    for stream in (sys.stdout, sys.stderr):
        narrow = (getattr(stream, "encoding", None) or "utf-8").lower().replace("-", "") != "utf8"
        if isinstance(stream, io.TextIOWrapper) and (narrow or stream.errors == "strict"):
            with suppress(ValueError):
                stream.reconfigure(errors="replace")


# --- doctor ---------------------------------------------------------------------------------------


def _doctor(options: argparse.Namespace) -> None:
    report = examine()
    if options.json:
        import json

        print(json.dumps(report, indent=2))
        return
    from rich.console import Console

    Console(highlight=False).print(_doctor_table(report))


def examine() -> dict[str, Any]:
    """What this machine offers, as JSON values."""
    import platform
    from importlib import metadata

    from eshkol.cli.prepare import examine as examine_prepared
    from eshkol.llvm.targets import versions

    return {
        "eshkol": __version__,
        "python": {"version": platform.python_version(), "implementation": platform.python_implementation()},
        "platform": platform.platform(),
        "numpy": metadata.version("numpy"),
        "lapack": _examine_lapack(),
        "llvm": versions(),
        "cpu": _examine_cpu(),
        "simd": _examine_simd(),
        "threads": _examine_threads(),
        "backends": _examine_backends(),
        "cache": _examine_cache(),
        "prepared": examine_prepared(),
    }


def _examine_lapack() -> str | None:
    """Whose LAPACK native code calls; None where it has none, and NumPy is asked through Python."""
    from eshkol.backends.cpu import lapack

    return lapack.SOURCE if lapack.address("syevd", "float64") is not None else None


def _examine_cpu() -> dict[str, Any]:
    """Name, model and features of the CPU, from LLVM where it is there and from the kernel otherwise."""
    facts = _kernel_cpu_facts()
    model = facts.get("model name", "unknown")
    name, features = model, sorted((facts.get("flags") or facts.get("Features") or "").split())
    with suppress(ImportError, OSError, RuntimeError):
        from eshkol.llvm.targets import host_cpu, host_features

        name = host_cpu()
        features = sorted(key for key, present in host_features().items() if present)
    return {"name": name, "model": model, "cores": os.cpu_count(), "features": features}


def _examine_simd() -> dict[str, Any] | None:
    """How native code will use the vector unit, and which levels ESHKOL_SIMD can ask for; None without LLVM."""
    try:
        from eshkol.backends.cpu import simd

        config = simd.config()
        return {**config.facts(), "levels": [level.value for level in simd.levels()], "problem": None}
    except EshkolError as error:  # ESHKOL_SIMD asks for what is not there
        return {"problem": error.message}
    except (ImportError, OSError):
        return None


def _examine_threads() -> dict[str, Any]:
    """How many threads native code runs on."""
    from eshkol.runtime.scheduler import Scheduler, threads_from_environment

    try:
        with Scheduler(threads_from_environment()) as pool:
            return {"count": pool.workers, "problem": None}
    except EshkolError as error:  # ESHKOL_THREADS is no number, or the native runtime is missing
        return {"count": None, "problem": error.message}


def _kernel_cpu_facts() -> dict[str, str]:
    """The first processor of /proc/cpuinfo; nothing where there is no such file."""
    facts: dict[str, str] = {}
    with suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        for line in file:
            key, colon, value = line.partition(":")
            if not colon:
                break
            facts[key.strip()] = value.strip()
    return facts


def _examine_backends() -> dict[str, dict[str, Any]]:
    from eshkol.backends import NAMES, backend_class

    found = {}
    for name in NAMES:
        try:
            backend = backend_class(name)
            reason, targets = backend.unavailable(), list(backend.targets)
            machines = backend.machines()
        except (ImportError, OSError) as error:  # a package of an extra that is not installed, or does not load
            reason, targets, machines = str(error), [], []
        except Exception as error:  # of a driver, whatever it is: the others are to be shown
            reason, targets, machines = f"it does not load: {type(error).__name__}: {error}", [], []
        found[name] = {
            "available": reason is None, "reason": reason, "commands": commands_in(reason or ""), "targets": targets,
            "machines": machines,
        }  # fmt: skip
    return found


def commands_in(reason: str) -> list[str]:
    """The commands that a reason names, which would make available what is not."""
    return [command.rstrip(".:`") for command in COMMAND.findall(reason)]


def _examine_cache() -> dict[str, Any]:
    from eshkol.support.store import ProgramCache, default_directory

    try:
        cache = ProgramCache()
        stats = cache.stats()
        directory = cache.directory or default_directory()
        problem = _unwritable(directory) if cache.directory is not None else None
    except EshkolError as error:
        return {"directory": None, "on": False, "entries": 0, "bytes": 0, "problem": error.message}
    return {
        "directory": str(directory),
        "on": cache.directory is not None and problem is None,
        "entries": stats.disk_entries,
        "bytes": stats.disk_bytes,
        "problem": problem,
    }


def _unwritable(folder: Path) -> str | None:
    """Why nothing can be written to a folder, which need not be there yet; None when it seems possible."""
    there = next(place for place in (folder, *folder.parents) if place.exists())
    if not there.is_dir():
        return f"{folder}: '{there}' is not a folder"
    return None if os.access(there, os.W_OK | os.X_OK) else f"{folder}: '{there}' cannot be written to"


DEVICE_ABILITIES = {
    "float64": "float64", "float16": "float16", "int64": "int64", "int64_atomics": "atomics of 64 bits",
    "subgroups": "sub-groups",
}  # fmt: skip
COMMAND = re.compile(
    r"\b(?:pip|npm|brew|apt|apt-get) install"
    r"(?: +(?!(?:and|or|then|to|for|if)\b)(?:'[^']*'|[^\s,;()\[\]']+(?:\[[^\]]*\])?))+"  # names, quoted or with extras
)
SIMD_ABILITIES = {"fma": "fused multiply-add", "gather_scatter": "gather and scatter", "masks": "masks"}
VECTOR_FEATURES = ("sse4.2", "avx", "avx2", "fma", "f16c", "avx512", "amx", "neon", "asimd", "sve", "bf16", "i8mm")


def _doctor_table(report: dict[str, Any]) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Eshkol {report['eshkol']}", show_header=False, title_justify="left", title_style="bold")
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(overflow="fold")
    python, llvm, cpu, cache = (report[key] for key in ("python", "llvm", "cpu", "cache"))
    table.add_row("Python", Text(f"{python['version']} ({python['implementation']})"))
    table.add_row("platform", Text(report["platform"]))
    table.add_row("NumPy", report["numpy"])
    table.add_row("LAPACK", report["lapack"] or "NumPy's, through Python: SciPy offers none to native code")
    table.add_row(
        "LLVM", f"{llvm['llvm']}, llvmlite {llvm['llvmlite']}" if llvm else "llvmlite is not installed or does not load"
    )
    model = "" if cpu["model"] in ("unknown", cpu["name"]) else f" – {cpu['model']}"
    cores = "" if cpu["cores"] is None else f", {count_of(cpu['cores'], 'core')}"
    table.add_row("CPU", Text(f"{cpu['name']}{model}{cores}"))
    shown = [f for f in cpu["features"] if f.startswith(VECTOR_FEATURES)]
    others = len(cpu["features"]) - len(shown)
    table.add_row("vectors", Text(f"{' '.join(shown) or 'unknown'}{f' and {others} other features' * bool(others)}"))
    table.add_row("SIMD", Text(_simd_line(report["simd"])))
    threads = report["threads"]
    table.add_row("threads", Text(threads["problem"] or str(threads["count"])))
    table.add_section()
    for name, backend in report["backends"].items():
        if backend["available"]:
            found = Text("available", "green").append(
                f", emits {', '.join(backend['targets']) or 'nothing'}", "default"
            )
        else:
            found = Text("not available: ", "yellow").append(_without_commands(backend), "default")
        table.add_row(f"backend {name}", found)
        for command in backend["commands"]:
            table.add_row("", Text("try: ").append(command, "bold"))
        for machine in backend["machines"]:
            table.add_row("", Text(_machine_line(machine)))
    table.add_section()
    table.add_row("cache", Text(cache["problem"] or cache["directory"]))
    held = f"{count_of(cache['entries'], 'entry', 'entries')}, {size_of(cache['bytes'])}"
    table.add_row("", held if cache["on"] else "off: nothing is kept on disk")
    table.add_row("prepared", Text(_prepared_line(report["prepared"])))
    return table


def _prepared_line(found: dict[str, Any]) -> str:
    """What was compiled ahead, in a line or two."""
    if found["problem"] is not None:
        return f"nothing: {found['problem']}"
    held = f"{found['file']}\n{count_of(found['entries'], 'entry', 'entries')}, {size_of(found['bytes'])}"
    return held if found["current"] else f"{held}, of other sources or another machine: run `eshkol prepare`"


def _without_commands(backend: dict[str, Any]) -> str:
    """A reason up to the first command in it, which stands in a line of its own."""
    reason = str(backend["reason"])
    return reason.partition(backend["commands"][0])[0].rstrip(" :,(`'") if backend["commands"] else reason


def _machine_line(machine: dict[str, Any]) -> str:
    """A GPU, or another device, in a line: of each kind of machine, what its driver says of it."""

    def facts(key: str, otherwise: Any = None) -> Any:
        return machine.get(key, otherwise)

    said = [
        str(facts("name", "a device")), facts("summary"), facts("platform"),
        f"compute capability {facts('capability')}" if facts("capability") else None,
        size_of(facts("memory")) if facts("memory") else None,
        count_of(facts("units"), "compute unit") if facts("units") else None,
        count_of(facts("multiprocessors"), "multiprocessor") if facts("multiprocessors") else None,
        f"driver for CUDA {facts('driver')}" if facts("capability") else facts("driver"),
    ]  # fmt: skip
    lacking = [words for key, words in DEVICE_ABILITIES.items() if facts(key) is False]
    without = f", without {' and '.join(lacking)}" if lacking else ""
    return f"{facts('number', 0)}: {', '.join(str(part) for part in said if part)}{without}"


def _simd_line(simd: dict[str, Any] | None) -> str:
    if simd is None:
        return "no native code without llvmlite"
    if simd["problem"]:
        return str(simd["problem"])
    able = [words for key, words in SIMD_ABILITIES.items() if simd[key]]
    others = [level for level in simd["levels"] if level != simd["level"]]
    also = f"; ESHKOL_SIMD can ask for {', '.join(others)}" if others else ""
    return f"{simd['level']}, {simd['vector_bits']} bits, {', '.join(able) or 'plain arithmetic'}{also}"


def count_of(number: int, one: str, many: str | None = None) -> str:
    """'1 core', '2 cores'."""
    return f"{number} {one if number == 1 else many or one + 's'}"


def size_of(size: float) -> str:
    """A number of bytes for people."""
    for unit in ("bytes", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GiB"
