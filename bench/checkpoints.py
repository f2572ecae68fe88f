"""Checkpoints: saving beside writing plain bytes, opening, reading one tensor of many, and what training loses by it.

BENCH_CHECKPOINT_MB is how large the file is (2048 for what is promised of 2 GB), BENCH_CHECKPOINT_FOLDER where it lies.
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import eshkol as ek
from bench.harness import Result
from eshkol import nn
from eshkol.train.step import Step

TITLE = "Checkpoints"
MEGABYTES = int(os.environ.get("BENCH_CHECKPOINT_MB", "512"))
FOLDER = os.environ.get("BENCH_CHECKPOINT_FOLDER")
TENSORS = 64
TURNS = 5
SAVES = 5


def _plain(path: Path, arrays: dict[str, Any]) -> None:
    """The same bytes as they are, made durable: what the machine can do."""
    with open(path, "wb", buffering=0) as file:
        for array in arrays.values():
            rest = memoryview(array).cast("B")
            while rest:
                rest = rest[file.write(rest) :]
        os.fsync(file.fileno())


def _in_turns(
    calls: dict[str, Callable[[], object]], turns: int = TURNS, before: Callable[[], object] = lambda: None
) -> dict[str, float]:
    """Median seconds of each, one after the other: a busy disk is slow for all of them."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(turns):
        for name, call in calls.items():
            before()
            began = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def _training(folder: Path) -> Result:
    """What a training loop waits for at a checkpoint: a step, and the call that saves, at once or beside."""
    ek.seed(0)
    model = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))
    optimizer = ek.optim.Adam(model.parameters(), lr=1e-3)
    step = Step(model, nn.MSELoss(), optimizer)
    x = ek.randn(64, 1024)
    path = folder / "training.eskpt"
    for _ in range(3):
        step(x, x)
    with ek.io.AsyncSaver() as saver:
        times: dict[str, list[float]] = {
            "a step": [],
            "saving at once": [],
            "saving beside": [],
            "a step meanwhile": [],
        }
        for _ in range(SAVES):
            for name, call in (
                ("a step", lambda: step(x, x)),
                ("saving at once", lambda: ek.io.save_checkpoint(path, model, optimizer)),
                ("saving beside", lambda: saver.save(ek.io.state_of(model, optimizer), path)),
                ("a step meanwhile", lambda: step(x, x)),
            ):
                began = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - began)
            saver.wait()
    seconds = {name: statistics.median(found) for name, found in times.items()}
    return Result("training, 100 MB of state", 1, "calls", seconds)


def run() -> list[Result]:
    rng = np.random.default_rng(0)
    count = MEGABYTES * (1 << 20) // 4 // TENSORS
    arrays = {f"layer.{k}.weight": rng.random(count, np.float32) for k in range(TENSORS)}
    gigabytes = sum(a.nbytes for a in arrays.values()) / 1e9
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        plain, path = folder / "plain.bin", folder / "large.eskpt"

        def removed() -> None:
            """Both write new files: what is overwritten has its memory already, and is quicker."""
            for file in (plain, path):
                file.unlink(missing_ok=True)

        saved = _in_turns(
            {"plain bytes": lambda: _plain(plain, arrays), "eskpt": lambda: ek.io.save_tensors(path, arrays)},
            before=removed,
        )

        def read() -> object:
            with ek.io.TensorFile.open(path) as file:
                return file["layer.7.weight"]

        opened = _in_turns(
            {"open, mapped": lambda: ek.io.TensorFile.open(path).close(), "and read one of 64 tensors": read}, 9
        )
        checked = _in_turns({"verify": lambda: ek.io.TensorFile(path).verify()}, 1)
        return [
            Result(f"saving {gigabytes:.2f} GB", gigabytes, "GB", saved),
            Result(f"opening {gigabytes:.2f} GB", 1, "files", opened),
            Result(f"verifying {gigabytes:.2f} GB", gigabytes, "GB", checked),
            _training(folder),
        ]
