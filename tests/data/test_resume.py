"""A loader that is saved in the middle of an epoch, with a checkpoint, and goes on elsewhere: bit for bit, whatever
loads ahead before and after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from unusual import Numbered, Together, noisy

import eshkol as ek
from eshkol.data import ArrayDataset, DataLoader

COUNT, BATCH = 23, 4
IMAGES = np.random.default_rng(0).integers(0, 256, (COUNT, 1, 6, 6), np.uint8)
CHAIN = ek.data.Compose(ek.data.RandomCrop(6, padding=2), ek.data.RandomFlip(), ek.data.RandomRotation(20))
WHOLE = ArrayDataset(IMAGES, np.arange(COUNT)).map(ek.data.Scale(1 / 255), on=0).map(CHAIN, on=0)
ONE_BY_ONE = Together(Numbered(COUNT).map(noisy, random=True), IMAGES)
NOBODY: dict[str, Any] = {"workers": 0}
DEFAULT: dict[str, Any] = {}
THREADS: list[dict[str, Any]] = [{"workers": 1}, {"workers": 2}]
PROCESSES: list[dict[str, Any]] = [{"workers": 1, "worker": "process"}, {"workers": 2, "worker": "process"}]


def made(data: Any, how: dict[str, Any], seed: int = 8) -> DataLoader:
    return DataLoader(data, BATCH, shuffle=True, seed=seed, numpy=True, timeout=60, **how)


def batches(loader: DataLoader, epochs: int) -> list[Any]:
    """All batches up to an epoch."""
    found: list[Any] = []
    while loader.epoch < epochs:
        found += loader
    return found


def goes_on(data: Any, before: dict[str, Any], after: dict[str, Any], stop: int, path: Path) -> None:
    expected = batches(made(data, NOBODY), 2)[stop:]
    with made(data, before) as first:
        seen = 0
        while seen < stop:
            for _ in first:
                seen += 1
                if seen == stop:
                    ek.io.save_checkpoint(path, loader=first)
                    break
    with made(data, after, seed=99) as second, ek.io.load_checkpoint(path) as checkpoint:
        checkpoint.restore(loader=second)
        found = batches(second, 2)
    assert len(found) == len(expected)
    for mine, other in zip(found, expected, strict=True):
        for a, b in zip(mine, other, strict=True):
            assert a.dtype == b.dtype
            assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("stop", [1, 4, 6, 9])  # an epoch has 6 batches: within, at its end, within the next
@pytest.mark.parametrize("data", [WHOLE, ONE_BY_ONE], ids=["whole", "one by one"])
def test_with_and_without_threads(data, stop, tmp_path) -> None:
    kinds = [NOBODY, DEFAULT, *THREADS]
    for k, before in enumerate(kinds):
        goes_on(data, before, kinds[(k + stop) % len(kinds)], stop, tmp_path / f"{k}.eskpt")


def test_from_a_process_to_a_thread(tmp_path) -> None:
    goes_on(ONE_BY_ONE, PROCESSES[0], DEFAULT, 3, tmp_path / "a.eskpt")


@pytest.mark.slow
@pytest.mark.parametrize("data", [WHOLE, ONE_BY_ONE], ids=["whole", "one by one"])
def test_with_processes(data, tmp_path) -> None:
    for k, (before, after) in enumerate(
        [(NOBODY, PROCESSES[1]), (PROCESSES[1], PROCESSES[0]), (THREADS[1], PROCESSES[1])]
    ):
        goes_on(data, before, after, 2 + 3 * k, tmp_path / f"{k}.eskpt")
