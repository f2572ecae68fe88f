"""The matrix product itself: packing, and tiles of C computed by an inner loop that keeps its sums in registers.

Comes in: a `Style` (how to multiply), where A and B lie, and an `Epilogue` (what becomes of the sums). Goes out: a
`Macro` of up to three phases: rows of A packed, panels of B packed (or each by the task that needs it), tiles of C.
The product is cut along k into blocks; a task computes one tile of C for all blocks and keeps sums that are not final
on its stack. A tile consists of micro-tiles, whose sums are in registers during the inner loop:

    for each block along k, for each panel of B (style.columns wide), for each style.rows rows of A:
        sums[rows][columns] += A[rows][block] · B[block][columns]

A and B are read where they are if they are small and need no conversion; otherwise from packed copies in which a block
of a row of A, and a panel of a block of B, are contiguous. The inner loop is the same: only strides differ. At the
lower and right edge, micro-tiles are moved back so that they do not leave the matrix (or padded where packed), and
only what is theirs is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.gemm_units import (
    DIRECT_BLOCK,
    ENOUGH_TASKS,
    FEW_ROWS,
    FLAT_COLUMNS,
    OWN_ROWS,
    TASKS_PER_THREAD,
    TILE_COLUMNS,
    TILE_ROWS,
    Micro,
    Style,
)
from eshkol.backends.cpu.macros.gemv import matrix_times_vector, vector_times_matrix
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value
from eshkol.backends.llvm.compile import Target
from eshkol.backends.llvm.layout import BEYOND
from eshkol.backends.llvm.macro import Macro, Phase
from eshkol.runtime.scheduler import expected_workers

OPERAND = -1  # instead of an offset in scratch memory: the operand itself
PACKED_ROWS = 16  # of A, in a task of packing
PACKED_PANELS, PACKED_STRIP = 16, 8  # of B: panels in a task of packing at most, rows that are packed before going on
PACKING_TASKS = 16  # that there should be for B

WORDS = (
    "m", "n", "k", "blocks", "block", "units", "tile_rows", "tile_columns", "row_tiles", "tiles",
    "a_from", "a_at", "a_batch", "a_block", "a_row", "a_groups",
    "b_from", "b_at", "b_batch", "b_block", "b_panel", "b_row", "b_panels", "b_group", "b_groups",
    "last_left", "own",
)  # fmt: skip


@dataclass(frozen=True)
class Epilogue:
    """What becomes of sums on their way to C. `place` is the element of C, `column` its column."""

    before: Callable[[Value, Value, Value], Value]  # (sums, place, column) → values
    store: Callable[[Value, Value], None]  # (values, place)
    activation: Callable[[Value], Value] | None = None  # on single values, between the two


@dataclass(frozen=True)
class Product:
    """A (batch × m × k) times B (batch × k × n): sizes, types, and how it is done."""

    name: str  # stands for everything the functions' text depends on but the style
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
    a_from: int = OPERAND  # where A and B are found
    b_from: int = OPERAND
    scratch: int = 0  # bytes of scratch memory that are taken already
    first: tuple[tuple[str, Phase], ...] = ()  # functions to run before, with their phases
    declared: tuple[str, ...] = ()  # what those need

    @property
    def stem(self) -> str:
        """What the functions' names begin with: they stand for everything that the text depends on."""
        return f"{self.name}_{self.style.name}"

    def macro(self) -> Macro:
        """The product as native functions: all of them whatever the sizes, so that one object serves every shape."""
        if self.style.sums.is_float and self.a_from == self.b_from == OPERAND:
            if self.n == 1:
                return matrix_times_vector(self)
            if self.m == 1:
                return vector_times_matrix(self)
        plan = _Plan.of(self)
        functions, phases = [f for f, _ in self.first], [p for _, p in self.first]
        declared = dict.fromkeys(self.declared)
        a_tasks, b_tasks = plan.words["a_groups"], plan.words["blocks"] * plan.words["b_groups"]
        for write, tasks, wanted in (
            (_pack_a, a_tasks, plan.packs_a),
            (_pack_b, b_tasks, plan.packs_b and not plan.words["own"]),
            (_tiles, plan.words["tiles"], True),
        ):
            name, text, needs = _written(self, write)
            functions.append(text)
            declared |= dict.fromkeys(needs)
            if wanted:
                phases.append(Phase(name, min(self.batch * tasks, BEYOND)))
        words = tuple(min(plan.words[name], BEYOND) for name in WORDS) + self.epilogue_words
        return Macro(tuple(functions), tuple(phases), words, tuple(declared), plan.scratch)


