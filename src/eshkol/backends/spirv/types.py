"""Types of the C that kernels are written in, its values, and places that hold some.

Integers of fewer than 32 bits are held in words, extended as their sign says: C computes in `int`, and devices need
have no more than memory of such numbers. Pointers are numbers: addresses of the device's memory, or offsets into what a
block shares.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from eshkol.backends.spirv.module import Space


class Kind(Enum):
    VOID = "void"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    POINTER = "pointer"
    STRUCT = "struct"  # of 64-bit words
    ARRAY = "array"


@dataclass(frozen=True, slots=True)
class CType:
    """A type; of pointers and arrays with what they hold."""

    kind: Kind
    bits: int = 0
    signed: bool = False
    of: CType | None = None
    shared: bool = False  # of pointers: into the memory of a block
    packed: bool = False  # of pointers: to what is aligned to nothing
    volatile: bool = False  # of pointers: to what others change
    count: int = 0  # of arrays and structures

    @property
    def held(self) -> int:
        """The bits that hold a value."""
        if self.kind is Kind.POINTER:
            return 32 if self.shared else 64
        return max(self.bits, 32)

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self.bits // 8

    @property
    def pointee(self) -> CType:
        assert self.of is not None
        return self.of


VOID, BOOL = CType(Kind.VOID), CType(Kind.BOOL, 32)
INT, UINT, LONG, ULONG = (CType(Kind.INT, bits, signed) for bits in (32, 64) for signed in (True, False))
FLOAT, DOUBLE = CType(Kind.FLOAT, 32, True), CType(Kind.FLOAT, 64, True)
NAMED: Mapping[str, CType] = {
    "void": VOID, "bool": BOOL, "int": INT, "uint": UINT, "long": LONG, "ulong": ULONG, "float": FLOAT,
    "double": DOUBLE, "char": CType(Kind.INT, 8, True), "uchar": CType(Kind.INT, 8),
    "short": CType(Kind.INT, 16, True), "ushort": CType(Kind.INT, 16),
}  # fmt: skip


@dataclass(slots=True)
class Value:
    """A value: by its number in the module, or as a constant that may still get one."""

    ty: CType
    id: int = 0
    constant: int | float | None = None


@dataclass(slots=True)
class Place:
    """What can be read and written: a variable or a part of one, or memory behind a pointer."""

    ty: CType
    pointer: int  # of the variable, or the number that a pointer is
    behind: CType | None = None  # the pointer's type
    space: Space = Space.Function  # of a variable


def promoted(ty: CType) -> CType:
    """What C computes integers of a type in."""
    return INT if ty.kind is Kind.BOOL or (ty.kind is Kind.INT and ty.bits < 32) else ty


def common(one: CType, other: CType) -> CType:
    """What C computes two operands in."""
    one, other = promoted(one), promoted(other)
    for ty in (DOUBLE, FLOAT):
        if ty in (one, other):
            return ty
    if one.bits != other.bits:
        return one if one.bits > other.bits else other
    return one if not one.signed else other


def wide_type(bits: int) -> CType:
    """The structure of so many bits."""
    return CType(Kind.STRUCT, bits, count=bits // 64)


def literal(token: str) -> Value:
    """A number as C has it."""
    lower = token.lower()
    is_hex = lower.startswith("0x")
    if "p" in lower or (not is_hex and ("." in lower or "e" in lower)):
        single = lower.endswith("f")
        text = lower.removesuffix("f") if single else lower
        value = float.fromhex(text) if is_hex else float(text)
        return Value(FLOAT if single else DOUBLE, constant=value)
    digits = lower.rstrip("ul")
    value = int(digits, 16 if is_hex else 10)
    suffix = lower[len(digits) :]
    kinds = [k for k in (INT, UINT, LONG, ULONG) if not ("u" in suffix and k.signed)]
    kinds = [k for k in kinds if not ("l" in suffix and k.bits < 64)]
    if not is_hex and "u" not in suffix:
        kinds = [k for k in kinds if k.signed]
    for ty in kinds:
        if value >> (ty.bits - ty.signed) == 0:
            return Value(ty, constant=value)
    return Value(ULONG, constant=value)
