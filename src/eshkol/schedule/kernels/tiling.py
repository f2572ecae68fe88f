"""Which tiles a product is computed in on a machine of blocks, and into how many parts its sums are cut.

Comes in: the extents of a product and the description of the machine. Goes out: `Tiling`s, the one first that is
estimated to take the least time. The unit of the estimates is one multiplication of one lane that has all it needs in
registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from eshkol.atlas.machines import MachineDescription, MatrixTile, ProductTile
from eshkol.errors import TensorError

FULL = 160  # lanes that keep a processor at work
LOAD = 1.5  # what it takes to read a number from shared memory
BEGIN = 400  # to begin and end a block, for each lane
FETCH = 3  # to bring an element of a slab into shared memory
PART = 8.0  # to write a partial sum and read it again
LAUNCH = 1e6  # of each processor, to launch another kernel
MOST_PARTS = 64
MOST_BLOCKS = 8  # for each processor: more of them are not worth cutting sums
WIDE_SUMS = 32  # sums that a lane can hold of 64 bits
APART = 8  # elements by which rows of shared memory may be longer than a slab


Tile = TypeVar("Tile", ProductTile, MatrixTile)


@dataclass(frozen=True, slots=True)
class TilingOf(Generic[Tile]):
    """The tiles of a product: how many down and across, parts of the sums, slabs of each part, and blocks of all."""

    tile: Tile
    down: int
    across: int
    parts: int
    slabs: int
    blocks: int


Tiling: TypeAlias = TilingOf[ProductTile]


def cuts(
    tile: Tile, batch: int, rows: int, columns: int, terms: int, most_parts: int, most_blocks: int
) -> Iterator[TilingOf[Tile]]:
    """The ways to compute a batch of products in a tile: with whole sums, and with sums in more and more parts."""
    down, across, slabs = -(-rows // tile.rows), -(-columns // tile.columns), -(-terms // tile.depth)
    tiles, parts = batch * down * across, 1
    while parts == 1 or parts <= min(slabs, most_parts, most_blocks // tiles):
        each = -(-slabs // parts)
        needed = -(-slabs // each)  # of which none is empty
        yield TilingOf(tile, down, across, needed, each, tiles * needed)
        parts *= 2


def tilings(batch: int, rows: int, columns: int, terms: int, target: MachineDescription, size: int) -> list[Tiling]:
    """Tilings of a batch of products of so many rows and columns, with sums of so many terms of so many bytes."""
    found: list[tuple[float, Tiling]] = []
    for tile in target.product_tiles:
        if not _fits(tile, target, size):
            continue
        for cut in cuts(tile, batch, rows, columns, terms, MOST_PARTS, MOST_BLOCKS * target.processors):
            found.append((_estimate(cut, batch * rows * columns, target), cut))
    if not found:
        raise TensorError(f"no tile of {target.name} fits its {target.shared_memory} bytes of shared memory")
    found.sort(key=lambda pair: pair[0])
    return [cut for _, cut in found]


def _fits(tile: ProductTile, target: MachineDescription, size: int) -> bool:
    """Whether a tile's sums fit the registers of lanes, and two slabs of each factor the memory that they share."""
    registers = size <= 4 or tile.lane_rows * tile.lane_columns <= WIDE_SUMS
    return registers and 2 * tile.depth * (tile.rows + tile.columns + APART) * size <= target.shared_memory


def _estimate(cut: Tiling, results: int, target: MachineDescription) -> float:
    t = cut.tile
    each = t.lane_rows * t.lane_columns + LOAD * (t.lane_rows + t.lane_columns)
    fetched = (t.rows + t.columns) * t.depth / t.lanes
    block = (cut.slabs * (t.depth * each + FETCH * fetched) + BEGIN) * t.lanes
    turns = max(-(-cut.blocks // target.processors), FULL / t.lanes)
    adding = PART * results * cut.parts / target.processors + LAUNCH if cut.parts > 1 else 0.0
    return block * turns + adding
