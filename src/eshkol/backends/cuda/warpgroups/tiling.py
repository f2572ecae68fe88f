"""Which tiles a product is computed in: those that are estimated to take the least time.

Comes in: a product, and how many processors there are. Goes out: a `Tile`, and how many blocks there are. The estimates
are in microseconds of an H200, where they were measured; other machines of its kind have the same order of tiles.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from eshkol.backends.cuda.warpgroups.products import DEPTH, Product, Tile
from eshkol.backends.cuda.warpgroups.ring import ROWS

MEMORY = 232448  # bytes of shared memory that a block can have
MOST_STAGES = 8
# Rows, columns, groups that multiply, and what a slab takes, against what the same part of a slab of the first takes.
SHAPES = (
    (128, 256, 2, 1.0), (256, 128, 2, 1.03), (128, 192, 2, 1.02), (192, 128, 3, 1.05), (128, 128, 2, 1.06),
    (64, 256, 1, 1.1), (128, 64, 2, 1.15), (64, 128, 1, 1.1), (64, 64, 1, 1.6),
)  # fmt: skip
SLAB = 0.665 / (128 * 256)  # microseconds for each result
BEGIN = 1.0 / (128 * 256)  # to begin a tile and to store it, likewise
MEET, ADD = 4.5, 1e-5  # for blocks that share a tile to meet, and to add up, for each block and result
# Blocks of a cluster → the share of clusters that are at work at once, of as many as there are processors for: those of
# a cluster lie in one part of the chip, and parts have 16 or 18 processors, or a few less.
AT_WORK = {1: 1.0, 2: 1.0, 4: 30 / 33, 8: 15 / 16}
CACHE = 2.0e7  # bytes that come through the cache in a microsecond
WORTH_CLUSTERS = 1 << 38  # products from which on two blocks share columns: then fewer bytes go through the cache


def tiles(cluster: int) -> list[tuple[Tile, float]]:
    """All there are, with what a slab takes."""
    found = []
    for rows, columns, groups, cost in SHAPES:
        if columns % (64 * cluster):
            continue
        found.append((_deepest(rows, columns, groups, cluster), cost))
    return found


def _deepest(rows: int, columns: int, groups: int, cluster: int, *, shares: bool = False) -> Tile:
    """A tile with as many stages as there is memory for."""
    one, two = (Tile(rows, columns, groups, stages, cluster, shares) for stages in (1, 2))
    return replace(one, stages=min(MOST_STAGES, 1 + (MEMORY - one.memory) // (two.memory - one.memory)))


def shared_tiles(slabs: int) -> list[tuple[Tile, float]]:
    """Those that blocks of a cluster have together, for sums of so many slabs: none is left without one."""
    found = []
    for cluster in (2, 4, 8):
        if -(-slabs // -(-slabs // cluster)) != cluster:
            continue
        for rows, columns, groups, cost in SHAPES:
            if rows == ROWS * groups and columns // cluster % 8 == 0:
                found.append((_deepest(rows, columns, groups, cluster, shares=True), cost))
    return found


def count(p: Product, tile: Tile) -> int:
    """How many tiles there are, each of a cluster."""
    return prod(p.batch) * -(-p.m // (tile.rows * tile.below)) * -(-p.n // tile.columns)


def blocks(p: Product, tile: Tile, processors: int) -> int:
    return tile.cluster * min(count(p, tile), clusters(processors, tile.cluster))


def clusters(processors: int, cluster: int) -> int:
    """How many clusters of so many blocks are at work at once."""
    return max(1, int(processors // cluster * AT_WORK[cluster] + 0.5))


def best(p: Product, processors: int, *, shares: bool = True) -> Tile:
    """The tile that is estimated to take the least time; one that blocks share only where they may."""
    large = p.m * p.n * p.k * prod(p.batch) >= WORTH_CLUSTERS
    candidates = tiles(2) if large else [*tiles(1), *(shared_tiles(-(-p.k // DEPTH)) if shares else ())]
    return min(candidates, key=lambda pair: estimate(p, pair[0], pair[1], processors))[0]


def best_alone(p: Product, processors: int) -> Tile:
    """The same of tiles that blocks have each for themselves."""
    return min(tiles(1), key=lambda pair: estimate(p, pair[0], pair[1], processors))[0]


def estimate(p: Product, tile: Tile, cost: float, processors: int) -> float:
    """Microseconds, but for those that every launch takes."""
    turns = -(-count(p, tile) // clusters(processors, tile.cluster))
    slabs = -(-p.k // (DEPTH * tile.parts))
    results = tile.rows * tile.columns
    multiplying = turns * results * (slabs * SLAB * cost + BEGIN)
    adding = turns * (MEET + results * ADD * tile.parts) if tile.shares else 0.0
    brought = count(p, tile) * p.k * 2 * (min(tile.rows * tile.below, p.m) + tile.columns)
    return max(multiplying, brought / CACHE) + adding
