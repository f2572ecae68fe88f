"""Training steps of an MLP, a CNN, an LSTM and a small GPT beside PyTorch, as it is and compiled, on two CPUs.

`python -m bench steps lstm gpt` runs those that are named. A row holds the time of a step (contestants take turns), how
many times as fast as the better of PyTorch's two ours is, the first step from nothing and from the disk, and the memory
that a process with compiled programs at hand holds at most, beyond what was there before its first step (parameters and
batch) and in all; each of those in a fresh process.
All begin with the same parameters, and losses and gradients are compared before anything is timed.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.console import Console
from rich.table import Table

from bench import harness, peers
from bench.steps.models import MODELS, Model
from bench.steps.process import Order, Report, ask, steps_of

TITLE = "Training steps beside PyTorch"
CPUS = 2
NAMES = {"eshkol": "eshkol", "torch": "PyTorch", "compiled": "torch.compile"}
OURS = "eshkol"
BUDGET = 2.0  # seconds of timing for each contestant
TOLERANCE = 1e-4  # between contestants, as a fraction of the largest element of a gradient


@dataclass(frozen=True)
class Row:
    """What a network came to, by contestant."""

    name: str
    seconds: dict[str, float]  # of a step, medians
    cold: dict[str, Report]  # fresh processes with nothing compiled before
    warm: dict[str, Report]  # and again

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the best peer we are."""
        best = min((s for who, s in self.seconds.items() if who != OURS), default=None)
        return None if best is None else best / self.seconds[OURS]


def run(words: Sequence[str] = ()) -> list[Row]:
    """A row for each network that is named, or for all."""
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, usable[:CPUS])  # before the peers are imported: they start as many threads
    try:
        return [_measured(m) for m in MODELS if not words or m.name in words]
    finally:
        os.sched_setaffinity(0, usable)


def _measured(model: Model) -> Row:
    print(f"{model.title} …", file=sys.stderr, flush=True)
    contestants = [who for who in NAMES if who == OURS or peers.torch()]
    busy = harness.clock is time.process_time
    cold, warm = {}, {}
    for who in contestants:
        with tempfile.TemporaryDirectory() as cache:
            cold[who] = ask(Order(who, model.name, busy), cache)
            warm[who] = ask(Order(who, model.name, busy), cache)
    steps = {who: steps_of(who, model.name) for who in contestants}
    losses = {who: s.step().item() for who, s in steps.items()}
    means = {who: s.means() for who, s in steps.items()}
    for who in contestants[1:]:
        _agree(f"{model.title}, {NAMES[who]}", losses[OURS], losses[who], means[OURS], means[who])
    result = harness.race(model.title, {who: s.step for who, s in steps.items()}, work=1, unit="steps", budget=BUDGET)
    return Row(model.title, result.seconds, cold, warm)


def _agree(what: str, loss: float, other: float, means: list[np.ndarray], others: list[np.ndarray]) -> None:
    """Refuse to time what computes something else."""
    away = [float(np.abs(a - b).max()) / (float(np.abs(b).max()) or 1.0) for a, b in zip(means, others, strict=True)]
    if abs(loss - other) > TOLERANCE * abs(other) or max(away) > TOLERANCE:
        raise RuntimeError(f"{what}: losses are {loss} and {other}, gradients differ by {max(away):.2g} of the largest")


def finish(name: str, rows: list[Row]) -> None:
    """Show, and save if it was a whole run."""
    table = Table(title=TITLE, title_justify="left")
    for column in ("network", "who", "a step", "best peer / ours", "first, cold", "first, warm", "memory", "process"):
        table.add_column(column, justify="left" if column in ("network", "who") else "right")
    for row in rows:
        for who, seconds in row.seconds.items():
            ours, warm = who == OURS, row.warm[who]
            ratio = f"{row.ratio:.2f} ×{'' if row.ratio >= 1 else ' !'}" if ours and row.ratio is not None else ""
            firsts = harness.duration(row.cold[who].first), harness.duration(warm.first)
            memory = f"{harness.short(warm.beyond)}B", f"{harness.short(warm.peak)}B"
            table.add_row(row.name if ours else "", NAMES[who], harness.duration(seconds), ratio,
                          *firsts, *memory)  # fmt: skip
    Console(width=130).print(table)
    if len(rows) == len(MODELS):
        _save(name, rows)


def _save(name: str, rows: list[Row]) -> None:
    harness.record(name, TITLE, rows)
    pyplot = harness.plotter()
    figure, sides = pyplot.subplots(1, 2, figsize=(13, 0.4 * len(rows) * len(NAMES) + 1.2), layout="constrained")
    bars = [
        (f"{row.name} · {NAMES[who]}", row.seconds[who], row.warm[who].beyond) for row in rows for who in row.seconds
    ]
    for axes, place, label in ((sides[0], 1, "seconds a step"), (sides[1], 2, "bytes beyond the start")):
        axes.barh([bar[0] for bar in bars][::-1], [bar[place] for bar in bars][::-1])
        axes.set_xlabel(label)
    figure.suptitle(TITLE)
    figure.savefig(harness.OUT / f"{name}.png", dpi=110)
    pyplot.close(figure)
