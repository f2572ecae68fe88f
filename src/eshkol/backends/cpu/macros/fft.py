"""Discrete Fourier transforms of any length up to 65536.

A length n = n1·n2 of small factors is a matrix of n1 rows: transform its columns, turn each element by its twiddle
factor, transpose, transform the columns again. A task takes as many columns as fill two vectors into a small array of
its own, so that every step is vector code in the first-level cache, whatever the length; there columns are transformed
by Stockham's passes of radix 4 and of whatever else n1 is made of. Other lengths go by Bluestein: the transform as a
convolution, whose transforms have a power of two as their length.

Lengths and their factors are words of the call. Twiddle factors are computed as they are needed, from integers, so they
are as exact as the type allows. Everything is computed in F32 for 16-bit floats, with real and imaginary parts apart.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property

from eshkol.atlas.isa import Instruction
from eshkol.atlas.table.elementary_code import FORMATS
from eshkol.atlas.table.elementary_trig import COS, QUARTER_TURN, SIN
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Lowering, Macro, Phase
from eshkol.backends.cpu.macros.angles import polynomial
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value, compute_type, macro_of, real_bits
from eshkol.llvm.targets import Target

LONGEST = 512  # rows of a matrix
GREATEST_RADIX = 61  # above, the sums of a pass cost more than Bluestein's way
RADIX_BITS = 6  # of a factor in the word that holds all
PIECE = 1 << 12  # elements of a task that goes element by element

Complex = tuple[Value, Value]
Planes = tuple[Array, Array]  # real and imaginary parts


# --- plans ----------------------------------------------------------------------------------------


def _factors(n: int) -> list[int] | None:
    """The radices of a transform of length n; None if one would be too great."""
    found = []
    for radix in (4, *range(2, GREATEST_RADIX + 1)):
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else None


def _split(n: int) -> tuple[int, int] | None:
    """n = n1·n2 as even as can be, if that is even enough."""
    if _factors(n) is None:
        return None
    n1 = min((d for d in range(1, min(n, LONGEST) + 1) if n % d == 0), key=lambda d: max(d, n // d))
    return (n1, n // n1) if max(n1, n // n1) <= LONGEST else None


@dataclass(frozen=True)
class Style:
    """What the code depends on."""

    ty: Type
    target: Target

    @property
    def compute(self) -> Type:
        return compute_type(self.ty)

    @property
    def lanes(self) -> int:
        return max(self.target.vector_bits // self.compute.bits, 1)

    @property
    def columns(self) -> int:
        """How many columns a task takes: two vectors, or a line of interleaved numbers in the cache."""
        return max(2 * self.lanes, 4)

    def kernel(self, step: str) -> FourierKernel:
        return FourierKernel(f"fft_{self.ty}_{step}".lower(), self)


@dataclass(frozen=True)
class FourierPlan:
    """A transform: of which length, as which matrix, how much memory it takes."""

    i: Instruction
    style: Style

    @cached_property
    def direct(self) -> bool:
        return _split(self.i.n) is not None

    @cached_property
    def length(self) -> int:
        """Of the transforms that are carried out."""
        return int(self.i.n) if self.direct else 1 << (2 * self.i.n - 2).bit_length()

    @cached_property
    def sides(self) -> tuple[int, int]:
        found = _split(self.length)
        assert found is not None
        return found

    @cached_property
    def padded(self) -> tuple[int, int]:
        n1, n2 = (-(-side // self.style.columns) * self.style.columns for side in self.sides)
        return n1, n2

    @property
    def matrix(self) -> int:
        """Elements of the transposed matrix, both parts."""
        return 2 * self.padded[0] * self.padded[1]

    @property
    def words(self) -> tuple[int, ...]:
        sign = 1.0 if self.i.inverse else -1.0
        scale = 1.0 / self.i.n if self.i.inverse else 1.0
        words = [self.i.n, self.length, *self.sides, *self.padded, real_bits(sign), real_bits(scale)]
        for side in self.sides:
            radices = _factors(side)
            assert radices is not None
            words += [len(radices), sum(radix << (RADIX_BITS * k) for k, radix in enumerate(radices))]
        return tuple(words)

    def scratch(self, matrices: int, signals: int = 0) -> int:
        """Bytes for the tables of roots, so many matrices and so many signals."""
        elements = 4 * LONGEST + matrices * self.matrix + signals * 2 * self.length
        return elements * self.style.compute.size_bytes

    def steps(self, first: Kernel, second: Kernel, batch: int = 1) -> list[Phase]:
        """The phases of so many transforms."""
        columns = self.style.columns
        grain = max(1, PIECE // (columns * max(self.sides)))
        return [
            Phase(first.function_name, batch * self.padded[1] // columns, grain),
            Phase(second.function_name, batch * self.padded[0] // columns, grain),
        ]


class FourierKernel(Kernel):
    """A kernel with what all steps of a transform need to know."""

    def __init__(self, name: str, style: Style) -> None:
        super().__init__(name, style.target, operands=2)
        self.style, self.ty = style, style.compute
        self.n, self.length = self.word(0), self.word(1)
        self.sides, self.padded = (self.word(2), self.word(3)), (self.word(4), self.word(5))
        self.sign, self.scale = self.real_word(6, self.ty), self.real_word(7, self.ty)

    def planes(self, start: Value, size: Value) -> Planes:
        """Two arrays of scratch memory, one after the other, from an element on."""
        whole = self.scratch(self.ty)
        return whole.at(start), whole.at(start + size)

    def table(self, side: int) -> Planes:
        """The powers of the root of unity of a side."""
        return self.planes(self.const(Type.I64, 2 * LONGEST * side), self.const(Type.I64, LONGEST))

    def matrix(self, batch: Value) -> Planes:
        """The transposed matrix between the two steps."""
        size = self.padded[0] * self.padded[1]
        return self.planes(batch * size * 2 + 4 * LONGEST, size)

    def signal(self, batch: Value) -> Planes:
        """What Bluestein's convolution works on: two signals."""
        size = self.padded[0] * self.padded[1]
        return self.planes(size * 4 + batch * self.length * 2 + 4 * LONGEST, self.length)

    def counting(self, start: Value, lanes: int) -> Value:
        """start, start + 1 … as floats."""
        steps = [self.const(self.ty, lane) for lane in range(lanes)]
        vector = self.splat(start.to(self.ty), lanes)
        if lanes == 1:
            return vector
        text = "<" + ", ".join(f"{step.llvm} {step}" for step in steps) + ">"
        return vector + Value(self, self.ty, text, lanes)

    def root(self, index: Value, n: Value) -> Complex:
        """e^(± 2πi·index / n), the sign being the transform's; index is a float that holds an integer below 4n."""
        ty, f = self.ty, FORMATS[self.ty]
        whole = n.to(ty)
        rounded = self.muladd(index, 4.0 / whole, f.magic)
        quarters = rounded - f.magic
        rest = self.muladd(quarters, -whole, index * 4.0)  # exact: these are integers
        turn, turn_low = QUARTER_TURN[ty]
        step = turn / whole
        step_low = (self.muladd(-step, whole, turn) + turn_low) / whole
        r = rest * step
        low = self.muladd(rest, step_low, self.muladd(rest, step, -r))
        z = r * r
        sine = r + self.muladd(r * z, polynomial(self, z, SIN[ty]), low)
        cosine = 1.0 - (z * 0.5 - self.muladd(z * z, polynomial(self, z, COS[ty]), -(r * low)))
        quadrant = rounded.bits(f.signed)
        odd = (quadrant & 1).compare("ne", 0)
        real, imaginary = self.where(odd, sine, cosine), self.where(odd, cosine, sine)
        real = self.where(((quadrant + 1) & 2).compare("ne", 0), -real, real)
        imaginary = self.where((quadrant & 2).compare("ne", 0), -imaginary, imaginary)
        return real, imaginary * self.splat(self.sign, index.lanes)

    def times(self, a: Complex, b: Complex) -> Complex:
        real = self.muladd(a[0], b[0], -(a[1] * b[1]))
        return real, self.muladd(a[0], b[1], a[1] * b[0])

    def interleaved(self, array: Array, index: Value, lanes: int) -> Complex:
        """Numbers as pairs in memory, their parts apart."""
        pairs = array.vector(index * 2, 2 * lanes)
        if lanes > 1:
            return self.shuffle(pairs, pairs, range(0, 2 * lanes, 2)), self.shuffle(
                pairs, pairs, range(1, 2 * lanes, 2)
            )
        return array[index * 2], array[index * 2 + 1]

    def put_interleaved(self, array: Array, index: Value, value: Complex) -> None:
        lanes = value[0].lanes
        if lanes > 1:
            places = [lane + part * lanes for lane in range(lanes) for part in (0, 1)]
            array.put(index * 2, self.shuffle(value[0], value[1], places))
            return
        for part in (0, 1):
            array[index * 2 + part] = value[part]


