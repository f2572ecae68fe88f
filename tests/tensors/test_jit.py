"""jit: the same numbers, traced once per structure, shapes and dtypes; what it cannot do is refused."""

from __future__ import annotations

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import TraceError


@pytest.fixture(autouse=True)
def _on_the_reference():
    with ek.use_backend("reference"):
        yield


def counted(function):
    """A function under jit, and how often it was traced."""
    calls = []

    def inner(*args, **given):
        calls.append(1)
        return function(*args, **given)

    return ek.jit(inner), calls


def test_a_function_is_traced_once_and_gives_the_same_numbers():
    f, calls = counted(lambda x, y: {"a": ek.sin(x) * y + 1, "b": (x @ y.T).sum()})
    for k in range(3):
        x, y = ek.rand(2, 3) + k, ek.rand(2, 3)
        got, wanted = f(x, y), {"a": ek.sin(x) * y + 1, "b": (x @ y.T).sum()}
        for name in wanted:
            np.testing.assert_allclose(got[name].numpy(), wanted[name].numpy(), rtol=1e-6)
    assert len(calls) == 1


def test_other_shapes_dtypes_structures_and_numbers_trace_again():
    f, calls = counted(lambda x, n=1: ek.tree_map(lambda t: t * n, x))
    f(ek.ones((2,)))
    f(ek.ones((3,)))
    f(ek.ones((2,), "float64"))
    f([ek.ones((2,))])
    assert len(calls) == 4
    assert f(ek.ones((2,)), n=3).tolist() == [3.0, 3.0]
    assert f(ek.ones((2,)), n=True).tolist() == [1.0, 1.0]
    assert len(calls) == 6
    f(ek.zeros((2,)))
    f(np.ones(3, np.float32))
    assert len(calls) == 6, "and what was seen is known"


def test_a_training_step_with_its_gradient():
    def loss(w, x, y):
        return ((ek.tanh(x @ w) - y) ** 2).mean()

    @ek.jit
    def step(w, x, y):
        value, gradient = ek.value_and_grad(loss)(w, x, y)
        return value, w - 0.5 * gradient

    ek.seed(0)
    x = ek.randn(32, 3)
    y = ek.tanh(x @ ek.tensor([1.0, -1.0, 0.5]))
    w = plain = ek.zeros((3,))
    for _ in range(60):
        value, w = step(w, x, y)
        plain = plain - 0.5 * ek.grad(loss)(plain, x, y)
    np.testing.assert_allclose(w.numpy(), plain.numpy(), rtol=1e-4, atol=1e-5)
    assert value.item() < 0.01


def test_transformations_go_through():
    f = ek.jit(lambda x: (x * x * x).sum())
    x = ek.tensor([1.0, 2.0])
    np.testing.assert_allclose(ek.grad(f)(x).numpy(), [3.0, 12.0])
    np.testing.assert_allclose(ek.hessian(f)(x).numpy(), np.diag([6.0, 12.0]))
    np.testing.assert_allclose(ek.vmap(f)(ek.tensor([[1.0, 2.0], [3.0, 0.0]])).numpy(), [9.0, 27.0])
    inside = ek.jit(ek.vmap(ek.grad(f)))(ek.tensor([[1.0, 2.0]]))
    np.testing.assert_allclose(inside.numpy(), [[3.0, 12.0]])
    w = ek.tensor([2.0], requires_grad=True)
    f(w).backward()
    assert w.grad.tolist() == [12.0]


def test_loops_stay_loops():
    f = ek.jit(lambda x: ek.scan(lambda c, t: (c * 0.5 + t, c), ek.tensor(0.0), x))
    last, all_of_them = f(ek.arange(6.0))
    assert last.item() == pytest.approx(8.0625)
    assert all_of_them.shape == (6,)


def test_captured_tensors_are_constants_unless_they_require_grad():
    scale = ek.tensor(2.0)
    f = ek.jit(lambda x: x * scale)
    assert f(ek.ones((2,))).tolist() == [2.0, 2.0]
    weight = ek.tensor(2.0, requires_grad=True)
    with pytest.raises(TraceError, match="pass it as an argument"):
        ek.jit(lambda x: x * weight)(ek.ones((2,)))


def test_branches_on_values_are_refused_with_the_remedy():
    f = ek.jit(lambda x: x if x.sum() > 0 else -x)
    with pytest.raises(TraceError, match=r"jit of <lambda>[^$]*ek\.cond"):
        f(ek.ones((2,)))
    with pytest.raises(TraceError, match="jit"):
        ek.jit(lambda x: x.numpy())(ek.ones((2,)))
    with pytest.raises(TraceError, match="the same numbers"):
        ek.jit(lambda x: x + ek.rand(2))(ek.ones((2,)))
    g = ek.jit(lambda x: ek.cond(x.sum() > 0, lambda t: t, lambda t: -t, x))
    assert g(ek.tensor([-1.0])).tolist() == [1.0]


