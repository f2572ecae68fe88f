"""Conv2D as a matrix product whose right side is gathered on the way, so that no unfolded input is ever held.

Comes in: input (batch × in_channels × height × width) and kernel (out_channels × in_channels × kernel_h × kernel_w).
Goes out: out_channels × places, for each image; the places of an output plane are numbered through. The sum runs over
steps, tap by tap (step = tap · in_channels + channel), in blocks that fit a task's stack.

A first phase packs the kernel into scratch, [panel of `rows` output channels][step][rows]. A task of the second phase
takes a group of panels and a stretch of places: for each block of steps it gathers the input that the places need,
[strip of `columns` places][step][columns], and multiplies with the inner loop of `micro`. Sums of blocks before the
last wait in the output, or in scratch where the output is of a 16-bit type.
"""

from __future__ import annotations

from contextlib import nullcontext

from eshkol.atlas.isa import Instruction
from eshkol.atlas.table.convolutions import conv_output
from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, Variable, compute_type
from eshkol.backends.cpu.macros.micro import Tile, up
from eshkol.backends.llvm.compile import Target
from eshkol.backends.llvm.macro import Lowering, Macro, Phase

STACK_BYTES = 160 << 10  # of gathered input
PLACES = 64  # of a stretch, about: so often is a panel of the kernel used while it is in the first cache
ENOUGH_TASKS = 16  # with fewer stretches than this, output channels are split among tasks

WORDS = ("in_channels", "out_channels", "height", "width", "kernel_h", "kernel_w", "stride_h", "stride_w",
         "padding_h", "padding_w", "out_h", "out_w", "steps", "block", "panels", "panels_per_task",
         "stretches", "groups", "blocks", "waiting_at")  # fmt: skip


def conv2d(i: Instruction, target: Target) -> Macro:
    """The instruction as two phases."""
    plan = Plan(i, target)
    pack, multiply = Pack(plan), Multiply(plan)
    declared = tuple(dict.fromkeys([*pack.k.declarations, *multiply.k.declarations]))
    w = plan.words
    phases = (
        Phase(pack.k.function_name, w["panels"], 4),
        Phase(multiply.k.function_name, i.batch * w["stretches"] * w["groups"]),
    )
    return Macro((pack.k.function(), multiply.k.function()), phases, tuple(w.values()), declared, plan.scratch)


