"""What is computed together: fewer kernels, the same numbers, and no node before what it needs."""

from __future__ import annotations

import time

import numpy as np
import pytest
from fusing import leaf, run
from hypothesis import given
from hypothesis import strategies as st

from effort import examples
from eshkol.atlas.machines import CORES
from eshkol.graph import interpret
from eshkol.graph.node import Node, topological
from eshkol.ops import TABLE, dtypes
from eshkol.ops.elementwise import cast, exp, maximum, remainder, sin, where
from eshkol.ops.joining import concatenate
from eshkol.ops.movement import expand, flip, permute, reshape
from eshkol.ops.padding import pad
from eshkol.ops.reductions import max_, sum_
from eshkol.ops.slicing import slice_
from eshkol.ops.structural import CONST
from eshkol.schedule.kernels import fuse
from eshkol.schedule.kernels.fuse import Group, steps
from eshkol.tensors.devices import open_backend


def planned(*outputs: Node) -> list:
    order = [n for n in topological(outputs) if n.data is None and n.op.name != "const"]
    return steps(order, set(outputs), CORES)


def same_numbers(*outputs: Node) -> None:
    """What the backends compute is what every op by itself gives."""
    wanted = interpret.evaluate(outputs)
    for name in ("reference", "cpu"):
        got = run(outputs, open_backend(name))
        for g, w in zip(got, wanted, strict=True):
            np.testing.assert_allclose(g, w, rtol=2e-6, atol=1e-6)


def test_a_chain_is_one_kernel():
    x, y = leaf(3, 4), leaf(3, 4)
    out = sin(x * y + 1.0) / (exp(x) + y)
    (group,) = planned(out)
    assert isinstance(group, Group)
    assert group.outs == (out,)
    assert {n for n in group.inputs if n.op is not CONST} == {x, y}  # constants are shared, and may be computed
    same_numbers(out)


def test_rows_are_joined_of_what_is_computed_in_their_kernel():
    x, y, row, column = leaf(3, 20), leaf(3, 9), leaf(20), leaf(3, 1)
    one, other = slice_(x, (0, 0), (3, 10)), slice_(x, (0, 10), (3, 20))
    turned = concatenate([one * sin(one) - other, other + one * 2.0], 1)  # as rotary embeddings are
    for out in (turned, turned * x, concatenate([x * row + column, sin(y), x], 1), concatenate([x, x * x], 1) + 1.0):
        assert len(planned(out)) == 1
        same_numbers(out)
    twice = exp(y)  # is wanted for itself, too
    same_numbers(concatenate([twice, x], 1), twice)
    nested = concatenate([concatenate([x, y + 1.0], 1) * 2.0, y], 1)
    same_numbers(nested)
    assert len(planned(concatenate([x, slice_(y, (0, 0), (3, 3))], 1))) == 2, "short pieces are by themselves"


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_borders_are_computed_with_what_is_before_and_after(mode):
    x, row = leaf(2, 20, 20), leaf(20)
    for out in (
        pad(maximum(x * row, 0.0), ((0, 0), (2, 1), (1, 2)), mode=mode),
        pad(x, ((0, 0), (1, 0), (0, 3)), mode=mode) * 2.0,
    ):
        assert len(planned(out)) == 1
        same_numbers(out)
    y = exp(x)
    same_numbers(pad(y, ((0, 0), (0, 0), (3, 3)), mode=mode), y)  # what is wanted for itself, too
    assert len(planned(pad(x * 2.0, ((0, 0), (9, 9), (9, 9)), mode=mode))) == 2, "much would be computed twice"
    assert len(planned(pad(y, ((0, 0), (2, 1), (1, 2)), mode=mode))) == 2, "so would what is dear"
    bordered = pad(x * 2.0, ((0, 0), (0, 0), (3, 3)), mode=mode)
    same_numbers(bordered / sum_(bordered, 2, keepdims=True), flip(bordered, 2))


