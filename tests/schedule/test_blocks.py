"""Kernels for blocks of lanes against the interpreter: rows, parts and columns of all lengths, products in tiles."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from eshkol.atlas.machines import BLOCKS, CORES
from eshkol.backends import open_backend
from eshkol.backends.blocks import DESCRIPTION
from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.elementwise import cast, exp
from eshkol.ops.movement import permute
from eshkol.ops.padding import pad
from eshkol.ops.products import prod
from eshkol.ops.reductions import TENSORS, max_, min_, sum_
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.block_rows import MOST_ALONE, MOST_HELD
from eshkol.schedule.plan.steps import Launch, Plan, planned
from eshkol.schedule.run import stepwise
from eshkol.support import formulas

from .fusing import leaf

SMALL = replace(
    BLOCKS, block=16, busy=6, long=64, part_work=20, short_row=4, product_tiles=DESCRIPTION.product_tiles
)  # all ways, at small sizes


def agrees(results: list[Node], target: Any = SMALL, machine: str = "blocks", rtol: float = 1e-5) -> Plan:
    """Compute nodes as a target would have it, and compare them with the interpreter."""
    leaves = [n for n in topological(results) if n.op.name == "buffer"]
    backend = open_backend(machine)
    plan = planned(results, leaves, replace(target, subgroup=min(target.subgroup, backend.description.subgroup)))
    found = stepwise.run(plan, [n.data for n in leaves], backend)
    for got, wanted in zip(found, interpret.evaluate(results), strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=rtol, atol=1e-6)
    return plan


def barriers(plan: Plan) -> list[int]:
    """How many barriers each launch has."""
    return [str(step.kernel.program).count("BarSync") for step in plan.steps if isinstance(step, Launch)]


def normalized(x: Any) -> Any:
    powers = exp(x - max_(x, -1, keepdims=True))
    return powers * (1 / sum_(powers, -1, keepdims=True))


@pytest.mark.parametrize("machine", ["blocks", "cpu"])
@pytest.mark.parametrize("length", [1, 4, 5, 8, 15, 16, 17, 40])
def test_rows(length: int, machine: str) -> None:
    """Short ones are left to a lane each; many others to a sub-group each, where there is one; few to a block each."""
    many, few = (agrees([normalized(leaf(rows, length))], machine=machine) for rows in (7, 3))
    short = length <= SMALL.short_row
    assert (sum(barriers(many)) == 0) == (short or machine == "blocks")
    assert (sum(barriers(few)) == 0) == (short or (machine == "blocks" and length in (8, 16)))  # of four vectors


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
def test_borders(mode: str) -> None:
    """A lane asks where its element comes from; of a large tensor, it computes several."""
    for target in (SMALL, replace(SMALL, wide=64, several=4)):
        agrees([pad(leaf(3, 9, 11), ((0, 0), (2, 1), (3, 10)), mode=mode)], target)
        agrees([pad(leaf(4, 12), ((1, 3), (2, 2)), mode=mode)], target)


LONGEST = 2 * 16 * MOST_HELD  # a block of twice the everyday size, each of whose lanes holds as much as it can


@pytest.mark.parametrize(
    ("length", "reads"), [(15, 1), (16, 4), (48, 4), (50, 4), (16 * MOST_HELD, MOST_HELD), (LONGEST, MOST_HELD)]
)
def test_what_lanes_read_of_a_row_stays_in_registers(length: int, reads: int) -> None:
    """In straight code, as vectors of four; in the last round some lanes have none."""
    (step,) = agrees([normalized(leaf(3, length))], replace(SMALL, long=1 << 20)).steps
    assert isinstance(step, Launch)
    text = str(step.kernel.program)
    assert text.count("[x0") == reads
    assert ("vectors" in step.kernel.program.metadata) == (length % 2 == 0)
    assert step.kernel.program.metadata.get("lanes") == ("32" if length > 16 * MOST_HELD else None)


@pytest.mark.parametrize("length", [LONGEST + 4, 2 * LONGEST, LONGEST + 15])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.bfloat16])
def test_long_rows_lie_in_shared_memory(length: int, dtype: dtypes.DType) -> None:
    """They are read once, and powers lie where the elements were that they are of, if they take as much room."""
    target = replace(SMALL, long=1 << 20)
    rng = np.random.default_rng(length)
    x = buffer(rng.normal(size=(3, length)).astype(np.float32).astype(dtype.numpy), dtype)
    powers = exp(x if dtype is dtypes.float32 else cast(x, dtypes.float32))
    (step,) = agrees([powers * (1 / sum_(powers, -1, keepdims=True))], target).steps
    assert isinstance(step, Launch)
    assert step.kernel.launch is not None
    loops = str(step.kernel.program).split("BarSync")
    assert ["[x0" in loop for loop in loops] == [True, *[False] * (len(loops) - 1)]
    assert sum("EXP" in loop for loop in loops) == (1 if dtype is dtypes.float32 else 2)
    assert step.kernel.launch.shared_memory >= length * dtype.size
    few = replace(target, shared_memory=length * dtype.size - 1)  # where there is no room, powers lie in the result
    (step,) = agrees([powers * (1 / sum_(powers, -1, keepdims=True))], few).steps
    assert isinstance(step, Launch)
    assert "LDG.F32" in str(step.kernel.program).split("BarSync", 1)[1]


@pytest.mark.parametrize("length", [LONGEST + 4, LONGEST + 15])
def test_sums_of_powers_of_long_rows_take_one_loop(length: int) -> None:
    """With the greatest elements that they are relative to, whichever of them are infinite, or no numbers."""
    given = np.random.default_rng(0).normal(size=(7, length)).astype(np.float32) * 9
    given[1, : length - 9] = given[2, ::2] = given[3] = -np.inf
    given[4, 5], given[5, 40] = np.inf, np.nan
    x = buffer(given, dtypes.float32)
    target = replace(SMALL, long=1 << 20)
    with np.errstate(invalid="ignore"):
        (step,) = agrees([normalized(x)], target).steps
        (alone,) = agrees([formulas.log_sum_exp(TENSORS, x, (1,))], target).steps
    assert isinstance(step, Launch)
    assert isinstance(alone, Launch)
    assert alone.kernel.launch is not None
    assert "[x0" not in str(step.kernel.program).split("BarSync", 1)[1]
    assert "[x0" not in str(alone.kernel.program).split("BarSync", 1)[1]
    assert alone.kernel.launch.shared_memory < 4 * length  # nothing is kept of what is needed once


@pytest.mark.parametrize(("length", "reads"), [(8, 4), (12, 4), (4 * MOST_ALONE, MOST_ALONE)])
def test_many_rows_have_a_sub_group_each(length: int, reads: int) -> None:
    """Blocks have several of them, the last one not all, and lanes need not meet."""
    plan = agrees([normalized(leaf(7, length)), sum_(leaf(7, length), 1)], replace(SMALL, long=1 << 20))
    for step in plan.steps:
        assert isinstance(step, Launch)
        assert step.kernel.launch is not None
        assert step.kernel.launch.block_size == SMALL.block
        assert str(step.kernel.program).count("[x0") == reads
    assert sum(barriers(plan)) == 0


@pytest.mark.parametrize(("subgroup", "meetings"), [(1, 5), (2, 3), (4, 1)])
def test_lanes_of_a_subgroup_exchange_in_registers(subgroup: int, meetings: int) -> None:
    """Sixteen lanes: a barrier for what sub-groups found, and one for each step of a tree where they are too many."""
    x = leaf(3, 50)
    target = replace(SMALL, subgroup=subgroup)
    mean = agrees([sum_(x, 1), max_(x * 2, 1)], target)
    both = agrees([normalized(x)], target)
    assert [sum(barriers(mean)), sum(barriers(both))] == [meetings, 2 * meetings]
    text = "".join(str(step.kernel.program) for step in both.steps if isinstance(step, Launch))
    assert ("SubGroupXor" in text) == (subgroup > 1)


@pytest.mark.parametrize("machine", ["blocks", "cpu"])
@pytest.mark.parametrize("shape", [(1, 200), (3, 333), (2, 7, 50), (1, 1000)])
def test_few_long_rows_are_taken_in_parts(shape: tuple[int, ...], machine: str) -> None:
    x = leaf(*shape)
    axes = tuple(range(1, len(shape)))
    plan = agrees([sum_(x * 2.0, axes) + 1.0, max_(x, axes), x * 2.0], machine=machine)
    assert len(barriers(plan)) == 2
    assert barriers(plan)[0] > 0


@pytest.mark.parametrize("shape", [(2, 3), (300, 3), (64, 64), (129, 5), (1000, 2), (10, 20, 3)])
def test_columns(shape: tuple[int, ...]) -> None:
    x = leaf(*shape)
    axes = tuple(range(len(shape) - 1))
    agrees([sum_(x, axes), min_(x, axes), prod(x * 0.9, axes[:1])], rtol=1e-4)


@pytest.mark.parametrize(("rows", "reads"), [(512, SMALL.several), (500, 1)])
def test_lanes_have_several_elements_of_a_column_under_way(rows: int, reads: int) -> None:
    """Where all parts of a column are equally long, and whole rounds."""
    first = agrees([sum_(leaf(rows, 3), 0)]).steps[0]
    assert isinstance(first, Launch)
    assert str(first.kernel.program).count("[x0") == reads


@pytest.mark.parametrize(("rows", "columns", "parts"), [(8192, 3072, 128), (8192, 768, 512), (8190, 3072, 85)])
def test_parts_of_columns_are_equally_long_if_they_can_be(rows: int, columns: int, parts: int) -> None:
    first = planned([sum_(x := leaf(rows, columns), 0)], [x], BLOCKS).steps[0]
    assert isinstance(first, Launch)
    ((_, _, size),) = first.kernel.scratch
    assert size // columns == parts


@pytest.mark.parametrize("shape", [(10, 6), (50,), (7, 3, 4)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("add", [True, False])
def test_many_updates_are_sorted_by_their_places(shape: tuple[int, ...], dtype: str, add: bool) -> None:
    """In the order in which they are given, negative places among them; rows that have none stay as they are."""
    rng = np.random.default_rng(sum(shape))
    indices = rng.integers(-shape[0], shape[0] - 1, (20, 5))
    updates, x = (rng.integers(-5, 6, s).astype(np.float32) for s in ((20, 5, *shape[1:]), shape))
    wanted = x.copy()
    if add:
        np.add.at(wanted, indices, updates)
    else:
        wanted[indices] = updates
    with ek.device("blocks"):
        places, given, new = ek.tensor(indices), ek.tensor(x, dtype=dtype), ek.tensor(updates, dtype=dtype)
        change = ek.jit(lambda x, u: x.at[places].add(u) if add else x.at[places].set(u))
        np.testing.assert_array_equal(change(given, new).astype("float32").numpy(), wanted)
        assert "settled" in [step.name for step in ek.memory_report(change, given, new).steps]


def test_the_axis_between_is_reduced_and_nothing_is_read_beyond_the_end() -> None:
    x = leaf(3, 50, 4)
    agrees([sum_(x, 1), max_(x * 2.0, 1, keepdims=True) + x])


@pytest.mark.parametrize("machine", ["blocks", "cpu"])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((1, 1), (1, 1)), ((4, 4), (4, 4)), ((5, 3), (3, 9)), ((2, 6, 7), (2, 7, 3)), ((2, 1, 5, 2), (3, 2, 5)),
        ((4, 0), (0, 3)),
    ],
)  # fmt: skip
def test_products(left: tuple[int, ...], right: tuple[int, ...], machine: str) -> None:
    plan = agrees([matrix_product(leaf(*left), leaf(*right))], machine=machine)
    if 0 not in left:
        assert sum(barriers(plan)) > 0


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.float16, dtypes.float64])
def test_products_and_sums_of_other_dtypes(dtype: dtypes.DType) -> None:
    x, y = (buffer(np.arange(60).reshape(s).astype(dtype.numpy) % 7, dtype) for s in ((6, 10), (10, 6)))
    agrees([matrix_product(x, y), sum_(x, 1), max_(x, 1)], rtol=1e-3)


def test_a_group_that_needs_too_much_shared_memory_is_cut() -> None:
    x = leaf(5, 60)
    sums = [sum_(x * float(k), 1) for k in range(1, 7)]
    target = replace(SMALL, long=1 << 20)
    assert len(agrees(sums, target).steps) == 1
    assert len(agrees(sums, replace(target, shared_memory=50)).steps) > 1


def test_a_nan_is_never_passed_over() -> None:
    x = np.arange(90, dtype=np.float32).reshape(3, 30)
    x[1, 17] = np.nan
    agrees([max_(buffer(x, dtypes.float32), 1), min_(buffer(x, dtypes.float32), (0, 1))])


def test_elements_that_are_turned_are_a_lane_each() -> None:
    plan = agrees([permute(leaf(20, 30), (1, 0)) + 1.0])
    assert [step.kernel.lanes for step in plan.steps if isinstance(step, Launch)] == [600]


@pytest.mark.parametrize(
    ("shape", "axes"), [((40, 24), (1, 0)), ((33, 50), (1, 0)), ((3, 20, 17), (0, 2, 1)), ((3, 9, 5, 16), (0, 2, 3, 1))]
)
def test_much_that_is_turned_goes_through_shared_memory(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """In square tiles, of which those at the edges are not whole."""
    beside = leaf(*(shape[k] for k in axes))
    plan = agrees([permute(leaf(*shape) * 3.0, axes) + beside], replace(SMALL, wide=40))
    assert barriers(plan) == [1]


@pytest.mark.parametrize(
    ("shape", "other", "vectors"),
    [
        ((16, 24), (24,), True), ((16, 24), (16, 1), True), ((4, 6, 8), (6, 1), True), ((5, 2, 8), (5, 1, 8), True),
        ((100,), (1,), True), ((7, 13), (13,), False),
    ],
)  # fmt: skip
def test_lanes_have_vectors_of_large_tensors(shape: tuple[int, ...], other: tuple[int, ...], vectors: bool) -> None:
    """Whatever broadcasts along them, or across; where rows are no whole vectors, single elements."""
    x, y = leaf(*shape), leaf(*other)
    (step,) = agrees([x * y - x], replace(SMALL, wide=40)).steps
    assert isinstance(step, Launch)
    assert ("vectors" in step.kernel.program.metadata) == vectors
    assert step.kernel.lanes == count(shape) // (4 if vectors else 1)


def test_gradients_of_an_embedding_begin_with_zeros_that_are_nowhere_written() -> None:
    given, places = np.random.default_rng(0).normal(size=(70, 8)).astype(np.float32), np.arange(70) * 7 % 20
    wanted = np.zeros((20, 8), np.float32)
    np.add.at(wanted, places, given)
    with ek.device("blocks"):
        pulled = ek.jit(lambda w, i, g: ek.vjp(lambda w: w[i], w)[1](g)[0])
        inputs = ek.zeros((20, 8)), ek.tensor(places), ek.tensor(given)
        np.testing.assert_allclose(pulled(*inputs).numpy(), wanted, rtol=1e-5, atol=1e-6)
        names = [step.name for step in ek.memory_report(pulled, *inputs).steps]
    assert "settled" in names
    assert "zeros" not in names


@given(
    shape=st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple),
    picks=st.lists(st.booleans(), min_size=3, max_size=3),
    block=st.sampled_from([2, 8, 32]),
    busy=st.integers(1, 40),
    part_work=st.integers(1, 30),
)
def test_any_shape_for_any_machine(
    shape: tuple[int, ...], picks: list[bool], block: int, busy: int, part_work: int
) -> None:
    """Which lanes do what depends on sizes; the values do not."""
    axes = tuple(k for k in range(len(shape)) if picks[k]) or (0,)
    target = replace(SMALL, block=block, busy=busy, part_work=part_work, long=1, short_row=1)
    x = leaf(*shape)
    total = sum_(x, axes, keepdims=True)
    agrees([total, x - total, max_(x * 2.0, axes)], target)


def test_a_model_learns_as_it_does_on_cores() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(40, 33)).astype(np.float32), rng.integers(0, 5, 40)
    w, b = (rng.normal(size=s).astype(np.float32) for s in ((33, 5), (5,)))

    def loss(w: Any, b: Any, x: Any, y: Any) -> Any:
        return ek.cross_entropy(x @ w + b, y)

    found = {}
    for device in ("cpu", "blocks"):
        with ek.device(device):
            params = [ek.tensor(w), ek.tensor(b)]
            step = ek.jit(ek.value_and_grad(loss, (0, 1)))
            for _ in range(3):
                value, slopes = step(*params, ek.tensor(x), ek.tensor(y))
                params = [p - 0.5 * g for p, g in zip(params, slopes, strict=True)]
            assert value.device == device
            found[device] = [value.item(), *(p.numpy() for p in params)]
    for there, here in zip(found["blocks"], found["cpu"], strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-5, atol=1e-6)


def test_a_description_is_part_of_every_key() -> None:
    """The same node has one kernel for cores and another for blocks, whichever is asked for first."""
    node = matrix_product(leaf(4, 4), leaf(4, 4))
    leaves = list(node.inputs)
    programs = [planned([node], leaves, target).steps[0] for target in (CORES, SMALL, CORES)]
    texts = [str(step.kernel.program) for step in programs if isinstance(step, Launch)]
    assert "GEMM" in texts[0]
    assert "BarSync" in texts[1]
    assert texts[2] == texts[0]


@pytest.mark.parametrize("columns", [2, 5, 6, 8])
def test_vectors_of_a_whole_that_go_over_the_ends_of_what_is_repeated(columns: int) -> None:
    """Four elements are read at once of all; of a row that is repeated they lie together only within it."""
    x, row = leaf(20, columns), leaf(columns)
    agrees([sum_(x + row, (0, 1))], replace(BLOCKS, subgroup=1))
