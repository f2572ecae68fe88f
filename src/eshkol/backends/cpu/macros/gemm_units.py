"""How the inner loop of a matrix product multiplies, and in which blocks, for each machine and type.

The inner loop works on units: single floats, or groups of neighbours along k that one instruction multiplies and
sums (four I8, two BF16). A `Style` says what a unit is and how a vector of units of B, times one unit of A in every
lane, is added to a vector of sums; it also holds every size by which a product is cut into blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.kit import Kernel, Value
from eshkol.backends.llvm.compile import Target

PANEL_BYTES = 32 << 10  # of B that the inner loop reads again and again: they stay in the first cache
TILE_BYTES = 64 << 10  # of sums that a task keeps on its stack
TASK_WORK = 1 << 18  # multiplications below which a task is not worth splitting
ENOUGH_TASKS = 64

Step = Callable[[Kernel, Value, Value, Value], Value]  # (k, sums, vector of B, a unit of A in every lane) → sums


@dataclass(frozen=True)
class Style:
    """One way to multiply."""

    name: str
    element: Type  # of A and B as the units hold them
    group: int  # elements of a unit
    unit: Type
    sums: Type
    step: Step
    rows: int  # of a micro-tile: the sums that the inner loop keeps in registers
    vectors: int  # of a micro-tile's row
    lanes: int  # of such a vector
    by_lane: int = 1  # units of A that are loaded at once along k and multiplied lane by lane
    unroll: int = 4
    multiple: int = 1  # blocks along k are padded to this many units
    first_sums: bool = False  # sums begin at numbers that stand before each packed panel of B

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def block_units(self) -> int:
        """Units along k of a block: a panel of B of that length fits the first cache."""
        return max(64, PANEL_BYTES // (self.columns * self.unit.size_bytes))

    @property
    def tile_sums(self) -> int:
        return TILE_BYTES // self.sums.size_bytes


def micro_tile(target: Target) -> tuple[int, int, int]:
    """Rows, vectors of a row and vector bits of a micro-tile: as many sums as the registers hold."""
    if target.triple.startswith(("aarch64", "arm64")):
        return 4, 4, 128
    return {512: (8, 2, 512), 256: (6, 2, 256)}.get(target.vector_bits, (4, 2, 128))


def float_style(ty: Type, target: Target) -> Style:
    """Single floats, F32 or F64; others are converted while they are packed."""
    rows, vectors, bits = micro_tile(target)
    by_lane = bits // ty.bits if target.triple.startswith(("aarch64", "arm64")) else 1
    step: Step = lambda k, sums, b, a: k.muladd(b, a, sums)
    return Style(str(ty).lower(), ty, 1, ty, ty, step, rows, vectors, bits // ty.bits, by_lane)
