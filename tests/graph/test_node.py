"""Nodes are interned, constants are told apart by their bytes, and the table of nodes keeps nothing alive."""

from __future__ import annotations

import gc
import linecache
import math
import sys
import threading
import weakref

import numpy as np
import pytest

import eshkol as ek
from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.graph import derive, interpret, node
from eshkol.graph.function import close, trace, transposed
from eshkol.graph.node import Node, Scope, buffer, constant, lift, make, mark, placeholder, substitute, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.elementwise import add, mul, sin
from eshkol.ops.movement import reshape
from eshkol.ops.row import Aval
from eshkol.runtime import front
from eshkol.schedule.check.verify import verify


def leaf(*values: float) -> Node:
    return buffer(np.array(values), dtypes.float64)


# --- interning ------------------------------------------------------------------------------------


def test_the_same_op_of_the_same_inputs_is_the_same_node():
    x, y = leaf(1, 2), leaf(1, 2)
    assert x is not y
    assert add(x, y) is add(x, y)
    assert add(x, y) is not add(y, x)
    assert add(x, y) is not mul(x, y)
    assert sin(add(x, y)) is sin(add(x, y))
    assert reshape(x, (2, 1)) is reshape(x, (2, 1))
    assert reshape(x, (2, 1)) is not reshape(x, (1, 2))
    assert x + 1 is x + 1
    assert x + 1 is x + 1.0
    assert TABLE["sum"](x, 0) is TABLE["sum"](x, -1)
    assert TABLE["sum"](x, 0) is not TABLE["sum"](x, 0, keepdims=True)


def test_constants_are_told_apart_by_their_bytes_and_dtype():
    f = dtypes.float64
    assert constant(0.0, f) is constant(0.0, f)
    assert constant(0.0, f) is not constant(-0.0, f)
    assert constant(math.nan, f) is constant(math.nan, f)
    assert constant(1, f) is constant(1.0, f)
    assert constant(1, dtypes.int64) is not constant(1, f)
    assert constant(1, dtypes.int64) is not constant(True, dtypes.bool_)
    assert constant(0.1, dtypes.float32) is not constant(0.1, f)
    assert lift(1) is not lift(True)
    assert lift(1) is not lift(1.0)
    assert [lift(v).dtype for v in (True, 1, 1.0, 1j)] == [dtypes.bool_, dtypes.int64, dtypes.float32, dtypes.complex64]
    assert constant(complex(0.0, -0.0), dtypes.complex128) is not constant(0j, dtypes.complex128)


def test_constants_keep_their_value():
    assert math.copysign(1, (ek.tensor(-0.0) * 1).item()) == -1
    x = ek.tensor([2.0])
    assert math.copysign(1, (x * -0.0).item()) == -1
    assert math.copysign(1, (x * 0.0).item()) == 1
    assert math.isnan((x * math.nan).item())
    assert ((x + 1).item(), (x + True).item(), (x + 1.0).item()) == (3.0, 3.0, 3.0)
    assert (ek.tensor([2]) + True).dtype is ek.int64


def test_numbers_that_do_not_fit_are_refused():
    with pytest.raises(DTypeError, match="int64"):
        lift(2**63)
    with pytest.raises(DTypeError):
        lift(1.5, dtypes.int64)
    with pytest.raises(TensorError, match="str"):
        lift("a")


def test_leaves_and_marks_are_like_no_others():
    array = np.zeros(2)
    assert buffer(array, dtypes.float64) is not buffer(array, dtypes.float64)
    scope = Scope("grad", "test")
    x = leaf(1)
    assert mark(x, scope) is not mark(x, scope)
    aval = Aval((2,), dtypes.float64)
    assert placeholder(aval, scope) is not placeholder(aval, scope)


def test_nodes_say_what_they_depend_on():
    one, two, traced = Scope("grad", "one"), Scope("grad", "two"), Scope("trace", "vmap")
    a, b, p = mark(leaf(1), one), mark(leaf(1), two), placeholder(Aval((1,), dtypes.float64), traced)
    assert leaf(1).scopes == frozenset()
    assert (a + 1).scopes == {one}
    assert (a * b).scopes == {one, two}
    assert (a * b + p).scopes == {one, two, traced}
    assert mark(a, two).scopes == {one, two}
    stopped = ek.stop_gradient(ek.Tensor(a * p))._node
    assert stopped.scopes == {traced}


