"""What C-like languages differ in, as far as kernels are written in them: one `Dialect` for each.

Comes in: nothing; a backend states its dialect. Goes out: names of types, constants, casts of bits, qualifiers of
memory, barriers, atomics, and the text of helper functions that a kernel uses.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from eshkol.atlas.operands import Immediate
from eshkol.atlas.types import Type

GLOBAL, SHARED, PRIVATE = "global", "shared", "private"


class Dialect(ABC):
    """A language that kernels are written in."""

    name: ClassVar[str]
    types: ClassVar[Mapping[Type, str]]  # what holds a value; 16-bit floats are held as their bits
    truth: ClassVar[str] = "bool"
    spaces: ClassVar[Mapping[str, str]]  # qualifiers of memory
    barrier: ClassVar[str]
    fence: ClassVar[str]
    helpers: ClassVar[Mapping[str, str]]  # name → text of a function
    prelude: str  # with which every kernel's text begins
    any_order: str = ""  # what says of a statement that its sums may be taken in any order, if there is a way
    own: Mapping[tuple[str, Type], str] = MappingProxyType({})  # templates of instructions that it has its own for

    def type(self, ty: Type) -> str:
        """The name of the type that holds a value; of integers of more than 64 bits, of a structure of words."""
        return self.types[ty] if not ty.is_wide else f"w{ty.bits}"

    def word(self, ty: Type) -> str:
        """The unsigned type in which integers of a type are computed: they wrap, and are not promoted to a sign."""
        return self.types[Type.U64 if ty.bits > 32 else Type.U32]

    def unsigned(self, bits: int) -> str:
        """The unsigned type of so many bits."""
        return self.types[Type[f"U{bits}"]]

    def constant(self, ty: Type, value: int | float) -> str:
        """A number of a type."""
        if ty.is_half:
            return str(int(Immediate(ty, value).array().view(np.uint16)[0]))
        if ty.is_float:
            return self.floating(ty, float(value))
        if ty.bits <= 32:
            return f"({self.types[ty]}){int(value)}" if value < 0 else f"{int(value)}{'u' * ty.is_unsigned}"
        return f"({self.types[ty]}){hex(int(value) & (1 << 64) - 1)}{self.long_suffix}"

    long_suffix: ClassVar[str] = "UL"

    def floating(self, ty: Type, value: float) -> str:
        """A constant of F32 or F64."""
        if math.isfinite(value):
            return value.hex() + "f" * (ty is Type.F32)
        bits = np.array(value, ty.dtype).view(f"u{ty.size_bytes}")
        return self.cast_bits(ty, f"{hex(int(bits))}{'u' if ty is Type.F32 else self.long_suffix}")

    @abstractmethod
    def cast_bits(self, ty: Type, value: str) -> str:
        """The same bits as another type of that width."""

    @abstractmethod
    def pointer(self, space: str, ty: str, *, volatile: bool = False) -> str:
        """The type of pointers into memory."""

    @abstractmethod
    def packed(self, space: str, ty: str, place: str) -> str:
        """What lies at a place that is aligned to nothing."""

    @abstractmethod
    def exchange(self, bits: int, space: str, place: str, seen: str, new: str) -> str:
        """Compare what lies there with what was seen, and put another in its place; the value is what lay there."""

    @abstractmethod
    def fault(self, sites: int) -> str:
        """The function by which a lane notes that it failed, at one of so many places: the lowest lane is kept."""

    @abstractmethod
    def kernel(self, parameters: list[tuple[str, str]], body: list[str]) -> str:
        """The function that a lane begins with, of parameters with their types."""
