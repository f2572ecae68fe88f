"""Packing: A and B copied so that what the inner loop of a matrix product reads is contiguous, and of its type.

A is packed in rows, each block of a row contiguous; a transposed A in panels of rows, each column of which is, and any
A where the style wants it. B is packed in panels of columns, unit row by unit row. What lies the other way, as a
transposed B does, is turned in registers, some rows and columns at a time. What a block has beyond k is zero wherever
it would be multiplied.
"""

from __future__ import annotations

from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.gemm_plan import PACKED_ROWS, Product, Words, source
from eshkol.backends.cpu.macros.gemm_units import Style
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value

PACKED_STRIP = 8  # rows of B (columns of A) that are packed before going on to the next panel
TURNED_AT_ONCE = 8  # rows and columns, at most


def _elements(p: Product, k: Kernel, number: int, offset: Value) -> Array:
    """A or B in memory, as its elements are packed: converted where the style wants, or as they are."""
    raw = p.ty.is_half and p.style.element is p.ty
    return source(k, number, offset, Type.U16 if raw else p.ty)


def _converted(style: Style, value: Value) -> Value:
    """An element of A or B as it is packed."""
    return value if style.element.is_half else value.to(style.element)


# --- A --------------------------------------------------------------------------------------------


def pack_a(p: Product) -> Kernel:
    """Some rows of A."""
    return (_pack_columns if p.a.turned else _pack_turned)(p) if p.by_columns else _pack_rows(p)


def _pack_rows(p: Product) -> Kernel:
    """Rows of A, each block of a row contiguous; what a block has beyond k, and rows beyond m, are zero."""
    k, style = Kernel(p.packing("a"), p.target, p.operands), p.style
    w = Words(k)
    elements, zero = _elements(p, k, 1, w.a_from), k.const(style.stored, 0)
    length = w.block * style.group  # elements of a block of a row
    with k.tasks() as task:
        number, start = task // w.a_groups, task % w.a_groups * PACKED_ROWS
        held = w.a_block // w.a_row  # rows of the packed matrix: m, or those of a micro-tile if there are more
        target = k.scratch(style.stored, w.a_at).at(number * w.blocks * w.a_block * style.group)
        matrix = elements.at(w.source("a", number))
        stop = k.minimum(start + PACKED_ROWS, held)
        with k.loop(start, stop, plain=True) as row, k.loop(0, w.blocks, plain=True) as block:
            into = target.at((block * w.a_block + row * w.a_row) * style.group)
            inside = k.select(row < w.m, k.minimum(length, w.k - block * length), k.const(Type.I64, 0))
            if p.a.turned:
                column = matrix.at(block * length * w.a_line + row)
                with k.loop(0, inside) as e:
                    into[e] = _converted(style, column[e * w.a_line])
            else:
                line = matrix.at(row * w.a_line + block * length)
                with k.parallel(0, inside) as e:
                    value = _converted(style, line[e])
                    if style.unsigned_a:
                        value = Value(k, value.ty, k.op(f"xor {value.llvm} {value}, -128"))
                    into[e] = value
            with k.loop(inside, length) as e:
                into[e] = zero
    return k


def _pack_columns(p: Product) -> Kernel:
    """Panels of rows of an A that lies as its transpose: of each column, the elements of all rows of the panel."""
    k, style, rows = Kernel(p.packing("a"), p.target, p.operands), p.style, p.style.rows
    w = Words(k)
    elements = _elements(p, k, 1, w.a_from)
    with k.tasks() as task:
        number, first = task // w.a_groups, task % w.a_groups * w.a_group * rows
        last, whole = k.minimum(first + w.a_group * rows, w.m), w.m - w.m % rows
        target = k.scratch(style.stored, w.a_at).at(number * w.blocks * w.a_block)
        matrix = elements.at(w.source("a", number))
        with k.loop(0, w.blocks, plain=True) as block:
            into, line = target.at(block * w.a_block), matrix.at(block * w.block * w.a_line)
            length = k.minimum(w.block, w.k - block * w.block)
            # A few columns of all panels, then the next: as B is packed.
            with k.loop(0, length, PACKED_STRIP, plain=True) as start:
                stop = k.minimum(start + PACKED_STRIP, length)
                with k.loop(first, k.minimum(last, whole), rows, plain=True) as top:
                    panel = into.at(w.a_row * top)
                    with k.loop(start, stop, plain=True) as e:
                        panel.put(e * rows, _converted(style, line.vector(e * w.a_line + top, rows)))
            with k.when(last > whole), k.loop(0, length, plain=True) as e:  # fewer rows than a panel has
                panel = into.at(w.a_row * whole)
                panel.put(e * rows, k.const(style.stored, 0, rows))
                with k.loop(0, w.m - whole, plain=True) as r:
                    panel[e * rows + r] = _converted(style, line[e * w.a_line + whole + r])
    return k


