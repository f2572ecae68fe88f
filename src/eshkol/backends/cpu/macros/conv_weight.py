"""The gradient of a convolution in its kernel: the output's gradient times taps of the input, summed over places.

Comes in: input (batch × channels × height × width) and gradient (batch × out_channels × places). Goes out: for each
group, out_channels × columns, where a column is a channel of the input and a tap. Places lie side by side in both
factors, so each element is a dot product of two lines of memory, and neither is turned around:

    result[row, column] = Σ over images and places p: gradient[row, p] · band[offset of the column + p]

A task takes a tile of rows and columns of a group, and a share of the images' bands (see `conv_band`). Of each band it
copies the lines it needs to its stack: those of the input padded, and those of the gradient with zeros between rows, so
that a band's places are one line of length `rows · pitch`. Where there are several shares, their sums wait in scratch
and a second phase adds them up. What lies between rows is multiplied by these zeros: an infinite input gives NaN.
"""

from __future__ import annotations

from dataclasses import dataclass

from eshkol.atlas.isa import Instruction
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros.conv_band import Band, Shape
from eshkol.backends.cpu.macros.conv_plan import Sweep, Words
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, compute_type, macro_of
from eshkol.backends.cpu.macros.micro import up
from eshkol.llvm.targets import Target

LINE_BYTES = 4 << 10  # of a line of places at most: sums are added up at its end, and several stay in the first cache
TILE_ROWS, TILE_COLUMNS = 64, 192
SINGLE_COLUMNS = 9  # of a row that is alone: as many sums as hide the latency of an FMA, and the taps of many a kernel
BAND_BYTES = 96 << 10
ENOUGH_TASKS = 16
PIECE = 2048  # elements that a task of adding up is worth


