"""One trace for all lengths of an axis: the numbers of an eager call, no trace for a new length, what is refused."""

from __future__ import annotations

import math
import resource

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eshkol as ek
from eshkol import nn, optim, train
from eshkol.errors import EshkolError, ShapeError
from eshkol.graph.node import constant
from eshkol.ops import dtypes
from eshkol.support.extents import Conditions
from eshkol.tensors import dynamic, pytree

W = np.random.default_rng(7).standard_normal((5, 5)).astype(np.float32)
KEY = ek.random.key(3)


@pytest.fixture(autouse=True)
def on_the_cpu():
    with ek.use_backend("cpu"):
        yield


def batch(n, seed=0, width=5):
    rng = np.random.default_rng((seed, n))
    return [ek.tensor(rng.standard_normal((n, width)).astype(np.float32)) for _ in range(2)]


def counted(function, **how):
    """A function under jit, and the lengths that it was traced with, as its own code sees them."""
    traced = []

    def inner(x, *others):
        traced.append(1)
        return function(x, *others)

    return ek.jit(inner, **how), traced


def same(got, wanted):
    got, wanted = pytree.leaves(got), pytree.leaves(wanted)
    assert len(got) == len(wanted)
    for a, b in zip(got, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=3e-4, atol=3e-5)


def classes(f):
    return sum(len(family.classes) for family in f._families._families)


def refusals(f):
    return [family.failed for family in f._families._families]


# Each of these is compiled for all lengths of the first axis.
FOLLOWED = {
    "elements": lambda x, y: ek.tanh(x) + 2 * y,
    "product": lambda x, y: ek.relu(x @ ek.tensor(W)) @ ek.tensor(W) + y,
    "over the batch": lambda x, y: (x.T @ y, x @ y.T),
    "mean": lambda x, y: (ek.mean((x - y) ** 2), x.mean(axis=0), ek.var(y, axis=0)),
    "number": lambda x, y: ((x * y).sum() / x.shape[0], x * (1.0 / len(y.shape)), y * x.shape[0], x / x.size),
    "reshape": lambda x, y: (x.reshape(x.shape[0] * 5), y.reshape(-1), x.T.reshape(5, x.shape[0], 1)),
    "slice": lambda x, y: (x[:-1] - y[1:], x[1::2]),
    "flip": lambda x, y: (x[::-1] * y, x[-1] + y[0]),
    "positions": lambda x, y: ek.where(ek.arange(x.shape[0])[:, None] < 3, x, y) + ek.zeros((x.shape[0], 1)),
    "softmax": lambda x, y: (ek.softmax(x, axis=0), ek.log_softmax(y, axis=1)),
    "running sum": lambda x, y: ek.cumsum(x, axis=0) + y,
    "joined": lambda x, y: (ek.concatenate([x, y], axis=0), ek.stack([x, y], axis=1), ek.concatenate([x, y], axis=1)),
    "padded": lambda x, y: ek.pad(x, ((1, 2), (0, 0))),
    "greatest": lambda x, y: (x.max(axis=0), ek.argmax(y, axis=0), ek.argmax(y, axis=1)),
    "loss": lambda x, y: ek.cross_entropy(x, ek.argmax(y, axis=1)),
    "scan": lambda x, y: ek.scan(lambda c, e: (c * 0.5 + e, c), ek.zeros((5,)), x)[1] + y,
    "loop": lambda x, y: ek.fori_loop(0, 3, lambda i, c: c * 0.9 + y, x),
    "branch": lambda x, y: ek.cond(x.sum() > 0, lambda a, b: a + b, lambda a, b: a - b, x, y),
    "until": lambda x, y: ek.while_loop(lambda c: c.sum() < 10.0, lambda c: c + 1.0, abs(x)),
    "gradient": lambda x, y: ek.grad(lambda w: ek.mean((ek.tanh(x @ w) - y) ** 2))(ek.tensor(W)),
    "of inputs": lambda x, y: ek.grad(lambda v: ek.mean((ek.sigmoid(v @ ek.tensor(W)) - y) ** 2))(x),
    "vmap": lambda x, y: ek.vmap(lambda a, b: (a @ ek.tensor(W) * b).sum())(x, y),
    "vmap of grad": lambda x, y: ek.vmap(ek.grad(lambda a: ek.tanh(a @ ek.tensor(W)).sum()))(x),
    "jvp": lambda x, y: ek.jvp(lambda v: ek.tanh(v @ ek.tensor(W)), (x,), (y,))[1],
    "attention": lambda x, y: ek.softmax(x @ y.T / 5**0.5, axis=-1) @ x,
    "structure": lambda x, y: {"a": (x * 2, [y.sum()]), "b": x.shape == y.shape and x + 1},
}
# Each of these asks for the number itself, or is computed by the host: it is traced for each length.
NOT_FOLLOWED = {
    "float": lambda x, y: x * float(x.shape[0]),
    "text": lambda x, y: x * len(str(x.shape[0])),
    "logarithm": lambda x, y: x * math.log(x.shape[0]),
    "NumPy's": lambda x, y: x * np.sqrt(x.shape[0]),
    "length": lambda x, y: x.sum() / len(x),
    "range": lambda x, y: sum((x[k] for k in range(x.shape[0])), y[0] * 0),
    "table": lambda x, y: x * {9: 2.0}.get(x.shape[0], 1.0),
    "sorted": lambda x, y: ek.sort(x, axis=0),
    "drawn": lambda x, y: x + ek.random.normal(KEY, x.shape),
}


