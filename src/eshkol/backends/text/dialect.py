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
    true: ClassVar[str] = "1"
    default: ClassVar[str] = "default: return;"  # of a switch

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

    # --- statements, and what they compare ----------------------------------------------------------

    def variable(self, kind: str, name: str, start: str) -> str:
        """A variable and what it holds at first."""
        return f"{kind} {name} = {start};"

    def array(self, kind: str, name: str, count: int) -> str:
        """Variables that are numbered."""
        return f"{kind} {name}[{count}];"

    def failing(self, lane: str, site: int) -> str:
        """The note of a lane that fails."""
        return f"fault(status, {lane}, {site});"

    def zero(self, ty: Type) -> str:
        """None of an integer type, as a counter begins."""
        return "0"

    def is_positive(self, ty: Type, value: str) -> str:
        """Whether a number of rounds is one of some."""
        return f"{value} > 0"

    def is_negative(self, ty: Type, value: str) -> str:
        """Whether a number of rounds is none that there is."""
        return f"{value} < 0"

    def constantly(self, ty: Type, name: str, value: str) -> str:
        """A name for a value."""
        return f"const {self.types[ty]} {name} = {value};"

    def counting(self, ty: Type, name: str, count: str) -> str:
        """The head of a loop of so many rounds."""
        return f"for ({self.types[ty]} {name} = 0; {name} < {count}; ++{name})"

    def next_round(self, ty: Type, done: str, wanted: str) -> tuple[list[str], str]:
        """One round more: statements, and whether it is wanted."""
        return [], f"++{done} < {wanted}"

    def pushed(self, stack: str, depth: str, value: int) -> list[str]:
        """A number on top of a stack."""
        return [f"{stack}[{depth}++] = {value};"]

    def popped(self, target: str, stack: str, depth: str) -> list[str]:
        """The number on top of a stack, which is taken off."""
        return [f"{target} = {stack}[--{depth}];"]

    def chosen(self, condition: str, one: str, other: str) -> str:
        """One of two small numbers."""
        return f"{condition} ? {one} : {other}"

    # --- memory -------------------------------------------------------------------------------------

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
