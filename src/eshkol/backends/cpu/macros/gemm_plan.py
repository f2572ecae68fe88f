"""How a matrix product of given sizes is cut up: what is packed, the blocks along k, the tiles of C, and who does what.

Comes in: a `Product` (sizes, how A, B and C lie in memory, a `Style`). Goes out: a `Plan`, whose words the functions of
`gemm_pack` and `gemm_tiles` read at run time. A batch has two axes, an outer and an inner one; an operand that many
pairs share has a stride of 0 there, and is packed once.

Where tiles of C are too few for many threads and sums are long, k is cut into parts as well: a task computes a tile of
one part, in memory of the part's own, and a last phase adds the parts up, always in the same order. Where one tile has
all rows of A, each block of B is needed by one task alone: that one packs it just before, again and again in the same
memory, so that a large B is read once and not written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Phase
from eshkol.backends.cpu.macros.gemm_units import (
    DIRECT_BLOCK,
    FEW_ROWS,
    FLAT_COLUMNS,
    OWN_ROWS,
    TASKS_PER_THREAD,
    TURNED_BYTES,
    Style,
)
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value
from eshkol.llvm.targets import Target
from eshkol.runtime.scheduler import expected_workers
from eshkol.support.extents import Extent, about

OPERAND = -1  # instead of an offset in scratch memory: the operand itself
MIRRORED = 96  # rows and terms of a product with its own transpose from which on half of it is computed
PACKED_ROWS = 16  # of A, in a task of packing
PACKED_PANELS = 16  # of B, or of a turned A, at most
PACKING_TASKS = 16  # that there should be for panels
PART_TERMS = 256  # of a sum that is cut into parts: each has as many at least
ENOUGH_PARTS = 32  # tasks that there are with them, then
UNCUT_ROWS, UNCUT_PANELS = 56, 2  # of a tile: those that are larger are made smaller before sums are cut

WORDS = (
    "m", "n", "k", "blocks", "block", "units", "tile_rows", "tile_columns", "row_tiles", "tiles", "inner",
    "a_from", "a_line", "a_from_outer", "a_from_inner", "a_pairs", "a_group", "a_groups",  # A in memory
    "a_at", "a_outer", "a_inner", "a_block", "a_row", "a_step", "last_top",  # as it is multiplied
    "b_from", "b_line", "b_from_outer", "b_from_inner", "b_pairs", "b_group", "b_groups",
    "b_at", "b_outer", "b_inner", "b_block", "b_panel", "b_row", "b_panels", "last_left", "own",
    "c_line", "c_outer", "c_inner",
    "parts", "part_blocks", "part_at", "slots", "slot_blocks",
)  # fmt: skip


@dataclass(frozen=True)
class Epilogue:
    """What becomes of sums on their way to C. `place` is the element of C, `column` its column."""

    before: Callable[[Value, Value, Value], Value]  # (sums, place, column) → values
    store: Callable[[Value, Value], None]  # (values, place)
    activation: Callable[[Value], Value] | None = None  # on single values, between the two


@dataclass(frozen=True)
class Laid:
    """How the matrices of an operand lie: elements from one row to the next, and along the batch's two axes."""

    line: int
    outer: int
    inner: int
    turned: bool = False  # what lies there is the transpose


