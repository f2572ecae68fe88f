"""Sines and cosines of many angles: in vectors where all are moderate, which they nearly always are.

Comes in: an array of angles; goes out: both functions of each, within the rows' own bound of 2 places. The code of the
SIN and COS rows reduces angles of any size without asking, which costs several times what the functions do; here an
array that has a huge angle, an infinity or a NaN in it goes by the rows, any other is reduced by Cody and Waite.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eshkol.atlas.table.elementary_code import FORMATS
from eshkol.atlas.table.elementary_trig import COS, COUNT_PARTS, QUARTER_TURN, SIN, TWO_OVER_PI
from eshkol.atlas.types import Type
from eshkol.backends.cpu.macros.kit import Array, Kernel, Value
from eshkol.backends.cpu.macros.reduce import Fold

MODERATE = 2.0**20  # counts of quarter turns below it are exact in every step

Write = Callable[[Value, Value, Value], None]  # of the functions from an index on, as many as they have lanes


def sines_and_cosines(k: Kernel, angles: Array, n: Value, write: Write) -> None:
    """write(index, sines, cosines) for n angles."""
    greatest = Fold(k, "maximum", angles.ty, 0)
    for p, lanes in k.strips(angles.ty, n):
        x = angles.vector(p, lanes)
        greatest.take(k.maximum(x, -x))
    moderate = greatest.result() < MODERATE  # NaN is not
    with k.when(moderate):
        for p, lanes in k.strips(angles.ty, n):
            write(p, *quick(k, angles.vector(p, lanes)))
    with k.when(k.negated(moderate)), k.parallel(0, n) as p:
        x = angles[p]
        write(p, k.math("SIN", x), k.math("COS", x))


def quick(k: Kernel, x: Value) -> tuple[Value, Value]:
    """Sine and cosine of moderate angles."""
    quadrant, r, low = _reduced_in_f64(k, x) if x.ty is Type.F32 else _reduced(k, x)
    z = r * r
    sine = r + k.muladd(r * z, polynomial(k, z, SIN[x.ty]), low * k.muladd(z, -0.5, 1.0))
    half = z * 0.5
    high = 1.0 - half
    rest = (1.0 - high) - half
    cosine = high + (rest + k.muladd(z * z, polynomial(k, z, COS[x.ty]), -(r * low)))
    odd = (quadrant & 1).compare("ne", 0)
    sines, cosines = k.where(odd, cosine, sine), k.where(odd, sine, cosine)
    sines = k.where((quadrant & 2).compare("ne", 0), -sines, sines)
    cosines = k.where(((quadrant + 1) & 2).compare("ne", 0), -cosines, cosines)
    return k.where(x.compare("eq", 0), x, sines), cosines  # a zero keeps its sign


def polynomial(k: Kernel, x: Value, coefficients: Sequence[float]) -> Value:
    """The sum of coefficients times rising powers, by Horner."""
    total = k.const(x.ty, coefficients[-1], x.lanes)
    for coefficient in reversed(coefficients[:-1]):
        total = k.muladd(total, x, coefficient)
    return total


def _counted(k: Kernel, x: Value) -> tuple[Value, Value]:
    """The number of quarter turns nearest to an F64 angle: as an integer's low bits, and as a float."""
    f = FORMATS[Type.F64]
    rounded = k.muladd(x, TWO_OVER_PI, f.magic)
    return rounded.bits(Type.I64), rounded - f.magic


def _reduced_in_f64(k: Kernel, x: Value) -> tuple[Value, Value, Value]:
    """Quadrant, and what is left in two parts, of F32 angles; F64 has more places than are lost."""
    wide = x.to(Type.F64)
    quadrant, count = _counted(k, wide)
    turn, turn_low = QUARTER_TURN[Type.F64]
    rest = k.fma(count, -turn_low, k.fma(count, -turn, wide))
    r = rest.to(Type.F32)
    return quadrant.to(Type.I32), r, (rest - r.to(Type.F64)).to(Type.F32)


def _reduced(k: Kernel, x: Value) -> tuple[Value, Value, Value]:
    """The same of F64 angles, with a quarter turn in three parts."""
    first, second, third = COUNT_PARTS[Type.F64]
    quadrant, count = _counted(k, x)
    near = k.fma(count, -first, x)
    product = count * second
    product_low = k.fma(count, second, -product)
    r, rest = _two_sum(near, -product)
    low = k.fma(count, -third, rest - product_low)
    total = r + low
    return quadrant, total, low - (total - r)


def _two_sum(a: Value, b: Value) -> tuple[Value, Value]:
    """a + b rounded, and the exact rest."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)
