"""A band of a convolution's source on a task's stack, padded and parted so that every tap reads it in straight lines.

A band holds what some rows and columns of places need, channel by channel. Padding is zeros. A step s along an axis
parts it into `phases`: places of the source with the same remainder lie side by side, so that neighbouring places of
the result read neighbouring elements, whatever the stride. Element (row, column) of the places reads, by a tap,

    band[channel · plane + offset of the tap + row · pitch + column]
"""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.conv_plan import PartValues, Sweep, Words
from eshkol.backends.cpu.macros.gemm_pack import woven
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, compute_type


@dataclass(frozen=True)
class Shape:
    """So many rows and columns of places, and what a band for them measures."""

    rows: int
    columns: int
    phases_h: int
    phases_w: int
    lines: int  # of a phase
    pitch: int

    @staticmethod
    def of(sweep: Sweep, rows: int, columns: int) -> Shape:
        down, across = sweep.down, sweep.across
        return Shape(
            rows, columns, min(down.step, down.reach + 1), min(across.step, across.reach + 1),
            rows + down.reach // down.step, columns + across.reach // across.step,
        )  # fmt: skip

    @property
    def plane(self) -> int:
        """Elements of a channel."""
        return self.phases_h * self.phases_w * self.lines * self.pitch

    def words(self) -> dict[str, int]:
        return {"band_rows": self.rows, "band_columns": self.columns, "phases_h": self.phases_h,
                "phases_w": self.phases_w, "lines": self.lines, "pitch": self.pitch, "plane": self.plane}  # fmt: skip


class Band:
    """A band at run time: for places from (top, left) on, of the class that two parts are.

    Its elements may be groups of neighbouring channels, woven: `memory` then has as many elements for each.
    """

    def __init__(
        self, k: Kernel, w: Words, memory: Array, down: PartValues, across: PartValues, group: int = 1
    ) -> None:
        self.k, self.w, self.memory, self.down, self.across, self.group = k, w, memory, down, across, group
        self.above = k.minimum((down.taps - 1) * w.gap_h, 0)  # of the first tap, the tap that lies first
        self.left = k.minimum((across.taps - 1) * w.gap_w, 0)

    def offset(self, v: Value, u: Value) -> Value:
        """Where a tap of the class reads."""
        w = self.w
        row, column = v * w.gap_h - self.above, u * w.gap_w - self.left
        phase = row % w.step_h * w.phases_w + column % w.step_w
        return (phase * w.lines + row // w.step_h) * w.pitch + column // w.step_w

    def fill(self, source: Array, count: Value, top: Value, left: Value, channels: Value | None = None) -> None:
        """So many channels (or groups of them) of the source, from its first plane on; beyond `channels` are zeros."""
        k, w = self.k, self.w
        first_row = self.down.first + self.above + top * w.step_h
        first_column = self.across.first + self.left + left * w.step_w
        with k.loop(0, w.phases_w, plain=True) as phase_w:
            first = first_column + phase_w
            past = (k.maximum(w.source_w - first, 0) + (w.step_w - 1)) // w.step_w
            begin = k.minimum((k.maximum(0 - first, 0) + (w.step_w - 1)) // w.step_w, w.pitch)
            end = k.maximum(k.minimum(past, w.pitch), begin)
            seen = source.at(first + begin * w.step_w)
            with (
                k.loop(0, count, plain=True) as c,
                k.loop(0, w.phases_h, plain=True) as phase_h,
                k.loop(0, w.lines, plain=True) as line,
            ):
                numbers = [c * self.group + e for e in range(self.group)]
                row = first_row + phase_h + line * w.step_h
                inside = k.both(row >= 0, row < w.source_h)
                there = [] if channels is None else [number < channels for number in numbers]
                if channels is not None:
                    inside = k.both(inside, there[0])
                    numbers = [k.minimum(number, channels - 1) for number in numbers]
                rows = [seen.at((number * w.source_h + row) * w.source_w) for number in numbers]
                place = c * w.plane + ((phase_h * w.phases_w + phase_w) * w.lines + line) * w.pitch
                bounds = (k.select(inside, bound, w.pitch) for bound in (begin, end))
                _Line(self, rows, there).write(place, *bounds)


class _Line:
    """A line of a band, of as many rows of the source as are woven; those that are not `there` count as zeros."""

    def __init__(self, band: Band, seen: list[Array], there: list[str]) -> None:
        self.k, self.w, self.memory, self.seen, self.there = band.k, band.w, band.memory, seen, there
        self.lanes = max(self.k.target.vector_bits, 128) // (self.memory.ty.bits * len(seen))

    def write(self, place: Value, begin: Value, end: Value) -> None:
        """Zeros, from `begin` to `end` every `step_w`-th element of what is seen, and zeros again."""
        k, w, group = self.k, self.w, len(self.seen)
        zero, into = k.const(compute_type(self.memory.ty), 0), self.memory.at(place * group)
        with k.loop(0, begin * group, plain=True) as q:
            into[q] = zero
        self.target, count, lanes = into.at(begin * group), end - begin, self.lanes
        with k.when(w.step_w.compare("eq", 1)):
            wide = count - count % (4 * lanes)
            with k.loop(0, wide, 4 * lanes, plain=True) as q:
                self._copy(q, 4 * lanes, 1)
            self._ended(wide, count, 1)
        with k.when(w.step_w.compare("eq", 2)):
            self._ended(k.const(Type.I64, 0), count, 2)
        with k.when(w.step_w > 2), k.loop(0, count, plain=True) as q:
            self._put(q, [seen[q * w.step_w] for seen in self.seen])
        with k.loop(end * group, w.pitch * group, plain=True) as q:
            into[q] = zero

    def _ended(self, start: Value, count: Value, step: int) -> None:
        """The elements from `start` on, by vectors of which the last moves back; single ones where there are few."""
        k, lanes = self.k, self.lanes
        with k.when(count >= lanes), k.loop(start, count, lanes, plain=True) as q:
            self._copy(k.minimum(q, count - lanes), lanes, step)
        with k.when(count < lanes), k.loop(0, count, plain=True) as q:
            self._put(q, [seen[q * step] for seen in self.seen])

    def _copy(self, q: Value, lanes: int, step: int) -> None:
        self._put(q, [self._vector(seen, q, lanes, step) for seen in self.seen])

    def _vector(self, seen: Array, q: Value, lanes: int, step: int) -> Value:
        """Elements side by side, or every second: of two vectors, of which the second begins one early."""
        if step == 1:
            return seen.vector(q, lanes)
        order = [*range(0, lanes, 2), *(c + lanes + 1 for c in range(0, lanes, 2))]
        return self.k.shuffle(seen.vector(q * 2, lanes), seen.vector(q * 2 + (lanes - 1), lanes), order)

    def _put(self, q: Value, values: list[Value]) -> None:
        k = self.k
        for number, there in enumerate(self.there[1:], 1):  # the first is, or the line lies outside
            values[number] = k.select(there, values[number], k.const(values[number].ty, 0, values[number].lanes))
        if values[0].lanes == 1:
            for number, value in enumerate(values):
                self.target[q * len(values) + number] = value
        else:
            self.target.put(q * len(values), woven(k, values))