def _pack_turned(p: Product) -> Kernel:
    """Such panels of an A that lies as it is: rows are turned in registers, of which those beyond m repeat the last."""
    k, style, rows = Kernel(p.packing("a"), p.target, p.operands), p.style, p.style.rows
    w, many = Words(k), min(style.lanes, TURNED_AT_ONCE)
    elements = _elements(p, k, 1, w.a_from)
    with k.tasks() as task:
        number, first = task // w.a_groups, task % w.a_groups * w.a_group * rows
        last = k.minimum(first + w.a_group * rows, w.m)
        target = k.scratch(style.stored, w.a_at).at(number * w.blocks * w.a_block)
        matrix = elements.at(w.source("a", number))
        with k.loop(0, w.blocks, plain=True) as block, k.loop(first, last, rows, plain=True) as top:
            into, source = target.at(block * w.a_block + w.a_row * top), matrix.at(block * w.block)
            lines = [source.at(k.minimum(w.m - 1, top + r) * w.a_line) for r in range(rows)]
            length = k.minimum(w.block, w.k - block * w.block)
            _turn(k, style, lines, into, length, style.stored)
            with k.when(length < many), k.loop(0, length, plain=True) as e:
                for r, line in enumerate(lines):
                    into[e * rows + r] = _converted(style, line[e])
    return k


# --- B --------------------------------------------------------------------------------------------


