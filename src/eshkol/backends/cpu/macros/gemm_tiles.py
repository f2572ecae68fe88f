"""The matrix product itself: tiles of C computed by an inner loop that keeps its sums in registers.

Comes in: a `Product`, cut up by its `Plan`. Goes out: a `Macro` of up to three phases: rows of A packed, panels of B
packed (or each by the task that needs it), tiles of C. The product is cut along k into blocks; a task computes one
tile of C for all blocks and keeps sums that are not final on its stack. A tile consists of micro-tiles, whose sums are
in registers during the inner loop:

    for each block along k, for each panel of B (style.columns wide), for each style.rows rows of A:
        sums[rows][columns] += A[rows][block] · B[block][columns]

A and B are read where they are if they are small and need no conversion; otherwise from packed copies (`gemm_pack`).
The inner loop is the same: only strides differ. At the lower and right edge, micro-tiles are moved back so that they do
not leave the matrix (or padded where packed), and only what is theirs is stored; those of the last panel are as many
vectors wide as there are columns for. Of a matrix times its own transpose, which is seen when it runs, micro-tiles
above the diagonal are left out, and the others stored on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Macro, Phase
from eshkol.backends.cpu.macros.gemm_few import few_product
from eshkol.backends.cpu.macros.gemm_pack import pack_a, pack_b
from eshkol.backends.cpu.macros.gemm_plan import WORDS, Epilogue, Product, ProductPlan, Words, source
from eshkol.backends.cpu.macros.gemm_small import small_product
from eshkol.backends.cpu.macros.gemm_tune import tuned
from eshkol.backends.cpu.macros.gemm_units import Micro, Style, deep_style
from eshkol.backends.cpu.macros.gemv import vector_product
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value
from eshkol.backends.cpu.macros.micro import Waypoints
from eshkol.backends.lanes.layout import BEYOND
from eshkol.llvm.targets import Target
from eshkol.support.extents import about

ADDED = 1 << 14  # elements of parts that a task of adding them up is worth
TURNED_UNROLL = 4  # units along k in a round of the inner loop where A is read column by column


def product_macro(p: Product) -> Macro:
    """The product as native functions; sizes are words, so that the same ones serve many shapes."""
    if (found := small_product(p) or vector_product(p) or few_product(p)) is not None:
        return found
    p = tuned(replace(p, style=deep_style(p.style, about(p.m), about(p.n), about(p.k))))
    plan = ProductPlan.of(p)
    functions, phases = [f for f, _ in p.first], [phase for _, phase in p.first]
    declared = dict.fromkeys(p.declared)
    own, parts = plan.words["own"] or plan.streams, plan.words["parts"]
    p = replace(p, cut=parts > 1, streams=plan.streams)
    for name, write, tasks, wanted in (
        (p.packing("a"), pack_a, plan.a_tasks, plan.packs_a),
        (p.packing("b"), pack_b, plan.b_tasks, plan.packs_b),
        (p.stem, _tiles, p.batch * parts * plan.words["tiles"], True),
        (p.adding, _together, p.batch * p.m, p.cut),
    ):
        if wanted or (p.packs_own and write is pack_b):
            text, needs = _written(name, p, write)
            functions.append(text)
            declared |= dict.fromkeys(needs)
        if wanted and not (own and write is pack_b):
            grain = max(1, ADDED // about(p.n * parts)) if write is _together else 1
            phases.append(Phase(name, min(tasks, BEYOND), grain))
    words = tuple(min(plan.words[name], BEYOND) for name in WORDS) + p.epilogue_words
    return Macro(tuple(functions), tuple(phases), words, tuple(declared), plan.scratch)


_texts: dict[tuple[str, Target], tuple[str, tuple[str, ...]]] = {}


def _written(name: str, p: Product, write: Callable[[Product], Kernel]) -> tuple[str, tuple[str, ...]]:
    """Text and declarations of a function; remembered, because names stand for texts and writing takes long."""
    key = (name, p.target)
    if key not in _texts:
        k = write(p)
        assert k.function_name == name
        _texts[key] = (k.function(), k.declarations)
    return _texts[key]


def _tiles(p: Product) -> Kernel:
    """Tiles of C, one a task."""
    k, style = Kernel(p.stem, p.target, p.operands), p.style
    w, lanes = Words(k), p.style.lanes
    a, b = source(k, 1, w.a_at, style.unit), source(k, 2, w.b_at, style.unit)
    held, line = k.local(style.sums, style.tile_sums), w.c_line
    c, epilogue = k.operand(0, p.ty), p.epilogue(k, len(WORDS))
    if p.cut:  # what becomes of the sums of all parts is decided later
        c, line = k.scratch(style.sums, w.part_at), w.n
        epilogue = Epilogue(lambda value, place, column: value, lambda value, place: c.put(place, value))
    a_step, b_row = w.a_step, w.b_row
    if style.packed:
        a_step, b_row = k.const(Type.I64, style.rows), k.const(Type.I64, style.columns)
    mirrors = k.op(f"icmp eq ptr {k.operand(1, p.ty).pointer}, {k.operand(2, p.ty).pointer}") if p.mirrors else ""
    style.setup(k)
    with k.tasks() as task:
        pair, rest = task // w.tiles, task % w.tiles
        first_block, last_block, c_pair = k.const(Type.I64, 0), w.blocks, k.const(Type.I64, 0)
        if p.cut:
            c_pair = pair * w.m * w.n
            first_block, pair = pair % w.parts * w.part_blocks, pair // w.parts
            last_block = k.minimum(first_block + w.part_blocks, w.blocks)
        else:
            c_pair = w.pair("c", pair)
        a_pair, b_pair = w.pair("a", pair), w.pair("b", pair)
        first_row, first_column = rest % w.row_tiles * w.tile_rows, rest // w.row_tiles * w.tile_columns
        micro_rows = (k.minimum(w.tile_rows, w.m - first_row) + (style.rows - 1)) // style.rows
        panels = (k.minimum(w.tile_columns, w.n - first_column) + (style.columns - 1)) // style.columns
        if style.packs_own:
            with k.when(w.own > 0), k.loop(0, w.blocks, plain=True) as block:
                panel = (pair * w.blocks + block) * w.b_groups + rest // w.row_tiles
                k.do(f"call void @{p.packing('b')}(ptr %record, i64 {panel}, i64 {panel + 1})")
        # Sums that are not final need a place each; where there is one block, all use the same.
        kept = k.select(w.part_blocks > 1, k.const(Type.I64, style.rows * style.columns), k.const(Type.I64, 0))

        def micro_tile(block: Value, panel: Value, left: Value, micro_row: Value, vectors: int) -> None:
            top = first_row + micro_row * style.rows
            row, column = k.minimum(top, w.last_top), k.minimum(left, w.last_left - vectors * lanes)
            slot = first_block // w.part_blocks if p.streams else block
            panel_at = b_pair + slot * w.b_block + left // style.columns * w.b_panel + style.lead
            micro = Micro(
                a.at(a_pair + block * w.a_block + row * w.a_row), w.a_row, a_step,
                b.at(panel_at - (left - column)), b_row, k.minimum(w.block, w.units - block * w.block),
                held.at((panel * micro_rows + micro_row) * kept), block > first_block,
            )  # fmt: skip
            edge = _Edge(k, style, vectors, w, line, c_pair, row, column, top, left)
            last = block.compare("eq", last_block - 1)
            if style.inner is None:
                _finish(k, epilogue, edge, last, micro.sums, _inner(k, style, micro, vectors, p.by_columns))
            else:
                style.inner(k, style, micro)
                _finish_held(k, epilogue, edge, last, micro.sums)
            if mirrors:
                with k.when(k.both(last, mirrors)):
                    edge.mirror(c, c_pair, row)

        def first_micro_row(left: Value) -> Value:
            """The first one that is not above the diagonal altogether, if what is above it is mirrored."""
            zero = k.const(Type.I64, 0)
            return k.select(mirrors, k.maximum(left - first_row, 0) // style.rows, zero) if mirrors else zero

        with k.loop(first_block, last_block, plain=True) as block:
            if p.streams:
                packed = (pair * w.blocks + block) * w.b_groups + rest // w.row_tiles
                k.do(f"call void @{p.packing('b')}(ptr %record, i64 {packed}, i64 {packed + 1})")
            with k.loop(0, panels, plain=True) as panel:
                left = first_column + panel * style.columns
                for vectors in p.widths:
                    narrow = w.n - left <= p.widths[0] * lanes
                    fits = narrow if vectors == p.widths[0] else k.negated(narrow)
                    with (
                        k.when(fits if len(p.widths) > 1 else "true"),
                        k.loop(first_micro_row(left), micro_rows, plain=True) as micro_row,
                    ):
                        micro_tile(block, panel, left, micro_row, vectors)
    style.teardown(k)
    return k


def _together(p: Product) -> Kernel:
    """Rows of C: the parts of their sums added up, the first to the last, and through the epilogue."""
    k, sums = Kernel(p.adding, p.target, p.operands), p.style.sums
    w = Words(k)
    epilogue = p.epilogue(k, len(WORDS))
    with k.tasks() as task:
        pair, row = task // w.m, task % w.m
        size, corner = w.m * w.n, w.pair("c", pair) + row * w.c_line
        first = k.scratch(sums, w.part_at).at(pair * w.parts * size + row * w.n)

        def parts_added(at: Value, lanes: int) -> Value:
            total = k.variable(first.vector(at, lanes))
            with k.loop(1, w.parts, plain=True) as part:
                total.value = total.value + first.vector(part * size + at, lanes)
            return epilogue.before(total.value, corner + at, at)

        if epilogue.activation is None:
            for at, lanes in k.strips(sums, w.n):
                epilogue.store(parts_added(at, lanes), corner + at)
        else:
            for at, lanes in k.strips(sums, w.n):
                first.put(at, parts_added(at, lanes))
            with k.loop(0, w.n) as at:
                first[at] = epilogue.activation(first[at])
            for at, lanes in k.strips(sums, w.n):
                epilogue.store(first.vector(at, lanes), corner + at)
    return k


class _Edge:
    """Which part of a micro-tile belongs to C and is its own, and where that is in C."""

    def __init__(
        self, k: Kernel, style: Style, vectors: int, w: Words, line: Value, pair: Value,
        row: Value, column: Value, top: Value, left: Value,
    ) -> None:  # fmt: skip
        self.k, self.style, self.line, self.column = k, style, line, column
        self.width = vectors * style.lanes
        self.corner = pair + row * line + column
        self.above, self.before = top - row, left - column  # rows and columns that another micro-tile has stored
        self.rows = k.minimum(k.const(Type.I64, style.rows), w.m - row)
        self.columns = k.minimum(k.const(Type.I64, self.width), w.n - column)
        own = (self.rows - self.above) * (self.columns - self.before)
        self.whole = own.compare("eq", style.rows * self.width)

    def vectors(self) -> Iterator[tuple[int, Value, Value]]:
        """(first element in the micro-tile, place in C, column) of each vector of a whole one."""
        for row in range(self.style.rows):
            line = self.corner + self.line * row
            for start in range(0, self.width, self.style.lanes):
                yield row * self.width + start, line + start, self.column + start

    def strips(self) -> Iterator[tuple[Value, Value, Value, int]]:
        """Vectors, short ones and single elements of each row: (number in the tile, place in C, column, lanes)."""
        k, lanes = self.k, self.style.lanes
        with k.loop(self.above, self.rows, plain=True) as row:
            start: Value = self.before
            for width in dict.fromkeys((lanes, max(1, lanes // 4), 1)):
                stop = self.columns - (self.columns - start) % width
                with k.loop(start, stop, width, plain=True) as column:
                    yield row * self.width + column, self.corner + row * self.line + column, self.column + column, width
                start = stop

    def mirror(self, c: Array, pair: Value, row: Value) -> None:
        """What is stored of it below the diagonal, above it."""
        k = self.k
        with k.loop(self.before, self.columns, plain=True) as at:
            column = self.column + at
            into, source = c.at(pair + column * self.line), c.at(pair + column)
            with k.loop(k.maximum(row + self.above, column + 1), row + self.rows, plain=True) as down:
                into[down] = source[down * self.line]


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
                _finish_strips(epilogue, edge, held)
        return
    for value, (start, _, _) in zip(sums, edge.vectors(), strict=True):
        held.put(start, value)
    _finish_held(k, epilogue, edge, last, held)


def _finish_strips(epilogue: Epilogue, edge: _Edge, held: Array) -> None:
    """What belongs to C of a micro-tile at its edge."""
    for at, place, column, lanes in edge.strips():
        epilogue.store(epilogue.before(held.vector(at, lanes), place, column), place)


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
            _finish_strips(epilogue, edge, held)
        return
    with k.when(partial):
        for at, place, column, width in edge.strips():
            held.put(at, epilogue.before(held.vector(at, width), place, column))
    with k.when(last), k.loop(0, edge.style.rows * edge.width) as at:
        held[at] = activation(held[at])
    with k.when(whole):
        for start, place, _ in edge.vectors():
            epilogue.store(held.vector(start, lanes), place)
    with k.when(partial):
        for at, place, _, width in edge.strips():
            epilogue.store(held.vector(at, width), place)


def _inner(k: Kernel, style: Style, micro: Micro, vectors: int, by_columns: bool) -> list[Value]:
    """The sums of a micro-tile, row by row: everything that is fast about a matrix product happens here."""
    width = vectors * style.lanes
    starts = range(0, width, style.lanes)
    if style.unsigned_a:
        first = [micro.b.at(start - style.lead).vector(0, style.lanes) for start in starts]
    else:
        first = [k.const(style.sums, 0, style.lanes) for _ in starts]
    sums = [[k.variable(value) for value in first] for _ in range(style.rows)]
    with k.when(micro.later):
        for r, line in enumerate(sums):
            for start, total in zip(starts, line, strict=True):
                earlier = micro.sums.vector(r * width + start, style.lanes)
                total.value = total.value + earlier if style.unsigned_a else earlier

    def advance(at: Value, factors: list[Value]) -> None:
        row = micro.b.at(at * micro.b_row)
        loaded = [row.vector(start, style.lanes) for start in starts]
        for factor, line in zip(factors, sums, strict=True):
            for vector, total in zip(loaded, line, strict=True):
                total.value = style.step(k, total.value, vector, factor)

    if by_columns:
        _by_columns(k, style, micro, advance)
    else:
        _by_rows(k, style, micro, advance)
    return [total.value for line in sums for total in line]


def _by_rows(k: Kernel, style: Style, micro: Micro, advance: Callable[[Value, list[Value]], None]) -> None:
    """Along k, where units of a row of A are neighbours."""
    lines = [micro.a.at(micro.a_row * r) for r in range(style.rows)]
    if style.by_lane == 1:  # a broadcast from base and index: LLVM is kept from adding rows up instead
        lines = [Array(k, k.op(f'call ptr asm "", "=r,0"(ptr {line.pointer})'), line.ty) for line in lines]
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


def _by_columns(k: Kernel, style: Style, micro: Micro, advance: Callable[[Value, list[Value]], None]) -> None:
    """Along k, where units of a column of A are neighbours."""
    at_once = style.lanes if style.by_lane > 1 and style.rows % style.lanes == 0 else 1

    def step(at: Value) -> None:
        column = micro.a.at(at * micro.a_step)
        loaded = [column.vector(r, at_once) for r in range(0, style.rows, at_once)]
        advance(at, [_spread(k, loaded[r // at_once], r % at_once, style.lanes) for r in range(style.rows)])

    whole = micro.length - micro.length % TURNED_UNROLL
    waypoints = Waypoints(k, TURNED_UNROLL - 1)
    with k.loop(0, whole, TURNED_UNROLL, plain=True) as at:
        for unit in range(TURNED_UNROLL):
            step(at + unit)
            if unit < TURNED_UNROLL - 1:
                waypoints.here(at)
    waypoints.end()
    with k.loop(whole, micro.length, plain=True) as at:
        step(at)


def _spread(k: Kernel, value: Value, lane: int, lanes: int) -> Value:
    return k.splat(value, lanes) if value.lanes == 1 else k.splat_lane(value, lane, lanes)
