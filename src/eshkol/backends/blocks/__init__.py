"""The reference machine under the description of a graphics card: kernels for blocks of lanes, interpreted.

Programs are made as for machines whose lanes stand side by side (shared memory, barriers, tiles), and run on the
lockstep interpreter, which sees races and missing barriers. It is there so that such schedules can be tested without
the machine they are meant for.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from eshkol.atlas.machines import (
    BLOCKS,
    MATRICES,
    AttentionTile,
    MachineDescription,
    MatrixTile,
    ProductTile,
    as_wanted,
)
from eshkol.backends.reference.backend import ALLOCATION_LIMIT, ReferenceBackend

DESCRIPTION = replace(  # small sizes, so that small programs go all the ways that large ones do
    BLOCKS, largest=ALLOCATION_LIMIT, block=16, subgroup=4, busy=6, long=48, part_work=16, short_row=2, several=2,
    wide=40, processors=2,
    product_tiles=(ProductTile(8, 8, 4, 4, 4), ProductTile(8, 4, 2, 2, 2), ProductTile(4, 4, 4, 1, 1)),
    matrices=replace(
        MATRICES, tiles=(MatrixTile(32, 32, 32, 16, 16, 3), MatrixTile(16, 32, 32, 16, 32, 2)),
        attention=(AttentionTile(16, 1, 1, 16), AttentionTile(64, 1, 2, 16), AttentionTile(128, 2, 1, 32)),
    ),
)  # fmt: skip


class BlocksBackend(ReferenceBackend):
    """The lockstep interpreter, for programs of blocks."""

    name: ClassVar[str] = "blocks"
    stands_in: ClassVar[bool] = True

    @property
    def description(self) -> MachineDescription:
        return as_wanted(DESCRIPTION)
