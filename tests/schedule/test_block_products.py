"""Products for machines of blocks against NumPy: matrices and convolutions, in tiles of all shapes, with races seen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import eshkol as ek
from batches import checkered
from eshkol.atlas.machines import BLOCKS, TILES, MachineDescription, ProductTile
from eshkol.backends import open_backend
from eshkol.backends.blocks import DESCRIPTION
from eshkol.errors import TensorError
from eshkol.graph import interpret
from eshkol.graph.node import Node, buffer, topological
from eshkol.ops import dtypes
from eshkol.ops.contraction import matrix_product
from eshkol.ops.correlation import conv, conv_input, conv_weight
from eshkol.schedule.kernels.lower import lowered
from eshkol.schedule.kernels.tiling import WIDE_SUMS, tilings
from eshkol.schedule.plan.steps import Launch, planned
from eshkol.schedule.run import stepwise

from .trust import trusted

# One row of lanes and one column, vectors and single elements, slabs that lanes fetch once and several times.
SHAPES = [
    ProductTile(8, 8, 4, 4, 4), ProductTile(8, 4, 2, 2, 2), ProductTile(4, 4, 4, 1, 1), ProductTile(4, 16, 4, 4, 2),
    ProductTile(16, 4, 2, 2, 4), ProductTile(32, 16, 2, 8, 2),
]  # fmt: skip


def machine(*tiles: ProductTile, processors: int = 1) -> MachineDescription:
    return replace(DESCRIPTION, product_tiles=tiles or DESCRIPTION.product_tiles, processors=processors)


def numbers(*shape: int, dtype: dtypes.DType = dtypes.float32) -> Node:
    """Small whole numbers: sums of their products are exact in whatever order they are added."""
    found = np.random.default_rng(sum(shape)).integers(0 if dtype.name.startswith("u") else -3, 4, shape)
    return buffer(found.astype(dtype.numpy), dtype)


def agrees(node: Node, target: MachineDescription) -> list[str]:
    """Compare a node with NumPy; the names of the programs that computed it, of which one is in tiles."""
    leaves = [n for n in topological([node]) if n.op.name == "buffer"]
    plan = planned([node], leaves, target)
    [found] = stepwise.run(plan, [n.data for n in leaves], open_backend("blocks"))
    [wanted] = interpret.evaluate([node])
    np.testing.assert_array_equal(np.asarray(found), wanted)
    programs = [step.kernel.program for step in plan.steps if isinstance(step, Launch)]
    assert any("BarSync" in str(program) for program in programs)
    return [program.name for program in programs]


# --- matrices -------------------------------------------------------------------------------------


@checkered(
    shapes=[((1, 1), (1, 1)), ((8, 8), (8, 16)), ((13, 7), (7, 11)), ((3, 5, 6), (3, 6, 9)), ((2, 1, 5, 3), (3, 3, 2))],
    tile=SHAPES,
)
def test_products(shapes: tuple[tuple[int, ...], tuple[int, ...]], tile: ProductTile) -> None:
    left, right = shapes
    assert agrees(matrix_product(numbers(*left), numbers(*right)), machine(tile)) == ["matrix_product"]


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.is_float or d.is_integer], ids=str)
def test_products_of_every_dtype(dtype: dtypes.DType) -> None:
    agrees(matrix_product(numbers(5, 9, dtype=dtype), numbers(9, 6, dtype=dtype)), machine())


@pytest.mark.parametrize("terms", [64, 63, 130])
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float16, dtypes.int8], ids=str)
def test_few_tiles_of_long_sums_are_cut(terms: int, dtype: dtypes.DType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eshkol.schedule.kernels.tiling.LAUNCH", 0)
    node = matrix_product(numbers(3, terms, dtype=dtype), numbers(terms, 4, dtype=dtype))
    assert agrees(node, machine(SHAPES[0], processors=8)) == ["matrix_product", "matrix_product_sums"]


# --- convolutions ---------------------------------------------------------------------------------

# Shapes of x (examples, groups, channels, space) and the weight (groups, outs, channels, kernel), and the rest.
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 1, 3, 5, 4), (1, 4, 3, 2, 3), {}),
    "padded": ((1, 1, 4, 5, 5), (1, 5, 4, 3, 3), {"padding": 1}),
    "unevenly padded": ((1, 1, 3, 5, 4), (1, 3, 3, 3, 2), {"padding": ((2, 0), (0, 1))}),
    "cut off": ((1, 1, 3, 6, 5), (1, 3, 3, 2, 2), {"padding": ((-1, 0), (0, -1))}),
    "grouped": ((2, 2, 3, 3, 4), (2, 3, 3, 2, 2), {"padding": 1}),
    "strided": ((1, 1, 4, 7, 6), (1, 3, 4, 3, 3), {"stride": 2, "padding": 1}),
    "dilated": ((1, 2, 3, 7, 6), (2, 4, 3, 2, 3), {"dilation": 2}),
    "strided and dilated": ((1, 1, 3, 9, 8), (1, 3, 3, 2, 2), {"stride": (2, 1), "dilation": (1, 3), "padding": 2}),
    "spread out": ((1, 1, 3, 4, 3), (1, 4, 3, 2, 2), {"input_dilation": (2, 3), "padding": 1}),
    "of lines": ((3, 1, 4, 11), (1, 5, 4, 3), {"padding": 1}),
    "of single places": ((2, 1, 5, 4, 3), (1, 4, 5, 1, 1), {}),
    "in space": ((1, 1, 3, 3, 4, 3), (1, 3, 3, 2, 1, 2), {"padding": 1}),
}


def three(x: Node, weight: Node, given: dict[str, Any]) -> list[Node]:
    """A convolution and its transposes, of small numbers of its shapes."""
    y = conv(x, weight, **given)
    ct, geometry = numbers(*y.shape, dtype=y.dtype), tuple(y.attrs)
    return [y, conv_input(ct, weight, x.shape[3:], *geometry), conv_weight(x, ct, weight.shape[3:], *geometry)]


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_and_their_transposes(name: str) -> None:
    x, weight, given = CONVOLUTIONS[name]
    for node in three(numbers(*x), numbers(*weight), given):
        agrees(node, machine())


@pytest.mark.parametrize("tile", SHAPES, ids=str)
def test_convolutions_in_tiles_of_each_shape(tile: ProductTile) -> None:
    for node in three(numbers(1, 1, 4, 3, 4), numbers(1, 3, 4, 2, 2), {"padding": 1}):
        agrees(node, machine(tile))


@pytest.mark.parametrize("dtype", [d for d in dtypes.ALL if d.is_float or d.is_integer], ids=str)
def test_convolutions_of_every_dtype(dtype: dtypes.DType) -> None:
    x, weight, given = CONVOLUTIONS["padded"]
    agrees(conv(numbers(*x, dtype=dtype), numbers(*weight, dtype=dtype), **given), machine())


def test_a_weight_that_many_tiles_read_is_turned_and_sums_may_be_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    tile = SHAPES[1]
    few, many = (three(numbers(1, 1, 4, n, n), numbers(1, 3, 4, 3, 3), {"padding": 1}) for n in (3, 4))
    assert [agrees(node, machine(tile)) for node in few[:2]] == [["conv"], ["conv_input"]]
    assert agrees(many[0], machine(tile)) == ["conv_turned", "conv"]
    assert agrees(many[1], machine(tile)) == ["conv_input_turned", "conv_input"]
    monkeypatch.setattr("eshkol.schedule.kernels.tiling.LAUNCH", 0)
    monkeypatch.setattr("eshkol.schedule.kernels.tiling.BEGIN", 0)
    monkeypatch.setattr("eshkol.schedule.kernels.tiling.PART", 0)
    assert agrees(many[0], machine(tile, processors=8)) == ["conv_turned", "conv", "conv_sums"]
    assert agrees(many[2], machine(tile, processors=10)) == ["conv_weight", "conv_weight_sums"]


def test_derivatives_on_the_device_are_those_of_the_cpu() -> None:
    rng = np.random.default_rng(1)
    x, w = (rng.normal(size=s).astype(np.float32) for s in ((1, 6, 4, 5), (6, 3, 3, 3)))
    found = {}
    for device in ("cpu", "blocks"):
        with ek.device(device):
            slopes = ek.grad(lambda p, q: (ek.conv2d(p, q, padding=1, groups=2) ** 2).sum(), (0, 1))
            found[device] = [g.numpy() for g in slopes(ek.tensor(x), ek.tensor(w))]
    for there, here in zip(found["blocks"], found["cpu"], strict=True):
        np.testing.assert_allclose(there, here, rtol=1e-4, atol=1e-4)


# --- which tiles ----------------------------------------------------------------------------------


@pytest.mark.parametrize("extents", [(1, 4096, 4096, 4096), (1, 1000, 100, 70), (8, 1, 500, 900), (1, 64, 9, 100000)])
def test_a_tile_fits_the_registers_and_the_shared_memory(extents: tuple[int, int, int, int]) -> None:
    target = replace(DESCRIPTION, product_tiles=TILES, processors=100, shared_memory=20 << 10)
    narrow, wide = (tilings(*extents, target, size)[0].tile for size in (4, 8))
    assert wide.lane_rows * wide.lane_columns <= WIDE_SUMS
    for tile, size in ((narrow, 4), (wide, 8)):
        assert 2 * tile.depth * (tile.rows + tile.columns) * size <= target.shared_memory


def test_wide_sums_are_in_smaller_tiles() -> None:
    target = replace(DESCRIPTION, product_tiles=TILES, processors=100)
    narrow, wide = (tilings(1, 4096, 4096, 4096, target, size)[0].tile for size in (4, 8))
    assert narrow.lane_rows * narrow.lane_columns > WIDE_SUMS >= wide.lane_rows * wide.lane_columns


def test_no_tile_that_fits_is_an_error() -> None:
    with pytest.raises(TensorError, match="no tile of blocks fits its 64 bytes of shared memory"):
        tilings(1, 8, 8, 8, replace(DESCRIPTION, shared_memory=64), 4)


def test_few_rows_or_columns_are_in_tiles_of_few() -> None:
    target = replace(DESCRIPTION, product_tiles=TILES, processors=132)
    assert tilings(1, 3, 131072, 288, target, 4)[0].tile.rows == 4
    assert tilings(1, 131072, 3, 288, target, 4)[0].tile.columns == 4


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_code_that_needs_too_many_registers_is_written_in_smaller_tiles(dtype: dtypes.DType) -> None:
    """Windows of a dilated convolution take registers to be found, of which a card's largest tile leaves too few."""
    x, weight = numbers(4, 1, 24, 20, 20, dtype=dtype), numbers(1, 40, 24, 3, 3, dtype=dtype)
    given = {"stride": (1, 1), "padding": ((2, 2), (2, 2)), "dilation": (2, 2)}
    for node in three(x, weight, given):
        assert isinstance(lowered(node, replace(BLOCKS, processors=132)), tuple)


# --- what ranges show of them ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["padded", "strided", "grouped", "dilated", "spread out"])
def test_no_access_of_a_convolution_needs_a_check(name: str) -> None:
    (examples, *x), weight, given = CONVOLUTIONS[name]
    for node in three(numbers(examples * 4, *x), numbers(*weight), given):
        kernels = lowered(node, machine(SHAPES[0], SHAPES[1], processors=4))
        assert isinstance(kernels, tuple)
        assert all(trusted(kernel) for kernel in kernels), node.op.name


@pytest.mark.parametrize(("left", "right"), [((64, 32), (32, 48)), ((13, 7), (7, 11)), ((2, 1, 5, 3), (3, 3, 2))])
def test_no_access_of_a_product_needs_a_check(left: tuple[int, ...], right: tuple[int, ...]) -> None:
    kernels = lowered(matrix_product(numbers(*left), numbers(*right)), machine())
    assert isinstance(kernels, tuple)
    assert all(trusted(kernel) for kernel in kernels)
