"""Scalars: what rows compute with when they write the code of one element.

A scalar has a dtype and is held in a register, or is a number known now. Indices are int64 scalars that are known to be
at least `least`, which is not negative, and at most `most`: while that fits 32 bits they are held in U32 registers, in
which dividing is cheap and an address needs no check against overflow. An index that may be negative is held in I64.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from eshkol.atlas.operands import Register
from eshkol.atlas.types import Type
from eshkol.ops import dtypes
from eshkol.ops.dtypes import DType
from eshkol.schedule.kernels.code import Virtual

if TYPE_CHECKING:
    from eshkol.schedule.kernels.emit import Emitter
    from eshkol.schedule.kernels.reads import Read

NARROW_LIMIT = 1 << 32
TYPES: dict[DType, Type] = {d: Type.of_dtype(d.numpy) for d in dtypes.ALL if not d.is_complex and not d.is_bool} | {
    dtypes.bool_: Type.U8
}


class Scalar:
    """One value of one lane."""

    __slots__ = ("dtype", "e", "known", "least", "most", "origin", "register", "serial")

    def __init__(
        self,
        e: Emitter,
        dtype: DType,
        register: Virtual | Register | None,
        *,
        known: Any = None,
        most: int | None = None,
        least: int = 0,
    ) -> None:
        self.e, self.dtype, self.register, self.known = e, dtype, register, known
        self.most, self.least = most, least  # `least` counts only where `most` is known
        self.serial = e.next_serial()
        self.origin: tuple[Read, Sequence[Any]] | None = None  # the read and the index it came from

    def __repr__(self) -> str:
        return f"<scalar {self.dtype} {self.register if self.known is None else self.known}>"

    def __add__(self, other: Any) -> Scalar:
        return self.e.arithmetic("ADD", self, other)

    def __radd__(self, other: Any) -> Scalar:
        return self.e.arithmetic("ADD", other, self)

    def __sub__(self, other: Any) -> Scalar:
        return self.e.arithmetic("SUB", self, other)

    def __rsub__(self, other: Any) -> Scalar:
        return self.e.arithmetic("SUB", other, self)

    def __mul__(self, other: Any) -> Scalar:
        return self.e.arithmetic("MUL", self, other)

    def __rmul__(self, other: Any) -> Scalar:
        return self.e.arithmetic("MUL", other, self)

    def __floordiv__(self, other: Any) -> Scalar:
        return self.e.arithmetic("DIV", self, other)

    def __rfloordiv__(self, other: Any) -> Scalar:
        return self.e.arithmetic("DIV", other, self)

    def __mod__(self, other: Any) -> Scalar:
        return self.e.arithmetic("REM", self, other)

    def __rmod__(self, other: Any) -> Scalar:
        return self.e.arithmetic("REM", other, self)

    def __bool__(self) -> bool:
        raise TypeError("a scalar of a kernel has no value yet: use e.select instead of if")


FOLDED = {
    "ADD": lambda x, y: x + y, "SUB": lambda x, y: x - y, "MUL": lambda x, y: x * y,
    "DIV": lambda x, y: x // y, "REM": lambda x, y: x % y,
}  # fmt: skip


def bounds(name: str, x: Scalar, y: Scalar) -> tuple[int, int | None]:
    """The least and the greatest number that an operation on indices can give; no greatest if it may be negative."""
    if x.most is None or y.most is None or (name == "SUB" and x.least < y.most):
        return 0, None
    if name == "ADD":
        return x.least + y.least, x.most + y.most
    if name == "SUB":
        return x.least - y.most, x.most - y.least
    if name == "MUL":
        return x.least * y.least, x.most * y.most
    divisor = y.known or 1
    if name == "DIV":
        return (x.least // divisor if y.known else 0), x.most // divisor
    if y.known and x.most // divisor == x.least // divisor:
        return x.least % divisor, x.most % divisor
    return 0, min(x.most, y.known - 1 if y.known else y.most)


def compared(condition: str, x: Scalar, y: Scalar) -> bool | None:
    """What a comparison of two indices gives, where their bounds decide it."""
    if x.most is None or y.most is None:
        return None
    if condition in ("EQ", "NE"):
        apart = x.most < y.least or y.most < x.least
        return None if not apart else condition == "NE"
    if condition in ("GT", "LE"):
        found = compared("LT", y, x)
        return found if found is None or condition == "GT" else not found
    if x.most < y.least or x.least >= y.most:
        return (x.most < y.least) is (condition == "LT")
    return None
