"""Derivatives of the programs of bench/calculus: beside the functions themselves, ones by hand, PyTorch and JAX.

A program is NAME.esk behind prelude.esk. It measures itself and prints lines of a key and seconds: the function, its
derivative by an operator of the language (compiled, when it is first asked for), the same with nothing compiled, and
the derivative that a person wrote. Peers (bench/calculus_peers.py) do likewise; each is a process of its own, in turns.
Before each of our turns the cache holds the libraries and the program, but no derivative; our modules are compiled to
Python's bytecode, as those of everything that is installed are. Every process has taken the derivative of another
function when it is measured, so that libraries and compilers are loaded.

A row's task needs a number of derivatives, `job`: that is what walls are of, the first with its compilation and the
others as long as they take by the median. All derivatives must agree. `python -m bench calculus rk4` runs some rows.
With `--busy` the least of all times stands for the median; they are of a clock on the wall nevertheless.
"""

from __future__ import annotations

import importlib.util
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from bench import harness

TITLE = "Derivatives beside functions, hand-written ones, PyTorch and JAX"
FOLDER = Path(__file__).parent / "calculus"
PEERS = {"torch": "PyTorch", "jax": "JAX"}
TURNS = 3
LIMIT = 300  # seconds that a process may run
LONG = 20  # seconds that a process takes which has no second turn
MOST, MOST_DYNAMIC, LEAST = 4.0, 30.0, 1.0  # derivative / function, with nothing compiled, best peer / ours
NEAR = 1e-9  # how far derivatives may differ, by the largest number of them


@dataclass(frozen=True)
class Task:
    """What a row is about, and how many derivatives its task takes."""

    name: str
    what: str
    job: int
    why: str
    program: str = ""  # ours, where it has another name


TASKS = (
    Task("rosenbrock", "Rosenbrock, n = 10⁵, a loop", 500, "steps of a minimisation"),
    Task("vectors", "the same; peers by whole vectors", 500, "steps of a minimisation", "rosenbrock"),
    Task("rk4", "Lotka-Volterra, 10⁴ steps", 100, "steps of a fit of four rates"),
    Task("nbody", "energy of 80 bodies", 1000, "forces of as many steps in time"),
    Task("logistic", "logistic regression, lists", 1000, "steps of a descent"),
    Task("bundle", "400 Jacobians of bundles", 50, "steps of Gauss and Newton"),
    Task("mixture", "mixture of 5 normals", 1000, "steps of an ascent"),
)


@dataclass(frozen=True)
class Row:
    """A task and the median seconds of each key, of us and of each peer; or why there are none."""

    name: str
    what: str
    job: int
    eshkol: dict[str, float] = field(default_factory=dict)
    peers: dict[str, dict[str, float]] = field(default_factory=dict)
    apart: float = 0.0  # how far derivatives differ
    fault: str = ""

    @property
    def ratio(self) -> float:
        return self.eshkol["derivative"] / self.eshkol["primal"]

    @property
    def dynamic(self) -> float:
        return self.eshkol["dynamic"] / self.eshkol["primal"]

    def wall(self, found: dict[str, float]) -> float:
        return found["first"] + (self.job - 1) * found["derivative"]

    @property
    def best(self) -> float | None:
        """The wall of the best peer over ours."""
        return min(map(self.wall, self.peers.values())) / self.wall(self.eshkol) if self.peers else None


class Failed(Exception):
    """A process did not run, or not as it should."""


def run(chosen: list[str]) -> list[Row]:
    """The rows whose names contain one of the words, or all."""
    tasks = [task for task in TASKS if not chosen or any(word in task.name for word in chosen)]
    here = [who for who in PEERS if importlib.util.find_spec(who) is not None]
    for who in PEERS.keys() - here:
        print(f"{PEERS[who]} is not installed: it does not take part", file=sys.stderr)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for task in tasks:
            try:
                rows.append(_contest(task, here, Path(folder)))
            except Failed as fault:
                rows.append(Row(task.name, task.what, task.job, fault=str(fault)))
    return rows


