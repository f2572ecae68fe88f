"""The front door in C: it gives what the general ways in Python give, tells graphs apart as they do, loses nothing."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import eshkol as ek
from effort import amount
from eshkol.errors import DeviceError
from eshkol.graph import node as graph
from eshkol.ops import TABLE, dtypes
from eshkol.ops.row import Aval
from eshkol.runtime import front
from eshkol.schedule.run import execute, memory
from eshkol.tensors import value
from eshkol.tensors.functions import FUNCTIONS
from references import moved

NAMES = [*front.operators(), "less", "maximum", "exp", "sin", "floor"]
NUMBERS = st.one_of(
    st.sampled_from([0, 1, -1, 2, True, False, 0.0, -0.0, 1.0, float("nan"), float("inf"), 1e300, 2**70, 1j, 7]),
    st.floats(), st.integers(-(2**40), 2**40),
)  # fmt: skip
SHAPES = st.lists(st.sampled_from([0, 1, 1, 2, 3]), max_size=3).map(tuple)
DTYPES = st.sampled_from([dtypes.float32, dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int32, dtypes.bool_])
TENSORS = st.builds(lambda shape, dtype: ek.Tensor(graph.buffer(np.ones(shape, dtype.numpy), dtype)), SHAPES, DTYPES)
OTHERS = st.sampled_from(["text", None, np.float32(3), np.ones(2), [1.0]])


def outcome(compute):
    """The node that something gives, or the error."""
    try:
        made = compute()
    except Exception as error:
        return type(error), str(error).splitlines()[0]  # the rest names the line
    return made._node if isinstance(made, ek.Tensor) else made


def by_general_way(name, operands):
    """What the way gives that takes everything."""
    return outcome(lambda: value._operators(TABLE[name], operands, None))


@settings(max_examples=amount(4000, 400), suppress_health_check=list(HealthCheck))
@given(st.sampled_from(NAMES), st.lists(st.one_of(TENSORS, TENSORS, NUMBERS), min_size=1, max_size=2))
def test_the_fast_way_gives_the_node_that_the_general_way_gives(name, operands):
    if not any(isinstance(x, ek.Tensor) for x in operands):
        operands[0] = ek.ones((2,)).realize()
    wanted = by_general_way(name, tuple(operands))
    found = outcome(lambda: front.quick(TABLE[name], *operands))
    if found is NotImplemented:  # the general way itself, by way of C
        found = outcome(lambda: front.elementwise(TABLE[name], *operands))
        if isinstance(wanted, graph.Node):
            assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
            return
    assert found is wanted or found == wanted  # nodes are found again, so it is the same one


@given(TENSORS, OTHERS)
def test_whatever_else_is_an_operand_goes_the_general_way(x, other):
    for one, two in ((x, other), (other, x)):
        wanted = by_general_way("add", (one, two))
        found = outcome(lambda one=one, two=two: front.elementwise(TABLE["add"], one, two))
        if isinstance(wanted, graph.Node):
            assert (found.shape, found.dtype, found.op) == (wanted.shape, wanted.dtype, wanted.op)
        else:
            assert found == wanted


def test_functions_and_operators_are_one():
    x, y = ek.ones((2, 3)).realize(), ek.ones((3,)).realize()
    for name in ("add", "sub", "mul", "div", "maximum", "less"):
        assert FUNCTIONS[name](x, y)._node is by_general_way(name, (x, y))
    assert ek.exp(x)._node is x.exp()._node is by_general_way("exp", (x,))
    with pytest.raises(TypeError, match="was called with 2 arguments"):
        ek.exp(x, x)
    assert ek.exp([1.0, 2.0]).shape == (2,)


def test_no_grad_and_histories_are_respected():
    w = ek.ones((3,)).requires_grad_()
    assert (w * 2.0).requires_grad
    with ek.no_grad():
        assert not (w * 2.0).requires_grad
        assert not ek.exp(w).requires_grad
    seen = []
    thread = threading.Thread(target=lambda: seen.append(front.at_work.enabled))
    with ek.no_grad():
        thread.start()
        thread.join()
    assert seen == [True]  # each thread has its own


def test_machines_that_do_not_meet():
    x, y = ek.ones((2,)).realize(), ek.ones((2,)).to("discrete").realize()
    with pytest.raises(DeviceError, match="do not meet"):
        x + y


def test_errors_name_the_line():
    x, y = ek.ones((2, 3)), ek.ones((4,))
    with pytest.raises(ek.errors.ShapeError, match="do not broadcast") as caught:
        x + y
    assert caught.value.span.text.strip() == "x + y"
    assert caught.value.span.column == caught.value.span.text.index("x + y") + 1


# --- structures -----------------------------------------------------------------------------------


def drawn(rng, leaves):
    """A small graph of leaves, over values that are used again."""
    made = [*leaves]
    for _ in range(rng.integers(1, 6)):
        x, y = (made[rng.integers(len(made))] for _ in range(2))
        kind = rng.integers(5)
        if kind == 0:
            made.append(x + y)
        elif kind == 1:
            made.append(x * float(rng.integers(3)))
        elif kind == 2:
            made.append(ek.cumsum(x, axis=int(rng.integers(2))))
        elif kind == 3:
            made.append(x.T if x.shape[0] == x.shape[1] else x)
        else:
            made.append(ek.where(x > 1.0, x, y))
    return [made[-1], made[rng.integers(len(made))]]


def key_in_python(results):
    """The key by the definition that functions' bodies have."""
    order = graph.topological(results, through=lambda n: n.inputs if n.data is None else ())
    order = [n for n in order if n.op is not TABLE["const"]]  # which may have data: somebody asked for its value
    inner = [n for n in order if n.data is None]
    leaves = [n for n in order if n.data is not None]
    parts, constants, number = execute.structure(inner, leaves)
    return tuple(parts), tuple(c.attrs for c in constants), tuple(number[n] for n in results)