@pytest.mark.parametrize("name", FOLLOWED)
@settings(max_examples=1)
@given(data=st.data())
def test_results_are_those_of_an_eager_call_and_new_lengths_are_not_traced(name, data):
    function = FOLLOWED[name]
    f, traced = counted(function, dynamic=True)
    for n in (22, 23, 24, 29, 25, 26):  # the last columns of a product have code by how many vectors of 4 they take
        same(f(*batch(n)), function(*batch(n)))
    assert classes(f) >= 1, refusals(f)
    before = len(traced)
    with ek.check(False):  # which would trace, to compare
        for n in (27, 28, 30):
            same(f(*batch(n)), function(*batch(n)))
    assert len(traced) == before
    for n in data.draw(st.lists(st.integers(0, 60), min_size=3, max_size=3)):
        try:
            wanted = function(*batch(n))
        except EshkolError:
            continue  # of no elements there is no greatest
        same(f(*batch(n)), wanted)


@pytest.mark.parametrize("name", NOT_FOLLOWED)
def test_what_is_not_followed_is_traced_for_each_length_and_says_so(name, monkeypatch, capsys):
    monkeypatch.setenv("ESHKOL_EXPLAIN", "1")
    function = NOT_FOLLOWED[name]
    f = ek.jit(function, dynamic=True)
    for n in (7, 12, 9, 13, 8, 10):
        same(f(*batch(n)), function(*batch(n)))
    assert classes(f) == 0
    assert "is traced for length 12 of axis 0" in capsys.readouterr().err


