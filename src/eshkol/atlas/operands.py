"""What an Atlas instruction is made of: registers, predicates, labels, immediates, addresses, choices.

Everything here is a small frozen value with a `str` that is its assembler text.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar, Self

import numpy as np

from eshkol.atlas.rounding import nearest
from eshkol.atlas.types import Array, Type, element_text
from eshkol.errors import IsaError

REGISTERS = 256
PREDICATES = 16
LANE, BLOCK, BLOCK_SIZE, GLOBAL = 252, 253, 254, 255
LONGEST_SHOWN = 128  # bits of an integer in a message
SPECIAL_TYPES = {LANE: Type.U32, BLOCK: Type.U32, BLOCK_SIZE: Type.U32, GLOBAL: Type.U64}


def shortened(value: object) -> str:
    """A value for a message; Python itself refuses to print integers of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > LONGEST_SHOWN:
        exponent, fraction = divmod(math.log10(abs(value)), 1)
        return f"~{'-' * (value < 0)}{10**fraction:.2f}e{exponent:.0f}"
    try:
        text = str(value)
    except (ValueError, RecursionError):  # such an integer in a list or address, or a list in a list in a list
        return f"a {type(value).__name__} that cannot be printed"
    return text if len(text) <= 100 else f"{text[:97]}..."


class _Numbered:
    """A numbered place of a lane. There is one object for each: dicts tell them apart by identity, which is fast."""

    __slots__ = ("index",)
    kind: ClassVar[str]
    all: ClassVar[dict[int, Any]]
    index: int

    def __init_subclass__(cls, count: int) -> None:
        cls.kind, cls.all = cls.__name__.lower(), {index: object.__new__(cls) for index in range(count)}
        for index, one in cls.all.items():
            object.__setattr__(one, "index", index)

    def __new__(cls, index: int) -> Self:
        found: Self | None = cls.all.get(index)
        if found is None:
            letter, last = cls.kind[0], len(cls.all) - 1
            raise IsaError(
                f"{cls.kind} {letter}{shortened(index)} does not exist",
                hint=f"{cls.kind}s are {letter}0 to {letter}{last}",
            )
        return found

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{self} is one for all: its {name} cannot be changed")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.index,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(index={self.index})"

    def __str__(self) -> str:
        return f"{self.kind[0]}{self.index}"

    def __lt__(self, other: Self) -> bool:
        return self.index < other.index


class Register(_Numbered, count=REGISTERS):
    """One of the 256 typed slots of a lane; r252 to r255 are the read-only special registers."""

    __slots__ = ()

    @property
    def is_special(self) -> bool:
        return self.index >= LANE


class Predicate(_Numbered, count=PREDICATES):
    """One of the 16 truth values of a lane."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Label:
    """A name for a place in the program."""

    name: str

    def __str__(self) -> str:
        return self.name


def to_float(value: int | float) -> float:
    """A number as a float; an integer beyond all floats is infinite."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@dataclass(frozen=True, slots=True, eq=False)
class Immediate:
    """A typed constant. Floats are rounded to the type on construction; integers must fit it."""

    ty: Type
    value: int | float

    def __post_init__(self) -> None:
        if self.ty.is_float:
            object.__setattr__(self, "value", nearest(self.value, self.ty))
        elif isinstance(self.value, float) or int(self.value) != self.value:
            raise IsaError(f"{self.value} is not an integer, as {self.ty} needs")
        elif not self.ty.min_value <= self.value <= self.ty.max_value:
            raise IsaError(f"{shortened(self.value)} does not fit {self.ty}")
        else:
            object.__setattr__(self, "value", int(self.value))  # not a bool or a NumPy integer

    def _key(self) -> tuple[Type, Any]:  # tells 0.0 from -0.0 and makes NaN equal to itself
        return self.ty, (float(self.value).hex() if self.ty.is_float else self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Immediate) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        return element_text(self.value, self.ty)

    def array(self) -> Array:
        """The value as a one-element array of its type."""
        result = np.empty(1, self.ty.dtype)
        result[0] = self.value
        return result


class StaticAddress:
    """Base of the address modes whose place is known when the program is written."""

    __slots__ = ()
    offset: int

    def at(self, index: Register, scale: int) -> Indexed:
        """The address `scale` times the index register beyond this one."""
        return Indexed(self, index, scale)


def _place(name: str, offset: int) -> str:
    return f"[{name}+{offset}]" if offset else f"[{name}]"


