"""What stands beside optimizers: misuse of schedules, clipping, penalties, averages of weights, loss scaling."""

from __future__ import annotations

import math
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

import eshkol as ek
from eshkol import optim
from eshkol.errors import EshkolError, NotANumberError, ShapeError, TensorError
from eshkol.optim import scaling


def leaf(data):
    return ek.tensor(np.asarray(data, np.float64)).requires_grad_()


def sgd(lr=0.1, **options):
    return optim.SGD([leaf([1.0, 2.0])], lr=lr, **options)


# --- schedules ----------------------------------------------------------------------------------------------------


def test_a_schedule_before_the_optimizer_is_warned_of():
    optimizer = sgd()
    schedule = optim.ExponentialLR(optimizer, 0.5)
    with pytest.warns(UserWarning, match=r"before optimizer.step\(\)") as caught:
        schedule.step()
    assert caught[0].filename == __file__  # the user's line, not one of ours
    optimizer = sgd()
    schedule = optim.ExponentialLR(optimizer, 0.5)
    optimizer.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        schedule.step()
    assert schedule.get_last_lr() == [0.05]


def test_two_schedules_are_composed_not_mixed():
    optimizer = sgd()
    one, two = optim.ExponentialLR(optimizer, 0.5), optim.StepLR(optimizer, 2)
    optimizer.step()
    one.step()
    with pytest.raises(TensorError, match="follows another schedule, ExponentialLR"):
        two.step()
    later = optim.StepLR(optimizer, 2)  # in its place
    optimizer.step()
    later.step()


@pytest.mark.parametrize(
    "make", [lambda o: optim.StepLR(o, 3), lambda o: optim.OneCycleLR(o, 0.5, 20), lambda o: optim.WarmupLR(o, 4)]
)
def test_a_schedule_goes_on_from_its_state(make):
    first, second = sgd(momentum=0.9), sgd(momentum=0.9)
    one, two = make(first), make(second)
    for _ in range(5):
        first.step()
        one.step()
    two.load_state_dict(one.state_dict())
    second.load_state_dict(first.state_dict())
    one.step()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        two.step()
    assert two.get_last_lr() == one.get_last_lr()
    assert first.param_groups[0]["momentum"] == second.param_groups[0]["momentum"]
    with pytest.raises(TensorError, match="does not fit"):
        two.load_state_dict({"strange": 1})


def test_a_plateau_goes_on_from_its_state():
    first, second = sgd(), sgd()
    one, two = optim.ReduceLROnPlateau(first, patience=1), optim.ReduceLROnPlateau(second, patience=1)
    one.step(1.0)
    one.step(1.0)
    two.load_state_dict(one.state_dict())
    two.step(1.0)
    assert two.get_last_lr() == [pytest.approx(0.01)]
    assert first.param_groups[0]["lr"] == 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda o: optim.StepLR(3, 1), "takes an optimizer"),
        (lambda o: optim.StepLR(o, 0), "step_size is a whole number above 0"),
        (lambda o: optim.LinearLR(o, 0.0), "start_factor"),
        (lambda o: optim.LambdaLR(o, [abs, abs]), "2 functions for 1 groups"),
        (lambda o: optim.OneCycleLR(o, 0.1), "total_steps"),
        (lambda o: optim.OneCycleLR(o, 0.1, 10, anneal_strategy="x"), "'cos' or 'linear'"),
        (lambda o: optim.OneCycleLR(o, [0.1, 0.2], 10), "2 rates for 1 groups"),
        (lambda o: optim.OneCycleLR(optim.Adagrad(o.tensors), 0.1, 10), "no momentum to cycle"),
        (lambda o: optim.OneCycleLR(o, 0.1, 10).step(11), "made for 10 steps"),
        (lambda o: optim.SequentialLR(o, [optim.ExponentialLR(o, 0.1)], [3]), "0 rising milestones"),
        (lambda o: optim.SequentialLR(o, [optim.ReduceLROnPlateau(o)], []), "given ReduceLROnPlateau"),
        (lambda o: optim.ChainedScheduler([]), "no schedules"),
        (lambda o: optim.WarmupLR(o, 3, optim.StepLR(sgd(), 3)), "another optimizer"),
        (lambda o: optim.ReduceLROnPlateau(o, mode="x"), "mode is"),
        (lambda o: optim.ReduceLROnPlateau(o, factor=1.0), "factor is"),
    ],
)
def test_misuse_of_schedules_is_told(make, message):
    with pytest.raises(EshkolError, match=message):
        make(sgd(momentum=0.9))


