"""Checkpoints of training: a run that goes on from one is the run that never stopped, bit for bit."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim
from eshkol.errors import CheckpointError, ShapeError
from eshkol.train.step import Step


@pytest.fixture(autouse=True)
def _small() -> Any:
    with ek.use_backend("reference"):
        yield


class Loader:
    """Something with a state: what comes next."""

    def __init__(self) -> None:
        self.place, self.order = 0, np.arange(5)

    def state_dict(self) -> dict[str, Any]:
        return {"place": self.place, "order": self.order, "seed": (1, 2)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.place, self.order = state["place"], state["order"]
        assert state["seed"] == (1, 2)


class Run:
    """A run with everything that has a state: dropout draws, batch norm counts, the optimizer has moments."""

    def __init__(self, jit: bool = False) -> None:
        ek.seed(1)
        self.model = nn.Sequential(nn.Linear(3, 2, bias=False), nn.Dropout(0.3), nn.BatchNorm1d(2, affine=False))
        self.optimizer: Any = optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        if jit:
            self.optimizer = optim.AdamW(self.model.parameters(), lr=0.01)
        self.loader = Loader()
        self.step = Step(self.model, nn.MSELoss(), self.optimizer, jit=jit)

    def train(self, steps: int) -> None:
        for _ in range(steps):
            self.loader.place += 1
            x = ek.tensor(np.random.default_rng(self.loader.place).normal(size=(6, 3)).astype(np.float32))
            self.step(x, x[:, :2])

    def numbers(self) -> bytes:
        state = ek.tree_leaves((self.model.state_dict(), self.optimizer.state_dict()))
        return b"".join(
            np.asarray(x.numpy()).tobytes() if isinstance(x, ek.Tensor) else repr(x).encode() for x in state
        )


def test_a_run_goes_on_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "run.eskpt"
    whole = Run()
    whole.train(1)
    ek.io.save_checkpoint(
        path, whole.model, whole.optimizer, loader=whole.loader, step=3, epoch=1, compress=True,
        metadata={"note": "half", "history": [1.0, 0.5], "best": {"w": ek.tensor([1, 2])}},
    )  # fmt: skip
    whole.train(1)
    again = Run()
    ek.seed(99)
    checkpoint = ek.io.load_checkpoint(path, mmap=True)
    assert checkpoint.parts == ["model", "optimizer", "loader", "architecture", "rng", "step", "epoch", "metadata"]
    checkpoint.restore(again.model, again.optimizer, loader=again.loader)
    assert (checkpoint.step, checkpoint.epoch, checkpoint.get("note")) == (3, 1, "half")
    assert checkpoint.get("nothing", 7) == 7
    assert checkpoint.metadata["best"]["w"].tolist() == [1, 2]
    again.train(1)
    assert again.numbers() == whole.numbers()


def test_names_of_a_model_are_names_of_the_file(tmp_path: Path) -> None:
    run = Run()
    run.optimizer.slots()
    run.model.add_module("3", nn.Linear(2, 2))
    path = tmp_path / "a"
    ek.io.save_checkpoint(path, run.model, run.optimizer)
    with ek.io.load_checkpoint(path) as file:
        assert [name for name in file.tensors if "/" not in name] == list(run.model.state_dict())
        assert "optimizer/state/0/momentum_buffer" in file
        assert file.names("3.*") == ["3.weight", "3.bias"]
        other = Run()
        ek.seed(2)
        other.model.add_module("3", nn.Linear(2, 2))
        other.model[0].weight = nn.Parameter(ek.zeros((2, 3)))
        before = other.numbers()
        loaded = file.restore(other.model, names="3.*")
        assert loaded is not None
        assert "0.weight" in loaded.missing
        assert other.numbers() != before
        assert other.model[3].weight.tolist() == run.model[3].weight.tolist()
        assert other.model[0].weight.tolist() != run.model[0].weight.tolist()


def test_shared_weights_and_states_that_share(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(30, 30, bias=False), nn.Linear(30, 30, bias=False))
    model[1].weight = model[0].weight
    state = {"model": model.state_dict(), "best": model.state_dict(), "numbers": [np.float32(1.5), np.int64(3)]}
    ek.io.save_state(state, tmp_path / "a")
    with ek.io.load_checkpoint(tmp_path / "a") as file:
        assert list(file.tensors) == ["0.weight", "1.weight"]  # the best is the same, and not written again
        found = file.state()
    assert np.array_equal(found["best"]["1.weight"].numpy(), model[0].weight.detach().numpy())
    assert found["numbers"] == [1.5, 3]


@pytest.mark.parametrize("mmap", [False, True])
def test_what_is_shared_is_read_once(mmap: bool, tmp_path: Path) -> None:
    """However often a file refers to a tensor: a small one cannot ask for much memory."""
    large, tensor = np.arange(1 << 16), ek.tensor(np.arange(1 << 16))
    ek.io.save_state({"a": [large] * 300, "t": [tensor] * 300}, tmp_path / "a")
    tracemalloc.start()
    try:
        found = ek.io.load_state(tmp_path / "a", mmap=mmap)
        assert tracemalloc.get_traced_memory()[1] < 8 * large.nbytes
    finally:
        tracemalloc.stop()
    assert found["a"][0] is found["a"][299]
    assert found["t"][0] is not found["t"][299]
    assert np.array_equal(found["t"][299].numpy(), large)


def test_states_that_share_are_trained_apart(tmp_path: Path) -> None:
    ek.seed(1)
    model = nn.Linear(3, 2)
    ek.io.save_state({"model": model.state_dict(), "best": model.state_dict()}, tmp_path / "a")
    found = ek.io.load_state(tmp_path / "a")
    before = np.array(found["best"]["weight"].numpy())
    model.load_state_dict(found["model"])
    step = Step(model, nn.MSELoss(), optim.SGD(model.parameters(), lr=0.5), jit=True)
    with ek.use_backend("cpu"):  # which overwrites the memory of parameters
        for _ in range(2):
            step(ek.ones((4, 3)), ek.zeros((4, 2)))
    assert np.array_equal(found["best"]["weight"].numpy(), before)
    assert not np.array_equal(model.weight.detach().numpy(), before)


def test_names_that_meet(tmp_path: Path) -> None:
    state = {"model": {"x/y": ek.tensor([1.0])}, "x": {"y": ek.tensor([2.0]), "z/w": ek.tensor([3.0])}, "e": [{}, ()]}
    ek.io.save_state(state, tmp_path / "a")
    found = ek.io.load_state(tmp_path / "a")
    assert [found["model"]["x/y"].item(), found["x"]["y"].item(), found["x"]["z/w"].item()] == [1, 2, 3]
    assert found["e"] == [{}, ()]


def test_all_or_nothing(tmp_path: Path) -> None:
    run = Run()
    ek.io.save_checkpoint(tmp_path / "a", run.model, run.optimizer)
    other = Run()
    other.model[0].weight = nn.Parameter(ek.zeros((2, 3)))
    other.optimizer = optim.Adam(other.model.parameters(), lr=0.1)
    before = other.numbers()
    with ek.io.load_checkpoint(tmp_path / "a") as file:
        with pytest.raises(ek.EshkolError, match="another optimizer"):
            file.restore(other.model, other.optimizer)
        assert other.numbers() == before
        with pytest.raises(
            CheckpointError, match=r"has no state of the schedule(?s:.*)it has: model, optimizer, architecture, rng"
        ):
            file.restore(other.model, schedule=run.optimizer)
        assert other.numbers() == before
        with pytest.raises(ShapeError):
            file.restore(nn.Sequential(nn.Linear(9, 2, bias=False), nn.Dropout(0.3), nn.BatchNorm1d(2, affine=False)))


def test_random_numbers_go_on(tmp_path: Path) -> None:
    ek.seed(5)
    ek.rand(3)
    ek.io.save_checkpoint(tmp_path / "a", {"w": ek.tensor([1.0])})
    wanted = ek.rand(4).tolist()
    with ek.io.load_checkpoint(tmp_path / "a") as file:
        file.restore(rng=True)
        assert ek.rand(4).tolist() == wanted
        with pytest.raises(ek.EshkolError):
            file.restore(optimizer=Loader())
    ek.io.save_checkpoint(tmp_path / "b", {"w": ek.tensor([1.0])}, rng=False)
    assert ek.io.load_checkpoint(tmp_path / "b").parts == ["model"]


def test_wrong_calls(tmp_path: Path) -> None:
    model = nn.Linear(2, 2)
    with pytest.raises(CheckpointError, match="takes the path first"):
        ek.io.save_checkpoint(model, tmp_path / "a")
    with pytest.raises(CheckpointError, match="optimizer= takes what has a state_dict"):
        ek.io.save_checkpoint(tmp_path / "a", model, 3)
    with pytest.raises(CheckpointError, match="step is a count"):
        ek.io.save_checkpoint(tmp_path / "a", model, step=-1)
    with pytest.raises(CheckpointError, match="metadata is a dict"):
        ek.io.save_checkpoint(tmp_path / "a", model, metadata=[1])
    with pytest.raises(CheckpointError, match=r"metadata\['metadata'\]\['f'\] is a function"):
        ek.io.save_checkpoint(tmp_path / "a", model, metadata={"f": lambda: 1})
    deep: list[Any] = []
    deep.append(deep)
    with pytest.raises(CheckpointError, match="nested more than"):
        ek.io.save_state({"x": deep}, tmp_path / "a")


# --- killed -----------------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import eshkol as ek
from test_checkpoint import Run

steps, folder = int(sys.argv[1]), sys.argv[2]
with ek.io.CheckpointManager(folder, keep=2, background=len(sys.argv) > 3) as manager:
    run = Run(jit=True)
    found = manager.restore(run.model, run.optimizer, loader=run.loader)
    for step in range(0 if found is None else found.step, steps):
        run.train(1)
        manager.save(step + 1, run.model, run.optimizer, loader=run.loader)
    open(folder + "/numbers", "wb").write(run.numbers())
"""


def run_killed(folder: Path, steps: int, kills: int, *more: str) -> bytes:
    """A run that is killed at random moments and begun again, until it ends; the numbers at its end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parent)])}
    command = [sys.executable, "-c", PROGRAM, str(steps), str(folder), *more]
    choose = random.Random(3)
    for _ in range(kills):
        there = set(folder.glob("*.eskpt"))
        child = subprocess.Popen(command, env=environment)
        until = time.monotonic() + 60
        while child.poll() is None and set(folder.glob("*.eskpt")) <= there and time.monotonic() < until:
            time.sleep(0.005)  # it has begun to save
        time.sleep(choose.uniform(0, 0.05))
        child.send_signal(signal.SIGKILL)
        child.wait()
    subprocess.run(command, env=environment, check=True, timeout=300)
    return (folder / "numbers").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("more", [(), ("background",)])
def test_a_run_that_is_killed_ends_bit_for_bit(tmp_path: Path, more: tuple[str, ...]) -> None:
    steps = 400
    with ek.use_backend("cpu"):
        whole = Run(jit=True)
        whole.train(steps)
        wanted = whole.numbers()
    assert run_killed(tmp_path, steps, 25, *more) == wanted