_texts: dict[tuple[str, Target, object], tuple[str, str, tuple[str, ...]]] = {}


def _written(p: Product, write: Callable[[Product], Kernel]) -> tuple[str, str, tuple[str, ...]]:
    """Name, text and declarations of a function; remembered, because names stand for texts and writing takes long."""
    key = (p.stem, p.target, write)
    if key not in _texts:
        k = write(p)
        _texts[key] = (k.function_name, k.function(), k.declarations)
    return _texts[key]


@dataclass(frozen=True)
class _Plan:
    """How a product of these sizes is cut up."""

    words: dict[str, int]
    packs_a: bool
    packs_b: bool
    scratch: int

    @staticmethod
    def of(p: Product) -> _Plan:
        style = p.style
        units = -(-p.k // style.group)
        # Rows of A are units as they are, if they consist of whole ones; rows of B only if a unit is one element.
        same = style.element is p.ty and not style.unsigned_a
        packs_a = not (same and p.k % (style.group * style.multiple) == 0 and p.m >= style.rows)
        ready = same and style.group == 1
        small = p.k * p.n * p.ty.size_bytes <= style.direct_bytes
        packs_b = not (ready and p.n >= style.columns and (small or p.m <= FEW_ROWS))
        longest = style.block_units if small or packs_b else DIRECT_BLOCK
        blocks = max(1, -(-units // longest))
        step = max(4, style.multiple)
        block = max(1, -(-units // (blocks * step))) * step  # blocks of about the same length
        panels = -(-p.n // style.columns)
        w = {"m": p.m, "n": p.n, "k": p.k, "blocks": blocks, "block": block, "units": units}
        scratch = p.scratch
        if packs_a:
            rows = max(p.m, style.rows)
            w |= {"a_at": scratch, "a_batch": blocks * rows * block, "a_block": rows * block, "a_row": block}
            scratch += _aligned(p.batch * blocks * rows * block * style.unit.size_bytes)
        else:
            w |= {"a_at": p.a_from, "a_batch": p.m * units, "a_block": block, "a_row": units}
        if packs_b:
            panel = style.columns * block + style.lead
            w |= {"b_at": scratch, "b_batch": blocks * panels * panel, "b_block": panels * panel, "b_panel": panel,
                  "b_row": style.columns, "last_left": panels * style.columns}  # fmt: skip
            scratch += _aligned(p.batch * blocks * panels * panel * style.unit.size_bytes)
        else:
            w |= {"b_at": p.b_from, "b_batch": p.k * p.n, "b_block": block * p.n, "b_panel": style.columns,
                  "b_row": p.n, "last_left": p.n - style.columns}  # fmt: skip
        b_group = max(1, min(PACKED_PANELS, p.batch * blocks * panels // PACKING_TASKS))
        # Tasks that pack their own panels: what one core packs, others need not fetch from its cache.
        own = packs_b and style.packs_own and panels >= expected_workers() and p.m <= OWN_ROWS
        own = own and (blocks == 1 or -(-p.m // style.rows) * style.rows * style.columns <= style.tile_sums)
        if own:
            b_group, tile_rows, tile_columns = 1, -(-p.m // style.rows) * style.rows, style.columns
        else:
            tile_rows, tile_columns = tile_shape(style, p.m, p.n, p.k, p.batch)
        row_tiles, column_tiles = -(-p.m // tile_rows), -(-p.n // tile_columns)
        w |= {"tile_rows": tile_rows, "tile_columns": tile_columns, "row_tiles": row_tiles,
              "tiles": row_tiles * column_tiles, "a_from": p.a_from, "b_from": p.b_from, "b_panels": panels,
              "a_groups": -(-max(p.m, style.rows) // PACKED_ROWS), "b_group": b_group,
              "b_groups": -(-panels // b_group), "own": int(own)}  # fmt: skip
        return _Plan(w, packs_a, packs_b, scratch)


def _aligned(size: int) -> int:
    return -(-size // 64) * 64


def tile_shape(style: Style, m: int, n: int, k: int, batch: int) -> tuple[int, int]:
    """Rows and columns of a task's tile of C: large, but small enough that there are tasks for many cores."""

    def whole(size: int, unit: int) -> int:
        return max(1, -(-size // unit)) * unit

    rows = whole(min(TILE_ROWS, m), style.rows)
    room = style.tile_sums // rows // style.columns * style.columns  # the task keeps the tile's sums
    columns = min(whole(min(FLAT_COLUMNS if m <= FEW_ROWS else TILE_COLUMNS, n), style.columns), room)
    if m <= FEW_ROWS:  # long rows of B
        return rows, columns
    enough, worth = max(ENOUGH_TASKS, TASKS_PER_THREAD * expected_workers()), style.task_work
    while batch * -(-m // rows) * -(-n // columns) < enough and rows * columns * k > worth:
        if columns > style.columns and (columns >= rows or rows <= style.rows):
            columns = whole(-(-columns // 2), style.columns)
        elif rows > style.rows:
            rows = whole(-(-rows // 2), style.rows)
        else:
            break
    return rows, columns


class _Words:
    """The words of a call by name, each loaded once."""

    def __init__(self, k: Kernel) -> None:
        self.loaded = {name: k.word(number) for number, name in enumerate(WORDS)}

    def __getattr__(self, name: str) -> Value:
        return self.loaded[name]


def _source(k: Kernel, number: int, offset: Value, ty: Type) -> Array:
    """An operand, or the place in scratch memory that the offset says."""
    operand, scratch = k.operand(number, ty), k.scratch(ty, offset)
    chosen = k.op(f"select i1 {offset < 0}, ptr {operand.pointer}, ptr {scratch.pointer}")
    return Array(k, chosen, ty)


def _elements(p: Product, k: Kernel, number: int, offset: Value) -> Array:
    """A or B in memory, as its elements are packed: converted where the style wants, or as they are."""
    raw = p.ty.is_half and p.style.element is p.ty
    return _source(k, number, offset, Type.U16 if raw else p.ty)


# --- packing --------------------------------------------------------------------------------------


def _pack_a(p: Product) -> Kernel:
    """Rows of A, each block of a row contiguous; what a block has beyond k, and rows beyond m, are zero."""
    k, style = Kernel(f"{p.stem}_pack_a", p.target, p.operands), p.style
    w = _Words(k)
    source, zero = _elements(p, k, 1, w.a_from), k.const(style.stored, 0)
    length = w.block * style.group  # elements of a block of a row
    with k.tasks() as task:
        batch, start = task // w.a_groups, task % w.a_groups * PACKED_ROWS
        target = k.scratch(style.stored, w.a_at).at(batch * w.a_batch * style.group)
        held = w.a_block // w.a_row  # rows of the packed matrix: m, or those of a micro-tile if there are more
        stop = k.minimum(start + PACKED_ROWS, held)
        with k.loop(start, stop, plain=True) as row, k.loop(0, w.blocks, plain=True) as block:
            into = target.at((block * w.a_block + row * w.a_row) * style.group)
            line = source.at((batch * w.m + row) * w.k + block * length)
            inside = k.select(row < w.m, k.minimum(length, w.k - block * length), k.const(Type.I64, 0))
            with k.parallel(0, inside) as e:
                value = _converted(style, line[e])
                if style.unsigned_a:
                    value = Value(k, value.ty, k.op(f"xor {value.llvm} {value}, -128"))
                into[e] = value
            with k.loop(inside, length) as e:
                into[e] = zero
    return k


def _converted(style: Style, value: Value) -> Value:
    """An element of A or B as it is packed."""
    return value if style.element.is_half else value.to(style.element)


def _pack_b(p: Product) -> Kernel:
    """Panels of B: the units of style.columns columns, unit row by unit row; what is beyond k or n is zero."""
    k, style = Kernel(f"{p.stem}_pack_b", p.target, p.operands), p.style
    w, group, columns = _Words(k), p.style.group, p.style.columns
    source, zero = _elements(p, k, 2, w.b_from), k.const(style.stored, 0)
    with k.tasks() as task:
        per_batch = w.blocks * w.b_groups
        batch, rest = task // per_batch, task % per_batch
        block, first = rest // w.b_groups, rest % w.b_groups * w.b_group
        rows = k.minimum(w.block * group, w.k - block * w.block * group)
        last = k.minimum(first + w.b_group, w.b_panels)

        def parts(panel: Value) -> tuple[Array, Array, Value, Value]:
            """The packed panel, where it comes from, its columns, and its rows that are copied as vectors."""
            start = batch * w.b_batch + block * w.b_block + panel * w.b_panel + style.lead
            corner = source.at((batch * w.k + block * w.block * group) * w.n + panel * columns)
            width = k.minimum(k.const(Type.I64, columns), w.n - panel * columns)
            whole = k.select(width.compare("eq", columns), rows - rows % group, k.const(Type.I64, 0))
            return k.scratch(style.stored, w.b_at).at(start * group), corner, width, whole

        # A few rows of all panels, then the next: B is read in long stretches, and panels are written in short ones.
        strip = PACKED_STRIP * group
        with k.loop(0, rows, strip, plain=True) as top, k.loop(first, last, plain=True) as panel:
            into, corner, _, whole = parts(panel)
            with k.loop(top, k.minimum(top + strip, whole), group, plain=True) as row:
                lines = [_converted(style, corner.vector((row + e) * w.n, columns)) for e in range(group)]
                into.put(row * columns, _woven(k, lines))
        with k.loop(first, last, plain=True) as panel:  # what is not whole: all zero, and then what there is
            into, corner, width, whole = parts(panel)
            with k.loop(whole * columns, w.block * (group * columns)) as e:
                into[e] = zero
            with k.loop(whole, rows, plain=True) as row, k.loop(0, width, plain=True) as column:
                place = (row // group * columns + column) * group + row % group
                into[place] = _converted(style, corner[row * w.n + column])
            if style.unsigned_a:
                _write_amends(k, style, Array(k, into.pointer, style.unit), w.block)
    return k


def _woven(k: Kernel, lines: list[Value]) -> Value:
    """The vectors' elements in turn: first of each, second of each, …; as many vectors as a power of two."""
    while len(lines) > 1:
        half = len(lines) // 2
        lines = [_zipped(k, a, b) for a, b in zip(lines[:half], lines[half:], strict=True)]
    return lines[0]


def _zipped(k: Kernel, a: Value, b: Value) -> Value:
    order = ", ".join(f"i32 {e}, i32 {e + a.lanes}" for e in range(a.lanes))
    text = k.op(f"shufflevector {a.llvm} {a}, {a.llvm} {b}, <{2 * a.lanes} x i32> <{order}>")
    return Value(k, a.ty, text, 2 * a.lanes)


def _write_amends(k: Kernel, style: Style, panel: Array, units: Value) -> None:
    """-128 times the sum of each column, before the panel: A has 128 too much in each element."""
    excess = k.const(style.unit, 0x80808080 - (1 << 32), style.lanes)
    for start in range(0, style.columns, style.lanes):
        total = k.variable(k.const(style.sums, 0, style.lanes))
        with k.loop(0, units, plain=True) as row:
            total.value = style.step(k, total.value, panel.vector(row * style.columns + start, style.lanes), excess)
        panel.put(start - style.columns, k.const(style.sums, 0, style.lanes) - total.value)


# --- tiles ----------------------------------------------------------------------------------------


def _tiles(p: Product) -> Kernel:
    """Tiles of C, one a task."""
    k, style = Kernel(p.stem, p.target, p.operands), p.style
    w = _Words(k)
    a, b = _source(k, 1, w.a_at, style.unit), _source(k, 2, w.b_at, style.unit)
    epilogue, held = p.epilogue(k, len(WORDS)), k.local(style.sums, style.tile_sums)
    style.setup(k)
    with k.tasks() as task:
        batch, rest = task // w.tiles, task % w.tiles
        first_row, first_column = rest % w.row_tiles * w.tile_rows, rest // w.row_tiles * w.tile_columns
        micro_rows = (k.minimum(w.tile_rows, w.m - first_row) + (style.rows - 1)) // style.rows
        panels = (k.minimum(w.tile_columns, w.n - first_column) + (style.columns - 1)) // style.columns
        if style.packs_own:
            with k.when(w.own > 0), k.loop(0, w.blocks, plain=True) as block:
                panel = (batch * w.blocks + block) * w.b_groups + rest // w.row_tiles
                k.do(f"call void @{p.stem}_pack_b(ptr %record, i64 {panel}, i64 {panel + 1})")
        # Sums that are not final need a place each; where there is one block, all use the same.
        kept = k.select(w.blocks > 1, k.const(Type.I64, style.rows * style.columns), k.const(Type.I64, 0))
        with (
            k.loop(0, w.blocks, plain=True) as block,
            k.loop(0, panels, plain=True) as panel,
            k.loop(0, micro_rows, plain=True) as micro_row,
        ):
            top, left = first_row + micro_row * style.rows, first_column + panel * style.columns
            row = k.maximum(k.minimum(top, w.m - style.rows), k.const(Type.I64, 0))
            column = k.minimum(left, w.last_left)
            panel_at = batch * w.b_batch + block * w.b_block + left // style.columns * w.b_panel + style.lead
            micro = Micro(
                a.at(batch * w.a_batch + block * w.a_block + row * w.a_row), w.a_row,
                b.at(panel_at - (left - column)), w.b_row, k.minimum(w.block, w.units - block * w.block),
                held.at((panel * micro_rows + micro_row) * kept), block > 0,
            )  # fmt: skip
            edge, last = _Edge(k, style, w, batch, row, column, top, left), block.compare("eq", w.blocks - 1)
            if style.inner is None:
                _finish(k, epilogue, edge, last, micro.sums, _inner(k, style, micro))
            else:
                style.inner(k, style, micro)
                _finish_held(k, epilogue, edge, last, micro.sums)
    style.teardown(k)
    return k


class _Edge:
    """Which part of a micro-tile belongs to C and is its own, and where that is in C."""

    def __init__(
        self, k: Kernel, style: Style, w: _Words, batch: Value, row: Value, column: Value, top: Value, left: Value
    ) -> None:
        self.k, self.style, self.n, self.column = k, style, w.n, column
        self.corner = (batch * w.m + row) * w.n + column
        self.above, self.before = top - row, left - column  # rows and columns that another micro-tile has stored
        self.rows = k.minimum(k.const(Type.I64, style.rows), w.m - row)
        self.columns = k.minimum(k.const(Type.I64, style.columns), w.n - column)
        own = (self.rows - self.above) * (self.columns - self.before)
        self.whole = own.compare("eq", style.rows * style.columns)

    def vectors(self) -> Iterator[tuple[int, Value, Value]]:
        """(first element in the micro-tile, place in C, column) of each vector of a whole one."""
        for row in range(self.style.rows):
            line = self.corner + self.n * row
            for start in range(0, self.style.columns, self.style.lanes):
                yield row * self.style.columns + start, line + start, self.column + start

    @contextmanager
    def elements(self) -> Iterator[tuple[Value, Value, Value]]:
        """A loop over single elements: (number in the micro-tile, place in C, column)."""
        k = self.k
        with k.loop(self.above, self.rows, plain=True) as row, k.loop(self.before, self.columns, plain=True) as column:
            yield row * self.style.columns + column, self.corner + row * self.n + column, self.column + column


def _finish(k: Kernel, epilogue: Epilogue, edge: _Edge, last: str, held: Array, sums: list[Value]) -> None:
    """Final sums of a whole micro-tile go from registers to C; others to memory, and from there if they are final."""
    if epilogue.activation is None:
        at_once = k.op(f"and i1 {last}, {edge.whole}")
        with k.when(at_once):
            for value, (_, place, column) in zip(sums, edge.vectors(), strict=True):
                epilogue.store(epilogue.before(value, place, column), place)
        with k.when(k.op(f"xor i1 {at_once}, true")):
            for value, (start, _, _) in zip(sums, edge.vectors(), strict=True):
                held.put(start, value)
            with k.when(last):
                _finish_elements(epilogue, edge, held)
        return
    for value, (start, _, _) in zip(sums, edge.vectors(), strict=True):
        held.put(start, value)
    _finish_held(k, epilogue, edge, last, held)


def _finish_elements(epilogue: Epilogue, edge: _Edge, held: Array) -> None:
    """What belongs to C of a micro-tile at its edge, one by one."""
    with edge.elements() as (at, place, column):
        epilogue.store(epilogue.before(held[at], place, column), place)


def _finish_held(k: Kernel, epilogue: Epilogue, edge: _Edge, last: str, held: Array) -> None:
    """Sums in memory: if they are final, through the epilogue to C."""
    activation, lanes = epilogue.activation, edge.style.lanes
    whole, partial = (k.op(f"and i1 {last}, {c}") for c in (edge.whole, k.op(f"xor i1 {edge.whole}, true")))
    with k.when(whole):
        for start, place, column in edge.vectors():
            value = epilogue.before(held.vector(start, lanes), place, column)
            if activation is None:
                epilogue.store(value, place)
            else:
                held.put(start, value)
    if activation is None:
        with k.when(partial):
            _finish_elements(epilogue, edge, held)
        return
    with k.when(partial), edge.elements() as (at, place, column):
        held[at] = epilogue.before(held[at], place, column)
    with k.when(last), k.loop(0, edge.style.rows * edge.style.columns) as at:
        held[at] = activation(held[at])
    with k.when(whole):
        for start, place, _ in edge.vectors():
            epilogue.store(held.vector(start, lanes), place)
    with k.when(partial), edge.elements() as (at, place, _):
        epilogue.store(held[at], place)


def _inner(k: Kernel, style: Style, micro: Micro) -> list[Value]:
    """The sums of a micro-tile, row by row: everything that is fast about a matrix product happens here."""
    starts = range(0, style.columns, style.lanes)
    if style.unsigned_a:
        first = [micro.b.at(start - style.lead).vector(0, style.lanes) for start in starts]
    else:
        first = [k.const(style.sums, 0, style.lanes) for _ in starts]
    sums = [[k.variable(value) for value in first] for _ in range(style.rows)]
    with k.when(micro.later):
        for r, line in enumerate(sums):
            for start, total in zip(starts, line, strict=True):
                earlier = micro.sums.vector(r * style.columns + start, style.lanes)
                total.value = total.value + earlier if style.unsigned_a else earlier
    lines = [micro.a.at(micro.a_row * r) for r in range(style.rows)]
    if style.by_lane == 1:  # a broadcast from base and index: LLVM is kept from adding rows up instead
        lines = [Array(k, k.op(f'call ptr asm "", "=r,0"(ptr {line.pointer})'), line.ty) for line in lines]

    def advance(at: Value, factors: list[Value]) -> None:
        row = micro.b.at(at * micro.b_row)
        vectors = [row.vector(start, style.lanes) for start in starts]
        for factor, line in zip(factors, sums, strict=True):
            for vector, total in zip(vectors, line, strict=True):
                total.value = style.step(k, total.value, vector, factor)

    round_units = style.by_lane * style.unroll
    whole = micro.length - micro.length % round_units
    with k.loop(0, whole, round_units, plain=True) as at:
        for base in range(0, round_units, style.by_lane):
            loaded = [line.vector(at + base, style.by_lane) for line in lines]
            for lane in range(style.by_lane):
                advance(at + (base + lane), [_spread(k, value, lane, style.lanes) for value in loaded])
    if round_units > 1:
        with k.loop(whole, micro.length, plain=True) as at:
            advance(at, [k.splat(line[at], style.lanes) for line in lines])
    return [total.value for line in sums for total in line]


def _spread(k: Kernel, value: Value, lane: int, lanes: int) -> Value:
    return k.splat(value, lanes) if value.lanes == 1 else k.splat_lane(value, lane, lanes)
