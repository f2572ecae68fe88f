"""Layers on several devices: what the model that is not split gives, in either order of the microbatches."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from batches import checkered
from eshkol import nn, optim, train
from eshkol.errors import NotANumberError, ShapeError, TensorError
from eshkol.parallel import Pipeline, PipelineStep
from eshkol.parallel.pipeline import BACKWARD, FORWARD, SCHEDULES, order_of
from eshkol.tensors import devices

ROWS = 37
X = np.random.default_rng(0).normal(size=(ROWS, 8)).astype(np.float32)
Y = np.arange(ROWS) % 4
PLACES = ["cpu", "discrete", "cpu"]
TOLERANCE = 2e-6


def stages():
    ek.seed(3)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU()), nn.Sequential(nn.Linear(16, 16), nn.Tanh()), nn.Linear(16, 4)


def trained(places, microbatches=4, steps=4, x=X, y=Y, loss=None, how=None, make=stages, **split):
    made = make()
    model = (
        nn.Sequential(*made)
        if places is None
        else Pipeline(list(zip(made, places, strict=True)), microbatches, **split)
    )
    step = train.Step(model, loss or nn.CrossEntropyLoss(), optim.Adam(model.parameters(), lr=1e-2), **(how or {}))
    return model, [step(x, y).loss.item() for _ in range(steps)]


def same(one, other, tolerance=TOLERANCE):
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


@checkered(places=[PLACES, ["discrete", "cpu", "blocks"], ["cpu", "cpu", "reference"]], schedule=SCHEDULES)
def test_losses_are_those_of_the_model_in_one_piece(places, schedule):
    alone, wanted = trained(None)
    model, losses = trained(places, schedule=schedule)
    same(losses, wanted)
    assert [stage.parameters().__next__().device for stage in model.stages] == places
    for a, b in zip(alone.parameters(), model.parameters(), strict=True):
        same(b.detach().numpy(), a.detach().numpy(), 1e-5)


@pytest.mark.parametrize("name", ["opencl", "wasm"])
def test_a_machine_with_a_driver_has_a_stage(name):
    if (reason := devices.missing(name)) is not None:
        pytest.skip(reason)
    same(trained(["cpu", name, "discrete"])[1], trained(None)[1])


@pytest.mark.parametrize("microbatches", [1, 2, 5, 100])
def test_any_number_of_microbatches(microbatches):
    same(trained(PLACES, microbatches)[1], trained(None)[1])
    assert trained(PLACES, microbatches)[1] == trained(PLACES, microbatches, schedule="1f1b")[1], "to the last bit"


@pytest.mark.parametrize("how", [{"jit": False}, {"clip_norm": 0.1}, {"clip_value": 0.01}])
def test_options_of_a_step(how):
    x, y = ek.tensor(X), ek.tensor(Y)
    same(trained(PLACES, x=x, y=y, how=how)[1], trained(None, x=x, y=y, how=how)[1])


def test_orders():
    assert [*order_of("gpipe", 0, 3, 2)] == [(FORWARD, 0), (FORWARD, 1), (BACKWARD, 0), (BACKWARD, 1)]
    found = [*order_of("1f1b", 1, 3, 4)]
    assert found == [
        (FORWARD, 0), (FORWARD, 1), (BACKWARD, 0), (FORWARD, 2), (BACKWARD, 1), (FORWARD, 3), (BACKWARD, 2),
        (BACKWARD, 3),
    ]  # fmt: skip
    for schedule in SCHEDULES:
        for stage in range(4):
            for count in range(1, 9):
                order = [*order_of(schedule, stage, 4, count)]
                assert len(set(order)) == len(order) == 2 * count
                assert all(order.index((FORWARD, k)) < order.index((BACKWARD, k)) for k in range(count))
                kept = np.cumsum([1 if what == FORWARD else -1 for what, _ in order])
                assert schedule == "gpipe" or max(kept) <= 4 - stage


class Two(nn.Module):
    """A stage that gives two tensors, one of which has no derivative."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Embedding(10, 6)

    def forward(self, tokens):
        return self.inner(tokens), tokens > 4


class Takes(nn.Module):
    """A stage that is called with both."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(6, 4)

    def forward(self, x, mask):
        return self.inner(ek.where(mask[:, None], x, -x))


class Whole(nn.Module):
    """The two in one piece."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, tokens):
        return self.second(*self.first(tokens))


def test_what_goes_between_stages_may_be_several_tensors():
    tokens = np.arange(24) % 10
    losses = []
    for split in (False, True):
        ek.seed(1)
        parts = Two(), Takes()
        model = Pipeline([(parts[0], "cpu"), (parts[1], "discrete")], 3) if split else Whole(*parts)
        step = train.Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=0.5))
        losses.append([step(tokens, tokens % 4).loss.item() for _ in range(4)])
    same(*losses)


