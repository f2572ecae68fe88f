"""What Fourier transforms are made of: lengths and their factors, roots of unity, and the transforms of columns.

A task takes as many columns as fill two vectors into a small array of its own, so that every pass is vector code in a
near cache; there columns are transformed by Stockham's passes of radix 4 and of whatever else their length is made of.
Lengths and their factors are words of the call. Roots are computed from integers, so they are as exact as the type
allows. Everything is computed in F32 for 16-bit floats, with real and imaginary parts apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

from eshkol.atlas.isa import Instruction
from eshkol.atlas.table.elementary_code import FORMATS
from eshkol.atlas.table.elementary_trig import COS, QUARTER_TURN, SIN
from eshkol.atlas.types import Type
from eshkol.backends.cpu.kernels.macro import Phase
from eshkol.backends.cpu.macros.angles import polynomial
from eshkol.backends.cpu.macros.kit import Array, Kernel, Operand, Value, compute_type, real_bits
from eshkol.llvm.targets import Target

LONGEST = 2048  # rows of a matrix
SHORT = 1024  # rows of signals that are transformed in one step: what a task works on stays in the second-level cache
GREATEST_RADIX = 61  # above, the sums of a pass cost more than Bluestein's way
SMALL_RADICES = (2, 3, 5)  # beside 4: those with code of their own
RADIX_BITS = 6  # of a factor in the word that holds all
PIECE = 1 << 12  # elements that are work enough for a task

Complex = tuple[Value, Value]
Planes = tuple[Array, Array]  # real and imaginary parts


# --- plans ----------------------------------------------------------------------------------------


def factors(n: int) -> list[int] | None:
    """The radices of a transform of length n; None if one would be too great."""
    found = []
    for radix in (4, *range(2, GREATEST_RADIX + 1)):
        while n % radix == 0:
            found.append(radix)
            n //= radix
    return found if n == 1 else None


def even_split(n: int) -> tuple[int, int] | None:
    """n = n1·n2 as even as can be, if that is even enough."""
    if factors(n) is None:
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
    """Transforms: of which length, as which matrix, how much memory they take."""

    i: Instruction
    style: Style

    @cached_property
    def signals(self) -> int:
        return int(self.i.batch * self.i.inner)

    @cached_property
    def short(self) -> bool:
        """Whether signals are columns as they are: there are enough of them to fill vectors, or they are tiny."""
        n, columns = self.i.n, self.style.columns
        return factors(n) is not None and n <= SHORT and (2 * self.signals >= columns or n <= columns)

    @cached_property
    def direct(self) -> bool:
        return self.short or even_split(self.i.n) is not None

    @cached_property
    def length(self) -> int:
        """Of the transforms that are carried out."""
        return int(self.i.n) if self.direct else 1 << (2 * self.i.n - 2).bit_length()

    @cached_property
    def sides(self) -> tuple[int, int]:
        found = (self.length, 1) if self.short else even_split(self.length)
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
        scale = self.i.scale / self.i.n if self.i.inverse else self.i.scale
        words = [self.i.n, self.length, *self.sides, *self.padded, real_bits(sign), real_bits(scale)]
        for side in self.sides:
            radices = factors(side)
            assert radices is not None
            words += [len(radices), sum(radix << (RADIX_BITS * k) for k, radix in enumerate(radices))]
        return (*words, self.signals, self.i.inner)

    def scratch(self, matrices: int, signals: int = 0) -> int:
        """Bytes for the tables of roots and twiddle factors, so many matrices and so many signals."""
        elements = 4 * LONGEST + (matrices + 1 if matrices else 0) * self.matrix + signals * 2 * self.length
        return elements * self.style.compute.size_bytes

    def turning(self, twiddles: Kernel) -> Phase:
        return Phase(twiddles.function_name, self.padded[1], max(1, PIECE // self.padded[0]))

    def steps(self, first: Kernel, second: Kernel, signals: int) -> list[Phase]:
        """The phases of so many transforms."""
        columns = self.style.columns
        grain = max(1, PIECE // (columns * max(self.sides)))
        return [
            Phase(first.function_name, signals * self.padded[1] // columns, grain),
            Phase(second.function_name, signals * self.padded[0] // columns, grain),
        ]


class FourierKernel(Kernel):
    """A kernel with what all steps of a transform need to know."""

    def __init__(self, name: str, style: Style) -> None:
        super().__init__(name, style.target, operands=2)
        self.style, self.ty = style, style.compute
        self.n, self.length = self.word(0), self.word(1)
        self.sides, self.padded = (self.word(2), self.word(3)), (self.word(4), self.word(5))
        self.sign, self.scale = self.real_word(6, self.ty), self.real_word(7, self.ty)
        self.signals, self.inner = self.word(12), self.word(13)

    def planes(self, start: Value, size: Value) -> Planes:
        """Two arrays of scratch memory, one after the other, from an element on."""
        whole = self.scratch(self.ty)
        return whole.at(start), whole.at(start + size)

    def table(self, side: int) -> Planes:
        """The powers of the root of unity of a side."""
        return self.planes(self.const(Type.I64, 2 * LONGEST * side), self.const(Type.I64, LONGEST))

    def matrix(self, number: Operand) -> Planes:
        """The transposed matrix between the two steps; before the first of them stand the twiddle factors."""
        size = self.padded[0] * self.padded[1]
        return self.planes((number + self.const(Type.I64, 1)) * size * 2 + 4 * LONGEST, size)

    def twiddles(self) -> Planes:
        return self.matrix(self.const(Type.I64, -1))

    def twiddle(self, column: Value, row: Value) -> Complex:
        """What the elements of the transposed matrix from a row on are turned by."""
        lanes = self.style.lanes
        return self.root(self.counting(row, lanes) * self.splat(column.to(self.ty), lanes), self.length)

    def signal(self, number: Operand) -> Planes:
        """What Bluestein's convolution works on: signals, the chirp that becomes a spectrum, and one that stays."""
        matrices = self.padded[0] * self.padded[1] * 2 * (self.signals + 2)
        place = self.const(Type.I64, number) if isinstance(number, int) else number
        return self.planes(matrices + place * self.length * 2 + 4 * LONGEST, self.length)

    def first_of(self, signal: Value) -> Value:
        """Where the first element of a signal lies; the next are at a distance of `inner`."""
        return signal // self.inner * self.n * self.inner + signal % self.inner

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

    def scaled(self, value: Complex) -> Complex:
        scale = self.splat(self.scale, value[0].lanes)
        return value[0] * scale, value[1] * scale

    def interleaved(self, array: Array, index: Value, lanes: int) -> Complex:
        """Numbers as pairs in memory, their parts apart."""
        if lanes > 1:
            pairs = array.vector(index * 2, 2 * lanes)
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
            for small in SMALL_RADICES:
                with k.when(radix.compare("eq", small)):
                    self._small_radix(small, below.value, stride.value)
            with k.when(radix > max(4, *SMALL_RADICES)):
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

    def _small_radix(self, radix: int, below: Value, stride: Value) -> None:
        """The same of a small prime: sums and differences of x[p + below·j] and x[p + below·(radix - j)] are turned."""
        k, lanes, run = self.k, self.lanes, stride * self.width
        sources, targets = self.planes(self.source.value), self.planes(self.target.value)
        halves = range(1, (radix + 1) // 2)
        with k.loop(0, below, plain=True) as p:
            turns = [[k.splat(part, lanes) for part in self._root(p * stride * j)] for j in range(1, radix)]
            reads = [[plane.at((p + below * j) * run) for j in range(radix)] for plane in sources]
            writes = [[plane.at((p * radix + j) * run) for j in range(radix)] for plane in targets]
            with k.loop(0, run, lanes, plain=True) as t:
                x = [[plane[j].vector(t, lanes) for j in range(radix)] for plane in reads]
                results: dict[int, Complex] = {}
                if radix == 2:
                    results[0], results[1] = (
                        (x[0][0] + x[0][1], x[1][0] + x[1][1]),
                        (x[0][0] - x[0][1], x[1][0] - x[1][1]),
                    )
                else:
                    sums = [{m: part[m] + part[radix - m] for m in halves} for part in x]
                    differences = [{m: part[m] - part[radix - m] for m in halves} for part in x]
                    whole = [part[0] for part in x]
                    for part in (0, 1):
                        for m in halves:
                            whole[part] = whole[part] + sums[part][m]
                    results[0] = whole[0], whole[1]
                    for j in halves:
                        even, odd = [part[0] for part in x], [k.const(k.ty, 0, lanes) for _ in x]
                        for m in halves:
                            angle = 2 * math.pi * (j * m % radix) / radix
                            sine = k.splat(k.sign * math.sin(angle), lanes)
                            for part in (0, 1):
                                even[part] = k.muladd(sums[part][m], math.cos(angle), even[part])
                                odd[part] = k.muladd(differences[part][m], sine, odd[part])
                        results[j] = even[0] - odd[1], even[1] + odd[0]
                        results[radix - j] = even[0] + odd[1], even[1] - odd[0]
                for j in range(radix):
                    turned = k.times(results[j], (turns[j - 1][0], turns[j - 1][1])) if j else results[j]
                    for part in (0, 1):
                        writes[part][j].put(t, turned[part])

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
