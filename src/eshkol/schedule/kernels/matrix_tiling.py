"""Which tiles a product of fragments is computed in, and into how many parts its sums are cut.

Comes in: the extents of a product and the description of a machine with a matrix unit. Goes out: `MatrixTiling`s, the
one first that is estimated to take the least time. The unit of the estimates is one product of two fragments.
"""

from __future__ import annotations

from typing import TypeAlias

from eshkol.atlas.fragments import COLUMNS, ROWS, TERMS
from eshkol.atlas.machines import MachineDescription, MatrixTile
from eshkol.errors import TensorError
from eshkol.schedule.kernels.tiling import TilingOf, cuts

# Measured on an H200, where one product of two fragments takes a processor 2.25 cycles at best.
BUSY = 8  # sub-groups that keep the matrix unit of a processor at work; more do not find registers
LOAD = 1.6  # what it takes to load a fragment of 16 × 16, beyond what is done meanwhile
HIDDEN = 0.4  # loads for each product that are
ROUND = 12  # to wait for a slab
BEGIN = 2400  # to begin and end a block that is alone on a processor
PART = 0.03  # to write a partial sum and read it again
LAUNCH = 4000  # to launch another kernel
MOST_PARTS = 32
MOST_BLOCKS = 2  # for each processor: more of them are not worth cutting sums


MatrixTiling: TypeAlias = TilingOf[MatrixTile]


def matrix_tilings(batch: int, rows: int, columns: int, terms: int, target: MachineDescription) -> list[MatrixTiling]:
    """Tilings of a batch of products of so many rows and columns, with sums of so many terms."""
    assert target.matrices is not None
    found: list[tuple[float, MatrixTiling]] = []
    for tile in target.matrices.tiles:
        if tile.memory > target.shared_memory:
            continue
        for cut in cuts(tile, batch, rows, columns, terms, MOST_PARTS, MOST_BLOCKS * target.processors):
            found.append((_estimate(cut, batch * rows * columns, target), cut))
    if not found:
        raise TensorError(f"no tile of fragments fits {target.shared_memory} bytes of shared memory ({target.name})")
    found.sort(key=lambda pair: pair[0])
    return [cut for _, cut in found]


def _estimate(cut: MatrixTiling, results: int, target: MachineDescription) -> float:
    t = cut.tile
    products = t.rows * t.columns * t.depth / (ROWS * COLUMNS * TERMS)
    loads = COLUMNS / t.group_rows + COLUMNS / t.group_columns  # of fragments, for each product
    together = max(1, min(BUSY // t.groups, target.shared_memory // t.memory))  # blocks of a processor at a time
    each = cut.slabs * (products * max(1.0, 1 + LOAD * (loads - HIDDEN)) + ROUND) + BEGIN / together**1.5
    turns, rest = divmod(cut.blocks, target.processors * together)
    last = -(-rest // target.processors)  # blocks of a processor in the last turn, which has fewer
    alone = max(1.0, BUSY / (t.groups * last)) ** 0.5 if last else 1.0  # fewer sub-groups take longer for the same
    adding = PART * results * cut.parts / target.processors + LAUNCH if cut.parts > 1 else 0.0
    return float(each * (turns * together + last * alone) + adding)