def test_a_value_that_escapes_says_so():
    kept = []
    ek.jit(lambda x: kept.append(x * 2) or x)(ek.ones((2,)))
    with pytest.raises(TraceError):
        kept[0].numpy()


def test_why_it_is_traced_is_told_when_asked_for(monkeypatch, capsys):
    monkeypatch.setenv("ESHKOL_EXPLAIN", "1")
    f = ek.jit(lambda x, n=1: x * n)
    f(ek.ones((2,)))
    f(ek.ones((3,)))
    f(ek.ones((3,)), n=2)
    f(ek.ones((3,)), n=3)
    lines = capsys.readouterr().err.splitlines()
    assert "first time" in lines[0]
    assert "tensor 0 changed from float32[2] to float32[3]" in lines[1]
    assert "structure" in lines[2]
    assert "from 2 to 3 (pass a tensor" in lines[3]


def test_what_a_loop_computes_of_constants_alone_may_be_known_by_then():
    """The gradient of the outer mean is 1/4, which the body computes too: a node of the graph, and by then a leaf."""

    def loss(w, x):
        return ek.scan(lambda x, p: ((x - x.mean()) * p, None), x, w)[0].mean()

    w, x = ek.tensor([[1.0, 2.0, 3.0, 4.0], [4.0, 1.0, 1.0, 2.0]]), ek.tensor([1.0, 3.0, 5.0, 4.0])
    eager, compiled = ek.grad(loss)(w, x), ek.jit(ek.grad(loss))(w, x)
    np.testing.assert_allclose(compiled.numpy(), eager.numpy(), rtol=1e-6)


def test_a_number_before_a_tensor_takes_its_dtype() -> None:
    x = np.array([3.0, 2.0])
    np.testing.assert_array_equal(ek.pow(0.9, ek.tensor(x)).numpy(), 0.9**x)
    scaled = ek.jit(lambda t, x: x * 0.9**t, floats=True)
    np.testing.assert_allclose(scaled(3.0, ek.tensor(x)).numpy(), 0.9**3 * x, rtol=1e-15)
    assert ek.pow(0.9, ek.tensor([1, 2])).dtype is ek.float32


def test_what_is_made_inside_may_be_changed_though_a_ring_of_references_keeps_it():
    def inside(x):
        total = ek.zeros(3)
        ring = [total]
        ring.append(ring)
        total.add_(x)
        copy = x.clone()
        copy.mul_(2.0)
        ring.append(copy)
        return total + copy

    np.testing.assert_array_equal(ek.jit(inside)(ek.tensor([1.0, 2.0, 3.0])).numpy(), [3.0, 6.0, 9.0])


def test_a_call_is_told_from_the_one_before_by_whatever_matters():
    """Calls like the last one take a short way; here each differs from the one before in one thing."""
    traced = []

    def body(x, y):
        traced.append((x.shape, x.dtype))
        return {"sum": x + y, "half": x * 0.5}

    f = ek.jit(body)
    small, large = np.arange(3, dtype=np.float32), np.arange(5, dtype=np.float32)

    def told(x, y, **how):
        found = f(x, y, **how)
        np.testing.assert_array_equal(found["sum"].numpy(), x.numpy() + y.numpy())
        np.testing.assert_array_equal(found["half"].numpy(), x.numpy() * 0.5)

    x, y, wide = ek.tensor(small), ek.tensor(small[::-1]), ek.tensor(large)
    for _ in range(3):
        told(x, y)
    assert len(traced) == 1
    told(y, ek.tensor(np.arange(6, dtype=np.float32))[::2])  # computed now, and of the same kind
    told(wide, wide)
    told(x, y=y)
    told(x.astype("float64"), y.astype("float64"))
    assert [dtype.name for _, dtype in traced][-1] == "float64"
    told(x, y)
    told(x.to("discrete"), y.to("discrete"))
    told(x, y)
    slope = ek.grad(lambda x: f(x, y)["sum"].sum())(x)
    np.testing.assert_array_equal(slope.numpy(), np.ones(3))
    with pytest.raises(ek.EshkolError, match="discrete"):
        f(x, y.to("discrete"))
    with ek.check_nan(), pytest.raises(ek.EshkolError, match=r"infinity|NaN"):
        f(ek.tensor(np.full(3, 3e38, np.float32)), ek.tensor(np.full(3, 3e38, np.float32)))
    with pytest.raises((ek.EshkolError, TypeError)):
        f(x)
    told(x, y)
