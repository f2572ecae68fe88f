"""A training that is killed (SIGKILL) at random moments, while it computes, saves or writes beside.

It is begun again each time from what is on the disk: its end is that of one that was never killed, bit for bit.
"""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim, train

EPOCHS, BATCHES = 4, 6


def trained(folder: Path, beside: bool) -> list[Any]:
    """Train from where the file in a folder is, or from the start; what the model is at the end."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(4 * BATCHES, 3)).astype(np.float32), rng.normal(size=(4 * BATCHES, 2)).astype(np.float32)
    ek.seed(1)
    model = nn.Linear(3, 2)
    optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    last = folder / "last.eskpt"
    saver = {"save": ek.io.AsyncSaver()} if beside else {}
    train.fit(
        model, (x, y), loss=ek.mse_loss, optimizer=optimizer, epochs=EPOCHS, batch_size=4, seed=3, jit=False,
        quiet=True, schedule=optim.ExponentialLR(optimizer, 0.9), ema=0.9,
        callbacks=[train.Checkpoint(folder / "{kind}.eskpt", **saver, every_steps=1)],
        resume=last if last.exists() else None,
    )  # fmt: skip
    state = ek.tree_leaves((model.state_dict(), optimizer.state_dict()))
    return [value.numpy().tobytes() if isinstance(value, ek.Tensor) else value for value in state]


def killed(folder: Path, kills: int) -> list[Any]:
    """Begin a training again and again, and kill it; every second time it writes beside."""
    choose = random.Random(7)
    last, reached = folder / "last.eskpt", []
    for number in range(kills):
        before = last.stat().st_mtime_ns if last.exists() else 0
        until = time.monotonic() + (20.0 if choose.random() < 0.8 else 0.0)  # sometimes before it has saved anything
        child = os.fork()
        if child == 0:
            try:
                with ek.use_backend("reference"):
                    while True:  # one that is through begins again, so that there is always something to kill
                        trained(folder, bool(number % 2))
                        last.unlink()
            finally:
                os._exit(1)
        try:
            while time.monotonic() < until and not (last.exists() and last.stat().st_mtime_ns != before):
                time.sleep(0.002)
            time.sleep(choose.uniform(0.0, 0.06))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        if last.exists():
            with ek.load_checkpoint(last) as file:
                file.verify()
                reached.append(file.get("step"))
    assert len(set(reached)) > 1  # it was killed at several places
    return trained(folder, False)


def check(folder: Path, kills: int) -> None:
    (folder / "whole").mkdir()
    with ek.use_backend("reference"):
        wanted = trained(folder / "whole", False)
        assert killed(folder, kills) == wanted
    assert not list(folder.glob(".*"))  # what the killed left was swept


def test_a_training_that_is_killed_ends_bit_for_bit(tmp_path: Path) -> None:
    check(tmp_path, 3)


@pytest.mark.slow
def test_a_training_that_is_killed_at_fifty_moments_ends_bit_for_bit(tmp_path: Path) -> None:
    check(tmp_path, 50)