@dataclass(frozen=True, slots=True)
class BufferOffset(StaticAddress):
    """A byte offset in a buffer (or the one element of a scalar) that the program declares."""

    handle: str
    offset: int = 0

    def __str__(self) -> str:
        return _place(self.handle, self.offset)


@dataclass(frozen=True, slots=True)
class PoolOffset(StaticAddress):
    """A byte offset in a pool, in flat addressing."""

    handle: str
    offset: int = 0

    def __str__(self) -> str:
        return _place(f"pool {self.handle}", self.offset)


@dataclass(frozen=True, slots=True)
class Shared(StaticAddress):
    """A byte offset in the block's shared memory."""

    offset: int = 0

    def __str__(self) -> str:
        return _place("shared", self.offset)


@dataclass(frozen=True, slots=True)
class ClassOffset(StaticAddress):
    """A byte offset in the memory of one of the 96 resonance classes."""

    class_id: int
    offset: int = 0

    def __str__(self) -> str:
        return _place(f"class {self.class_id}", self.offset)


@dataclass(frozen=True, slots=True)
class RegisterIndirect:
    """The linear class-memory address (as BoundMap computes it) that a register holds."""

    register: Register

    def __str__(self) -> str:
        return f"[{self.register}]"


@dataclass(frozen=True, slots=True)
class Indexed:
    """A static base plus `scale` bytes times the element index in a register."""

    base: StaticAddress
    index: Register
    scale: int

    def __str__(self) -> str:
        return f"{str(self.base)[:-1]}+{self.index}*{self.scale}]"


Address = BufferOffset | PoolOffset | Shared | ClassOffset | RegisterIndirect | Indexed
ADDRESS_MODES = (BufferOffset, PoolOffset, Shared, ClassOffset, RegisterIndirect, Indexed)


def far_index(scale: int) -> int:
    """An index that is out of range of any memory at this scale, with any offset; 64 bits hold its product."""
    return (1 << 60) // scale


def address_register(address: Address) -> Register | None:
    """The register an address depends on, if any."""
    if isinstance(address, Indexed):
        return address.index
    return address.register if isinstance(address, RegisterIndirect) else None


def address_base(address: Address) -> StaticAddress | None:
    """The static part of an address; None for register-indirect."""
    if isinstance(address, Indexed):
        return address.base
    return None if isinstance(address, RegisterIndirect) else address


class Choice(Enum):
    """Base of the enumerations that instructions choose from; the value is a one-line meaning."""

    def __str__(self) -> str:
        return self.name


class Condition(Choice):
    EQ = "equal"
    NE = "not equal (true for NaN)"
    LT = "less"
    LE = "less or equal"
    GT = "greater"
    GE = "greater or equal"


class MemoryScope(Choice):
    Block = "visible to the lanes of the block"
    Device = "visible to all lanes on the device"
    System = "visible to the host and other devices too"


class MapOperation(Choice):
    Abs = "ABS"
    Neg = "NEG"
    Sqrt = "SQRT"
    Exp = "EXP"
    Log = "LOG"
    Sin = "SIN"
    Cos = "COS"
    Tan = "TAN"
    Relu = "RELU"
    Sigmoid = "SIGMOID"
    Tanh = "TANH"


class BinaryMapOperation(Choice):
    Add = "ADD"
    Sub = "SUB"
    Mul = "MUL"
    Div = "DIV"
    Pow = "POW"
    Min = "MIN"
    Max = "MAX"
    Atan2 = "ATAN2"


class ReduceOperation(Choice):
    Sum = "ADD"
    Product = "MUL"
    Min = "MIN"
    Max = "MAX"


class Activation(Choice):
    """What follows a sum; the value is the mnemonic of the scalar row."""

    Identity = ""
    Relu = "RELU"
    Gelu = "GELU"
    Silu = "SWISH"
    Sigmoid = "SIGMOID"
    Tanh = "TANH"


class AtomicOperation(Choice):
    Add = "ADD"
    Min = "MIN"
    Max = "MAX"
    And = "AND"
    Or = "OR"
    Xor = "XOR"
    Exchange = "MOV"


class SpecialRegister(Choice):
    LaneX = "lane index in the block, x"
    LaneY = "lane index in the block, y"
    LaneZ = "lane index in the block, z"
    BlockX = "block index in the grid, x"
    BlockY = "block index in the grid, y"
    BlockZ = "block index in the grid, z"
    BlockSizeX = "lanes per block, x"
    BlockSizeY = "lanes per block, y"
    BlockSizeZ = "lanes per block, z"
    GridSizeX = "blocks per grid, x"
    GridSizeY = "blocks per grid, y"
    GridSizeZ = "blocks per grid, z"
