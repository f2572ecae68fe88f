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
VECTORS = 4  # that are summed at once: as many loads wait for each other


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
            with k.when(w.rows.compare("eq", count)), k.loop(0, rows, plain=True) as y:
                line = self.memory.at(y * w.pitch)
                targets = [
                    _Row(
                        packed.at(steps * r), group * count + r,
                        ((unit * count + r) * w.result_h + y * w.spread_h) * w.result_w + corner,
                    )
                    for r in range(count)
                ]  # fmt: skip
                self._line(line, targets, steps, columns)

    def _line(self, line: Array, targets: list[_Row], steps: Value, columns: Value) -> None:
        """A row of places, in strips of vectors."""
        k, lanes = self.k, self.lanes
        wide = VECTORS * lanes
        whole = columns - columns % wide
        with k.loop(0, whole, wide, plain=True) as x:
            self._strip(line.at(x), targets, steps, x, VECTORS, lanes)
        with k.when(columns >= lanes), k.loop(whole, columns, lanes, plain=True) as x:  # the last one moves back
            place = k.minimum(x, columns - lanes)
            self._strip(line.at(place), targets, steps, place, 1, lanes)
        with k.when(columns < lanes), k.loop(0, columns, plain=True) as x:
            self._strip(line.at(x), targets, steps, x, 1, 1)

    def _strip(self, places: Array, targets: list[_Row], steps: Value, x: Value, vectors: int, lanes: int) -> None:
        k, w, plan = self.k, self.w, self.plan
        zero = k.const(self.compute, 0, lanes)
        sums = [[k.variable(zero) for _ in range(vectors)] for _ in targets]
        with k.loop(0, steps, plain=True) as step:
            at = places.at(self.offsets[step])
            seen = [at.vector(number * lanes, lanes) for number in range(vectors)]
            for target, line in zip(targets, sums, strict=True):
                weight = k.splat(target.weights[step], lanes)
                for vector, total in zip(seen, line, strict=True):
                    total.value = k.muladd(weight, vector, total.value)
        output = k.operand(0, plan.sweep.ty)
        for target, line in zip(targets, sums, strict=True):
            for number, total in enumerate(line):
                value = plan.finish.scaled(k, plan.sweep.ty, target.channel, total.value)
                if not plan.sweep.scattered:
                    output.put(target.into + x + number * lanes, value)
                    continue
                for lane in range(lanes):
                    single = k.lane(value, lane) if lanes > 1 else value
                    output[target.into + (x + (number * lanes + lane)) * w.spread_w] = single


@dataclass(frozen=True)
class _Row:
    """A row of places of one channel of the result."""

    weights: Array  # of all steps
    channel: Value
    into: Value  # where its first place lies
