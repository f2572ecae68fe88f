"""What a machine is like, as far as programs and their schedules depend on it: one description for each backend.

Comes in: nothing; a backend states its description. Goes out: what the tensor compiler asks (which way to go over
elements, how large a block or a part is) and what a program may use. A description is part of the key of every kernel
and plan that was made for it. `CORES` and `BLOCKS` are the two classes of machines with everyday sizes; a backend takes
one of them and replaces what it knows better.

A machine of *cores* walks over the lanes of a launch with its vectors: a lane does the work of a whole row, and blocks
only say what one core takes at a time. A machine of *blocks* has the lanes of a block side by side: neighbours read
neighbouring elements, share memory, and meet at barriers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import ClassVar

from eshkol.atlas.fragments import LANES as FRAGMENT_LANES
from eshkol.atlas.fragments import ROWS as FRAGMENT_ROWS
from eshkol.atlas.fragments import TYPES as FRAGMENT_TYPES
from eshkol.atlas.types import Type


@dataclass(frozen=True, slots=True)
class ProductTile:
    """The part of a product that a block computes: so many rows and columns, and terms of the sums at a time.

    All are powers of two. Each lane has a tile of results of its own, whose sums stay in registers.
    """

    rows: int
    columns: int
    depth: int
    lane_rows: int
    lane_columns: int

    @property
    def lanes(self) -> int:
        return (self.rows // self.lane_rows) * (self.columns // self.lane_columns)


@dataclass(frozen=True, slots=True)
class MatrixTile:
    """The part of a product that a block computes in fragments (`fragments.py`).

    So many rows and columns, and terms of the sums at a time; each sub-group has a tile of results of its own. So many
    slabs of both factors lie in shared memory, all but one of them on their way. All but their number are powers of
    two, and the depth is at least 32.
    """

    rows: int
    columns: int
    depth: int
    group_rows: int
    group_columns: int
    slabs: int

    @property
    def groups(self) -> int:
        return (self.rows // self.group_rows) * (self.columns // self.group_columns)

    @property
    def lanes(self) -> int:
        return self.groups * FRAGMENT_LANES

    @property
    def memory(self) -> int:
        """Bytes of shared memory."""
        return self.slabs * self.depth * (self.rows + self.columns) * 2


@dataclass(frozen=True, slots=True)
class AttentionTile:
    """The part of attention that a block computes in fragments, of heads of at most so many elements.

    So many sub-groups, each with so many fragments of 16 queries, go along so many keys at a time. All are powers of
    two, and there are no more keys than queries.
    """

    widest: int
    groups: int
    fragments: int
    keys: int

    @property
    def queries(self) -> int:
        return self.groups * self.fragments * FRAGMENT_ROWS

    @property
    def lanes(self) -> int:
        return self.groups * FRAGMENT_LANES


@dataclass(frozen=True, slots=True)
class MatrixUnit:
    """What a machine has for products of fragments: types of factors, whose products are summed in F32, and tiles."""

    types: frozenset[Type]
    tiles: tuple[MatrixTile, ...]
    attention: tuple[AttentionTile, ...]  # those of the narrowest heads first
    whole: bool = False  # whether array instructions multiply matrices of these types faster than fragments


Tuned = tuple[tuple[str, str, str], ...]  # families of kernels, what for, and the choice that was measured


class Precision(Enum):
    """How precise products of float32 are, on machines that are faster at less."""

    HIGHEST = "highest"  # float32
    HIGH = "high"  # of numbers of 16 bits, or nearly
    MEDIUM = "medium"  # of bfloat16


@dataclass(frozen=True, slots=True, eq=False)
class MachineDescription:
    """The sizes that schedules are made with. There are few descriptions, and each is equal to itself alone."""

    name: str
    blocks: bool  # whether lanes of a block stand side by side; else cores walk over them
    largest: int = 1 << 40  # bytes in one buffer
    shared_memory: int = 48 << 10  # bytes of a block
    block: int = 256  # lanes of a block
    subgroup: int = 1  # lanes of a block that exchange registers (`SubGroupXor`), a power of two; 1: none do
    arrays: bool = True  # whether array instructions keep all of it at work; else products are code of lanes
    native: bool = False  # whether it has code of its own for some of what programs do not say
    host_helps: bool = True  # whether the host computes what it has no kernel for; else that is refused by name
    # How much makes it worth it.
    busy: int = 16  # rows, or parts, that keep all of it at work
    lane_work: int = 4096  # elements that one core takes at a time
    long: int = 1 << 15  # elements of few rows, from which on rows are taken in parts
    part_work: int = 8192  # elements of such a part, at least
    short_row: int = 32  # of blocks: elements of a row that are left to one lane
    vector: int = 16  # of blocks: bytes that a lane reads or writes at once
    several: int = 4  # of blocks: elements that a lane has under way at a time, so that many loads are in flight
    wide: int = 1 << 18  # of blocks: elements from which on a lane computes several
    processors: int = 128  # of blocks: among which blocks are shared out; each runs a few at a time
    product_tiles: tuple[ProductTile, ...] = ()  # of blocks: those in which matrices are multiplied
    matrices: MatrixUnit | None = None  # of blocks: for products of fragments, if it has instructions for them
    float32_products: Precision = Precision.HIGHEST
    tuned: Tuned = ()  # what its own kernels choose: it makes no other plan, but no plan is used with other answers
    # How cores go over elements that lie differently.
    stretch: int = 2048  # columns that are walked together: sums of them and a few rows stay in the nearest cache
    # What is held by the caches of all cores is as fast to read in narrow stretches, of which there are fewer parts.
    cached: int = 1 << 21
    held_stretch: int = 512
    piece: int = 8192  # elements of a part of a row
    strip: int = 64  # rows that are turned together
    tile: int = 16  # elements of a row that are computed for all rows of a strip before the next: a line of the cache
    # Launches that are put together, and instructions that are worth recognizing.
    small: int = 1 << 20  # bytes that such a launch touches: larger ones take far longer than threads do to meet
    held: int = 1 << 19  # bytes of what they write for later
    widest_head: int = 256  # of attention, that its array instruction takes at full speed


class Wanted:
    """What whoever runs programs has asked for, of all machines."""

    float32_products: ClassVar[Precision] = Precision.HIGHEST


def as_wanted(description: MachineDescription) -> MachineDescription:
    """The description of a machine that does what is asked for, as far as it can: one for each."""
    if description.matrices is None or Wanted.float32_products is description.float32_products:
        return description
    return _in_precision(description, Wanted.float32_products)


@cache
def _in_precision(description: MachineDescription, precision: Precision) -> MachineDescription:
    return replace(description, float32_products=precision)


CORES = MachineDescription("cores", blocks=False)
TILES = (
    ProductTile(128, 128, 8, 8, 8), ProductTile(128, 64, 8, 8, 8), ProductTile(64, 128, 8, 8, 8),
    ProductTile(64, 64, 8, 8, 8), ProductTile(128, 64, 8, 8, 4), ProductTile(64, 64, 16, 4, 4),
    ProductTile(32, 128, 16, 4, 4), ProductTile(32, 64, 16, 4, 4), ProductTile(16, 128, 16, 4, 4),
    ProductTile(4, 128, 16, 4, 2), ProductTile(128, 4, 16, 2, 4), ProductTile(32, 32, 16, 2, 2),
    ProductTile(16, 16, 16, 1, 1),
)  # fmt: skip
MATRICES = MatrixUnit(
    FRAGMENT_TYPES,
    (
        MatrixTile(256, 128, 64, 64, 64, 4), MatrixTile(128, 256, 64, 64, 64, 4), MatrixTile(128, 128, 64, 64, 64, 3),
        MatrixTile(256, 128, 32, 64, 64, 4), MatrixTile(128, 256, 32, 64, 64, 4), MatrixTile(128, 128, 32, 64, 64, 4),
        MatrixTile(128, 64, 64, 64, 32, 4), MatrixTile(64, 128, 64, 32, 64, 4), MatrixTile(128, 64, 32, 64, 32, 4),
        MatrixTile(64, 64, 64, 64, 32, 3), MatrixTile(64, 64, 64, 32, 32, 4), MatrixTile(32, 64, 64, 16, 32, 4),
        MatrixTile(64, 32, 64, 32, 16, 4), MatrixTile(32, 32, 64, 16, 16, 4),
    ),
    attention=(AttentionTile(64, 4, 2, 64), AttentionTile(128, 4, 1, 32)),
)  # fmt: skip
BLOCKS = MachineDescription(
    "blocks", blocks=True, subgroup=32, arrays=False, busy=512, long=1 << 13, part_work=2048, product_tiles=TILES,
)  # fmt: skip
