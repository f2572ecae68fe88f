"""Optimizers as objects: groups, steps, state, misuse; and that one compiled call updates all parameters."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eshkol as ek
from eshkol import optim
from eshkol.errors import DerivativeError, DTypeError, EshkolError, ShapeError, TensorError
from eshkol.schedule.plan.arena import inherited
from eshkol.schedule.plan.steps import Launch, Together

NAMES = tuple(optim.RULES)


def leaf(*shape, value=1.0, dtype=ek.float64):
    return ek.full(shape, value, dtype=dtype).realize().requires_grad_()


def with_gradients(params, seed=0):
    rng = np.random.default_rng(seed)
    for p in params:
        p.grad = ek.cast(ek.tensor(rng.standard_normal(p.shape)), p.dtype)
    return params


def values(params):
    return [p.detach().numpy().copy() for p in params]


# --- one call for all ---------------------------------------------------------------------------------------------


@given(st.sampled_from(NAMES), st.lists(st.sampled_from([(), (3,), (2, 2), (0,)]), min_size=1, max_size=3))
@settings(max_examples=6)
def test_all_at_once_is_each_by_itself_and_the_pure_function(name, shapes):
    made = [[leaf(*shape) for shape in shapes] for _ in range(3)]
    together = getattr(optim, name)(made[0], lr=0.1)
    alone = [getattr(optim, name)([p], lr=0.1) for p in made[1]]
    pure = getattr(optim.functional, name.lower())
    held, state = {k: p.detach() for k, p in enumerate(made[2])}, None
    for step in range(2):
        for params in made[:2]:
            with_gradients(params, step)
        together.step()
        for one in alone:
            one.step()
        grads = {k: p.grad for k, p in enumerate(with_gradients(made[2], step))}
        held, state = pure(held, grads, state, step + 1, lr=0.1)
    for a, b, c in zip(values(made[0]), values(made[1]), held.values(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
        np.testing.assert_allclose(a, c.numpy(), rtol=1e-12)


def launches(steps):
    return sum(1 for step in steps if isinstance(step, Launch | Together))


@pytest.mark.parametrize("name", ["SGD", "AdamW"])
def test_fifty_tensors_are_few_kernels(name):
    params = [leaf(4, 3, dtype=ek.float32) for _ in range(50)]
    optimizer = getattr(optim, name)(params)
    grads = [p.detach() for p in params]
    run = ek.jit(optimizer.updated, floats=True)
    plan = run.plan([p.detach() for p in params], grads, optimizer.slots(), optimizer.hyper(), 1.0)
    assert launches(plan.steps) <= 5


def test_parameters_and_slots_are_updated_in_place():
    params = [leaf(4, 3, dtype=ek.float32) for _ in range(3)]
    optimizer = optim.SGD(params, lr=0.1, momentum=0.9)
    run = ek.jit(optimizer.updated, floats=True)
    given = [p.detach() for p in params]
    plan = run.plan(given, given, optimizer.slots(), optimizer.hyper(), 1.0)
    donated = [place for place in plan.params if plan.places[place].size == 48]
    assert len(inherited(plan, [*donated[:3], *donated[6:]])) == 6


def test_other_numbers_do_not_compile_again():
    p = leaf(3)
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)
    for rate in (0.1, 0.2, 0.3):
        optimizer.param_groups[0]["lr"] = rate
        p.grad = ek.tensor(np.ones(3))
        optimizer.step()
    (run,) = optimizer._runs.values()
    assert len(run._traces) == 1


def test_a_number_that_comes_into_play_is_seen():
    p = leaf(2)
    optimizer = optim.SGD([p], lr=0.5)
    p.grad = ek.tensor(np.ones(2))
    optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), 0.5)
    optimizer.param_groups[0]["weight_decay"] = 1.0
    optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), 0.5 - 0.5 * 1.5)


# --- parameters and groups ----------------------------------------------------------------------------------------


def test_groups_have_options_of_their_own():
    a, b = leaf(2), leaf(2)
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": b}], lr=0.1)
    for p in (a, b):
        p.grad = ek.tensor(np.ones(2))
    optimizer.step()
    np.testing.assert_allclose(a.detach().numpy(), 0.0)
    np.testing.assert_allclose(b.detach().numpy(), 0.9)
    c = leaf(2)
    optimizer.add_param_group({"params": [("c", c)], "lr": 0.5})
    c.grad = ek.tensor(np.ones(2))
    optimizer.step()
    np.testing.assert_allclose(c.detach().numpy(), 0.5)
    assert optimizer.names == ["parameter 0", "parameter 0", "c"]


def test_what_has_no_gradient_or_is_frozen_stays_and_counts_its_own_steps():
    a, b, c = params = [leaf(2) for _ in range(3)]
    optimizer = optim.Adam(params, lr=0.1)
    a.grad = ek.tensor(np.ones(2))
    c.grad = ek.tensor(np.ones(2))
    c.requires_grad_(False)
    optimizer.step()
    assert [p.detach().numpy()[0] for p in params] == pytest.approx([0.9, 1.0, 1.0])
    b.grad = ek.tensor(np.ones(2))
    optimizer.step()  # the second of a, the first of b: both are corrected as such
    assert [p.detach().numpy()[0] for p in params] == pytest.approx([0.8, 0.9, 1.0])
    assert [optimizer.steps.get(p, 0) for p in params] == [2, 1, 0]


def test_parameters_of_sixteen_bits_and_complex_ones():
    p, z = leaf(3, dtype=ek.bfloat16), ek.tensor(np.array([1 + 1j, -2j])).requires_grad_()
    p.grad, z.grad = ek.ones((3,), dtype=ek.bfloat16), ek.tensor(np.array([3 + 4j, 1j]))
    optimizer = optim.Adam([p, z], lr=0.5)
    optimizer.step()
    assert p.dtype is ek.bfloat16
    assert optimizer.state[p]["exp_avg_sq"].dtype is ek.float32
    np.testing.assert_allclose(np.asarray(p.tolist()), 0.5, rtol=1e-2)
    np.testing.assert_allclose(z.detach().numpy(), [0.5 + 0.5j, -2.5j], rtol=1e-6, atol=1e-9)


def test_handles_stay_and_earlier_values_too():
    p = leaf(2)
    optimizer = optim.SGD([p], lr=0.1, momentum=0.9)
    before = p.detach()
    with_gradients([p])
    optimizer.step()
    slot = optimizer.state[p]["momentum_buffer"]
    saved = optimizer.state_dict()["state"][0]["momentum_buffer"]
    kept = saved.numpy().copy()
    optimizer.step()
    np.testing.assert_array_equal(before.numpy(), [1.0, 1.0])
    np.testing.assert_array_equal(saved.numpy(), kept)
    assert optimizer.state[p]["momentum_buffer"] is slot
    assert p.requires_grad
    assert p.is_leaf


def test_a_closure_is_called_and_its_loss_given():
    p = leaf(2)
    optimizer = optim.SGD([p], lr=0.1)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 2.0
    np.testing.assert_allclose(p.detach().numpy(), 0.8)


def test_the_count_may_be_a_tensor_of_a_compiled_step():
    p = leaf(2, dtype=ek.float32)
    optimizer = optim.Adam([p], lr=0.1)
    run = ek.jit(optimizer.updated, floats=True)
    (value,), _ = run([p.detach()], [p.detach()], optimizer.slots(), optimizer.hyper(), ek.tensor(1, dtype=ek.int32))
    assert value.dtype is ek.float32
    np.testing.assert_allclose(value.numpy(), 0.9, rtol=1e-6)


def test_pure_functions_take_numbers_of_a_trace():
    step = ek.jit(lambda p, g, lr: optim.functional.sgd(p, g, lr=lr, momentum=0.5)[0], floats=True)
    for rate in (0.1, 0.2):
        np.testing.assert_allclose(step([ek.tensor([1.0])], [ek.tensor([1.0])], rate)[0].numpy(), [1 - rate], rtol=1e-6)
    assert len(step._traces) == 1
    with pytest.raises(TensorError, match="parameters are"):
        optim.functional.adam([ek.tensor([1.0])], ek.tensor([1.0]))
    with pytest.raises(TensorError, match="no 'exp_avg'"):
        optim.functional.adam(ek.tensor([1.0]), ek.tensor([1.0]), {})


# --- spent gradients ----------------------------------------------------------------------------------------------


def test_a_forgotten_zero_grad_is_an_error():
    a, b = leaf(2), leaf(2)
    optimizer = optim.SGD([a], lr=0.1)
    (a * b).sum().backward()
    (a * b).sum().backward()  # gradients add up until they are used
    optimizer.step()
    earlier = b.grad.numpy().copy()
    with pytest.raises(DerivativeError, match=r"already used by optimizer.step\(\)") as caught:
        (a * b).sum().backward()
    assert "zero_grad" in caught.value.hint
    np.testing.assert_array_equal(b.grad.numpy(), earlier)  # nothing was added anywhere
    optimizer.zero_grad()
    (a * b).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 1.0)


def test_a_spent_gradient_is_still_a_tensor():
    a = leaf(2)
    optimizer = optim.SGD([a], lr=0.1)
    (a * 3).sum().backward()
    optimizer.step()
    np.testing.assert_allclose((a.grad + 1).numpy(), 4.0)
    optimizer.zero_grad(set_to_none=False)
    (a * 3).sum().backward()
    np.testing.assert_allclose(a.grad.numpy(), 3.0)


# --- state --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["SGD", "NAdam"])
def test_a_state_goes_on_where_it_was_saved(name):
    options = {"lr": 0.1, "momentum": 0.9} if name == "SGD" else {"lr": 0.1}
    p, q = leaf(3), leaf(3)
    first = getattr(optim, name)([p], **options)
    with_gradients([p])
    first.step()
    second = getattr(optim, name)([q], lr=0.7)
    second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
    with ek.no_grad():
        q += p.detach() - q.detach()
    for params, optimizer in (([p], first), ([q], second)):
        with_gradients(params, 1)
        optimizer.step()
    np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-12)


def test_a_state_that_does_not_fit_changes_nothing():
    p, q = leaf(3), leaf(2)
    saved = optim.Adam([q], lr=0.5)
    with_gradients([q])
    saved.step()
    own = optim.Adam([p], lr=0.1)
    with pytest.raises(ShapeError, match=r"'exp_avg' of parameter 0 has shape \[3\]"):
        own.load_state_dict(saved.state_dict())
    with pytest.raises(TensorError, match=r"groups of \[1\] parameters"):
        optim.Adam([leaf(1), leaf(1)]).load_state_dict(saved.state_dict())
    with pytest.raises(TensorError, match="another optimizer than SGD"):
        optim.SGD([q]).load_state_dict(saved.state_dict())
    with pytest.raises(TensorError, match="no state of an optimizer"):
        own.load_state_dict({})
    assert own.param_groups[0]["lr"] == 0.1
    assert not own.state


# --- misuse -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda p: optim.SGD([]), "given no parameters"),
        (lambda p: optim.SGD([p, p]), "parameter 1 twice"),
        (lambda p: optim.SGD([{"params": [p]}, {"params": [p]}]), "twice"),
        (lambda p: optim.SGD([p * 2]), "no leaf"),
        (lambda p: optim.SGD(p), "given one tensor"),
        (lambda p: optim.SGD({"w": p}), "given a dict"),
        (lambda p: optim.SGD(3), "given int"),
        (lambda p: optim.SGD([3.0]), "was given float"),
        (lambda p: optim.SGD([p], lr=-1), "lr must be not negative"),
        (lambda p: optim.SGD([p], lr="a"), "lr is a number"),
        (lambda p: optim.SGD([p], lr=float("nan")), "lr must be"),
        (lambda p: optim.SGD([p], momentun=0.9), "did you mean 'momentum'"),
        (lambda p: optim.SGD([p], 0.1, lr=0.1), "'lr' twice"),
        (lambda p: optim.SGD([p], nesterov=True), "nesterov needs a momentum"),
        (lambda p: optim.SGD([p], nesterov=1), "True or False"),
        (lambda p: optim.Adam([p], betas=(0.9, 1.0)), r"betas\[1\] must be at least 0 and less than 1"),
        (lambda p: optim.Adam([p], betas=0.9), "betas are 2 numbers"),
        (lambda p: optim.Optimizer([p]), "base of optimizers"),
        (lambda p: optim.SGD([p]).add_param_group({"lr": 1}), "a dict with 'params'"),
    ],
)
def test_misuse_is_told(make, message):
    with pytest.raises(EshkolError, match=message):
        make(leaf(2))


def test_integers_are_not_trained():
    with pytest.raises(DTypeError, match="only floats are trained"):
        optim.SGD([ek.tensor([1, 2])])


def test_a_rate_that_became_wrong_is_told_and_nothing_is_lost():
    p = leaf(2)
    optimizer = optim.Adam([p])
    with_gradients([p])
    optimizer.param_groups[0]["lr"] = -1.0
    with pytest.raises(TensorError, match="lr must be not negative"):
        optimizer.step()
    np.testing.assert_array_equal(p.detach().numpy(), [1.0, 1.0])
