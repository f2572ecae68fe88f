"""Numbers as values of a type: rounded once, to nearest even, to a float type, or checked to fit an integer type.

Comes in: Python numbers and NumPy arrays. Goes out: the nearest values of the type. Rounding twice (an integer to F64
and that to F32, or F64 to BF16 through F32) can end a place away from it; constants (`operands.py`), conversions
(`numerics.py`) and the contents of buffers (`to_array`) all round here.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eshkol.atlas.types import Array, Type
from eshkol.errors import IsaError


def nearest(value: int | float, ty: Type) -> float:
    """The value of a float type nearest to a number; one NaN is like another."""
    if isinstance(value, int | np.integer):
        return nearest_to_integer(int(value), ty)
    with np.errstate(all="ignore"):
        rounded = float(nearest_of_array(np.array([value], np.float64), ty)[0])
    return math.nan if math.isnan(rounded) else rounded


def nearest_to_integer(value: int, ty: Type) -> float:
    """An integer of any size, rounded to a float type; beyond its range it is infinite."""
    precision, max_exponent = ty.mantissa_bits + 1, 1 << (ty.bits - ty.mantissa_bits - 2)
    magnitude = abs(value)
    extra = max(magnitude.bit_length() - precision, 0)
    kept = magnitude >> extra
    rest, half = magnitude & ((1 << extra) - 1), (1 << extra) >> 1
    if extra and (rest > half or (rest == half and kept & 1)):
        kept += 1
    if kept.bit_length() + extra > max_exponent:
        return -math.inf if value < 0 else math.inf
    rounded = math.ldexp(kept, extra)
    return -rounded if value < 0 else rounded


def nearest_of_array(values: Array, ty: Type) -> Array:
    """Floats of any type, rounded to another."""
    if ty is Type.BF16 and values.dtype == np.float64:
        single = values.astype(np.float32)  # round to odd on the way, so that only BF16 rounds
        inexact = np.isfinite(single) & (single.astype(np.float64) != values)
        even = (single.view(np.uint32) & np.uint32(1)) == 0
        toward = np.where(values > single, np.float32(np.inf), np.float32(-np.inf))
        values = np.where(inexact & even, np.nextafter(single, toward), single)
    return values.astype(ty.dtype)


def to_array(values: Any, ty: Type) -> Array:
    """A one-dimensional array of `ty` from numbers; a number the type cannot hold is an error."""
    if ty.is_float:
        given = np.ravel(np.asarray(values))
        limit = 1 << 53  # F64 does not hold all integers beyond it
        if given.dtype.kind in "iuO" and ((given > limit) | (given < -limit)).any():
            return np.array([nearest(value, ty) for value in given.tolist()]).astype(ty.dtype)
        return nearest_of_array(given.astype(np.float64) if given.dtype.kind in "iuO" else given, ty)
    # Without dtype=object NumPy would turn lists of large integers into floats, silently.
    given = np.ravel(values if isinstance(values, np.ndarray) else np.asarray(values, object))
    if given.dtype == object or given.dtype.kind == "f":
        exact = np.empty(given.size, object)
        for k, value in enumerate(given.tolist()):
            if not isinstance(value, int) and not float(value).is_integer():
                raise IsaError(f"{value} is not an integer, as {ty} needs")
            exact[k] = int(value)
        given = exact
    if given.size and (given.min() < ty.min_value or given.max() > ty.max_value):
        raise IsaError(f"a value between {given.min()} and {given.max()} does not fit {ty}")
    return given.astype(ty.dtype)