@dataclass(frozen=True)
class WeightPlan:
    """How a gradient is cut up."""

    sweep: Sweep  # the forward one
    target: Target
    shape: Shape

    @staticmethod
    def of(i: Instruction, target: Target) -> WeightPlan | None:
        """The plan; None where a kernel reaches too far for a band."""
        sweep = Sweep.of(i, backward=False)
        assert sweep is not None
        height, width, line = sweep.down.result, sweep.across.result, _line(compute_type(i.ty))
        held = _band_channels(sweep) * compute_type(i.ty).size_bytes
        columns = min(width, line)

        def fits(rows: int, columns: int) -> bool:
            shape = Shape.of(sweep, rows, columns)
            return rows * shape.pitch <= line and shape.plane * held <= BAND_BYTES - _slack(shape, compute_type(i.ty))

        while columns > 8 and not fits(1, columns):
            columns = -(-columns // 2)
        if not fits(1, columns):
            return None
        rows = max(1, min(height, line // columns))
        while rows > 1 and not fits(rows, columns):
            rows -= 1
        rows = -(-height // -(-height // rows))
        return WeightPlan(sweep, target, Shape.of(sweep, rows, columns))

    def macro(self) -> Macro:
        sweep, shape, compute = self.sweep, self.shape, compute_type(self.sweep.ty)
        columns, chunk = sweep.channels * sweep.taps, _chunk(sweep)
        chunks, row_tiles = -(-columns // chunk), -(-sweep.rows // TILE_ROWS)
        bands = -(-sweep.down.result // shape.rows), -(-sweep.across.result // shape.columns)
        units, tiles = sweep.batch * bands[0] * bands[1], sweep.groups * row_tiles * chunks
        per_share = -(-units // min(max(units, 1), -(-ENOUGH_TASKS // tiles)))
        shares = max(1, -(-units // max(per_share, 1)))
        size = sweep.groups * sweep.rows * columns
        words = sweep.words() | shape.words() | {
            "bands_h": bands[0], "bands_w": bands[1], "units": units, "per_share": per_share, "shares": shares,
            "columns": columns, "chunk": chunk, "chunks": chunks, "row_tiles": row_tiles,
            "size": size,
        }  # fmt: skip
        name = f"conv2d_weight_{sweep.ty}".lower()
        # Both functions whatever the sizes, so that one object serves every shape.
        kernels = _Dots(self, name, list(words)).k, _added(self, f"{name}_added", list(words))
        phases = [Phase(name, shares * tiles)]
        if shares > 1:
            phases.append(Phase(kernels[1].function_name, -(-size // PIECE)))
        scratch = shares * size * compute.size_bytes if shares > 1 else 0
        return macro_of(kernels, phases, (*words.values(), *sweep.parts()), scratch)


def _line(compute: Type) -> int:
    """Elements of a line at most."""
    return LINE_BYTES // compute.size_bytes


def _chunk(sweep: Sweep) -> int:
    """Columns of a tile: of whole channels, if one fits."""
    if sweep.taps > TILE_COLUMNS:
        return TILE_COLUMNS
    return max(1, min(TILE_COLUMNS // sweep.taps, sweep.channels)) * sweep.taps


def _band_channels(sweep: Sweep) -> int:
    """Channels that the columns of a tile may belong to."""
    return _chunk(sweep) // sweep.taps if sweep.taps <= TILE_COLUMNS else 2


def _slack(shape: Shape, ty: Type) -> int:
    """Bytes behind a band that its lines may run into."""
    return (2 * shape.pitch + 64) * ty.size_bytes


def conv2d_grad_weight(i: Instruction, target: Target) -> Macro | None:
    """The instruction as a phase, or two."""
    plan = WeightPlan.of(i, target)
    return None if plan is None else plan.macro()


class _Dots:
    """A task computes a tile of rows and columns of a group, of a share of all bands."""

    def __init__(self, plan: WeightPlan, name: str, words: list[str]) -> None:
        self.plan, self.compute = plan, compute_type(plan.sweep.ty)
        self.k = k = Kernel(name, plan.target, 3)
        self.w = w = Words(k, words)
        compute = self.compute
        self.lanes = max(plan.target.vector_bits, 128) // compute.bits
        many = plan.target.is_arm or plan.target.vector_bits > 256
        self.tile = (4, 4) if many else (3, 3)
        self.line = _line(compute)
        self.memory = k.local(compute, BAND_BYTES // compute.size_bytes)
        self.lines = k.local(compute, (TILE_ROWS * self.line) + self.lanes)
        self.held = up(TILE_COLUMNS + SINGLE_COLUMNS, 4)
        self.totals = k.local(compute, TILE_ROWS * self.held)
        self.offsets = k.local(Type.I64, self.held)
        with k.tasks() as task:
            chunk, rest = task % w.chunks, task // w.chunks
            row_tile, rest = rest % w.row_tiles, rest // w.row_tiles
            group, share = rest % w.groups, rest // w.groups
            self.down, self.across = w.parts_of(k.const(Type.I64, 0))
            self.band = Band(k, w, self.memory, self.down, self.across)
            self.first_column, self.first_row = chunk * w.chunk, row_tile * TILE_ROWS
            self.columns = k.minimum(w.columns - self.first_column, w.chunk)
            self.rows = k.minimum(w.rows - self.first_row, TILE_ROWS)
            self._prepare()
            last = k.minimum((share + 1) * w.per_share, w.units)
            with k.loop(share * w.per_share, last, plain=True) as unit:
                self._unit(unit, group)
            self._store(group, share)

    def _prepare(self) -> None:
        """Offsets of the columns, the last one repeated; sums and band at zero."""
        k, w = self.k, self.w
        zero, taps = k.const(self.compute, 0), w.taps_h * w.taps_w
        self.first_channel = self.first_column // taps
        with k.loop(0, self.held, plain=True) as j:
            column = self.first_column + k.minimum(j, self.columns - 1)
            tap, channel = column % taps, column // taps - self.first_channel
            self.offsets[j] = channel * w.plane + self.band.offset(tap // w.taps_w, tap % w.taps_w)
        with k.loop(0, self.rows * self.held) as j:
            self.totals[j] = zero
        with k.loop(0, BAND_BYTES // self.compute.size_bytes) as j:
            self.memory[j] = zero

    def _unit(self, unit: Value, group: Value) -> None:
        """A band of an image: its lines, and all products of rows and columns."""
        k, w, ty = self.k, self.w, self.plan.sweep.ty
        left, rest = unit % w.bands_w * w.band_columns, unit // w.bands_w
        top, image = rest % w.bands_h * w.band_rows, rest // w.bands_h
        taps = w.taps_h * w.taps_w
        channels = (self.first_column + self.columns - 1) // taps - self.first_channel + 1
        plane = (image * w.groups + group) * w.channels + self.first_channel
        source = k.operand(1, ty).at(plane * w.source_h * w.source_w)
        self.band.fill(source, channels, top, left)
        height = k.minimum(self.down.count - top, w.band_rows)
        width = k.minimum(self.across.count - left, w.band_columns)
        length = (height * w.pitch + (self.lanes - 1)) // self.lanes * self.lanes
        row = (image * w.groups + group) * w.rows + self.first_row
        self._copy_rows(k.operand(2, ty).at((row * w.result_h + top) * w.result_w + left), height, width, length)
        self._products(length)

    def _copy_rows(self, source: Array, height: Value, width: Value, length: Value) -> None:
        k, w = self.k, self.w
        zero = k.const(self.compute, 0)
        with k.loop(0, self.rows, plain=True) as r:
            into = self.lines.at(r * self.line)
            with k.loop(0, height, plain=True) as y:
                line, target = source.at((r * w.result_h + y) * w.result_w), into.at(y * w.pitch)
                for p, lanes in k.strips(source.ty, width):
                    target.put(p, line.vector(p, lanes))
                with k.loop(width, w.pitch, plain=True) as p:
                    target[p] = zero
            with k.loop(height * w.pitch, length, plain=True) as p:
                into[p] = zero

    def _products(self, length: Value) -> None:
        k, (high, wide) = self.k, self.tile
        whole = self.rows - self.rows % high
        with k.loop(0, whole, high, plain=True) as r, k.loop(0, self.columns, wide, plain=True) as j:
            self._tile(r, j, high, wide, length)
        with k.loop(whole, self.rows, plain=True) as r, k.loop(0, self.columns, SINGLE_COLUMNS, plain=True) as j:
            self._tile(r, j, 1, SINGLE_COLUMNS, length)

    def _tile(self, row: Value, column: Value, high: int, wide: int, length: Value) -> None:
        """Some rows by some columns: vectors of sums, added up at the end of the line."""
        k, lanes = self.k, self.lanes
        lefts = [self.lines.at((row + r) * self.line) for r in range(high)]
        rights = [self.memory.at(self.offsets[column + c]) for c in range(wide)]
        zero = k.const(self.compute, 0, lanes)
        sums = [[k.variable(zero) for _ in rights] for _ in lefts]
        with k.loop(0, length, lanes, plain=True) as p:
            factors = [right.vector(p, lanes) for right in rights]
            for left, line in zip(lefts, sums, strict=True):
                value = left.vector(p, lanes)
                for factor, total in zip(factors, line, strict=True):
                    total.value = k.muladd(value, factor, total.value)
        found = _sums(k, [total.value for line in sums for total in line])
        for r in range(high):
            at = (row + r) * self.held + column
            mine = k.shuffle(found, found, range(r * wide, (r + 1) * wide))
            self.totals.put(at, self.totals.vector(at, wide) + mine)

    def _store(self, group: Value, share: Value) -> None:
        k, w = self.k, self.w
        begin = (group * w.rows + self.first_row) * w.columns + self.first_column
        for shared in (False, True):
            there = k.scratch(self.compute).at(share * w.size) if shared else k.operand(0, self.plan.sweep.ty)
            with (
                k.when(w.shares > 1 if shared else w.shares <= 1),
                k.loop(0, self.rows, plain=True) as r,
                k.parallel(0, self.columns) as j,
            ):
                there[begin + r * w.columns + j] = self.totals[r * self.held + j]


def _sums(k: Kernel, vectors: list[Value]) -> Value:
    """The sum of each vector's lanes, as the lanes of one: neighbours are added, of two vectors at a time.

    That takes a third of the instructions of adding up one vector after another.
    """
    lanes = vectors[0].lanes
    count = len(vectors)
    vectors = vectors + vectors[-1:] * ((1 << (count - 1).bit_length()) - count)
    even, odd = range(0, 2 * lanes, 2), range(1, 2 * lanes, 2)
    width = lanes  # of lanes that one vector's sum is spread over
    while width > 1 and len(vectors) > 1:
        pairs = zip(vectors[::2], vectors[1::2], strict=True)
        vectors = [k.shuffle(a, b, even) + k.shuffle(a, b, odd) for a, b in pairs]
        width //= 2
    while width > 1:
        (one,), half = vectors, range(0, vectors[0].lanes, 2)
        vectors = [k.shuffle(one, one, half) + k.shuffle(one, one, [n + 1 for n in half])]
        width //= 2
    found = vectors[0]
    for other in vectors[1:]:
        found = k.shuffle(found, _widened(k, other, found.lanes), range(found.lanes + other.lanes))
    return found


def _widened(k: Kernel, value: Value, lanes: int) -> Value:
    """A vector with as many lanes as another that is longer; what the others hold is never looked at."""
    return k.shuffle(value, value, [n % value.lanes for n in range(lanes)])


def _added(plan: WeightPlan, name: str, words: list[str]) -> Kernel:
    """The sums of all shares, one after another."""
    ty, compute = plan.sweep.ty, compute_type(plan.sweep.ty)
    k = Kernel(name, plan.target, 3)
    w = Words(k, words)
    output, parts = k.operand(0, ty), k.scratch(compute)
    with k.pieces(w.size, PIECE) as (start, length):
        for p, lanes in k.strips(ty, length):
            total = k.variable(parts.vector(start + p, lanes))
            with k.loop(1, w.shares, plain=True) as share:
                total.value = total.value + parts.vector(share * w.size + start + p, lanes)
            output.put(start + p, total.value)
    return k


LOWERINGS: dict[str, Lowering] = {"Conv2DGradWeight": conv2d_grad_weight}
