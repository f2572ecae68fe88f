"""Conv2D and its gradient in the input as matrix products whose right side is read where it lies, in lines.

Comes in: a `Sweep` (see `conv_plan`). Goes out: the same sums as of `conv`, without a gathered copy of the source. A
task holds a band of places (see `conv_band`), padded, so that a tap of a channel is one long line of the band: the
places of all its rows follow each other, `pitch` apart. Strips of such a line are multiplied by panels of the kernel:

    sums[row, place …] = Σ over steps: kernel[row, step] · band[offset of the step + place …]

Between the places of two rows lie as many others as the kernel reaches beyond one; they are computed and not stored.
Where whole vectors of each row take no more places than that, strips are parts of rows: what they store lies together.

How it is multiplied is a `Way`: vectors of single numbers, of pairs of BF16 (channels 2u and 2u + 1 are woven into one
line of units), or tiles of such pairs. A step is a tap of `depth` units. The kernel is packed first, [class][group]
[panel of `rows` channels of the result][step][row][channels of the step]. Steps count channels first, so that a block
of channels is a block of steps; between blocks, sums wait on the task's stack.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Macro, Phase
from eshkol.backends.cpu.macros.conv_band import Band, Shape
from eshkol.backends.cpu.macros.conv_plan import Finish, Sweep, Words
from eshkol.backends.cpu.macros.conv_ways import Strip, Way
from eshkol.backends.cpu.macros.gemm_pack import TURNED_AT_ONCE, transposed
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, Variable, compute_type, macro_of
from eshkol.backends.cpu.macros.micro import up
from eshkol.backends.cpu.tune import LEAST_WORK, choice
from eshkol.llvm.targets import Target
from eshkol.llvm.text import vector

BAND_BYTES = 160 << 10
STRIP_BYTES = 32 << 10  # of a band that a strip reads, in a block: they stay in the first cache
KERNEL_BYTES = 256 << 10  # of the kernel, in a block: they stay in the second cache
LEAST_STEPS = 192  # of a block of single units, or as many units of larger steps
WAITING_BYTES = 128 << 10  # of sums, on a task's stack
MOST_STEPS = 2048  # of a block
PLACES, MOST_PLACES = 512, 1024  # of a band, with those between rows: about, and at most
ROW_PLACES = 160  # of a row of a band where there are several
GATHERED_ROWS = 16  # channels of the result in a group, beyond which short vectors are better gathered
ENOUGH_TASKS = 16
LEAST_PLACES = 96  # of a band that is made smaller so that there are enough tasks
MOST_WASTE = 2  # times as many places as there are


@dataclass(frozen=True)
class LinesPlan:
    """How a sweep is cut up."""

    sweep: Sweep
    finish: Finish
    target: Target
    way: Way
    shape: Shape
    block: int  # units
    plane: int  # elements of a unit in a band

    @staticmethod
    def of(sweep: Sweep, finish: Finish, target: Target) -> LinesPlan | None:
        """The plan; None where a band would not hold what a kernel reaches over, or be mostly what lies between.

        Also where gathering is faster: vectors are short, so that most of a row are whole ones, and many rows share it.
        """
        if finish.function:
            return None
        way = Way.of(sweep, target)
        if not way.masks and sweep.rows > GATHERED_ROWS:
            return None
        height, width = _extents(sweep)
        taps = max(p.taps for p in sweep.down.parts) * max(p.taps for p in sweep.across.parts)
        if taps > MOST_STEPS:
            return None
        most = ROW_PLACES if height > 1 else PLACES
        columns = width if width <= most else up(-(-width // -(-width // most)), way.lanes)
        steps = _block(sweep, way, taps)

        def room(rows: int) -> int:
            """Steps of a block whose band of so many rows there is memory for."""
            shape = Shape.of(sweep, rows, columns)
            left = BAND_BYTES - _slack(shape, way) * way.unit.size_bytes
            return max(0, left) // (_plane(shape, way) * way.depth * way.unit.size_bytes)

        def fits(rows: int) -> bool:
            return up(rows * Shape.of(sweep, rows, columns).pitch, way.columns) <= MOST_PLACES

        wanted = _places(sweep, way)
        rows = max(1, min(height, wanted // columns))
        while rows > 1 and not (fits(rows) and (room(rows) >= steps or rows * columns <= wanted // 2)):
            rows -= 1
        while rows > 1 and room(rows) < 1:
            rows -= 1
        if not fits(rows) or room(rows) < 1:
            return None
        steps = min(steps, room(rows))
        others = sweep.batch * sweep.groups * sweep.classes * -(-width // columns)
        while rows > 1 and others * -(-height // rows) < ENOUGH_TASKS and (rows - 1) * columns >= LEAST_PLACES:
            rows -= 1
        rows = -(-height // -(-height // rows))
        shape = Shape.of(sweep, rows, columns)
        if up(rows * shape.pitch, way.lanes) > MOST_WASTE * up(rows * columns, way.lanes):
            return None
        return LinesPlan(sweep, finish, target, way, shape, steps * way.depth, _plane(shape, way))

    def macro(self) -> Macro:
        sweep, way, shape = self.sweep, self.way, self.shape
        height, width = _extents(sweep)
        bands = -(-height // shape.rows), -(-width // shape.columns)
        units = up(-(-max(sweep.channels, 1) // way.group), way.depth)
        blocks, panels = -(-units // self.block), -(-sweep.rows // way.rows)
        length = up(shape.rows * shape.pitch, way.columns)
        tasks = sweep.batch * sweep.groups * sweep.classes * bands[0] * bands[1]
        per_task = -(-panels // min(panels, max(1, ENOUGH_TASKS // max(tasks, 1))))
        if blocks > 1:  # all sums of a task wait
            per_task = min(per_task, max(1, self.waiting // (way.rows * length)))
        shares = -(-panels // per_task)
        words = sweep.words() | shape.words() | {
            "plane": self.plane, "bands_h": bands[0], "bands_w": bands[1], "units": units, "block": self.block,
            "blocks": blocks, "panels": panels, "panels_per_task": per_task, "shares": shares, "length": length,
        }  # fmt: skip
        how = f"{'_scattered' * sweep.scattered}{'_rows' * self.by_rows}"
        name = f"conv2d_lines_{sweep.ty}_{way.name}{how}{self.finish.name}".lower()
        pack = _packed(self, f"{name}_pack", list(words))
        multiply = _Multiply(self, name, list(words)).k
        phases = (Phase(pack.function_name, sweep.classes * sweep.groups * panels, 4), Phase(name, tasks * shares))
        scratch = sweep.groups * panels * way.rows * units * way.group * sweep.taps * way.element.size_bytes
        return macro_of((pack, multiply), phases, (*words.values(), *sweep.parts()), scratch)

    @property
    def by_rows(self) -> bool:
        """Whether strips are parts of rows; single vectors would need a load for each multiplication."""
        way, shape = self.way, self.shape
        fits = way.lanes < shape.columns and up(shape.columns, way.lanes) <= shape.pitch
        return way.inner is None and way.masks and fits

    @property
    def waiting(self) -> int:
        """Sums that may wait."""
        return WAITING_BYTES // compute_type(self.sweep.ty).size_bytes


def _extents(sweep: Sweep) -> tuple[int, int]:
    """Places of the largest class."""
    return max(p.count for p in sweep.down.parts), max(p.count for p in sweep.across.parts)


def _block(sweep: Sweep, way: Way, taps: int) -> int:
    """Steps of a tap in a block, at most."""
    down = max(max(p.taps for p in sweep.down.parts), 1)
    line = up(way.columns * way.unit.size_bytes, 64) + 64  # of a cache's lines; it may begin anywhere
    strip = STRIP_BYTES // (way.depth * down * line)
    packed = max(taps, 1) * up(sweep.rows, way.rows) * way.deep * way.element.size_bytes
    least = -(-LEAST_STEPS // (max(taps, 1) * way.depth))
    wanted = min(max(min(strip, KERNEL_BYTES // packed), least), MOST_STEPS // max(taps, 1))
    all_steps = max(1, -(-sweep.channels // way.deep))
    return -(-all_steps // -(-all_steps // max(wanted, 1)))


def _places(sweep: Sweep, way: Way) -> int:
    """Places of a band: the usual number, or the one that was measured to be fastest."""
    work = sweep.batch * sweep.groups * sweep.rows * sweep.channels * sweep.taps
    if work * sweep.down.result * sweep.across.result // sweep.classes < LEAST_WORK:
        return PLACES
    (found,) = choice("conv band", f"{way.name} {sweep}", ((PLACES // 2,), (PLACES * 3 // 2,)), (PLACES,))
    return found


def _plane(shape: Shape, way: Way) -> int:
    """Units from one to the next in a band: an odd number of lines of a cache, so that they do not meet in it."""
    line = 64 // way.unit.size_bytes
    return up(shape.plane, 2 * line) + line


def _slack(shape: Shape, way: Way) -> int:
    """Units behind a band that its last strip may run into."""
    return shape.pitch + 2 * way.columns


# --- the kernel -----------------------------------------------------------------------------------


def _steps_before(w: Words, way: Way, number: Value) -> tuple[Value, Value]:
    """Where the packed kernel of a class begins, in steps of a panel, and how many steps it has."""
    down, across = w.parts_of(number)
    each = w.units // way.depth
    before = down.before * w.taps_w + down.taps * across.before
    return before * each * w.groups * w.panels, down.taps * across.taps * each


def _packed(plan: LinesPlan, name: str, words: list[str]) -> Kernel:
    """A task packs one panel; rows past the last channel repeat it and are never stored, channels past it are zero."""
    way, ty = plan.way, plan.sweep.ty
    k = Kernel(name, plan.target, plan.finish.operands)
    w = Words(k, words)
    raw = way.element if way.group > 1 else ty
    with k.tasks() as task:
        panel, rest = task % w.panels, task // w.panels
        group, number = rest % w.groups, rest // w.groups
        (down, across), (before, steps) = w.parts_of(number), _steps_before(w, way, number)
        panel_size = way.rows * way.deep
        target = k.scratch(way.element).at((before + (group * w.panels + panel) * steps) * panel_size)
        source = k.operand(2, raw).at(group * w.rows * w.channels * w.kernel_h * w.kernel_w)
        taps, zero = down.taps * across.taps, k.const(compute_type(way.element), 0)
        turned = k.const(Type.I64, 0)  # steps that are there already
        if way.deep == 1 and (many := math.gcd(way.rows, min(way.lanes, TURNED_AT_ONCE))) > 1:
            turned = _turned(k, w, way, source, target, panel, taps, many)
        with (
            k.loop(k.select(turned > 0, w.units, k.const(Type.I64, 0)), w.units // way.depth, plain=True) as j,
            k.loop(0, down.taps, plain=True) as v,
            k.loop(0, across.taps, plain=True) as u,
        ):
            tap = (down.first_tap + v * w.tap_step_h) * w.kernel_w + across.first_tap + u * w.tap_step_w
            into = target.at((j * taps + v * across.taps + u) * panel_size)
            if way.deep == 1:
                for own in range(way.rows):
                    row = k.minimum(panel * way.rows + own, w.rows - 1)
                    into[own] = source[row * w.row_step + j * w.channel_step + tap]
            else:
                inside = k.minimum(w.channels - j * way.deep, way.deep)
                with k.loop(0, way.rows, plain=True) as r:
                    row = k.minimum(panel * way.rows + r, w.rows - 1)
                    line, at = source.at(row * w.row_step + j * way.deep * w.channel_step + tap), into.at(r * way.deep)
                    with k.loop(0, inside, plain=True) as e:
                        at[e] = line[e * w.channel_step]
                    with k.loop(inside, way.deep, plain=True) as e:
                        at[e] = zero
    return k


def _turned(
    k: Kernel, w: Words, way: Way, source: Array, target: Array, panel: Value, taps: Value, many: int
) -> Value:  # fmt: skip
    """Pack by turning rows of the kernel in registers, where a row's steps lie one after another; how many there are.

    The last ones are some of them done again. None are packed where they lie otherwise, or are too few.
    """
    in_turn = k.both(
        w.channel_step.compare("eq", taps), k.both(w.tap_step_h.compare("eq", 1), w.tap_step_w.compare("eq", 1))
    )
    steps = k.select(in_turn, w.channels * taps, k.const(Type.I64, 0))
    steps = k.select(steps >= many, steps, k.const(Type.I64, 0))
    rows = [source.at(k.minimum(panel * way.rows + own, w.rows - 1) * w.row_step) for own in range(way.rows)]
    with k.loop(0, steps, many, plain=True) as start:
        at = k.minimum(start, steps - many)
        for first in range(0, way.rows, many):
            block = [row.vector(at, many).to(way.element) for row in rows[first : first + many]]
            for step, column in enumerate(transposed(k, block)):
                target.put((at + step) * way.rows + first, column)
    return steps


def _shares(k: Kernel, count: Value, most: int) -> list[tuple[int, Value]]:
    """So many vectors as strips of up to `most`, none of a single one unless it is alone: (vectors, how many such)."""
    if most < 3:
        return [(most, count // most), (1, count % most)]
    single = k.both((count % most).compare("eq", 1), count > most)
    full = count // most - k.select(single, k.const(Type.I64, 1), k.const(Type.I64, 0))
    rest = count - full * most
    return [(most, full), (2, rest // 2), (1, rest % 2)]


# --- the product ----------------------------------------------------------------------------------


class _Multiply:
    """A task computes a band of places of a class for a share of a group's panels."""

    def __init__(self, plan: LinesPlan, name: str, words: list[str]) -> None:
        self.plan, self.way = plan, plan.way
        way, ty = plan.way, plan.sweep.ty
        self.k = k = Kernel(name, plan.target, plan.finish.operands)
        self.w = w = Words(k, words)
        held = Type.U16 if way.group > 1 else way.unit
        self.memory = k.local(held, BAND_BYTES // held.size_bytes)
        self.units = Array(k, self.memory.pointer, way.unit)
        self.offsets, self.waiting = k.local(Type.I64, MOST_STEPS), k.local(way.sums, plan.waiting)
        self.corner = k.local(way.sums, way.rows * way.lanes)
        source = k.operand(1, held if way.group > 1 else ty)
        way.setup(k)
        with k.tasks() as task:
            share, rest = task % w.shares, task // w.shares
            left, rest = rest % w.bands_w * w.band_columns, rest // w.bands_w
            top, rest = rest % w.bands_h * w.band_rows, rest // w.bands_h
            classes = w.parts_h * w.parts_w
            number, unit = rest % classes, rest // classes  # a unit is a group of an image
            self.down, self.across = down, across = w.parts_of(number)
            with k.when(k.both(top < down.count, left < across.count)):
                self.rows = k.minimum(down.count - top, w.band_rows)
                self.columns = k.minimum(across.count - left, w.band_columns)
                self.group, self.first_panel = unit % w.groups, share * w.panels_per_task
                self.last_panel = k.minimum(self.first_panel + w.panels_per_task, w.panels)
                self.corner_at = (
                    (unit * w.rows * w.result_h + down.start + top * w.spread_h) * w.result_w
                    + across.start + left * w.spread_w
                )  # fmt: skip
                before, self.steps = _steps_before(w, way, number)
                self.packed = k.scratch(way.unit).at((before + self.group * w.panels * self.steps) * self._step_units)
                band = Band(k, w, self.memory, down, across, way.group)
                self._locate(band)
                with k.loop(0, w.blocks, plain=True) as self.block:
                    start = self.block * w.block
                    count = k.minimum(w.units - start, w.block)
                    plane = (unit * w.channels + start * way.group) * w.source_h * w.source_w
                    channels = w.channels - start * way.group if way.group > 1 else None
                    band.fill(source.at(plane), count, top, left, channels)
                    self._clear(count)
                    self._panels(start, count)
        way.teardown(k)

    @property
    def _step_units(self) -> int:
        """Units of a panel's step."""
        return self.way.rows * self.way.depth

    def _locate(self, band: Band) -> None:
        """Where each step of a block reads."""
        k, w, depth, taps = self.k, self.w, self.way.depth, self.down.taps * self.across.taps
        with (
            k.loop(0, self.down.taps, plain=True) as v,
            k.loop(0, self.across.taps, plain=True) as u,
            k.loop(0, w.block // depth, plain=True) as j,
        ):
            self.offsets[j * taps + v * self.across.taps + u] = j * depth * w.plane + band.offset(v, u)

    def _clear(self, count: Value) -> None:
        """Zeros behind each unit and behind the last: what lies there is multiplied, though never stored."""
        k, w = self.k, self.w
        used = w.phases_h * w.phases_w * w.lines * w.pitch
        zero = k.const(self.way.unit, 0)
        with k.loop(0, count, plain=True) as unit, k.loop(used, w.plane) as q:
            self.units[unit * w.plane + q] = zero
        with k.loop(0, w.pitch + 2 * self.way.columns) as q:
            self.units[count * w.plane + q] = zero

    def _panels(self, start: Value, count: Value) -> None:
        k, w, way, taps = self.k, self.w, self.way, self.down.taps * self.across.taps
        length = (self.rows - 1) * w.pitch + self.columns
        steps, wide = count // way.depth * taps, way.columns
        self.last = (self.block + 1).compare("eq", w.blocks)
        # Sums that are not final need a place each; where there is one block, all use the same.
        kept = k.select(w.blocks > 1, k.const(Type.I64, way.rows), k.const(Type.I64, 0))

        def strip(at: Value, vectors: int, row: Value | None = None) -> None:
            """All panels by some places, of a row if it is said, whose part of the band stays in the first cache."""
            rows = [row or (at + v * way.lanes) // w.pitch for v in range(vectors)]  # of the band, that they begin in
            with k.loop(self.first_panel, self.last_panel, plain=True) as panel:
                packed = self.packed.at((panel * self.steps + start // way.depth * taps) * self._step_units)
                waiting = self.waiting.at(((panel - self.first_panel) * w.length + at) * kept)
                found = Strip(packed, self.units.at(at), self.offsets, steps, w.plane, waiting, self.block > 0)
                if way.inner is None:
                    sums = self._summed(found, vectors)
                    with k.when(self.last):
                        for v in range(vectors):
                            self._store(panel, at + v * way.lanes, rows[v], [row[v].value for row in sums])
                else:
                    way.inner(k, way, found)
                    with k.when(self.last):
                        for v in range(vectors):
                            self._store_held(panel, at + v * way.lanes, rows[v], waiting.at(v * way.lanes), way.columns)

        if self.plan.by_rows:
            needed = (self.columns + (way.lanes - 1)) // way.lanes
            with k.loop(0, self.rows, plain=True) as row:
                done = row * w.pitch
                for vectors, many in _shares(k, needed, way.vectors):
                    with k.loop(0, many, plain=True) as number:
                        strip(done + number * (vectors * way.lanes), vectors, row)
                    done = done + many * (vectors * way.lanes)
            return
        whole = length if way.inner is not None else length - length % wide
        with k.loop(0, whole, wide, plain=True) as at:
            strip(at, way.vectors)
        if way.inner is None:
            with k.loop(whole, length, way.lanes, plain=True) as at:
                strip(at, 1)

    def _summed(self, strip: Strip, vectors: int) -> list[list[Variable]]:
        """The sums of some vectors of places, in registers; they wait in memory where there are more blocks."""
        k, way = self.k, self.way
        assert way.step is not None
        sums = [[k.variable(k.const(way.sums, 0, way.lanes)) for _ in range(vectors)] for _ in range(way.rows)]
        cells = [(number * way.lanes, total) for number, total in enumerate(t for row in sums for t in row)]
        with k.when(strip.later):
            for place, total in cells:
                total.value = strip.sums.vector(place, way.lanes)
        with k.loop(0, strip.steps, plain=True) as step:
            line = strip.band.at(strip.offsets[step])
            seen = [line.vector(v * way.lanes, way.lanes) for v in range(vectors)]
            for factor, row in zip(way.spread(k, strip.left.at(step * way.rows)), sums, strict=True):
                for value, total in zip(seen, row, strict=True):
                    total.value = way.step(k, total.value, value, factor)
        with k.when(k.negated(self.last)):
            for place, total in cells:
                strip.sums.put(place, total.value)
        return sums

    # --- final sums ---------------------------------------------------------------------------------

    def _store(self, panel: Value, at: Value, row: Value, values: list[Value]) -> None:
        """A vector of places, of each row: at once, if they lie in one row of the result and all rows are there."""
        k, w, way = self.k, self.w, self.way
        column = at - row * w.pitch
        whole = k.both(column + way.lanes <= self.columns, w.rows - panel * way.rows >= way.rows)
        if self.plan.sweep.scattered and way.masks:
            whole = k.both(whole, self._every_second)
        with k.when(whole):
            place, channel = self._place(panel, row, column), self.group * w.rows + panel * way.rows
            for r, value in enumerate(values):
                self._put(place + w.result_h * w.result_w * r, channel + r, value)
        cut = k.negated(whole)
        if self.plan.by_rows and not self.plan.sweep.scattered:
            there = k.both(cut, w.rows - panel * way.rows >= way.rows)
            with k.when(there):
                place, channel = self._place(panel, row, column), self.group * w.rows + panel * way.rows
                mask = self._mask(k.const(Type.I64, 0), self.columns - column)
                for r, value in enumerate(values):
                    self._put(place + w.result_h * w.result_w * r, channel + r, value, mask)
            cut = k.both(cut, k.negated(there))
        with k.when(cut):
            for r, value in enumerate(values):
                self.corner.put(r * way.lanes, value)
            self._store_held(panel, at, row, self.corner, way.lanes)

    def _place(self, panel: Value, row: Value, column: Value) -> Value:
        """Where a place of the first row of a panel lies in the result."""
        w = self.w
        first = self.corner_at + panel * self.way.rows * w.result_h * w.result_w
        return first + row * w.spread_h * w.result_w + column * w.spread_w

    @property
    def _every_second(self) -> str:
        """Whether places of a row lie two apart, which a masked store of a longer vector writes."""
        return self.w.spread_w.compare("eq", 2)

    def _store_held(self, panel: Value, at: Value, first_row: Value, held: Array, apart: int) -> None:
        """A vector of places of each row that is there, from memory: what lies in each row of the result of it."""
        k, w, way, scattered = self.k, self.w, self.way, self.plan.sweep.scattered
        rows = k.minimum(w.rows - panel * way.rows, way.rows)
        channel, plane = self.group * w.rows + panel * way.rows, w.result_h * w.result_w
        last_row = k.minimum((at + (way.lanes - 1)) // w.pitch, self.rows - 1)
        with k.loop(first_row, last_row + 1, plain=True) as row:
            column = at - row * w.pitch  # of the first lane: before the row's begin where it is negative
            begin, end = k.maximum(0 - column, 0), k.minimum(self.columns - column, way.lanes)
            place = self._place(panel, row, column)
            if way.masks:
                mask = self._mask(begin, end)
                with k.when(self._every_second if scattered else "true"), k.loop(0, rows, plain=True) as r:
                    self._put(place + plane * r, channel + r, held.vector(r * apart, way.lanes), mask)
            if scattered or not way.masks:
                single = k.negated(self._every_second) if way.masks else "true"
                with k.when(single), k.loop(0, rows, plain=True) as r, k.loop(begin, end, plain=True) as lane:
                    value = self.plan.finish.scaled(k, self.plan.sweep.ty, channel + r, held[r * apart + lane])
                    k.operand(0, self.plan.sweep.ty)[place + plane * r + lane * w.spread_w] = value

    def _mask(self, begin: Value, end: Value) -> str:
        """The lanes from begin to end."""
        k, lanes = self.k, self.way.lanes
        numbers = Value(k, Type.I64, f"<{', '.join(f'i64 {n}' for n in range(lanes))}>", lanes)
        return k.both(numbers >= begin, numbers < end, lanes)

    def _put(self, place: Value, channel: Value, value: Value, mask: str = "") -> None:
        """The finished values of all places of a row of the result, or of those of a mask."""
        k, sweep, lanes = self.k, self.plan.sweep, value.lanes
        value, output = self.plan.finish.scaled(k, sweep.ty, channel, value), k.operand(0, sweep.ty)
        if not sweep.scattered:
            if mask:
                output.put_some(place, value, mask)
            else:
                output.put(place, value)
        elif self.way.masks:
            twice = k.shuffle(value, value, [n // 2 for n in range(2 * lanes)])
            bits, order = vector("i1", lanes), ", ".join(f"i32 {lanes if n % 2 else n // 2}" for n in range(2 * lanes))
            chosen = mask or f"<{', '.join(['i1 true'] * lanes)}>"
            second = f"shufflevector {bits} {chosen}, {bits} zeroinitializer, <{2 * lanes} x i32> <{order}>"
            output.put_some(place, twice, k.op(second))
        else:
            for lane in range(lanes):
                output[place + self.w.spread_w * lane] = k.lane(value, lane)