# --- gradients ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [1.0, 2.0, 3.0, math.inf])
def test_clipping_by_norm(kind):
    a, b = leaf([1.0, 2.0]), leaf([0.0])
    a.grad, b.grad = ek.tensor(np.array([3.0, 0.0])), ek.tensor(np.array([4.0]))
    kept = a.grad
    expected = np.linalg.norm([3.0, 4.0], kind)
    norm = optim.clip_grad_norm_([a, b, leaf([1.0])], 1.0, kind)
    assert norm.item() == pytest.approx(expected)
    np.testing.assert_allclose(a.grad.numpy(), np.array([3.0, 0.0]) / expected, rtol=1e-5)
    assert a.grad is kept
    assert optim.clip_grad_norm_([a, b], 10.0, kind).item() == pytest.approx(1.0, rel=1e-5)
    np.testing.assert_allclose(b.grad.numpy(), [4.0 / expected], rtol=1e-5)  # short enough: as they were


def test_a_norm_that_is_no_number_is_told_and_nothing_changed():
    a = leaf([1.0, 2.0])
    a.grad = ek.tensor(np.array([np.inf, 1.0]))
    with pytest.raises(NotANumberError, match="norm of the gradients is inf"):
        optim.clip_grad_norm_(a, 1.0, error_if_nonfinite=True)
    np.testing.assert_array_equal(a.grad.numpy(), [np.inf, 1.0])
    with pytest.raises(TensorError, match="max_norm is at least 0"):
        optim.clip_grad_norm_(a, -1.0)


def test_clipping_by_value_and_pure_clipping():
    a = leaf([1.0, 2.0])
    a.grad = ek.tensor(np.array([-3.0, 0.5]))
    optim.clip_grad_value_([a], 1.0)
    np.testing.assert_array_equal(a.grad.numpy(), [-1.0, 0.5])
    grads = {"w": ek.tensor([3.0, 4.0]), "b": ek.tensor([0.0], dtype=ek.bfloat16)}
    assert optim.global_norm(grads).item() == pytest.approx(5.0)
    short = ek.jit(optim.clipped, floats=True)(grads, 1.0)
    assert short["b"].dtype is ek.bfloat16
    np.testing.assert_allclose(short["w"].numpy(), [0.6, 0.8], rtol=1e-5)
    np.testing.assert_array_equal(optim.clipped_by_value(grads, 3.5)["w"].numpy(), [3.0, 3.5])


def test_penalties():
    params = [leaf([1.0, -2.0]), leaf([3.0])]
    assert optim.l1_penalty(params, 0.1).item() == pytest.approx(0.6)
    loss = optim.l2_penalty(iter(params), 0.5)
    assert loss.item() == pytest.approx(7.0)
    loss.backward()
    np.testing.assert_allclose(params[0].grad.numpy(), [1.0, -2.0])


# --- averages -----------------------------------------------------------------------------------------------------


def test_an_average_follows_and_stands_in():
    p = leaf([0.0, 0.0])
    ema = optim.EMA([p], decay=0.5)
    for _ in range(2):
        with ek.no_grad():
            p += ek.tensor(np.array([4.0, 8.0]))
        ema.update()
    np.testing.assert_allclose(ema.shadow[0].numpy(), [5.0, 10.0])  # 0 → 2 → (2 + 8) / 2
    with ema.applied():
        np.testing.assert_allclose(p.detach().numpy(), [5.0, 10.0])
        assert p.requires_grad
    np.testing.assert_allclose(p.detach().numpy(), [8.0, 16.0])
    other = optim.EMA([leaf([0.0, 0.0])], decay=0.9)
    other.load_state_dict(ema.state_dict())
    assert (other.decay, other.count) == (0.5, 2)
    ema.copy_to()
    np.testing.assert_allclose(p.detach().numpy(), [5.0, 10.0])
    with pytest.raises(ShapeError, match="other parameters"):
        optim.EMA([leaf([1.0])]).load_state_dict(ema.state_dict())