def test_an_op_with_several_results_has_one_node():
    low, high = ek.chunk(ek.Tensor(leaf(1, 2, 3, 4)), 2)
    assert (low.shape, high.shape) == ((2,), (2,))
    (q, r) = ek.qr(ek.Tensor(buffer(np.eye(2) + 1, dtypes.float64)))
    assert q._node.inputs[0] is r._node.inputs[0] or q._node.inputs[0].inputs == r._node.inputs[0].inputs
    np.testing.assert_allclose(q.numpy() @ r.numpy(), np.eye(2) + 1)


def test_a_failed_op_leaves_nothing_behind():
    x, y = leaf(1, 2), leaf(1, 2, 3)
    before = front.known()[0]
    for _ in range(3):
        with pytest.raises(ShapeError):
            add(x, y)
    assert front.known()[0] == before


# --- memory ---------------------------------------------------------------------------------------


def alive() -> int:
    gc.collect()
    return front.known()[0]


def test_nodes_that_nobody_holds_are_gone():
    x = leaf(1.0, 2.0)
    before = alive()
    y = x
    for _ in range(100):
        y = y * 1.5 + x
    watched = weakref.ref(y)
    assert alive() >= before + 190  # others may let go of some meanwhile
    del y
    gc.collect()
    assert watched() is None
    assert alive() <= before + 1  # the constant may be new


def test_a_node_made_again_after_it_was_gone_is_right():
    x = leaf(1.0, 2.0)
    for _ in range(50):
        y = add(x, leaf(3.0, 4.0))  # a new leaf each time, often where the last one was in memory
        assert interpret.evaluate([y])[0].tolist() == [4.0, 6.0]
        del y
    one = reshape(x, (2, 1))
    assert one.inputs == (x,)


def test_the_table_of_nodes_does_not_grow_with_what_is_gone():
    x = leaf(1.0)
    before, places = front.known()
    for k in range(70_000):
        make(TABLE["add"], (x, constant(k, dtypes.float64)), None)
    after, room = front.known()
    most = before + node.CONSTANTS_KEPT + 2048  # the constants that were met lately
    assert after <= most
    assert room <= max(places, 8 * most)  # it is made for four times what lives; 70,000 would need 2**19


def test_long_chains_are_walked_transformed_and_freed_without_recursion():
    scope = Scope("grad", "test")
    x = mark(leaf(1.0), scope)
    y = x
    for _ in range(5000):
        y = y * 1.0001
    assert len(topological([y])) == 5000 + 3  # the mark, its leaf, the constant
    (tangent,) = derive.jvp([y], {x: leaf(1.0)}, scope)
    np.testing.assert_allclose(interpret.evaluate([tangent])[0], 1.0001**5000, rtol=1e-10)
    (slope,) = derive.vjp([y], [x], scope)([leaf(1.0)])
    np.testing.assert_allclose(interpret.evaluate([slope])[0], 1.0001**5000, rtol=1e-10)
    del y, tangent, slope
    gc.collect()


# --- walking and rewriting ------------------------------------------------------------------------


def test_topological_order_has_inputs_first_and_each_node_once():
    x = leaf(1.0)
    y = x * 2
    z = (y + x) * y
    order = topological([z, y])
    assert len(order) == len(set(order))
    place = {n: k for k, n in enumerate(order)}
    for n in order:
        for i in n.inputs:
            assert place[i] < place[n]


def test_substitute_changes_what_depends_and_shares_the_rest():
    x, y, other = leaf(1.0), leaf(2.0), leaf(5.0)
    kept = sin(y)
    z = x * 2 + kept
    (new,) = substitute([z], {x: other})
    assert new is other * 2 + kept
    assert substitute([kept], {x: other})[0] is kept
    assert substitute([x], {x: other})[0] is other


def test_functions_close_over_nothing():
    outer = leaf(3.0)
    aval = Aval((1,), dtypes.float64)
    function, captures = trace(lambda x: [x * outer + sin(outer), outer, x], [aval], "test")
    assert len(function.params) == 1 + len(captures)
    for n in topological(function.results):
        assert n.op.name != "buffer"
    got = interpret.evaluate(function(leaf(2.0), *captures))
    assert [g.tolist() for g in got] == [[6 + math.sin(3)], [3.0], [2.0]]


