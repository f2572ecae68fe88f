"""Loops and branches after simplification: fewer, smaller, and with the results that they had."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.graph import interpret
from eshkol.graph.function import Function
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import dtypes
from eshkol.schedule.rewrite.simplify import simplify, simplify_function
from eshkol.tensors import pytree

LOOPS = ("scan", "while_loop", "branch")
rng = np.random.default_rng(0)
W = rng.normal(size=(3, 3)) * 0.5
XS = rng.normal(size=(5, 2, 3))


def nodes_of(value) -> list[Node]:
    return [leaf._node for leaf in pytree.flatten(value)[0]]


def loops(results) -> list[Node]:
    return [n for n in topological(results) if n.op.name in LOOPS]


def counted(results) -> int:
    """How many loops there are, those within loops included."""
    return sum(1 + sum(counted(f.results) for f in n.attrs if isinstance(f, Function)) for n in loops(results))


def names(function: Function) -> list[str]:
    return sorted(n.op.name for n in topological(function.results) if n.inputs)


def simpler(value, tolerance: float = 1e-12) -> list[Node]:
    """The simplified nodes of a structure of tensors, whose values are the same."""
    nodes = nodes_of(value)
    found = simplify(nodes)
    assert [(n.shape, n.dtype) for n in found] == [(n.shape, n.dtype) for n in nodes]
    for got, want in zip(interpret.evaluate(found), interpret.evaluate(nodes), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    again = simplify(found)
    assert all(a is b for a, b in zip(again, found, strict=True))
    return found


def only_loop(value) -> Node:
    (found,) = loops(simpler(value))
    return found


def test_value_and_gradient_of_a_scan_run_it_forward_once():
    def loss(w):
        h, hs = ek.scan(
            lambda h, x: ((y := ek.tanh(x @ w + h)), y * 2), ek.zeros((2, 3), dtype="float64"), ek.tensor(XS)
        )
        return (hs * hs).sum() + h.sum()

    value = ek.value_and_grad(loss)(ek.tensor(W))
    assert len(loops(nodes_of(value))) == 3
    found = simpler(value)
    assert [n.attrs.reverse for n in loops(found)] == [False, True]
    assert names(loops(found)[0].attrs.body).count("tanh") == 1


def test_equal_scans_of_several_traces_are_one():
    xs, start = ek.tensor(XS), ek.tensor(XS[0])

    def run():
        return ek.scan(lambda h, x: (h + ek.sin(x), h), start, xs)

    assert only_loop((run(), run()))
    one = xs.sum(1)

    def row(v):
        return ek.scan(lambda h, x: (h + ek.sin(x), h * 2), v, one)

    batched = [ek.vmap(lambda v: row(v)[0])(start), ek.vmap(lambda v: row(v)[1])(start)]
    assert only_loop(batched)


def test_what_nobody_uses_is_not_computed():
    xs = ek.tensor(XS)

    def body(carry, x):
        a, b, c = carry
        return (a + x, b * ek.cos(a), ek.exp(c)), (ek.sin(b), ek.tan(c))

    start = tuple(ek.tensor(XS[k]) for k in range(3))
    (a, _, _), _ = ek.scan(body, start, xs)
    loop = only_loop(a)
    assert names(loop.attrs.body) == ["add"]
    assert (loop.attrs.carries, len(loop.inputs)) == (1, 2)
    _, (sines, _) = ek.scan(body, start, xs)
    assert names(only_loop(sines).attrs.body) == ["add", "cos", "mul", "sin"]
    assert names(only_loop(ek.scan(body, start, xs)).attrs.body) == sorted(["add", "cos", "mul", "exp", "sin", "tan"])


def test_a_dead_chain_of_loops_goes():
    first = ek.scan(lambda h, x: (h + x, h), ek.tensor(XS[0]), ek.tensor(XS))[1]
    second, third = ek.scan(lambda c, x: ((c[0] + 1, c[1] * x), c[0]), (ek.tensor(0.0), ek.tensor(XS[0])), first)
    loop = only_loop(third)
    assert len(loop.inputs) == 1
    assert second is not None


def test_constants_and_repetitions_go_into_the_body():
    scale = ek.tensor(2.5, dtype="float64")

    def body(h, x):
        zero, one, s = x
        return h * one + zero, h + s

    xs = (ek.zeros((5, 2, 3), dtype="float64"), ek.ones((5, 2, 3), dtype="float64"), ek.expand(scale, (5, 2, 3)))
    found = simpler(ek.scan(body, ek.tensor(XS[0]), xs))
    assert not loops(found)  # nothing is left to be carried, nor to be computed in rounds


def test_what_is_the_same_in_every_round_moves_out():
    w, xs = ek.tensor(W), ek.tensor(XS)
    inner = lambda h, x: (ek.tanh(h @ ek.exp(w * h.shape[0]) + x), None)
    traced = ek.scan(lambda h, x: inner(h, x), ek.tensor(XS[0]), xs)[0]
    assert names(only_loop(traced).attrs.body) == ["add", "matrix_product", "tanh"]

    def loss(w):
        return ek.scan(lambda h, x: (ek.tanh(h @ ek.exp(w) + x), None), ek.tensor(XS[0]), xs)[0].sum()

    for loop in loops(simpler(ek.value_and_grad(loss)(w))):
        assert "exp" not in names(loop.attrs.body)


def test_a_matrix_is_turned_once_for_all_rounds():
    def loss(w):
        return ek.scan(lambda h, _: (ek.tanh(h @ w), None), ek.tensor(XS[0]), length=3)[0].sum()

    backward = loops(simpler(ek.grad(loss)(ek.tensor(W))))[-1]
    assert names(backward.attrs.body) == ["matrix_product", "mul"]
    assert sum(x.op.name == "permute" for x in backward.inputs) == 1
    read = only_loop(ek.scan(lambda h, x: (h + ek.tensor(W).T[0, 0] * x, None), ek.tensor(XS[0]), ek.tensor(XS))[0])
    assert not [x for x in read.inputs if x.op.name == "permute"], "what no product reads is not turned before"


@pytest.mark.parametrize("reverse", [False, True])
def test_a_recurrent_cell_has_one_product_in_each_round(reverse):
    def loss(inward, onward, bias, xs):
        def step(h, x):
            h = ek.tanh(x @ inward.T + h @ onward + bias)
            return h, h

        last, hs = ek.scan(step, ek.zeros((2, 3), dtype="float64"), xs, reverse=reverse)
        return (hs * hs).sum() + last.sum()

    given = [ek.tensor(a) for a in (rng.normal(size=(3, 4)), W, W[0], rng.normal(size=(5, 2, 4)))]
    found = simpler(ek.value_and_grad(loss, argnums=(0, 1, 2, 3))(*given), 1e-11)
    forward, backward = loops(found)
    assert names(forward.attrs.body).count("matrix_product") == 1
    assert names(backward.attrs.body).count("matrix_product") == 1
    assert backward.attrs.carries == 1
    outside = [n for n in topological(found) if n.op.name == "matrix_product"]
    assert sorted(n.inputs[0].shape for n in outside) == [(3, 10), (3, 10), (10, 3), (10, 4)]


def test_products_that_are_only_written_come_behind_the_loop():
    w, xs = ek.tensor(W), ek.tensor(XS)
    h, ys = ek.scan(lambda h, x: (ek.sin(h + x), h @ w), ek.tensor(XS[0]), xs)
    assert "matrix_product" not in names(only_loop((h, ys)).attrs.body)
    h, ys = ek.scan(lambda h, x: (ek.sin(h @ w), h @ w), ek.tensor(XS[0]), xs)
    assert "matrix_product" in names(only_loop((h, ys)).attrs.body)


def test_long_products_stay_in_their_rounds():
    many, w = ek.tensor(rng.normal(size=(2, 300, 3))), ek.tensor(W)

    def loss(w):
        return ek.scan(lambda h, x: (h + ek.tanh(x @ w), None), ek.zeros((300, 3), dtype="float64"), many)[0].sum()

    for loop in loops(simpler(ek.value_and_grad(loss)(w), 1e-11)):
        assert names(loop.attrs.body).count("matrix_product") == 1


def test_sums_that_are_looked_at_on_the_way_stay():
    xs = ek.tensor(XS)

    def run(y):
        return ek.scan(lambda c, x: (c + x.T @ y, c.sum()), ek.zeros((3, 3), dtype="float64"), xs)

    total, sums = run(ek.tensor(XS[0]))
    assert "matrix_product" in names(only_loop((total, sums)).attrs.body)
    assert not loops(simpler(total))


def test_what_is_handed_on_is_not_carried():
    (a, b), ys = ek.scan(
        lambda c, x: ((c[0] + c[1] * x, c[1]), c[1]), (ek.tensor(XS[0]), ek.tensor(XS[1])), ek.tensor(XS)
    )
    loop = only_loop((a, b, ys))
    assert (loop.attrs.carries, loop.attrs.elements, len(loop.inputs)) == (1, 1, 3)
    assert len(loop.outs or ()) == 1


def test_results_that_are_there_already():
    xs, y = ek.tensor(XS), ek.tensor(XS[0])
    h, ys = ek.scan(lambda h, x: (h * x, (x, y, x * 0.0 + 1, h, h)), y, xs)
    loop = only_loop((h, ys))
    assert len(loop.outs or ()) == 3  # the carry, x·0 + 1 (which may be NaN), and h once


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [0, 1])
def test_short_loops_are_no_loops(length, reverse):
    xs = ek.tensor(XS[:length])
    assert not loops(simpler(ek.scan(lambda h, x: (h + ek.sin(x), h * x), ek.tensor(XS[0]), xs, reverse=reverse)))


def test_loops_in_loops():
    def outer(h, x):
        def inner(c, _):
            return (c[0] * 0.5 + x, ek.cos(c[1]), c[2]), (c[0], ek.exp(c[1]))

        (a, b, c), (ys, zs) = ek.scan(inner, (h, x, h), length=3)
        return a + c, (ys.sum(0), b, zs)

    start = ek.tensor(XS[0])
    carry, (sums, _, _) = ek.scan(outer, start, ek.tensor(XS))
    loop = only_loop((carry, sums))
    (inside,) = loops(loop.attrs.body.results)
    assert names(inside.attrs.body) == ["add", "mul"]
    assert not {*loop.attrs.body.params} & {*inside.attrs.body.params}

    xs = ek.tensor(XS)

    def loss(h):
        carry, (sums, _, _) = ek.scan(outer, h, xs)
        return carry.sum() + sums.sum()

    found = simpler(ek.value_and_grad(loss)(start), 1e-9)
    assert [n.attrs.reverse for n in loops(found)] == [False, True]
    assert [len(loops(n.attrs.body.results)) for n in loops(found)] == [1, 1]


def test_while_loops():
    limit = ek.tensor(10.0)

    def run(body):
        return ek.while_loop(
            lambda c: c[0] < limit, body, (ek.tensor(1.0), ek.tensor(2.0), ek.tensor(3.0), ek.tensor(4.0))
        )

    a, b, c, d = run(lambda c: (c[0] + c[1], c[1], ek.sin(c[2]), c[3] * c[0]))
    loop = only_loop(a)
    assert (loop.attrs.carries, names(loop.attrs.body)) == (1, ["add"])
    assert names(only_loop((a, b)).attrs.body) == ["add"]
    assert names(only_loop(c).attrs.body) == ["add", "sin"]
    assert names(only_loop((c, d)).attrs.body) == ["add", "mul", "sin"]
    never = ek.while_loop(lambda c: ek.tensor(False) & (c < 0) & (c > 0), lambda c: c + 1, ek.tensor(1.0))
    assert len(loops(simpler(never))) == 1
    w = ek.tensor(W)
    loop = only_loop(ek.while_loop(lambda h: h.sum() < 9, lambda h: h + ek.abs(ek.exp(w) @ w), ek.tensor(W * 0)))
    assert names(loop.attrs.body) == ["add"]


def test_what_may_fail_stays_in_a_loop_that_may_not_run():
    i, zero = ek.tensor(np.array([7, 8])), ek.tensor(np.array([0, 0]))
    start = (ek.tensor(np.array([1, 2])), i, zero)
    loop = only_loop(
        ek.while_loop(lambda c: c[0].sum() < 0, lambda c: (c[0] + c[1] % c[2] + c[1] * c[2], *c[1:]), start)
    )
    assert names(loop.attrs.body) == ["add", "add", "remainder"]


def test_branches():
    x, y = ek.tensor(XS[0]), ek.tensor(XS[1])
    yes = x.sum() > 0

    def one(x, y):
        return ek.sin(x), y, ek.cos(y), x * 0.0

    def other(x, y):
        return ek.exp(x), y, ek.cos(y), x * 1.0

    a, b, c, d = ek.cond(yes, one, other, x, y)
    loop = only_loop(a)
    assert [names(f) for f in loop.attrs] == [["sin"], ["exp"]]
    assert len(loop.inputs) == 2
    assert not loops(simpler(b))
    assert not loops(simpler((b, c)))
    assert len(loops(simpler((a, b, c, d)))) == 1
    known = ek.cond(ek.full((), True, dtype="bool"), one, other, x, y)
    assert not loops(simpler(known))


def test_value_and_gradient_of_a_branch_are_one_branch():
    def loss(x):
        return ek.cond(x.sum() > 0, lambda x: ek.sin(x).sum(), lambda x: ek.exp(x).sum(), x)

    found = loops(simpler(ek.value_and_grad(loss)(ek.tensor(XS[0]))))
    assert len(found) == 2  # forward with what the way back needs, and back


def test_constants_that_a_function_captured_go_into_it():
    from eshkol.graph.function import trace
    from eshkol.ops.row import Aval
    from eshkol.tensors.value import Tensor

    w = ek.tensor(W)
    unused = ek.tensor(XS)

    def code(p):
        x = Tensor(p)
        return [
            (x * ek.ones((2, 3), dtype="float64") + ek.zeros((3,), dtype="float64") + w.sum() + 0 * unused.size)._node
        ]

    function, captured = trace(code, [Aval((2, 3), dtypes.float64)], "test")
    assert len(captured) > 1
    simple, kept = simplify_function(function, captured)
    assert len(kept) == 1
    assert simple.params[0] is function.params[0]
    assert names(simple) == ["add"]
    x = XS[0]
    (want,) = interpret.run(function, [x, *interpret.evaluate(captured)])
    (got,) = interpret.run(simple, [x, *interpret.evaluate(kept)])
    np.testing.assert_array_equal(got, want)


# --- random loops ---------------------------------------------------------------------------------

STEPS = [
    lambda a, b: a + b, lambda a, b: a * b, lambda a, b: a - b, lambda a, b: ek.tanh(a), lambda a, b: ek.sin(a) * 0.5,
    lambda a, b: a * 0.0 + b, lambda a, b: a @ (b.T @ a) * 0.1, lambda a, b: ek.where(a > b, a, 1.0), lambda a, b: a,
    lambda a, b: ek.expand(a[:1], (2, 3)), lambda a, b: ek.concatenate([a[1:], b[:1]], 0),
]  # fmt: skip


@st.composite
def scans(draw):
    """A function of two matrices that scans, with random carries, elements, captures and results."""
    carries, elements = draw(st.integers(1, 3)), draw(st.integers(0, 2))
    length, reverse = draw(st.integers(0, 4)), draw(st.booleans())
    kinds = [draw(st.sampled_from(["x", "y", "zeros", "ones", "sum"])) for _ in range(carries + elements)]
    triple = st.tuples(*[st.integers(0, 99)] * 3)
    plan = draw(st.lists(triple, min_size=1, max_size=6))
    outs = [draw(st.integers(0, 99)) for _ in range(carries + draw(st.integers(0, 3)))]
    kept = draw(st.integers(1, 2 ** len(outs) - 1))
    nested = draw(st.booleans())

    def value(kind, x, y):
        return {
            "x": lambda: x, "y": lambda: y, "zeros": lambda: ek.zeros((2, 3), dtype="float64"),
            "ones": lambda: ek.ones((2, 3), dtype="float64"), "sum": lambda: ek.expand((x * y).sum(), (2, 3)),
        }[kind]()  # fmt: skip

    def function(x, y):
        def body(carry, element):
            values = [*carry, *element, x, y, ek.sin(y)]
            for op, one, other in plan:
                values.append(STEPS[op % len(STEPS)](values[one % len(values)], values[other % len(values)]))
            if nested:
                values.append(ek.scan(lambda c, _: (c * 0.5 + x, c), values[-1], length=2)[0])
            found = [values[k % len(values)] for k in outs]
            return tuple(found[:carries]), tuple(found[carries:])

        start = tuple(value(k, x, y) for k in kinds[:carries])
        counted = ek.arange(1.0, length + 1).reshape((length, 1, 1)).astype("float64")
        spread = [ek.expand(value(k, x, y), (length, 2, 3)) for k in kinds[carries:]]
        along = tuple(v * counted if k % 2 else v for k, v in enumerate(spread))
        last, stacked = ek.scan(body, start, along, length=length, reverse=reverse)
        results = [*last, *stacked]
        return [r for k, r in enumerate(results) if kept >> k & 1] or results[:1]

    return function


@given(scans(), st.integers(0, 2**32))
@examples(40, 20)
def test_random_loops_keep_their_results_and_gradients(function, seed):
    rng = np.random.default_rng(seed)
    x, y = (ek.tensor(rng.normal(size=(2, 3))) for _ in range(2))
    simpler(function(x, y), 1e-9)

    def loss(x, y):
        return sum((ek.sin(r) * 0.1).sum() for r in function(x, y))

    value = ek.value_and_grad(loss, argnums=(0, 1))(x, y)
    before = nodes_of(value)
    found = simplify(before)
    for got, want in zip(interpret.evaluate(found), interpret.evaluate(before), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)
    assert counted(found) <= counted(before)


def test_a_node_that_has_data_hides_its_loop():
    h = ek.scan(lambda h, x: (h + x, h), ek.tensor(XS[0]), ek.tensor(XS))[0]._node
    h.data = np.zeros((2, 3))
    (found,) = simplify([h])
    assert found is h
    leaf = buffer(np.zeros((2, 3)), dtypes.float64)
    assert simplify([leaf]) == [leaf]
