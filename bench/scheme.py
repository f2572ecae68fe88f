"""Programs of bench/scheme in Eshkol and in Chez Scheme, in turns; what starting costs, apart.

A program is NAME.scm behind the prelude of the system that runs it, which defines `measure`: it prints a value and the
seconds spent on it, so that neither starting nor compiling is counted. The values must agree. Chez compiles the whole
(`compile-program`, optimize-level 2, which checks types and bounds as Eshkol does) and runs that with `--program`;
Eshkol runs its program from the cache of a run before. `python -m bench scheme fib tak` runs some, and with `--busy`
CPU time is counted, less what starting costs.
"""

from __future__ import annotations

import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import harness

TITLE = "The language beside Chez Scheme"
FOLDER = Path(__file__).parent / "scheme"
NAMES = (
    "fib", "tak", "ack", "ctak", "nqueens", "deriv", "primes", "mandelbrot", "nbody", "fft", "quicksort", "strings",
    "tables", "factorial", "trees", "closures", "orders", "halves", "passing", "julia", "pegs", "types", "guards",
    "searches", "coroutines", "areas", "areas-typed",
)  # fmt: skip
TURNS = 5
LIMIT = 120  # seconds that a program may run
MOST = {"fib": 1.0, "tak": 1.0}  # what the ratio should be at most
MOST_MEAN = 1.5
START = "hello, from start to end"
MOST_START = 0.4  # seconds
HELLO = '(import (scheme base) (scheme write))\n(display "hello")\n(newline)\n'
CHEZ_HELLO = HELLO.replace("(import (scheme base) (scheme write))", "(import (chezscheme))")
COMPILE = '(optimize-level 2)\n(compile-program "{}" "{}")\n'


@dataclass(frozen=True)
class Row:
    """A program and the median seconds of each system; without those of ours, why it did not run."""

    name: str
    eshkol: float | None
    chez: float | None
    most: float | None = None
    fault: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.eshkol is None or self.chez is None else self.eshkol / self.chez


class Failed(Exception):
    """A program did not run, or not as it should."""


@cache
def chez() -> str | None:
    """The command of Chez Scheme: $CHEZ, or what is found of its usual names. Others call theirs `scheme`, too."""
    for name in [os.environ.get("CHEZ", "")] if "CHEZ" in os.environ else ["chezscheme", "chez", "scheme"]:
        command = shutil.which(name)
        if command is None:
            continue
        asked = subprocess.run(
            [command, "-q"], input="(scheme-version)", capture_output=True, text=True, timeout=LIMIT, check=False
        )
        if "Chez Scheme" in asked.stdout:
            return command
    return None


def eshkol(*arguments: str) -> list[str]:
    return [
        sys.executable,
        "-c",
        "import sys; from eshkol.cli.main import main; sys.exit(main(sys.argv[1:]))",
        *arguments,
    ]


def run(chosen: list[str]) -> list[Row]:
    """The rows whose names contain one of the words, or all."""
    names = [name for name in NAMES if not chosen or any(word in name for word in chosen)]
    if chez() is None:
        print(
            "Chez Scheme is not here (neither $CHEZ nor chezscheme, chez or scheme): Eshkol runs alone", file=sys.stderr
        )
    with tempfile.TemporaryDirectory() as folder:
        start, rows = _starts(Path(folder)), []
        for name in names:
            rows.append(_race(name, Path(folder), start))
        return [*rows, start.row]


@dataclass(frozen=True)
class _Start:
    """What it costs to start: the row, and the CPU time of each system."""

    row: Row
    eshkol: float
    chez: float


def _starts(folder: Path) -> _Start:
    ours, theirs = folder / "hello.esk", folder / "hello.ss"
    ours.write_text(HELLO)
    theirs.write_text(CHEZ_HELLO)
    commands = {"eshkol": eshkol("run", str(ours))}
    if (scheme := chez()) is not None:
        commands["chez"] = [scheme, "--program", _compiled(scheme, theirs)]
    waits: dict[str, list[float]] = {who: [] for who in commands}
    spent: dict[str, list[float]] = {who: [] for who in commands}
    try:
        _spawn(commands["eshkol"])  # compiles
        for _ in range(TURNS):
            for who, command in commands.items():
                begin = time.perf_counter()
                spent[who].append(_spawn(command)[1])
                waits[who].append(time.perf_counter() - begin)
    except Failed as fault:
        return _Start(Row(START, None, None, MOST_START, str(fault)), 0.0, 0.0)
    shown = spent if harness.clock is time.process_time else waits
    middle = {who: statistics.median(times) for who, times in shown.items()}
    row = Row(START, middle["eshkol"], middle.get("chez"), MOST_START)
    return _Start(row, statistics.median(spent["eshkol"]), statistics.median(spent.get("chez", [0.0])))