class Plan:
    """How an instruction is cut up."""

    def __init__(self, i: Instruction, target: Target) -> None:
        self.ty, self.target, self.name = i.ty, target, f"conv2d_{i.ty}".lower()
        self.tile = tile = Tile.of(compute_type(i.ty), target)
        self.stretch = up(PLACES, tile.columns)
        self.longest_block = STACK_BYTES // (self.stretch * tile.ty.size_bytes)
        (out_h, out_w), (height, width) = conv_output(i), (i.height, i.width)
        if (i.kernel_h, i.kernel_w, *i.stride, *i.padding) == (1, 1, 1, 1, 0, 0):  # a matrix product: one long row
            height, width, out_h, out_w = 1, height * width, 1, out_h * out_w
        steps, panels = i.in_channels * i.kernel_h * i.kernel_w, -(-i.out_channels // tile.rows)
        blocks = -(-steps // self.longest_block)
        stretches = -(-out_h * out_w // self.stretch)
        groups = min(panels, max(1, ENOUGH_TASKS // max(i.batch * stretches, 1)))
        per_task = -(-panels // groups)
        packed = up(panels * tile.rows * steps * tile.ty.size_bytes, 64)
        waits = i.ty.is_half and blocks > 1
        self.scratch = packed + waits * i.batch * i.out_channels * out_h * out_w * tile.ty.size_bytes
        numbers = (i.in_channels, i.out_channels, height, width, i.kernel_h, i.kernel_w, *i.stride, *i.padding,
                   out_h, out_w, steps, -(-steps // blocks), panels, per_task, stretches, -(-panels // per_task),
                   blocks, packed)  # fmt: skip
        self.words = dict(zip(WORDS, numbers, strict=True))


class Part:
    """What both phases know: every word as an attribute."""

    in_channels: Value
    out_channels: Value
    height: Value
    width: Value
    kernel_h: Value
    kernel_w: Value
    stride_h: Value
    stride_w: Value
    padding_h: Value
    padding_w: Value
    out_h: Value
    out_w: Value
    steps: Value
    block: Value
    panels: Value
    panels_per_task: Value
    stretches: Value
    groups: Value
    blocks: Value
    waiting_at: Value

    def __init__(self, plan: Plan, name: str) -> None:
        self.plan, self.tile = plan, plan.tile
        self.k = Kernel(name, plan.target, operands=3)
        for number, word in enumerate(WORDS):
            setattr(self, word, self.k.word(number))


class Pack(Part):
    """Phase one: a task packs one panel of the kernel; rows past the last channel repeat it and are never stored."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, f"{plan.name}_pack")
        k, rows = self.k, self.tile.rows
        source, packed = k.operand(2, plan.ty), k.scratch(self.tile.ty)
        taps = self.kernel_h * self.kernel_w
        with k.tasks() as panel:
            target = packed.at(panel * self.steps * rows)
            with k.loop(0, self.in_channels, plain=True) as c, k.loop(0, taps, plain=True) as tap:
                for r in range(rows):
                    channel = k.minimum(panel * rows + r, self.out_channels - 1)
                    weight = source[(channel * self.in_channels + c) * taps + tap]
                    target[(tap * self.in_channels + c) * rows + r] = weight


class Multiply(Part):
    """Phase two: a task computes a stretch of places for a group of panels."""

    def __init__(self, plan: Plan) -> None:
        super().__init__(plan, plan.name)
        k, tile = self.k, self.tile
        self.gathered = k.local(tile.ty, plan.longest_block * plan.stretch)
        self.corner = k.local(tile.ty, tile.rows * tile.columns)
        self.down, self.across, self.origin = (k.local(Type.I64, plan.stretch) for _ in range(3))
        self.sums, self.places = tile.sums(k), self.out_h * self.out_w
        with k.tasks() as task:
            group, rest = task % self.groups, task // self.groups
            stretch, image = rest % self.stretches, rest // self.stretches
            self.first = stretch * plan.stretch
            self.last = k.minimum(self.first + plan.stretch, self.places)
            self._locate()
            source = k.operand(1, plan.ty).at(image * self.in_channels * self.height * self.width)
            with k.loop(0, self.blocks, plain=True) as number:
                self.start = number * self.block
                self.stop = k.minimum(self.start + self.block, self.steps)
                self._gather(source)
                self._multiply(image * self.out_channels, group * self.panels_per_task)

    def _locate(self) -> None:
        """Row, column and position in a plane at which each place of the stretch begins; they may lie outside."""
        k = self.k
        with k.loop(0, self.plan.stretch, plain=True) as j:
            place = k.minimum(self.first + j, self.places - 1)
            self.down[j] = down = place // self.out_w * self.stride_h - self.padding_h
            self.across[j] = across = place % self.out_w * self.stride_w - self.padding_w
            self.origin[j] = down * self.width + across

    def _gather(self, source: Array) -> None:
        """The input that the block's steps multiply, strip by strip and tap by tap."""
        k, n = self.k, self.tile.columns
        first_tap, last_tap = self.start // self.in_channels, (self.stop - 1) // self.in_channels
        with k.loop(self.first, self.last, n, plain=True) as strip:
            j = strip - self.first
            left, right = self.across[j], self.across[j + n - 1]
            one_row = k.both(
                self.down[j].compare("eq", self.down[j + n - 1]), (right - left).compare("eq", self.stride_w * (n - 1))
            )
            with k.loop(first_tap, last_tap + 1, plain=True) as tap:
                v, u, before = tap // self.kernel_w, tap % self.kernel_w, tap * self.in_channels
                channels = (
                    k.maximum(self.start - before, 0),
                    k.minimum(self.stop - before, self.in_channels),
                )
                target = self.gathered.at(j * (self.stop - self.start) + (before - self.start) * n)
                row_inside = (self.down[j] + v).to(Type.U64) < self.height
                inside = k.both(row_inside, k.both(left + u >= 0, right + u < self.width))
                whole = k.both(one_row, inside)
                begin = source.at(self.origin[j] + v * self.width + u)
                for stride in (1, 2):
                    with k.when(k.both(whole, self.stride_w.compare("eq", stride))):
                        self._copy(begin, target, channels, stride)
                with k.when(k.negated(k.both(whole, self.stride_w <= 2))):
                    self._pick(source, target, channels, j, v, u)

    def _copy(self, begin: Array, target: Array, channels: tuple[Value, Value], stride: int) -> None:
        """A strip whose places lie in one row of the input, side by side or every second."""
        k, n, lanes = self.k, self.tile.columns, self.tile.lanes
        second = [c + lanes + 1 for c in range(0, lanes, 2)]  # of a vector that begins an element early
        with k.loop(*channels, plain=True) as c:
            row = begin.at(c * self.height * self.width)
            k.prefetch(row.at(self.plan.stretch * stride))  # what the next stretch will ask for
            for column in range(0, n, lanes):
                values = row.vector(column * stride, lanes)
                if stride == 2:
                    values = k.shuffle(
                        values, row.vector(column * stride + lanes - 1, lanes), [*range(0, lanes, 2), *second]
                    )
                target.put(c * n + column, values)

    def _pick(self, source: Array, target: Array, channels: tuple[Value, Value], j: Value, v: Value, u: Value) -> None:
        """A strip whose places lie anywhere, in the padding too."""
        k, n = self.k, self.tile.columns
        row_inside = (self.down.vector(j, n) + v).to(Type.U64) < self.height
        inside = k.both(row_inside, (self.across.vector(j, n) + u).to(Type.U64) < self.width, n)
        offsets = k.where(inside, self.origin.vector(j, n) + (v * self.width + u), 0)
        starts = [source.at(k.lane(offsets, column)) for column in range(n)]
        with k.loop(*channels, plain=True) as c:
            values = k.joined([start[c * self.height * self.width] for start in starts])
            target.put(c * n, k.where(inside, values, 0))

    def _multiply(self, channels: Value, first_panel: Value) -> None:
        """The block's share of the sums, panel by panel and strip by strip."""
        k, tile = self.k, self.tile
        packed = k.scratch(tile.ty)
        length = self.stop - self.start
        with k.loop(first_panel, k.minimum(first_panel + self.panels_per_task, self.panels), plain=True) as panel:
            left = packed.at((panel * self.steps + self.start) * tile.rows)
            with k.loop(self.first, self.last, tile.columns, plain=True) as strip:
                tile.clear(k, self.sums)
                right = self.gathered.at((strip - self.first) * length)
                tile.accumulate(k, self.sums, length, left, tile.rows, right, tile.columns)
                rows = k.minimum(self.out_channels - panel * tile.rows, tile.rows)
                columns = k.minimum(self.last - strip, tile.columns)
                corner = (channels + panel * tile.rows) * self.places + strip
                full = k.both(rows >= tile.rows, columns >= tile.columns)
                with k.when(full):
                    self._deposit([(corner + r * self.places + c, total) for r, c, total in tile.cells(self.sums)])
                with k.when(k.negated(full)):
                    for r, c, total in tile.cells(self.sums):
                        self.corner.put(r * tile.columns + c, total.value)
                    with k.loop(0, rows, plain=True) as row, k.loop(0, columns, plain=True) as column:
                        single = k.variable(self.corner[row * tile.columns + column])
                        self._deposit([(corner + row * self.places + column, single)])

    def _deposit(self, sums: list[tuple[Value, Variable]]) -> None:
        """Add what waits from the blocks before, and store: to wait again, or as the result."""
        k = self.k
        output = k.operand(0, self.plan.ty)
        waiting = k.scratch(self.tile.ty, self.waiting_at) if self.plan.ty.is_half else output
        with k.when(self.start > 0):
            for place, total in sums:
                total.value = total.value + waiting.vector(place, total.lanes)
        if waiting is not output:
            with k.when(self.stop < self.steps):
                for place, total in sums:
                    waiting.put(place, total.value)
        with k.when(self.stop >= self.steps) if waiting is not output else nullcontext():
            for place, total in sums:
                output.put(place, total.value)


LOWERINGS: dict[str, Lowering] = {"Conv2D": conv2d}
