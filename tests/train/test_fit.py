"""`fit`: what is the same whichever way it is run, what goes on where it ended, and what is refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim, train
from eshkol.errors import DTypeError, EshkolError, IndexOutOfRange, NotANumberError, ShapeError, TensorError


@pytest.fixture
def uncompiled() -> Iterator[None]:
    """The backend that compiles nothing, for runs of whose kernels no other test has a use."""
    with ek.use_backend("reference"):
        yield


def data(rows: int = 12) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return rng.normal(size=(rows, 4)).astype(np.float32), rng.integers(0, 3, rows)


def pairs(count: int = 3, size: int = 4) -> list[tuple[Any, Any]]:
    x, y = data(count * size)
    return [(x[k : k + size], y[k : k + size]) for k in range(0, len(x), size)]


def network(*, norm: bool = False) -> nn.Sequential:
    ek.seed(1)
    return nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.2), *([nn.BatchNorm1d(3)] if norm else []))


def linear() -> nn.Linear:
    ek.seed(1)
    return nn.Linear(4, 3)


def fitted(batches: Any = None, *, model: Any = None, epochs: int = 2, **how: Any) -> tuple[train.History, Any]:
    model = linear() if model is None else model
    optimizer = how.pop("optimizer", None) or optim.SGD(model.parameters(), lr=0.2)  # its kernels are few
    given = {"loss": ek.cross_entropy, "seed": 0, "quiet": True} | how
    return train.fit(model, pairs() if batches is None else batches, optimizer=optimizer, epochs=epochs, **given), model


def same(one: Any, other: Any) -> None:
    mine, theirs = one.state_dict(), other.state_dict()
    for name, value in mine.items():
        np.testing.assert_array_equal(value.numpy(), theirs[name].numpy(), err_msg=name)


# --- one training, whichever way --------------------------------------------------------------------------------------


def test_compiled_and_eager_runs_are_the_same() -> None:
    def run(jit: bool) -> tuple[train.History, Any]:
        model = network()
        return fitted(
            model=model, metrics=["accuracy"], jit=jit, optimizer=optim.Adam(model.parameters(), lr=0.05)
        )  # fmt: skip

    (history, model), (other, eager) = (run(jit) for jit in (True, False))
    assert history.names == ["loss", "accuracy"]
    np.testing.assert_allclose(history["loss"], other["loss"], rtol=1e-6)
    for name, value in model.state_dict().items():
        np.testing.assert_allclose(value.numpy(), eager.state_dict()[name].numpy(), rtol=1e-4, atol=1e-6, err_msg=name)
    assert history["loss"][1] < history["loss"][0]


def test_a_seed_makes_a_run_the_same_bit_for_bit_with_shuffling_and_dropout() -> None:
    (one, first), (two, second) = (fitted(data(), model=network(), batch_size=4) for _ in range(2))
    assert one == two
    same(first, second)
    different, _ = fitted(data(), model=network(), batch_size=4, seed=3)
    assert different != one


def test_whole_arrays_are_cut_and_shuffled() -> None:
    x, y = np.arange(10), np.arange(10)
    from eshkol.train.batches import batches_of

    ek.seed(4)
    batches = batches_of((x, y), "test", batch_size=4)
    epochs = [[b.inputs.numpy().tolist() for b in batches.epoch()] for _ in range(2)]
    assert [len(part) for part in epochs[0]] == [4, 4, 2]
    assert batches.count == 3
    assert all(sorted(x for part in epoch for x in part) == list(range(10)) for epoch in epochs)
    assert epochs[0] != epochs[1]
    plain = [b.targets.numpy().tolist() for b in batches_of((x, y), "test", batch_size=4, shuffle=False).epoch()]
    assert plain == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]


def test_batches_may_be_a_list_a_loader_or_a_function_of_iterators() -> None:
    class Loader:
        def __iter__(self) -> Iterator[Any]:
            return iter(pairs())

    (expected, _), *others = [fitted(x) for x in (pairs(), Loader(), lambda: iter(pairs()))]
    assert all(history == expected for history, _ in others)


def test_accumulated_batches_are_one_large_batch() -> None:
    x, y = data(8)
    weights = []
    for batches, accumulate in (([(x, y)], 1), ([(x[:4], y[:4]), (x[4:], y[4:])], 2)):
        model = linear()
        optimizer = optim.SGD(model.parameters(), lr=0.5)
        history, _ = fitted(batches, model=model, optimizer=optimizer, accumulate=accumulate, epochs=3)
        assert history.rows[-1].step == 3
        weights.append(model.weight.detach().numpy())
    np.testing.assert_allclose(*weights, rtol=1e-5)
    with pytest.warns(UserWarning, match="the last 1 batches did not fill a step of 2"):
        fitted(pairs(3), accumulate=2, epochs=1)


def test_what_is_measured_is_what_validate_measures() -> None:
    history, model = fitted(validation=pairs(2), metrics=["accuracy", nn_error], epochs=1)
    assert history.names == ["loss", "accuracy", "nn_error", "val_loss", "val_accuracy", "val_nn_error"]
    found = train.validate(model, ek.cross_entropy, pairs(2), metrics=["accuracy", nn_error])
    assert found == {name: history[f"val_{name}"][0] for name in found}
    model.eval()
    x, y = (np.concatenate(part) for part in zip(*pairs(2), strict=True))
    outputs = model(ek.tensor(x)).detach().numpy()
    assert found["accuracy"] == np.mean(outputs.argmax(1) == y)
    assert found["nn_error"] == np.mean(outputs.argmax(1) != y)
    assert found["loss"] == pytest.approx(ek.cross_entropy(ek.tensor(outputs), ek.tensor(y)).item(), rel=1e-6)


def nn_error(predictions: Any, targets: Any) -> Any:
    return np.mean(predictions.numpy().argmax(1) != targets.numpy())


@pytest.mark.usefixtures("uncompiled")
def test_clipping_averages_lower_precision_and_a_scale_that_overflows(monkeypatch: pytest.MonkeyPatch) -> None:
    history, _ = fitted(precision="bfloat16", clip_norm=1.0, epochs=3)
    assert history["loss"][-1] < history["loss"][0]
    model = linear()
    before = model.weight.detach().numpy().copy()
    optimizer = optim.SGD(model.parameters(), lr=1.0)
    ema = optim.EMA(model, decay=0.5)
    fitted(pairs(1), model=model, optimizer=optimizer, clip_value=1e-3, ema=ema, epochs=1)
    moved = model.weight.detach().numpy() - before
    assert np.abs(moved).max() <= 1.001e-3
    np.testing.assert_allclose(ema.shadow[0].numpy(), before + moved / 2, atol=1e-7)
    scale = optim.LossScale(init_scale=1e38)
    large, _ = fitted(pairs(2), loss=lambda out, y: 1e4 * ek.cross_entropy(out, y), loss_scale=scale, epochs=3)
    assert large.rows[-1].step < 6
    assert scale.get_scale() < 1e38
    monkeypatch.setattr("eshkol.train.fitting.MOST_SKIPPED", 3)
    fixed = optim.LossScale(init_scale=1e38, dynamic=False)
    with pytest.raises(NotANumberError, match="the last 3 batches were not finite"):
        fitted(pairs(2), loss=lambda out, y: 1e4 * ek.cross_entropy(out, y), loss_scale=fixed, epochs=9)


def test_schedules_are_stepped_by_epochs_or_by_steps() -> None:
    rates: list[float] = []

    def note(run: train.Run) -> None:
        rates.append(run.optimizer.param_groups[0]["lr"])

    for make, how, expected in (
        (lambda o: optim.ExponentialLR(o, 0.5), {}, [1.0, 1.0, 1.0, 0.5, 0.5, 0.5]),
        (lambda o: optim.ExponentialLR(o, 0.5), {"schedule_every": "step"}, [0.5**k for k in range(1, 7)]),
        (lambda o: optim.WarmupLR(o, 4), {}, [0.5, 0.75, 1.0, 1.0, 1.0, 1.0]),
        (lambda o: optim.ReduceLROnPlateau(o, factor=0.5, patience=0, threshold=10.0), {}, [1.0] * 6),
    ):
        rates.clear()
        model = linear()
        optimizer = optim.SGD(model.parameters(), lr=1.0)
        log = train.LearningRateLog()
        callbacks = [train.LambdaCallback(on_step_end=note), log]
        history, _ = fitted(model=model, optimizer=optimizer, schedule=make(optimizer), callbacks=callbacks, **how)
        assert rates == expected
        assert history["lr"] == [expected[2], expected[5]]


# --- runs that end, and go on -----------------------------------------------------------------------------------------


class Kept:
    """What a checkpoint saves, in place of a disk."""

    def __init__(self) -> None:
        self.states: dict[str, dict[str, Any]] = {}

    def __call__(self, state: dict[str, Any], path: str) -> None:
        self.states[path] = state


@pytest.mark.filterwarnings("ignore:fit. the last 1 batches")
@pytest.mark.parametrize(("jit", "stop"), [(True, (1, 3)), (True, (2, 1)), (False, (1, 2))])
def test_a_run_goes_on_bit_for_bit_where_it_ended(jit: bool, stop: tuple[int, int]) -> None:
    def run(epochs: int, resume: Any = None, **how: Any) -> tuple[train.History, Any, Kept]:
        kept = Kept()
        model = network(norm=jit)
        optimizer = optim.Adam(model.parameters(), lr=0.05)
        history, _ = fitted(
            data(), batch_size=4, model=model, optimizer=optimizer, epochs=epochs, metrics=["accuracy"],
            schedule=optim.CosineAnnealingLR(optimizer, T_max=4), schedule_every="step", accumulate=2, ema=0.9, jit=jit,
            validation=pairs(1), resume=resume, monitor="loss",
            callbacks=[
                train.Checkpoint(save=kept, every_steps=1), train.EarlyStopping(patience=9), *how.get("also", ()),
            ],
        )  # fmt: skip
        return history, model, kept

    whole, expected, kept = run(3)

    def interrupt(now: train.Run) -> None:
        if (now.epoch, now.batch) == stop:
            os.kill(os.getpid(), signal.SIGINT)

    also = [train.LambdaCallback(on_step_end=interrupt)]
    history, _, part = run(3, also=also)
    assert history.stopped == "interrupted"
    state = part.states["checkpoint-last.eskpt"]
    assert (state["epoch"], state["batch"]) == (stop[0] - 1, stop[1])
    ek.seed(99)
    again, model, _ = run(3, state, also=[train.LambdaCallback()])
    assert again == whole
    same(model, expected)
    assert set(kept.states) == {"checkpoint-last.eskpt", "checkpoint-best.eskpt"}


def test_ctrl_c_finishes_the_step_and_gives_the_handler_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[int] = []

    def interrupt(run: train.Run) -> None:
        seen.append(run.batch)
        if len(seen) == 4:
            os.kill(os.getpid(), signal.SIGINT)

    watch = train.LambdaCallback(on_step_end=interrupt)
    history, _ = fitted(callbacks=[watch], epochs=9)
    assert (history.stopped, len(history), seen) == ("interrupted", 1, [1, 2, 3, 1])
    assert signal.getsignal(signal.SIGINT) is before
    assert history.state is not None
    again, _ = fitted(callbacks=[train.LambdaCallback()], epochs=3, resume=history.state)
    assert again == fitted(epochs=3)[0]

    def twice(run: train.Run) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        fitted(callbacks=[train.LambdaCallback(on_step_end=twice)])
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_from_outside_ends_a_program_plainly() -> None:
    program = """