def _contest(task: Task, here: list[str], folder: Path) -> Row:
    program = folder / f"{task.program or task.name}.esk"
    program.write_text((FOLDER / "prelude.esk").read_text() + (FOLDER / program.name).read_text())
    cache = folder / "cache"  # with the libraries and the programs of all rows
    compiling = _prepared(program, cache)
    found: dict[str, list[dict[str, float]]] = {who: [] for who in ("eshkol", *here)}
    derivatives: dict[str, np.ndarray] = {}
    tired: set[str] = set()
    for _ in range(TURNS):
        for who in found:
            if who in tired:
                continue
            begin = time.perf_counter()
            output = folder / f"{who}.out"
            if who == "eshkol":
                found[who].append(_ours(program, cache, output))
            else:
                found[who].append(_keys([sys.executable, "-m", "bench.calculus_peers", who, task.name, str(output)]))
            if time.perf_counter() - begin > LONG:
                tired.add(who)
            for k, line in enumerate(output.read_text().splitlines()):
                derivatives[f"{who} {k}"] = np.array(re.sub(r"[#()]", " ", line).split(), np.float64)
    middle = {who: {key: _one(t[key] for t in turns) for key in turns[0]} for who, turns in found.items()}
    apart = _apart(derivatives)
    fault = f"the derivatives differ by {apart:.1e}" if not apart <= NEAR else ""
    ours = {**middle.pop("eshkol"), "program": compiling}
    return Row(task.name, task.what, task.job, ours, middle, apart, fault)


def _eshkol(*arguments: object) -> list[str]:
    command = "import sys; from eshkol.cli.main import main; sys.exit(main(sys.argv[1:]))"
    return [sys.executable, "-c", command, "run", *map(str, arguments)]


def _prepared(program: Path, cache: Path) -> float:
    """Put a program, but no derivative, into the cache. The seconds that it takes to compile, all of it."""
    if not cache.exists():
        package = importlib.util.find_spec("eshkol")
        assert package is not None
        assert package.submodule_search_locations is not None
        _keys([sys.executable, "-m", "compileall", "-q", *package.submodule_search_locations], cache)
        hello = program.with_name("hello.esk")
        hello.write_text((FOLDER / "prelude.esk").read_text())
        _keys(_eshkol(hello), cache)  # compiles the libraries
    waits = []
    for _ in range(2):
        begin = time.perf_counter()
        _keys(_eshkol(program), cache)
        waits.append(time.perf_counter() - begin)
    return max(0.0, waits[0] - waits[1])


def _ours(program: Path, cache: Path, output: Path) -> dict[str, float]:
    """A turn from a cache without derivatives, and the first derivative again from a cache that has it."""
    fresh = cache.with_name("fresh")
    shutil.copytree(cache, fresh)
    try:
        found = _keys(_eshkol(program, output), fresh)
        return {**found, "again": _keys(_eshkol(program, output, "first"), fresh)["first"]}
    finally:
        shutil.rmtree(fresh)


