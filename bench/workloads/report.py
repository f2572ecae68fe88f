"""Rows of the workload benchmark: run, checked, and shown as a table, JSON and a picture."""

from __future__ import annotations

import gc
import math
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from bench import gemm, harness, peers
from bench.workloads.contest import COMPILED, JAX, NUMPY, OURS, TORCH, Contestant, Workload

COLUMNS = (OURS, NUMPY, TORCH, COMPILED, JAX)
BUDGET = 1.0  # seconds of timing for each contestant
GOAL, LEAST = 1.0, 0.7  # of best peer / ours: the geometric mean, and every row


@dataclass(frozen=True)
class Row:
    """What a workload came to."""

    name: str
    bytes: float
    flops: float
    seconds: dict[str, float]  # medians
    failed: dict[str, str]  # by contestant, why
    floor: float | None  # seconds the machine needs for the bytes or FLOPs, whichever is more
    bound: str  # what the floor is made of: "B" or "FLOP"; "" where there is none

    @property
    def best_peer(self) -> float | None:
        """Seconds."""
        return min((s for who, s in self.seconds.items() if who != OURS), default=None)

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the best peer we are."""
        ours, best = self.seconds.get(OURS), self.best_peer
        return None if ours is None or best is None else best / ours

    @property
    def reached(self) -> float | None:
        """The fraction of the machine's bandwidth or FLOP peak that we reach."""
        ours = self.seconds.get(OURS)
        return None if ours is None or self.floor is None else self.floor / ours


def measure(workload: Workload, peak: float) -> Row:
    """Check the contestants of a workload against each other and time those that did not fail."""
    print(f"{workload.name} …", file=sys.stderr, flush=True)
    failed: dict[str, str] = {}
    contestants = workload.make(np.random.default_rng(0))
    agreed = _agreeing(contestants, workload.tolerance, failed)
    resets = {who: c.reset for who, c in agreed.items() if c.reset is not None}
    calls = {who: c.call for who, c in agreed.items()}
    result = harness.race(workload.name, calls, work=1, unit="calls", budget=BUDGET, resets=resets)
    floors = [(workload.flops / peak, "FLOP")]
    speed = peers.bandwidth(int(workload.bytes)) if workload.bytes else None
    if speed:
        floors.append((workload.bytes / speed, "B"))
    floor, bound = max(floors)
    found = (floor, bound) if floor > 0 else (None, "")
    return Row(workload.name, workload.bytes, workload.flops, result.seconds, failed, *found)


def _agreeing(contestants: dict[str, Contestant], tolerance: float, failed: dict[str, str]) -> dict[str, Contestant]:
    """Those whose results are the middle of all, element by element; the others go to `failed`."""
    results: dict[str, list[np.ndarray]] = {}
    for who, contestant in contestants.items():
        try:
            results[who] = contestant.check()
        except Exception as error:
            failed[who] = f"{type(error).__name__}: {error}".splitlines()[0]
    shapes = [[a.shape for a in found] for found in results.values()]
    for who, found in list(results.items()):
        if shapes.count([a.shape for a in found]) * 2 < len(shapes):
            failed[who] = f"its results have shapes {[list(a.shape) for a in found]}"
            del results[who]
    if results:
        middles = [_middle(list(these)) for these in zip(*results.values(), strict=True)]
        for who, found in results.items():
            away = max(_distance(a, m) for a, m in zip(found, middles, strict=True))
            if not away <= tolerance:
                failed[who] = (
                    f"its result is {away:.2g} of the largest element away from the others', {tolerance:g} allowed"
                )
    return {who: c for who, c in contestants.items() if who not in failed}


def _middle(found: Sequence[np.ndarray]) -> np.ndarray:
    return np.median(np.stack([a.astype(np.float32, copy=False) for a in found]), 0)


def _distance(a: np.ndarray, middle: np.ndarray) -> float:
    """The largest difference, as a fraction of the largest element."""
    largest = float(np.abs(middle).max(initial=0))
    return float(np.abs(a - middle).max(initial=0)) / (largest or 1.0)


def run(workloads: Sequence[Workload]) -> list[Row]:
    """A row for each workload."""
    peak, rows = gemm.peak(), []
    for workload in workloads:
        try:
            rows.append(measure(workload, peak))
        except Exception as error:  # one row must not cost the others
            failed = {OURS: f"{type(error).__name__}: {error}".splitlines()[0]}
            rows.append(Row(workload.name, workload.bytes, workload.flops, {}, failed, None, ""))
        gc.collect()
    return rows


# --- output ---------------------------------------------------------------------------------------


def mean(rows: Sequence[Row]) -> float | None:
    """The geometric mean of best peer / ours over the rows that have it."""
    ratios = [row.ratio for row in rows if row.ratio is not None]
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None


def show(title: str, rows: Sequence[Row]) -> None:
    """The table, what failed, the geometric mean and the worst row."""
    cpus = len(os.sched_getaffinity(0))
    table = Table(title=f"{title} ({cpus} CPUs)", title_justify="left")
    table.add_column("workload")
    for column in (*COLUMNS, "best peer / ours", "least work", "of the machine"):
        table.add_column(column, justify="right")
    for row in rows:
        cells = [_cell(row, column) for column in COLUMNS]
        ratio = "" if row.ratio is None else f"{row.ratio:.2f}"
        work = {"B": f"{harness.short(row.bytes)}B", "FLOP": f"{harness.short(row.flops)}FLOP"}.get(row.bound, "")
        table.add_row(row.name, *cells, ratio, work, "" if row.reached is None else f"{row.reached:.0%}")
    Console(width=172).print(table)
    for row in rows:
        for who, why in row.failed.items():
            print(f"failed: {row.name}, {who}: {why}")
    found = [row for row in rows if row.ratio is not None]
    if found:
        worst = min(found, key=lambda row: row.ratio or 0.0)
        under = sum((row.ratio or 0.0) < LEAST for row in found)
        print(f"best peer / ours: geometric mean {mean(rows):.2f} of {len(found)} rows, {under} under {LEAST}")
        print(f"worst: {worst.name}, {worst.ratio:.2f}")


def _cell(row: Row, column: str) -> str:
    """The best of what a library did; who has variants names them 'PyTorch, foreach'."""
    mine = {who: s for who, s in row.seconds.items() if who.split(", ")[0] == column}
    if mine:
        who = min(mine, key=lambda key: mine[key])
        return harness.duration(mine[who])
    return "failed" if column in row.failed else "–"


def save(stem: str, title: str, rows: Sequence[Row]) -> None:
    """bench/out/STEM.json and STEM.png."""
    machine = {"cpus": len(os.sched_getaffinity(0)), "flop_peak": gemm.peak(), "bandwidth": peers.bandwidth(1 << 28)}
    derived = {row.name: {"best_peer_over_ours": row.ratio, "of_the_machine": row.reached} for row in rows}
    harness.record(stem, title, rows, **machine, derived=derived, geometric_mean=mean(rows))
    found = [(row.name, row.ratio) for row in rows if row.ratio is not None][::-1]
    pyplot = harness.plotter()
    figure, axes = pyplot.subplots(figsize=(9, 0.32 * len(found) + 1.2), layout="constrained")
    colours = ["tab:green" if r >= GOAL else "tab:orange" if r >= LEAST else "tab:red" for _, r in found]
    axes.barh([name for name, _ in found], [r for _, r in found], color=colours)
    axes.set_xscale("log")
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xlabel("time of the best peer / ours (more than 1: Eshkol is faster)")
    axes.set_title(title)
    figure.savefig(harness.OUT / f"{stem}.png", dpi=110)
    pyplot.close(figure)
