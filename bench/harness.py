"""What every benchmark shares: timing by medians, tables, and JSON and PNG under bench/out/.

A benchmark module has `TITLE` and `run() -> list[Result]`, and where it shows its results in a way of its own `report`.
Contestants of one result are timed in turns, because a busy machine slows them together; ratios are therefore worth
more than times.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

OUT = Path(__file__).parent / "out"
TURNS = 4
PAUSE = 0.25  # seconds; OpenMP's threads wait busily for up to 0.2

clock = time.perf_counter  # what times are taken by; see `among_others`


def among_others() -> None:
    """Measure CPU time on one CPU from now on: on a machine that does other work too, that says more than waiting does.

    To be called before the libraries that are measured are imported: they start as many threads as there are CPUs.
    """
    global clock
    clock = time.process_time
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


@dataclass(frozen=True)
class Result:
    """One line of a table: what was measured, the unit of work, and the median seconds of each contestant."""

    name: str
    work: float  # units of work per call
    unit: str
    seconds: dict[str, float]


def race(
    name: str,
    contestants: Mapping[str, Callable[[], object]],
    *,
    work: float,
    unit: str,
    budget: float = 1.0,
    resets: Mapping[str, Callable[[], object]] | None = None,
) -> Result:
    """Time the contestants in turns, about `budget` seconds each in all; medians.

    A turn is a burst of calls, the first of which is not counted: it wakes the contestant's threads. Where peers with
    threads of their own are loaded, a pause before it lets those fall asleep; they wait in a busy loop for a while.
    One that takes longer than its budget for a single call has one turn. `resets` are called before a turn.
    """
    times: dict[str, list[float]] = {key: [] for key in contestants}
    others = clock is time.perf_counter and ("torch" in sys.modules or "jax" in sys.modules)
    pause = PAUSE if others else 0
    for call in contestants.values():
        call()  # compiles what is compiled at the first call
    for _ in range(TURNS):
        for key, call in contestants.items():
            if times[key] and min(times[key]) > budget:
                continue
            if resets and key in resets:
                resets[key]()
            time.sleep(pause)
            call()
            until = clock() + budget / TURNS
            while True:
                start = clock()
                call()
                end = clock()
                times[key].append(end - start)
                if end > until:
                    break
    return Result(name, work, unit, {key: statistics.median(values) for key, values in times.items()})


def show(title: str, results: list[Result]) -> None:
    """A table with times, rates and the ratio of each contestant to the first."""
    table = Table(title=title, title_justify="left")
    for column in ("measured", "who", "median", "rate", "against the first"):
        table.add_column(column, justify="left" if column in ("measured", "who") else "right")
    for result in results:
        first = next(iter(result.seconds.values()))
        for k, (who, seconds) in enumerate(result.seconds.items()):
            rate = f"{short(result.work / seconds)} {result.unit}/s"
            table.add_row(result.name if k == 0 else "", who, duration(seconds), rate, f"{seconds / first:.2f}×")
    Console(width=110).print(table)


def record(stem: str, title: str, results: Sequence[Any], **more: object) -> None:
    """bench/out/STEM.json: the machine, what else is to be known of the run, and the results, which are dataclasses."""
    OUT.mkdir(exist_ok=True)
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    found = {"title": title, **machine, **more, "results": [asdict(r) for r in results]}
    (OUT / f"{stem}.json").write_text(json.dumps(found, indent=1))


def plotter() -> Any:
    """Matplotlib's pyplot, for files. It is heavy, and wanted only when a picture is drawn."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot


def save(stem: str, title: str, results: list[Result]) -> None:
    """bench/out/STEM.json and STEM.png."""
    record(stem, title, results)
    pyplot = plotter()
    bars = [(f"{r.name} · {who}", r.work / s) for r in results for who, s in r.seconds.items()]
    figure, axes = pyplot.subplots(figsize=(9, 0.32 * len(bars) + 1.2), layout="constrained")
    axes.barh([name for name, _ in bars][::-1], [rate for _, rate in bars][::-1])
    axes.set_xscale("log")
    axes.set_xlabel("units of work per second (longer is faster)")
    axes.set_title(title)
    figure.savefig(OUT / f"{stem}.png", dpi=110)
    pyplot.close(figure)


def duration(seconds: float) -> str:
    """A time as a person reads it."""
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def short(rate: float) -> str:
    """A number with three digits or so and a letter for its size."""
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= scale:
            return f"{rate / scale:.1f}{letter}"
    return f"{rate:.1f}"
