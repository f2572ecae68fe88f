"""A band of a convolution's source on a task's stack, padded and parted so that every tap reads it in straight lines.

A band holds what some rows and columns of places need, channel by channel. Padding is zeros. A step s along an axis
parts it into `phases`: places of the source with the same remainder lie side by side, so that neighbouring places of
the result read neighbouring elements, whatever the stride. Element (row, column) of the places reads, by a tap,

    band[channel · plane + offset of the tap + row · pitch + column]
"""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.backends.cpu.macros.conv_plan import PartValues, Sweep, Words
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value


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
    """A band at run time: for places from (top, left) on, of the class that two parts are."""

    def __init__(self, k: Kernel, w: Words, memory: Array, down: PartValues, across: PartValues) -> None:
        self.k, self.w, self.memory, self.down, self.across = k, w, memory, down, across
        self.above = k.minimum((down.taps - 1) * w.gap_h, 0)  # of the first tap, the tap that lies first
        self.left = k.minimum((across.taps - 1) * w.gap_w, 0)

    def offset(self, v: Value, u: Value) -> Value:
        """Where a tap of the class reads."""
        w = self.w
        row, column = v * w.gap_h - self.above, u * w.gap_w - self.left
        phase = row % w.step_h * w.phases_w + column % w.step_w
        return (phase * w.lines + row // w.step_h) * w.pitch + column // w.step_w

    def fill(self, source: Array, channels: Value, top: Value, left: Value) -> None:
        """Some channels of the source, from the first plane of `source` on."""
        k, w = self.k, self.w
        first_row = self.down.first + self.above + top * w.step_h
        first_column = self.across.first + self.left + left * w.step_w
        with (
            k.loop(0, channels, plain=True) as c,
            k.loop(0, w.phases_h, plain=True) as phase_h,
            k.loop(0, w.lines, plain=True) as line,
        ):
            row = first_row + phase_h + line * w.step_h
            row_inside = k.both(row >= 0, row < w.source_h)
            from_row = source.at((c * w.source_h + k.minimum(k.maximum(row, 0), w.source_h - 1)) * w.source_w)
            with k.loop(0, w.phases_w, plain=True) as phase_w:
                into = self.memory.at(c * w.plane + (((phase_h * w.phases_w) + phase_w) * w.lines + line) * w.pitch)
                self._line(from_row, into, first_column + phase_w, row_inside)

    def _line(self, source: Array, into: Array, first: Value, inside: str) -> None:
        """A line: zeros where it lies outside, else every `step_w`-th element of a row of the source."""
        k, w = self.k, self.w
        past = (k.maximum(w.source_w - first, 0) + (w.step_w - 1)) // w.step_w
        begin = k.minimum((k.maximum(0 - first, 0) + (w.step_w - 1)) // w.step_w, w.pitch)
        begin = k.select(inside, begin, w.pitch)
        end = k.maximum(k.minimum(past, w.pitch), begin)
        zero = k.const(into.ty, 0)
        with k.loop(0, begin, plain=True) as q:
            into[q] = zero
        seen, target, count = source.at(first + begin * w.step_w), into.at(begin), end - begin
        with k.when(w.step_w.compare("eq", 1)):
            for p, lanes in k.strips(source.ty, count):
                target.put(p, seen.vector(p, lanes))
        with k.when(w.step_w.compare("eq", 2)):
            self._every_second(seen, target, count)
        with k.when(w.step_w > 2), k.loop(0, count, plain=True) as q:
            target[q] = seen[q * w.step_w]
        with k.loop(end, w.pitch, plain=True) as q:
            into[q] = zero

    def _every_second(self, seen: Array, target: Array, count: Value) -> None:
        k = self.k
        lanes = max(k.target.vector_bits, 128) // target.ty.bits
        order = [*range(0, lanes, 2), *(c + lanes + 1 for c in range(0, lanes, 2))]  # the second begins one early
        whole = count - count % lanes
        with k.loop(0, whole, lanes, plain=True) as q:
            target.put(q, k.shuffle(seen.vector(q * 2, lanes), seen.vector(q * 2 + (lanes - 1), lanes), order))
        with k.loop(whole, count, plain=True) as q:
            target[q] = seen[q * 2]
