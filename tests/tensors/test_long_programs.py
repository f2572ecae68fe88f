"""Programs of many operations without a read: no recursion over the graph, kernels that fit, bounded memory.

Programs run with little of Python's stack to spare, so that code which follows a graph by calling itself is found out.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest

import eshkol as ek
from effort import amount
from eshkol.atlas.machines import CORES
from eshkol.graph.node import Node
from eshkol.schedule.kernels.fuse import Group, smaller, steps
from eshkol.schedule.order import needed
from eshkol.tensors.pieces import LONGEST

LONG = 3000
SPARE = 160  # frames of Python's stack that a program may take, however long it is


@contextmanager
def little_stack():
    depth, frame = 0, sys._getframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(depth + SPARE)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


@pytest.fixture
def on_the_cpu():
    with ek.use_backend("cpu"):
        yield


def repeated(step, x, times):
    for k in range(times):
        x = step(x, k)
    return x


# Steps, and what they are of NumPy arrays.
STEPS = {
    "add": (lambda x, k: x + 1, lambda x, k: x + 1),
    "other numbers": (lambda x, k: x + k % 7, lambda x, k: x + k % 7),
    "two uses": (lambda x, k: x * 0.5 + x * 0.25, lambda x, k: x * 0.5 + x * 0.25),
    "mean": (lambda x, k: x - x.mean() * 0.5, lambda x, k: x - x.mean() * np.float32(0.5)),
    "softmax": (lambda x, k: ek.softmax(x, 0) + x, None),
    "roll": (lambda x, k: ek.roll(x, 1, 0) + 1, lambda x, k: np.roll(x, 1, 0) + 1),
    "flip": (lambda x, k: ek.flip(x * 0.5, 0) + x, lambda x, k: np.flip(x * 0.5, 0) + x),
    "shapes": (lambda x, k: ek.reshape(ek.reshape(x, (3, 1)) + 1, (3,)), lambda x, k: x + 1),
    "broadcast": (lambda x, k: (x[:, None] + x[None, :])[0] * 0.5, lambda x, k: (x + x[0]) * np.float32(0.5)),
    "joined": (lambda x, k: ek.concatenate((x[1:], x[:1])) + 1, lambda x, k: np.roll(x, -1, 0) + 1),
    "where": (lambda x, k: ek.where(x > k % 3, x - 1, x + 1), lambda x, k: np.where(x > k % 3, x - 1, x + 1)),
    "product": (lambda x, k: ek.tensor(TURN) @ x, lambda x, k: TURN @ x),
    "in place": (lambda x, k: _put(x, k), lambda x, k: np.where(np.arange(3) == k % 3, np.float32(k), x)),
}
TURN = np.array([[0, 1, 0], [0, 0, 1], [1, 0, 0]], np.float32)


def _put(x, k):
    y = x.clone()
    y[k % 3] = float(k)
    return y


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", STEPS)
def test_chains_of_any_length(name, compiled):
    step, numpys = STEPS[name]
    times = amount(LONG, 90)
    start = np.array([1.0, 2.0, 4.0], np.float32)
    function = (lambda x: repeated(step, x, times)) if not compiled else ek.jit(lambda x: repeated(step, x, times))
    with little_stack():
        found = function(ek.tensor(start)).numpy()
    if numpys is None:
        wanted = start
        for k in range(times):
            wanted = step(ek.tensor(wanted), k).numpy()  # each by itself
    else:
        wanted = repeated(numpys, start, times)
    np.testing.assert_allclose(found, wanted, rtol=2e-4)


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("terms", [60, amount(400, 150)])
def test_sums_of_many_terms_are_cut_where_registers_end(on_the_cpu, terms, compiled):
    w = np.array([1.0, 2.0], np.float32)

    def total(w):
        found = ek.tensor(0.0)
        for k in range(terms):
            found = found + (w * k).sum()
        return found

    assert (ek.jit(total) if compiled else total)(ek.tensor(w)).item() == 3.0 * sum(range(terms))


def test_many_reductions_of_one_row_at_once(on_the_cpu):
    x = ek.tensor(np.arange(1, 13, dtype=np.float32).reshape(3, 4))
    sums = [(x * k).sum(1) + (x + k).max(axis=1) * ek.exp(-(x * k).min(axis=1)) for k in range(1, 50)]
    found = repeated(lambda total, k: total + sums[k], sums[0] * 0, len(sums)).numpy()
    v = np.arange(1, 13, dtype=np.float64).reshape(3, 4)
    wanted = sum((v * k).sum(1) + (v + k).max(1) * np.exp(-(v * k).min(1)) for k in range(1, 50))
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.slow
def test_many_values_held_at_once(on_the_cpu):
    """All of the parts are needed until the end, in an order in which none can be let go of early."""
    x = np.linspace(0.1, 1.0, 5).astype(np.float32)
    many = 150

    def function(x):
        parts = [ek.sin(x * k) for k in range(1, many)]
        ways = [p * q for p, q in zip(parts, reversed(parts), strict=True)]
        return repeated(lambda total, k: total * 0.5 + ways[k], parts[0], len(ways))

    def numpys(x):
        parts = [np.sin(x * k) for k in range(1, many)]
        ways = [p * q for p, q in zip(parts, reversed(parts), strict=True)]
        return repeated(lambda total, k: total * 0.5 + ways[k], parts[0], len(ways))

    np.testing.assert_allclose(function(ek.tensor(x)).numpy(), numpys(x.astype(np.float64)), rtol=1e-3, atol=1e-5)


def test_a_group_is_cut_into_steps_that_compute_the_same():
    x = ek.tensor([1.0, 2.0, 3.0])
    value = repeated(lambda x, k: x * 0.5 + x.sum() * k, x, 6)
    order = needed([value._node], [x._node])
    group = max((s for s in steps(order, {value._node}, CORES) if isinstance(s, Group)), key=lambda g: len(g.nodes))
    parts = smaller(group)
    assert len(parts) > 1
    assert all(len(p.nodes) <= len(group.nodes) // 2 for p in parts if isinstance(p, Group))
    computed = {n for p in parts for n in (p.nodes if isinstance(p, Group) else (p,))}
    assert computed == set(group.nodes)
    known = set(group.inputs)
    for part in parts:  # in an order in which they can be computed
        reads = part.inputs
        assert all(x in known or x.op.name == "const" for x in reads), part
        known |= set(part.outs if isinstance(part, Group) else (part,))
    assert set(group.outs) <= known


# --- derivatives, loops, batches ------------------------------------------------------------------


def test_derivatives_of_long_chains():
    times = amount(5000, 400)
    x = np.array([0.5, 1.0], np.float64)

    def function(x):
        return repeated(lambda x, k: x * 0.999 + 0.001, x, times).sum()

    wanted = np.full(2, 0.999**times)
    leaf = ek.tensor(x, requires_grad=True)
    with little_stack():
        function(leaf).backward()
        slopes = [
            ek.grad(function)(ek.tensor(x)),
            ek.jit(ek.grad(function))(ek.tensor(x)),
            leaf.grad,
            ek.jacobian(lambda x: repeated(lambda x, k: x * 0.999 + 0.001, x, times))(ek.tensor(x)).sum(0),
        ]
        slope = ek.jvp(function, (ek.tensor(x),), (ek.ones(2, dtype=ek.float64),))[1]
        for found in slopes:
            np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-9)
        assert slope.item() == pytest.approx(wanted.sum())


def test_derivatives_of_long_sums(on_the_cpu):
    def total(w):
        found = ek.tensor(0.0)
        for k in range(300):
            found = found + (w * w * k).sum()
        return found

    w = np.array([1.0, 2.0], np.float32)
    np.testing.assert_allclose(ek.grad(total)(ek.tensor(w)).numpy(), 2 * w * sum(range(300)), rtol=1e-6)


def test_bodies_of_loops_and_branches_with_long_chains():
    times = amount(LONG, 120)

    def longer(x):
        return repeated(lambda x, k: x + 1, x, times)

    x = ek.tensor([1.0, 2.0])
    with little_stack():
        assert ek.cond(x.sum() > 0, longer, lambda x: x, x).tolist() == [times + 1.0, times + 2.0]
        carry, outs = ek.scan(lambda c, y: (longer(c) + y, c.sum()), x, ek.zeros((3, 2)))
        assert carry.tolist() == [3 * times + 1.0, 3 * times + 2.0]
        assert outs.tolist() == [3.0 + 2 * times * k for k in range(3)]
        assert ek.while_loop(lambda c: c.sum() < 4 * times, longer, x).tolist() == [2 * times + 1.0, 2 * times + 2.0]
        assert ek.vmap(longer)(x).tolist() == [times + 1.0, times + 2.0]


# --- what waits to be computed --------------------------------------------------------------------


def test_what_waits_takes_bounded_memory_and_is_compiled_in_pieces():
    def chain(times):
        return repeated(lambda x, k: x + 1, ek.tensor([1.0]), times)

    chain(3 * LONGEST)  # whatever is kept is kept now
    gc.collect()
    tracemalloc.start()
    x = chain(5 * LONGEST)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert x._node.depth <= 2 * LONGEST
    assert most < 12e6, f"{most / 1e6:.1f} MB for a chain of which {2 * LONGEST} operations may wait"
    assert x.tolist() == [5.0 * LONGEST + 1]


def test_chains_that_a_derivative_needs_are_left_alone():
    leaf = ek.tensor([1.0], requires_grad=True)
    x = repeated(lambda x, k: x + 1, leaf, 2 * LONGEST + 100)
    assert x._node.data is None
    x.sum().backward()
    assert leaf.grad.tolist() == [1.0]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["add", "two uses", "mean", "roll"])
def test_a_hundred_thousand_operations(on_the_cpu, name):
    step, numpys = STEPS[name]
    start = np.array([1.0, 2.0, 4.0], np.float32)
    wanted = repeated(numpys, start, 100_000)
    np.testing.assert_allclose(repeated(step, ek.tensor(start), 100_000).numpy(), wanted, rtol=1e-3, atol=1e-6)


@pytest.mark.slow
def test_a_hundred_thousand_operations_under_jit(on_the_cpu):
    function = ek.jit(lambda x: repeated(lambda x, k: x + 1, x, 100_000))
    assert function(ek.tensor([1.0])).tolist() == [100_001.0]
    leaf = ek.tensor([1.0], requires_grad=True)
    repeated(lambda x, k: x + 1, leaf, 100_000).sum().backward()
    assert leaf.grad.tolist() == [1.0]


def test_long_histories_are_let_go_of_without_recursion():
    scope_keeps = ek.tensor([1.0], requires_grad=True)
    x = repeated(lambda x, k: x * 1.5, scope_keeps, amount(60_000, 20_000))
    assert isinstance(x._node, Node)
    with little_stack():
        del x
        gc.collect()
