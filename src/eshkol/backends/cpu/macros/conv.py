"""Conv2D and its gradient in the input, as matrix products whose right side is gathered on the way.

Comes in: a `Sweep` (see `conv_plan`) of source and kernel. Goes out: channels × places, for each image, group and class
of places; the places of a class are numbered through. The sum runs over steps, tap by tap (step = tap · channels +
channel), in blocks that fit a task's stack. No unfolded source is ever held.

A first phase packs the kernel into scratch, [class][panel of `rows` channels of the result][step][rows]. A task of the
second phase takes a share of a group's panels and a stretch of places: for each block of steps it gathers the source
that the places need, [strip of `columns` places][step][columns], and multiplies with the inner loop of `micro`. Sums of
blocks before the last wait in the output, or in scratch where the output is of a 16-bit type.

Where a group has few channels, `conv_direct` does better, and where vectors are long, `conv_lines`. As everywhere in
these macros, padding is multiplied as zero: where the kernel (of the weight's gradient: the other factor) is infinite
or NaN, it gives NaN.
"""

from __future__ import annotations

from contextlib import nullcontext

from eshkol.atlas.isa import Instruction
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros import conv_direct, conv_lines
from eshkol.backends.cpu.macros.conv_plan import Finish, Sweep, Words, pack_panel, packed_at
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, Variable, compute_type, macro_of
from eshkol.backends.cpu.macros.micro import Tile, up
from eshkol.backends.cpu.tune import LEAST_WORK, choice
from eshkol.llvm.targets import Target

STACK_BYTES = 160 << 10  # of gathered source
PLACES = 64  # of a stretch, about: so often is a panel of the kernel used while it is in the first cache
ENOUGH_TASKS = 16  # with fewer stretches than this, channels of the result are split among tasks


def conv2d(i: Instruction, target: Target) -> Macro | None:
    """The convolution itself."""
    return _lowered(i, target, Finish(), backward=False)


def conv2d_grad_input(i: Instruction, target: Target) -> Macro | None:
    """Its gradient in the input."""
    return _lowered(i, target, Finish(), backward=True)


def fused_conv2d(i: Instruction, target: Target) -> Macro | None:
    """The convolution and what follows it."""
    return _lowered(i, target, Finish.of(i), backward=False)


def _lowered(i: Instruction, target: Target, finish: Finish, *, backward: bool) -> Macro | None:
    sweep = Sweep.of(i, backward)
    if sweep is None:
        return None
    for plan in (conv_direct.DirectPlan, conv_lines.LinesPlan):
        if (found := plan.of(sweep, finish, target)) is not None:
            return found.macro()
    return ConvolutionPlan(sweep, finish, target).macro()


