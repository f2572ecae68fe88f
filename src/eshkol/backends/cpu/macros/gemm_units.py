"""How the inner loop of a matrix product multiplies, and in which blocks, for each machine and type.

The inner loop works on units: single numbers, or groups of neighbours along k that one instruction multiplies and
sums (four I8, two BF16). A `Style` says what a unit is and how a vector of units of B, times one unit of A in every
lane, is added to a vector of sums; it also holds every size by which a product is cut into blocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value
from eshkol.llvm.targets import Target

PANEL_BYTES = 32 << 10  # of B that the inner loop reads again and again: they stay in the first cache
TILE_BYTES = 64 << 10  # of sums that a task keeps on its stack
TILE_ROWS, TILE_COLUMNS = 64, 256  # of C, computed by a task: with a block of A and B they stay in the second cache
FLAT_COLUMNS = 1024  # the same where A has few rows
TASK_WORK = 1 << 17  # multiplications below which a task is not worth splitting, with vectors of 128 bits
ENOUGH_TASKS, TASKS_PER_THREAD = 64, 8  # that there should be: the larger of the two
DIRECT_BYTES = 128 << 10  # B is read where it is up to this size; beyond, its rows are too far apart for the caches
WIDE_DIRECT_BYTES = 4 << 20  # the same where a panel's row is whole cache lines: packing then gains little
# Of these, how many rows of A make packing pay for a smaller B already, and for which.
MANY = {DIRECT_BYTES: (32, 32 << 10), WIDE_DIRECT_BYTES: (120, DIRECT_BYTES)}
OWN_ROWS = 1024  # of A at most, where each task packs the panel of B that it needs and all rows of A meet it
TURNED_BYTES = 16 << 10  # a transposed A is read where it is up to this size: its columns lie far apart
FEW_ROWS = 3  # of A: for so few, packing B costs more than it gains
DIRECT_BLOCK = 8  # units along k where a large B is read in place: more rows at once would meet in the same cache lines

# The same for large products where there are 32 registers of 512 bits: sizes from which on, rows of a micro-tile, …
DEEP_LEAST, DEEP_WORK, DEEP_ROWS = 64, 1 << 21, 14
DEEP_PANEL_BYTES, DEEP_TILE, DEEP_TILE_BYTES, DEEP_TASKS = 64 << 10, 252, 256 << 10, 8

Step = Callable[[Kernel, Value, Value, Value], Value]  # (k, sums, vector of B, a unit of A in every lane) → sums


@dataclass(frozen=True)
class Micro:
    """One micro-tile in one block along k: where its A and B are, and how far it goes."""

    a: Array
    a_row: Value
    a_step: Value  # from one unit of a row to the next, where A is turned; else they are neighbours
    b: Array
    b_row: Value
    length: Value  # units along k
    sums: Array  # memory for its sums
    later: str  # an i1: sums of earlier blocks are there


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
    unroll: int = 1  # how often the inner loop does that in a round
    multiple: int = 1  # blocks along k are padded to this many units
    panel_bytes: int = PANEL_BYTES
    direct_bytes: int = DIRECT_BYTES
    tile_rows: int = TILE_ROWS
    tile_columns: int = TILE_COLUMNS
    tile_bytes: int = TILE_BYTES
    tasks: int = ENOUGH_TASKS
    packed: bool = False  # A and B are always packed, both in panels: strides are known, and A's columns contiguous
    packs_own: bool = False  # whether tasks may pack their own panels, where there are enough of them
    unsigned_a: bool = False  # A is multiplied without sign, with 128 added; a packed panel begins with amends for it
    # An inner loop other than the usual one (it leaves the sums in memory), and what comes before and after all tasks.
    inner: Callable[[Kernel, Style, Micro], None] | None = None
    setup: Callable[[Kernel], None] = field(default=lambda k: None)
    teardown: Callable[[Kernel], None] = field(default=lambda k: None)

    @property
    def columns(self) -> int:
        return self.vectors * self.lanes

    @property
    def widths(self) -> tuple[int, ...]:
        """Vectors of a micro-tile's row that there may be in the last panel."""
        few = range(1, self.vectors + 1) if self.vectors <= 4 else (1, 4, self.vectors // 2, self.vectors)
        return tuple(sorted({v for v in few if v <= self.vectors}))

    def reads_directly(self, size: int, m: int) -> bool:
        """Whether a B of so many bytes is read where it is, by so many rows of A."""
        rows, less = MANY.get(self.direct_bytes, (m + 1, 0))
        return size <= (less if m >= rows else self.direct_bytes)

    def by_columns(self, turned: bool) -> bool:
        """Whether A is multiplied column by column: a transposed one as it lies, unless its units are groups."""
        return self.group == 1 and self.inner is None and (turned or self.packed)

    @property
    def task_work(self) -> int:
        """Multiplications below which a task is not worth splitting: more where vectors are wide, as they take less."""
        return TASK_WORK * (1 + max(1, self.lanes * self.sums.bits // 128)) // 2

    @property
    def stored(self) -> Type:
        """The type that packed elements are stored as; 16-bit floats are moved as they are."""
        return Type.U16 if self.element.is_half else self.element

    @property
    def lead(self) -> int:
        """Units of a packed panel before its first row."""
        return self.columns if self.unsigned_a else 0

    @property
    def block_units(self) -> int:
        """Units along k of a block: a panel of B of that length fits the first cache."""
        return max(64, self.panel_bytes // (self.columns * self.unit.size_bytes))

    @property
    def tile_sums(self) -> int:
        return self.tile_bytes // self.sums.size_bytes


def single_style(ty: Type, target: Target, m: int, n: int) -> Style:
    """Single numbers; what is of another type is converted while it is packed.

    A micro-tile has as many sums as leave registers for a row of B, and on ARM for four units of each row of A. If B
    has no more columns than a vector, it is one vector wide and has more rows; if A has few rows, it is one long row.
    """
    rows, vectors, bits = {512: (6, 4, 512), 256: (6, 2, 256)}.get(target.vector_bits, (4, 2, 128))
    step: Step = lambda k, sums, b, a: k.muladd(b, a, sums)
    style = Style(str(ty).lower(), ty, 1, ty, ty, step, rows, vectors, bits // ty.bits, unroll=2)
    if bits == 512:
        style = replace(style, direct_bytes=WIDE_DIRECT_BYTES)
        if style.lanes < n <= 2 * style.lanes:
            style = replace(style, name=f"{style.name}_half", rows=8, vectors=2)
    if target.is_arm:
        style = replace(style, rows=4, vectors=4, by_lane=style.lanes, unroll=1)
    if target.is_wasm:  # addresses of single numbers cost its engines more than lanes of vectors do
        style = replace(style, rows=4, vectors=2, by_lane=style.lanes, unroll=1, packed=True)
    if n <= style.lanes:
        return replace(style, name=f"{style.name}_narrow", rows=8, vectors=1)
    registers = 32 if target.is_arm or bits == 512 else 16
    if m <= FEW_ROWS and n >= registers // 2 * style.lanes:
        return replace(style, name=f"{style.name}_flat", rows=1, vectors=registers // 2, packed=False)
    return style


def deep_style(style: Style, m: int, n: int, k: int) -> Style:
    """The style for a large product where there are 32 registers of 512 bits: A is packed too, in panels of many rows.

    Fourteen rows by two vectors need few bytes of A and B for each multiplication, from the second cache as well as
    from the first: so blocks along k are long, and tiles large.
    """
    large = min(m, n, k) >= DEEP_LEAST and m * n * k >= DEEP_WORK
    large = large and -(-m // DEEP_ROWS) * DEEP_ROWS <= m + m // 8  # rows that are computed in vain cost as much
    if not large or (style.rows, style.vectors, style.by_lane, style.packed) != (6, 4, 1, False):
        return style
    return replace(
        style, name=f"{style.name}_deep", rows=DEEP_ROWS, vectors=2, packed=True, panel_bytes=DEEP_PANEL_BYTES,
        tile_rows=DEEP_TILE, tile_columns=DEEP_TILE, tile_bytes=DEEP_TILE_BYTES, tasks=DEEP_TASKS,
    )  # fmt: skip


def dot_step(intrinsic: str, element: Type, *, adds: bool = True, unsigned_a: bool = False) -> Step:
    """An instruction that multiplies groups and sums each; one that `adds` is given sums to add that to.

    ARM's takes one group in every lane second, which saves spreading it; VNNI's takes the factor without sign first.
    """
    name = {Type.BF16: "bfloat"}.get(element) or f"i{element.bits}"

    def step(k: Kernel, sums: Value, b: Value, a: Value) -> Value:
        groups = f"<{sums.lanes * 32 // element.bits} x {name}>"
        factors = [(groups, k.op(f"bitcast {v.llvm} {v} to {groups}")) for v in ((a, b) if unsigned_a else (b, a))]
        found = k.call(sums.llvm, intrinsic, *([(sums.llvm, str(sums))] if adds else []), *factors)
        result = Value(k, sums.ty, found, sums.lanes)
        return result if adds else sums + result

    return step
