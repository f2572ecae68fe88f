"""What recognition promises: the nodes that it should make, and the values that there were, on every dtype.

The oracle is NumPy in float64, and the interpreter on the graph as it was. Programs run on the CPU and by reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from batches import of_each
from effort import examples
from eshkol.atlas.machines import CORES
from eshkol.backends.cpu import CpuBackend
from eshkol.backends.reference import ReferenceBackend
from eshkol.graph import interpret
from eshkol.graph.function import trace
from eshkol.graph.node import Node, Scope, buffer, constant, placeholder, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.movement import expand, permute, reshape
from eshkol.ops.row import Aval
from eshkol.ops.slicing import slice_
from eshkol.schedule.kernels.products import SEEN_PRODUCT
from eshkol.schedule.plan.steps import planned
from eshkol.schedule.rewrite.patterns import recognize
from eshkol.schedule.rewrite.simplify import simplify
from eshkol.schedule.run import stepwise
from eshkol.tensors.value import as_node

MACHINES = [CpuBackend(), ReferenceBackend()]
FLOATS = [np.float64, np.float32, np.float16, ml_dtypes.bfloat16]
EPSILON = {np.float64: 2.0**-50, np.float32: 2.0**-20, np.float16: 2.0**-9, ml_dtypes.bfloat16: 2.0**-6}
add, mul, relu, tanh, sigmoid = (TABLE[name] for name in ("add", "mul", "relu", "tanh", "sigmoid"))


def leaf(shape: tuple[int, ...], dtype: Any = np.float32, seed: int = 0) -> Node:
    array = np.random.default_rng([seed, *shape]).uniform(-1, 1, shape).astype(dtype)
    return buffer(array, dtypes.of(array.dtype))


def run(results: Sequence[Node], machine: Any) -> list[Any]:
    """What a machine computes, leaves being parameters."""
    leaves = [n for n in topological(results) if n.data is not None]
    return stepwise.run(planned(results, leaves, CORES), [n.data for n in leaves], machine)


def names(*results: Node) -> list[str]:
    """What is computed, reshapes and leaves aside."""
    order = topological(results, through=lambda n: () if n.data is not None else n.inputs)
    return sorted(n.op.name for n in order if n.inputs and n.data is None and n.op is not reshape)


def check(
    results: Sequence[Node], wanted: Sequence[str], dtype: Any = np.float32, machines: Any = MACHINES
) -> list[Node]:
    """Recognized, they are made of these ops and have the values that they had."""
    before = interpret.evaluate(results)
    found = recognize(results, CORES)
    assert names(*found) == sorted(wanted)
    assert [(n.shape, n.dtype) for n in found] == [(n.shape, n.dtype) for n in results]
    values = [interpret.evaluate(found)] + [run(found, m) for m in machines]
    for arrays in values:
        for got, want in zip(arrays, before, strict=True):
            got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
            np.testing.assert_allclose(
                got, want, rtol=EPSILON[dtype], atol=8 * EPSILON[dtype] * max(1, np.abs(want).max())
            )
    again = recognize(found, CORES)
    assert all(a is b for a, b in zip(again, found, strict=True)), "recognition is done once"
    return found


def turned(x: Node) -> Node:
    n = x.ndim
    return permute(x, (*range(n - 2), n - 1, n - 2))


# --- operands where they lie ----------------------------------------------------------------------


@pytest.mark.parametrize("dtype", FLOATS, ids=lambda d: np.dtype(d).name)
@pytest.mark.parametrize("flags", [(0, 1), (1, 0), (1, 1)], ids=str)
def test_transposed_operands(dtype: Any, flags: tuple[int, int]) -> None:
    m, n, k = 5, 7, 9
    x = turned(leaf((k, m), dtype)) if flags[0] else leaf((m, k), dtype)
    y = turned(leaf((n, k), dtype)) if flags[1] else leaf((k, n), dtype)
    (found,) = check([matrix_product(x, y)], ["seen_product"], dtype)
    wanted = np.matmul(*(interpret.evaluate([v])[0].astype(np.float64) for v in (x, y)))
    np.testing.assert_allclose(
        interpret.evaluate([found])[0].astype(np.float64), wanted, rtol=EPSILON[dtype], atol=0.05
    )
    assert [v.matrix()[1] for v in found.attrs[:2]] == [bool(f) for f in flags]


def test_the_transpose_of_a_product_is_one_product() -> None:
    x, y = leaf((4, 6)), leaf((4, 5))
    check([turned(matrix_product(turned(x), y))], ["seen_product"])
    batched = matrix_product(leaf((2, 3, 4)), leaf((2, 4, 5)))
    check([permute(batched, (0, 2, 1))], ["seen_product"])
    check([permute(batched, (2, 0, 1))], ["seen_product"])
    check([permute(batched, (1, 0, 2))], ["seen_product"])


def test_heads_are_read_and_written_where_they_lie() -> None:
    batch, length, heads, dim = 2, 5, 3, 4
    x, y, v = (leaf((batch, length, heads * dim), seed=s) for s in range(3))

    def split(z: Node) -> Node:
        return permute(reshape(z, (batch, length, heads, dim)), (0, 2, 1, 3))

    scores = matrix_product(mul(split(x), constant(0.5, dtypes.float32)), turned(split(y)))
    (found,) = check([scores], ["seen_product"])
    assert found.attrs.alpha == 0.5
    mixed = permute(matrix_product(scores, split(v)), (0, 2, 1, 3))
    check([reshape(mixed, (batch, length, heads * dim))], ["seen_product", "seen_product"])


def test_parts_of_one_projection_are_read_from_it() -> None:
    whole = leaf((6, 30))
    parts = [slice_(whole, (0, 10 * k), (6, 10 * k + 10)) for k in range(3)]
    check([matrix_product(parts[0], turned(parts[1]))], ["seen_product"])
    check([matrix_product(parts[2], leaf((10, 3)))], ["seen_product"])
    steps = slice_(whole, (0, 0), (6, 30), (2, 1))
    check([matrix_product(steps, leaf((30, 3)))], ["seen_product"])


def test_repeated_matrices_are_not_copied() -> None:
    one = expand(reshape(leaf((4, 5)), (1, 4, 5)), (3, 4, 5))
    check([matrix_product(one, leaf((3, 5, 2)))], ["seen_product"])
    check([matrix_product(leaf((3, 2, 4)), one)], ["seen_product"])


def test_what_cannot_be_read_in_place_is_copied() -> None:
    far = slice_(leaf((8, 8)), (0, 0), (8, 8), (2, 2))  # elements of neither rows nor columns adjoin
    check([matrix_product(far, leaf((4, 3)))], ["matrix_product", "slice"])
    mixed = reshape(permute(leaf((2, 3, 4)), (1, 0, 2)), (3, 8))  # no view any more
    check([matrix_product(mixed, leaf((8, 3)))], ["matrix_product", "permute"])
    joined = reshape(permute(leaf((2, 3, 4)), (2, 0, 1)), (4, 6))  # a transpose, whatever it looks like
    check([matrix_product(joined, leaf((6, 3)))], ["seen_product"])


def test_numbers_move_only_where_nothing_overflows() -> None:
    x, y = leaf((3, 4)), leaf((4, 2))
    check([mul(matrix_product(x, y), constant(0.25, dtypes.float32))], ["seen_product"])
    check([matrix_product(mul(x, constant(1e30, dtypes.float32)), y)], ["matrix_product", "mul"])
    half = leaf((3, 4), np.float16)
    product = matrix_product(mul(half, constant(0.5, dtypes.float16)), leaf((4, 2), np.float16))
    check([product], ["matrix_product", "mul"], np.float16)


@st.composite
def moved(draw: st.DrawFn, shape: tuple[int, ...]) -> Node:
    """A node of a shape, by random moves of a leaf."""
    kind = draw(st.sampled_from(["leaf", "permute", "slice", "expand", "reshape"])) if len(shape) < 6 else "leaf"
    if kind == "permute":
        order = draw(st.permutations(range(len(shape))))
        inner = draw(moved(tuple(shape[order.index(k)] for k in range(len(shape)))))
        return permute(inner, tuple(order))
    if kind == "slice":
        start = [draw(st.integers(0, 2)) for _ in shape]
        step = [draw(st.sampled_from([1, 1, 2])) for _ in shape]
        whole = tuple(a + (n - 1) * s + 1 + draw(st.integers(0, 1)) for a, n, s in zip(start, shape, step, strict=True))
        stop = [a + (n - 1) * s + 1 for a, n, s in zip(start, shape, step, strict=True)]
        return slice_(draw(moved(whole)), start, stop, step)
    if kind == "expand":
        narrow = tuple(1 if draw(st.booleans()) else n for n in shape)
        return expand(draw(moved(narrow)), shape)
    if kind == "reshape":
        axis = draw(st.integers(0, len(shape) - 1))
        split = next((d for d in (2, 3, 5) if shape[axis] % d == 0), 1)
        inner = (*shape[:axis], shape[axis] // split, split, *shape[axis + 1 :])
        return reshape(draw(moved(inner)), shape)
    return leaf(shape, seed=draw(st.integers(0, 3)))


@examples(60, 12)
@given(data=st.data())
def test_any_moves_of_operands_keep_the_values(data: st.DataObject) -> None:
    batch = tuple(data.draw(st.lists(st.sampled_from([1, 2, 3]), max_size=2)))
    m, n, k = (data.draw(st.sampled_from([1, 2, 4, 6])) for _ in range(3))
    x, y = data.draw(moved((*batch, m, k))), data.draw(moved((*batch, k, n)))
    node = matrix_product(x, y)
    if data.draw(st.booleans()):
        node = permute(node, tuple(data.draw(st.permutations(range(node.ndim)))))
    (found,) = recognize([node], CORES)
    np.testing.assert_allclose(interpret.evaluate([found])[0], interpret.evaluate([node])[0], rtol=1e-5, atol=1e-5)
    (got,) = run([found], MACHINES[0])
    np.testing.assert_allclose(got, interpret.evaluate([node])[0], rtol=1e-5, atol=1e-5)


# --- what follows ---------------------------------------------------------------------------------


def silu(x: Node) -> Node:
    return mul(x, sigmoid(x))


FOLLOWERS: dict[str, Callable[[Node], Node]] = {
    "none": lambda x: x,
    "relu": relu,
    "tanh": tanh,
    "sigmoid": sigmoid,
    "silu": silu,
}


# Every follower in float32, every dtype with one; the rest are slow.
FOLLOWED = [
    pytest.param(
        dtype, follower, id=f"{follower}-{np.dtype(dtype).name}",
        marks=[] if dtype is np.float32 or follower == "silu" else [pytest.mark.slow],
    )
    for follower in FOLLOWERS for dtype in FLOATS
]  # fmt: skip


@pytest.mark.parametrize(("dtype", "follower"), FOLLOWED)
def test_bias_activation_and_residual(dtype: Any, follower: str) -> None:
    m, n, k = 6, 5, 7
    x, w, bias, residual = (leaf(s, dtype, 1) for s in ((m, k), (n, k), (n,), (m, n)))
    product = matrix_product(x, turned(w))
    machines = MACHINES if dtype in (np.float32, np.float16) else MACHINES[:1]
    for biased in (add(product, bias), add(bias, product)):
        node = FOLLOWERS[follower](biased)
        check([node], ["followed_product"], dtype, machines[:1])
        (found,) = check([add(residual, node)], ["followed_product"], dtype, machines)
        assert found.attrs.activation == (None if follower == "none" else follower)
    if follower != "none":
        check([FOLLOWERS[follower](product)], ["followed_product"], dtype, machines[:1])


def test_rows_in_several_axes_are_one_product() -> None:
    x, w, bias, residual = leaf((2, 3, 4)), leaf((4, 5)), leaf((5,)), leaf((2, 3, 5))
    product = reshape(matrix_product(reshape(x, (6, 4)), w), (2, 3, 5))
    check([add(relu(add(product, bias)), residual)], ["followed_product"])


WINDOWS: dict[str, Callable[[Node], Node]] = {  # of (6, 8)
    "whole": lambda x: x,
    "the first rows": lambda x: slice_(x, (0, 0), (4, 8), (1, 1)),
    "the last rows": lambda x: slice_(x, (2, 0), (6, 8), (1, 1)),
    "the last columns": lambda x: slice_(x, (0, 3), (6, 8), (1, 1)),
    "a corner": lambda x: slice_(x, (1, 2), (5, 7), (1, 1)),
    "every other row": lambda x: slice_(x, (0, 0), (6, 8), (2, 1)),
    "every other column": lambda x: slice_(x, (0, 1), (6, 8), (1, 2)),
    "one row": lambda x: slice_(x, (3, 0), (4, 8), (1, 1)),
    "a row again and again": lambda x: expand(slice_(x, (3, 0), (4, 8), (1, 1)), (5, 8)),
}


@of_each("place", WINDOWS)
@of_each("transposed", [False, True])
@of_each("left", [False, True])
def test_what_follows_a_product_of_windows(place: str, transposed: bool, left: bool) -> None:
    """However the operands lie in memory, the values are those of the graph."""
    window = WINDOWS[place](leaf((6, 8)))
    window = turned(window) if transposed else window
    m, n = window.shape
    product = matrix_product(leaf((3, m)), window) if left else matrix_product(window, leaf((n, 3)))
    node = relu(add(product, leaf(product.shape[-1:])))
    (wanted,) = interpret.evaluate([node])
    found = recognize([node], CORES)
    for got in (interpret.evaluate(found)[0], run(found, MACHINES[1])[0], run([node], MACHINES[1])[0]):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_what_others_need_is_left() -> None:
    x, w, bias = leaf((4, 5)), leaf((5, 6)), leaf((6,))
    before = add(matrix_product(x, w), bias)
    check([relu(before), before], ["followed_product", "relu"])  # the activation alone stays behind
    product = matrix_product(x, w)
    check([add(product, bias), product], ["add", "matrix_product"])
    check([add(product, product)], ["add", "matrix_product"])
    check([mul(before, tanh(before))], ["followed_product", "mul", "tanh"])


def test_a_row_that_is_added_is_a_bias_only_if_it_runs_along_the_columns() -> None:
    x, w = leaf((4, 5)), leaf((5, 4))
    check([add(matrix_product(x, w), leaf((4, 1)))], ["add", "matrix_product"])
    check([add(matrix_product(x, w), leaf((1, 4)))], ["followed_product"])
    check([add(matrix_product(x, w), constant(1.0, dtypes.float32))], ["add", "matrix_product"])


# --- whole graphs ---------------------------------------------------------------------------------


def graph(function: Callable[..., Any], *shapes: tuple[int, ...]) -> tuple[list[Node], list[Node], list[Any]]:
    """Simple results of a function of tensors, its parameters, and arrays for them."""
    avals = [Aval(s, dtypes.float32) for s in shapes]

    def code(*params: Node) -> list[Node]:
        found = function(*(ek.Tensor(p) for p in params))
        return [as_node(t) for t in (found if isinstance(found, tuple) else (found,))]

    traced, captured = trace(code, avals, "test")
    arrays = [np.random.default_rng(k).uniform(-1, 1, s).astype(np.float32) for k, s in enumerate(shapes)]
    arrays += interpret.evaluate(captured)
    return simplify(traced.results), list(traced.params), arrays


def agree(results: list[Node], params: list[Node], arrays: list[Any]) -> list[Node]:
    given = dict(zip(params, arrays, strict=True))
    found = recognize(results, CORES)
    wanted = interpret.evaluate(results, given)
    machine = MACHINES[0]
    for values in (interpret.evaluate(found, given), stepwise.run(planned(found, params, CORES), arrays, machine)):
        for got, want in zip(values, wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return found


def test_training_a_perceptron_permutes_nothing() -> None:
    def loss(w1: Any, b1: Any, w2: Any, b2: Any, x: Any) -> Any:
        return (ek.linear(ek.relu(ek.linear(x, w1, b1)), w2, b2) ** 2).mean()

    shapes = [(6, 7), (6,), (3, 6), (3,), (4, 7)]
    found = agree(*graph(lambda *a: ek.grad(loss, argnums=(0, 1, 2, 3))(*a), *shapes))
    made = names(*found)
    assert "permute" not in made
    assert made.count("followed_product") == 2
    assert "relu" not in made  # its derivative looks at its result


@pytest.mark.parametrize("causal", [False, True])
def test_attention_and_its_gradient_permute_nothing(causal: bool) -> None:
    def loss(x: Any, wq: Any, wk: Any, wv: Any, wo: Any) -> Any:
        return (ek.multi_head_self_attention(x, 2, wq, wk, wv, wo, causal=causal) ** 2).sum()

    shapes = [(2, 5, 8), *[(8, 8)] * 4]
    for function in (loss, lambda *a: ek.grad(loss, argnums=(0, 1, 2, 3, 4))(*a)):
        made = names(*agree(*graph(function, *shapes)))
        assert "permute" not in made
        # The gradient needs the weights; and a traced function is given the causal mask as a parameter.
        assert made.count("attended") == (function is loss and not causal)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("length", [2, 5, 70])
def test_attention_whose_weights_nobody_needs_is_one_node(causal: bool, length: int) -> None:
    """Of heads that lie beside each other, as projections leave them, and of whole heads."""
    q, k, v = (leaf((2, length, 12), seed=s) for s in range(3))

    def attended(split: Callable[[Node], Node], join: Callable[[Node], Node]) -> Node:
        found = ek.scaled_dot_product_attention(*(ek.Tensor(split(x)) for x in (q, k, v)), causal=causal)
        return simplify([join(as_node(found))])[0]

    beside = attended(
        lambda x: permute(reshape(x, (2, length, 3, 4)), (0, 2, 1, 3)), lambda x: permute(x, (0, 2, 1, 3))
    )
    whole = attended(lambda x: reshape(x, (2, 3, length, 4)), lambda x: x)
    for node, interleaved in ((beside, True), (whole, False)):
        (found,) = check([node], ["attended"])
        product = next(n for n in topological([found]) if n.op.name == "attended")
        assert product.attrs == (causal, interleaved)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", [ek.bfloat16, ek.float16])
def test_attention_of_halves_is_read_as_it_lies(causal: bool, dtype: Any) -> None:
    """Nothing is widened in memory before it, and the result is rounded once."""
    halves = [ek.Tensor(leaf((2, 9, 12), seed=s)).to(dtype).realize() for s in range(3)]

    def split(x: Node, apart: bool) -> ek.Tensor:
        return ek.Tensor(permute(reshape(x, (2, 9, 3, 4)), (0, 2, 1, 3)) if apart else reshape(x, (2, 3, 9, 4)))

    def attended(tensors: list[ek.Tensor], apart: bool) -> Node:
        found = as_node(ek.scaled_dot_product_attention(*tensors, causal=causal))
        return permute(found, (0, 2, 1, 3)) if apart else found

    for apart in (False, True):
        q, k, v = (split(as_node(x), apart) for x in halves)
        node = attended([q, k, v], apart)
        made = names(*recognize(simplify([node]), CORES))
        assert made.count("attended") == 1
        assert "cast" not in made
        found = np.asarray(ek.Tensor(node).to(ek.float32))
        wanted = np.asarray(ek.Tensor(attended([x.to(ek.float32) for x in (q, k, v)], apart)))
        assert np.abs(found - wanted).max() <= (0.004 if dtype is ek.bfloat16 else 0.0005) * np.abs(wanted).max()
    mixed = attended([q, k, v.to(ek.float32).sin()], apart)
    assert "cast" in names(*recognize(simplify([mixed]), CORES)), "values are of another type"


def test_attention_is_left_where_it_is_not_that_of_the_instruction() -> None:
    q, k, v = (leaf((2, 3, 5, 4), seed=s) for s in range(3))
    tensors = [ek.Tensor(x) for x in (q, k, v)]

    def found(*given: Any, **how: Any) -> list[str]:
        results = simplify([as_node(ek.scaled_dot_product_attention(*given, **how))])
        return names(*recognize(results, CORES))

    assert "attended" in found(*tensors)
    assert "attended" not in found(*tensors, scale=0.25)
    assert "attended" not in found(*tensors, mask=ek.Tensor(leaf((5, 5))))
    assert "attended" not in found(tensors[0], *(ek.Tensor(leaf((2, 3, 7, 4), seed=s)) for s in (1, 2)))
    weights = ek.softmax(tensors[0] @ tensors[1].transpose(-1, -2) * 0.5, axis=-1)
    results = simplify([as_node(weights @ tensors[2]), as_node(weights)])
    assert "attended" not in names(*recognize(results, CORES)), "the weights are needed"


def test_time_grows_with_the_number_of_nodes_alone() -> None:
    scope = Scope("trace", "long")
    w, bias = (placeholder(Aval(s, dtypes.float32), scope) for s in ((8, 8), (8,)))

    def took(layers: int) -> float:
        x = placeholder(Aval((4, 8), dtypes.float32), scope)
        for _ in range(layers):
            x = relu(add(matrix_product(x, turned(w)), bias))
        best = float("inf")
        for _ in range(3):
            start = time.process_time()
            (found,) = recognize([x], CORES)
            best = min(best, time.process_time() - start)
        assert names(found) == ["followed_product"] * layers
        return best / layers

    took(50)
    assert took(2000) < 4 * took(200)


def test_a_node_keeps_the_line_of_the_user() -> None:
    x, w = leaf((3, 4)), leaf((5, 4))
    node = matrix_product(x, turned(w))
    node.site = (test_a_node_keeps_the_line_of_the_user.__code__, 0)
    (found,) = recognize([node], CORES)
    assert found.op is SEEN_PRODUCT
    assert found.site == node.site
