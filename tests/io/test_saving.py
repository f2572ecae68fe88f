"""Saving: whole or not at all, whatever happens; beside training; the last few and the best kept."""

from __future__ import annotations

import errno
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn
from eshkol.errors import CheckpointError
from eshkol.io import eskpt, files, saving
from eshkol.io.files import SUFFIX

ARRAYS = {"a": np.arange(40_000.0), "b": np.ones(7, np.int16)}


@pytest.fixture(autouse=True)
def _small() -> Any:
    with ek.use_backend("reference"):
        yield


def value_in(path: Path) -> float:
    with ek.io.load_checkpoint(path) as file:
        file.verify()
        return float(file["a"].numpy()[0])


# --- faults of the disk -----------------------------------------------------------------------------------------------


def failing(function: Any, number: int, after: int = 0) -> Callable[..., Any]:
    """A function that fails with an error of the system from some call on."""
    calls = [0]

    def run(*arguments: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] > after:
            raise OSError(number, os.strerror(number))
        return function(*arguments, **named)

    return run


@pytest.mark.parametrize("there", [False, True])
@pytest.mark.parametrize(
    ("where", "number", "said"),
    [
        ("write_all", errno.ENOSPC, "no space left"),
        ("os.fsync", errno.EIO, "input/output error"),
        ("os.replace", errno.EACCES, "permission denied"),
        ("os.open", errno.EROFS, "read-only file system"),
    ],
)
def test_a_fault_of_the_disk_loses_nothing(
    where: str, number: int, said: str, there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.eskpt"
    if there:
        ek.io.save_tensors(path, {"a": np.ones(3)})
    for after in range(5) if where == "write_all" else (0,):
        with monkeypatch.context() as patch:
            if where == "write_all":
                patch.setattr("eshkol.io.eskpt.write_all", failing(files.write_all, number, after))
            else:
                patch.setattr(where, failing(getattr(os, where.removeprefix("os.")), number))
            with pytest.raises(CheckpointError, match=said):
                ek.io.save_tensors(path, ARRAYS)
    assert [p.name for p in tmp_path.iterdir()] == (["a.eskpt"] if there else [])
    assert not there or value_in(path) == 1


def test_no_folder_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="no such file or directory"):
        ek.io.save_tensors(tmp_path / "nowhere" / "a", ARRAYS)
    (tmp_path / "folder").mkdir()
    with pytest.raises(CheckpointError, match="is a directory"):
        ek.io.save_tensors(tmp_path / "folder", ARRAYS)


def test_an_interrupted_save_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("eshkol.io.eskpt.write_all", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ek.io.save_tensors(tmp_path / "a", ARRAYS)
    assert not list(tmp_path.iterdir())


def test_what_the_killed_left_is_swept_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    left = tmp_path / f".a.eskpt.0123{SUFFIX}"
    left.write_bytes(b"half")
    other = tmp_path / f".b.eskpt.0123{SUFFIX}"
    other.write_bytes(b"half")
    with files.replacing(tmp_path / "a.eskpt", "test") as file:
        files.write_all(file, b"slow")
        ek.io.save_tensors(tmp_path / "a.eskpt", ARRAYS)  # somebody else, meanwhile
        assert len(list(tmp_path.glob(f".a.*{SUFFIX}"))) == 1
    assert not left.exists()
    assert other.exists()
    assert (tmp_path / "a.eskpt").read_bytes() == b"slow"
    files.sweep(str(tmp_path))
    assert not other.exists()


def killed(path: Path, rounds: int) -> None:
    """Kill a process that saves all the time, at random moments; the file is always whole, and moves on."""
    choose = random.Random(5)
    seen = -1.0
    for _ in range(rounds):
        child = os.fork()
        if child == 0:
            try:
                number = seen
                while True:
                    number += 1
                    ek.io.save_tensors(path, {"a": np.full(60_000, number), "b": np.full(5, number)})
            finally:
                os._exit(1)
        try:
            time.sleep(choose.uniform(0.0, 0.05))
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        if path.exists():
            with ek.io.load_checkpoint(path) as file:
                file.verify()
                found = file["a"].numpy()
                assert (found == found[0]).all()
                assert (file["b"].numpy() == found[0]).all()
                assert found[0] >= seen
                seen = float(found[0])
    ek.io.save_tensors(path, ARRAYS)
    assert [p.name for p in path.parent.iterdir()] == [path.name]


def test_killed_while_saving(tmp_path: Path) -> None:
    killed(tmp_path / "a.eskpt", 4)


@pytest.mark.slow
def test_killed_while_saving_many_times(tmp_path: Path) -> None:
    killed(tmp_path / "a.eskpt", 50)


# --- beside training --------------------------------------------------------------------------------------------------


def network() -> tuple[Any, Any]:
    ek.seed(3)
    model = nn.Linear(3, 2)
    return model, ek.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)


def trained(model: Any, optimizer: Any, steps: int = 1) -> None:
    x = ek.tensor(np.linspace(-1, 1, 15, dtype=np.float32).reshape(5, 3))
    for _ in range(steps):
        optimizer.zero_grad()
        (model(x) ** 2).sum().backward()
        optimizer.step()


