"""The imperative style: requires_grad, backward, no_grad, training loops."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest
from numerics import close, gradient, t64

import eshkol as ek
from eshkol.errors import DerivativeError, DTypeError, ShapeError, TensorError, TraceError
from eshkol.runtime import front


def leaf(data):
    return t64(data).requires_grad_()


# --- backward -------------------------------------------------------------------------------------


def test_backward_leaves_gradients_in_the_leaves():
    a, b = leaf([1.0, 2.0]), leaf(3.0)
    loss = (a * a * b).sum()
    assert loss.requires_grad
    assert not loss.is_leaf
    loss.backward()
    close(a.grad, [6.0, 12.0])
    close(b.grad, 5.0)
    assert not a.grad.requires_grad


def test_gradients_add_up_until_they_are_cleared():
    a = leaf([1.0, 2.0])
    (a * 2).sum().backward()
    (a * 3).sum().backward()
    close(a.grad, [5.0, 5.0])
    a.grad = None
    (a * 3).sum().backward()
    close(a.grad, [3.0, 3.0])
    a.grad = ek.zeros_like(a.detach())
    (a * 4).sum().backward()
    close(a.grad, [4.0, 4.0])


def test_backward_may_be_called_twice_and_two_losses_may_share_a_graph():
    a = leaf(2.0)
    shared = ek.exp(a)
    one, two = shared * 3, shared * shared
    one.backward()
    close(a.grad, 3 * np.exp(2.0))
    two.backward()
    close(a.grad, 3 * np.exp(2.0) + 2 * np.exp(4.0))
    one.backward()
    close(a.grad, 6 * np.exp(2.0) + 2 * np.exp(4.0))


def test_backward_of_values_that_were_looked_at_before():
    a = leaf([1.0, 2.0])
    y = a * a
    assert y.detach().tolist() == [1.0, 4.0]
    assert y.sum().item() == 5.0
    z = y * 3
    assert z.tolist() == [3.0, 12.0]
    z.sum().backward()
    close(a.grad, [6.0, 12.0])


def test_backward_of_what_is_no_scalar_needs_a_gradient_of_its_shape():
    a = leaf([1.0, 2.0])
    with pytest.raises(ShapeError, match="scalar"):
        (a * a).backward()
    with pytest.raises(ShapeError, match="shape"):
        (a * a).backward(t64(1.0))
    assert a.grad is None
    (a * a).backward(t64([1.0, 10.0]))
    close(a.grad, [2.0, 40.0])
    (a * a).backward([1.0, 1.0])
    close(a.grad, [4.0, 44.0])


@pytest.mark.parametrize(
    "steps", [lambda x: (x > 1.5).mean(), lambda x: ek.sum(ek.round(x)), lambda x: ek.argmax(x) * 0.5]
)
def test_backward_is_refused_where_all_gradients_would_be_zero(steps):
    a = leaf([1.0, 2.0])
    for _ in range(2):
        with pytest.raises(DerivativeError, match="all its gradients are zero"):
            steps(a).backward()
        assert a.grad is None
    (steps(a) + a.sum()).backward()
    close(a.grad, [1.0, 1.0])


def test_backward_of_what_depends_on_no_leaf_is_refused():
    with pytest.raises(DerivativeError, match="requires_grad"):
        t64(1.0).backward()
    a = leaf(1.0)
    with pytest.raises(DerivativeError, match="requires_grad"):
        (a.detach() * 2).backward()
    with ek.no_grad():
        hidden = a * 2
    with pytest.raises(DerivativeError, match="requires_grad"):
        hidden.backward()
    with pytest.raises(DerivativeError, match="requires_grad"):
        (a > 0).backward()


def test_only_floats_and_complex_numbers_require_grad():
    for data in (1, True, [1, 2]):
        with pytest.raises(DTypeError, match="float"):
            ek.tensor(data, requires_grad=True)
        with pytest.raises(DTypeError, match="float"):
            ek.tensor(data).requires_grad = True
    z = ek.tensor(np.array([1 + 2j]), requires_grad=True)
    (z * z.conj()).real.sum().backward()
    close(z.grad, [2 + 4j])


def test_a_leaf_of_low_precision_has_a_gradient_of_its_own_dtype():
    for dtype in ("float16", "bfloat16", "float32"):
        w = ek.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
        (w.astype("float64") ** 2).sum().backward()
        assert w.grad.dtype is w.dtype
        assert w.grad.tolist() == [2.0, 4.0]


def test_a_leaf_that_the_loss_does_not_need_has_no_gradient():
    a, b = leaf(1.0), leaf(2.0)
    (a * 2).backward()
    assert b.grad is None


def test_truth_values_and_integers_do_not_require_grad():
    a = leaf([1.0, 2.0])
    assert not (a > 1).requires_grad
    assert not a.argmax().requires_grad
    assert "requires_grad" not in repr(a > 1)
    assert (a > 1).numpy().tolist() == [False, True]


def test_gradients_of_another_shape_are_refused():
    a = leaf([1.0, 2.0])
    with pytest.raises(ShapeError):
        a.grad = t64(1.0)


def test_gradients_through_every_kind_of_op():
    x = np.array([[0.3, -0.4, 0.5], [0.1, 0.9, -0.2]])

    def f(w):
        y = ek.sin(w) @ w.T
        return (y[0] * y[:, 1]).sum() + w[w > 0].sum() * ek.max(w) + ek.concatenate([w, w * 2])[1:, ::2].sum()

    w = leaf(x)
    f(w).backward()
    close(w.grad, gradient(f, x), 1e-8)


# --- switching it off and on ----------------------------------------------------------------------


def test_no_grad_and_enable_grad_nest_and_decorate():
    a = leaf(2.0)
    with ek.no_grad():
        assert not (a * 2).requires_grad
        with ek.enable_grad():
            assert (a * 2).requires_grad
            with ek.no_grad():
                assert not (a * 2).requires_grad
        assert not (a * 2).requires_grad
    assert (a * 2).requires_grad
    assert a.requires_grad

    @ek.no_grad()
    def quiet(x):
        return x * 2

    assert not quiet(a).requires_grad
    assert (a * 2).requires_grad


def test_no_grad_ends_with_an_error_and_may_be_entered_again():
    a, mode = leaf(2.0), ek.no_grad()
    with pytest.raises(ZeroDivisionError), mode:
        _ = 1 / 0
    assert (a * 2).requires_grad
    with mode:
        with mode:
            assert not (a * 2).requires_grad
        assert not (a * 2).requires_grad
    assert (a * 2).requires_grad


def test_no_grad_is_about_one_thread():
    a, inside, done = leaf(2.0), threading.Event(), threading.Event()

    def quiet():
        with ek.no_grad():
            inside.set()
            done.wait(10)

    other = threading.Thread(target=quiet)
    other.start()
    inside.wait(10)
    seen = (a * 2).requires_grad
    done.set()
    other.join()
    assert seen


def test_no_grad_is_about_backward_only():
    with ek.no_grad():
        close(ek.grad(lambda x: x * x)(t64(3.0)), 6.0)
        close(ek.hessian(lambda x: x * x)(t64(3.0)), 2.0)


def test_detach_and_clone():
    a = leaf([1.0, 2.0])
    cut, twin = a.detach(), a.clone()
    assert not cut.requires_grad
    assert twin.requires_grad
    assert not twin.is_leaf
    (twin * cut).sum().backward()
    close(a.grad, [1.0, 2.0])
    assert twin.grad is None
    with pytest.raises(TensorError, match="alone"):
        cut += 1
    own = cut.clone()
    own += 1
    close(own, [2.0, 3.0])
    close(a.detach(), [1.0, 2.0])


def test_requires_grad_may_be_taken_back_from_a_leaf_only():
    a = leaf(1.0)
    y = a * 2
    a.requires_grad = False
    assert not (a * 2).requires_grad
    with pytest.raises(DerivativeError, match="detach"):
        y.requires_grad_(False)
    assert a.requires_grad_() is a
    (a * 3).backward()
    close(a.grad, 3.0)


def test_a_leaf_may_be_made_of_something_computed():
    y = t64([1.0, 2.0]) * 3
    y.requires_grad_()
    assert y.is_leaf
    (y * y).sum().backward()
    close(y.grad, [6.0, 12.0])


def test_a_tensor_that_is_not_a_leaf_is_changed_in_place_with_its_history():
    a = leaf([1.0, 2.0, 3.0])
    y = a * 2
    y[0] = 100.0
    y *= a
    y[1:] += 1.0
    y.sum().backward()
    close(a.grad, [100.0, 8.0, 12.0])
    buffer = ek.zeros(3, dtype="float64")
    buffer[1] = a[0] * a[2]
    assert buffer.requires_grad
    a.grad = None
    buffer.sum().backward()
    close(a.grad, [3.0, 0.0, 1.0])


def test_a_tensor_with_a_history_is_not_cut_off_from_it_in_place():
    a = leaf([1.0, 2.0])
    y = a * 2
    with ek.no_grad():
        with pytest.raises(DerivativeError, match="detach"):
            y += 1
        with pytest.raises(DerivativeError, match="detach"):
            y[0] = 0.0
    y.sum().backward()
    close(a.grad, [2.0, 2.0])


def test_a_loss_computed_before_an_update_keeps_the_old_values():
    a = leaf(3.0)
    loss = a * a
    with ek.no_grad():
        a -= 1.0
    close(loss.detach(), 9.0)
    (a * a).backward()
    close(a.grad, 4.0)


def test_numbers_of_values_with_history_are_given_out():
    a = leaf([3.0])
    assert (a * 2).item() == 6.0
    assert float(a) == 3.0
    assert (a * 2).tolist() == [6.0]
    assert bool(a > 2)
    with pytest.raises(TraceError, match="detach"):
        (a * 2).numpy()


# --- mixing both styles ---------------------------------------------------------------------------


def test_functional_gradients_inside_imperative_code():
    w = leaf(2.0)
    penalty = ek.grad(lambda x: x * x * w)(t64(3.0))  # 2·x·w
    close(penalty.detach(), 12.0)
    (penalty * penalty).backward()
    close(w.grad, 2 * 12 * 6.0)


def test_the_functional_gradient_of_a_leaf_leaves_it_alone():
    w = leaf(2.0)
    found = ek.grad(lambda w: w * w * w)(w)
    close(found.detach(), 12.0)
    assert w.grad is None
    found.backward()
    close(w.grad, 12.0)


def test_backward_through_vmap():
    w = leaf([1.0, 2.0])
    x = np.arange(6.0).reshape(3, 2)
    ek.vmap(lambda row: ek.sin((row * w).sum()))(t64(x)).sum().backward()
    close(w.grad, gradient(lambda w: ek.sin((t64(x) * w).sum(1)).sum(), [1.0, 2.0]), 1e-8)


# --- training -------------------------------------------------------------------------------------


def regression():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(16, 3)).astype(np.float32)
    truth = np.array([[1.0], [-2.0], [0.5]], np.float32)
    return x, (x @ truth + 0.25).astype(np.float32), truth


def trained(steps, after_step=lambda k, loss: None):
    x, y, truth = regression()
    x, y = ek.tensor(x), ek.tensor(y)
    w, b = ek.zeros((3, 1)).requires_grad_(), ek.zeros(1).requires_grad_()
    losses = []
    for k in range(steps):
        loss = ((x @ w + b - y) ** 2).mean()
        w.grad = b.grad = None
        loss.backward()
        with ek.no_grad():
            w -= 0.1 * w.grad
            b -= 0.1 * b.grad
        losses.append(loss.item())
        after_step(k, loss)
    return losses, w, b, truth


def alive():
    """How many nodes there are."""
    gc.collect()
    return front.known()[0]


def test_linear_regression_converges_and_memory_does_not_grow():
    counts = {}

    def count(k, loss):
        if k in (20, 110, 199):
            counts[k] = alive()

    with ek.use_backend("cpu"):
        losses, w, b, truth = trained(200, count)
    assert losses[-1] < 1e-4 * losses[0]
    np.testing.assert_allclose(w.detach().numpy(), truth, atol=1e-2)
    np.testing.assert_allclose(b.detach().numpy(), 0.25, atol=1e-2)
    assert w.is_leaf
    assert w.requires_grad
    assert counts[199] <= counts[20] + 5, counts
    assert counts[110] <= counts[20] + 5, counts


def test_memory_does_not_grow_without_looking_at_the_loss():
    x = ek.tensor([1.0, 2.0])
    w = ek.ones(2).requires_grad_()
    counts = []
    for k in range(12):
        loss = (w * x).sum()
        loss.backward()
        with ek.no_grad():
            w -= 0.1 * w.grad
        w.grad = None
        if k in (3, 11):
            counts.append(alive())
    assert counts[1] <= counts[0], counts


def test_a_moving_average_does_not_keep_its_history():
    x, mean = ek.tensor([1.0, 2.0]), ek.zeros(2)
    counts = []
    for k in range(12):
        mean = mean * 0.9 + x * 0.1
        mean.realize()
        if k in (3, 11):
            counts.append(alive())
    assert counts[1] <= counts[0], counts