# --- transforms of columns ------------------------------------------------------------------------


class Columns:
    """A task's columns, in two arrays of its own that passes go to and fro between."""

    def __init__(self, k: FourierKernel, side: int) -> None:
        self.k, self.side = k, side
        self.lanes, self.width, self.length = k.style.lanes, k.style.columns, k.sides[side]
        self.size = LONGEST * self.width
        self.memory = k.local(k.ty, 4 * self.size)
        self.table = k.table(side)
        self.source = k.variable(k.const(Type.I64, 0))
        self.target = k.variable(k.const(Type.I64, 2 * self.size))

    def planes(self, start: Value) -> Planes:
        return self.memory.at(start), self.memory.at(start + self.size)

    def load(self, index: Value) -> Complex:
        re, im = self.planes(self.source.value)
        return re.vector(index, self.lanes), im.vector(index, self.lanes)

    def transform(self) -> None:
        k = self.k
        count, radices = k.word(8 + 2 * self.side), k.variable(k.word(9 + 2 * self.side))
        below, stride = k.variable(self.length), k.variable(k.const(Type.I64, 1))
        with k.loop(0, count, plain=True):
            radix = radices.value & ((1 << RADIX_BITS) - 1)
            radices.value = radices.value >> RADIX_BITS
            below.value = below.value // radix
            with k.when(radix.compare("eq", 4)):
                self._radix_4(below.value, stride.value)
            with k.when(radix.compare("ne", 4)):
                self._any_radix(radix, below.value, stride.value)
            stride.value = stride.value * radix
            was = self.source.value
            self.source.value = self.target.value
            self.target.value = was

    def _root(self, index: Value) -> Complex:
        return self.table[0][index], self.table[1][index]

    def _radix_4(self, below: Value, stride: Value) -> None:
        """y[4p + j] = (the 4-point transform of x[p + below·j]) turned by p·j, for runs of `stride` rows."""
        k, lanes, run = self.k, self.lanes, stride * self.width
        sources, targets = self.planes(self.source.value), self.planes(self.target.value)
        with k.loop(0, below, plain=True) as p:
            turns = [[k.splat(part, lanes) for part in self._root(p * stride * j)] for j in (1, 2, 3)]
            reads = [[plane.at((p + below * j) * run) for j in range(4)] for plane in sources]
            writes = [[plane.at((p * 4 + j) * run) for j in range(4)] for plane in targets]
            with k.loop(0, run, lanes, plain=True) as t:
                a, b, c, d = ((reads[0][j].vector(t, lanes), reads[1][j].vector(t, lanes)) for j in range(4))
                even, odd = ([a[part] + c[part] for part in (0, 1)], [a[part] - c[part] for part in (0, 1)])
                other, crossed = ([b[part] + d[part] for part in (0, 1)], [b[part] - d[part] for part in (0, 1)])
                sign = k.splat(k.sign, lanes)  # the second root of unity is ±i
                forward = k.muladd(crossed[1], -sign, odd[0]), k.muladd(crossed[0], sign, odd[1])
                backward = k.muladd(crossed[1], sign, odd[0]), k.muladd(crossed[0], -sign, odd[1])
                difference = even[0] - other[0], even[1] - other[1]
                results = [(even[0] + other[0], even[1] + other[1])]
                for value, turn in zip((forward, difference, backward), turns, strict=True):
                    results.append(k.times(value, (turn[0], turn[1])))
                for j, result in enumerate(results):
                    for part in (0, 1):
                        writes[part][j].put(t, result[part])

    def _any_radix(self, radix: Value, below: Value, stride: Value) -> None:
        """The same by its defining sum."""
        k, lanes, run = self.k, self.lanes, stride * self.width
        sources, targets = self.planes(self.source.value), self.planes(self.target.value)
        step = self.length // radix
        with (
            k.loop(0, below, plain=True) as p,
            k.loop(0, radix, plain=True) as j,
            k.loop(0, run, lanes, plain=True) as t,
        ):
            sums = [k.variable(k.const(k.ty, 0, lanes)) for _ in (0, 1)]
            power = k.variable(p * stride * j)
            with k.loop(0, radix, plain=True) as q:
                place = (p + below * q) * run + t
                value = sources[0].vector(place, lanes), sources[1].vector(place, lanes)
                turn = self._root(power.value)
                term = k.times(value, (k.splat(turn[0], lanes), k.splat(turn[1], lanes)))
                for part in (0, 1):
                    sums[part].value = sums[part].value + term[part]
                further = power.value + step * j
                power.value = k.select(further < self.length, further, further - self.length)
            for part in (0, 1):
                targets[part].put((p * radix + j) * run + t, sums[part].value)