CONTROL = {
    "larger": lambda x, y: x + 1 if x.shape[0] > 10 else x - y,
    "reversed": lambda x, y: x + 1 if 10.5 < x.shape[0] else x - y,  # noqa: SIM300 - the float is asked first
    "half": lambda x, y: x + 1 if 0.5 * x.shape[0] > 5.0 else x - y,
    "divisible": lambda x, y: x + 1 if x.shape[0] % 3 == 0 else x - y,
    "equal": lambda x, y: x + 1 if x.shape[0] == 12 else x - y,
    "logarithm": lambda x, y: x + 1 if math.log(x.shape[0] + 1) > 2.4 else x - y,
    "one of": lambda x, y: x + 1 if x.shape[0] in (9, 14) else x - y,
    "least": lambda x, y: x[: min(x.shape[0], 11)] * 2,
    "smallest": lambda x, y: x * max(3, x.shape[0] // 4),
}


@pytest.mark.parametrize("name", CONTROL)
def test_branches_of_python_on_a_length_are_taken_for_each(name):
    function = CONTROL[name]
    f = ek.jit(function, dynamic=True)
    for n in (7, 13, 8, 12, 9, 10, 11, 14, 15, 30, 6, 21, 2, 1, 0):
        same(f(*batch(n)), function(*batch(n)))


def test_by_itself_after_two_lengths_and_not_at_all():
    f, traced = counted(lambda x: ek.tanh(x) * 2)
    for n in (8, 9):
        f(batch(n)[0])
    assert classes(f) == 0
    with ek.check(False):
        f(batch(11)[0])
        assert classes(f) == 1
        before = len(traced)
        for n in range(12, 40):
            f(batch(n)[0])
        assert len(traced) <= before + 1, "at most one more, at the far end of all lengths"
    f, traced = counted(lambda x: ek.tanh(x) * 2, dynamic=False)
    for n in (8, 9, 11, 12):
        f(batch(n)[0])
    assert len(traced) == 4


def test_axes_that_are_named_and_no_others():
    f = ek.jit(lambda x, y: x.sum(axis=1) @ y, dynamic={"x": 1})
    for n in (6, 7, 9):
        x, y = batch(4, width=n)[0], ek.ones((4,))
        same(f(x, y), x.sum(axis=1) @ y)
    assert classes(f) == 1
    for n in (5, 6, 7):
        x, y = batch(n, width=3)[0], ek.ones((n,))
        same(f(x, y), x.sum(axis=1) @ y)
    assert classes(f) == 1, "of axis 0 nothing was said"
    with pytest.raises(EshkolError, match="dynamic is True, False or a mapping"):
        ek.jit(lambda x: x, dynamic=3)


def test_two_axes_that_vary_by_themselves_are_traced():
    f = ek.jit(lambda x, y: x.sum() + y.sum(), dynamic=True)
    for n, m in ((3, 8), (4, 9), (5, 7), (6, 6), (7, 7), (8, 8)):
        x, y = batch(n)[0], batch(m)[1]
        same(f(x, y), x.sum() + y.sum())


def test_donated_captured_and_floats():
    bias = ek.tensor(np.arange(5, dtype=np.float32))

    def step(w, x, rate):
        value, gradient = ek.value_and_grad(lambda w: ek.mean((x @ w + bias) ** 2))(w)
        return w - rate * gradient, value

    f = ek.jit(step, donate=0, floats=True, dynamic=True)
    w, plain = ek.tensor(W) + 0, ek.tensor(W) + 0
    for k, n in enumerate((20, 23, 29, 24, 25, 26, 27)):
        x = batch(n)[0]
        wanted = step(plain, x, 0.1 / (k + 1))
        w, value = f(w, x, 0.1 / (k + 1))
        same((w, value), wanted)
        plain = wanted[0]
        if k == 5:
            bias = bias * 2  # a tensor that is captured is an input
    assert classes(f) >= 1, refusals(f)


def test_errors_name_both_shapes():
    f = ek.jit(lambda x, y: x + y, dynamic=True)
    for n in (6, 7, 9):
        f(*batch(n))
    with pytest.raises(ShapeError, match=r"(?s)11.*12"):
        f(batch(11)[0], batch(12)[1])
    same(f(*batch(12)), sum(batch(12)))


def test_transformations_around_it():
    def function(x):
        return ek.mean(ek.tanh(x) ** 2)

    f = ek.jit(function, dynamic=True)
    for n in (6, 7, 9, 10):
        x = batch(n)[0]
        same(f(x), function(x))
        same(ek.grad(f)(x), ek.grad(function)(x))
        same(ek.vmap(f)(x), ek.vmap(function)(x))


def test_training_steps_of_any_batch():
    def made():
        ek.manual_seed(3)
        model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
        return model, train.Step(model, nn.CrossEntropyLoss(), optim.SGD(model.parameters(), lr=0.1))

    (one, step), (other, eager) = made(), made()
    eager = train.Step(other, nn.CrossEntropyLoss(), optim.SGD(other.parameters(), lr=0.1), jit=False)
    for n in (16, 20, 17, 19, 18, 21, 23):
        x, labels = batch(n)[0], ek.tensor(np.arange(n) % 3)
        step(x, labels)
        eager(x, labels)
    same([p.detach() for p in one.parameters()], [p.detach() for p in other.parameters()])


def test_other_machines_trace_as_before():
    for machine in ("reference", "discrete"):
        with ek.use_backend(machine):
            f, traced = counted(lambda x, y: ek.tanh(x) @ y.T, dynamic=True)
            for n in (3, 4, 5):
                same(f(*batch(n)), ek.tanh(batch(n)[0]) @ batch(n)[1].T)
            assert len(traced) == 3


def test_plans_for_a_size_are_compared_with_the_interpreter(monkeypatch):
    f = ek.jit(lambda x, y: ek.mean((x - y) ** 2) * x, dynamic=True)
    with ek.check() as counts:
        for n in (6, 7, 9):
            f(*batch(n))
        before = counts.kept
        f(*batch(10))
        assert counts.kept > before
    right = dynamic.Sized.run
    monkeypatch.setattr(dynamic.Sized, "run", lambda *args, **given: [a + 1 for a in right(*args, **given)])
    with ek.check(), pytest.raises(EshkolError, match="plans for all sizes"):
        f(*batch(11))


def test_a_thousand_lengths_leave_memory_flat():
    f = ek.jit(lambda x, y: ek.relu(x @ ek.tensor(W)) + y, dynamic=True)
    with ek.check(False):
        for n in range(2, 300):
            f(*batch(n))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for n in range(300, 1300):
            f(*batch(n))
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(f._traces) <= 64
    assert after - before < 24 << 10, f"{(after - before) / 1024} MiB"


def test_conditions_hold_for_exactly_the_sizes_that_answer_alike():
    def asked(n):
        return (
            3 * n + 2 > 40, n - 7 >= 5, n * n < 900, 2 * n == 24, n % 3 == 1, (n + 5) // 4 > 6, 7 - n < 0,
            max(n, 17) == 17, n // 2 * 2 != n, min(3 * n, 100) <= 99, -n <= -13, n > 10.5,
        )  # fmt: skip

    for hint in (5, 12, 13, 17, 18, 29, 31, 34):
        conditions = Conditions(hint)
        found = asked(conditions.size)
        assert found == asked(hint)
        holds = conditions.holds()
        assert holds(hint)
        for n in range(2, 60):
            if conditions.fixed is None and holds(n):
                assert asked(n) == found, (hint, n)


@given(st.integers(2, 400), st.integers(2, 400))
def test_expressions_are_evaluated_for_other_sizes(hint, n):
    def made(k):
        return [
            4 * k + 3, (k + 1) * (k - 1), k * 12 // 4, -(-k // 16) * 64, (5 * k) % 7, k * k // k, (k << 3) & 63, k**3,
            8 * k % 4 + k, 100 - k, 1000 // k, divmod(k, 6)[1], abs(3 - k),
        ]  # fmt: skip

    conditions = Conditions(hint)
    found = made(conditions.size)
    assert found == made(hint)
    wanted = [x for x in found if type(x) is not int]
    if conditions.holds()(n):
        values = iter(conditions.values(wanted)(n))
        assert [x if type(x) is int else next(values) for x in found] == made(n)


def test_donated_inputs_whose_memory_someone_else_sees():
    f = ek.jit(lambda w, x: (w + x.sum(axis=0), x * 2), donate=0, dynamic=True)
    for n in (20, 23, 29, 24, 25):
        w, x = ek.tensor(np.ones(5, np.float32)), batch(n)[0]
        seen = w.numpy() if n % 2 else None  # a view: the memory is not the call's to take
        got = f(w, x)
        same(got, (ek.ones((5,)) + x.sum(axis=0), x * 2))
        assert seen is None or (seen == 1).all()
    assert classes(f) >= 1, refusals(f)


def test_numbers_that_were_looked_at_are_numbers_all_the_same():
    """A constant is one for the whole process, and somebody may have asked for its value."""
    seen = [ek.Tensor(constant(number, dtype)) for number in range(8) for dtype in (dtypes.int64, dtypes.float32)]
    assert [x.item() for x in seen[::2]] == list(range(8))
    function = FOLLOWED["positions"]
    f = ek.jit(function, dynamic=True)
    for n in (23, 29, 25):
        same(f(*batch(n)), function(*batch(n)))
    assert classes(f) >= 1, refusals(f)


def test_defects_of_the_compiler_are_told_and_errors_of_the_function_are_not(monkeypatch):
    from eshkol.schedule.run.sized import SizedPlan

    f, _ = counted(lambda x, y: x + y, dynamic=True)
    f(*batch(23))
    monkeypatch.setattr(SizedPlan, "__init__", lambda *_: {}["nothing"])
    with pytest.raises(KeyError):
        f(*batch(29))
    monkeypatch.undo()

    def particular(x, y):
        if x.shape[0] > 40:
            raise ValueError("too many")
        return x + y

    g, _ = counted(particular, dynamic=True)
    for n in (23, 29, 31):
        same(g(*batch(n)), particular(*batch(n)))
    with pytest.raises(ValueError, match="too many"):
        g(*batch(50))


def test_a_size_for_which_conditions_divide_by_nothing_is_another_one():
    f = ek.jit(lambda x: ek.chunk(x, 2, 0)[1] * 2, dynamic=True)
    for n in (4, 5, 6, 2, 7, 8):
        np.testing.assert_array_equal(f(ek.arange(n)).numpy(), 2 * np.arange(n)[(n + 1) // 2 :])
    with pytest.raises(IndexError):
        f(ek.arange(1))  # it has one part


def test_lengths_that_are_equal_and_are_not_told_alike():
    """Every second element is replaced: where the gradient is 0 is told by another route than how many there are."""

    def replaced(x):
        return ek.grad(lambda x: (x.at[::2].set(1.0) * x).sum())(x)

    f = ek.jit(replaced, dynamic=True)
    for n in (4, 34, 35, 7, 100):
        x = np.random.default_rng(n).normal(size=n)
        wanted = np.where(np.arange(n) % 2 == 0, 1.0, 2 * x)
        np.testing.assert_allclose(f(ek.tensor(x)).numpy(), wanted)
