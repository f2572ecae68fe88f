"""What every benchmark shares: timing by medians, tables, and JSON and PNG under bench/out/.

A benchmark module has `TITLE` and `run() -> list[Result]`. Contestants of one result are timed in turn within
one loop, because a busy machine slows them together; ratios are therefore worth more than times.
"""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

OUT = Path(__file__).parent / "out"


@dataclass(frozen=True)
class Result:
    """One line of a table: what was measured, the unit of work, and the median seconds of each contestant."""

    name: str
    work: float  # units of work per call
    unit: str
    seconds: dict[str, float]


def race(
    name: str, contestants: Mapping[str, Callable[[], object]], *, work: float, unit: str, budget: float = 1.0
) -> Result:
    """Time the contestants turn by turn for about `budget` seconds each; medians."""
    times: dict[str, list[float]] = {key: [] for key in contestants}
    for call in contestants.values():
        call()  # warm up
    until = time.perf_counter() + budget * len(contestants)
    while time.perf_counter() < until or len(next(iter(times.values()))) < 3:
        for key, call in contestants.items():
            start = time.perf_counter()
            call()
            times[key].append(time.perf_counter() - start)
    return Result(name, work, unit, {key: statistics.median(values) for key, values in times.items()})


def show(title: str, results: list[Result]) -> None:
    """A table with times, rates and the ratio of each contestant to the first."""
    table = Table(title=title, title_justify="left")
    for column in ("measured", "who", "median", "rate", "against the first"):
        table.add_column(column, justify="left" if column in ("measured", "who") else "right")
    for result in results:
        first = next(iter(result.seconds.values()))
        for k, (who, seconds) in enumerate(result.seconds.items()):
            rate = f"{_short(result.work / seconds)} {result.unit}/s"
            table.add_row(result.name if k == 0 else "", who, _time(seconds), rate, f"{seconds / first:.2f}×")
    Console(width=110).print(table)


def save(stem: str, title: str, results: list[Result]) -> None:
    """bench/out/STEM.json and STEM.png."""
    OUT.mkdir(exist_ok=True)
    machine = {"machine": platform.machine(), "python": platform.python_version()}
    record = {"title": title, **machine, "results": [asdict(r) for r in results]}
    (OUT / f"{stem}.json").write_text(json.dumps(record, indent=1))
    import matplotlib  # heavy, and wanted only here

    matplotlib.use("Agg")
    from matplotlib import pyplot

    bars = [(f"{r.name} · {who}", r.work / s) for r in results for who, s in r.seconds.items()]
    figure, axes = pyplot.subplots(figsize=(9, 0.32 * len(bars) + 1.2), layout="constrained")
    axes.barh([name for name, _ in bars][::-1], [rate for _, rate in bars][::-1])
    axes.set_xscale("log")
    axes.set_xlabel("units of work per second (longer is faster)")
    axes.set_title(title)
    figure.savefig(OUT / f"{stem}.png", dpi=110)
    pyplot.close(figure)


def _time(seconds: float) -> str:
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= scale:
            return f"{seconds / scale:.2f} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def _short(rate: float) -> str:
    for scale, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= scale:
            return f"{rate / scale:.1f}{letter}"
    return f"{rate:.1f}"