Fetch = Callable[[Value, int], Complex]  # elements from an index on, so many at once
Store = Callable[[Value, Complex], None]


def _each_column(k: FourierKernel, width: Value, first: Value, body: Callable[[Value, int], None]) -> None:
    """body(column of the task, lanes) for the task's columns that the matrix has: in vectors, if it has all."""
    columns, lanes = k.style.columns, k.style.lanes
    inside = first + columns <= width
    with k.when(inside):
        for start in range(0, columns, lanes):
            body(k.const(Type.I64, start), lanes)
    with k.when(k.negated(inside)), k.loop(0, width - first, plain=True) as c:
        body(c, 1)


def _first_step(k: FourierKernel, source: Callable[[Value], Fetch]) -> None:
    """Columns of the matrix transformed, turned and stored as rows."""
    (n1, n2), padded, width, lanes = k.sides, k.padded[0], k.style.columns, k.style.lanes
    blocks = k.padded[1] // width
    with k.tasks() as task:
        batch, first = task // blocks, task % blocks * width
        fetch, columns, transposed = source(batch), Columns(k, 0), k.matrix(batch)
        planes = columns.planes(columns.source.value)
        with k.loop(0, n1, plain=True) as row:

            def gather(c: Value, lanes: int, row: Value = row) -> None:
                for plane, part in zip(planes, fetch(row * n2 + first + c, lanes), strict=True):
                    plane.put(row * width + c, part)

            _each_column(k, n2, first, gather)
        columns.transform()
        with k.loop(0, n1, lanes, plain=True) as row:
            for c in range(0, width, lanes):
                rows = [columns.load((row + r) * width + c) for r in range(lanes)]
                parts = [_transposed(k, [value[part] for value in rows]) for part in (0, 1)]
                for r in range(lanes):
                    column = first + (c + r)
                    index = k.counting(row, lanes) * k.splat(column.to(k.ty), lanes)
                    turned = k.times((parts[0][r], parts[1][r]), k.root(index, k.length))
                    for part in (0, 1):
                        transposed[part].put(column * padded + row, turned[part])