def _race(name: str, folder: Path, start: _Start) -> Row:
    """Run a program in turns: the first run of each is not counted."""
    program = (FOLDER / f"{name}.scm").read_text()
    ours, theirs = folder / f"{name}.esk", folder / f"{name}.ss"
    ours.write_text((FOLDER / "prelude-eshkol.scm").read_text() + program)
    theirs.write_text((FOLDER / "prelude-chez.scm").read_text() + program)
    commands = {"eshkol": (eshkol("run", str(ours)), start.eshkol)}
    if (scheme := chez()) is not None:
        commands["chez"] = ([scheme, "--program", _compiled(scheme, theirs)], start.chez)
    values: dict[str, str] = {}
    times: dict[str, list[float]] = {who: [] for who in commands}
    fault = ""
    for turn in range(TURNS + 1):
        for who, (command, starting) in commands.items():
            if who == "eshkol" and fault:
                continue
            try:
                output, cpu = _spawn(command)
                values[who], seconds = output.splitlines()[-2:]
                if turn:
                    times[who].append(cpu - starting if harness.clock is time.process_time else float(seconds))
            except (Failed, ValueError) as failure:
                if who == "chez":
                    raise
                fault = str(failure)
    if len(set(values.values())) > 1:
        fault = f"the results differ: {values['eshkol']} in Eshkol, {values['chez']} in Chez"
    middle = {who: statistics.median(found) for who, found in times.items() if found}
    return Row(name, None if fault else middle["eshkol"], middle.get("chez"), MOST.get(name), fault)


def _spawn(command: list[str]) -> tuple[str, float]:
    """What a process prints, and its CPU time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
    except subprocess.TimeoutExpired:
        raise Failed(f"it ran for more than {LIMIT} s") from None
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise Failed((done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[0])
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _compiled(scheme: str, program: Path) -> str:
    """A program compiled by Chez."""
    result = str(program.with_suffix(".so"))
    script = program.with_suffix(".compile")
    script.write_text(COMPILE.format(program, result))
    _spawn([scheme, "--script", str(script)])
    return result


def mean(rows: list[Row]) -> float | None:
    """The geometric mean of the ratios of the programs."""
    ratios = [row.ratio for row in rows if row.name != START and row.ratio is not None]
    return math.exp(statistics.fmean(map(math.log, ratios))) if ratios else None


def finish(name: str, rows: list[Row]) -> None:
    """Show, and save if it was a whole run."""
    table = Table(title=TITLE, title_justify="left")
    for column in ("program", "eshkol", "Chez", "eshkol / Chez", "should be at most"):
        table.add_column(column, justify="left" if column == "program" else "right")
    for row in rows:
        found, limit = (row.eshkol, "s") if row.name == START else (row.ratio, "×")
        over = " !" if row.fault or (found is not None and row.most is not None and found > row.most) else ""
        most = "" if row.most is None else f"{row.most:g} {limit}"
        ratio = row.fault or _times(row.ratio)
        table.add_row(row.name, _seconds(row.eshkol), _seconds(row.chez), ratio + over, most)
    if (middle := mean(rows)) is not None:
        table.add_section()
        over = " !" if middle > MOST_MEAN else ""
        table.add_row("geometric mean of the programs", "", "", _times(middle) + over, _times(MOST_MEAN))
    Console(width=110).print(table)
    if {row.name for row in rows} >= {*NAMES}:
        harness.record(name, TITLE, rows, mean=middle)
        _draw(name, rows)


def _draw(name: str, rows: list[Row]) -> None:
    pyplot = harness.plotter()
    shown = [(row.name, ratio) for row in rows if (ratio := row.ratio) is not None][::-1]
    figure, axes = pyplot.subplots(figsize=(9, 0.32 * len(shown) + 1.2), layout="constrained")
    axes.barh([label for label, _ in shown], [ratio for _, ratio in shown])
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("time of Eshkol over time of Chez Scheme (shorter is faster)")
    axes.set_title(TITLE)
    figure.savefig(harness.OUT / f"{name}.png", dpi=110)
    pyplot.close(figure)


def _seconds(value: float | None) -> str:
    return "" if value is None else harness.duration(value)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f} ×"