def test_an_average_warms_up_and_swa_is_the_mean():
    p = leaf([1.0])
    ema, swa = optim.EMA([p], decay=0.99, warmup=True), optim.SWA([p])
    assert ema.next_decay() == pytest.approx(0.1)
    for value in (1.0, 2.0, 6.0):
        with ek.no_grad():
            p += value - p.detach()
        swa.update()
        ema.update()
    np.testing.assert_allclose(swa.shadow[0].numpy(), [3.0])
    assert ema.next_decay() == pytest.approx(4 / 13)
    with pytest.raises(TensorError, match="decay lies in"):
        optim.EMA([p], decay=2.0)
    with pytest.raises(TensorError, match="no parameters"):
        optim.EMA([])


# --- loss scaling -------------------------------------------------------------------------------------------------


def test_a_scaled_step_is_a_step_and_one_that_overflows_is_left_out():
    p = leaf([1.0, 2.0])
    optimizer, scale = optim.SGD([p], lr=0.1), optim.LossScale(8.0, growth_interval=2)
    for expected in ([0.8, 1.6], [0.64, 1.28]):
        optimizer.zero_grad()
        scale.scale((p * p).sum()).backward()
        assert scale.step(optimizer)
        scale.update()
        np.testing.assert_allclose(p.detach().numpy(), expected)
    assert scale.get_scale() == 16.0  # two good steps in a row
    optimizer.zero_grad()
    p.grad = ek.tensor(np.array([np.inf, 1.0]))
    assert not scale.step(optimizer)
    scale.update()
    np.testing.assert_allclose(p.detach().numpy(), [0.64, 1.28])
    assert scale.state_dict() == {"scale": 8.0, "good": 0}
    with pytest.raises(TensorError, match="before any step"):
        scale.update()


def test_gradients_are_divided_once_and_may_be_clipped_between():
    p = leaf([3.0, 4.0])
    optimizer, scale = optim.SGD([p], lr=1.0), optim.LossScale(4.0, dynamic=False)
    scale.scale((p * p).sum() / 2).backward()
    scale.unscale_(optimizer)
    assert optim.clip_grad_norm_([p], 1.0).item() == pytest.approx(5.0)
    with pytest.raises(TensorError, match="called already"):
        scale.unscale_(optimizer)
    scale.step(optimizer)
    scale.update()
    np.testing.assert_allclose(p.detach().numpy(), [2.4, 3.2], rtol=1e-5)
    assert scale.get_scale() == 4.0


def test_the_pure_part_leaves_a_step_out_by_itself():
    scale = optim.LossScale(4.0, growth_interval=1)

    @ek.jit
    def step(p, g, state):
        good = scaling.finite(g)
        return scaling.chosen(good, [p[0] - scale.unscaled(g, state)[0]], p), scale.updated(state, good)

    p, state = step([ek.tensor([1.0])], [ek.tensor([2.0])], scale.state)
    assert (p[0].item(), state["scale"].item()) == (0.5, 8.0)
    p, state = step(p, [ek.tensor([np.nan])], state)
    assert (p[0].item(), state["scale"].item()) == (0.5, 4.0)


def test_the_page_of_the_documentation_runs():
    page = (Path(__file__).parent.parent.parent / "docs" / "optimizers.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(block.replace("range(20)", "range(4)"), {})
    named = set(re.findall(r"\| `(\w+)`(?:, `(\w+)`)? \|", page))
    assert {name for pair in named for name in pair if name} == set(optim.RULES)