def test_frozen_stages_and_losses_with_tensors():
    weights = ek.tensor([1.0, 2.0, 3.0, 4.0])

    def frozen():
        made = stages()
        made[1].requires_grad_(False)
        return made

    loss = nn.CrossEntropyLoss(weight=weights)
    wanted = trained(None, make=frozen, loss=loss)[1]
    model, losses = trained(PLACES, 1, make=frozen, loss=nn.CrossEntropyLoss(weight=weights))
    same(losses, wanted)
    assert not any(p.requires_grad for p in model.stages[1].parameters())


def test_norms_count_every_microbatch():
    def normed():
        ek.seed(3)
        return nn.Sequential(nn.Linear(8, 6), nn.BatchNorm1d(6)), nn.Linear(6, 4)

    model, losses = trained(["discrete", "cpu"], 3, make=normed, steps=2)
    assert all(np.isfinite(losses))
    assert model.stages[0][1].num_batches_tracked.item() == 6
    assert model.stages[0][1].running_mean.device == "discrete"


def test_a_loop_of_ones_own():
    """Gradients flow from device to device, and one optimizer steps them all."""
    found = []
    for places in (None, PLACES):
        made = stages()
        model = nn.Sequential(*made) if places is None else Pipeline(list(zip(made, places, strict=True)))
        optimizer = optim.Adam(model.parameters(), lr=1e-2)
        losses = []
        for _ in range(4):
            optimizer.zero_grad()
            loss = ek.cross_entropy(model(ek.tensor(X)), ek.tensor(Y))
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        assert optimizer.took_steps == 4
        found.append(losses)
    same(*found)


def test_fit_and_validate():
    found = []
    for places in (None, PLACES):
        made = stages()
        model = nn.Sequential(*made) if places is None else Pipeline(list(zip(made, places, strict=True)))
        history = train.fit(
            model, (X, Y), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(model.parameters(), lr=0.1), epochs=2,
            batch_size=16, validation=(X, Y), seed=5, quiet=True,
        )  # fmt: skip
        found.append([*history["loss"], *history["val_loss"]])
    same(*found, 1e-5)


def test_what_makes_no_sense_is_refused():
    a, b, _ = stages()
    for wrong in ([], [a, b], [(a, "cpu", 1)], [(lambda x: x, "cpu")]):
        with pytest.raises(TensorError, match="list of stages"):
            Pipeline(wrong)
    with pytest.raises(TensorError, match="1 or more"):
        Pipeline([(a, "cpu")], 0)
    with pytest.raises(TensorError, match="gpipe or 1f1b"):
        Pipeline([(a, "cpu")], schedule="zigzag")
    with pytest.raises(TensorError, match="belongs to stages 0 and 1"):
        Pipeline([(a, "cpu"), (nn.Sequential(a), "discrete")])
    model = Pipeline([(a, "cpu"), (b, "discrete")])
    for how in ({"accumulate": 2}, {"loss_scale": 2.0}, {"ema": optim.EMA(stages()[0])}, {"ahead": True}):
        with pytest.raises(TensorError, match="without"):
            train.Step(model, ek.mse_loss, optim.SGD(model.parameters(), lr=0.1), **how)
    with pytest.raises(TensorError, match="cannot be part of a function"):
        ek.jit(lambda x: model(x))(ek.tensor(X))
    other = nn.Parameter(ek.ones(2))
    with pytest.raises(TensorError, match="belong to no stage"):
        train.Step(model, ek.mse_loss, optim.SGD([*model.parameters(), other], lr=0.1))(
            X, np.ones((ROWS, 16), np.float32)
        )


class Failing(nn.Module):
    """A stage that fails in its microbatch number 3, which is shorter."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x):
        return self.inner(x if x.shape[0] == 10 else x[:, :3])


@pytest.mark.parametrize("failing", [0, 1, 2])
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_an_error_says_on_which_device_and_nothing_hangs(failing, schedule):
    ek.seed(0)
    made = [nn.Linear(16, 16) for _ in range(3)]
    made[failing] = Failing()
    model = Pipeline(list(zip(made, PLACES, strict=True)), 4, schedule=schedule)
    before = [p.detach().numpy().copy() for p in model.parameters()]
    step = train.Step(model, ek.mse_loss, optim.SGD(model.parameters(), lr=0.1))
    assert isinstance(step, PipelineStep)
    x = np.ones((37, 16), np.float32)
    with pytest.raises(ShapeError, match=f"on {PLACES[failing]}, stage {failing}: "):
        step(x, x)
    for p, wanted in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), wanted)
    assert step(np.ones((40, 16), np.float32), np.ones((40, 16), np.float32)).applied


def test_numbers_that_are_none_are_told_and_change_nothing():
    model, _ = trained(PLACES, steps=1)
    before = [p.detach().numpy().copy() for p in model.parameters()]
    step = train.Step(model, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(NotANumberError, match=r"the loss is nan: .* in stage 0 on cpu"):
        step(np.full_like(X, np.nan), Y)
    for p, wanted in zip(model.parameters(), before, strict=True):
        np.testing.assert_array_equal(p.detach().numpy(), wanted)
