"""What is said on the command line, of `eshkol conformance` and of `python -m eshkol.conformance`.

Comes in: names of machines, what is to be compared, files of results. Goes out: a progress bar and each failure while
it goes on; tables, JSON and the page at the end, also after Ctrl-C; 0 where nothing failed, 1 where something did.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from eshkol.conformance.outcomes import FAIL
from eshkol.conformance.results import KINDS, MachineRun, read, together, written

SUMMARY = "compare machines with the interpreters: every instruction and every row, and what came out"
EPILOG = """\
examples:
  eshkol conformance                                     all machines that are here
  eshkol conformance opencl --seconds 600 --jobs 4       as far as ten minutes go, in four processes
  eshkol conformance cpu discrete --only ADD softmax     an instruction and a row
  eshkol conformance cuda --json cuda.json               kept, for a page that is written elsewhere
  eshkol conformance --from cpu.json cuda.json --docs docs/conformance.md

exit codes: 0 nothing failed, 1 something did, 2 the arguments make no sense, 130 Ctrl-C"""
INTERRUPTED = 130


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "machines", nargs="*", metavar="MACHINE", help="devices: cuda, opencl:1, cpu, … (default: all that are here)"
    )
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these instructions and rows alone")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=[*KINDS], help="what is compared")
    parser.add_argument("--seconds", type=float, metavar="S", help="of each machine: begin nothing after so long")
    parser.add_argument("--samples", type=int, metavar="N", help="so many of each row, in any dtype")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--all", action="store_true", help="show all rows, also those that agree everywhere")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what came out, for --from")
    parser.add_argument(
        "--from", type=Path, nargs="+", dest="files", metavar="FILE", help="results of earlier runs, too"
    )
    parser.add_argument("--docs", type=Path, metavar="FILE", help="write the page of all results: docs/conformance.md")
    parser.add_argument("--commit", default="", metavar="NAME", help="of the sources, where there is no git to ask")
    parser.set_defaults(run=lambda options: run(options, parser))


def run(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    """Compare, and tell; the exit code."""
    if options.jobs < 1 or (options.seconds is not None and not options.seconds > 0):
        parser.error("--jobs is 1 or more, and --seconds more than 0")
    if options.samples is not None and options.samples < 1:
        parser.error("--samples is 1 or more")
    if not options.commit.isprintable() or len(options.commit) > 100:
        parser.error("--commit is a short name")
    earlier = [found for file in options.files or () for found in read(file)]
    found: list[MachineRun] = []
    interrupted = False
    if options.machines or not options.files:
        interrupted = _compared(options, parser, found)
    runs = together([*earlier, *found])
    _show(runs, options.all or bool(options.only))
    if options.json is not None:
        options.json.write_text(written(runs), encoding="utf-8")
    if options.docs is not None:
        from eshkol.conformance.page import page

        options.docs.write_text(page(runs), encoding="utf-8")
    if interrupted:
        print("interrupted: this is what was seen so far", file=sys.stderr)
        return INTERRUPTED
    return int(any(one.counts()[FAIL] for one in runs))


def _compared(options: argparse.Namespace, parser: argparse.ArgumentParser, found: list[MachineRun]) -> bool:
    """Compare machine after machine; whether Ctrl-C ended it."""
    from eshkol.backends import available_backends
    from eshkol.conformance.runs import Plan, new_run, tasks

    plan = Plan(
        tuple(options.kinds), frozenset(options.only or ()), options.samples or Plan().samples,
        float("inf") if options.seconds is None else options.seconds,
    )  # fmt: skip
    machines = dict.fromkeys(options.machines or available_backends())
    begun = [new_run(machine, options.commit) for machine in machines]
    todo = tasks(plan)
    unknown = plan.only - {task.name.split()[0] for task in todo}
    if unknown:
        parser.error(f"there is no instruction or row {', '.join(sorted(unknown))}")
    found += begun
    try:
        for one in found:
            _go(one, plan, todo, options.jobs)
    except KeyboardInterrupt:
        found[:] = [one for one in found if one.rows]
        return True
    return False


def _go(one: MachineRun, plan: Any, todo: Sequence[Any], jobs: int) -> None:
    """Compare one machine, with a bar that says how far it is."""
    from eshkol.conformance.runs import LOST, Comparison
    from eshkol.train.progress import ProgressBar

    comparison = Comparison(one, plan, todo, jobs)
    with ProgressBar(len(comparison.todo), one.machine, file=sys.stderr) as bar:
        counts = {"pass": 0, "refused": 0, FAIL: 0}
        for number, outcome in enumerate(comparison.outcomes(), start=1):
            counts[outcome.result] += 1
            bar.update(number, counts)
            if outcome.result == FAIL:
                print(f"{one.machine}: {outcome}", file=sys.stderr, flush=True)
            if LOST in outcome.message:
                print(f"{one.machine}: the device is lost, and nothing more is compared there", file=sys.stderr)


def _show(runs: Sequence[MachineRun], every_row: bool) -> None:
    from rich.console import Console

    from eshkol.conformance.page import tables

    console = Console(highlight=False)
    for table in tables(runs, every_row):
        console.print(table)
        console.print()


def main(given: Sequence[str] | None = None) -> int:
    """`python -m eshkol.conformance`."""
    parser = argparse.ArgumentParser(
        prog="python -m eshkol.conformance", description=f"{SUMMARY[0].upper()}{SUMMARY[1:]}.", epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_options(parser)
    options = parser.parse_args(given)
    from eshkol.errors import EshkolError

    try:
        return int(options.run(options))
    except EshkolError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
