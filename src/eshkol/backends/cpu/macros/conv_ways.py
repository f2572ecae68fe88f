"""How the inner loop of a convolution multiplies, for each machine and type; see `conv_lines` for what it multiplies.

A `Way` reads a band in units: single numbers, or pairs of BF16 that one instruction multiplies and sums. It keeps the
sums of some rows and some vectors of places in registers, or in tile registers, whose inner loop is a function of its
own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros import gemm_amx
from eshkol.backends.cpu.macros.conv_plan import Sweep
from eshkol.backends.cpu.macros.gemm_units import Step, dot_step
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, compute_type
from eshkol.backends.cpu.macros.micro import Tile, by_lanes, up
from eshkol.llvm.targets import Target

TILES_WASTE = 8  # times as many products as there are: tiles are multiplied that much faster than vectors


@dataclass(frozen=True)
class Strip:
    """Some places by a panel of the kernel, in one block of steps."""

    left: Array  # the panel, packed: step by step
    band: Array  # from the first place on
    offsets: Array  # of each step, in the band
    steps: Value
    plane: Value  # units from one to the next in the band
    sums: Array  # memory for the sums, row by row
    later: str  # an i1: sums of earlier blocks are there


@dataclass(frozen=True)
class Way:
    """One way to multiply."""

    name: str
    element: Type  # of the packed kernel; pairs are moved as they are
    unit: Type
    sums: Type
    group: int  # channels of a unit
    depth: int  # units of a step
    rows: int  # of the sums that the inner loop keeps in registers
    vectors: int  # of each row
    lanes: int
    step: Step | None = None  # multiplies a vector of units by one in every lane, and adds
    by_lane: bool = False  # rows are loaded as vectors and multiplied lane by lane
    masks: bool = False  # the machine stores some lanes of a vector
    inner: Callable[[Kernel, Way, Strip], None] | None = None  # an inner loop that leaves the sums in memory
    setup: Callable[[Kernel], None] = lambda k: None
    teardown: Callable[[Kernel], None] = lambda k: None

    @staticmethod
    def of(sweep: Sweep, target: Target) -> Way:
        """The fastest that a machine has for a sweep."""
        sums, masks = compute_type(sweep.ty), target.is_x86 and target.vector_bits >= 256
        tile = Tile.of(sums, target)
        vectors = 2 if tile.rows < 8 else 3  # as registers allow
        if sweep.ty is Type.BF16 and target.vector_bits >= 512:
            wasted = up(sweep.rows, 2 * gemm_amx.EDGE) * up(sweep.channels, 2 * gemm_amx.EDGE)
            if gemm_amx.available(sweep.ty, target) and wasted <= TILES_WASTE * sweep.rows * sweep.channels:
                return tiles_of_pairs(_tiles, gemm_amx.configure, gemm_amx.release)
            if target.has("avx512bf16"):
                dots = dot_step("llvm.x86.avx512bf16.dpbf16ps.512", sweep.ty)
                return vectors_of_pairs(dots, tile.rows, vectors, tile.lanes)
        step: Step = lambda k, total, b, a: k.muladd(b, a, total)
        return Way(
            str(sums), sums, sums, sums, 1, 1, tile.rows, vectors, tile.lanes, step, by_lanes(target), masks
        )  # fmt: skip

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def deep(self) -> int:
        """Channels of a step."""
        return self.group * self.depth

    def spread(self, k: Kernel, left: Array) -> list[Value]:
        """The units of a step's rows, each in every lane."""
        if not self.by_lane:
            return [k.splat(left[r], self.lanes) for r in range(self.rows)]
        loaded = [left.vector(r, self.lanes) for r in range(0, self.rows, self.lanes)]
        return [k.splat_lane(loaded[r // self.lanes], r % self.lanes, self.lanes) for r in range(self.rows)]


def vectors_of_pairs(step: Step, rows: int, vectors: int, lanes: int) -> Way:
    """Vectors of pairs, which a step multiplies."""
    return Way("pairs", Type.U16, Type.I32, Type.F32, 2, 1, rows, vectors, lanes, step, masks=True)


def tiles_of_pairs(
    inner: Callable[[Kernel, Way, Strip], None], setup: Callable[[Kernel], None], teardown: Callable[[Kernel], None]
) -> Way:
    """Two by two tiles of sums, and steps of 16 pairs."""
    edge = gemm_amx.EDGE
    return Way(
        "tiles", Type.U16, Type.I32, Type.F32, 2, edge, 2 * edge, 2, edge, masks=True, inner=inner, setup=setup,
        teardown=teardown,
    )  # fmt: skip


def _tiles(k: Kernel, way: Way, strip: Strip) -> None:
    """The inner loop in tile registers."""
    edge = gemm_amx.EDGE
    with gemm_amx.sums(k, strip.sums, way.columns, strip.later), k.loop(0, strip.steps, plain=True) as step:
        left, band = strip.left.at(step * way.rows * way.depth), strip.band.at(strip.offsets[step])
        gemm_amx.multiply(k, Type.BF16, (left, edge * edge, str(4 * edge)), (band, edge, str(strip.plane * 4)))
