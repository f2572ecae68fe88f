"""Rows as they came out: measured one after another, sorted by ratio, shown and written."""

from __future__ import annotations

import gc
import json
import math
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import harness
from bench.every import contest
from bench.every.row import JAX, OURS, TORCH, Row

LEAST, FAIR, GOAL = 0.7, 0.9, 1.2  # of best peer / ours: every row, nearly every row, the geometric mean


@dataclass(frozen=True)
class Measured:
    """What a row came to."""

    name: str
    family: str
    dtype: str
    size: int
    seconds: dict[str, float] = field(default_factory=dict)  # medians
    failed: dict[str, str] = field(default_factory=dict)  # by library, why

    @property
    def best(self) -> str | None:
        """The fastest peer."""
        return min((w for w in self.seconds if w != OURS), key=lambda w: self.seconds[w], default=None)

    @property
    def ratio(self) -> float | None:
        """The best peer's time / ours: more than 1 if we are faster."""
        return self.seconds[self.best] / self.seconds[OURS] if self.best and OURS in self.seconds else None


def measure(row: Row, budget: float) -> Measured:
    """Check the libraries against each other, and time those that agree with us."""
    failed: dict[str, str] = {}
    try:
        seconds = contest.timed(contest.agreeing(row, contest.contestants(row), failed), budget)
    except Exception as error:  # one row must not cost the others
        seconds, failed[OURS] = {}, f"{type(error).__name__}: {error}".splitlines()[0]
    gc.collect()
    return Measured(row.name, row.family, row.dtype, row.size, seconds, failed)


def run(rows: Sequence[Row], budget: float) -> list[Measured]:
    """All of them, with a bar on stderr, or a line for each where no one sees a bar."""
    found = []
    columns = TextColumn("{task.description:44}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=len(rows))
        for row in rows:
            progress.update(task, description=row.name)
            found.append(measure(row, budget))
            if not console.is_terminal:
                ratio = found[-1].ratio
                print(f"{row.name}: {'no ratio' if ratio is None else f'{ratio:.2f}'}", file=sys.stderr, flush=True)
            progress.advance(task)
    return found


def by_ratio(rows: Iterable[Measured]) -> list[Measured]:
    """The worst first, rows without a ratio at the end."""
    return sorted(rows, key=lambda row: math.inf if row.ratio is None else row.ratio)


def mean(rows: Iterable[Measured]) -> float | None:
    """The geometric mean of the ratios."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def under(rows: Iterable[Measured], bound: float) -> int:
    return sum(row.ratio is not None and row.ratio < bound for row in rows)


def show(title: str, rows: Sequence[Measured]) -> None:
    table = Table(title=f"{title} ({len(os.sched_getaffinity(0))} CPUs), the worst first", title_justify="left")
    for column in ("row", "family", "dtype", "size", "ours", "best peer", "", "peer / ours"):
        table.add_column(column, justify="left" if column in ("row", "family", "dtype", "best peer") else "right")
    for row in by_ratio(rows):
        ours = harness.duration(row.seconds[OURS]) if OURS in row.seconds else "failed"
        theirs = harness.duration(row.seconds[row.best]) if row.best else ""
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        table.add_row(row.name, row.family, row.dtype, f"{row.size:,}", ours, row.best or "none", theirs, ratio)
    Console(width=140).print(table)
    for row in rows:
        for who, why in row.failed.items():
            print(f"failed: {row.name}, {who}: {why}")
    timed = sum(row.ratio is not None for row in rows)
    if (middle := mean(rows)) is not None:
        print(f"best peer / ours: geometric mean {middle:.2f} (wanted: {GOAL}) of {timed} rows; "
              f"{under(rows, LEAST)} under {LEAST} (0), {under(rows, FAIR)} under {FAIR} (5 at most)")  # fmt: skip


def write(path: Path, title: str, rows: Sequence[Measured]) -> None:
    """JSON that `compare` reads, and a person."""
    versions = {who: _version(who) for who in (TORCH, JAX)}
    machine = {"machine": platform.machine(), "cpus": len(os.sched_getaffinity(0)), "python": platform.python_version()}
    lines = [{**asdict(row), "best": row.best, "ratio": row.ratio} for row in by_ratio(rows)]
    counts = {"geometric_mean": mean(rows), "under_0.7": under(rows, LEAST), "under_0.9": under(rows, FAIR)}
    path.write_text(json.dumps({"title": title, **machine, **versions, **counts, "rows": lines}, indent=1) + "\n")


def _version(who: str) -> str | None:
    module = contest.module(who)
    from bench import peers

    if who == JAX and module:
        module = peers.jax()
    return str(module.__version__) if module else None


def read(path: Path) -> dict[str, Measured]:
    """What `write` wrote, by name."""
    fields: Any = Measured.__dataclass_fields__
    rows = json.loads(path.read_text())["rows"]
    return {row["name"]: Measured(**{key: row[key] for key in fields}) for row in rows}
