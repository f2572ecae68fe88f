"""How kernels see their inputs and outputs: an element's own index, reads that broadcast, writes.

`Here` is the index of the element (or row) that a lane computes; its places are computed when they are asked for.
A `Read` gives elements of an input. Everything that every lane computes alike or once goes into the prologue, so that
it is there wherever the row's code first asks for it, be it inside a loop.
"""

from __future__ import annotations

from typing import Any

from eshkol.atlas.operands import BufferOffset, Shared
from eshkol.atlas.types import Type
from eshkol.errors import TensorError
from eshkol.ops.dtypes import DType
from eshkol.ops.row import Shape
from eshkol.ops.shapes import count
from eshkol.schedule.kernels.indices import IndexCode
from eshkol.schedule.kernels.scalars import STORED, TYPES, Pair, Scalar

CARRIED = {  # in which scalar parameters numbers of the small types are handed over: backends pack these quickly
    Type.F16: Type.F32, Type.BF16: Type.F32,
    Type.I8: Type.I32, Type.I16: Type.I32, Type.U8: Type.U32, Type.U16: Type.U32,
}  # fmt: skip
IMAGINARY = "i"  # how the parameter for a number's imaginary part ends


class Read:
    """Elements of an input that lies in a buffer."""

    def __init__(self, e: IndexCode, name: str, shape: Shape, dtype: DType) -> None:
        self.e, self.name, self.dtype, self.ty = e, name, dtype, STORED[dtype][0]
        self._shape = shape
        self._here: Scalar | None = None  # the element that broadcasts to the lane's own

    @property
    def shape(self) -> Shape:
        self.e.note_shape()
        return self._shape

    @property
    def size(self) -> int:
        return count(self.shape)

    def __call__(self, index: Any) -> Scalar:
        if index is self.e.here:
            if self._here is None:
                with self.e.in_prologue():
                    self._here = self.load(self._broadcast())
            return self._here
        if len(index) != len(self._shape):
            raise TensorError(f"an index of {len(index)} places into an input of shape {list(self._shape)}")
        found = self.load(self.e.ravel(index, self._shape))
        found.origin = self, index
        return found

    def _broadcast(self) -> Scalar:
        """The position of the element that broadcasting takes for the lane's own index."""
        e, shape = self.e, self.e.here.shape
        if count(self._shape) == count(shape):
            return e.lane
        if count(self._shape) == 1:
            return e.number(0)
        e.note_shape()
        own = (1,) * (len(shape) - len(self._shape)) + self._shape
        position = e.number(0)
        stride, own_stride, k = 1, 1, len(shape)
        while k > 0:  # runs of axes that the input has, from the last to the first, are one digit each
            run = 1
            while k > 0 and (own[k - 1] == shape[k - 1]):
                k -= 1
                run *= shape[k]
            position = position + e.digit(e.lane, stride, run) * own_stride
            stride, own_stride = stride * run, own_stride * run
            while k > 0 and own[k - 1] == 1 and shape[k - 1] != 1:
                k -= 1
                stride *= shape[k]
        return position

    def load(self, position: Scalar, beyond: int = 0) -> Scalar:
        """The element so far beyond a flat position."""
        self.e.use(self.name)
        return self.e.load("LDG", BufferOffset(self.name, beyond * self.dtype.size), position, self.dtype)

    def address(self, position: Scalar) -> Any:
        """The address of the element at a flat position, of what is not complex."""
        self.e.use(self.name)
        return self.e.element(self.name, position, self.ty)


def number_names(name: str, dtype: DType) -> tuple[str, ...]:
    """The scalar parameters in which a number is handed over: a complex one in two."""
    return (name, name + IMAGINARY) if dtype.is_complex else (name,)


class Number:
    """An input that is a number known to the host: a scalar parameter, or two, read once."""

    def __init__(self, e: IndexCode, name: str, dtype: DType) -> None:
        self.e, self.name, self.dtype, self.shape, self.size = e, name, dtype, (), 1
        self._value: Scalar | None = None

    def __call__(self, index: Any) -> Scalar:
        if self._value is None:
            self.e.use(self.name)
            with self.e.in_prologue():
                parts = [self._told(name) for name in number_names(self.name, self.dtype)]
            self._value = Pair(self.e, *parts) if self.dtype.is_complex else parts[0]
        return self._value

    def _told(self, name: str) -> Scalar:
        """What one of the parameters holds."""
        dtype = self.dtype.real
        ty = TYPES[dtype]
        carried = CARRIED.get(ty, ty)
        register = self.e.fresh(carried)
        self.e.record("LDG", carried, register, BufferOffset(name))
        if carried is not ty:
            narrow = self.e.fresh(ty)
            self.e.record("CVT", carried, ty, narrow, register)
            register = narrow
        return Scalar(self.e, dtype, register)

    def load(self, position: Scalar) -> Scalar:
        """The number, which is all elements there are."""
        return self(None)


def lies(shape: Shape | None, whole: Shape) -> Any:
    """How an input, or a number, lies to a result, as far as code without extents can tell: as `Read` does."""
    if shape is None:
        return "number"
    if shape == whole or count(shape) == count(whole):  # of lengths that are not known yet, the first asks for less
        return "same"
    return "one" if count(shape) == 1 else shape


class Write:
    """Stores elements of an output."""

    def __init__(self, e: IndexCode, name: str, shape: Shape, dtype: DType) -> None:
        self.e, self.name, self.shape, self.dtype, self.ty = e, name, shape, dtype, STORED[dtype][0]

    def __call__(self, index: Any, value: Any) -> None:
        if index is self.e.here and self.e.here.shape == self.shape:
            self.store(self.e.lane, value)
        else:
            self.store(self.e.ravel(index, self.shape), value)

    def load(self, position: Scalar) -> Scalar:
        """What this lane has written at a flat position."""
        return self.e.load("LDG", BufferOffset(self.name), position, self.dtype)

    def store(self, position: Scalar, value: Any, beyond: int = 0) -> None:
        """Put a scalar, or a number, so far beyond a flat position."""
        if not isinstance(value, Scalar):
            value = self.e.constant(value, self.dtype)
        if value.dtype is not self.dtype:
            raise TensorError(f"the code of a row gives {value.dtype}, its rule says {self.dtype}")
        self.e.store("STG", BufferOffset(self.name, beyond * self.dtype.size), position, value)


class BlockMemory:
    """Elements that the lanes of a block share. Between a store and another lane's load there is a barrier."""

    def __init__(self, e: IndexCode, offset: int, dtype: DType) -> None:
        self.e, self.offset, self.dtype = e, offset, dtype

    def load(self, position: Scalar, beyond: int = 0) -> Scalar:
        """The element so far beyond a flat position."""
        return self.e.load("LDS", self._base(beyond), position, self.dtype)

    def store(self, position: Scalar, value: Scalar, beyond: int = 0) -> None:
        """Put a scalar so far beyond a flat position."""
        self.e.store("STS", self._base(beyond), position, value)

    def _base(self, beyond: int) -> Shared:
        return Shared(self.offset + beyond * self.dtype.size)