def numbers(model: Any) -> dict[str, Any]:
    return {name: np.array(value.numpy()) for name, value in model.state_dict().items()}


def equal(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)


def test_what_is_saved_beside_is_what_it_was_when_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, optimizer = network()
    trained(model, optimizer)
    wanted = numbers(model)
    go = threading.Event()

    def slow(*arguments: Any, **named: Any) -> None:
        go.wait(10)
        eskpt.write(*arguments, **named)

    monkeypatch.setattr(saving, "write", slow)
    with ek.io.AsyncSaver() as saver:
        saver.save(ek.io.state_of(model, optimizer), tmp_path / "a")
        assert saver.busy
        trained(model, optimizer)
        assert not (tmp_path / "a").exists()
        go.set()
    assert not equal(numbers(model), wanted)
    other, its = network()
    ek.io.load_checkpoint(tmp_path / "a").restore(other, its)
    assert equal(numbers(other), wanted)


def test_an_error_is_told_at_the_next_call(tmp_path: Path) -> None:
    saver = ek.io.AsyncSaver()
    saver({"model": {}}, tmp_path / "nowhere" / "a")
    with pytest.raises(CheckpointError, match=r"the checkpoint before was not saved(?s:.*)no such file"):
        saver({"model": {}}, tmp_path / "a")
    saver.wait()
    saver({"model": {}, "step": 4}, tmp_path / "a")
    saver.wait()
    assert ek.io.load_state(tmp_path / "a")["step"] == 4
    with pytest.raises(CheckpointError, match="not saved"), ek.io.AsyncSaver() as other:
        other({"step": 1}, tmp_path / "nowhere" / "a")


@pytest.mark.parametrize("background", [False, True])
def test_the_last_few_and_the_best_are_kept(tmp_path: Path, background: bool) -> None:
    model, optimizer = network()
    values = [0.9, 0.2, 0.5, 0.6, float("nan"), 0.4]
    with ek.io.CheckpointManager(tmp_path / "run", keep=2, best="val_loss", background=background) as manager:
        assert manager.latest is None
        assert manager.restore(model, optimizer) is None
        for step, value in enumerate(values):
            manager.save(step, model, optimizer, values={"val_loss": value}, epoch=1)
    assert manager.steps() == [1, 4, 5]
    again = ek.io.CheckpointManager(tmp_path / "run", keep=2, best="val_loss")
    assert Path(again.best or "").name == "checkpoint-00000001.eskpt"
    assert Path(again.latest or "").name == "checkpoint-00000005.eskpt"
    assert [(kept.step, kept.value) for kept in again.kept()] == [(1, 0.2), (4, None), (5, 0.4)]
    found = again.restore(model, optimizer, which="best")
    assert found is not None
    assert (found.step, found.epoch) == (1, 1)
    highest = ek.io.CheckpointManager(tmp_path / "run", keep=1, best="val_loss", mode="max")
    highest.save(6, model, values={"val_loss": 0.1})
    assert highest.steps() == [5, 6]


def test_a_damaged_latest_is_passed_over(tmp_path: Path) -> None:
    model, optimizer = network()
    manager = ek.io.CheckpointManager(tmp_path, keep=3)
    for step in (1, 2):
        manager.save(step, model, optimizer)
    Path(manager.latest or "").write_bytes(b"half")
    with pytest.warns(ek.io.DamagedCheckpoint, match="00000002.* is refused: .*00000001.eskpt' is taken instead"):
        found = manager.restore(model, optimizer)
    assert found is not None
    assert found.step == 1
    (tmp_path / "checkpoint-00000001.eskpt").write_bytes(b"half")
    with pytest.raises(CheckpointError, match="refused"):
        manager.restore(model)


def test_a_damaged_one_is_not_among_the_best(tmp_path: Path) -> None:
    model, _ = network()
    with ek.io.CheckpointManager(tmp_path, keep=3, best="loss") as manager:
        for step, loss in ((1, 0.2), (2, 0.1)):
            manager.save(step, model, values={"loss": loss})
    Path(manager.latest or "").write_bytes(b"half")
    with pytest.warns(ek.io.DamagedCheckpoint, match="00000002.*not counted among the best"):
        again = ek.io.CheckpointManager(tmp_path, keep=3, best="loss")
    assert again.best is not None
    assert again.best.endswith("00000001.eskpt")


@pytest.mark.parametrize(
    ("options", "said"),
    [({"keep": 0}, "keep is a number"), ({"mode": "low"}, "'min' or 'max'"), ({"prefix": "a/b"}, "prefix begins")],
)
def test_wrong_options(options: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=said):
        ek.io.CheckpointManager(tmp_path, **options)


def test_wrong_calls(tmp_path: Path) -> None:
    manager = ek.io.CheckpointManager(tmp_path, best="loss")
    with pytest.raises(CheckpointError, match="by 'loss', which values= does not have"):
        manager.save(1, {}, values={"acc": 1})
    with pytest.raises(CheckpointError, match="step is a count"):
        manager.save(-1, {})
    with pytest.raises(CheckpointError, match="'latest' or 'best'"):
        manager.load("first")
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot use the folder"):
        ek.io.CheckpointManager(tmp_path / "file")