def test_keys_are_equal_exactly_where_graphs_are():
    """Constants are told apart by their dtypes alone, so their values are compared beside the key."""
    seen, back = {}, {}
    known = [ek.full((), value) for value in (0.0, 1.0)]  # constants that were looked at stay constants
    assert [k.item() for k in known] == [0.0, 1.0]
    for seed in range(amount(3000, 500)):
        rng = np.random.default_rng(seed % 400)  # so that many come again
        shape = [(2, 2), (2, 3)][seed % 400 % 2]
        leaves = [ek.Tensor(graph.buffer(np.ones(shape, np.float32), dtypes.float32)) for _ in range(2)]
        results = list(dict.fromkeys(n for t in drawn(rng, leaves) if (n := t._node).data is None))
        if not results:
            continue
        order, _, wanted, constants, _, key = front.structure(results, False)
        assert wanted[: len(results)] == results
        assert all(x in set(order) or x.data is not None or x.op is TABLE["const"] for n in order for x in n.inputs)
        python = key_in_python(results)
        mine = (key, tuple(c.attrs for c in constants))
        assert seen.setdefault(python, mine) == mine
        assert back.setdefault(mine, python) == python
    assert len(seen) > 50


def test_a_plan_that_was_kept_gives_what_the_general_way_gives():
    rng = np.random.default_rng(0)
    for shape in ((), (3,), (2, 3)):
        a, b = (rng.standard_normal(shape).astype(np.float32) for _ in range(2))
        for _ in range(3):  # compiled, then found
            x, y = ek.tensor(a), ek.tensor(b)
            found = (x * y + 2.0 - ek.sin(x)).numpy()
            np.testing.assert_allclose(found, a * b + 2 - np.sin(a), rtol=1e-5, atol=1e-6)


def test_a_failure_in_a_plan_that_was_kept_is_told_as_ever():
    x = ek.tensor([1.0, 2.0, 3.0])
    for index in (1, 1, 7):
        at = ek.tensor(np.array([index]))
        if index < 3:
            assert ek.take(x, at, axis=0).numpy() == [2.0]
        else:
            with pytest.raises(ek.errors.IndexOutOfRange, match="out of range"):
                ek.take(x, at, axis=0).numpy()
    assert ek.take(x, ek.tensor(np.array([2])), axis=0).numpy() == [3.0]


# --- memory -----------------------------------------------------------------------------------------


@pytest.mark.unchecked
def test_nothing_is_lost():
    """References to what lives for ever do not grow with what was computed."""
    x, y = ek.ones((4,)).realize(), ek.ones((4,)).realize()
    w = ek.ones((4,)).requires_grad_()

    def work():
        z = x * y + 1.5 - ek.exp(x) / 2
        z.numpy()
        x[1].item()
        (w * x).sum().backward()
        w.grad = None
        with pytest.raises(ek.errors.ShapeError):
            x + ek.ones((3,))
        front.quick(TABLE["add"], x, "text")

    lasting = [None, NotImplemented, dtypes.float32, TABLE["add"], TABLE["buffer"], graph.Node, ek.Tensor, graph.HOST,
               x._node, x._node.shape, x._node.data, graph.NO_SCOPES, front.make, execute, Aval]  # fmt: skip
    assert not moved(work, lasting)


@pytest.mark.unchecked
@pytest.mark.parametrize("device", ["cpu", "blocks", "discrete"])
def test_more_memory_than_there_is_is_an_error_with_a_remedy(device):
    with ek.device(device):
        kept = ek.ones((3,)).realize()
        for extent in (1 << 40, 1 << 37):
            with pytest.raises(ek.errors.AllocationFailed, match="bytes"):
                ek.zeros((extent,)).realize()
        assert float(kept.sum()) == 3.0  # which goes on


@pytest.mark.unchecked
def test_more_memory_than_the_machine_has_is_not_asked_for(monkeypatch):
    """Systems that promise any memory would end the process when it is written to."""
    monkeypatch.setattr(memory, "INSTALLED", 1 << 20)
    with pytest.raises(ek.errors.AllocationFailed, match="13333332 bytes"):
        memory.empty((3333333,), np.dtype(np.float32))


def test_every_helper_is_given():
    assert front.missing() == []


def test_what_does_not_fit_is_refused():
    x = ek.ones((2,))._node
    for wrong in (
        lambda: front.make(TABLE["add"], [x, x], None), lambda: front.make(TABLE["add"], (x, 1.0), None),
        lambda: front.structure((x,), False), lambda: front.structure([1], False), lambda: front.structure([x]),
        lambda: front.computed([x], {}), lambda: front.marks_of(1, 2), lambda: front.buffer(1),
        lambda: front.buffer(np.ones(2), dtypes.float64, tight=True), lambda: front.buffers([1], []),
        lambda: front.give("nothing", 1), lambda: front.row(1), lambda: front.plan(1),
        lambda: front.elementwise(TABLE["add"]), lambda: front.gradient_structure([x], 1),
    ):  # fmt: skip
        with pytest.raises((TypeError, SystemError)):
            wrong()
