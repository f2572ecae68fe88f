"""The data types of Atlas, and how a NumPy array holds values of each.

Comes in: nothing. Goes out: `Type`, the sets of types that rows refer to, and the conversions between
typed arrays and little-endian bytes. Integers up to 64 bits and floats live in arrays of their own
dtype; the wide integers (128 to 4096 bits) live in object arrays of Python integers.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from eshkol.errors import IsaError

Array = npt.NDArray[Any]


class Type(Enum):
    """A data type: its kind and its width in bits."""

    F16 = ("float", 16)
    BF16 = ("bfloat", 16)
    F32 = ("float", 32)
    F64 = ("float", 64)
    I8 = ("int", 8)
    I16 = ("int", 16)
    I32 = ("int", 32)
    I64 = ("int", 64)
    I128 = ("int", 128)
    I256 = ("int", 256)
    I512 = ("int", 512)
    I1024 = ("int", 1024)
    I2048 = ("int", 2048)
    I4096 = ("int", 4096)
    U8 = ("uint", 8)
    U16 = ("uint", 16)
    U32 = ("uint", 32)
    U64 = ("uint", 64)
    U128 = ("uint", 128)
    U256 = ("uint", 256)
    U512 = ("uint", 512)
    U1024 = ("uint", 1024)
    U2048 = ("uint", 2048)
    U4096 = ("uint", 4096)

    __hash__ = object.__hash__  # members are single objects; Enum's own hash is a slow Python call

    def __repr__(self) -> str:
        return self.name

    __str__ = __repr__

    @cached_property
    def _kind(self) -> str:
        return self.value[0]

    @cached_property
    def bits(self) -> int:
        return self.value[1]

    @cached_property
    def size_bytes(self) -> int:
        return self.bits // 8

    @cached_property
    def is_float(self) -> bool:
        return self._kind in ("float", "bfloat")

    @cached_property
    def is_integer(self) -> bool:
        return not self.is_float

    @cached_property
    def is_signed(self) -> bool:
        return self._kind != "uint"

    @cached_property
    def is_unsigned(self) -> bool:
        return self._kind == "uint"

    @cached_property
    def is_wide(self) -> bool:
        """Wider than any NumPy dtype: held in object arrays of Python integers."""
        return self.bits > 64

    @cached_property
    def is_half(self) -> bool:
        """A 16-bit float: its arithmetic is done in F32 and rounded once."""
        return self in (Type.F16, Type.BF16)

    @cached_property
    def alignment(self) -> int:
        """Natural alignment in buffers and shared memory, in bytes."""
        return min(self.size_bytes, 8)

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of an array of such values (little-endian; object for the wide integers)."""
        if self.is_wide:
            return np.dtype(object)
        if self is Type.BF16:
            bfloat: np.dtype[Any] = np.dtype(ml_dtypes.bfloat16)
            return bfloat
        letter = {"float": "f", "int": "i", "uint": "u"}[self._kind]
        return np.dtype(f"<{letter}{self.size_bytes}")

    @cached_property
    def min_value(self) -> int:
        """The least integer of an integer type."""
        return -(1 << (self.bits - 1)) if self.is_signed else 0

    @cached_property
    def max_value(self) -> int:
        """The greatest integer of an integer type."""
        return (1 << (self.bits - self.is_signed)) - 1

    @cached_property
    def mantissa_bits(self) -> int:
        """Explicit fraction bits of a float type."""
        return {Type.F16: 10, Type.BF16: 7, Type.F32: 23, Type.F64: 52}[self]

    @classmethod
    def parse(cls, name: str) -> Type:
        try:
            return cls[name.upper()]
        except KeyError:
            raise IsaError(f"unknown type '{name}'", hint="types are F16 BF16 F32 F64, I8…I4096 and U8…U4096") from None

    @classmethod
    def of_dtype(cls, dtype: npt.DTypeLike) -> Type:
        """The type whose values this NumPy dtype holds."""
        wanted = np.dtype(dtype)
        for candidate in cls:
            if not candidate.is_wide and candidate.dtype == wanted:
                return candidate
        raise IsaError(f"no Atlas type for the NumPy dtype '{wanted}'")


FLOATS = frozenset(t for t in Type if t.is_float)
INTEGERS = frozenset(t for t in Type if t.is_integer)
SIGNED = frozenset(t for t in INTEGERS if t.is_signed)
NARROW_INTEGERS = frozenset(t for t in INTEGERS if not t.is_wide)
ALL_TYPES = FLOATS | INTEGERS
INDEX_TYPES = frozenset({Type.I32, Type.I64, Type.U32, Type.U64})  # what may index memory or count a loop


def wrap(values: Array, ty: Type) -> Array:
    """Integers of any size, brought into the range of `ty` modulo 2^bits."""
    if not ty.is_wide:
        return values.astype(ty.dtype, copy=False)
    modulus = 1 << ty.bits
    reduced = values.astype(object, copy=False) % modulus
    if ty.is_signed:
        reduced = np.where(reduced > ty.max_value, reduced - modulus, reduced)
    return np.asarray(reduced, dtype=object)


def encode(values: Array, ty: Type) -> npt.NDArray[np.uint8]:
    """Values as little-endian bytes: an array of shape (len(values), size_bytes)."""
    if ty.is_wide:
        raw = b"".join(int(v).to_bytes(ty.size_bytes, "little", signed=ty.is_signed) for v in values)
        return np.frombuffer(raw, np.uint8).reshape(len(values), ty.size_bytes)
    packed = np.ascontiguousarray(values, ty.dtype)
    return packed.view(np.uint8).reshape(len(values), ty.size_bytes)


def decode(raw: npt.NDArray[np.uint8], ty: Type) -> Array:
    """The inverse of `encode`."""
    if ty.is_wide:
        values = np.empty(len(raw), object)
        values[:] = [int.from_bytes(row.tobytes(), "little", signed=ty.is_signed) for row in raw]
        return values
    return np.ascontiguousarray(raw).view(ty.dtype).reshape(len(raw))


def element_text(value: Any, ty: Type) -> str:
    """A value of `ty` as the shortest text that reads back to the same value."""
    if ty.is_integer:
        return str(int(value))
    if ty is Type.BF16:  # ml_dtypes prints few digits; the enclosing F32 is exact
        return repr(float(value))
    return str(np.asarray(value, ty.dtype)[()])
