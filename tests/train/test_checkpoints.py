"""`fit` and its files: saved while it trains, ended in any way, gone on with from a path, bit for bit."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim, train
from eshkol.errors import CheckpointError, EshkolError


class Failure(Exception):
    """Something that goes wrong in a callback."""


def run(folder: Path, *also: Any, save: Any = None, epochs: int = 3, **how: Any) -> tuple[train.History, Any]:
    """A training with everything that has a state, which is saved after each step."""
    ek.seed(1)
    model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.2))
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(12, 4)).astype(np.float32), rng.integers(0, 3, 12)
    checkpoint = train.Checkpoint(
        folder / "runs" / "{kind}.eskpt", **({} if save is None else {"save": save}), every_steps=1
    )
    given = {"validation": (x[:4], y[:4]), "quiet": True, "batch_size": 4, "seed": 0} | how
    history = train.fit(
        model, (x, y), loss=ek.cross_entropy, optimizer=optim.SGD(model.parameters(), lr=0.05, momentum=0.9),
        epochs=epochs, callbacks=[checkpoint, *also], **given,
    )  # fmt: skip
    return history, model


def numbers(model: Any) -> list[Any]:
    return [value.numpy().tolist() for value in model.state_dict().values()]


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("end", ["error", "interrupt", "interrupt twice"])
def test_a_run_that_ended_goes_on_from_its_file(end: str, beside: bool, tmp_path: Path) -> None:
    whole, wanted = run(tmp_path / "whole", train.LambdaCallback())

    def ending(now: train.Run) -> None:
        if (now.epoch, now.batch) == (2, 2):
            if end == "error":
                raise Failure
            for _ in range(2 if end == "interrupt twice" else 1):
                os.kill(os.getpid(), signal.SIGINT)

    saver = ek.io.AsyncSaver() if beside else None
    try:
        history, _ = run(tmp_path, train.LambdaCallback(on_step_end=ending), save=saver)
        assert (end, history.stopped) == ("interrupt", "interrupted")
    except Failure:
        assert end == "error"
    except KeyboardInterrupt:
        assert end == "interrupt twice"
    last = tmp_path / "runs" / "last.eskpt"
    with ek.io.load_checkpoint(last) as file:  # on the disk when fit has returned
        file.verify()
        # what fails before the checkpoint's turn is not in it; an interruption is
        assert (file.get("epoch"), file.get("batch")) == ((1, 2) if end == "interrupt" else (1, 1))
    ek.seed(99)
    again, model = run(tmp_path, train.LambdaCallback(), resume=str(last), seed=None)
    assert again == whole
    assert numbers(model) == numbers(wanted)


def test_a_state_and_an_open_file_are_gone_on_from_as_well(tmp_path: Path) -> None:
    whole, wanted = run(tmp_path)
    (tmp_path / "part").mkdir()
    run(tmp_path / "part", epochs=1)
    path = tmp_path / "part" / "runs" / "last.eskpt"
    for resume in (path, ek.io.load_state(path), ek.io.load_checkpoint(path)):
        again, model = run(tmp_path, resume=resume)
        assert again == whole
        assert numbers(model) == numbers(wanted)
    with pytest.raises(CheckpointError, match="no such file"):
        run(tmp_path, resume="nowhere.eskpt")
    ek.io.save_tensors(tmp_path / "other.eskpt", {"w": ek.ones(2)})
    with pytest.raises(EshkolError, match="the state of a run"):
        run(tmp_path, resume=tmp_path / "other.eskpt")


@pytest.mark.parametrize("background", [False, True])
def test_a_manager_keeps_the_last_few_and_the_best_of_a_run(background: bool, tmp_path: Path) -> None:
    whole, wanted = run(tmp_path / "whole", train.LambdaCallback())

    def ending(now: train.Run) -> None:
        if (now.epoch, now.batch) == (2, 2):
            raise Failure

    def manager() -> ek.io.CheckpointManager:
        return ek.io.CheckpointManager(tmp_path / "run", keep=2, best="val_loss", background=background)

    first = manager()
    with pytest.raises(Failure):  # nothing is there yet: it begins
        run(tmp_path, train.LambdaCallback(on_step_end=ending), save=first, resume=first)
    found = manager()
    assert found.steps() == [3, 4]  # the third ended an epoch, and is the best so far
    again, model = run(tmp_path, train.LambdaCallback(), save=found, resume=found, seed=None)
    assert again == whole
    assert numbers(model) == numbers(wanted)
    assert found.steps()[-2:] == [8, 9]
    best = min(range(3), key=lambda k: whole["val_loss"][k])
    assert Path(found.best or "").name == f"checkpoint-{3 * (best + 1):08}.eskpt"


def test_the_model_of_a_run_is_made_from_its_file(tmp_path: Path) -> None:
    _, wanted = run(tmp_path)
    with ek.io.load_checkpoint(tmp_path / "runs" / "last.eskpt") as file:
        assert numbers(file.model) == numbers(wanted)
        assert file.optimizer.param_groups[0]["momentum"] == 0.9
        assert file.model.training


def test_what_went_wrong_beside_is_told_at_the_end_at_the_latest(tmp_path: Path, monkeypatch: Any) -> None:
    saver = ek.io.AsyncSaver()
    ended: list[bool] = []

    def spoil(now: train.Run) -> None:
        if now.epoch == now.epochs:  # before the last state of all is saved
            monkeypatch.setattr("eshkol.io.saving.write", broken)

    def broken(*_: Any, **__: Any) -> None:
        raise CheckpointError("no space left on device")

    also = train.LambdaCallback(on_epoch_end=spoil, on_fit_end=lambda now: ended.append(True))
    with pytest.raises(CheckpointError, match=r"the checkpoint before was not saved: no space left"):
        run(tmp_path, also, save=saver, epochs=1, validation=None)
    assert ended == [True]  # the others ended as they should
    monkeypatch.undo()
    saver.wait()  # told once


def test_a_folder_that_cannot_be_made_is_told_before_the_training(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    steps: list[int] = []
    with pytest.raises(CheckpointError, match=r"cannot make the folder '.*runs': "):
        run(tmp_path, train.LambdaCallback(on_step_end=lambda now: steps.append(now.step)))
    assert not steps


def test_the_path_comes_first() -> None:
    with pytest.raises(EshkolError, match=r"the path comes first(?s:.*)save=\.\.\."):
        train.Checkpoint(print)


@pytest.mark.parametrize("averages", [False, True])
def test_the_best_parameters_are_those_that_were_measured(averages: bool, tmp_path: Path) -> None:
    ek.seed(0)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(8, 4)).astype(np.float32), rng.integers(0, 3, 8)
    model = nn.Linear(4, 3)
    stopper = train.EarlyStopping(patience=2, restore_best=True)
    other = [(x, (y + 1) % 3)]  # what is learned is wrong there
    history = train.fit(
        model, [(x, y)], loss=ek.cross_entropy, optimizer=optim.SGD(model.parameters(), lr=1.0), epochs=9, ema=0.5,
        validation=other, validate_ema=averages, callbacks=[stopper], quiet=True, jit=False,
    )  # fmt: skip
    assert (stopper.best_epoch, len(history)) == (1, 3)
    assert train.validate(model, ek.cross_entropy, other, jit=False)["loss"] == stopper.best