def _second_step(k: FourierKernel, sink: Callable[[Value], Store]) -> None:
    """Columns of the transposed matrix transformed and stored."""
    (n1, n2), padded, width, lanes = k.sides, k.padded[0], k.style.columns, k.style.lanes
    blocks = padded // width
    with k.tasks() as task:
        batch, first = task // blocks, task % blocks * width
        store, columns, transposed = sink(batch), Columns(k, 1), k.matrix(batch)
        planes = columns.planes(columns.source.value)
        with k.loop(0, n2, plain=True) as row:
            for c in range(0, width, lanes):
                for plane, part in zip(planes, transposed, strict=True):
                    plane.put(row * width + c, part.vector(row * padded + first + c, lanes))
        columns.transform()
        results = columns.planes(columns.source.value)
        with k.loop(0, n2, plain=True) as row:

            def scatter(c: Value, lanes: int, row: Value = row) -> None:
                re, im = (plane.vector(row * width + c, lanes) for plane in results)
                store(row * n1 + first + c, (re, im))

            _each_column(k, n1, first, scatter)


def _transposed(k: Kernel, rows: list[Value]) -> list[Value]:
    """A square of vectors, transposed by interleaving its halves again and again."""
    lanes = len(rows)
    low = [half for lane in range(lanes // 2) for half in (lane, lane + lanes)]
    high = [place + lanes // 2 for place in low]
    for _ in range(lanes.bit_length() - 1):
        pairs = zip(rows[: lanes // 2], rows[lanes // 2 :], strict=True)
        rows = [k.shuffle(a, b, places) for a, b in pairs for places in (low, high)]
    return rows


# --- the instruction ------------------------------------------------------------------------------


def fft(i: Instruction, target: Target) -> Macro:
    plan = FourierPlan(i, Style(i.ty, target))
    return _direct(plan) if plan.direct else _bluestein(plan)


def _direct(plan: FourierPlan) -> Macro:
    tables, first, second = kernels = _direct_kernels(plan.style)
    phases = [Phase(tables.function_name, 1), *plan.steps(first, second)]
    return macro_of(kernels, phases, plan.words, plan.scratch(1))


def _bluestein(plan: FourierPlan) -> Macro:
    """jk = (j² + k² - (k - j)²) / 2: multiply by a chirp, convolve with its conjugate, multiply by it again."""
    tables, chirp, first, second, product, last = kernels = _bluestein_kernels(plan.style)
    pieces = -(-plan.length // PIECE)
    phases = [
        Phase(tables.function_name, 1), Phase(chirp.function_name, pieces), *plan.steps(first, second, batch=2),
        Phase(product.function_name, pieces), *plan.steps(first, second),
        Phase(last.function_name, -(-plan.i.n // PIECE)),
    ]  # fmt: skip
    return macro_of(kernels, phases, plan.words, plan.scratch(2, signals=2))


def _tables(style: Style) -> FourierKernel:
    """The roots of unity of both sides."""
    k = style.kernel("tables")
    for side in (0, 1):
        table = k.table(side)
        with k.loop(0, k.sides[side], style.lanes, plain=True) as p:
            for plane, part in zip(table, k.root(k.counting(p, style.lanes), k.sides[side]), strict=True):
                plane.put(p, part)
    return k


@cache
def _direct_kernels(style: Style) -> list[FourierKernel]:
    first, second = style.kernel("first"), style.kernel("second")
    x, y = first.operand(1, style.ty), second.operand(0, style.ty)

    def store(index: Value, value: Complex) -> None:
        scale = second.splat(second.scale, value[0].lanes)
        second.put_interleaved(y, index, (value[0] * scale, value[1] * scale))

    _first_step(first, lambda batch: lambda index, lanes: first.interleaved(x, index, lanes))
    _second_step(second, lambda batch: store)
    return [_tables(style), first, second]


@cache
def _bluestein_kernels(style: Style) -> list[FourierKernel]:
    steps = ("chirp", "inner_first", "inner_second", "product", "last")
    chirp, first, second, product, last = kernels = [style.kernel(step) for step in steps]
    _chirp(chirp)
    _first_step(first, lambda batch: _planes_fetch(first, batch))
    _second_step(second, lambda batch: _planes_store(second, batch))
    _product(product)
    _last(last)
    return [_tables(style), *kernels]


def _chirped(k: FourierKernel, j: Value) -> Complex:
    """e^(± πi j² / n)"""
    return k.root((j * j % (k.n * 2)).to(k.ty), k.n * 2)


def _chirp(k: FourierKernel) -> None:
    """The signal times the chirp, and the chirp's conjugate at both ends; zeros between."""
    x, zero = k.operand(1, k.style.ty), k.const(k.ty, 0)
    signals = [k.signal(k.const(Type.I64, number)) for number in (0, 1)]
    with k.pieces(k.length, PIECE) as (start, length), k.loop(start, start + length) as p:
        back = k.length - p
        j = k.minimum(p, back)
        within, reached = p < k.n, j < k.n
        turn = _chirped(k, k.select(reached, j, k.const(Type.I64, 0)))
        value = k.interleaved(x, k.select(within, p, k.const(Type.I64, 0)), 1)
        for plane, part in zip(signals[0], k.times(value, turn), strict=True):
            plane[p] = k.select(within, part, zero)
        for plane, part in zip(signals[1], (turn[0], -turn[1]), strict=True):
            plane[p] = k.select(reached, part, zero)


def _product(k: FourierKernel) -> None:
    """The product of both spectra, conjugated, so that the next transform is the conjugate of the inverse one."""
    first, second = (k.signal(k.const(Type.I64, number)) for number in (0, 1))
    with k.pieces(k.length, PIECE) as (start, length), k.parallel(start, start + length) as p:
        value = k.times((first[0][p], first[1][p]), (second[0][p], second[1][p]))
        first[0][p], first[1][p] = value[0], -value[1]


def _last(k: FourierKernel) -> None:
    y, result = k.operand(0, k.style.ty), k.signal(k.const(Type.I64, 0))
    with k.pieces(k.n, PIECE) as (start, length), k.loop(start, start + length) as p:
        scale = k.scale / k.length.to(k.ty)
        value = k.times((result[0][p], -result[1][p]), _chirped(k, p))
        k.put_interleaved(y, p, (value[0] * scale, value[1] * scale))


def _planes_fetch(k: FourierKernel, batch: Value) -> Fetch:
    re, im = k.signal(batch)
    return lambda index, lanes: (re.vector(index, lanes), im.vector(index, lanes))


def _planes_store(k: FourierKernel, batch: Value) -> Store:
    planes = k.signal(batch)

    def store(index: Value, value: Complex) -> None:
        for plane, part in zip(planes, value, strict=True):
            plane.put(index, part)

    return store


LOWERINGS: dict[str, Lowering] = {"FFT": fft}
