"""The kernel ladder beside the vendor's library: `python -m bench kernels gemm [--device cuda] [--sizes 256,512,…]`.

Comes in: square products of float32 by every rung of `eshkol.kernels`, by `a @ b`, and by PyTorch (cuBLAS), if it is
there and has the device. Goes out: a table of GFLOP/s by size, the figures as JSON, and a picture of them, under
docs/pictures unless another folder is named. Times are the device's own, from an event before a burst of launches to
one behind it. `--check` compares every product with NumPy's first.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import eshkol as ek
from bench import peers
from bench.harness import plotter
from eshkol import kernels
from eshkol.errors import EshkolError
from eshkol.kernels.parts import Extents
from eshkol.schedule.run.resident import Resident
from eshkol.tensors import devices
from eshkol.tensors.lending import shown

SIZES = (256, 512, 1024, 2048, 4096)
COMPILER, VENDOR = "a @ b", "cuBLAS"
PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
STEM = "kernels-gemm"
BURST = 0.02  # seconds of the device

Rates = dict[str, dict[int, float]]  # by name and size: GFLOP/s


def main(words: list[str]) -> int:
    parser = argparse.ArgumentParser("python -m bench kernels", description=__doc__)
    parser.add_argument("what", choices=["gemm"])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="sides of the matrices, with commas")
    parser.add_argument("--rungs", default=",".join(kernels.GEMM), help="names, with commas")
    parser.add_argument("--check", action="store_true", help="compare every product with NumPy's")
    parser.add_argument("--out", type=Path, default=PICTURES, help="folder for the JSON and the picture")
    parser.add_argument("--draw", type=Path, help="draw the picture of figures in this file, and measure nothing")
    given = parser.parse_args(words)
    given.out.mkdir(parents=True, exist_ok=True)
    if given.draw is not None:
        found = json.loads(given.draw.read_text(encoding="utf-8"))
        rates = {name: {int(size): rate for size, rate in row.items()} for name, row in found["gflops"].items()}
        draw(rates, found["machine"], given.out / f"{STEM}.png")
        return 0
    try:
        machine = devices.open_backend(given.device)
        sizes = [int(size) for size in given.sizes.split(",")]
        rates = measured(given.device, given.rungs.split(","), sizes, check=given.check)
    except EshkolError as error:
        print(error, file=sys.stderr)
        return 1
    show(rates)
    name = machine.description.name
    (given.out / f"{STEM}.json").write_text(json.dumps({"machine": name, "gflops": rates}, indent=1), encoding="utf-8")
    draw(rates, name, given.out / f"{STEM}.png")
    print(f"figures and picture are {given.out / STEM}.json and .png")
    return 0


def measured(device: str, rungs: list[str], sizes: list[int], *, check: bool = False) -> Rates:
    """GFLOP/s of rungs, of `a @ b`, and of the vendor's library where it is, for square matrices of these sizes."""
    torch, rng = peers.torch(), np.random.default_rng(0)
    there = torch is not None and device.startswith("cuda") and torch.cuda.is_available()
    rates: Rates = {}
    for size in sizes:
        arrays = [rng.standard_normal((size, size), np.float32) for _ in range(2)]
        a, b = (ek.tensor(array).to(device) for array in arrays)
        wanted = arrays[0] @ arrays[1] if check else None
        for name in rungs:
            seconds = _rung(name, a, b, wanted)
            rates.setdefault(name, {})[size] = 2e-9 * size**3 / seconds
        ours = partial(_computed, ek.jit(lambda x, y: x @ y), a, b)
        seconds = _between(ours, devices.open_backend(device).event)
        rates.setdefault(COMPILER, {})[size] = 2e-9 * size**3 / seconds
        if there:
            x, y = (torch.from_numpy(array).to(device) for array in arrays)
            rates.setdefault(VENDOR, {})[size] = 2e-9 * size**3 / _vendor(torch, x, y)
    return rates


def _computed(product: Any, a: Any, b: Any) -> None:
    product(a, b).realize()


def _rung(name: str, a: Any, b: Any, wanted: Any) -> float:
    """Seconds of the device that a product takes, which is right."""
    found = kernels.gemm(name, a, b)  # which measures tiles, if that is its way
    if wanted is not None:
        off = np.abs(found.numpy() - wanted).max() / np.abs(wanted).max()
        assert off < 1e-5, f"{name} {a.shape}: off by {off} of the largest element"
    machine = devices.open_backend(str(a.device))
    (m, k), n = a.shape, b.shape[1]
    made = kernels.ready(name, Extents(m, n, k, machine.description))
    result = Resident.fresh((m, n), ek.float32, machine)
    return kernels.device_seconds(machine, made, (shown(a, "bench"), shown(b, "bench")), result)


def _vendor(torch: Any, x: Any, y: Any) -> float:
    """Seconds of the device for a product by cuBLAS: bursts that were recorded, so that the host is not waited for."""
    z = torch.matmul(x, y)

    def recorded(times: int) -> Any:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(times):
                torch.matmul(x, y, out=z)
        return graph

    def took(graph: Any) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        graph.replay()
        end.record()
        end.synchronize()
        return float(start.elapsed_time(end)) / 1000

    torch.cuda.synchronize()
    once = recorded(1)
    took(once)
    times = max(1, min(1000, int(BURST / max(took(once), 1e-6))))
    burst = recorded(times)
    return median(took(burst) for _ in range(3)) / times


def _between(call: Any, event: Any) -> float:
    """Seconds of the device for a call, in bursts between events; of small matrices, the host is waited for."""

    def took(times: int) -> float:
        start, end = event(), event()
        start.record()
        for _ in range(times):
            call()
        end.record()
        end.wait()
        return float(start.seconds_until(end))

    took(3)  # compiles, and what is done at the third call
    times = max(1, min(1000, int(BURST / max(took(1), 1e-6))))
    return median(took(times) for _ in range(3)) / times


def show(rates: Rates) -> None:
    """The table."""
    sizes = list(next(iter(rates.values())))
    table = Table(title="products of float32 matrices, GFLOP/s by size", title_justify="left")
    table.add_column("kernel")
    for size in sizes:
        table.add_column(str(size), justify="right")
    best = rates.get(VENDOR)
    if best is not None:
        table.add_column(f"of {VENDOR}, at {sizes[-1]}", justify="right")
    for name, row in rates.items():
        share = [] if best is None else [f"{100 * row[sizes[-1]] / best[sizes[-1]]:.1f} %"]
        table.add_row(name, *(f"{row[size]:,.0f}" for size in sizes), *share)
    Console(width=120).print(table)


def draw(rates: Rates, machine: str, path: Path) -> None:
    """The picture: a line for each kernel, both axes logarithmic."""
    pyplot = plotter()
    figure, axes = pyplot.subplots(figsize=(9, 6), layout="constrained")
    for name, row in rates.items():
        style = {COMPILER: "k--", VENDOR: "k-"}.get(name, "o-")
        axes.loglog(list(row), list(row.values()), style, base=2, label=name, markersize=4)
    sizes = list(next(iter(rates.values())))
    axes.set_xticks(sizes, [str(size) for size in sizes])
    axes.set_yscale("log", base=10)
    axes.set_xlabel("rows, columns and terms")
    axes.set_ylabel("GFLOP/s")
    axes.set_title(f"products of float32 matrices on {machine}")
    axes.legend(fontsize="small")
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
