"""Reductions computed with their neighbours: one kernel for what belongs together, and the same numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from fusing import leaf, run
from hypothesis import given, settings
from hypothesis import strategies as st

import eshkol as ek
from effort import examples
from eshkol.atlas.machines import CORES
from eshkol.atlas.writing import format_instruction
from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.elementwise import cast, exp, sin, where
from eshkol.ops.movement import expand, flip, permute, reshape
from eshkol.ops.products import prod
from eshkol.ops.reductions import argmax, max_, min_, sum_
from eshkol.ops.slicing import slice_
from eshkol.schedule.kernels import parts, rows, space
from eshkol.schedule.kernels.fuse import Group, described, kind_of, steps
from eshkol.schedule.kernels.values import SAME
from eshkol.schedule.order import needed
from eshkol.schedule.rewrite.decompose import decompose
from eshkol.schedule.rewrite.simplify import simplify
from eshkol.tensors.devices import open_backend

RNG = np.random.default_rng(5)


def tensor(*shape: int, dtype: str = "float32") -> Any:
    return ek.tensor(RNG.normal(size=shape).astype(dtype))


def compiled(tensors: Any) -> list[Node]:
    """The nodes of tensors as they reach fusion."""
    return decompose(simplify([t._node for t in tensors]))


def kinds(outs: list[Node]) -> list[str]:
    """What is computed, in order: groups by their kind, other nodes by their op."""
    leaves = [n for n in topological(outs) if n.data is not None]
    found = steps(needed(outs, leaves), set(outs), CORES)
    return [s.kind if isinstance(s, Group) else s.op.name for s in found if isinstance(s, Group) or s.op not in SAME]


def agree(outs: list[Node], *, rtol: float = 1e-5, backends: tuple[str, ...] = ("reference", "cpu")) -> None:
    """What backends compute, together, is what the references give (sums in another order)."""
    wanted = interpret.evaluate(outs)
    for name in backends:
        for got, want in zip(run(outs, open_backend(name)), wanted, strict=True):
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol)


# --- named patterns -------------------------------------------------------------------------------

X, DY, W, B = tensor(6, 33), tensor(6, 33), tensor(33), tensor(33)
IMAGES, SCALE, SHIFT = tensor(4, 3, 5, 5), tensor(3), tensor(3)
LABELS = ek.tensor(np.array([0, 32, 7, -100, 3, 1]))


def gradients(function: Any, *given: Any) -> Any:
    found = ek.grad(function, argnums=tuple(range(len(given))))(*given)
    return list(found) if isinstance(found, tuple | list) else [found]


PATTERNS: dict[str, tuple[Any, list[str]]] = {
    "softmax": (lambda: [ek.softmax(X)], ["rows"]),
    "log-softmax": (lambda: [ek.log_softmax(X)], ["rows"]),
    "logsumexp": (lambda: [ek.logsumexp(X, axis=1)], ["rows"]),
    "softmax and its gradient": (
        lambda: [ek.softmax(X), *gradients(lambda x: (ek.softmax(x) * DY).sum(), X)], ["rows"],
    ),
    "masked and scaled": (
        lambda: [ek.softmax(ek.where(DY > 0, X * 0.125, -math.inf)) * 2.0], ["rows"],
    ),
    "layer norm": (lambda: [ek.layer_norm(X, 33, W, B)], ["rows"]),
    "layer norm's gradients": (
        lambda: gradients(lambda x, w, b: (ek.layer_norm(x, 33, w, b) * DY).sum(), X, W, B), ["rows", "parts"],
    ),
    "rms norm": (lambda: [ek.rms_norm(X, 33, W)], ["rows"]),
    "rms norm's gradients": (
        lambda: gradients(lambda x, w: (ek.rms_norm(x, 33, w) * DY).sum(), X, W), ["rows", "parts"],
    ),
    "batch norm": (lambda: [ek.batch_norm(IMAGES, weight=SCALE, bias=SHIFT, training=True)], ["rows"]),
    "group norm": (lambda: [ek.group_norm(tensor(2, 6, 5, 5), 3, tensor(6), tensor(6))], ["rows"]),
    "cross entropy": (
        lambda: [ek.cross_entropy(X, LABELS)], ["elementwise", "position", "rows", "rows"],
    ),
    "cross entropy with probabilities": (lambda: [ek.cross_entropy(X, ek.softmax(DY))], ["rows", "rows"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PATTERNS)
def test_what_belongs_together_is_computed_together(name):
    make, wanted = PATTERNS[name]
    outs = compiled(make())
    assert kinds(outs) == wanted
    agree(outs, rtol=3e-5, backends=("reference",))


@pytest.mark.parametrize("name", ["softmax and its gradient", "layer norm's gradients", "batch norm", "cross entropy"])
def test_natively(name):
    agree(compiled(PATTERNS[name][0]()), rtol=3e-5, backends=("cpu",))


@pytest.mark.parametrize("looked_at", [False, True])
def test_the_gradient_of_cross_entropy_makes_no_array_of_zeros(looked_at):
    """Though the loss was looked at before: where labels stand in their rows is a stored value then."""
    x, labels = tensor(6, 33), ek.tensor(LABELS.numpy())
    loss = ek.cross_entropy(x, labels)
    if looked_at:
        loss.item()
    outs = compiled(ek.value_and_grad(lambda x: ek.cross_entropy(x, labels))(x))
    found = kinds(outs)
    assert "scatter_into" not in found
    assert len(found) <= 6
    agree(outs, rtol=3e-5)


def test_a_bias_gradient_is_summed_where_its_terms_are_computed():
    """Though a product that reads the terms comes first in the order."""
    x, weights = leaf(40, 8), leaf(8, 5)
    terms = x * where(x > 1.0, x, sin(x))
    product = TABLE["matmul"](terms, weights)
    found = kinds([product, sum_(terms, 0)])
    assert found[0] == "parts"
    assert len(found) == 2
    agree([product, sum_(terms, 0)])


# --- patterns of shapes ---------------------------------------------------------------------------


def test_shapes_with_the_same_rows_have_the_same_pattern():
    assert space.reduced((8, 4, 4), (1, 2)) == space.spread((8, 1), (8, 16)) == ((8, True), (16, False))
    assert space.reduced((4, 3, 5, 5), (0, 2, 3)) == ((4, False), (3, True), (25, False))
    assert space.spread((3, 1, 1), (4, 3, 5, 5)) == ((4, False), (3, True), (25, False))
    assert space.reduced((8, 1, 4), (1,)) == ((32, True),)
    assert space.aligned((8, 4, 4), (8, 16)) == [[0], [1, 2]]
    assert space.aligned((2, 6, 5), (6, 10)) is None


def test_what_is_small_and_square_is_not_taken_for_rows():
    """A row's weight and a column's have as many elements: only one broadcasts along the columns."""
    x, w = leaf(7, 7), leaf(7)
    level = max_(x, 1, True)
    agree(
        [
            exp(x - level) * cast(w, dtypes.float32),
            expand(cast(cast(w, dtypes.float64), dtypes.float32), (7, 7)) + level,
        ]
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "int64", "uint16", "bool_"])
def test_all_dtypes(dtype):
    given = getattr(dtypes, dtype)
    x = buffer(RNG.integers(0, 2 if given.is_bool else 5, (5, 19)).astype(given.numpy), given)
    outs = [sum_(x, 1), max_(x, 1), min_(x, 0), sum_(x, 0, True), sum_(x), prod(x, 1), argmax(x, 1)]
    outs += [where(TABLE["equal"](x, max_(x, 1, True)), 1, 0)]
    wanted = interpret.evaluate(outs)
    for got, want in zip(run(outs, open_backend("reference")), wanted, strict=True):
        np.testing.assert_allclose(
            got.astype(np.float64), np.asarray(want).astype(np.float64), rtol=given.epsilon if given.is_float else 0
        )


def test_nan_and_infinity_stay_in_their_rows():
    x = np.array([[1, np.nan, 2], [np.inf, 0, 1], [-np.inf] * 3, [3, 4, 5], [-np.inf, 0, 1]], np.float32)
    outs = decompose([f(buffer(x, dtypes.float32)) for f in (TABLE["softmax"], TABLE["log_softmax"])])
    level = buffer(x, dtypes.float32)
    outs += decompose([TABLE["logsumexp"](level, 1), max_(level, 1), min_(level, 0), argmax(level, 1), sum_(level)])
    with np.errstate(all="ignore"):
        agree(outs)


@pytest.mark.parametrize("shape", [(1, 1), (5, 1), (1, 7), (3, 2), (3, 257), (0, 4)])
def test_rows_of_any_length(shape):
    x = leaf(*shape)
    e = exp(x - (max_(x, 1, True) if x.size else 0.0))
    agree([e / sum_(e, 1, True), sum_(x, 0), sum_(e)], backends=("reference",))


def test_reductions_over_rows_of_other_lengths_are_apart():
    """Both give as many numbers, which meet; but there is no loop over the elements of both."""
    x, y = leaf(6, 10), leaf(6, 33)
    out = sum_(x * 2.0, 1) + max_(y * 3.0, 1)
    assert kinds([out]) == ["rows", "rows"]
    agree([out], backends=("reference",))


# --- parts ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "axes"),
    [((50000,), (0,)), ((3, 20011), (1,)), ((700, 33), (0,)), ((30, 9000), (0,)), ((1001, 2, 50), (0,)),
     ((2, 300, 70), (1,)), ((5, 2, 3001, 3), (0, 2)), ((4, 5000), (0,)), ((37, 2, 1100), (0, 2)), ((3, 4099), (0,))],
)  # fmt: skip
def test_reductions_in_parts(shape, axes):
    x = leaf(*shape)
    runs = space.reduced(shape, axes)
    assert kind_of(runs, CORES) == "parts"
    terms = x * 0.5 + 1.0
    outs = [sum_(terms, axes) * 2.0, max_(x, axes), terms]
    assert kinds(outs) == ["parts"]
    agree(outs, rtol=5e-6, backends=("cpu",))


def test_parts_depend_on_the_shape_alone_and_leave_little_over():
    for extent in (16, 100, 1000, 4096, 50257):
        n = parts._divided(extent, extent * 4096, 1, CORES)
        assert 1 <= n <= CORES.busy
        assert extent % n <= extent / 8


def test_few_columns_are_walked_in_parts_that_do_not_overlap_where_elements_are_written():
    assert parts._width(5000, False, CORES.stretch) == 1250
    assert parts._width(4099, False, CORES.stretch) == CORES.stretch
    assert parts._width(4099, True, CORES.stretch) == 4099


@pytest.mark.parametrize(("shape", "loads"), [((200, 1000), 2), ((4000, 16), 5), ((90, 9000), 5), ((30000, 100), 5)])
def test_wide_rows_that_adjoin_are_added_one_by_one(shape, loads):
    """Memory is then read in one go; narrow or distant rows are added four at once, and so are very many."""
    x = leaf(*shape)
    out = sum_(x, 0)
    (group,) = steps(needed([out], [x]), {out}, CORES)
    program = parts.parts_kernels(group)[0].program
    lines = map(format_instruction, program.instructions)
    assert sum("LDG" in line and "[x0+" in line for line in lines) == loads


def test_long_sums_keep_their_digits():
    x = buffer(np.full((3, 200_000), 0.1, np.float32), dtypes.float32)
    for got in run([sum_(x), sum_(x, 1)], open_backend("cpu")):
        np.testing.assert_allclose(got, np.float32(0.1) * x.size / got.size, rtol=1e-5)


def test_dear_values_are_kept_in_an_output():
    x = leaf(4, 9)
    e = exp(x - max_(x, 1, True))
    out = e / sum_(e, 1, True)
    leaves = [x]
    (group,) = steps(needed([out], leaves), {out}, CORES)
    phases = rows.Phases(group.nodes, group.outs, group.runs)
    assert phases.loops == 3
    assert phases.hosts() == {e: (out, 1)}


# --- random graphs --------------------------------------------------------------------------------

SHAPES = [(4, 6), (2, 3, 5), (3, 70), (5, 1, 2)]
UNARY = [sin, exp, TABLE["tanh"], TABLE["neg"]]
REDUCTIONS = [sum_, max_, min_, prod]


@st.composite
def graphs(draw: Any) -> list[Node]:
    """Nodes over one shape and its reductions, which meet again; some are wanted."""
    shape = draw(st.sampled_from(SHAPES))
    nodes = [leaf(*shape), leaf(shape[-1]), leaf(*shape[:-1], 1), leaf(*shape[:-1], shape[-1] + 1)]
    for _ in range(draw(st.integers(3, 14))):
        x = nodes[draw(st.integers(0, len(nodes) - 1))]
        kind = draw(st.integers(0, 9))
        if kind < 2:
            nodes.append(draw(st.sampled_from(UNARY))(x * 0.5))
        elif kind < 5:
            y = nodes[draw(st.integers(0, len(nodes) - 1))]
            if _meet(x.shape, y.shape):
                made = draw(st.sampled_from([TABLE["add"], TABLE["mul"], TABLE["sub"]]))(x, y)
                nodes.append(TABLE["tanh"](made) if draw(st.booleans()) else made * 0.25)
        elif kind < 8 and x.ndim:
            axes = tuple(sorted(draw(st.sets(st.integers(0, x.ndim - 1), min_size=1))))
            nodes.append(TABLE["tanh"](draw(st.sampled_from(REDUCTIONS))(x, axes, draw(st.booleans()))))
        elif kind == 8 and x.ndim > 1:
            moved = draw(st.sampled_from([
                lambda x: flip(x, 0), lambda x: permute(permute(x, tuple(reversed(range(x.ndim)))) * 2.0,
                                                         tuple(reversed(range(x.ndim)))),
                lambda x: slice_(x, (0,) * x.ndim, tuple(max(1, n - 1) for n in x.shape)),
                lambda x: reshape(reshape(x, -1) + 1.0, x.shape), lambda x: cast(x, dtypes.float64),
            ]))(x)  # fmt: skip
            nodes.append(cast(moved, dtypes.float32))
        elif kind == 9 and x.ndim:
            nodes.append(cast(argmax(x, x.ndim - 1, True), dtypes.float32) * 0.125)
    made = nodes[4:] or [nodes[0] + 1.0]
    return draw(st.lists(st.sampled_from(made), min_size=1, max_size=4, unique=True))


def _meet(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    return all(m == n or 1 in (m, n) for m, n in zip(reversed(a), reversed(b), strict=False))


@examples(50, 20)
@given(graphs())
def test_random_graphs_keep_their_numbers(wanted):
    machine = open_backend("reference")
    for a, b in zip(run(wanted, machine), run(wanted, machine, fused=False), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


@settings(max_examples=6, derandomize=True)
@given(graphs())
def test_some_natively(wanted):
    machine = open_backend("cpu")
    for a, b in zip(run(wanted, machine), run(wanted, open_backend("reference"), fused=False), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-5)


@pytest.mark.slow
@examples(150, 50)
@given(graphs())
def test_many_natively(wanted):
    test_some_natively.hypothesis.inner_test(wanted)


@examples(60, 25)
@given(graphs())
def test_every_step_comes_after_what_it_needs(wanted):
    leaves = {n for n in topological(wanted) if n.data is not None or n.op.name == "const"}
    there = set(leaves)
    for step in steps(needed(wanted, leaves), set(wanted), CORES):
        assert all(x in there for x in step.inputs), described(step)
        there.update(step.outs if isinstance(step, Group) else (step,))
    assert set(wanted) <= there
