"""Whole workloads under `ek.jit` beside NumPy, PyTorch as it is and compiled, and JAX, on two CPUs, in one run.

`python -m bench workloads softmax gpt` runs those whose names contain one of the words. Every contestant's results are
checked against the others' before it is timed; what raises or differs is shown as failed and ends nothing.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bench.workloads import layers, numeric, report, training

TITLE = "Workloads"
CPUS = 2
WORKLOADS = (*numeric.WORKLOADS, *layers.WORKLOADS, *training.WORKLOADS)


def run(words: Sequence[str] = ()) -> list[report.Row]:
    """Rows of the workloads whose names contain one of the words, or of all."""
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, usable[:CPUS])  # before the peers are imported: they start as many threads
    try:
        return report.run([w for w in WORKLOADS if not words or any(x.lower() in w.name.lower() for x in words)])
    finally:
        os.sched_setaffinity(0, usable)


def finish(name: str, rows: list[report.Row]) -> None:
    """Show, and save if it was a whole run."""
    report.show(TITLE, rows)
    if len(rows) == len(WORKLOADS):
        report.save(name, TITLE, rows)
