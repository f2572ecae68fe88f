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
    (LaneTile(128, 128, 8, 8, 1, 3, 2), 1.0), (LaneTile(64, 128, 8, 8, 2, 3, 2), 1.03),
    (LaneTile(64, 128, 8, 8, 2, 4, 1), 1.05), (LaneTile(64, 64, 8, 8, 2, 3, 3), 1.07),
)  # fmt: skip
ALONE = 1.1  # what a block takes that has the processor for itself, which is meant for several


def count(p: Product, tile: LaneTile) -> int:
    return prod(p.batch) * -(-p.m // tile.rows) * -(-p.n // tile.columns)


def best(p: Product, processors: int) -> LaneTile:
    """The tile with which the processor that has most to do has least."""

    def most(pair: tuple[LaneTile, float]) -> float:
        tile, cost = pair
        turns = -(-count(p, tile) // processors)
        return turns * tile.rows * tile.columns * cost * (ALONE if turns == 1 < tile.resident else 1.0)

    return min(TILES, key=most)[0]
