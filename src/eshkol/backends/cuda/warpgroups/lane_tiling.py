"""Which tiles a product of float32 is computed in by threads: those that are estimated to take the least time.

Comes in: a product, and how many processors there are. Goes out: a `LaneTile`, and how many of them there are. A block
has one tile. What tiles take was measured on an H200.
"""

from __future__ import annotations

from math import prod

from eshkol.backends.cuda.warpgroups.lane_products import LaneTile
from eshkol.backends.cuda.warpgroups.products import Product

# With what a result takes, against what one of the first takes.
TILES = (
    (LaneTile(128, 128, 8, 8, 1, 3, 2), 1.0), (LaneTile(64, 128, 8, 8, 2, 4, 1), 1.09),
    (LaneTile(64, 64, 8, 8, 2, 4, 2), 1.14),
)  # fmt: skip


def count(p: Product, tile: LaneTile) -> int:
    return prod(p.batch) * -(-p.m // tile.rows) * -(-p.n // tile.columns)


def best(p: Product, processors: int) -> LaneTile:
    """The tile with which the processor that has most to do has least."""

    def most(pair: tuple[LaneTile, float]) -> float:
        tile, cost = pair
        return -(-count(p, tile) // processors) * tile.rows * tile.columns * cost

    return min(TILES, key=most)[0]
