"""`Step`: compiled and eager steps are the same, and a step that cannot be made changes nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eshkol as ek
from eshkol import nn, optim
from eshkol.errors import IndexOutOfRange, NotANumberError, TensorError
from eshkol.train.step import Evaluation, Step


@pytest.fixture(autouse=True)
def _small() -> Any:
    with ek.use_backend("reference"):
        yield


def batch(rows: int = 6) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    return ek.tensor(rng.normal(size=(rows, 4)).astype(np.float32)), ek.tensor(rng.integers(0, 3, rows))


def network() -> nn.Sequential:
    ek.seed(1)
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Dropout(0.2), nn.BatchNorm1d(5), nn.Linear(5, 3))


def trained(steps: int = 4, **how: Any) -> tuple[list[float], dict[str, Any]]:
    model = network()
    step = Step(model, ek.cross_entropy, optim.Adam(model.parameters(), lr=0.05), **how)
    ek.seed(2)
    losses = [step(*batch()).loss.item() for _ in range(steps)]
    return losses, {name: value.numpy() for name, value in model.state_dict().items()}


def test_compiled_and_eager_steps_are_the_same() -> None:
    (losses, state), (others, other) = trained(), trained(jit=False)
    np.testing.assert_allclose(losses, others, rtol=1e-5)
    for name, value in state.items():
        np.testing.assert_allclose(value, other[name], rtol=1e-4, atol=1e-6, err_msg=name)
    assert losses[-1] < losses[0]


def test_a_seed_gives_the_same_run_bit_for_bit() -> None:
    first, second = trained(), trained()
    assert first[0] == second[0]
    for name, value in first[1].items():
        np.testing.assert_array_equal(value, second[1][name])


# --- steps that are not waited for ----------------------------------------------------------------


@pytest.mark.parametrize("device", ["cpu", "discrete"])
def test_steps_ahead_are_the_same_bit_for_bit(device: str) -> None:
    with ek.device(device):
        (losses, state), (others, other) = trained(), trained(ahead=True)
    assert losses == others
    for name, value in state.items():
        np.testing.assert_array_equal(value, other[name])


@pytest.mark.parametrize("device", ["cpu", "discrete"])
def test_what_a_step_ahead_met_is_told_by_the_next_and_it_changed_nothing(device: str) -> None:
    with ek.device(device):
        model, (x, y) = network(), batch()
        opt = optim.Adam(model.parameters(), lr=0.05)
        step = Step(model, ek.cross_entropy, opt, ahead=True)
        step(x, y)
        before = {name: value.numpy() for name, value in model.state_dict().items()}
        bad = step(x * np.inf, y)
        assert np.isnan(bad.loss.item())  # a number like any other: nobody was told yet
        for name, value in model.state_dict().items():
            np.testing.assert_array_equal(value.numpy(), before[name], err_msg=name)
        with pytest.raises(NotANumberError, match="the inputs of the batch hold") as told:
            step(x, y)
        assert "the batch after it was used" in str(told.value.hint)
        assert {opt.steps[p] for p in opt.tensors} == {2}
        step.settle()
        assert any((value.numpy() != before[name]).any() for name, value in model.state_dict().items())


@pytest.mark.parametrize("ask", [lambda step, result: result.applied, lambda step, result: step.settle(),
                                 lambda step, result: step.state_dict()])  # fmt: skip
def test_a_step_ahead_can_be_waited_for(ask: Any) -> None:
    model, (x, y) = network(), batch()
    opt = optim.SGD(model.parameters(), lr=0.05)
    step = Step(model, ek.cross_entropy, opt, ahead=True)
    assert step(x, y).applied
    result = step(x * np.nan, y)
    with pytest.raises(NotANumberError, match="the inputs of the batch hold nan"):
        ask(step, result)
    assert {opt.steps[p] for p in opt.tensors} == {1}
    step.settle()  # it was told


@pytest.mark.parametrize("how", [{"jit": False}, {"accumulate": 2}, {"loss_scale": "dynamic"}])
def test_what_must_know_of_each_step_is_not_ahead(how: dict[str, Any]) -> None:
    model = network()
    with pytest.raises(TensorError, match="ahead=True goes with no"):
        Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=0.05), ahead=True, **how)


@pytest.mark.parametrize("jit", [True, False])
def test_gradients_of_two_batches_make_one_step(jit: bool) -> None:
    x, y = batch(8)
    weights = []
    for parts, accumulate in (([(x, y)], 1), ([(x[:4], y[:4]), (x[4:], y[4:])], 2)):
        ek.seed(3)
        model = nn.Linear(4, 3)
        step = Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=0.5), accumulate=accumulate, jit=jit)
        applied = [step(*part).applied for _ in range(2) for part in parts]
        assert applied == [k % accumulate == accumulate - 1 for k in range(2 * accumulate)]
        weights.append(model.weight.detach().numpy())
    np.testing.assert_allclose(weights[0], weights[1], rtol=1e-5)


@pytest.mark.parametrize("jit", [True, False])
def test_a_loss_that_is_no_number_changes_nothing_and_names_its_layer(jit: bool) -> None:
    class Logarithm(nn.Module):
        def forward(self, x: Any) -> Any:
            return ek.log(x - 1000)

    ek.seed(0)
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), Logarithm())
    optimizer = optim.Adam(model.parameters())
    before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
    with pytest.raises(NotANumberError, match=r"the loss is nan: layer '2' \(Logarithm\) gives nan"):
        Step(model, ek.cross_entropy, optimizer, jit=jit)(*batch())
    for name, value in model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), before[name])
    assert not optimizer.took_steps


def test_a_gradient_that_is_no_number_is_named() -> None:
    model = nn.Sequential(nn.Linear(4, 3))
    with ek.no_grad():
        model[0].weight *= 0
        model[0].bias *= 0
    step = Step(model, lambda out, y: ek.sum(ek.sqrt(ek.abs(out))), optim.SGD(model.parameters(), lr=0.1))
    with pytest.raises(NotANumberError, match=r"the gradient of '0\.bias' holds"):
        step(*batch())


def test_evaluation_puts_modes_back_and_leaves_buffers() -> None:
    model = network()
    model[3].eval()
    mean = model[3].running_mean.numpy().copy()
    first, outputs = Evaluation(model, ek.cross_entropy)(*batch())
    again, _ = Evaluation(model, ek.cross_entropy, jit=False)(*batch())
    assert first is not None
    assert again is not None
    assert first.item() == pytest.approx(again.item(), rel=1e-6)
    assert outputs.shape == (6, 3)
    assert model.training
    assert not model[3].training
    np.testing.assert_array_equal(model[3].running_mean.numpy(), mean)


def test_misuse_is_told() -> None:
    model = nn.Linear(4, 3)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with pytest.raises(TensorError, match="evaluation mode"):
        Step(model.eval(), ek.cross_entropy, optimizer)(*batch())
    model.train()
    with pytest.raises(TensorError, match=r"one number as its loss, and it has shape \[6\]"):
        Step(model, lambda out, y: ek.cross_entropy(out, y, reduction="none"), optimizer)(*batch())
    with pytest.raises(TensorError, match="accumulate is a number"):
        Step(model, ek.cross_entropy, optimizer, accumulate=0)
    with pytest.raises(TensorError, match="requires grad"):
        Step(model.freeze(), ek.cross_entropy, optimizer)(*batch())


def test_frozen_layers_stay_as_they_are() -> None:
    model = network()
    model[0].freeze()
    before = model[0].weight.numpy().copy()
    step = Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=0.1))
    step(*batch())
    np.testing.assert_array_equal(model[0].weight.numpy(), before)
    model[0].unfreeze()
    step(*batch())
    assert not np.array_equal(model[0].weight.detach().numpy(), before)


def test_what_others_hold_of_a_model_outlives_compiled_steps() -> None:
    with ek.use_backend("cpu"):
        model = network()
        optimizer = optim.Adam(model.parameters(), lr=0.1)
        step = Step(model, ek.cross_entropy, optimizer)
        step(*batch())
        weight = model[0].weight.detach()
        state, slots = model.state_dict(), optimizer.state_dict()["state"][0]["exp_avg"]
        before = state["0.weight"].numpy().copy(), slots.numpy().copy()
        step(*batch())
        step(*batch())
        for value in (state["0.weight"], weight):
            np.testing.assert_array_equal(value.numpy(), before[0])
        np.testing.assert_array_equal(slots.numpy(), before[1])
        assert not np.array_equal(model[0].weight.detach().numpy(), before[0])


def test_a_compiled_step_that_fails_while_it_runs_leaves_everything_as_it_was() -> None:
    with ek.use_backend("cpu"):
        model = network()
        optimizer = optim.Adam(model.parameters(), lr=0.1)
        step = Step(model, ek.cross_entropy, optimizer)
        x, y = batch()
        step(x, y)
        before = {name: value.numpy().copy() for name, value in model.state_dict().items()}
        with pytest.raises(IndexOutOfRange, match="target 1 is class 3"):
            step(x, y + 2)
        for name, value in model.state_dict().items():
            np.testing.assert_array_equal(value.numpy(), before[name])
        assert np.isfinite(step(x, y).loss.item())


def test_clipped_scaled_averaged_and_lower_precision() -> None:
    x, y = batch()
    plain, _ = trained(2)
    scaled, _ = trained(2, loss_scale=8.0)
    np.testing.assert_allclose(plain, scaled, rtol=1e-5)
    ek.seed(0)
    model = nn.Linear(4, 3)
    before = model.weight.detach().numpy().copy()
    ema = optim.EMA(model, decay=0.5)
    step = Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=1.0), clip_norm=1e-3, ema=ema)
    step(x, y)
    moved = model.weight.detach().numpy() - before
    assert 0 < np.linalg.norm(moved) < 1.001e-3
    np.testing.assert_allclose(ema.shadow[0].numpy(), before + moved / 2, rtol=1e-5)
    lower, _ = trained(3, precision="bfloat16", clip_value=0.5)
    assert lower[-1] < lower[0]
    assert lower[0] == pytest.approx(plain[0], rel=0.05)
    with pytest.raises(TensorError, match="loss_scale is a number"):
        Step(model, ek.cross_entropy, optim.SGD(model.parameters(), lr=1.0), loss_scale="large")


def test_a_scale_that_is_too_large_leaves_the_step_out_and_shrinks() -> None:
    model = nn.Linear(4, 3)
    before = model.weight.detach().numpy().copy()
    scale = optim.LossScale(init_scale=1e38)
    step = Step(model, lambda out, y: 1e4 * ek.cross_entropy(out, y), optim.SGD(model.parameters(), lr=0.1),
                loss_scale=scale)  # fmt: skip
    assert not step(*batch()).applied
    np.testing.assert_array_equal(model.weight.detach().numpy(), before)
    assert scale.get_scale() == pytest.approx(5e37)
    assert not step.optimizer.took_steps
