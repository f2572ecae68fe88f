"""Convolutions of few channels into few, straight from the definition: depthwise ones, sums over windows.

A matrix product would use only as many rows of its tile as a group has channels. Here a task takes a band of places of
one class (see `conv_band`), and each vector of places is the sum over steps of a weight times a vector of the band:

    result[row, column …] = Σ over steps: weight[step] · band[offset[step] + row · pitch + column …]

A first phase packs the kernel, as for the product, but in panels of one channel.
"""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Macro, Phase
from eshkol.backends.cpu.macros.conv_band import Band, Shape
from eshkol.backends.cpu.macros.conv_plan import Finish, Sweep, Words, pack_panel, packed_at
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, compute_type, macro_of
from eshkol.llvm.targets import Target

FEW_ROWS = 4  # channels of the result in a group, from which on the product is faster
BAND_BYTES = 96 << 10
MOST_STEPS = 4096
MOST_PLACES = 4096  # of a task
MOST_COLUMNS = 512
ENOUGH_TASKS = 16
SUMS = 8  # vectors of sums, at most: enough to hide how long an addition takes
LINES = 4  # rows of places that are summed at once, of one channel
SHORTEST = 4  # lanes of a vector


@dataclass(frozen=True)
class DirectPlan:
    """How a sweep is cut up."""

    sweep: Sweep
    finish: Finish
    target: Target
    shape: Shape

    @staticmethod
    def of(sweep: Sweep, finish: Finish, target: Target) -> DirectPlan | None:
        """The plan; None where a matrix product is faster, or a band does not fit."""
        most = max(p.taps for p in sweep.down.parts) * max(p.taps for p in sweep.across.parts) * sweep.channels
        if sweep.rows >= FEW_ROWS or most > MOST_STEPS or finish.function:
            return None
        height = max(p.count for p in sweep.down.parts)
        width = max(p.count for p in sweep.across.parts)
        size = compute_type(sweep.ty).size_bytes * sweep.channels

        def fits(rows: int, columns: int) -> bool:
            return Shape.of(sweep, rows, columns).plane * size <= BAND_BYTES

        columns = min(width, MOST_COLUMNS)
        while columns > 16 and not fits(1, columns):
            columns = -(-columns // 2)
        if not fits(1, columns):
            return None
        others = sweep.batch * sweep.groups * sweep.classes * -(-width // columns)
        rows = max(1, min(height, MOST_PLACES // columns, height * others // ENOUGH_TASKS))
        while rows > 1 and not fits(rows, columns):
            rows = -(-rows // 2)
        return DirectPlan(sweep, finish, target, Shape.of(sweep, rows, columns))

    def macro(self) -> Macro:
        sweep, shape = self.sweep, self.shape
        bands_h = -(-max(p.count for p in sweep.down.parts) // shape.rows)
        bands_w = -(-max(p.count for p in sweep.across.parts) // shape.columns)
        words = sweep.words() | shape.words() | {"bands_h": bands_h, "bands_w": bands_w}
        name = f"conv2d_direct_{sweep.ty}{'_scattered' if sweep.scattered else ''}{self.finish.name}".lower()
        pack = Kernel(f"{name}_pack", self.target, self.finish.operands)
        w = Words(pack, list(words))
        compute = compute_type(sweep.ty)
        with pack.tasks() as task:
            pack_panel(pack, w, sweep.ty, pack.scratch(compute), task, w.rows, 1)
        sums = _Sums(self, name, list(words)).k
        phases = (
            Phase(pack.function_name, sweep.classes * sweep.groups * sweep.rows, 64),
            Phase(name, sweep.batch * sweep.groups * sweep.classes * bands_h * bands_w),
        )
        scratch = sweep.groups * sweep.rows * sweep.channels * sweep.taps * compute.size_bytes
        return macro_of((pack, sums), phases, (*words.values(), *sweep.parts()), scratch)


class _Sums:
    """Phase two: a task computes a band of places of a group's channels."""

    def __init__(self, plan: DirectPlan, name: str, words: list[str]) -> None:
        self.plan, self.compute = plan, compute_type(plan.sweep.ty)
        self.k = k = Kernel(name, plan.target, plan.finish.operands)
        self.w = w = Words(k, words)
        self.lanes = max(plan.target.vector_bits, 128) // self.compute.bits
        self.widths = [lanes for lanes in (self.lanes >> n for n in range(5)) if lanes >= min(SHORTEST, self.lanes)]
        self.memory = k.local(self.compute, BAND_BYTES // self.compute.size_bytes)
        self.offsets = k.local(Type.I64, MOST_STEPS)
        with k.tasks() as task:
            across_at, rest = task % w.bands_w * w.band_columns, task // w.bands_w
            down_at, rest = rest % w.bands_h * w.band_rows, rest // w.bands_h
            classes = w.parts_h * w.parts_w
            number, unit = rest % classes, rest // classes  # a unit is a group of an image
            self.down, self.across = down, across = w.parts_of(number)
            with k.when(k.both(down_at < down.count, across_at < across.count)):
                band = Band(k, w, self.memory, down, across)
                source = k.operand(1, plan.sweep.ty).at(unit * w.channels * w.source_h * w.source_w)
                band.fill(source, w.channels, down_at, across_at)
                with (
                    k.loop(0, down.taps, plain=True) as v,
                    k.loop(0, across.taps, plain=True) as u,
                    k.loop(0, w.channels, plain=True) as c,
                ):
                    step = (v * across.taps + u) * w.channels + c
                    self.offsets[step] = band.offset(v, u) + c * w.plane
                self._rows(unit, down_at, across_at)

    def _rows(self, unit: Value, top: Value, left: Value) -> None:
        k, w, down, across = self.k, self.w, self.down, self.across
        steps, group = down.taps * across.taps * w.channels, unit % w.groups
        rows, columns = k.minimum(down.count - top, w.band_rows), k.minimum(across.count - left, w.band_columns)
        packed = k.scratch(self.compute).at(packed_at(w, down, across, w.rows) + group * w.rows * steps)
        corner = (down.start + top * w.spread_h) * w.result_w + across.start + left * w.spread_w
        for count in range(1, FEW_ROWS):  # all channels of the result at once: each vector of the band is read once

            def lines(y: Value, several: int, count: int = count) -> list[_Line]:
                return [
                    _Line(self.memory.at((y + r) * w.pitch), [
                        _Row(
                            packed.at(steps * own), group * count + own,
                            ((unit * count + own) * w.result_h + (y + r) * w.spread_h) * w.result_w + corner,
                        )
                        for own in range(count)
                    ])
                    for r in range(several)
                ]  # fmt: skip

            several = LINES // count
            with k.when(w.rows.compare("eq", count)):
                enough = rows >= several if several > 1 else "true"
                with k.when(enough), k.loop(0, rows, several, plain=True) as y:  # the last ones move back
                    self._lines(lines(k.minimum(y, rows - several), several), steps, columns)
                with k.when(k.negated(enough)), k.loop(0, rows, plain=True) as y:
                    self._lines(lines(y, 1), steps, columns)

    def _lines(self, lines: list[_Line], steps: Value, columns: Value) -> None:
        """Rows of places, in strips of as many vectors of each as there are sums for; shorter vectors for short rows.

        The last strip moves back to where the row ends, and of two vectors the second one.
        """
        k = self.k
        several = max(1, SUMS // sum(len(line.targets) for line in lines))
        widths = [*self.widths] if len(lines) > 1 else [self.widths[0]]
        for lanes in widths:
            fits = columns >= lanes
            if lanes != self.widths[0]:
                fits = k.both(fits, columns < 2 * lanes)
            wide = several * lanes
            with k.when(fits):
                whole = columns - columns % wide
                with k.loop(0, whole, wide, plain=True) as x:
                    self._strip(lines, steps, [x + lanes * number for number in range(several)], lanes)
                for vectors in range(1, several + 1):
                    rest = columns - whole
                    with k.when(k.both(rest > lanes * (vectors - 1), rest <= lanes * vectors)):
                        places = [k.minimum(whole + lanes * number, columns - lanes) for number in range(vectors)]
                        self._strip(lines, steps, places, lanes)
        with k.when(columns < widths[-1]), k.loop(0, columns, plain=True) as x:
            self._strip(lines, steps, [x], 1)

    def _strip(self, lines: list[_Line], steps: Value, places: list[Value], lanes: int) -> None:
        """Vectors of the rows that begin at these places, of every row."""
        k, w, plan = self.k, self.w, self.plan
        zero = k.const(self.compute, 0, lanes)
        sums = [[[k.variable(zero) for _ in places] for _ in line.targets] for line in lines]
        starts = [[line.band.at(place) for place in places] for line in lines]
        with k.loop(0, steps, plain=True) as step:
            offset = self.offsets[step]
            weights = [k.splat(target.weights[step], lanes) for target in lines[0].targets]
            for own, at in zip(sums, starts, strict=True):
                seen = [start.vector(offset, lanes) for start in at]
                for weight, totals in zip(weights, own, strict=True):
                    for value, total in zip(seen, totals, strict=True):
                        total.value = k.muladd(weight, value, total.value)
        output = k.operand(0, plan.sweep.ty)
        for line, own in zip(lines, sums, strict=True):
            for target, totals in zip(line.targets, own, strict=True):
                for place, total in zip(places, totals, strict=True):
                    value = plan.finish.scaled(k, plan.sweep.ty, target.channel, total.value)
                    if not plan.sweep.scattered:
                        output.put(target.into + place, value)
                        continue
                    for lane in range(lanes):
                        single = k.lane(value, lane) if lanes > 1 else value
                        output[target.into + (place + lane) * w.spread_w] = single


@dataclass(frozen=True)
class _Line:
    """A row of places."""

    band: Array  # from its first place on
    targets: list[_Row]  # for each channel of the result


@dataclass(frozen=True)
class _Row:
    """The same in one channel of the result."""

    weights: Array  # of all steps
    channel: Value
    into: Value  # where its first place lies