def _keys(command: list[str], cache: Path | None = None) -> dict[str, float]:
    """What a process prints."""
    environment = dict(os.environ)
    if cache is not None:
        environment |= {"ESHKOL_CACHE_DIR": str(cache), "PYTHONPYCACHEPREFIX": str(cache.with_name("bytecode"))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=LIMIT, check=False, env=environment,
            cwd=FOLDER.parent.parent,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise Failed(f"it ran for more than {LIMIT} s") from None
    if done.returncode:
        raise Failed((done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[0])
    lines = [line.split() for line in done.stdout.splitlines()]
    return {key: float(least if _busy() else median) for key, median, least in lines}


def _busy() -> bool:
    return harness.clock is time.process_time


def _one(times: Iterable[float]) -> float:
    return min(times) if _busy() else statistics.median(times)


def _apart(derivatives: dict[str, np.ndarray]) -> float:
    """The largest difference to the first, by its largest number."""
    first, *others = derivatives.values()
    if any(first.shape != other.shape for other in others):
        return math.inf
    return float(max(np.abs(first - other).max() for other in others) / np.abs(first).max())


def finish(name: str, rows: list[Row]) -> None:
    """Show, and save if it was a whole run."""
    console = Console(width=118)
    console.print(_beside_functions(rows))
    console.print(_beside_peers(rows))
    for row in rows:
        if row.fault:
            console.print(f"{row.name}: {row.fault} !", style="red")
    if {row.name for row in rows} >= {task.name for task in TASKS}:
        harness.record(name, TITLE, rows, jobs={task.name: f"{task.job} {task.why}" for task in TASKS})
        _draw(name, [row for row in rows if row.eshkol])


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left")
    for k, column in enumerate(columns):
        table.add_column(column, justify="right" if k else "left")
    return table


def _beside_functions(rows: list[Row]) -> Table:
    table = _table(
        "Derivatives beside the functions themselves", "one derivative of", "function", "by hand", "compiled",
        f"× function (≤ {MOST:g})", "dynamic", f"× function (≤ {MOST_DYNAMIC:g})",
    )  # fmt: skip
    for row in rows:
        if row.eshkol:
            seconds = [harness.duration(row.eshkol[key]) for key in ("primal", "hand", "derivative", "dynamic")]
            ratios = [_checked(row.ratio, row.ratio <= MOST), _checked(row.dynamic, row.dynamic <= MOST_DYNAMIC)]
            table.add_row(row.what, *seconds[:3], ratios[0], seconds[3], ratios[1])
    return table


def _beside_peers(rows: list[Row]) -> Table:
    table = _table(
        "Whole tasks, compilation included: in all, the first derivative, each of the others",
        "task", "derivatives", "Eshkol", *PEERS.values(), f"best / ours (≥ {LEAST:g})",
    )  # fmt: skip
    for row in rows:
        if row.eshkol:
            walls = [_wall(row, found) for found in (row.eshkol, *(row.peers.get(who) for who in PEERS))]
            best = "" if row.best is None else _checked(row.best, row.best >= LEAST)
            table.add_row(row.name, str(row.job), *walls, best)
    return table


def _wall(row: Row, found: dict[str, float] | None) -> str:
    if found is None:
        return ""
    first, later = harness.duration(found["first"]), harness.duration(found["derivative"])
    return f"{harness.duration(row.wall(found))}\n{first}\n{later}"


def _checked(ratio: float, well: bool) -> str:
    return f"{ratio:.2f} ×" + ("" if well else " !")


def _draw(name: str, rows: list[Row]) -> None:
    pyplot = harness.plotter()
    who = ["Eshkol", *(label for key, label in PEERS.items() if any(key in row.peers for row in rows))]
    figure, axes = pyplot.subplots(figsize=(9, 0.28 * len(rows) * len(who) + 1.4), layout="constrained")
    for k, label in enumerate(who):
        found = [row.eshkol if label == "Eshkol" else row.peers.get(_key(label), {}) for row in rows]
        places = [-(i * (len(who) + 1) + k) for i, seconds in enumerate(found) if seconds]
        walls = [row.wall(seconds) for row, seconds in zip(rows, found, strict=True) if seconds]
        axes.barh(places, walls, label=label)
    axes.set_yticks([-(i * (len(who) + 1) + (len(who) - 1) / 2) for i in range(len(rows))], [row.name for row in rows])
    axes.set_xscale("log")
    axes.set_xlabel("seconds for the whole task, compilation included (shorter is faster)")
    axes.set_title(TITLE)
    axes.legend()
    figure.savefig(harness.OUT / f"{name}.png", dpi=110)
    pyplot.close(figure)


def _key(label: str) -> str:
    return next(key for key, text in PEERS.items() if text == label)