class _Panels:
    """The panels of one task of packing B."""

    def __init__(self, p: Product) -> None:
        self.p, self.style = p, p.style
        self.k = k = Kernel(p.packing("b"), p.target, p.operands)
        self.w = w = Words(k)
        elements, group = _elements(p, k, 2, w.b_from), p.style.group
        with k.tasks() as task:
            per_pair = w.blocks * w.b_groups
            number, rest = task // per_pair, task % per_pair
            block, first = rest // w.b_groups, rest % w.b_groups * w.b_group
            self.rows = k.minimum(w.block * group, w.k - block * w.block * group)  # elements along k
            self.last = k.minimum(first + w.b_group, w.b_panels)
            self.first, self.top = first, block * w.block * group
            self.matrix = elements.at(w.source("b", number))
            slot = number * w.slots + block // w.slot_blocks  # where one task packs block after block, it is the same
            self.into = k.scratch(p.style.stored, w.b_at).at(slot * w.b_block * group)
            if p.b.turned:
                self._turned()
            else:
                self._straight()

    def _panel(self, panel: Value) -> tuple[Array, Value]:
        """Where a packed panel begins, and how many columns it has."""
        w, style = self.w, self.style
        width = self.k.minimum(self.k.const(Type.I64, style.columns), w.n - panel * style.columns)
        return self.into.at((panel * w.b_panel + style.lead) * style.group), width

    def _straight(self) -> None:
        """Rows of B are copied as vectors."""
        k, w, style, group, columns = self.k, self.w, self.style, self.style.group, self.style.columns
        zero = k.const(style.stored, 0)

        def parts(panel: Value) -> tuple[Array, Array, Value, Value]:
            """The packed panel, where it comes from, its columns, and its rows that are copied as vectors."""
            into, width = self._panel(panel)
            corner = self.matrix.at(self.top * w.b_line + panel * columns)
            rows = self.rows - self.rows % group
            return into, corner, width, k.select(width.compare("eq", columns), rows, k.const(Type.I64, 0))

        # A few rows of all panels, then the next: B is read in long stretches, and panels are written in short ones.
        strip = PACKED_STRIP * group
        with k.loop(0, self.rows, strip, plain=True) as top, k.loop(self.first, self.last, plain=True) as panel:
            into, corner, _, whole = parts(panel)
            with k.loop(top, k.minimum(top + strip, whole), group, plain=True) as row:
                lines = [_converted(style, corner.vector((row + e) * w.b_line, columns)) for e in range(group)]
                into.put(row * columns, woven(k, lines))
        with k.loop(self.first, self.last, plain=True) as panel:  # what is not whole: all zero, and then what there is
            into, corner, width, whole = parts(panel)
            with k.loop(whole * columns, w.block * (group * columns)) as e:
                into[e] = zero
            with k.loop(whole, self.rows, plain=True) as row:
                start: Value = k.const(Type.I64, 0)
                if group == 1:
                    start = width - width % style.lanes
                    with k.loop(0, start, style.lanes, plain=True) as column:
                        value = _converted(style, corner.vector(row * w.b_line + column, style.lanes))
                        into.put(row * columns + column, value)
                with k.loop(start, width, plain=True) as column:
                    place = (row // group * columns + column) * group + row % group
                    into[place] = _converted(style, corner[row * w.b_line + column])
            if style.unsigned_a:
                _write_amends(k, style, Array(k, into.pointer, style.unit), w.block)

    def _turned(self) -> None:
        """Rows of what lies there, which are columns of B, are turned in registers; those beyond n repeat the last."""
        k, w, style, group, columns = self.k, self.w, self.style, self.style.group, self.style.columns
        many = min(style.lanes, TURNED_AT_ONCE)
        whole, stored = self.rows // group, style.unit if group > 1 else style.stored
        with k.loop(self.first, self.last, plain=True) as panel:
            into, width = self._panel(panel)
            if style.multiple > 1:  # beyond k
                with k.loop(self.rows * columns, w.block * (group * columns)) as e:
                    into[e] = k.const(style.stored, 0)
            source = self.matrix.at(panel * columns * w.b_line + self.top)
            lines = [source.at(k.minimum(width - 1, c) * w.b_line) for c in range(columns)]
            _turn(k, style, lines, into, whole, stored)
            done = k.select(whole >= many, whole * group, k.const(Type.I64, 0))
            # The last unit may have elements beyond k.
            with k.when(self.rows % group > 0), k.loop(whole * (columns * group), (whole + 1) * (columns * group)) as e:
                into[e] = k.const(style.stored, 0)
            with k.loop(done, self.rows, plain=True) as row, k.loop(0, width, plain=True) as left:
                place = (row // group * columns + left) * group + row % group
                into[place] = _converted(style, source[left * w.b_line + row])


def pack_b(p: Product) -> Kernel:
    """Panels of B: the units of style.columns columns, unit row by unit row; what is beyond k is zero."""
    return _Panels(p).k


def woven(k: Kernel, lines: list[Value]) -> Value:
    """The vectors' elements in turn: first of each, second of each, …; as many vectors as a power of two."""
    while len(lines) > 1:
        half = len(lines) // 2
        lines = [
            k.shuffle(a, b, [n for e in range(a.lanes) for n in (e, e + a.lanes)])
            for a, b in zip(lines[:half], lines[half:], strict=True)
        ]
    return lines[0]


def _turn(k: Kernel, style: Style, lines: list[Array], into: Array, units: Value, stored: Type) -> None:
    """Units of each line to where they are neighbours of those of the others, if there are enough to fill a vector."""
    many, target = min(style.lanes, TURNED_AT_ONCE), Array(k, into.pointer, stored)
    with k.when(units >= many), k.loop(0, units, many, plain=True) as start:
        at = k.minimum(start, units - many)  # the last ones are some of them done again
        for c in range(0, len(lines), many):
            block = [
                Array(k, line.pointer, stored).vector(at, many) if style.group > 1
                else _converted(style, line.vector(at, many)) for line in lines[c : c + many]
            ]  # fmt: skip
            there = len(block)
            block += block[-1:] * (many - there)
            for step, column in enumerate(transposed(k, block)):
                for first, width in _powers(there):
                    part = column if width == many else k.shuffle(column, column, range(first, first + width))
                    target.put((at + step) * len(lines) + c + first, part)


def _powers(size: int) -> list[tuple[int, int]]:
    """A size as powers of two, the largest first: where each begins, and how long it is."""
    found, first = [], 0
    for bit in reversed(range(size.bit_length())):
        if size >> bit & 1:
            found.append((first, 1 << bit))
            first += 1 << bit
    return found


def transposed(k: Kernel, lines: list[Value]) -> list[Value]:
    """As many vectors of as many lanes, turned: each round deals two of them out in turn."""
    lanes = len(lines)
    low, high = ([n for e in range(start, start + lanes // 2) for n in (e, e + lanes)] for start in (0, lanes // 2))
    rounds = lanes.bit_length() - 1
    for _ in range(rounds):
        pairs = zip(lines[: lanes // 2], lines[lanes // 2 :], strict=True)
        lines = [k.shuffle(a, b, places) for a, b in pairs for places in (low, high)]
    return lines


def _write_amends(k: Kernel, style: Style, panel: Array, units: Value) -> None:
    """-128 times the sum of each column, before the panel: A has 128 too much in each element."""
    excess = k.const(style.unit, 0x80808080 - (1 << 32), style.lanes)
    for start in range(0, style.columns, style.lanes):
        total = k.variable(k.const(style.sums, 0, style.lanes))
        with k.loop(0, units, plain=True) as row:
            total.value = style.step(k, total.value, panel.vector(row * style.columns + start, style.lanes), excess)
        panel.put(start - style.columns, k.const(style.sums, 0, style.lanes) - total.value)