def test_a_linear_function_is_transposed():
    scope = Scope("trace", "test")
    x, w = (placeholder(Aval((2,), dtypes.float64), scope) for _ in range(2))
    function, _ = close([x, w], [x * w, TABLE["sum"](x)], scope)
    back = transposed(function, 1)
    (got,) = interpret.evaluate(back(leaf(1, 10), buffer(np.array(100.0), dtypes.float64), leaf(2, 3)))
    assert got.tolist() == [102.0, 130.0]


# --- the verifier ---------------------------------------------------------------------------------


def test_the_verifier_accepts_what_is_made_and_refuses_what_is_tampered_with():
    x = leaf(1.0, 2.0)
    verify(x + 1)
    wrong = add(x, leaf(5.0, 6.0))
    wrong.shape = (3,)
    with pytest.raises(TensorError, match=r"\[3\]"):
        verify(wrong)
    wrong.shape, wrong.dtype = (2,), dtypes.float32
    with pytest.raises(TensorError, match="float32"):
        verify(wrong)


def test_the_verifier_refuses_dtypes_that_have_not_met():
    x, y = leaf(1.0), buffer(np.array([1]), dtypes.int64)
    mixed = make(TABLE["add"], (x, y), None)
    with pytest.raises(TensorError, match="dtype"):
        verify(mixed)
    truth = buffer(np.array([True]), dtypes.bool_)
    with pytest.raises(TensorError, match="promoted"):
        verify(make(TABLE["add"], (truth, truth), None))
    with pytest.raises(TensorError, match="promoted"):
        verify(make(TABLE["sin"], (y,), None))


def test_graphs_of_transformations_pass_the_verifier():
    ek.check()

    def f(x):
        last, ys = ek.scan(lambda c, x: (ek.sin(c) * x, c), x[0], x)
        return ek.cond(last > 0, lambda: last, lambda: ys.sum()) + (x @ x) + x[x > 1].sum()

    batch = ek.tensor([[1.0, 2.0], [3.0, -4.0]])
    ek.hessian(f)(batch[0]).numpy()
    ek.vmap(ek.grad(lambda x: (ek.softmax(x) * x).sum()))(batch).numpy()
    ek.jacobian(lambda x: ek.cumsum(x) / x.std(), mode="reverse")(batch[1]).numpy()


def test_a_tampered_node_is_found_before_it_is_computed():
    ek.check()
    x = ek.tensor([1.0, 2.0]) + ek.tensor([3.0, 4.0])
    x._node.dtype = dtypes.float64
    with pytest.raises(TensorError, match=r"(?s)float64.*test_node\.py"):
        x.realize()


# --- numbers and lines ----------------------------------------------------------------------------


def test_numbers_beyond_a_dtype_are_said_as_they_are():
    with pytest.raises(DTypeError, match=r"^1e\+300 does not fit float32"):
        constant(1e300, dtypes.float32)
    with pytest.raises(DTypeError, match=r"^an integer of so many digits does not fit float32"):
        constant(10**400, dtypes.float32)
    assert constant(math.inf, dtypes.float32).attrs.array == math.inf


def test_constants_are_kept_up_to_a_bound(monkeypatch):
    monkeypatch.setattr(node, "CONSTANTS_KEPT", 8)
    monkeypatch.setattr(node, "_constants", {})
    kept = [constant(float(k), dtypes.float64) for k in range(30)]
    assert len(node._constants) <= 8
    assert [float(x.attrs.array) for x in kept] == list(range(30))
    assert constant(29.0, dtypes.float64) is kept[-1]


@pytest.mark.parametrize(
    ("text", "column", "length"),
    [("span = where()\n", 8, 7), ("é = 1; span = where(1, 2)\n", 15, 11), ("span = 1 and where(\n  1)\n", 14, 6)],
)
def test_a_line_is_shown_with_a_caret_under_the_call(text, column, length):
    linecache.cache["<a program>"] = (len(text), None, text.splitlines(keepends=True), "<a program>")
    spans = []

    def where(*_):
        frame = sys._getframe(1)
        spans.append(node.span_of((frame.f_code, frame.f_lasti)))

    exec(compile(text, "<a program>", "exec"), {"where": where})
    (span,) = spans
    assert (span.line, span.column, span.length) == (1, column, length)
    assert span.text == text.splitlines()[0]


def test_a_thread_that_no_line_of_the_user_began_has_no_site():
    found = []
    thread = threading.Thread(target=node.noted(lambda: found.append(node.Current.site)))
    thread.start()
    thread.join()
    assert found == [None]
