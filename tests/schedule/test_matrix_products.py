"""Products in fragments against NumPy, on the interpreter, which sees races and copies that were not waited for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eshkol as ek
from batches import checkered
from effort import examples
from eshkol.atlas.fragments import LANES
from eshkol.atlas.machines import BLOCKS, MATRICES, MachineDescription, MatrixTile, Precision
from eshkol.backends import open_backend
from eshkol.backends.blocks import DESCRIPTION
from eshkol.errors import TensorError
from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.movement import expand, permute
from eshkol.ops.slicing import slice_
from eshkol.schedule.kernels.kernel import Kernel
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.kernels.matrix_tiling import matrix_tilings
from eshkol.schedule.plan.steps import Launch, planned
from eshkol.schedule.rewrite.patterns import recognize
from eshkol.schedule.run import stepwise

from .trust import trusted

HALVES = [dtypes.bfloat16, dtypes.float16]
LARGE = replace(BLOCKS, shared_memory=227 << 10, processors=132, matrices=MATRICES)  # an H200
# One sub-group and several, down and across; one chunk of a row and many; two slabs and more.
SHAPES = [
    MatrixTile(16, 16, 64, 16, 16, 2), MatrixTile(32, 64, 32, 16, 32, 3), MatrixTile(64, 32, 64, 64, 16, 4),
    MatrixTile(128, 256, 32, 64, 64, 4),
]  # fmt: skip


def machine(*tiles: MatrixTile, processors: int = 1) -> MachineDescription:
    return replace(DESCRIPTION, shared_memory=227 << 10, processors=processors, matrices=replace(MATRICES, tiles=tiles))


def numbers(*shape: int, dtype: dtypes.DType = dtypes.bfloat16) -> Node:
    """Small whole numbers: sums of their products are exact in whatever order they are added."""
    return buffer(np.random.default_rng(sum(shape)).integers(-1, 2, shape).astype(dtype.numpy), dtype)


def kernels(node: Node, target: MachineDescription) -> list[Kernel]:
    leaves = [n for n in topological([node]) if n.op.name == "buffer"]
    plan = planned(recognize([node], target), leaves, target)
    return [step.kernel for step in plan.steps if isinstance(step, Launch)]


def agrees(node: Node, target: MachineDescription = DESCRIPTION) -> list[str]:
    """Compare a node with NumPy; the names of the programs that computed it, of which one is in fragments."""
    leaves = [n for n in topological([node]) if n.op.name == "buffer"]
    plan = planned(recognize([node], target), leaves, target)
    [found] = stepwise.run(plan, [n.data for n in leaves], open_backend("blocks"))
    [wanted] = interpret.evaluate([node])
    np.testing.assert_array_equal(np.asarray(found), wanted)
    launched = [step.kernel for step in plan.steps if isinstance(step, Launch)]
    assert sum("MatrixMultiply" in str(kernel.program) for kernel in launched) == 1
    assert all(trusted(kernel) for kernel in launched if "product" in kernel.program.name), "a GPU would check accesses"
    return [kernel.program.name for kernel in launched]


@checkered(
    shapes=[((64, 64), (64, 64)), ((40, 24), (24, 72)), ((2, 1, 20, 40), (3, 40, 24))], tile=SHAPES, dtype=HALVES
)
def test_products(shapes: tuple[tuple[int, ...], tuple[int, ...]], tile: MatrixTile, dtype: dtypes.DType) -> None:
    """One slab and several, edges that tiles do not reach and that they do, batches that broadcast."""
    left, right = shapes
    node = matrix_product(numbers(*left, dtype=dtype), numbers(*right, dtype=dtype))
    assert agrees(node, machine(tile)) == ["matrix_product"]


@examples(100, 15)
@given(
    extents=st.tuples(*[st.integers(16, 80)] * 3), batch=st.sampled_from([(), (2,)]), left=st.booleans(),
    right=st.booleans(), tile=st.sampled_from(SHAPES[:3]),
)  # fmt: skip
def test_any_size(
    extents: tuple[int, int, int], batch: tuple[int, ...], left: bool, right: bool, tile: MatrixTile
) -> None:
    """Operands as they are and transposed, of any size: rows that do not begin at whole chunks are copied first."""
    rows, columns, terms = extents
    lead = tuple(range(len(batch)))

    def operand(first: int, second: int, turned: bool) -> Any:
        if not turned:
            return numbers(*batch, first, second)
        return permute(numbers(*batch, second, first), (*lead, len(lead) + 1, len(lead)))

    names = agrees(matrix_product(operand(rows, terms, left), operand(terms, columns, right)), machine(tile))
    if all(n % 8 == 0 for n in extents):
        assert names in (["matrix_product"], ["seen_product"])


@pytest.mark.parametrize(
    ("node", "name"),
    [
        (lambda: matrix_product(permute(numbers(48, 40), (1, 0)), numbers(48, 32)), "seen_product"),
        (lambda: matrix_product(numbers(48, 40), permute(numbers(32, 40), (1, 0))), "seen_product"),
        # Heads of attention, where they lie beside each other.
        (lambda: matrix_product(permute(numbers(2, 20, 3, 32), (0, 2, 1, 3)),
                                permute(numbers(2, 24, 3, 32), (0, 2, 3, 1))), "seen_product"),
        # Some rows and columns, at whole chunks and in between; one matrix for all.
        (lambda: matrix_product(slice_(numbers(48, 64), (8, 16), (40, 48), (1, 1)), numbers(32, 24)), "seen_product"),
        (lambda: matrix_product(slice_(numbers(48, 64), (8, 3), (40, 35), (1, 1)), numbers(32, 24)), "matrix_product"),
        (lambda: matrix_product(expand(numbers(1, 16, 24), (3, 16, 24)), numbers(3, 24, 16)), "seen_product"),
        # Rows of a transpose that begin anywhere: those of the transpose itself may be whole.
        (lambda: matrix_product(permute(numbers(40, 44), (1, 0)), numbers(40, 32)), "matrix_product"),
    ],
)  # fmt: skip
def test_operands_where_they_lie(node: Any, name: str) -> None:
    assert name in agrees(node())


def test_odd_rows_are_copied_to_whole_chunks() -> None:
    assert agrees(matrix_product(numbers(33, 35), numbers(35, 37))) == ["matrix_product_copied"] * 2 + [
        "matrix_product"
    ]


@pytest.mark.parametrize("terms", [512, 500, 333])
def test_few_tiles_of_long_sums_are_cut(terms: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eshkol.schedule.kernels.matrix_tiling.LAUNCH", 0)
    node = matrix_product(numbers(20, terms, dtype=dtypes.float16), numbers(terms, 24, dtype=dtypes.float16))
    assert agrees(node, machine(SHAPES[1], processors=8))[-2:] == ["matrix_product", "matrix_product_sums"]


def test_sums_are_rounded_once_and_what_is_infinite_stays_so() -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.standard_normal(s).astype(dtypes.bfloat16.numpy) for s in ((40, 200), (200, 48)))
    a[3, 7], a[5, 0] = np.inf, np.nan
    with ek.device("blocks"):
        found = (ek.tensor(a) @ ek.tensor(b)).numpy()
    with np.errstate(invalid="ignore"):
        wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float32).astype(a.dtype)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    np.testing.assert_allclose(found.astype(np.float32), wanted.astype(np.float32), rtol=2**-7)


def test_gradients() -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((40, 33), (33, 48)))
    with ek.device("blocks"):
        x, y = (ek.tensor(v, dtype="bfloat16") for v in (a, b))
        found = ek.jit(ek.grad(lambda p, q: ((p @ q) * (p @ q)).sum(), (0, 1)))(x, y)
        p, q = x.numpy().astype(np.float64), y.numpy().astype(np.float64)
    for got, wanted in zip(found, (2 * p @ q @ q.T, 2 * p.T @ (p @ q)), strict=True):
        np.testing.assert_allclose(got.numpy().astype(np.float64), wanted, atol=0.02 * np.abs(wanted).max())


@pytest.mark.parametrize(("precision", "error"), [("highest", 3e-6), ("high", 2e-5), ("medium", 1e-2)])
def test_float32_as_precise_as_it_is_asked_for(precision: str, error: float) -> None:
    """A compiled function heeds what is asked for when it is called."""
    rng = np.random.default_rng(2)
    shapes = ((3, 33, 50), (50, 40))
    a, b = (rng.standard_normal(s).astype(np.float32) * 10.0 ** rng.integers(-3, 4, s[:-1])[..., None] for s in shapes)
    wanted = a.astype(np.float64) @ b.astype(np.float64)
    scale = np.abs(a).astype(np.float64) @ np.abs(b)
    product = ek.jit(lambda x, y: x @ y)
    with ek.device("blocks"):
        x, y = ek.tensor(a, dtype="float32"), ek.tensor(b, dtype="float32")
        exact = product(x, y).numpy()
        assert ek.get_float32_matmul_precision() == "highest"
        try:
            ek.set_float32_matmul_precision(precision)
            found = product(x, y)
        finally:
            ek.set_float32_matmul_precision("highest")
        assert found.dtype is ek.float32
        worst = (np.abs(found.numpy() - wanted) / scale).max()
        assert worst < error
        assert precision == "highest" or worst > error / 1000
        np.testing.assert_array_equal(product(x, y).numpy(), exact)
    with pytest.raises(ValueError, match="'highest', 'high' or 'medium', not 'low'"):
        ek.set_float32_matmul_precision("low")


def test_few_bits_are_lost_where_float32_is_in_pieces() -> None:
    target = replace(machine(SHAPES[1]), float32_products=Precision.HIGH)
    for shapes in (((32, 64), (64, 32)), ((2, 17, 21), (2, 21, 19))):
        node = matrix_product(*(numbers(*s, dtype=dtypes.float32) for s in shapes))
        assert agrees(node, target) == ["matrix_product_copied"] * 2 + ["matrix_product"]


def test_what_stays_with_lanes() -> None:
    """Other dtypes, few rows, and machines without such instructions."""
    small = matrix_product(numbers(15, 32), numbers(32, 32))
    single = matrix_product(numbers(32, 32, dtype=dtypes.float32), numbers(32, 32, dtype=dtypes.float32))
    plain = matrix_product(numbers(32, 32), numbers(32, 32))
    for node, target in ((small, DESCRIPTION), (single, DESCRIPTION), (plain, replace(DESCRIPTION, matrices=None))):
        assert "MatrixMultiply" not in "".join(str(kernel.program) for kernel in kernels(node, target))


@pytest.mark.parametrize("tile", MATRICES.tiles, ids=str)
def test_tiles_of_a_gpu(tile: MatrixTile) -> None:
    """All lanes have the same number of chunks to copy, registers and memory suffice, and nothing is checked."""
    for lines in (tile.rows, tile.columns):
        assert lines * tile.depth // 8 % tile.lanes == 0
    assert tile.lanes == LANES * tile.groups <= 1024
    target = replace(LARGE, matrices=replace(MATRICES, tiles=(tile,)))
    for shape in ((4096, 4096), (1000, 1000)):
        zeros = buffer(np.zeros(shape, dtypes.bfloat16.numpy), dtypes.bfloat16)
        found = lowered(matrix_product(zeros, zeros), target)
        assert isinstance(found, tuple)
        assert all(trusted(kernel) for kernel in found)


def test_large_products_have_large_tiles_and_small_ones_keep_processors_at_work() -> None:
    large, small = (matrix_tilings(1, n, n, n, LARGE)[0] for n in (4096, 512))
    assert large.tile.rows * large.tile.columns >= 128 * 128
    assert large.parts == 1
    assert small.blocks >= 64
    with pytest.raises(TensorError, match="no tile of fragments fits 1000 bytes"):
        matrix_tilings(1, 16, 16, 16, replace(LARGE, shared_memory=1000))
