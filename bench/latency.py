"""How long a training step takes to compile, from nothing and from the disk, and what memory it needs.

Every figure is of a process of its own (`child.py`). Cold means an empty folder for compiled programs, warm the folder
of a process before. Compiling is the first step less a later one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from rich.console import Console
from rich.table import Table

from bench import harness, peers
from bench.child import Order, Report

TITLE = "Latency and memory of training steps"
LAYERS = (2, 6, 12, 24, 48)
MANY = 10_000  # steps over which memory must stay flat
LIMIT = 600  # seconds for a process


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    name: str
    who: str
    value: float
    unit: str  # "s" or "B", or "×" for a ratio
    most: float | None = None  # what it should stay below


def _child(order: Order, cache: str) -> Report:
    """What a fresh process reports, whose compiled programs, of whatever library, are in a folder."""
    folders = {"ESHKOL_CACHE_DIR": cache, "TORCHINDUCTOR_CACHE_DIR": f"{cache}/inductor"}
    command = [sys.executable, "-m", "bench.child"]
    arguments = json.dumps(asdict(order) | {"started": time.time(), "busy": harness.clock is time.process_time})
    done = subprocess.run(
        [*command, arguments], env=os.environ | folders, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    if done.returncode:
        raise RuntimeError((done.stderr.strip().splitlines() or ["it ended without a word"])[-1])
    return Report(**json.loads(done.stdout.splitlines()[-1]))


def _compiling(model: str, name: str, cold: float, warm: float) -> list[Figure]:
    """The first step from nothing and from the disk, beside the peers that compile."""
    found: list[Figure] = []
    with tempfile.TemporaryDirectory() as cache:
        report = _child(Order("eshkol", model, steps=5), cache)
        found.append(Figure(f"{name}, compiled cold", "eshkol", report.first - report.step, "s", cold))
        found.append(Figure(f"{name}, from process start, cold", "eshkol", report.start, "s"))
        found.append(Figure(f"{name}, of which process start and imports", "eshkol", report.imports, "s"))
        report = _child(Order("eshkol", model, steps=5), cache)
        found.append(Figure(f"{name}, compiled warm", "eshkol", report.first - report.step, "s", warm))
        found.append(Figure(f"{name}, from process start, warm", "eshkol", report.start, "s"))
    for who, label in _peers("compiled", "jax"):
        with tempfile.TemporaryDirectory() as cache:
            report = _child(Order(who, model, steps=5), cache)
        found.append(Figure(f"{name}, compiled cold", label, report.first - report.step, "s"))
        found.append(Figure(f"{name}, from process start, cold", label, report.start, "s"))
    return found


def _growth() -> list[Figure]:
    """Compiling transformers of more and more layers."""
    found = []
    for model, name in (("layers", "layers"), ("scan", "layers by scan")):
        seconds = {}
        for layers in LAYERS:
            with tempfile.TemporaryDirectory() as cache:
                report = _child(Order("eshkol", model, layers, steps=5), cache)
            seconds[layers] = report.first - report.step
            found.append(Figure(f"{layers} {name}, compiled cold", "eshkol", seconds[layers], "s"))
        few, many = LAYERS[0], LAYERS[-1]
        grown, most = seconds[many] / seconds[few], many / few if model == "layers" else 1.5
        found.append(Figure(f"{many} {name} against {few}", "eshkol", grown, "×", most))
    return found


def _memory() -> list[Figure]:
    """What is resident at most during steps: in all, and beyond what was there before the first."""
    found = []
    for model, name in (("deep", "12-layer MLP"), ("gpt", "tiny GPT")):
        reports = {}
        for who, label in (("eshkol", "eshkol"), *_peers("torch")):
            with tempfile.TemporaryDirectory() as cache:
                reports[label] = _child(Order(who, model, steps=30), cache)
        for label, report in reports.items():
            found.append(Figure(f"{name}, peak", label, report.peak, "B"))
            found.append(Figure(f"{name}, peak beyond the start", label, report.peak - report.before, "B"))
        if len(reports) > 1:
            ours, theirs = reports.values()
            found.append(Figure(f"{name}, peak against PyTorch's", "eshkol", ours.peak / theirs.peak, "×", 1.1))
    return found


def _flatness() -> list[Figure]:
    """Whether memory grows over many steps."""
    with tempfile.TemporaryDirectory() as cache:
        report = _child(Order("eshkol", "mlp", steps=MANY), cache)
    name = f"MLP, growth over {MANY - MANY // 10:,} steps"
    return [Figure(name, "eshkol", report.after / report.settled, "×", 1.02)]


def _peers(*wanted: str) -> list[tuple[str, str]]:
    names = {"torch": "PyTorch", "compiled": "torch.compile", "jax": "JAX"}
    there = {"torch": peers.torch, "compiled": peers.torch, "jax": peers.jax}
    return [(who, names[who]) for who in wanted if there[who]()]


PARTS = {
    "mlp": lambda: _compiling("mlp", "MLP step", 3.0, 0.3),
    "gpt": lambda: _compiling("gpt", "tiny GPT step", 15.0, 1.0),
    "layers": _growth,
    "memory": _memory,
    "flat": _flatness,
}


def run(words: Sequence[str] = ()) -> list[Figure]:
    """The figures of the parts that are named, or of all; a part that fails says why and ends nothing."""
    found = []
    for name, part in PARTS.items():
        if words and name not in words:
            continue
        print(f"{name} …", file=sys.stderr, flush=True)
        try:
            found += part()
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"failed: {name}: {error}", file=sys.stderr)
    return found


def finish(name: str, figures: list[Figure]) -> None:
    """Show, and save if it was a whole run."""
    table = Table(title=TITLE, title_justify="left")
    for column in ("measured", "who", "found", "should be at most"):
        table.add_column(column, justify="left" if column in ("measured", "who") else "right")
    for f in figures:
        over = f.most is not None and f.value > f.most
        table.add_row(f.name, f.who, f"{_text(f.value, f.unit)}{' !' if over else ''}", _text(f.most, f.unit))
    Console(width=110).print(table)
    if {f.name.split(", ")[0] for f in figures} >= {"MLP step", "tiny GPT step", "tiny GPT", "MLP"}:
        _save(name, figures)


def _save(name: str, figures: list[Figure]) -> None:
    harness.record(name, TITLE, figures)
    pyplot = harness.plotter()
    figure, sides = pyplot.subplots(1, 2, figsize=(14, 7), layout="constrained")
    for axes, (unit, label) in zip(sides, (("s", "seconds"), ("B", "bytes")), strict=True):
        chosen = [f for f in figures if f.unit == unit][::-1]
        axes.barh([f"{f.name} · {f.who}" for f in chosen], [f.value for f in chosen])
        axes.set_xlabel(label)
    figure.suptitle(TITLE)
    figure.savefig(harness.OUT / f"{name}.png", dpi=110)
    pyplot.close(figure)


def _text(value: float | None, unit: str) -> str:
    if value is None:
        return ""
    if unit == "s":
        return harness.duration(value)
    return f"{value:.2f} ×" if unit == "×" else f"{harness.short(value)}B"