def test_joined_rows_and_reductions():
    """Kernels of rows have no stretches."""
    x, y = leaf(5, 40), leaf(5, 33)
    joined = concatenate([x * 2.0, y], 1)
    outs = [
        sum_(joined, 1), joined / sum_(joined, 1, keepdims=True), concatenate([x - max_(x, 1, keepdims=True), y], 1),
        exp(concatenate([x, y], 1) - max_(concatenate([x, y], 1), 1, keepdims=True)), sum_(joined, 0),
    ]  # fmt: skip
    for out in outs:
        same_numbers(out)
    same_numbers(*outs)


def test_broadcasts_casts_and_permutations_are_read_where_they_are_used():
    x, row, column = leaf(3, 4), leaf(4), leaf(3, 1)
    out = permute(expand(row, (5, 3, 4)), (0, 1, 2)) * cast(x, dtypes.float64) + column - flip(x, 1)
    assert len(planned(out)) == 1
    same_numbers(out)
    turned = permute(x * 2.0, (1, 0)) + leaf(4, 3)
    assert len(planned(turned)) == 1
    same_numbers(turned)
    part = slice_(x + 1.0, (0, 1), (3, 3)) * 3.0
    same_numbers(part)


def test_one_program_for_all_sizes_knows_a_single_element_from_many():
    for shape in ((), (1,), (1, 1), (3, 4), (1, 4), (5,), (1,)):
        same_numbers(exp(leaf(*shape) * leaf()) + 1.0)
        same_numbers(exp(leaf(*shape) * leaf(1)) - leaf(*shape))


def test_what_others_need_is_written_too():
    x = leaf(3, 4)
    middle = x * 2.0
    out = exp(middle) + 1.0
    (group,) = planned(out, middle)
    assert set(group.outs) == {middle, out}
    same_numbers(out, middle)


def test_results_that_share_dear_work_are_one_kernel():
    x, y = leaf(3, 4), leaf(3, 4)
    shared = sin(x * y)
    outs = sin(shared * x + 1.0), exp(shared - y) * shared, (shared + y) * (shared - x)
    (group,) = planned(*outs)
    assert group.outs == outs
    same_numbers(*outs)


def test_a_view_is_a_step_once():
    x = leaf(4, 3)
    view = reshape(sum_(x, (1,)), (2, 2))
    group, step = planned(view)
    assert isinstance(group, Group)
    assert step is view
    alone = reshape(x, (3, 4))  # of what is there already
    assert planned(alone) == [alone]


def test_sums_that_are_read_at_other_rows_are_computed_once():
    """In the group that reads them, each element would add up a whole row again."""
    x, y = leaf(4, 3), leaf(4, 3)
    totals = expand(reshape(sum_(x, (1,)), (4, 1)), (4, 3))
    for out in (x * totals + flip(totals * y, 0), x - totals + flip(sin(x - totals), 0)):
        first, *_ = planned(out)
        assert [n.op.name for n in first.nodes] == ["sum"]
        same_numbers(out)


def test_groups_stay_apart_where_something_between_needs_the_first():
    """What the sum gives is read by the second, and the sum reads the first."""
    x, y = leaf(4, 3), leaf(4, 3)
    shared = sin(x * y)
    first = sin(shared + x)
    second = exp(shared - y) * expand(sum_(first, (0,)), (4, 3))
    found = planned(first, second)
    assert sum(isinstance(g, Group) and g.kind == "elementwise" for g in found) <= 1
    assert len(found) >= 2
    same_numbers(first, second)


def test_a_sum_between_two_uses_keeps_them_apart_where_rows_do_not_lie_together():
    """exp is needed by the sum, and the sum by the quotient: one kernel for both could not be ordered."""
    x = leaf(30, 4)
    e = exp(x - max_(x, 0, True))
    out = e / sum_(e, 0, True)
    kinds = [s.kind if isinstance(s, Group) else s.op.name for s in planned(out)]
    assert kinds == ["parts", "parts", "div"]
    same_numbers(out)


def test_a_later_sum_is_computed_with_what_its_terms_are_used_for():
    x = leaf(3, 100)
    terms = x * x
    out = exp(terms) * 2.0
    total = sum_(terms)
    (group,) = planned(out, total)
    assert set(group.outs) == {out, total}
    same_numbers(out, total)