@dataclass(frozen=True)
class Product:
    """A (batch × m × k) times B (batch × k × n): sizes, types, and how it is done."""

    name: str  # stands for everything the functions' text depends on but the style and what is turned
    target: Target
    style: Style
    ty: Type  # of A and B in memory
    batch: int
    m: int
    n: int
    k: int
    epilogue: Callable[[Kernel, int], Epilogue]  # (k, number of the first word of its own)
    operands: int = 3  # memory operands of the instruction; C, A and B are the first three
    epilogue_words: tuple[int, ...] = ()
    laid_a: Laid | None = None  # dense, unless said
    laid_b: Laid | None = None
    laid_c: Laid | None = None
    inner: int = 1  # extent of the batch's inner axis
    a_from: int = OPERAND  # where A and B are found
    b_from: int = OPERAND
    scratch: int = 0  # bytes of scratch memory that are taken already
    first: tuple[tuple[str, Phase], ...] = ()  # functions to run before, with their phases
    declared: tuple[str, ...] = ()  # what those need
    follows: bool = True  # whether what becomes of sums depends on their place
    cut: bool = False  # whether sums are cut into parts, as its plan says
    streams: bool = False  # whether each task packs the blocks of B that it needs, as its plan says

    @property
    def mirrors(self) -> bool:
        """Whether C is its own transpose if A and B are the same memory: then half of it is computed, and mirrored."""
        return (
            not self.follows and self.style.inner is None and self.a_from == self.b_from == OPERAND
            and self.m == self.n and self.m >= MIRRORED and self.k >= MIRRORED
            and self.a == replace(self.b, turned=not self.b.turned)
        )  # fmt: skip

    @property
    def a(self) -> Laid:
        """How A lies."""
        return self.laid_a or dense(self.m, self.k, self.inner)

    @property
    def b(self) -> Laid:
        """How B lies."""
        return self.laid_b or dense(self.k, self.n, self.inner)

    @property
    def c(self) -> Laid:
        """How C lies."""
        return self.laid_c or dense(self.m, self.n, self.inner)

    @property
    def by_columns(self) -> bool:
        """Whether A is multiplied column by column."""
        return self.style.by_columns(self.a.turned)

    @property
    def widths(self) -> tuple[int, ...]:
        """Vectors of a micro-tile's row that there is code for: of a whole panel, and of a narrower last one."""
        style = self.style
        needed = -(-(self.n % style.columns) // style.lanes)
        if style.inner is not None or not needed:
            return (style.vectors,)
        last = next(width for width in style.widths if width >= needed)
        return (last,) if self.n < style.columns else tuple(sorted({last, style.vectors}))

    @property
    def stem(self) -> str:
        """The name of the function that computes tiles: it stands for everything that its text depends on."""
        widths = "".join(f"_{width}" for width in self.widths)
        calls = self.packs_own and self.b.turned  # the function that packs B, which has its own name then
        how = f"{'_ta' * self.a.turned}{'_tb' * calls}{'_mirrored' * self.mirrors}"
        own = f"{'_parts' * self.cut}{'_streams' * self.streams}"
        return f"{self.name}_{self.style.name}{widths}{how}{own}"

    @property
    def packs_own(self) -> bool:
        """Whether the function of tiles may pack panels of B."""
        return self.style.packs_own or self.streams

    @property
    def adding(self) -> str:
        """Likewise of the one that adds up parts."""
        return f"{self.name}_{self.style.sums}_parts_added".lower()

    def packing(self, name: str) -> str:
        """Likewise of the one that packs A or B."""
        turned = (self.a if name == "a" else self.b).turned
        return f"pack_{name}_{self.ty}_{self.style.name}_{self.operands}{'_turned' * turned}".lower()


def dense(rows: int, columns: int, inner: int = 1, *, turned: bool = False) -> Laid:
    """Matrices of so many rows and columns, one after the other."""
    return Laid(rows if turned else columns, rows * columns * inner, rows * columns, turned)


@dataclass(frozen=True)
class ProductPlan:
    """How a product of these sizes is cut up."""

    words: dict[str, int]
    packs_a: bool
    packs_b: bool
    scratch: int
    streams: bool  # whether tasks pack blocks of B just before they multiply them

    @property
    def a_tasks(self) -> int:
        return self.words["a_pairs"] * self.words["a_groups"]

    @property
    def b_tasks(self) -> int:
        return self.words["b_pairs"] * self.words["blocks"] * self.words["b_groups"]

    @staticmethod
    def of(p: Product) -> ProductPlan:
        style, inner = p.style, max(p.inner, 1)
        units = -(-p.k // style.group)
        # Rows of A are units as they are, if they consist of whole ones; rows of B only if a unit is one element.
        same = style.element is p.ty and not style.unsigned_a
        ready = same and style.group == 1
        if style.packed:
            packs_a = True
        elif p.a.turned:
            most = TURNED_BYTES if p.n > style.columns else style.direct_bytes  # one panel of B reads A but once
            packs_a = not (ready and p.m >= style.rows and p.k * p.a.line * p.ty.size_bytes <= most)
        else:
            whole = all(n % style.group == 0 for n in (p.a.line, p.a.outer, p.a.inner))
            packs_a = not (same and p.k % (style.group * style.multiple) == 0 and whole and p.m >= style.rows)
        small = style.reads_directly(p.k * p.b.line * p.ty.size_bytes, p.m)
        direct = ready and not p.b.turned and p.n >= style.columns and (small or p.m <= FEW_ROWS)
        packs_b = style.packed or not direct
        longest = style.block_units if small or packs_b else DIRECT_BLOCK
        blocks = max(1, -(-units // longest))
        step = max(4, style.multiple)
        block = max(1, -(-units // (blocks * step))) * step  # blocks of about the same length
        panels = -(-p.n // style.columns)
        w = {"m": p.m, "n": p.n, "k": p.k, "blocks": blocks, "block": block, "units": units, "inner": inner}
        scratch = p.scratch
        a_pairs, a_strides = _pairs(p.batch, inner, p.a)
        b_pairs, b_strides = _pairs(p.batch, inner, p.b)
        by_column = p.by_columns
        w |= {"last_top": max(p.m - style.rows, 0), "a_step": 1, "a_group": 0}
        if packs_a and by_column:  # panels of rows, each column of which is contiguous
            a_panels = -(-p.m // style.rows)
            a_group = max(1, min(PACKED_PANELS, a_pairs * a_panels // PACKING_TASKS))
            a_batch = blocks * a_panels * style.rows * block
            w |= {"a_at": scratch, "a_block": a_panels * style.rows * block, "a_row": block, "a_step": style.rows,
                  "last_top": a_panels * style.rows, "a_group": a_group,
                  "a_groups": -(-a_panels // a_group)}  # fmt: skip
        elif packs_a:
            rows = max(p.m, style.rows)
            a_batch = blocks * rows * block
            w |= {"a_at": scratch, "a_block": rows * block, "a_row": block, "a_groups": -(-rows // PACKED_ROWS)}
        else:
            along = (block * p.a.line, 1, p.a.line) if by_column else (block, p.a.line // style.group, 1)
            w |= {"a_at": p.a_from, "a_groups": 0} | dict(zip(("a_block", "a_row", "a_step"), along, strict=True))
            a_strides = p.a.outer // style.group, p.a.inner // style.group
            a_batch = 1
        w |= {"a_outer": a_strides[0] * a_batch, "a_inner": a_strides[1] * a_batch}
        if packs_a:
            scratch += _aligned(a_pairs * a_batch * style.unit.size_bytes)
        b_group = max(1, min(PACKED_PANELS, b_pairs * blocks * panels // PACKING_TASKS))
        # Tasks that pack their own panels: what one core packs, others need not fetch from its cache.
        own = packs_b and style.packs_own and panels >= expected_workers() and b_pairs == p.batch
        own = own and 0 < p.m <= OWN_ROWS
        own = own and (blocks == 1 or -(-p.m // style.rows) * style.rows * style.columns <= style.tile_sums)
        parts, streams = 1, False
        if own:
            b_group, tile_rows, tile_columns = 1, -(-p.m // style.rows) * style.rows, style.columns
        else:
            sizes = p.m, p.n, p.k, p.batch
            fixed = not any(type(size) is Extent for size in sizes)  # how it is cut may then depend on all of them
            if fixed and style.inner is None and not style.unsigned_a:
                parts = parts_of(style, *sizes)
            # Tiles of any shape are right, so theirs is not chosen for each size anew.
            m, n, k, batch = (about(size) for size in sizes)
            tile_rows, tile_columns = tile_shape(style, m, n, k, batch, parts)
            streams = packs_b and not style.packs_own and b_pairs == p.batch and fixed and 0 < p.m <= tile_rows
        part_blocks = max(1, -(-blocks // parts))
        parts = -(-blocks // part_blocks)
        slots, slot_blocks = (parts, part_blocks) if streams else (blocks, 1)
        if packs_b:
            panel = style.columns * block + style.lead
            b_batch = slots * panels * panel
            w |= {"b_at": scratch, "b_block": panels * panel, "b_panel": panel, "b_row": style.columns,
                  "last_left": panels * style.columns}  # fmt: skip
            scratch += _aligned(b_pairs * b_batch * style.unit.size_bytes)
        else:
            b_strides, b_batch = (p.b.outer, p.b.inner), 1
            w |= {"b_at": p.b_from, "b_block": block * p.b.line, "b_panel": style.columns, "b_row": p.b.line,
                  "last_left": p.n}  # fmt: skip
        w |= {"b_outer": b_strides[0] * b_batch, "b_inner": b_strides[1] * b_batch}
        if streams:
            b_group = tile_columns // style.columns
        row_tiles, column_tiles = -(-p.m // tile_rows), -(-p.n // tile_columns)
        w |= {"tile_rows": tile_rows, "tile_columns": tile_columns, "row_tiles": row_tiles,
              "tiles": row_tiles * column_tiles, "b_panels": panels, "b_group": b_group,
              "b_groups": -(-panels // b_group), "own": int(own), "a_pairs": a_pairs, "b_pairs": b_pairs,
              "a_from": p.a_from, "b_from": p.b_from, "c_line": p.c.line, "c_outer": p.c.outer,
              "c_inner": p.c.inner, "parts": parts, "part_blocks": part_blocks, "part_at": scratch,
              "slots": slots, "slot_blocks": slot_blocks}  # fmt: skip
        if parts > 1:
            scratch += _aligned(parts * p.batch * p.m * p.n * style.sums.size_bytes)
        for name, laid in (("a", p.a), ("b", p.b)):
            w |= {f"{name}_line": laid.line, f"{name}_from_outer": laid.outer, f"{name}_from_inner": laid.inner}
        return ProductPlan(w, packs_a, packs_b, scratch, streams)


def _pairs(batch: int, inner: int, laid: Laid) -> tuple[int, tuple[int, int]]:
    """How many different matrices there are if they are packed, and the strides along the batch's axes, in matrices.

    Those of an axis along which all are the same are packed once; the inner axis is then left out.
    """
    outer = batch // inner
    if inner > 1 and laid.inner == 0:
        return (1, (0, 0)) if laid.outer == 0 else (outer, (1, 0))
    return (inner, (0, 1)) if laid.outer == 0 and outer > 1 else (batch, (inner, 1))


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


def parts_of(style: Style, m: int, n: int, k: int, batch: int) -> int:
    """How many parts sums are cut into, by the shape alone: no number of threads changes a bit of what is found."""
    rows, columns = _tile(style, m, n, k, batch, ENOUGH_PARTS, UNCUT_ROWS, UNCUT_PANELS * style.columns)
    tasks, work = batch * -(-m // rows) * -(-n // columns), rows * columns * k
    most = min(-(-ENOUGH_PARTS // tasks), k // PART_TERMS, work // style.task_work) if tasks else 1
    return max(1, most)


def tile_shape(style: Style, m: int, n: int, k: int, batch: int, parts: int = 1) -> tuple[int, int]:
    """Rows and columns of a task's tile of C: large, but small enough that there are tasks for many cores."""
    enough = max(style.tasks, TASKS_PER_THREAD * expected_workers())
    if parts > 1:  # of which there are so many that tiles can stay large
        enough = min(enough, max(ENOUGH_PARTS, 2 * expected_workers()))
    return _tile(style, m, n, k // parts, batch * parts, enough)


def _tile(
    style: Style, m: int, n: int, k: int, batch: int, enough: int, least_rows: int = 0, least_columns: int = 0
) -> tuple[int, int]:  # fmt: skip
    """Likewise, for so many tasks; tiles with fewer rows or columns than the least are not made smaller."""

    def whole(size: int, unit: int) -> int:
        return max(1, -(-size // unit)) * unit

    rows = whole(min(style.tile_rows, m), style.rows)
    room = style.tile_sums // rows // style.columns * style.columns  # the task keeps the tile's sums
    columns = min(whole(min(FLAT_COLUMNS if m <= FEW_ROWS else style.tile_columns, n), style.columns), room)
    if m <= FEW_ROWS:  # long rows of B
        return rows, columns
    worth = style.task_work
    while batch * -(-m // rows) * -(-n // columns) < enough and rows * columns * k > worth:
        if columns > max(style.columns, least_columns) and (columns >= rows or rows <= max(style.rows, least_rows)):
            columns = whole(-(-columns // 2), style.columns)
        elif rows > max(style.rows, least_rows):
            rows = whole(-(-rows // 2), style.rows)
        else:
            break
    # Of about the same size each.
    return whole(-(-m // max(1, -(-m // rows))), style.rows), whole(-(-n // max(1, -(-n // columns))), style.columns)


class Words:
    """The words of a call by name, each loaded once."""

    def __init__(self, k: Kernel) -> None:
        self.loaded = {name: k.word(number) for number, name in enumerate(WORDS)}

    def __getattr__(self, name: str) -> Value:
        return self.loaded[name]

    def pair(self, name: str, number: Value) -> Value:
        """Where the matrix of an operand (`a`, `b`, `c`) for a pair of the batch begins."""
        outer, inner = self.loaded[f"{name}_outer"], self.loaded[f"{name}_inner"]
        return number // self.inner * outer + number % self.inner * inner

    def source(self, name: str, number: Value) -> Value:
        """The same of a matrix that is packed, in memory: numbers are of the different matrices alone."""
        outer, inner = self.loaded[f"{name}_from_outer"], self.loaded[f"{name}_from_inner"]
        k = number.k
        zero, one = k.const(Type.I64, 0), k.const(Type.I64, 1)
        extent = k.select(self.inner > one, k.select(inner.compare("eq", zero), one, self.inner), one)
        return number // extent * outer + number % extent * inner


def source(k: Kernel, number: int, offset: Value, ty: Type) -> Array:
    """An operand, or the place in scratch memory that the offset says."""
    operand, scratch = k.operand(number, ty), k.scratch(ty, offset)
    chosen = k.op(f"select i1 {offset < 0}, ptr {operand.pointer}, ptr {scratch.pointer}")
    return Array(k, chosen, ty)