import os, signal, threading
import eshkol as ek
from eshkol import nn, optim, train
model = nn.Linear(2, 1)
calls = []
def step(run):
    calls.append(run.batch)
    if len(calls) == 2:
        threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
with ek.use_backend("reference"):
    batches = [(ek.ones((2, 2)), ek.ones((2, 1)))] * 50
    history = train.fit(model, batches, loss=ek.mse_loss, optimizer=optim.SGD(model.parameters(), lr=0.1), epochs=50,
                        callbacks=[train.LambdaCallback(on_step_end=step)], progress=False)
print(history.stopped, len(calls) < 2500, bool(ek.isfinite(model.weight).all()))
"""
    root = Path(__file__).parents[2] / "src"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "interrupted True True"
    assert "interrupted after batch" in done.stdout
    assert not done.stderr


@pytest.mark.usefixtures("uncompiled")
def test_early_stopping_waits_and_gives_the_best_parameters_back() -> None:
    model = nn.Linear(1, 1)
    values = iter([3.0, 2.0, 2.5, 1.99, 2.2])
    states: list[Any] = []

    class Told(train.Callback):
        provides = ("told",)

        def values(self, run: train.Run) -> dict[str, float]:
            states.append(model.state_dict())
            return {"told": next(values)}

    stopper = train.EarlyStopping("told", patience=3, min_delta=0.1, mode="min", restore_best=True)
    batches = [(np.ones((2, 1), np.float32), np.ones((2, 1), np.float32))]
    history, _ = fitted(batches, model=model, loss=ek.mse_loss, epochs=20, callbacks=[stopper, Told()])
    assert history["told"] == [3.0, 2.0, 2.5, 1.99, 2.2]
    assert (stopper.best, stopper.best_epoch) == (2.0, 2)
    assert "told was best in epoch 2" in str(history)
    np.testing.assert_array_equal(model.weight.detach().numpy(), states[1]["weight"].numpy())
    alone = train.early_stopping("val-loss", 2, 0.0)
    assert [train.check_should_stop(alone, x) for x in (1.0, 0.5, 0.6, 0.5, 0.4)] == [False, False, False, True, False]
    upward = train.early_stopping("accuracy", 1)
    assert [train.check_should_stop(upward, x) for x in (0.5, 0.6, 0.6)] == [False, False, True]


def test_logs_are_written(tmp_path: Path) -> None:
    logs = [train.CSVLog(tmp_path / "run.csv"), train.TensorBoardLog(tmp_path / "tb", every_steps=2, histograms=True)]
    history, _ = fitted(callbacks=[*logs, train.LearningRateLog()])
    assert train.History.from_csv(tmp_path / "run.csv") == history
    scalars = train.read_scalars(tmp_path / "tb")
    assert [step for step, _ in scalars["loss"]] == [3, 6]
    assert [step for step, _ in scalars["step_loss"]] == [2, 4, 6]
    assert scalars["loss"][1][1] == pytest.approx(history["loss"][1], rel=1e-6)


def test_progress_is_told_in_lines_and_quiet_is_silent(capsys: pytest.CaptureFixture[str]) -> None:
    fitted(quiet=False, validation=pairs(1))
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2, lines
    assert lines[0].startswith("epoch 1/2: 3/3")
    assert "loss" in lines[0]
    assert "val_loss" in lines[0]
    fitted()
    assert not capsys.readouterr().out


def test_models_may_be_functions_take_several_inputs_and_have_no_targets() -> None:
    weight = nn.Parameter(ek.ones((4, 3)))
    how: dict[str, Any] = {"optimizer": optim.SGD([weight], lr=0.1), "epochs": 3}
    history, _ = fitted(model=lambda x: x @ weight, **how)
    assert history["loss"][-1] < history["loss"][0]
    x, _ = data()

    def spread(outputs: Any, targets: Any) -> Any:
        assert targets is None
        return (outputs * outputs).mean()

    for model, batches in (
        (lambda a, b: (a - b) @ weight, ((x, x[::-1]), None)),
        (lambda *, a, b: (a - b) @ weight, ({"a": x, "b": x[::-1]}, None)),
    ):
        history, _ = fitted(batches, model=model, loss=spread, batch_size=6, **how)
        assert history["loss"][-1] < history["loss"][0]


def test_steps_of_ones_own() -> None:
    model, other = linear(), linear()
    optimizer, second = (optim.Adam(m.parameters(), lr=0.05) for m in (model, other))
    ek.seed(0)
    found = train.train_epoch(model, optimizer, ek.cross_entropy, pairs(), metrics="accuracy")
    ek.seed(0)
    losses = [train.train_on_batch(other, second, ek.cross_entropy, pair) for pair in pairs()]
    assert found["loss"] == pytest.approx(np.mean(losses))
    same(model, other)
    assert isinstance(train.train_step(model, optimizer, ek.cross_entropy, *pairs()[0]), ek.Tensor)


# --- misuse -----------------------------------------------------------------------------------------------------------


def exhausted() -> Any:
    return (pair for pair in pairs())


def spoiled(number: int, change: Callable[[Any, Any], Any]) -> list[Any]:
    found: list[Any] = pairs()
    found[number] = change(*found[number])
    return found


@pytest.mark.parametrize(
    ("batches", "kind", "said"),
    [
        ([], TensorError, "there are no batches"),
        (exhausted(), TensorError, "the generator of batches was used up by the first epoch"),
        (3, TensorError, "batches are pairs"),
        ({"x": 1}, TensorError, "not a dict"),
        (spoiled(1, lambda x, y: x), TensorError, r"batch 2 is a ndarray instead of a pair"),
        (spoiled(1, lambda x, y: (x, y, y)), TensorError, r"batch 2 is 3 things instead of a pair"),
        (spoiled(1, lambda x, y: (x, y + 2)), IndexOutOfRange, r"epoch 1, batch 2: target \d is class [34], and the "
         "model has 3 classes: 0 to 2"),
        (spoiled(2, lambda x, y: (x, y.astype(np.float32))), DTypeError, "epoch 1, batch 3: .*class indices"),
        (spoiled(1, lambda x, y: (x[:, :2], y)), ShapeError, "epoch 1, batch 2: "),
        (spoiled(1, lambda x, y: (x * np.nan, y)), NotANumberError, "epoch 1, batch 2: the loss is nan: the inputs"),
        ((data()[0], data()[1][:5]), ShapeError, "different numbers of examples"),
    ],
)  # fmt: skip
def test_batches_that_cannot_be_trained_on_are_named(batches: Any, kind: type[EshkolError], said: str) -> None:
    with pytest.raises(kind, match=said):
        fitted(batches)


def test_errors_show_the_users_line() -> None:
    for batches in (spoiled(1, lambda x, y: (x, y + 2)), spoiled(1, lambda x, y: (x * np.nan, y))):
        with pytest.raises(EshkolError) as caught:
            fitted(batches)
        assert caught.value.span is not None
        assert caught.value.span.file == __file__


def test_a_wrong_target_dtype_is_named_with_its_batch() -> None:
    batches = spoiled(1, lambda x, y: (x, y.astype(np.float32)))
    with pytest.raises(DTypeError, match=r"fit: epoch 1, batch 2: CrossEntropyLoss: targets .* integers, not float32"):
        fitted(batches, loss=nn.CrossEntropyLoss())


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"metrics": ["acuracy"]}, "did you mean 'accuracy'"),
        ({"metrics": ["confusion_matrix"]}, "gives a table of shape"),
        ({"metrics": {"loss": "accuracy"}}, "the loss is measured already"),
        ({"callbacks": [train.EarlyStopping("val_loss")]}, "'val_loss' is not measured in this run"),
        ({"callbacks": [train.EarlyStopping("acuracy")], "metrics": ["accuracy"]}, "did you mean 'accuracy'"),
        ({"callbacks": [print]}, "a callback is wanted"),
        ({"epochs": 0}, "epochs is a number"),
        ({"batch_size": 3}, "batch_size goes with whole arrays"),
        ({"loss": 3}, "the loss is a function"),
        ({"optimizer": "adam"}, "an optimizer is wanted"),
        ({"schedule": 3}, "a schedule is wanted"),
        ({"schedule_every": "day"}, "schedule_every is"),
        ({"resume": {}}, "resume takes the state of a run"),
        ({"monitor": "lss"}, "'lss' is not measured"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(how: dict[str, Any], said: str) -> None:
    with pytest.raises(EshkolError, match=said):
        fitted(**how)


def test_an_optimizer_of_another_model_and_frozen_models_are_refused() -> None:
    with pytest.raises(TensorError, match="no parameter of this Linear"):
        fitted(optimizer=optim.SGD(linear().parameters(), lr=0.1))
    with pytest.raises(TensorError, match="no parameter of the optimizer requires grad"):
        fitted(model=linear().freeze())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: train.EarlyStopping(mode="up"), "no mode"),
        (lambda: train.EarlyStopping(patience=-1), "patience is"),
        (lambda: train.Checkpoint("x", print), "the same file"),
        (lambda: train.Checkpoint("{best}", print), "cannot be filled in"),
        (lambda: train.LambdaCallback(on_epoch_ends=print), "did you mean 'on_epoch_end'"),
    ],
)
def test_callbacks_that_make_no_sense_are_refused(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(EshkolError, match=said):
        make()


@pytest.mark.parametrize("jit", [True, False])
def test_parameters_that_get_no_gradient_are_named_once(jit: bool) -> None:
    class Unused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.used, self.spare = nn.Linear(4, 3), nn.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.used(x)

    with pytest.warns(UserWarning, match=r"does not depend on spare\.weight, spare\.bias") as caught:
        fitted(model=Unused(), jit=jit)
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(jit=jit, epochs=1)


def test_modes_are_put_back_and_parts_in_evaluation_stay() -> None:
    model = network(norm=True).eval()
    fitted(model=model, epochs=1)
    assert not model.training
    model.train()
    model[2].eval()
    mean = model[2].running_mean.numpy().copy()
    fitted(model=model, epochs=1)
    np.testing.assert_array_equal(model[2].running_mean.numpy(), mean)
    assert model.training
    assert not model[2].training