def test_small_inputs_are_not_computed_again_for_every_element():
    row = exp(leaf(4))
    found = planned(leaf(100, 4) * row + 1.0)
    assert len(found) == 2, "the exponentials of the row are computed once"


def test_what_can_stop_a_launch_stays_alone():
    x = leaf(4, dtype=dtypes.int64)
    found = planned(remainder(x, x + 1) * 2)
    assert any(isinstance(s, Node) and s.op is remainder for s in found)
    assert len(planned(remainder(leaf(4) + 1.0, leaf(4)) * 2.0)) == 1


def test_a_kernel_does_not_grow_without_bound():
    x = leaf(8)
    out = x
    for k in range(150):
        out = sin(out) + float(k)
    found = planned(out)
    assert 1 < len(found) < 50
    got, want = (run([out], open_backend("reference"), fused) for fused in (True, False))
    np.testing.assert_array_equal(got, want)


def test_time_grows_with_the_number_of_nodes_alone():
    """One node has thousands of users, each in a group of its own; looking at all pairs would take minutes."""
    x = leaf(8, 16)
    shared, outs = x * 2.0, []
    for k in range(800):
        e = exp(shared - max_(shared * float(k), 1, True))
        outs.append(e / sum_(e, 1, True))
    began = time.process_time()
    assert len(planned(*outs)) == 800
    assert time.process_time() - began < 4


def test_groups_are_printed_when_asked_for(monkeypatch, capsys):
    monkeypatch.setenv("ESHKOL_DUMP", "fuse")
    x = leaf(3)
    planned(exp(x) + 1.0)
    assert capsys.readouterr().err == "together over [3]: exp add; writes add float32\n"


UNARY = [sin, exp, TABLE["tanh"], TABLE["neg"], TABLE["absolute"]]


@st.composite
def graphs(draw) -> list[Node]:
    """Nodes over a few shapes that meet, with reductions in between, some of them wanted."""
    nodes = [leaf(2, 3), leaf(3), leaf(2, 1), leaf(), leaf(1), leaf(1, 1)]
    for _ in range(draw(st.integers(2, 14))):
        x, y = (nodes[draw(st.integers(0, len(nodes) - 1))] for _ in range(2))
        kind = draw(st.integers(0, 8))
        if kind < 2:
            nodes.append(draw(st.sampled_from(UNARY))(x * 0.5))
        elif kind < 5:
            nodes.append(draw(st.sampled_from([TABLE["add"], TABLE["mul"], maximum]))(x, y) * 0.5)
        elif kind == 5:
            nodes.append(where(x > y, x, y))
        elif kind == 6 and x.ndim:
            axis = draw(st.integers(0, x.ndim - 1))
            nodes.append(sum_(x, axis, axis == 1) * 0.25)
        elif kind == 7:
            nodes.append(expand(x, (2, 3)) if x.size < 6 and 2 not in x.shape[-1:] else flip(x, 0) if x.ndim else x)
        elif kind == 8 and x.shape == (2, 3):
            nodes.append(permute(permute(x, (1, 0)) + 1.0, (1, 0)))
    made = nodes[6:] or [nodes[0] + 1.0]
    return draw(st.lists(st.sampled_from(made), min_size=1, max_size=4, unique=True))


@examples(40, 15)
@given(graphs())
def test_random_graphs_keep_their_numbers(wanted):
    """Computed together or one by one, on the reference backend: the same but for the order of sums."""
    machine = open_backend("reference")
    for a, b in zip(run(wanted, machine), run(wanted, machine, fused=False), strict=True):
        np.testing.assert_allclose(a, b, rtol=4e-6, atol=1e-6)


@examples(60, 20)
@given(graphs())
def test_every_step_comes_after_what_it_needs(wanted):
    order = [n for n in topological(wanted) if n.data is None and n.op.name != "const"]
    found = steps(order, set(wanted), CORES)
    there = {n for n in topological(wanted) if n.data is not None or n.op.name == "const"}
    for step in found:
        assert all(x in there for x in step.inputs), fuse.described(step)
        there.update(step.outs if isinstance(step, Group) else (step,))
    assert set(wanted) <= there
