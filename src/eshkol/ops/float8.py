"""Floats of 8 bits, kept as bytes (uint8): how numbers become such, what they stand for, and products of them.

Comes in: tensors, and a format: "e4m3" (4 bits of exponent, 3 of mantissa, up to 448, NaN and no infinity) or "e5m2"
(5 and 2, up to 57344). Goes out: bytes, numbers, and products summed in float32. There is no arithmetic on bytes but
products: on Hopper's tensor cores these are twice as fast as those of 16 bits; elsewhere bytes are widened first.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from eshkol.errors import DTypeError, ShapeError, TensorError
from eshkol.ops import dtypes
from eshkol.ops.contraction import matmul, turned
from eshkol.ops.dtypes import DType, float32, uint8
from eshkol.ops.elementwise import absolute, cast, greater_equal, less, minimum, not_equal, round_, where
from eshkol.ops.indexing import take
from eshkol.ops.movement import reshape
from eshkol.ops.reductions import wide
from eshkol.ops.row import STRUCTURE, Aval, Draw, HasAval, NoDerivative, Op, Parts, Value, composite, row, sample

GROUP = "float8"
NAN, NEGATIVE = 0x7F, 128  # bytes


class Format(NamedTuple):
    """So many bits of mantissa, and the least exponent of numbers that have all of them; the greatest number."""

    mantissa: int
    least: int
    greatest: float

    @property
    def exponents(self) -> range:
        return range(self.least + 1, math.floor(math.log2(self.greatest)) + 1)


FORMATS = {"e4m3": Format(3, -6, 448.0), "e5m2": Format(2, -14, 57344.0)}


def numbers(name: str) -> Any:
    """What each of the 256 bytes stands for."""
    mantissa, least, greatest = FORMATS[name]
    bytes_ = np.arange(NEGATIVE)
    exponent, rest = bytes_ >> mantissa, bytes_ & ((1 << mantissa) - 1)
    found = np.where(exponent > 0, (1 << mantissa) + rest, 2 * rest) * 2.0 ** (exponent + least - 1 - mantissa)
    found = np.where(found > greatest, np.nan, found)
    if name == "e5m2":
        found[0x7C] = np.inf
    return np.concatenate((found, -found)).astype(np.float32)


def _format(name: Any) -> Format:
    if name not in FORMATS:
        raise TensorError(f"there is no format {name!r} of 8 bits", hint=f"there are {' and '.join(FORMATS)}")
    return FORMATS[name]


def _nearest(x: Any, format: str = "e4m3") -> Any:
    """By looking at all numbers that there are: the nearest, the even one of two; the greatest for what is greater."""
    known = numbers(format)[:NEGATIVE]
    known = known[np.isfinite(known)].astype(np.float64)
    given = np.asarray(x).astype(np.float64)
    size = np.minimum(np.nan_to_num(np.abs(given), posinf=np.inf), known[-1])
    below = np.clip(np.searchsorted(known, size, side="right") - 1, 0, len(known) - 2)
    middle = (known[below] + known[below + 1]) / 2
    found = below + ((size > middle) | ((size == middle) & (below % 2 == 1)))
    found = np.where(np.isnan(given), NAN, found + np.where(given < 0, NEGATIVE, 0))
    return found.astype(np.uint8)


@composite(
    group=GROUP, method=False, reference=_nearest, dtypes=("float",),
    samples=(sample((2, 3)), sample(Draw((6,), -600, 600)), sample(Draw((5,), -1e-2, 1e-2), format="e5m2")),
)  # fmt: skip
def to_float8(x: Value, format: str = "e4m3") -> Any:
    """The bytes of the nearest floats of 8 bits, ties to even; what is greater than the greatest becomes that."""
    kind = _format(format)
    if not x.dtype.is_float:
        raise DTypeError(f"floats of 8 bits are made of floats, not of {x.dtype}", hint="cast to float32 first")
    given = cast(x, float32)
    size = minimum(absolute(given), kind.greatest)
    # All numbers of an exponent are steps of one size apart: a byte counts steps, from those of the exponents below on.
    steps, before = 2.0 ** (kind.mantissa - kind.least), 0.0
    scale, offset = given * 0 + steps, given * 0 + before
    for number, exponent in enumerate(kind.exponents, 1):
        above = greater_equal(size, 2.0**exponent)
        scale = where(above, steps * 2.0**-number, scale)
        offset = where(above, float(number << kind.mantissa), offset)
    found = round_(size * scale) + offset
    found = where(less(given, 0), found + NEGATIVE, found)
    return cast(where(not_equal(given, given), float(NAN), found), uint8)


def _stands_for(x: Any, format: str = "e4m3") -> Any:
    return numbers(format)[np.asarray(x).astype(np.uint8)]


_BYTES = Draw((3, 4), kind="int", make=lambda rng: rng.integers(0, 256, (3, 4)).astype(np.uint8))


def _bytes(x: Any) -> Any:
    if not x.dtype.is_integer:
        raise DTypeError(f"floats of 8 bits are kept as uint8, not as {x.dtype}", hint="to_float8 makes them")
    return cast(x, uint8)


@composite(
    group=GROUP, method=False, reference=_stands_for,
    samples=(sample(_BYTES), sample(_BYTES, format="e5m2")),
)  # fmt: skip
def from_float8(x: Value, format: str = "e4m3") -> Any:
    """What bytes stand for, as float32."""
    _format(format)
    return take(x.literal(numbers(format)), cast(_bytes(x), dtypes.int32))


class Formats(NamedTuple):
    """Those of the factors, and the dtype of the result."""

    x: str
    y: str
    dtype: DType


def _infer(a: Formats, x: HasAval, y: HasAval, scale: HasAval) -> Aval:
    return Aval((x.shape[0], y.shape[0]), a.dtype)


def _product(a: Formats, x: Any, y: Any, scale: Any) -> Any:
    one, other = numbers(a.x)[x].astype(np.float64), numbers(a.y)[y].astype(np.float64)
    return ((one @ other.T) * scale.astype(np.float64)).astype(a.dtype.numpy)


def _parts(a: Formats, x: Any, y: Any, scale: Any) -> Any:
    return cast(matmul(from_float8(x, a.x), turned(from_float8(y, a.y))) * scale, a.dtype)


def _batch(a: Formats, inputs: Any, batched: Any) -> Any:
    x, y, scale = inputs
    return _parts(a, x, y, reshape(scale, (*scale.shape[:-1], 1, 1)))


FLOAT8_PRODUCT: Op = row(Op(
    name="float8_product", doc="x·yᵀ of bytes, times a number, summed in float32.", function=None,
    names=("x", "y", "scale"), group=STRUCTURE, method=False, infer=_infer, reference=_product,
    derivative=NoDerivative("bytes do not vary smoothly", ), batch=_batch, lower=Parts(_parts),
))  # fmt: skip


def _multiplied(
    x: Any, y: Any, scale: Any = 1.0, formats: tuple[str, str] = ("e4m3", "e4m3"), dtype: Any = "float32"
) -> Any:
    one, other = _stands_for(x, formats[0]).astype(np.float64), _stands_for(y, formats[1]).astype(np.float64)
    return (one @ other.T * scale).astype(dtypes.of(dtype).numpy)


def _finite(*shape: int) -> Draw:
    return Draw(shape, kind="int", make=lambda rng: rng.integers(0, 0x60, shape).astype(np.uint8))


@composite(
    group=GROUP, method=False, reference=_multiplied,
    samples=(
        sample(_finite(3, 4), _finite(2, 4)),
        sample(_finite(2, 2, 4), _finite(5, 4), Draw((), 0.5, 2, kind="float"), formats=("e5m2", "e4m3")),
    ),
)  # fmt: skip
def float8_matmul(
    x: Value, y: Value, scale: Value | float = 1.0, formats: tuple[str, str] = ("e4m3", "e4m3"), dtype: Any = "float32"
) -> Any:
    """x · yᵀ · scale of floats of 8 bits, kept as bytes: … × terms and outputs × terms, summed in float32.

    The scale, one number, is what makes up for those with which factors were multiplied before they were rounded. The
    dtype is float32 or one of 16 bits.
    """
    if len(formats) != 2:
        raise TensorError(f"formats are those of x and of y, not {formats!r}")
    for name in formats:
        _format(name)
    one, other = _bytes(x), _bytes(y)
    kind = dtypes.of(dtype)
    if kind not in (float32, dtypes.bfloat16, dtypes.float16):
        raise DTypeError(f"products of 8 bits are of float32 or of 16 bits, not of {kind}", hint="cast the product")
    if x.ndim < 1 or y.ndim != 2 or x.shape[-1] != y.shape[1]:
        raise ShapeError(f"{list(x.shape)} and {list(y.shape)} are not … × terms and outputs × terms")
    if not isinstance(scale, Value):
        number = x.literal(np.full(1, scale, np.float32))
    elif scale.size != 1:
        raise ShapeError(f"a scale is one number, not {list(scale.shape)}", hint="scale rows of the product itself")
    else:
        number = reshape(wide(scale), (1,))
    rows = math.prod(x.shape[:-1])
    given = reshape(one, (rows, x.shape[-1])), other, cast(number, float32)
    found = x.apply(FLOAT8_PRODUCT, given, Formats(*formats, kind))
    return reshape(found, (*x.shape[:-1], y.shape[0]))