class ConvolutionPlan:
    """How a sweep is cut up."""

    def __init__(self, sweep: Sweep, finish: Finish, target: Target) -> None:
        self.sweep, self.ty, self.finish, self.target = sweep, sweep.ty, finish, target
        kind = f"{sweep.ty}{'_scattered' if sweep.scattered else ''}{finish.name}"
        self.name = f"conv2d_{kind}".lower()
        self.tile = tile = Tile.of(compute_type(sweep.ty), target)
        self.stretch = up(self._places(), tile.columns)
        self.longest_block = STACK_BYTES // (self.stretch * tile.ty.size_bytes)
        most_taps = max(p.taps for p in sweep.down.parts) * max(p.taps for p in sweep.across.parts)
        steps, panels = max(1, sweep.channels * most_taps), -(-sweep.rows // tile.rows)
        places = max(p.count for p in sweep.down.parts) * max(p.count for p in sweep.across.parts)
        stretches = -(-places // self.stretch)
        self.tasks = sweep.batch * sweep.groups * sweep.classes * stretches
        shares = min(panels, max(1, ENOUGH_TASKS // max(self.tasks, 1)))
        per_task = -(-panels // shares)
        blocks = -(-steps // self.longest_block)
        held = up(sweep.groups * panels * tile.rows * sweep.channels * sweep.taps * tile.ty.size_bytes, 64)
        waits = sweep.ty.is_half and blocks > 1
        plane = sweep.down.result * sweep.across.result
        self.scratch = held + waits * sweep.batch * sweep.groups * sweep.rows * plane * tile.ty.size_bytes
        self.words = sweep.words() | {
            "block": -(-steps // blocks), "panels": panels, "panels_per_task": per_task, "stretches": stretches,
            "shares": -(-panels // per_task), "waiting_at": held,
        }  # fmt: skip
        self.packs = sweep.groups * sweep.classes * panels

    def _places(self) -> int:
        """Places of a stretch: the usual number, or the one that was measured to be fastest."""
        sweep = self.sweep
        work = sweep.batch * sweep.groups * sweep.rows * sweep.channels * sweep.taps
        if work * sweep.down.result * sweep.across.result // sweep.classes < LEAST_WORK:
            return PLACES
        (found,) = choice("conv stretch", f"{self.name} {sweep}", ((PLACES // 2,), (2 * PLACES,)), (PLACES,))
        return found

    def macro(self) -> Macro:
        pack, multiply = Pack(self), Multiply(self)
        phases = (
            Phase(pack.k.function_name, self.packs, 4),
            Phase(multiply.k.function_name, self.tasks * self.words["shares"]),
        )
        return macro_of((pack.k, multiply.k), phases, (*self.words.values(), *self.sweep.parts()), self.scratch)


class Pack:
    """Phase one: a task packs one panel of the kernel; rows past the last channel repeat it and are never stored."""

    def __init__(self, plan: ConvolutionPlan) -> None:
        tile = plan.tile
        self.k = k = Kernel(f"{plan.name}_pack", plan.target, plan.finish.operands)
        w = Words(k, list(plan.words))
        with k.tasks() as task:
            pack_panel(k, w, plan.ty, k.scratch(tile.ty), task, w.panels, tile.rows)


class Multiply:
    """Phase two: a task computes a stretch of places of a class for a share of a group's panels."""

    def __init__(self, plan: ConvolutionPlan) -> None:
        self.plan, self.tile = plan, plan.tile
        tile = plan.tile
        self.k = k = Kernel(plan.name, plan.target, plan.finish.operands)
        self.w = w = Words(k, list(plan.words))
        self.gathered = k.local(tile.ty, plan.longest_block * plan.stretch)
        self.corner = k.local(tile.ty, tile.rows * tile.columns)
        self.row_at, self.column_at, self.origin, self.into = (k.local(Type.I64, plan.stretch) for _ in range(4))
        self.sums = tile.sums(k)
        with k.tasks() as task:
            share, rest = task % w.shares, task // w.shares
            stretch, rest = rest % w.stretches, rest // w.stretches
            classes = w.parts_h * w.parts_w
            number, rest = rest % classes, rest // classes
            group, image = rest % w.groups, rest // w.groups
            self.down, self.across = w.parts_of(number)
            self.places, self.first = self.down.count * self.across.count, stretch * plan.stretch
            with k.when(self.first < self.places):  # classes have different numbers of places
                self.last = k.minimum(self.first + plan.stretch, self.places)
                self._locate()
                planes = (image * w.groups + group) * w.channels
                source = k.operand(1, plan.ty).at(planes * w.source_h * w.source_w)
                self.steps = self.down.taps * self.across.taps * w.channels
                blocks = k.maximum((self.steps + (w.block - 1)) // w.block, 1)
                with k.loop(0, blocks, plain=True) as block:
                    self.start = block * w.block
                    self.stop = k.minimum(self.start + w.block, self.steps)
                    self._gather(source)
                    self._multiply(image, group, share * w.panels_per_task)

    def _locate(self) -> None:
        """Row, column and position in a plane of the source at which each place of the stretch begins (they may lie
        outside), and its position in a plane of the result."""
        k, w, down, across = self.k, self.w, self.down, self.across
        with k.loop(0, self.plan.stretch, plain=True) as j:
            place = k.minimum(self.first + j, self.places - 1)
            row, column = place // across.count, place % across.count
            self.row_at[j] = top = row * w.step_h + down.first
            self.column_at[j] = left = column * w.step_w + across.first
            self.origin[j] = top * w.source_w + left
            self.into[j] = (down.start + row * w.spread_h) * w.result_w + across.start + column * w.spread_w

    def _gather(self, source: Array) -> None:
        """The source that the block's steps multiply, strip by strip and tap by tap."""
        k, w, n = self.k, self.w, self.tile.columns
        taps_across = k.maximum(self.across.taps, 1)
        first_tap, last_tap = self.start // w.channels, (self.stop - 1) // w.channels
        with k.loop(self.first, self.last, n, plain=True) as strip:
            j = strip - self.first
            left, right = self.column_at[j], self.column_at[j + n - 1]
            one_row = k.both(
                self.row_at[j].compare("eq", self.row_at[j + n - 1]), (right - left).compare("eq", w.step_w * (n - 1))
            )
            with k.loop(first_tap, last_tap + 1, plain=True) as tap:
                v, u, before = tap // taps_across * w.gap_h, tap % taps_across * w.gap_w, tap * w.channels
                channels = k.maximum(self.start - before, 0), k.minimum(self.stop - before, w.channels)
                target = self.gathered.at(j * (self.stop - self.start) + (before - self.start) * n)
                row_inside = (self.row_at[j] + v).to(Type.U64) < w.source_h
                inside = k.both(row_inside, k.both(left + u >= 0, right + u < w.source_w))
                whole = k.both(one_row, inside)
                begin = source.at(self.origin[j] + v * w.source_w + u)
                for step in (1, 2):
                    with k.when(k.both(whole, w.step_w.compare("eq", step))):
                        self._copy(begin, target, channels, step)
                with k.when(k.negated(k.both(whole, w.step_w <= 2))):
                    self._pick(source, target, channels, j, v, u)

    def _copy(self, begin: Array, target: Array, channels: tuple[Value, Value], step: int) -> None:
        """A strip whose places lie in one row of the source, side by side or every second."""
        k, w, n, lanes = self.k, self.w, self.tile.columns, self.tile.lanes
        second = [c + lanes + 1 for c in range(0, lanes, 2)]  # of a vector that begins an element early
        with k.loop(*channels, plain=True) as c:
            row = begin.at(c * w.source_h * w.source_w)
            k.prefetch(row.at(self.plan.stretch * step))  # what the next stretch will ask for
            for column in range(0, n, lanes):
                values = row.vector(column * step, lanes)
                if step == 2:
                    values = k.shuffle(
                        values, row.vector(column * step + lanes - 1, lanes), [*range(0, lanes, 2), *second]
                    )
                target.put(c * n + column, values)

    def _pick(self, source: Array, target: Array, channels: tuple[Value, Value], j: Value, v: Value, u: Value) -> None:
        """A strip whose places lie anywhere, in the padding too."""
        k, w, n = self.k, self.w, self.tile.columns
        row_inside = (self.row_at.vector(j, n) + v).to(Type.U64) < w.source_h
        inside = k.both(row_inside, (self.column_at.vector(j, n) + u).to(Type.U64) < w.source_w, n)
        offsets = k.where(inside, self.origin.vector(j, n) + (v * w.source_w + u), 0)
        starts = [source.at(k.lane(offsets, column)) for column in range(n)]
        with k.loop(*channels, plain=True) as c:
            values = k.joined([start[c * w.source_h * w.source_w] for start in starts])
            target.put(c * n, k.where(inside, values, 0))

    def _multiply(self, image: Value, group: Value, first_panel: Value) -> None:
        """The block's share of the sums, panel by panel and strip by strip."""
        k, w, tile = self.k, self.w, self.tile
        packed = k.scratch(tile.ty).at(packed_at(w, self.down, self.across, w.panels) * tile.rows)
        length, plane = self.stop - self.start, w.result_h * w.result_w
        with k.loop(first_panel, k.minimum(first_panel + w.panels_per_task, w.panels), plain=True) as panel:
            left = packed.at(((group * w.panels + panel) * self.steps + self.start) * tile.rows)
            channel = group * w.rows + panel * tile.rows
            corner = (image * w.groups * w.rows + channel) * plane
            with k.loop(self.first, self.last, tile.columns, plain=True) as strip:
                tile.clear(k, self.sums)
                right = self.gathered.at((strip - self.first) * length)
                tile.accumulate(k, self.sums, length, left, tile.rows, right, tile.columns)
                rows = k.minimum(w.rows - panel * tile.rows, tile.rows)
                columns = k.minimum(self.last - strip, tile.columns)
                into = self.into.at(strip - self.first)
                full = k.both(rows >= tile.rows, columns >= tile.columns)
                with k.when(full):
                    self._deposit(list(self._cells(corner, channel, into, strip)))
                with k.when(k.negated(full)):
                    for r, c, total in tile.cells(self.sums):
                        self.corner.put(r * tile.columns + c, total.value)
                    with k.loop(0, rows, plain=True) as row, k.loop(0, columns, plain=True) as column:
                        single = k.variable(self.corner[row * tile.columns + column])
                        self._deposit([(corner + row * plane + into[column], channel + row, single)])

    def _cells(self, corner: Value, channel: Value, into: Array, strip: Value) -> list[tuple[Value, Value, Variable]]:
        """The sums of a whole tile with their places and channels: vectors, or single ones where places lie apart."""
        k, tile, plane = self.k, self.tile, self.w.result_h * self.w.result_w
        if not self.plan.sweep.scattered:
            return [(corner + plane * r + strip + c, channel + r, total) for r, c, total in tile.cells(self.sums)]
        places = [into[c] for c in range(tile.columns)]
        return [
            (corner + plane * r + places[c + lane], channel + r, k.variable(k.lane(total.value, lane)))
            for r, c, total in tile.cells(self.sums)
            for lane in range(tile.lanes)
        ]

    def _deposit(self, sums: list[tuple[Value, Value, Variable]]) -> None:
        """Add what waits from the blocks before, and store: to wait again, or as the result."""
        k, ty, finish = self.k, self.plan.ty, self.plan.finish
        output = k.operand(0, ty)
        waiting = k.scratch(self.tile.ty, self.w.waiting_at) if ty.is_half else output
        with k.when(self.start > 0):
            for place, _, total in sums:
                total.value = total.value + waiting.vector(place, total.lanes)
        plain = waiting is output and finish == Finish()
        if not plain:
            with k.when(self.stop < self.steps):
                for place, _, total in sums:
                    waiting.put(place, total.value)
        with nullcontext() if plain else k.when(self.stop >= self.steps):
            values = [finish.scaled(k, ty, channel, total.value) for _, channel, total in sums]
            if finish.function:
                values = self._activated(values)
            for (place, _, _), value in zip(sums, values, strict=True):
                output.put(place, value)

    def _activated(self, values: list[Value]) -> list[Value]:
        """The activation of values, by way of memory where there are many, in a loop that LLVM vectorizes."""
        k, name = self.k, self.plan.finish.function
        if len(values) == 1 and values[0].lanes == 1:
            return [k.math(name, values[0])]
        lanes = values[0].lanes
        for number, value in enumerate(values):
            self.corner.put(number * lanes, value)
        with k.loop(0, len(values) * lanes) as at:
            self.corner[at] = k.math(name, self.corner[at])
        return [self.corner.vector(number * lanes, lanes) for number in range(len(values))]


LOWERINGS: dict[str, Lowering] = {
    "Conv2D": conv2d,
    "FusedConv2D": fused_conv2d,
    "Conv2DGradInput": conv2d_grad_input,
}
